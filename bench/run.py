#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares iserd with tgtd and with the floor of this machine, in one run.

Every figure is the median of several repetitions; the contestants take turns
within each repetition, so that other load affects all of them. A repetition
during which other processes used more than 12 % of the CPUs is repeated, at
most three times; if the load remains, the repetition counts as disturbed. As
root, the benchmark runs in its own network namespace, with the same congestion
control for all contestants.
"""
import argparse
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

GATE = 0.12
TICK = os.sysconf("SC_CLK_TCK")
IQN = "iqn.2026-01.org.openiser:bench"


class Case:
    """One kind of load."""

    def __init__(self, name, size, depth, rw="randread", spin=0):
        self.name, self.size, self.depth = name, size, depth
        self.rw, self.spin = rw, spin

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


# ---- processes ----

def pinned(cpu, command):
    if cpu is None or not shutil.which("taskset"):
        return command
    return ["taskset", "-c", str(cpu)] + command


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


class Iserd:
    def __init__(self, args, luns=None):
        luns = luns or ["ram:%d" % args.disk]
        self.process = subprocess.Popen(
            pinned(args.server_cpu,
                   [args.iserd, "serve", "--listen", "127.0.0.1:0", "--name",
                    IQN, "--log", "error", "--io", args.io, "--spin",
                    str(args.spin)] + luns),
            stdout=subprocess.PIPE, text=True)
        self.urls = [self.process.stdout.readline().strip() for _ in luns]
        self.url = self.urls[0]
        if not self.url:
            raise RuntimeError("iserd did not start")

    def fill(self, args):
        """Writes the whole unit: memory that was never written is faster to read."""
        subprocess.run([args.iser, "bench", "--rw", "write", "--bs", "1M",
                        "--depth", "8", "--amount", str(args.disk), "--ramp",
                        "0", "--yes-overwrite", self.url], check=True,
                       stdout=subprocess.DEVNULL, timeout=120)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=10)


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


# ---- the load of other processes ----

def machine_ticks():
    with open("/proc/stat") as f:
        v = [int(x) for x in f.readline().split()[1:]]
    return sum(v[:3]) + sum(v[5:8])  # all except idle and iowait


def process_ticks(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            v = f.read().rsplit(")", 1)[1].split()
        return int(v[11]) + int(v[12])
    except OSError:
        return 0


class Gate:
    def __init__(self, pids):
        self.pids = pids
        self.wall = time.monotonic()
        self.machine = machine_ticks()
        self.own = self.own_ticks()

    def own_ticks(self):
        t = os.times()
        own = t.user + t.system + t.children_user + t.children_system
        return own * TICK + sum(process_ticks(p) for p in self.pids)

    def others(self):
        wall = (time.monotonic() - self.wall) * TICK * os.cpu_count()
        used = machine_ticks() - self.machine - (self.own_ticks() - self.own)
        return max(0.0, used / wall)


# ---- clients ----

def run_client(args, command):
    r = subprocess.run(pinned(args.client_cpu, command), text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       timeout=args.seconds * 5 + 20)
    return r.returncode, r.stdout


def iscsi_perf(args, case, url):
    if case.write:
        return None  # iscsi-perf only reads
    command = ["iscsi-perf", "-t", str(max(1, round(args.seconds))), "-m",
               str(case.depth), "-b", str(case.size // 512)]
    if case.rw == "randread":
        command.append("-r")
    code, out = run_client(args, command + [url])
    found = re.findall(r"iops average (\d+)", out)
    if code or not found:
        raise RuntimeError("iscsi-perf: " + out[-300:])
    return float(found[-1])


def iser_bench(args, case, url):
    command = [args.iser, "bench", "--json", "--time", str(args.seconds),
               "--rw", case.rw, "--bs", str(case.size), "--depth",
               str(case.depth)]
    if case.write:
        command.append("--yes-overwrite")
    code, out = run_client(args, command + [url])
    if code:
        raise RuntimeError("iser bench: " + out[-300:])
    return json.loads(out)["write" if case.write else "read"]["iops"]


def floor(args, case, _url):
    command = [args.floor, "--size", str(case.size), "--depth",
               str(case.depth), "--time", str(args.seconds)]
    if case.write:
        command.append("--write")
    if args.spin:
        command.append("--spin")
    for word, cpu in (("--server-cpu", args.server_cpu),
                      ("--client-cpu", args.client_cpu)):
        if cpu is not None:
            command += [word, str(cpu)]
    r = subprocess.run(command, text=True, stdout=subprocess.PIPE, check=True,
                       timeout=args.seconds * 5 + 20)
    return json.loads(r.stdout)["iops"]


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
        self.figures = {}   # (case, lane) -> [iops]
        self.rejected = 0   # repetitions that remained disturbed

    def make_lanes(self):
        lanes = {"floor": (floor, None)}  # in the order of the report
        lanes["iserd + iser"] = (iser_bench, "iserd")
        if not shutil.which("iscsi-perf"):
            print("iscsi-perf (libiscsi-bin) is not installed: not measured")
        else:
            for name in self.servers:
                lanes[name + " + iscsi-perf"] = (iscsi_perf, name)
        return lanes

    def stop(self):
        for s in self.servers.values():
            s.stop()

    def once(self, lane, case):
        fn, server = self.lanes[lane]
        s = self.servers.get(server)
        for _ in range(3):
            gate = Gate([s.process.pid] if s else [])
            iops = fn(self.args, case, s.url if s else None)
            if gate.others() <= GATE:
                return iops
        self.rejected += 1
        return iops

    def measure(self, cases):
        for case in cases:
            for _ in range(self.args.rounds):
                for lane in self.lanes:
                    iops = self.once(lane, case)
                    if iops is not None:
                        self.figures.setdefault((case.name, lane),
                                                []).append(iops)
            self.show(case)

    def show(self, case):
        for lane in self.lanes:
            v = self.figures.get((case.name, lane))
            if v:
                print("%-20s %-20s %10.0f IOPS %8.2f GB/s   %.0f .. %.0f" %
                      (case.name, lane, statistics.median(v),
                       statistics.median(v) * case.size / 1e9, min(v), max(v)),
                      flush=True)

    def ratio(self, case, upper, lower):
        """Returns the median of the ratios of single repetitions."""
        a, b = (self.figures.get((case, x)) for x in (upper, lower))
        if not a or not b:
            return None
        return statistics.median(x / y for x, y in zip(a, b))


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
    missed = 0
    print()
    for case, upper, lower, goal in GOALS:
        r = contest.ratio(case, upper, lower)
        if r is None:
            continue
        missed += r < goal
        print("%-20s %-20s / %-20s = %5.2f  (goal %.2f)%s" %
              (case, upper, lower, r, goal, "" if r >= goal else "  MISSED"))
    rss = resident_mib(args)
    print("%-20s %-43s = %5.1f MiB (goal 20)%s" %
          ("idle", "resident memory of iserd", rss,
           "" if rss <= 20 else "  MISSED"))
    if contest.rejected:
        print("%d repetitions count although other processes used the CPUs" %
              contest.rejected)
    return missed + (rss > 20)


# ---- start ----

def own_namespace():
    """Executes this program again in a new network namespace, if that is permitted."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        print("not root: using the network of this machine", file=sys.stderr)
        return
    os.execvp("unshare", ["unshare", "-n", sys.executable,
                          os.path.abspath(__file__), "--inside"] + sys.argv[1:])


def set_up_namespace():
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    try:
        with open("/proc/sys/net/ipv4/tcp_congestion_control", "w") as f:
            f.write("reno")
    except OSError:
        pass


def parse():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("--build", default="build", help="the build folder of the programs")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=2.0)
    p.add_argument("--short", action="store_true",
                   help="one round of the cases with a goal, 1 s each")
    p.add_argument("--case", action="append", help="only cases with "
                   "this text in their name")
    p.add_argument("--io", default="auto", choices=["auto", "uring", "epoll"])
    p.add_argument("--spin", type=int, default=0, help="--spin of iserd, microseconds")
    p.add_argument("--disk", type=int, default=64 << 20,
                   help="bytes of the unit (64 MiB, which fit in the "
                   "caches, so that the memory is not the limit)")
    p.add_argument("--json", metavar="FILE")
    p.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.short:
        a.rounds, a.seconds = 1, 1.0
    cpus = sorted(os.sched_getaffinity(0))
    a.server_cpu, a.client_cpu = (cpus[0], cpus[1]) if len(cpus) > 1 else \
        (None, None)
    for name in ("iserd", "iser", "floor", "raw_stream"):
        setattr(a, name, find_program(a.build, name))
    return a


def find_program(build, name):
    places = {"iserd": "src/daemon", "iser": "src/tools"}
    for where in (places.get(name, "bench"), "."):
        path = os.path.join(build, where, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    sys.exit("%s: not in %s; build the program first" % (name, build))


def choose_cases(args):
    cases = CASES
    if args.short:
        cases = [c for c in CASES if c.name in {g[0] for g in GOALS}]
    if args.case:
        cases = [c for c in cases if any(w in c.name for w in args.case)]
    return cases


def save(rows, path):
    with open(path, "w") as f:
        json.dump(rows, f, indent=1)


def measure_iscsi(args, cases):
    contest = Contest(args)
    try:
        contest.measure(cases)
        missed = report(contest, args)
    finally:
        contest.stop()
    return [{"case": c, "contestant": lane, "iops": v}
            for (c, lane), v in contest.figures.items()], missed


def main():
    args = parse()
    if not args.inside:
        own_namespace()
    else:
        set_up_namespace()
    import encrypted  # these modules import this one
    import iser
    import rdma
    rows, missed = [], 0
    for measure, cases in ((measure_iscsi, choose_cases(args)),
                           (rdma.measure, rdma.choose(args)),
                           (iser.measure, iser.choose(args)),
                           (encrypted.measure, encrypted.choose(args))):
        if cases:
            more, failed = measure(args, cases)
            rows += more
            missed += failed
    if args.json:
        save(rows, args.json)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
