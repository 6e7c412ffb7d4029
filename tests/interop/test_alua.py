#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Two iserd on one disk, active and standby (ALUA): the reports of each, failover
by iserctl and by an initiator; the old active iserd must not write after the new
one has begun."""
import json
import struct
import threading
import unittest

from harness import ISERCTL, Daemon, Folder, main, refused, run, sparse
from test_reserve import CHECK, GOOD, Initiator

AO, AN, STANDBY, UNAVAILABLE = range(4)
OFFLINE, TRANSITIONING = 14, 15
NOT_READY, ATTENTION = 2, 6


class Path(Initiator):
    """An initiator on one of several paths to a unit."""

    def groups(self):
        """Returns {group: (state, preferred, ports)}."""
        status, data = self.scsi(struct.pack(">BB4xI2x", 0xa3, 0x0a, 1024), read=1024)
        assert status == GOOD, self.sense
        found, at = {}, 4
        while at < len(data):
            group, n = struct.unpack(">H", data[at + 2:at + 4])[0], data[at + 7]
            ports = [struct.unpack(">H", data[at + 10 + 4 * i:at + 12 + 4 * i])[0]
                     for i in range(n)]
            found[group] = (data[at] & 15, data[at] >> 7, ports)
            at += 8 + 4 * n
        return found

    def set_group(self, group, state):
        data = struct.pack(">4xBxH", state, group)
        return self.scsi(struct.pack(">BB4xI2x", 0xa4, 0x0a, len(data)), data)[0]

    def names(self):
        """Returns VPD page 83h as {(association, type): bytes}."""
        status, data = self.scsi([0x12, 1, 0x83, 2, 0], read=512)
        assert status == GOOD
        found, at = {}, 4
        while at < len(data):
            kind, n = data[at + 1] & 0x3f, data[at + 3]
            found[kind] = data[at + 4:at + 4 + n]
            at += 4 + n
        return found

    def read(self, lba):
        return self.scsi(struct.pack(">BBIBHB", 0x28, 0, lba, 0, 1, 0), read=512)

    def store(self, lba, byte):
        return self.scsi(struct.pack(">BBIBHB", 0x2a, 8, lba, 0, 1, 0),
                         bytes([byte]) * 512)[0]


class Pair(Folder):
    def setUp(self):
        super().setUp()
        self.disk = sparse(self.path("disk.img"), 8 << 20)
        self.daemons = []
        self.sockets = []
        for port in (1, 2):
            sock = self.path("ctl%d" % port)
            self.sockets.append(sock)
            self.daemons.append(Daemon(
                "--port-id", str(port), "--alua", "1:optimized:1:preferred",
                "--alua", "2:standby:2", "--control", sock,
                "--shared", "--block-size", "512", "--buffered", "--workers", "2", self.disk))

    def tearDown(self):
        for d in self.daemons:
            d.__exit__(None, None, None)

    def set(self, which, group, state):
        return run([ISERCTL, "-s", self.sockets[which], "group", "id=%d" % group,
                    "state=" + state])

    def paths(self):
        return [Path(d) for d in self.daemons]

    def test_both_report_both(self):
        a, b = self.paths()
        want = {1: (AO, 1, [1]), 2: (STANDBY, 0, [2])}
        self.assertEqual(a.groups(), want)
        self.assertEqual(b.groups(), want)
        na, nb = a.names(), b.names()
        self.assertEqual(na[0x03], nb[0x03])  # NAA: one unit
        self.assertEqual(na[0x01], nb[0x01])
        self.assertEqual(na[0x14], struct.pack(">I", 1))  # port
        self.assertEqual(nb[0x14], struct.pack(">I", 2))
        self.assertEqual(na[0x15], struct.pack(">I", 1))  # group
        self.assertEqual(nb[0x15], struct.pack(">I", 2))
        for p in (a, b):
            self.assertEqual(p.scsi([0x12, 0, 0, 0, 96], read=96)[1][5] & 0x30, 0x30)
        self.assertEqual(a.store(0, 1), GOOD)
        self.assertEqual(b.store(0, 2), CHECK)
        self.assertEqual(b.sense, (NOT_READY, 0x040b))
        for p in (a, b):
            p.close()

    def test_failover(self):
        a, b = self.paths()
        self.assertEqual(a.store(7, 0x11), GOOD)
        text = self.set(0, 1, "standby").text
        self.assertIn("standby", text)
        self.set(1, 1, "standby")
        self.set(1, 2, "optimized")
        self.set(0, 2, "optimized")
        for p in (a, b):
            self.assertEqual(p.ready(), CHECK)
            self.assertEqual(p.sense, (ATTENTION, 0x2a06))
        self.assertEqual(a.store(7, 0x22), CHECK)
        self.assertEqual(a.sense, (NOT_READY, 0x040b))
        self.assertEqual(b.read(7)[1], b"\x11" * 512)
        self.assertEqual(b.store(7, 0x33), GOOD)
        self.assertEqual(a.groups(), {1: (STANDBY, 1, [1]), 2: (AO, 0, [2])})
        self.assertEqual(a.groups(), b.groups())
        for p in (a, b):
            p.close()

    def test_transition_and_missing_peer(self):
        """The standby iserd reports transitioning while the other one is stopped,
        then reports its port as offline, and takes over."""
        a, b = self.paths()
        self.set(1, 2, "transitioning")
        self.assertEqual(b.ready(), CHECK)
        self.assertEqual(b.sense, (ATTENTION, 0x2a06))
        self.assertEqual(b.ready(), CHECK)
        self.assertEqual(b.sense, (NOT_READY, 0x040a))
        self.assertEqual(b.groups()[2], (TRANSITIONING, 0, [2]))
        a.close()
        self.daemons[0].proc.kill()
        self.daemons[0].proc.wait()
        text = run([ISERCTL, "-s", self.sockets[1], "--json", "port", "id=1",
                    "state=offline"]).text
        self.assertEqual([g["offline"] for g in json.loads(text)], [[1], []])
        self.set(1, 1, "unavailable")
        self.set(1, 2, "optimized")
        self.assertEqual(b.ready(), CHECK)
        self.assertEqual(b.store(7, 0x44), GOOD)
        self.assertEqual(b.groups(), {1: (UNAVAILABLE, 1, [1]), 2: (AO, 0, [2]),
                                      0xffff: (OFFLINE, 0, [1])})
        done = run([ISERCTL, "-s", self.sockets[1], "port", "id=2", "state=offline"], check=False)
        self.assertEqual(done.returncode, 1)  # it still answers
        run([ISERCTL, "-s", self.sockets[1], "port", "id=1", "state=online"])
        self.assertEqual(b.ready(), CHECK)
        self.assertEqual(len(b.groups()), 2)
        b.close()
        self.daemons[0] = Daemon("ram:1M")  # for tearDown

    def test_by_the_initiator(self):
        a, b = self.paths()
        self.assertEqual(b.set_group(2, AN), GOOD)
        self.assertEqual(b.set_group(2, OFFLINE), CHECK)
        self.assertEqual(b.sense, (5, 0x2600))
        self.assertEqual(b.ready(), GOOD)
        self.assertEqual(b.groups()[2][0], AN)
        # b must not set a group of the other daemon
        self.assertEqual(b.set_group(1, STANDBY), CHECK)
        self.assertEqual(b.sense, (4, 0x670a))
        self.assertEqual(b.set_group(2, STANDBY), GOOD)
        self.assertEqual(b.ready(), CHECK)
        for p in (a, b):
            p.close()

    def test_no_write_after_standby(self):
        """The state changes under writers: all blocks with status GOOD are on the
        disk, and no write happens after iserctl has returned."""
        for turn in range(3):
            writers, done, stop = [], [{} for _ in range(4)], threading.Event()

            def work(n):
                p = Path(self.daemons[0], "w%d" % n)
                lba, byte = 100 * (n + 1), 0
                while not stop.is_set():
                    byte = byte % 250 + 1
                    status = p.store(lba, byte)
                    if status != GOOD:
                        if p.sense[0] == ATTENTION:
                            continue
                        assert p.sense[0] == NOT_READY, p.sense
                        assert p.sense[1] in (0x040a, 0x040b), p.sense
                        break
                    done[n][lba] = byte
                p.close()

            for n in range(4):
                t = threading.Thread(target=work, args=(n,))
                t.start()
                writers.append(t)
            stop.wait(0.2)
            self.set(0, 1, "standby")
            with open(self.disk, "rb") as f:
                then = f.read()
            stop.wait(0.1)
            with open(self.disk, "rb") as f:
                self.assertEqual(f.read(), then)
            stop.set()
            for t in writers:
                t.join()
            for part in done:
                for lba, byte in part.items():
                    self.assertEqual(then[512 * lba:512 * lba + 512],
                                     bytes([byte]) * 512)
            self.assertTrue(any(done))
            self.set(0, 1, "optimized")

    def test_refusals(self):
        for args, word in ((["group", "id=9", "state=standby"], "group 9: not found"),
                           (["group", "id=1", "state=asleep"], "non-optimized"),
                           (["group", "id=1"], "state: missing; give state=STATE"),
                           (["group", "id=x", "state=standby"], "id=x: must be a number"),
                           (["group", "id=1", "state=standby", "preferred=maybe"],
                            "preferred=maybe: must be one of no, yes")):
            done = run([ISERCTL, "-s", self.sockets[0]] + args, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn(word, done.text)
        text = run([ISERCTL, "-s", self.sockets[0], "groups"]).text
        self.assertIn("standby", text)
        run([ISERCTL, "-s", self.sockets[0], "group", "id=2", "state=standby",
             "preferred=yes"])


class Options(unittest.TestCase):
    def test_bad(self):
        for args in (["--alua", "1"], ["--alua", "0:standby:1"], ["--alua", "1:asleep:1"],
                     ["--alua", "1:standby:"], ["--alua", "1:standby:1,"],
                     ["--alua", "1:standby:70000"], ["--alua", "1:standby:1:liked"],
                     ["--alua", "1:standby:1", "--alua", "1:standby:2"],
                     ["--alua", "1:standby:1", "--alua", "2:standby:1"],
                     ["--port-id", "0"]):
            self.assertIn(args[-2], refused(*args, "ram:1M", status=2))


if __name__ == "__main__":
    main()
