#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A CD/DVD unit: SeaBIOS boots from it, libiscsi and QEMU read it, iserctl changes
its medium."""
import os
import subprocess
import tempfile
import time
import unittest

import iso
from harness import ISERCTL, Daemon, main, need, run

WORD = "GREETINGS-FROM-THE-CD"


class Cd(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory(dir=".")
        self.one = self.write("one.iso", iso.image(WORD))
        self.two = self.write("two.iso", iso.image("TWO", b"two\n", 700))

    def tearDown(self):
        self.dir.cleanup()

    def path(self, name):
        return os.path.abspath(os.path.join(self.dir.name, name))

    def write(self, name, data):
        with open(self.path(name), "wb") as f:
            f.write(data)
        return self.path(name)

    def boot(self, *drive):
        """What a machine with this drive says on its serial port, in time."""
        serial = self.path("serial")
        p = subprocess.Popen(
            ["qemu-system-x86_64", "-M", "pc", "-m", "64", "-nodefaults",
             "-display", "none", "-no-reboot", "-serial", "file:" + serial] +
            list(drive), stdin=subprocess.DEVNULL)
        try:
            end = time.monotonic() + 60
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
            # SeaBIOS speaks to our unit itself
            for device in "scsi-generic", "scsi-block":
                with self.subTest(device):
                    self.assertTrue(self.boot(
                        "-drive", "if=none,id=x,file=%s,format=raw" % d.url,
                        "-device", "virtio-scsi-pci",
                        "-device", device + ",drive=x,bootindex=1"))

    @need("iscsi-inq", "iscsi-ls", "iscsi-readcapacity16")
    def test_libiscsi(self):
        with Daemon("cd:" + self.one) as d:
            self.assertIn("MMC", run(["iscsi-inq", d.url]).text)
            self.assertIn("VIRTUAL-CDROM", run(["iscsi-inq", d.url]).text)
            self.assertIn("Type:MMC", run(
                ["iscsi-ls", "-s", "iscsi://" + d.portal]).text)
            # a command that MMC-6 does not have
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
                        run([ISERCTL, "-s", ctl, "insert", "lun=%d" % lun,
                             "path=" + image])
                    run(["qemu-img", "convert", "-f", "raw", "-O", "raw",
                         d.urls[lun], back])
                    with open(back, "rb") as f, open(image, "rb") as g:
                        self.assertEqual(f.read(), g.read())
                run([ISERCTL, "-s", ctl, "eject", "lun=1"])
                # the other drive's is still there
                self.assertEqual(len(run([ISERCTL, "-s", ctl, "luns"]).text
                                     .split(os.path.abspath(self.two))), 2)
                for bad in (["eject", "lun=7"], ["eject"],
                            ["insert", "lun=1"],
                            ["insert", "lun=1", "path=/nowhere"]):
                    self.assertEqual(run([ISERCTL, "-s", ctl] + bad,
                                         check=False).returncode, 1)

    def test_an_image_that_is_not_whole_blocks(self):
        odd = self.write("odd.iso", b"x" * 5000)
        p = run([os.environ.get("ISERD", "build/iserd"), "serve", "--listen",
                 "127.0.0.1:0", "cd:" + odd], check=False)
        self.assertEqual(p.returncode, 3)
        self.assertIn("not whole blocks of 2048", p.text)


if __name__ == "__main__":
    main()
