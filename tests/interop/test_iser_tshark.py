#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""tshark checks iSER PDU by PDU, for each kind of connection.

tshark supports iSER over InfiniBand only: tests/lab/iser.lua passes the contents of
RDMAP Sends to its iSER dissector; tshark itself decodes MPA, DDP, RDMAP, their CRCs
and the iSCSI PDUs.
"""
import os
import subprocess
import tempfile
import unittest

from harness import Daemon, ISER, main, need, over, run
from test_rdma import IwarpCapture

LUA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lab",
                   "iser.lua")
NOP_OUT, COMMAND, LOGIN, LOGOUT = 0x00, 0x01, 0x03, 0x06
NOP_IN, RESPONSE, LOGIN_IN, LOGOUT_IN = 0x20, 0x21, 0x23, 0x26
WRITE, READ_REQUEST, READ_RESPONSE, SEND, SEND_INV, SEND_SE, SEND_SE_INV = \
    range(7)


class IserCapture(IwarpCapture):
    def tshark(self, *words):
        # the dissectors rpcordma and smb_direct would accept any Send
        out = subprocess.run(
            ["tshark", "-X", "lua_script:" + LUA, "--disable-protocol",
             "rpcordma", "--disable-protocol", "smb_direct",
             "--enable-heuristic", "iwarp_mpa_tcp", "-o",
             "tcp.desegment_tcp_streams:TRUE", "-r", self.path] + list(words),
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=120,
            env=dict(os.environ, LC_ALL="C"))
        return out.stdout.decode(errors="replace")

    def rows(self):
        """Returns (iSCSI opcodes, RDMAP opcodes, MPA Request, MPA Reply) of each frame."""
        def ints(text):
            return [int(x, 0) for x in text.split(",") if x]
        return [(ints(a), ints(b), bool(c), bool(d)) for a, b, c, d in
                self.fields("tcp.len > 0", "iscsi.opcode",
                            "iwarp_rdma.opcode", "iwarp_mpa.req",
                            "iwarp_mpa.rep")]

    def as_iscsi(self):
        """Returns the iSCSI opcodes before RDMA mode."""
        out = subprocess.run(
            ["tshark", "-r", self.path, "-d", "tcp.port==%d,iscsi" % self.port,
             "-c", "40", "-Y", "iscsi.opcode in {3,0x23}", "-T", "fields",
             "-e", "iscsi.opcode"], stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, timeout=60)
        return [int(x, 0) & 0x3f for line in out.stdout.decode().split()
                for x in line.split(",")]


@need("tshark", "dumpcap")
@unittest.skipUnless(os.path.exists(ISER), "iser is not built")
class Dissected(unittest.TestCase):
    def captured(self, way, *command):
        with tempfile.TemporaryDirectory() as d, Daemon("ram:16M") as t:
            cap = IserCapture(t.address[1], os.path.join(d, "trace.pcapng"))
            run([ISER] + list(command) + [over(t.url, way)])
            cap.stop()
            rows, iscsi = cap.rows(), cap.as_iscsi()
            self.assertEqual(cap.fields(
                "_ws.malformed || iwarp_mpa.bad_length || (iwarp_mpa && "
                "_ws.expert.severity >= \"Error\")", "frame.number"), [])
            good, bad = cap.checksums()
            self.assertEqual(bad, 0)
            self.assertEqual(good, len(cap.opcodes()))
        pdus = [x & 0x3f for r in rows for x in r[0]]
        return rows, iscsi, pdus, [x for r in rows for x in r[1]]

    def mpa_at(self, rows):
        """Returns the position of the MPA Request; its Reply must follow."""
        at = [i for i, r in enumerate(rows) if r[2]]
        self.assertEqual(len(at), 1)
        self.assertTrue(rows[at[0] + 1][3])
        return at[0]

    def test_ping_from_the_start(self):
        """MPA, then the login and all other PDUs in Sends."""
        rows, _, pdus, rdma = self.captured("rdma", "ping", "--count", "2",
                                            "--size", "100")
        self.assertEqual(self.mpa_at(rows), 0)
        self.assertEqual(pdus, [LOGIN, LOGIN_IN, NOP_OUT, NOP_IN, NOP_OUT,
                                NOP_IN, LOGOUT, LOGOUT_IN])
        # the first message is the RDMA Write of Ready To Receive
        self.assertEqual(rdma, [WRITE] + [SEND] * 8)

    def test_ping_after_login(self):
        """RFC 7145 §5.1.2: Login Request, Login Response, MPA Request, MPA Reply,
        then Sends; the first NOP-Out verifies that RDMA mode works."""
        rows, iscsi, pdus, rdma = self.captured("stream", "ping", "--count",
                                                "2", "--size", "100")
        self.assertEqual(iscsi[:2], [LOGIN, LOGIN_IN])
        self.assertEqual(self.mpa_at(rows), 2)
        pdus = [p for p in pdus if p not in (LOGIN, LOGIN_IN)]
        self.assertEqual(pdus, [NOP_OUT, NOP_IN] * 3 + [LOGOUT, LOGOUT_IN])
        self.assertEqual(rdma, [WRITE] + [SEND_SE] * 8)

    def data(self, way, rw, kinds):
        rows, _, pdus, rdma = self.captured(
            way, "bench", "--rw", rw, "--amount", "512k", "--bs", "64k",
            "--depth", "1", "--yes-overwrite")
        self.assertEqual(pdus.count(COMMAND), pdus.count(RESPONSE))
        self.assertGreaterEqual(pdus.count(COMMAND), 8)
        # §7.2: data-type PDUs are never sent as messages
        self.assertFalse({0x05, 0x25, 0x31} & set(pdus))
        self.assertLessEqual(set(kinds), set(rdma))
        return rdma

    def test_reads(self):
        """Data-In becomes RDMA Write, the response a Send with Invalidate."""
        for way, inv in (("rdma", SEND_INV), ("stream", SEND_SE_INV)):
            rdma = self.data(way, "read", [WRITE, inv])
            self.assertNotIn(READ_REQUEST, rdma)

    def test_writes(self):
        """R2T becomes RDMA Read Request, Data-Out its Response."""
        for way, inv in (("rdma", SEND_INV), ("stream", SEND_SE_INV)):
            rdma = self.data(way, "write",
                             [READ_REQUEST, READ_RESPONSE, inv])
            self.assertGreaterEqual(rdma.count(READ_REQUEST), 8)


if __name__ == "__main__":
    main()
