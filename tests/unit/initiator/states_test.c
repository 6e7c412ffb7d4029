/* SPDX-License-Identifier: BSD-2-Clause */
/* states_test.c: each transition of RFC 7143 §8.1.3, §8.2 and §8.3.1, taken by the code of
 * the initiator. */
#include "mcs_fixture.h"
#include "took.h"

#define INI ISCSI_INITIATOR

/* Another start of the same program: what was taken before does not count. */
static void begin_new(unsigned connections, uint8_t level)
{
	took_forget();
	begin(connections, level);
}

static void ask_logout(struct wire *w)
{
	struct iscsi_pdu p = { .op = ISCSI_ASYNC_MESSAGE,
			       .itt = ISCSI_RESERVED_TAG };

	p.async.event = ISCSI_ASYNC_LOGOUT;
	p.async.param3 = 3;
	reply(w, &p, NULL);
}

/* The wire on which the initiator has sent the Logout of the session. */
static struct wire *log_out(void)
{
	struct wire *found = NULL;

	ini_logout(s, now);
	take_all();
	for (unsigned i = 0; i < WIRES; i++)
		if (wires[i].dm && wires[i].nsent)
			found = &wires[i];
	assert_non_null(found);
	assert_int_equal(found->sent[0].op, ISCSI_LOGOUT_REQUEST);
	assert_int_equal(found->sent[0].logout.reason, ISCSI_LOGOUT_SESSION);
	return found;
}

static void test_login_and_logout_t1_t4_t5_t9_t13_n1_n3(void **state)
{
	struct wire *w;

	(void)state;
	begin_new(1, 0);
	assert_took(INI, "T1");
	assert_took(INI, "T4");
	assert_took(INI, "T5");
	assert_took(INI, "N1");
	w = log_out();
	assert_took(INI, "T9");
	logout_response(w, w->sent[0].itt, 0, 0);
	assert_true(is_closed);
	assert_took(INI, "T13");
	assert_took(INI, "N3");
	assert_took_no(INI, "N5");
	end();
}

/* The target refuses a further connection; the session goes on. */
static void test_login_refused_t7(void **state)
{
	struct iscsi_pdu p = { .op = ISCSI_LOGIN_RESPONSE };

	(void)state;
	begin_new(1, 0);
	start_joining(1);
	p.itt = wires[1].sent[0].itt;
	p.login = wires[1].sent[0].login;
	p.login.status_class = 3;
	p.login.status_detail = 2;
	assert_took_no(INI, "T7");
	reply(&wires[1], &p, NULL);
	assert_took(INI, "T7");
	assert_int_not_equal(joined_err, 0);
	assert_false(is_closed);
	end();
}

/* The Logout on one connection closes another one, which the target had not asked to
 * leave (T8), and one that it had (T18). */
static void test_logout_elsewhere_t8_t18(void **state)
{
	struct wire *w;

	(void)state;
	begin_new(3, 0);
	for (unsigned i = 0; i < 3; i++)
		submit(i, false); /* each connection waits for a command */
	ask_logout(&wires[1]);
	assert_took(INI, "T11");
	w = log_out();
	assert_ptr_not_equal(w, &wires[1]);
	logout_response(w, w->sent[0].itt, 0, 0);
	assert_true(is_closed);
	assert_took(INI, "T8");
	assert_took(INI, "T13");
	assert_took(INI, "T18");
	assert_took(INI, "N3");
	end();
}

static void test_target_asks_t10_t11_t12_t14(void **state)
{
	struct wire *w;

	(void)state;
	begin_new(1, 0);
	ask_logout(&wires[0]);
	assert_took(INI, "T11");
	ask_logout(&wires[0]);
	assert_took(INI, "T12");
	submit(0, false); /* commands go on (§11.9.1) */
	assert_int_equal(wires[0].nsent, 1);
	w = log_out();
	assert_took(INI, "T10");
	ask_logout(w);
	assert_took(INI, "T14");
	assert_false(is_closed);
	end();
}

/* Level 0: the first loss ends the session. */
static void test_connection_lost_t15_m1_n5_n6(void **state)
{
	(void)state;
	begin_new(1, 0);
	cut(&wires[0]);
	assert_true(is_closed);
	assert_took(INI, "T15");
	assert_took(INI, "M1");
	assert_took(INI, "N5");
	assert_took(INI, "N6");
	end();
}

static void test_lost_when_asked_to_leave_t16(void **state)
{
	(void)state;
	begin_new(1, 0);
	ask_logout(&wires[0]);
	cut(&wires[0]);
	assert_took(INI, "T16");
	assert_took(INI, "M1");
	end();
}

/* The Logout has no answer before the connection ends, none in time, and a failure. */
static void test_logout_fails_t17(void **state)
{
	struct wire *w;

	(void)state;
	begin_new(1, 0);
	log_out();
	cut(&wires[0]);
	assert_took(INI, "T17");
	end();

	begin_new(1, 0);
	log_out();
	ini_expire(s, ini_deadline(s));
	take_all();
	assert_true(is_closed);
	assert_took(INI, "T17");
	end();

	begin_new(1, 0);
	w = log_out();
	logout_response(w, w->sent[0].itt, 3, 0);
	assert_true(is_closed);
	assert_took(INI, "T17");
	assert_took_no(INI, "T13");
	end();
}

/* Level 2: M2 is the Logout for recovery on another connection, M4 its success, after
 * which the tasks have moved. */
static void test_recovery_m2_m4(void **state)
{
	struct wire *w = &wires[1];

	(void)state;
	begin_new(2, 2);
	cut(&wires[0]);
	assert_took(INI, "T15");
	assert_int_equal(w->nsent, 1);
	assert_int_equal(w->sent[0].op, ISCSI_LOGOUT_REQUEST);
	assert_int_equal(w->sent[0].logout.reason, ISCSI_LOGOUT_RECOVERY);
	assert_took_no(INI, "M4");
	logout_response(w, w->sent[0].itt, 0, 0);
	assert_took(INI, "M4");
	assert_false(is_closed);
	end();
}

/* M3: the connection with the Logout for recovery is lost; a third one sends it again, and
 * M1 ends both with the session. */
static void test_recovery_fails_m3_m1(void **state)
{
	struct wire *by, *other;

	(void)state;
	begin_new(3, 2);
	cut(&wires[0]);
	by = wires[1].nsent ? &wires[1] : &wires[2];
	other = by == &wires[1] ? &wires[2] : &wires[1];
	assert_int_equal(by->sent[0].op, ISCSI_LOGOUT_REQUEST);
	cut(by);
	assert_int_equal(other->nsent, 2); /* one for each of the two */
	assert_int_equal(other->sent[0].op, ISCSI_LOGOUT_REQUEST);
	assert_int_equal(other->sent[1].op, ISCSI_LOGOUT_REQUEST);
	assert_took_no(INI, "M1");
	logout_response(other, other->sent[0].itt, 2, 0); /* not supported */
	assert_true(is_closed);
	for (unsigned i = 0; i < WIRES; i++)
		assert_took(INI, "M1");
	assert_took(INI, "N5");
	end();
}

static void waits(struct ini_config *cfg)
{
	cfg->continues = true;
}

/* Level 2: another connection continues the session after the loss of the last one. */
static void test_continuation_n4(void **state)
{
	struct ini_conn *c;

	(void)state;
	change_config = waits;
	begin_new(1, 2);
	change_config = NULL;
	cut(&wires[0]);
	assert_took(INI, "N5");
	assert_took_no(INI, "N6");
	c = ini_conn_new(s, wire_dm(&wires[1]), 0);
	assert_non_null(c);
	ini_conn_start(c, now);
	take(&wires[1]);
	assert_took_no(INI, "N4");
	GRANT(&wires[1], TSIH, "MaxRecvDataSegmentLength=8192");
	assert_took(INI, "N4");
	assert_took(INI, "M4");
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_login_and_logout_t1_t4_t5_t9_t13_n1_n3),
		cmocka_unit_test(test_login_refused_t7),
		cmocka_unit_test(test_logout_elsewhere_t8_t18),
		cmocka_unit_test(test_target_asks_t10_t11_t12_t14),
		cmocka_unit_test(test_connection_lost_t15_m1_n5_n6),
		cmocka_unit_test(test_lost_when_asked_to_leave_t16),
		cmocka_unit_test(test_logout_fails_t17),
		cmocka_unit_test(test_recovery_m2_m4),
		cmocka_unit_test(test_recovery_fails_m3_m1),
		cmocka_unit_test(test_continuation_n4),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
