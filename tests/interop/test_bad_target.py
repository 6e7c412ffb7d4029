#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""iser with targets that build wrong messages from bytes: iser must end soon, with an
error that names the problem, and not by a signal."""
import random
import socket
import struct
import subprocess
import threading
import unittest

from harness import ISER, exactly, main, patience, some_time
from rdma_wire import (HELLO_REPLY, READ_REQUEST, READ_RESPONSE, SEND,
                       SEND_INV, TERMINATE, WRITE, Rdma, RdmaWire)
from test_iser import BUILT

IQN = "iqn.2026-01.org.example:bad"
LOGIN_RESPONSE, RESPONSE, DATA_IN, R2T, NOP_IN = 0x23, 0x21, 0x25, 0x31, 0x20
KEYS = (b"RDMAExtensions=Yes\0InitiatorRecvDataSegmentLength=4096\0"
        b"TargetRecvDataSegmentLength=8192\0InitialR2T=Yes\0"
        b"ImmediateData=Yes\0TargetPortalGroupTag=1\0")


class Peer(Rdma):
    """The target end of one connection."""

    def __init__(self, sock):
        self.sock = sock
        self.rdma_init()
        self.statsn = 1

    def _exactly(self, n):
        return exactly(self.sock, n)

    def mpa(self, key=b"MPA ID Rep Frame", flags=0x40, revision=None,
            private=None, length=None):
        head = self._exactly(20)
        mine = self._exactly(int.from_bytes(head[18:20], "big"))
        if private is None:  # the request, mirrored
            private = mine[2:4] + mine[0:2] + b"\xc0\0\0\0"
        if revision is None:
            revision = head[17]
        if revision == 2:
            flags |= head[16] & 0x10
        self.sock.sendall(key + struct.pack(
            ">BBH", flags, revision,
            len(private) if length is None else length) + private)

    def request(self):
        """Returns the next request: (opcode, iSER header, BHS)."""
        while True:
            u = self.next_ulpdu()
            if u[0] & 0x80 or u[1] & 15 == READ_RESPONSE:
                continue  # Ready To Receive, or data
            self.assembled += u[18:]
            if u[0] & 0x40:
                data, self.assembled = self.assembled, b""
                return data[28] & 0x3f, data[:28], data[28:76]

    def pdu(self, op, itt, flags=0x80, byte2=0, status=0, rest=b"", data=b""):
        head = struct.pack(">BBBBI", op, flags, byte2, status, len(data))
        head += bytes(8) + itt + bytes(4)
        head += struct.pack(">III", self.statsn, 1, 64) + rest
        self.statsn += 1
        return head.ljust(48, b"\0") + data

    def say(self, pdu, header=None, opcode=SEND, stag=0):
        self.untagged(opcode, (header or RdmaWire.header()) + pdu, stag=stag)

    def login(self):
        self.mpa()
        _, _, bhs = self.request()
        self.itt, self.isid = bhs[16:20], bhs[8:14]
        self.say(self.login_response())

    def login_response(self, flags=0x87, status=b"\0\0", data=KEYS):
        p = bytearray(self.pdu(LOGIN_RESPONSE, self.itt, flags, data=data))
        p[8:16] = self.isid + b"\0\1"
        p[36:38] = status
        return bytes(p)

    def command(self):
        """Serves the login; returns iSER header and ITT of the first command."""
        self.login()
        _, header, bhs = self.request()
        return header, bhs[16:20]


def read_to_end(sock):
    while sock.recv(65536):
        pass


class Bad:
    """Listens; the case serves each connection."""

    def __init__(self, behave):
        self.behave = behave
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                sock = self.listener.accept()[0]
            except OSError:
                return
            sock.settimeout(patience(5))
            try:
                self.behave(Peer(sock))
                # a close with unread data would be a reset, which discards the data
                # that the initiator has not read yet
                sock.shutdown(socket.SHUT_WR)
                read_to_end(sock)
            except (OSError, EOFError, AssertionError):
                pass
            sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


@BUILT
class Target(unittest.TestCase):
    def check(self, behave, text="", keys="start=rdma", what="info"):
        with Bad(behave) as t:
            url = "iser://127.0.0.1:%d/%s/0?%s&%s" % (t.port, IQN, some_time(), keys)
            args = [ISER, what, url]
            if what == "bench":
                args[2:2] = ["--rw", "randwrite", "--yes-overwrite", "--bs",
                             "64k", "--time", "1"]
            done = subprocess.run(args, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=patience(30),
                                  stdin=subprocess.DEVNULL)
        printed = done.stdout.decode()
        self.assertGreater(done.returncode, 0, printed)  # not a signal
        self.assertIn("iser: ", printed)
        self.assertIn(text, printed)
        for word in ("runtime error", "AddressSanitizer", "LeakSanitizer"):
            self.assertNotIn(word, printed)

    # ---- MPA ----

    def test_closes(self):
        self.check(lambda p: None, "connection")

    def test_closes_after_the_request(self):
        self.check(lambda p: p._exactly(20), "connection")

    def test_resets(self):
        def reset(p):
            p.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                              struct.pack("ii", 1, 0))
            p.sock.close()
        self.check(reset, "onnect")

    def test_replies_with_noise(self):
        self.check(lambda p: p.sock.sendall(b"x" * 100))

    def test_replies_with_a_request(self):
        self.check(lambda p: p.mpa(key=b"MPA ID Req Frame"))

    def test_rejects(self):
        self.check(lambda p: p.mpa(flags=0x60), "denied")

    def test_other_revision(self):
        self.check(lambda p: p.mpa(revision=9, private=b""))

    def test_reply_with_too_much(self):
        self.check(lambda p: p.mpa(private=bytes(600)))

    def test_reply_shorter_than_its_length(self):
        self.check(lambda p: p.mpa(private=b"ab", length=200))

    def test_noise_after_the_reply(self):
        rnd = random.Random(6)
        for n in (3, 50, 3000):
            def noise(p):
                p.mpa()
                p.sock.sendall(rnd.randbytes(n))
            self.check(noise)

    # ---- login ----

    def test_wrong_login_responses(self):
        """Responses shorter than the headers, with other opcodes, without data."""
        sends = (b"", bytes(27), RdmaWire.header() + bytes(20),
                 RdmaWire.header(9) + bytes(48),
                 RdmaWire.header(HELLO_REPLY),
                 RdmaWire.header() + struct.pack(">BBBBI", 0x23, 0x87, 0, 0,
                                                 4096).ljust(48, b"\0"),
                 RdmaWire.header() + bytes([NOP_IN]) + bytes(47),
                 RdmaWire.header() + bytes([0x01, 0x80]) + bytes(46),
                 RdmaWire.header() + bytes([0x23, 0x87]) + bytes(46) +
                 bytes(20000))
        for data in sends:
            def answer(p):
                p.mpa()
                p.request()
                p.untagged(SEND, data)
            self.check(answer)

    def test_login_refused(self):
        def refuse(p):
            p.mpa()
            bhs = p.request()[2]
            p.itt, p.isid = bhs[16:20], bhs[8:14]
            p.say(p.login_response(0, b"\x02\x03", b""))
        self.check(refuse, "login")

    def test_terminate_in_place_of_a_login_response(self):
        def terminate(p):
            p.mpa()
            p.request()
            p.untagged(TERMINATE, b"\x02\x05\0\0", queue=2)
        self.check(terminate)

    # ---- RDMA ----

    def test_write_out_of_bounds(self):
        def write(p):
            h, _ = p.command()
            stag, base = struct.unpack(">IQ", h[16:28])
            p.tagged(WRITE, stag, base + 2 ** 32, bytes(64))
        self.check(write)

    def test_write_to_another_stag(self):
        def write(p):
            h, _ = p.command()
            stag, base = struct.unpack(">IQ", h[16:28])
            p.tagged(WRITE, stag ^ 0x10101, base, bytes(64))
        self.check(write)

    def test_read_of_what_may_only_be_written(self):
        def read(p):
            h, _ = p.command()
            stag, base = struct.unpack(">IQ", h[16:28])
            p.untagged(READ_REQUEST, struct.pack(">IQIIQ", 1, 0, 8, stag,
                                                 base), queue=1)
        self.check(read)

    def test_read_past_the_end(self):
        """An RDMA Read beyond a write buffer must not return other memory."""
        seen = []

        def read(p):
            p.login()
            _, h, bhs = p.request()
            while not h[0] & 8:
                if bhs[32] == 0x9e:  # READ CAPACITY(16) gets an answer
                    p.tagged(WRITE, *struct.unpack(">IQ", h[16:28]),
                             struct.pack(">QI20x", 99999, 512))
                p.say(p.pdu(RESPONSE, bhs[16:20]))
                _, h, bhs = p.request()
            stag, base = struct.unpack(">IQ", h[4:16])
            p.untagged(READ_REQUEST, struct.pack(
                ">IQIIQ", 1, 0, 1 << 20, stag, base), queue=1)
            while not seen or seen[-1] == SEND:  # further commands
                seen.append(p.next_ulpdu()[1] & 15)
        self.check(read, what="bench")
        self.assertEqual(seen[-1], TERMINATE)

    def test_invalidates_another_stag(self):
        def invalidate(p):
            h, itt = p.command()
            stag = int.from_bytes(h[16:20], "big")
            p.say(p.pdu(RESPONSE, itt), opcode=SEND_INV, stag=stag ^ 1)
        self.check(invalidate)

    def test_data_type_pdus(self):
        """RFC 7145 §7.2: data-type PDUs are never sent as messages."""
        for op in (DATA_IN, R2T):
            def send(p):
                _, itt = p.command()
                p.say(p.pdu(op, itt, data=b"x" * 16 if op == DATA_IN else b""))
            self.check(send)

    def test_response_to_unknown_tag(self):
        """A response with an unknown tag, then silence: the command times out."""
        def send(p):
            p.command()
            p.say(p.pdu(RESPONSE, b"\xde\xad\xbe\xef"))
            p.sock.settimeout(patience(20))
            read_to_end(p.sock)
        self.check(send)

    def test_impossible_residual(self):
        """The residual exceeds the expected length: no data, and no crash."""
        def send(p):
            for _ in range(3):
                _, itt = p.command() if p.statsn == 1 else \
                    (None, p.request()[2][16:20])
                p.say(p.pdu(RESPONSE, itt, 0x82,
                            rest=struct.pack(">III", 0, 0, 0xffffffff)))
        self.check(send)

    # ---- RDMA after a login ----

    def stream_login(self, p):
        head = p._exactly(48)
        n = int.from_bytes(head[5:8], "big")
        p._exactly(n + -n % 4)
        p.itt, p.isid = head[16:20], head[8:14]
        data = KEYS + b"\0" * (-len(KEYS) % 4)
        pdu = p.login_response()
        p.sock.sendall(pdu[:48] + data)

    def test_agrees_to_rdma_and_closes(self):
        self.check(self.stream_login, "RDMAExtensions=Yes",
                   keys="start=stream")

    def test_agrees_to_rdma_and_replies_with_noise(self):
        def noise(p):
            self.stream_login(p)
            p._exactly(20)
            p.sock.sendall(b"y" * 64)
        self.check(noise, "RDMAExtensions=Yes", keys="start=stream")

    def test_octets_after_the_login_response(self):
        """Octets that follow the Login Response belong to MPA."""
        def early(p):
            self.stream_login(p)
            p.sock.sendall(b"MPA ID Rep Framf" + bytes(4))
        self.check(early, "RDMAExtensions=Yes", keys="start=stream")

    def test_agrees_to_rdma_and_continues_in_iscsi(self):
        def stay(p):
            self.stream_login(p)
            p._exactly(20)
            p.sock.sendall(p.pdu(NOP_IN, b"\xff" * 4))
        self.check(stay, "RDMAExtensions=Yes", keys="start=stream")


if __name__ == "__main__":
    main()
