# SPDX-License-Identifier: BSD-2-Clause
"""Compares RDMA over TCP sockets (iser rbench) with plain sockets (raw_stream).

Part of run.py: the contestants of a case take turns, with one core per side; the
reported ratio is the median of the ratios of single rounds.
"""
import json
import statistics
import subprocess

from run import GATE, Gate, pinned


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


class Server:
    """iser rbench --server, which accepts all parameters of the client."""

    def __init__(self, args):
        self.process = subprocess.Popen(
            pinned(args.server_cpu, [args.iser, "rbench", "--server",
                                     "--no-crc", "127.0.0.1:0"]),
            stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            raise RuntimeError("iser rbench --server did not start")

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=10)
        self.process.stdout.close()


def raw(args, case, lane):
    command = [args.raw_stream, "--time", str(args.seconds)] + lane.words
    for word, cpu in (("--server-cpu", args.server_cpu),
                      ("--client-cpu", args.client_cpu)):
        if cpu is not None:
            command += [word, str(cpu)]
    out = subprocess.run(command, text=True, stdout=subprocess.PIPE,
                         check=True, timeout=args.seconds * 5 + 20).stdout
    row = json.loads(out)
    return {"bytes": row["bytes_per_second"],
            "messages": row["messages_per_second"],
            "us": row["us_per_message"]}[case.unit]


def rbench(args, case, lane, server):
    command = pinned(args.client_cpu, [
        args.iser, "rbench", "--json", "--time", str(args.seconds)] +
        lane.words + [server.address])
    out = subprocess.run(command, text=True, stdout=subprocess.PIPE,
                         check=True, timeout=args.seconds * 5 + 20).stdout
    row = json.loads(out)[0]
    if case.unit == "us":  # rbench reports one way, raw_stream the round trip
        return 2 * row["latency_us"]["mean"]
    return row[case.unit + "_per_second"]


def once(args, case, lane, server):
    for _ in range(3):
        gate = Gate([server.process.pid])
        figure = raw(args, case, lane) if lane.raw else \
            rbench(args, case, lane, server)
        if gate.others() <= GATE:
            break
    return figure


def shown(figure, unit):
    return {"bytes": "%8.2f GB/s" % (figure / 1e9),
            "messages": "%8.0f k/s " % (figure / 1e3),
            "us": "%8.2f us  " % figure}[unit]


def ratio_of(figures, case, lane):
    base = figures[case.lanes[0].name]
    return statistics.median(a / b for a, b in zip(figures[lane], base))


def measure_case(args, case, server):
    figures = {lane.name: [] for lane in case.lanes}
    for _ in range(args.rounds):
        for lane in case.lanes:
            figures[lane.name].append(once(args, case, lane, server))
    for lane in case.lanes:
        v = figures[lane.name]
        print("%-20s %-20s %s   %s .. %s   x %.2f" % (
            case.name, lane.name, shown(statistics.median(v), case.unit),
            shown(min(v), case.unit).strip(), shown(max(v), case.unit).strip(),
            ratio_of(figures, case, lane.name)), flush=True)
    return figures


def judge(case, figures):
    missed = 0
    for lane, goal, enough in case.goals:
        r = ratio_of(figures, case, lane)
        good = r <= goal if case.unit == "us" else r >= goal
        if enough and statistics.median(figures[lane]) >= enough:
            good = True
        missed += not good
        print("%-20s %-20s / %-20s = %5.2f  (goal %.2f)%s" % (
            case.name, lane, case.lanes[0].name, r, goal,
            "" if good else "  MISSED"))
    return missed


def choose(args):
    """Returns the requested cases, or all cases if none is requested."""
    if args.short and not args.case:
        return [c for c in RDMA_CASES if c.goals]
    return [c for c in RDMA_CASES
            if not args.case or any(w in c.name for w in args.case)]


def measure(args, cases):
    """Returns rows for the report file, and the number of missed goals."""
    server = Server(args)
    results = []
    try:
        for case in cases:
            results.append((case, measure_case(args, case, server)))
    finally:
        server.stop()
    print()
    missed = sum(judge(case, figures) for case, figures in results)
    rows = [{"case": case.name, "contestant": lane, "unit": case.unit,
             "figures": v}
            for case, figures in results for lane, v in figures.items()]
    return rows, missed
