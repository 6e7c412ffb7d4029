/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lost_test.c: a command that the target never received, at
 * iSCSIProtocolLevel 1: the answers to pings do not acknowledge it (RFC 7143
 * §4.2.2.1), and an ABORT TASK with its CmdSN fills the gap that it left
 * (§7.11).
 */
#include <stdio.h>

#include "scsi/sense.h"
#include "unit/initiator/fixture.h"

static struct ini_task tasks[2];
static uint8_t blocks[2][512];
static struct iovec iov[2];
static unsigned ended;

static void task_done(struct ini_task *t)
{
	(void)t;
	ended++;
}

/* Two READs were sent, with CmdSN 1 and 2. */
static void two_reads_by(const char *answer, size_t len)
{
	ended = 0;
	begin();
	login_response(answer, len);
	assert_true(is_logged_in);
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

static void two_reads(void)
{
	two_reads_by(USUAL, sizeof(USUAL));
	assert_int_equal(ini_params(s)->protocol_level, 1);
}

/* Sets the time to t seconds and answers each ping. Returns the other
 * request that was sent, if there is one. */
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

/* [RFC 7143: 7.11 #1] */
static void test_lost_command_is_aborted_rfc7143_7_11(void **state)
{
	struct iscsi_pdu abort;

	(void)state;
	two_reads();
	assert_int_equal(at(4, 1).op, ISCSI_NOP_OUT);
	assert_int_equal(at(6, 1).op, ISCSI_NOP_OUT);
	assert_true(ini_deadline(s) <=
		    7 * XTIME_S); /* the session does not stay so */
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
	/* the target has received the commands after the gap */
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

/* An acknowledged READ that is never answered, by a target that cannot be asked for it: ABORT
 * TASK after two minutes; without effect three times, the session ends. */
static void test_never_answered(void **state)
{
	(void)state;
	for (unsigned effect = 0; effect < 2; effect++) {
		unsigned aborts = 0;

		two_reads();
		for (unsigned t = 2; t < 900 && ini_is_up(s) && !ended;
		     t += 2) {
			struct iscsi_pdu abort = at(t, 3);
			struct iscsi_pdu in = { .op = ISCSI_TMF_RESPONSE,
						.final = true,
						.expcmdsn = 3,
						.maxcmdsn = 16 };

			if (abort.op != ISCSI_TMF_REQUEST)
				continue;
			assert_true(t >= 120);
			assert_int_equal(abort.tmf.function,
					 ISCSI_TMF_ABORT_TASK);
			aborts++;
			in.itt = abort.itt;
			in.statsn = statsn++;
			in.tmf_response = effect ? ISCSI_TMF_COMPLETE
						 : ISCSI_TMF_REJECTED;
			deliver(&in, NULL);
			flush();
		}
		assert_int_equal(ini_is_up(s), effect);
		assert_int_equal(aborts, effect ? 1 : 5); /* of both */
		/* a ping has asked for the first one meanwhile */
		if (effect)
			assert_int_equal(tasks[1].err, ERR_ABORTED);
		end();
	}
}

/* Some targets acknowledge a WRITE only when its data are in. */
static void test_writes_are_left_alone(void **state)
{
	(void)state;
	two_reads();
	tasks[0].write = true; /* as far as this test needs */
	for (unsigned t = 2; t < 40; t += 2)
		assert_int_equal(at(t, 1).op, ISCSI_NOP_OUT);
	assert_int_equal(ended, 0);
	tasks[0].write = false;
	end();
}

/* A target that acknowledges the command late. */
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

/* A still slower target: the second answer does not acknowledge the command,
 * but a later PDU does, before the abort is sent. */
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

/* The target asks for a logout while commands are in progress (§11.9.1), and
 * then sends nothing more. */
static void test_silent_after_asking_for_a_logout(void **state)
{
	const struct iscsi_pdu in = { .op = ISCSI_ASYNC_MESSAGE,
				      .final = true,
				      .itt = ISCSI_RESERVED_TAG,
				      .ttt = ISCSI_RESERVED_TAG,
				      .statsn = statsn++,
				      .expcmdsn = 3,
				      .maxcmdsn = 16,
				      .async.event = ISCSI_ASYNC_LOGOUT };

	(void)state;
	two_reads();
	deliver(&in, NULL);
	assert_true(ini_deadline(s) <= 6 * XTIME_S);
	ini_expire(s, 6 * XTIME_S);
	assert_int_equal(sent(0, NULL, 0).op, ISCSI_NOP_OUT);
	flush();
	ini_expire(s, 17 * XTIME_S);
	end();
	assert_int_equal(closed_err, ERR_TIMEOUT);
	assert_int_equal(ended, 2);
	assert_int_equal(tasks[0].err, ERR_TIMEOUT);
}

/* ---- commands before a unit attention ---- */

static uint32_t expcmdsn; /* all commands were received */

static void answer_with_sense(const struct ini_task *t, uint8_t status,
			      uint8_t key, uint16_t asc)
{
	struct iscsi_pdu in = { .op = ISCSI_SCSI_RESPONSE,
				.final = true,
				.itt = t->dm.itt,
				.statsn = statsn++,
				.expcmdsn = expcmdsn,
				.maxcmdsn = 16,
				.dsl = 20 };
	uint8_t data[20] = { 0, 18, 0x70, 0, key, [9] = 10 };

	put_be16(data + 14, asc);
	in.rsp.status = status;
	deliver(&in, data);
}

/* Only commands of the same unit that were sent before it become suspect. */
static void test_suspects_of_an_attention(void **state)
{
	static const struct {
		uint8_t status, key;
		uint16_t asc;
		bool tells;
	} rows[] = {
		{ 0x02, SENSE_UNIT_ATTENTION, 0x2900, true },
		{ 0x02, SENSE_UNIT_ATTENTION, 0x2903, true },
		{ 0x02, SENSE_UNIT_ATTENTION, 0x2f00, true },
		{ 0x02, SENSE_UNIT_ATTENTION, 0x3f0e, false },
		{ 0x02, SENSE_NOT_READY, 0x2900, false },
		{ 0x08, SENSE_UNIT_ATTENTION, 0x2900, false },
	};
	static const uint64_t luns[4] = { 0, 1ull << 48, 0, 0 };
	static struct ini_task four[4];

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
		struct iscsi_pdu abort;

		ended = 0;
		begin();
		ANSWER(USUAL);
		for (unsigned i = 0; i < 4; i++) {
			four[i] = (struct ini_task){ .lun = luns[i],
						     .cdb_len = 6,
						     .deadline = XTIME_NEVER,
						     .done = task_done };
			ini_submit(s, &four[i], 0);
		}
		flush();
		expcmdsn = 5;
		answer_with_sense(&four[2], rows[k].status, rows[k].key,
				  rows[k].asc);
		assert_int_equal(ended, 1);
		abort = at(2, 5);
		if (rows[k].tells) {
			assert_int_equal(abort.op, ISCSI_TMF_REQUEST);
			assert_int_equal(abort.tmf.function,
					 ISCSI_TMF_ABORT_TASK);
			assert_int_equal(abort.tmf.rtt, four[0].dm.itt);
			answer_abort(&abort, ISCSI_TMF_COMPLETE);
			assert_int_equal(four[0].err, ERR_ABORTED);
			assert_int_equal(ended, 2);
		} else {
			assert_int_equal(abort.op, ISCSI_NOP_OUT);
		}
		for (unsigned t = 4; t < 20; t += 2)
			assert_int_equal(at(t, 5).op, ISCSI_NOP_OUT);
		end();
	}
}

/* After the answer the command is not suspect and not queried again. */
static void test_suspect_that_is_still_there(void **state)
{
	struct iscsi_pdu abort;

	(void)state;
	two_reads();
	expcmdsn = 3;
	answer_with_sense(&tasks[1], 0x02, SENSE_UNIT_ATTENTION, 0x2900);
	assert_int_equal(at(0, 3).op,
			 ISCSI_NOP_OUT); /* it may still be answered */
	abort = at(1, 3);
	assert_int_equal(abort.op, ISCSI_TMF_REQUEST);
	answer_abort(&abort, ISCSI_TMF_REJECTED);
	for (unsigned t = 2; t < 20; t += 2)
		assert_int_equal(at(t, 3).op, ISCSI_NOP_OUT);
	assert_int_equal(ended, 1);
	end();
}

/* RFC 7144 §6.4.2: at level 2 a query reports whether the target has the
 * command. Two negative answers end it. A target that does not support
 * queries gets no second one. */
/* [RFC 7144: 6.3 #1-2 #6, 6.3.3 #2, 6.4.2 #1] */
static void test_suspect_is_queried_rfc7144_6_4_2(void **state)
{
	static const struct {
		uint8_t response;
		bool again, ends;
	} rows[] = {
		{ ISCSI_TMF_SUCCEEDED, false, false },
		{ ISCSI_TMF_NOT_SUPPORTED, false, false },
		{ ISCSI_TMF_REJECTED, false, false },
		{ ISCSI_TMF_NO_TASK, true, true },
		{ ISCSI_TMF_COMPLETE, true, true },
	};

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
		struct iscsi_pdu tmf;
		unsigned queries = 0;

		two_reads_by(USUAL "iSCSIProtocolLevel=2\0",
			     sizeof(USUAL "iSCSIProtocolLevel=2\0"));
		assert_int_equal(ini_params(s)->protocol_level, 2);
		expcmdsn = 3;
		answer_with_sense(&tasks[1], 0x02, SENSE_UNIT_ATTENTION,
				  0x2900);
		for (unsigned t = 1; t < 4; t++) {
			tmf = at(t, 3);
			if (tmf.op != ISCSI_TMF_REQUEST)
				break;
			queries++;
			assert_int_equal(tmf.tmf.function,
					 ISCSI_TMF_QUERY_TASK);
			assert_int_equal(tmf.tmf.rtt, tasks[0].dm.itt);
			answer_abort(&tmf, rows[k].response);
		}
		assert_int_equal(queries, rows[k].again ? 2 : 1);
		assert_int_equal(ended, rows[k].ends ? 2 : 1);
		/* the command is old enough for another query */
		tmf = at(30, 3);
		assert_int_equal(tmf.op, rows[k].response == ISCSI_TMF_SUCCEEDED
						 ? ISCSI_TMF_REQUEST
						 : ISCSI_NOP_OUT);
		end();
	}
}

/* ---- a command window that stays closed ---- */

static char logged[256];
static unsigned nlogged;

static void take_line(struct trace *t, enum trace_event e,
		      const struct trace_about *about, const char *text)
{
	(void)about;
	(void)t;
	if (e != TRACE_CONN_TIMEOUT)
		return;
	nlogged++;
	snprintf(logged, sizeof(logged), "%s", text);
}

/* The target answers pings but never opens the window: a line after 10 s, once
 * until the window has opened. */
static void test_closed_window_is_reported_rfc7143_4_2_2_1(void **state)
{
	static struct ini_task many[20];
	struct trace to = { .level = TRACE_LEVEL_WARN, .emit = take_line };
	struct iscsi_pdu nop = { .op = ISCSI_NOP_IN,
				 .final = true,
				 .itt = ISCSI_RESERVED_TAG,
				 .ttt = ISCSI_RESERVED_TAG,
				 .expcmdsn = 17,
				 .maxcmdsn = 18 };

	(void)state;
	log_to = &to;
	nlogged = 0;
	begin();
	ANSWER(USUAL);
	for (unsigned i = 0; i < ARRAY_LEN(many); i++) {
		many[i] = (struct ini_task){ .cdb_len = 6,
					     .deadline = XTIME_NEVER,
					     .done = task_done };
		ini_submit(s, &many[i], XTIME_S);
	}
	flush();
	assert_int_equal(ini_in_flight(s), 16);
	for (unsigned t = 2; t <= 10; t++)
		at(t, 1);
	assert_int_equal(nlogged, 0);
	assert_true(ini_deadline(s) <= 11 * XTIME_S);
	for (unsigned t = 11; t <= 30; t++)
		at(t, 1);
	assert_int_equal(nlogged, 1);
	assert_non_null(strstr(logged, "4 commands wait, 16 are in progress"));
	nop.statsn = statsn;
	deliver(&nop, NULL); /* opens it for two */
	flush();
	assert_int_equal(ini_in_flight(s), 18);
	for (unsigned t = 31; t <= 50; t++)
		at(t, 1);
	assert_int_equal(nlogged, 2);
	end();
	log_to = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lost_command_is_aborted_rfc7143_7_11),
		cmocka_unit_test(test_acknowledged_commands_are_left_alone),
		cmocka_unit_test(test_never_answered),
		cmocka_unit_test(test_writes_are_left_alone),
		cmocka_unit_test(test_acknowledged_late),
		cmocka_unit_test(test_acknowledged_behind_the_second_answer),
		cmocka_unit_test(test_silent_after_asking_for_a_logout),
		cmocka_unit_test(test_suspects_of_an_attention),
		cmocka_unit_test(test_suspect_that_is_still_there),
		cmocka_unit_test(test_suspect_is_queried_rfc7144_6_4_2),
		cmocka_unit_test(
			test_closed_window_is_reported_rfc7143_4_2_2_1),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
