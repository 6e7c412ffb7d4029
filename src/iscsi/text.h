/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * text.h: lists of key=value (RFC 7143 §6.1): iterates over a received list,
 * and builds a list. keys.h defines the keys.
 */
#ifndef ISCSI_TEXT_H
#define ISCSI_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ISCSI_KEY_NAME_MAX  63	 /* §6.1 */
#define ISCSI_KEY_VALUE_MAX 8192 /* §6.1: 255, but more for some keys */

struct iscsi_text_iter {
	const char *p, *end;
};

/* iscsi_text_iter begins an iteration over len bytes of text, which is
 * borrowed. */
static inline struct iscsi_text_iter iscsi_text_iter(const void *text,
						     size_t len)
{
	const char *p = text;

	return (struct iscsi_text_iter){ .p = p, .end = p + len };
}

/*
 * iscsi_text_next copies the next key to key[] and makes *value point to its
 * value in the text, which ends with a NUL there. Returns 1; 0 at the end of
 * the text; or ERR_FORMAT: no '=', no NUL, or a key that is empty, too long or
 * has a byte that §6.1 does not allow.
 */
int iscsi_text_next(struct iscsi_text_iter *it,
		    char key[ISCSI_KEY_NAME_MAX + 1], const char **value);

/* iscsi_list_find returns the position of item in the comma-separated list
 * (§6.1), from 0, or -1 if the list does not have it. */
int iscsi_list_find(const char *list, const char *item);
/* iscsi_list_has returns whether the list has the item. */
bool iscsi_list_has(const char *list, const char *item);

struct iscsi_text_out {
	char *buf;
	size_t len, max;
	bool overflow; /* at least one pair did not fit and was left out */
};

/* iscsi_text_put appends "key=value\0", or sets overflow. iscsi_text_putf
 * formats the value, at most 511 bytes. */
void iscsi_text_put(struct iscsi_text_out *out, const char *key,
		    const char *value);
void iscsi_text_putf(struct iscsi_text_out *out, const char *key,
		     const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
