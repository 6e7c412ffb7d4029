/* SPDX-License-Identifier: BSD-2-Clause */
/* names.c: the syntax of iSCSI names, RFC 7143 §4.2.7, and RFC 3722. */
#include "iscsi/names.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/escape.h"

struct range {
	uint32_t first, last;
};

/* clang-format off */
/* The characters that RFC 3722 §6 prohibits, in increasing order. Beyond ASCII
 * also table B.1 of RFC 3454 (mapped to nothing) and table D.1 (read from right
 * to left). */
static const struct range prohibited[] = {
	/* §6.2; C.1.1, C.2.1 */
	{ 0x0000, 0x002c }, { 0x002f, 0x002f }, { 0x003b, 0x0040 },
	{ 0x005b, 0x0060 }, { 0x007b, 0x007f },
	/* C.2.2, C.1.2, B.1, C.8 */
	{ 0x0080, 0x00a0 }, { 0x00ad, 0x00ad }, { 0x0340, 0x0341 },
	{ 0x034f, 0x034f },
	/* D.1; 06DD and 070F are in C.2.2 */
	{ 0x05be, 0x05be }, { 0x05c0, 0x05c0 }, { 0x05c3, 0x05c3 },
	{ 0x05d0, 0x05ea }, { 0x05f0, 0x05f4 }, { 0x061b, 0x061b },
	{ 0x061f, 0x061f }, { 0x0621, 0x063a }, { 0x0640, 0x064a },
	{ 0x066d, 0x066f }, { 0x0671, 0x06d5 }, { 0x06dd, 0x06dd },
	{ 0x06e5, 0x06e6 }, { 0x06fa, 0x06fe }, { 0x0700, 0x070d },
	{ 0x070f, 0x0710 }, { 0x0712, 0x072c }, { 0x0780, 0x07a5 },
	{ 0x07b1, 0x07b1 },
	/* C.1.2, B.1, C.2.2, C.8, C.7 */
	{ 0x1680, 0x1680 }, { 0x1806, 0x1806 }, { 0x180b, 0x180e },
	{ 0x2000, 0x200f }, { 0x2028, 0x202f }, { 0x205f, 0x2063 },
	{ 0x206a, 0x206f }, { 0x2ff0, 0x2ffb }, { 0x3000, 0x3000 },
	/* §6.1; C.5, C.3; D.1; C.4, B.1, C.2.2, C.6 */
	{ 0x3002, 0x3002 }, { 0xd800, 0xf8ff }, { 0xfb1d, 0xfb1d },
	{ 0xfb1f, 0xfb28 }, { 0xfb2a, 0xfb36 }, { 0xfb38, 0xfb3c },
	{ 0xfb3e, 0xfb3e }, { 0xfb40, 0xfb41 }, { 0xfb43, 0xfb44 },
	{ 0xfb46, 0xfbb1 }, { 0xfbd3, 0xfd3d }, { 0xfd50, 0xfd8f },
	{ 0xfd92, 0xfdc7 }, { 0xfdd0, 0xfdef }, { 0xfdf0, 0xfdfc },
	{ 0xfe00, 0xfe0f }, { 0xfe70, 0xfe74 }, { 0xfe76, 0xfefc },
	{ 0xfeff, 0xfeff }, { 0xfff9, 0xffff },
	/* C.2.2; C.9; C.3 */
	{ 0x1d173, 0x1d17a }, { 0xe0001, 0xe0001 }, { 0xe0020, 0xe007f },
	{ 0xf0000, 0x10ffff },
};

/* Capital letters whose small letters follow at a fixed distance (table
 * B.2). */
static const struct {
	struct range letters;
	uint32_t distance;
} capitals[] = {
	{ { 0x0041, 0x005a }, 32 }, { { 0x00c0, 0x00d6 }, 32 },
	{ { 0x00d8, 0x00de }, 32 }, { { 0x0391, 0x03a1 }, 32 },
	{ { 0x03a3, 0x03ab }, 32 }, { { 0x0400, 0x040f }, 80 },
	{ { 0x0410, 0x042f }, 32 },
};
/* clang-format on */

static int refuse(char why[ISCSI_NAME_WHY], const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static int refuse(char why[ISCSI_NAME_WHY], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, ISCSI_NAME_WHY, fmt, ap);
	va_end(ap);
	return ERR_FORMAT;
}

/* ---- characters ---- */

static bool is_in_range(const struct range *r, uint32_t c)
{
	return c >= r->first && c <= r->last;
}

static bool is_prohibited(uint32_t c, bool strict)
{
	if (c == '_')
		return strict;
	if (c >= 0x10000 && (c & 0xfffe) == 0xfffe)
		return true; /* C.4: the last two code points of each plane */
	for (size_t i = 0; i < ARRAY_LEN(prohibited); i++)
		if (is_in_range(&prohibited[i], c))
			return true;
	return false;
}

static uint32_t to_small(uint32_t c)
{
	for (size_t i = 0; i < ARRAY_LEN(capitals); i++)
		if (is_in_range(&capitals[i].letters, c))
			return c + capitals[i].distance;
	return c;
}

/* All small letters have one byte or two. */
static void put_utf8(char *out, uint32_t c)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return;
	}
	out[0] = (char)(0xc0 | c >> 6);
	out[1] = (char)(0x80 | (c & 0x3f));
}

enum form {
	NAME,
	STRICT_NAME,
	PATTERN
};

static bool is_wildcard(uint32_t c, enum form form)
{
	return form == PATTERN && (c == '*' || c == '?');
}

static int map_name(char *out, const char *name, size_t len, enum form form,
		    char *why)
{
	for (size_t i = 0; i < len;) {
		uint32_t c, small;
		size_t n =
			text_utf8_next((const uint8_t *)name + i, len - i, &c);

		if (n == 0)
			return refuse(why,
				      "byte %zu is not UTF-8 (RFC 7143 "
				      "§4.2.7.2)",
				      i + 1);
		if (!is_wildcard(c, form) &&
		    is_prohibited(c, form == STRICT_NAME))
			return refuse(why,
				      "U+%04X is not allowed in an iSCSI name "
				      "(RFC 3722 §6)",
				      (unsigned)c);
		memcpy(out + i, name + i, n);
		small = to_small(c);
		if (small != c)
			put_utf8(out + i, small);
		i += n;
	}
	out[len] = '\0';
	return 0;
}

/* ---- syntax ---- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* "iqn." precedes "yyyy-mm." and a naming authority, §4.2.7.4. */
static int check_iqn(const char *p, char *why)
{
	static const char form[] = "dddd-dd.";
	int month;

	for (size_t i = 0; form[i]; i++)
		if (form[i] == 'd' ? !is_digit(p[i]) : p[i] != form[i])
			return refuse(why, "no date (yyyy-mm) and dot after "
					   "iqn. (RFC 7143 §4.2.7.4)");
	month = (p[5] - '0') * 10 + p[6] - '0';
	if (month < 1 || month > 12)
		return refuse(why, "no month %02d (RFC 7143 §4.2.7.4)", month);
	p += sizeof(form) - 1;
	if (*p == '\0' || *p == ':' || *p == '.')
		return refuse(why, "no naming authority after the date "
				   "(RFC 7143 §4.2.7.4)");
	return 0;
}

static size_t count_hex(const char *p)
{
	size_t n = 0;

	while (is_digit(p[n]) || (p[n] >= 'a' && p[n] <= 'f'))
		n++;
	return p[n] ? 0 : n;
}

static int check_syntax(const char *name, char *why)
{
	size_t n;

	if (strncmp(name, "iqn.", 4) == 0)
		return check_iqn(name + 4, why);
	n = strlen(name) > 4 ? count_hex(name + 4) : 0;
	if (strncmp(name, "eui.", 4) == 0)
		return n == 16 ? 0
			       : refuse(why, "not exactly 16 hexadecimal "
					     "digits after eui. (RFC 7143 "
					     "§4.2.7.5)");
	if (strncmp(name, "naa.", 4) == 0)
		return n == 16 || n == 32
			       ? 0
			       : refuse(why, "not exactly 16 or 32 hexadecimal "
					     "digits after naa. (RFC 7143 "
					     "§4.2.7.6)");
	return refuse(why, "begins with none of iqn., eui., naa. (RFC 7143 "
			   "§4.2.7.3)");
}

static int prepare(char *out, const char *name, enum form form, char *why)
{
	size_t len = strlen(name);

	if (len == 0 || len > ISCSI_NAME_MAX)
		return refuse(why,
			      "%zu bytes; 1 to 223 are allowed (RFC 7143 "
			      "§4.2.7.2)",
			      len);
	return map_name(out, name, len, form, why);
}

/* [RFC 7143: 4.2.7.2 #1] */
int iscsi_name_prepare(char out[ISCSI_NAME_MAX + 1], const char *name,
		       bool strict, char why[ISCSI_NAME_WHY])
{
	int err = prepare(out, name, strict ? STRICT_NAME : NAME, why);

	return err ? err : check_syntax(out, why);
}

/* ---- patterns ---- */

/* Checks what precedes the first wildcard, where most mistakes are. */
static int check_head(const char *pattern, size_t len, char *why)
{
	static const char types[][5] = { "iqn.", "eui.", "naa." };

	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (strncmp(pattern, types[i], MIN(len, (size_t)4)) == 0)
			return 0;
	return refuse(why, "begins with none of iqn., eui., naa. (RFC 7143 "
			   "§4.2.7.3)");
}

int iscsi_pattern_prepare(char out[ISCSI_NAME_MAX + 1], const char *pattern,
			  char why[ISCSI_NAME_WHY])
{
	int err = prepare(out, pattern, PATTERN, why);
	size_t head;

	if (err)
		return err;
	head = strcspn(out, "*?");
	return out[head] ? check_head(out, head, why) : check_syntax(out, why);
}

bool iscsi_name_equal(const char *a, const char *b)
{
	char x[ISCSI_NAME_MAX + 1], y[ISCSI_NAME_MAX + 1], why[ISCSI_NAME_WHY];

	if (iscsi_pattern_prepare(x, a, why) ||
	    iscsi_pattern_prepare(y, b, why))
		return strcmp(a, b) == 0;
	return strcmp(x, y) == 0;
}

static const char *next_char(const char *p)
{
	do
		p++;
	while (((uint8_t)*p & 0xc0) == 0x80); /* the rest of its UTF-8 */
	return p;
}

/* After a mismatch the last '*' takes one character more. An earlier '*' need not
 * take more: what follows it is found as early in the name as possible. */
bool iscsi_pattern_matches(const char *pattern, const char *name)
{
	const char *star = NULL, *rest = NULL;

	while (*name) {
		if (*pattern == '*') {
			star = ++pattern;
			rest = name;
		} else if (*pattern == '?') {
			pattern++;
			name = next_char(name);
		} else if (*pattern == *name) {
			pattern++;
			name++;
		} else if (star) {
			pattern = star;
			rest = name = next_char(rest);
		} else {
			return false;
		}
	}
	return pattern[strspn(pattern, "*")] == '\0';
}
