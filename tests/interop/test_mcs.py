#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Sessions of several connections (RFC 7143 §§4.2.2, 6.3.4, 11.14): an initiator of raw sockets and bytes."""
import hashlib
import json
import os
import socket
import struct
import tempfile
import unittest

from harness import ISERCTL, Daemon, main, patience, run

NOP_IN, RESPONSE, TMF_RSP, LOGIN_RSP, DATA_IN, LOGOUT_RSP, R2T, ASYNC, REJECT = 0x20, 0x21, 0x22, 0x23, 0x25, 0x26, 0x31, 0x32, 0x3f
NAME, ISID = "iqn.2026-01.org.example:mcs", bytes.fromhex("801234560001")
TOO_MANY, CANT_INCLUDE, NO_SESSION, AUTH_FAILED = 0x0206, 0x0208, 0x020a, 0x0201
WORKERS = 2


class Conn:
    """One connection, with its own StatSN."""

    def __init__(self, session, address, cid):
        self.session, self.cid, self.expstatsn = session, cid, 0
        self.sock = socket.create_connection(address, timeout=patience(10))

    def put(self, op, flags=0x80, word3=b"\0" * 8, itt=0, rest=b"", data=b""):
        head = struct.pack(">BBBBI", op, flags, 0, 0, len(data)) + word3 + struct.pack(">I", itt) + rest
        self.sock.sendall(head.ljust(48, b"\0") + data + b"\0" * (-len(data) % 4))

    def exactly(self, n):
        got = b""
        while len(got) < n:
            part = self.sock.recv(n - len(got))
            if not part:
                raise ConnectionError("closed")
            got += part
        return got

    def pdu(self):
        """The header and the data segment of the next PDU."""
        head = self.exactly(48)
        n = struct.unpack(">I", head[4:8])[0] & 0xffffff
        return head, self.exactly(n + -n % 4)[:n]

    def recv(self):
        head, data = self.pdu()
        op = head[0] & 0x3f
        # §11.7.4: a Data-In without status has no StatSN; NOP-In with a reserved ITT and R2T take none
        if op not in (R2T, DATA_IN) and not (op == NOP_IN and head[16:20] == b"\xff" * 4) or op == DATA_IN and head[1] & 1:
            statsn = struct.unpack(">I", head[24:28])[0]
            if self.expstatsn and statsn != self.expstatsn:
                raise AssertionError("StatSN %d after %d on connection %d" % (statsn, self.expstatsn - 1, self.cid))
            self.expstatsn = statsn + 1
        return op, head, data

    def login(self, tsih, cmdsn, keys=(), csg=1, nsg=3, isid=ISID):
        data = b"".join(k.encode() + b"\0" for k in keys)
        self.put(0x43, (0x80 if nsg > csg else 0) | csg << 2 | nsg, isid + struct.pack(">H", tsih), 7,
                 struct.pack(">HHII", self.cid, 0, cmdsn, self.expstatsn), data)
        op, head, data = self.recv()
        if op != LOGIN_RSP:
            raise AssertionError("opcode %x" % op)
        return struct.unpack(">H", head[36:38])[0], struct.unpack(">H", head[14:16])[0], \
            dict(k.split("=", 1) for k in data.decode().split("\0") if k)

    def closed(self):
        """The target has closed the connection; other PDUs are dropped."""
        try:
            while True:
                self.recv()
        except ConnectionError:
            return True


class Session:
    """An initiator: the CmdSN is that of the session, each connection has its own StatSN."""

    WRITES = ("InitialR2T=Yes", "ImmediateData=No")

    def __init__(self, test, daemon, name=NAME, limit=4, auth=None, reporting=None):
        self.test, self.daemon, self.name, self.limit, self.auth = test, daemon, name, limit, auth
        self.reporting = reporting
        self.tsih, self.cmdsn, self.itt, self.conns = 0, 1, 100, {}
        status, self.keys = self.add(0)
        test.assertEqual(status, 0)

    def names(self, **change):
        keys = {"InitiatorName": self.name, "SessionType": "Normal", "TargetName": self.daemon.target}
        keys.update(change)
        return ["%s=%s" % k for k in keys.items()]

    def log_in(self, c, tsih, isid, names):
        more = ["MaxConnections=%d" % self.limit, *self.WRITES] if not tsih else []
        if more and self.reporting:
            more.append("TaskReporting=" + self.reporting)
        if not self.auth:
            return c.login(tsih, self.cmdsn, names + more + ["MaxRecvDataSegmentLength=65536"], isid=isid)
        user, secret = self.auth
        status, _, got = c.login(tsih, self.cmdsn, names + ["AuthMethod=CHAP"], 0, 0, isid)
        if not status:
            status, _, got = c.login(tsih, self.cmdsn, ["CHAP_A=5"], 0, 0, isid)
        if status:
            return status, 0, {}
        digest = hashlib.md5(bytes([int(got["CHAP_I"])]) + secret.encode() + bytes.fromhex(got["CHAP_C"][2:])).hexdigest()
        status, found, got = c.login(tsih, self.cmdsn, ["CHAP_N=" + user, "CHAP_R=0x" + digest], 0, 1, isid)
        return c.login(tsih, self.cmdsn, more, 1, 3, isid) if not status else (status, 0, {})

    def connect(self, cid):
        return Conn(self, self.daemon.address, cid)

    def add(self, cid, tsih=None, isid=ISID, **change):
        """Logs in one more connection; returns the status and the answered keys."""
        c = self.connect(cid)
        wanted = self.tsih if tsih is None else tsih
        status, found, keys = self.log_in(c, wanted, isid, self.names(**change))
        if status:
            self.test.assertTrue(c.closed())
            return status, keys
        self.test.assertEqual(found, self.tsih or found)
        self.test.assertNotEqual(found, 0)
        self.tsih, self.conns[cid] = found, c
        return 0, keys

    def request(self, cid, op, flags=0x80, word3=b"\0" * 8, middle=b"\0" * 4, tail=b"", cmdsn=None, immediate=False):
        """Sends a request with the next CmdSN of the session, or this one; returns its ITT."""
        self.itt += 1
        number = self.cmdsn if cmdsn is None else cmdsn
        c = self.conns[cid]
        c.put(op | (0x40 if immediate else 0), flags, word3, self.itt,
              middle + struct.pack(">II", number, c.expstatsn) + tail)
        if cmdsn is None and not immediate:
            self.cmdsn += 1
        return self.itt

    def command(self, cid, cdb=bytes(16), flags=0x80, edtl=0, cmdsn=None):
        return self.request(cid, 1, flags | 1, middle=struct.pack(">I", edtl), tail=bytes(cdb).ljust(16, b"\0"), cmdsn=cmdsn)

    def read(self, cid, lba, blocks=1, cmdsn=None):
        return self.command(cid, b"\x28\0" + struct.pack(">IBH", lba, 0, blocks), 0xc0, blocks * 512, cmdsn)

    def write(self, cid, lba, data):
        """A WRITE(10) whose data an R2T asks for, on the same connection."""
        itt = self.command(cid, b"\x2a\0" + struct.pack(">IBH", lba, 0, len(data) // 512), 0xa0, len(data))
        op, head, _ = self.conns[cid].recv()
        self.test.assertEqual((op, head[16:20]), (R2T, struct.pack(">I", itt)))
        self.conns[cid].put(5, 0x80, bytes(8), itt, head[20:24] + bytes(4) + struct.pack(">IIIII", self.conns[cid].expstatsn, 0, 0, 0, 0), data)
        return self.status(cid, itt)[0]

    def status(self, cid, itt):
        """The status of this task, which ends next on this connection, with its data or sense."""
        got = b""
        while True:
            op, head, data = self.conns[cid].recv()
            self.test.assertIn(op, (RESPONSE, DATA_IN))
            self.test.assertEqual(head[16:20], struct.pack(">I", itt))
            got += data
            if op == RESPONSE or head[1] & 1:
                return head[3], got

    def ready(self, cid=0):
        for _ in range(4):
            status, sense = self.status(cid, self.command(cid))
            if not status:
                return self
        raise AssertionError("unit is not ready")

    def logout(self, by, reason, cid, wait=True):
        itt = self.request(by, 6, 0x80 | reason, middle=struct.pack(">HH", cid, 0))
        if not wait:
            return itt
        op, head, _ = self.conns[by].recv()
        self.test.assertEqual((op, head[16:20]), (LOGOUT_RSP, struct.pack(">I", itt)))
        return head[2]

    def pong(self, cid):
        """Answers a ping, which acknowledges what came on this connection."""
        c = self.conns[cid]
        op, head, _ = c.recv()
        self.test.assertEqual((op, head[16:20]), (NOP_IN, b"\xff" * 4))
        c.put(0x40, 0x80, head[8:16], 0xffffffff, head[20:24] + struct.pack(">II", self.cmdsn, c.expstatsn))

    def acknowledge(self, cid, lun=bytes(8)):
        c = self.conns[cid]
        c.put(0x40, 0x80, lun, 0xffffffff, b"\xff" * 4 + struct.pack(">II", self.cmdsn, c.expstatsn))

    def quiet(self, cid, seconds=0.1):
        sock = self.conns[cid].sock
        sock.settimeout(seconds)
        try:
            data = sock.recv(1, socket.MSG_PEEK)
            raise AssertionError("connection %d got %r" % (cid, data))
        except socket.timeout:
            pass
        finally:
            sock.settimeout(patience(10))

    def close(self):
        for c in self.conns.values():
            c.sock.close()


class Connections(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.control = os.path.join(cls.folder.name, "control")
        cls.daemon = Daemon("--max-connections", "3", "--workers", str(WORKERS), "--log", "debug",
                            "--control", cls.control, "ram:8M")

    @classmethod
    def tearDownClass(cls):
        with cls.daemon:
            pass
        cls.folder.cleanup()

    def session(self, **kw):
        s = Session(self, self.daemon, **kw)
        self.addCleanup(s.close)
        return s

    def several(self, n=2, **kw):
        """A session of n connections, which are accepted on different workers in turn."""
        s = self.session(**kw)
        for cid in range(1, n):
            self.assertEqual(s.add(cid)[0], 0)
            s.acknowledge(cid)
        return s.ready()

    def test_order_over_connections(self):
        s = self.several(2)
        self.assertEqual(s.keys["MaxConnections"], "3")
        self.assertEqual(s.write(1, 5, b"one " * 128), 0)
        # a hole, filled from the other connection: nothing is executed before
        first, late = s.cmdsn, []
        s.cmdsn += 1
        late.append(s.read(1, 5))
        late.append(s.read(1, 6))
        nop = s.request(1, 0, middle=b"\xff" * 4)
        s.quiet(1)
        early = s.read(0, 5, cmdsn=first)
        self.assertEqual(s.status(0, early), (0, b"one " * 128))
        self.assertEqual(s.status(1, late[0]), (0, b"one " * 128))
        self.assertEqual(s.status(1, late[1])[0], 0)
        op, head, _ = s.conns[1].recv()
        self.assertEqual((op, head[16:20]), (NOP_IN, struct.pack(">I", nop)))
        # the same CmdSN again, on either connection: ignored (§4.2.2.1)
        s.command(0, cmdsn=first)
        s.command(1, cmdsn=first)
        s.ready(0).ready(1)
        # data for a task of the other connection
        itt = s.command(0, b"\x2a\0" + struct.pack(">IBH", 9, 0, 1), 0xa0, 512)
        op, head, _ = s.conns[0].recv()
        self.assertEqual(op, R2T)
        s.conns[1].put(5, 0x80, bytes(8), itt, head[20:24] + bytes(24), b"X" * 512)
        self.assertEqual(s.conns[1].recv()[0], REJECT)
        s.conns[0].put(5, 0x80, bytes(8), itt, head[20:24] + bytes(24), b"Y" * 512)
        self.assertEqual(s.status(0, itt)[0], 0)
        self.assertEqual(s.status(1, s.read(1, 9)), (0, b"Y" * 512))

    def test_refused_joins(self):
        s = self.several(3)
        self.assertEqual(s.add(3)[0], TOO_MANY)
        self.assertEqual(s.add(4, tsih=s.tsih + WORKERS)[0], NO_SESSION)
        self.assertEqual(s.add(4, tsih=s.tsih + 1)[0], NO_SESSION)
        self.assertEqual(s.add(4, isid=bytes.fromhex("801234560002"))[0], NO_SESSION)
        self.assertEqual(s.add(4, InitiatorName=NAME + "2")[0], NO_SESSION)
        # a leading key on a joining login changes nothing, twice is an error
        self.assertEqual(s.logout(0, 1, 2), 0)
        self.assertTrue(s.conns.pop(2).closed())
        self.assertEqual(s.add(2, MaxBurstLength="512")[1].get("MaxBurstLength"), "Irrelevant")
        c = Conn(s, self.daemon.address, 5)
        self.assertEqual(c.login(s.tsih, s.cmdsn, s.names() + ["SessionType=Normal"])[0], 0x0200)
        s.ready(0).ready(1).ready(2)
        # the first header in pieces, and a connection that ends within it
        for n in (1, 9, 15):
            with socket.create_connection(self.daemon.address) as part:
                part.sendall((b"\x43" + bytes(7) + ISID + struct.pack(">H", s.tsih))[:n])
        s.ready(0).ready(1).ready(2)

    def test_logout_of_one(self):
        s = self.several(3)
        self.assertEqual(s.logout(0, 1, 9), 1)  # no such CID
        self.assertEqual(s.logout(0, 2, 1), 2)  # no recovery at this level
        # from another connection; a WRITE of it ends without a response, with a unit attention
        s.command(1, b"\x2a\0" + struct.pack(">IBH", 1, 0, 1), 0xa0, 512)
        self.assertEqual(s.conns[1].recv()[0], R2T)
        self.assertEqual(s.logout(0, 1, 1), 0)
        self.assertTrue(s.conns.pop(1).closed())
        status, sense = s.status(0, s.command(0))
        self.assertEqual((status, sense[4] & 15, sense[14:16].hex()), (2, 6, "477f"))
        s.ready(0).ready(2)
        # its own, then the last: the session ends
        self.assertEqual(s.logout(0, 1, 0), 0)
        self.assertTrue(s.conns.pop(0).closed())
        s.ready(2)
        self.assertEqual(s.logout(2, 1, 2), 0)
        self.assertTrue(s.conns.pop(2).closed())
        self.assertEqual(s.add(0, tsih=s.tsih)[0], NO_SESSION)

    def test_logout_of_all(self):
        s = self.several(3)
        self.assertEqual(s.logout(2, 0, 0), 0)
        for c in s.conns.values():
            self.assertTrue(c.closed())

    def test_kill_of_one(self):
        s = self.several(3)
        s.conns[1].sock.close()
        # at ErrorRecoveryLevel 0 the session ends; Async Message 3 says so (§11.9.1)
        op, head, _ = s.conns[0].recv()
        self.assertEqual((op, head[36]), (ASYNC, 3))
        self.assertTrue(s.conns[0].closed())
        self.assertTrue(s.conns[2].closed())
        self.assertEqual(s.add(4)[0], NO_SESSION)

    def test_reinstatement_of_one(self):
        s = self.several(2)
        old = s.conns[1]
        s.command(1, b"\x2a\0" + struct.pack(">IBH", 1, 0, 1), 0xa0, 512)
        self.assertEqual(old.recv()[0], R2T)
        self.assertEqual(s.add(1)[0], 0)
        self.assertTrue(old.closed())
        status, sense = s.status(1, s.command(1))
        self.assertEqual((status, sense[14:16].hex()), (2, "477f"))
        s.ready(0).ready(1)
        # of a session with one connection
        self.assertEqual(s.logout(0, 1, 0), 0)
        self.assertTrue(s.conns.pop(0).closed())
        old = s.conns[1]
        self.assertEqual(s.add(1)[0], 0)
        self.assertTrue(old.closed())
        s.ready(1)

    def test_new_session_with_same_isid(self):
        s = self.several(2)
        old = list(s.conns.values())
        again = self.several(2)
        for c in old:
            self.assertTrue(c.closed())
        again.ready(1)

    def test_functions_over_connections(self):
        s = self.several(2)
        itt = s.command(1, b"\x2a\0" + struct.pack(">IBH", 1, 0, 1), 0xa0, 512)
        self.assertEqual(s.conns[1].recv()[0], R2T)
        # ABORT TASK of a task of the other connection; TMFs of §11.5
        tmf = s.request(0, 2, 0x81, middle=struct.pack(">I", itt), tail=struct.pack(">I", s.cmdsn - 1), immediate=True)
        op, head, _ = s.conns[0].recv()
        self.assertEqual((op, head[2], head[16:20]), (TMF_RSP, 0, struct.pack(">I", tmf)))
        # LOGICAL UNIT RESET waits for a command that the other connection still has to bring
        hole = s.cmdsn
        s.cmdsn += 1
        tmf = s.request(0, 2, 0x85, middle=b"\xff" * 4)
        s.quiet(0)
        s.status(1, s.command(1, cmdsn=hole))
        # §11.6.1: all responses before it are acknowledged; those of connection 0 are
        s.quiet(0)
        s.pong(1)
        op, head, _ = s.conns[0].recv()
        self.assertEqual((op, head[2], head[16:20]), (TMF_RSP, 0, struct.pack(">I", tmf)))
        s.ready(1)

    def expect_function(self, s, cid, tmf):
        op, head, _ = s.conns[cid].recv()
        self.assertEqual((op, head[2], head[16:20]), (TMF_RSP, 0, struct.pack(">I", tmf)))

    # [RFC 7143: 4.2.2.3.3 #2-4, 13.23 #3]
    def test_response_fence_rfc7143_4_2_2_3_3(self):
        s = self.several(3, reporting="ResponseFence,RFC3720")
        self.assertEqual(s.keys["TaskReporting"], "ResponseFence")
        s.status(1, s.command(1))
        s.acknowledge(0)
        tmf = s.request(0, 2, 0x85, middle=b"\xff" * 4, immediate=True)
        s.quiet(0)
        s.pong(1)
        self.expect_function(s, 0, tmf)
        # the reset is not acknowledged: what comes after it waits, on each connection
        one = s.command(1)
        s.quiet(1)
        two = s.command(2)
        s.quiet(2)
        s.pong(0)
        status, sense = s.status(1, one)
        self.assertEqual((status, sense[4:5]), (2, b'\x06'), sense)
        s.quiet(2)
        s.pong(1)
        self.assertEqual(s.status(2, two)[0], 0)

    # [RFC 7143: 4.2.3.4 #1 #8-12 #15, 11.9.1 #6]
    def test_fast_abort_rfc7143_4_2_3_4(self):
        s = self.several(2, reporting="FastAbort,ResponseFence,RFC3720")
        self.assertEqual(s.keys["TaskReporting"], "FastAbort")
        tags = []
        for cid in (0, 1):
            itt = s.command(cid, b"\x2a\0" + struct.pack(">IBH", 1, 0, 1), 0xa0, 512)
            op, head, _ = s.conns[cid].recv()
            self.assertEqual(op, R2T)
            tags.append((itt, head[20:24]))
        tmf = s.request(0, 2, 0x82, middle=b"\xff" * 4, immediate=True)
        op, head, _ = s.conns[1].recv()
        self.assertEqual((op, head[36], head[8:16]), (ASYNC, 5, bytes(8)))
        s.quiet(0)
        # data that left before the message came: no Reject
        s.conns[1].put(5, 0x80, bytes(8), tags[1][0], tags[1][1] + bytes(4) +
                       struct.pack(">IIIII", s.conns[1].expstatsn - 1, 0, 0, 0, 0), b"x" * 512)
        s.acknowledge(1)
        self.expect_function(s, 0, tmf)
        s.acknowledge(0)
        s.pong(1)
        s.ready(1)
        self.assertEqual(s.status(1, s.read(1, 1)), (0, bytes(512)))

    def test_status_shows_each(self):
        s = self.several(3, name=NAME + "-shown")
        status = json.loads(run([ISERCTL, "-s", self.control, "-j", "status"]).text)
        rows = [x for x in status["sessions"] if x["initiator"] == s.name]
        self.assertEqual(sorted((x["tsih"], x["cid"]) for x in rows), [(s.tsih, i) for i in range(3)])
        self.assertEqual(len({x["worker"] for x in rows}), 1)
        self.assertEqual(len({x["peer"] for x in rows}), 3)


class Default(unittest.TestCase):
    def test_one_connection(self):
        with Daemon("--workers", str(WORKERS), "ram:8M") as d:
            s = Session(self, d)
            self.assertEqual(s.keys["MaxConnections"], "1")
            self.assertEqual(s.add(1)[0], TOO_MANY)
            s.ready().close()


class Rights(unittest.TestCase):
    """A joining connection proves what the leading one has proven."""

    def test_chap(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "secret")
            with open(path, "w") as f:
                f.write("correct horse battery")
            os.chmod(path, 0o600)
            with Daemon("--max-connections", "4", "--chap-user", "me", "--chap-secret-file", path, "ram:8M") as d:
                s = Session(self, d, auth=("me", "correct horse battery"))
                s.ready()
                self.assertEqual(s.add(1)[0], 0)
                # neither a new connection nor the replacement of one
                for auth, cid in ((None, 1), (None, 2), (("me", "wrong horse battery"), 1)):
                    s.auth = auth
                    self.assertEqual(s.add(cid)[0], AUTH_FAILED)
                s.ready(0).ready(1).close()


if __name__ == "__main__":
    main()
