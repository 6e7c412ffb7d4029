# SPDX-License-Identifier: BSD-2-Clause
"""Loads that once fell far below the ones next to them."""
import contextlib
import copy
import os
import tempfile

import common
import contestants

TITLE = "Cliffs"
SECONDS = 75
NOTE = """Large writes once took the memory of all other sizes: writes of 128 KiB after them had a
third of their rate. Writes of 4 MiB and 8 MiB at depth 128 ended in TASK SET FULL, and those of
1 MiB lost a third of their rate from depth 64 on. A worker that polled (--spin) took the CPU from the
thread that wrote to its buffered file, with --pin always: 12 k in place of 36 k. A contestant that is not in the table has
failed."""

K, M = 1024, 1 << 20
GOAL = 0.8


def write(args, server, size, depth):
    return contestants.iser(args, server, {"rw": "write", "size": size, "depth": depth}, [],
                            server.urls[0])


def after(args, server, before):
    """Writes of 128 KiB, after large ones by another session or at once."""
    if before:
        write(args, server, M, 64)
    return write(args, server, 128 * K, 8)


def in_bytes(sample, size):
    return common.Sample(sample.figure * size, **sample.metrics)


SPINNING = {"sleeping": (0, []), "spinning": (1000, []), "spinning, pinned": (1000, ["--pin"])}


def buffered_writes(args):
    """Writes to buffered files, by workers that poll and by one that does not. They may use all CPUs,
    as the threads that write may."""
    with contextlib.ExitStack() as ends:
        lanes = {}
        for name, (spin, options) in SPINNING.items():
            free = copy.copy(args)
            free.server_cpu, free.spin = None, spin
            file = ends.enter_context(tempfile.NamedTemporaryFile(dir="."))
            os.truncate(file.name, args.disk)
            server = contestants.Iserd(free, [os.path.abspath(file.name)],
                                       ["--buffered", "--workers", "1", *options])
            ends.callback(server.stop)
            lanes[name] = (server.pids, lambda s=server: contestants.iser(
                args, s, {"rw": "randwrite", "size": 4096, "depth": 32}, [], s.urls[0]))
        results = common.take_turns(args, lanes, SECONDS / 5)
    for r in common.rows_of("cliffs", "4K writes QD32, buffered file", "iops", results,
                            rw="randwrite", size=4096, depth=32):
        r["goals"] = [[r["lane"], "sleeping", GOAL]] if r["lane"] != "sleeping" else []
        yield r


def run(build):
    args = common.settings(build)
    server, fresh = contestants.Iserd(args), contestants.Iserd(args)
    pids = server.pids + fresh.pids
    loads = {"1M QD8": (M, 8), "1M QD64": (M, 64), "4M QD128": (4 * M, 128),
             "8M QD128": (8 * M, 128)}
    try:
        results = common.take_turns(args, {
            "no other load": (pids, lambda: after(args, fresh, False)),
            "after 1M writes QD64": (pids, lambda: after(args, server, True)),
        }, SECONDS / 5 * 2)
        rows = common.rows_of("cliffs", "128K writes QD8", "iops", results, rw="write",
                              size=128 * K, depth=8)
        results = common.take_turns(args, {
            name: (pids, lambda size=size, depth=depth: in_bytes(
                write(args, server, size, depth), size))
            for name, (size, depth) in loads.items()}, SECONDS / 5 * 2)
        rows += common.rows_of("cliffs", "large writes", "bytes", results, rw="write")
        for r in rows:
            reference = "no other load" if r["unit"] == "iops" else "1M QD8"
            r["goals"] = [[r["lane"], reference, GOAL]] if r["lane"] != reference else []
        yield from rows
    finally:
        server.stop()
        fresh.stop()
    yield from buffered_writes(args)
