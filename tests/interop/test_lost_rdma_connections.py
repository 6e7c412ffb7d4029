#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""ErrorRecoveryLevel 2 of iserd over iSER (RFC 7145 §7.3.3, §10.2.2; RFC 7143 §7.1.4.3,
§7.2.2): lost connections in the middle of RDMA, TASK REASSIGN with new STags, and wrong
ones. The initiator is sockets and bytes, with the RDMA of rdma_wire.py; the last class has
libiser and a path that cuts."""
import os
import struct
import time
import unittest

from fake_target import DATA_OUT, LOGIN, NOP_OUT, text_of
from harness import Daemon, Wire, main
from iser_target import IserConn
from lying_target import BLOCK, READS, pattern
from mcs_target import McsTarget, SessionConn
from rdma_wire import (CONTROL, READ_REQUEST, READ_RESPONSE, RSV, SEND, TERMINATE, WRITE, WSV, Rdma,
                       RdmaWire, Terminated)
from test_connections import Copies
import test_lost_connections as tcp
from test_lost_connections import (ALLEGIANT, DONE, LEVEL, NO_REASSIGN, NO_TASK, REJECTED,
                                   Recovering, word)
from test_mcs import ISID, NO_SESSION, NOP_IN, REJECT, RESPONSE, TMF_RSP, Conn

STARTS = ("rdma", "stream")
BURST = 16384
RDMA_KEYS = ("RDMAExtensions=Yes", "InitiatorRecvDataSegmentLength=8192",
             "TargetRecvDataSegmentLength=8192", "TaggedBufferForSolicitedDataOnly=Yes")


class RdmaConn(Rdma, Conn):
    """A connection that begins in RDMA mode, or enters it after the login."""

    def __init__(self, session, address, cid, start):
        Conn.__init__(self, session, address, cid)
        self._exactly = self.exactly
        self.rdma_init()
        self.start, self.in_rdma, self.tags = start, False, b""
        if start == "rdma":
            self.begin()

    def begin(self):
        self.mpa_request(b"\x80\0\0\0" if self.start == "rdma" else b"")
        assert not self.mpa_reply() & 0x20, "rejected"
        self.in_rdma = True

    def login(self, tsih, cmdsn, keys=(), **kw):
        answer = Conn.login(self, tsih, cmdsn, keys, **kw)
        if not answer[0] and not self.in_rdma:
            self.begin()
        return answer

    def put(self, op, flags=0x80, word3=b"\0" * 8, itt=0, rest=b"", data=b""):
        if not self.in_rdma:
            Conn.put(self, op, flags, word3, itt, rest, data)
            return
        head = struct.pack(">BBBBI", op, flags, 0, 0, len(data)) + word3 + struct.pack(">I", itt) + rest
        self.untagged(SEND, (self.tags or RdmaWire.header()) + head.ljust(48, b"\0") + data)
        self.tags = b""

    def pdu(self):
        if not self.in_rdma:
            return Conn.pdu(self)
        data = self.next_send()
        assert data[0] >> 4 == CONTROL, "iSER opcode %d" % (data[0] >> 4)
        n = int.from_bytes(data[33:36], "big")
        return data[28:76], data[76:76 + n]

    def read_request(self):
        """The next RDMA Read Request, which the test may answer:
        (sink, its offset, size, source, its offset)."""
        u = self.next_ulpdu()
        assert not u[0] & 0x80 and u[1] & 15 == READ_REQUEST, "opcode %d" % (u[1] & 15)
        return struct.unpack(">IQIIQ", u[18:])

    def take_read(self, length, answered):
        """Takes the data of a READ and its response, in the order of the RFC, and answers so many of
        the RDMA Reads of the A bit."""
        at = asked = 0
        while at < length or asked < length // BURST - 1:
            u = self.next_ulpdu()
            if u[0] & 0x80:
                assert struct.unpack(">IQ", u[2:14]) == (self.next_stag, at), "RDMA Write out of order"
                at += len(u) - 14
                continue
            assert u[1] & 15 == READ_REQUEST, "opcode %d" % (u[1] & 15)
            sink, sink_to, size = struct.unpack(">IQI", u[18:34])
            asked += 1
            assert (size, at) == (0, asked * BURST), "RDMA Read of %d bytes after %d" % (size, at)
            if asked <= answered:
                self.tagged(READ_RESPONSE, sink, sink_to, b"")
        assert self.pdu()[0][0] == RESPONSE

    def answer(self, request):
        self._serve_read(struct.pack(">IQIIQ", *request))


class RdmaSession(Recovering):
    """A session at ErrorRecoveryLevel 2 over iSER."""

    def __init__(self, test, daemon, start="rdma", **kw):
        self.start, self.buffers = start, {}
        super().__init__(test, daemon, **kw)
        test.assertEqual(self.keys["RDMAExtensions"], "Yes")

    def connect(self, cid):
        return RdmaConn(self, self.daemon.address, cid, self.start)

    def names(self, **change):
        names = super().names(**change)
        return names if self.tsih else names + list(RDMA_KEYS)

    def command(self, cid, cdb=bytes(16), flags=0x80, edtl=0, cmdsn=None, data=b""):
        """Advertises the buffer of the command, self.buffers[itt]."""
        if edtl:
            self.buffers[self.itt + 1] = bytearray(data or bytes(edtl))
            self.advertise(cid, self.itt + 1, write=flags & 0x20)
        return super().command(cid, cdb, flags, edtl, cmdsn)

    def advertise(self, cid, itt, write=False, stag=None):
        """The next PDU on this connection names the buffer of the command."""
        c = self.conns[cid]
        where = (stag or c.register(self.buffers[itt]), 0)
        c.tags = RdmaWire.header(CONTROL, WSV if write else RSV, **{"write" if write else "read": where})

    def write(self, cid, lba, data):
        return self.command(cid, b"\x2a\0" + struct.pack(">IBH", lba, 0, len(data) // 512),
                            0xa0, len(data), data=data)

    def reads_back(self, cid, lba, data):
        itt = self.read(cid, lba, len(data) // 512)
        status, _ = self.status(cid, itt)
        self.test.assertEqual((status, bytes(self.buffers.pop(itt))), (0, data))

    def again(self, cid, itt, write=False, stag=None):
        """TASK REASSIGN with a new STag of a new, empty buffer for a read."""
        if not write:
            self.buffers[itt] = bytearray(len(self.buffers[itt]))
        self.advertise(cid, itt, write, stag)
        return self.reassign(cid, itt)

    def lose(self, cid, by):
        self.cut(cid, by)
        self.test.assertEqual(self.remove(by, cid)[0], DONE)


class Immediate(RdmaSession):
    WRITES = ("InitialR2T=Yes", "ImmediateData=Yes")


class Lost(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(*LEVEL, "ram:8M")
        cls.blocks = os.urandom(1 << 20)
        w = Wire(cls.daemon)
        w.login()
        w.ready()
        for at in range(0, len(cls.blocks), 65536):
            assert w.write10(at // 512, cls.blocks[at:at + 65536])[0] == 0
        w.close()

    @classmethod
    def tearDownClass(cls):
        with cls.daemon:
            pass

    def sessions(self, n=2, kind=RdmaSession, **kw):
        for start in STARTS:
            s = kind(self, self.daemon, start, **kw)
            self.addCleanup(s.close)
            yield s.several(n)
            s.close()

    # ---- what is recovered ----

    # [RFC 7145: 7.3.3 #11-13, 10.2.2 #2]
    def test_a_read_with_a_new_stag_rfc7145_7_3_3(self):
        """The initiator has all data, but has acknowledged none of them."""
        for s in self.sessions():
            s.conns[1].answer_reads = False
            itt = s.read(1, 0, 128)
            self.assertEqual(s.status(1, itt), (0, b""))
            self.assertEqual(s.conns[1].reads_asked, 3)
            self.assertEqual(s.buffers[itt], self.blocks[:65536])
            s.lose(1, 0)
            self.assertEqual(s.again(0, itt), DONE)
            self.assertEqual(s.status(0, itt), (0, b""))
            self.assertEqual(s.buffers[itt], self.blocks[:65536])
            # acknowledged now: it is not there any more
            s.acknowledge(0)
            self.assertEqual(s.again(0, itt), NO_TASK)

    # [RFC 7145: 7.3.5 #12-14, 10.2.2 #2]
    def test_acknowledged_data_are_not_sent_again_rfc7145_7_3_5(self):
        """The A bit once every MaxBurstLength bytes, except the last ones: a zero-length RDMA
        Read. The data before it are not sent again once it is answered."""
        for answered in range(8):
            for s in self.sessions():
                itt = s.read(1, 0, 256)
                s.conns[1].take_read(8 * BURST, answered)
                s.lose(1, 0)
                self.assertEqual(s.again(0, itt), DONE)
                self.assertEqual(s.status(0, itt), (0, b""))
                at = answered * BURST
                self.assertEqual(s.buffers[itt][:at], bytes(at))
                self.assertEqual(s.buffers[itt][at:], self.blocks[at:8 * BURST])
                self.assertEqual(s.conns[0].reads_asked, 7 - answered)
                s.acknowledge(0)
                s.reads_back(0, 0, self.blocks[:512])

    def test_the_a_bit_of_a_read_that_another_one_follows(self):
        """A command may still be answered when its RDMA Reads never are."""
        for s in self.sessions(1):
            c = s.conns[0]
            c.answer_reads = False
            for n in range(1, 4):
                s.reads_back(0, 0, self.blocks[:4 * BURST])
                self.assertEqual(c.reads_asked, 3 * n)

    def test_sense_data_are_kept(self):
        for s in self.sessions():
            itt = s.command(1, b"\x28" + b"\xff" * 9, 0xc0, 512)
            first = s.status(1, itt)
            s.lose(1, 0)
            self.assertEqual(s.again(0, itt), DONE)
            self.assertEqual(s.status(0, itt), first)
            self.assertEqual(first[0], 2)
            self.assertGreater(len(first[1]), 18)

    def test_an_acknowledged_response_is_not_kept(self):
        for s in self.sessions():
            itt = s.read(1, 0)
            s.status(1, itt)
            s.acknowledge(1)
            s.lose(1, 0)
            self.assertEqual(s.again(0, itt), NO_TASK)
            s.reads_back(0, 0, self.blocks[:512])

    def test_the_data_are_kept_not_read_again_rfc7143_7_2_2(self):
        for s in self.sessions():
            itt = s.read(1, 64, 32)
            s.status(1, itt)
            s.lose(1, 0)
            other = Wire(self.daemon)
            other.ISID = Wire.ISID[:5] + b"\x77"
            other.login()
            other.ready()
            self.assertEqual(other.write10(64, b"\x5a" * 4096)[0], 0)
            try:
                self.assertEqual(s.again(0, itt), DONE)
                self.assertEqual(s.status(0, itt)[0], 0)
                self.assertEqual(s.buffers[itt], self.blocks[64 * 512:96 * 512])
            finally:
                other.write10(64, self.blocks[64 * 512:72 * 512])
                other.close()

    def test_lost_in_the_middle_of_an_rdma_write(self):
        """The initiator takes a few segments of a read of 1 MiB, and is gone."""
        for s in self.sessions():
            itt = s.read(1, 0, 2048)
            c = s.conns[1]
            for _ in range(10):
                u = c.next_ulpdu()
                self.assertIn((u[0] & 0x80, u[1] & 15), ((0x80, WRITE), (0, READ_REQUEST)))
            s.lose(1, 0)
            self.assertEqual(s.again(0, itt), DONE)
            self.assertEqual(s.status(0, itt), (0, b""))
            self.assertEqual(s.buffers[itt], self.blocks)

    # [RFC 7145: 7.3.3 #11-13, 10.2.2 #3-4]
    def test_a_write_is_read_from_where_it_was_rfc7145_10_2_2(self):
        """Of four RDMA Reads the initiator has answered two, and a part of the third."""
        for s in self.sessions():
            data, c = os.urandom(4 * BURST), s.conns[1]
            itt = s.write(1, 4000, data)
            asked = [c.read_request() for _ in range(4)]
            self.assertEqual([r[2] for r in asked], [BURST] * 4)
            c.answer(asked[0])
            c.answer(asked[1])
            c.fpdu(struct.pack(">BBIQ", 0x81, 0x40 | READ_RESPONSE, *asked[2][:2]) +
                   data[2 * BURST:2 * BURST + 1400])  # more segments would follow
            time.sleep(0.2)
            s.lose(1, 0)
            self.assertEqual(s.again(0, itt, write=True), DONE)
            c = s.conns[0]
            asked = [c.read_request() for _ in range(2)]
            self.assertEqual([r[2:] for r in asked],
                             [(BURST, c.next_stag, at * BURST) for at in (2, 3)])
            for r in asked:
                c.answer(r)
            self.assertEqual(s.status(0, itt)[0], 0)
            s.reads_back(0, 4000, data)

    def test_the_response_precedes_the_data_rfc7143_7_2_2(self):
        for s in self.sessions():
            itt = s.write(1, 4000, os.urandom(BURST))
            s.conns[1].read_request()
            s.lose(1, 0)
            self.assertEqual(s.again(0, itt, write=True), DONE)
            self.assertEqual(s.conns[0].reads_asked, 0)  # it comes afterwards
            self.assertEqual(s.status(0, itt)[0], 0)
            self.assertEqual(s.conns[0].reads_asked, 1)

    def test_lost_twice(self):
        for s in self.sessions(3):
            data = os.urandom(2 * BURST)
            itt = s.write(2, 4000, data)
            s.conns[2].answer(s.conns[2].read_request())
            time.sleep(0.2)
            s.lose(2, 0)
            self.assertEqual(s.again(1, itt, write=True), DONE)
            s.conns[1].read_request()
            s.lose(1, 0)
            self.assertEqual(s.again(0, itt, write=True), DONE)
            self.assertEqual(s.status(0, itt)[0], 0)
            s.reads_back(0, 4000, data)

    def test_reinstatement_and_continuation_rfc7143_6_3_6(self):
        """Without a connection the session waits; the same CID is a Logout for recovery."""
        for s in self.sessions(1):
            data = os.urandom(BURST)
            itt, done = s.write(0, 4000, data), s.read(0, 0)
            s.conns[0].read_request()
            s.status(0, done)
            s.cut(0)
            self.assertEqual(s.add(0)[0], 0)
            self.assertEqual(s.again(0, itt, write=True), DONE)
            self.assertEqual(s.status(0, itt)[0], 0)
            self.assertEqual(s.again(0, done), DONE)
            self.assertEqual(s.status(0, done)[0], 0)
            self.assertEqual(s.buffers[done], self.blocks[:512])
            s.reads_back(0, 4000, data)

    def test_immediate_data_are_not_asked_for_again_rfc7145_9_2(self):
        """The STag names what the command did not carry (the key of §6.9 says Yes)."""
        for s in self.sessions(kind=Immediate):
            data, c = os.urandom(BURST), s.conns[1]
            s.itt += 1
            itt = s.itt
            s.buffers[itt] = bytearray(data[4096:])
            s.advertise(1, itt, write=True)
            c.put(1, 0xa1, bytes(8), itt, struct.pack(">III", len(data), s.cmdsn, c.expstatsn) +
                  (b"\x2a\0" + struct.pack(">IBH", 4000, 0, 32)).ljust(16, b"\0"), data[:4096])
            s.cmdsn += 1
            self.assertEqual(c.read_request()[2:], (BURST - 4096, c.next_stag, 0))
            s.lose(1, 0)
            self.assertEqual(s.again(0, itt, write=True), DONE)
            request = s.conns[0].read_request()
            self.assertEqual(request[2:], (BURST - 4096, s.conns[0].next_stag, 0))
            s.conns[0].answer(request)
            self.assertEqual(s.status(0, itt)[0], 0)
            s.reads_back(0, 4000, data)

    # ---- what is refused ----

    def test_refused_reassignments_rfc7143_7_2_2(self):
        for s in self.sessions():
            data = os.urandom(BURST)
            itt = s.write(1, 4000, data)
            request = s.conns[1].read_request()
            for by in (0, 1):  # the connection lives
                self.assertEqual(s.again(by, itt, write=True), ALLEGIANT)
            # the STags of a refused request are not used
            s.conns[1].answer(request)
            self.assertEqual(s.status(1, itt)[0], 0)
            s.acknowledge(1)
            itt = s.write(1, 4000, data)
            s.conns[1].read_request()
            s.cut(1, 0)
            self.assertEqual(s.again(0, itt, write=True), ALLEGIANT)  # no Logout yet
            s.remove(0, 1)
            s.advertise(0, itt, write=True)
            self.assertEqual(s.reassign(0, itt, immediate=False), REJECTED)
            self.assertEqual(s.reassign(0, itt + 1000), NO_TASK)
            self.assertEqual(s.again(0, itt, write=True), DONE)
            request = s.conns[0].read_request()
            self.assertEqual(request[3], s.conns[0].next_stag)
            self.assertEqual(s.again(0, itt, write=True), ALLEGIANT)  # twice
            s.conns[0].answer(request)  # the first STag holds
            self.assertEqual(s.status(0, itt)[0], 0)
            s.reads_back(0, 4000, data)

    def test_a_reassignment_ahead_of_its_turn(self):
        """It waits for the command before it, and is refused, since it is not immediate."""
        for s in self.sessions():
            itt = s.read(1, 0)
            s.status(1, itt)
            s.lose(1, 0)
            s.advertise(0, itt)
            hole, s.cmdsn = s.cmdsn, s.cmdsn + 1
            tmf = s.request(0, 2, 0x88, middle=struct.pack(">I", itt), tail=bytes(8))
            tur = s.command(0, cmdsn=hole)
            answers = {}
            for _ in range(2):
                op, head, _ = s.conns[0].recv()
                answers[word(head, 16)] = (op, head[2])
            self.assertEqual(answers, {tmf: (TMF_RSP, REJECTED), tur: (RESPONSE, 0)})
            self.assertEqual(s.again(0, itt), DONE)
            self.assertEqual(s.status(0, itt)[0], 0)

    def test_an_stag_that_is_not_valid(self):
        """The initiator ends the connection for it; the task goes on over the next one."""
        for s in self.sessions(3):
            itt = s.read(2, 0, 32)
            s.status(2, itt)
            s.lose(2, 0)
            self.assertEqual(s.again(1, itt, stag=0xdead), DONE)
            with self.assertRaisesRegex(AssertionError, "not valid"):
                s.status(1, itt)
            s.lose(1, 0)
            self.assertEqual(s.again(0, itt), DONE)
            self.assertEqual(s.status(0, itt)[0], 0)
            self.assertEqual(s.buffers[itt], self.blocks[:BURST])

    def test_an_stag_that_the_initiator_refuses(self):
        """A Terminate of the initiator is a lost connection, too (§10.1.2.2)."""
        for s in self.sessions(3):
            itt = s.write(2, 4000, os.urandom(BURST))
            s.conns[2].read_request()
            s.lose(2, 0)
            self.assertEqual(s.again(1, itt, write=True, stag=0xdead), DONE)
            self.assertEqual(s.conns[1].read_request()[3], 0xdead)
            s.conns[1].untagged(TERMINATE, b"\x01\x00\x00\x00", queue=2)
            s.lose(1, 0)
            self.assertEqual(s.again(0, itt, write=True), DONE)
            self.assertEqual(s.status(0, itt)[0], 0)
            s.reads_back(0, 4000, bytes(s.buffers[itt]))

    def test_the_stag_of_another_task(self):
        """It is memory of the same initiator, which gets what it asked for."""
        for s in self.sessions():
            one, two = s.read(1, 0, 32), s.read(1, 32, 32)
            s.status(1, one)
            s.status(1, two)
            s.lose(1, 0)
            self.assertEqual(s.again(0, one), DONE)
            self.assertEqual(s.status(0, one)[0], 0)
            s.buffers[one] = bytearray(BURST)
            stag = s.conns[0].register(s.buffers[one])
            self.assertEqual(s.again(0, two, stag=stag), DONE)
            self.assertEqual(s.status(0, two)[0], 0)
            self.assertEqual(s.buffers[one], self.blocks[BURST:2 * BURST])

    def test_no_stag_although_there_are_data_rfc7145_10_1_3_3(self):
        """Fields that contradict each other: a format error, which ends the session."""
        for write in (False, True):
            for s in self.sessions():
                itt = s.write(1, 4000, os.urandom(BURST)) if write else s.read(1, 0)
                if write:
                    s.conns[1].read_request()
                else:
                    s.status(1, itt)
                s.lose(1, 0)
                with self.assertRaises((ConnectionError, Terminated)):
                    s.reassign(0, itt)
                    s.status(0, itt)
        w = Wire(self.daemon)
        w.login()
        w.ready()
        w.close()

    def test_abort_task_of_a_finished_read_rfc7143_11_5_1(self):
        """It is a new allegiance without STags: no data, so that the status is not GOOD."""
        for s in self.sessions():
            cmdsn = s.cmdsn
            itt = s.read(1, 0)
            s.status(1, itt)
            s.lose(1, 0)
            tmf = s.abort(0, itt, cmdsn)
            self.assertEqual(s.status(0, itt)[0], 2)
            op, head, _ = s.conns[0].recv()
            self.assertEqual((op, head[2], word(head, 16)), (TMF_RSP, DONE, tmf))

    def test_a_connection_over_tcp_does_not_join_rfc7145_5_1(self):
        """All connections of a session are in RDMA mode: one that goes on with iSCSI after its
        login sends bytes that make no sense, which ends the session (RFC 7143 §7.7)."""
        for s in self.sessions(1):
            itt, conn = s.read(0, 0), Conn(s, self.daemon.address, 0)
            s.status(0, itt)
            s.cut(0)
            self.assertEqual(conn.login(s.tsih, s.cmdsn, s.names(), isid=ISID)[0], 0)
            conn.put(0x42, 0x88, bytes(8), 77, struct.pack(">IIIII", itt, s.cmdsn, conn.expstatsn, 0, 0))
            self.assertTrue(conn.closed())
            self.assertEqual(s.add(0)[0], NO_SESSION)

    def test_lower_levels_have_none(self):
        for level in (0, 1):
            for s in self.sessions(2, level=level):
                self.assertEqual(s.keys["ErrorRecoveryLevel"], str(level))
                self.assertEqual(s.remove(0, 1)[0], 2)
                self.assertEqual(s.reassign(0, 5), NO_REASSIGN)
                s.reads_back(0, 0, self.blocks[:512])

    def test_no_snack_rfc7145_7_3_11(self):
        for s in self.sessions(1):
            itt, c = s.read(0, 0), s.conns[0]
            s.status(0, itt)
            c.put(0x10, 0x81, bytes(8), 0xffffffff, struct.pack(">III", 0xffffffff, 0, c.expstatsn) + bytes(8) +
                  struct.pack(">II", c.expstatsn - 1, 1))
            op, head, _ = c.recv()
            self.assertEqual((op, head[2]), (REJECT, 4))

    def test_what_is_not_acknowledged_closes_the_window(self):
        """A peer that acknowledges nothing has no more tasks than its window."""
        for s in self.sessions(1):
            c, n, op = s.conns[0], 0, RESPONSE
            first = c.expstatsn
            while op == RESPONSE and n < 1000:
                c.expstatsn = first
                s.read(0, 0)
                c.expstatsn, n = 0, n + 1
                op, head, _ = c.recv()
            self.assertEqual(op, NOP_IN)  # it asks for an acknowledgement
            self.assertLess(n, 1000)
            self.assertEqual(word(head, 28), word(head, 32) + 1)  # ExpCmdSN, MaxCmdSN


class LibiserOverRdma(tcp.Libiser):
    """One session of four connections, three of which break in the middle of RDMA."""

    def test_nothing_is_lost_with_three_of_four_connections(self):
        for start in STARTS:
            self.assertEqual(self.both_ways("transport=iser&start=" + start, after=1 << 20, most=3), [3, 3])

    test_nothing_is_lost_with_digests = None  # RFC 7145 §6.1: there are none

    def test_a_cut_of_what_the_target_sends(self):
        self.assertEqual(self.both_ways("transport=iser&start=stream", after=300000, most=3, ways=(1,))[1], 3)


class Room(McsTarget):
    """A target of bytes over software iWARP that takes two immediate requests at once. It answers no READ on the
    second connection, which it cuts when it has so many of them."""
    level, most = 2, 2
    keys = text_of("RDMAExtensions=Yes", "InitialR2T=Yes", "InitiatorRecvDataSegmentLength=4096",
                   "TargetRecvDataSegmentLength=8192", "MaxOutstandingUnexpectedPDUs=%d" % most)
    join_keys = b""

    class Conn(IserConn, SessionConn):
        told = 1

        def send(self, *args, **more):
            super().send(*args, **more)
            self.told = self.expcmdsn

    def __init__(self, holds):
        self.holds, self.held, self.immediate, self.pings = holds, 0, [], 0
        super().__init__(self.reads, blocks=12 * 1024)  # 12 READs of `iser copy`

    def serve(self, c):
        c.target = self
        c.begin()
        super().serve(c)

    def reads(self, command):
        if command.op not in READS:
            return False
        if command.conn.cid and self.holds:
            self.held += 1
            if self.held == self.holds:
                raise EOFError("cut")
        else:
            command.conn.data_in(command.bhs, pattern(command.lba * BLOCK, command.edtl))
        return True

    def dispatch(self, c, op, head, data):
        if op not in (LOGIN, DATA_OUT) and head[0] & 0x40 and not c.cid:
            self.immediate = [n for n in self.immediate if n >= c.told] + [word(head, 24)]
            if len(self.immediate) > self.most:
                self.seen.append("%d immediate requests" % len(self.immediate))
        elif op == NOP_OUT:
            with c.session.turn:
                c.session.expcmdsn += 1
            self.pings += 1
        return super().dispatch(c, op, head, data)


class NoRoom(Copies):
    # [RFC 7145: 8.1.1.3 #3]
    def test_a_recovery_waits_for_room_rfc7145_8_1_1_3(self):
        """The Logout and six TASK REASSIGNs are immediate: a ping with a CmdSN makes room for the next ones."""
        with Room(6) as t:
            _, data = self.copy_out(t, "transport=iser&start=rdma&connections=2&error_recovery_level=2&depth=12")
            self.assertEqual(data, pattern(0, t.blocks * BLOCK))
            self.assertEqual(t.seen, ["logout for recovery of 1"] + ["reassign"] * 6 + ["logout"])
            self.assertGreaterEqual(t.pings, 3)
            self.assertEqual(len(t.sessions), 1)


if __name__ == "__main__":
    main()
