/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lu_change.h: the common part of changes of reservations and of ACAs: a unit, the
 * requester, and the nexuses whose tasks are aborted. Both kinds are in one queue,
 * because PREEMPT AND ABORT, resets and the end of a nexus change both.
 */
#ifndef DEVICE_LU_CHANGE_H
#define DEVICE_LU_CHANGE_H

#include "device/unit/change.h"

/* The effect on the ACA of a task set that all nexuses share (aca.c). */
enum dev_aca_change {
	ACA_KEEP,
	ACA_ESTABLISH, /* on dev_lu_change.nexus */
	ACA_CLEAR,
};

/* The nexuses whose tasks are aborted. */
enum dev_abort_scope {
	ABORT_LISTED, /* those that is_listed names */
	ABORT_OWN,    /* the nexus that asks */
	ABORT_ALL,
};

struct dev_lu_change {
	struct dev_change change;
	struct dev_lu *lu;
	struct dev_nexus *nexus;	  /* the requester; NULL: none */
	struct dev_task *task;		  /* the requesting command, or NULL */
	void (*then)(void *arg, int err); /* for a requester without a task */
	void *arg;
	bool naca, past_aca; /* copied from the task */
	/* the outcome */
	uint8_t status;		 /* enum scsi_status */
	struct scsi_sense sense; /* with CHECK CONDITION */
	bool unanswered; /* the gateway was fenced: the task is not answered */
	bool reset;	 /* the unit is reset */
	bool aborts;	 /* tasks are aborted: */
	enum dev_abort_scope scope;
	bool (*is_listed)(const struct dev_lu_change *u,
			  const struct dev_nexus *n);
	enum dev_aca_change aca;
	bool aca_of_all;  /* ACAs of task sets of one nexus are cleared */
	unsigned pending; /* nexuses of the visited worker with tasks left */
	/* Ends the visit of a worker after the aborts; NULL: nothing is left to
	 * do. */
	void (*aborted)(struct dev_lu_change *u, unsigned worker);
};

/* dev_lu_change_of returns the change of a unit that embeds c. */
static inline struct dev_lu_change *dev_lu_change_of(struct dev_change *c)
{
	return container_of(c, struct dev_lu_change, change);
}

/* dev_lu_change_start queues u, whose unit and requester are set. On worker `from`. */
void dev_lu_change_start(struct dev_lu_change *u, unsigned from,
			 const struct dev_change_ops *ops);
/* dev_lu_change_publish visits all workers. */
void dev_lu_change_publish(struct dev_lu_change *u);
/* dev_lu_change_is_due returns whether u aborts the tasks of n and ends its ACA. On any
 * worker: n is compared, and its names are read. */
bool dev_lu_change_is_due(const struct dev_lu_change *u,
			  const struct dev_nexus *n);
/* dev_lu_change_abort ends a visit: aborts the tasks of this worker's nexuses that
 * are due, then goes to the next worker. */
void dev_lu_change_abort(struct dev_lu_change *u, unsigned worker);
/* dev_lu_change_bounces is dev_change_ops.bounces of all changes in this queue. */
bool dev_lu_change_bounces(struct dev_change *c,
			   const struct dev_change *current);

#endif
