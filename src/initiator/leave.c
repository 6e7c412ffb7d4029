/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * leave.c: ends one connection of a session that goes on (RFC 7143 §11.14, reason 1).
 * The target would end the commands of that connection. So the connection gets no new
 * commands, and its Logout follows the end of those that it has. The Logout goes over
 * the connection itself, whose last PDU is the answer.
 */
#include "initiator/internal.h"

static void end_leave(struct ini_conn *c, int err)
{
	struct ini_request *r = c->leave.asker;

	c->leave.asker = NULL;
	if (r)
		r->done(r, err, NULL);
}

void ini_leave_end(struct ini_conn *c, int err)
{
	end_leave(c, c->leave.is_answered ? c->leave.err
		     : err		  ? err
					  : ERR_CLOSED);
}

static void logout_answered(struct ini_request *r, int err,
			    const struct dm_control *rsp)
{
	struct ini_conn *c = container_of(r, struct ini_conn, leave.logout);

	c->leave.is_answered = !err;
	if (!err && rsp->pdu.logout.response)
		c->leave.err = ERR_UNSUPPORTED;
	/* else the connection is ending already */
	if (c->dm->state < DM_TERMINATING)
		dm_connection_terminate(c->dm, DM_TERMINATE_NOW, err);
}

static bool has_requests(const struct ini_conn *c)
{
	list_for_each(it, &c->session->requests)
		if (list_entry(it, struct ini_request, link)->conn == c)
			return true;
	return false;
}

/* [RFC 7143: 11.14 #5] */
void ini_leave_check(struct ini_conn *c)
{
	struct dm_control ctl = { .pdu = { .op = ISCSI_LOGOUT_REQUEST } };
	struct ini_session *s = c->session;

	if (!c->leave.asker || c->in_flight || !ini_conn_may_send(c) ||
	    has_requests(c))
		return;
	ctl.pdu.logout.reason = ISCSI_LOGOUT_CONNECTION;
	ctl.pdu.logout.cid = c->offer.id.cid;
	c->leave.logout.done = logout_answered;
	if (ini_conn_request(c, &c->leave.logout, &ctl,
			     s->now + s->cfg.logout_time))
		return; /* ini_leave_expire tries again */
	c->leave.deadline = XTIME_NEVER;
	ini_conn_go(c, ISCSI_S6_IN_LOGOUT); /* T9, T10 */
}

static struct ini_conn *find_conn(const struct ini_session *s, uint16_t cid)
{
	list_for_each(it, &s->conns) {
		struct ini_conn *c = list_entry(it, struct ini_conn, link);

		if (c->offer.id.cid == cid && ini_conn_may_send(c))
			return c;
	}
	return NULL;
}

/* Returns whether a connection stays when c has left. */
static bool has_other(const struct ini_conn *c)
{
	list_for_each(it, &c->session->conns) {
		const struct ini_conn *o =
			list_entry(it, struct ini_conn, link);

		if (o != c && ini_conn_may_send(o) && !o->leave.asker)
			return true;
	}
	return false;
}

static int begin_leave(struct ini_session *s, uint16_t cid,
		       struct ini_request *r, xtime deadline)
{
	struct ini_conn *c = find_conn(s, cid);

	if (!ini_is_full_feature(s))
		return ERR_CLOSED;
	if (!c)
		return ERR_NOT_FOUND;
	if (c->leave.asker)
		return ERR_BUSY;
	if (!has_other(c))
		return ERR_UNSUPPORTED;
	c->leave.asker = r;
	c->leave.deadline = deadline;
	c->leave.is_answered = false;
	c->leave.err = 0;
	ini_rearm(s);
	return 0;
}

int ini_conn_leave(struct ini_session *s, uint16_t cid, struct ini_request *r,
		   xtime deadline)
{
	int err = begin_leave(s, cid, r, deadline);

	if (!err)
		ini_leave_check(find_conn(s, cid));
	return err;
}

static void on_asked_end(struct ini_request *r, int err,
			 const struct dm_control *rsp)
{
	(void)r;
	(void)err;
	(void)rsp;
}

/* [RFC 7143: 11.9.1 #2] */
void ini_leave_asked(struct ini_conn *c, unsigned seconds)
{
	struct ini_session *s = c->session;
	xtime time = MAX(seconds * XTIME_S, s->cfg.logout_time);

	c->leave.asked.done = on_asked_end;
	/* an error: it is leaving already, or the last one */
	(void)begin_leave(s, c->offer.id.cid, &c->leave.asked, s->now + time);
}

/* ---- time ---- */

xtime ini_leave_deadline(const struct ini_conn *c)
{
	return c->leave.asker ? c->leave.deadline : XTIME_NEVER;
}

void ini_leave_expire(struct ini_conn *c, xtime now)
{
	if (!c->leave.asker)
		return;
	ini_leave_check(c);
	/* its commands last too long: it stays */
	if (now >= c->leave.deadline)
		end_leave(c, ERR_TIMEOUT);
}
