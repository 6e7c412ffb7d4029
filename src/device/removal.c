/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * removal.c: START STOP UNIT (SBC-3 §5.25), PREVENT ALLOW MEDIUM REMOVAL
 * (SPC-4 §6.14). A nexus's prevention counts while its generation is the
 * unit's: a reset begins a new one, and all are gone.
 */
#include "device/internal.h"

/* ---- who prevents ---- */

static uint32_t generation(uint64_t preventions)
{
	return (uint32_t)(preventions >> 32);
}

/* One more or one less of this generation; a reset meanwhile wins. */
static void count(struct dev_lu *lu, uint32_t gen, int by)
{
	uint64_t was = __atomic_load_n(&lu->preventions, __ATOMIC_RELAXED);

	while (generation(was) == gen &&
	       !__atomic_compare_exchange_n(&lu->preventions, &was,
					    was + (uint64_t)(int64_t)by, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static void prevent(struct dev_nexus *n, struct dev_lu *lu, bool on)
{
	uint32_t *mine = &n->prevents[lu->cfg.lun];
	uint32_t gen =
		generation(__atomic_load_n(&lu->preventions, __ATOMIC_RELAXED));
	bool was = *mine == gen + 1;

	if (was != on)
		count(lu, gen, on ? 1 : -1);
	*mine = on ? gen + 1 : 0;
}

static bool is_prevented(const struct dev_lu *lu)
{
	return (uint32_t)__atomic_load_n(&lu->preventions, __ATOMIC_RELAXED);
}

void dev_removal_reset(struct dev_lu *lu)
{
	uint64_t was = __atomic_load_n(&lu->preventions, __ATOMIC_RELAXED);

	while (!__atomic_compare_exchange_n(
		&lu->preventions, &was, (uint64_t)(generation(was) + 1) << 32,
		false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

void dev_removal_nexus_gone(struct dev_nexus *n)
{
	for (uint16_t lun = 0; lun < DEV_MAX_LUNS; lun++) {
		struct dev_lu *lu = dev_lu_get(n->server, lun);

		if (lu && n->prevents[lun])
			prevent(n, lu, false);
	}
}

void dev_prevent_allow(struct dev_task *t)
{
	if (t->lu->cfg.removable)
		prevent(t->nexus, t->lu, t->cdb[4] & 0x01);
	dev_good(t);
}

/* ---- START STOP UNIT ---- */

#define POWER_CONDITION 0xf0
#define NO_FLUSH	0x04
#define LOEJ		0x02
#define START		0x01

static void load(struct dev_task *t)
{
	if (dev_condition_go(t->lu, LU_NO_MEDIUM, LU_READY))
		dev_attention_others(t, UA_MEDIUM_CHANGED, dev_good);
	else
		dev_good(t);
}

static void eject(struct dev_task *t)
{
	/* ejected already, or being erased: the latter was refused before */
	(void)dev_condition_go(t->lu, LU_READY, LU_NO_MEDIUM);
	dev_good(t);
}

static void flushed_then_eject(struct dev_task *t, int result)
{
	if (result)
		dev_io_failed(t, result, 0);
	else
		eject(t);
}

static void flushed(struct dev_task *t, int result)
{
	if (result)
		dev_io_failed(t, result, 0);
	else
		dev_good(t);
}

/*
 * Power conditions are accepted and mean nothing here, and so does stopping
 * without ejecting, but for the flush: other initiators may be at work on a
 * unit that one of them thinks to spin down.
 */
void dev_start_stop(struct dev_task *t)
{
	uint8_t what = t->cdb[4];
	bool flush = !(what & NO_FLUSH);

	if (what & POWER_CONDITION || (what & (LOEJ | START)) == START)
		dev_good(t);
	else if (!(what & LOEJ))
		flush ? dev_submit(t, BS_FLUSH, 0, 0, 0, flushed) : dev_good(t);
	else if (!t->lu->cfg.removable)
		dev_bad_field(t, 4, 1);
	else if (is_prevented(t->lu)) /* no change of medium, either way */
		dev_check(t, SENSE_ILLEGAL_REQUEST, ASC_REMOVAL_PREVENTED);
	else if (what & START)
		load(t);
	else if (flush)
		dev_submit(t, BS_FLUSH, 0, 0, 0, flushed_then_eject);
	else
		eject(t);
}
