/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * poll.c: completions. Two queues on one channel: that of receives always
 * tells when something came; that of sends only while somebody waits (for
 * memory, for room, for the end), else it is looked at by the way.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "rcap/verbs/internal.h"

/* Acknowledging takes a lock of libibverbs': not for each event. */
#define ACK_BATCH 64

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

static void retire(struct verbs_conn *c, struct transfer *t)
{
	list_del(&t->link);
	c->in_device--;
	c->waited -= t->wr != NULL;
	if (t->wr)
		t->wr->local = WR_FINISHED;
	verbs_transfer_done(c, t, true);
}

/* A queue pair works in order: the Sends and Writes before one are done as
 * well. Reads have completions of their own, which siw tells late. */
static void retire_until(struct verbs_conn *c, const struct transfer *last)
{
	list_for_each_safe(n, &c->flight) {
		struct transfer *t = list_entry(n, struct transfer, link);

		if (!t->is_read)
			retire(c, t);
		if (t == last)
			return;
	}
}

static void sent(struct verbs_conn *c, const struct ibv_wc *wc)
{
	struct transfer *t = (struct transfer *)(uintptr_t)wc->wr_id;

	if (wc->status != IBV_WC_SUCCESS) {
		failed(c, wc);
		return;
	}
	if (t->is_read)
		retire(c, t);
	else
		retire_until(c, t);
	verbs_give_back(c);
}

static void received(struct verbs_conn *c, const struct ibv_wc *wc)
{
	struct rcap_recv *r = (struct rcap_recv *)(uintptr_t)wc->wr_id;

	if (wc->status != IBV_WC_SUCCESS) {
		failed(c, wc);
		return;
	}
	list_del(&r->link);
	r->len = wc->byte_len;
	r->invalidated = wc->wc_flags & IBV_WC_WITH_INV;
	r->stag = r->invalidated ? wc->invalidated_rkey : 0;
	c->qp.user->received(c->qp.arg, r, 0);
}

static bool poll_sends(struct verbs_conn *c)
{
	struct ibv_wc wc[BATCH];
	bool any = false;
	int n;

	while (!c->ending && (n = ibv_poll_cq(c->scq, BATCH, wc)) > 0) {
		any = true;
		for (int i = 0; i < n && !c->ending; i++)
			sent(c, &wc[i]);
	}
	return any;
}

/* What was sent counts before what is the answer to it: receives are fetched
 * first, and told last. */
bool verbs_poll(struct verbs_conn *c)
{
	struct ibv_wc wc[BATCH];
	bool any = false;
	int n;

	/* over InfiniBand the peer's first message may be here before the
	 * connection manager has said so */
	if (c->qp.state < RCAP_ESTABLISHED)
		return false;
	while (c->rcq && !c->ending) {
		n = ibv_poll_cq(c->rcq, BATCH, wc);
		any |= poll_sends(c);
		if (n <= 0)
			break;
		any = true;
		for (int i = 0; i < n && !c->ending; i++)
			received(c, &wc[i]);
	}
	if (any && !c->ending)
		io_loop_defer(c->v->l, &c->turn);
	return any;
}

/* ---- being told ---- */

/* True: something may have come that nobody is told of. */
static bool arm(struct verbs_conn *c)
{
	bool wanted = c->waited || c->disconnecting || !list_empty(&c->sq);
	bool fresh = false;

	if (!c->rcq_armed)
		fresh = c->rcq_armed = !ibv_req_notify_cq(c->rcq, 0);
	if (wanted && !c->scq_armed && c->in_device)
		fresh |= c->scq_armed = !ibv_req_notify_cq(c->scq, 0);
	return fresh;
}

/* The end of a turn: what it collected goes out, then the queues are armed. */
static void turn(struct io_defer *d)
{
	struct verbs_conn *c = container_of(d, struct verbs_conn, turn);

	verbs_push_recvs(c);
	if (list_empty(&c->free_transfers))
		poll_sends(c);
	verbs_push(c);
	verbs_give_back(c);
	if (c->ending)
		return;
	if (arm(c))
		verbs_poll(c);
	if (list_empty(&c->sq) && list_empty(&c->flight))
		verbs_drained(c);
}

static void ack(struct ibv_cq *cq, unsigned *n, unsigned from)
{
	if (cq && *n >= from)
		ibv_ack_cq_events(cq, *n);
	*n = cq && *n >= from ? 0 : *n;
}

static void cq_ready(struct io_watch *w, unsigned events)
{
	struct verbs_conn *c = container_of(w, struct verbs_conn, cq_watch);
	struct ibv_cq *cq;
	void *ctx;

	(void)events;
	/* one at a time: the next turn asks again if there is another */
	if (ibv_get_cq_event(c->channel, &cq, &ctx) == 0) {
		if (cq == c->scq) {
			c->scq_armed = false;
			c->scq_events++;
		} else {
			c->rcq_armed = false;
			c->rcq_events++;
		}
		ack(c->scq, &c->scq_events, ACK_BATCH);
		ack(c->rcq, &c->rcq_events, ACK_BATCH);
	}
	verbs_poll(c);
	if (!c->ending)
		io_loop_defer(c->v->l, &c->turn);
}

/* ---- begin, end ---- */

static struct ibv_cq *make_cq(struct verbs_conn *c, unsigned n,
			      const struct ibv_device_attr *attr)
{
	return ibv_create_cq(c->id->verbs, MIN((int)n, attr->max_cqe), c,
			     c->channel, 0);
}

int verbs_poll_new(struct verbs_conn *c, const struct ibv_device_attr *attr)
{
	int err;

	c->turn.run = turn;
	c->channel = ibv_create_comp_channel(c->id->verbs);
	if (!c->channel)
		return -errno;
	/* never blocks: looked at only when it is readable */
	fcntl(c->channel->fd, F_SETFL,
	      fcntl(c->channel->fd, F_GETFL) | O_NONBLOCK);
	c->scq = make_cq(c, c->max_sends, attr);
	c->rcq = c->scq ? make_cq(c, c->cfg.recvs, attr) : NULL;
	if (!c->rcq)
		return -errno;
	c->cq_watch = (struct io_watch){ .fd = c->channel->fd,
					 .want = IO_IN,
					 .ready = cq_ready };
	err = io_watch_add(c->v->l, &c->cq_watch);
	if (err)
		return err;
	c->watching = true;
	c->rcq_armed = !ibv_req_notify_cq(c->rcq, 0);
	return 0;
}

void verbs_poll_end(struct verbs_conn *c)
{
	if (c->watching)
		io_watch_del(c->v->l, &c->cq_watch);
	c->watching = false;
}

void verbs_poll_free(struct verbs_conn *c)
{
	ack(c->scq, &c->scq_events, 1);
	ack(c->rcq, &c->rcq_events, 1);
	if (c->rcq)
		ibv_destroy_cq(c->rcq);
	if (c->scq)
		ibv_destroy_cq(c->scq);
	c->rcq = c->scq = NULL;
	if (c->channel)
		ibv_destroy_comp_channel(c->channel);
	c->channel = NULL;
}
