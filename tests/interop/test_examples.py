#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The examples in C: each compiles as C99 without a warning, and does what its first comment says. test_python has those in Python."""
import glob
import os
import subprocess
import unittest

from harness import Daemon, Folder, main, make_image, need, patience
from test_install import BUILD, TOP, sanitized

LIBRARY = os.path.join(BUILD, "src/lib")


@unittest.skipIf(sanitized(), "a sanitizer's library needs a sanitizer's program")
@need("gcc")
class Examples(Folder):
    def run_example(self, name, *args):
        """Returns the lines that the example prints."""
        program = self.path(name)
        subprocess.run(["gcc", "-std=c99", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-I" + os.path.join(TOP, "include"),
                        os.path.join(TOP, "examples", name + ".c"), "-o", program, os.path.join(LIBRARY, "libiser.so.1")], check=True)
        done = subprocess.run([program, *args], env=dict(os.environ, LD_LIBRARY_PATH=LIBRARY), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=patience(30))
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout.splitlines()

    def test_every_example_has_a_test(self):
        for path in glob.glob(os.path.join(TOP, "examples/*.c")):
            name = os.path.basename(path).removesuffix(".c")
            self.assertTrue(hasattr(self, "test_" + name), name)

    def test_read_first_block(self):
        with Daemon("ram:1M") as d:
            self.assertEqual(self.run_example("read_first_block", d.url)[0], "2048 blocks of 512 bytes")

    def test_read_async(self):
        image = self.path("image")
        make_image(image, 1 << 20)
        with Daemon(image) as d, open(image, "rb") as f:
            self.assertEqual(self.run_example("read_async", d.url), ["1048576 bytes, sum %d" % sum(f.read())])

    def test_list_targets(self):
        with Daemon("ram:1M") as d:
            portal, name = d.url.rsplit("/", 2)[:2]
            lines = self.run_example("list_targets", portal)
            self.assertEqual(lines[0], name)
            self.assertTrue(lines[1].startswith("  127.0.0.1:"), lines)

    def test_read_paths(self):
        """Two paths of one portal; one of them may lead nowhere."""
        with Daemon("ram:1M") as d:
            lines = self.run_example("read_paths", d.url, d.url)
            self.assertEqual([line.endswith(": ready, used") for line in lines], [True, True], lines)
            nowhere = d.url.replace(d.url.split("/")[2], "127.0.0.1:1")
            self.assertIn(": ready, used", self.run_example("read_paths", d.url, nowhere)[0])

    def test_rdma_hello(self):
        self.assertEqual(self.run_example("rdma_hello"), ["hello by RDMA Write"])


if __name__ == "__main__":
    main()
