/* SPDX-License-Identifier: BSD-2-Clause */
/* iser_test.c: the initiator over datamover/iser on a fake queue pair:
 * requirements of RFC 7145 on the iSCSI layer. */
#include "unit/initiator/fixture.h"

static void done(struct ini_request *r, int err, const struct dm_control *rsp)
{
	(void)r;
	(void)rsp;
	answered += err == 0;
}

static bool says(const char *text, size_t n, const char *pair)
{
	for (size_t at = 0; at < n; at += strlen(text + at) + 1)
		if (strcmp(text + at, pair) == 0)
			return true;
	return false;
}

/* The first Login Request offers RDMAExtensions, and neither digests nor
 * markers nor MaxRecvDataSegmentLength. */
/* [RFC 7145: 3.3 #1, 5.1 #6, 6.3 #3] */
static void test_first_request_offers_rdma_extensions_rfc7145_6_3(void **state)
{
	static char text[8192];
	struct iscsi_pdu p;

	(void)state;
	begin();
	p = sent(0, text, sizeof(text));
	assert_int_equal(p.op, ISCSI_LOGIN_REQUEST);
	assert_true(says(text, p.dsl, "RDMAExtensions=Yes"));
	assert_true(says(text, p.dsl, "InitiatorRecvDataSegmentLength=4096"));
	assert_true(says(text, p.dsl, "TargetRecvDataSegmentLength=8192"));
	for (size_t at = 0; at < p.dsl; at += strlen(text + at) + 1) {
		assert_null(strstr(text + at, "Digest"));
		assert_null(strstr(text + at, "Marker"));
		assert_int_not_equal(strncmp(text + at, "MaxRecvData", 11), 0);
	}
	end();
}

/* The limits are those of the two new keys. */
/* [RFC 7145: 5.1.1 #4] */
static void test_params_of_the_session_rfc7145_6_2(void **state)
{
	const struct iscsi_params *p;

	(void)state;
	begin();
	ANSWER(USUAL "MaxRecvDataSegmentLength=65536\0");
	assert_true(is_logged_in);
	p = ini_params(s);
	assert_true(p->rdma_extensions);
	assert_false(p->header_digest || p->data_digest);
	assert_int_equal(p->max_recv_dsl, 4096);
	assert_int_equal(p->max_send_dsl, 8192); /* not 65536: §6.2 */
	end();
}

/* In RDMA mode the target's first PDU may come right after its Login Response:
 * all receives stand ready before the request that may end the login. They are
 * large enough for a Login Response, and the limit is the negotiated one
 * afterwards. */
static void test_receives_before_the_login_ends_rfc7145_5_1_1(void **state)
{
	const struct iscsi_pdu ping = { .op = ISCSI_NOP_IN,
					.final = true,
					.itt = ISCSI_RESERVED_TAG,
					.ttt = 5,
					.statsn = 11,
					.expcmdsn = 1,
					.maxcmdsn = 16 };
	struct iscsi_pdu large = ping;
	static uint8_t data[4100];
	unsigned ready;

	(void)state;
	begin();
	ready = f.nrecvs;
	assert_true(ready > 16);
	ANSWER(USUAL);
	assert_true(is_logged_in);
	assert_int_equal(f.nrecvs,
			 ready - 1); /* the request of the login is complete */
	deliver(&ping, NULL);
	assert_false(is_closed);
	assert_int_equal(f.nrecvs, ready - 1);
	large.dsl = 4097; /* InitiatorRecvDataSegmentLength is 4096 */
	deliver(&large, data);
	assert_true(f.terminated);
	end();
}

/* The answer to a ping has to fit, too. */
/* [RFC 7145: 6.2 #4] */
static void test_ping_no_longer_than_its_answer_rfc7145_6_2(void **state)
{
	static uint8_t data[8192];
	struct ini_request r = { .done = done };

	(void)state;
	begin();
	ANSWER(USUAL);
	assert_true(is_logged_in);
	assert_int_equal(ini_ping(s, &r, data, 4097, XTIME_NEVER),
			 ERR_TOO_LONG);
	assert_int_equal(ini_ping(s, &r, data, 4096, XTIME_NEVER), 0);
	end();
}

/* Where the target has no room for immediate requests, requests take their
 * turn. */
/* [RFC 7145: 8.1.1.3 #3] */
static void test_requests_in_turn_rfc7145_8_1_1_3(void **state)
{
	struct ini_request r[4] = { { .done = done },
				    { .done = done },
				    { .done = done },
				    { .done = done } };
	struct iscsi_pdu in = { .op = ISCSI_NOP_IN,
				.final = true,
				.ttt = ISCSI_RESERVED_TAG,
				.expcmdsn = 2,
				.maxcmdsn = 16 };

	(void)state;
	begin();
	ANSWER(USUAL "MaxOutstandingUnexpectedPDUs=2\0");
	assert_true(is_logged_in);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(ini_ping(s, &r[i], NULL, 0, XTIME_NEVER), 0);
	assert_true(sent(0, NULL, 0).immediate);
	assert_true(sent(1, NULL, 0).immediate);
	assert_false(sent(2, NULL, 0).immediate);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(sent(i, NULL, 0).cmdsn, 1);
	/* the target received it: immediate requests are retired, CmdSN
	 * advanced */
	in.itt = sent(2, NULL, 0).itt;
	in.statsn = statsn++;
	flush();
	deliver(&in, NULL);
	assert_int_equal(answered, 1);
	assert_int_equal(ini_ping(s, &r[3], NULL, 0, XTIME_NEVER), 0);
	assert_true(sent(0, NULL, 0).immediate);
	assert_int_equal(sent(0, NULL, 0).cmdsn, 2);
	end();
}

/* A logout is sent, too; a closed window stops every numbered request. */
static void test_logout_in_turn(void **state)
{
	struct ini_request r[3] = { { .done = done },
				    { .done = done },
				    { .done = done } };

	(void)state;
	begin();
	ANSWER(USUAL "MaxOutstandingUnexpectedPDUs=2\0");
	ini_ping(s, &r[0], NULL, 0, XTIME_NEVER);
	ini_ping(s, &r[1], NULL, 0, XTIME_NEVER);
	ini_logout(s, 0);
	assert_int_equal(sent(2, NULL, 0).op, ISCSI_LOGOUT_REQUEST);
	assert_false(sent(2, NULL, 0).immediate);
	end();
}

/* The target refuses the login. */
/* [RFC 7145: 10.1.4.6 #1-2 #5-6] */
static void test_login_refused_rfc7145_10_1_4_6(void **state)
{
	struct iscsi_pdu p = { .op = ISCSI_LOGIN_RESPONSE, .statsn = 10 };

	(void)state;
	begin();
	p.itt = sent(0, NULL, 0).itt;
	p.login.status_class = 3;
	p.login.status_detail = 2;
	flush();
	deliver(&p, NULL);
	assert_false(is_logged_in);
	assert_int_equal(logged_in_err, ERR_LOGIN);
	assert_true(f.terminated || f.disconnected);
	end();
}

/* ---- wrong answers ---- */

/* §11.13.4: StatSN grows by one with each Login Response; step: that of the
 * second one. */
static void second_login_response(uint32_t step)
{
	struct iscsi_pdu p = { .op = ISCSI_LOGIN_RESPONSE,
			       .statsn = statsn,
			       .expcmdsn = 1,
			       .maxcmdsn = 16 };
	struct iscsi_pdu req;

	begin();
	req = sent(0, NULL, 0);
	p.itt = req.itt;
	memcpy(p.login.isid, req.login.isid, 6);
	p.login.csg = req.login.csg;
	p.statsn = statsn;
	flush();
	deliver(&p, NULL);
	assert_false(is_logged_in || logged_in_err == ERR_SEQUENCE);
	statsn += step;
	ANSWER(USUAL);
}

static void test_login_statsn_rfc7143_11_13_4(void **state)
{
	(void)state;
	second_login_response(1);
	assert_true(is_logged_in);
	end();
	second_login_response(0); /* the first response again */
	assert_int_equal(logged_in_err, ERR_SEQUENCE);
	end();
	second_login_response(2); /* a response was lost */
	assert_int_equal(logged_in_err, ERR_SEQUENCE);
	end();
}

/* After the login a Login Response answers nothing, and a request is
 * answered by its own kind of response only. */
static void wrong_kind(uint8_t op)
{
	struct iscsi_pdu p = { .op = op,
			       .final = true,
			       .ttt = ISCSI_RESERVED_TAG,
			       .expcmdsn = 2,
			       .maxcmdsn = 16 };
	struct ini_request r = { .done = done };

	begin();
	ANSWER(USUAL);
	assert_true(is_logged_in);
	assert_int_equal(ini_ping(s, &r, "ping", 4, XTIME_NEVER), 0);
	p.itt = sent(0, NULL, 0).itt;
	p.statsn = statsn++;
	flush();
	deliver(&p, NULL);
	assert_int_equal(answered, op == ISCSI_NOP_IN);
	assert_int_equal(f.terminated || f.disconnected, op != ISCSI_NOP_IN);
	end();
}

static void test_answer_of_another_kind_rfc7143_11_2_1_2(void **state)
{
	(void)state;
	wrong_kind(ISCSI_NOP_IN);
	wrong_kind(ISCSI_LOGIN_RESPONSE);
	wrong_kind(ISCSI_SCSI_RESPONSE);
	wrong_kind(ISCSI_TMF_RESPONSE);
	wrong_kind(ISCSI_TEXT_RESPONSE);
	wrong_kind(ISCSI_LOGOUT_RESPONSE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_first_request_offers_rdma_extensions_rfc7145_6_3),
		cmocka_unit_test(test_params_of_the_session_rfc7145_6_2),
		cmocka_unit_test(
			test_receives_before_the_login_ends_rfc7145_5_1_1),
		cmocka_unit_test(
			test_ping_no_longer_than_its_answer_rfc7145_6_2),
		cmocka_unit_test(test_requests_in_turn_rfc7145_8_1_1_3),
		cmocka_unit_test(test_logout_in_turn),
		cmocka_unit_test(test_login_refused_rfc7145_10_1_4_6),
		cmocka_unit_test(test_login_statsn_rfc7143_11_13_4),
		cmocka_unit_test(test_answer_of_another_kind_rfc7143_11_2_1_2),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
