#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Protection information (DIF) over each transport, and across restarts of iserd:
killed, restarted, formatted, grown. This module computes the CRC with the polynomial
of SBC-3 §4.22.4."""
import ctypes
import ctypes.util
import os
import shutil
import struct
import threading
import unittest

from harness import Daemon, Folder, Wire, main, refused, run, sparse
from rdma_wire import RdmaWire
import test_powercut

GOOD, CHECK = 0, 2
NONE = b"\xff" * 8


def crc(data):
    n = 0
    for byte in data:
        n ^= byte << 8
        for _ in range(8):
            n = (n << 1 ^ 0x8bb7) & 0xffff if n & 0x8000 else n << 1
    return n


def guarded(data, ref, app=0, size=512):
    """Returns blocks, each followed by its information."""
    out = b""
    for i in range(0, len(data), size):
        block = data[i:i + size]
        out += block + struct.pack(">HHI", crc(block), app, ref + i // size)
    return out


class Initiator(Wire):
    def __init__(self, daemon):
        super().__init__(daemon)
        self.ahs = b""
        self.login()
        self.ready()

    @staticmethod
    def take_ahs(w, cdb):
        """Moves the bytes of a CDB after the 16th to an AHS (RFC 7143 §11.2.2.3)."""
        w.ahs = b""
        if len(cdb) > 16:
            w.ahs = struct.pack(">HBB", len(cdb) - 15, 1, 0) + cdb[16:]

    def ask(self, cdb, edtl=0, data=b""):
        cdb = bytes(cdb).ljust(16, b"\0")
        self.take_ahs(self, cdb)
        return super().ask(cdb[:16], edtl, data)

    def put(self, head, data=b"", **kw):
        if head[0] & 0x3f == 1 and self.ahs:
            head = head[:4] + bytes([len(self.ahs) // 4]) + head[5:] + self.ahs
        super().put(head, data, **kw)


class OverIser(RdmaWire):
    def __init__(self, daemon, start):
        super().__init__(daemon, start)
        self.ahs = b""
        self.login()
        self.ready()

    def ask(self, cdb, edtl=0, data=b"", at_once=0):
        cdb = bytes(cdb).ljust(16, b"\0")
        Initiator.take_ahs(self, cdb)
        return super().ask(cdb[:16], edtl, data, at_once)

    def put(self, head, data=b"", header=None):
        if head[0] & 0x3f == 1 and self.ahs:
            head = head[:4] + bytes([len(self.ahs) // 4]) + head[5:] + self.ahs
        super().put(head, data, header)


WAYS = {"tcp": Initiator, "rdma": lambda d: OverIser(d, "rdma"),
        "stream": lambda d: OverIser(d, "stream")}


def rw(op, lba, n, field=0):
    return struct.pack(">BBIBHB", op, field << 5, lba, 0, n, 0)


def rw32(sa, lba, n, ref, field=1, app=0, mask=0):
    return struct.pack(">BBxxxxBBHBxQIHHI", 0x7f, 0, 0, 24, sa, field << 5,
                       lba, ref, app, mask, n)


def capacity(i):
    status, data = i.ask(bytes([0x9e, 0x10]) + bytes(11) + b"\x20\0\0", 32)
    assert status == GOOD
    blocks, size, pi = struct.unpack(">QIB", data[:13])
    return blocks + 1, size, (pi >> 1) + 1 if pi & 1 else 0


def sense(data):
    """Returns (key, ASC and ASCQ, LBA) of sense data."""
    s = data[2:]
    return s[2] & 15, s[12] << 8 | s[13], struct.unpack(">I", s[3:7])[0]


class OnTheWire(unittest.TestCase):
    def test_type_1(self):
        blocks = guarded(os.urandom(512 * 9), 70)
        with Daemon("--protection", "1", "ram:16M") as d:
            for name, way in WAYS.items():
                with self.subTest(name):
                    i = way(d)
                    self.assertEqual(i.ask(rw(0x2a, 70, 9, 1), 0, blocks)[0], GOOD)
                    self.assertEqual(i.ask(rw(0x28, 70, 9, 1), len(blocks)), (GOOD, blocks))
                    bad = blocks[:520 * 4] + bytes([blocks[520 * 4] ^ 1]) + blocks[520 * 4 + 1:]
                    status, data = i.ask(rw(0x2a, 70, 9, 1), 0, bad)
                    self.assertEqual((status, sense(data)), (CHECK, (0xb, 0x1001, 74)))
                    i.close()

    def test_made_by_the_unit(self):
        data = os.urandom(4096 * 3)
        with Daemon("--protection", "1", "--block-size", "4096", "ram:16M") as d:
            i = Initiator(d)
            self.assertEqual(i.ask(rw(0x2a, 5, 3), 0, data)[0], GOOD)
            self.assertEqual(i.ask(rw(0x28, 5, 3, 1), 3 * 4104),
                             (GOOD, guarded(data, 5, size=4096)))
            i.close()

    def test_type_2_in_32_bytes(self):
        blocks = guarded(os.urandom(512 * 9), 5000, 0x1234)
        with Daemon("--protection", "2", "ram:16M") as d:
            for name, way in WAYS.items():
                with self.subTest(name):
                    i = way(d)
                    self.assertEqual(i.ask(rw32(11, 70, 9, 5000), 0, blocks)[0], GOOD)
                    self.assertEqual(i.ask(rw32(9, 70, 9, 5000), len(blocks)), (GOOD, blocks))
                    status, data = i.ask(rw32(10, 70, 9, 5001))
                    self.assertEqual((status, sense(data)), (CHECK, (0xb, 0x1003, 70)))
                    status, data = i.ask(rw(0x28, 70, 9, 1), len(blocks))
                    self.assertEqual(sense(data)[:2], (5, 0x2000))
                    i.close()


SET, CHANGE = 0, 1
LU_RESET, WARM_RESET = 5, 6


def orwrite32(bmop, lba, n, expected, new=0, policy=7):
    return struct.pack(">BxBBxxBBHBxQIII", 0x7f, bmop, policy, 0, 24, 14, 0, lba, expected, new, n)


class Generations(unittest.TestCase):
    """ORWRITE(32), whose CDB needs an additional header segment (SBC-4 4.27)."""

    def mismatch(self, answer):
        self.assertEqual((answer[0], sense(answer[1])[:2]), (CHECK, (5, 0x2c0c)))

    def test_set_and_change(self):
        with Daemon("--protection", "2", "ram:16M") as d:
            for name, way in WAYS.items():
                with self.subTest(name):
                    i = way(d)
                    self.assertEqual(i.ask(rw(0x2a, 70, 2), 0, bytes(1024))[0], GOOD)
                    self.assertEqual(i.ask(orwrite32(SET, 70, 2, 0), 0, b"\x0f" * 1024)[0], GOOD)
                    self.assertEqual(i.ask(orwrite32(SET, 70, 2, 0), 0, b"\x70" * 1024)[0], GOOD)
                    self.assertEqual(i.ask(orwrite32(CHANGE, 70, 2, 0, 5), 0, b"\x18" * 1024)[0],
                                     GOOD)
                    self.mismatch(i.ask(orwrite32(SET, 70, 2, 0), 0, b"\xff" * 1024))
                    orwrite16 = struct.pack(">BBQIBB", 0x8b, 0, 70, 2, 0, 0)
                    self.mismatch(i.ask(orwrite16, 0, b"\xff" * 1024))
                    self.assertEqual(i.ask(rw(0x28, 70, 2), 1024), (GOOD, b"\x18" * 1024))
                    self.assertEqual(i.ask(orwrite32(CHANGE, 70, 0, 5, 0))[0], GOOD)
                    i.close()

    def test_disks_for_16_bytes(self):
        """Units without type 2 have 32-byte CDBs only with --compat strict."""
        for options, there in ((), False), (("--compat", "strict"), True):
            with Daemon(*options, "ram:16M") as d:
                i = Initiator(d)
                answer = i.ask(orwrite32(SET, 70, 0, 0))
                self.assertEqual(answer[0], GOOD if there else CHECK)
                if not there:
                    self.assertEqual(sense(answer[1])[:2], (5, 0x2000))
                i.close()

    def test_resets(self):
        with Daemon("--protection", "2", "ram:16M") as d:
            i = Initiator(d)
            self.assertEqual(i.ask(orwrite32(CHANGE, 0, 0, 0, 5))[0], GOOD)
            for function, generation in (LU_RESET, 5), (WARM_RESET, 0):
                i.pdu(0x42, 0x80 | function, rest=struct.pack(">IIII", 0xffffffff, i.cmdsn, 1, 0))
                op, head, _ = i.recv()
                self.assertEqual((op, head[2]), (0x22, 0))
                i.ready()
                self.assertEqual(i.ask(orwrite32(SET, 0, 0, generation))[0], GOOD)
                self.mismatch(i.ask(orwrite32(SET, 0, 0, 5 - generation)))
            i.close()


LAST = 0x80


def tag_page(*ranges):
    """Returns the Application Tag mode page (SBC-4 6.5.3) as a list for MODE SELECT(10):
    ranges are (LBA, blocks, tag), the last of them LAST."""
    page = bytes([0x4a, 2, 0, 204]) + bytes(12)
    for n, (lba, blocks, tag) in enumerate(ranges, 1):
        flags = LAST if n == len(ranges) else 0
        page += struct.pack(">B5xHQQ", flags, tag, lba, blocks)
    return bytes(8) + page.ljust(208, b"\0")


def mode_select(i, page, sp=0):
    cdb = struct.pack(">BB5xHx", 0x55, 0x10 | sp, len(page))
    return i.ask(cdb, 0, page)


def control(ato, atmpe):
    return bytes(8) + bytes([0x0a, 10, 2, 0x10, 0, ato << 7 | atmpe << 5, 0, 0, 255, 255, 0, 0])


class ApplicationTags(Folder):
    def setUp(self):
        super().setUp()
        self.disk = sparse(self.path("disk.img"), 16 << 20)

    def serve(self):
        return Daemon("--protection", "1", "--block-size", "512", "--state", self.path("state"),
                      self.disk)

    def check(self, i, lba, tag, good):
        blocks = guarded(os.urandom(512 * 4), lba, tag)
        self.assertEqual(i.ask(rw(0x2a, lba, 4, 3), 0, blocks)[0], GOOD)  # unchecked
        for field in 0, 1:
            status, data = i.ask(rw(0x28, lba, 4, field), (520 if field else 512) * 4)
            self.assertEqual(status, GOOD if good else CHECK)
            if not good:
                self.assertEqual(sense(data), (0xb, 0x1002, lba))

    def test_mode_page(self):
        page = tag_page((0, 1000, 0x1111), (1000, 31768, 0x2222))
        with self.serve() as d:
            i = Initiator(d)
            status, data = mode_select(i, tag_page((0, 1000, 1), (1001, 31767, 2)))
            self.assertEqual((status, sense(data)[:2]), (CHECK, (5, 0x2600)))
            self.assertEqual(mode_select(i, page, sp=1)[0], GOOD)
            self.check(i, 996, 0x3333, True)  # the page is not in force yet
            self.assertEqual(mode_select(i, control(1, 1), sp=1)[0], GOOD)
            self.check(i, 996, 0x1111, True)
            self.check(i, 996, 0x2222, False)
            self.check(i, 1000, 0x2222, True)
            i.close()
        with self.serve() as d:  # both pages were saved
            i = Initiator(d)
            status, data = i.ask(struct.pack(">BBBB3xHx", 0x5a, 8, 0x0a, 2, 512), 512)
            self.assertEqual((status, data[9:]), (GOOD, page[9:]))
            self.check(i, 996, 0x1111, True)
            self.check(i, 1000, 0x1111, False)
            self.assertEqual(mode_select(i, control(1, 0))[0], GOOD)
            self.check(i, 1000, 0x1111, True)
            i.close()


class Libiscsi:
    """The initiator of libiscsi, through its library."""

    class Task(ctypes.Structure):
        _fields_ = [("status", ctypes.c_int)]

    def __init__(self, daemon):
        self.lib = ctypes.CDLL(ctypes.util.find_library("iscsi"))
        for name in ("create_context", "read10_sync", "write10_sync", "testunitready_sync"):
            getattr(self.lib, "iscsi_" + name).restype = ctypes.c_void_p
        self.i = ctypes.c_void_p(self.lib.iscsi_create_context(b"iqn.2026-01.org.example:li"))
        assert not self.lib.iscsi_set_targetname(self.i, daemon.target.encode())
        self.lib.iscsi_set_session_type(self.i, 2)  # normal
        assert not self.lib.iscsi_full_connect_sync(self.i, daemon.portal.encode(), 0)
        self.lib.iscsi_testunitready_sync(self.i, 0)

    def status(self, task):
        return self.Task.from_address(task).status

    def write(self, lba, data, field):
        return self.status(self.lib.iscsi_write10_sync(
            self.i, 0, lba, data, len(data), 520, field, 0, 0, 0, 0))

    def read(self, lba, size, field):
        return self.status(self.lib.iscsi_read10_sync(
            self.i, 0, lba, size, 520, field, 0, 0, 0, 0))

    def close(self):
        self.lib.iscsi_logout_sync(self.i)
        self.lib.iscsi_destroy_context(self.i)


class ByLibiscsi(unittest.TestCase):
    def test_protect_fields(self):
        if not ctypes.util.find_library("iscsi"):
            self.skipTest("no libiscsi")
        blocks = guarded(os.urandom(512 * 64), 300)
        with Daemon("--protection", "1", "ram:16M") as d:
            li = Libiscsi(d)
            self.assertEqual(li.write(300, blocks, 1), GOOD)
            self.assertEqual(li.read(300, len(blocks), 1), GOOD)
            self.assertEqual(li.write(301, blocks, 1), CHECK)
            self.assertEqual(li.write(301, blocks, 4), GOOD)  # the guard only
            self.assertEqual(li.read(301, len(blocks), 1), CHECK)
            self.assertEqual(li.read(301, len(blocks), 4), GOOD)
            i = Initiator(d)  # the unit has the data that libiscsi wrote
            self.assertEqual(i.ask(rw(0x28, 301, 64, 3), len(blocks)), (GOOD, blocks))
            i.close()
            li.close()


class Beside(Folder):
    """The .pi file of a file."""

    def setUp(self):
        super().setUp()
        self.disk = sparse(self.path("disk.img"), 64 << 20)

    def serve(self, *args):
        return Daemon(*args, "--block-size", "512", self.disk)

    def test_type_outlives_iserd(self):
        blocks = guarded(os.urandom(512 * 8), 100, 7)
        with self.serve("--protection", "1") as d:
            i = Initiator(d)
            self.assertEqual(capacity(i), (131072, 512, 1))
            # FMTPINFO 11b, PROTECTION FIELD USAGE 001b: type 3
            self.assertEqual(i.ask(bytes([4, 0xd0, 0, 0, 0, 0]), 0, b"\1\0\0\0")[0], GOOD)
            self.assertEqual(capacity(i)[2], 3)
            self.assertEqual(i.ask(rw(0x2a, 9, 8, 1), 0, blocks)[0], GOOD)
            i.close()
        d = self.serve()
        i = Initiator(d)
        self.assertEqual(capacity(i)[2], 3)
        self.assertEqual(i.ask(rw(0x28, 9, 8, 1), len(blocks)), (GOOD, blocks))
        self.assertEqual(i.ask(rw(0x28, 8, 1, 1), 520)[1][512:], NONE)
        self.assertEqual(i.ask(bytes([4, 0x10, 0, 0, 0, 0]), 0, bytes(4))[0], GOOD)
        d.kill()
        with self.serve("--protection", "2") as d:
            i = Initiator(d)
            self.assertEqual(capacity(i)[2], 0)
            self.assertIn("formatted with protection type 0", d.messages())
            i.close()

    def test_grown_and_shrunk(self):
        blocks = guarded(os.urandom(512 * 8), 131000)
        with self.serve("--protection", "1") as d:
            i = Initiator(d)
            self.assertEqual(i.ask(rw(0x2a, 131000, 8, 1), 0, blocks)[0], GOOD)
            for size in (32 << 20, 96 << 20):
                os.truncate(self.disk, size)
                self.assertEqual(capacity(i)[0], size // 512)
                i.ready()
            for lba in (131000, 131072, 196600):
                status, data = i.ask(rw(0x28, lba, 8, 1), 520 * 8)
                self.assertEqual(status, GOOD)
                self.assertEqual(data, (bytes(512) + NONE) * 8)
            blocks = guarded(blocks[:512] * 8, 196600)
            self.assertEqual(i.ask(rw(0x2a, 196600, 8, 1), 0, blocks)[0], GOOD)
            i.close()
        os.truncate(self.disk, 80 << 20)  # while no iserd runs
        with self.serve() as d:
            i = Initiator(d)
            os.truncate(self.disk, 96 << 20)
            self.assertEqual(capacity(i)[0], 196608)
            self.assertEqual(i.ask(rw(0x28, 196600, 8), 4096), (GOOD, bytes(4096)))
            i.close()

    def test_cut_off(self):
        """The start says how many blocks have lost it."""
        with self.serve("--protection", "1") as d:
            self.assertNotIn("lacks", d.messages())
        size = os.path.getsize(self.disk + ".pi")
        for cut, blocks in ((size - 800, 100), (100, 131072)):
            os.truncate(self.disk + ".pi", cut)
            with self.serve() as d:
                self.assertIn("lacks the protection information of the last %d blocks" % blocks, d.messages())
            with self.serve() as d:
                self.assertNotIn("lacks", d.messages())

    def test_changed_by_another_program(self):
        with self.serve("--protection", "1") as d:
            i = Initiator(d)
            self.assertEqual(i.ask(rw(0x2a, 8, 8), 0, os.urandom(4096))[0], GOOD)
            i.close()
        with open(self.disk, "r+b") as f:
            f.seek(8 * 512 + 700)
            f.write(b"another byte")
        with self.serve() as d:  # no write was in progress: this is corruption
            i = Initiator(d)
            status, data = i.ask(rw(0x28, 8, 8), 4096)
            self.assertEqual((status, sense(data)), (CHECK, (0xb, 0x1001, 9)))
            i.close()

    def damaged(self, disk):
        """Kills iserd while a region is marked, and changes the data of the second
        block but not its information."""
        d = self.serve("--protection", "1")
        i = Initiator(d)
        self.assertEqual(i.ask(rw(0x2a, 8, 8), 0, os.urandom(4096))[0], GOOD)
        d.kill()
        with open(disk, "r+b") as f:
            f.seek(9 * 512)
            f.write(b"half of a write")

    def test_half_a_write_is_mended(self):
        self.damaged(self.disk)
        with self.serve() as d:
            i = Initiator(d)
            self.assertEqual(i.ask(rw(0x28, 8, 8), 4096)[0], GOOD)
            self.assertIn("the guards of 1 blocks are recalculated", d.messages())
            i.close()
        with self.serve() as d:
            self.assertNotIn("recalculated", d.messages())

    def test_odd_names_beside_it(self):
        # the name is too long for the suffix .pi: iserd must not use the disk itself
        folder, name = os.path.split(self.disk)
        size = os.path.getsize(self.disk)
        for room in range(3):
            fill = 4095 - room - len(folder) - 1 - len(name)
            path = folder + "/" * (fill + 1) + name
            self.assertEqual(len(path), 4095 - room)
            self.assertIn("name is too long", refused(
                "--block-size", "512", "--protection", "1", path))
            self.assertEqual(os.path.getsize(self.disk), size)
        # iserd must not wait for a pipe
        os.mkfifo(self.disk + ".pi", 0o600)
        refused("--block-size", "512", "--read-only", self.disk)
        refused("--block-size", "512", self.disk)

    def test_mode_and_links(self):
        """Guards reveal the plain blocks; a link must not redirect the file."""
        os.chmod(self.disk, 0o666)
        other = self.path("elsewhere")
        os.symlink(other, self.disk + ".pi")
        self.assertIn("symbolic link", refused("--block-size", "512", "--protection", "1",
                                               self.disk))
        self.assertFalse(os.path.exists(other))
        os.unlink(self.disk + ".pi")
        with self.serve("--protection", "1"):
            self.assertEqual(os.stat(self.disk + ".pi").st_mode & 0o777, 0o600)

    def test_refused_without_a_trace(self):
        """A refused start makes no file, which would stop the next start."""
        self.assertIn("--shared", refused("--protection", "1", "--shared", self.disk))
        self.assertFalse(os.path.exists(self.disk + ".pi"))
        with Daemon("--block-size", "512", self.disk):
            pass

    def test_what_cannot_be_served(self):
        with self.serve("--protection", "1"):
            pass
        size = os.path.getsize(self.disk + ".pi")
        self.assertIn("--block-size 512", refused("--block-size", "4096", self.disk))
        self.assertEqual(os.path.getsize(self.disk + ".pi"), size)
        self.assertIn("--shared", refused("--block-size", "512", "--shared", self.disk))
        with open(self.disk + ".pi", "r+b") as f:
            f.seek(17)
            f.write(b"\1")
        self.assertIn("is damaged", refused("--block-size", "512", self.disk))
        with open(self.disk + ".pi", "r+b") as f:
            f.write(bytes(64))
        self.assertIn("has no protection", refused("--block-size", "512", self.disk))
        with open(self.disk + ".pi", "wb") as f:
            f.write(b"somebody's own file, of other things" * 100)
        self.assertIn("has no protection", refused("--protection", "1", self.disk))
        with open(self.disk + ".pi", "rb") as f:
            self.assertEqual(f.read(), b"somebody's own file, of other things" * 100)


def loop_device(case, path):
    """Returns a block device for a file; skips the test if that is not possible."""
    if os.geteuid() or not shutil.which("losetup"):
        case.skipTest("no root, or no losetup")
    done = run(["losetup", "--find", "--show", path], check=False)
    if done.returncode:
        case.skipTest("no loop devices: " + done.text)
    name = done.text.strip()
    case.addCleanup(run, ["losetup", "--detach", name])
    return name


class Named(Folder):
    """Protection information in a named file, also of block devices."""

    def setUp(self):
        super().setUp()
        self.pi = self.path("pi")

    def serve(self, disk, *args):
        return Daemon(*args, "--block-size", "512", disk + ",pi=" + self.pi)

    def refused(self, disk, *args):
        return refused(*args, "--block-size", "512", disk + ",pi=" + self.pi)

    def run_once(self, disk):
        """Writes, kills iserd, damages a block, restarts, and formats."""
        blocks = guarded(os.urandom(512 * 8), 100, 7)
        d = self.serve(disk, "--protection", "1")
        i = Initiator(d)
        self.assertEqual(capacity(i), (131072, 512, 1))
        self.assertEqual(i.ask(rw(0x2a, 100, 8, 1), 0, blocks)[0], GOOD)
        d.kill()
        with open(disk, "r+b") as f:
            f.seek(103 * 512)
            f.write(b"half of a write")
        with self.serve(disk) as d:
            self.assertIn("the guards of 1 blocks are recalculated", d.messages())
            i = Initiator(d)
            self.assertEqual(i.ask(rw(0x28, 100, 3, 1), 3 * 520), (GOOD, blocks[:3 * 520]))
            self.assertEqual(i.ask(rw(0x28, 100, 8), 4096)[0], GOOD)
            self.assertEqual(i.ask(bytes([4, 0xd0, 0, 0, 0, 0]), 0, b"\1\0\0\0")[0], GOOD)
            i.close()
        with self.serve(disk) as d:
            i = Initiator(d)
            self.assertEqual(capacity(i)[2], 3)
            i.close()

    def test_device(self):
        disk = loop_device(self, sparse(self.path("disk.img"), 64 << 20))
        self.assertIn("give %s,pi=FILE" % disk, refused(
            "--protection", "1", "--block-size", "512", disk))
        self.run_once(disk)
        # a killed iserd may have the device open for another moment
        fd = os.open(disk, os.O_RDWR | os.O_EXCL)
        threading.Timer(0.3, os.close, (fd,)).start()
        self.serve(disk).stop()
        # another device, and the same device under another name
        other = loop_device(self, sparse(self.path("other.img"), 64 << 20))
        size = os.path.getsize(self.pi)
        self.assertIn("of another device", self.refused(other))
        self.assertEqual(os.path.getsize(self.pi), size)
        os.symlink(disk, self.path("by-id"))
        with self.serve(self.path("by-id")) as d:
            i = Initiator(d)
            self.assertEqual(capacity(i)[2], 3)
            i.close()

    def test_file(self):
        self.run_once(sparse(self.path("disk.img"), 64 << 20))
        self.assertFalse(os.path.exists(self.path("disk.img.pi")))

    def test_what_cannot_be(self):
        disk = sparse(self.path("disk.img"), 64 << 20)
        self.assertIn("no such file; --protection", self.refused(disk))
        self.assertFalse(os.path.exists(self.pi))
        for lun in "ram:16M", "null:16M", "cd:" + disk:
            self.assertIn("have such a file", self.refused(lun, "--protection", "1"))
        # existing files, in particular the disk itself, must not be overwritten
        for other in "zeros.img", "text":
            with open(self.path(other), "wb") as f:
                f.write(bytes(4096) if other == "zeros.img" else b"other things" * 100)
            size = os.path.getsize(self.path(other))
            self.pi = self.path(other)
            self.refused(disk, "--protection", "1")
            self.assertEqual(os.path.getsize(self.pi), size)
        self.pi = disk
        self.assertIn("locked", self.refused(disk, "--protection", "1"))
        self.assertEqual(os.path.getsize(disk), 64 << 20)
        self.pi = self.path("pi")
        sparse(disk + ".pi", 0)
        self.assertIn("exists, too", self.refused(disk, "--protection", "1"))
        os.remove(disk + ".pi")
        # one file for two disks
        second = sparse(self.path("second.img"), 32 << 20)
        with self.serve(disk, "--protection", "1"):
            size = os.path.getsize(self.pi)
            self.assertIn("locked", self.refused(second))
            self.assertEqual(os.path.getsize(self.pi), size)


class PowerCuts(test_powercut.PowerCuts):
    """The same with protection information: completed writes exist, and no block is
    unreadable because of its guard."""

    def daemon(self):
        return Daemon("--protection", "1", "--state", self.dir + "/state",
                      "--workers", "3", "--block-size", "512", *self.disks)


class PowerCutsOfDevices(PowerCuts):
    """The information is in files, the data on devices."""

    def setUp(self):
        super().setUp()
        self.disks = ["%s,pi=%s.info" % (loop_device(self, name), name) for name in self.disks]


if __name__ == "__main__":
    main()
