/* SPDX-License-Identifier: BSD-2-Clause */
/* iser_header_test.c: RFC 7145 §9, figures 2 to 5, as bytes; and headers that
 * Linux and libiscsi sent. */
#include <string.h>

#include "base/err.h"
#include "cmocka_all.h"
#include "datamover/iser/header.h"

static void assert_header(const struct iser_header *h, const uint8_t *want)
{
	uint8_t got[ISER_HEADER_LEN];
	struct iser_header back;

	memset(got, 0xee, sizeof(got)); /* reserved bytes become 0 */
	iser_header_encode(h, got);
	assert_memory_equal(got, want, ISER_HEADER_LEN);
	assert_int_equal(iser_header_decode(&back, want, ISER_HEADER_LEN), 0);
	assert_memory_equal(&back, h, sizeof(back));
}

/* The padding of the struct is zero, too. */
static struct iser_header zeroed(uint8_t opcode)
{
	struct iser_header h;

	memset(&h, 0, sizeof(h));
	h.opcode = opcode;
	return h;
}

/* [RFC 7145: 9.2 #8] */
static void test_header_control_without_tags_rfc7145_9_2(void **state)
{
	static const uint8_t want[ISER_HEADER_LEN] = { 0x10 };
	const struct iser_header h = zeroed(ISER_CONTROL);

	(void)state;
	assert_header(&h, want);
}

/* As ib_iser sends a READ: 0x14, the address a kernel's, top bit set. */
static void test_header_read_rfc7145_9_2(void **state)
{
	/* clang-format off */
	static const uint8_t want[ISER_HEADER_LEN] = {
		0x14, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		0x00, 0x00, 0x12, 0x01,
		0xff, 0x14, 0x9c, 0x0e, 0x20, 0xc3, 0x42, 0x00,
	};
	/* clang-format on */
	struct iser_header h = zeroed(ISER_CONTROL);

	(void)state;
	h.rsv = true;
	h.read_stag = 0x1201;
	h.read_base = 0xff149c0e20c34200;
	assert_header(&h, want);
}

static void test_header_write_rfc7145_9_2(void **state)
{
	/* clang-format off */
	static const uint8_t want[ISER_HEADER_LEN] = {
		0x18, 0, 0, 0,
		0xa1, 0xb2, 0xc3, 0xd4,
		0xff, 0xff, 0x88, 0x80, 0x12, 0x34, 0x56, 0x78,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	};
	/* clang-format on */
	struct iser_header h = zeroed(ISER_CONTROL);

	(void)state;
	h.wsv = true;
	h.write_stag = 0xa1b2c3d4;
	h.write_base = 0xffff888012345678;
	assert_header(&h, want);
}

/* [RFC 7145: 9.2 #1] */
static void test_header_both_rfc7145_9_2(void **state)
{
	/* clang-format off */
	static const uint8_t want[ISER_HEADER_LEN] = {
		0x1c, 0, 0, 0,
		0x01, 0x02, 0x03, 0x04,
		0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c,
		0x0d, 0x0e, 0x0f, 0x10,
		0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
	};
	/* clang-format on */
	struct iser_header h = zeroed(ISER_CONTROL);

	(void)state;
	h.wsv = h.rsv = true;
	h.write_stag = 0x01020304;
	h.write_base = 0x05060708090a0b0c;
	h.read_stag = 0x0d0e0f10;
	h.read_base = 0x1112131415161718;
	assert_header(&h, want);
}

/* [RFC 7145: 9.2 #2-7] */
static void test_header_invalid_tags_are_ignored_rfc7145_9_2(void **state)
{
	uint8_t b[ISER_HEADER_LEN];
	struct iser_header h;

	(void)state;
	memset(b, 0xff, sizeof(b));
	b[0] = 0x10; /* neither flag */
	assert_int_equal(iser_header_decode(&h, b, sizeof(b)), 0);
	assert_false(h.wsv || h.rsv);
	assert_int_equal(h.write_stag | h.read_stag, 0);
	assert_true((h.write_base | h.read_base) == 0);
	/* and not encoded */
	h = zeroed(ISER_CONTROL);
	h.write_stag = h.read_stag = 7;
	h.write_base = h.read_base = 7;
	iser_header_encode(&h, b);
	for (unsigned i = 1; i < sizeof(b); i++)
		assert_int_equal(b[i], 0);
}

/* [RFC 7145: 9.2 #9, 9.3 #5-6, 9.4 #5-6] */
static void test_header_reserved_bits_are_ignored_rfc7145_9(void **state)
{
	/* the reserved bits of the control header, Hello and HelloReply */
	static const uint8_t masks[3][4] = {
		{ 0x03, 0xff, 0xff, 0xff },
		{ 0x0f, 0x00, 0x00, 0x00 },
		{ 0x0e, 0x00, 0x00, 0x00 },
	};

	(void)state;
	for (unsigned op = 1; op <= 3; op++)
		for (unsigned bit = 0; bit < 8 * ISER_HEADER_LEN; bit++) {
			uint8_t b[ISER_HEADER_LEN] = { (uint8_t)(op << 4) };
			uint8_t mask =
				bit / 8 < 4 ? masks[op - 1][bit / 8] : 0xff;
			struct iser_header clean, h;

			if (!(mask & 1u << bit % 8))
				continue;
			iser_header_decode(&clean, b, sizeof(b));
			b[bit / 8] |= (uint8_t)(1u << bit % 8);
			assert_int_equal(iser_header_decode(&h, b, sizeof(b)),
					 0);
			assert_memory_equal(&h, &clean, sizeof(h));
		}
}

/* [RFC 7145: 9.3 #2-4] */
static void test_header_hello_rfc7145_9_3(void **state)
{
	static const uint8_t want[ISER_HEADER_LEN] = { 0x20, 0xaa, 0x00, 0x20 };
	struct iser_header h = zeroed(ISER_HELLO);

	(void)state;
	h.max_ver = h.min_ver = ISER_PROTO_VERSION;
	h.depth = 32;
	assert_int_equal(ISER_PROTO_VERSION, 10);
	assert_header(&h, want);
}

/* [RFC 7145: 9.4 #2-4] */
static void test_header_hello_reply_rfc7145_9_4(void **state)
{
	static const uint8_t want[ISER_HEADER_LEN] = { 0x30, 0xaa, 0x01, 0x02 };
	static const uint8_t rej[ISER_HEADER_LEN] = { 0x31, 0xaa };
	struct iser_header h = zeroed(ISER_HELLO_REPLY);

	(void)state;
	h.max_ver = h.min_ver = ISER_PROTO_VERSION;
	h.depth = 0x102;
	assert_header(&h, want);
	h.depth = 0;
	h.reject = true;
	assert_header(&h, rej);
}

static void test_header_versions_apart(void **state)
{
	static const uint8_t b[ISER_HEADER_LEN] = { 0x20, 0xf3, 0xff, 0xff };
	struct iser_header h;

	(void)state;
	assert_int_equal(iser_header_decode(&h, b, sizeof(b)), 0);
	assert_int_equal(h.max_ver, 15);
	assert_int_equal(h.min_ver, 3);
	assert_int_equal(h.depth, 65535);
}

static void test_header_unassigned_opcodes_rfc7145_9_1(void **state)
{
	(void)state;
	for (unsigned op = 0; op < 16; op++) {
		const uint8_t b[ISER_HEADER_LEN] = { (uint8_t)(op << 4) };
		struct iser_header h;

		assert_int_equal(iser_header_decode(&h, b, sizeof(b)),
				 op >= 1 && op <= 3 ? 0 : ERR_OPCODE);
		assert_int_equal(h.opcode, op);
	}
}

/* [RFC 7145: 9.1 #1] */
static void test_header_every_truncation_rfc7145_9_1(void **state)
{
	const uint8_t b[ISER_HEADER_LEN] = { 0x1c, 1, 2, 3, 4 };
	struct iser_header h;

	(void)state;
	for (size_t n = 0; n < ISER_HEADER_LEN; n++)
		assert_int_equal(iser_header_decode(&h, b, n), ERR_TRUNCATED);
	assert_int_equal(iser_header_decode(&h, b, ISER_HEADER_LEN), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_header_control_without_tags_rfc7145_9_2),
		cmocka_unit_test(test_header_read_rfc7145_9_2),
		cmocka_unit_test(test_header_write_rfc7145_9_2),
		cmocka_unit_test(test_header_both_rfc7145_9_2),
		cmocka_unit_test(
			test_header_invalid_tags_are_ignored_rfc7145_9_2),
		cmocka_unit_test(
			test_header_reserved_bits_are_ignored_rfc7145_9),
		cmocka_unit_test(test_header_hello_rfc7145_9_3),
		cmocka_unit_test(test_header_hello_reply_rfc7145_9_4),
		cmocka_unit_test(test_header_versions_apart),
		cmocka_unit_test(test_header_unassigned_opcodes_rfc7145_9_1),
		cmocka_unit_test(test_header_every_truncation_rfc7145_9_1),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
