/* SPDX-License-Identifier: BSD-2-Clause */
/* session.c: the states of a session and its connections, their choice, and the end
 * of a session. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "initiator/internal.h"

static void go_to(struct ini_session *s, enum iscsi_session_state next)
{
	iscsi_session_go(ISCSI_INITIATOR, &s->state, next);
}

void ini_conn_go(struct ini_conn *c, enum iscsi_conn_state next)
{
	iscsi_conn_go(ISCSI_INITIATOR, &c->state, next);
}

void ini_rearm(struct ini_session *s)
{
	s->cfg.rearm(s->cfg.arg);
}

/* A connection whose target asked for a logout is the last choice but one. One that
 * leaves is used only if no other connection can send. */
static unsigned load_of(const struct ini_conn *c)
{
	return c->in_flight +
	       (c->state == ISCSI_S7_LOGOUT_REQUESTED ? 0x10000u : 0) +
	       (c->leave.asker ? 0x20000u : 0);
}

struct ini_conn *ini_conn_pick(struct ini_session *s)
{
	struct ini_conn *best = NULL;

	list_for_each(it, &s->conns) {
		struct ini_conn *c = list_entry(it, struct ini_conn, link);

		if (ini_conn_may_send(c) &&
		    (!best || load_of(c) < load_of(best)))
			best = c;
	}
	if (best && best->link.next != best->link.prev) {
		list_del(&best->link);
		list_push_back(&s->conns, &best->link);
	}
	return best;
}

/* ---- begin and end ---- */

void ini_session_logged_in(struct ini_session *s)
{
	go_to(s, ISCSI_Q3_LOGGED_IN); /* N1 */
	/* without pings there is no other moment at which cleared.c looks for
	 * commands that were lost */
	if (s->cfg.idle_time == XTIME_NEVER && s->cfg.query_time != XTIME_NEVER)
		s->has_deadlines = true;
}

void ini_session_failed(struct ini_session *s)
{
	go_to(s, ISCSI_Q4_FAILED); /* N5 */
}

/* [RFC 7143: 6.3.4 #2] */
void ini_session_continued(struct ini_session *s)
{
	s->has_moved = false;
	go_to(s, ISCSI_Q3_LOGGED_IN); /* N4 */
}

bool ini_is_waiting(const struct ini_session *s)
{
	return s->state == ISCSI_Q4_FAILED && !s->is_ending;
}

uint16_t ini_lost_cid(const struct ini_session *s)
{
	assert(!list_empty(&s->lost));
	return list_entry(s->lost.prev, struct ini_conn, link)->offer.id.cid;
}

static bool is_on(const struct list *conns, uint16_t cid)
{
	list_for_each(it, conns)
		if (list_entry(it, struct ini_conn, link)->offer.id.cid == cid)
			return true;
	return false;
}

bool ini_has_cid(const struct ini_session *s, uint16_t cid)
{
	return is_on(&s->conns, cid) || is_on(&s->lost, cid);
}

/* Every connection ends in its driver's turn. */
static void end_conns(struct ini_session *s, int err)
{
	s->is_ending = true;
	list_for_each(it, &s->conns)
		dm_connection_terminate(
			list_entry(it, struct ini_conn, link)->dm,
			DM_TERMINATE_NOW, err);
}

/* The last connection has ended. */
static void end_session(struct ini_session *s, bool clean, int err)
{
	s->is_ending = true;
	while (!list_empty(&s->lost)) {
		struct ini_conn *c =
			list_entry(s->lost.next, struct ini_conn, link);

		ini_fail_conn(c, err ? err : ERR_CLOSED);
		ini_conn_go(c, ISCSI_S1_FREE); /* M1 */
		list_del(&c->link);
		free(c);
	}
	if (s->state == ISCSI_Q3_LOGGED_IN && !clean)
		go_to(s, ISCSI_Q4_FAILED); /* N5 */
	if (s->state != ISCSI_Q1_FREE)
		go_to(s, ISCSI_Q1_FREE); /* N3, N6 */
	ini_fail_waiting(s, err ? err : ERR_CLOSED);
	s->cfg.closed(s->cfg.arg, err);
}

void ini_session_lost_conn(struct ini_session *s, bool clean, int err)
{
	if (list_empty(&s->conns)) {
		if (!ini_is_waiting(s))
			end_session(s, clean, err);
		return;
	}
	if (!clean) /* ErrorRecoveryLevel 0 (§7.1.4.4) */
		ini_kill(s, err ? err : ERR_CLOSED);
	else if (!s->is_ending)
		ini_pump(s);
}

/* [RFC 7143: 11.14 #5, 11.15 #1] */
static void logout_answered(struct ini_request *r, int err,
			    const struct dm_control *rsp)
{
	struct ini_session *s = container_of(r, struct ini_session, logout);

	s->is_logged_out = !err && !rsp->pdu.logout.response;
	s->logout_deadline = XTIME_NEVER;
	end_conns(s, err);
}

/* Sends the Logout on c. Returns 0 or an error. */
static int send_logout(struct ini_session *s, struct ini_conn *c)
{
	struct dm_control ctl = { .pdu = { .op = ISCSI_LOGOUT_REQUEST,
					   .final = true } };

	s->logout.done = logout_answered;
	s->logout.op = ISCSI_LOGOUT_REQUEST;
	s->logout.deadline = XTIME_NEVER;
	s->logout.conn = c;
	ctl.pdu.itt = ini_slot_take(s, NULL, &s->logout);
	ctl.pdu.logout.reason = ISCSI_LOGOUT_SESSION;
	if (ctl.pdu.itt == ISCSI_RESERVED_TAG)
		return ERR_BUSY;
	s->logout.itt = ctl.pdu.itt;
	return ini_send_request(c, &ctl);
}

/* [RFC 7143: 11.9.1 #3, 11.14.2 #1] */
void ini_logout(struct ini_session *s, xtime now)
{
	struct ini_conn *c = NULL;

	s->now = now;
	if (ini_is_full_feature(s))
		c = ini_conn_pick(s);
	if (!c || send_logout(s, c)) {
		ini_kill(s, 0);
		return;
	}
	list_push_back(&s->requests, &s->logout.link);
	ini_conn_go(c, ISCSI_S6_IN_LOGOUT); /* T9, T10 */
	s->is_logging_out = s->is_ending = true;
	s->logout_deadline = now + s->cfg.logout_time;
	ini_rearm(s);
}

void ini_kill(struct ini_session *s, int err)
{
	bool waits = ini_is_waiting(s) && list_empty(&s->conns);

	if (!s->kill_err)
		s->kill_err = err;
	end_conns(s, err);
	if (waits)
		end_session(s, false, err);
}

const struct iscsi_login_failure *ini_failure(const struct ini_session *s)
{
	return &s->failure;
}

const struct iscsi_params *ini_params(const struct ini_session *s)
{
	return &s->params;
}

int ini_tpgt(const struct ini_session *s)
{
	return s->tpgt;
}

const char *ini_transport(const struct ini_session *s)
{
	return s->transport ? s->transport : "none";
}

unsigned ini_in_flight(const struct ini_session *s)
{
	return s->in_flight;
}

bool ini_has_moved(const struct ini_session *s)
{
	return s->has_moved;
}

bool ini_is_logged_out(const struct ini_session *s)
{
	return s->is_logged_out;
}

bool ini_is_up(const struct ini_session *s)
{
	return ini_is_full_feature(s);
}
