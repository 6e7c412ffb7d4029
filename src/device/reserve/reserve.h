/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reserve.h: the reservations of a unit, for the files of this room and for begin
 * and execute.
 *
 * The reservations are an immutable snapshot (struct rsv_state). Every worker has a
 * pointer to the snapshot that is in force there, and each nexus has a mask of the
 * accesses that reservations deny to it: a READ or WRITE reads one number of its own
 * worker and takes no lock.
 *
 * A change (struct rsv_op) is decided on the home worker, from the newest snapshot
 * (change.h); then each worker in turn takes the new snapshot, establishes the unit
 * attentions of its nexuses and, for PREEMPT AND ABORT, aborts their tasks. After
 * the last worker the old snapshot is freed and the command ends: its status means
 * that the change is in force everywhere.
 */
#ifndef DEVICE_RESERVE_H
#define DEVICE_RESERVE_H

#include "device/unit/lu_change.h"
#include "scsi/transportid.h"

#define RSV_MAX	  512u /* registrations of a unit */
#define RSV_SHARE 64u  /* of them, those that one initiator makes */

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
	/* the initiator that made it: another one with SPEC_I_PT or REGISTER
	 * AND MOVE. Not saved: after a power loss, the port's own. */
	char by[SCSI_DEVICE_NAME_MAX + 1];
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

/* A change of the reservations of a unit. */
struct rsv_op {
	struct dev_lu_change u;
	void (*decide)(struct rsv_op *op); /* fills in the outcome; home */
	struct rsv_out out;
	/* the outcome, with that of u */
	const struct rsv_state *old;
	struct rsv_state *next; /* NULL: all stays as it is */
	uint8_t told[RSV_MAX];	/* 1 + the dev_ua for old->regs[i], or 0 */
	bool abort[RSV_MAX];	/* whose tasks go (PREEMPT AND ABORT) */
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

/* rsv_restore: the part of dev_lu_restore; codes as rsv_decode's. */
int rsv_restore(struct dev_lu *lu, const uint8_t *data, size_t len);

/* dev_change_ops of a change whose dev_lu_change is in a struct rsv_op. */
void rsv_decide(struct dev_change *c);
void rsv_recorded(struct dev_change *c, int err);
void rsv_visit(struct dev_change *c, unsigned worker);
void rsv_visited(struct dev_change *c);
void rsv_forget(struct dev_change *c);
void rsv_op_free(struct rsv_op *op);
/* rsv_release: in decide: RESERVE(6/10) of `from` (NULL: of any nexus) ends. */
void rsv_release(struct rsv_op *op, const struct dev_nexus *from);
/* rsv_has: n has reserved lu by RESERVE(6/10); on n's worker. */
bool rsv_has(const struct dev_nexus *n, const struct dev_lu *lu);
void rsv_conflict(struct rsv_op *op);
void rsv_check(struct rsv_op *op, uint8_t key, uint16_t asc);

/* NULL: the task was ended, there is no memory. */
struct rsv_op *rsv_op_new(struct dev_task *t, void (*decide)(struct rsv_op *));
/* Decides, sets in force, ends the task of op, frees op. */
void rsv_op_start(struct rsv_op *op);
/* rsv_now: the snapshot that is in force on t's worker. */
const struct rsv_state *rsv_now(const struct dev_task *t);

/* ---- reserve.c: for begin and execute ---- */

/* Of a new unit and its end, of a new nexus at a unit. */
void dev_lu_reservations_init(struct dev_lu *lu);
void dev_lu_reservations_fini(struct dev_lu *lu);
void dev_nexus_reservations_init(struct dev_nexus *n, const struct dev_lu *lu);
/* dev_denied: whether a reservation of another nexus denies the command.
 * dev_denied_by_loss: whether the command is denied because the reservations are
 * lost (dev_lu_lose_reservations). */
bool dev_denied(const struct dev_task *t);
bool dev_denied_by_loss(const struct dev_task *t);

/* ---- commands, by file ---- */

/* reserve.c */
void dev_reserve(struct dev_task *t);
void dev_release(struct dev_task *t);

/* pr_in.c, pr_out.c */
void dev_pr_in(struct dev_task *t);
int dev_prepare_pr_out(struct dev_task *t, uint64_t *out_len);
void dev_pr_out(struct dev_task *t);

#endif
