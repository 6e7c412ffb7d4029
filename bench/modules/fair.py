# SPDX-License-Identifier: BSD-2-Clause
"""A client beside another one that makes the same worker work: what the client keeps of its
rate, and by how much its latencies grow."""
import contextlib
import json
import subprocess
import sys
import tempfile

import attackers
import common
import contestants
import writer

TITLE = "A client beside an attacker"
SECONDS = 80
NOTE = """One worker of iserd has a unit for a client and one for an attacker, which makes the worker
work as much as it can (bench/attackers.py). The client reads 4 KiB, 8 deep. Attacker and client
share a CPU, where the client goes first. The figures are those of the client, alone and beside
the attacker, in turns. A figure above 1 means that the attacker kept the worker awake.
Resets of the client's own unit end its commands; the client writes, and issues them again
(bench/writer.py)."""

LOAD = {"rw": "randread", "size": 4096, "depth": 8}
KEEPS, SLOWER = 0.6, 5.0  # what the client keeps of its rate; its p99 latency
LOWEST = ["nice", "-n", "19"]


@contextlib.contextmanager
def attacker(args, server, kind):
    """Runs an attacker meanwhile, with the lowest priority."""
    sockets = ["--metrics", server.numbers, "--control", server.control] if server.numbers else []
    command = LOWEST + common.pinned(args.client_cpu, [
        sys.executable, attackers.__file__, kind, server.urls[1], *sockets])
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as p:
        try:
            if p.stdout.readline() != "ready\n":
                raise RuntimeError("%s: %s" % (kind, p.stderr.read()[-300:]))
            yield
            if p.poll() is not None:
                raise RuntimeError("%s ended: %s" % (kind, p.stderr.read()[-300:]))
        finally:
            p.kill()


class Fair(contestants.Iserd):
    """One worker, and everything that an attacker can use."""

    def __init__(self, args):
        self.state = tempfile.TemporaryDirectory()
        self.control = self.state.name + "/control"
        super().__init__(args, ["ram:%d" % args.disk, "ram:%d" % args.disk], [
            "--workers", "1", "--error-recovery-level", "2", "--control", self.control,
            "--state", self.state.name])
        # the client does not read the numbers, which an attacker may keep busy
        self.numbers, self.metrics = self.metrics, None

    def stop(self):
        super().stop()
        self.state.cleanup()


class Gateways:
    """Two gateways in front of one unit, or one, which client and attacker use, too."""

    numbers = None  # no socket for an attacker

    def __init__(self, args, count):
        self.folder = tempfile.TemporaryDirectory()
        at = self.folder.name
        with open(at + "/disk", "wb") as f:
            f.truncate(args.disk)
        self.all = []
        for n in range(1, count + 1):
            self.all.append(contestants.Iserd(args, [at + "/disk"], [
                "--workers", "1", "--control", "%s/control%d" % (at, n), "--cluster",
                "--cluster-number", str(n), "--cluster-gateway", "gateway%d" % n,
                "--cluster-directory", at + "/record"], fill=False))
            if n == 1:  # which owns the unit
                attackers.Session(attackers.Peer(self.all[0].urls[0])).ready().close()
        self.urls = [self.all[0].urls[0], self.all[-1].urls[0]]
        self.pids = [p for g in self.all for p in g.pids]

    def stop(self):
        for g in reversed(self.all):
            g.stop()
        self.folder.cleanup()


def write(args, server):
    report = json.loads(common.run_client(args, [
        sys.executable, writer.__file__, server.urls[0], str(max(args.seconds, 1))]))
    return common.Sample(report["iops"], p99_us=report["p99_us"])


def measure(args, server, kind, client):
    with contextlib.ExitStack() as ends:
        if kind:
            ends.enter_context(attacker(args, server, kind))
        return client(args, server)


def read(args, server):
    return contestants.iser(args, server, LOAD, [], server.urls[0])


def rows_of(args, server, kind, client, load):
    """The rates, and the latencies of the same rounds, each with its goal."""
    results = common.take_turns(args, {
        "alone": (server.pids, lambda: measure(args, server, None, client)),
        "attacked": (server.pids, lambda: measure(args, server, kind, client)),
    }, SECONDS / (len(attackers.ATTACKS) + len(attackers.RESETS)))
    p99 = {lane: ([common.Sample(s.metrics["p99_us"]) for s in samples], bad)
           for lane, (samples, bad) in results.items()}
    rows = [*common.rows_of("fair", kind, "iops", results, **load),
            *common.rows_of("fair", kind + ", p99", "us", p99, **load)]
    for row in rows:
        if row["lane"] == "attacked":
            row["goals"] = [["attacked", "alone", KEEPS if row["unit"] == "iops" else SLOWER]]
    return rows


def run(build):
    args = common.settings(build)
    server = Fair(args)
    try:
        for kind in attackers.ATTACKS:
            yield from rows_of(args, server, kind, read, LOAD)
    finally:
        server.stop()
    for count, kind in enumerate(attackers.RESETS, 1):
        server = Gateways(args, count)
        try:
            yield from rows_of(args, server, kind, write, {**LOAD, "rw": "randwrite"})
        finally:
            server.stop()
