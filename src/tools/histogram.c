/* SPDX-License-Identifier: BSD-2-Clause */
/* histogram.c: octaves of 128 equal steps, as an HdrHistogram of two digits has. */
#include "tools/iser.h"

#define SUB (1u << HIST_SUB_BITS)

static unsigned bucket_of(uint64_t v)
{
	unsigned octave;

	if (v < SUB)
		return (unsigned)v;
	octave = 63u - (unsigned)__builtin_clzll(v) - HIST_SUB_BITS;
	return (octave << HIST_SUB_BITS) + (unsigned)(v >> octave);
}

/* The value in the middle of a bucket. */
static uint64_t value_of(unsigned b)
{
	unsigned octave = b >> HIST_SUB_BITS;

	if (octave < 2)
		return b;
	octave--;
	return ((uint64_t)(b & (SUB - 1)) + SUB) * (1ull << octave) +
	       (1ull << octave) / 2;
}

void hist_add(struct histogram *h, uint64_t v)
{
	unsigned b = bucket_of(v);

	if (h->count == 0 || v < h->min)
		h->min = v;
	if (v > h->max)
		h->max = v;
	h->count++;
	h->sum += (double)v;
	h->bucket[b < HIST_BUCKETS ? b : HIST_BUCKETS - 1]++;
}

uint64_t hist_percentile(const struct histogram *h, double p)
{
	uint64_t want = (uint64_t)(p * (double)h->count + 0.5), seen = 0;

	if (want < 1)
		want = 1;
	for (unsigned b = 0; b < HIST_BUCKETS; b++) {
		seen += h->bucket[b];
		if (h->bucket[b] && seen >= want) {
			uint64_t v = value_of(b);

			return v > h->max ? h->max : v < h->min ? h->min : v;
		}
	}
	return 0;
}
