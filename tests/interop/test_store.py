#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Stores that misbehave: a full disk, a file that is made smaller."""
import os
import subprocess
import tempfile
import unittest

from harness import Daemon, Wire, main, run, sparse
from rdma_wire import RdmaWire

DATA_PROTECT, MEDIUM_ERROR = 7, 3


def key_of(answer):
    """Status and sense key."""
    status, data = answer
    return status, data[4] & 15 if status else 0


def wires(daemon):
    """A session that is ready, by each way in."""
    for make in (Wire, RdmaWire, lambda d: RdmaWire(d, "stream")):
        w = make(daemon)
        w.login()
        yield w.ready()
        w.close()


@unittest.skipUnless(os.geteuid() == 0, "needs root to mount a small tmpfs")
class FullDisk(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        if subprocess.call(["mount", "-t", "tmpfs", "-o", "size=2M", "none",
                            self.dir], stderr=subprocess.DEVNULL):
            os.rmdir(self.dir)
            self.skipTest("may not mount here")

    def tearDown(self):
        run(["umount", self.dir])
        os.rmdir(self.dir)

    def test_full(self):
        path = os.path.join(self.dir, "disk")
        sparse(path, 16 << 20)  # thin: 2 MiB of it can be written
        with Daemon("--buffered", path) as d:
            for w in wires(d):
                failed, data = (0, 0), b"x" * 65536
                for lba in range(0, 16384, 256):
                    failed = key_of(w.write10(lba, data))
                    if failed[0]:
                        break
                self.assertEqual(failed, (2, DATA_PROTECT))
                # what was written is still there, and the session goes on
                self.assertEqual(w.read10(0, 1), (0, b"x" * 512))
            self.assertRegex(d.messages(), r"MEDIUM: LUN 0, %s: .* no space "
                             "left" % path)


class Shrunk(unittest.TestCase):
    def test_shrunk(self):
        """Blocks that are gone: an error for them, not for the others."""
        with tempfile.NamedTemporaryFile(dir=".") as f:
            f.truncate(8 << 20)
            with Daemon("--buffered", os.path.abspath(f.name)) as d:
                for w in wires(d):
                    f.truncate(8 << 20)
                    self.assertEqual(w.read10(12000, 8)[0], 0)
                    f.truncate(4 << 20)
                    self.assertEqual(key_of(w.read10(12000, 8)),
                                     (2, MEDIUM_ERROR))
                    self.assertEqual(w.read10(0, 1)[0], 0)
                self.assertIn("the medium failed", d.messages())


if __name__ == "__main__":
    main()
