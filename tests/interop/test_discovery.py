#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""SendTargets by the address of the asker: iserd in a network namespace with two links, and initiators at both and on
the same machine. An initiator in this file builds its PDUs from bytes; libiser and libiscsi read the same answers."""
import ctypes
import os
import re
import shutil
import signal
import struct
import subprocess
import threading
import types
import unittest

from harness import ISER, ISERCTL, ISERD, Folder, Wire, io, main, patience, run, until

IQN = "iqn.2026-01.org.example:"
SECRET = "correct horse battery"
CLONE_NEWNET = 0x40000000


class Namespace:
    """A network namespace of this test."""

    def __init__(self, name):
        self.name = "openiser-%d-%s" % (os.getpid(), name)
        run(["ip", "netns", "add", self.name])
        self.ip("link", "set", "lo", "up")

    def ip(self, *args):
        run(["ip", "-n", self.name, *args])

    def remove(self):
        run(["ip", "netns", "del", self.name], check=False)

    def inside(self, function):
        """Calls a function whose sockets are of this namespace."""
        result = []

        def enter():
            with open("/run/netns/" + self.name) as f:
                if ctypes.CDLL(None, use_errno=True).setns(f.fileno(), CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), "setns")
            result.append(function())

        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        if not result:
            raise AssertionError("the function failed in %s" % self.name)
        return result[0]

    def run(self, command, **kw):
        return run(["ip", "netns", "exec", self.name, *command], **kw)

    def join(self, link, other, *addresses):
        """A cable from here to another namespace; one list of addresses for each end."""
        self.ip("link", "add", link, "type", "veth", "peer", "name", link, "netns", other.name)
        for end, own in zip((self, other), addresses):
            end.ip("link", "set", link, "addrgenmode", "none")
            end.ip("link", "set", link, "up")
            for address in own:
                end.ip("addr", "add", address, "dev", link, *(["nodad"] if ":" in address else []))


class Asker(Wire):
    """A discovery session, or a normal one if it names a target."""

    def __init__(self, address, name="asker", target=None):
        super().__init__(types.SimpleNamespace(address=address, target=None))
        self.KEYS = ("InitiatorName=" + IQN + name,
                     "SessionType=Discovery" if not target else "SessionType=Normal") + (("TargetName=" + IQN + target,) if target else ())
        data = b"".join(k.encode() + b"\0" for k in self.KEYS)
        head = struct.pack(">BBBBI", 0x43, 0x87, 0, 0, len(data)) + self.ISID + b"\0\0" + struct.pack(">IHHII", 0, 0, 0, self.cmdsn, 0)
        self.put(head.ljust(48, b"\0"), data)
        _, head, _ = self.recv()
        self.status = head[36] << 8 | head[37]

    def send_targets(self, value):
        """Returns {target: [address]} and the number of PDUs of the answer; None: SendTargets=Reject."""
        text, pdus, itt, ttt, data = b"", 0, None, 0xffffffff, b"SendTargets=%s\0" % value.encode()
        while True:
            itt = self.pdu(0x44, 0x80, data, itt=itt, rest=struct.pack(">III", ttt, self.cmdsn, 1))
            op, head, part = self.recv()
            assert op == 0x24, "PDU %02x" % op
            text, ttt, data, pdus = text + part, struct.unpack(">I", head[20:24])[0], b"", pdus + 1
            # §11.11.1, §11.11.2: F and C are never both set, and a tag asks for the rest
            assert (ttt == 0xffffffff) == bool(head[1] & 0x80) and head[1] & 0xc0 != 0xc0
            if head[1] & 0x80:
                break
        found = {}
        for pair in text.decode().split("\0")[:-1]:
            key, _, value = pair.partition("=")
            if key == "SendTargets":
                return None, pdus
            if key == "TargetName":
                assert value not in found
                found[value] = []
            else:
                assert key == "TargetAddress", key
                found[value_of(found)].append(value)
        return {name.removeprefix(IQN): a for name, a in found.items()}, pdus


def value_of(found):
    return list(found)[-1]


CONFIG = """version: 1
daemon: {control: %(ctl)s, io: %(io)s, log: info}
backstores:
  one: {store: "ram:1M"}
auth-groups:
  left: {addresses: ["10.77.1.0/24", "fd77:1::/64"]}
  six: {addresses: ["::/0"]}
  named: {initiators: ["%(iqn)snamed*"]}
  secret: {accounts: [{user: me, secret-file: %(secret)s}]}
portal-groups:
  front: {tag: 1, listen: ["10.77.1.1:3260", "[fd77:1::1]:3260", "169.254.77.1:3260", "[fe80::77:1%%left]:3260"]}
  back: {tag: 2, listen: "10.77.2.1:3260"}
  local: {tag: 3, listen: ["127.0.0.1:3260", "[::1]:3260"]}
  wild: {tag: 4, listen: "0.0.0.0:3270"}
  chap: {tag: 5, listen: "10.77.2.1:3261", discovery-auth: secret}
  all: {tag: 6, listen: "10.77.2.1:3262", discovery: all}
  none: {tag: 7, listen: "10.77.2.1:3263", discovery: none}
targets:
  %(iqn)severywhere: {auth-group: any, portal-groups: [front, back, local, wild, chap, all, none], luns: {0: one}}
  %(iqn)sfront: {auth-group: any, portal-groups: front, luns: {0: one}}
  %(iqn)sback: {auth-group: any, portal-groups: [back, all], luns: {0: one}}
  %(iqn)sleft: {auth-group: left, portal-groups: [front, back, local], luns: {0: one}}
  %(iqn)ssix: {auth-group: six, portal-groups: [front, local], luns: {0: one}}
  %(iqn)snamed: {auth-group: named, portal-groups: [front, back, all, none], luns: {0: one}}
  %(iqn)sclosed: {auth-group: none, portal-groups: [front, back, all], luns: {0: one}}
  %(iqn)ssecret: {auth-group: secret, portal-groups: [back, chap], luns: {0: one}}
"""

LEFT4, LEFT6 = "10.77.1.1:3260,1", "[fd77:1::1]:3260,1"
LINK4, LINK6 = "169.254.77.1:3260,1", "[fe80::77:1]:3260,1"
RIGHT = "10.77.2.1:3260,2"
LOCAL = ["127.0.0.1:3260,3", "[::1]:3260,3"]
# 0.0.0.0 is not listed: the portal group "wild" is listed at its own portal only
OTHERS = ["10.77.2.1:3261,5", "10.77.2.1:3262,6", "10.77.2.1:3263,7"]


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("ip"), "needs root and ip to make network namespaces")
class Discovery(Folder):
    def setUp(self):
        super().setUp()
        self.spaces = []
        self.addCleanup(lambda: [s.remove() for s in self.spaces])
        self.here, self.left, self.right = (self.space(n) for n in ("target", "left", "right"))
        self.here.join("left", self.left, ("10.77.1.1/24", "169.254.77.1/16", "fd77:1::1/64", "fe80::77:1/64"),
                       ("10.77.1.2/24", "169.254.77.2/16", "fd77:1::2/64", "fe80::77:2/64"))
        self.here.join("right", self.right, ("10.77.2.1/24",), ("10.77.2.2/24",))
        self.serve(CONFIG)

    def space(self, name):
        self.spaces.append(Namespace(name))
        return self.spaces[-1]

    def serve(self, config):
        secret, self.ctl = self.path("secret"), self.path("ctl")
        with open(secret, "w") as f:
            os.fchmod(f.fileno(), 0o600)
            f.write(SECRET)
        with open(self.path("iserd.yaml"), "w") as f:
            f.write(config % {"ctl": self.ctl, "io": io(), "secret": secret, "iqn": IQN})
        log = open(self.path("log"), "w")
        self.addCleanup(log.close)
        self.proc = subprocess.Popen(["ip", "netns", "exec", self.here.name, ISERD, "--config", self.path("iserd.yaml")],
                                     stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(self.end)
        until(lambda: self.proc.poll() is not None or run([ISERCTL, "-s", self.ctl, "version"], check=False).returncode == 0, self.log)
        self.assertIsNone(self.proc.poll(), self.log())

    def log(self):
        with open(self.path("log")) as f:
            return f.read()

    def end(self):
        self.proc.send_signal(signal.SIGTERM)
        self.assertEqual(self.proc.wait(timeout=patience(20)), 0, self.log())

    def ask(self, space, host, value="All", port=3260, name="asker", target=None):
        def whole():
            asker = Asker((host, port), name, target)
            try:
                return asker.status or asker.send_targets(value)[0]
            finally:
                asker.close()
        return space.inside(whole)

    def test_by_the_address_of_the_asker(self):
        """Only portals that the asker can reach, its own first, and only targets that it may see."""
        everywhere = [LEFT4, LEFT6, RIGHT] + OTHERS
        self.assertEqual(self.ask(self.left, "10.77.1.1"), {
            "everywhere": everywhere, "front": [LEFT4, LEFT6], "left": [LEFT4, LEFT6, RIGHT]})
        self.assertEqual(self.ask(self.left, "fd77:1::1"), {
            "everywhere": [LEFT6, LEFT4, RIGHT] + OTHERS, "front": [LEFT6, LEFT4], "left": [LEFT6, LEFT4, RIGHT], "six": [LEFT6, LEFT4]})
        self.assertEqual(self.ask(self.right, "10.77.2.1"), {
            "everywhere": [RIGHT, LEFT4, LEFT6] + OTHERS, "back": [RIGHT, OTHERS[1]], "secret": [RIGHT, OTHERS[0]]})

    def test_link_local(self):
        """Portals of the link: to initiators that use one, of the same kind and zone, which RFC 4007 keeps here."""
        got = self.ask(self.left, "169.254.77.1")
        self.assertEqual(got["front"], [LINK4, LEFT4, LEFT6])
        self.assertNotIn("left", got)     # its address list has no address of the link
        got = self.ask(self.left, "fe80::77:1%left")
        self.assertEqual(got["front"][0], LINK6)
        self.assertNotIn(LINK4, got["front"])
        self.assertIn("six", got)
        # libiser puts its own zone to the address
        text = self.ls(self.left, "[fe80::77:1%left]:3260").text
        self.assertIn("[fe80::77:1%left]:3260,1", text)

    def test_announced_address(self):
        """A portal group that a router translates reports the announced addresses only, at once."""
        def announce(value):
            run([ISERCTL, "-s", self.ctl, "portal", "set", "front", "announce=" + value])
        announce("203.0.113.9:4260,[2001:db8::9]:4260")
        there = ["203.0.113.9:4260,1", "[2001:db8::9]:4260,1"]
        self.assertEqual(self.ask(self.left, "10.77.1.1")["front"], there)
        self.assertEqual(self.ask(self.right, "10.77.2.1")["everywhere"], [RIGHT] + there + OTHERS)
        self.assertIn("203.0.113.9:4260", run([ISERCTL, "-s", self.ctl, "targets"]).text)
        announce("")
        self.assertEqual(self.ask(self.left, "10.77.1.1")["front"], [LEFT4, LEFT6])

    def test_on_the_same_machine(self):
        """All portals that need no zone, loopback addresses too."""
        for host, own in (("127.0.0.1", LOCAL[0]), ("::1", LOCAL[1])):
            got = self.ask(self.here, host)
            self.assertEqual(got["everywhere"][0], own)
            self.assertEqual(set(got["everywhere"]), {LEFT4, LEFT6, LINK4, RIGHT, *LOCAL, *OTHERS})
            self.assertEqual(len(got["everywhere"]), 9)
            self.assertNotIn("left", got)
        # from another machine no loopback address is listed
        self.assertFalse([a for a in self.ask(self.right, "10.77.2.1")["everywhere"] if a.startswith(("127.", "[::1]"))])

    def test_one_target_by_name(self):
        self.assertEqual(self.ask(self.left, "10.77.1.1", IQN + "front"), {"front": [LEFT4, LEFT6]})
        self.assertEqual(self.ask(self.left, "10.77.1.1", IQN.upper() + "FRONT"), {"front": [LEFT4, LEFT6]})
        for name in ("closed", "named", "none", "six"):
            self.assertEqual(self.ask(self.left, "10.77.1.1", IQN + name), {}, name)
        self.assertEqual(self.ask(self.right, "10.77.2.1", IQN + "left"), {})
        self.assertEqual(self.ask(self.left, "10.77.1.1", ""), {})   # the empty form needs a normal session

    def test_normal_session(self):
        """The empty form and the own name give the own target; All is rejected (RFC 7143, Appendix C)."""
        self.assertEqual(self.ask(self.left, "10.77.1.1", "", target="left"), {"left": [LEFT4, LEFT6, RIGHT]})
        self.assertEqual(self.ask(self.left, "10.77.1.1", IQN + "left", target="left"), {"left": [LEFT4, LEFT6, RIGHT]})
        self.assertEqual(self.ask(self.left, "10.77.1.1", IQN + "front", target="left"), {})
        self.assertIsNone(self.ask(self.left, "10.77.1.1", "All", target="left"))
        self.assertEqual(self.ask(self.right, "10.77.2.1", "", target="left"), 0x0203)  # not from this address

    def test_initiator_names_and_discovery(self):
        self.assertIn("named", self.ask(self.right, "10.77.2.1", name="named-1"))
        self.assertNotIn("named", self.ask(self.right, "10.77.2.1", name="other"))
        everything = self.ask(self.right, "10.77.2.1", port=3262)
        self.assertEqual(set(everything), {"everywhere", "back", "named", "closed"})
        self.assertEqual(self.ask(self.right, "10.77.2.1", port=3263), {})
        # a portal group at all addresses lists the one to which the asker connected
        self.assertEqual(self.ask(self.left, "10.77.1.1", port=3270)["everywhere"][0], "10.77.1.1:3270,4")
        self.assertEqual(self.ask(self.right, "10.77.2.1", port=3270)["everywhere"][0], "10.77.2.1:3270,4")

    def ls(self, space, portal, user=None, password=SECRET, check=True):
        env = dict(os.environ, **({"LIBISCSI_CHAP_USERNAME": user, "LIBISCSI_CHAP_PASSWORD": password} if user else {}))
        return space.run([ISER, "ls", portal], env=env, check=check)

    def test_chap(self):
        """Discovery with CHAP, by libiser."""
        self.assertEqual(self.ask(self.right, "10.77.2.1", port=3261), 0x0201)
        self.assertIn(IQN + "secret", self.ls(self.right, "10.77.2.1:3261", "me").text)
        self.assertNotEqual(self.ls(self.right, "10.77.2.1:3261", "me", "wrong horse battery", check=False).returncode, 0)
        self.assertNotEqual(self.ls(self.right, "10.77.2.1:3261", check=False).returncode, 0)

    @unittest.skipUnless(shutil.which("iscsi-ls"), "iscsi-ls is missing: install libiscsi-bin")
    def test_other_readers(self):
        """libiser and libiscsi find the same targets."""
        want = {"everywhere", "front", "left"}
        for command in ([ISER, "ls", "10.77.1.1:3260"], ["iscsi-ls", "iscsi://10.77.1.1:3260"]):
            text = self.left.run(command, check=False).text
            self.assertEqual(set(re.findall(re.escape(IQN) + r"([a-z]+)", text)), want, text)


class Many(Discovery):
    """An answer in many PDUs."""
    TARGETS = 1500

    def serve(self, config):
        more = "".join("  %%(iqn)st%d: {auth-group: %s, portal-groups: [front, back], luns: {}}\n" % (
            i, "left" if i % 3 == 0 else "any") for i in range(self.TARGETS))
        super().serve(config + more)

    def test_many_pdus(self):
        for space, host, n in ((self.left, "10.77.1.1", self.TARGETS), (self.right, "10.77.2.1", self.TARGETS * 2 // 3)):
            def whole():
                asker = Asker((host, 3260))
                try:
                    return asker.send_targets("All")
                finally:
                    asker.close()
            got, pdus = space.inside(whole)
            names = [t for t in got if re.fullmatch(r"t\d+", t)]
            self.assertEqual(len(names), n)
            self.assertGreater(pdus, 10)
            own = [LEFT4, LEFT6, RIGHT] if n == self.TARGETS else [RIGHT, LEFT4, LEFT6]
            for name in names:
                self.assertEqual(got[name], own)

    for _name in [n for n in dir(Discovery) if n.startswith("test_")]:
        locals()[_name] = None    # once is enough
    del _name


if __name__ == "__main__":
    main()
