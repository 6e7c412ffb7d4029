/* SPDX-License-Identifier: BSD-2-Clause */
/* attention.h: unit attentions. */
#ifndef DEVICE_ATTENTION_H
#define DEVICE_ATTENTION_H

#include "device/internal.h"

/* Unit attentions of a nexus at a unit, in the order they are reported: power
 * on, resets, the others (SAM-5 §5.14). */
enum dev_ua {
	UA_POWER_ON,
	UA_BUS_DEVICE_RESET,
	UA_COMMANDS_CLEARED,
	UA_CAPACITY_CHANGED,
	UA_MODE_CHANGED,
	UA_LUNS_CHANGED,
	UA_RESERVATIONS_PREEMPTED,
	UA_RESERVATIONS_RELEASED,
	UA_REGISTRATIONS_PREEMPTED,
	UA_ACCESS_CHANGED,
	UA_ACCESS_CHANGE_FAILED,
	UA_SOFT_THRESHOLD,
	UA_TIMESTAMP_CHANGED,
	UA_PRIORITY_CHANGED,
	UA_DEVICE_IDENTIFIER,
	UA_MEDIUM_CHANGED,
	UA_LOG_CHANGED,
	UA_OF_DEVICE, /* pass.c: what the real device said last */
	UA_COUNT,
};

/*
 * dev_tell_all: tell is called for every nexus of lu's server, on its worker;
 * then goes on with t, if there is one, once all were told. False: no memory,
 * nobody is told.
 */
typedef void dev_tell(struct dev_nexus *n, const struct dev_lu *lu,
		      unsigned what, bool is_except);
bool dev_tell_all(struct dev_lu *lu, unsigned here,
		  const struct dev_nexus *except, dev_tell *tell, unsigned what,
		  struct dev_task *t, void (*then)(struct dev_task *t));

/* For every nexus of t's unit; soon. */
void dev_attention_all(struct dev_task *t, enum dev_ua ua);
/* For every nexus of t's unit but its own; then goes on with t, once all of
 * them have it: what they do next can't come before. */
void dev_attention_others(struct dev_task *t, enum dev_ua ua,
			  void (*then)(struct dev_task *t));
/* For every nexus of the unit but one. */
void dev_attention_unit(struct dev_lu *lu, unsigned worker,
			const struct dev_nexus *except, enum dev_ua ua);
void dev_attention_set(struct dev_nexus *n, uint16_t lun, enum dev_ua ua);
/* The first pending one, taken off: fills *s, returns 1 + which; 0: none. */
unsigned dev_attention_take(struct dev_nexus *n, uint16_t lun,
			    struct scsi_sense *s);
void dev_attention_put_back(struct dev_task *t);

#endif
