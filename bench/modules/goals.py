# SPDX-License-Identifier: BSD-2-Clause
"""The goals of speed: ratios to plain sockets, to iperf3 and to iSCSI with digests."""
import copy
import json
import subprocess

import cases
import common
import contestants

TITLE = "Goals"
SECONDS = 240
NOTE = """Both ends spin where nothing else is said. The unit has 256 MiB. "plain sockets" use a few pages of memory again and again; "plain
sockets, equal memory" read from, or write to, random places of 256 MiB, as the target does, and
use as many buffers as the initiator."""

K, M = 1024, 1 << 20
UNIT = 256 * M
SPIN = 100  # microseconds, at both ends
ROUNDS = 5  # at least
DIGESTS = "transport=tcp&" + cases.DIGESTS

# (rw, size, depth): the goals of iSCSI relative to another contestant, and that of iSER
# relative to iSCSI with both digests
LOADS = {
    ("randread", 4 * K, 32): ({"plain sockets": 0.70}, 0.95),
    ("randread", 4 * K, 128): ({"plain sockets": 0.75}, 0.95),
    ("randwrite", 4 * K, 32): ({"plain sockets": 0.68}, 0.95),
    ("randwrite", 4 * K, 128): ({"plain sockets": 0.65}, 0.95),
    ("read", 128 * K, 8): ({}, 1.0),
    ("write", 128 * K, 8): ({}, 1.0),
    ("read", M, 8): ({"iperf3": 1.0, "plain sockets, equal memory": 0.95}, 1.0),
    ("write", M, 8): ({"iperf3": 0.85, "plain sockets, equal memory": 0.85}, 1.0),
}
LATENCIES = {"spin": (SPIN, 1.15), "sleep": (0, 1.08)}


def plain_with_memory(args, x):
    """Plain sockets that use as much memory as the target and the initiator."""
    return contestants.floor(args, None, x, ["--unit", str(UNIT), "--buffers",
                                             str(x["size"] * x["depth"])], None)


def ours(args, server, x, keys):
    return contestants.iser(args, server, x, ["--spin", str(args.spin)],
                            server.urls[0] + "?" + keys)


def lanes_of(args, server, x):
    """Returns the contestants of each load: functions that return a Sample."""
    return {
        "plain sockets": lambda: contestants.floor(args, None, x, [], None),
        "iSCSI": lambda: ours(args, server, x, "transport=tcp"),
        "iSCSI, both digests": lambda: ours(args, server, x, DIGESTS),
        "iSER": lambda: ours(args, server, x, "transport=iser"),
    }


def throughput(args, server, iperf, seconds):
    for (rw, size, depth), (goals, of_digests) in LOADS.items():
        x = {"rw": rw, "size": size, "depth": depth}
        lanes = lanes_of(args, server, x)
        lanes["plain sockets, equal memory"] = lambda x=x: plain_with_memory(args, x)
        if size == M:
            lanes["iperf3"] = lambda x=x: contestants.iperf3(args, iperf, x, [], iperf.urls[0])
        pids = server.pids + iperf.pids
        results = common.take_turns(args, {n: (pids, f) for n, f in lanes.items()}, seconds)
        rows = common.rows_of("goals", "%s %s QD%d" % (cases.name_of_size(size), rw, depth),
                              "iops", results, **x)
        for r in rows:
            if r["lane"] == "iSCSI":
                r["goals"] = [["iSCSI", other, goal] for other, goal in goals.items()]
            if r["lane"] == "iSER":
                r["goals"] = [["iSER", "iSCSI, both digests", of_digests]]
        yield from rows


def median_latency(sample):
    return common.Sample(sample.metrics["p50_us"], iops=sample.figure)


def latencies(args, server, how, seconds):
    """Depth 1, the median latency. Both ends spin, or both sleep; so server differs."""
    _, goal = LATENCIES[how]
    for rw in ("randread", "randwrite"):
        x = {"rw": rw, "size": 4 * K, "depth": 1}
        results = common.take_turns(args, {
            name: (server.pids, lambda f=f: median_latency(f()))
            for name, f in lanes_of(args, server, x).items()}, seconds)
        rows = common.rows_of("goals", "4K %s QD1, both ends %s" % (rw, how), "us", results, **x)
        for r in rows:
            r["goals"] = [["iSCSI", "plain sockets", goal]] if r["lane"] == "iSCSI" else []
        yield from rows


def two_clients(args, server, rw, cpus):
    """Two initiators at once; returns the sum of their operations per second."""
    command = contestants.bench_command(args, {"rw": rw, "size": 4 * K, "depth": 32}, [],
                                        server.urls[0])
    both = [subprocess.Popen(common.pinned(cpu, command), text=True, stdout=subprocess.PIPE)
            for cpu in cpus]
    outs = [p.communicate(timeout=args.seconds * 10 + 60)[0] for p in both]
    return sum(contestants.iser_metrics(json.loads(out))[1] for out in outs)


def two_workers(args, seconds):
    """What a second CPU adds, if each CPU has a worker and a client."""
    first, second = args.server_cpu, args.client_cpu
    unbound = copy.copy(args)
    unbound.server_cpu = None  # the workers bind themselves: --pin
    ways = {"one CPU, one worker": (args, ["--workers", "1"], (first, first)),
            "two CPUs, two workers": (unbound, ["--workers", "2", "--pin"], (first, second))}
    servers = {}
    try:
        for name, (how, options, _) in ways.items():
            servers[name] = contestants.Iserd(how, ["ram:%d" % UNIT], options)
        pids = [p for s in servers.values() for p in s.pids]
        for rw in ("randread", "randwrite"):
            results = common.take_turns(args, {
                name: (pids, lambda s=s, rw=rw, cpus=ways[name][2]: two_clients(args, s, rw, cpus))
                for name, s in servers.items()}, seconds)
            rows = common.rows_of("goals", "4K %s QD32, two clients" % rw, "iops", results,
                                  rw=rw, size=4 * K, depth=32, connections=2)
            for r in rows:
                r["goals"] = [["two CPUs, two workers", "one CPU, one worker", 1.9]] \
                    if r["lane"].startswith("two") else []
            yield from rows
    finally:
        for s in servers.values():
            s.stop()


def run(build):
    args = copy.copy(common.settings(build))
    args.rounds_most = max(args.rounds_most, ROUNDS)
    args.rounds_least = max(args.rounds_least, ROUNDS)
    share = SECONDS / (len(LOADS) + 6)
    for how, (spin, _) in LATENCIES.items():
        args.spin = spin
        server = contestants.Iserd(args, ["ram:%d" % UNIT])
        iperf = None
        try:
            yield from latencies(args, server, how, share)
            if spin:
                iperf = contestants.iperf3_server(args)
                yield from throughput(args, server, iperf, share)
        finally:
            server.stop()
            if iperf:
                iperf.stop()
    args.spin = 0
    yield from two_workers(args, share)
