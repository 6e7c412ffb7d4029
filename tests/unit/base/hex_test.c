/* SPDX-License-Identifier: BSD-2-Clause */
/* hex_test.c: digits in both cases, bytes as text. */
#include "base/hex.h"

#include <string.h>

#include "cmocka_all.h"

static void test_hex_digits(void **state)
{
	static const char digits[] = "0123456789abcdef";

	(void)state;
	for (int c = 1; c < 256; c++) {
		const char *lower =
			strchr(digits, c >= 'A' && c <= 'Z' ? c + 32 : c);

		assert_int_equal(hex_digit((char)c),
				 lower ? lower - digits : -1);
	}
	assert_int_equal(hex_digit(0), -1);
}

static void test_put(void **state)
{
	const uint8_t bytes[] = { 0x00, 0x9a, 0xff };
	char out[8] = "-------";

	(void)state;
	hex_put(out, bytes, 3);
	assert_string_equal(out, "009aff");
	hex_put(out, bytes, 0);
	assert_string_equal(out, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hex_digits),
		cmocka_unit_test(test_put),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
