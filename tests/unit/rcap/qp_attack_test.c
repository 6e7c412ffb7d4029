/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * qp_attack_test.c: attacks of RFC 5042 §6 by a peer on a queue pair, one test
 * each, named after its clause. There is none for attacks that the user has to
 * prevent (§6.4.2) or that are impossible because connections share nothing
 * (§§6.4.3.1, 6.4.3.2).
 */
#include <stdlib.h>
#include <string.h>

#include "unit/rcap/peer.h"

#define END (PEER_BASE + PEER_REGION)

static struct seg write_of(uint32_t stag, uint64_t to, size_t n)
{
	return (struct seg){
		.ctrl = C_WRITE, .stag = stag, .to = to, .payload = n
	};
}

static struct seg read_of(uint32_t stag, uint64_t to, uint32_t n)
{
	return (struct seg){ .ctrl = C_READ,
			     .qn = 1,
			     .msn = 1,
			     .read = true,
			     .source = stag,
			     .source_to = to,
			     .size = n };
}

static struct seg invalidate_of(uint32_t stag)
{
	return (struct seg){ .ctrl = C_SEND_INV, .stag = stag, .msn = 1 };
}

/* refused sends s to p, and expects only a Terminate of this reason, and
 * unchanged memory. */
static void refused(struct peer *p, const struct seg *s, uint16_t reason)
{
	static uint8_t u[70000];
	bool tagged = s->ctrl & 0x8000;
	size_t n = peer_lay(p, s, u);

	peer_ulpdu(p, u, n);
	peer_expect_terminate(p, reason, u, n, tagged ? 14 : 18,
			      s->read && reason >> 8 == 1 ? 28 : 0);
	peer_untouched(p);
	peer_free(p);
}

/* An STag of one connection, on another. */
static void test_stag_on_another_stream_rfc5042_6_1_1(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 3; k++) {
		struct peer *a = peer_up(0x5002, 1);
		struct peer *b = peer_up_active(0x5002, 1);
		/* b has regions at the same places, with keys of its own */
		struct seg s = k == 0 ? write_of(a->writable.stag, PEER_BASE, 8)
			       : k == 1
				       ? read_of(a->readable.stag, PEER_BASE, 8)
				       : invalidate_of(a->writable.stag);

		assert_int_not_equal(a->writable.stag, b->writable.stag);
		refused(b, &s,
			k == 0	 ? TERM_DDP_TAGGED_INVALID_STAG
			: k == 1 ? TERM_RDMAP_INVALID_STAG
				 : TERM_RDMAP_CANT_INVALIDATE);
		peer_untouched(a);
		assert_int_equal(rcap_state(a->qp), RCAP_ESTABLISHED);
		peer_free(a);
	}
}

/* A wrong guess ends the connection: of all keys of a place one fits, and the
 * next connection has another key. */
static void test_guessed_stags_rfc5042_6_1_1(void **state)
{
	unsigned hits = 0;

	(void)state;
	for (uint32_t key = 0; key < 256; key++) {
		struct peer *p = peer_up(0x1002, 1);
		struct seg s = write_of((p->writable.stag & ~0xffu) | key,
					PEER_BASE, 8);

		peer_segment(p, &s);
		hits += !p->closed;
		if (p->closed)
			peer_untouched(p);
		peer_free(p);
	}
	assert_int_equal(hits, 1);
}

/* Every offset and length around both ends of the region: accesses inside
 * succeed, others do not, and no octet beside the region changes. */
static void test_buffer_overrun_by_write_rfc5042_6_2_1(void **state)
{
	(void)state;
	for (int off = -9; off <= 9; off++)
		for (size_t len = 1; len < 20; len += 3)
			for (unsigned end = 0; end < 2; end++) {
				uint64_t at = end ? END : PEER_BASE;
				uint64_t to = at + (uint64_t)(int64_t)off;
				bool fits = to >= PEER_BASE && to + len <= END;
				struct peer *p = peer_up(0x5002, 1);
				struct seg s = write_of(S_WRITABLE, to, len);

				peer_segment(p, &s);
				assert_int_equal(p->closed, !fits);
				if (!fits)
					peer_untouched(p);
				peer_free(p); /* checks the guards */
			}
}

/* A Read Response that is too long: refused before an octet is placed
 * (qp_end_test has the other cases). */
static void test_buffer_overrun_by_read_response_rfc5042_6_2_1(void **state)
{
	uint8_t sink[32];
	struct iovec iov = { sink, 16 };
	struct rcap_wr wr = { .op = RCAP_READ,
			      .stag = 9,
			      .data = bufv_of(&iov, 1) },
		       *w = &wr;
	struct peer *p = peer_up_active(0x5002, 1);
	struct seg s = { .ctrl = C_RESPONSE, .payload = 17 };
	uint8_t u[64];

	(void)state;
	memset(sink, 0x5a, sizeof(sink));
	assert_int_equal(rcap_post(p->qp, &w, 1), 0);
	peer_turn(p);
	assert_int_equal(peer_next(p, u), 46);
	s.stag = get_be32(u + 18);
	refused(p, &s, TERM_DDP_TAGGED_BOUNDS);
	for (unsigned i = 0; i < sizeof(sink); i++)
		assert_int_equal(sink[i], 0x5a);
}

/* After the user or the peer invalidated a region, a Write to it is refused. */
static void test_modifying_after_indication_rfc5042_6_2_2(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		struct peer *p = peer_up(0x5002, 1);
		const struct seg inv = invalidate_of(S_WRITABLE);
		const struct seg late = write_of(S_WRITABLE, PEER_BASE, 8);

		if (k)
			rcap_invalidate(p->qp, &p->writable);
		else
			peer_segment(p, &inv);
		assert_int_equal(rcap_state(p->qp), RCAP_ESTABLISHED);
		refused(p, &late, TERM_DDP_TAGGED_INVALID_STAG);
	}
}

/* Two STags of the same memory: each has its own rights and range, and its
 * own end (§6.2.3, §6.3.6). */
static void test_two_stags_of_one_buffer_rfc5042_6_2_3(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 4; k++) {
		struct peer *p = peer_up(0x5002, 1);
		struct iovec iov = { p->memory + 3 * PEER_REGION + 100, 50 };
		const struct bufv v = bufv_of(&iov, 1);
		struct rcap_mr part;
		struct seg s;

		assert_int_equal(
			rcap_reg(p->qp, &v, 0, RCAP_REMOTE_READ, &part), 0);
		if (k == 3) {
			/* the other one still works */
			rcap_invalidate(p->qp, &part);
			s = write_of(S_WRITABLE, PEER_BASE, 4);
			peer_segment(p, &s);
			assert_int_equal(rcap_state(p->qp), RCAP_ESTABLISHED);
			memset(p->memory + 3 * PEER_REGION, PEER_CANARY, 4);
			s = read_of(part.stag, 0, 8);
			refused(p, &s, TERM_RDMAP_INVALID_STAG);
			continue;
		}
		s = k == 0   ? write_of(part.stag, 0, 8)
		    : k == 1 ? read_of(S_WRITABLE, PEER_BASE + 100, 8)
			     : read_of(part.stag, 45, 8);
		refused(p, &s,
			k == 0	 ? TERM_DDP_TAGGED_BOUNDS
			: k == 1 ? TERM_RDMAP_ACCESS
				 : TERM_RDMAP_BOUNDS);
	}
}

/* Reads around both ends: no octet beside the region is sent (peer_free
 * searches all sent octets for those of the guards). */
static void test_probing_outside_the_bounds_rfc5042_6_3_1(void **state)
{
	(void)state;
	for (int off = -9; off <= 9; off++)
		for (uint32_t len = 1; len < 20; len += 3)
			for (unsigned end = 0; end < 2; end++) {
				uint64_t at = end ? END : PEER_BASE;
				uint64_t to = at + (uint64_t)(int64_t)off;
				bool fits = to >= PEER_BASE && to + len <= END;
				struct peer *p = peer_up(0x5002, 1);
				struct seg s = read_of(S_READABLE, to, len);

				peer_segment(p, &s);
				assert_int_equal(p->closed, !fits);
				peer_free(p);
			}
}

/* No stale octets are sent: pads are zero, a region has its registered length,
 * a message the length that arrived. */
static void test_stale_data_rfc5042_6_3_2(void **state)
{
	struct peer *p = peer_up(0x5002, 1);
	const struct seg s = { .ctrl = C_SEND, .msn = 1, .payload = 100 };
	const struct seg t = { .ctrl = C_SEND, .msn = 2, .payload = 3 };
	const struct seg reads[3] = { read_of(S_READABLE, PEER_BASE, 1),
				      read_of(S_READABLE, PEER_BASE, 2),
				      read_of(S_READABLE, PEER_BASE, 3) };

	(void)state;
	peer_segment(p, &s);
	peer_segment(p, &t);
	assert_int_equal(p->last.len, 3);
	for (unsigned k = 0; k < 3; k++) {
		struct seg r = reads[k];
		size_t from = p->sent_len, content = 2 + 14 + k + 1;
		size_t pad = round_up4(content) - content;

		r.msn = k + 1;
		peer_segment(p, &r);
		assert_int_equal(p->sent_len - from, content + pad + 4);
		for (size_t i = 0; i < pad; i++)
			assert_int_equal(p->sent[from + content + i], 0);
	}
	peer_free(p);
}

static void test_reading_after_the_transfer_rfc5042_6_3_3(void **state)
{
	struct peer *p = peer_up(0x5002, 1);
	struct seg s = read_of(S_READABLE, PEER_BASE, 8);
	uint8_t u[64];

	(void)state;
	peer_segment(p, &s);
	assert_int_equal(peer_next(p, u), 22);
	rcap_invalidate(p->qp, &p->readable);
	s.msn = 2;
	refused(p, &s, TERM_RDMAP_INVALID_STAG);
}

/* A valid STag, and the octets between the pieces of its memory. */
static void test_unintended_data_with_a_valid_stag_rfc5042_6_3_4(void **state)
{
	struct peer *p = peer_up(0x5002, 1);
	struct iovec iov[2] = { { p->memory + PEER_REGION + 10, 5 },
				{ p->memory + PEER_REGION + 100, 5 } };
	const struct bufv v = bufv_of(iov, 2);
	struct rcap_mr mr;
	struct seg s;
	uint8_t u[64];

	(void)state;
	assert_int_equal(rcap_reg(p->qp, &v, 7, RCAP_REMOTE_READ, &mr), 0);
	s = read_of(mr.stag, 7, 10);
	peer_segment(p, &s);
	assert_int_equal(peer_next(p, u), 24);
	assert_memory_equal(u + 14, p->memory + PEER_REGION + 10, 5);
	assert_memory_equal(u + 19, p->memory + PEER_REGION + 100, 5);
	s = read_of(mr.stag, 8, 10);
	s.msn = 2;
	refused(p, &s, TERM_RDMAP_BOUNDS);
}

static void test_read_from_a_write_buffer_rfc5042_6_3_5(void **state)
{
	const struct seg s = read_of(S_WRITABLE, PEER_BASE, 1);

	(void)state;
	refused(peer_up(0x5002, 1), &s, TERM_RDMAP_ACCESS);
}

/* A peer that sends endlessly before the user has answered: only the look-ahead
 * is filled. */
static void test_flood_before_the_answer_rfc5042_6_4_1(void **state)
{
	static uint8_t flood[8192];
	struct iwarp_config cfg;
	struct peer *p;
	uint8_t b[32];

	(void)state;
	iwarp_config_default(&cfg, false);
	cfg.lookahead = 1024;
	p = peer_new(&cfg, NULL, 0, 1);
	p->hold = true;
	peer_octets(p, b, peer_frame(b, false, 0x0001, NULL, 0));
	peer_octets(p, flood, sizeof(flood));
	assert_true(iwarp_stats(p->c)->rx_bytes <= 20 + 1024);
	assert_false(p->closed);
	peer_free(p);
}

static void test_read_queue_overflow_rfc5042_6_4_3_3(void **state)
{
	struct peer *p = peer_up(0x5002, 1);
	struct seg s = read_of(S_READABLE, PEER_BASE, 1000);

	(void)state;
	p->stalled = true;
	for (unsigned i = 1; i < 100 && rcap_state(p->qp) < RCAP_CLOSING; i++) {
		s.msn = i;
		peer_segment(p, &s);
		assert_true(i <= 3);
	}
	p->stalled = false;
	peer_turn(p);
	assert_non_null(strstr(p->why, "0x1202"));
	peer_free(p);
}

/* Any number of empty segments: none is stored. */
static void test_endless_empty_segments_rfc5042_6_4_4(void **state)
{
	struct peer *p = peer_up(0x1002, 1);
	const struct seg rows[2] = { { .ctrl = C_MORE(C_SEND), .msn = 1 },
				     { .ctrl = C_MORE(C_WRITE) } };
	struct seg s = { .ctrl = C_SEND, .msn = 1, .payload = 5 };

	(void)state;
	for (unsigned i = 0; i < 20000; i++)
		peer_segment(p, &rows[i & 1]);
	peer_segment(p, &s);
	assert_int_equal(p->received, 1);
	assert_int_equal(p->last.len, 5);
	assert_int_equal(iwarp_stats(p->c)->copied, 5);
	peer_free(p);
}

/* A region belongs to one connection: a peer can neither invalidate a region of
 * another connection, nor one without rights. */
static void test_remote_invalidation_of_what_is_not_its_rfc5042_6_4_5(void **s)
{
	struct peer *p = peer_up(0x5002, 1);
	struct iovec iov = { p->memory, 8 };
	const struct bufv v = bufv_of(&iov, 1);
	struct rcap_mr mr;
	struct seg inv;

	(void)s;
	assert_int_equal(rcap_reg(p->qp, &v, 0, 0, &mr), 0);
	inv = invalidate_of(mr.stag);
	refused(p, &inv, TERM_RDMAP_CANT_INVALIDATE);
}

/* More messages than receives: there is no queue to overflow. */
static void test_more_sends_than_receives_rfc5042_6_4_6(void **state)
{
	struct peer *p = peer_up(0x5002, 4);
	struct seg s = { .ctrl = C_SEND, .payload = 8 };

	(void)state;
	p->keep_recvs = true;
	for (s.msn = 1; s.msn < 5; s.msn++)
		peer_segment(p, &s);
	assert_int_equal(p->received, 4);
	refused(p, &s, TERM_DDP_UNTAGGED_NO_BUFFER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stag_on_another_stream_rfc5042_6_1_1),
		cmocka_unit_test(test_guessed_stags_rfc5042_6_1_1),
		cmocka_unit_test(test_buffer_overrun_by_write_rfc5042_6_2_1),
		cmocka_unit_test(
			test_buffer_overrun_by_read_response_rfc5042_6_2_1),
		cmocka_unit_test(test_modifying_after_indication_rfc5042_6_2_2),
		cmocka_unit_test(test_two_stags_of_one_buffer_rfc5042_6_2_3),
		cmocka_unit_test(test_probing_outside_the_bounds_rfc5042_6_3_1),
		cmocka_unit_test(test_stale_data_rfc5042_6_3_2),
		cmocka_unit_test(test_reading_after_the_transfer_rfc5042_6_3_3),
		cmocka_unit_test(
			test_unintended_data_with_a_valid_stag_rfc5042_6_3_4),
		cmocka_unit_test(test_read_from_a_write_buffer_rfc5042_6_3_5),
		cmocka_unit_test(test_flood_before_the_answer_rfc5042_6_4_1),
		cmocka_unit_test(test_read_queue_overflow_rfc5042_6_4_3_3),
		cmocka_unit_test(test_endless_empty_segments_rfc5042_6_4_4),
		cmocka_unit_test(
			test_remote_invalidation_of_what_is_not_its_rfc5042_6_4_5),
		cmocka_unit_test(test_more_sends_than_receives_rfc5042_6_4_6),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
