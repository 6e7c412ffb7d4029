#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Bad input from the network: the right answer, other sessions unharmed."""
import random
import socket
import struct
import time
import unittest

from harness import Daemon, Wire, main

REJECT, RESPONSE, LOGIN, NOP_IN = 0x3f, 0x21, 0x23, 0x20


class BadInput(unittest.TestCase):
    """One daemon; a healthy session stays on it through every test."""

    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon("ram:8M")
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
        """Takes the unit attention of a new nexus."""
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

    def test_data_out_nobody_asked_for(self):
        w = self.session()
        w.pdu(0x05, data=b"x" * 512, rest=struct.pack(
            ">IIIIIII", 0x1234, 0, 1, 0, 0, 0, 0))
        w.pdu(0x40, data=b"well?")
        op, _, data = w.recv()
        if op == REJECT:
            op, _, data = w.recv()
        self.assertEqual((op, data), (NOP_IN, b"well?"))

    def test_too_much_immediate_data(self):
        w = self.ready()
        w.command(b"\x2a" + bytes(7) + b"\x01" + bytes(7), 0xa0, edtl=512,
                  data=bytes(1024))
        op, head, data = w.recv()
        if op == REJECT:
            op, head, data = w.recv()
        self.assertEqual((op, head[3]), (RESPONSE, 2))
        self.assertEqual(data[4] & 15, 0x0b)  # ABORTED COMMAND

    def test_write_stalls(self):
        """A peer that never sends its data holds up nobody else."""
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
        """A peer that asks and never reads is bounded."""
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
        """§7.8: Reject, the connection stays."""
        w = self.session("DataDigest=CRC32C")
        w.pdu(0x40, data=b"good")
        w.send(b"\0\0\0\0")
        op, head, _ = w.recv()
        self.assertEqual((op, head[2]), (REJECT, 2))

    def test_descriptor_exhaustion(self):
        """Hundreds of silent connections: those that exist go on."""
        socks = []
        for _ in range(200):
            s = socket.socket()
            s.settimeout(5)
            s.connect(self.daemon.address)
            socks.append(s)
        closed = 0
        for s in socks:
            s.settimeout(0.02)
            try:
                closed += s.recv(1) == b""
            except TimeoutError:
                pass
            except ConnectionError:
                closed += 1
        for s in socks:
            s.close()
        self.assertGreater(closed, 100)  # beyond the limit for one peer
        time.sleep(0.2)

    def test_no_leak_over_many_sessions(self):
        for _ in range(50):
            w = Wire(self.daemon)
            w.login()
            w.close()
        time.sleep(0.2)
        before = self.daemon.rss_kib()
        for _ in range(300):
            w = Wire(self.daemon)
            w.login()
            w.close()
        time.sleep(0.3)
        if not self.daemon.sanitized():  # which keeps freed memory
            self.assertLess(self.daemon.rss_kib() - before, 4096)


if __name__ == "__main__":
    main()
