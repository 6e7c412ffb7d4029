/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tmf.c: begin of task management functions, and the table of them (RFC 7143 §11.5, §4.2.3;
 * RFC 7144 §6.3).
 */
#include <stdlib.h>

#include "base/err.h"
#include "target/tmf.h"

#define TMFS_MAX 32 /* in progress in one session */

static const struct tgt_tmf_row rows[] = {
	[ISCSI_TMF_ABORT_TASK] = {
		.name = "ABORT TASK", .on_lu = true, .run = tgt_tmf_abort_task,
	},
	[ISCSI_TMF_ABORT_TASK_SET] = {
		.name = "ABORT TASK SET", .on_lu = true, .waits = true, .fenced = true,
		.run = tgt_tmf_abort_task_set,
	},
	[ISCSI_TMF_CLEAR_ACA] = {
		.name = "CLEAR ACA", .on_lu = true, .fenced = true,
		.run = tgt_tmf_clear_aca, .after = tgt_tmf_after_clear_aca,
	},
	[ISCSI_TMF_CLEAR_TASK_SET] = {
		.name = "CLEAR TASK SET", .on_lu = true, .waits = true, .fenced = true,
		.run = tgt_tmf_clear_task_set, .in_turn = tgt_tmf_clear_in_turn,
	},
	[ISCSI_TMF_LU_RESET] = {
		.name = "LOGICAL UNIT RESET", .on_lu = true, .waits = true, .fenced = true,
		.run = tgt_tmf_take_turn, .in_turn = tgt_tmf_reset_unit,
		.after = tgt_tmf_after_lu_reset,
	},
	[ISCSI_TMF_TARGET_WARM_RESET] = {
		.name = "TARGET WARM RESET", .skips = true, .fenced = true,
		.run = tgt_tmf_take_turn, .in_turn = tgt_tmf_reset_target,
		.after = tgt_tmf_after_warm_reset,
	},
	[ISCSI_TMF_TARGET_COLD_RESET] = {
		.name = "TARGET COLD RESET", .skips = true, .drops = true,
		.fenced = true,
		.run = tgt_tmf_take_turn, .in_turn = tgt_tmf_reset_target,
		.after = tgt_tmf_after_cold_reset,
	},
	[ISCSI_TMF_TASK_REASSIGN] = {
		.name = "TASK REASSIGN", .ready = tgt_tmf_is_gone,
		.run = tgt_tmf_reassign_task,
	},
	[ISCSI_TMF_QUERY_TASK] = {
		.name = "QUERY TASK", .on_lu = true, .level2 = true,
		.run = tgt_tmf_query_task,
	},
	[ISCSI_TMF_QUERY_TASK_SET] = {
		.name = "QUERY TASK SET", .on_lu = true, .level2 = true,
		.run = tgt_tmf_query_task_set,
	},
	[ISCSI_TMF_I_T_NEXUS_RESET] = {
		.name = "I_T NEXUS RESET", .level2 = true,
		.run = tgt_tmf_nexus_reset, .after = tgt_tmf_after_nexus_reset,
	},
	[ISCSI_TMF_QUERY_ASYNC_EVENT] = {
		.name = "QUERY ASYNCHRONOUS EVENT", .on_lu = true,
		.level2 = true, .run = tgt_tmf_query_async_event,
	},
};

static const struct tgt_tmf_row unknown_row = {
	.name = "unassigned function",
	.run = tgt_tmf_reject_function,
};

/* [RFC 7144: 4.1 #2] */
static const struct tgt_tmf_row *find_row(uint8_t function)
{
	if (function < ARRAY_LEN(rows) && rows[function].run)
		return &rows[function];
	return &unknown_row;
}

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
	m->fast = s->params.task_reporting == ISCSI_FAST_ABORT;
	list_init(&m->held.link);
	list_init(&m->reset.turn.followers);
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
		tgt_tmf_end(m, ISCSI_TMF_NOT_SUPPORTED);
	else if (m->row->on_lu && !m->lu)
		tgt_tmf_end(m, ISCSI_TMF_NO_LUN);
	else if (m->row->drops && has_maps(s)) /* §11.6.1 */
		tgt_tmf_end(m, ISCSI_TMF_AUTH_FAILED);
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
		tgt_tmf_respond(m); /* nothing is sent */
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
			tgt_tmf_respond(
				m); /* without a session, nothing is sent */
		else if (!m->started || m->aborting)
			tgt_tmf_free(
				m); /* others: the last part that comes back */
	}
	s->ntmfs = 0;
}
