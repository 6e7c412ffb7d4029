/* SPDX-License-Identifier: BSD-2-Clause */
/* msg.c: Sends: their memory, their content, and how they are posted (RFC 7145
 * §7.3, §9.2). */
#include <stdlib.h>
#include <string.h>

#include "datamover/iser/internal.h"

#define SPARES_MAX 512

/* Allocates a message, if m is NULL, and memory for more than MSG_BYTES. */
struct iser_msg *dmiser_msg_alloc(struct dmiser_conn *c, struct iser_msg *m,
				  size_t room)
{
	if (!m) {
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
int dmiser_send_later(struct dmiser_conn *c, struct iser_msg *m)
{
	list_push_back(&c->waiting, &m->link);
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
