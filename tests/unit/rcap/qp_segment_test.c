/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * qp_segment_test.c: one queue pair in full operation, and every segment that
 * it must refuse: layer, type and code of the Terminate (RFC 5040 §4.8, RFC
 * 5041 §7.2, RFC 5044 §8), the headers in it (RFC 5040 figure 10), and memory
 * unchanged. Then segments that look odd and are legal.
 */
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "unit/rcap/peer.h"

#define MAX_FPDU 70000

enum headers {
	H_NONE,
	H_DDP,
	H_BOTH
};

struct bad {
	const char *what;
	uint16_t reason;
	enum headers headers;
	struct seg s;
};

#define WR(t, n) .ctrl = C_WRITE, .stag = S_WRITABLE, .to = (t), .payload = (n)
#define RD(st, t, n)                                             \
 .ctrl = C_READ, .qn = 1, .msn = 1, .read = true, .sink = 0x777, \
 .source = (st), .source_to = (t), .size = (n)
#define END (PEER_BASE + PEER_REGION)

/* clang-format off */
static const struct bad bad[] = {
	/* RFC 5041 §7.1: tagged */
	{ "Write, no such STag", 0x1100, H_DDP, { .ctrl = C_WRITE, .stag = 0x00777700, .to = PEER_BASE, .payload = 8 } },
	{ "Write, STag 0", 0x1100, H_DDP, { .ctrl = C_WRITE, .to = PEER_BASE, .payload = 8 } },
	{ "Write, key guessed", 0x1100, H_DDP, { .ctrl = C_WRITE, .stag = S_WRONGKEY, .to = PEER_BASE, .payload = 8 } },
	{ "Write without the right", 0x1101, H_DDP, { .ctrl = C_WRITE, .stag = S_READABLE, .to = PEER_BASE, .payload = 8 } },
	{ "Write before the base", 0x1101, H_DDP, { WR(PEER_BASE - 1, 8) } },
	{ "Write over the end", 0x1101, H_DDP, { WR(END - 7, 8) } },
	{ "Write after the end", 0x1101, H_DDP, { WR(END, 1) } },
	{ "Write at 0", 0x1101, H_DDP, { WR(0, 1) } },
	{ "Write that wraps", 0x1103, H_DDP, { WR(UINT64_MAX - 3, 8) } },
	{ "Write longer than the region", 0x1101, H_DDP, { WR(PEER_BASE, PEER_REGION + 1) } },
	{ "Write of 40000 octets", 0x1101, H_DDP, { WR(PEER_BASE, 40000) } },
	/* RFC 5040 §7.2: Read Requests */
	{ "Read, no such STag", 0x0100, H_BOTH, { RD(0x00777700, PEER_BASE, 8) } },
	{ "Read, key guessed", 0x0100, H_BOTH, { RD(S_WRONGKEY, PEER_BASE, 8) } },
	{ "Read without the right", 0x0102, H_BOTH, { RD(S_WRITABLE, PEER_BASE, 8) } },
	{ "Read before the base", 0x0101, H_BOTH, { RD(S_READABLE, PEER_BASE - 1, 8) } },
	{ "Read over the end", 0x0101, H_BOTH, { RD(S_READABLE, PEER_BASE, PEER_REGION + 1) } },
	{ "Read of 4 GiB", 0x0101, H_BOTH, { RD(S_READABLE, PEER_BASE, UINT32_MAX) } },
	{ "Read that wraps", 0x0104, H_BOTH, { RD(S_READABLE, UINT64_MAX - 2, 100) } },
	{ "Read Request with payload", 0x1205, H_DDP, { RD(S_READABLE, PEER_BASE, 8), .payload = 4 } },
	{ "Read Request in two segments", 0x1205, H_DDP, { .ctrl = C_MORE(C_READ), .qn = 1, .msn = 1, .read = true } },
	/* RFC 5041 §7.1: untagged */
	{ "Send, MSN ahead", 0x1203, H_DDP, { .ctrl = C_SEND, .msn = 2, .payload = 8 } },
	{ "Send, MSN 0", 0x1203, H_DDP, { .ctrl = C_SEND, .payload = 8 } },
	{ "Send, MSN far off", 0x1203, H_DDP, { .ctrl = C_SEND, .msn = 0x80000001, .payload = 8 } },
	{ "Read Request, MSN ahead", 0x1203, H_DDP, { .ctrl = C_READ, .qn = 1, .msn = 2, .read = true } },
	{ "Terminate, MSN ahead", 0x1203, H_DDP, { .ctrl = C_TERM, .qn = 2, .msn = 2, .payload = 4 } },
	{ "Send, MO ahead", 0x1204, H_DDP, { .ctrl = C_SEND, .msn = 1, .mo = 4, .payload = 8 } },
	{ "Send, MO huge", 0x1204, H_DDP, { .ctrl = C_SEND, .msn = 1, .mo = UINT32_MAX, .payload = 8 } },
	{ "Read Request, MO", 0x1204, H_DDP, { .ctrl = C_READ, .qn = 1, .msn = 1, .mo = 8, .read = true } },
	{ "Terminate, MO", 0x1204, H_DDP, { .ctrl = C_TERM, .qn = 2, .msn = 1, .mo = 4, .payload = 4 } },
	{ "queue 3", 0x1201, H_DDP, { .ctrl = C_SEND, .qn = 3, .msn = 1, .payload = 8 } },
	{ "queue 4294967295", 0x1201, H_DDP, { .ctrl = C_SEND, .qn = UINT32_MAX, .msn = 1 } },
	{ "Send longer than the receive", 0x1205, H_DDP, { .ctrl = C_SEND, .msn = 1, .payload = 129 } },
	{ "Terminate of 60 octets", 0x1205, H_DDP, { .ctrl = C_TERM, .qn = 2, .msn = 1, .payload = 60 } },
	/* queues and opcodes that do not match (RFC 5040 §5.1) */
	{ "Send on queue 1", 0x0206, H_DDP, { .ctrl = C_SEND, .qn = 1, .msn = 1, .payload = 8 } },
	{ "Send on queue 2", 0x0206, H_DDP, { .ctrl = C_SEND, .qn = 2, .msn = 1, .payload = 8 } },
	{ "Read Request on queue 0", 0x0206, H_DDP, { .ctrl = C_READ, .msn = 1, .read = true } },
	{ "Terminate on queue 0", 0x0206, H_DDP, { .ctrl = C_TERM, .msn = 1, .payload = 4 } },
	{ "Write, untagged", 0x0206, H_DDP, { .ctrl = 0x4140, .msn = 1, .payload = 8 } },
	{ "Send, tagged", 0x0206, H_DDP, { .ctrl = 0xc143, .stag = S_WRITABLE, .to = PEER_BASE, .payload = 8 } },
	{ "Read Request, tagged", 0x0206, H_DDP, { .ctrl = 0xc141, .stag = S_WRITABLE, .to = PEER_BASE, .payload = 60 } },
	{ "opcode 8 (RFC 7306, off)", 0x0206, H_DDP, { .ctrl = 0x4148, .msn = 1, .payload = 8 } },
	{ "opcode 9 (RFC 7306, off)", 0x0206, H_DDP, { .ctrl = 0x4149, .msn = 1, .payload = 8 } },
	{ "opcode 10 (RFC 7306, off)", 0x0206, H_DDP, { .ctrl = 0x414a, .qn = 1, .msn = 1, .payload = 52 } },
	{ "opcode 11 (RFC 7306, off)", 0x0206, H_DDP, { .ctrl = 0x414b, .msn = 1, .payload = 12 } },
	{ "opcode 12", 0x0206, H_DDP, { .ctrl = 0x414c, .msn = 1 } },
	{ "opcode 15", 0x0206, H_DDP, { .ctrl = 0x414f, .msn = 1, .payload = 8 } },
	{ "opcode 15, tagged", 0x0206, H_DDP, { .ctrl = 0xc14f, .payload = 8 } },
	{ "Read Response without a Read", 0x0206, H_DDP, { .ctrl = C_RESPONSE, .stag = S_WRITABLE, .to = PEER_BASE, .payload = 8 } },
	{ "Read Response of nothing, not asked for", 0x0206, H_DDP, { .ctrl = C_RESPONSE } },
	/* versions */
	{ "DDP version 0, tagged", 0x1104, H_DDP, { .ctrl = 0xc040, .stag = S_WRITABLE, .to = PEER_BASE, .payload = 8 } },
	{ "DDP version 2, tagged", 0x1104, H_DDP, { .ctrl = 0xc240, .stag = S_WRITABLE, .to = PEER_BASE, .payload = 8 } },
	{ "DDP version 0, untagged", 0x1206, H_DDP, { .ctrl = 0x4043, .msn = 1, .payload = 8 } },
	{ "DDP version 3, untagged", 0x1206, H_DDP, { .ctrl = 0x4343, .msn = 1, .payload = 8 } },
	{ "RDMAP version 0", 0x0205, H_DDP, { .ctrl = 0x4103, .msn = 1, .payload = 8 } },
	{ "RDMAP version 3, tagged", 0x0205, H_DDP, { .ctrl = 0xc1c0, .stag = S_WRITABLE, .to = PEER_BASE, .payload = 8 } },
	/* RFC 5040 §7.2: only a region of the stream can be invalidated */
	{ "Send with Invalidate of nothing", 0x0109, H_DDP, { .ctrl = C_SEND_INV, .msn = 1, .payload = 8 } },
	{ "Send with Invalidate, key guessed", 0x0109, H_DDP, { .ctrl = C_SEND_INV, .stag = S_WRONGKEY, .msn = 1, .payload = 8 } },
	{ "Send with SE and Invalidate, no such STag", 0x0109, H_DDP, { .ctrl = C_SEND_SI, .stag = 0x00777700, .msn = 1 } },
};
/* clang-format on */

static void check_bad(const struct bad *b, uint16_t bits, size_t chunk)
{
	static uint8_t ulpdu[MAX_FPDU], fpdus[2 * MAX_FPDU], good[64];
	const struct seg after = { WR(PEER_BASE, 16) };
	struct peer *p = peer_up(bits, 1);
	size_t len = peer_lay(p, &b->s, ulpdu), n;
	size_t ddp = b->headers == H_NONE ? 0 : b->s.ctrl & 0x8000 ? 14 : 18;

	p->chunk = chunk;
	n = peer_fpdu(p, ulpdu, len, fpdus);
	/* RFC 5041 §7.1: octets after it are dropped, even valid ones */
	n += peer_fpdu(p, good, peer_lay(p, &after, good), fpdus + n);
	peer_octets(p, fpdus, n);
	if (!p->closed)
		fail_msg("%s: nothing happened", b->what);
	peer_expect_terminate(p, b->reason, ulpdu, len, ddp,
			      b->headers == H_BOTH ? 28 : 0);
	assert_int_equal(p->received, 0);
	assert_int_equal(p->aborted_recvs, 1);
	peer_untouched(p);
	peer_free(p);
}

static void test_each_bad_segment(void **state)
{
	static const size_t chunks[] = { 0, 1, 13 };
	static const uint16_t bits[] = { 0x1002, 0x5002, 0x9002, 0xd002 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		for (size_t k = 0; k < ARRAY_LEN(chunks); k++)
			for (size_t m = 0; m < ARRAY_LEN(bits); m++)
				check_bad(&bad[i], bits[m], chunks[k]);
}

/* A ULPDU that is shorter than its header: a catastrophic error of RDMAP's
 * stream; the Terminate has the DDP header if it is complete. */
static void check_short(const struct seg *s, size_t n, size_t chunk)
{
	uint8_t ulpdu[128];
	struct peer *p = peer_up(0x5002, 1);
	size_t ddp = s->ctrl & 0x8000 ? 14 : 18;

	p->chunk = chunk;
	memset(ulpdu, 0, sizeof(ulpdu));
	peer_lay(p, s, ulpdu);
	peer_ulpdu(p, ulpdu, n);
	peer_expect_terminate(p, TERM_RDMAP_STREAM_CATASTROPHIC, ulpdu, n,
			      n >= ddp ? ddp : 0, 0);
	peer_untouched(p);
	peer_free(p);
}

static void test_short_ulpdus(void **state)
{
	static const struct seg write = { WR(PEER_BASE, 0) };
	static const struct seg send = { .ctrl = C_SEND, .msn = 1 };
	static const struct seg read = { RD(S_READABLE, PEER_BASE, 8) };

	(void)state;
	for (size_t chunk = 0; chunk < 2; chunk++) {
		for (size_t n = 0; n < 14; n++)
			check_short(&write, n, chunk);
		for (size_t n = 0; n < 18; n++)
			check_short(&send, n, chunk);
		for (size_t n = 0; n < 46; n++)
			check_short(&read, n, chunk);
	}
}

/* ---- several segments ---- */

static void test_opcode_changes_within_a_message(void **state)
{
	(void)state;
	for (size_t first = 0; first < 9; first += 4) {
		struct peer *p = peer_up(0x5002, 1);
		struct seg s = { .ctrl = C_MORE(C_SEND),
				 .msn = 1,
				 .payload = first };
		uint8_t ulpdu[64];
		size_t n;

		peer_segment(p, &s);
		assert_false(p->closed);
		s.ctrl = C_SEND_SE;
		s.mo = (uint32_t)first;
		s.payload = 4;
		n = peer_lay(p, &s, ulpdu);
		peer_ulpdu(p, ulpdu, n);
		peer_expect_terminate(p, TERM_RDMAP_OPCODE, ulpdu, n, 18, 0);
		assert_int_equal(p->received, 0);
		peer_free(p);
	}
}

/* MSN and MO of each segment of a message, and of the next message. */
static void test_order_within_and_between_messages_rfc5041_5_2(void **state)
{
	static const struct {
		uint32_t msn, mo;
		uint16_t reason;
	} rows[] = {
		{ 1, 0, TERM_DDP_UNTAGGED_MO },
		{ 1, 16, TERM_DDP_UNTAGGED_MO },
		{ 2, 8, TERM_DDP_UNTAGGED_MSN },
		{ 2, 0, TERM_DDP_UNTAGGED_MSN },
		{ 1, 4, TERM_DDP_UNTAGGED_MO },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct peer *p = peer_up(0x5002, 1);
		struct seg s = { .ctrl = C_MORE(C_SEND),
				 .msn = 1,
				 .payload = 8 };
		uint8_t ulpdu[64];
		size_t n;

		peer_segment(p, &s);
		s.msn = rows[i].msn;
		s.mo = rows[i].mo;
		n = peer_lay(p, &s, ulpdu);
		peer_ulpdu(p, ulpdu, n);
		peer_expect_terminate(p, rows[i].reason, ulpdu, n, 18, 0);
		peer_free(p);
	}
}

static void test_send_that_grows_too_long(void **state)
{
	struct peer *p = peer_up(0x5002, 1);
	struct seg s = { .ctrl = C_MORE(C_SEND), .msn = 1, .payload = 100 };
	uint8_t ulpdu[64];
	size_t n;

	(void)state;
	peer_segment(p, &s);
	s = (struct seg){ .ctrl = C_SEND, .msn = 1, .mo = 100, .payload = 29 };
	n = peer_lay(p, &s, ulpdu);
	peer_ulpdu(p, ulpdu, n);
	peer_expect_terminate(p, TERM_DDP_UNTAGGED_TOO_LONG, ulpdu, n, 18, 0);
	peer_free(p);
}

static void test_send_without_a_receive(void **state)
{
	(void)state;
	for (size_t len = 0; len < 10; len += 9) {
		struct peer *p = peer_up(0x5002, 1);
		struct seg s = { .ctrl = C_SEND, .msn = 1, .payload = len };
		uint8_t ulpdu[64];
		size_t n;

		p->keep_recvs = true;
		peer_segment(p, &s);
		assert_int_equal(p->received, 1);
		s.msn = 2;
		n = peer_lay(p, &s, ulpdu);
		peer_ulpdu(p, ulpdu, n);
		peer_expect_terminate(p, TERM_DDP_UNTAGGED_NO_BUFFER, ulpdu, n,
				      18, 0);
		peer_free(p);
	}
}

/* RFC 5040 §5.2.1: more Reads than IRD at once. */
static void test_reads_beyond_ird(void **state)
{
	struct peer *p = peer_up(0x5002, 1); /* IRD 2 */
	struct seg s = { RD(S_READABLE, PEER_BASE, 64) };
	uint8_t ulpdu[64];
	size_t n;

	(void)state;
	p->stalled = true; /* the responses cannot be sent */
	peer_segment(p, &s);
	s.msn = 2;
	peer_segment(p, &s);
	assert_int_equal(rcap_state(p->qp), RCAP_ESTABLISHED);
	s.msn = 3;
	n = peer_lay(p, &s, ulpdu);
	peer_ulpdu(p, ulpdu, n);
	p->stalled = false;
	peer_turn(p);
	peer_expect_terminate(p, TERM_DDP_UNTAGGED_NO_BUFFER, ulpdu, n, 18, 0);
	peer_free(p);
}

/* ---- CRC and markers ---- */

static void test_wrong_crc_rfc5044_8(void **state)
{
	static const struct seg rows[] = {
		{ WR(PEER_BASE, 16) },
		{ .ctrl = C_SEND, .msn = 1, .payload = 16 },
		{ .ctrl = C_SEND_INV, .stag = S_WRITABLE, .msn = 1 },
		{ RD(S_READABLE, PEER_BASE, 16) },
		{ .ctrl = C_TERM, .qn = 2, .msn = 1, .payload = 4 },
		/* invalid, too: the CRC error is reported */
		{ .ctrl = C_SEND, .msn = 7 },
	};

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_LEN(rows); i++) {
		struct peer *p = peer_up(i & 1 ? 0x5002 : 0xd002, 1);

		p->corrupt = true;
		peer_segment(p, &rows[i / 2]);
		peer_expect_terminate(p, TERM_MPA_CRC, NULL, 0, 0, 0);
		assert_int_equal(p->received, 0);
		/* with markers a Write is placed before its CRC is checked:
		 * only in its own octets */
		if (rows[i / 2].ctrl == C_WRITE && !(i & 1))
			memset(p->memory + 3 * PEER_REGION, PEER_CANARY, 16);
		peer_untouched(p);
		assert_int_equal(iwarp_stats(p->c)->crc_errors, 1);
		peer_free(p);
	}
}

/* Without CRC the field is present and ignored (§4.4). */
static void test_no_crc_means_any_value(void **state)
{
	struct peer *p = peer_up(0x1002, 1);
	const struct seg s = { .ctrl = C_SEND, .msn = 1, .payload = 16 };

	(void)state;
	p->corrupt = true;
	peer_segment(p, &s);
	assert_int_equal(p->received, 1);
	peer_free(p);
}

/* RFC 5044 §8: code 3 if the CRC is right, code 2 if it is wrong. */
static void test_markers_that_lie(void **state)
{
	static uint8_t b[2048], ulpdu[1024];

	(void)state;
	for (unsigned how = 0; how < 4; how++) {
		bool crc = how & 1, mend = how & 2;
		struct peer *p = peer_up(crc ? 0xd002 : 0x9002, 1);
		const struct seg s = { WR(PEER_BASE, 700) };
		uint64_t pos = p->in.pos;
		size_t at = 512 - (size_t)(pos % 512);
		size_t n = peer_fpdu(p, ulpdu, peer_lay(p, &s, ulpdu), b);

		b[at + 3] ^= 0x08; /* the marker in the payload */
		if (mend) {
			uint32_t sum = crc32c_update(CRC32C_SEED, b, n - 4);

			put_le32(b + n - 4, crc32c_wire(sum));
		}
		p->chunk = how == 1 ? 1 : 0;
		peer_octets(p, b, n);
		peer_expect_terminate(
			p, crc && !mend ? TERM_MPA_CRC : TERM_MPA_MARKER, NULL,
			0, 0, 0);
		peer_free(p);
	}
}

/* A wrong marker in the header: the payload after it is not placed. */
static void test_marker_in_a_header_that_lies(void **state)
{
	static uint8_t b[2048], ulpdu[1024];
	struct peer *p = peer_up(0xd002, 1);
	struct seg s = { WR(PEER_BASE, 400) };
	size_t n, at;

	(void)state;
	/* up to 12 octets before the next marker */
	while (512 - p->in.pos % 512 != 12) {
		const struct seg hello = { .ctrl = C_WRITE };
		const struct seg step = { WR(PEER_BASE + 1000, 4) };

		peer_segment(p, (512 - p->in.pos % 512) % 20 == 12 ? &hello
								   : &step);
	}
	memset(p->memory + 3 * PEER_REGION, PEER_CANARY, PEER_REGION);
	at = 12;
	n = peer_fpdu(p, ulpdu, peer_lay(p, &s, ulpdu), b);
	b[at + 3] ^= 0x08;
	put_le32(b + n - 4, crc32c_wire(crc32c_update(CRC32C_SEED, b, n - 4)));
	peer_octets(p, b, n);
	peer_expect_terminate(p, TERM_MPA_MARKER, NULL, 0, 0, 0);
	peer_untouched(p);
	peer_free(p);
}

/* A wrong length leads to a marker at a wrong position. */
static void test_length_that_lies(void **state)
{
	static uint8_t b[4096], ulpdu[1024];
	struct peer *p = peer_up(0xd002, 1);
	const struct seg s = { WR(PEER_BASE, 200) };
	size_t n = peer_fpdu(p, ulpdu, peer_lay(p, &s, ulpdu), b);

	(void)state;
	b[1] = (uint8_t)(b[1] + 4);
	memset(b + n, 0, sizeof(b) - n);
	peer_octets(p, b, n + 600);
	peer_expect_terminate(p, TERM_MPA_CRC, NULL, 0, 0, 0);
	peer_free(p);
}

static void test_garbage_instead_of_fpdus(void **state)
{
	uint32_t x = 12345;
	unsigned ended = 0;

	(void)state;
	for (unsigned run = 0; run < 400; run++) {
		static uint8_t b[70000];
		struct peer *p = peer_up(run & 1 ? 0x5002 : 0x9002, 1);

		for (size_t i = 0; i < sizeof(b); i++) {
			x = x * 1664525 + 1013904223;
			b[i] = (uint8_t)(x >> 24);
		}
		peer_octets(p, b, sizeof(b));
		ended += p->closed;
		peer_untouched(p);
		peer_free(p);
	}
	assert_int_equal(ended, 400);
}

/* ---- odd, and legal ---- */

/* RFC 5040 §§5.1, 5.2, 5.3: messages of no octets; STag and TO are ignored. */
static void test_zero_length_everything(void **state)
{
	static const struct seg rows[] = {
		{ .ctrl = C_WRITE },
		{ .ctrl = C_MORE(C_WRITE) },
		{ .ctrl = C_WRITE, .stag = 0x777, .to = UINT64_MAX },
		{ .ctrl = C_WRITE, .stag = S_READABLE, .to = 1 },
		{ RD(0, 0, 0) },
		{ .ctrl = C_READ,
		  .qn = 1,
		  .msn = 2,
		  .read = true,
		  .sink = 0xabcd,
		  .sink_to = 99,
		  .source = 0x777,
		  .source_to = UINT64_MAX },
		{ .ctrl = C_MORE(C_SEND), .msn = 1 },
		{ .ctrl = C_SEND, .msn = 1 },
		{ .ctrl = C_SEND_SE, .msn = 2 },
	};
	struct peer *p = peer_up(0x5002, 1);
	uint8_t ulpdu[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		peer_segment(p, &rows[i]);
	assert_int_equal(rcap_state(p->qp), RCAP_ESTABLISHED);
	assert_int_equal(p->received, 2);
	assert_int_equal(p->last.len, 0);
	assert_true(p->last.solicited);
	/* both Reads were answered, at their sinks */
	assert_int_equal(peer_next(p, ulpdu), 14);
	assert_memory_equal(ulpdu, "\xc1\x42\0\0\x07\x77\0\0\0\0\0\0\0\0", 14);
	assert_int_equal(peer_next(p, ulpdu), 14);
	assert_memory_equal(ulpdu, "\xc1\x42\0\0\xab\xcd\0\0\0\0\0\0\0\x63",
			    14);
	assert_int_equal(peer_next(p, ulpdu), 0);
	peer_untouched(p);
	peer_fin(p, 0);
	assert_int_equal(p->err, 0);
	peer_free(p);
}

static size_t likely(const struct peer *p)
{
	struct stream_status st;

	iwarp_stream_ops.status(p->c, &st);
	return st.likely;
}

/* After a Write the rest of a region with RCAP_UNDEFINED is likely to follow;
 * not after a Send, and not if the region has ended. */
static void test_what_is_likely_to_follow(void **state)
{
	static uint8_t memory[PEER_REGION];
	struct iovec iov = { memory, sizeof(memory) };
	struct bufv v = bufv_of(&iov, 1);
	struct seg s = { WR(PEER_BASE + 16, 1000) };
	const struct seg told = { .ctrl = C_SEND, .msn = 1, .payload = 8 };
	struct peer *p = peer_up(0x5002, 1);
	struct rcap_mr mr;

	(void)state;
	peer_segment(p, &s); /* a region without RCAP_UNDEFINED */
	assert_int_equal(likely(p), 0);
	assert_int_equal(rcap_reg(p->qp, &v, PEER_BASE,
				  RCAP_REMOTE_WRITE | RCAP_UNDEFINED, &mr),
			 0);
	s.stag = mr.stag;
	peer_segment(p, &s);
	assert_int_equal(likely(p), PEER_REGION - 1016);
	peer_segment(p, &told);
	assert_int_equal(likely(p), 0);
	s.ctrl = C_MORE(C_WRITE);
	peer_segment(p, &s);
	assert_int_equal(likely(p), PEER_REGION - 1016);
	rcap_invalidate(p->qp, &mr);
	assert_int_equal(likely(p), 0);
	peer_free(p);
}

static void test_writes_land_where_they_say(void **state)
{
	static const size_t chunks[] = { 0, 1, 100 };

	(void)state;
	for (size_t k = 0; k < 2 * ARRAY_LEN(chunks); k++) {
		struct peer *p = peer_up(k & 1 ? 0xd002 : 0x5002, 1);
		const struct seg all = { WR(PEER_BASE, PEER_REGION) };
		const struct seg last = { WR(END - 1, 1) };
		const uint8_t *w = p->memory + 3 * PEER_REGION;

		p->chunk = chunks[k / 2];
		peer_segment(p, &all);
		for (size_t i = 0; i < PEER_REGION; i++)
			assert_int_equal(w[i], i % 0xbf + 1);
		peer_segment(p, &last);
		assert_int_equal(w[PEER_REGION - 1], 1);
		assert_int_equal(rcap_state(p->qp), RCAP_ESTABLISHED);
		peer_free(p);
	}
}

static void test_reads_give_what_they_say(void **state)
{
	struct peer *p = peer_up(0x5002, 1);
	struct seg s = { RD(S_READABLE, PEER_BASE + 100, 300) };
	uint8_t ulpdu[512];

	(void)state;
	s.sink_to = 0x1122334455667788ull;
	peer_segment(p, &s);
	assert_int_equal(peer_next(p, ulpdu), 314);
	assert_memory_equal(ulpdu,
			    "\xc1\x42\0\0\x07\x77\x11\x22\x33\x44\x55\x66\x77"
			    "\x88",
			    14);
	assert_memory_equal(ulpdu + 14, p->memory + PEER_REGION + 100, 300);
	peer_free(p);
}

/* Sends of each kind, in one segment and in several. */
static void test_sends_of_each_kind(void **state)
{
	static const uint16_t kinds[] = { C_SEND, C_SEND_SE, C_SEND_INV,
					  C_SEND_SI };

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_LEN(kinds); i++) {
		struct peer *p = peer_up(0x5002, 1);
		uint16_t ctrl = kinds[i / 2];
		bool inv = ctrl == C_SEND_INV || ctrl == C_SEND_SI;
		struct seg s = { .ctrl = ctrl,
				 .stag = inv ? S_WRITABLE : 0,
				 .msn = 1,
				 .payload = 20 };
		const struct seg write = { WR(PEER_BASE, 4) };

		if (i & 1) {
			s.ctrl = C_MORE(ctrl);
			peer_segment(p, &s);
			assert_int_equal(p->received, 0);
			s.ctrl = ctrl;
			s.mo = 20;
		}
		peer_segment(p, &s);
		assert_int_equal(p->received, 1);
		assert_int_equal(p->last.len, i & 1 ? 40 : 20);
		assert_int_equal(p->last.solicited,
				 ctrl == C_SEND_SE || ctrl == C_SEND_SI);
		assert_int_equal(p->last.invalidated, inv);
		if (inv)
			assert_int_equal(p->last.stag, p->writable.stag);
		peer_segment(p, &write);
		assert_int_equal(p->closed, inv);
		if (inv)
			assert_non_null(strstr(p->why, "0x1100"));
		peer_free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_bad_segment),
		cmocka_unit_test(test_short_ulpdus),
		cmocka_unit_test(test_opcode_changes_within_a_message),
		cmocka_unit_test(
			test_order_within_and_between_messages_rfc5041_5_2),
		cmocka_unit_test(test_send_that_grows_too_long),
		cmocka_unit_test(test_send_without_a_receive),
		cmocka_unit_test(test_reads_beyond_ird),
		cmocka_unit_test(test_wrong_crc_rfc5044_8),
		cmocka_unit_test(test_no_crc_means_any_value),
		cmocka_unit_test(test_markers_that_lie),
		cmocka_unit_test(test_marker_in_a_header_that_lies),
		cmocka_unit_test(test_length_that_lies),
		cmocka_unit_test(test_garbage_instead_of_fpdus),
		cmocka_unit_test(test_zero_length_everything),
		cmocka_unit_test(test_what_is_likely_to_follow),
		cmocka_unit_test(test_writes_land_where_they_say),
		cmocka_unit_test(test_reads_give_what_they_say),
		cmocka_unit_test(test_sends_of_each_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
