/* SPDX-License-Identifier: BSD-2-Clause */
/* taskset_test.c: SIMPLE, ORDERED and HEAD OF QUEUE commands (SAM-5 §8.5 to
 * §8.7) on a backstore that completes requests when the test releases them. */
#include "cmds.h"
#include "device/unit/unit.h"

/* A WRITE of one block begins; its data may come later. */
static void arrives(unsigned i, unsigned who, enum dev_attr attr)
{
	const uint8_t cdb[16] = { SCSI_WRITE_10, [5] = (uint8_t)i, [8] = 1 };

	cmd_begin(i, who, attr, cdb);
}

static void comes(unsigned i, unsigned who, enum dev_attr attr)
{
	arrives(i, who, attr);
	cmd_run(i);
}

static void end_all(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (!cmds[i].released)
			assert_int_equal(cmds[i].task.status, SCSI_GOOD);
		assert_true(cmds[i].done || cmds[i].released);
		dev_task_end(&cmds[i].task);
	}
}

static void test_simple_ones_run_together_sam5_8_6_1(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++)
		comes(i, A, i ? S : DEV_ATTR_UNTAGGED);
	expect_held(4);
	release_held(4);
	end_all(4);
}

static void test_ordered_between_simple_ones_sam5_8_6_3(void **state)
{
	(void)state;
	comes(0, A, S);
	comes(1, A, S);
	comes(2, A, O);
	comes(3, A, S);
	comes(4, A, O);
	expect_held(2);
	release_held(1);
	expect_held(1);
	release_held(1);
	expect_held(1); /* the ORDERED command only */
	release_held(1);
	assert_true(cmds[2].done);
	expect_held(1);
	assert_false(cmds[3].done);
	release_held(1);
	expect_held(1);
	release_held(1);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(cmds[i].place, i + 1);
	end_all(5);
}

/* The order of the commands counts, not the order of their data. */
static void test_ordered_waits_for_data_of_older_ones(void **state)
{
	(void)state;
	arrives(0, A, S);
	arrives(1, A, O);
	arrives(2, A, S);
	cmd_run(2);
	cmd_run(1);
	expect_held(0);
	cmd_run(0);
	expect_held(1);
	release_held(1);
	assert_true(cmds[0].done);
	expect_held(1);
	release_held(1);
	assert_true(cmds[1].done);
	release_held(1);
	end_all(3);
}

/* Commands of several connections arrive in any order: their place in the task set is
 * that of their CmdSN (RFC 7143 §4.2.2.1), and one that is early delays no other. */
static void test_early_ones_get_their_place_in_turn(void **state)
{
	const uint8_t cdb[16] = { SCSI_WRITE_10, [5] = 1, [8] = 1 };
	struct dev_task *early = cmd_new(1, A, O, cdb);

	(void)state;
	early->order.early = true;
	assert_int_equal(dev_task_begin(early), 0);
	comes(0, A, O);
	expect_held(1);
	dev_task_in_turn(early);
	cmd_run(1);
	expect_held(1);
	release_held(1);
	assert_true(cmds[0].done);
	assert_false(cmds[1].done);
	expect_held(1);
	release_held(1);
	end_all(2);
}

static void test_head_of_queue_sam5_8_6_4(void **state)
{
	(void)state;
	comes(0, A, S);
	comes(1, A, O); /* waits for 0 */
	comes(2, A, H); /* waits for no command */
	comes(3, A, S); /* waits for 1 and 2 */
	expect_held(2);
	release_held(1); /* command 0; command 2 has not ended */
	expect_held(1);
	assert_true(cmds[0].done);
	release_held(1);
	assert_true(cmds[2].done);
	expect_held(1);
	release_held(1);
	assert_true(cmds[1].done);
	release_held(1);
	assert_true(cmds[3].done);
	end_all(4);
}

/* TST = 000b: all nexuses share a task set. An ORDERED command has exclusive
 * access to the medium. */
static void test_ordered_among_several_nexuses(void **state)
{
	(void)state;
	comes(0, A, S);
	comes(1, B, O);
	expect_held(1);
	comes(2, C, S); /* waits for 1, which began first */
	expect_held(1);
	release_held(1);
	expect_held(1);
	assert_false(cmds[1].done);
	assert_false(cmds[2].done);
	release_held(1);
	assert_true(cmds[1].done);
	expect_held(1);
	release_held(1);
	end_all(3);
}

/* TST = 001b: a task set per nexus (SPC-4 §7.5.8) */
static void test_ordered_in_a_task_set_of_its_own(void **state)
{
	struct dev_lu *lu = dev_lu_get(three.server, 0);

	(void)state;
	lu->ctl.tst = 1;
	comes(0, A, S);
	comes(1, B, O);
	comes(2, B, S);
	expect_held(2);
	release_held(2);
	assert_true(cmds[0].done && cmds[1].done);
	release_held(1);
	end_all(3);
}

static void test_aborted_while_dormant(void **state)
{
	(void)state;
	comes(0, A, S);
	comes(1, A, O);
	comes(2, A, S);
	assert_int_equal(dev_task_abort(&cmds[2].task, cmd_released), 0);
	assert_true(cmds[2].released);
	assert_int_equal(dev_task_abort(&cmds[1].task, cmd_released), 0);
	assert_true(cmds[1].released);
	comes(3, A, S); /* no older command is left */
	expect_held(2);
	release_held(2);
	end_all(4);
}

/* The abort of a command enables the commands that waited for it. */
static void test_abort_wakes_others(void **state)
{
	(void)state;
	arrives(0, A, H);
	comes(1, A, S);
	comes(2, A, S);
	expect_held(0);
	dev_task_abort(&cmds[0].task, cmd_released);
	expect_held(2);
	release_held(2);
	end_all(3);
}

static void test_units_have_sets_of_their_own(void **state)
{
	static const uint8_t cdb[16] = { SCSI_TEST_UNIT_READY };
	struct dev_task *t;

	(void)state;
	assert_int_equal(dev_lu_add(three.server,
				    &(struct dev_lu_config){ .lun = 1 },
				    bs_null_new("null:2M", 2u << 20, 512)),
			 0);
	three_settle();
	all_sense_taken();
	arrives(0, A, O);
	t = cmd_new(1, A, S, cdb);
	t->lun = dev_lun_encode(1);
	assert_int_equal(dev_task_begin(t), 0);
	dev_task_execute(t);
	assert_true(cmds[1].done); /* with any status */
	dev_task_end(t);
	cmd_run(0);
	release_held(1);
	end_all(1);
}

static void test_reserved_while_dormant(void **state)
{
	(void)state;
	comes(0, A, S);
	comes(1, A, O);
	assert_int_equal(RUN(B, 0, SCSI_RESERVE_6), SCSI_GOOD);
	release_held(1);
	assert_true(cmds[1].done);
	assert_int_equal(cmds[1].task.status, SCSI_RESERVATION_CONFLICT);
	cmds[1].task.status = SCSI_GOOD;
	end_all(2);
}

static void test_other_attributes_are_refused(void **state)
{
	static const uint8_t cdb[16] = { SCSI_TEST_UNIT_READY };

	(void)state;
	for (unsigned attr = DEV_ATTR_ACA; attr < 8; attr++) {
		struct dev_task *t = &cmds[0].task;

		cmd_begin(0, A, (enum dev_attr)attr, cdb);
		dev_task_execute(t);
		assert_int_equal(t->status, SCSI_CHECK_CONDITION);
		dev_task_end(t);
	}
}

/* ---- QERR (SPC-4 §7.5.8): the commands that end with a failed command ---- */

static void test_qerr(void **state)
{
	static const struct {
		uint8_t qerr, tst;
		unsigned aborts[INITIATORS];
	} cases[] = {
		{ 0, 0, { 0, 0, 0 } }, { 3, 0, { 0, 1, 0 } },
		{ 1, 0, { 1, 1, 1 } }, { 1, 1, { 0, 1, 0 } },
		{ 3, 1, { 0, 1, 0 } },
	};
	struct dev_lu *lu = dev_lu_get(three.server, 0);

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		for (unsigned who = 0; who < INITIATORS; who++)
			three.i[who].aborts = 0;
		lu->ctl.qerr = cases[i].qerr;
		lu->ctl.tst = cases[i].tst;
		assert_int_equal(tur(B), SCSI_GOOD);
		assert_int_equal(RUN(B, 0, 0xff), SCSI_CHECK_CONDITION);
		for (unsigned who = 0; who < INITIATORS; who++)
			assert_int_equal(three.i[who].aborts,
					 cases[i].aborts[who]);
		if (cases[i].aborts[B]) /* except the failed command */
			assert_ptr_equal(three.i[B].spared, &three.i[B].task);
		if (cases[i].aborts[A])
			assert_null(three.i[A].spared);
	}
}

/* The status is sent after the aborted commands have ended. Two commands that
 * fail at the same time do not wait for each other. */
static void test_qerr_waits_for_the_others(void **state)
{
	const uint8_t bad[16] = { 0xff };
	struct dev_lu *lu = dev_lu_get(three.server, 0);

	(void)state;
	lu->ctl.qerr = 1;
	three.i[A].abort_later = true;
	three_send(B, bad, NULL, 0, 0);
	three_settle();
	assert_false(three.i[B].done);
	three_send(A, bad, NULL, 0, 0);
	three_settle();
	assert_true(three.i[A].done);
	three_finish(A);
	dev_nexus_tasks_gone(three.i[A].nexus);
	three_settle();
	three_finish(B);
	/* A command whose data are missing, and which is aborted meanwhile. */
	three.i[A].abort_later = true;
	arrives(0, B, S);
	dev_task_fail(&cmds[0].task, DEV_FAILURE_DATA_CRC);
	three_settle();
	assert_false(cmds[0].done);
	assert_int_equal(dev_task_abort(&cmds[0].task, cmd_released), 0);
	assert_false(cmds[0].released);
	dev_nexus_tasks_gone(three.i[A].nexus);
	three_settle();
	assert_true(cmds[0].released);
	end_all(1);
}

/* Random attributes: the rules hold for each request in the backstore, and all
 * commands end. */
static bool older_special(unsigned i)
{
	for (unsigned j = 0; j < i; j++)
		if (cmds[j].who == cmds[i].who && !cmds[j].done &&
		    (cmds[j].task.attr == O || cmds[i].task.attr == O))
			return true;
	return false;
}

/* An ORDERED command of another nexus may have exclusive access now. */
static bool other_barrier(unsigned i)
{
	for (unsigned j = 0; j < i; j++)
		if (cmds[j].who != cmds[i].who && !cmds[j].done &&
		    cmds[j].task.attr == O)
			return true;
	return false;
}

static void test_random_mixtures(void **state)
{
	unsigned seed = 20260101, started = 0;

	(void)state;
	for (unsigned i = 0; i < CMDS; i++) {
		static const enum dev_attr kinds[] = { S, S, S, S, O, H };
		unsigned before = bs_hold_waiting(three.hold);

		seed = seed * 1664525u + 1013904223u;
		comes(i, seed >> 28 & 1, kinds[(seed >> 16) % 6]);
		if (cmds[i].task.attr == H && !other_barrier(i) &&
		    !older_special(i))
			assert_int_equal(bs_hold_waiting(three.hold),
					 before + 1);
		else if (cmds[i].task.attr != H && older_special(i))
			assert_int_equal(bs_hold_waiting(three.hold), before);
		started++;
		while ((seed = seed * 1664525u + 1013904223u) >> 31 &&
		       bs_hold_waiting(three.hold))
			release_held(1);
	}
	while (bs_hold_waiting(three.hold))
		release_held(1);
	assert_int_equal(nended, started);
	for (unsigned i = 0; i < CMDS; i++)
		for (unsigned j = 0; j < i; j++)
			if (cmds[j].who == cmds[i].who &&
			    cmds[j].task.attr != H && cmds[i].task.attr == O)
				assert_true(cmds[j].place < cmds[i].place);
	end_all(CMDS);
}

#define TS(name) cmocka_unit_test_setup_teardown(name, cmds_open, three_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TS(test_simple_ones_run_together_sam5_8_6_1),
		TS(test_ordered_between_simple_ones_sam5_8_6_3),
		TS(test_ordered_waits_for_data_of_older_ones),
		TS(test_early_ones_get_their_place_in_turn),
		TS(test_head_of_queue_sam5_8_6_4),
		TS(test_ordered_among_several_nexuses),
		TS(test_ordered_in_a_task_set_of_its_own),
		TS(test_aborted_while_dormant),
		TS(test_abort_wakes_others),
		TS(test_units_have_sets_of_their_own),
		TS(test_reserved_while_dormant),
		TS(test_other_attributes_are_refused),
		TS(test_qerr),
		TS(test_qerr_waits_for_the_others),
		TS(test_random_mixtures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
