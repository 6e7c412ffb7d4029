/* SPDX-License-Identifier: BSD-2-Clause */
/* internal.h: structs and functions that the files of the initiator share:
 * session.c (login, begin and end), task.c (SCSI commands), cleared.c (commands
 * that the target cleared or lost), control.c (all other PDUs). */
#ifndef INITIATOR_INTERNAL_H
#define INITIATOR_INTERNAL_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/serial.h"
#include "initiator/initiator.h"
#include "iscsi/states.h"

enum ini_task_state {
	INI_TASK_IDLE,
	INI_TASK_WAITING, /* for the command window, or a slot */
	INI_TASK_SENT,
};

/* How cleared.c asks the target for a task. */
enum ini_query_by {
	INI_QUERY, /* QUERY TASK */
	INI_ABORT, /* ABORT TASK: afterwards the target does not have it */
	INI_PING,  /* NOP-Out: the answer acknowledges commands before it */
};

/* How cleared.c asks for a task: one query is in progress at most. */
struct ini_query {
	struct ini_request request;
	uint32_t itt; /* of the task */
	enum ini_query_by by;
	bool in_progress;
	bool unsupported; /* the target does not support QUERY TASK */
};

/* The task or request of an Initiator Task Tag. */
struct ini_slot {
	struct ini_task *task;
	struct ini_request *request; /* both NULL: the slot is free */
	uint32_t itt;
	uint32_t next_free;
};

/* A command window that stays closed though commands wait for it. */
struct ini_stall {
	/* when to report it; XTIME_NEVER: there is none, or it was reported */
	xtime deadline;
	bool is_reported;
};

struct ini_session {
	struct ini_config cfg;
	struct dm_conn *dm;
	struct iscsi_login_engine *login; /* NULL once it is over */
	struct iscsi_login_failure failure;
	struct iscsi_params params;
	struct iscsi_numbers numbers;
	struct iscsi_initiator_window window;
	enum iscsi_conn_state state;
	int tpgt;
	/* requests */
	struct ini_slot *slots;
	uint32_t nslots, free_slot;
	struct list waiting;  /* ini_task.link, in order of submission */
	struct list sent;     /* ini_task.link */
	struct list requests; /* ini_request.link */
	unsigned in_flight;
	/* requests that ended without an answer, which may still come */
	unsigned abandoned;
	/* time */
	xtime now, login_deadline, heard, ping_deadline, logout_deadline;
	struct ini_request ping, logout;
	struct ini_stall stall;
	bool pinging, has_deadlines;
	bool login_heard;	/* a Login Response came */
	struct ini_query query; /* cleared.c */
	int kill_err;
};

/* ---- task.c ---- */

/* ini_pump sends waiting commands while the window is open. */
void ini_pump(struct ini_session *s);
/* ini_expire_window logs that the target has not opened the command window for
 * a while, though commands wait for it. */
void ini_expire_window(struct ini_session *s, xtime now);
/* ini_task_response ends a task by its SCSI Response. */
void ini_task_response(struct ini_session *s, struct ini_task *t,
		       const struct dm_control *ctl);
/* ini_task_end frees the tag and calls done; t is the caller's again. */
void ini_task_end(struct ini_task *t, int err);
/* ini_fail_all ends every task and request with err. */
void ini_fail_all(struct ini_session *s, int err);
/* ini_slot_take returns a new Initiator Task Tag for t or r;
 * ISCSI_RESERVED_TAG: none is free. */
uint32_t ini_slot_take(struct ini_session *s, struct ini_task *t,
		       struct ini_request *r);
void ini_slot_free(struct ini_session *s, uint32_t itt);
/* ini_slot_find returns the slot of a tag in use, or NULL. */
struct ini_slot *ini_slot_find(struct ini_session *s, uint32_t itt);
void ini_expire_tasks(struct ini_session *s, xtime now);

/* ---- cleared.c ---- */

/* ini_cleared_attention: t ended with sense data. If they report that commands
 * were cleared, the older commands of the unit become suspect. */
void ini_cleared_attention(struct ini_session *s, const struct ini_task *t);
/* ini_cleared_check asks the target for the first task that is due. */
void ini_cleared_check(struct ini_session *s, xtime now);
/* ini_cleared_by: the target has carried out the task management function r. The
 * commands that it ends get no response (RFC 7143 §4.2.3.3). */
void ini_cleared_by(struct ini_session *s, const struct ini_request *r);
/* ini_forget_abort: t ends before the response to its ABORT TASK. */
void ini_forget_abort(struct ini_task *t);
/* ini_cleared_released: the datamover has let go of a cleared task. */
void ini_cleared_released(struct ini_task *t);

/* ---- control.c ---- */

/* ini_control handles a PDU that is not a SCSI Response. Negative: drop the
 * connection. */
int ini_control(struct ini_session *s, const struct dm_control *ctl);
/* ini_send_request gives a request its CmdSN and sends it, immediate if the target
 * has room for it. */
int ini_send_request(struct ini_session *s, struct dm_control *ctl);
void ini_expire_requests(struct ini_session *s, xtime now);
/* ini_request_end frees the tag and calls done with rsp, or with err. */
void ini_request_end(struct ini_session *s, struct ini_request *r, int err,
		     const struct dm_control *rsp);

/* ---- session.c ---- */

/* ini_rearm: a deadline may have come closer. */
void ini_rearm(struct ini_session *s);
/* Requests may be sent, also after the target asked for a logout (§8.1.3). */
static inline bool ini_is_full_feature(const struct ini_session *s)
{
	return s->state == ISCSI_S5_LOGGED_IN ||
	       s->state == ISCSI_S7_LOGOUT_REQUESTED;
}

#endif
