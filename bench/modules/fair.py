# SPDX-License-Identifier: BSD-2-Clause
"""A client beside another one that makes the same worker work: what the client keeps of its
rate, and by how much its latencies grow."""
import contextlib
import subprocess
import sys
import tempfile

import attackers
import common
import contestants

TITLE = "A client beside an attacker"
SECONDS = 80
NOTE = """One worker of iserd has a unit for a client and one for an attacker, which makes the worker
work as much as it can (bench/attackers.py). The client reads 4 KiB, 8 deep. Attacker and client
share a CPU, where the client goes first. The figures are those of the client, alone and beside
the attacker, in turns. A figure above 1 means that the attacker kept the worker awake."""

LOAD = {"rw": "randread", "size": 4096, "depth": 8}
KEEPS, SLOWER = 0.6, 5.0  # what the client keeps of its rate; its p99 latency
LOWEST = ["nice", "-n", "19"]


@contextlib.contextmanager
def attacker(args, server, kind):
    """Runs an attacker meanwhile, with the lowest priority."""
    command = LOWEST + common.pinned(args.client_cpu, [
        sys.executable, attackers.__file__, kind, server.urls[1], "--metrics", server.numbers,
        "--control", server.control])
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


def measure(args, server, kind):
    with contextlib.ExitStack() as ends:
        if kind:
            ends.enter_context(attacker(args, server, kind))
        return contestants.iser(args, server, LOAD, [], server.urls[0])


def rows_of(kind, results):
    """The rates, and the latencies of the same rounds."""
    yield from common.rows_of("fair", kind, "iops", results, **LOAD)
    p99 = {lane: ([common.Sample(s.metrics["p99_us"]) for s in samples], bad)
           for lane, (samples, bad) in results.items()}
    yield from common.rows_of("fair", kind + ", p99", "us", p99, **LOAD)


def run(build):
    args = common.settings(build)
    server = Fair(args)
    try:
        for kind in attackers.ATTACKS:
            results = common.take_turns(args, {
                "alone": (server.pids, lambda: measure(args, server, None)),
                "attacked": (server.pids, lambda k=kind: measure(args, server, k)),
            }, SECONDS / len(attackers.ATTACKS))
            for row in rows_of(kind, results):
                if row["lane"] == "attacked":
                    row["goals"] = [["attacked", "alone",
                                     KEEPS if row["unit"] == "iops" else SLOWER]]
                yield row
    finally:
        server.stop()
