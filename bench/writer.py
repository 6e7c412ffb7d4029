# SPDX-License-Identifier: BSD-2-Clause
"""A client that writes 4 KiB, 8 deep, and issues commands again that another initiator has
ended, as the SCSI layers of operating systems do; for the group `fair`.

    python3 bench/writer.py URL SECONDS

Prints the writes per second and their p99 latency in microseconds, from the first issue to
the end with GOOD, as JSON."""
import json
import random
import struct
import sys
import time

from attackers import WRITE, Peer, Session

DEPTH, SIZE = 8, 4096
BLOCKS = SIZE // 512


class Writer(Session):
    KEYS = ("InitiatorName=iqn.2026-01.org.example:writer",) + Session.KEYS[1:]

    def issue(self, began):
        """Begins a WRITE whose first issue was at `began`."""
        self.pending[self.itt] = began
        cdb = b"\x2a\0" + struct.pack(">IxH", random.randrange(4096) * BLOCKS, BLOCKS)
        self.begin(cdb + bytes(7), WRITE, SIZE, bytes(SIZE))

    def measure(self, seconds):
        self.pending, latencies = {}, []
        now = time.monotonic()
        end = now + seconds
        for _ in range(DEPTH):
            self.issue(now)
        while now < end:
            op, head, _ = self.recv()
            if op != 0x21:  # an asynchronous message
                continue
            began = self.pending.pop(int.from_bytes(head[16:20], "big"))
            now = time.monotonic()
            if head[3] == 0:
                latencies.append(now - began)
                began = now
            self.issue(began)
        return latencies


def main():
    seconds = float(sys.argv[2])
    latencies = sorted(Writer(Peer(sys.argv[1])).ready().measure(seconds))
    p99 = latencies[len(latencies) * 99 // 100] if latencies else seconds
    print(json.dumps({"iops": len(latencies) / seconds, "p99_us": p99 * 1e6}))


if __name__ == "__main__":
    main()
