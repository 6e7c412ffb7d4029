#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The HTTP endpoint of --metrics: the numbers, Prometheus, and bad clients."""
import base64
import glob
import hashlib
import http.client
import json
import os
import pty
import re
import select
import socket
import stat
import subprocess
import tempfile
import time
import unittest
from urllib.parse import quote

from harness import (Daemon, Secrets, Wire, io, main, need, over, patience, quiet_port, refused,
                     run, until, ISER, ISERCTL, ISERD)
from test_config import Configured

OPEN = "application/openmetrics-text; version=1.0.0"


class Numbers(Daemon):
    """An iserd with --metrics at a free port."""

    def __init__(self, *args, metrics="127.0.0.1:0", **kw):
        super().__init__("--metrics", metrics, *args, **kw)
        self.find_http()

    def find_http(self):
        self.wait_for("numbers at ")
        where = re.search(r"numbers at (\S+)", self.messages()).group(1)
        self.http_path = where if where.startswith("/") else None
        self.http = where.split("/")[2] if where.startswith("http") else None

    def connect(self):
        """Returns a raw connection to the HTTP endpoint."""
        if self.http_path:
            s = socket.socket(socket.AF_UNIX)
            s.connect(self.http_path)
        else:
            host, port = self.http.rsplit(":", 1)
            s = socket.create_connection((host.strip("[]"), int(port)))
        s.settimeout(patience(10))
        return s

    def cpu(self):
        """Returns the CPU time of worker 0 in seconds."""
        with open("/proc/%d/task/%d/schedstat" % (self.proc.pid, self.proc.pid)) as f:
            return int(f.read().split()[0]) / 1e9

    def get(self, path, method="GET", **headers):
        """Returns (status, headers, body)."""
        c = http.client.HTTPConnection("127.0.0.1")
        c.sock = self.connect()
        c.request(method, path, headers={k.replace("_", "-"): v for k, v in headers.items()})
        r = c.getresponse()
        got = r.status, dict(r.getheaders()), r.read().decode()
        c.close()
        return got

    def samples(self):
        """Returns {sample with its labels: value} of /metrics."""
        found = {}
        for line in self.get("/metrics")[2].splitlines():
            if not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                found[name] = float(value)
        return found


class FileNumbers(Configured, Numbers):
    """The same with a configuration file."""

    def __init__(self, path, urls):
        Configured.__init__(self, path, urls)
        self.find_http()


def raw(daemon, data, limit=None):
    """Sends bytes; returns what the endpoint sends until it closes the connection."""
    s = daemon.connect()
    if limit:
        s.settimeout(limit)
    got = b""
    try:
        s.sendall(data)
        while True:
            piece = s.recv(65536)
            if not piece:
                break
            got += piece
    except (ConnectionResetError, BrokenPipeError):
        pass
    finally:
        s.close()
    return got


class Endpoint(unittest.TestCase):
    def test_counts(self):
        """Commands, bytes, errors and latencies are those of the commands that were sent."""
        with Numbers("--workers", "2", "ram:8M", "null:8M") as d:
            w = Wire(d)
            w.login()
            w.ready()
            before = d.samples()
            for _ in range(5):
                self.assertEqual(w.read10(0, 8)[0], 0)
            self.assertEqual(w.write10(0, bytes(1024))[0], 0)
            self.assertEqual(w.read10(1 << 30, 1)[0], 2)  # LBA OUT OF RANGE
            now = d.samples()

            def grew(name):
                return now[name] - before.get(name, 0)
            read = 'iserd_lun_latency_seconds_count{backstore="lun0",op="read"}'
            self.assertEqual(grew(read), 6)
            self.assertEqual(grew('iserd_lun_latency_seconds_count{backstore="lun0",op="write"}'), 1)
            self.assertEqual(grew('iserd_lun_bytes_total{backstore="lun0",op="read"}'), 5 * 8 * 512)
            self.assertEqual(grew('iserd_lun_bytes_total{backstore="lun0",op="write"}'), 1024)
            self.assertEqual(grew('iserd_lun_errors_total{backstore="lun0",reason="check_condition"}'), 1)
            self.assertEqual(now['iserd_lun_bytes_total{backstore="lun1",op="read"}'], 0)
            last = [v for k, v in now.items() if k.startswith(
                'iserd_lun_latency_seconds_bucket{backstore="lun0",op="read"')]
            self.assertEqual(last, sorted(last))  # cumulative
            self.assertEqual(last[-1], now[read])
            one = 'target="%s",transport="tcp"' % d.target
            self.assertEqual(grew("iserd_target_commands_total{%s}" % one), 7)
            self.assertEqual(grew("iserd_target_errors_total{%s}" % one), 1)
            self.assertEqual(now["iserd_target_sessions{%s}" % one], 1)
            mine = [k for k in now if k.startswith("iserd_session_commands_total")]
            self.assertEqual(len(mine), 1)
            self.assertIn('initiator="iqn.2026-01.org.example:wire"', mine[0])
            w.close()
            # the counters of a session that has ended stay with its target
            until(lambda: d.samples()["iserd_target_sessions{%s}" % one] == 0, "session ended")
            after = d.samples()
            self.assertEqual(after["iserd_target_commands_total{%s}" % one],
                             now["iserd_target_commands_total{%s}" % one])
            self.assertFalse([k for k in after if k.startswith("iserd_session_commands_total")])
            self.assertGreater(after['iserd_transport_received_bytes_total{kind="iscsi"}'], 1024)

    def test_targets(self):
        """Several targets: each has its own counters; a backstore in both has one sum."""
        with tempfile.TemporaryDirectory() as folder:
            config = os.path.join(folder, "iserd.yaml")
            name = "iqn.2026-01.org.example:"
            with open(config, "w") as f:
                f.write("version: 1\n"
                        "daemon: {metrics: '127.0.0.1:0', io: %s}\n"
                        "backstores: {both: {store: 'ram:8M'}, own: {store: 'ram:4M'}}\n"
                        "portal-groups: {front: {listen: ['127.0.0.1:0']}}\n"
                        "targets:\n"
                        "  %sone: {auth-group: any, portal-groups: [front], luns: {0: both}}\n"
                        "  %stwo: {auth-group: any, portal-groups: [front], luns: {3: both, 0: own},\n"
                        "    maps: [{initiators: iqn.2026-01.org.example:else, luns: {5: own}}]}\n"
                        % (io(), name, name))
            with FileNumbers(config, 3) as d:
                for target, lun in (("one", 0), ("two", 3), ("two", 0)):
                    run([ISER, "bench", "--amount", "64K",
                         "iscsi://%s/%s%s/%d" % (d.portal, name, target, lun)])
                now = d.samples()
                self.assertEqual([k for k in now if k.startswith("iserd_lun_info")],
                                 ['iserd_lun_info{backstore="both",store="ram:8M"}', 'iserd_lun_info{backstore="own",store="ram:4M"}'])
                self.assertEqual({k for k in now if k.startswith("iserd_lun_map_info")},
                                 {'iserd_lun_map_info{backstore="%s",target="%s%s",map="%s",lun="%d"}' % (b, name, t, m, n)
                                  for b, t, m, n in (("both", "one", "", 0), ("own", "two", "", 0), ("both", "two", "", 3), ("own", "two", "1", 5))})
                self.assertEqual(now["iserd_lun_maps_left_out"], 0)
                for backstore, reads in (("both", 32), ("own", 16)):
                    self.assertEqual(now['iserd_lun_latency_seconds_count{backstore="%s",op="read"}' % backstore], reads)
                places = {l["backstore"]: l["luns"] for l in json.loads(d.get("/status.json")[2])["luns"]}
                self.assertEqual(places, {"both": [name + "one/0", name + "two/3"], "own": [name + "two/0", name + "two/1/5"]})
                one = now['iserd_target_read_bytes_total{target="%sone",transport="tcp"}' % name]
                two = now['iserd_target_read_bytes_total{target="%stwo",transport="tcp"}' % name]
                self.assertGreater(two, 1.8 * one)

    def test_depth(self):
        """A WRITE that waits for its data is in progress at its LUN."""
        with Numbers("ram:8M") as d:
            w = Wire(d)
            w.login()
            w.ready()
            w.command(b"\x2a\0" + bytes(5) + b"\0\x08\0" + bytes(6), 0xa0, 4096)
            self.assertEqual(w.recv()[0], 0x31)  # R2T
            now = d.samples()
            self.assertEqual(now['iserd_lun_queue_depth{backstore="lun0"}'], 1)
            self.assertEqual(now['iserd_tasks{waits_for="data"}'], 1)
            self.assertEqual(now['iserd_transport_r2ts_total{kind="iscsi"}'], 1)
            self.assertEqual(now['iserd_target_solicited_writes_total{target="%s",'
                                 'transport="tcp"}' % d.target], 1)
            w.close()

    def test_logins(self):
        """Refused logins by status."""
        with Secrets() as s, Numbers(*s.args, "ram:8M") as d:
            wrong = s.url(d.url, "wrong wrong wrong")
            self.assertNotEqual(run([ISER, "info", wrong], check=False).returncode, 0)
            nowhere = s.url(d.url).replace(d.target, "iqn.2026-01.org.example:none")
            self.assertNotEqual(run([ISER, "info", nowhere], check=False).returncode, 0)
            run([ISER, "info", s.url(d.url)])
            text = d.get("/metrics")[2]
            self.assertRegex(text, r'iserd_logins_refused_total\{status="0201",[^}]*\} 1\n')
            self.assertRegex(text, r'iserd_logins_refused_total\{status="0203",[^}]*\} [1-9]')
            self.assertRegex(text, r"iserd_chap_failures_total 1\n")
            self.assertRegex(text, r"iserd_logins_total [1-9]")
            self.assertNotIn("correct horse", text + d.get("/status.json")[2])

    def test_iser(self):
        """The counters of RDMA."""
        with Numbers("ram:8M") as d:
            run([ISER, "bench", "--amount", "1M", over(d.url, "rdma")])
            now = d.samples()
            kind = '{kind="iser, RDMA from the start"}'
            self.assertGreaterEqual(now["iserd_rdma_writes_total" + kind], 256)
            self.assertGreaterEqual(now["iserd_rdma_written_bytes_total" + kind], 1 << 20)
            self.assertEqual(now["iserd_rdma_acknowledgements_total" + kind], 0)
        with Numbers("--error-recovery-level", "2", "ram:8M") as d:
            run([ISER, "hash", over(d.url, "rdma") + "&error_recovery_level=2&max_burst_length=65536"])
            now = d.samples()
            # of 8 bursts in each READ of 512 KiB all but the last one, as far as RDMA Reads are possible
            self.assertGreaterEqual(now["iserd_rdma_acknowledgements_total" + kind], 16)
            self.assertLessEqual(now["iserd_rdma_acknowledgements_total" + kind], 16 * 7)

    def test_health(self):
        with Numbers("ram:8M") as d:
            for path, text in (("/healthz", "ok\n"), ("/readyz", "ready\n")):
                status, headers, body = d.get(path)
                self.assertEqual((status, body), (200, text))
                self.assertEqual(headers["Cache-Control"], "no-store")
            self.assertEqual(d.samples()["iserd_ready"], 1)
            w = Wire(d)  # holds up the shutdown
            w.login()
            d.proc.terminate()
            d.wait_for("shutting down")
            self.assertEqual(d.get("/readyz")[0], 503)
            self.assertEqual(d.get("/healthz")[0], 200)
            w.close()
            self.assertEqual(d.proc.wait(patience(12)), 0)

    def test_health_of_workers(self):
        """/healthz waits for each worker: no answer if the process hangs."""
        with Numbers("--workers", "3", "ram:8M") as d:
            d.proc.send_signal(19)  # SIGSTOP
            try:
                self.assertEqual(raw_timeout(d, b"GET /healthz HTTP/1.0\r\n\r\n"), b"")
            finally:
                d.proc.send_signal(18)
            self.assertEqual(d.get("/healthz")[0], 200)

    def test_head(self):
        with Numbers("ram:8M") as d:
            status, headers, body = d.get("/metrics", "HEAD")
            self.assertEqual((status, body), (200, ""))
            self.assertGreater(int(headers["Content-Length"]), 1000)

    def test_status(self):
        with Numbers("ram:8M") as d:
            w = Wire(d)
            w.login()
            w.ready()
            status, headers, body = d.get("/status.json")
            self.assertEqual((status, headers["Content-Type"]), (200, "application/json"))
            j = json.loads(body)
            self.assertEqual(j["luns"][0]["store"], "ram:8M")
            self.assertEqual(j["sessions"][0]["keys"]["InitialR2T"], "No")
            self.assertGreater(j["luns"][0]["other"]["commands"], 0)
            w.close()

    def test_control(self):
        """iserctl stats gives the numbers of /status.json."""
        with tempfile.TemporaryDirectory() as folder:
            control = os.path.join(folder, "control")
            with Numbers("--control", control, "--workers", "2", "ram:8M") as d:
                run([ISER, "bench", "--amount", "1M", d.url])
                j = json.loads(run([ISERCTL, "--socket", control, "--json", "stats"]).text)
                self.assertEqual(j["luns"][0]["read"]["commands"], 256)
                self.assertEqual(j["luns"][0]["read"]["bytes"], 1 << 20)
                found = sum(int(b.split(":")[1]) for b in
                            j["luns"][0]["read"]["buckets"].split())
                self.assertEqual(found, 256)
                self.assertLessEqual(j["luns"][0]["read"]["p50_us"], j["luns"][0]["read"]["p99_us"])
                self.assertEqual(j.keys(), json.loads(d.get("/status.json")[2]).keys())
                # clients that leave before the answer
                for _ in range(50):
                    s = socket.socket(socket.AF_UNIX)
                    s.connect(control)
                    s.sendall(b'{"jsonrpc":"2.0","id":1,"method":"stats"}\n' * 3)
                    s.close()
                run([ISERCTL, "--socket", control, "stats"])

    def test_top(self):
        """iserctl top: blocks of lines in a pipe; a screen with keys on a terminal."""
        with tempfile.TemporaryDirectory() as folder:
            control = os.path.join(folder, "control")
            top = [ISERCTL, "--socket", control, "top", "interval=1"]
            with Numbers("--control", control, "ram:8M", "null:8M") as d:
                load = subprocess.Popen([ISER, "bench", "--time", "600", d.urls[1]],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                try:
                    until(lambda: d.samples().get(
                        'iserd_lun_latency_seconds_count{backstore="lun1",op="read"}', 0) > 100, "load")
                    lines = run(top + ["count=2"]).text.split("\n")
                    self.assertEqual(len(lines), 2 * 5 + 1)
                    self.assertRegex(lines[2], r"^lun1 null:8M +[1-9][0-9.]*[kM]? +[1-9][0-9.]*[KMG] ")
                    self.assertRegex(lines[3], r"^lun0 ram:8M +0 +0 +0 +- +- +0 +0$")
                    lines = run(top + ["count=1", "sort=name"]).text.split("\n")
                    self.assertTrue(lines[2].startswith("lun0 ram:8M"), lines)
                    lines = run(top + ["count=1", "of=sessions", "sort=read"]).text.split("\n")
                    self.assertTrue(lines[2].startswith("iqn."), lines)
                    self.check_screen(top)
                finally:
                    load.kill()
                    load.wait()
            for bad in ("of=x", "sort=", "interval=0", "count=-1", "x=1", "x"):
                self.assertEqual(run(top[:4] + [bad], check=False).returncode, 2, bad)
            self.assertEqual(run(top, check=False).returncode, 3)

    def check_screen(self, top):
        parent, child = pty.openpty()
        p = subprocess.Popen(top, stdin=child, stdout=child)
        os.close(child)
        seen = b""

        def has(text):
            nonlocal seen
            if select.select([parent], [], [], 0.1)[0]:
                seen += os.read(parent, 65536)
            return text in seen
        until(lambda: has(b"1 null:8M"), "a screen")
        os.write(parent, b"t")
        until(lambda: has(b"SESSION"), "sessions")
        os.write(parent, b"s")
        until(lambda: has(b"READ/S*"), "the next column")
        os.write(parent, b"q")
        until(lambda: has(b"\x1b[?1049l"), "the end of the screen")
        self.assertEqual(p.wait(patience(5)), 0)
        os.close(parent)

    def test_slow_command(self):
        with Numbers("--slow-command", "50", "--log-format", "json", "ram:8M") as d:
            w = Wire(d)
            w.login()
            w.ready()
            itt = w.command(b"\x2a\0" + bytes(5) + b"\0\x08\0" + bytes(6), 0xa0, 4096)
            _, head, _ = w.recv()  # R2T
            time.sleep(0.1)
            w.pdu(5, data=bytes(4096), itt=itt, rest=head[20:24] + bytes(24))
            self.assertEqual(w.recv()[1][3], 0)
            d.wait_for("backstore lun0: command 2a, LBA 0, 4096 bytes took 1")
            slow = next(r for r in map(json.loads, d.messages().splitlines()) if r["event"] == "SLOW")
            self.assertEqual([slow[k] for k in ("backstore", "lun", "opcode", "lba", "bytes", "status")], ["lun0", 0, "2a", 0, 4096, "00"])
            self.assertGreaterEqual(slow["milliseconds"], 100)
            self.assertEqual(d.samples()["iserd_slow_commands_total"], 1)
            w.close()

    def test_unix_socket(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "numbers")
            with Numbers("ram:8M", metrics=path) as d:
                self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o660)
                self.assertEqual(d.get("/healthz")[0], 200)
                # a socket file that is in use is not replaced
                self.assertIn("another iserd has it",
                              refused("--metrics", path, "ram:8M", status=4))
            self.assertFalse(os.path.exists(path))

    def test_addresses(self):
        """Other machines reach an address only with a warning; a port is taken once."""
        with Numbers("ram:8M", metrics="0.0.0.0:%d" % quiet_port()) as d:
            d.wait_for("is open to other machines without a password")
            self.assertIn("already in use", refused("--metrics", d.http, "ram:8M", status=4))
        with Numbers("ram:8M") as d:
            self.assertNotIn("warning", d.messages())
        for bad in ("relative/path", "host.example:80", "127.0.0.1:99999", ""):
            self.assertIn("--metrics", refused("--metrics", bad, "ram:8M", status=2))

    def test_many_workers(self):
        """Scrapes while commands run on other workers."""
        with Numbers("--workers", "4", "ram:8M") as d:
            p = subprocess.Popen([ISER, "bench", "--time", "2", "--connections", "4",
                                  "--rw", "randrw", "--yes-overwrite", d.url],
                                 stdout=subprocess.DEVNULL)
            last = 0
            while p.poll() is None:
                n = sum(v for k, v in d.samples().items()
                        if k.startswith("iserd_lun_latency_seconds_count"))
                self.assertGreaterEqual(n, last)
                last = n
            self.assertEqual(p.returncode, 0)
            self.assertGreater(last, 1000)

    def test_bounded(self):
        """More sessions than have metrics are counted, not listed."""
        with Numbers("--max-sessions", "400:400", "--max-startups", "400:30:500:400",
                     "--login-rate", "0", "ram:8M") as d:
            all = []
            for i in range(270):
                w = Wire(d)
                w.KEYS = ("InitiatorName=iqn.2026-01.org.example:i%d" % i,
                          "SessionType=Normal")
                w.login()
                all.append(w)
            now = d.samples()
            listed = [k for k in now if k.startswith("iserd_session_commands_total")]
            self.assertEqual(len(listed), 256)
            self.assertEqual(now["iserd_sessions_left_out"], 14)
            self.assertEqual(sum(v for k, v in now.items()
                                 if k.startswith("iserd_target_sessions")), 270)
            for w in all:
                w.close()


def raw_timeout(daemon, data):
    """Returns what the endpoint sends within a second."""
    s = daemon.connect()
    s.settimeout(1)
    s.sendall(data)
    try:
        return s.recv(65536)
    except TimeoutError:
        return b""
    finally:
        s.close()


def expressions():
    """Returns the queries of the Grafana dashboard, with its variables filled in."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                        "../../docs/grafana/iserd.json")
    with open(path) as f:
        panels = json.load(f)["panels"]
    found = [t["expr"] for p in panels for t in p.get("targets", ())]
    for name, value in (("$instance", ".*"), ("$backstore", ".*"), ("$__rate_interval", "1m")):
        found = [e.replace(name, value) for e in found]
    return found


class Prometheus(unittest.TestCase):
    def test_dashboard(self):
        """The Grafana dashboard asks for metrics that exist, with labels that exist."""
        with tempfile.NamedTemporaryFile() as image:
            image.truncate(8 << 20)
            with Numbers("ram:8M", image.name) as d:
                run([ISER, "bench", "--amount", "64K", d.url])
                run([ISER, "bench", "--rw", "write", "--yes-overwrite", "--amount", "64K", d.urls[1]])
                w = Wire(d)
                w.login()
                w.ready()
                used = 'iserd_lun_used_bytes{backstore="lun1"}'
                until(lambda: d.samples().get(used), "the space")  # every five seconds
                samples = d.samples()
                self.assertLessEqual(samples[used] + samples[used.replace("used", "space_left")], 8 << 20)
                w.close()
        names = {s.split("{")[0] for s in samples}
        labels = {}
        for s in samples:
            labels.setdefault(s.split("{")[0], set()).update(re.findall(r'[{,]([a-z_]+)="', s))
        for e in expressions():
            self.assertNotIn("$", e)
            for name, condition in re.findall(r"((?:iserd|process)_[a-z_]+)\{([^}]*)\}", e):
                self.assertIn(name, names, e)
                used = set(re.findall(r"([a-z_]+)(?:=~|!=|=)", condition)) - {"instance"}
                self.assertLessEqual(used, labels[name], e)
                by = re.findall(r"by \(([a-z_, ]+)\)", e)
                if by and len(re.findall(r"(?:iserd|process)_", e)) == 1:
                    self.assertLessEqual(set(by[0].split(", ")) - {"instance"}, labels[name], e)

    @need("promtool")
    def test_promtool(self):
        """promtool has nothing to complain about, also about hostile names."""
        with Numbers("ram:8M", "null:1G") as d:
            w = Wire(d)
            w.KEYS = ('InitiatorName=iqn.2026-01.org.example:"\\<b>\u00e4', "SessionType=Normal")
            w.login()
            run([ISER, "bench", "--amount", "1M", d.url])
            text = d.get("/metrics")[2]
            p = subprocess.run(["promtool", "check", "metrics"], input=text.encode(),
                               capture_output=True, timeout=60)
            self.assertEqual((p.returncode, p.stdout + p.stderr), (0, b""))
            w.close()

    def test_open_metrics(self):
        """OpenMetrics if the client accepts it, else the older text."""
        with Numbers("ram:8M") as d:
            for accept, is_open in ((OPEN, True), (OPEN + ";q=0.5,text/plain;q=0.4", True),
                                    ("text/plain", False), ("*/*", False),
                                    ("application/openmetrics-text;q=0", False)):
                _, headers, body = d.get("/metrics", Accept=accept)
                self.assertEqual(body.endswith("# EOF\n"), is_open, accept)
                self.assertIn("openmetrics" if is_open else "version=0.0.4",
                              headers["Content-Type"])
            text = d.get("/metrics", Accept=OPEN)[2]
            self.assertIn("# TYPE iserd_logins counter\n", text)
            self.assertIn("\niserd_logins_total 0\n", text)
            self.assertIn("# TYPE iserd_logins_total counter\n", d.get("/metrics")[2])

    @need("prometheus")
    def test_scrape(self):
        """A real Prometheus scrapes all samples (it asks for OpenMetrics)."""
        with Numbers("ram:8M") as d, tempfile.TemporaryDirectory() as folder:
            run([ISER, "bench", "--amount", "1M", d.url])
            config = os.path.join(folder, "prometheus.yml")
            with open(config, "w") as f:
                f.write("global: {scrape_interval: 1s}\nscrape_configs:\n"
                        "- {job_name: iserd, static_configs: [{targets: ['%s']}]}\n" % d.http)
            where = "127.0.0.1:%d" % quiet_port()
            with open(os.path.join(folder, "log"), "w") as log:
                p = subprocess.Popen(
                    ["prometheus", "--config.file=" + config, "--web.listen-address=" + where,
                     "--storage.tsdb.path=" + folder], stdout=log, stderr=log)
                try:
                    self.check_scrape(where)
                finally:
                    p.terminate()
                    p.wait()

    def query(self, where, what):
        c = http.client.HTTPConnection(where, timeout=patience(5))
        try:
            c.request("GET", "/api/v1/query?query=" + what)
            return json.loads(c.getresponse().read())["data"]["result"]
        except (OSError, ValueError):
            return []  # not ready yet
        except KeyError:
            return None  # refused
        finally:
            c.close()

    def check_scrape(self, where):
        until(lambda: self.query(where, "iserd_ready"), "scraped", 30)
        self.assertEqual(self.query(where, "up")[0]["value"][1], "1")
        reads = self.query(where, "iserd_lun_latency_seconds_count")
        self.assertTrue([r for r in reads if r["metric"]["op"] == "read" and
                         float(r["value"][1]) >= 256], reads)
        high = self.query(where, "histogram_quantile(0.99,iserd_lun_latency_seconds_bucket)")
        # in any order; without a write, the quantile of the writes is not a number
        high = {r["metric"]["op"]: float(r["value"][1]) for r in high}
        self.assertTrue(0 < high["read"] < 20, high)
        for expression in expressions():
            self.assertIsNotNone(self.query(where, quote(expression)), expression)


class Probes(unittest.TestCase):
    @need("readelf")
    def test_probes(self):
        """iserd has the static probes that the scripts of docs/bpftrace trace."""
        if not glob.glob("/usr/include/**/sys/sdt.h", recursive=True):
            self.skipTest("sys/sdt.h is missing: install systemtap-sdt-dev")
        notes = run(["readelf", "-n", ISERD]).text
        found = set(re.findall(r"Provider: iserd\n +Name: (\w+)", notes))
        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/bpftrace")
        for script in sorted(os.listdir(folder)):
            with open(os.path.join(folder, script)) as f:
                used = set(re.findall(r"usdt:\*:iserd:(\w+)", f.read()))
            self.assertTrue(used, script)
            self.assertLessEqual(used, found, script)


class Page(unittest.TestCase):
    def test_policy(self):
        """The policy permits this script and style sheet, and nothing from elsewhere."""
        with Numbers("ram:8M") as d:
            status, headers, body = d.get("/")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        policy = headers["Content-Security-Policy"]
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe", policy)
        for tag in ("script", "style"):
            parts = re.findall("<%s>(.*?)</%s>" % (tag, tag), body, re.S)
            self.assertEqual(len(parts), 1)
            digest = base64.b64encode(hashlib.sha256(parts[0].encode()).digest()).decode()
            self.assertIn("%s-src 'sha256-%s'" % (tag, digest), policy)
        outside = [u for u in re.findall(r"(?:https?:)?//[\w.]+", body) if "www.w3.org" not in u]
        self.assertEqual([u for u in outside if "." in u], [])  # the name of SVG is not an address
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            self.assertNotIn(word, body)

    @need("chromium")
    def test_browser(self):
        """Chromium shows the numbers; a hostile file name stays text."""
        with tempfile.TemporaryDirectory() as folder:
            name = "<img src=x onerror='document.title=1'><script>document.title=2<"
            image = os.path.join(folder, name)
            with open(image, "wb") as f:
                f.truncate(8 << 20)
            with Numbers("ram:8M", image) as d:
                w = Wire(d)
                w.login()
                w.ready()
                done = run(["chromium", "--headless=new", "--no-sandbox", "--disable-gpu",
                            "--user-data-dir=" + os.path.join(folder, "profile"),
                            "--virtual-time-budget=10000", "--dump-dom", "http://%s/" % d.http],
                           timeout=120)
                w.close()
                target, portal = d.target, d.portal
        dom = done.text
        self.assertIn("<title>%s \u2013 iserd</title>" % socket.gethostname(), dom)
        self.assertIn(", at %s, up" % portal, dom)
        self.assertIn(">lun1<", dom)
        self.assertIn("%s/1<" % target, dom)
        self.assertIn(">serving<", dom)
        self.assertIn("&lt;img src=x", dom)
        self.assertNotIn("<img", dom)
        self.assertEqual(dom.count("<script"), 1)
        self.assertIn("iqn.2026-01.org.example:wire", dom)
        self.assertIn("<dt>InitialR2T</dt><dd>No</dd>", dom)
        self.assertIn("reads/s", dom)


def http_body(answers):
    """Reads an answer from a file object; returns its body."""
    length = 0
    while (line := answers.readline()) != b"\r\n":
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    return answers.read(length)


class Hostile(unittest.TestCase):
    """Requests that a scraper does not send."""

    def status(self, answer):
        m = re.match(rb"HTTP/1\.[01] (\d+) ", answer)
        return int(m.group(1)) if m else None

    def test_requests(self):
        host = b"Host: 127.0.0.1\r\n"
        rows = (
            (b"POST /metrics HTTP/1.1\r\n" + host + b"Content-Length: 5\r\n\r\nhello", 405),
            (b"PUT / HTTP/1.1\r\n" + host + b"\r\n", 405),
            (b"DELETE /metrics HTTP/1.1\r\n" + host + b"\r\n", 405),
            (b"OPTIONS * HTTP/1.1\r\n" + host + b"\r\n", 405),
            (b"CONNECT 127.0.0.1:22 HTTP/1.1\r\n" + host + b"\r\n", 405),
            (b"TRACE / HTTP/1.1\r\n" + host + b"\r\n", 405),
            (b"get /metrics HTTP/1.1\r\n" + host + b"\r\n", 405),
            (b"GET /metrics HTTP/1.1\r\n" + host + b"Content-Length: 9\r\n\r\n", 413),
            (b"GET /metrics HTTP/1.1\r\n" + host + b"Content-Length: 99999999999999999999\r\n\r\n",
             (400, 413)),
            (b"GET /metrics HTTP/1.1\r\n" + host + b"Content-Length: -1\r\n\r\n", (400, 413)),
            (b"GET /metrics HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\n"
             b"ffffffff\r\n", 413),
            (b"GET /metrics HTTP/1.1\r\n\r\n", 400),  # RFC 9112 3.2: no Host
            (b"GET /metrics HTTP/1.1\r\n" + host + b"hOST: localhost\r\n\r\n", 400),  # two
            (b"GET /metrics HTTP/1.1\r\n" + host + host + b"\r\n", 400),
            (b"GET /metrics HTTP/2.0\r\n" + host + b"\r\n", (400, 505)),
            (b"GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403),
            (b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n\r\n", 403),
            (b"GET /metrics HTTP/1.1\r\nHost: localhost:9860\r\n\r\n", 200),
            (b"GET /metrics HTTP/1.1\r\nHost: [::1]:9860\r\n\r\n", 200),
        )
        with Numbers("ram:8M") as d:
            for request, want in rows:
                s = d.connect()
                s.sendall(request)
                got = self.status(s.recv(4096))
                s.close()
                self.assertIn(got, want if isinstance(want, tuple) else (want,), request)
            self.assertEqual(d.get("/healthz")[0], 200)

    def test_paths(self):
        paths = ("/metrics/", "//metrics", "/METRICS", "/metrics/../healthz/x", "/../../etc/passwd",
                 "/%2e%2e/%2e%2e/etc/passwd", "/metrics%00", "/metrics%00.json", "/status", "/.",
                 "/..", "metrics", "*", "/" + "a" * 4000, "/metrics;x", "/status.json/x", "/\\..\\", "/%6detrics")
        with Numbers("ram:8M") as d:
            for path in paths:
                a = raw(d, b"GET %s HTTP/1.0\r\n\r\n" % path.encode())
                self.assertIn(self.status(a), (404, 400), path)
                self.assertNotIn(b"root:", a)
                if len(path) > 9:  # nothing of the request comes back
                    self.assertNotIn(path.encode(), a)
            self.assertEqual(d.get("/metrics?name=x&y")[0], 200)
            # an absolute URL is another resource
            a = raw(d, b"GET http://127.0.0.1/metrics HTTP/1.0\r\n\r\n")
            self.assertIn(self.status(a), (404, 400))

    def test_oversize(self):
        """Heads that do not fit into 8 KiB: refused, without the memory growing."""
        with Numbers("ram:8M") as d:
            d.get("/metrics")
            before = d.rss_kib()
            for request in (b"GET /" + b"a" * (1 << 20) + b" HTTP/1.0\r\n\r\n",
                            b"GET /metrics HTTP/1.0\r\nX: " + b"a" * (1 << 20) + b"\r\n\r\n",
                            b"GET /metrics HTTP/1.0\r\n" + b"X: y\r\n" * 100000 + b"\r\n",
                            b"A" * (4 << 20)):
                for _ in range(5):
                    got = self.status(raw(d, request))
                    self.assertIn(got, (None, 400, 413, 414, 431), request[:30])
            self.assertEqual(d.get("/healthz")[0], 200)
            if not d.sanitized():
                self.assertLess(d.rss_kib(), before + 4096)

    def throw(self, d, data):
        """Sends data and its end; waits only shortly for an answer, because the library
        waits for the rest of some lines until their time is over."""
        s = d.connect()
        s.settimeout(0.05)
        try:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            s.recv(4096)
        except OSError:
            pass
        s.close()

    def test_garbage(self):
        with Numbers("ram:8M") as d:
            for n in range(200):
                self.throw(d, os.urandom(1 + 37 * n % 3000))
            # a TLS Client Hello, an iSCSI Login, and line ends of all kinds
            lines = (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(300),
                     b"\x43\x87\0\0" + bytes(44), b"\r\n\r\n\r\n", b"\n" * 9000, b"\0" * 9000,
                     b"GET\r\n\r\n", b"GET \r\n\r\n", b" / HTTP/1.1\r\n\r\n",
                     b"GET /metrics\r\n\r\n", b"GET /metrics HTTP/1.0\n\n")
            for data in lines:
                self.throw(d, data)
            self.assertEqual(d.get("/healthz")[0], 200)

    def test_slow(self):
        """A client that sends its request byte by byte loses its connection."""
        with Numbers("ram:8M") as d:
            s = d.connect()
            began = time.monotonic()
            s.sendall(b"GET /metrics HTTP/1.1\r\n")
            s.settimeout(0.5)
            with self.assertRaises((BrokenPipeError, ConnectionResetError, EOFError)):
                while time.monotonic() < began + patience(20):
                    s.sendall(b"X")
                    try:
                        if not s.recv(1):
                            raise EOFError
                    except TimeoutError:
                        pass
            self.assertGreater(time.monotonic() - began, 8)
            s.close()

    def test_flood(self):
        """More connections than there is room for: requests are answered nevertheless."""
        with Numbers("ram:8M") as d:
            held = []
            for _ in range(200):
                held.append(d.connect())
                held[-1].sendall(b"GET /metr")
            for _ in range(5):
                self.assertEqual(d.get("/healthz")[0], 200)
            # no deadline had to pass before there was room
            for s in held[-3:]:
                s.setblocking(False)
                self.assertRaises(BlockingIOError, s.recv, 1)
            self.assertLess(d.descriptors(), 100)
            for s in held:
                s.close()

    def test_requests_in_a_row(self):
        """The texts of many units are not made again for each request in a row."""
        ask = b"GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with Numbers(*["ram:1M"] * 200) as d:
            for path in b"metrics", b"status.json":
                with d.connect() as s:
                    answers, cpu = s.makefile("rb"), []
                    for n in (1, 200):
                        cpu.append(d.cpu())
                        s.sendall(ask % path * n)
                        for _ in range(n):
                            http_body(answers)
                    # one is made, then ten at most
                    self.assertLess(d.cpu() - cpu[1], 20 * (cpu[1] - cpu[0]) + 0.1, path)

    def test_numbers_of_requests_in_a_row(self):
        """Each request in a row has an answer; its numbers are soon those of now."""
        with Numbers("ram:1M") as d, d.connect() as s:
            s.settimeout(patience(20))
            answers = s.makefile("rb")
            s.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 300)
            for _ in range(300):
                self.assertIn(b"\niserd_logins_total 0\n", http_body(answers))
            Wire(d).login()
            until(lambda: "\niserd_logins_total 1\n" in d.get("/metrics")[2],
                  "the login is not counted")

    def test_does_not_read(self):
        """A client that asks often and reads nothing costs a bounded amount of memory."""
        with Numbers("--workers", "2", "ram:8M") as d:
            s = d.connect()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.settimeout(2)
            try:
                for _ in range(20000):
                    s.sendall(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 10)
            except OSError:
                pass
            self.assertEqual(d.get("/healthz")[0], 200)
            self.assertLess(d.rss_kib(), 400 << 10)
            s.close()

    def test_leaves(self):
        """Clients that close the connection while the workers are asked."""
        with Numbers("--workers", "3", "ram:8M") as d:
            for n in range(300):
                s = d.connect()
                s.sendall(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                if n % 3 == 0:
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                s.close()
            self.assertEqual(d.get("/healthz")[0], 200)
            until(lambda: d.descriptors() < 40, "connections closed")

    def test_end_with_requests(self):
        """The end of iserd while requests come: they fail, and it ends in order."""
        with Numbers("--workers", "2", "ram:8M") as d:
            held = [d.connect() for _ in range(10)]
            d.proc.terminate()
            try:
                for s in held * 50:
                    s.sendall(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            except OSError:
                pass
            # no second SIGTERM: that ends iserd at once
            self.assertEqual(d.proc.wait(patience(12)), 0, d.messages())
            for s in held:
                s.close()

    def test_without_descriptors(self):
        with Numbers("ram:8M", files=64) as d:
            held = []
            try:
                for _ in range(80):
                    held.append(Wire(d))
            except OSError:
                pass
            for w in held:
                w.close()
            until(lambda: d.get("/healthz")[0] == 200, "an answer")


if __name__ == "__main__":
    main()
