# SPDX-License-Identifier: BSD-2-Clause
"""Which plots the report has for each group."""
import statistics

import svg

K, M = 1024, 1024 * 1024


def where(rows, **x):
    """Returns the rows whose x has these values."""
    return [r for r in rows if all(r["x"].get(k) == v for k, v in x.items())]


def values(row, metric=None, factor=1.0):
    """Returns (median, lowest, highest) of a row's figures or of a metric; None: none."""
    v = row["metrics"].get(metric, []) if metric else row["figures"]
    v = [a * factor for a in v if a is not None]
    return (statistics.median(v), min(v), max(v)) if v else None


def colours_of(rows):
    """Returns the number of the colour of each contestant: the same in all plots."""
    return {lane: i for i, lane in enumerate(dict.fromkeys(r["lane"] for r in rows))}


def series(rows, axis, metric=None, factor=lambda row: 1.0):
    """Returns [(lane, [(x, median, lowest, highest)])] for a plot of lines."""
    found = {}
    for r in rows:
        v = values(r, metric, factor(r))
        if v and r["x"].get(axis) is not None:
            found.setdefault(r["lane"], []).append((r["x"][axis],) + v)
    return [(lane, points) for lane, points in found.items()]


def line(title, rows, axis, label, y_label, text="", metric=None, factor=lambda row: 1.0,
         **more):
    """Returns (title, SVG, text) of a plot of lines, or None without two points."""
    found = series(rows, axis, metric, factor)
    if not any(len(points) > 1 for _, points in found):
        return None
    return title, svg.lines(found, label, y_label, title=title, colours=colours_of(rows),
                            **more), text


def bar(title, rows, label, colours, factor=1.0):
    items = [(r["lane"],) + values(r, factor=factor) for r in rows]
    return title, svg.bars(items, label, title=title, colours=colours), ""


def bars_of_cases(rows, unit=None):
    """Returns a plot of bars for each case."""
    found, colours = [], colours_of(rows)
    for case in dict.fromkeys(r["case"] for r in rows):
        some = [r for r in rows if r["case"] == case]
        bytes_each = some[0]["x"].get("size", 0)
        large = some[0]["unit"] == "iops" and bytes_each >= 64 * K
        label = unit or {"us": "us (less is better)", "bytes": "bytes per second",
                         "messages": "messages per second"}.get(
            some[0]["unit"], "bytes per second" if large else "operations per second")
        found.append(bar(case, some, label, colours, factor=bytes_each if large else 1.0))
    return found


def by_bytes(row):
    return row["x"]["size"]


def transport(rows):
    found = []
    for way, small, large in (("Reads", "randread", "read"), ("Writes", "randwrite", "write")):
        some = [r for r in rows if r["x"]["rw"] in (small, large)]
        eight = where(some, depth=8)
        found += [
            line("%s by size, depth 8" % way, eight, "size", "bytes of an operation",
                 "bytes per second", factor=by_bytes, x_format=svg.size),
            line("%s of 4K by depth" % way, where(some, size=4 * K), "depth",
                 "operations in progress", "operations per second"),
            line("%s: CPU time of the client by size" % way, eight, "size",
                 "bytes of an operation", "CPU, us per operation", metric="client_cpu_us",
                 x_format=svg.size),
            line("%s: CPU time of the target by size" % way, eight, "size",
                 "bytes of an operation", "CPU, us per operation", metric="target_cpu_us",
                 x_format=svg.size),
        ]
        found.append(relative(way, eight))
    return found


def relative(way, rows):
    """iSER and plain iSCSI relative to iSCSI with both digests, by size."""
    base = {r["x"]["size"]: r for r in rows if r["lane"] == "iSCSI, both digests"}
    found = {}
    for r in rows:
        other = base.get(r["x"]["size"])
        if not other or r["lane"] not in ("iSCSI", "iSER", "iSER, no CRC",
                                          "iSER, login on TCP"):
            continue
        ratios = [a / b for a, b in zip(r["figures"], other["figures"])]
        found.setdefault(r["lane"], []).append(
            (r["x"]["size"], statistics.median(ratios), min(ratios), max(ratios)))
    if not any(len(v) > 1 for v in found.values()):
        return None
    title = "%s relative to iSCSI with both digests, depth 8" % way
    return title, svg.lines(list(found.items()), "bytes of an operation", "ratio",
                            y_log=False, x_format=svg.size, title=title), \
        "iSER's CRC protects what both digests protect: this is the fair comparison."


def bursts(rows):
    data = where(rows, axis="data")
    found = [line("Writes by size, depth %d" % depth, where(data, depth=depth), "size",
                  "bytes of an operation", "operations per second", x_format=svg.size)
             for depth in (1, 8)]
    return found + bars_of_cases([r for r in rows if r["x"].get("axis") != "data"])


def connections(rows):
    return [line("4K %s at depth 128 in all" % rw, where(rows, rw=rw), "connections",
                 "connections", "operations per second", y_log=False)
            for rw in ("randread", "randwrite")]


def percentiles(rows, case):
    """Latency by percentile of one case; the axis shows how many operations are slower."""
    names = (("p50", 2), ("p90", 10), ("p99", 100), ("p99.9", 1000), ("p99.99", 10000))
    labels = {n: name for name, n in names}
    found = []
    for r in rows:
        if r["case"] == case:
            points = [(n,) + values(r, name + "_us") for name, n in names
                      if values(r, name + "_us")]
            if points:
                found.append((r["lane"], points))
    if not found:
        return None
    return case, svg.lines(found, "percentile", "latency, us", title=case,
                           x_format=lambda v: labels.get(v, "")), ""


def latency(rows):
    found = [percentiles(rows, case) for case in
             dict.fromkeys(r["case"] for r in where(rows, axis="tail"))]
    load = where(rows, axis="load")
    for rw in dict.fromkeys(r["x"]["rw"] for r in load):
        for name in ("p50", "p99"):
            found.append(line(
                "%s against offered load, 4K %s" % (name, rw), where(load, rw=rw), "rate",
                "offered operations per second", "latency, us", metric=name + "_us",
                text="Open loop with random arrivals; latency counts from the time when an "
                "operation was due."))
    return found


def distance(rows):
    found = []
    for depth in (1, 16):
        found.append(line("64K writes at depth %d over distance" % depth,
                          where(rows, axis="data", depth=depth), "rtt", "round trip, ms",
                          "operations per second"))
    for depth in (32,):
        found.append(line("4K reads at depth %d over distance" % depth,
                          where(rows, axis="read", depth=depth), "rtt", "round trip, ms",
                          "operations per second"))
    lossy = [dict(r, x=dict(r["x"], loss=max(r["x"]["loss"], 0.001)))
             for r in where(rows, axis="loss")]
    for rw in ("read", "write"):
        found.append(line("256K %ss at depth 8 over 10 ms with loss" % rw, where(lossy, rw=rw),
                          "loss", "lost segments, %", "bytes per second", factor=by_bytes,
                          text="0.001 stands for no loss.", x_format=lambda v: "%g" % v))
    found.append(line("256K reads at depth 16 over 10 ms by window", where(rows, axis="window"),
                      "window", "window of the path, bytes", "bytes per second",
                      factor=by_bytes, x_format=svg.size))
    found.append(line("2M writes at depth 1 over 10 ms by burst", where(rows, axis="burst"),
                      "burst", "MaxBurstLength", "bytes per second", factor=by_bytes,
                      x_format=svg.size))
    return found


GROUPS = {"transport": transport, "bursts": bursts, "connections": connections,
          "latency": latency, "distance": distance}


def of_group(name, rows):
    """Returns [(title, SVG, text)] of a group: for groups without plots of their own, bars
    of each case."""
    made = [p for p in GROUPS.get(name, bars_of_cases)(rows) if p]
    # a run of few cases may have no line with two points
    return made or bars_of_cases(rows)
