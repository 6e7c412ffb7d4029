/* SPDX-License-Identifier: BSD-2-Clause */
/* chap_test.c: CHAP responses, algorithm lists and binary values (RFC 1994
 * §4.1, RFC 7143 §§6.1, 12.1.3). The digests were computed with Python. */
#include "iscsi/chap.h"

#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"

static void test_responses_rfc1994_4_1(void **state)
{
	static const struct {
		enum chap_algorithm a;
		const char *hex;
	} rows[] = {
		{ CHAP_MD5, "0xdb4fd8a3da351f5339994f66064953ad" },
		{ CHAP_SHA1, "0x08a4b13ad664d4336acb8298ea0cc0d63000aeba" },
		{ CHAP_SHA256, "0x3b977aa2d48a196fcdf23847d612e22f"
			       "59d847e58f19a70ee42590d6ff4bcd1d" },
		{ CHAP_SHA3_256, "0x7bf4f0382bc4361f4067cf65f778e380"
				 "c68520c01a489a4c74cd58fbc1304f1e" },
	};
	const struct iscsi_chap_secret secret = { .secret = "open sesame 42",
						  .secret_len = 14 };
	uint8_t challenge[16], out[CHAP_DIGEST_MAX];

	(void)state;
	for (uint8_t i = 0; i < 16; i++)
		challenge[i] = i;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[2 * CHAP_DIGEST_MAX + 3];
		size_t n = chap_response(rows[i].a, 7, &secret, challenge, 16,
					 out);

		assert_int_equal(n, strlen(rows[i].hex) / 2 - 1);
		chap_binary_print(out, n, text);
		assert_string_equal(text, rows[i].hex);
		assert_true(chap_equal(out, out, n));
		challenge[0] ^= 1;
		chap_response(rows[i].a, 7, &secret, challenge, 16, out);
		challenge[0] ^= 1;
		chap_binary_print(out, n, text);
		assert_string_not_equal(text, rows[i].hex);
	}
	assert_int_equal(
		chap_response(CHAP_NONE, 7, &secret, challenge, 16, out), 0);
	assert_int_equal(chap_response((enum chap_algorithm)9, 7, &secret,
				       challenge, 16, out),
			 0);
}

static void test_first_of_the_list_that_is_ours(void **state)
{
	static const struct {
		const char *list;
		enum chap_algorithm want;
	} rows[] = {
		{ CHAP_OFFER, CHAP_SHA256 }, { "5", CHAP_MD5 },
		{ "6,5", CHAP_SHA1 },	     { "8", CHAP_SHA3_256 },
		{ "9,8", CHAP_SHA3_256 },    { "0x7", CHAP_SHA256 },
		{ "", CHAP_NONE },	     { ",", CHAP_NONE },
		{ ",5", CHAP_MD5 },	     { "5x,6", CHAP_SHA1 },
		{ "x", CHAP_NONE },	     { "4", CHAP_NONE },
		{ "261,5", CHAP_MD5 },	     { "261", CHAP_NONE },
		{ "5 ,7", CHAP_SHA256 },     { "9,10,11", CHAP_NONE },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(chap_pick(rows[i].list, CHAP_OFFER),
				 rows[i].want);
}

/* §12.1.3: initiators always offer MD5, unless the administrator has a list. */
/* [RFC 7143: 12.1.3 #8] */
static void test_chap_offers_md5_rfc7143_12_1_3(void **state)
{
	(void)state;
	assert_int_equal(CHAP_MD5, 5);
	assert_int_equal(chap_pick("5", CHAP_OFFER), CHAP_MD5);
	for (int a = CHAP_MD5; a <= CHAP_SHA3_256; a++)
		assert_int_equal(chap_algorithm(chap_algorithm_name(
					 (enum chap_algorithm)a)),
				 a);
	assert_string_equal(chap_algorithm_name(CHAP_NONE), "");
	assert_int_equal(chap_pick("5", CHAP_OFFER_NO_SHA256), CHAP_MD5);
}

/* [RFC 7143: 6.1 #3, 12.1.3 #7] */
static void test_binary_values_rfc7143_6_1(void **state)
{
	static const struct {
		const char *text;
		int len; /* or an error */
		uint8_t bytes[4];
	} rows[] = {
		{ "0x01", 1, { 1 } },
		{ "0X01", 1, { 1 } },
		{ "0x1", 1, { 1 } },
		{ "0xabc", 2, { 0x0a, 0xbc } },
		{ "0xAbCdEf09", 4, { 0xab, 0xcd, 0xef, 0x09 } },
		{ "0x", ERR_FORMAT, { 0 } },
		{ "0x0102030405", ERR_TOO_LONG, { 0 } },
		{ "0x102030405", ERR_TOO_LONG, { 0 } },
		{ "0x0g", ERR_FORMAT, { 0 } },
		{ "0xg0", ERR_FORMAT, { 0 } },
		{ "0xg", ERR_FORMAT, { 0 } },
		{ "0bAQ==", 1, { 1 } },
		{ "0BAQ", 1, { 1 } },
		{ "0bAQI=", 2, { 1, 2 } },
		{ "0bAQID", 3, { 1, 2, 3 } },
		{ "0bAQIDBA==", 4, { 1, 2, 3, 4 } },
		{ "0b+/z+", 3, { 0xfb, 0xfc, 0xfe } },
		{ "0bzZ09", 3, { 0xcd, 0x9d, 0x3d } },
		{ "0bAQIDBAU=", ERR_TOO_LONG, { 0 } },
		{ "0bA", ERR_FORMAT, { 0 } },
		{ "0bAQIDB", ERR_FORMAT, { 0 } },
		{ "0b", ERR_FORMAT, { 0 } },
		{ "0b====", ERR_FORMAT, { 0 } },
		{ "0bA=ID", ERR_FORMAT, { 0 } },
		{ "0bAQ-_", ERR_FORMAT, { 0 } },
		{ "", ERR_FORMAT, { 0 } },
		{ "0", ERR_FORMAT, { 0 } },
		{ "1x01", ERR_FORMAT, { 0 } },
		{ "0y01", ERR_FORMAT, { 0 } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint8_t out[5] = { 0 };

		out[4] = 0xee;
		assert_int_equal(chap_binary_parse(rows[i].text, out, 4),
				 rows[i].len);
		assert_int_equal(out[4], 0xee);
		if (rows[i].len > 0)
			assert_memory_equal(out, rows[i].bytes, 4);
	}
}

static void test_equal_counts_each_byte(void **state)
{
	uint8_t a[16] = { 0 }, b[16] = { 0 };

	(void)state;
	assert_true(chap_equal(a, b, 16));
	for (size_t i = 0; i < 16; i++) {
		b[i] ^= 0x80;
		assert_false(chap_equal(a, b, 16));
		assert_true(chap_equal(a, b, i));
		b[i] ^= 0x80;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_responses_rfc1994_4_1),
		cmocka_unit_test(test_first_of_the_list_that_is_ours),
		cmocka_unit_test(test_chap_offers_md5_rfc7143_12_1_3),
		cmocka_unit_test(test_binary_values_rfc7143_6_1),
		cmocka_unit_test(test_equal_counts_each_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
