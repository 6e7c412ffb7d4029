/* SPDX-License-Identifier: BSD-2-Clause */
/* clock.c: the deadlines of a session and its connections, and its pings. */
#include "initiator/internal.h"

/* ---- pings ---- */

/* When the next ping is due. A target that asked for a logout is pinged too: it may
 * still stop answering while commands are in progress. */
static xtime ping_at(const struct ini_conn *c)
{
	xtime idle = c->session->cfg.idle_time;

	if (!ini_conn_is_up(c) || c->session->is_ending || c->pinging ||
	    idle == XTIME_NEVER)
		return XTIME_NEVER;
	return c->heard + idle;
}

/* At ErrorRecoveryLevel 1 a ping, or its answer, may be lost while the connection
 * lives: it is sent PINGS times in ping_time. */
#define PINGS 4

static xtime ping_again_at(const struct ini_conn *c)
{
	xtime time = c->session->cfg.ping_time;
	unsigned left = PINGS - c->pings;

	if (!c->pinging || !ini_loses_pdus(c->session) || !left)
		return XTIME_NEVER;
	return c->ping_deadline - time / PINGS * left;
}

static xtime conn_deadline(const struct ini_conn *c)
{
	xtime ping = MIN(ping_at(c), ping_again_at(c));

	ping = MIN(ping, ini_leave_deadline(c));
	return MIN(c->login_deadline, MIN(c->ping_deadline, ping));
}

static void ping_answered(struct ini_request *r, int err,
			  const struct dm_control *rsp)
{
	struct ini_conn *c = container_of(r, struct ini_conn, ping);

	(void)rsp;
	(void)err;
	c->pinging = false;
	c->ping_deadline = XTIME_NEVER;
}

/* The answer to the one before may still come. */
static void ping_again(struct ini_conn *c)
{
	struct ini_session *s = c->session;
	xtime deadline = c->ping_deadline;

	c->abandoned++;
	ini_request_end(s, &c->ping, ERR_TIMEOUT, NULL);
	if (ini_conn_ping(c, &c->ping, NULL, 0, XTIME_NEVER))
		return;
	c->pinging = true;
	c->pings++;
	c->ping_deadline = deadline;
}

static void expire_ping(struct ini_conn *c, xtime now)
{
	if (now >= c->ping_deadline) {
		trace_emit(c->session->cfg.trace, TRACE_CONN_TIMEOUT,
			   "the target does not answer a NOP-Out");
		if (ini_recover_can(c, ERR_TIMEOUT))
			dm_connection_terminate(c->dm, DM_TERMINATE_NOW,
						ERR_TIMEOUT);
		else
			ini_kill(c->session, ERR_TIMEOUT);
		c->ping_deadline = XTIME_NEVER;
		return;
	}
	if (now >= ping_again_at(c)) {
		ping_again(c);
		return;
	}
	if (now < ping_at(c))
		return;
	c->ping.done = ping_answered;
	if (ini_conn_ping(c, &c->ping, NULL, 0, XTIME_NEVER))
		return;
	c->pinging = true;
	c->pings = 1;
	c->ping_deadline = now + c->session->cfg.ping_time;
}

static void expire_conn(struct ini_conn *c, xtime now)
{
	if (now >= c->login_deadline)
		ini_conn_fail_login(c, ERR_TIMEOUT);
	else
		expire_ping(c, now);
	ini_leave_expire(c, now);
}

/* ---- a session ---- */

xtime ini_deadline(const struct ini_session *s)
{
	xtime at = s->logout_deadline;

	if (!ini_is_waiting(s))
		at = MIN(at, MIN(s->stall.deadline, ini_recover_deadline(s)));

	list_for_each(it, &s->conns) {
		xtime conn =
			conn_deadline(list_entry(it, struct ini_conn, link));

		at = MIN(at, conn);
	}
	/* deadlines of requests are checked twice a second: they are few, and
	 * need no precision */
	if (s->has_deadlines)
		at = MIN(at, s->now + XTIME_S / 2);
	return at;
}

void ini_expire(struct ini_session *s, xtime now)
{
	s->now = now;
	if (now >= s->logout_deadline) {
		s->logout_deadline = XTIME_NEVER;
		ini_kill(s, ERR_TIMEOUT);
		return;
	}
	/* a connection that expires ends later: the list stays as it is */
	list_for_each_safe(it, &s->conns)
		expire_conn(list_entry(it, struct ini_conn, link), now);
	if (!ini_is_waiting(s)) {
		ini_recover_expire(s, now);
		ini_expire_window(s, now);
	}
	ini_cleared_check(s, now);
	if (s->has_deadlines) {
		ini_expire_tasks(s, now);
		ini_expire_requests(s, now);
	}
}
