/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * aca.c: what follows a CHECK CONDITION: QERR (SAM-5 §5.9.3, SPC-4 §7.5.8) and
 * auto contingent allegiance (SAM-5 §5.10).
 *
 * Where each nexus has a task set of its own (TST = 001b) an ACA is a byte of
 * the faulted nexus, which is its worker's. Where all share one it hinders all
 * of them: it is established and cleared like a reservation (reserve.h), by a
 * visit to every worker, and the command that causes it ends behind that. A
 * command that meets no ACA pays for it with one number of its nexus.
 *
 * What is blocked is not taken back from the store; it is kept from ending.
 */
#include <stdlib.h>

#include "device/reserve.h"
#include "device/table.h"
#include "device/taskset.h"

/* dev_nexus.aca: what hinders the nexus at a unit. */
#define ACA_OWN	    0x1u /* it is faulted; the task set is its own */
#define ACA_FAULTED 0x2u /* it is faulted; the task set is shared */
#define ACA_OTHERS  0x4u /* another is, in the set that both share */
#define ACA_MINE    (ACA_OWN | ACA_FAULTED)

static uint8_t hindrance(const struct dev_task *t)
{
	return t->lu ? t->nexus->aca[t->lu->cfg.lun] : 0;
}

static void hinder(struct dev_nexus *n, uint16_t lun, unsigned aca)
{
	bool was = n->aca[lun] != 0;

	n->aca[lun] = (uint8_t)aca;
	n->naca += (uint32_t)(aca != 0) - was;
	if (was && !aca)
		dev_set_wake(n);
}

bool dev_task_naca(const struct dev_task *t)
{
	int at = dev_control_at(t->cdb);

	return at >= 0 && at < t->cdb_len && (t->cdb[at] & CONTROL_NACA);
}

/* ---- commands that come meanwhile ---- */

static bool has_aca_task(const struct dev_task *t)
{
	list_for_each(it, &t->nexus->tasks) {
		const struct dev_task *other =
			list_entry(it, struct dev_task, in_set);

		if (other != t && other->lu == t->lu &&
		    other->attr == DEV_ATTR_ACA)
			return true;
	}
	return false;
}

/* It does not become part of the task set. */
static bool turn_away(struct dev_task *t, enum scsi_status status)
{
	dev_set_leave(t);
	t->status = (uint8_t)status;
	t->refused = true;
	return true;
}

static bool is_preempt_and_abort(const struct dev_task *t)
{
	return t->cdb[0] == SCSI_PERSISTENT_RESERVE_OUT &&
	       (t->cdb[1] & 0x1f) == SCSI_PROUT_PREEMPT_AND_ABORT;
}

/* Among what comes on the faulted nexus (§5.10.3; SPC-4 §7.5.8: TMF_ONLY). */
static bool may_pass(const struct dev_task *t)
{
	return t->attr == DEV_ATTR_ACA && !has_aca_task(t) &&
	       !DEV_CTL(t->lu, tmf_only);
}

/* §5.10.3 on the faulted nexus, §5.10.4 on others that share its task set. */
bool dev_aca_refuses(struct dev_task *t)
{
	uint8_t aca = hindrance(t);

	if (t->attr > DEV_ATTR_ACA)
		return dev_refuse(t, SENSE_ILLEGAL_REQUEST,
				  ASC_INVALID_FIELD_IN_IU);
	if (!aca && t->attr == DEV_ATTR_ACA)
		return dev_refuse(t, SENSE_ILLEGAL_REQUEST,
				  ASC_INVALID_MESSAGE);
	if (!aca)
		return false;
	if (aca & ACA_MINE)
		t->past_aca = may_pass(t);
	else
		t->past_aca =
			t->attr != DEV_ATTR_ACA && is_preempt_and_abort(t);
	if (t->past_aca)
		return false;
	if (!(aca & ACA_MINE) && t->attr != DEV_ATTR_ACA && !dev_task_naca(t))
		return turn_away(t, SCSI_BUSY);
	return turn_away(t, SCSI_ACA_ACTIVE);
}

bool dev_aca_blocks(const struct dev_task *t)
{
	return hindrance(t) && !t->past_aca && list_linked(&t->in_set);
}

/* ---- the end of a command: what it brings about ---- */

static enum rsv_aca change_by(const struct dev_task *t)
{
	if (t->past_aca && t->attr != DEV_ATTR_ACA)
		return RSV_ACA_KEEP; /* it got past another's */
	if (dev_task_naca(t))
		return RSV_ACA_ESTABLISH;
	return t->past_aca ? RSV_ACA_CLEAR : RSV_ACA_KEEP;
}

/* In a task set of its own; false: it is to be done everywhere. */
static bool change_own(struct dev_task *t, enum rsv_aca change)
{
	uint16_t lun = t->lu->cfg.lun;
	uint8_t aca = hindrance(t);

	if (change == RSV_ACA_KEEP)
		return true;
	if ((aca & ACA_FAULTED) ||
	    (change == RSV_ACA_ESTABLISH && !dev_lu_own_task_sets(t->lu)))
		return false;
	hinder(t->nexus, lun,
	       change == RSV_ACA_ESTABLISH ? aca | ACA_OWN : aca & ~ACA_OWN);
	return true;
}

/* One ACA per task set: who fails while there is another's is blocked. */
static void decide_fault(struct rsv_op *op)
{
	const struct dev_nexus *f = op->lu->lanes[RSV_HOME].faulted;
	bool may = !f || (f == op->nexus && op->past_aca);

	if (op->aca == RSV_ACA_ESTABLISH && !may) {
		op->status = SCSI_ACA_ACTIVE;
		op->aca = RSV_ACA_KEEP;
		op->sweep = SWEEP_NONE;
	}
	if (op->aca == RSV_ACA_CLEAR && f != op->nexus)
		op->aca = RSV_ACA_KEEP;
	op->aborts = op->sweep != SWEEP_NONE;
}

static void fault_done(struct rsv_op *op)
{
	struct dev_task *t = op->task;
	bool again = op->status == SCSI_ACA_ACTIVE;

	rsv_op_free(op);
	if (again)
		dev_task_retry(t);
	else
		dev_task_finished(t);
}

static enum rsv_sweep sweep_of(const struct dev_lu *lu)
{
	unsigned qerr = DEV_CTL(lu, qerr);

	if (!qerr)
		return SWEEP_NONE;
	return qerr == 1 && !dev_lu_own_task_sets(lu) ? SWEEP_ALL : SWEEP_OWN;
}

/* False: no memory. The task ends, and nothing follows from it. */
static bool change_everywhere(struct dev_task *t, enum rsv_aca change,
			      enum rsv_sweep sweep)
{
	struct rsv_op *op;

	if (change == RSV_ACA_ESTABLISH && !rsv_will_part(t->nexus))
		return false;
	op = calloc(1, sizeof(*op));
	if (!op)
		return false;
	op->lu = t->lu;
	op->nexus = t->nexus;
	op->task = t;
	op->from = t->nexus->cfg.worker;
	op->aca = change;
	op->sweep = sweep;
	op->past_aca = t->past_aca;
	op->decide = decide_fault;
	op->done = fault_done;
	rsv_op_start(op);
	return true;
}

bool dev_fault(struct dev_task *t)
{
	enum rsv_sweep sweep;
	enum rsv_aca change;

	if (!t->lu)
		return false;
	sweep = sweep_of(t->lu);
	change = change_by(t);
	if (change_own(t, change))
		change = RSV_ACA_KEEP;
	if (change == RSV_ACA_KEEP && sweep == SWEEP_NONE)
		return false;
	return change_everywhere(t, change, sweep);
}

/* ---- in force: on each worker ---- */

void dev_aca_set_lane(const struct rsv_op *op, unsigned worker)
{
	if (op->aca != RSV_ACA_KEEP)
		op->lu->lanes[worker].faulted =
			op->aca == RSV_ACA_ESTABLISH ? op->nexus : NULL;
}

void dev_aca_set(const struct rsv_op *op, struct dev_nexus *n)
{
	uint16_t lun = op->lu->cfg.lun;
	unsigned aca = n->aca[lun];

	if (op->reset || op->aca_of_all ||
	    (op->aborts && !op->sweep && rsv_is_due(op, n)))
		aca &= ~ACA_OWN;
	if (op->aca == RSV_ACA_CLEAR)
		aca &= ACA_OWN;
	else if (op->aca == RSV_ACA_ESTABLISH)
		aca = (aca & ACA_OWN) |
		      (n == op->nexus ? ACA_FAULTED : ACA_OTHERS);
	if (aca != n->aca[lun])
		hinder(n, lun, aca);
}

void dev_nexus_aca_init(struct dev_nexus *n)
{
	for (uint16_t lun = 0; lun < DEV_MAX_LUNS; lun++) {
		const struct dev_lu *lu = dev_lu_get(n->server, lun);

		if (lu && lu->lanes[n->cfg.worker].faulted)
			hinder(n, lun, ACA_OTHERS);
	}
}

/* ---- PREEMPT AND ABORT (SPC-4 §5.13.11.2.6 a, f, g) ---- */

void dev_aca_preempt(struct rsv_op *op)
{
	const struct dev_nexus *f = op->lu->lanes[RSV_HOME].faulted;
	bool all = rsv_is_all_registrants(op->old->type);

	op->aca_of_all = all && op->out.sa_key == 0;
	if (op->aca_of_all || (f && rsv_is_due(op, f)))
		op->aca = RSV_ACA_CLEAR;
	if (op->aca_of_all || !f || f == op->nexus || all || rsv_is_due(op, f))
		return;
	rsv_free(op->next);
	op->next = NULL;
	op->aborts = false;
	op->status = op->naca ? SCSI_ACA_ACTIVE : SCSI_BUSY;
}

/* ---- CLEAR ACA (SAM-5 §7.4) ---- */

static void decide_clear(struct rsv_op *op)
{
	if (op->lu->lanes[RSV_HOME].faulted == op->nexus)
		op->aca = RSV_ACA_CLEAR;
}

static void cleared(struct rsv_op *op)
{
	void (*then)(void *arg, int err) = op->then;
	struct dev_nexus *n = op->nexus;
	void *arg = op->arg;

	rsv_op_free(op);
	then(arg, 0); /* the answer goes first, then what was blocked */
	n->nclearing--;
	if (n->is_closed && !n->is_waking && !n->nclearing)
		dev_nexus_free(n);
	else
		dev_set_wake(n);
}

void dev_nexus_clear_aca(struct dev_nexus *n, uint64_t lun,
			 void (*done)(void *arg, int err), void *arg)
{
	struct rsv_op *op;
	uint16_t l;

	if (dev_lun_decode(lun, &l) || !dev_lu_get(n->server, l) ||
	    !(n->aca[l] & ACA_MINE)) {
		done(arg, 0); /* whose it isn't clears nothing */
		return;
	}
	hinder(n, l, n->aca[l] & ~ACA_OWN);
	op = n->aca[l] & ACA_FAULTED ? calloc(1, sizeof(*op)) : NULL;
	if (!op) {
		done(arg, n->aca[l] & ACA_FAULTED ? ERR_NOMEM : 0);
		return;
	}
	op->lu = dev_lu_get(n->server, l);
	op->nexus = n;
	op->from = n->cfg.worker;
	op->decide = decide_clear;
	op->done = cleared;
	op->then = done;
	n->nclearing++;
	op->arg = arg;
	rsv_op_start(op);
}
