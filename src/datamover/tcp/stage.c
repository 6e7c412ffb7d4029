/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stage.c: the stage holds the PDUs that are encoded and not yet taken by the
 * transport: copies of their headers, and references to their data. One turn's
 * output is one vectored send of the stage.
 */
#include <string.h>

#include "base/crc32c.h"
#include "datamover/tcp/internal.h"

static void add_iov(struct stage *s, const void *base, size_t len)
{
	s->iov[s->niov].iov_base = (void *)(uintptr_t)base;
	s->iov[s->niov++].iov_len = len;
	s->bytes += len;
}

bool dmtcp_stage_has_room(const struct dmtcp_conn *c, const struct bufv *data,
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

/* Copies data that another command may change before they are sent, and returns
 * the CRC of the copy. */
static uint32_t copy_data(struct dmtcp_conn *c, const struct bufv *data,
			  size_t off, uint32_t len)
{
	struct stage *s = c->stage;
	uint8_t *to = s->copy + s->copied;
	struct iovec piece[16];
	uint32_t crc = CRC32C_SEED;
	size_t done = 0;
	unsigned n;

	while (done < len) {
		if (!bufv_slice(data, off + done, len - done, piece, 16, &n))
			break;
		for (unsigned i = 0; i < n; i++) {
			crc = crc32c_copy(crc, to + done, piece[i].iov_base,
					  piece[i].iov_len);
			done += piece[i].iov_len;
		}
	}
	add_iov(s, to, len);
	s->copied += len;
	c->stats.copied += len;
	return crc;
}

/* Adds references to data, and returns their CRC if there is a data digest. */
static uint32_t refer_to_data(struct dmtcp_conn *c, const struct bufv *data,
			      size_t off, uint32_t len)
{
	struct stage *s = c->stage;
	unsigned n;

	bufv_slice(data, off, len, s->iov + s->niov, STAGE_IOVS - s->niov, &n);
	s->niov += n;
	s->bytes += len;
	return c->tx_digest.data ? bufv_crc32c(data, off, len, CRC32C_SEED) : 0;
}

static void stage_data(struct dmtcp_conn *c, struct stage_pdu *p,
		       const struct bufv *data, size_t off, uint32_t len,
		       bool unstable)
{
	size_t pad = round_up4(len) - len, n = pad;
	uint32_t crc;

	if (c->tx_digest.data && unstable)
		crc = copy_data(c, data, off, len);
	else
		crc = refer_to_data(c, data, off, len);
	memset(p->trailer, 0, pad);
	if (c->tx_digest.data) {
		crc = crc32c_update(crc, p->trailer, pad);
		put_le32(p->trailer + pad, crc32c_wire(crc));
		n += ISCSI_DIGEST_LEN;
	}
	if (n)
		add_iov(c->stage, p->trailer, n);
	c->stats.tx_payload += len;
}

struct stage_pdu *dmtcp_stage_pdu(struct dmtcp_conn *c,
				  const uint8_t bhs[ISCSI_BHS_LEN],
				  const uint8_t *ahs, size_t ahs_len,
				  const struct bufv *data, size_t off,
				  uint32_t len, bool unstable)
{
	struct stage *s = c->stage;
	struct stage_pdu *p = &s->pdus[s->npdus++];
	uint32_t crc;

	dm_trace_pdu(&c->dm, true, bhs);
	memcpy(p->header, bhs, ISCSI_BHS_LEN);
	p->task = NULL;
	p->control = NULL;
	p->notify = false;
	add_iov(s, p->header, ISCSI_BHS_LEN);
	if (ahs_len)
		add_iov(s, ahs, ahs_len);
	if (c->tx_digest.header) {
		crc = crc32c_update(CRC32C_SEED, bhs, ISCSI_BHS_LEN);
		crc = crc32c_update(crc, ahs, ahs_len);
		put_le32(p->header + ISCSI_BHS_LEN, crc32c_wire(crc));
		if (ahs_len)
			add_iov(s, p->header + ISCSI_BHS_LEN, ISCSI_DIGEST_LEN);
		else {
			s->iov[s->niov - 1].iov_len += ISCSI_DIGEST_LEN;
			s->bytes += ISCSI_DIGEST_LEN;
		}
	}
	if (len)
		stage_data(c, p, data, off, len, unstable);
	p->iov_end = s->niov;
	c->stats.tx_pdus++;
	return p;
}

void dmtcp_stage_task(struct stage_pdu *p, struct dm_task *t)
{
	p->task = t;
	tcp_task(t)->staged++;
}
