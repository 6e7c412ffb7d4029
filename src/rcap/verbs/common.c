/* SPDX-License-Identifier: BSD-2-Clause */
/* common.c: functions that the other files of this room call, and that call
 * none of them. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>

#include "rcap/verbs/internal.h"

/* ---- struct verbs ---- */

void verbs_report(struct verbs *v, const char *fmt, ...)
{
	char text[200];
	va_list ap;

	if (!v->host.event)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	v->host.event(v->host.arg, text);
}

int verbs_channel(struct verbs *v)
{
	if (v->channel)
		return 0;
	v->channel = rdma_create_event_channel();
	if (!v->channel)
		return -errno;
	fcntl(v->channel->fd, F_SETFL,
	      fcntl(v->channel->fd, F_GETFL) | O_NONBLOCK);
	return 0;
}

int verbs_watch(struct verbs *v)
{
	int err;

	if (v->watching)
		return 0;
	v->watch.fd = v->channel->fd;
	v->watch.want = IO_IN;
	err = io_watch_add(v->l, &v->watch);
	v->watching = !err;
	return err;
}

void verbs_listener_lost(struct verbs_listener *l)
{
	if (l->lost || !l->id)
		return;
	/* its cm_id may belong to the event that is being handled */
	l->lost = true;
	io_loop_defer(l->v->l, &l->v->tidy);
}

/* ---- connections ---- */

void verbs_over(struct verbs_conn *c, int err, const char *fmt, ...)
{
	va_list ap;

	if (c->end.begun)
		return;
	c->end.begun = true;
	if (!c->end.why[0]) {
		c->end.err = err;
		va_start(ap, fmt);
		vsnprintf(c->end.why, sizeof(c->end.why), fmt, ap);
		va_end(ap);
	}
	if (c->qp.state == RCAP_ESTABLISHED || c->qp.state == RCAP_CLOSING)
		rdma_disconnect(c->id);
	c->qp.state = MAX(c->qp.state, RCAP_CLOSING);
	io_loop_defer(c->v->l, &c->end.report);
}

/* All that was posted is done: now it may go. */
void verbs_drained(struct verbs_conn *c)
{
	if (!c->end.disconnecting || c->end.begun ||
	    c->qp.state != RCAP_CLOSING)
		return;
	rdma_disconnect(c->id); /* DISCONNECTED follows, or the timer */
}

/* In the order of the posts: a copied request waits for earlier ones that are
 * not. */
void verbs_give_back(struct verbs_conn *c)
{
	while (!list_empty(&c->sq.owed) && !c->end.begun) {
		struct rcap_wr *wr =
			list_entry(c->sq.owed.next, struct rcap_wr, link);

		if (wr->local != WR_FINISHED)
			return;
		list_del(&wr->link);
		c->qp.user->wr_done(c->qp.arg, wr, 0);
	}
}
