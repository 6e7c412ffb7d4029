/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lu_change.h: what changes of reservations and of ACAs have in common: a unit,
 * the command that asks, and tasks of other nexuses that are aborted. Both are
 * in one queue, for PREEMPT AND ABORT, resets and the end of a nexus change both.
 */
#ifndef DEVICE_LU_CHANGE_H
#define DEVICE_LU_CHANGE_H

#include "device/unit/change.h"

/* What becomes of the ACA of a task set that all nexuses share (aca.c). */
enum dev_aca_change {
	ACA_KEEP,
	ACA_ESTABLISH, /* on dev_lu_change.nexus */
	ACA_CLEAR,
};

/* The nexuses whose tasks are aborted. */
enum dev_sweep {
	SWEEP_LISTED, /* those that is_listed names */
	SWEEP_OWN,    /* the nexus that asks */
	SWEEP_ALL,
};

struct dev_lu_change {
	struct dev_change change;
	struct dev_lu *lu;
	struct dev_nexus *nexus;	  /* that asks; NULL: none */
	struct dev_task *task;		  /* of a command */
	void (*then)(void *arg, int err); /* of a caller other than a command */
	void *arg;
	bool naca, past_aca; /* of the command, as dev_task has them */
	/* the outcome */
	uint8_t status;		 /* enum scsi_status */
	struct scsi_sense sense; /* with CHECK CONDITION */
	bool reset;		 /* the unit is reset */
	bool aborts;		 /* tasks are aborted: */
	enum dev_sweep sweep;
	bool (*is_listed)(const struct dev_lu_change *u,
			  const struct dev_nexus *n);
	enum dev_aca_change aca;
	bool aca_of_all;  /* ACAs of task sets of one nexus are cleared */
	unsigned pending; /* nexuses of the visited worker with tasks left */
};

/* dev_lu_change_start: u->lu and the asker are set. On worker `from`. */
void dev_lu_change_start(struct dev_lu_change *u, unsigned from,
			 const struct dev_change_ops *ops);
/* dev_lu_change_publish visits all workers. */
void dev_lu_change_publish(struct dev_lu_change *u);
/* dev_lu_change_is_due: u aborts the tasks of n, and ends its ACA. On any worker:
 * n is compared, and its names are read. */
bool dev_lu_change_is_due(const struct dev_lu_change *u,
			  const struct dev_nexus *n);
/* dev_lu_change_abort ends a visit: aborts the tasks of this worker's nexuses that
 * are due, then goes to the next worker. */
void dev_lu_change_abort(struct dev_lu_change *u, unsigned worker);
/* dev_lu_change_bounces: dev_change_ops.bounces of all changes in this queue. */
bool dev_lu_change_bounces(struct dev_change *c,
			   const struct dev_change *current);

#endif
