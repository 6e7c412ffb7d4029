/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verify.c: the pattern of iser bench --verify. Each block has a mark, its byte offset,
 * the number of the write and the seed, and then numbers that depend on these three.
 * So a read shows whether the data are those of another place, those of an older
 * write, or damaged.
 */
#include <inttypes.h>
#include <string.h>

#include "tools/bench/bench.h"

#define MARK   0x6973657262656e63ull /* "iserbenc" */
#define HEADER 32		     /* mark, offset, number, seed */
#define NUMBER 0x7fffffffu	     /* in bench_places.written */
#define SAID   3		     /* mismatches that are printed */

void bench_pattern(uint8_t *out, size_t n, uint64_t seed, uint64_t offset,
		   uint64_t number)
{
	uint64_t z = seed ^ offset * 0x9e3779b97f4a7c15ull ^
		     number * 0xbf58476d1ce4e5b9ull;

	put_be64(out, MARK);
	put_be64(out + 8, offset);
	put_be64(out + 16, number);
	put_be64(out + 24, seed);
	for (size_t i = HEADER; i < n; i += 8) {
		z = z * 6364136223846793005ull + 1442695040888963407ull;
		put_be64(out + i, z ^ z >> 29);
	}
}

static uint64_t offset_of(const struct bench_job *j, uint32_t i)
{
	return (j->lba + i) * j->b->cap.block_size;
}

void bench_fill(struct bench_job *j)
{
	const struct bench *b = j->b;
	uint32_t size = b->cap.block_size;

	for (uint32_t i = 0; i < j->blocks; i++)
		bench_pattern(j->memory + (size_t)i * size, size, b->o.seed,
			      offset_of(j, i),
			      b->places.written[j->lba + i] & NUMBER);
}

static size_t first_difference(const uint8_t *a, const uint8_t *b, size_t n)
{
	size_t i = 0;

	while (i < n && a[i] == b[i])
		i++;
	return i;
}

/* Prints how block `i` of the read differs from what was expected; number 0: any
 * write. */
static void say_difference(const struct bench_job *j, uint32_t i,
			   const uint8_t *got, const uint8_t *expected,
			   uint64_t number)
{
	const struct bench *b = j->b;
	uint64_t offset = offset_of(j, i), has = get_be64(got + 16);
	size_t at = first_difference(got, expected, b->cap.block_size);
	char why[128];

	if (get_be64(got) != MARK)
		snprintf(why, sizeof(why),
			 "the block has no pattern of iser bench");
	else if (get_be64(got + 24) != b->o.seed)
		snprintf(why, sizeof(why),
			 "the block was written with --seed %" PRIu64,
			 get_be64(got + 24));
	else if (get_be64(got + 8) != offset)
		snprintf(why, sizeof(why),
			 "the block has the data of byte offset %" PRIu64,
			 get_be64(got + 8));
	else if (number && has != number)
		snprintf(why, sizeof(why),
			 "the block has the data of write %" PRIu64
			 ", not of write %" PRIu64,
			 has, number);
	else
		snprintf(why, sizeof(why), "the data are damaged");
	say("%s: verification failed at byte offset %" PRIu64 ": %s",
	    b->o.url_text, offset + at, why);
}

/* Returns whether a block has the pattern of write `number`, or of any write if
 * number is 0. */
static bool check_block(const struct bench_job *j, uint32_t i, uint64_t number)
{
	const struct bench *b = j->b;
	uint32_t size = b->cap.block_size;
	const uint8_t *got = j->memory + (size_t)i * size;
	uint8_t expected[BENCH_VERIFY_BLOCK];

	bench_pattern(expected, size, b->o.seed, offset_of(j, i),
		      number ? number : get_be64(got + 16));
	if (!memcmp(got, expected, size))
		return true;
	if (b->verify.mismatches < SAID)
		say_difference(j, i, got, expected, number);
	return false;
}

bool bench_check(struct bench_job *j)
{
	struct bench *b = j->b;
	uint32_t size = b->cap.block_size;

	for (uint32_t i = 0; i < j->blocks; i++) {
		uint32_t n = b->places.written[j->lba + i] & NUMBER;

		/* a run that writes knows nothing about older data */
		if (!n && b->o.write_percent) {
			b->verify.unknown += size;
			continue;
		}
		if (!check_block(j, i, n)) {
			b->verify.mismatches++;
			return false;
		}
		b->verify.checked += size;
	}
	return true;
}
