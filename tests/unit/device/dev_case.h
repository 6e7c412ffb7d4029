/* SPDX-License-Identifier: BSD-2-Clause */
/* dev_case.h: one fixture for the cases of a test program, with macros for
 * commands and checks of their ends. */
#ifndef TESTS_DEVICE_DEV_CASE_H
#define TESTS_DEVICE_DEV_CASE_H

#include "cmocka_all.h"
#include "dev_fixture.h"

static struct dev_fixture fixture;
#define R (&fixture)

static inline int open_fixture(void **state)
{
	(void)state;
	memset(R, 0, sizeof(*R));
	fx_open(R, fx_ram(R), false);
	fx_take_attentions(R);
	return 0;
}

static inline int close_fixture(void **state)
{
	(void)state;
	fx_close(R);
	return 0;
}

/* With protection information of that type. */
static inline int open_protected_by(uint8_t type)
{
	memset(R, 0, sizeof(*R));
	fx_open(R, fx_protected(R, fx_ram(R), type), false);
	fx_take_attentions(R);
	return 0;
}

static inline int open_type_1(void **state)
{
	(void)state;
	return open_protected_by(1);
}

static inline int open_type_2(void **state)
{
	(void)state;
	return open_protected_by(2);
}

static inline int open_type_3(void **state)
{
	(void)state;
	return open_protected_by(3);
}

#define CMD(out, in, data, ...) \
 fx_run(R, (const uint8_t[16]){ __VA_ARGS__ }, 16, data, out, in)

static inline void assert_check(uint8_t key, uint16_t asc)
{
	assert_int_equal(R->task.status, SCSI_CHECK_CONDITION);
	assert_int_equal(R->sense.key, key);
	assert_int_equal(R->sense.asc, asc);
	/* Only an operation in progress reports its progress. */
	if (R->sense.has_progress)
		assert_true(asc == ASC_SANITIZE_IN_PROGRESS ||
			    asc == ASC_FORMAT_IN_PROGRESS);
}

/* cdb_of builds a CDB of zeros except for operation code and service action;
 * returns its length. */
static inline uint8_t cdb_of(uint8_t op, uint8_t sa, uint8_t cdb[32])
{
	memset(cdb, 0, 32);
	cdb[0] = op;
	if (op != SCSI_VARIABLE_LENGTH) {
		cdb[1] = sa;
		return 16;
	}
	cdb[7] = 24; /* SPC-4 §4.2.3 */
	cdb[9] = sa;
	return 32;
}

#define T(name) \
 cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)

#endif
