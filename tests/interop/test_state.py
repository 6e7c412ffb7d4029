#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a unit keeps over the life of iserd, with --state: saved mode pages,
identifying information, a SANITIZE or FORMAT UNIT that it was killed in; and files
that are damaged."""
import os
import struct
import signal
import time

from harness import Daemon, Lives, main, patience, refused
from test_alua import Path
from test_reserve import CHECK, GOOD

NOT_READY = 2
SWP, SP, PF = 8, 1, 0x10
CURRENT, DEFAULT, SAVED = 0, 2, 3
ILLEGAL = 5


class Unit(Path):
    def control(self, pc=CURRENT):
        """The control mode page, or None."""
        status, data = self.scsi([0x1a, 8, pc << 6 | 0x0a, 0, 255], read=255)
        return data[4:] if status == GOOD else None

    def protect(self, on, flags=0):
        page = bytes([0x0a, 10, 2, 0x10, SWP if on else 0, 0, 0, 0, 0xff, 0xff, 0, 0])
        return self.scsi([0x15, PF | flags, 0, 0, 16], bytes(4) + page)[0]

    def name(self, text=None, kind=0):
        if text is None:
            status, data = self.scsi(struct.pack(">BB4xIB", 0xa3, 5, 1024, kind << 1), read=1024)
            assert status == GOOD, self.sense
            return data[4:]
        return self.scsi(struct.pack(">BB4xIB", 0xa4, 6, len(text), kind << 1), text)[0]


class Kept(Lives):
    def test_saved_mode_pages(self):
        d = self.start()
        a = Unit(d)
        self.assertEqual(a.control()[0], 0x8a)  # PS
        self.assertEqual(a.protect(True, SP), GOOD)
        self.assertEqual(a.protect(False), GOOD)
        d.die()
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
        d.die()
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

    def test_damage_is_told(self):
        with self.start() as d:
            a = Unit(d)
            self.assertEqual(a.protect(True, SP), GOOD)
            a.close()
        [name] = self.files()
        self.assertTrue(name.endswith(".unit"))
        with open(name, "rb") as f:
            good = f.read()
        for bad, why in ((good[:20], "cut off"), (b"", "cut off"),
                         (good[:-1] + b"\x55", "checksum"), (b"x" * 100, "no sense"),
                         (good[:8] + b"\0" + good[9:], "checksum")):
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


class Erased(Lives):
    """SBC-3 §4.11.2: what a power loss cuts off goes on."""
    RATE = ("--sanitize-rate", "16M")

    def progress(self, unit):
        """Of 65536, or None when it is over."""
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
        end = time.monotonic() + patience(30)
        while self.progress(unit) is not None:
            self.assertLess(time.monotonic(), end)
            time.sleep(.05)

    def expect(self, byte):
        with open(self.disk, "rb") as f:
            self.assertEqual(f.read(), bytes([byte]) * (16 << 20))

    def life(self, how, last):
        """Until it is a bit further; returns how far."""
        d = self.start(*self.RATE)
        a = Unit(d, "a")
        began = self.progress(a)
        self.assertIsNotNone(began)
        self.assertGreaterEqual(began, last)
        self.assertEqual(a.write(), CHECK)
        self.assertEqual(a.sense, (NOT_READY, 0x400 | self.ascq))
        while self.progress(a) < began + 6000:
            time.sleep(.02)
        d.die(how)
        return began

    def test_overwrite_goes_on(self):
        d = self.start(*self.RATE)
        self.assertEqual(self.overwrite(Unit(d), 2, b"\x3c"), GOOD)
        d.die()
        last = -1
        for how in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
            now = self.life(how, last)
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
        with self.start() as d:  # once over it is over
            a = Unit(d, "a")
            self.assertIsNone(self.progress(a))
            a.close()

    def test_format_goes_on(self):
        with open(self.disk, "r+b") as f:
            f.write(b"\xff" * (16 << 20))
        d = self.start()
        a = Unit(d)
        a.command(struct.pack(">BB14x", 4, 0x10), 0xA0, 4, b"\0\2\0\0")
        d.die()  # before it began, or meanwhile, or behind it
        with self.start() as d:
            a, self.ascq = Unit(d, "a"), 4
            self.wait(a)
            a.close()
        with open(self.disk, "rb") as f:
            self.assertIn(set(f.read()), ({0}, {255}))


if __name__ == "__main__":
    main()
