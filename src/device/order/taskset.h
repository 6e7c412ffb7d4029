/* SPDX-License-Identifier: BSD-2-Clause */
/* taskset.h: the task set of a nexus at a unit: which task waits for which, and what
 * a fault of one does to the other tasks. */
#ifndef DEVICE_TASKSET_H
#define DEVICE_TASKSET_H

#include "device/unit/lu_change.h"

/* ---- taskset.c ---- */

/* dev_set_enter, dev_set_leave: t is in the task set of its nexus from begin to its
 * end. To leave twice does nothing. */
void dev_set_enter(struct dev_task *t);
void dev_set_leave(struct dev_task *t);
/* dev_set_waits: whether t is dormant; then flow->enabled is called when it may run. */
bool dev_set_waits(struct dev_task *t);
/* dev_set_is_barrier: t is ORDERED, and all nexuses share the task set. */
bool dev_set_is_barrier(const struct dev_task *t);
/* dev_set_holds: whether an ACA keeps t from ending; then dev_finish is called when
 * the ACA is cleared. */
bool dev_set_holds(struct dev_task *t);
/* dev_nexus_free: n is closed, no message of n and no CLEAR ACA is in progress. */
void dev_nexus_free(struct dev_nexus *n);
/* dev_set_wake looks, from the loop, for dormant tasks of n that may run now. */
void dev_set_wake(struct dev_nexus *n);

/* ---- priority.c ---- */

/* dev_priority: 1, the highest, to 15. */
unsigned dev_priority(const struct dev_task *t);
/* dev_priorities_forget: the unit is reset, or freed: no nexus has a priority. */
void dev_priorities_forget(struct dev_lu *lu, unsigned worker);
/* Of a new nexus at a unit. */
void dev_nexus_priority_init(struct dev_nexus *n, struct dev_lu *lu);

/* ---- aca.c ---- */

/* dev_aca_refuses: whether t, which begins, is refused for its attribute or for an
 * ACA. */
bool dev_aca_refuses(struct dev_task *t);
/* dev_aca_blocks: whether an ACA keeps t from running, or from ending. */
bool dev_aca_blocks(const struct dev_task *t);
/* dev_set_ended: dev_flow.ended. Completes t once no ACA blocks it, and once the
 * consequences of a CHECK CONDITION (NACA, QERR) are in force on all workers. */
void dev_set_ended(struct dev_task *t);
/* Of a new nexus at a unit. */
void dev_nexus_aca_init(struct dev_nexus *n, const struct dev_lu *lu);
/* dev_aca_visit: u's outcome is in force for this worker and its nexuses. */
void dev_aca_visit(const struct dev_lu_change *u, unsigned worker);
/* dev_aca_preempt: a PREEMPT AND ABORT was decided (of a reservation of all
 * registrants; with SERVICE ACTION RESERVATION KEY 0): sets what becomes of the
 * ACA. False: it may not get past the ACA; u has its status. */
bool dev_aca_preempt(struct dev_lu_change *u, bool all_registrants,
		     bool all_keys);

/* ---- priority.c: commands ---- */

void dev_report_priority(struct dev_task *t);
int dev_prepare_set_priority(struct dev_task *t, uint64_t *out_len);
void dev_set_priority(struct dev_task *t);

#endif
