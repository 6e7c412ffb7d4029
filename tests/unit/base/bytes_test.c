/* SPDX-License-Identifier: BSD-2-Clause */
/* bytes_test.c: ranges: whether one lies in another, whether two overlap. */
#include "base/bytes.h"

#include "cmocka_all.h"

static void test_range_ok(void **state)
{
	(void)state;
	assert_true(range_ok(0, 10, 10));
	assert_true(range_ok(10, 0, 10));
	assert_false(range_ok(10, 1, 10));
	assert_false(range_ok(11, 0, 10));
	assert_false(range_ok(1, UINT64_MAX, 10));
}

/* Each order of the two gives the same result, also at the end of the number
 * range, where a sum would overflow. */
static void test_ranges_overlap(void **state)
{
	static const struct {
		uint64_t a, na, b, nb;
		bool overlap;
	} rows[] = {
		{ 0, 4, 4, 4, false },
		{ 0, 5, 4, 4, true },
		{ 3, 1, 0, 8, true },
		{ 8, 1, 0, 8, false },
		{ UINT64_MAX - 1, 1, UINT64_MAX, 1, false },
		{ UINT64_MAX - 1, 2, UINT64_MAX, 1, true },
		{ 0, UINT64_MAX, UINT64_MAX - 1, 1, true },
		{ 5, 0, 0, 4, false },
		{ 2, 0, 0, 4, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(ranges_overlap(rows[i].a, rows[i].na,
						rows[i].b, rows[i].nb),
				 rows[i].overlap);
		assert_int_equal(ranges_overlap(rows[i].b, rows[i].nb,
						rows[i].a, rows[i].na),
				 rows[i].overlap);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_range_ok),
		cmocka_unit_test(test_ranges_overlap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
