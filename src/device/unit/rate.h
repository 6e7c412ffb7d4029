/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rate.h: limits of the operations and bytes per second of a unit. Each limit is a time,
 * shared by all workers: when what was admitted so far would be done at the permitted
 * rate. A command is admitted while that time is ahead by the burst at most, and
 * moves it on by its cost; so a large command makes later ones wait, not itself.
 */
#ifndef DEVICE_RATE_H
#define DEVICE_RATE_H

#include "device/unit/unit.h"

/* dev_rate_set puts the limits in force, on worker 0; commands that wait follow them in
 * a tenth of a second. The caller calls dev_lu_changed afterwards. */
void dev_rate_set(struct dev_lu *lu, const struct dev_limits *limits);
/* dev_rate_init sets the limit that all units have: of their resets. */
void dev_rate_init(struct dev_lu *lu);
/* dev_rate_is_limited returns whether the unit has a limit. */
bool dev_rate_is_limited(const struct dev_lu *lu);
/* dev_rate_delays returns whether t, which is about to execute, has to wait; then
 * flow->paced is called later. dev_task_abort ends the wait at once. */
bool dev_rate_delays(struct dev_task *t);
/* dev_rate_charge counts bytes that a copy has moved, on any worker. Later commands wait
 * for them, a second at most. */
void dev_rate_charge(struct dev_lu *lu, unsigned worker, uint64_t bytes);

#endif
