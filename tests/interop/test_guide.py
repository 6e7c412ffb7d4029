#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the commands of README.md, docs/guide.md, docs/cluster.md and docs/production.md.

A comment before a code block says what the test does with it: <!-- run --> runs it in a shell, with those of the same chapter;
<!-- file PATH --> writes it to a file; <!-- output --> expects its lines in the output of the chapter so far. A block without such a comment is
for another system, and the text before it must say "not run by the tests". Each chapter runs in an empty directory; nothing but the port is replaced.
production.md as a whole runs as it is, in a copy of this machine with a small systemctl; make deb-test runs it under systemd.
"""
import json
import os
import re
import subprocess
import unittest
import xml.dom.minidom

from harness import Folder, ISER, ISERCTL, ISERD, ISER_TGTADM, main, need, patience, quiet_port

TREE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
BUILD = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(ISER))))
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
README, PRODUCTION = "README.md", "docs/production.md"


def guide(page=PAGES[0]):
    with open(os.path.join(TREE, page)) as f:
        return f.read()


def all_blocks(*more):
    """The blocks of all pages with chapters."""
    return (block for page in PAGES + more for block in blocks(guide(page)))


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
        for mark, kind, before, content, chapter in all_blocks(README, PRODUCTION):
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
        for mark, kind, _, content, _ in all_blocks(PRODUCTION):
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

    @unittest.skipUnless(os.geteuid() == 0, "needs root for a network namespace")
    @need("unshare", "ip")
    def test_readme(self):
        """With the default port, in a network of its own."""
        os.symlink(self.path("bin"), self.path("empty/build"))
        self.port = 3260
        self.run_chapter("Quick start", README, ("unshare", "--net", "sh", "-c", "ip link set lo up; exec bash"))

    def run_chapter(self, name, page=None, shell=("bash",)):
        script, expected = self.place(PROLOGUE), []
        for mark, _, _, content, chapter in blocks(guide(page)) if page else all_blocks():
            if chapter != name or not mark:
                continue
            content = self.place(content)
            if mark == "run":
                content = re.sub(r"(?m)^((?:build/)?iserd (?:[^\n]*\\\n)*[^\n]*) &$", r"\1 &\nready", content)
                script += re.sub(r"(?m)^(iserctl .* shutdown)$", r"\1\nwait", content)
            elif mark == "output":
                expected += content.splitlines()
            else:
                script += "cat > %s << 'end of file'\n%send of file\n" % (mark[5:], content)
        self.assertNotEqual(script, self.place(PROLOGUE))
        env = dict(os.environ, PATH=self.path("bin") + ":" + os.environ["PATH"], OPENISER_MODULES=MODULES)
        done = subprocess.run(shell, input=script.encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
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

    def test_moving(self):
        self.run_chapter("Moving from tgt, LIO or ctld")

    def test_no_chapter_is_forgotten(self):
        with open(os.path.abspath(__file__)) as f:
            source = f.read()
        for mark, _, _, _, chapter in all_blocks():
            if mark:
                self.assertIn('run_chapter("%s")' % chapter, source)


# Runs COMMANDS in a copy of this machine whose changes are lost: a layer above /, with a network and processes of its own. NEW is the
# root of the copy.
COPY = r"""
set -eu
mount -t overlay overlay -o "lowerdir=/,upperdir=$LAYER/upper,workdir=$LAYER/work" "$NEW"
mount -t proc proc "$NEW/proc"
mount --rbind /dev "$NEW/dev"
ip link set lo up
meson install -C "$BUILD" --no-rebuild --quiet --destdir "$NEW" > /dev/null
install -m 755 "$LAYER/systemctl" "$NEW$PREFIX/sbin/systemctl"
mkdir -p "$NEW/run/systemd/system"
# the service cannot write to the rest of the system
exec chroot "$NEW" bash -c 'systemd-sysusers "$PREFIX/lib/sysusers.d/iserd.conf"
systemd-tmpfiles --create "$PREFIX/lib/tmpfiles.d/iserd.conf"
export PATH="$PREFIX/sbin:$PREFIX/bin:$PATH"
ln -sfn "$PREFIX/lib/openiser" /usr/lib/openiser
exec bash "$0"' "$LAYER/commands"
"""

# The service in that copy: the command, the user and the writable directories of the unit.
SYSTEMCTL = r"""#!/bin/bash
set -eu
unit=$(cat "$PREFIX/lib/systemd/system/iserd.service" /etc/systemd/system/iserd.service.d/*.conf 2> /dev/null || true)
field() { sed -n "s/^$1=//p" <<< "$unit"; }
main() { pgrep -n -x iserd; }
start() {
	mkdir -p /run/iserd
	chown "$(field User):" /run/iserd
	(
		export DIRS="/run/$(field RuntimeDirectory) /var/lib/$(field StateDirectory) $(field ReadWritePaths)" START="$(field ExecStart)"
		test "$(field ProtectSystem)" = strict
		setsid unshare --mount sh -c 'for d in $DIRS; do mount --bind $d $d; done
			mount -o remount,bind,ro /
			exec setpriv --reuid iserd --regid iserd --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs $START' > /tmp/log 2>&1 &
	)
	for i in $(seq 300); do
		! iserctl status > /dev/null 2>&1 || return 0
		[ "$i" -lt 30 ] || pgrep -x iserd > /dev/null || break
		sleep 0.1
	done
	cat /tmp/log >&2
	return 1
}
stop() {
	pkill -TERM -x iserd || true
	while pgrep -x iserd > /dev/null; do sleep 0.1; done
}
case "$*" in
"enable --now iserd" | "start iserd") start ;;
"restart iserd") stop; start ;;
"stop iserd") stop ;;
"reload iserd") kill -HUP "$(main)" ;;
"daemon-reload") ;;
"--quiet is-active iserd.service") main > /dev/null ;;
"kill --signal=USR2 --kill-who=main iserd.service") kill -USR2 "$(main)" ;;
"show --property=MainPID --value iserd.service") main ;;
*) echo "systemctl: $*?" >&2; exit 1 ;;
esac
"""


@unittest.skipUnless(os.geteuid() == 0, "needs root")
class Production(Folder):
    """The page about the service, without systemd."""

    def run_in_copy(self, commands):
        self.dir = os.path.realpath(self.dir)
        for folder in ("upper", "work", "new"):
            os.mkdir(self.path(folder))
        for name, text in (("systemctl", SYSTEMCTL), ("commands", "set -eu -o pipefail\ntrap 'echo \"failed: $BASH_COMMAND\" >&2' ERR\n" + commands)):
            with open(self.path(name), "w") as f:
                f.write(text)
        with open(os.path.join(BUILD, "meson-info/intro-buildoptions.json")) as f:
            prefix = next(o["value"] for o in json.load(f) if o["name"] == "prefix")
        env = dict(os.environ, LAYER=self.dir, NEW=self.path("new"), BUILD=BUILD, PREFIX=prefix, LD_LIBRARY_PATH=os.path.join(BUILD, "src/lib"))
        done = subprocess.run(["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "bash", "-c", COPY], env=env,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=patience(120))
        text = done.stdout.decode(errors="replace")
        if "mount:" in text and "overlay" in text:
            self.skipTest("no overlayfs: " + text[-200:])
        return done.returncode, text

    @need("unshare", "meson", "systemd-sysusers", "systemd-tmpfiles", "runuser", "pgrep")
    def test_page(self):
        script, expected = "", []
        for mark, _, _, content, _ in blocks(guide(PRODUCTION)):
            if mark == "run":
                script += content
            elif mark == "output":
                expected += content.splitlines()
            elif mark:
                script += "cat > %s << 'end of file'\n%send of file\n" % (mark[5:], content)
        status, text = self.run_in_copy(script)
        self.assertEqual(status, 0, text[-3000:])
        for line in expected:
            self.assertIn(line, text)

    @need("unshare", "meson", "systemd-sysusers", "systemd-tmpfiles", "runuser", "pgrep")
    def test_clone_of_a_virtual_machine(self):
        """The service sees another product_uuid: the image is another disk."""
        status, text = self.run_in_copy(r"""
dmi=/sys/devices/virtual/dmi/id
mkdir -p $dmi /sys/class/dmi
ln -s $dmi /sys/class/dmi/id
install -o iserd -m 600 /dev/null /var/lib/iserd/disk.img
truncate -s 1M /var/lib/iserd/disk.img
printf 'version: 1\ndaemon: {control: /run/iserd/control}\nbackstores: {d: {store: /var/lib/iserd/disk.img}}\n' > /etc/iserd/iserd.yaml
for machine in original original clone clone; do
	rm -f $dmi/product_uuid
	install -m 400 /dev/stdin $dmi/product_uuid <<< $machine
	systemd-tmpfiles --create "$PREFIX/lib/tmpfiles.d/iserd.conf"
	stat -c %U:%G:%a $dmi/product_uuid
	systemctl start iserd
	iserctl --json luns | grep -o '"uuid": *"[^"]*"'
	systemctl stop iserd
done""")
        self.assertEqual(status, 0, text)
        self.assertEqual(text.count("root:iserd:440"), 4, text)
        identities = [line for line in text.splitlines() if line.startswith('"uuid"')]
        self.assertEqual(len(identities), 4, text)
        self.assertEqual(identities[0], identities[1])
        self.assertNotEqual(identities[1], identities[2])
        self.assertEqual(identities[2], identities[3])

    @need("unshare", "meson", "systemd-sysusers", "systemd-tmpfiles", "runuser", "pgrep")
    def test_takeover_while_systemd_is_slow(self):
        """The old process has ended, and its parent has not noticed yet."""
        status, text = self.run_in_copy(r"""
mkdir -p /run/iserd
printf 'version: 1\ndaemon: {control: /run/iserd/control}\nbackstores: {d: {store: "ram:1M"}}\n' > /etc/iserd/iserd.yaml
python3 -c 'import subprocess, time; p = subprocess.Popen(["iserd", "--config", "/etc/iserd/iserd.yaml"]); time.sleep(600)' &
for i in $(seq 300); do
	iserctl status > /dev/null 2>&1 && break
	sleep 0.1
done
old=$(pgrep -x iserd)
/usr/lib/openiser/takeover
test -e /proc/$old
echo nonsense > /etc/iserd/iserd.yaml
! /usr/lib/openiser/takeover""")
        self.assertEqual(status, 0, text)
        self.assertIn("took over from", text)
        self.assertIn("goes on, with the program of before", text)

    @need("unshare", "meson", "systemd-sysusers", "systemd-tmpfiles", "runuser", "pgrep")
    def test_images_elsewhere_need_a_drop_in(self):
        """The message names what is missing."""
        status, text = self.run_in_copy(r"""
install -d -o iserd /srv/iscsi
install -o iserd /dev/null /srv/iscsi/disk.img
truncate -s 1M /srv/iscsi/disk.img
printf 'version: 1\ndaemon: {control: /run/iserd/control}\nbackstores: {d: {store: /srv/iscsi/disk.img}}\n' > /etc/iserd/iserd.yaml
systemctl start iserd""")
        self.assertEqual(status, 1, text[-3000:])
        self.assertIn("/srv/iscsi/disk.img: is on a file system that is read-only for iserd; add its directory to ReadWritePaths= of the service", text)


if __name__ == "__main__":
    main()
