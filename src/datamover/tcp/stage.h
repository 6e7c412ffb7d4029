/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stage.h: the stage holds the PDUs that are encoded and not yet taken by the
 * transport: copies of their headers, and references to their data. One turn's
 * output is one vectored send of the stage. Inline, because each command needs it; what
 * digests and padding need is in stage.c.
 */
#ifndef DATAMOVER_TCP_STAGE_H
#define DATAMOVER_TCP_STAGE_H

#include "base/cold.h"
#include "datamover/tcp/internal.h"

/* dmtcp_stage_header_digest adds the digest of the header and the AHS;
 * dmtcp_stage_trailed adds data with what follows them: padding, a digest. */
void dmtcp_stage_header_digest(struct stage *s, const uint8_t *bhs,
			       const uint8_t *ahs, size_t ahs_len);
void dmtcp_stage_trailed(struct dmtcp_conn *c, const struct bufv *data,
			 size_t off, uint32_t len, bool unstable);

/* dmtcp_stage_bhs returns the place of the next PDU's header; the caller checked that
 * there is room, and fills all of it. */
static inline uint8_t *dmtcp_stage_bhs(const struct dmtcp_conn *c)
{
	return c->stage->headers + c->stage->header_bytes;
}

/* dmtcp_stage_has_room returns whether one more PDU fits with the pieces of
 * data (or NULL), of which `unstable` bytes are copied if there is a data
 * digest. */
static inline bool dmtcp_stage_has_room(const struct dmtcp_conn *c,
					const struct bufv *data,
					uint32_t unstable)
{
	const struct stage *s = c->stage;
	/* header, AHS, header digest, trailer */
	unsigned iovs = 4 + (data ? data->n : 0);

	return s->npdus < STAGE_PDUS && s->niov + iovs <= STAGE_IOVS &&
	       s->bytes < STAGE_BYTES &&
	       (!c->tx_digest.data ||
		unstable <= DIGEST_COPY_BYTES - s->copied);
}

/* dmtcp_stage_add adds bytes, to the last iovec if they follow it in memory. */
static inline void dmtcp_stage_add(struct stage *s, const void *base,
				   size_t len)
{
	struct iovec *next = &s->iov[s->niov];

	s->bytes += len;
	if (s->niov &&
	    (uint8_t *)next[-1].iov_base + next[-1].iov_len == base) {
		next[-1].iov_len += len;
		return;
	}
	next->iov_base = (void *)(uintptr_t)base;
	next->iov_len = len;
	s->niov++;
}

/* dmtcp_stage_refer adds references to data. */
static inline void dmtcp_stage_refer(struct stage *s, const struct bufv *data,
				     size_t off, uint32_t len)
{
	unsigned n;

	bufv_slice(data, off, len, s->iov + s->niov, STAGE_IOVS - s->niov, &n);
	s->niov += n;
	s->bytes += len;
}

/* dmtcp_stage_pdu adds the PDU whose header is at dmtcp_stage_bhs. ahs and the memory of
 * data are borrowed until the PDU is sent. unstable: data may change meanwhile, so a data
 * digest needs a copy. */
static ALWAYS_INLINE struct stage_pdu *
dmtcp_stage_pdu(struct dmtcp_conn *c, const uint8_t *ahs, size_t ahs_len,
		const struct bufv *data, size_t off, uint32_t len,
		bool unstable)
{
	struct stage *s = c->stage;
	struct stage_pdu *p = &s->pdus[s->npdus++];
	uint8_t *bhs = dmtcp_stage_bhs(c);

	s->header_bytes += ISCSI_BHS_LEN;
	dm_trace_pdu(&c->dm, true, bhs);
	p->task = NULL;
	p->control = NULL;
	p->notify = false;
	dmtcp_stage_add(s, bhs, ISCSI_BHS_LEN);
	if (ahs_len)
		dmtcp_stage_add(s, ahs, ahs_len);
	if (c->tx_digest.header)
		dmtcp_stage_header_digest(s, bhs, ahs, ahs_len);
	c->stats.tx_payload += len;
	if (len && (c->tx_digest.data || len % 4))
		dmtcp_stage_trailed(c, data, off, len, unstable);
	else if (len)
		dmtcp_stage_refer(s, data, off, len);
	p->end = s->bytes;
	c->stats.tx_pdus++;
	return p;
}

/* dmtcp_stage_task makes p a PDU of t, so that t stays until p is sent. */
static inline void dmtcp_stage_task(struct stage_pdu *p, struct dm_task *t)
{
	p->task = t;
	tcp_task(t)->staged++;
}

#endif
