/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * condition.h: whether a unit is ready: its condition, its power condition, its
 * medium.
 */
#ifndef DEVICE_CONDITION_H
#define DEVICE_CONDITION_H

#include "device/unit/unit.h"

/* The conditions in which a unit does not serve its medium, and LU_READY. */
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

/* dev_condition returns the condition of the unit. On any worker. */
enum dev_condition dev_condition(const struct dev_lu *lu);
/* dev_condition_go changes the condition from `from` to `to`. False: the unit is not
 * in the condition `from`, or the transition is not allowed. On any worker. */
bool dev_condition_go(struct dev_lu *lu, enum dev_condition from,
		      enum dev_condition to);
/* dev_condition_check is the part of dev_condition_forbids for a unit that is not
 * ready, or not active. */
bool dev_condition_check(struct dev_lu *lu, const struct dev_command *row,
			 struct scsi_sense *s);
/* dev_condition_forbids returns whether the condition of the unit forbids the
 * command, and then sets *s. A command that needs the medium ends a power condition. */
static inline bool dev_condition_forbids(struct dev_lu *lu,
					 const struct dev_command *row,
					 struct scsi_sense *s)
{
	return (__atomic_load_n(&lu->condition, __ATOMIC_ACQUIRE) |
		__atomic_load_n(&lu->power, __ATOMIC_RELAXED)) &&
	       dev_condition_check(lu, row, s);
}
/* dev_condition_sense sets *s to the sense data that REQUEST SENSE returns for the
 * condition; false: none. */
bool dev_condition_sense(const struct dev_lu *lu, struct scsi_sense *s);

/* ---- power.c ---- */

/* dev_power_find returns the index of a POWER CONDITION and its modifier; -1:
 * reserved. */
int dev_power_find(uint8_t condition, uint8_t modifier);
/* dev_power_go puts lu into the power condition of `index`. dev_power_needs_flush
 * returns whether the caller has to flush the cache first. dev_power_wake makes lu
 * active again. On any worker. */
void dev_power_go(struct dev_lu *lu, int index);
bool dev_power_needs_flush(int index);
void dev_power_wake(struct dev_lu *lu);
/* dev_power_sense sets *s to the sense data that REQUEST SENSE returns for the power
 * condition; false: the unit is active. */
bool dev_power_sense(const struct dev_lu *lu, struct scsi_sense *s);
/* dev_power_page writes VPD page 8Ah to p and returns its length. */
size_t dev_power_page(const struct dev_task *t, uint8_t *p);

/* ---- prevent.c ---- */

/* dev_prevent sets whether a nexus prevents medium removal; on its worker. persists:
 * the persistent prevention of MMC-6. */
void dev_prevent(struct dev_itl *i, bool persists, bool on);
/* dev_is_prevented returns whether START STOP UNIT must not eject. */
bool dev_is_prevented(const struct dev_lu *lu);
/* dev_removal_reset ends all preventions of lu; dev_removal_nexus_gone ends those of
 * one nexus there. */
void dev_removal_reset(struct dev_lu *lu);
void dev_removal_nexus_gone(struct dev_itl *i);

#endif
