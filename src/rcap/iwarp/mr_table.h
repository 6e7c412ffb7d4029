/* SPDX-License-Identifier: BSD-2-Clause */
/* mr_table.h: the table of memory regions, for the look-up of each small RDMA
 * Write inline. STag = (index + 1) << 8 | key. */
#ifndef RCAP_IWARP_MR_TABLE_H
#define RCAP_IWARP_MR_TABLE_H

#include "base/bytes.h"
#include "rcap/iwarp/mr.h"

struct mr_region {
	struct bufv memory;
	const void *stream; /* NULL: the entry is free */
	uint64_t base;
	unsigned rights;
	uint8_t key;
	uint32_t next_free;
};

struct mr_table {
	uint32_t max;
	uint32_t fresh; /* entries from here on were never used */
	uint32_t free;	/* list of used and freed entries; max: empty */
	uint32_t random;
	struct mr_region *regions; /* NULL: none was registered yet */
};

/* mr_region_of: the region of this STag, whose key is right; NULL: none. */
static inline struct mr_region *mr_region_of(const struct mr_table *t,
					     uint32_t stag)
{
	uint32_t index = (stag >> 8) - 1;
	const struct mr_region *r;

	if (stag >> 8 == 0 || index >= t->fresh)
		return NULL;
	r = &t->regions[index];
	if (!r->stream || r->key != (uint8_t)stag)
		return NULL;
	return (struct mr_region *)(uintptr_t)r;
}

/* mr_may_access: the checks of mr_find, for len > 0: whether all of them
 * succeed. The place of `to` in r->memory is to - r->base. */
static inline bool mr_may_access(const struct mr_region *r, const void *stream,
				 uint64_t to, uint64_t len, unsigned right)
{
	return r->stream == stream && (r->rights & right) && to >= r->base &&
	       range_ok(to - r->base, len, r->memory.len);
}

#endif
