/* SPDX-License-Identifier: BSD-2-Clause */
/* escape.c: which characters of a text are printed, and which are escaped. */
#include "base/escape.h"

#include <stdint.h>
#include <string.h>

size_t text_utf8_next(const uint8_t *p, size_t left, uint32_t *c)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = p[0] < 0x80		   ? 1
		   : (p[0] & 0xe0) == 0xc0 ? 2
		   : (p[0] & 0xf0) == 0xe0 ? 3
		   : (p[0] & 0xf8) == 0xf0 ? 4
					   : 0;

	if (n == 0 || n > left)
		return 0;
	*c = n == 1 ? p[0] : p[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		*c = *c << 6 | (p[i] & 0x3fu);
	}
	if (*c < least[n] || *c > 0x10ffff || (*c >= 0xd800 && *c <= 0xdfff))
		return 0;
	return n;
}

/* Control characters, and the characters that change the direction of the text
 * around them and so make a name look like another name: U+061C, U+200E,
 * U+200F, U+202A to U+202E, U+2066 to U+2069. U+2028 and U+2029 end a line,
 * U+FEFF has no width, U+FFFE and U+FFFF are no characters, and no YAML file may
 * have them. */
static bool is_printed(uint32_t c)
{
	if (c < 0x20 || (c >= 0x7f && c < 0xa0))
		return false;
	return c != 0x061c && c != 0x200e && c != 0x200f &&
	       !(c >= 0x2028 && c <= 0x202e) && !(c >= 0x2066 && c <= 0x2069) &&
	       c != 0xfeff && c != 0xfffe && c != 0xffff;
}

/* classify_char returns the length of the character at p (1 for a byte that is
 * not UTF-8) and stores in *printed whether the character is copied as it
 * is. */
static size_t classify_char(const uint8_t *p, size_t left, bool *printed)
{
	uint32_t c;
	size_t n = text_utf8_next(p, left, &c);

	*printed = n && is_printed(c);
	return n ? n : 1;
}

bool text_is_plain(const void *text, size_t len)
{
	const uint8_t *p = text;
	bool printed = true;

	for (size_t i = 0; i < len && printed;)
		i += classify_char(p + i, len - i, &printed);
	return printed;
}

static void put_hex(char *out, uint8_t byte)
{
	static const char digits[] = "0123456789abcdef";

	out[0] = '\\';
	out[1] = 'x';
	out[2] = digits[byte >> 4];
	out[3] = digits[byte & 15];
}

size_t text_escape(char *out, size_t size, const void *text, size_t len)
{
	const uint8_t *p = text;
	size_t at = 0;

	if (size == 0)
		return 0;
	for (size_t i = 0; i < len;) {
		bool printed;
		size_t n = classify_char(p + i, len - i, &printed);
		size_t need = printed ? n : 4 * n;

		if (need >= size - at)
			break;
		if (printed)
			memcpy(out + at, p + i, n);
		else
			for (size_t k = 0; k < n; k++)
				put_hex(out + at + 4 * k, p[i + k]);
		at += need;
		i += n;
	}
	out[at] = '\0';
	return at;
}

const char *text_escape_str(char *out, size_t size, const char *text)
{
	text_escape(out, size, text, strlen(text));
	return out;
}
