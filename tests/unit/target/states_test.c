/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * states_test.c: each transition of RFC 7143 §8.1.4, §8.2 and §8.3.2, taken by the code of
 * the target. recover_test.c and connections_test.c have what follows from them.
 */
#include <string.h>

#include "base/err.h"
#include "cmocka_all.h"
#include "fixture.h"
#include "iscsi/login.h"
#include "target/internal.h"
#include "took.h"

#define TGT    ISCSI_TARGET
#define CONNS  3u
#define RETAIN 20u

static void level0(struct tgt_config *cfg)
{
	cfg->want.max_connections = CONNS;
	cfg->idle_time = XTIME_NEVER;
}

static void level2(struct tgt_config *cfg)
{
	level0(cfg);
	cfg->want.error_recovery_level = 2;
	cfg->want.default_time2retain = RETAIN;
}

static const char leading[] = "InitiatorName=" FIXTURE_INI "\0"
			      "SessionType=Normal\0"
			      "TargetName=" FIXTURE_TARGET "\0"
			      "MaxConnections=3\0"
			      "ErrorRecoveryLevel=2\0"
			      "DefaultTime2Wait=0";
static const char joining[] = "InitiatorName=" FIXTURE_INI "\0"
			      "SessionType=Normal\0"
			      "TargetName=" FIXTURE_TARGET;

static struct fixture *r;
static struct peer *p[CONNS];
static uint16_t tsih;
static xtime now;

static void pass(xtime time)
{
	now += time;
	tgt_worker_expire(tgt_worker(r->tgt, 0), now);
	fixture_settle(r);
}

static struct peer *send_login(uint16_t cid)
{
	struct peer *q = peer_new(r, 0);
	struct iscsi_pdu pdu = { .op = ISCSI_LOGIN_REQUEST,
				 .immediate = true,
				 .final = true };
	const uint8_t isid[6] = { 0x80, 1, 2, 3, 4, 1 };

	pdu.dsl = tsih ? sizeof(joining) : sizeof(leading);
	pdu.login.transit = true;
	pdu.login.csg = 1;
	pdu.login.nsg = 3;
	pdu.login.tsih = tsih;
	pdu.login.cid = cid;
	memcpy(pdu.login.isid, isid, 6);
	peer_rx(q, &pdu, tsih ? joining : leading);
	return q;
}

/* A connection in the full feature phase. */
static void add(uint16_t cid)
{
	struct peer *q = send_login(cid);
	const struct sent *s;

	fixture_settle(r);
	pass(0);
	s = peer_expect(q, ISCSI_LOGIN_RESPONSE);
	assert_int_equal(s->pdu.login.status_class, 0);
	if (!tsih)
		tsih = s->pdu.login.tsih;
	p[cid] = q;
}

static void begin(unsigned conns, void (*change)(struct tgt_config *cfg))
{
	took_forget();
	r = fixture_new(1, change);
	tsih = 0;
	now = XTIME_S;
	for (uint16_t i = 0; i < conns; i++)
		add(i);
}

static void end(void)
{
	fixture_free(r);
}

static void log_out(unsigned by, uint8_t reason, uint16_t cid)
{
	struct iscsi_pdu pdu = { .op = ISCSI_LOGOUT_REQUEST,
				 .immediate = true,
				 .final = true,
				 .itt = 77 };

	pdu.logout.reason = reason;
	pdu.logout.cid = cid;
	p[by]->next = p[by]->nsent;
	peer_rx(p[by], &pdu, NULL);
}

static void lose(unsigned i)
{
	peer_cut(p[i], ERR_RESET);
	fixture_settle(r);
	pass(0);
}

/* A command that stays in the store until release. An immediate one, so that its
 * connection cannot leave it behind. */
static void hold_a_read(unsigned i)
{
	struct iscsi_pdu pdu = { .op = ISCSI_SCSI_COMMAND,
				 .immediate = true,
				 .final = true,
				 .itt = 55 };

	peer_tur(p[i]); /* the unit attention */
	fixture_settle(r);
	r->holding = true;
	pdu.cmdsn = p[i]->cmdsn;
	pdu.cmd.read = true;
	pdu.cmd.attr = ISCSI_ATTR_SIMPLE;
	pdu.cmd.edtl = 512;
	pdu.cmd.cdb[0] = 0x28;
	pdu.cmd.cdb[8] = 1;
	peer_rx(p[i], &pdu, NULL);
}

static void release(void)
{
	r->holding = false;
	fixture_release(r);
	fixture_settle(r);
	pass(0);
}

/* ---- connections: §8.1.4 ---- */

static void test_login_and_logout_t3_t4_t5_t9_t13_n1_n2_n3(void **state)
{
	(void)state;
	begin(0, level0);
	peer_new(r, 0);
	assert_took(TGT, "T3");
	assert_took_no(TGT, "T4");
	add(0);
	assert_took(TGT, "T4");
	assert_took(TGT, "N1");
	assert_took(TGT, "T5");
	assert_took(TGT, "N2");
	log_out(0, ISCSI_LOGOUT_SESSION, 0);
	assert_took(TGT, "T9");
	fixture_settle(r);
	peer_expect(p[0], ISCSI_LOGOUT_RESPONSE);
	assert_took(TGT, "T13");
	assert_took(TGT, "N3");
	assert_took_no(TGT, "N5");
	end();
}

/* Lost, or silent for too long, before the first Login Request. */
static void test_no_login_t6(void **state)
{
	(void)state;
	begin(0, level0);
	peer_cut(peer_new(r, 0), ERR_RESET);
	fixture_settle(r);
	assert_took(TGT, "T6");
	peer_new(r, 0);
	pass(0);
	pass(r->cfg.login_time + XTIME_S);
	assert_took(TGT, "T6");
	end();
}

/* A login that is refused (N9: of the leading connection), and one that is lost. */
static void test_login_fails_t7_n9(void **state)
{
	static const char bad[] = "InitiatorName=" FIXTURE_INI "\0"
				  "TargetName=iqn.2026-01.org.example:none";
	struct iscsi_pdu part = { .op = ISCSI_LOGIN_REQUEST,
				  .immediate = true,
				  .dsl = sizeof(joining) };
	const uint8_t isid[6] = { 0x80, 1, 2, 3, 4, 9 };
	struct peer *q;

	(void)state;
	begin(0, level0);
	assert_int_not_equal(
		peer_login(peer_new(r, 0), bad, sizeof(bad), isid, 0), 0);
	fixture_settle(r);
	assert_took(TGT, "T7");
	part.login.csg = 1;
	memcpy(part.login.isid, isid, 6);
	q = peer_new(r, 0);
	peer_rx(q, &part, joining);
	assert_false(q->gone);
	peer_cut(q, ERR_RESET);
	fixture_settle(r);
	assert_took(TGT, "T7");
	/* the leading login is lost while the one before it ends */
	add(0);
	hold_a_read(0);
	took_forget();
	tsih = 0;
	q = send_login(0);
	fixture_settle(r);
	assert_true(peer_quiet(q));
	assert_took(TGT, "N1");
	peer_cut(q, ERR_RESET);
	release();
	assert_took(TGT, "N9");
	end();
}

/* The Logout of the session on one connection closes each other connection. */
static void test_logout_elsewhere_t8_t18(void **state)
{
	(void)state;
	begin(2, level0);
	log_out(0, ISCSI_LOGOUT_SESSION, 0);
	fixture_settle(r);
	assert_took(TGT, "T8");
	assert_took(TGT, "T13");
	end();

	begin(2, level0);
	tgt_worker_drain(tgt_worker(r->tgt, 0), now);
	log_out(0, ISCSI_LOGOUT_SESSION, 0);
	fixture_settle(r);
	assert_took(TGT, "T18");
	assert_took(TGT, "T13");
	end();
}

static void test_asked_to_leave_t10_t11(void **state)
{
	(void)state;
	begin(1, level0);
	tgt_worker_drain(tgt_worker(r->tgt, 0), now);
	peer_expect(p[0], ISCSI_ASYNC_MESSAGE);
	assert_took(TGT, "T11");
	log_out(0, ISCSI_LOGOUT_SESSION, 0);
	assert_took(TGT, "T10");
	fixture_settle(r);
	assert_took(TGT, "T13");
	end();
}

/* T15: lost, with level 0 and with level 2, where the connection stays in S8. */
static void test_connection_lost_t15_m1(void **state)
{
	(void)state;
	begin(1, level0);
	lose(0);
	assert_took(TGT, "T15");
	assert_took(TGT, "M1");
	assert_took(TGT, "N5"); /* no session waits at this level */
	assert_took(TGT, "N6");
	end();

	begin(2, level2);
	hold_a_read(1);
	lose(1);
	assert_took(TGT, "T15");
	release();
	assert_took_no(TGT, "M1");
	pass(RETAIN * XTIME_S + 1);
	assert_took(TGT, "M1"); /* connection state timeout */
	assert_took_no(TGT, "N5");
	end();
}

/* T16: lost, or dropped because its time is over, after the target asked for a Logout. */
static void test_lost_when_asked_to_leave_t16(void **state)
{
	(void)state;
	begin(1, level0);
	tgt_worker_drain(tgt_worker(r->tgt, 0), now);
	lose(0);
	assert_took(TGT, "T16");
	end();

	begin(1, level0);
	tgt_worker_drain(tgt_worker(r->tgt, 0), now);
	pass(r->cfg.logout_time);
	assert_true(p[0]->terminated);
	fixture_settle(r);
	assert_took(TGT, "T16");
	end();
}

static void test_lost_during_logout_t17(void **state)
{
	(void)state;
	begin(1, level0);
	hold_a_read(0);
	log_out(0, ISCSI_LOGOUT_SESSION, 0);
	assert_took(TGT, "T9");
	lose(0);
	assert_took(TGT, "T17");
	release();
	assert_took_no(TGT, "T13");
	end();
}

/* ---- the cleanup of a connection: §8.2 ---- */

static struct tgt_conn *lost_conn(void)
{
	struct list *lost = &tgt_worker(r->tgt, 0)->lost;

	return list_empty(lost) ? NULL
				: list_entry(lost->next, struct tgt_conn, link);
}

/* M2: the Logout of the lost connection waits for its immediate command; M4. */
static void test_logout_of_a_lost_one_m2_m4(void **state)
{
	(void)state;
	begin(2, level2);
	hold_a_read(1);
	lose(1);
	assert_int_equal(lost_conn()->state, ISCSI_S8_CLEANUP_WAIT);
	assert_false(lost_conn()->logout.begun);
	log_out(0, ISCSI_LOGOUT_RECOVERY, 1);
	assert_true(lost_conn()->logout.begun);
	assert_true(peer_quiet(p[0]));
	assert_took_no(TGT, "M4");
	release();
	assert_int_equal(
		peer_expect(p[0], ISCSI_LOGOUT_RESPONSE)->pdu.logout.response,
		0);
	assert_took(TGT, "M4");
	end();
}

/* M3: the connection of the Logout is lost before the response; M2 and M4 by another. */
static void test_logout_is_lost_m3(void **state)
{
	(void)state;
	begin(3, level2);
	hold_a_read(1);
	lose(1);
	log_out(0, ISCSI_LOGOUT_RECOVERY, 1);
	assert_true(lost_conn()->logout.begun);
	lose(0);
	assert_int_equal(lost_conn()->state, ISCSI_S8_CLEANUP_WAIT);
	assert_took_no(TGT, "M4");
	release();
	assert_took_no(TGT, "M4");
	log_out(2, ISCSI_LOGOUT_RECOVERY, 1);
	fixture_settle(r);
	assert_int_equal(
		peer_expect(p[2], ISCSI_LOGOUT_RESPONSE)->pdu.logout.response,
		0);
	assert_took(TGT, "M4");
	end();
}

/* Connection reinstatement (CSM-I): M4 when the new connection is logged in. */
static void test_connection_reinstatement_m4(void **state)
{
	(void)state;
	begin(2, level2);
	lose(1);
	assert_took_no(TGT, "M4");
	add(1);
	assert_took(TGT, "M4");
	end();
}

/* ---- sessions: §8.3.2 ---- */

static void test_continuation_n5_n7_n10(void **state)
{
	(void)state;
	begin(1, level2);
	lose(0);
	assert_took(TGT, "N5");
	add(0);
	assert_took(TGT, "N7");
	assert_took(TGT, "N10");
	end();
}

/* The continuation is lost while a command of the old connection still ends; the session
 * state times out. */
static void test_continuation_fails_n8_n6(void **state)
{
	struct peer *q;

	(void)state;
	begin(1, level2);
	hold_a_read(0);
	lose(0);
	assert_took(TGT, "N5");
	q = send_login(0);
	fixture_settle(r);
	assert_took(TGT, "N7");
	peer_cut(q, ERR_RESET);
	assert_took(TGT, "N8");
	release();
	pass(RETAIN * XTIME_S + 1);
	assert_took(TGT, "N6");
	end();
}

/* The continuation replaces the only connection, of which nothing waits at level 0. */
static void test_reinstatement_n11(void **state)
{
	struct peer *q;

	(void)state;
	begin(1, level0);
	hold_a_read(0);
	send_login(0);
	fixture_settle(r);
	assert_took(TGT, "N5");
	assert_took(TGT, "N7");
	tsih = 0;
	q = send_login(0);
	fixture_settle(r);
	release();
	assert_int_equal(
		peer_expect(q, ISCSI_LOGIN_RESPONSE)->pdu.login.status_class,
		0);
	assert_took(TGT, "N11");
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_login_and_logout_t3_t4_t5_t9_t13_n1_n2_n3),
		cmocka_unit_test(test_no_login_t6),
		cmocka_unit_test(test_login_fails_t7_n9),
		cmocka_unit_test(test_logout_elsewhere_t8_t18),
		cmocka_unit_test(test_asked_to_leave_t10_t11),
		cmocka_unit_test(test_connection_lost_t15_m1),
		cmocka_unit_test(test_lost_when_asked_to_leave_t16),
		cmocka_unit_test(test_lost_during_logout_t17),
		cmocka_unit_test(test_logout_of_a_lost_one_m2_m4),
		cmocka_unit_test(test_logout_is_lost_m3),
		cmocka_unit_test(test_connection_reinstatement_m4),
		cmocka_unit_test(test_continuation_n5_n7_n10),
		cmocka_unit_test(test_continuation_fails_n8_n6),
		cmocka_unit_test(test_reinstatement_n11),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
