#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""iser with iserd and with tgt."""
import hashlib
import json
import os
import socket
import subprocess
import tempfile
import time
import unittest

from harness import (ISER, WAYS, Daemon, Secrets, main, make_image, need, over,
                     patience, quiet_port, run, sha256, sparse)

BUILT = unittest.skipUnless(os.path.exists(ISER), "iser is not built")


class Tgt:
    """A tgtd with unused control and iSCSI ports."""

    IQN = "iqn.2026-01.org.example:tgt"

    def __init__(self, image, kind="disk"):
        self.port = quiet_port()
        self.control = str(20000 + os.getpid() % 10000)
        self.proc = subprocess.Popen(
            ["tgtd", "-f", "-C", self.control, "--iscsi",
             "portal=127.0.0.1:%d" % self.port], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self._wait()
        self.adm("--op", "new", "--mode", "target", "--tid", "1", "-T",
                 self.IQN)
        self.adm("--op", "new", "--mode", "logicalunit", "--tid", "1",
                 "--lun", "1", "--device-type=" + kind, "-b", image)
        self.adm("--op", "bind", "--mode", "target", "--tid", "1", "-I", "ALL")
        socket.create_connection(("127.0.0.1", self.port)).close()
        self.portal = "127.0.0.1:%d" % self.port
        self.url = "iscsi://%s/%s/1" % (self.portal, self.IQN)

    def _wait(self):
        end = time.monotonic() + patience(5)
        while time.monotonic() < end:
            time.sleep(0.1)
            if self.proc.poll() is not None:
                raise unittest.SkipTest("tgtd does not run here: " +
                                        self.proc.stderr.read().decode())
            if self.adm("--op", "show", "--mode", "sys",
                        check=False).returncode == 0:
                return
        raise unittest.SkipTest("tgtd does not answer")

    def adm(self, *args, check=True):
        return run(["tgtadm", "-C", self.control, "--lld", "iscsi"] +
                   list(args), check=check)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.proc.kill()
        self.proc.wait()
        self.proc.stderr.close()


class Way:
    """A mixin of cases that are the same for each kind of connection."""

    way = "tcp"

    def at(self, url):
        return over(url, self.way)


class Copies(Way):
    """Copies to the target at url and back, and compares every byte."""

    def there_and_back(self, url, tmp):
        image, back = os.path.join(tmp, "image"), os.path.join(tmp, "back")
        make_image(image)
        run([ISER, "copy", "--quiet", image, url])
        self.assertIn(sha256(image), run([ISER, "hash", url]).text)
        run([ISER, "copy", "--quiet", url, back])
        self.assertEqual(sha256(image), sha256(back))

    def copies(self, *args, keys=""):
        with tempfile.TemporaryDirectory(dir=".") as tmp:
            with Daemon(*args) as d:
                self.there_and_back(self.at(d.url + keys), tmp)


class OwnCases(Copies):
    def test_ls(self):
        with Daemon("ram:8M", "null:1G") as d:
            portal = self.at("iscsi://" + d.portal)
            text = run([ISER, "ls", portal]).text
            self.assertIn(d.target, text)
            found = json.loads(run([ISER, "ls", "--json", portal]).text)
            self.assertEqual([u["bytes"] for t in found for u in t["units"]],
                             [8 << 20, 1 << 30])

    def test_info(self):
        with Daemon("ram:8M") as d:
            info = json.loads(run([ISER, "info", "--json",
                                   self.at(d.url)]).text)
            self.assertEqual(info["bytes"], 8 << 20)
            session = info["session"]
            self.assertEqual(session["kind"], WAYS[self.way][1])
            self.assertEqual("CM_HEADER" in session["rules"],
                             self.way == "rdma")
            self.assertTrue({"00", "80", "83", "b0"} <= set(info["vpd"]))

    def test_ping(self):
        with Daemon("ram:8M") as d:
            for size in ("0", "1", "127", "128", "4096"):
                run([ISER, "ping", "--count", "3", "--size", size,
                     self.at(d.url)])

    def test_copy_ram(self):
        self.copies("ram:24M")

    def test_copy_ram_by_sendfile(self):
        self.copies("--sendfile", "ram:24M")

    def test_copy_ram_4k_blocks(self):
        self.copies("--block-size", "4096", "ram:24M")

    def test_copy_file(self):
        with tempfile.TemporaryDirectory(dir=".") as tmp:
            disk = os.path.abspath(os.path.join(tmp, "disk"))
            make_image(disk)
            with Daemon("--workers", "2", disk) as d:
                self.there_and_back(self.at(d.url), tmp)

    def test_copy_digests(self):
        """RFC 7145 §6.1: over iSER no digest is offered, even if the URL requests one."""
        self.copies("ram:24M", keys="?header_digest=crc32c&data_digest=crc32c")

    def test_copy_depth_1(self):
        self.copies("ram:24M", keys="?depth=1")

    def test_copy_from_a_pipe(self):
        with tempfile.TemporaryDirectory(dir=".") as tmp:
            image = os.path.join(tmp, "image")
            make_image(image)
            with Daemon("ram:24M") as d, open(image, "rb") as f:
                url = self.at(d.url)
                subprocess.run([ISER, "copy", "--quiet", "-", url], stdin=f,
                               timeout=60, check=True)
                done = subprocess.run([ISER, "copy", "--quiet", url, "-"],
                                      stdout=subprocess.PIPE, timeout=60,
                                      check=True)
                self.assertEqual(hashlib.sha256(done.stdout).hexdigest(),
                                 sha256(image))

    def test_bench(self):
        with Daemon("ram:64M") as d:
            for how in ("randread", "randwrite", "randrw"):
                done = run([ISER, "bench", "--json", "--rw", how, "--time",
                            "1", "--depth", "16", "--yes-overwrite",
                            self.at(d.url)])
                found = json.loads(done.text)
                self.assertTrue(found.get("read") or found.get("write"))
                self.assertEqual(found["kind"], WAYS[self.way][1])
                cost = found["per_operation"]
                # batches: less than one call per operation at depth 16
                self.assertTrue(0 < cost["system_calls"] < 4, cost)
                self.assertLess(cost["copied_bytes"], 3 * 4096)

    def test_bench_sizes(self):
        """Sizes near FirstBurstLength and MaxBurstLength, odd depths."""
        with Daemon("--workers", "2", "ram:64M") as d:
            for size in ("512", "8k", "8704", "1M", "1049088", "4M"):
                for how in ("randread", "randwrite"):
                    run([ISER, "bench", "--json", "--rw", how, "--amount",
                         "32M", "--bs", size, "--depth", "7",
                         "--connections", "2", "--yes-overwrite",
                         self.at(d.url)])

    def test_no_listener(self):
        done = run([ISER, "ls", self.at("iscsi://127.0.0.1:1")], check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("127.0.0.1:1", done.text)

    def test_chap_mutual(self):
        with Secrets("--discovery-auth") as c, Daemon(*c.args, "ram:8M") as d:
            good = self.at(c.url(d.url, target="staple in the attic"))
            run([ISER, "info", good])
            run([ISER, "info", self.at(c.url(d.url))])
            self.assertIn(d.target, run([ISER, "ls", good]).text)
            files = d.url.replace("://", "://me@") + "?password_file=%s&target_user=disk&target_password_file=%s" % (
                c.args[3], c.args[7])
            run([ISER, "info", self.at(files)])
            for bad in (d.url, c.url(d.url, password="wrong wrong wrong"),
                        c.url(d.url, target="some other secret"),
                        c.url(d.url, target="staple in the attic",
                              target_user="disc")):
                for what in ("info", "ls"):
                    done = run([ISER, what, self.at(bad)], check=False)
                    self.assertIn(done.returncode, (5, 24), bad)
                    self.assertIn("login", done.text)

    def test_chap_mutual_over_iser(self):
        with Secrets("--discovery-auth") as c, Daemon(*c.args, "ram:8M") as d:
            for start in ("rdma", "stream"):
                keys = "&transport=iser&start=" + start
                good = c.url(d.url, target="staple in the attic") + keys
                self.assertIn("iser", run([ISER, "info", good]).text)
                for bad in (d.url + "?" + keys[1:],
                            c.url(d.url, target="some other secret") + keys):
                    done = run([ISER, "info", bad], check=False)
                    self.assertIn(done.returncode, (5, 24), bad)
            self.assertIn("over iser", d.messages())

    def test_chap_one_secret_for_both(self):
        with Secrets() as c, Daemon(*c.args, "ram:8M") as d:
            url = c.url(d.url, password="one same secret",
                        target="one same secret")
            done = run([ISER, "info", self.at(url)], check=False)
            self.assertEqual(done.returncode, 7)
            self.assertIn("must differ", done.text)

    def test_no_such_target(self):
        with Daemon("ram:8M") as d:
            url = "iscsi://%s/iqn.2026-01.org.example:nobody/0" % d.portal
            done = run([ISER, "info", self.at(url)], check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("nobody", done.text)

    def test_no_such_unit(self):
        with Daemon("ram:8M") as d:
            done = run([ISER, "info", self.at(d.url[:-1] + "9")], check=False)
            self.assertEqual(done.returncode, 21)
            self.assertIn("no LUN 9", done.text)

    def test_read_only(self):
        with tempfile.TemporaryDirectory(dir=".") as tmp:
            image = os.path.join(tmp, "image")
            make_image(image, 8 << 20)
            with Daemon("--read-only", "ram:8M") as d:
                done = run([ISER, "copy", "--quiet", image, self.at(d.url)],
                           check=False)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("protect", done.text.lower())


@BUILT
class Own(OwnCases, unittest.TestCase):
    pass


@BUILT
@need("tgtd", "tgtadm")
class OtherTarget(Copies, unittest.TestCase):
    def test_tgt(self):
        with tempfile.TemporaryDirectory(dir=".") as tmp:
            disk = os.path.abspath(os.path.join(tmp, "disk"))
            make_image(disk)
            with Tgt(disk) as t:
                self.assertIn(t.IQN, run([ISER, "ls", t.portal]).text)
                self.assertIn(sha256(disk), run([ISER, "hash", t.url]).text)
                self.there_and_back(t.url, tmp)

    def test_tgt_chap(self):
        """tgt takes number 7 of CHAP_A, SHA-256 (IANA), for SHA-1 and refuses the response
        with status 0200h: the second login leaves that number out."""
        with tempfile.TemporaryDirectory(dir=".") as tmp:
            with Tgt(sparse(os.path.abspath(os.path.join(tmp, "disk")), 1 << 20)) as t:
                for user, secret, out in (("me", "correct horse battery", ()),
                                          ("disk", "staple in the attic", ("--outgoing",))):
                    t.adm("--op", "new", "--mode", "account", "--user", user, "--password", secret)
                    t.adm("--op", "bind", "--mode", "account", "--tid", "1", "--user", user, *out)
                for more in {}, {"target": "staple in the attic"}:
                    self.assertIn("IET", run([ISER, "info", Secrets.url(t.url, **more)]).text)
                for bad in (Secrets.url(t.url, "wrong wrong wrong"), t.url,
                            Secrets.url(t.url, target="wrong wrong wrong")):
                    done = run([ISER, "info", bad], check=False)
                    self.assertNotEqual(done.returncode, 0, bad)
                    self.assertIn("login", done.text)


if __name__ == "__main__":
    main()
