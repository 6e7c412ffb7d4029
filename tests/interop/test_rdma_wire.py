#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""An iSER initiator that builds its messages from bytes: correct behaviour by RFC
7145, and the answers to wrong messages; other sessions must not be affected."""
import os
import random
import signal
import socket
import struct
import subprocess
import time
import unittest

from harness import ISER, Daemon, Wire, main, over, patience, some_time, until, until_steady
from rdma_wire import (HELLO, READ_REQUEST, SEND, SEND_INV, WRITE, RdmaWire,
                       Terminated)
from test_iser_rdma import Control

REJECT, RESPONSE, LOGIN, NOP_IN, TMF = 0x3f, 0x21, 0x23, 0x20, 0x22
READ10, WRITE10 = b"\x28", b"\x2a"
ABORT_TASK, LUN_RESET = 1, 5


def rw(op, lba, blocks):
    return op + b"\0" + struct.pack(">IBH", lba, 0, blocks) + bytes(7)


class Good(unittest.TestCase):
    """§7.3: data by RDMA Write and Read, STags gone with the response."""

    def both(self, check, **kw):
        for start in ("rdma", "stream"):
            with Daemon("ram:8M") as d:
                w = RdmaWire(d, start, **kw)
                w.login()
                w.ready()
                check(w)
                w.close()

    def test_data_and_invalidation(self):
        def check(w):
            blob = os.urandom(65536)
            self.assertEqual(w.write10(5, blob), (0, b""))
            self.assertEqual(w.reads_asked, 1)
            self.assertEqual(w.read10(5, 128), (0, blob))
            self.assertEqual(len(w.invalidated), 2)
            self.assertEqual(w.memory, {})
        self.both(check)

    def test_no_invalidation_unless_it_is_allowed(self):
        """Flag 40h of IBTA A12, and no private data."""
        for cm in (b"\xc0\0\0\0", b""):
            with Daemon("ram:8M") as d:
                w = RdmaWire(d, cm=cm)
                self.assertEqual(w.reply_private, b"\xc0\0\0\0")
                w.login()
                w.ready()
                self.assertEqual(w.read10(0, 8), (0, bytes(4096)))
                self.assertEqual(w.invalidated, [])
                w.close()

    def test_immediate_data_and_the_rest(self):
        def check(w):
            blob = os.urandom(16384)
            for n in (512, 4096, 8192):
                cdb = rw(WRITE10, 0, 32)
                self.assertEqual(w.ask(cdb, data=blob, at_once=n), (0, b""))
                self.assertEqual(w.read10(0, 32), (0, blob))
            cdb = rw(WRITE10, 0, 16)
            asked = w.reads_asked
            self.assertEqual(w.ask(cdb, data=blob[:8192], at_once=8192)[0], 0)
            self.assertEqual(w.reads_asked, asked)
        self.both(check)

    def test_data_segment_length_without_data(self):
        """Writes of libiscsi: DataSegmentLength is set without data, and the STag
        covers all data. Without an STag, that is an error."""
        with Daemon("ram:8M") as d:
            w = RdmaWire(d)
            w.login()
            w.ready()
            blob = os.urandom(4096)
            stag, itt = w.register(bytearray(blob)), w.itt
            w.itt += 1
            rest = struct.pack(">III", 4096, w.cmdsn, 1) + rw(WRITE10, 0, 8)
            head = w.bhs(1, 0xa1, 4096, itt=itt, rest=rest)
            w.put(head, b"", w.header(1, 8, (stag, 0)))
            w.cmdsn += 1
            op, head, _ = w.recv()
            self.assertEqual((op, head[3]), (RESPONSE, 0))
            self.assertEqual(w.reads_asked, 1)
            self.assertEqual(w.read10(0, 8), (0, blob))
            w.close()

    def test_without_crc_it_still_has_one(self):
        """RFC 5044 §7.1: either end may request the CRC; iserd does."""
        self.both(lambda w: self.assertEqual(w.read10(0, 8)[0], 0), crc=False)

    def test_ping_is_echoed(self):
        def check(w):
            for n in (0, 1, 3, 4, 127):
                w.pdu(0x40, data=b"x" * n)
                op, _, data = w.recv()
                self.assertEqual((op, data), (NOP_IN, b"x" * n))
        self.both(check)

    def test_declared_reading_of_the_base_offset(self):
        """§6.9: the key of the initiator decides; the rules of --compat apply to an
        initiator without the key."""
        for compat in "linux", "strict":
            for declared in None, "Yes", "No":
                with Daemon("--compat", compat, "ram:8M") as d:
                    w = RdmaWire(d)
                    w.solicited_only = compat == "linux" if declared is None \
                        else declared == "Yes"
                    w.login(*(["TaggedBufferForSolicitedDataOnly=" + declared]
                              if declared else []))
                    w.ready()
                    blob = os.urandom(16384)
                    for n in 0, 512, 4096, 8192:
                        self.assertEqual(
                            w.ask(rw(WRITE10, 0, 32), data=blob, at_once=n),
                            (0, b""))
                        self.assertEqual(w.read10(0, 32), (0, blob),
                                         (compat, declared, n))
                    w.close()

    def test_extensions_refused_on_a_connection_in_rdma_mode(self):
        """§6.3: iSER-assisted mode MUST NOT be used if an end offers No; an
        initiator without the key is served, as by tgt."""
        with Daemon("ram:8M") as d:
            w = RdmaWire(d)
            w.KEYS = w.KEYS[:4] + ("RDMAExtensions=No",)
            op, head, _ = w.login()
            self.assertEqual((op, head[36:38]), (LOGIN, b"\2\0"))
            w.close()
            d.wait_for("RFC 7145 §6.3")
            w = RdmaWire(d)
            w.KEYS = w.KEYS[:4]
            op, head, _ = w.login()
            self.assertEqual((op, head[36:38]), (LOGIN, b"\0\0"))
            w.ready()
            w.close()

    def test_ping_of_an_initiator_that_reads_the_rfc(self):
        """§6.5: InitiatorRecvDataSegmentLength applies to an initiator that declares
        a key which Linux does not support."""
        with Daemon("ram:8M") as d:
            w = RdmaWire(d)
            w.login("MaxOutstandingUnexpectedPDUs=8")
            w.ready()
            w.pdu(0x40, data=b"x" * 4096)
            op, _, data = w.recv()
            self.assertEqual((op, data), (NOP_IN, b"x" * 4096))
            w.close()

    def test_hello_after_hello_required_no(self):
        """§6.10: with No there MUST NOT be a Hello exchange; an initiator without
        the key is an older one (§5.1.3)."""
        for declared in None, "No":
            with Daemon("ram:8M") as d:
                w = RdmaWire(d)
                w.login(*(["iSERHelloRequired=" + declared] if declared else []))
                w.untagged(SEND, struct.pack(">BBHxxxxxxxxxxxxxxxxxxxxxxxx",
                                             HELLO << 4, 0xaa, 4))
                if declared:
                    with self.assertRaises((Terminated, OSError, EOFError,
                                            AssertionError)):
                        w.next_send()
                    d.wait_for("RFC 7145 §10.1.3.4")
                else:
                    self.assertEqual(w.next_send()[0] >> 4, 3)
                w.close()

    def test_linux_gets_128_bytes_at_most(self):
        """ib_iser of Linux has no larger buffer, regardless of its declaration."""
        with Daemon("ram:8M") as d:
            w = RdmaWire(d)
            w.login()
            w.ready()
            w.pdu(0x40, data=b"x" * 4096)
            op, _, data = w.recv()
            self.assertEqual(op, NOP_IN)
            self.assertLessEqual(len(data), 128)
            w.close()

    def test_discovery_over_rdma(self):
        with Daemon("ram:8M") as d:
            w = RdmaWire(d)
            w.KEYS = ("InitiatorName=iqn.2026-01.org.example:wire",
                      "SessionType=Discovery")
            w.login()
            w.pdu(0x04, data=b"SendTargets=All\0", rest=struct.pack(
                ">III", 0xffffffff, w.cmdsn, 1))
            op, _, data = w.recv()
            self.assertEqual(op, 0x24)
            self.assertIn(b"TargetName=" + d.target.encode(), data)
            w.close()

    def test_extensions_in_a_discovery_session(self):
        """§6.3: the key is not allowed there; the session continues."""
        with Daemon("ram:8M") as d:
            for start in ("rdma", "tcp"):
                w = RdmaWire(d) if start == "rdma" else Wire(d)
                w.KEYS = ("InitiatorName=iqn.2026-01.org.example:wire",
                          "SessionType=Discovery", "RDMAExtensions=Yes")
                op, head, data = w.login()
                self.assertEqual((op, head[36:38]), (LOGIN, b"\0\0"), start)
                self.assertNotIn(b"RDMAExtensions=Yes", data)
                w.close()

    def test_reinstatement(self):
        """RFC 7143 §6.3.5: the same ISID ends the older session, for all
        combinations of transports."""
        with Control("ram:8M") as c:
            for first in ("rdma", "stream", "tcp"):
                for second in ("rdma", "stream", "tcp"):
                    a, b = (Wire(c.daemon) if s == "tcp" else
                            RdmaWire(c.daemon, s) for s in (first, second))
                    a.login()
                    a.ready()
                    op, head, _ = b.login()
                    self.assertEqual(head[36:38], b"\0\0", (first, second))
                    a.expect_close()
                    b.ready()
                    c.wait_for_sessions(1)
                    a.close()
                    b.close()
                    c.wait_for_sessions(0)


class Manage(unittest.TestCase):
    """Task management during data transfers."""

    def tmf(self, w, function, tag=0xffffffff, ref=0):
        w.pdu(0x42, 0x80 | function, rest=struct.pack(
            ">IIII", tag, w.cmdsn, 1, ref))

    def test_abort_while_a_read_is_unanswered(self):
        """§8.3: the target owns the buffer until its RDMA Read is complete; then the
        target answers the abort, and does not answer the command."""
        with Daemon("ram:8M") as d:
            for start in ("rdma", "stream"):
                w = RdmaWire(d, start)
                w.login()
                w.ready()
                w.answer_reads = False
                sn = w.cmdsn
                itt = w.command(rw(WRITE10, 0, 16), 0xa0, 8192,
                                b"z" * 8192)
                u = None
                while u is None or u[1] & 15 != READ_REQUEST:
                    u = w.next_ulpdu()
                w._serve_read(u[18:])
                self.tmf(w, ABORT_TASK, itt, sn)
                w.pdu(0x40)  # the answer comes after the target has seen the abort
                self.assertEqual(w.recv()[0], NOP_IN)
                sink, to, size, stag, at = w.unanswered
                w.tagged(2, sink, to, bytes(w.memory[stag][at:at + size]))
                op, head, _ = w.recv()
                self.assertEqual((op, head[2]), (TMF, 0))
                w.answer_reads = True
                self.assertEqual(w.read10(0, 16), (0, bytes(8192)))
                w.close()

    def test_ping_while_a_long_read_is_unanswered(self):
        """A ping, and a command of another task, do not wait for the data of the RDMA Read."""
        with Daemon("ram:8M") as d:
            for start in ("rdma", "stream"):
                w = RdmaWire(d, start)
                w.login()
                w.ready()
                w.answer_reads = False
                w.command(rw(WRITE10, 0, 512), 0xa0, 512 * 512, bytes(512 * 512))
                u = w.next_ulpdu()
                self.assertEqual(u[1] & 15, READ_REQUEST)
                w._serve_read(u[18:])
                begun = time.monotonic()
                w.pdu(0x40)
                self.assertEqual(w.recv()[0], NOP_IN)
                self.assertEqual(w.read10(600, 8), (0, bytes(4096)))
                self.assertLess(time.monotonic() - begun, patience(2))
                sink, to, size, stag, at = w.unanswered
                w.tagged(2, sink, to, bytes(w.memory[stag][at:at + size]))
                op, head, _ = w.recv()
                self.assertEqual((op, head[3]), (RESPONSE, 0))
                w.close()

    def test_abort_of_what_is_over(self):
        with Daemon("ram:8M") as d:
            w = RdmaWire(d)
            w.login()
            w.ready()
            self.tmf(w, ABORT_TASK, 0x7777, w.cmdsn - 1)
            op, head, _ = w.recv()
            self.assertEqual(op, TMF)
            self.assertIn(head[2], (0, 1))  # function complete, or task does not exist
            w.close()

    def stop_with_commands(self, control, job):
        """Stops the only initiator of a target while its commands are in progress: they
        wait for data, so the target cannot complete them."""
        def stopped():
            job.send_signal(signal.SIGSTOP)
            until_steady(lambda: control.sessions()[0]["in_flight"], 0.1)
            if control.sessions()[0]["in_flight"]:
                return True
            job.send_signal(signal.SIGCONT)
            return False
        control.wait_for_traffic(1)
        until(stopped, "a command in progress")

    def reset_of_stopped(self, control, w, job):
        """Resets the unit and continues the stopped initiator; returns the TMF response.
        Over iSER the response waits for RDMA Reads from that initiator, so the test
        waits for the answer to a ping and not for the response."""
        self.tmf(w, LUN_RESET)
        w.pdu(0x40)
        answers = []
        while NOP_IN not in [op for op, _, _ in answers]:
            answers.append(w.recv())
        control.sessions()  # a message to each worker, after the messages of the reset
        job.send_signal(signal.SIGCONT)
        while TMF not in [op for op, _, _ in answers]:
            answers.append(w.recv())
        return next(head[2] for op, head, _ in answers if op == TMF)

    @unittest.skipUnless(os.path.exists(ISER), "iser is not built")
    def test_reset_under_load(self):
        """LOGICAL UNIT RESET by another session: an initiator with commands in progress
        gets TASK ABORTED, and the unit continues. A reset between two commands would only
        establish a unit attention, after which libiser repeats the command."""
        for way in ("tcp", "rdma", "stream"):
            with Control("--workers", "2", "ram:64M") as c:
                job = subprocess.Popen(
                    [ISER, "bench", "--time", "600", "--rw", "randwrite", "--bs", "1M",
                     "--yes-overwrite", over(c.daemon.url + "?" + some_time(), way)],
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                self.addCleanup(job.kill)
                self.stop_with_commands(c, job)
                w = RdmaWire(c.daemon)
                w.login()
                self.assertEqual(self.reset_of_stopped(c, w, job), 0)
                text = job.communicate(timeout=patience(20))[0].decode()
                self.assertNotEqual(job.returncode, 0)
                self.assertRegex(text, "ended with TASK ABORTED", way)  # TAS = 1 (SAM-5 §5.3.1)
                w.ready()
                self.assertEqual(w.read10(0, 128)[0], 0)
                w.close()


class BadInput(unittest.TestCase):
    """One daemon; healthy sessions over TCP and RDMA must survive each test."""

    @classmethod
    def setUpClass(cls):
        # at this level no line is suppressed
        cls.daemon = Daemon("--log", "debug", "ram:8M")
        cls.healthy = []
        for i, w in enumerate((Wire(cls.daemon), RdmaWire(cls.daemon))):
            w.ISID = b"\x80\x12\x34\x99\x00" + bytes([i])
            w.login()
            w.ready()
            cls.healthy.append(w)

    @classmethod
    def tearDownClass(cls):
        for w in cls.healthy:
            w.close()
        with cls.daemon:
            pass

    def setUp(self):
        self.open = []
        self.log_start = len(self.daemon.messages())

    def tearDown(self):
        for w in self.open:
            w.close()
        for w in self.healthy:
            w.pdu(0x40, data=b"still there?")
            op, _, data = w.recv()
            self.assertEqual((op, data), (NOP_IN, b"still there?"))

    def wire(self, **kw):
        self.open.append(RdmaWire(self.daemon, **kw))
        return self.open[-1]

    def session(self, start="rdma"):
        w = self.wire(start=start)
        op, head, _ = w.login()
        self.assertEqual((op, head[36:38]), (LOGIN, b"\0\0"))
        return w.ready()

    def refused(self, w, log):
        """The connection ends, by Terminate or at once; the log has the reason."""
        try:
            while True:
                w.next_send()
        except (EOFError, ConnectionError, Terminated) as e:
            self.end = e
        w.expect_close()
        until(lambda: log in self.daemon.messages()[self.log_start:],
              lambda: "%r in: %s" % (log, self.daemon.messages()[self.log_start:]))

    # ---- MPA ----

    def test_not_quite_mpa(self):
        for key in (b"MPA ID Req Framf", b"MMMMMMMMMMMMMMMM",
                    b"MPA ID Rep Frame"):
            w = self.wire(connect=False)
            w.mpa_request(key=key)
            w.expect_close()

    def test_mpa_private_data_too_long(self):
        w = self.wire(connect=False)
        w.sock.sendall(b"MPA ID Req Frame" + struct.pack(">BBH", 0x40, 1, 513)
                       + bytes(513))
        w.expect_close()

    def test_mpa_unknown_revision(self):
        w = self.wire(connect=False)
        w.mpa_request(revision=9)
        w.expect_close()

    def test_mpa_request_in_pieces(self):
        w = self.wire(connect=False)
        for byte in b"MPA ID Req Frame" + b"\x40\x01\0\4\x80\0\0\0":
            w.sock.sendall(bytes([byte]))
            time.sleep(0.002)
        w.mpa_reply()
        w.in_rdma = True
        self.assertEqual(w.login()[1][36:38], b"\0\0")

    def test_noise_after_mpa(self):
        rnd = random.Random(4)
        for _ in range(30):
            w = self.wire()
            try:
                w.sock.sendall(rnd.randbytes(rnd.randrange(1, 3000)))
                w.sock.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            w.expect_close()

    def test_bits_flipped_in_a_login(self):
        """Without a CRC that detects them: iserd must survive every result."""
        rnd = random.Random(5)
        for _ in range(60):
            w = self.wire()
            real, flip = w.fpdu, rnd.randrange(0, 8 * 120)

            def fpdu(u, spoil=0):
                u = bytearray(u)
                if flip // 8 < len(u):
                    u[flip // 8] ^= 1 << flip % 8
                real(bytes(u), spoil)
            w.fpdu = fpdu
            w.sock.settimeout(0.3)
            try:
                w.login()
            except (OSError, EOFError, AssertionError, Terminated):
                pass
            w.close()

    def test_fpdu_crc_wrong(self):
        w = self.session()
        real = w.fpdu
        w.fpdu = lambda u: real(u, spoil=1)
        w.pdu(0x40)
        self.refused(w, "CRC")
        self.assertIsInstance(self.end, Terminated)

    # ---- DDP, RDMAP ----

    def test_ddp_version(self):
        w = self.session()
        w.untagged(SEND, bytes(76), ddp=0x00)
        self.refused(w, "DDP")

    def test_rdmap_opcode(self):
        w = self.session()
        w.untagged(0xe, bytes(76))
        self.refused(w, "opcode")

    def test_queue_that_is_not_there(self):
        w = self.session()
        w.msn[7] = 1
        w.untagged(SEND, bytes(76), queue=7)
        self.refused(w, "queue")

    def test_message_number_gap(self):
        w = self.session()
        w.untagged(SEND, bytes(76), msn=w.msn[0] + 1)
        self.refused(w, "MSN")

    def test_write_to_no_memory(self):
        w = self.session()
        w.tagged(WRITE, 0x12345678, 0, bytes(64))
        self.refused(w, "STag")
        self.assertIsInstance(self.end, Terminated)

    def test_rdma_read_from_a_target(self):
        """A target answers no RDMA Reads: its IRD is 0."""
        w = self.session()
        w.untagged(READ_REQUEST, struct.pack(">IQIIQ", 1, 0, 64, 0x4242, 0),
                   queue=1)
        self.refused(w, "no buffer")

    def test_invalidates_what_is_not_there(self):
        w = self.session()
        w.untagged(SEND_INV, RdmaWire.header() + Wire.bhs(0x40),
                   stag=0x12345)
        self.refused(w, "invalidated")

    def test_more_sends_than_there_is_room_for(self):
        """§8.1: 4,000 pings without reading the answers."""
        w = self.session()
        w.sock.settimeout(3)
        try:
            for _ in range(4000):
                w.pdu(0x40, data=b"x" * 64)
        except OSError:
            pass
        self.assertLess(self.daemon.rss_kib(), 300 * 1024)

    # ---- iSER ----

    def test_login_shorter_than_the_iser_header(self):
        """A kernel had this vulnerability."""
        for n in (0, 1, 12, 27):
            w = self.wire()
            w.untagged(SEND, RdmaWire.header()[:n])
            self.refused(w, "RFC 7145")

    def test_login_shorter_than_its_header(self):
        for n in (28, 29, 75):
            w = self.wire()
            w.untagged(SEND, (RdmaWire.header() + Wire.bhs(0x43, 0x87))[:n])
            self.refused(w, "RFC 7145 §9.2")

    def test_login_data_shorter_than_its_length(self):
        w = self.wire()
        w.untagged(SEND, RdmaWire.header() + Wire.bhs(0x43, 0x87, dsl=4096) +
                   bytes(100))
        self.refused(w, "RFC 7145 §9.2")

    def test_login_longer_than_its_room(self):
        w = self.wire()
        w.untagged(SEND, RdmaWire.header() + Wire.bhs(0x43, 0x87, dsl=16384) +
                   bytes(16384))
        self.refused(w, "too long")

    def test_unknown_iser_opcode(self):
        for opcode in (0, 4, 15):
            w = self.session()
            w.untagged(SEND, RdmaWire.header(opcode) + Wire.bhs(0x40))
            self.refused(w, "RFC 7145 §9.1")

    def test_hello_out_of_place(self):
        """§10.1.3.4: before the login is over, and in the middle."""
        hello = bytes([HELLO << 4, 0xaa, 0, 4]) + bytes(24)
        w = self.wire()
        w.untagged(SEND, hello)
        self.refused(w, "Hello")
        w = self.session()
        w.untagged(SEND, hello)
        self.refused(w, "Hello")

    def test_command_before_login(self):
        w = self.wire()
        w.command(bytes(16))
        self.refused(w, "before login")

    def test_read_without_an_stag(self):
        w = self.session()
        w.command(rw(READ10, 0, 8), 0xc0, 4096, header=RdmaWire.header())
        self.refused(w, "RFC 7145 §7.3.1")

    def test_write_without_an_stag(self):
        w = self.session()
        w.command(rw(WRITE10, 0, 8), 0xa0, 4096, b"x" * 4096,
                  header=RdmaWire.header())
        self.refused(w, "RFC 7145 §9.2")

    def test_solicited_data_out(self):
        w = self.session()
        w.pdu(0x05, data=b"x" * 512, rest=struct.pack(
            ">IIIIIII", 0x1234, 0, 1, 0, 0, 0, 0))
        self.refused(w, "RFC 7145 §7.3.4")

    def test_targets_opcodes(self):
        """An initiator must not send R2T, Data-In and responses."""
        for op in (0x31, 0x25, 0x21, 0x20):
            w = self.session()
            w.pdu(op)
            try:
                op, head, _ = w.recv()
                self.assertEqual(op, REJECT)
            except (EOFError, ConnectionError, Terminated):
                pass

    def test_opcode_that_is_none(self):
        w = self.session()
        w.pdu(0x1f)
        op, head, data = w.recv()
        self.assertEqual((op, head[2]), (REJECT, 5))
        self.assertEqual(data[0] & 0x3f, 0x1f)

    def test_stag_of_a_read_is_wrong(self):
        """The target writes to the given STag: the initiator's RDMA layer refuses,
        and the target ends its side."""
        w = self.session()
        w.command(rw(READ10, 0, 8), 0xc0, 4096, header=RdmaWire.header(
            flags=4, read=(0xdead, 0)))
        with self.assertRaises(AssertionError):
            w.recv()

    def test_sends_stop_in_the_middle(self):
        for cut in (1, 3, 20, 60):
            w = self.session()
            w.fpdu = lambda u: w.sock.sendall(
                (struct.pack(">H", len(u)) + u)[:cut])
            w.pdu(0x40, data=b"x" * 100)

    def test_vanishes_with_commands_in_flight(self):
        for i in range(10):
            w = self.session("stream" if i % 2 else "rdma")
            for _ in range(16):
                w.command(rw(READ10, 0, 128), 0xc0, edtl=65536)
                w.command(rw(WRITE10, 0, 128), 0xa0, 65536, bytes(65536))
            w.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                              struct.pack("ii", 1, 0))
            w.sock.close()

    def test_reads_nothing(self):
        w = self.session()
        w.sock.setblocking(False)
        begin = time.monotonic()
        try:
            while time.monotonic() - begin < 2:
                w.command(rw(READ10, 0, 128), 0xc0, edtl=65536)
        except (BlockingIOError, ConnectionError):
            pass
        self.assertLess(self.daemon.rss_kib(), 600 * 1024)

    def test_no_mpa_request_after_rdma_extensions(self):
        """§5.1.2: after RDMAExtensions=Yes only an MPA Request or the end is allowed."""
        w = self.wire(start="stream")
        Wire.login(w)
        w.sock.sendall(Wire.bhs(0x40))
        w.expect_close()


class Logout(unittest.TestCase):
    """After the Logout Response the initiator closes the connection; the session has ended."""

    LEAVING_MAX = 32  # of each worker

    def log_out(self, daemon, start="rdma"):
        w = RdmaWire(daemon, start)
        w.login()
        w.ready()
        w.pdu(0x46, 0x80, itt=7)
        op, head, _ = w.recv()
        self.assertEqual((op, head[2]), (0x26, 0))
        return w

    @staticmethod
    def is_open(w):
        w.sock.setblocking(False)
        try:
            return w.sock.recv(1) != b""
        except BlockingIOError:
            return True
        finally:
            w.sock.settimeout(patience(10))

    def test_the_initiator_closes_first(self):
        """Linux counts a connection that the target closes as lost. RFC 7145 §5.2.2."""
        with Control("ram:8M") as c:
            before = c.daemon.descriptors()
            w = self.log_out(c.daemon)
            c.wait_for_sessions(0)
            time.sleep(1)  # longer than a FIN of iserd waits for that of the peer
            self.assertTrue(self.is_open(w))
            self.assertEqual(c.daemon.messages().count("ended: logged out"), 1)
            w.pdu(0x40, data=b"late")  # is not processed
            self.assertTrue(self.is_open(w))
            w.close()
            until(lambda: c.daemon.descriptors() == before, "the connection is closed")

    def test_the_target_closes_first(self):
        """By the letter of the RFCs: RFC 7143 §11.14, RFC 7145 §5.2.2."""
        with Daemon("ram:8M") as d:
            self.log_out(d, "stream").expect_close()
        with Daemon("--compat", "strict", "ram:8M") as d:
            self.log_out(d).expect_close()
        with Daemon("ram:8M") as d:
            w = Wire(d)
            w.login()
            w.pdu(0x46, 0x80, itt=7)
            self.assertEqual(w.recv()[0], 0x26)
            w.expect_close()

    def test_silent_peers_hold_no_places(self):
        with Control("--workers", "1", "--max-sessions", "4", "--max-startups", "9:30:9",
                     "--login-rate", "0", "ram:8M") as c:
            before = c.daemon.descriptors()
            silent = [self.log_out(c.daemon) for _ in range(3 * self.LEAVING_MAX)]
            c.wait_for_sessions(0)
            until(lambda: c.daemon.descriptors() <= before + self.LEAVING_MAX,
                  lambda: "%d descriptors" % c.daemon.descriptors())
            self.assertTrue(self.is_open(silent[-1]))
            self.assertFalse(self.is_open(silent[0]))
            begin = time.monotonic()
            self.assertEqual(c.stop(), 0)
            self.assertLess(time.monotonic() - begin, patience(3))


class HalfOpen(unittest.TestCase):
    """Incomplete logins are dropped after a while, and delay no other initiator."""

    def test_times_out(self):
        with Control("ram:8M") as c:
            silent = socket.create_connection(c.daemon.address)
            word = socket.create_connection(c.daemon.address)
            word.sendall(b"MPA ID")
            asked = RdmaWire(c.daemon)     # and no login
            half = RdmaWire(c.daemon)      # half a login
            half.fpdu(struct.pack(">BBIIII", 1, 0x43, 0, 0, 1, 0) + bytes(50))
            agreed = RdmaWire(c.daemon, "stream")
            Wire.login(agreed)             # and no MPA Request
            began = time.monotonic()
            for s in (silent, word, asked.sock, half.sock, agreed.sock):
                s.settimeout(patience(25))
                try:
                    while s.recv(4096):
                        pass
                except ConnectionError:
                    pass
                s.close()
            took = time.monotonic() - began
            self.assertTrue(4 < took < patience(10), took)
            c.wait_for_sessions(0)
            text = c.daemon.messages()
            self.assertIn("the peer sent nothing", text)
            w = RdmaWire(c.daemon)
            w.login()
            w.ready()
            w.close()


if __name__ == "__main__":
    main()
