/* SPDX-License-Identifier: BSD-2-Clause */
/* bufpool_test.c: data buffers: alignment, bounds, reuse. */
#include "daemon/bufpool.h"

#include <stdint.h>
#include <string.h>

#include "cmocka_all.h"

#define MIB (1u << 20)

static void test_bufpool_aligned_and_whole(void **state)
{
	static const size_t sizes[] = { 1, 4096, 4097, 65536, 1000000 };
	struct bufpool p;

	(void)state;
	bufpool_init(&p, 64 * MIB, MIB);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		void *b = bufpool_get(&p, sizes[i]);

		assert_non_null(b);
		assert_int_equal((uintptr_t)b % 4096, 0);
		memset(b, 0xff, sizes[i]);
		bufpool_put(&p, b, sizes[i]);
	}
	assert_int_equal(p.out, 0);
	bufpool_fini(&p);
}

static void test_bufpool_bounded(void **state)
{
	struct bufpool p;
	void *small[8], *a, *b;

	(void)state;
	bufpool_init(&p, 2 * MIB, MIB);
	a = bufpool_get(&p, MIB);
	b = bufpool_get(&p, MIB / 2);
	assert_non_null(a);
	assert_non_null(b);
	/* the last quarter is for small ones */
	assert_null(bufpool_get(&p, BUFPOOL_SMALL + 1));
	for (unsigned i = 0; i < 8; i++) {
		small[i] = bufpool_get(&p, BUFPOOL_SMALL);
		assert_non_null(small[i]);
	}
	assert_null(bufpool_get(&p, 1));
	for (unsigned i = 0; i < 8; i++)
		bufpool_put(&p, small[i], BUFPOOL_SMALL);
	bufpool_put(&p, a, MIB);
	bufpool_put(&p, b, MIB / 2);
	assert_null(bufpool_get(&p, 2 * MIB));
	assert_int_equal(p.out, 0);
	bufpool_fini(&p);
}

static void test_bufpool_reuses_and_trims(void **state)
{
	struct bufpool p;
	void *a, *b;

	(void)state;
	bufpool_init(&p, 64 * MIB, MIB);
	a = bufpool_get(&p, 8192);
	bufpool_put(&p, a, 8192);
	b = bufpool_get(&p, 5000); /* of the same class */
	assert_ptr_equal(a, b);
	bufpool_put(&p, b, 5000);
	bufpool_trim(&p); /* was used just now */
	assert_int_equal(p.kept, 8192);
	bufpool_trim(&p);
	assert_int_equal(p.kept, 0);
	bufpool_fini(&p);
}

static void test_bufpool_keeps_no_more_than_it_may(void **state)
{
	struct bufpool p;
	void *a, *b;

	(void)state;
	bufpool_init(&p, 64 * MIB, MIB);
	a = bufpool_get(&p, MIB);
	b = bufpool_get(&p, MIB);
	bufpool_put(&p, a, MIB);
	bufpool_put(&p, b, MIB);
	assert_int_equal(p.kept, MIB);
	assert_null(bufpool_get(&p, (size_t)1 << 40));
	bufpool_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bufpool_aligned_and_whole),
		cmocka_unit_test(test_bufpool_bounded),
		cmocka_unit_test(test_bufpool_reuses_and_trims),
		cmocka_unit_test(test_bufpool_keeps_no_more_than_it_may),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
