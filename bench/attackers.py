# SPDX-License-Identifier: BSD-2-Clause
"""Clients that make a target work as much as one connection can, for the group `fair`.

    python3 bench/attackers.py KIND URL [--metrics SOCKET] [--control SOCKET]

The program prints "ready", and then goes on until it is killed. KIND is a function of ATTACKS.
Requests that cost the target more than they cost the sender are made once, as one block of
many PDUs, and sent again and again."""
import argparse
import os
import socket
import struct
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "tests", "interop"))
from harness import Wire  # noqa: E402
from rdma_wire import RdmaWire, SEND  # noqa: E402

ALL_ONES = 0xffffffff
BLOCK = 256 << 10  # about what a block of PDUs has
ASKED = 512        # PDUs of a block that is answered
READ, WRITE = 0xc0, 0xa0


class Peer:
    """What a Wire asks of a daemon."""

    def __init__(self, url):
        _, _, portal, self.target, lun = url.split("/")
        host, port = portal.rsplit(":", 1)
        self.address, self.lun = (host, int(port)), int(lun)


class Session(Wire):
    """A session of its own, at its own unit."""

    KEYS = ("InitiatorName=iqn.2026-01.org.example:attacker", "SessionType=Normal",
            "InitialR2T=Yes", "ImmediateData=Yes", "MaxBurstLength=262144",
            "MaxRecvDataSegmentLength=262144")

    def __init__(self, peer, *keys):
        super().__init__(peer)
        self.lun = struct.pack(">H6x", peer.lun)
        op, head, _ = self.login(*keys)
        if op != 0x23 or head[36:38] != b"\0\0":
            raise RuntimeError("the login was refused")
        self.tsih = head[14:16]
        self.statsn = int.from_bytes(head[24:28], "big") + 1
        self.sock.settimeout(None)

    def request(self, op, flags=0x80, data=b"", itt=ALL_ONES, w20=ALL_ONES, more=b""):
        """Returns the bytes of an immediate request with the current CmdSN."""
        head = self.bhs(0x40 | op, flags, len(data), self.lun, itt,
                        struct.pack(">III", w20, self.cmdsn, 1) + more)
        return head + data + b"\0" * (-len(data) % 4)

    def begin(self, cdb, flags=0x80, edtl=0, data=b""):
        """Sends a SCSI Command with immediate data."""
        head = self.bhs(1, flags | 1, len(data), self.lun, self.itt,
                        struct.pack(">III", edtl or len(data), self.cmdsn, 1) + bytes(cdb))
        self.cmdsn += 1
        self.itt += 1
        self.put(head, data)

    def recv(self):
        op, head, data = super().recv()
        if op != 0x25 or head[1] & 1:
            self.statsn = int.from_bytes(head[24:28], "big") + 1
        return op, head, data

    def end(self):
        """Waits for the end of a command; returns its status and its data."""
        got = b""
        while True:
            op, head, data = self.recv()
            if op == 0x25:
                got += data
            if op == 0x21 or (op == 0x25 and head[1] & 1):
                return head[3], got
            if op == 0x3f:
                raise RuntimeError("rejected: %#x" % head[2])

    def run(self, *words, **more):
        self.begin(*words, **more)
        return self.end()

    def ready(self):
        while self.run(bytes(16))[0]:
            pass
        return self

    def drain(self):
        """Takes what comes, in a thread."""
        def take():
            while self.sock.recv(1 << 20):
                pass
        threading.Thread(target=take, daemon=True).start()

    def flood(self, *pdus):
        """Sends these PDUs, which have no answer, for ever."""
        one = b"".join(pdus)
        block = one * max(1, BLOCK // len(one))
        self.drain()
        say_ready()
        while True:
            self.sock.sendall(block)

    def ask(self, *pdus, answers=1):
        """Sends these PDUs, of equal length and with `answers` answers each, for ever. Two blocks
        are in progress at once; ExpStatSN acknowledges what came."""
        count = max(1, min(ASKED, BLOCK // len(pdus[0])) // len(pdus))
        block = bytearray(b"".join(pdus) * count)
        size, count = len(pdus[0]), count * len(pdus)
        stream = self.sock.makefile("rb", 1 << 20)
        expected = self.statsn
        say_ready()
        sent = got = 0
        while True:
            while sent - got < 2 * count * answers:
                for n in range(4):
                    block[28 + n::size] = bytes([expected >> 8 * (3 - n) & 255]) * count
                self.sock.sendall(block)
                sent += count * answers
            for _ in range(count * answers):
                head = stream.read(48)
                size_of_data = int.from_bytes(head[5:8], "big")
                stream.read(size_of_data + -size_of_data % 4)
                expected = int.from_bytes(head[24:28], "big") + 1
            got += count * answers

    def keep(self, depth, commands):
        """Keeps depth commands in progress; commands are arguments of begin, in turns."""
        say_ready()
        sent = done = 0
        while True:
            while sent - done < depth:
                self.begin(*commands[sent % len(commands)])
                sent += 1
            self.end()
            done += 1


def say_ready():
    print("ready", flush=True)


# ---- requests other than commands ----

def quiet_nop(args):
    s = Session(args.peer)
    s.flood(s.request(0))


def nop(args, size=0):
    s = Session(args.peer)
    s.ask(s.request(0, itt=9, data=bytes(size)))


def snack(args, kind):
    s = Session(args.peer, "ErrorRecoveryLevel=1").ready()
    tag = ALL_ONES if kind in (1, 2) else 7
    pdu = s.request(0x10, 0x80 | kind, itt=tag, w20=ALL_ONES - 1, more=struct.pack(">8xII", 1, 1))
    s.ask(pdu)


def text(args, pairs, *keys):
    s = Session(args.peer, *keys)
    s.ask(*[s.request(4, data=b"".join(p.encode() + b"\0" for p in pairs), itt=n)
            for n in range(8)])


def function(args, number, *keys, tag=3):
    s = Session(args.peer, *keys).ready()
    s.ask(*[s.request(2, 0x80 | number, itt=n + 100, w20=tag,
                      more=struct.pack(">I", s.cmdsn)) for n in range(32)])


def resets(args):
    """Resets of a unit that may be not ready, as at a gateway that stands by."""
    s = Session(args.peer)
    s.ask(*[s.request(2, 0x85, itt=n + 100, w20=3, more=struct.pack(">I", s.cmdsn))
            for n in range(32)])


def unknown_opcode(args):
    s = Session(args.peer)
    s.ask(s.request(0x1e, itt=5))


# ---- Data-Outs ----

def data_out(s, count, itt, ttt, payload):
    """Returns count Data-Outs, in order, of payload bytes each."""
    head = s.bhs(5, 0, payload, s.lun, itt, struct.pack(">III", ttt, 0, 1))
    size = 48 + payload + -payload % 4
    block = bytearray(head.ljust(size, b"\0") * count)
    for n in range(4):  # DataSN and Buffer Offset
        shift = 8 * (3 - n)
        block[36 + n::size] = bytes((i >> shift) & 255 for i in range(count))
        block[40 + n::size] = bytes((i * payload >> shift) & 255 for i in range(count))
    block[1 + (count - 1) * size] = 0x80
    return block, size


def stray_data(args):
    s = Session(args.peer)
    s.flood(bytes(data_out(s, 1, 77, 88, 4)[0]))


def tiny_data(args):
    """Writes whose solicited data come four bytes at a time."""
    s = Session(args.peer).ready()
    blocks = 262144 // 512
    cdb = b"\x2a\0" + struct.pack(">IxH", 0, blocks) + bytes(7)
    block, size = data_out(s, 262144 // 4, 0, 0, 4)
    count = len(block) // size
    say_ready()
    while True:
        s.begin(cdb, WRITE, edtl=262144)
        op, head, _ = s.recv()
        if op != 0x31:
            raise RuntimeError("no R2T but %#x" % op)
        for n in range(8):  # the tags
            block[16 + n::size] = head[16 + n:17 + n] * count
        s.sock.sendall(block)
        s.end()


# ---- commands ----

def verify(args):
    s = Session(args.peer).ready()
    s.keep(32, [(b"\x8f\0" + struct.pack(">QIH", 0, (64 << 20) // 512, 0),)])


def designator(s):
    """Returns the NAA designator of the unit, as in a target descriptor."""
    _, page = s.run(b"\x12\1\x83\0\xff".ljust(16, b"\0"), READ, 255)
    at = 4
    while at < len(page):
        size = page[at + 3]
        if page[at + 1] & 0x3f == 3:
            return page[at:at + 4 + size]
        at += 4 + size
    raise RuntimeError("no NAA designator")


def write_zeros(args):
    s = Session(args.peer).ready()
    s.keep(32, [(b"\x93\1" + struct.pack(">QIH", 0, (64 << 20) // 512, 0),)])


def big_writes(args):
    """Writes of 16 MiB, which the unit gets as a whole."""
    s = Session(args.peer).ready()
    size = 16 << 20
    block, unit = data_out(s, size // 262144, 0, 0, 262144)
    say_ready()
    while True:
        s.begin(b"\x8a\0" + struct.pack(">QIH", 0, size // 512, 0), WRITE, size)
        for at in range(0, size, 262144):
            op, head, _ = s.recv()
            if op != 0x31:
                raise RuntimeError("no R2T but %#x" % op)
            pdu = bytearray(block[at // 262144 * unit:][:unit])
            pdu[1], pdu[16:24], pdu[36:40] = 0x80, head[16:24], bytes(4)
            s.sock.sendall(pdu)
        s.end()


def extended_copy(args):
    s = Session(args.peer).ready()
    unit = (b"\xe4\0\0\0" + designator(s)).ljust(28, b"\0") + struct.pack(">BBH", 0, 2, 0)[:1]
    unit = unit[:28] + b"\0" + (512).to_bytes(3, "big")
    blocks = (16 << 20) // 512
    segment = struct.pack(">BBHHHHHQQ", 2, 0, 24, 0, 0, 0, blocks, 0, blocks)
    lists = struct.pack(">BBHIII", 0, 0x10, len(unit), 0, len(segment), 0) + unit + segment
    s.keep(4, [(b"\x83".ljust(10, b"\0") + struct.pack(">IH", len(lists), 0), WRITE, 0, lists)])


def unmap(args):
    s = Session(args.peer).ready()
    ranges = b"".join(struct.pack(">QII", n * 16, 8, 0) for n in range(255))
    lists = struct.pack(">HHI", len(ranges) + 6, len(ranges), 0) + ranges
    s.keep(32, [(b"\x42".ljust(7, b"\0") + struct.pack(">HB", len(lists), 0) + bytes(6), WRITE, 0,
                 lists)])


def mode_select(args):
    s = Session(args.peer).ready()
    _, page = s.run(b"\x5a\x08\x08\0\0\0\0\0\xff".ljust(16, b"\0"), READ, 255)
    page = bytearray(page[8:8 + 2 + page[9]])
    page[0] &= 0x3f
    both = []
    for bit in (0, 4):  # WCE
        page[2] = page[2] & ~4 | bit
        data = bytes(8) + bytes(page)
        both.append((b"\x55\x11\0\0\0\0\0" + struct.pack(">HB", len(data), 0) + bytes(6), WRITE, 0,
                     data))
    s.keep(8, both)


def register(args):
    s = Session(args.peer).ready()
    s.keep(8, [(b"\x5f\x06\0\0\0\0\0\0\x18".ljust(16, b"\0"), WRITE, 0,
                struct.pack(">QQIB3x", 0, n + 1, 0, 1)) for n in range(2)])


def report_luns(args):
    s = Session(args.peer).ready()
    s.keep(32, [(b"\xa0\0\2\0\0\0" + struct.pack(">I", 65536) + bytes(6), READ, 65536)])


def short_commands(args):
    s = Session(args.peer).ready()
    s.keep(32, [(b"\x12\1\x83\0\xff".ljust(16, b"\0"), READ, 255)])


def big_reads(s, depth):
    """Asks for 1 MiB reads, as many as the window permits."""
    for n in range(depth):
        s.begin(b"\x28\0" + struct.pack(">IxH", n * 2048, 2048) + bytes(7), READ, 1 << 20)


def reads_not_taken(args):
    s = Session(args.peer).ready()
    big_reads(s, 60)
    say_ready()
    while True:
        threading.Event().wait()


def zero_window(args):
    """Takes a few bytes at a time, with the smallest receive buffer."""
    s = Session(args.peer).ready()
    s.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    big_reads(s, 60)
    say_ready()
    while s.sock.recv(512):
        pass
    threading.Event().wait()


# ---- connections ----

def logins(args):
    say_ready()
    while True:
        Session(args.peer).close()


def joins(args):
    first = Session(args.peer, "MaxConnections=16")

    class Join(Session):
        def login(self, *more):
            keys = self.KEYS + ("TargetName=" + self.daemon.target,) + more
            data = b"".join(k.encode() + b"\0" for k in keys)
            head = struct.pack(">BBBBI", 0x43, 0x87, 0, 0, len(data)) + self.ISID + first.tsih
            head += struct.pack(">IHHII", 0, 2, 0, first.cmdsn, 0)
            self.put(head.ljust(48, b"\0"), data)
            return self.recv()

    say_ready()
    while True:
        Join(args.peer).close()


def mpa_starts(args):
    say_ready()
    while True:
        with socket.create_connection(args.peer.address) as s:
            s.sendall(b"MPA ID Req Frame\0\1\0\0")
            s.recv(100)


class RdmaSession(RdmaWire):
    KEYS = (Session.KEYS[0],) + RdmaWire.KEYS[1:]


def rdma_nop(args, tag=ALL_ONES):
    s = RdmaSession(args.peer, crc=False)
    s.login()
    s.sock.settimeout(None)
    out = []
    s.fpdu = lambda u: out.append(struct.pack(">H", len(u)) + u + b"\0" * (-(len(u) + 2) % 4 + 4))
    s.untagged(SEND, s.header() + s.bhs(0x40, itt=tag,
                                        rest=struct.pack(">III", ALL_ONES, s.cmdsn, 1)))
    one, count = out[0], 2048
    block = bytearray(one * count)
    Session.drain(s)
    say_ready()
    msn = s.msn[0] - 1
    while True:
        for n in range(4):
            shift = 8 * (3 - n)
            block[2 + 10 + n::len(one)] = bytes(((msn + i) >> shift) & 255 for i in range(count))
        s.sock.sendall(block)
        msn += count


# ---- the sockets of the administrator ----

def unix_flood(path, block, take):
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    if take:
        Session.drain(argparse.Namespace(sock=s))
    say_ready()
    try:
        while True:
            s.sendall(block)
    except OSError:
        pass


def http(args, path, take=True):
    while True:
        unix_flood(args.metrics, b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path * 50, take)


def control(args, method, take=True):
    line = b'{"jsonrpc":"2.0","id":1,"method":"%s"}\n' % method
    while True:
        unix_flood(args.control, line * 50, take)


ATTACKS = {
    "NOPs without answer": quiet_nop,
    "NOPs with answer": nop,
    "NOPs with 8 KiB": lambda a: nop(a, 8192),
    "SNACK of data": lambda a: snack(a, 0),
    "SNACK of a status": lambda a: snack(a, 1),
    "DataACK": lambda a: snack(a, 2),
    "R-Data SNACK": lambda a: snack(a, 3),
    "text, unknown keys": lambda a: text(a, ["X-a%d=1" % n for n in range(200)]),
    "SendTargets": lambda a: text(a, ["SendTargets=All"]),
    "ABORT TASK": lambda a: function(a, 1),
    "ABORT TASK SET": lambda a: function(a, 2),
    "LOGICAL UNIT RESET": lambda a: function(a, 5),
    "TASK REASSIGN": lambda a: function(a, 8, "ErrorRecoveryLevel=2"),
    "unknown opcodes": unknown_opcode,
    "stray Data-Outs": stray_data,
    "tiny Data-Outs": tiny_data,
    "VERIFY of 64 MiB": verify,
    "WRITE SAME of 64 MiB": write_zeros,
    "writes of 16 MiB": big_writes,
    "EXTENDED COPY": extended_copy,
    "UNMAP of 255 ranges": unmap,
    "MODE SELECT": mode_select,
    "PR REGISTER, APTPL": register,
    "REPORT LUNS": report_luns,
    "INQUIRY": short_commands,
    "reads not taken": reads_not_taken,
    "small windows": zero_window,
    "logins": logins,
    "joins": joins,
    "MPA starts": mpa_starts,
    "iSER NOPs without answer": rdma_nop,
    "iSER NOPs with answer": lambda a: rdma_nop(a, 9),
    "/metrics": lambda a: http(a, b"/metrics"),
    "/status.json": lambda a: http(a, b"/status.json"),
    "/healthz": lambda a: http(a, b"/healthz"),
    "/readyz": lambda a: http(a, b"/readyz"),
    "/metrics not read": lambda a: http(a, b"/metrics", False),
    "control: status": lambda a: control(a, b"status"),
    "control: dump": lambda a: control(a, b"dump"),
    "control: not read": lambda a: control(a, b"status", False),
}


# of the client's own unit
RESETS = {
    "LOGICAL UNIT RESET of the same unit": resets,
    "LOGICAL UNIT RESET through another gateway": resets,
}


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("kind", choices=sorted({**ATTACKS, **RESETS}), metavar="KIND")
    p.add_argument("peer", type=Peer, metavar="URL")
    p.add_argument("--metrics")
    p.add_argument("--control")
    args = p.parse_args()
    {**ATTACKS, **RESETS}[args.kind](args)


if __name__ == "__main__":
    main()
