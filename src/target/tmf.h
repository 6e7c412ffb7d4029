/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tmf.h: a task management function in progress: what tmf.c (begin and table),
 * tmf_end.c (response and end), tmf_session.c (functions on tasks of one session) and
 * tmf_reset.c (functions on sessions of all workers) share.
 */
#ifndef TARGET_TMF_H
#define TARGET_TMF_H

#include "target/internal.h"

struct tgt_tmf;

/* The part of a function that one worker does. */
struct tgt_tmf_part {
	struct dev_msg msg; /* to the worker and back */
	struct tgt_tmf *tmf;
	unsigned worker;
	struct tgt_abort abort;
};

/* Of a function that ends the commands of all initiators: it waits for its turn. */
struct tgt_turn {
	struct dev_msg msg;
	bool waits;
	/* later functions of the session that ask for the same, and end with this one; or
	 * this function's place among them */
	struct list followers;
};

/* Of resets. */
struct tgt_reset {
	/* of the target: the units that the session can access */
	struct tgt_units *units;
	/* the next unit, the end, and what follows the last unit */
	unsigned lun, end;
	void (*done)(struct tgt_tmf *m);
	struct tgt_turn turn; /* also of CLEAR TASK SET */
};

struct tgt_tmf {
	struct list link; /* session's tmfs */
	struct tgt_use use;
	struct tgt_session *session; /* NULL: it ended */
	struct tgt_conn *conn;	     /* for the response; NULL: it ended */
	struct tgt_worker *worker;
	struct tgt_node *node;
	/* of the LUN field: the unit, compared only (NULL: none), and its
	 * number */
	const struct dev_lu *lu;
	unsigned unit;
	const struct tgt_tmf_row *row;
	const void *issuer; /* the session, compared only */
	uint8_t function, response;
	uint8_t info[3]; /* Additional Response Information */
	bool immediate;
	bool fast; /* the session has FastAbort */
	uint32_t itt, rtt, cmdsn, ref_cmdsn, exp_datasn;
	struct dm_remote remote; /* of a TASK REASSIGN over RDMA */
	uint64_t lun;
	bool started;
	struct tgt_abort abort; /* of a function on this session only */
	bool aborting;		/* `abort` is in progress */
	struct tgt_held held;	/* the response, in fence.c */
	/* ends and frees the function after the response; NULL: tgt_tmf_free */
	void (*last)(struct tgt_tmf *m);
	struct tgt_reset reset;
	unsigned pending;	     /* parts in progress */
	struct tgt_tmf_part parts[]; /* one per worker */
};

struct tgt_tmf_row {
	const char *name;
	bool on_lu;  /* the LUN field is used (§11.5.3) */
	bool level2; /* needs iSCSIProtocolLevel=2 (RFC 7144 §6.3) */
	bool waits;  /* for all commands before it (§4.2.3.3 b) */
	bool skips;  /* counts the missing ones as received instead */
	bool drops;  /* drops all sessions of the target */
	bool fenced; /* its response has the Response Fence */
	bool (*ready)(const struct tgt_tmf *m); /* may start; or NULL */
	void (*run)(struct tgt_tmf *m);
	void (*in_turn)(struct tgt_tmf *m); /* its turn came; or NULL */
	void (*after)(struct tgt_tmf *m);   /* the tasks have ended; or NULL */
};

/* ---- tmf_end.c ---- */

/* Sends `response` unless a Response Fence holds it, and ends the function; m may be free
 * afterwards. */
void tgt_tmf_end(struct tgt_tmf *m, uint8_t response);

/* The affected tasks have ended: runs the rest of the function, then sends the response; m may
 * be free afterwards. */
void tgt_tmf_tasks_ended(struct tgt_tmf *m);

/* Sends the response, and then ends the function; m may be free afterwards. Returns the
 * connection that the response went to; NULL: none. */
struct tgt_conn *tgt_tmf_respond(struct tgt_tmf *m);

/* tgt_tmf_follower takes a function off those that end with m; NULL: none is left. */
struct tgt_tmf *tgt_tmf_follower(struct tgt_tmf *m);

/* Frees a function that has ended or will not start. */
void tgt_tmf_free(struct tgt_tmf *m);

/* ---- tmf_session.c: called through the table in tmf.c ---- */

void tgt_tmf_abort_task_set(struct tgt_tmf *m);
void tgt_tmf_abort_task(struct tgt_tmf *m);
void tgt_tmf_query_task(struct tgt_tmf *m);
void tgt_tmf_query_task_set(struct tgt_tmf *m);
void tgt_tmf_query_async_event(struct tgt_tmf *m);
void tgt_tmf_nexus_reset(struct tgt_tmf *m);
void tgt_tmf_after_nexus_reset(struct tgt_tmf *m);
void tgt_tmf_clear_aca(struct tgt_tmf *m);
void tgt_tmf_after_clear_aca(struct tgt_tmf *m);
void tgt_tmf_reject_function(struct tgt_tmf *m);
bool tgt_tmf_is_gone(const struct tgt_tmf *m);
void tgt_tmf_reassign_task(struct tgt_tmf *m);

/* ---- tmf_reset.c: called through the table in tmf.c ---- */

void tgt_tmf_take_turn(struct tgt_tmf *m);
void tgt_tmf_reset_unit(struct tgt_tmf *m);
void tgt_tmf_reset_target(struct tgt_tmf *m);
void tgt_tmf_clear_task_set(struct tgt_tmf *m);
void tgt_tmf_clear_in_turn(struct tgt_tmf *m);
void tgt_tmf_after_lu_reset(struct tgt_tmf *m);
void tgt_tmf_after_warm_reset(struct tgt_tmf *m);
void tgt_tmf_after_cold_reset(struct tgt_tmf *m);

#endif
