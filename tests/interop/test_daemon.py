#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""iserd as a program: what it prints, how it fails, how it ends."""
import json
import os
import select
import signal
import socket
import stat
import tempfile
import threading
import time
import unittest

from harness import ISERCTL, ISERD, Daemon, Wire, main, patience, refused, run


class Start(unittest.TestCase):
    def test_urls(self):
        with Daemon("--name", "iqn.2026-01.org.example:x", "ram:8M",
                    "null:1G") as d:
            self.assertEqual(len(d.urls), 2)
            self.assertRegex(d.urls[0], r"^iscsi://127\.0\.0\.1:\d+/"
                             r"iqn\.2026-01\.org\.example:x/0$")
            self.assertTrue(d.urls[1].endswith("/1"))

    def test_two_listeners_one_of_them_ipv6(self):
        with Daemon("--listen", "127.0.0.1:0", "--listen", "[::1]:0",
                    "ram:8M") as d:
            self.assertEqual(len(d.urls), 2)
            self.assertTrue(d.urls[1].startswith("iscsi://[::1]:"))

    def test_idle_memory(self):
        with Daemon("ram:1G", "null:1T") as d:
            time.sleep(0.3)
            if d.sanitized():
                self.skipTest("a sanitizer takes memory of its own")
            self.assertLess(d.rss_kib(), 20 * 1024)

    def test_help_and_version(self):
        self.assertIn("usage: iserd serve", run([ISERD, "--help"]).text)
        self.assertRegex(run([ISERD, "--version"]).text, r"^iserd \d+\.")
        rules = run([ISERD, "serve", "--compat", "help"]).text.splitlines()
        self.assertEqual(len(rules), 6)
        self.assertRegex(rules[0], "^CM_HEADER +four bytes")


class Refusals(unittest.TestCase):
    def check(self, args, status, *words):
        text = refused(*args, status=status)
        self.assertTrue(text.startswith("iserd: "), text)
        self.assertEqual(text.count("\n"), 1, text)
        for word in words:
            self.assertIn(word, text)

    def test_no_lun(self):
        self.check([], 2, "no LUN")

    def test_missing_file(self):
        self.check(["/nowhere/disk.img"], 3, "/nowhere/disk.img", "no such file")

    def test_no_scsi_device(self):
        self.check(["scsi:/dev/nowhere"], 3, "/dev/nowhere", "no such device")
        self.check(["scsi:/dev/null"], 3, "/dev/null", "no SCSI device",
                   "/dev/sgN")
        self.check(["scsi:/etc/passwd"], 3, "/etc/passwd", "is no device")
        self.check(["--scsi-timeout", "0", "ram:1M"], 2, "--scsi-timeout")

    def test_directory(self):
        self.check(["/tmp"], 3, "/tmp")

    def test_empty_file(self):
        with tempfile.NamedTemporaryFile() as f:
            self.check([f.name], 3, f.name)

    def test_bad_sizes(self):
        self.check(["ram:"], 3, "no size")
        self.check(["ram:10X"], 3, "10X")
        self.check(["ram:100"], 3, "multiple")
        self.check(["null:0"], 3, "not 0")
        self.check(["ram:900000T"], 3, "memory")

    def test_port_in_use(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen()
            where = "127.0.0.1:%d" % s.getsockname()[1]
            self.check(["--listen", where, "ram:8M"], 4, where, "in use",
                       "choose another port")

    def test_bad_addresses(self):
        self.check(["--listen", "no.such.name", "ram:8M"], 2, "no.such.name")
        self.check(["--listen", "192.0.2.1:0", "ram:8M"], 4, "192.0.2.1")

    def test_bad_name(self):
        self.check(["--name", "disk", "ram:8M"], 2, "iqn.")

    def test_bad_secret(self):
        with tempfile.NamedTemporaryFile() as f:
            f.write(b"short\n")
            f.flush()
            self.check(["--chap-user", "me", "--chap-secret-file", f.name, "ram:8M"], 2, "12")

    def test_one_secret_for_both_ways(self):
        with tempfile.NamedTemporaryFile() as f:
            f.write(b"one secret for both\n")
            f.flush()
            self.check(["--chap-user", "me", "--chap-secret-file", f.name,
                        "--chap-mutual-user", "disk",
                        "--chap-mutual-secret-file", f.name, "ram:8M"], 2, "differ")


class End(unittest.TestCase):
    def test_signals(self):
        for sig in (signal.SIGTERM, signal.SIGINT):
            d = Daemon("ram:8M")
            self.assertEqual(d.stop(sig), 0)

    def test_asks_sessions_to_log_out(self):
        d = Daemon("ram:8M")
        w = Wire(d)
        w.login()
        d.proc.send_signal(signal.SIGTERM)
        op, head, _ = w.recv()
        self.assertEqual((op, head[36]), (0x32, 1))  # Async, logout request
        w.pdu(0x46, 0x80, rest=b"\0\0\0\0" + w.cmdsn.to_bytes(4, "big"))
        op, head, _ = w.recv()
        self.assertEqual((op, head[2]), (0x26, 0))
        w.expect_close()
        self.assertEqual(d.proc.wait(patience(10)), 0)
        d.stop()

    def test_ends_a_sanitize(self):
        """One that would take a minute goes on without its session, and ends
        with the daemon."""
        with Daemon("--sanitize-rate", "1M", "ram:64M") as d:
            w = Wire(d)
            self.assertEqual(w.login()[0], 0x23)
            w.command(b"\0" * 16)  # the unit attention
            self.assertEqual(w.recv()[1][3], 2)
            w.command(b"\x48\x81" + b"\0" * 6 + b"\x05" + b"\0" * 7, 0xa0, 5,
                      b"\x01\0\0\x01\xaa")
            self.assertEqual(w.recv()[1][3], 0)
            w.close()
            w = Wire(d)
            w.login()
            w.command(b"\0" * 16)
            w.recv()
            w.command(b"\0" * 16)
            op, head, data = w.recv()
            self.assertEqual((head[3], data[4] & 15, data[14:16]),
                             (2, 2, b"\x04\x1b"))
            w.close()
            self.assertEqual(d.stop(), 0)

    def test_drops_who_does_not_log_out(self):
        d = Daemon("ram:8M")
        w = Wire(d)
        w.login()
        begin = time.monotonic()
        d.proc.send_signal(signal.SIGTERM)
        w.expect_close()
        self.assertEqual(d.proc.wait(patience(12)), 0)
        self.assertLess(time.monotonic() - begin, patience(5))
        d.stop()

    def test_second_signal_ends_at_once(self):
        d = Daemon("ram:8M")
        w = Wire(d)
        w.login()
        d.proc.send_signal(signal.SIGTERM)
        w.recv()
        d.proc.send_signal(signal.SIGTERM)
        self.assertEqual(d.proc.wait(patience(1)), 1)
        d.stop()


class Control(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.dir.name, "control")

    def tearDown(self):
        self.dir.cleanup()

    def ask(self, *args, check=True):
        return run([ISERCTL, "--socket", self.path] + list(args), timeout=10, check=check)

    def test_methods(self):
        with Daemon("--control", self.path, "--workers", "2", "ram:8M") as d:
            mode = os.stat(self.path).st_mode
            self.assertEqual(stat.S_IMODE(mode), 0o600)
            w = Wire(d)
            w.login()
            status = json.loads(self.ask("--json", "status").text)
            self.assertEqual(len(status["sessions"]), 1)
            s = status["sessions"][0]
            self.assertEqual(s["initiator"],
                             "iqn.2026-01.org.example:wire")
            self.assertEqual(s["keys"]["InitialR2T"], "No")
            luns = json.loads(self.ask("--json", "luns").text)
            self.assertEqual(luns[0]["size"], 8 << 20)
            self.assertIn("debug", self.ask("log", "level=debug").text)
            self.assertIn("version", self.ask("version").text)
            self.assertIn("status", self.ask("methods").text)
            bad = self.ask("nonsense", check=False)
            self.assertEqual(bad.returncode, 1)
            self.assertIn("unknown method", bad.text)
            w.close()
        self.assertFalse(os.path.exists(self.path))

    def test_shutdown(self):
        d = Daemon("--control", self.path, "ram:8M")
        self.ask("shutdown")
        self.assertEqual(d.proc.wait(patience(10)), 0)
        d.stop()

    def test_shutdown_while_answers_are_owed(self):
        """Nothing is left of them (a sanitizer says so)."""
        line = b'{"jsonrpc":"2.0","id":1,"method":"status"}\n'
        with Daemon("--control", self.path, "--workers", "3", "ram:8M") as d:
            all = [socket.socket(socket.AF_UNIX) for _ in range(8)]
            for s in all:
                s.connect(self.path)
                s.sendall(line * 500)
            # each is owed answers as long as it reads some of them
            readers = [threading.Thread(target=self.drain, args=(s,)) for s in all]
            for t in readers:
                t.start()
            self.ask("shutdown")
            self.assertEqual(d.proc.wait(patience(10)), 0, d.messages())
            for t in readers:
                t.join()

    def drain(self, s):
        with s:
            try:
                while s.recv(65536):
                    pass
            except ConnectionResetError:
                pass

    def test_nobody_there(self):
        done = self.ask("status", check=False)
        self.assertEqual(done.returncode, 3)
        self.assertIn(self.path, done.text)

    def test_garbage(self):
        with Daemon("--control", self.path, "ram:8M"):
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(self.path)
                s.sendall(b"{nonsense\n[]\n{\"jsonrpc\":\"2.0\"}\n")
                f = s.makefile()
                self.assertEqual(json.loads(f.readline())["error"]["code"],
                                 -32700)
                for _ in range(2):
                    self.assertEqual(
                        json.loads(f.readline())["error"]["code"], -32600)
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(self.path)
                try:
                    s.sendall(b"x" * 200000)
                    self.assertEqual(s.recv(1), b"")
                except OSError:
                    pass
            self.ask("version")

    def test_client_goes_while_it_is_owed_answers(self):
        line = b'{"jsonrpc":"2.0","id":1,"method":"methods"}\n'
        with Daemon("--control", self.path, "ram:8M"):
            for _ in range(3):
                with socket.socket(socket.AF_UNIX) as s:
                    s.setblocking(False)
                    s.connect(self.path)
                    asked = 0
                    deadline = time.monotonic() + 1
                    while asked < 2000 and time.monotonic() < deadline:
                        try:
                            s.send(line)
                            asked += 1
                        except BlockingIOError:
                            time.sleep(0.01)
                    time.sleep(0.3)  # all is read, and answers wait
                self.ask("version")

    def ask_and_ask(self, s, line):
        """Requests, until no more are taken for a second: how many."""
        s.setblocking(False)
        s.connect(self.path)
        many, sent, last = line * 1000, 0, time.monotonic()
        while sent < 4 << 20 and time.monotonic() < last + 1:
            try:
                sent += s.send(many[sent % len(line):])
                last = time.monotonic()
            except BlockingIOError:
                time.sleep(0.01)
        return sent // len(line)

    def test_client_that_reads_no_answers(self):
        """It is asked for no more; nothing is lost if it reads after all."""
        for method in ("methods", "status"):
            line = (b'{"jsonrpc":"2.0","id":1,"method":"%s"}\n' %
                    method.encode())
            with self.subTest(method), socket.socket(socket.AF_UNIX) as s, \
                    Daemon("--control", self.path, "ram:8M"):
                asked = self.ask_and_ask(s, line)
                self.assertLess(asked * len(line), 1 << 20)
                self.ask("version")
                s.settimeout(patience(10))
                f = s.makefile()
                for _ in range(asked):
                    self.assertIn("result", json.loads(f.readline()))

    def test_client_that_reads_no_answers_is_dropped(self):
        line = b'{"jsonrpc":"2.0","id":1,"method":"methods"}\n'
        with Daemon("--control", self.path, "ram:8M") as d, \
                socket.socket(socket.AF_UNIX) as s:
            self.ask_and_ask(s, line)
            poll = select.poll()
            poll.register(s, 0)  # POLLHUP is told always
            self.assertTrue(poll.poll(20000))
            self.ask("version")
            self.assertIn("does not read its answers", d.messages())

    def test_too_many_clients(self):
        with Daemon("--control", self.path, "ram:8M"):
            all = [socket.socket(socket.AF_UNIX) for _ in range(16)]
            for s in all:
                s.connect(self.path)
            for _ in range(20):  # it is refused before or after it asks
                done = self.ask("version", check=False)
                self.assertEqual(done.returncode, 1)
                self.assertIn("too many clients", done.text)
            all.pop().close()
            for _ in range(100):
                if not self.ask("version", check=False).returncode:
                    break
            else:
                self.fail("a place is not free again")
            for s in all:
                s.close()

    def test_stale_socket_is_replaced(self):
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(self.path)
        with Daemon("--control", self.path, "ram:8M"):
            self.ask("version")
            self.assertIn("another iserd",
                          refused("--control", self.path, "ram:8M", status=1))


if __name__ == "__main__":
    main()
