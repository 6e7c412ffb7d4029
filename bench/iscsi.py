# SPDX-License-Identifier: BSD-2-Clause
"""Compares iserd with tgtd and with the floor of this machine, over iSCSI.

Part of run.py: the contestants of a case take turns, with one core per side; the
reported ratio is the median of the ratios of single rounds.
"""
import os
import re
import shutil
import socket
import statistics
import subprocess
import tempfile
import time

import common
from common import IQN, Iserd, iser_bench, pinned, run_client, run_sockets


class Case:
    """One kind of load."""

    def __init__(self, name, size, depth, rw="randread"):
        self.name, self.size, self.depth, self.rw = name, size, depth, rw

    @property
    def write(self):
        return "write" in self.rw


CASES = [
    Case("4K randread qd1", 4096, 1),
    Case("4K randread qd32", 4096, 32),
    Case("4K randread qd128", 4096, 128),
    Case("4K randwrite qd32", 4096, 32, "randwrite"),
    Case("128K read qd8", 131072, 8, "read"),
    Case("1M read qd8", 1 << 20, 8, "read"),
    Case("1M write qd8", 1 << 20, 8, "write"),
]

# (case, numerator, denominator, goal): the ratios with a goal.
GOALS = [
    ("4K randread qd32", "iserd + iscsi-perf", "tgtd + iscsi-perf", 2.5),
    ("4K randread qd128", "iserd + iscsi-perf", "tgtd + iscsi-perf", 2.5),
    ("1M read qd8", "iserd + iscsi-perf", "tgtd + iscsi-perf", 3.0),
    ("4K randread qd32", "iserd + iser", "floor", 0.35),
    ("4K randread qd128", "iserd + iser", "floor", 0.35),
]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for_port(port, process, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError("server ended with %s" % process.returncode)
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError("no server on port %d" % port)


class Tgtd:
    """tgtd with a file in memory and the lengths that the documents of tgt
    recommend for speed, which iserd negotiates by default."""

    PARAMETERS = {
        "MaxRecvDataSegmentLength": 262144,
        "MaxXmitDataSegmentLength": 262144,
        "FirstBurstLength": 262144,
        "MaxBurstLength": 1048576,
        "InitialR2T": "No",
        "ImmediateData": "Yes",
    }

    def __init__(self, args):
        self.control = str(os.getpid() % 30000 + 1000)
        port = free_port()
        base = "/dev/shm" if os.path.isdir("/dev/shm") else None
        self.image = tempfile.NamedTemporaryFile(dir=base)
        with open(self.image.name, "r+b") as f:
            chunk = bytes(1 << 20)
            for _ in range(args.disk >> 20):
                f.write(chunk)
        os.makedirs("/var/run/tgtd", exist_ok=True)
        self.process = subprocess.Popen(
            pinned(args.server_cpu,
                   ["tgtd", "-f", "-C", self.control, "--iscsi",
                    "portal=127.0.0.1:%d" % port]),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for_port(port, self.process)
        self.admin("--lld", "iscsi", "--op", "new", "--mode", "target",
                   "--tid", "1", "-T", IQN)
        for name, value in self.PARAMETERS.items():
            self.admin("--lld", "iscsi", "--op", "update", "--mode", "target",
                       "--tid", "1", "--name", name, "--value", str(value))
        self.admin("--lld", "iscsi", "--op", "new", "--mode", "logicalunit",
                   "--tid", "1", "--lun", "1", "-b", self.image.name)
        self.admin("--lld", "iscsi", "--op", "bind", "--mode", "target",
                   "--tid", "1", "-I", "ALL")
        self.url = "iscsi://127.0.0.1:%d/%s/1" % (port, IQN)

    def admin(self, *words):
        subprocess.run(["tgtadm", "-C", self.control] + list(words), check=True,
                       stdout=subprocess.DEVNULL)

    def stop(self):
        self.process.kill()
        self.process.wait(timeout=10)
        self.image.close()


# ---- clients ----

def iscsi_perf(args, case, url):
    command = ["iscsi-perf", "-t", str(max(1, round(args.seconds))), "-m",
               str(case.depth), "-b", str(case.size // 512)]
    if case.rw == "randread":
        command.append("-r")
    out = run_client(args, command + [url])
    found = re.findall(r"iops average (\d+)", out)
    if not found:
        raise RuntimeError("iscsi-perf: " + out[-300:])
    return float(found[-1])


def iser(args, case, url):
    return iser_bench(args, url, case.rw, case.size, case.depth)


def floor(args, case, _url):
    words = ["--size", str(case.size), "--depth", str(case.depth)]
    words += ["--write"] if case.write else []
    words += ["--spin"] if args.spin else []
    return run_sockets(args, args.floor, *words)["iops"]


# ---- measuring ----

class Contest:
    def __init__(self, args):
        self.args = args
        self.servers = {"iserd": Iserd(args)}
        self.servers["iserd"].fill(args)
        if shutil.which("tgtd") and shutil.which("tgtadm") and \
                os.geteuid() == 0:
            self.servers["tgtd"] = Tgtd(args)
        else:
            print("tgtd is not compared: it is not installed, or this is not "
                  "root")
        self.lanes = self.make_lanes()
        self.figures = {}   # case: {lane: [iops]}
        self.disturbed = 0  # repetitions that remained disturbed

    def make_lanes(self):
        lanes = {"floor": (floor, None)}  # in the order of the report
        lanes["iserd + iser"] = (iser, "iserd")
        if not shutil.which("iscsi-perf"):
            print("iscsi-perf (libiscsi-bin) is not installed: not measured")
        else:
            for name in self.servers:
                lanes[name + " + iscsi-perf"] = (iscsi_perf, name)
        return lanes

    def lanes_of(self, case):
        """Returns the contestants of a case in the form for take_turns."""
        lanes = {}
        for name, (client, server) in self.lanes.items():
            if case.write and client is iscsi_perf:
                continue  # iscsi-perf only reads
            s = self.servers.get(server)
            lanes[name] = (s, lambda client=client, url=s and s.url:
                           client(self.args, case, url))
        return lanes

    def stop(self):
        for s in self.servers.values():
            s.stop()

    def measure(self, cases):
        for case in cases:
            self.figures[case.name], disturbed = common.take_turns(
                self.args, self.lanes_of(case))
            self.disturbed += disturbed
            self.show(case)

    def show(self, case):
        for lane, v in self.figures[case.name].items():
            print("%-20s %-20s %10.0f IOPS %8.2f GB/s   %.0f .. %.0f" %
                  (case.name, lane, statistics.median(v),
                   statistics.median(v) * case.size / 1e9, min(v), max(v)),
                  flush=True)


def resident_mib(args):
    """Returns the resident memory of a daemon that has had no connection."""
    d = Iserd(args)
    time.sleep(0.3)
    try:
        with open("/proc/%d/status" % d.process.pid) as f:
            kib = int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))
    finally:
        d.stop()
    return kib / 1024


def report(contest, args):
    """Prints the ratios that have a goal; returns the number of missed goals."""
    missed = 0
    print()
    for case, upper, lower, goal in GOALS:
        figures = contest.figures.get(case, {})
        if upper in figures and lower in figures:
            ratio = common.ratio_of(figures, upper, lower)
            missed += common.print_goal("%-20s %-20s / %-20s" % (
                case, upper, lower), ratio, goal, ratio >= goal)
    rss = resident_mib(args)
    print("%-20s %-43s = %5.1f MiB (goal 20)%s" %
          ("idle", "resident memory of iserd", rss,
           "" if rss <= 20 else "  MISSED"))
    if contest.disturbed:
        print("%d repetitions count although other processes used the CPUs" %
              contest.disturbed)
    return missed + (rss > 20)


def choose(args):
    """Returns the requested cases, or all cases if none is requested."""
    goals = {g[0] for g in GOALS}
    return common.choose(args, [c for c in CASES
                                if not args.short or c.name in goals])


def measure(args, cases):
    """Returns rows for the report file, and the number of missed goals."""
    contest = Contest(args)
    try:
        contest.measure(cases)
        missed = report(contest, args)
    finally:
        contest.stop()
    return [{"case": case, "contestant": lane, "iops": v}
            for case, figures in contest.figures.items()
            for lane, v in figures.items()], missed
