#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""iser copy overwrites only its destination: not its own source under another name,
not an image that is served, and not a file if the source cannot be read."""
import fcntl
import os
import subprocess
import threading

from harness import (ISER, Daemon, Folder, main, make_image, need, over, patience,
                     quiet_port, run, sha256)
from lying_target import LyingTarget
from test_config import Configured

INVALID = 7


class Copy(Folder):
    def setUp(self):
        super().setUp()
        self.image = self.path("image")
        make_image(self.image, 12 << 20)
        self.hash = sha256(self.image)

    def refused(self, *args, status=INVALID, message="nothing was written", **kw):
        done = subprocess.run([ISER, "copy", *args], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=patience(30),
                              **kw)
        printed = done.stderr.decode()
        self.assertEqual(sha256(self.image), self.hash, printed)
        self.assertEqual(done.returncode, status, printed)
        self.assertIn(message, printed)
        self.assertNotIn("copied", printed)

    def test_onto_itself_by_any_name(self):
        os.link(self.image, self.path("hard"))
        os.symlink("image", self.path("soft"))
        os.symlink("soft", self.path("softer"))
        for name in (self.image, self.path("hard"), self.path("soft"),
                     self.path("softer"), self.dir + "/./image",
                     os.path.relpath(self.image)):
            self.refused(self.image, name, message="same file")
            self.refused(name, self.image, message="same file")
        with open(self.image, "rb") as f:
            self.refused("-", self.image, stdin=f, message="same file")
        with open(self.image, "rb") as f:  # the same file as an open stream
            f.read(512)
            os.lseek(f.fileno(), 512, os.SEEK_SET)
            self.refused("-", self.image, stdin=f, message="same file")

    def test_source_that_cannot_be_read(self):
        """The destination does not change."""
        self.refused(self.path("missing"), self.image, status=1,
                     message="cannot open it")
        self.refused("iscsi://127.0.0.1:%d/iqn.2026-01.x:y/0" % quiet_port(),
                     self.image, status=4, message="")
        self.refused("iscsi://127.0.0.1/", self.image, message="")

    def test_locked_by_another_process(self):
        with open(self.image, "r+b") as f, open(self.path("x"), "wb") as x:
            x.write(b"x" * 4096)
            x.flush()
            fcntl.lockf(f, fcntl.LOCK_SH | fcntl.LOCK_NB)
            self.refused(x.name, self.image, message="locked")

    def test_image_that_is_served(self):
        """As a file or as a unit: iserd has locked the image. Reading is permitted, with a
        warning."""
        other = self.path("other")
        with open(other, "wb") as f:
            f.write(b"z" * (1 << 20))
        with Daemon(self.image, "ram:12M") as d:
            self.refused(other, self.image, message="locked")
            self.refused(d.url, self.image, message="locked")
            self.refused(d.urls[1], self.image, message="locked")
            with open(other, "rb") as f:
                self.refused("-", self.image, stdin=f, message="locked")
            done = run([ISER, "copy", self.image, self.path("back")])
            self.assertIn("another process has it open", done.text)
        self.assertEqual(sha256(self.path("back")), self.hash)
        with Daemon("--read-only", self.image) as d:
            self.refused(other, self.image, message="locked")
            done = run([ISER, "copy", self.image, self.path("back")])
            self.assertNotIn("another process", done.text)

    @need("losetup")
    def test_block_devices(self):
        """A device in use, the source itself, and the file of a loop device."""
        done = run(["losetup", "--find", "--show", self.image], check=False)
        if done.returncode:
            self.skipTest("no loop device: " + done.text)
        loop = done.text.strip()
        self.addCleanup(run, ["losetup", "--detach", loop])
        with open(self.path("x"), "wb") as f:
            f.write(b"x" * 4096)
        self.refused(loop, loop, message="same file")
        self.refused(loop, self.image, message="same file")
        self.refused(self.image, loop, message="same file")
        with open(loop, "rb"):  # an open device is not in use
            pass
        fd = os.open(loop, os.O_RDONLY | os.O_EXCL)
        self.refused(f.name, loop, message="in use")
        os.close(fd)
        run([ISER, "copy", "--quiet", f.name, loop])
        with open(self.image, "rb") as image:
            self.assertEqual(image.read(4096), b"x" * 4096)
            image.seek(0, os.SEEK_END)
            self.assertEqual(image.tell(), 12 << 20)

    def test_unit_onto_itself(self):
        with Daemon(self.image) as d:
            for url in (d.url, over(d.url, "rdma"), d.url + "?depth=1",
                        d.url.replace("127.0.0.1", "localhost")):
                self.refused(d.url, url, message="same unit")
                self.refused(url, d.url, message="same unit")

    def test_unit_of_two_targets(self):
        """Two targets have one unit: its name, which iserd made, is the same."""
        config = self.path("config.yaml")
        with open(config, "w") as f:
            f.write("version: 1\nbackstores: {d: {store: %s}}\nportal-groups: {p: {listen: '127.0.0.1:0'}}\ntargets:\n"
                    "  iqn.2026-01.com.example:a: {auth-group: any, portal-groups: [p], luns: {0: d}}\n"
                    "  iqn.2026-01.com.example:b: {auth-group: any, portal-groups: [p], luns: {5: d}}\n" % self.image)
        with Configured(config, 2) as d:
            one, other = d.urls
            self.refused(one, other, message="same unit")
            self.refused(other, one, message="same unit")

    def test_write_protected(self):
        """A unit that takes no writes is refused before the first of them."""
        with Daemon("--read-only", self.image) as d:
            with open(self.path("x"), "wb") as x:
                x.write(b"x" * 4096)
            self.refused(x.name, d.url, message="is write-protected; nothing was written")
            done = run([ISER, "bench", "--rw", "write", "--yes-overwrite", "--time", "1", d.url], check=False)
            self.assertEqual(done.returncode, INVALID, done.text)
            self.assertIn("is write-protected; use --rw read", done.text)

    def test_append(self):
        """`>> file`, and earlier output of the shell: the old content stays."""
        with open(self.path("out"), "wb") as f:
            f.write(b"head")
            f.flush()
            subprocess.run([ISER, "copy", "--quiet", self.image, "-"],
                           stdout=f, check=True, timeout=patience(30))
        with open(self.path("out"), "ab") as f:
            subprocess.run([ISER, "copy", "--quiet", self.image, "-"],
                           stdout=f, check=True, timeout=patience(30))
        with open(self.image, "rb") as f:
            image = f.read()
        with open(self.path("out"), "rb") as f:
            self.assertTrue(f.read() == b"head" + 2 * image)

    def test_rest_of_standard_input(self):
        with open(self.image, "rb") as f:
            os.lseek(f.fileno(), 1 << 20, os.SEEK_SET)
            subprocess.run([ISER, "copy", "--quiet", "-", self.path("out")],
                           stdin=f, check=True, timeout=patience(30))
        with open(self.image, "rb") as f, open(self.path("out"), "rb") as o:
            f.seek(1 << 20)
            self.assertTrue(f.read() == o.read())

    def test_one_after_the_other_to_standard_output(self):
        """Two copies to standard output, and from standard input: each continues at the
        end of the last one."""
        shell = '{0} copy --quiet {1} -; {0} copy --quiet {1} -; echo end'
        with open(self.path("out"), "wb") as f:
            subprocess.run(["sh", "-c", shell.format(ISER, self.image)],
                           stdout=f, check=True, timeout=patience(30))
        with open(self.image, "rb") as f:
            image = f.read()
        with open(self.path("out"), "rb") as f:
            self.assertTrue(f.read() == 2 * image + b"end\n")
        with open(self.image, "rb") as f:
            subprocess.run([ISER, "copy", "--quiet", "-", self.path("out")],
                           stdin=f, check=True, timeout=patience(30))
            self.assertEqual(f.read(), b"")

    def test_source_that_is_not_a_file(self):
        """The destination is not truncated."""
        self.refused(self.dir, self.image, message="is a directory")
        with open(self.path("x"), "wb") as f:
            self.refused("-", self.image, stdin=f, message="not open for reading")
        self.refused("-", self.image, preexec_fn=lambda: os.close(0),
                     message="not open for reading")

    def test_flush_that_fails(self):
        """The exit code is that of the reason: no answer in time, connection lost."""
        def drop(c):
            raise EOFError

        make_image(self.image, 4 << 20)
        for answer, status in (lambda c: True, 8), (drop, 4):
            with LyingTarget(lambda c: c.op == 0x35 and answer(c)) as t:
                done = run([ISER, "copy", self.image, t.url("timeout=1")],
                           check=False)
                self.assertEqual(done.returncode, status, done.text)

    def test_source_that_becomes_shorter(self):
        """The missing end is not copied as a hole. The reader of the FIFO delays the
        copy."""
        fifo = self.path("fifo")
        os.mkfifo(fifo)
        for cut in (12 << 20) - 1, 1 << 20:
            make_image(self.image, 12 << 20)
            p = subprocess.Popen([ISER, "copy", "--quiet", self.image, fifo],
                                 stderr=subprocess.PIPE)
            with open(fifo, "rb") as f:
                f.read(4096)
                os.truncate(self.image, cut)
                f.read()
            printed = p.communicate(timeout=patience(30))[1].decode()
            self.assertIn("became shorter", printed)
            self.assertEqual(p.returncode, 1)

    def test_file_without_a_size(self):
        run([ISER, "copy", "--quiet", "/proc/version", self.path("out")])
        with open("/proc/version", "rb") as f, open(self.path("out"), "rb") as o:
            self.assertEqual(o.read(), f.read())

    def test_closed_descriptors(self):
        """Messages do not go into a file that is opened later."""
        for closed in (0,), (1,), (2,), (0, 1, 2):
            done = subprocess.run(
                [ISER, "copy", self.image, self.path("out")],
                preexec_fn=lambda: [os.close(fd) for fd in closed],
                timeout=patience(30))
            self.assertEqual(done.returncode, 0)
            self.assertEqual(sha256(self.path("out")), self.hash)

    def test_fifo_whose_reader_is_late(self):
        fifo, got = self.path("fifo"), []
        os.mkfifo(fifo)
        with open(self.path("small"), "wb") as f:
            f.write(b"s" * 1000)
        p = subprocess.Popen([ISER, "copy", "--quiet", self.path("small"),
                              fifo])

        def read():
            with open(fifo, "rb") as f:
                got.append(f.read())
        try:
            p.wait(0.5)  # the copy must wait for a reader
        except subprocess.TimeoutExpired:
            pass
        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        reader.join(patience(10))
        self.assertEqual(p.wait(patience(10)), 0)
        self.assertEqual(got, [b"s" * 1000])

    def test_overwrites_the_destination(self):
        """A longer file is truncated to the length of the source; holes stay holes."""
        out = self.path("out")
        with open(out, "wb") as f:
            f.write(b"o" * (16 << 20))
        run([ISER, "copy", "--quiet", self.image, out])
        self.assertEqual(sha256(out), self.hash)
        self.assertLess(os.stat(out).st_blocks * 512, 12 << 20)


if __name__ == "__main__":
    main()
