#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""iserd killed at random moments under load, again and again: every write with
FUA that was answered is there afterwards, every registration with APTPL, and
nothing half done. POWER_CUTS=200 makes it 200 times."""
import os
import random
import shutil
import signal
import struct
import tempfile
import threading
import time
import unittest

from harness import Daemon, main
from test_reserve import APTPL, CHECK, GOOD, IGNORE, RELEASE, RESERVE, WE_RO, Initiator

WRITERS = 3
BLOCKS = 64  # of each writer
CUTS = int(os.environ.get("POWER_CUTS", "25"))


def block(writer, lba, number):
    return struct.pack(">III", writer, lba, number) * 42 + b"\0" * 8


class Writer(threading.Thread):
    """Writes its blocks over and over, until the power goes."""

    def __init__(self, daemon, n, known, seed):
        super().__init__()
        self.n, self.known, self.rng = n, known, random.Random(seed)
        self.base = 1000 * (n + 1)
        self.under_way = None  # (lba, number)
        self.wrong = None
        self.i = Initiator(daemon, "w%d" % n)

    def check(self):
        """What was answered is there; of what was under way all or nothing."""
        maybe = self.known.pop("maybe", None)
        for lba, number in list(self.known.items()):
            status, data = self.i.scsi(struct.pack(">BBIBHB", 0x28, 0, lba, 0, 1, 0),
                                       read=512)
            good = data == block(self.n, lba, number)
            if not good and maybe and maybe[0] == lba:
                good = data == block(self.n, lba, maybe[1])
                self.known[lba] = maybe[1]
            if status != GOOD or not good:
                raise AssertionError("LBA %d: status %02x, not write %d" % (
                    lba, status, number))
        if maybe and maybe[0] not in self.known:
            status, data = self.i.scsi(
                struct.pack(">BBIBHB", 0x28, 0, maybe[0], 0, 1, 0), read=512)
            assert data in (bytes(512), block(self.n, *maybe)), maybe
            if data != bytes(512):
                self.known[maybe[0]] = maybe[1]

    def run(self):
        try:
            while True:
                lba = self.base + self.rng.randrange(BLOCKS)
                number = self.rng.randrange(1 << 32)
                self.known["maybe"] = (lba, number)
                cdb = struct.pack(">BBIBHB", 0x2a, 8, lba, 0, 1, 0)
                status, _ = self.i.scsi(cdb, block(self.n, lba, number))
                if status != GOOD:
                    self.wrong = status
                    return
                self.known[lba] = number
                del self.known["maybe"]
        except (OSError, EOFError):
            pass  # the power is gone


class Registrant(threading.Thread):
    """Registers, reserves and releases, until the power goes."""

    def __init__(self, daemon, known, seed):
        super().__init__()
        self.known, self.rng = known, random.Random(seed)
        self.wrong = None
        self.i = Initiator(daemon, "r", 1)

    def check(self):
        state = (self.i.keys(), self.i.reservation())
        if state != self.known["now"] and state != self.known.get("maybe"):
            raise AssertionError("%r is there, not %r" % (state, self.known))
        self.known["now"] = state
        self.known.pop("maybe", None)

    def step(self):
        keys, held = self.known["now"]
        if not keys or self.rng.random() < .5:
            key = self.rng.randrange(1, 1 << 60)
            self.known["maybe"] = ([key], held and (held[0], key))
            return self.i.out(IGNORE, new=key, flags=APTPL)
        if held:
            self.known["maybe"] = (keys, None)
            return self.i.out(RELEASE, held[0], key=keys[0])
        self.known["maybe"] = (keys, (WE_RO, keys[0]))
        return self.i.out(RESERVE, WE_RO, key=keys[0])

    def run(self):
        try:
            while True:
                status = self.step()
                if status == CHECK:
                    continue
                if status != GOOD:
                    self.wrong = status
                    return
                self.known["now"] = self.known.pop("maybe")
        except (OSError, EOFError):
            pass


class PowerCuts(unittest.TestCase):
    def setUp(self):
        self.dir = os.path.abspath(tempfile.mkdtemp(dir="."))
        self.disks = [self.dir + "/data.img", self.dir + "/fence.img"]
        for disk in self.disks:
            with open(disk, "wb") as f:
                f.truncate(8 << 20)
        self.rng = random.Random(20261121)

    def tearDown(self):
        shutil.rmtree(self.dir)

    def daemon(self):
        return Daemon("--state", self.dir + "/state", "--workers", "3",
                      "--block-size", "512", *self.disks)

    def life(self, written, fence, last):
        """From one power-on to the next power cut."""
        d = self.daemon()
        work = [Writer(d, n, written[n], self.rng.random()) for n in range(WRITERS)]
        work.append(Registrant(d, fence, self.rng.random()))
        for w in work:
            w.check()
        if not last:
            for w in work:
                w.start()
            time.sleep(self.rng.random() * .08)
            d.proc.send_signal(signal.SIGKILL)
        else:
            d.proc.kill()
        d.proc.wait()
        d.proc.stdout.close()
        for w in work:
            if not last:
                w.join(20)
                self.assertFalse(w.is_alive())
            self.assertIsNone(w.wrong)
            w.i.close()

    def test_killed_at_random(self):
        written = [{} for _ in range(WRITERS)]
        fence = {"now": ([], None)}
        for cut in range(CUTS):
            self.life(written, fence, False)
        self.life(written, fence, True)
        print("#   %d cuts, %d blocks written" % (CUTS, sum(map(len, written))))
        self.assertGreater(sum(map(len, written)), 10)


if __name__ == "__main__":
    main()
