/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unit.h: a logical unit that several gateways (iserd) share, as one gateway sees it:
 * who owns it, which gateways there are, and the states that all of them have in
 * common. Pure: the caller passes the time in, and the unit does all else by the
 * operations of its store (store.h) and of the logical unit below.
 *
 * One gateway owns the unit: it has the lock of the data, and its target port group is
 * active/optimized. The other gateways stand by: they execute what the states permit (SPC-4
 * §5.16.2.4.4) and move no data.
 *
 * A change of the common state is written to the record first (swap), is in force at
 * the owner next, and is reported to the initiator last. The record is read before a
 * gateway becomes owner.
 *
 * All functions and call-backs run on worker 0; call-backs come from cluster_unit_tick
 * only, and may call all functions of the unit.
 */
#ifndef CLUSTER_UNIT_H
#define CLUSTER_UNIT_H

#include "base/xtime.h"
#include "cluster/store.h"

struct cluster_unit;

enum cluster_access {
	CLUSTER_OPTIMIZED,
	CLUSTER_STANDBY,
	CLUSTER_UNAVAILABLE, /* the gateway cannot reach the store */
	CLUSTER_TRANSITIONING,
};

/* ---- what the record contains ---- */

#define CLUSTER_PORTALS 16u /* portals of one gateway */
#define CLUSTER_PORTAL_MAX \
 64u /* "[2001:db8::1]:3260,2": address, port, portal group */
#define CLUSTER_PORTS	  64u /* relative target ports of one gateway at the unit */
#define CLUSTER_EVENTS	  32u /* the events that the record keeps */
#define CLUSTER_EVENT_MAX (128u << 10)
#define CLUSTER_REFUSED_MAX \
 256u /* the sentence that says why a gateway cannot join */

/* The parts of the common state, which the device encodes. */
enum cluster_part {
	CLUSTER_RESERVATIONS, /* all reservations, also those without APTPL */
	CLUSTER_KEPT, /* saved mode pages, identifying information, erasures */
	CLUSTER_PARTS,
};

/* A change of the record, unique: `run` is random, and another one at each start of the
 * gateway. */
struct cluster_change_id {
	uint64_t run, number;
};

struct cluster_gateway {
	char id[CLUSTER_ID_SIZE];
	uint16_t number; /* 1 to 16: its target port group and its portal group tag */
	/* Logical blocks of the unit at this gateway, in bytes; 0: the gateway does not
	 * say, as in records of format 1. */
	uint16_t block_size;
	unsigned nports;
	uint16_t ports[CLUSTER_PORTS]; /* relative target port identifiers */
	unsigned nportals;
	char portals[CLUSTER_PORTALS][CLUSTER_PORTAL_MAX];
	/* The gateway's last change of the record: shows whether a swap without an
	 * answer took place. The unit sets it. */
	struct cluster_change_id last;
};

/* What changed, for the unit attentions of the nexuses of other gateways. */
struct cluster_event {
	uint64_t at; /* the version of the record that contains the change */
	enum cluster_part part;
	const uint8_t *data;
	size_t len;
};

struct cluster_record {
	uint64_t version; /* changes of the record; not the version of the store */
	char owner[CLUSTER_ID_SIZE]; /* empty: no gateway */
	uint64_t generation;	     /* changes of the owner */
	bool withheld; /* no owner, and no gateway takes the unit unasked */
	unsigned ngateways;
	struct cluster_gateway gateways[CLUSTER_GATEWAYS];
	struct {
		const uint8_t *data;
		size_t len;
		uint64_t changed; /* in this version */
	} parts[CLUSTER_PARTS];
	unsigned nevents; /* the newest last */
	uint64_t forgotten; /* `at` of the newest event that was removed; 0: none */
	struct cluster_event events[CLUSTER_EVENTS];
};

/* ---- the logical unit ---- */

/* A step of the logical unit or of the unit; borrowed until done. */
struct cluster_step {
	void (*done)(struct cluster_step *s);
	int result;
	struct list link; /* private to the one that carries out the step */
};

struct cluster_unit_ops {
	/* Changes the access state of this gateway's ports at the unit, which is
	 * CLUSTER_UNAVAILABLE at first. If that takes access away, done follows the end of every command that the old state
	 * admitted. */
	void (*access)(void *arg, enum cluster_access a,
		       struct cluster_step *s);
	/* The groups, ports and portals of all gateways have changed: for REPORT TARGET
	 * PORT GROUPS and SendTargets. At once; r is borrowed for the call. */
	void (*gateways)(void *arg, const struct cluster_record *r);
	/* Puts the parts of r in force; `since` is the version that was in force: the
	 * nexuses of this gateway get the unit attentions of the later events, and
	 * those of RESERVATIONS PREEMPTED if the record does not have all of them any
	 * more (since < r->forgotten). Queued after the change in progress, if there
	 * is one. The bytes of r are borrowed for the call. The parts may be those that
	 * are in force: done then shows that they are. */
	void (*adopt)(void *arg, const struct cluster_record *r, uint64_t since,
		      struct cluster_step *s);
	/* This gateway was fenced. Ends the sessions that use the unit and its tasks,
	 * without an answer, closes the store, opens the backstore and the store anew,
	 * and calls cluster_unit_reopened. done: nothing that was received before can
	 * be executed any more. */
	void (*drop)(void *arg, struct cluster_step *s);
	/* A sentence for the log. */
	void (*say)(void *arg, const char *sentence);
	/* cluster_unit_tick is to be called, at once but not from within wake: a
	 * request, a note or a step has ended, or a function was called. */
	void (*wake)(void *arg);
	void *arg;
};

/* ---- the unit at this gateway ---- */

struct cluster_unit_config {
	struct cluster_gateway self;
	uint64_t run;  /* random: see cluster_change_id */
	bool failover; /* take the unit of an owner that does not answer */
	/* How often a gateway asks the owner, and after which silence the owner counts as
	 * gone: at least three times as long. */
	xtime beacon, silence;
	/* How long a hand-over in peace may take until the owner is fenced. */
	xtime patience;
};

enum cluster_role {
	CLUSTER_JOINING, /* the record was not read yet, or not since it was lost */
	CLUSTER_STANDING_BY,
	CLUSTER_TAKING,
	CLUSTER_OWNER,
	CLUSTER_YIELDING,
	CLUSTER_FENCED, /* until `drop` has ended */
	CLUSTER_LEAVING,
};

/* cluster_unit_new returns the unit, which joins the other gateways at the first
 * cluster_unit_tick, and sets the events of the store. ops and store are borrowed until
 * cluster_unit_free. NULL: no memory. */
struct cluster_unit *cluster_unit_new(const struct cluster_unit_config *cfg,
				      const struct cluster_unit_ops *ops,
				      struct cluster_store *store, xtime now);
/* cluster_unit_free frees u; the store was closed before, or has no request. */
void cluster_unit_free(struct cluster_unit *u);
/* cluster_unit_reopened replaces the store, which was closed. */
void cluster_unit_reopened(struct cluster_unit *u, struct cluster_store *store);
/* cluster_unit_leave yields the unit, removes the gateway from the record, and calls
 * done; the caller may free u then. */
void cluster_unit_leave(struct cluster_unit *u, struct cluster_step *s);

/* cluster_unit_tick does what is due; returns when it is to be called again, unless
 * `wake` asks for it before. The unit calls all call-backs from here, `wake` excepted. */
xtime cluster_unit_tick(struct cluster_unit *u, xtime now);

enum cluster_take {
	CLUSTER_TAKE, /* ask the owner to yield; fence it after `patience` */
	CLUSTER_TAKE_FENCE, /* fence the owner at once */
	/* As TAKE, but from the owner at the time of the call only: for initiators, each of
	 * which asks another gateway if all lose the path to the owner. */
	CLUSTER_TAKE_UNLESS_MOVED,
};

/* cluster_unit_take makes this gateway the owner. result: 0; ERR_BUSY: a hand-over is in
 * progress, or (UNLESS_MOVED) has given the unit to another gateway; ERR_TIMEOUT;
 * ERR_TERMINATED. */
void cluster_unit_take(struct cluster_unit *u, enum cluster_take how,
		       struct cluster_step *s);
/* cluster_unit_yield gives the unit to the gateway `to`, which takes it; NULL: to
 * no gateway, and no gateway takes it unasked. ERR_WRONG_STATE: not the owner;
 * ERR_NOT_FOUND: no such gateway, or it does not answer: this gateway stays owner. */
void cluster_unit_yield(struct cluster_unit *u, const char *to,
			struct cluster_step *s);

/* A change of a part of the common state. result: 0: it is in the record (and in force
 * at the owner, if that is another gateway); ERR_AGAIN: the record had a newer state,
 * for which `adopt` was called before: decide anew, after it; ERR_TERMINATED: this
 * gateway was fenced, nothing may be answered; ERR_RESET: the store or the owner does not
 * answer, and the change may have taken place; ERR_LIMIT: too long. */
struct cluster_save {
	void (*done)(struct cluster_save *s);
	enum cluster_part part;
	const uint8_t *data; /* the caller's until done */
	size_t len;
	const uint8_t *
		event; /* for the unit attentions of the other gateways; len 0: none */
	size_t event_len;
	int result;
	struct list link; /* private to the unit */
};
void cluster_unit_save(struct cluster_unit *u, struct cluster_save *s);
/* cluster_unit_refresh: when done is called, the newest record at the time of the call
 * is in force at this gateway. Errors as of cluster_unit_save. */
void cluster_unit_refresh(struct cluster_unit *u, struct cluster_step *s);

/* cluster_unit_describe changes what the record says of this gateway. */
void cluster_unit_describe(struct cluster_unit *u,
			   const struct cluster_gateway *self);
/* cluster_unit_fenced: a request for the data failed because this gateway was fenced. */
void cluster_unit_fenced(struct cluster_unit *u);

struct cluster_status {
	enum cluster_role role;
	const struct cluster_record *record; /* borrowed; NULL: not read yet */
	uint64_t takes, yields, fences, fenced, swaps, conflicts;
	xtime last_hand_over; /* how long it took */
	const char *
		refused; /* why this gateway cannot join; NULL: it can. Borrowed */
};
void cluster_unit_status(const struct cluster_unit *u,
			 struct cluster_status *st);

#endif
