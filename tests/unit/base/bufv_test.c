/* SPDX-License-Identifier: BSD-2-Clause */
/* bufv_test.c: slices, copies and CRC over vectors cut at every offset. */
#include "base/bufv.h"

#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "cmocka_all.h"

#define LEN 23

static uint8_t memory[LEN];

/* cut makes a vector of three pieces [0,a) [a,b) [b,LEN). */
static struct bufv cut(struct iovec iov[3], size_t a, size_t b)
{
	iov[0] = (struct iovec){ memory, a };
	iov[1] = (struct iovec){ memory + a, b - a };
	iov[2] = (struct iovec){ memory + b, LEN - b };
	return bufv_of(iov, 3);
}

static void test_slice_every_cut_every_range(void **state)
{
	(void)state;
	for (size_t a = 0; a <= LEN; a++)
		for (size_t b = a; b <= LEN; b++)
			for (size_t off = 0; off <= LEN; off++) {
				struct iovec iov[3], out[3];
				struct bufv v = cut(iov, a, b);
				size_t len = (LEN - off) / 2 + 1, at = off;
				unsigned n;
				size_t got =
					bufv_slice(&v, off, len, out, 3, &n);

				assert_int_equal(got, MIN(len, LEN - off));
				for (unsigned i = 0; i < n; i++) {
					assert_ptr_equal(out[i].iov_base,
							 memory + at);
					assert_true(out[i].iov_len > 0);
					at += out[i].iov_len;
				}
				assert_int_equal(at - off, got);
			}
}

static void test_slice_stops_at_max_pieces(void **state)
{
	struct iovec iov[3], out[2];
	struct bufv v = cut(iov, 5, 9);
	unsigned n;

	(void)state;
	assert_int_equal(bufv_slice(&v, 1, 20, out, 2, &n), 8);
	assert_int_equal(n, 2);
}

static void test_copies_respect_the_end(void **state)
{
	struct iovec iov[3];
	struct bufv v = cut(iov, 4, 4);
	uint8_t in[LEN + 4], out[LEN + 4];

	(void)state;
	for (unsigned i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)(i * 7 + 1);
	assert_int_equal(bufv_copy_in(&v, 2, in, sizeof(in)), LEN - 2);
	assert_memory_equal(memory + 2, in, LEN - 2);
	assert_int_equal(bufv_copy_out(&v, 2, out, sizeof(out)), LEN - 2);
	assert_memory_equal(out, in, LEN - 2);
	assert_int_equal(bufv_fill(&v, LEN - 3, 0xee, 9), 3);
	assert_int_equal(memory[LEN - 1], 0xee);
	assert_int_equal(bufv_copy_in(&v, LEN, in, 1), 0);
	assert_int_equal(bufv_copy_in(&v, LEN + 9, in, 1), 0);
}

static void test_an_empty_piece_needs_no_memory(void **state)
{
	struct iovec iov = { NULL, 0 };
	struct bufv v = bufv_of(&iov, 1);
	uint8_t byte = 7;

	(void)state;
	assert_int_equal(bufv_copy_in(&v, 0, &byte, 1), 0);
	assert_int_equal(bufv_copy_out(&v, 0, &byte, 1), 0);
	assert_int_equal(byte, 7);
}

static void test_crc_equals_flat_crc(void **state)
{
	(void)state;
	for (size_t a = 0; a <= LEN; a++) {
		struct iovec iov[3];
		struct bufv v = cut(iov, a, a);

		assert_int_equal(bufv_crc32c(&v, 1, LEN - 2, CRC32C_SEED),
				 crc32c_update(CRC32C_SEED, memory + 1,
					       LEN - 2));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slice_every_cut_every_range),
		cmocka_unit_test(test_slice_stops_at_max_pieces),
		cmocka_unit_test(test_copies_respect_the_end),
		cmocka_unit_test(test_an_empty_piece_needs_no_memory),
		cmocka_unit_test(test_crc_equals_flat_crc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
