/* SPDX-License-Identifier: BSD-2-Clause */
/* connections_test.c: sessions of several connections (RFC 7143 §§4.2.2, 6.3.4,
 * 11.14) at ErrorRecoveryLevel 0. */
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "multi.h"
#include "target/internal.h"

/* ---- order, allegiance ---- */

/* [RFC 7143: 4.2.2.1 #6] */
static void test_order_is_the_sessions_rfc7143_4_2_2_1(void **state)
{
	struct multi *m = *state;

	m->cmdsn++; /* a hole */
	tur(m, 1);
	tur(m, 2);
	assert_true(peer_quiet(m->p[1]));
	assert_true(peer_quiet(m->p[2]));
	m->p[0]->cmdsn = m->cmdsn - 3;
	peer_tur(m->p[0]);
	for (unsigned i = 0; i < CONNS; i++) {
		peer_expect_status(m->p[i], SCSI_GOOD);
		assert_true(peer_quiet(m->p[i]));
		assert_int_equal(m->p[i]->dm.numbers->expcmdsn, m->cmdsn);
	}
	/* a CmdSN that was received, on another connection: ignored */
	m->p[1]->cmdsn = m->cmdsn - 1;
	peer_tur(m->p[1]);
	assert_true(peer_quiet(m->p[1]));
}

/* A command ahead of a hole precedes no command in the task set, and does not execute at
 * once: the device must not keep memory that was lent to it before. */
static void test_ordered_ahead_of_a_hole_rfc7143_4_2_2_1(void **state)
{
	struct multi *m = *state;
	const struct tgt_task *t;

	for (unsigned i = 0; i < 2; i++)
		m->p[i]->attr = ISCSI_ATTR_ORDERED;
	m->p[1]->cmdsn = m->cmdsn + 1;
	peer_tur(m->p[1]);
	t = container_of(m->p[1]->last_task, struct tgt_task, dm);
	assert_true(t->dev.order.early);
	assert_false(t->dev.order.at_once);
	m->p[0]->cmdsn = m->cmdsn;
	m->cmdsn += 2;
	peer_tur(m->p[0]);
	/* it has ended, without a message that wakes it */
	assert_int_equal(m->p[0]->next + 1, m->p[0]->nsent);
	t = container_of(m->p[0]->last_task, struct tgt_task, dm);
	assert_true(t->dev.order.at_once);
	fixture_settle(m->r);
	for (unsigned i = 0; i < 2; i++)
		(void)peer_next(m->p[i]);
}

static void test_duplicate_ahead_of_a_hole_rfc7143_4_2_2_1(void **state)
{
	struct multi *m = *state;
	uint32_t hole = m->cmdsn++;

	tur(m, 1);
	m->p[2]->cmdsn = m->cmdsn - 1;
	peer_tur(m->p[2]); /* the same CmdSN on another connection */
	m->p[0]->cmdsn = hole;
	peer_tur(m->p[0]);
	peer_expect_status(m->p[0], SCSI_GOOD);
	peer_expect_status(m->p[1], SCSI_GOOD);
	assert_true(peer_quiet(m->p[2]));
}

/* The Login Responses before the final one acknowledge no command: the connection is not
 * yet a part of the session, whatever CmdSN it gives. */
/* [RFC 7143: 4.2.2.1 #8 #10] */
static void test_a_login_acknowledges_nothing_rfc7143_11_13_5(void **state)
{
	static const char security[] = "InitiatorName=" FIXTURE_INI "\0"
				       "SessionType=Normal\0"
				       "TargetName=" FIXTURE_TARGET "\0"
				       "AuthMethod=None";
	struct multi *m = *state;
	struct peer *p = peer_new(m->r, 0);
	struct iscsi_pdu pdu = { .op = ISCSI_LOGIN_REQUEST,
				 .immediate = true,
				 .final = true,
				 .cmdsn = m->cmdsn + 2, /* two are lost */
				 .dsl = sizeof(security) };
	const struct iscsi_pdu *r;
	uint32_t maxcmdsn = m->p[0]->dm.numbers->maxcmdsn;

	pdu.login.transit = true;
	pdu.login.nsg = 1;
	pdu.login.tsih = m->tsih;
	pdu.login.cid = 2;
	memcpy(pdu.login.isid, (const uint8_t[]){ 0x80, 1, 2, 3, 4, 1 }, 6);
	peer_rx(p, &pdu, security);
	r = &peer_expect(p, ISCSI_LOGIN_RESPONSE)->pdu;
	assert_int_equal(r->login.status_class, 0);
	assert_true(sn_le(r->expcmdsn, m->cmdsn));
	assert_true(sn_le(r->maxcmdsn, maxcmdsn));
	assert_false(sn_lt(r->maxcmdsn, r->expcmdsn - 1));
	pdu.login.csg = 1;
	pdu.login.nsg = 3;
	pdu.dsl = 0;
	peer_rx(p, &pdu, NULL);
	fixture_settle(m->r);
	r = &peer_expect(p, ISCSI_LOGIN_RESPONSE)->pdu;
	assert_int_equal(r->login.status_class, 0);
	assert_int_equal(r->expcmdsn, m->cmdsn);
	assert_int_equal(r->maxcmdsn, maxcmdsn);
}

/* [RFC 7143: 4.2.5.1 #1-2] */
static void test_statsn_is_the_connections_rfc7143_4_2_2_2(void **state)
{
	struct multi *m = *state;
	uint32_t before = m->p[1]->dm.numbers->statsn;

	tur(m, 2);
	tur(m, 2);
	assert_int_equal(m->p[1]->dm.numbers->statsn, before);
	tur(m, 1);
	assert_int_equal(m->p[1]->dm.numbers->statsn, before + 1);
}

/* [RFC 7143: 4.2.5.1 #3] */
static void test_data_of_another_connection_find_no_task(void **state)
{
	struct multi *m = *state;
	struct peer *a = m->p[1], *b = m->p[2];
	uint32_t itt;

	a->cmdsn = m->cmdsn++;
	itt = peer_write(a, 0, 1);
	assert_non_null(a->dm.up->find_task(&a->dm, itt));
	assert_null(b->dm.up->find_task(&b->dm, itt));
	peer_unsolicited(a, a->last_task, 7, 0, 0);
	peer_solicited(a, 7, 0);
	fixture_settle(m->r);
	peer_expect_status(a, SCSI_GOOD);
	assert_true(peer_quiet(b));
}

static void test_tag_is_the_sessions_rfc7143_4_2_5_3(void **state)
{
	struct multi *m = *state;
	struct peer *a = m->p[1], *b = m->p[2];

	a->cmdsn = m->cmdsn++;
	b->itt = peer_write(a, 0, 1);
	b->cmdsn = m->cmdsn;
	peer_tur(b);
	assert_int_equal(peer_expect(b, ISCSI_REJECT)->pdu.reject.reason,
			 ISCSI_REJECT_TASK_IN_PROGRESS);
}

/* ---- task management ---- */

static void test_abort_from_another_connection_rfc7143_11_5_1(void **state)
{
	struct multi *m = *state;
	uint32_t itt, tmf;

	m->r->holding = true;
	m->p[1]->cmdsn = m->cmdsn++;
	itt = peer_read(m->p[1], 0, 1);
	m->p[2]->cmdsn = m->cmdsn;
	tmf = peer_tmf(m->p[2], ISCSI_TMF_ABORT_TASK, 0, itt, m->cmdsn - 1);
	m->r->holding = false;
	fixture_release(m->r);
	fixture_settle(m->r);
	peer_expect_tmf(m->p[2], tmf, ISCSI_TMF_COMPLETE);
	assert_true(peer_quiet(m->p[1]));
}

static void test_function_outlives_its_connection(void **state)
{
	struct multi *m = *state;
	struct iscsi_pdu logout = { .op = ISCSI_LOGOUT_REQUEST,
				    .immediate = true,
				    .final = true,
				    .itt = 5,
				    .cmdsn = m->cmdsn };

	m->r->holding = true;
	m->p[1]->cmdsn = m->cmdsn++;
	peer_read(m->p[1], 0, 1);
	m->p[2]->cmdsn = m->cmdsn;
	peer_tmf(m->p[2], ISCSI_TMF_LU_RESET, 0, ISCSI_RESERVED_TAG, 0);
	logout.logout.reason = ISCSI_LOGOUT_CONNECTION;
	logout.logout.cid = 2;
	peer_rx(m->p[0], &logout, NULL);
	fixture_settle(m->r);
	m->r->holding = false;
	fixture_release(m->r);
	fixture_settle(m->r);
	assert_int_equal(
		peer_expect(m->p[0], ISCSI_LOGOUT_RESPONSE)->pdu.logout.response,
		0);
	assert_true(m->p[2]->gone);
	assert_false(m->p[0]->gone);
}

/* The response to a reset waits until all responses before it came, on each
 * connection. */
/* [RFC 7143: 11.6.1 #2] */
static void test_response_after_acknowledgements_rfc7143_11_6_1(void **state)
{
	struct multi *m = *state;
	uint32_t itt;

	tur(m, 1);
	tur(m, 2);
	peer_expect_status(m->p[1], SCSI_GOOD);
	peer_expect_status(m->p[2], SCSI_GOOD);
	m->p[0]->cmdsn = m->cmdsn;
	itt = peer_tmf(m->p[0], ISCSI_TMF_LU_RESET, 0, ISCSI_RESERVED_TAG, 0);
	fixture_settle(m->r);
	acknowledge(m, m->p[0]);
	acknowledge(m, m->p[2]);
	assert_true(peer_quiet(m->p[0]));
	acknowledge(m, m->p[1]);
	peer_expect_tmf(m->p[0], itt, ISCSI_TMF_COMPLETE);
	/* nothing is left to be acknowledged, but the response before */
	itt = peer_tmf(m->p[1], ISCSI_TMF_ABORT_TASK_SET, 0, ISCSI_RESERVED_TAG,
		       0);
	fixture_settle(m->r);
	assert_true(peer_quiet(m->p[1]) && peer_quiet(m->p[2]));
	acknowledge(m, m->p[0]);
	peer_expect_tmf(m->p[1], itt, ISCSI_TMF_COMPLETE);
}

/* A connection that ends, and a response that is left without its connection. */
static void test_acknowledgements_of_a_connection_that_ends(void **state)
{
	struct multi *m = *state;
	struct iscsi_pdu logout = { .op = ISCSI_LOGOUT_REQUEST,
				    .immediate = true,
				    .final = true,
				    .itt = 5,
				    .cmdsn = m->cmdsn };
	uint32_t itt[2];

	tur(m, 1);
	tur(m, 2);
	peer_expect_status(m->p[1], SCSI_GOOD);
	for (unsigned i = 0; i < 2; i++) {
		m->p[i]->cmdsn = m->cmdsn;
		itt[i] = peer_tmf(m->p[i], ISCSI_TMF_LU_RESET, 0,
				  ISCSI_RESERVED_TAG, 0);
	}
	fixture_settle(m->r);
	acknowledge(m, m->p[0]);
	for (uint16_t cid = 1; cid < CONNS; cid++) {
		logout.logout.reason = ISCSI_LOGOUT_CONNECTION;
		logout.logout.cid = cid;
		logout.itt++;
		peer_rx(m->p[0], &logout, NULL);
		fixture_settle(m->r);
		peer_expect(m->p[0], ISCSI_LOGOUT_RESPONSE);
		assert_true(cid == CONNS - 1 || peer_quiet(m->p[0]));
	}
	peer_expect_tmf(m->p[0], itt[0], ISCSI_TMF_COMPLETE);
	assert_true(peer_quiet(m->p[0])); /* not that of itt[1] */
}

/* ---- logins ---- */

static void test_too_many_rfc7143_11_13_5(void **state)
{
	struct multi *m = *state;
	const uint8_t other[6] = { 0x80, 1, 2, 3, 4, 9 };

	assert_int_equal(add(m, 3), ISCSI_LOGIN_TOO_MANY_CONNECTIONS);
	m->tsih++;
	assert_int_equal(add(m, 1), ISCSI_LOGIN_NO_SESSION);
	m->tsih--;
	assert_int_equal(peer_login(peer_new(m->r, 0), join_keys,
				    sizeof(join_keys), other, m->tsih),
			 ISCSI_LOGIN_NO_SESSION);
	for (unsigned i = 0; i < CONNS; i++)
		assert_false(m->p[i]->gone);
}

/* [RFC 7143: 11.12.6 #4] */
static void test_another_initiator_cannot_join_rfc7143_6_3(void **state)
{
	static const char keys[] = "InitiatorName=" FIXTURE_INI "2\0"
				   "SessionType=Normal\0"
				   "TargetName=" FIXTURE_TARGET;
	struct multi *m = *state;

	assert_int_equal(log_in(peer_new(m->r, 0), m->tsih, 1, keys,
				sizeof(keys)),
			 ISCSI_LOGIN_NO_SESSION);
	assert_false(m->p[1]->gone);
}

/* [RFC 7143: 13 #1] */
static void test_keys_of_a_joining_login_rfc7143_6_3_3(void **state)
{
	struct multi *m = *state;

	assert_int_equal(m->p[1]->params.max_send_dsl, 8192);
	assert_int_equal(m->p[0]->params.max_send_dsl, 65536);
	assert_false(m->p[1]->params.initial_r2t);
	assert_int_equal(m->p[1]->params.protocol_level, 2);
}

/* A login for a CID that waits already: the later one prevails. */
/* [RFC 7143: 6.3.4 #1, 11.12.7 #2] */
static void test_two_logins_for_one_cid_rfc7143_6_3_4(void **state)
{
	struct multi *m = *state;
	struct peer *first = peer_new(m->r, 0), *old = m->p[1];
	struct iscsi_pdu pdu = { .op = ISCSI_LOGIN_REQUEST,
				 .immediate = true,
				 .final = true,
				 .dsl = sizeof(join_keys) };
	const uint8_t isid[6] = { 0x80, 1, 2, 3, 4, 1 };

	m->r->holding = true;
	old->cmdsn = m->cmdsn++;
	peer_read(old, 0, 1);
	pdu.login.transit = true;
	pdu.login.csg = 1;
	pdu.login.nsg = 3;
	pdu.login.tsih = m->tsih;
	pdu.login.cid = 1;
	memcpy(pdu.login.isid, isid, 6);
	peer_rx(first, &pdu, join_keys);
	peer_rx(m->p[3] = peer_new(m->r, 0), &pdu, join_keys);
	m->r->holding = false;
	fixture_release(m->r);
	fixture_settle(m->r);
	assert_true(old->gone);
	assert_int_equal(
		peer_expect(first, ISCSI_LOGIN_RESPONSE)->pdu.login.status_class,
		2);
	assert_int_equal(peer_expect(m->p[3], ISCSI_LOGIN_RESPONSE)
				 ->pdu.login.status_class,
			 0);
	assert_false(m->p[0]->gone);
}

static void send_join(struct multi *m, struct peer *p, uint16_t cid)
{
	struct iscsi_pdu pdu = { .op = ISCSI_LOGIN_REQUEST,
				 .immediate = true,
				 .final = true,
				 .dsl = sizeof(join_keys) };
	const uint8_t isid[6] = { 0x80, 1, 2, 3, 4, 1 };

	pdu.login.transit = true;
	pdu.login.csg = 1;
	pdu.login.nsg = 3;
	pdu.login.tsih = m->tsih;
	pdu.login.cid = cid;
	memcpy(pdu.login.isid, isid, 6);
	peer_rx(p, &pdu, join_keys);
	fixture_settle(m->r);
}

/* A login that waits for the tasks of the old connection gives way to a later one,
 * or is lost: the later one has to wait for them, too, since a WRITE among them could
 * undo a WRITE of the new connection. */
/* [RFC 7143: 6.3.4 #1] */
static void test_later_login_waits_for_tasks_rfc7143_6_3_4(void **state)
{
	struct multi *m = *state;
	struct peer *first = peer_new(m->r, 0), *second = peer_new(m->r, 0),
		    *third = peer_new(m->r, 0);

	m->r->holding = true;
	m->p[1]->cmdsn = m->cmdsn++;
	peer_read(m->p[1], 0, 1);
	send_join(m, first, 1);
	assert_true(m->p[1]->gone);
	assert_true(peer_quiet(first));
	send_join(m, second, 1);
	assert_int_equal(
		peer_expect(first, ISCSI_LOGIN_RESPONSE)->pdu.login.status_class,
		2);
	assert_true(peer_quiet(second));
	peer_cut(second, ERR_RESET);
	fixture_settle(m->r);
	send_join(m, third, 1);
	assert_true(peer_quiet(third));
	m->r->holding = false;
	fixture_release(m->r);
	fixture_settle(m->r);
	assert_int_equal(
		peer_expect(third, ISCSI_LOGIN_RESPONSE)->pdu.login.status_class,
		0);
	assert_false(m->p[0]->gone);
}

/* The login that replaces the only connection is lost meanwhile. */
static void test_lost_continuation_rfc7143_8_3(void **state)
{
	struct fixture *r = fixture_new(1, NULL);
	struct peer *a = peer_session(r, 0, 1), *b = peer_new(r, 0);
	struct iscsi_pdu pdu = { .op = ISCSI_LOGIN_REQUEST,
				 .immediate = true,
				 .final = true,
				 .dsl = sizeof(join_keys) };
	const uint8_t isid[6] = { 0x80, 1, 2, 3, 4, 1 };

	(void)state;
	peer_ready(a);
	r->holding = true;
	peer_read(a, 0, 1);
	pdu.login.transit = true;
	pdu.login.csg = 1;
	pdu.login.nsg = 3;
	pdu.login.tsih = a->sent[0].pdu.login.tsih;
	memcpy(pdu.login.isid, isid, 6);
	peer_rx(b, &pdu, join_keys);
	fixture_settle(r);
	assert_true(a->gone);
	assert_true(peer_quiet(b)); /* it waits for the READ */
	peer_cut(b, ERR_RESET);
	r->holding = false;
	fixture_release(r);
	fixture_settle(r);
	/* N11: nothing is left of the session */
	b = peer_new(r, 0);
	assert_int_equal(log_in(b, pdu.login.tsih, 0, join_keys,
				sizeof(join_keys)),
			 ISCSI_LOGIN_NO_SESSION);
	fixture_free(r);
}

/* ---- the end ---- */

/* [RFC 7143: 7.14 #1 #3] */
static void test_loss_of_one_ends_all_rfc7143_7_14(void **state)
{
	struct multi *m = *state;
	struct iscsi_pdu now = {
		.op = ISCSI_SCSI_COMMAND,
		.immediate = true,
		.final = true,
		.itt = 7777,
		.cmd = { .read = true, .attr = ISCSI_ATTR_SIMPLE, .edtl = 512 }
	};

	m->r->holding = true;
	m->p[1]->cmdsn = m->cmdsn++;
	peer_read(m->p[1], 0, 1);
	now.cmdsn = m->cmdsn;
	now.cmd.cdb[0] = 0x28; /* READ(10) of one block */
	now.cmd.cdb[8] = 1;
	peer_rx(m->p[1], &now, NULL);
	m->p[2]->cmdsn = m->cmdsn++;
	peer_write(m->p[2], 0, 1);
	peer_cut(m->p[1], ERR_RESET);
	fixture_settle(m->r);
	m->r->holding = false;
	fixture_release(m->r);
	fixture_settle(m->r);
	for (unsigned i = 0; i < CONNS; i++)
		assert_true(m->p[i]->gone);
	assert_int_equal(
		peer_expect(m->p[0], ISCSI_ASYNC_MESSAGE)->pdu.async.event,
		ISCSI_ASYNC_DROP_SESSION);
	assert_int_equal(add(m, 1), ISCSI_LOGIN_NO_SESSION);
}

/* [RFC 7143: 11.14.5 #1] */
static void
test_requests_that_came_early_are_discarded_rfc7143_11_14(void **state)
{
	struct multi *m = *state;
	struct iscsi_pdu nop = { .op = ISCSI_NOP_OUT,
				 .final = true,
				 .itt = 77,
				 .ttt = ISCSI_RESERVED_TAG };
	struct iscsi_pdu logout = { .op = ISCSI_LOGOUT_REQUEST,
				    .immediate = true,
				    .final = true,
				    .itt = 5 };
	uint32_t hole = m->cmdsn++;

	nop.cmdsn = m->cmdsn++;
	peer_rx(m->p[1], &nop, NULL);
	tur(m, 1);
	logout.cmdsn = m->cmdsn;
	logout.logout.reason = ISCSI_LOGOUT_CONNECTION;
	logout.logout.cid = 1;
	peer_rx(m->p[0], &logout, NULL);
	fixture_settle(m->r);
	peer_expect(m->p[0], ISCSI_LOGOUT_RESPONSE);
	assert_true(m->p[1]->gone);
	/* their CmdSNs count as received: the next command is not late */
	m->p[2]->cmdsn = hole;
	peer_tur(m->p[2]);
	assert_int_equal(m->p[2]->dm.numbers->expcmdsn, m->cmdsn);
	assert_int_equal(
		peer_expect(m->p[2], ISCSI_SCSI_RESPONSE)->pdu.rsp.status,
		SCSI_CHECK_CONDITION); /* 47h/7Fh */
	tur(m, 2);
	peer_expect_status(m->p[2], SCSI_GOOD);
}

/* [RFC 7143: 11.14 #3] */
static void test_logouts_of_two_at_once(void **state)
{
	struct multi *m = *state;
	struct iscsi_pdu logout = { .op = ISCSI_LOGOUT_REQUEST,
				    .immediate = true,
				    .final = true,
				    .itt = 5,
				    .cmdsn = m->cmdsn };

	logout.logout.reason = ISCSI_LOGOUT_CONNECTION;
	m->r->holding = true;
	for (unsigned i = 0; i < CONNS; i++) {
		m->p[i]->cmdsn = m->cmdsn++;
		peer_read(m->p[i], i, 1);
	}
	for (unsigned i = 0; i < CONNS; i++) {
		logout.itt = 5 + i;
		logout.cmdsn = m->cmdsn;
		logout.logout.cid = (uint16_t)i;
		peer_rx(m->p[i], &logout, NULL);
	}
	m->r->holding = false;
	fixture_release(m->r);
	fixture_settle(m->r);
	for (unsigned i = 0; i < CONNS; i++) {
		struct sent *s = peer_expect(m->p[i], ISCSI_LOGOUT_RESPONSE);

		assert_int_equal(s->pdu.itt, 5 + i);
		assert_int_equal(s->pdu.logout.response, 0);
		assert_true(m->p[i]->gone);
	}
}

/* A connection that logs out alone, and whose command takes long, does not keep its session
 * from what a new directory says: the session is asked to log out (RFC 7143 §11.9.1). */
static void test_new_directory_during_the_logout_of_one(void **state)
{
	struct multi *m = *state;
	struct iscsi_pdu logout = { .op = ISCSI_LOGOUT_REQUEST,
				    .immediate = true,
				    .final = true,
				    .itt = 5 };
	struct tgt_worker *w = tgt_worker(m->r->tgt, 0);

	m->r->holding = true;
	m->p[0]->cmdsn = m->cmdsn++;
	peer_read(m->p[0], 0, 1);
	logout.cmdsn = m->cmdsn;
	logout.logout.reason = ISCSI_LOGOUT_CONNECTION;
	peer_rx(m->p[0], &logout, NULL);
	fixture_apply(m->r, fixture_directory(FIXTURE_SECOND));
	tgt_worker_expire(w, XTIME_S);
	for (unsigned i = 1; i < CONNS; i++)
		assert_int_equal(peer_expect(m->p[i], ISCSI_ASYNC_MESSAGE)
					 ->pdu.async.event,
				 ISCSI_ASYNC_LOGOUT);
	m->r->holding = false;
	fixture_release(m->r);
	fixture_settle(m->r);
	peer_expect(m->p[0], ISCSI_LOGOUT_RESPONSE);
	tgt_worker_expire(w, XTIME_S + m->r->cfg.logout_time);
	fixture_settle(m->r);
	for (unsigned i = 0; i < CONNS; i++)
		assert_true(m->p[i]->gone);
}

/* [RFC 7143: 11.14 #1-2] */
static void test_nothing_after_the_logout_of_all_rfc7143_11_14(void **state)
{
	struct multi *m = *state;
	struct iscsi_pdu logout = { .op = ISCSI_LOGOUT_REQUEST,
				    .immediate = true,
				    .final = true,
				    .itt = 5,
				    .cmdsn = m->cmdsn };
	struct iscsi_pdu nop;

	m->r->holding = true;
	m->p[0]->cmdsn = m->cmdsn++;
	peer_read(m->p[0], 0, 1);
	logout.logout.reason = ISCSI_LOGOUT_SESSION;
	peer_rx(m->p[1], &logout, NULL);
	for (unsigned i = 1; i < CONNS; i++) {
		tur(m, i);
		m->cmdsn--;
		assert_int_equal(
			peer_expect(m->p[i], ISCSI_REJECT)->pdu.reject.reason,
			ISCSI_REJECT_WAITING_LOGOUT);
		nop = (struct iscsi_pdu){ .op = ISCSI_NOP_OUT,
					  .immediate = true,
					  .final = true,
					  .itt = 6,
					  .ttt = ISCSI_RESERVED_TAG,
					  .cmdsn = m->cmdsn };
		peer_rx(m->p[i], &nop, NULL);
		assert_int_equal(
			peer_expect(m->p[i], ISCSI_REJECT)->pdu.reject.reason,
			ISCSI_REJECT_WAITING_LOGOUT);
	}
	m->r->holding = false;
	fixture_release(m->r);
	fixture_settle(m->r);
	assert_int_equal(
		peer_expect(m->p[1], ISCSI_LOGOUT_RESPONSE)->pdu.logout.response,
		0);
	for (unsigned i = 0; i < CONNS; i++)
		assert_true(m->p[i]->gone);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		MULTI(test_order_is_the_sessions_rfc7143_4_2_2_1),
		MULTI(test_ordered_ahead_of_a_hole_rfc7143_4_2_2_1),
		MULTI(test_duplicate_ahead_of_a_hole_rfc7143_4_2_2_1),
		MULTI(test_a_login_acknowledges_nothing_rfc7143_11_13_5),
		MULTI(test_statsn_is_the_connections_rfc7143_4_2_2_2),
		MULTI(test_data_of_another_connection_find_no_task),
		MULTI(test_tag_is_the_sessions_rfc7143_4_2_5_3),
		MULTI(test_abort_from_another_connection_rfc7143_11_5_1),
		MULTI(test_function_outlives_its_connection),
		MULTI(test_response_after_acknowledgements_rfc7143_11_6_1),
		MULTI(test_acknowledgements_of_a_connection_that_ends),
		MULTI(test_too_many_rfc7143_11_13_5),
		MULTI(test_another_initiator_cannot_join_rfc7143_6_3),
		MULTI(test_keys_of_a_joining_login_rfc7143_6_3_3),
		MULTI(test_two_logins_for_one_cid_rfc7143_6_3_4),
		MULTI(test_later_login_waits_for_tasks_rfc7143_6_3_4),
		cmocka_unit_test(test_lost_continuation_rfc7143_8_3),
		MULTI(test_loss_of_one_ends_all_rfc7143_7_14),
		MULTI(test_requests_that_came_early_are_discarded_rfc7143_11_14),
		MULTI(test_logouts_of_two_at_once),
		MULTI(test_new_directory_during_the_logout_of_one),
		MULTI(test_nothing_after_the_logout_of_all_rfc7143_11_14),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
