/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * aca.c: the consequences of a CHECK CONDITION: QERR (SAM-5 §5.9.3, SPC-4 §7.5.8)
 * and auto contingent allegiance (SAM-5 §5.10).
 *
 * If each nexus has a task set of its own (TST = 001b), an ACA is a byte of the
 * faulted nexus. If all nexuses share one, the ACA blocks all of them: it is
 * established and cleared by a change (lu_change.h), which visits every worker, and
 * the command that causes the ACA ends after that. Without an ACA a command reads
 * one number of its nexus.
 *
 * A blocked command that is in the backstore is not aborted there; it is kept from
 * ending.
 */
#include <stdlib.h>

#include "device/order/taskset.h"
#include "device/unit/command.h"
#include "device/unit/itl.h"
#include "device/unit/lu_change.h"
#include "device/unit/lu_life.h"

/* dev_itl.aca: the ACA that blocks tasks of the nexus at a unit. */
#define ACA_OWN	    0x1u /* the nexus is faulted; the task set is its own */
#define ACA_FAULTED 0x2u /* the nexus is faulted; the task set is shared */
#define ACA_OTHERS  0x4u /* another nexus is faulted, in the shared set */
#define ACA_MINE    (ACA_OWN | ACA_FAULTED)

static uint8_t aca_of(const struct dev_task *t)
{
	return t->lu ? t->own.begun.itl->aca : 0;
}

static void set_aca(struct dev_itl *i, unsigned aca)
{
	struct dev_nexus *n = i->nexus;
	bool was = i->aca != 0;

	i->aca = (uint8_t)aca;
	n->naca += (uint32_t)(aca != 0) - was;
	if (was && !aca)
		dev_set_wake(n);
}

/* ---- commands that begin while there is an ACA ---- */

static bool has_aca_task(const struct dev_task *t)
{
	list_for_each(it, &t->nexus->tasks) {
		const struct dev_task *other =
			list_entry(it, struct dev_task, order.in_set);

		if (other != t && other->lu == t->lu &&
		    other->attr == DEV_ATTR_ACA)
			return true;
	}
	return false;
}

/* refuse_task ends t, which does not enter the task set. */
static bool refuse_task(struct dev_task *t, enum scsi_status status)
{
	dev_set_leave(t);
	return dev_end(t, status);
}

static bool is_preempt_and_abort(const struct dev_task *t)
{
	return t->cdb[0] == SCSI_PERSISTENT_RESERVE_OUT &&
	       (t->cdb[1] & 0x1f) == SCSI_PROUT_PREEMPT_AND_ABORT;
}

/* may_pass returns whether a command of the faulted nexus may execute during the
 * ACA (§5.10.3; SPC-4 §7.5.8: TMF_ONLY). */
static bool may_pass(const struct dev_task *t)
{
	return t->attr == DEV_ATTR_ACA && !has_aca_task(t) &&
	       !DEV_CTL(t->lu, tmf_only);
}

/* §5.10.3 on the faulted nexus, §5.10.4 on others that share its task set. */
bool dev_aca_refuses(struct dev_task *t)
{
	uint8_t aca = aca_of(t);

	if (t->attr > DEV_ATTR_ACA)
		return dev_check(t, SENSE_ILLEGAL_REQUEST,
				 ASC_INVALID_FIELD_IN_IU);
	if (!aca && t->attr == DEV_ATTR_ACA)
		return dev_check(t, SENSE_ILLEGAL_REQUEST, ASC_INVALID_MESSAGE);
	if (!aca)
		return false;
	if (aca & ACA_MINE)
		t->order.past_aca = may_pass(t);
	else
		t->order.past_aca =
			t->attr != DEV_ATTR_ACA && is_preempt_and_abort(t);
	if (t->order.past_aca)
		return false;
	if (!(aca & ACA_MINE) && t->attr != DEV_ATTR_ACA && !dev_task_naca(t))
		return refuse_task(t, SCSI_BUSY);
	return refuse_task(t, SCSI_ACA_ACTIVE);
}

bool dev_aca_blocks(const struct dev_task *t)
{
	return aca_of(t) && !t->order.past_aca && list_linked(&t->order.in_set);
}

/* ---- putting a change in force: on each worker ---- */

static void set_itl(const struct dev_lu_change *u, struct dev_itl *i)
{
	const struct dev_nexus *n = i->nexus;
	unsigned aca = i->aca;

	if (u->reset || u->aca_of_all ||
	    (u->aborts && u->scope == ABORT_LISTED &&
	     dev_lu_change_is_due(u, n)))
		aca &= ~ACA_OWN;
	if (u->aca == ACA_CLEAR)
		aca &= ACA_OWN;
	else if (u->aca == ACA_ESTABLISH)
		aca = (aca & ACA_OWN) |
		      (n == u->nexus ? ACA_FAULTED : ACA_OTHERS);
	if (aca != i->aca)
		set_aca(i, aca);
}

void dev_aca_visit(const struct dev_lu_change *u, unsigned worker)
{
	if (u->aca != ACA_KEEP)
		u->lu->lanes[worker].faulted =
			u->aca == ACA_ESTABLISH ? u->nexus : NULL;
	list_for_each(it, &u->lu->lanes[worker].itls)
		set_itl(u, list_entry(it, struct dev_itl, link));
}

/* ---- the end of a command: its consequences ---- */

static enum dev_aca_change change_by(const struct dev_task *t)
{
	if (t->order.past_aca && t->attr != DEV_ATTR_ACA)
		return ACA_KEEP; /* t passed the ACA of another nexus */
	if (dev_task_naca(t))
		return ACA_ESTABLISH;
	return t->order.past_aca ? ACA_CLEAR : ACA_KEEP;
}

/* change_own changes the ACA of a task set that belongs to one nexus. False: all
 * nexuses share the task set, so the change has to visit every worker. */
static bool change_own(struct dev_task *t, enum dev_aca_change change)
{
	uint8_t aca = aca_of(t);

	if (change == ACA_KEEP)
		return true;
	if ((aca & ACA_FAULTED) ||
	    (change == ACA_ESTABLISH && !dev_lu_own_task_sets(t->lu)))
		return false;
	set_aca(t->own.begun.itl,
		change == ACA_ESTABLISH ? aca | ACA_OWN : aca & ~ACA_OWN);
	return true;
}

/* ---- changes of a shared task set ---- */

static void visit_aca(struct dev_change *c, unsigned worker)
{
	dev_aca_visit(dev_lu_change_of(c), worker);
	dev_lu_change_abort(dev_lu_change_of(c), worker);
}

/* A task set has one ACA at most: a command that fails while another nexus is the
 * faulted one is blocked. */
static void decide_fault(struct dev_change *c)
{
	struct dev_lu_change *u = dev_lu_change_of(c);
	const struct dev_nexus *f = u->lu->lanes[DEV_HOME].faulted;
	bool may = !f || (f == u->nexus && u->past_aca);

	u->status = SCSI_GOOD;
	if (u->aca == ACA_ESTABLISH && !may) {
		u->status = SCSI_ACA_ACTIVE;
		u->aca = ACA_KEEP;
		u->scope = ABORT_LISTED;
	}
	if (u->aca == ACA_CLEAR && f != u->nexus)
		u->aca = ACA_KEEP;
	u->aborts = u->scope != ABORT_LISTED;
	if (u->aborts || u->aca != ACA_KEEP)
		dev_lu_change_publish(u);
	else
		dev_change_end(c);
}

static void leave_and_complete(struct dev_task *t)
{
	dev_set_leave(t);
	dev_complete(t);
}

/* lose_aca: another nexus became the faulted one first. A command of the task set
 * waits until that ACA is cleared. A command that is not in the task set cannot
 * wait and ends here, because a second decision in the same turn would have the
 * same result. */
static void lose_aca(struct dev_task *t)
{
	t->order.past_aca = false; /* t passed an earlier ACA, not this one */
	if (!t->own.abort.due) {
		if (dev_set_holds(t))
			return;
		t->status = SCSI_ACA_ACTIVE;
		t->sense.len = 0;
	}
	leave_and_complete(t);
}

static void end_fault(struct dev_change *c)
{
	struct dev_lu_change *u = dev_lu_change_of(c);
	struct dev_task *t = u->task;
	bool lost = u->status == SCSI_ACA_ACTIVE;

	free(u);
	if (lost)
		lose_aca(t);
	else
		leave_and_complete(t);
}

static const struct dev_change_ops fault_ops = {
	.decide = decide_fault,
	.visit = visit_aca,
	.visited = dev_change_end,
	.done = end_fault,
	.bounces = dev_lu_change_bounces,
};

static enum dev_abort_scope abort_scope(const struct dev_lu *lu)
{
	unsigned qerr = DEV_CTL(lu, qerr);

	if (!qerr)
		return ABORT_LISTED;
	return qerr == 1 && !dev_lu_own_task_sets(lu) ? ABORT_ALL : ABORT_OWN;
}

/* False: no memory; the task ends without consequences. */
static bool change_everywhere(struct dev_task *t, enum dev_aca_change change,
			      enum dev_abort_scope scope)
{
	struct dev_lu_change *u = calloc(1, sizeof(*u));

	if (!u)
		return false;
	u->lu = t->lu;
	u->nexus = t->nexus;
	u->task = t;
	u->aca = change;
	u->scope = scope;
	u->past_aca = t->order.past_aca;
	dev_lu_change_start(u, t->nexus->cfg.worker, &fault_ops);
	return true;
}

/* has_consequences begins the consequences of a CHECK CONDITION; true: end_fault
 * runs once they are in force. */
static bool has_consequences(struct dev_task *t)
{
	enum dev_abort_scope scope;
	enum dev_aca_change change;

	/* Only a command in the task set establishes an ACA (SAM-5 §5.10.2). */
	if (!list_linked(&t->order.in_set))
		return false;
	scope = abort_scope(t->lu);
	change = change_by(t);
	if (change_own(t, change))
		change = ACA_KEEP;
	if (change == ACA_KEEP && scope == ABORT_LISTED)
		return false;
	return change_everywhere(t, change, scope);
}

void dev_set_ended(struct dev_task *t)
{
	if (t->nexus->naca && !t->own.abort.due && dev_set_holds(t))
		return;
	if (t->status == SCSI_CHECK_CONDITION && !t->own.abort.due &&
	    has_consequences(t))
		return;
	leave_and_complete(t);
}

/* ---- PREEMPT AND ABORT (SPC-4 §5.13.11.2.6 a, f, g) ---- */

bool dev_aca_preempt(struct dev_lu_change *u, bool all_registrants,
		     bool all_keys)
{
	const struct dev_nexus *f = u->lu->lanes[DEV_HOME].faulted;

	u->aca_of_all = all_registrants && all_keys;
	if (u->aca_of_all || (f && dev_lu_change_is_due(u, f)))
		u->aca = ACA_CLEAR;
	if (u->aca_of_all || !f || f == u->nexus || all_registrants ||
	    dev_lu_change_is_due(u, f))
		return true;
	u->aborts = false;
	u->status = u->naca ? SCSI_ACA_ACTIVE : SCSI_BUSY;
	return false;
}

void dev_itl_aca_leave(struct dev_itl *i)
{
	set_aca(i, 0);
}

void dev_itl_aca_init(struct dev_itl *i)
{
	if (i->lu->lanes[i->nexus->cfg.worker].faulted)
		set_aca(i, ACA_OTHERS);
}

/* ---- CLEAR ACA (SAM-5 §7.4) ---- */

static void decide_clear(struct dev_change *c)
{
	struct dev_lu_change *u = dev_lu_change_of(c);

	if (u->lu->lanes[DEV_HOME].faulted != u->nexus) {
		dev_change_end(c);
		return;
	}
	u->aca = ACA_CLEAR;
	dev_lu_change_publish(u);
}

static void end_clear(struct dev_change *c)
{
	struct dev_lu_change *u = dev_lu_change_of(c);
	void (*then)(void *arg, int err) = u->then;
	struct dev_nexus *n = u->nexus;
	void *arg = u->arg;

	dev_lu_release(u->lu);
	free(u);
	then(arg, 0); /* the response goes before those of blocked tasks */
	n->nclearing--;
	if (n->is_closed && dev_nexus_is_idle(n))
		dev_nexus_free(n);
	else
		dev_set_wake(n);
}

static void forget_clear(struct dev_change *c)
{
	free(dev_lu_change_of(c));
}

static const struct dev_change_ops clear_ops = {
	.decide = decide_clear,
	.visit = visit_aca,
	.visited = dev_change_end,
	.done = end_clear,
	.bounces = dev_lu_change_bounces,
	.forget = forget_clear,
};

void dev_nexus_clear_aca(struct dev_nexus *n, uint64_t lun,
			 void (*done)(void *arg, int err), void *arg)
{
	struct dev_itl *i = dev_itl_find(n, lun);
	struct dev_lu_change *u;

	if (!i || !(i->aca & ACA_MINE)) {
		done(arg, 0); /* not the faulted nexus: nothing to clear */
		return;
	}
	set_aca(i, i->aca & ~ACA_OWN);
	u = i->aca & ACA_FAULTED ? calloc(1, sizeof(*u)) : NULL;
	if (!u) {
		done(arg, i->aca & ACA_FAULTED ? ERR_NOMEM : 0);
		return;
	}
	u->lu = i->lu;
	u->nexus = n;
	u->then = done;
	u->arg = arg;
	n->nclearing++;
	dev_lu_hold(u->lu);
	dev_lu_change_start(u, n->cfg.worker, &clear_ops);
}
