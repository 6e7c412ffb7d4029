/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reinstate.c: session reinstatement (RFC 7143 §6.3.5). A login with the
 * initiator name, ISID and target of an existing session ends that session, on
 * whichever worker it lives, before the new session begins. The last Login
 * Response waits for that end.
 *
 * A login with a TSIH joins a session instead: join.c.
 *
 * Of two such logins at the same time on different workers, the login on the
 * worker with the higher index succeeds, so that exactly one does.
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "target/internal.h"

/* The part of a reinstatement that one worker does. */
struct tgt_reinstate_part {
	struct dev_msg msg; /* to the worker and back */
	struct list link;   /* waiters of the old session */
	struct tgt_reinstate *all;
	unsigned worker;
};

struct tgt_reinstate {
	struct tgt_conn *conn; /* NULL: it ended meanwhile */
	struct tgt_worker *worker;
	void (*done)(struct tgt_conn *c);
	const void *session; /* the new one, compared only */
	const struct tgt_node *node;
	uint16_t tag; /* of the portal group */
	struct iscsi_login_id id;
	char local[TGT_ADDR_STR]; /* TargetAddress of the login */
	unsigned pending;
	struct tgt_reinstate_part parts[]; /* one per worker */
};

static void post_part(struct tgt_worker *from, unsigned worker,
		      struct tgt_reinstate_part *p,
		      void (*run)(struct dev_msg *m))
{
	const struct dev_env *env = &from->tgt->cfg.env;

	p->msg.run = run;
	env->post(env->arg, worker, &p->msg);
}

/* §7.4.2.1: without TargetName those of one address; §7.4.2.2: with it, those of one
 * target and portal group. */
static bool same_discovery(const struct tgt_session *s,
			   const struct tgt_reinstate *r)
{
	const struct tgt_conn *c = tgt_session_conn(s);

	if (!c || strcmp(s->id.target_name, r->id.target_name) != 0)
		return false;
	return r->id.target_name[0] ? c->info.portal_group == r->tag
				    : !strcmp(c->info.local, r->local);
}

/* [RFC 7143: 7.4.2.1 #1-3, 7.4.2.2 #1] */
static bool same_nexus(const struct tgt_session *s,
		       const struct tgt_reinstate *r)
{
	const struct iscsi_login_id *id = &r->id;

	if (s->node != r->node ||
	    memcmp(s->id.isid, id->isid, sizeof(id->isid)) != 0 ||
	    strcmp(s->id.initiator_name, id->initiator_name) != 0)
		return false;
	return s->node ? s->port.tag == r->tag : same_discovery(s, r);
}

/* A session of the same nexus on this worker that has to end, or NULL. */
/* [RFC 7143: 7.4.2.1 #4] */
static struct tgt_session *find_older(const struct tgt_worker *w,
				      const struct tgt_reinstate *r)
{
	struct tgt_session *s = tgt_sessions_of_port(w, &r->id);

	for (; s; s = s->chains.same_port) {
		if (s == r->session || !same_nexus(s, r))
			continue;
		if (s->state == ISCSI_Q2_ACTIVE && w->index > r->worker->index)
			continue; /* its login ends ours */
		return s;
	}
	return NULL;
}

static void part_back(struct dev_msg *msg)
{
	struct tgt_reinstate *r =
		container_of(msg, struct tgt_reinstate_part, msg)->all;
	struct tgt_conn *c = r->conn;

	if (--r->pending)
		return;
	r->worker->messages--;
	if (c) {
		c->reinstate = NULL;
		r->done(c);
	}
	free(r);
}

/* On each worker: ends the older session, or reports that there is none. */
static void end_older(struct tgt_reinstate_part *p)
{
	struct tgt_reinstate *r = p->all;
	struct tgt_worker *w = &r->worker->tgt->workers[p->worker];
	struct tgt_session *s = find_older(w, r);
	const struct tgt_conn *c;

	if (!s) {
		post_part(w, r->worker->index, p, part_back);
		return;
	}
	list_push_back(&s->waiters, &p->link);
	c = tgt_session_conn(s);
	if (c)
		conn_trace(c, TRACE_LOGOUT,
			   "session %u reinstated by a new login (RFC 7143 "
			   "§6.3.5)",
			   s->tsih);
	if (tgt_session_drop(s, DM_TERMINATE_NOW, ERR_TERMINATED))
		w->stats.total.reinstated++;
}

static void part_run(struct dev_msg *msg)
{
	end_older(container_of(msg, struct tgt_reinstate_part, msg));
}

/* The session is off its worker's list: each waiter looks for another one. */
void tgt_reinstate_ended(struct tgt_session *s)
{
	struct list *n;

	while ((n = list_pop_front(&s->waiters)))
		end_older(list_entry(n, struct tgt_reinstate_part, link));
}

/* What the sessions are compared with. */
static void describe(struct tgt_reinstate *r, const struct tgt_conn *c)
{
	const struct tgt_session *s = c->session;

	r->worker = c->worker;
	r->session = s;
	r->node = s->node;
	r->tag = s->node ? s->port.tag : c->info.portal_group;
	r->id = s->id;
	memcpy(r->local, c->info.local, sizeof(r->local));
}

static struct tgt_reinstate *reinstate_new(struct tgt_conn *c, unsigned n,
					   void (*done)(struct tgt_conn *c))
{
	struct tgt_reinstate *r =
		calloc(1, sizeof(*r) + n * sizeof(r->parts[0]));

	if (!r)
		return NULL;
	r->conn = c;
	r->done = done;
	r->pending = n;
	describe(r, c);
	for (unsigned i = 0; i < n; i++) {
		list_init(&r->parts[i].link);
		r->parts[i].all = r;
		r->parts[i].worker = i;
	}
	return r;
}

/* No other worker has to be asked, and this one has no older session. */
static bool nothing_to_do(const struct tgt_conn *c)
{
	struct tgt_reinstate probe;

	if (c->worker->tgt->cfg.env.nworkers > 1)
		return false;
	describe(&probe, c);
	return !find_older(c->worker, &probe);
}

/* [RFC 7143: 6.3.5 #1, 7.14 #2, 7.15 #2] */
void tgt_reinstate(struct tgt_conn *c, void (*done)(struct tgt_conn *c))
{
	unsigned n = c->worker->tgt->cfg.env.nworkers;
	struct tgt_reinstate *r;

	if (nothing_to_do(c)) {
		done(c);
		return;
	}
	r = reinstate_new(c, n, done);
	if (!r) {
		tgt_conn_fail(c, ERR_NOMEM, "login");
		return;
	}
	c->reinstate = r;
	c->worker->messages++;
	for (unsigned i = 0; i < n; i++)
		post_part(c->worker, i, &r->parts[i], part_run);
}

void tgt_reinstate_forget(struct tgt_conn *c)
{
	if (c->reinstate)
		c->reinstate->conn = NULL;
	c->reinstate = NULL;
}
