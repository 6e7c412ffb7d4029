/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * work.c: work requests to the device and back, in order. What a turn of the
 * loop posts goes to the device at its end, in one call; the last of a call is
 * signalled, so is whatever has memory of its owner's and one in a while of
 * all others, whose owners have them back at once: their bytes were copied.
 */
#include <errno.h>
#include <string.h>

#include "rcap/verbs/internal.h"

/* ---- send queue ---- */

static enum ibv_wr_opcode opcode_of(const struct rcap_wr *wr)
{
	if (wr->op == RCAP_WRITE)
		return IBV_WR_RDMA_WRITE;
	if (wr->op == RCAP_READ)
		return IBV_WR_RDMA_READ;
	return wr->flags & RCAP_INVALIDATE ? IBV_WR_SEND_WITH_INV : IBV_WR_SEND;
}

struct device_wr {
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	uint8_t inl[INLINE_MAX];
};

static unsigned flags_of(const struct verbs_conn *c, const struct rcap_wr *wr,
			 const struct device_wr *d)
{
	unsigned flags = 0;

	if (wr->op == RCAP_SEND && (wr->flags & RCAP_SOLICITED))
		flags |= IBV_SEND_SOLICITED;
	if (d->sge.addr == (uintptr_t)d->inl)
		flags |= IBV_SEND_INLINE;
	/* completions in good time for the queue never to be full of what
	 * nobody hears of */
	if (wr->local == WR_WITH_DEVICE ||
	    c->unsignalled + 1 >= c->max_sends / 4)
		flags |= IBV_SEND_SIGNALED;
	return flags;
}

static bool make(struct verbs_conn *c, struct rcap_wr *wr, struct device_wr *d)
{
	struct transfer *t = verbs_transfer(c, wr, &d->sge, d->inl);

	if (!t)
		return false;
	wr->local = t->wr ? WR_WITH_DEVICE : WR_FINISHED;
	c->waited += t->wr != NULL;
	list_push_back(&c->flight, &t->link);
	memset(&d->wr, 0, sizeof(d->wr));
	d->wr.wr_id = (uintptr_t)t;
	d->wr.sg_list = &d->sge;
	d->wr.num_sge = wr->data.len ? 1 : 0;
	d->wr.opcode = opcode_of(wr);
	d->wr.send_flags = flags_of(c, wr, d);
	c->unsignalled =
		d->wr.send_flags & IBV_SEND_SIGNALED ? 0 : c->unsignalled + 1;
	if (wr->op != RCAP_SEND)
		d->wr.wr.rdma.remote_addr = wr->to;
	/* siw's user-space provider takes the region to be invalidated from
	 * here, others from where it belongs */
	d->wr.wr.rdma.rkey = wr->stag;
	if (wr->op == RCAP_SEND && (wr->flags & RCAP_INVALIDATE))
		d->wr.invalidate_rkey = wr->stag;
	return true;
}

static void hand_over(struct verbs_conn *c, struct device_wr *d, unsigned n)
{
	struct ibv_send_wr *bad;
	int err;

	if (!n)
		return;
	for (unsigned i = 0; i + 1 < n; i++)
		d[i].wr.next = &d[i + 1].wr;
	d[n - 1].wr.send_flags |= IBV_SEND_SIGNALED;
	c->unsignalled = 0;
	c->in_device += n;
	err = ibv_post_send(c->id->qp, &d[0].wr, &bad);
	if (err)
		verbs_over(c, ERR_RESET, "posting to the device: %s",
			   strerror(err));
}

/* As many as the device has room for, in one call for a batch. */
void verbs_push(struct verbs_conn *c)
{
	struct device_wr d[BATCH];
	unsigned n = 0;

	while (!list_empty(&c->sq) && !list_empty(&c->free_transfers) &&
	       !c->ending) {
		struct rcap_wr *wr =
			list_entry(c->sq.next, struct rcap_wr, link);

		if (!make(c, wr, &d[n])) {
			verbs_over(c, ERR_NOMEM,
				   "registering %zu bytes: %s (ulimit -l?)",
				   wr->data.len, strerror(errno));
			break;
		}
		list_del(&wr->link);
		list_push_back(&c->owed, &wr->link);
		if (++n == BATCH) {
			hand_over(c, d, n);
			n = 0;
		}
	}
	hand_over(c, d, n);
}

void verbs_post(struct rcap_qp *qp, struct rcap_wr *const *wr, unsigned n)
{
	struct verbs_conn *c = conn_of(qp);

	for (unsigned i = 0; i < n; i++)
		list_push_back(&c->sq, &wr[i]->link);
	io_loop_defer(c->v->l, &c->turn);
}

/* In the order of the posts: what was copied waits for what was not. */
void verbs_give_back(struct verbs_conn *c)
{
	while (!list_empty(&c->owed) && !c->ending) {
		struct rcap_wr *wr =
			list_entry(c->owed.next, struct rcap_wr, link);

		if (wr->local != WR_FINISHED)
			return;
		list_del(&wr->link);
		c->qp.user->wr_done(c->qp.arg, wr, 0);
	}
}

/* ---- receives ---- */

static bool fill_recv(struct verbs_conn *c, struct rcap_recv *r,
		      struct ibv_recv_wr *wr, struct ibv_sge *sge)
{
	struct ibv_mr *mr = verbs_recv_mr(c, r);

	if (!mr)
		return false;
	*sge = (struct ibv_sge){ .addr = (uintptr_t)r->buf,
				 .length = (uint32_t)r->cap,
				 .lkey = mr->lkey };
	*wr = (struct ibv_recv_wr){ .wr_id = (uintptr_t)r,
				    .sg_list = sge,
				    .num_sge = 1 };
	return true;
}

/* Up to a batch of them, in one call. */
static void push_batch(struct verbs_conn *c)
{
	struct ibv_recv_wr wr[BATCH], *bad;
	struct ibv_sge sge[BATCH];
	unsigned n = 0;
	int err = 0;

	while (n < BATCH && !err && !list_empty(&c->recvs)) {
		struct rcap_recv *r =
			list_entry(c->recvs.next, struct rcap_recv, link);

		if (!fill_recv(c, r, &wr[n], &sge[n])) {
			err = errno;
			break;
		}
		list_del(&r->link);
		list_push_back(&c->held, &r->link);
		if (n)
			wr[n - 1].next = &wr[n];
		n++;
	}
	if (n && !err)
		err = ibv_post_recv(c->id->qp, &wr[0], &bad);
	if (err)
		verbs_over(c, ERR_NOMEM, "posting a receive: %s (ulimit -l?)",
			   strerror(err));
}

void verbs_push_recvs(struct verbs_conn *c)
{
	while (c->rcq && !c->ending && !list_empty(&c->recvs))
		push_batch(c);
}

void verbs_post_recv(struct rcap_qp *qp, struct rcap_recv *r)
{
	struct verbs_conn *c = conn_of(qp);

	r->len = 0;
	r->solicited = r->invalidated = false;
	list_push_back(&c->recvs, &r->link);
	if (c->rcq && !c->ending)
		io_loop_defer(c->v->l, &c->turn);
}

/* ---- begin, end ---- */

/* The wishes for inline data, from the largest on: a device refuses what it
 * does not have. */
static int make_qp(struct verbs_conn *c)
{
	static const uint32_t wishes[] = INLINE_WISHES;
	int err = 0;

	for (unsigned i = 0; i < ARRAY_LEN(wishes); i++) {
		struct ibv_qp_init_attr attr = {
			.send_cq = c->scq,
			.recv_cq = c->rcq,
			.cap = { .max_send_wr = c->max_sends,
				 .max_recv_wr = c->cfg.recvs,
				 .max_send_sge = 1,
				 .max_recv_sge = 1,
				 .max_inline_data = wishes[i] },
			.qp_type = IBV_QPT_RC,
			.sq_sig_all = 0,
		};

		if (rdma_create_qp(c->id, NULL, &attr) == 0) {
			c->max_inline = MIN(attr.cap.max_inline_data,
					    (uint32_t)INLINE_MAX);
			return 0;
		}
		err = -errno;
	}
	return err;
}

/* Answers of 1 MiB are more than rxe can send in one go: it loses some, and
 * asks again after seconds. Many of 256 KiB are no slower anywhere. */
#define READ_BEST (256u << 10)

static int limits(struct verbs_conn *c, struct ibv_device_attr *attr)
{
	int err = ibv_query_device(c->id->verbs, attr);

	if (err)
		return -err;
	c->is_iwarp =
		c->id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
	c->qp.send_inv = attr->device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS;
	c->qp.read_best = READ_BEST;
	c->max_sends = MIN(c->cfg.sends, (unsigned)attr->max_qp_wr);
	c->cfg.recvs = MIN(c->cfg.recvs, (unsigned)attr->max_qp_wr);
	c->cfg.ird = (uint16_t)MIN((int)c->cfg.ird, attr->max_qp_rd_atom);
	c->cfg.ord = (uint16_t)MIN((int)c->cfg.ord, attr->max_qp_init_rd_atom);
	return 0;
}

int verbs_work_new(struct verbs_conn *c)
{
	struct ibv_device_attr attr;
	int err = limits(c, &attr);

	if (err)
		return err;
	c->dev = verbs_device_get(c->v, c->id->verbs);
	err = c->dev ? verbs_poll_new(c, &attr) : -ENOMEM;
	if (!err)
		err = make_qp(c);
	if (!err)
		err = verbs_memory_new(c);
	if (err)
		return err;
	verbs_push_recvs(c);
	return 0;
}

static void flush(struct verbs_conn *c, struct list *l)
{
	struct list *n;

	while ((n = list_pop_front(l)))
		c->qp.user->wr_done(c->qp.arg,
				    list_entry(n, struct rcap_wr, link),
				    ERR_ABORTED);
}

static void flush_recvs(struct verbs_conn *c, struct list *l)
{
	struct list *n;

	while ((n = list_pop_front(l)))
		c->qp.user->received(c->qp.arg,
				     list_entry(n, struct rcap_recv, link),
				     ERR_ABORTED);
}

void verbs_work_end(struct verbs_conn *c)
{
	struct list *n;

	io_defer_cancel(&c->turn);
	verbs_poll_end(c);
	if (c->id && c->id->qp)
		rdma_destroy_qp(c->id); /* nothing is touched any more */
	while ((n = list_pop_front(&c->flight)))
		verbs_transfer_done(c, list_entry(n, struct transfer, link),
				    false);
	flush(c, &c->owed);
	flush(c, &c->sq);
	flush_recvs(c, &c->held);
	flush_recvs(c, &c->recvs);
	verbs_poll_free(c);
	verbs_memory_free(c);
}
