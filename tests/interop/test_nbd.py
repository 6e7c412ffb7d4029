#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""iser nbd-serve: the NBD clients of QEMU, libnbd and fio on a unit of iserd."""
import fcntl
import json
import os
import re
import select
import signal
import socket
import struct
import subprocess
import tempfile
import termios
import time
import unittest

from harness import (ISER, ISERCTL, Daemon, Folder, exactly, main, make_image, need,
                     patience, run, sha256, sparse, text_of_log, until_steady)
from test_iser import BUILT, Tgt

SIZE = 24 << 20
EIO, EINVAL, ENOSPC, EOVERFLOW, EPERM = 5, 22, 28, 75, 1


class Bridge:
    """An iser nbd-serve on its own socket."""

    def __init__(self, url, *args, tcp=False):
        self.dir = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.dir.name, "nbd.sock")
        self.log = tempfile.TemporaryFile()
        where = ["--listen", "127.0.0.1:0"] if tcp else ["--socket", self.path]
        self.proc = subprocess.Popen(
            [ISER, "nbd-serve"] + where + list(args) + [url],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log)
        ready = select.select([self.proc.stdout], [], [],
                              patience(20))[0]
        self.uri = self.proc.stdout.readline().decode().strip() if ready else ""
        if not self.uri:
            self.proc.kill()
            raise AssertionError("not ready: " + self.messages())

    def rss_kib(self):
        with open("/proc/%d/status" % self.proc.pid) as f:
            return next(int(line.split()[1]) for line in f
                        if line.startswith("VmRSS:"))

    def messages(self):
        return text_of_log(self.log)

    def wait(self, limit=20):
        try:
            return self.proc.wait(patience(limit))
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.wait()
            raise AssertionError("does not end: " + self.messages())

    def stop(self, limit=20):
        if self.proc.poll() is None:
            self.proc.send_signal(signal.SIGTERM)
        return self.wait(limit)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        status, text = self.stop(), self.messages()
        self.proc.stdout.close()
        self.log.close()
        left = os.path.exists(self.path)
        self.dir.cleanup()
        if kind is not None:
            return
        if status != getattr(self, "expect", 0) or left:
            raise AssertionError("ended with %d, socket left: %s: %s" % (
                status, left, text))
        for word in ("runtime error", "AddressSanitizer", "LeakSanitizer"):
            if word in text:
                raise AssertionError(text[-6000:])


class Raw:
    """An NBD client that builds its messages from bytes, also wrong messages."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(patience(10))
        self.sock.connect(path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def exactly(self, n):
        return exactly(self.sock, n)

    def until_answers_wait(self):
        """Waits until answers are unread and the server sends no more of them."""
        self.sock.recv(1, socket.MSG_PEEK)
        until_steady(lambda: fcntl.ioctl(self.sock, termios.FIONREAD, bytes(4)), 0.1)

    def open(self):
        """Negotiates with EXPORT_NAME; the server then uses simple replies."""
        assert self.exactly(18) == b"NBDMAGICIHAVEOPT\0\3"
        self.sock.sendall(struct.pack(">I", 3) + b"IHAVEOPT" +
                          struct.pack(">II", 1, 0))
        self.size, self.flags = struct.unpack(">QH", self.exactly(10))

    def request(self, command, offset=0, length=0, flags=0, data=b"",
                cookie=1):
        self.sock.sendall(struct.pack(
            ">IHHQQI", 0x25609513, flags, command, cookie, offset, length) +
            data)

    def reply(self, length=0):
        magic, err, cookie = struct.unpack(">IIQ", self.exactly(16))
        assert magic == 0x67446698
        return err, cookie, self.exactly(length) if not err else b""

    def ask(self, *args, read=0, **kw):
        self.request(*args, **kw)
        err, _, data = self.reply(read)
        return (err, data) if read and not err else err

    def expect_close(self):
        try:
            while self.sock.recv(65536):
                pass
        except ConnectionResetError:
            pass


@BUILT
class Clients(Folder):
    """NBD clients over iSCSI; classes below repeat the cases over iSER."""

    keys, over = "", "tcp"

    def url(self, daemon):
        return daemon.url + ("?" + self.keys if self.keys else "")

    def check_transport(self, daemon):
        self.assertIn("over " + self.over, daemon.messages())

    def setUp(self):
        super().setUp()
        self.image, self.back = self.path("image"), self.path("back")

    def there_and_back(self, url, **kw):
        make_image(self.image, SIZE)
        with Bridge(url, **kw) as b:
            run(["qemu-img", "convert", "-n", "-f", "raw", "-O", "raw",
                 self.image, b.uri])
            run(["qemu-img", "compare", "-f", "raw", "-F", "raw", self.image,
                 b.uri])
            run(["qemu-img", "convert", "-f", "raw", "-O", "raw", b.uri,
                 self.back])
        self.assertEqual(sha256(self.image), sha256(self.back))
        # the unit has the data that the bridge wrote
        self.assertIn(sha256(self.image), run([ISER, "hash", url]).text)

    @need("qemu-img")
    def test_qemu_img(self):
        with Daemon("ram:24M") as d:
            self.there_and_back(self.url(d))
            self.check_transport(d)

    @need("qemu-img")
    def test_qemu_img_tcp_digests(self):
        with Daemon("ram:24M") as d:
            self.there_and_back(
                d.url + "?header_digest=crc32c&data_digest=crc32c", tcp=True)

    @need("qemu-img")
    def test_qemu_img_file_4k(self):
        disk = sparse(self.path("disk"), SIZE)
        with Daemon("--block-size", "4096", disk) as d:
            self.there_and_back(self.url(d))
        self.assertEqual(sha256(self.image), sha256(disk))

    @need("qemu-img", "tgtd", "tgtadm")
    def test_qemu_img_other_target(self):
        disk = self.path("disk")
        make_image(disk, SIZE)
        with Tgt(disk) as t:
            self.there_and_back(t.url)

    @need("nbdcopy")
    def test_nbdcopy(self):
        make_image(self.image, SIZE)
        with Daemon("--workers", "2", "ram:24M") as d:
            with Bridge(self.url(d)) as b:
                run(["nbdcopy", "--connections=4", self.image, b.uri])
                run(["nbdcopy", "--flush", self.image, b.uri])
                run(["nbdcopy", "--request-size=2097152", b.uri, self.back])
                self.assertEqual(sha256(self.image), sha256(self.back))
            self.assertIn(sha256(self.image), run([ISER, "hash", d.url]).text)

    @need("nbdinfo")
    def test_nbdinfo(self):
        with Daemon("--block-size", "4096", "ram:24M") as d:
            with Bridge(self.url(d), "--export", "disk") as b:
                self.assertIn("disk", run(["nbdinfo", "--list", b.uri]).text)
                # --no-content: without this option nbdinfo needs the program "file"
                info = json.loads(run(["nbdinfo", "--no-content", "--json",
                                       b.uri]).text)
                e = info["exports"][0]
                self.assertEqual(e["export-name"], "disk")
                self.assertEqual(e["export-size"], SIZE)
                self.assertEqual(e["block_size_minimum"], 4096)
                self.assertEqual(e["contexts"], ["base:allocation"])
                for can in ("flush", "fua", "trim", "zero", "multi_conn"):
                    self.assertTrue(e["can_" + can], can)
                self.assertFalse(e["is_read_only"])
                other = b.uri.replace("/disk?", "/other?")
                self.assertNotEqual(
                    run(["nbdinfo", other], check=False).returncode, 0)

    @need("nbdinfo", "nbdcopy")
    def test_extents(self):
        make_image(self.image, SIZE)
        with Daemon("ram:24M") as d:
            with Bridge(self.url(d)) as b:
                run(["nbdcopy", self.image, b.uri])
                rows = [line.split() for line in
                        run(["nbdinfo", "--map", b.uri]).text.splitlines()]
        found = [(int(r[0]), int(r[1]), r[3]) for r in rows]
        self.assertEqual(found, [
            (0, 3 << 20, "data"), (3 << 20, 7 << 20, "hole,zero"),
            (10 << 20, 1 << 20, "data"), (11 << 20, 13 << 20, "hole,zero")])

    @need("fio")
    def test_fio_verify(self):
        with Daemon("--workers", "2", "ram:64M") as d:
            with Bridge(self.url(d)) as b:
                for bs in ("4k", "512-64k", "1M"):
                    bs = ["--bsrange=" + bs] if "-" in bs else ["--bs=" + bs]
                    text = run(["fio", "--name=verify", "--verify_state_save=0", "--ioengine=nbd",
                                "--uri=" + b.uri, "--rw=randwrite",
                                "--iodepth=32", "--size=32M",
                                "--verify=crc32c", "--verify_fatal=1",
                                "--output-format=json"] + bs).text
                    job = json.loads(text[text.index("{"):])["jobs"][0]
                    self.assertEqual(job["error"], 0)
                    self.assertGreaterEqual(job["read"]["io_bytes"], 30 << 20)

    @need("fio")
    def test_fio_clients_at_once(self):
        with Daemon("ram:64M") as d, Bridge(self.url(d)) as b:
            run(["fio", "--name=many", "--ioengine=nbd", "--uri=" + b.uri,
                 "--rw=randwrite", "--bs=16k", "--iodepth=16", "--numjobs=4",
                 "--size=16M", "--offset_increment=16M", "--verify=crc32c",
                 "--verify_fatal=1", "--fsync=64"])

    @need("qemu-io")
    def test_zero_trim_flush(self):
        def io(uri, *commands):
            args = [x for c in commands for x in ("-c", c)]
            text = run(["qemu-io", "-f", "raw", "-d", "unmap"] + args +
                       [uri]).text
            self.assertNotIn("failed", text)
        with Daemon("ram:24M") as d, Bridge(self.url(d)) as b:
            io(b.uri, "write -P 0x5a 0 8M", "write -z 1M 1M",
               "write -z -u 2M 1M", "discard 3M 1M", "write -f -P 7 4M 64k",
               "flush", "read -P 0x5a 0 1M", "read -P 0 1M 3M",
               "read -P 7 4M 64k", "read -P 0x5a 5M 3M")

    def test_size_at_connect(self):
        """A unit that grew after nbd-serve began: a client that connects gets the new size, and its last block."""
        disk = sparse(self.path("disk"), 1 << 20)
        with Daemon("--control", self.path("ctl"), "--block-size", "512", disk) as d, Bridge(d.url) as b:
            for size in 1 << 20, 3 << 20:
                os.truncate(disk, size)
                if size > 1 << 20:
                    run([ISERCTL, "-s", self.path("ctl"), "resize", "lun0"])
                with Raw(b.path) as r:
                    r.open()
                    self.assertEqual(r.size, size)
                    self.assertEqual(r.ask(0, size - 512, 512, read=512)[0], 0)
            os.kill(d.proc.pid, signal.SIGSTOP)  # the size that was known has to do
            with Raw(b.path) as r:
                r.open()
                self.assertEqual(r.size, size)
                os.kill(d.proc.pid, signal.SIGCONT)
                self.assertEqual(r.ask(0, size - 512, 512, read=512)[0], 0)

    def test_read_only(self):
        with Daemon("ram:24M") as d:
            with Bridge(self.url(d), "--read-only") as b, Raw(b.path) as r:
                r.open()
                self.assertTrue(r.flags & 2)
                self.assertEqual(r.ask(1, 0, 512, data=b"x" * 512), EPERM)
                self.assertEqual(r.ask(6, 0, 512), EPERM)
                self.assertEqual(r.ask(0, 0, 512, read=512), (0, bytes(512)))
        with Daemon("--read-only", "ram:24M") as d:
            with Bridge(self.url(d)) as b, Raw(b.path) as r:
                r.open()
                self.assertTrue(r.flags & 2)


class ClientsRdma(Clients):
    keys, over = "transport=iser&start=rdma", "iser"
    test_qemu_img_tcp_digests = test_qemu_img_other_target = None


class ClientsStream(Clients):
    keys, over = "transport=iser&start=stream", "iser"
    test_qemu_img_tcp_digests = test_qemu_img_other_target = None


@BUILT
class Errors(unittest.TestCase):
    """Errors of clients, and the end of the server."""

    def test_not_nbd(self):
        with Daemon("ram:24M") as d, Bridge(d.url) as b:
            for junk in (b"GET / HTTP/1.1\r\n\r\n", b"\0" * 64, b"\xff" * 4):
                with Raw(b.path) as r:
                    r.sock.sendall(junk)
                    r.expect_close()
            with Raw(b.path) as r: # the server still serves
                r.open()
                self.assertEqual(r.size, SIZE)
            self.assertIn("closed", b.messages())

    def test_request_without_magic(self):
        with Daemon("ram:24M") as d, Bridge(d.url) as b, Raw(b.path) as r:
            r.open()
            r.request(0, 0, 512)
            self.assertEqual(r.reply(512)[0], 0)
            r.sock.sendall(b"x" * 28)
            r.expect_close()
            self.assertIn("without its magic number", b.messages())

    def test_goes_in_the_middle(self):
        with Daemon("ram:24M") as d, Bridge(d.url) as b:
            for cut in (1, 27, 28, 29, 5000):
                with Raw(b.path) as r:
                    r.open()
                    whole = struct.pack(">IHHQQI", 0x25609513, 0, 1, 1, 0,
                                        65536) + b"y" * 65536
                    r.sock.sendall(whole[:cut])
            with Raw(b.path) as r:
                r.open()
                self.assertEqual(r.ask(0, 0, 65536, read=65536),
                                 (0, bytes(65536)))

    def test_leaves_with_requests_under_way(self):
        with Daemon("ram:64M") as d, Bridge(d.url) as b:
            for _ in range(20):
                with Raw(b.path) as r:
                    r.open()
                    for i in range(60):
                        r.request(0, i << 20, 1 << 20, cookie=i)
            with Raw(b.path) as r:
                r.sock.settimeout(patience(60))
                r.open()
                self.assertEqual(r.ask(3), 0)

    def test_memory_is_bounded(self):
        """Unread answers of all clients occupy about 256 MiB at most."""
        with Daemon("null:1G") as d, Bridge(d.url) as b:
            lazy = [Raw(b.path) for _ in range(16)]
            for r in lazy:
                r.open()
                for i in range(48):
                    r.request(0, i << 20, 1 << 20, cookie=i)
            with Raw(b.path) as r: # other clients do not wait for them
                r.sock.settimeout(patience(60))
                r.open()
                self.assertEqual(r.ask(0, 0, 4096, read=4096)[0], 0)
                if not d.sanitized():
                    self.assertLess(b.rss_kib(), 400 << 10)
            for r in lazy:
                self.assertEqual(sorted(r.reply(1 << 20)[1]
                                        for _ in range(48)), list(range(48)))
                r.sock.close()

    def test_bad_requests_are_answered(self):
        with Daemon("ram:24M") as d, Bridge(d.url) as b, Raw(b.path) as r:
            r.open()
            self.assertEqual(r.ask(0, SIZE, 512), EINVAL)
            self.assertEqual(r.ask(0, 2**64 - 1, 2), EINVAL)
            self.assertEqual(r.ask(0, 0, 2**32 - 1), EINVAL)
            self.assertEqual(r.ask(1, SIZE, 512, data=b"x" * 512), ENOSPC)
            self.assertEqual(r.ask(1, 1, 512, data=b"x" * 512), EINVAL)
            self.assertEqual(r.ask(1, 0, 100, data=b"x" * 100), EINVAL)
            self.assertEqual(r.ask(4, 3, 512), EINVAL)
            self.assertEqual(r.ask(6, 0, 511), EINVAL)
            self.assertEqual(r.ask(5, 0, 512), EINVAL)
            self.assertEqual(r.ask(77, 0, 512), EINVAL)
            self.assertEqual(r.ask(0, 0, 512, flags=0x8000), EINVAL)
            self.assertEqual(r.ask(7, 0, 512), EINVAL)
            self.assertEqual(r.ask(1, 0, 512, data=b"z" * 512, flags=1), 0)
            self.assertEqual(r.ask(0, 0, 513, read=513),
                             (0, b"z" * 512 + b"\0"))
            self.assertEqual(r.ask(0, 511, 2, read=2), (0, b"z\0"))
            self.assertEqual(r.ask(0, 0, 0), 0)
            self.assertEqual(r.ask(1, 0, 0), 0)

    def test_too_large_is_answered(self):
        with Daemon("null:1G") as d, Bridge(d.url) as b, Raw(b.path) as r:
            r.open()
            self.assertEqual(r.ask(0, 0, (32 << 20) + 1), EOVERFLOW)
            r.request(1, 0, (32 << 20) + 512)
            for _ in range(32):
                r.sock.sendall(bytes(1 << 20))
            r.sock.sendall(bytes(512))
            self.assertEqual(r.reply()[0], EOVERFLOW)
            self.assertEqual(r.ask(0, 0, 32 << 20, read=32 << 20)[0], 0)

    def test_many_requests_in_one_call(self):
        """More requests than are served at once, with unread answers."""
        with Daemon("ram:24M") as d, Bridge(d.url) as b, Raw(b.path) as r:
            r.open()
            data = b"".join(
                struct.pack(">IHHQQI", 0x25609513, 0, 1, i, i * 4096, 4096) +
                bytes([i & 255]) * 4096 for i in range(300))
            r.sock.sendall(data)
            r.until_answers_wait()
            self.assertEqual(sorted(r.reply()[1] for _ in range(300)),
                             list(range(300)))
            r.sock.sendall(b"".join(
                struct.pack(">IHHQQI", 0x25609513, 0, 0, i, i * 4096, 4096)
                for i in range(300)))
            r.until_answers_wait()
            for _ in range(300):
                err, cookie, data = r.reply(4096)
                self.assertEqual((err, data), (0, bytes([cookie & 255]) * 4096))

    def test_silent_client(self):
        """A client that does not negotiate is dropped after 10 seconds, and delays no
        other client."""
        with Daemon("ram:24M") as d, Bridge(d.url) as b, Raw(b.path) as silent:
            with Raw(b.path) as r:
                r.open()
                self.assertEqual(r.ask(3), 0)
            silent.exactly(18)
            silent.sock.settimeout(patience(20))
            began = time.monotonic()
            silent.expect_close()
            self.assertGreater(time.monotonic() - began, 8)
            self.assertIn("no end of the negotiation", b.messages())

    def test_more_clients_than_places(self):
        with Daemon("ram:24M") as d, Bridge(d.url) as b:
            held = [Raw(b.path) for _ in range(40)]
            for r in held[:32]:
                r.open()
            for r in held[:32]:
                self.assertEqual(r.ask(0, 0, 512, read=512)[0], 0)
                r.sock.close()
            for r in held[32:]:
                r.open()
                r.sock.close()

    def test_once(self):
        with Daemon("ram:24M") as d, Bridge(d.url, "--once") as b:
            with Raw(b.path): # disconnected after the negotiation: does not count
                pass
            with Raw(b.path) as r:
                r.open()
                self.assertEqual(r.ask(0, 0, 512, read=512)[0], 0)
            self.assertEqual(b.wait(10), 0)

    def test_sigterm_answers_what_is_under_way(self):
        with Daemon("ram:24M") as d, Bridge(d.url) as b, Raw(b.path) as r:
            r.open()
            for i in range(32):
                r.request(0, i * 65536, 65536, cookie=i)
            b.proc.send_signal(signal.SIGTERM)
            got = 0
            try:
                while True:
                    self.assertEqual(r.reply(65536)[0], 0)
                    got += 1
            except (EOFError, ConnectionResetError):
                pass
            self.assertEqual(b.wait(10), 0)
            d.stop()
            self.assertIn("logged out", d.messages())

    def test_sighup(self):
        """The end of a terminal ends the server in order, unless nohup has it ignore SIGHUP; the socket goes in either case."""
        with Daemon("ram:24M") as d:
            with Bridge(d.url) as b, Raw(b.path) as r:
                r.open()
                b.proc.send_signal(signal.SIGHUP)
                r.expect_close()
                self.assertEqual(b.wait(10), 0)
            before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
            self.addCleanup(signal.signal, signal.SIGHUP, before)
            with Bridge(d.url) as b, Raw(b.path) as r:
                r.open()
                b.proc.send_signal(signal.SIGHUP)
                self.assertEqual(r.ask(0, 0, 512, read=512)[0], 0)

    def test_the_session_is_lost(self):
        with Daemon("ram:24M") as d, Bridge(d.url) as b, Raw(b.path) as r:
            r.open()
            self.assertEqual(r.ask(3), 0)
            d.stop()
            r.expect_close()
            self.assertEqual(b.wait(10), 4)
            self.assertIn("session lost", b.messages())
            b.expect = 4

    def test_refusals(self):
        with Daemon("ram:24M") as d:
            for args, what in (
                    (["--listen", "0.0.0.0:0"], "not a loopback address"),
                    (["--listen", "nonsense"], "not an address; give HOST:PORT"),
                    (["--socket", "/x" * 80], "characters"),
                    (["--socket", "/nowhere/at/all"], "cannot listen"),
                    (["--socket", "a", "--listen", "b"], "--socket and --listen: give one"),
                    (["--export", "a b"], "--export a b: must be")):
                done = run([ISER, "nbd-serve"] + args + [d.url], check=False)
                self.assertNotEqual(done.returncode, 0, args)
                self.assertTrue(re.search(what, done.text), done.text)
            with Bridge(d.url) as b: # the socket of a running server is not taken over
                done = run([ISER, "nbd-serve", "--socket", b.path, d.url],
                           check=False)
                self.assertIn("Address already in use", done.text)
                b.proc.kill() # the socket of a dead server is replaced
                b.proc.wait()
                b.expect = -signal.SIGKILL
                self.assertTrue(os.path.exists(b.path))
                again = subprocess.Popen(
                    [ISER, "nbd-serve", "--socket", b.path, d.url],
                    stdout=subprocess.PIPE)
                self.assertIn(b"nbd+unix", again.stdout.readline())
                again.terminate()
                self.assertEqual(again.wait(patience(10)), 0)
                again.stdout.close()


@BUILT
class Attach(unittest.TestCase):
    """iser attach without the kernel's support; tests/lab/jobs/attach-iser-to-iserd has the rest."""

    def ends(self, status, *args, message):
        done = run([ISER, *args], check=False)
        self.assertEqual(done.returncode, status, done.text)
        self.assertIn(message, done.text)

    @unittest.skipIf(os.path.exists("/sys/module/nbd"), "this kernel has NBD devices")
    def test_no_module(self):
        """The error names the module, before a login."""
        for args in (("attach", "iscsi://127.0.0.1:1/iqn.2026-01.org.example:none/0"), ("detach", "/dev/nbd0")):
            self.ends(1, *args, message="the module nbd of the Linux kernel is not loaded; run modprobe nbd")

    def test_wrong_device(self):
        for name in ("/dev/sda", "/dev/nbd", "/dev/nbd0p1", "/dev/nbd-1", "/dev/nbd99999"):
            self.ends(7, "attach", "--device", name, "iscsi://127.0.0.1:1/iqn.2026-01.org.example:none/0",
                      message="not the name of a device")
            self.ends(7, "detach", name, message="not the name of an NBD device")
        self.ends(7, "attach", "--resume", "iscsi://127.0.0.1:1/iqn.2026-01.org.example:none/0",
                  message="give --device /dev/nbdN")


if __name__ == "__main__":
    main()
