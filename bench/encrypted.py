# SPDX-License-Identifier: BSD-2-Clause
"""Compares encrypted units with plain units: one daemon, the same client, in
memory and in files.

Part of run.py: the contestants of a case take turns, with one core per side; the
reported ratio is the median of the ratios of single rounds.
"""
import os
import tempfile

import common
from common import Iserd, iser_bench, print_iops, rows_of, take_turns

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
    return common.choose(args, CRYPT_CASES)


def measure_case(args, case, server):
    names = [lane for pair in PAIRS for lane in pair]
    figures, _ = take_turns(args, {
        name: (server, lambda url=url: iser_bench(args, url, case.rw, case.size,
                                                  case.depth))
        for name, url in zip(names, server.urls)})
    for plain, encrypted in PAIRS:
        for lane in plain, encrypted:
            print_iops(case, figures, lane, plain)
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
            server.fill(args)
            rows = [row for case in cases for row in
                    rows_of(case, "iops", measure_case(args, case, server))]
        finally:
            server.stop()
    return rows, 0
