/* SPDX-License-Identifier: BSD-2-Clause */
/* text.c: key=value lists of RFC 7143 §6.1. */
#include "iscsi/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"

/* §6.1: a key-name is a letter followed by letters, digits, '.', '-', '+',
 * '@', '_' (and '#', which X# keys have). */
/* [RFC 7143: 13.22 #1] */
static bool key_byte_ok(char c, bool first)
{
	if ((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'))
		return true;
	return !first && ((c >= '0' && c <= '9') || c == '.' || c == '-' ||
			  c == '+' || c == '@' || c == '_' || c == '#');
}

/* Copies the key before '='; returns its length or ERR_FORMAT. */
static int take_key(char key[ISCSI_KEY_NAME_MAX + 1], const char *p,
		    size_t pair_len)
{
	size_t n = 0;

	while (n < pair_len && p[n] != '=') {
		if (n == ISCSI_KEY_NAME_MAX || !key_byte_ok(p[n], n == 0))
			return ERR_FORMAT;
		key[n] = p[n];
		n++;
	}
	if (n == 0 || n == pair_len)
		return ERR_FORMAT;
	key[n] = '\0';
	return (int)n;
}

/* [RFC 7143: 6.1 #1] */
int iscsi_text_next(struct iscsi_text_iter *it,
		    char key[ISCSI_KEY_NAME_MAX + 1], const char **value)
{
	const char *nul;
	int n;

	/* Some implementations add more NULs than the padding needs. */
	while (it->p < it->end && *it->p == '\0')
		it->p++;
	if (it->p == it->end)
		return 0;
	nul = memchr(it->p, '\0', (size_t)(it->end - it->p));
	if (!nul)
		return ERR_FORMAT;
	n = take_key(key, it->p, (size_t)(nul - it->p));
	if (n < 0)
		return n;
	if (nul - it->p - n - 1 > ISCSI_KEY_VALUE_MAX)
		return ERR_FORMAT;
	*value = it->p + n + 1;
	it->p = nul + 1;
	return 1;
}

int iscsi_list_find(const char *list, const char *item)
{
	size_t len = strlen(item);

	for (int i = 0; list; i++) {
		size_t n = strcspn(list, ",");

		if (n == len && memcmp(list, item, n) == 0)
			return i;
		list = list[n] ? list + n + 1 : NULL;
	}
	return -1;
}

bool iscsi_list_has(const char *list, const char *item)
{
	return iscsi_list_find(list, item) >= 0;
}

/* [RFC 7143: 6.1 #1] */
void iscsi_text_put(struct iscsi_text_out *out, const char *key,
		    const char *value)
{
	size_t k = strlen(key), v = strlen(value);

	if (k + v + 2 > out->max - out->len) {
		out->overflow = true;
		return;
	}
	memcpy(out->buf + out->len, key, k);
	out->buf[out->len + k] = '=';
	memcpy(out->buf + out->len + k + 1, value, v + 1);
	out->len += k + v + 2;
}

void iscsi_text_putf(struct iscsi_text_out *out, const char *key,
		     const char *fmt, ...)
{
	char value[512];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(value, sizeof(value), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(value)) {
		out->overflow = true;
		return;
	}
	iscsi_text_put(out, key, value);
}
