/* SPDX-License-Identifier: BSD-2-Clause */
/* aca_test.c: auto contingent allegiance (SAM-5 §5.10) of three initiators on
 * three workers, on a store that answers when the test says so. */
#include "device/unit/command.h"
#include "ones.h"

#define NACA true
#define LAST (ONES - 1)

static struct dev_lu *lu;

static int aca_open(void **state)
{
	ones_open(state);
	lu = dev_lu_get(trio.server, 0);
	return 0;
}

/* A READ of one block, which waits at the store. */
static void one_read(unsigned i, unsigned who, enum dev_attr attr, bool naca)
{
	const uint8_t cdb[16] = {
		SCSI_READ_10, [8] = 1, [9] = naca ? CONTROL_NACA : 0
	};

	one_begin(i, who, attr, cdb);
	one_run(i);
}

/* TEST UNIT READY ends at once. */
static void one_tur(unsigned i, unsigned who, enum dev_attr attr, bool naca)
{
	const uint8_t cdb[16] = {
		SCSI_TEST_UNIT_READY, [5] = naca ? CONTROL_NACA : 0
	};

	one_begin(i, who, attr, cdb);
	one_run(i);
}

static void one_fault(unsigned i, unsigned who, enum dev_attr attr, bool naca)
{
	const uint8_t cdb[16] = {
		SCSI_READ_10, [2] = 0xff, [8] = 1, [9] = naca ? CONTROL_NACA : 0
	};

	one_begin(i, who, attr, cdb);
	one_run(i);
}

static void expect(unsigned i, enum scsi_status status)
{
	assert_true(ones[i].done);
	assert_int_equal(ones[i].task.status, status);
	dev_task_end(&ones[i].task);
}

static void expect_waits(unsigned i)
{
	assert_false(ones[i].done);
}

static void tur_ends(unsigned who, enum dev_attr attr, bool naca,
		     enum scsi_status status)
{
	one_tur(LAST, who, attr, naca);
	expect(LAST, status);
}

/* An ACA on the nexus. */
static void establish(unsigned who)
{
	one_fault(LAST, who, S, NACA);
	expect(LAST, SCSI_CHECK_CONDITION);
}

static void clear_done(void *arg, int err)
{
	assert_int_equal(err, 0);
	*(bool *)arg = true;
}

static void clear_aca(unsigned who)
{
	bool over = false;

	dev_nexus_clear_aca(trio.i[who].nexus, 0, clear_done, &over);
	trio_settle();
	assert_true(over);
}

static void expect_none(void)
{
	for (unsigned who = 0; who < TRIO_N; who++)
		tur_ends(who, S, false, SCSI_GOOD);
}

/* ---- where it comes from ---- */

static void test_naca_decides_sam5_5_10_2(void **state)
{
	const uint8_t bad_bit[16] = { SCSI_TEST_UNIT_READY,
				      1, [5] = CONTROL_NACA };
	const uint8_t unknown[16] = { 0x02, [5] = CONTROL_NACA };

	(void)state;
	one_fault(0, A, S, false);
	expect(0, SCSI_CHECK_CONDITION);
	expect_none();
	tur_ends(A, S, NACA, SCSI_GOOD); /* GOOD establishes nothing */
	expect_none();
	one_begin(0, A, S, bad_bit);
	one_run(0);
	expect(0, SCSI_CHECK_CONDITION);
	tur_ends(A, S, false, SCSI_ACA_ACTIVE);
	clear_aca(A);
	one_begin(0, A, S, unknown);
	one_run(0);
	expect(0, SCSI_CHECK_CONDITION);
	tur_ends(A, S, false, SCSI_ACA_ACTIVE);
	clear_aca(A);
	expect_none();
}

/* A unit attention is a CHECK CONDITION, too; one lost its data. */
static void test_any_check_condition_does(void **state)
{
	const uint8_t cdb[16] = { SCSI_WRITE_10, [8] = 1, [9] = CONTROL_NACA };

	(void)state;
	dev_nexus_commands_cleared(trio.i[A].nexus, 0);
	tur_ends(A, S, NACA, SCSI_CHECK_CONDITION);
	tur_ends(A, S, false, SCSI_ACA_ACTIVE);
	clear_aca(A);
	one_begin(0, B, S, cdb);
	dev_task_fail(&ones[0].task, DEV_FAILURE_DATA_CRC);
	trio_settle();
	expect(0, SCSI_CHECK_CONDITION);
	tur_ends(B, S, false, SCSI_ACA_ACTIVE);
	clear_aca(B);
	expect_none();
}

/* A command that the transport refuses while there is an ACA: it never was in
 * the task set, and cannot wait for the end of that ACA. */
static void transport_fails(unsigned who)
{
	static const uint8_t ops[] = { SCSI_READ_10, SCSI_WRITE_10 };

	for (unsigned i = 0; i < ARRAY_LEN(ops); i++) {
		const uint8_t cdb[16] = { ops[i], [8] = 1, [9] = CONTROL_NACA };

		one_begin(0, who, S, cdb);
		dev_task_fail(&ones[0].task, DEV_FAILURE_UNEXPECTED_DATA);
		trio_settle();
		assert_int_equal(ones[0].task.sense_len, 0);
		expect(0, SCSI_ACA_ACTIVE);
	}
}

static void test_transport_failure_meets_an_aca_sam5_5_10_3(void **state)
{
	const uint8_t bad_bit[16] = { SCSI_TEST_UNIT_READY,
				      1, [5] = CONTROL_NACA };

	(void)state;
	for (unsigned tst = 0; tst < 2; tst++) {
		lu->ctl.tst = (uint8_t)tst;
		for (unsigned who = 0; who < TRIO_N; who++) {
			one_begin(1, who, S, bad_bit);
			one_run(1);
			expect(1, SCSI_CHECK_CONDITION);
			for (unsigned by = 0; by < TRIO_N; by++)
				if (tst == 0 || by == who)
					transport_fails(by);
			clear_aca(who);
			expect_none();
		}
	}
}

/* It got past the ACA of its own task set; by the time it fails all nexuses
 * share one, and another of them is the faulted one. */
static void test_past_an_aca_that_is_no_more(void **state)
{
	const uint8_t cdb[16] = { SCSI_WRITE_10, [8] = 1, [9] = CONTROL_NACA };

	(void)state;
	for (unsigned who = A; who <= B; who++) {
		lu->ctl.tst = 1;
		establish(who);
		one_begin(0, who, X, cdb);
		lu->ctl.tst = 0;
		establish(C);
		dev_task_fail(&ones[0].task, DEV_FAILURE_DATA_CRC);
		trio_settle();
		expect_waits(0);
		clear_aca(C);
		expect_waits(0); /* its own is still there */
		clear_aca(who);
		expect(0, SCSI_CHECK_CONDITION);
		clear_aca(who);
		expect_none();
	}
}

/* A unit attention that a command was about to report is not lost with it. */
static void test_transport_failure_keeps_an_attention(void **state)
{
	const uint8_t cdb[16] = { SCSI_WRITE_10, [8] = 1 };
	struct dev_task *t = &ones[0].task;
	struct scsi_sense s;

	(void)state;
	dev_nexus_commands_cleared(trio.i[A].nexus, 0);
	one_begin(0, A, S, cdb);
	dev_task_fail(t, DEV_FAILURE_DATA_CRC);
	trio_settle();
	assert_int_equal(scsi_sense_parse(&s, t->sense, t->sense_len), 0);
	assert_int_equal(s.asc, ASC_COMMANDS_CLEARED);
	expect(0, SCSI_CHECK_CONDITION);
}

/* What has no unit has no task set. */
static void test_no_unit_no_aca(void **state)
{
	const uint8_t cdb[16] = { SCSI_TEST_UNIT_READY, [5] = CONTROL_NACA };
	struct dev_task *t = one_new(0, A, S, cdb);

	(void)state;
	t->lun = dev_lun_encode(7);
	assert_int_equal(dev_task_begin(t), 0);
	one_run(0);
	expect(0, SCSI_CHECK_CONDITION);
	expect_none();
	clear_aca(A); /* clears nothing */
}

/* The unit next to it is another. */
static void test_other_units_are_not_touched(void **state)
{
	const uint8_t cdb[16] = { SCSI_INQUIRY, [4] = 96 };
	struct dev_task *t;

	(void)state;
	assert_int_equal(dev_lu_add(trio.server,
				    &(struct dev_lu_config){ .lun = 1 },
				    bs_null_new("null:2M", 2u << 20, 512)),
			 0);
	establish(A);
	t = one_new(0, A, S, cdb);
	t->lun = dev_lun_encode(1);
	assert_int_equal(dev_task_begin(t), 0);
	one_run(0);
	expect(0, SCSI_GOOD);
	clear_aca(A);
}

/* ---- new commands ---- */

static void faulted_nexus(void)
{
	static const enum dev_attr others[] = { DEV_ATTR_UNTAGGED, S, O, H };
	const uint8_t inquiry[16] = { SCSI_INQUIRY, [4] = 36 };

	establish(A);
	for (unsigned i = 0; i < ARRAY_LEN(others); i++) {
		tur_ends(A, others[i], false, SCSI_ACA_ACTIVE);
		tur_ends(A, others[i], NACA, SCSI_ACA_ACTIVE);
	}
	one_begin(0, A, S, inquiry); /* no command is an exception */
	one_run(0);
	expect(0, SCSI_ACA_ACTIVE);
	/* one of the ACA attribute at a time */
	one_read(1, A, X, false);
	expect_waits(1);
	tur_ends(A, X, false, SCSI_ACA_ACTIVE);
	let_go(1);
	expect(1, SCSI_GOOD);
	tur_ends(A, X, NACA, SCSI_GOOD);
	tur_ends(A, S, false, SCSI_ACA_ACTIVE); /* it is still there */
	/* one that fails: NACA = 1, a new one; NACA = 0: none any more */
	one_fault(2, A, X, NACA);
	expect(2, SCSI_CHECK_CONDITION);
	tur_ends(A, S, false, SCSI_ACA_ACTIVE);
	one_fault(2, A, X, false);
	expect(2, SCSI_CHECK_CONDITION);
	expect_none();
}

static void test_faulted_nexus_sam5_5_10_3(void **state)
{
	(void)state;
	faulted_nexus();
	lu->ctl.tst = 1;
	faulted_nexus();
}

/* SPC-4 §7.5.8: only task management ends it; what is past it goes on. */
static void tmf_only(void)
{
	establish(A);
	one_read(0, A, X, false);
	lu->ctl.tmf_only = true;
	tur_ends(A, X, false, SCSI_ACA_ACTIVE);
	tur_ends(A, X, NACA, SCSI_ACA_ACTIVE);
	tur_ends(A, S, false, SCSI_ACA_ACTIVE);
	one_fault(1, A, X, false);
	expect(1, SCSI_ACA_ACTIVE);
	let_go(1);
	expect(0, SCSI_GOOD);
	tur_ends(A, X, false, SCSI_ACA_ACTIVE);
	clear_aca(A);
	tur_ends(A, X, false, SCSI_CHECK_CONDITION); /* there is none */
	expect_none();
	lu->ctl.tmf_only = false;
}

static void test_task_management_only_spc4_7_5_8(void **state)
{
	(void)state;
	tmf_only();
	lu->ctl.tst = 1;
	tmf_only();
}

static void test_other_nexuses_sam5_5_10_4(void **state)
{
	(void)state;
	establish(A);
	for (unsigned who = B; who <= C; who++) {
		tur_ends(who, S, false, SCSI_BUSY);
		tur_ends(who, O, false, SCSI_BUSY);
		tur_ends(who, S, NACA, SCSI_ACA_ACTIVE);
		tur_ends(who, X, false, SCSI_ACA_ACTIVE);
		clear_aca(who); /* not theirs */
		tur_ends(who, S, false, SCSI_BUSY);
	}
	tur_ends(A, S, false, SCSI_ACA_ACTIVE);
	clear_aca(A);
	expect_none();
}

static void test_other_task_sets_sam5_5_10_4(void **state)
{
	(void)state;
	lu->ctl.tst = 1;
	establish(A);
	tur_ends(B, S, false, SCSI_GOOD);
	establish(B); /* each has its own */
	tur_ends(A, S, false, SCSI_ACA_ACTIVE);
	tur_ends(B, S, false, SCSI_ACA_ACTIVE);
	tur_ends(C, S, NACA, SCSI_GOOD);
	clear_aca(B);
	tur_ends(A, S, false, SCSI_ACA_ACTIVE);
	tur_ends(B, S, false, SCSI_GOOD);
	clear_aca(A);
	expect_none();
}

static void test_aca_attribute_without_aca(void **state)
{
	struct dev_task *t = &ones[LAST].task;
	struct scsi_sense s;

	(void)state;
	one_tur(LAST, A, X, false);
	assert_int_equal(scsi_sense_parse(&s, t->sense, t->sense_len), 0);
	assert_int_equal(s.key, SENSE_ILLEGAL_REQUEST);
	assert_int_equal(s.asc, ASC_INVALID_MESSAGE);
	expect(LAST, SCSI_CHECK_CONDITION);
	/* in a task set of its own another's ACA is none, either */
	lu->ctl.tst = 1;
	establish(A);
	tur_ends(B, X, false, SCSI_CHECK_CONDITION);
	clear_aca(A);
}

/* ---- what was there before ---- */

static void test_blocked_ones_end_behind_it_sam5_5_10_2(void **state)
{
	(void)state;
	one_read(0, A, S, false);
	one_read(1, B, S, false);
	one_read(2, A, O, false); /* dormant */
	establish(A);
	let_go(2); /* the store is done with both */
	expect_waits(0);
	expect_waits(1);
	expect_waits(2);
	one_read(3, A, X, false); /* past the ordered one */
	let_go(1);
	expect(3, SCSI_GOOD);
	expect_held(0);
	clear_aca(A);
	expect(0, SCSI_GOOD);
	expect(1, SCSI_GOOD);
	expect_held(1);
	let_go(1);
	expect(2, SCSI_GOOD);
	expect_none();
}

/* What came before, but has its data only now, waits before it starts. */
static void test_blocked_before_it_starts(void **state)
{
	const uint8_t cdb[16] = { SCSI_WRITE_10, [8] = 1 };

	(void)state;
	one_begin(0, A, S, cdb);
	one_begin(1, B, H, cdb);
	establish(C);
	one_run(0);
	one_run(1);
	expect_held(0);
	clear_aca(C);
	expect_held(2);
	let_go(2);
	expect(0, SCSI_GOOD);
	expect(1, SCSI_GOOD);
}

static void test_own_task_set_blocks_only_its_own(void **state)
{
	(void)state;
	lu->ctl.tst = 1;
	one_read(0, A, S, false);
	one_read(1, B, S, false);
	establish(A);
	let_go(2);
	expect_waits(0);
	expect(1, SCSI_GOOD);
	clear_aca(A);
	expect(0, SCSI_GOOD);
}

/* A blocked one that fails does so when the first ACA is over. */
static void second_fault(unsigned who)
{
	const uint8_t bad[16] = {
		SCSI_WRITE_10, [2] = 0xff, [8] = 1, [9] = CONTROL_NACA
	};

	one_begin(0, who, S, bad);
	establish(A);
	one_run(0);
	expect_waits(0);
	clear_aca(A);
	expect(0, SCSI_CHECK_CONDITION);
	tur_ends(who, S, false, SCSI_ACA_ACTIVE);
	tur_ends(C, S, false, SCSI_BUSY);
	clear_aca(who);
	expect_none();
}

static void test_one_aca_at_a_time(void **state)
{
	(void)state;
	second_fault(A);
	second_fault(B);
}

/* Two fail on two workers at the same moment: the unit decides. */
static void test_two_faults_at_once(void **state)
{
	const uint8_t bad[16] = {
		SCSI_READ_10, [2] = 0xff, [8] = 1, [9] = CONTROL_NACA
	};

	(void)state;
	one_begin(0, B, S, bad);
	one_begin(1, C, S, bad);
	dev_task_execute(&ones[0].task);
	dev_task_execute(&ones[1].task);
	expect_waits(0);
	trio_settle();
	expect(0, SCSI_CHECK_CONDITION);
	expect_waits(1);
	clear_aca(B);
	expect(1, SCSI_CHECK_CONDITION);
	tur_ends(B, S, false, SCSI_BUSY);
	clear_aca(C);
	expect_none();
	/* and two of one nexus */
	one_begin(0, B, S, bad);
	one_begin(1, B, S, bad);
	dev_task_execute(&ones[0].task);
	dev_task_execute(&ones[1].task);
	trio_settle();
	expect(0, SCSI_CHECK_CONDITION);
	expect_waits(1);
	clear_aca(B);
	expect(1, SCSI_CHECK_CONDITION);
	clear_aca(B);
	expect_none();
}

static void test_abort_of_blocked_ones(void **state)
{
	(void)state;
	one_read(0, A, S, false);
	one_read(1, A, O, false);
	one_read(2, B, S, false);
	establish(A);
	let_go(1);
	for (unsigned i = 0; i < 3; i++)
		dev_task_abort(&ones[i].task, one_released);
	assert_true(ones[0].released && ones[1].released);
	assert_false(ones[2].released); /* its I/O is under way */
	let_go(1);
	assert_true(ones[2].released);
	for (unsigned i = 0; i < 3; i++)
		dev_task_end(&ones[i].task);
	clear_aca(A);
	expect_none();
}

/* Aborted while its ACA comes into force: it vanishes, the ACA stays. */
static void test_abort_of_the_faulted_one(void **state)
{
	const uint8_t bad[16] = {
		SCSI_READ_10, [2] = 0xff, [8] = 1, [9] = CONTROL_NACA
	};

	(void)state;
	one_begin(0, B, S, bad);
	dev_task_execute(&ones[0].task);
	dev_task_abort(&ones[0].task, one_released);
	assert_false(ones[0].released);
	trio_settle();
	assert_true(ones[0].released);
	assert_false(ones[0].done);
	dev_task_end(&ones[0].task);
	tur_ends(B, S, false, SCSI_ACA_ACTIVE);
	clear_aca(B);
	expect_none();
}

/* ---- QERR: whose commands go, whose are blocked ---- */

static void test_qerr_sam5_5_10_2(void **state)
{
	static const struct {
		uint8_t qerr, tst;
		unsigned aborts[TRIO_N];
		bool blocked[TRIO_N];
	} cases[] = {
		{ 0, 0, { 0, 0, 0 }, { true, true, true } },
		{ 0, 1, { 0, 0, 0 }, { false, true, false } },
		{ 1, 0, { 1, 1, 1 }, { true, true, true } },
		{ 1, 1, { 0, 1, 0 }, { false, true, false } },
		{ 3, 0, { 0, 1, 0 }, { true, true, true } },
		{ 3, 1, { 0, 1, 0 }, { false, true, false } },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		lu->ctl.qerr = cases[i].qerr;
		lu->ctl.tst = cases[i].tst;
		for (unsigned who = 0; who < TRIO_N; who++) {
			trio.i[who].aborts = 0;
			one_read(who, who, S, false);
		}
		establish(B);
		let_go(3);
		for (unsigned who = 0; who < TRIO_N; who++) {
			assert_int_equal(trio.i[who].aborts,
					 cases[i].aborts[who]);
			assert_int_equal(!ones[who].done,
					 cases[i].blocked[who]);
		}
		clear_aca(B);
		for (unsigned who = 0; who < TRIO_N; who++)
			expect(who, SCSI_GOOD);
		expect_none();
	}
}

/* One of the ACA attribute that fails takes others along, too. */
static void test_qerr_of_the_aca_task(void **state)
{
	(void)state;
	establish(A);
	lu->ctl.qerr = 1;
	trio.i[B].aborts = 0;
	one_fault(0, A, X, false);
	expect(0, SCSI_CHECK_CONDITION);
	assert_int_equal(trio.i[B].aborts, 1);
	expect_none();
}

/* ---- its end ---- */

static void reset(unsigned who)
{
	trio_reset(who);
	all_sense_taken();
}

static void test_reset_clears_sam5_5_10_5(void **state)
{
	(void)state;
	establish(A);
	reset(B);
	expect_none();
	lu->ctl.tst = 1;
	establish(A);
	establish(C);
	reset(B);
	expect_none();
}

static void test_nexus_loss_clears_sam5_5_10_5(void **state)
{
	(void)state;
	one_read(0, B, S, false);
	establish(A);
	let_go(1);
	expect_waits(0);
	trio_logout(A);
	expect(0, SCSI_GOOD);
	tur_ends(B, S, false, SCSI_GOOD);
	trio_login(A);
	no_sense_left(A);
	expect_none();
	/* what is not the loser's stays */
	establish(B);
	trio_logout(A);
	tur_ends(C, S, false, SCSI_BUSY);
	trio_login(A); /* it comes back to it */
	tur_ends(A, S, false, SCSI_BUSY);
	clear_aca(B);
	no_sense_left(A);
	expect_none();
}

/* The nexus goes while its CLEAR ACA is on its way. */
static void test_nexus_loss_during_clear(void **state)
{
	bool over = false;

	(void)state;
	establish(B);
	dev_nexus_clear_aca(trio.i[B].nexus, 0, clear_done, &over);
	trio_logout(B);
	assert_true(over);
	trio_login(B);
	no_sense_left(B);
	expect_none();
}

/* ---- PREEMPT AND ABORT (SPC-4 §5.13.11.2.6) ---- */

static void pr_out(unsigned i, unsigned who, enum dev_attr attr, bool naca,
		   uint8_t action, uint8_t type, uint64_t key, uint64_t sa_key)
{
	const uint8_t cdb[16] = {
		SCSI_PERSISTENT_RESERVE_OUT, action,
		type, [8] = 24, [9] = naca ? CONTROL_NACA : 0
	};
	struct dev_task *t = &ones[i].task;

	one_begin(i, who, attr, cdb);
	if (t->out_len) {
		memset(t->mem.buf, 0, 24);
		put_be64(t->mem.buf, key);
		put_be64((uint8_t *)t->mem.buf + 8, sa_key);
	}
	dev_task_execute(t);
	trio_settle();
}

static void register_all(void)
{
	for (unsigned who = 0; who < TRIO_N; who++) {
		pr_out(0, who, S, false, 0, 0, 0, who + 1);
		expect(0, SCSI_GOOD);
	}
}

static void preempt(unsigned who, enum dev_attr attr, bool naca,
		    uint64_t victim, enum scsi_status status)
{
	pr_out(0, who, attr, naca, 5, 1, who + 1, victim);
	expect(0, status);
}

static void test_preempt_and_abort_of_the_faulted(void **state)
{
	(void)state;
	register_all();
	establish(A);
	/* ours is not the one that is preempted: SAM-5 §5.10.4 counts */
	preempt(B, S, false, C + 1, SCSI_BUSY);
	preempt(B, S, NACA, C + 1, SCSI_ACA_ACTIVE);
	preempt(B, X, false, A + 1, SCSI_ACA_ACTIVE);
	preempt(A, S, false, C + 1, SCSI_ACA_ACTIVE);
	tur_ends(B, S, false, SCSI_BUSY); /* nothing has changed */
	/* and with TMF_ONLY it is no command of the faulted one */
	lu->ctl.tmf_only = true;
	preempt(B, S, false, A + 1, SCSI_GOOD);
	expect_attention(A, ASC_REGISTRATIONS_PREEMPTED);
	expect_none();
}

/* The faulted one may, by a command of the ACA attribute: it stays faulted. */
static void test_preempt_and_abort_by_the_faulted(void **state)
{
	(void)state;
	register_all();
	establish(A);
	preempt(A, X, false, C + 1, SCSI_GOOD);
	tur_ends(B, S, false, SCSI_BUSY);
	clear_aca(A);
	expect_attention(C, ASC_REGISTRATIONS_PREEMPTED);
	expect_none();
}

static void test_preempt_and_abort_own_task_sets(void **state)
{
	(void)state;
	lu->ctl.tst = 1;
	register_all();
	establish(A);
	establish(C);
	preempt(B, S, false, A + 1, SCSI_GOOD);
	expect_attention(A, ASC_REGISTRATIONS_PREEMPTED);
	tur_ends(A, S, false, SCSI_GOOD);
	tur_ends(C, S, false, SCSI_ACA_ACTIVE);
	clear_aca(C);
}

/* All registrants, key 0: all of it goes, whoever is faulted. */
static void test_preempt_and_abort_all_registrants(void **state)
{
	(void)state;
	pr_out(0, B, S, false, 0, 0, 0, B + 1);
	expect(0, SCSI_GOOD);
	pr_out(0, B, S, false, 1, 7, B + 1, 0); /* Write Exclusive, AR */
	expect(0, SCSI_GOOD);
	establish(A);
	pr_out(0, B, S, false, 5, 7, B + 1, 0);
	expect(0, SCSI_GOOD);
	expect_none();
}

#define TA(name) cmocka_unit_test_setup_teardown(name, aca_open, trio_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TA(test_naca_decides_sam5_5_10_2),
		TA(test_any_check_condition_does),
		TA(test_transport_failure_meets_an_aca_sam5_5_10_3),
		TA(test_past_an_aca_that_is_no_more),
		TA(test_transport_failure_keeps_an_attention),
		TA(test_no_unit_no_aca),
		TA(test_other_units_are_not_touched),
		TA(test_faulted_nexus_sam5_5_10_3),
		TA(test_task_management_only_spc4_7_5_8),
		TA(test_other_nexuses_sam5_5_10_4),
		TA(test_other_task_sets_sam5_5_10_4),
		TA(test_aca_attribute_without_aca),
		TA(test_blocked_ones_end_behind_it_sam5_5_10_2),
		TA(test_blocked_before_it_starts),
		TA(test_own_task_set_blocks_only_its_own),
		TA(test_one_aca_at_a_time),
		TA(test_two_faults_at_once),
		TA(test_abort_of_blocked_ones),
		TA(test_abort_of_the_faulted_one),
		TA(test_qerr_sam5_5_10_2),
		TA(test_qerr_of_the_aca_task),
		TA(test_reset_clears_sam5_5_10_5),
		TA(test_nexus_loss_clears_sam5_5_10_5),
		TA(test_nexus_loss_during_clear),
		TA(test_preempt_and_abort_of_the_faulted),
		TA(test_preempt_and_abort_by_the_faulted),
		TA(test_preempt_and_abort_own_task_sets),
		TA(test_preempt_and_abort_all_registrants),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
