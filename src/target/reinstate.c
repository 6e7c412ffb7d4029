/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reinstate.c: session reinstatement (RFC 7143 §6.3.5). A login with the
 * initiator name, ISID and target of an existing session ends that session, on
 * whichever worker it lives, before the new session begins. The last Login
 * Response waits for that end.
 *
 * A login with the TSIH of that session and the CID of its connection is
 * connection reinstatement (§6.3.4): the old session ends too, but the new one
 * takes over its TSIH and the values of its leading login. (The device sees the
 * loss of an I_T nexus.) Another CID would be a second connection, another TSIH
 * names no session: both are refused.
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
	/* the worker's answer to a login with a TSIH; params are those of the
	 * session that ends */
	uint16_t verdict; /* enum iscsi_login_status */
	struct iscsi_params params;
};

struct tgt_reinstate {
	struct tgt_conn *conn; /* NULL: it ended meanwhile */
	struct tgt_worker *worker;
	void (*done)(struct tgt_conn *c, uint16_t status);
	const void *session; /* the new one, compared only */
	const struct tgt_node *node;
	uint16_t tag; /* of the portal group */
	struct iscsi_login_id id;
	bool rdma; /* the new connection is in RDMA mode */
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

static bool same_nexus(const struct tgt_session *s,
		       const struct tgt_reinstate *r)
{
	const struct iscsi_login_id *id = &r->id;

	return s->node == r->node && s->port.tag == r->tag &&
	       !memcmp(s->id.isid, id->isid, sizeof(id->isid)) &&
	       !strcmp(s->id.initiator_name, id->initiator_name);
}

/* A session of the same nexus on this worker that has to end, or NULL. */
static struct tgt_session *find_older(const struct tgt_worker *w,
				      const struct tgt_reinstate *r)
{
	list_for_each(it, &w->sessions) {
		struct tgt_session *s =
			list_entry(it, struct tgt_session, link);

		if (s == r->session || !same_nexus(s, r))
			continue;
		if (r->id.tsih && s->tsih != r->id.tsih)
			continue;
		if (s->state == ISCSI_Q2_ACTIVE && w->index > r->worker->index)
			continue; /* its login ends ours */
		return s;
	}
	return NULL;
}

/* Combines the answers of all workers to a login with a TSIH; on success the new
 * session takes over the old one's TSIH and values. */
static uint16_t join_session(const struct tgt_reinstate *r, struct tgt_conn *c)
{
	unsigned n = r->worker->tgt->cfg.env.nworkers;
	uint16_t status = ISCSI_LOGIN_NO_SESSION;

	for (unsigned i = 0; i < n; i++) {
		const struct tgt_reinstate_part *p = &r->parts[i];

		if (p->verdict == ISCSI_LOGIN_NO_SESSION)
			continue;
		status = p->verdict;
		if (status)
			break;
		c->session->tsih = r->id.tsih;
		c->session->joined.is_set = true;
		c->session->joined.leading = p->params;
	}
	return status;
}

static void part_back(struct dev_msg *msg)
{
	struct tgt_reinstate *r =
		container_of(msg, struct tgt_reinstate_part, msg)->all;
	struct tgt_conn *c = r->conn;
	uint16_t status = ISCSI_LOGIN_SUCCESS;

	if (--r->pending)
		return;
	r->worker->messages--;
	if (c && r->id.tsih)
		status = join_session(r, c);
	if (c) {
		c->reinstate = NULL;
		r->done(c, status);
	}
	free(r);
}

/* The login status of a login with a TSIH that would replace s. */
static uint16_t check_join(const struct tgt_reinstate *r,
			   const struct tgt_session *s)
{
	if (s->state != ISCSI_Q3_LOGGED_IN || !s->conn)
		return ISCSI_LOGIN_NO_SESSION;
	if (s->conn->cid != r->id.cid) /* MaxConnections=1 */
		return ISCSI_LOGIN_TOO_MANY_CONNECTIONS;
	/* the leading login decides on RDMAExtensions, and no other connection
	 * of the session may differ (RFC 7145 §5.1) */
	return s->params.rdma_extensions || r->rdma ? ISCSI_LOGIN_CANT_INCLUDE
						    : ISCSI_LOGIN_SUCCESS;
}

/* On each worker: ends the older session, or reports that there is none. */
static void end_older(struct tgt_reinstate_part *p)
{
	struct tgt_reinstate *r = p->all;
	struct tgt_worker *w = &r->worker->tgt->workers[p->worker];
	struct tgt_session *s = find_older(w, r);

	if (s && r->id.tsih) {
		p->verdict = check_join(r, s);
		p->params = s->params;
		if (p->verdict)
			s = NULL;
	}
	if (!s) {
		post_part(w, r->worker->index, p, part_back);
		return;
	}
	list_push_back(&s->waiters, &p->link);
	if (!tgt_conn_open(s->conn))
		return; /* the session is ending already */
	conn_trace(s->conn, TRACE_LOGOUT,
		   "%s %u reinstated by a new login (RFC 7143 §6.3.%d)",
		   r->id.tsih ? "connection of session" : "session", s->tsih,
		   r->id.tsih ? 4 : 5);
	w->stats.total.reinstated++;
	tgt_conn_end(s->conn, DM_TERMINATE_NOW, ERR_TERMINATED);
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

static struct tgt_reinstate *reinstate_new(struct tgt_conn *c, unsigned n,
					   void (*done)(struct tgt_conn *c,
							uint16_t status))
{
	struct tgt_session *s = c->session;
	struct tgt_reinstate *r =
		calloc(1, sizeof(*r) + n * sizeof(r->parts[0]));

	if (!r)
		return NULL;
	r->conn = c;
	r->worker = c->worker;
	r->done = done;
	r->session = s;
	r->node = s->node;
	r->tag = s->port.tag;
	r->id = s->id;
	r->rdma = c->dm->rdma == DM_RDMA_ALREADY;
	r->pending = n;
	for (unsigned i = 0; i < n; i++) {
		list_init(&r->parts[i].link);
		r->parts[i].all = r;
		r->parts[i].worker = i;
		r->parts[i].verdict = ISCSI_LOGIN_NO_SESSION;
	}
	return r;
}

/* No other worker has to be asked, and this one has no older session. */
static bool nothing_to_do(const struct tgt_conn *c)
{
	const struct tgt_session *s = c->session;
	const struct tgt_reinstate probe = { .worker = c->worker,
					     .session = s,
					     .node = s->node,
					     .tag = s->port.tag,
					     .id = s->id };

	return !s->node ||
	       (!s->id.tsih && c->worker->tgt->cfg.env.nworkers == 1 &&
		!find_older(c->worker, &probe));
}

void tgt_reinstate(struct tgt_conn *c,
		   void (*done)(struct tgt_conn *c, uint16_t status))
{
	unsigned n = c->worker->tgt->cfg.env.nworkers;
	struct tgt_reinstate *r;

	if (nothing_to_do(c)) {
		done(c, ISCSI_LOGIN_SUCCESS);
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
