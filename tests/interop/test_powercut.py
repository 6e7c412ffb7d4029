#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""iserd is killed at random moments under load, repeatedly, with connections over TCP
and iSER. Every completed write with FUA, every write completed before a completed flush,
every registration and reservation with APTPL, every saved mode page and all identifying
information must survive; nothing may be partial. POWER_CUTS=200 kills 200 times."""
import os
import random
import struct
import threading
import time

from harness import Daemon, Folder, main, sparse
from rdma_wire import RdmaWire
from test_reserve import APTPL, CHECK, GOOD, IGNORE, RELEASE, RESERVE, WE_RO, Initiator

WAYS = ("tcp", "tcp", "rdma", "stream")  # of each writer
BLOCKS = 64                              # of each writer
MOST = 8                                 # of a write
CUTS = int(os.environ.get("POWER_CUTS", "12"))


def block(writer, lba, number):
    """Returns the contents of a block; number 0 means never written."""
    return (struct.pack(">III", writer, lba, number) * 43)[:512] if number else bytes(512)


class OverIser(RdmaWire):
    """An Initiator over iSER."""

    def __init__(self, daemon, name, start):
        super().__init__(daemon, start)
        self.KEYS = ("InitiatorName=iqn.2026-01.org.example:" + name,) + RdmaWire.KEYS[1:]
        self.login()
        self.ready()

    def scsi(self, cdb, data=b"", read=0):
        return self.ask(bytes(cdb).ljust(16, b"\0"), read, data)


class Writer(threading.Thread):
    """Writes its blocks repeatedly until iserd is killed. may_be: the numbers that
    each block may have; the first one is persisted."""

    def __init__(self, daemon, n, may_be, seed):
        super().__init__()
        self.n, self.may_be, self.rng = n, may_be, random.Random(seed)
        self.base = 1000 * (n + 1)
        self.now = {}
        self.wrong = None
        self.answered = {"fua": 0, "flush": 0, "swap": 0, "cached": 0}
        name = "w%d" % n
        self.i = (Initiator(daemon, name) if WAYS[n] == "tcp" else
                  OverIser(daemon, name, WAYS[n]))

    def check(self):
        """Checks: persisted blocks exist; writes in progress are complete or absent."""
        status, data = self.i.scsi(
            struct.pack(">BBIBHB", 0x28, 0, self.base, 0, BLOCKS, 0), read=512 * BLOCKS)
        assert status == GOOD, status
        for i in range(BLOCKS):
            lba = self.base + i
            there = [x for x in self.may_be.get(lba, [0])
                     if data[512 * i:512 * i + 512] == block(self.n, lba, x)]
            if not there:
                raise AssertionError("writer %d, LBA %d: %s..., which is none of %s" % (
                    self.n, lba, data[512 * i:512 * i + 16].hex(), self.may_be.get(lba)))
            self.may_be[lba] = there[:1]
            self.now[lba] = there[0]

    def blocks(self, lba, count, number):
        return b"".join(block(self.n, lba + i, number) for i in range(count))

    def command(self, what, lba, count, number):
        if what == "flush":
            return self.i.scsi(struct.pack(">BBIBHB", 0x35, 0, 0, 0, 0, 0))
        if what == "swap":  # COMPARE AND WRITE with FUA
            return self.i.scsi(struct.pack(">BBQxxxB", 0x89, 8, lba, 1),
                               block(self.n, lba, self.now[lba]) +
                               block(self.n, lba, number))
        return self.i.scsi(struct.pack(">BBIBHB", 0x2a, 8 if what == "fua" else 0,
                                       lba, 0, count, 0), self.blocks(lba, count, number))

    def step(self):
        what = self.rng.choice(("fua", "fua", "swap", "cached", "cached", "flush"))
        count = 1 if what == "swap" else self.rng.randrange(1, MOST + 1)
        lba = self.base + self.rng.randrange(BLOCKS - count + 1)
        number = self.rng.randrange(1, 1 << 32)
        touched = range(lba, lba + count) if what != "flush" else ()
        for b in touched:
            self.may_be[b].append(number)
        status, _ = self.command(what, lba, count, number)
        if status != GOOD:
            self.wrong = what, status
            return False
        self.answered[what] += 1
        for b in touched:
            self.now[b] = number
            if what != "cached":
                self.may_be[b] = [number]
        if what == "flush":
            self.may_be.update((b, [x]) for b, x in self.now.items())
        return True

    def run(self):
        try:
            while self.step():
                pass
        except (OSError, EOFError):
            pass  # iserd was killed


class Registrant(threading.Thread):
    """Registers, reserves and releases until iserd is killed."""

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


class Saver(threading.Thread):
    """Saves a mode page and a name until iserd is killed. known: the possible values
    of each; the first one is persisted."""

    SOFT = 0x1c, 2  # Logical Block Provisioning: any 32 bits as its threshold

    def __init__(self, daemon, known, seed):
        super().__init__()
        self.known, self.rng = known, random.Random(seed)
        self.wrong = None
        self.answered = {"saved": 0, "named": 0}
        self.i = Initiator(daemon, "s", 2)

    def page(self, pc):
        status, data = self.i.scsi([0x1a, 8, pc << 6 | self.SOFT[0], self.SOFT[1], 255],
                                   read=255)
        assert status == GOOD, status
        return struct.unpack(">I", data[4 + 20:4 + 24])[0]

    def name(self):
        status, data = self.i.scsi(struct.pack(">BB4xIB", 0xa3, 5, 600, 0), read=600)
        assert status == GOOD, status
        return data[4:]

    def check(self):
        for what, now in (("page", self.page(3)), ("name", self.name())):
            if now not in self.known[what]:
                raise AssertionError("%s: %r is there, not %r" % (what, now, self.known[what]))
            self.known[what] = [now]
        assert self.page(0) == self.known["page"][0]  # the current values equal the saved ones

    def step(self):
        if self.rng.random() < .5:
            value, what, count = self.rng.randrange(1 << 32), "page", "saved"
            page = bytes([0x5c, 2, 0, 20]) + bytes(13) + b"\1" + bytes(2)
            data = bytes(4) + page + struct.pack(">I", value)
            cdb = [0x15, 0x11, 0, 0, len(data)]
        else:
            value, what, count = self.rng.randbytes(self.rng.randrange(1, 512)), "name", "named"
            data, cdb = value, struct.pack(">BB4xIB", 0xa4, 6, len(value), 0)
        self.known[what].append(value)
        status = self.i.scsi(cdb, data)[0]
        if status == GOOD:
            self.known[what] = [value]
            self.answered[count] += 1
        return status

    def run(self):
        try:
            while True:
                status = self.step()
                if status not in (GOOD, CHECK):
                    self.wrong = status
                    return
        except (OSError, EOFError):
            pass


class PowerCuts(Folder):
    def setUp(self):
        super().setUp()
        self.disks = [sparse(self.path(n + ".img"), 8 << 20) for n in ("data", "fence", "kept")]
        self.rng = random.Random(20261121)
        self.answered = {}

    def daemon(self):
        return Daemon("--state", self.dir + "/state", "--workers", "3",
                      "--block-size", "512", *self.disks)

    def run_once(self, written, fence, kept, last):
        """One run of iserd, from its start to the kill."""
        d = self.daemon()
        work = [Writer(d, n, written[n], self.rng.random()) for n in range(len(WAYS))]
        work.append(Saver(d, kept, self.rng.random()))
        work.append(Registrant(d, fence, self.rng.random()))
        for w in work:
            w.check()
        if not last:
            for w in work:
                w.start()
            time.sleep(self.rng.random() * .3)
        d.kill()
        for w in work:
            if not last:
                w.join(20)
                self.assertFalse(w.is_alive())
            self.assertIsNone(w.wrong)
            w.i.close()
        for w in work[:-1]:
            self.answered.update((k, self.answered.get(k, 0) + v)
                                 for k, v in w.answered.items())

    def test_killed_at_random(self):
        written = [{} for _ in range(len(WAYS))]
        fence = {"now": ([], None)}
        kept = {"page": [0], "name": [b""]}
        for cut in range(CUTS):
            self.run_once(written, fence, kept, False)
        self.run_once(written, fence, kept, True)
        print("#   %d cuts, answered: %s" % (CUTS, self.answered))
        for what, count in self.answered.items():
            self.assertGreater(count, CUTS, what)


if __name__ == "__main__":
    main()
