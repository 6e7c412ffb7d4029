/* SPDX-License-Identifier: BSD-2-Clause */
/* reconnect_test.c: which commands are issued again after a loss. */
#include "cmocka_all.h"
#include "lib/internal.h"
#include "scsi/cdb.h"

static void test_repeat_reads_writes_queries(void **state)
{
	static const uint8_t yes[] = {
		SCSI_READ_10,
		SCSI_READ_16,
		SCSI_WRITE_10,
		SCSI_WRITE_16,
		SCSI_WRITE_SAME_16,
		SCSI_UNMAP,
		SCSI_SYNCHRONIZE_CACHE_10,
		SCSI_VERIFY_16,
		SCSI_INQUIRY,
		SCSI_TEST_UNIT_READY,
		SCSI_REPORT_LUNS,
		SCSI_SERVICE_ACTION_IN_16,
		SCSI_PERSISTENT_RESERVE_IN,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(yes); i++)
		assert_true(lib_reconnect_may_repeat(yes[i]));
}

/* A second COMPARE AND WRITE compares with the data of the first one, a second
 * reservation conflicts with the first one, and a unit reports sense data once. */
static void test_repeat_not_what_depends_on_its_first_time(void **state)
{
	static const uint8_t no[] = {
		SCSI_COMPARE_AND_WRITE,
		SCSI_PERSISTENT_RESERVE_OUT,
		SCSI_RESERVE_6,
		SCSI_RELEASE_6,
		SCSI_RESERVE_10,
		SCSI_RELEASE_10,
		SCSI_EXTENDED_COPY,
		SCSI_REQUEST_SENSE,
		SCSI_START_STOP_UNIT,
		0x7f, /* variable length: any service action */
		0xff,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(no); i++)
		assert_false(lib_reconnect_may_repeat(no[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_repeat_reads_writes_queries),
		cmocka_unit_test(
			test_repeat_not_what_depends_on_its_first_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
