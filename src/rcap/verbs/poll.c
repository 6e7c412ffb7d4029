/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * poll.c: completions. Two completion queues share a channel: the queue of
 * receives always reports a completion; the queue of sends only while a user
 * waits (for memory, for room, for the end), and is polled along with the other
 * otherwise.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "rcap/verbs/internal.h"

/* Acknowledging takes a lock of libibverbs: not for each event. */
#define ACK_BATCH 64

static void request_failed(struct verbs_conn *c, const struct ibv_wc *wc)
{
	/* a flushed request only shows that another error came first */
	if (wc->status == IBV_WC_WR_FLUSH_ERR)
		verbs_over(c, c->disconnecting ? 0 : ERR_CLOSED,
			   "the peer closed");
	else
		verbs_over(c, ERR_RESET, "the device says: %s",
			   ibv_wc_status_str(wc->status));
}

static void retire_transfer(struct verbs_conn *c, struct transfer *t)
{
	list_del(&t->link);
	c->in_device--;
	c->waited -= t->wr != NULL;
	if (t->wr)
		t->wr->local = WR_FINISHED;
	verbs_transfer_done(c, t, true);
}

/* A queue pair works in order: earlier Sends and Writes are done, too. Reads
 * have completions of their own, which siw reports late. */
static void retire_until(struct verbs_conn *c, const struct transfer *last)
{
	list_for_each_safe(n, &c->flight) {
		struct transfer *t = list_entry(n, struct transfer, link);

		if (!t->is_read)
			retire_transfer(c, t);
		if (t == last)
			return;
	}
}

static void send_done(struct verbs_conn *c, const struct ibv_wc *wc)
{
	struct transfer *t = (struct transfer *)(uintptr_t)wc->wr_id;

	if (wc->status != IBV_WC_SUCCESS) {
		request_failed(c, wc);
		return;
	}
	if (t->is_read)
		retire_transfer(c, t);
	else
		retire_until(c, t);
	verbs_give_back(c);
}

static void recv_done(struct verbs_conn *c, const struct ibv_wc *wc)
{
	struct rcap_recv *r = (struct rcap_recv *)(uintptr_t)wc->wr_id;

	if (wc->status != IBV_WC_SUCCESS) {
		request_failed(c, wc);
		return;
	}
	list_del(&r->link);
	r->len = wc->byte_len;
	r->invalidated = wc->wc_flags & IBV_WC_WITH_INV;
	r->stag = r->invalidated ? wc->invalidated_rkey : 0;
	c->qp.user->received(c->qp.arg, r, 0);
}

bool verbs_poll_sends(struct verbs_conn *c)
{
	struct ibv_wc wc[BATCH];
	bool any = false;
	int n;

	while (!c->ending && (n = ibv_poll_cq(c->scq, BATCH, wc)) > 0) {
		any = true;
		for (int i = 0; i < n && !c->ending; i++)
			send_done(c, &wc[i]);
	}
	return any;
}

/* A request counts as done before its response arrives: receives are fetched
 * first and reported last. */
bool verbs_poll(struct verbs_conn *c)
{
	struct ibv_wc wc[BATCH];
	bool any = false;
	int n;

	/* over InfiniBand the peer's first message may arrive before the
	 * connection manager reports the connection */
	if (c->qp.state < RCAP_ESTABLISHED)
		return false;
	while (c->rcq && !c->ending) {
		n = ibv_poll_cq(c->rcq, BATCH, wc);
		any |= verbs_poll_sends(c);
		if (n <= 0)
			break;
		any = true;
		for (int i = 0; i < n && !c->ending; i++)
			recv_done(c, &wc[i]);
	}
	if (any && !c->ending)
		io_loop_defer(c->v->l, &c->turn);
	return any;
}

/* ---- notification ---- */

/* True: a completion may have arrived before the queue was armed. */
bool verbs_arm(struct verbs_conn *c)
{
	bool wanted = c->waited || c->disconnecting || !list_empty(&c->sq);
	bool fresh = false;

	if (!c->rcq_armed)
		fresh = c->rcq_armed = !ibv_req_notify_cq(c->rcq, 0);
	if (wanted && !c->scq_armed && c->in_device)
		fresh |= c->scq_armed = !ibv_req_notify_cq(c->scq, 0);
	return fresh;
}

static void ack_events(struct ibv_cq *cq, unsigned *n, unsigned from)
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
	/* one event per turn: the next turn reports the next one */
	if (ibv_get_cq_event(c->channel, &cq, &ctx) == 0) {
		if (cq == c->scq) {
			c->scq_armed = false;
			c->scq_events++;
		} else {
			c->rcq_armed = false;
			c->rcq_events++;
		}
		ack_events(c->scq, &c->scq_events, ACK_BATCH);
		ack_events(c->rcq, &c->rcq_events, ACK_BATCH);
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

	c->channel = ibv_create_comp_channel(c->id->verbs);
	if (!c->channel)
		return -errno;
	/* non-blocking: read only when it is readable */
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
	ack_events(c->scq, &c->scq_events, 1);
	ack_events(c->rcq, &c->rcq_events, 1);
	if (c->rcq)
		ibv_destroy_cq(c->rcq);
	if (c->scq)
		ibv_destroy_cq(c->scq);
	c->rcq = c->scq = NULL;
	if (c->channel)
		ibv_destroy_comp_channel(c->channel);
	c->channel = NULL;
}
