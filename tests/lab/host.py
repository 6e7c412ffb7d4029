# SPDX-License-Identifier: BSD-2-Clause
"""Gateways on the host, in front of an image of a Ceph cluster of one OSD (tests/interop/ceph.py).

For jobs with the comment "host: rbd". The guest asks by lines of its results,
"host ID WORD NUMBER...", and finds the answer in out/answer.ID: the exit status, then the output.
"""
import os
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "interop"))
import ceph  # noqa: E402 pylint: disable=wrong-import-position
from harness import quiet_port  # noqa: E402 pylint: disable=wrong-import-position

IQN = "iqn.2026-01.org.example:iserd"


def missing(build):
    """Returns what this needs and cannot find, or None."""
    if ceph.missing():
        return ceph.missing() + " is not installed; run scripts/packages packages-ceph.txt"
    if not os.path.exists(os.path.join(build, "src/backstore-rbd.so")):
        return "this build has no backstore-rbd.so: install librbd-dev"
    return None


class Host:
    """The cluster and its gateways, 1 and 2; nets: the network of the guest for each gateway, without the last number."""

    def __init__(self, build, out, nets):
        self.build, self.out, self.nets = build, out, nets
        self.ports = {1: quiet_port(), 2: quiet_port()}
        self.running, self.folder = {}, tempfile.TemporaryDirectory(prefix="gateways")
        self.ceph = ceph.Cluster(auth=True)
        self.ceph.create("shared", "64M")

    def control(self, number):
        return os.path.join(self.folder.name, "%d.control" % number)

    def start(self, number):
        with open(os.path.join(self.out, "gateway.%d.log" % number), "ab") as log:
            self.running[number] = subprocess.Popen(
                [os.path.join(self.build, "src/daemon/iserd"), "serve", "--name", IQN, "--listen", "127.0.0.1:%d" % self.ports[number],
                 "--control", self.control(number), "--log", "info", "--cluster", "--cluster-number", str(number),
                 "--cluster-gateway", "gw%d" % number, "--announce", "%s.10:%d" % (self.nets[number - 1], self.ports[number]),
                 "rbd:rbd/shared,conf=" + self.ceph.conf],
                env=dict(os.environ, OPENISER_MODULES=os.path.join(self.build, "src")),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return 0, ""

    def signal(self, number, name):
        self.running[number].send_signal(getattr(signal, "SIG" + name))
        return 0, ""

    def status(self, number):
        """The exit status as a shell has it, or nothing while it runs."""
        status = self.running[number].poll()
        return 0, "" if status is None else "%d\n" % (status if status >= 0 else 128 - status)

    def ctl(self, number, *words):
        done = subprocess.run([os.path.join(self.build, "src/tools/iserctl"), "-s", self.control(number)] + list(words), timeout=60,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return done.returncode, done.stdout.decode()

    def answer(self, line):
        """Does what a line of the results asks for."""
        _, ask, word, number, *more = line.split()
        try:
            status, text = {"start": self.start, "signal": self.signal, "status": self.status, "ctl": self.ctl}[word](int(number), *more)
        except (OSError, KeyError, subprocess.SubprocessError) as e:
            status, text = 1, "%s: %s\n" % (type(e).__name__, e)
        path = os.path.join(self.out, "answer." + ask)
        with open(path + ".new", "w") as f:
            f.write("%d\n%s" % (status, text))
        os.rename(path + ".new", path)

    def stop(self):
        for gateway in self.running.values():
            if gateway.poll() is None:
                gateway.send_signal(signal.SIGCONT)
                gateway.kill()
                gateway.wait()
        self.ceph.stop()
        self.folder.cleanup()
