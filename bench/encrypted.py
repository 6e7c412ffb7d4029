# SPDX-License-Identifier: BSD-2-Clause
"""Compares encrypted units with plain units: one daemon, the same client, in
memory and in files.

Part of run.py: the contestants of a case take turns, with one core per side; the
reported ratio is the median of the ratios of single rounds.
"""
import json
import os
import statistics
import subprocess
import tempfile

from run import GATE, Gate, Iserd, pinned

PAIRS = (("memory", "memory, encrypted"), ("file", "file, encrypted"))


class CryptCase:
    def __init__(self, rw, size, depth):
        self.rw, self.size, self.depth = rw, size, depth
        self.name = "crypt %s %s x%d" % (rw, size, depth)


CRYPT_CASES = [
    CryptCase("randread", "4k", 32),
    CryptCase("randwrite", "4k", 32),
    CryptCase("read", "1M", 8),
    CryptCase("write", "1M", 8),
]


def choose(args):
    """Returns the requested cases, or all cases if none is requested."""
    return [c for c in CRYPT_CASES
            if not args.case or any(w in c.name for w in args.case)]


def bench(args, url, rw, *more):
    command = [args.iser, "bench", "--json", "--rw", rw, *more]
    if "write" in rw:
        command.append("--yes-overwrite")
    out = subprocess.run(pinned(args.client_cpu, command + [url]), text=True,
                         stdout=subprocess.PIPE, check=True, timeout=120).stdout
    return json.loads(out)["write" if "write" in rw else "read"]["iops"]


def once(args, case, server, url):
    for _ in range(3):
        gate = Gate([server.process.pid])
        figure = bench(args, url, case.rw, "--time", str(args.seconds), "--bs",
                       case.size, "--depth", str(case.depth))
        if gate.others() <= GATE:
            break
    return figure


def measure_case(args, case, server):
    lanes = list(zip((lane for pair in PAIRS for lane in pair), server.urls))
    figures = {lane: [] for lane, _ in lanes}
    for _ in range(args.rounds):
        for lane, url in lanes:
            figures[lane].append(once(args, case, server, url))
    for plain, encrypted in PAIRS:
        for lane in plain, encrypted:
            v = figures[lane]
            print("%-24s %-20s %9.0f IOPS   %9.0f .. %9.0f   x %.2f" % (
                case.name, lane, statistics.median(v), min(v), max(v),
                statistics.median(a / b for a, b in zip(v, figures[plain]))), flush=True)
    return figures


def measure(args, cases):
    """Returns rows for the report file, and the number of missed goals."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        path = os.path.abspath(folder)
        for name in "plain", "encrypted":
            with open(path + "/" + name, "wb") as f:
                f.truncate(args.disk)
        server = Iserd(args, [
            "ram:%d" % args.disk, "ram:%d,key=%s/ram.key" % (args.disk, path),
            path + "/plain", "%s/encrypted,key=%s/key" % (path, path)])
        try:
            for url in server.urls:
                server.url = url
                server.fill(args)
            rows = [{"case": case.name, "contestant": lane, "unit": "iops", "figures": v}
                    for case in cases
                    for lane, v in measure_case(args, case, server).items()]
        finally:
            server.stop()
    return rows, 0
