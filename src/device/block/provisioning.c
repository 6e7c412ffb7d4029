/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * provisioning.c: how much space a thin unit has left (SBC-3 §4.7.3.8): one
 * soft threshold that MODE SELECT arms (page 1Ch/02h) and silences (LBPERE of
 * page 01h). It is looked at once per threshold set that a worker wrote, at the
 * end of the command that completed the set; where nobody is to be told nothing
 * is asked.
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

/* Once per crossing: armed again when there is room again. */
static void crossed(struct dev_task *t, bool below)
{
	struct dev_lu *lu = t->lu;
	bool told =
		__atomic_exchange_n(&lu->soft_told, below, __ATOMIC_RELAXED);

	if (!below || told)
		return;
	if (DEV_CTL(lu, single_attention))
		dev_attention_set(t->nexus, lu->cfg.lun, UA_SOFT_THRESHOLD);
	else
		dev_attention_all(t, UA_SOFT_THRESHOLD);
}

/* A store that cannot say just now is asked again after the next set. */
static void probed(struct dev_task *t, int result)
{
	if (!result)
		crossed(t, t->req.space_left >> SET_SHIFT <=
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
