/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reinstate.c: session reinstatement (RFC 7143 §6.3.5). A login with the
 * initiator name, ISID and target of a session that is still there ends that
 * session, on whichever worker it lives, before the new one begins. The last
 * Login Response waits for it.
 *
 * Of two such logins at the same time on different workers the one on the
 * higher worker stays, so that exactly one does.
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "target/internal.h"

struct tgt_reinstate_part {
	struct dev_msg msg; /* there and back */
	struct list link;   /* on the old session's mourners */
	struct tgt_reinstate *all;
	unsigned worker;
};

struct tgt_reinstate {
	struct tgt_conn *conn; /* NULL: gone meanwhile */
	struct tgt_worker *worker;
	const void *session; /* the new one, for comparison only */
	const struct tgt_node *node;
	struct iscsi_login_id id;
	unsigned pending;
	struct tgt_reinstate_part parts[]; /* one per worker */
};

static void post(struct tgt_worker *from, unsigned worker,
		 struct tgt_reinstate_part *p, void (*run)(struct dev_msg *m))
{
	const struct dev_env *env = &from->tgt->cfg.env;

	p->msg.run = run;
	env->post(env->arg, worker, &p->msg);
}

static bool same_nexus(const struct tgt_session *s, const struct tgt_node *node,
		       const struct iscsi_login_id *id)
{
	return s->node == node &&
	       !memcmp(s->id.isid, id->isid, sizeof(id->isid)) &&
	       !strcmp(s->id.initiator_name, id->initiator_name);
}

static struct tgt_session *older(const struct tgt_worker *w,
				 const struct tgt_reinstate *r)
{
	list_for_each(it, &w->sessions) {
		struct tgt_session *s =
			list_entry(it, struct tgt_session, link);

		if (s == r->session || !same_nexus(s, r->node, &r->id))
			continue;
		if (s->state == ISCSI_Q2_ACTIVE && w->index > r->worker->index)
			continue; /* it is about to end ours */
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
	free(r);
	if (!c)
		return;
	c->reinstate = NULL;
	tgt_login_finish(c);
}

/* On each worker: ends the older session, or reports that there is none. */
static void visit(struct tgt_reinstate_part *p)
{
	struct tgt_reinstate *r = p->all;
	struct tgt_worker *w = &r->worker->tgt->workers[p->worker];
	struct tgt_session *s = older(w, r);

	if (!s) {
		post(w, r->worker->index, p, part_back);
		return;
	}
	list_push_back(&s->mourners, &p->link);
	if (!tgt_conn_open(s->conn))
		return; /* it is ending already */
	conn_trace(s->conn, TRACE_LOGOUT,
		   "session %u reinstated by a new login (RFC 7143 §6.3.5)",
		   s->tsih);
	tgt_conn_end(s->conn, DM_TERMINATE_NOW, ERR_TERMINATED);
}

static void part_run(struct dev_msg *msg)
{
	visit(container_of(msg, struct tgt_reinstate_part, msg));
}

/* The session is off its worker's list: is there another? */
void tgt_reinstate_mourned(struct tgt_session *s)
{
	struct list *n;

	while ((n = list_pop_front(&s->mourners)))
		visit(list_entry(n, struct tgt_reinstate_part, link));
}

static struct tgt_reinstate *reinstate_new(struct tgt_conn *c, unsigned n)
{
	struct tgt_session *s = c->session;
	struct tgt_reinstate *r =
		calloc(1, sizeof(*r) + n * sizeof(r->parts[0]));

	if (!r)
		return NULL;
	r->conn = c;
	r->worker = c->worker;
	r->session = s;
	r->node = s->node;
	r->id = s->id;
	r->pending = n;
	for (unsigned i = 0; i < n; i++) {
		list_init(&r->parts[i].link);
		r->parts[i].all = r;
		r->parts[i].worker = i;
	}
	return r;
}

static bool nothing_to_do(const struct tgt_conn *c)
{
	const struct tgt_session *s = c->session;
	const struct tgt_reinstate probe = {
		.worker = c->worker, .session = s, .node = s->node, .id = s->id
	};

	return !s->node || (c->worker->tgt->cfg.env.nworkers == 1 &&
			    !older(c->worker, &probe));
}

void tgt_reinstate(struct tgt_conn *c)
{
	unsigned n = c->worker->tgt->cfg.env.nworkers;
	struct tgt_reinstate *r;

	if (nothing_to_do(c)) {
		tgt_login_finish(c);
		return;
	}
	r = reinstate_new(c, n);
	if (!r) {
		tgt_conn_fail(c, ERR_NOMEM, "login");
		return;
	}
	c->reinstate = r;
	c->worker->messages++;
	for (unsigned i = 0; i < n; i++)
		post(c->worker, i, &r->parts[i], part_run);
}

void tgt_reinstate_forget(struct tgt_conn *c)
{
	if (c->reinstate)
		c->reinstate->conn = NULL;
	c->reinstate = NULL;
}
