/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lost_test.c: a command that the target never got, at iSCSIProtocolLevel 1:
 * the answers to pings do not acknowledge it (RFC 7143 §4.2.2.1), and an ABORT
 * TASK with its CmdSN fills the gap that it left (§7.11).
 */
#include "unit/initiator/rig.h"

static struct ini_task tasks[2];
static uint8_t blocks[2][512];
static struct iovec iov[2];
static unsigned ended;

static void task_done(struct ini_task *t)
{
	(void)t;
	ended++;
}

/* Two READs are out, with CmdSN 1 and 2. */
static void two_reads(void)
{
	ended = 0;
	begin();
	ANSWER(USUAL);
	assert_true(is_logged_in);
	assert_int_equal(ini_params(s)->protocol_level, 1);
	for (unsigned i = 0; i < 2; i++) {
		iov[i] = (struct iovec){ blocks[i], 512 };
		tasks[i] = (struct ini_task){ .cdb = { SCSI_READ_10, [8] = 1 },
					      .cdb_len = 10,
					      .read = true,
					      .in = bufv_of(&iov[i], 1),
					      .deadline = XTIME_NEVER,
					      .done = task_done };
		ini_submit(s, &tasks[i], 0);
		assert_int_equal(sent(i, NULL, 0).cmdsn, i + 1);
	}
	flush();
}

/* Time is now t seconds; each ping that goes out is answered. Returns the other
 * request that does, if there is one. */
static struct iscsi_pdu at(unsigned t, uint32_t expcmdsn)
{
	struct iscsi_pdu pings[4], other = { .op = ISCSI_NOP_OUT };
	struct iscsi_pdu in = { .op = ISCSI_NOP_IN,
				.final = true,
				.ttt = ISCSI_RESERVED_TAG,
				.expcmdsn = expcmdsn,
				.maxcmdsn = 16 };
	unsigned n = 0;

	ini_expire(s, t * XTIME_S);
	for (unsigned i = 0; fake_rcap_wr(&f, i); i++) {
		struct iscsi_pdu p = sent(i, NULL, 0);

		assert_true(p.immediate);
		if (p.op == ISCSI_NOP_OUT)
			pings[n++] = p;
		else
			other = p;
	}
	flush();
	for (unsigned i = 0; i < n; i++) {
		in.itt = pings[i].itt;
		in.statsn = statsn++;
		deliver(&in, NULL);
	}
	return other;
}

static void answer_abort(const struct iscsi_pdu *abort, uint8_t response)
{
	struct iscsi_pdu in = { .op = ISCSI_TMF_RESPONSE,
				.final = true,
				.itt = abort->itt,
				.statsn = statsn++,
				.expcmdsn = 3,
				.maxcmdsn = 16 };

	in.tmf_response = response;
	deliver(&in, NULL);
}

static void test_lost_command_is_aborted_rfc7143_7_11(void **state)
{
	struct iscsi_pdu abort;

	(void)state;
	two_reads();
	assert_int_equal(at(4, 1).op, ISCSI_NOP_OUT);
	assert_int_equal(at(6, 1).op, ISCSI_NOP_OUT);
	assert_true(ini_deadline(s) <= 7 * XTIME_S); /* it is not left so */
	assert_int_equal(at(8, 1).op, ISCSI_NOP_OUT);
	abort = at(10, 1);
	assert_int_equal(abort.op, ISCSI_TMF_REQUEST);
	assert_int_equal(abort.tmf.function, ISCSI_TMF_ABORT_TASK);
	assert_int_equal(abort.tmf.rtt, tasks[0].dm.itt);
	assert_int_equal(abort.tmf.ref_cmdsn, 1);
	assert_int_equal(ended, 0);
	answer_abort(&abort, ISCSI_TMF_COMPLETE);
	assert_int_equal(ended, 1);
	assert_int_equal(tasks[0].err, ERR_ABORTED);
	/* what waited behind the gap is the target's now */
	for (unsigned t = 12; t < 40; t += 2)
		assert_int_equal(at(t, 3).op, ISCSI_NOP_OUT);
	assert_int_equal(ended, 1);
	assert_false(is_closed);
	end();
}

static void test_acknowledged_commands_are_left_alone(void **state)
{
	(void)state;
	two_reads();
	for (unsigned t = 2; t < 40; t += 2)
		assert_int_equal(at(t, 3).op, ISCSI_NOP_OUT);
	assert_int_equal(ended, 0);
	end();
}

/* Some take a WRITE for deliverable when its data are in. */
static void test_writes_are_left_alone(void **state)
{
	(void)state;
	two_reads();
	tasks[0].write = true; /* as far as it matters here */
	for (unsigned t = 2; t < 40; t += 2)
		assert_int_equal(at(t, 1).op, ISCSI_NOP_OUT);
	assert_int_equal(ended, 0);
	tasks[0].write = false;
	end();
}

/* A target that was slow to take it. */
static void test_acknowledged_late(void **state)
{
	(void)state;
	two_reads();
	assert_int_equal(at(6, 1).op, ISCSI_NOP_OUT);
	for (unsigned t = 8; t < 40; t += 2)
		assert_int_equal(at(t, 3).op, ISCSI_NOP_OUT);
	assert_int_equal(ended, 0);
	end();
}

/* A target that was slower still: the second answer did not acknowledge it, but
 * what it said before we asked for the abort did. */
static void test_acknowledged_behind_the_second_answer(void **state)
{
	const struct iscsi_pdu in = { .op = ISCSI_NOP_IN,
				      .final = true,
				      .itt = ISCSI_RESERVED_TAG,
				      .ttt = ISCSI_RESERVED_TAG,
				      .statsn = statsn,
				      .expcmdsn = 3,
				      .maxcmdsn = 16 };

	(void)state;
	two_reads();
	assert_int_equal(at(6, 1).op, ISCSI_NOP_OUT);
	assert_int_equal(at(8, 1).op, ISCSI_NOP_OUT);
	deliver(&in, NULL);
	for (unsigned t = 10; t < 40; t += 2)
		assert_int_equal(at(t, 3).op, ISCSI_NOP_OUT);
	assert_int_equal(ended, 0);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lost_command_is_aborted_rfc7143_7_11),
		cmocka_unit_test(test_acknowledged_commands_are_left_alone),
		cmocka_unit_test(test_writes_are_left_alone),
		cmocka_unit_test(test_acknowledged_late),
		cmocka_unit_test(test_acknowledged_behind_the_second_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
