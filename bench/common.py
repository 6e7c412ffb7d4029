# SPDX-License-Identifier: BSD-2-Clause
"""Functions for all benchmarks of this folder: the programs of the build, servers,
clients, rounds of measurement, tables, and the network namespace."""
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time

GATE = 0.12  # the share of the CPUs that other processes may use during a repetition
TICK = os.sysconf("SC_CLK_TCK")
IQN = "iqn.2026-01.org.openiser:bench"


# ---- processes ----

def find_program(build, name):
    places = {"iserd": "src/daemon", "iser": "src/tools"}
    for where in (places.get(name, "bench"), "."):
        path = os.path.join(build, where, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    sys.exit("%s: not in %s; build the program first" % (name, build))


def pinned(cpu, command):
    """Returns the command line that runs command on one CPU; None is any CPU."""
    if cpu is None or not shutil.which("taskset"):
        return command
    return ["taskset", "-c", str(cpu)] + command


class Server:
    """A server on its CPU, which prints one line for each of its addresses."""

    def __init__(self, args, command, addresses=1):
        self.process = subprocess.Popen(pinned(args.server_cpu, command),
                                        stdout=subprocess.PIPE, text=True)
        self.urls = [self.process.stdout.readline().strip()
                     for _ in range(addresses)]
        self.url = self.urls[0]
        if not self.url:
            raise RuntimeError("%s did not start" % command[0])

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=10)
        self.process.stdout.close()


class Iserd(Server):
    def __init__(self, args, luns=None):
        luns = luns or ["ram:%d" % args.disk]
        super().__init__(args, [args.iserd, "serve", "--listen", "127.0.0.1:0",
                                "--name", IQN, "--log", "error", "--io", args.io,
                                "--spin", str(args.spin)] + luns, len(luns))

    def fill(self, args):
        """Writes all blocks of each unit: memory that was never written is faster to read."""
        for url in self.urls:
            subprocess.run([args.iser, "bench", "--rw", "write", "--bs", "1M",
                            "--depth", "8", "--amount", str(args.disk), "--ramp",
                            "0", "--yes-overwrite", url], check=True,
                           stdout=subprocess.DEVNULL, timeout=120)


# ---- clients ----

def run_client(args, command):
    """Runs a client on its CPU; returns the output of the client."""
    done = subprocess.run(pinned(args.client_cpu, command), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=args.seconds * 5 + 120)
    if done.returncode:
        raise RuntimeError("%s ended with %d: %s" % (
            " ".join(command), done.returncode, done.stdout[-300:]))
    return done.stdout


def iser_bench(args, url, rw, size, depth):
    """Returns the IOPS that iser bench measures."""
    write = "write" in rw
    command = [args.iser, "bench", "--json", "--time", str(args.seconds),
               "--rw", rw, "--bs", str(size), "--depth", str(depth)]
    if write:
        command.append("--yes-overwrite")
    row = json.loads(run_client(args, command + [url]))
    return row["write" if write else "read"]["iops"]


def run_sockets(args, program, *words):
    """Runs floor or raw_stream, which are server and client in one program; returns
    the figures that the program prints."""
    command = [program, "--time", str(args.seconds), *words]
    for word, cpu in (("--server-cpu", args.server_cpu),
                      ("--client-cpu", args.client_cpu)):
        if cpu is not None:
            command += [word, str(cpu)]
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, check=True,
                          timeout=args.seconds * 5 + 20)
    return json.loads(done.stdout)


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
    """Measures the CPU time of all processes except this one, its children and server."""

    def __init__(self, server):
        self.pids = [server.process.pid] if server else []
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
        return max(0.0, used / wall)


# ---- rounds ----

def choose(args, cases):
    """Returns the cases that --case selects, or all cases without --case."""
    return [c for c in cases
            if not args.case or any(w in c.name for w in args.case)]


def measure_once(server, measure):
    """Returns (figure of measure(), whether other processes disturbed the repetition).
    A disturbed repetition is repeated, at most twice."""
    for _ in range(3):
        gate = Gate(server)
        figure = measure()
        if gate.others() <= GATE:
            return figure, False
    return figure, True


def take_turns(args, lanes):
    """Measures each contestant once in each round. lanes is {name: (server or None,
    function that returns a figure)}. Returns ({name: figures}, number of disturbed
    repetitions)."""
    figures = {name: [] for name in lanes}
    disturbed = 0
    for _ in range(args.rounds):
        for name, (server, measure) in lanes.items():
            figure, bad = measure_once(server, measure)
            figures[name].append(figure)
            disturbed += bad
    return figures, disturbed


def ratio_of(figures, upper, lower):
    """Returns the median of the ratios of single rounds."""
    return statistics.median(
        a / b for a, b in zip(figures[upper], figures[lower]))


# ---- output ----

def print_iops(case, figures, lane, reference):
    """Prints the line of one contestant, with its ratio to the contestant reference."""
    v = figures[lane]
    print("%-24s %-20s %9.0f IOPS   %9.0f .. %9.0f   x %.2f" % (
        case.name, lane, statistics.median(v), min(v), max(v),
        ratio_of(figures, lane, reference)), flush=True)


def print_goal(what, ratio, goal, met):
    """Prints a ratio with its goal; returns the number of missed goals, 0 or 1."""
    print("%s = %5.2f  (goal %.2f)%s" % (what, ratio, goal,
                                         "" if met else "  MISSED"))
    return 0 if met else 1


def rows_of(case, unit, figures):
    """Returns the rows of one case for the file of --json."""
    return [{"case": case.name, "contestant": lane, "unit": unit, "figures": v}
            for lane, v in figures.items()]


# ---- the network namespace ----

def own_namespace(program):
    """Executes program again in a new network namespace, if that is permitted."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        print("not root: using the network of this machine", file=sys.stderr)
        return
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
