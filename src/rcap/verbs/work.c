/* SPDX-License-Identifier: BSD-2-Clause */
/* work.c: work requests to the device and back, in order. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "rcap/verbs/internal.h"

#define BATCH 32

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
};

static bool make(struct verbs_conn *c, struct rcap_wr *wr, struct device_wr *d)
{
	struct transfer *t = verbs_transfer(c, wr, &d->sge);

	if (!t)
		return false;
	wr->mark = (uintptr_t)t;
	memset(&d->wr, 0, sizeof(d->wr));
	d->wr.wr_id = (uintptr_t)wr;
	d->wr.sg_list = &d->sge;
	d->wr.num_sge = wr->data.len ? 1 : 0;
	d->wr.opcode = opcode_of(wr);
	/* a slot is needed again only when its bytes are out */
	d->wr.send_flags = IBV_SEND_SIGNALED |
			   (wr->op == RCAP_SEND && (wr->flags & RCAP_SOLICITED)
				    ? IBV_SEND_SOLICITED
				    : 0);
	if (wr->op != RCAP_SEND) {
		d->wr.wr.rdma.remote_addr = wr->to;
		d->wr.wr.rdma.rkey = wr->stag;
	} else if (wr->flags & RCAP_INVALIDATE) {
		d->wr.invalidate_rkey = wr->stag;
	}
	return true;
}

static void hand_over(struct verbs_conn *c, struct device_wr *d, unsigned n)
{
	struct ibv_send_wr *bad;

	for (unsigned i = 0; i + 1 < n; i++)
		d[i].wr.next = &d[i + 1].wr;
	c->in_device += n;
	if (n && ibv_post_send(c->id->qp, &d[0].wr, &bad))
		verbs_over(c, ERR_RESET, "posting to the device: %s",
			   strerror(errno));
}

/* As many as the device has room for, in one call for a batch. */
static void push(struct verbs_conn *c)
{
	struct device_wr d[BATCH];
	unsigned n = 0;

	while (!list_empty(&c->sq) && c->in_device + n < c->max_sends &&
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
		list_push_back(&c->flight, &wr->link);
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
	push(c);
}

/* ---- receives ---- */

static void give_recv(struct verbs_conn *c, struct rcap_recv *r)
{
	struct ibv_mr *mr = verbs_recv_mr(c, r);
	struct ibv_sge sge = { .addr = (uintptr_t)r->buf,
			       .length = (uint32_t)r->cap };
	struct ibv_recv_wr wr = { .wr_id = (uintptr_t)r,
				  .sg_list = &sge,
				  .num_sge = 1 },
			   *bad;

	list_push_back(&c->held, &r->link);
	if (mr)
		sge.lkey = mr->lkey;
	if (!mr || ibv_post_recv(c->id->qp, &wr, &bad))
		verbs_over(c, ERR_NOMEM, "posting a receive: %s (ulimit -l?)",
			   strerror(errno));
}

void verbs_post_recv(struct rcap_qp *qp, struct rcap_recv *r)
{
	struct verbs_conn *c = conn_of(qp);

	r->len = 0;
	r->solicited = r->invalidated = false;
	if (c->cq && !c->ending)
		give_recv(c, r);
	else
		list_push_back(&c->recvs, &r->link);
}

void verbs_post_held_recvs(struct verbs_conn *c)
{
	struct list *n;

	while (!c->ending && (n = list_pop_front(&c->recvs)))
		give_recv(c, list_entry(n, struct rcap_recv, link));
}

/* ---- completions ---- */

static void failed(struct verbs_conn *c, const struct ibv_wc *wc)
{
	/* flushed ones only say that something else came first */
	if (wc->status == IBV_WC_WR_FLUSH_ERR)
		verbs_over(c, c->disconnecting ? 0 : ERR_CLOSED,
			   "the peer closed");
	else
		verbs_over(c, ERR_RESET, "the device says: %s",
			   ibv_wc_status_str(wc->status));
}

static void sent(struct verbs_conn *c, const struct ibv_wc *wc)
{
	struct rcap_wr *wr = (struct rcap_wr *)(uintptr_t)wc->wr_id;

	c->in_device--;
	verbs_transfer_done(c, (struct transfer *)(uintptr_t)wr->mark, true);
	list_del(&wr->link);
	c->qp.user->wr_done(c->qp.arg, wr, 0);
}

static void received(struct verbs_conn *c, const struct ibv_wc *wc)
{
	struct rcap_recv *r = (struct rcap_recv *)(uintptr_t)wc->wr_id;

	list_del(&r->link);
	r->len = wc->byte_len;
	r->invalidated = wc->wc_flags & IBV_WC_WITH_INV;
	r->stag = r->invalidated ? wc->invalidated_rkey : 0;
	c->qp.user->received(c->qp.arg, r, 0);
}

static void complete(struct verbs_conn *c, const struct ibv_wc *wc)
{
	if (c->ending)
		return;
	if (wc->status != IBV_WC_SUCCESS)
		failed(c, wc);
	else if (wc->opcode & IBV_WC_RECV)
		received(c, wc);
	else
		sent(c, wc);
}

void verbs_poll(struct verbs_conn *c)
{
	struct ibv_wc wc[BATCH];
	int n;

	while (c->cq && !c->ending && (n = ibv_poll_cq(c->cq, BATCH, wc)) > 0) {
		for (int i = 0; i < n; i++)
			complete(c, &wc[i]);
		push(c);
	}
}

static void cq_ready(struct io_watch *w, unsigned events)
{
	struct verbs_conn *c = container_of(w, struct verbs_conn, cq_watch);
	struct ibv_cq *cq;
	void *ctx;

	(void)events;
	while (ibv_get_cq_event(c->channel, &cq, &ctx) == 0)
		ibv_ack_cq_events(cq, 1);
	/* armed first: what comes while we look is told again */
	ibv_req_notify_cq(c->cq, 0);
	verbs_poll(c);
	if (list_empty(&c->sq) && list_empty(&c->flight))
		verbs_drained(c);
}

/* ---- begin, end ---- */

static int make_cq(struct verbs_conn *c, struct ibv_device_attr *attr)
{
	int cqe = (int)(c->max_sends + c->cfg.recvs);

	c->channel = ibv_create_comp_channel(c->id->verbs);
	if (!c->channel)
		return -errno;
	c->cq = ibv_create_cq(c->id->verbs, MIN(cqe, attr->max_cqe), c,
			      c->channel, 0);
	if (!c->cq)
		return -errno;
	c->cq_watch = (struct io_watch){ .fd = c->channel->fd,
					 .want = IO_IN,
					 .ready = cq_ready };
	return 0;
}

static int make_qp(struct verbs_conn *c)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = c->cq,
		.recv_cq = c->cq,
		.cap = { .max_send_wr = c->max_sends,
			 .max_recv_wr = c->cfg.recvs,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	return rdma_create_qp(c->id, NULL, &attr) ? -errno : 0;
}

int verbs_work_new(struct verbs_conn *c)
{
	struct ibv_device_attr attr;
	int err = ibv_query_device(c->id->verbs, &attr);

	if (err)
		return -err;
	c->is_iwarp =
		c->id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
	/* not over iWARP devices: what siw's user-space provider sends there
	 * does not name the region that it was given */
	c->qp.send_inv = !c->is_iwarp && (attr.device_cap_flags &
					  IBV_DEVICE_MEM_MGT_EXTENSIONS);
	c->max_sends = MIN(c->cfg.sends, (unsigned)attr.max_qp_wr);
	c->cfg.recvs = MIN(c->cfg.recvs, (unsigned)attr.max_qp_wr);
	c->cfg.ird = (uint16_t)MIN((int)c->cfg.ird, attr.max_qp_rd_atom);
	c->cfg.ord = (uint16_t)MIN((int)c->cfg.ord, attr.max_qp_init_rd_atom);
	err = make_cq(c, &attr);
	if (!err)
		err = make_qp(c);
	if (!err)
		err = verbs_memory_new(c);
	if (!err)
		err = io_watch_add(c->v->l, &c->cq_watch);
	if (err)
		return err;
	c->watching = true;
	/* never blocks: looked at only when it is readable */
	fcntl(c->channel->fd, F_SETFL,
	      fcntl(c->channel->fd, F_GETFL) | O_NONBLOCK);
	ibv_req_notify_cq(c->cq, 0);
	verbs_post_held_recvs(c);
	return 0;
}

static void flush(struct verbs_conn *c, struct list *l, bool with_transfer)
{
	struct list *n;

	while ((n = list_pop_front(l))) {
		struct rcap_wr *wr = list_entry(n, struct rcap_wr, link);

		if (with_transfer)
			verbs_transfer_done(
				c, (struct transfer *)(uintptr_t)wr->mark,
				false);
		c->qp.user->wr_done(c->qp.arg, wr, ERR_ABORTED);
	}
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
	if (c->watching)
		io_watch_del(c->v->l, &c->cq_watch);
	c->watching = false;
	if (c->id && c->id->qp)
		rdma_destroy_qp(c->id); /* nothing is touched any more */
	flush(c, &c->flight, true);
	flush(c, &c->sq, false);
	flush_recvs(c, &c->held);
	flush_recvs(c, &c->recvs);
	if (c->cq)
		ibv_destroy_cq(c->cq);
	c->cq = NULL;
	if (c->channel)
		ibv_destroy_comp_channel(c->channel);
	c->channel = NULL;
	verbs_memory_free(c);
}
