/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tx.c: messages to octets. A batch of FPDUs is staged at once: headers, pads
 * and CRCs in the arena, payload by reference. The driver sends the batch with
 * as few calls as the socket permits; then the next batch is staged.
 *
 * Segments of two messages are never interleaved (RFC 5041 §5.3). Between
 * messages, answers to the peer's Reads and our own queue alternate.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cold.h"
#include "rcap/iwarp/internal.h"
#include "rcap/iwarp/rdmap_codec.h"
#include "rcap/iwarp/tx.h"

#define LINE 64
/* RFC 5044 §4.5: at least 128, whatever the path reports */
#define ULPDU_LEAST   128
#define SHORT_SEGMENT (ULPDU_LEAST - DDP_UNTAGGED_LEN)
#define EVEN_FROM     4096 /* shorter segments take the maximum length */
/* With markers an FPDU has two pieces for every 512 octets. */
#define MARKED_MAX   8192
#define PER_FPDU_MAX (2 * (MARKED_MAX / 512 + PIECES_MAX) + 8)
#define PER_FPDU(t)  ((t)->s.markers ? PER_FPDU_MAX : PIECES_MAX + 3)

static size_t fpdu_room(const struct iwarp *c)
{
	size_t room = c->cfg.emss ? c->cfg.emss : FPDU_MAX - 2;

	return c->tx.s.markers ? MIN(room, (size_t)MARKED_MAX) : room;
}

/* segment_max: payload octets that fit after a header of this length. */
static size_t segment_max(const struct iwarp *c, size_t header)
{
	size_t ulpdu = mpa_max_ulpdu(&c->tx.s, fpdu_room(c));

	return MAX(ulpdu, (size_t)ULPDU_LEAST) - header;
}

static bool batch_full(const struct iwarp *c, uint64_t begun)
{
	const struct iwarp_tx *tx = &c->tx;
	size_t reserve = ARENA_RESERVE;

	if (tx->s.markers)
		reserve += mpa_fpdu_scratch(&tx->s, fpdu_room(c));
	return tx->s.pos - begun >= TX_BATCH ||
	       tx->n + PER_FPDU(tx) > TX_PIECES ||
	       tx->used + reserve > TX_ARENA;
}

/* ---- one FPDU ---- */

static void count_fpdu(struct iwarp *c, size_t payload)
{
	c->stats.tx_fpdus++;
	c->stats.tx_payload += payload;
}

/* stage_pieces frames one segment whose head is at the end of the arena; the
 * payload stays where it is, unless copy (see mpa_fpdu_build) is set. */
static void stage_pieces(struct iwarp *c, size_t head_len,
			 const struct bufv *data, size_t off, size_t len,
			 uint8_t *copy)
{
	struct iwarp_tx *tx = &c->tx;
	uint8_t *head = tx->arena + tx->used;
	uint8_t *scratch = head + head_len;
	struct iovec iov[PER_FPDU_MAX];
	int n = mpa_fpdu_build(&tx->s, head, head_len, data, off, len, copy,
			       iov, PER_FPDU(tx), &scratch);

	if (n < 0) { /* batch_full reserves room for every case */
		iwarp_die(c, ERR_LIMIT, "a segment of too many pieces");
		return;
	}
	for (int i = 0; i < n; i++)
		iwarp_add_piece(tx, iov[i].iov_base, iov[i].iov_len);
	tx->used = (size_t)(scratch - tx->arena);
}

/*
 * Cuts a message of `total` octets evenly, at cache lines, so that all segments
 * are aligned like the first: copies to unaligned places cost the receiver up
 * to half as much again, and a short last segment costs as much as a long one.
 * All but the last are of one length, so that a receiver can guess their
 * places.
 */
static size_t even_len(size_t most, size_t total)
{
	size_t n = (total + most - 1) / most;

	if (n < 2 || most < EVEN_FROM)
		return most;
	n = ((total + n - 1) / n + LINE - 1) & ~(size_t)(LINE - 1);
	return n <= most ? n : most & ~(size_t)(LINE - 1);
}

/* Room for a copy of payload that may change between its CRC and the wire.
 * NULL: out of memory, and the connection ends. */
static uint8_t *room_for_copy(struct iwarp *c)
{
	struct iwarp_tx *tx = &c->tx;

	if (!tx->copies)
		tx->copies = malloc(COPIES);
	if (!tx->copies) {
		iwarp_die(c, ERR_NOMEM, "no memory for %u bytes of copies",
			  COPIES);
		return NULL;
	}
	return tx->copies + tx->copied;
}

/* Octets of data from off that PIECES_MAX pieces hold, at most len. */
static COLD size_t len_in_pieces(const struct bufv *data, size_t off,
				 size_t len)
{
	struct iovec piece[PIECES_MAX];
	unsigned n;

	return bufv_slice(data, off, len, piece, PIECES_MAX, &n);
}

/* segment_len: octets of data from off that go into the next segment; left: of
 * a message of `total` octets. */
static size_t segment_len(const struct iwarp *c, const struct bufv *data,
			  size_t off, size_t left, size_t total, size_t header)
{
	size_t most, len = left;

	if (left > SHORT_SEGMENT) {
		most = segment_max(c, header);
		len = left <= most ? left : MIN(left, even_len(most, total));
	}
	return data->n <= PIECES_MAX ? len : len_in_pieces(data, off, len);
}

/* How the octets of a segment are staged. */
enum stage_how {
	BY_REFERENCE, /* the payload stays where it is */
	IN_ARENA,     /* head, payload and tail as one run in the arena */
	IN_COPIES,    /* the same, in the memory for copies */
	COPY_APART,   /* head in the arena, payload in the memory for copies */
};

/* Copies short payload, too, since a run of octets costs less than four pieces,
 * for its CRC and in sendmsg. Where other copies are, such an FPDU follows
 * them. */
static enum stage_how how_to_stage(const struct iwarp *c, size_t len,
				   bool unstable)
{
	const struct iwarp_tx *tx = &c->tx;
	size_t size = RX_HEAD_MAX + len + MPA_TAIL_MAX;

	if (unstable && len && tx->s.crc)
		return tx->s.markers ? COPY_APART : IN_COPIES;
	if (tx->s.markers || len > SHORT_PAYLOAD)
		return BY_REFERENCE;
	if (tx->copied && tx->copied + size <= COPIES)
		return IN_COPIES;
	/* the next segment may need what batch_full reserved */
	return tx->used + size + ARENA_RESERVE <= TX_ARENA ? IN_ARENA
							   : BY_REFERENCE;
}

/* where_to_stage returns the place of the head of the next segment; NULL: out
 * of memory. */
static uint8_t *where_to_stage(struct iwarp *c, enum stage_how how)
{
	if (how == IN_COPIES)
		return room_for_copy(c);
	if (how == COPY_APART && !room_for_copy(c))
		return NULL;
	return c->tx.arena + c->tx.used;
}

/* stage_payload stages a segment whose head, of head_len octets, has been
 * encoded where where_to_stage said. */
static void stage_payload(struct iwarp *c, enum stage_how how, size_t head_len,
			  const struct bufv *data, size_t off, size_t len)
{
	struct iwarp_tx *tx = &c->tx;
	struct iovec run;

	count_fpdu(c, len);
	switch (how) {
	case BY_REFERENCE:
		stage_pieces(c, head_len, data, off, len, NULL);
		return;
	case COPY_APART:
		stage_pieces(c, head_len, data, off, len,
			     tx->copies + tx->copied);
		tx->copied += len;
		c->stats.copied += len;
		return;
	case IN_ARENA:
	case IN_COPIES:
		break;
	}
	run.iov_base = how == IN_ARENA ? tx->arena + tx->used
				       : tx->copies + tx->copied;
	run.iov_len =
		mpa_fpdu_copy(&tx->s, run.iov_base, head_len, data, off, len);
	iwarp_add_piece(tx, run.iov_base, run.iov_len);
	if (how == IN_ARENA)
		tx->used += run.iov_len;
	else
		tx->copied += run.iov_len;
	if (len > SHORT_PAYLOAD)
		c->stats.copied += len;
}

/* stage_segment frames one segment: header, and len octets of data from off. */
static void stage_segment(struct iwarp *c, const struct rdmap_header *h,
			  const struct bufv *data, size_t off, size_t len,
			  bool unstable)
{
	enum stage_how how = how_to_stage(c, len, unstable);
	uint8_t *head = where_to_stage(c, how);

	if (head)
		stage_payload(c, how,
			      MPA_LENGTH_LEN +
				      rdmap_encode(h, head + MPA_LENGTH_LEN),
			      data, off, len);
}

/* ---- our own messages ---- */

/* Unused fields hold the values that RFC 7306 §5.2.1 prescribes. */
static void atomic_header(struct iwarp *c, struct rcap_wr *wr,
			  struct rdmap_header *h)
{
	const struct rcap_atomic *a = wr->atomic;
	bool swap = wr->op == RCAP_CMP_SWAP;

	h->opcode = RDMAP_ATOMIC_REQUEST;
	h->atomic = swap ? RDMAP_CMP_SWAP : RDMAP_FETCH_ADD;
	h->msn = wr->local = c->tx.msn[DDP_QN_READ];
	h->request_id = wr->local;
	h->source_stag = wr->stag;
	h->source_to = wr->to;
	h->value = a->value;
	h->mask = a->mask;
	h->compare = swap ? a->compare : 0;
	h->compare_mask = swap ? a->compare_mask : UINT64_MAX;
}

/* header_of: the header of a request that is neither a Send nor a Write. */
static struct rdmap_header header_of(struct iwarp *c, struct rcap_wr *wr)
{
	struct rdmap_header h = { .stag = wr->stag, .last = true };

	switch (wr->op) {
	case RCAP_READ:
		h.opcode = RDMAP_READ_REQUEST;
		h.msn = c->tx.msn[DDP_QN_READ];
		h.sink_stag = wr->local;
		h.source_stag = wr->stag;
		h.source_to = wr->to;
		h.read_size = (uint32_t)wr->data.len;
		break;
	case RCAP_FETCH_ADD:
	case RCAP_CMP_SWAP:
		atomic_header(c, wr, &h);
		break;
	default:
		h.opcode = wr->flags & RCAP_SOLICITED ? RDMAP_IMMEDIATE_SE
						      : RDMAP_IMMEDIATE;
		h.msn = c->tx.msn[DDP_QN_SEND];
		h.value = wr->immediate;
		break;
	}
	return h;
}

/* Stages the next segment of a Send or Write; true: it is the last one. */
static bool stage_data(struct iwarp *c, struct rcap_wr *wr)
{
	const struct bufv *data = &wr->data;
	bool write = wr->op == RCAP_WRITE, last;
	size_t left = data->len - wr->moved, off = wr->moved, head_len;
	size_t len = segment_len(c, data, off, left, data->len,
				 write ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN);
	enum stage_how how = how_to_stage(c, len, wr->flags & RCAP_UNSTABLE);
	uint8_t *head = where_to_stage(c, how);

	if (!head)
		return false;
	last = len == left;
	if (write)
		head_len =
			rdmap_encode_tagged(head + MPA_LENGTH_LEN, RDMAP_WRITE,
					    last, wr->stag, wr->to + off);
	else
		head_len =
			rdmap_encode_send(head + MPA_LENGTH_LEN,
					  iwarp_send_opcode(wr), last, wr->stag,
					  c->tx.msn[DDP_QN_SEND], wr->moved);
	stage_payload(c, how, MPA_LENGTH_LEN + head_len, data, off, len);
	wr->moved += (uint32_t)len;
	return last;
}

static void stage_wr(struct iwarp *c)
{
	static const struct bufv none;
	struct iwarp_tx *tx = &c->tx;
	struct rcap_wr *wr = tx->wr;

	if (wr->op == RCAP_SEND || wr->op == RCAP_WRITE) {
		if (!stage_data(c, wr))
			return;
	} else {
		struct rdmap_header h = header_of(c, wr);

		stage_segment(c, &h, &none, 0, 0, false);
	}
	if (wr->op != RCAP_WRITE)
		tx->msn[rcap_wr_has_response(wr) ? DDP_QN_READ : DDP_QN_SEND]++;
	iwarp_wq_staged(c, wr, tx->s.pos);
	tx->wr = NULL;
}

/* ---- answers to the peer's Reads ---- */

static void retire_answer(struct iwarp *c)
{
	c->answers_first = (c->answers_first + 1) % (c->cfg.wish.ird + 1u);
	c->answers_n--;
}

/* RFC 7306 §5.4: the operation is executed when its response is staged, after
 * the responses to earlier Reads. */
static void stage_atomic(struct iwarp *c, const struct iwarp_read *a)
{
	static const struct bufv none;
	struct rdmap_header h = { .opcode = RDMAP_ATOMIC_RESPONSE,
				  .last = true,
				  .msn = c->tx.msn[DDP_QN_ATOMIC],
				  .request_id = a->h.request_id };
	const struct bufv *memory;
	size_t off;
	int err = mr_find(c->mrs, c, a->h.source_stag, a->h.source_to,
			  sizeof(uint64_t), MR_REMOTE_ATOMIC, &memory, &off);
	uint64_t *word = err ? NULL : iwarp_atomic_word(memory, off);

	if (!err && !word)
		err = -TERM_RDMAP_STREAM_CATASTROPHIC;
	if (err) {
		iwarp_fail_answer(c, (uint16_t)-err, a);
		return;
	}
	h.value = iwarp_atomic_do(word, &a->h);
	stage_segment(c, &h, &none, 0, 0, false);
	c->tx.msn[DDP_QN_ATOMIC]++;
	retire_answer(c);
}

static void stage_read_response(struct iwarp *c, struct iwarp_read *a)
{
	struct rdmap_header h = { .opcode = RDMAP_READ_RESPONSE,
				  .stag = a->h.sink_stag,
				  .to = a->h.sink_to + a->sent };
	const struct bufv *memory;
	size_t off, left = a->h.read_size - a->sent, len;
	/* checked for each segment: a region may end at any time */
	int err = mr_find(c->mrs, c, a->h.source_stag, a->h.source_to + a->sent,
			  left, MR_REMOTE_READ, &memory, &off);

	if (err) {
		iwarp_fail_answer(c, (uint16_t)-err, a);
		return;
	}
	len = left ? segment_len(c, memory, off, left, a->h.read_size,
				 DDP_TAGGED_LEN)
		   : 0;
	h.last = len == left;
	stage_segment(c, &h, memory, off, len,
		      len && mr_may_change(c->mrs, a->h.source_stag));
	a->sent += (uint32_t)len;
	c->tx.has_responses = true;
	c->tx.responding = !h.last;
	if (h.last)
		retire_answer(c);
}

static void stage_answer(struct iwarp *c)
{
	struct iwarp_read *a = &c->answers[c->answers_first];

	if (a->h.opcode == RDMAP_ATOMIC_REQUEST)
		stage_atomic(c, a);
	else
		stage_read_response(c, a);
}

/* ---- Ready To Receive, Terminate ---- */

static void stage_rtr(struct iwarp *c)
{
	static const struct bufv none;
	struct iwarp_tx *tx = &c->tx;
	struct rdmap_header h = { .last = true, .msn = 1 };

	tx->rtr_wanted = false;
	switch (c->terms.rtr) {
	case MPA_RTR_WRITE:
		h.opcode = RDMAP_WRITE;
		break;
	case MPA_RTR_READ:
		h.opcode = RDMAP_READ_REQUEST;
		tx->msn[DDP_QN_READ]++;
		tx->rtr_read_out = true;
		break;
	default:
		h.opcode = RDMAP_SEND;
		tx->msn[DDP_QN_SEND]++;
		break;
	}
	stage_segment(c, &h, &none, 0, 0, false);
}

static void stage_terminate(struct iwarp *c)
{
	struct iwarp_tx *tx = &c->tx;
	struct rdmap_header h = { .opcode = RDMAP_TERMINATE,
				  .last = true,
				  .msn = 1 };
	const struct rdmap_terminate t = {
		.reason = tx->term,
		.has_segment_len = tx->term_head_len > 0,
		.has_ddp = tx->term_head_len > 0,
		.has_rdmap = tx->term_head_len > DDP_UNTAGGED_LEN,
		.segment_len = tx->term_segment_len,
		.headers = tx->term_head,
		.headers_len = tx->term_head_len,
	};
	uint8_t *body = tx->arena + tx->used;
	struct iovec iov = { body, rdmap_terminate_encode(&t, body) };
	struct bufv v = { &iov, 1, iov.iov_len };

	tx->term_wanted = false;
	tx->used += iov.iov_len;
	stage_segment(c, &h, &v, 0, v.len, false);
}

/* ---- batches ---- */

/* stage_one stages the next segment; false: there is none. */
static bool stage_one(struct iwarp *c)
{
	struct iwarp_tx *tx = &c->tx;
	bool may_answer = c->answers_n > 0;

	if (c->phase == PHASE_OVER || c->phase == PHASE_DEAD) {
		/* an unfinished message stays unfinished: the Terminate is
		 * last */
		if (!tx->term_wanted)
			return false;
		stage_terminate(c);
	} else if (tx->rtr_wanted) {
		stage_rtr(c);
	} else if (tx->wr) {
		stage_wr(c);
	} else if (tx->responding) {
		stage_answer(c);
	} else if (may_answer && (tx->response_next || !iwarp_wq_has_next(c))) {
		tx->response_next = false;
		stage_answer(c);
	} else {
		tx->response_next = true;
		tx->wr = iwarp_wq_next(c);
		if (tx->wr)
			stage_wr(c);
		else if (may_answer)
			stage_answer(c);
		else
			return false;
	}
	return true;
}

static void fill_batch(struct iwarp *c)
{
	uint64_t begun = c->tx.s.pos;

	iwarp_tx_reset(c);
	do
		iwarp_stage_usual(c, begun + TX_BATCH);
	while (!batch_full(c, begun) && stage_one(c));
}

/* FPDUs are sent in full operation only; the responder waits for the peer's
 * first FPDU (RFC 5044 §7.1.1). */
static bool may_stage(const struct iwarp *c)
{
	return c->phase == PHASE_FULL ||
	       (c->phase == PHASE_OVER && c->tx.term_wanted);
}

unsigned iwarp_tx_what(struct iwarp *c, struct iovec *iov, unsigned max)
{
	struct iwarp_tx *tx = &c->tx;
	unsigned n;

	if (tx->first == tx->n && may_stage(c))
		fill_batch(c);
	n = MIN(tx->n - tx->first, max);
	memcpy(iov, tx->iov + tx->first, n * sizeof(iov[0]));
	return n;
}

void iwarp_tx_done(struct iwarp *c, size_t n)
{
	struct iwarp_tx *tx = &c->tx;

	tx->taken += n;
	c->stats.tx_bytes += n;
	c->qp.sent += n;
	while (n > 0) {
		struct iovec *v = &tx->iov[tx->first];
		size_t k = MIN(n, v->iov_len);

		v->iov_base = (uint8_t *)v->iov_base + k;
		v->iov_len -= k;
		n -= k;
		if (v->iov_len == 0)
			tx->first++;
	}
	iwarp_wq_complete(c);
}

bool iwarp_tx_idle(const struct iwarp *c)
{
	const struct iwarp_tx *tx = &c->tx;

	return tx->first == tx->n && !tx->wr && !tx->responding &&
	       !tx->rtr_wanted && !tx->term_wanted;
}

void iwarp_tx_reset(struct iwarp *c)
{
	struct iwarp_tx *tx = &c->tx;

	tx->n = tx->first = 0;
	tx->used = tx->copied = 0;
	tx->has_responses = false;
	while (tx->detached) {
		struct iwarp_detached *next = tx->detached->next;

		free(tx->detached);
		tx->detached = next;
	}
}

/* ---- memory that its owner takes back ---- */

static bool overlaps(const struct iovec *v, const struct bufv *memory)
{
	const uint8_t *p = v->iov_base;

	for (unsigned i = 0; i < memory->n; i++) {
		const uint8_t *m = memory->iov[i].iov_base;

		if (p < m + memory->iov[i].iov_len && m < p + v->iov_len)
			return true;
	}
	return false;
}

int iwarp_tx_detach(struct iwarp *c, const struct bufv *memory)
{
	struct iwarp_tx *tx = &c->tx;
	size_t total = 0;
	struct iwarp_detached *d;
	uint8_t *to;

	if (!tx->has_responses)
		return 0;
	for (unsigned i = tx->first; i < tx->n; i++)
		if (overlaps(&tx->iov[i], memory))
			total += tx->iov[i].iov_len;
	if (total == 0)
		return 0;
	d = malloc(sizeof(*d) + total);
	if (!d)
		return ERR_NOMEM;
	d->next = tx->detached; /* freed with the batch */
	tx->detached = d;
	to = d->bytes;
	for (unsigned i = tx->first; i < tx->n; i++) {
		struct iovec *v = &tx->iov[i];

		if (!overlaps(v, memory))
			continue;
		memcpy(to, v->iov_base, v->iov_len);
		v->iov_base = to;
		to += v->iov_len;
	}
	return 0;
}
