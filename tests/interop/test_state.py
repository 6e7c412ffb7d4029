#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The persisted state of a unit with --state: saved mode pages, identifying
information, a SANITIZE or FORMAT UNIT that a kill interrupted; damaged files."""
import os
import pwd
import struct
import signal
import unittest

from harness import Daemon, Restarts, main, refused, until
from test_alua import Path
from test_reserve import CHECK, GOOD, other

NOT_READY = 2
SWP, SP, PF = 8, 1, 0x10
CURRENT, DEFAULT, SAVED = 0, 2, 3
ILLEGAL = 5


class Unit(Path):
    def control(self, pc=CURRENT):
        """Returns the control mode page, or None."""
        status, data = self.scsi([0x1a, 8, pc << 6 | 0x0a, 0, 255], read=255)
        return data[4:] if status == GOOD else None

    def protect(self, on, flags=0):
        page = bytes([0x0a, 10, 2, 0x10, SWP if on else 0, 0x40, 0, 0, 0xff, 0xff, 0, 0])
        return self.scsi([0x15, PF | flags, 0, 0, 16], bytes(4) + page)[0]

    def name(self, text=None, kind=0):
        if text is None:
            status, data = self.scsi(struct.pack(">BB4xIB", 0xa3, 5, 1024, kind << 1), read=1024)
            assert status == GOOD, self.sense
            return data[4:]
        return self.scsi(struct.pack(">BB4xIB", 0xa4, 6, len(text), kind << 1), text)[0]


class Directory(Restarts):
    """--state: the permissions of the directory, and links placed by an attacker."""

    def test_planted_link(self):
        with self.start() as d:
            a = Unit(d)
            self.assertEqual(a.protect(True, SP), GOOD)
            a.close()
        kept, = self.files()
        new = kept.rsplit(".", 1)[0] + ".new"
        victim = self.path("victim")
        with open(victim, "w") as f:
            f.write("of another owner")
        os.symlink(victim, new)
        with self.start() as d:
            a = Unit(d, "a")
            self.assertEqual(a.control(SAVED)[4] & SWP, SWP)
            self.assertEqual(a.protect(False, SP), GOOD)
            a.close()
        with open(victim) as f:
            self.assertEqual(f.read(), "of another owner")
        os.rename(victim, new)  # the remains of an interrupted write
        with self.start() as d:
            a = Unit(d, "a")
            self.assertEqual(a.protect(True, SP), GOOD)
            a.close()
        kept, = self.files()
        os.rename(kept, victim)
        os.symlink(victim, kept)
        self.assertIn("symbolic link", refused(*self.args))

    def test_others_may_write(self):
        os.mkdir(self.state)
        for mode in (0o770, 0o702, 0o1777):
            os.chmod(self.state, mode)
            self.assertIn("others may write there", refused(*self.args))

    @unittest.skipUnless(os.geteuid() == 0, "needs root to become another user")
    def test_user(self):
        """A new directory belongs to the user that iserd switches to."""
        self.args = ["--user", "nobody"] + self.args
        with self.start() as d:
            a = Unit(d)
            self.assertEqual(a.protect(True, SP), GOOD)
            a.close()
        self.assertEqual(os.stat(self.state).st_uid, pwd.getpwnam("nobody").pw_uid)
        with self.start() as d:
            a = Unit(d, "a")
            self.assertEqual(a.control(SAVED)[4] & SWP, SWP)
            self.assertEqual(a.protect(False, SP), GOOD)
            a.close()
        os.chown(self.state, 54321, -1)
        self.assertIn("belongs to another user", refused(*self.args))


class Persisted(Restarts):
    def test_saved_mode_pages(self):
        d = self.start()
        a = Unit(d)
        self.assertEqual(a.control()[0], 0x8a)  # PS
        self.assertEqual(a.protect(True, SP), GOOD)
        self.assertEqual(a.protect(False), GOOD)
        d.kill()
        with self.start() as d:
            a = Unit(d, "a")
            for pc, want in ((CURRENT, SWP), (SAVED, SWP), (DEFAULT, 0)):
                self.assertEqual(a.control(pc)[4] & SWP, want)
            self.assertEqual(a.write(), CHECK)
            self.assertEqual(a.sense, (7, 0x2702))
            self.assertEqual(a.protect(False, SP), GOOD)
            self.assertEqual(a.write(), GOOD)
            self.assertEqual(self.files(), [])
            a.close()

    def test_identifying_information(self):
        d = self.start()
        a = Unit(d)
        self.assertEqual(a.name(b"\x01\x02" * 256), GOOD)
        self.assertEqual(a.name(b"till 3\0", 2), GOOD)
        d.kill()
        with self.start() as d:
            a = Unit(d, "a")
            self.assertEqual(a.name(), b"\x01\x02" * 256)
            self.assertEqual(a.name(kind=2), b"till 3\0")
            a.close()

    def test_memory_keeps_nothing(self):
        with Daemon("--state", self.state, "ram:8M") as d:
            a = Unit(d)
            self.assertEqual(a.control()[0], 0x0a)
            self.assertIsNone(a.control(SAVED))
            self.assertEqual(a.sense, (ILLEGAL, 0x3900))
            self.assertEqual(a.protect(True, SP), CHECK)
            self.assertEqual(a.sense, (ILLEGAL, 0x2400))
            self.assertEqual(a.name(b"x"), CHECK)
            a.close()

    def test_damage_is_reported(self):
        with self.start() as d:
            a = Unit(d)
            self.assertEqual(a.protect(True, SP), GOOD)
            a.close()
        [name] = self.files()
        self.assertTrue(name.endswith(".unit"))
        with open(name, "rb") as f:
            good = f.read()
        for bad, why in ((good[:20], "cut off"), (b"", "cut off"),
                         (good[:-1] + other(good[-1]), "checksum"), (b"x" * 100, "not valid"),
                         (good[:8] + other(good[8]) + good[9:], "checksum")):
            with open(name, "wb") as f:
                f.write(bad)
            text = refused(*self.args)
            self.assertIn(name, text)
            self.assertIn(why, text)
            self.assertIn("remove it", text)
        os.unlink(name)
        with self.start() as d:
            a = Unit(d, "a")
            self.assertEqual(a.control()[4] & SWP, 0)
            a.close()


class Erased(Restarts):
    """SBC-3 §4.11.2: an erasure continues after a power failure."""
    RATE = ("--sanitize-rate", "16M")

    def progress(self, unit):
        """Returns the progress of 65536, or None at the end."""
        status, data = unit.scsi([3, 0, 0, 0, 18], read=18)
        self.assertEqual(status, GOOD)
        if data[2] & 15 == 0:
            return None
        self.assertEqual((data[2] & 15, data[12]), (NOT_READY, 4))
        self.assertEqual(data[13], self.ascq)
        return struct.unpack(">H", data[16:18])[0]

    def overwrite(self, unit, passes, pattern):
        self.ascq = 0x1b
        data = struct.pack(">BBH", passes, 0, len(pattern)) + pattern
        return unit.scsi(struct.pack(">BB5xH", 0x48, 0x81, len(data)), data)[0]

    def wait(self, unit):
        until(lambda: self.progress(unit) is None, "the end of the erasure", 30)

    def expect(self, byte):
        with open(self.disk, "rb") as f:
            self.assertEqual(f.read(), bytes([byte]) * (16 << 20))

    def run_once(self, how, last):
        """Runs iserd until the erasure has advanced; returns the progress."""
        d = self.start(*self.RATE)
        a = Unit(d, "a")
        began = self.progress(a)
        self.assertIsNotNone(began)
        self.assertGreaterEqual(began, last)
        self.assertEqual(a.write(), CHECK)
        self.assertEqual(a.sense, (NOT_READY, 0x400 | self.ascq))
        until(lambda: self.progress(a) >= began + 6000, "progress of the erasure", 30)
        d.kill(how)
        return began

    def test_overwrite_goes_on(self):
        d = self.start(*self.RATE)
        self.assertEqual(self.overwrite(Unit(d), 2, b"\x3c"), GOOD)
        d.kill()
        last = -1
        for how in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
            now = self.run_once(how, last)
            self.assertGreater(now, last)
            last = now
        with self.start() as d:
            a = Unit(d, "a")
            self.wait(a)
            self.assertEqual(a.write(), GOOD)
            self.assertEqual(a.scsi([0x35])[0], GOOD)
            self.assertEqual(self.files(), [])
            a.close()
        with open(self.disk, "r+b") as f:
            self.assertEqual(f.read(512), bytes(512))
            f.seek(0)
            f.write(b"\x3c" * 512)
        self.expect(0x3c)
        with self.start() as d:  # a completed erasure does not restart
            a = Unit(d, "a")
            self.assertIsNone(self.progress(a))
            a.close()

    def test_format_goes_on(self):
        with open(self.disk, "r+b") as f:
            f.write(b"\xff" * (16 << 20))
        d = self.start()
        a = Unit(d)
        a.command(struct.pack(">BB14x", 4, 0x10), 0xA0, 4, b"\0\2\0\0")
        d.kill()  # before, during or after the erasure
        with self.start() as d:
            a, self.ascq = Unit(d, "a"), 4
            self.wait(a)
            a.close()
        with open(self.disk, "rb") as f:
            self.assertIn(set(f.read()), ({0}, {255}))


if __name__ == "__main__":
    main()
