/* SPDX-License-Identifier: BSD-2-Clause */
/* attention.h: unit attentions. */
#ifndef DEVICE_ATTENTION_H
#define DEVICE_ATTENTION_H

#include "device/unit/unit.h"

/* Unit attentions of a nexus at a unit, in the order of their reports: power on,
 * resets, then all further ones (SAM-5 §5.14). */
enum dev_ua {
	UA_POWER_ON,
	UA_BUS_DEVICE_RESET,
	UA_COMMANDS_CLEARED,
	UA_ISCSI_EVENT,
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
	UA_INQUIRY_CHANGED,
	UA_OF_DEVICE, /* the latest attention of a SCSI device (pass.c) */
	UA_COUNT,
};

/* dev_attention_asc returns the additional sense code of ua. */
uint16_t dev_attention_asc(enum dev_ua ua);

/*
 * dev_visit_nexuses calls visit for every nexus that has lu, on its worker; after
 * the last one calls then(t), if t is not NULL. False: no memory, no nexus was
 * visited.
 */
typedef void dev_visit(struct dev_itl *i, unsigned what, bool is_except);
bool dev_visit_nexuses(struct dev_lu *lu, unsigned here,
		       const struct dev_nexus *except, dev_visit *visit,
		       unsigned what, struct dev_task *t,
		       void (*then)(struct dev_task *t));

/* dev_attention_all establishes ua for every nexus of t's unit, soon. */
void dev_attention_all(struct dev_task *t, enum dev_ua ua);
/* dev_attention_others establishes ua for every nexus of t's unit but t's own, and
 * then calls then(t): a later command of those nexuses reports it. */
void dev_attention_others(struct dev_task *t, enum dev_ua ua,
			  void (*then)(struct dev_task *t));
/* dev_attention_unit begins to establish ua for every nexus of the unit except one.
 * No memory: the attention is lost. */
void dev_attention_unit(struct dev_lu *lu, unsigned worker,
			const struct dev_nexus *except, enum dev_ua ua);
/* dev_attention_set establishes ua for a nexus at one unit. On its worker. */
void dev_attention_set(struct dev_itl *i, enum dev_ua ua);
/* dev_attention_luns_reported clears REPORTED LUNS DATA HAS CHANGED at all units of the
 * nexus, once one of them has reported it (SPC-4 §7.8.7, LUICLR) or REPORT LUNS was
 * executed (SAM-5 §5.14). On its worker. */
void dev_attention_luns_reported(struct dev_nexus *n);
/* dev_attention_take clears the first pending unit attention and fills *s; returns
 * 1 + enum dev_ua; 0: none is pending. */
unsigned dev_attention_take(struct dev_itl *i, struct scsi_sense *s);
/* dev_attention_put_back makes the attention pending again that t, now aborted, had
 * taken. */
void dev_attention_put_back(struct dev_task *t);

#endif
