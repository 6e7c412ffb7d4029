#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The Hello exchange of iSER (RFC 7145 §5.1.3, §6.10, §9.3, §9.4, §10.1.3.2 to §10.1.3.4)
end to end, and each role against a peer of bytes that shares no code with openiser."""
import os
import struct
import unittest

from fake_target import Case, Ended
from harness import ISER, ISERCTL, Daemon, Folder, main, patience, run, some_time, until
from iser_target import GOOD_REPLY, IserTarget
from rdma_wire import HELLO, HELLO_REPLY, READ_REQUEST, SEND, RdmaWire, Terminated
from test_iser_rdma import Control

STARTS = ("rdma", "stream")
REJ = 1


def hello(ird=4, versions=0xaa, opcode=HELLO, flags=0):
    return bytes([opcode << 4 | flags, versions]) + struct.pack(">H", ird) + bytes(24)


class Target(unittest.TestCase):
    """iserd; the initiator is bytes."""

    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon("ram:8M")

    @classmethod
    def tearDownClass(cls):
        with cls.daemon:
            pass

    def wire(self, start, required="Yes", ird=None, keys=()):
        """Logs in. ird: what MPA offers (RFC 6581 §9)."""
        w = RdmaWire(self.daemon, start, connect=False)
        self.addCleanup(w.close)
        if ird is not None:
            w.mpa_request(struct.pack(">HH", ird, 0) + b"\x80\0\0\0", revision=2, flags=0x50)
            w.mpa_reply()
            w.in_rdma = True
        elif start == "rdma":
            w.begin(b"\x80\0\0\0")
        w.solicited_only = True
        w.login("TaggedBufferForSolicitedDataOnly=Yes", *keys,
                *(["iSERHelloRequired=" + required] if required else []))
        return w

    def sessions(self, **kw):
        for start in STARTS:
            yield self.wire(start, **kw)

    def refused(self, w, log, count=1):
        with self.assertRaises((EOFError, ConnectionError, Terminated)):
            while True:
                w.next_send()
        w.expect_close()
        until(lambda: self.daemon.messages().count(log) >= count, lambda: self.daemon.messages())

    def answered(self, w, ord_, rej=0):
        self.assertEqual(w.next_send(), hello(ord_, opcode=HELLO_REPLY, flags=rej))

    # [RFC 7145: 5.1.2 #9, 5.1.3 #3 #5, 9.4 #1-4]
    def test_hello_first_rfc7145_5_1_3(self):
        """The least of both sides is iSER-ORD; then the session works."""
        for ird, ord_ in ((0, 0), (1, 1), (4, 4), (32, 32), (65535, 32)):
            for w in self.sessions():
                w.untagged(SEND, hello(ird))
                self.answered(w, ord_)
                w.ready()
                data = os.urandom(4096)
                if ird:
                    self.assertEqual(w.write10(8, data), (0, b""))
                    self.assertEqual(w.read10(8, 8), (0, data))
                else:
                    self.assertEqual(w.read10(8, 8)[0], 0)

    # [RFC 7145: 8.2 #1]
    def test_not_more_reads_than_iser_ird_rfc7145_8_2(self):
        """A WRITE of five bursts, with one RDMA Read at a time and with two."""
        for ird in (1, 2):
            for w in self.sessions(keys=["MaxBurstLength=65536"]):
                w.untagged(SEND, hello(ird))
                self.answered(w, ird)
                w.ready()
                data = os.urandom(5 << 16)
                w.command(b"\x2a\0" + struct.pack(">IBH", 0, 0, len(data) // 512), 0xa0, len(data), data)
                pending = []
                for _ in range(5):
                    while len(pending) < min(ird, 5 - w.reads_asked):
                        u = w.next_ulpdu()
                        self.assertEqual((u[0] & 0x80, u[1] & 15), (0, READ_REQUEST))
                        pending.append(u[18:])
                    w.sock.settimeout(0.2)
                    with self.assertRaises(TimeoutError):
                        w.sock.recv(1)
                    w.sock.settimeout(patience(30))
                    w._serve_read(pending.pop(0))
                self.assertEqual(w.recv()[1][3], 0)

    # [RFC 7145: 9.3 #5-6]
    def test_reserved_bits_are_ignored_rfc7145_9_3(self):
        for w in self.sessions():
            w.untagged(SEND, b"\x2f\xaa\0\4" + b"\xff" * 24)
            self.answered(w, 4)
            w.ready()

    # [RFC 7145: 10.1.3.2 #1-2]
    def test_versions_that_do_not_overlap_rfc7145_10_1_3_2(self):
        """REJ comes first, then the end of the connection."""
        for n, versions in enumerate((0x99, 0xfb, 0x9f)):
            for start in STARTS:
                w = self.wire(start)
                w.untagged(SEND, hello(4, versions))
                self.answered(w, 4, REJ)
                self.refused(w, "RFC 7145 §10.1.3.2", 2 * n + 1)
        for versions in (0xa1, 0xfa):  # 10 is among them
            for w in self.sessions():
                w.untagged(SEND, hello(4, versions))
                self.answered(w, 4)
                w.ready()

    def test_reads_for_a_target_without_any_rfc7145_10_1_3_2(self):
        """MPA gives the target no RDMA Read, but iSER-IRD is 4: that contradicts itself."""
        w = self.wire("rdma", ird=0)
        w.untagged(SEND, hello(4))
        self.answered(w, 0, REJ)
        self.refused(w, "iSER-IRD in the Hello")
        w = self.wire("rdma", ird=0)
        w.untagged(SEND, hello(0))
        self.answered(w, 0)
        w.ready()
        self.assertEqual(w.read10(0, 8)[0], 0)

    # [RFC 7145: 10.1.3.4 #1-2]
    def test_hello_is_missing_rfc7145_10_1_3_4(self):
        for w in self.sessions():
            w.pdu(0x40)
            self.refused(w, "iSER Hello missing")
        for w in self.sessions():
            w.untagged(SEND, hello(4, opcode=HELLO_REPLY))
            self.refused(w, "unexpected iSER Hello or HelloReply")

    def test_hello_of_a_wrong_length_rfc7145_10_1_3_3(self):
        for w in self.sessions():
            w.untagged(SEND, hello() + b"\0")
            self.refused(w, "data after an iSER Hello")
        for w in self.sessions():
            w.untagged(SEND, hello()[:27])
            self.refused(w, "malformed iSER header")

    def test_hello_twice_rfc7145_10_1_3_4(self):
        for w in self.sessions():
            w.untagged(SEND, hello())
            self.answered(w, 4)
            w.untagged(SEND, hello())
            self.refused(w, "unexpected iSER Hello")

    # [RFC 7145: 5.1.2 #10, 5.1.3 #4 #6]
    def test_hello_without_the_key_rfc7145_5_1_3(self):
        """With No it is a protocol error. An initiator without the key is one of RFC 5046, which
        has the exchange always."""
        for w in self.sessions(required="No"):
            w.untagged(SEND, hello())
            self.refused(w, "unexpected iSER Hello")
        for w in self.sessions(required=None):
            w.untagged(SEND, hello())
            self.answered(w, 4)
            w.ready()

    def test_target_is_silent_before_the_hello_rfc7145_5_1_2(self):
        """Its first message is the HelloReply, whatever it has to say: a logical unit reset of
        another session."""
        for w in self.sessions():
            other = RdmaWire(self.daemon)
            other.ISID = RdmaWire.ISID[:5] + b"\x55"
            other.login()
            other.ready()
            other.pdu(0x42, 0x85, rest=struct.pack(">IIII", 0xffffffff, other.cmdsn, 1, 0))
            self.assertEqual(other.recv()[0], 0x22)
            other.close()
            w.untagged(SEND, hello())
            self.answered(w, 4)
            w.ready()


class Initiator(Case):
    """libiser; the target is bytes."""

    def works(self, **target):
        with IserTarget(**target) as t:
            done = self.iser("info", t.url())
            self.assertIn("FAKE", done.out)
            return t.seen

    def fails(self, t, more=None):
        """The connection ends in an orderly way, and iser says so."""
        done = Ended([ISER, "info", t.url(more)])
        self.assertGreater(done.status, 0, done.out)
        self.assertRegex(done.err, "^iser: .*(command 12h: (protocol error|timed out)|does not change to RDMA mode)")
        for word in ("runtime error", "Sanitizer"):
            self.assertNotIn(word, done.err)
        return done.err

    # [RFC 7145: 5.1.1 #1 #5, 5.1.3 #1, 6.10 #1, 9.3 #1-4]
    def test_hello_first_rfc7145_5_1_3(self):
        for start in STARTS:
            seen = [m for m in self.works(start=start) if isinstance(m, bytes)]
            self.assertEqual([(m[0], m[1], m[4:]) for m in seen], [(0x20, 0xaa, bytes(24))])
            self.assertGreaterEqual(int.from_bytes(seen[0][2:4], "big"), 1)

    def test_waits_for_the_reply_rfc7145_5_1_3(self):
        class Slow(IserTarget):
            def hello(self, c, message):
                c.sock.sock.settimeout(0.5)
                try:
                    self.seen.append(c.sock.sock.recv(1))
                except TimeoutError:
                    self.seen.append("silence")
                c.sock.sock.settimeout(patience(30))
                super().hello(c, message)

        for start in STARTS:
            with Slow(start=start) as t:
                self.iser("info", t.url())
                self.assertEqual(t.seen[0], "silence")

    # [RFC 7145: 5.1.3 #2, 6.10 #2]
    def test_target_without_the_key_rfc7145_5_1_3(self):
        """An "old" target: no Hello."""
        for answer in ("NotUnderstood", "Irrelevant", "Reject"):
            for start in STARTS:
                self.assertEqual([m for m in self.works(start=start, keys=["iSERHelloRequired=" + answer])
                                  if isinstance(m, bytes)], [])

    def test_good_replies(self):
        for reply in (hello(0, opcode=HELLO_REPLY), hello(1, opcode=HELLO_REPLY),
                      b"\x3e\xaa\0\4" + b"\xff" * 24):
            for start in STARTS:
                self.works(start=start, hello=lambda c, _, r=reply: c.sock.message(r))

    def test_bad_replies_rfc7145_10_1_3(self):
        """REJ, another CurVer, more RDMA Reads than iSER-IRD, a wrong length, another message."""
        reply = {"opcode": HELLO_REPLY}
        bad = (hello(4, flags=REJ, **reply), hello(4, 0xa9, **reply), hello(4, 0xbb, **reply),
               hello(33, **reply), hello(65535, **reply), GOOD_REPLY + b"\0", GOOD_REPLY[:27],
               hello(4), bytes([4 << 4]) + bytes(27),
               b"\x10" + bytes(27) + b"\x20\x80" + bytes(14) + b"\xff" * 8 + bytes(24))
        for start in STARTS:
            for message in bad:
                with IserTarget(start=start, hello=lambda c, _: c.sock.message(message)) as t:
                    self.fails(t)

    def test_two_replies_rfc7145_10_1_3_4(self):
        for start in STARTS:
            with IserTarget(start=start, hello=lambda c, _: [c.sock.message(GOOD_REPLY)
                                                             for _ in range(2)]) as t:
                self.fails(t)

    def test_reply_without_a_hello_rfc7145_10_1_3_4(self):
        class Unasked(IserTarget):
            def ready(self, c, head):
                c.sock.message(GOOD_REPLY)
                super().ready(c, head)

            inquiry = luns = capacity = ready

        for start in STARTS:
            with Unasked(start=start, keys=["iSERHelloRequired=NotUnderstood"]) as t:
                self.fails(t)

    def test_no_reply(self):
        for start in STARTS:
            with IserTarget(start=start, hello=lambda c, _: None) as t:
                self.assertIn("timed out", self.fails(t, "login_timeout=1&noop_out_interval=1&noop_out_timeout=1&" + some_time()))


class Both(Folder):
    """libiser and iserd."""

    def test_hello_end_to_end_rfc7145_5_1_3(self):
        data = os.urandom(3 << 20)
        with open(self.path("in"), "wb") as f:
            f.write(data)
        for start in STARTS:
            for more in ("", "&connections=4", "&connections=4&error_recovery_level=2", "&compat=strict"):
                with Control("--max-connections", "4", "--error-recovery-level", "2", "ram:8M") as c:
                    url = "%s?transport=iser&start=%s&iser_hello=yes%s" % (c.daemon.url, start, more)
                    run([ISER, "copy", self.path("in"), url])
                    run([ISER, "copy", url, self.path("out")])
                    with open(self.path("out"), "rb") as f:
                        self.assertEqual(f.read()[:len(data)], data)
                    shell = run([ISER, "bench", "--time", "1", url])
                    self.assertIn("IOPS", shell.text.upper())

    def test_status_shows_the_key(self):
        for yes in ("yes", "no"):
            with Control("ram:8M") as c:
                w = RdmaWire(c.daemon)
                w.login("iSERHelloRequired=" + yes.capitalize())
                if yes == "yes":
                    w.untagged(SEND, hello())
                    w.next_send()
                w.ready()
                self.assertIn('"iSERHelloRequired": "%s"' % yes.capitalize(),
                              run([ISERCTL, "--socket", c.path, "--json", "status"]).text)
                w.close()


if __name__ == "__main__":
    main()
