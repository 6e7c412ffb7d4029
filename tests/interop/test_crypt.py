#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Encrypted images: the contents of the file, read with libgcrypt; missing, wrong and
shared keys; CRYPTO ERASE, and iserd killed during CRYPTO ERASE."""
import os
import random
import shutil
import stat
import threading
import time
import unittest

import gcrypt_xts
from harness import ISERCTL, Daemon, Folder, main, need, refused, run, sparse, until
from test_alua import Path
from test_nbd import Bridge
from test_reserve import CHECK, GOOD

MIB = 1 << 20
SIZE = 16 * MIB
CUTS = int(os.environ.get("POWER_CUTS", "12"))
LEFT = ".iserd-new"


class Unit(Path):
    def store(self, lba, data):
        assert self.scsi([0x2a, 8, *lba.to_bytes(4, "big"), 0,
                          *(len(data) // 512).to_bytes(2, "big")], data)[0] == GOOD, self.sense

    def get(self, lba, blocks):
        status, data = self.scsi([0x28, 0, *lba.to_bytes(4, "big"), 0,
                                  *blocks.to_bytes(2, "big")], read=512 * blocks)
        assert status == GOOD, self.sense
        return data

    def crypto_erase(self, flags=0):
        return self.scsi([0x48, flags | 3])[0]


class Encrypted(Folder):
    def setUp(self):
        super().setUp()
        self.disk, self.key = sparse(self.path("disk.img"), SIZE), self.path("disk.key")
        self.lun = self.disk + ",key=" + self.key

    def secret(self):
        with open(self.key, "rb") as f:
            return f.read()

    def image(self):
        with open(self.disk, "rb") as f:
            return f.read()


@unittest.skipUnless(gcrypt_xts.present, "libgcrypt.so.20 is missing")
class Image(Encrypted):
    @need("qemu-img")
    def copy(self, *args):
        """Copies with qemu-img in both directions; returns the plain and the encrypted bytes."""
        plain = random.Random(3).randbytes(5 * MIB) + bytes(2 * MIB) + b"plain text " * 100000
        plain = plain.ljust(SIZE, b"\0")
        with open(self.dir + "/plain", "wb") as f:
            f.write(plain)
        with Daemon(*args, self.lun) as d:
            run(["qemu-img", "convert", "-n", "-f", "raw", "-O", "raw", self.dir + "/plain", d.url])
            run(["qemu-img", "compare", "-f", "raw", "-F", "raw", self.dir + "/plain", d.url])
        with Daemon(*args, self.lun) as d:  # iserd reads the key file
            run(["qemu-img", "convert", "-f", "raw", "-O", "raw", d.url, self.dir + "/back"])
        with open(self.dir + "/back", "rb") as f:
            self.assertTrue(f.read() == plain)
        return plain, self.image()

    def check(self, plain, image):
        self.assertNotIn(b"plain text", image)
        seen = {plain[i:i + 16] for i in range(0, 5 * MIB, 512)}
        self.assertFalse([i for i in range(0, SIZE, 16) if image[i:i + 16] in seen])
        zero = bytes(512)
        by_other = gcrypt_xts.decrypt(self.secret(), image)
        for i in range(0, SIZE, 512):
            want = plain[i:i + 512]
            if image[i:i + 512] == zero:  # never written, or unmapped
                self.assertEqual(want, zero)
            else:
                self.assertEqual(by_other[i:i + 512], want)

    def test_512(self):
        self.check(*self.copy("--block-size", "512", "--workers", "2"))

    def test_4096_and_buffered(self):
        self.check(*self.copy("--block-size", "4096", "--buffered"))

    def test_either_block_size_reads_the_same(self):
        for mine, other in (("512", "4096"), ("4096", "512")):
            self.copy("--block-size", mine)
            with Daemon("--block-size", other, self.lun) as d:
                run(["qemu-img", "compare", "-f", "raw", "-F", "raw", self.dir + "/plain", d.url])

    @need("fio")
    def test_fio_verify(self):
        with Daemon("--workers", "2", self.lun) as d, Bridge(d.url) as b:
            run(["fio", "--name=verify", "--verify_state_save=0", "--ioengine=nbd", "--uri=" + b.uri, "--rw=randrw",
                 "--bsrange=4k-512k", "--size=16M", "--iodepth=16", "--verify=crc32c",
                 "--verify_fatal=1"])


class Keys(Encrypted):
    def refused(self, *args):
        text = refused(*args)
        self.assertEqual(text.count("\n"), 1)
        return text

    def test_made_for_a_new_image(self):
        with Daemon(self.lun) as d:
            self.assertEqual(stat.S_IMODE(os.stat(self.key).st_mode), 0o600)
            key = self.secret()
            self.assertEqual(len(key), 64)
            self.assertNotEqual(key[:32], key[32:])
            Unit(d).store(5, b"x" * 512)
            for text in (d.messages(), d.url):
                self.assertNotIn("key", text)
        with Daemon(self.lun) as d:
            self.assertEqual(Unit(d).get(5, 1), b"x" * 512)
        self.assertEqual(self.secret(), key)

    def test_missing_while_there_are_data(self):
        with Daemon(self.lun) as d:
            Unit(d).store(SIZE // 512 - 8, b"x" * 512)
        os.rename(self.key, self.key + ".away")
        before = self.image()
        text = self.refused(self.lun)
        for word in (self.key, "has data", "new-key="):
            self.assertIn(word, text)
        self.assertEqual(os.listdir(self.dir).count("disk.key"), 0)
        self.assertEqual(self.image(), before)
        with Daemon(self.disk + ",new-key=" + self.key) as d:
            self.assertNotEqual(Unit(d).get(SIZE // 512 - 8, 1), b"x" * 512)
        self.assertIn("never replaces", self.refused(self.disk + ",new-key=" + self.key))
        os.rename(self.key + ".away", self.key)
        with Daemon(self.lun) as d:
            self.assertEqual(Unit(d).get(SIZE // 512 - 8, 1), b"x" * 512)

    def test_encrypted_image_is_not_taken_for_a_plain_one(self):
        with Daemon(self.lun) as d:
            Unit(d).store(0, b"x" * 512)
        before = self.image()
        text = self.refused(self.disk)
        for word in (self.disk, "is encrypted", "key="):
            self.assertIn(word, text)
        with open(self.path("iserd.yaml"), "w") as f:
            f.write("version: 1\ndaemon: {control: %s}\nbackstores: {a: {store: %s}}\n" % (self.path("ctl"), self.disk))
        done = run([ISERCTL, "check", self.path("iserd.yaml")], check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("is encrypted", done.text)
        with Daemon("--read-only", self.disk) as d:  # a backup of what the medium has
            self.assertEqual(Unit(d).get(0, 1), before[:512])
        self.assertEqual(self.image(), before)
        os.removexattr(self.disk, "user.openiser.encrypted")
        with Daemon(self.disk) as d:
            Unit(d).store(0, b"y" * 512)

    def test_plain_image_is_not_taken_for_an_encrypted_one(self):
        with open(self.disk, "r+b") as f:
            f.seek(3 * MIB)
            f.write(b"y")
        self.assertIn("has data", self.refused(self.lun))
        with open(self.disk, "r+b") as f:  # zeros that occupy space
            f.write(bytes(4 * MIB))
        with Daemon(self.lun) as d:
            Unit(d).store(0, b"x" * 512)

    def test_bad_files(self):
        def made(data, mode=0o600):
            with open(self.key, "wb") as f:
                f.write(data)
            os.chmod(self.key, mode)
        good = bytes(range(64))
        for data, mode, why in ((good[:63], 0o600, "64 bytes"), (good + b"\n", 0o600, "64 bytes"),
                                (b"", 0o600, "64 bytes"), (good, 0o640, "chmod 600"),
                                (good[:32] * 2, 0o600, "equal")):
            made(data, mode)
            text = self.refused(self.lun)
            self.assertIn(why, text)
            self.assertIn(self.key, text)
        made(good)
        os.link(self.key, self.dir + "/second")
        self.assertIn("second name", self.refused(self.lun))
        os.unlink(self.dir + "/second")
        os.rename(self.key, self.dir + "/real")
        os.symlink(self.dir + "/real", self.key)
        self.assertIn("symbolic link", self.refused(self.lun))
        self.assertIn("No such file", self.refused(self.disk + ",key=/nowhere/at/all"))
        self.assertIn("no file is given", self.refused(self.disk + ",key="))

    def test_a_key_belongs_to_one_unit(self):
        other = self.dir + "/other.img"
        shutil.copy(self.disk, other)
        self.assertIn("key of its own", self.refused(self.lun, other + ",key=" + self.key))
        with Daemon(self.lun):
            self.assertIn("key of its own", self.refused(other + ",key=" + self.key))
        self.assertIn("--shared", self.refused("--shared", self.lun))
        self.assertIn("stores nothing", self.refused("null:1M,key=" + self.key))

    def test_read_only(self):
        with Daemon(self.lun) as d:
            Unit(d).store(0, b"x" * 512)
        with Daemon("--read-only", self.lun) as d, Daemon("--read-only", self.lun) as e:
            for each in (d, e):
                a = Unit(each)
                self.assertEqual(a.get(0, 1), b"x" * 512)
                self.assertEqual(a.crypto_erase(), CHECK)
        os.unlink(self.key)
        self.assertIn("No such file", self.refused("--read-only", self.lun))


class Erase(Encrypted):
    def test_data_are_gone(self):
        with Daemon("--workers", "2", self.lun) as d:
            a = Unit(d)
            a.store(100, b"secret! " * 640)
            old_key, old_image = self.secret(), self.image()
            old = os.open(self.key, os.O_RDONLY)
            self.assertEqual(a.crypto_erase(), GOOD)
            self.assertNotEqual(self.secret(), old_key)
            self.assertEqual(stat.S_IMODE(os.stat(self.key).st_mode), 0o600)
            self.assertEqual(sorted(os.listdir(self.dir)), ["disk.img", "disk.key"])
            # the old file, which is still open here, was overwritten
            self.assertNotEqual(os.pread(old, 64, 0), old_key)
            self.assertEqual(os.fstat(old).st_nlink, 0)
            os.close(old)
            self.assertEqual(a.get(100, 10), bytes(5120))
            a.store(100, b"new" * 512)
        self.assertNotEqual(old_image[51200:], self.image()[51200:])
        # the new key cannot decrypt a copy of the old image
        with open(self.disk, "wb") as f:
            f.write(old_image)
        with Daemon(self.lun) as d:
            self.assertNotIn(b"secret", Unit(d).get(100, 10))

    def test_two_workers_know_the_new_key(self):
        with Daemon("--workers", "2", self.lun) as d:
            a, b = Unit(d, "a"), Unit(d, "b")
            for n in range(8):
                one, other = (a, b) if n % 2 else (b, a)
                one.store(8 * n, b"before" * 256)
                self.assertEqual(other.get(8 * n, 3), b"before" * 256)
                self.assertEqual(other.crypto_erase(), GOOD)
                self.assertEqual(one.get(8 * n, 3), bytes(1536))
                one.store(8 * n, b"after " * 256)
                self.assertEqual(other.get(8 * n, 3), b"after " * 256)
                other.store(8 * n, b"again " * 256)
                self.assertEqual(one.get(8 * n, 3), b"again " * 256)
            a.close()
            b.close()

    def test_key_that_cannot_be_written(self):
        os.mkdir(self.dir + "/k")
        self.key = self.dir + "/k/disk.key"
        with Daemon(self.disk + ",key=" + self.key) as d:
            a = Unit(d)
            a.store(7, b"x" * 512)
            before = self.secret()
            os.mkdir(self.key + LEFT)  # blocks the name of the new key file
            self.assertEqual(a.crypto_erase(0x20), CHECK)
            self.assertEqual(a.sense, (3, 0x3103))
            self.assertIn("cannot replace the key", d.messages())
            self.assertEqual(self.secret(), before)
            self.assertEqual(a.scsi([0x48, 0x1f])[0], GOOD)  # AUSE
            self.assertEqual(a.get(7, 1), b"x" * 512)
            os.rmdir(self.key + LEFT)
            self.assertEqual(a.crypto_erase(), GOOD)
            self.assertNotEqual(self.secret(), before)

    def start(self, more):
        """Starts iserd and waits until an interrupted erasure has ended."""
        d = Daemon(*more, "--workers", "2", self.lun)
        a = Unit(d)

        def ready():
            status = a.scsi([0])[0]
            self.assertTrue(status == GOOD or a.sense[0] == 2, a.sense)  # being sanitized
            return status == GOOD
        until(ready, "the end of the erasure", 20)
        return d, a

    def check(self, a, known, resumed):
        """Checks: either the old key and all data, or a new key and no data."""
        there = a.get(0, 8)
        if known["key"] == self.secret():
            self.assertIn(there, known["may be"])
        elif resumed:
            self.assertEqual(there, bytes(4096))
        else:
            for data in known["may be"]:
                self.assertFalse([i for i in range(8) if data[512 * i:512 * i + 512] ==
                                  there[512 * i:512 * i + 512] != bytes(512)])
        known["may be"] = [there]
        known["key"] = self.secret()

    def work(self, d, a, known, rng):
        """Writes and erases repeatedly; kills iserd during an erasure, at a random
        time within the duration of the previous erasure."""
        left, took = rng.randrange(1, 4), 0
        while True:
            data = rng.randbytes(512) * 8
            known["may be"].append(data)
            a.store(0, data)
            known["may be"] = [data]
            if left == 0:
                threading.Timer(rng.random() * 1.2 * took, d.proc.kill).start()
            left -= 1
            began = time.monotonic()
            assert a.crypto_erase() == GOOD, a.sense
            took = time.monotonic() - began
            known["erased"] += 1
            known["may be"] = [bytes(4096)]
            known["key"] = self.secret()

    def run_once(self, rng, known, more):
        d, a = self.start(more)
        self.check(a, known, more)
        try:
            self.work(d, a, known, rng)
        except (OSError, EOFError):
            pass
        a.close()
        d.kill()
        self.assertEqual(len(self.secret()), 64)  # one of the two keys always exists

    def killed(self, *more):
        rng = random.Random(20261121)
        with Daemon(self.lun):
            pass
        known = {"may be": [bytes(4096)], "key": self.secret(), "erased": 0}
        left = 0
        for cut in range(CUTS):
            self.run_once(rng, known, more)
            left += os.path.exists(self.key + LEFT)
        d, a = self.start(more)
        self.check(a, known, more)
        self.assertFalse(os.path.exists(self.key + LEFT))
        a.close()
        self.assertEqual(d.stop(), 0)
        d.log.close()
        print("#   %d cuts, %d erasures, %d times a key was left to be wiped" % (
            CUTS, known["erased"], left))
        self.assertGreaterEqual(known["erased"], CUTS)

    def test_killed_in_the_midst(self):
        self.killed()

    def test_killed_and_resumed(self):
        """SBC-3 §4.11.2, with the state in --state."""
        self.killed("--state", self.dir + "/state")


if __name__ == "__main__":
    main()
