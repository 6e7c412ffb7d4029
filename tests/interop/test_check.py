#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""iser-check against iserd, against tgt (whose faults are in check_tgt.txt), and against peers that are no targets."""
import json
import os
import signal
import socket
import subprocess
import threading
import time
import unittest
import xml.etree.ElementTree as ElementTree

from harness import ISER, ISER_CHECK, Daemon, Folder, Secrets, main, need, patience, run, sparse
from test_iser import Tgt

HERE = os.path.dirname(os.path.abspath(__file__))
BUILT = unittest.skipUnless(os.path.exists(ISER_CHECK), "iser-check is not built: install liblua5.4-dev")
FIRST = "7143-4.2.4-first-pdu-nop_out"


def check(*args, status=0, timeout=120):
    """Runs iser-check; returns its output."""
    done = run([ISER_CHECK, *args], timeout=timeout, check=False)
    if done.returncode != status:
        raise AssertionError("iser-check ended with %d:\n%s" % (done.returncode, done.text[-8000:]))
    return done.text


def counts(text):
    """{PASS: 3, ...} of the lines of the cases."""
    words = ("PASS", "FAIL", "WARN", "NOT SUPPORTED", "SKIPPED", "BROKEN")
    return {w: sum(line.startswith(w) for line in text.splitlines()) for w in words}


@BUILT
class Verdicts(Folder):
    def seconds(self):
        return str(int(patience(1)) + 1)

    def test_iserd(self):
        with Daemon("ram:64M") as daemon:
            text = check("--strict", "--destructive", "--timeout", self.seconds(), daemon.url)
        found = counts(text)
        self.assertEqual((found["FAIL"], found["BROKEN"]), (0, 0), text)
        self.assertGreater(found["PASS"], 350)

    def test_iserd_with_recovery(self):
        """ErrorRecoveryLevel 2 and several connections: no case lacks anything but CHAP."""
        with Daemon("--error-recovery-level", "2", "--max-connections", "4", "ram:64M") as daemon:
            text = check("--strict", "--destructive", "--timeout", self.seconds(), daemon.url)
        found = counts(text)
        self.assertEqual((found["FAIL"], found["BROKEN"], found["NOT SUPPORTED"]), (0, 0, 0), text)
        self.assertLess(found["SKIPPED"], 40, text)

    def test_iserd_with_chap(self):
        with Secrets() as secrets, Daemon(*secrets.args, "ram:64M") as daemon:
            text = check("--strict", "--destructive", "--timeout", self.seconds(), secrets.url(daemon.url))
        self.assertEqual(counts(text)["FAIL"], 0, text)

    @need("tgtd", "tgtadm")
    def test_tgt(self):
        """The known faults of tgt fail, and no other case: each case of the list proves that the suite can fail."""
        known = os.path.join(HERE, "check_tgt.txt")
        with open(known) as f:
            names = {line.split("#")[0].strip() for line in f} - {""}
        with Tgt(sparse(self.path("disk.img"), 64 << 20)) as tgt:
            text = check("--destructive", "--skip", "7143-11.8-wrong-offset,7143-11.8-too-long", "--known", known, "--timeout", self.seconds(), tgt.url, timeout=300)
        failed = {line.split()[1] for line in text.splitlines() if line.startswith("FAIL")}
        self.assertEqual(failed ^ names, set(), text)


@BUILT
class Program(Folder):
    """Options, reports and bad input."""

    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon("ram:64M")

    @classmethod
    def tearDownClass(cls):
        with cls.daemon:
            pass

    def test_iser_executes_it(self):
        if not os.path.exists(ISER):
            self.skipTest("iser is not built")
        self.assertIn("PASS          " + FIRST, run([ISER, "check", "--only", FIRST, self.daemon.url]).text)

    def test_list_and_explain(self):
        cases = json.loads(check("--list", "--json", "-"))["cases"]
        self.assertGreater(len(cases), 50)
        self.assertEqual(len({c["id"] for c in cases}), len(cases))
        for c in cases:
            self.assertTrue(c["what"].endswith("."), c)
        text = check("--explain", FIRST, self.daemon.url)
        for part in ("4.2.4 #4", 'c:send(kind, ', "1 --> nop_out", "1 <-- (closed)", "PASS"):
            self.assertIn(part, text)

    def test_coverage(self):
        """docs/check/coverage.md has the clauses of all cases: scripts/coverage ISER-CHECK --write."""
        done = run([os.path.join(HERE, "../../scripts/coverage"), ISER_CHECK], check=False)
        self.assertEqual((done.returncode, done.text), (0, ""))

    def test_reports(self):
        script = self.path("cases")
        os.mkdir(script)
        with open(script + "/a.lua", "w") as f:
            f.write('rfc "1"\n'
                    'case { section = "1", name = "bad", what = "x.", run = function(t) t:session():ping() fail("<%s>", "\\27[1m") end }\n'
                    'case { section = "1", name = "broken", what = "x.", run = function(t) t:nothing() end }\n'
                    'case { section = "1", name = "endless", what = "x.", run = function(t) while true do end end }\n'
                    'case { section = "1", name = "silent", what = "x.", run = function(t) t:session():expect("async") end }\n'
                    'case { section = "1", name = "none", what = "x.", run = function(t) unsupported("no") end }\n')
        results, junit, pcap = self.path("r.json"), self.path("r.xml"), self.path("pcap")
        os.mkdir(pcap)
        text = check("--cases", script, "--timeout", "1", "--json", results, "--junit", junit, "--pcap", pcap, self.daemon.url, status=1)
        self.assertIn("<\\x1b[1m>", text)
        with open(results) as f:
            found = {c["id"][4:]: c["verdict"] for c in json.load(f)["cases"]}
        self.assertEqual(found, {"bad": "FAIL", "broken": "BROKEN", "endless": "BROKEN", "silent": "FAIL", "none": "NOT SUPPORTED"})
        self.assertEqual(len(ElementTree.parse(junit).findall("testcase")), 5)
        known = self.path("known")
        with open(known, "w") as f:
            f.write("1-1-bad # a fault\n")
        check("--cases", script, "--only", "1-1-bad", "--known", known, self.daemon.url)
        check("--cases", script, "--only", "1-1-none", self.daemon.url, status=127)
        self.captured(pcap + "/1-1-bad.pcap")

    @need("tshark")
    def captured(self, path):
        out = subprocess.run(["tshark", "-r", path, "-Y", "iscsi", "-T", "fields", "-e", "iscsi.opcode"],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
        self.assertEqual([int(x, 0) for x in out.split()], [0x03, 0x23, 0x00, 0x20])

    def test_wrong_command_lines(self):
        for args in ((), ("a", "b"), ("http://x",), ("iscsi://h",), ("iscsi://h/iqn",), ("iscsi://h/iqn/x",), ("iscsi://[::1/iqn/0",),
                     ("--only", "nothing", self.daemon.url), ("--cases", "/nowhere", self.daemon.url), ("--jobs", "0", self.daemon.url)):
            self.assertIn("iser-check: ", check(*args, status=7))

    def test_no_connection(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.assertIn("no connection", check("iscsi://127.0.0.1:%d/iqn.x:y/0" % s.getsockname()[1], status=4))

    def test_peers_that_are_no_targets(self):
        """A peer that says nothing, one that closes, and one that sends garbage: each case ends."""
        for answer in (None, b"", b"HTTP/1.1 400 Bad Request\r\n\r\n" * 9, b"\x23" + b"\xff" * 300):
            with socket.socket() as s:
                s.bind(("127.0.0.1", 0))
                s.listen(200)
                kept = []

                def serve():
                    while True:
                        try:
                            c, _ = s.accept()
                        except OSError:
                            return
                        kept.append(c)
                        if answer is not None:
                            c.sendall(answer)
                            c.close()
                thread = threading.Thread(target=serve, daemon=True)
                thread.start()
                text = check("--timeout", "1", "--jobs", "64", "iscsi://127.0.0.1:%d/iqn.x:y/0" % s.getsockname()[1], status=1)
                s.shutdown(socket.SHUT_RDWR)
                thread.join()
                for c in kept:
                    c.close()
                self.assertEqual(counts(text)["BROKEN"], 0, text)

    def test_interruption(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen(200)
            proc = subprocess.Popen([ISER_CHECK, "--timeout", "600", "iscsi://127.0.0.1:%d/iqn.x:y/0" % s.getsockname()[1]],
                                    stdout=subprocess.PIPE, text=True)
            s.accept()[0].close()  # the probe
            s.accept()[0].close()
            time.sleep(0.2)
            proc.send_signal(signal.SIGINT)
            text = proc.communicate(timeout=patience(20))[0]
            self.assertEqual(proc.returncode, 130, text)
            self.assertIn("interrupted", text)


if __name__ == "__main__":
    main()
