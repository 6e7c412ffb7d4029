/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * clauses_test.c: clauses of RFC 7143 for what an initiator sends: the first Login
 * Request, tags, functions, Text Requests, and the answer to R2Ts of tasks that a
 * function affects.
 */
#include "stream_fixture.h"

static bool has_pair(const struct sent *t, const char *pair)
{
	size_t n = strlen(pair) + 1;

	for (size_t at = 0; at + n <= t->pdu.dsl; at++)
		if (!memcmp(t->data + at, pair, n))
			return true;
	return false;
}

/* [RFC 7143: 4.2.7.1 #4, 6.3 #2-3, 11.12 #1, 11.12.4 #1, 11.12.6 #1,
 * 11.12.10 #1, 13.4 #1, 13.5 #1] */
static void test_first_request_of_a_login_rfc7143_11_12(void **state)
{
	struct ini_config cfg = config();
	const struct iscsi_login_fields *l = &sent[0].pdu.login;

	(void)state;
	start(&cfg);
	assert_int_equal(nsent, 1);
	assert_int_equal(sent[0].pdu.op, ISCSI_LOGIN_REQUEST);
	assert_true(sent[0].pdu.immediate);
	assert_int_equal(l->vmax, 0);
	assert_int_equal(l->vmin, 0);
	assert_int_equal(l->tsih, 0);
	assert_true(has_pair(&sent[0], "InitiatorName=iqn.2026-01.x:i"));
	assert_true(has_pair(&sent[0], "TargetName=iqn.2026-01.x:t"));
	end();
}

/* No two of the tags that are in use are equal, and none is reserved. */
/* [RFC 7143: 11.2.1.8 #1-2] */
static void test_each_tag_once_rfc7143_11_2_1_8(void **state)
{
	uint32_t tags[12];

	(void)state;
	begin(8);
	for (unsigned round = 0; round < 40000; round++) {
		unsigned n = 0;

		for (unsigned i = 0; i < 4; i++)
			ini_submit(s, task(i), 0);
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(ini_ping(s, request(i), NULL, 0,
						  XTIME_NEVER),
					 0);
		take();
		assert_int_equal(nsent, 8);
		for (unsigned i = 0; i < nsent; i++) {
			assert_int_not_equal(sent[i].pdu.itt,
					     ISCSI_RESERVED_TAG);
			for (unsigned k = 0; k < n; k++)
				assert_int_not_equal(sent[i].pdu.itt, tags[k]);
			tags[n++] = sent[i].pdu.itt;
		}
		for (unsigned i = 0; i < n; i++) {
			struct iscsi_pdu p;

			p = of_target(i < 4 ? ISCSI_SCSI_RESPONSE
					    : ISCSI_NOP_IN,
				      tags[i], 8 + 4 * (round + 1));
			p.expcmdsn = 1 + 4 * (round + 1);
			reply(&p, NULL);
		}
	}
	end();
}

/* [RFC 7143: 11.5.2 #1, 11.5.4 #1] */
/* [RFC 7144: 6.3.2 #1] */
static void test_functions_without_a_task_rfc7143_11_5_4(void **state)
{
	(void)state;
	for (unsigned f = ISCSI_TMF_ABORT_TASK_SET;
	     f <= ISCSI_TMF_TARGET_COLD_RESET; f++) {
		begin(8);
		assert_int_equal(ini_task_management(s, request(0), f, 0, NULL,
						     XTIME_NEVER),
				 0);
		take();
		assert_int_equal(sent[0].pdu.op, ISCSI_TMF_REQUEST);
		assert_int_equal(sent[0].pdu.tmf.rtt, ISCSI_RESERVED_TAG);
		assert_int_equal(sent[0].pdu.dsl + sent[0].pdu.ahs_len, 0);
		end();
	}
}

/* [RFC 7143: 4.2.2.1 #2, 11.5.1 #6, 11.5.5 #1] */
/* [RFC 7144: 6.3 #5, 6.3.3 #1] */
static void test_abort_of_an_immediate_command_rfc7143_11_5_5(void **state)
{
	(void)state;
	begin(8);
	task(0)->immediate = true;
	ini_submit(s, &tasks[0], 0);
	ini_submit(s, task(1), 0);
	take();
	assert_int_equal(nsent, 2);
	assert_true(sent[0].pdu.immediate);
	assert_int_equal(sent[0].pdu.cmdsn, sent[1].pdu.cmdsn);
	ini_task_management(s, request(0), ISCSI_TMF_ABORT_TASK, 0, &tasks[0],
			    XTIME_NEVER);
	take();
	assert_int_equal(sent[0].pdu.tmf.ref_cmdsn, sent[0].pdu.cmdsn);
	end();
}

/* The data that an R2T asks for are sent after ABORT TASK SET, too. */
/* [RFC 7143: 4.2.3.3 #2, 11.5.1 #4] */
static void test_r2t_after_abort_task_set_rfc7143_11_5_1(void **state)
{
	static const char keys[] = "InitialR2T=Yes\0ImmediateData=No";
	static uint8_t block[512];
	struct iovec iov = { block, sizeof(block) };
	struct ini_config cfg = config();
	struct iscsi_pdu p;
	uint32_t itt;

	(void)state;
	cfg.login.want.initial_r2t = true;
	cfg.login.want.immediate_data = false;
	start(&cfg);
	log_in(8, keys, sizeof(keys));
	task(0)->write = true;
	tasks[0].out = bufv_of(&iov, 1);
	ini_submit(s, &tasks[0], 0);
	take();
	itt = sent[0].pdu.itt;
	ini_task_management(s, request(0), ISCSI_TMF_ABORT_TASK_SET, 0, NULL,
			    XTIME_NEVER);
	take();
	p = of_target(ISCSI_R2T, itt, 8);
	statsn--;
	p.ttt = 0x77;
	p.r2t.ddtl = 512;
	reply(&p, NULL);
	assert_int_equal(nsent, 1);
	assert_int_equal(sent[0].pdu.op, ISCSI_DATA_OUT);
	assert_int_equal(sent[0].pdu.ttt, 0x77);
	assert_true(sent[0].pdu.final);
	end();
}

/* RFC 7144 §7.1.1: what needs level 2 is not used after NotUnderstood. */
/* [RFC 7144: 7.1.1 #1] */
static void test_level_not_understood_rfc7144_7_1_1(void **state)
{
	static const char keys[] = "iSCSIProtocolLevel=NotUnderstood";
	struct ini_config cfg = config();
	struct iscsi_pdu p;

	(void)state;
	cfg.login.want.protocol_level = 2;
	start(&cfg);
	assert_true(has_pair(&sent[0], "iSCSIProtocolLevel=2"));
	log_in(8, keys, sizeof(keys));
	assert_true(ini_params(s)->protocol_level < 2);
	task(0)->priority = 5;
	ini_submit(s, &tasks[0], 0);
	take();
	assert_int_equal(sent[0].pdu.cmd.priority, 0);
	p = of_target(ISCSI_SCSI_RESPONSE, sent[0].pdu.itt, 8);
	p.rsp.status_qualifier = 0x1234;
	reply(&p, NULL);
	assert_int_equal(tasks[0].qualifier, 0);
	end();
}

/* ---- Text Requests ---- */

/* [RFC 7143: 6.2 #4, 11.10 #1] */
static void test_one_text_request_rfc7143_11_10(void **state)
{
	struct iscsi_pdu p;

	(void)state;
	begin(8);
	assert_int_equal(ini_text(s, request(0), "a=b", 4, NULL, XTIME_NEVER),
			 0);
	take();
	p = of_target(ISCSI_TEXT_RESPONSE, sent[0].pdu.itt, 8);
	assert_int_equal(ini_text(s, &requests[1], "a=b", 4, NULL, XTIME_NEVER),
			 ERR_BUSY);
	take();
	assert_int_equal(nsent, 0);
	reply(&p, NULL);
	assert_int_equal(answers, 1);
	assert_int_equal(ini_text(s, request(1), "a=b", 4, NULL, XTIME_NEVER),
			 0);
	end();
}

/* [RFC 7143: 6.4 #1, 11.10.3 #1-2, 11.11.4 #3] */
static void test_text_request_goes_on_rfc7143_11_10_3(void **state)
{
	struct iscsi_pdu first, p;

	(void)state;
	begin(8);
	ini_text(s, request(0), "a=b", 4, NULL, XTIME_NEVER);
	take();
	first = sent[0].pdu;
	for (uint32_t i = 0; i < 3; i++) {
		p = of_target(ISCSI_TEXT_RESPONSE, first.itt, 8);
		p.final = false;
		p.ttt = 0x100 + i;
		p.lun = 0x0003000000000000 + i;
		reply(&p, NULL);
		assert_int_equal(answers, 1);
		answers = 0;
		assert_int_equal(
			ini_text(s, &requests[0], NULL, 0, &p, XTIME_NEVER), 0);
		take();
		assert_int_equal(sent[0].pdu.itt, first.itt);
		assert_int_equal(sent[0].pdu.immediate, first.immediate);
		assert_int_equal(sent[0].pdu.ttt, p.ttt); /* §11.11.4 */
		assert_int_equal(sent[0].pdu.lun, p.lun);
	}
	/* another request has the tag meanwhile */
	p = of_target(ISCSI_TEXT_RESPONSE, first.itt, 8);
	p.final = false;
	p.ttt = 0x55;
	reply(&p, NULL);
	ini_ping(s, &requests[1], NULL, 0, XTIME_NEVER);
	assert_int_equal(ini_text(s, &requests[0], NULL, 0, &p, XTIME_NEVER),
			 ERR_BUSY);
	end();
}

/* [RFC 7143: 11.10.5 #1] */
static void test_text_request_of_any_length_rfc7143_11_10_5(void **state)
{
	static const char keys[] = "MaxRecvDataSegmentLength=512";
	static const char text[600];
	struct ini_config cfg = config();

	(void)state;
	start(&cfg);
	log_in(8, keys, sizeof(keys));
	assert_int_equal(ini_text(s, request(0), text, 513, NULL, XTIME_NEVER),
			 ERR_TOO_LONG);
	assert_int_equal(ini_text(s, request(0), text, 512, NULL, XTIME_NEVER),
			 0);
	end();
}

/* ---- a negotiation that the target asks for ---- */

static void ask_to_negotiate(void)
{
	struct iscsi_pdu p =
		of_target(ISCSI_ASYNC_MESSAGE, ISCSI_RESERVED_TAG, 8);

	p.async.event = ISCSI_ASYNC_NEGOTIATE;
	reply(&p, NULL);
}

static void answer_text(bool final, const char *text, size_t len)
{
	struct iscsi_pdu p = of_target(ISCSI_TEXT_RESPONSE, sent[0].pdu.itt, 8);

	p.final = final;
	p.ttt = final ? ISCSI_RESERVED_TAG : 0x99;
	p.dsl = (uint32_t)len;
	reply(&p, text);
}

/* [RFC 7143: 11.9.1 #4] */
static void test_negotiation_request_rfc7143_11_9_1(void **state)
{
	static const char keys[] = "MaxRecvDataSegmentLength=1024\0X-a.b=1";
	uint32_t itt;

	(void)state;
	begin(8);
	ask_to_negotiate();
	assert_int_equal(nsent, 1);
	assert_int_equal(sent[0].pdu.op, ISCSI_TEXT_REQUEST);
	assert_true(sent[0].pdu.final);
	assert_int_equal(sent[0].pdu.dsl, 0);
	itt = sent[0].pdu.itt;
	/* a second message while the Text Request is pending */
	ask_to_negotiate();
	assert_int_equal(nsent, 0);
	sent[0].pdu.itt = itt;
	answer_text(false, keys, sizeof(keys));
	assert_int_equal(nsent, 1);
	assert_int_equal(sent[0].pdu.itt, itt);
	assert_int_equal(sent[0].pdu.ttt, 0x99);
	assert_true(has_pair(&sent[0], "X-a.b=NotUnderstood"));
	answer_text(true, NULL, 0);
	assert_int_equal(nsent, 0);
	/* the value that the target declared is in force */
	assert_int_equal(ini_text(s, request(0), NULL, 1025, NULL, XTIME_NEVER),
			 ERR_TOO_LONG);
	assert_false(is_closed);
	end();
}

/* §7.12: the values stay as they were; the session goes on. */
/* [RFC 7143: 6.4 #5, 7.12 #3-5] */
static void test_negotiation_fails_rfc7143_7_12(void **state)
{
	static const struct {
		const char *text;
		size_t len;
	} rows[] = {
#define ROW(t) { t, sizeof(t) }
		ROW("MaxRecvDataSegmentLength=1024\0MaxConnections=4"),
		ROW("MaxRecvDataSegmentLength=1024\0"
		    "MaxRecvDataSegmentLength=2048"),
		ROW("MaxRecvDataSegmentLength=1024\0MaxRecvDataSegmentLength="),
		ROW("MaxRecvDataSegmentLength=1024\0nothing"),
#undef ROW
	};
	static const char text[2048];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		begin(8);
		ask_to_negotiate();
		answer_text(i % 2, rows[i].text, rows[i].len);
		assert_int_equal(nsent, 0);
		assert_false(is_closed);
		assert_int_equal(ini_text(s, request(0), text, 2048, NULL,
					  XTIME_NEVER),
				 0);
		end();
	}
}

static void test_negotiation_without_end(void **state)
{
	unsigned n;

	(void)state;
	begin(8);
	ask_to_negotiate();
	for (n = 0; nsent && n < 100; n++)
		answer_text(false, NULL, 0);
	assert_true(n < 100);
	assert_false(is_closed);
	/* a loss in between */
	ask_to_negotiate();
	assert_int_equal(nsent, 1);
	end();
}

static void answer_part(const char *text, size_t len)
{
	struct iscsi_pdu p = of_target(ISCSI_TEXT_RESPONSE, sent[0].pdu.itt, 8);

	p.final = false;
	p.cont = true;
	p.ttt = 0x99;
	p.dsl = (uint32_t)len;
	reply(&p, text);
}

/* §6.2: empty requests fetch the other parts; parts without end are given up, and do not
 * count for the next negotiation. */
static void test_negotiation_in_parts_rfc7143_6_2(void **state)
{
	static const char first[] = "MaxRecvDataSegm",
			  rest[] = "entLength=1024",
			  junk[] = "X-a.b=12345678901234567890";
	unsigned n;

	(void)state;
	begin(8);
	ask_to_negotiate();
	for (n = 0; nsent && n < 100; n++) {
		assert_int_equal(sent[0].pdu.dsl, 0);
		answer_part(junk, sizeof(junk));
	}
	assert_true(n > 1 && n < 100);
	assert_false(is_closed);
	ask_to_negotiate();
	assert_int_equal(nsent, 1);
	answer_part(first, sizeof(first) - 1);
	assert_int_equal(nsent, 1);
	answer_text(true, rest, sizeof(rest));
	assert_int_equal(nsent, 0);
	assert_int_equal(ini_text(s, request(0), NULL, 1025, NULL, XTIME_NEVER),
			 ERR_TOO_LONG);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_request_of_a_login_rfc7143_11_12),
		cmocka_unit_test(test_each_tag_once_rfc7143_11_2_1_8),
		cmocka_unit_test(test_functions_without_a_task_rfc7143_11_5_4),
		cmocka_unit_test(
			test_abort_of_an_immediate_command_rfc7143_11_5_5),
		cmocka_unit_test(test_r2t_after_abort_task_set_rfc7143_11_5_1),
		cmocka_unit_test(test_level_not_understood_rfc7144_7_1_1),
		cmocka_unit_test(test_one_text_request_rfc7143_11_10),
		cmocka_unit_test(test_text_request_goes_on_rfc7143_11_10_3),
		cmocka_unit_test(
			test_text_request_of_any_length_rfc7143_11_10_5),
		cmocka_unit_test(test_negotiation_request_rfc7143_11_9_1),
		cmocka_unit_test(test_negotiation_fails_rfc7143_7_12),
		cmocka_unit_test(test_negotiation_without_end),
		cmocka_unit_test(test_negotiation_in_parts_rfc7143_6_2),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
