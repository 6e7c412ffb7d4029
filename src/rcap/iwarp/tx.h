/* SPDX-License-Identifier: BSD-2-Clause */
/* tx.h: what tx.c and usual_tx.c share. */
#ifndef RCAP_IWARP_TX_H
#define RCAP_IWARP_TX_H

#include "rcap/iwarp/internal.h"

#define FPDU_MAX   65536
#define PIECES_MAX 16 /* of one segment's payload; segments are cut to that */
#define COPIES	   (TX_BATCH + FPDU_MAX)
/* Payload up to here is staged with its header as one run. */
#define SHORT_PAYLOAD 256
/* What batch_full keeps free in the arena for one segment, without markers. */
#define ARENA_RESERVE (RX_HEAD_MAX + RDMAP_TERMINATE_MAX + MPA_TAIL_MAX)

/* iwarp_add_piece adds a piece to the batch. Adjacent pieces become one: the end
 * of an FPDU and the header of the next one. */
static inline void iwarp_add_piece(struct iwarp_tx *tx, const void *p, size_t n)
{
	struct iovec *last = tx->n ? &tx->iov[tx->n - 1] : NULL;

	if (last && (uint8_t *)last->iov_base + last->iov_len == p)
		last->iov_len += n;
	else
		tx->iov[tx->n++] = (struct iovec){ (void *)(uintptr_t)p, n };
}

/* iwarp_send_opcode: the opcode of a Send. */
static inline uint8_t iwarp_send_opcode(const struct rcap_wr *wr)
{
	if (wr->flags & RCAP_INVALIDATE)
		return wr->flags & RCAP_SOLICITED ? RDMAP_SEND_SE_INV
						  : RDMAP_SEND_INV;
	return wr->flags & RCAP_SOLICITED ? RDMAP_SEND_SE : RDMAP_SEND;
}

/* usual_tx.c: iwarp_stage_usual stages the requests at the front of the queue
 * that are small Sends and Writes, until the batch is at `end` or has no room
 * for one more. */
void iwarp_stage_usual(struct iwarp *c, uint64_t end);

#endif
