/* SPDX-License-Identifier: BSD-2-Clause */
/* crc32c_test.c: the vectors of RFC 7143 appendix A.4 (CRC examples), and the
 * two implementations against each other. */
#include "base/crc32c.h"

#include <string.h>

#include "base/bytes.h"
#include "cmocka_all.h"

static uint32_t digest(const void *p, size_t n)
{
	return crc32c_wire(crc32c_update(CRC32C_SEED, p, n));
}

/* [RFC 7143: 13.1 #3] */
static void test_vectors_rfc7143_appendix_a(void **state)
{
	uint8_t b[32], wire[4];

	(void)state;
	memset(b, 0, 32);
	put_le32(wire, digest(b, 32));
	assert_memory_equal(wire, "\xaa\x36\x91\x8a", 4);
	memset(b, 0xff, 32);
	put_le32(wire, digest(b, 32));
	assert_memory_equal(wire, "\x43\xab\xa8\x62", 4);
	for (unsigned i = 0; i < 32; i++)
		b[i] = (uint8_t)i;
	put_le32(wire, digest(b, 32));
	assert_memory_equal(wire, "\x4e\x79\xdd\x46", 4);
	for (unsigned i = 0; i < 32; i++)
		b[i] = (uint8_t)(31 - i);
	put_le32(wire, digest(b, 32));
	assert_memory_equal(wire, "\x5c\xdb\x3f\x11", 4);
}

static void test_every_length_short_and_long_agree(void **state)
{
	static uint8_t b[1500], copy[1500];

	(void)state;
	for (unsigned i = 0; i < sizeof(b); i++)
		b[i] = (uint8_t)(i * 31 + (i >> 3));
	for (size_t n = 0; n < sizeof(b); n++) {
		uint32_t whole = digest(b, n), split = CRC32C_SEED;

		/* runs of 1 byte always take the crc32 instruction */
		for (size_t i = 0; i < n; i++)
			split = crc32c_update(split, b + i, 1);
		assert_int_equal(whole, crc32c_wire(split));
		assert_int_equal(
			crc32c_wire(crc32c_copy(CRC32C_SEED, copy, b, n)),
			whole);
		assert_memory_equal(copy, b, n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors_rfc7143_appendix_a),
		cmocka_unit_test(test_every_length_short_and_long_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
