/* SPDX-License-Identifier: BSD-2-Clause */
/* xor_test.c: XDWRITEREAD (SBC-3 §§5.54, 5.55), which has data in both directions. */
#include "dev_case.h"
#include "device/unit/unit.h"

#define LBA  5u
#define MOST FX_MAX

static uint8_t was[MOST + FX_BLOCK], out[MOST], in[MOST];

/* Runs XDWRITEREAD(10), or (32), with the flags of byte 1, or 10. */
static int xor_blocks(unsigned len, uint8_t flags, uint32_t blocks,
		      uint32_t edtl_out, uint32_t edtl_in)
{
	uint8_t cdb[32] = { len == 10 ? 0x53 : 0x7f };
	struct dev_task *t = &R->task;

	cdb[len == 10 ? 1 : 10] = flags;
	cdb[len == 10 ? 5 : 19] = LBA;
	put_be16(cdb + (len == 10 ? 7 : 30), (uint16_t)blocks);
	if (len == 32) {
		cdb[7] = 0x18;
		cdb[9] = 0x07;
	}
	for (unsigned i = 0; i < MOST; i++)
		out[i] = (uint8_t)(i * 13 + i / 511 + blocks);
	memcpy(was, R->medium + LBA * FX_BLOCK, sizeof(was));
	assert_int_equal(fx_begin(R, cdb, len, edtl_out, edtl_in), 0);
	if (fx_execute(R, out) < 0)
		return -1;
	bufv_copy_out(&t->in, 0, in, t->in.len);
	R->in_len = 0;
	dev_task_end(t);
	return t->status;
}

static void assert_xor(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(in[i], out[i] ^ was[i]);
}

static void assert_medium(const uint8_t *want, uint32_t n)
{
	const uint8_t *now = R->medium + LBA * FX_BLOCK;

	assert_memory_equal(now, want, n);
	assert_memory_equal(now + n, was + n, FX_BLOCK);
}

static void test_xor_of_each_length_sbc3_5_54(void **state)
{
	static const uint32_t blocks[] = { 1, 2, 7, 8, 255, 511, 512 };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(blocks); i++) {
		uint32_t n = blocks[i] * FX_BLOCK;

		assert_int_equal(xor_blocks(10, 0, blocks[i], n, n), SCSI_GOOD);
		assert_int_equal(R->task.total.in, n);
		assert_int_equal(R->task.total.out, n);
		assert_xor(n);
		assert_medium(out, n);
	}
	assert_int_equal(xor_blocks(10, 0, 0, 512, 512), SCSI_GOOD);
	assert_int_equal(R->task.total.in + R->task.total.out, 0);
}

static void test_disable_write_sbc3_5_54(void **state)
{
	(void)state;
	assert_int_equal(xor_blocks(10, 0x04, 9, 9 * 512, 9 * 512), SCSI_GOOD);
	assert_xor(9 * 512);
	assert_medium(was, 9 * 512);
	assert_int_equal(xor_blocks(10, 0x08, 9, 9 * 512, 9 * 512), SCSI_GOOD);
	assert_medium(out, 9 * 512);
}

/* A read length that is too short is an overflow; too short or missing data to write,
 * and no room at all for the data to read, are refused before the unit changes. */
static void test_expected_lengths_rfc7143_11_4_5(void **state)
{
	(void)state;
	assert_int_equal(xor_blocks(10, 0, 2, 1024, 700), SCSI_GOOD);
	assert_int_equal(R->task.total.in, 1024);
	assert_xor(700);
	assert_medium(out, 1024);
	assert_int_equal(xor_blocks(10, 0, 2, 4096, 4096), SCSI_GOOD);
	assert_int_equal(R->task.total.in, 1024);
	assert_int_equal(R->task.out_len, 1024);
	for (unsigned i = 0; i < 3; i++) {
		static const uint32_t edtl[3][2] = { { 512, 1024 },
						     { 0, 1024 },
						     { 1024, 0 } };

		assert_int_equal(xor_blocks(10, 0, 2, edtl[i][0], edtl[i][1]),
				 SCSI_CHECK_CONDITION);
		assert_int_equal(R->task.in.len, 0);
		assert_medium(was, 1024);
	}
}

static void test_fields_that_are_refused_sbc3_5_54(void **state)
{
	static const uint8_t flags[] = { 0x20, 0x40, 0x80, 0x02, 0x01 };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(flags); i++)
		assert_int_equal(xor_blocks(10, flags[i], 1, 512, 512),
				 SCSI_CHECK_CONDITION);
	CMD(0, 64, NULL, 0x53, 0, 0xff, 0, 0, 0, 0, 0, 1);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_LBA_OUT_OF_RANGE);
}

/* XDWRITEREAD(32) is for units that follow the standard strictly. */
static void test_long_cdb_sbc3_5_55(void **state)
{
	(void)state;
	assert_int_equal(xor_blocks(32, 0, 3, 1536, 1536),
			 SCSI_CHECK_CONDITION);
	dev_lu_get(R->server, 0)->cfg.strict = true;
	assert_int_equal(xor_blocks(32, 0, 3, 1536, 1536), SCSI_GOOD);
	assert_xor(1536);
	assert_medium(out, 1536);
	assert_int_equal(xor_blocks(32, 0x04, 3, 1536, 1536), SCSI_GOOD);
	assert_medium(was, 1536);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_xor_of_each_length_sbc3_5_54),
		T(test_disable_write_sbc3_5_54),
		T(test_expected_lengths_rfc7143_11_4_5),
		T(test_fields_that_are_refused_sbc3_5_54),
		T(test_long_cdb_sbc3_5_55),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
