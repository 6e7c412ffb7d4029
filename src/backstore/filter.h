/* SPDX-License-Identifier: BSD-2-Clause */
/* filter.h: the common part of the filters. Private to this room. */
#ifndef BACKSTORE_FILTER_H
#define BACKSTORE_FILTER_H

#include <assert.h>

#include "backstore/backstore.h"
#include "base/err.h"

/* bs_filter_init makes f a copy of next with its own operations. */
static inline void bs_filter_init(struct bs *f, const struct bs_ops *ops,
				  const struct bs *next)
{
	*f = *next;
	f->ops = ops;
	f->caps &= ~(BS_CAP_LEND | BS_CAP_AT_ONCE);
}

/* A request that waits in a filter; in bs_req.priv, which no backstore below the
 * filter uses yet. */
struct bs_waiter {
	struct list link;
	struct bs_req *req;
};

static_assert(sizeof(struct bs_waiter) <= BS_REQ_PRIVATE, "fits a request");

/* bs_wait_push puts req at the end of a queue of waiters. */
static inline void bs_wait_push(struct list *queue, struct bs_req *req)
{
	struct bs_waiter *w = (struct bs_waiter *)(void *)req->priv;

	w->req = req;
	list_push_back(queue, &w->link);
}

/* bs_wait_pop removes the oldest waiter; NULL: none waits. */
static inline struct bs_req *bs_wait_pop(struct list *queue)
{
	struct list *n = list_pop_front(queue);

	return n ? list_entry(n, struct bs_waiter, link)->req : NULL;
}

#endif
