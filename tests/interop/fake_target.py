# SPDX-License-Identifier: BSD-2-Clause
"""An iSCSI target over TCP that builds its PDUs from bytes (RFC 7143). A case
overrides the method that must answer wrongly; the other methods answer correctly."""
import socket
import struct
import subprocess
import threading
import unittest

from harness import ISER, exactly, patience, some_time

IQN = "iqn.2026-01.org.example:fake"
NOP_OUT, SCSI, TMF, LOGIN, TEXT, DATA_OUT, LOGOUT = range(7)
R_NOP, R_SCSI, R_TMF, R_LOGIN, R_TEXT, R_DATA, R_LOGOUT, R_ASYNC = (
    0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x32)


def keys_of(data):
    return dict(pair.split("=", 1) for pair in
                data.decode(errors="replace").split("\0") if "=" in pair)


def text_of(*pairs):
    return b"".join((p if isinstance(p, bytes) else p.encode()) + b"\0"
                    for p in pairs)


class Conn:
    """One connection: its received PDUs and its sequence numbers."""

    def __init__(self, sock):
        self.sock, self.statsn, self.expcmdsn = sock, 1, 1
        self.heard, self.discovery, self.keys = [], False, {}

    def recv(self):
        head = exactly(self.sock, 48)
        dsl = int.from_bytes(head[5:8], "big")
        data = exactly(self.sock, dsl + -dsl % 4)[:dsl]
        op = head[0] & 0x3f
        self.heard.append(op)
        if op == LOGIN or op != DATA_OUT and not head[0] & 0x40:
            self.expcmdsn = int.from_bytes(head[24:28], "big") + \
                (not head[0] & 0x40)
        return op, head, data

    def send(self, op, flags, itt, data=b"", bytes2=b"\0\0", lun=bytes(8),
             ttt=b"\xff" * 4, rest=b"", statsn=None, count=True):
        head = bytes([op, flags]) + bytes2 + struct.pack(">I", len(data)) + lun
        head += itt + ttt
        head += struct.pack(">III", self.statsn if statsn is None else statsn,
                            self.expcmdsn, self.expcmdsn + 63) + rest
        self.statsn += count  # before the peer can answer
        self.sock.sendall(head.ljust(48, b"\0") + data + b"\0" * (-len(data) % 4))

    def login_response(self, request, data=b"", flags=None, status=0,
                       isid=None, tsih=1, **kw):
        if flags is None:  # the requested stages
            flags = request[1] & 0x8f if request[1] & 0x80 else request[1] & 0x0c
        lun = (isid or request[8:14]) + struct.pack(">H", tsih)
        self.send(R_LOGIN, flags, request[16:20], data, lun=lun, ttt=bytes(4),
                  rest=struct.pack(">H", status), **kw)

    def response(self, request, status=0, data=b"", flags=0x80, residual=0):
        self.send(R_SCSI, flags, request[16:20], data,
                  bytes2=bytes([0, status]), ttt=bytes(4),
                  rest=struct.pack(">III", 0, 0, residual))

    def data_in(self, request, data):
        """Sends all data with status GOOD and the matching residual."""
        edtl = struct.unpack(">I", request[20:24])[0]
        data = data[:edtl]
        left, sn = edtl - len(data), 0
        while len(data) - 65536 * sn > 65536:
            at = 65536 * sn
            self.send(R_DATA, 0, request[16:20], data[at:at + 65536], statsn=0,
                      count=False, rest=struct.pack(">III", sn, at, 0))
            sn += 1
        self.send(R_DATA, 0x81 | (2 if left else 0), request[16:20],
                  data[65536 * sn:],
                  rest=struct.pack(">III", sn, 65536 * sn, left))


class FakeTarget:
    """Listens on the loopback address, with a thread for each connection. `seen`
    has the notes of the threads for the case."""
    Conn = Conn
    blocks, name, seen_limit = 2048, IQN, 10000
    vendor, product = b"FAKE    ", b"Target          "

    def __init__(self, **more):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.seen, self.conns = [], []
        for name, value in more.items():
            setattr(self, name, value)
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def portal(self):
        return "127.0.0.1:%d" % self.port

    def url(self, more=None):
        return "iscsi://%s/%s/0?%s" % (self.portal, self.name, some_time() if more is None else more)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        for c in self.conns:
            c.sock.close()

    def _accept(self):
        while True:
            try:
                sock = self.listener.accept()[0]
            except OSError:
                return
            sock.settimeout(patience(30))
            conn = self.Conn(sock)
            self.conns.append(conn)
            threading.Thread(target=self._serve, args=(conn,),
                             daemon=True).start()

    def _serve(self, c):
        try:
            self.serve(c)
        except (OSError, EOFError):
            pass
        c.sock.close()

    def serve(self, c):
        while True:
            op, head, data = c.recv()
            if op == LOGIN:
                c.keys.update(keys_of(data))
                c.discovery = c.keys.get("SessionType") == "Discovery"
                self.login(c, head, data)
            elif op == TEXT:
                self.text(c, head, data)
            elif op == SCSI:
                self.scsi(c, head, data)
            elif op == NOP_OUT:
                self.nop(c, head, data)
            elif op == LOGOUT:
                self.seen.append("logout")
                c.send(R_LOGOUT, 0x80, head[16:20], ttt=bytes(4))
                return

    # ---- methods that a case may override ----

    def login(self, c, head, data):
        c.login_response(head, text_of("TargetPortalGroupTag=1")
                         if head[1] & 3 == 3 and not c.discovery else b"")

    def text(self, c, head, data):
        c.send(R_TEXT, 0x80, head[16:20], self.targets())

    def targets(self):
        return text_of("TargetName=" + self.name,
                       "TargetAddress=%s,1" % self.portal)

    def nop(self, c, head, data):
        if head[16:20] != b"\xff" * 4:
            c.send(R_NOP, 0x80, head[16:20], data)

    def scsi(self, c, head, data):
        answer = {0x00: self.ready, 0x12: self.inquiry, 0xa0: self.luns,
                  0x9e: self.capacity, 0x25: self.capacity10, 0x28: self.read,
                  0x88: self.read}.get(head[32])
        if answer:
            answer(c, head)
        else:  # ILLEGAL REQUEST, INVALID COMMAND OPERATION CODE
            self.check(c, head, 5, 0x20)

    def check(self, c, head, key, asc, ascq=0):
        sense = bytes([0x70, 0, key, 0, 0, 0, 0, 10, 0, 0, 0, 0, asc, ascq,
                       0, 0, 0, 0])
        c.response(head, 2, struct.pack(">H", len(sense)) + sense)

    def ready(self, c, head):
        c.response(head)

    def inquiry(self, c, head):
        if head[33] & 1:
            c.data_in(head, bytes([0, head[34], 0, 1, 0]))
            return
        c.data_in(head, b"\0\0\6\2\x1f\0\0\2" + self.vendor + self.product +
                  b"1.0 ")

    def luns(self, c, head):
        c.data_in(head, struct.pack(">II", 8, 0) + bytes(8))

    def capacity(self, c, head):
        c.data_in(head, struct.pack(">QI", self.blocks - 1, 512) + bytes(20))

    def capacity10(self, c, head):
        c.data_in(head, struct.pack(">II", self.blocks - 1, 512))

    def read(self, c, head):
        cdb = head[32:48]
        n = struct.unpack(">H", cdb[7:9])[0] if cdb[0] == 0x28 else \
            struct.unpack(">I", cdb[10:14])[0]
        c.data_in(head, b"\xa5" * (n * 512))


class Ended:
    """The end of a program: status, stdout, stderr."""

    def __init__(self, args, limit=30, **kw):
        done = subprocess.run(args, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=patience(limit), **kw)
        self.status, self.raw = done.returncode, done.stdout + done.stderr
        self.out = done.stdout.decode(errors="surrogateescape")
        self.err = done.stderr.decode(errors="surrogateescape")


class Case(unittest.TestCase):
    """A case with a fake target: runs iser, which must not end by a signal or with
    an error of a sanitizer."""

    def iser(self, *args, status=0, limit=30):
        done = Ended([ISER, *args], limit)
        self.assertEqual(done.status, status, done.out + done.err)
        for word in ("runtime error", "AddressSanitizer", "LeakSanitizer"):
            self.assertNotIn(word, done.err)
        return done
