/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usual_tx.c: the short way out for small messages: a Send or a Write of one
 * segment, without markers, that is staged with its header as one run of
 * octets, or as a Send of a short piece and a longer one. Everything else is
 * left to tx.c, which decides the same step by step.
 */
#include "base/crc32c.h"
#include "rcap/iwarp/internal.h"
#include "rcap/iwarp/rdmap_codec.h"
#include "rcap/iwarp/tx.h"

/* longer payload is left to tx.c; one that must be copied is then still in the
 * L1 cache when its CRC is computed */
#define USUAL_MAX 8192u

/* The room that a segment needs where its octets are staged. */
#define ROOM(len) (RX_HEAD_MAX + (len) + MPA_TAIL_MAX)

static size_t encode_head(const struct iwarp *c, const struct rcap_wr *wr,
			  uint8_t *p)
{
	if (wr->op == RCAP_WRITE)
		return MPA_LENGTH_LEN + rdmap_encode_tagged(p + MPA_LENGTH_LEN,
							    RDMAP_WRITE, true,
							    wr->stag, wr->to);
	return MPA_LENGTH_LEN +
	       rdmap_encode_send(p + MPA_LENGTH_LEN, iwarp_send_opcode(wr),
				 true, wr->stag, c->tx.msn[DDP_QN_SEND], 0);
}

static const uint8_t *piece(const struct rcap_wr *wr, unsigned i)
{
	return wr->data.iov[i].iov_base;
}

/* Stages the message as one run of octets. */
static bool stage_run(struct iwarp *c, struct rcap_wr *wr)
{
	struct iwarp_tx *tx = &c->tx;
	size_t len = wr->data.len, head, whole;
	bool in_copies = tx->copied || len > SHORT_PAYLOAD;
	size_t *used = in_copies ? &tx->copied : &tx->used;
	size_t most = in_copies ? COPIES : TX_ARENA - ARENA_RESERVE;
	uint8_t *p = in_copies ? tx->copies : tx->arena;

	if (!p || *used + ROOM(len) > most)
		return false;
	p += *used;
	head = encode_head(c, wr, p);
	memcpy(p + head, piece(wr, 0), len);
	whole = mpa_fpdu_close(&tx->s, p, head + len);
	iwarp_add_piece(tx, p, whole);
	*used += whole;
	if (len > SHORT_PAYLOAD)
		c->stats.copied += len;
	return true;
}

/* Stages the message as head and first piece, second piece, and tail. */
static bool stage_two(struct iwarp *c, struct rcap_wr *wr)
{
	struct iwarp_tx *tx = &c->tx;
	const struct iovec *v = wr->data.iov;
	uint8_t *p = tx->arena + tx->used;
	size_t first, tail;
	uint32_t crc = CRC32C_SEED;

	if (tx->used + ROOM(v[0].iov_len) + ARENA_RESERVE > TX_ARENA)
		return false;
	first = encode_head(c, wr, p);
	memcpy(p + first, v[0].iov_base, v[0].iov_len);
	first += v[0].iov_len;
	mpa_fpdu_begin(p, first + v[1].iov_len);
	if (tx->s.crc) {
		crc = crc32c_update(crc, p, first);
		crc = crc32c_update(crc, v[1].iov_base, v[1].iov_len);
	}
	tail = mpa_fpdu_tail(&tx->s, p + first, first + v[1].iov_len, crc);
	iwarp_add_piece(tx, p, first);
	iwarp_add_piece(tx, v[1].iov_base, v[1].iov_len);
	iwarp_add_piece(tx, p + first, tail);
	tx->used += first + tail;
	return true;
}

/* Whether the FPDU of a message of len octets fits in the path's segment. */
static bool fits(const struct iwarp *c, size_t len)
{
	return len - 1 < USUAL_MAX &&
	       (c->cfg.emss == 0 ||
		round_up4(MPA_LENGTH_LEN + DDP_UNTAGGED_LEN + len) +
				MPA_CRC_LEN <=
			c->cfg.emss);
}

static bool stage_usual(struct iwarp *c, struct rcap_wr *wr)
{
	size_t len = wr->data.len;
	bool copy = (wr->flags & RCAP_UNSTABLE) && c->tx.s.crc;

	if (wr->op > RCAP_WRITE || !fits(c, len))
		return false;
	if (wr->data.n == 1)
		return (copy || len <= SHORT_PAYLOAD) && stage_run(c, wr);
	return wr->data.n == 2 && !copy && len > SHORT_PAYLOAD &&
	       wr->data.iov[0].iov_len <= SHORT_PAYLOAD && stage_two(c, wr);
}

void iwarp_stage_usual(struct iwarp *c, uint64_t end)
{
	struct iwarp_tx *tx = &c->tx;

	/* with a response to send, tx.c alternates */
	if (tx->s.markers || c->phase != PHASE_FULL || tx->wr ||
	    tx->responding || tx->rtr_wanted || c->answers_n)
		return;
	while (!list_empty(&c->sq) && tx->s.pos < end &&
	       tx->n + PIECES_MAX + 3 <= TX_PIECES) {
		struct rcap_wr *wr =
			list_entry(c->sq.next, struct rcap_wr, link);

		if (!stage_usual(c, wr))
			return;
		c->stats.tx_fpdus++;
		c->stats.tx_payload += wr->data.len;
		tx->msn[DDP_QN_SEND] += wr->op == RCAP_SEND;
		tx->response_next = true;
		wr->moved = (uint32_t)wr->data.len;
		wr->mark = tx->s.pos;
		list_del(&wr->link);
		list_push_back(&c->flight, &wr->link);
	}
}
