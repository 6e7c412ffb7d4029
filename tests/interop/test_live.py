# SPDX-License-Identifier: BSD-2-Clause
"""What initiators that we did not write see of a change of a running iserd: libiscsi, by its library."""
import ctypes
import re
import struct
import time

from harness import ISER, ISERCTL, Wire, main, patience, run
from test_alua import AO, STANDBY, UNAVAILABLE, Path
from test_config import IQN
from test_verbs import A, B, Live


class Libiscsi:
    """A session of libiscsi at one LUN."""

    def __init__(self, portal, target, lun=0, name="iqn.2026-01.org.example:libiscsi"):
        lib = self.lib = ctypes.CDLL("libiscsi.so.7")
        for f in ("iscsi_create_context", "iscsi_testunitready_sync", "iscsi_inquiry_sync", "iscsi_readcapacity16_sync",
                  "iscsi_reportluns_sync"):
            getattr(lib, f).restype = ctypes.c_void_p
        lib.iscsi_get_error.restype = ctypes.c_char_p
        self.lun = lun
        self.context = ctypes.c_void_p(lib.iscsi_create_context(name.encode()))
        lib.iscsi_set_targetname(self.context, target.encode())
        lib.iscsi_set_session_type(self.context, 2)  # ISCSI_SESSION_NORMAL
        lib.iscsi_set_noautoreconnect(self.context, 1)
        assert lib.iscsi_full_connect_sync(self.context, portal.encode(), lun) == 0, lib.iscsi_get_error(self.context)

    def close(self):
        self.lib.iscsi_logout_sync(self.context)
        self.lib.iscsi_destroy_context(self.context)

    def attention(self):
        """The name and code of the unit attention of TEST UNIT READY, as libiscsi reads them; None: there is none."""
        task = self.lib.iscsi_testunitready_sync(self.context, self.lun)
        assert task, self.lib.iscsi_get_error(self.context)
        status = ctypes.c_int.from_address(task).value  # the first member of struct scsi_task
        self.lib.scsi_free_scsi_task(ctypes.c_void_p(task))
        text = self.lib.iscsi_get_error(self.context).decode()
        if status == 0 or "NOT READY" in text:
            return None
        assert "UNIT_ATTENTION" in text, text
        return int(re.search(r"\((0x[0-9a-f]{4})\)", text)[1], 16)

    def attentions(self):
        found = []
        while True:
            found.append(self.attention())
            if found[-1] is None:
                return found[:-1]


CAPACITY, MODES, INQUIRY, LUNS, ACCESS = 0x2a09, 0x2a01, 0x3f03, 0x3f0e, 0x2a06


class Changes(Live):
    def changed(self, name, *changes):
        """A file with the configuration in force, and these changes."""
        text = self.iserctl("dump")
        for a, b in changes:
            self.assertIn(a, text)
            text = text.replace(a, b)
        with open(self.path(name), "w") as f:
            f.write(text)
        return self.path(name)


class Attentions(Changes):
    def session(self, target, lun=0, **more):
        s = Libiscsi(self.d.portal, target, lun, **more)
        self.addCleanup(s.close)
        s.attentions()
        return s

    def test_replaced_unit_spc4_6_6_1_sbc3_4_5(self):
        """lun replace: INQUIRY DATA HAS CHANGED, with another size also CAPACITY DATA HAS CHANGED, at every nexus of the LUN and
        at no other one."""
        self.iserctl("lun", "add", A + "/1", "store=ram:1M", "backstore=side")
        first, second = self.session(A), self.session(A, name="iqn.2026-01.org.example:second")
        side, other = self.session(A, 1, name="iqn.2026-01.org.example:side"), self.session(B)
        self.iserctl("lun", "replace", A + "/0", "store=ram:1M", "backstore=same")
        for s in first, second:
            self.assertEqual(s.attentions(), [INQUIRY])
        self.iserctl("lun", "replace", A + "/0", "store=ram:3M", "backstore=large")
        for s in first, second:
            self.assertEqual(s.attentions(), [CAPACITY, INQUIRY])
        self.iserctl("lun", "replace", A + "/0", "store=ram:3M", "block-size=4096", "backstore=blocks")
        for s in first, second:
            self.assertEqual(s.attentions(), [CAPACITY, INQUIRY])
        self.iserctl("lun", "replace", A + "/0", "store=ram:3M", "block-size=4096", "read-only=yes", "backstore=fixed")
        for s in first, second:
            self.assertEqual(s.attentions(), [MODES, INQUIRY])
        self.assertEqual((side.attentions(), other.attentions()), ([], []))
        # a new LUN is another matter
        self.iserctl("lun", "add", A + "/2", "backstore=two")
        self.assertEqual((first.attentions(), side.attentions(), other.attentions()), ([LUNS], [LUNS], []))

    def groups(self):
        """What REPORT TARGET PORT GROUPS of target A says."""
        p = Path(self.d)
        try:
            return p.groups()
        finally:
            p.close()


    def test_groups_spc4_5_16_2(self):
        """ALUA groups are added, changed and removed: each change is reported to libiscsi, sessions stay."""
        first, other = self.session(A), self.session(B)
        before = self.session_ids()
        self.iserctl("group", "add", "1", "ports=1,99", "preferred=yes")
        for s in first, other:
            self.assertEqual(s.attentions(), [MODES, ACCESS, INQUIRY])
        self.assertEqual(self.groups(), {1: (AO, 1, [1, 99])})
        self.iserctl("group", "add", "2", "ports=2", "state=standby")
        self.assertEqual(first.attentions(), [ACCESS])
        self.assertEqual(other.attentions(), [ACCESS, INQUIRY], "the port has a group now")
        self.iserctl("group", "set", "1", "state=unavailable", "preferred=no", "ports=1,98,99")
        self.assertEqual(first.attention(), ACCESS)
        self.assertEqual(self.groups(), {1: (UNAVAILABLE, 0, [1, 98, 99])})
        # the state of a group that an administrator or initiator has set stays, unless its field changes
        self.iserctl("group", "id=2", "state=optimized")
        self.iserctl("group", "set", "1", "state=optimized")
        self.assertEqual(self.groups(), {1: (AO, 0, [1, 98, 99])})
        self.assertEqual({g["id"]: g["state"] for g in self.json("groups")}, {1: "optimized", 2: "optimized"})
        self.iserctl("group", "set", "2", "state=")
        self.iserctl("group", "set", "2", "state=standby")
        self.assertEqual({g["id"]: g["state"] for g in self.json("groups")}, {1: "optimized", 2: "standby"})
        self.assertEqual(self.json("group", "show", "2")["state"], "standby")
        first.attentions()
        self.iserctl("group", "remove", "2")
        self.iserctl("group", "remove", "1")
        self.assertEqual(first.attentions(), [MODES, ACCESS, INQUIRY])
        self.assertEqual(self.json("groups"), [])
        self.assertEqual(self.session_ids(), before)

    def test_groups_of_a_file(self):
        """apply and SIGHUP change groups, all or nothing; what has an error changes none."""
        self.iserctl("group", "add", "1", "ports=1")
        self.assertIn("already a port of group 1", self.iserctl("group", "add", "2", "ports=1", status=1))
        new = self.changed("new.yaml", ("ports: [1]", "ports: [1, 7]\n    state: standby"))
        self.assertIn("alua-groups.1.state: standby", self.iserctl("diff", self.changed("now.yaml"), new))
        self.iserctl("apply", new)
        self.assertEqual(self.groups(), {1: (STANDBY, 0, [1, 7])})
        bad = self.changed("bad.yaml", ("1, 7]", "1, 8]"), ("ram:1M", "/nowhere/x"))
        self.assertIn("no such file", self.iserctl("apply", bad, status=1))
        self.assertEqual(self.groups(), {1: (STANDBY, 0, [1, 7])})


class Process(Changes):
    def set(self, *fields):
        self.iserctl("daemon", "set", *fields)

    def test_fields_of_daemon(self):
        """Limits, times, the form of the log and the negotiation change for what comes later; sessions stay."""
        w = self.logged_in()
        before = self.session_ids()
        self.set("max-sessions=1:1")
        self.assertIsNone(self.size(B))
        self.d.wait_for("too many sessions")
        self.set("max-sessions=")
        self.assertEqual(self.size(B), 2)
        self.set("slow-command=1")
        self.iserctl("backstore", "set", "one", "max-iops=1:1")
        for _ in range(3):
            w.read10(0, 1)
        self.d.wait_for("SLOW")
        self.iserctl("backstore", "set", "one", "max-iops=")
        self.set("error-recovery-level=1")
        other = Wire(self.d)
        other.ISID = b"\x80\x12\x34\x56\x00\x02"
        self.assertIn(b"ErrorRecoveryLevel=1", other.login("ErrorRecoveryLevel=1")[2])
        other.close()
        self.set("discovery-time=1")
        d = Wire(self.d)
        d.KEYS = tuple(k for k in d.KEYS if not k.startswith("SessionType")) + ("SessionType=Discovery",)
        d.login()
        self.d.wait_for("discovery session lasted too long")
        d.close()
        self.set("log-format=json", "log=info")
        self.size(B)
        self.d.wait_for('"event":"LOGIN"')
        self.assertEqual([x for x in self.session_ids() if x in before], before)
        w.ready()

    def test_what_needs_a_restart(self):
        """A refused field is named, and the other fields of the change are not in force either."""
        dump = self.iserctl("dump")
        for field, value in (("workers", "7"), ("pin", "yes"), ("spin", "5"), ("control", "/x"), ("state", "/x"), ("user", "root"),
                             ("address-block", "24:48"), ("port-id", "9"), ("metrics", "127.0.0.1:0"), ("allow-lost-reservations", "yes")):
            line = re.search(r"(?m)^  %s: .*\n" % field, dump)
            new = self.changed("new.yaml", ("store: ram:1M\n", "store: ram:1M\n    serial: S1\n"), (line[0] if line else "daemon:\n",
                               ("" if line else "daemon:\n") + "  %s: %s\n" % (field, value)))
            done = run([ISERCTL, "-s", self.ctl, "apply", new], check=False)
            self.assertEqual(done.returncode, 1, (field, done.text))
            self.assertRegex(done.text, r"daemon\.%s: .*needs a restart" % field)
            self.assertEqual(self.iserctl("dump"), dump)


class Scale(Live):
    def send_targets(self):
        """The TargetNames of all text responses (C bit: RFC 7143 §11.11.2) to SendTargets=All."""
        w = Wire(self.d)
        w.KEYS = tuple(k for k in w.KEYS if not k.startswith("SessionType")) + ("SessionType=Discovery",)
        w.login()
        text, itt, ttt, data = b"", None, 0xffffffff, b"SendTargets=All\0"
        while True:
            itt = w.pdu(0x44, 0x80, data, itt=itt, rest=struct.pack(">III", ttt, w.cmdsn, 1))
            op, head, part = w.recv()
            self.assertEqual(op, 0x24)
            text, ttt, data = text + part, struct.unpack(">I", head[20:24])[0], b""
            if head[1] & 0x80:
                break
        w.close()
        return re.findall(rb"TargetName=([^\0]+)\0", text)

    def test_16384_luns_and_4096_targets(self):
        """The largest configuration comes into force, changes by verbs, is served and leaves again, each within seconds."""
        targets, luns = 4096, 16384
        before = self.iserctl("dump")
        text = before.split("backstores:")[0] + "backstores:\n  one: {store: \"ram:1M\"}\n  two: {store: \"ram:2M\"}\n"
        text += "".join("  b%d: {store: \"null:1M\"}\n" % i for i in range(2, luns))
        text += "portal-groups:\n  front: {listen: \"127.0.0.1:0\"}\ntargets:\n"
        text += "".join("  %st%d: {auth-group: any, portal-groups: front, luns: {%s}}\n" % (
            IQN, t, ", ".join("%d: b%d" % (i, t * 4 + i) for i in range(4))) for t in range(1, targets))
        text += "  %sa: {auth-group: any, portal-groups: front, luns: {%s}}\n" % (IQN, ", ".join("%d: b%d" % (i, i) for i in range(2, luns)))
        path = self.path("large.yaml")
        with open(path, "w") as f:
            f.write(text)
        for args in (("apply", path), ("lun", "remove", "%st7/3" % IQN), ("lun", "add", "%st7/3" % IQN, "backstore=b9"),
                     ("target", "set", "%st9" % IQN, "alias=x"), ("group", "add", "1", "ports=1"), ("lun", "list"), ("luns",), ("stats",)):
            begin = time.monotonic()
            self.iserctl(*args)
            self.assertLess(time.monotonic() - begin, patience(8), args)
        self.assertEqual((self.size(IQN + "t4095", 3), self.size(A, luns - 1)), (1, 1))
        self.assertEqual(len(self.send_targets()), targets)
        begin = time.monotonic()
        with open(path, "w") as f:
            f.write(before)
        self.iserctl("apply", path)
        self.iserctl("backstore", "add", "last", "store=ram:1M")  # after all have been closed
        self.assertLess(time.monotonic() - begin, patience(8))
        self.assertEqual(len(self.json("backstore", "list")), 3)


if __name__ == "__main__":
    main()
