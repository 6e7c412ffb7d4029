/* SPDX-License-Identifier: BSD-2-Clause */
/* block_test.c: commands of rows_block.c, by the clauses of SBC-3. */
#include "dev_case.h"

/* ---- READ DEFECT DATA, SBC-3 §§5.19, 5.20 ---- */

static void test_defect_lists_are_empty_sbc3_5_19(void **state)
{
	(void)state;
	assert_int_equal(CMD(0, 64, NULL, 0x37, 0, 0x1d, 0, 0, 0, 0, 0, 64),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, 4);
	assert_int_equal(R->in[1], 0x1d); /* both lists, the asked format */
	assert_int_equal(get_be16(R->in + 2), 0);
	assert_int_equal(CMD(0, 64, NULL, 0xb7, 0x08, 0, 0, 1, 0, 0, 0, 0, 64),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, 8);
	assert_int_equal(R->in[1], 0x08);
	assert_int_equal(get_be32(R->in + 4), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_defect_lists_are_empty_sbc3_5_19),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
