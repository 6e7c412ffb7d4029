#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""streams.py PCAP OUT [BYTES]: extracts the TCP streams of a capture, for tests/vectors.

Takes the connection with the most octets and writes the octets of both sides, in
order, as records: one octet (0: the connecting side, 1: the accepting side), four
octets of length, the octets. Each side is truncated after BYTES (16384).
"""
import struct
import sys

ETHERNET, IPV4, TCP = 1, 0x0800, 6
FIN, SYN = 0x01, 0x02


def packets(path):
    with open(path, "rb") as f:
        head = f.read(24)
        if len(head) < 24 or struct.unpack("<I", head[:4])[0] != 0xa1b2c3d4:
            sys.exit("streams.py: %s is no pcap file of this machine" % path)
        if struct.unpack("<I", head[20:])[0] != ETHERNET:
            sys.exit("streams.py: not captured on Ethernet")
        while True:
            head = f.read(16)
            if len(head) < 16:
                return
            yield f.read(struct.unpack("<IIII", head)[2])


def segment(frame):
    """Returns (from, to, sequence, flags, payload) of a TCP segment, or None."""
    if len(frame) < 54 or struct.unpack_from(">H", frame, 12)[0] != IPV4:
        return None
    ip = frame[14:]
    header = (ip[0] & 15) * 4
    if ip[9] != TCP:
        return None
    tcp = ip[header:struct.unpack_from(">H", ip, 2)[0]]
    source, dest, sequence = struct.unpack_from(">HHI", tcp)
    return ((ip[12:16], source), (ip[16:20], dest), sequence, tcp[13],
            tcp[(tcp[12] >> 4) * 4:])


class Side:
    """One direction: takes segments in any order, returns octets in sequence."""

    def __init__(self, sequence):
        self.next = (sequence + 1) & 0xffffffff
        self.early = {}

    def take(self, sequence, payload):
        """Takes a segment; returns the octets that are now in sequence."""
        self.early[sequence] = max(payload, self.early.get(sequence, b""),
                                   key=len)
        out, going = b"", True
        while going:
            going = False
            for at in sorted(self.early):
                ahead = (at - self.next) & 0xffffffff
                if 0 < ahead < 1 << 31:
                    continue
                piece = self.early.pop(at)[(self.next - at) & 0xffffffff:]
                self.next = (self.next + len(piece)) & 0xffffffff
                out, going = out + piece, True
                break
        return out


def connections(path):
    """Returns a list of (side, octets) for each connection."""
    open_now, every = {}, []
    for frame in packets(path):
        s = segment(frame)
        if not s:
            continue
        source, dest, sequence, flags, payload = s
        key = tuple(sorted((source, dest)))
        if flags & SYN:
            if dest not in open_now.get(key, {}):
                open_now[key] = {source: (0, Side(sequence)), "said": []}
                every.append(open_now[key]["said"])
            else:
                open_now[key][source] = (1, Side(sequence))
        elif payload and source in open_now.get(key, {}):
            number, side = open_now[key][source]
            piece = side.take(sequence, payload)
            if piece:
                open_now[key]["said"].append((number, piece))
    return every


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__.splitlines()[0])
    limit = int(sys.argv[3]) if len(sys.argv) == 4 else 16384
    every = connections(sys.argv[1])
    if not every:
        sys.exit("streams.py: %s has no whole connection" % sys.argv[1])
    said = max(every, key=lambda c: sum(len(p) for _, p in c))
    left = [limit, limit]
    with open(sys.argv[2], "wb") as out:
        for number, piece in said:
            piece = piece[:left[number]]
            left[number] -= len(piece)
            if piece:
                out.write(struct.pack(">BI", number, len(piece)) + piece)


if __name__ == "__main__":
    main()
