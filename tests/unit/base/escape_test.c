/* SPDX-License-Identifier: BSD-2-Clause */
/* escape_test.c: text of a peer cannot control a terminal or end a line. */
#include "base/escape.h"

#include <string.h>

#include "base/trace.h"
#include "cmocka_all.h"

static const struct {
	const char *in;
	size_t len;
	const char *out;
} cases[] = {
#define ROW(in, out)      \
 {                        \
  in, sizeof(in) - 1, out \
 }
	ROW("", ""),
	ROW("iqn.2026-01.org.example:disk", "iqn.2026-01.org.example:disk"),
	ROW("a b~", "a b~"),
	ROW("back\\slash \\x1b", "back\\slash \\x1b"),
	/* C0, DEL */
	ROW("\x1b[2J", "\\x1b[2J"),
	ROW("a\nb\rc\td", "a\\x0ab\\x0dc\\x09d"),
	ROW("nul\0x", "nul\\x00x"),
	ROW("\x7f", "\\x7f"),
	/* C1 as UTF-8 and as a bare byte: CSI in both forms */
	ROW("\xc2\x9b"
	    "31m",
	    "\\xc2\\x9b31m"),
	ROW("\x9b"
	    "31m",
	    "\\x9b31m"),
	ROW("\xc2\xa0", "\xc2\xa0"),
	/* letters of other scripts are copied */
	ROW("Stra\xc3\x9f"
	    "e \xe6\x97\xa5 \xf0\x9f\x92\xbe",
	    "Stra\xc3\x9f"
	    "e \xe6\x97\xa5 \xf0\x9f\x92\xbe"),
	/* not UTF-8 (RFC 3629 §4) */
	ROW("iqn.\xff\xfe", "iqn.\\xff\\xfe"),
	ROW("\xc3", "\\xc3"),
	ROW("\xe6\x97", "\\xe6\\x97"),
	ROW("\xe6"
	    "a\xa5",
	    "\\xe6a\\xa5"),
	ROW("\xc0\xaf", "\\xc0\\xaf"),
	ROW("\xe0\x80\xaf", "\\xe0\\x80\\xaf"),
	ROW("\xf0\x80\x80\xaf", "\\xf0\\x80\\x80\\xaf"),
	ROW("\xed\xa0\x80", "\\xed\\xa0\\x80"),
	ROW("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"),
	ROW("\xf8\x88\x80\x80\x80", "\\xf8\\x88\\x80\\x80\\x80"),
	/* changes of direction, ends of lines */
	ROW("\xe2\x80\xae"
	    "cod",
	    "\\xe2\\x80\\xaecod"),
	ROW("\xe2\x81\xa6", "\\xe2\\x81\\xa6"),
	ROW("\xe2\x80\xa8", "\\xe2\\x80\\xa8"),
	ROW("\xef\xbb\xbf", "\\xef\\xbb\\xbf"),
	/* U+FFFD is a character, U+FFFE and U+FFFF are none */
	ROW("\xef\xbf\xbd", "\xef\xbf\xbd"),
	ROW("\xef\xbf\xbe", "\\xef\\xbf\\xbe"),
	ROW("\xef\xbf\xbf", "\\xef\\xbf\\xbf"),
#undef ROW
};

static void test_text_escape_each_kind(void **state)
{
	char out[128], again[128];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t n = text_escape(out, sizeof(out), cases[i].in,
				       cases[i].len);

		assert_string_equal(out, cases[i].out);
		assert_int_equal(n, strlen(out));
		assert_int_equal(text_is_plain(cases[i].in, cases[i].len),
				 n == cases[i].len &&
					 !memcmp(out, cases[i].in, n));
		/* escaping twice gives the result of escaping once */
		assert_true(text_is_plain(out, n));
		text_escape(again, sizeof(again), out, n);
		assert_string_equal(again, out);
	}
}

static void test_text_escape_cuts_between_characters(void **state)
{
	static const char in[] = "a\x1b\xc3\x9f\xe2\x80\xae"
				 "b";
	char whole[64], out[64];

	(void)state;
	text_escape(whole, sizeof(whole), in, sizeof(in) - 1);
	for (size_t size = 0; size < sizeof(out); size++) {
		size_t n;

		memset(out, '#', sizeof(out));
		n = text_escape(out, size, in, sizeof(in) - 1);
		assert_true(size == 0 || n < size);
		assert_true(out[size] == '#');
		if (size == 0)
			continue;
		assert_int_equal(out[n], '\0');
		assert_memory_equal(out, whole, n);
		assert_true(text_is_plain(out, n));
		assert_true(n == 0 || n == 1 || n == 5 || n == 7 || n == 19 ||
			    n == 20);
	}
}

static void test_text_escape_size_is_enough(void **state)
{
	uint8_t in[256];
	char out[TEXT_ESCAPED_SIZE(sizeof(in))];

	(void)state;
	memset(in, 0xff, sizeof(in));
	assert_int_equal(text_escape(out, sizeof(out), in, sizeof(in)),
			 4 * sizeof(in));
}

struct line {
	struct trace t;
	char text[1100];
};

static void copy_line(struct trace *t, enum trace_event event,
		      const struct trace_about *about, const char *text)
{
	(void)about;
	(void)event;
	strcpy(((struct line *)t)->text, text);
}

/* A name cannot end a line of the log early or move the cursor. */
static void test_trace_emit_escapes(void **state)
{
	struct line l = { .t = { .level = TRACE_LEVEL_DEBUG,
				 .emit = copy_line } };

	(void)state;
	trace_emit(&l.t, TRACE_LOGIN, "from %s", "iqn.\x1b[1m\n\xff");
	assert_string_equal(l.text, "from iqn.\\x1b[1m\\x0a\\xff");
	trace_emit(&l.t, TRACE_LOGIN, "from %s",
		   "Stra\xc3\x9f"
		   "e");
	assert_string_equal(l.text, "from Stra\xc3\x9f"
				    "e");
}

/* encode writes c as n octets (RFC 3629 §3); more octets than c needs are an
 * overlong form. */
static void encode(uint8_t *p, uint32_t c, unsigned n)
{
	static const uint8_t lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

	for (unsigned i = n; i-- > 1; c >>= 6)
		p[i] = 0x80 | (c & 0x3f);
	p[0] = (uint8_t)(lead[n] | c);
}

/* Every number of 21 bits: valid characters, truncated and overlong forms,
 * surrogates and numbers above U+10FFFF. */
static void test_utf8_each_character_rfc3629_3(void **state)
{
	static const uint32_t room[] = { 0, 0x80, 0x800, 0x10000, 0x200000 };
	uint32_t got;

	(void)state;
	for (unsigned n = 1; n <= 4; n++)
		for (uint32_t c = 0; c < room[n]; c++) {
			bool is = c >= (n > 1 ? room[n - 1] : 0) &&
				  c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
			uint8_t p[4];

			encode(p, c, n);
			got = UINT32_MAX;
			if (text_utf8_next(p, 4, &got) != (is ? n : 0) ||
			    (is && got != c))
				fail_msg("%x in %u octets", c, n);
			if (n > 1 && text_utf8_next(p, n - 1, &got) != 0)
				fail_msg("%x cut short", c);
		}
}

/* Continuation octets are 80h to BFh; no character begins with one of them, or
 * with F8h and above. */
static void test_utf8_each_octet(void **state)
{
	uint32_t got;

	(void)state;
	for (unsigned b = 0; b < 256; b++) {
		for (unsigned at = 1; at < 4; at++) {
			uint8_t p[4] = { 0xf1, 0x80, 0x80, 0x80 };

			p[at] = (uint8_t)b;
			assert_int_equal(text_utf8_next(p, 4, &got),
					 (b & 0xc0) == 0x80 ? 4 : 0);
		}
		if ((b & 0xc0) == 0x80 || b >= 0xf8) {
			uint8_t p[4] = { (uint8_t)b, 0x80, 0x80, 0x80 };

			assert_int_equal(text_utf8_next(p, 4, &got), 0);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_utf8_each_character_rfc3629_3),
		cmocka_unit_test(test_utf8_each_octet),
		cmocka_unit_test(test_text_escape_each_kind),
		cmocka_unit_test(test_text_escape_cuts_between_characters),
		cmocka_unit_test(test_text_escape_size_is_enough),
		cmocka_unit_test(test_trace_emit_escapes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
