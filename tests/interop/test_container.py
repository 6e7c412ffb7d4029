#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""iserd as in a plain container: another user, no capability, no way to get one, and a seccomp filter that forbids
io_uring, as the default profile of container runtimes does."""
import ctypes
import os
import platform
import shutil
import struct
import subprocess
import tempfile
import unittest

from harness import ISER, ISERCTL, ISERD, main, patience, run, text_of_log

NOBODY = 65534
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 24, 38, 22, 2
IO_URING = (425, 426, 427)  # io_uring_setup, io_uring_enter, io_uring_register: on each architecture
ALLOW, FAIL_EPERM, FAIL_ENOSYS = 0x7fff0000, 0x00050001, 0x00050026


class Filter:
    """A program for seccomp(2) that lets the system calls of io_uring fail."""

    def __init__(self, action):
        load = struct.pack("=HBBI", 0x20, 0, 0, 0)  # A = the number of the system call
        tests = b"".join(struct.pack("=HBBI", 0x15, len(IO_URING) - i, 0, nr) for i, nr in enumerate(IO_URING))
        ends = struct.pack("=HBBI", 6, 0, 0, ALLOW) + struct.pack("=HBBI", 6, 0, 0, action)
        self.code = ctypes.create_string_buffer(load + tests + ends)
        # struct sock_fprog
        self.prog = ctypes.create_string_buffer(struct.pack("@HP", 3 + len(IO_URING), ctypes.addressof(self.code)))


def confine(action):
    """Returns a function that takes all privileges from the calling process."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
    program = Filter(action) if action else None

    def confined():
        if os.getuid() == 0:
            for cap in range(64):
                libc.prctl(PR_CAPBSET_DROP, cap, 0, 0, 0)
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
            os._exit(98)
        if program and libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(program.prog), 0, 0):
            os._exit(99)

    return confined


@unittest.skipUnless(platform.machine() in ("x86_64", "aarch64"), "the filter knows two architectures")
class Container(unittest.TestCase):
    def setUp(self):
        # the user of the container cannot read each folder of a build
        folder = tempfile.TemporaryDirectory(dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.dir = folder.name
        os.chmod(self.dir, 0o755)
        self.iserd = shutil.copy(ISERD, os.path.join(self.dir, "iserd"))
        self.data = os.path.join(self.dir, "data")
        os.mkdir(self.data, 0o700)
        if os.getuid() == 0:
            os.chown(self.data, NOBODY, NOBODY)

    def start(self, *args, action=None):
        log = open(os.path.join(self.dir, "log"), "w+b")
        self.addCleanup(log.close)
        p = subprocess.Popen([self.iserd, "serve", "--listen", "127.0.0.1:0"] + list(args), cwd="/", stdout=subprocess.PIPE,
                             stdin=subprocess.DEVNULL, stderr=log, preexec_fn=confine(action))
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        self.addCleanup(p.stdout.close)
        return p, log

    def serve(self, expected, *args, action=None):
        """Starts iserd with an image and a state directory, and copies data there and back."""
        image = os.path.join(self.data, "disk.img")
        with open(image, "wb") as f:
            f.truncate(16 << 20)
        if os.getuid() == 0:
            os.chown(image, NOBODY, NOBODY)
        control = os.path.join(self.data, "control")
        p, log = self.start("--control", control, "--state", os.path.join(self.data, "state"), "--workers", "2", *args,
                            image, "ram:8M", action=action)
        url = p.stdout.readline().decode().strip()
        self.assertTrue(url.startswith("iscsi://"), text_of_log(log))
        self.assertIn("(%s)" % expected, text_of_log(log))
        with open("/proc/%d/status" % p.pid) as f:
            status = dict(line.split(":\t") for line in f.read().splitlines() if ":\t" in line)
        self.assertEqual(status["NoNewPrivs"], "1")
        if os.getuid() == 0:
            self.assertEqual(status["Uid"].split(), [str(NOBODY)] * 4)
            for kind in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb"):
                self.assertEqual(int(status[kind], 16), 0)
        self.assertEqual(status["Seccomp"], "2" if action else "0")
        source, copy = os.path.join(self.dir, "source"), os.path.join(self.dir, "copy")
        with open(source, "wb") as f:
            f.write(os.urandom(4 << 20))
            f.truncate(16 << 20)
        for there in (url, "iser" + url[5:] + "?start=stream"):
            run([ISER, "copy", source, there])
            run([ISER, "copy", there, copy])
            run(["cmp", source, copy])
            os.unlink(copy)
        # what the probes of packaging/kubernetes run
        run([ISERCTL, "--socket", control, "--timeout", "5", "status"])
        p.terminate()
        self.assertEqual(p.wait(patience(12)), 0, text_of_log(log))

    def test_io_uring_forbidden(self):
        """--io auto: epoll and threads."""
        for action in (FAIL_EPERM, FAIL_ENOSYS):
            self.serve("epoll", action=action)

    def test_io_uring_allowed(self):
        self.serve("io_uring")

    def test_epoll_with_io_uring_allowed(self):
        self.serve("epoll", "--io", "epoll")

    def test_io_uring_wanted_but_forbidden(self):
        p, log = self.start("--io", "uring", "ram:1M", action=FAIL_EPERM)
        self.assertEqual(p.wait(patience(10)), 1)
        self.assertIn("try --io epoll", text_of_log(log))

    def test_a_port_of_root_is_refused(self):
        if os.getuid():
            self.skipTest("needs root")
        with open("/proc/sys/net/ipv4/ip_unprivileged_port_start") as f:
            if int(f.read()) <= 860:
                self.skipTest("each user may listen at port 860")
        p, log = self.start("--listen", "127.0.0.1:860", "ram:1M")
        self.assertEqual(p.wait(patience(10)), 4)
        self.assertIn("ports below 1024 need root", text_of_log(log))


if __name__ == "__main__":
    main()
