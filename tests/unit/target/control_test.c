/* SPDX-License-Identifier: BSD-2-Clause */
/* control_test.c: NOP, Logout, SNACK, Reject, Async Message, time. */
#include <string.h>

#include "base/err.h"
#include "env.h"

static struct iscsi_pdu request(const struct peer *p, enum iscsi_opcode op)
{
	return (struct iscsi_pdu){ .op = (uint8_t)op,
				   .immediate = true,
				   .final = true,
				   .itt = 9,
				   .ttt = ISCSI_RESERVED_TAG,
				   .cmdsn = p->cmdsn };
}

/* ---- NOP ---- */

/* [RFC 7143: 11.18.1 #3, 11.19 #1-3] */
static void test_nop_out_echoed_rfc7143_11_19(void **state)
{
	struct env *e = *state;
	struct iscsi_pdu pdu = request(e->p, ISCSI_NOP_OUT);
	uint32_t statsn = e->p->sent[e->p->nsent - 1].pdu.statsn;
	struct sent *s;

	pdu.dsl = 5;
	peer_rx(e->p, &pdu, "hello");
	s = peer_expect(e->p, ISCSI_NOP_IN);
	assert_int_equal(s->pdu.itt, 9);
	assert_int_equal(s->pdu.ttt, ISCSI_RESERVED_TAG);
	assert_int_equal(s->pdu.statsn, statsn + 1);
	assert_int_equal(s->len, 5);
	assert_memory_equal(s->data, "hello", 5);
}

/* No more data than the initiator declared. */
/* [RFC 7143: 11.19 #2] */
static void test_nop_out_echo_cut_rfc7143_11_18_3(void **state)
{
	static uint8_t data[70000];
	struct env *e = *state;
	struct iscsi_pdu pdu = request(e->p, ISCSI_NOP_OUT);

	pdu.dsl = sizeof(data);
	peer_rx(e->p, &pdu, data);
	assert_int_equal(peer_expect(e->p, ISCSI_NOP_IN)->len, 65536);
}

static void
/* [RFC 7143: 11.18.1 #4] */
test_nop_out_without_tag_must_be_immediate_rfc7143_11_18_1(void **state)
{
	struct env *e = *state;
	struct iscsi_pdu pdu = request(e->p, ISCSI_NOP_OUT);

	pdu.itt = ISCSI_RESERVED_TAG;
	peer_rx(e->p, &pdu, NULL);
	assert_true(peer_quiet(e->p)); /* no answer to that one (§11.19) */
	pdu.immediate = false;
	peer_rx(e->p, &pdu, NULL);
	peer_expect(e->p, ISCSI_REJECT);
}

/* [RFC 7143: 11.18.2 #1, 11.19 #4-6, 11.19.3 #1] */
static void test_ping_and_pong_rfc7143_11_19(void **state)
{
	struct env *e = *state;
	struct tgt_worker *w = tgt_worker(e->r->tgt, 0);
	struct iscsi_pdu pong = request(e->p, ISCSI_NOP_OUT);
	uint32_t statsn = e->p->sent[e->p->nsent - 1].pdu.statsn;
	xtime now = 100 * XTIME_S;
	struct sent *s;

	tgt_worker_expire(w, now); /* the login counts as activity */
	assert_true(peer_quiet(e->p));
	now += e->r->cfg.idle_time;
	tgt_worker_expire(w, now);
	s = peer_expect(e->p, ISCSI_NOP_IN);
	assert_int_equal(s->pdu.itt, ISCSI_RESERVED_TAG);
	assert_int_not_equal(s->pdu.ttt, ISCSI_RESERVED_TAG);
	assert_int_equal(s->pdu.lun, 0); /* §11.19.3: a LUN of the target */
	assert_int_equal(s->len, 0);
	assert_int_equal(s->pdu.statsn,
			 statsn +
				 1); /* it names a CmdSN but does not take it */
	pong.itt = ISCSI_RESERVED_TAG;
	pong.ttt = s->pdu.ttt;
	peer_rx(e->p, &pong, NULL);
	now += e->r->cfg.ping_time;
	tgt_worker_expire(w, now);
	assert_false(e->p->terminated);
	peer_rx(e->p, &pong, NULL); /* only once */
	assert_int_equal(peer_expect(e->p, ISCSI_REJECT)->pdu.reject.reason,
			 ISCSI_REJECT_INVALID_PDU_FIELD);
}

/* due.c: the last connection takes the place of one that has left; each is still pinged,
 * and dropped if it does not log out when asked. */
static void test_times_of_connections_when_one_left(void **state)
{
	struct env *e = *state;
	struct tgt_worker *w = tgt_worker(e->r->tgt, 0);
	struct peer *second = peer_session(e->r, 0, 2);
	struct peer *third = peer_session(e->r, 0, 3);
	xtime now = 100 * XTIME_S;

	tgt_worker_expire(w, now);
	peer_cut(second, ERR_RESET);
	fixture_settle(e->r);
	assert_int_equal(tgt_worker_conns(w), 2);
	now += e->r->cfg.idle_time;
	assert_true(tgt_worker_deadline(w) <= now);
	tgt_worker_expire(w, now);
	peer_expect(e->p, ISCSI_NOP_IN);
	peer_expect(third, ISCSI_NOP_IN);
	tgt_worker_drain(w, now);
	peer_expect(third, ISCSI_ASYNC_MESSAGE);
	assert_true(tgt_worker_deadline(w) == now + e->r->cfg.logout_time);
	tgt_worker_expire(w, now + e->r->cfg.logout_time);
	assert_true(e->p->terminated);
	assert_true(third->terminated);
}

/* RFC 7143 §11.18: with both tags reserved a NOP-Out carries ExpStatSN only
 * and has no answer. */
static void test_nop_out_that_asks_nothing_rfc7143_11_18(void **state)
{
	struct env *e = *state;
	struct iscsi_pdu nop = request(e->p, ISCSI_NOP_OUT);

	nop.itt = nop.ttt = ISCSI_RESERVED_TAG;
	assert_int_equal(peer_rx(e->p, &nop, NULL), 0);
	fixture_settle(e->r);
	assert_true(peer_quiet(e->p));
	assert_false(e->p->terminated);
}

static void test_ping_unanswered(void **state)
{
	struct env *e = *state;
	struct tgt_worker *w = tgt_worker(e->r->tgt, 0);
	xtime now = 100 * XTIME_S;

	tgt_worker_expire(w, now);
	now += e->r->cfg.idle_time;
	tgt_worker_expire(w, now);
	peer_expect(e->p, ISCSI_NOP_IN);
	now += e->r->cfg.ping_time;
	tgt_worker_expire(w, now);
	assert_true(e->p->terminated);
	assert_int_equal(e->p->how, DM_TERMINATE_NOW);
	assert_int_equal(e->p->terminate_err, ERR_TIMEOUT);
}

/* At ErrorRecoveryLevel 1 a ping or its answer may be lost: it is sent again, with its
 * tag, and the second answer is one too many. */
static void test_ping_is_repeated_rfc7143_7_1_4_2(void **state)
{
	struct env *e = *state;
	struct tgt_worker *w = tgt_worker(e->r->tgt, 0);
	struct iscsi_pdu pong = request(e->p, ISCSI_NOP_OUT);
	xtime now = 100 * XTIME_S;
	uint32_t ttt;

	e->p->dm.retains = true;
	tgt_worker_expire(w, now);
	now += e->r->cfg.idle_time;
	tgt_worker_expire(w, now);
	ttt = peer_expect(e->p, ISCSI_NOP_IN)->pdu.ttt;
	for (unsigned i = 1; i < 4; i++) {
		now += e->r->cfg.ping_time / 4;
		tgt_worker_expire(w, now);
		assert_int_equal(peer_expect(e->p, ISCSI_NOP_IN)->pdu.ttt, ttt);
	}
	pong.itt = ISCSI_RESERVED_TAG;
	pong.ttt = ttt;
	peer_rx(e->p, &pong, NULL);
	peer_rx(e->p, &pong, NULL);
	assert_true(peer_quiet(e->p));
	now += e->r->cfg.ping_time / 4;
	tgt_worker_expire(w, now);
	assert_false(e->p->terminated);
	now += e->r->cfg.idle_time;
	for (unsigned i = 0; i < 4; i++) {
		tgt_worker_expire(w, now);
		assert_int_not_equal(peer_expect(e->p, ISCSI_NOP_IN)->pdu.ttt,
				     ttt);
		assert_false(e->p->terminated);
		now += e->r->cfg.ping_time / 4;
	}
	tgt_worker_expire(w, now);
	assert_true(e->p->terminated);
	e->p->dm.retains = false;
}

/* ---- Logout ---- */

static struct sent *logout(struct env *e, uint8_t reason, uint16_t cid)
{
	struct iscsi_pdu pdu = request(e->p, ISCSI_LOGOUT_REQUEST);

	pdu.logout.reason = reason;
	pdu.logout.cid = cid;
	peer_rx(e->p, &pdu, NULL);
	fixture_settle(e->r);
	return peer_next(e->p);
}

/* [RFC 7145: 5.2.2 #3] */
/* [RFC 7143: 11.15.2 #1] */
static void test_logout_session_rfc7143_11_14(void **state)
{
	struct env *e = *state;
	struct sent *s = logout(e, ISCSI_LOGOUT_SESSION, 0);

	assert_int_equal(s->pdu.op, ISCSI_LOGOUT_RESPONSE);
	assert_int_equal(s->pdu.logout.response, 0);
	assert_true(e->p->gone);
	assert_int_equal(e->p->how, DM_TERMINATE_LOGGED_OUT);
}

/* A worker that ends does not wait for the initiator to close. */
static void test_logout_while_draining(void **state)
{
	struct env *e = *state;

	tgt_worker_drain(tgt_worker(e->r->tgt, 0), 50 * XTIME_S);
	peer_expect(e->p, ISCSI_ASYNC_MESSAGE);
	assert_int_equal(logout(e, ISCSI_LOGOUT_SESSION, 0)->pdu.op,
			 ISCSI_LOGOUT_RESPONSE);
	assert_true(e->p->gone);
	assert_int_equal(e->p->how, DM_TERMINATE_AFTER_SENT);
}

/* [RFC 7143: 11.15 #1] */
static void test_logout_connection_rfc7143_11_15_1(void **state)
{
	struct env *e = *state;
	struct sent *s = logout(e, ISCSI_LOGOUT_CONNECTION, 5);

	assert_int_equal(s->pdu.logout.response, 1); /* CID not found */
	assert_false(e->p->gone);
	s = logout(e, ISCSI_LOGOUT_CONNECTION, 0);
	assert_int_equal(s->pdu.logout.response, 0);
	assert_true(e->p->gone);
	assert_int_equal(e->p->how, DM_TERMINATE_LOGGED_OUT);
}

static void test_logout_for_recovery_rfc7143_11_15_1(void **state)
{
	struct env *e = *state;
	struct sent *s = logout(e, ISCSI_LOGOUT_RECOVERY, 0);

	assert_int_equal(s->pdu.logout.response, 2); /* level 0 */
	assert_false(e->p->gone);
}

static void test_logout_reserved_reason(void **state)
{
	struct env *e = *state;

	assert_int_equal(logout(e, 77, 0)->pdu.op, ISCSI_REJECT);
}

/* Commands in progress are aborted without a response. */
static void test_logout_terminates_commands_rfc7143_11_14(void **state)
{
	struct env *e = *state;
	struct iscsi_pdu pdu = request(e->p, ISCSI_LOGOUT_REQUEST);

	e->r->holding = true;
	peer_read(e->p, 0, 1);
	pdu.cmdsn = e->p->cmdsn;
	peer_rx(e->p, &pdu, NULL);
	peer_tur(e->p); /* after the Logout Request */
	assert_int_equal(peer_expect(e->p, ISCSI_REJECT)->pdu.reject.reason,
			 ISCSI_REJECT_WAITING_LOGOUT);
	assert_true(peer_quiet(e->p));
	e->r->holding = false;
	fixture_settle(e->r);
	peer_expect(e->p, ISCSI_LOGOUT_RESPONSE);
	assert_true(peer_quiet(e->p));
	assert_true(e->p->gone);
}

/* [RFC 5047: 9.2 #1] */
static void test_connection_lost_during_logout(void **state)
{
	struct env *e = *state;
	struct iscsi_pdu pdu = request(e->p, ISCSI_LOGOUT_REQUEST);

	e->r->holding = true;
	peer_read(e->p, 0, 1);
	pdu.cmdsn = e->p->cmdsn;
	peer_rx(e->p, &pdu, NULL);
	peer_cut(e->p, 0);
	e->r->holding = false;
	fixture_settle(e->r);
	assert_true(tgt_worker_idle(tgt_worker(e->r->tgt, 0)));
}

/* ---- Reject ---- */

static void expect_reject(struct env *e, uint8_t op, uint8_t reason)
{
	struct sent *s = peer_expect(e->p, ISCSI_REJECT);

	assert_int_equal(s->pdu.reject.reason, reason);
	assert_int_equal(s->pdu.itt, ISCSI_RESERVED_TAG);
	assert_int_equal(s->len, ISCSI_BHS_LEN); /* §11.17.4 */
	assert_int_equal(s->data[0] & 0x3f, op);
}

/* [RFC 7143: 7.8 #7, 11.16 #7] */
static void test_snack_rejected_rfc7143_11_16(void **state)
{
	struct env *e = *state;
	struct iscsi_pdu pdu = request(e->p, ISCSI_SNACK_REQUEST);

	peer_rx(e->p, &pdu, NULL);
	expect_reject(e, ISCSI_SNACK_REQUEST, ISCSI_REJECT_SNACK);
}

/* [RFC 7143: 4.2.4 #1 #3] */
static void test_login_in_full_feature_phase_rejected(void **state)
{
	struct env *e = *state;
	struct iscsi_pdu pdu = request(e->p, ISCSI_LOGIN_REQUEST);

	peer_rx(e->p, &pdu, NULL);
	expect_reject(e, ISCSI_LOGIN_REQUEST, ISCSI_REJECT_PROTOCOL);
	assert_false(e->p->terminated);
}

static void test_error_notify_rejects_rfc7143_11_17_1(void **state)
{
	static const struct {
		int err;
		uint8_t reason;
	} rows[] = {
		{ ERR_DATA_DIGEST, ISCSI_REJECT_DATA_DIGEST },
		{ ERR_OPCODE, ISCSI_REJECT_NOT_SUPPORTED },
		{ ERR_FORMAT, ISCSI_REJECT_INVALID_PDU_FIELD },
		{ ERR_PROTOCOL, ISCSI_REJECT_PROTOCOL },
	};
	struct env *e = *state;
	struct iscsi_pdu pdu = request(e->p, ISCSI_NOP_OUT);
	uint8_t bhs[ISCSI_BHS_LEN];

	iscsi_bhs_encode(&pdu, bhs);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		e->p->dm.up->error_notify(&e->p->dm, &pdu, bhs, rows[i].err);
		expect_reject(e, ISCSI_NOP_OUT, rows[i].reason);
	}
}

/* ---- requests ahead of their turn ---- */

static void test_request_waits_for_its_turn_rfc7143_4_2_2_1(void **state)
{
	struct env *e = *state;
	struct iscsi_pdu pdu = request(e->p, ISCSI_NOP_OUT);

	pdu.immediate = false;
	pdu.cmdsn = e->p->cmdsn + 1;
	pdu.dsl = 3;
	peer_rx(e->p, &pdu, "abc");
	assert_true(peer_quiet(e->p));
	peer_tur(e->p);
	peer_expect_status(e->p, SCSI_GOOD);
	assert_memory_equal(peer_expect(e->p, ISCSI_NOP_IN)->data, "abc", 3);
}

static void test_too_much_ahead_drops_connection(void **state)
{
	static uint8_t data[262144];
	struct env *e = *state;
	struct iscsi_pdu pdu = request(e->p, ISCSI_NOP_OUT);
	int err = 0;

	pdu.immediate = false;
	pdu.dsl = sizeof(data);
	for (uint32_t i = 1; i < 8 && !err; i++) {
		pdu.cmdsn = e->p->cmdsn + i;
		err = peer_rx(e->p, &pdu, data);
	}
	assert_int_equal(err, ERR_LIMIT);
}

/* ---- discovery ---- */

/* [RFC 7143: 4.3 #1-2] */
static void test_discovery_allows_little_rfc7143_13_21(void **state)
{
	struct env *e = *state;
	struct peer *d = peer_discovery(e->r);
	struct iscsi_pdu pdu = request(d, ISCSI_NOP_OUT);

	peer_tur(d);
	assert_int_equal(peer_expect(d, ISCSI_REJECT)->pdu.reject.reason,
			 ISCSI_REJECT_PROTOCOL);
	pdu.cmdsn = d->cmdsn;
	peer_rx(d, &pdu, NULL);
	assert_int_equal(peer_expect(d, ISCSI_REJECT)->pdu.reject.reason,
			 ISCSI_REJECT_PROTOCOL);
	pdu.op = ISCSI_TMF_REQUEST;
	pdu.tmf.function = ISCSI_TMF_TARGET_COLD_RESET;
	peer_rx(d, &pdu, NULL);
	peer_expect(d, ISCSI_REJECT);
	pdu = request(d, ISCSI_LOGOUT_REQUEST);
	pdu.logout.reason = ISCSI_LOGOUT_CONNECTION;
	peer_rx(d, &pdu, NULL);
	peer_expect(d, ISCSI_REJECT);
	pdu.logout.reason = ISCSI_LOGOUT_SESSION;
	peer_rx(d, &pdu, NULL);
	peer_expect(d, ISCSI_LOGOUT_RESPONSE);
}

/* ---- draining ---- */

/* [RFC 7143: 11.9.1 #1] */
static void test_drain_asks_for_logout_rfc7143_11_9_1(void **state)
{
	struct env *e = *state;
	struct tgt_worker *w = tgt_worker(e->r->tgt, 0);
	struct peer *d = peer_discovery(e->r);
	struct sent *s;

	tgt_worker_drain(w, 50 * XTIME_S);
	s = peer_expect(e->p, ISCSI_ASYNC_MESSAGE);
	assert_int_equal(s->pdu.async.event, ISCSI_ASYNC_LOGOUT);
	assert_int_equal(s->pdu.async.param3, 3);
	assert_true(
		d->terminated); /* a discovery session gets no such message */
	assert_int_equal(logout(e, ISCSI_LOGOUT_SESSION, 0)->pdu.op,
			 ISCSI_LOGOUT_RESPONSE);
	fixture_settle(e->r);
	assert_true(tgt_worker_idle(w));
}

static void test_drain_drops_who_stays_rfc7143_11_9_1(void **state)
{
	struct env *e = *state;
	struct tgt_worker *w = tgt_worker(e->r->tgt, 0);
	xtime now = 50 * XTIME_S;
	struct sent *s;

	tgt_worker_drain(w, now);
	peer_expect(e->p, ISCSI_ASYNC_MESSAGE);
	peer_tur(e->p); /* commands are still executed meanwhile */
	peer_expect(e->p, ISCSI_SCSI_RESPONSE);
	tgt_worker_expire(w, now + e->r->cfg.logout_time);
	s = peer_expect(e->p, ISCSI_ASYNC_MESSAGE);
	assert_int_equal(s->pdu.async.event, ISCSI_ASYNC_DROP_CONNECTION);
	assert_true(e->p->terminated);
	fixture_settle(e->r);
	assert_true(tgt_worker_idle(w));
}

/* A peer that reads nothing cannot delay the end. */
static void test_closing_is_bounded(void **state)
{
	struct env *e = *state;
	struct tgt_worker *w = tgt_worker(e->r->tgt, 0);
	struct iscsi_pdu pdu = request(e->p, ISCSI_LOGOUT_REQUEST);
	xtime now = 50 * XTIME_S;

	peer_rx(e->p, &pdu, NULL);
	assert_true(e->p->terminated);
	assert_int_equal(e->p->how, DM_TERMINATE_LOGGED_OUT);
	tgt_worker_expire(w, now);
	assert_int_equal(e->p->how, DM_TERMINATE_LOGGED_OUT);
	tgt_worker_expire(w, now + 2 * XTIME_S);
	assert_int_equal(e->p->how, DM_TERMINATE_NOW);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ONE(test_nop_out_echoed_rfc7143_11_19),
		ONE(test_nop_out_echo_cut_rfc7143_11_18_3),
		ONE(test_nop_out_without_tag_must_be_immediate_rfc7143_11_18_1),
		ONE(test_ping_and_pong_rfc7143_11_19),
		ONE(test_times_of_connections_when_one_left),
		ONE(test_nop_out_that_asks_nothing_rfc7143_11_18),
		ONE(test_ping_unanswered),
		ONE(test_ping_is_repeated_rfc7143_7_1_4_2),
		ONE(test_logout_session_rfc7143_11_14),
		ONE(test_logout_while_draining),
		ONE(test_logout_connection_rfc7143_11_15_1),
		ONE(test_logout_for_recovery_rfc7143_11_15_1),
		ONE(test_logout_reserved_reason),
		ONE(test_logout_terminates_commands_rfc7143_11_14),
		ONE(test_connection_lost_during_logout),
		ONE(test_snack_rejected_rfc7143_11_16),
		ONE(test_login_in_full_feature_phase_rejected),
		ONE(test_error_notify_rejects_rfc7143_11_17_1),
		ONE(test_request_waits_for_its_turn_rfc7143_4_2_2_1),
		ONE(test_too_much_ahead_drops_connection),
		ONE(test_discovery_allows_little_rfc7143_13_21),
		ONE(test_drain_asks_for_logout_rfc7143_11_9_1),
		ONE(test_drain_drops_who_stays_rfc7143_11_9_1),
		ONE(test_closing_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
