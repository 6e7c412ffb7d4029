#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Persistent reservations across restarts of iserd and on several workers; damaged
state files."""
import json
import os
import random
import struct
import subprocess
import tempfile
import unittest

from harness import ISERCTL, Daemon, Restarts, Wire, main, refused, run

REGISTER, RESERVE, RELEASE, CLEAR, PREEMPT = range(5)
IGNORE = 6
REPLACE_LOST = 8
APTPL = 1
WE, EA, WE_RO, EA_RO, WE_AR, EA_AR = 1, 3, 5, 6, 7, 8
GOOD, CHECK, CONFLICT = 0, 2, 0x18


def other(byte):
    """Another octet than this: a damaged one."""
    return bytes([byte ^ 0x55])


class Initiator(Wire):
    """One of several initiators, each with its own name."""

    def __init__(self, daemon, name="a", lun=0):
        super().__init__(daemon)
        self.lun = struct.pack(">Q", lun << 48)
        self.KEYS = ("InitiatorName=iqn.2026-01.org.example:" + name,
                     ) + Wire.KEYS[1:]
        self.login()
        for _ in range(8):  # unit attentions from before the login
            if self.ready() != CHECK:
                break

    def pdu(self, *args, **kw):
        return super().pdu(*args, lun=self.lun, **kw)

    def scsi(self, cdb, data=b"", read=0):
        """Returns status and data-in of a command; self.sense is (key, ASC and ASCQ) or None."""
        flags = 0xA0 if data else 0xC0 if read else 0x80
        self.command(bytes(cdb).ljust(16, b"\0"), flags, len(data) or read, data)
        got, self.sense = b"", None
        while True:
            op, head, body = self.recv()
            if op == 0x25:
                got += body
                if head[1] & 1:
                    return head[3], got
            else:
                assert op == 0x21, "PDU %02x" % op
                if len(body) >= 16:
                    self.sense = body[4] & 15, struct.unpack(">H", body[14:16])[0]
                return head[3], got

    def ready(self):
        return self.scsi([0])[0]

    def out(self, action, type=0, key=0, new=0, flags=0):
        data = struct.pack(">QQIBBH", key, new, 0, flags, 0, 0)
        cdb = struct.pack(">BBBBBIB", 0x5f, action, type, 0, 0, 24, 0)
        return self.scsi(cdb, data)[0]

    def keys(self):
        status, data = self.scsi(
            struct.pack(">BB5xHB", 0x5e, 0, 8192, 0), read=8192)
        assert status == GOOD, status
        n = struct.unpack(">I", data[4:8])[0] // 8
        return sorted(struct.unpack(">%dQ" % n, data[8:8 + 8 * n]))

    def reservation(self):
        """Returns (type, key) or None."""
        status, data = self.scsi(
            struct.pack(">BB5xHB", 0x5e, 1, 8192, 0), read=8192)
        assert status == GOOD, status
        if len(data) < 24:
            return None
        return data[21] & 15, struct.unpack(">Q", data[8:16])[0]

    def write(self):
        return self.scsi([0x2a, 0, 0, 0, 0, 0, 0, 0, 1], b"\0" * 512)[0]


class Aptpl(Restarts):
    def test_survives_kill(self):
        d = self.start()
        a, b = Initiator(d, "a"), Initiator(d, "b")
        self.assertEqual(a.out(REGISTER, new=0xa, flags=APTPL), GOOD)
        self.assertEqual(b.out(REGISTER, new=0xb, flags=APTPL), GOOD)
        self.assertEqual(a.out(RESERVE, WE_RO, key=0xa), GOOD)
        d.kill()
        with self.start() as d:
            a, b, c = (Initiator(d, n) for n in "abc")
            self.assertEqual(c.keys(), [0xa, 0xb])
            self.assertEqual(c.reservation(), (WE_RO, 0xa))
            self.assertEqual(a.write(), GOOD)
            self.assertEqual(b.write(), GOOD)
            self.assertEqual(c.write(), CONFLICT)
            self.assertEqual(b.out(CLEAR, key=0xb), GOOD)
            self.assertEqual(self.files(), [])
            for i in (a, b, c):
                i.close()
        with self.start() as d:
            c = Initiator(d, "c")
            self.assertEqual(c.keys(), [])
            self.assertEqual(c.write(), GOOD)
            c.close()

    def test_without_aptpl_it_ends(self):
        d = self.start()
        a = Initiator(d, "a")
        self.assertEqual(a.out(REGISTER, new=0xa), GOOD)
        self.assertEqual(a.out(RESERVE, EA, key=0xa), GOOD)
        d.kill()
        with self.start() as d:
            b = Initiator(d, "b")
            self.assertEqual(b.keys(), [])
            self.assertEqual(b.write(), GOOD)
            b.close()

    def test_killed_at_random(self):
        """All changes with status GOOD are persisted, and none is partial."""
        rng = random.Random(6)
        keys = set()
        for _ in range(12):
            d = self.start()
            i = Initiator(d, "a")
            have = i.keys()
            self.assertEqual(len(have), 1 if keys else 0)
            self.assertLessEqual(set(have), keys)
            done = keys = set(have)
            for _ in range(rng.randrange(1, 12)):
                new = rng.randrange(1, 1 << 60)
                keys = done | {new}
                if rng.random() < 0.2:  # while a command is in progress
                    data = struct.pack(">QQIBBH", 0, new, 0, APTPL, 0, 0)
                    cdb = struct.pack(">BBBBBIB6x", 0x5f, IGNORE, 0, 0, 0, 24, 0)
                    i.command(cdb, 0xA0, 24, data)
                    break
                self.assertEqual(i.out(IGNORE, new=new, flags=APTPL), GOOD)
                done = keys = {new}
            d.kill()

    def test_damaged_state_is_reported(self):
        with self.start() as d:
            a = Initiator(d, "a")
            self.assertEqual(a.out(REGISTER, new=0xa, flags=APTPL), GOOD)
            a.close()
        [name] = self.files()
        with open(name, "rb") as f:
            good = f.read()
        for bad, why in ((good[:20], "cut off"), (b"", "cut off"),
                         (good[:-1] + other(good[-1]), "checksum"),
                         (b"x" * 100, "not valid")):
            with open(name, "wb") as f:
                f.write(bad)
            text = refused(*self.args)
            self.assertIn(name, text)
            self.assertIn(why, text)
            self.assertIn("remove it", text)
        with open(name, "wb") as f:
            f.write(good)
        with self.start() as d:
            b = Initiator(d, "b")
            self.assertEqual(b.keys(), [0xa])
            b.close()

    def test_lost_reservations_are_replaced(self):
        """SPC-4 §5.13.5.3: --allow-lost-reservations starts nevertheless."""
        with self.start() as d:
            a = Initiator(d, "a")
            self.assertEqual(a.out(REGISTER, new=0xa, flags=APTPL), GOOD)
            a.close()
        [name] = self.files()
        with open(name, "r+b") as f:
            f.write(b"rubbish")
        self.args.insert(0, "--allow-lost-reservations")
        for replaces in (False, True):
            with self.start() as d:
                self.assertIn(name, d.messages())
                self.assertIn("are lost", d.messages())
                a, b = Initiator(d, "a"), Initiator(d, "b")
                self.assertEqual(a.ready(), CHECK)
                self.assertEqual(a.write(), CHECK)
                self.assertEqual(a.out(IGNORE, new=1), CHECK)
                if replaces:
                    self.assertEqual(a.out(REPLACE_LOST, EA, new=0xb, flags=APTPL), GOOD)
                    self.assertEqual(a.write(), GOOD)
                    self.assertEqual(b.write(), CONFLICT)
                a.close()
                b.close()
        self.args.pop(0)
        with self.start() as d:
            b = Initiator(d, "b")
            self.assertEqual(b.reservation(), (EA, 0xb))
            self.assertEqual(b.write(), CONFLICT)
            b.close()

    def test_state_of_another_daemon(self):
        with self.start():
            self.assertIn("another iserd", refused(*self.args))

    def test_state_is_no_directory(self):
        with open(self.state, "w"):
            pass
        self.assertIn("--state", refused(*self.args))

    def test_full_directory(self):
        """A change that cannot be persisted is refused and logged."""
        if os.geteuid():
            self.skipTest("needs root for a file system of its own")
        os.mkdir(self.state)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k,nr_inodes=4,mode=0700",
                        "tmpfs", self.state], check=True)
        try:
            with self.start() as d:
                a, b = Initiator(d, "a"), Initiator(d, "b")
                with open(self.state + "/fill", "wb") as f:
                    f.write(b"x" * 4096)
                self.assertEqual(a.out(REGISTER, new=0xa, flags=APTPL), CHECK)
                self.assertEqual(b.keys(), [])
                self.assertIn("cannot save", d.messages())
                os.unlink(self.state + "/fill")
                self.assertEqual(a.out(REGISTER, new=0xa, flags=APTPL), GOOD)
                self.assertEqual(b.keys(), [0xa])
                a.close()
                b.close()
        finally:
            subprocess.run(["umount", self.state], check=True)


class Reservations(unittest.TestCase):
    """iserctl shows registrations and reservations."""

    def ask(self, sock):
        text = run([ISERCTL, "-s", sock, "--json", "reservations"]).text
        return json.loads(text)

    def test_reservations(self):
        with tempfile.TemporaryDirectory(dir=".") as tmp:
            sock = os.path.abspath(tmp + "/ctl")
            with Daemon("--control", sock, "--workers", "2", "ram:8M", "ram:8M") as d:
                a, b, c = Initiator(d, "a"), Initiator(d, "b"), Initiator(d, "c", 1)
                a.out(REGISTER, new=0xa)
                b.out(REGISTER, new=0xb)
                a.out(RESERVE, EA_RO, key=0xa)
                self.assertEqual(c.scsi([0x16])[0], GOOD)
                one, two = self.ask(sock)
                self.assertEqual(one["type"], "Exclusive Access, Registrants Only")
                self.assertEqual(one["generation"], 2)
                self.assertIsNone(one["reserved"])
                self.assertEqual([(r["key"], r["holds"]) for r in one["registrations"]],
                                 [("0x%016x" % 0xa, True), ("0x%016x" % 0xb, False)])
                self.assertIn("example:a,i,0x", one["registrations"][0]["initiator"])
                self.assertIn("example:c,i,0x", two["reserved"])
                self.assertIsNone(two["type"])
                self.assertIn("Registrants", run([ISERCTL, "-s", sock, "reservations"]).text)
                for i in (a, b, c):
                    i.close()


    def test_names_in_transport_ids(self):
        """A TransportID (SPC-4 §7.6.4.6) can have any bytes: iserctl escapes them, on
        a terminal and in JSON; letters are compared in lower case."""
        with tempfile.TemporaryDirectory(dir=".") as tmp:
            sock = os.path.abspath(tmp + "/ctl")
            with Daemon("--control", sock, "ram:8M") as d:
                a = Initiator(d, "a")
                ids = b""
                for name in (b"iqn.2026-01.x:\x1b[2J\xff\xfe,i,0x800000000001",
                             b"IQN.2026-01.org.Example:B,i,0x801234560001"):
                    name += b"\0" * (4 - len(name) % 4)
                    ids += struct.pack(">BBH", 0x45, 0, len(name)) + name
                data = struct.pack(">QQIBBHI", 0, 0xa, 0, 8, 0, 0, len(ids)) + ids
                cdb = struct.pack(">BBBBBIB", 0x5f, REGISTER, 0, 0, 0, len(data), 0)
                self.assertEqual(a.scsi(cdb, data)[0], GOOD)
                one = self.ask(sock)[0]
                names = [r["initiator"] for r in one["registrations"]]
                self.assertEqual(len(names), 3)
                self.assertIn("iqn.2026-01.x:\\x1b[2j\\xff\\xfe,i,0x800000000001",
                              names)
                text = run([ISERCTL, "-s", sock, "reservations"]).text
                self.assertIn("\\x1b[2j", text)
                self.assertNotIn("\x1b", text)
                b = Initiator(d, "b")  # the same registration with another spelling
                self.assertEqual(b.out(REGISTER, key=0xa, new=0xb), GOOD)
                for i in (a, b):
                    i.close()


class Workers(unittest.TestCase):
    """Three initiators, each on its own worker: a change is in force on all workers
    when the command ends."""

    def test_every_change_is_everywhere(self):
        with Daemon("--workers", "3", "ram:8M") as d:
            three = [Initiator(d, n) for n in "abc"]
            rng = random.Random(7)
            for n, i in enumerate(three):
                self.assertEqual(i.out(REGISTER, new=n + 1), GOOD)
            for _ in range(300):
                n = rng.randrange(3)
                holder, key = three[n], n + 1
                type = rng.choice((WE, EA))
                self.assertEqual(holder.out(RESERVE, type, key=key), GOOD)
                for i in three:
                    self.assertEqual(i.write(),
                                     GOOD if i is holder else CONFLICT)
                self.assertEqual(holder.out(RELEASE, type, key=key), GOOD)
                for i in three:
                    self.assertEqual(i.write(), GOOD)
            for i in three:
                i.close()


if __name__ == "__main__":
    main()
