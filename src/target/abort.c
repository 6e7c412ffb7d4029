/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * abort.c: making tasks vanish, for task management, logout and lost
 * connections alike. A task is gone when neither the datamover nor the device
 * touches its memory any more; whoever aborts waits for that, so that a
 * response to the abort can't be overtaken by one of a task (§11.5.1).
 */
#include "base/err.h"
#include "target/internal.h"

static bool in_scope(const struct tgt_scope *sc, const struct tgt_task *t)
{
	const struct tgt_session *s = t->session;

	if (sc->session ? sc->session != s : sc->node != s->node)
		return false;
	if (sc->one_lun && sc->lun != t->dm.lun)
		return false;
	if (sc->one_task && sc->itt != t->dm.itt)
		return false;
	if (sc->aca && t->dev.attr != DEV_ATTR_ACA)
		return false;
	if (sc->except == &t->dev)
		return false;
	/* an immediate command bears the number of the next numbered one */
	if (sc->before && (sc->session || sc->wait_session == s))
		return t->immediate ? sn_le(t->cmdsn, sc->cmdsn)
				    : sn_lt(t->cmdsn, sc->cmdsn);
	return true;
}

static void dev_released(struct dev_task *d)
{
	struct tgt_task *t = container_of(d, struct tgt_task, dev);

	t->dev_holds = false;
	tgt_abort_step(t);
}

/* The next step of a task that is ABORTING; it may be gone afterwards. */
void tgt_abort_step(struct tgt_task *t)
{
	struct tgt_worker *w = t->session->worker;

	if (t->dm_holds || t->dev_holds || t->abort_late)
		return;
	/* both let go; a device that was never asked to abort is asked now,
	 * since its buffers were the datamover's until here */
	if (t->begun && !t->dev_asked) {
		t->dev_asked = t->dev_holds = true;
		if (!dev_task_abort(&t->dev, dev_released))
			return;
		t->dev_holds = false; /* it was done with the task already */
	}
	if (t->told)
		tgt_command_aborted(t);
	tgt_task_put(t);
	tgt_abort_check(w);
}

/* [RFC 7145: 8.3.2 #4] [RFC 5047: 8.9 #1] */
static void let_datamover_go(struct tgt_task *t)
{
	struct tgt_conn *c = t->session->conn;

	t->abort_late = false;
	if (c && dm_deallocate_task_resources(c->dm, &t->dm) == ERR_AGAIN)
		t->dm_holds = true;
}

static bool is_told(const struct tgt_scope *sc, const struct tgt_task *t)
{
	const struct dev_lu *lu = tgt_find_lu(t->session->node, t->dm.lun);

	return sc->told && t->session != sc->issuer && lu && dev_lu_tas(lu);
}

static void abort_task(struct tgt_task *t, const struct tgt_scope *sc)
{
	bool wait_data = sc->wait_session == t->session;
	bool data_under_way = t->state == TGT_TASK_DATA;

	t->told = is_told(sc, t);
	tgt_task_go(t, TGT_TASK_ABORTING);
	if (data_under_way && wait_data && t->session->conn)
		t->abort_late = true; /* §4.2.3.3 a): its TTTs first */
	else
		let_datamover_go(t);
	tgt_abort_step(t);
}

/* Data of an aborting task came in: that was what it waited for. */
void tgt_abort_data(struct tgt_task *t)
{
	if (!t->abort_late)
		return;
	let_datamover_go(t);
	tgt_abort_step(t);
}

/* [RFC 5047: 8.9 #2] */
static bool may_abort(const struct tgt_task *t)
{
	return t->state != TGT_TASK_RESPONSE && t->state != TGT_TASK_ABORTING;
}

/* One task in scope that is still to be aborted, or (aborting) that is not
 * gone yet. */
static struct tgt_task *session_task(const struct tgt_session *s,
				     const struct tgt_scope *sc, bool aborting)
{
	list_for_each(it, &s->active) {
		struct tgt_task *t = list_entry(it, struct tgt_task, link);

		if ((aborting ? t->state == TGT_TASK_ABORTING : may_abort(t)) &&
		    in_scope(sc, t))
			return t;
	}
	return NULL;
}

void tgt_abort_tell(struct tgt_session *s, const struct tgt_scope *scope)
{
	const struct dev_lu *lu = tgt_find_lu(s->node, scope->lun);

	if (lu && !dev_lu_tas(lu) && session_task(s, scope, false))
		dev_nexus_commands_cleared(s->nexus, scope->lun);
}

static struct tgt_task *scope_task(const struct tgt_worker *w,
				   const struct tgt_scope *sc, bool aborting)
{
	struct tgt_task *t;

	if (sc->session)
		return session_task(sc->session, sc, aborting);
	list_for_each(it, &w->sessions) {
		t = session_task(list_entry(it, struct tgt_session, link), sc,
				 aborting);
		if (t)
			return t;
	}
	return NULL;
}

/*
 * Aborting a task may free it at once and, with it, its session (one that is
 * closing): nothing is remembered from one round to the next.
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
	while ((t = scope_task(w, scope, false)))
		abort_task(t, scope);
	if (scope->wait_session && scope_task(w, scope, true)) {
		a->deadline = 0;
		tgt_rearm(w);
	}
	list_push_back(&w->aborts, &a->link);
	tgt_abort_check(w);
}

void tgt_abort_cancel(struct tgt_abort *a)
{
	list_del(&a->link);
}

void tgt_abort_check(struct tgt_worker *w)
{
	struct list *it = w->aborts.next;

	while (it != &w->aborts) {
		struct tgt_abort *a = list_entry(it, struct tgt_abort, link);

		it = it->next;
		if (scope_task(w, &a->scope, true))
			continue;
		list_del(&a->link);
		a->done(a); /* may free a, start others, end others */
		it = w->aborts.next;
	}
}

static struct tgt_task *late_task(const struct tgt_worker *w,
				  const struct tgt_scope *sc)
{
	list_for_each(it, &w->sessions) {
		struct tgt_session *s =
			list_entry(it, struct tgt_session, link);

		list_for_each(jt, &s->active) {
			struct tgt_task *t =
				list_entry(jt, struct tgt_task, link);

			if (t->abort_late && in_scope(sc, t))
				return t;
		}
	}
	return NULL;
}

/* An abort whose wait for data is over, and one task it waits for. */
static struct tgt_task *overdue_task(struct tgt_worker *w, xtime now)
{
	list_for_each(it, &w->aborts) {
		struct tgt_abort *a = list_entry(it, struct tgt_abort, link);
		struct tgt_task *t;

		if (a->deadline == 0)
			a->deadline = now + w->tgt->cfg.abort_time;
		if (a->deadline > now)
			continue;
		t = late_task(w, &a->scope);
		if (t)
			return t;
		a->deadline = XTIME_NEVER;
	}
	return NULL;
}

/* Data that did not come in time are not waited for any longer: many
 * initiators stop sending them once they asked for the abort. */
void tgt_abort_expire(struct tgt_worker *w, xtime now)
{
	struct tgt_task *t;

	while ((t = overdue_task(w, now))) {
		let_datamover_go(t);
		tgt_abort_step(t);
	}
}
