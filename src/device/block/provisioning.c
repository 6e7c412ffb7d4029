/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * provisioning.c: the soft threshold of a thin unit (SBC-3 §4.7.3.8). MODE
 * SELECT sets the threshold (page 1Ch/02h) and disables its report (LBPERE of
 * page 01h). A worker compares the free space with the threshold after each
 * threshold set that it wrote, at the end of the command that completed the
 * set, and only if the threshold is set and reported.
 */
#include "device/block/block.h"
#include "device/unit/attention.h"

#define SET_SHIFT 20 /* 1 MiB */

unsigned dev_threshold_exponent(const struct dev_lu *lu)
{
	if (!(lu->bs->caps & BS_CAP_SPACE) || !(lu->bs->caps & BS_CAP_UNMAP))
		return 0;
	return SET_SHIFT - lu->block_shift;
}

/* Reports each crossing once, and again after the free space was above the
 * threshold. */
static void crossed(struct dev_task *t, bool below)
{
	struct dev_lu *lu = t->lu;
	bool told =
		__atomic_exchange_n(&lu->soft_told, below, __ATOMIC_RELAXED);

	if (!below || told)
		return;
	if (DEV_CTL(lu, single_attention))
		dev_attention_set(t->own.begun.itl, UA_SOFT_THRESHOLD);
	else
		dev_attention_all(t, UA_SOFT_THRESHOLD);
}

/* An error is ignored: the next threshold set repeats the request. */
static void probed(struct dev_task *t, int result)
{
	if (!result)
		crossed(t, t->own.req.space_left >> SET_SHIFT <=
				   DEV_CTL(t->lu, soft_count));
	dev_good(t);
}

void dev_written(struct dev_task *t, uint64_t bytes)
{
	struct dev_lane *lane = &t->lu->lanes[t->nexus->cfg.worker];

	if (!DEV_CTL(t->lu, soft_enabled) || DEV_CTL(t->lu, unreported)) {
		dev_good(t);
		return;
	}
	lane->since_probe += bytes;
	if (lane->since_probe >> SET_SHIFT == 0) {
		dev_good(t);
		return;
	}
	lane->since_probe = 0;
	dev_submit(t, BS_SPACE, 0, 0, 0, probed);
}
