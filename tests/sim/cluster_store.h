/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cluster_store.h: a virtual clock, and a model of the store of a shared unit: record,
 * lock, notes and data. Requests and answers are delayed, lost and reordered; those of a
 * gateway that is cut off arrive late; nothing of a fenced session has an effect.
 */
#ifndef TESTS_SIM_CLUSTER_STORE_H
#define TESTS_SIM_CLUSTER_STORE_H

#include <setjmp.h>

#include "cluster/unit.h"

#define MACHINES 16u
#define BLOCKS	 8u

struct sim_event {
	xtime at;
	uint64_t order;
	unsigned machine; /* that it happens at; MACHINES: none */
	unsigned life;	  /* of the machine: what comes after a crash is lost */
	void (*happens)(void *arg);
	void *arg;
};

/* The state of a machine that the store sees. */
struct sim_machine {
	bool down, stopped, cut;
	unsigned life;
	struct sim_event *held; /* while it is stopped */
	unsigned nheld, held_room;
};

struct call;
struct oracle;
struct note_call;

struct store_session {
	struct cluster_store store;
	struct store_model *model;
	unsigned machine, life;
	bool open, fenced;
	struct call *requests; /* the last one: a unit has one at a time */
	struct note_call *notes;
	struct store_session *next;
};

/* Mistakes of a gateway or a store, each of which the oracle must find. */
enum sim_mistake {
	MISTAKE_NONE,
	MISTAKE_FENCE, /* a fence takes the lock, and the other gateway goes on */
	MISTAKE_LOCK, /* the lock excludes no gateway */
	MISTAKE_SWAP, /* a swap replaces any version */
	MISTAKE_READ, /* a read gives the record as it was before the last change */
	MISTAKE_CONFIRM, /* a change counts as in force without the owner's word */
	MISTAKE_DROP, /* a fenced gateway goes on with what it received before */
	MISTAKE_DRAIN, /* a gateway yields while commands are in progress */
	MISTAKE_ADOPT, /* the owner says that a state is in force too early */
	MISTAKE_EVENT, /* a gateway loses the events of a change */
	MISTAKES,
};

struct store_model {
	enum sim_mistake mistake;
	xtime now;
	struct sim_event *heap;
	unsigned nevents, room;
	uint64_t order;
	uint32_t seed;
	struct sim_machine machine[MACHINES];
	struct store_session *sessions;
	void **memory; /* freed at the end */
	unsigned nmemory, memory_room;

	uint8_t *blob, *old; /* the record, and before its last change */
	size_t len, old_len;
	uint64_t version;
	struct store_session *holder; /* of the lock */
	uint64_t data[BLOCKS];

	/* faults, in 1/1000 */
	unsigned lose_answer, lose_note, watch_lost;
	bool damaged;  /* the record cannot be read */
	unsigned slow; /* delays in ms, at most */
	/* called after the event of a machine */
	void (*turn)(void *arg, unsigned machine);
	/* called when the record has changed */
	void (*changed)(void *arg);
	void *arg;
};

uint32_t sim_random(struct store_model *m, uint32_t n);
bool sim_chance(struct store_model *m, unsigned per_1000);
void *sim_alloc(struct store_model *m, size_t n);
/* sim_at has something happen at a machine, or at none (MACHINES). */
void sim_at(struct store_model *m, xtime at, unsigned machine,
	    void (*happens)(void *arg), void *arg);
/* sim_delay returns a time from now on: mostly short. */
xtime sim_delay(struct store_model *m);
/* sim_next runs what is next, if that is before `until`. */
bool sim_next(struct store_model *m, xtime until);
/* sim_continue: what a stopped machine was to see happens now. */
void sim_continue(struct store_model *m, unsigned machine);
void sim_free(struct store_model *m);

struct cluster_store *store_open(struct store_model *m, unsigned machine,
				 const char *id);
/* store_data sends a request for data. done gets its result, and in *value what was
 * read; `check` is called when the request reaches the data, and only then. */
struct data_request {
	struct store_session *session;
	bool write;
	unsigned block;
	uint64_t value;
	int result;
	void (*check)(struct data_request *d);
	void (*done)(void *arg); /* arg: the request */
	struct oracle *oracle;
	void *arg;
};
void store_data(struct data_request *d);

#endif
