#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""nbd: LUNs, against nbdkit and qemu-nbd; a server of a few lines that answers wrongly or not at all."""
import contextlib
import contextlib
import os
import signal
import socket
import struct
import subprocess
import threading
import time
import unittest

from harness import (ISER, ISERD, Daemon, Folder, Wire, main, make_image, need, patience, quiet_port, refused, run, sha256,
                     sparse, until)

MODULES = os.path.dirname(os.path.dirname(os.path.realpath(ISERD)))
CAPACITY_CHANGED = (6, 0x2a, 9)
MEDIUM_ERROR = 3


def setUpModule():
    if not os.path.exists(os.path.join(MODULES, "backstore-nbd.so")):
        raise unittest.SkipTest("this build has no backstore-nbd.so: install libnbd-dev")
    os.environ["OPENISER_MODULES"] = MODULES


def tearDownModule():
    os.environ.pop("OPENISER_MODULES", None)


def sense(answer):
    """Returns (key, ASC, ASCQ) of an answer with CHECK CONDITION; None: another status."""
    status, data = answer
    return (data[4] & 15, data[14], data[15]) if status == 2 else None


class Store(Folder):
    def server(self, program, *args):
        """Starts a server that listens on the socket self.sock."""
        self.sock = self.path("sock")
        if os.path.exists(self.sock):
            os.unlink(self.sock)
        if program == "nbdkit":
            args = ("-f", "-U", self.sock, *args)
        else:
            args = ("-t", "-k", self.sock, *args)
        p = subprocess.Popen([program, *args], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.addCleanup(self.end, p)
        until(lambda: os.path.exists(self.sock), "the server listens")
        return p

    @staticmethod
    def end(p):
        if p.poll() is None:
            p.send_signal(signal.SIGCONT)
            p.kill()
        p.wait()

    @property
    def lun(self):
        return "nbd:nbd+unix:///?socket=" + self.sock

    @contextlib.contextmanager
    def session(self, *args, status=0):
        """An iserd that ends with this status, and a session with its LUN."""
        d = Daemon(*args)
        w = Wire(d)
        try:
            w.login()
            yield d, w.ready()
        finally:
            w.close()
            ended = d.stop()
            text = d._all_messages()
        self.assertEqual(ended, status, text)


@need("nbdkit", "qemu-nbd", "qemu-img")
class Servers(Store):
    def test_qcow2(self):
        """iserd serves a qcow2 image; qemu-img reads what iser wrote, and holes stay holes."""
        disk, image = self.path("disk"), self.path("disk.qcow2")
        make_image(disk, 64 << 20)
        run(["qemu-img", "create", "-f", "qcow2", image, "64M"])
        server = self.server("qemu-nbd", "-f", "qcow2", "--discard=unmap", "--detect-zeroes=unmap", image)
        with Daemon("--workers", "2", self.lun) as d:
            run([ISER, "copy", disk, d.url])
            self.assertIn(sha256(disk), run([ISER, "hash", d.url]).text)
        self.end(server)
        run(["qemu-img", "convert", "-O", "raw", image, self.path("raw")])
        self.assertEqual(sha256(self.path("raw")), sha256(disk))
        self.assertLess(os.stat(image).st_size, 16 << 20)

    def test_unmap_and_status(self):
        """UNMAP reaches the server, and GET LBA STATUS is what the server says."""
        self.server("nbdkit", "memory", "64M")
        with self.session(self.lun) as (d, w):
            self.assertEqual(w.write10(0, b"x" * 65536)[0], 0)
            ask = b"\x9e\x12" + bytes(8) + b"\0\0\0\x28" + bytes(2)
            self.assertEqual(w.ask(ask, edtl=40)[1][20] & 15, 0)
            text = bytes(8) + (64).to_bytes(4, "big") + bytes(4)
            self.assertEqual(w.ask(b"\x42" + bytes(6) + b"\0\x18" + bytes(7), data=b"\0\x16\0\x10" + bytes(4) + text)[0], 0)
            self.assertEqual(w.read10(0, 128), (0, bytes(32768) + b"x" * 32768))
            # SYNCHRONIZE CACHE(10), WRITE(10) with FUA, WRITE SAME(16)
            self.assertEqual(w.ask(b"\x35" + bytes(15))[0], 0)
            self.assertEqual(w.ask(b"\x2a\x08" + bytes(6) + b"\x01" + bytes(7), data=b"f" * 512)[0], 0)
            self.assertEqual(w.ask(b"\x93\0" + bytes(8) + (4096).to_bytes(4, "big") + bytes(2), data=b"s" * 512)[0], 0)
            self.assertEqual(w.read10(4095, 1), (0, b"s" * 512))

    def test_a_server_without_abilities(self):
        """No zeros, no trim, no flush, no extents: zeros are written."""
        self.server("nbdkit", "--filter=nozero", "--filter=noextents", "memory", "8M", "zeromode=none")
        with self.session(self.lun) as (d, w):
            self.assertEqual(w.write10(0, b"x" * 65536)[0], 0)
            self.assertEqual(w.ask(b"\x93\0" + bytes(8) + (8192).to_bytes(4, "big") + bytes(2), data=bytes(512))[0], 0)
            self.assertEqual(w.read10(0, 128), (0, bytes(65536)))

    def test_block_size_of_the_server(self):
        self.server("nbdkit", "--filter=blocksize-policy", "memory", "8M", "blocksize-minimum=4096", "blocksize-preferred=4096",
                    "blocksize-maximum=65536", "blocksize-error-policy=error")
        self.assertIn("needs blocks of 4096 bytes", refused(self.lun))
        with Daemon("--block-size", "4096", self.lun) as d:
            run([ISER, "copy", sparse(self.path("zeros"), 4 << 20), d.url])
            run([ISER, "bench", "--yes-overwrite", "--rw", "write", "--bs", "256k", "--time", "0.2", d.url])

    def test_read_only(self):
        self.server("nbdkit", "-r", "memory", "8M")
        self.assertIn("the server exports it read-only; serve it read-only", refused(self.lun))
        with self.session("--read-only", self.lun) as (d, w):
            self.assertEqual(sense(w.write10(0, bytes(512)))[0], 7)  # DATA PROTECT

    def test_errors_of_the_server(self):
        """An error of the medium is a MEDIUM ERROR, and the session goes on."""
        trigger = self.path("fail")
        self.server("nbdkit", "--filter=error", "memory", "8M", "error-rate=100%", "error-file=" + trigger)
        with self.session(self.lun) as (d, w):
            self.assertEqual(w.write10(0, b"x" * 512)[0], 0)
            open(trigger, "w").close()
            self.assertEqual(sense(w.read10(0, 1))[0], MEDIUM_ERROR)
            os.unlink(trigger)
            self.assertEqual(w.read10(0, 1), (0, b"x" * 512))

    def test_restart_of_the_server(self):
        """Commands wait for the server. Data that it had not flushed may be lost, and the next flush says so once."""
        disk = sparse(self.path("disk"), 8 << 20)
        server = self.server("nbdkit", "file", disk)
        with self.session(self.lun, status=1) as (d, w):
            self.assertEqual(w.write10(0, b"x" * 4096)[0], 0)
            self.end(server)
            d.wait_for("is lost; commands wait")
            itt = w.command(b"\x28\0" + bytes(4) + b"\0\0\x08" + bytes(7), 0xc0, 4096)
            time.sleep(0.3)
            server = self.server("nbdkit", "file", disk)
            op, head, data = w.recv()
            self.assertEqual((op, head[16:20], data), (0x25, itt.to_bytes(4, "big"), b"x" * 4096))
            d.wait_for("connected to the NBD server again")
            self.assertEqual(sense(w.ask(b"\x35" + bytes(15)))[0], MEDIUM_ERROR)
            time.sleep(0.3)  # a repeated flush within 250 ms gets the same status
            self.assertEqual(w.ask(b"\x35" + bytes(15))[0], 0)
            # another export: larger is a new size; read-only is another export
            self.end(server)
            os.truncate(disk, 16 << 20)
            server = self.server("nbdkit", "file", disk)
            until(lambda: sense(w.ask(bytes(16))) == CAPACITY_CHANGED, "CAPACITY DATA HAS CHANGED", 12)
            self.assertEqual(w.write10(32000, b"y" * 512)[0], 0)
            self.end(server)
            self.server("nbdkit", "-r", "file", disk)
            d.wait_for("another export than before")
            self.assertEqual(sense(w.read10(0, 1))[0], MEDIUM_ERROR)
            self.assertEqual(sense(w.read10(0, 1))[0], MEDIUM_ERROR)

    def test_a_server_that_stalls(self):
        """iserd ends while the server does not answer."""
        server = self.server("nbdkit", "memory", "8M")
        d = Daemon("--read-only", self.lun)
        w = Wire(d)
        w.login()
        w.ready()
        server.send_signal(signal.SIGSTOP)
        w.command(b"\x28\0" + bytes(4) + b"\0\0\x08" + bytes(7), 0xc0, 4096)
        w.close()
        w.close()
        d.stop(limit=20)
        self.assertIn("ending without them", d.messages())


class Refusals(Store):
    def test_no_server(self):
        for lun in ("nbd:nbd+unix:///?socket=" + self.path("none"), "nbd://127.0.0.1:1/x", "nbd:nonsense"):
            self.assertIn("cannot connect to the NBD server", refused(lun))

    def test_no_module(self):
        env = dict(os.environ, OPENISER_MODULES=self.dir)
        done = subprocess.run([ISERD, "serve", "--listen", "127.0.0.1:0", "nbd://localhost"], env=env,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=patience(20))
        self.assertEqual(done.returncode, 3)
        self.assertIn("install the package openiser-nbd", done.stderr)


class Liar(threading.Thread):
    """A server that speaks oldstyle NBD (the protocol document's first handshake): self.answer says how it answers."""

    def __init__(self, size=1 << 20):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", quiet_port()))
        self.port = self.listener.getsockname()[1]
        self.size, self.answer, self.conns = size, "good", 0
        self.start()

    def run(self):
        while True:
            try:
                c, _ = self.listener.accept()
            except OSError:
                return
            self.conns += 1
            try:
                self.serve(c)
            except (OSError, EOFError):
                pass
            c.close()

    def serve(self, c):
        # NBDMAGIC, the magic of oldstyle, size, flags (HAS_FLAGS, FLUSH, FUA), 124 octets of zeros
        c.sendall(b"NBDMAGIC" + bytes.fromhex("00420281861253") .rjust(8, b"\0") + struct.pack(">QI", self.size, 13) + bytes(124))
        while True:
            head = self.exactly(c, 28)
            _, _, kind, cookie, _, length = struct.unpack(">IHHQQI", head)
            if kind == 1:
                self.exactly(c, length)
            if kind == 2 or self.answer == "close":
                return
            error, data = 0, b"z" * length if kind == 0 else b""
            if self.answer == "magic":
                c.sendall(b"\xff" * 16)
            elif self.answer == "cookie":
                c.sendall(struct.pack(">IIQ", 0x67446698, 0, cookie ^ 0xdead))
            elif self.answer == "short":
                c.sendall(struct.pack(">IIQ", 0x67446698, 0, cookie) + data[:-1])
                return
            elif self.answer == "error":
                c.sendall(struct.pack(">IIQ", 0x67446698, 0x7fffffff, cookie))
            else:
                c.sendall(struct.pack(">IIQ", 0x67446698, error, cookie) + data)

    @staticmethod
    def exactly(c, n):
        data = b""
        while len(data) < n:
            piece = c.recv(n - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data


class StructuredLiar(Liar):
    """A server of fixed newstyle with structured replies: self.answer says which chunks a read gets."""

    def chunk(self, c, cookie, flags, kind, data=b""):
        c.sendall(struct.pack(">IHHQI", 0x668e33ef, flags, kind, cookie, len(data)) + data)

    def negotiate(self, c):
        c.sendall(b"NBDMAGICIHAVEOPT" + struct.pack(">H", 3))  # fixed newstyle, no zeroes
        self.exactly(c, 4)
        while True:
            _, option, length = struct.unpack(">8sII", self.exactly(c, 16))
            self.exactly(c, length)

            def reply(kind, data=b""):
                c.sendall(struct.pack(">QIII", 0x3e889045565a9, option, kind, len(data)) + data)
            if option == 8:  # STRUCTURED_REPLY
                reply(1)
            elif option == 7:  # GO: INFO_EXPORT with HAS_FLAGS, FLUSH, FUA
                reply(3, struct.pack(">HQH", 0, self.size, 13))
                reply(1)
                return
            else:
                reply(0x80000001)

    def serve(self, c):
        self.negotiate(c)
        while True:
            _, _, kind, cookie, offset, length = struct.unpack(">IHHQQI", self.exactly(c, 28))
            if kind == 1:
                self.exactly(c, length)
            if kind == 2:
                return
            half = struct.pack(">Q", offset + length // 2) + b"z" * (length - length // 2)
            if kind != 0 or self.answer == "none":
                self.chunk(c, cookie, 1, 0)
            elif self.answer == "half":
                self.chunk(c, cookie, 1, 1, half)
            elif self.answer == "hole":  # half of it
                self.chunk(c, cookie, 1, 2, struct.pack(">QI", offset, length // 2))
            else:
                self.chunk(c, cookie, 0, 1, half)
                self.chunk(c, cookie, 1, 2, struct.pack(">QI", offset, length // 2))


class Lies(Store):
    def test_reads_without_all_bytes(self):
        """A read is not GOOD with zeros that the server has not sent; chunks in any order are a whole reply."""
        liar = StructuredLiar()
        self.addCleanup(liar.listener.close)
        with self.session("nbd://127.0.0.1:%d" % liar.port) as (d, w):
            for answer in ("none", "half", "hole"):
                with self.subTest(answer):
                    liar.answer = answer
                    self.assertEqual(sense(w.read10(0, 8))[0], MEDIUM_ERROR)
                    liar.answer = "good"
                    self.assertEqual(w.read10(0, 8), (0, bytes(2048) + b"z" * 2048))

    def test_wrong_answers(self):
        """Whatever the server answers, a command ends, never with GOOD and wrong data, and the store recovers."""
        liar = Liar()
        self.addCleanup(liar.listener.close)
        with self.session("nbd://127.0.0.1:%d" % liar.port, status=1) as (d, w):
            for answer in ("magic", "cookie", "short", "close", "error"):
                with self.subTest(answer):
                    liar.answer = answer
                    self.assertEqual(sense(w.read10(0, 8))[0], MEDIUM_ERROR)
                    liar.answer = "good"
                    self.assertEqual(w.read10(0, 8), (0, b"z" * 4096))
            self.assertGreaterEqual(liar.conns, 5)


if __name__ == "__main__":
    main()
