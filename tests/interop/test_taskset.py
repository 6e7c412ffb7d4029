#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The task set: auto contingent allegiance with two initiators that build their PDUs
from bytes, on one worker and on two; dropped commands with libiser."""
import ctypes
import os
import shutil
import socket
import struct
import threading
import time
import unittest

from harness import Daemon, ISER, Wire, exactly, main, run

GOOD, CHECK, BUSY, ACA_ACTIVE = 0, 2, 8, 0x30
SIMPLE, ORDERED, HEAD, ACA = 1, 2, 3, 4
ABORT_TASK_SET, CLEAR_ACA, LU_RESET = 2, 3, 5
NACA = 4


class Initiator(Wire):
    """An initiator with its own name and commands of any task attribute."""

    def __init__(self, daemon, name, *keys):
        super().__init__(daemon)
        self.KEYS = ("InitiatorName=iqn.2026-01.org.example:" + name,
                     ) + Wire.KEYS[1:]
        self.login(*keys)
        self.ready()

    def send_scsi(self, cdb, attr=SIMPLE, read=0, data=b"", priority=0):
        flags = 0xa0 if data else 0xc0 if read else 0x80
        rest = struct.pack(">III", read or len(data), self.cmdsn, 1)
        head = struct.pack(">BBBBI", 1, flags | attr, priority, 0, len(data))
        head += bytes(8) + struct.pack(">I", self.itt) + rest
        self.put(head + bytes(cdb).ljust(16, b"\0"), data)
        self.cmdsn += 1
        self.itt += 1
        return self.itt - 1

    def response(self):
        """Returns (ITT, status, sense or data) of the next command that ends."""
        got = b""
        while True:
            op, head, part = self.recv()
            itt = struct.unpack(">I", head[16:20])[0]
            if op == 0x21:
                return itt, head[3], part or got
            assert op == 0x25, "PDU %02x" % op
            got += part
            if head[1] & 1:
                return itt, head[3], got

    def scsi(self, cdb, attr=SIMPLE, **kw):
        itt = self.send_scsi(cdb, attr, **kw)
        got, status, data = self.response()
        assert got == itt
        return status, data

    def status(self, attr=SIMPLE, naca=0):
        """Returns the status of a TEST UNIT READY."""
        return self.scsi([0, 0, 0, 0, 0, naca], attr)[0]

    def fault(self, attr=SIMPLE, naca=NACA):
        """Returns the status of a READ(10) of a nonexistent block."""
        return self.scsi(b"\x28\0\xff\0\0\0\0\0\1" + bytes([naca]), attr,
                         read=512)[0]

    def tmf(self, function):
        rest = struct.pack(">IIII", 0xffffffff, self.cmdsn, 1, 0)
        itt = self.pdu(0x42, 0x80 | function, rest=rest)
        op, head, _ = self.recv()
        assert op == 0x22, "PDU %02x" % op
        assert struct.unpack(">I", head[16:20])[0] == itt
        return head[2]


class AutoContingentAllegiance(unittest.TestCase):
    """SAM-5 §5.10"""
    WORKERS = "1"

    def setUp(self):
        self.daemon = Daemon("--workers", self.WORKERS,
                             "ram:8M")
        self.a = Initiator(self.daemon, "a")
        self.b = Initiator(self.daemon, "b")

    def tearDown(self):
        self.a.close()
        self.b.close()
        self.daemon.stop()

    def test_inquiry_and_what_is_supported(self):
        status, data = self.a.scsi([0x12, 0, 0, 0, 96, NACA], read=96)
        self.assertEqual(status, GOOD)
        self.assertTrue(data[3] & 0x20)  # NORMACA
        cdb = struct.pack(">BBBBIIBB", 0xa3, 0x0d, 0, 0, 0, 0, 0, 0)
        cdb = cdb[:6] + struct.pack(">I", 4) + bytes(2)
        self.assertTrue(self.a.scsi(cdb, read=4)[1][0] & 0x20)  # CACAS
        # REPORT SUPPORTED OPERATION CODES of READ(10): NACA in its usage
        cdb = b"\xa3\x0c\x01\x28\0\0\0\0\1\0\0\0"
        self.assertEqual(self.a.scsi(cdb, read=256)[1][4 + 9], NACA)

    def test_iscsi_inq_sees_it(self):
        if not shutil.which("iscsi-inq"):
            self.skipTest("no libiscsi")
        out = run(["iscsi-inq", self.daemon.url]).text
        self.assertRegex(out, r"NormACA:1")

    def test_life_of_an_aca(self):
        a, b = self.a, self.b
        self.assertEqual(a.fault(naca=0), CHECK)
        self.assertEqual(a.status(), GOOD)
        self.assertEqual(a.fault(), CHECK)
        for attr in SIMPLE, ORDERED, HEAD:
            self.assertEqual(a.status(attr), ACA_ACTIVE)
            self.assertEqual(b.status(attr), BUSY)
            self.assertEqual(b.status(attr, NACA), ACA_ACTIVE)
        self.assertEqual(b.status(ACA), ACA_ACTIVE)
        self.assertEqual(a.status(ACA), GOOD)
        self.assertEqual(b.tmf(CLEAR_ACA), 0)  # clears nothing for b
        self.assertEqual(a.status(), ACA_ACTIVE)
        self.assertEqual(a.fault(ACA), CHECK)  # a new ACA
        self.assertEqual(a.status(), ACA_ACTIVE)
        self.assertEqual(a.tmf(ABORT_TASK_SET), 0)
        self.assertEqual(b.status(), BUSY)
        self.assertEqual(a.tmf(CLEAR_ACA), 0)
        self.assertEqual(a.status(), GOOD)
        self.assertEqual(b.status(), GOOD)
        self.assertEqual(a.status(ACA), CHECK)  # no ACA exists

    def test_task_management_only(self):
        def tmf_only(i, on):
            """MODE SELECT(6) of the control page."""
            page = bytes([0x0a, 10, 0x12 if on else 0x02, 0x10])
            page = bytes(4) + page + b"\0\0\0\0\xff\xff\0\0"
            cdb = [0x15, 0x10, 0, 0, len(page), 0]
            self.assertEqual(i.scsi(cdb, data=page)[0], GOOD)

        a, b = self.a, self.b
        tmf_only(b, True)
        self.assertEqual(a.status(), CHECK)  # MODE PARAMETERS CHANGED
        self.assertEqual(a.fault(), CHECK)
        self.assertEqual(a.status(ACA), ACA_ACTIVE)
        self.assertEqual(a.fault(ACA, naca=0), ACA_ACTIVE)
        self.assertEqual(b.status(), BUSY)
        self.assertEqual(a.tmf(CLEAR_ACA), 0)
        self.assertEqual(a.status(), GOOD)
        tmf_only(a, False)
        self.assertEqual(a.fault(), CHECK)
        self.assertEqual(a.status(ACA), GOOD)
        self.assertEqual(a.tmf(CLEAR_ACA), 0)

    def test_failed_aca_command_clears_it(self):
        self.assertEqual(self.a.fault(), CHECK)
        self.assertEqual(self.a.fault(ACA, naca=0), CHECK)
        self.assertEqual(self.a.status(), GOOD)
        self.assertEqual(self.b.status(), GOOD)

    def test_resets_and_a_lost_session_end_it(self):
        self.assertEqual(self.a.fault(), CHECK)
        self.assertEqual(self.b.tmf(LU_RESET), 0)
        self.a.ready()
        self.b.ready()
        self.assertEqual(self.a.fault(), CHECK)
        self.assertEqual(self.b.status(), BUSY)
        self.a.close()
        for _ in range(1000):
            if self.b.status() == GOOD:
                break
        else:
            self.fail("the session is gone, its ACA is not")

    def test_a_blocked_command_ends_after_the_aca(self):
        """A WRITE whose data arrive during the ACA."""
        a, b = self.a, self.b
        cdb = b"\x2a\0\0\0\0\0\0\0\x80\0"
        rest = struct.pack(">III", 65536, b.cmdsn, 1) + cdb.ljust(16, b"\0")
        itt = b.pdu(1, 0xa1, rest=rest)
        b.cmdsn += 1
        op, r2t, _ = b.recv()
        self.assertEqual(op, 0x31)
        self.assertEqual(a.fault(), CHECK)
        ttt = r2t[20:24]
        data = b"A" * 65536
        for sn, at in enumerate(range(0, len(data), 8192)):
            rest = ttt + struct.pack(">IIIIII", 0, 1, 0, sn, at, 0)
            b.pdu(5, 0x80 if at + 8192 == len(data) else 0,
                  data[at:at + 8192], itt=itt, rest=rest)
        b.send(b.bhs(0x40, itt=77, dsl=0,
                     rest=struct.pack(">III", 0xffffffff, b.cmdsn, 1)))
        op, head, _ = b.recv()
        self.assertEqual(op, 0x20)  # the NOP has an answer, the WRITE has none
        self.assertEqual(a.tmf(CLEAR_ACA), 0)
        self.assertEqual(b.response()[:2], (itt, GOOD))
        self.assertEqual(b.read10(0, 1)[1], b"A" * 512)


class OnTwoWorkers(AutoContingentAllegiance):
    WORKERS = "2"


class Io(ctypes.Structure):
    """struct iser_io"""
    _fields_ = [("lun", ctypes.c_int), ("cdb", ctypes.c_uint8 * 32),
                ("cdb_len", ctypes.c_uint8), ("direction", ctypes.c_int),
                ("iov", ctypes.c_void_p), ("niov", ctypes.c_uint),
                ("done", ctypes.c_void_p), ("arg", ctypes.c_void_p),
                ("priority", ctypes.c_uint8), ("err", ctypes.c_int),
                ("status", ctypes.c_uint8), ("resid", ctypes.c_uint32),
                ("overflow", ctypes.c_bool), ("sense_len", ctypes.c_uint16),
                ("sense", ctypes.c_uint8 * 252), ("next", ctypes.c_void_p),
                ("session", ctypes.c_void_p)]


class Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_char_p), ("len", ctypes.c_size_t)]


class Library:
    """libiser through ctypes."""

    def __init__(self):
        path = os.path.join(os.path.dirname(ISER), "..", "lib", "libiser.so")
        if not os.path.exists(path):
            path = os.path.join(os.path.dirname(ISER), "src/lib/libiser.so")
        try:
            with open(path, "rb") as f:
                if b"__asan_init" in f.read():  # the sanitizer would end this process
                    raise unittest.SkipTest("a libiser with a sanitizer wants "
                                            "a program that has it")
            self.lib = ctypes.CDLL(path)
        except OSError as e:
            raise unittest.SkipTest("libiser is not to be loaded: %s" % e)
        for name in "iser_context_new", "iser_connect":
            getattr(self.lib, name).restype = ctypes.c_void_p
        self.lib.iser_message.restype = ctypes.c_char_p
        self.ctx = ctypes.c_void_p(self.lib.iser_context_new(None))

    def connect(self, url):
        parsed, err = ctypes.create_string_buffer(8192), ctypes.c_int()
        assert not self.lib.iser_url_parse(parsed, url.encode(), False, None, 0)
        self.session = ctypes.c_void_p(self.lib.iser_connect(
            self.ctx, parsed, ctypes.byref(err)))
        assert self.session, self.message()

    def message(self):
        return self.lib.iser_message(self.ctx).decode()

    def run(self, cdb, out=b""):
        iov = Iovec(out, len(out))
        io_ = Io(direction=2 if out else 0, cdb_len=len(cdb))
        io_.cdb[:len(cdb)] = list(cdb)
        io_.iov = ctypes.cast(ctypes.pointer(iov), ctypes.c_void_p)
        io_.niov = 1 if out else 0
        return self.lib.iser_run(self.session, ctypes.byref(io_)), io_.status

    def close(self):
        self.lib.iser_disconnect(self.session)
        self.lib.iser_context_free(self.ctx)


class Priority(unittest.TestCase):
    """RFC 7144 §5.1.1: PRI is set if iSCSIProtocolLevel is 2, and is 0 otherwise; checked
    in the bytes of the commands."""

    def commands(self, daemon, keys, level=b"2"):
        """Returns byte 2 of each SCSI Command of a run of iser."""
        seen, listener = [], socket.create_server(("127.0.0.1", 0))

        def pdu(s):
            head = exactly(s, 48)
            n = int.from_bytes(head[5:8], "big")
            return head, exactly(s, n + -n % 4)

        def up(near, far):
            try:
                while True:
                    head, data = pdu(near)
                    if head[0] & 0x3f == 1:
                        seen.append(head[2])
                    data = data.replace(b"ProtocolLevel=2",
                                        b"ProtocolLevel=" + level)
                    far.sendall(head + data)
            except (EOFError, OSError):
                far.close()

        def serve():
            near = listener.accept()[0]
            far = socket.create_connection(daemon.address)
            threading.Thread(target=up, args=(near, far), daemon=True).start()
            try:
                while True:
                    near.sendall(far.recv(65536) or 1 / 0)
            except (ZeroDivisionError, OSError):
                near.close()

        threading.Thread(target=serve, daemon=True).start()
        run([ISER, "hash", "iscsi://127.0.0.1:%d/%s/0?%s" % (
            listener.getsockname()[1], daemon.target, keys)])
        listener.close()
        return set(seen)

    def test_on_the_wire(self):
        with Daemon("ram:1M") as d:
            self.assertEqual(self.commands(d, "depth=8"), {0})
            self.assertEqual(self.commands(d, "priority=5"), {5})
            self.assertEqual(self.commands(d, "priority=5", b"1"), {0})


class Dropped(unittest.TestCase):
    """A LUN reset by another initiator, TAS = 0: the target drops the command without a
    response. libiser sends QUERY TASK and reports the abort."""
    ABORTED = -13

    def test_libiser_finds_out(self):
        with Daemon("--sanitize-rate", "1M",
                    "ram:64M") as d:
            lib = Library()
            lib.connect(d.url)
            for _ in range(3):
                if lib.run(bytes(6))[1] == GOOD:
                    break
            # TAS = 0, which is not the default (SPC-4 §7.5.8)
            admin = Initiator(d, "admin")
            self.assertEqual(admin.ask(b"\x15\x10\0\0\x10".ljust(16, b"\0"), data=bytes(4) + bytes(
                [0x0a, 10, 2, 0x10, 0, 0, 0, 0, 0xff, 0xff, 0, 0]))[0], GOOD)
            admin.close()
            for _ in range(2):
                lib.run(bytes(6))  # MODE PARAMETERS CHANGED
            ended = []
            cdb = bytes([0x48, 0x01, 0, 0, 0, 0, 0, 0, 8, 0])
            pattern = bytes([1, 0, 0, 4]) + b"abcd"
            t = threading.Thread(
                target=lambda: ended.append(lib.run(cdb, pattern)))
            t.start()
            time.sleep(7)  # longer than the time before QUERY TASK, which finds the command
            self.assertFalse(ended)
            other = Initiator.__new__(Initiator)
            Wire.__init__(other, d)
            other.login()
            self.assertEqual(other.tmf(LU_RESET), 0)
            t.join(20)
            self.assertEqual([e for e, _ in ended], [self.ABORTED])
            self.assertIn("dropped", lib.message())
            self.assertNotEqual(lib.run(bytes(6))[0], -8)  # still connected
            other.close()
            lib.close()


if __name__ == "__main__":
    main()
