/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * apply.c: brings a directory into force. A message gives each worker the pointer
 * to it, and the worker reviews its sessions. The previous directory is freed when
 * all workers have answered, so that no lock or count is needed.
 *
 * settle.c finds out when no session uses what only earlier directories have.
 */
#include <stdlib.h>

#include "base/err.h"
#include "target/internal.h"

/* The part that one worker does. */
struct part {
	struct dev_msg msg; /* to the worker and back */
	struct tgt_settling settling;
	struct dev_msg settled_msg;
	struct tgt_apply *all;
	unsigned worker;
};

struct tgt_apply {
	struct tgt *tgt;
	struct tgt_directory *old;
	struct tgt_apply_events events;
	unsigned pending, unsettled; /* parts */
	struct part parts[];	     /* one per worker */
};

static void post(const struct tgt_apply *a, unsigned worker, struct dev_msg *m,
		 void (*run)(struct dev_msg *m))
{
	const struct dev_env *env = &a->tgt->cfg.env;

	m->run = run;
	env->post(env->arg, worker, m);
}

static void ignore(void *arg)
{
	(void)arg;
}

/* ---- answers of the workers ---- */

/* The last two steps, on worker 0, in this order. */
static void advance(struct tgt_apply *a)
{
	struct tgt *t = a->tgt;

	if (a->pending)
		return;
	if (a->old) {
		tgt_directory_free(a->old);
		a->old = NULL;
		t->applying = false;
		a->events.done(a->events.arg);
	}
	if (a->unsettled)
		return;
	t->workers[0].messages--;
	a->events.settled(a->events.arg);
	free(a);
}

static void settled_back(struct dev_msg *m)
{
	struct tgt_apply *a = container_of(m, struct part, settled_msg)->all;

	a->unsettled--;
	advance(a);
}

static void part_back(struct dev_msg *m)
{
	struct tgt_apply *a = container_of(m, struct part, msg)->all;

	a->pending--;
	advance(a);
}

static void part_settled(struct tgt_settling *s)
{
	struct part *p = container_of(s, struct part, settling);

	post(p->all, 0, &p->settled_msg, settled_back);
}

/* ---- the sessions of a worker ---- */

static void send_away(struct tgt_session *s, const char *why)
{
	struct tgt_conn *c = tgt_session_conn(s);

	conn_trace(c, TRACE_LOGOUT, "session %u to %s: asked to log out: %s",
		   s->tsih, s->node ? s->node->name : "discovery", why);
	list_for_each(it, &s->conns.list) {
		c = list_entry(it, struct tgt_conn, session_link);
		if (c->state == ISCSI_S5_LOGGED_IN)
			tgt_clock_leave(c);
	}
}

/* What the directory in force says of a connection. */
static struct tgt_ruling ask(const struct tgt_conn *c)
{
	const struct tgt_session *s = c->session;
	const struct tgt_visitor v = tgt_conn_visitor(c, &s->id);
	struct tgt_ruling r = tgt_access_ask(c->worker->directory, &v,
					     s->node ? s->node->name : NULL);

	if (!r.status && !tgt_access_proven(r.auth, &v))
		r.why = "its auth group has no account by which it logged in";
	return r;
}

/* All connections of a session have the same rights. Stores those in *r; NULL: it
 * goes on, else why it has to end. */
static const char *ask_of_all(const struct tgt_session *s, struct tgt_ruling *r)
{
	*r = ask(tgt_session_conn(s));
	list_for_each(it, &s->conns.list) {
		const struct tgt_ruling other =
			ask(list_entry(it, struct tgt_conn, session_link));

		if (other.why)
			return other.why;
		if (!dev_map_equal(other.map, r->map))
			return "its connections have different LUN maps";
	}
	return NULL;
}

/* A login asks again before it is over; other sessions are ending. One connection that
 * goes on is enough: the first one may be logging out alone. */
static bool is_in_force(const struct tgt_session *s)
{
	if (!list_linked(&s->use.link) || s->logout.begun)
		return false;
	list_for_each(it, &s->conns.list) {
		const struct tgt_conn *c =
			list_entry(it, struct tgt_conn, session_link);

		if (tgt_conn_open(c) && !c->end.leaving &&
		    c->state == ISCSI_S5_LOGGED_IN)
			return true;
	}
	return false;
}

static void take_data_time(struct tgt_session *s, const struct tgt_target *t)
{
	if (t)
		s->data_time = t->cfg.data_time ? t->cfg.data_time
						: s->worker->tgt->cfg.data_time;
}

/* A session without connections ends if its initiator may not continue it, or would have
 * other rights then: it would delay the next directory until Time2Retain. A login that
 * continues it already asks again (enter_session). */
static void review_waiting(struct tgt_session *s)
{
	if (s->luns.step || !list_empty(&s->conns.joins))
		return;
	list_for_each(it, &s->conns.lost) {
		const struct tgt_conn *c =
			list_entry(it, struct tgt_conn, session_link);
		const struct tgt_ruling r = ask(c);

		if (r.why || !dev_map_equal(s->luns.map, r.map)) {
			conn_trace(c, TRACE_LOGOUT,
				   "session %u, which waits for a connection, "
				   "ends: %s",
				   s->tsih, r.why ? r.why : "its LUNs change");
			s->conns.dropped = true;
			tgt_recover_end_all(s);
			return;
		}
		take_data_time(s, r.target);
	}
	tgt_use_renew(s->worker, &s->use);
}

void tgt_apply_review(struct tgt_session *s)
{
	struct tgt_worker *w = s->worker;
	struct tgt_ruling r;
	const char *why;

	if (list_empty(&s->conns.list) && !list_empty(&s->conns.lost))
		review_waiting(s);
	if (!is_in_force(s))
		return;
	why = ask_of_all(s, &r);
	if (why) {
		send_away(s, why);
		return;
	}
	if (!s->luns.step && !dev_map_equal(s->luns.map, r.map))
		tgt_remap_start(s, r.map, tgt_apply_review);
	else if (!s->luns.step)
		tgt_use_renew(w, &s->use);
	take_data_time(s, r.target);
}

/* ---- in force ---- */

void tgt_worker_take(struct tgt_worker *w, const struct tgt_directory *d)
{
	const struct tgt_config *cfg = &w->tgt->cfg;

	w->directory = d;
	w->settings = d->has_settings
			      ? d->settings
			      : (struct tgt_settings){
					.want = cfg->want,
					.discovery_time = cfg->discovery_time,
					.slow_time = cfg->slow_time,
				};
}

/* On each worker. */
static void run_part(struct dev_msg *m)
{
	struct part *p = container_of(m, struct part, msg);
	struct tgt *t = p->all->tgt;
	struct tgt_worker *w = &t->workers[p->worker];

	/* neither changes before all workers have answered */
	tgt_worker_take(w, t->directory);
	w->generation = t->generation;
	list_for_each(it, &w->sessions)
		tgt_apply_review(list_entry(it, struct tgt_session, link));
	post(p->all, 0, &p->msg, part_back);
	tgt_settle(w, &p->settling, part_settled);
}

static struct tgt_apply *new_apply(struct tgt *t,
				   const struct tgt_apply_events *events)
{
	unsigned n = t->cfg.env.nworkers;
	struct tgt_apply *a = calloc(1, sizeof(*a) + n * sizeof(a->parts[0]));

	if (!a)
		return NULL;
	a->tgt = t;
	a->old = t->directory;
	a->events = *events;
	if (!a->events.done)
		a->events.done = ignore;
	if (!a->events.settled)
		a->events.settled = ignore;
	a->pending = a->unsettled = n;
	for (unsigned i = 0; i < n; i++) {
		a->parts[i].all = a;
		a->parts[i].worker = i;
	}
	return a;
}

int tgt_apply(struct tgt *t, struct tgt_directory *d,
	      const struct tgt_apply_events *events)
{
	struct tgt_apply *a;
	int err;

	if (t->applying)
		return ERR_BUSY;
	err = tgt_nodes_resolve(t, d);
	a = err ? NULL : new_apply(t, events);
	if (!a)
		return err ? err : ERR_NOMEM;
	t->applying = true;
	t->directory = d;
	t->generation++;
	t->workers[0].messages++;
	for (unsigned i = 0; i < t->cfg.env.nworkers; i++)
		post(a, i, &a->parts[i].msg, run_part);
	return 0;
}

int tgt_begin(struct tgt *t, struct tgt_directory *d)
{
	int err = tgt_nodes_resolve(t, d);

	if (err)
		return err;
	tgt_directory_free(t->directory);
	t->directory = d;
	for (unsigned i = 0; i < t->cfg.env.nworkers; i++)
		tgt_worker_take(&t->workers[i], d);
	return 0;
}
