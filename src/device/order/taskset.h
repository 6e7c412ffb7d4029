/* SPDX-License-Identifier: BSD-2-Clause */
/* taskset.h: the task set of a nexus at a unit: the order of tasks, and the effect of
 * a failed task on the other tasks. */
#ifndef DEVICE_TASKSET_H
#define DEVICE_TASKSET_H

#include "device/unit/lu_change.h"

/* ---- taskset.c ---- */

static inline bool dev_set_is_ordered(const struct dev_task *t)
{
	return t->attr == DEV_ATTR_ORDERED;
}

/* dev_set_is_special returns whether t may delay other tasks, or wait for them. */
static inline bool dev_set_is_special(const struct dev_task *t)
{
	return dev_set_is_ordered(t) || t->attr == DEV_ATTR_HEAD_OF_QUEUE;
}

/* dev_set_enter and dev_set_leave add t to the task set of its nexus at the begin of
 * t, and remove t at its end. A second dev_set_leave does nothing. dev_set_left is the
 * rest of dev_set_leave where tasks are dormant. */
static inline void dev_set_enter(struct dev_task *t)
{
	list_init(&t->order.in_set);
	if (!t->lu)
		return;
	list_push_back(&t->nexus->tasks, &t->order.in_set);
	if (dev_set_is_special(t))
		t->own.begun.itl->special++;
}

void dev_set_left(struct dev_task *t);
static inline void dev_set_leave(struct dev_task *t)
{
	if (!list_linked(&t->order.in_set))
		return;
	list_del(&t->order.in_set);
	if (dev_set_is_special(t))
		t->own.begun.itl->special--;
	if (t->nexus->ndormant)
		dev_set_left(t);
}

/* dev_set_waits returns whether t is dormant; then the task set calls flow->enabled
 * once t may execute. dev_set_sleep is its rest where tasks may be. */
bool dev_set_sleep(struct dev_task *t);
static inline bool dev_set_waits(struct dev_task *t)
{
	return t->lu && (t->own.begun.itl->special || t->nexus->naca) &&
	       dev_set_sleep(t);
}

/* dev_set_is_barrier returns whether t is ORDERED and all nexuses share the task
 * set. */
static inline bool dev_set_is_barrier(const struct dev_task *t)
{
	return dev_set_is_ordered(t) && !dev_lu_own_task_sets(t->lu);
}

/* dev_set_holds returns whether an ACA keeps t from ending; then the task set calls
 * dev_finish once the ACA is cleared. */
bool dev_set_holds(struct dev_task *t);
/* dev_nexus_is_idle returns whether no message of n and no CLEAR ACA is in progress. */
static inline bool dev_nexus_is_idle(const struct dev_nexus *n)
{
	return !n->is_waking && !n->nclearing && !n->mapping.is_retrying;
}

/* dev_nexus_free frees n, which is closed and idle. */
void dev_nexus_free(struct dev_nexus *n);
/* dev_set_wake looks, from the loop, for dormant tasks of n that may run now. */
void dev_set_wake(struct dev_nexus *n);

/* ---- priority.c ---- */

/* dev_priority returns the priority of t: 1, the highest, to 15. */
unsigned dev_priority(const struct dev_task *t);
/* dev_priorities_forget removes all priorities of lu on the calling worker, for a
 * reset of the unit or its end. */
void dev_priorities_forget(struct dev_lu *lu, unsigned worker);
/* dev_itl_priority_init gives the new I_T_L nexus the priority that SET PRIORITY
 * assigned to its ports. */
void dev_itl_priority_init(struct dev_itl *i);

/* ---- aca.c ---- */

/* dev_aca_refuses returns whether it refused t, which begins, because of its
 * attribute or of an ACA. */
bool dev_aca_refuses(struct dev_task *t);
/* dev_aca_blocks returns whether an ACA keeps t from executing, or from ending. */
bool dev_aca_blocks(const struct dev_task *t);
/* dev_set_ended is dev_flow.ended: completes t once no ACA blocks t, and once the
 * consequences of a CHECK CONDITION (NACA, QERR) are in force on all workers. */
void dev_set_ended(struct dev_task *t);
/* dev_itl_aca_init blocks the tasks of the new I_T_L nexus if the task set of the unit
 * that all nexuses share has an ACA. */
void dev_itl_aca_init(struct dev_itl *i);
/* dev_itl_aca_leave ends the effect of the unit's ACA on the nexus, which loses the
 * unit. */
void dev_itl_aca_leave(struct dev_itl *i);
/* dev_aca_visit puts the outcome of u in force for the nexuses of this worker. */
void dev_aca_visit(const struct dev_lu_change *u, unsigned worker);
/* dev_aca_preempt sets the effect of a PREEMPT AND ABORT on the ACA in u.
 * all_registrants: all registrants hold the reservation; all_keys: SERVICE ACTION
 * RESERVATION KEY is 0. False: the ACA blocks the command, and u has its status. */
bool dev_aca_preempt(struct dev_lu_change *u, bool all_registrants,
		     bool all_keys);

/* ---- priority.c: commands ---- */

/* dev_report_priority executes REPORT PRIORITY and ends t. */
void dev_report_priority(struct dev_task *t);
/* dev_prepare_set_priority checks the CDB of SET PRIORITY and sets *out_len to the
 * bytes of the parameter list; 1: t was refused. */
int dev_prepare_set_priority(struct dev_task *t, uint64_t *out_len);
/* dev_set_priority executes SET PRIORITY and ends t, now or later. */
void dev_set_priority(struct dev_task *t);

#endif
