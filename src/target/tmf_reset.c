/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tmf_reset.c: task management functions that reach other sessions (RFC 7143 §11.5, §4.2.3).
 * Such a function sends a message to every worker; its response follows when the last worker
 * reports that no affected task is left.
 */
#include <limits.h>
#include <stdlib.h>

#include "base/err.h"
#include "target/tmf.h"

static void post_part(struct tgt_worker *from, unsigned worker,
		      struct tgt_tmf_part *p, void (*run)(struct dev_msg *m))
{
	const struct dev_env *env = &from->tgt->cfg.env;

	p->msg.run = run;
	env->post(env->arg, worker, &p->msg);
}

static void abort_part_back(struct dev_msg *msg)
{
	struct tgt_tmf *m = container_of(msg, struct tgt_tmf_part, msg)->tmf;

	if (--m->pending)
		return;
	m->worker->messages--;
	tgt_tmf_tasks_ended(m);
}

/* [RFC 7143: 4.2.3.6 #1] */
static void abort_part_done(struct tgt_abort *a)
{
	struct tgt_tmf_part *p = container_of(a, struct tgt_tmf_part, abort);

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
	struct tgt_tmf_part *p = container_of(msg, struct tgt_tmf_part, msg);
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

/* ---- turns ---- */

/* Functions that end the commands of all initiators have turns (dev_lu_reset_turn): otherwise
 * one initiator could repeat them so fast that no command of another one ends. A function
 * whose turn has not come does all that a later one of the session asks for: the later one
 * ends with it (SAM-5 §7.7: each response follows a reset that began after the request). */

static bool asks_for_same(const struct tgt_tmf *m, const struct tgt_tmf *o)
{
	return o->function == m->function && (!m->row->on_lu || o->lu == m->lu);
}

static struct tgt_tmf *find_waiting(const struct tgt_tmf *m)
{
	list_for_each(it, &m->session->tmfs) {
		struct tgt_tmf *o = list_entry(it, struct tgt_tmf, link);

		if (o->reset.turn.waits && asks_for_same(m, o))
			return o;
	}
	return NULL;
}

static void turn_came(struct dev_msg *msg)
{
	struct tgt_tmf *m = container_of(msg, struct tgt_tmf, reset.turn.msg);

	m->worker->messages--;
	m->reset.turn.waits = false;
	if (m->session)
		m->row->in_turn(m);
	else
		tgt_tmf_end(m, ISCSI_TMF_REJECTED); /* nothing is sent */
}

/* Returns in how many milliseconds the last of the units of the function has its turn. */
static unsigned turn_of(const struct tgt_tmf *m)
{
	const struct dev_nexus *n = m->session->nexus;
	struct dev_lu *lu = dev_nexus_unit(n, m->lun);
	unsigned ms = 0;

	if (m->row->on_lu)
		return lu ? dev_lu_reset_turn(lu, m->worker->index) : 0;
	for (unsigned lun = 0; lun < TGT_UNITS; lun++) {
		unsigned its;

		lu = dev_nexus_unit(n, dev_lun_encode((uint16_t)lun));
		its = lu ? dev_lu_reset_turn(lu, m->worker->index) : 0;
		ms = MAX(ms, its);
	}
	return ms;
}

void tgt_tmf_take_turn(struct tgt_tmf *m)
{
	const struct dev_env *env = &m->worker->tgt->cfg.env;
	struct tgt_tmf *first = find_waiting(m);
	unsigned ms;

	if (first) {
		list_push_back(&first->reset.turn.followers,
			       &m->reset.turn.followers);
		if (sn_lt(first->cmdsn, m->cmdsn))
			first->cmdsn = m->cmdsn;
		return;
	}
	ms = turn_of(m);
	if (!ms) {
		m->row->in_turn(m);
		return;
	}
	m->reset.turn.waits = true;
	m->reset.turn.msg.run = turn_came;
	m->worker->messages++;
	env->later(env->arg, m->worker->index, ms, &m->reset.turn.msg);
}

/* ---- units and targets ---- */

/* Units of real devices are reset before their tasks are aborted, so that the
 * devices end the commands sooner. */
/* [RFC 7143: 4.2.3.3 #7, 4.2.3.4 #7, 11.5.1 #11] */
void tgt_tmf_reset_unit(struct tgt_tmf *m)
{
	struct dev_lu *lu = dev_nexus_unit(m->session->nexus, m->lun);

	if (lu)
		dev_lu_interrupt(lu, m->worker->index);
	abort_everywhere(m);
}

/* §11.5.1: a reset of the target is subject to access controls: it reaches the
 * units that the session can access, whichever other sessions can. */
/* [RFC 7143: 11.5.1 #12] */
void tgt_tmf_reset_target(struct tgt_tmf *m)
{
	m->reset.units = calloc(1, sizeof(*m->reset.units));
	if (!m->reset.units) {
		tgt_tmf_end(m, ISCSI_TMF_REJECTED);
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
void tgt_tmf_clear_task_set(struct tgt_tmf *m)
{
	const struct dev_lu *lu = dev_nexus_unit(m->session->nexus, m->lun);

	if (lu && dev_lu_own_task_sets(lu))
		tgt_tmf_abort_task_set(m);
	else
		tgt_tmf_take_turn(m);
}

/* The mode page may have changed meanwhile. */
void tgt_tmf_clear_in_turn(struct tgt_tmf *m)
{
	const struct dev_lu *lu = dev_nexus_unit(m->session->nexus, m->lun);
	struct tgt_tmf *f;

	if (!lu || !dev_lu_own_task_sets(lu)) {
		abort_everywhere(m);
		return;
	}
	while ((f = tgt_tmf_follower(m)))
		tgt_tmf_abort_task_set(f);
	tgt_tmf_abort_task_set(m);
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
	tgt_tmf_end(m, m->response);
}

void tgt_tmf_after_lu_reset(struct tgt_tmf *m)
{
	reset_units(m, m->unit, m->unit + 1, end_reset);
}

void tgt_tmf_after_warm_reset(struct tgt_tmf *m)
{
	reset_units(m, 0, UINT_MAX, end_reset);
}

static void drop_part_back(struct dev_msg *msg)
{
	struct tgt_tmf *m = container_of(msg, struct tgt_tmf_part, msg)->tmf;

	if (--m->pending)
		return;
	m->worker->messages--;
	tgt_tmf_free(m);
}

/* On each worker: drops the connections of the node's sessions. */
static void run_drop_part(struct dev_msg *msg)
{
	struct tgt_tmf_part *p = container_of(msg, struct tgt_tmf_part, msg);
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
	m->last = drop_all;
	tgt_tmf_end(m, m->response);
}

/* [RFC 7143: 11.5.1 #13, 11.6.1 #1] */
void tgt_tmf_after_cold_reset(struct tgt_tmf *m)
{
	reset_units(m, 0, UINT_MAX, cold_reset_done);
}
