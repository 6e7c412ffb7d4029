#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The alert rules in packaging/prometheus, with a real Prometheus.

It scrapes a real iserd through a proxy. While iserd is well no alert may fire; then the proxy changes values, and each must."""
import http.client
import http.server
import json
import os
import re
import subprocess
import threading
import unittest

from harness import Folder, Wire, main, need, patience, quiet_port, run, until
from test_metrics import Numbers

RULES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../packaging/prometheus/iserd.yml")
# What the proxy makes of a value at its Nth scrape since the trouble began; the sessions end in fact.
TROUBLE = {
    "iserd_ready": lambda value, n: 0,
    "iserd_lun_trouble": lambda value, n: 1,
    'iserd_lun_errors_total{.*reason="medium_error"': lambda value, n: value + n,
    "iserd_logins_refused_total": lambda value, n: value + 5 * n,
    "iserd_connections_refused_total": lambda value, n: value + 5 * n,
    "iserd_connections_failed_total": lambda value, n: value + 5 * n,
    "iserd_transport_digest_errors_total": lambda value, n: value + n,
    "iserd_slow_commands_total": lambda value, n: value + 100 * n,
    "process_open_fds": lambda value, n: 1e6,
    "process_start_time_seconds": lambda value, n: value + n,
}


class Proxy(http.server.ThreadingHTTPServer):
    """Passes /metrics of an iserd on."""

    def __init__(self, daemon):
        super().__init__(("127.0.0.1", 0), Answer)
        self.daemon, self.scrapes, self.matched = daemon, 0, set()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def change(self, line):
        name, _, value = line.rpartition(" ")
        for pattern, new in TROUBLE.items():
            if re.match(pattern + "({|$)" if "{" not in pattern else pattern, name):
                self.matched.add(pattern)
                return "%s %s" % (name, new(float(value), self.scrapes))
        return line

    def text(self):
        text = self.daemon.get("/metrics")[2]
        if not self.scrapes:
            return text
        self.scrapes += 1
        return "".join((line if line.startswith("#") else self.change(line)) + "\n" for line in text.splitlines())


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = self.server.text().encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class Alerts(Folder):
    def ask(self, path):
        """Returns the data of an answer of Prometheus; None: not yet."""
        c = http.client.HTTPConnection(self.where, timeout=patience(5))
        try:
            c.request("GET", "/api/v1/" + path)
            return json.loads(c.getresponse().read())["data"]
        except (OSError, ValueError):
            return None
        finally:
            c.close()

    def firing(self):
        return {a["labels"]["alertname"] for a in (self.ask("alerts") or {"alerts": []})["alerts"] if a["state"] == "firing"}

    def are_evaluated(self):
        groups = (self.ask("rules") or {"groups": []})["groups"]
        rules = [r for g in groups for r in g["rules"]]
        self.assertFalse([r for r in rules if r["health"] == "err"], rules)
        return rules and all(r["health"] == "ok" for r in rules)

    def prometheus(self, target):
        with open(RULES) as f:
            rules = f.read()
        with open(self.path("iserd.yml"), "w") as f:
            f.write(re.sub(r"for: \w+", "for: 0s", rules))
        with open(self.path("prometheus.yml"), "w") as f:
            f.write("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [iserd.yml]\nscrape_configs:\n"
                    "- {job_name: iserd, static_configs: [{targets: ['%s']}]}\n" % target)
        self.where = "127.0.0.1:%d" % quiet_port()
        with open(self.path("log"), "w") as log:
            p = subprocess.Popen(["prometheus", "--config.file=" + self.path("prometheus.yml"), "--web.listen-address=" + self.where,
                                  "--storage.tsdb.path=" + self.path("data")], stdout=log, stderr=log)
        self.addCleanup(p.wait)
        self.addCleanup(p.terminate)
        return set(re.findall(r"alert: (\w+)", rules))

    @need("promtool")
    def test_rules_are_valid(self):
        self.assertIn("SUCCESS", run(["promtool", "check", "rules", RULES]).text)

    @need("prometheus")
    def test_each_alert_fires(self):
        with Numbers("ram:8M") as d:
            w = Wire(d)
            w.login()
            w.ready()
            proxy = Proxy(d)
            names = self.prometheus("127.0.0.1:%d" % proxy.server_address[1])
            until(lambda: (self.ask("query?query=iserd_target_sessions") or {"result": []})["result"], "a scrape", 60)
            until(self.are_evaluated, "the rules were evaluated", 60)
            self.assertEqual(self.firing(), set())
            w.close()
            proxy.scrapes = 1
            until(lambda: self.firing() == names - {"IserdDown"}, lambda: "all alerts but: %s" % (names - self.firing()), 60)
            self.assertEqual(proxy.matched, set(TROUBLE))
            proxy.shutdown()
            proxy.server_close()
            until(lambda: "IserdDown" in self.firing(), "IserdDown", 60)


if __name__ == "__main__":
    main()
