#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The task set on the wire: auto contingent allegiance, by two initiators of
bytes, on one worker and on two."""
import shutil
import struct
import unittest

from harness import Daemon, Wire, io, main, run

GOOD, CHECK, BUSY, ACA_ACTIVE = 0, 2, 8, 0x30
SIMPLE, ORDERED, HEAD, ACA = 1, 2, 3, 4
ABORT_TASK_SET, CLEAR_ACA, LU_RESET = 2, 3, 5
NACA = 4


class Initiator(Wire):
    """With a name of its own, and commands of any attribute."""

    def __init__(self, daemon, name, *keys):
        super().__init__(daemon)
        self.KEYS = ("InitiatorName=iqn.2026-01.org.example:" + name,
                     ) + Wire.KEYS[1:]
        self.login(*keys)
        self.ready()

    def send_scsi(self, cdb, attr=SIMPLE, read=0, data=b"", priority=0):
        flags = 0xa0 if data else 0xc0 if read else 0x80
        rest = struct.pack(">III", read or len(data), self.cmdsn, 1)
        head = struct.pack(">BBBBI", 1, flags | attr, priority, 0, len(data))
        head += bytes(8) + struct.pack(">I", self.itt) + rest
        self.put(head + bytes(cdb).ljust(16, b"\0"), data)
        self.cmdsn += 1
        self.itt += 1
        return self.itt - 1

    def response(self):
        """(ITT, status, sense or data) of the next command that ends."""
        got = b""
        while True:
            op, head, part = self.recv()
            itt = struct.unpack(">I", head[16:20])[0]
            if op == 0x21:
                return itt, head[3], part or got
            assert op == 0x25, "PDU %02x" % op
            got += part
            if head[1] & 1:
                return itt, head[3], got

    def scsi(self, cdb, attr=SIMPLE, **kw):
        itt = self.send_scsi(cdb, attr, **kw)
        got, status, data = self.response()
        assert got == itt
        return status, data

    def status(self, attr=SIMPLE, naca=0):
        """Of a TEST UNIT READY."""
        return self.scsi([0, 0, 0, 0, 0, naca], attr)[0]

    def fault(self, attr=SIMPLE, naca=NACA):
        """Of a READ(10) of a block that is not there."""
        return self.scsi(b"\x28\0\xff\0\0\0\0\0\1" + bytes([naca]), attr,
                         read=512)[0]

    def tmf(self, function):
        rest = struct.pack(">IIII", 0xffffffff, self.cmdsn, 1, 0)
        itt = self.pdu(0x42, 0x80 | function, rest=rest)
        op, head, _ = self.recv()
        assert op == 0x22, "PDU %02x" % op
        assert struct.unpack(">I", head[16:20])[0] == itt
        return head[2]


class AutoContingentAllegiance(unittest.TestCase):
    """SAM-5 §5.10"""
    WORKERS = "1"

    def setUp(self):
        self.daemon = Daemon("--io", io(), "--workers", self.WORKERS,
                             "ram:8M")
        self.a = Initiator(self.daemon, "a")
        self.b = Initiator(self.daemon, "b")

    def tearDown(self):
        self.a.close()
        self.b.close()
        self.daemon.stop()

    def test_inquiry_and_what_is_supported(self):
        status, data = self.a.scsi([0x12, 0, 0, 0, 96, NACA], read=96)
        self.assertEqual(status, GOOD)
        self.assertTrue(data[3] & 0x20)  # NORMACA
        cdb = struct.pack(">BBBBIIBB", 0xa3, 0x0d, 0, 0, 0, 0, 0, 0)
        cdb = cdb[:6] + struct.pack(">I", 4) + bytes(2)
        self.assertTrue(self.a.scsi(cdb, read=4)[1][0] & 0x20)  # CACAS
        # REPORT SUPPORTED OPERATION CODES of READ(10): NACA in its usage
        cdb = b"\xa3\x0c\x01\x28\0\0\0\0\1\0\0\0"
        self.assertEqual(self.a.scsi(cdb, read=256)[1][4 + 9], NACA)

    def test_iscsi_inq_sees_it(self):
        if not shutil.which("iscsi-inq"):
            self.skipTest("no libiscsi")
        out = run(["iscsi-inq", self.daemon.url]).text
        self.assertRegex(out, r"NormACA:1")

    def test_life_of_an_aca(self):
        a, b = self.a, self.b
        self.assertEqual(a.fault(naca=0), CHECK)
        self.assertEqual(a.status(), GOOD)
        self.assertEqual(a.fault(), CHECK)
        for attr in SIMPLE, ORDERED, HEAD:
            self.assertEqual(a.status(attr), ACA_ACTIVE)
            self.assertEqual(b.status(attr), BUSY)
            self.assertEqual(b.status(attr, NACA), ACA_ACTIVE)
        self.assertEqual(b.status(ACA), ACA_ACTIVE)
        self.assertEqual(a.status(ACA), GOOD)
        self.assertEqual(b.tmf(CLEAR_ACA), 0)  # not b's
        self.assertEqual(a.status(), ACA_ACTIVE)
        self.assertEqual(a.fault(ACA), CHECK)  # a new one
        self.assertEqual(a.status(), ACA_ACTIVE)
        self.assertEqual(a.tmf(ABORT_TASK_SET), 0)
        self.assertEqual(b.status(), BUSY)
        self.assertEqual(a.tmf(CLEAR_ACA), 0)
        self.assertEqual(a.status(), GOOD)
        self.assertEqual(b.status(), GOOD)
        self.assertEqual(a.status(ACA), CHECK)  # there is none

    def test_failed_aca_command_clears_it(self):
        self.assertEqual(self.a.fault(), CHECK)
        self.assertEqual(self.a.fault(ACA, naca=0), CHECK)
        self.assertEqual(self.a.status(), GOOD)
        self.assertEqual(self.b.status(), GOOD)

    def test_resets_and_a_lost_session_end_it(self):
        self.assertEqual(self.a.fault(), CHECK)
        self.assertEqual(self.b.tmf(LU_RESET), 0)
        self.a.ready()
        self.b.ready()
        self.assertEqual(self.a.fault(), CHECK)
        self.assertEqual(self.b.status(), BUSY)
        self.a.close()
        for _ in range(1000):
            if self.b.status() == GOOD:
                break
        else:
            self.fail("the session is gone, its ACA is not")

    def test_a_blocked_command_ends_behind_it(self):
        """A WRITE whose data come in while the ACA is there."""
        a, b = self.a, self.b
        cdb = b"\x2a\0\0\0\0\0\0\0\x80\0"
        rest = struct.pack(">III", 65536, b.cmdsn, 1) + cdb.ljust(16, b"\0")
        itt = b.pdu(1, 0xa1, rest=rest)
        b.cmdsn += 1
        op, r2t, _ = b.recv()
        self.assertEqual(op, 0x31)
        self.assertEqual(a.fault(), CHECK)
        ttt = r2t[20:24]
        data = b"A" * 65536
        for sn, at in enumerate(range(0, len(data), 8192)):
            rest = ttt + struct.pack(">IIIIII", 0, 1, 0, sn, at, 0)
            b.pdu(5, 0x80 if at + 8192 == len(data) else 0,
                  data[at:at + 8192], itt=itt, rest=rest)
        b.send(b.bhs(0x40, itt=77, dsl=0,
                     rest=struct.pack(">III", 0xffffffff, b.cmdsn, 1)))
        op, head, _ = b.recv()
        self.assertEqual(op, 0x20)  # the NOP is answered, the WRITE is not
        self.assertEqual(a.tmf(CLEAR_ACA), 0)
        self.assertEqual(b.response()[:2], (itt, GOOD))
        self.assertEqual(b.read10(0, 1)[1], b"A" * 512)


class OnTwoWorkers(AutoContingentAllegiance):
    WORKERS = "2"


if __name__ == "__main__":
    main()
