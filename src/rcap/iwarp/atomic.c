/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * atomic.c: RFC 7306 §5.1: operations on 8 octets of a region. They use the
 * processor's atomic operations, because the same memory may be a region of
 * another connection, on another worker (§5.3).
 */
#include "rcap/iwarp/internal.h"

uint64_t *iwarp_atomic_word(const struct bufv *memory, size_t off)
{
	struct iovec v;
	unsigned n;

	if (bufv_slice(memory, off, sizeof(uint64_t), &v, 1, &n) !=
		    sizeof(uint64_t) ||
	    (uintptr_t)v.iov_base % sizeof(uint64_t))
		return NULL;
	return v.iov_base;
}

/* FETCH_ADD adds each field separately: mask has the top bit of each field set,
 * and the carry of each field is lost (§5.1.1). */
static uint64_t fetch_add(uint64_t old, const struct rdmap_header *h)
{
	uint64_t top = h->mask, low = ~top;

	return ((old & low) + (h->value & low)) ^ ((old ^ h->value) & top);
}

static uint64_t cmp_swap(uint64_t old, const struct rdmap_header *h)
{
	if ((h->compare ^ old) & h->compare_mask)
		return old;
	return (old & ~h->mask) | (h->value & h->mask);
}

uint64_t iwarp_atomic_do(uint64_t *word, const struct rdmap_header *h)
{
	uint64_t old = __atomic_load_n(word, __ATOMIC_SEQ_CST), to;

	do
		to = h->atomic == RDMAP_FETCH_ADD ? fetch_add(old, h)
						  : cmp_swap(old, h);
	while (!__atomic_compare_exchange_n(
		word, &old, to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
	return old;
}
