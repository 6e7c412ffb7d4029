# SPDX-License-Identifier: BSD-2-Clause
"""A file system with one file, `disk`. The test can make fsync fail, and can make
the file system stop answering.

The module implements the protocol of /dev/fuse itself (linux/fuse.h, 7.19), so the
test needs no library. Mounting needs root."""
import ctypes
import errno
import os
import select
import stat
import struct
import tempfile
import threading
import time

ROOT, DISK = 1, 2
LOOKUP, FORGET, GETATTR, SETATTR = 1, 2, 3, 4
OPEN, READ, WRITE, STATFS, RELEASE, FSYNC = 14, 15, 16, 17, 18, 20
FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR = 25, 26, 27, 28, 29
BATCH_FORGET = 42
ASYNC_READ = 1
MOST = 128 << 10
libc = ctypes.CDLL(None, use_errno=True)


class FuseDisk:
    """with FuseDisk(size) as disk: disk.path is the file. The next disk.failing
    calls of fsync fail; disk.syncs counts all calls. While disk.hanging is set, no
    request is read, and disk.hung is set if a request is pending: its caller waits,
    but can be killed. If disk.holding is an offset, reads from there have no answer,
    and disk.hung is set if there was one. Requests of the numbers in disk.postponed have
    no answer until disk.answer(), and disk.hung is set; all other requests go on. The
    kernel caches attributes for `cached` seconds."""

    def __init__(self, size, cached=60):
        self.data = bytearray(size)
        self.failing = self.syncs = 0
        self.hanging = self.hung = False
        self.holding = None
        self.postponed, self.pending = (), []
        self.cached = cached
        self.dir = tempfile.mkdtemp()
        self.path = os.path.join(self.dir, "disk")

    def __enter__(self):
        self.fd = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={self.fd},rootmode=40000,user_id=0,group_id=0"
        if libc.mount(b"disk", self.dir.encode(), b"fuse", 0,
                      options.encode()):
            err = ctypes.get_errno()
            os.close(self.fd)
            os.rmdir(self.dir)
            raise OSError(err, os.strerror(err))
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.hanging = False
        self.holding = None
        self.answer()
        libc.umount2(self.dir.encode(), 2)  # MNT_DETACH
        self.thread.join(10)
        os.close(self.fd)
        os.rmdir(self.dir)

    def _attr(self, node):
        mode = (stat.S_IFDIR | 0o755) if node == ROOT else stat.S_IFREG | 0o600
        size = 0 if node == ROOT else len(self.data)
        return struct.pack("<6Q10I", node, size, size // 512, 0, 0, 0, 0, 0, 0,
                           mode, 1, 0, 0, 0, 4096, 0)

    def _answer(self, op, node, body):
        """Returns the body of the response, or None for no response."""
        if op == INIT:
            # as real file systems: otherwise io_uring_enter waits for a readahead
            return struct.pack("<4I2H2I8I", 7, 19, MOST, ASYNC_READ, 0, 0, MOST, 0,
                               0, 0, 0, 0, 0, 0, 0, 0)[:24]
        if op in (FORGET, BATCH_FORGET):
            return None
        if op == LOOKUP:
            if body.rstrip(b"\0") != b"disk":
                raise OSError(errno.ENOENT, "")
            return struct.pack("<4Q2I", DISK, 0, 60, self.cached, 0, 0) + \
                self._attr(DISK)
        if op == GETATTR:
            return struct.pack("<Q2I", self.cached, 0, 0) + self._attr(node)
        if op == SETATTR:
            return struct.pack("<Q2I", self.cached, 0, 0) + self._attr(node)
        if op in (OPEN, OPENDIR):
            return struct.pack("<Q2I", 1, 0, 0)
        if op == READ:
            _, off, size = struct.unpack_from("<2QI", body)
            while self.holding is not None and off >= self.holding:
                self.hung = True
                time.sleep(0.05)
            return bytes(self.data[off:off + size])
        if op == WRITE:
            _, off, size = struct.unpack_from("<2QI", body)
            self.data[off:off + size] = body[40:40 + size]
            return struct.pack("<2I", size, 0)
        if op == STATFS:
            return struct.pack("<5Q4I24x", 1 << 20, 1 << 20, 1 << 20, 9, 9,
                               4096, 255, 4096, 0)
        if op == FSYNC:
            self.syncs += 1
            if self.failing:
                self.failing -= 1
                raise OSError(errno.EIO, "")
            return b""
        if op in (RELEASE, RELEASEDIR, FLUSH, READDIR):
            return b""
        raise OSError(errno.ENOSYS, "")

    def _wait(self):
        """Waits until a request may be read."""
        while True:
            pending = select.select([self.fd], [], [], 0.05)[0]
            self.hung = self.hanging and bool(pending)
            if pending and not self.hung:
                return
            if self.hung:
                time.sleep(0.05)

    def _serve(self):
        while True:
            self._wait()
            try:
                request = os.read(self.fd, MOST + 8192)
            except InterruptedError:
                continue
            except OSError:  # ENODEV: unmounted
                return
            if struct.unpack_from("<2I", request)[1] in self.postponed:
                self.pending.append(request)
                self.hung = True
            else:
                self._respond(request)

    def answer(self):
        """Executes the postponed requests."""
        self.postponed, pending, self.pending = (), self.pending, []
        for request in pending:
            self._respond(request)

    def _respond(self, request):
        _, op, unique, node = struct.unpack_from("<2I2Q", request)
        err = 0
        try:
            body = self._answer(op, node, request[40:])
        except OSError as e:
            err, body = e.errno, b""
        if body is not None:
            try:
                os.write(self.fd, struct.pack("<Iiq", 16 + len(body), -err,
                                              unique) + body)
            except OSError:
                pass  # the caller has been interrupted
