/* SPDX-License-Identifier: BSD-2-Clause */
/* range.h: who may touch which blocks at once. */
#ifndef DEVICE_RANGE_H
#define DEVICE_RANGE_H

#include "device/internal.h"

/* Behind every medium: what changes the unit itself has this one alone. */
#define DEV_STATE_LBA (UINT64_MAX - 1)
/* From block 0: all of the unit, however large it becomes, and its state. */
#define DEV_WHOLE_UNIT (DEV_STATE_LBA + 1)

int dev_lanes_init(struct dev_lu *lu); /* 0, ERR_NOMEM */
void dev_lanes_fini(struct dev_lu *lu);
/*
 * dev_range_take: r->go is called, now or later, once [lba, lba + blocks) of
 * lu may be touched. Worker is the calling one. ERR_NOMEM (ALONE only): it
 * never will be.
 */
int dev_range_take(struct dev_range *r, struct dev_lu *lu, unsigned worker,
		   uint64_t lba, uint64_t blocks, enum dev_hold how,
		   void (*go)(struct dev_range *r));
/* dev_range_drop gives it back; harmless when nothing is held. */
void dev_range_drop(struct dev_range *r);
/* dev_range_give_up: a range that still waits for others to end is forgotten;
 * false: go is still to come, or was. */
bool dev_range_give_up(struct dev_range *r);

#endif
