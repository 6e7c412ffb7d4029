/* SPDX-License-Identifier: BSD-2-Clause */
/* continue_test.c: a session at ErrorRecoveryLevel 2 whose last connection is lost, and the
 * connection that continues it (RFC 7143 §6.3.6, §6.3.4). */
#include "initiator/internal.h"
#include "mcs_fixture.h"

static void waits(struct ini_config *cfg)
{
	cfg->continues = true;
}

/* Two READs on wire 0, the only connection, which breaks. The target has acknowledged
 * `acked` of them. */
static void lose_session(unsigned connections, unsigned acked)
{
	begin(connections, 2);
	for (unsigned i = 0; i < 2; i++)
		submit(i, false);
	expcmdsn = 1 + acked;
	for (unsigned i = 0; i < connections; i++)
		cut(&wires[i]);
	assert_false(is_closed);
	assert_true(ini_is_waiting(s));
	assert_false(ini_is_up(s));
	assert_int_equal(ended, 0);
}

/* Begins the login of the connection `cid` on wire 2. */
static struct wire *log_in(uint16_t cid)
{
	struct wire *w = &wires[2];
	struct ini_conn *c;

	if (w->dm)
		dmtcp_free(w->dm);
	c = ini_conn_new(s, wire_dm(w), cid);
	assert_non_null(c);
	ini_conn_start(c, now);
	take(w);
	assert_int_equal(w->nsent, 1);
	assert_int_equal(w->sent[0].op, ISCSI_LOGIN_REQUEST);
	assert_int_equal(w->sent[0].login.tsih, TSIH);
	assert_int_equal(w->sent[0].login.cid, cid);
	return w;
}

static struct wire *continue_by(uint16_t cid)
{
	struct wire *w = log_in(cid);

	GRANT(w, TSIH, "MaxRecvDataSegmentLength=8192");
	assert_int_equal(joined_err, 0);
	assert_false(ini_is_waiting(s));
	assert_true(ini_is_up(s));
	return w;
}

/* The TASK REASSIGN of t, which w has sent at place `at` of several. */
static uint32_t reassign_at(const struct wire *w, unsigned at,
			    const struct ini_task *t)
{
	const struct iscsi_pdu *p = &w->sent[at];

	assert_true(at < w->nsent);
	assert_int_equal(p->op, ISCSI_TMF_REQUEST);
	assert_int_equal(p->tmf.function, ISCSI_TMF_TASK_REASSIGN);
	assert_int_equal(p->tmf.rtt, t->dm.itt);
	return p->itt;
}

static uint32_t expect_reassign(const struct wire *w, const struct ini_task *t)
{
	assert_int_equal(w->nsent, 1);
	return reassign_at(w, 0, t);
}

/* Those of tasks 0 and 1, at once. */
static void expect_both(const struct wire *w, uint32_t itt[2])
{
	assert_int_equal(w->nsent, 2);
	itt[0] = reassign_at(w, 0, &tasks[0]);
	itt[1] = reassign_at(w, 1, &tasks[1]);
}

static void move_both(struct wire *w)
{
	uint32_t itt[2];

	expect_both(w, itt);
	tmf_response(w, itt[0], ISCSI_TMF_COMPLETE);
	tmf_response(w, itt[1], ISCSI_TMF_COMPLETE);
}

static void finish(struct wire *w, unsigned i)
{
	data_in(w, tasks[i].dm.itt, 0, 0, LEN, 0x77);
	status(w, tasks[i].dm.itt);
	assert_int_equal(tasks[i].err, 0);
	assert_int_equal(bytes_of[i][LEN - 1], 0x77);
}

/* [RFC 7143: 6.3.4 #1-3] */
static void test_a_reinstated_connection_continues_rfc7143_6_3_4(void **state)
{
	struct wire *w;

	(void)state;
	lose_session(1, 2);
	assert_int_equal(ini_lost_cid(s), 0);
	assert_true(ini_has_cid(s, 0));
	assert_string_equal(ini_transport(s), "tcp");
	w = continue_by(0);
	assert_int_equal(joined, 1);
	/* no Logout: the login was one */
	move_both(w);
	finish(w, 0);
	finish(w, 1);
	submit(2, false);
	assert_int_equal(w->nsent, 1);
	assert_int_equal(w->sent[0].cmdsn, 3);
	end();
}

/* The first Login Request acknowledges what came on the old connection. */
static void test_the_login_acknowledges_rfc7143_11_12_9(void **state)
{
	(void)state;
	begin(2, 2);
	submit(0, false);
	expcmdsn = 2;
	data_in(&wires[0], tasks[0].dm.itt, 0, 0, LEN, 0x77);
	status(&wires[0], tasks[0].dm.itt);
	cut(&wires[0]);
	cut(&wires[1]);
	assert_int_equal(log_in(1)->sent[0].expstatsn, wires[1].statsn);
	cut(&wires[2]);
	assert_int_equal(log_in(2)->sent[0].expstatsn, 0); /* a new one */
	cut(&wires[2]);
	/* the lost one that had no command left has gone */
	assert_true(ini_is_waiting(s));
	assert_int_equal(log_in(0)->sent[0].expstatsn, wires[0].statsn);
	end();
}

/* What the target has not acknowledged is sent again, with its CmdSN. */
/* [RFC 7143: 7.2.1 #3] */
static void test_unacknowledged_commands_are_sent_again(void **state)
{
	struct wire *w;

	(void)state;
	lose_session(1, 0);
	w = continue_by(0);
	assert_int_equal(w->nsent, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(w->sent[i].op, ISCSI_SCSI_COMMAND);
		assert_int_equal(w->sent[i].itt, tasks[i].dm.itt);
		assert_int_equal(w->sent[i].cmdsn, 1 + i);
	}
	finish(w, 0);
	finish(w, 1);
	end();
}

/* Answers the Login Request of w without the transition; ExpCmdSN is a lie. */
static void interim(struct wire *w, uint32_t lie, uint8_t status_class)
{
	struct iscsi_pdu p = { .op = ISCSI_LOGIN_RESPONSE,
			       .itt = w->sent[0].itt };

	p.login = w->sent[0].login;
	p.login.transit = false;
	p.login.nsg = 0;
	p.login.vmin = 0;
	p.login.tsih = TSIH;
	p.login.status_class = status_class;
	expcmdsn = lie;
	reply(w, &p, NULL);
}

/* A connection is a part of the session from the final Login Response on: what comes
 * before it, or in a refusal, acknowledges no command and opens no window. */
/* [RFC 7143: 4.2.2.1 #8] */
static void test_a_login_acknowledges_nothing_rfc7143_11_13_5(void **state)
{
	struct wire *w;

	(void)state;
	lose_session(1, 0);
	window = 300;
	w = log_in(0);
	interim(w, 3, 2);
	assert_int_equal(joined_err, ERR_LOGIN);
	w = log_in(0);
	interim(w, 3, 0);
	expcmdsn = 1;
	window = 32;
	GRANT(w, TSIH, "MaxRecvDataSegmentLength=8192");
	assert_int_equal(joined_err, 0);
	assert_int_equal(s->window.expcmdsn, 1);
	assert_int_equal(s->window.maxcmdsn, 32);
	/* both commands were lost: they are sent again */
	assert_int_equal(w->nsent, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(w->sent[i].op, ISCSI_SCSI_COMMAND);
		assert_int_equal(w->sent[i].cmdsn, 1 + i);
	}
	finish(w, 0);
	finish(w, 1);
	end();
}

/* An ExpCmdSN after CmdSN acknowledges a command that does not exist. */
/* [RFC 7143: 4.2.2.1 #8] */
static void test_no_acknowledgement_in_advance_rfc7143_4_2_2_1(void **state)
{
	struct wire *w;

	(void)state;
	begin(1, 2);
	submit(0, false);
	expcmdsn = 10;
	status(&wires[0], tasks[0].dm.itt);
	submit(1, false);
	cut(&wires[0]);
	expcmdsn = 2;
	w = continue_by(0);
	assert_int_equal(w->nsent, 1);
	assert_int_equal(w->sent[0].op, ISCSI_SCSI_COMMAND);
	assert_int_equal(w->sent[0].cmdsn, 2);
	finish(w, 1);
	end();
}

/* A connection with another CID continues the session, too; the lost one is logged out. */
static void test_another_cid_logs_the_lost_one_out(void **state)
{
	struct wire *w;

	(void)state;
	lose_session(1, 2);
	w = continue_by(2);
	assert_int_equal(w->nsent, 1);
	assert_int_equal(w->sent[0].op, ISCSI_LOGOUT_REQUEST);
	assert_int_equal(w->sent[0].logout.reason, ISCSI_LOGOUT_RECOVERY);
	assert_int_equal(w->sent[0].logout.cid, 0);
	logout_response(w, w->sent[0].itt, 0, 0);
	move_both(w);
	finish(w, 0);
	finish(w, 1);
	assert_false(ini_has_cid(s, 0));
	end();
}

/* Of two lost connections one is reinstated, the Logout of the other one goes over it. */
static void test_two_lost_connections(void **state)
{
	struct wire *w;
	uint32_t logout = 0, reassign = 0;

	(void)state;
	lose_session(2, 2);
	assert_int_equal(ini_lost_cid(s), 1);
	w = continue_by(1);
	assert_int_equal(w->nsent, 2);
	for (unsigned i = 0; i < 2; i++) {
		if (w->sent[i].op == ISCSI_LOGOUT_REQUEST) {
			assert_int_equal(w->sent[i].logout.cid, 0);
			logout = w->sent[i].itt;
		} else {
			assert_int_equal(w->sent[i].tmf.rtt, tasks[1].dm.itt);
			reassign = w->sent[i].itt;
		}
	}
	tmf_response(w, reassign, ISCSI_TMF_COMPLETE);
	logout_response(w, logout, 0, 0);
	tmf_response(w, expect_reassign(w, &tasks[0]), ISCSI_TMF_COMPLETE);
	finish(w, 0);
	finish(w, 1);
	end();
}

/* The session waits on after a login that failed, and ends after a lie. */
static void test_failed_logins(void **state)
{
	struct iscsi_pdu p = { .op = ISCSI_LOGIN_RESPONSE };
	struct wire *w;

	(void)state;
	lose_session(1, 2);
	w = log_in(0);
	cut(w);
	assert_int_equal(joined_err, ERR_RESET);
	assert_true(ini_is_waiting(s));
	w = log_in(0);
	p.itt = w->sent[0].itt;
	p.login = w->sent[0].login;
	p.login.status_class = 2;
	p.login.status_detail = 10;
	reply(w, &p, NULL);
	assert_int_equal(joined_err, ERR_LOGIN);
	assert_true(ini_is_waiting(s));
	assert_int_equal(ended, 0);
	w = log_in(0);
	GRANT(w, TSIH + 1, "MaxRecvDataSegmentLength=8192");
	assert_true(is_closed);
	assert_int_equal(ended, 2);
	end();
}

static void test_the_caller_gives_up(void **state)
{
	(void)state;
	lose_session(1, 2);
	ini_kill(s, ERR_CLOSED);
	assert_true(is_closed);
	assert_int_equal(close_err, ERR_CLOSED);
	assert_int_equal(ended, 2);
	end();

	ended = 0;
	lose_session(1, 2);
	ini_logout(s, now);
	assert_true(is_closed);
	assert_int_equal(ended, 2);
	end();

	ended = 0;
	lose_session(1, 2);
	log_in(0); /* a login is in progress */
	ini_logout(s, now);
	take_all();
	assert_true(is_closed);
	assert_int_equal(ended, 2);
	end();
}

static void kill_on_error(struct ini_request *r, int err,
			  const struct dm_control *rsp)
{
	(void)r;
	(void)rsp;
	assert_int_equal(err, ERR_RESET);
	ini_kill(s, err);
}

/* The caller gives up because the connection takes its request with it: the session
 * ends, and nothing waits or leaks. */
static void test_the_caller_gives_up_at_the_loss(void **state)
{
	struct ini_request r = { .done = kill_on_error };

	(void)state;
	begin(1, 2);
	assert_int_equal(ini_ping(s, &r, NULL, 0, XTIME_NEVER), 0);
	submit(0, false);
	cut(&wires[0]);
	assert_true(is_closed);
	assert_int_equal(close_err, ERR_RESET);
	assert_int_equal(ended, 1);
	end();
}

/* The memory of an overdue command is the caller's: the session ends. */
static void test_a_command_is_overdue(void **state)
{
	(void)state;
	begin(1, 2);
	submit(0, false);
	tasks[1] = tasks[0];
	tasks[1].deadline = 5 * XTIME_S;
	ini_submit(s, &tasks[1], now);
	take_all();
	cut(&wires[0]);
	assert_true(ini_is_waiting(s));
	now = 5 * XTIME_S - 1;
	ini_expire(s, now);
	assert_false(is_closed);
	assert_true(ini_deadline(s) <= 6 * XTIME_S);
	now = 6 * XTIME_S;
	ini_expire(s, now);
	assert_true(is_closed);
	assert_int_equal(tasks[1].err, ERR_TIMEOUT);
	end();
}

/* Nothing can be sent meanwhile; an abort is sent once the command has a connection. */
static void test_requests_meanwhile(void **state)
{
	struct ini_request r = { 0 };
	struct wire *w;

	(void)state;
	lose_session(1, 2);
	assert_int_equal(ini_ping(s, &r, NULL, 0, XTIME_NEVER), ERR_CLOSED);
	submit(2, false);
	assert_int_equal(tasks[2].err, ERR_CLOSED);
	assert_int_equal(ini_abort(&tasks[1], XTIME_NEVER), 0);
	w = continue_by(0);
	move_both(w);
	assert_int_equal(w->nsent, 1);
	assert_int_equal(w->sent[0].tmf.function, ISCSI_TMF_ABORT_TASK);
	assert_int_equal(w->sent[0].tmf.rtt, tasks[1].dm.itt);
	tmf_response(w, w->sent[0].itt, ISCSI_TMF_COMPLETE);
	assert_int_equal(tasks[1].err, ERR_ABORTED);
	finish(w, 0);
	end();
}

/* The session waits longer than the answer to the ABORT TASK may take. */
static void test_an_abort_that_waits_long(void **state)
{
	struct wire *w;
	uint32_t itt[2];

	(void)state;
	lose_session(1, 2);
	assert_int_equal(ini_abort(&tasks[0], 15 * XTIME_S), 0);
	now = 18 * XTIME_S;
	ini_expire(s, now);
	w = continue_by(0);
	expect_both(w, itt);
	tmf_response(w, itt[0], ISCSI_TMF_COMPLETE);
	assert_int_equal(w->nsent, 1);
	assert_int_equal(w->sent[0].tmf.function, ISCSI_TMF_ABORT_TASK);
	ini_expire(s, ++now);
	tmf_response(w, w->sent[0].itt, ISCSI_TMF_COMPLETE);
	assert_int_equal(tasks[0].err, ERR_ABORTED);
	end();
}

/* The ABORT TASK is lost with its connection. */
static void test_an_abort_that_is_lost(void **state)
{
	struct wire *w;

	(void)state;
	begin(1, 2);
	submit(0, false);
	expcmdsn = 2;
	assert_int_equal(ini_abort(&tasks[0], XTIME_NEVER), 0);
	take(&wires[0]);
	cut(&wires[0]);
	w = continue_by(0);
	tmf_response(w, expect_reassign(w, &tasks[0]), ISCSI_TMF_COMPLETE);
	assert_int_equal(w->nsent, 1);
	assert_int_equal(w->sent[0].tmf.function, ISCSI_TMF_ABORT_TASK);
	end();
}

/* The connection that continues the session is lost as well, before the recovery has
 * ended. */
static void test_lost_again(void **state)
{
	struct wire *w;
	uint32_t itt[2];

	(void)state;
	lose_session(1, 2);
	w = continue_by(0);
	expect_both(w, itt);
	cut(w);
	assert_true(ini_is_waiting(s));
	w = continue_by(0);
	move_both(w);
	finish(w, 0);
	finish(w, 1);
	end();
}

/* Another connection that was in its login ends: it belongs to the session before. */
static void test_a_login_in_progress_ends(void **state)
{
	(void)state;
	begin(1, 2);
	start_joining(1);
	cut(&wires[0]);
	take_all();
	assert_true(wires[1].is_over);
	assert_int_equal(joined_err, ERR_CLOSED);
	assert_true(ini_is_waiting(s));
	continue_by(0);
	end();
}

static int setup(void **state)
{
	(void)state;
	ended = 0;
	memset(tasks, 0, sizeof(tasks));
	change_config = waits;
	return 0;
}

#define T(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_a_reinstated_connection_continues_rfc7143_6_3_4),
		T(test_the_login_acknowledges_rfc7143_11_12_9),
		T(test_unacknowledged_commands_are_sent_again),
		T(test_a_login_acknowledges_nothing_rfc7143_11_13_5),
		T(test_no_acknowledgement_in_advance_rfc7143_4_2_2_1),
		T(test_another_cid_logs_the_lost_one_out),
		T(test_two_lost_connections),
		T(test_failed_logins),
		T(test_the_caller_gives_up),
		T(test_the_caller_gives_up_at_the_loss),
		T(test_a_command_is_overdue),
		T(test_requests_meanwhile),
		T(test_an_abort_that_waits_long),
		T(test_an_abort_that_is_lost),
		T(test_lost_again),
		T(test_a_login_in_progress_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
