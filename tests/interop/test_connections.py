#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Sessions of several connections (RFC 7143 §4.2.2): the initiator against a target
of bytes that grants, refuses, lies and fails."""
import asyncio
import json
import os
import random
import socket
import struct
import threading
import time
import unittest

from fake_target import LOGOUT, R_ASYNC, R_SCSI, R_TEXT, SCSI, TEXT, keys_of, text_of
from harness import ISER, WAYS, Daemon, Folder, main, over, patience, run
from lying_target import BLOCK, R2T, READS, WRITES, pattern
from mcs_target import LEADING_ONLY, McsTarget, SessionConn
from test_python import openiser

SIZE = 4 << 20


class Copies(Folder):
    def copy_out(self, target, more, ok=True):
        """Copies the unit to a file; returns the run and the file's bytes."""
        path = self.path("out.img")
        done = run([ISER, "copy", "-q", target.url("timeout=20&" + more), path],
                   check=ok)
        for word in ("runtime error", "AddressSanitizer", "LeakSanitizer"):
            self.assertNotIn(word, done.text)
        if not ok:
            self.assertGreater(done.returncode, 0, done.text)
            return done, None
        with open(path, "rb") as f:
            return done, f.read()

    def target(self, lie=lambda c: False, **more):
        return McsTarget(lie, blocks=SIZE // BLOCK, **more)


class Connections(Copies):
    def test_commands_are_spread_in_the_order_of_cmdsn_rfc7143_4_2_2_1(self):
        with self.target() as t:
            _, data = self.copy_out(t, "connections=4")
            self.assertEqual(data, pattern(0, SIZE))
            session = t.sessions[0]
            self.assertEqual([c.cid for c in session.conns], [0, 1, 2, 3])
            self.assertEqual([sn for sn, _ in session.order],
                             list(range(1, len(session.order) + 1)))
            for cid in range(4):
                self.assertGreater(sum(c == cid for _, c in session.order), 1,
                                   session.order)
            self.assertEqual(t.seen, ["logout"])

    def test_a_further_login_has_no_leading_key_rfc7143_6_3_3(self):
        with self.target() as t:
            self.copy_out(t, "connections=2&data_digest=none")
            leading, joined = t.sessions[0].conns
            self.assertEqual((leading.keys["MaxConnections"], leading.tsih), ("2", 0))
            self.assertEqual(joined.tsih, t.sessions[0].tsih)
            self.assertEqual(joined.isid, leading.isid)
            self.assertEqual(joined.keys["TargetName"], leading.keys["TargetName"])
            self.assertIn("MaxRecvDataSegmentLength", joined.keys)
            self.assertEqual([k for k in LEADING_ONLY if k in joined.keys], [])

    def test_fewer_connections_if_the_target_grants_fewer(self):
        with self.target(grants=2) as t:
            text = run([ISER, "info", "--json", t.url("connections=8")]).text
            self.assertEqual(len(t.sessions[0].conns), 2)
            p = json.loads(text)["session"]
            self.assertEqual((p["MaxConnections"], p["connections"]), (2, 2))

    def test_a_refused_connection_leaves_the_session_as_it_is(self):
        for status in (0x0206, 0x0302):
            with self.target(refuse=status) as t:
                _, data = self.copy_out(t, "connections=3")
                self.assertEqual(data, pattern(0, SIZE))
                self.assertEqual(len(t.sessions[0].conns), 1)
                self.assertEqual(len(t.conns), 2)

    def test_data_written_over_three_connections(self):
        path = self.path("in.img")
        with open(path, "wb") as f:
            f.write(pattern(8, SIZE))
        with self.target() as t:
            run([ISER, "copy", "-q", path, t.url("connections=3")])
            written = b"".join(t.written[k] for k in sorted(t.written))
            self.assertEqual(written, pattern(8, SIZE))
            writers = {c for _, c in t.sessions[0].order}
            self.assertEqual(writers, {0, 1, 2})

    # ---- lies ----

    def fails(self, lie, text, **more):
        """The first lie ends the session."""
        with self.target(lie, **more) as t:
            done, _ = self.copy_out(t, "connections=2", ok=False)
            self.assertIn(text, done.text)
            self.assertEqual(len(t.sessions), 1)

    @staticmethod
    def once(ops, answer, skip=3):
        seen = []

        def lie(c):
            if c.op in ops and c.lba:
                seen.append(c)
                if len(seen) == skip:
                    answer(c)
                    return True
            return False
        return lie

    def test_status_on_the_other_connection_rfc7143_4_2_2_2(self):
        def elsewhere(c):
            c.conn = c.target.other(c.conn)
            c.response()
        self.fails(self.once(READS, elsewhere), "protocol")

    def test_data_on_the_other_connection_rfc7143_4_2_2_2(self):
        def elsewhere(c):
            data = pattern(c.lba * BLOCK, c.edtl)[:8192]
            c.conn = c.target.other(c.conn)
            c.data_in(data, 0, final=False)
        self.fails(self.once(READS, elsewhere), "protocol")

    def test_statsn_of_the_other_connection_rfc7143_4_2_2_2(self):
        def elsewhere(c):
            c.conn.send(R_SCSI, 0x82, c.itt, ttt=bytes(4),
                        statsn=c.target.other(c.conn).statsn + 1000,
                        rest=struct.pack(">III", 0, 0, c.edtl))
        self.fails(self.once(READS, elsewhere), "sequence")

    def test_another_tsih_in_the_further_login_rfc7143_11_13_3(self):
        self.fails(lambda c: False, "TSIH 4660", join_tsih=0x1234)

    def test_r2t_on_the_other_connection_rfc7143_4_2_2_2(self):
        def elsewhere(c):
            c.conn = c.target.other(c.conn)
            c.r2t(0, c.edtl)
        path = self.path("in.img")
        with open(path, "wb") as f:
            f.write(pattern(0, SIZE))
        with self.target(self.once(WRITES, elsewhere)) as t:
            done = run([ISER, "copy", "-q", path,
                        t.url("connections=2&timeout=20")], check=False)
            self.assertGreater(done.returncode, 0, done.text)
            self.assertIn("protocol", done.text)

    # ---- losses ----

    def test_the_session_ends_with_its_first_lost_connection_rfc7143_7_1_4_4(self):
        def cut(c):
            c.conn.sock.shutdown(2)
        with self.target(self.once(READS, cut)) as t:
            self.copy_out(t, "connections=3", ok=False)
            self.assertEqual(len(t.sessions), 1)

    # [RFC 7143: 7.15 #1]
    def test_reconnect_makes_a_new_session_of_as_many_connections(self):
        def cut(c):
            c.conn.sock.shutdown(2)
        with self.target(self.once(READS, cut)) as t:
            _, data = self.copy_out(t, "connections=3&reconnect=3")
            self.assertEqual(data, pattern(0, SIZE))
            self.assertEqual([len(s.conns) for s in t.sessions], [3, 3])
            self.assertEqual(t.sessions[0].isid, t.sessions[1].isid)

    # ---- ErrorRecoveryLevel 2 ----

    def recovers(self, ops, copy, **more):
        """One of three connections breaks under a command; the session goes on."""
        def cut(c):
            c.conn.sock.shutdown(2)
            raise EOFError("cut")
        with self.target(self.once(ops, cut), level=2, **more) as t:
            copy(t, "connections=3&error_recovery_level=2")
            self.assertEqual(len(t.sessions), 1)
            self.assertEqual(len([x for x in t.seen if "for recovery" in x]), 1, t.seen)
            self.assertIn("reassign", t.seen)
            self.assertEqual(t.seen[-1], "logout")

    def copy_in(self, t, more):
        path = self.path("in.img")
        with open(path, "wb") as f:
            f.write(pattern(8, SIZE))
        run([ISER, "copy", "-q", path, t.url("timeout=20&" + more)])
        self.assertEqual(b"".join(t.written[k] for k in sorted(t.written)),
                         pattern(8, SIZE))

    def copy_out_whole(self, t, more):
        self.assertEqual(self.copy_out(t, more)[1], pattern(0, SIZE))

    def test_reads_go_on_over_other_connections_rfc7143_7_1_4_3(self):
        self.recovers(READS, self.copy_out_whole)

    def test_writes_go_on_over_other_connections_rfc7143_7_1_4_3(self):
        self.recovers(WRITES, self.copy_in)

    def test_the_answer_255_to_task_reassign_may_mean_done(self):
        self.recovers(READS, self.copy_out_whole, reassign_answer=255)


SCSI_EVENT, ASK_LOGOUT, DROP_CONNECTION, DROP_ALL, NEGOTIATE = range(5)


class EventConn(SessionConn):
    def send(self, *args, **more):
        with self.sending:
            super().send(*args, **more)


class EventTarget(McsTarget):
    """Sends an asynchronous message (RFC 7143 §11.9) before the answer to one of the commands, and does what it says."""
    event, vcode, parameters, after, about = None, 0, (0, 0, 0), 4, 0
    texts = ()      # the answers of a negotiation: (flags, keys)
    Conn = EventConn

    def __init__(self, **more):
        self.logins, self.sent, self.asked, self.dropped = [], None, [], []
        super().__init__(**more)

    def login(self, c, head, data):
        if not int.from_bytes(head[14:16], "big") and head[1] & 3 == 3:
            self.logins.append(time.monotonic())
        super().login(c, head, data)

    def tell(self, c):
        self.dropped = [x for x in c.session.conns if self.event == DROP_ALL or
                        self.event == DROP_CONNECTION and x.cid == self.parameters[0]]
        c.send(R_ASYNC, 0x80, b"\xff" * 4, rest=struct.pack(">BBHHH", self.event, self.vcode, *self.parameters))
        if self.dropped:
            time.sleep(0.1)  # a reset would overtake the message
        for x in self.dropped:
            x.sock.close()

    def is_due(self, c):
        """Commands may go over the other connections only, so any of them makes the message due."""
        with c.session.turn:
            due = self.event is not None and self.sent is None and len(c.session.order) >= self.after
            if due:
                self.sent = time.monotonic()
        return due

    def scsi(self, c, head, data):
        if self.is_due(c):
            self.tell(next(x for x in c.session.conns if x.cid == self.about))
        if c not in self.dropped:
            super().scsi(c, head, data)

    def execute(self, c, head, data):
        try:
            self.scsi(c, head, data)
        except (OSError, EOFError):
            pass

    def dispatch(self, c, op, head, data):
        if op == SCSI:  # may wait for a command that was lost: the connection is read meanwhile
            threading.Thread(target=self.execute, args=(c, head, data), daemon=True).start()
            return True
        if op == LOGOUT:
            self.asked.append((head[1] & 0x7f, int.from_bytes(head[20:22], "big"), c.cid))
            if head[1] & 0x7f == 1:  # of one connection
                c.send(0x26, 0x80, head[16:20], ttt=bytes(4))
                with c.session.turn:
                    c.session.conns.remove(c)
                c.session = None
                return False
        if op == TEXT:
            self.asked.append((head[1], head[20:24], keys_of(data)))
            flags, keys = self.texts[min(sum(len(a) == 3 and isinstance(a[1], bytes) for a in self.asked),
                                         len(self.texts)) - 1]
            c.send(R_TEXT, flags, head[16:20], text_of(*keys), ttt=b"\xff" * 4 if flags & 0x80 else b"\0\0\0\x63")
            return True
        return super().dispatch(c, op, head, data)


class Events(Copies):
    """Asynchronous messages to libiser (RFC 7143 §11.9.1)."""

    def events(self, event, **more):
        return EventTarget(event=event, blocks=SIZE // BLOCK, **more)

    def whole(self, t, more):
        _, data = self.copy_out(t, more)
        self.assertEqual(data, pattern(0, SIZE))

    def test_events_that_end_nothing(self):
        for event, vcode in ((SCSI_EVENT, 0), (255, 7), (77, 0), (5, 0)):
            with self.events(event, vcode=vcode) as t:
                self.whole(t, "connections=2")
                self.assertTrue(t.sent)
                self.assertEqual(t.seen, ["logout"])

    def test_drop_of_the_connection(self):
        """Event 2: without reconnect= the commands fail; with the key the next login comes after Time2Wait."""
        with self.events(DROP_CONNECTION, parameters=(0, 1, 5)) as t:
            self.copy_out(t, "", ok=False)
            self.assertEqual(len(t.logins), 1)
        with self.events(DROP_CONNECTION, parameters=(0, 1, 5)) as t:
            self.whole(t, "reconnect=5")
            self.assertEqual(len(t.logins), 2)
            self.assertGreaterEqual(t.logins[1] - t.sent, 1)

    def test_drop_of_another_connection(self):
        """The message comes on CID 0 and names CID 1: at ErrorRecoveryLevel 0 the session ends (§7.1.4.4), at 2 its commands
        go on over the other connections."""
        with self.events(DROP_CONNECTION, parameters=(1, 0, 5)) as t:
            self.whole(t, "connections=3&reconnect=5")
            self.assertEqual([len(s.conns) for s in t.sessions], [3, 3])
        with self.events(DROP_CONNECTION, parameters=(1, 0, 5)) as t:
            self.copy_out(t, "connections=3", ok=False)
        with self.events(DROP_CONNECTION, parameters=(1, 0, 5), level=2) as t:
            self.whole(t, "connections=3&error_recovery_level=2")
            self.assertEqual(len(t.sessions), 1)
            self.assertIn("logout for recovery of 1", t.seen)

    def test_drop_of_all_connections(self):
        """Event 3, at each level."""
        for level in (0, 2):
            more = "connections=3&error_recovery_level=%d" % level
            with self.events(DROP_ALL, parameters=(0, 1, 0), level=level) as t:
                self.copy_out(t, more, ok=False)
            with self.events(DROP_ALL, parameters=(0, 1, 0), level=level) as t:
                self.whole(t, more + "&reconnect=5")
                self.assertEqual([len(s.conns) for s in t.sessions], [3, 3])
                self.assertGreaterEqual(t.logins[1] - t.sent, 1)

    def test_request_for_a_logout(self):
        """Event 1: one connection of several is logged out after its commands; of the last one the session is, and
        reconnect= logs in again."""
        with self.events(ASK_LOGOUT, parameters=(0, 0, 10), about=1) as t:
            self.whole(t, "connections=3")
            self.assertEqual(t.asked, [(1, 1, 1), (0, 0, t.asked[-1][2])])
            self.assertEqual(len(t.sessions), 1)
            self.assertEqual(t.seen, ["logout"])
        with self.events(ASK_LOGOUT, parameters=(0, 0, 10)) as t:
            self.whole(t, "reconnect=5&depth=1")
            self.assertEqual(len(t.sessions), 2)
            self.assertEqual(t.asked[0][0], 0)

    def test_request_for_a_negotiation(self):
        """Event 4: an empty Text Request; the keys of the target hold from then on."""
        more = ((0, ("MaxRecvDataSegmentLength=4096", "X-org.example=1")), (0x80, ()))
        with self.events(NEGOTIATE, parameters=(0, 0, 5), texts=more) as t:
            self.whole(t, "depth=1")
            self.assertEqual([(a[0], a[1], a[2]) for a in t.asked if isinstance(a[1], bytes)],
                             [(0x80, b"\xff" * 4, {}), (0x80, b"\0\0\0\x63", {"X-org.example": "NotUnderstood"})])

    def test_negotiation_in_parts(self):
        """The C bit: each part is answered by an empty Text Request (§6.2), and the keys hold together."""
        more = ((0x40, ("MaxRecvDataSegmentLength=4096",)), (0, ("X-org.example=1",)), (0x80, ()))
        with self.events(NEGOTIATE, parameters=(0, 0, 5), texts=more) as t:
            self.whole(t, "depth=1")
            self.assertEqual([a[2] for a in t.asked if isinstance(a[1], bytes)],
                             [{}, {}, {"X-org.example": "NotUnderstood"}])

    def test_bad_negotiations_end_nothing(self):
        for more in (((0x80, ("MaxConnections=4",)),), ((0, ("nothing",)),), ((0, ()),), ((0x40, ()),),
                     ((0x40, ("X-a.b=" + "1" * 200,)),), ((0x40, ("X-%d.b=" % 7 + "1" * 6000,)),)):
            with self.events(NEGOTIATE, texts=more) as t:
                self.whole(t, "depth=1")
                self.assertEqual(t.seen, ["logout"])
                self.assertLess(len(t.asked), 40)


@unittest.skipUnless(openiser, "libiser cannot be loaded by this Python")
class Change(unittest.TestCase):
    """Connections are added and removed while commands are in progress (RFC 7143 §6.3.1, §11.14)."""

    async def load(self, disk, stops, model, seed):
        """Writes and reads blocks of its own until the test stops it."""
        chance = random.Random(seed)
        while not stops.is_set():
            at = (chance.randrange(256) * 16 + seed) * 4096
            model[at] = bytes([chance.randrange(1, 256)]) * 4096
            await disk.pwrite(model[at], at)
            at = chance.choice(list(model))
            self.assertEqual(await disk.pread(4096, at), model[at])

    async def change(self, url, rounds, most=4):
        chance, stops, models = random.Random(1), asyncio.Event(), [{} for _ in range(16)]
        async with await openiser.aio.connect(url) as disk:
            self.assertEqual(disk.connections, list(range(most)))
            loads = [asyncio.create_task(self.load(disk, stops, m, i)) for i, m in enumerate(models)]
            for _ in range(rounds):
                await asyncio.sleep(0.05)
                gone = chance.sample(disk.connections, chance.randrange(1, most))
                for cid in gone:
                    await disk.remove_connection(cid, 20)
                    self.assertNotIn(cid, disk.connections)
                self.assertEqual(len(disk.connections), most - len(gone))
                for _ in gone:
                    self.assertIn(await disk.add_connection(), disk.connections)
                self.assertEqual(len(disk.connections), most)
            stops.set()
            await asyncio.gather(*loads)
        self.assertTrue(all(models))
        async with await openiser.aio.connect(url) as other:
            for model in models:
                for at, data in model.items():
                    self.assertEqual(await other.pread(4096, at), data)

    def test_under_load_over_each_way(self):
        with Daemon("--max-connections", "4", "--error-recovery-level", "2", "ram:16M") as d:
            for way, level in (("tcp", 0), ("tcp", 1), ("tcp", 2), ("rdma", 0), ("stream", 0)):
                with self.subTest(way=way, level=level):
                    url = over(d.url, way)
                    url += ("&" if "?" in url else "?") + "connections=4&error_recovery_level=%d" % level
                    asyncio.run(self.change(url, 4))

    def refused(self, call, text):
        with self.assertRaises(openiser.Error) as e:
            call()
        self.assertIn(text, str(e.exception))

    def test_refusals(self):
        with Daemon("--max-connections", "2", "ram:16M") as d, openiser.connect(d.url + "?connections=2") as disk:
            self.assertEqual(disk.connections, [0, 1])
            self.refused(disk.add_connection, "MaxConnections")
            self.refused(lambda: disk.remove_connection(7), "no connection")
            self.refused(lambda: disk.remove_connection(1 << 20), "no connection")
            disk.remove_connection(0)
            self.assertEqual(disk.connections, [1])
            self.refused(lambda: disk.remove_connection(1), "the last connection")
            self.assertIn(disk.add_connection(), disk.connections)
            disk.ping()
        with Daemon("ram:16M") as d, openiser.connect(d.url) as disk:
            self.refused(disk.add_connection, "1 connections already")
            with openiser.connect(d.url + " " + d.url) as paths:
                self.refused(paths.add_connection, "several paths")

    def test_a_login_that_the_target_refuses(self):
        with EventTarget(blocks=SIZE // BLOCK) as t, openiser.connect(t.url("connections=2")) as disk:
            disk.remove_connection(1)
            t.refuse = 0x0206
            self.refused(disk.add_connection, "oo many connections")
            self.assertEqual(disk.connections, [0])
            t.refuse = None
            self.assertIn(disk.add_connection(), disk.connections)
            self.assertEqual(len(disk.connections), 2)
            disk.pread(512, 0)

    async def keeps(self, t, slow):
        async with await openiser.aio.connect(t.url("connections=2")) as disk:
            write = asyncio.create_task(disk.command(bytes([0x35]) + bytes(9)))  # SYNCHRONIZE CACHE
            while not any(sn == 0 for sn, _ in t.sessions[0].order):
                await asyncio.sleep(0.02)
            cid = next(c for sn, c in t.sessions[0].order if sn == 0)
            with self.assertRaises(openiser.Error) as e:
                await disk.remove_connection(cid, 1)
            self.assertIn("in progress", str(e.exception))
            self.assertEqual((t.asked, disk.connections), ([], [0, 1]))
            removal = asyncio.create_task(disk.remove_connection(cid, 20))
            for _ in range(8):  # on the other connection
                await disk.pread(512, 0)
            self.assertEqual({c for _, c in t.sessions[0].order[-8:]}, {1 - cid})
            slow.set()
            await write
            await removal
            self.assertEqual(t.asked, [(1, cid, cid)])

    def test_a_command_keeps_its_connection(self):
        """The Logout waits for the command in progress; at the deadline the connection stays."""
        slow = threading.Event()

        class Slow(EventTarget):
            def scsi(self, c, head, data):
                if head[32] == 0x35:
                    threading.Thread(target=self.answer_late, args=(c, head)).start()
                else:
                    super().scsi(c, head, data)

            def answer_late(self, c, head):
                with c.session.turn:
                    c.session.order.append((0, c.cid))
                    c.session.expcmdsn += 1
                slow.wait(patience(20))
                c.response(head)
        with Slow(blocks=SIZE // BLOCK) as t:
            asyncio.run(self.keeps(t, slow))

    async def adds(self, t, go):
        async with await openiser.aio.connect(t.url("connections=2&error_recovery_level=2")) as disk:
            lost = next(c for c in t.sessions[0].conns if c.cid == 1)
            lost.sock.shutdown(socket.SHUT_RDWR)
            while (2, 1, 0) not in t.asked:
                await asyncio.sleep(0.02)
            self.assertEqual(await disk.add_connection(), 2)
            go.set()
            while "logout for recovery of 1" not in t.seen:
                await asyncio.sleep(0.02)
            for _ in range(8):
                await disk.pread(512, 0)
            self.assertEqual(sorted(disk.connections), [0, 2])
            self.assertEqual({c for _, c in t.sessions[0].order[-8:]}, {0, 2})
            await disk.remove_connection(2)
            self.assertEqual(await disk.add_connection(), 1)  # nothing of it is left

    # [RFC 7143: 6.3.4 #3, 11.14 #6]
    def test_the_cid_of_a_lost_connection_is_not_used(self):
        """Its Logout for recovery has no answer yet, and would close a new connection with this CID."""
        go = threading.Event()

        class Holds(EventTarget):
            def logout(self, c, head):
                if head[1] & 0x7f == 2:
                    go.wait(patience(20))
                return super().logout(c, head)
        with Holds(blocks=SIZE // BLOCK, level=2) as t:
            asyncio.run(asyncio.wait_for(self.adds(t, go), patience(30)))


class Iserd(Folder):
    """libiser and iserd, over each kind of connection, with CHAP in each login."""

    def test_data_over_four_connections_of_each_kind(self):
        secret, path, back = self.path("secret"), self.path("in.img"), self.path("out.img")
        with open(secret, "w") as f:
            f.write("twelve-bytes-long")
        os.chmod(secret, 0o600)
        with Daemon("--max-connections", "4", "--workers", "2", "--chap-user", "me",
                    "--chap-secret-file", secret, "ram:4M") as d:
            for i, way in enumerate(WAYS):
                url = over(d.url.replace("://", "://me%twelve-bytes-long@") + "?connections=6", way)
                with open(path, "wb") as f:
                    f.write(pattern(8 * i, SIZE))
                p = json.loads(run([ISER, "info", "--json", url]).text)["session"]
                self.assertEqual((p["MaxConnections"], p["connections"], p["kind"]),
                                 (4, 4, WAYS[way][1]))
                run([ISER, "copy", "-q", path, url])
                run([ISER, "copy", "-q", url, back])
                with open(back, "rb") as f:
                    self.assertEqual(f.read(), pattern(8 * i, SIZE))


if __name__ == "__main__":
    main()
