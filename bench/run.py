#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares iserd with tgtd and with the floor of this machine, in one run.

Every figure is the median of several repetitions; the contestants take turns
within each repetition, so that other load affects all of them. A repetition
during which other processes used more than 12 % of the CPUs is repeated, at
most twice; if the load remains, the repetition counts as disturbed. As
root, the benchmark runs in its own network namespace, with the same congestion
control for all contestants.
"""
import argparse
import json
import os
import sys

import common
import encrypted
import iscsi
import iser
import rdma


def parse():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("--build", default="build", help="the build folder of the programs")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=2.0)
    p.add_argument("--short", action="store_true",
                   help="one round of the cases with a goal, 1 s each")
    p.add_argument("--case", action="append", help="only cases with "
                   "this text in their name")
    p.add_argument("--io", default="auto", choices=["auto", "uring", "epoll"])
    p.add_argument("--spin", type=int, default=0, help="--spin of iserd, microseconds")
    p.add_argument("--disk", type=int, default=64 << 20,
                   help="bytes of the unit (64 MiB, which fit in the "
                   "caches, so that the memory is not the limit)")
    p.add_argument("--json", metavar="FILE")
    p.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.short:
        a.rounds, a.seconds = 1, 1.0
    cpus = sorted(os.sched_getaffinity(0))
    a.server_cpu, a.client_cpu = (cpus[0], cpus[1]) if len(cpus) > 1 else \
        (None, None)
    for name in ("iserd", "iser", "floor", "raw_stream"):
        setattr(a, name, common.find_program(a.build, name))
    return a


def main():
    args = parse()
    if not args.inside:
        common.own_namespace(__file__)
    else:
        common.set_up_namespace()
    rows, missed = [], 0
    for part in (iscsi, rdma, iser, encrypted):
        cases = part.choose(args)
        if cases:
            more, failed = part.measure(args, cases)
            rows += more
            missed += failed
    if args.json:
        with open(args.json, "w") as f:
            json.dump(rows, f, indent=1)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
