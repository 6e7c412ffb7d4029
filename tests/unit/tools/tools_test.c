/* SPDX-License-Identifier: BSD-2-Clause */
/* tools_test.c: the histogram, sizes, exit codes. */
#include "../../../src/tools/iser.h"

#include <stdlib.h>

#include "cmocka_all.h"

static void test_percentile_within_two_percent(void **state)
{
	struct histogram *h = calloc(1, sizeof(*h));
	static const double p[] = { 0.01, 0.1, 0.5, 0.9, 0.99, 0.999 };

	(void)state;
	for (uint64_t v = 1; v <= 1000000; v++)
		hist_add(h, v);
	for (size_t i = 0; i < sizeof(p) / sizeof(p[0]); i++) {
		double want = p[i] * 1e6;
		double got = (double)hist_percentile(h, p[i]);

		assert_true(got > want * 0.98 && got < want * 1.02);
	}
	assert_int_equal(h->min, 1);
	assert_int_equal(h->max, 1000000);
	assert_int_equal(h->count, 1000000);
	free(h);
}

static void test_histogram_ends(void **state)
{
	struct histogram *h = calloc(1, sizeof(*h));

	(void)state;
	assert_int_equal(hist_percentile(h, 0.5), 0);
	hist_add(h, 0);
	assert_int_equal(hist_percentile(h, 0.5), 0);
	hist_add(h, UINT64_MAX);
	assert_true(hist_percentile(h, 1.0) > UINT64_MAX / 2);
	free(h);
}

static void test_parse_size(void **state)
{
	uint64_t v;

	(void)state;
	assert_true(parse_size("4096", &v) && v == 4096);
	assert_true(parse_size("4k", &v) && v == 4096);
	assert_true(parse_size("64M", &v) && v == 64u << 20);
	assert_true(parse_size("1.5GiB", &v) && v == 3u << 29);
	assert_true(parse_size("2T", &v) && v == 2ull << 40);
	assert_false(parse_size("", &v));
	assert_false(parse_size("x", &v));
	assert_false(parse_size("4q", &v));
	assert_false(parse_size("-1", &v));
	assert_false(parse_size("4kk", &v));
	assert_false(parse_size("nan", &v));
}

static void test_exit_codes_are_iscsiadms(void **state)
{
	(void)state;
	assert_int_equal(exit_of(ISER_OK), 0);
	assert_int_equal(exit_of(ISER_E_CONNECT), 4);
	assert_int_equal(exit_of(ISER_E_LOGIN), 5);
	assert_int_equal(exit_of(ISER_E_INVALID), 7);
	assert_int_equal(exit_of(ISER_E_TIMEOUT), 8);
	assert_int_equal(exit_of(ISER_E_NOT_FOUND), 21);
	assert_int_equal(exit_of(ISER_E_AUTH), 24);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_percentile_within_two_percent),
		cmocka_unit_test(test_histogram_ends),
		cmocka_unit_test(test_parse_size),
		cmocka_unit_test(test_exit_codes_are_iscsiadms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
