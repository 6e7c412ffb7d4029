/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * removal.c: START STOP UNIT (SBC-3 §5.25, MMC-6) and PREVENT ALLOW MEDIUM
 * REMOVAL (SPC-4 §6.14, MMC-6).
 */
#include "device/cd/cd.h"
#include "device/primary/primary.h"
#include "device/unit/attention.h"
#include "device/unit/condition.h"

/* Bit 0 of PREVENT prevents the removal; bit 1 selects the persistent
 * prevention, which only CD/DVD devices have. */
void dev_prevent_allow(struct dev_task *t)
{
	bool persists = t->lu->cfg.type == DEV_CD && (t->cdb[4] & 0x02);

	if (t->lu->cfg.removable)
		dev_prevent(t->own.begun.itl, persists, t->cdb[4] & 0x01);
	dev_good(t);
}

/* ---- START STOP UNIT ---- */

#define POWER_CONDITION 0xf0
#define NO_FLUSH	0x04
#define FORMAT_LAYER	0x04 /* MMC-6's name for the bit */
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
	/* no effect if the medium is ejected; a unit in erasure has refused
	 * the command */
	(void)dev_condition_go(t->lu, LU_READY, LU_NO_MEDIUM);
	dev_good(t);
}

static void flushed_then_eject(struct dev_task *t, int result)
{
	if (result)
		dev_io_failed(t, result, 0);
	else if (dev_is_prevented(t->lu)) /* since the flush began */
		dev_check(t, SENSE_ILLEGAL_REQUEST, ASC_REMOVAL_PREVENTED);
	else
		eject(t);
}

static void flushed_then_rest(struct dev_task *t, int result)
{
	if (result) {
		dev_io_failed(t, result, 0);
		return;
	}
	dev_power_go(t->lu, (int)t->own.count);
	dev_good(t);
}

/* Reserved power conditions have no effect: the test suite of libiscsi sends
 * all of them and expects that they disable LOEJ. With `strict` they are
 * refused. */
static void change_power(struct dev_task *t)
{
	uint8_t condition = t->cdb[4] >> 4, modifier = t->cdb[3] & 0x0f;
	int to = dev_power_find(condition, modifier);

	if (to < 0) {
		if (dev_power_find(condition, 0) >= 0)
			dev_bad_field(t, 3, -1);
		else if (t->lu->cfg.strict)
			dev_bad_field(t, 4, -1);
		else
			dev_good(t);
		return;
	}
	t->own.count = (uint32_t)to;
	if (dev_power_needs_flush(to) && !(t->cdb[4] & NO_FLUSH))
		dev_submit(t, BS_FLUSH, 0, 0, 0, flushed_then_rest);
	else
		flushed_then_rest(t, 0);
}

static void activate(struct dev_task *t)
{
	dev_power_wake(t->lu);
	dev_good(t);
}

/*
 * START STOP UNIT without LOEJ does not stop the unit, but only flushes: other
 * initiators may use a unit that one initiator wants to stop.
 */
void dev_start_stop(struct dev_task *t)
{
	uint8_t what = t->cdb[4];
	bool flush = !(what & NO_FLUSH);

	if (what >> 4)
		change_power(t);
	else if ((what & (LOEJ | START)) == START)
		activate(t);
	else if (!(what & LOEJ))
		flush ? dev_flush(t, 0) : dev_good(t);
	else if (!t->lu->cfg.removable)
		dev_bad_field(t, 4, 1);
	else if (dev_is_prevented(t->lu)) /* neither eject nor load */
		dev_check(t, SENSE_ILLEGAL_REQUEST, ASC_REMOVAL_PREVENTED);
	else if (what & START)
		load(t);
	else if (flush)
		dev_submit(t, BS_FLUSH, 0, 0, 0, flushed_then_eject);
	else
		eject(t);
}

/* ---- the same for a CD/DVD device, MMC-6 §6.42 ---- */

/* Closes the tray; the unit is ready if the tray has a medium. */
static void load_cd(struct dev_task *t)
{
	(void)dev_condition_go(t->lu, LU_EMPTY_OPEN, LU_EMPTY);
	if (dev_condition_go(t->lu, LU_EJECTED, LU_READY))
		cd_post_event(t, CD_EVENT_NEW_MEDIUM, dev_good);
	else
		dev_good(t);
}

/* Opens the tray; the medium stays in the tray and can be loaded again. */
static void eject_cd(struct dev_task *t)
{
	(void)dev_condition_go(t->lu, LU_EMPTY, LU_EMPTY_OPEN);
	if (dev_condition_go(t->lu, LU_READY, LU_EJECTED))
		cd_post_event(t, CD_EVENT_REMOVAL, dev_good);
	else
		dev_good(t);
}

/*
 * Power conditions have no effect. Prevention does not stop an open tray from
 * closing. The bit NO_FLUSH of disks is FL here: with LOEJ and START the
 * command selects another layer of a hybrid disc, and no medium here is one;
 * else FL is ignored.
 */
void cd_start_stop(struct dev_task *t)
{
	uint8_t what = t->cdb[4];

	if (what & POWER_CONDITION || !(what & LOEJ))
		dev_good(t);
	else if ((what & (FORMAT_LAYER | START)) == (FORMAT_LAYER | START))
		dev_bad_field(t, 4, 2);
	else if (what & START)
		load_cd(t);
	else if (dev_is_prevented(t->lu))
		dev_check(t, SENSE_ILLEGAL_REQUEST, ASC_REMOVAL_PREVENTED);
	else
		eject_cd(t);
}
