/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * recover.c: connections that are lost, or logged out for recovery, at
 * ErrorRecoveryLevel 2 (RFC 7143 §7.1.4.3). The tgt_conn of such a connection stays,
 * without a datamover: its tasks keep it as the connection of their allegiance, and go
 * on in the device as far as they need no connection. After an explicit or implicit
 * Logout for recovery (logout.c, join.c) TASK REASSIGN moves them (reassign.c).
 *
 * A session without any connection waits, too (session continuation, §6.3.6).
 *
 * A lost connection is freed, and its tasks end, Time2Wait and Time2Retain after its
 * loss or its Logout (§11.14.5 b and c). It ends earlier
 *   - while other sessions wait for memory, after tgt_session.data_time;
 *   - if its session has more lost connections than MaxConnections and LOST_MORE;
 *   - if more sessions than WAITING_MAX wait on this worker, or WAITING_OF_ONE from one
 *     address. Those that began to wait first end first, and their initiators have
 *     session recovery left.
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "target/internal.h"

/* An initiator may lose all connections again before it has reassigned the tasks of the
 * first loss. */
#define LOST_MORE      8u
#define WAITING_MAX    64u
#define WAITING_OF_ONE 8u

static struct tgt_conn *lost_at(struct list *link)
{
	return list_entry(link, struct tgt_conn, link);
}

static bool has_task(const struct tgt_conn *c)
{
	list_for_each(it, &c->session->tasks.active)
		if (list_entry(it, struct tgt_task, link)->conn == c)
			return true;
	return false;
}

struct tgt_conn *tgt_recover_find(const struct tgt_session *s, uint16_t cid)
{
	struct tgt_conn *found = NULL;

	list_for_each(it, &s->conns.lost) {
		struct tgt_conn *c =
			list_entry(it, struct tgt_conn, session_link);

		if (c->cid == cid && !c->end.final)
			found = c;
	}
	return found;
}

/* ---- the end of waiting ---- */

void tgt_recover_end_worker(struct tgt_worker *w)
{
	list_for_each(it, &w->lost) {
		lost_at(it)->session->conns.dropped = true;
		tgt_recover_end(lost_at(it));
	}
}

void tgt_recover_end_if_deserted(struct tgt_session *s)
{
	if (!tgt_session_is_deserted(s))
		return;
	tgt_tmf_forget(s);
	tgt_window_empty(s);
	tgt_session_close(s);
}

/* c and its session may be free afterwards. */
static void free_lost(struct tgt_conn *c)
{
	struct tgt_session *s = c->session;
	const struct tgt_scope scope = {
		.session = s,
		.of_conn = true,
		.conn = c,
	};

	if (has_task(c))
		conn_trace(c, TRACE_CONN_TIMEOUT,
			   "connection %u of session %u was not recovered; its "
			   "commands end (RFC 7143 §11.14.5)",
			   c->cid, s->tsih);
	tgt_abort_cancel(&c->logout.abort);
	tgt_logout_answer(&c->logout, TGT_LOGOUT_NO_CID, 0);
	if (c->state == ISCSI_S8_CLEANUP_WAIT)
		tgt_conn_go(c, ISCSI_S1_FREE); /* M1 */
	tgt_abort_iscsi_event(s, &scope);
	list_del(&c->link);
	list_del(&c->session_link);
	if (tgt_session_is_deserted(s))
		tgt_tmf_forget(s);
	tgt_abort_orphans(s, c, false);
	free(c);
	tgt_fence_acknowledged(s);
	tgt_recover_end_if_deserted(s);
}

/* ---- shares ---- */

/* One more connection of the session is lost. If too many are, one is given up: one that
 * was logged out and has no task, else the one that was lost first. */
static void limit_lost(struct tgt_session *s)
{
	struct tgt_conn *first = NULL;
	unsigned n = 0;

	list_for_each(it, &s->conns.lost) {
		struct tgt_conn *c =
			list_entry(it, struct tgt_conn, session_link);

		if (c->end.final)
			continue;
		n++;
		if (!first || (c->end.logged_out && !has_task(c) &&
			       (!first->end.logged_out || has_task(first))))
			first = c;
	}
	if (n > s->params.max_connections + LOST_MORE)
		tgt_recover_end(first);
}

/* c is the first lost connection of a session that waits. */
static bool is_of_waiting(const struct tgt_conn *c)
{
	const struct tgt_session *s = c->session;

	return !c->end.final && list_empty(&s->conns.list) &&
	       s->conns.lost.next == &c->session_link;
}

static bool is_of_address(const struct tgt_conn *c, const struct tgt_conn *as)
{
	return !memcmp(c->info.address, as->info.address,
		       sizeof(c->info.address));
}

/* Ends the session that has waited longest, if more than `most` wait; of: those of
 * its address only, or NULL. */
static void limit_waiting(struct tgt_worker *w, const struct tgt_conn *of,
			  unsigned most)
{
	struct tgt_conn *first = NULL;
	unsigned n = 0;

	list_for_each(it, &w->lost) {
		struct tgt_conn *c = lost_at(it);

		if (!is_of_waiting(c) || (of && !is_of_address(c, of)))
			continue;
		n++;
		if (!first)
			first = c;
	}
	if (n <= most)
		return;
	conn_trace(first, TRACE_CONN_LIMIT,
		   "session %u ends: too many sessions wait for recovery",
		   first->session->tsih);
	first->session->conns.dropped = true;
	tgt_recover_end_all(first->session);
}

/* ---- begin ---- */

bool tgt_recover_wants(const struct tgt_conn *c)
{
	const struct tgt_session *s = c->session;
	bool asked_to_leave =
		c->end.leaving || c->state == ISCSI_S7_LOGOUT_REQUESTED;

	return tgt_session_recovers(s) && s->state == ISCSI_Q3_LOGGED_IN &&
	       !s->logout.begun && !c->login && !c->end.final &&
	       !c->worker->draining && !asked_to_leave &&
	       (!c->end.parted || c->end.recovers);
}

/* §11.9.1: reports the loss on a connection that is left. */
static void announce(const struct tgt_conn *c)
{
	const struct tgt_session *s = c->session;
	struct tgt_conn *other = tgt_session_conn(s);
	const struct iscsi_async lost = {
		.event = ISCSI_ASYNC_DROP_CONNECTION,
		.param1 = c->cid,
		.param2 = s->params.default_time2wait,
		.param3 = s->params.default_time2retain,
	};

	if (other && other->state == ISCSI_S5_LOGGED_IN)
		tgt_async(other, &lost);
}

/* A connection that was held had not received its unsolicited data: an R2T asks for
 * them. */
static void forget_datamover(struct tgt_conn *c)
{
	if (c->held)
		c->held->dm.held = false;
	c->held = NULL;
	c->unverified.pending = false;
	c->ping.pending = false;
	c->dm = NULL;
	c->info.owner = NULL;
}

/* What the tasks of c have to send again later does not change from now on. */
static void fix_data(const struct tgt_conn *c)
{
	list_for_each(it, &c->session->tasks.active) {
		struct tgt_task *t = list_entry(it, struct tgt_task, link);

		if (t->conn == c && tgt_task_is_begun(t))
			(void)dev_task_fix(&t->dev); /* else: reassign.c */
	}
}

/* [RFC 7143: 7.14 #3, 11.14 #4] */
void tgt_recover_begin(struct tgt_conn *c)
{
	struct tgt_session *s = c->session;

	conn_trace(c, TRACE_LOGOUT,
		   "connection %u of session %u is lost; its commands wait for "
		   "another one (RFC 7143 §7.1.4.3)",
		   c->cid, s->tsih);
	forget_datamover(c);
	fix_data(c);
	tgt_window_discard_conn(s, c);
	list_push_back(&c->worker->lost, &c->link);
	list_push_back(&s->conns.lost, &c->session_link);
	c->deadline = 0; /* the next tgt_recover_expire sets it */
	tgt_rearm(c->worker);
	if (!c->end.recovers)
		announce(c);
	limit_lost(s);
	if (!list_empty(&s->conns.list))
		return;
	limit_waiting(c->worker, NULL, WAITING_MAX);
	limit_waiting(c->worker, c, WAITING_OF_ONE);
}

void tgt_recover_logged_out(struct tgt_conn *c)
{
	c->end.logged_out = true;
	if (c->state == ISCSI_S8_CLEANUP_WAIT)
		tgt_conn_go(c, ISCSI_S1_FREE); /* M4 */
	c->deadline = 0;
	tgt_rearm(c->worker);
}

/* ---- time ---- */

static void set_deadlines(struct tgt_conn *c, xtime now)
{
	const struct tgt_session *s = c->session;
	const struct iscsi_params *p = &s->params;
	xtime time = (xtime)p->default_time2wait + p->default_time2retain;

	c->deadline = now + time * XTIME_S;
	c->stall.at =
		s->data_time == XTIME_NEVER ? XTIME_NEVER : now + s->data_time;
}

/* True: nothing waits for it any more. */
static bool is_over(struct tgt_conn *c, xtime now)
{
	if (c->end.final)
		return true;
	if (c->deadline == 0)
		set_deadlines(c, now);
	if (c->stall.at <= now) {
		if (dev_nexus_in_the_way(c->session->nexus))
			return true;
		c->stall.at = now + c->session->data_time;
	}
	return c->deadline <= now;
}

xtime tgt_recover_deadline(const struct tgt_worker *w)
{
	xtime at = XTIME_NEVER;

	list_for_each(it, &w->lost)
		at = MIN(at, MIN(lost_at(it)->deadline, lost_at(it)->stall.at));
	return at;
}

static struct tgt_conn *first_over(struct tgt_worker *w, xtime now)
{
	struct tgt_conn *first = NULL;

	list_for_each(it, &w->lost)
		if (is_over(lost_at(it), now) && !first)
			first = lost_at(it);
	return first;
}

void tgt_recover_expire(struct tgt_worker *w, xtime now)
{
	struct tgt_conn *c;

	while ((c = first_over(w, now)))
		free_lost(c);
}
