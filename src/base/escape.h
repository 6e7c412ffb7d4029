/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * escape.h: makes text of a peer or a user safe to print on a terminal, in a
 * log line, in an error message and in JSON.
 */
#ifndef BASE_ESCAPE_H
#define BASE_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* text_utf8_next decodes the character at p, of which left bytes (at least one)
 * are readable. It stores the character in *c and returns its length, or 0 if
 * the bytes are not valid UTF-8 (RFC 3629 §4: no overlong form, no surrogate,
 * at most U+10FFFF). */
size_t text_utf8_next(const uint8_t *p, size_t left, uint32_t *c);

/* The size of the buffer that text_escape needs for any len bytes. */
#define TEXT_ESCAPED_SIZE(len) (4 * (len) + 1)

/*
 * text_is_plain returns whether text_escape would leave len bytes at text
 * unchanged: valid UTF-8 (RFC 3629) without control characters (C0, DEL, C1),
 * line and paragraph separators, characters that change the direction of the
 * text, U+FEFF, U+FFFE and U+FFFF.
 */
bool text_is_plain(const void *text, size_t len);

/*
 * text_escape copies len bytes at text to out and replaces each byte of a
 * character that is not plain by \xNN. A backslash is copied unchanged, so
 * escaping a text twice gives the same result as escaping it once. If out
 * (size bytes, with a final NUL) is too small, the copy ends before the first
 * character that does not fit. Returns the length of the string in out. out
 * and text must not overlap.
 */
size_t text_escape(char *out, size_t size, const void *text, size_t len);

/* text_escape_str does the same to a string and returns out. */
const char *text_escape_str(char *out, size_t size, const char *text);

#endif
