# SPDX-License-Identifier: BSD-2-Clause
"""The identity of a unit: serial number (VPD page 80h), NAA identifier and EUI-64 (page 83h)."""
import json
import os
import re
import shutil
import socket
import subprocess
import unittest

import test_nbd_store
from harness import ISERCTL, ISERD, Daemon, Folder, Wire, main, need, patience, quiet_port, refused, run, sparse, until
from test_config import IQN, Config, Configured
from test_protection import loop_device
from test_reserve import APTPL, EA, GOOD, REGISTER, RESERVE, Initiator

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


def derived(text):
    """The UUID that iserd derived of a text: FNV-1a with two seeds and a final mix, version 8."""
    found = b""
    for h in 0xcbf29ce484222325, 0x84222325cbf29ce4:
        for c in text.encode():
            h = (h ^ c) * 0x100000001b3 % (1 << 64)
        h = (h ^ h >> 32) * 0xd6e8feb86659fd93 % (1 << 64)
        found += (h ^ h >> 32).to_bytes(8, "big")
    found = bytearray(found)
    found[6] = 0x80 | found[6] & 15
    found[8] = 0x80 | found[8] & 63
    return found.hex()


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

    PAIR = "backstores: {d: {store: \"ram:1M\", %s}, e: {store: \"ram:2M\", %s}}\n"

    def test_equal(self):
        """Two units with one identity or one name, which initiators would take for one disk: at the start, by a check and by a change."""
        for one, two, what in (("uuid: " + UUID, "uuid: " + UUID, "uuid " + UUID),
                               ("serial: S1", "serial: S1", "serial number S1"),
                               ("serial: " + UUID, "naa: " + LIO, "NAA identifier " + LIO),
                               ("uuid: " + UUID, "naa: 381d4fae7dec41d0", "NAA identifier 381d4fae7dec41d0"),
                               ("naa: 5000000000000001, serial: S1", "naa: 5000000000000001, serial: S2", "NAA identifier 5000000000000001"),
                               ("eui: 0025385a91b0326f, serial: S1", "eui: 0025385a91b0326f, serial: S2", "EUI-64 0025385a91b0326f")):
            path = self.write(self.PAIR % (one, two) + self.MORE)
            wanted = "backstore e: its %s is that of backstore d, so initiators would take both for one disk; give each its own" % what
            for command, status in ((ISERD, "--config", path), 3), ((ISERD, "--config", path, "--check"), 2), ((ISERCTL, "check", path), 1):
                done = run(command, check=False)
                self.assertEqual(done.returncode, status, done.text)
                self.assertIn(wanted, done.text)
                self.assertEqual(done.text.count("is that of backstore"), 1)
        # other vendors give other names
        self.addCleanup(Configured(self.write(self.PAIR % ("serial: S1, naa: 5000000000000001", "serial: S1, vendor: ACME, naa: 5000000000000002") + self.MORE), 1).stop)
        self.assertRegex(refused("ram:1M,serial=S1", "ram:1M,serial=S1", status=3), "backstore lun1: its serial number S1 is that of backstore lun0")

    def test_change_to_equal(self):
        self.serve("")
        naa = json.loads(self.iserctl("--json", "luns"))[0]["naa"]
        for fields in ("naa=" + naa,), ("store=ram:1M", "uuid=" + json.loads(self.iserctl("--json", "luns"))[0]["uuid"]):
            for more in (), ("--dry-run",):
                text = self.iserctl("backstore", "add", "e", *(("store=ram:2M",) if len(fields) == 1 else ()), *fields, *more, status=1)
                self.assertRegex(text, "backstore e: its .* is that of backstore d, so initiators would take both for one disk")
        self.iserctl("backstore", "add", "e", "store=ram:2M", "naa=5000000000000001")
        for more in (), ("--dry-run",):
            self.assertIn("NAA identifier 5000000000000001 is that of backstore d", self.iserctl("backstore", "set", "d", "naa=5000000000000001", *more, status=1))
        self.assertEqual([u["naa"] for u in json.loads(self.iserctl("--json", "luns"))], [naa, "5000000000000001"])
        # the store of a name may change, and two may swap their names
        self.iserctl("backstore", "set", "e", "naa=", "serial=S1")
        self.iserctl("backstore", "set", "d", "naa=5000000000000001")

    def test_one_file_twice(self):
        """Where one file may be two units, they have one identity; it is said once."""
        disk = sparse(self.path("disk"), 1 << 20)
        with Daemon("--shared", disk, disk) as d:
            self.assertEqual(Names(d, 0).names(), Names(d, 1).names())
            self.assertEqual(d.messages().count("backstore lun1: is the store of backstore lun0, and the same disk for initiators"), 1)

    @unittest.skipUnless(os.geteuid() == 0, "needs root for loop devices")
    def test_file_and_its_loop_device(self):
        disk = sparse(self.path("disk"), 1 << 20)
        loop = loop_device(self, disk)
        self.assertRegex(refused(disk, loop, status=3), "backstore lun1: has the uuid [-0-9a-f]{36} of backstore lun0, so .*; if it is one store, give it once")
        Daemon("--read-only", disk, loop).stop()

    def test_nothing_is_written_by_a_check(self):
        """iserd --check, iserctl check and a dry run give no identity to a file."""
        disk = sparse(self.path("disk"), 1 << 20)
        self.serve("")
        path = self.write("backstores: {d: {store: \"ram:1M\"}, e: {store: %s}}\n" % disk + self.MORE, name="new.yaml")
        run([ISERD, "--config", path, "--check"])
        run([ISERCTL, "check", path])
        self.iserctl("apply", "--dry-run", path)
        self.iserctl("backstore", "add", "e", "store=" + disk, "--dry-run")
        self.assertEqual(os.listxattr(disk), [])
        self.iserctl("backstore", "add", "e", "store=" + disk)
        self.assertEqual(os.listxattr(disk), [ATTRIBUTE])

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


ATTRIBUTE = "user.openiser.identity"
root = unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare"), "needs root to mount")


class Kept(Folder):
    """An identity that is made once, and kept with the store."""

    def setUp(self):
        super().setUp()
        self.state = self.path("state")

    def disk(self, name="disk.img", size=1 << 20):
        return sparse(self.path(name), size)

    def served(self, lun, *args, through=(), warning=None):
        """Serves the LUN once; returns the UUID of its identity, which the serial number is."""
        with Daemon(*args, lun, through=through) as d:
            found = names(d)
            messages = [x for x in d.messages().splitlines() if x.startswith("iserd: ")]
        self.assertEqual(found["naa"][1:], found["serial"][1:16])
        if warning:
            self.assertEqual(len(messages), 1, messages)
            self.assertRegex(messages[0], warning)
        else:
            self.assertEqual(messages, [])
        return found["serial"]

    def keeps(self, uuid):
        """The end of a warning: what the administrator gives to keep this identity."""
        return ",uuid=" + "-".join((uuid[:8], uuid[8:12], uuid[12:16], uuid[16:20], uuid[20:]))

    def inside(self, *mounts):
        """Runs iserd with these mounts, which no other process sees."""
        return ["unshare", "--mount", "sh", "-c", " && ".join([*mounts, 'exec "$@"']), "sh"]

    def test_renamed(self):
        disk = self.disk()
        uuid = self.served(disk)
        os.rename(disk, self.path("other.img"))
        self.assertEqual(self.served(self.path("other.img")), uuid)
        self.assertEqual(self.served(self.path("other.img"), "--read-only"), uuid)

    def test_copied(self):
        """cp -a, rsync -X and tar --xattrs copy the attribute; the line of the warning keeps the old identity."""
        disk, copy = self.disk(), self.path("copy.img")
        uuid = self.served(disk)
        run(["cp", "-a", disk, copy])
        self.assertEqual(os.getxattr(copy, ATTRIBUTE), os.getxattr(disk, ATTRIBUTE))
        other = self.served(copy, warning="so the unit has a new identity, without .*; %s keeps the old one" % self.keeps(uuid))
        self.assertNotEqual(other, uuid)
        self.assertEqual(self.served(copy), other)
        self.assertEqual(self.served(disk), uuid)
        os.remove(disk)
        self.assertEqual(self.served(copy + self.keeps(uuid)), uuid)

    @root
    def test_reflink(self):
        fs, disk = self.file_system("xfs", 320), self.path("mnt/disk.img")
        sparse(disk, 1 << 20)
        uuid = self.served(disk)
        self.assertIn(b" fs=", os.getxattr(disk, ATTRIBUTE))
        run(["cp", "--reflink=always", "--preserve=all", disk, disk + ".2"])
        self.assertNotEqual(self.served(disk + ".2", warning="new identity"), uuid)
        run(["umount", self.path("mnt")])
        run(["mount", "-o", "loop", fs, self.path("mnt")])
        self.assertEqual(self.served(disk), uuid)

    def file_system(self, kind, mib, *more):
        """Mounts a new file system at mnt; returns its image."""
        if not shutil.which("mkfs." + kind):
            self.skipTest("mkfs.%s is missing" % kind)
        image = sparse(self.path(kind), mib << 20)
        os.mkdir(self.path("mnt"))
        run(["mkfs." + kind, "-q", *more, image])
        if run(["mount", "-o", "loop", image, self.path("mnt")], check=False).returncode:
            self.skipTest("no %s, or no loop devices" % kind)
        self.addCleanup(run, ["umount", self.path("mnt")], check=False)
        return image

    @root
    def test_machines(self):
        """Two machines, or containers, with images at one path: without a machine-id, and with one that a template gave to both."""
        for machine in "", "0123456789abcdef0123456789abcdef\n":
            found = set()
            with open(self.path("id"), "w") as f:
                f.write(machine)
            for name in "a", "b":
                os.makedirs(self.path(name), exist_ok=True)
                sparse(self.path(name + "/disk.img"), 1 << 20)
                inside = self.inside("mount --bind %s /etc/machine-id" % self.path("id"), "mount --bind %s /mnt" % self.path(name))
                found.add(self.served("/mnt/disk.img", through=inside))
                self.assertIn(self.served("/mnt/disk.img", through=inside), found)
                os.remove(self.path(name + "/disk.img"))
            self.assertEqual(len(found), 2)

    @root
    def test_layers(self):
        """Two containers of one image with the file, which each copies up when it opens the file for writing."""
        for name in "lower", "a", "b", "work.a", "work.b":
            os.mkdir(self.path(name))
        lower = sparse(self.path("lower/disk.img"), 1 << 20)
        first = self.served(lower)
        found = []
        for name in "a", "b":
            inside = self.inside("mount -t overlay overlay -o lowerdir={0}/lower,upperdir={0}/{1},workdir={0}/work.{1} /mnt".format(self.dir, name))
            if run([*inside, "true"], check=False).returncode:
                self.skipTest("no overlayfs")
            found.append(self.served("/mnt/disk.img", through=inside, warning=self.keeps(first)))
            self.assertEqual(self.served("/mnt/disk.img", through=inside), found[-1])
        self.assertEqual(len({first, *found}), 3)
        self.assertEqual(self.served(lower), first)
        # read-only it is not copied, which an attribute would cause
        os.removexattr(lower, ATTRIBUTE)
        os.mkdir(self.path("c"))
        os.mkdir(self.path("work.c"))
        inside = self.inside("mount -t overlay overlay -o lowerdir={0}/lower,upperdir={0}/c,workdir={0}/work.c /mnt".format(self.dir))
        self.served("/mnt/disk.img", "--read-only", through=inside, warning="no extended attribute can be written")
        self.assertEqual(os.listdir(self.path("c")), [])

    @root
    def test_read_only_file_system(self):
        self.disk()
        inside = self.inside("mount --bind {0} /mnt".format(self.dir), "mount -o remount,bind,ro /mnt")
        disk, args = "/mnt/disk.img", ("--read-only",)
        one = self.served(disk, *args, through=inside, warning=r"Read-only file system.*another disk after each start; give it ,uuid=")
        two = self.served(disk, *args, through=inside, warning="another disk")
        self.assertNotEqual(one, two)
        args += ("--state", self.path("../state%d" % os.getpid()))
        self.addCleanup(shutil.rmtree, args[-1])
        one = self.served(disk, *args, through=inside)
        self.assertEqual(self.served(disk, *args, through=inside), one)
        # the file has moved, and can be written: the identity moves into it
        os.rename(self.path("disk.img"), self.path("moved.img"))
        self.assertEqual(self.served(self.path("moved.img"), *args), one)
        self.assertEqual(self.served(self.path("moved.img")), one)

    @root
    def test_memory_file_system(self):
        """tmpfs has extended attributes since Linux 6.6; before, the state directory has the identity."""
        os.mkdir(self.path("mnt"))
        run(["mount", "-t", "tmpfs", "none", self.path("mnt")])
        self.addCleanup(run, ["umount", self.path("mnt")])
        disk = sparse(self.path("mnt/disk.img"), 1 << 20)
        uuid = self.served(disk, "--state", self.state)
        self.assertEqual(self.served(disk, "--state", self.state), uuid)

    @root
    def test_full_file_system(self):
        """An attribute that finds no room."""
        self.file_system("ext4", 8, "-I", "128")
        disk = sparse(self.path("mnt/disk.img"), 1 << 20)
        with self.assertRaises(OSError), open(self.path("mnt/fill"), "wb") as f:
            while True:
                f.write(bytes(1024))
                f.flush()
        self.served(disk, "--buffered", warning="No space left on device.*,uuid=")
        uuid = self.served(disk, "--buffered", "--state", self.state)
        os.remove(self.path("mnt/fill"))
        self.assertEqual(self.served(disk, "--buffered", "--state", self.state), uuid)
        self.assertEqual(self.served(disk, "--buffered"), uuid)

    @root
    @need("setpriv")
    def test_foreign_file(self):
        """A file that iserd may read only, since it belongs to another user."""
        disk = self.disk()
        os.chmod(disk, 0o644)
        for folder in self.dir, os.path.dirname(self.dir):
            os.chmod(folder, 0o755)
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        self.served(disk, "--read-only", through=user, warning=r"\((Permission denied|Operation not permitted)\)")
        os.mkdir(self.state, 0o700)
        os.chown(self.state, 65534, 65534)
        uuid = self.served(disk, "--read-only", "--state", self.state, through=user)
        self.assertEqual(self.served(disk, "--read-only", "--state", self.state, through=user), uuid)

    def test_state_removed(self):
        """The attribute alone is enough, and so is the state directory alone."""
        disk = self.disk()
        uuid = self.served(disk, "--state", self.state)
        shutil.rmtree(self.state)
        self.assertEqual(self.served(disk, "--state", self.state), uuid)
        os.removexattr(disk, ATTRIBUTE)
        self.assertEqual(self.served(disk, "--state", self.state), uuid)
        self.assertIn(uuid[:8].encode(), os.getxattr(disk, ATTRIBUTE))

    def test_restored(self):
        """A restore without extended attributes: the state directory knows what was there."""
        disk = self.disk()
        uuid = self.served(disk, "--state", self.state)
        os.rename(disk, disk + ".lost")
        self.disk()
        other = self.served(disk, "--state", self.state, warning="another file than at an earlier start.*%s keeps" % self.keeps(uuid))
        self.assertNotEqual(other, uuid)
        self.assertEqual(self.served(disk, "--state", self.state), other)

    def test_restored_said_before(self):
        """A check, a dry run, the answer of a verb and the events have the line of the start, and a check writes nothing."""
        disk = self.disk()
        path = self.path("iserd.yaml")
        start = "version: 1\ndaemon: {control: %s, state: %s}\n" % (self.path("ctl"), self.state)
        rest = "  r: {store: \"ram:1M\"}\nportal-groups: {p: {listen: \"127.0.0.1:0\"}}\ntargets: {%sa: {auth-group: any, portal-groups: [p], luns: {0: r%s}}}\n"
        uuid = self.served(disk, "--state", self.state)
        ctl = [ISERCTL, "-s", self.path("ctl")]
        plain = self.keeps(uuid)[6:]
        said = r"so the unit has a new identity, without the persistent reservations and saved mode pages of the old one; uuid: %s keeps" % plain
        for copied, why in (True, "was made for another file or machine"), (False, "another file than at an earlier start"):
            os.rename(disk, disk + ".old")
            run(["cp", "--sparse=always", "--preserve=all" if copied else "--preserve=mode", disk + ".old", disk])
            os.remove(disk + ".old")
            before = [os.listxattr(disk), open(self.path("state/identities"), "rb").read()]
            with open(path, "w") as f:
                f.write(start + "backstores:\n  d: {store: %s}\n" % disk + rest % (IQN, ", 1: d"))
            for command in [ISERD, "--config", path, "--check"], [ISERCTL, "check", path]:
                self.assertRegex(run(command).text, r"iserd.yaml:4:6: warning: backstore d: %s: .*%s.*%s" % (disk, why, said))
            with open(path, "w") as f:
                f.write(start + "backstores:\n" + rest % (IQN, ""))
            d = Configured(path, 1)
            self.addCleanup(d.stop)
            events = subprocess.Popen(ctl + ["events", "count=1"], stdout=subprocess.PIPE)
            self.addCleanup(events.stdout.close)
            self.addCleanup(events.kill)
            add = ["lun", "add", IQN + "a/1", "store=" + disk]
            for more in ["--dry-run"], ["--dry-run", "--json"]:
                self.assertRegex(run(ctl + more + add).text, said)
            self.assertEqual([os.listxattr(disk), open(self.path("state/identities"), "rb").read()], before)
            self.assertNotIn("new identity", d.messages())
            until(lambda: json.loads(run(ctl + ["--json", "status"]).text), "iserd")
            answer = json.loads(run(ctl + ["--json"] + add).text)
            self.assertEqual([c["change"] for c in answer].count("warning"), 1)
            self.assertRegex([c["text"] for c in answer if c["change"] == "warning"][0], said)
            self.assertRegex(events.stdout.read().decode(), said)
            self.assertRegex(d.messages(), said)
            uuid = json.loads(run(ctl + ["--json", "luns"]).text)[1]["uuid"]
            said = said.replace(plain, uuid)
            plain = uuid
            d.stop()

    def test_identity_of_another_backstore(self):
        """No line is offered that would give two backstores one identity, whichever comes first."""
        disk, copy = self.disk(), self.path("copy.img")
        uuid = self.served(disk)
        for one, two, name in (disk, copy, "lun0"), (copy, disk, "lun1"):
            run(["cp", "-a", disk, copy])
            with Daemon(one, two) as d:
                self.assertIn("of the old one; backstore %s has that identity" % name, d.messages())
                self.assertNotIn("keeps the old one", d.messages())
            os.remove(copy)
        copies = [self.path("copy%d" % i) for i in range(3)]
        for path in copies:
            run(["cp", "-a", disk, path])
        with Daemon(*copies, disk) as d:
            self.assertEqual(d.messages().count("of the old one; backstore lun3 has that identity"), 3)
        run(["cp", "-a", disk, copy])
        self.served(copy, warning="keeps the old one")
        run(["cp", "-a", disk, copy])
        with Daemon(copy, "ram:1M" + self.keeps(uuid)) as d:
            self.assertIn("backstore lun1 has that identity", d.messages())

    def test_attributes(self):
        """Other bytes are replaced; an identity of a later version is not."""
        disk = self.disk()
        for text in b"", b"\xff" * 3000, b"1 7", b"1 f81d4fae-7dec-41d0-a765-00a0c91e6bf6":
            os.setxattr(disk, ATTRIBUTE, text)
            uuid = self.served(disk, warning="is damaged; the unit has a new identity")
            self.assertFalse(uuid.startswith("f81d4fae"))
            self.assertEqual(self.served(disk), uuid)
        os.setxattr(disk, ATTRIBUTE, b"2 of a later version")
        self.assertRegex(refused(disk), "written by a later version of iserd; use that version, or give an identity")
        self.assertEqual(os.getxattr(disk, ATTRIBUTE), b"2 of a later version")
        self.assertEqual(self.served(disk + self.keeps(uuid)), uuid)

    def test_at_once(self):
        """Two iserd that start on one file agree."""
        for _ in range(5):
            disk = self.disk()
            both = [Daemon("--shared", disk, ready=False) for _ in range(2)]
            for d in both:
                self.addCleanup(d.stop)
                d._read_urls(1)
            self.assertEqual(names(both[0]), names(both[1]))
            for d in both:
                d.stop()
            os.remove(disk)

    @root
    def test_loop_devices_renumbered(self):
        """Loop devices in another order: an identity, and a persistent reservation, stay with the file."""
        a, b = self.disk("a.img"), self.disk("b.img")
        uuid = {a: self.served(a, "--state", self.state), b: self.served(b, "--state", self.state)}
        one, two = loop_device(self, a), loop_device(self, b)
        self.assertEqual(self.served(one, "--state", self.state), uuid[a])
        with Daemon("--state", self.state, one, two) as d:
            w = Initiator(d)
            self.assertEqual(w.out(REGISTER, new=7, flags=APTPL), GOOD)
            self.assertEqual(w.out(RESERVE, EA, key=7), GOOD)
            w.close()
        run(["losetup", "--detach", one, two])
        run(["losetup", two, a])
        run(["losetup", one, b])
        self.assertEqual(self.served(one, "--state", self.state), uuid[b])
        with Daemon("--state", self.state, one, two) as d:
            for lun, expected in enumerate((None, (EA, 7))):
                w = Initiator(d, lun=lun)
                self.assertEqual(w.reservation(), expected)
                w.close()
        run(["losetup", "--detach", two])
        run(["losetup", "--offset", "65536", two, a])
        self.assertNotEqual(self.served(two, "--state", self.state), uuid[a])

    @root
    def test_replaced_under_its_link(self):
        a, b, link = self.disk("a.img"), self.disk("b.img"), self.path("link")
        one, two = loop_device(self, a), loop_device(self, b)
        found = []
        for name in one, two, one, two:
            if os.path.lexists(link):
                os.remove(link)
            os.symlink(name, link)
            found.append(self.served(link, "--state", self.state))
        self.assertEqual(found[:2], found[2:])
        self.assertNotEqual(found[0], found[1])
        self.assertIn(found[0][:8].encode(), os.getxattr(a, ATTRIBUTE))

    def test_takeover(self):
        """A live upgrade hands over what nothing keeps; another store does not get it."""
        args = ("--control", self.path("control"), "--listen", "127.0.0.1:%d" % quiet_port())
        disk = self.disk()
        d = Daemon(*args, disk, "null:1M", "cd:" + self.disk("iso"))
        found = [Names(d, lun) for lun in range(3)]
        before = [self.named(d, lun) for lun in range(3)]
        for w in found:
            w.close()
        for luns, same in (((disk, "null:1M", "cd:" + self.path("iso")), 3), ((disk, "null:2M"), 1)):
            new = Daemon(*args, "--takeover", *luns)
            self.assertEqual(d.proc.wait(patience(10)), 0)
            d.stop()
            d = new
            after = [self.named(d, lun) for lun in range(len(luns))]
            self.assertEqual(after[:same], before[:same])
            self.assertFalse(set(after[same:]) & set(before))
        d.stop()

    @root
    def test_takeover_of_a_part_of_a_file(self):
        """A loop device with an offset, whose file can have no attribute."""
        os.mkdir(self.path("ro"))
        disk, loop = self.disk("ro/disk.img"), run(["losetup", "--find"]).text.strip()
        if not loop or run(["losetup", "--offset", "65536", loop, disk], check=False).returncode:
            self.skipTest("no loop devices")
        self.addCleanup(run, ["losetup", "--detach", loop])
        inside = self.inside("mount --bind {0} {0}".format(self.path("ro")), "mount -o remount,bind,ro " + self.path("ro"))
        args = ("--control", self.path("control"), "--listen", "127.0.0.1:%d" % quiet_port(), "--read-only", loop)
        one = Daemon(*args, through=inside)
        before = self.named(one, 0)
        two = Daemon(*args, "--takeover", through=inside)
        one.proc.wait(patience(10))
        one.stop()
        self.assertEqual(self.named(two, 0), before)
        two.stop()

    @root
    def test_takeover_from_an_earlier_release(self):
        """It hands over reservations of a device by an identity of the path, which the device does not keep: the takeover is refused."""
        disk = loop_device(self, self.disk())
        control = self.path("control")
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(control)
            s.listen()
            if not os.path.exists("/etc/machine-id"):
                self.skipTest("no /etc/machine-id")
            with open("/etc/machine-id") as f:
                old = derived(f.read() + disk)
            d = Daemon("--control", control, "--takeover", disk, ready=False)
            c, _ = s.accept()
            c.recv(1000)
            c.sendall(json.dumps({"result": {"handover": 3, "token": "x", "watchdog": 0, "listeners": 0, "memory": [], "ports": [],
                                             "units": [{"uuid": old, "reservations": "00"}]}}).encode() + b"\n")
            self.assertEqual(d.proc.wait(patience(20)), 3)
            c.close()
        self.assertIn("has persistent reservations", d.messages())
        self.assertIn(self.keeps(old)[6:], d.messages())
        d.stop()

    @staticmethod
    def named(d, lun):
        return next(u["serial"] for u in json.loads(run([ISERCTL, "-s", d.proc.args[d.proc.args.index("--control") + 1], "--json", "luns"]).text)
                    if u["backstore"] == "lun%d" % lun)

    @need("nbdkit")
    def test_nbd(self):
        """NBD knows no identity: the state directory keeps one for each URI."""
        test_nbd_store.setUpModule()
        self.addCleanup(test_nbd_store.tearDownModule)
        socket = self.path("nbd")
        server = subprocess.Popen(["nbdkit", "-f", "-U", socket, "memory", "1M"], stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        until(lambda: os.path.exists(socket), "nbdkit")
        lun = "nbd:nbd+unix:///?socket=" + socket
        one = self.served(lun, warning="an NBD export has no identity.*,uuid=")
        self.assertNotEqual(self.served(lun, warning="NBD"), one)
        one = self.served(lun, "--state", self.state)
        self.assertEqual(self.served(lun, "--state", self.state), one)
        self.assertIn("is shared, but other iserd cannot see its identity", refused("--shared", lun))


if __name__ == "__main__":
    main()
