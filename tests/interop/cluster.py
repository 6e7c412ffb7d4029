# SPDX-License-Identifier: BSD-2-Clause
"""Gateways that share a unit: several iserd over one store, for the tests of clusters."""
import contextlib
import json
import os

from harness import ISERCTL, Daemon, Folder, quiet_port, run, sparse, until
from test_alua import Path

TIMES = ("--cluster-beacon", "200", "--cluster-silence", "1000", "--cluster-patience", "2000")
READY = ("owner", "standing-by")


class Gateway:
    """One gateway; it can be started again under its name and number, at its address."""

    def __init__(self, folder, number, *luns, more=(), name=None, times=TIMES, host="127.0.0.1", through=()):
        self.number = number
        self.name = name or "gw%d" % number
        self.control = os.path.join(folder, self.name + ".control")
        self.address = "%s:%d" % (host, quiet_port())
        self.through = through
        self.args = ("--listen", self.address, "--control", self.control, "--cluster",
                     "--cluster-number", str(number), "--cluster-gateway", self.name) + tuple(times) + tuple(more) + luns
        self.daemon = None

    def start(self):
        self.daemon = Daemon(*self.args, through=self.through)
        return self

    def iserctl(self, *args, check=True):
        return run([ISERCTL, "-s", self.control, *args], check=check)

    def status(self):
        """The answer of `cluster status`."""
        return json.loads(self.iserctl("--json", "cluster", "status").text)

    def unit(self, name="lun0"):
        return next(u for u in self.status()["units"] if u["backstore"] == name)

    def role(self, name="lun0"):
        return self.unit(name)["role"]

    def wait_role(self, *roles, name="lun0", limit=10):
        until(lambda: self.role(name) in roles,
              lambda: "%s is %s, not %s: %s" % (self.name, self.role(name), roles, self.daemon.messages()), limit)

    def path(self):
        """An initiator on the path through this gateway."""
        return Path(self.daemon)

    def events(self):
        return [line for line in self.daemon.messages().splitlines() if " CLUSTER: " in line]


class Cluster(Folder):
    """A test with gateways over the directory store."""
    SIZE = 8 << 20
    MORE = ()

    def setUp(self):
        super().setUp()
        self.disk = sparse(self.path("disk.img"), self.SIZE)
        self.shared = self.path("cluster")
        self.gateways = []

    def tearDown(self):
        with contextlib.ExitStack() as all_end:  # each of them, although one fails
            for g in reversed(self.gateways):
                if g.daemon and g.daemon.proc.poll() is None:
                    all_end.push(g.daemon)

    def gateway(self, number, *more, **kw):
        """A gateway that is not started."""
        g = Gateway(self.dir, number, self.disk,
                    more=("--cluster-directory", self.shared, "--block-size", "512") + self.MORE + more, **kw)
        self.gateways.append(g)
        return g

    def pair(self, *more):
        """Two gateways; the first one owns the unit."""
        one, two = self.gateway(1, *more).start(), self.gateway(2, *more)
        one.wait_role("owner")
        two.start()
        two.wait_role("standing-by")
        until(lambda: len(one.unit()["gateways"]) == 2, "the first gateway knows the second")
        return one, two
