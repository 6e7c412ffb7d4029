/* SPDX-License-Identifier: BSD-2-Clause */
/* mr.c: the table of memory regions. STag = (index + 1) << 8
 * key. */
#include "rcap/iwarp/mr_table.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "base/err.h"

#define MAX_REGIONS 0xffffffu

struct mr_table *mr_table_new(uint32_t max, uint32_t seed)
{
	struct mr_table *t;

	if (max == 0 || max > MAX_REGIONS)
		return NULL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->max = t->free = max;
	t->random = seed | 1;
	return t;
}

void mr_table_free(struct mr_table *t)
{
	if (t)
		free(t->regions);
	free(t);
}

/* STag index 0 is never used: STag 0 is always invalid. */
static uint32_t stag_of(uint32_t index, uint8_t key)
{
	return (index + 1) << 8 | key;
}

/* xorshift: a key differs from the previous key of its entry and is hard to
 * predict; a wrong guess ends the peer's connection (RFC 5042 §6.2). */
static uint8_t next_key(struct mr_table *t, uint8_t last)
{
	do {
		t->random ^= t->random << 13;
		t->random ^= t->random >> 17;
		t->random ^= t->random << 5;
	} while ((uint8_t)(t->random >> 11) == last);
	return (uint8_t)(t->random >> 11);
}

int mr_register(struct mr_table *t, const void *stream,
		const struct bufv *memory, uint64_t base, unsigned rights,
		uint32_t *stag)
{
	uint32_t index = t->free < t->max ? t->free : t->fresh;
	struct mr_region *r;

	if (memory->len == 0 || base > UINT64_MAX - memory->len)
		return ERR_RANGE;
	if (index == t->max)
		return ERR_BUSY;
	if (!t->regions)
		t->regions = calloc(t->max, sizeof(*t->regions));
	if (!t->regions)
		return ERR_NOMEM;
	r = &t->regions[index];
	if (index == t->fresh)
		t->fresh++;
	else
		t->free = r->next_free;
	r->memory = *memory;
	r->stream = stream;
	r->base = base;
	r->rights = rights;
	r->key = next_key(t, r->key);
	*stag = stag_of(index, r->key);
	return 0;
}

int mr_find(const struct mr_table *t, const void *stream, uint32_t stag,
	    uint64_t to, uint64_t len, unsigned right,
	    const struct bufv **memory, size_t *off)
{
	const struct mr_region *r;

	*memory = NULL;
	*off = 0;
	if (len == 0)
		return 0;
	r = mr_region_of(t, stag);
	if (!r)
		return -TERM_RDMAP_INVALID_STAG;
	if (r->stream != stream)
		return -TERM_RDMAP_STREAM;
	if (!(r->rights & right))
		return -TERM_RDMAP_ACCESS;
	if (to > UINT64_MAX - len)
		return -TERM_RDMAP_TO_WRAP;
	if (to < r->base || !range_ok(to - r->base, len, r->memory.len))
		return -TERM_RDMAP_BOUNDS;
	*memory = &r->memory;
	*off = (size_t)(to - r->base);
	return 0;
}

const struct bufv *mr_memory(const struct mr_table *t, const void *stream,
			     uint32_t stag)
{
	const struct mr_region *r = mr_region_of(t, stag);

	return r && r->stream == stream ? &r->memory : NULL;
}

bool mr_may_change(const struct mr_table *t, uint32_t stag)
{
	const struct mr_region *r = mr_region_of(t, stag);

	return r && (r->rights & (MR_REMOTE_WRITE | MR_REMOTE_ATOMIC));
}

bool mr_is_undefined(const struct mr_table *t, const void *stream,
		     uint32_t stag)
{
	const struct mr_region *r = mr_region_of(t, stag);

	return r && r->stream == stream && (r->rights & MR_UNDEFINED);
}

static void release_region(struct mr_table *t, struct mr_region *r)
{
	uint32_t index = (uint32_t)(r - t->regions);

	r->stream = NULL;
	r->memory = (struct bufv){ 0 };
	r->next_free = t->free;
	t->free = index;
}

int mr_invalidate(struct mr_table *t, uint32_t stag)
{
	struct mr_region *r = mr_region_of(t, stag);

	if (!r)
		return ERR_NOT_FOUND;
	release_region(t, r);
	return 0;
}

int mr_invalidate_remote(struct mr_table *t, const void *stream, uint32_t stag)
{
	struct mr_region *r = mr_region_of(t, stag);

	/* a peer must not invalidate the sink of a Read, which has no rights */
	if (!r || r->stream != stream || !r->rights)
		return -TERM_RDMAP_CANT_INVALIDATE;
	release_region(t, r);
	return 0;
}

unsigned mr_invalidate_stream(struct mr_table *t, const void *stream)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < t->fresh; i++) {
		if (t->regions[i].stream != stream)
			continue;
		release_region(t, &t->regions[i]);
		n++;
	}
	return n;
}

uint16_t mr_term_tagged(int reason)
{
	switch (-reason) {
	case TERM_RDMAP_BOUNDS:
	case TERM_RDMAP_ACCESS: /* DDP has no code for it (RFC 5041 §7.2) */
		return TERM_DDP_TAGGED_BOUNDS;
	case TERM_RDMAP_STREAM:
		return TERM_DDP_TAGGED_STREAM;
	case TERM_RDMAP_TO_WRAP:
		return TERM_DDP_TAGGED_TO_WRAP;
	default:
		return TERM_DDP_TAGGED_INVALID_STAG;
	}
}
