/* SPDX-License-Identifier: BSD-2-Clause */
/* conn.c: the life of an RDMA connection: up-calls of its queue pair, the
 * callbacks of its user, its end. */
#include <stdio.h>
#include <stdlib.h>

#include "lib/rdma/rdma.h"

/* ---- listeners ---- */

void lib_rdma_asked(struct iser_rdma *c)
{
	struct iser_rdma_listener *l = c->listener;

	if (!l)
		return;
	c->listener = NULL;
	if (l->asking-- == RDMA_ASKING_MAX && l->net)
		net_listener_pause(l->net, false);
}

/* ---- reports to the user ---- */

static void end_wait(struct iser_rdma *c, int err)
{
	if (!c->wait)
		return;
	c->wait->over = true;
	c->wait->err = err;
	c->wait = NULL;
}

void lib_rdma_closed(struct iser_rdma *c)
{
	c->state = RDMA_DOWN;
	lib_rdma_asked(c);
	end_wait(c, c->err ? c->err : ISER_E_CLOSED);
	if (c->freeing)
		return;
	if (c->err)
		lib_fail(c->ctx, c->err, "RDMA connection with %s: %s",
			 c->peer[0] ? c->peer : c->host, c->why);
	if (c->callbacks)
		c->callbacks->closed(c->arg, c, c->err);
	else
		lib_rdma_drop(c);
}

static struct iser_rdma_peer peer_of(const struct iser_rdma *c,
				     const struct rcap_cm *cm)
{
	return (struct iser_rdma_peer){ .private_data = cm->private_data,
					.private_len = cm->private_len,
					.ird = cm->ird,
					.ord = cm->ord,
					.address = c->peer };
}

/* ---- up-calls of the queue pair ---- */

static void on_request(void *arg, const struct rcap_cm *cm)
{
	struct iser_rdma *c = arg;
	struct iser_rdma_listener *l = c->listener;
	struct iser_rdma_peer peer = peer_of(c, cm);

	if (!l) { /* the listener was freed */
		iser_rdma_disconnect(c);
		return;
	}
	lib_rdma_asked(c);
	l->request(l->arg, c, &peer);
}

static void on_established(void *arg, const struct rcap_cm *cm)
{
	struct iser_rdma *c = arg;
	struct iser_rdma_peer peer = peer_of(c, cm);

	c->state = RDMA_UP;
	c->info.established = true;
	c->info.ird = c->qp->ird;
	c->info.ord = c->qp->ord;
	c->fill_info(c);
	end_wait(c, 0);
	if (c->callbacks && !c->freeing)
		c->callbacks->established(c->arg, c, &peer);
}

static void on_closed(void *arg, int err, const char *why)
{
	struct iser_rdma *c = arg;

	c->err = lib_rdma_error(err);
	snprintf(c->why, sizeof(c->why), "%s", why);
}

static const struct rcap_user rdma_user = {
	.connect_request = on_request,
	.established = on_established,
	.wr_done = lib_rdma_wr_done,
	.received = lib_rdma_received,
	.closed = on_closed,
};

void lib_rdma_set_qp(struct iser_rdma *c, struct rcap_qp *qp,
		     void (*fill_info)(struct iser_rdma *c))
{
	c->qp = qp;
	c->fill_info = fill_info;
	rcap_set_user(qp, &rdma_user, c);
	rcap_set_trace(qp, &c->ctx->trace);
}

/* ---- the end ---- */

void lib_rdma_flush_early(struct iser_rdma *c)
{
	struct list *n;

	while ((n = list_pop_front(&c->early)))
		lib_rdma_received(c, list_entry(n, struct rcap_recv, link),
				  ERR_ABORTED);
}

static void on_cancelled(struct io_defer *d)
{
	struct iser_rdma *c = container_of(d, struct iser_rdma, cancelled);

	c->err = ISER_E_CLOSED;
	snprintf(c->why, sizeof(c->why), "closed before it was connected");
	lib_rdma_flush_early(c);
	lib_rdma_closed(c);
}

void iser_rdma_disconnect(struct iser_rdma *c)
{
	if (c->connector) {
		net_connect_cancel(c->connector);
		c->connector = NULL;
		/* closed must not be called from within this call */
		io_loop_defer(c->ctx->loop, &c->cancelled);
	}
	if (c->qp)
		rcap_disconnect(c->qp);
}

void iser_rdma_terminate(struct iser_rdma *c, const char *why)
{
	if (c->qp)
		rcap_terminate(c->qp, ERR_PROTOCOL, why);
	else
		iser_rdma_disconnect(c);
}

void lib_rdma_drop(struct iser_rdma *c)
{
	io_defer_cancel(&c->cancelled);
	list_del(&c->link);
	free(c);
}

/* ---- the begin ---- */

struct iser_rdma *lib_rdma_new(struct iser_context *ctx,
			       const struct iser_rdma_options *options)
{
	struct iser_rdma *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->ctx = ctx;
	if (options)
		c->options = *options;
	c->cancelled.run = on_cancelled;
	list_init(&c->cancelled.link);
	list_init(&c->early);
	list_push_back(&ctx->rdma, &c->link);
	return c;
}

void iser_rdma_set_callbacks(struct iser_rdma *c,
			     const struct iser_rdma_callbacks *callbacks,
			     void *arg)
{
	c->callbacks = callbacks;
	c->arg = arg;
}

void iser_rdma_get_info(const struct iser_rdma *c, struct iser_rdma_info *info)
{
	*info = c->info;
	info->peer = c->peer;
	info->local = c->local;
}
