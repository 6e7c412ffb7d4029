/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * place.c: DDP (RFC 5041) and RDMAP (RFC 5040): the access check of each
 * segment, and the completion of each message. No segment is placed without the
 * check. The functions return 0 or a reason for a Terminate.
 */
#include <string.h>

#include "rcap/iwarp/internal.h"

static bool is_send(uint8_t opcode)
{
	return opcode >= RDMAP_SEND && opcode <= RDMAP_SEND_SE_INV;
}

/* ---- untagged ---- */

/* RFC 6581 §9: a Send that is only Ready To Receive is not reported. */
static bool is_rtr_send(const struct iwarp *c, size_t len)
{
	const struct rdmap_header *h = &c->rx.h;

	return c->terms.rtr == MPA_RTR_SEND && !c->cfg.active && len == 0 &&
	       h->opcode == RDMAP_SEND && h->msn == 1 && h->last &&
	       !c->rx.queues.send_begun;
}

/* Directs the segment to memory of ours, not to a region. */
static void place_at(struct iwarp_rx *rx, void *buf, size_t len)
{
	rx->recv_iov = (struct iovec){ buf, len };
	rx->recv_v = (struct bufv){ &rx->recv_iov, 1, len };
	rx->dest = &rx->recv_v;
	rx->dest_off = 0;
}

static int place_send(struct iwarp *c, size_t len)
{
	struct iwarp_rx *rx = &c->rx;
	struct rcap_recv *r;

	if (rx->queues.send_begun && rx->h.opcode != rx->queues.send_opcode)
		return -TERM_RDMAP_OPCODE;
	if (is_rtr_send(c, len))
		return 0;
	if (list_empty(&c->recvs))
		return -TERM_DDP_UNTAGGED_NO_BUFFER;
	r = list_entry(c->recvs.next, struct rcap_recv, link);
	/* a message has less than 2^32 octets, however large the receive is */
	if (!range_ok(rx->queues.mo, len, MIN(r->cap, (size_t)UINT32_MAX)))
		return -TERM_DDP_UNTAGGED_TOO_LONG;
	place_at(rx, r->buf + rx->queues.mo, len);
	return 0;
}

static int place_read_request(struct iwarp *c, size_t len)
{
	const struct rdmap_header *h = &c->rx.h;
	const struct bufv *memory;
	size_t off;

	if (len || !h->last)
		return -TERM_DDP_UNTAGGED_TOO_LONG;
	/* queue 1 has IRD buffers (RFC 5040 §5.1, §6.5) */
	if (c->answers_n >= c->qp.ird)
		return -TERM_DDP_UNTAGGED_NO_BUFFER;
	return mr_find(c->mrs, c, h->source_stag, h->source_to, h->read_size,
		       MR_REMOTE_READ, &memory, &off);
}

/* RFC 7306 §6.3: Immediate Data are a message of one segment. */
static int place_immediate(struct iwarp *c, size_t len)
{
	if (c->rx.queues.send_begun)
		return -TERM_RDMAP_OPCODE;
	if (len || !c->rx.h.last)
		return -TERM_DDP_UNTAGGED_TOO_LONG;
	return list_empty(&c->recvs) ? -TERM_DDP_UNTAGGED_NO_BUFFER : 0;
}

/* RFC 7306 §§5.2.1, 8.2: Atomic Requests share the queue and IRD of Reads. */
static int place_atomic_request(struct iwarp *c, size_t len)
{
	const struct rdmap_header *h = &c->rx.h;
	const struct bufv *memory;
	size_t off;
	int err;

	if (len || !h->last)
		return -TERM_DDP_UNTAGGED_TOO_LONG;
	if (c->answers_n >= c->qp.ird)
		return -TERM_DDP_UNTAGGED_NO_BUFFER;
	if (h->atomic != RDMAP_FETCH_ADD && h->atomic != RDMAP_CMP_SWAP)
		return -TERM_RDMAP_OPCODE;
	err = mr_find(c->mrs, c, h->source_stag, h->source_to, sizeof(uint64_t),
		      MR_REMOTE_ATOMIC, &memory, &off);
	if (err)
		return err;
	return iwarp_atomic_word(memory, off) ? 0
					      : -TERM_RDMAP_STREAM_CATASTROPHIC;
}

static bool is_atomic(const struct rcap_wr *wr)
{
	return wr->op == RCAP_FETCH_ADD || wr->op == RCAP_CMP_SWAP;
}

/* RFC 7306 §5.2.2: a response must answer our oldest request. */
static int place_atomic_response(struct iwarp *c, size_t len)
{
	const struct rcap_wr *wr = iwarp_wq_oldest_read(c);

	if (c->tx.rtr_read_out || !wr || !is_atomic(wr))
		return -TERM_DDP_UNTAGGED_NO_BUFFER;
	if (len || !c->rx.h.last)
		return -TERM_DDP_UNTAGGED_TOO_LONG;
	return c->rx.h.request_id == wr->local
		       ? 0
		       : -TERM_RDMAP_STREAM_CATASTROPHIC;
}

static int place_terminate(struct iwarp *c, size_t len)
{
	struct iwarp_rx *rx = &c->rx;

	if (len > sizeof(rx->terminate))
		return -TERM_DDP_UNTAGGED_TOO_LONG;
	place_at(rx, rx->terminate, len);
	return 0;
}

/* RFC 5041 §5.3, §7.1: MSN and MO have no gap on an ordered stream. */
static int place_untagged(struct iwarp *c, size_t len)
{
	struct iwarp_rx *rx = &c->rx;
	const struct rdmap_header *h = &rx->h;

	if (h->msn != rx->queues.msn[h->qn])
		return -TERM_DDP_UNTAGGED_MSN;
	if (h->mo != (h->qn == DDP_QN_SEND ? rx->queues.mo : 0))
		return -TERM_DDP_UNTAGGED_MO;
	switch (h->opcode) {
	case RDMAP_READ_REQUEST:
		return place_read_request(c, len);
	case RDMAP_TERMINATE:
		return place_terminate(c, len);
	case RDMAP_IMMEDIATE:
	case RDMAP_IMMEDIATE_SE:
		return place_immediate(c, len);
	case RDMAP_ATOMIC_REQUEST:
		return place_atomic_request(c, len);
	case RDMAP_ATOMIC_RESPONSE:
		return place_atomic_response(c, len);
	default:
		return place_send(c, len);
	}
}

/* ---- tagged ---- */

static int place_write(struct iwarp *c, size_t len)
{
	struct iwarp_rx *rx = &c->rx;
	int err = mr_find(c->mrs, c, rx->h.stag, rx->h.to, len, MR_REMOTE_WRITE,
			  &rx->dest, &rx->dest_off);

	return err ? -(int)mr_term_tagged(err) : 0;
}

/* A response must answer our oldest Read, without a gap (RFC 5040 §5.2.2). */
static int place_read_response(struct iwarp *c, size_t len)
{
	struct iwarp_rx *rx = &c->rx;
	struct rcap_wr *wr = iwarp_wq_oldest_read(c);

	if (c->tx.rtr_read_out) { /* the response to our Ready To Receive */
		if (len)
			return -TERM_DDP_TAGGED_BOUNDS;
		return rx->h.last ? 0 : -TERM_RDMAP_STREAM_CATASTROPHIC;
	}
	if (!wr || is_atomic(wr))
		return -TERM_RDMAP_OPCODE;
	if (len && rx->h.stag != wr->local)
		return -TERM_DDP_TAGGED_INVALID_STAG;
	if ((len && rx->h.to != wr->moved) ||
	    !range_ok(wr->moved, len, wr->data.len))
		return -TERM_DDP_TAGGED_BOUNDS;
	if (rx->h.last != (wr->moved + len == wr->data.len))
		return -TERM_RDMAP_STREAM_CATASTROPHIC;
	rx->dest = &wr->data;
	rx->dest_off = wr->moved;
	return 0;
}

int iwarp_place(struct iwarp *c, size_t len)
{
	if (!c->rx.h.tagged)
		return place_untagged(c, len);
	if (c->rx.h.opcode == RDMAP_WRITE)
		return place_write(c, len);
	return place_read_response(c, len);
}

bool iwarp_may_guess(const struct iwarp *c)
{
	const struct rdmap_header *h = &c->rx.h;

	if (h->opcode == RDMAP_WRITE)
		return mr_is_undefined(c->mrs, c, h->stag);
	return h->opcode == RDMAP_READ_RESPONSE;
}

bool iwarp_lend(struct iwarp *c, const uint8_t *p, size_t len)
{
	struct iwarp_rx *rx = &c->rx;
	struct rcap_recv *r;

	if (!is_send(rx->h.opcode) || !rx->h.last || rx->queues.mo || len == 0)
		return false;
	r = list_entry(c->recvs.next, struct rcap_recv, link);
	if (r->may_lend)
		r->lent = p;
	return r->may_lend;
}

void iwarp_replace(struct iwarp *c)
{
	struct iwarp_rx *rx = &c->rx;
	size_t payload = rx->ulpdu_len - (rx->head.have - MPA_LENGTH_LEN);
	int err;

	if (!rx->dest || rx->h.opcode != RDMAP_WRITE || rx->left == 0)
		return;
	/* the region may have been invalidated since the segment began, and its
	 * entry of the table may belong to another region now */
	err = mr_find(c->mrs, c, rx->h.stag, rx->h.to + (payload - rx->left),
		      rx->left, MR_REMOTE_WRITE, &rx->dest, &rx->dest_off);
	if (err)
		rx->refused = -(int)mr_term_tagged(err);
}

/* ---- completion ---- */

static int invalidate_stag(struct iwarp *c, struct rcap_recv *r)
{
	const struct rdmap_header *h = &c->rx.h;
	const struct bufv *memory;

	r->solicited =
		h->opcode == RDMAP_SEND_SE || h->opcode == RDMAP_SEND_SE_INV;
	r->invalidated =
		h->opcode == RDMAP_SEND_INV || h->opcode == RDMAP_SEND_SE_INV;
	r->stag = h->stag;
	if (!r->invalidated)
		return 0;
	memory = c->tx.has_responses ? mr_memory(c->mrs, c, h->stag) : NULL;
	if (memory && iwarp_tx_detach(c, memory))
		return -TERM_LOCAL_CATASTROPHIC;
	return mr_invalidate_remote(c->mrs, c, h->stag);
}

int iwarp_deliver_send(struct iwarp *c, size_t len)
{
	struct rcap_recv *r = list_entry(c->recvs.next, struct rcap_recv, link);
	int err = invalidate_stag(c, r);

	if (err)
		return err;
	list_del(&r->link);
	r->len = len;
	c->rx.queues.msn[DDP_QN_SEND]++;
	c->qp.user->received(c->qp.arg, r, 0);
	return 0;
}

static int complete_send(struct iwarp *c, size_t len)
{
	struct iwarp_rx *rx = &c->rx;

	if (is_rtr_send(c, len)) {
		rx->queues.msn[DDP_QN_SEND]++;
		return 0;
	}
	rx->queues.mo += (uint32_t)len;
	rx->queues.send_opcode = rx->h.opcode;
	rx->queues.send_begun = !rx->h.last;
	if (!rx->h.last)
		return 0;
	len = rx->queues.mo;
	rx->queues.mo = 0;
	return iwarp_deliver_send(c, len);
}

static int queue_request(struct iwarp *c)
{
	unsigned ring = c->cfg.wish.ird + 1u;
	unsigned at = (c->answers_first + c->answers_n++) % ring;

	c->answers[at] = (struct iwarp_read){ .h = c->rx.h };
	c->rx.queues.msn[DDP_QN_READ]++;
	iwarp_kick(c);
	return 0;
}

/* Immediate Data consume a receive but write nothing to it. */
static int complete_immediate(struct iwarp *c)
{
	struct rcap_recv *r = list_entry(c->recvs.next, struct rcap_recv, link);

	list_del(&r->link);
	r->is_immediate = true;
	r->immediate = c->rx.h.value;
	r->solicited = c->rx.h.opcode == RDMAP_IMMEDIATE_SE;
	c->rx.queues.msn[DDP_QN_SEND]++;
	c->qp.user->received(c->qp.arg, r, 0);
	return 0;
}

static int complete_atomic(struct iwarp *c)
{
	iwarp_wq_oldest_read(c)->atomic->original = c->rx.h.value;
	c->rx.queues.msn[DDP_QN_ATOMIC]++;
	iwarp_wq_read_done(c);
	return 0;
}

static int complete_read(struct iwarp *c, size_t len)
{
	struct rcap_wr *wr = iwarp_wq_oldest_read(c);

	if (c->tx.rtr_read_out) {
		c->tx.rtr_read_out = false;
		return 0;
	}
	wr->moved += (uint32_t)len;
	if (c->rx.h.last)
		iwarp_wq_read_done(c);
	return 0;
}

/* RFC 5040 §4.8: a Terminate of the peer; it gets no answer. */
static int end_terminated(struct iwarp *c, size_t len)
{
	struct rdmap_terminate t;

	if (rdmap_terminate_decode(&t, c->rx.terminate, len))
		iwarp_die(c, ERR_TERMINATED,
			  "the peer sent a Terminate of "
			  "%zu octets, too short",
			  len);
	else
		iwarp_die(c, ERR_TERMINATED,
			  "the peer sent a Terminate: %s "
			  "(0x%04x%s)",
			  rdmap_term_str(t.reason), t.reason,
			  t.swapped ? ", layer and type swapped" : "");
	trace_emit(c->qp.trace, TRACE_TERMINATE, "%s", c->why);
	return 0;
}

int iwarp_placed(struct iwarp *c, size_t len)
{
	uint8_t opcode = c->rx.h.opcode;

	if (is_send(opcode))
		return complete_send(c, len);
	switch (opcode) {
	case RDMAP_READ_REQUEST:
	case RDMAP_ATOMIC_REQUEST:
		return queue_request(c);
	case RDMAP_ATOMIC_RESPONSE:
		return complete_atomic(c);
	case RDMAP_IMMEDIATE:
	case RDMAP_IMMEDIATE_SE:
		return complete_immediate(c);
	case RDMAP_READ_RESPONSE:
		return complete_read(c, len);
	case RDMAP_TERMINATE:
		return end_terminated(c, len);
	default:
		return 0; /* the target of a Write gets no completion */
	}
}
