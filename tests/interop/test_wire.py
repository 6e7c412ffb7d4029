#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Bad input from the network: correct answers, and no effect on other sessions."""
import random
import select
import socket
import struct
import time
import unittest

from harness import Daemon, Wire, main, until

REJECT, RESPONSE, LOGIN, NOP_IN = 0x3f, 0x21, 0x23, 0x20


class BadInput(unittest.TestCase):
    """One daemon; a healthy session must survive every test."""

    @classmethod
    def setUpClass(cls):
        # at this level no line is suppressed
        cls.daemon = Daemon("--log", "debug", "ram:8M")
        cls.healthy = Wire(cls.daemon)
        cls.healthy.KEYS = ("InitiatorName=iqn.2026-01.org.example:healthy",
                            "SessionType=Normal")
        cls.healthy.login()

    @classmethod
    def tearDownClass(cls):
        cls.healthy.close()
        with cls.daemon:
            pass

    def setUp(self):
        self.wire = Wire(self.daemon)

    def tearDown(self):
        self.wire.close()
        w = self.healthy
        w.pdu(0x40, data=b"still there?")
        op, _, data = w.recv()
        self.assertEqual((op, data), (NOP_IN, b"still there?"))

    def session(self, *keys):
        op, head, _ = self.wire.login(*keys)
        self.assertEqual((op, head[36:38]), (LOGIN, b"\0\0"))
        return self.wire

    def ready(self):
        """Consumes the unit attention of a new nexus."""
        w = self.session()
        for _ in range(3):
            w.command(bytes(16))
            _, head, _ = w.recv()
            if head[3] == 0:
                return w
        raise AssertionError("unit is not ready")

    def test_http(self):
        self.wire.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 40)
        self.wire.expect_close()

    def test_first_header_is_not_a_login(self):
        """RFC 7143 §6.3: a first header that cannot begin a login ends the connection
        at once, before its data arrive, with a line in the log."""
        def header(op, dsl=0, ahs=0):
            head = bytearray(Wire.bhs(op, 0x87, dsl))
            head[4] = ahs
            return bytes(head)
        for first in (header(0x01), header(0x01, 512), header(0x40, 4096),
                      header(0x1f), header(0x5f, 8192), header(0x23, 100),
                      header(0x43, 8193), header(0x43, 0xffffff),
                      header(0x43, 100, ahs=255), b"GET /\r\n",
                      b"SSH-2.0-x\r\n", b"\x16\x03\x01", b"MAIL FROM:",
                      b"\0"):
            w = Wire(self.daemon)
            began = time.monotonic()
            w.send(first)
            w.expect_close()
            self.assertLess(time.monotonic() - began, 5, first)
            w.close()
        with Daemon("ram:8M") as d:  # a new daemon: no line is suppressed
            for first, line in ((header(3, 8193), "8193 bytes of data"),
                                (header(0x43, 0, 1), "4 bytes of AHS"),
                                (b"GET /", "begins neither")):
                w = Wire(d)
                w.send(first)
                w.expect_close()
                d.wait_for(line)
                w.close()

    def test_noise(self):
        rnd = random.Random(1)
        for _ in range(20):
            w = Wire(self.daemon)
            try:
                w.send(rnd.randbytes(rnd.randrange(1, 4000)))
                w.sock.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            w.expect_close()
            w.close()

    def test_login_data_too_long(self):
        self.wire.send(Wire.bhs(0x43, 0x87, dsl=100000))
        self.wire.expect_close()

    def test_login_without_names(self):
        self.wire.send(Wire.bhs(0x43, 0x87, dsl=4) + b"a=b\0")
        op, head, _ = self.wire.recv()
        self.assertEqual((op, head[36], head[37]), (LOGIN, 2, 7))
        self.wire.expect_close()

    def test_login_no_key_value(self):
        self.wire.send(Wire.bhs(0x43, 0x87, dsl=8) + b"nonsense")
        op, head, _ = self.wire.recv()
        self.assertEqual((op, head[36]), (LOGIN, 2))
        self.wire.expect_close()

    def login_as(self, name):
        """Returns the login status of an initiator; the name is in bytes."""
        data = b"InitiatorName=" + name + b"\0TargetName=" + \
            self.daemon.target.encode() + b"\0"
        w = Wire(self.daemon)
        head = struct.pack(">BBBBI", 0x43, 0x87, 0, 0, len(data)) + w.ISID
        w.put(head.ljust(48, b"\0"), data)
        op, head, _ = w.recv()
        self.assertEqual(op, LOGIN)
        w.close()
        return head[36:38]

    def test_initiator_names(self):
        """RFC 7143 §4.2.7, RFC 3722: an invalid iSCSI name is refused with the
        reason; capital letters are mapped."""
        for name, reason in (
                (b"iqn.\xff\xfe", "byte 5 is not UTF-8"),
                (b"iqn.2026-01.x:a b", "U+0020"),
                (b"iqn.2026-01.x:\x1b[2J", "U+001B"),
                (b"iqn.2026-01.x:\xc2\x9b1m", "U+009B"),
                (b"iqn.2026-01.x:\xe2\x80\xae", "U+202E"),
                (b"mallory", "begins with none of"),
                (b"iqn.2026-13.x", "no month 13"),
                (b"eui.0123", "16 hexadecimal"),
                (b"iqn.2026-01.x:" + b"a" * 210, "224 bytes")):
            self.assertEqual(self.login_as(name), b"\2\0", name)
            self.daemon.wait_for(reason)
        for name in (b"IQN.2026-01.ORG.Example:Wire", b"eui.02004567A425678D",
                     "iqn.2026-01.org.example:gr\u00fc\u00df".encode(),
                     b"iqn.2008-11.org.linux-kvm:my_machine"):
            self.assertEqual(self.login_as(name), b"\0\0", name)
        log = self.daemon.messages()
        self.assertNotIn("\x1b", log)
        self.assertIn("iqn.2026-01.org.example:wire", log)

    def test_command_before_login(self):
        self.wire.command(bytes(16))
        self.wire.expect_close()

    def test_unknown_opcode(self):
        w = self.session()
        w.pdu(0x1f, data=b"what")
        op, head, data = w.recv()
        self.assertEqual((op, head[2]), (REJECT, 5))
        self.assertEqual(data[0] & 0x3f, 0x1f)
        self.assertEqual(len(data), 48)

    def test_target_opcode(self):
        w = self.session()
        w.pdu(0x25)
        op, head, _ = w.recv()
        self.assertEqual((op, head[2]), (REJECT, 4))

    def test_pdus_not_allowed_in_full_feature_phase(self):
        """Each PDU is rejected by its clause, and its CmdSN is not consumed (RFC
        7143 §7.3): login, the target's opcodes, SNACK (§11.16), keys of the login
        (§13)."""
        w = self.session()
        keys = ("MaxConnections=2", "HeaderDigest=CRC32C", "InitialR2T=Yes",
                "SessionType=Discovery", "InitiatorName=iqn.2026-01.x:y",
                "TargetName=" + self.daemon.target, "AuthMethod=None",
                "RDMAExtensions=Yes", "ErrorRecoveryLevel=2",
                "iSCSIProtocolLevel=2", "MaxRecvDataSegmentLength=1")
        rows = [(4, 4, k.encode() + b"\0") for k in keys]
        rows += [(op, 5, b"x") for op in (0x1c, 0x1f, 0x2f)]
        rows += [(op, 4, b"") for op in (3, 0x20, 0x21, 0x23, 0x25, 0x31)]
        rows += [(0x10, 3, b"")]
        for op, reason, data in rows:
            w.pdu(op, 0x87 if op == 3 else 0x80, data=data)
            got, head, back = w.recv()
            self.assertEqual((got, head[2]), (REJECT, reason), (op, data))
            self.assertEqual((back[0] & 0x3f, len(back)), (op, 48))
            self.assertEqual(int.from_bytes(head[28:32], "big"), w.cmdsn)

    def test_data_segment_too_long(self):
        w = self.session()
        w.send(Wire.bhs(0x41, 0x81, dsl=0xffffff))
        w.expect_close()

    def test_ahs_out_of_place(self):
        w = self.session()
        head = bytearray(Wire.bhs(0x40, 0x80))
        head[4] = 255
        w.send(bytes(head))
        w.send(bytes(1020))
        w.expect_close()

    def test_data_out_without_a_command(self):
        w = self.session()
        w.pdu(0x05, data=b"x" * 512, rest=struct.pack(
            ">IIIIIII", 0x1234, 0, 1, 0, 0, 0, 0))
        op, head, data = w.recv()
        self.assertEqual((op, head[2]), (REJECT, 9))
        self.assertEqual(data[0], 5)
        w.pdu(0x40, data=b"well?")
        op, _, data = w.recv()
        self.assertEqual((op, data), (NOP_IN, b"well?"))

    def data_out(self, w, itt, ttt, datasn, offset, data, final=True):
        w.put(w.bhs(5, 0x80 if final else 0, len(data), itt=itt,
                    rest=struct.pack(">IIIIIII", ttt, 0, 1, 0, datasn,
                                     offset, 0)), data)

    def test_data_out_with_wrong_tags(self):
        """RFC 7143 §11.17.1, note 2: the Data-Out is rejected with 09h; the command
        that waits for data continues."""
        w = self.ready()
        itt = w.command(b"\x2a" + bytes(7) + b"\x10" + bytes(7), 0xa0,
                        edtl=8192)
        op, head, _ = w.recv()
        self.assertEqual(op, 0x31)
        ttt = int.from_bytes(head[20:24], "big")
        for bad in ((itt, ttt ^ 0x10000), (itt + 99, ttt),
                    (itt + 98, 0xffffffff)):
            self.data_out(w, *bad, 0, 0, b"x" * 8192)
            op, head, data = w.recv()
            self.assertEqual((op, head[2]), (REJECT, 9), bad)
            self.assertEqual(data[0], 5)
        self.data_out(w, itt, ttt, 0, 0, b"y" * 8192)
        op, head, _ = w.recv()
        self.assertEqual((op, head[3]), (RESPONSE, 0))

    def test_data_out_out_of_place(self):
        """§11.7: the Data-Out is rejected; the command ends with CHECK CONDITION (§7.3)."""
        for datasn, offset in ((1, 0), (0, 512), (0, 8192), (0, 0xffffff00)):
            w = Wire(self.daemon)
            w.login()
            w.ready()
            itt = w.command(b"\x2a" + bytes(7) + b"\x10" + bytes(7), 0xa0,
                            edtl=8192)
            op, head, _ = w.recv()
            self.assertEqual(op, 0x31)
            ttt = int.from_bytes(head[20:24], "big")
            self.data_out(w, itt, ttt, datasn, offset, b"x" * 4096)
            op, head, _ = w.recv()
            self.assertEqual((op, head[2]), (REJECT, 9), (datasn, offset))
            op, head, data = w.recv()
            self.assertEqual((op, head[3], data[4] & 15), (RESPONSE, 2, 0x0b))
            w.close()

    def test_too_much_immediate_data(self):
        w = self.ready()
        w.command(b"\x2a" + bytes(7) + b"\x01" + bytes(7), 0xa0, edtl=512,
                  data=bytes(1024))
        op, head, data = w.recv()
        if op == REJECT:
            op, head, data = w.recv()
        self.assertEqual((op, head[3]), (RESPONSE, 2))
        self.assertEqual(data[4] & 15, 0x0b)  # ABORTED COMMAND

    def test_transport_failure_meets_an_aca(self):
        """Commands with NACA that meet an ACA and whose transport fails."""
        w = self.ready()
        w.command(bytes((0, 0, 0, 0, 1, 4)) + bytes(10))  # a reserved bit
        _, head, _ = w.recv()
        self.assertEqual(head[3], 2)
        for op, flags, data in ((0x28, 0xe0, b""), (0x2a, 0xa0, bytes(1024))):
            w.command(bytes((op, 0, 0, 0, 0, 0, 0, 0, 1, 4)) + bytes(6), flags,
                      edtl=512, data=data)
            answer, head, _ = w.recv()
            if answer == REJECT:
                answer, head, _ = w.recv()
            self.assertEqual((answer, head[3]), (RESPONSE, 0x30))
        w.pdu(0x42, 0x83)  # CLEAR ACA
        answer, head, _ = w.recv()
        self.assertEqual((answer, head[2]), (0x22, 0))
        w.command(bytes(16))
        _, head, _ = w.recv()
        self.assertEqual(head[3], 0)

    def test_write_stalls(self):
        """A peer that never sends its data does not delay other initiators."""
        w = self.ready()
        w.command(b"\x2a" + bytes(7) + b"\x10" + bytes(7), 0xa0, edtl=8192)
        op, _, _ = w.recv()
        self.assertEqual(op, 0x31)  # R2T

    def test_vanishes_with_commands_in_flight(self):
        for _ in range(20):
            w = Wire(self.daemon)
            w.login()
            for _ in range(32):
                w.command(b"\x28" + bytes(7) + b"\x80" + bytes(7), 0xc0,
                          edtl=65536)
            w.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                              struct.pack("ii", 1, 0))
            w.close()

    def test_reads_nothing(self):
        """A peer that sends requests and never reads uses limited memory."""
        w = self.ready()
        w.sock.setblocking(False)
        begin = time.monotonic()
        try:
            while time.monotonic() - begin < 2:
                w.command(b"\x28" + bytes(7) + b"\x80" + bytes(7), 0xc0,
                          edtl=65536)
        except (BlockingIOError, ConnectionError):
            pass
        self.assertLess(self.daemon.rss_kib(), 600 * 1024)

    def test_half_a_header(self):
        self.session().send(b"\x40\x80\0")

    def test_header_digest_wrong(self):
        w = self.session("HeaderDigest=CRC32C")
        w.pdu(0x40)
        w.send(b"\0\0\0\0")
        w.expect_close()

    def test_data_digest_wrong(self):
        """§7.8: the target sends Reject, and the connection stays."""
        w = self.session("DataDigest=CRC32C")
        w.pdu(0x40, data=b"good")
        w.send(b"\0\0\0\0")
        op, head, _ = w.recv()
        self.assertEqual((op, head[2]), (REJECT, 2))

    def test_descriptor_exhaustion(self):
        """Hundreds of silent connections: existing sessions continue."""
        idle = self.daemon.descriptors()
        socks = []
        for _ in range(200):
            s = socket.socket()
            s.settimeout(5)
            s.connect(self.daemon.address)
            socks.append(s)
        until(lambda: len(select.select(socks, [], [], 0)[0]) > 100,
              "the end of the connections beyond the limit for one peer")
        for s in socks:
            s.close()
        until(lambda: self.daemon.descriptors() <= idle, "the end of all connections")

    def open_and_close_sessions(self, count):
        idle = self.daemon.descriptors()
        for _ in range(count):
            w = Wire(self.daemon)
            w.login()
            w.close()
        until(lambda: self.daemon.descriptors() <= idle, "the end of the sessions")

    def test_no_leak_over_many_sessions(self):
        self.open_and_close_sessions(50)
        before = self.daemon.rss_kib()
        self.open_and_close_sessions(300)
        if not self.daemon.sanitized():  # the sanitizer does not return freed memory
            self.assertLess(self.daemon.rss_kib() - before, 4096)


if __name__ == "__main__":
    main()
