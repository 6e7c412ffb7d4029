/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reserve.c: decides changes of the reservations of a unit and puts them in force on
 * every worker (see reserve.h); executes RESERVE and RELEASE of SPC-2; finds the
 * commands that reservations deny.
 */
#include <stdlib.h>
#include <string.h>

#include "device/order/taskset.h"
#include "device/reserve/reserve.h"
#include "device/unit/command.h"
#include "device/unit/event.h"
#include "device/unit/shared.h"

static struct rsv_op *op_of(struct dev_change *c)
{
	return container_of(dev_lu_change_of(c), struct rsv_op, u);
}

void rsv_op_free(struct rsv_op *op)
{
	free(op->out.names);
	free(op);
}

/* ---- putting a change in force: on each worker ---- */

/* Returns whether the nexus was registered before the adopted change and is not after
 * it. */
static bool is_unregistered(const struct rsv_op *op, const struct dev_nexus *n)
{
	return op->next && rsv_find_nexus(op->old, n) >= 0 &&
	       rsv_find_nexus(op->next, n) < 0;
}

static void notify_heard(const struct rsv_op *op, struct dev_itl *itl)
{
	const struct dev_heard_of *of = dev_heard_find(op->heard, itl->nexus);
	uint32_t due = op->heard->of_all | (of ? of->attentions : 0);

	if (op->heard->incomplete && op->next)
		due |= BIT(UA_RESERVATIONS_PREEMPTED);
	for (unsigned ua = 0; due; ua++, due >>= 1)
		if (due & 1)
			dev_attention_set(itl, (enum dev_ua)ua);
}

static void notify_nexus(const struct rsv_op *op, struct dev_itl *itl)
{
	const struct dev_nexus *n = itl->nexus;
	int i = n == op->u.nexus ? -1 : rsv_find_nexus(op->old, n);

	if (n == op->released)
		dev_attention_set(itl, UA_RESERVATIONS_RELEASED);
	if (op->heard) {
		notify_heard(op, itl);
		return;
	}

	if (i >= 0 && op->attention[i])
		dev_attention_set(itl, (enum dev_ua)(op->attention[i] - 1));
}

void rsv_visit(struct dev_change *c, unsigned worker)
{
	struct rsv_op *op = op_of(c);
	struct dev_lu *lu = op->u.lu;

	if (op->next)
		lu->rsv[worker] = op->next;
	dev_aca_visit(&op->u, worker);
	list_for_each(it, &lu->lanes[worker].itls) {
		struct dev_itl *i = list_entry(it, struct dev_itl, link);

		notify_nexus(op, i);
		i->denied = rsv_denied(lu->rsv[worker], i->nexus);
	}
	dev_lu_changed(lu);
	dev_lu_change_abort(&op->u, worker);
}

void rsv_visited(struct dev_change *c)
{
	struct rsv_op *op = op_of(c);

	if (op->next)
		rsv_free(op->old);
	dev_change_end(c);
}

/* ---- APTPL (SPC-4 §5.13.5): a change is persisted before it is in force ---- */

static bool is_kept(const struct rsv_state *s)
{
	return s->aptpl && s->n;
}

/* A record that cannot be read stays in the state file until a REPLACE LOST
 * RESERVATION replaces the record. */
static bool is_to_be_saved(const struct rsv_op *op)
{
	if (op->u.lu->shared) /* other gateways know of resets, too */
		return !op->heard && (op->next || op->u.reset);
	if (!op->next || op->next->lost)
		return false;
	return is_kept(op->old) || op->old->lost || is_kept(op->next);
}

bool rsv_keeps(const struct dev_lu *lu)
{
	return dev_keeps(lu);
}

static void give_up_change(struct rsv_op *op, uint8_t key, uint16_t asc)
{
	rsv_check(op, key, asc);
	rsv_free(op->next);
	op->next = NULL;
	dev_change_end(&op->u.change);
}

/* What ends with a nexus or a reset ends even if other gateways cannot learn of it now: a
 * later record contains it. */
void rsv_recorded(struct dev_change *c, int err)
{
	struct rsv_op *op = op_of(c);

	if (err && op->u.lu->shared && !op->u.task)
		err = 0;
	op->u.unanswered = err == ERR_TERMINATED && op->u.lu->shared;
	if (err)
		give_up_change(op, SENSE_HARDWARE_ERROR,
			       ASC_INTERNAL_TARGET_FAILURE);
	else
		dev_lu_change_publish(&op->u);
}

static void record(struct rsv_op *op)
{
	const struct dev_lu *lu = op->u.lu;
	uint8_t *bytes = NULL;
	size_t len = 0, event_len = 0;

	if (lu->shared) {
		bytes = rsv_share_encode(op->next ? op->next : op->old,
					 lu->bs->uuid, op, &len, &event_len);
		if (!bytes) {
			rsv_recorded(&op->u.change, ERR_NOMEM);
			return;
		}
	} else if (is_kept(op->next)) {
		bytes = malloc(rsv_encoded_max(op->next));
		if (!bytes) {
			give_up_change(op, SENSE_ABORTED_COMMAND,
				       ASC_INSUFFICIENT_RESOURCES);
			return;
		}
		len = rsv_encode(op->next, lu->bs->uuid, bytes);
	}
	dev_change_record(&op->u.change, op->u.lu, DEV_KEPT_RESERVATIONS, bytes,
			  len, event_len);
}

void rsv_again(struct dev_change *c)
{
	struct rsv_op *op = op_of(c);

	rsv_free(op->next);
	op->next = NULL;
	op->released = NULL;
	memset(op->attention, 0, sizeof(op->attention));
	memset(op->abort, 0, sizeof(op->abort));
	op->u.aborts = op->u.aca_of_all = false;
	op->u.aca = ACA_KEEP;
}

/* ---- decisions: on the home worker ---- */

/* A PREEMPT AND ABORT that meets an ACA may be refused. */
static void look_at_aca(struct rsv_op *op)
{
	if (dev_aca_preempt(&op->u, rsv_is_all_registrants(op->old->type),
			    op->out.sa_key == 0))
		return;
	rsv_free(op->next);
	op->next = NULL;
}

static bool is_listed(const struct dev_lu_change *u, const struct dev_nexus *n)
{
	const struct rsv_op *op = container_of(u, const struct rsv_op, u);
	int i = rsv_find_nexus(op->old, n);
	const struct dev_heard_of *of;

	if (!op->heard)
		return i >= 0 && op->abort[i];
	of = dev_heard_find(op->heard, n);
	return (of && of->aborts) ||
	       (op->heard->incomplete && is_unregistered(op, n));
}

/* Another gateway has decided that tasks are aborted: an ACA cannot refuse it. */
static void look_at_aca_of(struct rsv_op *op)
{
	const struct dev_nexus *f = op->u.lu->lanes[DEV_HOME].faulted;

	if (f && dev_lu_change_is_due(&op->u, f))
		op->u.aca = ACA_CLEAR;
}

/* Returns whether nexuses have to learn of a change without another state. */
static bool has_news(const struct rsv_op *op)
{
	const struct dev_heard *h = op->heard;

	return h && (h->of_all || h->n || h->resets);
}

void rsv_decide(struct dev_change *c)
{
	struct rsv_op *op = op_of(c);

	op->old = op->u.lu->rsv[DEV_HOME];
	op->u.is_listed = is_listed;
	op->u.status = SCSI_GOOD;
	op->decide(op);
	if (op->heard && op->u.aborts)
		look_at_aca_of(op);
	else if (op->u.status == SCSI_GOOD && op->u.aborts)
		look_at_aca(op);
	if (!op->next && op->u.aca == ACA_KEEP && !has_news(op))
		dev_change_end(c);
	else if (is_to_be_saved(op))
		record(op);
	else
		dev_lu_change_publish(&op->u);
}

/* change_state makes op->next as a copy of the old snapshot; NULL: no memory, and op
 * has its status. */
static struct rsv_state *change_state(struct rsv_op *op)
{
	op->next = rsv_copy(op->old, 0);
	if (!op->next)
		rsv_check(op, SENSE_ABORTED_COMMAND,
			  ASC_INSUFFICIENT_RESOURCES);
	return op->next;
}

void rsv_release(struct rsv_op *op, const struct dev_nexus *from)
{
	if ((!from || op->old->spc2 == from) && change_state(op))
		rsv_set_spc2(op->next, NULL);
}

bool rsv_has(const struct dev_nexus *n, const struct dev_lu *lu)
{
	return lu->rsv[n->cfg.worker]->spc2 == n;
}

/* ---- the end of a command ---- */

static void end_task(struct dev_change *c)
{
	struct rsv_op *op = op_of(c);
	struct dev_task *t = op->u.task;
	struct scsi_sense sense = op->u.sense;
	bool unanswered = op->u.unanswered;
	uint8_t status = op->u.status;

	rsv_op_free(op);
	if (unanswered)
		dev_hold(t);
	else if (status == SCSI_CHECK_CONDITION)
		dev_sense(t, &sense);
	else
		dev_end(t, status);
}

static const struct dev_change_ops command_ops = {
	.decide = rsv_decide,
	.recorded = rsv_recorded,
	.again = rsv_again,
	.visit = rsv_visit,
	.visited = rsv_visited,
	.done = end_task,
	.bounces = dev_lu_change_bounces,
	.forget = rsv_forget,
};

struct rsv_op *rsv_op_new(struct dev_task *t, void (*decide)(struct rsv_op *))
{
	struct rsv_op *op = calloc(1, sizeof(*op));

	if (!op) {
		dev_no_resources(t);
		return NULL;
	}
	op->u.lu = t->lu;
	op->u.nexus = t->nexus;
	op->u.task = t;
	op->u.naca = dev_task_naca(t);
	op->decide = decide;
	return op;
}

void rsv_op_start(struct rsv_op *op)
{
	dev_lu_change_start(&op->u, op->u.nexus->cfg.worker, &command_ops);
}

const struct rsv_state *rsv_now(const struct dev_task *t)
{
	return t->lu->rsv[t->nexus->cfg.worker];
}

/* ---- RESERVE, RELEASE (SPC-2 §5.5.1) ---- */

/*
 * While there are registrations RESERVE and RELEASE reserve nothing (SPC-4
 * §5.13.3, CRH = 1): a nexus that the persistent reservation permits to write gets
 * GOOD, every other nexus a conflict. True: there are no registrations.
 */
static bool is_spc2_allowed(struct rsv_op *op)
{
	const struct rsv_state *s = op->old;
	int me = rsv_find_nexus(s, op->u.nexus);

	if (s->n == 0)
		return true;
	if (me < 0 || !s->type ||
	    (rsv_denied(s, op->u.nexus) & (RSV_WE | RSV_EA)))
		rsv_conflict(op);
	return false;
}

static void decide_reserve(struct rsv_op *op)
{
	if (!is_spc2_allowed(op))
		return;
	if (rsv_is_spc2(op->old) && op->old->spc2 != op->u.nexus)
		rsv_conflict(op);
	else if (!op->old->spc2 && change_state(op))
		rsv_set_spc2(op->next, op->u.nexus);
}

/* A nexus that has not reserved the unit gets GOOD, and nothing is released. */
static void decide_release(struct rsv_op *op)
{
	if (is_spc2_allowed(op))
		rsv_release(op, op->u.nexus);
}

static void start_for(struct dev_task *t, void (*decide)(struct rsv_op *op))
{
	struct rsv_op *op = rsv_op_new(t, decide);

	if (op)
		rsv_op_start(op);
}

void dev_reserve(struct dev_task *t)
{
	start_for(t, decide_reserve);
}

void dev_release(struct dev_task *t)
{
	start_for(t, decide_release);
}

/* ---- denied commands ---- */

/* is_exempt: rows of SBC-3 table 13 whose conflict depends on a field of the CDB. */
static bool is_exempt(const uint8_t *cdb)
{
	if (cdb[0] == SCSI_START_STOP_UNIT) /* START, no POWER CONDITION */
		return (cdb[4] & 0xf1) == 0x01;
	return cdb[0] == SCSI_PREVENT_ALLOW && !(cdb[4] & 0x03);
}

/* SPC-4 §5.13.5.3.2, and the list of §5.13.5.2. The caller has served INQUIRY and
 * similar commands already. */
bool dev_denied_by_loss(const struct dev_task *t)
{
	if (!(t->own.begun.itl->denied & RSV_LOST))
		return false;
	if (t->own.row->op == SCSI_START_STOP_UNIT)
		return (t->cdb[4] & 0xf1) != 0x01;
	return !(t->own.row->flags & (RSV_LOST_TOO | CMD_ANY_LUN));
}

bool dev_denied(const struct dev_task *t)
{
	unsigned columns = t->own.row->flags & RSV_ALL;

	return columns && dev_denied_at(t->own.begun.itl, columns) &&
	       !(t->own.begun.itl->denied & RSV_LOST) && !is_exempt(t->cdb);
}

/* ---- units and nexuses ---- */

void dev_lu_reservations_init(struct dev_lu *lu)
{
	for (unsigned w = 0; w < DEV_MAX_WORKERS; w++)
		lu->rsv[w] = &rsv_none;
}

void rsv_set_first(struct dev_lu *lu, const struct rsv_state *s)
{
	rsv_free(lu->rsv[DEV_HOME]);
	for (unsigned w = 0; w < DEV_MAX_WORKERS; w++)
		lu->rsv[w] = s;
}

int rsv_restore(struct dev_lu *lu, const uint8_t *data, size_t len)
{
	struct rsv_state *s;
	int err = rsv_decode(data, len, lu->bs->uuid, &s);

	if (!err)
		rsv_set_first(lu, s);
	return err;
}

void dev_lu_lose_reservations(struct dev_lu *lu)
{
	for (unsigned w = 0; w < DEV_MAX_WORKERS; w++)
		lu->rsv[w] = &rsv_lost;
}

void dev_itl_reservations_init(struct dev_itl *i)
{
	i->denied = rsv_denied(i->lu->rsv[i->nexus->cfg.worker], i->nexus);
}

/* All workers have ended, so the change never comes into force: rsv_forget frees it. */
void rsv_forget(struct dev_change *c)
{
	struct rsv_op *op = op_of(c);

	if (op->next && op->next != op->u.lu->rsv[DEV_HOME])
		rsv_free(op->next);
	else if (op->next)
		rsv_free(op->old);
}

void dev_lu_reservations_fini(struct dev_lu *lu)
{
	rsv_free(lu->rsv[DEV_HOME]);
}
