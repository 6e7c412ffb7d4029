# SPDX-License-Identifier: BSD-2-Clause
"""Many sessions: logins per second, memory and CPU of idle sessions, a busy client beside
them, and what is left of them. The sessions are made from bytes (tests/interop/
rdma_wire.py), so that the client needs little memory."""
import contextlib
import hashlib
import os
import resource
import socket
import statistics
import struct
import sys
import time

import common
import contestants

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "tests", "interop"))
import rdma_wire  # noqa: E402
from harness import Secrets  # noqa: E402

TITLE = "Many sessions"
SECONDS = 60
NOTE = """Sessions that log in one after the other and then only ping, each every five seconds.
Logins per second are per second of CPU time of iserd. Memory is the resident set of iserd without
that of the unit; the CPU is that of iserd while all sessions ping. The busy client reads 4 KiB, 32
deep, with and without the idle sessions, in turns. A login with CHAP (SHA-256) takes four round
trips; its time is the median. BENCH=full has 10,000 sessions, too."""

LIMITS = ["--max-sessions", "20000:20000",
          "--max-startups", "20000:30:20000:20000"]
BUSY = {"rw": "randread", "size": 4096, "depth": 32}


# the initiators have several addresses, since each has some 28,000 ports
ADDRESSES = 8
CHAP_LOGINS = 500
# after this time iserd has given back the buffers of the data that it got before
SETTLED = 12


def resident_kib(pid):
    """The resident set of iserd without the memory that is shared: that of a ram: unit."""
    kib = {}
    with open("/proc/%d/status" % pid) as f:
        for line in f:
            if line.startswith(("VmRSS:", "RssShmem:")):
                kib[line.split(":")[0]] = int(line.split()[1])
    return kib["VmRSS"] - kib["RssShmem"]


class Peer:
    """What rdma_wire asks of a daemon."""

    def __init__(self, url):
        _, _, portal, self.target, _ = url.split("/")
        host, port = portal.rsplit(":", 1)
        self.address = (host, int(port))


@contextlib.contextmanager
def sent_from(address):
    """Connections are made from this address meanwhile."""
    connect = socket.create_connection
    socket.create_connection = lambda to, **more: connect(
        to, source_address=(address, 0), **more)
    try:
        yield
    finally:
        socket.create_connection = connect


def open_sessions(wire, url, count):
    """Logs in count sessions; returns them."""
    peer, sessions = Peer(url), []
    for n in range(count):
        with sent_from("127.0.0.%d" % (1 + n % ADDRESSES)):
            s = wire(peer)
        s.ISID = b"\x80" + struct.pack(">I", n) + b"\1"
        op, head, _ = s.login()
        if op != 0x23 or head[36:38] != b"\0\0":
            raise RuntimeError("login %d was refused" % n)
        sessions.append(s)
    return sessions


def ping(sessions, seconds, interval=5.0):
    """Each session pings once in each interval and reads the answers to earlier pings."""
    began, sent = time.monotonic(), 0
    while time.monotonic() < began + seconds:
        due = int((time.monotonic() - began) / interval * len(sessions))
        for s in (sessions[n % len(sessions)] for n in range(sent, due)):
            s.sock.setblocking(False)
            try:
                while s.sock.recv(65536):
                    pass
            except BlockingIOError:
                pass
            s.sock.setblocking(True)
            s.pdu(0x40)
        sent = max(sent, due)
        time.sleep(0.01)


class ChapWire(rdma_wire.Wire):
    """A login that proves itself by CHAP, with SHA-256."""

    USER, SECRET = "me", b"correct horse battery"

    def step(self, flags, *keys):
        """Sends a Login Request and returns the keys of the response."""
        data = b"".join(k.encode() + b"\0" for k in keys)
        head = struct.pack(">BBBBI", 0x43, flags, 0, 0, len(data)) + self.ISID + b"\0\0"
        head += struct.pack(">IHHII", 0, 0, 0, self.cmdsn, 0)
        self.put(head.ljust(48, b"\0"), data)
        op, head, data = self.recv()
        if op != 0x23 or head[36:38] != b"\0\0":
            raise RuntimeError("the login was refused")
        return dict(k.split("=", 1) for k in data.decode().split("\0")[:-1])

    def login(self, *more):
        self.step(0, *self.KEYS[:2], "TargetName=" + self.daemon.target, "AuthMethod=CHAP")
        asked = self.step(0, "CHAP_A=7")
        proof = hashlib.sha256(bytes([int(asked["CHAP_I"])]) + self.SECRET +
                               bytes.fromhex(asked["CHAP_C"][2:]))
        self.step(0x81, "CHAP_N=" + self.USER, "CHAP_R=0x" + proof.hexdigest())
        self.step(0x87, *self.KEYS[2:], *more)


def measure_chap(args):
    """Logs in and closes, one session after the other."""
    with Secrets() as secrets:
        server = contestants.Iserd(args, options=LIMITS + secrets.args, fill=False)
        try:
            peer, took = Peer(server.urls[0]), []
            cpu = common.cpu_seconds(server.pids[0])
            for _ in range(CHAP_LOGINS):
                began = time.monotonic()
                s = ChapWire(peer)
                s.login()
                took.append((time.monotonic() - began) * 1e3)
                s.close()
            cpu = common.cpu_seconds(server.pids[0]) - cpu
        finally:
            server.stop()
    yield common.row("idle", "login with CHAP", "iSCSI", "ms", [statistics.median(took)])
    yield common.row("idle", "logins with CHAP per second of a core", "iSCSI", "messages",
                     [CHAP_LOGINS / cpu])


def measure_many(args, kind, wire, count):
    """Returns the rows of count sessions; the sessions are closed in the end."""
    with contextlib.ExitStack() as ends:
        quiet = contestants.Iserd(args)
        ends.callback(quiet.stop)
        server = contestants.Iserd(args, options=LIMITS)
        ends.callback(server.stop)
        pid, case = server.pids[0], "%d sessions" % count
        time.sleep(SETTLED)
        before, cpu = resident_kib(pid), common.cpu_seconds(pid)
        sessions = open_sessions(wire, server.urls[0], count)
        cpu = common.cpu_seconds(pid) - cpu
        yield common.row("idle", case + ": logins per second of a core", kind, "messages",
                         [count / cpu])
        ping(sessions, 5)
        cpu, began = common.cpu_seconds(pid), time.monotonic()
        ping(sessions, 10)
        cpu = (common.cpu_seconds(pid) - cpu) / (time.monotonic() - began)
        yield common.row("idle", case + ": CPU with pings", kind, "ratio", [cpu])
        yield common.row("idle", case + ": memory of one", kind, "mib",
                         [(resident_kib(pid) - before) / 1024 / count])
        results = common.take_turns(args, {
            kind + (", beside idle ones" if s is server else ", alone"): (
                quiet.pids + server.pids, lambda s=s: contestants.iser(
                    args, s, BUSY, [], s.urls[0])) for s in (quiet, server)}, 15)
        yield from common.rows_of("idle", case + ": a busy client", "iops", results, **BUSY)
        for s in sessions:
            s.close()
        time.sleep(SETTLED)
        yield common.row("idle", case + ": memory after they left / before", kind, "ratio",
                         [resident_kib(pid) / before])


def run(build):
    args = common.settings(build)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    yield from measure_chap(args)
    for count in (1000, 10000) if getattr(args, "full", False) else (1000,):
        for kind, wire in (("iSCSI", rdma_wire.Wire), ("iSER", rdma_wire.RdmaWire)):
            if count + 100 > most:
                print("  %s: only %d files may be open" % (kind, most), flush=True)
                continue
            yield from measure_many(args, kind, wire, count)
