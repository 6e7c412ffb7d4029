/* SPDX-License-Identifier: BSD-2-Clause */
/* taskset_test.c: SIMPLE, ORDERED and HEAD OF QUEUE commands (SAM-5 §8.5 to
 * §8.7) on a store that answers when the test says so. */
#include "device/unit/unit.h"
#include "ones.h"

/* A WRITE of one block comes in; its data may come later. */
static void arrives(unsigned i, unsigned who, enum dev_attr attr)
{
	const uint8_t cdb[16] = { SCSI_WRITE_10, [5] = (uint8_t)i, [8] = 1 };

	one_begin(i, who, attr, cdb);
}

static void comes(unsigned i, unsigned who, enum dev_attr attr)
{
	arrives(i, who, attr);
	one_run(i);
}

static void end_all(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (!ones[i].released)
			assert_int_equal(ones[i].task.status, SCSI_GOOD);
		assert_true(ones[i].done || ones[i].released);
		dev_task_end(&ones[i].task);
	}
}

static void test_simple_ones_run_together_sam5_8_6_1(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++)
		comes(i, A, i ? S : DEV_ATTR_UNTAGGED);
	expect_held(4);
	let_go(4);
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
	let_go(1);
	expect_held(1);
	let_go(1);
	expect_held(1); /* the ordered one, alone */
	let_go(1);
	assert_true(ones[2].done);
	expect_held(1);
	assert_false(ones[3].done);
	let_go(1);
	expect_held(1);
	let_go(1);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(ones[i].place, i + 1);
	end_all(5);
}

/* What came first counts, not whose data came first. */
static void test_ordered_waits_for_data_of_older_ones(void **state)
{
	(void)state;
	arrives(0, A, S);
	arrives(1, A, O);
	arrives(2, A, S);
	one_run(2);
	one_run(1);
	expect_held(0);
	one_run(0);
	expect_held(1);
	let_go(1);
	assert_true(ones[0].done);
	expect_held(1);
	let_go(1);
	assert_true(ones[1].done);
	let_go(1);
	end_all(3);
}

static void test_head_of_queue_sam5_8_6_4(void **state)
{
	(void)state;
	comes(0, A, S);
	comes(1, A, O); /* waits for 0 */
	comes(2, A, H); /* for nobody */
	comes(3, A, S); /* for 1 and 2 */
	expect_held(2);
	let_go(1); /* 0; but 2 has not ended */
	expect_held(1);
	assert_true(ones[0].done);
	let_go(1);
	assert_true(ones[2].done);
	expect_held(1);
	let_go(1);
	assert_true(ones[1].done);
	let_go(1);
	assert_true(ones[3].done);
	end_all(4);
}

/* TST = 000b: one task set for all. An ordered one has the medium alone. */
static void test_ordered_among_several_nexuses(void **state)
{
	(void)state;
	comes(0, A, S);
	comes(1, B, O);
	expect_held(1);
	comes(2, C, S); /* behind it, as it came */
	expect_held(1);
	let_go(1);
	expect_held(1);
	assert_false(ones[1].done);
	assert_false(ones[2].done);
	let_go(1);
	assert_true(ones[1].done);
	expect_held(1);
	let_go(1);
	end_all(3);
}

/* TST = 001b: a task set per nexus (SPC-4 §7.5.8) */
static void test_ordered_in_a_task_set_of_its_own(void **state)
{
	struct dev_lu *lu = dev_lu_get(trio.server, 0);

	(void)state;
	lu->ctl.tst = 1;
	comes(0, A, S);
	comes(1, B, O);
	comes(2, B, S);
	expect_held(2);
	let_go(2);
	assert_true(ones[0].done && ones[1].done);
	let_go(1);
	end_all(3);
}

static void test_aborted_while_dormant(void **state)
{
	(void)state;
	comes(0, A, S);
	comes(1, A, O);
	comes(2, A, S);
	assert_int_equal(dev_task_abort(&ones[2].task, one_released), 0);
	assert_true(ones[2].released);
	assert_int_equal(dev_task_abort(&ones[1].task, one_released), 0);
	assert_true(ones[1].released);
	comes(3, A, S); /* nothing keeps it any more */
	expect_held(2);
	let_go(2);
	end_all(4);
}

/* An abort of what kept others back lets them go. */
static void test_abort_wakes_others(void **state)
{
	(void)state;
	arrives(0, A, H);
	comes(1, A, S);
	comes(2, A, S);
	expect_held(0);
	dev_task_abort(&ones[0].task, one_released);
	expect_held(2);
	let_go(2);
	end_all(3);
}

static void test_units_have_sets_of_their_own(void **state)
{
	static const uint8_t cdb[16] = { SCSI_TEST_UNIT_READY };
	struct dev_task *t;

	(void)state;
	assert_int_equal(dev_lu_add(trio.server,
				    &(struct dev_lu_config){ .lun = 1 },
				    bs_null_new("null:2M", 2u << 20, 512)),
			 0);
	arrives(0, A, O);
	t = one_new(1, A, S, cdb);
	t->lun = dev_lun_encode(1);
	assert_int_equal(dev_task_begin(t), 0);
	dev_task_execute(t);
	assert_true(ones[1].done); /* whatever its status */
	dev_task_end(t);
	one_run(0);
	let_go(1);
	end_all(1);
}

static void test_reserved_while_dormant(void **state)
{
	(void)state;
	comes(0, A, S);
	comes(1, A, O);
	assert_int_equal(RUN(B, 0, SCSI_RESERVE_6), SCSI_GOOD);
	let_go(1);
	assert_true(ones[1].done);
	assert_int_equal(ones[1].task.status, SCSI_RESERVATION_CONFLICT);
	ones[1].task.status = SCSI_GOOD;
	end_all(2);
}

static void test_other_attributes_are_refused(void **state)
{
	static const uint8_t cdb[16] = { SCSI_TEST_UNIT_READY };

	(void)state;
	for (unsigned attr = DEV_ATTR_ACA; attr < 8; attr++) {
		struct dev_task *t = &ones[0].task;

		one_begin(0, A, (enum dev_attr)attr, cdb);
		dev_task_execute(t);
		assert_int_equal(t->status, SCSI_CHECK_CONDITION);
		dev_task_end(t);
	}
}

/* ---- QERR (SPC-4 §7.5.8): who goes with a command that fails ---- */

static void test_qerr(void **state)
{
	static const struct {
		uint8_t qerr, tst;
		unsigned aborts[TRIO_N];
	} cases[] = {
		{ 0, 0, { 0, 0, 0 } }, { 3, 0, { 0, 1, 0 } },
		{ 1, 0, { 1, 1, 1 } }, { 1, 1, { 0, 1, 0 } },
		{ 3, 1, { 0, 1, 0 } },
	};
	struct dev_lu *lu = dev_lu_get(trio.server, 0);

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		for (unsigned who = 0; who < TRIO_N; who++)
			trio.i[who].aborts = 0;
		lu->ctl.qerr = cases[i].qerr;
		lu->ctl.tst = cases[i].tst;
		assert_int_equal(tur(B), SCSI_GOOD);
		assert_int_equal(RUN(B, 0, 0xff), SCSI_CHECK_CONDITION);
		for (unsigned who = 0; who < TRIO_N; who++)
			assert_int_equal(trio.i[who].aborts,
					 cases[i].aborts[who]);
		if (cases[i].aborts[B]) /* but for itself */
			assert_ptr_equal(trio.i[B].spared, &trio.i[B].task);
		if (cases[i].aborts[A])
			assert_null(trio.i[A].spared);
	}
}

/* The status comes when the others are gone, not before; two that fail at
 * once don't wait for each other. */
static void test_qerr_waits_for_the_others(void **state)
{
	const uint8_t bad[16] = { 0xff };
	struct dev_lu *lu = dev_lu_get(trio.server, 0);

	(void)state;
	lu->ctl.qerr = 1;
	trio.i[A].abort_later = true;
	trio_send(B, bad, NULL, 0, 0);
	trio_settle();
	assert_false(trio.i[B].done);
	trio_send(A, bad, NULL, 0, 0);
	trio_settle();
	assert_true(trio.i[A].done);
	trio_finish(A);
	dev_nexus_tasks_gone(trio.i[A].nexus);
	trio_settle();
	trio_finish(B);
	/* one that lost its data, and is aborted meanwhile */
	trio.i[A].abort_later = true;
	arrives(0, B, S);
	dev_task_fail(&ones[0].task, DEV_FAILURE_DATA_CRC);
	trio_settle();
	assert_false(ones[0].done);
	assert_int_equal(dev_task_abort(&ones[0].task, one_released), 0);
	assert_false(ones[0].released);
	dev_nexus_tasks_gone(trio.i[A].nexus);
	trio_settle();
	assert_true(ones[0].released);
	end_all(1);
}

/* Any mixture: every rule holds whenever something is with the store, and
 * all end. */
static bool older_special(unsigned i)
{
	for (unsigned j = 0; j < i; j++)
		if (ones[j].who == ones[i].who && !ones[j].done &&
		    (ones[j].task.attr == O || ones[i].task.attr == O))
			return true;
	return false;
}

/* An ordered one of another nexus may have the medium now. */
static bool other_barrier(unsigned i)
{
	for (unsigned j = 0; j < i; j++)
		if (ones[j].who != ones[i].who && !ones[j].done &&
		    ones[j].task.attr == O)
			return true;
	return false;
}

static void test_random_mixtures(void **state)
{
	unsigned seed = 20260101, started = 0;

	(void)state;
	for (unsigned i = 0; i < ONES; i++) {
		static const enum dev_attr kinds[] = { S, S, S, S, O, H };
		unsigned before = bs_hold_waiting(trio.hold);

		seed = seed * 1664525u + 1013904223u;
		comes(i, seed >> 28 & 1, kinds[(seed >> 16) % 6]);
		if (ones[i].task.attr == H && !other_barrier(i) &&
		    !older_special(i))
			assert_int_equal(bs_hold_waiting(trio.hold),
					 before + 1);
		else if (ones[i].task.attr != H && older_special(i))
			assert_int_equal(bs_hold_waiting(trio.hold), before);
		started++;
		while ((seed = seed * 1664525u + 1013904223u) >> 31 &&
		       bs_hold_waiting(trio.hold))
			let_go(1);
	}
	while (bs_hold_waiting(trio.hold))
		let_go(1);
	assert_int_equal(nended, started);
	for (unsigned i = 0; i < ONES; i++)
		for (unsigned j = 0; j < i; j++)
			if (ones[j].who == ones[i].who &&
			    ones[j].task.attr != H && ones[i].task.attr == O)
				assert_true(ones[j].place < ones[i].place);
	end_all(ONES);
}

#define TS(name) cmocka_unit_test_setup_teardown(name, ones_open, trio_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TS(test_simple_ones_run_together_sam5_8_6_1),
		TS(test_ordered_between_simple_ones_sam5_8_6_3),
		TS(test_ordered_waits_for_data_of_older_ones),
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
