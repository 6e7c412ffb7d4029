/* SPDX-License-Identifier: BSD-2-Clause */
/* mcs_test.c: sessions of several connections at ErrorRecoveryLevel 0: logins, the
 * numbers, allegiance, and the ends. */
#include "mcs_fixture.h"

/* [RFC 7143: 11.12.6 #2] */
static void test_a_further_login_names_the_session_rfc7143_6_3_1(void **state)
{
	const struct iscsi_pdu *p = &wires[1].sent[0];

	(void)state;
	begin(1, 0);
	submit(0, false);
	start_joining(1);
	assert_int_equal(p->op, ISCSI_LOGIN_REQUEST);
	assert_int_equal(p->login.tsih, TSIH);
	assert_int_equal(p->login.cid, 1);
	assert_int_equal(p->login.isid[0], 0x80);
	assert_int_equal(p->cmdsn, 2); /* immediate: the next one's */
	for (const char *k = wires[1].text; *k; k += strlen(k) + 1) {
		assert_null(strstr(k, "MaxConnections"));
		assert_null(strstr(k, "SessionType"));
		assert_null(strstr(k, "InitialR2T"));
		assert_null(strstr(k, "ErrorRecoveryLevel"));
	}
	GRANT(&wires[1], TSIH, "MaxRecvDataSegmentLength=8192");
	assert_int_equal(joined, 1);
	assert_int_equal(joined_err, 0);
	end();
}

/* [RFC 7143: 4.2.2.1 #7] */
static void test_commands_take_turns_in_one_order_rfc7143_4_2_2_1(void **state)
{
	static const unsigned wire_of[4] = { 0, 1, 0, 1 };

	(void)state;
	begin(2, 0);
	for (unsigned i = 0; i < 4; i++) {
		const struct wire *w = &wires[wire_of[i]];

		submit(i, false);
		assert_int_equal(w->nsent, 1);
		assert_int_equal(wires[!wire_of[i]].nsent, 0);
		assert_int_equal(w->sent[0].cmdsn, i + 1);
		/* StatSN is counted for each connection (§4.2.2.2) */
		assert_int_equal(w->sent[0].expstatsn, w->statsn);
	}
	/* the connection with fewer commands gets the next one */
	status(&wires[1], tasks[1].dm.itt);
	status(&wires[1], tasks[3].dm.itt);
	submit(4, false);
	submit(5, false);
	assert_int_equal(ended, 2);
	assert_ptr_equal(tasks[4].sent.conn, tasks[1].sent.conn);
	assert_ptr_equal(tasks[5].sent.conn, tasks[1].sent.conn);
	end();
}

static void test_a_refused_connection_leaves_the_session(void **state)
{
	struct iscsi_pdu p = { .op = ISCSI_LOGIN_RESPONSE };

	(void)state;
	begin(1, 0);
	start_joining(1);
	p.itt = wires[1].sent[0].itt;
	memcpy(p.login.isid, wires[1].sent[0].login.isid, 6);
	p.login.status_class = 2;
	p.login.status_detail = 6; /* too many connections */
	reply(&wires[1], &p, NULL);
	assert_int_equal(joined, 1);
	assert_int_equal(joined_err, ERR_LOGIN);
	assert_true(wires[1].is_over);
	assert_false(is_closed);
	submit(0, false);
	assert_int_equal(wires[0].nsent, 1);
	end();
}

/* [RFC 7143: 4.4.3 #1] */
static void test_another_tsih_ends_the_session_rfc7143_11_13_3(void **state)
{
	(void)state;
	begin(1, 0);
	start_joining(1);
	GRANT(&wires[1], TSIH + 1, "MaxRecvDataSegmentLength=8192");
	assert_int_equal(joined_err, ERR_PROTOCOL);
	take_all();
	assert_true(is_closed);
	assert_int_equal(close_err, ERR_PROTOCOL);
	end();
}

static void expect_lie_ends_session(void)
{
	take_all();
	assert_true(is_closed);
	assert_int_equal(close_err, ERR_PROTOCOL);
	assert_int_equal(ended, 1);
	assert_true(tasks[0].err < 0);
	end();
}

static void test_status_on_another_connection_rfc7143_4_2_2_2(void **state)
{
	(void)state;
	begin(2, 0);
	submit(0, false);
	status(&wires[1], tasks[0].dm.itt);
	expect_lie_ends_session();
}

/* [RFC 7143: 4.2.5.1 #2] */
static void test_data_on_another_connection_rfc7143_4_2_2_2(void **state)
{
	(void)state;
	begin(2, 0);
	submit(0, false);
	data_in(&wires[1], tasks[0].dm.itt, 0, 0, LEN, 0xbb);
	assert_int_equal(bytes_of[0][0], 0);
	expect_lie_ends_session();
}

/* [RFC 7143: 4.2.5.1 #4] */
static void test_r2t_on_another_connection_rfc7143_4_2_2_2(void **state)
{
	struct iscsi_pdu p = { .op = ISCSI_R2T, .ttt = 1 };

	(void)state;
	begin(2, 0);
	submit(0, true);
	p.itt = tasks[0].dm.itt;
	p.r2t.ddtl = LEN;
	reply(&wires[1], &p, NULL);
	assert_int_equal(wires[1].nsent, 0);
	expect_lie_ends_session();
}

static struct ini_request request;
static int answer_err;

static void answered(struct ini_request *r, int err,
		     const struct dm_control *rsp)
{
	(void)r;
	(void)rsp;
	answer_err = err;
}

/* [RFC 7143: 4.2.5.1 #1] */
static void test_answer_on_another_connection_rfc7143_4_2_2_2(void **state)
{
	struct iscsi_pdu p = { .op = ISCSI_NOP_IN, .ttt = ISCSI_RESERVED_TAG };

	(void)state;
	begin(2, 0);
	request = (struct ini_request){ .done = answered };
	assert_int_equal(ini_ping(s, &request, NULL, 0, XTIME_NEVER), 0);
	take_all();
	assert_int_equal(wires[0].nsent, 1);
	p.itt = wires[0].sent[0].itt;
	answer_err = 0;
	reply(&wires[1], &p, NULL);
	take_all();
	assert_true(is_closed);
	assert_true(answer_err < 0);
	end();
}

/* [RFC 7143: 11.5.1 #8] */
/* [RFC 7144: 6.3 #7] */
static void test_abort_goes_where_the_task_is_rfc7143_11_5_1(void **state)
{
	(void)state;
	begin(2, 0);
	submit(0, false);
	submit(1, false);
	submit(2, false);
	for (unsigned i = 0; i < 3; i++) {
		const struct wire *w = &wires[i & 1];

		assert_int_equal(ini_abort(&tasks[i], XTIME_NEVER), 0);
		take_all();
		assert_int_equal(w->nsent, 1);
		assert_int_equal(w->sent[0].op, ISCSI_TMF_REQUEST);
		assert_int_equal(w->sent[0].tmf.function, ISCSI_TMF_ABORT_TASK);
		assert_int_equal(w->sent[0].tmf.rtt, tasks[i].dm.itt);
		assert_int_equal(w->sent[0].tmf.ref_cmdsn, i + 1);
	}
	end();
}

static void test_a_reset_ends_commands_of_all_connections(void **state)
{
	(void)state;
	begin(2, 0);
	submit(0, false);
	submit(1, false);
	request = (struct ini_request){ .done = answered };
	assert_int_equal(ini_task_management(s, &request, ISCSI_TMF_LU_RESET, 0,
					     NULL, XTIME_NEVER),
			 0);
	take_all();
	assert_int_equal(wires[0].nsent, 1);
	tmf_response(&wires[0], wires[0].sent[0].itt, ISCSI_TMF_COMPLETE);
	assert_int_equal(ended, 2);
	assert_int_equal(tasks[0].err, ERR_ABORTED);
	assert_int_equal(tasks[1].err, ERR_ABORTED);
	/* a status that was on its way on the other connection is ignored */
	status(&wires[1], tasks[1].dm.itt);
	assert_false(is_closed);
	end();
}

/* [RFC 7143: 7.1.5 #3] */
static void test_the_first_loss_ends_the_session_rfc7143_7_1_4_4(void **state)
{
	(void)state;
	begin(3, 0);
	submit(0, false);
	submit(1, false);
	submit(2, false);
	cut(&wires[1]);
	assert_true(wires[0].is_over && wires[2].is_over);
	assert_true(is_closed);
	assert_int_equal(ended, 3);
	for (unsigned i = 0; i < 3; i++)
		assert_true(tasks[i].err < 0);
	submit(3, false);
	assert_int_equal(tasks[3].err, ERR_CLOSED);
	end();
}

static void test_logout_closes_all_connections_rfc7143_11_14_1(void **state)
{
	(void)state;
	begin(2, 0);
	ini_logout(s, now);
	take_all();
	assert_int_equal(wires[0].nsent, 1);
	assert_int_equal(wires[1].nsent, 0);
	assert_int_equal(wires[0].sent[0].logout.reason, ISCSI_LOGOUT_SESSION);
	logout_response(&wires[0], wires[0].sent[0].itt, 0, 0);
	take_all();
	assert_true(wires[0].is_over && wires[1].is_over);
	assert_true(is_closed);
	assert_int_equal(close_err, 0);
	end();
}

static int setup(void **state)
{
	(void)state;
	ended = 0;
	memset(tasks, 0, sizeof(tasks));
	return 0;
}

#define T(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_a_further_login_names_the_session_rfc7143_6_3_1),
		T(test_commands_take_turns_in_one_order_rfc7143_4_2_2_1),
		T(test_a_refused_connection_leaves_the_session),
		T(test_another_tsih_ends_the_session_rfc7143_11_13_3),
		T(test_status_on_another_connection_rfc7143_4_2_2_2),
		T(test_data_on_another_connection_rfc7143_4_2_2_2),
		T(test_r2t_on_another_connection_rfc7143_4_2_2_2),
		T(test_answer_on_another_connection_rfc7143_4_2_2_2),
		T(test_abort_goes_where_the_task_is_rfc7143_11_5_1),
		T(test_a_reset_ends_commands_of_all_connections),
		T(test_the_first_loss_ends_the_session_rfc7143_7_1_4_4),
		T(test_logout_closes_all_connections_rfc7143_11_14_1),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
