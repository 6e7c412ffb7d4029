#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""iser bench with verification, rates, mixes and records, and the evaluation (bench/) on a
few very short repetitions: its results and its report, not its figures."""
import base64
import html.parser
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import zlib

from harness import ISER, ISERD, Daemon, main, patience, run

TREE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
DIFFERS = 64


def temporary():
    return tempfile.TemporaryDirectory(dir=os.getcwd())


def bench(url, *words, check=True):
    return run([ISER, "bench", "--ramp", "0", *words, url], check=check)


def decoded(line):
    """Returns (digits, lowest, counts by index) of a histogram: the encoding V2 of
    HdrHistogram, compressed."""
    packed = base64.b64decode(line)
    cookie, length = struct.unpack(">II", packed[:8])
    assert cookie == 0x1c849314 and length == len(packed) - 8
    plain = zlib.decompress(packed[8:])
    cookie, length, _, digits, lowest = struct.unpack(">IIIIQ", plain[:24])
    assert cookie == 0x1c849313 and length == len(plain) - 40
    at, index, counts = 40, 0, {}
    while at < len(plain):
        z = shift = 0
        while True:
            b = plain[at]
            at, z, shift = at + 1, z | (b & 0x7f) << shift, shift + 7
            if b < 0x80:
                break
        v = (z >> 1) ^ -(z & 1)
        if v < 0:
            index -= v
        else:
            if v:
                counts[index] = v
            index += 1
    return digits, lowest, counts


class Verify(unittest.TestCase):
    def test_mixed_sizes_over_each_transport(self):
        with Daemon("ram:4M") as daemon:
            for query in "", "?transport=iser", "?connections=1&immediate_data=no&initial_r2t=yes":
                report = json.loads(bench(
                    daemon.urls[0] + query, "--json", "--verify", "--yes-overwrite", "--rw",
                    "randrw", "--bs", "512:50,4k:30,64k:20", "--connections", "2", "--depth",
                    "16", "--amount", "16M").text)
                self.assertEqual(report["verify"]["mismatches"], 0)
                self.assertGreater(report["verify"]["checked_bytes"], 1 << 20)
                self.assertEqual([s["percent"] for s in report["sizes"]], [50, 30, 20])

    def test_damaged_and_misplaced_blocks(self):
        with temporary() as folder:
            path = folder + "/disk"
            with open(path, "wb") as f:
                f.truncate(1 << 20)
            words = "--verify", "--bs", "4k", "--amount", "1M"
            with Daemon(path) as daemon:
                bench(daemon.urls[0], *words, "--rw", "write", "--yes-overwrite")
                bench(daemon.urls[0], *words, "--rw", "read")
            with open(path, "r+b") as f:
                f.seek(700000)
                f.write(b"\xff")
            with Daemon(path) as daemon:
                done = bench(daemon.urls[0], *words, "--rw", "read", "--depth", "1", check=False)
                self.assertEqual(done.returncode, DIFFERS)
                self.assertIn("byte offset 700000: the data are damaged", done.text)
            with open(path, "r+b") as f:
                f.seek(8192)
                block = f.read(512)
                f.seek(4096)
                f.write(block)
            with Daemon(path) as daemon:
                done = bench(daemon.urls[0], *words, "--rw", "read", "--depth", "1", check=False)
                self.assertEqual(done.returncode, DIFFERS)
                self.assertIn("the block has the data of byte offset 8192", done.text)

    def test_a_unit_that_drops_writes(self):
        with Daemon("null:4M") as daemon:
            done = bench(daemon.urls[0], "--verify", "--rw", "randrw", "--bs", "4k",
                         "--amount", "64M", "--yes-overwrite", check=False)
            self.assertEqual(done.returncode, DIFFERS)
            self.assertIn("no pattern of iser bench", done.text)


class Records(unittest.TestCase):
    def test_rate_series_and_histogram(self):
        with temporary() as folder, Daemon("ram:4M") as daemon:
            series, log = folder + "/series", folder + "/log"
            report = json.loads(bench(
                daemon.urls[0], "--json", "--rate", "2000", "--arrivals", "random", "--time",
                "0.5", "--series", series, "--histogram", log, "--interval", "0.1").text)
            self.assertEqual(report["rate"], 2000)
            operations = report["read"]["operations"]
            self.assertTrue(0 < operations + report["not_begun"] < 2000)
            with open(series) as f:
                lines = f.read().splitlines()
            self.assertIn("read_p99_us", lines[0])
            self.assertGreaterEqual(len(lines), 3)
            self.assertEqual({len(line.split(",")) for line in lines}, {11})
            with open(log) as f:
                found = [line for line in f if line.startswith("Tag=read,")]
            counted = 0
            for line in found:
                digits, lowest, counts = decoded(line.rsplit(",", 1)[1])
                self.assertEqual((digits, lowest), (2, 1))
                counted += sum(counts.values())
            self.assertEqual(counted, operations)

    def test_results_so_far_after_a_signal(self):
        with temporary() as folder, Daemon("ram:4M") as daemon:
            series = folder + "/series"
            p = subprocess.Popen([ISER, "bench", "--json", "--ramp", "0", "--time", "60",
                                  "--rate", "1000", "--series", series, "--interval", "0.05",
                                  daemon.urls[0]], stdout=subprocess.PIPE)
            end = time.monotonic() + patience(10)
            while not os.path.exists(series) or os.path.getsize(series) < 400:
                self.assertLess(time.monotonic(), end)
                time.sleep(0.05)
            p.send_signal(signal.SIGINT)
            report = json.loads(p.communicate(timeout=patience(10))[0])
            self.assertFalse(report["complete"])
            self.assertGreater(report["read"]["operations"], 0)

    def test_bad_values(self):
        with temporary() as folder, Daemon("ram:4M") as daemon:
            for words, text in ((("--bs", "4k:50,8k:40"), "whose sum is 100"),
                                (("--bs", "100"), "multiple of the block size"),
                                (("--bs", "8M"), "give a smaller size"),
                                (("--bs", ","), "whose sum is 100"),
                                (("--rate", "0"), "--rate"),
                                (("--series", folder + "/no/file"), "cannot write the file")):
                done = bench(daemon.urls[0], *words, check=False)
                self.assertNotEqual(done.returncode, 0, words)
                self.assertIn(text, done.text)


class Keys(unittest.TestCase):
    def test_negotiated(self):
        with Daemon("ram:4M") as daemon:
            text = run([ISER, "info", daemon.urls[0] + "?initial_r2t=yes&immediate_data=no&"
                        "first_burst_length=8192&max_burst_length=65536&"
                        "max_recv_data_segment_length=4096"]).text
            keys = dict(line.split(None, 1) for line in text.splitlines() if len(line.split()) == 2)
            self.assertEqual([keys[k] for k in (
                "InitialR2T", "ImmediateData", "FirstBurstLength", "MaxBurstLength",
                "MaxRecvDataSegmentLength")], ["Yes", "No", "8192", "65536", "4096"])

    def test_crc_of_mpa(self):
        """RFC 5044 §7.1: the flag C of the MPA frames says who asks for the CRC."""
        for option, key, asked, answered in (
                ("optional", "no", False, False), ("always", "no", False, True),
                ("optional", "yes", True, True)):
            with Daemon("--mpa-crc", option, "ram:4M") as daemon:
                seen = self.frames_of(daemon.urls[0], "mpa_crc=" + key)
                self.assertEqual([bool(f[16] & 0x40) for f in seen][:1], [asked])
                self.assertEqual(bool((seen[0][16] | seen[1][16]) & 0x40), answered or asked)

    def frames_of(self, url, key):
        """Returns the first bytes of both directions of a connection that reads."""
        port = int(url.split(":")[2].split("/")[0])
        with socket.create_server(("127.0.0.1", 0)) as listener:
            seen = [b"", b""]

            def forward(n, a, b):
                while data := a.recv(65536):
                    seen[n] = (seen[n] + data)[:64]
                    b.sendall(data)
                b.shutdown(socket.SHUT_WR)

            def serve():
                a = listener.accept()[0]
                b = socket.create_connection(("127.0.0.1", port))
                back = threading.Thread(target=forward, args=(1, b, a))
                back.start()
                forward(0, a, b)
                back.join()
                a.close()
                b.close()

            thread = threading.Thread(target=serve)
            thread.start()
            through = url.replace(":%d/" % port, ":%d/" % listener.getsockname()[1])
            bench("iser" + through[5:] + "?" + key, "--verify", "--rw", "randrw",
                  "--yes-overwrite", "--amount", "1M")
            thread.join(patience(10))
        return seen


class Page(html.parser.HTMLParser):
    """Counts elements, and checks that they are closed in order."""

    OPEN = {"meta", "line", "circle", "polygon", "polyline", "path", "rect", "br"}

    def __init__(self, text):
        super().__init__()
        self.stack, self.count, self.outside = [], {}, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1
        self.outside += [v for k, v in attrs if k in ("src", "href") and not v.startswith("#")]
        if tag not in self.OPEN:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1

    def handle_endtag(self, tag):
        assert self.stack and self.stack[-1] == tag, (tag, self.stack)
        self.stack.pop()


class Evaluation(unittest.TestCase):
    def test_short_run(self):
        build = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(ISERD))))
        with temporary() as folder:
            run([sys.executable, os.path.join(TREE, "bench/run.py"), "--build", build,
                 "--case", "depth 128 over 4", "--rounds", "2", "--seconds", "0.05",
                 "--disk", "1048576", "--out", folder], timeout=120)
            with open(folder + "/results.json") as f:
                results = json.load(f)
            self.assertTrue(results["complete"])
            self.assertEqual(results["failures"], [])
            rows = results["rows"]
            self.assertEqual({r["lane"] for r in rows}, {
                "iSCSI", "iSCSI, both digests", "iSER", "iSCSI, one session (MC/S)"})
            for r in rows:
                self.assertGreater(min(r["figures"]), 0)
                self.assertIn("p99_us", r["metrics"])
            self.check_report(folder)

    def test_without_ceph(self):
        """The group of Ceph images says what is missing, and the run is complete."""
        build = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(ISERD))))
        with temporary() as folder:
            done = run([sys.executable, os.path.join(TREE, "bench/run.py"), "--build", build, "--case", "rbd", "--out", folder],
                       env=dict(os.environ, PATH=folder), timeout=60)
            self.assertRegex(done.text, "rbd is not measured: .*install (ceph-mon|librbd-dev)")
            with open(folder + "/results.json") as f:
                results = json.load(f)
            self.assertEqual((results["complete"], results["failures"], results["rows"]), (True, [], []))

    def test_report_of_stored_results(self):
        """Of each group a row, also with missing values."""
        with temporary() as folder:
            rows = [{"group": g, "case": c, "lane": lane, "unit": unit, "x": x,
                     "figures": [100.0 * (i + 1), 110.0 * (i + 1)],
                     "metrics": {"p99_us": [5.0, None], "client_cpu_us": [1.0, 2.0],
                                 "target_cpu_us": [1.5, 2.5]}, "disturbed": 1}
                    for g, c, unit, x in (
                        ("peers", "4K randread QD1", "iops",
                         {"rw": "randread", "size": 4096, "depth": 1}),
                        ("transport", "4K <b>", "iops",
                         {"rw": "randread", "size": 4096, "depth": 8}),
                        ("transport", "64K read QD8", "iops",
                         {"rw": "read", "size": 65536, "depth": 8}),
                        ("distance", "a", "iops", {"rw": "write", "size": 65536, "depth": 1,
                                                   "rtt": 1, "axis": "data"}),
                        ("distance", "b", "iops", {"rw": "write", "size": 65536, "depth": 1,
                                                   "rtt": 10, "axis": "data"}),
                        ("other", "idle", "mib", {}))
                    for i, lane in enumerate(("iSCSI", "iSCSI, both digests", "iSER"))]
            groups = [{"name": g, "title": g, "note": "", "seconds": 1} for g in
                      ("peers", "transport", "distance", "other")]
            results = {"format": 1, "date": "2026-11-24 12:00 UTC", "full": False, "rows": rows,
                       "groups": groups, "complete": False, "seconds_per_repetition": 0.1,
                       "failures": [{"group": "mixed", "reason": "<none>"}],
                       "machine": {"cpu": None, "cpus": 2, "kernel": "6", "server_cpu": None,
                                   "client_cpu": None, "congestion_control": "reno",
                                   "versions": {"commit": "abc", "tgt": "1"}}}
            with open(folder + "/results.json", "w") as f:
                json.dump(results, f)
            run([sys.executable, os.path.join(TREE, "bench/report.py"), folder])
            page = self.check_report(folder)
            self.assertGreaterEqual(page.count["svg"], 6)
            self.assertNotIn("b", page.count)
            with open(folder + "/tables.md") as f:
                self.assertIn("| load | unit | iSCSI |", f.read())

    def check_report(self, folder):
        with open(folder + "/report.html") as f:
            page = Page(f.read())
        self.assertEqual(page.stack, [])
        self.assertEqual(page.outside, [])
        self.assertGreater(page.count["svg"], 0)
        self.assertGreater(page.count["td"], 8)
        return page


if __name__ == "__main__":
    main()
