/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * qp_small_test.c: small Sends and Writes out, of one piece and several, in any
 * order and number: each message arrives as posted, in segments that fit the
 * path (RFC 5044 §4.5), whichever way it was staged.
 */
#include <string.h>

#include "unit/rcap/peer.h"

#define MANY 400

struct message {
	enum rcap_op op;
	unsigned flags;
	size_t len[3];
};

/* clang-format off */
static const struct message messages[] = {
	{ RCAP_SEND, RCAP_SOLICITED, { 76 } },
	{ RCAP_WRITE, RCAP_UNSTABLE, { 4096 } },
	{ RCAP_SEND, RCAP_SOLICITED | RCAP_INVALIDATE, { 77 } },
	{ RCAP_SEND, 0, { 76, 4096 } },
	{ RCAP_SEND, RCAP_INVALIDATE, { 76, 512 } },
	{ RCAP_SEND, 0, { 76, 10, 600 } },
	{ RCAP_WRITE, 0, { 3001 } },
	{ RCAP_WRITE, RCAP_UNSTABLE, { 255, 514 } },
	{ RCAP_SEND, 0, { 257, 600 } },
	{ RCAP_SEND, 0, { 256, 1 } },
	{ RCAP_WRITE, RCAP_UNSTABLE, { 8191 } },
	{ RCAP_WRITE, RCAP_UNSTABLE, { 9001 } },
	{ RCAP_WRITE, 0, { 256 } },
	{ RCAP_SEND, 0, { 0 } },
	{ RCAP_WRITE, 0, { 1 } },
};
/* clang-format on */

struct request {
	struct rcap_wr wr;
	struct iovec iov[3];
};

static uint8_t octet_at(unsigned i, size_t at)
{
	return (uint8_t)(i * 7 + at * 5 + at / 251);
}

static void post_message(struct peer *p, struct request *r, uint8_t *memory,
			 unsigned i)
{
	const struct message *m = &messages[i % ARRAY_LEN(messages)];
	struct rcap_wr *w = &r->wr;
	unsigned n = 0;
	size_t at = 0;

	for (; n < 3 && (m->len[n] || n == 0); n++) {
		r->iov[n] = (struct iovec){ memory + at, m->len[n] };
		at += m->len[n];
	}
	for (size_t k = 0; k < at; k++)
		memory[k] = octet_at(i, k);
	r->wr = (struct rcap_wr){ .op = m->op,
				  .flags = m->flags,
				  .data = bufv_of(r->iov, n),
				  .stag = 0x12340000 + i,
				  .to = 0x100000000u + i };
	assert_int_equal(rcap_post(p->qp, &w, 1), 0);
}

/* Header of one segment, of which `at` octets were in segments before it.
 * Returns its length. */
static size_t check_header(const uint8_t *u, const struct message *m,
			   unsigned i, unsigned msn, size_t at)
{
	static const uint8_t opcodes[] = { 3, 5, 4, 6 };

	if (m->op == RCAP_WRITE) {
		assert_int_equal(u[0] & ~0x40, 0x81);
		assert_int_equal(u[1], 0x40);
		assert_int_equal(get_be32(u + 2), 0x12340000 + i);
		assert_int_equal(get_be64(u + 6), 0x100000000u + i + at);
		return 14;
	}
	assert_int_equal(u[0] & ~0x40, 0x01);
	assert_int_equal(u[1], 0x40 | opcodes[m->flags & 3]);
	assert_int_equal(get_be32(u + 2),
			 m->flags & RCAP_INVALIDATE ? 0x12340000 + i : 0);
	assert_int_equal(get_be32(u + 6), 0);
	assert_int_equal(get_be32(u + 10), msn);
	assert_int_equal(get_be32(u + 14), at);
	return 18;
}

static void expect_message(struct peer *p, unsigned i, unsigned *msn,
			   size_t emss)
{
	const struct message *m = &messages[i % ARRAY_LEN(messages)];
	size_t len = m->len[0] + m->len[1] + m->len[2], at = 0;
	bool last = false;

	while (!last) {
		static uint8_t u[70000];
		size_t n = peer_next(p, u), head;

		assert_true(n >= 14);
		assert_true(!emss || n + 2 + 4 <= emss);
		head = check_header(u, m, i, *msn, at);
		for (size_t k = head; k < n; k++)
			assert_int_equal(u[k], octet_at(i, at + k - head));
		at += n - head;
		last = u[0] & 0x40;
	}
	assert_int_equal(at, len);
	*msn += m->op == RCAP_SEND;
}

static void exchange(uint16_t bits, size_t emss, unsigned first, unsigned count)
{
	static struct request requests[MANY];
	static uint8_t memory[MANY][9100];
	struct peer *p = peer_up_path(bits, emss, 1);
	unsigned msn = 1;
	uint8_t rtr[64];

	if (bits & MPA_BITS_S && p->sent_len > p->seen)
		peer_next(p, rtr);
	for (unsigned i = 0; i < count; i++)
		post_message(p, &requests[i], memory[i], first + i);
	peer_turn(p);
	for (unsigned i = 0; i < count; i++)
		expect_message(p, first + i, &msn, emss);
	assert_int_equal(p->seen, p->sent_len);
	assert_int_equal(p->done, count);
	peer_free(p);
}

static const uint16_t settings[] = { 0x5002, 0x1002, 0xd002 };
static const size_t paths[] = { 0, 1460, 600, 160 };

static void test_each_message_in_each_setting(void **state)
{
	(void)state;
	for (size_t s = 0; s < ARRAY_LEN(settings); s++)
		for (size_t k = 0; k < ARRAY_LEN(paths); k++) {
			for (unsigned i = 0; i < ARRAY_LEN(messages); i++)
				exchange(settings[s], paths[k], i, 2);
			exchange(settings[s], paths[k], 0, MANY);
		}
}

/* A path whose segment ends at each octet around that of a message. */
static void test_messages_as_long_as_a_segment(void **state)
{
	(void)state;
	for (size_t emss = 4096 + 76; emss < 4096 + 140; emss++)
		exchange(0x5002, emss, 0, 5);
}

/* Memory that may change is copied before its CRC is computed. */
static void test_memory_that_changes(void **state)
{
	static const unsigned unstable[] = { 1, 7, 10, 11 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(unstable); i++) {
		struct peer *p = peer_up_path(0x5002, 0, 1);
		static struct request r[2];
		static uint8_t memory[2][9100];
		struct iovec iov[64];
		unsigned msn = 1;

		/* the second one finds the memory for copies in use */
		for (unsigned k = 0; k < 2; k++)
			post_message(p, &r[k], memory[k], unstable[i]);
		assert_true(iwarp_stream_ops.tx_what(p->c, iov, 64) > 0);
		memset(memory, 0x33, sizeof(memory));
		peer_turn(p);
		for (unsigned k = 0; k < 2; k++)
			expect_message(p, unstable[i], &msn, 0);
		peer_free(p);
	}
}

/* ---- the time of a turn ---- */

static unsigned asked, permits; /* so many calls of is_spent return false */

static bool is_spent(struct stream_host *host, bool control)
{
	(void)host;
	(void)control;
	asked++;
	if (permits == 0)
		return true;
	permits--;
	return false;
}

/* Messages stay where they are once the driver says that the time of the turn is used up; the
 * next call of rx_where goes on with them. */
static void test_spent_time_leaves_the_rest(void **state)
{
	static const uint16_t bits[] = { 1, MPA_BITS_C | 1, MPA_BITS_M | 1 };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(bits); i++) {
		struct peer *p = peer_up(bits[i], 4);
		static uint8_t octets[16384];
		struct iovec iov[64];
		size_t len = 0;

		p->host.is_spent = is_spent;
		asked = permits = 0;
		for (unsigned k = 0; k < 80; k++) {
			struct seg s = { .ctrl = C_SEND,
					 .msn = k + 1,
					 .payload = 64 };
			uint8_t ulpdu[200];
			size_t n = peer_lay(p, &s, ulpdu);

			len += peer_fpdu(p, ulpdu, n, octets + len);
		}
		peer_octets(p, octets, len);
		assert_in_range(p->received, 30, 32);
		peer_turn(p);
		assert_in_range(p->received, 30, 32);
		assert_int_equal(iwarp_stream_ops.rx_where(p->c, iov, 64), 0);
		assert_in_range(p->received, 62, 64);
		permits = 9;
		assert_true(iwarp_stream_ops.rx_where(p->c, iov, 64) > 0);
		assert_int_equal(p->received, 80);
		assert_in_range(asked, 2, 3);
		peer_free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_message_in_each_setting),
		cmocka_unit_test(test_messages_as_long_as_a_segment),
		cmocka_unit_test(test_memory_that_changes),
		cmocka_unit_test(test_spent_time_leaves_the_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
