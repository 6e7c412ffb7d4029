/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * qp_end_test.c: one queue pair and its own requests: Reads and their
 * Responses, valid and invalid; regions that end while octets of them are in
 * progress; Terminate in both directions; every way to end.
 */
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "unit/rcap/peer.h"

#define WR_TO(t, n) \
 .ctrl = C_WRITE, .stag = S_WRITABLE, .to = (t), .payload = (n)

struct request {
	struct rcap_wr wr;
	struct iovec iov;
	uint8_t *memory;
};

static void post(struct peer *p, struct request *r, enum rcap_op op, size_t len)
{
	struct rcap_wr *w = &r->wr;

	r->memory = malloc(len + 1);
	memset(r->memory, 0x5a, len + 1);
	r->iov = (struct iovec){ r->memory, len };
	r->wr = (struct rcap_wr){ .op = op,
				  .data = bufv_of(&r->iov, 1),
				  .stag = 0x1234,
				  .to = 0x9000 };
	assert_int_equal(rcap_post(p->qp, &w, 1), 0);
	peer_turn(p);
}

/* The sink STag that our last Read Request named. */
static uint32_t sink_of(struct peer *p)
{
	uint8_t u[64];

	assert_int_equal(peer_next(p, u), 46);
	assert_int_equal(get_be64(u + 22), 0); /* sink offset */
	return get_be32(u + 18);
}

static void respond(struct peer *p, uint32_t stag, uint64_t to, size_t len,
		    bool last)
{
	const struct seg s = { .ctrl = last ? C_RESPONSE : C_MORE(C_RESPONSE),
			       .stag = stag,
			       .to = to,
			       .payload = len };

	peer_segment(p, &s);
}

/* ---- Read Responses ---- */

static void test_read_in_three_segments(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 3; k++) {
		struct peer *p = peer_up_active(k == 2 ? 0xd002 : 0x5002, 1);
		struct request r;
		uint32_t sink;

		p->chunk = k == 1;
		post(p, &r, RCAP_READ, 100);
		sink = sink_of(p);
		respond(p, sink, 0, 40, false);
		respond(p, sink, 40, 0, false);
		respond(p, sink, 40, 40, false);
		assert_int_equal(p->done, 0);
		respond(p, sink, 80, 20, true);
		assert_int_equal(p->done, 1);
		assert_int_equal(p->done_err, 0);
		assert_int_equal(r.memory[39], 40);
		assert_int_equal(r.memory[99], 20);
		assert_int_equal(r.memory[100], 0x5a);
		/* its sink has ended with it */
		respond(p, sink, 0, 8, true);
		assert_non_null(strstr(p->why, "unexpected opcode"));
		peer_free(p);
		free(r.memory);
	}
}

struct wrong_response {
	const char *what;
	uint32_t stag_xor;
	uint64_t to;
	size_t len;
	bool last;
	uint16_t reason;
};

static void test_read_responses_that_are_wrong(void **state)
{
	static const struct wrong_response rows[] = {
		{ "STag", 0x100, 0, 100, true, 0x1100 },
		{ "key", 1, 0, 100, true, 0x1100 },
		{ "offset ahead", 0, 4, 96, true, 0x1101 },
		{ "offset huge", 0, UINT64_MAX - 4, 100, true, 0x1101 },
		{ "too long", 0, 0, 101, true, 0x1101 },
		{ "far too long", 0, 0, 30000, false, 0x1101 },
		{ "last too early", 0, 0, 99, true, 0x0207 },
		{ "last of nothing", 0, 0, 0, true, 0x0207 },
		{ "not the last", 0, 0, 100, false, 0x0207 },
	};

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_LEN(rows); i++) {
		const struct wrong_response *w = &rows[i / 2];
		struct peer *p = peer_up_active(i & 1 ? 0x5002 : 0xd002, 1);
		struct request r;
		static uint8_t u[40000];
		struct seg s = { .ctrl = w->last ? C_RESPONSE
						 : C_MORE(C_RESPONSE),
				 .to = w->to,
				 .payload = w->len };
		size_t n;

		post(p, &r, RCAP_READ, 100);
		s.stag = sink_of(p) ^ w->stag_xor;
		n = peer_lay(p, &s, u);
		peer_ulpdu(p, u, n);
		peer_expect_terminate(p, w->reason, u, n, 14, 0);
		assert_int_equal(p->aborted, 1);
		for (size_t k = 0; k <= 100; k++)
			assert_int_equal(r.memory[k], 0x5a);
		peer_free(p);
		free(r.memory);
	}
}

/* RFC 5040 §5.2.2: Responses arrive in the order of the Reads. */
static void test_second_read_answered_first(void **state)
{
	struct peer *p = peer_up_active(0x5002, 1);
	struct request a, b;
	uint8_t u[128];
	struct seg s = { .ctrl = C_RESPONSE, .payload = 50 };
	size_t n;

	(void)state;
	post(p, &a, RCAP_READ, 50);
	sink_of(p);
	post(p, &b, RCAP_READ, 50);
	s.stag = sink_of(p);
	n = peer_lay(p, &s, u);
	peer_ulpdu(p, u, n);
	peer_expect_terminate(p, TERM_DDP_TAGGED_INVALID_STAG, u, n, 14, 0);
	assert_int_equal(p->aborted, 2);
	peer_free(p);
	free(a.memory);
	free(b.memory);
}

/* A Write to the sink of a Read, which has no rights for the peer. */
static void test_sink_takes_no_write_and_no_invalidation(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 3; k++) {
		struct peer *p = peer_up_active(0x5002, 1);
		struct request r;
		uint8_t u[128];
		struct seg s = { .ctrl = k == 0 ? C_WRITE : C_SEND_INV,
				 .msn = 1,
				 .payload = 8 };
		size_t n;

		if (k == 2)
			s = (struct seg){ .ctrl = C_READ,
					  .qn = 1,
					  .msn = 1,
					  .read = true,
					  .size = 8 };
		post(p, &r, RCAP_READ, 100);
		s.stag = s.source = sink_of(p);
		n = peer_lay(p, &s, u);
		peer_ulpdu(p, u, n);
		peer_expect_terminate(p,
				      k == 0   ? TERM_DDP_TAGGED_BOUNDS
				      : k == 1 ? TERM_RDMAP_CANT_INVALIDATE
					       : TERM_RDMAP_ACCESS,
				      u, n, k == 0 ? 14 : 18, k == 2 ? 28 : 0);
		assert_int_equal(r.memory[0], 0x5a);
		peer_free(p);
		free(r.memory);
	}
}

/* Reads beyond ORD wait, and so do the requests after them. */
static void test_reads_wait_for_ord(void **state)
{
	struct peer *p = peer_up_active(0x5002, 1); /* ORD 2 */
	struct request r[4];
	uint8_t u[256];
	uint32_t sink;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		post(p, &r[i], RCAP_READ, 10);
	post(p, &r[3], RCAP_SEND, 10);
	sink = sink_of(p);
	sink_of(p);
	assert_int_equal(peer_next(p, u), 0);
	respond(p, sink, 0, 10, true);
	sink_of(p);
	assert_int_equal(peer_next(p, u), 28);
	assert_int_equal(p->done, 1);
	peer_free(p);
	assert_memory_equal(u, "\x41\x43", 2);
	for (unsigned i = 0; i < 4; i++)
		free(r[i].memory);
}

/* ---- Terminate comes in ---- */

static void test_terminate_received(void **state)
{
	static const struct {
		const char *octets, *why;
		size_t n;
	} rows[] = {
		{ "\x11\0\0\0", "DDP: tagged, invalid STag (0x1100)", 4 },
		{ "\x20\2\0\0", "MPA: CRC error (0x2002)", 4 },
		{ "\0\xff\0\0", "RDMAP: local catastrophic", 4 },
		{ "\xee\xee\0\0", "unknown reason (0xeeee)", 4 },
		/* siw of Linux swaps the nibbles of the first octet */
		{ "\x21\3\3\0\0\x84", "MSN out of range (0x1203, layer", 6 },
		{ "\2\2\0\0", "MPA: CRC error (0x2002, layer", 4 },
		{ "\x12", "too short", 1 },
		{ "", "too short", 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct peer *p = peer_up(0x5002, 1);
		struct request r;
		uint8_t u[64];
		const struct seg s = { .ctrl = C_TERM, .qn = 2, .msn = 1 };
		size_t n = peer_lay(p, &s, u);

		post(p, &r, RCAP_READ, 10);
		p->seen = p->sent_len;
		memcpy(u + n, rows[i].octets, rows[i].n);
		peer_ulpdu(p, u, n + rows[i].n);
		/* RFC 5040 §5.4: no answer */
		peer_expect_closed(p, ERR_TERMINATED, rows[i].why);
		assert_int_equal(p->aborted, 1);
		assert_int_equal(p->aborted_recvs, 1);
		peer_free(p);
		free(r.memory);
	}
}

/* Any part of the headers is accepted; one octet more makes the Terminate
 * invalid. */
static void test_terminate_of_every_size_rfc5040_4_8(void **state)
{
	const struct seg s = { .ctrl = C_TERM, .qn = 2, .msn = 1 };
	static const uint8_t reason[] = { 0x11, 0, 0, 0 };

	(void)state;
	for (size_t n = sizeof(reason); n <= RDMAP_TERMINATE_MAX + 1; n++) {
		struct peer *p = peer_up(0x5002, 1);
		uint8_t u[128] = { 0 };
		size_t head = peer_lay(p, &s, u);

		p->seen = p->sent_len;
		memcpy(u + head, reason, sizeof(reason));
		peer_ulpdu(p, u, head + n);
		if (n <= RDMAP_TERMINATE_MAX)
			peer_expect_closed(p, ERR_TERMINATED, "(0x1100)");
		else
			peer_expect_terminate(p, TERM_DDP_UNTAGGED_TOO_LONG, u,
					      head + n, 18, 0);
		peer_free(p);
	}
}

/* ---- Terminate while a message is half sent ---- */

static void take(struct peer *p, size_t n)
{
	struct iovec iov[4];
	unsigned k = iwarp_stream_ops.tx_what(p->c, iov, 4);
	struct bufv v = bufv_of(iov, k);

	assert_true(n < v.len);
	bufv_copy_out(&v, 0, p->sent + p->sent_len, n);
	p->sent_len += n;
	iwarp_stream_ops.tx_done(p->c, n, p->now);
}

static void test_terminate_in_the_middle_of_a_message(void **state)
{
	(void)state;
	/* staged octets are sent; the rest of the message is not */
	for (size_t part = 1; part < 700; part += 61) {
		struct peer *p = peer_up_path(0x5002, 512, 1);
		struct request r;
		const struct seg bad = { .ctrl = C_SEND, .msn = 9 };
		static uint8_t u[1024];
		size_t n, segments = 0, total = 0;

		p->stalled = true;
		post(p, &r, RCAP_SEND, 1 << 20);
		take(p, part);
		peer_segment(p, &bad);
		assert_int_equal(rcap_state(p->qp), RCAP_CLOSING);
		p->stalled = false;
		peer_turn(p);
		while ((n = peer_next(p, u)) && (u[1] & 0x0f) == RDMAP_SEND) {
			/* the L bit never arrives */
			assert_int_equal(u[0] & 0x40, 0);
			segments++;
			total += n - 18;
		}
		assert_true(segments > 1 && total < r.wr.data.len);
		assert_int_equal(u[1] & 0x0f, RDMAP_TERMINATE);
		assert_int_equal(get_be16(u + 18), TERM_DDP_UNTAGGED_MSN);
		assert_int_equal(peer_next(p, u), 0);
		assert_true(p->closed);
		assert_int_equal(p->aborted, 1);
		peer_free(p);
		free(r.memory);
	}
}

/* ---- regions that go ---- */

#define BIG (900u << 10) /* more than is staged at once */

struct big {
	uint8_t *memory;
	struct iovec iov;
	struct rcap_mr mr;
};

static void big_make(struct peer *p, struct big *b, size_t len, unsigned rights)
{
	struct bufv v;

	b->memory = malloc(len);
	for (size_t i = 0; i < len; i++)
		b->memory[i] = (uint8_t)((i * 7 + (i >> 9)) % 190);
	b->iov = (struct iovec){ b->memory, len };
	v = bufv_of(&b->iov, 1);
	assert_int_equal(rcap_reg(p->qp, &v, 0x40000, rights, &b->mr), 0);
}

/* The staged part of a response was read before the region ended, and is sent;
 * no octet is read afterwards: the memory is freed. The next segment is
 * refused, and the Terminate names the part that is missing (RFC 5040 §4.8). */
static void invalidate_under_a_response(bool remotely, size_t part)
{
	struct peer *p = peer_up(0x5002, 1);
	struct big b;
	struct seg s = { .ctrl = C_READ,
			 .qn = 1,
			 .msn = 1,
			 .read = true,
			 .sink = 0x777,
			 .sink_to = 0x100,
			 .size = BIG,
			 .source_to = 0x40000 };
	static uint8_t u[70000], want[BIG];
	struct bufv all;
	size_t n, got = 0;

	big_make(p, &b, BIG, RCAP_REMOTE_READ);
	all = bufv_of(&b.iov, 1);
	memcpy(want, b.memory, BIG);
	p->stalled = true;
	s.source = b.mr.stag;
	peer_segment(p, &s);
	take(p, part);
	if (remotely) {
		const struct seg inv = { .ctrl = C_SEND_INV,
					 .stag = b.mr.stag,
					 .msn = 1 };

		peer_segment(p, &inv);
		assert_true(p->last.invalidated);
		assert_int_equal(p->last.stag, b.mr.stag);
		memset(b.memory, 0xdd, BIG);
	}
	rcap_invalidate(p->qp, &b.mr);
	/* fill our memory (by a call that no compiler omits before free) */
	bufv_fill(&all, 0, 0xee, BIG);
	free(b.memory);
	p->stalled = false;
	peer_turn(p);
	while ((n = peer_next(p, u)) && (u[1] & 0x0f) == RDMAP_READ_RESPONSE) {
		assert_int_equal(get_be64(u + 6), 0x100 + got);
		assert_memory_equal(u + 14, want + got, n - 14);
		got += n - 14;
	}
	assert_true(got > 0 && got < BIG);
	assert_int_equal(n, 18 + 6 + 46);
	assert_memory_equal(u + 18, "\x01\0\xe0\0\0\x2e\x41\x41", 8);
	assert_int_equal(get_be32(u + 24 + 10), 1); /* MSN */
	assert_int_equal(get_be32(u + 24 + 18), 0x777);
	assert_int_equal(get_be64(u + 24 + 22), 0x100 + got);
	assert_int_equal(get_be32(u + 24 + 30), BIG - got);
	assert_int_equal(get_be32(u + 24 + 34), b.mr.stag);
	assert_int_equal(get_be64(u + 24 + 38), 0x40000 + got);
	assert_true(p->closed);
	assert_int_equal(p->err, ERR_ACCESS);
	peer_free(p);
}

static void test_invalidate_while_a_response_is_staged(void **state)
{
	(void)state;
	for (size_t part = 1; part < 100000; part += 33333) {
		invalidate_under_a_response(false, part);
		invalidate_under_a_response(true, part);
	}
}

/* A Read whose region ended before it was answered. */
static void test_invalidate_before_a_response(void **state)
{
	struct peer *p = peer_up(0x5002, 1);
	struct seg s = { .ctrl = C_READ,
			 .qn = 1,
			 .msn = 1,
			 .read = true,
			 .source = S_READABLE,
			 .size = 64,
			 .source_to = PEER_BASE };
	uint8_t u[64];
	size_t n = peer_lay(p, &s, u);

	(void)state;
	p->stalled = true;
	peer_ulpdu(p, u, n);
	rcap_invalidate(p->qp, &p->readable);
	p->stalled = false;
	peer_turn(p);
	peer_expect_terminate(p, TERM_RDMAP_INVALID_STAG, u, n, 18, 28);
	peer_free(p);
}

/* A Read, and a Write to the same place before the response is sent: the
 * response has the old data and a valid CRC (peer_next checks). */
static void test_write_behind_a_read_of_the_same_place(void **state)
{
	struct peer *p = peer_up(0x5002, 1);
	uint8_t memory[64], old[64], u[128];
	struct iovec iov = { memory, sizeof(memory) };
	const struct bufv v = bufv_of(&iov, 1);
	struct rcap_mr mr;
	struct seg read = {
		.ctrl = C_READ, .qn = 1, .msn = 1, .read = true, .size = 64
	};
	struct seg write = { .ctrl = C_WRITE, .payload = 64 };

	(void)state;
	memset(memory, 0x33, sizeof(memory));
	memcpy(old, memory, sizeof(old));
	assert_int_equal(rcap_reg(p->qp, &v, 0,
				  RCAP_REMOTE_READ | RCAP_REMOTE_WRITE, &mr),
			 0);
	read.source = write.stag = mr.stag;
	p->stalled = true;
	peer_segment(p, &read);
	take(p, 5);
	peer_segment(p, &write);
	assert_int_equal(memory[63], 64);
	p->stalled = false;
	peer_turn(p);
	assert_int_equal(peer_next(p, u), 14 + 64);
	assert_memory_equal(u + 14, old, 64);
	peer_free(p);
}

/* A Write whose region ends when half of it has arrived: no further octet is
 * placed. */
static void test_invalidate_while_a_write_comes_in(void **state)
{
	static const uint16_t bits[] = { 0x5002, 0xd002, 0x1002 };

	(void)state;
	for (unsigned k = 0; k < 2 * ARRAY_LEN(bits); k++) {
		struct peer *p = peer_up(bits[k / 2], 1);
		struct big b;
		struct seg s = { .ctrl = C_WRITE,
				 .to = 0x40000,
				 .payload = 30000 };
		static uint8_t u[40000], fpdu[40000];
		size_t n, len;

		big_make(p, &b, 30000, RCAP_REMOTE_WRITE);
		s.stag = b.mr.stag;
		len = peer_lay(p, &s, u);
		n = peer_fpdu(p, u, len, fpdu);
		peer_octets(p, fpdu, 9000);
		assert_int_equal(b.memory[8000], 8000 % 0xbf + 1);
		rcap_invalidate(p->qp, &b.mr);
		free(b.memory);
		p->chunk = k & 1 ? 1000 : 0;
		peer_octets(p, fpdu + 9000, n - 9000);
		peer_expect_terminate(p, TERM_DDP_TAGGED_INVALID_STAG, u, len,
				      14, 0);
		peer_free(p);
	}
}

/* The same, and the entry of the table, with its key, belongs to another,
 * smaller region by then. */
static void test_stag_is_another_region_when_the_write_goes_on(void **state)
{
	struct peer *p = peer_up(0x5002, 1);
	struct big old, young = { 0 };
	struct seg s = { .ctrl = C_WRITE, .to = 0x40000, .payload = 30000 };
	static uint8_t u[40000], fpdu[40000];
	size_t n, len;
	unsigned tries = 0;

	(void)state;
	big_make(p, &old, 30000, RCAP_REMOTE_WRITE);
	s.stag = old.mr.stag;
	len = peer_lay(p, &s, u);
	n = peer_fpdu(p, u, len, fpdu);
	peer_octets(p, fpdu, 9000);
	rcap_invalidate(p->qp, &old.mr);
	free(old.memory);
	do {
		free(young.memory);
		if (tries++)
			rcap_invalidate(p->qp, &young.mr);
		big_make(p, &young, 16, RCAP_REMOTE_WRITE);
	} while (young.mr.stag != old.mr.stag && tries < 100000);
	assert_int_equal(young.mr.stag, old.mr.stag);
	peer_octets(p, fpdu + 9000, n - 9000);
	peer_expect_terminate(p, TERM_DDP_TAGGED_BOUNDS, u, len, 14, 0);
	assert_int_equal(young.memory[0], 0);
	peer_free(p);
	free(young.memory);
}

/* ---- the orderly end ---- */

static void test_disconnect_sends_all_and_waits_for_reads(void **state)
{
	struct peer *p = peer_up_active(0x5002, 1);
	struct request r, s;
	struct rcap_wr *w = &s.wr;
	uint32_t sink;
	uint8_t u[64];

	(void)state;
	post(p, &r, RCAP_READ, 10);
	post(p, &s, RCAP_SEND, 10);
	rcap_disconnect(p->qp);
	peer_turn(p);
	assert_false(p->closed);
	assert_int_equal(rcap_post(p->qp, &w, 1), ERR_WRONG_STATE);
	sink = sink_of(p);
	assert_int_equal(peer_next(p, u), 28);
	respond(p, sink, 0, 10, true);
	assert_int_equal(p->done, 2);
	assert_int_equal(p->aborted, 0);
	peer_expect_closed(p, 0, "");
	peer_free(p);
	free(r.memory);
	free(s.memory);
}

static void test_disconnect_and_reads_that_nobody_answers(void **state)
{
	struct peer *p = peer_up_active(0x5002, 1);
	struct request r;

	(void)state;
	post(p, &r, RCAP_READ, 100);
	rcap_disconnect(p->qp);
	peer_time(p, 4 * XTIME_S);
	respond(p, sink_of(p), 0, 50, false); /* a slow one */
	peer_time(p, 2 * XTIME_S);
	assert_false(p->closed);
	peer_time(p, 6 * XTIME_S);
	peer_expect_closed(p, ERR_TIMEOUT, "Reads unanswered");
	assert_int_equal(p->aborted, 1);
	peer_free(p);
	free(r.memory);
}

/* The peer may close first, but neither silence nor requests prolong its time. */
static void test_disconnect_after_the_peer(void **state)
{
	static const struct seg empty = { .ctrl = C_WRITE };

	(void)state;
	for (unsigned k = 0; k < 3; k++) {
		struct peer *p = peer_up(0x5002, 1);
		struct request r;

		post(p, &r, RCAP_SEND, 10);
		rcap_disconnect_after(p->qp, 15 * XTIME_S);
		peer_turn(p);
		assert_int_equal(p->done, 1);
		peer_time(p, 14 * XTIME_S);
		assert_false(p->closed);
		if (k == 0)
			peer_fin(p, 0);
		else if (k == 1)
			peer_segment(p, &empty);
		if (k)
			peer_time(p, 2 * XTIME_S);
		p->seen = p->sent_len;
		peer_expect_closed(p, 0, "");
		assert_int_equal(p->aborted, 0);
		peer_free(p);
		free(r.memory);
	}
}

/* A peer that takes no octets loses what is not sent, in its time and that of any other end. */
static void test_disconnect_after_a_peer_that_takes_nothing(void **state)
{
	struct peer *p = peer_up(0x5002, 1);
	struct request r;

	(void)state;
	p->stalled = true;
	post(p, &r, RCAP_SEND, 10);
	rcap_disconnect_after(p->qp, 15 * XTIME_S);
	peer_time(p, 16 * XTIME_S);
	assert_false(p->closed);
	peer_time(p, 6 * XTIME_S);
	peer_expect_closed(p, ERR_TIMEOUT, "takes no more octets");
	assert_int_equal(p->aborted, 1);
	peer_free(p);
	free(r.memory);
}

/* A FIN is orderly only if no request is in progress. */
static void test_fin_and_what_was_under_way(void **state)
{
	static const struct seg send = { .ctrl = C_MORE(C_SEND),
					 .msn = 1,
					 .payload = 8 };

	(void)state;
	for (unsigned k = 0; k < 6; k++) {
		struct peer *p = peer_up(k == 5 ? 0xd002 : 0x5002, 1);
		struct request r = { 0 };
		uint8_t b[64], u[64];

		if (k == 1)
			peer_segment(p, &send);
		if (k == 2 || k == 5) {
			peer_fpdu(p, u, peer_lay(p, &send, u), b);
			peer_octets(p, b, k == 5 ? 2 : 1);
		}
		if (k == 3)
			post(p, &r, RCAP_READ, 10);
		p->stalled = k == 4;
		if (k == 4)
			post(p, &r, RCAP_SEND, 10);
		p->seen = p->sent_len;
		peer_fin(p, 0);
		peer_expect_closed(p, k ? ERR_CLOSED : 0,
				   k == 0	      ? ""
				   : k == 3 || k == 4 ? "before all requests"
						      : "in the middle");
		assert_int_equal(p->aborted, k == 3 || k == 4);
		assert_int_equal(p->aborted_recvs, 1);
		peer_free(p);
		free(r.memory);
	}
}

static void test_everything_after_the_end(void **state)
{
	struct peer *p = peer_up(0x5002, 0);
	struct rcap_wr wr = { .op = RCAP_SEND }, *w = &wr;
	struct rcap_recv r = { 0 };
	struct iovec iov = { p->memory, 8 };
	const struct bufv v = bufv_of(&iov, 1);
	struct rcap_mr mr;

	(void)state;
	wr.data.len =
		/* the end of a message is a 32 bit MO */
		(size_t)UINT32_MAX + 1;
	assert_int_equal(rcap_post(p->qp, &w, 1), ERR_RANGE);
	wr.data.len = 0;
	peer_fin(p, 0);
	assert_int_equal(rcap_state(p->qp), RCAP_CLOSED);
	assert_int_equal(rcap_post(p->qp, &w, 1), ERR_WRONG_STATE);
	assert_int_equal(rcap_post_recv(p->qp, &r), ERR_WRONG_STATE);
	assert_int_equal(rcap_reg(p->qp, &v, 0, RCAP_REMOTE_READ, &mr),
			 ERR_WRONG_STATE);
	assert_int_equal(rcap_accept(p->qp, &p->answer), ERR_WRONG_STATE);
	rcap_invalidate(p->qp, &p->readable);
	rcap_disconnect(p->qp);
	rcap_terminate(p->qp, ERR_AUTH, "too late");
	assert_int_equal(p->err, 0);
	peer_free(p);
}

/* The user reports an error of the peer. */
static void reject_it(struct peer *p, struct rcap_recv *r)
{
	(void)r;
	rcap_terminate(p->qp, ERR_PROTOCOL, "the user says no");
}

static void test_user_terminates_from_an_up_call(void **state)
{
	struct peer *p = peer_up(0x5002, 2);
	const struct seg s = { .ctrl = C_SEND, .msn = 1, .payload = 8 };
	uint8_t b[256], u[64];
	size_t n;

	(void)state;
	p->on_received = reject_it;
	p->keep_recvs = true;
	n = peer_fpdu(p, u, peer_lay(p, &s, u), b);
	n += peer_fpdu(p, u, peer_lay(p, &s, u), b + n);
	peer_octets(p, b, n);
	assert_int_equal(p->received, 1);
	assert_int_equal(peer_next(p, u), 22);
	assert_memory_equal(u + 18, "\x00\xff\0\0", 4);
	peer_expect_closed(p, ERR_PROTOCOL, "the user says no");
	peer_free(p);
}

/* A peer that takes no octets of a Terminate does not keep the connection. */
static void test_terminate_that_nobody_takes(void **state)
{
	struct peer *p = peer_up(0x5002, 1);
	const struct seg bad = { .ctrl = C_SEND, .msn = 9 };

	(void)state;
	p->stalled = true;
	peer_segment(p, &bad);
	assert_false(p->closed);
	peer_time(p, 6 * XTIME_S);
	assert_true(p->closed);
	assert_int_equal(p->err, ERR_PROTOCOL);
	peer_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read_in_three_segments),
		cmocka_unit_test(test_read_responses_that_are_wrong),
		cmocka_unit_test(test_second_read_answered_first),
		cmocka_unit_test(test_sink_takes_no_write_and_no_invalidation),
		cmocka_unit_test(test_reads_wait_for_ord),
		cmocka_unit_test(test_terminate_received),
		cmocka_unit_test(test_terminate_of_every_size_rfc5040_4_8),
		cmocka_unit_test(test_terminate_in_the_middle_of_a_message),
		cmocka_unit_test(test_invalidate_while_a_response_is_staged),
		cmocka_unit_test(test_invalidate_before_a_response),
		cmocka_unit_test(test_write_behind_a_read_of_the_same_place),
		cmocka_unit_test(test_invalidate_while_a_write_comes_in),
		cmocka_unit_test(
			test_stag_is_another_region_when_the_write_goes_on),
		cmocka_unit_test(test_disconnect_sends_all_and_waits_for_reads),
		cmocka_unit_test(test_disconnect_and_reads_that_nobody_answers),
		cmocka_unit_test(test_disconnect_after_the_peer),
		cmocka_unit_test(
			test_disconnect_after_a_peer_that_takes_nothing),
		cmocka_unit_test(test_fin_and_what_was_under_way),
		cmocka_unit_test(test_everything_after_the_end),
		cmocka_unit_test(test_user_terminates_from_an_up_call),
		cmocka_unit_test(test_terminate_that_nobody_takes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
