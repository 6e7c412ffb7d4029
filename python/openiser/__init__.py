# SPDX-License-Identifier: BSD-2-Clause
"""
openiser: logical units of iSCSI and iSER targets as disks, without a kernel module.

    import openiser

    with openiser.connect("iscsi://10.0.0.1/iqn.2026-01.com.example:disk/0") as disk:
        disk.pwrite(b"hello", 1000)
        print(disk.size, disk.pread(5, 1000))

The functions of this module block; openiser.aio has the same for asyncio. Offsets and lengths are bytes: the
library splits requests, and reads and writes partial blocks by whole blocks. Failures raise openiser.Error, a
subclass of OSError. libiser(3) describes the URLs.
"""
from __future__ import annotations

import ctypes
import threading
import warnings
from typing import Any, List, Optional

from . import _core as core
from ._core import Access, Buffer, DiscoveredTarget, Error, ErrorCode, Extent, Function, Info, MiscompareError, Path, \
    PathState, Reply, ScsiError, Urls
from ._native import lib

__all__ = ["connect", "discover", "version", "Access", "Disk", "DiscoveredTarget", "Error", "ErrorCode", "Extent",
           "Function", "Info", "MiscompareError", "Path", "PathState", "Reply", "ScsiError"]

_TURN_MS = 200  # between two checks for signals, for example of the keyboard


def version() -> str:
    """Returns the version of libiser."""
    return str(lib.iser_version().decode())


def _wait(context: core.Context, pending: core.Pending) -> core.Pending:
    """Runs the loop of a context until a call has ended."""
    while not pending.done:
        err = lib.iser_service(context.ctx, _TURN_MS)
        if err:
            raise context.error(err)
    return pending


def discover(url: str, initiator: Optional[str] = None) -> List[DiscoveredTarget]:
    """Returns the targets that a portal offers: "HOST[:PORT]" or "iscsi://[USER%SECRET@]HOST[:PORT]"."""
    parsed = core.parse_url(url, discovery=True)
    context = core.Context(initiator)
    try:
        _, pending = context.start(lib.iser_discover_start, context.ctx, ctypes.byref(parsed), done=core.list_done)
        _wait(context, pending)
        if pending.err:
            raise context.error(pending.err)
        return list(pending.value)
    finally:
        context.free()


def connect(url: Urls, initiator: Optional[str] = None) -> "Disk":
    """Logs in to the target of a URL and opens its unit. Several URLs, in a list or separated by spaces, are paths to
    one unit. Close the Disk, or use it in a with statement."""
    return Disk(url, initiator)


class Disk(core.OpenUnit):
    """A logical unit. Several threads may use it; their calls take turns."""

    def __init__(self, url: Urls, initiator: Optional[str] = None):
        parsed, count = core.parse_paths(url)
        super().__init__(core.Context(initiator))
        self._lock = threading.Lock()
        self._lun = parsed[0].lun
        try:
            self._session, pending = self._context.start(lib.iser_connect_paths_start, self._context.ctx, parsed,
                                                         count, done=core.object_done)
            self._finish(pending)
            self._unit, pending = self._context.start(lib.iser_unit_open_start, self._session, self._lun,
                                                      done=core.object_done)
            self._finish(pending)
        except BaseException:
            self.close()
            raise

    def _finish(self, pending: core.Pending) -> core.Pending:
        """Waits for a call that reports its error by the message of the context."""
        _wait(self._context, pending)
        if pending.err:
            raise self._context.error(pending.err)
        return pending

    def _run(self, pending: core.Pending) -> core.Pending:
        with self._lock:
            try:
                unit = self._need_unit()
            except ValueError:
                pending.cancel()
                raise
            lib.iser_unit_submit(unit, ctypes.byref(pending.keep[0]))
            _wait(self._context, pending)
        core.check_request(pending)
        return pending

    def __enter__(self) -> "Disk":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_session", None):
            warnings.warn("unclosed %r" % self, ResourceWarning, source=self)
            self.close()

    def close(self) -> None:
        """Logs out. Data that were not flushed may still be in the cache of the unit. A second call does nothing."""
        with self._lock:
            lib.iser_unit_close(self._unit)
            lib.iser_disconnect(self._session)
            self._unit = self._session = None
            self._context.free()

    def refresh(self) -> Info:
        """Reads the properties again, for example after the capacity has changed."""
        with self._lock:
            self._finish(self._context.begin(lib.iser_unit_refresh_start, self._need_unit(), done=core.object_done))
        return self.info

    def pread(self, length: int, offset: int) -> bytes:
        """Returns `length` bytes at `offset`; fewer is an error."""
        data = bytearray(length)
        self.preadinto(data, offset)
        return bytes(data)

    def preadinto(self, buffer: Buffer, offset: int) -> None:
        """Fills a writable buffer with the bytes at `offset`."""
        length = memoryview(buffer).nbytes
        self._run(core.make_request(core.Op.READ, offset, length, buffers=[buffer], writable=True))

    def pwrite(self, data: Buffer, offset: int, fua: bool = False) -> None:
        """Writes data at `offset`. With fua they are durable when the call returns."""
        length = memoryview(data).nbytes
        self._run(core.make_request(core.Op.WRITE, offset, length, core.FUA if fua else 0, [data]))

    def flush(self) -> None:
        """Makes all data that were written durable."""
        self._run(core.make_request(core.Op.FLUSH))

    def trim(self, offset: int, length: int, fua: bool = False) -> None:
        """Unmaps the whole blocks in a range."""
        self._run(core.make_request(core.Op.TRIM, offset, length, core.FUA if fua else 0))

    def zero(self, offset: int, length: int, fua: bool = False, may_unmap: bool = True, fast: bool = False) -> None:
        """Makes a range read as zeros. With fast it fails where zeros would have to be sent."""
        self._run(core.make_request(core.Op.ZERO, offset, length, core.zero_flags(fua, may_unmap, fast)))

    def extents(self, offset: int = 0, length: Optional[int] = None) -> List[Extent]:
        """Returns which parts of a range are mapped, in order and without gaps; without a length, to the end that
        the unit has now."""
        end = (self.refresh()).size if length is None else offset + length
        found: List[Extent] = []
        while offset < end:
            part = core.extents_of(self._run(core.make_request(core.Op.EXTENTS, offset, end - offset)))
            found += part
            offset = part[-1].offset + part[-1].length
        return found

    def compare_and_write(self, expected: Buffer, data: Buffer, offset: int, fua: bool = False) -> None:
        """Writes data if the unit has `expected` there, in one step; else raises MiscompareError. Both are whole blocks
        of the same length."""
        length = memoryview(data).nbytes
        self._run(core.make_request(core.Op.COMPARE_AND_WRITE, offset, length, core.FUA if fua else 0,
                                    [expected, data]))

    def command(self, cdb: bytes, read: int = 0, write: Optional[Buffer] = None) -> Reply:
        """Executes a SCSI command with up to `read` bytes of data from the unit, or the data `write` to it."""
        pending = core.make_command(self._lun, cdb, read, write)
        with self._lock:
            try:
                self._need_unit()
            except ValueError:
                pending.cancel()
                raise
            lib.iser_submit(self._session, ctypes.byref(pending.keep[0]))
            _wait(self._context, pending)
        return core.reply_of(pending)

    def ping(self, length: int = 0) -> float:
        """Sends a NOP-Out with up to 8192 bytes; returns the seconds until its answer."""
        with self._lock:
            self._need_unit()
            pending = self._finish(self._context.begin(lib.iser_ping_start, self._session, length,
                                                       done=core.ping_done))
        return float(pending.value) / 1e9

    @property
    def connections(self) -> List[int]:
        """The identifiers of the connections that the session has."""
        with self._lock:
            self._need_unit()
            return core.connections_of(self._session)

    def add_connection(self) -> int:
        """Adds a connection to the session; returns its identifier."""
        with self._lock:
            self._need_unit()
            pending = self._finish(self._context.begin(lib.iser_add_connection_start, self._session,
                                                       done=core.add_done))
        return int(pending.value)

    def remove_connection(self, cid: int, timeout: int = 0) -> None:
        """Logs out of a connection when its commands have ended, within `timeout` seconds (0: no limit)."""
        with self._lock:
            self._need_unit()
            self._finish(self._context.begin(lib.iser_remove_connection_start, self._session, cid, timeout,
                                             done=core.int_done))

    def manage_tasks(self, function: Function) -> None:
        """Sends a task management function for the unit, such as Function.LUN_RESET."""
        with self._lock:
            self._need_unit()
            self._finish(self._context.begin(lib.iser_manage_tasks_start, self._session, int(function), self._lun,
                                             done=core.int_done))
