/* SPDX-License-Identifier: BSD-2-Clause */
/* msg.c: Sends: their memory, what goes into them, and who is told when they
 * are out (RFC 7145 §7.3, §9.2). */
#include <stdlib.h>
#include <string.h>

#include "datamover/iser/internal.h"

#define SPARES_MAX 512

struct iser_msg *dmiser_msg_new(struct dmiser_conn *c, size_t room)
{
	struct list *n = list_pop_front(&c->spares);
	struct iser_msg *m;

	if (n) {
		m = list_entry(n, struct iser_msg, link);
		c->nspares--;
	} else {
		m = malloc(sizeof(*m));
		if (!m)
			return NULL;
		list_init(&m->link);
		m->big = NULL;
	}
	if (room > MSG_BYTES) {
		m->big = malloc(room);
		if (!m->big) {
			dmiser_msg_free(c, m);
			return NULL;
		}
	}
	m->wr = (struct rcap_wr){ .op = RCAP_SEND, .tag = WR_MSG };
	if (!rule(c, DMISER_PLAIN_SEND))
		m->wr.flags = RCAP_SOLICITED; /* §7.3: "should be used" */
	m->kind = MSG_PLAIN;
	m->task = NULL;
	m->iov[0].iov_base = m->big ? m->big : m->bytes;
	m->iov[0].iov_len = 0;
	m->wr.data = (struct bufv){ m->iov, 1, 0 };
	return m;
}

void dmiser_msg_free(struct dmiser_conn *c, struct iser_msg *m)
{
	free(m->big);
	m->big = NULL;
	if (c->nspares >= SPARES_MAX) {
		free(m);
		return;
	}
	c->nspares++;
	list_push_front(&c->spares, &m->link);
}

static void drop_list(struct list *l)
{
	struct list *n;

	while ((n = list_pop_front(l))) {
		struct iser_msg *m = list_entry(n, struct iser_msg, link);

		free(m->big);
		free(m);
	}
}

void dmiser_msgs_drop(struct dmiser_conn *c)
{
	drop_list(&c->spares);
	drop_list(&c->waiting);
	c->nspares = 0;
}

/* [RFC 7145: 7.3 #2, 9.1 #1] */
struct iser_msg *dmiser_msg_pdu(struct dmiser_conn *c,
				const struct iser_header *h,
				const struct iscsi_pdu *pdu, const uint8_t *ahs,
				const uint8_t *data)
{
	size_t pad = round_up4(pdu->dsl) - pdu->dsl, at = ISER_PDU_LEN;
	/* data that are not copied here follow as further pieces, unpadded */
	size_t own = data ? pdu->dsl + pad : 0;
	struct iser_msg *m = dmiser_msg_new(c, at + pdu->ahs_len + own);
	uint8_t *p;

	if (!m)
		return NULL;
	p = m->iov[0].iov_base;
	iser_header_encode(h, p);
	iscsi_bhs_encode(pdu, p + ISER_HEADER_LEN);
	dm_trace_pdu(c->face, true, p + ISER_HEADER_LEN);
	if (pdu->ahs_len) {
		memcpy(p + at, ahs, pdu->ahs_len);
		at += pdu->ahs_len;
	}
	if (own) {
		memcpy(p + at, data, pdu->dsl);
		memset(p + at + pdu->dsl, 0, pad);
		at += own;
	}
	m->iov[0].iov_len = m->wr.data.len = at;
	return m;
}

/* ---- out ---- */

/* [RFC 7145: 5.1.3 #3] [RFC 5047: 6 #1-2] */
int dmiser_send(struct dmiser_conn *c, struct rcap_wr *first,
		struct iser_msg *m)
{
	struct rcap_wr *chain[2] = { first, &m->wr };

	if (m->task)
		priv(m->task)->busy++;
	if (first)
		priv(m->task)->busy++;
	c->stats.tx_pdus++;
	if (!c->established || c->hello == HELLO_AWAIT) {
		/* nothing has a chain yet: no command was received */
		assert(!first);
		list_push_back(&c->waiting, &m->link);
		return 0;
	}
	/* refused only when the connection is going: then nobody is told any
	 * more but by the terminate notice */
	if (rcap_post(c->qp, first ? chain : chain + 1, first ? 2 : 1)) {
		dmiser_msg_free(c, m);
		return ERR_CLOSED;
	}
	return 0;
}

void dmiser_send_waiting(struct dmiser_conn *c)
{
	struct list *n;

	if (!c->established || c->hello == HELLO_AWAIT)
		return;
	while ((n = list_pop_front(&c->waiting))) {
		struct iser_msg *m = list_entry(n, struct iser_msg, link);
		struct rcap_wr *wr = &m->wr;

		if (rcap_post(c->qp, &wr, 1)) {
			dmiser_msg_free(c, m);
			return;
		}
	}
}

void dmiser_msg_done(struct dmiser_conn *c, struct iser_msg *m, int err)
{
	struct dm_task *t = m->task;
	enum msg_kind kind = m->kind;

	dmiser_msg_free(c, m);
	if (!t)
		return;
	priv(t)->busy--;
	if (err)
		return; /* the terminate notice tells all */
	if (kind == MSG_RESPONSE)
		c->face->up->data_completion_notify(c->face, t,
						    DM_RESPONSE_SENT, 0);
	else
		dmiser_task_idle(c, t);
}

/* ---- Send_Control ---- */

static void fill_numbers(const struct dmiser_conn *c, struct iscsi_pdu *pdu)
{
	const struct iscsi_numbers *n = c->face->numbers;

	if (c->face->role == ISCSI_INITIATOR) {
		pdu->expstatsn = n->expstatsn;
		return;
	}
	pdu->expcmdsn = n->expcmdsn;
	pdu->maxcmdsn = n->maxcmdsn;
}

/* §8.1.1.3, §8.1.2: PDUs that the other side does not expect. */
static bool is_unexpected(const struct dmiser_conn *c,
			  const struct iscsi_pdu *p)
{
	if (c->face->role == ISCSI_INITIATOR) /* an answer is expected */
		return p->immediate && !(p->op == ISCSI_NOP_OUT &&
					 p->ttt != ISCSI_RESERVED_TAG);
	return p->op == ISCSI_ASYNC_MESSAGE || p->op == ISCSI_REJECT ||
	       (p->op == ISCSI_NOP_IN && p->itt == ISCSI_RESERVED_TAG);
}

/* [RFC 7145: 8.1.1.3 #1, 8.1.2 #1] */
static int count_unexpected(struct dmiser_conn *c, const struct iscsi_pdu *p)
{
	uint32_t most = c->params.max_outstanding_unexpected_pdus;
	bool target = c->face->role == ISCSI_TARGET;

	if (!c->full_feature || !is_unexpected(c, p))
		return 0;
	if (target && !c->heard && rule(c, DMISER_QUIET_START))
		return ERR_BUSY;
	if (!target && most == 0) /* it takes any number (§6.7) */
		return 0;
	most = most ? MIN(most, (uint32_t)UNEXPECTED_MAX) : UNEXPECTED_MAX;
	if (c->nunexpected >= most)
		return ERR_BUSY;
	c->unexpected[c->nunexpected].sn = target ? p->statsn : p->cmdsn;
	c->unexpected[c->nunexpected].ttt =
		p->op == ISCSI_NOP_IN ? p->ttt : ISCSI_RESERVED_TAG;
	c->nunexpected++;
	return 0;
}

static uint32_t data_limit(const struct dmiser_conn *c)
{
	uint32_t most = c->params.max_send_dsl;

	if (!c->full_feature)
		return LOGIN_DSL;
	if (c->face->max_control_data)
		most = MIN(most, c->face->max_control_data);
	return most;
}

/* What the peer declared (§6.8); 0: any length. */
static uint32_t max_ahs(const struct dmiser_conn *c)
{
	uint32_t most = c->params.max_ahs_length;

	return most ? most : ISCSI_MAX_AHS_LEN;
}

/* Sense that the peer has no room for is cut (§11.4.7: SenseLength tells). */
static void cut_sense(const struct dmiser_conn *c, struct dm_control *ctl,
		      uint8_t *copy)
{
	uint32_t most = data_limit(c);

	if (ctl->pdu.op != ISCSI_SCSI_RESPONSE || ctl->pdu.dsl <= most)
		return;
	memcpy(copy, ctl->data, most);
	put_be16(copy, (uint16_t)(most - 2));
	ctl->data = copy;
	ctl->pdu.dsl = most;
}

/* [RFC 7145: 5.2.1 #1, 5.2.2 #2, 7.3 #1, 7.3.3 #1, 7.3.7 #1-2, 7.3.8 #1-2,
 * 7.3.10 #1, 7.3.12 #1-2, 7.3.13 #1-2] */
int dmiser_send_control(struct dm_conn *dm, struct dm_task *t,
			const struct dm_control *ctl)
{
	static const struct iser_header plain = { .opcode = ISER_CONTROL };
	struct dmiser_conn *c = conn_of(dm);
	struct dm_control k = *ctl;
	uint8_t sense[LOGIN_DSL];
	struct iser_msg *m;
	int err;

	if (k.pdu.ahs_len > max_ahs(c))
		return ERR_TOO_LONG;
	if (t && k.pdu.op == ISCSI_SCSI_COMMAND) {
		err = count_unexpected(c, &k.pdu);
		return err ? err : dmiser_send_command(c, t, ctl);
	}
	fill_numbers(c, &k.pdu);
	if (data_limit(c) <= sizeof(sense))
		cut_sense(c, &k, sense);
	if (k.pdu.dsl > data_limit(c))
		return ERR_TOO_LONG;
	err = count_unexpected(c, &k.pdu);
	if (err)
		return err;
	if (t)
		return dmiser_send_response(c, t, &k, NULL);
	m = dmiser_msg_pdu(c, &plain, &k.pdu, k.ahs, k.data);
	return m ? dmiser_send(c, NULL, m) : ERR_NOMEM;
}
