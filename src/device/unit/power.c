/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * power.c: power conditions (SPC-4 §5.12, SBC-3 §4.20) as START STOP UNIT asks
 * for them. A unit saves no power: it reports the power condition that it was put
 * in, and serves its commands; the first command that needs the medium makes the unit
 * active again. There are no timers (mode page 1Ah).
 */
#include "device/unit/condition.h"

enum { /* ASCQ of LOW POWER CONDITION ON, by command; 0: active */
	IDLE_A = 0x03,
	STANDBY_Z = 0x04,
	IDLE_B = 0x06,
	IDLE_C = 0x08,
	STANDBY_Y = 0x0a,
};
#define ASC_LOW_POWER 0x5e00

/* POWER CONDITION and POWER CONDITION MODIFIER, SBC-3 table 95. */
static const struct {
	uint8_t condition, modifier, to;
	bool stays; /* the power condition does not change */
} table[] = {
	{ 0x1, 0, 0, false },	   /* ACTIVE */
	{ 0x2, 0, IDLE_A, false }, /* IDLE */
	{ 0x2, 1, IDLE_B, false },
	{ 0x2, 2, IDLE_C, false },
	{ 0x3, 0, STANDBY_Z, false }, /* STANDBY */
	{ 0x3, 1, STANDBY_Y, false },
	{ 0x5, 0, STANDBY_Z, false }, /* SLEEP of MMC-6; obsolete in SBC-3 */
	{ 0x7, 0, 0, true },	      /* LU_CONTROL: no timers */
	{ 0xa, 0, IDLE_A, false },    /* FORCE_IDLE_0 */
	{ 0xa, 1, IDLE_B, false },
	{ 0xa, 2, IDLE_C, false },
	{ 0xb, 0, STANDBY_Z, false }, /* FORCE_STANDBY_0 */
	{ 0xb, 1, STANDBY_Y, false },
};

int dev_power_find(uint8_t condition, uint8_t modifier)
{
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (table[i].condition == condition &&
		    table[i].modifier == modifier)
			return (int)i;
	return -1;
}

void dev_power_go(struct dev_lu *lu, int index)
{
	if (table[index].stays)
		return;
	__atomic_store_n(&lu->power, table[index].to, __ATOMIC_RELAXED);
	dev_lu_changed(lu);
}

/* SPC-4 §5.12.4: in standby the medium cannot be accessed, so the cache is flushed
 * before. */
bool dev_power_needs_flush(int index)
{
	return table[index].to == STANDBY_Y || table[index].to == STANDBY_Z;
}

void dev_power_wake(struct dev_lu *lu)
{
	__atomic_store_n(&lu->power, 0, __ATOMIC_RELAXED);
}

bool dev_power_sense(const struct dev_lu *lu, struct scsi_sense *s)
{
	uint8_t power = __atomic_load_n(&lu->power, __ATOMIC_RELAXED);

	if (!power)
		return false;
	*s = (struct scsi_sense){ .key = SENSE_NO_SENSE,
				  .asc = (uint16_t)(ASC_LOW_POWER | power) };
	return true;
}

/* VPD 8Ah, SPC-4 §7.8.12: all conditions by command; none takes time to leave.
 */
size_t dev_power_page(const struct dev_task *t, uint8_t *p)
{
	(void)t;
	p[4] = 0x03; /* STANDBY_Y, STANDBY_Z */
	p[5] = 0x07; /* IDLE_C, IDLE_B, IDLE_A */
	return 18;
}
