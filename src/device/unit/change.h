/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * change.h: changes that are decided one at a time and come into force on every
 * worker: of reservations and ACAs, of target port groups, of persisted records.
 *
 * The home worker decides a change from the newest state, puts its record on the
 * medium if there is one, and visits each worker in turn. Only after the last
 * visit the next change of the queue is decided, and the change is done: what
 * its owner reports then is in force everywhere.
 *
 * While the record of a shared unit (shared.h) is being saved, which may take long, changes
 * of other units go on; those of the same unit wait. Then the change is the next one,
 * unless another gateway was faster: then it is decided again, after the newer state.
 */
#ifndef DEVICE_CHANGE_H
#define DEVICE_CHANGE_H

#include "device/unit/unit.h"

#define DEV_HOME 0u /* the worker that decides */

struct dev_change;

struct dev_change_ops {
	/* On the home worker, while no other change of the queue is in progress.
	 * Calls dev_change_record, dev_change_visit or dev_change_end, once. */
	void (*decide)(struct dev_change *c);
	/* On the home worker, after dev_change_record: err 0, or nothing was
	 * recorded. Goes on as decide does. */
	void (*recorded)(struct dev_change *c, int err);
	/* On the home worker: another gateway has changed the record, and its change
	 * waits in the queue. Undoes what decide has done to c; decide follows. Of
	 * shared units. */
	void (*again)(struct dev_change *c);
	/* On each worker, after dev_change_visit. Calls dev_round_next for
	 * c->round, at once or later. */
	void (*visit)(struct dev_change *c, unsigned worker);
	/* On the home worker, after the last visit. Goes on as decide does. */
	void (*visited)(struct dev_change *c);
	/* On the worker that started c: the owner may free c. */
	void (*done)(struct dev_change *c);
	/* On the home worker: returns whether c cannot wait until `current` has
	 * ended. True: c has its status, and done follows. NULL: c can always
	 * wait. */
	bool (*bounces)(struct dev_change *c, const struct dev_change *current);
	/* The server is freed, no thread runs: c will not be done. NULL: c has
	 * nothing to free. */
	void (*forget)(struct dev_change *c);
};

/* Embedded in the object of a room that describes the change. Only change.c uses the
 * members. */
struct dev_change {
	struct dev_round round; /* also takes c to the home worker and back */
	struct list link; /* dev_changes.waiting or .saving, on the home worker */
	struct dev_changes *queue;
	const struct dev_change_ops *ops;
	unsigned from; /* the worker that started c */
	struct dev_save save;
	uint8_t *bytes; /* of the record, and of the event */
	/* of a shared unit: where it notes the change whose record is being saved
	 * (dev_lu_saving); set by the caller; NULL: another unit */
	struct dev_change **saving;
	bool is_first;	  /* set by the caller: goes before all that wait */
	bool is_recorded; /* the record was saved, `recorded` is due */
};

/* dev_changes_init makes q an empty queue. */
void dev_changes_init(struct dev_changes *q);
/* dev_changes_forget calls forget for each remaining change. No worker is running. */
void dev_changes_forget(struct dev_changes *q);

/* dev_change_start adds c to the queue q, on worker `from`. c stays valid until
 * done. */
void dev_change_start(struct dev_change *c, struct dev_server *s,
		      struct dev_changes *q, unsigned from,
		      const struct dev_change_ops *ops);
/* dev_change_record persists len bytes (0: deletes the record) as the record of lu,
 * then calls recorded. After the record, bytes has event_len bytes of an event for other
 * gateways (event.h). Takes over bytes, from malloc. */
void dev_change_record(struct dev_change *c, struct dev_lu *lu,
		       enum dev_kept kind, uint8_t *bytes, size_t len,
		       size_t event_len);
/* dev_change_visit calls visit on each worker, then visited. */
void dev_change_visit(struct dev_change *c);
/* dev_change_end ends the change: the next one is decided, and done is called. */
void dev_change_end(struct dev_change *c);
/* dev_changes_go_on decides the next change, after *saving of a unit has become NULL. */
void dev_changes_go_on(struct dev_changes *q);
/* dev_changes_bounce ends each waiting change whose `bounces` returns true. */
void dev_changes_bounce(struct dev_changes *q);

#endif
