/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * recover_test.c: connection recovery (RFC 7143 §§7.1.4.3, 7.2.2, 8.3, 11.14) at
 * ErrorRecoveryLevel 2: the states of a session that loses its connections, and an
 * initiator that loses connections, logs out and reassigns at random. RECOVER_SEED and
 * RECOVER_STEPS change the random run.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"
#include "fixture.h"
#include "iscsi/login.h"
#include "target/internal.h"

#define CONNS  3u
#define RETAIN 20u

static void level2(struct tgt_config *cfg)
{
	cfg->want.max_connections = CONNS;
	cfg->want.error_recovery_level = 2;
	cfg->want.default_time2retain = RETAIN;
	cfg->idle_time = XTIME_NEVER;
	cfg->data_time = XTIME_NEVER;
}

static const char leading[] = "InitiatorName=" FIXTURE_INI "\0"
			      "SessionType=Normal\0"
			      "TargetName=" FIXTURE_TARGET "\0"
			      "MaxConnections=3\0"
			      "ErrorRecoveryLevel=2\0"
			      "DefaultTime2Wait=0\0"
			      "InitialR2T=Yes";
/* with the Response Fence and FastAbort */
static const char fenced[] = "InitiatorName=" FIXTURE_INI "\0"
			     "SessionType=Normal\0"
			     "TargetName=" FIXTURE_TARGET "\0"
			     "MaxConnections=3\0"
			     "ErrorRecoveryLevel=2\0"
			     "DefaultTime2Wait=0\0"
			     "InitialR2T=Yes\0"
			     "TaskReporting=FastAbort,ResponseFence,RFC3720";
static const char joining[] = "InitiatorName=" FIXTURE_INI "\0"
			      "SessionType=Normal\0"
			      "TargetName=" FIXTURE_TARGET;

/* A session; its connections by CID. */
struct ini {
	struct fixture *r;
	struct peer *p[CONNS];
	uint16_t tsih;
	uint32_t cmdsn, itt;
	uint8_t isid;
	xtime now;
	uint64_t seed;
	bool fenced;
};

static void send_login(struct ini *m, struct peer *p, uint16_t cid)
{
	struct iscsi_pdu pdu = { .op = ISCSI_LOGIN_REQUEST,
				 .immediate = true,
				 .final = true,
				 .cmdsn = m->cmdsn };
	const uint8_t isid[6] = { 0x80, 1, 2, 3, 4, m->isid };

	pdu.dsl = m->tsih     ? sizeof(joining)
		  : m->fenced ? sizeof(fenced)
			      : sizeof(leading);
	pdu.login.transit = true;
	pdu.login.csg = 1;
	pdu.login.nsg = 3;
	pdu.login.tsih = m->tsih;
	pdu.login.cid = cid;
	memcpy(pdu.login.isid, isid, 6);
	peer_rx(p, &pdu, m->tsih ? joining : m->fenced ? fenced : leading);
}

static uint16_t answer_of(struct peer *p)
{
	const struct sent *s = peer_expect(p, ISCSI_LOGIN_RESPONSE);

	return (uint16_t)(s->pdu.login.status_class << 8 |
			  s->pdu.login.status_detail);
}

static void pass(struct ini *m, xtime time)
{
	m->now += time;
	tgt_worker_expire(tgt_worker(m->r->tgt, 0), m->now);
	fixture_settle(m->r);
}

static uint16_t add(struct ini *m, uint16_t cid)
{
	struct peer *p = peer_new(m->r, 0);
	uint16_t status;

	m->r->holding = false; /* the login may wait for tasks */
	send_login(m, p, cid);
	fixture_settle(m->r);
	pass(m, 0); /* a session that waits ends at the next expire */
	status = answer_of(p);
	if (!status) {
		m->p[cid] = p;
		p->silent = true;
		if (!m->tsih)
			m->tsih = p->sent[0].pdu.login.tsih;
	}
	return status;
}

static struct ini *ini_with(struct fixture *r, uint8_t isid, bool with_fences)
{
	struct ini *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	m->r = r;
	m->cmdsn = 100;
	m->itt = 1;
	m->isid = isid;
	m->now = XTIME_S;
	m->fenced = with_fences;
	assert_int_equal(add(m, 0), 0);
	return m;
}

static struct ini *ini_new(struct fixture *r, uint8_t isid)
{
	return ini_with(r, isid, false);
}

static void lose(struct ini *m, uint16_t cid)
{
	peer_cut(m->p[cid], ERR_RESET);
	m->p[cid] = NULL;
	fixture_settle(m->r);
	pass(m, 0);
}

static void count_one(void *arg, const struct tgt_conn_status *st)
{
	*(unsigned *)arg += st->lost;
}

static unsigned lost_conns(const struct fixture *r)
{
	unsigned n = 0;

	tgt_worker_each(tgt_worker(r->tgt, 0), count_one, &n);
	return n;
}

static const struct tgt_session *session_of(const struct ini *m)
{
	list_for_each(it, &tgt_worker(m->r->tgt, 0)->sessions) {
		const struct tgt_session *s =
			list_entry(it, struct tgt_session, link);

		if (s->tsih == m->tsih)
			return s;
	}
	return NULL;
}

static uint32_t command(struct ini *m, uint16_t cid, uint8_t op,
			uint16_t blocks)
{
	struct peer *p = m->p[cid];
	uint8_t cdb[16] = { op };

	put_be16(cdb + 7, blocks);
	p->cmdsn = m->cmdsn++;
	p->itt = m->itt++;
	return peer_command(p, cdb, op == 0x28, op == 0x2a, blocks * 512u);
}

static uint32_t immediate_read(struct ini *m, uint16_t cid)
{
	struct iscsi_pdu pdu = { .op = ISCSI_SCSI_COMMAND,
				 .immediate = true,
				 .final = true,
				 .itt = m->itt++,
				 .cmdsn = m->cmdsn };

	pdu.cmd.read = true;
	pdu.cmd.attr = ISCSI_ATTR_SIMPLE;
	pdu.cmd.edtl = 512;
	pdu.cmd.cdb[0] = 0x28;
	pdu.cmd.cdb[8] = 1;
	peer_rx(m->p[cid], &pdu, NULL);
	return pdu.itt;
}

static void logout(struct ini *m, uint16_t by, uint8_t reason, uint16_t cid)
{
	struct iscsi_pdu pdu = { .op = ISCSI_LOGOUT_REQUEST,
				 .immediate = true,
				 .final = true,
				 .itt = m->itt++,
				 .cmdsn = m->cmdsn };

	pdu.logout.reason = reason;
	pdu.logout.cid = cid;
	peer_rx(m->p[by], &pdu, NULL);
}

static void tmf(struct ini *m, uint16_t by, enum iscsi_tmf function,
		uint32_t rtt)
{
	m->p[by]->itt = m->itt++;
	m->p[by]->cmdsn = m->cmdsn;
	peer_tmf(m->p[by], function, 0, rtt, m->cmdsn);
}

static uint8_t reassign(struct ini *m, uint16_t by, uint32_t rtt)
{
	tmf(m, by, ISCSI_TMF_TASK_REASSIGN, rtt);
	return peer_expect(m->p[by], ISCSI_TMF_RESPONSE)->pdu.tmf_response;
}

/* ---- the states of a session (§8.3) ---- */

/* A session without connections is failed (N5), a login goes on with it (N7, N10). */
static void test_continuation_n5_n7_n10_rfc7143_8_3(void **state)
{
	struct fixture *r = fixture_new(1, level2);
	struct ini *m = ini_new(r, 1);
	uint32_t itt;

	(void)state;
	itt = command(m, 0, 0, 0);
	fixture_settle(r);
	lose(m, 0);
	assert_int_equal(session_of(m)->state, ISCSI_Q4_FAILED);
	assert_int_equal(lost_conns(r), 1);
	assert_int_equal(add(m, 0), 0);
	assert_int_equal(session_of(m)->state, ISCSI_Q3_LOGGED_IN);
	assert_int_equal(reassign(m, 0, itt), ISCSI_TMF_COMPLETE);
	assert_int_equal(m->p[0]->adopted, 1);
	assert_int_equal(peer_expect(m->p[0], ISCSI_SCSI_RESPONSE)->pdu.itt,
			 itt);
	free(m);
	fixture_free(r);
}

/* N8: the login that continues the session is lost while an immediate command of the
 * old connection still ends. N6: the session ends at its deadline. */
static void test_continuation_fails_n8_n6_rfc7143_8_3(void **state)
{
	struct fixture *r = fixture_new(1, level2);
	struct ini *m = ini_new(r, 1);
	struct peer *p;

	(void)state;
	command(m, 0, 0, 0);
	fixture_settle(r);
	r->holding = true;
	immediate_read(m, 0);
	lose(m, 0);
	p = peer_new(r, 0);
	send_login(m, p, 0);
	fixture_settle(r);
	assert_int_equal(session_of(m)->state, ISCSI_Q5_CONTINUE);
	peer_cut(p, ERR_RESET);
	assert_int_equal(session_of(m)->state, ISCSI_Q4_FAILED);
	r->holding = false;
	fixture_release(r);
	fixture_settle(r);
	pass(m, RETAIN * XTIME_S - 1);
	assert_non_null(session_of(m));
	pass(m, 2);
	assert_null(session_of(m));
	assert_int_equal(add(m, 0), ISCSI_LOGIN_NO_SESSION);
	free(m);
	fixture_free(r);
}

/* Session reinstatement while a continuation is in progress (N8, N6). */
static void test_reinstatement_n6_rfc7143_8_3(void **state)
{
	struct fixture *r = fixture_new(1, level2);
	struct ini *m = ini_new(r, 1);
	struct peer *p, *again;
	uint16_t tsih = m->tsih;

	(void)state;
	command(m, 0, 0, 0);
	fixture_settle(r);
	r->holding = true;
	immediate_read(m, 0);
	lose(m, 0);
	p = peer_new(r, 0);
	send_login(m, p, 0);
	again = peer_new(r, 0);
	m->tsih = 0;
	send_login(m, again, 0);
	r->holding = false;
	fixture_release(r);
	fixture_settle(r);
	pass(m, 0);
	fixture_settle(r);
	assert_int_equal(answer_of(again), 0);
	assert_int_not_equal(again->sent[0].pdu.login.tsih, tsih);
	assert_true(p->gone);
	free(m);
	fixture_free(r);
}

/* The deadline begins again with the Logout, and not with a second one. */
static void test_deadlines_rfc7143_11_15_4(void **state)
{
	struct fixture *r = fixture_new(1, level2);
	struct ini *m = ini_new(r, 1);
	uint32_t itt;

	(void)state;
	assert_int_equal(add(m, 1), 0);
	itt = command(m, 1, 0, 0);
	fixture_settle(r);
	lose(m, 1);
	pass(m, (RETAIN - 1) * XTIME_S);
	logout(m, 0, 2, 1);
	fixture_settle(r);
	pass(m, 0);
	pass(m, (RETAIN - 1) * XTIME_S);
	logout(m, 0, 2, 1);
	fixture_settle(r);
	assert_int_equal(lost_conns(r), 1);
	pass(m, XTIME_S);
	assert_int_equal(lost_conns(r), 0);
	m->p[0]->next = m->p[0]->nsent;
	assert_int_equal(reassign(m, 0, itt), ISCSI_TMF_NO_TASK);
	free(m);
	fixture_free(r);
}

/* A WRITE whose data do not come, and a READ that the device still executes. */
static void test_tasks_go_on_rfc7143_7_2_2(void **state)
{
	struct fixture *r = fixture_new(1, level2);
	struct ini *m = ini_new(r, 1);
	uint32_t wr, rd;
	struct sent *s;

	(void)state;
	assert_int_equal(add(m, 1), 0);
	command(m, 1, 0, 0); /* the unit attention */
	fixture_settle(r);
	wr = command(m, 1, 0x2a, 8);
	peer_unsolicited(m->p[1], m->p[1]->last_task, 0, 0, 0);
	r->holding = true;
	rd = command(m, 1, 0x28, 4);
	lose(m, 1);
	m->p[0]->next = m->p[0]->nsent;
	logout(m, 0, 2, 1);
	fixture_settle(r);
	assert_int_equal(peer_expect(m->p[0], ISCSI_LOGOUT_RESPONSE)
				 ->pdu.logout.time2retain,
			 RETAIN);
	assert_int_equal(reassign(m, 0, wr), ISCSI_TMF_COMPLETE);
	assert_int_equal(reassign(m, 0, wr), ISCSI_TMF_TASK_ALLEGIANT);
	assert_int_equal(reassign(m, 0, rd), ISCSI_TMF_COMPLETE);
	assert_int_equal(m->p[0]->get_offset, 0);
	assert_int_equal(m->p[0]->get_len, 8 * 512);
	peer_solicited(m->p[0], 7, 0);
	r->holding = false;
	fixture_release(r);
	fixture_settle(r);
	s = peer_next(m->p[0]);
	assert_true(s->put && s->pdu.itt == rd && s->len == 4 * 512);
	s = peer_expect(m->p[0], ISCSI_SCSI_RESPONSE);
	assert_int_equal(s->pdu.itt, wr);
	assert_int_equal(s->pdu.rsp.status, SCSI_GOOD);
	free(m);
	fixture_free(r);
}

/* TASK REASSIGN follows the Logout Response at once: the connection that was logged out by
 * itself may still be closing. */
static void test_reassignment_before_the_close_rfc7143_11_14(void **state)
{
	struct fixture *r = fixture_new(1, level2);
	struct ini *m = ini_new(r, 1);
	uint32_t itt;

	(void)state;
	assert_int_equal(add(m, 1), 0);
	itt = command(m, 1, 0, 0);
	fixture_settle(r);
	m->p[1]->next = m->p[1]->nsent;
	logout(m, 1, 2, 1);
	peer_expect(m->p[1], ISCSI_LOGOUT_RESPONSE);
	assert_false(m->p[1]->gone);
	tmf(m, 0, ISCSI_TMF_TASK_REASSIGN, itt);
	assert_true(peer_quiet(m->p[0]));
	fixture_settle(r);
	assert_true(m->p[1]->gone);
	assert_int_equal(
		peer_expect(m->p[0], ISCSI_TMF_RESPONSE)->pdu.tmf_response,
		ISCSI_TMF_COMPLETE);
	assert_int_equal(peer_expect(m->p[0], ISCSI_SCSI_RESPONSE)->pdu.itt,
			 itt);
	free(m);
	fixture_free(r);
}

/* The initiator has lost the connection of its Logout and asks again on a third one,
 * before the target knows of that loss, or of the end of the removed connection. */
static void test_logout_again_before_the_answer_rfc7143_11_14(void **state)
{
	struct fixture *r = fixture_new(1, level2);
	struct ini *m = ini_new(r, 1);
	uint32_t itt;

	(void)state;
	assert_int_equal(add(m, 1), 0);
	assert_int_equal(add(m, 2), 0);
	itt = command(m, 1, 0, 0);
	fixture_settle(r);
	m->p[0]->next = m->p[0]->nsent;
	m->p[2]->next = m->p[2]->nsent;
	logout(m, 0, 2, 1);
	logout(m, 2, 2, 1);
	fixture_settle(r);
	assert_int_equal(
		peer_expect(m->p[0], ISCSI_LOGOUT_RESPONSE)->pdu.logout.response,
		1);
	assert_int_equal(
		peer_expect(m->p[2], ISCSI_LOGOUT_RESPONSE)->pdu.logout.response,
		0);
	assert_int_equal(reassign(m, 2, itt), ISCSI_TMF_COMPLETE);
	free(m);
	fixture_free(r);
}

/* The Logout of a lost connection waits for a command that the device does not end
 * before the deadline of the connection: it gets an answer all the same. */
/* [RFC 7143: 11.15 #1] */
static void test_logout_at_the_deadline_rfc7143_11_15_1(void **state)
{
	(void)state;
	for (uint8_t reason = 1; reason <= 2; reason++) {
		struct fixture *r = fixture_new(1, level2);
		struct ini *m = ini_new(r, 1);

		assert_int_equal(add(m, 1), 0);
		command(m, 0, 0, 0);
		fixture_settle(r);
		r->holding = true;
		immediate_read(m, 0);
		lose(m, 0);
		m->p[1]->next = m->p[1]->nsent;
		logout(m, 1, reason, 0);
		fixture_settle(r);
		assert_true(peer_quiet(m->p[1]));
		pass(m, RETAIN * XTIME_S + 1);
		assert_int_equal(lost_conns(r), 0);
		assert_int_equal(peer_expect(m->p[1], ISCSI_LOGOUT_RESPONSE)
					 ->pdu.logout.response,
				 1);
		r->holding = false;
		fixture_release(r);
		fixture_settle(r);
		free(m);
		fixture_free(r);
	}
}

static void little_memory(struct tgt_config *cfg)
{
	level2(cfg);
	cfg->data_time = 4 * XTIME_S;
	cfg->env.buf_common = 512u << 10;
	cfg->env.buf_reserve = 256u << 10;
	cfg->env.buf_burst = 64u << 10;
}

static void write_500(struct ini *m)
{
	command(m, 0, 0x2a, 500);
	peer_unsolicited(m->p[0], m->p[0]->last_task, 0, 0, 0);
}

/* The tasks of a lost connection keep their memory, but not longer than data_time while
 * others wait for it. */
static void test_memory_of_a_lost_connection(void **state)
{
	struct fixture *r = fixture_new(1, little_memory);
	struct ini *a = ini_new(r, 1), *b = ini_new(r, 2), *c = ini_new(r, 3);

	(void)state;
	command(a, 0, 0, 0); /* the unit attention */
	command(b, 0, 0, 0);
	command(c, 0, 0, 0);
	fixture_settle(r);
	write_500(c); /* common */
	write_500(a); /* the reserve */
	fixture_settle(r);
	lose(a, 0);
	b->now = a->now;
	write_500(b);
	fixture_settle(r);
	assert_null(b->p[0]->get_task); /* waits for memory */
	pass(a, 4 * XTIME_S - 1);
	assert_int_equal(lost_conns(r), 1);
	pass(a, 1);
	assert_int_equal(lost_conns(r), 0);
	assert_null(session_of(a));
	fixture_settle(r);
	assert_non_null(b->p[0]->get_task);
	free(a);
	free(b);
	free(c);
	fixture_free(r);
}

static void settled(void *arg)
{
	*(bool *)arg = true;
}

/* A new directory is settled at once, and the next one need not wait until Time2Retain: a
 * session that waits goes on if nothing changes for it, else it ends. */
static void test_new_directory_ends_what_may_not_go_on(void **state)
{
	static const char *const targets[] = { FIXTURE_TARGET, FIXTURE_SECOND };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(targets); i++) {
		struct fixture *r = fixture_new(1, level2);
		struct ini *m = ini_new(r, 1);
		bool is_settled = false;
		const struct tgt_apply_events events = { .settled = settled,
							 .arg = &is_settled };

		lose(m, 0);
		assert_int_equal(tgt_apply(r->tgt,
					   fixture_directory(targets[i]),
					   &events),
				 0);
		fixture_settle(r);
		assert_non_null(session_of(m));
		pass(m, 0);
		assert_int_equal(session_of(m) != NULL, i == 0);
		assert_true(is_settled);
		if (i == 0)
			assert_int_equal(add(m, 0), 0);
		free(m);
		fixture_free(r);
	}
}

/* The end of the process, or of an administrator's patience, does not wait. */
static void test_drain_ends_what_waits(void **state)
{
	struct fixture *r = fixture_new(1, level2);
	struct ini *m = ini_new(r, 1);

	(void)state;
	lose(m, 0);
	assert_non_null(session_of(m));
	tgt_worker_drain(tgt_worker(r->tgt, 0), m->now);
	pass(m, 0);
	assert_true(tgt_worker_idle(tgt_worker(r->tgt, 0)));
	free(m);
	fixture_free(r);
}

/* ---- at random ---- */

static unsigned roll(struct ini *m, unsigned n)
{
	m->seed = m->seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(m->seed >> 33) % n;
}

static uint16_t some_conn(struct ini *m)
{
	uint16_t first = (uint16_t)roll(m, CONNS);

	for (uint16_t i = 0; i < CONNS; i++)
		if (m->p[(first + i) % CONNS])
			return (uint16_t)((first + i) % CONNS);
	return CONNS;
}

/* Connections that the target ended are not used any more. */
static void look(struct ini *m)
{
	for (unsigned i = 0; i < CONNS; i++) {
		struct peer *p = m->p[i];

		if (p && (p->gone || p->terminated))
			m->p[i] = NULL;
		else if (p && p->nsent > FIXTURE_SENT - 64)
			peer_cut(p, ERR_RESET), m->p[i] = NULL;
		else if (p)
			p->silent = roll(m, 2);
	}
}

static void acknowledge(struct ini *m, uint16_t c)
{
	struct iscsi_pdu nop = { .op = ISCSI_NOP_OUT,
				 .immediate = true,
				 .final = true,
				 .itt = ISCSI_RESERVED_TAG,
				 .ttt = ISCSI_RESERVED_TAG,
				 .cmdsn = m->cmdsn,
				 .expstatsn = m->p[c]->dm.numbers->statsn };

	peer_rx(m->p[c], &nop, NULL);
}

static void one_step(struct ini *m)
{
	uint16_t c = some_conn(m), cid = (uint16_t)roll(m, CONNS);
	uint32_t tag = m->itt > 12 ? m->itt - 1 - roll(m, 12) : roll(m, 12);

	m->r->holding = roll(m, 3);
	if (c == CONNS) {
		if (add(m, cid)) { /* the session has ended */
			m->tsih = 0;
			assert_int_equal(add(m, cid), 0);
		}
		return;
	}
	switch (roll(m, 17)) {
	case 14:
		acknowledge(m, c);
		break;
	case 0:
	case 1:
		peer_cut(m->p[c], ERR_RESET);
		break;
	case 2:
		add(m, cid);
		break;
	case 3:
		logout(m, c, 2, cid);
		break;
	case 4:
		logout(m, c, (uint8_t)roll(m, 4), (uint16_t)roll(m, 5));
		break;
	case 5:
	case 6:
	case 7:
		tmf(m, c, ISCSI_TMF_TASK_REASSIGN, tag);
		break;
	case 8:
		tmf(m, c, 1 + roll(m, 12), tag);
		break;
	case 9:
		immediate_read(m, c);
		break;
	case 10:
		m->cmdsn += roll(m, 2); /* a hole */
		command(m, c, 0, 0);
		break;
	case 11:
		if (m->p[c]->get_task)
			peer_solicited(m->p[c], 7, 0);
		break;
	case 12:
		pass(m, roll(m, 8) * XTIME_S);
		break;
	case 13:
		command(m, c, 0x2a, 8);
		if (m->p[c]->last_task && !roll(m, 3))
			peer_unsolicited(m->p[c], m->p[c]->last_task, 0, 0, 0);
		break;
	default:
		command(m, c, 0x28, 4);
		break;
	}
}

static unsigned from_env(const char *name, unsigned usual)
{
	const char *text = getenv(name);

	return text ? (unsigned)strtoul(text, NULL, 10) : usual;
}

/* What the random runs have reached. */
static struct reached {
	unsigned moved, lost, waiting, continued, held, fenced;
} reached;

static void note(struct ini *m, bool waited)
{
	const struct tgt_session *s = session_of(m);
	bool waits = s && s->state == ISCSI_Q4_FAILED;

	reached.lost = MAX(reached.lost, lost_conns(m->r));
	reached.waiting += waits && !waited;
	reached.held += s && !list_empty(&s->fences.held);
	reached.fenced += s && s->fences.step != TGT_FENCE_NONE;
	reached.continued += waited && s && s->state == ISCSI_Q3_LOGGED_IN;
	for (unsigned i = 0; i < CONNS; i++) {
		if (!m->p[i])
			continue;
		reached.moved += m->p[i]->adopted;
		m->p[i]->adopted = 0;
	}
}

/* Nothing waits for ever: an initiator that acknowledges all gets all. */
static void end_fences(struct ini *m)
{
	const struct tgt_session *s;

	m->r->holding = false;
	fixture_release(m->r);
	for (unsigned i = 0; i < 200; i++) {
		look(m);
		for (uint16_t c = 0; c < CONNS; c++)
			if (m->p[c])
				acknowledge(m, c);
		fixture_settle(m->r);
		pass(m, XTIME_S);
		look(m);
	}
	s = session_of(m);
	if (s && !list_empty(&s->conns.list)) {
		assert_true(list_empty(&s->fences.held));
		assert_int_equal(s->fences.step, TGT_FENCE_NONE);
	}
}

static void run_seed(uint64_t seed, unsigned steps)
{
	struct fixture *r = fixture_new(1, level2);
	struct ini *m = ini_with(r, 1, seed % 2);

	m->seed = seed * 7919;
	for (unsigned i = 0; i < steps; i++) {
		bool waited = session_of(m) &&
			      session_of(m)->state == ISCSI_Q4_FAILED;

		one_step(m);
		look(m);
		if (roll(m, 2))
			fixture_settle(r);
		pass(m, 0);
		note(m, waited);
		look(m);
		if (session_of(m))
			m->cmdsn =
				session_of(m)->window.expcmdsn +
				(m->cmdsn - session_of(m)->window.expcmdsn) % 3;
	}
	end_fences(m);
	free(m);
	fixture_free(r);
}

/* A session keeps no more lost connections than its share (and one that goes next); the fixture checks that nothing of it is left in the end. */
static void test_random_recovery(void **state)
{
	unsigned seeds = from_env("RECOVER_SEED", 0);
	unsigned steps = from_env("RECOVER_STEPS", 300);

	(void)state;
	if (seeds)
		run_seed(seeds, steps);
	for (unsigned i = 1; !seeds && i <= 150; i++)
		run_seed(i, steps);
	assert_in_range(reached.lost, CONNS + 1, CONNS + 9);
	if (seeds)
		return;
	assert_in_range(reached.moved, 100, UINT_MAX);
	assert_in_range(reached.waiting, 100, UINT_MAX);
	assert_in_range(reached.continued, 100, UINT_MAX);
	assert_in_range(reached.held, 100, UINT_MAX);
	assert_in_range(reached.fenced, 100, UINT_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_continuation_n5_n7_n10_rfc7143_8_3),
		cmocka_unit_test(test_continuation_fails_n8_n6_rfc7143_8_3),
		cmocka_unit_test(test_reinstatement_n6_rfc7143_8_3),
		cmocka_unit_test(test_deadlines_rfc7143_11_15_4),
		cmocka_unit_test(test_tasks_go_on_rfc7143_7_2_2),
		cmocka_unit_test(
			test_reassignment_before_the_close_rfc7143_11_14),
		cmocka_unit_test(
			test_logout_again_before_the_answer_rfc7143_11_14),
		cmocka_unit_test(test_logout_at_the_deadline_rfc7143_11_15_1),
		cmocka_unit_test(test_memory_of_a_lost_connection),
		cmocka_unit_test(test_new_directory_ends_what_may_not_go_on),
		cmocka_unit_test(test_drain_ends_what_waits),
		cmocka_unit_test(test_random_recovery),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
