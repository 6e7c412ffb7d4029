# SPDX-License-Identifier: BSD-2-Clause
"""The programs that are measured: servers by name (SERVERS), and clients by name (CLIENTS),
which return a Sample."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import common
from common import IQN, Sample, free_port, pinned, run_client, wait_for_port

# ---- servers ----


class Server:
    """A server on its CPU, which prints one line for each of its addresses. pids are the
    processes whose CPU time does not count as other load."""

    metrics = None  # the socket with the metrics of iserd

    def __init__(self, args, command, addresses=1):
        self.process = subprocess.Popen(pinned(args.server_cpu, command),
                                        stdout=subprocess.PIPE, text=True)
        self.pids = [self.process.pid]
        self.urls = [self.process.stdout.readline().strip()
                     for _ in range(addresses)]
        if not self.urls[-1]:
            self.process.wait(timeout=10)
            raise RuntimeError("%s did not start" % " ".join(command))

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


class Iserd(Server):
    """iserd with the given LUNs (default: one ram unit) and more options."""

    def __init__(self, args, luns=None, options=(), fill=True):
        luns = luns or ["ram:%d" % args.disk]
        self.args = args
        self.folder = tempfile.TemporaryDirectory()
        self.metrics = self.folder.name + "/metrics"
        super().__init__(args, [
            args.iserd, "serve", "--listen", "127.0.0.1:0", "--name", IQN, "--log",
            "error", "--io", args.io, "--spin", str(args.spin), "--metrics",
            self.metrics, "--login-rate", "100000", "--max-connections", "16", "--mpa-crc",
            "optional", *options,
            *luns], len(luns))
        if fill:
            self.fill()

    def fill(self):
        """Writes all blocks of each unit: memory that was never written is faster to read."""
        for url in self.urls:
            subprocess.run([self.args.iser, "bench", "--rw", "write", "--bs", "1M",
                            "--depth", "8", "--amount", self.size(url), "--ramp",
                            "0", "--yes-overwrite", url], check=True,
                           stdout=subprocess.DEVNULL, timeout=300)

    def size(self, url):
        done = subprocess.run([self.args.iser, "info", "--json", url], check=True,
                              stdout=subprocess.PIPE, text=True, timeout=60)
        return str(json.loads(done.stdout)["bytes"])

    def stop(self):
        super().stop()
        self.folder.cleanup()


class Files(Iserd):
    """One iserd with units in memory, in files (buffered and O_DIRECT) and encrypted."""

    LUNS = ("memory", "memory, encrypted", "file, O_DIRECT", "file, O_DIRECT, encrypted",
            "file, buffered")

    def __init__(self, args):
        self.files = tempfile.TemporaryDirectory(dir=".")
        at = os.path.abspath(self.files.name)
        for name in "direct", "encrypted", "buffered":
            with open("%s/%s" % (at, name), "wb") as f:
                f.truncate(args.disk)
        super().__init__(args, [
            "ram:%d" % args.disk, "ram:%d,key=%s/ram.key" % (args.disk, at), at + "/direct",
            "%s/encrypted,key=%s/key" % (at, at)], fill=False)
        self.fill()
        # --buffered holds for all files of a daemon: a second daemon serves that file
        self.buffered = Iserd(args, [at + "/buffered"], ["--buffered"])
        self.urls += self.buffered.urls
        self.pids = self.pids + self.buffered.pids

    def stop(self):
        self.buffered.stop()
        super().stop()
        self.files.cleanup()


class Sizes(Iserd):
    """Units of several sizes: those that fit in the caches of the CPU, and those that do not."""

    BYTES = (16 << 20, 64 << 20, 256 << 20, 1 << 30)

    def __init__(self, args):
        super().__init__(args, ["ram:%d" % n for n in self.BYTES])


class Tgtd:
    """tgtd with a file in memory and the lengths that the documents of tgt
    recommend for speed, which iserd negotiates by default."""

    metrics = None
    PARAMETERS = {
        "MaxRecvDataSegmentLength": 262144,
        "MaxXmitDataSegmentLength": 262144,
        "FirstBurstLength": 262144,
        "MaxBurstLength": 1048576,
        "InitialR2T": "No",
        "ImmediateData": "Yes",
    }

    def __init__(self, args):
        if os.geteuid() != 0:
            raise RuntimeError("tgtd needs root")
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
        self.pids = [self.process.pid]
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
        self.urls = ["iscsi://127.0.0.1:%d/%s/1" % (port, IQN)]

    def admin(self, *words):
        subprocess.run(["tgtadm", "-C", self.control] + list(words), check=True,
                       stdout=subprocess.DEVNULL)

    def stop(self):
        self.process.kill()
        self.process.wait(timeout=10)
        self.image.close()


class Quiet:
    """A server that prints nothing: iperf3, nbdkit, iser nbd-serve, relay. ready is a port
    or the path of a socket, which exists when the server is ready."""

    metrics = None

    def __init__(self, cpu, command, ready, urls):
        self.process = subprocess.Popen(pinned(cpu, command), stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        self.pids = [self.process.pid]
        self.urls = urls
        if isinstance(ready, int):
            wait_for_port(ready, self.process)
            return
        end = time.monotonic() + 10
        while not os.path.exists(ready):
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("%s did not start" % command[0])
            time.sleep(0.02)

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Nbdkit(Quiet):
    def __init__(self, args):
        self.folder = tempfile.TemporaryDirectory()
        path = self.folder.name + "/nbd"
        super().__init__(args.server_cpu, [
            "nbdkit", "-f", "-U", path, "memory", "size=%d" % args.disk], path,
            ["nbd+unix:///?socket=" + path])
        subprocess.run(["nbdcopy", "--request-size", "1048576", "--", "[", "nbdkit",
                        "pattern", "size=%d" % args.disk, "]", self.urls[0]], check=True)

    def stop(self):
        super().stop()
        self.folder.cleanup()


class NbdServe(Iserd):
    """iserd, and iser nbd-serve on the CPU of the client in front of it."""

    def __init__(self, args):
        super().__init__(args)
        path = self.folder.name + "/nbd"
        self.nbd = Quiet(args.client_cpu, [args.iser, "nbd-serve", "--socket", path,
                                           self.urls[0]], path, [])
        self.urls = ["nbd+unix:///?socket=" + path]
        self.pids = self.pids + self.nbd.pids
        self.metrics = None

    def stop(self):
        self.nbd.stop()
        super().stop()


def iperf3_server(args):
    port = free_port()
    return Quiet(args.server_cpu, ["iperf3", "-s", "-p", str(port)], port, [str(port)])


def rbench_server(args):
    """iser rbench --server accepts all parameters of its client."""
    return Server(args, [args.iser, "rbench", "--server", "--no-crc", "127.0.0.1:0"])


def relay_to(args, server, *options):
    """Starts the relay in front of a server; its URLs lead through the relay. Both ends
    keep their CPUs; the relay may use both."""
    port = free_port()
    inner = re.match(r"iscsi://127.0.0.1:(\d+)/(.*)", server.urls[0])
    return Quiet(None, [args.relay, "--listen", str(port), "--connect", inner.group(1),
                        *options], port,
                 ["iscsi://127.0.0.1:%d/%s" % (port, inner.group(2))])


SERVERS = {
    "iserd": Iserd,
    "files": Files,
    "sizes": Sizes,
    "tgtd": Tgtd,
    "nbdkit": Nbdkit,
    "nbd-serve": NbdServe,
    "iperf3": iperf3_server,
    "rbench": rbench_server,
}
NEEDS = {"tgtd": ("tgtd", "tgtadm"), "nbdkit": ("nbdkit", "nbdcopy"), "iperf3": ("iperf3",),
         "nbd-serve": ("fio",)}


class Servers:
    """Starts servers when they are first needed; a server that cannot start is reported
    once."""

    def __init__(self, args):
        self.args, self.running, self.broken = args, {}, {}

    def get(self, name):
        if name in self.broken:
            raise RuntimeError(self.broken[name])
        if name not in self.running:
            missing = [p for p in NEEDS.get(name, ()) if not shutil.which(p)]
            try:
                if missing:
                    raise RuntimeError("%s is not installed" % missing[0])
                self.running[name] = SERVERS[name](self.args)
            except (RuntimeError, OSError, subprocess.SubprocessError) as e:
                self.broken[name] = "%s is not measured: %s" % (name, e)
                print(self.broken[name], flush=True)
                raise RuntimeError(self.broken[name]) from e
        return self.running[name]

    def stop(self):
        for server in self.running.values():
            server.stop()
        self.running = {}


# ---- the numbers of iserd ----

COUNTED = {"iserd_transport_receive_calls_total": "calls",
           "iserd_transport_send_calls_total": "calls",
           "iserd_transport_copied_bytes_total": "copied",
           "iserd_transport_r2ts_total": "r2ts"}


def scrape(path):
    """Returns the counters of iserd: system calls for sockets, bytes copied in user space
    and R2Ts."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(10)
        s.connect(path)
        s.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        data = b""
        while chunk := s.recv(65536):
            data += chunk
    sums = {}
    for line in data.decode(errors="replace").splitlines():
        name = re.split(r"[{ ]", line, maxsplit=1)[0]
        if name in COUNTED:
            key = COUNTED[name]
            sums[key] = sums.get(key, 0) + float(line.rsplit(" ", 1)[1])
    return sums


# ---- clients: functions of (args, server, words, url) ----

def words_of_load(x, words):
    """Returns the options of iser bench for what a case varies, and more words, whose
    options replace those of the case."""
    load = {"--rw": x["rw"], "--bs": x["size"], "--depth": x["depth"],
            "--connections": x.get("connections", 1)}
    made = [w for option, value in load.items() if option not in words
            for w in (option, str(value))]
    if "write" in x["rw"] or "rw" in x["rw"]:
        made.append("--yes-overwrite")
    return made + list(words)


def iser_metrics(report):
    """Returns the metrics of the JSON that iser bench prints, and its operations per second.
    Of a mixed load, latencies are those of the direction with more operations."""
    parts = [report[k] for k in ("read", "write") if k in report]
    main = max(parts, key=lambda p: p["operations"])
    metrics = {name + "_us": v for name, v in main["latency_us"].items()}
    cost = report["per_operation"]
    metrics.update(client_cpu_us=cost["cpu_us"], client_calls=cost["system_calls"],
                   client_copied=cost["copied_bytes"])
    return metrics, sum(p["iops"] for p in parts), parts


def bench_command(args, x, words, url):
    """Returns the command line of iser bench for a case."""
    seconds = max(args.seconds, x.get("seconds", 0))
    return [args.iser, "bench", "--json", "--time", str(seconds), "--ramp", str(args.ramp),
            *words_of_load(x, words), url]


def iser(args, server, x, words, url):
    """iser bench, with the CPU time, system calls and copies of both ends."""
    before = scrape(server.metrics) if server.metrics else {}
    cpu = sum(common.cpu_seconds(p) for p in server.pids)
    report = json.loads(run_client(args, bench_command(args, x, words, url)))
    cpu = sum(common.cpu_seconds(p) for p in server.pids) - cpu
    metrics, iops, parts = iser_metrics(report)
    # the ramp is not in the operations of the report, but in the CPU time
    operations = sum(p["operations"] for p in parts) * (
        1 + args.ramp / report["seconds"])
    if operations:
        metrics["target_cpu_us"] = cpu * 1e6 / operations
    if before and operations:
        after = scrape(server.metrics)
        for key in before:
            metrics["target_" + key] = (after[key] - before[key]) / operations
    return Sample(iops, **metrics)


def iscsi_perf(args, _server, x, _words, url):
    if x["rw"] not in ("read", "randread"):
        raise RuntimeError("iscsi-perf only reads")
    command = ["iscsi-perf", "-t", str(max(1, round(args.seconds))), "-m",
               str(x["depth"]), "-b", str(x["size"] // 512)]
    if x["rw"] == "randread":
        command.append("-r")
    out = run_client(args, command + [url])
    found = re.findall(r"iops average (\d+)", out)
    if not found:
        raise RuntimeError("iscsi-perf: " + out[-300:])
    return Sample(float(found[-1]))


def sockets(args, program, *words):
    """Runs floor or raw_stream, which are server and client in one program; returns
    the figures that the program prints."""
    if not program:
        raise RuntimeError("floor and raw_stream are not built: meson configure -Dbench=true")
    command = [program, "--time", str(args.seconds), *words]
    for word, cpu in (("--server-cpu", args.server_cpu),
                      ("--client-cpu", args.client_cpu)):
        if cpu is not None:
            command += [word, str(cpu)]
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, check=True,
                          timeout=args.seconds * 5 + 20)
    return json.loads(done.stdout)


def floor(args, _server, x, words, _url):
    more = ["--write"] if "write" in x["rw"] else []
    more += ["--spin"] if args.spin else []
    made = sockets(args, args.floor, "--size", str(x["size"]), "--depth", str(x["depth"]),
                   *more, *words)
    return Sample(made["iops"], **({"p50_us": made["p50_us"]} if x["depth"] == 1 else {}))


def raw_stream(args, _server, x, words, _url):
    made = sockets(args, args.raw_stream, *words)
    return Sample({"bytes": made["bytes_per_second"],
                   "messages": made["messages_per_second"],
                   "us": made["us_per_message"]}[x["unit"]])


def rbench(args, _server, x, words, url):
    made = json.loads(run_client(args, [
        args.iser, "rbench", "--json", "--time", str(args.seconds), *words, url]))[0]
    if x["unit"] == "us":  # rbench reports one way, raw_stream the round trip
        return Sample(2 * made["latency_us"]["mean"])
    return Sample(made[x["unit"] + "_per_second"])


def fio_nbd(args, _server, x, _words, url):
    """fio with its nbd engine."""
    out = run_client(args, [
        "fio", "--name=bench", "--ioengine=nbd", "--uri=" + url, "--rw=" + x["rw"],
        "--bs=%d" % x["size"], "--iodepth=%d" % x["depth"], "--time_based",
        "--runtime=%gms" % (args.seconds * 1000), "--ramp_time=%gms" % (args.ramp * 1000),
        "--size=%d" % args.disk, "--output-format=json", "--randrepeat=1",
        "--norandommap"])
    report = json.loads(out[out.index("{"):])["jobs"][0]
    part = report["write" if "write" in x["rw"] else "read"]
    tail = part["clat_ns"].get("percentile", {})
    return Sample(part["iops"], p50_us=tail.get("50.000000", 0) / 1e3,
                  p99_us=tail.get("99.000000", 0) / 1e3)


def iperf3(args, _server, x, _words, port):
    """One stream; reads go from the server to the client. The figure is in operations of
    the size of the case, like all figures of this group."""
    command = ["iperf3", "-c", "127.0.0.1", "-p", port, "-J", "-t",
               str(max(1, round(args.seconds))), "-l", "256K"]
    if "write" not in x["rw"]:
        command.append("-R")
    end = json.loads(run_client(args, command))["end"]
    return Sample(end["sum_received"]["bits_per_second"] / 8 / x["size"])


CLIENTS = {"iser": iser, "iscsi-perf": iscsi_perf, "floor": floor,
           "raw_stream": raw_stream, "rbench": rbench, "fio": fio_nbd, "iperf3": iperf3}
