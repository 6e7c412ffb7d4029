#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The man pages describe exactly what the programs have: options, commands, URL keys,
methods, kinds of LUNs, environment variables and exit statuses."""
import os
import re
import unittest

from harness import ISER, ISER_CHECK, ISERCTL, ISERD, main, need, run

TREE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
MAN = os.path.join(TREE, "docs/man")
COMMANDS = ("ls", "info", "copy", "hash", "bench", "ping", "nbd-serve", "attach", "detach",
            "rping", "rbench")
COMMON = {"json", "initiator", "debug", "help"}


def page(name):
    with open(os.path.join(MAN, name)) as f:
        return f.read()


def source(path):
    with open(os.path.join(TREE, "src", path)) as f:
        return f.read()


def sources():
    """Returns the text of each C file below src."""
    for folder, _, names in os.walk(os.path.join(TREE, "src")):
        for name in names:
            if name.endswith(".c"):
                yield source(os.path.join(folder, name))


def section(text, name):
    return text.split(".Sh %s\n" % name)[1].split("\n.Sh ")[0]


def entries_of_page(text):
    """Returns {option: (letter, whether it has an argument, text)} of a page or a part."""
    found = {}
    for part in re.split(r"(?m)^\.It ", text)[1:]:
        head, _, body = part.partition("\n")
        m = re.match(r"Fl (?:(\w) , Fl )?-([a-z0-9-]+)(.*)", head)
        if m:
            found[m.group(2)] = (m.group(1), bool(m.group(3)), head + " " + body)
    return found


def entries_of_help(text):
    """Returns {option: (letter, whether it has an argument, text)} of --help."""
    found = {}
    options = text.split("\n\n", 2)[2]  # after the usage and the summary
    for part in re.split(r"\n +(?=-\w, --|--)", options):
        m = re.match(r" *(?:-(\w), )?--([a-z0-9-]+)( \S+)?(?:  |\n|$)", part)
        if m:
            found[m.group(2)] = (m.group(1), bool(m.group(3)), " ".join(part.split()))
    return found


def in_page(text):
    """Returns the options with an entry, "It Fl -name" or "It Fl n , Fl -name"."""
    return {o for line in text.splitlines() if line.startswith(".It Fl")
            for o in re.findall(r"Fl -([a-z0-9-]+)", line)}


def in_help(text):
    return set(re.findall(r"^ +(?:-\w, )?--([a-z0-9-]+)", text, re.M))


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
                ("iserd", ["serve", "disk.img,k"], ["disk.img,key="]),
                ("iserd", ["serve", "ram", ":", "1M,"], ["1M,uuid=", "1M,serial=", "1M,naa=", "1M,eui=", "1M,pi=", "1M,key=", "1M,new-key="]),
                ("iserd", ["serve", "disk.img,key", "=", "/etc/hostna"], ["/etc/hostname"]),
                ("iserd", ["serve", "nul"], ["null:"]),
                ("iserctl", ["-s", "x", "re"], ["reservations", "resize"]),
                ("iserctl", ["resize", "lun0", "f"], ["force="]),
                ("iserctl", ["log", "level", "=", "n"], ["notice"]),
                ("iserctl", ["to"], ["top"]),
                ("iserctl", ["top", "sort", "=", "p"], ["p50", "p99"]),
                ("iserctl", ["lun", "re"], ["remove", "replace"]),
                ("iserctl", ["lun", "add", "x/0", "b"], ["backstore=", "block-size=", "buffered="]),
                ("iserctl", ["backstore", "set", "x", "cache", "=", ""], ["write-back", "write-through"]),
                ("iserctl", ["lun", "add", "x/0", "store", "=", "/etc/hostna"], ["/etc/hostname"]),
                ("iserctl", ["port", "state", "="], ["online", "offline"]),
                ("iser", ["h"], ["hash"]),
                ("iser", ["bench", "--arr"], ["--arrivals"]),
                ("iser", ["bench", "--arrivals", "s"], ["steady"]),
                ("iser", ["bench", "--series", "/etc/hostna"], ["/etc/hostname"]),
                ("iser", ["hash", "--algo", ""], []),
                ("iser", ["copy", "/etc/hostna"], ["/etc/hostname"]),
                ("iser", ["info", "isc"], ["iscsi://"]),
                ("iser", ["info", "iscsi", ":", "//h/iqn.x", ":", "y/0?tra"], ["y/0?transport="]),
                ("iser", ["info", "'iscsi://h/iqn.x:y/0?timeout=3&tra"], ["iscsi://h/iqn.x:y/0?timeout=3&transport="]),
                ("iser-tgtadm", ["--op", "new", "--mode", "l"], ["logicalunit", "lld"]),
                ("iser-tgtadm", ["--op", "=", "u"], ["update", "unbind"]),
                ("iser-tgtadm", ["-b", "/etc/hostna"], ["/etc/hostname"]),
                ("iser-tgtadm", ["-m", "target", "--ti"], ["--tid"]))
        for name, words, want in rows:
            script = 'complete() { :; }; compopt() { :; }; . "$1"; shift; COMP_WORDS=("$@"); ' \
                'COMP_CWORD=$(($# - 1)); _%s; printf "%%s\\n" "${COMPREPLY[@]}"' % name
            path = os.path.join(MAN, "../../completions", name)
            done = run(["bash", "-c", script, "bash", path, name, *words])
            self.assertEqual(sorted(done.text.split()), sorted(want), (name, words))

    @need("zsh")
    def test_completion_of_zsh(self):
        """What zsh offers at the end of these lines."""
        rows = {"iserctl lun re": ["remove", "replace"],
                "iserctl top sort=p": ["sort=p50", "sort=p99"],
                "iserctl to": ["top"],
                "iserctl -s x re": ["reservations", "resize"],
                "iserctl log level=n": ["level=notice"],
                "iserctl lun add x/0 bl": ["block-size=512", "block-size=4096"],
                "iserctl backstore set x cache=": ["cache=write-back", "cache=write-through"],
                "iserctl lun add x/0 store=/etc/hostna": ["store=hostname"],
                "iserctl insert path=/etc/hostna": ["path=hostname"],
                "iserctl check /etc/hostna": ["hostname"],
                "iserctl port state=": ["state=online", "state=offline"],
                "iserctl daemon ": ["set", "show"],
                "iserctl session ": ["list", "show", "kick"],
                "iserctl session set ": [],
                "iserd s": ["serve", "schema"],
                "iserd serve --io u": ["uring"],
                "iserd serve --chap-m": ["--chap-mutual-user", "--chap-mutual-secret-file"],
                "iserd serve disk.img,k": ["disk.img,key="],
                "iserd serve ram:1M,": ["ram:1M,%s=" % x for x in ("uuid", "serial", "naa", "eui", "pi", "key", "new-key")],
                "iserd serve nul": ["null:"],
                "iserd serve /etc/hostna": ["hostname"],
                "iser h": ["hash"],
                "iser bench --arrivals s": ["steady"],
                "iser bench --series /etc/hostna": ["hostname"],
                "iser copy /etc/hostna": ["hostname"],
                "iser info iscsi://h/iqn.x:y/0?tra": ["iscsi://h/iqn.x:y/0?transport="],
                "iser-tgtadm --op new --mode l": ["logicalunit", "lld"],
                "iser-tgtadm --op=u": ["--op=update", "--op=unbind"],
                "iser-tgtadm -b /etc/hostna": ["hostname"],
                "iser-tgtadm -m target --ti": ["--tid"]}
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "complete.zsh")
        text = run(["zsh", "-f", script, os.path.join(TREE, "completions"), *rows]).text
        found = {line: re.findall("(?m)^%s: (.*)$" % re.escape(line), text) for line in rows}
        self.assertEqual(found, rows)
        self.assertEqual(text.count(".\n"), len(rows))

    def test_iserd(self):
        self.assertIn("chap-user", in_page(page("iserd.8")))
        self.assertEqual(in_page(page("iserd.8")),
                         in_help(run([ISERD, "--help"]).text))

    def test_iserctl(self):
        text = run([ISERCTL, "--help"]).text
        man, imports = page("iserctl.1").split(".Ss iserctl import")
        self.assertEqual(in_page(man), in_help(text))
        self.assertEqual(in_page(imports), in_help(run([ISERCTL, "import", "--help"]).text))
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
        self.assertEqual(sorted(listed), sorted((*COMMANDS, "check")))

    @unittest.skipUnless(os.path.exists(ISER_CHECK), "iser-check is not built")
    def test_iser_check(self):
        text = run([ISER_CHECK, "--help"]).text
        man, printed = page("iser-check.1"), entries_of_help(text)
        described = entries_of_page(man)
        self.assertEqual(set(described), in_help(text))
        for name, (letter, argument, _) in printed.items():
            self.assertEqual(described[name][:2], (letter, argument), name)

    def test_iser_entries(self):
        """Letters, arguments, defaults and ranges of the options of each command."""
        man = page("iser.1")
        sections = dict(zip(re.findall(r"^\.Ss iser (.+)$", man, re.M),
                            re.split(r"^\.Ss iser .+$", man, flags=re.M)[1:]))
        common = entries_of_page(man.split(".Ss")[0])
        for c in COMMANDS:
            described = dict(common, **entries_of_page(sections[c]))
            help_text = run([ISER, c, "--help"]).text
            printed = entries_of_help(help_text)
            self.assertEqual(set(printed), in_help(help_text))
            for name, (letter, argument, text) in printed.items():
                with self.subTest(c, option=name):
                    self.assertEqual(described[name][:2], (letter, argument))
                    facts = re.findall(r"\(default: ([^)]+)\)|without it (\d\w*)|"
                                       r"(\d+ to \d\w*)", text)
                    for fact in (f for row in facts for f in row if f):
                        self.assertIn(fact, described[name][2])

    def test_lun_kinds(self):
        """The forms of a LUN: cd:PATH, LUN,key=FILE and so on."""
        kinds = re.findall(r"^  ((?:LUN,)?[a-z-]+[:=])[A-Z]+ ", run([ISERD, "--help"]).text,
                           re.M)
        self.assertIn("ram:", kinds)
        man = page("iserd.8").split(".Ar lun\nis one of")[1].split("An option with")[0]
        items = [re.sub(r"^Ar lun Ns Cm ,|^Cm ", "", x) for x in
                 re.findall(r"^\.It ((?:Ar lun Ns )?Cm .+)$", man, re.M)]
        self.assertEqual(sorted(re.match(r"([a-z-]+) ?([:=])", x).group(1, 2) for x in items),
                         sorted((k[:-1].replace("LUN,", ""), k[-1]) for k in kinds))

    def test_exit_statuses(self):
        """The man page, --help and the enum in the source have the same statuses."""
        for program, name, header in ((ISER, "iser.1", "tools/iser.h"),
                                      (ISERCTL, "iserctl.1", "tools/ctl.h"),
                                      (ISERD, "iserd.8", "daemon/config/options.h"),
                                      *[(ISER_CHECK, "iser-check.1", "tools/check/check.h")] * os.path.exists(ISER_CHECK)):
            described = re.findall(r"^\.It (\d+)$", section(page(name), "EXIT STATUS"), re.M)
            text = run([program, "--help"]).text.split("exit status:")[1].split("\n\n")[0]
            printed = re.findall(r"(?:^|,|\n) *(\d+) ", text)
            defined = re.findall(r"\bEXIT_\w+ = (\d+)", source(header))
            self.assertIn("0", described)
            self.assertEqual(described, printed, name)
            self.assertEqual(described, defined, name)

    def test_environment(self):
        read = {name for text in sources() for name in
                re.findall(r'(?:\bgetenv\(|from_environment\([^"]+)"(\w+)"', text)}
        described = {name for p in ("iser.1", "iser-check.1", "iserd.8", "iser-tgtadm.8") for name in re.findall(
            r"Ev (\w+)", section(page(p), "ENVIRONMENT"))}
        self.assertIn("LIBISCSI_CHAP_USERNAME", read)
        self.assertEqual(described, read)

    def test_url_keys(self):
        text = " ".join(run([ISER, "--help"]).text.split())
        keys = re.search(r"keys: ([a-z0-9_, ]+)\.", text).group(1).split(", ")
        urls = page("iser.1").split(".Ss URLs")[1].split(".Ss")[0]
        told = {k for line in urls.splitlines() if line.startswith(".It Cm")
                for k in re.findall(r"Cm ([a-z0-9_]+)", line)}
        self.assertEqual(told, set(keys))
        self.assertEqual(told, set(re.findall(r'(?:strcmp\(key, |\{ )"(\w+)"(?:\)|,\s+&u->)',
                                              source("lib/url.c"))))

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
