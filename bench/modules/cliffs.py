# SPDX-License-Identifier: BSD-2-Clause
"""Loads that once fell far below the ones next to them."""
import common
import contestants

TITLE = "Cliffs"
SECONDS = 60
NOTE = """Large writes once took the memory of all other sizes: writes of 128 KiB after them had a
third of their rate. Writes of 4 MiB and 8 MiB at depth 128 ended in TASK SET FULL, and those of
1 MiB lost a third of their rate from depth 64 on. A contestant that is not in the table has
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
        }, SECONDS / 2)
        rows = common.rows_of("cliffs", "128K writes QD8", "iops", results, rw="write",
                              size=128 * K, depth=8)
        results = common.take_turns(args, {
            name: (pids, lambda size=size, depth=depth: in_bytes(
                write(args, server, size, depth), size))
            for name, (size, depth) in loads.items()}, SECONDS / 2)
        rows += common.rows_of("cliffs", "large writes", "bytes", results, rw="write")
        for r in rows:
            reference = "no other load" if r["unit"] == "iops" else "1M QD8"
            r["goals"] = [[r["lane"], reference, GOAL]] if r["lane"] != reference else []
        yield from rows
    finally:
        server.stop()
        fresh.stop()
