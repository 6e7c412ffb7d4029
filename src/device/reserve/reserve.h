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
#define RSV_SHARE 64u  /* registrations that one initiator may make */

/* SPC-4 table 78 */
enum rsv_type {
	RSV_TYPE_NONE = 0,
	RSV_TYPE_WE = 1,
	RSV_TYPE_EA = 3,
	RSV_TYPE_WE_RO = 5, /* registrants only */
	RSV_TYPE_EA_RO = 6,
	RSV_TYPE_WE_AR = 7, /* all registrants are holders */
	RSV_TYPE_EA_AR = 8,
};

struct rsv_reg {
	uint64_t key;
	uint16_t port;			   /* relative target port identifier */
	char name[SCSI_PORT_NAME_MAX + 1]; /* the initiator port's */
	/* the initiator that made the registration: with SPEC_I_PT and REGISTER
	 * AND MOVE not the initiator of the port. Saved for a shared unit only:
	 * after a power loss the initiator of the port. */
	char by[SCSI_DEVICE_NAME_MAX + 1];
};

struct rsv_state {
	uint32_t generation; /* PRGENERATION */
	enum rsv_type type;
	bool aptpl;
	bool lost;  /* the record cannot be read (SPC-4 §5.13.5.3) */
	int holder; /* registration, for types with one holder; else -1 */
	/* the nexus that reserved the unit by RESERVE(6/10), or NULL; compared
	 * only; and its names. NULL with names: a nexus of another gateway. */
	const struct dev_nexus *spc2;
	struct {
		uint16_t port;
		char name[SCSI_PORT_NAME_MAX + 1];
	} spc2_of;
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
	struct rsv_state *next;	    /* NULL: no change */
	uint8_t attention[RSV_MAX]; /* 1 + the dev_ua for old->regs[i], or 0 */
	bool abort[RSV_MAX];	    /* tasks are aborted (PREEMPT AND ABORT) */
	/* its reservation by RESERVE(6/10) ends with an attention; compared only */
	const struct dev_nexus *released;
	/* adopted: the changes of other gateways; NULL: a change of this one */
	const struct dev_heard *heard;
};

/* ---- pr_state.c: snapshots, without any thread or task ---- */

extern const struct rsv_state rsv_none, rsv_lost;

/* rsv_copy returns a copy with room for `more` registrations, which the caller
 * frees; NULL: no memory. */
struct rsv_state *rsv_copy(const struct rsv_state *s, unsigned more);
/* rsv_free frees s unless s is rsv_none or rsv_lost. */
void rsv_free(const struct rsv_state *s);
/* rsv_find and rsv_find_nexus return the index of the registration, or -1. */
int rsv_find(const struct rsv_state *s, const char *name, uint16_t port);
int rsv_find_nexus(const struct rsv_state *s, const struct dev_nexus *n);
/* rsv_is_*: the kinds of reservation types (SPC-4 table 78). */
bool rsv_is_all_registrants(enum rsv_type type);
bool rsv_is_registrants_only(enum rsv_type type);
bool rsv_is_exclusive_access(enum rsv_type type);
/* rsv_is_holder returns whether registration reg holds the reservation. */
bool rsv_is_holder(const struct rsv_state *s, int reg);
/* In dev_nexus.denied: the reservations are lost. */
#define RSV_LOST 0x8000u

/* rsv_is_spc2 returns whether a nexus has reserved the unit by RESERVE(6/10), here or at
 * another gateway. rsv_set_spc2 makes n (NULL: none) that nexus. */
static inline bool rsv_is_spc2(const struct rsv_state *s)
{
	return s->spc2_of.name[0];
}
void rsv_set_spc2(struct rsv_state *s, const struct dev_nexus *n);

/* rsv_denied returns the RSV_* flags of the commands that s denies to the nexus. */
uint16_t rsv_denied(const struct rsv_state *s, const struct dev_nexus *n);
/* rsv_conflict and rsv_check, in decide: op ends with RESERVATION CONFLICT, or with
 * CHECK CONDITION and this sense data. */
void rsv_conflict(struct rsv_op *op);
void rsv_check(struct rsv_op *op, uint8_t key, uint16_t asc);
/* rsv_decide_out applies the PERSISTENT RESERVE OUT of op->out to op->old: sets
 * op->next and the rest of the outcome. */
void rsv_decide_out(struct rsv_op *op);

/* ---- pr_save.c: the persisted record ---- */

/* rsv_encoded_max returns the bytes that rsv_encode may write. rsv_encode writes
 * the record of s to p and returns its length. */
size_t rsv_encoded_max(const struct rsv_state *s);
size_t rsv_encode(const struct rsv_state *s, const uint8_t uuid[16],
		  uint8_t *p);
/* rsv_decode reads a record into a new *state, which the caller frees with
 * rsv_free. ERR_TRUNCATED, ERR_FORMAT, ERR_LIMIT; ERR_DATA_DIGEST: the CRC is wrong;
 * ERR_NOT_FOUND: the record of another backstore; ERR_NOMEM. */
int rsv_decode(const uint8_t *p, size_t len, const uint8_t uuid[16],
	       struct rsv_state **state);
/* rsv_set_holder sets type and holder (FFFFh: none) of s, whose registrations are there.
 * ERR_FORMAT: they do not agree. */
int rsv_set_holder(struct rsv_state *s, uint8_t type, unsigned holder);
/* rsv_keeps returns whether the unit supports APTPL. */
bool rsv_keeps(const struct dev_lu *lu);

/* ---- pr_share.c: the record and the events of a shared unit ---- */

/* rsv_share_encode writes the record of s and the event of the change op (NULL: none)
 * to new memory: *len and *event_len bytes. NULL: no memory. */
uint8_t *rsv_share_encode(const struct rsv_state *s, const uint8_t uuid[16],
			  const struct rsv_op *op, size_t *len,
			  size_t *event_len);
/* rsv_share_decode reads such a record, len 0: no reservations, as rsv_decode does. */
int rsv_share_decode(const uint8_t *p, size_t len, const uint8_t uuid[16],
		     struct rsv_state **state);

/* ---- adopt.c ---- */

/* rsv_adopt is the `decide` of a change that puts op->next, from rsv_share_decode, and
 * the events op->heard in force. rsv_lose_spc2 ends a reservation by RESERVE(6/10):
 * of a nexus of this gateway with an attention, or of another gateway. */
void rsv_adopt(struct rsv_op *op);
void rsv_lose_spc2(struct rsv_op *op);

/* ---- reserve.c ---- */

/* rsv_set_first puts s, which the unit then owns, in force before the first
 * nexus. */
void rsv_set_first(struct dev_lu *lu, const struct rsv_state *s);
/* rsv_restore: the part of dev_lu_restore; codes as rsv_decode's. */
int rsv_restore(struct dev_lu *lu, const uint8_t *data, size_t len);

/* dev_change_ops of a change whose dev_lu_change is in a struct rsv_op. */
void rsv_decide(struct dev_change *c);
void rsv_recorded(struct dev_change *c, int err);
void rsv_again(struct dev_change *c);
void rsv_visit(struct dev_change *c, unsigned worker);
void rsv_visited(struct dev_change *c);
void rsv_forget(struct dev_change *c);
void rsv_op_free(struct rsv_op *op);
/* rsv_release: in decide: RESERVE(6/10) of `from` (NULL: of any nexus) ends. */
void rsv_release(struct rsv_op *op, const struct dev_nexus *from);
/* rsv_has: n has reserved lu by RESERVE(6/10); on n's worker. */
bool rsv_has(const struct dev_nexus *n, const struct dev_lu *lu);

/* rsv_op_new makes a change for the command t. NULL: no memory, and rsv_op_new has
 * ended t. */
struct rsv_op *rsv_op_new(struct dev_task *t, void (*decide)(struct rsv_op *));
/* rsv_op_start decides op, puts it in force on all workers, ends its task and frees
 * op. */
void rsv_op_start(struct rsv_op *op);
/* rsv_now: the snapshot that is in force on t's worker. */
const struct rsv_state *rsv_now(const struct dev_task *t);

/* ---- reserve.c: for begin and execute ---- */

/* dev_lu_reservations_init gives a new unit no reservations, and
 * dev_lu_reservations_fini frees its snapshot; dev_itl_reservations_init sets the
 * accesses that the reservations of the unit deny to the new I_T_L nexus. */
void dev_lu_reservations_init(struct dev_lu *lu);
void dev_lu_reservations_fini(struct dev_lu *lu);
void dev_itl_reservations_init(struct dev_itl *i);
/* dev_denied: whether a reservation of another nexus denies the command.
 * dev_denied_by_loss: whether the command is denied because the reservations are
 * lost (dev_lu_lose_reservations). */
bool dev_denied(const struct dev_task *t);
bool dev_denied_by_loss(const struct dev_task *t);

/* ---- commands, by file ---- */

/* dev_prepare_pr_out checks the CDB of t and sets *out_len to the bytes of the
 * parameter list; 1: t was refused. The other functions execute a command and end t,
 * now or later. */

/* reserve.c */
void dev_reserve(struct dev_task *t);
void dev_release(struct dev_task *t);

/* pr_in.c, pr_out.c */
void dev_pr_in(struct dev_task *t);
int dev_prepare_pr_out(struct dev_task *t, uint64_t *out_len);
void dev_pr_out(struct dev_task *t);

#endif
