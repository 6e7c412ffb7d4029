#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""libiser continues a session at ErrorRecoveryLevel 2 whose last connection was lost
(RFC 7143 sections 6.3.4 and 6.3.6)."""
import json
import os
import re
import signal
import socket
import struct
import subprocess
import time

from fake_target import R_ASYNC, R_TMF
from harness import ISER, Daemon, Folder, main, patience, quiet_port, run, sparse, until
from lying_target import BLOCK, READS, pattern
from mcs_target import McsTarget, SessionConn
from test_connections import SIZE, Copies
from test_iser import BUILT
from test_lost_connections import Cuts
from test_mcs import TOO_MANY

LEVEL = ("--error-recovery-level", "2", "--max-connections", "4", "--workers", "2")


class CutsAll(Cuts):
    """Breaks all connections at once after so many bytes. While closed is true, it accepts no
    connection to the target: each one breaks at once."""
    closed = False

    def due(self, ends, n):
        with self.lock:
            self.passed += n
            full = self.passed >= self.after and self.cuts < self.most
            if not full and not self.closed:
                return False
            self.passed = 0
            self.cuts += full
            doomed, self.live = self.live, []
        for pair in doomed:
            for s in pair if pair is not ends else ():
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
        return True


def sessions(daemon):
    """The numbers (TSIH) of the sessions that logged in, in order, each one once."""
    found = re.findall(r"session (\d+) to \S+ over", daemon.messages())
    return sorted(set(found), key=int)


class Path(Folder):
    """What the cases of this file share."""
    keys = ""

    def url(self, path, *keys):
        return path.url + "?" + "&".join(
            ("error_recovery_level=2", "timeout=30") + tuple(k for k in keys + (self.keys,) if k))

    def bench(self, path, *keys, seconds=3):
        return subprocess.Popen([ISER, "bench", "--json", "--time", str(seconds), "--depth", "8", self.url(path, *keys)],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def ended(self, proc, status=0):
        out, err = proc.communicate(timeout=patience(30))
        self.assertEqual(proc.returncode, status, err)
        return out, err


@BUILT
class Continuation(Path):
    SIZE = 8 << 20

    def both_ways(self, connections, cuts, after, *keys):
        """Copies an image to iserd and back while all connections break again and again.
        Returns the numbers of the connections that the path has served."""
        source, back, served = self.path("in.img"), self.path("out.img"), []
        with open(source, "wb") as f:
            f.write(os.urandom(self.SIZE))
        with Daemon(*LEVEL, "ram:8M") as d:
            for words in (("%s", "URL"), ("URL", "%s")):
                with CutsAll(d, after=after, most=cuts) as path:
                    url = self.url(path, "connections=%d" % connections, "reconnect=%d" % (cuts + 2), *keys)
                    name = source if words[1] == "URL" else back
                    run([ISER, "copy", "-q"] + [w.replace("URL", url).replace("%s", name) for w in words])
                    self.assertEqual(path.cuts, cuts)
                    served.append(path.served)
            self.assertEqual(len(sessions(d)), 2, d.messages())  # one for each copy
            self.assertIn("goes on over connection", d.messages())
        with open(source, "rb") as a, open(back, "rb") as b:
            self.assertEqual(a.read(), b.read())
        return served

    # [RFC 7143: 6.3.4 #1-3]
    def test_session_is_continued(self):
        self.assertEqual(self.both_ways(1, 4, 1 << 20), [5, 5])

    def test_session_of_four_connections_is_continued(self):
        """The other connections are added again; they may be lost before all of them are there."""
        for served in self.both_ways(4, 3, 1 << 20):
            self.assertGreater(served, 4 + 3)

    def test_session_with_digests_is_continued(self):
        self.both_ways(2, 3, 3 << 19, "header_digest=crc32c", "data_digest=crc32c")

    def test_session_cannot_be_continued(self):
        """The target has ended the session: a new one takes its commands over."""
        listen, disk = "127.0.0.1:%d" % quiet_port(), sparse(self.path("disk"), 8 << 20)
        d = Daemon(*LEVEL, "--listen", listen, disk)
        with CutsAll(d, after=1 << 40) as path:
            proc = self.bench(path, "reconnect=100")
            until(lambda: path.passed > 1 << 20, "data")
            d.kill()
            d = Daemon(*LEVEL, "--listen", listen, disk)
            self.assertGreaterEqual(json.loads(self.ended(proc)[0])["reconnects"], 1)
            self.assertEqual(len(sessions(d)), 1)
        d.stop()

    def test_disconnect_while_it_waits(self):
        with Daemon(*LEVEL, "ram:8M") as d, CutsAll(d, after=1 << 40) as path:
            proc = self.bench(path, "reconnect=100", seconds=60)
            until(lambda: path.passed > 1 << 20, "data")
            path.closed = True
            until(lambda: "is lost" in d.messages(), "the loss")
            time.sleep(0.5)
            proc.send_signal(signal.SIGINT)
            began = time.monotonic()
            proc.communicate(timeout=patience(10))
            self.assertLess(time.monotonic() - began, patience(5))

    def test_attempts_are_counted(self):
        with Daemon(*LEVEL, "ram:8M") as d, CutsAll(d, after=1 << 40) as path:
            proc = self.bench(path, "reconnect=3", seconds=60)
            until(lambda: path.passed > 1 << 20, "data")
            path.closed = True
            self.assertIn("connection lost", self.ended(proc, 4)[1])
            self.assertEqual(path.served, 1 + 3)


@BUILT
class Deadline(Path):
    def test_time2retain_is_over(self):
        """A session that the target has given up is not continued for ever."""
        with Daemon(*LEVEL, "ram:8M") as d, CutsAll(d, after=1 << 40) as path:
            proc = self.bench(path, "reconnect=100", seconds=2)
            until(lambda: path.passed > 1 << 20, "data")
            path.closed = True
            until(lambda: "was not recovered" in d.messages() or
                  re.search(r"session \d+ .*ended", d.messages().split("is lost", 1)[-1]), "the end at the target", 40)
            path.closed = False
            self.ended(proc)
            self.assertEqual(len(sessions(d)), 2, d.messages())


class Continuing(McsTarget):
    """A target of bytes that drops the only connection under a READ, but leaves its socket to the initiator, and has
    the session continued by a login with the CID of that connection."""
    level = 2

    class Conn(SessionConn):
        def __init__(self, sock):
            super().__init__(sock)
            self.notes.append("connected")

    def __init__(self, refusals, retain=20):
        self.notes, self.refusals, self.reads, self.retain = [], refusals, 0, retain
        self.Conn = type("Conn", (Continuing.Conn,), {"notes": self.notes})
        super().__init__(self.drops, blocks=SIZE // BLOCK)

    def drops(self, command):
        self.reads += command.op in READS
        if command.op not in READS or self.reads != 3:
            return False
        self.notes.append("dropped")
        command.conn.send(R_ASYNC, 0x80, b"\xff" * 4, rest=struct.pack(">BBHHH", 2, 0, 0, 1 if self.retain else 0, self.retain))
        try:
            while True:
                command.conn.recv()
        except OSError:
            self.notes.append("reset")  # with the next connection
            raise
        except EOFError:
            self.notes.append("closed")
            raise

    def join(self, c, head, tsih):
        session = self.sessions[tsih - 5]
        if self.refusals:
            self.refusals -= 1
            self.notes.append("refused")
            c.login_response(head, tsih=tsih, flags=0, status=TOO_MANY)
            raise EOFError("refused")
        for x in session.conns:
            x.logged_out = True
        session.ended = False
        super().join(c, head, tsih)


class WithoutProgress(Continuing):
    """The continued session carries out nothing: it is silent, or its connection is lost again at the next command."""

    def __init__(self, drops_again):
        self.drops_again, self.futile = drops_again, 0
        super().__init__(0)

    def drops(self, command):
        session = command.conn.session
        if session is not self.sessions[0] or command.conn is session.conns[0]:
            return super().drops(command)
        self.futile += 1
        if self.drops_again:
            raise EOFError("lost again")
        return True

    def tmf(self, c, head):
        """No such task."""
        c.send(R_TMF, 0x80, head[16:20], bytes2=b"\1\0", ttt=bytes(4))


class ContinuationOfBytes(Copies):
    def copied(self, refusals, **more):
        """Copies the unit; returns the target."""
        with Continuing(refusals, **more) as t:
            self.assertEqual(self.copy_out(t, "error_recovery_level=2&reconnect=5")[1], pattern(0, SIZE))
            return t

    def test_the_old_connection_is_closed_at_once(self):
        """Before Time2Wait is over, not with the login that continues the session: LIO would refuse that one."""
        t = self.copied(0)
        self.assertEqual(t.notes, ["connected", "dropped", "closed", "connected"])
        self.assertIn("reassign", t.seen)
        self.assertEqual(len(t.sessions), 1)

    def test_a_target_that_counts_the_old_connection(self):
        """0206h once: the next login continues the session. Twice: a new session."""
        t = self.copied(1)
        self.assertEqual(t.notes[3:], ["connected", "refused", "connected"])
        self.assertEqual(len(t.sessions), 1)
        t = self.copied(2)
        self.assertEqual(t.notes[3:], ["connected", "refused"] * 2 + ["connected"])
        self.assertEqual(len(t.sessions), 2)

    def test_nothing_is_retained(self):
        """Time2Wait and Time2Retain of 0 in the message: a new session at once. Builds with sanity checks failed."""
        t = self.copied(0, retain=0)
        self.assertNotIn("reassign", t.seen)
        self.assertEqual(len(t.sessions), 2)


    def test_without_progress(self):
        """A session that was continued and answers no command gives way to a new one."""
        for again in False, True:
            with self.subTest(drops_again=again), WithoutProgress(again) as t:
                self.assertEqual(self.copy_out(t, "error_recovery_level=2&reconnect=5&noop_out_interval=1&noop_out_timeout=1")[1],
                                 pattern(0, SIZE))
                self.assertEqual(len(t.sessions), 2)
                self.assertGreater(t.futile, 0)


class ContinuationRdma(Continuation):
    keys = "transport=iser&start=rdma"


class ContinuationStream(Continuation):
    keys = "transport=iser&start=stream"


if __name__ == "__main__":
    main()
