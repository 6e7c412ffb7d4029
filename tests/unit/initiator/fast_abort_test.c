/* SPDX-License-Identifier: BSD-2-Clause */
/* fast_abort_test.c: the initiator's part of FastAbort (RFC 7143 §4.2.3.4): which
 * Data-Outs it stops, and the answer to Async Message 5. */
#include "stream_fixture.h"

static uint8_t block[512];
static struct iovec iov = { block, sizeof(block) };

static void log_in_with(const char *keys, size_t len)
{
	struct ini_config cfg = config();

	cfg.login.want.initial_r2t = true;
	cfg.login.want.immediate_data = false;
	cfg.login.want.task_reporting = ISCSI_FAST_ABORT;
	start(&cfg);
	log_in(8, keys, len);
}

static void log_in_fast(void)
{
	static const char keys[] = "InitialR2T=Yes\0ImmediateData=No\0"
				   "TaskReporting=FastAbort";

	log_in_with(keys, sizeof(keys));
}

/* Sends a WRITE and returns its tag. */
static uint32_t write_one(unsigned i)
{
	task(i)->write = true;
	tasks[i].out = bufv_of(&iov, 1);
	ini_submit(s, &tasks[i], 0);
	take();
	return sent[0].pdu.itt;
}

static void r2t(uint32_t itt)
{
	struct iscsi_pdu p = of_target(ISCSI_R2T, itt, 8);

	statsn--;
	p.ttt = 0x77;
	p.r2t.ddtl = 512;
	reply(&p, NULL);
}

static void send_function(enum iscsi_tmf function)
{
	ini_task_management(s, request(0), function, 0, NULL, XTIME_NEVER);
	take();
}

static void answer_function(uint8_t response)
{
	struct iscsi_pdu p = of_target(ISCSI_TMF_RESPONSE, sent[0].pdu.itt, 8);

	p.tmf_response = response;
	reply(&p, NULL);
}

static void tell(uint64_t lun)
{
	struct iscsi_pdu p =
		of_target(ISCSI_ASYNC_MESSAGE, ISCSI_RESERVED_TAG, 8);

	p.lun = lun;
	p.ttt = ISCSI_RESERVED_TAG;
	p.async.event = ISCSI_ASYNC_TASK_TERMINATION;
	reply(&p, NULL);
}

/* [RFC 7143: 4.2.3.4 #2] */
static void test_no_data_after_the_function_rfc7143_4_2_3_4_a(void **state)
{
	uint32_t before, after;

	(void)state;
	log_in_fast();
	before = write_one(0);
	send_function(ISCSI_TMF_ABORT_TASK_SET);
	r2t(before);
	assert_int_equal(nsent, 0);
	end();
	/* not those of commands after the function */
	log_in_fast();
	send_function(ISCSI_TMF_ABORT_TASK_SET);
	after = write_one(0);
	r2t(after);
	assert_int_equal(nsent, 1);
	assert_int_equal(sent[0].pdu.op, ISCSI_DATA_OUT);
	end();
}

/* The target refuses the function: the command goes on. */
static void test_data_go_on_when_the_function_fails(void **state)
{
	struct sent function;
	uint32_t itt;

	(void)state;
	log_in_fast();
	itt = write_one(0);
	send_function(ISCSI_TMF_LU_RESET);
	function = sent[0];
	r2t(itt);
	assert_int_equal(nsent, 0);
	sent[0] = function;
	answer_function(ISCSI_TMF_AUTH_FAILED);
	assert_int_equal(nsent, 1);
	assert_int_equal(sent[0].pdu.op, ISCSI_DATA_OUT);
	assert_int_equal(sent[0].pdu.itt, itt);
	end();
}

/* [RFC 7143: 4.2.3.3 #2] */
static void test_data_go_on_without_the_key_rfc7143_13_23(void **state)
{
	static const char keys[] = "InitialR2T=Yes\0ImmediateData=No\0"
				   "TaskReporting=ResponseFence";
	uint32_t itt;

	(void)state;
	log_in_with(keys, sizeof(keys));
	itt = write_one(0);
	send_function(ISCSI_TMF_ABORT_TASK_SET);
	r2t(itt);
	assert_int_equal(nsent, 1);
	assert_int_equal(sent[0].pdu.op, ISCSI_DATA_OUT);
	/* a message that the target must not send here: no answer */
	tell(0);
	assert_int_equal(nsent, 0);
	end();
}

/* [RFC 7143: 4.2.3.4 #3, 4.2.3.5 #3, 11.9.1 #5] */
static void test_answer_to_task_termination_rfc7143_11_9_1(void **state)
{
	const uint64_t lun = 5ull << 48;

	(void)state;
	log_in_fast();
	write_one(0);
	tell(lun);
	assert_int_equal(nsent, 1);
	assert_int_equal(sent[0].pdu.op, ISCSI_NOP_OUT);
	assert_true(sent[0].pdu.immediate);
	assert_int_equal(sent[0].pdu.itt, ISCSI_RESERVED_TAG);
	assert_int_equal(sent[0].pdu.ttt, ISCSI_RESERVED_TAG);
	assert_int_equal(sent[0].pdu.lun, lun);
	assert_int_equal(sent[0].pdu.expstatsn, statsn);
	end();
}

/* Another initiator has ended the command: its data stop, and the target is asked for
 * it soon, since no response comes. A command of another LUN goes on. */
/* [RFC 7143: 11.9.1 #5] */
static void test_commands_of_a_message_are_suspect_rfc7143_11_9_1(void **state)
{
	uint32_t itt;

	(void)state;
	log_in_fast();
	itt = write_one(0);
	r2t(itt);
	assert_int_equal(nsent, 1); /* Data-Out */
	tell(1ull << 48);
	assert_false(tasks[0].check.suspect);
	tell(0);
	assert_true(tasks[0].check.suspect);
	assert_true(tasks[0].check.stopped);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_no_data_after_the_function_rfc7143_4_2_3_4_a),
		cmocka_unit_test(test_data_go_on_when_the_function_fails),
		cmocka_unit_test(test_data_go_on_without_the_key_rfc7143_13_23),
		cmocka_unit_test(
			test_answer_to_task_termination_rfc7143_11_9_1),
		cmocka_unit_test(
			test_commands_of_a_message_are_suspect_rfc7143_11_9_1),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
