/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usual.c: the FPDUs of small commands and responses: a Send that is one
 * segment, and a segment of a Write, complete in the look-ahead, without
 * markers. Everything else, and every FPDU with an error, is left to rx.c and
 * place.c, which make the same checks one by one and know what a Terminate has
 * to say.
 */
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "rcap/iwarp/internal.h"
#include "rcap/iwarp/mr_table.h"
#include "rcap/iwarp/rdmap_codec.h"

/* The FPDU at p, within n octets. */
struct usual {
	const uint8_t *p;
	size_t content; /* length field, ULPDU, pad; the CRC follows */
	size_t ulpdu_len;
	struct rdmap_usual h;
	const uint8_t *payload;
	size_t len;
};

static bool find_usual(struct usual *w, const uint8_t *p, size_t n)
{
	size_t header;

	if (n < MPA_LENGTH_LEN + DDP_TAGGED_LEN)
		return false;
	w->p = p;
	w->ulpdu_len = get_be16(p);
	w->content = round_up4(MPA_LENGTH_LEN + w->ulpdu_len);
	if (w->content + MPA_CRC_LEN > n)
		return false;
	header = rdmap_decode_usual(&w->h, p + MPA_LENGTH_LEN, w->ulpdu_len);
	if (header == 0)
		return false;
	w->payload = p + MPA_LENGTH_LEN + header;
	w->len = w->ulpdu_len - header;
	return w->len > 0;
}

static bool crc_is_right(const struct iwarp *c, const struct usual *w)
{
	return !c->rx.s.crc || get_le32(w->p + w->content) ==
				       crc32c_wire(crc32c_update(
					       CRC32C_SEED, w->p, w->content));
}

/* What the rest of the receiver knows about the last segment. */
static void count_usual(struct iwarp *c, const struct usual *w)
{
	struct iwarp_rx *rx = &c->rx;

	rx->h.tagged = w->h.tagged;
	rx->h.last = w->h.last;
	rx->h.opcode = w->h.opcode;
	rx->h.stag = w->h.stag;
	rx->h.to = w->h.to;
	rx->ulpdu_len = w->ulpdu_len;
	if (rx->large > 0)
		rx->large--;
	c->stats.rx_fpdus++;
	c->stats.rx_payload += w->len;
}

static void place_write(const struct bufv *memory, size_t off,
			const struct usual *w)
{
	if (memory->n == 1)
		memcpy((uint8_t *)memory->iov[0].iov_base + off, w->payload,
		       w->len);
	else
		bufv_copy_in(memory, off, w->payload, w->len);
}

static bool take_write(struct iwarp *c, const struct usual *w)
{
	const struct mr_region *r = mr_region_of(c->mrs, w->h.stag);

	if (!r || !mr_may_access(r, c, w->h.to, w->len, MR_REMOTE_WRITE) ||
	    !crc_is_right(c, w))
		return false;
	place_write(&r->memory, (size_t)(w->h.to - r->base), w);
	c->stats.copied += w->len;
	count_usual(c, w);
	return true;
}

static bool take_send(struct iwarp *c, const struct usual *w)
{
	struct iwarp_rx *rx = &c->rx;
	struct rcap_recv *r;
	int reason;

	if (!w->h.last || w->h.msn != rx->queues.msn[DDP_QN_SEND] ||
	    rx->queues.send_begun || list_empty(&c->recvs))
		return false;
	r = list_entry(c->recvs.next, struct rcap_recv, link);
	if (w->len > r->cap || !crc_is_right(c, w))
		return false;
	if (r->may_lend) {
		r->lent = w->payload;
	} else {
		memcpy(r->buf, w->payload, w->len);
		c->stats.copied += w->len;
	}
	count_usual(c, w);
	reason = iwarp_deliver_send(c, w->len);
	if (reason) { /* the Terminate names the headers */
		rx->head.have = (unsigned)(w->payload - w->p);
		memcpy(rx->head.bytes, w->p, rx->head.have);
		iwarp_fail(c, (uint16_t)-reason, ERR_PROTOCOL);
	}
	return true;
}

/* Returns the length of the FPDU at p, which it has handled; 0: it has not. */
static inline size_t take_one(struct iwarp *c, const uint8_t *p, size_t n)
{
	struct usual w;

	if (!find_usual(&w, p, n) ||
	    !(w.h.tagged ? take_write(c, &w) : take_send(c, &w)))
		return 0;
	return w.content + MPA_CRC_LEN;
}

size_t iwarp_take_usual(struct iwarp *c, const uint8_t *p, size_t n)
{
	size_t at = 0, k;

	if (c->rx.s.markers || c->rx.stage != RX_HEAD || c->rx.head.have)
		return 0;
	/* the first FPDU ends the start-up; an up-call may end the connection */
	while (c->phase == PHASE_FULL && (k = take_one(c, p + at, n - at))) {
		at += k;
		if (!iwarp_rx_count_time(c))
			break;
	}
	return at;
}
