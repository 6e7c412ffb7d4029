/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * err.h: the error codes of the protocol rooms. Functions return 0 or one of
 * these (negative); driver rooms return -Exxx, which lie outside this range.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <stdarg.h>
#include <stddef.h>

/* What the caller can do about an error. */
enum err_class {
	ERR_CLASS_NONE,	      /* no error */
	ERR_CLASS_RETRY,      /* the same call may work later */
	ERR_CLASS_REQUEST,    /* this request failed, the connection is well */
	ERR_CLASS_CONNECTION, /* the connection has to go */
	ERR_CLASS_FATAL,      /* our own resources or mistake */
};

/* X(name, value, class, text) */
#define ERR_TABLE(X)                                                \
 X(ERR_NOMEM, -1001, FATAL, "out of memory")                        \
 X(ERR_AGAIN, -1002, RETRY, "not now")                              \
 X(ERR_BUSY, -1003, RETRY, "no free slot")                          \
 X(ERR_TRUNCATED, -1004, CONNECTION, "shorter than its format")     \
 X(ERR_TOO_LONG, -1005, CONNECTION, "length beyond the limit")      \
 X(ERR_FORMAT, -1006, CONNECTION, "malformed")                      \
 X(ERR_OPCODE, -1007, REQUEST, "unknown opcode")                    \
 X(ERR_PROTOCOL, -1008, CONNECTION, "not allowed in this state")    \
 X(ERR_HEADER_DIGEST, -1009, CONNECTION, "header digest is wrong")  \
 X(ERR_DATA_DIGEST, -1010, REQUEST, "data digest is wrong")         \
 X(ERR_SEQUENCE, -1011, CONNECTION, "sequence number out of order") \
 X(ERR_RANGE, -1012, REQUEST, "outside the allowed range")          \
 X(ERR_NOT_FOUND, -1013, REQUEST, "no such object")                 \
 X(ERR_WRONG_STATE, -1014, FATAL, "call in the wrong state")        \
 X(ERR_UNSUPPORTED, -1015, REQUEST, "not supported")                \
 X(ERR_TIMEOUT, -1016, CONNECTION, "timed out")                     \
 X(ERR_CLOSED, -1017, CONNECTION, "connection closed by the peer")  \
 X(ERR_RESET, -1018, CONNECTION, "connection lost")                 \
 X(ERR_ABORTED, -1019, REQUEST, "aborted")                          \
 X(ERR_AUTH, -1020, CONNECTION, "authentication failed")            \
 X(ERR_DENIED, -1021, CONNECTION, "access denied")                  \
 X(ERR_NEGOTIATION, -1022, CONNECTION, "key negotiation failed")    \
 X(ERR_LOGIN, -1023, CONNECTION, "login refused")                   \
 X(ERR_MEDIUM, -1024, REQUEST, "the medium failed")                 \
 X(ERR_NO_SPACE, -1025, REQUEST, "no space left on the medium")     \
 X(ERR_READ_ONLY, -1026, REQUEST, "write protected")                \
 X(ERR_TERMINATED, -1027, CONNECTION, "terminated")                 \
 X(ERR_ACCESS, -1028, CONNECTION, "memory access refused")          \
 X(ERR_LIMIT, -1029, CONNECTION, "beyond an agreed limit")          \
 X(ERR_PI_GUARD, -1030, REQUEST, "logical block guard is wrong")    \
 X(ERR_PI_APP_TAG, -1031, REQUEST, "application tag is wrong")      \
 X(ERR_PI_REF_TAG, -1032, REQUEST, "reference tag is wrong")

enum err_code {
	ERR_NONE = 0,
#define ERR_ENUM(name, value, cls, text) name = value,
	ERR_TABLE(ERR_ENUM)
#undef ERR_ENUM
};

/* err_str names an error code; never NULL. */
const char *err_str(int err);

/* err_class_of sorts an error code; unknown codes are FATAL. */
enum err_class err_class_of(int err);

/* err_why: "what: " and the formatted rest, for people, to why (size bytes,
 * always ended). */
void err_why(char *why, size_t size, const char *what, const char *format,
	     va_list args);

#endif
