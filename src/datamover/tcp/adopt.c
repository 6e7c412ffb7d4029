/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * adopt.c: a task of a connection that has ended goes on over another one (RFC 7143
 * §7.2.2). Its share still has what the old connection knew of its data: which Data-Ins
 * were sent and acknowledged, and which write data came.
 */
#include "datamover/tcp/internal.h"

/* All write data before this byte came. Data after a gap, and those with an error, are
 * asked for again. */
static uint32_t end_of_received(const struct dmtcp_task *old,
				const struct dm_task *t)
{
	const struct target_task *tt = &old->t;
	uint32_t end = tt->getting ? tt->get_next : t->out_done;

	if (tt->data_err)
		return 0;
	if (tt->unsol == UNSOL_OPEN) /* in any order (order.c): the prefix */
		end = MIN(end, tt->unsol_off);
	if (tt->await.lost.from != tt->await.lost.to)
		end = MIN(end, tt->await.lost.from);
	for (unsigned i = 0; tt->getting && i < MAX_R2T; i++) {
		const struct burst *b = &old->bursts[i];

		if (b->active)
			end = MIN(end, b->off);
		if (b->active && b->lost.from != b->lost.to)
			end = MIN(end, b->lost.from);
	}
	return end;
}

/* The first R2T that the initiator has not acknowledged, by its data or by
 * ExpDataSN. */
static uint32_t next_r2tsn(const struct dmtcp_task *old, uint32_t exp)
{
	uint32_t first = old->t.r2tsn;

	for (unsigned i = 0; old->has_bursts && i < MAX_R2T; i++)
		if (old->bursts[i].active)
			first = MIN(first, old->bursts[i].sn);
	return exp > first && exp <= old->t.r2tsn ? exp : first;
}

/* Any other ExpDataSN is ignored. If the initiator has changed
 * MaxRecvDataSegmentLength on the way, it does not lead to a byte. */
static uint32_t next_datasn(const struct target_task *old, uint32_t exp)
{
	bool is_valid = exp > old->ack_sn && exp <= old->datasn;

	return is_valid && !old->mixed ? exp : old->ack_sn;
}

/* The response to the TASK REASSIGN is the last control-type PDU of the queue. */
static const struct tx_node *last_control(const struct dmtcp_conn *c)
{
	for (const struct list *it = c->txq.prev; it != &c->txq;
	     it = it->prev) {
		const struct tx_node *n = list_entry(it, struct tx_node, link);

		if (n->kind == TX_CONTROL)
			return n;
	}
	return NULL;
}

/* [RFC 7143: 7.2.2 #7, 11.5.6 #2 #4] */
void dmtcp_adopt(struct dm_conn *dm, struct dm_task *t, uint32_t exp_datasn,
		 const struct dm_remote *remote)
{
	struct dmtcp_conn *c = dm->impl;
	const struct dmtcp_task old = *tcp_task(t);
	struct target_task *tt = &tcp_task(t)->t;
	uint32_t end = end_of_received(&old, t);

	(void)remote;
	c->recovery.first = last_control(c);
	dm_task_init(t);
	t->out_done = end;
	tt->r2tsn = next_r2tsn(&old, exp_datasn);
	tt->ack_sn = next_datasn(&old.t, exp_datasn);
	tt->datasn = tt->ack_sn;
	tt->ack_off = dmtcp_offset_of(c, &old.t, tt->ack_sn);
}
