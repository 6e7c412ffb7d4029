#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the commands of docs/guide.md and docs/cluster.md.

A comment before a code block says what the test does with it: <!-- run --> runs it in a shell, with those of the same chapter;
<!-- file PATH --> writes it to a file; <!-- output --> expects its lines in the output of the chapter so far. A block without such a comment is
for another system, and the text before it must say "not run by the tests". Each chapter runs in an empty directory; nothing but the port is replaced.
"""
import os
import re
import subprocess
import unittest
import xml.dom.minidom

from harness import Folder, ISER, ISERCTL, ISERD, ISER_TGTADM, main, need, patience, quiet_port

TREE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
MODULES = os.path.dirname(os.path.dirname(os.path.realpath(ISERD)))
KINDS = {"sh", "yaml", "text", "xml", "powershell"}
# Before the commands of a chapter: a failed command ends the shell; a started iserd is ready before the next command, and one that was
# shut down has ended.
PROLOGUE = r'''
set -eu -o pipefail
trap 'echo "failed: $BASH_COMMAND" >&2' ERR
trap 'status=$?; set +e; kill $(jobs -p) 2> /dev/null; wait; exit $status' EXIT
ready() {
	for _ in $(seq 600); do
		(: > /dev/tcp/127.0.0.1/3260) 2> /dev/null && return 0
		kill -0 $! || return 1
		sleep 0.1
	done
	return 1
}
'''


PAGES = ("docs/guide.md", "docs/cluster.md")


def guide(page=PAGES[0]):
    with open(os.path.join(TREE, page)) as f:
        return f.read()


def all_blocks():
    """The blocks of all pages."""
    return (block for page in PAGES for block in blocks(guide(page)))


def blocks(text):
    """Yields (mark, kind, text before, content, chapter) of each code block."""
    chapter, before, mark = "", "", ""
    lines = iter(text.split("\n"))
    for line in lines:
        if m := re.match(r"## (.*)", line):
            chapter, before = m.group(1), ""
        if m := re.match(r"<!-- (run|output|file \S+) -->$", line):
            mark = m.group(1)
        elif line.startswith("```"):
            content = []
            for inner in lines:
                if inner.startswith("```"):
                    break
                content.append(inner)
            yield mark, line[3:], before, "\n".join(content) + "\n", chapter
            mark = ""
        elif line.strip():
            # a paragraph may have two blocks after it
            before = before + " " + line if before and not before.endswith("\n") else line
        elif before and not before.endswith("\n"):
            before += "\n"


class Form(unittest.TestCase):
    def test_every_block_is_run_or_marked(self):
        for mark, kind, before, content, chapter in all_blocks():
            with self.subTest(chapter, block=content[:60]):
                self.assertIn(kind, KINDS)
                if not mark:
                    self.assertIn("not run by the tests", " ".join(before.split()))
                if mark == "run":
                    self.assertEqual(kind, "sh")

    def test_chapters_are_listed(self):
        text = guide()
        for link in re.findall(r"\]\(#([^)]+)\)", text):
            chapters = [re.sub(r"[^a-z0-9 -]", "", c.lower()).replace(" ", "-") for c in re.findall(r"(?m)^## (.*)", text)]
            self.assertIn(link, chapters)

    def test_blocks_for_others_are_well_formed(self):
        for mark, kind, _, content, _ in all_blocks():
            if kind == "xml":
                xml.dom.minidom.parseString(content)
            if kind == "sh":
                subprocess.run(["bash", "-n"], input=content.encode(), check=True)
            if kind == "yaml":
                try:
                    import yaml
                except ImportError:
                    continue
                self.assertTrue(list(yaml.safe_load_all(content)))


class Chapter(Folder):
    """The commands of each chapter in one shell."""

    def setUp(self):
        super().setUp()
        self.port = quiet_port()
        for folder in ("bin", "empty"):
            os.mkdir(self.path(folder))
        for name, program in (("iser", ISER), ("iserctl", ISERCTL), ("iserd", ISERD), ("iser-tgtadm", ISER_TGTADM)):
            os.symlink(os.path.abspath(program), self.path("bin/" + name))

    def place(self, text):
        return text.replace("3260", str(self.port))

    def run_chapter(self, name):
        script, expected = self.place(PROLOGUE), []
        for mark, _, _, content, chapter in all_blocks():
            if chapter != name or not mark:
                continue
            content = self.place(content)
            if mark == "run":
                content = re.sub(r"(?m)^(iserd (?:[^\n]*\\\n)*[^\n]*) &$", r"\1 &\nready", content)
                script += re.sub(r"(?m)^(iserctl .* shutdown)$", r"\1\nwait", content)
            elif mark == "output":
                expected += content.splitlines()
            else:
                script += "cat > %s << 'end of file'\n%send of file\n" % (mark[5:], content)
        self.assertNotEqual(script, self.place(PROLOGUE))
        env = dict(os.environ, PATH=self.path("bin") + ":" + os.environ["PATH"], OPENISER_MODULES=MODULES)
        done = subprocess.run(["bash"], input=script.encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=patience(60), cwd=self.path("empty"), env=env)
        text = done.stdout.decode(errors="replace")
        self.assertEqual(done.returncode, 0, text[-4000:])
        for line in expected:
            self.assertIn(line, text)

    @need("iscsi-ls")
    def test_first_disk(self):
        self.run_chapter("A first disk")

    def test_configuration_file(self):
        self.run_chapter("The configuration file")

    @need("openssl")
    def test_accounts(self):
        self.run_chapter("Accounts and masking")

    def test_changing(self):
        self.run_chapter("Changing a running iserd")

    @need("qemu-img", "qemu-io")
    def test_qemu(self):
        self.run_chapter("QEMU and libvirt")

    @need("qemu-img", "qemu-nbd")
    @unittest.skipUnless(os.path.exists(os.path.join(MODULES, "backstore-nbd.so")), "this build has no backstore-nbd.so")
    def test_nbd_servers(self):
        self.run_chapter("What NBD servers serve")

    def test_paths(self):
        self.run_chapter("Several paths")

    def test_lost_connection(self):
        self.run_chapter("A lost connection")

    def test_gateways(self):
        self.run_chapter("Try it on one machine")

    def test_backup(self):
        self.run_chapter("Backup")

    def test_moving(self):
        self.run_chapter("Moving from tgt, LIO or ctld")

    def test_no_chapter_is_forgotten(self):
        with open(os.path.abspath(__file__)) as f:
            source = f.read()
        for mark, _, _, _, chapter in all_blocks():
            if mark:
                self.assertIn('run_chapter("%s")' % chapter, source)


if __name__ == "__main__":
    main()
