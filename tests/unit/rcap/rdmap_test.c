/* SPDX-License-Identifier: BSD-2-Clause */
/* rdmap_test.c: DDP and RDMAP headers as bytes (RFC 5041 §4, RFC 5040 §4). */
#include "rcap/iwarp/rdmap.h"
#include "rcap/iwarp/rdmap_codec.h"

#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"

struct vector {
	const char *what;
	size_t len;
	uint8_t bytes[DDP_HEADER_MAX];
	struct rdmap_header h;
};

/* clang-format off */
static const struct vector vectors[] = {
	{ "RDMA Write, RFC 5041 figure 3", 14,
	  { 0xc1, 0x40, 0xad, 0x1a, 0x41, 0x00, 0xff, 0x14, 0x9c, 0x0e, 0x20, 0xc3, 0x42, 0x00 },
	  { .tagged = true, .last = true, .opcode = RDMAP_WRITE, .stag = 0xad1a4100, .to = 0xff149c0e20c34200ull } },
	{ "RDMA Read Request as Linux siw sends it", 46,
	  { 0x41, 0x41, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0,
	    0xad, 0x1a, 0x41, 0x00, 0x00, 0x00, 0x7f, 0xe2, 0xdb, 0x8f, 0x80, 0x00, 0x00, 0x00, 0x10, 0x00,
	    0xc5, 0x1a, 0xda, 0x3e, 0xff, 0x14, 0x9c, 0x0e, 0x18, 0xf5, 0x30, 0x00 },
	  { .last = true, .opcode = RDMAP_READ_REQUEST, .qn = 1, .msn = 1, .sink_stag = 0xad1a4100,
	    .sink_to = 0x00007fe2db8f8000ull, .read_size = 4096, .source_stag = 0xc51ada3e,
	    .source_to = 0xff149c0e18f53000ull } },
	{ "RDMA Read Response", 14,
	  { 0x81, 0x42, 0, 0, 0x12, 0x34, 0, 0, 0, 0, 0, 0, 0x10, 0 },
	  { .tagged = true, .opcode = RDMAP_READ_RESPONSE, .stag = 0x1234, .to = 0x1000 } },
	{ "Send, RFC 5041 figure 4", 18,
	  { 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0x10, 0 },
	  { .last = true, .opcode = RDMAP_SEND, .msn = 7, .mo = 4096 } },
	{ "Send with Invalidate", 18,
	  { 0x41, 0x44, 0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0 },
	  { .last = true, .opcode = RDMAP_SEND_INV, .stag = 0xdeadbeef, .msn = 1 } },
	{ "Send with Solicited Event", 18,
	  { 0x01, 0x45, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0 },
	  { .opcode = RDMAP_SEND_SE, .msn = 1 } },
	{ "Send with SE and Invalidate", 18,
	  { 0x41, 0x46, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0 },
	  { .last = true, .opcode = RDMAP_SEND_SE_INV, .stag = 9, .msn = 1 } },
	{ "Terminate", 18,
	  { 0x41, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0 },
	  { .last = true, .opcode = RDMAP_TERMINATE, .qn = 2, .msn = 1 } },
};
/* clang-format on */

static void test_headers_both_ways(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
		const struct vector *v = &vectors[i];
		struct rdmap_header h;
		uint8_t out[DDP_HEADER_MAX];

		assert_int_equal(rdmap_encode(&v->h, out), v->len);
		assert_memory_equal(out, v->bytes, v->len);
		assert_int_equal(rdmap_decode(&h, v->bytes, v->len, i & 1),
				 v->len);
		assert_memory_equal(&h, &v->h, sizeof(h));
		for (size_t cut = 0; cut < v->len; cut++)
			assert_true(rdmap_decode(&h, v->bytes, cut, i & 1) < 0);
	}
}

/* Each invalid field has its reason (RFC 5041 §7, RFC 5040 §7). */
/* The short way takes a header only if the long way does, with equal fields:
 * each vector with each value of its control octets, and with one bit changed
 * elsewhere. */
static void test_usual_headers_agree(void **state)
{
	unsigned taken = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(vectors) * 65536; i++) {
		const struct vector *v = &vectors[i >> 16];
		uint8_t p[DDP_HEADER_MAX] = { 0 };
		struct rdmap_usual u;
		struct rdmap_header h;
		size_t n, bit = i % (v->len * 8);

		memcpy(p, v->bytes, v->len);
		if (i & 0x8000)
			p[bit / 8] ^= (uint8_t)(1u << bit % 8);
		else
			put_be16(p, (uint16_t)(i * 2 | (i >> 16 & 1)));
		n = rdmap_decode_usual(&u, p, v->len);
		if (n == 0)
			continue;
		taken++;
		assert_int_equal(rdmap_decode(&h, p, v->len, false), n);
		assert_int_equal(u.tagged, h.tagged);
		assert_int_equal(u.last, h.last);
		assert_int_equal(u.opcode, h.opcode);
		assert_int_equal(u.stag, h.stag);
		assert_int_equal(u.to, h.to);
		assert_int_equal(h.mo, 0);
		assert_int_equal(h.qn, DDP_QN_SEND);
		if (!u.tagged)
			assert_int_equal(u.msn, h.msn);
	}
	assert_true(taken > 1000);
	for (size_t i = 0; i < ARRAY_LEN(vectors); i++)
		for (size_t n = 0; n < vectors[i].len; n++) {
			struct rdmap_usual u;

			assert_true(rdmap_decode_usual(&u, vectors[i].bytes,
						       n) <= n);
		}
}

static void test_wrong_headers_have_their_reason(void **state)
{
	static const struct {
		uint8_t at, value;
		int reason;
	} bad[] = {
		{ 0, 0x42, TERM_DDP_UNTAGGED_VERSION },
		{ 0, 0xc2, TERM_DDP_TAGGED_VERSION },
		{ 1, 0x83, TERM_RDMAP_VERSION },
		{ 1, 0x48, TERM_RDMAP_OPCODE },
		{ 1, 0x40, TERM_RDMAP_OPCODE }, /* a Write, untagged */
		{ 9, 3, TERM_DDP_UNTAGGED_QN },
		{ 6, 1, TERM_DDP_UNTAGGED_QN },
		{ 9, 1, TERM_RDMAP_OPCODE }, /* a Send on the read queue */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct rdmap_header h;
		uint8_t b[18];

		memcpy(b, vectors[3].bytes, 18);
		b[bad[i].at] = bad[i].value;
		assert_int_equal(rdmap_decode(&h, b, 18, false),
				 -bad[i].reason);
		assert_string_not_equal(rdmap_term_str((uint16_t)bad[i].reason),
					"unknown reason");
	}
}

/* RFC 5040 figures 7 and 8: layer, type, code, M D R. */
static void test_terminate_rfc5040_4_8(void **state)
{
	const struct rdmap_terminate t = { .reason = TERM_DDP_UNTAGGED_MSN,
					   .has_segment_len = true,
					   .has_ddp = true,
					   .segment_len = 0x84,
					   .headers = vectors[3].bytes,
					   .headers_len = 18 };
	struct rdmap_terminate got;
	uint8_t b[RDMAP_TERMINATE_MAX];
	size_t n = rdmap_terminate_encode(&t, b);

	(void)state;
	assert_int_equal(n, 24);
	assert_memory_equal(b, "\x12\x03\xc0\x00\x00\x84", 6);
	assert_memory_equal(b + 6, vectors[3].bytes, 18);
	assert_int_equal(rdmap_terminate_decode(&got, b, n), 0);
	assert_int_equal(got.reason, t.reason);
	assert_true(got.has_ddp && !got.has_rdmap);
	assert_int_equal(got.segment_len, 0x84);
	for (size_t cut = 0; cut < n; cut++) {
		int err = rdmap_terminate_decode(&got, b, cut);

		assert_int_equal(err, cut < 4 ? ERR_TRUNCATED : 0);
		if (!err)
			assert_true(got.headers_len <= cut);
		if (!err && cut < 20)
			assert_false(got.has_ddp);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_headers_both_ways),
		cmocka_unit_test(test_usual_headers_agree),
		cmocka_unit_test(test_wrong_headers_have_their_reason),
		cmocka_unit_test(test_terminate_rfc5040_4_8),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
