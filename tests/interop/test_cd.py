#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""CD/DVD units: SeaBIOS boots from a unit, libiscsi and QEMU read it, iserctl changes
its medium; iser uses drives of iserd and of tgt."""
import json
import os
import random
import re
import subprocess
import tempfile
import threading
import time

import iso
from harness import (ISER, ISERCTL, WAYS, Daemon, Folder, io, main, need, over,
                     patience, refused, run, sha256)
from test_config import IQN, Configured
from test_iser import Tgt
from test_nbd import EIO, EPERM, Bridge, Raw

WORD = "GREETINGS-FROM-THE-CD"


class Cd(Folder):
    def setUp(self):
        super().setUp()
        self.one = self.write("one.iso", iso.image(WORD))
        self.two = self.write("two.iso", iso.image("TWO", b"two\n", 700))

    def write(self, name, data):
        with open(self.path(name), "wb") as f:
            f.write(data)
        return self.path(name)

    def boot(self, *drive):
        """Returns the output on the serial port of a machine with this drive."""
        serial = self.path("serial")
        p = subprocess.Popen(
            ["qemu-system-x86_64", "-M", "pc", "-m", "64", "-nodefaults",
             "-display", "none", "-no-reboot", "-serial", "file:" + serial] +
            list(drive), stdin=subprocess.DEVNULL)
        try:
            end = time.monotonic() + patience(60)
            while time.monotonic() < end and p.poll() is None:
                time.sleep(0.1)
                if os.path.exists(serial):
                    with open(serial, "rb") as f:
                        if WORD.encode() in f.read():
                            return True
            return False
        finally:
            p.kill()
            p.wait()

    @need("qemu-system-x86_64", "qemu-img")
    def test_firmware_boots_from_it(self):
        with Daemon("cd:" + self.one) as d:
            with self.subTest("QEMU's own drive"):
                self.assertTrue(self.boot(
                    "-drive", "file=%s,media=cdrom,format=raw,readonly=on" %
                    d.url))
            # SeaBIOS sends its commands to the unit
            for device in "scsi-generic", "scsi-block":
                with self.subTest(device):
                    self.assertTrue(self.boot(
                        "-drive", "if=none,id=x,file=%s,format=raw" % d.url,
                        "-device", "virtio-scsi-pci",
                        "-device", device + ",drive=x,bootindex=1"))

    def test_identity(self):
        """With --state the drive is that of its backstore: not of its medium, and not of the
        targets that show it."""
        found = []
        for store, targets in (("cd:" + self.one, "{%sb: {%s}}"), ("cd:" + self.two, "{%sa: {%s}, %sb: {%s}}")):
            names = targets.count("{%s}")
            text = targets % ((IQN, "portal-groups: p, auth-group: any, luns: {0: dvd, 1: other}") * names)
            path = self.path("iserd.yaml")
            with open(path, "w") as f:
                f.write("version: 1\ndaemon: {io: %s, state: %s}\nportal-groups: {p: {listen: 127.0.0.1:0}}\n"
                        "backstores: {dvd: {store: '%s'}, other: {store: 'cd:%s'}}\ntargets: %s\n" % (
                            io(), self.path("state"), store, self.one, text))
            with Configured(path, 2 * names) as d:
                found.append([json.loads(run([ISER, "info", "--json", d.url_of("b", lun)]).text)["serial"]
                              for lun in (0, 1)])
        self.assertEqual(found[0], found[1])
        self.assertNotEqual(*found[0])

    @need("iscsi-inq", "iscsi-ls", "iscsi-readcapacity16")
    def test_libiscsi(self):
        with Daemon("cd:" + self.one) as d:
            self.assertIn("MMC", run(["iscsi-inq", d.url]).text)
            self.assertIn("VIRTUAL-CDROM", run(["iscsi-inq", d.url]).text)
            self.assertIn("Type:MMC", run(
                ["iscsi-ls", "-s", "iscsi://" + d.portal]).text)
            # MMC-6 does not have this command
            self.assertNotEqual(run(["iscsi-readcapacity16", d.url],
                                    check=False).returncode, 0)

    @need("qemu-img")
    def test_media_come_and_go(self):
        back = self.path("back")
        with tempfile.TemporaryDirectory() as where:
            ctl = os.path.join(where, "ctl")
            with Daemon("--control", ctl, "cd:" + self.one, "cd:") as d:
                for lun, image in ((0, self.one), (0, self.two), (1, self.two),
                                   (1, self.one)):
                    if (lun, image) != (0, self.one):
                        run([ISERCTL, "-s", ctl, "insert", "lun%d" % lun,
                             "path=" + image])
                    run(["qemu-img", "convert", "-f", "raw", "-O", "raw",
                         d.urls[lun], back])
                    with open(back, "rb") as f, open(image, "rb") as g:
                        self.assertEqual(f.read(), g.read())
                run([ISERCTL, "-s", ctl, "eject", "lun1"])
                # the medium of the other drive is still there
                self.assertEqual(len(run([ISERCTL, "-s", ctl, "luns"]).text
                                     .split(os.path.abspath(self.two))), 2)
                for bad in (["eject", "lun7"], ["eject"], ["eject", "lun=1"], ["eject", "1"], ["eject", d.target + "/2"],
                            ["insert", "lun1"],
                            ["insert", "lun1", "path=/nowhere"]):
                    self.assertEqual(run([ISERCTL, "-s", ctl] + bad,
                                         check=False).returncode, 1)

    def initiator(self, url, image):
        """All commands that read succeed; all commands that write give the reason."""
        info = json.loads(run([ISER, "info", "--json", url]).text)
        size = os.path.getsize(image)
        self.assertEqual((info["type"], info["bytes"], info["block_size"]),
                         ("CD/DVD drive", size, 2048))
        self.assertIn(sha256(image), run([ISER, "hash", url]).text)
        run([ISER, "copy", url, self.path("back")])
        self.assertEqual(sha256(image), sha256(self.path("back")))
        run([ISER, "bench", "--time", "0.1", "--bs", "2k", url])
        for args in (["copy", image, url],
                     ["bench", "--rw", "write", "--yes-overwrite", "--bs",
                      "2k", url]):
            done = run([ISER] + args, check=False)
            self.assertEqual(done.returncode, 7)
            self.assertIn("is a CD/DVD drive with a medium that cannot be written",
                          done.text)
        with Bridge(url) as b, Raw(b.path) as r:
            r.open()
            self.assertEqual(r.size, size)
            self.assertTrue(r.flags & 2)  # read only
            with open(image, "rb") as f:
                f.seek(2047)
                self.assertEqual(r.ask(0, 2047, 4098, read=4098),
                                 (0, f.read(4098)))
            self.assertEqual(r.ask(1, 0, 2048, data=bytes(2048)), EPERM)
            self.assertEqual(r.ask(3), 0)  # a flush without writes

    def test_our_initiator(self):
        for way in WAYS:
            with self.subTest(way), Daemon("cd:" + self.one) as d:
                self.initiator(over(d.url, way), self.one)

    def test_our_initiator_and_an_empty_drive(self):
        with Daemon("cd:") as d:
            info = run([ISER, "info", d.url]).text
            self.assertIn("medium not present", info)
            self.assertIn("CD/DVD drive", info)
            self.assertIn("CD/DVD drive",
                          run([ISER, "ls", d.portal]).text)
            done = run([ISER, "hash", d.url], check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("medium not present", done.text)

    @need("tgtd", "tgtadm")
    def test_our_initiator_and_other_drives(self):
        with Tgt(self.one, "cd") as t:
            self.initiator(t.url, self.one)
            # LUN 0 of tgt is not a disk and has no size
            controller = t.url[:-1] + "0"
            info = json.loads(run([ISER, "info", "--json", controller]).text)
            self.assertEqual(info["type"], "storage array controller")
            self.assertIn("it has no capacity", info["no_capacity"])
            self.assertNotIn("bytes", info)
            for name in "storage array controller", "CD/DVD drive":
                self.assertIn(name, run([ISER, "ls", t.portal]).text)
            done = run([ISER, "hash", controller], check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("it has no capacity", done.text)

    def test_media_change_under_load(self):
        """Two sessions on two workers read during the changes. No READ returns data
        of two media, all READs end, and the sessions read both media."""
        size, depth, length = 4 << 20, 16, 65536
        images = [self.write("all%d.iso" % n, bytes([n]) * size)
                  for n in (1, 2)]
        met, wrong = set(), []
        over_now = threading.Event()

        def read(path):
            try:
                with Raw(path) as r:
                    r.open()
                    for _ in range(depth):
                        r.request(0, random.randrange(size - length), length)
                    while not over_now.is_set():
                        err, _, data = r.reply(length)
                        if err not in (0, EIO) or (
                                not err and data != data[:1] * length):
                            raise AssertionError("%d %r" % (err, data[:8]))
                        met.add(err or -data[0])
                        r.request(0, random.randrange(size - length), length)
                    for _ in range(depth):
                        r.reply(length)
            except Exception as e:  # the main thread reports it
                wrong.append(e)

        with tempfile.TemporaryDirectory() as where:
            ctl = os.path.join(where, "ctl")
            with Daemon("--control", ctl, "--workers", "2",
                        "cd:" + images[0]) as d, \
                    Bridge(d.url) as one, Bridge(over(d.url, "rdma")) as two:
                readers = [threading.Thread(target=read, args=(b.path,))
                           for b in (one, two)]
                for r in readers:
                    r.start()
                end = time.monotonic() + 5
                changes = 0
                while time.monotonic() < end and not wrong:
                    changes += 1
                    if changes % 3 == 0:
                        run([ISERCTL, "-s", ctl, "eject", "lun0"])
                    run([ISERCTL, "-s", ctl, "insert", "lun0",
                         "path=" + images[changes % 2]])
                status = run([ISERCTL, "-s", ctl, "status", "--json"]).text
                over_now.set()
                for r in readers:
                    r.join(20)
                    self.assertFalse(r.is_alive())
                self.assertFalse(wrong)
                # both media, and the empty drive
                self.assertEqual(met, {-1, -2, EIO})
                self.assertGreater(changes, 10)
                self.assertEqual(set(re.findall(r'"worker": (\d)', status)),
                                 {"0", "1"})
                print("#   %d changes" % changes)
                self.assertIn(
                    sha256(images[changes % 2]),
                    run([ISER, "hash", d.url]).text)

    def test_an_image_that_is_not_whole_blocks(self):
        odd = self.write("odd.iso", b"x" * 5000)
        self.assertIn("not whole blocks of 2048", refused("cd:" + odd))


if __name__ == "__main__":
    main()
