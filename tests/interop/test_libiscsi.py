#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""libiscsi's tools and its conformance suite against iserd."""
import collections
import concurrent.futures
import contextlib
import os
import re
import subprocess
import tempfile
import unittest

from harness import Daemon, Secrets, io, main, need, patience, run, sparse
from relay import Relay
from test_config import Configured


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

    def test_capacity_grows_online(self):
        with tempfile.NamedTemporaryFile(dir=".") as f:
            f.truncate(64 << 20)
            with Daemon(os.path.abspath(f.name)) as d:
                for size in (64 << 20, 96 << 20, 80 << 20):
                    f.truncate(size)
                    text = run(["iscsi-readcapacity16", d.url]).text
                    self.assertIn("Total size:%d" % size, text)

    def test_perf(self):
        with Daemon("--workers", "2", "ram:64M") as d:
            for args in (["-m", "1", "-b", "8"], ["-m", "128", "-b", "8", "-r"],
                         ["-m", "8", "-b", "2048"]):
                text = run(["iscsi-perf", "-t", "1"] + args + [d.url]).text
                rates = [int(n) for n in
                         re.findall(r"iops average (\d+)", text)]
                self.assertTrue(rates and rates[-1] > 0, text[-300:])

    def test_many_sessions_at_once(self):
        with Daemon("--workers", "2", "ram:64M", "ram:64M") as d:
            procs = [subprocess.Popen(
                ["iscsi-perf", "-t", "1", "-m", "8", "-b", "8", "-r",
                 "-i", "iqn.2026-01.org.example:i%d" % i, d.urls[i % 2]],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                for i in range(6)]
            for p in procs:
                self.assertEqual(p.wait(patience(20)), 0)

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
    """Runs every family; the reason of each skipped step must be listed here.

    iscsi-test-cu counts a test that misses a feature as passed; this class compares
    the printed reasons with those that apply to the unit.
    """

    SAME_BLOCKS = "LBPPB < 2"
    NO_CRYPTO = "SANITIZE CRYPTO_ERASE is not implemented"
    NO_ATOMIC = "WRITEATOMIC16 is not implemented"
    FIXED_DISK = ("Logical unit is not removable", "Media is not removable")
    WRITABLE = "Logical unit is not write-protected"
    ONE_PATH = "Multipath unavailable"
    NOT_ASKED = "--allow-sanitize flag is not set"
    # expects GOOD for a READ whose header marks a write, so that neither side
    # gets its data: docs/conformance.md
    WRONG_DIRECTION = "test_read10_invalid.c"
    # expects GOOD for WRITEs of 512 bytes to a block of 4,096: docs/conformance.md
    PART_OF_A_BLOCK = "test_prout_reserve_access.c"

    def run_suite(self, args, but=(), options=(), test="ALL", paths=1,
                  wrong=None, iser=None):
        """iser: the start of iSER for the relay between suite and target, or None."""
        with Daemon(*args) as d, contextlib.ExitStack() as stack:
            url = d.url
            if iser:
                url = stack.enter_context(Relay(d, iser)).url
            self.run_at([url] * paths, but, options, test, wrong)
            if iser:
                self.assertNotRegex(d.messages(), "session .* over tcp")

    def run_at(self, urls, but=(), options=(), test="ALL", wrong=None):
        """Runs it at a unit that is served already."""
        done = run(["iscsi-test-cu", "-d", "-n", "--test=" + test, *options, *urls], timeout=300, check=False)
        totals = {k: v for k, *v in re.findall(
            r"^ +(suites|tests|asserts) +(\S+) +(\S+) +(\S+) +(\S+)",
            done.text, re.M)}
        self.assertIn("tests", totals, done.text[-2000:])
        ran, passed, failed = (int(x) for x in totals["tests"][1:4])
        reasons = collections.Counter(
            re.findall(r"\[SKIPPED\] (.*)", done.text))
        print("#   %d tests ran, %d passed, %d failed" % (ran, passed, failed))
        for reason, n in reasons.most_common():
            print("#   %3d  %s" % (n, reason))
        unexplained = [r for r in reasons if not r.startswith(tuple(but))]
        self.assertFalse(unexplained)
        self.assertGreater(ran, 200 if test == "ALL" else 0)
        # only the tests that are wrong in the suite may fail
        known = {wrong} - {None}
        if test == "ALL":
            known.add(self.WRONG_DIRECTION)
        self.assertEqual(
            set(re.findall(r"^ +\d+\. (test_\w+\.c):", done.text, re.M)),
            known, "\n".join(line for line in done.text.splitlines()
                             if "FAILED" in line))
        self.assertEqual(failed > 0, bool(known))

    def with_sanitize(self, unit, *args, but=()):
        """Runs the suite in three parallel parts, each with its own unit:
        Sanitize.Reset sleeps for a minute and needs a unit that is sanitized
        slowly, unlike the other tests."""
        slow = "ALL.Sanitize.Reset"
        family = [t for t in run(["iscsi-test-cu", "-l"]).text.split()
                  if t.startswith("ALL.Sanitize.")]
        self.assertIn(slow, family)

        def sanitize(part, rate, tests):
            for test in tests:
                self.run_suite(["--sanitize-rate", rate, *args, unit(part)],
                               but=but, options=["--allow-sanitize"],
                               test=test)

        def rest():
            self.run_suite([*args, unit("rest")], but=but + (self.NOT_ASKED,))

        family.remove(slow)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            parts = [pool.submit(sanitize, "slow", "16M", [slow]),
                     pool.submit(sanitize, "fast", "64M", family),
                     pool.submit(rest)]
        for part in parts:
            part.result()

    def test_ram(self):
        self.with_sanitize(lambda _: "ram:100M", "--removable",
                           but=(self.SAME_BLOCKS, self.NO_CRYPTO, self.WRITABLE,
                                self.ONE_PATH))

    def test_encrypted(self):
        # this unit supports CRYPTO ERASE
        with tempfile.TemporaryDirectory(dir=".") as folder:
            key = os.path.abspath(folder)
            self.with_sanitize(lambda part: "ram:100M,key=%s/%s" % (key, part),
                               "--removable", "--workers", "2",
                               but=(self.SAME_BLOCKS, self.WRITABLE,
                                    self.ONE_PATH))

    DISK = (SAME_BLOCKS, NOT_ASKED, WRITABLE, ONE_PATH) + FIXED_DISK

    def test_iser_from_the_start(self):
        # the relay drops solicited Data-Outs with the wrong DataSN of that test:
        # iSER has no Data-Out (RFC 7145 §7.3.6)
        self.run_suite(["ram:100M"], iser="rdma", but=self.DISK,
                       wrong="test_iscsi_datasn_invalid.c")

    def test_iser_after_login(self):
        self.run_suite(["--workers", "2", "ram:100M"], iser="stream",
                       but=self.DISK)

    def test_two_paths(self):
        self.run_suite(["--workers", "2", "ram:100M"], paths=2,
                       test="ALL.MultipathIO")

    def run_multipath(self, *urls):
        """Runs the MultipathIO family with one URL for each path; returns the names of the failed tests."""
        done = run(["iscsi-test-cu", "-d", "-n", "--test=ALL.MultipathIO", *urls], timeout=patience(60), check=False)
        self.assertRegex(done.text, r"found matching LU device identifier for all \(%d\) paths" % len(urls))
        self.assertRegex(done.text, r"(?m)^ +tests +4 +4 ")
        self.assertNotIn("[SKIPPED]", done.text)
        return re.findall(r"Suite MultipathIO, Test (\w+) had failures", done.text)

    def test_two_portals(self):
        with Daemon("--listen", "127.0.0.1:0", "--listen", "127.0.0.2:0", "--workers", "2", "ram:100M") as d:
            self.assertEqual(self.run_multipath(*d.urls), [])

    def test_two_targets(self):
        """One unit, as LUN 0 of one target and LUN 7 of another."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "iserd.yaml")
            with open(path, "w") as f:
                f.write("version: 1\ndaemon: {io: %s, workers: 2}\nbackstores: {disk: {store: \"ram:100M\"}}\n"
                        "portal-groups: {a: {tag: 1, listen: \"127.0.0.1:0\"}, b: {tag: 2, listen: \"127.0.0.2:0\"}}\n"
                        "targets:\n"
                        "  iqn.2026-01.org.example:a: {auth-group: any, portal-groups: a, luns: {0: disk}}\n"
                        "  iqn.2026-01.org.example:b: {auth-group: any, portal-groups: b, luns: {7: disk}}\n" % io())
            with Configured(path, 2) as d:
                self.assertEqual(self.run_multipath(*d.urls), [])

    def test_two_iserd(self):
        """Two iserd share an image. A reset reaches the unit of one iserd only: no unit attention at the other one."""
        with tempfile.TemporaryDirectory(dir=".") as folder, contextlib.ExitStack() as stack:
            disk = sparse(os.path.abspath(os.path.join(folder, "disk")), 100 << 20)
            urls = [stack.enter_context(Daemon(
                "--port-id", str(i), "--alua", "1:optimized:1", "--alua", "2:optimized:2", "--shared", "--buffered",
                "--block-size", "512", disk)).url for i in (1, 2)]
            self.assertEqual(self.run_multipath(*urls), ["Reset"])

    def test_write_protected(self):
        self.run_suite(["--read-only", "ram:100M"], test="ALL.ReadOnly")

    def test_ram_4k_blocks(self):
        self.run_suite(["--block-size", "4096", "--workers", "2", "ram:100M"],
                       wrong=self.PART_OF_A_BLOCK,
                       but=(self.SAME_BLOCKS, self.NOT_ASKED, self.WRITABLE,
                            self.ONE_PATH) + self.FIXED_DISK)

    # commands that MMC-6, or a read-only drive, does not have
    NO_DISK = (
        "Not SBC device", "PERSISTENT RESERVE IN is not", "PROUT Not Supported",
        "RESERVE6 is not", "Logical unit is fully provisioned",
        "EXTENDEDCOPY is not", "RECEIVE_COPY_RESULTS is not",
        "RECEIVECOPYRESULT is not", "GET_LBA_STATUS is not",
        "GETLBASTATUS is not", "READ6 is not", "READ16 is not",
        "READCAPACITY16 is not", "READDEFECTDATA10 is not",
        "READDEFECTDATA12 is not", "PREFETCH10 is not", "PREFETCH16 is not",
        "VERIFY10 is not", "VERIFY12 is not", "VERIFY16 is not",
        "WRITE10 is not", "WRITE12 is not", "WRITE16 is not",
        "WRITEVERIFY10 is not", "WRITEVERIFY12 is not",
        "WRITEVERIFY16 is not")
    # families without skipped steps, except two skips from the start of the suite
    CD_FAMILIES = ("ReportSupportedOpcodes", "StartStopUnit", "TestUnitReady",
                   "ReadCapacity10", "Read10.Simple", "Read10.BeyondEol",
                   "Read12.Simple", "Read12.BeyondEol", "ModeSense6.AllPages",
                   "ModeSense6.Control", "iSCSIcmdsn")
    AT_THE_BEGINNING = ("PERSISTENT RESERVE IN is not",
                        "READCAPACITY16 is not")

    def test_cd(self):
        with tempfile.NamedTemporaryFile(dir=".") as f:
            f.truncate(100 << 20)
            cd = "cd:" + os.path.abspath(f.name)
            self.run_suite([cd], but=self.NO_DISK +
                           (self.NOT_ASKED, self.WRITABLE))
            for family in self.CD_FAMILIES:
                self.run_suite([cd], but=self.AT_THE_BEGINNING,
                               test="ALL." + family)

    def file_suite(self, *args, but=(), wrong=None):
        with tempfile.NamedTemporaryFile(dir=".") as f:
            f.truncate(100 << 20)
            self.run_suite(list(args) + [os.path.abspath(f.name)], wrong=wrong,
                           but=(self.NOT_ASKED, self.NO_ATOMIC, self.WRITABLE,
                                self.ONE_PATH) + self.FIXED_DISK + but)

    def test_file(self):
        # 512-byte blocks on a file system with 4096: docs/conformance.md describes
        # the error of the suite
        size = os.statvfs(".").f_bsize
        self.file_suite(
            wrong="test_get_lba_status_unmap_single.c" if size > 512 else None)

    def test_protected_file(self):
        size = os.statvfs(".").f_bsize
        self.file_suite(
            "--protection", "1", "--workers", "2",
            wrong="test_get_lba_status_unmap_single.c" if size > 512 else None)

    def test_file_4k_blocks(self):
        self.file_suite("--block-size", "4096", but=(self.SAME_BLOCKS,),
                        wrong=self.PART_OF_A_BLOCK)


if __name__ == "__main__":
    main()
