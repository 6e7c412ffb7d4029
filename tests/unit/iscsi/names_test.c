/* SPDX-License-Identifier: BSD-2-Clause */
/* names_test.c: the syntax of iSCSI names and the profile of RFC 3722. */
#include "iscsi/names.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "cmocka_all.h"

static char out[ISCSI_NAME_MAX + 1], why[ISCSI_NAME_WHY];

static int prepare(const char *name)
{
	memset(out, 'x', sizeof(out));
	return iscsi_name_prepare(out, name, true, why);
}

static void assert_refused(const char *name, const char *reason)
{
	assert_int_equal(prepare(name), ERR_FORMAT);
	if (!strstr(why, reason))
		fail_msg("%s: %s, not %s", name, why, reason);
}

static void test_names_of_initiators_in_use(void **state)
{
	static const char *const names[] = {
		"iqn.1991-05.com.microsoft:desktop-1.corp.example.com",
		"iqn.1993-08.org.debian:01:4c8d6a2f3b1e",
		"iqn.1994-05.com.redhat:b6f1a9d2c3",
		"iqn.1998-01.com.vmware:esx-01-1a2b3c4d",
		"iqn.2007-10.com.github:sahlberg:libiscsi:iscsi-ls",
		"iqn.2008-11.org.linux-kvm",
		"iqn.2008-11.org.linux-kvm:8ff9a4b4-0c36-4e1a-b5a6-2a6b0d1f0b6c",
		"iqn.2010-04.org.ipxe:4c4c4544-0046-3310-8057-b4c04f4a3132",
		"iqn.1994-09.org.freebsd:host",
		"iqn.1986-03.com.sun:01:0003ba0e0795.4b27ff0c",
		"iqn.2001-04.com.example",
		"eui.02004567a425678d",
		"naa.52004567ba64678d",
		"naa.62004567ba64678d0123456789abcdef",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(prepare(names[i]), 0);
		assert_string_equal(out, names[i]);
	}
}

/* Capital letters are mapped, not refused (table B.2 of RFC 3454). */
static void test_capitals_are_mapped_rfc3722_4(void **state)
{
	(void)state;
	assert_int_equal(prepare("IQN.2000-09.org.Etherboot:UNKNOWN"), 0);
	assert_string_equal(out, "iqn.2000-09.org.etherboot:unknown");
	assert_int_equal(prepare("eui.02004567A425678D"), 0);
	assert_string_equal(out, "eui.02004567a425678d");
	assert_int_equal(prepare("NAA.52004567BA64678D"), 0);
	/* A-umlaut, Alpha, Zhe, Io; small letters are not changed */
	assert_int_equal(prepare("iqn.2026-01.x:\xc3\x84\xce\x91\xd0\x96"
				 "\xd0\x81\xc3\xa4\xce\xb1\xd0\xb6\xd1\x91"),
			 0);
	assert_string_equal(out, "iqn.2026-01.x:\xc3\xa4\xce\xb1\xd0\xb6"
				 "\xd1\x91\xc3\xa4\xce\xb1\xd0\xb6\xd1\x91");
	/* two characters that are not letters */
	assert_int_equal(prepare("iqn.2026-01.x:\xc3\x97\xc3\xb7"), 0);
	assert_string_equal(out, "iqn.2026-01.x:\xc3\x97\xc3\xb7");
}

/* [RFC 7143: 4.2.7.1 #3] */
static void test_length_rfc7143_4_2_7_2(void **state)
{
	char name[ISCSI_NAME_MAX + 2] = "iqn.2026-01.x:";

	(void)state;
	memset(name + strlen(name), 'a', ISCSI_NAME_MAX - strlen(name));
	assert_int_equal(prepare(name), 0);
	assert_string_equal(out, name);
	name[ISCSI_NAME_MAX] = 'a';
	assert_refused(name, "224 bytes");
	assert_refused("", "0 bytes");
}

/* [RFC 7143: 4.2.7.2 #1] */
static void test_not_utf8_rfc3629(void **state)
{
	static const char *const bad[] = {
		"\xff\xfe",	    /* bytes that UTF-8 does not have */
		"\xc3",		    /* truncated */
		"\x80",		    /* a continuation byte alone */
		"\xc0\xae",	    /* an overlong form of the dot */
		"\xed\xa0\x80",	    /* a surrogate */
		"\xf4\x90\x80\x80", /* beyond U+10FFFF */
	};
	char name[64];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(name, sizeof(name), "iqn.2026-01.x:%s", bad[i]);
		assert_refused(name, "not UTF-8");
		snprintf(name, sizeof(name), "iqn.2026-01.x:%sa", bad[i]);
		assert_refused(name, "not UTF-8");
	}
	assert_refused("iqn.\xff\xfe", "byte 5 is not UTF-8");
}

/* Every ASCII character, §6.2. */
static void test_ascii_rfc3722_6_2(void **state)
{
	(void)state;
	for (int c = 1; c < 128; c++) {
		char name[] = "iqn.2026-01.x:a?b";
		bool small = c >= 'a' && c <= 'z', big = c >= 'A' && c <= 'Z';
		bool other = (c >= '0' && c <= '9') || strchr("-.:", c);

		name[15] = (char)c;
		if (small || big || other) {
			assert_int_equal(prepare(name), 0);
			assert_int_equal(out[15], big ? c + 32 : c);
		} else {
			assert_refused(name, "RFC 3722 §6");
		}
	}
}

/* QEMU and other software derive names from the name of a machine, with
 * underscores. */
static void test_underscore(void **state)
{
	const char *name = "iqn.2008-11.org.linux-kvm:my_machine";

	(void)state;
	assert_refused(name, "U+005F");
	assert_int_equal(iscsi_name_prepare(out, name, false, why), 0);
	assert_string_equal(out, name);
	/* no other character is tolerated */
	assert_int_equal(iscsi_name_prepare(out, "iqn.2026-01.x:a b", false,
					    why),
			 ERR_FORMAT);
}

/* One character of each table of RFC 3454 that RFC 3722 §6 and §7 name. */
/* [RFC 7143: 4.2.7.2 #1] */
static void test_prohibited_rfc3722_6(void **state)
{
	static const char *const bad[] = {
		"\xc2\xa0",	    /* C.1.2 no-break space */
		"\xe2\x80\x83",	    /* C.1.2 em space */
		"\xe3\x80\x80",	    /* C.1.2 ideographic space */
		"\xc2\x85",	    /* C.2.2 next line */
		"\xdb\x9d",	    /* C.2.2 U+06DD */
		"\xf0\x9d\x85\xb3", /* C.2.2 U+1D173 */
		"\xee\x80\x80",	    /* C.3 U+E000 */
		"\xf3\xb0\x80\x80", /* C.3 U+F0000 */
		"\xef\xb7\x90",	    /* C.4 U+FDD0 */
		"\xf0\x9f\xbf\xbe", /* C.4 U+1FFFE */
		"\xef\xbf\xbd",	    /* C.6 replacement character */
		"\xe2\xbf\xb0",	    /* C.7 U+2FF0 */
		"\xe2\x80\xae",	    /* C.8 right-to-left override */
		"\xcd\x80",	    /* C.8 U+0340 */
		"\xf3\xa0\x80\x81", /* C.9 U+E0001 */
		"\xe3\x80\x82",	    /* §6.1 ideographic full stop */
		"\xc2\xad",	    /* B.1 soft hyphen */
		"\xe2\x80\x8b",	    /* B.1 zero width space */
		"\xef\xbb\xbf",	    /* B.1 U+FEFF */
		"\xd7\x90",	    /* D.1 alef: §7 */
		"\xd8\xa7",	    /* D.1 Arabic alef */
	};
	static const char *const good[] = {
		"\xc3\xbc",	    /* u-umlaut */
		"\xe6\x97\xa5",	    /* U+65E5 */
		"\xf0\xa0\x80\x8b", /* U+2000B */
	};
	char name[64];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(name, sizeof(name), "iqn.2026-01.x:%sa", bad[i]);
		assert_refused(name, "RFC 3722 §6");
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		snprintf(name, sizeof(name), "iqn.2026-01.x:%sa", good[i]);
		assert_int_equal(prepare(name), 0);
		assert_string_equal(out, name);
	}
}

static void test_syntax_rfc7143_4_2_7(void **state)
{
	(void)state;
	assert_refused("disk", "§4.2.7.3");
	assert_refused("iqn", "§4.2.7.3");
	assert_refused("xyz.2026-01.org.example", "§4.2.7.3");
	assert_refused("iqn.", "§4.2.7.4");
	assert_refused("iqn.x:i", "§4.2.7.4");
	assert_refused("iqn.2026-1.org.example", "§4.2.7.4");
	assert_refused("iqn.202-601.org.example", "§4.2.7.4");
	assert_refused("iqn.2026-00.org.example", "no month 00");
	assert_refused("iqn.2026-13.org.example", "no month 13");
	assert_refused("iqn.2026-01", "§4.2.7.4");
	assert_refused("iqn.2026-01:disk", "§4.2.7.4");
	assert_refused("iqn.2026-01.", "naming authority");
	assert_refused("iqn.2026-01.:disk", "naming authority");
	assert_refused("iqn.2026-01..disk", "naming authority");
	assert_refused("eui.", "§4.2.7.5");
	assert_refused("eui.02004567a425678", "§4.2.7.5");
	assert_refused("eui.02004567a425678d0", "§4.2.7.5");
	assert_refused("eui.02004567a425678g", "§4.2.7.5");
	assert_refused("naa.", "§4.2.7.6");
	assert_refused("naa.52004567ba64678d0", "§4.2.7.6");
	assert_refused("naa.62004567ba64678d0123456789abcdef0", "§4.2.7.6");
}

/* ---- patterns ---- */

static bool matches(const char *pattern, const char *name)
{
	assert_int_equal(iscsi_pattern_prepare(out, pattern, why), 0);
	return iscsi_pattern_matches(out, name);
}

static void test_patterns(void **state)
{
	static const struct {
		const char *pattern, *name;
		bool matches;
	} rows[] = {
		{ "iqn.2026-01.org.a:x", "iqn.2026-01.org.a:x", true },
		{ "IQN.2026-01.org.A:X", "iqn.2026-01.org.a:x", true },
		{ "iqn.2026-01.org.a:x", "iqn.2026-01.org.a:xy", false },
		{ "iqn.2026-01.org.a:xy", "iqn.2026-01.org.a:x", false },
		{ "*", "iqn.2026-01.org.a:x", true },
		{ "**", "iqn.2026-01.org.a:x", true },
		{ "?", "iqn.2026-01.org.a:x", false },
		{ "iqn.2026-01.org.a:*", "iqn.2026-01.org.a:", true },
		{ "iqn.2026-01.org.a:*", "iqn.2026-01.org.a:x", true },
		{ "iqn.2026-01.org.a:*", "iqn.2026-01.org.ab:x", false },
		{ "iqn.2026-01.org.a:?", "iqn.2026-01.org.a:", false },
		{ "iqn.2026-01.org.a:?", "iqn.2026-01.org.a:x", true },
		{ "iqn.2026-01.org.a:?", "iqn.2026-01.org.a:xy", false },
		{ "iqn.2026-01.org.a:?*", "iqn.2026-01.org.a:xy", true },
		{ "iqn.2026-01.org.a:*?", "iqn.2026-01.org.a:", false },
		/* one character has several bytes */
		{ "iqn.2026-01.org.a:?", "iqn.2026-01.org.a:\xc3\xa9", true },
		{ "iqn.2026-01.org.a:??", "iqn.2026-01.org.a:\xc3\xa9", false },
		{ "iqn.2026-01.org.a:*?b",
		  "iqn.2026-01.org.a:\xc3\xa9"
		  "b",
		  true },
		{ "*:x", "iqn.2026-01.org.a:y:x", true },
		{ "*:x", "iqn.2026-01.org.a:x:y", false },
		{ "*a*b*c", "iqn.2026-01.org.aabbc", true },
		{ "*a*b*c", "iqn.2026-01.org.aacbb", false },
		{ "*ab*ab", "iqn.2026-01.org.abab", true },
		{ "*ab*ab", "iqn.2026-01.org.xab", false },
		{ "i*", "iqn.2026-01.org.a", true },
		{ "eui.*", "iqn.2026-01.org.a", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (matches(rows[i].pattern, rows[i].name) != rows[i].matches)
			fail_msg("%s, %s", rows[i].pattern, rows[i].name);
}

/* The time is at most the product of the lengths. */
static void test_pattern_that_almost_matches(void **state)
{
	char name[ISCSI_NAME_MAX + 1] = "iqn.2026-01.org.";
	char pattern[ISCSI_NAME_MAX + 1] = "";

	(void)state;
	memset(name + 16, 'a', sizeof(name) - 17);
	for (size_t i = 0; i + 2 < sizeof(pattern); i += 2)
		memcpy(pattern + i, "*a", 3);
	strcpy(pattern + 218, "*b");
	assert_false(matches(pattern, name));
	pattern[219] = 'a';
	assert_true(matches(pattern, name));
}

static void test_patterns_that_match_no_name_rfc7143_4_2_7(void **state)
{
	static const struct {
		const char *pattern, *why;
	} rows[] = {
		{ "", "0 bytes" },
		{ "disk", "begins with none of iqn." },
		{ "ign.*", "begins with none of iqn." },
		{ "iq.*", "begins with none of iqn." },
		{ "iqn.2026-01", "§4.2.7.4" },
		{ "iqn.2026-01.org.a:x y*", "U+0020" },
		{ "iqn.2026-01.org.a:[ab]", "U+005B" },
		{ "iqn.*\xff", "is not UTF-8" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(iscsi_pattern_prepare(out, rows[i].pattern,
						       why),
				 ERR_FORMAT);
		assert_non_null(strstr(why, rows[i].why));
	}
	/* wildcards are for patterns only */
	assert_refused("iqn.2026-01.org.a:*", "U+002A");
	assert_refused("iqn.2026-01.org.a:?", "U+003F");
	/* some programs use underscores */
	assert_int_equal(iscsi_pattern_prepare(out, "iqn.2026-01.a:a_*", why),
			 0);
}

/* Two forms of a name are one name (RFC 7143 §4.2.7.2); texts that are no names are
 * compared as they are. */
static void test_equal_names_rfc3722(void **state)
{
	static const struct {
		const char *a, *b;
		bool equal;
	} rows[] = {
		{ "iqn.2026-01.com.example:a", "IQN.2026-01.com.Example:A",
		  true },
		{ "eui.02004567A425678D", "eui.02004567a425678d", true },
		{ "iqn.2026-01.x:*", "iqn.2026-01.X:*", true },
		{ "iqn.2026-01.x:\303\204", "iqn.2026-01.x:\303\244", true },
		{ "iqn.2026-01.x:a", "iqn.2026-01.x:ab", false },
		{ "front", "Front", false },
		{ "front", "front", true },
		{ "iqn.2026-01.x:a/b", "iqn.2026-01.x:A/b", false },
		{ "", "iqn.2026-01.x:a", false },
		{ "", "", true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(iscsi_name_equal(rows[i].a, rows[i].b),
				 rows[i].equal);
		assert_int_equal(iscsi_name_equal(rows[i].b, rows[i].a),
				 rows[i].equal);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal_names_rfc3722),
		cmocka_unit_test(test_names_of_initiators_in_use),
		cmocka_unit_test(test_capitals_are_mapped_rfc3722_4),
		cmocka_unit_test(test_length_rfc7143_4_2_7_2),
		cmocka_unit_test(test_not_utf8_rfc3629),
		cmocka_unit_test(test_ascii_rfc3722_6_2),
		cmocka_unit_test(test_underscore),
		cmocka_unit_test(test_prohibited_rfc3722_6),
		cmocka_unit_test(test_syntax_rfc7143_4_2_7),
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_pattern_that_almost_matches),
		cmocka_unit_test(
			test_patterns_that_match_no_name_rfc7143_4_2_7),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
