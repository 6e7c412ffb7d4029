# SPDX-License-Identifier: BSD-2-Clause
"""Measures the groups of cases.py: the contestants of a case take turns, within the time of
their group."""
import statistics
import time

import cases
import common
import contestants


def lanes_of(args, servers, c):
    """Returns the contestants of a case in the form for take_turns. A contestant whose
    server cannot start is left out."""
    lanes = {}
    for entry in c["lanes"]:
        name, spec = entry if isinstance(entry, tuple) else (entry, cases.LANES[entry])
        server, url = None, None
        if spec["server"]:
            try:
                server = servers.get(spec["server"])
            except RuntimeError:
                continue
            url = server.urls[spec["lun"]] + ("?" + spec["keys"] if spec["keys"] else "")
        client = contestants.CLIENTS[spec["client"]]
        words = list(c["words"]) + spec["words"]
        lanes[name] = (server.pids if server else [],
                       lambda client=client, server=server, words=words, url=url:
                       client(args, server, dict(c["x"], unit=c["unit"]), words, url))
    return lanes


def chosen(args, name):
    """Returns whether --case selects a group or a case by this name."""
    return not args.case or any(w.lower() in name.lower() for w in args.case)


def cases_of(args, group):
    """Returns the cases of a group that --case selects: all, if it selects the group."""
    found = group["cases"](args.full)
    if not args.case or chosen(args, group["name"]):
        return found
    return [c for c in found if chosen(args, c["name"])]


def show(rows):
    """Prints the figures of a case."""
    for r in rows:
        v = r["figures"]
        first = common.paired_ratio(r, rows[0])
        p99 = [x for x in r["metrics"].get("p99_us", []) if x]
        print("%-34s %-28s %12.1f %-9s %12.1f .. %-12.1f x %.2f%s" % (
            r["case"][:34], r["lane"][:28], statistics.median(v), r["unit"], min(v), max(v),
            first or 0, "  p99 %.0f us" % statistics.median(p99) if p99 else ""), flush=True)


def run(args, group, seconds=None):
    """Measures a group; yields the rows of each case when it is done. seconds: the time for
    all cases."""
    servers = contestants.Servers(args)
    todo = cases_of(args, group)
    end = time.monotonic() + seconds if seconds else None
    try:
        for i, c in enumerate(todo):
            lanes = lanes_of(args, servers, c)
            left = (end - time.monotonic()) / (len(todo) - i) if end else None
            results = common.take_turns(args, lanes, left)
            rows = common.rows_of(group["name"], c["name"], c["unit"], results, **c["x"])
            for r in rows:
                r["goals"] = [g for g in c["goals"] if g[0] == r["lane"]]
            show(rows)
            yield from rows
    finally:
        servers.stop()
