# SPDX-License-Identifier: BSD-2-Clause
"""The functions and structs of libiser (iser/iser.h, iser/unit.h) for ctypes."""
from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, Structure, c_bool, c_char, c_char_p, c_int, c_size_t, c_uint, c_uint16, c_uint32, c_uint64, \
    c_uint8, c_void_p

NAME_MAX = 224


class Url(Structure):
    _fields_ = [("transport", c_char * 8), ("start", c_char * 8), ("compat", c_char * 8), ("rcap", c_char * 8),
                ("host", c_char * 256), ("port", c_uint16), ("target", c_char * NAME_MAX), ("lun", c_int),
                ("user", c_char * NAME_MAX), ("password", c_char * 128),
                ("target_user", c_char * NAME_MAX), ("target_password", c_char * 128),
                ("initiator", c_char * NAME_MAX), ("header_digest", c_char * 16), ("data_digest", c_char * 16),
                ("timeout", c_uint), ("depth", c_uint), ("reconnect", c_uint), ("retry", c_uint), ("priority", c_uint),
                ("connections", c_uint), ("error_recovery_level", c_uint), ("login_timeout", c_uint), ("logout_timeout", c_uint),
                ("noop_out_interval", c_uint), ("noop_out_timeout", c_uint), ("replacement_timeout", c_uint),
                ("polling_interval", c_uint), ("paths", c_char * 8), ("policy", c_char * 16),
                ("failback", c_char * 16), ("alua", c_char * 16), ("auth", c_char * 32), ("max_outstanding_r2t", c_uint),
                ("data_pdu_in_any_order", c_bool), ("data_sequence_in_any_order", c_bool),
                ("initial_r2t", c_uint8), ("immediate_data", c_uint8), ("first_burst_length", c_uint32),
                ("max_burst_length", c_uint32), ("max_recv_data_segment_length", c_uint32),
                ("no_mpa_crc", c_bool), ("task_reporting", c_uint8), ("iser_hello", c_bool), ("reserved_bytes", c_uint8 * 5),
                ("reserved", c_uint64 * 14)]


PATHS_MAX = 16


class Path(Structure):
    _fields_ = [("portal", c_char * 288), ("target", c_char * NAME_MAX), ("lun", c_int), ("state", c_int),
                ("access", c_uint8), ("preferred", c_bool), ("is_used", c_bool), ("reserved_byte", c_uint8),
                ("group", c_uint16), ("port", c_uint16), ("in_progress", c_uint), ("commands", c_uint64),
                ("losses", c_uint64), ("err", c_int), ("reason", c_char * 220), ("reserved", c_uint64 * 8)]


class Portal(Structure):
    pass


Portal._fields_ = [("next", POINTER(Portal)), ("address", c_char * 288)]


class Target(Structure):
    pass


Target._fields_ = [("next", POINTER(Target)), ("name", c_char * NAME_MAX), ("address", c_char * 288),
                   ("portals", POINTER(Portal))]


class Iovec(Structure):
    _fields_ = [("base", c_void_p), ("len", c_size_t)]


class Params(Structure):
    _fields_ = [("transport", c_char_p), ("kind", c_char_p), ("rules", c_char_p), ("header_digest", c_bool),
                ("data_digest", c_bool), ("initial_r2t", c_bool), ("immediate_data", c_bool),
                ("max_recv_data_segment_length", c_uint32), ("max_send_data_segment_length", c_uint32),
                ("max_burst_length", c_uint32), ("first_burst_length", c_uint32), ("max_outstanding_r2t", c_uint32),
                ("error_recovery_level", c_uint32), ("tpgt", c_int),
                ("connections", c_uint32), ("max_connections", c_uint32), ("reserved", c_uint64 * 15)]


class Io(Structure):
    pass


IO_DONE = ctypes.CFUNCTYPE(None, POINTER(Io))
Io._fields_ = [("lun", c_int), ("cdb", c_uint8 * 32), ("cdb_len", c_uint8), ("direction", c_int),
               ("iov", POINTER(Iovec)), ("niov", c_uint), ("done", IO_DONE), ("arg", c_void_p), ("priority", c_uint8),
               ("short_ok", c_bool), ("no_retry", c_bool), ("reserved", c_uint64 * 4), ("err", c_int),
               ("status", c_uint8), ("resid", c_uint32), ("overflow", c_bool), ("transferred", c_uint32),
               ("sense_len", c_uint16), ("sense", c_uint8 * 252), ("reserved_result", c_uint64 * 4),
               ("next", c_void_p), ("session", c_void_p), ("cause", c_int), ("library", c_uint64 * 4)]


class UnitInfo(Structure):
    _fields_ = [("bytes", c_uint64), ("block_size", c_uint32), ("physical_block_size", c_uint32),
                ("max_transfer", c_uint32), ("max_compare_and_write", c_uint32), ("type", c_uint8),
                ("read_only", c_bool), ("has_fua", c_bool), ("thin", c_bool), ("reads_zeros", c_bool),
                ("can_trim", c_bool), ("can_zero", c_bool), ("atomic_partial", c_bool), ("vendor", c_char * 9),
                ("product", c_char * 17), ("revision", c_char * 5), ("reserved_bytes", c_uint8 * 1),
                ("reserved", c_uint64 * 16)]


class Range(Structure):
    _fields_ = [("offset", c_uint64), ("length", c_uint64), ("mapped", c_bool), ("zeros", c_bool),
                ("reserved", c_uint8 * 6)]


class Request(Structure):
    pass


REQUEST_DONE = ctypes.CFUNCTYPE(None, POINTER(Request))
Request._fields_ = [("op", c_int), ("flags", c_uint), ("offset", c_uint64), ("length", c_uint64),
                    ("iov", POINTER(Iovec)), ("niov", c_uint), ("max_ranges", c_uint), ("ranges", POINTER(Range)),
                    ("done", REQUEST_DONE), ("arg", c_void_p), ("reserved", c_uint64 * 4), ("err", c_int),
                    ("nranges", c_uint), ("miscompare", c_uint64), ("opcode", c_uint8), ("status", c_uint8),
                    ("sense_key", c_uint8), ("reserved_byte", c_uint8), ("asc", c_uint16),
                    ("reserved_word", c_uint16), ("reserved_result", c_uint64 * 4), ("next", c_void_p),
                    ("library", c_uint64 * 4)]

# done(arg, session or unit, err), done(arg), done(arg, err), done(arg, err, ns), done(arg, err, list)
OBJECT_DONE = ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_int)
VOID_DONE = ctypes.CFUNCTYPE(None, c_void_p)
INT_DONE = ctypes.CFUNCTYPE(None, c_void_p, c_int)
ADD_DONE = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_uint)
PING_DONE = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_uint64)
LIST_DONE = ctypes.CFUNCTYPE(None, c_void_p, c_int, POINTER(Target))

FUNCTIONS = {
    "iser_strerror": (c_char_p, [c_int]),
    "iser_version": (c_char_p, []),
    "iser_context_new": (c_void_p, [c_char_p]),
    "iser_context_free": (None, [c_void_p]),
    "iser_message": (c_char_p, [c_void_p]),
    "iser_get_fd": (c_int, [c_void_p]),
    "iser_next_timeout": (c_int, [c_void_p]),
    "iser_service": (c_int, [c_void_p, c_int]),
    "iser_url_parse": (c_int, [POINTER(Url), c_char_p, c_bool, c_char_p, c_size_t]),
    "iser_discover_start": (c_void_p, [c_void_p, POINTER(Url), LIST_DONE, c_void_p, POINTER(c_int)]),
    "iser_discover_cancel": (None, [c_void_p]),
    "iser_targets_free": (None, [POINTER(Target)]),
    "iser_paths_parse": (c_int, [POINTER(Url), c_uint, c_char_p, c_char_p, c_size_t]),
    "iser_connect_paths_start": (c_void_p, [c_void_p, POINTER(Url), c_uint, OBJECT_DONE, c_void_p, POINTER(c_int)]),
    "iser_get_path": (c_int, [c_void_p, c_uint, POINTER(Path)]),
    "iser_fail_back": (c_int, [c_void_p]),
    "iser_disconnect": (None, [c_void_p]),
    "iser_disconnect_start": (None, [c_void_p, VOID_DONE, c_void_p]),
    "iser_is_connected": (c_bool, [c_void_p]),
    "iser_get_params": (None, [c_void_p, POINTER(Params)]),
    "iser_ping_start": (c_int, [c_void_p, c_size_t, PING_DONE, c_void_p]),
    "iser_get_connections": (c_uint, [c_void_p, POINTER(c_uint16), c_uint]),
    "iser_add_connection_start": (c_int, [c_void_p, ADD_DONE, c_void_p]),
    "iser_remove_connection_start": (c_int, [c_void_p, c_uint, c_uint, INT_DONE, c_void_p]),
    "iser_manage_tasks_start": (c_int, [c_void_p, c_int, c_int, INT_DONE, c_void_p]),
    "iser_submit": (None, [c_void_p, POINTER(Io)]),
    "iser_abort": (c_int, [POINTER(Io)]),
    "iser_io_describe": (None, [POINTER(Io), c_char_p, c_size_t]),
    "iser_report_luns": (c_int, [c_void_p, POINTER(c_int), c_int]),
    "iser_unit_open_start": (c_void_p, [c_void_p, c_int, OBJECT_DONE, c_void_p, POINTER(c_int)]),
    "iser_unit_refresh_start": (c_int, [c_void_p, OBJECT_DONE, c_void_p]),
    "iser_unit_close": (None, [c_void_p]),
    "iser_unit_get_info": (None, [c_void_p, POINTER(UnitInfo)]),
    "iser_unit_submit": (None, [c_void_p, POINTER(Request)]),
    "iser_request_describe": (None, [POINTER(Request), c_char_p, c_size_t]),
    "iser_request_errno": (c_int, [POINTER(Request)]),
}


def _load() -> ctypes.CDLL:
    """Loads libiser.so.1, or the library that OPENISER_LIBRARY names."""
    library = ctypes.CDLL(os.environ.get("OPENISER_LIBRARY", "libiser.so.1"))
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


lib = _load()
