/* SPDX-License-Identifier: BSD-2-Clause */
/* stage.c: the memory of the stage (stage.h), and what digests and padding need. */
#include "datamover/tcp/stage.h"

#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"

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
	dmtcp_stage_add(s, to, len);
	s->copied += len;
	c->stats.copied += len;
	return crc;
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
	dmtcp_stage_add(s, trailer, pad + digest);
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
		dmtcp_stage_refer(s, data, off, len);
		crc = bufv_crc32c(data, off, len, CRC32C_SEED);
	}
	trailer = stage_trailer(s, pad, ISCSI_DIGEST_LEN);
	crc = crc32c_update(crc, trailer, pad);
	put_le32(trailer + pad, crc32c_wire(crc));
}

void dmtcp_stage_trailed(struct dmtcp_conn *c, const struct bufv *data,
			 size_t off, uint32_t len, bool unstable)
{
	size_t pad = round_up4(len) - len;

	if (c->tx_digest.data) {
		stage_data_digest(c, data, off, len, pad, unstable);
		return;
	}
	dmtcp_stage_refer(c->stage, data, off, len);
	stage_trailer(c->stage, pad, 0);
}

void dmtcp_stage_header_digest(struct stage *s, const uint8_t *bhs,
			       const uint8_t *ahs, size_t ahs_len)
{
	uint8_t *digest = header_room(s, ISCSI_DIGEST_LEN);
	uint32_t crc = crc32c_update(CRC32C_SEED, bhs, ISCSI_BHS_LEN);

	crc = crc32c_update(crc, ahs, ahs_len);
	put_le32(digest, crc32c_wire(crc));
	dmtcp_stage_add(s, digest, ISCSI_DIGEST_LEN);
}
