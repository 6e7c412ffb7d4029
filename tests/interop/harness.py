# SPDX-License-Identifier: BSD-2-Clause
"""Functions for all interop tests: a running iserd, commands with a time limit.

run.py sets the programs and the I/O back end in the environment: ISERD, ISERCTL, ISER_TGTADM,
ISER and ISERD_IO (uring or epoll). A test whose peer is not installed is skipped,
with the name of the package.
"""
import glob
import hashlib
import os
import random
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest

ISERD = os.environ.get("ISERD", "build/iserd")
ISERCTL = os.environ.get("ISERCTL", "build/iserctl")
ISER_ISNS = os.environ.get("ISER_ISNS", "build/iser-isns")
ISER_CHECK = os.environ.get("ISER_CHECK", "build/iser-check")
ISER_TGTADM = os.environ.get("ISER_TGTADM", "build/iser-tgtadm")
ISER = os.environ.get("ISER", "build/iser")


def io():
    """Returns the I/O back end under test."""
    return os.environ.get("ISERD_IO", "auto")


PACKAGES = {
    "iscsi-ls": "libiscsi-bin", "iscsi-inq": "libiscsi-bin",
    "iscsi-readcapacity16": "libiscsi-bin",
    "iscsi-perf": "libiscsi-bin", "iscsi-test-cu": "libiscsi-bin",
    "qemu-img": "qemu-utils and qemu-block-extra", "tgtd": "tgt",
    "qemu-system-x86_64": "qemu-system-x86", "isnsd": "open-isns-server", "isnsadm": "open-isns-utils", "tgtadm": "tgt", "tshark": "tshark", "dumpcap": "tshark",
    "mkfs.ext4": "e2fsprogs", "nbdcopy": "libnbd-bin",
    "nbdinfo": "libnbd-bin", "nbdkit": "nbdkit", "fio": "fio", "qemu-io": "qemu-utils", "qemu-nbd": "qemu-utils", "groff": "groff-base", "losetup": "mount", "promtool": "prometheus",
}


def need(*programs):
    """Decorator: skips a test or class when a program is missing."""
    missing = [p for p in programs if not shutil.which(p)]
    if not missing:
        return lambda x: x
    return unittest.skip("%s is missing: install %s" % (
        missing[0], PACKAGES.get(missing[0], missing[0])))


# The kinds of connection: the key of the URL, and the name in iser info.
WAYS = {"tcp": (None, "iscsi"),
        "rdma": ("start=rdma", "iser, RDMA from the start"),
        "stream": ("start=stream", "iser, login over the stream")}


def over(url, way):
    """Returns the URL of the same unit over another kind of connection."""
    key = WAYS[way][0]
    if not key:
        return url
    return "iser" + url[5:] + ("&" if "?" in url else "?") + key


class Secrets:
    """The options of an iserd with mutual CHAP, and URLs for it."""

    def __init__(self, *more):
        self.dir = tempfile.TemporaryDirectory()
        self.args = []
        for option, user, secret in (
                ("chap", "me", "correct horse battery\n"),
                ("chap-mutual", "disk", "staple in the attic")):
            path = os.path.join(self.dir.name, option)
            with open(path, "w") as f:
                os.fchmod(f.fileno(), 0o600)
                f.write(secret)
            self.args += ["--%s-user" % option, user,
                          "--%s-secret-file" % option, path]
        self.args += more

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.dir.cleanup()

    @staticmethod
    def url(plain, password="correct horse battery", target=None, user="me",
            target_user="disk"):
        """target: the secret that the target must know."""
        url = plain.replace("iscsi://", "iscsi://%s%%%s@" % (user, password))
        if target:
            url += "?target_user=%s&target_password=%s" % (target_user, target)
        return url


def patience(seconds):
    """Returns the limit for this load: on a busy machine, tests are slower."""
    return seconds * (2 + os.getloadavg()[0] / os.cpu_count())


def some_time():
    """Returns timeout= of a URL: 5 s, more on a busy machine, where the targets of the tests answer late."""
    return "timeout=%d" % (patience(5) / 2)


def until(true, what, limit=10):
    """Polls until true() returns True; what describes the condition in the error."""
    end = time.monotonic() + patience(limit)
    while not true():
        if time.monotonic() > end:
            raise AssertionError("timeout: " +
                                 (what() if callable(what) else what))
        time.sleep(0.02)


def stop_process(pid):
    """Sends SIGSTOP, and waits until no thread runs any more: on a busy machine they go on for a while."""
    os.kill(pid, signal.SIGSTOP)

    def stopped():
        for task in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/stat" % (pid, task)) as f:
                if f.read().rsplit(")", 1)[1].split()[0] not in "TZ":
                    return False
        return True
    until(stopped, "the threads of process %d are stopped" % pid)


def until_steady(value, seconds):
    """Waits until value() stays the same for some seconds."""
    last, since, end = value(), time.monotonic(), time.monotonic() + patience(20)
    while time.monotonic() < since + seconds:
        time.sleep(0.02)
        now = value()
        if now != last:
            last, since = now, time.monotonic()
        if since > end:
            raise AssertionError("timeout: %r changes" % now)


def quiet_port():
    """Returns a free port that the kernel does not assign to programs which bind
    port 0."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as f:
        low = int(f.read().split()[0])
    for _ in range(100):
        port = random.randrange(low // 2, low)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass
    raise unittest.SkipTest("no port below %d is free" % low)


def run(args, timeout=60, check=True, **kw):
    """Runs a program to its end; kills the program after timeout seconds, or later
    on a busy machine."""
    done = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, timeout=patience(timeout),
                          **kw)
    text = done.stdout.decode(errors="replace")
    if check and done.returncode != 0:
        raise AssertionError("%s ended with %d:\n%s" % (
            " ".join(args), done.returncode, text[-4000:]))
    done.text = text
    return done


def sparse(path, size):
    """Makes an image of zeros; returns the path."""
    with open(path, "wb") as f:
        f.truncate(size)
    return path


def make_image(path, size=24 << 20):
    """Makes an image with random bytes in two places, and zeros elsewhere."""
    with open(path, "wb") as f:
        f.write(os.urandom(3 << 20))
        f.seek(10 << 20)
        f.write(os.urandom(1 << 20))
        f.truncate(size)


def sha256(path):
    h = hashlib.sha256()
    with open(path, "rb") as f:
        for piece in iter(lambda: f.read(1 << 20), b""):
            h.update(piece)
    return h.hexdigest()


class Folder(unittest.TestCase):
    """A case with its own directory, which is removed at its end."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=".")
        self.addCleanup(folder.cleanup)
        self.dir = os.path.abspath(folder.name)

    def path(self, name):
        return os.path.join(self.dir, name)


class Restarts(Folder):
    """A case that restarts iserd with the same disk and the state in self.state."""

    def setUp(self):
        super().setUp()
        self.disk = sparse(self.path("disk.img"), 16 << 20)
        self.state = self.path("state")
        self.args = ["--state", self.state, "--workers", "2", "--block-size", "512",
                     "--buffered", self.disk]

    def start(self, *more):
        return Daemon(*more, *self.args)

    def files(self):
        """Returns the state files of units."""
        return glob.glob(self.state + "/*.*")


def _serve(args):
    """Returns the command line of an iserd, on a free port unless args name one."""
    listen = [] if "--listen" in args else ["--listen", "127.0.0.1:0"]
    return [ISERD, "serve", "--io", io()] + listen + list(args)


def refused(*args, status=3):
    """Runs an iserd that must not start; returns its messages."""
    done = subprocess.run(_serve(args), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=patience(20))
    text = done.stderr.decode()
    if done.returncode != status or done.stdout:
        raise AssertionError("iserd ended with %d: %s%s" % (
            done.returncode, done.stdout.decode(), text))
    return text


def text_of_log(log):
    """Returns the text of a file that is the standard error of another process. seek
    would also move the offset at which that process writes."""
    fd = log.fileno()
    return os.pread(fd, os.fstat(fd).st_size, 0).decode(errors="replace")


class Daemon:
    """An iserd on a free port of the loopback address."""

    def __init__(self, *args, ready=True, files=None, through=()):
        """files: the limit of open files of the process; through: a command that executes iserd."""
        limit = ["sh", "-c", 'ulimit -n %s; exec "$@"' % files, "sh"]
        self.log = tempfile.TemporaryFile()
        self.proc = subprocess.Popen([*through] + (limit if files else []) + _serve(args),
                                     stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE, stderr=self.log)
        self.urls = []
        if ready:
            luns = sum(1 for before, a in zip(("",) + args, args)
                       if a.startswith(("ram:", "null:", "cd:", "rbd:", "nbd:", "/")) and
                       before not in ("--control", "--state", "--metrics", "--chap-secret-file",
                                      "--chap-mutual-secret-file", "--cluster-directory"))
            listeners = max(1, args.count("--listen"))
            self._read_urls(luns * listeners)

    def _read_urls(self, count):
        """Reads the URLs; each line on stdout must be a URL."""
        deadline = time.monotonic() + patience(20)
        fd = self.proc.stdout.fileno()
        text = b""
        while text.count(b"\n") < count:
            left = deadline - time.monotonic()
            more = b""
            if left > 0 and select.select([fd], [], [], left)[0]:
                more = os.read(fd, 65536)
            if not more:
                self.proc.kill()
                raise AssertionError("iserd is not ready: " + self.messages())
            text += more
        self.urls = text.decode().splitlines()
        for line in self.urls:
            if not line.startswith("iscsi://"):
                raise AssertionError("not a URL: %r" % line)

    @property
    def url(self):
        return self.urls[0]

    @property
    def portal(self):
        return self.url.split("/")[2]

    @property
    def address(self):
        host, port = self.portal.rsplit(":", 1)
        return host.strip("[]"), int(port)

    @property
    def target(self):
        return self.url.split("/")[3]

    def messages(self):
        return text_of_log(self.log)

    def wait_for(self, text, count=1):
        """Waits until the log has the text count times."""
        until(lambda: self.messages().count(text) >= count,
              lambda: "%r in: %s" % (text, self.messages()))

    def rss_kib(self):
        with open("/proc/%d/status" % self.proc.pid) as f:
            for line in f:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1])

    def descriptors(self):
        """Returns the number of open file descriptors, which counts the connections."""
        return len(os.listdir("/proc/%d/fd" % self.proc.pid))

    def exiting(self):
        """Returns True once the process has called exit: it has no memory any more."""
        with open("/proc/%d/maps" % self.proc.pid) as f:
            return not f.read(1)

    def sanitized(self):
        with open("/proc/%d/maps" % self.proc.pid) as f:
            return "libasan" in f.read()

    def stop(self, sig=signal.SIGTERM, limit=12):
        """Ends iserd with a signal; returns the exit status."""
        if self.proc.poll() is None:
            self.proc.send_signal(sig)
        try:
            status = self.proc.wait(patience(limit))
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.wait()
            raise AssertionError("iserd did not end: " + self.messages())
        self.proc.stdout.close()
        return status

    def kill(self, how=signal.SIGKILL):
        """Kills iserd at once."""
        self.proc.send_signal(how)
        self.proc.wait()
        self.proc.stdout.close()
        self._all_messages()

    def _all_messages(self):
        """Returns all messages; fails if a sanitizer reported an error."""
        text = self.messages()
        self.log.close()
        for word in ("runtime error", "AddressSanitizer", "LeakSanitizer"):
            if word in text:
                raise AssertionError(text[-6000:])
        return text

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        status = self.stop()
        text = self._all_messages()
        if kind is None and status != 0:
            raise AssertionError("iserd ended with %d: %s" % (status, text))


def exactly(sock, n):
    """Returns the next n octets of a stream; raises EOFError if the stream ends before."""
    data = b""
    while len(data) < n:
        piece = sock.recv(n - len(data))
        if not piece:
            raise EOFError("closed after %d of %d bytes" % (len(data), n))
        data += piece
    return data


class Wire:
    """An initiator that builds its PDUs from bytes, also PDUs that a correct initiator
    would not send."""

    KEYS = ("InitiatorName=iqn.2026-01.org.example:wire", "SessionType=Normal",
            "InitialR2T=No", "ImmediateData=Yes")
    ISID = b"\x80\x12\x34\x56\x00\x01"

    def __init__(self, daemon):
        self.daemon = daemon
        self.sock = socket.create_connection(daemon.address,
                                             timeout=patience(10))
        self.cmdsn = 1
        self.itt = 1

    def close(self):
        self.sock.close()

    def send(self, data):
        self.sock.sendall(data)

    @staticmethod
    def bhs(op, flags=0x80, dsl=0, lun=b"\0" * 8, itt=0, rest=b""):
        head = struct.pack(">BBBBI", op, flags, 0, 0, dsl) + lun
        return (head + struct.pack(">I", itt) + rest).ljust(48, b"\0")

    def put(self, head, data=b""):
        """Sends a PDU in the form of this transport."""
        self.send(head + data + b"\0" * (-len(data) % 4))

    def pdu(self, op, flags=0x80, data=b"", itt=None, rest=None, **kw):
        """Sends a request with the current CmdSN."""
        if itt is None:
            itt = self.itt
            self.itt += 1
        if rest is None:
            rest = struct.pack(">III", 0xffffffff, self.cmdsn, 1)
        self.put(self.bhs(op, flags, len(data), itt=itt, rest=rest, **kw),
                 data)
        return itt

    def login(self, *more):
        keys = self.KEYS + ("TargetName=" + self.daemon.target,) + more
        data = b"".join(k.encode() + b"\0" for k in keys)
        head = struct.pack(">BBBBI", 0x43, 0x87, 0, 0, len(data))
        head += self.ISID + b"\0\0"
        head += struct.pack(">IHHII", 0, 0, 0, self.cmdsn, 0)
        self.put(head.ljust(48, b"\0"), data)
        return self.recv()

    def command(self, cdb, flags=0x80, edtl=0, data=b"", immediate=False):
        rest = struct.pack(">III", edtl, self.cmdsn, 1) + bytes(cdb)
        itt = self.pdu(0x41 if immediate else 1, flags | 1, data, rest=rest)
        self.cmdsn += not immediate
        return itt

    def ask(self, cdb, edtl=0, data=b""):
        """Executes a command with its data; returns (status, data or sense)."""
        flags = 0xa0 if data else 0xc0 if edtl else 0x80
        self.command(cdb, flags, edtl or len(data), data)
        got = b""
        while True:
            op, head, part = self.recv()
            if op == 0x21:
                return head[3], part if len(part) else got
            if op == 0x25:
                got += part
                if head[1] & 1:
                    return head[3], got

    def ready(self):
        """Consumes the unit attention of a new nexus."""
        for _ in range(3):
            if self.ask(bytes(16))[0] == 0:
                return self
        raise AssertionError("unit is not ready")

    def read10(self, lba, blocks):
        cdb = b"\x28\0" + struct.pack(">IBH", lba, 0, blocks) + bytes(7)
        return self.ask(cdb, edtl=blocks * 512)

    def write10(self, lba, data):
        cdb = b"\x2a\0" + struct.pack(">IBH", lba, 0, len(data) // 512)
        return self.ask(cdb + bytes(7), data=data)

    def _exactly(self, n):
        return exactly(self.sock, n)

    def recv(self):
        """Returns the next PDU: (opcode, header, data)."""
        head = self._exactly(48)
        dsl = int.from_bytes(head[5:8], "big")
        data = self._exactly(dsl + (-dsl % 4))[:dsl]
        return head[0] & 0x3f, head, data

    def expect_close(self, limit=10):
        """Waits until the target closes the connection, at most for the limit."""
        self.sock.settimeout(patience(limit))
        try:
            while self.sock.recv(65536):
                pass
        except ConnectionResetError:
            pass


def main():
    unittest.main(verbosity=2, warnings="ignore")
