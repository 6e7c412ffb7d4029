/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * work.c: work requests to the device and back, in order. The requests of a
 * turn of the loop go to the device at its end, in one call. Signalled are the
 * last request of a call, each request that uses memory of its owner, and one
 * in a while of those whose bytes were copied and which are returned at once.
 */
#include <errno.h>
#include <string.h>

#include "rcap/verbs/internal.h"

#define SIW_PAGE 4096

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

/* siw copies the payload of signalled requests only. Other payload of a page or
 * more is sent by reference, even after a later request has completed: the slot
 * would be overwritten before TCP has sent it. */
static bool sent_by_reference(const struct verbs_conn *c,
			      const struct rcap_wr *wr)
{
	return c->is_iwarp && wr->op != RCAP_READ && wr->data.len >= SIW_PAGE;
}

static unsigned flags_of(const struct verbs_conn *c, const struct rcap_wr *wr,
			 const struct device_wr *d)
{
	unsigned flags = 0;

	if (wr->op == RCAP_SEND && (wr->flags & RCAP_SOLICITED))
		flags |= IBV_SEND_SOLICITED;
	if (d->sge.addr == (uintptr_t)d->inl)
		flags |= IBV_SEND_INLINE;
	/* signal often enough that the send queue never fills up with
	 * unsignalled requests */
	if (wr->local == WR_WITH_DEVICE || sent_by_reference(c, wr) ||
	    c->sq.unsignalled + 1 >= c->sq.max / 4)
		flags |= IBV_SEND_SIGNALED;
	return flags;
}

static bool make_request(struct verbs_conn *c, struct rcap_wr *wr,
			 struct device_wr *d)
{
	struct transfer *t = verbs_transfer(c, wr, &d->sge, d->inl);

	if (!t)
		return false;
	wr->local = t->wr ? WR_WITH_DEVICE : WR_FINISHED;
	c->sq.waited += t->wr != NULL;
	list_push_back(&c->sq.flight, &t->link);
	memset(&d->wr, 0, sizeof(d->wr));
	d->wr.wr_id = (uintptr_t)t;
	d->wr.sg_list = &d->sge;
	/* siw takes RDMA Reads with a sink only, also empty ones */
	d->wr.num_sge = wr->data.len || wr->op == RCAP_READ;
	d->wr.opcode = opcode_of(wr);
	d->wr.send_flags = flags_of(c, wr, d);
	c->sq.unsignalled = d->wr.send_flags & IBV_SEND_SIGNALED
				    ? 0
				    : c->sq.unsignalled + 1;
	if (wr->op != RCAP_SEND)
		d->wr.wr.rdma.remote_addr = wr->to;
	/* the user-space provider of siw reads the region to invalidate from
	 * here, others from invalidate_rkey */
	d->wr.wr.rdma.rkey = wr->stag;
	if (wr->op == RCAP_SEND && (wr->flags & RCAP_INVALIDATE))
		d->wr.invalidate_rkey = wr->stag;
	return true;
}

static void post_batch(struct verbs_conn *c, struct device_wr *d, unsigned n)
{
	struct ibv_send_wr *bad;
	int err;

	if (!n)
		return;
	for (unsigned i = 0; i + 1 < n; i++)
		d[i].wr.next = &d[i + 1].wr;
	d[n - 1].wr.send_flags |= IBV_SEND_SIGNALED;
	c->sq.unsignalled = 0;
	c->sq.in_device += n;
	err = ibv_post_send(c->id->qp, &d[0].wr, &bad);
	if (err)
		verbs_over(c, ERR_RESET, "posting to the device: %s",
			   strerror(err));
}

/* Posts as many as the device has room for, a batch in one call. */
void verbs_push(struct verbs_conn *c)
{
	struct device_wr d[BATCH];
	unsigned n = 0;

	while (!list_empty(&c->sq.pending) &&
	       !list_empty(&c->sq.free_transfers) && !c->end.begun) {
		struct rcap_wr *wr =
			list_entry(c->sq.pending.next, struct rcap_wr, link);

		if (!make_request(c, wr, &d[n])) {
			verbs_over(c, ERR_NOMEM,
				   "registering %zu bytes: %s (ulimit -l?)",
				   wr->data.len, strerror(errno));
			break;
		}
		list_del(&wr->link);
		list_push_back(&c->sq.owed, &wr->link);
		if (++n == BATCH) {
			post_batch(c, d, n);
			n = 0;
		}
	}
	post_batch(c, d, n);
}

void verbs_post(struct rcap_qp *qp, struct rcap_wr *const *wr, unsigned n)
{
	struct verbs_conn *c = conn_of(qp);

	for (unsigned i = 0; i < n; i++)
		list_push_back(&c->sq.pending, &wr[i]->link);
	io_loop_defer(c->v->l, &c->turn);
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

/* Posts up to a batch in one call. */
static void push_batch(struct verbs_conn *c)
{
	struct ibv_recv_wr wr[BATCH], *bad;
	struct ibv_sge sge[BATCH];
	unsigned n = 0;
	int err = 0;

	while (n < BATCH && !err && !list_empty(&c->rq.pending)) {
		struct rcap_recv *r =
			list_entry(c->rq.pending.next, struct rcap_recv, link);

		if (!fill_recv(c, r, &wr[n], &sge[n])) {
			err = errno;
			break;
		}
		list_del(&r->link);
		list_push_back(&c->rq.held, &r->link);
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
	while (c->cq.recv && !c->end.begun && !list_empty(&c->rq.pending))
		push_batch(c);
}

void verbs_post_recv(struct rcap_qp *qp, struct rcap_recv *r)
{
	struct verbs_conn *c = conn_of(qp);

	r->len = 0;
	r->solicited = r->invalidated = false;
	list_push_back(&c->rq.pending, &r->link);
	if (c->cq.recv && !c->end.begun)
		io_loop_defer(c->v->l, &c->turn);
}

/* ---- the end of a turn ---- */

/* The end of a turn: posts what it has collected, then arms the queues. */
static void end_turn(struct io_defer *d)
{
	struct verbs_conn *c = container_of(d, struct verbs_conn, turn);

	verbs_push_recvs(c);
	if (list_empty(&c->sq.free_transfers))
		verbs_poll_sends(c);
	verbs_push(c);
	verbs_give_back(c);
	if (c->end.begun)
		return;
	if (verbs_arm(c))
		verbs_poll(c);
	if (list_empty(&c->sq.pending) && list_empty(&c->sq.flight))
		verbs_drained(c);
}

/* ---- begin, end ---- */

/* Tries the sizes of inline data, largest first: a device refuses a size that
 * it does not support. */
static int make_qp(struct verbs_conn *c)
{
	static const uint32_t wishes[] = INLINE_WISHES;
	int err = 0;

	for (unsigned i = 0; i < ARRAY_LEN(wishes); i++) {
		struct ibv_qp_init_attr attr = {
			.send_cq = c->cq.send,
			.recv_cq = c->cq.recv,
			.cap = { .max_send_wr = c->sq.max,
				 .max_recv_wr = c->cfg.recvs,
				 .max_send_sge = 1,
				 .max_recv_sge = 1,
				 .max_inline_data = wishes[i] },
			.qp_type = IBV_QPT_RC,
			.sq_sig_all = 0,
		};

		if (rdma_create_qp(c->id, NULL, &attr) == 0) {
			c->sq.max_inline = MIN(attr.cap.max_inline_data,
					       (uint32_t)INLINE_MAX);
			return 0;
		}
		err = -errno;
	}
	return err;
}

/* rxe loses parts of Read responses of 1 MiB and retries after seconds. Many of
 * 256 KiB are as fast on every device. */
#define READ_BEST (256u << 10)

static int query_limits(struct verbs_conn *c, struct ibv_device_attr *attr)
{
	int err = ibv_query_device(c->id->verbs, attr);

	if (err)
		return -err;
	c->is_iwarp =
		c->id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
	c->qp.send_inv = attr->device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS;
	c->qp.read_best = READ_BEST;
	c->sq.max = MIN(c->cfg.sends, (unsigned)attr->max_qp_wr);
	c->cfg.recvs = MIN(c->cfg.recvs, (unsigned)attr->max_qp_wr);
	c->cfg.ird = (uint16_t)MIN((int)c->cfg.ird, attr->max_qp_rd_atom);
	c->cfg.ord = (uint16_t)MIN((int)c->cfg.ord, attr->max_qp_init_rd_atom);
	return 0;
}

int verbs_work_new(struct verbs_conn *c)
{
	struct ibv_device_attr attr;
	int err = query_limits(c, &attr);

	if (err)
		return err;
	c->turn.run = end_turn;
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

void verbs_work_end(struct verbs_conn *c, bool is_there)
{
	struct list *n;

	io_defer_cancel(&c->turn);
	verbs_poll_end(c);
	if (c->id && c->id->qp)
		/* the device accesses no memory after this */
		rdma_destroy_qp(c->id);
	while ((n = list_pop_front(&c->sq.flight)))
		verbs_transfer_done(c, list_entry(n, struct transfer, link),
				    false);
	rcap_abort_requests(&c->qp, &c->sq.owed);
	rcap_abort_requests(&c->qp, &c->sq.pending);
	rcap_abort_receives(&c->qp, &c->rq.held);
	rcap_abort_receives(&c->qp, &c->rq.pending);
	verbs_poll_free(c);
	verbs_memory_free(c, is_there);
}
