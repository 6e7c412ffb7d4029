/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * abort.c: aborting of tasks, for task management, logout and lost connections
 * alike. A task ends when neither the datamover nor the device touches its
 * memory any more. A response to the abort waits for that, so that no response
 * of an aborted task can follow it (§11.5.1).
 */
#include "base/err.h"
#include "target/task_state.h"

/* §7.14: an immediate command is not recovered. §11.14: nor is one that ExpCmdSN does
 * not acknowledge; the initiator sends it again. */
static bool is_unrecoverable(const struct tgt_task *t)
{
	return tgt_task_is_aborting(t) || t->immediate ||
	       !sn_lt(t->cmdsn, t->session->window.expcmdsn);
}

/* [RFC 7143: 4.2.2.1 #4] */
static bool is_in_scope(const struct tgt_scope *sc, const struct tgt_task *t)
{
	const struct tgt_session *s = t->session;

	if (sc->session && sc->session != s)
		return false;
	if (sc->of_conn && sc->conn != t->conn)
		return false;
	if (sc->lu && sc->lu != t->lu)
		return false;
	/* a task that the device has not begun ends soon by itself */
	if (sc->lost && (!tgt_task_is_begun(t) || !tgt_session_loses(s, t->lu)))
		return false;
	if (sc->units && t->lu && !tgt_units_have(sc->units, t->unit))
		return false;
	if (sc->units && !t->lu && s != sc->issuer)
		return false;
	if (sc->one_task && sc->itt != t->dm.itt)
		return false;
	if (sc->aca && t->dev.attr != DEV_ATTR_ACA)
		return false;
	if (sc->except == &t->dev)
		return false;
	if (sc->unrecoverable && !is_unrecoverable(t))
		return false;
	/* an immediate command has the CmdSN of the next numbered one */
	if (sc->before && (sc->session || sc->wait_session == s))
		return t->immediate ? sn_le(t->cmdsn, sc->cmdsn)
				    : sn_lt(t->cmdsn, sc->cmdsn);
	return true;
}

/* ---- the tasks of a scope ---- */

/* [RFC 5047: 8.9 #2] */
static bool may_abort(const struct tgt_task *t)
{
	return t->state != TGT_TASK_RESPONSE && !tgt_task_is_aborting(t);
}

static bool is_aborting_data(const struct tgt_task *t)
{
	return t->state == TGT_TASK_ABORT_DATA;
}

/* The first task of the session that is in scope and passes `is`, or NULL. */
static struct tgt_task *session_task(const struct tgt_session *s,
				     const struct tgt_scope *sc,
				     bool (*is)(const struct tgt_task *t))
{
	list_for_each(it, &s->tasks.active) {
		struct tgt_task *t = list_entry(it, struct tgt_task, link);

		if (is(t) && is_in_scope(sc, t))
			return t;
	}
	return NULL;
}

static struct tgt_task *scope_task(const struct tgt_worker *w,
				   const struct tgt_scope *sc,
				   bool (*is)(const struct tgt_task *t))
{
	struct tgt_task *t;

	if (sc->session)
		return session_task(sc->session, sc, is);
	list_for_each(it, &w->sessions) {
		t = session_task(list_entry(it, struct tgt_session, link), sc,
				 is);
		if (t)
			return t;
	}
	return NULL;
}

void tgt_abort_attention(struct tgt_session *s, const struct tgt_scope *scope)
{
	/* the unit of a task exists */
	if (session_task(s, scope, may_abort) && !dev_lu_tas(scope->lu))
		dev_nexus_commands_cleared(s->nexus, scope->lu);
}

/* No task before t on the list has its connection and unit. */
static bool is_first_of_unit(const struct tgt_task *t,
			     const struct tgt_scope *scope)
{
	list_for_each(it, &t->session->tasks.active) {
		const struct tgt_task *o =
			list_entry(it, struct tgt_task, link);

		if (o == t)
			return true;
		if (o->conn == t->conn && o->lu == t->lu && may_abort(o) &&
		    is_in_scope(scope, o))
			return false;
	}
	return true;
}

/* [RFC 7143: 4.2.3.4 #9-10, 4.2.3.5 #1] */
static void tell_session(const struct tgt_session *s,
			 const struct tgt_scope *scope,
			 const struct tgt_conn *by)
{
	list_for_each(it, &s->tasks.active) {
		const struct tgt_task *t =
			list_entry(it, struct tgt_task, link);

		if (t->lu && t->conn != by && tgt_conn_open(t->conn) &&
		    t->conn->state != ISCSI_S6_IN_LOGOUT && may_abort(t) &&
		    is_in_scope(scope, t) && is_first_of_unit(t, scope))
			tgt_async_termination(t->conn, t->dm.lun);
	}
}

/* [RFC 7143: 4.2.3.5 #2, 11.9.1 #6] */
void tgt_abort_tell(struct tgt_worker *w, const struct tgt_scope *scope,
		    const struct tgt_conn *by)
{
	list_for_each(it, &w->sessions) {
		const struct tgt_session *s =
			list_entry(it, struct tgt_session, link);

		if (s->params.task_reporting == ISCSI_FAST_ABORT &&
		    (!scope->session || scope->session == s))
			tell_session(s, scope, by);
	}
}

/* [RFC 7143: 11.14.5 #1] */
void tgt_abort_iscsi_event(struct tgt_session *s, const struct tgt_scope *scope)
{
	list_for_each(it, &s->tasks.active) {
		const struct tgt_task *t =
			list_entry(it, struct tgt_task, link);

		if (may_abort(t) && is_in_scope(scope, t) &&
		    tgt_task_is_begun(t) && t->lu)
			dev_nexus_iscsi_event(s->nexus, t->lu);
	}
}

/* [RFC 7143: 4.2.3.3 #5, 11.5.1 #5] */
static void check_aborts(struct tgt_worker *w)
{
	struct list *it = w->aborts.next;

	while (it != &w->aborts) {
		struct tgt_abort *a = list_entry(it, struct tgt_abort, link);

		it = it->next;
		if (scope_task(w, &a->scope, tgt_task_is_aborting))
			continue;
		list_del(&a->link);
		a->done(a); /* may free a, start aborts and end others */
		it = w->aborts.next;
	}
}

/* ---- one task: data in progress, then the datamover, then the device ---- */

/* [RFC 7143: 11.5.1 #3] */
static void end_aborted_task(struct tgt_task *t)
{
	struct tgt_worker *w = t->session->worker;

	if (t->report_abort)
		tgt_response_aborted(t);
	tgt_task_put(t);
	check_aborts(w);
}

static void device_released(struct dev_task *d)
{
	end_aborted_task(container_of(d, struct tgt_task, dev));
}

/* The device is asked last: until then the datamover uses its buffers. */
void tgt_abort_released(struct tgt_task *t)
{
	if (!tgt_task_is_begun(t)) {
		end_aborted_task(t);
		return;
	}
	tgt_task_go(t, TGT_TASK_ABORT_DEVICE);
	if (dev_task_abort(&t->dev, device_released))
		end_aborted_task(t); /* the device has executed it already */
}

/* [RFC 7145: 8.3.2 #4] [RFC 5047: 8.9 #1] */
static void release_from_datamover(struct tgt_task *t)
{
	struct tgt_conn *c = t->conn;

	if (c && c->held == t)
		c->held = NULL;
	tgt_task_go(t, TGT_TASK_ABORT_DATAMOVER);
	if (c && c->dm &&
	    dm_deallocate_task_resources(c->dm, &t->dm) == ERR_AGAIN)
		return; /* DM_RELEASED follows */
	tgt_abort_released(t);
}

static bool reports_abort(const struct tgt_scope *sc, const struct tgt_task *t)
{
	const struct dev_lu *lu =
		tgt_task_is_begun(t)
			? t->lu
			: dev_nexus_unit(t->session->nexus, t->dm.lun);

	if (sc->lost)
		return true;
	return sc->report_abort && t->session != sc->issuer && lu &&
	       dev_lu_tas(lu);
}

static void abort_task(struct tgt_task *t, const struct tgt_scope *sc)
{
	bool data_in_progress =
		t->state == TGT_TASK_DATA && !t->dm.held && !sc->fast;

	t->report_abort = reports_abort(sc, t);
	if (data_in_progress && sc->wait_session == t->session && t->conn &&
	    t->conn->dm)
		tgt_task_go(t, TGT_TASK_ABORT_DATA);
	else
		release_from_datamover(t);
}

void tgt_abort_data(struct tgt_task *t)
{
	if (t->state == TGT_TASK_ABORT_DATA)
		release_from_datamover(t);
}

void tgt_abort_discard(struct tgt_task *t)
{
	if (!tgt_task_is_aborting(t))
		release_from_datamover(t);
}

/* ---- the end of a connection ---- */

/* Nothing of the task uses the connection any more. A queued response counts as
 * sent. */
static void orphan_task(struct tgt_task *t)
{
	t->conn = NULL;
	if (t->state == TGT_TASK_RESPONSE)
		tgt_task_put(t);
}

static bool is_orphan(const struct tgt_task *t)
{
	return !t->conn && t->state != TGT_TASK_ABORT_DEVICE;
}

/* Ends it, or asks the device to. */
static void end_orphan(struct tgt_task *t)
{
	if (tgt_task_is_aborting(t))
		tgt_abort_released(t);
	else
		release_from_datamover(t);
}

/* [RFC 7143: 7.14 #3] */
void tgt_abort_orphans(struct tgt_session *s, const struct tgt_conn *c,
		       bool recovery)
{
	const struct tgt_scope scope = { .session = s };
	struct tgt_task *t;

	list_for_each_safe(it, &s->tasks.active) {
		t = list_entry(it, struct tgt_task, link);
		if (t->conn == c && (!recovery || is_unrecoverable(t)))
			orphan_task(t);
	}
	while ((t = session_task(s, &scope, is_orphan)))
		end_orphan(t);
}

/* ---- aborts ---- */

/*
 * To abort a task may free the task at once and, with it, a session that is
 * closing: no pointer to either survives from one round to the next.
 */
void tgt_abort_start(struct tgt_worker *w, struct tgt_abort *a,
		     const struct tgt_scope *scope,
		     void (*done)(struct tgt_abort *a))
{
	struct tgt_task *t;

	a->worker = w;
	a->scope = *scope;
	a->done = done;
	a->deadline = XTIME_NEVER;
	list_init(&a->link);
	while ((t = scope_task(w, scope, may_abort)))
		abort_task(t, scope);
	if (scope->wait_session && scope_task(w, scope, tgt_task_is_aborting)) {
		a->deadline = 0;
		tgt_rearm(w);
	}
	list_push_back(&w->aborts, &a->link);
	check_aborts(w);
}

void tgt_abort_cancel(struct tgt_abort *a)
{
	list_del(&a->link);
}

/* Finds an abort whose deadline has passed, and a task whose data it waits
 * for. */
static struct tgt_task *overdue_task(struct tgt_worker *w, xtime now)
{
	list_for_each(it, &w->aborts) {
		struct tgt_abort *a = list_entry(it, struct tgt_abort, link);
		struct tgt_task *t;

		if (a->deadline == 0)
			a->deadline = now + w->tgt->cfg.abort_time;
		if (a->deadline > now)
			continue;
		t = scope_task(w, &a->scope, is_aborting_data);
		if (t)
			return t;
		a->deadline = XTIME_NEVER;
	}
	return NULL;
}

/* After the deadline the abort stops waiting for data: many initiators send no
 * more data of a command once they have asked for its abort. */
void tgt_abort_expire(struct tgt_worker *w, xtime now)
{
	struct tgt_task *t;

	while ((t = overdue_task(w, now)))
		release_from_datamover(t);
}
