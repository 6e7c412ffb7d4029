/* SPDX-License-Identifier: BSD-2-Clause */
/* range.h: shared and exclusive access of commands to ranges of blocks. */
#ifndef DEVICE_RANGE_H
#define DEVICE_RANGE_H

#include "device/unit/unit.h"

/* A block after every medium: a command that changes the state of the unit has
 * exclusive access to it. */
#define DEV_STATE_LBA (UINT64_MAX - 1)
/* The number of blocks, from block 0, that cover the unit at any capacity, and its
 * state. */
#define DEV_WHOLE_UNIT (DEV_STATE_LBA + 1)

/* dev_lanes_init allocates the lanes of lu; ERR_NOMEM. */
int dev_lanes_init(struct dev_lu *lu);
/* dev_lanes_fini frees the lanes of lu. No command of lu is in progress. */
void dev_lanes_fini(struct dev_lu *lu);
/*
 * dev_range_take calls r->go, now or later, when the caller may use [lba, lba +
 * blocks) of lu. worker is the calling one. ERR_NOMEM (DEV_HOLD_ALONE only): go is
 * not called.
 */
int dev_range_take(struct dev_range *r, struct dev_lu *lu, unsigned worker,
		   uint64_t lba, uint64_t blocks, enum dev_hold how,
		   void (*go)(struct dev_range *r));
/* dev_range_share takes [lba, lba + blocks) of lu, shared, on the calling worker, if no
 * command has or wants exclusive access to any blocks there; false: nothing was done. */
static inline bool dev_range_share(struct dev_range *r, struct dev_lu *lu,
				   unsigned worker, uint64_t lba,
				   uint64_t blocks)
{
	struct dev_lane *lane = &lu->lanes[worker];

	if (!list_empty(&lane->fences))
		return false;
	r->state = DEV_HOLD_SHARED;
	r->lu = lu;
	r->worker = worker;
	r->lba = lba;
	r->blocks = blocks;
	list_push_back(&lane->touching, &r->link);
	return true;
}

/* dev_range_drop releases the range, if one is held. */
void dev_range_release(struct dev_range *r);
static inline void dev_range_drop(struct dev_range *r)
{
	if (r->state == DEV_HOLD_SHARED &&
	    list_empty(&r->lu->lanes[r->worker].fences)) {
		r->state = DEV_HOLD_NONE;
		list_del(&r->link);
	} else if (r->state != DEV_HOLD_NONE) {
		dev_range_release(r);
	}
}

/* dev_range_give_up removes a waiting range; false: go was called, or a message that
 * calls go is on its way. */
bool dev_range_give_up(struct dev_range *r);

#endif
