#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Data in any order, many R2Ts, bidirectional commands and Additional Header Segments:
iserd against an initiator of bytes (RFC 7143 §11.2.2, §13.17 to §13.19), and libiser with
iserd over each kind of connection."""
import os
import random
import struct
import subprocess
import tempfile
import unittest

from harness import ISER, WAYS, Daemon, Folder, Wire, main, need, over, run
from test_tshark import Capture

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RESPONSE, DATA_IN, R2T, REJECT = 0x21, 0x25, 0x31, 0x3f
LIBRARY = os.path.join(os.path.dirname(os.path.realpath(ISER)), "../lib/libiser.so.1")


def word(head, at):
    return int.from_bytes(head[at:at + 4], "big")


def segment(kind, body, length=None):
    """One AHS: AHSLength, AHSType, the body, padding."""
    n = len(body) if length is None else length
    ahs = struct.pack(">HB", n, kind) + body
    return ahs + b"\0" * (-len(ahs) % 4)


def bidi(length):
    return segment(2, b"\0" + struct.pack(">I", length))


class Peer(Wire):
    KEYS = Wire.KEYS[:2] + ("InitialR2T=Yes", "ImmediateData=No")

    def open(self, *keys):
        self.answer = self.login(*keys)[2].split(b"\0")
        return self.ready()

    def scsi(self, cdb, edtl, flags, ahs=b"", words=None):
        """Sends a SCSI Command with these AHSs; returns its tag."""
        itt, self.itt = self.itt, self.itt + 1
        words = len(ahs) // 4 if words is None else words
        rest = struct.pack(">III", edtl, self.cmdsn, 1) + cdb[:16].ljust(16, b"\0")
        self.send(self.bhs(1, flags | 1, words << 24, itt=itt, rest=rest) + ahs)
        self.cmdsn += 1
        return itt

    def data_out(self, itt, ttt, sn, offset, data, final):
        rest = struct.pack(">IIIIIII", ttt, 0, 1, 0, sn, offset, 0)
        self.put(self.bhs(5, 0x80 * final, len(data), itt=itt, rest=rest), data)

    def fulfil(self, itt, head, data, order, size=1024):
        """Answers an R2T with PDUs in this order: a function that sorts their offsets."""
        ttt, at, length = word(head, 20), word(head, 40), word(head, 44)
        offsets = order(list(range(at, at + length, size)))
        for sn, off in enumerate(offsets):
            self.data_out(itt, ttt, sn, off, data[off:min(off + size, at + length)],
                          sn == len(offsets) - 1)


def shuffled(offsets):
    return random.Random(len(offsets)).sample(offsets, len(offsets))


class Order(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon("--data-pdu-in-order", "no", "--data-sequence-in-order", "no",
                            "--max-outstanding-r2t", "65535", "--compat", "strict", "ram:8M")

    @classmethod
    def tearDownClass(cls):
        with cls.daemon:
            pass

    def peer(self, *keys):
        w = Peer(self.daemon).open(*keys)
        self.addCleanup(w.close)
        return w

    def write(self, w, data, order, size=1024):
        """Writes data at LBA 0; returns (the R2Ts that came together at most, status)."""
        itt = w.scsi(b"\x2a\0\0\0\0\0\0" + struct.pack(">H", len(data) // 512), len(data), 0xa0)
        left, most, waiting = len(data), 0, []
        while True:
            if not left and waiting:
                for head in reversed(waiting):  # the sequences in any order, too
                    w.fulfil(itt, head, data, order, size)
                waiting = []
            op, head, _ = w.recv()
            if op == RESPONSE:
                return most, head[3]
            self.assertEqual(op, R2T)
            waiting.append(head)
            left -= word(head, 44)
            most = max(most, len(waiting))

    def test_negotiation(self):
        """RFC 7143 §13.18, §13.19: the result is the OR of both; §13.17: the minimum."""
        w = self.peer("DataPDUInOrder=No", "DataSequenceInOrder=Yes", "MaxOutstandingR2T=65535")
        for answer in (b"DataPDUInOrder=No", b"DataSequenceInOrder=Yes", b"MaxOutstandingR2T=65535"):
            self.assertIn(answer, w.answer)
        with Daemon("ram:1M") as d:
            w = Peer(d).open("DataPDUInOrder=No", "DataSequenceInOrder=No")
            self.assertIn(b"DataPDUInOrder=Yes", w.answer)
            self.assertIn(b"DataSequenceInOrder=Yes", w.answer)
            w.close()

    def test_data_outs_in_any_order(self):
        w = self.peer("DataPDUInOrder=No", "DataSequenceInOrder=No", "MaxOutstandingR2T=64",
                      "MaxBurstLength=8192")
        for order, size in ((shuffled, 1024), (shuffled, 333), (lambda o: o[::-1], 512)):
            data = os.urandom(49152)
            self.assertEqual(self.write(w, data, order, size), (6, 0))
            self.assertEqual(w.ask(b"\x28\0\0\0\0\0\0\0\x60", 49152), (0, data))

    def test_bytes_twice_and_holes(self):
        """Each byte comes once: else CHECK CONDITION, and nothing is written."""
        w = self.peer("DataPDUInOrder=No", "DataSequenceInOrder=No", "MaxBurstLength=8192")
        before = w.ask(b"\x28\0\0\0\0\0\0\0\x10", 8192)[1]
        for offsets in ((4096, 4096), (4096, 0, 5000), (0, 4096, 1)):
            itt = w.scsi(b"\x2a\0\0\0\0\0\0\0\x10", 8192, 0xa0)
            ttt = word(w.recv()[1], 20)
            for sn, off in enumerate(offsets):
                w.data_out(itt, ttt, sn, off, b"x" * 1024, sn == len(offsets) - 1)
            ops = []
            while not ops or ops[-1][0] != RESPONSE:
                ops.append(w.recv())
            self.assertEqual(ops[-1][1][3], 2)
            self.assertEqual(w.ask(b"\x28\0\0\0\0\0\0\0\x10", 8192)[1], before)

    def test_a_hostile_order_costs_its_sender(self):
        """PDUs of one byte with holes between them: the command fails, not iserd."""
        w = self.peer("DataPDUInOrder=No", "MaxBurstLength=16384")
        itt = w.scsi(b"\x2a\0\0\0\0\0\0\0\x20", 16384, 0xa0)
        ttt = word(w.recv()[1], 20)
        for sn in range(5000):
            w.data_out(itt, ttt, sn, 1 + 2 * sn, b"x", False)
        w.data_out(itt, ttt, 5000, 0, b"x", True)
        op, head, _ = w.recv()
        while op == REJECT:
            op, head, _ = w.recv()
        self.assertEqual((op, head[3]), (RESPONSE, 2))
        self.assertEqual(w.ask(bytes(6))[0], 0)

    # ---- bidirectional commands ----

    def xor(self, w, cdb, data, ahs, edtl=None):
        """Returns (numbers of the R2Ts and Data-Ins, read data, the response)."""
        edtl = len(data) if edtl is None else edtl
        itt = w.scsi(cdb, edtl, 0xe0, ahs)
        numbers, got = [], b""
        while True:
            op, head, part = w.recv()
            if op == R2T:
                numbers.append(word(head, 36))
                w.fulfil(itt, head, data, shuffled)
            elif op == DATA_IN:
                numbers.append(word(head, 36))
                self.assertFalse(head[1] & 1)
                self.assertEqual(word(head, 40), len(got))
                got += part
            else:
                self.assertEqual(op, RESPONSE, head)
                return numbers, got, head

    # [RFC 7143: 11.7.3 #3]
    def test_xdwriteread(self):
        """One count of R2Ts and Data-Ins (§11.8.2), two residuals (§11.4.5.1)."""
        w = self.peer("DataPDUInOrder=No", "MaxBurstLength=4096", "MaxRecvDataSegmentLength=4096",
                      "MaxOutstandingR2T=9")
        old, new = os.urandom(8192), os.urandom(8192)
        both = bytes(a ^ b for a, b in zip(old, new))
        short = b"\x53\0\0\0\0\0\0\0\x10"
        long = b"\x7f" + bytes(6) + b"\x18\0\7" + bytes(21) + b"\x10"
        extended = segment(1, b"\0" + long[16:])
        for cdb, ahs in ((short, bidi(8192)), (long, extended + bidi(8192)),
                         (long, bidi(8192) + extended)):
            self.write(w, old, shuffled)
            numbers, got, head = self.xor(w, cdb, new, ahs)
            self.assertEqual((head[1], head[3], got), (0x80, 0, both))
            self.assertEqual(numbers, list(range(len(numbers))))
            self.assertEqual(word(head, 36), 2)  # ExpDataSN: Data-Ins only
            self.assertEqual(w.ask(b"\x28\0\0\0\0\0\0\0\x10", 8192)[1], new)

    def test_residuals(self):
        """RFC 7143 §11.4.5.1: o, u for the data read; O, U for the data written."""
        w = self.peer("MaxBurstLength=4096")
        cdb, data = b"\x53\4\0\0\0\0\0\0\2", os.urandom(3000)
        for edtl, read, flags, resid, bidi_resid in (
                (1024, 1024, 0x80, 0, 0), (1024, 1000, 0x90, 0, 24), (1024, 2000, 0x88, 0, 976),
                (1500, 1024, 0x82, 476, 0), (3000, 700, 0x92, 1976, 324), (3000, 9999, 0x8a, 1976, 8975)):
            _, got, head = self.xor(w, cdb, data, bidi(read), edtl)
            self.assertEqual((head[1], head[3], word(head, 44), word(head, 40)), (flags, 0, resid, bidi_resid))
            self.assertEqual(len(got), min(read, 1024))

    def test_bidirectional_commands_that_are_refused(self):
        w = self.peer()
        for cdb, edtl, flags, ahs in (
                (b"\x53\0\0\0\0\0\0\0\2", 1024, 0xa0, b""),  # W only
                (b"\x53\0\0\0\0\0\0\0\2", 1024, 0xc0, b""),  # R only
                (b"\x53\0\0\0\0\0\0\0\2", 1024, 0xe0, b""),  # no length of the read data
                (b"\x53\0\0\0\0\0\0\0\2", 512, 0xe0, bidi(1024)),
                (b"\x28\0\0\0\0\0\0\0\2", 1024, 0xe0, bidi(1024))):
            w.scsi(cdb, edtl, flags, ahs)
            op, head, _ = w.recv()
            self.assertEqual((op, head[3]), (RESPONSE, 2), (cdb, flags))

    # ---- Additional Header Segments ----

    def test_ahs(self):
        """RFC 7143 §11.2.2: lengths, padding, several segments; §11: reserved codes."""
        w = self.peer()
        long = b"\x7f" + bytes(6) + b"\x18\0\7\4" + bytes(20) + b"\0"  # of no blocks
        fits, two = segment(1, b"\0" + long[16:]), bidi(0)
        good, malformed, reserved = 0x80, 9, 4
        for ahs, want in (
                (fits + two, good), (two + fits, good),
                (segment(1, b"\0" + long[16:] + bytes(220)) + two, good),
                (fits + fits, malformed), (two + two, malformed),
                (segment(2, bytes(4)), malformed), (segment(2, bytes(6)), malformed),
                (segment(1, b""), malformed), (segment(1, b"\0"), malformed),
                (segment(1, bytes(250)), malformed),
                (segment(1, b"\0" + long[16:], 0xffff), malformed),
                (segment(2, bytes(5), 9), malformed), (bytes(4), reserved),
                (segment(3, bytes(1)), reserved), (fits + segment(63, bytes(1000 - 24)), reserved),
                (segment(4, bytes(1017)), reserved)):
            self.assertLessEqual(len(ahs), 1020)
            w.scsi(long, 0, 0xe0, ahs)
            op, head, _ = w.recv()
            if want == good:
                self.assertEqual((op, head[3]), (RESPONSE, 0), ahs)
                continue
            self.assertEqual((op, head[2]), (REJECT, want), ahs)
            w.cmdsn -= 1  # §7.3: its CmdSN counts as not received
        self.assertEqual(w.ask(bytes(6))[0], 0)

    def test_tshark(self):
        """A dissector that is not ours reads the AHSs and both residuals."""
        with tempfile.TemporaryDirectory() as folder:
            cap = Capture(self.daemon.address[1], os.path.join(folder, "trace.pcapng"))
            self.xor(self.peer(), b"\x53\4\0\0\0\0\0\0\2", bytes(3000), bidi(1000))
            cap.stop()
            self.assertIn("2\t1000", cap.fields("iscsi.ahs.type", "iscsi.ahs.type", "iscsi.ahs.bidir.length"))
            self.assertEqual(cap.fields("iscsi.scsiresponse.bidireadresidualcount == 24",
                                        "iscsi.scsiresponse.residualcount"), ["1976"])


class Library(Folder):
    def test_copy_in_any_order(self):
        """Both ends agree on any order and many R2Ts, also with digests and a level."""
        with open(self.path("image"), "wb") as f:
            f.write(os.urandom(3 << 20))
        options = ("--data-pdu-in-order", "no", "--data-sequence-in-order", "no",
                   "--max-outstanding-r2t", "500")
        keys = "?data_pdu_in_order=no&data_sequence_in_order=no&max_outstanding_r2t=65535&data_digest=crc32c"
        for level in "0", "1":
            with Daemon(*options, "--error-recovery-level", level, "ram:3M") as d:
                url = d.url + keys + "&error_recovery_level=" + level
                run([ISER, "copy", self.path("image"), url])
                run([ISER, "copy", url, self.path("copy" + level)])
                self.assertIn('"MaxOutstandingR2T": 500', run([ISER, "info", "--json", url]).text)
            self.assertEqual(self.read("image"), self.read("copy" + level))

    def read(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    # [RFC 7143: 11.3.4 #1]
    @need("gcc")
    def test_bidirectional_commands(self):
        """iser_submit_bidi over TCP, and over iSER with two STags (RFC 7145 §7.3.1)."""
        program = self.path("bidi")
        subprocess.run(["gcc", "-Wall", "-Wextra", "-Werror", os.path.join(TOP, "tests/interop/bidi.c"),
                        "-I", os.path.join(TOP, "include"), "-o", program, LIBRARY,
                        "-Wl,-rpath," + os.path.dirname(LIBRARY)], check=True)
        with Daemon("--compat", "strict", "ram:1M") as d:
            for way in WAYS:
                for kind in "10", "32":
                    self.assertEqual(run([program, over(d.url, way), kind]).text,
                                     "102400 0 102400 0\n1000 1 101400\n", way)


if __name__ == "__main__":
    main()
