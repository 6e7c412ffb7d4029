/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mpa_test.c: MPA frames and FPDUs: the dumps of RFC 5044 figures 5 and 6,
 * frames that siw of Linux sends, and FPDUs built and opened again at every
 * position around a marker.
 */
#include "rcap/iwarp/mpa.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"

/* Concatenates the pieces of a build. */
static size_t flatten(const struct iovec *iov, int n, uint8_t *out)
{
	size_t at = 0;

	for (int i = 0; i < n; i++) {
		memcpy(out + at, iov[i].iov_base, iov[i].iov_len);
		at += iov[i].iov_len;
	}
	return at;
}

static const uint8_t send_header[20] = { 0, 0, 0x41, 0x43, 0, 0, 0, 0, 0, 0,
					 0, 0, 0,    0,	   0, 1, 0, 0, 0, 0 };

static size_t build(struct mpa_stream *s, uint8_t msn, const uint8_t *data,
		    size_t len, uint8_t *out)
{
	static uint8_t scratch[2048], head[20];
	uint8_t *room = scratch;
	struct iovec iov[512], d = { (void *)(uintptr_t)data, len };
	struct bufv v = bufv_of(&d, 1);
	int n;

	memcpy(head, send_header, 20);
	head[15] = msn;
	n = mpa_fpdu_build(s, head, 20, &v, 0, len, NULL, iov, 512, &room);
	assert_true(n > 0);
	return flatten(iov, n, out);
}

static void test_fpdu_rfc5044_figure_5(void **state)
{
	struct mpa_stream s = { .markers = true, .crc = true };
	const uint8_t zeros[24] = { 0 };
	uint8_t out[128];

	(void)state;
	assert_int_equal(build(&s, 1, zeros, 24, out), 0x34);
	assert_memory_equal(out, "\0\0\0\0\0\x2a\x41\x43", 8);
	assert_memory_equal(out + 0x30, "\x52\x23\x99\x83", 4);
	assert_int_equal(s.pos, 0x34);
}

static void test_fpdu_rfc5044_figure_6(void **state)
{
	struct mpa_stream s = { .markers = true, .crc = true, .pos = 0x1ec };
	const uint8_t zeros[24] = { 0 };
	uint8_t out[128];

	(void)state;
	assert_int_equal(build(&s, 2, zeros, 24, out), 0x34);
	assert_memory_equal(out, "\0\x2a\x41\x43", 4);
	assert_memory_equal(out + 0x14, "\0\0\0\x14", 4);
	assert_memory_equal(out + 0x30, "\x84\x92\x58\x98", 4);
}

/* Every position, length and setting: a built FPDU opens to the same ULPDU, and
 * every single wrong bit is detected when CRC is on. */
static void test_build_and_open_around_markers(void **state)
{
	static uint8_t data[1200], out[4096], back[2048];
	struct iovec iov[64];

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 5 + 1);
	for (unsigned how = 0; how < 4; how++)
		for (uint64_t pos = 0; pos < 1024; pos += 4)
			for (size_t len = 0; len < 1200; len += 97) {
				struct mpa_stream tx = { .markers = how & 1,
							 .crc = how & 2,
							 .pos = pos };
				struct mpa_stream rx = tx;
				size_t total, ulpdu;
				size_t want = mpa_fpdu_size(&tx, 18 + len);
				int n;

				assert_int_equal(build(&tx, 1, data, len, out),
						 want);
				mpa_fpdu_peek(&rx, out, want, &total);
				assert_int_equal(total, want);
				n = mpa_fpdu_open(&rx, out, total, iov, 64,
						  &ulpdu);
				assert_true(n > 0);
				assert_int_equal(ulpdu, 18 + len);
				assert_int_equal(flatten(iov, n, back), ulpdu);
				assert_memory_equal(back + 18, data, len);
				assert_int_equal(rx.pos, tx.pos);
			}
}

/* A copied FPDU has the octets of one that refers to its payload; for short and
 * long payload, in one piece and in several. */
static void test_copy_equals_build(void **state)
{
	static uint8_t data[40000], out[2][41000];
	static const size_t lens[] = {
		0, 1, 2, 3, 4, 5, 6, 76, 4095, 4096, 8191, 8192, 8193, 39000
	};

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 167 >> 3);
	for (unsigned k = 0; k < ARRAY_LEN(lens) * 4; k++) {
		struct mpa_stream s = { .crc = k & 1 }, t = s;
		struct iovec iov[8], d[3] = { { data, 3 },
					      { data + 7, 50 },
					      { data + 99, 39500 } };
		struct iovec whole = { data, sizeof(data) };
		struct bufv v = k & 2 ? bufv_of(d, 3) : bufv_of(&whole, 1);
		size_t len = lens[k / 4], n;
		uint8_t head[20], scratch[16], *room = scratch;
		int pieces;

		memcpy(head, send_header, 20);
		memcpy(out[1], send_header, 20);
		memset(out[1] + 20, 0xee, sizeof(out[1]) - 20);
		pieces = mpa_fpdu_build(&s, head, 20, &v, 1, len, NULL, iov, 8,
					&room);
		assert_true(pieces > 0);
		n = flatten(iov, pieces, out[0]);
		assert_int_equal(mpa_fpdu_copy(&t, out[1], 20, &v, 1, len), n);
		assert_memory_equal(out[0], out[1], n);
		assert_int_equal(s.pos, t.pos);
		assert_int_equal(n, mpa_fpdu_size(&s, 18 + len));
	}
}

static void test_build_without_room_or_data(void **state)
{
	struct mpa_stream s = { .crc = true };
	uint8_t data[16] = { 0 }, head[20], scratch[16], *room = scratch;
	struct iovec iov[4],
		d[4] = { { data, 4 }, { data, 4 }, { data, 4 }, { data, 4 } };
	struct bufv v = bufv_of(d, 4);

	(void)state;
	memcpy(head, send_header, 20);
	assert_int_equal(mpa_fpdu_build(&s, head, 20, &v, 0, 16, NULL, iov, 4,
					&room),
			 ERR_LIMIT);
	assert_int_equal(mpa_fpdu_build(&s, head, 20, &v, 8, 9, NULL, iov, 4,
					&room),
			 ERR_LIMIT);
	assert_int_equal(s.pos, 0);
}

static void test_crc_notices_every_bit(void **state)
{
	const uint8_t data[40] = { 1, 2, 3 };
	uint8_t out[256];
	struct mpa_stream s = { .markers = true, .crc = true, .pos = 0x1ec };
	size_t n = build(&s, 1, data, sizeof(data), out);

	(void)state;
	for (size_t bit = 16; bit < 8 * n; bit++) {
		struct mpa_stream rx = { .markers = true,
					 .crc = true,
					 .pos = 0x1ec };
		struct iovec iov[8];
		size_t ulpdu;

		out[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_true(mpa_fpdu_open(&rx, out, n, iov, 8, &ulpdu) < 0);
		out[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

static void test_marker_that_lies_rfc5044_4_3(void **state)
{
	const uint8_t data[40] = { 0 };
	uint8_t out[256];
	struct mpa_stream s = { .markers = true, .pos = 0x1ec };
	size_t n = build(&s, 1, data, sizeof(data), out), ulpdu;
	struct mpa_stream rx = { .markers = true, .pos = 0x1ec };
	struct iovec iov[8];

	(void)state;
	out[0x17] = 0x18;
	assert_int_equal(mpa_fpdu_open(&rx, out, n, iov, 8, &ulpdu),
			 ERR_FORMAT);
	out[0x17] = 0x17; /* the last two bits are ignored (§4.3) */
	out[0x17] = 0x16;
	assert_true(mpa_fpdu_open(&rx, out, n, iov, 8, &ulpdu) > 0);
}

static void test_max_ulpdu_fits_and_is_the_largest(void **state)
{
	(void)state;
	for (uint64_t pos = 0; pos < 512; pos += 4)
		for (size_t room = 0; room < 3000; room += 7) {
			struct mpa_stream s = { .markers = room & 1,
						.pos = pos };
			size_t len = mpa_max_ulpdu(&s, room);

			if (len == 0)
				continue;
			assert_true(mpa_fpdu_size(&s, len) <= room);
			assert_true(mpa_fpdu_size(&s, len + 4) > room);
		}
}

/* ---- start-up ---- */

/* siw of Linux as initiator, with ib_iser: revision 2, S, IRD 128, ORD 1, 4
 * bytes of private data. */
static const uint8_t siw_request[] = { 'M',  'P', 'A',	' ',  'I', 'D', ' ',
				       'R',  'e', 'q',	' ',  'F', 'r', 'a',
				       'm',  'e', 0x10, 0x02, 0,   8,	0,
				       0x80, 0,	  1,	0x80, 0,   0,	0 };

static void test_frame_of_linux_siw(void **state)
{
	const struct mpa_wish wish = { .ird = 0,
				       .ord = 64,
				       .rtr = MPA_RTR_WRITE };
	struct mpa_frame f, reply;
	struct mpa_terms terms;
	uint8_t out[MPA_FRAME_LEN + MPA_PRIVATE_MAX];

	(void)state;
	for (size_t n = 0; n < sizeof(siw_request); n++)
		assert_int_equal(mpa_frame_decode(&f, siw_request, n), 0);
	assert_int_equal(mpa_frame_decode(&f, siw_request, sizeof(siw_request)),
			 sizeof(siw_request));
	assert_false(f.is_reply || f.markers || f.crc || f.peer_to_peer);
	assert_true(f.enhanced);
	assert_int_equal(f.ird, 128);
	assert_int_equal(f.ord, 1);
	assert_int_equal(f.private_len, 4);
	assert_int_equal(mpa_frame_encode(&f, out), sizeof(siw_request));
	assert_memory_equal(out, siw_request, sizeof(siw_request));
	mpa_answer(&f, &wish, &reply, &terms);
	assert_true(reply.is_reply && reply.enhanced && !reply.reject);
	assert_int_equal(reply.revision, 2);
	assert_int_equal(terms.ord, 64);
	assert_int_equal(terms.ird, 0);
	assert_false(terms.crc);
	/* and the other end computes the same */
	assert_int_equal(mpa_accept(&f, &reply, &terms), 0);
	assert_int_equal(terms.ird, 64);
	assert_int_equal(terms.ord, 0);
}

static void test_frame_refusals(void **state)
{
	uint8_t b[MPA_FRAME_LEN + 600] = { 0 };
	struct mpa_frame f;

	(void)state;
	memcpy(b, siw_request, sizeof(siw_request));
	b[11] = 'X';
	assert_int_equal(mpa_frame_decode(&f, b, 12), ERR_FORMAT);
	assert_int_equal(mpa_frame_decode(&f, b, 11), 0);
	memcpy(b, siw_request, sizeof(siw_request));
	b[17] = 3;
	assert_int_equal(mpa_frame_decode(&f, b, 28), ERR_UNSUPPORTED);
	b[17] = 2;
	b[19] = 3; /* S without room for its block */
	assert_int_equal(mpa_frame_decode(&f, b, 28), ERR_TRUNCATED);
	put_be16(b + 18, 513);
	assert_int_equal(mpa_frame_decode(&f, b, sizeof(b)), ERR_TOO_LONG);
	put_be16(b + 18, 512);
	assert_int_equal(mpa_frame_decode(&f, b, sizeof(b)), 532);
}

/* RFC 6581 §9.2: each RTR that both ends support; without a common one the
 * responder names its own, and the initiator ends the connection. */
static void test_rtr_each_kind_rfc6581_9_2(void **state)
{
	static const unsigned kinds[] = { MPA_RTR_SEND, MPA_RTR_WRITE,
					  MPA_RTR_READ };

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		for (unsigned ours = 0; ours < 8; ours++) {
			struct mpa_frame req = { .revision = 2,
						 .enhanced = true,
						 .peer_to_peer = true,
						 .rtr = kinds[i],
						 .ird = 4,
						 .ord = 4 };
			struct mpa_wish wish = { .ird = 4,
						 .ord = 4,
						 .rtr = ours };
			struct mpa_frame reply;
			struct mpa_terms a, b;

			mpa_answer(&req, &wish, &reply, &a);
			assert_true(reply.peer_to_peer);
			assert_int_equal(reply.reject, ours == 0);
			if (reply.reject)
				continue;
			if (!(ours & kinds[i])) {
				assert_int_equal(reply.rtr, ours);
				assert_int_equal(mpa_accept(&req, &reply, &b),
						 ERR_UNSUPPORTED);
				continue;
			}
			assert_int_equal(mpa_accept(&req, &reply, &b), 0);
			assert_int_equal(a.rtr, kinds[i]);
			assert_int_equal(b.rtr, kinds[i]);
		}
}

/* RFC 6581 §9.1: the ORD of each end is limited by the IRD of the other; 3FFFh
 * leaves both to the ULPs. */
static void test_depths_rfc6581_9_1(void **state)
{
	static const struct {
		uint16_t req_ird, req_ord; /* initiator */
		uint16_t ird, ord;	   /* responder's wish */
		uint16_t reply_ird, reply_ord;
		uint16_t a_ird, a_ord; /* the initiator's result */
	} rows[] = {
		{ 4, 8, 16, 16, 8, 4, 4, 8 },
		{ 4, 8, 2, 1, 2, 1, 1, 2 },
		{ 0, 0, 9, 9, 0, 0, 0, 0 },
		{ 0x3fff, 8, 16, 5, 8, 0x3fff, 0x3fff, 8 },
		{ 4, 0x3fff, 16, 5, 0x3fff, 4, 4, 0x3fff },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct mpa_frame req = { .revision = 2,
					       .enhanced = true,
					       .ird = rows[i].req_ird,
					       .ord = rows[i].req_ord };
		const struct mpa_wish wish = { .ird = rows[i].ird,
					       .ord = rows[i].ord };
		struct mpa_frame reply;
		struct mpa_terms a, b;

		mpa_answer(&req, &wish, &reply, &b);
		assert_int_equal(reply.ird, rows[i].reply_ird);
		assert_int_equal(reply.ord, rows[i].reply_ord);
		assert_true(b.ird <= rows[i].ird && b.ord <= rows[i].ord);
		assert_int_equal(mpa_accept(&req, &reply, &a), 0);
		assert_int_equal(a.ird, rows[i].a_ird);
		assert_int_equal(a.ord, rows[i].a_ord);
	}
}

static void test_crc_if_either_asks_rfc5044_7_1(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct mpa_frame req = { .revision = 1, .crc = i & 1 }, reply;
		struct mpa_wish wish = { .want_crc = i & 2,
					 .want_markers = true };
		struct mpa_terms a, b;

		mpa_answer(&req, &wish, &reply, &a);
		assert_int_equal(a.crc, i != 0);
		assert_int_equal(mpa_accept(&req, &reply, &b), 0);
		assert_int_equal(b.crc, i != 0);
		assert_true(a.markers_in && b.markers_out);
		assert_false(a.markers_out || b.markers_in);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fpdu_rfc5044_figure_5),
		cmocka_unit_test(test_fpdu_rfc5044_figure_6),
		cmocka_unit_test(test_build_and_open_around_markers),
		cmocka_unit_test(test_copy_equals_build),
		cmocka_unit_test(test_build_without_room_or_data),
		cmocka_unit_test(test_crc_notices_every_bit),
		cmocka_unit_test(test_marker_that_lies_rfc5044_4_3),
		cmocka_unit_test(test_max_ulpdu_fits_and_is_the_largest),
		cmocka_unit_test(test_frame_of_linux_siw),
		cmocka_unit_test(test_frame_refusals),
		cmocka_unit_test(test_rtr_each_kind_rfc6581_9_2),
		cmocka_unit_test(test_depths_rfc6581_9_1),
		cmocka_unit_test(test_crc_if_either_asks_rfc5044_7_1),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
