#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""QEMU's tools copy an image to a unit and back; every byte is compared."""

from harness import Daemon, Folder, main, make_image, need, run, sha256, sparse


@need("qemu-img")
class Qemu(Folder):
    def setUp(self):
        super().setUp()
        self.image, self.back = self.path("image"), self.path("back")
        make_image(self.image, 32 << 20)

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
        path = sparse(self.path("disk"), 32 << 20)
        self.there_and_back(path)
        self.assertEqual(sha256(path), sha256(self.image))

    def test_file_buffered_4k(self):
        path = sparse(self.path("disk"), 32 << 20)
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
