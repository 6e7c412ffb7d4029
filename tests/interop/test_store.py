#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Stores that misbehave: a full disk, a file that is made smaller."""
import os
import subprocess
import tempfile
import unittest

from harness import Daemon, Wire, main, need, run

DATA_PROTECT, MEDIUM_ERROR = 7, 3


def write10(w, lba, blocks):
    cdb = b"\x2a\0" + lba.to_bytes(4, "big") + b"\0" + \
        blocks.to_bytes(2, "big") + bytes(7)
    w.command(cdb, 0xa0, edtl=blocks * 512, data=b"x" * (blocks * 512))
    _, head, data = w.recv()
    return head[3], data[4] & 15 if len(data) > 4 else 0


def ready(daemon):
    w = Wire(daemon)
    w.login()
    for _ in range(3):
        w.command(bytes(16))
        if w.recv()[1][3] == 0:
            return w
    raise AssertionError("unit is not ready")


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
        with open(path, "wb") as f:
            f.truncate(16 << 20)  # thin: 2 MiB of it can be written
        with Daemon("--buffered", path) as d:
            w, failed = ready(d), None
            for lba in range(0, 16384, 256):
                status, key = write10(w, lba, 128)
                if status:
                    failed = (status, key)
                    break
            self.assertEqual(failed, (2, DATA_PROTECT))
            # what was written is still there, and the session goes on
            w.command(b"\x28" + bytes(7) + b"\x01" + bytes(7), 0xc0, edtl=512)
            _, head, data = w.recv()
            self.assertEqual((head[3], data), (0, b"x" * 512))
            self.assertRegex(d.messages(), r"MEDIUM: LUN 0, %s: .* no space "
                             "left" % path)
            w.close()


class Shrunk(unittest.TestCase):
    def test_shrunk(self):
        """Blocks that are gone: an error for them, not for the others."""
        with tempfile.NamedTemporaryFile(dir=".") as f:
            f.truncate(8 << 20)
            with Daemon("--buffered", os.path.abspath(f.name)) as d:
                w = ready(d)
                f.truncate(4 << 20)
                w.command(b"\x28\0" + (12000).to_bytes(4, "big") + b"\0\0\x08" +
                          bytes(7), 0xc0, edtl=4096)
                _, head, data = w.recv()
                self.assertEqual((head[3], data[4] & 15), (2, MEDIUM_ERROR))
                self.assertIn("the medium failed", d.messages())
                w.command(b"\x28" + bytes(7) + b"\x01" + bytes(7), 0xc0,
                          edtl=512)
                self.assertEqual(w.recv()[1][3], 0)
                w.close()


if __name__ == "__main__":
    main()
