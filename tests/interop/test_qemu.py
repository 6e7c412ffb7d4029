#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""QEMU's tools: an image goes out and comes back, byte for byte."""
import hashlib
import os
import tempfile
import unittest

from harness import Daemon, main, need, run


def sha256(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest() if hasattr(
            hashlib, "file_digest") else hashlib.sha256(f.read()).hexdigest()


@need("qemu-img")
class Qemu(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory(dir=".")
        self.image = os.path.join(self.dir.name, "image")
        self.back = os.path.join(self.dir.name, "back")
        with open(self.image, "wb") as f:
            f.write(os.urandom(3 << 20))
            f.seek(20 << 20)
            f.write(os.urandom(1 << 20))
            f.truncate(32 << 20)

    def tearDown(self):
        self.dir.cleanup()

    def there_and_back(self, *args):
        with Daemon(*args) as d:
            run(["qemu-img", "convert", "-n", "-f", "raw", "-O", "raw",
                 self.image, d.url])
            run(["qemu-img", "compare", "-f", "raw", "-F", "raw", self.image,
                 d.url])
            run(["qemu-img", "convert", "-f", "raw", "-O", "raw", d.url,
                 self.back])
            self.assertIn("32 MiB", run(["qemu-img", "info", d.url]).text)
        self.assertEqual(sha256(self.image), sha256(self.back))

    def test_ram(self):
        self.there_and_back("ram:32M")

    def test_file(self):
        path = os.path.abspath(os.path.join(self.dir.name, "disk"))
        with open(path, "wb") as f:
            f.truncate(32 << 20)
        self.there_and_back(path)
        self.assertEqual(sha256(path), sha256(self.image))

    def test_file_buffered_4k(self):
        path = os.path.abspath(os.path.join(self.dir.name, "disk"))
        with open(path, "wb") as f:
            f.truncate(32 << 20)
        self.there_and_back("--buffered", "--block-size", "4096", path)
        self.assertEqual(sha256(path), sha256(self.image))

    def test_bench_writes(self):
        with Daemon("--workers", "2", "ram:64M") as d:
            for args in (["-d", "32", "-s", "4096"],
                         ["-d", "8", "-s", "1048576"],
                         ["-d", "32", "-s", "65536", "-w",
                          "--flush-interval=64"]):
                run(["qemu-img", "bench", "-f", "raw", "-c", "2000", "-t",
                     "none"] + args + [d.url])

    def test_read_only(self):
        with Daemon("--read-only", "ram:32M") as d:
            self.assertNotEqual(
                run(["qemu-img", "convert", "-n", "-O", "raw", self.image,
                     d.url], check=False).returncode, 0)


if __name__ == "__main__":
    main()
