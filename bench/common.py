# SPDX-License-Identifier: BSD-2-Clause
"""Functions for all benchmarks of this folder: settings of the run, processes on their
CPUs, the gate on the CPU use of other processes, samples, rounds and rows."""
import argparse
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import time

GATE = 0.12  # the share of the CPUs that other processes may use during a repetition
TICK = os.sysconf("SC_CLK_TCK")
IQN = "iqn.2026-01.org.openiser:bench"
PROGRAMS = {"iserd": "src/daemon", "iser": "src/tools", "floor": "bench", "floor_many": "bench",
            "floor_rbd": "bench", "raw_stream": "bench", "relay": "bench"}


# ---- the settings of a run ----

def parser(text):
    """Returns the parser of the command line, whose defaults a module can rely on."""
    p = argparse.ArgumentParser(description=text)
    p.add_argument("--build", default="build", help="the build folder of the programs")
    p.add_argument("--case", action="append", metavar="TEXT",
                   help="only the groups and cases with this text in their name, for "
                   "example 'peers' or '4K randread'; may be repeated")
    p.add_argument("--full", action="store_true", default=os.environ.get("BENCH") == "full",
                   help="the whole matrix, for hours; also the environment BENCH=full")
    p.add_argument("--minutes", type=float, help="time for all groups; each group has a "
                   "share (default: 16; no limit with --full)")
    p.add_argument("--rounds", type=int, help="rounds of each case (default: as many as "
                   "its time permits, 2 to 5; with --full 5)")
    p.add_argument("--seconds", type=float, help="seconds of a repetition (default: 0.3, "
                   "with --full 1)")
    p.add_argument("--io", default="auto", choices=["auto", "uring", "epoll"])
    p.add_argument("--spin", type=int, default=0, help="--spin of iserd, microseconds")
    p.add_argument("--let-sleep", action="store_true",
                   help="let the CPUs halt; without this option, two programs of the lowest "
                   "class keep them awake")
    p.add_argument("--disk", type=int, default=64 << 20,
                   help="bytes of a unit (64 MiB)")
    p.add_argument("--out", metavar="FOLDER", default="bench-results",
                   help="where results.json, report.html and tables.md go")
    p.add_argument("--list", action="store_true", help="print groups and cases")
    p.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    return p


def complete(args):
    """Fills in the values that follow from others; returns args."""
    args.rounds_most = args.rounds or 5
    args.rounds_least = args.rounds or (5 if args.full else 2)
    args.seconds = args.seconds or (1.0 if args.full else 0.3)
    args.minutes = args.minutes or (None if args.full else 16)
    args.ramp = min(0.1, args.seconds / 2)
    cpus = sorted(os.sched_getaffinity(0))
    args.server_cpu, args.client_cpu = (cpus[0], cpus[1]) if len(cpus) > 1 else \
        (None, None)
    for name in PROGRAMS:
        setattr(args, name, find_program(args.build, name, name in ("iserd", "iser")))
    return args


_settings = []


def use(args):
    """Makes args the settings of this run."""
    _settings[:] = [args]


def settings(build):
    """Returns the settings of this run, or the default settings for the programs in the
    folder build. A module calls this first: rounds, seconds, CPUs and the paths of the
    programs are the same for all groups."""
    if not _settings:
        use(complete(parser("").parse_args(["--build", build])))
    return _settings[0]


def find_program(build, name, must=True):
    """Returns the path of a program of the build; None, if it is missing and need not be
    there: contestants that need it fail."""
    for where in (PROGRAMS[name], "."):
        path = os.path.join(build, where, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return os.path.abspath(path)
    if must:
        sys.exit("%s: not in %s; build the program first" % (name, build))
    return None


# ---- processes ----

def pinned(cpu, command):
    """Returns the command line that runs command on one CPU; None is any CPU."""
    if cpu is None or not shutil.which("taskset"):
        return command
    return ["taskset", "-c", str(cpu)] + command


def run_client(args, command, stdin=None):
    """Runs a client on its CPU; returns the output of the client."""
    done = subprocess.run(pinned(args.client_cpu, command), text=True, stdin=stdin,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=args.seconds * 10 + 120)
    if done.returncode:
        raise RuntimeError("%s ended with %d: %s" % (
            " ".join(command), done.returncode, done.stdout[-300:]))
    return done.stdout


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
        time.sleep(0.02)
    raise RuntimeError("no server on port %d" % port)


# ---- the CPU time of processes ----

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


def cpu_seconds(pid):
    """Returns the CPU time of all threads of a process, to the nanosecond."""
    total = 0
    try:
        for thread in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/schedstat" % (pid, thread)) as f:
                total += int(f.read().split()[0])
    except OSError:
        pass
    return total / 1e9


def resident_mib(pid):
    with open("/proc/%d/status" % pid) as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1)) / 1024


class Awake:
    """Programs that use what the CPUs have left, so that no CPU halts: a virtual CPU needs long
    to wake, which would be measured in place of the contestants. The scheduler stops these
    programs at once when another one can run (SCHED_IDLE)."""

    pids: list = []  # of the running programs; they do not count as other load

    def __init__(self, args):
        self.all = []
        if args.let_sleep or not shutil.which("chrt") or args.server_cpu is None:
            return
        self.all = [subprocess.Popen(pinned(cpu, [
            "chrt", "--idle", "0", "sh", "-c", "while :; do :; done"]))
            for cpu in (args.server_cpu, args.client_cpu)]
        Awake.pids = [p.pid for p in self.all]

    def stop(self):
        for p in self.all:
            p.kill()
            p.wait()
        Awake.pids = []


class Gate:
    """Measures the CPU time of all processes except this one, its children and servers."""

    def __init__(self, pids):
        self.pids = list(pids) + Awake.pids
        self.wall = time.monotonic()
        self.machine = machine_ticks()
        self.own = self.own_ticks()

    def own_ticks(self):
        t = os.times()
        own = t.user + t.system + t.children_user + t.children_system
        return own * TICK + sum(process_ticks(p) for p in self.pids)

    def others(self):
        """Returns the share of the CPUs that other processes used since the start."""
        wall = (time.monotonic() - self.wall) * TICK * os.cpu_count()
        used = machine_ticks() - self.machine - (self.own_ticks() - self.own)
        # a tick of each CPU is the error of these counters
        return max(0.0, (used - os.cpu_count()) / wall)


# ---- samples, rounds, rows ----

class Sample:
    """The result of one repetition: the figure in the unit of the case, and metrics by
    name ("p50_us", "client_cpu_us", ...)."""

    def __init__(self, figure, **metrics):
        self.figure, self.metrics = figure, metrics


def measure_once(pids, measure, until=None):
    """Returns (sample of measure(), whether other processes disturbed the repetition).
    measure may return a number in place of a Sample. A disturbed repetition is repeated,
    at most twice, and not after the time until."""
    for n in range(3):
        if n and until and time.monotonic() > until:
            break
        gate = Gate(pids)
        sample = measure()
        if gate.others() <= GATE:
            return sample, False
    return sample, True


def take_turns(args, lanes, seconds=None):
    """Measures each contestant once in each round. lanes is {name: (list of the process
    IDs of its servers, function that returns a Sample or a number)}. seconds: the time for
    all rounds; a round begins only if it will probably end within it, the first few
    (args.rounds_least) also within twice that time. Returns
    {name: (samples, number of disturbed repetitions)}. A contestant that fails is left out
    of further rounds, and its reason is printed."""
    results = {name: ([], [0]) for name in lanes}
    began = time.monotonic()
    for n in range(args.rounds_most):
        took = time.monotonic() - began
        limit = seconds and seconds * (1 if n >= args.rounds_least else 2)
        if limit and n and took * (n + 1) / n > limit:
            break
        for name, (pids, measure) in list(lanes.items()):
            try:
                sample, bad = measure_once(pids, measure, seconds and began + seconds)
            except (RuntimeError, OSError, ValueError, KeyError,
                    subprocess.SubprocessError) as e:
                print("  %s: %s" % (name, str(e).strip()[-300:]), flush=True)
                lanes = {k: v for k, v in lanes.items() if k != name}
                del results[name]
                continue
            if not isinstance(sample, Sample):
                sample = Sample(sample)
            results[name][0].append(sample)
            results[name][1][0] += bad
    return {name: (samples, bad[0]) for name, (samples, bad) in results.items()}


def row(group, case, lane, unit, samples, disturbed=0, **x):
    """Returns a row of results.json. unit is iops, bytes (per second), messages (per
    second), us, seconds, ms, mib or ratio. x: what the case varies, for plots and tables,
    for example size=4096, depth=32, rw="randread"."""
    samples = [s if isinstance(s, Sample) else Sample(s) for s in samples]
    names = dict.fromkeys(k for s in samples for k in s.metrics)
    return {"group": group, "case": case, "lane": lane, "unit": unit, "x": x,
            "figures": [s.figure for s in samples],
            "metrics": {k: [s.metrics.get(k) for s in samples] for k in names},
            "disturbed": disturbed}


def rows_of(group, case, unit, results, **x):
    """Returns the rows of one case from what take_turns returned."""
    return [row(group, case, lane, unit, samples, bad, **x)
            for lane, (samples, bad) in results.items() if samples]


def paired_ratio(upper, lower):
    """Returns the median of the ratios of single rounds of two rows; None: no figures."""
    ratios = [a / b for a, b in zip(upper["figures"], lower["figures"]) if b]
    return statistics.median(ratios) if ratios else None


def goals_of(rows):
    """Yields (row, reference, ratio, goal, whether it is met) of each goal of the rows."""
    found = {(r["group"], r["case"], r["lane"]): r for r in rows}
    for r in rows:
        for _, reference, goal in r.get("goals", []):
            other = found.get((r["group"], r["case"], reference))
            ratio = paired_ratio(r, other) if other else None
            if ratio is not None:
                yield r, reference, ratio, goal, ratio <= goal if r["unit"] == "us" \
                    else ratio >= goal


# ---- the machine ----

def version_of(*command):
    try:
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=10)
        lines = done.stdout.strip().splitlines()
        return lines[0] if lines else "unknown"
    except (OSError, subprocess.SubprocessError):
        return None


def first_match(path, pattern):
    try:
        with open(path) as f:
            found = re.search(pattern, f.read())
        return found.group(1) if found else None
    except OSError:
        return None


def machine(args):
    """Describes the machine, the versions and the pinning of this run."""
    tree = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    versions = {
        "openiser": version_of(args.iser, "--version"),
        "commit": version_of("git", "-C", tree, "rev-parse", "--short=12", "HEAD"),
        "tgt": version_of("tgtd", "--version"), "fio": version_of("fio", "--version"),
        "nbdkit": version_of("nbdkit", "--version"),
        "qemu-img": version_of("qemu-img", "--version"),
        "iperf3": version_of("iperf3", "--version"),
        "iscsi-perf": version_of("dpkg-query", "-W", "-f", "${Version}", "libiscsi-bin"),
    }
    return {
        "kernel": os.uname().release, "cpus": os.cpu_count(),
        "cpu": first_match("/proc/cpuinfo", r"model name\s*:\s*(.*)"),
        "memory_mib": int(first_match("/proc/meminfo", r"MemTotal:\s*(\d+)") or 0) // 1024,
        "congestion_control": first_match(
            "/proc/sys/net/ipv4/tcp_congestion_control", r"(\S+)"),
        "server_cpu": args.server_cpu, "client_cpu": args.client_cpu,
        "io": args.io, "spin_us": args.spin, "awake": bool(Awake.pids), "disk_bytes": args.disk,
        "versions": {k: v for k, v in versions.items() if v},
    }


# ---- the network namespace ----

OUTER = "OPENISER_BENCH_NETWORK"  # the descriptor of the namespace of the machine


def run_outside(command, **options):
    """Runs a command in the network of the machine, which a download needs."""
    fd = os.environ.get(OUTER)
    if fd:
        command = ["nsenter", "--net=/proc/self/fd/" + fd] + command
        options["pass_fds"] = (int(fd),)
    return subprocess.run(command, text=True, stdout=subprocess.PIPE, **options)


def own_namespace(program):
    """Executes program again in a new network namespace, if that is permitted."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        print("not root: using the network of this machine", file=sys.stderr)
        return
    outer = os.open("/proc/self/ns/net", os.O_RDONLY)
    os.set_inheritable(outer, True)
    os.environ[OUTER] = str(outer)
    os.execvp("unshare", ["unshare", "-n", sys.executable,
                          os.path.abspath(program), "--inside"] + sys.argv[1:])


def set_up_namespace():
    """Enables lo, and gives all contestants the same congestion control."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    try:
        with open("/proc/sys/net/ipv4/tcp_congestion_control", "w") as f:
            f.write("reno")
    except OSError:
        pass


def write_json(path, value):
    """Replaces a file, so that an interruption leaves the old or the new contents."""
    with open(path + ".new", "w") as f:
        json.dump(value, f, indent=1)
        f.write("\n")
    os.replace(path + ".new", path)
