/* SPDX-License-Identifier: BSD-2-Clause */
/* msg.c: Sends: their memory, their content, and how they are posted (RFC 7145
 * §7.3, §9.2). */
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
	if (!has_rule(c, DMISER_PLAIN_SEND))
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

static void free_msgs(struct list *l)
{
	struct list *n;

	while ((n = list_pop_front(l))) {
		struct iser_msg *m = list_entry(n, struct iser_msg, link);

		free(m->big);
		free(m);
	}
}

void dmiser_spares_free(struct dmiser_conn *c)
{
	free_msgs(&c->spares);
	c->nspares = 0;
}

void dmiser_msgs_free(struct dmiser_conn *c)
{
	dmiser_spares_free(c);
	free_msgs(&c->waiting);
}

/* [RFC 7145: 7.3 #2, 9.1 #1] */
struct iser_msg *dmiser_msg_pdu(struct dmiser_conn *c,
				const struct iser_header *h,
				const struct iscsi_pdu *pdu, const uint8_t *ahs,
				const uint8_t *data)
{
	size_t pad = round_up4(pdu->dsl) - pdu->dsl, at = ISER_PDU_LEN;
	/* without a copy the caller adds data as further pieces, unpadded */
	size_t own = data ? pdu->dsl + pad : 0;
	struct iser_msg *m = dmiser_msg_new(c, at + pdu->ahs_len + own);
	uint8_t *p;

	if (!m)
		return NULL;
	p = m->iov[0].iov_base;
	iser_header_encode(h, p);
	iscsi_bhs_encode(pdu, p + ISER_HEADER_LEN);
	dm_trace_pdu(c->dm, true, p + ISER_HEADER_LEN);
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

/* [RFC 7145: 5.1.3 #3] [RFC 5047: 6 #1-2] */
int dmiser_send(struct dmiser_conn *c, struct rcap_wr *first,
		struct iser_msg *m)
{
	struct rcap_wr *chain[2] = { first, &m->wr };

	if (m->task)
		iser_task(m->task)->busy++;
	if (first)
		iser_task(m->task)->busy++;
	c->stats.tx_pdus++;
	if (!c->established || c->hello == HELLO_AWAIT) {
		/* an RDMA Write needs a command, and none was received yet */
		assert(!first);
		list_push_back(&c->waiting, &m->link);
		return 0;
	}
	/* rcap_post fails only if the connection ends, which
	 * Connection_Terminate_Notify reports */
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
