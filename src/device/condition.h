/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * condition.h: whether a unit is ready: its condition, its power condition, its
 * medium.
 */
#ifndef DEVICE_CONDITION_H
#define DEVICE_CONDITION_H

#include "device/internal.h"

/* Why a unit does not serve its medium. */
enum dev_condition {
	LU_READY,
	LU_NO_MEDIUM,
	LU_SANITIZING,
	LU_SANITIZE_FAILED,
	LU_FORMATTING,
	LU_FORMAT_FAILED,
	/* of DEV_CD */
	LU_EJECTED, /* in the open tray */
	LU_EMPTY,
	LU_EMPTY_OPEN,
	LU_CHANGING,
};

/* ---- condition.c ---- */

enum dev_condition dev_condition(const struct dev_lu *lu);
/* From one condition to another; false: it was no longer the first. */
bool dev_condition_go(struct dev_lu *lu, enum dev_condition from,
		      enum dev_condition to);
bool dev_condition_judges(struct dev_lu *lu, const struct dev_command *row,
			  struct scsi_sense *s);
/* Does the unit's condition forbid the command? Fills *s then. */
static inline bool dev_condition_forbids(struct dev_lu *lu,
					 const struct dev_command *row,
					 struct scsi_sense *s)
{
	return (__atomic_load_n(&lu->condition, __ATOMIC_ACQUIRE) |
		__atomic_load_n(&lu->power, __ATOMIC_RELAXED)) &&
	       dev_condition_judges(lu, row, s);
}
/* What REQUEST SENSE tells of it; false: nothing. */
bool dev_condition_sense(const struct dev_lu *lu, struct scsi_sense *s);

/* ---- power.c ---- */

/* POWER CONDITION and its modifier as an index, or -1: there is none such. */
int dev_power_find(uint8_t condition, uint8_t modifier);
void dev_power_go(struct dev_lu *lu, int index);
bool dev_power_needs_flush(int index);
void dev_power_wake(struct dev_lu *lu);
/* What REQUEST SENSE tells of it; false: it is active. */
bool dev_power_sense(const struct dev_lu *lu, struct scsi_sense *s);
size_t dev_power_page(const struct dev_task *t, uint8_t *p); /* VPD 8Ah */

/* ---- removal.c ---- */

void dev_removal_reset(struct dev_lu *lu);
void dev_removal_nexus_gone(struct dev_nexus *n);

#endif
