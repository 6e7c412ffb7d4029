# SPDX-License-Identifier: BSD-2-Clause
"""
openiser.aio: the functions of openiser for asyncio.

    async with await openiser.aio.connect(url) as disk:
        await asyncio.gather(*(disk.pread(4096, i * 4096) for i in range(100)))

The requests of one turn of the event loop leave in one system call. A task that is cancelled while it waits for a
request does not end the request: the library keeps the memory until the target has answered; a command of
Disk.command is aborted. A Disk belongs to the event loop in which it was made.
"""
from __future__ import annotations

import asyncio
import ctypes
import warnings
from typing import Any, List, Optional

from . import _core as core
from ._core import Buffer, DiscoveredTarget, Extent, Function, Info, Path, Reply, Urls
from ._native import lib

__all__ = ["connect", "discover", "Disk"]


class _Driver:
    """Runs the loop of a context within the event loop: by its descriptor and its next deadline."""

    def __init__(self, initiator: Optional[str]):
        self.context = core.Context(initiator)
        self.loop = asyncio.get_running_loop()
        self.fd = lib.iser_get_fd(self.context.ctx)
        self.timer: Optional[asyncio.TimerHandle] = None
        self.kicked = False
        self.pending: "set[core.Pending]" = set()
        self.loop.add_reader(self.fd, self.serve)

    def serve(self) -> None:
        """Runs one turn of the context, and sets the timer for its next one."""
        self.kicked = False
        if not self.context.ctx:
            return
        if lib.iser_service(self.context.ctx, 0):
            self.loop.call_exception_handler({"message": "openiser: " + str(self.context.error(core.ErrorCode.SYSTEM))})
        if self.timer:
            self.timer.cancel()
            self.timer = None
        if not self.context.ctx:
            return
        ms = lib.iser_next_timeout(self.context.ctx)
        if ms >= 0:
            self.timer = self.loop.call_later(ms / 1000, self.serve)

    def kick(self) -> None:
        """Runs a turn soon: a call was made outside of one."""
        if not self.kicked:
            self.kicked = True
            self.loop.call_soon(self.serve)

    async def wait(self, pending: core.Pending) -> core.Pending:
        """Waits for the end of a call."""
        self.kick()
        if pending.done:
            return pending
        future = self.loop.create_future()

        def ended() -> None:
            self.pending.discard(pending)
            if not future.done():
                future.set_result(None)

        self.pending.add(pending)
        pending.notify = ended
        await future
        return pending

    async def finish(self, pending: core.Pending) -> core.Pending:
        """Waits for a call that reports its error by the message of the context."""
        await self.wait(pending)
        if pending.err:
            raise self.context.error(pending.err)
        return pending

    async def drain(self) -> None:
        """Waits for the calls whose tasks were cancelled."""
        while self.pending:
            self.kick()
            await asyncio.sleep(0.005)

    def free(self) -> None:
        """Frees the context; it blocks if a session is still logged in."""
        if not self.context.ctx:
            return
        self.loop.remove_reader(self.fd)
        if self.timer:
            self.timer.cancel()
        self.context.free()


async def discover(url: str, initiator: Optional[str] = None) -> List[DiscoveredTarget]:
    """Returns the targets that a portal offers."""
    parsed = core.parse_url(url, discovery=True)
    driver = _Driver(initiator)
    handle: Any = None
    pending: Optional[core.Pending] = None
    try:
        handle, pending = driver.context.start(lib.iser_discover_start, driver.context.ctx, ctypes.byref(parsed),
                                               done=core.list_done)
        await driver.finish(pending)
        return list(pending.value)
    finally:
        if pending and not pending.done:
            pending.cancel()
            lib.iser_discover_cancel(handle)
        driver.free()


async def connect(url: Urls, initiator: Optional[str] = None) -> "Disk":
    """Logs in to the target of a URL and opens its unit. Several URLs are paths to one unit."""
    disk = Disk(url, initiator)
    try:
        await disk._open()
    except BaseException:
        await disk.close()
        raise
    return disk


class Disk(core.OpenUnit):
    """A logical unit; made by connect()."""

    def __init__(self, url: Urls, initiator: Optional[str] = None):
        self._urls, self._count = core.parse_paths(url)
        self._driver = _Driver(initiator)
        super().__init__(self._driver.context)

    async def _open(self) -> None:
        context = self._driver.context
        self._session, pending = context.start(lib.iser_connect_paths_start, context.ctx, self._urls, self._count,
                                               done=core.object_done)
        await self._driver.finish(pending)
        self._unit, pending = context.start(lib.iser_unit_open_start, self._session, self._urls[0].lun,
                                            done=core.object_done)
        await self._driver.finish(pending)

    async def __aenter__(self) -> "Disk":
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()

    def __del__(self) -> None:
        driver = getattr(self, "_driver", None)
        if driver and driver.context.ctx:
            warnings.warn("unclosed %r" % self, ResourceWarning, source=self)

    async def close(self) -> None:
        """Waits for the requests in progress and logs out. A second call does nothing."""
        driver, session, unit = self._driver, self._session, self._unit
        self._session = self._unit = None
        if unit:
            await driver.drain()
            lib.iser_unit_close(unit)
        if session:
            pending = core.Pending()
            lib.iser_disconnect_start(session, core.void_done, pending.key)
            await driver.wait(pending)
        for left in driver.pending:
            left.cancel()  # a connection that was being made: the library does not report its end
        driver.pending.clear()
        driver.free()

    async def _run(self, pending: core.Pending) -> core.Pending:
        try:
            unit = self._need_unit()
        except ValueError:
            pending.cancel()
            raise
        lib.iser_unit_submit(unit, ctypes.byref(pending.keep[0]))
        await self._driver.wait(pending)
        core.check_request(pending)
        return pending

    async def refresh(self) -> Info:
        """Reads the properties again, for example after the capacity has changed."""
        context = self._driver.context
        await self._driver.finish(context.begin(lib.iser_unit_refresh_start, self._need_unit(),
                                                done=core.object_done))
        return self.info

    async def pread(self, length: int, offset: int) -> bytes:
        """Returns `length` bytes at `offset`; fewer is an error."""
        data = bytearray(length)
        await self.preadinto(data, offset)
        return bytes(data)

    async def preadinto(self, buffer: Buffer, offset: int) -> None:
        """Fills a writable buffer with the bytes at `offset`."""
        length = memoryview(buffer).nbytes
        await self._run(core.make_request(core.Op.READ, offset, length, buffers=[buffer], writable=True))

    async def pwrite(self, data: Buffer, offset: int, fua: bool = False) -> None:
        """Writes data at `offset`. With fua they are durable when the call returns."""
        length = memoryview(data).nbytes
        await self._run(core.make_request(core.Op.WRITE, offset, length, core.FUA if fua else 0, [data]))

    async def flush(self) -> None:
        """Makes all data that were written durable."""
        await self._run(core.make_request(core.Op.FLUSH))

    async def trim(self, offset: int, length: int, fua: bool = False) -> None:
        """Unmaps the whole blocks in a range."""
        await self._run(core.make_request(core.Op.TRIM, offset, length, core.FUA if fua else 0))

    async def zero(self, offset: int, length: int, fua: bool = False, may_unmap: bool = True,
                   fast: bool = False) -> None:
        """Makes a range read as zeros. With fast it fails where zeros would have to be sent."""
        await self._run(core.make_request(core.Op.ZERO, offset, length, core.zero_flags(fua, may_unmap, fast)))

    async def extents(self, offset: int = 0, length: Optional[int] = None) -> List[Extent]:
        """Returns which parts of a range are mapped, in order and without gaps; without a length, to the end that
        the unit has now."""
        end = (await self.refresh()).size if length is None else offset + length
        found: List[Extent] = []
        while offset < end:
            part = core.extents_of(await self._run(core.make_request(core.Op.EXTENTS, offset, end - offset)))
            found += part
            offset = part[-1].offset + part[-1].length
        return found

    async def compare_and_write(self, expected: Buffer, data: Buffer, offset: int, fua: bool = False) -> None:
        """Writes data if the unit has `expected` there, in one step; else raises MiscompareError."""
        length = memoryview(data).nbytes
        await self._run(core.make_request(core.Op.COMPARE_AND_WRITE, offset, length, core.FUA if fua else 0,
                                          [expected, data]))

    async def command(self, cdb: bytes, read: int = 0, write: Optional[Buffer] = None) -> Reply:
        """Executes a SCSI command. If the task is cancelled, the command is aborted."""
        pending = core.make_command(self._urls[0].lun, cdb, read, write)
        try:
            self._need_unit()
        except ValueError:
            pending.cancel()
            raise
        io = ctypes.byref(pending.keep[0])
        lib.iser_submit(self._session, io)
        try:
            await self._driver.wait(pending)
        except asyncio.CancelledError:
            if not pending.done:
                lib.iser_abort(io)
                self._driver.kick()
            raise
        return core.reply_of(pending)

    async def ping(self, length: int = 0) -> float:
        """Sends a NOP-Out with up to 8192 bytes; returns the seconds until its answer."""
        self._need_unit()
        pending = await self._driver.finish(self._driver.context.begin(lib.iser_ping_start, self._session, length,
                                                                      done=core.ping_done))
        return float(pending.value) / 1e9

    @property
    def connections(self) -> List[int]:
        """The identifiers of the connections that the session has."""
        self._need_unit()
        return core.connections_of(self._session)

    async def add_connection(self) -> int:
        """Adds a connection to the session; returns its identifier."""
        self._need_unit()
        pending = await self._driver.finish(self._driver.context.begin(lib.iser_add_connection_start, self._session,
                                                                      done=core.add_done))
        return int(pending.value)

    async def remove_connection(self, cid: int, timeout: int = 0) -> None:
        """Logs out of a connection when its commands have ended, within `timeout` seconds (0: no limit)."""
        self._need_unit()
        await self._driver.finish(self._driver.context.begin(lib.iser_remove_connection_start, self._session, cid,
                                                             timeout, done=core.int_done))

    async def manage_tasks(self, function: Function) -> None:
        """Sends a task management function for the unit, such as Function.LUN_RESET."""
        self._need_unit()
        await self._driver.finish(self._driver.context.begin(lib.iser_manage_tasks_start, self._session,
                                                             int(function), self._urls[0].lun, done=core.int_done))
