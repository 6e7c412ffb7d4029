#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""iserd as a program: its output, its errors, its end."""
import json
import os
import pwd
import select
import signal
import socket
import stat
import tempfile
import threading
import time
import unittest

from harness import (ISER, ISERCTL, ISERD, Daemon, Secrets, Wire, main, patience,
                     quiet_port, refused, run, until)


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
            self.assertLess(d.rss_kib(), 20 * 1024)

    def test_help_and_version(self):
        self.assertIn("usage: iserd serve", run([ISERD, "--help"]).text)
        self.assertRegex(run([ISERD, "--version"]).text, r"^iserd \d+\.")
        rules = run([ISERD, "serve", "--compat", "help"]).text.splitlines()
        self.assertEqual(len(rules), 7)
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
        self.check(["scsi:/dev/null"], 3, "/dev/null", "not a SCSI device",
                   "/dev/sgN")
        self.check(["scsi:/etc/passwd"], 3, "/etc/passwd", "not a device")
        self.check(["--scsi-timeout", "0", "ram:1M"], 2, "--scsi-timeout")
        self.check(["--data-timeout", "0", "ram:1M"], 2, "--data-timeout")

    def test_directory(self):
        self.check(["/tmp"], 3, "/tmp")

    def test_one_image_twice(self):
        """Under the same name, another name, or a link of either kind."""
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "disk")
            with open(path, "wb") as f:
                f.truncate(1 << 20)
            os.link(path, path + ".hard")
            os.symlink(path, path + ".soft")
            for other in (path, d + "/./disk", path + ".hard", path + ".soft"):
                self.check(["ram:1M", path, other], 3, other, "already backstore lun1", "--shared")
                with Daemon("--shared", path, other):
                    pass

    def test_containers(self):
        """iserd serves the bytes of a container and warns."""
        heads = {"qcow2": b"QFI\xfb\0\0\0\3", "vmdk": b"KDMV\1", "vhdx": b"vhdxfile",
                 "vpc": b"conectix", "vdi": b"<<< VM Disk".ljust(64) + b"\x7f\x10\xda\xbe",
                 "raw": b"QFI"}
        with tempfile.NamedTemporaryFile(delete=False) as f:
            self.addCleanup(os.unlink, f.name)
            for name, head in heads.items():
                f.seek(0)
                f.write(head)
                f.truncate(1 << 20)
                f.flush()
                with Daemon(f.name) as d:
                    said = "qemu-img convert -f %s -O raw" % name in d.messages()
                    self.assertEqual(said, name != "raw", d.messages())

    def test_empty_file(self):
        with tempfile.NamedTemporaryFile() as f:
            self.check([f.name], 3, f.name)

    def test_bad_sizes(self):
        self.check(["ram:"], 3, "not a size")
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

    def test_port_of_a_killed_process(self):
        """The start waits for a port that becomes free shortly after: Linux closes the sockets of a killed process late
        if io_uring had requests for them."""
        with socket.socket() as s:
            s.bind(("127.0.0.1", quiet_port()))
            s.listen()
            timer = threading.Timer(0.3, s.close)
            timer.start()
            with Daemon("--listen", "127.0.0.1:%d" % s.getsockname()[1], "ram:8M") as d:
                self.assertIn("127.0.0.1", d.url)
            timer.join()

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

    def check_secret(self, path, *words):
        for option in ("chap", "chap-mutual"):
            more = [] if option == "chap" else ["--chap-user", "you", "--chap-secret-file",
                                                self.good]
            self.check(["--%s-user" % option, "me", "--%s-secret-file" % option, path, *more,
                        "ram:8M"], 2, path, *words)

    def test_secret_that_other_users_can_read(self):
        """The rules are those of key files, but for a link: what it leads to counts, if no other user can change the link."""
        with tempfile.TemporaryDirectory() as d:
            path, self.good = os.path.join(d, "secret"), os.path.join(d, "good")
            for name, text in ((path, "of twelve bytes"), (self.good, "another secret")):
                with open(name, "w") as f:
                    os.fchmod(f.fileno(), 0o600)
                    f.write(text)
            for mode in (0o640, 0o604, 0o620, 0o644):
                os.chmod(path, mode)
                self.check_secret(path, "others may read or change it")
            os.symlink(path, path + ".link")
            self.check_secret(path + ".link", "others may read or change it")
            os.chmod(path, 0o600)
            shared = os.path.join(d, "shared")
            os.mkdir(shared)
            os.chmod(shared, 0o777)
            os.symlink(path, os.path.join(shared, "link"))
            self.check_secret(os.path.join(shared, "link"), "is a symbolic link that another user could change")
            os.mkfifo(path + ".pipe", 0o600)
            self.check_secret(path + ".pipe", "not a regular file")
            if os.geteuid() == 0:
                os.chown(path, 54321, -1)
                self.check_secret(path, "belongs to another user")

    def test_no_core_dump_with_a_secret(self):
        with tempfile.NamedTemporaryFile() as f:
            f.write(b"of twelve bytes\n")
            f.flush()
            with Daemon("--chap-user", "me", "--chap-secret-file", f.name, "ram:8M") as d:
                with open("/proc/%d/limits" % d.proc.pid) as limits:
                    self.assertRegex(limits.read(), r"Max core file size +[01] ")

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
        """A SANITIZE that would take a minute continues without its session, and ends
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

    def test_drops_those_that_do_not_log_out(self):
        """All at the same time."""
        d = Daemon("ram:8M")
        silent = []
        for n in range(6):
            w = Wire(d)
            w.ISID = b"\x80\x12\x34\x56\0" + bytes([n])
            w.login()
            silent.append(w)
        begin = time.monotonic()
        d.proc.send_signal(signal.SIGTERM)
        for w in silent:
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


class StoodStill(unittest.TestCase):
    """A process that was stopped, as in a virtual machine that was suspended."""

    def test_times_begin_anew(self):
        """The data of a WRITE come for longer than --data-timeout, since iserd stands still meanwhile."""
        with Daemon("--data-timeout", "2", "ram:8M") as d:
            w = Wire(d)
            self.addCleanup(w.close)
            w.login()
            w.ready()
            w.command(b"\x2a" + bytes(7) + b"\x10" + bytes(7), 0xa0, 8192)
            op, head, _ = w.recv()
            self.assertEqual(op, 0x31)
            d.proc.send_signal(signal.SIGSTOP)
            time.sleep(5)
            data = w.bhs(5, 0x80, 8192, itt=int.from_bytes(head[16:20], "big"),
                         rest=head[20:24] + bytes(20)) + bytes(8192)
            w.send(data[:5000])
            d.proc.send_signal(signal.SIGCONT)
            time.sleep(0.5)
            w.send(data[5000:])
            op, head, _ = w.recv()
            self.assertEqual((op, head[3]), (0x21, 0))


class Signals(unittest.TestCase):
    def test_hup_usr1_usr2_pipe_do_not_end_it(self):
        with Daemon("ram:8M") as d:
            for s in (signal.SIGHUP, signal.SIGUSR2, signal.SIGPIPE,
                      signal.SIGUSR1):
                for _ in range(3):
                    d.proc.send_signal(s)
            d.wait_for("status: 0 sessions")
            d.wait_for("SIGHUP: there are no CHAP secrets")
            w = Wire(d)
            w.login()
            d.proc.send_signal(signal.SIGUSR1)
            d.wait_for("status: 1 sessions")
            w.close()

    def test_hup_reads_the_chap_secrets_again(self):
        """Logins of every worker use the new secrets; a bad file changes nothing."""
        with Secrets("--workers", "3", "--discovery-auth", "ram:8M") as s, Daemon(*s.args) as d:
            def logs_in(mine, target, command="info"):
                # connections go to the workers in turn
                codes = {run([ISER, command, s.url(d.url, mine, target)], check=False).returncode
                         for _ in range(3)}
                self.assertEqual(len(codes), 1, codes)
                return codes == {0}

            def write(option, text):
                with open(os.path.join(s.dir.name, option), "w") as f:
                    f.write(text)

            def hup(line):
                d.proc.send_signal(signal.SIGHUP)
                d.wait_for("SIGHUP: " + line)

            old, new = "correct horse battery", "another horse battery"
            self.assertTrue(logs_in(old, "staple in the attic"))
            write("chap", new + "\n")
            write("chap-mutual", "nail in the cellar\n")
            self.assertTrue(logs_in(old, "staple in the attic"))
            hup("new logins use")
            self.assertTrue(logs_in(new, "nail in the cellar"))
            self.assertTrue(logs_in(new, "nail in the cellar", "ls"))
            self.assertFalse(logs_in(new, "staple in the attic"))
            write("chap", "short")
            hup("the CHAP secrets are unchanged")
            self.assertTrue(logs_in(new, "nail in the cellar"))
            os.remove(os.path.join(s.dir.name, "chap-mutual"))
            hup("the CHAP secrets are unchanged")
            self.assertTrue(logs_in(new, "nail in the cellar"))

    def test_term_after_others_ends_in_order(self):
        d = Daemon("ram:8M")
        d.proc.send_signal(signal.SIGHUP)
        self.assertEqual(d.stop(), 0)

    def test_shutdown_requests_logouts(self):
        """RFC 7143 §11.9.1, event 1; a discovery session ends without a request."""
        with Daemon("ram:8M") as d:
            w, disc = Wire(d), Wire(d)
            w.login()
            disc.KEYS = (disc.KEYS[0], "SessionType=Discovery")
            disc.login()
            d.proc.send_signal(signal.SIGTERM)
            op, head, _ = w.recv()
            self.assertEqual((op, head[36]), (0x32, 1))
            disc.expect_close()
            w.pdu(0x46, flags=0x80)
            self.assertEqual(w.recv()[0], 0x26)
            w.expect_close()
            self.assertEqual(d.proc.wait(patience(10)), 0)
            for s in (w, disc):
                s.close()

    def test_silent_connections_do_not_delay_the_end(self):
        for workers in "1", "3":
            d = Daemon("--workers", workers, "ram:8M")
            silent = [Wire(d) for _ in range(20)]
            until(lambda: len(os.listdir("/proc/%d/fd" % d.proc.pid)) > 20,
                  "connections")
            began = time.monotonic()
            self.assertEqual(d.stop(), 0)
            self.assertLess(time.monotonic() - began, patience(2))
            for w in silent:
                w.close()

    def test_a_discovery_session_logs_out_at_once(self):
        with Daemon("ram:8M") as d:
            w = Wire(d)
            w.KEYS = (w.KEYS[0], "SessionType=Discovery")
            w.login()
            began = time.monotonic()
            w.pdu(0x46, flags=0x80)
            self.assertEqual(w.recv()[0], 0x26)
            w.expect_close()
            self.assertLess(time.monotonic() - began, patience(1))
            w.close()


class Log(unittest.TestCase):
    LINE = r"(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d notice START: "

    def test_dates(self):
        with Daemon("ram:8M") as d:
            d.wait_for("START: serving")
            self.assertRegex(d.messages(), self.LINE)

    def test_a_flood_does_not_hide_others(self):
        with Daemon("ram:8M") as d:
            for i in range(300):
                with socket.socket() as s:
                    s.bind(("127.0.0.2", 0))
                    s.connect(d.address)
                    s.send(b"x")
                    try:
                        s.recv(1)
                    except ConnectionResetError:
                        pass
            with socket.socket() as s:
                s.bind(("127.0.0.3", 0))
                s.connect(d.address)
                s.send(b"x")
                d.wait_for("127.0.0.3:")
            self.assertLess(d.messages().count("127.0.0.2:"), 100)
            d.wait_for("more lines suppressed from 127.0.0.2")


class Listen(unittest.TestCase):
    def test_port_alone_is_at_the_loopback(self):
        port = quiet_port()
        for form in ("%d", ":%d", "127.0.0.1:%d"):
            with Daemon("--listen", form % port, "ram:8M") as d:
                self.assertEqual(d.portal, "127.0.0.1:%d" % port)
                self.assertNotIn("without CHAP", d.messages())

    def test_other_machines_without_chap_are_warned_of(self):
        with Daemon("--listen", "0.0.0.0:0", "ram:8M") as d:
            self.assertRegex(d.messages(), r"0\.0\.0\.0:\d+ is open to other "
                             "machines without CHAP.*--chap-user")
        with Secrets() as s, Daemon("--listen", "0.0.0.0:0", *s.args,
                                    "ram:8M") as d:
            self.assertNotIn("without CHAP", d.messages())

    def test_odd_addresses(self):
        for form in ("4262x", "127.1", "localhost", "*", "[127.0.0.1]:1",
                     "::1:x"):
            self.assertIn("not a numeric address",
                          refused("--listen", form, "ram:8M", status=2))
        self.assertIn("its port is above 65535", refused("--listen", "70000", "ram:8M", status=2))


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
        """All memory of pending answers is freed (checked by a sanitizer)."""
        line = b'{"jsonrpc":"2.0","id":1,"method":"status"}\n'
        with Daemon("--control", self.path, "--workers", "3", "ram:8M") as d:
            all = [socket.socket(socket.AF_UNIX) for _ in range(8)]
            for s in all:
                s.connect(self.path)
                s.sendall(line * 500)
            # each client has pending answers as long as it reads some of them
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
            self.ask("version")

    def test_control_json_rpc(self):
        """JSON-RPC 2.0 §4: ids, notifications; RFC 8259 §4: members twice."""
        def line(more):
            return ('{"jsonrpc":"2.0","method":"version"%s}\n' % more).encode()
        with Daemon("--control", self.path, "ram:8M"), \
                socket.socket(socket.AF_UNIX) as s:
            s.settimeout(patience(10))
            s.connect(self.path)
            f = s.makefile()
            for id in ('"a"', "7", "-1.5", "null"):
                s.sendall(line(',"id":' + id))
                self.assertEqual(json.loads(f.readline())["id"],
                                 json.loads(id))
            for id in ("{}", "[1]", "true"):
                s.sendall(line(',"id":' + id))
                answer = json.loads(f.readline())
                self.assertEqual(answer["error"]["code"], -32600)
                self.assertIsNone(answer["id"])
            s.sendall(line(',"id":1,"id":2'))
            self.assertEqual(json.loads(f.readline())["error"]["code"], -32700)
            # a notification has no response, right or wrong
            s.sendall(line("") + line(',"params":{"x":1}') + line(',"id":9'))
            self.assertEqual(json.loads(f.readline())["id"], 9)

    def test_control_long_line(self):
        with Daemon("--control", self.path, "ram:8M"), \
                socket.socket(socket.AF_UNIX) as s:
            s.settimeout(patience(20))
            s.connect(self.path)
            f = s.makefile()
            begin = b'{"jsonrpc":"2.0","id":1,"method":"version"'
            s.sendall(begin + b" " * (1 << 20) + b"}\n")
            self.assertIn("result", json.loads(f.readline()))
            try:
                for _ in range(40):
                    s.sendall(b" " * (1 << 20))
            except OSError:
                pass
            self.assertIn("32 MiB", json.loads(f.readline())["error"]["message"])

    def test_client_goes_while_it_is_owed_answers(self):
        line = b'{"jsonrpc":"2.0","id":1,"method":"methods"}\n'
        with Daemon("--control", self.path, "ram:8M"):
            for _ in range(3):
                with socket.socket(socket.AF_UNIX) as s:
                    self.ask_and_ask(s, line)
                self.ask("version")

    def ask_and_ask(self, s, line):
        """Sends requests until iserd accepts none for a second; returns their number."""
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
        """iserd accepts no more requests; no answer is lost if the client reads later."""
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
            poll.register(s, 0)  # poll always reports POLLHUP
            self.assertTrue(poll.poll(20000))
            self.ask("version")
            self.assertIn("does not read its answers", d.messages())

    def test_idle_clients_do_not_lock_out(self):
        """Sixteen clients without a request, or with half a request: the client that
        is idle for the longest time is dropped; an active client stays."""
        with Daemon("--control", self.path, "ram:8M") as d:
            all = [socket.socket(socket.AF_UNIX) for _ in range(16)]
            for i, s in enumerate(all):
                s.connect(self.path)
                if i % 2:
                    s.send(b'{"jsonrpc')
            line = b'{"jsonrpc":"2.0","id":1,"method":"version"}\n'
            for _ in range(40):
                all[0].sendall(line)
                self.assertIn(b"result", all[0].recv(65536))
                self.ask("version")
            self.assertIn("asked longest ago", d.messages())
            all[0].sendall(line)
            self.assertIn(b"result", all[0].recv(65536))
            for s in all:
                s.close()

    def test_busy_clients_do_not_lock_out(self):
        """Sixteen clients that do not read their answers: root and the owner still connect."""
        line = b'{"jsonrpc":"2.0","id":1,"method":"methods"}\n'
        with Daemon("--control", self.path, "ram:8M"):
            all = [socket.socket(socket.AF_UNIX) for _ in range(16)]
            for s in all:
                s.setblocking(False)
                s.connect(self.path)
                try:
                    while True:
                        s.send(line * 100)
                except BlockingIOError:
                    pass
            for _ in range(20):
                self.ask("version")
            for s in all:
                s.close()

    def test_control_without_descriptors(self):
        """The spare descriptor, or that of an idle client, serves the administrator."""
        with Daemon("--control", self.path, "--login-rate", "0",
                    "--max-startups", "1000:1:1000:1000", "ram:8M",
                    files=64) as d:
            idle = [socket.socket(socket.AF_UNIX) for _ in range(10)]
            for s in idle:
                s.connect(self.path)
            held = [Wire(d) for _ in range(100)]
            for _ in range(5):
                self.ask("version")
            for s in idle + held:
                s.close()

    def test_unknown_parameters_and_values(self):
        """JSON-RPC 2.0 §5.1: -32602, and the message names them."""
        rows = (("status", '{"x":1}', "x: unknown parameter"),
                ("luns", '{"lun":0}', "lun: unknown parameter; luns takes none"),
                ("log", '{"lev":"info"}', "lev: unknown parameter; log takes [level=LEVEL]"),
                ("log", '{"level":"loud"}', "level=loud: must be one of error"),
                ("log", '{"level":3}', "level=3: must be one of error"),
                ("log", '{"level":null}', "level: not a string"),
                ("eject", '{"lun":"lun0","force":"maybe"}', "force=maybe: must be one of no, yes"),
                ("eject", '{"lun":"lun0","forc":"yes"}', "forc"),
                ("eject", '{"lun":0}', "lun=0: not the name of a backstore, and numbers of units change at a restart; "
                 "give the backstore, now lun0, or TARGET/LUN"),
                ("resize", '{"lun":"lan0"}', "backstore lan0: no such backstore; did you mean lun0?"),
                ("resize", '{"lun":"iqn.x:y/0"}', "lun iqn.x:y/0: no such target"),
                ("port", '{"id":"1x","state":"offline"}', "id=1x: must be a number from 1 to 65535"),
                ("version", '[1]', "params: must be an object"),
                ("log", '"info"', "params: must be an object"))
        with Daemon("--control", self.path, "ram:8M"), \
                socket.socket(socket.AF_UNIX) as s:
            s.connect(self.path)
            f = s.makefile()
            for method, params, text in rows:
                s.sendall(('{"jsonrpc":"2.0","id":7,"method":"%s","params":'
                           '%s}\n' % (method, params)).encode())
                answer = json.loads(f.readline())
                self.assertEqual(answer["error"]["code"], -32602, method)
                self.assertIn(text, answer["error"]["message"])
            self.assertIn("notice", self.ask("log").text)

    def test_every_method_of_the_schema_responds(self):
        methods = json.loads(run([ISERD, "schema"]).text)["methods"]
        self.assertGreater(len(methods), 10)
        with Daemon("--control", self.path, "ram:8M"), \
                socket.socket(socket.AF_UNIX) as s:
            s.connect(self.path)
            f = s.makefile()
            for m in methods:
                if m["name"] == "shutdown":  # test_shutdown
                    continue
                s.sendall(('{"jsonrpc":"2.0","id":1,"method":"%s"}\n'
                           % m["name"]).encode())
                answer = json.loads(f.readline())
                need = [p["name"] for p in m["params"] if not p["optional"]]
                if need:
                    self.assertIn("%s: missing; give %s=" % (need[0], need[0]),
                                  answer["error"]["message"])
                elif m["name"] in ("apply", "save"):  # there is no file
                    self.assertIn("path: missing", answer["error"]["message"])
                else:
                    self.assertIn("result", answer)

    def test_missing_directory_is_made(self):
        """/run is empty after a start of the machine."""
        self.path = os.path.join(self.dir.name, "run", "control")
        with Daemon("--control", self.path, "ram:8M"):
            self.ask("version")
            folder = os.stat(os.path.dirname(self.path))
            self.assertEqual((stat.S_IMODE(folder.st_mode), folder.st_uid), (0o750, os.geteuid()))
        self.assertEqual(os.listdir(os.path.dirname(self.path)), [])
        far = os.path.join(self.dir.name, "no", "such", "control")
        self.assertIn("--control %s: No such file or directory; make its directory first" % far,
                      refused("--control", far, "ram:8M", status=1))

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_made_directory_belongs_to_the_user(self):
        """The user of --user removes the socket at the end."""
        os.chmod(self.dir.name, 0o755)
        self.path = os.path.join(self.dir.name, "run", "control")
        with Daemon("--user", "nobody", "--control", self.path, "ram:8M"):
            self.ask("version")
            self.assertEqual(os.stat(os.path.dirname(self.path)).st_uid, pwd.getpwnam("nobody").pw_uid)
        self.assertEqual(os.listdir(os.path.dirname(self.path)), [])

    def test_stale_socket_is_replaced(self):
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(self.path)
        with Daemon("--control", self.path, "ram:8M"):
            self.ask("version")
            self.assertIn("another iserd",
                          refused("--control", self.path, "ram:8M", status=1))


if __name__ == "__main__":
    main()
