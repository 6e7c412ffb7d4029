#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A PC boots from a unit: with the initiator of iPXE in the ROM of the network card, and with QEMU's own initiator under SeaBIOS.

QEMU emulates the PC. The boot sector on the unit reads the next block, writes it to the block after that, prints its bytes
on QEMU's debug port and switches the machine off. QEMU's network provides the script of iPXE; the loopback address of the
host is 10.0.2.2 there.
"""
import os
import subprocess

from harness import Daemon, Folder, Secrets, main, need, patience, sparse

ROM = "/usr/lib/ipxe/qemu/pxe-e1000.rom"
BOOT_TEXT = b"openiser boots\n"
SWITCHED_OFF, REBOOTED = 0x10 << 1 | 1, 0   # isa-debug-exit: twice the byte plus one
BOOT_SECTOR = bytes((
    0x31, 0xc0,             # xor ax, ax
    0x8e, 0xd8,             # mov ds, ax
    0x8e, 0xc0,             # mov es, ax
    0xb8, 0x01, 0x02,       # mov ax, 0x0201    read one sector
    0xbb, 0x00, 0x7e,       # mov bx, 0x7e00    to here
    0xb9, 0x02, 0x00,       # mov cx, 2         the second one
    0x30, 0xf6,             # xor dh, dh
    0xcd, 0x13,             # int 0x13          DL is the boot drive
    0x72, 0x1f,             # jc failed
    0xb8, 0x01, 0x03,       # mov ax, 0x0301    write one sector
    0xb9, 0x03, 0x00,       # mov cx, 3         the third one
    0x30, 0xf6,             # xor dh, dh
    0xcd, 0x13,             # int 0x13
    0x72, 0x13,             # jc failed
    0xbe, 0x00, 0x7e,       # mov si, 0x7e00
    0xac,                   # next: lodsb
    0x84, 0xc0,             # test al, al
    0x74, 0x04,             # jz done
    0xe6, 0xe9,             # out 0xe9, al      the debug port
    0xeb, 0xf7,             # jmp next
    0xb0, 0x10,             # done: mov al, 0x10
    0xe6, 0xf4,             # out 0xf4, al      off
    0xeb, 0xfe,             # jmp $
    0xb0, 0x20,             # failed: mov al, 0x20
    0xe6, 0xf4,             # out 0xf4, al
    0xeb, 0xfe,             # jmp $
))


@need("qemu-system-x86_64")
class Boot(Folder):
    def setUp(self):
        super().setUp()
        self.disk = sparse(self.path("disk"), 32 << 20)
        with open(self.disk, "r+b") as f:
            f.write(BOOT_SECTOR.ljust(510, b"\0") + b"\x55\xaa" + BOOT_TEXT)
        self.printed = self.path("said")

    def start_machine(self, *more):
        """Runs the machine; returns its exit status."""
        command = ["qemu-system-x86_64", "-accel", "tcg", "-M", "pc,graphics=off", "-m", "64", "-nodefaults",
                   "-no-user-config", "-display", "none", "-serial", "stdio", "-no-reboot", "-debugcon", "file:" + self.printed,
                   "-device", "isa-debug-exit,iobase=0xf4,iosize=1"]
        done = subprocess.run(command + list(more), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=patience(60), check=False)
        return done.returncode, done.stdout.decode(errors="replace")

    def assert_booted(self, ended, text):
        with open(self.printed, "rb") as f:
            printed = f.read()
        self.assertEqual(ended, SWITCHED_OFF, text + printed.decode(errors="replace"))
        self.assertTrue(printed.endswith(BOOT_TEXT), printed)
        with open(self.disk, "rb") as f:
            f.seek(1024)
            self.assertEqual(f.read(len(BOOT_TEXT)), BOOT_TEXT)


@need("qemu-system-x86_64")
class Ipxe(Boot):
    """Boots with sanboot of iPXE."""

    def setUp(self):
        super().setUp()
        if not os.path.exists(ROM):
            self.skipTest("no iPXE (ipxe-qemu)")

    def boot(self, daemon, *settings):
        tftp = self.path("tftp")
        os.makedirs(tftp, exist_ok=True)
        port = daemon.address[1]
        with open(os.path.join(tftp, "boot.ipxe"), "w") as f:
            f.write("\n".join(("#!ipxe", *settings, "set initiator-iqn iqn.2026-01.org.example:ipxe",
                               f"sanboot --no-describe iscsi:10.0.2.2::{port}:0:{daemon.target} || reboot", "")))
        return self.start_machine("-boot", "n", "-netdev", f"user,id=net,tftp={tftp},bootfile=boot.ipxe",
                                  "-device", f"e1000,netdev=net,romfile={ROM}")

    def test_without_chap(self):
        with Daemon(self.disk) as d:
            self.assert_booted(*self.boot(d))

    def test_chap_both_ways(self):
        with Secrets() as s, Daemon(*s.args, self.disk) as d:
            self.assert_booted(*self.boot(d, "set username me", "set password correct horse battery",
                                          "set reverse-username disk", "set reverse-password staple in the attic"))

    def test_wrong_secrets(self):
        """iPXE does not boot if either end has a wrong secret."""
        with Secrets() as s, Daemon(*s.args, self.disk) as d:
            self.assertEqual(self.boot(d, "set username me", "set password wrong horse battery")[0], REBOOTED)
            self.assertEqual(self.boot(d, "set username me", "set password correct horse battery",
                                       "set reverse-username disk", "set reverse-password staple in the cellar")[0],
                             REBOOTED)


@need("qemu-system-x86_64", "qemu-img")
class Qemu(Boot):
    """Boots with SeaBIOS from a disk of QEMU's own initiator."""

    def boot(self, daemon, *settings, password="correct horse battery"):
        drive = ("driver=iscsi,node-name=unit,transport=tcp,lun=0,initiator-name=iqn.2026-01.org.example:qemu,"
                 f"portal={daemon.portal},target={daemon.target}")
        return self.start_machine("-object", "secret,id=chap,data=" + password, "-blockdev", ",".join((drive, *settings)),
                                  "-device", "virtio-blk-pci,drive=unit")

    def test_without_chap(self):
        with Daemon(self.disk) as d:
            self.assert_booted(*self.boot(d))

    def test_chap(self):
        """QEMU authenticates itself; QEMU does not support mutual CHAP."""
        with Secrets() as s, Daemon(*s.args, self.disk) as d:
            self.assert_booted(*self.boot(d, "user=me", "password-secret=chap"))
            ended, text = self.boot(d, "user=me", "password-secret=chap", password="wrong horse battery")
            self.assertEqual(ended, 1, text)


if __name__ == "__main__":
    main()
