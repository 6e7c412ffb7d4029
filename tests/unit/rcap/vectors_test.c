/* SPDX-License-Identifier: BSD-2-Clause */
/* vectors_test.c: tests/vectors/iwarp.h through the decoders and encoders. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"
#include "vectors/iwarp.h"

#define ROOM 4096 /* octets of the longest vector */

static uint8_t nibble(char c)
{
	return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static size_t unhex(const char *hex, uint8_t *b)
{
	size_t n = strlen(hex) / 2;

	assert_int_equal(strlen(hex) % 2, 0);
	assert_true(n <= ROOM);
	for (size_t i = 0; i < n; i++)
		b[i] = (uint8_t)(nibble(hex[2 * i]) << 4 |
				 nibble(hex[2 * i + 1]));
	return n;
}

/* ---- MPA frames ---- */

static void check_frame(const struct mpa_frame *got,
			const struct mpa_frame *want)
{
	assert_int_equal(got->is_reply, want->is_reply);
	assert_int_equal(got->markers, want->markers);
	assert_int_equal(got->crc, want->crc);
	assert_int_equal(got->reject, want->reject);
	assert_int_equal(got->revision, want->revision);
	assert_int_equal(got->enhanced, want->enhanced);
	assert_int_equal(got->peer_to_peer, want->peer_to_peer);
	assert_int_equal(got->rtr, want->rtr);
	assert_int_equal(got->ird, want->ird);
	assert_int_equal(got->ord, want->ord);
	assert_int_equal(got->private_len, want->private_len);
}

static void test_mpa_frames(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(vector_frames); i++) {
		const struct vector_frame *v = &vector_frames[i];
		struct mpa_frame f;
		uint8_t b[ROOM], out[MPA_FRAME_LEN + MPA_PRIVATE_MAX];
		size_t n = unhex(v->hex, b);

		for (size_t k = 0; k < n; k++)
			assert_int_equal(mpa_frame_decode(&f, b, k), 0);
		assert_int_equal(mpa_frame_decode(&f, b, ROOM), n);
		check_frame(&f, &v->f);
		assert_ptr_equal(f.private_data, b + n - f.private_len);
		assert_int_equal(mpa_frame_encode(&f, out), n);
		assert_memory_equal(out, b, n);
	}
}

/* ---- FPDUs ---- */

static void open_it(const struct vector_fpdu *v, const uint8_t *b, size_t n)
{
	struct mpa_stream s = { v->markers, v->crc, v->pos };
	struct iovec iov[16];
	uint8_t want[ROOM], got[ROOM];
	size_t len = unhex(v->ulpdu, want), total, ulpdu;
	struct bufv pieces;
	int k;

	assert_int_equal(mpa_fpdu_size(&s, len), n);
	mpa_fpdu_peek(&s, b, n, &total);
	assert_int_equal(total, n);
	k = mpa_fpdu_open(&s, b, n, iov, 16, &ulpdu);
	assert_true(k > 0);
	assert_int_equal(ulpdu, len);
	pieces = bufv_of(iov, (unsigned)k);
	assert_int_equal(bufv_copy_out(&pieces, 0, got, ROOM), len);
	assert_memory_equal(got, want, len);
	assert_int_equal(s.pos, v->pos + n);
}

/* Builds it with the first head octets apart from the rest, in two pieces. */
static void build_it(const struct vector_fpdu *v, size_t head, const uint8_t *b,
		     size_t n)
{
	struct mpa_stream s = { v->markers, v->crc, v->pos };
	uint8_t ulpdu[ROOM], first[ROOM], scratch[256], got[ROOM],
		*room = scratch;
	size_t len = unhex(v->ulpdu, ulpdu), cut;
	struct iovec data[2], iov[32];
	struct bufv d, pieces;
	int k;

	memcpy(first + MPA_LENGTH_LEN, ulpdu, head);
	cut = (len - head) / 3;
	data[0] = (struct iovec){ ulpdu + head, cut };
	data[1] = (struct iovec){ ulpdu + head + cut, len - head - cut };
	d = bufv_of(data, 2);
	k = mpa_fpdu_build(&s, first, MPA_LENGTH_LEN + head, &d, 0, d.len, NULL,
			   iov, 32, &room);
	assert_true(k > 0);
	pieces = bufv_of(iov, (unsigned)k);
	assert_int_equal(bufv_copy_out(&pieces, 0, got, ROOM), n);
	assert_memory_equal(got, b, n);
}

static void test_fpdus(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(vector_fpdus); i++) {
		const struct vector_fpdu *v = &vector_fpdus[i];
		uint8_t b[ROOM];
		size_t n = unhex(v->hex, b), len = strlen(v->ulpdu) / 2;

		open_it(v, b, n);
		for (size_t head = 14; head <= MIN(len, (size_t)46); head += 4)
			build_it(v, head, b, n);
	}
}

/* ---- headers ---- */

static void test_headers(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(vector_headers); i++) {
		const struct vector_header *v = &vector_headers[i];
		struct rdmap_header h;
		uint8_t b[ROOM], out[DDP_HEADER_MAX];
		size_t n = unhex(v->hex, b);
		bool extended = v->h.opcode > RDMAP_TERMINATE;

		if (extended)
			assert_int_equal(rdmap_decode(&h, b, n, false),
					 -TERM_RDMAP_OPCODE);
		assert_int_equal(rdmap_header_len(v->h.opcode), n);
		assert_int_equal(rdmap_peek_len(b), n);
		assert_int_equal(rdmap_decode(&h, b, n, extended), n);
		assert_memory_equal(&h, &v->h, sizeof(h));
		for (size_t k = 0; k < n; k++)
			assert_true(rdmap_decode(&h, b, k, true) < 0);
		if (!v->tx)
			continue;
		assert_int_equal(rdmap_encode(&v->h, out), n);
		assert_memory_equal(out, b, n);
	}
}

static void test_terminates(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(vector_terminates); i++) {
		const struct vector_terminate *v = &vector_terminates[i];
		struct rdmap_terminate t;
		uint8_t b[ROOM], out[RDMAP_TERMINATE_MAX];
		size_t n = unhex(v->hex, b);

		assert_int_equal(rdmap_terminate_decode(&t, b, n), 0);
		assert_int_equal(t.reason, v->t.reason);
		assert_int_equal(t.swapped, v->t.swapped);
		assert_int_equal(t.has_segment_len, v->t.has_segment_len);
		assert_int_equal(t.has_ddp, v->t.has_ddp);
		assert_int_equal(t.has_rdmap, v->t.has_rdmap);
		assert_int_equal(t.segment_len, v->t.segment_len);
		assert_int_equal(t.headers_len, v->t.headers_len);
		assert_string_not_equal(rdmap_term_str(t.reason),
					"unknown reason");
		if (!v->tx)
			continue;
		assert_int_equal(rdmap_terminate_encode(&t, out), n);
		assert_memory_equal(out, b, n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mpa_frames),
		cmocka_unit_test(test_fpdus),
		cmocka_unit_test(test_headers),
		cmocka_unit_test(test_terminates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
