#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""iser-isns against the iSNS server of Open-iSNS, and what isnsadm sees there."""
import json
import os
import signal
import socket
import struct
import subprocess
import threading
import unittest

from test_config import Configured
from harness import ISER, ISER_ISNS, ISERCTL, Folder, main, need, patience, quiet_port, run, until

HOST = "iqn.2026-01.org.example:host"
CONFIG = """version: 1
daemon: {control: %s}
backstores: {m: {store: "ram:8M"}}
portal-groups:
  main: {listen: "127.0.0.1:0", tag: %d}
  hidden: {listen: "127.0.0.1:0", discovery: none}
targets:
%s"""


def target(name, group="main"):
    return ('  "iqn.2026-01.org.example:%s": {auth-group: any, portal-groups: [%s], luns: {0: m}}\n' % (name, group))


class Process:
    def __init__(self, case, args, log):
        self.log = open(log, "w+b")
        case.addCleanup(self.log.close)
        self.proc = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT)
        case.addCleanup(self.end)

    def text(self):
        return os.pread(self.log.fileno(), 1 << 20, 0).decode()

    def wait_for(self, text):
        until(lambda: text in self.text(), lambda: "%r in: %s" % (text, self.text()))

    def end(self, how=signal.SIGTERM):
        if self.proc.poll() is None:
            self.proc.send_signal(how)
        return self.proc.wait(patience(30))


class Server:
    """An iSNS server that the case makes up: answer(function, xid, payload) returns the bytes of the response."""

    def __init__(self, case, answer):
        self.answer = answer
        self.requests = []
        self.sock = socket.create_server(("127.0.0.1", 0))
        case.addCleanup(self.sock.close)
        self.name = "127.0.0.1:%d" % self.sock.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                c, _ = self.sock.accept()
            except OSError:
                return
            with c, c.makefile("rb") as f:
                while head := f.read(12):
                    _, function, length, _, xid, _ = struct.unpack(">6H", head)
                    self.requests.append((function, f.read(length)))
                    c.sendall(self.answer(function, xid, self.requests[-1][1]))

    def esi_port(self):
        """The port at which a DevAttrReg wants the inquiries (tag 20), or None."""
        for function, payload in self.requests:
            at = payload.find(struct.pack(">II", 20, 4))
            if function == 1 and at >= 0:
                return struct.unpack_from(">I", payload, at + 8)[0]
        return None


def message(function, xid, payload):
    return struct.pack(">6H", 1, function, len(payload), 0x8c00, xid, 0) + payload


def attr(tag, value):
    return struct.pack(">II", tag, len(value)) + value


def accept_all(function, xid, _):
    return message(function | 0x8000, xid, bytes(4))


class Hostile(Folder):
    """Bytes that are no iSNS, from the server and from others."""

    # an attribute of 224 bytes in a message of 16 more
    TOO_LONG = struct.pack(">II", 34, 224) + b"iqn.2020-01.x:t\0"

    def test_server(self):
        for payload, why in ((bytes(4) + self.TOO_LONG, "malformed"), (b"", "not one to the request"),
                             (bytes(4) + attr(32, b"abc"), "malformed"), (struct.pack(">I", 9), "no such entry"),
                             (struct.pack(">I", 99), "a status that RFC 4171 lacks")):
            payload += bytes(-len(payload) % 4)
            server = Server(self, lambda function, xid, _: message(function | 0x8000, xid, payload))
            done = run([ISER_ISNS, "list", "--server", server.name, "--initiator", "iqn.2020-01.x:i"], check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn(why, done.text)

    def test_port(self):
        """The port of --esi is at the address towards the server, responds to the server alone and bears any bytes."""
        server = Server(self, accept_all)
        d = Configured(self.write("iserd.yaml", CONFIG % (self.path("c"), 7, target("x") + target("y", "hidden"))), 2)
        self.addCleanup(d.stop)
        client = Process(self, [ISER_ISNS, "register", "--server", server.name, "--socket", self.path("c"), "--esi", "9"],
                         self.path("log"))
        client.wait_for("registered")
        port = server.esi_port()
        with socket.socket() as s:
            s.bind(("127.0.0.2", 0))  # another peer
            s.connect(("127.0.0.1", port))
            s.settimeout(patience(10))
            self.assertEqual(s.recv(1), b"")
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port))
        for garbage in (message(1, 7, self.TOO_LONG), message(0x800d, 7, b""), message(8, 7, attr(35, bytes(8))),
                        b"x" * 5000, message(13, 7, bytes(4)), b"\0\1\0\x0d\xff\xff" + bytes(99)):
            with socket.create_connection(("127.0.0.1", port)) as s:
                s.sendall(garbage)
        inquiry = attr(4, bytes(8)) + attr(1, b"entity\0\0")
        with socket.create_connection(("127.0.0.1", port)) as s:
            s.settimeout(patience(10))
            for part in message(13, 7, inquiry)[:20], message(13, 7, inquiry)[20:]:
                s.sendall(part)
            answer = message(0x800d, 7, bytes(4) + inquiry)
            with s.makefile("rb") as f:
                self.assertEqual(f.read(len(answer)), answer)
        self.assertEqual(client.end(), 0)

    def test_other_address(self):
        """Portals that the server cannot reach at the port are registered without inquiries."""
        server = Server(self, accept_all)
        d = Configured(self.write("iserd.yaml", CONFIG % (self.path("c"), 7, target("x") + target("y", "hidden"))), 2)
        self.addCleanup(d.stop)
        client = Process(self, [ISER_ISNS, "register", "--server", server.name, "--socket", self.path("c"), "--esi", "9",
                                "--address", "127.0.0.3"], self.path("log"))
        client.wait_for("registered")
        self.assertIn("--esi: no portal of iserd has the address", client.text())
        self.assertIsNone(server.esi_port())

    def write(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)
        return self.path(name)

    def test_long_names(self):
        for args in (["--entity", "x" * 256, "--initiator", "iqn.2020-01.x:i"], ["--initiator", "iqn." + "i" * 252]):
            done = run([ISER_ISNS, "list", "--server", "127.0.0.1:1", *args], check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn("255 bytes", done.text)


@need("isnsd", "isnsadm")
class Isns(Folder):
    def setUp(self):
        super().setUp()
        self.server = "127.0.0.1:%d" % quiet_port()
        self.write("isnsd.conf", "SourceName = %s\nBindAddress = %s\nDefaultDiscoveryDomain = 1\nSLPRegister = 0\n"
                   "Security = 0\nControlSocket = %s\nPIDFile = %s\nESIMinInterval = 1s\nESIRetries = 1\n" % (
                       HOST, self.server, self.path("ctl"), self.path("pid")))
        self.write("isnsadm.conf", "SourceName = %s\nServerAddress = %s\nSecurity = 0\n" % (HOST, self.server))
        self.start_server()

    def start_server(self):
        self.isnsd = Process(self, ["isnsd", "--config", self.path("isnsd.conf"), "--foreground"], self.path("isnsd.log"))
        host, port = self.server.split(":")

        def answers():
            with socket.socket() as s:
                return s.connect_ex((host, int(port))) == 0
        until(answers, self.isnsd.text)

    def write(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)
        return self.path(name)

    def configure(self, names, tag=7):
        targets = "".join(target(n) for n in names) + target("secret", "hidden")
        return self.write("iserd.yaml", CONFIG % (self.path("c"), tag, targets))

    def serve(self, *names):
        d = Configured(self.configure(names), len(names) + 1)
        self.addCleanup(d.stop)

    def isnsadm(self, *args):
        return run(["isnsadm", "-c", self.path("isnsadm.conf"), *args]).text

    def start(self, *args):
        return Process(self, [ISER_ISNS, *args, "--server", self.server], self.path(args[0] + ".log"))

    def seen(self, initiator="a"):
        """What an initiator sees: the names with their tags."""
        out = subprocess.run([ISER_ISNS, "list", "--json", "--server", self.server, "--initiator",
                              "iqn.2026-01.org.example:" + initiator], check=True, stdout=subprocess.PIPE,
                             timeout=patience(30)).stdout
        return sorted((t["target"].split(":")[1], t["tag"], t["address"]) for t in json.loads(out))

    def names(self, initiator="a"):
        return [name for name, _, _ in self.seen(initiator)]

    def test_register(self):
        """Targets come, change and go with the configuration; a hidden one is not shown; the end takes all back."""
        self.serve("x", "y")
        client = self.start("register", "--socket", self.path("c"), "--interval", "1")
        client.wait_for("registered")
        (x, tag, address), (y, _, _) = self.seen()
        self.assertEqual((x, y, tag), ("x", "y", 7))
        self.assertIn("iqn.2026-01.org.example:x", run([ISER, "ls", "iscsi://" + address]).text)
        nodes = self.isnsadm("--list", "nodes")
        self.assertIn('iSCSI name = "iqn.2026-01.org.example:x"', nodes)
        self.assertNotIn("secret", nodes)
        self.configure(["y", "z"])
        run([ISERCTL, "--socket", self.path("c"), "apply"])
        until(lambda: self.names() == ["y", "z"], lambda: "%r %s" % (self.seen(), client.text()))
        self.assertEqual(client.end(), 0)
        self.assertEqual(self.seen(), [])

    def test_domains(self):
        """A discovery domain of the server decides what an initiator sees."""
        self.serve("x", "y")
        run([ISER_ISNS, "register", "--once", "--socket", self.path("c"), "--server", self.server])
        self.isnsadm("--dd-register", "dd-name=one", "member-name=iqn.2026-01.org.example:x",
                     "member-name=iqn.2026-01.org.example:a")
        self.isnsadm("--register", "initiator=iqn.2026-01.org.example:a")
        self.assertEqual(self.names("a"), ["x"])
        self.assertEqual(self.names("b"), ["y"])

    def test_inquiries(self):
        """The server's status inquiries are answered: the portals stay; they go when nothing answers."""
        self.serve("x")
        client = self.start("register", "--socket", self.path("c"), "--esi", "1", "--address", "127.0.0.1")
        client.wait_for("registered")
        self.assertEqual(self.names(), ["x"])
        client.end(signal.SIGKILL)
        until(lambda: self.names() == [], lambda: self.isnsadm("--list", "portals"))

    def test_watch(self):
        watch = self.start("watch", "--initiator", "iqn.2026-01.org.example:w", "--address", "127.0.0.1")
        watch.wait_for("watching")
        self.serve("x")
        client = self.start("register", "--socket", self.path("c"))
        watch.wait_for("added iqn.2026-01.org.example:x")
        self.assertEqual(client.end(), 0)
        watch.wait_for("removed iqn.2026-01.org.example:x")
        self.assertEqual(watch.end(), 0)
        self.assertNotIn(":w", self.isnsadm("--list", "nodes"))

    def test_no_server(self):
        self.isnsd.end()
        self.serve("x")
        client = self.start("register", "--socket", self.path("c"), "--interval", "1")
        client.wait_for(self.server + ": no connection: Connection refused")
        self.start_server()
        until(lambda: self.names() == ["x"], client.text)
        self.assertEqual(client.text().count("\n"), 2, client.text())

    def test_no_daemon(self):
        client = self.start("register", "--socket", self.path("none"), "--once")
        self.assertEqual(client.proc.wait(patience(30)), 1)
        self.assertIn("No such file", client.text())

    def test_bad_usage(self):
        for args, text in ((["register"], "--server is missing"), (["list", "--server", "x"], "--initiator is missing"),
                           (["sing", "--server", "x"], "none of register, list, watch"), ([], "is needed"),
                           (["list", "--esi", "-1"], "--esi")):
            done = subprocess.run([ISER_ISNS, *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertEqual(done.returncode, 2)
            self.assertIn(text, done.stdout.decode())


if __name__ == "__main__":
    main()
