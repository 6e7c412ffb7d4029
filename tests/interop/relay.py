# SPDX-License-Identifier: BSD-2-Clause
"""A relay from iSCSI over TCP to iSER, with which initiators without an RDMA device
(libiscsi's suite) use a target over iSER.

The relay reverses RFC 7145 §7.3: an RDMA Write becomes Data-In, an RDMA Read Request
becomes R2T, and the Data-Outs become the RDMA Read Response. All other PDUs pass
unchanged, including those of the login, so both ends have the same sequence numbers
and keys.
"""
import ctypes
import ctypes.util
import select
import socket
import struct
import threading

import rdma_wire
from harness import Wire, exactly
from rdma_wire import (CONTROL, READ_RESPONSE, RSV, SEND, SEND_INV,
                       SEND_SE_INV, WRITE, WSV, RdmaWire)

COMMAND, LOGIN, DATA_OUT = 0x01, 0x03, 0x05
RESPONSE, LOGIN_RESPONSE, DATA_IN, R2T = 0x21, 0x23, 0x25, 0x31
KEYS = (b"RDMAExtensions=Yes", b"InitiatorRecvDataSegmentLength=8192",
        b"TargetRecvDataSegmentLength=8192")
NAMES = tuple(k.split(b"=")[0] for k in KEYS)
MOST = 8192  # in a Data-In: every initiator accepts that


def quick_crc():
    """Returns the CRC32C of ISA-L if installed, else the one in Python."""
    name = ctypes.util.find_library("isal")
    if not name:
        return
    fn = ctypes.CDLL(name).crc32_iscsi
    fn.restype = ctypes.c_uint32
    fn.argtypes = (ctypes.c_char_p, ctypes.c_int, ctypes.c_uint32)
    rdma_wire.crc32c = lambda data: \
        fn(bytes(data), len(data), 0xffffffff) ^ 0xffffffff


class Pair:
    """A connection of an initiator and the relay's connection to the target."""

    def __init__(self, near, daemon, start):
        self.near = near
        self.far = RdmaWire(daemon, start)
        self.far.segment = 32768
        self.reads, self.writes, self.r2ts = {}, {}, {}
        self.exp_datasn = {}
        self.next_ttt = 1
        self.statsn = self.expcmdsn = self.maxcmdsn = 0
        self.offered = self.agreed = False

    # ---- the initiator's PDUs ----

    def exactly(self, n):
        return exactly(self.near, n)

    def from_near(self):
        head = self.exactly(48)
        ahs = self.exactly(4 * head[4])
        dsl = int.from_bytes(head[5:8], "big")
        data = self.exactly(dsl + -dsl % 4)[:dsl]
        op, itt = head[0] & 0x3f, head[16:20]
        if op == DATA_OUT:
            self.data_out(head, data)
        elif op == COMMAND:
            self.command(head, ahs, itt, data)
        elif op == LOGIN and self.far.start == "stream":
            self.login(head, data)
        else:
            self.put(head + ahs, data)

    def login(self, head, data):
        """Adds the keys of RFC 7145 §6 to the first operational keys."""
        if b"SessionType=Discovery\0" in data:
            self.offered = True
        if not self.offered and head[1] & 0x0c == 0x04:
            self.offered = True
            data += b"".join(k + b"\0" for k in KEYS)
        self.put(head[:5] + len(data).to_bytes(3, "big") + head[8:], data)

    def put(self, head, data, header=None):
        if not self.far.in_rdma:
            Wire.put(self.far, head, data)
        else:
            self.far.untagged(SEND, (header or RdmaWire.header()) + head +
                              data, segment=32768)

    def command(self, head, ahs, itt, data):
        edtl = int.from_bytes(head[20:24], "big")
        flags, write, read = 0, (0, 0), (0, 0)
        length = edtl  # of the write direction
        if head[1] & 0x40 and edtl:
            n = edtl
            if head[1] & 0x20:  # bidirectional: the AHS has the read length
                n = int.from_bytes(ahs[4:8], "big")
            memory = bytearray(n)
            stag = self.far.register(memory)
            flags, read = flags | RSV, (stag, 0)
            self.reads[itt] = (memory, stag, set())
        if head[1] & 0x20 and length > len(data):
            stag = self.far.register(bytearray(length))
            self.writes[stag] = (itt, length, len(data), head[8:16])
            flags, write = flags | WSV, (stag, 0)
        self.put(head + ahs, data, RdmaWire.header(CONTROL, flags, write,
                                                   read))

    # ---- RDMA Reads: R2T and Data-Out ----

    def read_request(self, u):
        sink, sink_to, size, stag, to = struct.unpack(">IQIIQ", u[18:46])
        itt, _, immediate, lun = self.writes[stag]
        offset = to + (immediate if self.far.solicited_only else 0)
        ttt = self.next_ttt
        self.next_ttt = ttt % 0x7fffffff + 1
        self.r2ts[ttt] = [bytearray(size), offset, sink, sink_to, 0]
        sn = self.exp_datasn.get(itt, 0)
        self.exp_datasn[itt] = sn + 1
        head = struct.pack(">BBHI", R2T, 0x80, 0, 0) + lun + itt
        head += struct.pack(">IIIIIII", ttt, self.statsn, self.expcmdsn,
                            self.maxcmdsn, sn, offset, size)
        self.near.sendall(head)

    def data_out(self, head, data):
        ttt, offset = (int.from_bytes(head[a:a + 4], "big") for a in (20, 40))
        if ttt not in self.r2ts:
            self.put(head, data)  # unsolicited data go to the target
            return
        r = self.r2ts[ttt]
        at = offset - r[1]
        r[0][at:at + len(data)] = data
        r[4] += len(data)
        if r[4] >= len(r[0]):
            del self.r2ts[ttt]
            self.far.tagged(READ_RESPONSE, r[2], r[3], bytes(r[0]),
                            segment=32768)

    # ---- the target's PDUs ----

    def login_response(self, head, data):
        """Changes to RDMA mode (§5.1.2), which the initiator does not see."""
        agreed = b"RDMAExtensions=Yes\0" in data
        data = b"".join(k + b"\0" for k in data.split(b"\0")[:-1]
                        if not k.startswith(NAMES))
        if agreed:
            self.agreed = True
        if head[1] & 0x83 == 0x83 and head[36:38] == b"\0\0" and self.agreed:
            self.far.begin()
        self.to_near(head[:5] + len(data).to_bytes(3, "big") + head[8:], data)

    def from_far(self):
        if not self.far.in_rdma:
            op, head, data = Wire.recv(self.far)
            if op == LOGIN_RESPONSE:
                self.login_response(head, data)
            else:
                self.to_near(head, data)
            return
        u = self.far.next_ulpdu()
        if u[0] & 0x80:
            stag, to = struct.unpack(">IQ", u[2:14])
            memory = self.far.memory[stag]
            assert u[1] & 15 == WRITE and to + len(u) - 14 <= len(memory)
            memory[to:to + len(u) - 14] = u[14:]
            return
        opcode = u[1] & 15
        if opcode == rdma_wire.READ_REQUEST:
            self.read_request(u)
            return
        if opcode == rdma_wire.TERMINATE:
            raise EOFError
        self.far.assembled += u[18:]
        if not u[0] & 0x40:
            return
        data, self.far.assembled = self.far.assembled, b""
        if opcode in (SEND_INV, SEND_SE_INV):
            del self.far.memory[int.from_bytes(u[2:6], "big")]
        dsl = int.from_bytes(data[33:36], "big")
        self.to_near(data[28:76], data[76:76 + dsl])

    def to_near(self, head, data):
        op, itt = head[0] & 0x3f, head[16:20]
        self.statsn = (int.from_bytes(head[24:28], "big") + 1) & 0xffffffff
        self.expcmdsn, self.maxcmdsn = struct.unpack(">II", head[28:36])
        if op == RESPONSE:
            head = self.response(head, itt)
        self.near.sendall(head + data + b"\0" * (-len(data) % 4))

    def response(self, head, itt):
        count = 0
        if itt in self.reads:
            count = self.data_in(head, itt)
        for stag in [s for s, w in self.writes.items() if w[0] == itt]:
            del self.writes[stag]
            self.far.memory.pop(stag, None)
        self.exp_datasn.pop(itt, None)
        # ExpDataSN counts Data-Ins and R2Ts of the command (RFC 7143 §11.4.9)
        return head[:36] + struct.pack(">I", count) + head[40:]

    def data_in(self, head, itt):
        """Sends the data that the RDMA Writes brought, as Data-In without the residual."""
        memory, stag, _ = self.reads.pop(itt)
        self.far.memory.pop(stag, None)
        n = len(memory)
        if head[1] & 0x02 and not head[1] & 0x18:
            n -= min(n, int.from_bytes(head[44:48], "big"))
        if head[3] and not head[1] & 0x02:
            n = 0
        sn = 0
        for at in range(0, n, MOST):
            part = memory[at:min(at + MOST, n)]
            h = struct.pack(">BBHI", DATA_IN, 0x80 if at + MOST >= n else 0, 0,
                            len(part)) + bytes(8) + itt
            h += struct.pack(">IIIIIII", 0xffffffff, 0, self.expcmdsn,
                             self.maxcmdsn, sn, at, 0)
            self.near.sendall(h + bytes(part) + b"\0" * (-len(part) % 4))
            sn += 1
        return sn

    # ---- both directions ----

    def run(self):
        try:
            while True:
                for s in select.select([self.near, self.far.sock], [], [],
                                       60)[0]:
                    if s is self.near:
                        self.from_near()
                    else:
                        self.from_far()
        except (EOFError, OSError):
            pass
        finally:
            self.near.close()
            self.far.close()


class Relay:
    """Listens on a loopback port; .url is the URL of the target through the relay.
    .failed lists the errors of connections to the target."""

    def __init__(self, daemon, start="rdma"):
        quick_crc()
        self.daemon, self.start, self.over = daemon, start, False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.portal = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.url = daemon.url.replace(daemon.portal, self.portal)
        self.served, self.failed = 0, []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while not self.over:
            try:
                near = self.listener.accept()[0]
            except OSError:
                return
            self.served += 1
            threading.Thread(target=self.serve, args=(near,),
                             daemon=True).start()

    def serve(self, near):
        near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            pair = Pair(near, self.daemon, self.start)
        except Exception as e:
            self.failed.append("%s: %s" % (type(e).__name__, e))
            near.close()
            return
        pair.far.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pair.far.sock.settimeout(None)
        pair.run()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.over = True
        self.listener.close()
        if kind:
            print("#   relay: %d connections, %s" % (
                self.served, self.failed or "each with the target"))
