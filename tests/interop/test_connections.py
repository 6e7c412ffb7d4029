#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Sessions of several connections (RFC 7143 §4.2.2): the initiator against a target
of bytes that grants, refuses, lies and fails."""
import json
import os
import struct

from fake_target import R_SCSI
from harness import ISER, WAYS, Daemon, Folder, main, over, run
from lying_target import BLOCK, R2T, READS, WRITES, pattern
from mcs_target import LEADING_ONLY, McsTarget

SIZE = 4 << 20


class Connections(Folder):
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
