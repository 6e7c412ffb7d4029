/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * join.c: a login with a TSIH adds its connection to that session (RFC 7143
 * §6.3), if it comes from the same initiator with the same rights. A login with
 * the CID of one of the session's connections replaces that connection
 * (connection reinstatement, §6.3.4): its tasks end, and the last Login Response
 * waits for that.
 *
 * The other end of a connection's life is here, too: what its session loses with
 * it. The loss of one connection is the loss of the session (§7.14 c), but not its
 * Logout or reinstatement; at ErrorRecoveryLevel 2 recover.c keeps the connection, and
 * reinstatement moves its tasks (§6.3.4).
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "target/internal.h"

/* ---- which session ---- */

/* §4.4.3.1: the ISID, the initiator's name and the target's portal group identify
 * the session. */
static bool is_same_nexus(const struct tgt_session *s, const struct tgt_conn *c,
			  const struct tgt_joiner *j)
{
	return s->node && s->node == j->node &&
	       s->port.tag == c->info.portal_group &&
	       !memcmp(s->id.isid, j->id->isid, sizeof(s->id.isid)) &&
	       !strcmp(s->id.initiator_name, j->id->initiator_name);
}

/* All connections of a session are in RDMA mode, or none is: the leading login
 * decides on RDMAExtensions, and no later login negotiates it. */
/* [RFC 7145: 5.1 #7] */
static bool suits_transport(const struct tgt_session *s,
			    const struct dm_conn *dm)
{
	if (!s->conns.rdma)
		return dm->rdma == DM_RDMA_NO || dm->rdma == DM_RDMA_POSSIBLE;
	return dm->rdma == DM_RDMA_ALREADY ||
	       (dm->rdma != DM_RDMA_NO && s->params.rdma_extensions);
}

/* It may do the same as the session: it has the same account and LUN map. */
static bool has_same_rights(const struct tgt_session *s,
			    const struct tgt_joiner *j)
{
	const struct tgt_luns *l = &s->luns;

	return !strcmp(s->login.account, j->account) &&
	       dev_map_equal(l->step ? l->next : l->map, j->map);
}

static struct tgt_conn *find_cid(const struct tgt_session *s, uint16_t cid)
{
	list_for_each(it, &s->conns.list) {
		struct tgt_conn *c =
			list_entry(it, struct tgt_conn, session_link);

		if (c->cid == cid)
			return c;
	}
	return NULL;
}

static struct tgt_join *find_join(const struct tgt_session *s, uint16_t cid)
{
	list_for_each(it, &s->conns.joins) {
		struct tgt_join *j = list_entry(it, struct tgt_join, link);

		if (j->cid == cid)
			return j;
	}
	return NULL;
}

/* §13.2: at most MaxConnections. Those that are leaving do not count. */
static bool has_room(const struct tgt_session *s, uint16_t cid)
{
	unsigned n = 0;

	if (find_cid(s, cid) || find_join(s, cid))
		return true;
	list_for_each(it, &s->conns.list)
		n += !list_entry(it, struct tgt_conn, session_link)->end.parted;
	list_for_each(it, &s->conns.joins)
		n++;
	return n < s->params.max_connections;
}

/* At ErrorRecoveryLevel 2 a session without connections waits for one (§6.3.6). */
static bool is_in_force(const struct tgt_session *s)
{
	if (s->logout.begun || s->conns.dropped)
		return false;
	if (s->state == ISCSI_Q3_LOGGED_IN)
		return tgt_session_conn(s) || tgt_session_recovers(s);
	return s->state == ISCSI_Q5_CONTINUE ||
	       (s->state == ISCSI_Q4_FAILED && !list_empty(&s->conns.lost));
}

/* [RFC 7143: 4.4.3 #1, 11.12.6 #4] */
struct tgt_session *tgt_join_find(const struct tgt_conn *c,
				  const struct tgt_joiner *j, uint16_t *status)
{
	struct tgt_session *s = tgt_sessions_find(c->worker, j->id->tsih);

	*status = ISCSI_LOGIN_SUCCESS;
	if (!s || !is_same_nexus(s, c, j) || !is_in_force(s))
		*status = ISCSI_LOGIN_NO_SESSION;
	else if (!suits_transport(s, c->dm) || !has_same_rights(s, j))
		*status = ISCSI_LOGIN_CANT_INCLUDE;
	else if (!has_room(s, j->id->cid))
		*status = ISCSI_LOGIN_TOO_MANY_CONNECTIONS;
	return *status ? NULL : s;
}

/* ---- connection reinstatement (§6.3.4) ---- */

/* Takes j off its session and frees it; the connection stays. */
static void join_free(struct tgt_join *j)
{
	list_del(&j->link);
	if (j->waits)
		tgt_abort_cancel(&j->abort);
	j->conn->join = NULL;
	free(j);
}

static void refuse_join(struct tgt_join *j)
{
	struct tgt_conn *c = j->conn;
	tgt_joined *done = j->done;

	join_free(j);
	done(c, NULL, ISCSI_LOGIN_NO_SESSION);
}

static void refuse_joins(struct tgt_session *s)
{
	while (!list_empty(&s->conns.joins))
		refuse_join(
			list_entry(s->conns.joins.next, struct tgt_join, link));
}

/* The last login that waited to join is over, whether it succeeded or not. The session
 * may be free afterwards. */
static void end_continuation(struct tgt_session *s)
{
	if (s->state == ISCSI_Q5_CONTINUE && list_empty(&s->conns.joins) &&
	    !list_empty(&s->conns.lost))
		iscsi_session_go(ISCSI_TARGET, &s->state,
				 ISCSI_Q4_FAILED); /* N8 */
	tgt_recover_end_if_deserted(s);
}

/* The login has replaced its connection: that is an implicit Logout. */
static void note_implicit_logout(struct tgt_session *s, uint16_t cid)
{
	struct tgt_conn *lost = tgt_recover_find(s, cid);

	if (lost && find_cid(s, cid) && !lost->end.logged_out)
		tgt_recover_logged_out(lost);
}

static void old_tasks_ended(struct tgt_abort *a)
{
	struct tgt_join *j = container_of(a, struct tgt_join, abort);
	struct tgt_session *s = j->session;
	struct tgt_conn *c = j->conn;
	tgt_joined *done = j->done;
	uint16_t cid = j->cid;

	j->waits = false;
	join_free(j);
	done(c, s, ISCSI_LOGIN_SUCCESS);
	note_implicit_logout(s, cid);
	end_continuation(s);
}

/* A login whose old connection is gone, but that does not wait for its tasks
 * yet; or NULL. */
static struct tgt_join *ready_join(const struct tgt_session *s)
{
	list_for_each(it, &s->conns.joins) {
		struct tgt_join *j = list_entry(it, struct tgt_join, link);

		if (!j->waits && !find_cid(s, j->cid))
			return j;
	}
	return NULL;
}

/* Waits for tasks that have no connection any more. */
static void wait_for_tasks(struct tgt_join *j)
{
	const struct tgt_scope scope = { .session = j->session,
					 .of_conn = true };

	j->waits = true;
	tgt_abort_start(j->session->worker, &j->abort, &scope, old_tasks_ended);
}

static void continue_joins(struct tgt_session *s)
{
	struct tgt_join *j = ready_join(s);

	if (j) /* only one connection has ended */
		wait_for_tasks(j);
}

/* The implicit Logout has reason 1 (§11.14): tasks end without notice. At
 * ErrorRecoveryLevel 2 it has reason 2. */
/* [RFC 7143: 6.3.4 #2] */
static void replace_conn(struct tgt_session *s, struct tgt_conn *old)
{
	const struct tgt_scope scope = {
		.session = s,
		.of_conn = true,
		.conn = old,
	};

	if (!tgt_conn_open(old) && old->end.parted)
		return; /* it is leaving already */
	old->end.recovers = tgt_recover_wants(old);
	old->end.parted = true;
	conn_trace(old, TRACE_LOGOUT,
		   "connection %u of session %u reinstated by a new login "
		   "(RFC 7143 §6.3.4)",
		   old->cid, s->tsih);
	s->worker->stats.total.reinstated++;
	if (!old->end.recovers) {
		tgt_abort_iscsi_event(s, &scope);
		tgt_window_forget_conn(s, old);
	}
	tgt_conn_end(old, DM_TERMINATE_NOW, ERR_TERMINATED);
}

/* Tasks of connections that are gone, which the device still executes. */
static bool has_orphans(const struct tgt_session *s)
{
	list_for_each(it, &s->tasks.active)
		if (!list_entry(it, struct tgt_task, link)->conn)
			return true;
	return false;
}

/* A session without connections goes on with this login. */
static void begin_continuation(struct tgt_session *s)
{
	if (s->state == ISCSI_Q4_FAILED)
		iscsi_session_go(ISCSI_TARGET, &s->state,
				 ISCSI_Q5_CONTINUE); /* N7 */
}

/* [RFC 7143: 6.3.4 #1] */
void tgt_join(struct tgt_conn *c, struct tgt_session *s, uint16_t cid,
	      tgt_joined *done)
{
	struct tgt_conn *old = find_cid(s, cid);
	struct tgt_join *j = find_join(s, cid);

	if (j)
		refuse_join(j); /* the later login prevails */
	begin_continuation(s);
	/* orphans: a login that waited for them was refused above, or has ended */
	if (!old && !tgt_recover_find(s, cid) && !has_orphans(s)) {
		done(c, s, ISCSI_LOGIN_SUCCESS);
		end_continuation(s);
		return;
	}
	j = calloc(1, sizeof(*j));
	if (!j) {
		tgt_conn_fail(c, ERR_NOMEM, "login");
		return;
	}
	j->conn = c;
	j->session = s;
	j->cid = cid;
	j->done = done;
	c->join = j;
	list_push_back(&s->conns.joins, &j->link);
	if (old)
		replace_conn(s, old);
	else
		wait_for_tasks(j);
}

void tgt_join_forget(struct tgt_conn *c)
{
	struct tgt_session *s;

	if (!c->join)
		return;
	s = c->join->session;
	join_free(c->join);
	end_continuation(s);
}

/* ---- the end of a connection ---- */

/* §7.1.4.4: all connections are closed. §11.9.1 announces that. */
static void fail_session(struct tgt_session *s)
{
	const struct iscsi_async drop = {
		.event = ISCSI_ASYNC_DROP_SESSION,
		.param2 = s->params.default_time2wait,
	};

	iscsi_session_go(ISCSI_TARGET, &s->state, ISCSI_Q4_FAILED); /* N5 */
	list_for_each(it, &s->conns.list)
		tgt_async(list_entry(it, struct tgt_conn, session_link), &drop);
	refuse_joins(s);
	tgt_session_drop(s, DM_TERMINATE_AFTER_SENT, ERR_TERMINATED);
}

/* The last connection is replaced, or waits for recovery: the session goes on with the
 * next one (§6.3.6). */
static void wait_for_continuation(struct tgt_session *s)
{
	iscsi_session_go(ISCSI_TARGET, &s->state, ISCSI_Q4_FAILED); /* N5 */
	if (!list_empty(&s->conns.joins))
		begin_continuation(s);
}

/* c was lost, and its tasks do not wait for another connection. If Time2Retain is 0, or
 * has passed at once, only they end (§13.16, §11.14.5 b). */
static void lose_conn(struct tgt_session *s, const struct tgt_conn *c)
{
	const struct tgt_scope scope = {
		.session = s,
		.of_conn = true,
		.conn = c,
	};

	if (s->params.error_recovery_level == 2 &&
	    !s->params.default_time2retain && tgt_session_conn(s) &&
	    !s->conns.dropped && !c->end.final)
		tgt_abort_iscsi_event(s, &scope);
	else
		fail_session(s);
}

/* [RFC 7143: 7.14 #1] */
bool tgt_session_conn_ended(struct tgt_session *s, struct tgt_conn *c)
{
	bool in_force = s->state == ISCSI_Q3_LOGGED_IN && !s->logout.begun;
	bool keeps = tgt_recover_wants(c);

	list_del(&c->session_link);
	tgt_tmf_forget_conn(s, c);
	if (keeps)
		tgt_recover_begin(c);
	else
		tgt_window_forget_conn(s, c);
	if (in_force && !keeps && !c->end.parted)
		lose_conn(s, c);
	else if (in_force && list_empty(&s->conns.list) &&
		 !(list_empty(&s->conns.joins) && list_empty(&s->conns.lost)))
		wait_for_continuation(s);
	if (!in_force)
		tgt_recover_end_all(s);
	if (tgt_session_is_deserted(s)) {
		tgt_tmf_forget(s);
		tgt_window_empty(s);
	}
	tgt_abort_orphans(s, c, keeps);
	if (keeps)
		tgt_logout_lost(c);
	if (tgt_session_is_deserted(s)) {
		tgt_session_close(s);
		return keeps;
	}
	tgt_fence_acknowledged(s);
	if (keeps)
		tgt_tmf_check(s); /* TASK REASSIGN may wait for this end */
	continue_joins(s);
	return keeps;
}
