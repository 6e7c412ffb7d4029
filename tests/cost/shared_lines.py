#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Counts the accesses to cache lines that two workers of the target share, in 4 KiB reads and writes.

shared_lines.py PROGRAM runs path_cost with two workers, each with a client of its own
on the same unit, and takes each access of the workers to memory from valgrind's tool
lackey. A line that one worker stores to and the other one uses moves between their
CPUs; such lines, not instructions, limit many workers. The test compares the accesses
to such lines, for one read and one write by iSCSI, with LIMIT. --functions OPERATION
(read, write, iser-read or iser-write) prints the functions that make such accesses.
Not counted: memory of the kernel and of the clients.
"""
import argparse
import collections
import re
import shutil
import subprocess
import sys

LINE = 64
OPERATIONS = 64  # of each worker
STACK = 1 << 20  # bytes, at most
THREAD = 4096  # the thread's own memory of libc, at most
SKIP = 77
LIMIT = 0.9  # a write of a ram unit counts its begin and its end, see ram.c
MARKER = re.compile(rb"executing 0x([0-9a-f]+) turns 0x([0-9a-f]+) stack 0x([0-9a-f]+) thread 0x([0-9a-f]+)")
TURNS = "take_turns_of_workers"  # the function whose address path_cost prints


class Trace:
    """The accesses of the two workers after the clients have warmed up."""

    def __init__(self, program, operation):
        transport = "iser" if operation.startswith("iser-") else "iscsi"
        counts = [OPERATIONS if word in operation else 0 for word in ("read", "write")]
        self.program = program
        self.users = collections.defaultdict(set)  # of a line
        self.stored = set()  # lines
        self.accesses = collections.Counter()  # (line, instruction)
        self.instruction = 0
        child = subprocess.Popen(["valgrind", "--tool=lackey", "--trace-mem=yes", "--basic-counts=no", "--log-fd=1",
                                  program, transport, *map(str, counts), "32", "4", "0", "2"], stdout=subprocess.PIPE)
        self._read(child.stdout)
        if child.wait() or not self.accesses:
            sys.exit("path_cost failed")
        self.shared = {line for line in self.stored if len(self.users[line]) > 1}

    def _read(self, lines):
        found = None
        for line in lines:
            found = MARKER.search(line)
            if found:
                break
        if not found:
            return
        marker, self.turns, self.stack, self.thread = (int(x, 16) for x in found.groups())
        # path_cost stores to the byte of a worker before and after its turn
        stores = {b" S %08x,1\n" % (marker + i): i for i in range(2)}
        worker = None
        for line in lines:
            if line in stores:
                worker = stores[line] if worker is None else None
            elif worker is not None:
                self._access(worker, line)

    def _access(self, worker, text):
        kind = text[:2]
        if kind == b"I ":
            self.instruction = int(text[3:text.index(b",")], 16)
            return
        if kind not in (b" L", b" S", b" M"):
            return
        address, size = text[3:].split(b",")
        address = int(address, 16)
        if abs(address - self.stack) < STACK or abs(address - self.thread) < THREAD:
            return  # in iserd each worker is a thread
        for line in range(address // LINE, (address + int(size) - 1) // LINE + 1):
            self.users[line].add(worker)
            self.accesses[line, self.instruction] += 1
            if kind != b" L":
                self.stored.add(line)

    def of_operation(self):
        """Returns the accesses to shared lines for each operation."""
        return sum(n for (line, _), n in self.accesses.items() if line in self.shared) / (2 * OPERATIONS)

    def functions(self):
        """Returns (accesses of an operation, lines, function) in descending order."""
        base = self.turns - self._offset()
        sums, lines = collections.Counter(), collections.defaultdict(set)
        for (line, instruction), n in self.accesses.items():
            if line in self.shared:
                name = self._name(instruction - base)
                sums[name] += n
                lines[name].add(line)
        return [(n / (2 * OPERATIONS), len(lines[name]), name) for name, n in sums.most_common()]

    def _offset(self):
        for row in subprocess.run(["nm", self.program], text=True, capture_output=True).stdout.splitlines():
            words = row.split()
            if words[-1].split(".")[0] == TURNS:
                return int(words[0], 16)
        sys.exit(f"{self.program}: no symbol {TURNS}")

    def _name(self, offset):
        done = subprocess.run(["addr2line", "-f", "-s", "-e", self.program, hex(offset)], text=True, capture_output=True)
        name, place = done.stdout.split("\n")[:2]
        return f"{name} {place.split(' ')[0]}" if name != "??" else "a library"


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("program")
    p.add_argument("--functions", metavar="OPERATION")
    a = p.parse_args()
    if not shutil.which("valgrind"):
        print("skipped: valgrind is not installed")
        return SKIP
    if a.functions:
        for accesses, lines, name in Trace(a.program, a.functions).functions():
            print(f"{accesses:8.3f} accesses of an operation, {lines:4} lines: {name}")
        return 0
    accesses = Trace(a.program, "read and write").of_operation()
    print(f"{accesses:.3f} accesses to shared lines in a read and a write, at most {LIMIT}")
    if accesses > LIMIT:
        print("see --functions: a line that workers share limits many workers; give each worker its own")
    return accesses > LIMIT


if __name__ == "__main__":
    sys.exit(main())
