/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * initiator.h: the initiator role of RFC 7143: login, the task table, the
 * command window, task management, NOPs, text, logout. A session has one
 * connection or several, each on a Datamover below; the session knows no transport
 * or clock.
 *
 * Threads: a session belongs to the thread of its connections' drivers.
 * Every request that was accepted ends with exactly one call of its done.
 */
#ifndef INITIATOR_INITIATOR_H
#define INITIATOR_INITIATOR_H

#include "base/trace.h"
#include "base/xtime.h"
#include "datamover/datamover.h"
#include "iscsi/login.h"
#include "scsi/sense.h"

struct ini_session;
struct ini_conn;

struct ini_config {
	struct iscsi_login_config login; /* role, want, id, CHAP, random */
	unsigned depth;			 /* requests in flight, 1 to 4096 */
	xtime login_time;  /* from ini_start to full feature phase */
	xtime idle_time;   /* silence before a ping; XTIME_NEVER: none */
	xtime ping_time;   /* for the answer to a ping */
	xtime logout_time; /* for the answer to a logout */
	/* age of a command at which QUERY TASK asks for it; XTIME_NEVER: it is
	 * not asked for */
	xtime query_time;
	/* at ErrorRecoveryLevel 2 the session waits after the loss of its last
	 * connection: see ini_is_waiting */
	bool continues;
	struct trace *trace; /* may be NULL */
	/* The login has ended: 0, or why it failed (see ini_failure). It may
	 * submit commands; it may not free the session. */
	void (*logged_in)(void *arg, int err);
	/* The login of a further connection has ended, as logged_in. May be NULL
	 * if ini_conn_new is not called. */
	void (*joined)(void *arg, struct ini_conn *c, int err);
	/* All connections have ended, and every request before them: the last
	 * call. It is called from within ini_kill, ini_logout and ini_expire if the
	 * session has no connection because it waits (ini_is_waiting). */
	void (*closed)(void *arg, int err);
	/* An Async Message came (§11.9); *a is borrowed for the call. */
	void (*async)(void *arg, const struct iscsi_async *a);
	/* A deadline may have come closer: call ini_deadline again. */
	void (*rearm)(void *arg);
	void *arg;
};

/* ini_config_default fills in limits and timeouts and clears all else. */
void ini_config_default(struct ini_config *cfg);

/* ini_new makes a session on dm, before the first byte of dm. cfg is copied; what
 * it points to is borrowed until ini_free, dm until `closed`. NULL: out of
 * memory. */
struct ini_session *ini_new(const struct ini_config *cfg, struct dm_conn *dm);
/* ini_free frees the session: before ini_start, or after closed. s may be
 * NULL. */
void ini_free(struct ini_session *s);

/* ini_start begins the login; the transport must be connected. */
void ini_start(struct ini_session *s, xtime now);

/*
 * ini_conn_new adds a connection to a session that is logged in, before the first
 * byte of dm; dm is borrowed as in ini_new. cid differs from those of the other
 * connections, the leading one of which has cfg.login.id.cid. ini_conn_start begins
 * its login; `joined` follows. Afterwards the session frees it when it has ended;
 * before ini_conn_start the caller may free it by ini_conn_free. c may be NULL
 * there. ini_conn_new returns NULL if memory is short, or the session has ended.
 *
 * A failed login of a further connection ends that connection only, except if the
 * target violates the protocol. At ErrorRecoveryLevel 0 the session ends with its
 * first connection that fails (RFC 7143 §7.1.4.4). At ErrorRecoveryLevel 2 the
 * commands of a connection that fails go on over the other connections, if there
 * are any (§7.1.4.3).
 */
struct ini_conn *ini_conn_new(struct ini_session *s, struct dm_conn *dm,
			      uint16_t cid);
/*
 * ini_is_waiting returns whether the session has failed (Q4) and waits, as
 * ini_config.continues asks, for a connection that continues it (RFC 7143 §6.3.6): one of
 * ini_conn_new, with the CID of a lost connection, which it reinstates (§6.3.4), or with
 * another one. `joined` reports its login, then the commands go on as after the loss of
 * one connection of several. After a failed login the session still waits, unless the
 * target violated the protocol. The target keeps the commands for Time2Wait and
 * Time2Retain; the caller watches that time, and gives up by ini_kill. Meanwhile commands
 * cannot be submitted, and the deadlines of those that wait count: one that is overdue
 * ends the session.
 */
bool ini_is_waiting(const struct ini_session *s);
/* ini_lost_cid returns the CID of the connection of a waiting session that was lost last. */
uint16_t ini_lost_cid(const struct ini_session *s);
/* ini_has_cid returns whether a connection of the session has this CID, which may be lost
 * and not recovered yet. */
bool ini_has_cid(const struct ini_session *s, uint16_t cid);
void ini_conn_start(struct ini_conn *c, xtime now);
void ini_conn_free(struct ini_conn *c);
/* ini_conn_failure returns why the login failed, borrowed for `joined`. */
const struct iscsi_login_failure *ini_conn_failure(const struct ini_conn *c);

/* ini_failure returns why the login failed; ini_params the negotiated values;
 * ini_tpgt the target portal group tag, or -1; ini_transport the name of the
 * datamover of the connections, "none" before the first login has ended. All are borrowed
 * from the session. */
const struct iscsi_login_failure *ini_failure(const struct ini_session *s);
const struct iscsi_params *ini_params(const struct ini_session *s);
int ini_tpgt(const struct ini_session *s);
const char *ini_transport(const struct ini_session *s);

/* ---- SCSI commands ---- */

#define INI_SENSE_MAX 252

/* A request other than a SCSI command. */
struct ini_request {
	/* rsp: NULL when err is not 0. Borrowed for the call. */
	void (*done)(struct ini_request *r, int err,
		     const struct dm_control *rsp);
	xtime deadline;
	/* the session's own */
	uint8_t op; /* of the request */
	uint32_t itt;
	bool immediate;
	struct ini_conn *conn;
	struct list link;
	/* of task management */
	uint8_t function; /* enum iscsi_tmf */
	uint64_t lun;
	uint32_t cmdsn;
};

/* What cleared.c knows about a task. */
struct ini_task_check {
	xtime at;	 /* when the task was sent or last queried */
	uint8_t missing; /* successive answers that did not know the task */
	uint8_t refused; /* ABORT TASKs without effect */
	uint8_t pings;	 /* that asked for it */
	bool by_ping;	 /* ... and did not acknowledge it, rather */
	bool suspect;	 /* a unit attention implies that it may be cleared */
	bool clearing;	 /* the target does not have it; the datamover does */
	bool stopped;	 /* its Data-Outs are stopped (FastAbort) */
};

/* How a task was sent. */
struct ini_task_sent {
	struct ini_conn *conn; /* of its allegiance (RFC 7143 §4.2.2.2) */
	uint32_t cmdsn;
};

/* The ABORT TASK of ini_abort. */
struct ini_task_abort {
	struct ini_request request;
	bool in_progress;
	bool is_due; /* once the task has an allegiance again */
	xtime time;  /* for the answer then */
};

/* What became of read data. All members but `arrived` are those of a bidirectional
 * command; the members of ini_task with the same names are then about its write data. */
struct ini_bidi {
	bool underflow, overflow;
	uint32_t resid, moved;
	uint32_t arrived; /* bytes of `in`, of each command */
};

struct ini_task {
	/* set by the caller */
	uint64_t lun; /* wire form */
	uint8_t cdb[48];
	uint8_t cdb_len;
	bool read, write; /* both: a bidirectional command */
	uint8_t attr;	  /* enum iscsi_attr */
	uint8_t priority; /* RFC 7144 §5.1.1; 0: none */
	bool immediate;
	bool short_ok; /* not an error: fewer bytes than `in` or `out` holds */
	struct bufv in, out; /* borrowed until done */
	xtime deadline;	     /* XTIME_NEVER: none */
	void (*done)(struct ini_task *t);
	/* set before done */
	/*
	 * 0: status is valid. ERR_TIMEOUT, ERR_CLOSED, ...; ERR_ABORTED: the
	 * target does not have the command and will not answer it. With a good
	 * status: ERR_SHORT: `moved` is less than expected and short_ok is
	 * false; ERR_OVERFLOW: the target wanted more write data, and short_ok is
	 * false; ERR_RESIDUAL: the residual is impossible (RFC 7143 §11.4.1).
	 */
	int err;
	uint8_t status;
	uint16_t qualifier; /* of the status, SAM-5 §5.3.2; 0: none */
	/* as the target reported them; resid is 0 unless a flag is set */
	bool underflow, overflow;
	uint32_t resid;
	/* Bytes of `in` or `out` that moved: the smaller of the datamover's
	 * count and of what the residual leaves. */
	uint32_t moved;
	struct ini_bidi bidi;
	uint16_t sense_len;
	uint8_t sense[INI_SENSE_MAX];
	/* the session's own */
	struct dm_task dm;
	struct ini_session *session;
	struct list link;
	struct ini_task_sent sent;
	uint8_t state;
	struct ini_task_check check; /* cleared.c */
	struct ini_task_abort abort; /* cleared.c */
};

/* ini_submit sends a command, or queues it until the window opens. t is borrowed
 * until done, which is called from within only where the session cannot send. */
void ini_submit(struct ini_session *s, struct ini_task *t, xtime now);

/* ini_abort ends a command that was submitted: at once, with done called from
 * within, if it was not sent yet; else by ABORT TASK. It ends with ERR_ABORTED
 * unless its response comes first, or the target does not abort it. The ABORT TASK of a
 * command whose connection is lost follows its recovery. Returns 0, also if the command has
 * ended, or the error of ini_task_management. */
int ini_abort(struct ini_task *t, xtime deadline);

/* ---- other requests ---- */

/* Each of these borrows r until done and returns 0, or an error and does not call
 * done: ERR_CLOSED, ERR_BUSY (no tag, or no room at the target), ERR_TOO_LONG,
 * ERR_NOMEM. */

/* ini_task_management sends a function for a LUN; ref is the task that it refers
 * to, or NULL. If the target carries out a function that ends commands of this
 * session, they end with ERR_ABORTED before done is called. */
int ini_task_management(struct ini_session *s, struct ini_request *r,
			enum iscsi_tmf function, uint64_t lun,
			const struct ini_task *ref, xtime deadline);
/* ini_ping sends a NOP-Out with len bytes of data, which the answer returns. */
int ini_ping(struct ini_session *s, struct ini_request *r, const void *data,
	     size_t len, xtime deadline);
/* ini_text sends text (len bytes) with F set. last: NULL, or the response to r that
 * is to be continued (§11.10.4): r goes on with its tags, its connection and its I
 * bit. ERR_BUSY: the connection has a Text Request already (§11.10), or the tag of r
 * is in use. ERR_TOO_LONG: more than the target takes in one PDU. */
int ini_text(struct ini_session *s, struct ini_request *r, const void *text,
	     size_t len, const struct iscsi_pdu *last, xtime deadline);

/* ini_logout closes the session, with all its connections, by a Logout; closed
 * follows. */
void ini_logout(struct ini_session *s, xtime now);
/*
 * ini_conn_leave logs out of the connection with this CID, which gets no new commands,
 * once it has no command in progress. r is borrowed until done, which is called without
 * a response: with 0 when the connection has ended; with ERR_TIMEOUT at the deadline
 * if commands are in progress still, then the connection stays. Returns 0, or an error and
 * does not call done: ERR_CLOSED; ERR_NOT_FOUND: there is no such connection; ERR_BUSY:
 * it is leaving already; ERR_UNSUPPORTED: it is the last one.
 */
int ini_conn_leave(struct ini_session *s, uint16_t cid, struct ini_request *r,
		   xtime deadline);
/* ini_kill drops all connections; closed follows. */
void ini_kill(struct ini_session *s, int err);

/* ini_deadline returns when the caller has to call ini_expire; XTIME_NEVER: not at
 * all. */
xtime ini_deadline(const struct ini_session *s);
/* ini_expire handles every deadline up to now. */
void ini_expire(struct ini_session *s, xtime now);

/* ini_is_up returns whether requests may be sent: the leading login has ended, and
 * the session is not about to end. */
bool ini_is_up(const struct ini_session *s);
/* ini_has_moved returns whether the target has reassigned a command since the session was
 * continued (ini_is_waiting). */
bool ini_has_moved(const struct ini_session *s);
/* ini_is_logged_out returns whether the target has answered the Logout of the session: it
 * executes none of its commands any more (RFC 7143 §7.6, §11.14.5). */
bool ini_is_logged_out(const struct ini_session *s);
/* ini_in_flight counts the commands that were sent and not answered. */
unsigned ini_in_flight(const struct ini_session *s);

#endif
