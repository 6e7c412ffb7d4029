/* SPDX-License-Identifier: BSD-2-Clause */
/* cdb_test.c: the fields of CDBs by group code (SPC-4 §4.2.5). */
#include "scsi/cdb.h"

#include <string.h>

#include "base/bytes.h"
#include "cmocka_all.h"

static void test_length_by_group_spc4_4_2_5_1(void **state)
{
	static const size_t want[8] = { 6, 10, 10, 0, 16, 12, 0, 0 };

	(void)state;
	for (unsigned op = 0; op < 256; op++)
		assert_int_equal(scsi_cdb_len((uint8_t)op), want[op / 32]);
}

static void test_service_action(void **state)
{
	uint8_t cdb[32] = { 0x9e, 0xf2 };

	(void)state;
	put_be16(cdb + 8, 0x1234);
	assert_int_equal(scsi_cdb_sa(cdb), 0x12);
	cdb[0] = SCSI_VARIABLE_LENGTH;
	assert_int_equal(scsi_cdb_sa(cdb), 0x1234);
}

static void test_lba_and_blocks(void **state)
{
	static const struct {
		uint8_t op;
		uint64_t lba;
		uint32_t blocks;
	} rows[] = {
		{ 0x08, 0x010203, 0x04 },
		{ 0x28, 0x02030405, 0x0708 },
		{ 0x42, 0x02030405, 0x0708 },
		{ 0x7f, 0x0c0d0e0f10111213, 0x1c1d1e1f },
		{ 0x88, 0x0203040506070809, 0x0a0b0c0d },
		{ 0xa8, 0x02030405, 0x06070809 },
	};
	uint8_t cdb[32];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		for (uint8_t k = 0; k < 32; k++)
			cdb[k] = k;
		cdb[0] = rows[i].op;
		assert_int_equal(scsi_cdb_lba(cdb), rows[i].lba);
		assert_int_equal(scsi_cdb_blocks(cdb), rows[i].blocks);
	}
}

static void test_read_6_has_21_bits_and_256_blocks(void **state)
{
	uint8_t cdb[6] = { 0x08, 0xff, 0xff, 0xff, 0 };

	(void)state;
	assert_int_equal(scsi_cdb_lba(cdb), 0x1fffff);
	assert_int_equal(scsi_cdb_blocks(cdb), 256);
	cdb[4] = 255;
	assert_int_equal(scsi_cdb_blocks(cdb), 255);
	cdb[4] = 1;
	assert_int_equal(scsi_cdb_blocks(cdb), 1);
}

/* A count of 0 means 256 blocks in 6 bytes only. */
static void test_no_blocks(void **state)
{
	static const uint8_t ops[] = { 0x28, 0x7f, 0x88, 0xa8 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
		const uint8_t cdb[32] = { ops[i] };

		assert_int_equal(scsi_cdb_blocks(cdb), 0);
	}
}

static void test_read_and_write_are_as_short_as_they_can(void **state)
{
	static const struct {
		int is_write, fua;
		uint64_t lba;
		uint32_t blocks;
		uint8_t len, cdb[16];
	} rows[] = {
		{ 0, 0, 0, 0, 10, { 0x28 } },
		{ 1,
		  1,
		  0x01020304,
		  0x0506,
		  10,
		  { 0x2a, 8, 1, 2, 3, 4, 0, 5, 6 } },
		{ 0,
		  1,
		  UINT32_MAX,
		  UINT16_MAX,
		  10,
		  { 0x28, 8, 0xff, 0xff, 0xff, 0xff, 0, 0xff, 0xff } },
		{ 0,
		  0,
		  1ull << 32,
		  1,
		  16,
		  { 0x88, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1 } },
		{ 1,
		  0,
		  0x0102030405060708,
		  0x090a0b0c,
		  16,
		  { 0x8a, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 } },
		{ 1, 1, 5, 65536, 16, { 0x8a, 8, 0, 0, 0, 0, 0, 0, 0, 5, 0, 1 } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint8_t cdb[16];

		memset(cdb, 0xee, sizeof(cdb));
		assert_int_equal(scsi_cdb_rw(cdb, rows[i].is_write, rows[i].lba,
					     rows[i].blocks, rows[i].fua),
				 rows[i].len);
		assert_memory_equal(cdb, rows[i].cdb, 16);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_length_by_group_spc4_4_2_5_1),
		cmocka_unit_test(test_service_action),
		cmocka_unit_test(test_lba_and_blocks),
		cmocka_unit_test(test_read_6_has_21_bits_and_256_blocks),
		cmocka_unit_test(test_no_blocks),
		cmocka_unit_test(test_read_and_write_are_as_short_as_they_can),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
