#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Our initiator against our target and against tgt."""
import hashlib
import json
import os
import socket
import subprocess
import tempfile
import time
import unittest

from harness import Daemon, ISER, Secrets, main, need, run

BUILT = unittest.skipUnless(os.path.exists(ISER), "iser is not built")


def make_image(path, size=24 << 20):
    with open(path, "wb") as f:
        f.write(os.urandom(3 << 20))
        f.seek(10 << 20)
        f.write(os.urandom(1 << 20))
        f.truncate(size)


def sha256(path):
    h = hashlib.sha256()
    with open(path, "rb") as f:
        for piece in iter(lambda: f.read(1 << 20), b""):
            h.update(piece)
    return h.hexdigest()


class Tgt:
    """A tgtd of its own: control port and iSCSI port nobody else uses."""

    IQN = "iqn.2026-01.org.example:tgt"

    def __init__(self, image):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.control = str(20000 + os.getpid() % 10000)
        self.proc = subprocess.Popen(
            ["tgtd", "-f", "-C", self.control, "--iscsi",
             "portal=127.0.0.1:%d" % self.port], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self._wait()
        self.adm("--op", "new", "--mode", "target", "--tid", "1", "-T",
                 self.IQN)
        self.adm("--op", "new", "--mode", "logicalunit", "--tid", "1",
                 "--lun", "1", "-b", image)
        self.adm("--op", "bind", "--mode", "target", "--tid", "1", "-I", "ALL")
        self.portal = "127.0.0.1:%d" % self.port
        self.url = "iscsi://%s/%s/1" % (self.portal, self.IQN)

    def _wait(self):
        for _ in range(50):
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


class Copies:
    """There and back, byte for byte, against whatever serves self.url."""

    def there_and_back(self, url, tmp):
        image, back = os.path.join(tmp, "image"), os.path.join(tmp, "back")
        make_image(image)
        run([ISER, "copy", "--quiet", image, url])
        self.assertIn(sha256(image), run([ISER, "hash", url]).text)
        run([ISER, "copy", "--quiet", url, back])
        self.assertEqual(sha256(image), sha256(back))


@BUILT
class Own(Copies, unittest.TestCase):
    def test_ls(self):
        with Daemon("ram:8M", "null:1G") as d:
            text = run([ISER, "ls", d.portal]).text
            self.assertIn(d.target, text)
            done = run([ISER, "ls", "--json", d.portal])
            self.assertIn(d.target, json.dumps(json.loads(done.text)))

    def test_info(self):
        with Daemon("ram:8M") as d:
            info = json.loads(run([ISER, "info", "--json", d.url]).text)
            self.assertIn("8388608", json.dumps(info))

    def test_copy_ram(self):
        with tempfile.TemporaryDirectory(dir=".") as tmp:
            with Daemon("ram:24M") as d:
                self.there_and_back(d.url, tmp)

    def test_copy_ram_by_sendfile(self):
        with tempfile.TemporaryDirectory(dir=".") as tmp:
            with Daemon("--sendfile", "ram:24M") as d:
                self.there_and_back(d.url, tmp)

    def test_copy_file(self):
        with tempfile.TemporaryDirectory(dir=".") as tmp:
            disk = os.path.abspath(os.path.join(tmp, "disk"))
            make_image(disk)
            with Daemon("--workers", "2", disk) as d:
                self.there_and_back(d.url, tmp)

    def test_copy_digests(self):
        with tempfile.TemporaryDirectory(dir=".") as tmp:
            with Daemon("ram:24M") as d:
                self.there_and_back(
                    d.url + "?header_digest=crc32c&data_digest=crc32c", tmp)

    def test_bench(self):
        with Daemon("ram:64M") as d:
            for how in ("randread", "randwrite", "randrw"):
                done = run([ISER, "bench", "--json", "--rw", how, "--time",
                            "1", "--depth", "16", "--yes-overwrite", d.url])
                found = json.loads(done.text)
                self.assertTrue(found.get("read") or found.get("write"))
                cost = found["per_operation"]
                # batches: less than one call per operation at depth 16
                self.assertTrue(0 < cost["system_calls"] < 4, cost)
                self.assertLess(cost["copied_bytes"], 3 * 4096)

    def test_nobody_there(self):
        done = run([ISER, "ls", "127.0.0.1:1"], check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("127.0.0.1:1", done.text)

    def test_chap_mutual(self):
        with Secrets("--discovery-auth") as c, Daemon(*c.args, "ram:8M") as d:
            good = c.url(d.url, target="staple in the attic")
            run([ISER, "info", good])
            run([ISER, "info", c.url(d.url)])
            self.assertIn(d.target, run([ISER, "ls", good]).text)
            for bad in (d.url, c.url(d.url, password="wrong wrong wrong"),
                        c.url(d.url, target="some other secret"),
                        c.url(d.url, target="staple in the attic",
                              target_user="disc")):
                for what in ("info", "ls"):
                    done = run([ISER, what, bad], check=False)
                    self.assertIn(done.returncode, (5, 24), bad)
                    self.assertIn("login", done.text)

    def test_chap_one_secret_for_both(self):
        with Secrets() as c, Daemon(*c.args, "ram:8M") as d:
            done = run([ISER, "info", c.url(d.url, password="one same secret",
                                            target="one same secret")],
                       check=False)
            self.assertEqual(done.returncode, 7)
            self.assertIn("must differ", done.text)

    def test_no_such_target(self):
        with Daemon("ram:8M") as d:
            url = "iscsi://%s/iqn.2026-01.org.example:nobody/0" % d.portal
            done = run([ISER, "info", url], check=False)
            self.assertNotEqual(done.returncode, 0)


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


if __name__ == "__main__":
    main()
