/* SPDX-License-Identifier: BSD-2-Clause */
/* chap.c: CHAP responses by libcrypto, binary values as text. */
#include "iscsi/chap.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/hex.h"
#include "iscsi/text.h"

static const EVP_MD *digest_of(enum chap_algorithm a)
{
	switch (a) {
	case CHAP_MD5:
		return EVP_md5();
	case CHAP_SHA1:
		return EVP_sha1();
	case CHAP_SHA256:
		return EVP_sha256();
	case CHAP_SHA3_256:
		return EVP_sha3_256();
	default:
		return NULL;
	}
}

/* Reads the number at the beginning of a list; CHAP_NONE: not a supported one. */
static enum chap_algorithm first_of(const char *list)
{
	char *end;
	unsigned long n = strtoul(list, &end, 0);

	if (end == list || n > 255 || (*end != ',' && *end != '\0') ||
	    !digest_of((enum chap_algorithm)n))
		return CHAP_NONE;
	return (enum chap_algorithm)n;
}

/* Returns the list without its first item, or NULL. */
static const char *rest_of(const char *list)
{
	const char *comma = strchr(list, ',');

	return comma ? comma + 1 : NULL;
}

static bool is_in(enum chap_algorithm a, const char *list)
{
	while (list && first_of(list) != a)
		list = rest_of(list);
	return list;
}

enum chap_algorithm chap_pick(const char *list, const char *allowed)
{
	for (; list; list = rest_of(list)) {
		enum chap_algorithm a = first_of(list);

		if (a != CHAP_NONE && is_in(a, allowed))
			return a;
	}
	return CHAP_NONE;
}

static const struct {
	const char *name;
	enum chap_algorithm algorithm;
} algorithms[] = {
	{ "md5", CHAP_MD5 },
	{ "sha1", CHAP_SHA1 },
	{ "sha256", CHAP_SHA256 },
	{ "sha3-256", CHAP_SHA3_256 },
};

enum chap_algorithm chap_algorithm(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(algorithms); i++)
		if (!strcmp(algorithms[i].name, name))
			return algorithms[i].algorithm;
	return CHAP_NONE;
}

const char *chap_algorithm_name(enum chap_algorithm a)
{
	for (size_t i = 0; i < ARRAY_LEN(algorithms); i++)
		if (algorithms[i].algorithm == a)
			return algorithms[i].name;
	return "";
}

/* [RFC 7143: 12.1.3 #8] */
bool chap_list(const char *names, char out[CHAP_LIST_MAX])
{
	char name[16], *end = out;

	for (*out = '\0'; names; names = rest_of(names)) {
		size_t n = strcspn(names, ",");
		enum chap_algorithm a;

		a = CHAP_NONE;
		if (n < sizeof(name)) {
			memcpy(name, names, n);
			name[n] = '\0';
			a = chap_algorithm(name);
		}
		if (a == CHAP_NONE || is_in(a, out)) {
			*out = '\0';
			return false;
		}
		/* no algorithm twice: four of one digit each fit */
		end += snprintf(end, CHAP_LIST_MAX - (size_t)(end - out),
				"%s%d", end > out ? "," : "", a);
	}
	return true;
}

size_t chap_response(enum chap_algorithm a, uint8_t id,
		     const struct iscsi_chap_secret *s,
		     const uint8_t *challenge, size_t len,
		     uint8_t out[CHAP_DIGEST_MAX])
{
	const EVP_MD *md = digest_of(a);
	EVP_MD_CTX *ctx = md ? EVP_MD_CTX_new() : NULL;
	uint8_t full[EVP_MAX_MD_SIZE];
	unsigned n = 0;

	if (!ctx)
		return 0;
	/* RFC 1994 §4.1: hash of Identifier, secret, Challenge Value */
	if (!EVP_DigestInit_ex(ctx, md, NULL) ||
	    !EVP_DigestUpdate(ctx, &id, 1) ||
	    !EVP_DigestUpdate(ctx, s->secret, s->secret_len) ||
	    !EVP_DigestUpdate(ctx, challenge, len) ||
	    !EVP_DigestFinal_ex(ctx, full, &n) || n > CHAP_DIGEST_MAX)
		n = 0;
	EVP_MD_CTX_free(ctx);
	memcpy(out, full, n);
	return n;
}

static int parse_hex(const char *text, uint8_t *out, size_t max)
{
	size_t digits = strlen(text), n = (digits + 1) / 2, at = 0;
	size_t i = 0;

	if (digits == 0)
		return ERR_FORMAT;
	if (n > max)
		return ERR_TOO_LONG;
	while (i < digits) {
		/* an odd number of digits: the first byte has only one */
		int hi = at == 0 && (digits & 1) ? 0 : hex_digit(text[i++]);
		int lo = hex_digit(text[i++]);

		if (hi < 0 || lo < 0)
			return ERR_FORMAT;
		out[at++] = (uint8_t)(hi << 4 | lo);
	}
	return (int)n;
}

static int base64_digit(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz"
				     "0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

static int parse_base64(const char *text, uint8_t *out, size_t max)
{
	size_t len = strlen(text), n = 0;
	uint32_t acc = 0;
	unsigned bits = 0;

	while (len > 0 && text[len - 1] == '=')
		len--;
	if (len == 0 || len % 4 == 1)
		return ERR_FORMAT;
	if (len / 4 * 3 + (len % 4 ? len % 4 - 1 : 0) > max)
		return ERR_TOO_LONG;
	for (size_t i = 0; i < len; i++) {
		int d = base64_digit(text[i]);

		if (d < 0)
			return ERR_FORMAT;
		acc = acc << 6 | (uint32_t)d;
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			out[n++] = (uint8_t)(acc >> bits);
		}
	}
	return (int)n;
}

/* [RFC 7143: 12.1.3 #7] */
int chap_binary_parse(const char *text, uint8_t *out, size_t max)
{
	if (text[0] != '0')
		return ERR_FORMAT;
	if (text[1] == 'x' || text[1] == 'X')
		return parse_hex(text + 2, out, max);
	if (text[1] == 'b' || text[1] == 'B')
		return parse_base64(text + 2, out, max);
	return ERR_FORMAT;
}

/* [RFC 7143: 6.1 #3] */
void chap_binary_print(const uint8_t *p, size_t len, char *out)
{
	*out++ = '0';
	*out++ = 'x';
	hex_put(out, p, len);
}

bool chap_equal(const uint8_t *a, const uint8_t *b, size_t len)
{
	return CRYPTO_memcmp(a, b, len) == 0;
}

const char *chap_secret_complaint(const char *p, size_t n)
{
	if (n >= 3 && !memcmp(p, "\xef\xbb\xbf", 3))
		return "begins with a byte order mark; save it without one";
	if (n >= 2 && (!memcmp(p, "\xff\xfe", 2) || !memcmp(p, "\xfe\xff", 2)))
		return "is UTF-16; save it as plain text or UTF-8";
	if (memchr(p, '\0', n))
		return "contains a zero byte; save it as plain text";
	if (memchr(p, '\n', n) || memchr(p, '\r', n))
		return "has more than one line; give the secret alone";
	return NULL;
}
