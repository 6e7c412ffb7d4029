/* SPDX-License-Identifier: BSD-2-Clause */
/* internal.h: what session.c (life, login), task.c (SCSI commands), cleared.c
 * (those that the target dropped) and control.c (all other PDUs) share. */
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

/* How the target is asked for a task, cleared.c. */
enum ini_query_by {
	INI_QUERY, /* QUERY TASK */
	INI_ABORT, /* ABORT TASK: it is not there, or not any more */
	INI_PING,  /* a NOP-Out: what of before it was acknowledged */
};

/* What an Initiator Task Tag stands for. */
struct ini_slot {
	struct ini_task *task;	     /* one of these two, or */
	struct ini_request *request; /* neither: free */
	uint32_t itt;
	uint32_t next_free;
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
	/* time */
	xtime now, login_deadline, heard, ping_deadline, logout_deadline;
	struct ini_request ping, logout;
	bool pinging, has_deadlines;
	struct ini_request query; /* cleared.c: one at a time */
	uint32_t queried;	  /* the command's ITT */
	enum ini_query_by query_by;
	bool querying, no_query;
	int kill_err;
};

/* task.c */
void ini_pump(struct ini_session *s);
void ini_task_response(struct ini_session *s, struct ini_task *t,
		       const struct dm_control *ctl);
void ini_task_end(struct ini_task *t, int err);
void ini_fail_all(struct ini_session *s, int err);
uint32_t ini_slot_take(struct ini_session *s, struct ini_task *t,
		       struct ini_request *r);
void ini_slot_free(struct ini_session *s, uint32_t itt);
struct ini_slot *ini_slot_find(struct ini_session *s, uint32_t itt);
void ini_expire_tasks(struct ini_session *s, xtime now);

/* cleared.c */
/* An attention came: are those before it still there? */
void ini_cleared_attention(struct ini_session *s, const struct ini_task *t);
void ini_cleared_look(struct ini_session *s, xtime now);
void ini_cleared_released(struct ini_task *t);

/* control.c */
int ini_control(struct ini_session *s, const struct dm_control *ctl);
int ini_send_request(struct ini_session *s, struct dm_control *ctl);
void ini_expire_requests(struct ini_session *s, xtime now);
void ini_request_end(struct ini_session *s, struct ini_request *r, int err,
		     const struct dm_control *rsp);

/* session.c */
void ini_rearm(struct ini_session *s);

#endif
