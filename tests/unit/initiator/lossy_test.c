/* SPDX-License-Identifier: BSD-2-Clause */
/* lossy_test.c: commands and pings that do not arrive while the connection lives, at
 * ErrorRecoveryLevel 1 (RFC 7143 §7.1.4.2, §7.2.1). */
#include "mcs_fixture.h"

#define W (&wires[0])

static void queries(struct ini_config *cfg)
{
	cfg->query_time = 5 * XTIME_S;
	cfg->ping_time = 4 * XTIME_S;
}

static void pings(struct ini_config *cfg)
{
	cfg->idle_time = 5 * XTIME_S;
	cfg->ping_time = 8 * XTIME_S;
}

static void at(xtime t)
{
	now = t;
	ini_expire(s, now);
	take_all();
}

static void pong(uint32_t itt)
{
	struct iscsi_pdu p = { .op = ISCSI_NOP_IN,
			       .itt = itt,
			       .ttt = ISCSI_RESERVED_TAG };

	reply(W, &p, NULL);
}

/* One NOP-Out was sent, and nothing else. */
static uint32_t expect_ping(void)
{
	assert_int_equal(W->nsent, 1);
	assert_int_equal(W->sent[0].op, ISCSI_NOP_OUT);
	return W->sent[0].itt;
}

/* The same command as `first`. */
static void expect_again(const struct iscsi_pdu *first, unsigned n)
{
	assert_int_equal(W->nsent, n);
	assert_int_equal(W->sent[0].op, ISCSI_SCSI_COMMAND);
	assert_int_equal(W->sent[0].itt, first->itt);
	assert_int_equal(W->sent[0].cmdsn, first->cmdsn);
}

/* [RFC 7143: 7.2.1 #1-3] */
static void test_lost_write_is_sent_again_rfc7143_7_2_1(void **state)
{
	struct iscsi_pdu first;

	(void)state;
	change_config = queries;
	begin(1, 1);
	submit(0, true);
	assert_int_equal(W->nsent, 2); /* the command, and unsolicited data */
	first = W->sent[0];
	at(4 * XTIME_S);
	assert_int_equal(W->nsent, 0);
	at(5 * XTIME_S);
	pong(expect_ping());
	assert_int_equal(W->nsent, 0);
	at(6 * XTIME_S);
	expect_again(&first, 2);
	assert_int_equal(W->sent[1].op, ISCSI_DATA_OUT);
	expcmdsn = 2;
	status(W, first.itt);
	assert_int_equal(ended, 1);
	assert_int_equal(tasks[0].err, 0);
	end();
}

/* An R2T shows that the target has the command, although it has not acknowledged it. */
static void test_r2t_is_an_acknowledgement(void **state)
{
	struct iscsi_pdu p = { .op = ISCSI_R2T, .ttt = 1 };
	uint32_t n = 0;

	(void)state;
	change_config = queries;
	begin(1, 1);
	submit(0, true);
	p.itt = W->sent[0].itt;
	p.statsn = W->statsn;
	p.r2t.ddtl = 512;
	reply(W, &p, NULL);
	for (xtime t = 5; t < 30; t++) {
		at(t * XTIME_S);
		for (unsigned i = 0; i < W->nsent; i++)
			n += W->sent[i].op == ISCSI_SCSI_COMMAND;
	}
	assert_int_equal(n, 0);
	end();
}

/* The target rejects unsolicited data of a command that it does not have. */
/* [RFC 7143: 7.3 #3] */
static void test_rejected_data_show_a_lost_command_rfc7143_7_3(void **state)
{
	uint8_t bhs[ISCSI_BHS_LEN];
	struct iscsi_pdu first;
	struct iscsi_pdu reject = { .op = ISCSI_REJECT,
				    .itt = ISCSI_RESERVED_TAG,
				    .dsl = ISCSI_BHS_LEN };

	(void)state;
	change_config = queries;
	begin(1, 1);
	at(10 * XTIME_S);
	submit(0, true);
	first = W->sent[0];
	iscsi_bhs_encode(&W->sent[1], bhs);
	reject.reject.reason = ISCSI_REJECT_INVALID_PDU_FIELD;
	at(12 * XTIME_S);
	reply(W, &reject, bhs);
	assert_false(W->is_over);
	at(12 * XTIME_S + 1);
	pong(expect_ping());
	at(13 * XTIME_S + 1);
	expect_again(&first, 2);
	end();
}

/* Two commands are lost: the second one is not asked for before the first one is
 * there, since the target has not looked for it. */
static void test_commands_behind_a_gap_wait(void **state)
{
	struct iscsi_pdu first, second;

	(void)state;
	change_config = queries;
	begin(1, 1);
	submit(0, false);
	first = W->sent[0];
	submit(1, false);
	second = W->sent[0];
	for (xtime t = 5; t < 30 && expcmdsn == 1; t++) {
		at(t * XTIME_S);
		if (W->nsent && W->sent[0].op == ISCSI_SCSI_COMMAND) {
			expect_again(&first, 1);
			expcmdsn = 2;
			status(W, first.itt);
		} else if (W->nsent) {
			pong(expect_ping());
		}
	}
	assert_int_equal(ended, 1);
	for (xtime t = 30; t < 60 && expcmdsn == 2; t++) {
		at(t * XTIME_S);
		if (W->nsent && W->sent[0].op == ISCSI_SCSI_COMMAND) {
			expect_again(&second, 1);
			expcmdsn = 3;
			status(W, second.itt);
		} else if (W->nsent) {
			pong(expect_ping());
		}
	}
	assert_int_equal(ended, 2);
	end();
}

/* The ping is lost: another one follows, also without pings of the session
 * (idle_time). The StatSN of its answer shows that the
 * response was lost. */
/* [RFC 7143: 7.9 #3] */
static void test_lost_query_and_response_rfc7143_7_1_4_2(void **state)
{
	uint32_t itt;

	(void)state;
	change_config = queries;
	begin(1, 1);
	submit(0, false);
	expcmdsn = 2;
	W->statsn++; /* the response is lost */
	assert_true(ini_deadline(s) < XTIME_NEVER);
	at(5 * XTIME_S);
	expect_ping(); /* lost */
	at(9 * XTIME_S);
	assert_int_equal(W->nsent, 0);
	at(10 * XTIME_S);
	itt = expect_ping();
	pong(itt);
	assert_int_equal(W->nsent, 1);
	assert_int_equal(W->sent[0].op, ISCSI_SNACK_REQUEST);
	assert_int_equal(W->sent[0].snack.type, 1);
	W->statsn -= 2;
	assert_int_equal(W->sent[0].snack.begrun, W->statsn);
	status(W, tasks[0].dm.itt);
	assert_int_equal(ended, 1);
	end();
}

/* [RFC 7143: 11.18.1 #1] */
static void test_pings_are_repeated_rfc7143_7_1_4_2(void **state)
{
	uint32_t itt[4];

	(void)state;
	change_config = pings;
	begin(1, 1);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(ini_deadline(s), (5 + 2 * i) * XTIME_S);
		at((5 + 2 * i) * XTIME_S);
		itt[i] = expect_ping();
	}
	pong(itt[3]);
	pong(itt[0]); /* late */
	assert_false(W->is_over);
	for (unsigned i = 0; i < 4; i++) {
		at((16 + 2 * i) * XTIME_S);
		expect_ping();
	}
	assert_int_equal(ini_deadline(s), 24 * XTIME_S);
	at(24 * XTIME_S);
	assert_true(W->is_over);
	end();
}

/* The first ping is due after idle_time, and the end of the login sets the timer of the
 * session anew: it was set to the deadline of the login. */
static unsigned rearms;

static void count_rearm(void *arg)
{
	(void)arg;
	rearms++;
}

static void counts(struct ini_config *cfg)
{
	pings(cfg);
	cfg->rearm = count_rearm;
}

static void test_the_timer_follows_the_login(void **state)
{
	(void)state;
	change_config = counts;
	rearms = 0;
	begin(1, 1);
	assert_int_equal(rearms, 2); /* ini_start, and the end of the login */
	assert_int_equal(ini_deadline(s), 5 * XTIME_S);
	end();
}

/* Level 0: nothing is lost on a connection that lives. */
static void test_pings_are_not_repeated_at_level_0(void **state)
{
	(void)state;
	change_config = pings;
	begin(1, 0);
	at(5 * XTIME_S);
	expect_ping();
	assert_int_equal(ini_deadline(s), 13 * XTIME_S);
	at(13 * XTIME_S);
	assert_true(W->is_over);
	end();
}

#define T(f) cmocka_unit_test_setup(f, start_anew)

static int start_anew(void **state)
{
	(void)state;
	ended = 0;
	change_config = NULL;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_lost_write_is_sent_again_rfc7143_7_2_1),
		T(test_r2t_is_an_acknowledgement),
		T(test_rejected_data_show_a_lost_command_rfc7143_7_3),
		T(test_commands_behind_a_gap_wait),
		T(test_lost_query_and_response_rfc7143_7_1_4_2),
		T(test_pings_are_repeated_rfc7143_7_1_4_2),
		T(test_the_timer_follows_the_login),
		T(test_pings_are_not_repeated_at_level_0),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
