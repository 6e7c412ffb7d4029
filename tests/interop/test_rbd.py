#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""rbd: LUNs, against a Ceph cluster of Debian's packages that these tests start.

rbd of ceph-common is the second client: it makes, reads, resizes and lists the images.
"""
import json
import os
import signal
import subprocess
import unittest

import ceph
from harness import (ISER, ISERCTL, ISERD, WAYS, Daemon, Folder, Wire, make_image, main, over, patience, refused, run, sha256,
                     sparse, until)
from test_metrics import Numbers
from test_config import IQN, Config
from test_libiscsi import Suite

CAPACITY_CHANGED = (6, 0x2a, 9)


def sense(answer):
    """Returns (key, ASC, ASCQ) of an answer with CHECK CONDITION; None: another status."""
    status, data = answer
    return (data[4] & 15, data[14], data[15]) if status == 2 else None


CLUSTER = None  # the cases share it; each makes its own images
MODULES = os.path.dirname(os.path.dirname(os.path.realpath(ISERD)))
BUILD = os.path.dirname(MODULES)


def setUpModule():
    global CLUSTER
    missing = ceph.missing()
    if missing:
        raise unittest.SkipTest("%s is missing: install ceph-mon, ceph-osd and ceph-common" % missing)
    if not os.path.exists(os.path.join(MODULES, "backstore-rbd.so")):
        raise unittest.SkipTest("this build has no backstore-rbd.so: install librbd-dev")
    os.environ["OPENISER_MODULES"] = MODULES
    CLUSTER = ceph.Cluster(auth=True)


def tearDownModule():
    os.environ.pop("OPENISER_MODULES", None)
    if CLUSTER:
        CLUSTER.stop()


class Rbd(Folder):
    @property
    def cluster(self):
        return CLUSTER

    def image(self, name, size="64M"):
        """Makes an image; returns the LUN."""
        self.cluster.create(name, size)
        return self.lun("rbd/" + name)

    def lun(self, spec):
        return "rbd:%s,conf=%s" % (spec, self.cluster.conf)

    def export(self, image):
        path = self.path(image)
        self.cluster.run("rbd", "export", "--no-progress", image, path)
        return path

    def extents(self, image):
        """Returns what exists of an image: a list of (offset, length)."""
        rows = json.loads(self.cluster.run("rbd", "diff", image, "--format", "json").text)
        return [(int(r["offset"]), int(r["length"])) for r in rows if r["exists"] == "true"]


class Data(Rbd):
    def test_copies_in_both_directions(self):
        """What iser writes, rbd exports, and what rbd imports, iser reads; holes stay holes."""
        make_image(self.path("disk"), 64 << 20)
        for way in WAYS:
            with self.subTest(way):
                with Daemon("--workers", "2", self.image("copy-" + way)) as d:
                    run([ISER, "copy", self.path("disk"), over(d.url, way)])
                    run([ISER, "copy", over(d.url, way), self.path("back")])
                self.assertEqual(sha256(self.path("back")), sha256(self.path("disk")))
                self.assertEqual(sha256(self.export("copy-" + way)), sha256(self.path("disk")))
                self.assertLess(os.stat(self.path("back")).st_blocks * 512, 16 << 20)
                self.assertLess(sum(n for _, n in self.extents("copy-" + way)), 16 << 20)
        self.cluster.run("rbd", "import", "--no-progress", self.path("disk"), "imported")
        with Daemon(self.lun("rbd/imported")) as d:
            self.assertIn(sha256(self.path("disk")), run([ISER, "hash", d.url]).text)

    def test_unmap_and_write_zeros(self):
        """UNMAP removes objects, and a part of an object reads as zeros."""
        with Daemon(self.image("thin")) as d:
            w = Wire(d)
            w.login()
            w.ready()
            for lba in (0, 8192, 16384):  # the objects 0, 1 and 2
                self.assertEqual(w.write10(lba, b"x" * 65536)[0], 0)
            self.assertEqual([off for off, _ in self.extents("thin")], [0, 4 << 20, 8 << 20])

            def unmap(lba, blocks):
                text = lba.to_bytes(8, "big") + blocks.to_bytes(4, "big") + bytes(4)
                return w.ask(b"\x42" + bytes(6) + b"\0\x18" + bytes(7), data=b"\0\x16\0\x10" + bytes(4) + text)

            self.assertEqual(unmap(8192, 8192)[0], 0)
            self.assertEqual([off for off, _ in self.extents("thin")], [0, 8 << 20])
            self.assertEqual(unmap(16384, 4)[0], 0)  # a part of an object
            self.assertEqual(w.read10(16384, 8), (0, bytes(2048) + b"x" * 2048))
            # GET LBA STATUS: mapped, then deallocated up to object 2
            status, data = w.ask(b"\x9e\x12" + bytes(8) + b"\0\0\0\x28" + bytes(2), edtl=40)
            self.assertEqual((status, data[8:16], data[20] & 15), (0, bytes(8), 0))
            self.assertEqual((int.from_bytes(data[24:32], "big"), data[36] & 15), (128, 1))
            # WRITE SAME(16) with zeros and without UNMAP allocates
            same = b"\x93\0" + (32768).to_bytes(8, "big") + (8).to_bytes(4, "big") + bytes(2)
            self.assertEqual(w.ask(same, data=bytes(512))[0], 0)
            w.close()

    def resources(self, wire):
        """Returns the MiB that are (available, used) by the log page Logical Block Provisioning; None: no such page."""
        status, data = wire.ask(b"\x4d\0\x4c" + bytes(4) + b"\0\x40" + bytes(7), edtl=64)
        if status:
            return None
        found = {int.from_bytes(data[i:i + 2], "big"): int.from_bytes(data[i + 4:i + 8], "big") for i in range(4, len(data), 12)}
        return found[1], found[2]

    def test_space(self):
        """SBC-3 §6.4.5: objects count, those of a parent do not; an image without a map of its objects has no such page."""
        lun = self.image("space")
        with Daemon(lun) as d:
            w = Wire(d)
            w.login()
            w.ready()
            self.assertEqual(self.resources(w), (64, 0))
            for lba in (0, 1000, 16384):  # the objects 0 and 2
                self.assertEqual(w.write10(lba, b"x" * 4096)[0], 0)
            self.assertEqual(self.resources(w), (56, 8))
            self.cluster.run("rbd", "snap", "create", "--no-progress", "space@one")
            self.cluster.run("rbd", "snap", "protect", "space@one")
            self.cluster.run("rbd", "clone", "space@one", "clone")
            w.close()
        with Daemon(self.lun("rbd/clone")) as d:
            w = Wire(d)
            w.login()
            w.ready()
            self.assertEqual(self.resources(w), (64, 0))
            w.close()
        self.cluster.create("mapless", "64M", "--image-feature", "layering")
        with Daemon(self.lun("rbd/mapless")) as d:
            w = Wire(d)
            w.login()
            w.ready()
            self.assertIsNone(self.resources(w))
            w.close()

    def test_space_by_counting(self):
        """The map of the objects is lost: they are counted."""
        lun = self.image("lostmap")
        with Daemon(lun) as d:
            run([ISER, "bench", "--rw", "write", "--bs", "1M", "--amount", "8M", "--ramp", "0", "--yes-overwrite", d.url])
        info = json.loads(self.cluster.run("rbd", "info", "lostmap", "--format", "json").text)
        self.cluster.run("rados", "-p", "rbd", "rm", "rbd_object_map." + info["id"])
        with Daemon(lun) as d:
            w = Wire(d)
            w.login()
            w.ready()
            self.assertIn("object map invalid", self.cluster.run("rbd", "info", "lostmap").text)
            self.assertEqual(self.resources(w), (56, 8))
            w.close()

    def test_large_requests_reuse_memory(self):
        """The pages of the buffers are not faulted in again for each request of 1 MiB (256 faults)."""
        with open(self.path("disk"), "wb") as f:
            f.write(os.urandom(64 << 20))
        with Daemon(self.image("large")) as d:
            run([ISER, "copy", self.path("disk"), d.url])
            faults = []
            for _ in range(4):
                with open("/proc/%d/stat" % d.proc.pid) as f:
                    faults.append(int(f.read().rsplit(")", 1)[1].split()[7]))
                run([ISER, "bench", "--rw", "read", "--bs", "1M", "--depth", "8", "--ramp", "0", "--amount", "200M", d.url])
            grew = [b - a for a, b in zip(faults, faults[1:])]
        self.assertLess(min(grew), 200 * 64, grew)

    def test_latencies(self):
        """The metrics have histograms of what the cluster took, also through the filter of encryption; other stores have none."""
        for options in ("", ",new-key=" + self.path("key")):
            with Numbers("--workers", "2", self.image("timed%d" % bool(options)) + options, "ram:1M") as d:
                w = Wire(d)
                w.login()
                w.ready()
                name = 'iserd_store_latency_seconds_%s{backstore="lun0",op="%s"}'
                before = d.samples()
                for _ in range(3):
                    self.assertEqual(w.write10(0, b"x" * 4096)[0], 0)
                self.assertEqual(w.read10(0, 8)[0], 0)
                unmap = b"\0\x16\0\x10" + bytes(4) + (8192).to_bytes(8, "big") + (8).to_bytes(4, "big") + bytes(4)
                self.assertEqual(w.ask(b"\x42" + bytes(6) + b"\0\x18" + bytes(7), data=unmap)[0], 0)
                self.assertEqual(w.ask(b"\x35" + bytes(15))[0], 0)  # SYNCHRONIZE CACHE
                now = d.samples()
                grew = {op: now[name % ("count", op)] - before[name % ("count", op)] for op in ("read", "write", "flush", "discard")}
                self.assertEqual(grew, {"read": 1, "write": 3, "flush": 1, "discard": 1})
                for op in grew:
                    buckets = [v for k, v in now.items() if k.startswith("iserd_store_latency_seconds_bucket") and 'op="%s"' % op in k]
                    self.assertEqual(buckets, sorted(buckets))
                    self.assertEqual((len(buckets), buckets[-1]), (23, now[name % ("count", op)]))
                took, whole = now[name % ("sum", "write")], now['iserd_lun_latency_seconds_sum{backstore="lun0",op="write"}']
                self.assertTrue(0 < took < whole, (took, whole))
                self.assertFalse([k for k in now if k.startswith("iserd_store_latency") and 'backstore="lun1"' in k])
                w.close()

    def test_snapshot(self):
        """A snapshot is read-only, and has an identity of its own."""
        lun = self.image("snapped")
        make_image(self.path("disk"), 64 << 20)
        with Daemon(lun) as d:
            run([ISER, "copy", self.path("disk"), d.url])
            self.cluster.run("rbd", "snap", "create", "--no-progress", "snapped@before")
            run([ISER, "copy", sparse(self.path("zeros"), 64 << 20), d.url])
            serial = run([ISER, "info", d.url]).text.split("serial")[1].split()[0]
        with Daemon(self.lun("rbd/snapped@before")) as d:
            self.assertIn(sha256(self.path("disk")), run([ISER, "hash", d.url]).text)
            self.assertNotIn(serial, run([ISER, "info", d.url]).text)
            done = run([ISER, "copy", self.path("disk"), d.url], check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("write-protected", done.text)

    def test_namespace_and_client(self):
        """A client with rights for one namespace only."""
        c = self.cluster
        c.run("rbd", "namespace", "create", "rbd/lab")
        c.create("rbd/lab/disk")
        keyring = self.path("keyring")
        c.run("ceph", "auth", "get-or-create", "client.lab", "mon", "profile rbd", "osd",
              "profile rbd pool=rbd namespace=lab", "-o", keyring)
        rights = ",id=lab,keyring=" + keyring
        with Daemon(self.lun("rbd/lab/disk") + rights) as d:
            run([ISER, "copy", sparse(self.path("zeros"), 1 << 20), d.url])
        c.create("private")
        text = refused("--workers", "1", self.lun("rbd/private") + rights)
        self.assertIn("profile rbd", text)

    def test_encrypted(self):
        """The cluster has the cipher text only."""
        lun = self.image("secret") + ",new-key=" + self.path("key")
        with Daemon(lun) as d:
            with open(self.path("text"), "wb") as f:
                f.write(b"in plain text   " * 4096)
            run([ISER, "copy", self.path("text"), d.url])
            with open(self.export("secret"), "rb") as f:
                self.assertNotIn(b"in plain text", f.read())
        with Daemon(lun.replace(",new-key=", ",key=")) as d:
            run([ISER, "copy", d.url, self.path("back")])
            with open(self.path("back"), "rb") as f:
                self.assertEqual(f.read(65536), b"in plain text   " * 4096)


FLOOR = os.path.join(BUILD, "bench", "floor_rbd")


@unittest.skipUnless(os.path.exists(FLOOR), "floor_rbd is not built: meson configure -Dbench=true")
class Floor(Rbd):
    """The program that the benchmark compares iserd with."""

    def floor(self, *words, **kw):
        return self.cluster.run(FLOOR, "--time", "0.2", "--ramp", "0", *words, **kw)

    def test_reads_and_writes(self):
        lun = self.image("floor")
        for words in ([], ["--write", "--random"], ["--size", "1048576", "--depth", "8", "--write"]):
            made = json.loads(self.floor(*words, "rbd/floor").text)
            self.assertGreater(made["iops"], 0)
            self.assertLessEqual(made["p50_us"], made["p99_us"])
            self.assertGreater(made["cpu_us"], 0)
        self.assertGreaterEqual(sum(n for off, n in self.extents("floor") if off < 8 << 20), 8 << 20)  # 8 in order, at least
        with Daemon("--shared", lun) as d:  # the lock goes to and fro
            for _ in range(2):
                run([ISER, "bench", "--rw", "randwrite", "--time", "0.1", "--ramp", "0", "--yes-overwrite", d.url])
                self.floor("--write", "rbd/floor")

    def test_errors(self):
        self.image("small", "1M")
        for words, text in ((["rbd/none"], "none: No such file"), (["none/floor"], "none: No such file"),
                            (["--size", "2097152", "rbd/small"], "smaller than one request"), (["small"], "usage:"),
                            (["--depth", "257", "rbd/small"], "usage:")):
            done = self.floor(*words, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(text, done.text)


class Long(Rbd):
    LONG = True

    def test_suite(self):
        """libiscsi's suite on an image. Blocks of 512 bytes of an object cannot be removed, as in files: docs/conformance.md."""
        Suite("run_suite").run_suite(["--workers", "2", self.image("suite", "100M")], wrong="test_get_lba_status_unmap_single.c",
                                     but=(Suite.NOT_ASKED, Suite.WRITABLE, Suite.ONE_PATH) + Suite.FIXED_DISK)


class Life(Rbd):
    def test_resize(self):
        """iserd notices within seconds that rbd has changed the size."""
        with Daemon(self.image("grows")) as d:
            w = Wire(d)
            w.login()
            w.ready()
            self.cluster.run("rbd", "resize", "--no-progress", "-s", "96M", "grows")
            until(lambda: sense(w.ask(bytes(16))) == CAPACITY_CHANGED, "CAPACITY DATA HAS CHANGED", 12)
            self.assertEqual(w.write10((96 << 11) - 8, b"y" * 4096)[0], 0)
            w.close()

    def test_resize_by_iserctl(self):
        with Daemon("--control", self.path("control"), self.image("bigger")) as d:
            run([ISERCTL, "-s", self.path("control"), "resize", "lun0", "size=128M"])
            info = json.loads(self.cluster.run("rbd", "info", "bigger", "--format", "json").text)
            self.assertEqual(info["size"], 128 << 20)

    def test_exclusive_lock(self):
        """One iserd has the image; a second one is refused, and served when both are shared."""
        lun = self.image("alone")
        with Daemon(lun):
            self.assertEqual(len(self.cluster.lockers("alone")), 1)
            self.assertIn("another client has the exclusive lock", refused(lun))
        self.assertEqual(self.cluster.lockers("alone"), [])
        with Daemon("--shared", lun), Daemon("--shared", lun) as d:
            run([ISER, "copy", sparse(self.path("zeros"), 1 << 20), d.url])

    def test_killed(self):
        """The lock of a killed iserd expires; what it had acknowledged is there."""
        lun = self.image("killed")
        d = Daemon("--state", self.path("state"), lun)
        w = Wire(d)
        w.login()
        w.ready()
        self.assertEqual(w.write10(0, b"k" * 4096)[0], 0)
        # PERSISTENT RESERVE OUT, REGISTER with APTPL
        self.assertEqual(w.ask(b"\x5f\0\0\0\0\0\0\0\x18" + bytes(7), data=bytes(8) + b"openiser" + bytes(4) + b"\1" + bytes(3))[0], 0)
        d.kill()
        with Daemon("--state", self.path("state"), lun, ready=False) as d:
            d.wait_for("waiting until client")
            d._read_urls(1)  # within patience(20)
            w = Wire(d)
            w.login()
            w.ready()
            self.assertEqual(w.read10(0, 8), (0, b"k" * 4096))
            self.assertIn(b"openiser", w.ask(b"\x5e\0" + bytes(5) + b"\0\x40" + bytes(7), edtl=64)[1])
            w.close()

class Live(Rbd, Config):
    def test_live(self):
        """An image is added and removed while iserd serves; one in use elsewhere is refused at once."""
        d = self.start("backstores: {a: {store: 'ram:16M'}}\nportal-groups: {p: {listen: '127.0.0.1:0'}}\n"
                       "targets: {%st: {auth-group: any, portal-groups: [p], luns: {0: a}}}\n" % IQN, 1)
        lun = self.image("live")
        with Daemon(lun):
            done = run([ISERCTL, "-s", self.ctl, "backstore", "add", "b", "store=" + lun], check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("another client has the exclusive lock", d.messages() + done.text)
        self.iserctl("backstore", "add", "b", "store=" + lun)
        self.iserctl("lun", "add", IQN + "t/1", "backstore=b")
        run([ISER, "copy", sparse(self.path("zeros"), 1 << 20), d.url[:-1] + "1"])
        self.iserctl("lun", "remove", IQN + "t/1")
        self.iserctl("backstore", "remove", "b")
        until(lambda: self.cluster.lockers("live") == [], "the lock is released")


class Record(Rbd):
    def test_store(self):
        """The record of gateways that share an image: compare and swap, notifications, lock and fence."""
        self.cluster.create("record")
        done = run([os.path.join(BUILD, "tests/unit/daemon/rbd_store_test"), self.lun("rbd/record")[4:]], timeout=patience(60))
        self.assertIn("first write", done.text)

    def test_clients_rights(self):
        """A client with the profiles of the documentation shares, and fences."""
        self.cluster.create("rights")
        keyring = self.path("keyring")
        self.cluster.run("ceph", "auth", "get-or-create", "client.gw", "mon", "profile rbd", "osd", "profile rbd pool=rbd",
                         "-o", keyring)
        run([os.path.join(BUILD, "tests/unit/daemon/rbd_store_test"),
             self.lun("rbd/rights")[4:] + ",id=gw,keyring=" + keyring], timeout=patience(60))

    def test_garbage(self):
        """A damaged record, and notifications of a stranger."""
        self.cluster.create("garbage")
        name = "openiser." + json.loads(self.cluster.run("rbd", "info", "garbage", "--format", "json").text)["id"]
        for text in (b"", b"x", b"OISRCLU1", b"OISRCLU1" + bytes(8) + b"\xff" * 8, bytes(600000)):
            with open(self.path("object"), "wb") as f:
                f.write(text)
            self.cluster.run("rados", "-p", "rbd", "put", name, self.path("object"))
            out = run([os.path.join(BUILD, "tests/unit/daemon/rbd_store_test"), self.lun("rbd/garbage")[4:], "damaged"],
                      timeout=patience(60)).text
            self.assertIn("read -1006", out)
        with subprocess.Popen([os.path.join(BUILD, "tests/unit/daemon/rbd_store_test"), self.lun("rbd/garbage")[4:], "serve"],
                              env=self.cluster.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
            self.assertEqual(p.stdout.readline(), "ready\n")
            for text in ("x", "y" * 200, "../x", "z" * 5000):
                self.cluster.run("rados", "-p", "rbd", "notify", name + ".gateways", text, check=False)
            self.assertEqual(p.communicate("\n", patience(30))[0], "noted 0\n")
            self.assertEqual(p.returncode, 0)


class Faults(Rbd):
    def test_cluster_that_stalls(self):
        """Commands wait and can be aborted, other LUNs go on, and acknowledged data stay."""
        with Daemon("--workers", "2", self.image("stalls"), "ram:16M") as d:
            w = Wire(d)
            w.login()
            w.ready()
            self.assertEqual(w.write10(0, b"a" * 4096)[0], 0)
            self.cluster.signal("osd", signal.SIGSTOP)
            try:
                itt = w.command(b"\x2a\0" + bytes(4) + b"\0\0\x08" + bytes(7), 0xa0, 4096, b"b" * 4096)
                run([ISER, "bench", "--time", "1", d.urls[1]])  # the other LUN
                # ABORT TASK: function complete
                w.pdu(2, 0x81, rest=(itt.to_bytes(4, "big") + (w.cmdsn).to_bytes(4, "big") + (1).to_bytes(4, "big") +
                                     (w.cmdsn - 1).to_bytes(4, "big")))
                # iserd has the request before the cluster answers: a NOP-In follows it
                w.pdu(0x40, rest=b"\xff" * 4 + (w.cmdsn + 1).to_bytes(4, "big") + (1).to_bytes(4, "big"))
                self.assertEqual(w.recv()[0], 0x20)
            finally:
                self.cluster.signal("osd", signal.SIGCONT)
            op, head, _ = w.recv()
            self.assertEqual((op, head[2]), (0x22, 0))
            w.cmdsn += 1
            status, data = w.read10(0, 8)
            self.assertEqual(status, 0)
            self.assertIn(data, (b"a" * 4096, b"b" * 4096))
            w.close()

    def test_full_pool(self):
        """SBC-3 §4.7.3.6: a write that finds no room ends with DATA PROTECT, SPACE ALLOCATION FAILED WRITE PROTECT; other blocks can
        be read, written and unmapped."""
        with Daemon(self.image("full"), self.image("empty")) as d:
            w = Wire(d)
            w.login()
            w.ready()
            self.assertEqual(w.write10(0, b"a" * 4096)[0], 0)
            with self.cluster.full():
                self.assertEqual(sense(w.write10(20000, b"b" * 4096)), (7, 0x27, 7))
                self.assertEqual(w.write10(0, b"c" * 4096)[0], 0)
                self.assertEqual(w.read10(0, 8), (0, b"c" * 4096))
                self.assertEqual(w.read10(20000, 8), (0, bytes(4096)))
            until(lambda: w.write10(20000, b"b" * 4096)[0] == 0, "room again")
            self.assertIn("no space left; make room where it is stored", d.messages())
            w.close()

    def test_end_while_the_cluster_stalls(self):
        """iserd ends in bounded time, with and without commands in progress."""
        for busy in (False, True):
            d = Daemon(self.image("ends-%d" % busy))
            w = Wire(d)
            w.login()
            w.ready()
            self.cluster.signal("osd", signal.SIGSTOP)
            try:
                if busy:
                    w.command(b"\x2a\0" + bytes(4) + b"\0\0\x08" + bytes(7), 0xa0, 4096, b"b" * 4096)
                else:
                    w.close()
                d.stop(limit=20)
            finally:
                self.cluster.signal("osd", signal.SIGCONT)
            self.assertIn("ending without them" if busy else "the cluster does not answer", d.messages())
            w.close()

    def test_no_monitor(self):
        self.cluster.signal("mon", signal.SIGSTOP)
        try:
            text = refused(self.lun("rbd/any"))
        finally:
            self.cluster.signal("mon", signal.SIGCONT)
        self.assertIn("no monitor of the cluster answers", text)

    def test_errors_name_the_remedy(self):
        self.image("there")
        for spec, text in (
                ("rbd/none", "no such image or snapshot; make the image with rbd create"),
                ("rbd/there@none", "no such image or snapshot"),
                ("none/there", "pool none: No such file or directory; name a pool"),
                ("there", "not POOL/IMAGE or POOL/NAMESPACE/IMAGE"),
                ("rbd/there,id=none", "does not admit client.none")):
            self.assertIn(text, refused(self.lun(spec)))
        self.assertIn("name the file with ,conf=FILE", refused("rbd:rbd/there,conf=/none"))
        self.assertIn("protection information is for files", refused("--protection", "1", self.lun("rbd/there")))

    def test_no_module(self):
        env = dict(os.environ, OPENISER_MODULES=self.dir)
        done = subprocess.run([ISERD, "serve", "--listen", "127.0.0.1:0", "rbd:rbd/x"], env=env,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=patience(20))
        self.assertEqual(done.returncode, 3)
        self.assertIn("install the package openiser-rbd", done.stderr)


if __name__ == "__main__":
    main()
