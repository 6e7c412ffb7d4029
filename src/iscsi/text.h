/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * text.h: key=value lists (RFC 7143 §6.1): iterate over a received one, build
 * one to send. No key knowledge here.
 */
#ifndef ISCSI_TEXT_H
#define ISCSI_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ISCSI_KEY_NAME_MAX  63	 /* §6.1 */
#define ISCSI_KEY_VALUE_MAX 8192 /* our limit; §6.1 sets 255 unless said */

struct iscsi_text_iter {
	const char *p, *end;
};

static inline struct iscsi_text_iter iscsi_text_iter(const void *text,
						     size_t len)
{
	const char *p = text;

	return (struct iscsi_text_iter){ .p = p, .end = p + len };
}

/*
 * iscsi_text_next gives the next pair. key is copied to key[], value points
 * into the text and is NUL-terminated there. Returns 1, 0 at the end, or
 * ERR_FORMAT (no '=', no NUL, name empty, too long or with a byte §6.1 does
 * not allow).
 */
int iscsi_text_next(struct iscsi_text_iter *it,
		    char key[ISCSI_KEY_NAME_MAX + 1], const char **value);

/* iscsi_list_has: whether the comma-separated list (§6.1) has the item. */
bool iscsi_list_has(const char *list, const char *item);

/* iscsi_hex_digit: its value, or -1. */
int iscsi_hex_digit(char c);

struct iscsi_text_out {
	char *buf;
	size_t len, max;
	bool overflow; /* something did not fit and was left out */
};

/* iscsi_text_put appends "key=value\0"; all or nothing. */
void iscsi_text_put(struct iscsi_text_out *out, const char *key,
		    const char *value);
void iscsi_text_putf(struct iscsi_text_out *out, const char *key,
		     const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
