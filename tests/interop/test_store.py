#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Faults of backstores: a full disk, a file that is truncated, renamed or deleted, an
fsync that fails."""
import json
import os
import signal
import subprocess
import tempfile
import unittest

from fuse_disk import SETATTR, FuseDisk
from harness import (ISER, ISERCTL, Daemon, Wire, main, patience, run, sparse, until)
from rdma_wire import RdmaWire
from test_config import IQN, Config, Configured

DATA_PROTECT, MEDIUM_ERROR = 7, 3


def key_of(answer):
    """Returns status and sense key."""
    status, data = answer
    return status, data[4] & 15 if status else 0


def wires(daemon):
    """Yields a ready session over each kind of connection."""
    for make in (Wire, RdmaWire, lambda d: RdmaWire(d, "stream")):
        w = make(daemon)
        w.login()
        yield w.ready()
        w.close()


@unittest.skipUnless(os.geteuid() == 0, "needs root to mount a small tmpfs")
class FullDisk(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        if subprocess.call(["mount", "-t", "tmpfs", "-o", "size=2M", "none",
                            self.dir], stderr=subprocess.DEVNULL):
            os.rmdir(self.dir)
            self.skipTest("may not mount here")

    def tearDown(self):
        run(["umount", self.dir])
        os.rmdir(self.dir)

    def test_full(self):
        path = os.path.join(self.dir, "disk")
        sparse(path, 16 << 20)  # thin: only 2 MiB can be written
        with Daemon("--buffered", path) as d:
            for w in wires(d):
                failed, data = (0, 0), b"x" * 65536
                for lba in range(0, 16384, 256):
                    failed = key_of(w.write10(lba, data))
                    if failed[0]:
                        break
                self.assertEqual(failed, (2, DATA_PROTECT))
                # written data still exist, and the session continues
                self.assertEqual(w.read10(0, 1), (0, b"x" * 512))
            self.assertRegex(d.messages(), r"MEDIUM: backstore lun0, %s: .* no space "
                             "left" % path)


class Shrunk(unittest.TestCase):
    def test_shrunk(self):
        """Missing blocks cause an error; the other blocks do not."""
        with tempfile.NamedTemporaryFile(dir=".") as f:
            f.truncate(8 << 20)
            with Daemon("--buffered", os.path.abspath(f.name)) as d:
                for w in wires(d):
                    f.truncate(8 << 20)
                    self.assertEqual(w.read10(12000, 8)[0], 0)
                    f.truncate(4 << 20)
                    self.assertEqual(key_of(w.read10(12000, 8)),
                                     (2, MEDIUM_ERROR))
                    self.assertEqual(w.read10(0, 1)[0], 0)
                self.assertIn("the medium failed", d.messages())


GOOD = (0, None)
WRITE_ERROR = (2, (3, 0x0c, 0))
SYNCHRONIZE_CACHE = b"\x35" + bytes(15)


def end_of(answer):
    """Returns (status, (sense key, ASC, ASCQ))."""
    status, data = answer
    return status, (data[4] & 15, data[14], data[15]) if status else None


def flush(wire):
    return end_of(wire.ask(SYNCHRONIZE_CACHE))


class Controlled(unittest.TestCase):
    """A daemon with a control socket."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(dir=".")
        self.control = os.path.join(self.folder.name, "control")

    def tearDown(self):
        self.folder.cleanup()

    def lun(self, *method):
        """Returns the answer of iserctl about LUN 0."""
        done = run([ISERCTL, "-j", "-s", self.control,
                    *(method or ("luns",))])
        answer = json.loads(done.stdout)
        return answer if method else answer[0]


@unittest.skipUnless(os.geteuid() == 0 and os.path.exists("/dev/fuse"),
                     "needs root and /dev/fuse for a disk that hangs")
class HungStore(unittest.TestCase):
    def test_end(self):
        """SIGTERM ends iserd although the check of the file of a LUN hangs."""
        try:
            disk = FuseDisk(1 << 20, cached=0).__enter__()
        except OSError as e:
            self.skipTest("may not mount here: %s" % e)
        self.addCleanup(disk.__exit__)
        d = Daemon("--buffered", disk.path, "ram:1M")
        self.addCleanup(d.kill)
        self.addCleanup(setattr, disk, "hanging", False)
        disk.hanging = True
        until(lambda: disk.hung, "a check of the file")
        d.proc.send_signal(signal.SIGTERM)
        for text in ("%s: cannot end its check", "%s: not everything could be"):
            d.wait_for(text % disk.path)
        # Linux flushes the file when the last thread closes it. That may be the
        # main thread, which then becomes a zombie only after the flush.
        until(d.exiting, "the end of iserd")
        disk.hanging = False
        self.assertEqual(d.stop(), 1)


    def test_end_during_a_repair(self):
        """SIGTERM ends iserd while it repairs protection information at the start
        and the disk hangs."""
        try:
            disk = FuseDisk(1 << 20).__enter__()
        except OSError as e:
            self.skipTest("may not mount here: %s" % e)
        self.addCleanup(disk.__exit__)
        with tempfile.TemporaryDirectory() as folder:
            pi = os.path.join(folder, "pi")
            lun = "%s,pi=%s" % (disk.path, pi)
            d = Daemon("--buffered", "--protection", "1", lun)
            w = Wire(d)
            w.login()
            self.assertEqual(w.ready().write10(8, bytes(512))[0], 0)
            w.close()
            d.kill()
            disk.holding = 512 << 10
            d = Daemon("--buffered", "--protection", "1", lun, ready=False)
            self.addCleanup(d.kill)
            self.addCleanup(setattr, disk, "holding", None)
            d.wait_for("%s: its repair after an unclean end has taken" % pi)
            d.proc.send_signal(signal.SIGTERM)
            d.wait_for("Terminated during the start: ending at once")
            until(d.exiting, "the end of iserd")
            disk.holding = None
            self.assertEqual(d.stop(), 1)


@unittest.skipUnless(os.geteuid() == 0 and os.path.exists("/dev/fuse"),
                     "needs root and /dev/fuse for a disk that hangs")
class RemovedUnit(Config):
    OTHER = "portal-groups: {p: {listen: 127.0.0.1:0}}\n"
    ONE = OTHER + "backstores: {b: {store: %s}}\n" \
        "targets: {%sone: {portal-groups: p, auth-group: any, luns: {0: b}}}\n"

    def test_resize(self):
        """A change of the configuration removes a unit whose resize waits for the file."""
        try:
            disk = FuseDisk(1 << 20, cached=0).__enter__()
        except OSError as e:
            self.skipTest("may not mount here: %s" % e)
        self.addCleanup(disk.__exit__)
        self.start(self.ONE % (disk.path, IQN), 1)
        self.addCleanup(disk.answer)
        disk.postponed = (SETATTR,)
        ctl = subprocess.Popen([ISERCTL, "-s", self.ctl, "resize", "b", "size=2M"],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        until(lambda: disk.hung, "the request for the file")
        self.iserctl("apply", self.write(self.OTHER))
        until(lambda: json.loads(self.iserctl("--json", "luns")) == [], "the removal")
        disk.answer()
        text = ctl.communicate(timeout=patience(20))[0].decode()
        self.assertEqual(ctl.returncode, 1, text)
        self.assertIn("backstore b: was removed by a change of the configuration", text)


@unittest.skipUnless(os.geteuid() == 0 and os.path.exists("/dev/fuse"),
                     "needs root and /dev/fuse for a disk that fails")
class FailedFlush(Controlled):
    def setUp(self):
        super().setUp()
        try:
            self.disk = FuseDisk(1 << 20).__enter__()
        except OSError as e:
            self.folder.cleanup()
            self.skipTest("may not mount here: %s" % e)

    def tearDown(self):
        self.disk.__exit__()
        super().tearDown()

    def session(self, d, n):
        w = Wire(d)
        w.ISID = Wire.ISID[:5] + bytes([n])
        w.login()
        self.addCleanup(w.close)
        return w.ready()

    def test_every_session_that_wrote(self):
        """One session gets the report of the kernel; the other must not get GOOD."""
        with Daemon("--control", self.control, self.disk.path) as d:
            a, b, reader = (self.session(d, n) for n in (1, 2, 3))
            self.assertEqual(end_of(a.write10(0, b"a" * 512)), GOOD)
            self.disk.failing = 1
            self.assertEqual(flush(b), WRITE_ERROR)
            self.assertEqual(flush(reader), GOOD)
            self.assertTrue(self.lun()["flush_failed"])
            for _ in range(6):  # Linux repeats the command so often, at once
                self.assertEqual(flush(a), WRITE_ERROR)
            until(lambda: flush(a) == GOOD, "an end of the repetitions")
            d.wait_for("backstore lun0, %s: a flush failed" % self.disk.path)
            self.assertTrue(self.lun()["flush_failed"])
            self.assertEqual(end_of(a.write10(0, b"a" * 512)), GOOD)
            self.assertTrue(self.lun()["flush_failed"])
            self.assertEqual(flush(a), GOOD)
            self.assertFalse(self.lun()["flush_failed"])
            for w in a, b, reader:
                w.close()

    def test_fua(self):
        """A write with FUA fails for an initiator that wrote without FUA before."""
        d = Daemon("--buffered", self.disk.path)
        self.addCleanup(d.stop)
        a, b = self.session(d, 1), self.session(d, 2)
        self.assertEqual(end_of(a.write10(0, b"a" * 512)), GOOD)
        fua = b"\x2a\x08" + bytes(6) + b"\1" + bytes(7)
        self.disk.failing = 1
        self.assertEqual(end_of(b.ask(fua, data=b"b" * 512)), WRITE_ERROR)
        self.assertEqual(end_of(a.ask(fua, data=b"b" * 512)), WRITE_ERROR)
        a.close()
        b.close()
        self.assertEqual(d.stop(), 1)
        self.assertIn("backstore lun0, %s: a flush failed: data that were written before it may be lost" % self.disk.path, d.messages())

    def test_cleared(self):
        with Daemon("--control", self.control, self.disk.path) as d:
            a = self.session(d, 1)
            self.disk.failing = 1
            self.assertEqual(flush(a), WRITE_ERROR)
            self.assertFalse(self.lun("clear", "lun0")["flush_failed"])
            a.close()

    def test_at_the_end(self):
        """The flush at the end of iserd."""
        d = Daemon(self.disk.path)
        self.addCleanup(d.stop)
        self.disk.failing = 1
        self.assertEqual(d.stop(), 1)
        self.assertIn("not everything could be flushed", d.messages())


class Lost(Controlled):
    """Files that were replaced, renamed, deleted or truncated, one LUN each."""

    def test_lost(self):
        names = "deleted", "renamed", "replaced", "cut", "sound"
        paths = [os.path.join(os.path.abspath(self.folder.name), n)
                 for n in names]
        deleted, renamed, replaced, cut, _ = paths
        for path in paths + [replaced + ".new"]:
            sparse(path, 1 << 20)
        with Daemon("--control", self.control, *paths) as d:
            os.unlink(deleted)
            os.rename(renamed, renamed + ".old")
            os.rename(replaced + ".new", replaced)
            os.truncate(cut, 4096)
            words = "was deleted", "was renamed", "another file", "is shorter"
            for lun, (path, word) in enumerate(zip(paths, words)):
                d.wait_for("MEDIUM: backstore lun%u, %s: " % (lun, path))
                self.assertIn(word, self.lun("luns")[lun]["trouble"])
            self.assertNotIn("trouble", self.lun("luns")[4])
            os.rename(renamed + ".old", renamed)
            os.truncate(cut, 1 << 20)
            until(lambda: not any("trouble" in self.lun("luns")[n]
                                  for n in (1, 3)), "an end of the trouble")
            self.assertEqual(d.messages().count("MEDIUM: backstore lun0,"), 1)


ATTENTION = (2, (6, 0x2a, 9))  # CAPACITY DATA HAS CHANGED


class Resized(Controlled):
    def setUp(self):
        super().setUp()
        self.path = os.path.join(os.path.abspath(self.folder.name), "disk")
        sparse(self.path, 1 << 20)

    def refused(self, *method):
        done = run([ISERCTL, "-s", self.control, *method], check=False)
        self.assertEqual(done.returncode, 1)
        return done.text

    def resize(self, wire, size):
        """Resizes by iserctl; without a size, another program resizes the file."""
        args = ("size=%d" % size,)
        if size < os.path.getsize(self.path):
            self.assertIn("force=yes", self.refused("resize", "lun0", *args))
            args += ("force=yes",)
        self.assertEqual(self.lun("resize", "lun0", *args)["size"], size)
        self.check_capacity(wire, size)

    def check_capacity(self, wire, size):
        self.assertEqual(end_of(wire.ask(bytes(16))), ATTENTION)
        capacity = wire.ask(b"\x25" + bytes(15), edtl=8)[1]
        last = int.from_bytes(capacity[:4], "big")
        self.assertEqual(last, size // 512 - 1)
        self.assertEqual(end_of(wire.write10(last, b"z" * 512)), GOOD)
        self.assertEqual(end_of(wire.read10(last, 2))[1], (5, 0x21, 0))

    def check(self, *options):
        with Daemon("--control", self.control, "--block-size", "512", *options,
                    self.path) as d:
            w = Wire(d)
            w.login()
            w.ready()
            for size in 4 << 20, 2 << 20, 2 << 20 | 512, 3 << 20:
                self.resize(w, size)
            os.truncate(self.path, 5 << 20)
            self.lun("resize", "lun0")
            self.check_capacity(w, 5 << 20)
            self.assertIn("block size", self.refused("resize", "lun0",
                                                     "size=%d" % ((9 << 20) + 1)))
            self.assertIn("size=large: not a size", self.refused("resize", "lun0",
                                                     "size=large"))
            w.close()

    def test_file(self):
        self.check()

    def test_protected(self):
        self.check("--protection", "1")

    def test_memory(self):
        with Daemon("--control", self.control, "ram:1M"):
            self.assertIn("cannot be resized",
                          self.refused("resize", "lun0", "size=2M"))


class ResizedMeanwhile(Config):
    """A unit gets another size while iser reads it: what was read is not all of it."""
    SIZE = 2 << 20
    TEXT = "portal-groups: {p: {listen: 127.0.0.1:0}}\nbackstores: {b: {store: %s, max-bandwidth: \"1M:64K\"}}\n" \
        "targets: {%sone: {portal-groups: p, auth-group: any, luns: {0: b}}}\n"

    def bytes_read(self):
        return json.loads(self.iserctl("-j", "stats"))["luns"][0]["read"]["bytes"]

    def check(self, command, size, message, *force):
        with open(self.path("disk"), "wb") as f:
            f.write(b"x" * self.SIZE)
        with Configured(self.write(self.TEXT % (self.path("disk"), IQN)), 1) as d:
            with subprocess.Popen([ISER, *command(d.url)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
                until(lambda: self.bytes_read() > 0, "the first READ")
                self.iserctl("resize", "b", "size=%d" % size, *force)
                self.iserctl("backstore", "set", "b", "max-bandwidth=1G")
                out, err = p.communicate(timeout=patience(60))
            self.assertEqual((p.returncode, out), (1, ""), err)
            self.assertRegex(err, message)

    def commands(self):
        return (lambda url: ["hash", url]), (lambda url: ["copy", "-q", url, self.path("copy")])

    def test_larger(self):
        for command in self.commands():
            self.check(command, 3 << 20, "became larger while it was read: 3145728 bytes where 2097152 were; read it again")

    def test_smaller(self):
        """The READs in progress fail, or the attention comes first."""
        for command in self.commands():
            self.check(command, 1 << 20, "block address out of range|the unit has 2048 blocks of 512 bytes, not 4096 of 512",
                       "force=yes")


if __name__ == "__main__":
    main()
