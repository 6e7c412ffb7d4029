/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tmf.c: task management functions (RFC 7143 §11.5, §4.2.3; RFC 7144 §6.3).
 * A function that reaches other sessions sends a message to every worker; its
 * response follows when the last worker reports that no affected task is left.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "target/internal.h"

#define TMFS_MAX 32 /* in progress in one session */

/* The part of a function that one worker does. */
struct part {
	struct dev_msg msg; /* to the worker and back */
	struct tgt_tmf *tmf;
	unsigned worker;
	struct tgt_abort abort;
};

struct tgt_tmf;

/* Of resets. */
struct reset {
	/* of the target: the units that the session can access */
	struct tgt_units *units;
	/* the next unit, the end, and what follows the last unit */
	unsigned lun, end;
	void (*done)(struct tgt_tmf *m);
};

struct tgt_tmf {
	struct list link; /* session's tmfs */
	struct tgt_use use;
	struct tgt_session *session; /* NULL: it ended */
	struct tgt_conn *conn;	     /* for the response; NULL: it ended */
	struct tgt_worker *worker;
	struct tgt_node *node;
	/* of the LUN field: the unit, compared only (NULL: none), and its
	 * number */
	const struct dev_lu *lu;
	unsigned unit;
	const struct tmf_row *row;
	const void *issuer; /* the session, compared only */
	uint8_t function, response;
	uint8_t info[3]; /* Additional Response Information */
	bool immediate;
	bool fast; /* the session has FastAbort */
	uint32_t itt, rtt, cmdsn, ref_cmdsn, exp_datasn;
	struct dm_remote remote; /* of a TASK REASSIGN over RDMA */
	uint64_t lun;
	bool started;
	struct tgt_abort abort; /* of a function on this session only */
	bool aborting;		/* `abort` is in progress */
	struct tgt_held held;	/* the response, in fence.c */
	bool drops_all;		/* after it: the sessions of the target */
	struct reset reset;
	unsigned pending;    /* parts in progress */
	struct part parts[]; /* one per worker */
};

struct tmf_row {
	const char *name;
	bool on_lu;  /* the LUN field is used (§11.5.3) */
	bool level2; /* needs iSCSIProtocolLevel=2 (RFC 7144 §6.3) */
	bool waits;  /* for all commands before it (§4.2.3.3 b) */
	bool skips;  /* counts the missing ones as received instead */
	bool drops;  /* drops all sessions of the target */
	bool fenced; /* its response has the Response Fence */
	bool (*ready)(const struct tgt_tmf *m); /* may start; or NULL */
	void (*run)(struct tgt_tmf *m);
	void (*after)(struct tgt_tmf *m); /* the tasks have ended; or NULL */
};

/* ---- end of a function ---- */

/* [RFC 7143: 11.5.1 #1, 11.6.2 #1] */
/* [RFC 7144: 6.3 #3] */
static struct tgt_conn *send_response(struct tgt_tmf *m)
{
	struct tgt_session *s = m->session;
	struct dm_control ctl = { .data = NULL };

	if (!s)
		return NULL;
	list_del(&m->link);
	s->ntmfs--;
	m->session = NULL;
	if (!m->conn || !tgt_conn_open(m->conn))
		return NULL;
	conn_trace(m->conn, TRACE_TMF, "%s of LUN %llx: response %u",
		   m->row->name, (unsigned long long)m->lun, m->response);
	ctl.pdu = (struct iscsi_pdu){
		.op = ISCSI_TMF_RESPONSE,
		.final = true,
		.itt = m->itt,
		.ttt = ISCSI_RESERVED_TAG,
	};
	ctl.pdu.tmf_response = m->response;
	memcpy(ctl.pdu.tmf_info, m->info, sizeof(m->info));
	tgt_conn_send(m->conn, &ctl);
	return m->conn;
}

static void free_tmf(struct tgt_tmf *m)
{
	tgt_use_end(m->worker, &m->use);
	free(m->reset.units);
	free(m);
}

static void drop_all(struct tgt_tmf *m);

/* Sends the response, and then ends the function; m may be free afterwards. */
static struct tgt_conn *respond(struct tgt_tmf *m)
{
	struct tgt_conn *c = send_response(m);

	if (m->drops_all)
		drop_all(m);
	else
		free_tmf(m);
	return c;
}

static struct tgt_conn *send_held(struct tgt_held *h)
{
	return respond(container_of(h, struct tgt_tmf, held));
}

/* The other functions on no unit are not ordered with statuses: TASK REASSIGN makes
 * those possible for which a fence waits, and I_T NEXUS RESET ends them. */
static bool is_ordered(const struct tgt_tmf *m)
{
	return m->row->on_lu || m->row->fenced;
}

/* [RFC 7143: 4.2.3.3 #8, 4.2.3.4 #12 #15] */
static void end_tmf(struct tgt_tmf *m, uint8_t response)
{
	m->response = response;
	m->started = true; /* even if it only failed */
	m->held.lu = m->row->on_lu ? m->lu : NULL;
	m->held.send = send_held;
	if (!m->conn || !m->session || !is_ordered(m) ||
	    !tgt_fence_holds(m->session, &m->held, m->row->fenced))
		respond(m);
}

/* The affected tasks have ended: the rest of the function, then the response. */
/* [RFC 7143: 4.2.3.3 #10] */
static void tasks_ended(struct tgt_tmf *m)
{
	if (m->row->after)
		m->row->after(m);
	else
		end_tmf(m, ISCSI_TMF_COMPLETE);
}

/* ---- functions on this session only ---- */

static void local_abort_done(struct tgt_abort *a)
{
	struct tgt_tmf *m = container_of(a, struct tgt_tmf, abort);

	m->aborting = false;
	tasks_ended(m);
}

static void abort_local(struct tgt_tmf *m, const struct tgt_scope *scope)
{
	m->aborting = true;
	tgt_abort_start(m->worker, &m->abort, scope, local_abort_done);
}

static bool is_fast(const struct tgt_session *s)
{
	return s->params.task_reporting == ISCSI_FAST_ABORT;
}

/* [RFC 7143: 4.2.3.3 #1, 4.2.3.4 #1] */
static void abort_task_set(struct tgt_tmf *m)
{
	const struct tgt_scope scope = {
		.session = m->session,
		.lu = m->lu,
		.before = true,
		.cmdsn = m->cmdsn,
		.wait_session = m->session,
		.fast = is_fast(m->session),
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

	end_tmf(m, ISCSI_TMF_COMPLETE);
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
	end_tmf(m, ISCSI_TMF_COMPLETE);
}

/* §11.6.1 a), b), c) */
/* [RFC 7143: 7.11 #3, 11.5.1 #9-10] */
static void abort_task(struct tgt_tmf *m)
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
		end_tmf(m, ISCSI_TMF_REJECTED); /* §11.5.1 */
	} else if (is_missing(m)) {
		complete_and_skip(m);
	} else {
		end_tmf(m, ISCSI_TMF_NO_TASK);
	}
}

/* [RFC 7144: 6.3 #8-9] */
static void query_task(struct tgt_tmf *m)
{
	if (is_tmf(m->session, m->rtt) && m->rtt != m->itt)
		end_tmf(m, ISCSI_TMF_REJECTED); /* RFC 7144 §6.3 */
	else if (find_referenced(m))
		end_tmf(m, ISCSI_TMF_SUCCEEDED);
	else if (is_missing(m))
		complete_and_skip(m); /* RFC 7144 §6.3.3 */
	else
		end_tmf(m, ISCSI_TMF_COMPLETE);
}

static void query_task_set(struct tgt_tmf *m)
{
	uint8_t response = ISCSI_TMF_COMPLETE;

	list_for_each(it, &m->session->tasks.active) {
		struct tgt_task *t = list_entry(it, struct tgt_task, link);

		if (t->lu == m->lu && t->state != TGT_TASK_RESPONSE)
			response = ISCSI_TMF_SUCCEEDED;
	}
	end_tmf(m, response);
}

static void query_async_event(struct tgt_tmf *m)
{
	bool any = dev_nexus_attention(m->session->nexus, m->lun, m->info);

	end_tmf(m, any ? ISCSI_TMF_SUCCEEDED : ISCSI_TMF_COMPLETE);
}

/* RFC 7144 §6.3: I_T nexus loss; all connections of the session are dropped. */
/* [RFC 7144: 6.3 #10, 6.5 #1] */
static void nexus_reset(struct tgt_tmf *m)
{
	const struct tgt_scope scope = { .session = m->session };

	abort_local(m, &scope);
}

/* [RFC 7144: 6.3 #4 #11-13] */
static void after_nexus_reset(struct tgt_tmf *m)
{
	struct tgt_session *s = m->session;

	end_tmf(m, ISCSI_TMF_COMPLETE);
	tgt_session_drop(s, DM_TERMINATE_AFTER_SENT, ERR_TERMINATED);
}

/* SAM-5 §7.4: CLEAR ACA aborts the tasks with the ACA attribute. */
static void clear_aca(struct tgt_tmf *m)
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
	end_tmf(m, err ? ISCSI_TMF_REJECTED : ISCSI_TMF_COMPLETE);
}

static void after_clear_aca(struct tgt_tmf *m)
{
	m->worker->messages++;
	dev_nexus_clear_aca(m->session->nexus, m->lun, aca_cleared, m);
}

static void reject_function(struct tgt_tmf *m)
{
	end_tmf(m, ISCSI_TMF_NOT_SUPPORTED);
}

/* The task's connection, which was logged out for recovery by itself, is gone: it may
 * still be closing. */
static bool is_gone(const struct tgt_tmf *m)
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
static void reassign_task(struct tgt_tmf *m)
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
	end_tmf(m, response);
	if (t && tgt_conn_open(c))
		tgt_reassign(t, c, exp_datasn, &remote);
}

/* ---- functions on all sessions of all workers ---- */

static void post_part(struct tgt_worker *from, unsigned worker, struct part *p,
		      void (*run)(struct dev_msg *m))
{
	const struct dev_env *env = &from->tgt->cfg.env;

	p->msg.run = run;
	env->post(env->arg, worker, &p->msg);
}

static void abort_part_back(struct dev_msg *msg)
{
	struct tgt_tmf *m = container_of(msg, struct part, msg)->tmf;

	if (--m->pending)
		return;
	m->worker->messages--;
	tasks_ended(m);
}

/* [RFC 7143: 4.2.3.6 #1] */
static void abort_part_done(struct tgt_abort *a)
{
	struct part *p = container_of(a, struct part, abort);

	post_part(a->worker, p->tmf->worker->index, p, abort_part_back);
}

/* SPC-4 §5.5.2 with TAS = 0: a unit attention reports to each other initiator that its
 * commands were cleared. */
static void set_attentions(struct tgt_worker *w, const struct tgt_tmf *m,
			   const struct tgt_scope *scope)
{
	list_for_each(it, &w->sessions) {
		struct tgt_session *s =
			list_entry(it, struct tgt_session, link);

		if (s != m->issuer && s->nexus)
			tgt_abort_attention(s, scope);
	}
}

/* On each worker: aborts the affected tasks of its sessions. */
static void run_abort_part(struct dev_msg *msg)
{
	struct part *p = container_of(msg, struct part, msg);
	const struct tgt_tmf *m = p->tmf;
	const struct tgt_scope scope = {
		/* also of other targets, since a unit may be in several */
		.lu = m->row->on_lu ? m->lu : NULL,
		.units = m->reset.units,
		.report_abort = true,
		.issuer = m->issuer,
		.wait_session = m->issuer,
		/* §11.5.1: only resets reach commands after the function */
		.before = m->function == ISCSI_TMF_CLEAR_TASK_SET,
		.cmdsn = m->cmdsn,
		.fast = m->fast,
	};
	struct tgt_worker *w = &m->worker->tgt->workers[p->worker];

	if (m->function == ISCSI_TMF_CLEAR_TASK_SET)
		set_attentions(w, m, &scope);
	tgt_abort_tell(w, &scope, m->conn);
	tgt_abort_start(w, &p->abort, &scope, abort_part_done);
}

static void on_all_workers(struct tgt_tmf *m, void (*run)(struct dev_msg *m))
{
	unsigned n = m->worker->tgt->cfg.env.nworkers;

	m->pending = n;
	m->worker->messages++;
	for (unsigned i = 0; i < n; i++)
		post_part(m->worker, i, &m->parts[i], run);
}

static void abort_everywhere(struct tgt_tmf *m)
{
	on_all_workers(m, run_abort_part);
}

/* Units of real devices are reset before their tasks are aborted, so that the
 * devices end the commands sooner. */
/* [RFC 7143: 4.2.3.3 #7, 4.2.3.4 #7, 11.5.1 #11] */
static void reset_unit(struct tgt_tmf *m)
{
	struct dev_lu *lu = dev_nexus_unit(m->session->nexus, m->lun);

	if (lu)
		dev_lu_interrupt(lu, m->worker->index);
	abort_everywhere(m);
}

/* §11.5.1: a reset of the target is subject to access controls: it reaches the
 * units that the session can access, whichever other sessions can. */
/* [RFC 7143: 11.5.1 #12] */
static void reset_target(struct tgt_tmf *m)
{
	m->reset.units = calloc(1, sizeof(*m->reset.units));
	if (!m->reset.units) {
		end_tmf(m, ISCSI_TMF_REJECTED);
		return;
	}
	for (unsigned lun = 0; lun < TGT_UNITS; lun++) {
		struct dev_lu *lu = dev_nexus_unit(
			m->session->nexus, dev_lun_encode((uint16_t)lun));

		if (!lu)
			continue;
		m->reset.units->bits[dev_lu_lun(lu) / 8] |=
			(uint8_t)(1u << dev_lu_lun(lu) % 8);
		dev_lu_interrupt(lu, m->worker->index);
	}
	abort_everywhere(m);
}

/* §11.5.1: the TST field of the control mode page (SPC-4 §7.5.8) says whether the
 * task set is this session's or shared. */
/* [RFC 7143: 4.2.3.3 #7, 4.2.3.4 #7] */
static void clear_task_set(struct tgt_tmf *m)
{
	const struct dev_lu *lu = dev_nexus_unit(m->session->nexus, m->lun);

	if (lu && dev_lu_own_task_sets(lu))
		abort_task_set(m);
	else
		abort_everywhere(m);
}

/* ---- resets of the state of units, one unit after the other ---- */

static void reset_next(struct tgt_tmf *m);

static void unit_was_reset(void *arg, int err)
{
	struct tgt_tmf *m = arg;

	if (err)
		m->response = ISCSI_TMF_REJECTED;
	reset_next(m);
}

static void reset_next(struct tgt_tmf *m)
{
	struct dev_server *server = m->worker->tgt->cfg.server;
	struct dev_lu *lu = dev_lu_from(server, m->reset.lun);

	while (lu && m->reset.units &&
	       !tgt_units_have(m->reset.units, dev_lu_lun(lu)))
		lu = dev_lu_from(server, dev_lu_lun(lu) + 1u);
	if (!lu || dev_lu_lun(lu) >= m->reset.end) {
		m->worker->messages--;
		m->reset.done(m);
		return;
	}
	m->reset.lun = dev_lu_lun(lu) + 1u;
	if (!m->row->on_lu) /* of the target: a hard reset of SAM-2 */
		dev_lu_hard_reset(lu);
	if (dev_lu_reset_state(lu, m->worker->index, unit_was_reset, m))
		unit_was_reset(m, ERR_NOMEM);
}

static void reset_units(struct tgt_tmf *m, unsigned first, unsigned end,
			void (*done)(struct tgt_tmf *m))
{
	m->response = ISCSI_TMF_COMPLETE;
	m->reset.lun = first;
	m->reset.end = end;
	m->reset.done = done;
	m->worker->messages++;
	reset_next(m);
}

static void end_reset(struct tgt_tmf *m)
{
	end_tmf(m, m->response);
}

static void after_lu_reset(struct tgt_tmf *m)
{
	reset_units(m, m->unit, m->unit + 1, end_reset);
}

static void after_warm_reset(struct tgt_tmf *m)
{
	reset_units(m, 0, UINT_MAX, end_reset);
}

static void drop_part_back(struct dev_msg *msg)
{
	struct tgt_tmf *m = container_of(msg, struct part, msg)->tmf;

	if (--m->pending)
		return;
	m->worker->messages--;
	free_tmf(m);
}

/* On each worker: drops the connections of the node's sessions. */
static void run_drop_part(struct dev_msg *msg)
{
	struct part *p = container_of(msg, struct part, msg);
	const struct tgt_tmf *m = p->tmf;
	struct tgt_worker *w = &m->worker->tgt->workers[p->worker];

	list_for_each_safe(it, &w->sessions) {
		struct tgt_session *s =
			list_entry(it, struct tgt_session, link);

		if (s->node == m->node)
			tgt_session_drop(s, DM_TERMINATE_AFTER_SENT,
					 ERR_TERMINATED);
	}
	post_part(w, m->worker->index, p, drop_part_back);
}

static void drop_all(struct tgt_tmf *m)
{
	on_all_workers(m, run_drop_part);
}

/* §11.5.1: like a power-on event, which drops the connections of all initiators. */
static void cold_reset_done(struct tgt_tmf *m)
{
	m->drops_all = true;
	end_tmf(m, m->response);
}

/* [RFC 7143: 11.5.1 #13, 11.6.1 #1] */
static void after_cold_reset(struct tgt_tmf *m)
{
	reset_units(m, 0, UINT_MAX, cold_reset_done);
}

/* ---- table of functions ---- */

static const struct tmf_row rows[] = {
	[ISCSI_TMF_ABORT_TASK] = {
		.name = "ABORT TASK", .on_lu = true, .run = abort_task,
	},
	[ISCSI_TMF_ABORT_TASK_SET] = {
		.name = "ABORT TASK SET", .on_lu = true, .waits = true, .fenced = true,
		.run = abort_task_set,
	},
	[ISCSI_TMF_CLEAR_ACA] = {
		.name = "CLEAR ACA", .on_lu = true, .fenced = true,
		.run = clear_aca, .after = after_clear_aca,
	},
	[ISCSI_TMF_CLEAR_TASK_SET] = {
		.name = "CLEAR TASK SET", .on_lu = true, .waits = true, .fenced = true,
		.run = clear_task_set,
	},
	[ISCSI_TMF_LU_RESET] = {
		.name = "LOGICAL UNIT RESET", .on_lu = true, .waits = true, .fenced = true,
		.run = reset_unit, .after = after_lu_reset,
	},
	[ISCSI_TMF_TARGET_WARM_RESET] = {
		.name = "TARGET WARM RESET", .skips = true, .fenced = true,
		.run = reset_target, .after = after_warm_reset,
	},
	[ISCSI_TMF_TARGET_COLD_RESET] = {
		.name = "TARGET COLD RESET", .skips = true, .drops = true,
		.fenced = true,
		.run = reset_target, .after = after_cold_reset,
	},
	[ISCSI_TMF_TASK_REASSIGN] = {
		.name = "TASK REASSIGN", .ready = is_gone,
		.run = reassign_task,
	},
	[ISCSI_TMF_QUERY_TASK] = {
		.name = "QUERY TASK", .on_lu = true, .level2 = true,
		.run = query_task,
	},
	[ISCSI_TMF_QUERY_TASK_SET] = {
		.name = "QUERY TASK SET", .on_lu = true, .level2 = true,
		.run = query_task_set,
	},
	[ISCSI_TMF_I_T_NEXUS_RESET] = {
		.name = "I_T NEXUS RESET", .level2 = true,
		.run = nexus_reset, .after = after_nexus_reset,
	},
	[ISCSI_TMF_QUERY_ASYNC_EVENT] = {
		.name = "QUERY ASYNCHRONOUS EVENT", .on_lu = true,
		.level2 = true, .run = query_async_event,
	},
};

static const struct tmf_row unknown_row = {
	.name = "unassigned function",
	.run = reject_function,
};

/* [RFC 7144: 4.1 #2] */
static const struct tmf_row *find_row(uint8_t function)
{
	if (function < ARRAY_LEN(rows) && rows[function].run)
		return &rows[function];
	return &unknown_row;
}

/* ---- begin of a function ---- */

static struct tgt_tmf *tmf_new(struct tgt_conn *c, const struct dm_control *ctl)
{
	const struct iscsi_pdu *pdu = &ctl->pdu;
	struct tgt_session *s = c->session;
	unsigned n = s->worker->tgt->cfg.env.nworkers;
	struct tgt_tmf *m = calloc(1, sizeof(*m) + n * sizeof(m->parts[0]));

	if (!m)
		return NULL;
	m->session = s;
	m->conn = c;
	m->issuer = s;
	m->worker = s->worker;
	m->node = s->node;
	m->function = pdu->tmf.function;
	m->row = find_row(pdu->tmf.function);
	m->itt = pdu->itt;
	m->rtt = pdu->tmf.rtt;
	m->cmdsn = pdu->cmdsn;
	m->ref_cmdsn = pdu->tmf.ref_cmdsn;
	m->exp_datasn = pdu->tmf.exp_datasn;
	if (ctl->remote)
		m->remote = *ctl->remote;
	m->immediate = pdu->immediate;
	m->lun = pdu->lun;
	m->fast = is_fast(s);
	list_init(&m->held.link);
	m->lu = s->nexus ? dev_nexus_unit(s->nexus, pdu->lun) : NULL;
	m->unit = m->lu ? dev_lu_lun(m->lu) : 0;
	for (unsigned i = 0; i < n; i++) {
		m->parts[i].tmf = m;
		m->parts[i].worker = i;
	}
	list_push_back(&s->tmfs, &m->link);
	tgt_use_begin(s->worker, &m->use);
	s->ntmfs++;
	return m;
}

/* Starts the function unless it waits for commands before it; true: it has
 * started, and m may be free. */
/* [RFC 7143: 4.2.2.1 #4, 4.2.3.3 #6, 4.2.3.4 #6] */
static bool try_start(struct tgt_tmf *m)
{
	struct tgt_session *s = m->session;

	if (m->row->waits && sn_lt(s->window.expcmdsn, m->cmdsn))
		return false;
	if (m->row->ready && !m->row->ready(m))
		return false;
	m->started = true;
	m->row->run(m);
	return true;
}

/* [RFC 7143: 4.2.3.3 #1, 13.23 #6] */
void tgt_tmf_check(struct tgt_session *s)
{
	bool again;

	do {
		again = false;
		list_for_each(it, &s->tmfs) {
			struct tgt_tmf *m =
				list_entry(it, struct tgt_tmf, link);

			if (!m->started && try_start(m)) {
				again = true; /* the list may have changed */
				break;
			}
		}
	} while (again);
}

/* Returns whether initiators of the target have LUN maps of their own: then one
 * initiator must not drop the sessions of another. */
static bool has_maps(const struct tgt_session *s)
{
	const struct tgt_target *t =
		tgt_directory_target(s->worker->directory, s->node->name);

	return t && t->nmasks;
}

/* [RFC 7144: 4.1 #1] */
static void start_tmf(struct tgt_tmf *m)
{
	struct tgt_session *s = m->session;
	bool old = s->params.protocol_level < 2;

	if (m->row->level2 && old)
		end_tmf(m, ISCSI_TMF_NOT_SUPPORTED);
	else if (m->row->on_lu && !m->lu)
		end_tmf(m, ISCSI_TMF_NO_LUN);
	else if (m->row->drops && has_maps(s)) /* §11.6.1 */
		end_tmf(m, ISCSI_TMF_AUTH_FAILED);
	else if (m->row->skips && sn_lt(s->window.expcmdsn, m->cmdsn)) {
		m->started = true; /* tgt_tmf_check must not start it, too */
		tgt_order_skip_to(s, m->cmdsn);
		m->row->run(m);
	} else {
		try_start(m);
	}
}

/* [RFC 7143: 4.2.2.1 #5] */
int tgt_tmf(struct tgt_conn *c, const struct dm_control *ctl)
{
	struct tgt_session *s = c->session;
	const struct iscsi_pdu *pdu = &ctl->pdu;
	struct tgt_tmf *m;

	/* an immediate request has the CmdSN of the next command */
	if (pdu->immediate && sn_lt(s->window.maxcmdsn + 1, pdu->cmdsn))
		return tgt_reject(c, ISCSI_REJECT_INVALID_PDU_FIELD, ctl->bhs,
				  "CmdSN beyond the window (§4.2.2.1)");
	m = s->ntmfs < TMFS_MAX ? tmf_new(c, ctl) : NULL;
	if (!m)
		return tgt_reject(c, ISCSI_REJECT_TOO_MANY_IMMEDIATE, ctl->bhs,
				  "too many task management functions");
	c->worker->stats.total.functions++;
	start_tmf(m);
	return 0;
}

void tgt_tmf_forget_conn(struct tgt_session *s, const struct tgt_conn *c)
{
	list_for_each_safe(it, &s->tmfs) {
		struct tgt_tmf *m = list_entry(it, struct tgt_tmf, link);

		if (m->conn != c)
			continue;
		m->conn = NULL;
		if (!tgt_is_held(&m->held))
			continue;
		tgt_fence_forget(s, &m->held);
		respond(m); /* nothing is sent */
	}
}

void tgt_tmf_forget(struct tgt_session *s)
{
	struct list *n;

	while ((n = list_pop_front(&s->tmfs))) {
		struct tgt_tmf *m = list_entry(n, struct tgt_tmf, link);

		bool held = tgt_is_held(&m->held);

		tgt_fence_forget(s, &m->held);
		m->session = NULL;
		if (m->aborting)
			tgt_abort_cancel(&m->abort);
		if (held)
			respond(m); /* without a session, nothing is sent */
		else if (!m->started || m->aborting)
			free_tmf(m); /* others: the last part that comes back */
	}
	s->ntmfs = 0;
}
