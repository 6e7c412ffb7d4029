/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * qp_startup_test.c: one queue pair from the first octet to the first FPDU: MPA
 * Request and Reply (RFC 5044 §7.1), the enhanced form with IRD, ORD and Ready
 * To Receive (RFC 6581), which end may send when, and every early end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/rcap/peer.h"

static struct iwarp_config config(bool active)
{
	struct iwarp_config cfg;

	iwarp_config_default(&cfg, active);
	cfg.wish.ird = 4;
	cfg.wish.ord = 3;
	cfg.seed = 5;
	return cfg;
}

static struct peer *passive(void)
{
	struct iwarp_config cfg = config(false);

	return peer_new(&cfg, NULL, 0, 1);
}

/* An active queue pair whose request has been sent and checked. */
static struct peer *active(const struct iwarp_config *cfg)
{
	struct peer *p = peer_new(cfg, NULL, 0, 1);

	peer_turn(p);
	p->seen = p->sent_len;
	return p;
}

/* ---- frames that are none ---- */

struct bad_frame {
	const char *what;
	bool reply;
	uint16_t bits;
	size_t private_len, claimed;
	int err;
};

/* clang-format off */
static const struct bad_frame bad_requests[] = {
	{ "a Reply", true, 0x1002, 4, 4, ERR_PROTOCOL },
	{ "revision 3", false, 0x0003, 0, 0, ERR_UNSUPPORTED },
	{ "revision 255", false, 0x10ff, 4, 4, ERR_UNSUPPORTED },
	{ "513 octets of private data", false, 0x0001, 513, 513, ERR_TOO_LONG },
	{ "65535 octets of private data", false, 0x1002, 0, 65535, ERR_TOO_LONG },
	{ "S without its block", false, 0x1002, 3, 3, ERR_TRUNCATED },
	{ "S without private data", false, 0x1002, 0, 0, ERR_TRUNCATED },
};

static const struct bad_frame bad_replies[] = {
	/* RFC 5044 §7.1.2 (8): initiator and initiator */
	{ "a Request", false, 0x1002, 4, 4, ERR_PROTOCOL },
	{ "revision 3", true, 0x1003, 4, 4, ERR_UNSUPPORTED },
	{ "revision 1", true, 0x0001, 0, 0, ERR_PROTOCOL },
	{ "revision 2 without S", true, 0x0002, 0, 0, ERR_PROTOCOL },
	{ "513 octets of private data", true, 0x1002, 513, 513, ERR_TOO_LONG },
	{ "S without its block", true, 0x1002, 2, 2, ERR_TRUNCATED },
	{ "a rejection", true, 0x3002, 4, 4, ERR_DENIED },
	{ "a rejection without S", true, 0x2001, 0, 0, ERR_DENIED },
};
/* clang-format on */

static size_t lay_bad(const struct bad_frame *f, uint8_t *b)
{
	static const uint8_t zeros[600];
	size_t n = peer_frame(b, f->reply, f->bits, zeros, f->private_len);

	put_be16(b + 18, (uint16_t)f->claimed);
	return n;
}

/* RFC 5044 §7.1.2 (2), (5), §8: closed at once, without an octet back. */
static void test_bad_requests(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_LEN(bad_requests); i++) {
		const struct bad_frame *f = &bad_requests[i / 2];
		struct peer *p = passive();
		uint8_t b[700];

		p->chunk = i & 1;
		peer_octets(p, b, lay_bad(f, b));
		peer_expect_closed(p, f->err, "MPA");
		assert_int_equal(p->requested, 0);
		assert_int_equal(p->aborted_recvs, 1);
		peer_free(p);
	}
}

static void test_bad_replies(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_LEN(bad_replies); i++) {
		const struct bad_frame *f = &bad_replies[i / 2];
		struct iwarp_config cfg = config(true);
		struct peer *p = active(&cfg);
		uint8_t b[700];

		p->chunk = i & 1;
		peer_octets(p, b, lay_bad(f, b));
		peer_expect_closed(p, f->err,
				   f->err == ERR_DENIED ? "rejected" : "MPA");
		assert_int_equal(p->established, 0);
		peer_free(p);
	}
}

/* Other input is detected at the first octet that differs. */
static void test_garbage_instead_of_frames(void **state)
{
	static const char *const rows[] = {
		"GET / HTTP/1.1\r\n", "MPA ID Rex Frame", "mpa",
		"\0\0\0\0",	      "\x43\x87\0\0", /* an iSCSI Login Request */
	};

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_LEN(rows); i++) {
		struct iwarp_config cfg = config(i & 1);
		struct peer *p = i & 1 ? active(&cfg) : passive();

		p->chunk = 1;
		peer_octets(p, rows[i / 2], 16);
		peer_expect_closed(p, ERR_FORMAT, "RFC 5044 §7.1.1");
		peer_free(p);
	}
}

/* An FPDU instead of the MPA Reply is not a valid frame, either. */
static void test_fpdu_before_the_reply(void **state)
{
	struct iwarp_config cfg = config(true);
	struct peer *p = active(&cfg);
	const struct seg s = { .ctrl = C_SEND, .msn = 1, .payload = 8 };

	(void)state;
	p->in.crc = true;
	peer_segment(p, &s);
	peer_expect_closed(p, ERR_FORMAT, "RFC 5044 §7.1.1");
	assert_int_equal(p->received, 0);
	peer_free(p);
}

/* ---- FIN, silence, and the user's own end, in every phase ---- */

enum phase {
	P_REQUEST_WAIT,
	P_REQUESTED,
	P_FIRST_WAIT,
	P_REPLY_WAIT,
	P_COUNT
};

static struct peer *at_phase(enum phase phase)
{
	struct iwarp_config cfg = config(phase == P_REPLY_WAIT);
	struct peer *p = peer_new(&cfg, NULL, 0, 1);
	uint8_t b[32];

	p->hold = phase == P_REQUESTED;
	if (phase == P_REQUESTED || phase == P_FIRST_WAIT)
		peer_octets(p, b, peer_frame(b, false, 0x0001, NULL, 0));
	peer_turn(p);
	p->seen = p->sent_len;
	assert_false(p->closed);
	return p;
}

static void test_fin_in_each_phase(void **state)
{
	(void)state;
	for (unsigned phase = 0; phase < P_COUNT; phase++)
		for (unsigned k = 0; k < 2; k++) {
			struct peer *p = at_phase(phase);

			peer_fin(p, k ? ERR_RESET : 0);
			peer_expect_closed(p, k ? ERR_RESET : ERR_CLOSED,
					   k ? "lost" : "during start-up");
			assert_int_equal(p->established, 0);
			peer_free(p);
		}
}

static void test_fin_after_every_octet_of_a_request(void **state)
{
	uint8_t b[64];
	size_t n = peer_frame(b, false, 0x1002, "\0\1\0\1abcd", 8);

	(void)state;
	for (size_t k = 0; k < n; k++) {
		struct peer *p = passive();

		peer_octets(p, b, k);
		peer_fin(p, 0);
		peer_expect_closed(p, ERR_CLOSED, "during start-up");
		assert_int_equal(p->requested, 0);
		peer_free(p);
	}
}

/* RFC 5044 §7.1.2 (8), (10). The user may take any time for its answer. */
static void test_silence_in_each_phase(void **state)
{
	static const char *const why[] = { "Request", "", "no FPDU", "Reply" };

	(void)state;
	for (unsigned phase = 0; phase < P_COUNT; phase++) {
		struct peer *p = at_phase(phase);

		peer_time(p, 9 * XTIME_S);
		assert_false(p->closed);
		peer_time(p, 2 * XTIME_S);
		assert_int_equal(p->closed, phase != P_REQUESTED);
		if (p->closed)
			peer_expect_closed(p, ERR_TIMEOUT, why[phase]);
		peer_free(p);
	}
}

/* A peer that takes no octets cannot keep a connection either. */
static void test_frames_that_nobody_takes(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 3; k++) {
		struct iwarp_config cfg = config(k == 0);
		struct peer *p = peer_new(&cfg, NULL, 0, 1);
		uint8_t b[32];

		p->stalled = true;
		p->refuse = k == 2;
		if (k)
			peer_octets(p, b,
				    peer_frame(b, false, 0x0001, NULL, 0));
		peer_time(p, 11 * XTIME_S);
		peer_time(p, 11 * XTIME_S);
		peer_expect_closed(p, k == 2 ? ERR_DENIED : ERR_TIMEOUT,
				   k == 2 ? "rejected" : "could not be sent");
		peer_free(p);
	}
}

static void test_user_ends_it_in_each_phase(void **state)
{
	(void)state;
	for (unsigned phase = 0; phase < P_COUNT; phase++)
		for (unsigned k = 0; k < 2; k++) {
			struct peer *p = at_phase(phase);

			if (k)
				rcap_terminate(p->qp, ERR_AUTH, "not you");
			else
				rcap_disconnect(p->qp);
			peer_turn(p);
			peer_expect_closed(p, k ? ERR_AUTH : ERR_CLOSED,
					   k ? "not you" : "start-up");
			peer_free(p);
		}
}

/* ---- who may speak ---- */

/* RFC 5044 §7.1.2 (4): no FPDU and no marker is sent before the initiator's
 * first FPDU has arrived and is valid. */
static void post_hello(struct peer *p)
{
	static uint8_t text[5] = "hello";
	static struct iovec iov = { text, 5 };
	static struct rcap_wr wr;
	struct rcap_wr *w = &wr;

	wr = (struct rcap_wr){ .op = RCAP_SEND, .data = bufv_of(&iov, 1) };
	assert_int_equal(rcap_post(p->qp, &w, 1), 0);
}

static void test_responder_waits_for_the_first_fpdu(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 3; k++) {
		struct peer *p = passive();
		const struct seg s = { .ctrl = C_SEND, .msn = 1, .payload = 8 };
		struct rcap_wr wr = { .op = RCAP_SEND }, *w = &wr;
		uint8_t b[128], u[64];
		size_t n;

		p->on_established = post_hello;
		peer_octets(p, b, peer_frame(b, false, 0xc001, NULL, 0));
		assert_int_equal(p->sent_len, 20);
		assert_int_equal(rcap_post(p->qp, &w, 1), ERR_WRONG_STATE);
		p->in.crc = p->out.crc = p->out.markers = true;
		p->seen = p->sent_len;
		n = peer_fpdu(p, u, peer_lay(p, &s, u), b);
		b[n - 1] ^= k == 2; /* the CRC */
		peer_octets(p, b, k ? n : n - 1);
		if (k == 0) {
			assert_int_equal(p->sent_len, 20);
			assert_int_equal(p->established, 0);
			peer_octets(p, b + n - 1, 1);
		}
		/* invalid: no octet is sent, and the connection ends */
		if (k == 2) {
			peer_expect_closed(p, ERR_DATA_DIGEST, "MPA: CRC");
			assert_int_equal(p->established, 0);
		} else {
			assert_int_equal(p->established, 1);
			assert_int_equal(p->received, 1);
			assert_int_equal(peer_next(p, u), 18 + 5);
			assert_memory_equal(u + 18, "hello", 5);
		}
		peer_free(p);
	}
}

/* An initiator that does not wait: its FPDU waits until the Reply is sent. */
static void test_fpdu_behind_the_request_waits(void **state)
{
	struct peer *p = passive();
	const struct seg s = { .ctrl = C_SEND, .msn = 1, .payload = 8 };
	uint8_t b[128], u[64];
	size_t n = peer_frame(b, false, 0x4001, NULL, 0);

	(void)state;
	p->hold = true;
	p->in.crc = p->out.crc = true;
	n += peer_fpdu(p, u, peer_lay(p, &s, u), b + n);
	peer_octets(p, b, n);
	assert_int_equal(p->requested, 1);
	assert_int_equal(p->sent_len, 0);
	assert_int_equal(p->received, 0);
	assert_int_equal(rcap_accept(p->qp, &p->answer), 0);
	peer_turn(p);
	assert_int_equal(p->sent_len, 20);
	assert_int_equal(p->established, 1);
	assert_int_equal(p->received, 1);
	peer_free(p);
}

/* The initiator takes octets that follow the Reply directly. */
static void test_fpdu_behind_the_reply(void **state)
{
	struct iwarp_config cfg = config(true);
	struct peer *p = active(&cfg);
	const struct seg s = { .ctrl = C_SEND, .msn = 1, .payload = 8 };
	uint8_t b[128], u[64];
	size_t n = peer_frame(b, true, 0x5002, "\0\4\0\3", 4);

	(void)state;
	p->in.crc = p->out.crc = true;
	n += peer_fpdu(p, u, peer_lay(p, &s, u), b + n);
	peer_octets(p, b, n);
	assert_int_equal(p->established, 1);
	assert_int_equal(p->received, 1);
	peer_free(p);
}

static void test_first_fpdu_is_a_terminate(void **state)
{
	struct peer *p = passive();
	const struct seg s = { .ctrl = C_TERM, .qn = 2, .msn = 1, .payload = 4 };
	uint8_t b[64];

	(void)state;
	peer_octets(p, b, peer_frame(b, false, 0x4001, NULL, 0));
	p->seen = p->sent_len;
	p->in.crc = p->out.crc = true;
	peer_segment(p, &s);
	peer_expect_closed(p, ERR_TERMINATED, "the peer sent a Terminate");
	assert_int_equal(p->established, 0);
	peer_free(p);
}

/* RFC 5044 §7.1.3: start-up on a stream that was in use: the octets that its
 * previous user read in excess are passed on, in any portion. */
static void test_first_octets_handed_in(void **state)
{
	uint8_t all[128], u[64];
	struct peer crc = { .in.crc = true };
	const struct seg s = { .ctrl = C_SEND, .msn = 1, .payload = 8 };
	size_t n = peer_frame(all, false, 0x4001, "ab", 2);
	struct iwarp_config cfg = config(false);
	struct stream_host host = { 0 };

	(void)state;
	n += peer_fpdu(&crc, u, peer_lay(&crc, &s, u), all + n);
	for (size_t k = 0; k <= n; k++) {
		struct peer *p = peer_new(&cfg, all, k, 1);

		peer_turn(p);
		assert_int_equal(p->requested, k >= 22);
		peer_octets(p, all + k, n - k);
		assert_int_equal(p->established, 1);
		assert_int_equal(p->received, 1);
		assert_int_equal(p->cm.private_len, 2);
		peer_free(p);
	}
	cfg.lookahead = 1024;
	assert_null(iwarp_new(&cfg, &host, all, 1025, 0));
}

/* ---- private data ---- */

static void test_private_data_both_ways(void **state)
{
	(void)state;
	for (unsigned rev = 1; rev < 3; rev++) {
		struct iwarp_config cfg = config(false);
		struct peer *p = peer_new(&cfg, NULL, 0, 1);
		uint16_t bits = rev == 2 ? 0x1002 : 0x0001;
		size_t block = rev == 2 ? 4 : 0;
		uint8_t data[MPA_PRIVATE_MAX], b[600];

		for (size_t i = 0; i < sizeof(data); i++)
			data[i] = (uint8_t)(i % 251);
		p->answer = (struct rcap_cm){ .private_data = data,
					      .private_len = 508 };
		p->hold = true;
		peer_octets(p, b, peer_frame(b, false, bits, data, 512));
		assert_int_equal(p->requested, 1);
		assert_int_equal(p->cm.private_len, 512 - block);
		assert_memory_equal(p->private_data, data + block, 512 - block);
		p->answer.private_len = 509;
		assert_int_equal(rcap_accept(p->qp, &p->answer), ERR_TOO_LONG);
		assert_int_equal(rcap_reject(p->qp, &p->answer), ERR_TOO_LONG);
		p->answer.private_len = 508;
		assert_int_equal(rcap_accept(p->qp, &p->answer), 0);
		assert_int_equal(rcap_accept(p->qp, &p->answer),
				 ERR_WRONG_STATE);
		peer_turn(p);
		assert_int_equal(p->sent_len, 20 + block + 508);
		assert_memory_equal(p->sent, "MPA ID Rep Frame", 16);
		assert_int_equal(get_be16(p->sent + 18), block + 508);
		assert_memory_equal(p->sent + 20 + block, data, 508);
		peer_free(p);
	}
}

/* In both cases, before its octets are sent and after. */
static void test_a_request_is_answered_once(void **state)
{
	(void)state;
	for (unsigned refused = 0; refused < 2; refused++) {
		struct iwarp_config cfg = config(false);
		struct peer *p = peer_new(&cfg, NULL, 0, 1);
		uint8_t b[64];

		p->hold = true;
		peer_octets(p, b, peer_frame(b, false, 0x1002, "\0\0\0", 4));
		p->stalled = true;
		assert_int_equal(refused ? rcap_reject(p->qp, &p->answer)
					 : rcap_accept(p->qp, &p->answer),
				 0);
		for (unsigned sent = 0; sent < 2; sent++) {
			assert_int_equal(rcap_accept(p->qp, &p->answer),
					 ERR_WRONG_STATE);
			assert_int_equal(rcap_reject(p->qp, &p->answer),
					 ERR_WRONG_STATE);
			p->stalled = false;
			peer_turn(p);
		}
		assert_int_equal(get_be16(p->sent + 16) & MPA_BITS_R,
				 refused ? MPA_BITS_R : 0);
		assert_int_equal(p->sent_len, 20 + 4);
		peer_free(p);
	}
}

static void test_request_and_reply_of_an_initiator(void **state)
{
	struct iwarp_config cfg = config(true);
	struct peer *p;
	uint8_t b[64];

	(void)state;
	cfg.private_data = (const uint8_t *)"who?";
	cfg.private_len = 4;
	p = peer_new(&cfg, NULL, 0, 1);
	peer_turn(p);
	assert_int_equal(p->sent_len, 28);
	/* rev 2, S, C; A 0; IRD 4, ORD 3 */
	assert_memory_equal(p->sent,
			    "MPA ID Req Frame\x50\x02\0\x08\0\4\0\3who?", 28);
	peer_octets(p, b, peer_frame(b, true, 0x5002, "\0\2\0\1me!", 7));
	assert_int_equal(p->established, 1);
	assert_int_equal(p->cm.private_len, 3);
	assert_memory_equal(p->private_data, "me!", 3);
	assert_int_equal(p->qp->ord, 2); /* RFC 6581 §9.1 */
	assert_int_equal(p->qp->ird, 1);
	peer_free(p);
}

static void test_rejection_with_private_data(void **state)
{
	struct peer *p = passive();
	uint8_t b[64];

	(void)state;
	p->refuse = true;
	p->answer = (struct rcap_cm){ .ird = 1,
				      .private_data = (const uint8_t *)"no",
				      .private_len = 2 };
	peer_octets(p, b, peer_frame(b, false, 0x5002, "\0\4\0\4", 4));
	assert_int_equal(p->sent_len, 26);
	assert_int_equal(get_be16(p->sent + 16), 0x7002);
	assert_memory_equal(p->sent + 24, "no", 2);
	p->seen = p->sent_len;
	peer_expect_closed(p, ERR_DENIED, "rejected");
	peer_free(p);
}

static void test_what_comes_with_a_rejection_rfc6581_9_1(void **state)
{
	struct iwarp_config cfg = config(true);
	struct peer *p = active(&cfg);
	uint8_t b[64];

	(void)state;
	peer_octets(p, b, peer_frame(b, true, 0x3002, "\0\1\0\7full", 8));
	peer_expect_closed(p, ERR_DENIED, "rejected");
	assert_non_null(p->qp->rejection);
	assert_int_equal(p->qp->rejection->ird, 1);
	assert_int_equal(p->qp->rejection->ord, 7);
	assert_int_equal(p->qp->rejection->private_len, 4);
	assert_memory_equal(p->qp->rejection->private_data, "full", 4);
	peer_free(p);
	p = active(&cfg);
	peer_fin(p, 0);
	assert_null(p->qp->rejection);
	p->seen = p->sent_len;
	peer_free(p);
}

/* ---- RFC 6581 ---- */

/* §9.1: how many requests each end may issue at once. */
static void test_depths_of_a_responder_rfc6581_9_1(void **state)
{
	static const struct {
		const char *block; /* IRD, ORD of the request */
		const char *reply;
		uint16_t ird, ord; /* ours, of 4 and 3 */
	} rows[] = {
		{ "\0\1\0\2", "\0\2\0\1", 2, 1 },
		{ "\0\0\0\0", "\0\0\0\0", 0, 0 },
		{ "\0\x80\0\x80", "\0\4\0\3", 4, 3 },
		{ "\x3f\xff\x3f\xff", "\x3f\xff\x3f\xff", 4, 3 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct peer *p = passive();
		struct rcap_wr read = { .op = RCAP_READ }, *w = &read;
		const struct seg hello = { .ctrl = C_WRITE };
		uint8_t b[64];

		peer_octets(p, b,
			    peer_frame(b, false, 0x1002, rows[i].block, 4));
		assert_memory_equal(p->sent + 20, rows[i].reply, 4);
		p->in.crc = p->out.crc = true;
		p->seen = p->sent_len;
		peer_segment(p, &hello);
		assert_int_equal(p->qp->ird, rows[i].ird);
		assert_int_equal(p->qp->ord, rows[i].ord);
		assert_int_equal(rcap_post(p->qp, &w, 1),
				 rows[i].ord ? 0 : ERR_LIMIT);
		peer_free(p);
	}
}

/* §9.1: a responder that wants more Reads than we can answer gets a
 * Terminate. */
static void test_reply_beyond_our_ird_rfc6581_9_1(void **state)
{
	struct iwarp_config cfg = config(true);
	struct peer *p = active(&cfg);
	uint8_t b[64];

	(void)state;
	p->out.crc = true;
	peer_octets(p, b, peer_frame(b, true, 0x5002, "\0\4\0\5", 4));
	peer_expect_terminate(p, TERM_MPA_IRD, NULL, 0, 0, 0);
	assert_int_equal(p->err, ERR_LIMIT);
	assert_int_equal(p->established, 0);
	peer_free(p);
}

/* §9.2: no RTR in common, or no A in the reply. */
static void test_no_common_rtr_rfc6581_9_2(void **state)
{
	static const char *const blocks[] = { "\xc0\4\0\3", "\0\4\0\3",
					      "\x80\4\0\3" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(blocks); i++) {
		struct iwarp_config cfg = config(true);
		struct peer *p;
		uint8_t b[64];

		cfg.peer_to_peer = true;
		p = active(&cfg);
		assert_memory_equal(p->sent + 20, "\x80\4\xc0\3", 4);
		p->out.crc = true;
		peer_octets(p, b, peer_frame(b, true, 0x5002, blocks[i], 4));
		peer_expect_terminate(p, TERM_MPA_RTR, NULL, 0, 0, 0);
		assert_int_equal(p->established, 0);
		peer_free(p);
	}
}

/* The three octet sequences of an initiator's Ready To Receive. */
static void test_rtr_of_an_initiator(void **state)
{
	static const struct {
		unsigned rtr;
		const char *request, *reply;
		size_t len;
		const char *ulpdu;
	} rows[] = {
		{ MPA_RTR_WRITE, "\x80\4\x80\3", "\x80\4\x80\3", 14,
		  "\xc1\x40\0\0\0\0\0\0\0\0\0\0\0\0" },
		{ MPA_RTR_READ, "\x80\4\x40\3", "\x80\4\x40\3", 46,
		  "\x41\x41\0\0\0\0\0\0\0\1\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
		  "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0" },
		{ MPA_RTR_SEND, "\xc0\4\0\3", "\xc0\4\0\3", 18,
		  "\x41\x43\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0" },
		/* of several: the Write */
		{ 7, "\xc0\4\xc0\3", "\xc0\4\xc0\3", 14,
		  "\xc1\x40\0\0\0\0\0\0\0\0\0\0\0\0" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct iwarp_config cfg = config(true);
		struct peer *p;
		uint8_t b[64];

		cfg.peer_to_peer = true;
		cfg.wish.rtr = rows[i].rtr;
		p = active(&cfg);
		assert_memory_equal(p->sent + 20, rows[i].request, 4);
		p->out.crc = true;
		peer_octets(p, b,
			    peer_frame(b, true, 0x5002, rows[i].reply, 4));
		assert_int_equal(p->established, 1);
		assert_int_equal(peer_next(p, b), rows[i].len);
		assert_memory_equal(b, rows[i].ulpdu, rows[i].len);
		assert_int_equal(peer_next(p, b), 0);
		peer_free(p);
	}
}

/* A responder accepts each; none is reported to the user. */
static void test_rtr_at_a_responder(void **state)
{
	static const struct {
		unsigned rtr;
		const char *request, *reply;
		struct seg s;
		bool answered;
	} rows[] = {
		{ MPA_RTR_WRITE,
		  "\x80\4\x80\0",
		  "\x80\0\x80\3",
		  { .ctrl = C_WRITE },
		  false },
		/* IRD 0 would not do for a Read (§9.1) */
		{ MPA_RTR_READ,
		  "\x80\4\x40\0",
		  "\x80\1\x40\3",
		  { .ctrl = C_READ, .qn = 1, .msn = 1, .read = true },
		  true },
		{ MPA_RTR_SEND,
		  "\xc0\4\0\0",
		  "\xc0\0\0\3",
		  { .ctrl = C_SEND, .msn = 1 },
		  false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct iwarp_config cfg = config(false);
		const struct seg send = { .ctrl = C_SEND,
					  .msn = i == 2 ? 2 : 1,
					  .payload = 3 };
		struct peer *p;
		uint8_t b[64];

		cfg.wish.rtr = rows[i].rtr;
		p = peer_new(&cfg, NULL, 0, 1);
		peer_octets(p, b,
			    peer_frame(b, false, 0x5002, rows[i].request, 4));
		assert_memory_equal(p->sent + 20, rows[i].reply, 4);
		p->seen = p->sent_len;
		p->in.crc = p->out.crc = true;
		peer_segment(p, &rows[i].s);
		assert_int_equal(p->established, 1);
		assert_int_equal(p->received, 0);
		assert_int_equal(peer_next(p, b), rows[i].answered ? 14 : 0);
		peer_segment(p, &send);
		assert_int_equal(p->received, 1);
		assert_int_equal(p->last.len, 3);
		peer_free(p);
	}
}

/* A Read as Ready To Receive counts against the peer's IRD until it is
 * answered. */
static void test_rtr_read_counts_against_ord(void **state)
{
	struct iwarp_config cfg = config(true);
	uint8_t sink[16], b[64];
	struct iovec iov = { sink, sizeof(sink) };
	struct rcap_wr wr = { .op = RCAP_READ,
			      .stag = 0x500,
			      .data = bufv_of(&iov, 1) },
		       *w = &wr;
	const struct seg answer = { .ctrl = C_RESPONSE };
	struct peer *p;

	(void)state;
	cfg.peer_to_peer = true;
	cfg.wish.rtr = MPA_RTR_READ;
	p = active(&cfg);
	p->in.crc = p->out.crc = true;
	peer_octets(p, b, peer_frame(b, true, 0x5002, "\x80\1\x40\3", 4));
	assert_int_equal(rcap_post(p->qp, &w, 1), 0);
	peer_turn(p);
	assert_int_equal(peer_next(p, b), 46);
	assert_int_equal(peer_next(p, b), 0);
	peer_segment(p, &answer);
	assert_int_equal(peer_next(p, b), 46);
	assert_int_equal(get_be32(b + 10), 2); /* MSN */
	assert_int_equal(get_be32(b + 30), sizeof(sink));
	peer_free(p);
}

static void test_rtr_read_answered_wrongly(void **state)
{
	static const struct {
		struct seg s;
		uint16_t reason;
	} rows[] = {
		{ { .ctrl = C_RESPONSE, .payload = 4 },
		  TERM_DDP_TAGGED_BOUNDS },
		{ { .ctrl = C_MORE(C_RESPONSE) },
		  TERM_RDMAP_STREAM_CATASTROPHIC },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct iwarp_config cfg = config(true);
		struct peer *p;
		uint8_t b[64];
		size_t n;

		cfg.peer_to_peer = true;
		cfg.wish.rtr = MPA_RTR_READ;
		p = active(&cfg);
		p->in.crc = p->out.crc = true;
		peer_octets(p, b,
			    peer_frame(b, true, 0x5002, "\x80\1\x40\3", 4));
		n = peer_lay(p, &rows[i].s, b);
		peer_segment(p, &rows[i].s);
		peer_expect_terminate(p, rows[i].reason, b, n, 14, 0);
		peer_free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_requests),
		cmocka_unit_test(test_bad_replies),
		cmocka_unit_test(test_garbage_instead_of_frames),
		cmocka_unit_test(test_fpdu_before_the_reply),
		cmocka_unit_test(test_fin_in_each_phase),
		cmocka_unit_test(test_fin_after_every_octet_of_a_request),
		cmocka_unit_test(test_silence_in_each_phase),
		cmocka_unit_test(test_frames_that_nobody_takes),
		cmocka_unit_test(test_user_ends_it_in_each_phase),
		cmocka_unit_test(test_responder_waits_for_the_first_fpdu),
		cmocka_unit_test(test_fpdu_behind_the_request_waits),
		cmocka_unit_test(test_fpdu_behind_the_reply),
		cmocka_unit_test(test_first_fpdu_is_a_terminate),
		cmocka_unit_test(test_first_octets_handed_in),
		cmocka_unit_test(test_private_data_both_ways),
		cmocka_unit_test(test_a_request_is_answered_once),
		cmocka_unit_test(test_request_and_reply_of_an_initiator),
		cmocka_unit_test(test_rejection_with_private_data),
		cmocka_unit_test(test_what_comes_with_a_rejection_rfc6581_9_1),
		cmocka_unit_test(test_depths_of_a_responder_rfc6581_9_1),
		cmocka_unit_test(test_reply_beyond_our_ird_rfc6581_9_1),
		cmocka_unit_test(test_no_common_rtr_rfc6581_9_2),
		cmocka_unit_test(test_rtr_of_an_initiator),
		cmocka_unit_test(test_rtr_at_a_responder),
		cmocka_unit_test(test_rtr_read_counts_against_ord),
		cmocka_unit_test(test_rtr_read_answered_wrongly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
