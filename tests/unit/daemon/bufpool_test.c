/* SPDX-License-Identifier: BSD-2-Clause */
/* bufpool_test.c: data buffers: alignment, reuse, what is kept. */
#include "daemon/process/bufpool.h"

#include <string.h>

#include "cmocka_all.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static void test_bufpool_aligned_and_whole(void **state)
{
	static const size_t sizes[] = { 1, 4096, 4097, 65536, MIB };
	struct bufpool p;

	(void)state;
	bufpool_init(&p, MIB);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		void *b = bufpool_get(&p, sizes[i]);

		assert_non_null(b);
		assert_int_equal((uintptr_t)b % 4096, 0);
		memset(b, 1, sizes[i]);
		bufpool_put(&p, b, sizes[i]);
	}
	assert_null(bufpool_get(&p, (size_t)1 << 40));
	assert_int_equal(p.out, 0);
	bufpool_fini(&p);
	assert_int_equal(p.kept, 0);
}

static void test_bufpool_reuses(void **state)
{
	struct bufpool p;
	void *a, *b;

	(void)state;
	bufpool_init(&p, MIB);
	a = bufpool_get(&p, 8192);
	bufpool_put(&p, a, 8192);
	b = bufpool_get(&p, 5000); /* of the same class */
	assert_ptr_equal(a, b);
	assert_int_equal(p.maps, 1);
	bufpool_put(&p, b, 5000);
	bufpool_fini(&p);
}

static void get_and_put(struct bufpool *p, size_t len, unsigned depth)
{
	void *bufs[64];

	for (unsigned i = 0; i < depth; i++)
		bufs[i] = bufpool_get(p, len);
	for (unsigned i = 0; i < depth; i++)
		bufpool_put(p, bufs[i], len);
}

/* Cached buffers of one size are unmapped for buffers of another size. */
static void test_bufpool_shares_what_it_keeps_among_sizes(void **state)
{
	struct bufpool p;
	uint64_t maps;

	(void)state;
	bufpool_init(&p, 64 * MIB);
	get_and_put(&p, MIB, 64);
	assert_int_equal(p.kept, 64 * MIB);
	get_and_put(&p, 128 * KIB, 8);
	maps = p.maps;
	for (unsigned i = 0; i < 100; i++)
		get_and_put(&p, 128 * KIB, 8);
	assert_int_equal(p.maps, maps);
	assert_true(p.kept <= 64 * MIB);
	bufpool_fini(&p);
}

/* All commands of a deep load end at once. */
static void test_bufpool_keeps_what_a_deep_load_returns(void **state)
{
	struct bufpool p;

	(void)state;
	bufpool_init(&p, 512 * MIB);
	for (unsigned i = 0; i < 10; i++)
		get_and_put(&p, 4 * MIB, 64);
	assert_int_equal(p.maps, 64);
	bufpool_fini(&p);
}

/* Buffers in use count. */
static void test_bufpool_keeps_little_beside_much_in_use(void **state)
{
	struct bufpool p;
	void *large;

	(void)state;
	bufpool_init(&p, 8 * MIB);
	get_and_put(&p, MIB, 8);
	assert_int_equal(p.kept, 8 * MIB);
	large = bufpool_get(&p, 4 * MIB);
	get_and_put(&p, 4096, 2);
	assert_true(p.kept + p.out <= 8 * MIB);
	bufpool_put(&p, large, 4 * MIB);
	assert_true(p.kept <= 8 * MIB);
	bufpool_fini(&p);
}

static void test_bufpool_keeps_no_more_than_it_may(void **state)
{
	struct bufpool p;

	(void)state;
	bufpool_init(&p, MIB);
	get_and_put(&p, MIB, 2);
	assert_int_equal(p.kept, MIB);
	get_and_put(&p, 2 * MIB, 2);
	assert_int_equal(p.kept, 0);
	bufpool_fini(&p);
}

/* A burst is over: its memory goes although others are in use all the time. */
static void test_bufpool_gives_a_burst_back_under_load(void **state)
{
	struct bufpool p;

	(void)state;
	bufpool_init(&p, 64 * MIB);
	get_and_put(&p, MIB, 48);
	for (unsigned i = 0; i < 3; i++) {
		get_and_put(&p, 4096, 4);
		bufpool_trim(&p);
	}
	assert_int_equal(p.kept, 4 * 4096);
	bufpool_trim(&p);
	assert_int_equal(p.kept, 0);
	bufpool_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bufpool_aligned_and_whole),
		cmocka_unit_test(test_bufpool_reuses),
		cmocka_unit_test(test_bufpool_shares_what_it_keeps_among_sizes),
		cmocka_unit_test(test_bufpool_keeps_what_a_deep_load_returns),
		cmocka_unit_test(test_bufpool_keeps_little_beside_much_in_use),
		cmocka_unit_test(test_bufpool_keeps_no_more_than_it_may),
		cmocka_unit_test(test_bufpool_gives_a_burst_back_under_load),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
