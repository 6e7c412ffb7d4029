/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * internal.h: what the files of libiser share. One thread at a time uses a
 * context and all that belongs to it (iser.h). The files, each of which calls
 * those above it (none calls lib/unit, lib/path or lib/rdma):
 *   error.c       error codes and messages
 *   loop.c        the event loop
 *   state.c       the states of a session; queries
 *   secret.c      secrets of CHAP in files
 *   url.c         URLs
 *   wire.c        the eight bytes of a LUN
 *   identity.c    who a unit is (identity.h)
 *   guard.c       whether a LUN leads to the right unit (guard.h)
 *   redirect.c    login redirections
 *   verbs.c       the module for RDMA devices
 *   login.c       what a login offers and why it failed
 *   prep.c        commands of a block device, and the parsers of their answers
 *   unit_type.c   the device type of a unit
 *   queue.c       commands that wait for a task, and commands that have failed
 *   hold.c        commands that wait until their unit is identified
 *   retry.c       commands that the unit refused for the moment
 *   reconnect.c   commands of a lost connection, and when to log in again
 *   io.c          commands of the caller
 *   block.c       the blocking calls of a block device
 *   ask.c         asks a unit who it is (ask.h)
 *   verify.c      does so when a session of one path is in doubt
 *   request.c     NOP-Out and task management
 *   connect.c     connections of a session: from the first byte to the last
 *   conns.c       the caller adds and removes connections
 *   abort.c       ends commands of the caller
 *   session.c     connecting and disconnecting one session
 *   discover.c    SendTargets
 *   context.c     making and freeing a context
 */
#ifndef LIB_INTERNAL_H
#define LIB_INTERNAL_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/list.h"
#include "initiator/initiator.h"
#include "io/io.h"
#include "iscsi/chap.h"
#include "iser/iser.h"
#include "lib/guard.h"
#include "net/conn.h"

#define DEFAULT_DEPTH		128
#define DEFAULT_TIMEOUT		0
#define DEFAULT_RETRY		30
#define CONNECT_TIME		(15 * XTIME_S)
#define DEFAULT_PORT		3260
#define LIB_CONNECTIONS_MAX	16
#define REPLACEMENT_TIME	120 /* seconds, as in open-iscsi */
#define TIME2WAIT_LEAST		5   /* see lib_time2wait */
#define POLLING_TIME		5
#define LIB_CHECK_TIME		30 /* seconds for one check of a unit or a path */
#define LIB_STATUS_TASK_ABORTED 0x40
/* how often a command is issued again at once after a unit attention */
#define LIB_ATTENTIONS_MAX 8
/* The largest transfer over iSER, that of the Linux initiator. tgt drops the
 * connection of an initiator that asks for more, and its Block Limits page has no
 * limit. */
#define LIB_ISER_TRANSFER (512u << 10)

struct iser_context {
	struct io_loop *loop;
	char initiator[ISCSI_NAME_MAX + 1];
	char message[512];    /* of lib_fail */
	struct list sessions; /* iser_session.link */
	struct list rdma;     /* iser_rdma.link */
	struct list rdma_listeners;
	/* frees both; set with the first of them */
	void (*free_rdma)(struct iser_context *ctx);
	struct net_verbs *verbs; /* NULL until lib_verbs_open */
	uint32_t next_isid;
	struct trace trace;
	void (*log)(void *arg, int level, const char *text);
	void *log_arg;
};

/* The states of a session; lib_session_go changes them. */
enum session_state {
	SESSION_CONNECTING, /* the first connection is being established */
	SESSION_LOGIN,	    /* the first login is in progress */
	SESSION_UP,	    /* logged in */
	SESSION_AWAY,	    /* lost; logs in again while commands wait */
	SESSION_CLOSING,    /* iser_disconnect was called */
	SESSION_DOWN,	    /* ended; err has the reason */
};

/* How a connection of a session begins. */
enum lib_way {
	LIB_ISCSI,  /* iSCSI, without an offer of RDMA */
	LIB_STREAM, /* iSCSI; the login offers RDMAExtensions (RFC 7145 §5.1) */
	LIB_RDMA,   /* RDMA mode from the first byte */
};

/* The device type of the unit that was asked last; unit_type.c's. */
struct lib_type {
	bool is_known;
	uint8_t type; /* byte 0 of INQUIRY data */
	int lun;
};

/* Why a unit refused a command that it may execute later. */
enum lib_refusal {
	LIB_FINAL,     /* not refused: the result is the caller's */
	LIB_ATTENTION, /* a unit attention: issue it again at once */
	LIB_BUSY,
	LIB_FULL,      /* TASK SET FULL */
	LIB_NOT_READY, /* becoming ready */
};

/* A task of the initiator role and the command of the caller that it carries
 * out. Allocated with the session, as many as url.depth. */
struct lib_task {
	struct ini_task task;
	struct iser_io *io;
	struct lib_task *next; /* on one of the lists of the session */
	bool is_aborting;      /* iser_abort was called: it is not repeated */
	bool is_doubtful;      /* hold.c: in progress when a doubt came */
	bool saw_attention; /* reconnect.c: it got the attention of a new session */
	unsigned tries; /* reconnect.c: how often it was issued again after a loss */
	/* retry.c's */
	enum lib_refusal why;
	unsigned attentions, refusals;
	xtime refused_at, due; /* the first time; when it is issued again */
};

/* The commands of a session; queue.c's. */
struct lib_commands {
	struct lib_task *tasks, *free; /* depth, and one for lib_io_ask */
	unsigned depth;
	void (*completed)(struct ini_task *task); /* io.c's */
	struct iser_io *queue, **queue_tail;	  /* wait for a task */
	struct iser_io *failed, **failed_tail;	  /* done is due */
	struct io_defer report_failed;
	bool starting; /* a task ends at once if the session cannot send */
};

/* Commands that wait after a refusal; retry.c's. */
struct lib_retry {
	struct lib_task *first, **tail;
	struct io_timer timer;
};

/* How a lost session logs in again; reconnect.c's. */
struct lib_reconnect {
	unsigned attempts;  /* since a command was answered */
	unsigned count;	    /* successful logins after a loss */
	unsigned time2wait; /* seconds, of the last login */
	/* of the last login: seconds that the target keeps the commands of a lost
	 * session after Time2Wait */
	unsigned time2retain;
	/* a session that waits (ini_is_waiting): when the target has ended it; 0: the
	 * session does not wait */
	xtime until;
	bool is_continuing; /* an attempt to continue it is in progress */
	bool is_refused;    /* the target has no such session */
	bool was_full;	    /* it had too many connections */
	int group;	    /* target portal group tag of the last login */
	bool leaving;	    /* the target asked for a logout */
	bool was_asked;	    /* ... and no login has ended well since then */
	/* it was continued, and no command was answered since then */
	bool lacks_progress;
	bool is_late; /* replacement_timeout is over */
	struct io_timer late;
	int held[LIB_CONNECTIONS_MAX]; /* sockets of lost connections, or -1 */
	struct io_timer timer;	       /* set here, fires in connect.c */
	struct lib_task *redo, **redo_tail; /* issued again after the login */
};

#define MOVES_MAX 8

struct lib_place {
	char host[256];
	uint16_t port;
};

/* Login redirections; redirect.c's. url.host and url.port are the place of the
 * current connection. */
struct lib_redirect {
	struct lib_place home;		      /* where each attempt begins */
	struct lib_place seen[MOVES_MAX + 1]; /* in this attempt */
	unsigned moves;			      /* in this attempt */
	bool temporary;			      /* one of them was */
	bool is_refused;   /* redirections are not followed */
	uint16_t status;   /* of the login that ended: 0101h, 0102h, or 0 */
	char address[280]; /* TargetAddress of that login */
};

/* The login of a connection; connect.c's and login.c's. */
struct lib_login {
	enum lib_way way;
	bool answered;	  /* a target refused it: no other way is tried */
	bool rdma_failed; /* RDMA was negotiated and did not work */
	struct ini_request probe; /* the first NOP-Out in RDMA mode */
	unsigned iser_rules;	  /* DMISER_... */
	char rules[128];	  /* their names */
	struct iscsi_chap_secret chap_out, chap_in;
	/* the last login failed so; lib_login_without_sha256 has no effect later */
	bool refused_sha256, misreads_sha256;
	char algorithms[CHAP_LIST_MAX]; /* of iser_url.auth */
	uint8_t isid[6]; /* the same in each login (RFC 7143 §6.3.5) */
	bool reinstates; /* a lost session had this ISID */
};

/* A connection of a session; connect.c's. */
struct lib_conn {
	struct iser_session *session;
	uint16_t cid;
	struct net_connector *connector; /* NULL: none */
	struct net_conn *net;		 /* NULL: none */
	struct ini_conn *role; /* a further connection before its login */
	bool is_up;	       /* its login has ended well */
};

/* How the further connections of a session are added, one after the other;
 * connect.c's. */
struct lib_join {
	unsigned count; /* connections that were begun, with the leading one */
	bool is_over;	/* the session has its connections */
	struct lib_conn *conn; /* that is being added */
	char host[256]; /* numeric: the peer of the leading connection, because */
	uint16_t port; /* a name may lead to another portal group */
};

/* A connection that the caller adds or removes; conns.c's. */
struct lib_adding {
	void (*done)(void *arg, int err, unsigned cid); /* NULL: none */
	void *arg;
};

struct lib_removing {
	struct ini_request request;
	struct lib_conn *conn;
	void (*done)(void *arg, int err); /* NULL: none */
	void *arg;
};

/* Up-calls of a session that is one path of a set (path/path.h). */
struct lib_member_ops {
	/* the session has ended after it was logged in; err has the reason */
	void (*lost)(void *arg, int err);
	/* a command got this unit attention */
	void (*attention)(void *arg, uint16_t asc);
};

/* What a set of paths gives to the session of one path; ops is NULL in other
 * sessions. */
struct lib_member {
	const struct lib_member_ops *ops;
	void *arg;
	bool was_refused; /* the portal refused the last connection */
};

/* Bit of iser_io.library[LIB_IO_HISTORY] of a command of a set: iser_abort was
 * called while one of the paths had the command. */
#define LIB_IO_HISTORY	2
#define LIB_IO_ABORTING 0x8000u

/* A session that is a set of paths has one; the functions are path/calls.c's. */
struct lib_set {
	const struct lib_set_ops *ops;
};

struct lib_set_ops {
	void (*submit)(struct iser_session *s, struct iser_io *io);
	/* ends a command that waits for a path */
	void (*abort)(struct iser_session *s, struct iser_io *io);
	bool (*is_connected)(const struct iser_session *s);
	/* whether one of the paths may use iSER */
	bool (*may_be_iser)(const struct iser_session *s);
	/* the session of the path that the next command would use, or of any
	 * path that is logged in; NULL: there is none */
	struct iser_session *(*current)(const struct iser_session *s);
	void (*add_counters)(const struct iser_session *s,
			     struct iser_counters *c);
	/* the unit of the set; NULL: no path was checked yet */
	const struct lib_who *(*who)(const struct iser_session *s);
	/* starts task management on the paths that it concerns */
	int (*manage)(struct iser_session *s, enum iser_function function,
		      int lun, void (*done)(void *arg, int err), void *arg);
	/* begins to end all paths; is_ended: none is left; free frees them */
	void (*end)(struct iser_session *s);
	bool (*is_ended)(const struct iser_session *s);
	void (*free)(struct iser_session *s);
};

struct iser_session {
	struct iser_context *ctx;
	struct list link;
	struct iser_url url;
	enum session_state state;
	int err; /* enum iser_error; the reason in SESSION_DOWN */
	/* the connections, by CID; the first is the leading one */
	struct lib_conn conns[LIB_CONNECTIONS_MAX];
	struct lib_join join;
	struct lib_adding adding;
	struct lib_removing removing;
	struct ini_session *ini; /* not without one of them */
	struct io_timer timer;	 /* deadlines of ini */
	struct io_defer rearm;	 /* sets timer at the end of a turn */
	struct io_defer gone;	 /* ini has ended without a connection */
	struct net_conn_stats past_stats; /* of the connections before */
	/* the caller of iser_connect_start, until it was called */
	void (*connected)(void *arg, struct iser_session *s, int err);
	void *connected_arg;
	/* the caller of iser_disconnect_start */
	void (*disconnected)(void *arg);
	void *disconnected_arg;
	bool is_leaving;	/* by iser_disconnect_start */
	struct io_defer ending; /* frees the session after its connection */
	struct lib_login login;
	struct lib_redirect redirect;
	struct lib_reconnect reconnect;
	struct lib_retry retry;
	struct lib_commands commands;
	struct lib_guard guard;
	struct lib_type typed;
	uint8_t *other_luns; /* a bit for each of LIB_LUNS; wire.c's. NULL: none */
	struct lib_member member;
	struct lib_set *set; /* NULL: a session of its own */
};

/* ---- error.c ---- */

/* lib_unused returns whether no reserved member of a caller's struct is set
 * (iser.h: binary interface). */
static inline bool lib_unused(const uint64_t *reserved, size_t n)
{
	uint64_t set = 0;

	for (size_t i = 0; i < n; i++)
		set |= reserved[i];
	return !set;
}
#define LIB_UNUSED(s) lib_unused((s)->reserved, ARRAY_LEN((s)->reserved))

/* lib_url_unused returns whether all reserved members of url are 0. */
bool lib_url_unused(const struct iser_url *url);
/* lib_fail sets iser_message, escaped, and returns err. */
int lib_fail(struct iser_context *ctx, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* lib_has_reason returns whether iser_message has a better reason for err than the command
 * that ended with it. */
static inline bool lib_has_reason(int err)
{
	return err == ISER_E_NO_PATH || err == ISER_E_CHANGED;
}
/* lib_error returns the enum iser_error for an ERR_... or -Exxx. */
int lib_error(int err);
/* lib_is_loss returns whether the ERR_... of a task, not 0, means that its connection is
 * lost. */
bool lib_is_loss(int err);
/* lib_rdma_error does the same for lib/rdma. */
int lib_rdma_error(int err);

/* ---- loop.c ---- */

/* lib_wait runs the loop until *flag is set. Returns an enum iser_error if the
 * loop fails. */
int lib_wait(struct iser_context *ctx, const bool *flag);

/* ---- state.c ---- */

/* lib_session_go changes the state. A change that is not in the table of state.c
 * is a fault of the library. */
void lib_session_go(struct iser_session *s, enum session_state next);
/* lib_session_may_go returns whether the table has this change. */
bool lib_session_may_go(enum session_state from, enum session_state to);
/* lib_session_has_conn returns whether a connection exists, which may have ended or
 * be in its login. */
bool lib_session_has_conn(const struct iser_session *s);
/* lib_session_is_connecting returns whether a connection is being established. */
bool lib_session_is_connecting(const struct iser_session *s);
/* lib_session_add_stats adds the counters of c to sum. */
void lib_session_add_stats(struct net_conn_stats *sum,
			   const struct net_conn *c);

/* ---- wire.c ---- */

#define LIB_LUNS 16384 /* numbers of one level (SAM-5 §4.7.7.3) */

/* lib_usual_form returns a LUN in the form that most targets use (SAM-5 §4.7):
 * flat addressing above 255. */
static inline uint64_t lib_usual_form(int lun)
{
	uint64_t wire = (uint64_t)(unsigned)lun << 48;

	return lun > 255 ? wire | 0x4000000000000000ull : wire;
}
/* lib_wire_lun returns a LUN as REPORT LUNS has returned it, or in the usual form. */
static inline uint64_t lib_wire_lun(const struct iser_session *s, int lun)
{
	uint64_t wire = lib_usual_form(lun);

	if (s->other_luns && (unsigned)lun < LIB_LUNS &&
	    s->other_luns[lun / 8] >> lun % 8 & 1)
		wire ^= 0x4000000000000000ull;
	return wire;
}
/* lib_lun_of returns the number of a LUN; negative: it has another form. */
int lib_lun_of(uint64_t wire);
/* lib_wire_note keeps the forms of the LUNs in an answer of REPORT LUNS of which len bytes
 * came. Returns whether a form has changed. Without memory the forms stay as they are. */
bool lib_wire_note(struct iser_session *s, const uint8_t *answer, size_t len);

/* ---- secret.c ---- */

/* lib_secret_take copies a secret of CHAP, n bytes, to out. lib_secret_read reads it from a
 * file of one line that other users may not read. Both return NULL, or why the text is not a
 * secret of at most size - 1 bytes, and what to do. */
const char *lib_secret_take(char *out, size_t size, const char *text, size_t n);
const char *lib_secret_read(char *out, size_t size, const char *path);

/* ---- url.c ---- */

/* lib_put_zone copies a TargetAddress that the target at host has reported. A link-local
 * address gets the zone of host, since none comes from the target (RFC 4007 §11.2).
 * False: out, of size bytes, is too small. */
bool lib_put_zone(char *out, size_t size, const char *address,
		  const char *host);
/* lib_parse_address reads a TargetAddress (RFC 7143 §13.8). Returns
 * ISER_E_INVALID if text is not one. */
int lib_parse_address(const char *text, char host[256], uint16_t *port);
/* lib_default_url fills in all members with their defaults. */
void lib_default_url(struct iser_url *url);

/* ---- queue.c ---- */

/* lib_io_init makes the tasks of a session; completed is called at the end of
 * each task. Returns 0 or ISER_E_NOMEM. */
int lib_io_init(struct iser_session *s,
		void (*completed)(struct ini_task *task));
/* lib_io_fini ends all commands that wait, calls their done and frees the
 * tasks. */
void lib_io_fini(struct iser_session *s);
/* lib_io_add appends a command to the queue. */
void lib_io_add(struct iser_session *s, struct iser_io *io);
/* lib_io_unqueue takes a command off the queue. Returns false if it is not
 * there. */
bool lib_io_unqueue(struct iser_session *s, struct iser_io *io);
/* lib_io_find returns the task that carries out a command, or NULL. */
struct lib_task *lib_io_find(struct iser_session *s, const struct iser_io *io);
/* lib_io_pump submits queued commands, while tasks are free and the session is
 * up. Inline, because most calls find the queue empty. */
void lib_io_pump_queue(struct iser_session *s);
static inline void lib_io_pump(struct iser_session *s)
{
	if (s->commands.queue)
		lib_io_pump_queue(s);
}
/* lib_io_take_guarded takes the commands of a LUN that lib_guard_covers off the queue, and
 * returns them as a list by iser_io.next. */
struct iser_io *lib_io_take_guarded(struct iser_session *s, int lun);
/* lib_io_ask sends a command of lib_ask, which neither waits for others nor for a
 * task: one at a time. */
void lib_io_ask(struct iser_session *s, struct iser_io *io);
/* lib_io_free_task makes a task free again. */
void lib_io_free_task(struct iser_session *s, struct lib_task *lt);
/* lib_io_fail_later ends a command with err; its done is called from the loop. */
void lib_io_fail_later(struct iser_session *s, struct iser_io *io, int err);
/* lib_io_fail_task does the same for a command whose task the role does not
 * have, and frees the task. */
void lib_io_fail_task(struct iser_session *s, struct lib_task *lt, int err);
/* lib_io_fail_queue ends all queued commands with err. */
void lib_io_fail_queue(struct iser_session *s, int err);
/* lib_io_deadline returns the deadline of a command that is issued now. */
xtime lib_io_deadline(const struct iser_session *s, xtime now);
/* lib_retry_holds returns whether new commands of this unit have to wait because
 * commands that the unit refused wait, too. */
bool lib_retry_holds(const struct iser_session *s, int lun);

/* ---- hold.c ---- */

/* lib_hold_issue issues a task again, or keeps it until its unit is identified. */
void lib_hold_issue(struct iser_session *s, struct lib_task *lt);
/* lib_hold_heard is called with the result of each task that has sense data. After a unit
 * attention of doubt it begins to ask; it returns true if it issues the task again
 * afterwards. */
COLD bool lib_hold_heard(struct iser_session *s, struct lib_task *lt);
/* lib_hold_doubt begins to ask for the unit of a task that the target has dropped, or whose
 * block size seems to be another one. */
COLD void lib_hold_doubt(struct iser_session *s, const struct lib_task *lt);
/* lib_was_dropped returns whether the target has ended a task that it did not carry out, with
 * or without a status (TAS, SAM-5 §5.3.1): another initiator reset the unit, or the LUN
 * has another unit now. */
static inline bool lib_was_dropped(const struct ini_task *t)
{
	return t->err ? t->err == ERR_ABORTED
		      : t->status == LIB_STATUS_TASK_ABORTED;
}
/* lib_hold_takes returns true if it keeps the result of a doubtful task; else the result is the caller's, and may have become
 * ISER_E_CHANGED. */
COLD bool lib_hold_takes(struct iser_session *s, struct lib_task *lt);
/* lib_hold_open: the unit is the right one. lib_hold_refuse: it is not, g->reason says
 * why. lib_hold_fail: that cannot be said now; the commands that wait end as `by`,
 * and the next one asks again. */
void lib_hold_open(struct iser_session *s, struct lib_guarded *g);
void lib_hold_refuse(struct iser_session *s, struct lib_guarded *g);
void lib_hold_fail(struct iser_session *s, struct lib_guarded *g,
		   const struct iser_io *by);
/* lib_hold_lost is called after the last connection: each unit has to be identified in the
 * next nexus. Results that wait count as lost; takes is lib_reconnect_takes. */
void lib_hold_lost(struct iser_session *s,
		   bool (*takes)(struct iser_session *s, struct lib_task *lt));
/* lib_hold_resume asks for the units of the commands that wait, after a login. */
void lib_hold_resume(struct iser_session *s);
/* lib_hold_remove takes a command off the lists. Returns false if it is not there. */
bool lib_hold_remove(struct iser_session *s, const struct lib_task *lt);
/* lib_hold_end ends all commands that wait with err. */
void lib_hold_end(struct iser_session *s, int err);

/* ---- retry.c ---- */

/* lib_retry_refusal returns why the unit refused a task; a function of the
 * result alone. */
enum lib_refusal lib_retry_refusal(const struct ini_task *t);
/* lib_retry_delay returns how long to wait after this refusal; refusals is the
 * number of those before it. */
xtime lib_retry_delay(enum lib_refusal why, unsigned refusals,
		      uint16_t qualifier);
/* lib_retry_init prepares the list and the timer. */
void lib_retry_init(struct iser_session *s);
/* lib_retry_takes returns true if it issues an ended task again, now or later;
 * else the result is the caller's. */
bool lib_retry_takes(struct iser_session *s, struct lib_task *lt);
/* lib_retry_completed issues the first command that waits after TASK SET FULL of
 * this unit: a command of the unit has completed. Inline, because mostly none waits. */
void lib_retry_first(struct iser_session *s, int lun);
static inline void lib_retry_completed(struct iser_session *s, int lun)
{
	if (s->retry.first)
		lib_retry_first(s, lun);
}
/* lib_retry_resume continues after a new login. */
void lib_retry_resume(struct iser_session *s);
/* lib_retry_remove takes a command off the list of those that wait. Returns false if
 * it is not there. */
bool lib_retry_remove(struct iser_session *s, const struct lib_task *lt);
/* lib_retry_fail ends all commands that wait with err. */
void lib_retry_fail(struct iser_session *s, int err);

/* ---- redirect.c ---- */

/* lib_redirect_init sets the place that the URL names. */
void lib_redirect_init(struct iser_session *s);
/* lib_redirect_begin begins an attempt, at the place of the URL or of the last
 * permanent redirection. */
void lib_redirect_begin(struct iser_session *s);
/* lib_redirect_note keeps the status and the address of a failed login. */
void lib_redirect_note(struct iser_session *s,
		       const struct iscsi_login_failure *f);
/* lib_redirect_follow returns true if the last login was redirected, and sets
 * the place in s->url; the caller connects. After a redirection that cannot be
 * followed it returns false with s->err set. */
bool lib_redirect_follow(struct iser_session *s);

/* ---- reconnect.c ---- */

/* lib_reconnect_init prepares the list; fire is called when it is time for the
 * next attempt. */
void lib_reconnect_init(struct iser_session *s,
			void (*fire)(struct io_timer *t));
/* lib_reconnect_fini stops the timer and ends the commands that wait. */
void lib_reconnect_fini(struct iser_session *s);
/* lib_reconnect_may_repeat returns whether a command may be executed twice. */
bool lib_reconnect_may_repeat(uint8_t opcode);
/* lib_reconnect_changes_data returns whether such a command changes data: executed
 * late, it would undo a change that came in between. */
bool lib_reconnect_changes_data(uint8_t opcode);
/* lib_reconnect_takes returns true if it issues an ended task again, now or after
 * the next login; else the result is the caller's. */
bool lib_reconnect_takes(struct iser_session *s, struct lib_task *lt);
/* lib_reconnect_remove takes a command off the list of those that wait for the next
 * login. Returns false if it is not there. */
bool lib_reconnect_remove(struct iser_session *s, const struct lib_task *lt);
/* lib_reconnect_next is called when the connection, or an attempt at one, has
 * ended. Returns true if another attempt follows; false: the session is down and
 * its commands have failed. */
bool lib_reconnect_next(struct iser_session *s);
/* lib_reconnect_begin counts an attempt that begins now. */
void lib_reconnect_begin(struct iser_session *s);
/* lib_reconnect_waits is called when no connection is left. Returns true if an attempt to
 * continue the session (RFC 7143 §6.3.6) follows; false: the role has ended. */
bool lib_reconnect_waits(struct iser_session *s);
/* lib_reconnect_may_continue returns whether the target still has a session that waits. */
bool lib_reconnect_may_continue(const struct iser_session *s);
/* lib_reconnect_continued is called when the attempt to continue has ended: with 0, or
 * with the ERR_... and the failure of the login. */
void lib_reconnect_continued(struct iser_session *s, int err,
			     const struct iscsi_login_failure *f);
/* lib_reconnect_lost is called before net_conn_free, and keeps the socket of a
 * connection that was lost ... */
void lib_reconnect_lost(struct iser_session *s, struct lib_conn *c);
/* ... until lib_reconnect_reset_held resets all of them, before the first byte of the
 * next connection. */
void lib_reconnect_reset_held(struct iser_session *s);
/* lib_reconnect_logged_in brings the session up and issues the commands that
 * wait. */
void lib_reconnect_logged_in(struct iser_session *s);
/* lib_reconnect_async handles an Asynchronous Message (RFC 7143 §11.9). */
void lib_reconnect_async(struct iser_session *s, const struct iscsi_async *a);
/* lib_reconnect_stuck is called a while after a session was continued. It ends the session
 * if no command went on: a new one takes its place. */
void lib_reconnect_stuck(struct iser_session *s);
/* lib_reconnect_leave logs out once no command is in progress, if the target has
 * asked for a logout. */
void lib_reconnect_leave(struct iser_session *s);

/* ---- verbs.c ---- */

/* lib_verbs_open loads the module for RDMA devices. Returns an enum
 * iser_error. */
int lib_verbs_open(struct iser_context *ctx);
/* lib_verbs_resolve looks up one address. Blocks for a name that DNS resolves.
 * Returns an enum iser_error. */
int lib_verbs_resolve(struct iser_context *ctx, const char *host,
		      uint16_t number, struct net_addr *a);

/* ---- login.c ---- */

/* lib_login_init sets the ISID and the way of the first connection. */
void lib_login_init(struct iser_session *s);
/* lib_login_fill fills in what the login of this connection offers; the caller
 * adds the call-backs. */
void lib_login_fill(struct iser_session *s, struct ini_config *cfg,
		    const struct dm_conn *dm);
/* lib_login_fill_conn fills in the configuration of the connection. */
void lib_login_fill_conn(struct iser_session *s, struct net_conn_config *cfg);
/* lib_login_failed keeps what a failed login said and sets iser_message. Returns
 * an enum iser_error. */
int lib_login_failed(struct iser_session *s, int err);
/* lib_login_check_transport returns whether the negotiated transport is the one
 * that the URL asks for; if not, s->err is set. */
bool lib_login_check_transport(struct iser_session *s);
/* lib_login_without_sha256, after a login that failed, returns whether the next one,
 * at once, offers CHAP without SHA-256: tgt takes the number of SHA-256 for SHA-1 and
 * finds the response too long. Once for a session, not with the key auth; a wrong secret has another status
 * (0201h), so no account sees two wrong responses. */
bool lib_login_without_sha256(struct iser_session *s);
/* lib_login_fall_back chooses the next way of transport=auto. Returns false if
 * there is none. */
bool lib_login_fall_back(struct iser_session *s);

/* lib_time2wait returns how long to wait before a login after a loss: Time2Wait of the
 * target (RFC 7143 §13.15), which may be hours where the caller's commands may take
 * seconds only. */
static inline xtime lib_time2wait(const struct iser_url *url, unsigned seconds)
{
	unsigned most = url->timeout ? MAX(url->timeout, TIME2WAIT_LEAST)
				     : REPLACEMENT_TIME;

	return MIN(seconds, most) * XTIME_S;
}

/* lib_login_recovers returns whether another connection follows a lost one. */
static inline bool lib_login_recovers(const struct iser_session *s)
{
	return s->url.reconnect || s->member.ops;
}

/* ---- connect.c ---- */

/* lib_session_connect begins a connection to the place in s->url. Returns an
 * enum iser_error, also in s->err. */
int lib_session_connect(struct iser_session *s);
/* lib_session_cancel_connectors ends the connections that are being established. */
void lib_session_cancel_connectors(struct iser_session *s);
/* lib_session_add begins one more connection of a session that is up. adding.done
 * follows. Returns an enum iser_error, with iser_message. */
int lib_session_add(struct iser_session *s);
/* lib_session_init_conn prepares the timers of a new session. */
void lib_session_init_conn(struct iser_session *s);

/* ---- prep.c ---- */

/* lib_set_capacity checks what a unit reports as its last block and block size,
 * and fills in the members of *c that follow. Returns 0 or ISER_E_PROTOCOL. */
int lib_set_capacity(uint64_t last, uint32_t block_size,
		     struct iser_capacity *c);

/* lib_sense_key returns the sense key of a command that ended with
 * ISER_E_SCSI; -1: there is none. */
int lib_sense_key(const struct iser_io *io);

/* ---- unit_type.c ---- */

/* lib_type_note keeps byte 0 of the INQUIRY data of a unit. */
void lib_type_note(struct iser_session *s, int lun, uint8_t type);
/* lib_type_known returns byte 0 of the INQUIRY data of a unit; -1: not known. */
int lib_type_known(const struct iser_session *s, int lun);
/* lib_type_news forgets the type if a command ended with a unit attention that
 * says that the unit may have changed. */
void lib_type_news(struct iser_session *s, const struct iser_io *io);

/* ---- verify.c ---- */

/* lib_verify_init makes a session identify its units. */
void lib_verify_init(struct iser_session *s);

/* ---- session.c ---- */

/* lib_session_new makes a session that is not connected, for depth commands in
 * progress; NULL: out of memory. */
struct iser_session *lib_session_new(struct iser_context *ctx,
				     const struct iser_url *url,
				     unsigned depth);
/* lib_session_start begins to connect s, as iser_connect_start does. Returns an
 * enum iser_error; after a failure s is down, done is not called, and the caller
 * ends s by iser_disconnect_start or iser_disconnect. */
int lib_session_start(struct iser_session *s,
		      void (*done)(void *arg, struct iser_session *s, int err),
		      void *arg);
/* lib_session_set_ended is called when the last path of a set has ended. */
void lib_session_set_ended(struct iser_session *s);
/* lib_connect_start is iser_connect_start without paths=all. */
struct iser_session *
lib_connect_start(struct iser_context *ctx, const struct iser_url *url,
		  void (*done)(void *arg, struct iser_session *s, int err),
		  void *arg, int *err);
/* lib_may_be_iser returns whether commands of s may move their data by RDMA. */
bool lib_may_be_iser(const struct iser_session *s);

/* lib_cancel_disconnected makes the library not call the done of
 * iser_disconnect_start that has this arg. */
void lib_cancel_disconnected(struct iser_context *ctx, const void *arg);

/* ---- block.c ---- */

/* lib_has_capacity returns whether units of a peripheral device type have
 * blocks. */
bool lib_has_capacity(uint8_t type);
/* lib_fail_no_capacity fails with ISER_E_UNSUPPORTED: units of that type have none. */
int lib_fail_no_capacity(struct iser_session *s, int lun, uint8_t type);
/* lib_fail_capacity fails with ISER_E_PROTOCOL: lib_set_capacity refuses what the unit
 * reports, or its last block is FFFFFFFFh, and READ CAPACITY(16) is not supported. */
int lib_fail_capacity(struct iser_session *s, int lun, uint64_t last,
		      uint32_t block_size);

/* ---- io.c ---- */

/* The direction of the io of a struct iser_bidi. */
#define LIB_BOTH ((enum iser_direction)3)
/* lib_bidi_in returns where the data go that the unit returns, if io is such a one. */
static inline struct bufv lib_bidi_in(const struct iser_io *io)
{
	const struct iser_bidi *b = container_of(io, struct iser_bidi, io);

	return bufv_of(b->in_iov, b->in_niov);
}

/* lib_io_reset clears the result of a command. */
void lib_io_reset(struct iser_io *io);
/* lib_io_is_valid returns whether an initiator can send this command. */
bool lib_io_is_valid(const struct iser_io *io);
/* lib_io_submit is iser_submit for a session with a connection of its own. */
void lib_io_submit(struct iser_session *s, struct iser_io *io);

/* lib_io_completed is called by the role at the end of each task. */
void lib_io_completed(struct ini_task *task);

/* ---- request.c ---- */

/* lib_request_deadline returns the deadline of a request that is sent now. */
xtime lib_request_deadline(const struct iser_session *s);
/* lib_request_ready returns 0 if requests can be sent, else an enum iser_error,
 * with iser_message. */
int lib_request_ready(struct iser_session *s);
/* lib_request_failed returns the enum iser_error for the ERR_... with which a
 * request ended, 0 for 0, and sets iser_message. */
int lib_request_failed(struct iser_session *s, int err, const char *what);

#endif
