/* SPDX-License-Identifier: BSD-2-Clause */
/* wq.c: work requests from post to completion, in order (RFC 5040 §5.5). */
#include <stdlib.h>

#include "rcap/iwarp/internal.h"

#define MARK_PENDING UINT64_MAX /* a Read without response */

int iwarp_wq_new(struct iwarp *c)
{
	list_init(&c->sq);
	list_init(&c->flight);
	list_init(&c->recvs);
	/* one more: an RTR Read needs an entry even if ORD is 0 */
	c->reads = calloc(c->cfg.wish.ord + 1u, sizeof(c->reads[0]));
	c->answers = calloc(c->cfg.wish.ird + 1u, sizeof(c->answers[0]));
	return c->reads && c->answers ? 0 : ERR_NOMEM;
}

void iwarp_wq_free(struct iwarp *c)
{
	free(c->reads);
	free(c->answers);
}

void iwarp_post(struct rcap_qp *qp, struct rcap_wr *const *wr, unsigned n)
{
	struct iwarp *c = container_of(qp, struct iwarp, qp);

	for (unsigned i = 0; i < n; i++) {
		wr[i]->moved = 0;
		list_push_back(&c->sq, &wr[i]->link);
	}
	iwarp_kick(c);
}

void iwarp_post_recv(struct rcap_qp *qp, struct rcap_recv *r)
{
	struct iwarp *c = container_of(qp, struct iwarp, qp);

	r->len = 0;
	r->lent = NULL;
	r->solicited = r->invalidated = r->is_immediate = false;
	list_push_back(&c->recvs, &r->link);
}

/* ---- the send queue ---- */

static struct rcap_wr *first_of(const struct list *l)
{
	return list_empty(l) ? NULL : list_entry(l->next, struct rcap_wr, link);
}

/* Whether one more request with a response may be staged. A Ready To Receive
 * that is a Read counts against ORD, too. */
static bool has_room(const struct iwarp *c)
{
	return c->reads_n + c->tx.rtr_read_out < c->qp.ord;
}

bool iwarp_wq_has_next(const struct iwarp *c)
{
	const struct rcap_wr *wr = first_of(&c->sq);

	return wr && (!rcap_wr_has_response(wr) || has_room(c));
}

/* [RFC 7145: 7.3.6 #3 #9-11] */
static int register_sink(struct iwarp *c, struct rcap_wr *wr)
{
	/* No rights: only the response to this Read may write it. */
	if (wr->data.len == 0) {
		wr->local = 0;
		return 0;
	}
	return mr_register(c->mrs, c, &wr->data, 0, 0, &wr->local);
}

/* False: the Read has to wait, or the connection ends. */
static bool has_sink(struct iwarp *c, struct rcap_wr *wr)
{
	int err = wr->op == RCAP_READ ? register_sink(c, wr) : 0;

	/* if the table is full, it is retried when a region ends */
	if (err && err != ERR_BUSY)
		iwarp_die(c, err, "no memory for a Read");
	return !err;
}

struct rcap_wr *iwarp_wq_next(struct iwarp *c)
{
	struct rcap_wr *wr = first_of(&c->sq);

	if (!wr)
		return NULL;
	if (rcap_wr_has_response(wr)) {
		if (!has_room(c) || !has_sink(c, wr))
			return NULL;
		c->reads[(c->reads_first + c->reads_n++) %
			 (c->cfg.wish.ord + 1u)] = wr;
	}
	list_del(&wr->link);
	list_push_back(&c->flight, &wr->link);
	wr->mark = MARK_PENDING;
	return wr;
}

void iwarp_wq_staged(struct iwarp *c, struct rcap_wr *wr, uint64_t end)
{
	(void)c;
	if (!rcap_wr_has_response(wr))
		wr->mark = end;
}

struct rcap_wr *iwarp_wq_oldest_read(const struct iwarp *c)
{
	return c->reads_n ? c->reads[c->reads_first] : NULL;
}

size_t iwarp_wq_owed(const struct iwarp *c)
{
	size_t n = 0;

	for (unsigned i = 0; i < c->reads_n; i++) {
		const struct rcap_wr *wr =
			c->reads[(c->reads_first + i) % (c->cfg.wish.ord + 1u)];

		if (wr->op == RCAP_READ)
			n += wr->data.len - wr->moved;
	}
	return n;
}

void iwarp_wq_read_done(struct iwarp *c)
{
	struct rcap_wr *wr = iwarp_wq_oldest_read(c);

	c->reads_first = (c->reads_first + 1) % (c->cfg.wish.ord + 1u);
	c->reads_n--;
	if (wr->op == RCAP_READ && wr->local)
		mr_invalidate(c->mrs, wr->local);
	wr->mark = 0;
	iwarp_wq_complete(c);
	if (!list_empty(&c->sq))
		iwarp_kick(c);
}

void iwarp_wq_complete(struct iwarp *c)
{
	struct rcap_wr *wr;

	while ((wr = first_of(&c->flight)) && wr->mark <= c->tx.taken) {
		list_del(&wr->link);
		c->qp.user->wr_done(c->qp.arg, wr, 0);
	}
}

/* ---- the end ---- */

void iwarp_wq_flush(struct iwarp *c)
{
	c->reads_n = 0;
	rcap_abort_requests(&c->qp, &c->flight);
	rcap_abort_requests(&c->qp, &c->sq);
	rcap_abort_receives(&c->qp, &c->recvs);
}
