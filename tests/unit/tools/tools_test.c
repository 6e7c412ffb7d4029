/* SPDX-License-Identifier: BSD-2-Clause */
/* tools_test.c: the histogram and the exit codes. */
#include "tools/iser.h"

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
		cmocka_unit_test(test_exit_codes_are_iscsiadms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
