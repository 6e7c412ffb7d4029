# SPDX-License-Identifier: BSD-2-Clause
"""An iSER target that builds its messages from bytes (RFC 7145): fake_target.py over the
RDMA of rdma_wire.py. A case overrides the method that must answer wrongly."""
import struct

from fake_target import R_SCSI, Conn, FakeTarget, text_of
from harness import exactly, some_time
from rdma_wire import CONTROL, HELLO, HELLO_REPLY, SEND, WRITE, Rdma, Terminated

GOOD_REPLY = bytes([HELLO_REPLY << 4, 0xaa, 0, 4]) + bytes(24)


class Passive(Rdma):
    """The passive end of an iWARP stream. sendall sends one iSCSI PDU."""

    def __init__(self, sock):
        self.sock = sock
        self.rdma_init()
        request = self._exactly(20)
        assert request[:16] == b"MPA ID Req Frame", request
        private = self._exactly(int.from_bytes(request[18:20], "big"))
        answer, rtr = b"", False
        if request[17] == 2 and request[16] & 0x10:  # RFC 6581 §9: IRD, ORD, RTR by an RDMA Write
            depths = struct.unpack(">HH", private[:4])
            rtr = depths[0] >> 15
            assert not rtr or depths[1] >> 15, "no RTR by RDMA Write"
            answer = struct.pack(">HH", rtr << 15, rtr << 15 | depths[0] & 0x3fff)
        answer += b"\xc0\0\0\0"  # IBTA A12: no Send with Invalidate
        self.sock.sendall(b"MPA ID Rep Frame" + bytes([0x40 | request[16] & 0x10, request[17]]) +
                          struct.pack(">H", len(answer)) + answer)
        if rtr:
            u = self.next_ulpdu()
            assert u[0] & 0x80 and u[1] & 15 == WRITE and len(u) == 14, u

    def _exactly(self, n):
        return exactly(self.sock, n)

    def message(self, data):
        self.untagged(SEND, data)

    def sendall(self, pdu):
        self.message(bytes([CONTROL << 4]) + bytes(27) + pdu)

    def close(self):
        self.sock.close()


class IserConn(Conn):
    """A connection in RDMA mode once begin was called. header: of the last PDU."""
    target, in_rdma, header = None, False, b""

    def begin(self):
        self.sock, self.in_rdma = Passive(self.sock), True

    def recv(self):
        if not self.in_rdma:
            return super().recv()
        while True:
            data = self.sock.next_send()
            if data[0] >> 4 != HELLO:
                break
            self.target.hello(self, data)
        self.header, head, data = data[:28], data[28:76], data[76:]
        op = head[0] & 0x3f
        self.heard.append(op)
        self.expcmdsn = int.from_bytes(head[24:28], "big") + (not head[0] & 0x40)
        return op, head, data[:int.from_bytes(head[5:8], "big")]

    def data_in(self, request, data):
        """An RDMA Write to the Read STag, and the SCSI Response (RFC 7145 §9.5.2)."""
        edtl, left = struct.unpack(">I", request[20:24])[0], 0
        data, left = data[:edtl], max(0, edtl - len(data))
        stag, base = struct.unpack(">IQ", self.header[16:28])
        self.sock.tagged(WRITE, stag, base, data)
        self.send(R_SCSI, 0x80 | (2 if left else 0), request[16:20], ttt=bytes(4),
                  rest=struct.pack(">III", 0, 0, left))


class IserTarget(FakeTarget):
    """start: "rdma" (MPA first) or "stream" (login first). keys: further answers of the login."""
    Conn = IserConn
    start, keys = "rdma", ()

    def url(self, more=None):
        return super().url("transport=iser&start=%s&iser_hello=yes&%s" % (self.start, some_time() if more is None else more))

    def serve(self, c):
        c.target = self
        try:
            if self.start == "rdma":
                c.begin()
            super().serve(c)
        except Terminated as e:
            self.seen.append(e)

    def login(self, c, head, data):
        if head[1] & 3 != 3:
            c.login_response(head)
            return
        c.login_response(head, text_of("TargetPortalGroupTag=1", "RDMAExtensions=Yes", "InitialR2T=Yes",
                                       "InitiatorRecvDataSegmentLength=4096",
                                       "TargetRecvDataSegmentLength=8192", *self.keys))
        if self.start == "stream":
            c.begin()

    def hello(self, c, message):
        self.seen.append(message)
        c.sock.message(GOOD_REPLY)
