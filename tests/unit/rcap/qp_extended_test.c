/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * qp_extended_test.c: RFC 7306 on a queue pair: Immediate Data, and atomic
 * operations at both ends. qp_segment_test.c has the refusals while it is
 * off.
 */
#include <stdlib.h>
#include <string.h>

#include "unit/rcap/peer.h"

#define C_IMMEDIATE    0x4148
#define C_IMMEDIATE_SE 0x4149
#define C_ATOMIC       0x414a
#define C_ATOMIC_DONE  0x414b

/* ---- Immediate Data ---- */

static void send_immediate(struct peer *p, uint16_t ctrl, uint32_t msn,
			   uint64_t value)
{
	const struct seg s = { .ctrl = ctrl, .msn = msn };
	uint8_t u[64];
	size_t n = peer_lay(p, &s, u);

	put_be64(u + n, value);
	peer_ulpdu(p, u, n + 8);
}

static void test_immediate_received_rfc7306_6_3(void **state)
{
	struct peer *p = peer_up_extended(2);
	const struct seg send = { .ctrl = C_SEND, .msn = 2, .payload = 5 };

	(void)state;
	send_immediate(p, C_IMMEDIATE, 1, 0x0102030405060708ull);
	assert_int_equal(p->received, 1);
	assert_true(p->last.is_immediate && !p->last.solicited);
	assert_int_equal(p->last.immediate, 0x0102030405060708ull);
	assert_int_equal(p->last.len, 0);
	assert_int_equal(p->last.buf[0], 0); /* nothing was written */
	peer_segment(p, &send);
	assert_int_equal(p->received, 2);
	assert_false(p->last.is_immediate);
	assert_int_equal(p->last.len, 5);
	send_immediate(p, C_IMMEDIATE_SE, 3, UINT64_MAX);
	assert_true(p->last.is_immediate && p->last.solicited);
	assert_int_equal(p->last.immediate, UINT64_MAX);
	peer_free(p);
}

struct bad_immediate {
	struct seg s;
	size_t octets; /* after the DDP header */
	uint16_t reason;
};

static void test_bad_immediates_rfc7306_6_3(void **state)
{
	/* clang-format off */
	static const struct bad_immediate rows[] = {
		{ { .ctrl = C_IMMEDIATE, .msn = 1 }, 7, TERM_RDMAP_STREAM_CATASTROPHIC },
		{ { .ctrl = C_IMMEDIATE, .msn = 1 }, 0, TERM_RDMAP_STREAM_CATASTROPHIC },
		{ { .ctrl = C_IMMEDIATE, .msn = 1 }, 9, TERM_DDP_UNTAGGED_TOO_LONG },
		{ { .ctrl = C_IMMEDIATE_SE, .msn = 1 }, 40, TERM_DDP_UNTAGGED_TOO_LONG },
		{ { .ctrl = C_MORE(C_IMMEDIATE), .msn = 1 }, 8, TERM_DDP_UNTAGGED_TOO_LONG },
		{ { .ctrl = C_IMMEDIATE, .msn = 2 }, 8, TERM_DDP_UNTAGGED_MSN },
		{ { .ctrl = C_IMMEDIATE, .msn = 1, .mo = 8 }, 8, TERM_DDP_UNTAGGED_MO },
		{ { .ctrl = C_IMMEDIATE, .qn = 1, .msn = 1 }, 8, TERM_RDMAP_OPCODE },
		{ { .ctrl = C_IMMEDIATE, .qn = 3, .msn = 1 }, 8, TERM_RDMAP_OPCODE },
		{ { .ctrl = C_IMMEDIATE, .qn = 4, .msn = 1 }, 8, TERM_DDP_UNTAGGED_QN },
		{ { .ctrl = 0x414c, .msn = 1 }, 8, TERM_RDMAP_OPCODE },
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_LEN(rows); i++) {
		struct peer *p = peer_up_extended(1);
		uint8_t u[128] = { 0 };
		size_t n = peer_lay(p, &rows[i / 2].s, u) + rows[i / 2].octets;

		p->chunk = i & 1;
		peer_ulpdu(p, u, n);
		peer_expect_terminate(p, rows[i / 2].reason, u, n, 18, 0);
		assert_int_equal(p->received, 0);
		peer_free(p);
	}
}

static void test_immediate_needs_a_receive_of_its_own(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		struct peer *p = peer_up_extended(k);
		const struct seg half = { .ctrl = C_MORE(C_SEND),
					  .msn = 1,
					  .payload = 4 };
		const struct seg s = { .ctrl = C_IMMEDIATE,
				       .msn = 1,
				       .mo = k * 4 };
		uint8_t u[64] = { 0 };
		size_t n = peer_lay(p, &s, u) + 8;

		if (k) /* in the middle of a Send */
			peer_segment(p, &half);
		peer_ulpdu(p, u, n);
		peer_expect_terminate(
			p, k ? TERM_RDMAP_OPCODE : TERM_DDP_UNTAGGED_NO_BUFFER,
			u, n, 18, 0);
		peer_free(p);
	}
}

static void test_immediate_sent(void **state)
{
	struct peer *p = peer_up_extended(1);
	struct rcap_wr wr[2] = { { .op = RCAP_IMMEDIATE,
				   .immediate = 0x1122334455667788ull },
				 { .op = RCAP_IMMEDIATE,
				   .flags = RCAP_SOLICITED,
				   .immediate = 1 } };
	struct rcap_wr *w[2] = { &wr[0], &wr[1] };
	uint8_t u[64];

	(void)state;
	assert_int_equal(rcap_post(p->qp, w, 2), 0);
	peer_turn(p);
	assert_int_equal(p->done, 2);
	assert_int_equal(peer_next(p, u), 26);
	assert_memory_equal(u, "\x41\x48\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0", 18);
	assert_memory_equal(u + 18, "\x11\x22\x33\x44\x55\x66\x77\x88", 8);
	assert_int_equal(peer_next(p, u), 26);
	assert_memory_equal(u, "\x41\x49\0\0\0\0\0\0\0\0\0\0\0\2\0\0\0\0", 18);
	peer_free(p);
}

static void test_off_unless_agreed_on(void **state)
{
	struct peer *p = peer_up(0x5002, 1);

	(void)state;
	for (unsigned op = RCAP_IMMEDIATE; op <= RCAP_CMP_SWAP; op++) {
		struct rcap_wr wr = { .op = (enum rcap_op)op }, *w = &wr;

		assert_int_equal(rcap_post(p->qp, &w, 1), ERR_UNSUPPORTED);
	}
	peer_free(p);
}

/* ---- the responder of atomic operations ---- */

struct words {
	uint64_t word[8];
	struct iovec iov[2];
	struct rcap_mr mr;
};

static void advertise(struct peer *p, struct words *w, unsigned rights)
{
	struct bufv v;

	w->iov[0] = (struct iovec){ w->word, sizeof(w->word) };
	v = bufv_of(w->iov, 1);
	assert_int_equal(rcap_reg(p->qp, &v, 0x5000, rights, &w->mr), 0);
}

static size_t lay_atomic(struct peer *p, const struct rdmap_header *h,
			 uint8_t *u)
{
	const struct seg s = { .ctrl = C_ATOMIC, .qn = 1, .msn = h->msn };

	peer_lay(p, &s, u);
	put_be32(u + 18, h->atomic);
	put_be32(u + 22, h->request_id);
	put_be32(u + 26, h->source_stag);
	put_be64(u + 30, h->source_to);
	put_be64(u + 38, h->value);
	put_be64(u + 46, h->mask);
	put_be64(u + 54, h->compare);
	put_be64(u + 62, h->compare_mask);
	return 70;
}

/* The algorithm of the clause, bit by bit. */
static uint64_t add_by_rfc7306_5_1_1(uint64_t old, uint64_t add, uint64_t mask)
{
	uint64_t out = 0, carry = 0;

	for (unsigned bit = 0; bit < 64; bit++) {
		uint64_t at = 1ull << bit;
		uint64_t sum =
			carry + ((old & at) >> bit) + ((add & at) >> bit);

		carry = (sum & 2) >> 1;
		if (sum & 1)
			out |= at;
		carry = carry && !(mask & at);
	}
	return out;
}

static uint64_t rnd(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

static void run_one(struct peer *p, struct words *w, struct rdmap_header *h,
		    uint64_t want)
{
	uint64_t old = w->word[3];
	uint8_t u[128];

	h->source_stag = w->mr.stag;
	h->source_to = 0x5000 + 24;
	h->request_id = 0xc0de0000u + h->msn;
	peer_ulpdu(p, u, lay_atomic(p, h, u));
	assert_int_equal(w->word[3], want);
	assert_int_equal(peer_next(p, u), 30);
	assert_memory_equal(u, "\x41\x4b\0\0\0\0\0\0\0\3", 10);
	assert_int_equal(get_be32(u + 10), h->msn);
	assert_int_equal(get_be32(u + 14), 0);
	assert_int_equal(get_be32(u + 18), h->request_id);
	assert_int_equal(get_be64(u + 22), old);
	assert_int_equal(w->word[2] | w->word[4], 0);
}

static void test_fetch_add_with_masks_rfc7306_5_1_1(void **state)
{
	static const uint64_t masks[] = { 0, 1ull << 63, UINT64_MAX,
					  0x8080808080808080ull,
					  0x8000000080000000ull };
	struct peer *p = peer_up_extended(1);
	struct words w = { 0 };
	uint64_t x = 88172645463325252ull;

	(void)state;
	advertise(p, &w, RCAP_REMOTE_ATOMIC);
	for (uint32_t i = 1; i < 500; i++) {
		struct rdmap_header h = { .msn = i,
					  .atomic = RDMAP_FETCH_ADD,
					  .value = rnd(&x) };

		h.mask = i < 100 ? masks[i % ARRAY_LEN(masks)] : rnd(&x);
		run_one(p, &w, &h,
			add_by_rfc7306_5_1_1(w.word[3], h.value, h.mask));
	}
	peer_free(p);
}

static void test_cmp_swap_with_masks_rfc7306_5_1_2(void **state)
{
	struct peer *p = peer_up_extended(1);
	struct words w = { 0 };
	uint64_t x = 99;
	unsigned swapped = 0;

	(void)state;
	advertise(p, &w, RCAP_REMOTE_ATOMIC);
	for (uint32_t i = 1; i < 500; i++) {
		struct rdmap_header h = { .msn = i,
					  .atomic = RDMAP_CMP_SWAP,
					  .value = rnd(&x),
					  .mask = rnd(&x),
					  .compare_mask = 1ull << (i % 64) };
		bool fits;

		h.compare = i % 3 ? w.word[3] : rnd(&x);
		if (i % 7 == 0) /* a plain swap */
			h.mask = UINT64_MAX, h.compare_mask = 0;
		fits = ((h.compare ^ w.word[3]) & h.compare_mask) == 0;
		swapped += fits;
		run_one(p, &w, &h,
			fits ? (w.word[3] & ~h.mask) | (h.value & h.mask)
			     : w.word[3]);
	}
	assert_true(swapped > 300 && swapped < 499);
	peer_free(p);
}

struct bad_atomic {
	const char *what;
	uint32_t stag_xor;
	uint64_t to;
	uint8_t atomic;
	unsigned rights;
	uint16_t reason;
};

static void test_bad_atomic_requests_rfc7306_8_2(void **state)
{
	/* clang-format off */
	static const struct bad_atomic rows[] = {
		{ "no such STag", 0x700, 0x5000, 0, RCAP_REMOTE_ATOMIC, TERM_RDMAP_INVALID_STAG },
		{ "no right", 0, 0x5000, 2, RCAP_REMOTE_READ | RCAP_REMOTE_WRITE, TERM_RDMAP_ACCESS },
		{ "before the base", 0, 0x4ff8, 0, RCAP_REMOTE_ATOMIC, TERM_RDMAP_BOUNDS },
		{ "over the end", 0, 0x5000 + 57, 0, RCAP_REMOTE_ATOMIC, TERM_RDMAP_BOUNDS },
		{ "wraps", 0, UINT64_MAX - 3, 2, RCAP_REMOTE_ATOMIC, TERM_RDMAP_TO_WRAP },
		{ "not aligned", 0, 0x5001, 0, RCAP_REMOTE_ATOMIC, TERM_RDMAP_STREAM_CATASTROPHIC },
		{ "not aligned", 0, 0x5004, 2, RCAP_REMOTE_ATOMIC, TERM_RDMAP_STREAM_CATASTROPHIC },
		{ "operation 1", 0, 0x5000, 1, RCAP_REMOTE_ATOMIC, TERM_RDMAP_OPCODE },
		{ "operation 15", 0, 0x5000, 15, RCAP_REMOTE_ATOMIC, TERM_RDMAP_OPCODE },
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct peer *p = peer_up_extended(1);
		struct words w = { { 5, 5, 5, 5, 5, 5, 5, 5 },
				   { { 0 } },
				   { 0 } };
		struct rdmap_header h = { .msn = 1,
					  .atomic = rows[i].atomic,
					  .source_to = rows[i].to,
					  .value = 1,
					  .mask = UINT64_MAX };
		uint8_t u[128];
		size_t n;

		advertise(p, &w, rows[i].rights);
		h.source_stag = w.mr.stag ^ rows[i].stag_xor;
		n = lay_atomic(p, &h, u);
		peer_ulpdu(p, u, n);
		/* the RDMAP header is not sent back (§8.1) */
		peer_expect_terminate(p, rows[i].reason, u, n, 18, 0);
		for (unsigned k = 0; k < 8; k++)
			assert_int_equal(w.word[k], 5);
		peer_free(p);
	}
}

/* The memory must be 8 aligned octets in one piece, whatever the tagged
 * offset. */
static void test_atomic_word_in_two_pieces(void **state)
{
	struct peer *p = peer_up_extended(1);
	struct words w = { 0 };
	struct rdmap_header h = { .msn = 1, .source_to = 8, .value = 1 };
	struct bufv v;
	uint8_t u[128];
	size_t n;

	(void)state;
	w.iov[0] = (struct iovec){ w.word, 12 };
	w.iov[1] = (struct iovec){ (uint8_t *)w.word + 12, 12 };
	v = bufv_of(w.iov, 2);
	assert_int_equal(rcap_reg(p->qp, &v, 0, RCAP_REMOTE_ATOMIC, &w.mr), 0);
	h.source_stag = w.mr.stag;
	n = lay_atomic(p, &h, u);
	peer_ulpdu(p, u, n);
	peer_expect_terminate(p, TERM_RDMAP_STREAM_CATASTROPHIC, u, n, 18, 0);
	assert_int_equal(w.word[1], 0);
	peer_free(p);
}

/* §5.4, §7: after earlier Reads, and limited by their IRD. */
static void test_atomics_share_the_queue_of_reads_rfc7306_5_2(void **state)
{
	struct peer *p = peer_up_extended(1); /* IRD 2 */
	struct words w = { 0 };
	struct seg read = { .ctrl = C_READ,
			    .qn = 1,
			    .msn = 1,
			    .read = true,
			    .size = 8,
			    .source_to = 0x5000 };
	struct rdmap_header h = { .msn = 2, .source_to = 0x5000, .value = 9 };
	uint8_t u[128], r[128];
	size_t n;

	(void)state;
	advertise(p, &w, RCAP_REMOTE_ATOMIC | RCAP_REMOTE_READ);
	read.source = h.source_stag = w.mr.stag;
	p->stalled = true;
	peer_segment(p, &read);
	peer_ulpdu(p, u, lay_atomic(p, &h, u));
	h.msn = 3;
	n = lay_atomic(p, &h, u);
	assert_int_equal(w.word[0], 0);
	p->stalled = false;
	peer_turn(p);
	assert_int_equal(peer_next(p, r), 22); /* what was there before */
	assert_memory_equal(r + 14, "\0\0\0\0\0\0\0\0", 8);
	assert_int_equal(peer_next(p, r), 30);
	assert_int_equal(w.word[0], 9);
	p->stalled = true;
	for (h.msn = 3; h.msn < 6; h.msn++) {
		n = lay_atomic(p, &h, u);
		peer_ulpdu(p, u, n);
	}
	p->stalled = false;
	peer_turn(p);
	peer_expect_terminate(p, TERM_DDP_UNTAGGED_NO_BUFFER, u, n, 18, 0);
	/* those were not executed: the Terminate comes first */
	assert_int_equal(w.word[0], 9);
	peer_free(p);
}

static void test_invalidated_before_its_turn(void **state)
{
	struct peer *p = peer_up_extended(1);
	struct words w = { 0 };
	struct rdmap_header h = { .msn = 1, .source_to = 0x5000, .value = 9 };
	uint8_t u[128];
	size_t n;

	(void)state;
	advertise(p, &w, RCAP_REMOTE_ATOMIC);
	h.source_stag = w.mr.stag;
	n = lay_atomic(p, &h, u);
	p->stalled = true;
	peer_ulpdu(p, u, n);
	rcap_invalidate(p->qp, &w.mr);
	p->stalled = false;
	peer_turn(p);
	peer_expect_terminate(p, TERM_RDMAP_INVALID_STAG, u, n, 18, 0);
	assert_int_equal(w.word[0], 0);
	peer_free(p);
}

/* ---- the requester ---- */

static void post_atomic(struct peer *p, struct rcap_wr *wr, enum rcap_op op,
			struct rcap_atomic *a)
{
	*wr = (struct rcap_wr){ .op = op,
				.stag = 0xabcd,
				.to = 0x1122334455667788ull,
				.atomic = a };
	assert_int_equal(rcap_post(p->qp, &wr, 1), 0);
	peer_turn(p);
}

static void answer(struct peer *p, uint32_t msn, uint32_t id, uint64_t was)
{
	const struct seg s = { .ctrl = C_ATOMIC_DONE, .qn = 3, .msn = msn };
	uint8_t u[64];
	size_t n = peer_lay(p, &s, u);

	put_be32(u + n, id);
	put_be64(u + n + 4, was);
	peer_ulpdu(p, u, n + 12);
}

static void test_atomics_asked_for_rfc7306_5_2_1(void **state)
{
	struct peer *p = peer_up_extended(1);
	struct rcap_atomic add = { .value = 7, .mask = 1, .compare = 99 };
	struct rcap_atomic swap = {
		.value = 1, .mask = 2, .compare = 3, .compare_mask = 4
	};
	struct rcap_wr wr[3];
	uint8_t u[128];

	(void)state;
	post_atomic(p, &wr[0], RCAP_FETCH_ADD, &add);
	post_atomic(p, &wr[1], RCAP_CMP_SWAP, &swap);
	post_atomic(p, &wr[2], RCAP_FETCH_ADD, &add); /* ORD 2: it waits */
	assert_int_equal(peer_next(p, u), 70);
	assert_memory_equal(u,
			    "\x41\x4a\0\0\0\0\0\0\0\1\0\0\0\1\0\0\0\0"
			    "\0\0\0\0\0\0\0\1\0\0\xab\xcd"
			    "\x11\x22\x33\x44\x55\x66\x77\x88"
			    "\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0\1"
			    "\0\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff",
			    70);
	assert_int_equal(peer_next(p, u), 70);
	assert_memory_equal(u + 18, "\0\0\0\2\0\0\0\2", 8);
	assert_memory_equal(u + 38,
			    "\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\2"
			    "\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\4",
			    32);
	assert_int_equal(peer_next(p, u), 0);
	answer(p, 1, 1, 0x1234567890ull);
	assert_int_equal(p->done, 1);
	assert_int_equal(add.original, 0x1234567890ull);
	assert_int_equal(peer_next(p, u), 70); /* the third is sent */
	answer(p, 2, 2, 55);
	assert_int_equal(swap.original, 55);
	answer(p, 3, 3, 56);
	assert_int_equal(add.original, 56);
	assert_int_equal(p->done, 3);
	peer_free(p);
}

/* Request identifiers and STags are of different kinds, even if they are equal
 * numbers. */
static void test_identifiers_are_no_stags(void **state)
{
	struct peer *p = peer_up_extended(1);
	struct rcap_atomic a = { .value = 7 };
	const struct seg write = { .ctrl = C_WRITE,
				   .stag = S_WRITABLE,
				   .to = PEER_BASE,
				   .payload = 8 };
	struct rcap_wr wr;

	(void)state;
	for (uint32_t i = 1; i < 0x300; i++) {
		post_atomic(p, &wr, RCAP_FETCH_ADD, &a);
		answer(p, i, i, i);
		assert_int_equal(a.original, i);
	}
	peer_segment(p, &write);
	assert_int_equal(p->memory[3 * PEER_REGION + 7], 8);
	assert_int_equal(rcap_state(p->qp), RCAP_ESTABLISHED);
	peer_free(p);
}

static void test_bad_atomic_responses_rfc7306_5_2_2(void **state)
{
	static const struct {
		bool asked;
		struct seg s;
		uint32_t id;
		size_t octets;
		uint16_t reason;
	} rows[] = {
		{ false, { .msn = 1 }, 1, 12, TERM_DDP_UNTAGGED_NO_BUFFER },
		{ true, { .msn = 2 }, 1, 12, TERM_DDP_UNTAGGED_MSN },
		{ true, { .msn = 1 }, 2, 12, TERM_RDMAP_STREAM_CATASTROPHIC },
		{ true, { .msn = 1 }, 1, 11, TERM_RDMAP_STREAM_CATASTROPHIC },
		{ true, { .msn = 1 }, 1, 20, TERM_DDP_UNTAGGED_TOO_LONG },
		{ true, { .msn = 1, .mo = 1 }, 1, 12, TERM_DDP_UNTAGGED_MO },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct peer *p = peer_up_extended(1);
		struct rcap_atomic a = { .original = 77 };
		struct rcap_wr wr;
		struct seg s = rows[i].s;
		uint8_t u[128] = { 0 };
		size_t n;

		if (rows[i].asked)
			post_atomic(p, &wr, RCAP_FETCH_ADD, &a);
		p->seen = p->sent_len;
		p->out.pos = p->sent_len;
		s.ctrl = C_ATOMIC_DONE;
		s.qn = 3;
		n = peer_lay(p, &s, u);
		put_be32(u + n, rows[i].id);
		n += rows[i].octets;
		peer_ulpdu(p, u, n);
		peer_expect_terminate(p, rows[i].reason, u, n, 18, 0);
		assert_int_equal(a.original, 77);
		assert_int_equal(p->aborted, rows[i].asked);
		peer_free(p);
	}
}

/* A response must answer the oldest request, and be of its kind. */
static void test_answers_of_the_wrong_kind(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		struct peer *p = peer_up_extended(1);
		struct rcap_atomic a = { .value = 1 };
		struct rcap_wr wr;
		struct seg s = { .ctrl = k ? C_ATOMIC_DONE : C_RESPONSE };
		uint8_t u[64] = { 0 };
		size_t n;

		post_atomic(p, &wr, k ? RCAP_READ : RCAP_FETCH_ADD, &a);
		p->seen = p->sent_len;
		if (k)
			s.qn = 3, s.msn = 1;
		n = peer_lay(p, &s, u) + (k ? 12 : 0);
		peer_ulpdu(p, u, n);
		peer_expect_terminate(
			p, k ? TERM_DDP_UNTAGGED_NO_BUFFER : TERM_RDMAP_OPCODE,
			u, n, k ? 18 : 14, 0);
		peer_free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_immediate_received_rfc7306_6_3),
		cmocka_unit_test(test_bad_immediates_rfc7306_6_3),
		cmocka_unit_test(test_immediate_needs_a_receive_of_its_own),
		cmocka_unit_test(test_immediate_sent),
		cmocka_unit_test(test_off_unless_agreed_on),
		cmocka_unit_test(test_fetch_add_with_masks_rfc7306_5_1_1),
		cmocka_unit_test(test_cmp_swap_with_masks_rfc7306_5_1_2),
		cmocka_unit_test(test_bad_atomic_requests_rfc7306_8_2),
		cmocka_unit_test(test_atomic_word_in_two_pieces),
		cmocka_unit_test(
			test_atomics_share_the_queue_of_reads_rfc7306_5_2),
		cmocka_unit_test(test_invalidated_before_its_turn),
		cmocka_unit_test(test_atomics_asked_for_rfc7306_5_2_1),
		cmocka_unit_test(test_identifiers_are_no_stags),
		cmocka_unit_test(test_bad_atomic_responses_rfc7306_5_2_2),
		cmocka_unit_test(test_answers_of_the_wrong_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
