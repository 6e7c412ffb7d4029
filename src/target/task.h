/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * task.h: the tasks of a session, and aborts: which tasks one reaches, and waiting
 * for their end.
 */
#ifndef TARGET_TASK_H
#define TARGET_TASK_H

#include "base/list.h"
#include "datamover/datamover.h"
#include "device/task.h"

struct tgt_session;
struct tgt_conn;
struct tgt_worker;

/* ---- tasks ---- */

#define TGT_IMMEDIATES 16u /* slots that immediate commands have of their own */

enum tgt_task_state {
	TGT_TASK_FREE,
	TGT_TASK_DATA,	   /* write data are in progress */
	TGT_TASK_MEMORY,   /* unsolicited data are in; the rest needs memory */
	TGT_TASK_TURN,	   /* waits for commands before it (CmdSN) */
	TGT_TASK_RUN,	   /* the device executes it */
	TGT_TASK_PUT,	   /* read data are in progress; a response follows */
	TGT_TASK_RESPONSE, /* the response is queued: too late for an abort */
	/* aborted; each waits for the next to let go of its memory */
	TGT_TASK_ABORT_DATA,	  /* for data in progress (§4.2.3.3 a) */
	TGT_TASK_ABORT_DATAMOVER, /* for DM_RELEASED */
	TGT_TASK_ABORT_DEVICE,	  /* for the device's `released` */
};

/* A response that fence.c may hold back. */
struct tgt_held {
	struct list link;	 /* session's fences.held */
	const struct dev_lu *lu; /* of its unit, compared only; NULL: all */
	bool fenced;
	/* Sends it; returns the connection that took it, or NULL. */
	struct tgt_conn *(*send)(struct tgt_held *h);
};

static inline bool tgt_is_held(const struct tgt_held *h)
{
	return h->link.next != &h->link;
}

struct tgt_task {
	struct dm_task dm;
	struct tgt_session *session; /* constant */
	/* of its allegiance (§4.2.2.2); NULL: that has ended, and the task is
	 * aborted */
	struct tgt_conn *conn;
	/* Of its LUN: the unit (NULL: none) and its number. Compared only, unless
	 * the device has begun the task. */
	struct dev_lu *lu;
	uint16_t unit;
	struct tgt_task *hash_next;
	struct list link; /* session's active or spare list */
	uint32_t cmdsn;
	enum tgt_task_state
		state; /* changed by tgt_task_go (task_state.h) only */
	bool immediate;
	bool report_abort; /* once aborted, it ends with TASK ABORTED */
	/* SCSI status that ends it in place of the device's; not SCSI_GOOD: the
	 * device has not begun it */
	uint8_t refusal;
	int data_err; /* why its write data are not usable */
	/* stall.c: since when its data have been in progress while other
	 * sessions wait for memory; 0: they are not */
	xtime moves_since;
	xtime arrived;	      /* when its command arrived; stats.c */
	struct tgt_held held; /* its status, where sessions have fences */
	struct dev_task dev;
};

/* The tasks of one session. */
struct tgt_tasks {
	struct tgt_task *all; /* or NULL: tgt_tasks_ready */
	uint32_t n, fresh;    /* all[fresh..] were never used */
	uint32_t used, immediates;
	struct list active, spare;
	struct tgt_task **hash; /* chains by ITT */
	unsigned hash_shift;
};

/* tgt_task_get takes a slot for a new command that came on c; NULL: there is
 * none. */
struct tgt_task *tgt_task_get(struct tgt_conn *c, uint32_t itt, bool immediate);
/* tgt_task_put ends the task at the device and frees its slot. */
void tgt_task_put(struct tgt_task *t);
/* tgt_tasks_alloc allocates the slots of a session for a window of depth commands.
 * ERR_NOMEM; tgt_tasks_free frees what there is. */
int tgt_tasks_alloc(struct tgt_session *s, uint32_t depth);
/* tgt_tasks_ready allocates the tasks, which tgt_task_get needs and a session
 * without commands does not have. ERR_NOMEM. tgt_tasks_rest frees them if none is in use. */
int tgt_tasks_ready(struct tgt_session *s);
void tgt_tasks_rest(struct tgt_session *s);
void tgt_tasks_free(struct tgt_session *s);

/* The device has begun the task, so it has to end there too. */
static inline bool tgt_task_is_begun(const struct tgt_task *t)
{
	return t->refusal == SCSI_GOOD;
}

/* The datamover was asked to release the task, or never had it. */
static inline bool tgt_task_is_released(const struct tgt_task *t)
{
	return t->state == TGT_TASK_FREE ||
	       t->state == TGT_TASK_ABORT_DATAMOVER ||
	       t->state == TGT_TASK_ABORT_DEVICE;
}

static inline bool tgt_task_is_aborting(const struct tgt_task *t)
{
	return t->state >= TGT_TASK_ABORT_DATA;
}

/* ---- aborts: which tasks one reaches, and waiting for their end ---- */

#define TGT_UNITS 16384u /* their numbers, and LUNs, are below */

/* A set of units, by their numbers. */
struct tgt_units {
	uint8_t bits[TGT_UNITS / 8];
};

static inline bool tgt_units_have(const struct tgt_units *u, uint16_t unit)
{
	return u->bits[unit / 8] & 1u << unit % 8;
}

struct tgt_scope {
	struct tgt_session *session; /* tasks of this session; NULL: of any */
	bool of_conn;		     /* ... of this connection only */
	const struct tgt_conn *conn; /* compared only; NULL: it has ended */
	const struct dev_lu *lu;     /* ... at this unit only; compared only */
	const struct tgt_units *units; /* ... at these, or of issuer at none */
	bool one_task;		       /* ... with this ITT only */
	uint32_t itt;
	bool aca;    /* ... with the ACA attribute only */
	bool before; /* ... issued before this CmdSN by wait_session */
	uint32_t cmdsn;
	bool lost; /* ... at the units that the session loses (remap.c) */
	bool unrecoverable; /* ... that no other connection may go on with */
	const struct dev_task *except; /* ... but for this one */
	bool fast; /* wait_session has FastAbort: no data may come in before */
	/* Tasks of sessions other than issuer (compared only) end with TASK
	 * ABORTED where their unit has TAS = 1 (SPC-4 §7.5.8). */
	bool report_abort;
	const void *issuer;
	/* Write data of this session that are in progress may come in before
	 * the abort (§4.2.3.3 a); compared only. */
	const void *wait_session;
};

struct tgt_abort {
	struct list link; /* worker's aborts */
	struct tgt_worker *worker;
	struct tgt_scope scope;
	xtime deadline; /* for data in progress; 0: not set yet */
	void (*done)(struct tgt_abort *a);
};

/* tgt_abort_start aborts the tasks of the scope. done is called once, maybe from
 * within, when none of them is left. a stays with the caller. */
void tgt_abort_start(struct tgt_worker *w, struct tgt_abort *a,
		     const struct tgt_scope *scope,
		     void (*done)(struct tgt_abort *a));
/* tgt_abort_cancel: done will not be called. */
void tgt_abort_cancel(struct tgt_abort *a);
/* tgt_abort_attention: another initiator clears commands of this session at the
 * scope's unit. Where TAS = 0 a unit attention reports that, if there were any
 * (SPC-4 §5.5.2). Call it before tgt_abort_start. */
void tgt_abort_attention(struct tgt_session *s, const struct tgt_scope *scope);
/* tgt_abort_tell: tasks of the scope are being terminated. Async Messages say so to
 * sessions with TaskReporting=FastAbort, on each connection but by, and for each unit
 * (§4.2.3.4 d). Call it before tgt_abort_start. */
void tgt_abort_tell(struct tgt_worker *w, const struct tgt_scope *scope,
		    const struct tgt_conn *by);
/* tgt_abort_iscsi_event: connections of the session end, and with them the tasks of
 * the scope. A unit attention 47h/7Fh reports that at each unit that has such a
 * task (§11.14.5). Call it before the tasks end. */
void tgt_abort_iscsi_event(struct tgt_session *s,
			   const struct tgt_scope *scope);
/* tgt_abort_released: the datamover has let go of an aborted task; t may be free
 * afterwards. */
void tgt_abort_released(struct tgt_task *t);
/* tgt_abort_data: data of an aborted task came in. */
void tgt_abort_data(struct tgt_task *t);
/* tgt_abort_discard ends a task without a response, as if its command had not
 * come; t may be free afterwards. */
void tgt_abort_discard(struct tgt_task *t);
/* tgt_abort_orphans: c has ended, and the datamover has let go of its tasks. They
 * end without a response; with recovery only those that no other connection may go
 * on with. */
void tgt_abort_orphans(struct tgt_session *s, const struct tgt_conn *c,
		       bool recovery);
void tgt_abort_expire(struct tgt_worker *w, xtime now);

#endif
