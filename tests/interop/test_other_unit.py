# SPDX-License-Identifier: BSD-2-Clause
"""The initiator never writes to another disk: whatever the target reports, and however the LUN gets another unit, no command
is sent that the initiator had not sent before the target reported the change, and none of these counts as done."""
import re
import struct
import subprocess
import time

from harness import ISER, ISERCTL, Daemon, Folder, main, patience, run, sparse
from lying_target import BLOCK, GOOD, OVERFLOW, READS, WRITES, LyingTarget, pattern

SIZE = 4 << 20
DOUBTS = {"inquiry data": 0x3f03, "device identifier": 0x3f05, "list of LUNs": 0x3f0e, "capacity": 0x2a09, "reset": 0x2900}


def naa(n):
    return bytes([0x50, 0x01, 0x40, 0x5f]) + struct.pack(">I", n)


class Disk(LyingTarget):
    """A disk that becomes another one before WRITE number `after`: it reports `asc`, or loses the connection where asc is 0.
    asked: the queries since then; late: the WRITEs that came after the first of them."""
    name_of_unit, block, after, asc = naa(1), 512, 3, 0x3f03
    vpd80 = b""

    def __init__(self, **more):
        self.writes, self.changed, self.asked, self.late = 0, False, set(), []
        super().__init__(self.answer, **more)

    def change(self):
        self.name_of_unit = naa(2)

    def inquiry(self, c, head):
        page = head[34] if head[33] & 1 else None
        if self.changed:
            self.asked.add(page)
        if page == 0x83:
            c.data_in(head, bytes([0, 0x83, 0, 12, 1, 3, 0, 8]) + self.name_of_unit)
        elif page == 0x80:
            c.data_in(head, bytes([0, 0x80, 0, len(self.vpd80)]) + self.vpd80)
        else:
            super().inquiry(c, head)

    def capacity(self, c, head):
        if self.changed:
            self.asked.add("capacity")
        c.data_in(head, struct.pack(">QI", self.blocks - 1, self.block) + bytes(20))

    def answer(self, c):
        if c.op not in WRITES:
            return False
        self.writes += 1
        if self.writes == self.after and not self.changed:
            self.changed = True
            self.change()
            if self.asc:
                c.check(6, self.asc)
                return True
            raise EOFError("the connection is lost")
        if self.changed and self.asked:
            self.late.append(c.lba)
        return False


class Single(Folder):
    """One session, whose unit becomes another one."""

    def setUp(self):
        super().setUp()
        self.image = self.path("image")
        with open(self.image, "wb") as f:
            f.write(pattern(0, SIZE))

    def copy(self, t, keys="", status=1):
        done = run([ISER, "copy", "-q", self.image, t.url(keys)], check=False, timeout=30)
        self.assertEqual(done.returncode, status, done.text)
        return done.text

    def test_attentions(self):
        """Each unit attention that says that the unit may be another one."""
        for what, asc in DOUBTS.items():
            for depth in 1, 16:
                with self.subTest(what, depth=depth), Disk(asc=asc) as t:
                    text = self.copy(t, "depth=%d" % depth)
                    self.assertIn("is naa.5001405f00000002, not naa.5001405f00000001", text)
                    self.assertEqual(t.late, [])
                    self.assertLessEqual({0x83, "capacity"}, t.asked)

    def test_new_nexus(self):
        """The connection is lost, and the next login leads to another unit (RFC 7143 §6.3.5)."""
        with Disk(asc=0) as t:
            text = self.copy(t, "depth=16&reconnect=5")
            self.assertIn("not naa.5001405f00000001", text)
            self.assertEqual(t.late, [])

    def test_same_unit(self):
        """The attention, and a loss, of a unit that stays what it is: the copy is whole."""
        for asc in (*DOUBTS.values(), 0):
            with self.subTest(asc), Disk(asc=asc, change=lambda: None) as t:
                self.copy(t, "reconnect=5", status=0)
                self.assertEqual(b"".join(t.written[at] for at in sorted(t.written)), pattern(0, SIZE))

    def test_size(self):
        """Another block size, and fewer blocks; more blocks are an extension."""
        for change, text in (({"block": 4096}, "blocks of 4096 bytes, not 16384 of 512"),
                             ({"blocks": 16000}, "16000 blocks of 512 bytes, not 16384"),
                             ({"blocks": 20000}, "")):
            with self.subTest(change), Disk(asc=0x2a09) as t:
                t.change = lambda: t.__dict__.update(change)
                self.assertIn(text, self.copy(t, status=1 if text else 0))
                if text:
                    self.assertEqual(t.late, [])

    def test_weak_names(self):
        """A unit whose name may be another unit's, too: equal answers go on, others do not (tgt's defaults)."""
        weak = b"\x30" + bytes(2) + b"\1" + bytes(3) + b"\1"
        for serial, status in ((b"beaf11", 0), (b"beaf12", 1)):
            with self.subTest(serial), Disk(name_of_unit=weak, vpd80=b"beaf11") as t:
                t.change = lambda: setattr(t, "vpd80", serial)
                self.copy(t, status=status)
                self.assertLessEqual({0x80, 0x83}, t.asked)

    def test_overflow_rfc7143_11_4_5_1(self):
        """GOOD with an overflow: the target wanted more data, so its blocks are larger."""
        def lie(c):
            if c.op in WRITES:
                c.take()
                c.response(GOOD, OVERFLOW, c.edtl * 7)
                return True
            if c.op in READS:
                for at in range(0, c.edtl, 8192):
                    c.data_in(pattern(c.lba * BLOCK + at, 8192), at, final=at + 8192 == c.edtl)
                c.response(GOOD, OVERFLOW, c.edtl * 7)
                return True
        with LyingTarget(lie) as t:
            self.assertIn("block size differs", self.copy(t, status=11))
            done = run([ISER, "hash", t.url()], check=False)
            self.assertEqual(done.returncode, 11, done.text)
            self.assertIn("block size differs", done.text)

    def test_tools(self):
        """hash, bench and nbd-serve read nothing of the other unit."""
        class Reader(Disk):
            def answer(self, c):
                if c.op in READS:
                    self.writes += 1
                if c.op in READS and self.writes == self.after:
                    self.changed = True
                    self.change()
                    return bool(c.check(6, self.asc) or True)
                if c.op in READS and self.asked:
                    self.late.append(c.lba)
        for args in (["hash"], ["bench", "--time", "1", "--depth", "8"]):
            with self.subTest(args), Reader() as t:
                done = run([ISER, *args, t.url()], check=False)
                self.assertNotEqual(done.returncode, 0, done.text)
                self.assertIn("not naa.5001405f00000001", done.text)
                self.assertEqual(t.late, [])


class Joined(Folder):
    """Which paths libiser joins."""
    LOCAL = b"\x30" + bytes(2) + b"\1" + bytes(3) + b"\1"  # a number of the target and the LUN

    def info(self, a, b, text="", status=7):
        done = run([ISER, "info", "%s %s" % (a.url(), b.url())], check=False)
        self.assertEqual(done.returncode, status, done.text)
        self.assertIn(text, done.text)
        return done.text

    def test_same_name_another_size(self):
        """Two units with one name, as those of cloned containers have: a copy must not mix them."""
        for more, text in (({"blocks": 20000}, "20000 of 512"), ({"blocks": 2048, "block": 4096}, "2048 of 4096")):
            with self.subTest(more), Disk() as a, Disk(**more) as b:
                said = self.info(a, b).replace(" blocks of", " of")
                self.assertRegex(said, "%s.*16384 of 512|16384 of 512.*%s" % (text, text))
                done = run([ISER, "copy", "-q", "%s %s" % (a.url(), b.url()), self.path("out")], check=False)
                self.assertEqual(done.returncode, 7, done.text)

    def test_weak_names(self):
        """Names that another target has, too (tgt's defaults): the second path is not used; with a serial number it is."""
        for serial, text in ((b"beaf11", "has no unique name (naa.3000000100000001)"), (b"PX41-0071", "active/optimized")):
            with self.subTest(serial), Disk(name_of_unit=self.LOCAL, vpd80=serial) as a, \
                    Disk(name_of_unit=self.LOCAL, vpd80=serial) as b:
                out = self.info(a, b, text, status=0)
                self.assertEqual(len(re.findall("state +ready", out)), 1 if serial == b"beaf11" else 2, out)


class Replaced(Folder):
    """Two iserd in front of one image; at one of them the LUN gets another unit while a program writes."""

    def test_two_paths(self):
        """Each acknowledged WRITE is on the unit; the other unit gets at most the commands that were in progress when it took
        the LUN; and nothing waits for a timeout."""
        disk, other = sparse(self.path("disk.img"), SIZE), sparse(self.path("other.img"), SIZE)
        first, second = (Daemon("--listen", "127.0.0.1:0", "--control", self.path("ctl%d" % n), "--port-id", str(n + 1), "--shared",
                                "--block-size", "512", "--buffered", disk).__enter__() for n in range(2))
        self.addCleanup(first.__exit__, None, None, None)
        self.addCleanup(second.__exit__, None, None, None)
        bench = subprocess.Popen([ISER, "bench", "--verify", "--rw", "randrw", "--depth", "16", "--time", "4", "--yes-overwrite",
                                  "%s %s" % (first.url, second.url)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        first.wait_for("LOGIN:")
        time.sleep(1)
        run([ISERCTL, "-s", self.path("ctl0"), "lun", "replace", first.target + "/0", "store=" + other, "block-size=512",
             "buffered=yes", "backstore=other"])
        text = bench.communicate(timeout=patience(20))[0]
        self.assertEqual(bench.returncode, 0, text)
        with open(other, "rb") as f:
            written = sum(1 for block in iter(lambda: f.read(4096), b"") if block.strip(b"\0"))
        self.assertLessEqual(written, 16)


if __name__ == "__main__":
    main()
