#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""RDMA over software iWARP: iser rping and iser rbench with each other and with a
peer that builds its messages from bytes; the MPA, DDP and RDMAP dissectors of tshark
check the messages."""
import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import unittest

from harness import ISER, exactly, main, need, patience, run, text_of_log
from rdma_wire import crc32c
from test_tshark import Capture

WRITE, READ_REQUEST, READ_RESPONSE, SEND, SEND_INV, SEND_SE, SEND_SE_INV, \
    TERMINATE = range(8)


class Server:
    """iser rping --server or iser rbench --server on a free port."""

    def __init__(self, command, *options):
        self.log = tempfile.TemporaryFile()
        self.proc = subprocess.Popen(
            [ISER, command, "--server"] + list(options) + ["127.0.0.1:0"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log)
        self.address = self.proc.stdout.readline().decode().strip()
        if not self.address:
            raise AssertionError("no server: " + self.messages())
        self.port = int(self.address.rsplit(":", 1)[1])

    def messages(self):
        return text_of_log(self.log)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if self.proc.poll() is None:
            self.proc.send_signal(signal.SIGTERM)
        status = self.proc.wait(patience(12))
        self.proc.stdout.close()
        text = self.messages()
        self.log.close()
        if kind is None and (status or "Sanitizer" in text):
            raise AssertionError("server ended with %d: %s" % (status, text))


def rping(server, *options):
    done = run([ISER, "rping", "--json", "-V"] + list(options) +
               [server.address])
    return json.loads(done.text)


@unittest.skipUnless(os.path.exists(ISER), "iser is not built")
class Rping(unittest.TestCase):
    def test_sizes(self):
        with Server("rping") as s:
            for size in (32, 33, 64, 4096, 16383, 65535, 65536):
                r = rping(s, "-C", "20", "-S", str(size))
                self.assertEqual((r["pings"], r["size"]), (20, size))

    def test_segments_read_two_at_a_time(self):
        """Read Responses in segments of 16 KiB and more, all of one length or
        the last one shorter; the data come back by Writes and are compared."""
        with Server("rping", "--fpdu", "17000") as s:
            for fpdu_max in ("16500", "20000", "25000", "33000"):
                for size in ("65536", "60000", "49153"):
                    r = rping(s, "-C", "30", "-S", size, "--fpdu", fpdu_max)
                    self.assertEqual(r["pings"], 30)

    def test_every_option(self):
        """The options of both sides, and the expected results."""
        for n in range(64):
            no_crc, markers_s, markers_c, plain, p2p, short = (
                bool(n >> b & 1) for b in range(6))
            mine = ["--markers"] * markers_c + ["--no-crc"] * no_crc + \
                ["--mpa", "1"] * plain + \
                ["--peer-to-peer"] * (p2p and not plain) + \
                ["--fpdu", "1400"] * short
            theirs = ["--markers"] * markers_s + ["--no-crc"] * no_crc + \
                ["--fpdu", "1000"] * short
            with self.subTest(client=mine, server=theirs), \
                    Server("rping", *theirs) as s:
                r = rping(s, "-C", "5", "-S", "20000", *mine)
                self.assertEqual(r["pings"], 5)
                self.assertEqual(r["crc"], not no_crc)
                self.assertEqual(r["markers_in"], markers_c)
                self.assertEqual(r["markers_out"], markers_s)
                self.assertEqual(r["peer_to_peer"], p2p and not plain)

    def test_one_side_wants_crc(self):
        """RFC 5044 §7.1: the CRC is on if either side requests it."""
        for server, client in (((), ("--no-crc",)), (("--no-crc",), ())):
            with Server("rping", *server) as s:
                self.assertTrue(rping(s, "-C", "2", *client)["crc"])

    def test_many_clients(self):
        with Server("rping") as s:
            args = [ISER, "rping", "-V", "-C", "200", "-S", "3000", s.address]
            clients = [subprocess.Popen(args, stdout=subprocess.DEVNULL)
                       for _ in range(12)]
            self.assertEqual([c.wait(patience(60)) for c in clients], [0] * 12)

    def test_printed_data(self):
        with Server("rping", "-v", "--once") as s:
            out = run([ISER, "rping", "-v", "-C", "2", s.address]).text
            self.assertIn("ping data: rdma-ping-0: ABC", out)
            self.assertIn("ping data: rdma-ping-1: BCD", out)
            self.assertEqual(s.proc.wait(patience(10)), 0)
            self.assertIn("server ping data: rdma-ping-1: BCD",
                          s.proc.stdout.read().decode())

    def test_names_and_versions_of_ip(self):
        try:
            socket.getaddrinfo("localhost", None)
        except socket.gaierror:
            self.skipTest("no localhost in /etc/hosts")
        with Server("rping") as s:
            out = run([ISER, "rping", "-C", "1", "localhost:%d" % s.port])
            self.assertIn("1 pings", out.text)
        if not os.path.exists("/proc/net/if_inet6"):
            self.skipTest("no IPv6 here")

    def test_no_listener(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            r = run([ISER, "rping", "-C", "1",
                     "127.0.0.1:%d" % s.getsockname()[1]], check=False)
        self.assertEqual(r.returncode, 4)
        self.assertIn("refused", r.text)

    def test_wrong_arguments(self):
        for args in ([], ["a:b:c:99999"], ["host:0"], ["-S", "5", "h"],
                     ["-S", "65537", "h"], ["--mpa", "3", "h"],
                     ["--mpa", "1", "--peer-to-peer", "127.0.0.1"],
                     ["--fpdu", "64", "h"], ["-C", "x", "h"], ["h", "h"]):
            r = run([ISER, "rping"] + args, check=False)
            self.assertNotIn(r.returncode, (0, -6, -11), args)
            self.assertIn("iser: ", r.text)


@unittest.skipUnless(os.path.exists(ISER), "iser is not built")
class Rbench(unittest.TestCase):
    TESTS = ("write_bw", "read_bw", "send_bw", "write_lat", "read_lat",
             "send_lat")

    def rows(self, server, *options):
        return json.loads(run([ISER, "rbench", "--json"] + list(options) +
                              [server.address]).text)

    def test_all(self):
        with Server("rbench") as s:
            rows = self.rows(s, "-n", "600", "--size", "1", "--size", "4k",
                             "--size", "100001")
        self.assertEqual([(r["test"], r["size"]) for r in rows],
                         [(t, z) for t in self.TESTS
                          for z in (1, 4096, 100001)])
        for r in rows:
            self.assertEqual(r["iterations"], 600)
            self.assertGreater(r["bytes_per_second"], 0)

    def test_by_time_with_markers(self):
        with Server("rbench", "--markers", "--events") as s:
            rows = self.rows(s, "--time", "0.2", "--size", "64k", "--markers",
                             "--events", "--depth", "3")
        self.assertEqual(len(rows), 6)
        for r in rows:
            self.assertTrue(r["markers_in"] and r["markers_out"])
            self.assertGreater(r["iterations"], 10)
            self.assertLess(r["seconds"], 5)

    def test_columns(self):
        with Server("rbench") as s:
            out = run([ISER, "rbench", "-n", "100", s.address]).text
        self.assertEqual(len(re.findall(r"^ #bytes +#iterations", out, re.M)),
                         6)
        self.assertEqual(len(re.findall(r"^ 65536 +100 +[\d.]+ ", out, re.M)),
                         6)

    def test_rping_is_no_rbench(self):
        with Server("rbench") as s:
            r = run([ISER, "rping", "-C", "1", s.address], check=False)
        self.assertEqual(r.returncode, 4)
        self.assertIn("rejected", r.text)


# ---- the wire, in Python ----

def fpdu(ulpdu):
    body = struct.pack(">H", len(ulpdu)) + ulpdu
    body += bytes(-len(body) % 4)
    return body + struct.pack("<I", crc32c(body))


def tagged(opcode, stag, to, data=b"", last=True):
    return struct.pack(">BBIQ", 0x81 | (0x40 if last else 0), 0x40 | opcode,
                       stag, to) + data


def untagged(opcode, qn, msn, data=b"", mo=0, stag=0):
    return struct.pack(">BBIIII", 0x41, 0x40 | opcode, stag, qn, msn, mo) + \
        data


def split_stream(data, markers):
    """Returns the ULPDUs of one direction from full operation on (RFC 5044 §4);
    checks each marker and each CRC."""
    ulpdus, at = [], 0
    while at < len(data):
        covered, content, start, total = b"", b"", None, 2
        while len(content) < total:
            if markers and at % 512 == 0:
                marker = data[at:at + 4]
                back = at - start if content else 0
                if struct.unpack(">HH", marker) != (0, back):
                    raise AssertionError("marker at %d: %s, not %d" % (
                        at, marker.hex(), back))
                covered += marker
                at += 4
            if not content:
                start = at
            n = min(total - len(content), 512 - at % 512) if markers else \
                total - len(content)
            piece = data[at:at + n]
            if len(piece) < n:
                raise AssertionError("the stream ends within an FPDU")
            content, covered, at = content + piece, covered + piece, at + n
            if len(content) == 2:
                length = struct.unpack(">H", content)[0]
                total = 2 + length + (-(2 + length) % 4) + 4
        if struct.unpack("<I", covered[-4:])[0] != crc32c(covered[:-4]):
            raise AssertionError("wrong CRC before octet %d" % at)
        ulpdus.append(content[2:2 + length])
    return ulpdus


# ---- a peer that builds its messages from bytes ----


class Peer:
    """An initiator of MPA revision 1 (RFC 5044 §7.1.1)."""

    def __init__(self, server, private=b""):
        host, port = server.address.rsplit(":", 1)
        self.sock = socket.create_connection((host, int(port)),
                                             timeout=patience(10))
        self.sock.sendall(b"MPA ID Req Frame" +
                          struct.pack(">BBH", 0x40, 1, len(private)) + private)
        reply = self.exactly(20)
        self.private = self.exactly(struct.unpack(">H", reply[18:])[0])
        assert reply[:16] == b"MPA ID Rep Frame", reply
        self.flags, self.revision = reply[16], reply[17]

    def exactly(self, n):
        return exactly(self.sock, n)

    def send(self, *ulpdus):
        self.sock.sendall(b"".join(fpdu(u) for u in ulpdus))

    def receive(self):
        """Returns the next ULPDU; checks its CRC."""
        head = self.exactly(2)
        n = struct.unpack(">H", head)[0]
        rest = self.exactly(n + (-(n + 2) % 4) + 4)
        crc = struct.unpack("<I", rest[-4:])[0]
        assert crc == crc32c(head + rest[:-4])
        return rest[:n]

    def terminate_reason(self):
        """Returns layer << 12 | type << 8 | code of the expected Terminate."""
        while True:
            u = self.receive()
            if u[1] & 0xf == TERMINATE:
                return struct.unpack(">H", u[18:20])[0]

    def close(self):
        self.sock.close()


@unittest.skipUnless(os.path.exists(ISER), "iser is not built")
class Attacks(unittest.TestCase):
    """Attacks of RFC 5042: each one ends its own connection with the correct
    Terminate, and the server continues."""

    def reason(self, *ulpdus, raw=None):
        with Server("rping") as s:
            p = Peer(s)
            self.assertEqual(p.flags & 0x60, 0x40)  # CRC, no reject
            self.assertEqual(p.revision, 1)
            if raw is not None:
                p.sock.sendall(raw)
            else:
                p.send(*ulpdus)
            reason = p.terminate_reason()
            with self.assertRaises((EOFError, ConnectionResetError)):
                p.exactly(1)
            p.close()
            self.assertEqual(rping(s, "-C", "1")["pings"], 1)
            self.assertIn("127.0.0.1:", s.messages())
        return reason

    def test_write_to_a_guessed_stag_rfc5042_6_2(self):
        self.assertEqual(self.reason(tagged(WRITE, 0x1234, 0, b"x")), 0x1100)

    def test_read_of_a_guessed_stag(self):
        r = struct.pack(">IQIIQ", 1, 0, 8, 0x1234, 0)
        self.assertEqual(self.reason(untagged(READ_REQUEST, 1, 1, r)), 0x0100)

    def test_send_out_of_order(self):
        self.assertEqual(self.reason(untagged(SEND, 0, 2, bytes(16))), 0x1203)

    def test_send_too_long(self):
        self.assertEqual(self.reason(untagged(SEND, 0, 1, bytes(17))), 0x1205)

    def test_unknown_queue(self):
        self.assertEqual(self.reason(untagged(SEND, 3, 1, bytes(16))), 0x1201)

    def test_unknown_opcode(self):
        self.assertEqual(self.reason(untagged(15, 0, 1, bytes(16))), 0x0206)

    def test_answer_that_was_not_asked_for(self):
        reason = self.reason(tagged(READ_RESPONSE, 0x100, 0, b"x"))
        self.assertIn(reason, (0x0206, 0x1100))

    def test_invalidate_what_is_not_there(self):
        u = untagged(SEND_INV, 0, 1, bytes(16), stag=0x100)
        self.assertEqual(self.reason(u), 0x0109)

    def test_wrong_crc(self):
        with Server("rping") as s:
            p = Peer(s)
            bad = bytearray(fpdu(untagged(SEND, 0, 1, bytes(16))))
            bad[30] ^= 1
            p.sock.sendall(bad)
            try:  # the first FPDU: no Terminate may precede it
                self.assertEqual(p.terminate_reason(), 0x2002)
            except (EOFError, ConnectionResetError):
                pass
            p.close()
            self.assertEqual(rping(s, "-C", "1")["pings"], 1)

    def test_garbage_in_place_of_a_request(self):
        with Server("rping") as s:
            for junk in (b"GET / HTTP/1.1\r\n\r\n" * 2, bytes(64),
                         b"MPA ID Rep Frame" + bytes(4),
                         b"MPA ID Req Frame\x40\x01\xff\xff"):
                with socket.create_connection(("127.0.0.1", s.port),
                                              timeout=patience(10)) as c:
                    c.sendall(junk)
                    self.assertEqual(c.recv(100), b"")
            self.assertEqual(rping(s, "-C", "1")["pings"], 1)


@unittest.skipUnless(os.path.exists(ISER), "iser is not built")
class Segments(unittest.TestCase):
    """A peer with unusual segments: rbench's server reads ahead into an undefined
    region and must move each misplaced octet."""

    SIZE = 900000

    def begin(self, server):
        plan = b"ORB1" + struct.pack(">IIxxxx", 0, self.SIZE)  # write_bw
        p = Peer(server, plan)
        p.send(untagged(SEND, 0, 1, bytes(16)))
        ready = p.receive()[18:]
        base, stag, size = struct.unpack(">QII", ready)
        self.assertEqual(size, self.SIZE)
        return p, base, stag

    @staticmethod
    def cut(chance, data, stag, to):
        """Yields segments of random lengths; neighbours often have equal lengths."""
        out, at, n = [], 0, 60000
        while at < len(data):
            if chance.random() < 0.4:
                n = chance.choice((1, 15, 16384, 16385, 20000, 40000, 60001,
                                   65521, chance.randrange(1, 65522)))
            n = min(n, len(data) - at)
            out.append(tagged(WRITE, stag, to + at, data[at:at + n],
                              at + n == len(data)))
            at += n
        return out

    def read_back(self, p, base, stag, msn):
        request = struct.pack(">IQIIQ", 7, 0, self.SIZE, stag, base)
        p.send(untagged(READ_REQUEST, 1, msn, request))
        data = b""
        while len(data) < self.SIZE:
            data += p.receive()[14:]
        return data

    def test_any_lengths(self):
        chance = random.Random(20)
        with Server("rbench") as s:
            p, base, stag = self.begin(s)
            for msn in range(1, 9):
                data = chance.randbytes(self.SIZE)
                wire = b"".join(fpdu(u) for u in
                                self.cut(chance, data, stag, base))
                step = chance.choice((len(wire), 200000, 70000, 8191))
                for at in range(0, len(wire), step):
                    p.sock.sendall(wire[at:at + step])
                self.assertEqual(self.read_back(p, base, stag, msn), data)
            p.close()
            self.assertEqual(s.messages(), "")

    def test_something_else_in_between(self):
        """Another message follows a segment that is not the last: octets that were
        read ahead must be checked before they count."""
        with Server("rbench") as s:
            p, base, stag = self.begin(s)
            first, other = b"a" * 60000, b"b" * 61000
            p.send(tagged(WRITE, stag, base, first, False),
                   tagged(WRITE, stag, base + 500000, other, False),
                   tagged(WRITE, stag, base + 561000, other, True),
                   tagged(WRITE, stag, base + 60000, b"c" * 60000, True))
            data = self.read_back(p, base, stag, 1)
            self.assertEqual(data[:120000], first + b"c" * 60000)
            self.assertEqual(data[500000:622000], other * 2)
            p.send(tagged(WRITE, stag, base, first, False),
                   untagged(SEND, 3, 1, bytes(60000)))
            self.assertEqual(p.terminate_reason(), 0x1201)
            p.close()

    def test_wrong_crc_of_what_was_read_ahead(self):
        with Server("rbench") as s:
            p, base, stag = self.begin(s)
            good = fpdu(tagged(WRITE, stag, base, bytes(60000), False))
            bad = bytearray(fpdu(tagged(WRITE, stag, base + 60000,
                                        bytes(60000), True)))
            bad[-1] ^= 1
            p.sock.sendall(good * 3 + bad)
            self.assertEqual(p.terminate_reason(), 0x2002)
            p.close()


# ---- tshark ----

class IwarpCapture(Capture):
    """A capture that tshark decodes as MPA; tshark recognises MPA by its frames."""

    def tshark(self, *words):
        out = subprocess.run(
            ["tshark", "-r", self.path, "--enable-heuristic", "iwarp_mpa_tcp",
             "-o", "tcp.desegment_tcp_streams:TRUE"] + list(words),
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=120,
            env=dict(os.environ, LC_ALL="C"))
        return out.stdout.decode(errors="replace")

    def fields(self, display_filter, *fields):
        args = ["-Y", display_filter, "-T", "fields"]
        for f in fields:
            args += ["-e", f]
        return [line.split("\t") for line in self.tshark(*args).splitlines()]

    def streams(self):
        """Returns the bytes of each end and connection: {(stream, port): bytes}."""
        sent = {}
        for n, port, seq, data in self.fields(
                "tcp.len > 0", "tcp.stream", "tcp.srcport", "tcp.seq",
                "tcp.payload"):
            whole = sent.setdefault((n, port), bytearray())
            at = int(seq) - 1
            if at > len(whole):
                raise unittest.SkipTest("the capture lost packets")
            whole[at:] = bytes.fromhex(data)
        return sent

    def checksums(self):
        """Returns the numbers of FPDUs with a good and with a bad CRC."""
        text = self.tshark("-Y", "iwarp_mpa.fpdu", "-O", "iwarp_mpa")
        return text.count("(Good CRC32)"), text.count("(Bad CRC32")

    def numbers(self, display_filter, field):
        return [int(x, 0) for line in self.fields(display_filter, field)
                for x in line[0].split(",") if x]

    def opcodes(self):
        return self.numbers("iwarp_rdma", "iwarp_rdma.opcode")


@need("tshark", "dumpcap")
@unittest.skipUnless(os.path.exists(ISER), "iser is not built")
class Dissected(unittest.TestCase):
    def captured(self, command, options, client, client_options):
        """Runs a client with a server; returns the capture."""
        d = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, d)
        with Server(command, *options) as s:
            cap = IwarpCapture(s.port, os.path.join(d, "trace.pcapng"))
            client(s, *client_options)
            cap.stop()
        return cap

    def check_clean(self, cap):
        self.assertEqual(cap.fields("_ws.malformed || iwarp_mpa.bad_length",
                                    "frame.number"), [])
        good, bad = cap.checksums()
        self.assertEqual((good, bad), (len(cap.opcodes()), 0))
        self.assertGreater(good, 0)

    @staticmethod
    def bench(server, *options):
        run([ISER, "rbench", "-n", "300", "--size", "512", "--depth", "4"] +
            list(options) + [server.address])

    EVERY = {WRITE, READ_REQUEST, READ_RESPONSE, SEND, SEND_INV, SEND_SE,
             SEND_SE_INV}

    def check_counts(self, seen):
        """Checks for 300 and 2 x 300 Writes and 2 x 300 Reads; all others are Sends."""
        self.assertEqual(set(seen), self.EVERY)
        self.assertEqual(seen.count(WRITE), 900)
        self.assertEqual(seen.count(READ_REQUEST), 600)
        self.assertEqual(seen.count(READ_RESPONSE), 600)
        self.assertEqual(seen.count(SEND_INV), 6)
        self.assertEqual(seen.count(SEND_SE_INV), 6)

    def check_streams(self, cap, markers):
        """Decodes all sent bytes without tshark."""
        seen = []
        for data in cap.streams().values():
            self.assertIn(bytes(data[:16]), (b"MPA ID Req Frame",
                                             b"MPA ID Rep Frame"))
            begin = 20 + struct.unpack(">H", data[18:20])[0]
            seen += [u[1] & 15
                     for u in split_stream(bytes(data[begin:]), markers)]
        self.check_counts(seen)

    def test_every_operation(self):
        """Send, SE, Inv, SE and Inv, Write, Read Request and Response: tshark sees
        each of them, in FPDUs with a good CRC."""
        cap = self.captured("rbench", (), self.bench, ())
        self.check_clean(cap)
        self.check_counts(cap.opcodes())
        self.assertEqual(cap.fields("iwarp_mpa.marker_fpduptr",
                                    "frame.number"), [])
        self.check_streams(cap, False)

    def test_every_operation_with_markers(self):
        cap = self.captured("rbench", ("--markers",), self.bench,
                            ("--markers",))
        self.check_streams(cap, True)
        self.assertLessEqual(self.EVERY - {SEND_INV, SEND_SE_INV},
                             set(cap.opcodes()))

    def test_markers(self):
        """tshark 4.0 fails on markers if a segment holds two FPDUs or begins at a
        marker, so this test sends few FPDUs at known positions."""
        for options, fpdus, good, markers in (
                (("-C", "4", "-S", "64"), 28, 28, [0, 0, 24, 16]),
                (("-C", "1", "-S", "300"), 7, 7, [0, 0]),
                (("-C", "1", "-S", "1500"), 7, 5, [0, 0, 468, 980, 1492])):
            with self.subTest(options=options):
                cap = self.captured("rping", ("--markers",), rping,
                                    ("--markers",) + options)
                self.assertEqual(cap.checksums(), (good, 0))
                self.assertEqual(cap.numbers("iwarp_mpa.marker_fpduptr",
                                             "iwarp_mpa.marker_fpduptr"),
                                 markers)
                if good == fpdus:
                    self.assertEqual(
                        cap.opcodes(),
                        [SEND, READ_REQUEST, READ_RESPONSE, SEND, SEND, WRITE,
                         SEND] * (fpdus // 7))

    def test_fields(self):
        """One ping, field by field (RFC 5041 §4, RFC 5040 §4)."""
        cap = self.captured("rping", (), rping, ("-C", "1", "-S", "3000"))
        self.check_clean(cap)
        self.assertEqual(cap.opcodes(), [SEND, READ_REQUEST, READ_RESPONSE,
                                         SEND, SEND, WRITE, SEND])
        self.assertEqual(cap.numbers("iwarp_rdma.rdmardsz",
                                     "iwarp_rdma.rdmardsz"), [3000])
        self.assertEqual(set(cap.numbers("iwarp_ddp.dv", "iwarp_ddp.dv")), {1})
        self.assertEqual(set(cap.numbers("iwarp_rdma.version",
                                         "iwarp_rdma.version")), {1})
        # the Sends of both sides and the one Read are the first of their queues on
        self.assertEqual(cap.numbers("iwarp_ddp.qn", "iwarp_ddp.qn"),
                         [0, 1, 0, 0, 0])
        self.assertEqual(cap.numbers("iwarp_ddp.msn", "iwarp_ddp.msn"),
                         [1, 1, 1, 2, 2])
        sink = cap.numbers("iwarp_rdma.sinkstag", "iwarp_rdma.sinkstag")
        stags = cap.numbers("iwarp_ddp.stag", "iwarp_ddp.stag")
        self.assertEqual(stags[0], sink[0])  # of the Response
        self.assertEqual(len(stags), 2)

    def test_request_and_reply(self):
        for options, revision, flags in (
                ((), [2, 2], (False, True)),
                (("--mpa", "1"), [1, 1], (False, True)),
                (("--markers", "--no-crc"), [2, 2], (True, False)),
                (("--peer-to-peer",), [2, 2], (False, True))):
            with self.subTest(options=options):
                cap = self.captured("rping", ("--no-crc",), rping,
                                    ("-C", "1") + options)
                frames = cap.fields("iwarp_mpa.req || iwarp_mpa.rep",
                                    "iwarp_mpa.rev", "iwarp_mpa.marker_flag",
                                    "iwarp_mpa.crc_flag",
                                    "iwarp_mpa.rej_flag")
                self.assertEqual(len(frames), 2)
                self.assertEqual([int(f[0], 0) for f in frames], revision)
                request = [x in ("1", "True") for x in frames[0][1:3]]
                self.assertEqual(tuple(request), flags)

    def test_segments(self):
        """A message in many FPDUs: offsets without a gap, the L bit in the last one."""
        cap = self.captured("rping", ("--fpdu", "1000"), rping,
                            ("-C", "1", "-S", "20000", "--fpdu", "700"))
        self.check_clean(cap)
        seen = cap.opcodes()
        self.assertGreater(seen.count(READ_RESPONSE), 20000 // 700)
        self.assertGreater(seen.count(WRITE), 20000 // 1000)
        to = cap.numbers("iwarp_ddp.tagged_offset",
                         "iwarp_ddp.tagged_offset")
        self.assertEqual(len(to), seen.count(READ_RESPONSE) +
                         seen.count(WRITE))
        reads, writes = (to[:seen.count(READ_RESPONSE)],
                         to[seen.count(READ_RESPONSE):])
        for run_of in (reads, writes):
            self.assertEqual(run_of, sorted(run_of))
            self.assertLess(run_of[-1] - run_of[0], 20000)

    def test_ready_to_receive_rfc6581_9(self):
        cap = self.captured("rping", (), rping,
                            ("-C", "1", "--peer-to-peer"))
        self.check_clean(cap)
        first = cap.opcodes()[0]
        self.assertIn(first, (WRITE, READ_REQUEST))

    def test_terminate(self):
        def attack(server):
            p = Peer(server)
            p.send(tagged(WRITE, 0x1234, 0, b"x"))
            self.assertEqual(p.terminate_reason(), 0x1100)
            p.close()

        cap = self.captured("rping", (), attack, ())
        self.check_clean(cap)
        self.assertEqual(cap.opcodes(), [WRITE, TERMINATE])
        self.assertEqual(cap.numbers("iwarp_rdma.terminate",
                                     "iwarp_rdma.term_layer"), [1])
        self.assertEqual(cap.numbers("iwarp_rdma.terminate",
                                     "iwarp_rdma.term_etype_ddp"), [1])
        self.assertEqual(
            cap.numbers("iwarp_rdma.terminate",
                        "iwarp_rdma.term_errcode_ddp_tagged"), [0])

    def test_tshark_detects_a_wrong_crc(self):
        """Without this, check_clean would prove nothing."""
        cap = self.captured("rping", (), rping, ("-C", "1", "-S", "3000"))
        with open(cap.path, "rb") as f:
            data = f.read()
        self.assertEqual(data.count(b"rdma-ping-0"), 2)  # Response and Write
        with open(cap.path, "wb") as f:
            f.write(data.replace(b"rdma-ping-0", b"rdma-ping-1", 1))
        self.assertEqual(cap.checksums(), (6, 1))


if __name__ == "__main__":
    main()
