#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Several gateways in front of one file, over the directory store: who owns the unit, hand-overs in peace and after a
failure, what discovery shows, and what clumsy administrators do."""
import json
import os
import shutil
import signal
import subprocess
import threading
import time
import unittest

from cluster import Cluster, Gateway
from harness import ISER, ISERCTL, Daemon, main, patience, refused, run, sparse, until
from test_paths import Silent
from test_python import openiser
from test_alua import AO, ATTENTION, NOT_READY, STANDBY, Path
from test_reserve import CHECK, CONFLICT, GOOD, REGISTER, RESERVE, WE

STANDBY_SENSE = (NOT_READY, 0x040b)
CHANGED = (ATTENTION, 0x2a06)


def settle(path):
    """Takes the unit attentions of a path."""
    for _ in range(8):
        path.ready()


class Stays(Path):
    """An initiator that does not log out when it is asked to."""

    def recv(self):
        while True:
            got = super().recv()
            if got[0] != 0x32:
                return got


class Gateways(Cluster):
    def test_status_and_groups(self):
        """Each gateway reports both groups, with ports that are unique; the standby executes no READ."""
        one, two = self.pair()
        for g in (one, two):
            u = g.unit()
            self.assertEqual(u["owner"], "gw1")
            self.assertEqual(sorted((x["name"], x["number"], x["ports"]) for x in u["gateways"]),
                             [("gw1", 1, [1]), ("gw2", 2, [4097])])
            self.assertEqual(sorted(x["portals"] for x in u["gateways"]),
                             sorted([["%s,%d" % (x.address, x.number)] for x in (one, two)]))
        a, b = one.path(), two.path()
        want = {1: (AO, 0, [1]), 2: (STANDBY, 0, [4097])}
        self.assertEqual(a.groups(), want)
        self.assertEqual(b.groups(), want)
        self.assertEqual(a.names()[0x03], b.names()[0x03])  # one unit
        self.assertEqual(a.store(0, 1), GOOD)
        self.assertEqual(b.read(0)[0], CHECK)
        self.assertEqual(b.sense, STANDBY_SENSE)
        text = one.iserctl("cluster", "status").text
        self.assertIn("gateway gw1, number 1", text)
        self.assertRegex(text, r"lun0 +owner +gw1")
        self.assertRegex(text, r"lun0 +gw2 +2 +4097 +%s,2" % two.address)
        a.close()
        b.close()

    def test_hand_over(self):
        """By yield, by take and by SET TARGET PORT GROUPS; data follow the owner."""
        one, two = self.pair()
        a, b = one.path(), two.path()
        self.assertEqual(a.store(7, 0x11), GOOD)
        self.assertIn("lun0", one.iserctl("cluster", "yield", "lun0", "to=gw2").text)
        self.assertEqual((one.role(), two.role()), ("standing-by", "owner"))
        for p in (a, b):
            self.assertEqual(p.ready(), CHECK)
            self.assertEqual(p.sense, CHANGED)
            settle(p)
        self.assertEqual(a.store(7, 0x22), CHECK)
        self.assertEqual(a.sense, STANDBY_SENSE)
        self.assertEqual(b.read(7), (GOOD, b"\x11" * 512))
        self.assertEqual(b.store(7, 0x33), GOOD)
        one.iserctl("cluster", "take", "lun0")
        self.assertEqual((one.role(), two.role()), ("owner", "standing-by"))
        settle(a)
        self.assertEqual(a.read(7), (GOOD, b"\x33" * 512))
        settle(b)
        self.assertEqual(b.set_group(2, AO), GOOD)
        self.assertEqual((one.role(), two.role()), ("standing-by", "owner"))
        settle(b)
        self.assertEqual(b.store(7, 0x44), GOOD)
        self.assertEqual(two.unit()["generation"], one.unit()["generation"])
        self.assertEqual(two.unit()["fences"] + one.unit()["fences"], 0)
        a.close()
        b.close()

    def test_killed_owner(self):
        """The other gateway takes the unit of an owner that was killed; the owner comes back as a standby."""
        one, two = self.pair()
        a, b = one.path(), two.path()
        self.assertEqual(a.store(3, 0x55), GOOD)
        one.daemon.kill()
        begin = time.monotonic()
        two.wait_role("owner")
        self.assertLess(time.monotonic() - begin, patience(5))
        settle(b)
        self.assertEqual(b.read(3), (GOOD, b"\x55" * 512))
        self.assertEqual(two.unit()["takes"], 1)
        one.start()
        one.wait_role("standing-by")
        self.assertEqual(one.unit()["owner"], "gw2")
        b.close()

    def test_end_of_the_owner(self):
        """SIGTERM: the unit goes to the other gateway before the process ends."""
        one, two = self.pair()
        a, b = Stays(one.daemon), two.path()
        one.daemon.proc.send_signal(signal.SIGTERM)
        two.wait_role("owner", limit=2)
        settle(a)
        self.assertNotEqual(a.out(REGISTER, new=0xa1), GOOD)  # it is not a gateway any more, but the session is still there
        a.close()
        self.assertEqual(one.daemon.proc.wait(patience(10)), 0)
        self.assertEqual(two.unit()["fences"], 0)
        self.assertEqual([g["name"] for g in two.unit()["gateways"]], ["gw2"])
        settle(b)
        self.assertEqual(b.store(1, 1), GOOD)
        b.close()

    def test_end_of_the_owner_under_load(self):
        """What the device does for the member, such as a change of the access state on all workers, may end after the
        member; the process still ends in order."""
        one = self.gateway(1, "--workers", "4").start()
        two = self.gateway(2, "--workers", "4")
        one.wait_role("owner")
        for _ in range(3):
            two.start()
            two.wait_role("standing-by")
            load = [subprocess.Popen([ISER, "bench", "--rw", "randrw", "--yes-overwrite", "--time", "30", "--connections", "4", one.daemon.url],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(2)]
            time.sleep(0.4)
            one.daemon.proc.send_signal(signal.SIGTERM)
            self.assertEqual(one.daemon.proc.wait(patience(15)), 0, one.daemon.messages())
            two.wait_role("owner")
            for p in load:
                p.kill()
                p.wait()
            one, two = two, one

    def test_stopped_owner(self):
        """iserctl take at a standby while the owner is stopped; the owner executes nothing afterwards."""
        one, two = self.pair("--cluster-failover", "manual")
        a, b = one.path(), two.path()
        self.assertEqual(a.store(5, 0x66), GOOD)
        one.daemon.proc.send_signal(signal.SIGSTOP)
        refusal = one.iserctl("--timeout", "1", "cluster", "status", check=False)
        self.assertEqual(refusal.returncode, 3)
        two.iserctl("cluster", "take", "lun0")
        self.assertEqual(two.role(), "owner")
        settle(b)
        self.assertEqual(b.store(5, 0x77), GOOD)
        if one.daemon.proc.poll() is None:
            one.daemon.proc.send_signal(signal.SIGCONT)
        self.assertEqual(b.read(5), (GOOD, b"\x77" * 512))
        one.daemon.proc.wait(patience(10))  # the directory store fences by SIGKILL
        b.close()

    def test_discovery(self):
        """SendTargets at either gateway lists the portals of both, with their tags."""
        one, two = self.pair()
        for g in (one, two):
            text = run([ISER, "ls", "iscsi://" + g.address]).text
            for x in (one, two):
                self.assertIn("%s,%d" % (x.address, x.number), text)

    def test_reservations(self):
        """A registration on the standby path is known to the owner, and a reservation outlives its owner."""
        one, two = self.pair()
        a, b, c = one.path(), two.path(), Path(two.daemon, "other")
        self.assertEqual(a.out(REGISTER, new=0xa1), GOOD)
        self.assertEqual(b.out(REGISTER, new=0xb2), GOOD)
        self.assertEqual(a.keys(), [0xa1, 0xb2])
        self.assertEqual(b.out(RESERVE, WE, key=0xb2), GOOD)
        self.assertEqual(a.reservation(), (WE, 0xb2))
        one.daemon.kill()
        two.wait_role("owner")
        settle(b)
        settle(c)
        self.assertEqual(c.reservation(), (WE, 0xb2))
        self.assertEqual(b.store(1, 1), GOOD)
        self.assertEqual(c.store(1, 2), CONFLICT)
        self.assertEqual(c.keys(), [0xa1, 0xb2])
        one.start()
        one.wait_role("standing-by")
        d = Path(one.daemon, "other")
        self.assertEqual(d.reservation(), (WE, 0xb2))
        for p in (b, c, d):
            p.close()

    def test_takeover(self):
        """A live upgrade of the owner: the other gateway has the unit before; the new process stands by."""
        one, two = self.pair()
        b = two.path()
        self.assertEqual(one.path().store(2, 0x21), GOOD)
        old, one.daemon = one.daemon, Daemon("--takeover", *one.args)
        self.assertEqual(old.proc.wait(patience(10)), 0, old.messages())
        old.stop()
        two.wait_role("owner")
        one.wait_role("standing-by")
        self.assertEqual(two.unit()["fences"], 0)
        settle(b)
        self.assertEqual(b.read(2), (GOOD, b"\x21" * 512))
        b.close()

    def test_takeover_of_the_only_one(self):
        one = self.gateway(1).start()
        one.wait_role("owner")
        a = one.path()
        self.assertEqual(a.store(2, 0x21), GOOD)
        self.assertEqual(a.out(REGISTER, new=0xa1), GOOD)
        old, one.daemon = one.daemon, Daemon("--takeover", *one.args)
        self.assertEqual(old.proc.wait(patience(10)), 0, old.messages())
        old.stop()
        one.wait_role("owner")
        with_all = one.path()
        self.assertEqual(with_all.read(2), (GOOD, b"\x21" * 512))
        self.assertEqual(with_all.keys(), [0xa1])
        with_all.close()

    def test_events_and_metrics(self):
        one = self.gateway(1, "--metrics", self.path("metrics")).start()
        one.wait_role("owner")
        self.assertTrue(any("lun0" in line for line in one.events()), one.daemon.messages())
        text = run(["curl", "-s", "--unix-socket", self.path("metrics"), "http://x/metrics"]).text
        self.assertIn('iserd_cluster_role{backstore="lun0",role="owner"} 1', text)
        self.assertIn('iserd_cluster_takes_total{backstore="lun0"} 1', text)


@unittest.skipUnless(openiser, "libiser cannot be loaded by this Python")
class Libiser(Cluster):
    """libiser with a path to each gateway."""
    KEYS = ("noop_out_interval=1", "noop_out_timeout=1", "login_timeout=4", "replacement_timeout=100",
            "polling_interval=20")

    def url(self, gateway, port, *keys):
        url = next(u for u in gateway.daemon.urls if u.endswith("/0"))
        return url.replace(gateway.address, "127.0.0.1:%d" % port) + ("?" + "&".join(keys) if keys else "")

    def connect(self, one, two, port):
        disk = openiser.connect(self.url(one, port, *self.KEYS) + " " + self.url(two, int(two.address.split(":")[1])))
        self.addCleanup(disk.close)
        return disk

    def test_silent_owner(self):
        """A WRITE to a gateway that does not answer any more goes to the next owner, which says that the port of the
        silent one stands by: it does not wait for replacement_timeout."""
        one, two = self.pair()
        host, port = one.address.split(":")
        relay = Silent((host, int(port)))
        self.addCleanup(relay.close)
        disk = self.connect(one, two, relay.port)
        disk.pwrite(b"a" * 512, 0)
        relay.holds = True
        late = threading.Thread(target=lambda: disk.pwrite(b"b" * 512, 0))
        late.start()
        until(lambda: relay.kept, "the WRITE in the network")
        two.iserctl("cluster", "take", "lun0")
        late.join(patience(20))
        self.assertFalse(late.is_alive(), "the WRITE waits for replacement_timeout")
        disk.pwrite(b"c" * 512, 0)
        relay.deliver()
        self.assertEqual(disk.pread(512, 0), b"c" * 512)
        self.assertEqual([p.is_used for p in disk.paths], [False, True])
        self.assertEqual(disk.paths[0].losses, 1)

    def test_hand_over(self):
        """While no path carries commands, libiser looks for the next owner more often than once per second."""
        one, two = self.pair()
        disk = self.connect(one, two, int(one.address.split(":")[1]))
        waits = []
        for n in range(9):
            mover = threading.Thread(target=(two, one)[n % 2].iserctl, args=("cluster", "take", "lun0"))
            worst, last = 0, False
            mover.start()
            while not last:
                last = not mover.is_alive()
                begin = time.monotonic()
                disk.pwrite(b"%d" % n * 512, 0)
                worst = max(worst, time.monotonic() - begin)
            waits.append(worst)
        self.assertLess(sorted(waits)[4], 0.5, waits)


class Clumsy(Cluster):
    """Mistakes on the way to a cluster."""

    def test_verbs_at_the_wrong_place(self):
        one, two = self.pair()
        for g, args, text in (
                (two, ("yield", "lun0"), "another gateway has the unit: gw1"),
                (one, ("yield", "lun0", "to=gw9"), "no such gateway"),
                (one, ("yield", "lun0", "too=gw2"), "give to=GATEWAY"),
                (one, ("take", "lun7"), "no backstore of this name"),
                (one, ("take",), "no name"),
                (one, ("steal", "lun0"), "no such verb")):
            r = g.iserctl("cluster", *args, check=False)
            self.assertEqual(r.returncode, 1, r.text)
            self.assertIn(text, r.text)
        self.assertEqual(one.role(), "owner")

    def test_no_cluster(self):
        with Daemon("--control", self.path("c"), self.disk) as d:
            r = run([ISERCTL, "-s", self.path("c"), "cluster", "status"], check=False)
            self.assertEqual(r.returncode, 1)
            self.assertIn("is not a gateway of a cluster", r.text)

    def test_one_number_twice(self):
        """The second gateway with a number does not join, says why, and serves nothing."""
        one = self.gateway(1).start()
        one.wait_role("owner")
        two = self.gateway(1, name="other").start()
        until(lambda: "give each gateway its own" in "".join(two.events()), lambda: two.daemon.messages())
        self.assertEqual(two.role(), "joining")
        self.assertEqual(len(one.unit()["gateways"]), 1)

    def test_other_block_size(self):
        """A gateway with blocks of another size does not join, and says why; it does after that gateway has left."""
        one, two = self.gateway(1).start(), self.gateway(2)
        two.args = tuple("4096" if a == "512" else a for a in two.args)
        one.wait_role("owner")
        two.start()
        why = "gateway gw1 serves the unit with blocks of 512 bytes, this gateway with 4096: give all gateways the same block-size"
        until(lambda: why in "".join(two.events()), lambda: two.daemon.messages())
        self.assertEqual(two.role(), "joining")
        self.assertEqual(two.unit()["refused"], why)
        self.assertIn("lun0 does not join: " + why, two.iserctl("cluster", "status").text)
        self.assertIsNone(one.unit()["refused"])
        self.assertEqual([(g["name"], g["block_size"]) for g in one.unit()["gateways"]], [("gw1", 512)])
        one.iserctl("shutdown")
        self.assertEqual(one.daemon.proc.wait(patience(10)), 0)
        two.wait_role("owner")
        self.assertIsNone(two.unit()["refused"])
        self.assertEqual([(g["name"], g["block_size"]) for g in two.unit()["gateways"]], [("gw2", 4096)])

    def test_one_name_twice(self):
        one = self.gateway(1).start()
        one.wait_role("owner")
        two = self.gateway(2, name="gw1")
        message = refused(*[a for a in two.args if a != "--control"], status=3)
        self.assertIn("gw1", message)

    def test_other_data(self):
        """A disk and its copy have one uuid: their gateways would share a record."""
        uuid = ",uuid=f81d4fae-7dec-41d0-a765-00a0c91e6bf6"
        copy, other = self.path("copy.img"), self.path("other.img")
        shutil.copyfile(self.disk, copy)
        os.link(self.disk, other)
        more = ("--cluster-directory", self.shared)
        one = Gateway(self.dir, 1, self.disk + uuid, more=more).start()
        self.addCleanup(one.daemon.stop)
        one.wait_role("owner")
        two = Gateway(self.dir, 2, copy + uuid, more=more)
        self.assertIn("another gateway serves other data with this identity", refused(*two.args, status=3))
        two = Gateway(self.dir, 2, other + uuid, more=more).start()  # another path to the same file
        self.addCleanup(two.daemon.stop)
        two.wait_role("standing-by")

    def test_refused(self):
        shared = ("--cluster-directory", self.shared)
        one = ("--cluster-number", "1")
        for status, args, text in (
                (3, one + ("ram:1M",), "memory is in this iserd only"),
                (3, one + (self.disk,), "--cluster-directory"),
                (3, (self.disk,), "--cluster-number"),
                (3, one + shared + ("--shared", self.disk), "leave shared out"),
                (3, one + shared + ("--port-id", "7", self.disk), "--port-id"),
                (3, one + shared + ("--alua", "1:optimized:1", self.disk), "--alua"),
                (2, shared + (self.disk,), "--cluster-number"),
                (2, ("--cluster-number", "17", self.disk), "must be a number from 1 to 16"),
                (2, one + ("--cluster-gateway", "x" * 64, self.disk), "longer than 63 bytes"),
                (2, one + shared + ("--announce", "0.0.0.0", self.disk), "stands for all addresses")):
            self.assertIn(text, refused("--cluster", *args, status=status), args)

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_directory_not_writable(self):
        os.mkdir(self.shared, 0o500)
        self.assertIn(self.shared, refused(*self.gateway(1).args, status=3))

    def test_directory_is_a_file(self):
        with open(self.shared, "w"):
            pass
        self.assertIn(self.shared, refused(*self.gateway(1).args, status=3))


class Changes(Cluster):
    """Changes of a configuration while a gateway serves."""

    def test_units_come_and_go(self):
        """A unit that is added joins, is handed over with all units, and leaves when it is removed."""
        one, two = self.pair()
        more = sparse(self.path("more.img"), 4 << 20)
        target = one.daemon.target
        for g in (one, two):
            g.iserctl("lun", "add", target + "/1", "backstore=more", "store=" + more, "cluster=yes")
        until(lambda: one.unit("more")["role"] == "owner" and two.unit("more")["role"] == "standing-by",
              lambda: one.daemon.messages() + two.daemon.messages())
        until(lambda: len(one.unit("more")["gateways"]) == 2, "the second gateway is known")
        self.assertEqual([len(g["ports"]) for g in one.unit("more")["gateways"]], [1, 1])
        self.assertIn("lun0", one.iserctl("cluster", "yield").text)
        self.assertEqual({u["role"] for u in one.status()["units"]}, {"standing-by"})
        for g in (two, one):
            g.iserctl("lun", "remove", target + "/1")
            g.iserctl("backstore", "remove", "more")
            until(lambda: len(g.status()["units"]) == 1, "the unit is gone")
        record = [f for f in os.listdir(self.shared)]
        self.assertEqual(len(record), 2, record)

    def test_announce(self):
        """Addresses to announce change at once."""
        one, two = self.pair()
        one.iserctl("save", self.path("one.yaml"))
        with open(self.path("one.yaml")) as f:
            text = f.read()
        self.assertIn("cluster:\n  number: 1\n", text)
        text = text.replace("    listen:", "    announce: [127.0.0.1:7, \"[2001:db8::1]:7\"]\n    listen:")
        self.assertIn("announce", text)
        with open(self.path("one.yaml"), "w") as f:
            f.write(text)
        one.iserctl("apply", self.path("one.yaml"))
        until(lambda: "127.0.0.1:7,1" in run([ISER, "ls", "iscsi://" + two.address], check=False).text
              or "127.0.0.1:7,1" in json.dumps(two.unit()), "the address is known")
        with open(self.path("one.yaml"), "w") as f:
            f.write(text.replace("number: 1", "number: 3"))
        refusal = one.iserctl("apply", self.path("one.yaml"), check=False)
        self.assertIn("needs a restart", refusal.text)


if __name__ == "__main__":
    main()
