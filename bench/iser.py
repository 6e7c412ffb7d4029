# SPDX-License-Identifier: BSD-2-Clause
"""Compares iSER with iSCSI: the same daemon, unit and client over four transports.

Part of run.py: the contestants of a case take turns, with one core per side; the
reported ratio is the median of the ratios of single rounds.
"""
import json
import statistics
import subprocess
import time

from run import GATE, Gate, Iserd, pinned

DIGESTS = "iSCSI, digests"
PLAIN = "iSCSI"
ISER = "iSER"
LANES = (
    (DIGESTS, "transport=tcp&header_digest=crc32c&data_digest=crc32c"),
    (PLAIN, "transport=tcp"),
    (ISER, "transport=iser"),
    ("iSER, login on TCP", "transport=iser&start=stream"),
)


class IserCase:
    """goals: the required ratios of iSER to iSCSI with and without digests."""

    def __init__(self, rw, size, depth, digests, plain):
        self.rw, self.size, self.depth = rw, size, depth
        self.goals = ((DIGESTS, digests), (PLAIN, plain))
        self.name = "iser %s %s x%d" % (
            rw, size, depth)


ISER_CASES = [
    IserCase("randread", "4k", 32, 0.85, 0.75),
    IserCase("randread", "4k", 128, 0.85, 0.75),
    IserCase("read", "128k", 8, 0.95, 0.8),
    IserCase("read", "1M", 8, 0.95, 0.8),
    IserCase("randwrite", "4k", 32, 0.80, 0.70),
    IserCase("write", "128k", 8, 0.90, 0.75),
    IserCase("write", "1M", 8, 0.90, 0.75),
]


def bench(args, case, url):
    command = [args.iser, "bench", "--json", "--time", str(args.seconds),
               "--rw", case.rw, "--bs", case.size, "--depth", str(case.depth)]
    if "write" in case.rw:
        command.append("--yes-overwrite")
    out = subprocess.run(pinned(args.client_cpu, command + [url]), text=True,
                         stdout=subprocess.PIPE, check=True,
                         timeout=args.seconds * 5 + 20).stdout
    return json.loads(out)["write" if "write" in case.rw else "read"]["iops"]


def once(args, case, server, query):
    for _ in range(3):
        gate = Gate([server.process.pid])
        figure = bench(args, case, server.url + "?" + query)
        if gate.others() <= GATE:
            break
    return figure


def ratio_of(figures, upper, lower):
    return statistics.median(
        a / b for a, b in zip(figures[upper], figures[lower]))


def measure_case(args, case, server):
    figures = {name: [] for name, _ in LANES}
    for _ in range(args.rounds):
        for name, query in LANES:
            figures[name].append(once(args, case, server, query))
    for name, _ in LANES:
        v = figures[name]
        print("%-24s %-20s %9.0f IOPS   %9.0f .. %9.0f   x %.2f" % (
            case.name, name, statistics.median(v), min(v), max(v),
            ratio_of(figures, name, DIGESTS)), flush=True)
    return figures


def compare_with_goals(case, figures):
    missed = 0
    for lane, goal in case.goals:
        r = ratio_of(figures, ISER, lane)
        missed += r < goal
        print("%-24s iSER / %-16s = %5.2f  (goal %.2f)%s" % (
            case.name, lane, r, goal, "" if r >= goal else "  MISSED"))
    return missed


def login(args, server, query):
    """Returns the seconds from exec to the end of a client that logs in, reads one
    block and logs out: an upper bound of the time from login to the first READ."""
    command = pinned(args.client_cpu, [
        args.iser, "bench", "--rw", "read", "--bs", "512", "--depth", "1",
        "--amount", "512", "--ramp", "0", server.url + "?" + query])
    best = None
    for _ in range(20):
        start = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        took = time.monotonic() - start
        best = took if best is None else min(best, took)
    return best


def choose(args):
    """Returns the requested cases, or all cases if none is requested."""
    return [c for c in ISER_CASES
            if not args.case or any(w in c.name for w in args.case)]


def measure(args, cases):
    """Returns rows for the report file, and the number of missed goals."""
    server = Iserd(args)
    results = []
    try:
        server.fill(args)
        for case in cases:
            results.append((case, measure_case(args, case, server)))
        for name, query in LANES:
            print("%-24s %-20s %9.2f ms (goal 3, includes the process start)" % (
                "iser login + READ", name, login(args, server, query) * 1e3))
    finally:
        server.stop()
    print()
    missed = sum(compare_with_goals(case, figures) for case, figures in results)
    rows = [{"case": case.name, "contestant": lane, "unit": "iops",
             "figures": v}
            for case, figures in results for lane, v in figures.items()]
    return rows, missed
