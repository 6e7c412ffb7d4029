#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""iser with targets that send wrong text, nothing, endless lists, or redirections."""
import contextlib
import json
import signal
import socket
import struct
import subprocess
import tempfile
import time

from fake_target import IQN, R_TEXT, Case, FakeTarget, text_of
from harness import ISER, Daemon, Secrets, main, patience, some_time, until
from lying_target import LyingTarget
from test_bad_target import Bad
from test_iser import BUILT

NASTY = b"iqn.\x1b[2J\xff\xc2\x9b31m\x7f"
SHOWN = "iqn.\\x1b[2J\\xff\\xc2\\x9b31m\\x7f"


class Shown(Case):
    """Text from a target cannot control a terminal."""

    def clean(self, raw):
        self.assertFalse([b for b in raw if b < 32 and b != 10 or b == 127],
                         raw)
        text = raw.decode()  # fails if the text is not UTF-8
        self.assertFalse([c for c in text if 0x80 <= ord(c) < 0xa0], raw)

    def targets(self):
        return text_of(b"TargetName=" + NASTY,
                       b"TargetAddress=127.0.0.1:" + NASTY + b",1")

    def test_ls_escapes_names_and_addresses(self):
        with FakeTarget(targets=self.targets) as t:
            done = self.iser("ls", t.portal)
            self.clean(done.raw)
            self.assertIn(SHOWN, done.out)
            done = self.iser("ls", "--json", t.portal)
            self.clean(done.raw)
            self.assertEqual(json.loads(done.out)[0]["name"], SHOWN)

    def test_info_and_ls_escape_inquiry_strings(self):
        with FakeTarget(vendor=b"\x1b]0;x\x07\xff ") as t:
            for args in (("info", t.url()), ("info", "--json", t.url()),
                         ("ls", t.portal), ("ls", "--json", t.portal)):
                done = self.iser(*args)
                self.clean(done.raw)
                self.assertIn("x1b]0;x", done.out)

    def test_errors_escape_a_redirect(self):
        with Moved(to=NASTY) as t:
            done = self.iser("info", t.url(), status=5)
            self.clean(done.raw)
            self.assertIn("moved to " + SHOWN, done.err)


class OtherForms(LyingTarget):
    """Has each unit at the form of its LUN that libiser does not use: flat addressing below 256, and a bus number above."""
    forms = [bytes([1, 0x2c]) + bytes(6), bytes([0x40, 5]) + bytes(6)]

    def scsi(self, c, head, data):
        has_unit = head[8:16] in self.forms
        if head[32] == 0x12 and not has_unit:
            c.data_in(head, b"\x7f\0\6\2\x1f" + bytes(31))
        elif head[32] == 0xa0 or has_unit:
            super().scsi(c, head, data)
        else:
            self.check(c, head, 5, 0x25)

    def luns(self, c, head):
        c.data_in(head, struct.pack(">II", 8 * len(self.forms), 0) + b"".join(self.forms))


class Luns(Case):
    """A unit has the eight bytes that REPORT LUNS returns (SAM-5 §4.7.2)."""

    def test_other_forms(self):
        with OtherForms() as t, tempfile.NamedTemporaryFile() as f:
            self.assertEqual([u["lun"] for u in json.loads(self.iser("ls", "--json", t.portal).out)[0]["units"]], [300, 5])
            for lun in (300, 5):
                url = t.url().replace("/0?", "/%d?" % lun)
                for args in (("info", url), ("copy", "-q", url, f.name), ("copy", "-q", f.name, url), ("hash", url),
                             ("hash", url + " " + url)):
                    self.iser(*args)
            done = self.iser("info", t.url().replace("/0?", "/6?"), status=21)
            self.assertIn("no LUN 6", done.err)


class Discovery(Case):
    """SendTargets ends, regardless of the target's answers (RFC 7143 §11.10,
    appendix C)."""

    def endless(self, part, says, status=11):
        class Endless(FakeTarget):
            rounds = 0

            def text(self, c, head, data):
                self.rounds += 1
                c.send(R_TEXT, 0, head[16:20], part, ttt=b"\0\0\0\1")

        with Endless() as t:
            began = time.monotonic()
            done = self.iser("ls", t.portal, status=status)
            self.assertLess(time.monotonic() - began, patience(15))
            self.assertIn(says, done.err)
            self.assertEqual(t.seen, ["logout"])
            return t.rounds

    def test_empty_responses_for_ever(self):
        self.assertLess(self.endless(b"", "no end after"), 64)

    def test_tiny_responses_for_ever(self):
        self.assertLess(self.endless(b"\0", "no end after"), 5000)

    def test_large_responses_for_ever(self):
        self.assertLess(self.endless(text_of("TargetName=" + IQN) * 100,
                                     "limit exceeded"), 1000)

    def test_a_name_that_is_too_long(self):
        """The name is not truncated: a prefix may be the name of another target."""
        with FakeTarget(targets=lambda: text_of("TargetName=" + "n" * 224)) as t:
            done = self.iser("ls", t.portal, status=11)
            self.assertIn("not a list of targets", done.err)

    def test_repeated_targets_and_addresses(self):
        def targets():
            return text_of("TargetName=" + IQN,
                           "TargetAddress=%s,1" % t.portal) * 3000
        with FakeTarget() as t:
            t.targets = targets
            found = json.loads(self.iser("ls", "--json", t.portal).out)
            self.assertEqual([x["name"] for x in found], [IQN])

    #
    #
    #
    #
    #
    # [RFC 7143: 6.2 #3, 11.10.4 #2]
    def test_many_targets(self):
        """A megabyte of names in parts of 8 KiB: listed soon, and each name once."""
        names = ["iqn.2026-01.org.example:%d" % (n * 7919 % 20000)
                 for n in range(20000)]
        text = text_of(*("TargetName=" + n for n in names))

        class Many(FakeTarget):
            def text(self, c, head, data):
                part, self.left = self.left[:8192], self.left[8192:]
                c.send(R_TEXT, 0 if self.left else 0x80, head[16:20], part,
                       ttt=b"\0\0\0\1")  # with F, too: it is ignored then (RFC 7143 §11.10.4)

        with Many(left=text, name=names[777]) as t:
            done = self.iser("ls", "iscsi://%s/%s" % (t.portal, t.name))
            self.assertEqual(done.out.count("TargetName"), 0)
            self.assertEqual(done.out.count("\n" + t.name) +
                             done.out.startswith(t.name), 1)

    def test_all_portals_and_a_url_to_paste(self):
        def targets():
            return text_of("TargetName=" + IQN,
                           "TargetAddress=%s,1" % t.portal,
                           "TargetAddress=[2001:db8::1]:3260,2")
        with FakeTarget() as t:
            t.targets = targets
            out = self.iser("ls", t.portal).out
            self.assertIn(t.portal + ",1", out)
            self.assertIn("[2001:db8::1]:3260,2", out)
            url = [w for w in out.split() if "://" in w]
            self.assertEqual(url, ["iscsi://%s/%s/0" % (t.portal, IQN)])
            self.iser("info", *url)
            found = json.loads(self.iser("ls", "--json", t.portal).out)[0]
            self.assertEqual(len(found["portals"]), 2)
            self.assertEqual([u["url"] for u in found["units"]], url)

    def at(self, *addresses):
        return text_of("TargetName=" + IQN, *("TargetAddress=" + a for a in addresses))

    def test_target_at_another_portal(self):
        """RFC 7143 appendix C: the login is where TargetAddress says."""
        class Directory(FakeTarget):
            def login(self, c, head, data):
                if c.discovery:
                    super().login(c, head, data)
                else:
                    c.login_response(head, status=0x0203)
        with FakeTarget() as far, Directory() as t:
            closed = "127.0.0.1:1,1"
            for addresses in ((far.portal + ",2",), (closed, far.portal + ",2"),
                              ("127.0.0.1:1?initiator=x", "u%p@" + t.portal, far.portal + ",2")):
                t.targets = lambda: self.at(*addresses)
                for asked in (t.portal, t.portal + ",1"):
                    out = self.iser("ls", asked).out
                    self.assertIn("iscsi://%s/%s/0\n" % (far.portal, IQN), out)
            self.assertEqual(far.seen.count("logout"), 6)

    def test_address_that_cannot_be_reached(self):
        """With an address translation, the target is at the portal that was asked."""
        with FakeTarget() as t:
            t.targets = lambda: self.at("127.0.0.1:1,1")
            done = self.iser("ls", t.portal)
            self.assertIn("iscsi://%s/%s/0\n" % (t.portal, IQN), done.out)
            self.assertIn("127.0.0.1:1", done.err)

    def test_no_such_target(self):
        with FakeTarget() as t:
            done = self.iser("ls", "iscsi://%s/%s" % (t.portal, IQN + "x"), status=21)
            self.assertIn("lists no target %sx" % IQN, done.err)
            out = self.iser("ls", "iscsi://%s/%s" % (t.portal, IQN.upper())).out  # RFC 3722 §3
            self.assertIn(IQN, out)

    @BUILT
    def test_scheme_of_the_url(self):
        with Daemon("ram:8M") as d:
            for way in ("", "?start=stream"):
                out = self.iser("ls", "iser://" + d.portal + way).out
                url = [w for w in out.split() if "://" in w]
                self.assertEqual(url, ["iser" + d.url[5:] + way])
                self.iser("info", *url)

    def test_chap_is_needed(self):
        with Secrets() as c, Daemon(*c.args, "ram:8M") as d:
            done = self.iser("info", d.url, status=24)
            self.assertIn("wants CHAP", done.err)
            done = self.iser("info", c.url(d.url, password="w" * 12),
                             status=24)
            self.assertNotIn("wants CHAP", done.err)

    def test_target_that_knows_md5_alone(self):
        """LIO before Linux 3.15 ends the login at a list of algorithms."""
        class Old(FakeTarget):
            def login(self, c, head, data):
                if b"CHAP_A=" in data:
                    c.login_response(head, status=0x0201)
                else:
                    c.login_response(head, text_of("AuthMethod=CHAP"), flags=0)
        with Old() as t:
            url = t.url().replace("://", "://me%secret@")
            self.assertIn("auth=md5", self.iser("info", url, status=24).err)
            self.assertNotIn("auth=md5", self.iser("info", url + "&auth=md5", status=24).err)

    def test_it_logs_out(self):
        with FakeTarget() as t:
            self.iser("ls", t.portal)
            self.assertEqual(t.seen, ["logout"] * 2)


class Groups(FakeTarget):
    """A unit whose group stands by until another initiator, or this one, activates it."""
    state = 2

    def inquiry(self, c, head):
        unit = bytes([1, 3, 0, 8]) + bytes.fromhex("5000112233445566")
        port = bytes([0x51, 0x94, 0, 4, 0, 0, 0, 1, 0x51, 0x95, 0, 4, 0, 0, 0, 1])
        if not head[33] & 1:
            c.data_in(head, b"\0\0\6\2\x1f\x20\0\2" + self.vendor + self.product + b"1.0 ")
        elif head[34] == 0x83:
            c.data_in(head, struct.pack(">BBH", 0, 0x83, len(unit + port)) + unit + port)
        else:
            super().inquiry(c, head)

    def scsi(self, c, head, data):
        if head[32] == 0xa3:
            self.seen.append("groups")
            group = struct.pack(">BBHBBBBHH", self.state, 0x0f, 1, 0, 0, 0, 1, 0, 1)
            c.data_in(head, struct.pack(">I", len(group)) + group)
        elif head[32] == 0xa4:
            self.seen.append("set")
            self.set_groups(c, head)
        else:
            super().scsi(c, head, data)

    def set_groups(self, c, head):
        """Another initiator was faster: ASYMMETRIC ACCESS STATE CHANGED."""
        self.state = 0
        self.check(c, head, 6, 0x2a, 6)


class Explicit(Case):
    def test_another_initiator_was_faster(self):
        """alua=explicit: SET TARGET PORT GROUPS that ends with a unit attention is not repeated, or initiators would take the unit from
        each other: the states are read again."""
        with Groups() as t:
            self.iser("info", t.url("paths=all&alua=explicit&" + some_time()))
            self.assertEqual(t.seen.count("set"), 1)
            self.assertEqual(t.seen[t.seen.index("set") + 1], "groups")


class Moved(FakeTarget):
    """Redirects every login: `to` is an address, or a function that returns one."""
    status, after_chap = 0x0101, False

    def login(self, c, head, data):
        self.seen.append("login")
        to = self.to() if callable(self.to) else self.to
        keys = (b"TargetAddress=" + (to if isinstance(to, bytes) else
                                     to.encode()),) if to else ()
        c.login_response(head, text_of(*keys), 0, status=self.status)


class Redirect(Case):
    """RFC 7143 §11.13.5: the login restarts at TargetAddress (§13.8)."""

    # [RFC 7143: 11.13.5 #2]
    def test_followed_to_another_portal(self):
        for status in (0x0101, 0x0102):
            with FakeTarget() as there, \
                    Moved(to=there.portal, status=status) as here:
                self.iser("info", here.url())
                self.assertEqual(here.seen, ["login"])
                self.assertEqual(there.seen, ["logout"])
                self.assertEqual(there.conns[0].keys["TargetName"], IQN)

    def test_discovery_is_followed(self):
        with FakeTarget() as there, Moved(to=there.portal) as here:
            self.assertIn(IQN, self.iser("ls", here.portal).out)

    def test_chain_of_redirections(self):
        """Eight redirections are followed, the ninth is refused."""
        with contextlib.ExitStack() as stack:
            t = stack.enter_context(FakeTarget())
            chain = [stack.enter_context(Moved(to=t.portal))]
            for _ in range(8):
                chain.append(stack.enter_context(Moved(to=chain[-1].portal)))
            self.iser("info", chain[7].url())
            done = self.iser("info", chain[8].url(), status=5)
            self.assertIn("one redirection too many", done.err)

    def test_circle(self):
        with Moved() as a, Moved(to=a.portal) as b:
            a.to = b.portal
            done = self.iser("info", a.url(), status=5)
            self.assertIn("in a circle", done.err)
            self.assertEqual(a.seen + b.seen, ["login"] * 2)
            a.to = a.portal
            self.assertIn("in a circle", self.iser("info", a.url(),
                                                   status=5).err)

    def test_addresses_that_are_none(self):
        for to in ("", "[::1", ":3260", "127.0.0.1:99999", "a b", "user@host",
                   "host/x", "x?y=z", "h" * 270):
            with Moved(to=to) as t:
                done = self.iser("info", t.url(), status=5)
                self.assertIn("TargetAddress", done.err, to)

    def test_forms_of_an_address(self):
        """A host name, and a portal group tag that is not allowed (§13.8)."""
        with FakeTarget() as there:
            for to in ("localhost:%d" % there.port, there.portal + ",1"):
                with Moved(to=to) as here:
                    self.iser("info", here.url())

    def test_error_after_a_redirection(self):
        """Messages name the new address, from which the session was redirected."""
        with socket.socket() as gone:  # bound, so that no other program gets the port
            gone.bind(("127.0.0.1", 0))
            to = "127.0.0.1:%d" % gone.getsockname()[1]
            with Moved(to=to) as here:
                done = self.iser("info", here.url(), status=4)
                self.assertIn(to, done.err)

    def lose(self, status):
        """Uses two portals; the session at the second one is lost once."""
        class Loses(FakeTarget):
            lost = False

            def read(self, c, head):
                if not self.lost:
                    self.lost = True
                    raise EOFError
                super().read(c, head)

        with Loses() as there, Moved(to=there.portal, status=status) as here:
            self.iser("hash", here.url("reconnect=3&" + some_time()))
            return here.seen.count("login")

    def test_temporary_goes_back_to_the_first_portal(self):
        self.assertEqual(self.lose(0x0101), 2)

    def test_the_wait_for_time2wait_is_logged(self):
        """RFC 7143 §13.15: the next login comes after DefaultTime2Wait."""
        class Loses(FakeTarget):
            lost = False

            def login(self, c, head, data):
                # a login after a loss begins with the security stage
                c.login_response(head, text_of("TargetPortalGroupTag=1", "DefaultTime2Wait=3")
                                 if head[1] & 3 == 3 else b"")

            def read(self, c, head):
                if not self.lost:
                    self.lost = True
                    raise EOFError
                super().read(c, head)

        with Loses() as t:
            began = time.monotonic()
            done = self.iser("hash", "-d", t.url("reconnect=3&timeout=9"))
            self.assertGreater(time.monotonic() - began, 2.9)
            self.assertRegex(done.err, r"is lost: .*attempt 1 of 3 in 3000 ms \(Time2Wait")

    def test_permanent_is_remembered(self):
        self.assertEqual(self.lose(0x0102), 1)

    # [RFC 7143: 11.13.5 #2]
    def test_chap_at_the_new_place(self):
        """The same secrets, to a target that requires CHAP and to a target that
        redirects before CHAP."""
        with Secrets() as c, Daemon(*c.args, "ram:8M") as d:
            with Moved(to=d.portal, name=d.target) as here:
                plain = here.url().replace("/0?", "/0?reconnect=0&")
                self.iser("info", c.url(plain.split("?")[0],
                                        target="staple in the attic"))
                self.assertEqual(self.iser("info", c.url(
                    plain.split("?")[0], password="wrong wrong wrong"),
                    status=24).out, "")


@BUILT
class RedirectRdma(Case):
    """The same for iSER in RDMA mode from the start, and after a login."""

    def test_start_rdma(self):
        with Daemon("ram:8M") as d:
            def move(p):
                p.mpa()
                bhs = p.request()[2]
                p.itt, p.isid = bhs[16:20], bhs[8:14]
                p.say(p.login_response(0, b"\1\1", text_of(
                    "TargetAddress=" + d.portal)))
            with Bad(move) as t:
                done = self.iser("info", "iser://127.0.0.1:%d/%s/0" %
                                 (t.port, d.target))
                self.assertIn("RDMA from the start", done.out)

    def test_start_stream(self):
        with Daemon("ram:8M") as d, Moved(to=d.portal) as t:
            done = self.iser("info", "iser://%s/%s/0?start=stream" %
                             (t.portal, d.target))
            self.assertIn("login over the stream", done.out)


class Bench(Case):
    """iser bench prints its results so far, in every way to end."""

    class Slow(FakeTarget):
        reads, most, die = 0, 10**9, True

        def read(self, c, head):
            self.reads += 1
            if self.reads > self.most:
                if self.die:
                    raise EOFError
                return  # silence
            super().read(c, head)

    def measured(self, text, complete, at_least=1):
        found = json.loads(text)
        self.assertGreaterEqual(found["read"]["operations"], at_least)
        self.assertEqual(found["complete"], complete)
        return found

    def test_small_amount(self):
        with FakeTarget() as t:
            for amount, n in (("512", 1), ("4k", 1), ("40k", 10)):
                out = self.iser("bench", "--json", "--amount", amount,
                                t.url()).out
                found = self.measured(out, True, n)
                self.assertEqual(found["read"]["operations"], n)

    def test_target_dies(self):
        with self.Slow(most=500) as t:
            done = self.iser("bench", "--json", "--ramp", "0", t.url(""),
                             status=4)
            self.measured(done.out, False, 400)
        with self.Slow(most=500) as t:
            done = self.iser("bench", "--ramp", "0", t.url(""), status=4)
            self.assertIn("IOPS", done.out)
            self.assertIn("not complete", done.out)

    @staticmethod
    def has_pending_signals(process):
        with open("/proc/%d/status" % process.pid) as f:
            lines = dict(line.split(":", 1) for line in f)
        return int(lines["ShdPnd"], 16) != 0

    def interrupt(self, t, *signals):
        p = subprocess.Popen([ISER, "bench", "--json", "--ramp", "0", "--time",
                              "600", t.url("")], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL)
        until(lambda: sum(c.heard.count(1) for c in t.conns) > 100, "reads")
        for s in signals:
            p.send_signal(s)
            until(lambda: not self.has_pending_signals(p), "the handling of a signal")
        out = p.communicate(timeout=patience(15))[0].decode()
        self.assertEqual(p.returncode, 0)
        self.measured(out, False, 50)

    def test_interrupted(self):
        for s in (signal.SIGINT, signal.SIGTERM):
            with self.Slow() as t:
                self.interrupt(t, s)

    def test_interrupted_while_the_target_is_silent(self):
        with self.Slow(most=90, die=False) as t:
            self.interrupt(t, signal.SIGINT)
        with self.Slow(most=90, die=False) as t:
            self.interrupt(t, signal.SIGINT, signal.SIGINT)


if __name__ == "__main__":
    main()
