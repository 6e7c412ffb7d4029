/* SPDX-License-Identifier: BSD-2-Clause */
/* hold.c: a filter in which requests wait until they are released, so that a
 * test can have a command in progress. Single worker. */
#include <assert.h>
#include <stdlib.h>

#include "backstore/backstore.h"
#include "backstore/filter.h"
#include "base/bytes.h"
#include "base/list.h"

struct bs_hold {
	struct bs bs;
	struct bs *next;
	struct list waiting; /* bs_wait_push */
	unsigned nwaiting;
};

static struct bs_hold *hold_of(const struct bs *b)
{
	return container_of(b, struct bs_hold, bs);
}

static void hold_submit(struct bs *b, struct bs_req *req)
{
	struct bs_hold *h = hold_of(b);

	bs_wait_push(&h->waiting, req);
	h->nwaiting++;
}

static void hold_close(struct bs *b)
{
	struct bs_hold *h = hold_of(b);

	assert(list_empty(&h->waiting));
	bs_close(h->next);
	free(h);
}

static const struct bs_ops hold_ops = {
	.submit = hold_submit,
	.lend = bs_lend_unsupported,
	.close = hold_close,
};

struct bs *bs_hold_new(struct bs *next)
{
	struct bs_hold *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	bs_filter_init(&h->bs, &hold_ops, next);
	h->next = next;
	list_init(&h->waiting);
	return &h->bs;
}

unsigned bs_hold_waiting(const struct bs *hold)
{
	assert(hold->ops == &hold_ops);
	return hold_of(hold)->nwaiting;
}

void bs_hold_release(struct bs *hold, unsigned n)
{
	struct bs_hold *h = hold_of(hold);
	struct bs_req *req;

	assert(hold->ops == &hold_ops);
	while (n-- > 0 && (req = bs_wait_pop(&h->waiting))) {
		h->nwaiting--;
		bs_forward(h->next, req);
	}
}
