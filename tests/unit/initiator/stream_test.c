/* SPDX-License-Identifier: BSD-2-Clause */
/* stream_test.c: the initiator over datamover/tcp, PDU by PDU: the command
 * window, deadlines, requests and their answers, what a target sends unasked,
 * and the end of a session. */
#include "stream_fixture.h"

/* ---- commands ---- */

/* [RFC 7143: 4.2.2.1 #3 #7 #12 #14] */
static void test_window_and_depth_rfc7143_4_2_2_1(void **state)
{
	uint32_t itt;

	(void)state;
	begin(2);
	ended = 0;
	for (unsigned i = 0; i < 4; i++)
		ini_submit(s, task(i), 0);
	take();
	assert_int_equal(nsent, 2);
	assert_int_equal(sent[0].pdu.cmdsn, 1);
	assert_int_equal(sent[1].pdu.cmdsn, 2);
	assert_int_equal(ini_in_flight(s), 2);
	itt = sent[0].pdu.itt;
	/* an immediate one waits for those before it, as any other */
	task(4)->immediate = true;
	ini_submit(s, &tasks[4], 0);
	take();
	assert_int_equal(nsent, 0);
	respond(itt, 3);
	assert_int_equal(ended, 1);
	assert_int_equal(nsent, 1);
	assert_int_equal(sent[0].pdu.cmdsn, 3);
	/* depth 4: the fifth waits although the window is open */
	respond(sent[0].pdu.itt, 20);
	assert_int_equal(nsent, 2);
	assert_int_equal(sent[0].pdu.cmdsn, 4);
	assert_false(sent[0].pdu.immediate);
	assert_int_equal(sent[1].pdu.cmdsn, 5);
	assert_true(sent[1].pdu.immediate);
	assert_int_equal(ini_in_flight(s), 3);
	ini_submit(s, task(5), 0);
	ini_submit(s, task(6), 0);
	take();
	assert_int_equal(nsent, 1);
	assert_int_equal(sent[0].pdu.cmdsn,
			 5); /* the immediate one took none */
	assert_int_equal(ini_in_flight(s), 4);
	end();
	assert_int_equal(ended, 7);
}

/* [RFC 7143: 4.2.2.1 #1] */
static void test_immediate_past_a_closed_window(void **state)
{
	(void)state;
	begin(1);
	task(0)->immediate = true;
	ini_submit(s, task(2), 0); /* it fills the window */
	ini_submit(s, &tasks[0], 0);
	take();
	assert_int_equal(nsent, 2);
	assert_false(sent[0].pdu.immediate);
	assert_int_equal(sent[0].pdu.cmdsn, 1);
	assert_true(sent[1].pdu.immediate);
	assert_int_equal(sent[1].pdu.cmdsn, 2);
	ini_submit(s, task(1), 0);
	take();
	assert_int_equal(nsent, 0);
	end();
}

/* [RFC 7143: 11.2.2.3 #1, 11.3.1 #2, 11.3.5 #1] */
/* [RFC 7144: 5.1.1 #1] */
static void test_fields_of_a_command_rfc7143_11_3(void **state)
{
	static const char level[] = "iSCSIProtocolLevel=2";
	static uint8_t block[512];
	struct iovec iov = { block, sizeof(block) };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct ini_config cfg = config();
		struct ini_task *t;

		start(&cfg);
		if (i)
			log_in(8, level, sizeof(level));
		else
			log_in(8, NULL, 0);
		t = task(0);
		t->lun = 0x0102030405060708;
		t->attr = ISCSI_ATTR_HEAD_OF_QUEUE;
		t->priority = 0x15;
		t->read = true;
		t->in = bufv_of(&iov, 1);
		t->cdb_len = 32;
		for (uint8_t k = 0; k < 32; k++)
			t->cdb[k] = k;
		ini_submit(s, t, 0);
		take();
		assert_int_equal(nsent, 1);
		assert_int_equal(sent[0].pdu.lun, t->lun);
		assert_true(sent[0].pdu.cmd.read);
		assert_false(sent[0].pdu.cmd.write);
		assert_int_equal(sent[0].pdu.cmd.edtl, 512);
		assert_int_equal(sent[0].pdu.cmd.attr, t->attr);
		assert_int_equal(sent[0].pdu.cmd.priority, i ? 5 : 0);
		assert_memory_equal(sent[0].pdu.cmd.cdb, t->cdb, 16);
		assert_int_equal(sent[0].pdu.ahs_len, 20);
		assert_memory_equal(sent[0].ahs + 4, t->cdb + 16, 16);
		t = task(1);
		t->cdb_len = 16; /* §11.2.2.3 */
		ini_submit(s, t, 0);
		take();
		assert_int_equal(sent[0].pdu.ahs_len, 0);
		assert_false(sent[0].pdu.cmd.read || sent[0].pdu.cmd.write);
		end();
	}
}

/* [RFC 7143: 10.2 #1] */
/* [RFC 7144: 5.2.1 #2] */
static void test_sense_and_qualifier_rfc7144_5_2_1(void **state)
{
	static const char level[] = "iSCSIProtocolLevel=2";
	static const struct {
		uint8_t data[8];
		uint32_t dsl, want;
	} rows[] = {
		{ { 0, 4, 1, 2, 3, 4 }, 6, 4 },
		{ { 0, 4, 1, 2 }, 4, 2 },
		{ { 0, 2, 1, 2, 3, 4 }, 6, 2 },
		{ { 0, 4 }, 2, 0 },
		{ { 0 }, 1, 0 },
		{ { 0 }, 0, 0 },
	};

	(void)state;
	for (unsigned i = 0; i < 2 * ARRAY_LEN(rows); i++) {
		struct ini_config cfg = config();
		struct iscsi_pdu p;

		start(&cfg);
		if (i % 2)
			log_in(8, level, sizeof(level));
		else
			log_in(8, NULL, 0);
		ini_submit(s, task(0), 0);
		take();
		p = of_target(ISCSI_SCSI_RESPONSE, sent[0].pdu.itt, 8);
		p.rsp.status = 2;
		p.rsp.status_qualifier = 0x1234;
		p.dsl = rows[i / 2].dsl;
		reply(&p, rows[i / 2].data);
		assert_int_equal(tasks[0].err, 0);
		assert_int_equal(tasks[0].status, 2);
		assert_int_equal(tasks[0].qualifier, i % 2 ? 0x1234 : 0);
		assert_int_equal(tasks[0].sense_len, rows[i / 2].want);
		assert_memory_equal(tasks[0].sense, rows[i / 2].data + 2,
				    rows[i / 2].want);
		end();
	}
}

/* §11.4.3: no SCSI status with another response code. */
/* [RFC 7143: 11.4.3 #1] */
static void test_target_failure_rfc7143_11_4_3(void **state)
{
	struct iscsi_pdu p;

	(void)state;
	begin(8);
	ini_submit(s, task(0), 0);
	take();
	p = of_target(ISCSI_SCSI_RESPONSE, sent[0].pdu.itt, 8);
	p.rsp.response = 1;
	reply(&p, NULL);
	assert_int_equal(tasks[0].err, ERR_ABORTED);
	end();
}

/* ---- deadlines ---- */

static void test_deadline_of_a_waiting_command(void **state)
{
	(void)state;
	begin(1);
	ini_submit(s, task(2), 0); /* it fills the window */
	ended = rearmed = 0;
	task(0)->deadline = 5 * XTIME_S;
	task(1)->deadline = 6 * XTIME_S;
	assert_int_equal(ini_deadline(s), XTIME_NEVER);
	ini_submit(s, &tasks[0], XTIME_S);
	assert_int_equal(rearmed, 1);
	assert_int_equal(ini_deadline(s), XTIME_S + XTIME_S / 2);
	ini_submit(s, &tasks[1], XTIME_S);
	assert_int_equal(rearmed, 1);
	ini_expire(s, 5 * XTIME_S - 1);
	assert_int_equal(ended, 0);
	ini_expire(s, 5 * XTIME_S);
	assert_int_equal(ended, 1);
	assert_int_equal(tasks[0].err, ERR_TIMEOUT);
	take();
	assert_false(is_closed);
	end();
	assert_int_equal(tasks[1].err, ERR_CLOSED);
}

/* [RFC 7143: 7.11 #1] */
static void test_deadline_of_a_sent_command(void **state)
{
	(void)state;
	begin(8);
	ended = 0;
	task(0)->deadline = 5 * XTIME_S;
	ini_submit(s, &tasks[0], 0);
	ini_submit(s, task(1), 0);
	ini_expire(s, 5 * XTIME_S - 1);
	take();
	assert_false(is_closed);
	ini_expire(s, 5 * XTIME_S);
	take();
	assert_true(is_closed);
	assert_int_equal(close_err, ERR_TIMEOUT);
	assert_int_equal(ended, 2);
	assert_int_equal(tasks[0].err, ERR_TIMEOUT);
	assert_int_equal(tasks[1].err, ERR_TIMEOUT);
	/* the session takes no more */
	ini_submit(s, task(2), 0);
	assert_int_equal(tasks[2].err, ERR_CLOSED);
	end();
}

static void test_login_takes_too_long(void **state)
{
	struct ini_config cfg = config();

	(void)state;
	start(&cfg);
	assert_true(rearmed > 0);
	assert_int_equal(ini_deadline(s), cfg.login_time);
	ini_expire(s, cfg.login_time - 1);
	take();
	assert_false(is_closed);
	ini_expire(s, cfg.login_time);
	take();
	assert_true(is_closed);
	assert_int_equal(login_err, ERR_TIMEOUT);
	assert_int_equal(close_err, ERR_TIMEOUT);
	end();
	cfg.login_time = XTIME_NEVER;
	start(&cfg);
	assert_int_equal(ini_deadline(s), XTIME_NEVER);
	log_in(8, NULL, 0);
	end();
}

static void test_ping_of_a_silent_target(void **state)
{
	struct ini_config cfg = config();
	struct iscsi_pdu p;

	(void)state;
	cfg.idle_time = 5 * XTIME_S;
	cfg.ping_time = 3 * XTIME_S;
	start(&cfg);
	log_in(8, NULL, 0);
	assert_int_equal(ini_deadline(s), 5 * XTIME_S);
	ini_expire(s, 5 * XTIME_S - 1);
	take();
	assert_int_equal(nsent, 0);
	ini_expire(s, 5 * XTIME_S);
	take();
	assert_int_equal(nsent, 1);
	assert_int_equal(sent[0].pdu.op, ISCSI_NOP_OUT);
	assert_true(sent[0].pdu.immediate);
	assert_int_equal(sent[0].pdu.ttt, ISCSI_RESERVED_TAG);
	assert_int_equal(ini_deadline(s), 8 * XTIME_S);
	p = of_target(ISCSI_NOP_IN, sent[0].pdu.itt, 8);
	reply(&p, NULL);
	/* the time of the answer is that of the last call */
	assert_int_equal(ini_deadline(s), 10 * XTIME_S);
	ini_expire(s, 10 * XTIME_S);
	take();
	assert_int_equal(nsent, 1);
	ini_expire(s, 13 * XTIME_S - 1);
	take();
	assert_false(is_closed);
	ini_expire(s, 13 * XTIME_S);
	take();
	assert_true(is_closed);
	assert_int_equal(close_err, ERR_TIMEOUT);
	end();
}

/* ---- requests ---- */

/* [RFC 7143: 4.2.2.1 #1, 11.18.1 #1, 11.18.2 #2] */
static void test_requests_and_their_answers(void **state)
{
	struct iscsi_pdu p;

	(void)state;
	begin(0); /* they are immediate */
	assert_int_equal(ini_ping(s, request(0), "abc", 3, XTIME_NEVER), 0);
	take();
	assert_int_equal(sent[0].pdu.op, ISCSI_NOP_OUT);
	assert_true(sent[0].pdu.final && sent[0].pdu.immediate);
	assert_int_equal(sent[0].pdu.dsl, 3);
	assert_memory_equal(sent[0].data, "abc", 3);
	assert_int_equal(sent[0].pdu.cmdsn, 1);
	p = of_target(ISCSI_NOP_IN, sent[0].pdu.itt, 0);
	reply(&p, NULL);
	assert_int_equal(answers, 1);
	assert_int_equal(answer_err, 0);
	assert_int_equal(answer.op, ISCSI_NOP_IN);
	assert_int_equal(ini_text(s, request(0), "SendTargets=All", 16, NULL,
				  XTIME_NEVER),
			 0);
	take();
	assert_int_equal(sent[0].pdu.op, ISCSI_TEXT_REQUEST);
	assert_true(sent[0].pdu.final && sent[0].pdu.immediate);
	assert_int_equal(sent[0].pdu.ttt, ISCSI_RESERVED_TAG);
	assert_int_equal(sent[0].pdu.dsl, 16);
	assert_string_equal((char *)sent[0].data, "SendTargets=All");
	p = of_target(ISCSI_TEXT_RESPONSE, sent[0].pdu.itt, 0);
	reply(&p, NULL);
	assert_int_equal(answers, 1);
	assert_int_equal(ini_task_management(s, request(0), ISCSI_TMF_LU_RESET,
					     0x0001000000000000, NULL,
					     XTIME_NEVER),
			 0);
	take();
	assert_int_equal(sent[0].pdu.op, ISCSI_TMF_REQUEST);
	assert_int_equal(sent[0].pdu.tmf.function, ISCSI_TMF_LU_RESET);
	assert_int_equal(sent[0].pdu.tmf.rtt, ISCSI_RESERVED_TAG);
	assert_int_equal(sent[0].pdu.tmf.ref_cmdsn, 0);
	assert_int_equal(sent[0].pdu.lun, 0x0001000000000000);
	p = of_target(ISCSI_TMF_RESPONSE, sent[0].pdu.itt, 0);
	reply(&p, NULL);
	assert_int_equal(answers, 1);
	end();
}

/* [RFC 7143: 11.5.1 #7, 11.5.5 #2] */
static void test_task_management_of_a_task(void **state)
{
	uint32_t itt;

	(void)state;
	begin(8);
	ini_submit(s, task(0), 0);
	ini_submit(s, task(1), 0);
	take();
	itt = sent[1].pdu.itt;
	assert_int_equal(ini_task_management(s, request(0),
					     ISCSI_TMF_ABORT_TASK, 0, &tasks[1],
					     XTIME_NEVER),
			 0);
	take();
	assert_int_equal(sent[0].pdu.tmf.rtt, itt);
	assert_int_equal(sent[0].pdu.tmf.ref_cmdsn, 2);
	assert_int_equal(sent[0].pdu.cmdsn, 3);
	dmtcp_stream_ops.closed(dm, 0, 0);
	assert_int_equal(answers, 1);
	assert_int_equal(answer_err, ERR_CLOSED);
	assert_int_equal(ini_ping(s, request(1), NULL, 0, XTIME_NEVER),
			 ERR_CLOSED);
	end();
}

/* 16 more than commands. */
static void test_no_more_tags(void **state)
{
	unsigned n = 0;

	(void)state;
	begin(8);
	while (n < 24 && !ini_ping(s, request(n), NULL, 0, XTIME_NEVER))
		n++;
	assert_int_equal(n, 20);
	assert_int_equal(ini_ping(s, &requests[23], NULL, 0, XTIME_NEVER),
			 ERR_BUSY);
	end();
	assert_int_equal(answers, 20);
}

/* [RFC 7143: 4.2.4 #1] */
static void test_answer_of_another_kind_rfc7143_11_2_1_2(void **state)
{
	static const uint8_t ops[] = { ISCSI_TEXT_RESPONSE, ISCSI_TMF_RESPONSE,
				       ISCSI_LOGIN_RESPONSE,
				       ISCSI_LOGOUT_RESPONSE };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
		struct iscsi_pdu p;

		begin(8);
		ini_ping(s, request(0), NULL, 0, XTIME_NEVER);
		take();
		p = of_target(ops[i], sent[0].pdu.itt, 8);
		reply(&p, NULL);
		assert_true(is_closed);
		assert_int_equal(close_err, ERR_PROTOCOL);
		assert_int_equal(answer_err, ERR_PROTOCOL);
		end();
	}
}

/* The target may answer a request once after the deadline of that request. */
/* [RFC 7143: 4.2.3.3 #4] */
static void test_answer_after_the_deadline(void **state)
{
	struct iscsi_pdu p;

	(void)state;
	begin(8);
	rearmed = 0;
	ini_ping(s, request(0), NULL, 0, 4 * XTIME_S);
	assert_int_equal(rearmed, 1);
	take();
	ini_expire(s, 4 * XTIME_S - 1);
	assert_int_equal(answers, 0);
	ini_expire(s, 4 * XTIME_S);
	assert_int_equal(answers, 1);
	assert_int_equal(answer_err, ERR_TIMEOUT);
	p = of_target(ISCSI_NOP_IN, sent[0].pdu.itt, 8);
	reply(&p, NULL);
	assert_false(is_closed);
	p.statsn++;
	reply(&p, NULL);
	assert_true(is_closed);
	assert_int_equal(close_err, ERR_PROTOCOL);
	end();
}

/* A request's answer with the tag of a command. */
static void test_answer_to_a_command(void **state)
{
	struct iscsi_pdu p;

	(void)state;
	begin(8);
	ini_submit(s, task(0), 0);
	take();
	p = of_target(ISCSI_NOP_IN, sent[0].pdu.itt, 8);
	reply(&p, NULL);
	assert_true(is_closed);
	assert_int_equal(close_err, ERR_PROTOCOL);
	end();
}

/* ---- unasked ---- */

/* [RFC 7143: 11.18 #1-2, 11.18.1 #2 #4, 11.18.2 #3] */
static void test_ping_of_the_target_rfc7143_11_18(void **state)
{
	struct iscsi_pdu p;

	(void)state;
	begin(8);
	p = of_target(ISCSI_NOP_IN, ISCSI_RESERVED_TAG, 8);
	p.ttt = 0x77;
	p.lun = 0x0002000000000000;
	reply(&p, NULL);
	assert_int_equal(nsent, 1);
	assert_int_equal(sent[0].pdu.op, ISCSI_NOP_OUT);
	assert_true(sent[0].pdu.final && sent[0].pdu.immediate);
	assert_int_equal(sent[0].pdu.itt, ISCSI_RESERVED_TAG);
	assert_int_equal(sent[0].pdu.ttt, 0x77);
	assert_int_equal(sent[0].pdu.lun, p.lun);
	assert_int_equal(sent[0].pdu.cmdsn, 1);
	/* it has no StatSN of its own (§11.19.2) */
	assert_int_equal(sent[0].pdu.expstatsn, p.statsn);
	statsn = p.statsn;
	/* one that asks for nothing */
	p = of_target(ISCSI_NOP_IN, ISCSI_RESERVED_TAG, 8);
	reply(&p, NULL);
	assert_int_equal(nsent, 0);
	assert_false(is_closed);
	end();
}

/* [RFC 7143: 7.1.4.3 #3] */
static void test_asynchronous_events_rfc7143_11_9(void **state)
{
	static const struct {
		uint8_t event;
		bool drops;
	} rows[] = {
		{ ISCSI_ASYNC_SCSI, false },
		{ ISCSI_ASYNC_LOGOUT, false },
		{ ISCSI_ASYNC_DROP_CONNECTION, true },
		{ ISCSI_ASYNC_DROP_SESSION, true },
		{ ISCSI_ASYNC_NEGOTIATE, false },
		{ ISCSI_ASYNC_TASK_TERMINATION, false },
		{ 255, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct iscsi_pdu p;

		begin(8);
		p = of_target(ISCSI_ASYNC_MESSAGE, ISCSI_RESERVED_TAG, 8);
		p.async.event = rows[i].event;
		reply(&p, NULL);
		assert_int_equal(events, 1);
		assert_int_equal(last_event, rows[i].event);
		assert_int_equal(is_closed, rows[i].drops);
		if (is_closed)
			assert_int_equal(close_err, ERR_CLOSED);
		else /* also where the target asked for a logout (§8.1.3) */
			assert_int_equal(ini_ping(s, request(0), NULL, 0,
						  XTIME_NEVER),
					 0);
		end();
	}
}

static void reject_of(uint32_t itt, uint8_t op, uint32_t len)
{
	const struct iscsi_pdu bad = { .op = op, .final = true, .itt = itt };
	struct iscsi_pdu p = of_target(ISCSI_REJECT, ISCSI_RESERVED_TAG, 8);
	uint8_t bhs[ISCSI_BHS_LEN];

	iscsi_bhs_encode(&bad, bhs);
	p.reject.reason = ISCSI_REJECT_PROTOCOL;
	p.dsl = len;
	reply(&p, bhs);
}

/* [RFC 7143: 7.3 #3] */
static void test_rejects_rfc7143_11_17(void **state)
{
	(void)state;
	begin(8);
	ini_ping(s, request(0), NULL, 0, XTIME_NEVER);
	take();
	reject_of(sent[0].pdu.itt, ISCSI_NOP_OUT, ISCSI_BHS_LEN);
	assert_int_equal(answers, 1);
	assert_int_equal(answer_err, ERR_UNSUPPORTED);
	assert_false(is_closed);
	/* of a tag that is not in use any more */
	reject_of(requests[0].itt, ISCSI_NOP_OUT, ISCSI_BHS_LEN);
	assert_false(is_closed);
	ini_submit(s, task(0), 0);
	take();
	reject_of(sent[0].pdu.itt, ISCSI_SCSI_COMMAND, ISCSI_BHS_LEN);
	assert_true(is_closed);
	assert_int_equal(close_err, ERR_PROTOCOL);
	end();
	begin(8);
	reject_of(0, ISCSI_NOP_OUT, ISCSI_BHS_LEN - 1);
	assert_true(is_closed);
	assert_int_equal(close_err, ERR_FORMAT);
	end();
}

/* ---- the end ---- */

/* [RFC 7143: 11.9.1 #3, 11.14 #5, 11.14.2 #1, 11.15 #1] */
static void test_logout_rfc7143_11_14(void **state)
{
	struct iscsi_pdu p;

	(void)state;
	begin(8);
	ini_submit(s, task(0), 0);
	rearmed = 0;
	ini_logout(s, XTIME_S);
	assert_int_equal(rearmed, 1);
	assert_int_equal(ini_deadline(s), 6 * XTIME_S);
	take();
	assert_int_equal(nsent, 2);
	assert_int_equal(sent[1].pdu.op, ISCSI_LOGOUT_REQUEST);
	assert_true(sent[1].pdu.final && sent[1].pdu.immediate);
	assert_int_equal(sent[1].pdu.logout.reason, ISCSI_LOGOUT_SESSION);
	assert_int_equal(sent[1].pdu.dsl + sent[1].pdu.ahs_len, 0);
	ini_submit(s, task(1), XTIME_S);
	assert_int_equal(tasks[1].err, ERR_CLOSED);
	p = of_target(ISCSI_LOGOUT_RESPONSE, sent[1].pdu.itt, 8);
	reply(&p, NULL);
	assert_true(is_closed);
	assert_int_equal(close_err, 0);
	assert_int_equal(tasks[0].err, ERR_CLOSED);
	end();
}

static void test_logout_without_an_answer(void **state)
{
	(void)state;
	begin(8);
	ini_logout(s, XTIME_S);
	take();
	ini_expire(s, 6 * XTIME_S - 1);
	take();
	assert_false(is_closed);
	ini_expire(s, 6 * XTIME_S);
	take();
	assert_true(is_closed);
	assert_int_equal(close_err, ERR_TIMEOUT);
	assert_int_equal(ini_deadline(s), XTIME_NEVER);
	end();
}

static void test_logout_before_the_login_is_over(void **state)
{
	struct ini_config cfg = config();

	(void)state;
	start(&cfg);
	ini_logout(s, 0);
	take();
	assert_true(is_closed);
	assert_int_equal(login_err, ERR_CLOSED);
	end();
}

/* ---- login ---- */

/* [RFC 7143: 6.3 #1] */
static void test_login_responses_in_turn_rfc7143_11_13_4(void **state)
{
	(void)state;
	for (unsigned skip = 0; skip < 2; skip++) {
		struct ini_config cfg = config();
		struct iscsi_pdu p;

		start(&cfg);
		/* the first one: the stage goes on */
		p = of_target(ISCSI_LOGIN_RESPONSE, sent[0].pdu.itt, 8);
		p.login = sent[0].pdu.login;
		p.login.transit = p.final = false;
		p.login.nsg = 0;
		reply(&p, NULL);
		assert_int_equal(nsent, 1);
		assert_int_equal(sent[0].pdu.expstatsn, p.statsn + 1);
		statsn += skip;
		p = of_target(ISCSI_LOGIN_RESPONSE, sent[0].pdu.itt, 8);
		p.login = sent[0].pdu.login;
		p.login.transit = p.final = false;
		p.login.nsg = 0;
		reply(&p, NULL);
		assert_int_equal(is_closed, skip);
		if (skip)
			assert_int_equal(login_err, ERR_SEQUENCE);
		end();
	}
}

/* [RFC 7143: 7.12 #2, 11.13.5 #3] */
static void test_login_refused(void **state)
{
	struct ini_config cfg = config();
	struct iscsi_pdu p;

	(void)state;
	start(&cfg);
	p = of_target(ISCSI_LOGIN_RESPONSE, sent[0].pdu.itt, 8);
	p.login = sent[0].pdu.login;
	p.login.transit = p.final = false;
	p.login.nsg = 0;
	p.login.status_class = 2;
	p.login.status_detail = 3;
	reply(&p, NULL);
	assert_true(is_closed);
	assert_int_equal(login_err, ERR_LOGIN);
	assert_int_equal(ini_failure(s)->status, 0x203);
	assert_int_equal(ini_tpgt(s), -1);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_window_and_depth_rfc7143_4_2_2_1),
		cmocka_unit_test(test_immediate_past_a_closed_window),
		cmocka_unit_test(test_fields_of_a_command_rfc7143_11_3),
		cmocka_unit_test(test_sense_and_qualifier_rfc7144_5_2_1),
		cmocka_unit_test(test_target_failure_rfc7143_11_4_3),
		cmocka_unit_test(test_deadline_of_a_waiting_command),
		cmocka_unit_test(test_deadline_of_a_sent_command),
		cmocka_unit_test(test_login_takes_too_long),
		cmocka_unit_test(test_ping_of_a_silent_target),
		cmocka_unit_test(test_requests_and_their_answers),
		cmocka_unit_test(test_task_management_of_a_task),
		cmocka_unit_test(test_no_more_tags),
		cmocka_unit_test(test_answer_of_another_kind_rfc7143_11_2_1_2),
		cmocka_unit_test(test_answer_after_the_deadline),
		cmocka_unit_test(test_answer_to_a_command),
		cmocka_unit_test(test_ping_of_the_target_rfc7143_11_18),
		cmocka_unit_test(test_asynchronous_events_rfc7143_11_9),
		cmocka_unit_test(test_rejects_rfc7143_11_17),
		cmocka_unit_test(test_logout_rfc7143_11_14),
		cmocka_unit_test(test_logout_without_an_answer),
		cmocka_unit_test(test_logout_before_the_login_is_over),
		cmocka_unit_test(test_login_responses_in_turn_rfc7143_11_13_4),
		cmocka_unit_test(test_login_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
