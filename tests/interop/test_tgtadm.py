#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""iser-tgtadm against tgtd and its tgtadm: the same commands give the same output, messages and exit statuses; and Debian's tgt-admin
controls iserd by it."""
import argparse
import json
import os
import re
import signal
import stat
import subprocess
import time
import unittest

from harness import Folder, ISER, ISERCTL, ISERD, ISER_TGTADM, io, main, need, patience, quiet_port, run, sparse, until, Wire

IQN = "iqn.2026-11.com.example:"
# Each line is a command. tgtd and iserd start without targets.
SAME = """
--op show --mode target
--op show --mode account
--op new --mode target --tid 1
--lld iscsi --op new --mode target --tid 1 -T IQNa
--lld iscsi --op new --mode target --tid 1 -T IQNb
--lld iscsi --op new --mode target --tid 2 -T IQNa
--lld nope --op new --mode target --tid 2 -T IQNb
--op new --mode target --tid 2147483647 -T IQNb
--op new --mode target --tid 2147483648 -T IQNc
--op new --mode target --tid 7 -T IQNg
--op show --mode target
--op show --mode target --tid 99
--op new --mode logicalunit --tid 1 --lun 1 -b FOLDER/a.img
--op new --mode logicalunit --tid 1 --lun 1 -b FOLDER/b.img
--op new --mode logicalunit --tid 1 --lun 0 -b FOLDER/b.img
--op new --mode logicalunit --tid 99 --lun 3 -b FOLDER/b.img
--op new --mode logicalunit --tid 1 --lun 2 -b FOLDER/b.img -Y zzz
--op new --mode logicalunit --tid 1 --lun 0x10 -b FOLDER/b.img --blocksize 4096
--op show --mode target
--op update --mode logicalunit --tid 1 --lun 1 --params vendor_id=ACME,product_id=disk,product_rev=1,scsi_sn=serial
--op update --mode logicalunit --tid 1 --lun 1 --params readonly=1
--op update --mode logicalunit --tid 1 --lun 1 --params removable=1,online=1
--op update --mode logicalunit --tid 1 --lun 1 --params ,vendor_id=ACME,,product_rev=2,
--op update --mode logicalunit --tid 1 --lun 1 --params ,
--op update --mode logicalunit --tid 1 --lun 1 --params =
--op update --mode logicalunit --tid 1 --lun 1 --params vendor_id=
--op update --mode logicalunit --tid 1 --lun 1
--op update --mode logicalunit --tid 1 --lun 99 --params online=1
--op update --mode logicalunit --tid 99 --lun 1 --params online=1
--op update --mode logicalunit --tid 1 --lun 1 --name vendor_id --value A
--op show --mode target
--op delete --mode logicalunit --tid 1 --lun 0
--op delete --mode logicalunit --tid 1 --lun 99
--op delete --mode logicalunit --tid 99 --lun 1
--op delete --mode logicalunit --tid 1 --lun 16
--op bind --mode target --tid 7
--op bind --mode target --tid 7 -I ALL
--op bind --mode target --tid 7 -I ALL
--op bind --mode target --tid 7 -I 127.0.0.1
--op bind --mode target --tid 7 -I 10.0.0.0/8
--op bind --mode target --tid 7 -I 2001:db8::1
--op bind --mode target --tid 99 -I ALL
--op bind --mode target --tid 1 -Q IQNnode1
--op bind --mode target --tid 1 -Q IQNnode2
--op bind --mode target --tid 1 -Q IQNnode2
--op show --mode target
--op unbind --mode target --tid 7 -I 9.9.9.9
--op unbind --mode target --tid 7 -I ALL
--op unbind --mode target --tid 1 -Q IQNnode2
--op unbind --mode target --tid 1 -Q IQNnode9
--op unbind --mode target --tid 99 -I ALL
--op update --mode target --tid 7 -n state -v offline
--op update --mode target --tid 7 -n state -v nonsense
--op update --mode target --tid 7 -n nonsense -v 1
--op update --mode target --tid 7 -n MaxBurstLength -v xx
--op update --mode target --tid 99 -n state -v ready
--op show --mode target
--op update --mode target --tid 7 -n state -v ready
--op new --mode account --user u --password 1234567890abc
--op new --mode account --user u --password 1234567890abc
--op new --mode account --user v --password 1234567890xyz
--op new --mode account --user w --password 1234567890uvw
--op show --mode account
--op bind --mode account --user nope --tid 7
--op bind --mode account --user u --tid 99
--op bind --mode account --user u --tid 7
--op bind --mode account --user u --tid 7
--op bind --mode account --user v --tid 7
--op bind --mode account --user w --tid 7 --outgoing
--op bind --mode account --user u --tid 7 --outgoing
--op bind --mode account --user v
--op bind --mode account --user v
--op show --mode target
--op unbind --mode account --user nope --tid 7
--op unbind --mode account --user w --tid 7
--op unbind --mode account --user v --tid 7
--op unbind --mode account --user u --tid 99
--op unbind --mode account --user w --tid 7 --outgoing
--op unbind --mode account --user v
--op unbind --mode account --user v
--op delete --mode account --user nope
--op delete --mode account --user u
--op show --mode account
--op show --mode target
--op show --mode conn
--op show --mode conn --tid 7
--op delete --mode conn --tid 99 --sid 1 --cid 1
--op delete --mode conn --tid 1 --sid 1 --cid 0
--op delete --mode conn --tid 7 --sid 1 --cid 0
--op stat --mode target
--op stat --mode target --tid 0
--op stat --mode target --tid 99
--op stat --mode target --tid 2147483647
--op stat --mode target --tid 1 --lun 1
--op stat --mode logicalunit --tid 7
--op stat --mode logicalunit --tid 7 --lun 9
--op stat --mode conn --tid 7 --sid 1
--op stat --mode account
--op stat --mode portal
--op show --mode session --tid 1
--op new --mode conn --tid 1
--op delete --mode sys
--op start --mode lld
--op delete --mode target --tid 99
--op delete --mode target --tid 1
--op delete --mode target --tid 7 --force
--op delete --mode target --tid 2147483647
--op show --mode target
--op delete --mode sys
"""


def without_identity(text):
    """Without what must differ: identities of units; thin provisioning, which iserd has where the file system has it; and the reason
    that iserd adds to "invalid request"."""
    text = re.sub(r"(?m)^( +(SCSI ID|SCSI SN|Thin-provisioning): ).*", r"\1...", text)
    return re.sub(r"(?m)(invalid request): .*", r"\1", text)


class Base(Folder):
    """An iserd without targets, and iser-tgtadm under the name tgtadm."""

    def setUp(self):
        super().setUp()
        self.ctl = self.path("ctl")
        os.mkdir(self.path("bin"))
        os.symlink(os.path.abspath(ISER_TGTADM), self.path("bin/tgtadm"))
        for name, size in (("a.img", 64 << 20), ("b.img", 10 << 20), ("c.img", 5 << 20)):
            sparse(self.path(name), size)

    def spawn(self, *args):
        log = open(self.path("log"), "ab")
        self.addCleanup(log.close)
        proc = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(proc.wait)
        self.addCleanup(proc.kill)
        return proc

    def iserd(self, *args):
        if not args:
            self.port = quiet_port()
            os.mkdir(self.path("state"), 0o700)
            with open(self.path("iserd.yaml"), "w") as f:
                f.write("{version: 1, daemon: {control: %s, state: %s, io: %s}, portal-groups: {p: {listen: ['127.0.0.1:%d']}}}\n" % (
                    self.ctl, self.path("state"), io(), self.port))
            args = ("--config", self.path("iserd.yaml"))
        proc = self.spawn(ISERD, *args)
        self.pid = proc.pid
        until(lambda: os.path.exists(self.ctl) or proc.poll() is not None, "the control socket")
        return proc

    def adm(self, *args, path=None, stdin=subprocess.DEVNULL, **env):
        """Runs tgtadm of this path. Returns the exit status and all that it printed."""
        program = path or self.path("bin/tgtadm")
        done = subprocess.run([program, *args], executable=program, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=patience(30), env={**os.environ, "ISER_TGTADM_SOCKET": self.ctl, **env})
        return done.returncode, done.stdout.decode()

    def good(self, line, **more):
        code, text = self.adm(*line.split(), **more)
        self.assertEqual(code, 0, line + "\n" + text)
        return text

    def refused(self, line, why, status=22, **more):
        code, text = self.adm(*line.split(), **more)
        self.assertEqual(code, status, line + "\n" + text)
        self.assertIn(why, text)

    def config(self):
        return json.loads(run([ISERCTL, "-s", self.ctl, "--json", "config"]).text)["config"]

    def bridge(self, target="x", account="", keys=""):
        """A program that stays logged in to a target."""
        url = "iscsi://%s127.0.0.1:%d/%s%s/1%s" % (account, self.port, IQN, target, keys)
        proc = subprocess.Popen([ISER, "nbd-serve", "--socket", self.path("nbd"), url],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(proc.wait)
        self.addCleanup(proc.kill)
        self.addCleanup(proc.stdout.close)
        self.assertTrue(proc.stdout.readline())
        return proc

    def refused_login(self, target, account=""):
        done = run([ISER, "info", "iscsi://%s127.0.0.1:%d/%s%s/1" % (account, self.port, IQN, target)], check=False)
        self.assertNotEqual(done.returncode, 0, done.text)


class TgtAdm(Base):
    @need("tgtd", "tgtadm")
    def test_same_as_tgtadm(self):
        control = str(30000 + os.getpid() % 2000)
        tgtd = self.spawn("tgtd", "-f", "-C", control, "--iscsi", "portal=127.0.0.1:%d" % quiet_port())
        end = time.monotonic() + patience(10)
        while subprocess.run(["tgtadm", "-C", control, "--op", "show", "--mode", "sys"], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL).returncode:
            if tgtd.poll() is not None or time.monotonic() > end:
                self.skipTest("tgtd does not run here")
            time.sleep(0.05)
        iserd = self.iserd()
        for line in SAME.strip().split("\n"):
            args = line.replace("IQN", IQN).replace("FOLDER", self.dir).split()
            theirs = self.adm("-C", control, *args, path="/usr/sbin/tgtadm")
            ours = self.adm(*args)
            self.assertEqual((ours[0], without_identity(ours[1]).replace(self.path("bin/tgtadm"), "tgtadm")),
                             (theirs[0], without_identity(theirs[1]).replace("/usr/sbin/tgtadm", "tgtadm")), line)
        iserd.wait(patience(10))  # the last command ends both
        self.assertEqual(iserd.returncode, 0)

    CONF = """
<target {iqn}one>
    backing-store {f}/a.img
    incominguser alice alice-has-a-secret
    outgoinguser target target-has-another
    initiator-address 127.0.0.1
    MaxBurstLength 65536
    HeaderDigest CRC32C
</target>
<target {iqn}two>
    <backing-store {f}/b.img>
        vendor_id {vendor}
        scsi_sn serial-2
        removable 1
        readonly 1
        write-cache off
        lun 5
    </backing-store>
</target>
"""

    def tgt_admin(self, *args, status=0):
        done = subprocess.run(["tgt-admin", *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=patience(60), env={**os.environ, "ISER_TGTADM_SOCKET": self.ctl,
                                                         "PATH": self.path("bin") + ":" + os.environ["PATH"]})
        self.assertEqual(done.returncode, status, done.stdout.decode())
        return done.stdout.decode()

    def write_conf(self, vendor):
        with open(self.path("targets.conf"), "w") as f:
            f.write(self.CONF.format(iqn=IQN, f=self.dir, vendor=vendor))

    @need("tgt-admin")
    def test_tgt_admin(self):
        if os.geteuid():
            self.skipTest("tgt-admin must be root")
        self.iserd()
        self.write_conf("ACME")
        out = self.tgt_admin("-e", "-c", self.path("targets.conf"))
        self.assertIn("MaxBurstLength: ignored", out)
        c = self.config()
        self.assertEqual({n: b["store"] for n, b in c["backstores"].items()},
                         {"tgt-1-1": self.path("a.img"), "tgt-2-5": self.path("b.img")})
        two = c["backstores"]["tgt-2-5"]
        self.assertEqual((two["vendor"], two["serial"], two["removable"], two["cache"]), ("ACME", "serial-2", "yes", "write-through"))
        self.assertEqual(c["targets"][IQN + "two"]["luns"], {"5": {"backstore": "tgt-2-5", "read-only": "yes"}})
        self.assertEqual(c["targets"][IQN + "one"]["digests"], "prefer")
        self.who_sees()
        dump = self.tgt_admin("--dump")
        for text in ("<target %sone>" % IQN, "backing-store " + self.path("b.img"), "incominguser alice PLEASE",
                     "outgoinguser target PLEASE", "initiator-address 127.0.0.1"):
            self.assertIn(text, dump)
        self.assertIn("SCSI SN: serial-2", self.tgt_admin("--show"))
        self.tgt_admin("--offline", IQN + "two")
        self.assertEqual(re.findall(r"State: (\w+)", self.tgt_admin("--show")), ["ready", "offline"])
        self.tgt_admin("--ready", "ALL")
        self.assertEqual(re.findall(r"State: (\w+)", self.tgt_admin("--show")), ["ready", "ready"])
        self.write_conf("OTHER")
        self.tgt_admin("--update", "ALL", "-c", self.path("targets.conf"))
        self.assertEqual(self.config()["backstores"]["tgt-2-5"]["vendor"], "OTHER")
        self.tgt_admin("--delete", "tid=1")
        self.assertEqual(list(self.config()["targets"]), [IQN + "two"])
        self.tgt_admin("--delete", "ALL")
        self.assertEqual(self.config().get("backstores", {}), {})

    def who_sees(self):
        """An initiator of others logs in as the configuration says."""
        url = "%s127.0.0.1:%d/" + IQN + "%s/%d"
        login = [ISER, "info"]
        run(login + ["iscsi://" + url % ("alice%alice-has-a-secret@", self.port, "one", 1)])
        for user, target, lun in (("", "one", 1), ("alice%wrong-wrong-wrong@", "one", 1), ("", "two", 1)):
            done = run(login + ["iscsi://" + url % (user, self.port, target, lun)], check=False)
            self.assertNotEqual(done.returncode, 0, done.text)
        run(login + ["iscsi://" + url % ("", self.port, "two", 5)])

    def test_sessions(self):
        self.iserd()
        self.good("--op new --mode target --tid 3 -T %sx" % IQN)
        self.good("--op new --mode lu --tid 3 --lun 1 -b %s" % self.path("a.img"))
        self.good("--op bind --mode target --tid 3 -I ALL")
        self.bridge()
        conns = self.good("--op show --mode conn --tid 3")
        m = re.fullmatch(r"Session: (\d+)\n    Connection: (\d+)\n        Initiator: (\S+)\n        IP Address: 127.0.0.1\n", conns)
        self.assertTrue(m, conns)
        self.assertIn("        I_T nexus: %s\n            Initiator: %s alias: none\n            Connection: %s\n"
                      "                IP Address: 127.0.0.1\n" % m.group(1, 3, 2), self.good("--op show --mode target"))
        self.refused("--op delete --mode target --tid 3", "this target is still active")
        self.refused("--op delete --mode conn --tid 3 --sid 60000 --cid 0", "can't find the session")
        self.refused("--op delete --mode conn --tid 3 --sid %s --cid 77" % m.group(1), "can't find the connection")
        # other targets come and go without an effect on the session
        self.good("--op new --mode target --tid 4 -T %sy" % IQN)
        self.good("--op delete --mode target --tid 4")
        self.assertEqual(self.good("--op show --mode conn --tid 3"), conns)
        self.good("--op delete --mode conn --tid 3 --sid %s --cid %s" % m.group(1, 2))
        self.assertNotIn("Session: %s\n" % m.group(1), self.good("--op show --mode conn --tid 3"))
        self.good("--op delete --mode target --tid 3 --force")

    def test_silent_sessions_end_at_once(self):
        """Initiators that do not answer are not asked to log out: the agents of Pacemaker end one connection
        after the other while they stop a target."""
        self.iserd()
        self.good("--op new --mode target --tid 3 -T %sx" % IQN)
        self.good("--op new --mode lu --tid 3 --lun 1 -b %s" % self.path("a.img"))
        self.good("--op bind --mode target --tid 3 -I ALL")
        silent = []
        for n in range(4):
            s = Wire(argparse.Namespace(address=("127.0.0.1", self.port), target=IQN + "x"))
            s.ISID = b"\x80\x12\x34\x56\0" + bytes([n])
            s.login()
            silent.append(s)
        conns = re.findall(r"Session: (\d+)\n    Connection: (\d+)", self.good("--op show --mode conn --tid 3"))
        self.assertEqual(len(conns), 4)
        for sid, cid in conns:
            self.good("--op delete --mode conn --tid 3 --sid %s --cid %s" % (sid, cid))
        for s in silent:  # no Asynchronous Message before the end
            self.assertRaises(EOFError, s.recv)
            s.close()
        self.good("--op delete --mode target --tid 3")

    def test_rules_end_with_the_target(self):
        """Nothing of a deleted target is left for the next one of its number, in whatever order its rules went."""
        self.iserd()
        self.good("--op new --mode account --user old --password secret-of-the-old")
        for last in ("--op unbind --mode target --tid 1 -I ALL", "--op update --mode target --tid 1 -n state -v offline",
                     "--op bind --mode target --tid 1 -Q %sn" % IQN):
            self.good("--op new --mode target --tid 1 -T %sx" % IQN)
            self.good("--op bind --mode target --tid 1 -I ALL")
            self.good("--op bind --mode account --user old --tid 1")
            self.good(last)
            self.good("--op delete --mode target --tid 1")
            self.assertEqual(list(self.config().get("auth-groups", {})), ["tgt-accounts"])
            self.assertEqual(self.config().get("backstores", {}), {})
        self.good("--op new --mode target --tid 1 -T %sx" % IQN)
        self.good("--op new --mode lu --tid 1 --lun 1 -b %s" % self.path("a.img"))
        self.good("--op new --mode account --user new --password secret-of-the-new")
        self.good("--op bind --mode account --user new --tid 1")
        self.good("--op bind --mode target --tid 1 -I ALL")
        self.refused_login("x", "old%secret-of-the-old@")
        self.good("--op new --mode target --tid 2 -T %sy" % IQN)
        self.refused("--op update --mode target --tid 2 -n state -v offline", "admits no initiator yet; bind addresses or names before")
        run([ISER, "info", "iscsi://new%%secret-of-the-new@127.0.0.1:%d/%sx/1" % (self.port, IQN)])

    def cinder(self, name, secret):
        """The file that Cinder's class TgtAdm writes for a volume."""
        with open(self.path("volumes/" + name), "w") as f:
            f.write("<target %s%s>\n    backing-store %s\n    driver iscsi\n    incominguser %s %s\n    write-cache on\n"
                    "    scsi_sn %s\n</target>\n" % (IQN, name, self.path(name + ".img"), name, secret, name))
        with open(self.path("targets.conf"), "w") as f:
            f.write("include %s/*\n" % self.path("volumes"))

    @need("tgt-admin")
    def test_cinder(self):
        """The calls of Cinder's class TgtAdm: create, ensure, extend and remove a volume that is attached, and the next volume."""
        if os.geteuid():
            self.skipTest("tgt-admin must be root")
        self.iserd()
        os.mkdir(self.path("volumes"))
        conf = ("-c", self.path("targets.conf"))
        self.cinder("a", "secret-of-a-0001")
        for _ in range(2):  # create_export, ensure_export
            self.good("--lld iscsi --op show --mode target")
            self.tgt_admin(*conf, "--update", IQN + "a")
            shown = self.tgt_admin("--show")
            self.assertIn("Target 1: %sa\n" % IQN, shown)
            self.assertIn("\n        LUN: 1\n", shown)
        self.bridge("a", "a%secret-of-a-0001@", "?reconnect=5")
        sparse(self.path("a.img"), 128 << 20)  # extend_target, while attached
        self.tgt_admin(*conf, "--update", IQN + "a", "-f")
        text = run([ISER, "info", "iscsi://a%%secret-of-a-0001@127.0.0.1:%d/%sa/1" % (self.port, IQN)]).text
        self.assertRegex(text, r"(?m)^bytes +%d$" % (128 << 20))
        self.refused_login("a")
        self.tgt_admin(*conf, "--delete", IQN + "a", "-f")  # remove_export
        self.assertNotIn(IQN, self.tgt_admin("--show"))
        os.remove(self.path("volumes/a"))
        self.cinder("b", "secret-of-b-0002")
        self.tgt_admin(*conf, "--update", IQN + "b")
        self.assertIn("Target 1: %sb\n" % IQN, self.tgt_admin("--show"))
        run([ISER, "info", "iscsi://b%%secret-of-b-0002@127.0.0.1:%d/%sb/1" % (self.port, IQN)])
        self.refused_login("b", "a%secret-of-a-0001@")

    def test_stat(self):
        self.iserd()
        self.good("--op new --mode target --tid 3 -T %sx" % IQN)
        self.good("--op new --mode lu --tid 3 --lun 1 -b %s" % self.path("a.img"))
        self.good("--op bind --mode target --tid 3 -I ALL")
        run([ISER, "copy", "iscsi://127.0.0.1:%d/%sx/1" % (self.port, IQN), self.path("copy")])
        head = "tgt lun sid rd_subm(bytes,cmds) rd_done(bytes,cmds) wr_subm(bytes,cmds) wr_done(bytes,cmds) errs"
        for line in ("target --tid 3", "logicalunit --tid 3 --lun 1", "sys"):
            lines = self.good("--op stat --mode " + line).splitlines()
            self.assertEqual((lines[0], len(lines)), (head, 2))
            self.assertRegex(lines[1], r"^  3   1   0 +\d+ +\d+( +\d+){7}$")
        self.bridge()
        sid, = re.findall(r"Session: (\d+)", self.good("--op show --mode conn --tid 3"))
        for mode in ("conn", "session"):
            lines = self.good("--op stat --mode %s --tid 3 --sid %s" % (mode, sid)).splitlines()
            self.assertRegex(lines[1], r"^ +%s +\d+ +[1-9]\d+ +[1-9]\d+ +- +- +\d+ +\d+$" % sid)
        self.refused("--op stat --mode conn --tid 3 --sid 60000", "can't find the session")

    def test_missing_session(self):
        """A session that never was is refused; one that ended with the last rule of its target counts as ended by the command."""
        self.iserd()
        self.good("--op new --mode target --tid 3 -T %sx" % IQN)
        self.refused("--op delete --mode conn --tid 3 --sid 1 --cid 0", "can't find the session")
        self.good("--op new --mode lu --tid 3 --lun 1 -b %s" % self.path("a.img"))
        self.good("--op bind --mode target --tid 3 -I ALL")
        self.refused("--op delete --mode conn --tid 3 --sid 1 --cid 0", "can't find the session")
        self.bridge()
        sid, = re.findall(r"Session: (\d+)", self.good("--op show --mode conn --tid 3"))
        self.good("--op unbind --mode target --tid 3 -I ALL")
        self.good("--op delete --mode conn --tid 3 --sid %s --cid 0" % sid)
        self.refused("--op delete --mode conn --tid 3 --sid 60000 --cid 0", "can't find the session")

    def test_two_at_once(self):
        """No change is lost if many commands run at the same time."""
        self.iserd()
        n = 12
        procs = [subprocess.Popen([self.path("bin/tgtadm"), "--op", "new", "--mode", "target", "--tid", str(i), "-T", IQN + str(i)],
                                  stderr=subprocess.PIPE, env={**os.environ, "ISER_TGTADM_SOCKET": self.ctl}) for i in range(1, n + 1)]
        for p in procs:
            _, err = p.communicate(timeout=patience(60))
            self.assertEqual((p.returncode, err), (0, b""))
        self.assertEqual(re.findall(r"(?m)^Target (\d+): \S+:(\d+)$", self.good("--op show --mode target")),
                         [(str(i), str(i)) for i in range(1, n + 1)])

    def test_command_line_without_file(self):
        """An iserd without a configuration file, whose target and unit others have made."""
        port = quiet_port()
        self.iserd("serve", "--io", io(), "--listen", "127.0.0.1:%d" % port, "--name", IQN + "serve", "--control", self.ctl,
                   self.path("a.img"))
        text = self.good("--op show --mode target")
        self.assertIn("Target 1: %sserve\n" % IQN, text)
        self.assertIn("        LUN: 0\n            Type: disk\n", text)
        self.assertIn("    ACL information:\n        ALL\n", text)
        self.good("--op new --mode target --tid 9 -T %sx" % IQN)
        self.good("--op new --mode lu --tid 9 --lun 4 -b %s" % self.path("a.img"))
        self.good("--op bind --mode target --tid 9 -I 127.0.0.1")
        run([ISER, "info", "iscsi://127.0.0.1:%d/%sx/4" % (port, IQN)])
        self.good("--op delete --mode target --tid 9")
        self.assertEqual(list(self.config()["backstores"]), ["lun0"])
        self.good("--op bind --mode target --tid 1 -I 127.0.0.1")
        self.good("--op unbind --mode target --tid 1 -I ALL")
        run([ISER, "info", "iscsi://127.0.0.1:%d/%sserve/0" % (port, IQN)])

    def test_one_account_in_both_directions(self):
        """Not even of two targets: an initiator of one could have it answer the challenge of the other (RFC 7143 9.2.1)."""
        self.iserd()
        for line in ("--op new --mode target --tid 1 --targetname IQNa", "--op new --mode target --tid 2 --targetname IQNb",
                     "--op new --mode account --user u --password secret-of-user-u", "--op new --mode account --user w --password secret-of-user-w",
                     "--op bind --mode account --user u --tid 1", "--op bind --mode account --user w --tid 1 --outgoing",
                     "--op bind --mode target --tid 1 -I ALL", "--op bind --mode target --tid 2 -I ALL"):
            self.good(line.replace("IQN", IQN))
        self.refused("--op bind --mode account --user w --tid 2", "has the secret of account w")
        self.refused("--op bind --mode account --user w", "has the secret of account w")

    def test_secrets(self):
        """Secrets are in files for iserd only, and nowhere else."""
        secret = "a-secret-in-a-pipe"
        with open(self.path("secret"), "w") as f:
            f.write(secret + "\n")
        self.iserd()
        with open(self.path("secret")) as f:
            self.good("--op new --mode account --user a --password -", stdin=f)
        self.good("--op new --mode account --user b", ISER_TGTADM_PASSWORD_FILE=self.path("secret"))
        self.refused("--op new --mode account --user c --password short", "has 5 bytes")
        folder = self.path("state/tgtadm-secrets")
        self.assertEqual(stat.S_IMODE(os.stat(folder).st_mode), 0o700)
        names = sorted(os.listdir(folder))
        self.assertEqual([n[:2] for n in names], ["a.", "b."])
        for n in names:
            self.assertEqual(stat.S_IMODE(os.stat(os.path.join(folder, n)).st_mode), 0o600)
        everything = self.good("--op show --mode account") + run([ISERCTL, "-s", self.ctl, "dump"]).text
        with open(self.path("log")) as f:
            everything += f.read()
        self.assertNotIn("secret-in", everything)
        self.good("--op delete --mode account --user a")
        self.assertEqual(os.listdir(folder), names[1:])
        # a secret on the command line is there only until the program has read it
        os.kill(self.pid, signal.SIGSTOP)
        p = subprocess.Popen([self.path("bin/tgtadm"), "--op", "new", "--mode", "account", "--user", "d", "--password", secret],
                             stderr=subprocess.DEVNULL, env={**os.environ, "ISER_TGTADM_SOCKET": self.ctl})
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)

        def is_hidden():
            with open("/proc/%d/cmdline" % p.pid) as f:
                return "---" in f.read()
        until(is_hidden, "the secret to go")
        with open("/proc/%d/cmdline" % p.pid) as f:
            self.assertNotIn("secret", f.read())
        os.kill(self.pid, signal.SIGCONT)
        self.assertEqual(p.wait(patience(20)), 0)

    def test_no_iserd(self):
        self.refused("--op show --mode target", "no iserd there; start iserd with --control", status=107)
        self.refused("-C 5 --op show --mode target", self.ctl + ".5: no iserd there", status=107)
        self.refused("--op show --mode target", "too long", status=107, ISER_TGTADM_SOCKET="/" + "x" * 200)
        code, _ = self.adm("--op", "new", "--mode", "target", "--tid", "1", "-T", "x" * 100000)
        self.assertEqual(code, 107)
        self.iserd()
        code, text = self.adm("--op", "new", "--mode", "target", "--tid", "1", "-T", "x" * 100000)
        self.assertEqual(code, 22)
        self.assertLess(len(text), 4096)
        self.refused("--op new --mode target --tid 1 -T name\x1b[31m", "invalid request")
        self.assertNotIn("\x1b", self.adm("--op", "new", "--mode", "target", "--tid", "1", "-T", "name\x1b[31m")[1])
        self.assertEqual(self.good("--op show --mode target"), "")


AGENTS = "/usr/lib/ocf/resource.d/heartbeat"


@unittest.skipUnless(os.path.exists(AGENTS + "/iSCSILogicalUnit"), "the OCF agents are not installed: install resource-agents")
class Pacemaker(Base):
    """The OCF agents iSCSITarget and iSCSILogicalUnit as they are, with the implementation tgt, as Pacemaker starts them."""

    def agent(self, kind, action, status=0, **parameters):
        env = {"PATH": self.path("bin") + ":" + os.environ["PATH"], "ISER_TGTADM_SOCKET": self.ctl, "OCF_ROOT": "/usr/lib/ocf",
               "OCF_RESOURCE_TYPE": kind, "OCF_RESOURCE_INSTANCE": "p_" + kind, "OCF_RESKEY_CRM_meta_timeout": "20000",
               "HA_RSCTMP": self.dir, "HA_LOGFACILITY": "none", "HA_debug": "0",
               "OCF_RESKEY_implementation": "tgt", **{"OCF_RESKEY_" + k: v for k, v in parameters.items()}}
        done = subprocess.run([AGENTS + "/" + kind, action], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=patience(60), env=env)
        self.assertEqual(done.returncode, status, "%s %s: %s" % (kind, action, done.stdout.decode()))

    def pair(self, account=()):
        """The parameters of a target and of its unit."""
        target = {"iqn": IQN + "x", "tid": "1", "allowed_initiators": "ALL",
                  **dict(zip(("incoming_username", "incoming_password"), account))}
        unit = {"target_iqn": IQN + "x", "lun": "1", "path": self.path("a.img"), "vendor_id": "ACME", "product_id": "Disk",
                "scsi_sn": "0a1b2c3d"}
        return ("iSCSITarget", target), ("iSCSILogicalUnit", unit)

    def both(self, action, pair, status=0):
        order = pair if action != "stop" else reversed(pair)
        for kind, parameters in order:
            self.agent(kind, action, status, **parameters)

    def test_start_and_stop(self):
        self.iserd()
        for account in ((), ("node", "secret-of-node-01"), ("node", "another-secret-02")):
            pair = self.pair(account)
            self.both("monitor", pair, status=7)  # not running
            for action in ("validate-all", "start", "monitor", "start", "monitor"):
                self.both(action, pair)
            text = run([ISER, "info", "iscsi://%s127.0.0.1:%d/%sx/1" % (
                "%s%%%s@" % account if account else "", self.port, IQN)]).text
            self.assertRegex(text, r"(?s)vendor +ACME\nproduct +Disk\n.*serial +0a1b2c3d\n")
            if account:
                self.refused_login("x")
            for _ in range(2):
                self.both("stop", pair)
            self.both("monitor", pair, status=7)
            c = self.config()
            self.assertEqual([c.get(k, {}) for k in ("targets", "backstores", "auth-groups")], [{}, {}, {}])
            if account:
                self.assertEqual(os.listdir(self.path("state/tgtadm-secrets")), [])

    def test_serial_number_of_a_resource(self):
        """The agent makes scsi_sn of the name of the resource, which other clusters have, too: the NAA identifier stays after a
        fail-over, and is another one at another target."""
        self.iserd()
        names = []
        for target in ("x", "x", "y"):
            pair = self.pair()
            pair[0][1]["iqn"] = pair[1][1]["target_iqn"] = IQN + target
            self.both("start", pair)
            names += [b["naa"] for b in self.config()["backstores"].values()]
            self.both("stop", pair)
        self.assertEqual((len(names), names[0]), (3, names[1]))
        self.assertNotEqual(names[1], names[2])

    def test_broken_off(self):
        """A start or stop that breaks off leaves no target that admits initiators without the account of the resource, and stop removes
        what is there."""
        self.iserd()
        short = self.pair(("node", "short"))
        good = self.pair(("node", "secret-of-node-01"))
        calls = {"new": "--op new --mode target --tid 1 -T %sx" % IQN, "rules": "--op bind --mode target --tid 1 -I ALL",
                 "account": "--op new --mode account --user node --password secret-of-node-01",
                 "bind": "--op bind --mode account --tid 1 --user node", "unbind": "--op unbind --mode account --tid 1 --user node"}
        unit = "--op new --mode logicalunit --tid 1 --lun 1 -b " + self.path("a.img")
        self.agent("iSCSITarget", "start", status=1, **short[0][1])
        self.good(unit)
        self.refused_login("x")
        self.agent("iSCSITarget", "stop", **short[0][1])
        self.assertEqual([self.config().get(k, {}) for k in ("targets", "auth-groups")], [{}, {}])
        for steps in ("new",), ("new", "rules"), ("new", "rules", "account"), ("new", "rules", "account", "bind", "unbind"):
            for step in steps:
                self.good(calls[step], OCF_RESKEY_incoming_username="node")
            self.good(unit)
            self.refused_login("x")
            self.agent("iSCSITarget", "stop", **good[0][1])
            self.assertEqual([self.config().get(k, {}) for k in ("targets", "auth-groups")], [{}, {}])

    def test_account_of_another_resource(self):
        """Two resources with one user: the second one does not start, and its stop leaves the first one its account."""
        self.iserd()
        one, two = self.pair(("node", "secret-of-node-01")), self.pair(("node", "secret-of-node-02"))
        two[0][1].update(iqn=IQN + "y", tid="2")
        self.both("start", one)
        self.agent("iSCSITarget", "start", status=1, **two[0][1])
        self.agent("iSCSITarget", "stop", **two[0][1])
        self.refused_login("x")
        run([ISER, "info", "iscsi://node%%secret-of-node-01@127.0.0.1:%d/%sx/1" % (self.port, IQN)])
        self.both("stop", one)
        self.assertEqual(self.config().get("auth-groups", {}), {})

    def test_stop_under_load(self):
        self.iserd()
        pair = self.pair(("node", "secret-of-node-01"))
        for action in ("start", "stop", "start"):
            self.both(action, pair)
        url = "iscsi://node%%secret-of-node-01@127.0.0.1:%d/%sx/1" % (self.port, IQN)
        bench = subprocess.Popen([ISER, "bench", "--time", "60", "--depth", "8", url], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        self.addCleanup(bench.wait)
        self.addCleanup(bench.kill)
        until(lambda: "Session" in self.good("--op show --mode conn --tid 1"), "the session of the load")
        self.both("stop", pair)
        self.both("monitor", pair, status=7)
        self.assertNotEqual(bench.wait(patience(20)), 0)


if __name__ == "__main__":
    main()
