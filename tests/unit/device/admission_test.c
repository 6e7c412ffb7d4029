/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * admission_test.c: a command is checked when it begins, and again before it
 * executes only if the unit has changed (dev_lu_changed). The second check
 * finds each kind of change.
 */
#include "dev_case.h"
#include "device/unit/condition.h"
#include "device/unit/unit.h"

#define GROUP 7

static const struct dev_lu_config removable = { .removable = true };

static void add_group(struct dev_server *s)
{
	const struct dev_group g = { .id = GROUP, .nports = 1, .ports = { 1 } };
	uint16_t port;

	assert_int_equal(dev_port_add(s, "iqn.t,t,0x0001", &port), 0);
	assert_int_equal(dev_group_add(s, &g), 0);
}

static int open_admission(void **state)
{
	(void)state;
	memset(R, 0, sizeof(*R));
	R->two_initiators = true;
	R->lu = &removable;
	R->set_up = add_group;
	fx_open(R, fx_ram(R), false);
	fx_take_attentions(R);
	return 0;
}

static struct dev_lu *lu(void)
{
	return dev_lu_get(R->server, 0);
}

/* ---- events between begin and execute ---- */

static struct dev_task other;

static void other_done(struct dev_task *t)
{
	(void)t;
}

/* The other initiator sends a command without data. */
static void run_other(const uint8_t cdb[6])
{
	memset(&other, 0, sizeof(other));
	other.nexus = R->other;
	other.attr = DEV_ATTR_SIMPLE;
	memcpy(other.cdb, cdb, 6);
	other.cdb_len = 16;
	other.done = other_done;
	assert_int_equal(dev_task_begin(&other), 0);
	dev_task_execute(&other);
	assert_int_equal(other.status, SCSI_GOOD);
	dev_task_end(&other);
}

static void changed(void *arg, int err)
{
	(void)arg;
	assert_int_equal(err, 0);
}

static void set_access(enum dev_access state)
{
	const struct dev_group_change c = { .id = GROUP, .state = state };

	assert_int_equal(dev_group_set(R->server, &c, changed, NULL), 0);
}

static void nothing(void)
{
}

static void reserve(void)
{
	run_other((const uint8_t[6]){ SCSI_RESERVE_6 });
}

static void reserve_and_release(void)
{
	reserve();
	run_other((const uint8_t[6]){ SCSI_RELEASE_6 });
}

static void eject(void)
{
	run_other((const uint8_t[6]){ SCSI_START_STOP_UNIT, 0, 0, 0, 0x02 });
}

static void standby_by_timer(void)
{
	run_other((const uint8_t[6]){ SCSI_START_STOP_UNIT, 0, 0, 0, 0x30 });
}

static void sanitize(void)
{
	assert_true(dev_condition_go(lu(), LU_READY, LU_SANITIZING));
}

static void end_access(void)
{
	set_access(DEV_ACCESS_UNAVAILABLE);
}

static void end_access_and_give_it(void)
{
	set_access(DEV_ACCESS_UNAVAILABLE);
	set_access(DEV_ACCESS_OPTIMIZED);
}

/* ---- the cases ---- */

static const struct {
	void (*change)(void);
	enum scsi_status status;
	uint8_t key;
	uint16_t asc;
} cases[] = {
	{ nothing, SCSI_GOOD, 0, 0 },
	{ reserve, SCSI_RESERVATION_CONFLICT, 0, 0 },
	{ reserve_and_release, SCSI_GOOD, 0, 0 },
	{ eject, SCSI_CHECK_CONDITION, SENSE_NOT_READY,
	  ASC_MEDIUM_NOT_PRESENT },
	{ standby_by_timer, SCSI_GOOD, 0, 0 },
	{ sanitize, SCSI_CHECK_CONDITION, SENSE_NOT_READY,
	  ASC_SANITIZE_IN_PROGRESS },
	{ end_access, SCSI_CHECK_CONDITION, SENSE_NOT_READY,
	  ASC_PORT_UNAVAILABLE },
	{ end_access_and_give_it, SCSI_GOOD, 0, 0 },
};

static void run_case(size_t i, const uint8_t *cdb, uint32_t out, uint32_t in)
{
	static const uint8_t data[FX_BLOCK];

	assert_int_equal(fx_begin(R, cdb, 10, out, in), 0);
	assert_false(R->task.own.begun.refused);
	cases[i].change();
	assert_int_equal(fx_execute(R, data), cases[i].status);
	fx_finish(R);
	if (cases[i].status == SCSI_CHECK_CONDITION)
		assert_check(cases[i].key, cases[i].asc);
}

static void test_a_change_before_a_write_runs(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		open_admission(state);
		run_case(i, (const uint8_t[10]){ SCSI_WRITE_10, [8] = 1 },
			 FX_BLOCK, 0);
		assert_int_equal(lu()->power, 0);
		close_fixture(state);
	}
}

static void test_a_change_before_a_read_runs(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		open_admission(state);
		run_case(i, (const uint8_t[10]){ SCSI_READ_10, [8] = 1 }, 0,
			 FX_BLOCK);
		assert_int_equal(lu()->power, 0);
		close_fixture(state);
	}
}

/* A unit serves INQUIRY through an unavailable port, in any condition. */
static void test_a_change_before_an_inquiry_runs(void **state)
{
	static const uint8_t inquiry[10] = { SCSI_INQUIRY, [4] = 36 };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		open_admission(state);
		assert_int_equal(fx_begin(R, inquiry, 10, 0, 36), 0);
		cases[i].change();
		assert_int_equal(fx_execute(R, NULL), SCSI_GOOD);
		fx_finish(R);
		close_fixture(state);
	}
}

/* Commands that do not change the unit are checked once. */
static void test_commands_do_not_change_the_unit(void **state)
{
	static const uint8_t data[FX_BLOCK];
	uint32_t changes = dev_lu_changes(lu());

	(void)state;
	CMD(FX_BLOCK, 0, data, SCSI_WRITE_10, [8] = 1);
	assert_int_equal(R->task.status, SCSI_GOOD);
	CMD(0, FX_BLOCK, NULL, SCSI_READ_10, [8] = 1);
	assert_int_equal(R->task.status, SCSI_GOOD);
	assert_int_equal(dev_lu_changes(lu()), changes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_change_before_a_write_runs),
		cmocka_unit_test(test_a_change_before_a_read_runs),
		cmocka_unit_test(test_a_change_before_an_inquiry_runs),
		T(test_commands_do_not_change_the_unit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
