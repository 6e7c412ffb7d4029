# SPDX-License-Identifier: BSD-2-Clause
"""What the blocking and the asyncio interface share: errors, requests and their completion."""
from __future__ import annotations

import ctypes
import enum
import errno
import itertools
from dataclasses import dataclass
from typing import Any, Callable, List, Optional, Sequence, Union

from . import _native as n
from ._native import lib

Buffer = Union[bytes, bytearray, memoryview]


class ErrorCode(enum.IntEnum):
    """enum iser_error of libiser."""
    NOMEM = -1
    INVALID = -2
    CONNECT = -3
    LOGIN = -4
    AUTH = -5
    NOT_FOUND = -6
    TIMEOUT = -7
    CLOSED = -8
    SCSI = -9
    PROTOCOL = -10
    UNSUPPORTED = -11
    SYSTEM = -12
    ABORTED = -13
    SHORT = -14
    MISCOMPARE = -15
    NO_PATH = -16
    CHANGED = -17


_ERRNO = {ErrorCode.NOMEM: errno.ENOMEM, ErrorCode.INVALID: errno.EINVAL, ErrorCode.CONNECT: errno.ECONNREFUSED,
          ErrorCode.LOGIN: errno.EACCES, ErrorCode.AUTH: errno.EACCES, ErrorCode.NOT_FOUND: errno.ENOENT,
          ErrorCode.TIMEOUT: errno.ETIMEDOUT, ErrorCode.CLOSED: errno.ESHUTDOWN,
          ErrorCode.UNSUPPORTED: errno.EOPNOTSUPP, ErrorCode.ABORTED: errno.ECANCELED,
          ErrorCode.MISCOMPARE: errno.EILSEQ, ErrorCode.NO_PATH: errno.ESHUTDOWN,
          ErrorCode.CHANGED: errno.ESTALE}


class Error(OSError):
    """A failure of libiser. `code` is an ErrorCode, `errno` the nearest POSIX error number."""

    code: ErrorCode

    def __init__(self, code: int, text: str, number: Optional[int] = None):
        self.code = ErrorCode(code)
        super().__init__(number or _ERRNO.get(self.code, errno.EIO), text)


class ScsiError(Error):
    """A command ended with a status other than GOOD. `asc` is the additional sense code with its qualifier."""

    def __init__(self, code: int, text: str, number: Optional[int] = None, status: int = 0, sense_key: int = 0,
                 asc: int = 0, sense: bytes = b""):
        super().__init__(code, text, number)
        self.status, self.sense_key, self.asc, self.sense = status, sense_key, asc, sense


class MiscompareError(ScsiError):
    """COMPARE AND WRITE found other data; `offset` is the first different byte of the compared data."""

    offset: int = 0


@dataclass(frozen=True)
class Extent:
    """A run of bytes with one provisioning status."""
    offset: int
    length: int
    mapped: bool
    zeros: bool


@dataclass(frozen=True)
class DiscoveredTarget:
    """A target that SendTargets found. The names come from the target: escape them before showing them."""
    name: str
    portals: List[str]


@dataclass(frozen=True)
class Reply:
    """The result of a SCSI command that ended with GOOD."""
    data: bytes
    transferred: int


@dataclass(frozen=True)
class Info:
    """The properties of a unit (struct iser_unit_info)."""
    size: int
    block_size: int
    physical_block_size: int
    max_transfer: int
    max_compare_and_write: int
    type: int
    read_only: bool
    has_fua: bool
    thin: bool
    reads_zeros: bool
    can_trim: bool
    can_zero: bool
    atomic_partial: bool
    vendor: str
    product: str
    revision: str


class Function(enum.IntEnum):
    """Task management functions (RFC 7143)."""
    ABORT_TASK_SET = 2
    CLEAR_TASK_SET = 4
    LUN_RESET = 5
    TARGET_WARM_RESET = 6
    TARGET_COLD_RESET = 7
    QUERY_TASK_SET = 10
    I_T_NEXUS_RESET = 11


class Pending:
    """A call in progress. Keeps the memory alive that the library borrows, until its callback."""

    def __init__(self, *keep: Any):
        self.key = next(_keys)
        self.keep = keep
        self.done = False
        self.err = 0
        self.value: Any = None
        self.notify: Optional[Callable[[], None]] = None
        _registry[self.key] = self

    def cancel(self) -> None:
        """The library will not call back."""
        _registry.pop(self.key, None)


_registry: "dict[int, Pending]" = {}
_keys = itertools.count(1)


def _finish(key: Optional[int], err: int, value: Any = None) -> None:
    pending = _registry.pop(key or 0, None)
    if pending is None:
        return
    pending.done, pending.err, pending.value = True, err, value
    if pending.notify:
        pending.notify()


@n.REQUEST_DONE
def request_done(r: Any) -> None:
    _finish(r.contents.arg, r.contents.err)


@n.IO_DONE
def io_done(io: Any) -> None:
    _finish(io.contents.arg, io.contents.err)


@n.OBJECT_DONE
def object_done(arg: Optional[int], _obj: Optional[int], err: int) -> None:
    _finish(arg, err)


@n.VOID_DONE
def void_done(arg: Optional[int]) -> None:
    _finish(arg, 0)


@n.INT_DONE
def int_done(arg: Optional[int], err: int) -> None:
    _finish(arg, err)


@n.PING_DONE
def ping_done(arg: Optional[int], err: int, ns: int) -> None:
    _finish(arg, err, ns)


@n.ADD_DONE
def add_done(arg: Optional[int], err: int, cid: int) -> None:
    _finish(arg, err, cid)


@n.LIST_DONE
def list_done(arg: Optional[int], err: int, targets: Any) -> None:
    found = []
    at = targets
    while at:
        portals = []
        portal = at.contents.portals
        while portal:
            portals.append(portal.contents.address.decode(errors="replace"))
            portal = portal.contents.next
        found.append(DiscoveredTarget(at.contents.name.decode(errors="replace"), portals))
        at = at.contents.next
    lib.iser_targets_free(targets)
    _finish(arg, err, found)


def parse_url(text: str, discovery: bool = False) -> n.Url:
    """Returns the parsed URL; raises Error with the reason."""
    url = n.Url()
    why = ctypes.create_string_buffer(256)
    err = lib.iser_url_parse(ctypes.byref(url), text.encode(), discovery, why, len(why))
    if err:
        raise Error(err, why.value.decode(errors="replace"))
    return url


Urls = Union[str, Sequence[str]]


def parse_paths(urls: Urls) -> "tuple[Any, int]":
    """Returns (an array of parsed URLs, their number); raises Error with the reason."""
    text = urls if isinstance(urls, str) else " ".join(urls)
    array = (n.Url * n.PATHS_MAX)()
    why = ctypes.create_string_buffer(256)
    count = lib.iser_paths_parse(array, n.PATHS_MAX, text.encode(), why, len(why))
    if count < 0:
        raise Error(count, why.value.decode(errors="replace"))
    return array, count


class Access(enum.IntEnum):
    """The asymmetric access state of a path (SPC-4)."""
    OPTIMIZED = 0
    NON_OPTIMIZED = 1
    STANDBY = 2
    UNAVAILABLE = 3
    LBA_DEPENDENT = 4
    OFFLINE = 14
    TRANSITIONING = 15


class PathState(enum.IntEnum):
    """The state of the connection of a path."""
    DOWN = 0
    LOGIN = 1
    CHECK = 2
    READY = 3


@dataclass(frozen=True)
class Path:
    """One of several paths to a unit (struct iser_path)."""
    portal: str
    target: str
    lun: int
    state: PathState
    access: int
    preferred: bool
    is_used: bool
    group: int
    port: int
    in_progress: int
    commands: int
    losses: int
    reason: str


def paths_of(session: Any) -> List[Path]:
    """Returns the paths of a session; of a session with one path, none."""
    found: List[Path] = []
    p = n.Path()
    while lib.iser_get_path(session, len(found), ctypes.byref(p)) == 0:
        found.append(Path(p.portal.decode(), p.target.decode(), p.lun, PathState(p.state), p.access, p.preferred,
                          p.is_used, p.group, p.port, p.in_progress, p.commands, p.losses, p.reason.decode()))
    return found


def connections_of(session: Any) -> List[int]:
    """Returns the identifiers of the connections of a session."""
    cids = (ctypes.c_uint16 * 16)()
    return list(cids[:lib.iser_get_connections(session, cids, 16)])


def address_of(data: Buffer, writable: bool) -> "tuple[Optional[int], int, Any]":
    """Returns (address, length, what must stay alive) of the memory of a buffer."""
    view = memoryview(data).cast("B") if not isinstance(data, bytes) else memoryview(data)
    if writable and view.readonly:
        raise TypeError("the buffer is read-only")
    length = view.nbytes
    if length == 0:
        return None, 0, data
    if view.readonly:
        whole = data if isinstance(data, bytes) else bytes(view)
        return ctypes.cast(ctypes.c_char_p(whole), ctypes.c_void_p).value, length, whole
    memory = (ctypes.c_char * length).from_buffer(view)
    return ctypes.addressof(memory), length, memory


class Op(enum.IntEnum):
    READ = 1
    WRITE = 2
    FLUSH = 3
    TRIM = 4
    ZERO = 5
    EXTENTS = 6
    COMPARE_AND_WRITE = 7


FUA, MAY_UNMAP, FAST = 1, 2, 4
_MAX_RANGES = 256


def make_request(op: Op, offset: int = 0, length: int = 0, flags: int = 0,
                 buffers: Sequence[Buffer] = (), writable: bool = False) -> Pending:
    """Makes a request that is not submitted yet: pending.keep[0] is the struct."""
    if offset < 0 or length < 0:
        raise ValueError("offset and length must not be negative")
    request = n.Request(op=op, flags=flags, offset=offset, length=length, done=request_done)
    keep: "list[Any]" = [request]
    if buffers:
        iov = (n.Iovec * len(buffers))()
        for i, buffer in enumerate(buffers):
            iov[i].base, iov[i].len, alive = address_of(buffer, writable)
            keep.append(alive)
        request.iov, request.niov = iov, len(buffers)
        keep.append(iov)
    if op == Op.EXTENTS:
        ranges = (n.Range * _MAX_RANGES)()
        request.ranges, request.max_ranges = ranges, _MAX_RANGES
        keep.append(ranges)
    pending = Pending(*keep)
    request.arg = pending.key
    return pending


def check_request(pending: Pending) -> None:
    """Raises the error of a request that has ended."""
    if not pending.err:
        return
    r = pending.keep[0]
    text = ctypes.create_string_buffer(256)
    lib.iser_request_describe(ctypes.byref(r), text, len(text))
    number = lib.iser_request_errno(ctypes.byref(r))
    message = text.value.decode(errors="replace")
    if pending.err == ErrorCode.MISCOMPARE:
        error = MiscompareError(pending.err, message, number, r.status, r.sense_key, r.asc)
        error.offset = r.miscompare
        raise error
    if pending.err == ErrorCode.SCSI:
        raise ScsiError(pending.err, message, number, r.status, r.sense_key, r.asc)
    raise Error(pending.err, message, number)


def extents_of(pending: Pending) -> List[Extent]:
    """Returns what an EXTENTS request has found."""
    r = pending.keep[0]
    return [Extent(x.offset, x.length, x.mapped, x.zeros) for x in r.ranges[:r.nranges]]


def make_command(lun: int, cdb: bytes, read: int, write: Optional[Buffer]) -> Pending:
    """Makes a SCSI command that is not submitted yet."""
    if not 0 < len(cdb) <= 32:
        raise ValueError("a CDB has 1 to 32 bytes")
    if read and write is not None:
        raise ValueError("a command has data in one direction only")
    io = n.Io(lun=lun, cdb_len=len(cdb), done=io_done, short_ok=bool(read))
    ctypes.memmove(io.cdb, cdb, len(cdb))
    data: Any = bytearray(read) if read else write
    keep: "list[Any]" = [io, data]
    if data is not None and len(data):
        iov = (n.Iovec * 1)()
        iov[0].base, iov[0].len, alive = address_of(data, bool(read))
        io.iov, io.niov, io.direction = iov, 1, 1 if read else 2
        keep += [iov, alive]
    pending = Pending(*keep)
    io.arg = pending.key
    return pending


def _sense(sense: bytes) -> "tuple[int, int]":
    """Returns (sense key, additional sense code) of sense data (SPC-4)."""
    if len(sense) >= 14 and sense[0] & 0x7e == 0x70:
        return sense[2] & 15, sense[12] << 8 | sense[13]
    if len(sense) >= 4 and sense[0] & 0x7e == 0x72:
        return sense[1] & 15, sense[2] << 8 | sense[3]
    return 0, 0


def reply_of(pending: Pending) -> Reply:
    """Returns the result of a command, or raises its error."""
    io, data = pending.keep[:2]
    if not pending.err:
        came = bytes(data[:io.transferred]) if io.direction == 1 else b""
        return Reply(came, io.transferred)
    text = ctypes.create_string_buffer(256)
    lib.iser_io_describe(ctypes.byref(io), text, len(text))
    message = text.value.decode(errors="replace")
    if pending.err != ErrorCode.SCSI:
        raise Error(pending.err, message)
    sense = bytes(io.sense[:io.sense_len])
    key, asc = _sense(sense)
    raise ScsiError(pending.err, message, None, io.status, key, asc, sense)


class Context:
    """A context of libiser (struct iser_context)."""

    def __init__(self, initiator: Optional[str]):
        if initiator and len(initiator.encode()) >= n.NAME_MAX:
            raise ValueError("the initiator name is longer than %d bytes (RFC 7143 §4.2.7.1)" % (n.NAME_MAX - 1))
        self.ctx = lib.iser_context_new(initiator.encode() if initiator else None)
        if not self.ctx:
            raise MemoryError("libiser has no memory or no file descriptors")

    def error(self, code: int) -> Error:
        """Returns the exception for a call that failed with this code."""
        text = lib.iser_message(self.ctx).decode(errors="replace")
        return Error(code, text or lib.iser_strerror(code).decode())

    def free(self) -> None:
        """Frees the context; it blocks while sessions log out."""
        ctx, self.ctx = self.ctx, None
        if ctx:
            lib.iser_context_free(ctx)

    def start(self, function: Callable[..., Any], *args: Any, done: Any, keep: Any = None) -> "tuple[Any, Pending]":
        """Calls a function whose last parameters are (done, arg, &err); returns (object, pending)."""
        pending = Pending(keep)
        err = ctypes.c_int()
        obj = function(*args, done, pending.key, ctypes.byref(err))
        if not obj:
            pending.cancel()
            raise self.error(err.value)
        return obj, pending

    def begin(self, function: Callable[..., int], *args: Any, done: Any) -> Pending:
        """Calls a function whose last parameters are (done, arg) and that returns an error."""
        pending = Pending()
        err = function(*args, done, pending.key)
        if err:
            pending.cancel()
            raise self.error(err)
        return pending


def info_of(unit: Any) -> Info:
    """Returns the properties of an open unit."""
    i = n.UnitInfo()
    lib.iser_unit_get_info(unit, ctypes.byref(i))
    return Info(i.bytes, i.block_size, i.physical_block_size, i.max_transfer, i.max_compare_and_write, i.type,
                i.read_only, i.has_fua, i.thin, i.reads_zeros, i.can_trim, i.can_zero, i.atomic_partial,
                i.vendor.decode(), i.product.decode(), i.revision.decode())


def transport_of(session: Any) -> str:
    """Returns the negotiated transport: tcp, iser, or none."""
    p = n.Params()
    lib.iser_get_params(session, ctypes.byref(p))
    return str(p.transport.decode())


class OpenUnit:
    """The unit of a session, or None, and what can be read of both without a wait."""

    def __init__(self, context: Context):
        self._session: Any = None
        self._unit: Any = None
        self._context = context

    def _need_unit(self) -> Any:
        if not self._unit:
            raise ValueError("the disk is closed")
        return self._unit

    @property
    def paths(self) -> List[Path]:
        """The paths to the unit, if it was opened with several; else an empty list."""
        self._need_unit()
        return paths_of(self._session)

    def fail_back(self) -> None:
        """With failback=manual: uses the best paths again."""
        self._need_unit()
        err = lib.iser_fail_back(self._session)
        if err:
            raise self._context.error(err)

    @property
    def info(self) -> Info:
        """The properties of the unit."""
        return info_of(self._need_unit())

    @property
    def size(self) -> int:
        """The capacity in bytes."""
        return self.info.size

    @property
    def block_size(self) -> int:
        """The size of a logical block in bytes."""
        return self.info.block_size

    @property
    def transport(self) -> str:
        """The negotiated transport: "tcp" or "iser"; "none" while the session is lost."""
        self._need_unit()
        return transport_of(self._session)


def zero_flags(fua: bool, may_unmap: bool, fast: bool) -> int:
    """Returns the flags of a ZERO request."""
    return (FUA if fua else 0) | (MAY_UNMAP if may_unmap else 0) | (FAST if fast else 0)
