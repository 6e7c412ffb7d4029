/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shared.h: a unit that several gateways share (dev_lu_config.clustered): each gateway
 * is an iserd with a device server of its own, and one gateway at a time, the owner,
 * uses the blocks. A record that the daemon keeps for all gateways has what they have in
 * common: the reservations, the mode values, the identifying information.
 *
 * - A change of the common state is saved first (dev_env.save, with an event for the other
 *   gateways), put in force here next, and reported to the initiator last. If another
 *   gateway was faster (ERR_AGAIN), the change is decided again from the newer state.
 * - The changes of other gateways come by dev_lu_adopt.
 * - The unit has target port groups of its own, one for each gateway. Until
 *   dev_lu_groups_replace, and for a port that is in no group, the access state is
 *   transitioning.
 * - A gateway that was fenced answers no command that it received before (dev_lu_drop).
 *
 * Such a unit is a disk without protection information. It has no FORMAT UNIT and no
 * SANITIZE. A reservation by RESERVE(6/10) is in the record, too, so that all gateways
 * know of it, but belongs to an I_T nexus of the owner: it ends with RESERVATIONS RELEASED
 * when the owner loses access. Auto contingent allegiances, priorities, time stamps and
 * ROD tokens are of one gateway; the tokens end when it loses access.
 *
 * All functions run on worker 0.
 */
#ifndef DEVICE_SHARED_H
#define DEVICE_SHARED_H

#include "device/device.h"

/* ---- what the daemon does for such units: dev_env ---- */

/* The argument of dev_env.refresh. */
struct dev_refresh {
	struct dev_lu *lu;
	/* 0: the newest common state at the time of the call is in force here; the
	 * daemon has called dev_lu_adopt if that was necessary, and it has ended.
	 * ERR_TERMINATED: this gateway was fenced, the command is not answered. Other
	 * errors: the command fails. */
	int result;
	void (*done)(struct dev_refresh *r); /* on worker 0, maybe from within */
	struct list link;		     /* private to dev_env.refresh */
	void *private;
};

/* The argument of dev_env.regroup: an initiator asks for other access states by SET
 * TARGET PORT GROUPS. */
struct dev_regroup {
	struct dev_lu *lu;
	unsigned n;
	struct dev_group_change changes[DEV_MAX_GROUPS];
	/* 0: the groups have these states now (dev_lu_access_set, dev_lu_groups_replace);
	 * ERR_NOT_FOUND: no such group; ERR_TERMINATED as above. Other errors: the
	 * command ends with SET TARGET PORT GROUPS COMMAND FAILED. */
	int result;
	void (*done)(struct dev_regroup *r); /* on worker 0, maybe from within */
	struct list link;		     /* private to dev_env.regroup */
	void *private;
};

/* ---- the common state ---- */

/* An event that dev_env.save got at another gateway (dev_save.event). */
struct dev_event {
	enum dev_kept kind;
	const uint8_t *data;
	size_t len;
};

struct dev_adoption {
	/* the newest records, as dev_env.save got them; len 0: there is none */
	struct {
		const uint8_t *data;
		size_t len;
	} records[DEV_KEPT_KINDS];
	/* what happened since the state that is in force here, oldest first */
	const struct dev_event *events;
	unsigned nevents;
	/* Events are missing: every nexus of this gateway gets RESERVATIONS PREEMPTED
	 * and MODE PARAMETERS CHANGED if the state differs. */
	bool incomplete;
};

/*
 * dev_lu_adopt puts a common state in force on every worker, with the unit attentions of
 * the events, and aborts the tasks of nexuses that another gateway has preempted. The change in
 * progress comes before it, all that wait after it. Calls done, never from within,
 * when all of that has happened. a is copied. ERR_DATA_DIGEST, ERR_TRUNCATED, ERR_FORMAT,
 * ERR_LIMIT, ERR_NOT_FOUND (of another backstore), ERR_NOMEM: nothing was done.
 */
int dev_lu_adopt(struct dev_lu *lu, const struct dev_adoption *a,
		 void (*done)(void *arg), void *arg);

/* ---- the target port groups of the unit ---- */

#define DEV_LU_GROUP_PORTS 64u

/* The group of one gateway. */
struct dev_lu_group {
	uint16_t id; /* not 0 */
	bool own;    /* of this gateway; one group at most */
	/* of another gateway's group; the own one keeps its state */
	enum dev_access state;
	bool preferred;
	unsigned nports;
	uint16_t ports[DEV_LU_GROUP_PORTS]; /* relative target port identifiers */
};

/*
 * dev_lu_groups_replace makes these n groups (at most DEV_MAX_GROUPS; ids and ports
 * differ) the groups of the unit; groups is copied. A new own group is transitioning.
 * Takes effect after the changes that were begun before. ERR_NOMEM: nothing was done.
 */
int dev_lu_groups_replace(struct dev_lu *lu, const struct dev_lu_group *groups,
			  unsigned n);
/*
 * dev_lu_access_set sets the state of the own group, now or at its first
 * dev_lu_groups_replace. Calls done, never from within, when the state is in force on
 * every worker and every nexus has its unit attention. If access is taken away, done also
 * waits until every command that was admitted before has ended; meanwhile the group is
 * transitioning. If the store never ends a command, done is never called: the caller
 * waits as long as it likes, and may call dev_lu_access_set or dev_lu_drop again, which end
 * the wait: done gets ERR_ABORTED. A dev_lu_drop also ends a change that waits. ERR_NOMEM, returned or given to done: nothing has
 * changed.
 */
int dev_lu_access_set(struct dev_lu *lu, enum dev_access state,
		      void (*done)(void *arg, int err), void *arg);
/* dev_lu_groups copies the groups with their states; returns their number. */
unsigned dev_lu_groups(const struct dev_lu *lu,
		       struct dev_lu_group out[DEV_MAX_GROUPS]);

/* ---- a gateway that was fenced ---- */

/*
 * dev_lu_drop: this gateway was fenced. The own group is transitioning at once, and no
 * command of the existing nexuses of the unit is executed or answered any more, whether
 * it was received already or not, except for INQUIRY, REPORT LUNS and REQUEST SENSE: the
 * caller ends their sessions (before or after this call). Calls done, never from within, when all these nexuses have ended and no request
 * to the backstore is in progress. New nexuses get NOT READY, as in any transition.
 * ERR_BUSY: a drop is in progress. It needs no memory.
 */
int dev_lu_drop(struct dev_lu *lu, void (*done)(void *arg), void *arg);
/*
 * dev_lu_replace_backstore gives the unit the store that was opened anew, which the device
 * then owns; the old one is closed. Between the end of a dev_lu_drop and the next
 * dev_lu_access_set. If the capacity differs, every nexus gets CAPACITY DATA HAS CHANGED.
 * Calls done, never from within, when the old store is closed. ERR_FORMAT: blocks of
 * another size; ERR_WRONG_STATE: not between those; ERR_NOMEM. After an error the caller
 * still owns b.
 */
int dev_lu_replace_backstore(struct dev_lu *lu, struct bs *b,
			     void (*done)(void *arg), void *arg);

#endif
