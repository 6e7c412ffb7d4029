# SPDX-License-Identifier: BSD-2-Clause
"""An iSER initiator that builds its messages from bytes, also messages that a
correct initiator would not send.

The module implements MPA (RFC 5044), DDP (RFC 5041), RDMAP (RFC 5040) and iSER (RFC
7145) as far as the tests need them, from the RFCs and without code of src/, so that
a misreading of an RFC in src/ is likely to show.
"""
import struct

from harness import Wire

# RDMAP opcodes, RFC 5040 §4.3
WRITE, READ_REQUEST, READ_RESPONSE, SEND, SEND_INV, SEND_SE, SEND_SE_INV, \
    TERMINATE = range(8)
# iSER opcodes, RFC 7145 §9.1
CONTROL, HELLO, HELLO_REPLY = 1, 2, 3
WSV, RSV = 8, 4

SEGMENT = 1400  # octets of payload in a DDP segment that this module sends


def _table():
    rows = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82f63b78 if n & 1 else 0)
        rows.append(n)
    return rows


_CRC = _table()


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ _CRC[(crc ^ byte) & 255]
    return crc ^ 0xffffffff


class Terminated(Exception):
    """The peer sent an RDMAP Terminate: (layer, type, code)."""


class Rdma:
    """The active end of an iWARP stream on self.sock."""

    def rdma_init(self, crc=True):
        self.crc = crc
        self.rx_crc = crc
        self.msn = {0: 1, 1: 1, 2: 1}  # of sent messages, by queue
        self.memory = {}               # STag: bytearray
        self.next_stag = 0x1100
        self.assembled = b""
        self.invalidated = []
        self.answer_reads = True
        self.reads_asked = 0

    # ---- MPA ----

    def mpa_request(self, private=b"", key=b"MPA ID Req Frame", revision=1,
                    flags=None):
        if flags is None:
            flags = 0x40 if self.crc else 0
        self.sock.sendall(key + struct.pack(">BBH", flags, revision,
                                            len(private)) + private)

    def mpa_reply(self):
        head = self._exactly(20)
        assert head[:16] == b"MPA ID Rep Frame", head
        self.reply_private = self._exactly(int.from_bytes(head[18:20], "big"))
        self.rx_crc = self.crc = bool(head[16] & 0x40) or self.crc
        return head[16]

    def fpdu(self, ulpdu, spoil=0):
        """Frames a ULPDU (§4.4); spoil is XORed with its CRC."""
        data = struct.pack(">H", len(ulpdu)) + ulpdu
        data += b"\0" * (-len(data) % 4)
        crc = crc32c(data) if self.crc else 0
        self.sock.sendall(data + struct.pack("<I", crc ^ spoil))

    def next_ulpdu(self):
        head = self._exactly(2)
        n = int.from_bytes(head, "big")
        data = self._exactly(n + -(n + 2) % 4)
        crc = struct.unpack("<I", self._exactly(4))[0]
        if self.rx_crc and crc != crc32c(head + data):
            raise AssertionError("the CRC of an FPDU is wrong")
        return data[:n]

    # ---- DDP and RDMAP ----

    def untagged(self, opcode, data, queue=0, stag=0, segment=SEGMENT,
                 msn=None, ddp=0x01, rdmap=0x40):
        if msn is None:
            msn = self.msn[queue]
            self.msn[queue] += 1
        for at in range(0, max(len(data), 1), segment):
            last = 0x40 if at + segment >= len(data) else 0
            self.fpdu(struct.pack(">BBIIII", ddp | last, rdmap | opcode, stag,
                                  queue, msn, at) + data[at:at + segment])

    def tagged(self, opcode, stag, to, data, segment=SEGMENT):
        for at in range(0, max(len(data), 1), segment):
            last = 0x40 if at + segment >= len(data) else 0
            self.fpdu(struct.pack(">BBIQ", 0x81 | last, 0x40 | opcode, stag,
                                  to + at) + data[at:at + segment])

    def register(self, memory):
        self.next_stag += 0x101
        self.memory[self.next_stag] = memory
        return self.next_stag

    def _place(self, u):
        opcode, stag, to = u[1] & 15, *struct.unpack(">IQ", u[2:14])
        assert opcode == WRITE, "opcode %d in a tagged segment" % opcode
        assert stag in self.memory, "RDMA Write to an STag that is not valid"
        place, data = self.memory[stag], u[14:]
        assert to + len(data) <= len(place), "RDMA Write out of bounds"
        place[to:to + len(data)] = data

    def _serve_read(self, data):
        sink, sink_to, size, stag, to = struct.unpack(">IQIIQ", data)
        self.reads_asked += 1
        assert stag in self.memory, "RDMA Read of an STag that is not valid"
        assert to + size <= len(self.memory[stag]), "RDMA Read out of bounds"
        if self.answer_reads:
            self.tagged(READ_RESPONSE, sink, sink_to,
                        bytes(self.memory[stag][to:to + size]))
        else:
            self.unanswered = (sink, sink_to, size, stag, to)

    def next_send(self):
        """Returns the payload of the next Send; executes earlier Writes and Reads."""
        while True:
            u = self.next_ulpdu()
            assert u[0] & 3 == 1 and u[1] >> 6 == 1, "DDP or RDMAP version"
            if u[0] & 0x80:
                self._place(u)
                continue
            opcode, stag = u[1] & 15, int.from_bytes(u[2:6], "big")
            if opcode == READ_REQUEST:
                self._serve_read(u[18:])
            elif opcode == TERMINATE:
                code = u[18:20]
                raise Terminated(code[0] >> 4, code[0] & 15, code[1])
            else:
                self.assembled += u[18:]
                if u[0] & 0x40:
                    break
        if opcode in (SEND_INV, SEND_SE_INV):
            assert stag in self.memory, "invalidates what is not valid"
            del self.memory[stag]
            self.invalidated.append(stag)
        data, self.assembled = self.assembled, b""
        return data


class RdmaWire(Rdma, Wire):
    """A Wire over iSER. start: "rdma" (MPA first) or "stream" (login first); cm:
    the four bytes of iSER private data, or None."""

    KEYS = Wire.KEYS[:2] + (
        "InitialR2T=Yes", "ImmediateData=Yes", "RDMAExtensions=Yes",
        "InitiatorRecvDataSegmentLength=8192",
        "TargetRecvDataSegmentLength=8192", "MaxRecvDataSegmentLength=8192")

    def __init__(self, daemon, start="rdma", crc=True, cm=b"\x80\0\0\0",
                 connect=True):
        Wire.__init__(self, daemon)
        self.rdma_init(crc)
        self.start, self.in_rdma, self.out = start, False, {}
        # the default of TaggedBufferForSolicitedDataOnly, RFC 7145 §6.9; a
        # connection that begins in RDMA mode follows Linux
        self.solicited_only = start == "rdma"
        if start == "rdma" and connect:
            self.begin(cm)

    def begin(self, private=b""):
        self.mpa_request(private)
        flags = self.mpa_reply()
        assert not flags & 0x20, "rejected"
        self.in_rdma = True

    @staticmethod
    def header(opcode=CONTROL, flags=0, write=(0, 0), read=(0, 0)):
        return struct.pack(">BxxxIQIQ", opcode << 4 | flags, *write, *read)

    def put(self, head, data=b"", header=None):
        if not self.in_rdma:
            Wire.put(self, head, data)
            return
        self.untagged(SEND, (header or self.header()) + head + data)

    def login(self, *more):
        answer = Wire.login(self, *more)
        if self.start == "stream" and answer[1][36:38] == b"\0\0":
            assert b"RDMAExtensions=Yes\0" in answer[2], answer[2]
            self.begin()
        return answer

    def recv(self):
        if not self.in_rdma:
            return Wire.recv(self)
        data = self.next_send()
        assert data[0] >> 4 == CONTROL, "iSER opcode %d" % (data[0] >> 4)
        head, dsl = data[28:76], int.from_bytes(data[33:36], "big")
        assert 76 + dsl <= len(data) <= 76 + dsl + 3, "length of a Send"
        return head[0] & 0x3f, head, data[76:76 + dsl]

    def command(self, cdb, flags=0x80, edtl=0, data=b"", immediate=False,
                at_once=0, header=None):
        """Advertises the data of a write after the first at_once bytes; the memory
        of a read is self.out[itt]."""
        h, write, read, itt = 0, (0, 0), (0, 0), self.itt
        self.itt += 1
        if flags & 0x20 and len(data) > at_once:
            out = data[at_once:] if self.solicited_only else data
            h, write = WSV, (self.register(bytearray(out)), 0)
        if flags & 0x40 and edtl:
            self.out[itt] = bytearray(edtl)
            h, read = h | RSV, (self.register(self.out[itt]), 0)
        rest = struct.pack(">III", edtl, self.cmdsn, 1) + bytes(cdb)
        head = self.bhs(0x41 if immediate else 1, flags | 1,
                        min(at_once, len(data)), itt=itt, rest=rest)
        self.put(head, data[:at_once],
                 header or self.header(CONTROL, h, write, read))
        self.cmdsn += not immediate
        return itt

    def ask(self, cdb, edtl=0, data=b"", at_once=0):
        flags = 0xa0 if data else 0xc0 if edtl else 0x80
        itt = self.command(cdb, flags, edtl or len(data), data,
                           at_once=at_once)
        op, head, sense = self.recv()
        assert op == 0x21, "a Send with opcode %#x" % op
        assert int.from_bytes(head[16:20], "big") == itt
        return head[3], sense if sense else bytes(self.out.pop(itt, b""))
