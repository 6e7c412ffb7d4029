/* SPDX-License-Identifier: BSD-2-Clause */
/* bench_test.c: the pattern of iser bench --verify, and the places of operations. */
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"
#include "tools/bench/bench.h"

#define BLOCK 512
#define UNIT  64 /* blocks */

static struct bench bench;
static uint8_t medium[UNIT * BLOCK];

static void set_up(unsigned write_percent, bool verify)
{
	bench = (struct bench){ .o = { .url_text = "unit",
				       .random = true,
				       .verify = verify,
				       .write_percent = write_percent,
				       .nsizes = 2,
				       .seed = 7 } };
	bench.o.size[0].bytes = BLOCK;
	bench.o.size[0].percent = 75;
	bench.o.size[1].bytes = 4 * BLOCK;
	bench.o.size[1].percent = 25;
	bench.cap.bytes = UNIT * BLOCK;
	bench.cap.block_size = BLOCK;
	assert_int_equal(bench_places_init(&bench), 0);
	assert_int_equal(bench.places.max_blocks, 4);
}

/* Executes the operation of j on the medium. */
static bool execute(struct bench_job *j)
{
	uint8_t *at = medium + j->lba * BLOCK;
	bool good = true;

	if (j->write) {
		bench_fill(j);
		memcpy(at, j->memory, (size_t)j->blocks * BLOCK);
	} else {
		memcpy(j->memory, at, (size_t)j->blocks * BLOCK);
		good = bench_check(j);
	}
	bench_place_done(j);
	return good;
}

static void test_mixed_load_verifies(void **state)
{
	uint8_t memory[4 * BLOCK];
	struct bench_job j = { .b = &bench, .memory = memory };
	unsigned large = 0;

	(void)state;
	set_up(50, true);
	for (int i = 0; i < 4000; i++) {
		assert_true(bench_place(&j));
		large += j.blocks == 4;
		assert_true(execute(&j));
	}
	assert_in_range(large, 800, 1200);
	assert_true(bench.verify.checked > 0);
	assert_int_equal(bench.verify.mismatches, 0);
	free(bench.places.written);
}

/* A block that holds the data of an older write, of another place, with one damaged
 * byte, and without a pattern. */
static void test_wrong_data_are_found(void **state)
{
	uint8_t memory[4 * BLOCK], *block = medium + 5 * BLOCK;
	struct bench_job j = {
		.b = &bench, .memory = memory, .lba = 5, .blocks = 1
	};

	(void)state;
	set_up(50, true);
	bench.places.written[5] = 2;
	bench_pattern(block, BLOCK, 7, 5 * BLOCK, 2);
	assert_true(execute(&j));
	bench_pattern(block, BLOCK, 7, 5 * BLOCK, 1);
	assert_false(execute(&j));
	bench_pattern(block, BLOCK, 7, 6 * BLOCK, 2);
	assert_false(execute(&j));
	bench_pattern(block, BLOCK, 7, 5 * BLOCK, 2);
	block[BLOCK - 1] ^= 1;
	assert_false(execute(&j));
	memset(block, 0, BLOCK);
	assert_false(execute(&j));
	assert_int_equal(bench.verify.mismatches, 4);
	free(bench.places.written);
}

/* A run that only reads accepts the pattern of any write, and nothing else. */
static void test_reads_expect_a_pattern(void **state)
{
	uint8_t memory[4 * BLOCK];
	struct bench_job j = { .b = &bench, .memory = memory, .blocks = 1 };

	(void)state;
	set_up(0, true);
	bench_pattern(medium, BLOCK, 7, 0, 99);
	assert_true(execute(&j));
	bench_pattern(medium, BLOCK, 8, 0, 99);
	assert_false(execute(&j));
	free(bench.places.written);
}

/* Operations in progress do not overlap. */
static void test_places_do_not_overlap(void **state)
{
	struct bench_job j[UNIT];
	uint8_t used[UNIT] = { 0 };
	unsigned n = 0;

	(void)state;
	set_up(50, true);
	for (; n < UNIT; n++) {
		j[n] = (struct bench_job){ .b = &bench };
		if (!bench_place(&j[n]))
			break;
		for (uint32_t i = 0; i < j[n].blocks; i++)
			assert_int_equal(used[j[n].lba + i]++, 0);
	}
	assert_true(n > UNIT / 4);
	while (n-- > 0)
		bench_place_done(&j[n]);
	j[0] = (struct bench_job){ .b = &bench };
	assert_true(bench_place(&j[0]));
	free(bench.places.written);
}

static void test_bad_sizes_are_refused(void **state)
{
	(void)state;
	set_up(0, false);
	assert_null(bench.places.written);
	bench.o.size[0].bytes = BLOCK + 1;
	assert_int_equal(bench_places_init(&bench), EXIT_INVALID);
	bench.o.size[0].bytes = (UNIT + 1) * BLOCK;
	assert_int_equal(bench_places_init(&bench), EXIT_INVALID);
}

/* tests/interop/test_bench.py decodes whole logs. */
static void test_histogram_is_encoded(void **state)
{
	struct histogram *h = calloc(1, sizeof(*h));
	char *text;

	(void)state;
	hist_add(h, 1000);
	hist_add(h, UINT64_MAX);
	text = bench_hdr_encode(h);
	assert_non_null(text);
	assert_int_equal(strncmp(text, "HISTFA", 6), 0);
	free(text);
	free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mixed_load_verifies),
		cmocka_unit_test(test_wrong_data_are_found),
		cmocka_unit_test(test_reads_expect_a_pattern),
		cmocka_unit_test(test_places_do_not_overlap),
		cmocka_unit_test(test_bad_sizes_are_refused),
		cmocka_unit_test(test_histogram_is_encoded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
