/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reserve.h: reservations, as the files that make them share them.
 *
 * What is reserved is an immutable snapshot (struct rsv_state). Every worker
 * has a pointer of its own to the snapshot that it goes by, and with each
 * nexus a mask of what is denied to it: a READ or WRITE looks at one number of
 * its own worker's and takes no lock.
 *
 * Changes (struct rsv_op) are decided one at a time on the home worker, from
 * the newest snapshot; then each worker in turn takes the new one, tells its
 * nexuses their unit attentions and, for PREEMPT AND ABORT, gets rid of their
 * tasks. Only after the last worker the old snapshot is freed and the command
 * ends: its status means that it is in force everywhere.
 */
#ifndef DEVICE_RESERVE_H
#define DEVICE_RESERVE_H

#include "device/internal.h"
#include "scsi/transportid.h"

#define RSV_MAX	 128u /* registrations of a unit */
#define RSV_HOME 0u   /* the worker that decides */

/* SPC-4 table 78 */
enum rsv_type {
	RSV_TYPE_NONE = 0,
	RSV_TYPE_WE = 1,
	RSV_TYPE_EA = 3,
	RSV_TYPE_WE_RO = 5, /* registrants only */
	RSV_TYPE_EA_RO = 6,
	RSV_TYPE_WE_AR = 7, /* all registrants hold it */
	RSV_TYPE_EA_AR = 8,
};

struct rsv_reg {
	uint64_t key;
	uint16_t port;			   /* relative target port identifier */
	char name[SCSI_PORT_NAME_MAX + 1]; /* the initiator port's */
};

struct rsv_state {
	uint32_t generation; /* PRGENERATION */
	enum rsv_type type;
	bool aptpl;
	bool lost;  /* what there was can't be read (SPC-4 §5.13.5.3) */
	int holder; /* of the types that one nexus holds; else -1 */
	/* who has the unit by RESERVE(6/10), or NULL; for comparison only */
	const struct dev_nexus *spc2;
	unsigned n;
	struct rsv_reg regs[];
};

/* The parameters of PERSISTENT RESERVE OUT. */
struct rsv_out {
	uint8_t action, scope;
	enum rsv_type type;
	uint64_t key, sa_key;
	bool spec_i_pt, all_tg_pt, aptpl;
	/* REGISTER AND MOVE */
	bool unregister;
	uint16_t port;
	/* TransportIDs; names are owned */
	unsigned nnames;
	char (*names)[SCSI_PORT_NAME_MAX + 1];
};

/* What becomes of the ACA of a shared task set (aca.c). */
enum rsv_aca {
	RSV_ACA_KEEP,
	RSV_ACA_ESTABLISH, /* on op->nexus */
	RSV_ACA_CLEAR,
};

struct rsv_op {
	struct dev_round round; /* also carries it home and back */
	struct list link;	/* server's rsv_waiting, on the home worker */
	struct dev_lu *lu;
	struct dev_nexus *nexus; /* who asks; NULL: nobody */
	struct dev_task *task;	 /* of a command */
	unsigned from;
	void (*decide)(struct rsv_op *op); /* fills in the outcome; home */
	void (*done)(struct rsv_op *op);   /* on the asker's worker */
	void (*then)(void *arg, int err);  /* of a reset */
	void *arg;
	struct rsv_out out;
	/* the outcome */
	uint8_t status;		 /* enum scsi_status */
	struct scsi_sense sense; /* with CHECK CONDITION */
	const struct rsv_state *old;
	struct rsv_state *next; /* NULL: all stays as it is */
	uint8_t told[RSV_MAX];	/* 1 + the dev_ua for old->regs[i], or 0 */
	bool abort[RSV_MAX];	/* whose tasks go (PREEMPT AND ABORT) */
	bool reset;		/* tell all: BUS DEVICE RESET */
	enum rsv_sweep {
		SWEEP_NONE,
		SWEEP_OWN, /* abort[] does not count: the asking nexus's tasks */
		SWEEP_ALL, /* everybody's */
	} sweep;
	bool aborts;
	enum rsv_aca aca;
	bool aca_of_all;     /* ACAs of task sets of one nexus are cleared */
	bool naca, past_aca; /* of the command, as dev_task has it */
	struct dev_save save;
	uint8_t *saved;
	unsigned pending; /* nexuses of the visited worker with tasks left */
};

/* ---- pr_state.c: snapshots, without any thread or task ---- */

extern const struct rsv_state rsv_none, rsv_lost;

/* A copy with room for `more` registrations; NULL: no memory. */
struct rsv_state *rsv_copy(const struct rsv_state *s, unsigned more);
void rsv_free(const struct rsv_state *s);
/* Index of the registration, or -1. */
int rsv_find(const struct rsv_state *s, const char *name, uint16_t port);
int rsv_find_nexus(const struct rsv_state *s, const struct dev_nexus *n);
bool rsv_is_all_registrants(enum rsv_type type);
bool rsv_is_registrants_only(enum rsv_type type);
bool rsv_is_exclusive_access(enum rsv_type type);
bool rsv_is_holder(const struct rsv_state *s, int reg);
/* In dev_nexus.denied: the reservations are lost. */
#define RSV_LOST 0x8000u

/* The RSV_* flags of commands that the nexus may not give. */
uint16_t rsv_denied(const struct rsv_state *s, const struct dev_nexus *n);
/* PERSISTENT RESERVE OUT on op->old. */
void rsv_decide_out(struct rsv_op *op);

/* ---- pr_save.c: for the life after a power loss ---- */

/* p has rsv_encoded_max bytes; returns how many are used. */
size_t rsv_encoded_max(const struct rsv_state *s);
size_t rsv_encode(const struct rsv_state *s, const uint8_t uuid[16],
		  uint8_t *p);
/* ERR_TRUNCATED, ERR_FORMAT, ERR_LIMIT; ERR_DATA_DIGEST: its CRC is wrong;
 * ERR_NOT_FOUND: another store's; ERR_NOMEM. */
int rsv_decode(const uint8_t *p, size_t len, const uint8_t uuid[16],
	       struct rsv_state **state);
/* APTPL is offered at this unit. */
bool rsv_keeps(const struct dev_lu *lu);

/* ---- reserve.c ---- */

void rsv_op_free(struct rsv_op *op);
/* Whose tasks and ACA go with op: what n is, and not where, counts. */
bool rsv_is_due(const struct rsv_op *op, const struct dev_nexus *n);
/* What the nexus gets it can give back at its end; false: no memory. */
bool rsv_will_part(struct dev_nexus *n);
void rsv_conflict(struct rsv_op *op);
void rsv_check(struct rsv_op *op, uint8_t key, uint16_t asc);

/* NULL: the task was ended, there is no memory. */
struct rsv_op *rsv_op_new(struct dev_task *t, void (*decide)(struct rsv_op *));
/* Decides, sets in force, ends op->task, frees op. */
void rsv_op_start(struct rsv_op *op);
/* What the worker goes by. */
const struct rsv_state *rsv_now(const struct dev_task *t);

/* ---- aca.c ---- */

/* A PREEMPT AND ABORT that was decided: may it go past the ACA, and what becomes
 * of that? */
void dev_aca_preempt(struct rsv_op *op);
/* The visit: what the worker has to know, and each of its nexuses. */
void dev_aca_set_lane(const struct rsv_op *op, unsigned worker);
void dev_aca_set(const struct rsv_op *op, struct dev_nexus *n);

#endif
