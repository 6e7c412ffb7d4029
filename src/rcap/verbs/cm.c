/* SPDX-License-Identifier: BSD-2-Clause */
/* cm.c: connecting and accepting by librdmacm; the table of the provider. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rcap/verbs/internal.h"

#define CLOSING_MAX (3 * XTIME_S)

/* ---- the end ---- */

static void end_conn(struct io_defer *d)
{
	struct verbs_conn *c = container_of(d, struct verbs_conn, end.report);

	io_timer_clear(c->v->l, &c->end.timer);
	verbs_work_end(c, true);
	c->qp.state = RCAP_CLOSED;
	c->qp.user->closed(c->qp.arg, c->end.err, c->end.why);
	if (c->end.gone)
		c->end.gone(c->end.gone_arg);
}

/* The end of the next turn disconnects, once all that was posted is done. */
static void disconnect_now(struct verbs_conn *c)
{
	c->end.peer_first = false;
	c->end.disconnecting = true;
	io_timer_set(c->v->l, &c->end.timer, io_now_exact() + CLOSING_MAX);
	io_loop_defer(c->v->l, &c->turn);
}

static void timer_fired(struct io_timer *t)
{
	struct verbs_conn *c = container_of(t, struct verbs_conn, end.timer);

	if (c->end.peer_first)
		disconnect_now(c);
	else if (c->qp.state < RCAP_ESTABLISHED)
		verbs_over(c, ERR_TIMEOUT, "no answer in time");
	else
		verbs_over(c, c->end.err, "closed");
}

/* ---- the provider's table ---- */

static int accept_conn(struct rcap_qp *qp, const struct rcap_cm *cm)
{
	struct verbs_conn *c = conn_of(qp);
	struct rdma_conn_param p = {
		.private_data = cm->private_data,
		.private_data_len = (uint8_t)cm->private_len,
		.rnr_retry_count = 7,
		.retry_count = 7,
	};

	if (cm->private_len > PRIVATE_MAX)
		return ERR_TOO_LONG;
	verbs_push_recvs(c); /* the peer speaks at once */
	c->qp.ird = MIN(c->qp.ird, cm->ird);
	c->qp.ord = MIN(c->qp.ord, cm->ord);
	p.responder_resources = (uint8_t)c->qp.ird;
	p.initiator_depth = (uint8_t)c->qp.ord;
	if (rdma_accept(c->id, &p))
		verbs_over(c, ERR_RESET, "accept: %s", strerror(errno));
	return 0;
}

static int reject_conn(struct rcap_qp *qp, const struct rcap_cm *cm)
{
	struct verbs_conn *c = conn_of(qp);

	rdma_reject(c->id, cm->private_data,
		    (uint8_t)MIN(cm->private_len, (size_t)PRIVATE_MAX));
	verbs_over(c, ERR_DENIED, "rejected the connection");
	return 0;
}

static void disconnect(struct rcap_qp *qp, xtime grace)
{
	struct verbs_conn *c = conn_of(qp);

	if (qp->state != RCAP_ESTABLISHED) {
		verbs_over(c, ERR_CLOSED, "closed during start-up");
		return;
	}
	qp->state = RCAP_CLOSING;
	if (!grace) {
		disconnect_now(c);
		return;
	}
	c->end.peer_first = true;
	io_timer_set(c->v->l, &c->end.timer, io_now_exact() + grace);
}

static void terminate(struct rcap_qp *qp, int err, const char *why)
{
	verbs_over(conn_of(qp), err, "%s", why);
}

const struct rcap_ops verbs_rcap_ops = {
	.accept = accept_conn,
	.reject = reject_conn,
	.post = verbs_post,
	.post_recv = verbs_post_recv,
	.reg = verbs_reg,
	.invalidate = verbs_invalidate,
	.disconnect = disconnect,
	.terminate = terminate,
};

/* ---- objects ---- */

struct verbs_conn *verbs_conn_new(struct verbs *v,
				  const struct verbs_config *cfg)
{
	struct verbs_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->kind = VERBS_CONN;
	c->v = v;
	c->cfg = *cfg;
	c->qp.ops = &verbs_rcap_ops;
	c->end.timer.fire = timer_fired;
	c->end.report.run = end_conn;
	list_init(&c->end.report.link);
	list_init(&c->turn.link);
	list_init(&c->sq.pending);
	list_init(&c->sq.owed);
	list_init(&c->sq.flight);
	list_init(&c->rq.pending);
	list_init(&c->rq.held);
	list_init(&c->sq.free_transfers);
	list_init(&c->regions);
	c->cfg.private_len = MIN(cfg->private_len, (size_t)PRIVATE_MAX);
	if (c->cfg.private_len)
		memcpy(c->private_data, cfg->private_data, c->cfg.private_len);
	list_push_back(&v->conns, &c->link);
	return c;
}

void verbs_conn_free(struct verbs_conn *c)
{
	if (!c)
		return;
	io_timer_clear(c->v->l, &c->end.timer);
	if (c->cq.channel) /* the connection never reached its end */
		verbs_work_end(c, false);
	io_defer_cancel(&c->end.report);
	io_defer_cancel(&c->turn);
	if (c->id)
		rdma_destroy_id(c->id);
	verbs_device_put(c->dev);
	list_del(&c->link);
	free(c);
}

static int start_conn(struct verbs_conn *c, const struct sockaddr *dst)
{
	int err = verbs_channel(c->v);

	if (!err)
		err = verbs_watch(c->v);
	if (err)
		return err;
	if (rdma_create_id(c->v->channel, &c->id, c, RDMA_PS_TCP) ||
	    rdma_resolve_addr(c->id, NULL, (struct sockaddr *)(uintptr_t)dst,
			      2000))
		return -errno;
	return io_timer_set(c->v->l, &c->end.timer,
			    io_now_exact() + c->cfg.connect_time);
}

struct verbs_conn *verbs_connect(struct verbs *v, const struct sockaddr *dst,
				 const struct verbs_config *cfg, int *err)
{
	struct verbs_conn *c = verbs_conn_new(v, cfg);

	*err = -ENOMEM;
	if (!c)
		return NULL;
	*err = start_conn(c, dst);
	if (!*err)
		return c;
	verbs_conn_free(c);
	return NULL;
}

/* ---- events ---- */

static void address_known(struct verbs_conn *c)
{
	if (rdma_resolve_route(c->id, 2000))
		verbs_over(c, ERR_RESET, "route: %s", strerror(errno));
}

static void route_known(struct verbs_conn *c)
{
	struct rdma_conn_param p = {
		.private_data = c->private_data,
		.private_data_len = (uint8_t)c->cfg.private_len,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
	int err = verbs_work_new(c);

	if (err) {
		verbs_over(c, ERR_NOMEM, "queue pair: %s", strerror(-err));
		return;
	}
	p.responder_resources = (uint8_t)c->cfg.ird;
	p.initiator_depth = (uint8_t)c->cfg.ord;
	if (rdma_connect(c->id, &p))
		verbs_over(c, ERR_RESET, "connect: %s", strerror(errno));
}

static void conn_established(struct verbs_conn *c,
			     const struct rdma_cm_event *ev)
{
	const struct rdma_conn_param *p = &ev->param.conn;
	struct rcap_cm peer = { .ird = c->cfg.ird, .ord = c->cfg.ord };
	bool active = c->qp.state == RCAP_STARTING;

	if (c->end.begun)
		return;
	io_timer_clear(c->v->l, &c->end.timer);
	if (active) {
		peer.ird = (uint16_t)MIN((int)c->cfg.ird,
					 (int)p->responder_resources);
		peer.ord =
			(uint16_t)MIN((int)c->cfg.ord, (int)p->initiator_depth);
		/* more than the peer issues is harmless */
		c->qp.ird = c->cfg.ird;
		c->qp.ord = peer.ord;
		peer.private_data = p->private_data;
		peer.private_len = p->private_data ? p->private_data_len : 0;
	}
	c->qp.state = RCAP_ESTABLISHED;
	c->qp.user->established(c->qp.arg, &peer);
	verbs_poll(c); /* messages that arrived before this event */
}

void verbs_conn_event(struct verbs_conn *c, const struct rdma_cm_event *ev)
{
	switch (ev->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		address_known(c);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		route_known(c);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		conn_established(c, ev);
		break;
	case RDMA_CM_EVENT_REJECTED:
		verbs_over(c, ERR_DENIED,
			   "the peer rejected the RDMA connection (%d)",
			   ev->status);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		/* messages that arrived before this event count */
		verbs_poll(c);
		verbs_over(c, 0, "closed");
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		verbs_over(c, ERR_RESET, "the RDMA device was removed");
		verbs_device_removed(c->v, c->id->verbs);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		verbs_over(c, ERR_RESET, "%s (%d)", rdma_event_str(ev->event),
			   ev->status);
		break;
	}
}
