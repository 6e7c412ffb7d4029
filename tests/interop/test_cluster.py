#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Gateways under load: the owner of a unit is killed, stopped, continued, or gives the unit away, while initiators write,
read and check on all paths; persistent reservations through several gateways. Over the directory store, and over an image of
Ceph with the record beside it.

CLUSTER=long repeats each fault CLUSTER_FAULTS (50) times, and does all over Ceph, too. Figures are lines "figure ..." of the
output.
"""
import contextlib
import json
import os
import random
import signal
import struct
import threading
import time
import unittest

import ceph
from cluster import Cluster, Gateway
from harness import ISERD, main, need, patience, refused, run, stop_process, until
from test_alua import NOT_READY, Path
from test_libiscsi import Suite
from test_python import openiser
from test_reserve import APTPL, CHECK, CONFLICT, EA_RO, GOOD, IGNORE, PREEMPT, REGISTER, RESERVE, WE_RO

LONG = os.environ.get("CLUSTER") == "long"
ROUNDS = int(os.environ.get("CLUSTER_FAULTS", "50")) if LONG else 1
BLOCK = 4096
BLOCKS = 32  # of one writer
PREEMPT_AND_ABORT = 5
MODULES = os.path.dirname(os.path.dirname(os.path.realpath(ISERD)))


def figure(*words):
    print("figure", *words, flush=True)


class Writer(threading.Thread):
    """An initiator that writes numbered blocks of its own region over all paths, and reads others of them back: a block has
    the number of its last acknowledged write."""

    def __init__(self, url, which, keys=""):
        super().__init__(daemon=True)
        self.rng = random.Random(which)
        self.which, self.first = which, which * BLOCKS
        self.acked, self.tried = [0] * BLOCKS, [0] * BLOCKS
        self.number, self.error, self.stopping = 0, None, False
        self.gap, self.last, self.count = 0.0, time.monotonic(), 0
        self.disk = openiser.connect(url + "?paths=all&polling_interval=1&replacement_timeout=8&noop_out_interval=1&noop_out_timeout=1" + keys)
        self.start()

    def data(self, number):
        return struct.pack(">QQ", self.which, number) * (BLOCK // 16)

    def check(self, at, data, where):
        number = struct.unpack(">QQ", data[:16])[1]
        if number == 0 and data == bytes(BLOCK) and self.acked[at] == 0:
            return
        if data != self.data(number) or not self.acked[at] <= number <= self.tried[at]:
            raise AssertionError("%s: block %d of writer %d has number %d; %d was acknowledged, %d written last" % (
                where, at, self.which, number, self.acked[at], self.tried[at]))

    def step(self):
        at = self.rng.randrange(BLOCKS)
        self.number += 1
        self.tried[at] = self.number
        self.disk.pwrite(self.data(self.number), (self.first + at) * BLOCK)
        self.acked[at] = self.number
        now = time.monotonic()
        self.gap, self.last = max(self.gap, now - self.last), now
        self.count += 1
        at = self.rng.randrange(BLOCKS)
        self.check(at, self.disk.pread(BLOCK, (self.first + at) * BLOCK), "read")

    def run(self):
        try:
            while not self.stopping:
                self.step()
        except Exception as e:  # pylint: disable=broad-except
            self.error = e

    def take_gap(self):
        """The longest time between two acknowledgements since the last call."""
        gap, self.gap = max(self.gap, time.monotonic() - self.last), 0.0
        return gap

    def end(self):
        self.stopping = True
        self.join(patience(90))
        if self.is_alive():
            raise AssertionError("writer %d: a command does not end" % self.which)
        if self.error:
            raise self.error
        self.disk.close()


class Faults:
    """What holds for each store. The class that mixes this in gives image(): the bytes of the unit."""
    GATEWAYS = 2

    def setUp(self):
        super().setUp()
        self.writers = []

    def tearDown(self):
        for w in self.writers:
            w.stopping = True
        for g in self.gateways:
            if g.daemon and g.daemon.proc.poll() is None:
                g.daemon.proc.send_signal(signal.SIGCONT)
        super().tearDown()

    def start_all(self, n=None, *more):
        gateways = [self.gateway(i + 1, *more) for i in range(n or self.GATEWAYS)]
        for g in gateways:
            g.start()
            g.wait_role("owner", "standing-by")
        until(lambda: all(len(g.unit()["gateways"]) == len(gateways) for g in gateways), "all gateways know all")
        return gateways

    def owner(self, gateways, but=None, limit=15):
        """Waits until one gateway owns the unit, and another one than `but`."""
        found = []

        def there():
            self.check_writers()
            found[:] = [g for g in gateways if g is not but and g.daemon.proc.poll() is None and g.role() == "owner"]
            return found
        until(there, lambda: "no owner: %s" % [g.daemon.messages()[-2000:] for g in gateways], limit)
        self.assertEqual(len(found), 1)
        return found[0]

    def load(self, gateways, n=2, keys=""):
        self.writers = [Writer(gateways[0].daemon.url, i, keys) for i in range(n)]
        self.progress()

    def check_writers(self):
        for w in self.writers:
            if w.error:
                raise w.error

    def progress(self, steps=5):
        """Waits until each writer has written some more blocks."""
        before = [w.count for w in self.writers]

        def there():
            self.check_writers()
            return all(w.count >= b + steps for w, b in zip(self.writers, before))
        until(there, "the writers go on", 30)

    def verify(self):
        for w in self.writers:
            w.end()
        image = self.image()
        for w in self.writers:
            for at in range(BLOCKS):
                off = (w.first + at) * BLOCK
                w.check(at, image[off:off + BLOCK], "the image")

    # ---- the faults: each returns the new owner ----

    def kill(self, gateways, owner):
        owner.daemon.kill()
        new = self.owner(gateways, owner)
        self.progress()
        self.assertIsNotNone(owner.daemon.proc.poll())
        owner.start()
        owner.wait_role("standing-by", limit=15)
        return new

    def stop(self, gateways, owner):
        """The old owner is stopped, and goes on after the new one has written."""
        owner.daemon.proc.send_signal(signal.SIGSTOP)
        new = self.owner([g for g in gateways if g is not owner])
        self.progress()
        owner.daemon.proc.send_signal(signal.SIGCONT)
        if self.KILLS:
            owner.daemon.proc.wait(patience(10))
            owner.daemon.kill()
            owner.start()
        owner.wait_role("standing-by", limit=30)
        self.progress()
        if not self.KILLS:
            self.assertGreaterEqual(owner.unit()["fenced"], 1)
        return new

    def give(self, gateways, owner):
        to = next(g for g in gateways if g is not owner)
        owner.iserctl("cluster", "yield", "lun0", "to=" + to.name)
        to.wait_role("owner")
        return to

    def take(self, gateways, owner):
        to = next(g for g in gateways if g is not owner)
        to.iserctl("cluster", "take", "lun0")
        to.wait_role("owner")
        self.assertEqual(owner.role(), "standing-by")
        return to

    def hand_overs(self, gateways):
        return max(g.unit()["generation"] for g in gateways)

    def repeat(self, fault, moves=(1,), keys=""):
        """Faults under load: each moves the unit so often (one of `moves`), and nothing moves it afterwards. keys: of the writers' URLs."""
        gateways = self.start_all()
        self.load(gateways, keys=keys)
        gaps, took, moved, owner = [], [], 0, self.owner(gateways)
        for _ in range(ROUNDS):
            before = self.hand_overs(gateways)
            for w in self.writers:
                w.take_gap()
            owner = fault(gateways, owner)
            self.progress()
            gaps.append(max(w.take_gap() for w in self.writers))
            took.append(owner.unit()["last_hand_over_us"] / 1e3)
            moved += self.hand_overs(gateways) - before
            self.assertIn(self.hand_overs(gateways) - before, moves)
        before = self.hand_overs(gateways)
        self.progress(50)
        self.assertEqual(self.hand_overs(gateways), before)
        self.verify()
        figure("cluster", type(self).__name__, fault.__name__, "%d times, %d hand-overs: median %.1f ms, maximum %.1f ms; longest pause "
               "of a writer: median %.2f s, maximum %.2f s" % (ROUNDS, moved, sorted(took)[len(took) // 2], max(took),
                                                               sorted(gaps)[len(gaps) // 2], max(gaps)))

    def test_yield(self):
        self.repeat(self.give)

    def test_take(self):
        self.repeat(self.take)

    def test_killed(self):
        self.repeat(self.kill)

    def test_stopped(self):
        self.repeat(self.stop)

    # ---- reservations ----

    def test_reservations(self):
        """Through either gateway: what one path registers and reserves holds on all."""
        gateways = self.start_all(2)
        one, two = gateways
        a, b, c = Path(one.daemon, "a"), Path(two.daemon, "b"), Path(one.daemon, "c")
        self.assertEqual(a.out(REGISTER, new=0xa), GOOD)
        self.assertEqual(b.out(REGISTER, new=0xb), GOOD)  # on a standby path
        self.assertEqual(a.keys(), [0xa, 0xb])
        self.assertEqual(b.keys(), [0xa, 0xb])
        self.assertEqual(a.out(RESERVE, WE_RO, key=0xa), GOOD)
        self.assertEqual(b.reservation(), (WE_RO, 0xa))
        self.assertEqual(c.write(), CONFLICT)
        self.assertEqual(a.write(), GOOD)
        # the new owner knows them
        self.give(gateways, one)
        d = Path(two.daemon, "d")
        self.drain(b)
        self.assertEqual(d.write(), CONFLICT, d.sense)
        self.assertEqual(b.write(), GOOD)  # a registrant
        self.assertEqual(b.reservation(), (WE_RO, 0xa))
        # b takes the reservation from a, whose path reports it
        self.drain(a)
        self.assertEqual(b.out(PREEMPT_AND_ABORT, WE_RO, key=0xb, new=0xa), GOOD)
        self.assertEqual(b.keys(), [0xb])
        # REGISTRATIONS PREEMPTED, once the standby has read the record
        until(lambda: a.ready() == CHECK and a.sense == (6, 0x2a05), lambda: a.sense)
        self.assertEqual(a.keys(), [0xb])
        self.give(gateways, two)
        self.drain(a)
        self.assertEqual(a.write(), CONFLICT)
        self.drain(c)
        self.assertEqual(c.reservation(), (WE_RO, 0xb))
        for p in (a, b, c, d):
            p.close()

    @staticmethod
    def drain(path):
        """Takes the unit attentions of a path."""
        for _ in range(8):
            if path.ready() == GOOD:
                break

    def test_preempt_through_the_standby(self):
        """The sequence of Pacemaker's fence_scsi, each node on its own gateway: the node that is fenced can no longer write."""
        one, two = self.start_all(2)
        a, b = Path(one.daemon, "node-a"), Path(two.daemon, "node-b")
        for p, key in ((a, 0xa), (b, 0xb)):
            self.assertEqual(p.out(IGNORE, new=key, flags=APTPL), GOOD)
        self.assertEqual(a.out(RESERVE, WE_RO, key=0xa), GOOD)
        self.assertEqual(a.write(), GOOD)
        self.assertEqual(b.out(PREEMPT_AND_ABORT, WE_RO, key=0xb, new=0xa), GOOD)  # on the standby path
        self.assertEqual(b.reservation(), (WE_RO, 0xb))
        self.drain(a)
        self.assertEqual(a.write(), CONFLICT)
        self.assertEqual(a.keys(), [0xb])
        # the power of both gateways fails
        for g in (one, two):
            g.daemon.kill()
        for g in (two, one):
            g.start()
            g.wait_role("owner", "standing-by", limit=15)
        owner = self.owner([one, two])
        a, b = Path(owner.daemon, "node-a"), Path(owner.daemon, "node-b")
        self.assertEqual(a.write(), CONFLICT)
        self.assertEqual(b.reservation(), (WE_RO, 0xb))
        self.assertEqual(b.keys(), [0xb])
        # node A is back, and registers with the key of before: it may write again
        other = Path((two if owner is one else one).daemon, "node-a")
        self.assertEqual(other.out(IGNORE, new=0xa, flags=APTPL), GOOD)
        other.close()
        self.assertEqual(a.write(), CONFLICT)  # another I_T nexus
        self.assertEqual(a.out(IGNORE, new=0xa, flags=APTPL), GOOD)
        self.assertEqual(a.write(), GOOD)
        self.assertEqual(sorted(b.keys()), [0xa, 0xa, 0xb])
        a.close()
        b.close()

    def test_reservations_survive(self):
        """With APTPL, the end of all gateways; without, the end of the owner, since the record has them."""
        gateways = self.start_all(2)
        a = Path(gateways[0].daemon, "a")
        self.assertEqual(a.out(REGISTER, new=0xa, flags=APTPL), GOOD)
        self.assertEqual(a.out(RESERVE, EA_RO, key=0xa), GOOD)
        for g in gateways:
            g.daemon.kill()
        for g in gateways:
            g.start()
            g.wait_role("owner", "standing-by", limit=15)
        owner = self.owner(gateways)
        for g in gateways:
            b = Path(g.daemon, "b")
            self.assertEqual(b.keys(), [0xa])
            self.assertEqual(b.reservation(), (EA_RO, 0xa))
            if g is owner:
                self.assertEqual(b.write(), CONFLICT)
            b.close()

    # ---- the record ----

    def test_record_damaged_and_removed(self):
        """The owner serves the unit without a record that can be read. Once the damaged record is removed, the owner writes it again,
        with all reservations; a gateway that starts meanwhile waits for that."""
        one, two = self.start_all(2)
        a, b = Path(one.daemon, "a"), Path(two.daemon, "b")
        self.assertEqual(a.out(REGISTER, new=0xa), GOOD)
        self.assertEqual(a.out(RESERVE, EA_RO, key=0xa), GOOD)
        self.replace_record(b"garbage" * 100)
        until(lambda: "the record of the gateways: malformed" in "".join(one.events()), "the owner has read it", 20)
        self.assertEqual(a.store(3, 1), GOOD)
        self.assertEqual(b.store(3, 2), CHECK)
        self.replace_record(None)
        three = self.gateway(3).start()
        three.wait_role("standing-by", limit=20)
        for g in (one, two, three):
            until(lambda g=g: len(g.unit()["gateways"]) == 3, lambda: g.daemon.messages(), 20)
        self.assertEqual([(g.role(), g.unit()["fences"]) for g in (one, two, three)],
                         [("owner", 0), ("standing-by", 0), ("standing-by", 0)])
        c = Path(three.daemon, "c")
        self.assertEqual(c.reservation(), (EA_RO, 0xa))
        self.drain(b)  # a group more
        self.assertEqual(b.out(REGISTER, new=0xb), GOOD)
        self.give([one, three], one)
        self.drain(c)
        self.assertEqual(c.store(3, 2), CONFLICT)
        self.assertEqual(c.keys(), [0xa, 0xb])
        for p in (a, b, c):
            p.close()

    # ---- other initiators ----

    @need("iscsi-ls", "iscsi-inq")
    def test_libiscsi(self):
        """libiscsi finds all portals, and reads INQUIRY and the capacity on each path."""
        gateways = self.start_all()
        for g in gateways:
            text = run(["iscsi-ls", "iscsi://" + g.address]).text
            for x in gateways:
                self.assertIn("%s,%d" % (x.address, x.number), text)
            # libiscsi's tools want TEST UNIT READY to succeed, which a standby refuses
            done = run(["iscsi-inq", g.daemon.url], check=False)
            self.assertIn("Vendor" if g.role() == "owner" else "0x040b", done.text)

    def test_standby_moves_no_data(self):
        """Commands that wait for the end of a hand-over are executed by no gateway that lost the unit."""
        gateways = self.start_all(2)
        one, two = gateways
        a, b = Path(one.daemon, "a"), Path(two.daemon, "b")
        self.assertEqual(a.store(0, 1), GOOD)
        for i in range(6 * ROUNDS):
            lose, gain = ((one, a), (two, b)) if i % 2 == 0 else ((two, b), (one, a))
            sent = threading.Thread(target=self.give, args=(gateways, lose[0]))
            sent.start()
            value = 2 + i
            status = lose[1].store(0, value)
            while status == CHECK and lose[1].sense[0] == 6:
                status = lose[1].store(0, value)
            sent.join()
            gain[0].wait_role("owner")
            self.drain(gain[1])
            done, got = gain[1].read(0)
            self.assertEqual(done, GOOD, gain[1].sense)
            if status == GOOD:
                self.assertEqual(got[:1], bytes([value]))
            else:
                self.assertEqual(lose[1].sense[0], NOT_READY)
                self.assertEqual(gain[1].store(0, value), GOOD)
        a.close()
        b.close()


@unittest.skipUnless(openiser, "libiser cannot be loaded by this Python")
class OverDirectory(Faults, Cluster):
    GATEWAYS = 3
    KILLS = True  # the fence is SIGKILL

    def replace_record(self, data):
        """None: removes it."""
        folder, = (f.path for f in os.scandir(self.shared) if f.is_dir())
        if data is not None:
            with open(self.path("new"), "wb") as f:
                f.write(data)
            os.replace(self.path("new"), os.path.join(folder, "record"))
        else:
            os.unlink(os.path.join(folder, "record"))

    def image(self):
        with open(self.disk, "rb") as f:
            return f.read()


CEPH = None


def tearDownModule():
    if CEPH:
        CEPH.stop()


@unittest.skipUnless(openiser, "libiser cannot be loaded by this Python")
@unittest.skipIf(ceph.missing(), "%s is missing: install ceph-mon, ceph-osd and ceph-common" % ceph.missing())
@unittest.skipUnless(os.path.exists(os.path.join(MODULES, "backstore-rbd.so")), "this build has no backstore-rbd.so: install librbd-dev")
class OverRbd(Faults, Cluster):
    LONG = True
    KILLS = False
    IMAGES = 0
    SHORT = ("test_fenced_gateway", "test_many_units", "test_full_pool", "test_one_name_twice", "test_record_damaged_and_removed", "test_preempt_through_the_standby")

    @classmethod
    def setUpClass(cls):
        global CEPH
        os.environ["OPENISER_MODULES"] = MODULES
        if not CEPH:
            CEPH = ceph.Cluster(auth=True)

    @classmethod
    def tearDownClass(cls):
        os.environ.pop("OPENISER_MODULES", None)

    def setUp(self):
        super().setUp()
        OverRbd.IMAGES += 1
        self.name = "unit%d" % OverRbd.IMAGES
        CEPH.create(self.name, "8M")
        self.lun = "rbd:rbd/%s,conf=%s" % (self.name, CEPH.conf)

    def gateway(self, number, *more, **kw):
        g = Gateway(self.dir, number, self.lun, more=("--block-size", "512") + more, **kw)
        self.gateways.append(g)
        return g

    def replace_record(self, data):
        """None: removes it."""
        name = "openiser." + json.loads(CEPH.run("rbd", "info", self.name, "--format", "json").text)["id"]
        if data is not None:
            with open(self.path("new"), "wb") as f:
                f.write(data)
            CEPH.run("rados", "-p", "rbd", "put", name, self.path("new"))
        else:
            CEPH.run("rados", "-p", "rbd", "rm", name)

    def image(self):
        path = self.path("export")
        CEPH.run("rbd", "export", "--no-progress", self.name, path)
        with open(path, "rb") as f:
            return f.read()

    def test_stalled_cluster(self):
        """The OSD, then the monitor, does not answer for longer than a gateway waits for the owner."""
        gateways = self.start_all()
        self.load(gateways)
        for name in ("osd", "mon"):
            CEPH.signal(name, signal.SIGSTOP)
            time.sleep(4)
            CEPH.signal(name, signal.SIGCONT)
            self.owner(gateways, limit=30)
            self.progress(20)
        self.verify()

    def test_fenced_gateway(self):
        """A gateway that was stopped, with writes on their way, executes and answers none of them; it comes back as a standby, and
        can take the unit again."""
        one, two = self.start_all()
        a, b = Path(one.daemon, "a"), Path(two.daemon, "b")
        self.assertEqual(a.store(9, 1), GOOD)
        stop_process(one.daemon.proc.pid)
        for i in range(8):
            a.command(struct.pack(">BBIBHB", 0x2a, 8, 9, 0, 1, 0).ljust(16, b"\0"), 0xa0, 512, b"\2" * 512)
        two.wait_role("owner", limit=15)
        self.drain(b)
        self.assertEqual(b.store(9, 3), GOOD)
        one.daemon.proc.send_signal(signal.SIGCONT)
        a.expect_close()
        self.assertEqual(b.read(9), (GOOD, b"\3" * 512))
        one.wait_role("standing-by", limit=30)
        self.assertGreaterEqual(one.unit()["fenced"], 1)
        one.iserctl("cluster", "take", "lun0")
        one.wait_role("owner")
        a = Path(one.daemon, "a")
        self.assertEqual(a.read(9), (GOOD, b"\3" * 512))
        self.assertEqual(a.store(9, 4), GOOD)
        for p in (a, b):
            p.close()

    @contextlib.contextmanager
    def watches(self, seconds):
        """The watches that begin meanwhile end so long after their client is gone."""
        CEPH.run("ceph", "tell", "osd.*", "config", "set", "osd_client_watch_timeout", str(seconds))
        try:
            yield
        finally:
            CEPH.run("ceph", "tell", "osd.*", "config", "set", "osd_client_watch_timeout", str(ceph.WATCH))

    def stopped_for_long(self, watch):
        """The owner is stopped under load, with writes on their way, for longer than its watches and sessions with Ceph last: it executes
        and answers nothing of that, comes back as a standby, and can take the unit again."""
        lba = 2 * BLOCKS * BLOCK // 512  # beyond the writers'
        gateways = one, two = self.start_all(2)
        self.load(gateways)
        a = Path(one.daemon, "a")
        self.assertEqual(a.store(lba, 1), GOOD)
        stop_process(one.daemon.proc.pid)
        for _ in range(8):
            a.command(struct.pack(">BBIBHB", 0x2a, 8, lba, 0, 1, 0).ljust(16, b"\0"), 0xa0, 512, b"\2" * 512)
        two.wait_role("owner", limit=15)
        b = Path(two.daemon, "b")
        self.drain(b)
        self.assertEqual(b.store(lba, 3), GOOD)
        b.close()
        end = time.monotonic() + watch + 5
        while time.monotonic() < end:
            self.progress(1)
            time.sleep(0.5)
        one.daemon.proc.send_signal(signal.SIGCONT)
        a.expect_close()
        one.wait_role("standing-by", limit=30)
        self.assertGreaterEqual(one.unit()["fenced"], 1)
        self.progress()
        for owner in (two, one):
            owner.iserctl("cluster", "take", "lun0")
            b = Path(owner.daemon, "b")
            self.drain(b)
            self.assertEqual(b.read(lba), (GOOD, b"\3" * 512))
            b.close()
        self.progress()
        self.verify()

    def test_stopped_beyond_the_watch(self):
        self.stopped_for_long(ceph.WATCH)

    def test_stopped_beyond_the_default_watch(self):
        """... which Ceph has for each client that asks for no other one."""
        with self.watches(30):
            self.stopped_for_long(30)

    def test_full_pool(self):
        """Reservations, hand-over and fail-over need no room in the pool."""
        one, two = self.start_all()
        a, b = Path(one.daemon, "a"), Path(two.daemon, "b")
        self.assertEqual(a.store(0, 1), GOOD)
        with CEPH.full():
            self.assertEqual(a.out(REGISTER, new=0xa), GOOD)
            self.assertEqual(b.out(REGISTER, new=0xb), GOOD)
            self.give([one, two], one)
            self.drain(b)
            self.assertEqual(b.store(0, 2), GOOD)
            self.assertEqual(b.store(4096, 2), CHECK)
            self.assertEqual(b.sense, (7, 0x2707))
            two.daemon.kill()
            one.wait_role("owner")
            self.drain(a)
            self.assertEqual(a.store(0, 3), GOOD)
            self.assertEqual(a.keys(), [0xa, 0xb])
            two.start()
            two.wait_role("standing-by")
        a.close()

    @need("iscsi-test-cu")
    def test_suite(self):
        """libiscsi's suite through the gateway that owns the unit, and through the other one after a hand-over. It refuses to begin
        at a gateway that stands by, where TEST UNIT READY ends with NOT READY (SPC-4 §5.16.2.4.4)."""
        CEPH.create("suite", "100M")
        self.lun = "rbd:rbd/suite,conf=%s" % CEPH.conf
        one, two = (Gateway(self.dir, i, self.lun) for i in (1, 2))
        self.gateways = [one, two]
        one.start().wait_role("owner")
        two.start().wait_role("standing-by")
        for owner, other in ((one, two), (two, one)):
            Suite("run_at").run_at([owner.daemon.url], wrong="test_get_lba_status_unmap_single.c",
                                   but=(Suite.NOT_ASKED, Suite.WRITABLE, Suite.ONE_PATH) + Suite.FIXED_DISK)
            self.assertIn("0x040b", run(["iscsi-test-cu", "-n", "--test=ALL.Inquiry", other.daemon.url], check=False).text)
            owner.iserctl("cluster", "yield", "lun0", "to=" + other.name)
            other.wait_role("owner")

    # ---- mistakes ----

    def test_one_name_twice(self):
        """An iserd with the name of a gateway that runs is refused; with that of one that is stopped, it takes its place, and the
        other one stays away when it goes on."""
        one = self.gateway(1).start()
        one.wait_role("owner")
        twin = self.gateway(1, name=one.name)
        twin.control += ".twin"
        twin.args = tuple(twin.control if x == one.control else x for x in twin.args)
        self.assertIn("another iserd, which runs, is the gateway gw1", refused(*twin.args, status=3))
        self.assertEqual((one.role(), one.unit()["fences"], one.unit()["fenced"]), ("owner", 0, 0))
        one.daemon.proc.send_signal(signal.SIGSTOP)
        twin.start()
        twin.wait_role("owner", limit=20)
        one.daemon.proc.send_signal(signal.SIGCONT)
        until(lambda: "another iserd, which runs, is the gateway gw1" in one.daemon.messages(), lambda: one.daemon.messages(), 20)
        self.assertEqual((twin.role(), twin.unit()["fenced"]), ("owner", 0))
        self.assertEqual(one.role(), "fenced")
        twin.iserctl("shutdown")
        self.assertEqual(twin.daemon.proc.wait(patience(10)), 0)
        one.wait_role("owner", limit=20)

    # ---- many units ----

    def many(self, n):
        """Two gateways with n images and the times of the defaults; the first one owns all units."""
        names = ["many%d.%d" % (n, i) for i in range(n)]
        for name in names:
            CEPH.create(name, "1M")
        self.gateways = [Gateway(self.dir, i, *("rbd:rbd/%s,conf=%s" % (name, CEPH.conf) for name in names), times=())
                         for i in (1, 2)]
        one, two = self.gateways
        one.start()
        self.all_are(one, "owner")
        two.start()
        self.all_are(two, "standing-by")
        until(lambda: all(len(u["gateways"]) == 2 for u in one.status()["units"]), "the first gateway knows the second")
        return one, two

    def all_are(self, gateway, role, limit=40):
        until(lambda: {u["role"] for u in gateway.status()["units"]} == {role}, lambda: gateway.daemon.messages()[-3000:], limit)

    @staticmethod
    def blocked():
        """The number of clients on the blocklist."""
        text = CEPH.run("ceph", "osd", "blocklist", "ls", "--format", "json").text
        return len(json.JSONDecoder().raw_decode(text, text.index("["))[0])

    def test_many_units(self):
        """A gateway with many units is fenced once: by one that takes its units after it was killed or stopped, or by itself when
        it starts again. Units change owner in order, too."""
        for n in (1, 64) if LONG else (6,):
            one, two = self.many(n)
            before, threads = self.blocked(), len(os.listdir("/proc/%d/task" % one.daemon.proc.pid))
            one.daemon.kill()
            killed = time.monotonic()
            self.all_are(two, "owner")
            killed = time.monotonic() - killed
            self.assertLess(killed, patience(5))
            self.assertEqual(self.blocked(), before + 1)
            one.start()
            self.all_are(one, "standing-by")
            asked = time.monotonic()
            two.iserctl("cluster", "yield", "to=" + one.name)
            self.all_are(one, "owner")
            asked = time.monotonic() - asked
            self.assertLess(asked, patience(1))
            self.assertEqual(self.blocked(), before + 1)
            one.daemon.proc.send_signal(signal.SIGSTOP)
            self.all_are(two, "owner")
            one.daemon.proc.send_signal(signal.SIGCONT)
            self.all_are(one, "standing-by")
            self.assertEqual(self.blocked(), before + 2)
            self.assertEqual({u["fenced"] for u in one.status()["units"]}, {1})
            two.daemon.kill()
            two.start()  # at once: it finds its own locks
            self.all_are(two, "owner")
            self.assertEqual(self.blocked(), before + 3)
            figure("cluster", "%d units: all have another owner %.2f s after SIGKILL (of which silence: 5 s), %.2f s after a "
                   "request; %d threads of a gateway" % (n, killed, asked, threads))
            for g in (one, two):
                g.daemon.__exit__(None, None, None)


if __name__ == "__main__":
    main()
