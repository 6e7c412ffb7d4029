/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * condition.c: whether a unit is ready, and if not, which commands it serves and
 * with which sense data it ends all others (SBC-3 §§4.9, 4.10, 4.11). The condition
 * is an atomic byte.
 */
#include "device/unit/condition.h"
#include "device/unit/command.h"

static const uint16_t may_go[] = {
	[LU_READY] = BIT(LU_NO_MEDIUM) | BIT(LU_SANITIZING) |
		     BIT(LU_FORMATTING) | BIT(LU_EJECTED) | BIT(LU_CHANGING),
	[LU_NO_MEDIUM] = BIT(LU_READY),
	/* FORMAT_FAILED: if a SANITIZE after a failed format cannot begin */
	[LU_SANITIZING] =
		BIT(LU_READY) | BIT(LU_SANITIZE_FAILED) | BIT(LU_FORMAT_FAILED),
	[LU_EJECTED] = BIT(LU_READY) | BIT(LU_CHANGING),
	[LU_EMPTY] = BIT(LU_EMPTY_OPEN) | BIT(LU_CHANGING),
	[LU_EMPTY_OPEN] = BIT(LU_EMPTY) | BIT(LU_CHANGING),
	[LU_CHANGING] = BIT(LU_READY) | BIT(LU_EJECTED) | BIT(LU_EMPTY) |
			BIT(LU_EMPTY_OPEN),
	[LU_SANITIZE_FAILED] = BIT(LU_SANITIZING) | BIT(LU_READY),
	[LU_FORMATTING] = BIT(LU_READY) | BIT(LU_FORMAT_FAILED),
	[LU_FORMAT_FAILED] = BIT(LU_SANITIZING) | BIT(LU_FORMATTING),
};

enum dev_condition dev_condition(const struct dev_lu *lu)
{
	return (enum dev_condition)__atomic_load_n(&lu->condition,
						   __ATOMIC_ACQUIRE);
}

bool dev_condition_go(struct dev_lu *lu, enum dev_condition from,
		      enum dev_condition to)
{
	uint8_t was = (uint8_t)from;

	if (!(may_go[from] & BIT(to)))
		return false;
	if (!__atomic_compare_exchange_n(&lu->condition, &was, (uint8_t)to,
					 false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return false;
	dev_lu_changed(lu);
	return true;
}

static const struct {
	uint8_t key;
	uint16_t asc;
	bool progress;
} reports[] = {
	[LU_NO_MEDIUM] = { SENSE_NOT_READY, ASC_MEDIUM_NOT_PRESENT, false },
	[LU_SANITIZING] = { SENSE_NOT_READY, ASC_SANITIZE_IN_PROGRESS, true },
	[LU_SANITIZE_FAILED] = { SENSE_MEDIUM_ERROR, ASC_SANITIZE_FAILED,
				 false },
	[LU_FORMATTING] = { SENSE_NOT_READY, ASC_FORMAT_IN_PROGRESS, true },
	[LU_FORMAT_FAILED] = { SENSE_MEDIUM_ERROR, ASC_FORMAT_FAILED, false },
	[LU_EJECTED] = { SENSE_NOT_READY, ASC_NO_MEDIUM_TRAY_OPEN, false },
	[LU_EMPTY] = { SENSE_NOT_READY, ASC_NO_MEDIUM_TRAY_CLOSED, false },
	[LU_EMPTY_OPEN] = { SENSE_NOT_READY, ASC_NO_MEDIUM_TRAY_OPEN, false },
	[LU_CHANGING] = { SENSE_NOT_READY, ASC_BECOMING_READY, false },
};

static void report(const struct dev_lu *lu, enum dev_condition c,
		   struct scsi_sense *s)
{
	*s = (struct scsi_sense){ .key = reports[c].key,
				  .asc = reports[c].asc };
	if (!reports[c].progress)
		return;
	s->has_progress = true;
	s->progress = __atomic_load_n(&lu->erasure.progress, __ATOMIC_RELAXED);
}

bool dev_condition_check(struct dev_lu *lu, const struct dev_command *row,
			 struct scsi_sense *s)
{
	enum dev_condition c = dev_condition(lu);

	if ((row->flags & (CMD_MEDIUM | CMD_AT_REST)) == CMD_MEDIUM)
		dev_power_wake(lu);
	if (c == LU_READY)
		return false;
	if (row->flags & (CMD_ANY_LUN | CMD_ALWAYS))
		return false;
	/* SBC-3 §§4.10, 4.11: during these, the unit serves few commands */
	if (c != LU_SANITIZING && c != LU_FORMATTING &&
	    !(row->flags & CMD_MEDIUM))
		return false;
	report(lu, c, s);
	return true;
}

bool dev_condition_sense(const struct dev_lu *lu, struct scsi_sense *s)
{
	enum dev_condition c = dev_condition(lu);

	if (c == LU_READY)
		return dev_power_sense(lu, s);
	report(lu, c, s);
	return true;
}
