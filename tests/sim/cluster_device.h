/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cluster_device.h: a gateway of the simulation: a cluster_unit and a model of the
 * logical unit above it, with writes, reads and persistent reservations; and the oracle,
 * which knows every state that the record ever had.
 */
#ifndef TESTS_SIM_CLUSTER_DEVICE_H
#define TESTS_SIM_CLUSTER_DEVICE_H

#include "sim/cluster_store.h"

#define INITIATORS 3u
#define GATEWAYS   4u
#define NEXUSES	   (INITIATORS * GATEWAYS)
#define CHANGES	   4096u

/* Persistent reservations: write exclusive, registrants only. The key of an initiator is
 * its number, from 1. */
struct pr {
	uint64_t serial; /* of the change that made it */
	uint8_t key[NEXUSES];
	int8_t holder; /* nexus; -1: no reservation */
};

enum command_kind {
	COMMAND_WRITE,
	COMMAND_READ,
	COMMAND_REGISTER,
	COMMAND_UNREGISTER,
	COMMAND_RESERVE,
	COMMAND_PREEMPT, /* and abort */
	COMMAND_PR_IN,
	COMMAND_KEEP, /* MODE SELECT with SP, for example */
	COMMANDS,
};

enum outcome {
	OUTCOME_GOOD,
	OUTCOME_CONFLICT,
	OUTCOME_NOT_READY, /* not executed */
	OUTCOME_UNKNOWN,
};

struct oracle;
struct gateway;

struct command {
	enum command_kind kind;
	unsigned initiator, nexus, victim;
	unsigned number; /* of the initiator's commands */
	unsigned block;
	uint64_t value;
	/* at the begin of the command: the newest state that an initiator has seen, and
	 * the newest acknowledged value of the block */
	unsigned floor;
	uint64_t acked;
	void (*answer)(struct command *c, enum outcome outcome);
	void *arg;

	struct gateway *gw; /* NULL: not there any more */
	bool killed, sent, changing, showing;
	struct pr draft;
	struct list link;
	struct cluster_save save;
	struct cluster_step refresh;
	struct data_request data;
};

struct gateway {
	struct store_model *model;
	struct oracle *oracle;
	unsigned machine;
	char id[8];
	struct cluster_unit *unit;
	struct cluster_store *store;
	bool woken, leaving, drained;
	xtime tick_at;

	/* the logical unit */
	enum cluster_access access;
	struct cluster_step *access_step, *adopt_step, *drop_step;
	struct cluster_step
		*posted; /* adopt_step has ended, and done comes later */
	struct list commands;
	unsigned received[INITIATORS]; /* the newest command */
	struct command *changing;      /* one change at a time */
	struct pr pr, next; /* in force, and what is adopted after the change */
	uint64_t kept, next_kept;
	bool adopted;
	bool applied; /* the state is in force when all now forbidden commands end */
	struct command *answering; /* its change is applied */
	unsigned first;
	bool flooded;
	uint8_t accounted[CHANGES]; /* unit attentions, by change */
	struct cluster_step step;   /* of the test */
	bool step_busy;
};

struct oracle {
	struct store_model *model;
	struct pr history[CHANGES];
	unsigned index[CHANGES]; /* by serial */
	unsigned states, seen; /* seen: the newest one that a caller knows of */
	uint64_t serial;
	uint64_t kept;
	uint64_t acked[BLOCKS];
	uint64_t generation;
	unsigned writes, reads, changes, conflicts, rejected, hand_overs;
	const char *wrong; /* the first violation */
	bool log;
};

void oracle_wrong(struct oracle *o, const char *what);
/* oracle_changed looks at the new record. */
void oracle_changed(struct oracle *o);

void gateway_start(struct gateway *g, uint64_t run);
/* gateway_crash: the process is gone. */
void gateway_crash(struct gateway *g);
void gateway_turn(struct gateway *g);
void gateway_receive(struct gateway *g, struct command *c);
/* gateway_index returns which state is in force. */
unsigned gateway_index(const struct gateway *g);

extern const char *const command_names[COMMANDS];

#endif
