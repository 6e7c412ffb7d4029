/* SPDX-License-Identifier: BSD-2-Clause */
/* dev_case.h: one rig for the cases of a test program, and how they speak of
 * commands and their ends. */
#ifndef TESTS_DEVICE_DEV_CASE_H
#define TESTS_DEVICE_DEV_CASE_H

#include "cmocka_all.h"
#include "dev_rig.h"

static struct dev_rig rig;
#define R (&rig)

static inline int open_rig(void **state)
{
	(void)state;
	memset(R, 0, sizeof(*R));
	rig_open(R, rig_ram(R), false);
	rig_take_attentions(R);
	return 0;
}

static inline int close_rig(void **state)
{
	(void)state;
	rig_close(R);
	return 0;
}

/* With protection information of that type. */
static inline int open_protected_by(uint8_t type)
{
	memset(R, 0, sizeof(*R));
	rig_open(R, rig_protected(R, rig_ram(R), type), false);
	rig_take_attentions(R);
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
 rig_run(R, (const uint8_t[16]){ __VA_ARGS__ }, 16, data, out, in)

static inline void assert_check(uint8_t key, uint16_t asc)
{
	assert_int_equal(R->task.status, SCSI_CHECK_CONDITION);
	assert_int_equal(R->sense.key, key);
	assert_int_equal(R->sense.asc, asc);
	/* only what goes on says how far it is */
	if (R->sense.has_progress)
		assert_true(asc == ASC_SANITIZE_IN_PROGRESS ||
			    asc == ASC_FORMAT_IN_PROGRESS);
}

/* A CDB of zeros but for operation code and service action; its length. */
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

#define T(name) cmocka_unit_test_setup_teardown(name, open_rig, close_rig)

#endif
