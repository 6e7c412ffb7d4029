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
		verbs_over(c, c->end.disconnecting ? 0 : ERR_CLOSED,
			   "the peer closed");
	else
		verbs_over(c, ERR_RESET, "the device says: %s",
			   ibv_wc_status_str(wc->status));
}

static void retire_transfer(struct verbs_conn *c, struct transfer *t)
{
	list_del(&t->link);
	c->sq.in_device--;
	c->sq.waited -= t->wr != NULL;
	if (t->wr)
		t->wr->local = WR_FINISHED;
	verbs_transfer_done(c, t, true);
}

/* A queue pair works in order: earlier Sends and Writes are done, too. Reads
 * have completions of their own, which siw reports late. */
static void retire_until(struct verbs_conn *c, const struct transfer *last)
{
	list_for_each_safe(n, &c->sq.flight) {
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

	while (!c->end.begun && (n = ibv_poll_cq(c->cq.send, BATCH, wc)) > 0) {
		any = true;
		for (int i = 0; i < n && !c->end.begun; i++)
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
	while (c->cq.recv && !c->end.begun) {
		n = ibv_poll_cq(c->cq.recv, BATCH, wc);
		any |= verbs_poll_sends(c);
		if (n <= 0)
			break;
		any = true;
		for (int i = 0; i < n && !c->end.begun; i++)
			recv_done(c, &wc[i]);
	}
	if (any && !c->end.begun)
		io_loop_defer(c->v->l, &c->turn);
	return any;
}

/* ---- notification ---- */

/* True: a completion may have arrived before the queue was armed. */
bool verbs_arm(struct verbs_conn *c)
{
	bool wanted = c->sq.waited || c->end.disconnecting ||
		      !list_empty(&c->sq.pending);
	bool fresh = false;

	if (!c->cq.recv_armed)
		fresh = c->cq.recv_armed = !ibv_req_notify_cq(c->cq.recv, 0);
	if (wanted && !c->cq.send_armed && c->sq.in_device)
		fresh |= c->cq.send_armed = !ibv_req_notify_cq(c->cq.send, 0);
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
	struct verbs_conn *c = container_of(w, struct verbs_conn, cq.watch);
	struct ibv_cq *cq;
	void *ctx;

	(void)events;
	/* one event per turn: the next turn reports the next one */
	if (ibv_get_cq_event(c->cq.channel, &cq, &ctx) == 0) {
		if (cq == c->cq.send) {
			c->cq.send_armed = false;
			c->cq.send_events++;
		} else {
			c->cq.recv_armed = false;
			c->cq.recv_events++;
		}
		ack_events(c->cq.send, &c->cq.send_events, ACK_BATCH);
		ack_events(c->cq.recv, &c->cq.recv_events, ACK_BATCH);
	}
	verbs_poll(c);
	if (!c->end.begun)
		io_loop_defer(c->v->l, &c->turn);
}

/* ---- begin, end ---- */

static struct ibv_cq *make_cq(struct verbs_conn *c, unsigned n,
			      const struct ibv_device_attr *attr)
{
	return ibv_create_cq(c->id->verbs, MIN((int)n, attr->max_cqe), c,
			     c->cq.channel, 0);
}

int verbs_poll_new(struct verbs_conn *c, const struct ibv_device_attr *attr)
{
	int err;

	c->cq.channel = ibv_create_comp_channel(c->id->verbs);
	if (!c->cq.channel)
		return -errno;
	/* non-blocking: read only when it is readable */
	fcntl(c->cq.channel->fd, F_SETFL,
	      fcntl(c->cq.channel->fd, F_GETFL) | O_NONBLOCK);
	c->cq.send = make_cq(c, c->sq.max, attr);
	c->cq.recv = c->cq.send ? make_cq(c, c->cfg.recvs, attr) : NULL;
	if (!c->cq.recv)
		return -errno;
	c->cq.watch = (struct io_watch){ .fd = c->cq.channel->fd,
					 .want = IO_IN,
					 .ready = cq_ready };
	err = io_watch_add(c->v->l, &c->cq.watch);
	if (err)
		return err;
	c->cq.watching = true;
	c->cq.recv_armed = !ibv_req_notify_cq(c->cq.recv, 0);
	return 0;
}

void verbs_poll_end(struct verbs_conn *c)
{
	if (c->cq.watching)
		io_watch_del(c->v->l, &c->cq.watch);
	c->cq.watching = false;
}

void verbs_poll_free(struct verbs_conn *c)
{
	ack_events(c->cq.send, &c->cq.send_events, 1);
	ack_events(c->cq.recv, &c->cq.recv_events, 1);
	if (c->cq.recv)
		ibv_destroy_cq(c->cq.recv);
	if (c->cq.send)
		ibv_destroy_cq(c->cq.send);
	c->cq.recv = c->cq.send = NULL;
	if (c->cq.channel)
		ibv_destroy_comp_channel(c->cq.channel);
	c->cq.channel = NULL;
}
