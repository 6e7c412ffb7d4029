#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""WRITEs and aborts of a session of libiser that is continued (RFC 7143 §6.3.6): its only connection breaks at a
request for data of the target, an R2T or an RDMA Read Request."""
import asyncio
import ctypes
import os
import socket
import threading
import unittest

from harness import Daemon, Folder, exactly, main, patience, quiet_port
from rdma_wire import READ_REQUEST, READ_RESPONSE
from test_continuation import LEVEL, CutsAll, sessions
from test_python import openiser

TMF, DATA_OUT, R2T = 0x02, 0x05, 0x31
ABORT_TASK = 1
SIZE = 512 << 10
WAYS = {"transport=tcp": False, "transport=iser&start=rdma": True}


class CutsAtRequest(CutsAll):
    """Breaks the connection once, at the request for data with this number: before the initiator has it, after that, or
    after half a PDU (an FPDU) of the data. closed: see CutsAll. Once that has happened with `closes`, a request for data waits
    until the initiator has sent an ABORT TASK: else the WRITE may end before."""

    def __init__(self, daemon, rdma, where, number=1, closes=False):
        self.rdma, self.where, self.number, self.closes = rdma, where, number, closes
        self.requests, self.broken, self.aborted = 0, None, threading.Event()
        super().__init__(daemon, after=1 << 60)

    def unit(self, sock, first):
        """The next PDU or FPDU, or the begin of MPA."""
        if self.rdma and first:
            head = exactly(sock, 20)
            return head + exactly(sock, int.from_bytes(head[18:], "big"))
        if self.rdma:
            head = exactly(sock, 2)
            n = int.from_bytes(head, "big")
            return head + exactly(sock, n + -(2 + n) % 4 + 4)
        head = exactly(sock, 48)
        n = int.from_bytes(head[5:8], "big")
        return head + exactly(sock, 4 * head[4] + n + -n % 4)

    def asks(self, unit):
        if not self.rdma:
            return unit[0] & 0x3f == R2T
        return not unit[2] & 0x80 and unit[3] & 15 == READ_REQUEST and unit[32:36] != bytes(4)

    def has_data(self, unit):
        if not self.rdma:
            return unit[0] & 0x3f == DATA_OUT
        return unit[2] & 0x80 and unit[3] & 15 == READ_RESPONSE

    def aborts(self, unit):
        """A Send has 20 bytes of MPA, DDP and RDMAP, then 28 of iSER, before the BHS."""
        if self.rdma and (unit[2] & 0x80 or len(unit) < 96):
            return False
        bhs = unit[48:] if self.rdma else unit
        return bhs[0] & 0x3f == TMF and bhs[1] & 0x7f == ABORT_TASK

    def pass_on(self, unit, ends, way):
        """Returns whether the connection goes on."""
        if way == 1 and self.asks(unit):
            self.requests += 1
            if self.requests == self.number and self.where != "half":
                self.cut(ends, way, unit if self.where == "after" else b"")
                return False
            if self.requests > self.number and self.closes:
                self.aborted.wait(patience(20))
        elif way == 0 and self.aborts(unit):
            self.aborted.set()
        elif way == 0 and self.number <= self.requests and self.where != "before" and self.has_data(unit):
            if self.where == "half" and not self.cuts:
                self.cut(ends, way, unit[:len(unit) // 2])
                return False
            if ends is self.broken:
                return False
        ends[1 - way].sendall(unit)
        return True

    def cut(self, ends, way, last):
        self.cuts += 1
        self.broken = ends
        self.closed |= self.closes
        ends[1 - way].sendall(last)

    def pump(self, ends, way):
        first = True
        try:
            while not self.closed and self.pass_on(self.unit(ends[way], first), ends, way):
                first = False
        except (OSError, EOFError):
            pass
        self.end(ends)

    @staticmethod
    def end(ends):
        for s in ends:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def write10(lba, data):
    return b"\x2a\0" + lba.to_bytes(4, "big") + b"\0" + (len(data) // 512).to_bytes(2, "big") + b"\0"


@unittest.skipUnless(openiser, "a sanitizer's library needs a sanitizer's program")
class Continued(Folder):
    def run_all(self, *coroutines):
        async def together():
            return await asyncio.wait_for(asyncio.gather(*coroutines), patience(40))
        return asyncio.run(together())

    def connect(self, path, keys):
        return openiser.aio.connect(path.url + "?error_recovery_level=2&reconnect=30&timeout=60&" + keys)

    async def waits(self, path, d, losses=1):
        """The connection is lost for both ends, and the session waits."""
        while not path.cuts or d.messages().count("is lost") < losses:
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.3)

    # ---- WRITEs ----

    async def writes(self, path, keys, lba):
        data = os.urandom(SIZE)
        async with await self.connect(path, keys) as disk:
            await disk.command(write10(lba, data), write=data)
            return data == bytes(await disk.pread(SIZE, lba * 512))

    # [RFC 7143: 7.1.4.3 #2]
    def test_a_write_that_the_target_has_asked_for(self):
        for keys, rdma in WAYS.items():
            cases = [(where, number) for where in ("before", "after", "half") for number in (1, 3)]
            with Daemon(*LEVEL, "ram:8M") as d:
                paths = [CutsAtRequest(d, rdma, *case) for case in cases]
                done = self.run_all(*(self.writes(path, keys + "&max_burst_length=65536", n * SIZE // 512)
                                      for n, path in enumerate(paths)))
                for path in paths:
                    path.__exit__()
                self.assertEqual(done, [True] * len(cases), cases)
                self.assertEqual([path.cuts for path in paths], [1] * len(cases), cases)
                self.assertEqual(len(sessions(d)), len(cases), d.messages())
                self.assertEqual(d.messages().count("goes on over connection"), len(cases), d.messages())

    # ---- aborts ----

    async def aborts(self, path, d, keys, meanwhile):
        """Aborts a WRITE while its session waits for a connection; returns how it ended."""
        core, lib = openiser.aio.core, openiser.aio.lib
        data = os.urandom(SIZE)
        async with await self.connect(path, keys) as disk:
            pending = core.make_command(0, write10(0, data), 0, data)
            lib.iser_submit(disk._session, ctypes.byref(pending.keep[0]))
            disk._driver.kick()
            await self.waits(path, d)
            self.assertEqual(lib.iser_abort(ctypes.byref(pending.keep[0])), 0)
            with self.assertRaises(openiser.Error) as caught:
                await disk.ping()
            self.assertEqual(caught.exception.code, openiser.ErrorCode.CLOSED)
            with self.assertRaises(openiser.Error) as caught:
                await disk.manage_tasks(openiser.Function.LUN_RESET)
            self.assertEqual(caught.exception.code, openiser.ErrorCode.CLOSED)
            self.assertFalse(pending.done)
            meanwhile()
            path.closed = False
            await disk._driver.wait(pending)
            # the session is as before
            await disk.pwrite(data[::-1], 0)
            self.assertEqual(bytes(await disk.pread(SIZE, 0)), data[::-1])
            return pending.err

    def test_an_abort_of_a_session_that_waits(self):
        for keys, rdma in WAYS.items():
            with Daemon(*LEVEL, "ram:8M") as d, CutsAtRequest(d, rdma, "after", closes=True) as path:
                err, = self.run_all(self.aborts(path, d, keys, lambda: None))
                self.assertEqual(err, openiser.ErrorCode.ABORTED, d.messages())
                self.assertEqual(len(sessions(d)), 1, d.messages())

    def test_an_abort_of_a_session_that_cannot_be_continued(self):
        """The target has ended the session: the command is not issued again in the new one."""
        disk = self.path("disk")
        with open(disk, "wb") as f:
            f.truncate(8 << 20)
        for keys, rdma in WAYS.items():
            listen = "127.0.0.1:%d" % quiet_port()
            daemons = [Daemon(*LEVEL, "--listen", listen, disk)]

            def restart():
                path.aborted.set()  # no ABORT TASK will come
                daemons.pop().kill()
                daemons.append(Daemon(*LEVEL, "--listen", listen, disk))
            with CutsAtRequest(daemons[0], rdma, "after", closes=True) as path:
                err, = self.run_all(self.aborts(path, daemons[0], keys, restart))
                self.assertIn(err, (openiser.ErrorCode.ABORTED, openiser.ErrorCode.CLOSED))
                self.assertEqual(len(sessions(daemons[0])), 1)
            daemons[0].stop()


if __name__ == "__main__":
    main()
