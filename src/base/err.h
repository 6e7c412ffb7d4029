/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * err.h: the error codes of the protocol rooms, all negative. A function
 * returns 0 or one of them; driver rooms return -Exxx, which lie outside of
 * their range.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <stdarg.h>
#include <stddef.h>

/* What an error affects, and so what the caller can do about it. */
enum err_class {
	ERR_CLASS_NONE,	      /* no error */
	ERR_CLASS_RETRY,      /* the same call may succeed later */
	ERR_CLASS_REQUEST,    /* one request failed; keep the connection */
	ERR_CLASS_CONNECTION, /* the connection is unusable: drop it */
	ERR_CLASS_FATAL,      /* a local resource or a programming error */
};

/* X(name, value, class, text) */
#define ERR_TABLE(X)                                                   \
 X(ERR_NOMEM, -1001, FATAL, "out of memory")                           \
 X(ERR_AGAIN, -1002, RETRY, "temporarily unavailable")                 \
 X(ERR_BUSY, -1003, RETRY, "no free slot")                             \
 X(ERR_TRUNCATED, -1004, CONNECTION, "truncated")                      \
 X(ERR_TOO_LONG, -1005, CONNECTION, "length exceeds the limit")        \
 X(ERR_FORMAT, -1006, CONNECTION, "malformed")                         \
 X(ERR_OPCODE, -1007, REQUEST, "unknown opcode")                       \
 X(ERR_PROTOCOL, -1008, CONNECTION, "not allowed in this state")       \
 X(ERR_HEADER_DIGEST, -1009, CONNECTION, "header digest error")        \
 X(ERR_DATA_DIGEST, -1010, REQUEST, "data digest error")               \
 X(ERR_SEQUENCE, -1011, CONNECTION, "sequence number out of order")    \
 X(ERR_RANGE, -1012, REQUEST, "outside the allowed range")             \
 X(ERR_NOT_FOUND, -1013, REQUEST, "no such object")                    \
 X(ERR_WRONG_STATE, -1014, FATAL, "function called in a wrong state")  \
 X(ERR_UNSUPPORTED, -1015, REQUEST, "not supported")                   \
 X(ERR_TIMEOUT, -1016, CONNECTION, "timed out")                        \
 X(ERR_CLOSED, -1017, CONNECTION, "connection closed by the peer")     \
 X(ERR_RESET, -1018, CONNECTION, "connection lost")                    \
 X(ERR_ABORTED, -1019, REQUEST, "aborted")                             \
 X(ERR_AUTH, -1020, CONNECTION, "authentication failed")               \
 X(ERR_DENIED, -1021, CONNECTION, "access denied")                     \
 X(ERR_NEGOTIATION, -1022, CONNECTION, "key negotiation failed")       \
 X(ERR_LOGIN, -1023, CONNECTION, "login refused")                      \
 X(ERR_MEDIUM, -1024, REQUEST, "medium error")                         \
 X(ERR_NO_SPACE, -1025, REQUEST, "no space left on the medium")        \
 X(ERR_READ_ONLY, -1026, REQUEST, "write protected")                   \
 X(ERR_TERMINATED, -1027, CONNECTION, "terminated")                    \
 X(ERR_ACCESS, -1028, CONNECTION, "memory access denied")              \
 X(ERR_LIMIT, -1029, CONNECTION, "negotiated limit exceeded")          \
 X(ERR_PI_GUARD, -1030, REQUEST, "logical block guard check failed")   \
 X(ERR_PI_APP_TAG, -1031, REQUEST, "application tag check failed")     \
 X(ERR_PI_REF_TAG, -1032, REQUEST, "reference tag check failed")       \
 X(ERR_UNFLUSHED, -1033, REQUEST, "data written earlier may be lost")  \
 X(ERR_SHORT, -1034, REQUEST, "fewer bytes transferred than expected") \
 X(ERR_RESIDUAL, -1035, REQUEST, "residual flags or count invalid")    \
 X(ERR_OVERFLOW, -1036, REQUEST,                                       \
   "the command has fewer bytes than its blocks: the block size differs")

enum err_code {
	ERR_NONE = 0,
#define ERR_ENUM(name, value, cls, text) name = value,
	ERR_TABLE(ERR_ENUM)
#undef ERR_ENUM
};

/* err_str returns the text of an error code, for a code outside of the table
 * "unknown error". The text is constant and never NULL. */
const char *err_str(int err);

/* err_class_of returns the class of an error code; codes outside of the table
 * are FATAL. */
enum err_class err_class_of(int err);

/* err_why writes "what: " and the text that format makes of args to why, cut
 * to size bytes with the final NUL. */
void err_why(char *why, size_t size, const char *what, const char *format,
	     va_list args);

#endif
