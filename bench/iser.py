# SPDX-License-Identifier: BSD-2-Clause
"""Compares iSER with iSCSI: the same daemon, unit and client over four transports.

Part of run.py: the contestants of a case take turns, with one core per side; the
reported ratio is the median of the ratios of single rounds.
"""
import subprocess
import time

import common
from common import (Iserd, iser_bench, pinned, print_goal, print_iops, ratio_of,
                    rows_of, take_turns)

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
        self.name = "iser %s %s x%d" % (rw, size, depth)


ISER_CASES = [
    IserCase("randread", "4k", 32, 0.85, 0.75),
    IserCase("randread", "4k", 128, 0.85, 0.75),
    IserCase("read", "128k", 8, 0.95, 0.8),
    IserCase("read", "1M", 8, 0.95, 0.8),
    IserCase("randwrite", "4k", 32, 0.80, 0.70),
    IserCase("write", "128k", 8, 0.90, 0.75),
    IserCase("write", "1M", 8, 0.90, 0.75),
]


def measure_case(args, case, server):
    figures, _ = take_turns(args, {
        name: (server, lambda url=server.url + "?" + query: iser_bench(
            args, url, case.rw, case.size, case.depth))
        for name, query in LANES})
    for name, _ in LANES:
        print_iops(case, figures, name, DIGESTS)
    return figures


def compare_with_goals(case, figures):
    missed = 0
    for lane, goal in case.goals:
        ratio = ratio_of(figures, ISER, lane)
        missed += print_goal("%-24s iSER / %-16s" % (case.name, lane), ratio,
                             goal, ratio >= goal)
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
    return common.choose(args, ISER_CASES)


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
    rows = [row for case, figures in results
            for row in rows_of(case, "iops", figures)]
    return rows, missed
