#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The log: its three forms, hostile names in it, and levels for single peers."""
import json
import os
import random
import re
import socket
import subprocess
import tempfile
import unittest

from harness import ISERCTL, ISERD, Daemon, Secrets, Wire, io, main, patience, run, text_of_log, until

LEVELS = ("error", "warning", "notice", "info", "debug")
STAMP = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}"


def records(text):
    """Parses each line of a JSON log, and checks the members that every line has."""
    out = []
    for line in text.splitlines():
        r = json.loads(line, object_pairs_hook=unique)
        assert re.match(STAMP + "Z$", r["time"]), line
        assert r["level"] in LEVELS, line
        assert re.match("^[A-Z_]+$", r["event"]), line
        slow = {"lun", "opcode", "lba", "bytes", "milliseconds", "status"} if r["event"] == "SLOW" else set()
        assert set(r) <= {"time", "level", "event", "peer", "initiator", "target", "backstore", "clause", "dropped", "text"} | slow, line
        assert all(isinstance(v, str) for k, v in r.items() if k not in ("dropped", "lun", "lba", "bytes", "milliseconds")), line
        out.append(r)
    return out


def unique(pairs):
    assert len(dict(pairs)) == len(pairs), pairs
    return dict(pairs)


class From(Wire):
    """An initiator at an address of its own, with a name of its own."""

    def __init__(self, daemon, address="127.0.0.1", name=None):
        self.daemon, self.cmdsn, self.itt = daemon, 1, 1
        self.sock = socket.create_connection(daemon.address, timeout=patience(10), source_address=(address, 0))
        if name:
            self.KEYS = ("InitiatorName=" + name,) + Wire.KEYS[1:]


def escaped(raw):
    """What iserd makes of bytes that are not plain text (base/escape.h)."""
    out, i = "", 0
    while i < len(raw):
        for n in (1, 2, 3, 4):
            try:
                c = raw[i:i + n].decode()
                break
            except UnicodeDecodeError:
                c = None
        o = ord(c) if c else 0
        bad = (c is None or o < 0x20 or 0x7f <= o < 0xa0 or o in (0x61c, 0x200e, 0x200f, 0xfeff) or
               0x2028 <= o <= 0x202e or 0x2066 <= o <= 0x2069)
        n = n if c else 1
        out += "".join("\\x%02x" % b for b in raw[i:i + n]) if bad else c
        i += n
    return out


class Forms(unittest.TestCase):
    def test_text(self):
        with Daemon("ram:1M") as d:
            w = Wire(d)
            w.login()
            w.close()
            d.wait_for("LOGOUT")
            for line in d.messages().splitlines():
                self.assertRegex(line, STAMP + r"[+-]\d\d:\d\d (%s) [A-Z_]+: " % "|".join(LEVELS))

    def test_journald(self):
        with Daemon("--log-format", "journald", "--listen", "0.0.0.0:0", "ram:1M") as d:
            w = From(d)
            w.login()
            w.login("HeaderDigest=None")
            w.close()
            d.wait_for("LOGOUT")
            text = d.messages()
            for line in text.splitlines():
                self.assertRegex(line, r"^<[3-7]>(iserd: |(%s) [A-Z_]+: )" % "|".join(LEVELS))
            self.assertRegex(text, r"(?m)^<4>iserd: warning: 0\.0\.0\.0")
            self.assertRegex(text, r"(?m)^<5>notice LOGIN: ")

    def test_auto_asks_whether_stderr_is_the_journal(self):
        """A socket stands for the journal."""
        ours, theirs = socket.socketpair()
        st = os.fstat(theirs.fileno())
        for stream, begin in (("%d:%d" % (st.st_dev, st.st_ino), r"^<5>notice START: "),
                              ("%d:%d" % (st.st_dev, st.st_ino + 1), STAMP)):
            p = subprocess.Popen([ISERD, "serve", "--io", io(), "--listen", "127.0.0.1:0", "null:1M"], stderr=theirs,
                                 stdout=subprocess.DEVNULL, env=dict(os.environ, JOURNAL_STREAM=stream))
            try:
                ours.settimeout(patience(10))
                self.assertRegex(ours.recv(4096).decode(), begin)
            finally:
                p.kill()
                p.wait()
                text_of(ours)
        ours.close()
        theirs.close()

    def test_json(self):
        with Secrets() as s, Daemon("--log-format", "json", "--log", "info", *s.args, "ram:1M") as d:
            bad = From(d, name="iqn.2026-01.org.example:a")
            bad.login("AuthMethod=None")
            bad.close()
            early = From(d)
            early.command([0] * 16)
            early.close()
            d.wait_for('"event":"PROTOCOL"')
            rows = records(d.messages())
            start = rows[0]
            self.assertEqual((start["event"], start["level"]), ("START", "notice"))
            refused = [r for r in rows if r["event"] == "LOGIN_FAILED"][0]
            self.assertEqual(refused["level"], "warning")
            self.assertEqual(refused["initiator"], "iqn.2026-01.org.example:a")
            self.assertEqual(refused["target"], d.target)
            self.assertRegex(refused["peer"], r"^127\.0\.0\.1:\d+$")
            self.assertEqual(refused["clause"], "RFC 7143 §6.3")
            protocol = [r for r in rows if r["event"] == "PROTOCOL"][0]
            self.assertRegex(protocol["peer"], r"^127\.0\.0\.1:\d+$")
            self.assertNotIn("initiator", protocol)

    def test_messages_of_the_process_are_json_too(self):
        with tempfile.TemporaryFile() as log:
            done = subprocess.run([ISERD, "serve", "--io", io(), "--log-format", "json", "--listen", "127.0.0.1:0",
                                   "/no/such\x1b\"file\\"], stderr=log, timeout=patience(10))
            self.assertEqual(done.returncode, 3)
            [r] = records(text_of_log(log))
        self.assertEqual((r["event"], r["level"]), ("PROCESS", "error"))
        self.assertIn('/no/such\\x1b"file\\', r["text"])


def text_of(sock):
    """Returns what is left in a socket, without waiting for more."""
    sock.setblocking(False)
    try:
        return sock.recv(65536).decode()
    except BlockingIOError:
        return ""


HOSTILE = (b'iqn.2026-01.x:"},{"level":"error', b"iqn.2026-01.x:\\", b"iqn.2026-01.x:\\\"", b"a\nb", b"\r\n<0>x: y",
           b"\x1b]0;t\x07", b"\xff\xfe", b"\xe2\x80\xae.gpj", b"\xe2\x80\xa8", b"\xed\xa0\x80", b"%s%n%999d", b"\x7f" * 223,
           b"\xf0\x9f\x92\xbe", b"(RFC 1 \xc2\xa70)", b"127.0.0.9:80 x", b" ", b"\\" * 223, b'"' * 223)


class Hostile(unittest.TestCase):
    """Each line of the log is whole and says what happened, whatever an initiator is called."""

    def names(self):
        rng = random.Random(7)
        for name in HOSTILE:
            yield name
        for _ in range(40):
            yield bytes(rng.randrange(1, 256) for _ in range(rng.randrange(1, 224)))

    def login(self, d, name):
        """Logs in with any bytes as the name of the initiator, and as the name of the target."""
        for keys in ((b"InitiatorName=" + name, b"TargetName=" + d.target.encode()),
                     (b"InitiatorName=iqn.2026-01.org.example:a", b"TargetName=" + name)):
            w = From(d)
            data = b"".join(k + b"\0" for k in keys + (b"SessionType=Normal",))
            head = (bytes((0x43, 0x87, 0, 0)) + len(data).to_bytes(4, "big") + Wire.ISID + bytes(2)).ljust(48, b"\0")
            w.put(head, data)
            try:
                w.recv()
            except OSError:
                pass
            w.close()

    def serve(self, form):
        return Daemon("--log-format", form, "--log", "debug", "--login-rate", "0", "--max-startups", "512:1:1024:1024",
                      "ram:1M")

    def test_json(self):
        with self.serve("json") as d:
            count = 0
            for name in self.names():
                self.login(d, name)
                count += 2
            until(lambda: d.messages().count('"event":"CONN_CLOSE"') >= count, d.messages)
            rows = records(d.messages())
            refused = [r for r in rows if r["event"] == "LOGIN_FAILED"]
            self.assertEqual(len(refused), count)
            for i, name in enumerate(HOSTILE):
                for r in refused[2 * i:2 * i + 2]:
                    self.assertIn(escaped(name[:40]) + ": ", r["text"])
                    self.assertIn(r["clause"].split(" §")[0], ("RFC 3722", "RFC 7143"))
            self.assertFalse([r for r in rows if r["level"] == "error"])
            self.assertLessEqual({r["peer"].rsplit(":", 1)[0] for r in rows if "peer" in r}, {"127.0.0.1"})

    def test_text_and_journald(self):
        for form, begin in (("text", STAMP + r"[+-]\d\d:\d\d "), ("journald", "^<[3-7]>")):
            with self.serve(form) as d:
                count = 0
                for name in self.names():
                    self.login(d, name)
                    count += 2
                d.wait_for(" CONN_CLOSE: ", count)
                for line in d.messages().split("\n")[:-1]:
                    self.assertRegex(line, begin + "(warning|notice|info|debug) [A-Z_]+: ")
                    self.assertFalse(set(line) & {chr(c) for c in range(32)})


class Peers(unittest.TestCase):
    """iserctl log level=LEVEL peer=ADDR"""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "control")

    def ask(self, *args, check=True):
        return run([ISERCTL, "--socket", self.path, "--json", "log"] + list(args), timeout=10, check=check).text

    def lines(self, d, address):
        """Logs in from the address, and returns the new lines about the address."""
        before = len(d.messages())
        w = From(d, address)
        w.login()
        w.close()
        until(lambda: "LOGOUT: " + address in d.messages()[before:], d.messages)
        return [line for line in d.messages()[before:].splitlines() if " " + address in line]

    def test_levels(self):
        with Daemon("--control", self.path, "--workers", "2", "ram:1M") as d:
            quiet = self.lines(d, "127.0.0.1")
            got = json.loads(self.ask("level=debug", "peer=127.0.0.8/31"))
            self.assertEqual(got, {"level": "notice", "peers": [{"peer": "127.0.0.8/31", "level": "debug"}]})
            loud = self.lines(d, "127.0.0.9")
            self.assertTrue([x for x in loud if " debug PDU: " in x])
            for address in ("127.0.0.1", "127.0.0.10"):
                self.assertEqual(len(self.lines(d, address)), len(quiet))
            self.ask("level=info", "peer=127.0.0.10")
            self.assertEqual(len(json.loads(self.ask())["peers"]), 2)
            self.assertTrue([x for x in self.lines(d, "127.0.0.10") if " info CONN_OPEN: " in x])
            self.assertFalse([x for x in self.lines(d, "127.0.0.10") if " debug " in x])
            # a level that is not higher ends it, and so does a level of all lines
            self.assertEqual(len(json.loads(self.ask("level=notice", "peer=127.0.0.10"))["peers"]), 1)
            self.assertEqual(json.loads(self.ask("level=notice")), {"level": "notice", "peers": []})
            self.assertEqual(len(self.lines(d, "127.0.0.9")), len(quiet))

    def test_bad_peers(self):
        with Daemon("--control", self.path, "ram:1M"):
            for peer in ("", "x", "127.0.0.1:80", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/8x", "::/129", "/8", "1" * 100,
                         "10.0.0.0/-1", "a" + "é" * 100):
                self.assertIn("not an address", self.ask("level=debug", "peer=" + peer, check=False), peer)
            self.assertIn("without level", self.ask("peer=10.0.0.9", check=False))
            for i in range(8):
                self.ask("level=debug", "peer=2001:db8::%d/64" % i if i else "peer=[fe80::1%eth0]")
            self.assertIn("8 peers", self.ask("level=debug", "peer=10.0.0.9", check=False))
            self.ask("level=info", "peer=2001:db8::1/64")
            self.assertEqual(len(json.loads(self.ask())["peers"]), 8)


if __name__ == "__main__":
    main()
