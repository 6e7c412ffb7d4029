/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memory.c: memory that a device may access. Very small payload goes inline
 * with the request if the device supports that; other small payload is copied
 * to slots that are registered once: both return the owner's memory at once.
 * Large payload is registered for its transfer, in place if it is one piece.
 * Measured in the laboratory on rxe and siw: a registration costs 100 to 200 us
 * (300 for 1 MiB), a copy 2 to 26 us for 4 KiB, 70 for 16 KiB, 260 for 64 KiB.
 * A cache of registrations would save one percent of the time of 1 MiB, and
 * would have to notice when memory is freed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rcap/verbs/internal.h"

int verbs_memory_new(struct verbs_conn *c)
{
	int access = IBV_ACCESS_LOCAL_WRITE;
	unsigned n = c->sq.max;

	/* RFC 5040 §5.2: the sink of a Read is a tagged buffer on iWARP */
	if (c->is_iwarp)
		access |= IBV_ACCESS_REMOTE_WRITE;
	if (posix_memalign((void **)&c->sq.slots, 4096, (size_t)n * SLOT_LEN))
		c->sq.slots = NULL;
	c->sq.transfers = calloc(n, sizeof(c->sq.transfers[0]));
	if (!c->sq.slots || !c->sq.transfers)
		return -ENOMEM;
	c->sq.slots_mr = ibv_reg_mr(c->id->pd, c->sq.slots,
				    (size_t)n * SLOT_LEN, access);
	if (!c->sq.slots_mr)
		return -errno;
	for (unsigned i = 0; i < n; i++) {
		c->sq.transfers[i].slot = c->sq.slots + (size_t)i * SLOT_LEN;
		list_push_back(&c->sq.free_transfers, &c->sq.transfers[i].link);
	}
	return 0;
}

/* ---- local memory of a work request ---- */

static bool register_large(struct verbs_conn *c, struct transfer *t)
{
	struct rcap_wr *wr = t->wr;
	bool reads = wr->op == RCAP_READ;
	int access = reads ? IBV_ACCESS_LOCAL_WRITE : 0;

	if (reads && c->is_iwarp)
		access |= IBV_ACCESS_REMOTE_WRITE;
	t->from = wr->data.n == 1 ? wr->data.iov[0].iov_base : NULL;
	if (!t->from) {
		t->bounce = malloc(wr->data.len);
		t->from = t->bounce;
		t->copy_back = reads;
	}
	if (t->bounce && !reads)
		bufv_copy_out(&wr->data, 0, t->bounce, wr->data.len);
	if (t->from)
		t->mr = ibv_reg_mr(c->id->pd, t->from, wr->data.len, access);
	return t->mr != NULL;
}

/* Copies small payload to send, to the request or to a slot. */
static uint32_t copy_small(struct verbs_conn *c, struct transfer *t,
			   const struct rcap_wr *wr, uint8_t *inl)
{
	/* siw supports no inline data with Send with Invalidate */
	bool along = wr->data.len <= c->sq.max_inline &&
		     !(c->is_iwarp && (wr->flags & RCAP_INVALIDATE));

	t->from = along ? inl : t->slot;
	bufv_copy_out(&wr->data, 0, t->from, wr->data.len);
	return along ? 0 : c->sq.slots_mr->lkey;
}

struct transfer *verbs_transfer(struct verbs_conn *c, struct rcap_wr *wr,
				struct ibv_sge *sge, uint8_t *inl)
{
	struct list *n = list_pop_front(&c->sq.free_transfers);
	struct transfer *t;

	if (!n)
		return NULL;
	t = list_entry(n, struct transfer, link);
	t->wr = wr;
	t->bounce = NULL;
	t->mr = NULL;
	t->is_read = wr->op == RCAP_READ;
	t->copy_back = false;
	t->from = t->slot;
	sge->lkey = c->sq.slots_mr->lkey;
	if (wr->data.len > SLOT_LEN) {
		if (!register_large(c, t)) {
			verbs_transfer_done(c, t, false);
			return NULL;
		}
		sge->lkey = t->mr->lkey;
	} else if (t->is_read) {
		t->copy_back = true;
	} else {
		sge->lkey = copy_small(c, t, wr, inl);
		t->wr = NULL;
	}
	sge->addr = (uintptr_t)t->from;
	sge->length = (uint32_t)wr->data.len;
	return t;
}

void verbs_transfer_done(struct verbs_conn *c, struct transfer *t, bool ok)
{
	if (ok && t->copy_back)
		bufv_copy_in(&t->wr->data, 0, t->from, t->wr->data.len);
	if (t->mr)
		ibv_dereg_mr(t->mr);
	free(t->bounce);
	t->mr = NULL;
	t->bounce = NULL;
	list_push_back(&c->sq.free_transfers, &t->link);
}

/* ---- receives: users post the same few buffers again and again ---- */

struct ibv_mr *verbs_recv_mr(struct verbs_conn *c, const struct rcap_recv *r)
{
	struct recv_mr *m;

	for (unsigned i = 0; i < c->rq.nmrs; i++)
		if (c->rq.mrs[i].buf == r->buf && c->rq.mrs[i].cap >= r->cap)
			return c->rq.mrs[i].mr;
	if (c->rq.nmrs == c->rq.max_mrs) {
		unsigned max = c->rq.max_mrs ? 2 * c->rq.max_mrs : 64;

		m = realloc(c->rq.mrs, max * sizeof(*m));
		if (!m)
			return NULL;
		c->rq.mrs = m;
		c->rq.max_mrs = max;
	}
	m = &c->rq.mrs[c->rq.nmrs];
	m->buf = r->buf;
	m->cap = r->cap;
	m->mr = ibv_reg_mr(c->id->pd, r->buf, r->cap, IBV_ACCESS_LOCAL_WRITE);
	if (m->mr)
		c->rq.nmrs++;
	return m->mr;
}

/* ---- regions for the peer ---- */

struct region {
	struct list link; /* verbs_conn.regions */
	struct ibv_mr *mr;
	uint8_t *bounce;    /* copy of memory that is more than one piece */
	struct bufv memory; /* copied back to when the region ends; borrowed */
	bool copy_back;
};

/* The device accesses the memory no more. is_there: the user's memory still exists. */
static void region_end(struct region *r, bool is_there)
{
	ibv_dereg_mr(r->mr);
	if (r->copy_back && is_there)
		bufv_copy_in(&r->memory, 0, r->bounce, r->memory.len);
	list_del(&r->link);
	free(r->bounce);
	free(r);
}

/* The owners of the memory may reuse it after `closed`. What the peer has written stays
 * written, since it may be acknowledged (RFC 7145 §7.3.5). */
static void end_regions(struct verbs_conn *c, bool is_there)
{
	while (!list_empty(&c->regions))
		region_end(list_entry(c->regions.next, struct region, link),
			   is_there);
}

int verbs_reg(struct rcap_qp *qp, const struct bufv *memory, uint64_t base,
	      unsigned rights, struct rcap_mr *mr)
{
	struct verbs_conn *c = conn_of(qp);
	struct region *r = calloc(1, sizeof(*r));
	int access = 0;
	void *at;

	(void)base; /* base is unused: there are no zero-based regions */
	if (!r)
		return ERR_NOMEM;
	if (rights & RCAP_REMOTE_READ)
		access |= IBV_ACCESS_REMOTE_READ;
	if (rights & RCAP_REMOTE_WRITE)
		access |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
	r->memory = *memory;
	if (memory->n > 1) {
		r->bounce = malloc(memory->len);
		r->copy_back = rights & RCAP_REMOTE_WRITE;
		if (r->bounce)
			bufv_copy_out(memory, 0, r->bounce, memory->len);
	}
	at = memory->n > 1 ? r->bounce : memory->iov[0].iov_base;
	if (at && c->id->pd)
		r->mr = ibv_reg_mr(c->id->pd, at, memory->len, access);
	if (!r->mr) {
		free(r->bounce);
		free(r);
		return ERR_NOMEM;
	}
	list_push_back(&c->regions, &r->link);
	*mr = (struct rcap_mr){ .stag = r->mr->rkey,
				.base = (uintptr_t)at,
				.len = memory->len,
				.provider = r };
	return 0;
}

void verbs_invalidate(struct rcap_qp *qp, struct rcap_mr *mr)
{
	struct region *r = mr->provider;

	(void)qp;
	if (!r)
		return;
	mr->provider = NULL;
	region_end(r, true);
}

/* ---- the end ---- */

void verbs_memory_free(struct verbs_conn *c, bool is_there)
{
	end_regions(c, is_there);
	for (unsigned i = 0; i < c->rq.nmrs; i++)
		ibv_dereg_mr(c->rq.mrs[i].mr);
	free(c->rq.mrs);
	if (c->sq.slots_mr)
		ibv_dereg_mr(c->sq.slots_mr);
	free(c->sq.slots);
	free(c->sq.transfers);
	c->rq.mrs = NULL;
	c->rq.nmrs = 0;
	list_init(&c->sq.free_transfers);
	c->sq.slots_mr = NULL;
	c->sq.slots = NULL;
	c->sq.transfers = NULL;
}
