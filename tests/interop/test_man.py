#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The man pages describe exactly the options of each program."""
import os
import re
import unittest

from harness import ISER, ISERCTL, ISERD, main, need, run

MAN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/man")
COMMANDS = ("ls", "info", "copy", "hash", "bench", "ping", "nbd-serve",
            "rping", "rbench")
COMMON = {"json", "initiator", "debug", "help"}


def page(name):
    with open(os.path.join(MAN, name)) as f:
        return f.read()


def in_page(text):
    """Returns the options with an entry, "It Fl -name" or "It Fl n , Fl -name"."""
    return {o for line in text.splitlines() if line.startswith(".It Fl")
            for o in re.findall(r"Fl -([a-z-]+)", line)}


def in_help(text):
    return set(re.findall(r"^ +(?:-\w, )?--([a-z-]+)", text, re.M))


class Man(unittest.TestCase):
    maxDiff = None

    def test_tables(self):
        """Headings, ranges, defaults and completion come from "iserd schema"."""
        build = os.path.join(os.path.dirname(os.path.realpath(ISERD)), "../..")
        done = run([os.path.join(MAN, "../../scripts/options"), build], check=False)
        self.assertEqual((done.returncode, done.text), (0, ""))

    @need("bash")
    def test_completion(self):
        """What bash offers after these words."""
        rows = (("iserd", ["serve", "--chap-m"], ["--chap-mutual-user", "--chap-mutual-secret-file"]),
                ("iserd", ["serve", "--io", "u"], ["uring"]),
                ("iserd", ["s"], ["serve", "schema"]),
                ("iserctl", ["-s", "x", "re"], ["reservations", "resize"]),
                ("iserctl", ["resize", "lun", "=", "0", "f"], ["force="]),
                ("iserctl", ["log", "level", "=", "n"], ["notice"]),
                ("iserctl", ["port", "state", "="], ["online", "offline"]))
        for name, words, want in rows:
            script = 'complete() { :; }; compopt() { :; }; . "$1"; shift; COMP_WORDS=("$@"); ' \
                'COMP_CWORD=$(($# - 1)); _%s; printf "%%s\\n" "${COMPREPLY[@]}"' % name
            path = os.path.join(MAN, "../../completions", name)
            done = run(["bash", "-c", script, "bash", path, name, *words])
            self.assertEqual(sorted(done.text.split()), sorted(want), (name, words))

    def test_iserd(self):
        self.assertIn("chap-user", in_page(page("iserd.8")))
        self.assertEqual(in_page(page("iserd.8")),
                         in_help(run([ISERD, "--help"]).text))

    def test_iserctl(self):
        text = run([ISERCTL, "--help"]).text
        man = page("iserctl.1")
        self.assertEqual(in_page(man), in_help(text))
        methods = re.findall(r"^  ([a-z]+) ", text, re.M)
        self.assertIn("status", methods)
        self.assertEqual(re.findall(r"^\.It Cm ([a-z]+)", man, re.M), methods)

    def test_iser(self):
        man = page("iser.1")
        sections = dict(zip(re.findall(r"^\.Ss iser (.+)$", man, re.M),
                            re.split(r"^\.Ss iser .+$", man, flags=re.M)[1:]))
        self.assertEqual(in_page(man.split(".Ss")[0]), COMMON)
        for c in COMMANDS:
            told = in_help(run([ISER, c, "--help"]).text)
            self.assertEqual(in_page(sections[c]) | COMMON, told, c)
        listed = re.findall(r"^  ([a-z-]+)  +\S", run([ISER, "--help"]).text,
                            re.M)
        self.assertEqual(sorted(listed), sorted(COMMANDS))

    def test_url_keys(self):
        text = " ".join(run([ISER, "--help"]).text.split())
        keys = re.search(r"keys: ([a-z_, ]+)\.", text).group(1).split(", ")
        urls = page("iser.1").split(".Ss URLs")[1].split(".Ss")[0]
        told = {k for line in urls.splitlines() if line.startswith(".It Cm")
                for k in re.findall(r"Cm ([a-z_]+)", line)}
        self.assertEqual(told, set(keys))

    @need("groff")
    def test_pages_are_well_formed(self):
        for name in sorted(os.listdir(MAN)):
            done = run(["groff", "-mdoc", "-Tutf8", "-ww",
                        os.path.join(MAN, name)])
            self.assertNotRegex(done.text, r"(?m)^[^ ].*\b(warning|error):")
            self.assertIn("SEE ALSO", re.sub("\x1b\\[[0-9;]*m|.\b", "",
                                             done.text))


if __name__ == "__main__":
    main()
