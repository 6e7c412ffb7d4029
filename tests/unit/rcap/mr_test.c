/* SPDX-License-Identifier: BSD-2-Clause */
/* mr_test.c: accesses of a peer with valid and invalid STags (RFC 5042 §6). */
#include "rcap/iwarp/mr.h"

#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"

static uint8_t memory[1000];
static int alice, bob; /* two streams: addresses that differ */

static struct iovec iov = { memory, sizeof(memory) };

static uint32_t make(struct mr_table *t, uint64_t base, unsigned rights)
{
	struct bufv v = bufv_of(&iov, 1);
	uint32_t stag = 0;

	assert_int_equal(mr_register(t, &alice, &v, base, rights, &stag), 0);
	assert_int_not_equal(stag, 0);
	return stag;
}

static int find(struct mr_table *t, const void *who, uint32_t stag, uint64_t to,
		uint64_t len, unsigned right)
{
	const struct bufv *m;
	size_t off;
	int r = mr_find(t, who, stag, to, len, right, &m, &off);

	if (!r && len) {
		assert_non_null(m);
		assert_true(range_ok(off, len, sizeof(memory)));
	}
	return r;
}

static void test_bounds_at_every_edge(void **state)
{
	static const uint64_t bases[] = { 0, 4096, 0xff149c0e20c34200ull,
					  UINT64_MAX - 1000 };
	struct mr_table *t = mr_table_new(8, 1);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bases); i++) {
		uint64_t b = bases[i];
		uint32_t s = make(t, b, MR_REMOTE_WRITE);

		assert_int_equal(find(t, &alice, s, b, 1000, MR_REMOTE_WRITE),
				 0);
		assert_int_equal(
			find(t, &alice, s, b + 999, 1, MR_REMOTE_WRITE), 0);
		/* right after the end; at the top of all that is a wrap */
		assert_int_equal(find(t, &alice, s, b + 1000, 1,
				      MR_REMOTE_WRITE),
				 b + 1000 == UINT64_MAX ? -TERM_RDMAP_TO_WRAP
							: -TERM_RDMAP_BOUNDS);
		assert_int_equal(find(t, &alice, s, b + 1, 1000,
				      MR_REMOTE_WRITE) < 0,
				 1);
		if (b)
			assert_int_equal(find(t, &alice, s, b - 1, 2,
					      MR_REMOTE_WRITE),
					 -TERM_RDMAP_BOUNDS);
		assert_int_equal(find(t, &alice, s, b + 5, UINT64_MAX,
				      MR_REMOTE_WRITE),
				 -TERM_RDMAP_TO_WRAP);
	}
	mr_table_free(t);
}

static void test_rights(void **state)
{
	struct mr_table *t = mr_table_new(8, 2);
	uint32_t r = make(t, 0, MR_REMOTE_READ),
		 w = make(t, 0, MR_REMOTE_WRITE);

	(void)state;
	assert_int_equal(find(t, &alice, r, 0, 1, MR_REMOTE_READ), 0);
	assert_int_equal(find(t, &alice, r, 0, 1, MR_REMOTE_WRITE),
			 -TERM_RDMAP_ACCESS);
	assert_int_equal(find(t, &alice, w, 0, 1, MR_REMOTE_READ),
			 -TERM_RDMAP_ACCESS);
	mr_table_free(t);
}

/* RFC 5042 §6.1: an STag of one stream is invalid on another, for access and
 * for invalidation. */
static void test_other_streams_get_nothing_rfc5042_6_1(void **state)
{
	struct mr_table *t = mr_table_new(8, 3);
	uint32_t s = make(t, 0, MR_REMOTE_READ | MR_REMOTE_WRITE);

	(void)state;
	assert_int_equal(find(t, &bob, s, 0, 1, MR_REMOTE_READ),
			 -TERM_RDMAP_STREAM);
	assert_int_equal(mr_invalidate_remote(t, &bob, s),
			 -TERM_RDMAP_CANT_INVALIDATE);
	assert_int_equal(find(t, &alice, s, 0, 1, MR_REMOTE_READ), 0);
	mr_table_free(t);
}

/* RFC 5042 §6.2: guessing: every other key of a live index, every index. */
static void test_guessing_finds_nothing_rfc5042_6_2(void **state)
{
	struct mr_table *t = mr_table_new(4, 4);
	uint32_t s = make(t, 0, MR_REMOTE_READ);
	unsigned found = 0;

	(void)state;
	for (uint32_t guess = 0; guess < 8u << 8; guess++)
		found += find(t, &alice, guess, 0, 1, MR_REMOTE_READ) == 0;
	assert_int_equal(found, 1);
	assert_int_equal(find(t, &alice, s ^ 1, 0, 1, MR_REMOTE_READ),
			 -TERM_RDMAP_INVALID_STAG);
	assert_int_equal(find(t, &alice, UINT32_MAX, 0, 1, MR_REMOTE_READ),
			 -TERM_RDMAP_INVALID_STAG);
	mr_table_free(t);
}

static void test_invalidated_is_dead_and_its_place_gets_a_new_key(void **state)
{
	struct mr_table *t = mr_table_new(1, 5);
	struct bufv v = bufv_of(&iov, 1);
	uint32_t last = 0, s;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		s = make(t, 0, MR_REMOTE_READ);
		assert_int_not_equal(s, last);
		assert_int_equal(mr_register(t, &alice, &v, 0, 1, &last),
				 ERR_BUSY);
		assert_int_equal(i & 1 ? mr_invalidate(t, s)
				       : mr_invalidate_remote(t, &alice, s),
				 0);
		assert_int_equal(find(t, &alice, s, 0, 1, MR_REMOTE_READ),
				 -TERM_RDMAP_INVALID_STAG);
		assert_int_equal(mr_invalidate(t, s), ERR_NOT_FOUND);
		assert_int_equal(mr_invalidate_remote(t, &alice, s),
				 -TERM_RDMAP_CANT_INVALIDATE);
		last = s;
	}
	mr_table_free(t);
}

static void test_a_stream_that_goes_takes_its_regions(void **state)
{
	struct mr_table *t = mr_table_new(8, 6);
	uint32_t s = make(t, 0, MR_REMOTE_READ);

	(void)state;
	make(t, 0, MR_REMOTE_READ);
	assert_int_equal(mr_invalidate_stream(t, &bob), 0);
	assert_int_equal(mr_invalidate_stream(t, &alice), 2);
	assert_int_equal(find(t, &alice, s, 0, 1, MR_REMOTE_READ),
			 -TERM_RDMAP_INVALID_STAG);
	mr_table_free(t);
}

static void test_zero_length_and_ranges_that_wrap(void **state)
{
	struct mr_table *t = mr_table_new(8, 7);
	struct bufv v = bufv_of(&iov, 1), none = { 0 };
	uint32_t s;

	(void)state;
	assert_int_equal(find(t, &bob, 1, 0, 0, MR_REMOTE_WRITE), 0);
	assert_int_equal(mr_register(t, &alice, &none, 0, 1, &s), ERR_RANGE);
	assert_int_equal(mr_register(t, &alice, &v, UINT64_MAX - 999, 1, &s),
			 ERR_RANGE);
	assert_null(mr_table_new(0, 1));
	assert_null(mr_table_new(1u << 24, 1));
	mr_table_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bounds_at_every_edge),
		cmocka_unit_test(test_rights),
		cmocka_unit_test(test_other_streams_get_nothing_rfc5042_6_1),
		cmocka_unit_test(test_guessing_finds_nothing_rfc5042_6_2),
		cmocka_unit_test(
			test_invalidated_is_dead_and_its_place_gets_a_new_key),
		cmocka_unit_test(test_a_stream_that_goes_takes_its_regions),
		cmocka_unit_test(test_zero_length_and_ranges_that_wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
