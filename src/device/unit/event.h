/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event.h: what the nexuses of other gateways have to learn of a change (dev_save.event,
 * dev_adoption.events), as bytes: entries of 11 bytes, big-endian:
 *
 *    0  8  the nexus (dev_event_nexus); 0: every nexus
 *    8  2  the additional sense code of a unit attention, or 0
 *   10  1  1: the tasks of the nexus are aborted; 2: the unit is reset
 *
 * A nexus is a hash of the names of its ports, so that an event has a few KiB at most. A
 * nexus that is made to have the hash of another one gets attentions of that one, no more.
 */
#ifndef DEVICE_EVENT_H
#define DEVICE_EVENT_H

#include "device/shared.h"
#include "device/unit/attention.h"

#define DEV_EVENT_ENTRY	 11u
#define DEV_EVENT_ABORTS 0x1u
#define DEV_EVENT_RESETS 0x2u
#define DEV_EVENT_ALL	 0u /* every nexus */
#define DEV_EVENT_NO_UA	 UA_COUNT

/* dev_event_nexus returns the hash of the nexus of these ports. */
uint64_t dev_event_nexus(const char *initiator_port, uint16_t target_port);
/* dev_event_put writes an entry to p and returns its length. */
size_t dev_event_put(uint8_t *p, uint64_t nexus, enum dev_ua ua, uint8_t flags);

/* The events of an adoption that concern one kind of record. */
struct dev_heard {
	bool incomplete;
	bool resets;
	bool aborts;	 /* tasks of some nexus are aborted */
	uint32_t of_all; /* attentions of every nexus, BIT(enum dev_ua) */
	unsigned n;
	struct dev_heard_of {
		uint64_t nexus;
		uint32_t attentions;
		bool aborts;
	} of[]; /* in the order of `nexus`, each once */
};

/* dev_heard_new reads the events of a; entries that this release does not know are
 * ignored. The caller frees the result. NULL: no memory. */
struct dev_heard *dev_heard_new(const struct dev_adoption *a,
				enum dev_kept kind);
/* dev_heard_find returns what the events say of this nexus alone, or NULL. */
const struct dev_heard_of *dev_heard_find(const struct dev_heard *h,
					  const struct dev_nexus *n);

#endif
