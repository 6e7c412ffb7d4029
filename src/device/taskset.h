/* SPDX-License-Identifier: BSD-2-Clause */
/* taskset.h: which task waits for which, and what a fault does to the others. */
#ifndef DEVICE_TASKSET_H
#define DEVICE_TASKSET_H

#include "device/internal.h"

/* ---- taskset.c ---- */

void dev_set_enter(struct dev_task *t);
void dev_set_leave(struct dev_task *t); /* harmless when it left before */
/* Whether it has to; then dev_task_enabled is called in its time. */
bool dev_set_waits(struct dev_task *t);
/* An ORDERED command among those of all nexuses. */
bool dev_set_is_barrier(const struct dev_task *t);
/* An ACA keeps it from ending; dev_task_retry is called in its time. */
bool dev_set_holds(struct dev_task *t);
/* Nothing of the kind keeps the nexus's tasks back any more. */
void dev_set_wake(struct dev_nexus *n);

/* ---- task.c: goes on with a task that had to wait ---- */

void dev_task_enabled(struct dev_task *t);
void dev_task_finished(struct dev_task *t);
void dev_task_retry(struct dev_task *t); /* its end, again */

/* ---- priority.c ---- */

/* 1, the highest, to 15: of a task that waits. */
unsigned dev_priority(const struct dev_task *t);
/* All are as they were at first: a reset, or the end. */
void dev_priorities_forget(struct dev_lu *lu, unsigned worker);
void dev_nexus_priorities_init(struct dev_nexus *n);

/* ---- aca.c ---- */

bool dev_task_naca(const struct dev_task *t);
/* Whether a command that comes is refused for its attribute, or for an ACA. */
bool dev_aca_refuses(struct dev_task *t);
/* Whether an ACA keeps a task of the task set from being enabled, or ending. */
bool dev_aca_blocks(const struct dev_task *t);
/* After CHECK CONDITION: true: dev_task_finished (or _retry) is called once
 * what NACA and QERR make of it is in force everywhere. */
bool dev_fault(struct dev_task *t);
void dev_nexus_aca_init(struct dev_nexus *n);

#endif
