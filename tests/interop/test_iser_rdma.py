#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""iSER, by both ways in, beside iSCSI on the same port."""
import json
import os
import signal
import struct
import subprocess
import tempfile
import unittest

from harness import (ISER, ISERCTL, WAYS, Daemon, Wire, main, make_image, need,
                     over, patience, refused, run, sha256, until)
from rdma_wire import RdmaWire
from test_iser import BUILT, OwnCases, Tgt


@BUILT
class FromTheStart(OwnCases, unittest.TestCase):
    way = "rdma"


@BUILT
class BehindLogin(OwnCases, unittest.TestCase):
    way = "stream"


class Control:
    """An iserd with a control socket, and what it says there."""

    def __init__(self, *args):
        self.dir = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.dir.name, "ctl")
        self.daemon = Daemon("--control", self.path, *args)

    def sessions(self):
        done = run([ISERCTL, "--socket", self.path, "--json", "status"])
        return json.loads(done.text)["sessions"]

    def wait_for_sessions(self, count):
        until(lambda: len(self.sessions()) == count,
              lambda: "%d sessions: %r" % (count, self.sessions()))

    def wait_for_traffic(self, count):
        """Waits for this number of sessions, each of which has moved 1 MiB of data."""
        def moved(session):
            return session["traffic"]["bytes_in"] + session["traffic"]["bytes_out"]
        until(lambda: [moved(s) > 1 << 20 for s in self.sessions()] == [True] * count,
              lambda: "traffic: %r" % self.sessions())

    def stop(self, sig=signal.SIGTERM):
        """Ends iserd with a signal; returns the exit status."""
        status = self.daemon.stop(sig)
        self.dir.cleanup()
        return status

    def __enter__(self):
        self.daemon.__enter__()
        return self

    def __exit__(self, *what):
        try:
            self.daemon.__exit__(*what)
        finally:
            self.dir.cleanup()


def kind(url):
    """What a session came to be, and what iser printed on the way there."""
    done = subprocess.run([ISER, "info", "--json", url], timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL)
    text = done.stderr.decode()
    if done.returncode:
        return done.returncode, text
    return json.loads(done.stdout)["session"]["kind"], text


@BUILT
class Choice(unittest.TestCase):
    """transport=auto, and what --transport forbids."""

    ISCSI, RDMA, STREAM = (WAYS[w][1] for w in ("tcp", "rdma", "stream"))
    LOGIN = 5   # exit status: login refused
    LOST = 4    # transport

    def check(self, allowed, expect):
        with Daemon("--transport", allowed, "ram:8M") as d:
            for keys, (found, text) in expect.items():
                got, printed = kind(d.url + "?" + keys)
                self.assertEqual(got, found, (allowed, keys, printed))
                self.assertIn(text, printed)
            return d.messages()

    def test_all(self):
        self.check("tcp,iser,switch", {
            "transport=tcp": (self.ISCSI, ""),
            "transport=iser": (self.RDMA, ""),
            "transport=iser&start=stream": (self.STREAM, ""),
            "transport=auto": (self.RDMA, "auto found " + self.RDMA),
            "transport=auto&start=stream": (self.STREAM,
                                            "auto found " + self.STREAM)})

    def test_tcp_only(self):
        log = self.check("tcp", {
            "transport=tcp": (self.ISCSI, ""),
            "transport=iser": (self.LOST, "start=stream"),
            "transport=iser&start=stream": (self.LOGIN, "RDMAExtensions=No"),
            "transport=auto": (self.ISCSI, "auto found iscsi"),
            "transport=auto&start=stream": (self.ISCSI, "auto found iscsi")})
        self.assertIn("iSER from the start is not allowed here", log)

    def test_from_the_start_only(self):
        log = self.check("iser", {
            "transport=tcp": (self.LOST, "transport=iser"),
            "transport=iser": (self.RDMA, ""),
            "transport=iser&start=stream": (self.LOST, "start=rdma"),
            "transport=auto": (self.RDMA, "")})
        self.assertIn("iSCSI over TCP is not allowed here", log)

    def test_switch_only(self):
        log = self.check("switch", {
            "transport=tcp": (self.LOGIN, "transport=iser"),
            "transport=iser": (self.LOST, "start=stream"),
            "transport=iser&start=stream": (self.STREAM, ""),
            "transport=auto": (self.STREAM, "auto found " + self.STREAM)})
        self.assertIn("did not agree on RDMAExtensions=Yes", log)

    def test_policy_is_not_changed_by_a_second_request(self):
        """RFC 7143 §6.3: the first request says who wants what; a second one
        that turns the session to discovery is refused."""
        with Daemon("--transport", "switch", "ram:8M") as d:
            w = Wire(d)
            names = b"InitiatorName=iqn.2026-01.org.example:wire\0" \
                b"TargetName=" + d.target.encode() + b"\0"

            def request(flags, text):
                head = struct.pack(">BBBBI", 0x43, flags, 0, 0, len(text))
                head += w.ISID + b"\0\0"
                head += struct.pack(">IHHII", 0, 0, 0, w.cmdsn, 0)
                w.put(head.ljust(48, b"\0"), text)
                op, head, _ = w.recv()
                self.assertEqual(op, 0x23)
                return head[36:38]
            self.assertEqual(request(0x04, names), b"\0\0")
            self.assertEqual(request(0x87, b"SessionType=Discovery\0"),
                             b"\2\0")
            d.wait_for("SessionType=Discovery: allowed in the first request")
            w.expect_close()
            w.close()

    def test_tcp_and_from_the_start(self):
        self.check("tcp,iser", {
            "transport=tcp": (self.ISCSI, ""),
            "transport=iser": (self.RDMA, ""),
            "transport=iser&start=stream": (self.LOGIN, "RDMAExtensions=No"),
            "transport=auto&start=stream": (self.ISCSI, "auto found iscsi")})

    def test_no_such_transport(self):
        self.assertIn("carrier", refused("--transport", "carrier", "ram:8M", status=2))
        with Daemon("ram:8M") as d:
            for key in ("transport=carrier", "start=late", "compat=maybe"):
                code, printed = kind(d.url + "?" + key)
                self.assertEqual(code, 7, printed)
                self.assertIn(key.split("=")[1], printed)

    def test_compat_of_either_end(self):
        """RFC 7145 §6.9: the initiator declares its reading, so that data
        arrive whole whatever the other end's default is."""
        with tempfile.TemporaryDirectory(dir=".") as tmp:
            image, back = os.path.join(tmp, "image"), os.path.join(tmp, "back")
            with open(image, "wb") as f:
                f.write(os.urandom(4 << 20))
            for served in "linux", "strict":
                with Daemon("--compat", served, "ram:4M") as d:
                    for way in "rdma", "stream":
                        for own in "linux", "strict":
                            url = over(d.url, way) + "&compat=" + own
                            run([ISER, "copy", "--quiet", image, url])
                            run([ISER, "copy", "--quiet", url, back])
                            self.assertEqual(sha256(image), sha256(back),
                                             (served, way, own))

    def test_compat(self):
        """Both readings of RFC 7145 work by both ways, where both ends keep
        the same one."""
        with Daemon("--compat", "strict", "ram:8M") as d:
            self.assertEqual(kind(over(d.url, "rdma") + "&compat=strict")[0],
                             self.RDMA)
        with Daemon("ram:8M") as d:
            info = json.loads(run([ISER, "info", "--json",
                                   over(d.url, "stream")]).text)
            self.assertEqual(info["session"]["rules"], "")

    def test_discovery(self):
        """Every way finds the targets, plain iSCSI's too; what it names is
        reached the same way (RFC 7145 §5.1: discovery is not iSER's)."""
        with Daemon("ram:8M") as d:
            portal = "iscsi://%s" % d.portal
            for keys in ("transport=tcp", "transport=iser", "transport=iser&start=stream",
                         "transport=iser&compat=strict"):
                self.assertIn(d.target, run([ISER, "ls", portal + "?" + keys]).text)
            self.assertIn(d.target, run([ISER, "ls", "iser://" +
                                         d.portal]).text)


@BUILT
@need("tgtd", "tgtadm")
class OtherTarget(unittest.TestCase):
    """tgt: it does not answer an MPA Request, and says RDMAExtensions=Yes on
    a TCP connection where it has no RDMA."""

    def test_has_no_iser(self):
        with tempfile.TemporaryDirectory(dir=".") as tmp:
            disk = os.path.abspath(os.path.join(tmp, "disk"))
            make_image(disk)
            with Tgt(disk) as t:
                for keys in ("transport=auto", "transport=auto&start=stream"):
                    found, printed = kind(t.url + "?" + keys)
                    self.assertEqual(found, "iscsi", printed)
                    self.assertIn("auto found iscsi", printed)
                url = t.url + "?transport=auto&start=stream"  # without the wait for MPA
                self.assertIn(sha256(disk), run([ISER, "hash", url]).text)
                for way in ("rdma", "stream"):
                    code, printed = kind(over(t.url, way))
                    self.assertIn(code, (4, 5, 8), printed)
                    self.assertRegex(printed, "start=|RDMAExtensions")


@BUILT
class Together(unittest.TestCase):
    """All ways in at once."""

    @need("fio")
    def test_mixed_sessions_on_one_unit(self):
        from test_nbd import Bridge
        with tempfile.TemporaryDirectory(dir=".") as tmp:
            disk = os.path.abspath(os.path.join(tmp, "disk"))
            with open(disk, "wb") as f:
                f.truncate(48 << 20)
            with Daemon("--workers", "2", disk) as d:
                bridges = [Bridge(over(d.url, way)) for way in WAYS]
                jobs = [subprocess.Popen(
                    ["fio", "--name=mixed", "--ioengine=nbd",
                     "--uri=" + b.uri, "--rw=randwrite", "--bsrange=4k-256k",
                     "--iodepth=16", "--size=16M", "--offset=%dM" % (16 * i),
                     "--verify=crc32c", "--verify_fatal=1",
                     "--randseed=%d" % i], stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT) for i, b in enumerate(bridges)]
                for j in jobs:
                    text = j.communicate(timeout=patience(120))[0].decode()
                    self.assertEqual(j.returncode, 0, text[-3000:])
                for b in bridges:
                    self.assertEqual(b.stop(), 0, b.messages())
                    b.__exit__(KeyError, None, None)
                sums = {run([ISER, "hash", over(d.url, way)]).text.split()[0]
                        for way in WAYS}
                self.assertEqual(len(sums), 1)
            self.assertIn(sha256(disk), sums.pop())

    def test_status_shows_the_kind(self):
        with Control("ram:64M") as c:
            jobs = [subprocess.Popen(
                [ISER, "bench", "--time", "20", over(c.daemon.url, way)],
                stdout=subprocess.DEVNULL) for way in WAYS]
            c.wait_for_traffic(3)
            found = {s["kind"]: s for s in c.sessions()}
            for j in jobs:
                j.kill()
                j.wait()
            self.assertEqual(set(found), {k for _, k in WAYS.values()})
            self.assertEqual(sorted(s["transport"] for s in found.values()),
                             ["iser", "iser", "tcp"])
            rdma = found[WAYS["rdma"][1]]
            self.assertIn("CM_HEADER", rdma["rules"])
            self.assertEqual(rdma["keys"]["RDMAExtensions"], "Yes")
            self.assertEqual(found[WAYS["stream"][1]]["rules"], [])
            self.assertNotIn("rules", found["iscsi"])
            for s in found.values():
                self.assertGreater(s["traffic"]["bytes_out"], 4096)
                self.assertGreater(s["traffic"]["calls_out"], 0)
            c.wait_for_sessions(0)

    def test_many_connections(self):
        """64 sessions of one process, by all ways."""
        with Control("--workers", "2", "ram:64M") as c:
            jobs = [subprocess.Popen(
                [ISER, "bench", "--json", "--ramp", "0", "--time", "600",
                 "--connections", "21", "--depth", "4", over(c.daemon.url, way)],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                for way in WAYS]
            c.wait_for_traffic(63)
            for j in jobs:
                j.send_signal(signal.SIGINT)  # prints what was measured so far
            for j in jobs:
                text = j.communicate(timeout=patience(60))[0].decode()
                self.assertEqual(j.returncode, 0, text)
                self.assertGreater(json.loads(text)["read"]["operations"], 63)
            c.wait_for_sessions(0)

    def test_no_leak_over_many_sessions(self):
        with Daemon("ram:8M") as d:
            idle = d.descriptors()

            def some(n):
                for _ in range(n):
                    for start in ("rdma", "stream"):
                        w = RdmaWire(d, start)
                        w.login()
                        w.close()
                until(lambda: d.descriptors() <= idle, "the end of the sessions")
            some(20)
            before = d.rss_kib()
            some(100)
            if not d.sanitized():
                self.assertLess(d.rss_kib() - before, 6144)


@BUILT
class Lost(unittest.TestCase):
    """One end goes in the middle of everything."""

    def bench(self, url, *args):
        return subprocess.Popen(
            [ISER, "bench", "--time", "60", "--yes-overwrite"] + list(args) +
            [url], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def test_target_is_killed(self):
        for way in ("rdma", "stream"):
            for how in ("randread", "randwrite"):
                c = Control("ram:64M")
                job = self.bench(over(c.daemon.url, way), "--rw", how, "--bs", "64k")
                c.wait_for_traffic(1)
                c.stop(signal.SIGKILL)
                text = job.communicate(timeout=patience(10))[0].decode()
                self.assertEqual(job.returncode, 4, text)
                self.assertIn("connection lost", text)

    def test_target_ends_in_order(self):
        for way in ("rdma", "stream"):
            c = Control("ram:64M")
            job = self.bench(over(c.daemon.url, way))
            c.wait_for_traffic(1)
            self.assertEqual(c.stop(), 0)
            text = job.communicate(timeout=patience(10))[0].decode()
            self.assertEqual(job.returncode, 4, text)

    def test_initiator_is_killed(self):
        with Control("--workers", "2", "ram:64M") as c:
            for way in ("rdma", "stream"):
                for how in ("randread", "randwrite"):
                    job = self.bench(over(c.daemon.url, way), "--rw", how,
                                     "--bs", "256k", "--connections", "4")
                    c.wait_for_traffic(4)
                    job.kill()
                    job.communicate()
                    c.wait_for_sessions(0)
            run([ISER, "ping", c.daemon.url])

    def test_reconnect(self):
        """A line that is cut in the middle of data: reconnect= works over
        iSER as it does over TCP."""
        from test_reconnect import Cutter
        with tempfile.TemporaryDirectory(dir=".") as tmp:
            image, back = os.path.join(tmp, "image"), os.path.join(tmp, "b")
            make_image(image)
            with Daemon("ram:24M") as d:
                for way in ("rdma", "stream"):
                    with Cutter(d.address, [300000, 1500000]) as cut:
                        run([ISER, "copy", "--quiet", image,
                             over(cut.url(d, "reconnect=3"), way)])
                        self.assertEqual(cut.accepted, 3)
                    with Cutter(d.address, [300000, 1500000]) as cut:
                        run([ISER, "copy", "--quiet",
                             over(cut.url(d, "reconnect=3"), way), back])
                        self.assertEqual(cut.accepted, 3)
                    self.assertEqual(sha256(image), sha256(back))


if __name__ == "__main__":
    main()
