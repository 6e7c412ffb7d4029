#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A session with a lost connection is restored, and no data are lost."""
import json
import os
import random
import select
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest

from fake_target import R_ASYNC, Case, Conn, FakeTarget, text_of
from harness import (ISER, Daemon, Folder, main, make_image, need, patience,
                     quiet_port, run, sha256, sparse, stop_process, until)
from test_iser import BUILT, Tgt
from test_nbd import Bridge, Raw


class Cutter(threading.Thread):
    """A proxy between initiator and target that cuts each connection after so many
    bytes of payload in both directions; it does not cut the last connection."""

    def __init__(self, address, cuts):
        super().__init__(daemon=True)
        self.address, self.cuts, self.accepted = address, list(cuts), 0
        self.failed = []  # why the target could not be reached
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.stop = False
        self.start()

    def run(self):
        while not self.stop:
            if not select.select([self.listener], [], [], 0.2)[0]:
                continue
            near = self.listener.accept()[0]
            self.accepted += 1
            self.serve(near, self.cuts.pop(0) if self.cuts else None)

    def serve(self, near, limit):
        try:
            far = socket.create_connection(self.address)
        except OSError as e:
            self.failed.append("%s: %s" % (type(e).__name__, e))
            near.close()
            return
        ends, passed = {near: far, far: near}, 0
        while not self.stop and (limit is None or passed < limit):
            for s in select.select(list(ends), [], [], 0.2)[0]:
                try:
                    data = s.recv(16384)
                    if not data:
                        passed = float("inf")
                        limit = 0
                        break
                    ends[s].sendall(data)
                except OSError:
                    limit = 0
                    break
                passed += len(data)
        self.end(ends)

    def end(self, ends):
        for s in ends:  # at once, with data in flight
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                         struct.pack("ii", 1, 0))
            s.close()

    def url(self, daemon, *keys):
        return "iscsi://127.0.0.1:%d/%s/0?%s" % (
            self.port, daemon.target, "&".join(k for k in keys if k))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.stop = True
        self.join(5)
        self.listener.close()
        if kind:
            print("#   relay: %d connections, %s" % (
                self.accepted, self.failed or "each with the target"))


class Staller(Cutter):
    """After so many bytes the proxy passes no data, without closing a connection."""

    def __init__(self, address, cuts):
        self.silent = []
        super().__init__(address, cuts)

    def end(self, ends):
        if self.stop:
            super().end(ends)
        else:
            self.silent.append(ends)

    def __exit__(self, *args):
        super().__exit__(*args)
        for ends in self.silent:
            super().end(ends)


@BUILT
class Reconnect(Folder):
    keys, over = "", "tcp"

    def setUp(self):
        super().setUp()
        self.image, self.back = self.path("image"), self.path("back")
        make_image(self.image)

    def test_copy_through_cuts(self):
        chance = random.Random(4)
        cuts = [chance.randrange(2000, 1 << chance.randrange(12, 22))
                for _ in range(16)]
        keys = ("reconnect=%d" % len(cuts), self.keys)
        with Daemon("--workers", "2", "ram:24M") as d:
            with Cutter(d.address, cuts[:8]) as cut:
                run([ISER, "copy", "--quiet", self.image, cut.url(d, *keys)])
                self.assertEqual(cut.accepted, 9)
            self.assertIn(sha256(self.image), run([ISER, "hash", d.url]).text)
            with Cutter(d.address, cuts[8:]) as cut:
                run([ISER, "copy", "--quiet",
                     cut.url(d, "header_digest=crc32c", *keys), self.back])
                self.assertEqual(cut.accepted, 9)
            self.assertIn("over " + self.over, d.messages())
        self.assertEqual(sha256(self.image), sha256(self.back))

    def test_without_the_key_it_fails(self):
        with Daemon("ram:24M") as d, Cutter(d.address, [300000]) as cut:
            done = run([ISER, "copy", "--quiet", self.image,
                        cut.url(d, "depth=8", self.keys)], check=False)
            self.assertEqual(done.returncode, 4, done.text)
            self.assertIn("connection lost", done.text)

    def test_cut_in_login(self):
        """The new connections are cut, too: each one counts as an attempt."""
        with Daemon("ram:24M") as d:
            with Cutter(d.address, [300000, 100, 100]) as cut:
                run([ISER, "copy", "--quiet", self.image,
                     cut.url(d, "reconnect=3", self.keys)])
            self.assertIn(sha256(self.image), run([ISER, "hash", d.url]).text)
            with Cutter(d.address, [300000, 100, 100, 100]) as cut:
                done = run([ISER, "copy", "--quiet", self.image,
                            cut.url(d, "reconnect=2", self.keys)], check=False)
                self.assertEqual(cut.accepted, 3)
            self.assertEqual(done.returncode, 4, done.text)

    def test_overdue_commands_are_issued_again(self):
        """timeout= limits each attempt; reconnect= limits their number."""
        with Daemon("ram:24M") as d:
            with Staller(d.address, [300000, 1000001]) as cut:
                run([ISER, "copy", "--quiet", self.image,
                     cut.url(d, "timeout=2", "reconnect=5", self.keys)])
                self.assertEqual(cut.accepted, 3)
            self.assertIn(sha256(self.image), run([ISER, "hash", d.url]).text)
            with Staller(d.address, [300000]) as cut:
                done = run([ISER, "copy", "--quiet", self.image,
                            cut.url(d, "timeout=2", self.keys)], check=False)
                self.assertEqual(done.returncode, 8, done.text)
                self.assertIn("timed out", done.text)

    def test_gives_up(self):
        with Daemon("ram:24M") as d:
            began = time.monotonic()
            with Cutter(d.address, [500000]) as cut:
                url = cut.url(d, "reconnect=3", self.keys)
                proc = subprocess.Popen(
                    [ISER, "bench", "--time", "60", url],
                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                until(lambda: cut.accepted and not cut.cuts, "a cut connection")
            text = proc.communicate(timeout=patience(30))[1].decode()
            self.assertEqual(proc.returncode, 4, text)
            self.assertLess(time.monotonic() - began, patience(10))

    def test_counts(self):
        with Daemon("ram:24M") as d, Cutter(d.address, [60000]) as cut:
            done = run([ISER, "bench", "--json", "--time", "4", "--depth", "1",
                        cut.url(d, "reconnect=5", self.keys)])
            self.assertEqual(json.loads(done.text)["reconnects"], 1)

    @need("fio")
    def test_target_killed_and_back(self):
        """fio writes and verifies while the target is killed and restarted."""
        disk = sparse(self.path("disk"), 64 << 20)
        listen = "127.0.0.1:%d" % quiet_port()
        d = Daemon("--listen", listen, disk)
        with Bridge(d.url + "?reconnect=100&" + self.keys) as b:
            fio = subprocess.Popen(
                ["fio", "--name=verify", "--verify_state_save=0", "--ioengine=nbd", "--uri=" + b.uri,
                 "--rw=randwrite", "--bs=16k", "--iodepth=16", "--size=64M",
                 "--rate_iops=700", "--verify=crc32c", "--verify_fatal=1"],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            for _ in range(2):
                blocks = os.stat(disk).st_blocks
                until(lambda: os.stat(disk).st_blocks > blocks + (8 << 20) // 512,
                      "8 MiB written by fio")
                self.assertIsNone(fio.poll())
                d.kill()
                time.sleep(0.3)
                d = Daemon("--listen", listen, disk)
            text = fio.communicate(timeout=patience(60))[0].decode()
            self.assertEqual(fio.returncode, 0, text)
        d.stop()

    def test_stopped_process(self):
        """SIGSTOP for longer than the commands may take: their answers have come, so none of them timed out."""
        with Daemon("ram:64M") as d:
            bench = subprocess.Popen([ISER, "bench", "--json", "--bs", "256k", "--depth", "64", "--time", "6",
                                      d.url + "?timeout=2&" + self.keys], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            d.wait_for("LOGIN:")
            for _ in range(2):
                time.sleep(0.5)
                stop_process(bench.pid)
                time.sleep(4)
                bench.send_signal(signal.SIGCONT)
            out, err = bench.communicate(timeout=patience(20))
            self.assertEqual(bench.returncode, 0, err)
            self.assertEqual(json.loads(out)["reconnects"], 0)

    #
    #
    #
    #
    #
    # [RFC 7143: 11.9.1 #2]
    def test_target_requests_logout_and_restarts(self):
        """An orderly restart: no command is lost, no command is executed twice."""
        disk = sparse(self.path("disk"), 24 << 20)
        listen = "127.0.0.1:%d" % quiet_port()
        d = Daemon("--listen", listen, disk)
        with Bridge(d.url + "?reconnect=100&" + self.keys) as b, Raw(b.path) as r:
            r.open()
            self.assertEqual(r.ask(1, 0, 512, data=b"a" * 512), 0)
            d.stop()
            self.assertIn("logged out", d.messages())
            r.request(0, 0, 512)
            r.request(1, 512, 512, data=b"b" * 512, cookie=2)
            d = Daemon("--listen", listen, disk)
            replies = {}
            for _ in range(2):
                magic, err, cookie = struct.unpack(">IIQ", r.exactly(16))
                replies[cookie] = (err, r.exactly(512) if cookie == 1 else b"")
            self.assertEqual(replies, {1: (0, b"a" * 512), 2: (0, b"")})
        d.stop()


@BUILT
@need("tgtd", "tgtadm")
class OtherTarget(unittest.TestCase):
    def test_copy_through_cuts(self):
        with tempfile.TemporaryDirectory(dir=".") as tmp:
            disk = os.path.abspath(os.path.join(tmp, "disk"))
            image = os.path.join(tmp, "image")
            make_image(disk)
            make_image(image)
            with Tgt(disk) as t:
                host, port = t.portal.rsplit(":", 1)
                with Cutter((host, int(port)), [300000, 1000001]) as cut:
                    url = "iscsi://127.0.0.1:%d/%s/1?reconnect=9" % (
                        cut.port, t.IQN)
                    run([ISER, "copy", "--quiet", image, url])
                    self.assertEqual(cut.accepted, 3)
                self.assertIn(sha256(image), run([ISER, "hash", t.url]).text)


class ClosingConn(Conn):
    """MaxCmdSN of the first session does not advance beyond its 70th command
    (RFC 7143 section 4.2.2.1)."""
    sessions = 0

    def recv(self):
        op, head, data = super().recv()
        if self.keys.get("SessionType") != "Discovery" and \
                ClosingConn.sessions == 1:
            self.expcmdsn = min(self.expcmdsn, 7)
        return op, head, data


class ClosingTarget(FakeTarget):
    Conn = ClosingConn

    def login(self, c, head, data):
        if head[1] & 3 == 3:
            ClosingConn.sessions += 1
        super().login(c, head, data)


class ClosedWindow(Case):
    def test_commands_that_wait_for_the_window(self):
        """They were never sent, so that their timeout ended no connection, and they
        waited for a new one for ever."""
        ClosingConn.sessions = 0
        with ClosingTarget(blocks=1 << 19) as t:
            self.iser("bench", "--time", "1", "--bs", "4k", "--depth", "8",
                      t.url("timeout=1&reconnect=3"))
        self.assertEqual(ClosingConn.sessions, 2)


class Asking(FakeTarget):
    """A target that asks for a logout in the first session (RFC 7143 §11.9.1, event 1), and takes no later login if `ends`.
    time2wait: of the login; drops: it drops the connection instead."""
    ends, drops, time2wait = False, False, 2

    def __init__(self, **more):
        self.logins, self.reads, self.times = 0, 0, []
        super().__init__(blocks=1 << 14, **more)

    def login(self, c, head, data):
        if head[1] & 3 != 3:
            c.login_response(head)
            return
        self.logins += 1
        self.times.append(time.monotonic())
        if self.ends and self.logins > 1:
            c.login_response(head, status=0x0301)
            raise EOFError("not again")
        c.login_response(head, text_of("TargetPortalGroupTag=1", "DefaultTime2Wait=%d" % self.time2wait))

    def read(self, c, head):
        self.reads += 1
        if self.reads == 3 and self.drops:
            raise EOFError("lost")
        if self.reads == 3:
            c.send(R_ASYNC, 0x80, b"\xff" * 4, rest=struct.pack(">BBHHH", 1, 0, 0, 0, 5))
        super().read(c, head)


class Logout(Case):
    # [RFC 7143: 11.9.1 #2]
    def test_without_reconnect(self):
        """The commands in progress end, then follow the logout and one login; no command fails."""
        with Asking() as t:
            self.iser("hash", t.url("depth=4"))
            self.assertEqual((t.logins, t.seen.count("logout")), (2, 2))

    def test_no_login_afterwards(self):
        with Asking(ends=True) as t:
            done = self.iser("hash", t.url("depth=4"), status=5)
            self.assertIn("asked for a logout, and the next login failed", done.err)
            self.assertEqual(t.logins, 2)

    def test_time2wait_of_an_hour_rfc7143_13_15(self):
        """With timeout=1 nothing waits for an hour."""
        with Asking(drops=True, time2wait=3600) as t:
            self.iser("hash", t.url("timeout=1&reconnect=3"), limit=60)
            self.assertEqual(t.logins, 2)
            self.assertGreater(t.times[1] - t.times[0], 1)


@BUILT
class OnePath(Folder):
    def test_replacement_timeout(self):
        """The target is gone: commands fail after that time, and the attempts go on."""
        listen, disk = "127.0.0.1:%d" % quiet_port(), sparse(self.path("disk"), 1 << 20)
        d = Daemon("--listen", listen, disk)
        done = subprocess.Popen([ISER, "bench", "--time", "60", d.url + "?reconnect=1000&replacement_timeout=1"],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        d.wait_for("LOGIN:")
        d.kill()
        text = done.communicate(timeout=patience(20))[0]
        self.assertEqual(done.returncode, 4, text)
        self.assertIn("no session within replacement_timeout", text)
        d = Daemon("--listen", listen, disk)
        with Bridge(d.url + "?reconnect=1000&replacement_timeout=1") as b, Raw(b.path) as r:
            r.open()
            d.kill()
            self.assertNotEqual(r.ask(0, 0, 512, read=512), (0, bytes(512)))
            d = Daemon("--listen", listen, disk)
            until(lambda: r.ask(0, 0, 512, read=512) == (0, bytes(512)), "the session is back")
        d.stop()


class ReconnectRdma(Reconnect):
    keys, over = "transport=iser&start=rdma", "iser"


class ReconnectStream(Reconnect):
    keys, over = "transport=iser&start=stream", "iser"


if __name__ == "__main__":
    main()
