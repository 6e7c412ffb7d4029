/* SPDX-License-Identifier: BSD-2-Clause */
/* login_test.c: login verdicts, limits, session reinstatement. */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "cmocka_all.h"
#include "rig.h"

static const uint8_t isid_a[6] = { 0x80, 1, 2, 3, 4, 5 };

#define KEYS(p, text) peer_login(p, text, sizeof(text), isid_a, 0)

/* [RFC 7145: 5.1.2 #1] [RFC 5047: 8.6 #1] */
static void test_login_normal(void **state)
{
	struct rig *r = rig_new(1, NULL);
	struct peer *p = peer_session(r, 0, 1);
	struct sent *s = &p->sent[0];

	(void)state;
	assert_true(s->pdu.login.transit);
	assert_int_equal(s->pdu.login.nsg, 3);
	assert_int_not_equal(s->pdu.login.tsih, 0);
	assert_int_equal(s->pdu.expcmdsn, 100);
	assert_int_equal(s->pdu.maxcmdsn, 100 + r->cfg.depth - 1);
	assert_int_equal(p->params.max_send_dsl, 65536);
	assert_false(p->params.initial_r2t);
	peer_ready(p);
	rig_free(r);
}

static void test_login_unknown_target_rfc7143_11_13_5(void **state)
{
	struct rig *r = rig_new(1, NULL);
	struct peer *p = peer_new(r, 0);

	(void)state;
	assert_int_equal(KEYS(p, "InitiatorName=" RIG_INI "\0"
				 "SessionType=Normal\0"
				 "TargetName=iqn.2026-01.org.example:nobody"),
			 ISCSI_LOGIN_NOT_FOUND);
	assert_true(p->gone);
	rig_free(r);
}

static void test_login_no_target_name_rfc7143_6_3(void **state)
{
	struct rig *r = rig_new(1, NULL);
	struct peer *p = peer_new(r, 0);

	(void)state;
	assert_int_equal(KEYS(p, "InitiatorName=" RIG_INI "\0"
				 "SessionType=Normal"),
			 ISCSI_LOGIN_MISSING_PARAMETER);
	assert_true(p->gone);
	rig_free(r);
}

/* MaxConnections=1, ErrorRecoveryLevel=0: no session can be joined. */
static void test_login_tsih_without_session_rfc7143_11_13_5(void **state)
{
	static const char keys[] = "InitiatorName=" RIG_INI "\0"
				   "SessionType=Normal\0"
				   "TargetName=" RIG_TARGET;
	struct rig *r = rig_new(1, NULL);
	struct peer *p = peer_new(r, 0);

	(void)state;
	assert_int_equal(peer_login(p, keys, sizeof(keys), isid_a, 77),
			 ISCSI_LOGIN_NO_SESSION);
	rig_free(r);
}

static void test_login_other_pdu_first_rfc7143_6_3(void **state)
{
	struct rig *r = rig_new(1, NULL);
	struct peer *p = peer_new(r, 0);

	(void)state;
	peer_tur(p);
	rig_settle(r);
	assert_true(peer_quiet(p));
	assert_true(p->gone);
	rig_free(r);
}

static void test_login_other_pdu_in_between_rfc7143_6_3(void **state)
{
	static const char keys[] = "InitiatorName=" RIG_INI "\0"
				   "SessionType=Normal\0"
				   "TargetName=" RIG_TARGET;
	struct rig *r = rig_new(1, NULL);
	struct peer *p = peer_new(r, 0);
	struct iscsi_pdu pdu = { .op = ISCSI_LOGIN_REQUEST,
				 .immediate = true,
				 .cmdsn = p->cmdsn,
				 .dsl = sizeof(keys) };
	struct sent *s;

	(void)state;
	pdu.login.csg = 1;
	peer_rx(p, &pdu, keys);
	peer_expect(p, ISCSI_LOGIN_RESPONSE);
	peer_tur(p);
	s = peer_expect(p, ISCSI_LOGIN_RESPONSE);
	assert_int_equal(s->pdu.login.status_class, 0x02);
	assert_int_equal(s->pdu.login.status_detail, 0x0b);
	rig_settle(r);
	assert_true(p->gone);
	rig_free(r);
}

static void test_login_takes_too_long(void **state)
{
	struct rig *r = rig_new(1, NULL);
	struct tgt_worker *w = tgt_worker(r->tgt, 0);
	struct peer *p = peer_new(r, 0);
	xtime limit = XTIME_S + r->cfg.login_time;

	(void)state;
	assert_true(tgt_worker_deadline(w) == limit);
	tgt_worker_expire(w, limit - 1);
	assert_false(p->terminated);
	tgt_worker_expire(w, limit);
	assert_true(p->terminated);
	assert_int_equal(p->how, DM_TERMINATE_NOW);
	rig_free(r);
}

static void few_logins(struct tgt_config *cfg)
{
	cfg->max_conns = 4;
	cfg->max_logins = 3;
	cfg->max_logins_per_peer = 2;
}

static void test_accept_limits(void **state)
{
	struct rig *r = rig_new(1, few_logins);
	int err;

	(void)state;
	assert_non_null(peer_try(r, 0, "192.0.2.1", &err));
	assert_non_null(peer_try(r, 0, "192.0.2.1", &err));
	assert_null(peer_try(r, 0, "192.0.2.1", &err)); /* per peer */
	assert_int_equal(err, ERR_LIMIT);
	assert_non_null(peer_try(r, 0, "192.0.2.2", &err));
	assert_null(peer_try(r, 0, "192.0.2.3", &err)); /* all logins */
	assert_int_equal(err, ERR_LIMIT);
	rig_free(r);
}

static void test_accept_limit_frees_with_login(void **state)
{
	struct rig *r = rig_new(1, few_logins);
	int err;

	(void)state;
	for (uint8_t i = 0; i < 4; i++)
		peer_session(r, 0, i);
	assert_null(peer_try(r, 0, "192.0.2.1", &err)); /* connections */
	assert_int_equal(err, ERR_LIMIT);
	rig_free(r);
}

static void test_login_while_draining(void **state)
{
	struct rig *r = rig_new(1, NULL);
	struct peer *p;

	(void)state;
	tgt_worker_drain(tgt_worker(r->tgt, 0), XTIME_S);
	p = peer_new(r, 0);
	assert_int_equal(KEYS(p, "InitiatorName=" RIG_INI "\0"
				 "SessionType=Normal\0"
				 "TargetName=" RIG_TARGET),
			 ISCSI_LOGIN_UNAVAILABLE);
	rig_free(r);
}

/* ---- session reinstatement, §6.3.5 ---- */

static void reinstate(unsigned workers, unsigned first, unsigned second)
{
	struct rig *r = rig_new(workers, NULL);
	struct peer *a = peer_session(r, first, 1);
	struct peer *other = peer_session(r, first, 2);
	struct peer *b;

	peer_ready(a);
	r->holding = true;
	peer_read(a, 0, 1);
	rig_mail(r);
	r->holding = false;
	b = peer_session(r, second, 1);
	assert_true(a->gone);
	assert_false(other->gone);
	assert_false(b->gone);
	peer_ready(b);
	rig_free(r);
}

static void test_reinstate_same_worker_rfc7143_6_3_5(void **state)
{
	(void)state;
	reinstate(1, 0, 0);
	reinstate(2, 1, 1);
}

static void test_reinstate_other_worker_rfc7143_6_3_5(void **state)
{
	(void)state;
	reinstate(2, 0, 1);
	reinstate(3, 2, 0);
}

/* The new session's login waits until no I/O of the old one is left. */
static void test_reinstate_waits_for_io_rfc7143_6_3_5(void **state)
{
	static const char keys[] = "InitiatorName=" RIG_INI "\0"
				   "SessionType=Normal\0"
				   "TargetName=" RIG_TARGET;
	const uint8_t isid[6] = { 0x80, 1, 2, 3, 4, 1 };
	struct rig *r = rig_new(2, NULL);
	struct peer *a = peer_session(r, 0, 1);
	struct peer *b = peer_new(r, 1);
	struct iscsi_pdu pdu = { .op = ISCSI_LOGIN_REQUEST,
				 .immediate = true,
				 .final = true,
				 .cmdsn = 5,
				 .dsl = sizeof(keys) };

	(void)state;
	peer_ready(a);
	r->holding = true;
	peer_read(a, 0, 1);
	assert_int_equal(bs_hold_waiting(r->hold), 1);
	pdu.login.transit = true;
	pdu.login.csg = 1;
	pdu.login.nsg = 3;
	memcpy(pdu.login.isid, isid, 6);
	peer_rx(b, &pdu, keys);
	rig_settle(r);
	assert_true(a->gone);
	assert_true(peer_quiet(b));
	r->holding = false;
	rig_settle(r);
	peer_expect(b, ISCSI_LOGIN_RESPONSE);
	assert_true(b->enabled);
	rig_free(r);
}

/* Two at once on different workers: exactly one stays. */
static void test_reinstate_race(void **state)
{
	static const char keys[] = "InitiatorName=" RIG_INI "\0"
				   "SessionType=Normal\0"
				   "TargetName=" RIG_TARGET;
	struct rig *r = rig_new(2, NULL);
	struct peer *a = peer_new(r, 0), *b = peer_new(r, 1);
	struct iscsi_pdu pdu = { .op = ISCSI_LOGIN_REQUEST,
				 .immediate = true,
				 .final = true,
				 .cmdsn = 5,
				 .dsl = sizeof(keys) };

	(void)state;
	pdu.login.transit = true;
	pdu.login.csg = 1;
	pdu.login.nsg = 3;
	memcpy(pdu.login.isid, isid_a, 6);
	peer_rx(a, &pdu, keys);
	peer_rx(b, &pdu, keys);
	rig_settle(r);
	assert_true(a->gone);
	assert_false(b->gone);
	assert_true(b->enabled);
	rig_free(r);
}

static void test_reinstate_connection_lost_meanwhile(void **state)
{
	static const char keys[] = "InitiatorName=" RIG_INI "\0"
				   "SessionType=Normal\0"
				   "TargetName=" RIG_TARGET;
	struct rig *r = rig_new(2, NULL);
	struct peer *b = peer_new(r, 1);
	struct iscsi_pdu pdu = { .op = ISCSI_LOGIN_REQUEST,
				 .immediate = true,
				 .final = true,
				 .dsl = sizeof(keys) };

	(void)state;
	pdu.login.transit = true;
	pdu.login.csg = 1;
	pdu.login.nsg = 3;
	memcpy(pdu.login.isid, isid_a, 6);
	peer_rx(b, &pdu, keys);
	peer_cut(b, ERR_RESET);
	rig_settle(r);
	assert_true(tgt_worker_idle(tgt_worker(r->tgt, 1)));
	rig_free(r);
}

/* ---- names ---- */

static void test_node_add_names_rfc7143_4_2_7_2(void **state)
{
	static const char *const bad[] = { "", "iqn.", "disk", "iqn.2026 x",
					   "iqn.a\tb" };
	struct rig *r = rig_new(1, NULL);
	struct tgt_node_config node = { .server = r->server };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		snprintf(node.name, sizeof(node.name), "%s", bad[i]);
		assert_int_equal(tgt_node_add(r->tgt, &node), ERR_FORMAT);
	}
	strcpy(node.name, RIG_TARGET);
	assert_int_equal(tgt_node_add(r->tgt, &node), ERR_BUSY);
	strcpy(node.name, "eui.02004567A425678D");
	assert_int_equal(tgt_node_add(r->tgt, &node), 0);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_login_normal),
		cmocka_unit_test(test_login_unknown_target_rfc7143_11_13_5),
		cmocka_unit_test(test_login_no_target_name_rfc7143_6_3),
		cmocka_unit_test(
			test_login_tsih_without_session_rfc7143_11_13_5),
		cmocka_unit_test(test_login_other_pdu_first_rfc7143_6_3),
		cmocka_unit_test(test_login_other_pdu_in_between_rfc7143_6_3),
		cmocka_unit_test(test_login_takes_too_long),
		cmocka_unit_test(test_accept_limits),
		cmocka_unit_test(test_accept_limit_frees_with_login),
		cmocka_unit_test(test_login_while_draining),
		cmocka_unit_test(test_reinstate_same_worker_rfc7143_6_3_5),
		cmocka_unit_test(test_reinstate_other_worker_rfc7143_6_3_5),
		cmocka_unit_test(test_reinstate_waits_for_io_rfc7143_6_3_5),
		cmocka_unit_test(test_reinstate_race),
		cmocka_unit_test(test_reinstate_connection_lost_meanwhile),
		cmocka_unit_test(test_node_add_names_rfc7143_4_2_7_2),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
