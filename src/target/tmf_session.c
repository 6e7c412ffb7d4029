/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tmf_session.c: task management functions on tasks of the session that sent them (RFC 7143
 * §11.5, §4.2.3; RFC 7144 §6.3).
 */
#include "base/err.h"
#include "target/tmf.h"

static void local_abort_done(struct tgt_abort *a)
{
	struct tgt_tmf *m = container_of(a, struct tgt_tmf, abort);

	m->aborting = false;
	tgt_tmf_tasks_ended(m);
}

static void abort_local(struct tgt_tmf *m, const struct tgt_scope *scope)
{
	m->aborting = true;
	tgt_abort_start(m->worker, &m->abort, scope, local_abort_done);
}

/* [RFC 7143: 4.2.3.3 #1, 4.2.3.4 #1] */
void tgt_tmf_abort_task_set(struct tgt_tmf *m)
{
	const struct tgt_scope scope = {
		.session = m->session,
		.lu = m->lu,
		.before = true,
		.cmdsn = m->cmdsn,
		.wait_session = m->session,
		.fast = m->fast,
	};

	tgt_abort_tell(m->worker, &scope, m->conn);
	abort_local(m, &scope);
}

static bool is_tmf(const struct tgt_session *s, uint32_t itt)
{
	list_for_each(it, &s->tmfs)
		if (list_entry(it, struct tgt_tmf, link)->itt == itt)
			return true;
	return false;
}

/* The task that a function refers to; NULL: none, or its response is queued. */
static struct tgt_task *find_referenced(const struct tgt_tmf *m)
{
	struct tgt_task *t = tgt_task_find(m->session, m->rtt);

	if (!t || t->state == TGT_TASK_RESPONSE || t->lu != m->lu)
		return NULL;
	return t;
}

/* §11.6.1 b): the referenced command lies in the window and was not received. */
static bool is_missing(const struct tgt_tmf *m)
{
	const struct iscsi_target_window *w = &m->session->window;

	return sn_lt(m->ref_cmdsn, m->cmdsn) &&
	       iscsi_target_window_check(w, m->ref_cmdsn) != ISCSI_CMDSN_IGNORE;
}

/* The function completes, and the missing command counts as received. */
/* [RFC 7143: 7.11 #2] */
static void complete_and_skip(struct tgt_tmf *m)
{
	struct tgt_session *s = m->session;
	uint32_t cmdsn = m->ref_cmdsn;

	tgt_tmf_end(m, ISCSI_TMF_COMPLETE);
	tgt_order_skip(s, cmdsn);
}

/* The task has ended, its status is not acknowledged, and its connection was logged out
 * for recovery. */
static bool waits_for_reassignment(const struct tgt_tmf *m)
{
	struct tgt_task *t;

	return m->conn && tgt_conn_open(m->conn) &&
	       !tgt_reassign_check(m->session, m->rtt, &t) &&
	       t->state == TGT_TASK_RESPONSE && t->lu == m->lu;
}

/* §11.5.1: ABORT TASK is a new allegiance, too: the status is sent again, and then
 * the response. */
static void resend_and_complete(struct tgt_tmf *m)
{
	tgt_reassign(tgt_task_find(m->session, m->rtt), m->conn, 0, NULL);
	tgt_tmf_end(m, ISCSI_TMF_COMPLETE);
}

/* §11.6.1 a), b), c) */
/* [RFC 7143: 7.11 #3, 11.5.1 #9-10] */
void tgt_tmf_abort_task(struct tgt_tmf *m)
{
	struct tgt_session *s = m->session;
	const struct tgt_scope scope = {
		.session = s,
		.one_task = true,
		.itt = m->rtt,
	};

	if (find_referenced(m)) {
		abort_local(m, &scope);
	} else if (waits_for_reassignment(m)) {
		resend_and_complete(m);
	} else if (is_tmf(s, m->rtt)) {
		tgt_tmf_end(m, ISCSI_TMF_REJECTED); /* §11.5.1 */
	} else if (is_missing(m)) {
		complete_and_skip(m);
	} else {
		tgt_tmf_end(m, ISCSI_TMF_NO_TASK);
	}
}

/* [RFC 7144: 6.3 #8-9] */
void tgt_tmf_query_task(struct tgt_tmf *m)
{
	if (is_tmf(m->session, m->rtt) && m->rtt != m->itt)
		tgt_tmf_end(m, ISCSI_TMF_REJECTED); /* RFC 7144 §6.3 */
	else if (find_referenced(m))
		tgt_tmf_end(m, ISCSI_TMF_SUCCEEDED);
	else if (is_missing(m))
		complete_and_skip(m); /* RFC 7144 §6.3.3 */
	else
		tgt_tmf_end(m, ISCSI_TMF_COMPLETE);
}

void tgt_tmf_query_task_set(struct tgt_tmf *m)
{
	uint8_t response = ISCSI_TMF_COMPLETE;

	list_for_each(it, &m->session->tasks.active) {
		struct tgt_task *t = list_entry(it, struct tgt_task, link);

		if (t->lu == m->lu && t->state != TGT_TASK_RESPONSE)
			response = ISCSI_TMF_SUCCEEDED;
	}
	tgt_tmf_end(m, response);
}

void tgt_tmf_query_async_event(struct tgt_tmf *m)
{
	bool any = dev_nexus_attention(m->session->nexus, m->lun, m->info);

	tgt_tmf_end(m, any ? ISCSI_TMF_SUCCEEDED : ISCSI_TMF_COMPLETE);
}

/* RFC 7144 §6.3: I_T nexus loss; all connections of the session are dropped. */
/* [RFC 7144: 6.3 #10, 6.5 #1] */
void tgt_tmf_nexus_reset(struct tgt_tmf *m)
{
	const struct tgt_scope scope = { .session = m->session };

	abort_local(m, &scope);
}

/* [RFC 7144: 6.3 #4 #11-13] */
void tgt_tmf_after_nexus_reset(struct tgt_tmf *m)
{
	struct tgt_session *s = m->session;

	tgt_tmf_end(m, ISCSI_TMF_COMPLETE);
	tgt_session_drop(s, DM_TERMINATE_AFTER_SENT, ERR_TERMINATED);
}

/* SAM-5 §7.4: CLEAR ACA aborts the tasks with the ACA attribute. */
void tgt_tmf_clear_aca(struct tgt_tmf *m)
{
	const struct tgt_scope scope = {
		.session = m->session,
		.lu = m->lu,
		.aca = true,
	};

	abort_local(m, &scope);
}

static void aca_cleared(void *arg, int err)
{
	struct tgt_tmf *m = arg;

	m->worker->messages--;
	tgt_tmf_end(m, err ? ISCSI_TMF_REJECTED : ISCSI_TMF_COMPLETE);
}

void tgt_tmf_after_clear_aca(struct tgt_tmf *m)
{
	m->worker->messages++;
	dev_nexus_clear_aca(m->session->nexus, m->lun, aca_cleared, m);
}

void tgt_tmf_reject_function(struct tgt_tmf *m)
{
	tgt_tmf_end(m, ISCSI_TMF_NOT_SUPPORTED);
}

/* The task's connection, which was logged out for recovery by itself, is gone: it may
 * still be closing. */
bool tgt_tmf_is_gone(const struct tgt_tmf *m)
{
	const struct tgt_task *t = tgt_task_find(m->session, m->rtt);
	struct tgt_conn *c = t ? t->conn : NULL;

	if (!c || !c->dm || !c->end.logged_out)
		return true;
	tgt_conn_end(c, DM_TERMINATE_NOW, ERR_TERMINATED);
	return false;
}

/* §11.5.1: it is an immediate request, and not for task management functions. The
 * response comes before the reassignment. */
/* [RFC 7143: 7.2.2 #6, 11.5.1 #15-18, 11.6 #1] */
void tgt_tmf_reassign_task(struct tgt_tmf *m)
{
	struct tgt_conn *c = m->conn;
	const struct dm_remote remote = m->remote;
	uint32_t exp_datasn = m->exp_datasn;
	struct tgt_task *t;
	uint8_t response = tgt_reassign_check(m->session, m->rtt, &t);

	if (response != ISCSI_TMF_NO_REASSIGN &&
	    (!m->immediate || is_tmf(m->session, m->rtt))) {
		response = ISCSI_TMF_REJECTED;
		t = NULL;
	}
	tgt_tmf_end(m, response);
	if (t && tgt_conn_open(c))
		tgt_reassign(t, c, exp_datasn, &remote);
}
