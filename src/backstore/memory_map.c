/* SPDX-License-Identifier: BSD-2-Clause */
/* memory_map.c: one bit per page, 64 to a word. */
#include "backstore/memory_map.h"

#include <stdlib.h>

#include "base/bytes.h"

struct memory_map {
	uint64_t nwords;
	uint64_t words[];
};

struct memory_map *memory_map_new(uint64_t size)
{
	uint64_t pages = (size + MEMORY_PAGE - 1) >> MEMORY_PAGE_SHIFT;
	uint64_t nwords = (pages + 63) / 64;
	struct memory_map *m = calloc(1, sizeof(*m) + nwords * 8);

	if (m)
		m->nwords = nwords;
	return m;
}

void memory_map_free(struct memory_map *m)
{
	free(m);
}

/* The bits of word w for pages first .. last. */
static uint64_t bits_of(uint64_t w, uint64_t first, uint64_t last)
{
	uint64_t mask = UINT64_MAX;

	if (w == first / 64)
		mask &= UINT64_MAX << first % 64;
	if (w == last / 64)
		mask &= UINT64_MAX >> (63 - last % 64);
	return mask;
}

void memory_map_set(struct memory_map *m, uint64_t off, uint64_t len)
{
	uint64_t first = off >> MEMORY_PAGE_SHIFT;
	uint64_t last = (off + len - 1) >> MEMORY_PAGE_SHIFT;

	for (uint64_t w = first / 64; w <= last / 64; w++) {
		uint64_t want = bits_of(w, first, last);
		uint64_t has = __atomic_load_n(&m->words[w], __ATOMIC_RELAXED);

		/* usually they are set: no write, so that the cache line stays
		 * shared */
		if ((has & want) != want)
			__atomic_fetch_or(&m->words[w], want, __ATOMIC_RELEASE);
	}
}

void memory_map_clear(struct memory_map *m, uint64_t off, uint64_t len)
{
	uint64_t first = off >> MEMORY_PAGE_SHIFT;
	uint64_t last = (off + len - 1) >> MEMORY_PAGE_SHIFT;

	for (uint64_t w = first / 64; w <= last / 64; w++)
		__atomic_fetch_and(&m->words[w], ~bits_of(w, first, last),
				   __ATOMIC_ACQ_REL);
}

enum memory_state memory_map_state(const struct memory_map *m, uint64_t off,
				   uint64_t len)
{
	uint64_t first = off >> MEMORY_PAGE_SHIFT;
	uint64_t last = (off + len - 1) >> MEMORY_PAGE_SHIFT;
	uint64_t set = 0, clear = 0;

	for (uint64_t w = first / 64; w <= last / 64; w++) {
		uint64_t mask = bits_of(w, first, last);
		uint64_t word = __atomic_load_n(&m->words[w], __ATOMIC_ACQUIRE);

		set |= word & mask;
		clear |= ~word & mask;
	}
	return !clear ? MEMORY_WRITTEN : !set ? MEMORY_UNWRITTEN : MEMORY_MIXED;
}

uint64_t memory_map_run(const struct memory_map *m, uint64_t off, uint64_t len,
			bool *written)
{
	uint64_t page = off >> MEMORY_PAGE_SHIFT, w = page / 64;
	uint64_t end = off + len;
	uint64_t word = __atomic_load_n(&m->words[w], __ATOMIC_ACQUIRE);

	*written = word >> page % 64 & 1;
	/* the bits that differ from the first one, from it on */
	word = (*written ? ~word : word) & UINT64_MAX << page % 64;
	while (!word) {
		if (++w >= m->nwords || w * 64 << MEMORY_PAGE_SHIFT >= end)
			return len;
		word = __atomic_load_n(&m->words[w], __ATOMIC_ACQUIRE);
		word = *written ? ~word : word;
	}
	page = w * 64 + (unsigned)__builtin_ctzll(word);
	return MIN(page << MEMORY_PAGE_SHIFT, end) - off;
}
