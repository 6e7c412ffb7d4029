/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stage.c: the stage holds the PDUs that are encoded and not yet taken by the
 * transport: copies of their headers, and references to their data. One turn's
 * output is one vectored send of the stage.
 */
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "datamover/tcp/internal.h"

bool dmtcp_stage_open(struct dmtcp_conn *c)
{
	struct stage *s = c->stage;

	if (!s)
		s = c->stage = malloc(sizeof(*s));
	if (!s)
		return false;
	s->npdus = s->pdu = s->niov = s->first = 0;
	s->bytes = s->sent = s->copied = s->header_bytes = 0;
	return true;
}

void dmtcp_stage_free(struct dmtcp_conn *c)
{
	free(c->stage);
	c->stage = NULL;
}

/* Adds bytes, to the last iovec if they follow it in memory. */
static void add_iov(struct stage *s, const void *base, size_t len)
{
	struct iovec *last = s->niov ? &s->iov[s->niov - 1] : NULL;

	s->bytes += len;
	if (last && (uint8_t *)last->iov_base + last->iov_len == base) {
		last->iov_len += len;
		return;
	}
	s->iov[s->niov].iov_base = (void *)(uintptr_t)base;
	s->iov[s->niov++].iov_len = len;
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
	uint8_t *to = c->digest_copy + s->copied;
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

/* Adds references to data. */
static void refer_to_data(struct stage *s, const struct bufv *data, size_t off,
			  uint32_t len)
{
	unsigned n;

	bufv_slice(data, off, len, s->iov + s->niov, STAGE_IOVS - s->niov, &n);
	s->niov += n;
	s->bytes += len;
}

/* Room for n bytes of a header or a trailer. */
static uint8_t *header_room(struct stage *s, size_t n)
{
	uint8_t *p = s->headers + s->header_bytes;

	s->header_bytes += n;
	return p;
}

/* Adds the padding and, if there is a data digest, room for it. Returns the padding. */
static uint8_t *stage_trailer(struct stage *s, size_t pad, size_t digest)
{
	uint8_t *trailer = header_room(s, pad + digest);

	memset(trailer, 0, pad);
	add_iov(s, trailer, pad + digest);
	return trailer;
}

/* Data with a digest, which is of the data and their padding. */
static void stage_data_digest(struct dmtcp_conn *c, const struct bufv *data,
			      size_t off, uint32_t len, size_t pad,
			      bool unstable)
{
	struct stage *s = c->stage;
	uint8_t *trailer;
	uint32_t crc;

	if (unstable) {
		crc = copy_data(c, data, off, len);
	} else {
		refer_to_data(s, data, off, len);
		crc = bufv_crc32c(data, off, len, CRC32C_SEED);
	}
	trailer = stage_trailer(s, pad, ISCSI_DIGEST_LEN);
	crc = crc32c_update(crc, trailer, pad);
	put_le32(trailer + pad, crc32c_wire(crc));
}

static void stage_data(struct dmtcp_conn *c, const struct bufv *data,
		       size_t off, uint32_t len, bool unstable)
{
	size_t pad = round_up4(len) - len;

	c->stats.tx_payload += len;
	if (c->tx_digest.data) {
		stage_data_digest(c, data, off, len, pad, unstable);
		return;
	}
	refer_to_data(c->stage, data, off, len);
	if (pad)
		stage_trailer(c->stage, pad, 0);
}

static void stage_header_digest(struct stage *s, const uint8_t *bhs,
				const uint8_t *ahs, size_t ahs_len)
{
	uint8_t *digest = header_room(s, ISCSI_DIGEST_LEN);
	uint32_t crc = crc32c_update(CRC32C_SEED, bhs, ISCSI_BHS_LEN);

	crc = crc32c_update(crc, ahs, ahs_len);
	put_le32(digest, crc32c_wire(crc));
	add_iov(s, digest, ISCSI_DIGEST_LEN);
}

struct stage_pdu *dmtcp_stage_pdu(struct dmtcp_conn *c, const uint8_t *ahs,
				  size_t ahs_len, const struct bufv *data,
				  size_t off, uint32_t len, bool unstable)
{
	struct stage *s = c->stage;
	struct stage_pdu *p = &s->pdus[s->npdus++];
	uint8_t *bhs = header_room(s, ISCSI_BHS_LEN);

	dm_trace_pdu(&c->dm, true, bhs);
	p->task = NULL;
	p->control = NULL;
	p->notify = false;
	add_iov(s, bhs, ISCSI_BHS_LEN);
	if (ahs_len)
		add_iov(s, ahs, ahs_len);
	if (c->tx_digest.header)
		stage_header_digest(s, bhs, ahs, ahs_len);
	if (len)
		stage_data(c, data, off, len, unstable);
	p->end = s->bytes;
	c->stats.tx_pdus++;
	return p;
}

void dmtcp_stage_task(struct stage_pdu *p, struct dm_task *t)
{
	p->task = t;
	tcp_task(t)->staged++;
}
