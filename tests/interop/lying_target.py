# SPDX-License-Identifier: BSD-2-Clause
"""A fake target. The case sees each command first and may answer the command with
any amount of data, any residual and any status."""
import struct

from fake_target import (NOP_OUT, R_DATA, R_SCSI, SCSI, FakeTarget,
                         text_of)

BLOCK = 512
UNDERFLOW, OVERFLOW = 0x02, 0x04
GOOD, CHECK, BUSY, CONFLICT, FULL = 0, 2, 8, 0x18, 0x28
READS, WRITES = (0x28, 0x88), (0x2a, 0x8a)
DATA_OUT, R2T = 0x05, 0x31


def sense(key, asc):
    """Returns fixed format sense data (SPC-4 §4.5.3); asc includes the qualifier."""
    return struct.pack(">BBBIBIHI", 0x70, 0, key, 0, 10, 0, asc, 0)


def pattern(offset, n):
    """Returns the contents of the disk; all blocks differ."""
    first = offset // 8
    words = struct.pack(">%dQ" % (n // 8 + 2), *(
        (i * 0x9e3779b97f4a7c15 + 1) & (2 ** 64 - 1)
        for i in range(first, first + n // 8 + 2)))
    return words[offset % 8:offset % 8 + n]


class Command:
    """A SCSI Command and methods that answer it; only these methods send PDUs."""

    def __init__(self, target, conn, bhs, data):
        self.target, self.conn = target, conn
        self.bhs, self.itt, self.lun = bhs, bhs[16:20], bhs[8:16]
        self.edtl = int.from_bytes(bhs[20:24], "big")
        self.cdb, self.op = bhs[32:48], bhs[32]
        self.data, self.datasn = data, 0

    @property
    def lba(self):
        return int.from_bytes(self.cdb[2:10] if self.op in (0x88, 0x8a)
                              else self.cdb[2:6], "big")

    def data_in(self, data, offset=0, status=None, flags=0, resid=0,
                final=True):
        has = status is not None
        self.conn.send(R_DATA, 0x80 * final | flags | has, self.itt, data,
                       bytes2=bytes([0, status or 0]), count=has,
                       rest=struct.pack(">III", self.datasn, offset, resid))
        self.datasn += 1

    def response(self, status=GOOD, flags=0, resid=0, sense=b"", qualifier=0):
        data = struct.pack(">H", len(sense)) + sense if sense else b""
        self.conn.send(R_SCSI, 0x80 | flags, self.itt, data,
                       bytes2=bytes([0, status]),
                       lun=struct.pack(">H6x", qualifier), ttt=bytes(4),
                       rest=struct.pack(">III", 0, 0, resid))

    def r2t(self, offset, length, sn=0):
        self.conn.send(R2T, 0x80, self.itt, lun=self.lun, ttt=b"\0\0\0\7",
                       rest=struct.pack(">III", sn, offset, length),
                       count=False)

    def take(self):
        """Receives and returns all data of a WRITE."""
        sn = 0
        while len(self.data) < self.edtl:
            n = min(self.edtl - len(self.data), 65536)
            self.r2t(len(self.data), n, sn)
            sn += 1
            end = len(self.data) + n
            while len(self.data) < end:
                self.data += self.target.data_out(self.conn, self.itt)
        return self.data

    def give(self, data, cut=8192):
        """Sends data up to the EDTL, and returns the residual."""
        data = data[:self.edtl]
        for at in range(0, len(data), cut):
            self.data_in(data[at:at + cut], at, final=at + cut >= len(data))
        left = self.edtl - len(data)
        self.response(GOOD, UNDERFLOW if left else 0, left)

    def check(self, key, asc):
        self.response(CHECK, sense=sense(key, asc))


class LyingTarget(FakeTarget):
    """A disk that holds pattern(). lie(c) gets each command first, and returns True
    if it has answered the command."""

    blocks = 16384
    keys = text_of("InitialR2T=Yes", "ImmediateData=No",
                   "MaxBurstLength=262144", "FirstBurstLength=65536",
                   "MaxOutstandingR2T=1", "MaxRecvDataSegmentLength=65536",
                   "HeaderDigest=None", "DataDigest=None",
                   "iSCSIProtocolLevel=2")

    def __init__(self, lie=lambda c: False, **more):
        self.lie, self.ops, self.written, self.early = lie, [], {}, {}
        super().__init__(**more)

    def login(self, c, head, data):
        c.login_response(head, text_of("TargetPortalGroupTag=1") + self.keys
                         if head[1] & 3 == 3 else b"")

    def data_out(self, conn, itt):
        """Returns the next Data-Out of a command; answers other requests in between."""
        while not self.early.get(itt):
            op, head, data = conn.recv()
            if op == DATA_OUT:
                self.early.setdefault(head[16:20], []).append(data)
            elif op == SCSI:
                self.scsi(conn, head, data)
            elif op == NOP_OUT:
                self.nop(conn, head, data)
            else:
                raise EOFError("no place for opcode %d" % op)
        return self.early[itt].pop(0)

    def scsi(self, c, head, data):
        command = Command(self, c, head, data)
        self.ops.append(command.op)
        if self.lie(command):
            return
        if command.op in READS:
            command.give(pattern(command.lba * BLOCK, command.edtl))
        elif command.op in WRITES:
            self.written[command.lba * BLOCK] = command.take()
            command.response()
        elif command.op == 0x35:
            command.response()
        elif command.op == 0x1a:
            c.data_in(head, b"\x03\0\x10\0")
        elif command.op == 0x9e and command.cdb[1] & 0x1f != 0x10:
            command.check(5, 0x2400)
        else:
            super().scsi(c, head, data)
