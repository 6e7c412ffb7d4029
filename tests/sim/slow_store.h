/* SPDX-License-Identifier: BSD-2-Clause */
/* slow_store.h: a backstore in memory that completes requests in the order that
 * the test selects: slow_one executes one of the pending requests. */
#ifndef TESTS_SIM_SLOW_STORE_H
#define TESTS_SIM_SLOW_STORE_H

#include <stdlib.h>

#include "backstore/backstore.h"
#include "base/err.h"
#include "cmocka_all.h"

#define SLOW_BLOCKS 24u
#define SLOW_BLOCK  512u

static struct slow {
	struct bs bs;
	struct bs *next;
	struct bs_req *waiting[64];
	unsigned n;
} * slow;

static uint8_t *medium;

static inline void slow_submit(struct bs *b, struct bs_req *req)
{
	struct slow *s = container_of(b, struct slow, bs);

	assert_true(s->n < ARRAY_LEN(s->waiting));
	s->waiting[s->n++] = req;
}

static inline void slow_close(struct bs *b)
{
	struct slow *s = container_of(b, struct slow, bs);

	assert_int_equal(s->n, 0);
	bs_close(s->next);
	free(s);
	slow = NULL;
}

static inline void slow_one(unsigned which)
{
	struct bs_req *req = slow->waiting[which];

	slow->waiting[which] = slow->waiting[--slow->n];
	bs_forward(slow->next, req);
}

static inline struct bs *slow_new(void)
{
	static const struct bs_ops ops = {
		.submit = slow_submit,
		.lend = bs_lend_unsupported,
		.close = slow_close,
	};
	struct bs *next;

	medium = calloc(SLOW_BLOCKS, SLOW_BLOCK);
	slow = calloc(1, sizeof(*slow));
	assert_true(medium && slow);
	next = bs_ram_new("ram:model", medium, SLOW_BLOCKS * SLOW_BLOCK,
			  SLOW_BLOCK, free, medium);
	assert_non_null(next);
	slow->bs = *next;
	slow->bs.ops = &ops;
	slow->next = next;
	return &slow->bs;
}

#endif
