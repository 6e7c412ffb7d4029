/* SPDX-License-Identifier: BSD-2-Clause */
/* abort_test.c: commands that end by ABORT TASK or by another task management
 * function. */
#include "stream_fixture.h"

static void answer_abort(uint32_t itt, uint8_t response)
{
	struct iscsi_pdu p = of_target(ISCSI_TMF_RESPONSE, itt, 8);

	p.tmf_response = response;
	reply(&p, NULL);
}

/* The answer to ABORT TASK decides whether the command still exists. */
static void test_abort_of_a_command_rfc7143_11_6_1(void **state)
{
	static const struct {
		uint8_t response;
		bool gone;
	} rows[] = { { ISCSI_TMF_COMPLETE, true },
		     { ISCSI_TMF_NO_TASK, true },
		     { ISCSI_TMF_NO_LUN, false },
		     { ISCSI_TMF_REJECTED, false } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint32_t itt;

		ended = 0;
		begin(8);
		ini_submit(s, task(0), 0);
		take();
		itt = sent[0].pdu.itt;
		assert_int_equal(ini_abort(&tasks[0], XTIME_NEVER), 0);
		take();
		assert_int_equal(sent[0].pdu.tmf.function,
				 ISCSI_TMF_ABORT_TASK);
		assert_int_equal(sent[0].pdu.tmf.rtt, itt);
		/* one request at a time */
		assert_int_equal(ini_abort(&tasks[0], XTIME_NEVER), 0);
		assert_int_equal(ended, 0);
		answer_abort(sent[0].pdu.itt, rows[i].response);
		assert_int_equal(ended, rows[i].gone);
		if (rows[i].gone)
			assert_int_equal(tasks[0].err, ERR_ABORTED);
		else /* may be tried again */
			assert_int_equal(ini_abort(&tasks[0], XTIME_NEVER), 0);
		take();
		assert_int_equal(nsent, !rows[i].gone);
		end();
		assert_int_equal(ended, 1);
	}
}

/* The response comes before the answer to ABORT TASK, which is then expected
 * once. */
static void test_response_before_the_answer_to_an_abort(void **state)
{
	uint32_t itt, abort;

	(void)state;
	ended = 0;
	begin(8);
	ini_submit(s, task(0), 0);
	take();
	itt = sent[0].pdu.itt;
	assert_int_equal(ini_abort(&tasks[0], XTIME_NEVER), 0);
	take();
	abort = sent[0].pdu.itt;
	respond(itt, 8);
	assert_int_equal(ended, 1);
	assert_int_equal(tasks[0].err, 0);
	assert_int_equal(ini_abort(&tasks[0], XTIME_NEVER), 0);
	take();
	assert_int_equal(nsent, 0);
	answer_abort(abort, ISCSI_TMF_NO_TASK);
	assert_false(is_closed);
	answer_abort(abort, ISCSI_TMF_NO_TASK);
	assert_true(is_closed);
	end();
}

/* The response of an aborted command is expected at most once, and the next
 * command may be sent. */
/* [RFC 7143: 4.2.3.3 #4, 4.2.3.4 #5] */
static void test_response_after_the_answer_to_an_abort(void **state)
{
	uint32_t itt;

	(void)state;
	ended = 0;
	begin(8);
	for (unsigned i = 0; i < 5; i++)
		ini_submit(s, task(i), 0);
	take();
	assert_int_equal(nsent, 4); /* the depth */
	itt = sent[0].pdu.itt;
	assert_int_equal(ini_abort(&tasks[0], XTIME_NEVER), 0);
	take();
	answer_abort(sent[0].pdu.itt, ISCSI_TMF_COMPLETE);
	assert_int_equal(ended, 1);
	assert_int_equal(nsent, 1);
	assert_int_equal(sent[0].pdu.cmdsn, 5);
	respond(itt, 8);
	assert_false(is_closed);
	respond(itt, 8);
	assert_true(is_closed);
	end();
}

/* A function ends the commands of its unit, or all, that were sent before. */
/* [RFC 7143: 4.2.3.3 #3, 4.2.3.4 #4, 11.5.1 #2] */
static void test_commands_that_a_function_ends_rfc7143_11_5_1(void **state)
{
	static const struct {
		enum iscsi_tmf function;
		bool unit, others;
	} rows[] = { { ISCSI_TMF_ABORT_TASK_SET, true, false },
		     { ISCSI_TMF_CLEAR_TASK_SET, true, false },
		     { ISCSI_TMF_LU_RESET, true, false },
		     { ISCSI_TMF_TARGET_WARM_RESET, true, true },
		     { ISCSI_TMF_TARGET_COLD_RESET, true, true },
		     { ISCSI_TMF_I_T_NEXUS_RESET, true, true },
		     { ISCSI_TMF_CLEAR_ACA, false, false } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint32_t itt;

		ended = 0;
		begin(8);
		ini_submit(s, task(0), 0);
		task(1)->lun = 1;
		ini_submit(s, &tasks[1], 0);
		assert_int_equal(ini_task_management(s, request(0),
						     rows[i].function, 0, NULL,
						     XTIME_NEVER),
				 0);
		take();
		itt = sent[2].pdu.itt;
		ini_submit(s, task(2), 0);
		take();
		answer_abort(itt, ISCSI_TMF_COMPLETE);
		assert_int_equal(ended, rows[i].unit + rows[i].others);
		assert_int_equal(tasks[0].err, rows[i].unit ? ERR_ABORTED : 0);
		assert_int_equal(tasks[1].err,
				 rows[i].others ? ERR_ABORTED : 0);
		end();
		assert_int_equal(ended, 3);
	}
}

/* The command window is closed: the target has not got the command. */
static void test_abort_of_a_command_that_waits(void **state)
{
	(void)state;
	ended = 0;
	begin(1);
	ini_submit(s, task(0), 0);
	ini_submit(s, task(1), 0);
	take();
	assert_int_equal(nsent, 1);
	assert_int_equal(ini_abort(&tasks[1], XTIME_NEVER), 0);
	assert_int_equal(ended, 1);
	assert_int_equal(tasks[1].err, ERR_ABORTED);
	take();
	assert_int_equal(nsent, 0);
	end();
}

/* The datamover is sending the data of an aborted command: the memory belongs to
 * the command until they are sent. */
static void test_abort_while_data_are_sent(void **state)
{
	static uint8_t data[20000];
	struct iovec iov = { data, sizeof(data) }, out[16];
	struct iscsi_pdu pdu;
	uint32_t itt;

	(void)state;
	ended = 0;
	begin(8);
	task(0)->write = true;
	tasks[0].out = bufv_of(&iov, 1);
	ini_submit(s, &tasks[0], 0);
	take();
	pdu = of_target(ISCSI_R2T, sent[0].pdu.itt, 8);
	statsn--; /* an R2T does not advance StatSN */
	pdu.ttt = 1;
	pdu.r2t.offset = sent[0].pdu.dsl;
	pdu.r2t.ddtl = (uint32_t)sizeof(data) - pdu.r2t.offset;
	assert_int_equal(ini_abort(&tasks[0], XTIME_NEVER), 0);
	take();
	itt = sent[0].pdu.itt;
	feed_header(&pdu);
	assert_true(dmtcp_stream_ops.tx_what(dm, out, 16) > 0);
	pdu = of_target(ISCSI_TMF_RESPONSE, itt, 8);
	pdu.tmf_response = ISCSI_TMF_COMPLETE;
	feed_header(&pdu);
	assert_int_equal(ended, 0);
	assert_int_equal(ini_abort(&tasks[0], XTIME_NEVER), 0);
	take();
	assert_int_equal(ended, 1);
	assert_int_equal(tasks[0].err, ERR_ABORTED);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_abort_of_a_command_rfc7143_11_6_1),
		cmocka_unit_test(test_response_before_the_answer_to_an_abort),
		cmocka_unit_test(test_response_after_the_answer_to_an_abort),
		cmocka_unit_test(
			test_commands_that_a_function_ends_rfc7143_11_5_1),
		cmocka_unit_test(test_abort_of_a_command_that_waits),
		cmocka_unit_test(test_abort_while_data_are_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
