/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tx.c: from the queues to the stage. When the driver asks for bytes and the
 * stage is empty, as many queued PDUs as fit are encoded. Their numbers
 * (ExpCmdSN, ...) are those of that moment. When a PDU is sent, its task may
 * end.
 */
#include <string.h>

#include "datamover/tcp/internal.h"

static struct dm_task *task_at(struct list *link)
{
	struct tx_node *n = list_entry(link, struct tx_node, link);

	return dm_task_of_share(container_of(n, struct dmtcp_task, node));
}

static bool stage_next(struct dmtcp_conn *c, struct list *link)
{
	struct tx_node *n = list_entry(link, struct tx_node, link);

	if (n->kind == TX_CONTROL)
		return dmtcp_stage_control(
			c, container_of(n, struct dmtcp_control, node));
	if (c->dm.role == ISCSI_TARGET)
		return dmtcp_stage_data_in(c, task_at(link));
	return dmtcp_stage_command(c, task_at(link));
}

static struct dm_task *r2t_task(struct list *link)
{
	struct target_task *tt = list_entry(link, struct target_task, r2t_link);

	return dm_task_of_share(container_of(tt, struct dmtcp_task, t));
}

static bool stage_r2ts(struct dmtcp_conn *c)
{
	bool more = true;

	while (more && !c->recovery.first && !list_empty(&c->r2tq))
		more = dmtcp_stage_r2ts(c, r2t_task(c->r2tq.next));
	return more;
}

/* R2Ts go first, because the initiator waits for them with its data ready; then
 * all other PDUs in their order, and Data-Outs after the commands, which are
 * short. R2Ts may have to wait for one of the other PDUs. */
/* [RFC 7143: 4.2.5.2 #6] */
static void fill_stage(struct dmtcp_conn *c)
{
	bool more = stage_r2ts(c);

	while (more && !list_empty(&c->recovery.resends))
		more = dmtcp_stage_resend(c);
	if (more && !list_empty(&c->recovery.repairs))
		more = dmtcp_stage_acks(c);
	while (more && !list_empty(&c->txq))
		more = stage_next(c, c->txq.next);
	if (more)
		more = stage_r2ts(c);
	while (more && !list_empty(&c->dataq))
		more = dmtcp_stage_data_out(c, task_at(c->dataq.next));
}

unsigned dmtcp_tx_what(void *core, struct iovec *iov, unsigned max)
{
	struct dmtcp_conn *c = core;
	struct stage *s;
	unsigned n;

	dmtcp_rx_catch_up(c);
	if (c->fate == STREAM_CLOSE)
		return 0;
	if (!c->stage || c->stage->first == c->stage->niov) {
		if (!dmtcp_stage_open(c)) {
			dmtcp_fail_conn(c, ERR_NOMEM);
			return 0;
		}
		fill_stage(c);
	}
	s = c->stage;
	n = MIN(s->niov - s->first, max);
	memcpy(iov, s->iov + s->first, n * sizeof(*iov));
	if (n == 0 && c->resting)
		dmtcp_stage_free(c);
	if (n == 0 && c->leaving && !c->left) {
		c->left = true;
		c->cfg.rdma.drained(c->cfg.rdma.arg);
	}
	return n;
}

static void report_sent(struct dmtcp_conn *c, struct dm_task *t,
			enum dm_completion what)
{
	if (what == DM_RESPONSE_SENT) { /* Data-Outs may still come for t */
		if (c->rx.task == t)
			dmtcp_rx_forget(c, t);
		if (tcp_task(t)->t.getting)
			dmtcp_get_forget(c, t);
	}
	c->dm.up->data_completion_notify(&c->dm, t, what, 0);
}

static void control_sent(struct dmtcp_conn *c, struct dmtcp_control *q)
{
	if (q->retained)
		dmtcp_retained_sent(c, q);
	else
		dmtcp_control_free(c, q);
}

/* The transport took the last byte of p. */
static void finish_pdu(struct dmtcp_conn *c, struct stage_pdu *p)
{
	struct dm_task *t = p->task;

	if (p->control)
		control_sent(c, p->control);
	p->control = NULL;
	if (!t)
		return;
	p->task = NULL;
	tcp_task(t)->staged--;
	if (tcp_task(t)->releasing) {
		if (tcp_task(t)->staged == 0)
			c->dm.up->data_completion_notify(&c->dm, t, DM_RELEASED,
							 0);
		return;
	}
	if (p->notify)
		report_sent(c, t, p->what);
	else if (c->dm.role == ISCSI_TARGET && dmtcp_ends_now(t))
		report_sent(c, t, DM_RESPONSE_SENT);
	else if (c->dm.role == ISCSI_INITIATOR && tcp_task(t)->staged == 0 &&
		 tcp_task(t)->i.late)
		dmtcp_late_deliver(c, t);
}

/* The transport took n bytes of the iovecs. */
static void skip_iovecs(struct stage *s, size_t n)
{
	if (s->sent == s->bytes) { /* all of them, as most sends do */
		s->first = s->niov;
		return;
	}
	while (n > 0) {
		struct iovec *v = &s->iov[s->first];

		if (n < v->iov_len) {
			v->iov_base = (uint8_t *)v->iov_base + n;
			v->iov_len -= n;
			break;
		}
		n -= v->iov_len;
		s->first++;
	}
}

void dmtcp_tx_done(void *core, size_t n, xtime now)
{
	struct dmtcp_conn *c = core;
	struct stage *s = c->stage;

	c->now = now;
	c->stats.tx_bytes += n;
	s->sent += n;
	skip_iovecs(s, n);
	while (s->pdu < s->npdus && s->pdus[s->pdu].end <= s->sent)
		finish_pdu(c, &s->pdus[s->pdu++]);
}

void dmtcp_tx_drop_all(struct dmtcp_conn *c)
{
	struct stage *s = c->stage;

	for (; s && s->pdu < s->npdus; s->pdu++)
		if (s->pdus[s->pdu].control)
			control_sent(c, s->pdus[s->pdu].control);
	dmtcp_stage_free(c);
	dmtcp_retained_free(c);
	list_for_each_safe(it, &c->txq) {
		struct tx_node *n = list_entry(it, struct tx_node, link);

		list_del(it);
		if (n->kind == TX_CONTROL)
			dmtcp_control_free(
				c, container_of(n, struct dmtcp_control, node));
	}
	list_for_each_safe(it, &c->dataq)
		list_del(it);
	list_for_each_safe(it, &c->r2tq)
		list_del(it);
	list_for_each_safe(it, &c->recovery.awaited)
		list_del(it);
}
