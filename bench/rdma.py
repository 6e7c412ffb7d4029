# SPDX-License-Identifier: BSD-2-Clause
"""Compares RDMA over TCP sockets (iser rbench) with plain sockets (raw_stream).

Part of run.py: the contestants of a case take turns, with one core per side; the
reported ratio is the median of the ratios of single rounds.
"""
import json
import statistics

import common
from common import print_goal, ratio_of, rows_of, run_client, run_sockets, take_turns


class Lane:
    """words: the arguments of raw_stream if raw, else of iser rbench."""

    def __init__(self, name, *words, raw=False):
        self.name, self.words, self.raw = name, list(words), raw


class RdmaCase:
    """The first lane is the reference. goals are (lane, goal, figure that also
    meets the goal). unit is "bytes", "messages" or "us"; of "us" less is better."""

    def __init__(self, name, unit, lanes, goals):
        self.name, self.unit, self.lanes, self.goals = name, unit, lanes, goals


RDMA_CASES = [
    RdmaCase("rdma write 1M", "bytes", [
        Lane("raw TCP stream", "--mode", "stream", "--size", "1048576",
             raw=True),
        # the limit of sockets for a program that reads a header every
        # 64 KiB, the longest possible FPDU
        Lane("raw TCP, 64K reads", "--mode", "stream", "--size", "262144",
             "--read", "61716", raw=True),
        Lane("RDMA Write, CRC", "--test", "write_bw", "--size", "1M",
             "--depth", "8"),
        Lane("RDMA Write, no CRC", "--test", "write_bw", "--size", "1M",
             "--depth", "8", "--no-crc"),
    ], [("RDMA Write, CRC", 0.75, None), ("RDMA Write, no CRC", 0.9, None)]),
    RdmaCase("rdma read 1M", "bytes", [
        Lane("raw TCP stream", "--mode", "stream", "--size", "1048576",
             raw=True),
        Lane("RDMA Read, CRC", "--test", "read_bw", "--size", "1M",
             "--depth", "8"),
        Lane("RDMA Read, no CRC", "--test", "read_bw", "--size", "1M",
             "--depth", "8", "--no-crc"),
    ], []),
    RdmaCase("rdma write 4K", "messages", [
        Lane("raw TCP, 64 a send", "--mode", "batch", "--size", "4096",
             "--depth", "64", raw=True),
        Lane("RDMA Write, CRC", "--test", "write_bw", "--size", "4k",
             "--depth", "64"),
        Lane("RDMA Write, no CRC", "--test", "write_bw", "--size", "4k",
             "--depth", "64", "--no-crc"),
    ], [("RDMA Write, CRC", 0.6, 800e3)]),
    RdmaCase("rdma send 64 pong", "us", [
        Lane("raw TCP", "--mode", "pong", "--size", "64", raw=True),
        Lane("RDMA Send, CRC", "--test", "send_lat", "--size", "64"),
    ], [("RDMA Send, CRC", 1.25, None)]),
]


def start_server(args):
    """Starts iser rbench --server, which accepts all parameters of the client."""
    return common.Server(args, [args.iser, "rbench", "--server", "--no-crc",
                                "127.0.0.1:0"])


def raw(args, case, lane):
    row = run_sockets(args, args.raw_stream, *lane.words)
    return {"bytes": row["bytes_per_second"],
            "messages": row["messages_per_second"],
            "us": row["us_per_message"]}[case.unit]


def rbench(args, case, lane, server):
    row = json.loads(run_client(args, [
        args.iser, "rbench", "--json", "--time", str(args.seconds)] +
        lane.words + [server.url]))[0]
    if case.unit == "us":  # rbench reports one way, raw_stream the round trip
        return 2 * row["latency_us"]["mean"]
    return row[case.unit + "_per_second"]


def measure_lane(args, case, lane, server):
    return raw(args, case, lane) if lane.raw else \
        rbench(args, case, lane, server)


def shown(figure, unit):
    return {"bytes": "%8.2f GB/s" % (figure / 1e9),
            "messages": "%8.0f k/s " % (figure / 1e3),
            "us": "%8.2f us  " % figure}[unit]


def measure_case(args, case, server):
    figures, _ = take_turns(args, {
        lane.name: (server, lambda lane=lane: measure_lane(args, case, lane, server))
        for lane in case.lanes})
    for lane in case.lanes:
        v = figures[lane.name]
        print("%-20s %-20s %s   %s .. %s   x %.2f" % (
            case.name, lane.name, shown(statistics.median(v), case.unit),
            shown(min(v), case.unit).strip(), shown(max(v), case.unit).strip(),
            ratio_of(figures, lane.name, case.lanes[0].name)), flush=True)
    return figures


def compare_with_goals(case, figures):
    missed = 0
    reference = case.lanes[0].name
    for lane, goal, enough in case.goals:
        ratio = ratio_of(figures, lane, reference)
        met = ratio <= goal if case.unit == "us" else ratio >= goal
        if enough and statistics.median(figures[lane]) >= enough:
            met = True
        missed += print_goal("%-20s %-20s / %-20s" % (case.name, lane, reference),
                             ratio, goal, met)
    return missed


def choose(args):
    """Returns the requested cases, or all cases if none is requested."""
    if args.short and not args.case:
        return [c for c in RDMA_CASES if c.goals]
    return common.choose(args, RDMA_CASES)


def measure(args, cases):
    """Returns rows for the report file, and the number of missed goals."""
    server = start_server(args)
    results = []
    try:
        for case in cases:
            results.append((case, measure_case(args, case, server)))
    finally:
        server.stop()
    print()
    missed = sum(compare_with_goals(case, figures) for case, figures in results)
    rows = [row for case, figures in results
            for row in rows_of(case, case.unit, figures)]
    return rows, missed
