#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Counts the instructions of a 4 KiB read and write at both ends, by iSCSI (also at
ErrorRecoveryLevel 2) and iSER.

cost.py PROGRAM runs path_cost under callgrind and compares each figure with
tests/cost/costs.txt. A figure that is more than 5 % higher is a regression. One that
is more than 5 % lower fails, too: --write stores it, so that the gain is guarded.
The figures are those of one compiler and one level of optimization; for others the
test is skipped. --any prints the figures of any compiler; --functions iser-read target
prints what each function of that end costs, with --level 2 that at ErrorRecoveryLevel 2.
"""
import argparse
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
COSTS = os.path.join(HERE, "costs.txt")
SLACK = 0.05
SKIP = 77
# arguments of path_cost, prefix of the operations
KINDS = ((["iscsi"], ""), (["iser"], "iser-"),
         (["iscsi", "2048", "2048", "32", "16", "2"], "level2-"))
PHASES = (("read", "read_all"), ("write", "write_all"))
ENDS = (("target", "target_turn"), ("client", "client_turn"))


class Profile:
    """The cost of each function itself and of each pair of caller and callee."""

    def __init__(self, path):
        self.names = {}
        self.own = collections.Counter()
        self.calls = collections.Counter()
        function = callee = None
        after_calls = False
        with open(path) as f:
            for line in f:
                m = re.match(r"(c?fn)=(\((\d+)\))(?: (.*))?$", line)
                if m and m.group(4):
                    self.names[m.group(3)] = re.split(r"['.]", m.group(4))[0]
                if m and m.group(1) == "fn":
                    function = self.names[m.group(3)]
                elif m:
                    callee = self.names[m.group(3)]
                elif re.match(r"\d+ \d+$", line):
                    if after_calls:
                        self.calls[function, callee] += int(line.split()[1])
                    else:
                        self.own[function] += int(line.split()[1])
                after_calls = line.startswith("calls=")


def run(program, folder, options=(), arguments=()):
    out = os.path.join(folder, "out")
    # the same copies of libc on each machine: those of AVX2, without rep movsb
    env = dict(os.environ, GLIBC_TUNABLES="glibc.cpu.x86_rep_movsb_threshold=100000000:"
               "glibc.cpu.x86_rep_stosb_threshold=100000000")
    text = subprocess.run(["valgrind", "--tool=callgrind", "--compress-pos=no", "--callgrind-out-file=" + out,
                           *options, program, *arguments],
                          env=env, capture_output=True, text=True)
    m = re.search(r"(\d+) operations", text.stdout)
    if text.returncode or not m:
        sys.exit(f"path_cost failed: {text.stdout}{text.stderr}")
    return Profile(out), int(m.group(1))


def print_functions(program, operation, end, level):
    transport = "iser" if operation.startswith("iser-") else "iscsi"
    many = ["20000", "0"] if operation.endswith("read") else ["0", "20000"]
    many += ["32", "16", level]
    with tempfile.TemporaryDirectory() as folder:
        profile, ops = run(program, folder, ["--toggle-collect=" + dict(ENDS)[end] + "*"], [transport, *many])
    for name, cost in profile.own.most_common():
        if cost >= ops / 2:
            print(f"{cost / ops:8.1f} {name}")


def measure(program):
    """Returns the cost of each operation at each end."""
    costs = {}
    for arguments, prefix in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            profile, ops = run(program, folder, arguments=arguments)
        for phase, caller in PHASES:
            for end, callee in ENDS:
                costs[prefix + phase, end] = round(profile.calls[caller, callee] / ops)
    return costs


def store(compiler, costs):
    with open(COSTS) as f:
        keep = [line for line in f if not line.startswith(compiler + " ")]
    with open(COSTS, "w") as f:
        f.writelines(keep)
        f.writelines(f"{compiler} {operation} {end} {cost}\n" for (operation, end), cost in costs.items())


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("program")
    p.add_argument("--compiler", default="", help="such as gcc-12-release")
    p.add_argument("--write", action="store_true")
    p.add_argument("--any", action="store_true", help="print the figures of any compiler")
    p.add_argument("--functions", nargs=2, metavar=("OPERATION", "END"))
    p.add_argument("--level", default="0", help="ErrorRecoveryLevel, with --functions")
    a = p.parse_args()
    if not shutil.which("valgrind"):
        print("skipped: valgrind is not installed")
        return SKIP
    if a.functions:
        print_functions(a.program, *a.functions, a.level)
        return 0
    with open(COSTS) as f:
        rows = [line.split() for line in f if line.strip() and not line.startswith("#")]
    expected = {(r[1], r[2]): int(r[3]) for r in rows if r[0] == a.compiler}
    if not expected and not a.write and not a.any:
        print(f"skipped: costs.txt has no figures of {a.compiler}")
        return SKIP
    costs = measure(a.program)
    failed = False
    for (operation, end), cost in costs.items():
        want = expected.get((operation, end), cost)
        ok = abs(cost - want) <= want * SLACK
        failed = failed or not ok
        print(f"{'ok' if ok else 'FAIL':4} {operation:12} {end:6} {cost:5} instructions, expected {want}")
    if a.write:
        store(a.compiler, costs)
        return 0
    if failed:
        print("a change of more than 5 %: find its cause; if it is meant, tests/cost/cost.py PROGRAM --write")
    return failed


sys.exit(main())
