/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * control.c: control-type PDUs on their way out: their memory, the queue, and
 * the numbers that a header gets when it is encoded.
 */
#include <stdlib.h>
#include <string.h>

#include "datamover/tcp/stage.h"

static struct dmtcp_control *new_control(struct dmtcp_conn *c, size_t bytes)
{
	struct dmtcp_control *q = c->controls.spares;
	size_t room = MAX(bytes, (size_t)CONTROL_BYTES);

	if (q && bytes <= CONTROL_BYTES) {
		c->controls.spares = q->next_spare;
		c->controls.nspares--;
		return q;
	}
	q = malloc(sizeof(*q) + room);
	if (q)
		q->size = sizeof(*q) + room;
	return q;
}

void dmtcp_control_free(struct dmtcp_conn *c, struct dmtcp_control *q)
{
	c->controls.queued -= q->size;
	if (q->size > sizeof(*q) + CONTROL_BYTES ||
	    c->controls.nspares == CONTROL_SPARES_MAX) {
		free(q);
		return;
	}
	q->next_spare = c->controls.spares;
	c->controls.spares = q;
	c->controls.nspares++;
}

void dmtcp_spares_free(struct dmtcp_conn *c)
{
	while (c->controls.spares) {
		struct dmtcp_control *q = c->controls.spares;

		c->controls.spares = q->next_spare;
		free(q);
	}
	c->controls.nspares = 0;
}

/* Retained PDUs count, too: a window of responses. */
static size_t most_queued(const struct dmtcp_conn *c)
{
	return c->recovery.on ? 2 * c->cfg.max_queued_control
			      : c->cfg.max_queued_control;
}

static void fill_control(struct dmtcp_control *q, struct dm_task *t,
			 const struct iscsi_pdu *pdu)
{
	q->node.kind = TX_CONTROL;
	q->task = t;
	q->is_final_login = false;
	q->retained = q->acked = q->resending = false;
	q->staged = q->resent = 0;
	q->pdu = *pdu;
	q->ahs_len = pdu->ahs_len;
}

struct dmtcp_control *dmtcp_control_new(struct dmtcp_conn *c, struct dm_task *t,
					const struct iscsi_pdu *pdu)
{
	struct dmtcp_control *q = new_control(c, 0);

	if (!q)
		return NULL;
	fill_control(q, t, pdu);
	c->controls.queued += q->size;
	return q;
}

int dmtcp_queue_control(struct dmtcp_conn *c, struct dm_task *t,
			const struct dm_control *ctl, bool final_login)
{
	size_t bytes = (size_t)ctl->pdu.ahs_len + ctl->pdu.dsl;
	struct dmtcp_control *q;

	if (ctl->pdu.dsl > c->max_send_dsl)
		return ERR_TOO_LONG;
	if (sizeof(*q) + MAX(bytes, (size_t)CONTROL_BYTES) >
	    most_queued(c) - c->controls.queued) {
		dmtcp_fail_conn(c, ERR_LIMIT); /* the peer does not read */
		return ERR_LIMIT;
	}
	q = new_control(c, bytes);
	if (!q)
		return ERR_NOMEM;
	fill_control(q, t, &ctl->pdu);
	q->is_final_login = final_login;
	if (ctl->pdu.ahs_len)
		memcpy(q->bytes, ctl->ahs, ctl->pdu.ahs_len);
	if (ctl->pdu.dsl)
		memcpy(q->bytes + q->ahs_len, ctl->data, ctl->pdu.dsl);
	if (t)
		tcp_task(t)->response = q;
	c->controls.queued += q->size;
	list_push_back(&c->txq, &q->node.link);
	dmtcp_kick(c);
	return 0;
}

/* [RFC 7143: 13.1 #2] */
static void begin_digests(struct dmtcp_conn *c)
{
	c->tx_digest.header = c->params.header_digest;
	c->tx_digest.data = c->params.data_digest;
}

/* §11.4.8: ExpDataSN counts the Data-Ins of the task, but no R2Ts. */
/* [RFC 7143: 11.4.8 #1] */
static void set_exp_datasn(struct dmtcp_control *q)
{
	const struct target_task *tt = &tcp_task(q->task)->t;

	/* the first Data-In of a bidirectional command follows its last R2T */
	q->pdu.rsp.exp_datasn = q->pdu.rsp.response || tt->datasn < tt->r2tsn
					? 0
					: tt->datasn - tt->r2tsn;
	q->pdu.rsp.snack_tag = tt->snack.tag; /* §11.4.4 */
	tcp_task(q->task)->response = NULL;
}

/* Encodes q with the numbers of this moment; NULL: there is no room. */
static struct stage_pdu *stage_control(struct dmtcp_conn *c,
				       struct dmtcp_control *q)
{
	struct iovec iov = { q->bytes + q->ahs_len, q->pdu.dsl };
	struct bufv data = bufv_of(&iov, 1);
	struct stage_pdu *p;

	if (!dmtcp_stage_has_room(c, &data, 0))
		return NULL;
	dm_set_numbers(&c->dm, &q->pdu);
	if (q->task)
		set_exp_datasn(q);
	iscsi_bhs_encode(&q->pdu, dmtcp_stage_bhs(c));
	p = dmtcp_stage_pdu(c, q->bytes, q->ahs_len, &data, 0, q->pdu.dsl,
			    false);
	p->control = q;
	if (q->task)
		dmtcp_stage_task(p, q->task);
	return p;
}

/* [RFC 7143: 11.16 #3] */
bool dmtcp_stage_again(struct dmtcp_conn *c, struct dmtcp_control *q)
{
	if (!stage_control(c, q))
		return false;
	q->staged++;
	return true;
}

static bool is_retained(const struct dmtcp_conn *c,
			const struct dmtcp_control *q)
{
	return c->recovery.on && c->dm.role == ISCSI_TARGET &&
	       dmtcp_takes_statsn(&q->pdu) && !q->is_final_login;
}

bool dmtcp_stage_control(struct dmtcp_conn *c, struct dmtcp_control *q)
{
	struct stage_pdu *p = stage_control(c, q);

	if (!p)
		return false;
	list_del(&q->node.link);
	if (c->recovery.first == &q->node)
		c->recovery.first = NULL;
	if (c->dm.role == ISCSI_TARGET && dmtcp_takes_statsn(&q->pdu))
		c->tx_statsn = q->pdu.statsn + 1;
	if (is_retained(c, q)) { /* its task ends later: retain.c */
		q->retained = true;
		q->staged = 1;
		list_push_back(&c->recovery.unacked, &q->node.link);
		return true;
	}
	if (q->task) {
		p->notify = true;
		p->what = DM_RESPONSE_SENT;
	}
	if (q->is_final_login)
		begin_digests(c);
	if (q->is_final_login && c->recovery.on) /* a login is not recovered */
		c->recovery.acked = c->tx_statsn;
	return true;
}
