/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * condition.h: whether a unit is ready: its condition, its power condition, its
 * medium.
 */
#ifndef DEVICE_CONDITION_H
#define DEVICE_CONDITION_H

#include "device/unit/unit.h"

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
/* dev_condition_go: from one condition to another; false: the unit is not in the
 * first one, or that transition does not exist. Any worker. */
bool dev_condition_go(struct dev_lu *lu, enum dev_condition from,
		      enum dev_condition to);
bool dev_condition_judges(struct dev_lu *lu, const struct dev_command *row,
			  struct scsi_sense *s);
/* dev_condition_forbids: whether the unit's condition forbids the command; fills *s
 * then. A command that needs the medium ends a power condition. */
static inline bool dev_condition_forbids(struct dev_lu *lu,
					 const struct dev_command *row,
					 struct scsi_sense *s)
{
	return (__atomic_load_n(&lu->condition, __ATOMIC_ACQUIRE) |
		__atomic_load_n(&lu->power, __ATOMIC_RELAXED)) &&
	       dev_condition_judges(lu, row, s);
}
/* dev_condition_sense: what REQUEST SENSE reports of it; false: nothing. */
bool dev_condition_sense(const struct dev_lu *lu, struct scsi_sense *s);

/* ---- power.c ---- */

/* dev_power_find: the index of a POWER CONDITION and its modifier; -1: reserved. */
int dev_power_find(uint8_t condition, uint8_t modifier);
/* dev_power_go: lu enters that power condition. dev_power_needs_flush: the cache is
 * flushed before. dev_power_wake: lu is active again. Any worker. */
void dev_power_go(struct dev_lu *lu, int index);
bool dev_power_needs_flush(int index);
void dev_power_wake(struct dev_lu *lu);
/* dev_power_sense: what REQUEST SENSE reports of it; false: the unit is active. */
bool dev_power_sense(const struct dev_lu *lu, struct scsi_sense *s);
size_t dev_power_page(const struct dev_task *t, uint8_t *p); /* VPD 8Ah */

/* ---- prevent.c ---- */

/* dev_prevent: n begins or ends to prevent medium removal; on n's worker.
 * persists: the kind that MMC-6 calls persistent. */
void dev_prevent(struct dev_nexus *n, struct dev_lu *lu, bool persists,
		 bool on);
/* dev_is_prevented: START STOP UNIT may not eject. */
bool dev_is_prevented(const struct dev_lu *lu);
/* The unit is reset; the nexus ends. */
void dev_removal_reset(struct dev_lu *lu);
void dev_removal_nexus_gone(struct dev_nexus *n);

#endif
