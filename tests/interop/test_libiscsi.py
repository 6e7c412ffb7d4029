#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""libiscsi's tools and its conformance suite against iserd."""
import collections
import hashlib
import os
import re
import subprocess
import tempfile
import unittest

from harness import Daemon, Secrets, main, need, run


@need("iscsi-ls", "iscsi-inq", "iscsi-readcapacity16", "iscsi-perf")
class Tools(unittest.TestCase):
    def test_ls(self):
        with Daemon("ram:64M", "null:1G") as d:
            text = run(["iscsi-ls", "-s", "iscsi://" + d.portal]).text
            self.assertIn("Target:" + d.target, text)
            self.assertIn("Portal:%s,1" % d.portal, text)
            self.assertEqual(text.count("DIRECT_ACCESS"), 2)

    def test_ls_ipv6(self):
        with Daemon("--listen", "[::1]:0", "ram:64M") as d:
            text = run(["iscsi-ls", "-s", "iscsi://" + d.portal]).text
            self.assertIn("Portal:" + d.portal, text)

    def test_inquiry(self):
        with Daemon("ram:64M") as d:
            text = run(["iscsi-inq", d.url]).text
            self.assertIn("DIRECT_ACCESS", text)
            for page in ("0x00", "0x80", "0x83", "0xb0", "0xb1", "0xb2"):
                run(["iscsi-inq", "-e", "1", "-c", str(int(page, 16)), d.url])

    def test_units_have_names_of_their_own(self):
        with Daemon("ram:64M", "ram:64M", "null:1G", "null:1G") as d:
            serials = {run(["iscsi-inq", "-e", "1", "-c", "128", url]).text
                       for url in d.urls}
            self.assertEqual(len(serials), 4)

    def test_capacity(self):
        for size, block in (("64M", 512), ("3G", 4096)):
            with Daemon("--block-size", str(block), "null:" + size) as d:
                text = run(["iscsi-readcapacity16", d.url]).text
                want = {"64M": 64 << 20, "3G": 3 << 30}[size]
                self.assertIn("Total size:%d" % want, text)
                self.assertIn("LENGTH IN BYTES:%d" % block, text)

    @need("iscsi-md5sum")
    def test_md5sum(self):
        data = os.urandom(5 << 20)
        with tempfile.NamedTemporaryFile(dir=".") as f:
            f.write(data)
            f.flush()
            with Daemon(os.path.abspath(f.name)) as d:
                text = run(["iscsi-md5sum", d.url]).text
                self.assertIn(hashlib.md5(data).hexdigest(), text)

    def test_perf(self):
        with Daemon("--workers", "2", "ram:64M") as d:
            for args in (["-m", "1", "-b", "8"], ["-m", "128", "-b", "8", "-r"],
                         ["-m", "8", "-b", "2048"]):
                text = run(["iscsi-perf", "-t", "1"] + args + [d.url]).text
                rates = [int(n) for n in
                         re.findall(r"iops average (\d+)", text)]
                self.assertTrue(rates and rates[-1] > 100, text[-300:])

    def test_many_sessions_at_once(self):
        with Daemon("--workers", "2", "ram:64M", "ram:64M") as d:
            procs = [subprocess.Popen(
                ["iscsi-perf", "-t", "1", "-m", "8", "-b", "8", "-r",
                 "-i", "iqn.2026-01.org.example:i%d" % i, d.urls[i % 2]],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                for i in range(6)]
            for p in procs:
                self.assertEqual(p.wait(20), 0)

    def test_chap(self):
        with tempfile.NamedTemporaryFile("w") as f:
            f.write("correct horse battery\n")
            f.flush()
            with Daemon("--chap-user", "me", "--chap-secret-file", f.name,
                        "ram:8M") as d:
                good = "iscsi://me%%correct horse battery@%s" % d.url[8:]
                bad = "iscsi://me%%wrong wrong wrong@%s" % d.url[8:]
                run(["iscsi-inq", good])
                self.assertNotEqual(
                    run(["iscsi-inq", bad], check=False).returncode, 0)
                self.assertNotEqual(
                    run(["iscsi-inq", d.url], check=False).returncode, 0)
                self.assertIn("0201", d.messages())

    def test_chap_mutual(self):
        with Secrets() as c, Daemon(*c.args, "ram:8M") as d:
            run(["iscsi-inq", c.url(d.url)])
            run(["iscsi-inq", c.url(d.url, target="staple in the attic")])
            for url in (c.url(d.url, target="some other secret"),
                        c.url(d.url, target="staple in the attic",
                              target_user="disc"),
                        c.url(d.url, password="wrong wrong wrong",
                              target="staple in the attic")):
                self.assertNotEqual(
                    run(["iscsi-inq", url], check=False).returncode, 0, url)

    def test_chap_mutual_not_offered(self):
        with tempfile.NamedTemporaryFile("w") as f:
            f.write("correct horse battery\n")
            f.flush()
            with Daemon("--chap-user", "me", "--chap-secret-file", f.name,
                        "ram:8M") as d:
                url = Secrets.url(d.url, target="staple in the attic")
                self.assertNotEqual(
                    run(["iscsi-inq", url], check=False).returncode, 0)
                self.assertIn("mutual", d.messages())

    def test_chap_discovery(self):
        with Secrets("--discovery-auth") as c, Daemon(*c.args, "ram:8M") as d:
            portal = "iscsi://" + d.portal
            self.assertIn(d.target, run(["iscsi-ls", c.url(portal)]).text)
            for url in (portal, c.url(portal, password="wrong wrong wrong")):
                done = run(["iscsi-ls", url], check=False)
                self.assertNotEqual(done.returncode, 0, url)
                self.assertNotIn(d.target, done.text)
        with Secrets() as c, Daemon(*c.args, "ram:8M") as d:
            self.assertIn(d.target,
                          run(["iscsi-ls", "iscsi://" + d.portal]).text)

    def test_digests(self):
        with Daemon("ram:8M") as d:
            url = d.url + "?header_digest=crc32c"
            self.assertIn("DIRECT_ACCESS", run(["iscsi-inq", url]).text)


@need("iscsi-test-cu")
class Suite(unittest.TestCase):
    """Every family; what is skipped is listed with the tool's own reason."""

    def run_suite(self, *args):
        with Daemon(*args) as d:
            # twice: the second path of its multipath tests
            done = run(["iscsi-test-cu", "-d", "-n", "--test=ALL", d.url, d.url],
                       timeout=240, check=False)
        totals = {k: v for k, *v in re.findall(
            r"^ +(suites|tests|asserts) +(\S+) +(\S+) +(\S+) +(\S+)",
            done.text, re.M)}
        self.assertIn("tests", totals, done.text[-2000:])
        ran, passed, failed = (int(x) for x in totals["tests"][1:4])
        reasons = collections.Counter(
            re.findall(r"\[SKIPPED\] (.*)", done.text))
        print("#   %d tests ran, %d passed, %d failed; what they left out:" % (
            ran, passed, failed))
        for reason, n in reasons.most_common():
            print("#   %3d  %s" % (n, reason))
        self.assertGreater(ran, 200)
        self.assertEqual(failed, 0, "\n".join(
            line for line in done.text.splitlines() if "FAILED" in line))

    def test_ram(self):
        self.run_suite("ram:100M")

    def test_ram_4k_blocks(self):
        self.run_suite("--block-size", "4096", "--workers", "2", "ram:100M")

    def test_file(self):
        # with 512-byte blocks on a 4 KiB medium the suite's own
        # GetLBAStatus.UnmapSingle asks for one block and expects another
        with tempfile.NamedTemporaryFile(dir=".") as f:
            f.truncate(100 << 20)
            self.run_suite("--block-size", "4096", os.path.abspath(f.name))


if __name__ == "__main__":
    main()
