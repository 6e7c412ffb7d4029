/* SPDX-License-Identifier: BSD-2-Clause */
/* latency.c: how long a store takes for requests, in buckets of powers of two. */
#include <string.h>

#include "backstore/backstore.h"
#include "base/bytes.h"
#include "base/counter.h"

static enum bs_timed kind_of(enum bs_op op)
{
	switch (op) {
	case BS_READ:
		return BS_TIMED_READ;
	case BS_WRITE:
		return BS_TIMED_WRITE;
	case BS_FLUSH:
		return BS_TIMED_FLUSH;
	case BS_UNMAP:
	case BS_ZERO:
		return BS_TIMED_DISCARD;
	default:
		return BS_TIMED;
	}
}

int64_t bs_latency_limit(unsigned b)
{
	return b < BS_LATENCY_BUCKETS - 1 ? (int64_t)1 << (BS_LATENCY_FIRST + b)
					  : INT64_MAX;
}

void bs_latency_add(struct bs *b, const struct bs_req *req, int64_t ns)
{
	enum bs_timed kind = kind_of(req->op);
	struct bs_latency *l;
	uint64_t v = ns > 0 ? (uint64_t)ns : 0;
	uint64_t rest = v >> BS_LATENCY_FIRST;
	unsigned bucket = rest ? 64 - (unsigned)__builtin_clzll(rest) : 0;

	if (kind == BS_TIMED || req->worker >= b->nlatencies)
		return;
	l = &b->latencies[req->worker].of[kind];
	counter_add(&l->count[MIN(bucket, BS_LATENCY_BUCKETS - 1u)], 1);
	counter_add(&l->sum, v);
}

void bs_latency_sum(const struct bs *b, enum bs_timed kind,
		    struct bs_latency *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (unsigned w = 0; w < b->nlatencies; w++) {
		const struct bs_latency *l = &b->latencies[w].of[kind];

		for (unsigned i = 0; i < BS_LATENCY_BUCKETS; i++)
			sum->count[i] += counter_read(&l->count[i]);
		sum->sum += counter_read(&l->sum);
	}
}
