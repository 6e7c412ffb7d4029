/* SPDX-License-Identifier: BSD-2-Clause */
/* aca_test.c: auto contingent allegiance (SAM-5 §5.10) of three initiators on
 * three workers. The backstore completes requests when the test releases them. */
#include "cmds.h"
#include "device/unit/command.h"

#define NACA true
#define LAST (CMDS - 1)

static struct dev_lu *lu;

static int aca_open(void **state)
{
	cmds_open(state);
	lu = dev_lu_get(three.server, 0);
	return 0;
}

/* A READ of one block, which waits in the backstore. */
static void cmd_read(unsigned i, unsigned who, enum dev_attr attr, bool naca)
{
	const uint8_t cdb[16] = {
		SCSI_READ_10, [8] = 1, [9] = naca ? CONTROL_NACA : 0
	};

	cmd_begin(i, who, attr, cdb);
	cmd_run(i);
}

/* A TEST UNIT READY, which ends at once. */
static void cmd_tur(unsigned i, unsigned who, enum dev_attr attr, bool naca)
{
	const uint8_t cdb[16] = {
		SCSI_TEST_UNIT_READY, [5] = naca ? CONTROL_NACA : 0
	};

	cmd_begin(i, who, attr, cdb);
	cmd_run(i);
}

static void cmd_fault(unsigned i, unsigned who, enum dev_attr attr, bool naca)
{
	const uint8_t cdb[16] = {
		SCSI_READ_10, [2] = 0xff, [8] = 1, [9] = naca ? CONTROL_NACA : 0
	};

	cmd_begin(i, who, attr, cdb);
	cmd_run(i);
}

static void expect(unsigned i, enum scsi_status status)
{
	assert_true(cmds[i].done);
	assert_int_equal(cmds[i].task.status, status);
	dev_task_end(&cmds[i].task);
}

static void expect_waits(unsigned i)
{
	assert_false(cmds[i].done);
}

static void tur_ends(unsigned who, enum dev_attr attr, bool naca,
		     enum scsi_status status)
{
	cmd_tur(LAST, who, attr, naca);
	expect(LAST, status);
}

/* establish makes `who` the faulted nexus of an ACA. */
static void establish(unsigned who)
{
	cmd_fault(LAST, who, S, NACA);
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

	dev_nexus_clear_aca(three.i[who].nexus, 0, clear_done, &over);
	three_settle();
	assert_true(over);
}

static void expect_none(void)
{
	for (unsigned who = 0; who < INITIATORS; who++)
		tur_ends(who, S, false, SCSI_GOOD);
}

/* ---- the commands that establish an ACA ---- */

static void test_naca_decides_sam5_5_10_2(void **state)
{
	const uint8_t bad_bit[16] = { SCSI_TEST_UNIT_READY,
				      1, [5] = CONTROL_NACA };
	const uint8_t unknown[16] = { 0x02, [5] = CONTROL_NACA };

	(void)state;
	cmd_fault(0, A, S, false);
	expect(0, SCSI_CHECK_CONDITION);
	expect_none();
	tur_ends(A, S, NACA, SCSI_GOOD); /* GOOD establishes no ACA */
	expect_none();
	cmd_begin(0, A, S, bad_bit);
	cmd_run(0);
	expect(0, SCSI_CHECK_CONDITION);
	tur_ends(A, S, false, SCSI_ACA_ACTIVE);
	clear_aca(A);
	cmd_begin(0, A, S, unknown);
	cmd_run(0);
	expect(0, SCSI_CHECK_CONDITION);
	tur_ends(A, S, false, SCSI_ACA_ACTIVE);
	clear_aca(A);
	expect_none();
}

/* A unit attention is a CHECK CONDITION, too, and so is the loss of write
 * data. */
static void test_any_check_condition_does(void **state)
{
	const uint8_t cdb[16] = { SCSI_WRITE_10, [8] = 1, [9] = CONTROL_NACA };

	(void)state;
	dev_nexus_commands_cleared(three.i[A].nexus,
				   dev_lu_get(three.server, 0));
	tur_ends(A, S, NACA, SCSI_CHECK_CONDITION);
	tur_ends(A, S, false, SCSI_ACA_ACTIVE);
	clear_aca(A);
	cmd_begin(0, B, S, cdb);
	dev_task_fail(&cmds[0].task, DEV_FAILURE_DATA_CRC);
	three_settle();
	expect(0, SCSI_CHECK_CONDITION);
	tur_ends(B, S, false, SCSI_ACA_ACTIVE);
	clear_aca(B);
	expect_none();
}

/* transport_fails sends a command that the transport refuses during an ACA. The
 * command was never in the task set and cannot wait for the end of the ACA. */
static void transport_fails(unsigned who)
{
	static const uint8_t ops[] = { SCSI_READ_10, SCSI_WRITE_10 };

	for (unsigned i = 0; i < ARRAY_LEN(ops); i++) {
		const uint8_t cdb[16] = { ops[i], [8] = 1, [9] = CONTROL_NACA };

		cmd_begin(0, who, S, cdb);
		dev_task_fail(&cmds[0].task, DEV_FAILURE_UNEXPECTED_DATA);
		three_settle();
		assert_int_equal(cmds[0].task.sense.len, 0);
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
		for (unsigned who = 0; who < INITIATORS; who++) {
			cmd_begin(1, who, S, bad_bit);
			cmd_run(1);
			expect(1, SCSI_CHECK_CONDITION);
			for (unsigned by = 0; by < INITIATORS; by++)
				if (tst == 0 || by == who)
					transport_fails(by);
			clear_aca(who);
			expect_none();
		}
	}
}

/* The command passed the ACA of its own task set. When the command fails, all
 * nexuses share one task set, and another nexus is the faulted one. */
static void test_past_an_aca_of_own_task_sets(void **state)
{
	const uint8_t cdb[16] = { SCSI_WRITE_10, [8] = 1, [9] = CONTROL_NACA };

	(void)state;
	for (unsigned who = A; who <= B; who++) {
		lu->ctl.tst = 1;
		establish(who);
		cmd_begin(0, who, X, cdb);
		lu->ctl.tst = 0;
		establish(C);
		dev_task_fail(&cmds[0].task, DEV_FAILURE_DATA_CRC);
		three_settle();
		expect_waits(0);
		clear_aca(C);
		expect_waits(0); /* the ACA of its own task set still exists */
		clear_aca(who);
		expect(0, SCSI_CHECK_CONDITION);
		clear_aca(who);
		expect_none();
	}
}

/* A command that fails before it reports a unit attention leaves the attention
 * pending. */
static void test_transport_failure_keeps_an_attention(void **state)
{
	const uint8_t cdb[16] = { SCSI_WRITE_10, [8] = 1 };
	struct dev_task *t = &cmds[0].task;
	struct scsi_sense s;

	(void)state;
	dev_nexus_commands_cleared(three.i[A].nexus,
				   dev_lu_get(three.server, 0));
	cmd_begin(0, A, S, cdb);
	dev_task_fail(t, DEV_FAILURE_DATA_CRC);
	three_settle();
	assert_int_equal(scsi_sense_parse(&s, t->sense.data, t->sense.len), 0);
	assert_int_equal(s.asc, ASC_COMMANDS_CLEARED);
	expect(0, SCSI_CHECK_CONDITION);
}

/* A command to a LUN without a unit has no task set. */
static void test_no_unit_no_aca(void **state)
{
	const uint8_t cdb[16] = { SCSI_TEST_UNIT_READY, [5] = CONTROL_NACA };
	struct dev_task *t = cmd_new(0, A, S, cdb);

	(void)state;
	t->lun = dev_lun_encode(7);
	assert_int_equal(dev_task_begin(t), 0);
	cmd_run(0);
	expect(0, SCSI_CHECK_CONDITION);
	expect_none();
	clear_aca(A); /* there is no ACA to clear */
}

/* An ACA of one unit does not block commands to another unit. */
static void test_other_units_are_not_touched(void **state)
{
	const uint8_t cdb[16] = { SCSI_INQUIRY, [4] = 96 };
	struct dev_task *t;

	(void)state;
	assert_int_equal(dev_lu_add(three.server,
				    &(struct dev_lu_config){ .lun = 1 },
				    bs_null_new("null:2M", 2u << 20, 512)),
			 0);
	three_settle();
	all_sense_taken();
	establish(A);
	t = cmd_new(0, A, S, cdb);
	t->lun = dev_lun_encode(1);
	assert_int_equal(dev_task_begin(t), 0);
	cmd_run(0);
	expect(0, SCSI_GOOD);
	clear_aca(A);
}

/* ---- new commands during an ACA ---- */

static void faulted_nexus(void)
{
	static const enum dev_attr others[] = { DEV_ATTR_UNTAGGED, S, O, H };
	const uint8_t inquiry[16] = { SCSI_INQUIRY, [4] = 36 };

	establish(A);
	for (unsigned i = 0; i < ARRAY_LEN(others); i++) {
		tur_ends(A, others[i], false, SCSI_ACA_ACTIVE);
		tur_ends(A, others[i], NACA, SCSI_ACA_ACTIVE);
	}
	cmd_begin(0, A, S, inquiry); /* INQUIRY is not an exception */
	cmd_run(0);
	expect(0, SCSI_ACA_ACTIVE);
	/* The task set holds one task with the ACA attribute at a time. */
	cmd_read(1, A, X, false);
	expect_waits(1);
	tur_ends(A, X, false, SCSI_ACA_ACTIVE);
	release_held(1);
	expect(1, SCSI_GOOD);
	tur_ends(A, X, NACA, SCSI_GOOD);
	tur_ends(A, S, false, SCSI_ACA_ACTIVE); /* the ACA still exists */
	/* A failing task with the ACA attribute: NACA = 1 establishes a new
	 * ACA, NACA = 0 ends the ACA. */
	cmd_fault(2, A, X, NACA);
	expect(2, SCSI_CHECK_CONDITION);
	tur_ends(A, S, false, SCSI_ACA_ACTIVE);
	cmd_fault(2, A, X, false);
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

/* SPC-4 §7.5.8: with TMF_ONLY only task management clears the ACA; a task that
 * has passed the ACA goes on. */
static void tmf_only(void)
{
	establish(A);
	cmd_read(0, A, X, false);
	lu->ctl.tmf_only = true;
	tur_ends(A, X, false, SCSI_ACA_ACTIVE);
	tur_ends(A, X, NACA, SCSI_ACA_ACTIVE);
	tur_ends(A, S, false, SCSI_ACA_ACTIVE);
	cmd_fault(1, A, X, false);
	expect(1, SCSI_ACA_ACTIVE);
	release_held(1);
	expect(0, SCSI_GOOD);
	tur_ends(A, X, false, SCSI_ACA_ACTIVE);
	clear_aca(A);
	tur_ends(A, X, false,
		 SCSI_CHECK_CONDITION); /* there is no ACA any more */
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
		clear_aca(who); /* only the faulted nexus can clear the ACA */
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
	establish(B); /* each nexus has an ACA of its own */
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
	struct dev_task *t = &cmds[LAST].task;
	struct scsi_sense s;

	(void)state;
	cmd_tur(LAST, A, X, false);
	assert_int_equal(scsi_sense_parse(&s, t->sense.data, t->sense.len), 0);
	assert_int_equal(s.key, SENSE_ILLEGAL_REQUEST);
	assert_int_equal(s.asc, ASC_INVALID_MESSAGE);
	expect(LAST, SCSI_CHECK_CONDITION);
	/* With task sets of their own, a nexus does not see the ACA of another
	 * nexus. */
	lu->ctl.tst = 1;
	establish(A);
	tur_ends(B, X, false, SCSI_CHECK_CONDITION);
	clear_aca(A);
}

/* ---- commands that began before the ACA ---- */

static void test_blocked_commands_end_after_the_aca_sam5_5_10_2(void **state)
{
	(void)state;
	cmd_read(0, A, S, false);
	cmd_read(1, B, S, false);
	cmd_read(2, A, O, false); /* dormant */
	establish(A);
	release_held(2); /* the backstore completes both requests */
	expect_waits(0);
	expect_waits(1);
	expect_waits(2);
	cmd_read(
		3, A, X,
		false); /* the task with the ACA attribute passes the ORDERED one */
	release_held(1);
	expect(3, SCSI_GOOD);
	expect_held(0);
	clear_aca(A);
	expect(0, SCSI_GOOD);
	expect(1, SCSI_GOOD);
	expect_held(1);
	release_held(1);
	expect(2, SCSI_GOOD);
	expect_none();
}

/* A command that began before the ACA waits if its data arrive during the
 * ACA. */
static void test_blocked_before_it_starts(void **state)
{
	const uint8_t cdb[16] = { SCSI_WRITE_10, [8] = 1 };

	(void)state;
	cmd_begin(0, A, S, cdb);
	cmd_begin(1, B, H, cdb);
	establish(C);
	cmd_run(0);
	cmd_run(1);
	expect_held(0);
	clear_aca(C);
	expect_held(2);
	release_held(2);
	expect(0, SCSI_GOOD);
	expect(1, SCSI_GOOD);
}

static void test_own_task_set_blocks_only_its_own(void **state)
{
	(void)state;
	lu->ctl.tst = 1;
	cmd_read(0, A, S, false);
	cmd_read(1, B, S, false);
	establish(A);
	release_held(2);
	expect_waits(0);
	expect(1, SCSI_GOOD);
	clear_aca(A);
	expect(0, SCSI_GOOD);
}

/* second_fault: a blocked command that fails reports this after the first ACA
 * has ended. */
static void second_fault(unsigned who)
{
	const uint8_t bad[16] = {
		SCSI_WRITE_10, [2] = 0xff, [8] = 1, [9] = CONTROL_NACA
	};

	cmd_begin(0, who, S, bad);
	establish(A);
	cmd_run(0);
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

/* Two commands fail on two workers at the same time: the unit decides which
 * nexus is faulted. */
static void test_two_faults_at_once(void **state)
{
	const uint8_t bad[16] = {
		SCSI_READ_10, [2] = 0xff, [8] = 1, [9] = CONTROL_NACA
	};

	(void)state;
	cmd_begin(0, B, S, bad);
	cmd_begin(1, C, S, bad);
	dev_task_execute(&cmds[0].task);
	dev_task_execute(&cmds[1].task);
	expect_waits(0);
	three_settle();
	expect(0, SCSI_CHECK_CONDITION);
	expect_waits(1);
	clear_aca(B);
	expect(1, SCSI_CHECK_CONDITION);
	tur_ends(B, S, false, SCSI_BUSY);
	clear_aca(C);
	expect_none();
	/* Two commands of one nexus fail at the same time. */
	cmd_begin(0, B, S, bad);
	cmd_begin(1, B, S, bad);
	dev_task_execute(&cmds[0].task);
	dev_task_execute(&cmds[1].task);
	three_settle();
	expect(0, SCSI_CHECK_CONDITION);
	expect_waits(1);
	clear_aca(B);
	expect(1, SCSI_CHECK_CONDITION);
	clear_aca(B);
	expect_none();
}

static void test_abort_of_blocked_commands(void **state)
{
	(void)state;
	cmd_read(0, A, S, false);
	cmd_read(1, A, O, false);
	cmd_read(2, B, S, false);
	establish(A);
	release_held(1);
	for (unsigned i = 0; i < 3; i++)
		dev_task_abort(&cmds[i].task, cmd_released);
	assert_true(cmds[0].released && cmds[1].released);
	assert_false(cmds[2].released); /* its I/O is in progress */
	release_held(1);
	assert_true(cmds[2].released);
	for (unsigned i = 0; i < 3; i++)
		dev_task_end(&cmds[i].task);
	clear_aca(A);
	expect_none();
}

/* The command that establishes an ACA is aborted during the change: the command
 * ends without a response, the ACA remains. */
static void test_abort_of_the_faulting_command(void **state)
{
	const uint8_t bad[16] = {
		SCSI_READ_10, [2] = 0xff, [8] = 1, [9] = CONTROL_NACA
	};

	(void)state;
	cmd_begin(0, B, S, bad);
	dev_task_execute(&cmds[0].task);
	dev_task_abort(&cmds[0].task, cmd_released);
	assert_false(cmds[0].released);
	three_settle();
	assert_true(cmds[0].released);
	assert_false(cmds[0].done);
	dev_task_end(&cmds[0].task);
	tur_ends(B, S, false, SCSI_ACA_ACTIVE);
	clear_aca(B);
	expect_none();
}

/* ---- QERR: which commands are aborted, which are blocked ---- */

static void test_qerr_sam5_5_10_2(void **state)
{
	static const struct {
		uint8_t qerr, tst;
		unsigned aborts[INITIATORS];
		bool blocked[INITIATORS];
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
		for (unsigned who = 0; who < INITIATORS; who++) {
			three.i[who].aborts = 0;
			cmd_read(who, who, S, false);
		}
		establish(B);
		release_held(3);
		for (unsigned who = 0; who < INITIATORS; who++) {
			assert_int_equal(three.i[who].aborts,
					 cases[i].aborts[who]);
			assert_int_equal(!cmds[who].done,
					 cases[i].blocked[who]);
		}
		clear_aca(B);
		for (unsigned who = 0; who < INITIATORS; who++)
			expect(who, SCSI_GOOD);
		expect_none();
	}
}

/* A failing task with the ACA attribute aborts other tasks, too. */
static void test_qerr_of_the_aca_task(void **state)
{
	(void)state;
	establish(A);
	lu->ctl.qerr = 1;
	three.i[B].aborts = 0;
	cmd_fault(0, A, X, false);
	expect(0, SCSI_CHECK_CONDITION);
	assert_int_equal(three.i[B].aborts, 1);
	expect_none();
}

/* ---- the end of an ACA ---- */

static void reset(unsigned who)
{
	three_reset(who);
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
	cmd_read(0, B, S, false);
	establish(A);
	release_held(1);
	expect_waits(0);
	three_logout(A);
	expect(0, SCSI_GOOD);
	tur_ends(B, S, false, SCSI_GOOD);
	three_login(A);
	no_sense_left(A);
	expect_none();
	/* The ACA of another nexus remains. */
	establish(B);
	three_logout(A);
	tur_ends(C, S, false, SCSI_BUSY);
	three_login(A); /* a new session of A is blocked by the ACA of B */
	tur_ends(A, S, false, SCSI_BUSY);
	clear_aca(B);
	no_sense_left(A);
	expect_none();
}

/* The nexus ends while its CLEAR ACA is in progress. */
static void test_nexus_loss_during_clear(void **state)
{
	bool over = false;

	(void)state;
	establish(B);
	dev_nexus_clear_aca(three.i[B].nexus, 0, clear_done, &over);
	three_logout(B);
	assert_true(over);
	three_login(B);
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
	struct dev_task *t = &cmds[i].task;

	cmd_begin(i, who, attr, cdb);
	if (t->out_len) {
		memset(t->own.mem.buf, 0, 24);
		put_be64(t->own.mem.buf, key);
		put_be64((uint8_t *)t->own.mem.buf + 8, sa_key);
	}
	dev_task_execute(t);
	three_settle();
}

static void register_all(void)
{
	for (unsigned who = 0; who < INITIATORS; who++) {
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
	/* The faulted nexus is not the preempted one, so SAM-5 §5.10.4
	 * applies. */
	preempt(B, S, false, C + 1, SCSI_BUSY);
	preempt(B, S, NACA, C + 1, SCSI_ACA_ACTIVE);
	preempt(B, X, false, A + 1, SCSI_ACA_ACTIVE);
	preempt(A, S, false, C + 1, SCSI_ACA_ACTIVE);
	tur_ends(B, S, false, SCSI_BUSY); /* nothing has changed */
	/* With TMF_ONLY the faulted nexus may not do it either. */
	lu->ctl.tmf_only = true;
	preempt(B, S, false, A + 1, SCSI_GOOD);
	expect_attention(A, ASC_REGISTRATIONS_PREEMPTED);
	expect_none();
}

/* The faulted nexus may preempt with a command of the ACA attribute, and stays
 * the faulted nexus. */
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

/* All registrants, key 0: the ACA is cleared, whichever nexus is faulted. */
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

#define TA(name) cmocka_unit_test_setup_teardown(name, aca_open, three_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TA(test_naca_decides_sam5_5_10_2),
		TA(test_any_check_condition_does),
		TA(test_transport_failure_meets_an_aca_sam5_5_10_3),
		TA(test_past_an_aca_of_own_task_sets),
		TA(test_transport_failure_keeps_an_attention),
		TA(test_no_unit_no_aca),
		TA(test_other_units_are_not_touched),
		TA(test_faulted_nexus_sam5_5_10_3),
		TA(test_task_management_only_spc4_7_5_8),
		TA(test_other_nexuses_sam5_5_10_4),
		TA(test_other_task_sets_sam5_5_10_4),
		TA(test_aca_attribute_without_aca),
		TA(test_blocked_commands_end_after_the_aca_sam5_5_10_2),
		TA(test_blocked_before_it_starts),
		TA(test_own_task_set_blocks_only_its_own),
		TA(test_one_aca_at_a_time),
		TA(test_two_faults_at_once),
		TA(test_abort_of_blocked_commands),
		TA(test_abort_of_the_faulting_command),
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
