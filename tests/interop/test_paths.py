#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Several paths to one unit: two iserd share an image; one is killed, stopped, or changes its access state while a
program writes."""
import json
import os
import select
import signal
import socket
import subprocess
import threading
import unittest

from fuse_disk import WRITE, FuseDisk
from harness import ISER, ISERCTL, Daemon, Folder, main, make_image, need, patience, quiet_port, run, sha256, sparse, \
    until
from test_iser import Tgt
from test_nbdkit import PLUGIN
from test_python import openiser
from test_reserve import Initiator

READY = 3
SIZE = 8 << 20


class Pair(Folder):
    """Two iserd with one image."""
    states = ("optimized", "optimized")
    options = ()

    def setUp(self):
        super().setUp()
        self.disk = sparse(self.path("disk.img"), SIZE)
        self.ports = [quiet_port(), quiet_port()]
        self.daemons = [self.start(0), self.start(1)]

    def tearDown(self):
        for d in self.daemons:
            if d.proc.poll() is None:
                d.proc.send_signal(signal.SIGCONT)
            if d.proc.returncode is None:
                d.__exit__(None, None, None)

    def start(self, which):
        return Daemon("--listen", "127.0.0.1:%d" % self.ports[which], "--port-id", str(which + 1),
                      "--alua", "1:%s:1" % self.states[0], "--alua", "2:%s:2" % self.states[1],
                      "--control", self.path("ctl%d" % which), "--shared", "--block-size", "512", "--buffered",
                      *self.options, self.disk)

    def urls(self, *keys):
        """The URLs of both paths; the keys are those of the first one."""
        first, second = (d.url for d in self.daemons)
        return first + ("?" + "&".join(keys) if keys else "") + " " + second

    def set(self, group, state):
        """Sets the access state of a group at both iserd; the one that loses it first."""
        for which in sorted((0, 1), key=lambda w: (w + 1 == group) == (state in ("optimized", "non-optimized"))):
            run([ISERCTL, "-s", self.path("ctl%d" % which), "group", "id=%d" % group, "state=" + state])


def write_and_check(case, disk, seed, count=64, between=None):
    """Writes blocks, each twice with other data, calls `between` in the middle, and compares what was acknowledged with
    what the disk has."""
    model = {}
    for i in range(count):
        if between and i == count // 2:
            between()
        at = (seed * 31 + i * 7) % (SIZE // 4096) * 4096
        for turn in range(2):
            data = bytes([(seed + i + turn) % 251 + 1]) * 4096
            disk.pwrite(data, at)
            model[at] = data
    for at, data in model.items():
        case.assertEqual(disk.pread(4096, at), data)
    return model


def states(disk):
    return [(p.state, p.access, p.is_used) for p in disk.paths]


def until_states(disk, want):
    """Waits until the paths have these states; a read runs the loop of the library."""
    def there():
        disk.pread(512, 0)
        return states(disk) == want
    until(there, lambda: disk.paths)


@unittest.skipUnless(openiser, "libiser cannot be loaded by this Python")
class Both(Pair):
    """Two optimized paths."""

    def test_kill_and_return(self):
        with openiser.connect(self.urls("polling_interval=1")) as disk:
            self.assertEqual(states(disk), [(READY, 0, True), (READY, 0, True)])
            write_and_check(self, disk, 1)
            for p in disk.paths:
                self.assertGreater(p.commands, 40)
            write_and_check(self, disk, 2, between=self.daemons[0].kill)
            self.assertEqual(states(disk)[1], (READY, 0, True))
            self.assertNotEqual(disk.paths[0].state, READY)
            self.assertIn("refused", disk.paths[0].reason)
            self.daemons[0] = self.start(0)
            until_states(disk, [(READY, 0, True), (READY, 0, True)])
            before = disk.paths[0].commands
            model = write_and_check(self, disk, 3, between=self.daemons[1].kill)
            self.assertGreater(disk.paths[0].commands, before)
        with open(self.disk, "rb") as f:
            for at, data in model.items():
                f.seek(at)
                self.assertEqual(f.read(4096), data)
        self.daemons[1] = self.start(1)

    def test_bench_survives(self):
        bench = subprocess.Popen([ISER, "bench", "--rw", "randrw", "--time", "2", "--yes-overwrite",
                                  self.urls("replacement_timeout=5")],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.daemons[0].wait_for("LOGIN:")
        self.daemons[0].kill()
        text = bench.communicate(timeout=patience(30))[0]
        self.assertEqual(bench.returncode, 0, text)
        self.daemons[0] = self.start(0)

    def test_all_down(self):
        """The commands wait for replacement_timeout, and fail with the reason of each path; then again at once."""
        with openiser.connect(self.urls("replacement_timeout=1")) as disk:
            for d in self.daemons:
                d.kill()
            with self.assertRaises(openiser.Error) as e:
                disk.pwrite(b"x" * 512, 0)
            self.assertEqual(e.exception.code, openiser.ErrorCode.NO_PATH)
            with self.assertRaises(openiser.Error) as e:
                disk.command(b"\0" * 6)
            self.assertEqual(e.exception.code, openiser.ErrorCode.NO_PATH)
            with self.assertRaises(openiser.Error) as e:
                disk.refresh()
            self.assertEqual(e.exception.code, openiser.ErrorCode.NO_PATH)
            self.assertEqual(str(e.exception).count("refused"), 2, e.exception)
            done = run([ISER, "hash", self.urls()], check=False)
            self.assertEqual(done.returncode, 4, done.text)
            self.assertEqual(done.text.count("refused"), 2, done.text)
            self.daemons[1] = self.start(1)

            def works():
                try:
                    disk.pwrite(b"y" * 512, 0)
                    return True
                except openiser.Error as error:
                    self.assertEqual(error.code, openiser.ErrorCode.NO_PATH)
            until(works, lambda: disk.paths)
        self.daemons[0] = self.start(0)

    def test_stopped_target(self):
        """A WRITE in a target that does not run must not be executed after a later one: it goes to the other path when
        the old session has ended."""
        keys = ("noop_out_interval=1", "noop_out_timeout=1", "login_timeout=1", "replacement_timeout=60",
                "policy=failover")
        with openiser.connect(self.urls(*keys)) as disk:
            disk.pwrite(b"a" * 512, 0)
            os.kill(self.daemons[0].proc.pid, signal.SIGSTOP)
            woken = []

            def wake():
                woken.append(True)
                os.kill(self.daemons[0].proc.pid, signal.SIGCONT)
            timer = threading.Timer(3, wake)
            timer.start()
            disk.pwrite(b"b" * 512, 0)  # waits for the end of the old session
            self.assertTrue(woken)
            timer.join()
            disk.pwrite(b"c" * 512, 0)
            self.assertEqual(disk.pread(512, 0), b"c" * 512)

    def test_wrong_unit(self):
        with Daemon("ram:8M") as d:
            for urls in ([self.daemons[0].url, d.url], [d.url, self.daemons[0].url]):
                with self.assertRaises(openiser.Error) as e:
                    openiser.connect(urls)
                self.assertEqual(e.exception.code, openiser.ErrorCode.INVALID)
                text = str(e.exception)
                self.assertEqual(text.count("naa."), 2, text)
                self.assertIn(d.portal, text)
                self.assertIn(self.daemons[0].portal, text)

    def test_reservation_conflict_is_reported(self):
        other = Initiator(self.daemons[0], "other")
        key = b"\0" * 8 + b"KEYKEYKE" + b"\0" * 8
        self.assertEqual(other.scsi([0x5f, 0, 0, 0, 0, 0, 0, 0, 24, 0], key)[0], 0)
        self.assertEqual(other.scsi([0x5f, 1, 1, 0, 0, 0, 0, 0, 24, 0],
                                    b"KEYKEYKE" + b"\0" * 16)[0], 0)  # write exclusive, at this iserd
        with openiser.connect(self.urls("policy=failover")) as disk:
            with self.assertRaises(openiser.ScsiError) as e:
                disk.pwrite(b"x" * 512, 0)
            self.assertEqual(e.exception.status, 0x18)
        other.close()


@unittest.skipUnless(openiser, "libiser cannot be loaded by this Python")
class States(Pair):
    """One optimized path, one in standby."""
    states = ("optimized", "standby")

    def test_change_of_state(self):
        with openiser.connect(self.urls("polling_interval=1")) as disk:
            self.assertEqual(states(disk), [(READY, 0, True), (READY, 2, False)])

            def swap():
                self.set(1, "standby")
                self.set(2, "optimized")
            write_and_check(self, disk, 4, between=swap)
            until_states(disk, [(READY, 2, False), (READY, 0, True)])
            self.set(1, "non-optimized")
            until_states(disk, [(READY, 1, False), (READY, 0, True)])
            self.assertEqual([p.group for p in disk.paths], [1, 2])

    def test_explicit(self):
        """alua=explicit activates the standby path when no other one carries commands."""
        with openiser.connect(self.urls("alua=explicit", "polling_interval=1")) as disk:
            write_and_check(self, disk, 5, between=self.daemons[0].kill)
            self.assertEqual(states(disk)[1], (READY, 0, True))
        self.daemons[0] = self.start(0)

    def test_manual(self):
        self.set(2, "non-optimized")
        with openiser.connect(self.urls("failback=manual", "polling_interval=1")) as disk:
            self.daemons[0].kill()
            disk.pwrite(b"x" * 512, 0)
            self.daemons[0] = self.start(0)
            until_states(disk, [(READY, 0, False), (READY, 1, True)])
            disk.fail_back()
            self.assertEqual(states(disk), [(READY, 0, True), (READY, 1, False)])
            disk.pwrite(b"x" * 512, 0)

    def test_info(self):
        done = json.loads(run([ISER, "info", "--json", self.urls()]).text)
        self.assertEqual([(p["state"], p["access"], p["used"]) for p in done["paths"].values()],
                         [("ready", "active/optimized", True), ("ready", "standby", False)])


class Portals(Folder):
    def test_all(self):
        """paths=all: each portal that SendTargets reports."""
        with Daemon("--listen", "127.0.0.1:0", "--listen", "127.0.0.1:0", "ram:8M") as d:
            done = json.loads(run([ISER, "info", "--json", d.url + "?paths=all"]).text)
            self.assertEqual(sorted(p["portal"] for p in done["paths"].values()),
                             sorted(u.split("/")[2] for u in d.urls))
            run([ISER, "bench", "--time", "0.2", d.url + "?paths=all&policy=queue-length"])

    def test_bad_keys(self):
        for url, text in (("iscsi://h/iqn.2026-01.a:b/0?paths=some", "paths is all"),
                          ("iscsi://h/iqn.2026-01.a:b/0?policy=best", "policy is round-robin"),
                          ("iscsi://h/iqn.2026-01.a:b/0?login_timeout=0", "login_timeout"),
                          ("iscsi://h/iqn.2026-01.a:b/0?paths=all iscsi://h/iqn.2026-01.a:b/0", "give one URL"),
                          ("iscsi://h/iqn.2026-01.a:b/0,iscsi://", "host")):
            done = run([ISER, "hash", url], check=False)
            self.assertEqual(done.returncode, 7)
            self.assertIn(text, done.text)




class Silent(threading.Thread):
    """A relay to a portal. While `holds` is set, it keeps what the initiator sends and passes nothing; new connections
    get no answer. deliver() passes the kept octets to the target, as a network does that was slow."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self.address, self.holds, self.ends = address, False, False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.pairs, self.kept = {}, []
        self.start()

    def run(self):
        while not self.ends:
            for s in select.select([self.listener, *self.pairs], [], [], 0.05)[0]:
                if s is not self.listener and s not in self.pairs:
                    continue  # closed with its other end
                if s is self.listener:
                    near = s.accept()[0]
                    far = None if self.holds else socket.create_connection(self.address)
                    self.pairs[near] = (far, True)
                    if far:
                        self.pairs[far] = (near, False)
                else:
                    self.move(s)

    def move(self, s):
        to, is_near = self.pairs[s]
        try:
            data = s.recv(65536)
        except OSError:
            data = b""
        if not data:
            del self.pairs[s]
            if to and not self.holds:
                to.close()
                self.pairs.pop(to, None)
        elif self.holds or not to:
            if is_near and to:
                self.kept.append((to, data))
        else:
            to.sendall(data)

    def deliver(self):
        """Returns how many octets the target still took."""
        passed = 0
        for far, data in self.kept:
            try:
                far.sendall(data)
                passed += len(data)
            except OSError:
                pass
        return passed

    def close(self):
        self.ends = True
        self.join(5)
        for s in (self.listener, *self.pairs):
            s.close()


@unittest.skipUnless(openiser, "libiser cannot be loaded by this Python")
class Fence(Folder):
    """A path that falls silent, with a WRITE that the target may still execute: the WRITE goes to the other portal only
    after a login there has ended the lost session (RFC 7143 §6.3.5)."""
    KEYS = ("noop_out_interval=1", "noop_out_timeout=1", "login_timeout=4", "replacement_timeout=100", "policy=failover")

    def connect(self, *luns):
        self.daemon = Daemon("--listen", "127.0.0.1:0", "--listen", "127.0.0.1:0", "--buffered", *luns)
        self.addCleanup(self.daemon.__exit__, None, None, None)
        return self.connect_to(*(u for u in self.daemon.urls if u.endswith("/0")))

    def connect_to(self, first, second):
        host, port = first.split("/")[2].split(":")
        self.relay = Silent((host, int(port)))
        self.addCleanup(self.relay.close)
        near = first.replace(":%s/" % port, ":%d/" % self.relay.port)
        disk = openiser.connect("%s?%s %s" % (near, "&".join(self.KEYS), second))
        self.addCleanup(disk.close)
        # on a busy machine the path through the relay may come later
        until(lambda: [p.is_used for p in disk.paths] == [True, False] or disk.pread(512, 0) is None, lambda: disk.paths)
        return disk

    def write(self, disk, data):
        """Begins a WRITE of the first block in another thread."""
        def run_it():
            disk.pwrite(data * 512, 0)
        thread = threading.Thread(target=run_it)
        thread.start()
        return thread

    @need("tgtd", "tgtadm")
    def test_tgt(self):
        with Tgt(sparse(self.path("disk.img"), SIZE)) as t:
            # the default names of tgt are those of each tgtd
            t.adm("--op", "update", "--mode", "logicalunit", "--tid", "1", "--lun", "1", "--params", "scsi_sn=PX41-0071")
            self.late_write(self.connect_to(t.url, t.url))

    def test_write_in_the_network(self):
        disk = self.connect("ram:8M")
        self.late_write(disk)
        self.daemon.wait_for("reinstated by a new login")
        until_states(disk, [(READY, 0, True), (READY, 0, False)])

    def late_write(self, disk):
        disk.pwrite(b"a" * 512, 0)
        self.relay.holds = True
        late = self.write(disk, b"b")
        late.join(patience(30))
        self.assertFalse(late.is_alive(), "the WRITE waits for replacement_timeout")
        disk.pwrite(b"c" * 512, 0)
        self.assertGreater(sum(len(d) for _, d in self.relay.kept), 512)
        self.relay.deliver()
        self.assertEqual(disk.pread(512, 0), b"c" * 512)
        self.assertEqual([p.is_used for p in disk.paths], [False, True])
        self.relay.holds = False

    @unittest.skipUnless(os.geteuid() == 0 and os.path.exists("/dev/fuse"), "needs root and /dev/fuse for a slow disk")
    def test_write_in_the_disk(self):
        """The login that ends the session waits for the WRITE that is being executed."""
        try:
            slow = FuseDisk(1 << 20).__enter__()
        except OSError as e:
            self.skipTest("may not mount here: %s" % e)
        self.addCleanup(slow.__exit__)
        disk = self.connect(slow.path)
        disk.pwrite(b"a" * 512, 0)
        slow.postponed = (WRITE,)
        late = self.write(disk, b"b")
        until(lambda: slow.pending, "the WRITE in the disk")
        self.relay.holds = True
        self.daemon.wait_for("reinstated by a new login")
        late.join(1)
        self.assertTrue(late.is_alive())
        self.assertEqual(len(slow.pending), 1, "the WRITE was issued again before the old one had ended")
        slow.postponed = ()
        slow.answer()
        late.join(patience(30))
        self.assertFalse(late.is_alive())
        disk.pwrite(b"c" * 512, 0)
        self.assertEqual(disk.pread(512, 0), b"c" * 512)
        self.assertEqual(bytes(slow.data[:512]), b"c" * 512)


@need("nbdcopy", "nbdkit")
class Nbd(Pair):
    def copy_through(self, command):
        """Copies an image into the disk over NBD while one iserd is killed."""
        image = self.path("image")
        make_image(image, SIZE)
        done = run(["sh", "-c", command.replace("COPY", "(sleep 0.1; kill -9 %d) & nbdcopy --flush %s" % (
            self.daemons[0].proc.pid, image))])
        self.daemons[0].proc.wait()
        self.daemons[0].kill()
        self.assertEqual(sha256(image), sha256(self.disk), done.text)
        self.daemons[0] = self.start(0)

    def test_serve(self):
        sock = self.path("nbd")
        self.copy_through("'%s' nbd-serve --once --socket %s '%s' & while [ ! -S %s ]; do sleep 0.02; done; "
                          "COPY 'nbd+unix:///?socket=%s'; code=$?; wait %%1 || code=1; exit $code" % (
                              ISER, sock, self.urls(), sock, sock))

    def test_plugin(self):
        first, second = self.urls().split()
        self.copy_through("nbdkit -U - %s '%s' 'url=%s' --run 'COPY \"$uri\"'" % (PLUGIN, first, second))


if __name__ == "__main__":
    main()
