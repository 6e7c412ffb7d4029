/* SPDX-License-Identifier: BSD-2-Clause */
/* twice_test.c: answers without a request, repeated answers, answers of the
 * wrong kind (RFC 7143 §11): the initiator drops the connection. */
#include "unit/initiator/fixture.h"

static struct ini_task task;
static struct ini_request ping;
static unsigned ended;

static void task_done(struct ini_task *t)
{
	(void)t;
	ended++;
}

static void pong(struct ini_request *r, int err, const struct dm_control *rsp)
{
	(void)r;
	(void)err;
	(void)rsp;
	ended++;
}

/* Sends a TEST UNIT READY and a ping; returns their tags. */
static void two_requests(uint32_t *command, uint32_t *nop)
{
	ended = 0;
	begin();
	ANSWER(USUAL);
	task = (struct ini_task){ .cdb_len = 6,
				  .deadline = XTIME_NEVER,
				  .done = task_done };
	ini_submit(s, &task, 0);
	ping = (struct ini_request){ .done = pong };
	assert_int_equal(ini_ping(s, &ping, NULL, 0, XTIME_S), 0);
	*command = sent(0, NULL, 0).itt;
	*nop = sent(1, NULL, 0).itt;
	flush();
}

static void answer(uint8_t op, uint32_t itt)
{
	const struct iscsi_pdu p = { .op = op,
				     .final = true,
				     .itt = itt,
				     .ttt = ISCSI_RESERVED_TAG,
				     .statsn = statsn++,
				     .expcmdsn = 2,
				     .maxcmdsn = 16 };

	deliver(&p, NULL);
}

/* The connection ends with this error; 0: the test ends it. */
static void ends_with(int err)
{
	end();
	assert_int_equal(closed_err, err);
}

static void test_one_answer_each(void **state)
{
	uint32_t command, nop;

	(void)state;
	two_requests(&command, &nop);
	answer(ISCSI_NOP_IN, nop);
	answer(ISCSI_SCSI_RESPONSE, command);
	assert_int_equal(ended, 2);
	ends_with(0);
}

static void test_answers_twice_rfc7143_11_4(void **state)
{
	uint32_t command, nop;

	(void)state;
	two_requests(&command, &nop);
	answer(ISCSI_SCSI_RESPONSE, command);
	answer(ISCSI_SCSI_RESPONSE, command);
	ends_with(ERR_PROTOCOL);
	two_requests(&command, &nop);
	answer(ISCSI_NOP_IN, nop);
	answer(ISCSI_NOP_IN, nop);
	ends_with(ERR_PROTOCOL);
}

static void test_answers_of_another_kind_rfc7143_11_2_1_2(void **state)
{
	static const uint8_t ops[] = { ISCSI_TMF_RESPONSE, ISCSI_TEXT_RESPONSE,
				       ISCSI_LOGOUT_RESPONSE };
	uint32_t command, nop;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
		two_requests(&command, &nop);
		answer(ops[i], nop);
		ends_with(ERR_PROTOCOL);
		two_requests(&command, &nop);
		answer(ops[i], command);
		ends_with(ERR_PROTOCOL);
	}
	two_requests(&command, &nop);
	answer(ISCSI_SCSI_RESPONSE, nop);
	ends_with(ERR_PROTOCOL);
	two_requests(&command, &nop);
	answer(ISCSI_NOP_IN, command);
	ends_with(ERR_PROTOCOL);
}

static void test_answers_to_nothing(void **state)
{
	uint32_t command, nop;

	(void)state;
	two_requests(&command, &nop);
	answer(ISCSI_SCSI_RESPONSE, 0x4711);
	ends_with(ERR_PROTOCOL);
}

/* A request that timed out may still be answered, once. */
static void test_answer_to_what_was_given_up(void **state)
{
	uint32_t command, nop;

	(void)state;
	two_requests(&command, &nop);
	ini_expire(s, 2 * XTIME_S);
	assert_int_equal(ended, 1);
	answer(ISCSI_NOP_IN, nop);
	answer(ISCSI_SCSI_RESPONSE, command);
	assert_int_equal(ended, 2);
	ends_with(0);
	two_requests(&command, &nop);
	ini_expire(s, 2 * XTIME_S);
	answer(ISCSI_NOP_IN, nop);
	answer(ISCSI_NOP_IN, nop);
	ends_with(ERR_PROTOCOL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_answer_each),
		cmocka_unit_test(test_answers_twice_rfc7143_11_4),
		cmocka_unit_test(test_answers_of_another_kind_rfc7143_11_2_1_2),
		cmocka_unit_test(test_answers_to_nothing),
		cmocka_unit_test(test_answer_to_what_was_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
