/* SPDX-License-Identifier: BSD-2-Clause */
/* regions.h: the registered memory of a queue pair of the tests. */
#ifndef TESTS_SIM_REGIONS_H
#define TESTS_SIM_REGIONS_H

#include "base/bytes.h"
#include "base/err.h"
#include "rcap/rcap.h"

struct sim_region {
	bool valid;
	uint32_t stag;
	uint64_t base;
	unsigned rights;
	struct bufv memory;
};

static inline struct sim_region *region_find(struct sim_region *table,
					     unsigned n, uint32_t stag)
{
	for (unsigned i = 0; i < n; i++)
		if (table[i].valid && table[i].stag == stag)
			return &table[i];
	return NULL;
}

/* Returns NULL if the table is full. */
static inline struct sim_region *
region_add(struct sim_region *table, unsigned n, const struct sim_region *r)
{
	for (unsigned i = 0; i < n; i++)
		if (!table[i].valid) {
			table[i] = *r;
			table[i].valid = true;
			return &table[i];
		}
	return NULL;
}

/* Registers a region of the user's memory; returns 0 or ERR_BUSY. */
static inline int region_register(struct sim_region *table, unsigned n,
				  const struct sim_region *r,
				  struct rcap_mr *mr)
{
	if (!region_add(table, n, r))
		return ERR_BUSY;
	*mr = (struct rcap_mr){ .stag = r->stag,
				.base = r->base,
				.len = r->memory.len };
	return 0;
}

/* Returns the region that contains [to, to + len) and grants these rights. */
static inline struct sim_region *region_reach(struct sim_region *table,
					      unsigned n, uint32_t stag,
					      uint64_t to, size_t len,
					      unsigned rights)
{
	struct sim_region *r = region_find(table, n, stag);

	if (!r || (r->rights & rights) != rights || to < r->base ||
	    !range_ok(to - r->base, len, r->memory.len))
		return NULL;
	return r;
}

/* Executes an RDMA Write or Read that region_reach permitted. */
static inline void region_move(const struct sim_region *r,
			       const struct rcap_wr *wr)
{
	size_t at = wr->to - r->base;

	for (unsigned i = 0; i < wr->data.n; i++) {
		const struct iovec *piece = &wr->data.iov[i];

		if (wr->op == RCAP_WRITE)
			bufv_copy_in(&r->memory, at, piece->iov_base,
				     piece->iov_len);
		else
			bufv_copy_out(&r->memory, at, piece->iov_base,
				      piece->iov_len);
		at += piece->iov_len;
	}
}

#endif
