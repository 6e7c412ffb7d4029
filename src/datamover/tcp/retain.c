/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * retain.c: at ErrorRecoveryLevel 1 a target keeps each PDU that has a StatSN, and
 * the task and read data of each SCSI status, until the initiator's ExpStatSN
 * acknowledges it (RFC 7143 §4.2.2.2, §11.16): a SNACK may ask for it again.
 *
 * Read data are kept rather than read again, because a PDU that is sent again has
 * to be an exact replica (§11.16), and the blocks may have been written meanwhile. So
 * the role keeps the buffer of the command, which its session's share of the pool
 * limits. Memory of the backstore it keeps by a copy, when it is asked to (the up-call
 * data_again) or when the blocks are written before that. A response also keeps its
 * task, so that the command window closes before there is too much to keep.
 */
#include <stdlib.h>

#include "datamover/tcp/internal.h"

static struct tx_node *node_at(struct list *link)
{
	return list_entry(link, struct tx_node, link);
}

static struct dm_task *node_task(struct tx_node *n)
{
	return dm_task_of_share(container_of(n, struct dmtcp_task, node));
}

static uint32_t node_statsn(struct tx_node *n)
{
	if (n->kind == TX_CONTROL)
		return container_of(n, struct dmtcp_control, node)->pdu.statsn;
	return tcp_task(node_task(n))->t.statsn;
}

bool dmtcp_ends_now(struct dm_task *t)
{
	struct target_task *tt = &tcp_task(t)->t;

	if (!tt->acked || tcp_task(t)->staged)
		return false;
	tt->acked = false; /* reported once */
	return true;
}

void dmtcp_retained_sent(struct dmtcp_conn *c, struct dmtcp_control *q)
{
	q->staged--;
	if (q->acked && q->staged == 0)
		dmtcp_control_free(c, q);
}

static void acknowledge_control(struct dmtcp_conn *c, struct dmtcp_control *q)
{
	dmtcp_resend_forget(c, NULL, q);
	q->acked = true;
	if (q->staged == 0)
		dmtcp_control_free(c, q);
}

/* The initiator has got the PDU with this StatSN, and all data before it. */
static void acknowledge_node(struct dmtcp_conn *c, struct tx_node *n)
{
	struct dm_task *t;

	list_del(&n->link);
	if (n->kind == TX_TASK) {
		t = node_task(n);
	} else {
		struct dmtcp_control *q =
			container_of(n, struct dmtcp_control, node);

		t = q->task;
		acknowledge_control(c, q);
	}
	if (!t)
		return;
	dmtcp_resend_forget(c, t, NULL);
	tcp_task(t)->t.acked = true;
	if (!dmtcp_ends_now(t))
		return; /* tx.c reports it */
	dmtcp_get_forget(c, t);
	c->dm.up->data_completion_notify(&c->dm, t, DM_RESPONSE_SENT, 0);
}

/* An ExpStatSN of a PDU that was not sent yet, or of one before the last ExpStatSN,
 * is ignored. */
void dmtcp_acknowledge(struct dmtcp_conn *c, uint32_t expstatsn)
{
	struct recovery *r = &c->recovery;

	if (!sn_lt(r->acked, expstatsn) || sn_lt(c->tx_statsn, expstatsn))
		return;
	r->acked = expstatsn;
	while (!list_empty(&r->unacked)) {
		struct tx_node *n = node_at(r->unacked.next);

		if (!sn_lt(node_statsn(n), expstatsn))
			return;
		acknowledge_node(c, n);
	}
}

void dmtcp_retained_free(struct dmtcp_conn *c)
{
	struct list *it;

	while ((it = list_pop_front(&c->recovery.resends))) {
		c->recovery.nresends--;
		free(list_entry(it, struct dmtcp_resend, link));
	}
	while ((it = list_pop_front(&c->recovery.unacked)))
		if (node_at(it)->kind == TX_CONTROL)
			dmtcp_control_free(c, container_of(node_at(it),
							   struct dmtcp_control,
							   node));
}
