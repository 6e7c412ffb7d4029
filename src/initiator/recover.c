/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * recover.c: connection recovery (RFC 7143 §7.1.4.3), at ErrorRecoveryLevel 2. When a
 * connection is lost and another one lives:
 *   1. Logout for recovery (§11.14) of its CID on a living connection. The target
 *      discards the commands of the lost connection that it has not acknowledged.
 *      These are sent again, with the same tag and CmdSN (§7.2.1).
 *   2. After Time2Wait TASK REASSIGN (§7.2.2) for each other command of the lost
 *      connection, in the order of their CmdSN, several at once: over a slow link
 *      Time2Retain could pass otherwise. If the target rejects one, it has no room for
 *      so many.
 * A request that gets no answer is repeated: at this level PDUs may be lost, too. Over iSER
 * none is lost, so its connection is given up instead, and recovered in the same way. If a
 * target refuses one of them, the session ends. A request for which the target has no room
 * waits.
 *
 * When the last connection is lost, the session ends, too; or it waits for a connection that
 * continues it (§6.3.6). If that connection has the CID of a lost one, its login was the
 * Logout for recovery of the lost one (§6.3.4).
 */
#include <stdlib.h>

#include "initiator/internal.h"

#define REPEATS_MAX 3 /* of a request without an answer */
#define HELD_TIME   (XTIME_S / 10)
/* the commands of a lost connection wait at most so long, whatever the target asks for */
#define TIME2WAIT_MAX (120 * XTIME_S)

enum logout_response { /* §11.15.1 */
	LOGOUT_DONE = 0,
	LOGOUT_NO_CID = 1,
};

#define TRACE(c, event, ...) \
 trace_emit((c)->session->cfg.trace, event, __VA_ARGS__)

static void send_logout(struct ini_conn *c);
static void reassign_tasks(struct ini_conn *c, struct ini_conn *to);
static int reassign(struct ini_reassign *x, struct ini_task *t,
		    struct ini_conn *to);

/* The way to the target failed, not the target. A Terminate of the peer counts as a failure
 * of the transport (RFC 7145 §10.1.2.2). */
static bool is_transport_error(int err)
{
	return err > -1000 || err == ERR_CLOSED || err == ERR_RESET ||
	       err == ERR_TIMEOUT || err == ERR_HEADER_DIGEST ||
	       err == ERR_DATA_DIGEST || err == ERR_TERMINATED;
}

bool ini_recover_is_last(const struct ini_conn *c)
{
	list_for_each(it, &c->session->conns) {
		struct ini_conn *o = list_entry(it, struct ini_conn, link);

		if (o != c && ini_conn_may_send(o))
			return false;
	}
	return true;
}

bool ini_recover_can(const struct ini_conn *c, int err)
{
	const struct ini_session *s = c->session;

	return s->params.error_recovery_level == 2 && !s->is_ending &&
	       ini_conn_is_up(c) && is_transport_error(err) &&
	       (s->cfg.continues || !ini_recover_is_last(c));
}

static void give_up(struct ini_conn *c, const char *what, unsigned response)
{
	TRACE(c, TRACE_CONN_TIMEOUT,
	      "CID %u cannot be recovered: the target answers %s with %u (RFC "
	      "7143 §7.1.4.3)",
	      c->offer.id.cid, what, response);
	ini_kill(c->session, ERR_RESET);
}

/* The step lasts so long from now on. */
static void begin_step(struct ini_conn *c, enum ini_recovery_step step,
		       xtime time)
{
	c->recovery.step = step;
	c->recovery.time = time;
	c->recovery.end = 0;
	ini_rearm(c->session);
}

/* A request of the recovery ended without an answer. Returns whether the request may
 * be sent again: its connection was lost, too, and another one lives; or it was not
 * repeated too often. */
static bool may_repeat(struct ini_conn *c, const struct ini_request *r,
		       unsigned *repeats)
{
	if (c->session->is_ending)
		return false;
	if (!ini_conn_may_send(r->conn)) {
		if (ini_conn_pick(c->session))
			return true;
		/* the session ends, or waits for a connection */
		begin_step(c, c->recovery.step, XTIME_NEVER);
		return false;
	}
	if ((*repeats)++ < REPEATS_MAX)
		return true;
	ini_kill(c->session, ERR_TIMEOUT);
	return false;
}

/* How long a request of the recovery may take. Over iSER it is not repeated. */
static xtime answer_time(const struct ini_session *s)
{
	xtime time = s->cfg.logout_time;

	if (ini_loses_pdus(s) || time == XTIME_NEVER)
		return time;
	return time * (REPEATS_MAX + 1);
}

/* ---- tasks ---- */

static void finish(struct ini_conn *c)
{
	TRACE(c, TRACE_LOGIN,
	      "the commands of the lost connection with CID %u go on",
	      c->offer.id.cid);
	ini_conn_go(c, ISCSI_S1_FREE); /* M4 */
	list_del(&c->link);
	free(c);
}

static bool is_acknowledged(const struct ini_task *t)
{
	return t->immediate ||
	       sn_lt(t->sent.cmdsn, t->session->window.expcmdsn);
}

static void send_again(struct ini_task *t, struct ini_conn *to)
{
	if (ini_task_again(t, to))
		ini_kill(t->session, ERR_RESET);
	else
		ini_abort_due(t);
}

/* The target does not have the task: it never came, or it is lost. Nothing of it was sent
 * on this connection, but the TASK REASSIGN may have made STags. */
static void take_missing(struct ini_task *t)
{
	(void)dm_deallocate_task_resources(t->sent.conn->dm, &t->dm);
	if (is_acknowledged(t))
		ini_cleared_released(t);
	else
		send_again(t, t->sent.conn);
}

/*
 * Returns whether the request is over. LIO answers 255 in each case: if it has moved the
 * task, and if the LUN of the request is not that of the task, although the field is reserved
 * (RFC 7143 §11.5.3). So where the LUN is not 0, the request is sent again with the LUN.
 */
static bool take_response(struct ini_reassign *x, struct ini_task *t,
			  uint8_t response)
{
	struct ini_conn *c = x->lost;

	if (response == ISCSI_TMF_REJECTED && t->lun && !x->names_lun) {
		x->names_lun = c->recovery.names_lun = true;
		if (reassign(x, t, t->sent.conn))
			ini_kill(c->session, ERR_RESET);
		return false;
	}
	switch (response) {
	case ISCSI_TMF_COMPLETE:
	case ISCSI_TMF_REJECTED: /* LIO has moved the task */
	case ISCSI_TMF_TASK_ALLEGIANT:
		c->session->has_moved = true;
		ini_abort_due(t);
		return true;
	case ISCSI_TMF_NO_TASK:
		take_missing(t);
		return true;
	default:
		give_up(c, "TASK REASSIGN", response);
		return true;
	}
}

/* Returns the task of x; NULL: the task has ended, or is of a lost connection again. */
static struct ini_task *task_of(const struct ini_reassign *x)
{
	struct ini_slot *slot = ini_slot_find(x->lost->session, x->itt);

	if (!slot || !slot->task || slot->task->sent.conn != x->request.conn ||
	    !ini_conn_may_send(x->request.conn))
		return NULL;
	return slot->task;
}

/* A request that got no answer is repeated. One that was rejected waits while others are in
 * progress, and no more than those are from now on. */
static void repeat(struct ini_reassign *x, struct ini_task *t, int err)
{
	struct ini_recovery *all = &x->lost->recovery;

	if (err != ERR_TIMEOUT && all->nsent) {
		all->limit = all->nsent;
		x->state = INI_REASSIGN_HELD;
	} else if (may_repeat(x->lost, &x->request, &x->repeats) &&
		   reassign(x, t, x->request.conn)) {
		ini_kill(x->lost->session, ERR_RESET);
	}
}

static void reassigned(struct ini_request *r, int err,
		       const struct dm_control *rsp)
{
	struct ini_reassign *x = container_of(r, struct ini_reassign, request);
	struct ini_conn *c = x->lost;
	struct ini_session *s = c->session;
	struct ini_task *t = task_of(x);

	x->state = INI_REASSIGN_FREE;
	c->recovery.nsent--;
	if (s->is_ending)
		return;
	if (!err)
		c->recovery.repeats = 0;
	if (err && t)
		repeat(x, t, err);
	else if (err && !ini_conn_pick(s)) /* the session ends, or waits */
		begin_step(c, c->recovery.step, XTIME_NEVER);
	else if (err || !t || take_response(x, t, rsp->pdu.tmf_response))
		if (!s->is_ending)
			reassign_tasks(c, NULL);
}

/* ---- no room ---- */

/* An answer that made no room counts as none: the target lies. */
static void room_made(struct ini_request *r, int err,
		      const struct dm_control *rsp)
{
	struct ini_conn *c = container_of(r, struct ini_conn, recovery.request);

	(void)err;
	(void)rsp;
	if (may_repeat(c, r, &c->recovery.repeats))
		reassign_tasks(c, ini_conn_may_send(r->conn) ? r->conn : NULL);
}

/* The target takes no further immediate request on `to`, and a TASK REASSIGN is always
 * immediate (RFC 7143 §11.5.1). The answer to a request with a CmdSN makes room (RFC 7145
 * §8.1.1.3): a ping, which has one in this case. While the command window is closed, too,
 * the recovery tries again later. */
/* [RFC 7145: 8.1.1.3 #3] */
static int make_room(struct ini_conn *c, struct ini_conn *to)
{
	int err;

	c->recovery.request.done = room_made;
	err = ini_conn_ping(to, &c->recovery.request, NULL, 0, XTIME_NEVER);
	if (err != ERR_BUSY)
		return err;
	begin_step(c, INI_RECOVER_WAIT, HELD_TIME);
	return 0;
}

/* The allegiance changes before the request: the target sends nothing of the task
 * on the new connection before its response (§11.6). Without room x is free afterwards. */
/* [RFC 7145: 3.3 #5, 7.3.3 #9] */
/* [RFC 7143: 7.1.4.3 #2, 11.5.6 #3] */
static int reassign(struct ini_reassign *x, struct ini_task *t,
		    struct ini_conn *to)
{
	struct dm_control ctl = { .pdu = { .op = ISCSI_TMF_REQUEST } };
	struct ini_conn *c = x->lost;
	int err;

	ctl.pdu.tmf.function = ISCSI_TMF_TASK_REASSIGN;
	ctl.pdu.tmf.rtt = t->dm.itt;
	ctl.pdu.tmf.ref_cmdsn = t->sent.cmdsn;
	if (x->names_lun)
		ctl.pdu.lun = t->lun;
	/* §7.2.2: acknowledges R2Ts; the target asks again for what has not
	 * arrived of their data. Data-Ins are not acknowledged. 0 over RDMA. */
	ctl.pdu.tmf.exp_datasn = t->write ? t->dm.r2ts : 0;
	ctl.reassigned = &t->dm;
	begin_step(c, INI_RECOVER_TASKS, answer_time(c->session));
	x->itt = t->dm.itt;
	x->request.function = ISCSI_TMF_TASK_REASSIGN;
	x->request.done = reassigned;
	ini_task_move(t, to);
	err = ini_conn_request(to, &x->request, &ctl, XTIME_NEVER);
	if (!err) {
		x->state = INI_REASSIGN_SENT;
		c->recovery.nsent++;
	}
	if (err != ERR_BUSY)
		return err;
	x->state = INI_REASSIGN_FREE;
	ini_task_move(t, c); /* it stays with the lost connection meanwhile */
	/* the answers to those in progress make room, too */
	return c->recovery.nsent ? 0 : make_room(c, to);
}

/* ---- several at once ---- */

static struct ini_reassign *find_reassign(struct ini_conn *c, unsigned state)
{
	for (unsigned i = 0; i < INI_REASSIGNS; i++)
		if (c->recovery.reassigns[i].state == state)
			return &c->recovery.reassigns[i];
	return NULL;
}

/* Returns what is to be sent next, and its task; NULL: nothing is left. */
static struct ini_reassign *next_reassign(struct ini_conn *c,
					  struct ini_task **t)
{
	struct ini_reassign *x;

	while ((x = find_reassign(c, INI_REASSIGN_HELD))) {
		x->state = INI_REASSIGN_FREE;
		*t = task_of(x);
		if (*t)
			return x;
	}
	*t = ini_first_task(c);
	if (!*t)
		return NULL;
	x = find_reassign(c, INI_REASSIGN_FREE);
	x->lost = c;
	x->repeats = 0;
	x->names_lun = c->recovery.names_lun;
	x->request.conn = NULL;
	return x;
}

/* Sends as many as may be in progress. to: NULL: to the connection with the fewest
 * commands. c is gone once nothing is left. */
static void reassign_tasks(struct ini_conn *c, struct ini_conn *to)
{
	struct ini_recovery *all = &c->recovery;
	struct ini_reassign *x;
	struct ini_task *t;

	while (all->nsent < all->limit && (x = next_reassign(c, &t))) {
		struct ini_conn *conn = x->request.conn ? x->request.conn : to;
		unsigned nsent = all->nsent;

		if (!conn)
			conn = ini_conn_pick(c->session);
		if (!conn) { /* the session ends, or waits for a connection */
			begin_step(c, INI_RECOVER_TASKS, XTIME_NEVER);
			return;
		}
		if (reassign(x, t, conn)) {
			ini_kill(c->session, ERR_RESET);
			return;
		}
		if (all->nsent == nsent) /* no room */
			return;
	}
	if (!all->nsent)
		finish(c);
}

static void reassign_begin(struct ini_conn *c)
{
	c->recovery.limit = INI_REASSIGNS;
	reassign_tasks(c, NULL);
}

/* ---- the connection ---- */

static struct ini_task *first_unacknowledged(const struct ini_conn *c)
{
	list_for_each(it, &c->session->sent) {
		struct ini_task *t = list_entry(it, struct ini_task, link);

		if (t->sent.conn == c && !is_acknowledged(t))
			return t;
	}
	return NULL;
}

static void send_unacknowledged(struct ini_conn *c)
{
	struct ini_session *s = c->session;
	struct ini_conn *to;
	struct ini_task *t;

	while ((t = first_unacknowledged(c)) && !s->is_ending) {
		to = ini_conn_pick(s);
		if (to)
			send_again(t, to);
		else
			ini_kill(s, ERR_RESET);
	}
}

/* [RFC 7143: 7.2.2 #1] */
static void logged_out(struct ini_request *r, int err,
		       const struct dm_control *rsp)
{
	struct ini_conn *c = container_of(r, struct ini_conn, recovery.request);
	struct ini_session *s = c->session;
	bool is_done;

	if (err) {
		if (may_repeat(c, r, &c->recovery.repeats))
			send_logout(c);
		return;
	}
	/* the answer to a repeated Logout, after the end of the first one */
	is_done = rsp->pdu.logout.response == LOGOUT_DONE ||
		  (rsp->pdu.logout.response == LOGOUT_NO_CID &&
		   c->recovery.repeats > 0);
	if (!is_done) {
		give_up(c, "Logout", rsp->pdu.logout.response);
		return;
	}
	send_unacknowledged(c);
	c->recovery.repeats = 0;
	begin_step(c, INI_RECOVER_WAIT,
		   MIN(rsp->pdu.logout.time2wait * XTIME_S, TIME2WAIT_MAX));
	if (!rsp->pdu.logout.time2wait && !s->is_ending)
		reassign_begin(c);
}

/* There is no room either if the command window is closed. */
/* [RFC 7143: 11.14 #6] */
static void send_logout(struct ini_conn *c)
{
	struct ini_session *s = c->session;
	struct dm_control ctl = { .pdu = { .op = ISCSI_LOGOUT_REQUEST } };
	struct ini_conn *to = ini_conn_pick(s);
	int err;

	if (!to) { /* the session ends, or waits for a connection */
		begin_step(c, INI_RECOVER_LOGOUT, XTIME_NEVER);
		return;
	}
	begin_step(c, INI_RECOVER_LOGOUT, answer_time(s));
	ctl.pdu.logout.reason = ISCSI_LOGOUT_RECOVERY;
	ctl.pdu.logout.cid = c->offer.id.cid;
	c->recovery.request.done = logged_out;
	err = ini_conn_request(to, &c->recovery.request, &ctl, XTIME_NEVER);
	if (err == ERR_BUSY)
		begin_step(c, INI_RECOVER_HELD, HELD_TIME);
	else if (err)
		ini_kill(s, ERR_RESET);
}

static struct ini_task *first_clearing(const struct ini_conn *c)
{
	list_for_each(it, &c->session->sent) {
		struct ini_task *t = list_entry(it, struct ini_task, link);

		if (t->sent.conn == c && t->check.clearing)
			return t;
	}
	return NULL;
}

static void move_to_lost(struct ini_conn *c)
{
	struct ini_task *t;

	c->dm = NULL;
	list_del(&c->link);
	list_push_back(&c->session->lost, &c->link);
	/* the datamover has released the tasks that it was asked to release */
	while ((t = first_clearing(c)))
		ini_cleared_released(t);
}

/* [RFC 7143: 7.1.4.3 #2] */
void ini_recover_begin(struct ini_conn *c)
{
	TRACE(c, TRACE_CONN_TIMEOUT,
	      "CID %u is lost with %u commands in progress; the session goes "
	      "on (RFC 7143 §7.1.4.3)",
	      c->offer.id.cid, c->in_flight);
	move_to_lost(c);
	send_logout(c);
}

/* ---- a session without a connection (§6.3.6) ---- */

void ini_recover_wait(struct ini_conn *c)
{
	struct ini_session *s = c->session;

	TRACE(c, TRACE_CONN_TIMEOUT,
	      "CID %u, the last connection, is lost with %u commands in "
	      "progress; the session waits to be continued (RFC 7143 §6.3.6)",
	      c->offer.id.cid, c->in_flight);
	move_to_lost(c);
	begin_step(c, INI_RECOVER_LOGOUT, XTIME_NEVER);
	/* their logins began when the session had not failed */
	list_for_each(it, &s->conns)
		dm_connection_terminate(
			list_entry(it, struct ini_conn, link)->dm,
			DM_TERMINATE_NOW, ERR_CLOSED);
}

/* The login of `by` is the Logout for recovery of a connection with the same CID. A
 * connection that was logged out before needs none; after INI_RECOVER_WAIT its own
 * deadline goes on. */
/* [RFC 7143: 6.3.4 #3] */
static void continue_conn(struct ini_conn *c, const struct ini_conn *by)
{
	bool is_reinstated = c->offer.id.cid == by->offer.id.cid;
	bool is_logged_out = c->recovery.step == INI_RECOVER_WAIT ||
			     c->recovery.step == INI_RECOVER_TASKS;

	c->recovery.repeats = 0;
	if (!is_logged_out && !is_reinstated) {
		send_logout(c);
	} else if (c->recovery.step != INI_RECOVER_WAIT || is_reinstated) {
		send_unacknowledged(c);
		reassign_begin(c);
	}
}

void ini_recover_continue(struct ini_conn *by)
{
	struct ini_session *s = by->session;

	TRACE(by, TRACE_LOGIN, "CID %u continues the session (RFC 7143 §6.3.6)",
	      by->offer.id.cid);
	/* a connection without commands ends, and leaves the list */
	list_for_each_safe(it, &s->lost) {
		if (s->is_ending)
			return;
		continue_conn(list_entry(it, struct ini_conn, link), by);
	}
	if (ini_is_full_feature(s))
		ini_pump(s);
}

/* ---- time ---- */

xtime ini_recover_deadline(const struct ini_session *s)
{
	xtime at = XTIME_NEVER;

	list_for_each(it, &s->lost) {
		const struct ini_conn *c =
			list_entry(it, struct ini_conn, link);

		at = MIN(at, c->recovery.end);
	}
	return at;
}

static struct ini_conn *first_due(const struct ini_session *s, xtime now)
{
	list_for_each(it, &s->lost) {
		struct ini_conn *c = list_entry(it, struct ini_conn, link);
		struct ini_recovery *r = &c->recovery;

		if (r->end == 0)
			r->end = r->time == XTIME_NEVER ? XTIME_NEVER
							: now + r->time;
		else if (now >= r->end)
			return c;
	}
	return NULL;
}

static void expire_request(struct ini_session *s, struct ini_request *r)
{
	if (!ini_loses_pdus(s)) /* the connection does not work */
		dm_connection_terminate(r->conn->dm, DM_TERMINATE_NOW,
					ERR_TIMEOUT);
	r->conn->abandoned++;
	ini_request_end(s, r, ERR_TIMEOUT, NULL);
}

/* Those that are repeated here have another deadline. c lasts as long as a
 * TASK REASSIGN is in progress. Over iSER those of the connection end with it. */
static void expire_reassigns(struct ini_conn *c)
{
	struct ini_session *s = c->session;
	struct ini_reassign *due[INI_REASSIGNS];
	unsigned n = 0;

	for (unsigned i = 0; i < INI_REASSIGNS; i++)
		if (c->recovery.reassigns[i].state == INI_REASSIGN_SENT)
			due[n++] = &c->recovery.reassigns[i];
	if (!ini_loses_pdus(s)) {
		begin_step(c, INI_RECOVER_TASKS, answer_time(s));
		n = 1;
	}
	for (unsigned i = 0; i < n && !s->is_ending; i++)
		expire_request(s, &due[i]->request);
}

static void end_step(struct ini_conn *c)
{
	struct ini_request *r = &c->recovery.request;

	if (c->recovery.step == INI_RECOVER_WAIT) {
		reassign_begin(c);
		return;
	}
	if (c->recovery.step == INI_RECOVER_HELD) {
		send_logout(c);
		return;
	}
	if (c->recovery.step == INI_RECOVER_TASKS && c->recovery.nsent)
		expire_reassigns(c);
	else
		expire_request(c->session, r);
}

void ini_recover_expire(struct ini_session *s, xtime now)
{
	struct ini_conn *c;

	while (!s->is_ending && (c = first_due(s, now)))
		end_step(c);
}
