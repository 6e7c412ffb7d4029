/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unit/shared.h: what a unit that several gateways share (device/shared.h) has in
 * addition: dev_lu.shared, which is NULL for all other units.
 */
#ifndef DEVICE_UNIT_SHARED_H
#define DEVICE_UNIT_SHARED_H

#include "device/shared.h"
#include "device/unit/change.h"

/* The target port groups of a unit. Immutable. */
struct dev_lu_groups {
	unsigned n;
	struct dev_lu_group of[DEV_MAX_GROUPS];
};

struct dev_group_drain; /* lu_groups.c */

struct dev_shared {
	struct dev_lu *lu;
	/* the change whose record is being saved, or NULL; on the home worker */
	struct dev_change *saving[DEV_KEPT_KINDS];
	/* counts the records of DEV_KEPT_UNIT that were adopted; home worker */
	uint32_t adopted;
	/* alua/lu_groups.c */
	struct {
		struct dev_changes changes;
		const struct dev_lu_groups *now[DEV_MAX_WORKERS];
		enum dev_access wanted; /* of the own group; home worker */
		struct dev_group_drain *drain; /* in progress, or NULL */
		/* commands of an earlier access may be in progress */
		bool is_undrained;
		/* the nexus of a SET TARGET PORT GROUPS in progress; compared only */
		const struct dev_nexus *asker;
	} groups;
	/* A request to the backstore found this gateway fenced, and the daemon knows.
	 * Atomic. */
	bool is_fenced;
	struct dev_msg fenced;
	/* dev_lu_drop: shared.c of the roof, home worker */
	struct {
		/* each worker's: until the next state of the own group */
		bool is_dropped[DEV_MAX_WORKERS];
		enum dev_drop_state {
			DEV_NOT_DROPPED,
			DEV_DROPPING,
			DEV_DROPPED, /* until a new backstore is there */
		} state;
		struct dev_round round;
		struct dev_range range;
		uint32_t count; /* of drops; home worker */
		/* atomic: I_T_L nexuses that have to end, and 1 for the fence */
		uint32_t left;
		struct dev_msg msg, retry;
		void (*done)(void *arg);
		void *arg;
	} drop;
};

/* dev_shared_new gives lu its struct dev_shared; ERR_NOMEM. dev_shared_fini frees it. */
int dev_shared_new(struct dev_lu *lu);
void dev_shared_fini(struct dev_lu *lu);

/* dev_lu_saving returns where a change of lu notes that its record of this kind is being
 * saved (dev_change.saving). */
static inline struct dev_change **dev_lu_saving(const struct dev_lu *lu,
						enum dev_kept kind)
{
	return lu->shared ? &lu->shared->saving[kind] : NULL;
}

/* dev_lu_group_of returns the group of the unit with this port, as it is in force on the
 * worker, or NULL. */
const struct dev_lu_group *dev_lu_group_of(const struct dev_lu *lu,
					   unsigned worker, uint16_t port);

/* dev_lu_is_shown returns whether the target of n reports the port: one of its own, or a
 * port of another gateway. */
bool dev_lu_is_shown(const struct dev_nexus *n, uint16_t port);
/* dev_lu_ports writes the relative identifiers of the target ports through which the
 * SCSI device of n has the unit, at most `max`: those of its target, and those of the
 * other gateways. Returns their number, which may be above max. On the home worker. */
unsigned dev_lu_ports(const struct dev_lu *lu, const struct dev_nexus *n,
		      uint16_t *out, unsigned max);

/* dev_store_fenced reports to the daemon, once, that this gateway was fenced. Any worker. */
void dev_store_fenced(struct dev_lu *lu);

/* dev_itl_forget notes the end of an I_T_L nexus, and dev_drop_left the end of one more
 * object that dev_lu_drop waits for. Any worker. */
void dev_itl_forget(struct dev_itl *i);
void dev_drop_left(struct dev_lu *lu);

/* dev_refreshed calls run(t) when the newest common state is in force; at once if the
 * unit is not shared. If that fails, it ends t. */
void dev_refreshed(struct dev_task *t, void (*run)(struct dev_task *t));

#endif
