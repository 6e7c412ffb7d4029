# SPDX-License-Identifier: BSD-2-Clause
"""The identity of a unit: serial number (VPD page 80h), NAA identifier and EUI-64 (page 83h)."""
import json
import re

from harness import ISERCTL, Daemon, Wire, main, refused, run, sparse
from test_config import IQN, Config, Configured

UUID = "f81d4fae-7dec-41d0-a765-00a0c91e6bf6"
LIO = "6001405f81d4fae7dec41d0a76500a0c"  # what LIO makes of the serial number UUID


class Names(Wire):
    """A raw initiator that reads the names of a unit."""

    def __init__(self, daemon, lun=0, target=None):
        super().__init__(daemon)
        self.lun = lun
        if target:
            self.KEYS += ("TargetName=" + target,)
        self.login()
        self.ready()

    def page(self, code):
        return self.ask([0x12, 1, code, 4, 0, 0] + [0] * 10, edtl=1024)[1]

    def names(self):
        """serial, naa, eui, t10; the length of each designator is checked by the next one (SPC-4 §7.8.6)."""
        found = {"serial": self.page(0x80)[4:].decode()}
        page = self.page(0x83)
        at = 4
        while at < len(page):
            kind, size = page[at + 1] & 0x3f, page[at + 3]
            if kind in (1, 2, 3):
                text = page[at + 4:at + 4 + size]
                found[{1: "t10", 2: "eui", 3: "naa"}[kind]] = text.decode() if kind == 1 else text.hex()
            at += 4 + size
        return found

    def attention(self):
        """The ASC and ASCQ of the unit attention of the session, or None."""
        status, sense = self.ask(bytes(16))
        return (sense[14], sense[15]) if status else None


def names(daemon):
    w = Names(daemon)
    found = w.names()
    w.close()
    return found


class Fields(Config):
    """uuid, serial, naa and eui of a backstore."""
    MORE = "portal-groups: {p: {listen: \"127.0.0.1:0\"}}\ntargets:\n  %sa: {auth-group: any, portal-groups: [p], luns: {0: d}}\n" % IQN

    def serve(self, fields, name="iserd.yaml"):
        d = Configured(self.write("backstores: {d: {store: \"ram:1M\"%s}}\n" % fields + self.MORE, name=name), 1)
        self.addCleanup(d.stop)
        return d

    def test_uuid(self):
        """The names follow from the field, so they are the same in another process."""
        found = names(self.serve(", uuid: " + UUID))
        self.assertEqual(found, {"serial": UUID.replace("-", ""), "naa": "381d4fae7dec41d0", "t10": "OPENISER" + UUID.replace("-", "")})

    def test_serial_as_lio(self):
        found = names(self.serve(", serial: " + UUID))
        self.assertEqual((found["serial"], found["naa"]), (UUID, LIO))

    def test_changes(self):
        """naa, eui and serial change at once, with INQUIRY DATA HAS CHANGED (SPC-4 §7.8.6); uuid does not."""
        text = "backstores: {d: {store: %s}}\n" % sparse(self.path("disk"), 1 << 20)
        d = Configured(self.write(text + self.MORE), 1)
        self.addCleanup(d.stop)
        w = Names(d)
        before = w.names()
        for change, expected in (("naa=naa." + LIO, {"naa": LIO, "serial": LIO}),
                                 ("eui=0025385a91b0326f", {"naa": LIO, "serial": LIO, "eui": "0025385a91b0326f"}),
                                 ("serial=S1", {"naa": LIO, "serial": "S1", "eui": "0025385a91b0326f"})):
            self.iserctl("backstore", "set", "d", change)
            self.assertEqual(w.attention(), (0x3f, 3))
            found = w.names()
            self.assertEqual({k: found[k] for k in expected}, expected)
        unit = json.loads(self.iserctl("--json", "luns"))[0]
        self.assertEqual((unit["serial"], unit["naa"], unit["eui"]), ("S1", LIO, "0025385a91b0326f"))
        self.assertIn("in use with other fields", self.iserctl("backstore", "set", "d", "uuid=" + UUID, status=1))
        self.iserctl("backstore", "set", "d", "serial=", "naa=", "eui=")
        self.assertEqual(w.attention(), (0x3f, 3))
        self.assertEqual(w.names(), before)
        self.assertIn("d: naa: 5: not an NAA identifier", self.iserctl("backstore", "set", "d", "naa=5", status=1))
        self.iserctl("lun", "add", IQN + "a/1", "store=ram:1M", "uuid=" + UUID)
        self.assertEqual(json.loads(self.iserctl("--json", "luns"))[1]["naa"], "381d4fae7dec41d0")
        w.close()

    def test_one_line(self):
        with Daemon("ram:1M,uuid=%s,naa=5000000000000001,eui=000000000000000000000001" % UUID, "null:1M,serial=S2") as d:
            found = names(d)
        self.assertEqual((found["serial"], found["naa"], found["eui"]), ("5000000000000001",) * 2 + ("000000000000000000000001",))
        self.assertIn("naa: 7: not an NAA identifier", refused("ram:1M,naa=7"))
        self.assertIn("given twice", refused("ram:1M,naa=5000000000000001,naa=5000000000000001"))

    def test_dump(self):
        """The dump has the fields in one form, and is read as the same configuration."""
        self.serve(", uuid: \"%s\", naa: \"0x%s\"" % (UUID.upper().replace("-", ""), LIO.upper()))
        text = self.iserctl("dump")
        self.assertRegex(text, "uuid: \"?%s" % UUID)
        self.assertRegex(text, "naa: \"?%s" % LIO)
        path = self.path("dump.yaml")
        with open(path, "w") as f:
            f.write(text)
        run([ISERCTL, "check", path])
        self.assertFalse(re.search("uuid|naa", run([ISERCTL, "diff", path, self.path("iserd.yaml")]).text))


if __name__ == "__main__":
    main()
