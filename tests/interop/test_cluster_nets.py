#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Three gateways in network namespaces over an image of Ceph with two copies on three OSDs: what test_cluster does to gateways,
and cut networks on either side, OSDs and the monitor killed. Only with CLUSTER=long (make cluster), as root.

    initiators (10.78.0.1) --+-- gateway N (10.78.0.1N; 10.77.0.1N) --+-- Ceph (10.77.0.1)
"""
import ctypes
import os
import unittest

import ceph
from cluster import TIMES, Cluster, Gateway
from harness import main, run, until
from test_cluster import MODULES, Faults, openiser
from test_discovery import CLONE_NEWNET

LIBC = ctypes.CDLL(None, use_errno=True)
CEPH = None
HOME = None  # the network namespace of the tests before


def call(result):
    if result:
        raise OSError(ctypes.get_errno(), "network namespace")


def setUpModule():
    global CEPH, HOME
    if os.geteuid():
        raise unittest.SkipTest("needs root for network namespaces")
    if ceph.missing() or not openiser:
        raise unittest.SkipTest("Ceph or libiser is missing")
    HOME = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    call(LIBC.unshare(CLONE_NEWNET))
    run(["ip", "link", "set", "lo", "up"])
    for bridge, address in (("store", "10.77.0.1/24"), ("front", "10.78.0.1/24")):
        run(["ip", "link", "add", bridge, "type", "bridge"])
        run(["ip", "addr", "add", address, "dev", bridge])
        run(["ip", "link", "set", bridge, "up"])
    os.environ["OPENISER_MODULES"] = MODULES
    CEPH = ceph.Cluster(auth=True, host="10.77.0.1", osds=3, size=2)


def tearDownModule():
    if CEPH:
        CEPH.stop()
    if HOME is not None:
        call(LIBC.setns(HOME, CLONE_NEWNET))
    os.environ.pop("OPENISER_MODULES", None)


class Machine:
    """The namespace of a gateway, with a cable to each of the two networks."""

    made = 0

    def __init__(self, number):
        Machine.made += 1  # the kernel removes namespaces late
        self.name = "openiser-%d-%d" % (os.getpid(), Machine.made)
        self.number = number
        run(["ip", "netns", "add", self.name])
        try:
            self.connect_all()
        except BaseException:
            self.remove()
            raise

    def connect_all(self):
        self.inside("ip", "link", "set", "lo", "up")
        for net, bridge in ((77, "store"), (78, "front")):
            near = self.near(bridge)
            run(["ip", "link", "add", near, "type", "veth", "peer", "name", bridge, "netns", self.name])
            run(["ip", "link", "set", near, "master", bridge, "up"])
            self.inside("ip", "addr", "add", "10.%d.0.1%d/24" % (net, self.number), "dev", bridge)
            self.inside("ip", "link", "set", bridge, "up")

    def near(self, bridge):
        """The near end of the cable."""
        return bridge + self.name.rsplit("-", 1)[1]

    def inside(self, *args):
        run(["ip", "netns", "exec", self.name, *args])

    def connect(self, bridge, there):
        """Connects the cable to a network, or not."""
        run(["ip", "link", "set", self.near(bridge), "up" if there else "down"])

    def remove(self):
        for bridge in ("store", "front"):
            run(["ip", "link", "del", self.near(bridge)], check=False)
        run(["ip", "netns", "del", self.name], check=False)


class OverNets(Faults, Cluster):
    LONG = True
    GATEWAYS = 3
    KILLS = False
    IMAGES = 0
    osd = 0
    times = TIMES

    def setUp(self):
        super().setUp()
        OverNets.IMAGES += 1
        self.name = "net%d" % OverNets.IMAGES
        CEPH.create(self.name, "8M")
        self.lun = "rbd:rbd/%s,conf=%s" % (self.name, CEPH.conf)
        self.machines = {}

    def tearDown(self):
        try:
            super().tearDown()
        finally:
            for m in self.machines.values():
                m.remove()

    def gateway(self, number, *more, **kw):
        m = self.machines[number] = Machine(number)
        g = Gateway(self.dir, number, self.lun, more=("--block-size", "512") + more, host="10.78.0.1%d" % number,
                    through=("ip", "netns", "exec", m.name), times=self.times, **kw)
        self.gateways.append(g)
        return g

    def image(self):
        path = self.path("export")
        CEPH.run("rbd", "export", "--no-progress", self.name, path)
        with open(path, "rb") as f:
            return f.read()

    # ---- the networks ----

    def cut_store(self, gateways, owner):
        """The owner loses Ceph, but not the initiators."""
        m = self.machines[owner.number]
        m.connect("store", False)
        new = self.owner(gateways, owner)
        self.progress()
        m.connect("store", True)
        owner.wait_role("standing-by", limit=40)
        self.assertGreaterEqual(owner.unit()["fenced"], 1)
        return new

    def cut_front(self, gateways, owner):
        """The initiators lose the owner, and ask a gateway that stands by to take the unit."""
        m = self.machines[owner.number]
        m.connect("front", False)
        self.owner(gateways, owner, limit=30)
        self.progress()
        m.connect("front", True)
        owner.wait_role("standing-by")
        self.progress()
        return self.owner(gateways)

    def test_cut_store(self):
        self.repeat(self.cut_store)

    def test_cut_front(self):
        # each of the two initiators may ask another gateway, once
        self.repeat(self.cut_front, moves=(1, 2), keys="&alua=explicit")

    # ---- Ceph ----

    def restart(self, name):
        CEPH.kill(name)
        self.progress(20)
        CEPH.restart(name)
        until(CEPH.is_clean, "all objects have two copies", 120)

    def kill_osd(self, _gateways, owner):
        OverNets.osd = (self.osd + 1) % CEPH.osds
        self.restart("osd%d" % self.osd)
        return owner

    def kill_mon(self, _gateways, owner):
        self.restart("mon")
        return owner

    def test_osd_killed(self):
        # Ceph may need more than the two silences after which an owner counts as cut off
        self.times = ("--cluster-beacon", "200", "--cluster-silence", "2500", "--cluster-patience", "2000")
        self.repeat(self.kill_osd, moves=(0,))

    def test_monitor_killed(self):
        self.repeat(self.kill_mon, moves=(0,))


if __name__ == "__main__":
    main()
