/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * internal.h: a shared unit at one gateway. The files, each of which calls those above it:
 *   record.c   the bytes of the record and of notes
 *   floor.c    what all decisions need: the log, the next tick, the state of the logical
 *              unit, the begin of a role
 *   request.c  requests to the store and notes to the other gateways, one of each kind at
 *              a time; what the record says, once read
 *   change.c   a change of the record: swap, and again with what another gateway wrote;
 *              whether a swap without an answer took place
 *   save.c     changes of the common state, and when they are in force at the owner
 *   take.c     becoming the owner
 *   yield.c    the owner, and giving the unit away
 *   member.c   joining, standing by, asking the owner, leaving
 *   unit.c     the functions of unit.h, and the order of the decisions in a tick
 *
 * Call-backs only note what ended, and call `wake`. cluster_unit_tick decides.
 */
#ifndef CLUSTER_INTERNAL_H
#define CLUSTER_INTERNAL_H

#include "cluster/record.h"
#include "cluster/unit.h"

/* After this time without an answer the owner has not put a change in force. */
#define CONFIRM_LIMIT (3 * XTIME_S)
/* Notes may be lost. */
#define NOTE_AGAIN (500 * XTIME_MS)
#define NOTE_MS	   1000u
/* How many versions of a record that was removed this gateway may not have seen: far too many. */
#define UNSEEN 1024u

enum op {
	OP_NONE,
	OP_READ,
	OP_SWAP,
	OP_LOCK,
	OP_UNLOCK,
	OP_FENCE,
	OPS,
};

/* Notes by purpose. */
enum post_kind {
	POST_BEACON,
	POST_PROBE, /* is the gateway there that is to take the unit? */
	POST_CHANGED,
	POST_CONFIRM,
	POST_IN_FORCE,
	POST_YIELD,
	POSTS,
};

struct post {
	struct cluster_note note;
	struct cluster_unit *u;
	uint8_t data[CLUSTER_NOTE_SIZE];
	uint64_t version;
	bool busy;  /* the store has it */
	bool again; /* to be sent once more */
	bool ended; /* and not looked at yet */
	xtime sent;
};

enum change_kind {
	CHANGE_NONE,
	CHANGE_REGISTER, /* this gateway */
	CHANGE_OWN,	 /* owner: this gateway */
	CHANGE_GRANT,	 /* owner: another gateway, or none */
	CHANGE_REMOVE,	 /* this gateway */
	CHANGE_SAVE,	 /* u->save */
};

/* A change of the record that is in progress. */
struct change {
	enum change_kind kind;
	uint64_t number;
	uint64_t version; /* that the record has or would have by it */
	xtime since;	  /* begun */
	bool unsure;	  /* a swap had no answer */
	bool ended; /* with result; the one that began it sets kind to NONE */
	int result;
	char to[CLUSTER_ID_SIZE]; /* GRANT */
	bool withheld;		  /* GRANT */
	uint64_t generation;	  /* OWN, GRANT: only if it still is this */
};

enum take_phase {
	TAKE_CLAIM,
	TAKE_LOCK,
	TAKE_READ,
	TAKE_ADOPT,
	TAKE_ACCESS,
	TAKE_RELEASE, /* another gateway claimed it later */
};

struct take {
	enum take_phase phase;
	bool fence;
	bool locked; /* or may be, without an answer */
	bool unlocked;
	char victim[CLUSTER_ID_SIZE]; /* of the fence; empty: any gateway */
	xtime since;
};

enum yield_phase {
	YIELD_DRAIN,
	YIELD_UNLOCK,
	YIELD_GRANT,
};

struct yield {
	enum yield_phase phase;
	bool deposed; /* another gateway wrote itself into the record */
	bool withheld;
	bool unlocked;
	char to[CLUSTER_ID_SIZE];
};

/* The record as last read or written. */
struct view {
	struct cluster_record rec;
	uint8_t *blob;	  /* what rec points into */
	uint64_t version; /* that the store gives it */
	bool fresh;	  /* read since the last sign of a newer one */
	bool wanted;	  /* a newer one may exist: read */
	/* The record was removed: the version that the store gives it when this gateway
	 * writes it again; 0: it is there. */
	uint64_t again;
	xtime at;  /* of the last reading */
	int error; /* of the record itself; 0: rec is valid */
};

/* Requests at the store. */
struct asking {
	enum op op;
	bool ended;
	struct cluster_request req;
	uint8_t *in, *out; /* what read has read, and what swap writes */
	size_t in_len;
	struct cluster_record draft; /* what `out` was made of */
	uint64_t number;	     /* of the change that swap makes */
	xtime answered;		     /* the last answer */
	xtime heard;  /* the last answer, also one that is an error, or note */
	bool noted;   /* a note has come since the last tick */
	xtime silent; /* since: is_cut_off; 0: not */
	xtime retry_at;
	int complained[OPS]; /* the last error that the log has */
	struct post posts[POSTS];
};

/* What the logical unit does. */
struct work {
	enum cluster_access access;
	bool access_busy, adopt_busy, failed, drop_busy, drop_ended;
	struct cluster_step access_step, adopt_step, drop_step;
	uint64_t known;	   /* the version whose parts are in force here */
	uint64_t settled;  /* ... as `adopt` has shown */
	uint64_t adopting; /* the version that `adopt` has */
	uint64_t shown;	   /* the last change that is in force here */
	uint64_t barrier;  /* `settled` is to become this */
	bool failing;	   /* the last `adopt` failed */
	xtime retry_at;
};

/* The other gateways. */
struct peers {
	xtime heard;	     /* of the owner */
	unsigned unanswered; /* notes to the owner since then */
	uint64_t confirmed;  /* the version that is in force at the owner */
	uint64_t asked; /* the version that another gateway wants in force */
	char asker[CLUSTER_ID_SIZE]; /* wants to have the unit */
	xtime register_at;
	enum cluster_rivalry rivalry;	   /* with another gateway */
	char refused[CLUSTER_REFUSED_MAX]; /* ... in words */
	bool alone;   /* no gateway answered when there was no record */
	bool missing; /* ... one did: the log has it */
};

/* Changes of the common state. */
struct saves {
	struct list queue;
	struct cluster_save *now; /* in progress */
	bool kept;		  /* in the record, since `version` */
	uint64_t version;
	xtime kept_at;
	xtime again_at; /* after ERR_AGAIN: not before, unless `adopt` has ended */
	char owner[CLUSTER_ID_SIZE]; /* that was asked to confirm */
	/* refreshes that still need a read, that wait for the read in progress, and
	 * that wait until version `need` is in force */
	struct list unread, reading, waiting;
	uint64_t need;
	xtime refresh_since; /* the oldest one; 0: none */
};

/* What callers wait for, and until when. */
struct callers {
	struct cluster_step *take, *yield, *leave;
	enum cluster_take how;
	uint64_t generation; /* at the call of take */
	bool leaving, left;
	bool probing;
	char to[CLUSTER_ID_SIZE];      /* yield */
	xtime take_since, leave_since; /* 0: not seen yet */
	struct list refused;	       /* steps that ended at once */
};

struct cluster_unit {
	struct cluster_unit_config cfg;
	const struct cluster_unit_ops *ops;
	struct cluster_store *store; /* NULL: closed */
	enum cluster_role role;
	xtime now, next; /* of the tick */
	bool ticking, again, fence_seen;
	struct view view;
	struct asking ask;
	struct change change;
	uint64_t changes;
	struct take take;
	struct yield yield;
	struct work lu;
	struct peers peers;
	struct saves saves;
	struct callers callers;
	struct cluster_status count;
};

/* ---- floor.c ---- */

/* clu_due returns whether t has come; if not, the next tick is at t at the latest. */
bool clu_due(struct cluster_unit *u, xtime t);
/* clu_wake has cluster_unit_tick called. */
void clu_wake(struct cluster_unit *u);
/* clu_say writes a sentence of up to three parts to the log. */
void clu_say(const struct cluster_unit *u, const char *a, const char *b,
	     const char *c);
bool clu_is_self(const struct cluster_unit *u, const char *id);
/* clu_step_end ends the step of a caller, if there is one. */
void clu_step_end(struct cluster_step **s, int result);
/* clu_access_is begins a change of the access state if need be, and returns whether the
 * state has changed. */
bool clu_access_is(struct cluster_unit *u, enum cluster_access a);
/* clu_adopt_now puts the record in force here, also if a save is in progress, which ends with
 * ERR_AGAIN. */
void clu_adopt_now(struct cluster_unit *u);
/* clu_move_all moves the nodes of a list to the end of another one. */
void clu_move_all(struct list *from, struct list *to);
void clu_stand_by(struct cluster_unit *u);
/* clu_take_begin: a gateway that stands by begins to become the owner. */
void clu_take_begin(struct cluster_unit *u, bool fence);

/* ---- request.c ---- */

/* clu_can_ask returns whether the store can have a request now. */
bool clu_can_ask(struct cluster_unit *u);
/* clu_ask begins a request other than a swap. */
void clu_ask(struct cluster_unit *u, enum op op);
/* clu_ask_swap writes ask.draft. ERR_NOMEM. */
int clu_ask_swap(struct cluster_unit *u);
/* clu_ask_look deals with a request that has ended and returns its kind, and its result in
 * `ended`; OP_NONE: no request has ended. */
enum op clu_ask_look(struct cluster_unit *u, int *ended);
/* clu_post sends a note, after the last of its kind has ended. */
void clu_post(struct cluster_unit *u, enum post_kind kind, uint64_t version);
bool clu_post_acked(const struct post *p, const char *id);
/* clu_posts_look sends what waited for the end of the last note of its kind. */
void clu_posts_look(struct cluster_unit *u);
/* clu_store_use has u use this store from now on. */
void clu_store_use(struct cluster_unit *u, struct cluster_store *store);

/* ---- change.c ---- */

void clu_change_begin(struct cluster_unit *u, enum change_kind kind);
/* clu_change_step goes on with the change in progress. */
void clu_change_step(struct cluster_unit *u);
/* clu_change_swapped: the end of the swap. */
void clu_change_swapped(struct cluster_unit *u, int result);
/* clu_self_differs returns whether the record says something else of this gateway. */
bool clu_self_differs(struct cluster_unit *u);
/* clu_change_took returns whether the change has ended, and its result. */
bool clu_change_took(struct cluster_unit *u, int *result);

/* ---- save.c ---- */

void clu_save_step(struct cluster_unit *u);
/* clu_save_in_force ends the save in progress, which is in the record, with 0. */
void clu_save_in_force(struct cluster_unit *u);
/* clu_saves_fail ends all saves and refreshes. */
void clu_saves_fail(struct cluster_unit *u, int result);
/* clu_saves_again ends the saves that have not begun. */
void clu_saves_again(struct cluster_unit *u);
void clu_refresh_step(struct cluster_unit *u);
/* clu_confirm_step sends to others what is in force here, if they asked. */
void clu_confirm_step(struct cluster_unit *u);

/* ---- take.c ---- */

void clu_take_step(struct cluster_unit *u);
/* clu_take_asked: the end of LOCK, FENCE or UNLOCK. */
void clu_take_asked(struct cluster_unit *u, enum op op, int result);

/* ---- yield.c ---- */

void clu_owner_step(struct cluster_unit *u);
void clu_yield_step(struct cluster_unit *u);

/* ---- member.c ---- */

void clu_join_step(struct cluster_unit *u);
/* clu_register_step keeps what the record says of this gateway up to date; returns whether
 * it is. */
bool clu_register_step(struct cluster_unit *u);
void clu_stand_by_step(struct cluster_unit *u);
void clu_leave_step(struct cluster_unit *u);
/* clu_fenced_step: until the logical unit has dropped what it received before. */
void clu_fenced_begin(struct cluster_unit *u);
/* clu_cut_off_step has an owner that the store does not answer any more drop, too. */
void clu_cut_off_step(struct cluster_unit *u);
void clu_fenced_step(struct cluster_unit *u);
/* clu_beacon_look takes note of the end of a beacon. */
void clu_beacon_look(struct cluster_unit *u);

#endif
