/* SPDX-License-Identifier: BSD-2-Clause */
/* internal.h: structs and functions that the files of the initiator share:
 * session.c (states, the choice of a connection, the end of a session), task.c (SCSI
 * commands), cleared.c (commands that the target cleared or lost), control.c (all
 * other PDUs); above these recover.c (tasks of a lost connection), conn.c (connections: login and up-calls), start.c (the
 * begin and the memory of a session), leave.c (the logout of one connection), clock.c (deadlines and pings). */
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

/* How the tasks of a lost connection move to other ones, at ErrorRecoveryLevel 2
 * (RFC 7143 §7.1.4.3); recover.c's. */
enum ini_recovery_step {
	INI_RECOVER_LOGOUT, /* Logout for recovery, on another connection */
	INI_RECOVER_HELD,   /* before it: the target has no room for it */
	INI_RECOVER_WAIT,   /* Time2Wait of the Logout Response, or no room */
	INI_RECOVER_TASKS,  /* TASK REASSIGN of its tasks */
};

/* How many TASK REASSIGNs of a connection are in progress: a target takes some immediate
 * requests only (RFC 7143 §4.2.2.1), and iserd 32 of a session. */
#define INI_REASSIGNS 16u

/* The TASK REASSIGN of one task. */
struct ini_reassign {
	enum {
		INI_REASSIGN_FREE,
		INI_REASSIGN_SENT,
		INI_REASSIGN_HELD, /* rejected: after the answer to another one */
	} state;
	struct ini_request request;
	struct ini_conn *lost; /* that recovers the task */
	unsigned repeats;
	uint32_t itt;	/* of the task */
	bool names_lun; /* it has the LUN: take_response */
};

struct ini_recovery {
	enum ini_recovery_step step;
	/* How long the step lasts: Time2Wait, or the time for an answer; and when
	 * it ends, 0: not known before the next ini_expire, which has the time. */
	xtime time, end;
	struct ini_request request; /* the Logout, or the ping of make_room */
	unsigned repeats;	    /* of that request, that got no answer */
	struct ini_reassign reassigns[INI_REASSIGNS];
	unsigned nsent, limit; /* of them: sent, and how many may be */
	bool names_lun;	       /* the target wants it: take_response */
};

/* The text of a Text Response in several PDUs; negotiate.c's. */
struct ini_text_parts {
	uint8_t *text; /* NULL: there is none */
	size_t len;
};

/* The logout of one connection; leave.c's. */
struct ini_leave {
	struct ini_request *asker;	  /* NULL: the connection stays */
	struct ini_request logout, asked; /* asked: of ini_leave_asked */
	xtime deadline; /* for the commands of the connection to end */
	bool is_answered;
	int err; /* the answer */
};

/*
 * A connection of a session. ini_new makes the leading one, ini_conn_new each
 * other one; the session frees it in Connection_Terminate_Notify, which comes for
 * each connection that was started.
 */
struct ini_conn {
	struct ini_session *session;
	struct list link;		  /* session.conns or session.lost */
	struct dm_conn *dm;		  /* NULL: lost */
	struct iscsi_login_config offer;  /* of login, which borrows it */
	struct iscsi_login_engine *login; /* NULL once it is over */
	struct iscsi_login_failure failure;
	struct iscsi_params params;
	struct iscsi_numbers numbers; /* its ExpStatSN (§4.2.2.2) */
	enum iscsi_conn_state state;
	unsigned in_flight; /* commands whose allegiance is this connection */
	/* requests that ended without an answer, which may still come */
	unsigned abandoned;
	/* time */
	xtime login_deadline, heard, ping_deadline;
	struct ini_request ping;
	struct ini_request negotiation; /* negotiate.c */
	struct ini_text_parts parts;	/* negotiate.c */
	unsigned rounds;		/* of the negotiation */
	bool pinging;
	uint8_t pings;	  /* for the same answer */
	bool login_heard; /* a Login Response came */
	char name[24];	  /* for the log */
	struct ini_recovery recovery;
	struct ini_leave leave;
};

struct ini_session {
	struct ini_config cfg;
	struct list conns; /* ini_conn.link; the one used last is at the end */
	struct list lost;  /* ini_conn.link: their tasks are being recovered */
	enum iscsi_session_state state;
	struct iscsi_login_failure failure; /* of the leading login */
	struct iscsi_params params;	    /* of the leading login */
	const char *transport;		    /* of the last connection */
	uint16_t tsih;
	struct iscsi_initiator_window window;
	int tpgt;
	/* requests */
	struct ini_slot *slots;
	uint32_t nslots, free_slot;
	struct list waiting;  /* ini_task.link, in order of submission */
	struct list sent;     /* ini_task.link */
	struct list requests; /* ini_request.link */
	unsigned in_flight;
	/* time */
	xtime now, logout_deadline;
	struct ini_request logout;
	struct ini_stall stall;
	bool has_deadlines;
	bool is_logging_out;	/* by ini_logout */
	bool is_logged_out;	/* the target has answered that Logout */
	bool is_ending;		/* no request is sent any more */
	bool has_moved;		/* ini_has_moved */
	struct ini_query query; /* cleared.c */
	int kill_err;
};

/* ---- task.c ---- */

/* ini_pump sends waiting commands while the window is open. Inline, because mostly
 * none waits. */
void ini_pump_waiting(struct ini_session *s);
static inline void ini_pump(struct ini_session *s)
{
	if (!list_empty(&s->waiting))
		ini_pump_waiting(s);
}
/* ini_expire_window logs that the target has not opened the command window for
 * a while, though commands wait for it. */
void ini_expire_window(struct ini_session *s, xtime now);
/* ini_task_response ends a task by its SCSI Response. */
void ini_task_response(struct ini_session *s, struct ini_task *t,
		       const struct dm_control *ctl);
/* ini_task_end frees the tag and calls done; t is the caller's again. */
void ini_task_end(struct ini_task *t, int err);
/* ini_task_again sends a task once more on c, with its tag and CmdSN: the target has
 * not received it (RFC 7143 §7.2.1). */
int ini_task_again(struct ini_task *t, struct ini_conn *c);
/* ini_task_move gives a task that was sent a new allegiance; TASK REASSIGN
 * follows. */
void ini_task_move(struct ini_task *t, struct ini_conn *c);
/* ini_first_task returns the first task with this allegiance, or NULL. */
struct ini_task *ini_first_task(const struct ini_conn *c);
/* ini_fail_requests ends every request of a connection with err. */
void ini_fail_requests(struct ini_conn *c, int err);
/* ini_fail_conn ends every task and request of a connection with err. */
void ini_fail_conn(struct ini_conn *c, int err);
/* ini_fail_waiting ends every task that was not sent with err. */
void ini_fail_waiting(struct ini_session *s, int err);
/* ini_slot_take returns a new Initiator Task Tag for t or r;
 * ISCSI_RESERVED_TAG: none is free. */
uint32_t ini_slot_take(struct ini_session *s, struct ini_task *t,
		       struct ini_request *r);
void ini_slot_free(struct ini_session *s, uint32_t itt);
/* ini_slot_find returns the slot of a tag in use, or NULL. */
/* ini_slot_take_again takes the tag that r had before, for the next request of a
 * sequence. ISCSI_RESERVED_TAG: it is in use. */
uint32_t ini_slot_take_again(struct ini_session *s, struct ini_request *r);
struct ini_slot *ini_slot_find(struct ini_session *s, uint32_t itt);
void ini_expire_tasks(struct ini_session *s, xtime now);

/* ini_text_is_pending returns whether a Text Request on c has no answer yet. */
bool ini_text_is_pending(const struct ini_conn *c);
/* ini_conn_text is ini_text on c, which may be NULL. */
int ini_conn_text(struct ini_conn *c, struct ini_request *r, const void *text,
		  size_t len, const struct iscsi_pdu *last, xtime deadline);

/* ---- negotiate.c ---- */

/* ini_negotiate answers a target that asks for a negotiation by a Text Request on c
 * (§11.9.1), and the keys that the target sends then. */
void ini_negotiate(struct ini_conn *c);

/* ---- cleared.c ---- */

/* ini_cleared_attention: t ended with sense data. If they report that commands
 * were cleared, the older commands of the unit become suspect. */
void ini_cleared_attention(struct ini_session *s, const struct ini_task *t);
/* ini_cleared_check asks the target for the first task that is due. */
void ini_cleared_check(struct ini_session *s, xtime now);
/* ini_cleared_by: the target has carried out the task management function r. The
 * commands that it ends get no response (RFC 7143 §4.2.3.3). */
void ini_cleared_by(struct ini_session *s, const struct ini_request *r);
/* ini_cleared_stop: r, a task management function, was sent. With FastAbort no Data-Out
 * of the commands that it ends follows on its connection (§4.2.3.4 a).
 * ini_cleared_go_on: it has failed, and their data go on. */
void ini_cleared_stop(struct ini_session *s, const struct ini_request *r);
void ini_cleared_go_on(struct ini_session *s, const struct ini_request *r);
/* ini_cleared_told: Async Message 5 came on c: the target ends the commands of this LUN
 * (§11.9.1). */
void ini_cleared_told(struct ini_conn *c, uint64_t lun);
/* ini_abort_due sends the ABORT TASK of a task that has an allegiance again, if ini_abort
 * was called while its connection was lost. */
void ini_abort_due(struct ini_task *t);
/* ini_forget_abort: t ends before the response to its ABORT TASK. */
void ini_forget_abort(struct ini_task *t);
/* ini_cleared_soon: a sign that the target does not have t; ini_cleared_check asks
 * for t next. */
void ini_cleared_soon(struct ini_task *t);
/* ini_cleared_released: the datamover has let go of a cleared task. */
void ini_cleared_released(struct ini_task *t);

/* ---- control.c ---- */

/* ini_control handles a PDU that is not a SCSI Response. Negative: drop the
 * connection. */
int ini_control(struct ini_conn *c, const struct dm_control *ctl);
/* ini_send_request gives a request its CmdSN and sends it, immediate if the target
 * has room for it. */
int ini_send_request(struct ini_conn *c, struct dm_control *ctl);
/* ini_conn_ping is ini_ping on this connection. */
int ini_conn_ping(struct ini_conn *c, struct ini_request *r, const void *data,
		  size_t len, xtime deadline);
/* ini_conn_request takes a tag for r and sends the request on c, which may be NULL:
 * no connection can send it. */
int ini_conn_request(struct ini_conn *c, struct ini_request *r,
		     struct dm_control *ctl, xtime deadline);
void ini_expire_requests(struct ini_session *s, xtime now);
/* ini_request_end frees the tag and calls done with rsp, or with err. */
void ini_request_end(struct ini_session *s, struct ini_request *r, int err,
		     const struct dm_control *rsp);

/* ---- session.c ---- */

/* ini_rearm: a deadline may have come closer. */
void ini_rearm(struct ini_session *s);
/* ini_conn_go changes the state of a connection. */
void ini_conn_go(struct ini_conn *c, enum iscsi_conn_state next);
/* ini_conn_pick returns the connection with the fewest commands in progress; of
 * several the one that was used the longest time ago. NULL: none can send. */
struct ini_conn *ini_conn_pick(struct ini_session *s);
/* Requests may be sent, also after the target asked for a logout (§8.1.3). */
static inline bool ini_conn_is_up(const struct ini_conn *c)
{
	return c->state == ISCSI_S5_LOGGED_IN ||
	       c->state == ISCSI_S7_LOGOUT_REQUESTED;
}
/* ... and the connection is not about to end. */
static inline bool ini_conn_may_send(const struct ini_conn *c)
{
	return ini_conn_is_up(c) && c->dm->state < DM_TERMINATING;
}
/* ini_session_logged_in: the leading login has ended (RFC 7143 §8.3, N1). */
void ini_session_logged_in(struct ini_session *s);
/* ini_session_failed: the last connection is lost, and the session waits (N5).
 * ini_session_continued: another one continues it (N4). */
void ini_session_failed(struct ini_session *s);
void ini_session_continued(struct ini_session *s);
/* ini_session_lost_conn: a connection has ended, and its requests; it is not on
 * the list any more. clean: nothing of the connection is left to recover. At
 * ErrorRecoveryLevel 0 the session ends with a connection that is not clean
 * (§7.1.4.4). */
void ini_session_lost_conn(struct ini_session *s, bool clean, int err);
/* Whether single PDUs may be lost, so that what gets no answer is sent again (§7.1.4.2,
 * §7.2.1). At ErrorRecoveryLevel 0 that cannot be recovered, and iSER loses none (RFC 7145
 * §10.2.1). */
static inline bool ini_loses_pdus(const struct ini_session *s)
{
	return s->params.error_recovery_level > 0 && !s->params.rdma_extensions;
}
/* Whether requests of this session may be sent. */
static inline bool ini_is_full_feature(const struct ini_session *s)
{
	return s->state == ISCSI_Q3_LOGGED_IN && !s->is_ending;
}

/* ---- recover.c ---- */

/* ini_recover_can returns whether the session goes on without c, which has ended with
 * err, or waits, as ini_is_waiting says. */
bool ini_recover_can(const struct ini_conn *c, int err);
/* ini_recover_is_last returns whether no connection but c can send. */
bool ini_recover_is_last(const struct ini_conn *c);
/* ini_recover_begin moves the tasks of c, which has ended, to other connections.
 * ini_recover_wait keeps the tasks of the last connection. c is freed after the recovery, or
 * with the session. */
void ini_recover_begin(struct ini_conn *c);
void ini_recover_wait(struct ini_conn *c);
/* ini_recover_continue moves the tasks of a session that has waited to c and later
 * connections. */
void ini_recover_continue(struct ini_conn *c);
/* ini_recover_expire continues after Time2Wait; ini_recover_deadline returns when
 * that is due. */
void ini_recover_expire(struct ini_session *s, xtime now);
xtime ini_recover_deadline(const struct ini_session *s);

/* ---- leave.c ---- */

/* ini_leave_check sends the Logout of a connection, if it is to leave and nothing is in
 * progress on it any more. */
void ini_leave_check(struct ini_conn *c);
/* ini_leave_asked lets a connection leave for whose logout the target has asked
 * (§11.9.1), within so many seconds, unless that would end the session. The caller calls
 * ini_leave_check. */
void ini_leave_asked(struct ini_conn *c, unsigned seconds);
/* ini_leave_end reports that the connection has ended. */
void ini_leave_end(struct ini_conn *c, int err);
/* ini_leave_expire continues at ini_leave_deadline. */
xtime ini_leave_deadline(const struct ini_conn *c);
void ini_leave_expire(struct ini_conn *c, xtime now);

/* ---- conn.c ---- */

/* ini_conn_make makes a connection on dm and attaches to dm; tsih is 0 for the
 * leading one. NULL: out of memory. */
struct ini_conn *ini_conn_make(struct ini_session *s, struct dm_conn *dm,
			       uint16_t tsih, uint16_t cid);
/* ini_conn_fail_login ends the login in progress, and the connection with it. */
void ini_conn_fail_login(struct ini_conn *c, int err);

#endif
