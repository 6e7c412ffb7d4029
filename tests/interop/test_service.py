#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""iserd as a service: notifications, the watchdog, sockets and credentials of a service manager."""
import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import unittest

from harness import ISER, ISERD, Daemon, Folder, Secrets, Wire, io, main, patience, quiet_port, run, text_of_log, until

# ptrace(2), waitpid(2)
PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT, WALL = 17, 0x4206, 0x4207, 0x40000000


class Manager:
    """A service manager: a socket for notifications."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(path)
        self.path = path.replace("\0", "@")
        self.seen = []

    def get(self, limit=10):
        """Returns the next notification as a dict."""
        self.sock.settimeout(patience(limit))
        text = self.sock.recv(4096).decode()
        self.seen.append(text)
        return dict(line.split("=", 1) for line in text.split("\n"))

    def until(self, key):
        """Skips notifications without the key; returns the first one with the key."""
        end = time.monotonic() + patience(20)
        while time.monotonic() < end:
            got = self.get()
            if key in got:
                return got
        raise AssertionError("no %s: %r" % (key, self.seen))

    def drain(self):
        self.sock.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                self.sock.recv(4096)

    def close(self):
        self.sock.close()


@contextlib.contextmanager
def variables(**values):
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


class Managed(Folder):
    def setUp(self):
        super().setUp()
        self.manager = Manager(os.path.relpath(self.path("notify")))
        self.manager.path = self.path("notify")
        self.addCleanup(self.manager.close)

    def serve(self, *args, **values):
        with variables(NOTIFY_SOCKET=self.manager.path, **values):
            return Daemon(*args)


    @contextlib.contextmanager
    def stopped(self, d):
        """A debugger stops all threads of iserd but the main thread."""
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        others = [int(t) for t in os.listdir("/proc/%d/task" % d.proc.pid) if int(t) != d.proc.pid]
        for tid in others:
            if libc.ptrace(PTRACE_SEIZE, tid, None, None):
                self.skipTest("ptrace: %s" % os.strerror(ctypes.get_errno()))
            libc.ptrace(PTRACE_INTERRUPT, tid, None, None)
            os.waitpid(tid, WALL)
        try:
            yield
        finally:
            for tid in others:
                libc.ptrace(PTRACE_DETACH, tid, None, None)


class Notify(Managed):
    def test_ready_reloading_stopping(self):
        with self.serve("ram:1M", "null:1M") as d:
            first = self.manager.get()
            self.assertEqual(first, {"READY": "1", "STATUS": "serving 2 LUNs to 0 sessions"})
            d.proc.send_signal(signal.SIGHUP)
            reload = self.manager.until("RELOADING")
            self.assertLess(abs(int(reload["MONOTONIC_USEC"]) / 1e6 - time.clock_gettime(time.CLOCK_MONOTONIC)), 60)
            self.assertEqual(self.manager.get()["READY"], "1")
            d.stop()
            stop = self.manager.until("STOPPING")
            self.assertRegex(stop["STATUS"], "shutting down")

    def test_reload_ends_when_each_worker_has_it(self):
        """A worker is late: READY=1 comes after the last worker has the secrets."""
        with Secrets() as c, self.serve("--workers", "2", *c.args, "ram:1M") as d:
            self.manager.until("READY")
            with self.stopped(d):
                d.proc.send_signal(signal.SIGHUP)
                self.assertIn("MONOTONIC_USEC", self.manager.until("RELOADING"))
                # the answer to a second signal comes after what the first one began
                d.proc.send_signal(signal.SIGUSR1)
                d.wait_for("status: 0 sessions")
                self.manager.sock.setblocking(False)
                self.assertRaises(BlockingIOError, self.manager.sock.recv, 100)
            self.assertEqual(self.manager.get()["READY"], "1")
            self.assertIn("new logins use the CHAP secrets", d.messages())

    def test_ready_means_listening(self):
        """A connection at the moment of READY succeeds."""
        port = quiet_port()
        with variables(NOTIFY_SOCKET=self.manager.path):
            d = Daemon("--listen", "127.0.0.1:%d" % port, "ram:1M", ready=False)
        with d:
            self.manager.until("READY")
            socket.create_connection(("127.0.0.1", port), timeout=patience(5)).close()

    def test_a_start_that_fails_is_never_ready(self):
        with variables(NOTIFY_SOCKET=self.manager.path):
            done = subprocess.run([ISERD, "serve", "--io", io(), "--listen", "127.0.0.1:0", "/no/such/file"],
                                  stderr=subprocess.DEVNULL, timeout=patience(10))
        self.assertEqual(done.returncode, 3)
        self.manager.sock.setblocking(False)
        self.assertRaises(BlockingIOError, self.manager.sock.recv, 100)

    def test_status_counts_sessions(self):
        with self.serve("ram:1M", WATCHDOG_USEC="200000") as d:
            w = Wire(d)
            w.login()
            end = time.monotonic() + patience(20)
            while "serving 1 LUN to 1 session" not in self.manager.until("STATUS")["STATUS"]:
                self.assertLess(time.monotonic(), end)
            w.close()

    def test_abstract_socket(self):
        name = "\0openiser-test-%d" % os.getpid()
        manager = Manager(name)
        with variables(NOTIFY_SOCKET=manager.path), Daemon("ram:1M"):
            self.assertEqual(manager.get()["READY"], "1")
        manager.close()

    def test_bad_variables_are_ignored(self):
        for values in ({"NOTIFY_SOCKET": "relative"}, {"NOTIFY_SOCKET": "/" + "x" * 200}, {"NOTIFY_SOCKET": ""},
                       {"NOTIFY_SOCKET": "/no/such/socket"}, {"WATCHDOG_USEC": "x"}, {"WATCHDOG_USEC": "-1"},
                       {"LISTEN_FDS": "3", "LISTEN_PID": "1"}, {"LISTEN_FDS": "x"}):
            with variables(**values), Daemon("ram:1M") as d:
                self.assertEqual(d.stop(), 0, values)


class Relieved(Managed):
    """--takeover: the service goes on as another process."""

    def next(self, *args):
        return self.serve("--control", self.path("ctl"), *args, "ram:1M")

    def test_main_process(self):
        """The old process, which the manager knows, names the new one, and does not say
        that the service stops; the new one keeps the watchdog."""
        with variables(WATCHDOG_USEC="400000"):
            old = self.next()
        self.manager.until("WATCHDOG")
        new = self.next("--takeover")
        self.addCleanup(new.stop)
        self.assertEqual(old.proc.wait(patience(10)), 0)
        old.stop()
        named = self.manager.until("MAINPID")
        self.assertEqual(named, {"MAINPID": str(new.proc.pid)})
        ready = self.manager.until("READY")
        self.assertEqual(ready["MAINPID"], str(new.proc.pid))
        self.manager.until("WATCHDOG")
        self.assertNotIn("STOPPING", "".join(self.manager.seen))


    def test_waiting_for_the_next_one(self):
        """While the next iserd opens its units the old one gives signs of life; if that one
        ends after "go", the old one names itself as the main process again."""
        with variables(WATCHDOG_USEC="400000"):
            d = self.next()
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(patience(20))
            s.connect(self.path("ctl"))
            s.sendall(b'{"jsonrpc":"2.0","id":1,"method":"takeover"}\n')
            text = b""
            while not text.endswith(b"\n"):
                text += s.recv(65536)
            s.sendall(json.loads(text)["result"]["token"].encode() + b"\n")
            self.manager.drain()
            for _ in range(4):
                self.assertEqual(self.manager.get(), {"WATCHDOG": "1"})
            s.sendall(b"ready\n")
            self.assertEqual(self.manager.until("MAINPID"), {"MAINPID": str(os.getpid())})
            self.assertEqual(s.recv(3), b"go\n")
        ready = self.manager.until("READY")
        self.assertEqual(ready["MAINPID"], str(d.proc.pid))
        self.manager.until("WATCHDOG")
        self.assertEqual(d.stop(), 0)


class Watchdog(Managed):
    def test_signs_of_life_come_in_time(self):
        with self.serve("--workers", "3", "ram:1M", WATCHDOG_USEC="400000"):
            self.manager.until("WATCHDOG")
            began = time.monotonic()
            for _ in range(10):
                self.manager.until("WATCHDOG")
            self.assertGreater(time.monotonic() - began, 1)
            self.assertLess(time.monotonic() - began, patience(2))

    def test_another_process_is_meant(self):
        with self.serve("ram:1M", WATCHDOG_USEC="100000", WATCHDOG_PID="1"):
            self.manager.until("READY")
            time.sleep(0.5)
            self.manager.sock.setblocking(False)
            self.assertRaises(BlockingIOError, self.manager.sock.recv, 100)

    def test_one_worker_that_hangs_is_noticed(self):
        """A debugger stops all threads but the main thread: there is no sign of life until they go on."""
        with self.serve("--workers", "2", "ram:1M", WATCHDOG_USEC="200000") as d:
            self.manager.until("WATCHDOG")
            with self.stopped(d):
                time.sleep(0.3)
                self.manager.drain()
                time.sleep(1)
                self.manager.sock.setblocking(False)
                self.assertRaises(BlockingIOError, self.manager.sock.recv, 100)
            self.manager.until("WATCHDOG")


class Sockets(Folder):
    """Sockets that the service manager passes (sd_listen_fds(3))."""

    def start(self, socks, *args, pid=None, count=None):
        """Starts iserd with the sockets from descriptor 3 on; returns (process, log)."""
        log = open(self.path("log"), "w+b")
        self.addCleanup(log.close)
        # the shell replaces itself, so LISTEN_PID is the number of iserd
        script = "".join("exec %d<&%d;" % (40 + i, s.fileno()) for i, s in enumerate(socks))
        script += "".join("exec %d<&%d;" % (3 + i, 40 + i) for i in range(len(socks)))
        script += "export LISTEN_PID=%s LISTEN_FDS=%s;" % (pid or "$$", count or len(socks))
        script += 'exec "$@"'
        p = subprocess.Popen(["bash", "-c", script, "bash", ISERD, "serve", "--io", io()] + list(args),
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log,
                             pass_fds=[s.fileno() for s in socks])
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        self.addCleanup(p.stdout.close)
        return p, log

    def listener(self, address="127.0.0.1", family=socket.AF_INET, port=0):
        s = socket.socket(family, socket.SOCK_STREAM)
        self.addCleanup(s.close)
        s.bind((address, port))
        s.listen(16)
        return s

    def test_sockets_replace_the_default(self):
        """The default port stays free, and connections that were queued before the start are served."""
        a, b = self.listener(), self.listener("::1", socket.AF_INET6)
        early = socket.create_connection(a.getsockname())
        p, log = self.start([a, b], "ram:1M")
        urls = [p.stdout.readline().decode().strip() for _ in range(2)]
        self.assertEqual(urls[0].split("/")[2], "127.0.0.1:%d" % a.getsockname()[1])
        self.assertEqual(urls[1].split("/")[2], "[::1]:%d" % b.getsockname()[1])
        for url in urls:
            self.assertIn("1048576", run([ISER, "info", url]).text)
        self.assertNotIn("3260", text_of_log(log))
        early.close()
        # discovery reports the addresses of the sockets
        out = run([ISER, "ls", urls[0].rsplit("/", 2)[0]]).text
        self.assertIn("127.0.0.1:%d" % a.getsockname()[1], out)

    def test_listen_takes_the_socket_of_its_address(self):
        a, b = self.listener(), self.listener()
        name = "127.0.0.1:%d" % a.getsockname()[1]
        p, log = self.start([b, a], "--listen", name, "--listen", "127.0.0.1:0", "ram:1M")
        urls = [p.stdout.readline().decode().strip() for _ in range(3)]
        self.assertEqual(urls[0].split("/")[2], name)
        self.assertEqual(urls[2].split("/")[2], "127.0.0.1:%d" % b.getsockname()[1])
        for url in urls:
            run([ISER, "info", url])

    def test_sockets_after_a_takeover_that_failed(self):
        """The next iserd leaves: this one listens at the same sockets again."""
        a = self.listener()
        p, log = self.start([a], "--control", self.path("ctl"), "ram:1M")
        url = p.stdout.readline().decode().strip()
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(self.path("ctl"))
            s.sendall(b'{"jsonrpc":"2.0","id":1,"method":"takeover"}\n')
            s.shutdown(socket.SHUT_RD)
        until(lambda: "serving again" in text_of_log(log), "the end of the takeover")
        run([ISER, "info", url])

    def test_bad_sockets(self):
        plain = socket.socket()
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        unix = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        unix.bind(os.path.relpath(self.path("unix")))
        unix.listen(1)
        for s in (plain, udp, unix):
            p, log = self.start([s], "ram:1M")
            self.assertEqual(p.wait(patience(10)), 4)
            self.assertIn("descriptor 3: not a listening TCP socket; give ListenStream=", text_of_log(log))
            s.close()
        a = self.listener()
        p, log = self.start([a], "ram:1M", count=65)
        self.assertEqual(p.wait(patience(10)), 4)
        self.assertIn("65 sockets; pass at most 64", text_of_log(log))
        p, log = self.start([a], "ram:1M", count=2)
        self.assertEqual(p.wait(patience(10)), 4)
        self.assertRegex(text_of_log(log), "descriptor 4: (Bad file descriptor|Socket operation on non-socket)")

    @unittest.skipUnless(shutil.which("systemd-socket-activate"), "systemd-socket-activate is missing: install systemd")
    def test_systemd_socket_activate(self):
        port = quiet_port()
        p = subprocess.Popen(["systemd-socket-activate", "-l", "127.0.0.1:%d" % port, ISERD, "serve", "--io", io(),
                              "ram:1M"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            url = "iscsi://127.0.0.1:%d" % port

            def serves():
                return run([ISER, "ls", url], check=False).returncode == 0

            until(serves, "iserd does not serve")
        finally:
            p.terminate()
            p.wait()


class Credentials(Folder):
    """Secrets that the service manager passes (systemd.exec(5), LoadCredential=)."""

    def setUp(self):
        super().setUp()
        self.creds = self.path("creds")
        os.mkdir(self.creds, 0o500)
        self.write("alice", "correct horse battery")

    def write(self, name, text, mode=0o440):
        path = os.path.join(self.creds, name)
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, mode)  # as systemd leaves them: an ACL shows as permission of the group
        return path

    def attempt(self, name, **values):
        """Starts iserd with the secret; returns its status and messages."""
        with open(self.path("log"), "w+b") as log, variables(**values):
            p = subprocess.Popen([ISERD, "serve", "--io", io(), "--listen", "127.0.0.1:0", "--chap-user", "me",
                                  "--chap-secret-file", name, "ram:1M"], stdout=subprocess.PIPE, stderr=log)
            try:
                if p.stdout.readline():
                    return 0, ""
                return p.wait(patience(10)), text_of_log(log)
            finally:
                p.kill()
                p.wait()
                p.stdout.close()

    def test_by_name_and_by_path(self):
        with variables(CREDENTIALS_DIRECTORY=self.creds), \
                Daemon("--chap-user", "me", "--chap-secret-file", "credential:alice", "ram:1M") as d:
            good = d.url.replace("iscsi://", "iscsi://me%correct horse battery@")
            bad = d.url.replace("iscsi://", "iscsi://me%correct horse bottle@")
            run([ISER, "info", good])
            self.assertNotEqual(run([ISER, "info", bad], check=False).returncode, 0)
        self.assertEqual(self.attempt(os.path.join(self.creds, "alice"), CREDENTIALS_DIRECTORY=self.creds)[0], 0)

    def test_refusals(self):
        outside = self.path("outside")
        with open(outside, "w") as f:
            f.write("correct horse battery")
        os.chmod(outside, 0o440)
        self.write("open", "correct horse battery", 0o444)
        self.write("written", "correct horse battery", 0o460)
        os.symlink(outside, os.path.join(self.creds, "link"))
        here = {"CREDENTIALS_DIRECTORY": self.creds}
        for name, values, why in (
                ("credential:alice", {}, "there is no folder of credentials"),
                ("credential:alice", {"CREDENTIALS_DIRECTORY": "/no/such"}, "there is no folder of credentials"),
                ("credential:alice", {"CREDENTIALS_DIRECTORY": "creds"}, "there is no folder of credentials"),
                ("credential:bob", here, "No such file"),
                ("credential:", here, "Invalid argument"),
                ("credential:../outside", here, "Invalid argument"),
                ("credential:..", here, "is not a regular file"),
                ("credential:link", here, "others may read"),  # the file outside
                ("credential:open", here, "others may read"),
                ("credential:written", here, "others may read or change"),
                (outside, here, "others may read"),
                (os.path.join(self.creds, "alice"), {}, "others may read")):
            status, text = self.attempt(name, **values)
            self.assertEqual(status, 2, name)
            self.assertIn(why, text, name)
            self.assertNotIn("horse", text)


if __name__ == "__main__":
    main()
