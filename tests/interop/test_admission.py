#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Hostile connections from many loopback addresses: a well-behaved initiator at
another address must be able to log in within a few seconds."""
import json
import os
import resource
import socket
import subprocess
import tempfile
import time
import unittest

from harness import (ISER, ISERCTL, Daemon, Secrets, Wire, main, patience, run,
                     until)

HONEST = "127.0.7.7"
DISCOVERY = ("InitiatorName=iqn.2026-01.org.example:hostile",
             "SessionType=Discovery")
NORMAL = ("InitiatorName=iqn.2026-01.org.example:hostile",
          "SessionType=Normal")


def setUpModule():
    """Raises the limit of open files: the sockets of both ends count."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Gate(Daemon):
    """An iserd with a control socket."""

    def __init__(self, *args, **kw):
        self.dir = tempfile.TemporaryDirectory()
        self.control = os.path.join(self.dir.name, "control")
        super().__init__("--control", self.control, *args, **kw)

    def counts(self):
        return json.loads(run([ISERCTL, "--socket", self.control, "--json",
                               "status"]).text)["admission"]

    def cpu(self):
        """Returns the CPU time of iserd in seconds."""
        with open("/proc/%d/stat" % self.proc.pid) as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def __exit__(self, *why):
        super().__exit__(*why)
        self.dir.cleanup()


def connect(daemon, source):
    s = socket.socket()
    s.settimeout(patience(10))
    s.bind((source, 0))
    s.connect(daemon.address)
    return s


class From(Wire):
    """A raw initiator at its own address."""

    def __init__(self, daemon, source, keys=NORMAL):
        self.KEYS = keys
        self.daemon = daemon
        self.sock = connect(daemon, source)
        self.cmdsn = self.itt = 1


def half_login(daemon, source):
    """Sends the first Login Request only."""
    w = From(daemon, source)
    data = b"".join(k.encode() + b"\0" for k in NORMAL +
                    ("TargetName=" + daemon.target,))
    w.put(Wire.bhs(0x43, 0x04, dsl=len(data)), data)  # no T bit
    return w


class Admission(unittest.TestCase):
    def flood(self, daemon, make, sources, each):
        """Opens connections; ignores refusals and continues."""
        held = []
        for _ in range(each):
            for source in sources:
                try:
                    held.append(make(daemon, source))
                except (OSError, EOFError, AssertionError):
                    pass
        return held

    def log_in(self, daemon, limit=10):
        """Logs in to full feature phase, long before the 15 s after which silent
        connections are closed."""
        began = time.monotonic()
        while True:
            try:
                w = From(daemon, HONEST, (
                    "InitiatorName=iqn.2026-01.org.example:honest",
                    "SessionType=Normal"))
                op, head, _ = w.login()
                self.assertEqual((op, head[36:38]), (0x23, b"\0\0"))
                w.pdu(0x40, data=b"here")
                self.assertEqual(w.recv()[2], b"here")
                w.close()
                break
            except (OSError, EOFError):
                if time.monotonic() - began > limit:
                    raise
        self.assertLess(time.monotonic() - began, limit)

    def close(self, held):
        for s in held:
            s.close()

    def mix(self, make, sources, each, *options):
        with Gate("--workers", "2", *options, "ram:8M") as d:
            held = self.flood(d, make, sources, each)
            self.log_in(d)
            self.close(held)

    def test_alone_on_its_worker(self):
        """The deadlines of a connection need no other connection."""
        with Gate("--workers", "1", "--data-timeout", "2", "ram:8M") as d:
            w = Wire(d)
            self.addCleanup(w.close)
            w.login()
            w.ready()
            w.command(b"\x2a" + bytes(7) + b"\x10" + bytes(7), 0xa0, 8192)
            self.assertEqual(w.recv()[0], 0x31)  # R2T, never answered
            with self.assertRaises((OSError, EOFError)):
                while w.recv():
                    pass
            d.wait_for("no data came for a WRITE for 2 s")

    def test_silent_of_one_address(self):
        self.mix(connect, ["127.0.0.2"], 400)

    def test_silent_of_many_addresses(self):
        self.mix(connect, ["127.0.1.%d" % i for i in range(1, 201)], 5)

    def test_half_logins_of_two_addresses(self):
        self.mix(half_login, ["127.0.0.2", "127.0.0.3"], 100)

    def test_slow_bytes(self):
        def slow(daemon, source):
            s = connect(daemon, source)
            s.send(b"\x43\x81")
            return s
        self.mix(slow, ["127.0.0.2", "127.0.0.3", "127.0.0.4"], 100)

    def test_mpa_that_never_goes_on(self):
        def mpa(daemon, source):
            s = connect(daemon, source)
            s.send(b"MPA ID Req Frame")
            return s
        self.mix(mpa, ["127.0.0.2", "127.0.0.3"], 100)

    def test_discovery_sessions(self):
        def discovery(daemon, source):
            w = From(daemon, source, DISCOVERY)
            w.login()
            return w
        with Gate("--max-discovery", "20:8", "ram:8M") as d:
            held = self.flood(d, discovery,
                              ["127.0.1.%d" % i for i in range(1, 11)], 20)
            w = From(d, HONEST, DISCOVERY)
            op, head, _ = w.login()
            self.assertEqual((op, head[36:38]), (0x23, b"\0\0"))
            self.log_in(d)
            self.close(held + [w])

    def test_discovery_sessions_end(self):
        with Gate("--discovery-time", "1", "ram:8M") as d:
            w = From(d, HONEST, DISCOVERY)
            w.login()
            w.sock.settimeout(patience(10))
            w.expect_close()
            d.wait_for("discovery session lasted too long")
            w.close()

    def test_sessions_of_one_address(self):
        def session(daemon, source):
            w = From(daemon, source)
            op, head, _ = w.login()
            return w
        with Gate("--max-sessions", "20:8", "ram:8M") as d:
            held = []
            for i in range(8):
                w = From(d, "127.0.0.2", (
                    "InitiatorName=iqn.2026-01.org.example:%d" % i,
                    "SessionType=Normal"))
                self.assertEqual(w.login()[1][36:38], b"\0\0")
                held.append(w)
            w = From(d, "127.0.0.2", (
                "InitiatorName=iqn.2026-01.org.example:8",
                "SessionType=Normal"))
            self.assertEqual(w.login()[1][36:38], b"\3\2")  # out of resources
            w.close()
            # a session of the same nexus replaces the old session
            w = From(d, "127.0.0.2", (
                "InitiatorName=iqn.2026-01.org.example:3",
                "SessionType=Normal"))
            self.assertEqual(w.login()[1][36:38], b"\0\0")
            self.log_in(d)
            self.close(held + [w])

    def test_unparseable_bytes_end_at_once(self):
        with Gate("ram:8M") as d:
            for first in (b"G", b"\x01", b"\x16\x03\x01", b"\xff", b"\0"):
                s = connect(d, HONEST)
                began = time.monotonic()
                s.send(first)
                try:
                    self.assertEqual(s.recv(1), b"")
                except ConnectionResetError:
                    pass
                self.assertLess(time.monotonic() - began, patience(2))
                s.close()
            d.wait_for("neither a Login Request nor an MPA Request", 5)

    def test_failed_chap_delays_one_initiator(self):
        """A wrong secret keeps its initiator waiting, and no other one of the same address."""
        with Secrets() as s, Gate(*s.args, "--penalty", "10:60", "ram:8M") as d:
            def info(url, name, status):
                done = run([ISER, "info", "-i", "iqn.2026-01.org.example:" + name, url], check=False)
                self.assertEqual(done.returncode == 0, status == 0, done.text)
                return done.text
            wrong = s.url(d.url, "wrong horse battery")
            for _ in range(2):
                self.assertIn("Authentication failure", info(wrong, "a", 1))
            third = subprocess.Popen([ISER, "info", "-i", "iqn.2026-01.org.example:a", wrong], stderr=subprocess.DEVNULL)
            self.addCleanup(third.wait)
            d.wait_for("CHAP failed again: this account and initiator are refused at this address for 10 s")
            self.assertIsNone(third.poll())
            info(s.url(d.url), "b", 0)
            # right or wrong, it is not checked
            self.assertIn("Service unavailable", info(s.url(d.url), "a", 1))
            c = d.counts()
            self.assertEqual(c["chap_failures"], 3)
            self.assertGreaterEqual(c["refused"]["penalty"], 1)
            until(lambda: run([ISER, "info", "-i", "iqn.2026-01.org.example:a", s.url(d.url)],
                              check=False).returncode == 0, "a login", 20)
            self.assertEqual(d.counts()["addresses_failed_chap"], 0)

    def test_rate_of_one_address(self):
        with Gate("--login-rate", "2", "ram:8M") as d:
            held = []
            for _ in range(30):
                held.append(connect(d, "127.0.0.2"))
            self.log_in(d)
            until(lambda: d.counts()["refused"]["rate"] >= 10, "refusals")
            self.close(held)

    def test_few_descriptors(self):
        """With limits of 64 descriptors: iserd accepts as many connections as fit,
        does not loop on accept, and accepts the administrator."""
        with Gate("--login-rate", "0", "ram:8M",
                    files=64) as d:
            held = self.flood(d, connect,
                              ["127.0.1.%d" % i for i in range(1, 101)], 10)
            self.log_in(d)
            c = d.counts()
            self.assertLess(c["limits"]["startups_full"], 64)
            self.assertIn("open files is enough for", d.messages())
            before = d.cpu()
            time.sleep(0.5)
            self.assertLess(d.cpu() - before, 0.3)
            self.close(held)

    def test_memory_of_a_flood_is_given_back(self):
        def half(daemon, source):
            w = From(daemon, source)
            w.send(Wire.bhs(0x43, 0x81, dsl=4096) + b"x" * 4000)
            return w
        with Gate("--workers", "2", "--login-rate",
                    "0", "--max-startups", "900:1:1000:100", "ram:8M") as d:
            self.log_in(d)
            before = d.rss_kib()
            sources = ["127.0.1.%d" % i for i in range(1, 11)]
            for _ in range(3):
                held = self.flood(d, half, sources, 90)
                most = d.rss_kib()
                self.close(held)
                until(lambda: d.counts()["startups"] == 0, "the end")
            until(lambda: d.rss_kib() < before + 3000, lambda:
                  "%d KiB before, %d KiB in the flood, %d KiB after" % (
                      before, most, d.rss_kib()), 30)
            c = d.counts()
            self.assertGreaterEqual(c["connections"], 2000)

    def test_five_thousand(self):
        """Opens 5,000 connections at once from 50 addresses, with sessions and discovery."""
        def any_of(daemon, source):
            any_of.n += 1
            if any_of.n % 5 == 0:
                w = From(daemon, source, DISCOVERY)
                w.login()
                return w
            if any_of.n % 5 == 1:
                return half_login(daemon, source)
            s = connect(daemon, source)
            if any_of.n % 5 == 2:
                s.close()
            return s
        any_of.n = 0
        with Gate("--workers", "2", "ram:8M") as d:
            held = self.flood(d, any_of,
                              ["127.0.1.%d" % i for i in range(1, 51)], 100)
            self.log_in(d)
            c = d.counts()
            self.assertGreaterEqual(c["connections"], 5000)
            self.assertLessEqual(c["startups"], 512)
            self.assertLessEqual(c["discovery"], 128)
            self.close(held)


if __name__ == "__main__":
    main()
