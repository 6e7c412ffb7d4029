#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""ErrorRecoveryLevel 2 of iserd over TCP (RFC 7143 §7.1.4.3, §7.2.2, §11.14): lost
connections, Logout for recovery, TASK REASSIGN, session continuation. The initiator is
sockets and bytes; the last class has libiser and a path that cuts."""
import json
import os
import socket
import struct
import tempfile
import threading
import time
import unittest

from harness import (ISER, ISERCTL, Daemon, Folder, Wire, exactly, main, need, patience,
                     run)
from test_mcs import (ASYNC, DATA_IN, LOGOUT_RSP, NO_SESSION, R2T, REJECT, RESPONSE,
                      TMF_RSP, Session)
from test_tshark import Capture

DONE, NO_TASK, ALLEGIANT, NO_REASSIGN, REJECTED = 0, 1, 3, 4, 255
CLOSE, REMOVE = 1, 2
LEVEL = ("--error-recovery-level", "2", "--max-connections", "4", "--workers", "2")


def word(head, at):
    return int.from_bytes(head[at:at + 4], "big")


class Recovering(Session):
    """A session at ErrorRecoveryLevel 2."""

    def __init__(self, test, daemon, wait=0, retain=20, level=2, **kw):
        self.more = ["ErrorRecoveryLevel=%d" % level, "DefaultTime2Wait=%d" % wait,
                     "DefaultTime2Retain=%d" % retain, "MaxBurstLength=16384", "MaxOutstandingR2T=8",
                     "DataSequenceInOrder=No"]
        super().__init__(test, daemon, **kw)

    def names(self, **change):
        names = super().names(**change)
        return names if self.tsih else names + self.more

    def several(self, n):
        for cid in range(1, n):
            self.test.assertEqual(self.add(cid)[0], 0)
        return self.ready()

    def cut(self, cid, announced_on=None):
        """The connection is lost; a connection that is left hears of it."""
        self.conns.pop(cid).sock.close()
        if announced_on is None:
            time.sleep(0.2)
            return
        op, head, _ = self.conns[announced_on].recv()
        self.test.assertEqual((op, head[36]), (ASYNC, 2))
        self.test.assertEqual(struct.unpack(">H", head[38:40])[0], cid)

    def remove(self, by, cid):
        """Logout for recovery; returns (response, Time2Wait, Time2Retain)."""
        itt = self.request(by, 6, 0x80 | REMOVE, middle=struct.pack(">HH", cid, 0), immediate=True)
        op, head, _ = self.conns[by].recv()
        self.test.assertEqual((op, word(head, 16)), (LOGOUT_RSP, itt))
        return (head[2],) + struct.unpack(">HH", head[40:44])

    def reassign(self, by, tag, exp_datasn=0, immediate=True):
        itt = self.request(by, 2, 0x88, middle=struct.pack(">I", tag),
                           tail=struct.pack(">II", 0, exp_datasn), immediate=immediate)
        op, head, _ = self.conns[by].recv()
        self.test.assertEqual((op, word(head, 16)), (TMF_RSP, itt))
        return head[2]

    def abort(self, by, tag, cmdsn):
        return self.request(by, 2, 0x81, middle=struct.pack(">I", tag),
                            tail=struct.pack(">II", cmdsn, 0), immediate=True)

    def pdus(self, cid, tag):
        """The PDUs up to the one that has the status of the task."""
        got = []
        while not got or not (got[-1][0] == RESPONSE or got[-1][1][1] & 1):
            got.append(self.conns[cid].recv())
            self.test.assertIn(got[-1][0], (DATA_IN, RESPONSE))
            self.test.assertEqual(word(got[-1][1], 16), tag)
        return got

    def data_out(self, cid, r2t, data, start=0):
        c, at, size = self.conns[cid], word(r2t, 40), word(r2t, 44)
        c.put(5, 0x80, r2t[8:16], word(r2t, 16), r2t[20:24] + bytes(4) +
              struct.pack(">IIIII", c.expstatsn, 0, 0, at, 0), data[at:at + size])


class Recovery(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.control = os.path.join(cls.folder.name, "control")
        cls.daemon = Daemon(*LEVEL, "--control", cls.control, "ram:8M")
        cls.blocks = os.urandom(65536)
        w = Wire(cls.daemon)
        w.login()
        assert w.ready().write10(0, cls.blocks)[0] == 0
        w.close()

    @classmethod
    def tearDownClass(cls):
        with cls.daemon:
            pass
        cls.folder.cleanup()

    def session(self, n=2, **kw):
        s = Recovering(self, self.daemon, **kw)
        self.addCleanup(s.close)
        return s.several(n)

    def test_the_keys_rfc7143_13_16_13_20(self):
        s = self.session(1, wait=3, retain=30)
        self.assertEqual([s.keys[k] for k in ("ErrorRecoveryLevel", "DefaultTime2Wait",
                                              "DefaultTime2Retain")], ["2", "3", "20"])

    # ---- finished tasks, READ, WRITE ----

    # [RFC 7143: 7.2.2 #3]
    def test_a_finished_command_rfc7143_7_2_2(self):
        s = self.session()
        itt = s.command(1, b"\x28" + b"\xff" * 9, 0xc0, 512)
        first = s.status(1, itt)
        s.cut(1, 0)
        self.assertEqual(s.remove(0, 1), (DONE, 0, 20))
        self.assertEqual(s.reassign(0, itt), DONE)
        self.assertEqual(s.status(0, itt), first)
        self.assertEqual(first[0], 2)
        self.assertGreater(len(first[1]), 18)

    def test_a_read_begins_again_rfc7143_11_5_6(self):
        s = self.session()
        itt = s.read(1, 0, 32)
        self.assertEqual(b"".join(p[2] for p in s.pdus(1, itt)), self.blocks[:16384])
        s.cut(1, 0)
        s.remove(0, 1)
        self.assertEqual(s.reassign(0, itt), DONE)
        got = s.pdus(0, itt)
        self.assertEqual([word(p[1], 36) for p in got], list(range(len(got))))
        self.assertEqual(b"".join(p[2] for p in got), self.blocks[:16384])
        # the data are those of the first time, not read again
        self.assertEqual(s.ready().status(0, s.command(0))[0], 0)

    def test_the_data_are_kept_not_read_again(self):
        s = self.session()
        itt = s.read(1, 64, 32)
        s.pdus(1, itt)
        s.cut(1, 0)
        s.remove(0, 1)
        other = Wire(self.daemon)
        other.ISID = Wire.ISID[:5] + b"\x77"
        other.login()
        other.ready()
        self.assertEqual(other.write10(64, b"\x5a" * 4096)[0], 0)
        try:
            s.reassign(0, itt)
            self.assertEqual(b"".join(p[2] for p in s.pdus(0, itt)),
                             self.blocks[64 * 512:96 * 512])
        finally:
            other.write10(64, self.blocks[64 * 512:72 * 512])
            other.close()

    #
    #
    #
    #
    # [RFC 7143: 11.5.6 #2]
    def test_a_read_goes_on_from_expdatasn_rfc7143_11_5_6(self):
        s = self.session()
        itt = s.read(1, 0, 128)
        sizes = [len(p[2]) for p in s.pdus(1, itt)]
        self.assertEqual(sizes, [16384] * 4)  # MaxBurstLength
        s.cut(1, 0)
        s.remove(0, 1)
        self.assertEqual(s.reassign(0, itt, 3), DONE)
        got = s.pdus(0, itt)
        self.assertEqual([(word(p[1], 36), word(p[1], 40), len(p[2])) for p in got],
                         [(3, 49152, 16384)])
        self.assertEqual(got[0][2], self.blocks[49152:])

    def test_all_data_acknowledged_rfc7143_11_5_6(self):
        """The target need not send a Data-In again, but the status."""
        s = self.session()
        itt = s.read(1, 0, 128)
        s.pdus(1, itt)
        s.cut(1, 0)
        s.remove(0, 1)
        self.assertEqual(s.reassign(0, itt, 4), DONE)
        op, head, _ = s.conns[0].recv()
        self.assertEqual((op, head[3], word(head, 16)), (RESPONSE, 0, itt))
        self.assertEqual(word(head, 36), 4)  # ExpDataSN

    #
    #
    #
    #
    # [RFC 7143: 11.5.6 #4]
    def test_a_wrong_expdatasn_is_ignored_rfc7143_11_5_6(self):
        s = self.session()
        itt = s.read(1, 0, 128)
        s.pdus(1, itt)
        s.cut(1, 0)
        s.remove(0, 1)
        self.assertEqual(s.reassign(0, itt, 5), DONE)
        self.assertEqual([word(p[1], 36) for p in s.pdus(0, itt)], [0, 1, 2, 3])

    def test_a_smaller_segment_on_the_new_connection(self):
        s = self.session()
        itt = s.read(1, 0, 128)
        s.pdus(1, itt)
        s.cut(1, 0)
        s.remove(0, 1)
        text = b"MaxRecvDataSegmentLength=4096\0"
        c = s.conns[0]
        s.itt += 1
        c.put(0x44, 0x80, bytes(8), s.itt, struct.pack(">III", 0xffffffff, s.cmdsn, c.expstatsn), text)
        self.assertEqual(c.recv()[0], 0x24)
        self.assertEqual(s.reassign(0, itt, 2), DONE)
        got = s.pdus(0, itt)
        self.assertEqual([word(p[1], 36) for p in got], list(range(2, 10)))
        self.assertEqual(b"".join(p[2] for p in got), self.blocks[32768:])

    def test_snack_after_the_reassignment_rfc7143_7_2_2(self):
        s = self.session()
        itt = s.read(1, 0, 128)
        s.pdus(1, itt)
        s.cut(1, 0)
        s.remove(0, 1)
        s.reassign(0, itt, 2)
        statsn = s.conns[0].expstatsn
        got = s.pdus(0, itt)
        self.assertEqual([word(p[1], 36) for p in got], [2, 3])
        c = s.conns[0]
        for begrun, want in ((3, got[1]), (2, got[0])):
            c.put(0x10, 0x80, bytes(8), itt, struct.pack(">III", 0xffffffff, 0, statsn) + bytes(8) +
                  struct.pack(">II", begrun, 1))
            c.expstatsn = 0
            op, head, data = c.recv()
            self.assertEqual((op, word(head, 36), data), (DATA_IN, begrun, want[2]))
        c.put(0x10, 0x80, bytes(8), itt, struct.pack(">III", 0xffffffff, 0, statsn) + bytes(8) +
              struct.pack(">II", 1, 1))  # before ExpDataSN
        c.expstatsn = 0
        self.assertEqual(c.recv()[0], REJECT)

    # [RFC 7143: 7.2.2 #7]
    def test_the_snack_tag_is_deleted_rfc7143_7_2_2(self):
        s = self.session()
        itt = s.read(1, 0, 32)
        statsn, c = s.conns[1].expstatsn, s.conns[1]
        s.pdus(1, itt)
        c.put(0x10, 0x83, bytes(8), itt, struct.pack(">III", 77, 0, statsn) + bytes(16))  # R-Data
        c.expstatsn = 0
        got = [c.recv(), c.recv()]
        self.assertEqual([(p[0], word(p[1], 20)) for p in got], [(DATA_IN, 0xffffffff), (RESPONSE, 77)])
        s.cut(1, 0)
        s.remove(0, 1)
        self.assertEqual(s.reassign(0, itt, 1), DONE)
        op, head, _ = s.conns[0].recv()
        self.assertEqual((op, word(head, 20)), (RESPONSE, 0))

    def begin_write(self, s, cid, lba, data):
        itt = s.command(cid, b"\x2a\0" + struct.pack(">IBH", lba, 0, len(data) // 512),
                        0xa0, len(data))
        op, head, _ = s.conns[cid].recv()
        self.assertEqual((op, word(head, 16)), (R2T, itt))
        return itt, head

    def finish_write(self, s, cid, itt, data):
        """Follows R2Ts until the status; returns the ranges that they asked for."""
        ranges = []
        while True:
            op, head, _ = s.conns[cid].recv()
            self.assertEqual(word(head, 16), itt)
            if op == RESPONSE:
                self.assertEqual(head[3], 0)
                return ranges
            self.assertEqual(op, R2T)
            ranges.append((word(head, 36), word(head, 40), word(head, 44)))
            s.data_out(cid, head, data)

    #
    #
    #
    #
    # [RFC 7143: 7.2.2 #6, 11.5.1 #15, 11.6 #1]
    def test_a_write_is_asked_for_again(self):
        s, data = self.session(), os.urandom(16384)
        itt, _ = self.begin_write(s, 1, 1000, data)
        s.cut(1, 0)
        s.remove(0, 1)
        self.assertEqual(s.reassign(0, itt), DONE)
        self.assertEqual(self.finish_write(s, 0, itt, data), [(0, 0, 16384)])
        self.assertEqual(s.status(0, s.read(0, 1000, 32)), (0, data))

    def test_a_write_goes_on_where_it_was(self):
        """Data that came before the loss are not asked for again."""
        s, data = self.session(), os.urandom(65536)
        itt, r2t = self.begin_write(s, 1, 1000, data)
        s.data_out(1, r2t, data)
        op, head, _ = s.conns[1].recv()
        self.assertEqual((op, word(head, 36), word(head, 40)), (R2T, 1, 16384))
        c = s.conns[1]  # half of the next burst
        c.put(5, 0, head[8:16], itt, head[20:24] + bytes(4) +
              struct.pack(">IIIII", c.expstatsn, 0, 0, 16384, 0), data[16384:24576])
        time.sleep(0.2)
        s.cut(1, 0)
        s.remove(0, 1)
        self.assertEqual(s.reassign(0, itt, 2), DONE)
        ranges = self.finish_write(s, 0, itt, data)
        self.assertEqual(ranges[0], (2, 24576, 16384))
        self.assertEqual(sum(r[2] for r in ranges), 65536 - 24576)
        self.assertEqual([r[0] for r in ranges], list(range(2, 2 + len(ranges))))
        self.assertEqual(s.status(0, s.read(0, 1000, 128)), (0, data))

    def test_many_r2ts_of_a_write(self):
        """Those of four R2Ts are answered, but for the first one, and more R2Ts follow."""
        with Daemon(*LEVEL, "--data-sequence-in-order", "no", "ram:1M") as daemon:
            s, data = Recovering(self, daemon), os.urandom(8 * 16384)
            self.addCleanup(s.close)
            s.several(2)
            self.assertEqual(s.keys["DataSequenceInOrder"], "No")
            itt, first = self.begin_write(s, 1, 1000, data)
            for r2t in [s.conns[1].recv()[1] for _ in range(3)]:
                s.data_out(1, r2t, data)
            self.assertEqual([word(s.conns[1].recv()[1], 40) // 16384 for _ in range(3)], [4, 5, 6])
            s.cut(1, 0)
            s.remove(0, 1)
            self.assertEqual(s.reassign(0, itt, 7), DONE)
            self.assertEqual(self.finish_write(s, 0, itt, data)[0], (7, 0, 16384))
            self.assertEqual(s.status(0, s.read(0, 1000, 256)), (0, data))

    # [RFC 7143: 11.14 #4]
    def test_a_command_that_was_not_acknowledged_is_sent_again_rfc7143_7_2_1(self):
        s = self.session()
        hole = s.cmdsn
        s.cmdsn += 1
        cmdsn = s.cmdsn
        itt = s.read(1, 0)  # waits for its turn
        s.cut(1, 0)
        self.assertEqual(s.remove(0, 1)[0], DONE)
        self.assertEqual(s.reassign(0, itt), NO_TASK)
        again = s.itt
        s.itt = itt - 1
        s.read(0, 0, cmdsn=cmdsn)
        s.itt = again
        tur = s.command(0, cmdsn=hole)
        self.assertEqual(s.status(0, tur)[0], 0)
        self.assertEqual(s.status(0, itt), (0, self.blocks[:512]))

    #
    #
    # [RFC 7143: 7.14 #3]
    def test_immediate_commands_end_with_their_connection_rfc7143_7_14(self):
        s = self.session()
        itt = s.request(1, 1, 0x81, middle=bytes(4), tail=bytes(16), immediate=True)
        self.assertEqual(s.status(1, itt)[0], 0)
        s.cut(1, 0)
        s.remove(0, 1)
        self.assertEqual(s.reassign(0, itt), NO_TASK)

    # ---- Logout ----

    def test_logout_for_recovery_of_a_live_connection_rfc7143_11_14(self):
        s, data = self.session(), os.urandom(16384)
        itt, _ = self.begin_write(s, 1, 1000, data)
        self.assertEqual(s.remove(0, 1), (DONE, 0, 20))
        self.assertTrue(s.conns.pop(1).closed())
        self.assertEqual(s.reassign(0, itt), DONE)
        self.finish_write(s, 0, itt, data)

    def test_logout_for_recovery_of_the_own_connection_rfc7143_11_14(self):
        s, data = self.session(), os.urandom(16384)
        itt, _ = self.begin_write(s, 1, 1000, data)
        self.assertEqual(s.remove(1, 1), (DONE, 0, 20))
        # iserd may not have seen yet that the connection is closed
        self.assertEqual(s.reassign(0, itt), DONE)
        self.assertTrue(s.conns.pop(1).closed())
        self.finish_write(s, 0, itt, data)

    def test_unknown_connections(self):
        s = self.session()
        self.assertEqual(s.remove(0, 9)[0], 1)
        self.assertEqual(s.logout(0, CLOSE, 9), 1)
        s.ready()

    def test_the_same_logout_again(self):
        """The first answer may be lost with its connection."""
        s = self.session(3)
        itt = s.read(2, 0)
        s.status(2, itt)
        s.cut(2, 0)
        self.assertEqual(s.remove(0, 2)[0], DONE)
        self.assertEqual(s.remove(1, 2)[0], DONE)
        self.assertEqual(s.reassign(1, itt), DONE)
        self.assertEqual(s.status(1, itt), (0, self.blocks[:512]))

    def test_close_of_a_lost_connection_ends_its_tasks_rfc7143_11_14_5(self):
        s, data = self.session(), os.urandom(16384)
        itt, _ = self.begin_write(s, 1, 1000, data)
        s.cut(1, 0)
        self.assertEqual(s.logout(0, CLOSE, 1), 0)
        self.assertEqual(s.reassign(0, itt), NO_TASK)
        status, sense = s.status(0, s.command(0))
        self.assertEqual((status, sense[2:][12:14]), (2, b"\x47\x7f"))
        s.ready()

    # ---- refused reassignments ----

    #
    #
    #
    #
    # [RFC 7143: 7.2.2 #5, 11.5.1 #14]
    def test_still_allegiant_rfc7143_7_2_2(self):
        s, data = self.session(), os.urandom(16384)
        itt, r2t = self.begin_write(s, 1, 1000, data)
        self.assertEqual(s.reassign(0, itt), ALLEGIANT)  # of a live connection
        self.assertEqual(s.reassign(1, itt), ALLEGIANT)  # of this one
        s.data_out(1, r2t, data)
        self.assertEqual(s.status(1, itt)[0], 0)
        itt, _ = self.begin_write(s, 1, 1000, data)
        s.cut(1, 0)
        self.assertEqual(s.reassign(0, itt), ALLEGIANT)  # not logged out
        s.remove(0, 1)
        self.assertEqual(s.reassign(0, itt), DONE)
        op, head, _ = s.conns[0].recv()
        self.assertEqual(s.reassign(0, itt), ALLEGIANT)  # twice
        s.data_out(0, head, data)
        self.assertEqual(s.status(0, itt)[0], 0)

    def test_no_such_task(self):
        s, other = self.session(), self.session(name="iqn.2026-01.org.example:mcs2")
        itt = other.read(1, 0)
        other.status(1, itt)
        other.cut(1, 0)
        other.remove(0, 1)
        s.itt += 1000
        self.assertEqual(s.reassign(0, itt), NO_TASK)  # of another session
        self.assertEqual(s.reassign(0, 0xffffffff), NO_TASK)
        self.assertEqual(other.reassign(0, itt), DONE)
        other.pdus(0, itt)

    #
    #
    #
    # [RFC 7143: 11.5.1 #18]
    def test_it_has_to_be_immediate_rfc7143_11_5_1(self):
        s = self.session()
        self.assertEqual(s.reassign(0, 5, immediate=False), REJECTED)
        s.ready()

    #
    #
    #
    # [RFC 7143: 11.5.1 #16-17]
    def test_a_text_negotiation_is_not_reassigned_rfc7143_11_5_1(self):
        s = self.session()
        c = s.conns[0]
        c.put(0x44, 0, bytes(8), 4242, struct.pack(">III", 0xffffffff, s.cmdsn, c.expstatsn))
        self.assertEqual(c.recv()[0], 0x24)
        self.assertEqual(s.reassign(1, 4242), REJECTED)

    # [RFC 7143: 7.2.2 #4]
    def test_lower_levels_have_none(self):
        s = self.session(2, level=1)
        self.assertEqual(s.remove(0, 1)[0], 2)
        self.assertEqual(s.reassign(0, 5), NO_REASSIGN)
        s.ready()

    def test_abort_task_is_a_new_allegiance_rfc7143_11_5_1(self):
        s = self.session()
        cmdsn = s.cmdsn
        itt = s.read(1, 0)
        first = s.status(1, itt)
        s.cut(1, 0)
        s.remove(0, 1)
        tmf = s.abort(0, itt, cmdsn)
        self.assertEqual(s.status(0, itt), first)
        op, head, _ = s.conns[0].recv()
        self.assertEqual((op, head[2], word(head, 16)), (TMF_RSP, DONE, tmf))
        itt, _ = self.begin_write(s, 0, 1000, bytes(512))
        tmf = s.abort(0, itt, s.cmdsn - 1)
        op, head, _ = s.conns[0].recv()
        self.assertEqual((op, head[2]), (TMF_RSP, DONE))

    # ---- reinstatement, continuation ----

    # [RFC 7143: 6.3.4 #2]
    def test_reinstatement_is_a_logout_for_recovery_rfc7143_6_3_4(self):
        for lost in (True, False):
            s, data = self.session(), os.urandom(16384)
            itt, _ = self.begin_write(s, 1, 1000, data)
            old = s.conns[1]
            if lost:
                s.cut(1, 0)
            self.assertEqual(s.add(1)[0], 0)
            if not lost:
                self.assertTrue(old.closed())
            self.assertEqual(s.reassign(1, itt), DONE)
            self.finish_write(s, 1, itt, data)
            self.assertEqual(s.status(1, s.read(1, 1000, 32)), (0, data))
            s.close()

    def test_a_session_goes_on_without_connections_rfc7143_6_3_6(self):
        for cid in (0, 5):
            s, data = self.session(1), os.urandom(16384)
            tsih = s.tsih
            itt, _ = self.begin_write(s, 0, 1000, data)
            done = s.read(0, 0)
            s.status(0, done)
            s.cut(0)
            self.assertIn("CLEANUP_WAIT", json.dumps(self.states(tsih)))
            self.assertEqual(s.add(cid)[0], 0)
            if cid:
                self.assertEqual(s.reassign(cid, itt), ALLEGIANT)
                self.assertEqual(s.remove(cid, 0)[0], DONE)
            self.assertEqual(s.reassign(cid, itt), DONE)
            self.finish_write(s, cid, itt, data)
            self.assertEqual(s.reassign(cid, done), DONE)
            self.assertEqual(s.status(cid, done), (0, self.blocks[:512]))
            self.assertEqual(s.status(cid, s.command(cid))[0], 0)  # no unit attention
            s.close()

    def test_one_connection_alone_may_be_removed_and_the_session_waits(self):
        s, data = self.session(1), os.urandom(16384)
        itt, _ = self.begin_write(s, 0, 1000, data)
        self.assertEqual(s.remove(0, 0), (DONE, 0, 20))
        self.assertTrue(s.conns.pop(0).closed())
        self.assertEqual(s.add(3)[0], 0)
        self.assertEqual(s.reassign(3, itt), DONE)
        self.finish_write(s, 3, itt, data)

    def states(self, tsih):
        done = run([ISERCTL, "--socket", self.control, "status", "--json"])
        return [x for x in json.loads(done.text)["sessions"] if x["tsih"] == tsih]

    #
    #
    # [RFC 7143: 7.14 #2]
    def test_session_reinstatement_ends_a_waiting_session_rfc7143_6_3_5(self):
        s, data = self.session(1), os.urandom(16384)
        self.begin_write(s, 0, 1000, data)
        s.cut(0)
        tsih = s.tsih
        self.assertEqual(len(self.states(tsih)), 1)
        s.tsih, s.cmdsn = 0, 1
        self.assertEqual(s.add(0)[0], 0)
        self.assertNotEqual(s.tsih, tsih)
        self.assertEqual(self.states(tsih), [])
        s.ready()

    def test_time2retain_rfc7143_11_14_5(self):
        s, data = self.session(2, retain=1), os.urandom(16384)
        itt, _ = self.begin_write(s, 1, 1000, data)
        s.cut(1, 0)
        self.assertEqual(s.remove(0, 1), (DONE, 0, 1))
        time.sleep(1.5)
        self.assertEqual(s.reassign(0, itt), NO_TASK)
        status, sense = s.status(0, s.command(0))
        self.assertEqual((status, sense[2:][12:14]), (2, b"\x47\x7f"))
        s.ready()

    def test_a_session_without_connections_ends_rfc7143_8_3(self):
        s = self.session(1, retain=1)
        tsih = s.tsih
        s.cut(0)
        self.assertEqual(len(self.states(tsih)), 1)
        time.sleep(1.5)
        self.assertEqual(self.states(tsih), [])
        self.assertEqual(s.add(1)[0], NO_SESSION)

    def test_time2retain_0_keeps_nothing_rfc7143_13_16(self):
        s = self.session(2, retain=0)
        itt, _ = self.begin_write(s, 1, 1000, bytes(16384))
        s.conns.pop(1).sock.close()
        time.sleep(0.2)
        status, sense = s.status(0, s.command(0))
        self.assertEqual((status, sense[2:][12:14]), (2, b"\x47\x7f"))
        self.assertEqual(s.reassign(0, itt), NO_TASK)
        s.ready()

    #
    # [RFC 7143: 7.7 #1]
    def test_a_format_error_ends_the_session_rfc7143_7_7(self):
        """A connection whose bytes make no sense is not recovered: all connections end."""
        s = self.session()
        s.conns[1].sock.sendall(bytes([1, 0x80, 0, 0, 0, 0xff, 0xff, 0xff]) + bytes(40))
        op, head, _ = s.conns[0].recv()
        self.assertEqual((op, head[36]), (ASYNC, 3))
        self.assertEqual(s.conns[0].sock.recv(1), b"")

    def test_an_administrator_ends_a_waiting_session(self):
        s = self.session(1)
        s.cut(0)
        run([ISERCTL, "--socket", self.control, "session", "kick", "%d" % s.tsih])
        self.assertEqual(s.add(1)[0], NO_SESSION)

    # ---- shares ----

    def test_a_connection_lost_again_and_again(self):
        s = self.session(1)
        s.ready()
        for cid in range(1, 40):
            self.assertEqual(s.add(cid)[0], 0)
            s.conns.pop(cid).sock.close()
            op, head, _ = s.conns[0].recv()
            self.assertEqual((op, head[36]), (ASYNC, 2))
        time.sleep(0.2)
        self.assertLessEqual(len(self.states(s.tsih)), 13)
        s.ready()

    def test_waiting_sessions_of_one_address_are_limited(self):
        first = None
        for i in range(20):
            s = Recovering(self, self.daemon, name="iqn.2026-01.org.example:many%d" % i)
            s.close()
            first = first or s
        time.sleep(0.5)
        done = run([ISERCTL, "--socket", self.control, "status", "--json"])
        waiting = [x for x in json.loads(done.text)["sessions"] if ":many" in x["initiator"]]
        self.assertLessEqual(len(waiting), 16)  # eight for each worker
        self.assertGreater(len(waiting), 0)
        self.assertEqual(first.add(1)[0], NO_SESSION)

    @need("tshark", "dumpcap")
    def test_tshark_knows_the_recovery(self):
        with tempfile.TemporaryDirectory() as folder:
            cap = Capture(self.daemon.address[1], os.path.join(folder, "trace.pcapng"))
            s, data = self.session(), os.urandom(16384)
            itt, _ = self.begin_write(s, 1, 1000, data)
            s.cut(1, 0)
            s.remove(0, 1)
            s.reassign(0, itt)
            self.finish_write(s, 0, itt, data)
            cap.stop()
            self.assertEqual(cap.fields("_ws.malformed || (iscsi && "
                                        "_ws.expert.severity >= \"Error\")",
                                        "_ws.expert.message"), [])
            self.assertEqual(len(cap.fields("iscsi.logout.reason == 2", "iscsi.opcode")), 1)
            self.assertEqual(len(cap.fields("iscsi.taskmanfun.function == 8", "iscsi.opcode")), 1)


class Cuts:
    """A path to a target that breaks one of the connections of a session after so many bytes
    of full feature phase, again and again, but never the last one that is left."""

    def __init__(self, daemon, after, most=1000, ways=(0, 1)):
        self.daemon, self.after, self.most, self.ways = daemon, after, most, ways
        self.lock, self.live, self.cuts, self.passed, self.over = threading.Lock(), [], 0, 0, False
        self.served = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = daemon.url.replace(daemon.portal, "127.0.0.1:%d" % self.listener.getsockname()[1])
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while not self.over:
            try:
                near = self.listener.accept()[0]
            except OSError:
                return
            far = socket.create_connection(self.daemon.address)
            ends = (near, far)
            with self.lock:
                self.live.append(ends)
                self.served += 1
            for way in (0, 1):
                threading.Thread(target=self.pump, daemon=True, args=(ends, way)).start()

    def pump(self, ends, way):
        source, sink = ends[way], ends[1 - way]
        try:
            while True:
                data = source.recv(8192)
                if not data:
                    break
                if way in self.ways and self.due(ends, len(data)):
                    sink.sendall(data[:len(data) // 2])
                    break
                sink.sendall(data)
        except OSError:
            pass
        with self.lock:
            if ends in self.live:
                self.live.remove(ends)
        for s in ends:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def due(self, ends, n):
        with self.lock:
            self.passed += n
            if self.passed < self.after or len(self.live) < 2 or self.cuts >= self.most:
                return False
            self.passed = 0
            self.cuts += 1
            self.live.remove(ends)
            return True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over = True
        self.listener.close()


class Libiser(Folder):
    SIZE = 8 << 20

    def both_ways(self, keys, **cut):
        """Copies an image to iserd and back over a path that cuts; returns the cuts."""
        source, back = self.path("in.img"), self.path("out.img")
        with open(source, "wb") as f:
            f.write(os.urandom(self.SIZE))
        with Daemon("--error-recovery-level", "2", "--max-connections", "4", "ram:8M") as d:
            cuts = []
            for words in (("%s", "URL"), ("URL", "%s")):
                with Cuts(d, **cut) as path:
                    url = path.url + "?connections=4&error_recovery_level=2&timeout=30&" + keys
                    name = source if words[1] == "URL" else back
                    done = run([ISER, "copy", "-q"] + [w.replace("URL", url).replace("%s", name) for w in words])
                    self.assertEqual(done.returncode, 0, done.text)
                    self.assertEqual(path.served, 4)  # one session
                    cuts.append(path.cuts)
        with open(source, "rb") as a, open(back, "rb") as b:
            self.assertEqual(a.read(), b.read())
        return cuts

    def test_nothing_is_lost_with_three_of_four_connections(self):
        self.assertEqual(self.both_ways("", after=1 << 20, most=3), [3, 3])

    def test_nothing_is_lost_with_digests(self):
        self.assertEqual(self.both_ways("header_digest=crc32c&data_digest=crc32c", after=3 << 19, most=3), [3, 3])

    def test_a_cut_of_what_the_target_sends(self):
        self.assertEqual(self.both_ways("", after=300000, most=3, ways=(1,))[1], 3)


if __name__ == "__main__":
    main()
