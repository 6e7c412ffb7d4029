/* SPDX-License-Identifier: BSD-2-Clause */
/* place.c: which blocks the next operation of iser bench reads or writes. */
#include <stdlib.h>

#include "tools/bench/bench.h"

#define BUSY  0x80000000u /* in bench_places.written */
#define TRIES 64	  /* places for one operation */

/* splitmix64 */
uint64_t bench_random(struct bench *b)
{
	uint64_t z = (b->places.random += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static int check_size(const struct bench *b, uint64_t bytes)
{
	char cap[32];

	if (bytes == 0 || bytes % b->cap.block_size) {
		say("bench: --bs: must be a multiple of the block size of the "
		    "unit, %u bytes",
		    b->cap.block_size);
		return EXIT_INVALID;
	}
	if (bytes > b->cap.bytes) {
		say("bench: --bs: the unit has only %s; give a smaller size",
		    human(b->cap.bytes, cap));
		return EXIT_INVALID;
	}
	return 0;
}

int bench_places_init(struct bench *b)
{
	struct bench_places *p = &b->places;

	for (unsigned i = 0; i < b->o.nsizes; i++) {
		uint64_t bytes = b->o.size[i].bytes;
		int code = check_size(b, bytes);

		if (code)
			return code;
		if (bytes / b->cap.block_size > p->max_blocks)
			p->max_blocks = (uint32_t)(bytes / b->cap.block_size);
	}
	p->blocks = b->cap.bytes / b->cap.block_size;
	p->random = b->o.seed;
	if (!b->o.verify)
		return 0;
	if (b->cap.block_size > BENCH_VERIFY_BLOCK || b->cap.block_size % 8) {
		say("bench: --verify: the unit has blocks of %u bytes; at most "
		    "%d are supported",
		    b->cap.block_size, BENCH_VERIFY_BLOCK);
		return EXIT_INVALID;
	}
	/* only the pages of blocks that are used take memory */
	p->written = calloc(p->blocks, sizeof(*p->written));
	return p->written ? 0 : say_no_memory();
}

static uint32_t choose_blocks(struct bench *b)
{
	unsigned i = 0, left;

	if (b->o.nsizes > 1) {
		left = (unsigned)(bench_random(b) % 100);
		while (i + 1 < b->o.nsizes && left >= b->o.size[i].percent)
			left -= b->o.size[i++].percent;
	}
	return (uint32_t)(b->o.size[i].bytes / b->cap.block_size);
}

/* Random places are multiples of the size of the operation. */
static uint64_t choose_lba(struct bench *b, uint32_t blocks)
{
	struct bench_places *p = &b->places;
	uint64_t lba;

	if (b->o.random)
		return bench_random(b) % (p->blocks / blocks) * blocks;
	if (p->next + blocks > p->blocks)
		p->next = 0;
	lba = p->next;
	p->next += blocks;
	return lba;
}

static bool is_busy(const uint32_t *written, uint32_t blocks)
{
	for (uint32_t i = 0; i < blocks; i++)
		if (written[i] & BUSY)
			return true;
	return false;
}

/* The count of a write is that of its block after the write. */
static void mark(struct bench_job *j)
{
	uint32_t *w = j->b->places.written + j->lba;

	for (uint32_t i = 0; i < j->blocks; i++)
		w[i] = ((w[i] + j->write) & ~BUSY) | BUSY;
}

bool bench_place(struct bench_job *j)
{
	struct bench *b = j->b;
	const struct bench_options *o = &b->o;

	j->write =
		o->write_percent == 100 ||
		(o->write_percent && bench_random(b) % 100 < o->write_percent);
	j->blocks = choose_blocks(b);
	for (int i = 0; i < TRIES; i++) {
		j->lba = choose_lba(b, j->blocks);
		if (!b->places.written)
			return true;
		if (!is_busy(b->places.written + j->lba, j->blocks)) {
			mark(j);
			return true;
		}
	}
	return false;
}

void bench_place_done(struct bench_job *j)
{
	uint32_t *w = j->b->places.written;

	for (uint32_t i = 0; w && i < j->blocks; i++)
		w[j->lba + i] &= ~BUSY;
}
