#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Replays the logins and first commands of other initiators, octet by octet:
tests/vectors/logins (see README there)."""
import hashlib
import os
import re
import struct
import tempfile
import unittest

from harness import Daemon, Wire, main

HERE = os.path.dirname(os.path.abspath(__file__))
VECTORS = os.path.join(HERE, "../vectors/logins")
SECRET = "correct horse battery"
LOGIN, LOGIN_RSP, TEXT, TEXT_RSP = 0x43, 0x23, 0x04, 0x24


def octets(text):
    """Parses 'aa xx 00*4' to a list; xx becomes None, any octet."""
    out = []
    for word in text.split():
        value, _, times = word.partition("*")
        out += [None if value == "xx" else int(value, 16)] * int(times or 1)
    return out


class Replay(Wire):
    """Replays one vector with one daemon."""

    def __init__(self, daemon, test):
        super().__init__(daemon)
        self.test, self.isid, self.tsih, self.challenge = test, b"", 0, {}
        self.expstatsn = 0

    def fill(self, line):
        if "$RESPONSE" in line:
            ident = int(self.challenge["CHAP_I"])
            asked = bytes.fromhex(self.challenge["CHAP_C"][2:])
            digest = hashlib.md5(bytes([ident]) + SECRET.encode() + asked)
            line = line.replace("$RESPONSE", "0x" + digest.hexdigest())
        return line.replace("$TARGET", self.daemon.target)

    def say(self, stage, keys):
        """Sends a Login Request."""
        csg, nsg = int(stage[0][0]), int(stage[0][2])
        go, more = "T" in stage, "C" in stage
        flags = go << 7 | more << 6 | csg << 2 | (nsg if go else 0)
        data = b"\0".join(self.fill(k).encode() for k in keys)
        data += b"\0" if keys and not more else b""
        head = struct.pack(">BBBBI", LOGIN, flags, 0, 0, len(data))
        head += self.isid + struct.pack(">HIHHII", self.tsih, 7, 0, 0,
                                        self.cmdsn, self.expstatsn)
        self.put(head.ljust(48, b"\0"), data)

    def hear(self, stage, keys):
        """Receives and checks the response."""
        op, head, data = self.recv()
        if stage[0] == "text":
            self.test.assertEqual((op, head[1]), (TEXT_RSP, 0x80))
        else:
            csg, nsg = int(stage[0][0]), int(stage[0][2])
            flags = 0x80 | csg << 2 | nsg if "T" in stage else csg << 2
            self.test.assertEqual((op, head[36:38].hex(), head[1] & 0xcc),
                                  (LOGIN_RSP, "0000", flags & 0xcc))
            self.test.assertEqual(head[1] & 0x80 and head[1] & 3,
                                  flags & 0x80 and flags & 3)
            self.tsih = struct.unpack(">H", head[14:16])[0]
        self.expstatsn = struct.unpack(">I", head[24:28])[0] + 1
        self.check_keys(keys, data)

    def check_keys(self, wanted, data):
        answered = [k.decode() for k in data.split(b"\0") if k]
        names = [k.split("=")[0] for k in answered]
        self.challenge.update(k.split("=", 1) for k in answered)
        # a key may occur only once (RFC 7143 §6.1)
        self.test.assertEqual(len(names), len(set(names)), answered)
        for k in wanted:
            k = self.fill(k)
            if k[0] == "!":
                self.test.assertNotIn(k[1:], names)
            elif "=" in k:
                self.test.assertIn(k, answered)
            else:
                self.test.assertIn(k, names)

    def text(self, key):
        data = self.fill(key).encode() + b"\0"
        rest = struct.pack(">III", 0xffffffff, self.cmdsn, self.expstatsn)
        self.pdu(TEXT, 0x80, data, rest=rest)
        self.cmdsn += 1

    def scsi(self, line):
        found = re.match(r"(\d+) (\S+) ([^:=]+)(?:: ([^=]+))?(?:= (.*))?$",
                         line)
        edtl, ends, cdb, out, back = found.groups()
        status, got = self.ask(bytes(octets(cdb)).ljust(16, b"\0"), int(edtl),
                               bytes(octets(out or "")))
        sense = got[2:] if status == 2 else b""
        was = "%02x" % status + (
            "/%02x/%02x" % (sense[2] & 15, sense[12]) if sense else "")
        self.test.assertEqual(was, ends, line)
        for i, octet in enumerate(octets(back or "")):
            if octet is not None:
                self.test.assertEqual(got[i], octet,
                                      "%s: octet %d of %s" %
                                      (line, i, got.hex(" ")))

    def run(self, lines):
        """Executes each line with the keys that follow it."""
        steps = []
        for line in lines:
            line = line.rstrip("\n")
            if re.match(r"[<>] |isid |text |scsi ", line):
                steps.append((line, []))
            elif line and line[0] != "#":
                steps[-1][1].append(line)
        for line, keys in steps:
            word, _, rest = line.partition(" ")
            if word == "isid":
                self.isid = bytes.fromhex(rest)
            elif word == ">":
                self.say(rest.split(), keys)
            elif word == "<":
                self.hear(rest.split(), keys)
            elif word == "text":
                self.text(rest)
            else:
                self.scsi(rest)


class Logins(unittest.TestCase):
    def replay(self, name, *options):
        with Daemon(*options, "--name", "iqn.2026-01.org.example:disk",
                    "ram:8M") as d:
            wire = Replay(d, self)
            with open(os.path.join(VECTORS, name)) as f:
                wire.run(f)
            wire.close()

    def test_microsoft_discovery(self):
        self.replay("microsoft-discovery")

    def test_microsoft_normal(self):
        self.replay("microsoft-normal")

    def test_microsoft_chap(self):
        with tempfile.NamedTemporaryFile("w") as f:
            f.write(SECRET + "\n")
            f.flush()
            self.replay("microsoft-chap", "--chap-user", "me",
                        "--chap-secret-file", f.name)

    def test_esxi_discovery(self):
        self.replay("esxi-discovery")

    def test_esxi_normal(self):
        self.replay("esxi-normal")

    def test_odd_keys(self):
        self.replay("odd-keys")

    def test_all_vectors_are_replayed(self):
        here = {n for n in os.listdir(VECTORS) if n != "README"}
        there = {t[5:].replace("_", "-") for t in dir(self)
                 if t.startswith("test_") and t != "test_all_vectors_are_"
                 "replayed"}
        self.assertEqual(here, there)


if __name__ == "__main__":
    main()
