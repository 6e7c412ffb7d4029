#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Command lines and exit codes of iser and iserctl, as in the man pages."""
import json
import os
import signal
import socket
import subprocess
import time
import unittest

from harness import (ISER, ISERCTL, ISERD, Daemon, Folder, main, make_image,
                     patience, run, sha256, until)
from lying_target import LyingTarget

COMMANDS = ("ls", "info", "copy", "hash", "bench", "ping", "nbd-serve", "attach", "detach",
            "rping", "rbench")
NOBODY = 65534


class CommandLine(Folder):
    def ends(self, status, *args, message="", **kw):
        done = run(list(args), check=False, **kw)
        self.assertEqual(done.returncode, status, done.text)
        self.assertIn(message, done.text)
        return done

    def test_help(self):
        for c in COMMANDS:
            for option in ("-h", "--help"):
                self.ends(0, ISER, c, option, message="usage: iser " + c)
        self.ends(0, ISER, "-h", message="usage: iser")
        self.ends(0, ISERCTL, "-h", message="usage: iserctl")

    def test_options_given_twice(self):
        twice = "given twice"
        for c in COMMANDS:
            self.ends(7, ISER, c, "--json", "--json", "x", message=twice)
            self.ends(7, ISER, c, "-j", "--json", "x", message=twice)
            self.ends(7, ISER, c, "-i", "iqn.a:b", "--initiator", "iqn.a:b",
                      "x", message=twice)
        self.ends(7, ISER, "bench", "--bs", "4k", "--bs", "8k", "x",
                  message="--bs: " + twice)
        self.ends(7, ISER, "hash", "--algo", "md5", "--algo", "md5", "x",
                  message="--algo: " + twice)
        self.ends(2, ISERCTL, "-s", "a", "-s", "b", "status",
                  message="--socket: given twice")
        self.ends(2, ISERCTL, "-s", "a", "log", "level=info", "level=debug",
                  message="level: given twice")

    def test_values_out_of_range(self):
        for args in (("ping", "--size", "8193"), ("ping", "--count", "x"),
                     ("bench", "--bs", "0"), ("bench", "--time", "0"),
                     ("rping", "--size", "31"), ("rbench", "--depth", "0"),
                     ("rbench", "--fpdu", "127"), ("rping", "--mpa", "3"),
                     ("nbd-serve", "--export", "a b")):
            self.ends(7, ISER, *args, "x",
                      message="%s: %s %s: must be" % args)
        self.ends(7, ISER, "info", "--initiator", "iqn.2026-01.org.a:".ljust(224, "a"), "x",
                  message="must be at most 223 bytes long")
        self.ends(7, ISER, "ls", "--count", "1", "x", message="no such option")
        self.ends(7, ISER, "copy", "x", message="too few operands")
        self.ends(7, ISER, "hash", "x", "y", message="too many operands")

    def test_vpd_page_that_cannot_be_read(self):
        def lie(c):
            if c.op != 0x12 or not c.cdb[1] & 1:
                return False
            if c.cdb[2] == 0:
                c.give(b"\0\0\0\3\0\x83\xb0")
            elif c.cdb[2] == 0x83:
                c.check(5, 0x2400)
            else:
                return False
            return True

        with LyingTarget(lie) as t:
            done = subprocess.run([ISER, "info", "--json", t.url()],
                                  stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=patience(30))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(b"VPD page 83h: cannot read it", done.stderr)
            self.assertEqual(sorted(json.loads(done.stdout)["vpd"]),
                             ["00", "b0"])

    def test_unit_that_is_not_there(self):
        make_image(self.path("image"), 12 << 20)
        with Daemon("ram:16M") as d:
            url = d.url[:-1] + "9"
            for args in (("info",), ("copy", self.path("image")), ("hash",),
                         ("bench",), ("nbd-serve", "--listen", "127.0.0.1:0")):
                self.ends(21, ISER, *args, url, message="no LUN 9")
            self.ends(21, ISER, "copy", url, self.path("image"))
            self.assertEqual(os.path.getsize(self.path("image")), 12 << 20)
            self.ends(21, ISER, "info", d.url.replace(d.target, "iqn.2026-01"
                                                      ".org.example:none"))

    @unittest.skipIf(os.geteuid(), "only root can be somebody else")
    def test_iserctl_reports_why_it_cannot_connect(self):
        path = self.path("ctl")
        self.ends(3, ISERCTL, "-s", path, "status", message="no iserd:")
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(path)
            self.ends(3, ISERCTL, "-s", path, "status", message="no iserd:")
            s.listen()
            os.chmod(path, 0o600)
            os.chmod(self.dir, 0o755)
            self.ends(4, ISERCTL, "-s", path, "status",
                      message="permission denied", user=NOBODY)
        self.ends(2, ISERCTL, "-s", "x" * 200, "status", message="too long")

    def test_results_that_cannot_be_printed(self):
        make_image(self.path("image"), 1 << 20)
        with Daemon("--control", self.path("ctl"), "ram:8M") as d:
            for args in ((ISER, "hash", self.path("image")),
                         (ISER, "copy", "--json", d.url, self.path("x")),
                         (ISER, "info", d.url), (ISER, "--help"),
                         (ISERCTL, "--help"),
                         (ISERCTL, "-s", self.path("ctl"), "status")):
                with open("/dev/full", "wb") as full:
                    done = subprocess.run(args, stdout=full,
                                          stderr=subprocess.PIPE,
                                          timeout=patience(30))
                self.assertEqual(done.returncode, 1, args)
                self.assertIn(b"No space left", done.stderr)

    def test_iserd_with_closed_descriptors(self):
        """Log lines do not go into the image."""
        path, image = self.path("ctl"), self.path("image")
        make_image(image, 1 << 20)
        hash_ = sha256(image)
        for closed in (2,), (0, 1, 2):
            p = subprocess.Popen(
                [ISERD, "serve", "-l", "0", "--log", "debug", "--buffered",
                 "--control", path, image],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                preexec_fn=lambda: [os.close(fd) for fd in closed])
            until(lambda: os.path.exists(path), "no control socket")
            for fd in closed:
                self.assertEqual(os.readlink("/proc/%d/fd/%d" % (p.pid, fd)),
                                 "/dev/null")
            p.terminate()
            self.assertEqual(p.wait(patience(20)), 0)
            self.assertEqual(sha256(image), hash_)

    def test_iserctl_bytes_that_are_not_utf8(self):
        path = self.path("ctl")
        with Daemon("--control", path, "ram:8M"):
            for args in ((b"st\xff",), (b"log", b"level=\xff"),
                         (b"log", b"\xff=info")):
                self.ends(2, ISERCTL, "-s", path, *args, message="UTF-8")

    def test_iserctl_has_a_timeout(self):
        """With a stopped iserd, and with a program that is not iserd."""
        path = self.path("ctl")
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(path)
            s.listen(0)
            self.ends(3, ISERCTL, "-s", path, "--timeout", "1", "status",
                      message="no answer within 1 s")
            others = [socket.socket(socket.AF_UNIX) for _ in range(3)]
            for o in others:
                o.setblocking(False)
                o.connect_ex(path)
            self.ends(3, ISERCTL, "-s", path, "--timeout", "1", "status",
                      message="no answer within 1 s")
            begin = time.monotonic()
            self.ends(3, ISERCTL, "-s", path, "status", message="it is stopped or hangs")
            self.assertLess(time.monotonic() - begin, patience(9))
            for o in others:
                o.close()
            for bad in "0", "-1", "x", "", "1e9", "999999999":
                self.ends(2, ISERCTL, "-s", path, "--timeout", bad, "status",
                          message="--timeout")

    def test_iserctl_at_a_stopped_iserd(self):
        """The default timeout is for requests that take long, not for an iserd that does not run."""
        path = self.path("ctl")
        with Daemon("--control", path, "ram:8M") as d:
            d.proc.send_signal(signal.SIGSTOP)
            begin = time.monotonic()
            self.ends(3, ISERCTL, "-s", path, "status", message="it is stopped or hangs")
            self.assertLess(time.monotonic() - begin, patience(12))
            late = subprocess.Popen([ISERCTL, "-s", path, "status"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            time.sleep(4)  # the first look
            d.proc.send_signal(signal.SIGCONT)
            self.assertIn("sessions", late.communicate(timeout=patience(20))[0].decode())
            self.assertEqual(late.returncode, 0)

    def test_iserctl_unknown_parameters_and_levels(self):
        path = self.path("ctl")
        with Daemon("--control", path, "ram:8M"):
            self.ends(1, ISERCTL, "-s", path, "status", "leve=info",
                      message="leve")
            self.ends(1, ISERCTL, "-s", path, "log", "level=loud",
                      message="level")
            self.ends(1, ISERCTL, "-s", path, "statu")
            self.ends(0, ISERCTL, "-s", path, "log", "level=debug")


if __name__ == "__main__":
    main()
