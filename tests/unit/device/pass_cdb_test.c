/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pass_cdb_test.c: length and direction of the data of each CDB of SPC-4 and
 * SBC-3. Every octet of a CDB has another value, so that a field with the wrong
 * offset or width gives another length.
 */
#include <string.h>

#include "cmocka_all.h"
#include "device/pass/pass_unit.h"

#define BLOCK 512

enum unit {
	BYTE,
	BLK,  /* blocks; the CDB may be reduced to fewer blocks */
	BLK_, /* blocks; the CDB may not be reduced */
	PAIR, /* pairs of blocks */
};

struct row {
	uint8_t op, at, width;
	enum unit unit;
	enum pass_dir dir;
};

static const struct row rows_all[] = {
	{ 0x00, 0, 0, BYTE, PASS_NONE }, { 0x03, 4, 1, BYTE, PASS_IN },
	{ 0x12, 3, 2, BYTE, PASS_IN },	 { 0x15, 4, 1, BYTE, PASS_OUT },
	{ 0x1a, 4, 1, BYTE, PASS_IN },	 { 0x1c, 3, 2, BYTE, PASS_IN },
	{ 0x1d, 3, 2, BYTE, PASS_OUT },	 { 0x3b, 6, 3, BYTE, PASS_OUT },
	{ 0x3c, 6, 3, BYTE, PASS_IN },	 { 0x4c, 7, 2, BYTE, PASS_OUT },
	{ 0x4d, 7, 2, BYTE, PASS_IN },	 { 0x55, 7, 2, BYTE, PASS_OUT },
	{ 0x5a, 7, 2, BYTE, PASS_IN },
};

static const struct row rows_not_mmc[] = {
	{ 0xa3, 6, 4, BYTE, PASS_IN },
	{ 0xa4, 6, 4, BYTE, PASS_OUT },
	{ 0xa2, 6, 4, BYTE, PASS_IN },
	{ 0xb5, 6, 4, BYTE, PASS_OUT },
};

static const struct row rows_disk[] = {
	{ 0x08, 4, 1, BLK, PASS_IN },	 { 0x0a, 4, 1, BLK, PASS_OUT },
	{ 0x1b, 0, 0, BYTE, PASS_NONE }, { 0x1e, 0, 0, BYTE, PASS_NONE },
	{ 0x28, 7, 2, BLK, PASS_IN },	 { 0x2a, 7, 2, BLK, PASS_OUT },
	{ 0x2e, 7, 2, BLK, PASS_OUT },	 { 0x34, 0, 0, BYTE, PASS_NONE },
	{ 0x35, 0, 0, BYTE, PASS_NONE }, { 0x37, 7, 2, BYTE, PASS_IN },
	{ 0x3e, 7, 2, BYTE, PASS_IN },	 { 0x3f, 7, 2, BYTE, PASS_OUT },
	{ 0x42, 7, 2, BYTE, PASS_OUT },	 { 0x48, 7, 2, BYTE, PASS_OUT },
	{ 0x88, 10, 4, BLK, PASS_IN },	 { 0x89, 13, 1, PAIR, PASS_OUT },
	{ 0x8a, 10, 4, BLK, PASS_OUT },	 { 0x8b, 10, 4, BLK, PASS_OUT },
	{ 0x8e, 10, 4, BLK, PASS_OUT },	 { 0x90, 0, 0, BYTE, PASS_NONE },
	{ 0x91, 0, 0, BYTE, PASS_NONE }, { 0x9c, 12, 2, BLK_, PASS_OUT },
	{ 0x9e, 10, 4, BYTE, PASS_IN },	 { 0xa8, 6, 4, BLK, PASS_IN },
	{ 0xaa, 6, 4, BLK, PASS_OUT },	 { 0xae, 6, 4, BLK, PASS_OUT },
	{ 0xb7, 6, 4, BYTE, PASS_IN },
};

static void fill(uint8_t cdb[16], uint8_t op)
{
	for (unsigned i = 0; i < 16; i++)
		cdb[i] = (uint8_t)(i + 1);
	cdb[0] = op;
	cdb[1] = 0; /* no flags, no protection information */
}

static uint64_t count_of(const struct row *r, const uint8_t *cdb)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < r->width; i++)
		n = n << 8 | cdb[r->at + i];
	return n;
}

static void assert_row(const struct pass *p, const struct row *r)
{
	static const unsigned sizes[] = { 1, BLOCK, BLOCK, 2 * BLOCK };
	bool blocks = r->unit != BYTE;
	struct pass_data d;
	uint8_t cdb[16];

	fill(cdb, r->op);
	assert_true(pass_cdb_data(p, cdb, &d));
	assert_int_equal(d.dir, r->dir);
	assert_int_equal(d.len, count_of(r, cdb) * sizes[r->unit]);
	assert_int_equal(d.unit, blocks ? BLOCK : 0);
	assert_int_equal(d.whole, r->unit == BLK);
	if (d.whole) {
		uint32_t fewer = 0xfedcba98u >> (32 - 8 * r->width);

		pass_cdb_cut(cdb, fewer);
		assert_int_equal(count_of(r, cdb), fewer);
	}
}

static bool is_known(uint8_t type, uint8_t op)
{
	const struct pass p = { .type = type, .block_size = BLOCK };
	struct pass_data d;
	uint8_t cdb[16];

	fill(cdb, op);
	return pass_cdb_data(&p, cdb, &d);
}

static void test_each_command_of_a_disk(void **state)
{
	const struct pass p = { .type = TYPE_DISK, .block_size = BLOCK };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows_all); i++)
		assert_row(&p, &rows_all[i]);
	for (size_t i = 0; i < ARRAY_LEN(rows_not_mmc); i++)
		assert_row(&p, &rows_not_mmc[i]);
	for (size_t i = 0; i < ARRAY_LEN(rows_disk); i++)
		assert_row(&p, &rows_disk[i]);
}

/* The block commands that a type of device has. */
static void test_commands_by_type(void **state)
{
	(void)state;
	for (unsigned type = 0; type < 32; type++) {
		bool disk = type == 0x00 || type == 0x07 || type == 0x0e ||
			    type == 0x14;

		assert_int_equal(pass_has_blocks((uint8_t)type), disk);
		for (size_t i = 0; i < ARRAY_LEN(rows_all); i++)
			assert_true(is_known((uint8_t)type, rows_all[i].op));
		for (size_t i = 0; i < ARRAY_LEN(rows_not_mmc); i++)
			assert_int_equal(is_known((uint8_t)type,
						  rows_not_mmc[i].op),
					 type != 0x05);
		for (size_t i = 0; i < ARRAY_LEN(rows_disk); i++)
			assert_int_equal(
				is_known((uint8_t)type, rows_disk[i].op), disk);
	}
}

/* CDBs without a length field, or with a flag that changes the unit of the
 * length. */
static void test_lengths_by_flags(void **state)
{
	const struct pass p = { .type = TYPE_DISK, .block_size = BLOCK };
	static const struct {
		uint8_t cdb[16];
		enum pass_dir dir;
		uint64_t len;
	} rows[] = {
		{ { 0x25, 0, 9, 9, 9, 9, 9, 9, 9 }, PASS_IN, 8 },
		{ { 0x08, 0, 0, 0, 0 }, PASS_IN, 256 * BLOCK },
		{ { 0x0a, 0, 0, 0, 0 }, PASS_OUT, 256 * BLOCK },
		{ { 0x28, 0, 0, 0, 0, 0, 0, 0, 0 }, PASS_IN, 0 },
		/* VERIFY: BYTCHK */
		{ { 0x2f, 0, [8] = 3 }, PASS_OUT, 0 },
		{ { 0x2f, 1, [8] = 3 }, PASS_OUT, 0 },
		{ { 0x2f, 2, [8] = 3 }, PASS_OUT, 3 * BLOCK },
		{ { 0x2f, 4, [8] = 3 }, PASS_OUT, 0 },
		{ { 0x2f, 6, [8] = 3 }, PASS_OUT, BLOCK },
		{ { 0x2f, 7, [8] = 3 }, PASS_OUT, BLOCK },
		{ { 0x8f, 2, [7] = 9, [13] = 3, [14] = 9 },
		  PASS_OUT,
		  3 * BLOCK },
		{ { 0xaf, 2, [5] = 9, [9] = 3, [10] = 9 }, PASS_OUT, 3 * BLOCK },
		/* WRITE SAME: one block, or with NDOB none */
		{ { 0x41, 0, [8] = 9 }, PASS_OUT, BLOCK },
		{ { 0x93, 0, [13] = 9 }, PASS_OUT, BLOCK },
		{ { 0x93, 8, [13] = 9 }, PASS_OUT, BLOCK },
		{ { 0x93, 1, [13] = 9 }, PASS_OUT, 0 },
		{ { 0x41, 1, [8] = 9 }, PASS_OUT, BLOCK },
		/* SECURITY PROTOCOL: INC_512 */
		{ { 0xa2, [4] = 0x80, [9] = 2 }, PASS_IN, 1024 },
		{ { 0xb5, [4] = 0x80, [9] = 2 }, PASS_OUT, 1024 },
		{ { 0xb5, [4] = 0x7f, [9] = 2 }, PASS_OUT, 2 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct pass_data d;

		assert_true(pass_cdb_data(&p, rows[i].cdb, &d));
		assert_int_equal(d.dir, rows[i].dir);
		assert_int_equal(d.len, rows[i].len);
		/* READ and WRITE can be reduced, no other command. */
		assert_int_equal(d.whole,
				 (rows[i].cdb[0] & 0x1f) == 0x08 ||
					 (rows[i].cdb[0] & 0x1f) == 0x0a);
	}
}

/* The CDB does not determine the length of blocks with protection information
 * (RDPROTECT, WRPROTECT), nor any length while the block size is unknown. */
static void test_cdbs_without_a_known_length(void **state)
{
	struct pass p = { .type = TYPE_DISK, .block_size = BLOCK };
	struct pass_data d;
	uint8_t cdb[16];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows_disk); i++) {
		const struct row *r = &rows_disk[i];

		fill(cdb, r->op);
		cdb[1] = 0x20;
		assert_int_equal(pass_cdb_data(&p, cdb, &d),
				 r->unit == BYTE || r->op < 0x20);
	}
	p.block_size = 0;
	for (size_t i = 0; i < ARRAY_LEN(rows_disk); i++) {
		fill(cdb, rows_disk[i].op);
		assert_int_equal(pass_cdb_data(&p, cdb, &d),
				 rows_disk[i].unit == BYTE);
	}
}

/* SAM-5 §5.2: the length by the operation code's group. */
static void test_lengths_of_cdbs(void **state)
{
	static const uint8_t groups[] = { 6, 10, 10, 0, 16, 12, 16, 16 };
	uint8_t cdb[260] = { 0 };

	(void)state;
	for (unsigned op = 0; op < 256; op++) {
		if (op >> 5 == 3)
			continue;
		cdb[0] = (uint8_t)op;
		assert_int_equal(pass_cdb_len(cdb, 16), groups[op >> 5]);
	}
	cdb[0] = 0x7f;
	for (unsigned more = 0; more < 256; more++)
		for (size_t have = 16; have <= 260; have += 4) {
			size_t len = 8 + more;
			bool ok = more >= 4 && len % 4 == 0 && len <= have &&
				  len <= PASS_CDB_MAX;

			cdb[7] = (uint8_t)more;
			assert_int_equal(pass_cdb_len(cdb, have), ok ? len : 0);
		}
}

static void test_slow_commands_have_time(void **state)
{
	static const uint8_t slow[2][16] = {
		{ 0x04, 0x07, 0x1d, 0x48 },
		{ 0x01, 0x04, 0x07, 0x11, 0x19, 0x1b, 0x1d, 0x2b, 0x37, 0x5b,
		  0x91, 0x92, 0x93, 0xa1, 0xa5, 0xa6 },
	};
	static const uint8_t types[2] = { TYPE_DISK, 0x01 };

	(void)state;
	for (unsigned k = 0; k < 2; k++)
		for (unsigned op = 1; op < 256; op++) {
			struct pass p = { .type = types[k], .timeout = 60 };
			uint8_t cdb[16] = { (uint8_t)op };
			bool is = memchr(slow[k], (int)op, 16) != NULL;

			assert_int_equal(pass_timeout(&p, cdb),
					 is ? PASS_SLOW : 60);
			p.timeout = PASS_SLOW + 1;
			assert_int_equal(pass_timeout(&p, cdb), PASS_SLOW + 1);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_command_of_a_disk),
		cmocka_unit_test(test_commands_by_type),
		cmocka_unit_test(test_lengths_by_flags),
		cmocka_unit_test(test_cdbs_without_a_known_length),
		cmocka_unit_test(test_lengths_of_cdbs),
		cmocka_unit_test(test_slow_commands_have_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
