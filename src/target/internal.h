/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * internal.h: the target's own structs. A connection (tgt_conn) lives from
 * accept to Connection_Terminate_Notify; a session lives from admission to the
 * release of its last task, which may be later. A session has a list of its
 * connections, all on its worker; a task has the connection of its allegiance
 * (RFC 7143 §4.2.2.2). Tasks and aborts have a header of their own: task.h.
 *
 * The files, each of which calls those above it only:
 *   name_table.c  a hash table of names
 *   directory.c   builds a directory
 *   access.c      who may see and use what
 *   node.c        target nodes and their ports, logical units
 *   due.c         when the target has to look at each connection
 *   conn.c        state, sending and ending of a connection
 *   stats.c       counters of a worker
 *   window.c      CmdSN window of a session; requests that came early
 *   send.c        PDUs that the target sends on its own behalf; Reject
 *   fence.c       responses that wait for the acknowledgement of others
 *   task.c        tasks: states, tags, slots
 *   response.c    SCSI Response
 *   order.c       delivery of requests in the order of CmdSN
 *   abort.c       aborting of tasks
 *   text.c        Text Requests
 *   settle.c      the end of what only earlier directories have
 *   command.c     SCSI Commands
 *   reassign.c    TASK REASSIGN
 *   remap.c       another LUN map for a session
 *   stall.c       peers that hold memory without progress
 *   clock.c       timeouts of a connection
 *   sessions.c    the sessions of a worker, by TSIH and by initiator port
 *   session.c     begin and end of a session
 *   tmf*.c        task management functions (tmf.h)
 *   apply.c       brings a directory into force
 *   logout_answer.c  Logout Responses
 *   recover.c     lost connections, whose tasks wait for other connections
 *   logout.c      Logout
 *   control.c     all other requests
 *   reinstate.c   session reinstatement
 *   join.c        logins that join a session; the end of its connections
 *   login.c       login phase
 *   notify.c      up-calls of the datamover; accept
 *   target.c      the target as a whole; its workers
 */
#ifndef TARGET_INTERNAL_H
#define TARGET_INTERNAL_H

#include "base/serial.h"
#include "iscsi/states.h"
#include "target/access.h"
#include "target/stats.h"
#include "target/target.h"
#include "target/task.h"

struct tgt_session;
struct tgt_conn;

/* ---- shared by all workers, constant once connections come ---- */

/* A target port that the device knows. */
struct tgt_node_port {
	uint16_t tag; /* of its portal group */
	uint16_t rtpi;
};

/* A target node: what stays the same of a target while directories come and go.
 * It lives as long as struct tgt, since its ports do. */
struct tgt_node {
	struct list link; /* tgt.nodes */
	struct tgt_named named;
	char name[ISCSI_NAME_MAX + 1];
	struct tgt_node_port *ports; /* worker 0 only */
	unsigned nports;
};

struct tgt {
	struct tgt_config cfg;
	struct tgt_worker *workers;
	/* worker 0 only */
	struct list nodes;
	struct tgt_names node_names;
	struct tgt_directory *directory; /* in force, or coming into force */
	bool applying;
	uint64_t generation; /* of the directory */
};

/* stats.c */
struct tgt_stats {
	struct tgt_unit_stats **units; /* by number; NULL: no command yet */
	unsigned nunits;
	struct list ended; /* tgt_ended.link */
	struct tgt_worker_stats total;
	/* commands of this turn whose latency is not known yet: it is that of
	 * the response, which leaves at the end of the turn */
	struct {
		struct tgt_op_stats *op;
		xtime arrived;
	} due[64];
	unsigned ndue;
};

/* A user of what a directory has: a session, or a task management function, which
 * may outlive its session. */
struct tgt_use {
	struct list link;    /* worker's uses */
	uint64_t generation; /* of the directory */
};

/* Waits until no use has an older generation. */
struct tgt_settling {
	struct list link; /* worker's settling */
	uint64_t generation;
	void (*settled)(struct tgt_settling *s);
};

/* sessions.c: the first session of each chain. */
#define TGT_SESSION_CHAINS 1024u

struct tgt_session_chains {
	struct tgt_session *tsih[TGT_SESSION_CHAINS];
	struct tgt_session *port[TGT_SESSION_CHAINS];
};

/* due.c: when the target has to look at a connection, at the latest. */
struct tgt_due {
	xtime at;
	struct tgt_conn *conn;
};

struct tgt_dues {
	struct tgt_due *all; /* one for each connection */
	unsigned n, room;
};

struct tgt_worker {
	/* no line of the cache in common with the next worker */
	_Alignas(64) struct tgt *tgt;
	unsigned index;
	struct list conns;    /* tgt_conn.link */
	struct list lost;     /* tgt_conn.link: see recover.c */
	struct list sessions; /* tgt_session.link */
	struct tgt_session_chains chains;
	struct list aborts;   /* tgt_abort.link: aborts in progress */
	struct tgt_dues dues; /* of conns */
	unsigned messages;    /* operations that wait for other workers */
	uint16_t next_tsih;
	bool draining;
	const struct tgt_directory *directory; /* in force on this worker */
	struct tgt_settings settings;	       /* those of the directory */
	uint64_t generation;
	struct list uses;     /* tgt_use.link */
	struct list settling; /* tgt_settling.link, the oldest first */
	xtime now;	      /* of the last expire, drain or accept */
	struct tgt_stats stats;
};

/* ---- the window ---- */

/* A request whose CmdSN is ahead of ExpCmdSN, with copies of header and data. */
struct tgt_parked {
	struct tgt_conn *conn; /* on which it came */
	struct dm_control ctl;
	uint8_t bhs[ISCSI_BHS_LEN];
	uint8_t data[];
};

/* One CmdSN of the window. */
struct tgt_slot {
	bool taken; /* received, or counted as received by an abort */
	struct tgt_task *task;	   /* a SCSI Command, or NULL */
	struct tgt_parked *parked; /* another request, or NULL */
};

/* ---- sessions ---- */

enum tgt_remap_step {
	TGT_REMAP_NONE,
	TGT_REMAP_ABORTING, /* tasks at units that the session loses */
	TGT_REMAP_SETTING,  /* dev_nexus_set_map is in progress */
};

/* The LUN map of a session, and its change (remap.c). */
struct tgt_luns {
	struct dev_map *map; /* of the nexus; counted */
	enum tgt_remap_step step;
	struct dev_map *next; /* the new map, counted */
	struct tgt_abort abort;
	void (*done)(struct tgt_session *s);
	void (*then)(struct tgt_session *s); /* in place of done; or NULL */
};

/* What a session calls of files above it: when a request that came early is
 * delivered (order.c), and at its end. */
struct tgt_session_ops {
	/* a request other than a SCSI Command */
	int (*request)(struct tgt_conn *c, const struct dm_control *ctl);
	/* a SCSI Command: all commands before it were received */
	void (*command)(struct tgt_task *t);
	/* ExpCmdSN advanced while task management functions wait */
	void (*advanced)(struct tgt_session *s);
	/* it is off its worker's list */
	void (*ended)(struct tgt_session *s);
};

/* window.c: one slot for each CmdSN of the window. */
struct tgt_ring {
	struct tgt_slot *slots; /* by CmdSN & mask */
	uint32_t mask;
	uint32_t ahead;	     /* slots taken */
	size_t parked_bytes; /* of requests in slots */
};

/* A Logout in progress. */
struct tgt_logout {
	struct tgt_abort abort; /* waits for the last task */
	bool begun;
	/* the connection on which it came, and the ITT; NULL: it has ended, or
	 * the response is sent */
	struct tgt_conn *by;
	uint32_t itt;
};

/* The connections of a session. */
struct tgt_conns {
	struct list list;  /* tgt_conn.session_link, the oldest first */
	struct list joins; /* tgt_join.link: logins that wait to join */
	struct list lost;  /* tgt_conn.session_link: see recover.c */
	bool rdma;	   /* all are in RDMA mode, or none is */
	bool dropped;	   /* tgt_session_drop: none is waited for */
};

enum tgt_fence_step {
	TGT_FENCE_NONE,
	TGT_FENCE_BEFORE, /* waits until all before it is acknowledged */
	TGT_FENCE_AFTER,  /* it is sent, and waits for its acknowledgement */
};

/* The Response Fence of a session; fence.c's. */
struct tgt_fences {
	/* TaskReporting is above RFC3720, and there may be several connections */
	bool on;
	enum tgt_fence_step step;
	struct list held; /* tgt_held.link, in order of handing off */
	/* the fenced response in progress; NULL in TGT_FENCE_AFTER: its task has
	 * ended */
	struct tgt_held *fenced;
	const struct dev_lu *lu; /* its unit, compared only; NULL: all units */
};

/* What the fence in progress waits for on one connection. */
struct tgt_fence_wait {
	bool waits;
	uint32_t statsn; /* ExpStatSN at least */
	uint32_t first;	 /* of the full feature phase */
};

/* The target port of a session. */
struct tgt_session_port {
	uint16_t tag; /* of its portal group */
	uint16_t rtpi;
};

struct tgt_session {
	struct tgt_worker *worker;
	struct {
		struct tgt_session *same_tsih, *same_port; /* the next ones */
		unsigned nth_port;
	} chains; /* sessions.c */
	struct tgt_conns conns;
	struct tgt_node *node; /* NULL: discovery */
	struct dev_nexus *nexus;
	struct list link; /* worker's sessions */
	enum iscsi_session_state state;
	struct iscsi_login_id id;
	struct {
		char account[ISCSI_NAME_MAX + 1]; /* of CHAP; empty: none */
		const char *algorithm;		  /* the same */
		xtime at;
	} login;		    /* the leading one */
	struct iscsi_params params; /* those of the leading login */
	uint16_t tsih;
	struct tgt_session_port port;
	struct tgt_luns luns;
	xtime data_time;    /* see tgt_config */
	struct tgt_use use; /* begins when the login is over */
	/* numbering */
	struct iscsi_target_window window;
	const struct tgt_session_ops *ops;
	/* the window before the request that is being delivered took its CmdSN;
	 * NULL: none is being delivered */
	const struct iscsi_target_window *undo;
	bool rejected; /* the request being delivered was rejected */
	struct tgt_ring ring;
	/* tasks */
	struct tgt_tasks tasks;
	struct tgt_logout logout; /* of the session, rather than its loss */
	bool stalled; /* the window closed since it was last empty */
	struct tgt_fences fences;
	/* task management */
	struct list tmfs; /* tgt_tmf.link */
	unsigned ntmfs;
	/* tgt_reinstate_part.link: logins that wait for this session's end */
	struct list waiters;
	struct tgt_abort closing;   /* waits for the last task */
	struct tgt_abort preempted; /* of PREEMPT AND ABORT */
	bool preempting;
};

/* ---- connections ---- */

/* The session; or NULL, with the status to answer. */
typedef void tgt_joined(struct tgt_conn *c, struct tgt_session *s,
			uint16_t status);

/* A login that waits for the end of the connection that it replaces. */
struct tgt_join {
	struct list link; /* session's conns.joins */
	struct tgt_conn *conn;
	struct tgt_session *session;
	uint16_t cid;
	bool waits; /* for the tasks, by abort; before: for the connection */
	struct tgt_abort abort;
	tgt_joined *done;
};

struct tgt_login; /* login.c */
struct tgt_reinstate;

/* An object that stall.c waits for, and what had moved when the wait began. */
struct tgt_watch {
	const void *what; /* compared only; NULL: nothing */
	uint32_t cmdsn;
	uint64_t bytes;
	xtime since;
};

struct tgt_stall {
	xtime at; /* of the next check */
	struct tgt_watch in, out, gap;
	xtime turn_since;  /* it has the turn while others wait; or 0 */
	uint64_t commands; /* of the connection, at the last check */
	bool rests;	   /* it gave its memory back (tgt_rest) */
};

struct tgt_text {
	uint32_t itt, ttt;
	uint8_t *in; /* request text so far, over C-bit PDUs */
	size_t in_len;
	char *out; /* response text, sent up to out_sent */
	size_t out_len, out_sent;
	bool busy;
};

/*
 * A SCSI Command whose immediate data have a data digest: if the digest is wrong
 * the target discards the PDU (§7.8), and its CmdSN counts as not received
 * (§7.3). So the command takes its CmdSN only once its immediate data are in.
 */
struct tgt_unverified {
	bool pending;
	bool immediate;
	uint32_t itt, cmdsn;
};

/* What becomes of the session when a connection ends. */
struct tgt_end {
	/* logged out or reinstated: the session goes on without it */
	bool parted;
	/* ... for recovery (§11.14): its tasks wait for other connections */
	bool recovers;
	bool logged_out; /* that is complete: its tasks may be reassigned */
	/* recover.c: it is not waited for any more */
	bool final;
	bool leaving; /* the initiator has to be asked to log out */
};

struct tgt_conn {
	struct tgt_worker *worker;
	struct dm_conn *dm;	     /* NULL: it is lost (recover.c) */
	struct tgt_session *session; /* NULL until admitted, or joined */
	struct list session_link;    /* of its connections */
	struct list link;	     /* worker's conns */
	/* those of the session, with its own where each connection has its own
	 * (§6.3.3) */
	struct iscsi_params params;
	struct tgt_conn_info info;
	enum iscsi_conn_state state;
	struct iscsi_numbers numbers;
	bool closing; /* connection_terminate was called */
	struct tgt_end end;
	struct tgt_fence_wait fence; /* fence.c */
	uint16_t cid;
	/* login */
	struct tgt_login *login; /* NULL once it is over */
	/* the names of the login, borrowed from it; NULL once it is over */
	const struct iscsi_login_id *login_id;
	struct tgt_reinstate *reinstate;
	struct tgt_join *join; /* the login waits to join; or NULL */
	/* time */
	xtime accepted, deadline;
	unsigned due; /* its place in the worker's dues, from 1; 0: none */
	bool heard;   /* a PDU came since the last check */
	struct {
		bool pending; /* a NOP-In waits for its NOP-Out */
		uint32_t ttt; /* of the last one */
		uint8_t sent; /* for the same answer */
	} ping;
	uint32_t next_ttt;
	struct tgt_stall stall; /* stall.c */
	/* The task whose unsolicited data wait for memory; the datamover reads
	 * nothing from the connection meanwhile. NULL: none. */
	struct tgt_task *held;
	struct tgt_unverified unverified; /* command.c */
	struct tgt_text text;
	struct tgt_logout logout; /* of this connection only */
	struct tgt_counters count;
	uint64_t rejects;
};

/* tgt_conn_about returns the names of peer, initiator and target, borrowed from
 * c, for a log event. */
struct trace_about tgt_conn_about(const struct tgt_conn *c);

/* conn_trace prefixes a message with the names of peer and initiator. */
#define conn_trace(c, event, fmt, ...)                                         \
 do {                                                                          \
  const struct trace_about about_ = tgt_conn_about(c);                         \
  trace_emit_about((c)->worker->tgt->cfg.trace, event, &about_, "%s %s: " fmt, \
		   (c)->info.peer, tgt_conn_who(c), ##__VA_ARGS__);            \
 } while (0)

/* tgt_rearm: a deadline of the worker may have come closer. */
static inline void tgt_rearm(struct tgt_worker *w)
{
	w->tgt->cfg.rearm(w->tgt->cfg.arg, w->index);
}

/* ---- due.c ---- */

/* tgt_due_add: tgt_worker_expire looks at c from now on (ERR_NOMEM), until
 * tgt_due_remove. */
int tgt_due_add(struct tgt_conn *c);
void tgt_due_remove(struct tgt_conn *c);
/* tgt_due_set: the deadlines of c have changed; tgt_due_changed: maybe to earlier ones,
 * of which the driver must know. */
void tgt_due_set(struct tgt_conn *c);
void tgt_due_changed(struct tgt_conn *c);
/* tgt_due_next returns when the first connection is due. */
xtime tgt_due_next(const struct tgt_worker *w);

/* ---- node.c ---- */

/* tgt_nodes_resolve sets the node and the ports of each target of d. ERR_LIMIT:
 * too many ports; ERR_NOMEM. On worker 0. */
int tgt_nodes_resolve(struct tgt *t, struct tgt_directory *d);
/* tgt_nodes_free frees all nodes. */
void tgt_nodes_free(struct tgt *t);
/* tgt_port_name makes the SAM name of a target port (RFC 7143 §2.2 "SCSI Port
 * Name"). */
void tgt_port_name(const struct tgt_node *n, uint16_t tag, char name[256]);

/* ---- sessions.c ---- */

/* tgt_sessions_add adds s, which has its TSIH and id, to the sessions of w;
 * tgt_sessions_remove removes it. */
void tgt_sessions_add(struct tgt_worker *w, struct tgt_session *s);
void tgt_sessions_remove(struct tgt_worker *w, struct tgt_session *s);
/* tgt_sessions_find returns the session with this TSIH, or NULL. */
struct tgt_session *tgt_sessions_find(struct tgt_worker *w, uint16_t tsih);
/* tgt_sessions_of_port returns the first session of a chain (chains.same_port) that
 * has every session of this initiator port, and others; or NULL. */
struct tgt_session *tgt_sessions_of_port(const struct tgt_worker *w,
					 const struct iscsi_login_id *id);

/* ---- conn.c ---- */

/* tgt_conn_visitor returns what access.c decides by. id is borrowed. */
struct tgt_visitor tgt_conn_visitor(const struct tgt_conn *c,
				    const struct iscsi_login_id *id);
/* tgt_conn_who names the initiator in log messages. */
const char *tgt_conn_who(const struct tgt_conn *c);
/* tgt_conn_open: PDUs can still be sent. c may be NULL. */
static inline bool tgt_conn_open(const struct tgt_conn *c)
{
	return c && !c->closing && c->dm->state < DM_TERMINATING;
}
/* tgt_conn_go changes the state by a transition that RFC 7143 §8.1 allows. */
void tgt_conn_go(struct tgt_conn *c, enum iscsi_conn_state next);
/* tgt_conn_fail logs why and drops the connection, unless it is ending. */
void tgt_conn_fail(struct tgt_conn *c, int err, const char *why);
/* tgt_conn_end ends the connection; Connection_Terminate_Notify follows later,
 * never from within. */
void tgt_conn_end(struct tgt_conn *c, enum dm_terminate how, int err);
/* tgt_conn_send sends a control PDU that takes a StatSN. A failure drops the
 * connection; returns 0 always. */
int tgt_conn_send(struct tgt_conn *c, struct dm_control *ctl);
/* tgt_conn_data_max: the most bytes of data in one PDU to the initiator. */
uint32_t tgt_conn_data_max(const struct tgt_conn *c);

/* ---- stats.c ---- */

/* tgt_stats_begin notes when the command of t arrived. */
void tgt_stats_begin(struct tgt_task *t);
/* tgt_stats_end counts a command whose SCSI Response is ready. */
void tgt_stats_end(struct tgt_task *t, uint8_t status);
/* tgt_stats_conn_ended adds the counters of the session of c to those of the
 * sessions that have ended. */
void tgt_stats_conn_ended(const struct tgt_conn *c, int err);
/* tgt_stats_refused counts a login that is refused with this status. */
void tgt_stats_refused(struct tgt_worker *w, uint16_t status);
/* tgt_stats_init prepares the counters of a worker; tgt_stats_fini frees
 * them. */
void tgt_stats_init(struct tgt_stats *s);
void tgt_stats_fini(struct tgt_stats *s);

/* ---- task.c; task.h has the rest ---- */

/* tgt_task_chain returns the head of the chain of this ITT. */
static inline struct tgt_task **tgt_task_chain(const struct tgt_session *s,
					       uint32_t itt)
{
	/* Fibonacci hashing: tags that count up spread evenly */
	return &s->tasks.hash[(itt * 2654435769u) >> s->tasks.hash_shift];
}

/* tgt_task_find returns the task with that ITT, in whatever state, or NULL. */
static inline struct tgt_task *tgt_task_find(const struct tgt_session *s,
					     uint32_t itt)
{
	struct tgt_task *t = *tgt_task_chain(s, itt);

	while (t && t->dm.itt != itt)
		t = t->hash_next;
	return t;
}

/* ---- window.c ---- */

/* tgt_session_window computes MaxCmdSN anew and publishes both numbers to each
 * connection; after a CmdSN was taken and after a task came free. */
void tgt_session_window(struct tgt_session *s);
/* tgt_window_is_open returns whether ExpCmdSN and MaxCmdSN admit as many commands as the
 * window has: then the end of a task does not change MaxCmdSN. */
static inline bool tgt_window_is_open(const struct tgt_session *s)
{
	return s->window.maxcmdsn - s->window.expcmdsn + 1 == s->window.depth;
}
/* tgt_window_take: ExpCmdSN advances by one. */
void tgt_window_take(struct tgt_session *s);
/* tgt_window_reject gives back the CmdSN of the request that is being
 * delivered: a rejected request counts as not received (RFC 7143 §7.3). Call it
 * before the Reject is sent. */
void tgt_window_reject(struct tgt_session *s);
/* tgt_window_duplicate: a request with this CmdSN was received already. */
bool tgt_window_duplicate(const struct tgt_session *s, uint32_t cmdsn);
/* tgt_window_hold puts a SCSI Command that came early in its slot. t is NULL if
 * the command was aborted already. */
void tgt_window_hold(struct tgt_session *s, uint32_t cmdsn, struct tgt_task *t);
/* tgt_window_park copies any other request that came early. ERR_LIMIT: too many
 * bytes are parked; ERR_NOMEM. */
int tgt_window_park(struct tgt_conn *c, const struct dm_control *ctl);
/* tgt_window_unpark frees the copy. */
void tgt_window_unpark(struct tgt_session *s, struct tgt_parked *p);
/* tgt_window_skip counts cmdsn as received; its request, if one is parked there,
 * is dropped. */
void tgt_window_skip(struct tgt_session *s, uint32_t cmdsn);
/* tgt_window_next empties the slot of ExpCmdSN into *slot; false: that number
 * has not been received. */
bool tgt_window_next(struct tgt_session *s, struct tgt_slot *slot);
/* tgt_window_forget: the task ends; its CmdSN still counts as received. */
void tgt_window_forget(struct tgt_session *s, const struct tgt_task *t);
/* tgt_window_forget_conn: the connection ends; requests that came early on it are
 * dropped, and their CmdSN still count as received. */
void tgt_window_forget_conn(struct tgt_session *s, const struct tgt_conn *c);
/* tgt_window_discard_conn: requests that came early on c count as not received
 * (§11.14). The tasks stay. */
void tgt_window_discard_conn(struct tgt_session *s, const struct tgt_conn *c);
/* tgt_window_empty drops everything that came early. */
void tgt_window_empty(struct tgt_session *s);

/* ---- send.c ---- */

/* tgt_reject sends a Reject with the 48 bytes of bhs and logs why. The CmdSN of
 * a request that is being delivered counts as not received. Returns 0. */
int tgt_reject(struct tgt_conn *c, enum iscsi_reject_reason reason,
	       const uint8_t bhs[ISCSI_BHS_LEN], const char *why);
/* tgt_reject_data also gives the next DataSN or R2TSN of the task (§11.17.2). */
int tgt_reject_data(struct tgt_conn *c, enum iscsi_reject_reason reason,
		    const uint8_t bhs[ISCSI_BHS_LEN], const char *why,
		    uint32_t datasn);
/* tgt_ping sends a NOP-In that asks for an answer (conn.ping.pending); if one waits for its
 * answer already, it is sent again. */
int tgt_ping(struct tgt_conn *c);
/* tgt_announce_window sends a NOP-In with the new MaxCmdSN. */
int tgt_announce_window(struct tgt_conn *c);
int tgt_async(struct tgt_conn *c, const struct iscsi_async *a);
/* tgt_async_termination sends Async Message 5: all tasks of c at this LUN are being
 * terminated (§11.9.1). */
int tgt_async_termination(struct tgt_conn *c, uint64_t lun);

/* ---- fence.c ---- */

/* tgt_fence_holds takes over the response h, with h->lu and h->send set, if it has to
 * wait for others or others for it: h->send is called, maybe from within, when it may
 * be sent. False: nothing is to be waited for. */
bool tgt_fence_holds(struct tgt_session *s, struct tgt_held *h, bool fenced);
/* tgt_fence_would_hold: a response of this unit that is not fenced has to wait. */
bool tgt_fence_would_hold(const struct tgt_session *s, const struct dev_lu *lu);
/* tgt_fence_acknowledged sends what does not wait any more: ExpStatSN advanced on a
 * connection, or a connection or a lost one has ended. */
void tgt_fence_acknowledged(struct tgt_session *s);
/* tgt_fence_ask: c has answered a ping. Another one asks if that was not enough. */
void tgt_fence_ask(struct tgt_conn *c);
/* tgt_fence_resent: a response was sent again, on c (reassign.c). */
void tgt_fence_resent(struct tgt_session *s, struct tgt_conn *c);
/* tgt_fence_forget: h is not sent, or its task has ended. Call
 * tgt_fence_acknowledged later. */
void tgt_fence_forget(struct tgt_session *s, struct tgt_held *h);

/* ---- response.c ---- */

/* tgt_response_send queues the SCSI Response of a task, with its sense data. */
void tgt_response_send(struct tgt_task *t);
/* tgt_response_put sends the read data of a task, and its status where there are
 * no sense data; otherwise tgt_response_send follows at DM_PUT. */
void tgt_response_put(struct tgt_task *t);
/* tgt_response_aborted sends TASK ABORTED (SAM-5 §5.3.1) for a task that the
 * datamover has let go of. */
void tgt_response_aborted(struct tgt_task *t);

/* tgt_response_again sends the read data and the status of a task once more, on
 * another connection. */
void tgt_response_again(struct tgt_task *t);

/* ---- order.c ---- */

/* tgt_order_request delivers a request other than a SCSI Command at once, parks
 * it until its turn, or drops a duplicate. Errors drop the connection. */
int tgt_order_request(struct tgt_conn *c, const struct dm_control *ctl);
/* tgt_order_advance delivers what came early and is in its turn now. An error of a
 * request drops the connection on which it came. */
void tgt_order_advance(struct tgt_session *s);
/* tgt_order_skip counts cmdsn as received (§11.6.1 b). */
void tgt_order_skip(struct tgt_session *s, uint32_t cmdsn);
/* tgt_order_skip_to counts every number before cmdsn as received. */
void tgt_order_skip_to(struct tgt_session *s, uint32_t cmdsn);

/* ---- text.c ---- */

int tgt_text(struct tgt_conn *c, const struct dm_control *ctl);
/* tgt_text_reset drops the exchange in progress. */
void tgt_text_reset(struct tgt_conn *c);

/* ---- settle.c ---- */

/* tgt_use_begin: u uses the directory in force on w. tgt_use_renew: u uses the directory
 * that is in force now instead of an earlier one. tgt_use_end: u uses none. */
void tgt_use_begin(struct tgt_worker *w, struct tgt_use *u);
void tgt_use_renew(struct tgt_worker *w, struct tgt_use *u);
void tgt_use_end(struct tgt_worker *w, struct tgt_use *u);
/* tgt_settle calls settled, maybe from within, when nothing on w uses what only
 * earlier directories than that in force have. s stays with the caller. */
void tgt_settle(struct tgt_worker *w, struct tgt_settling *s,
		void (*settled)(struct tgt_settling *s));

/* ---- tmf.c ---- */

int tgt_tmf(struct tgt_conn *c, const struct dm_control *ctl);
/* tgt_tmf_check starts functions that waited for ExpCmdSN to advance, or for the end of
 * a connection. */
void tgt_tmf_check(struct tgt_session *s);
/* tgt_tmf_forget: the session ends; its functions send no response.
 * tgt_tmf_forget_conn: nor do those that came on c. */
void tgt_tmf_forget(struct tgt_session *s);
void tgt_tmf_forget_conn(struct tgt_session *s, const struct tgt_conn *c);

/* ---- command.c ---- */

int tgt_command(struct tgt_conn *c, const struct dm_control *ctl,
		struct dm_task **task);
/* tgt_command_turn: all commands before this one were received. */
void tgt_command_turn(struct tgt_task *t);
/* tgt_command_verified: the immediate data of the unverified command, if there is
 * one, are in. */
void tgt_command_verified(struct tgt_conn *c);
/* tgt_command_discard: the data digest of the unverified command is wrong. */
void tgt_command_discard(struct tgt_conn *c);
/* tgt_command_data handles a Data_Completion_Notify of the task. */
void tgt_command_data(struct tgt_task *t, enum dm_completion what, int err);

/* tgt_command_go_on: t, whose write data are not all there, has another
 * connection. */
void tgt_command_go_on(struct tgt_task *t);

/* ---- reassign.c ---- */

/* tgt_reassign_check returns the response to a TASK REASSIGN for the task with this
 * tag (§7.2.2). ISCSI_TMF_COMPLETE: *task is the task; tgt_reassign has to follow the
 * response. */
uint8_t tgt_reassign_check(const struct tgt_session *s, uint32_t itt,
			   struct tgt_task **task);
/* tgt_reassign gives t to c, and t goes on. */
void tgt_reassign(struct tgt_task *t, struct tgt_conn *c, uint32_t exp_datasn,
		  const struct dm_remote *remote);

/* ---- control.c ---- */

/* tgt_request handles a PDU other than a SCSI Command in full feature phase;
 * tgt_control executes it once its turn has come. */
int tgt_request(struct tgt_conn *c, const struct dm_control *ctl);
int tgt_control(struct tgt_conn *c, const struct dm_control *ctl);

/* ---- logout.c ---- */

int tgt_logout(struct tgt_conn *c, const struct dm_control *ctl);
/* tgt_logout_lost: c, which waits for recovery now, may have been logged out from
 * another connection. */
void tgt_logout_lost(struct tgt_conn *c);
/* tgt_logout_forget: c has ended; no response is sent on it. */
void tgt_logout_forget(struct tgt_conn *c);

/* ---- logout_answer.c ---- */

enum tgt_logout_response { /* §11.15.1 */
	TGT_LOGOUT_CLOSED = 0,
	TGT_LOGOUT_NO_CID = 1,
	TGT_LOGOUT_NO_RECOVERY = 2,
};

int tgt_logout_respond(struct tgt_conn *c, uint32_t itt,
		       enum tgt_logout_response response, uint16_t time2retain);
/* tgt_logout_answer answers on the connection that asked, unless there is none or it has
 * ended. */
void tgt_logout_answer(struct tgt_logout *l, enum tgt_logout_response response,
		       uint16_t time2retain);

/* ---- reinstate.c ---- */

/* tgt_reinstate ends the older sessions of the connection's nexus (§6.3.5) and
 * then calls done, maybe from within; not after tgt_reinstate_forget. */
void tgt_reinstate(struct tgt_conn *c, void (*done)(struct tgt_conn *c));
/* tgt_reinstate_forget: the connection of the new login ends. */
void tgt_reinstate_forget(struct tgt_conn *c);
/* tgt_reinstate_ended: an old session has ended; its waiters go on. */
void tgt_reinstate_ended(struct tgt_session *s);

/* ---- remap.c ---- */

/* The session is about to lose the unit (remap.c). */
static inline bool tgt_session_loses(const struct tgt_session *s,
				     const struct dev_lu *lu)
{
	return s->luns.step && lu && !dev_map_has(s->luns.next, lu);
}

/* tgt_remap_start gives the session a LUN map (NULL: every unit, by its number),
 * and calls done, maybe from within, unless the session ends meanwhile. One call at
 * a time. */
void tgt_remap_start(struct tgt_session *s, struct dev_map *map,
		     void (*done)(struct tgt_session *s));
/* tgt_remap_end: the session ends. False: the device is changing the map, and then
 * is called afterwards (only that of the last call). */
bool tgt_remap_end(struct tgt_session *s, void (*then)(struct tgt_session *s));

/* ---- session.c ---- */

/* tgt_session_new admits a session. NULL: no memory, or no TSIH is free. */
struct tgt_session *tgt_session_new(struct tgt_conn *c,
				    const struct iscsi_login_id *id,
				    const struct iscsi_params *params,
				    struct tgt_node *node,
				    const struct tgt_session_ops *ops);
/* tgt_session_start opens the nexus and the command window. ERR_NOMEM. */
int tgt_session_start(struct tgt_session *s, uint32_t cmdsn);
/* tgt_session_close: the last connection is gone. Every task is aborted; then the
 * session is freed, maybe from within. */
void tgt_session_close(struct tgt_session *s);
/* tgt_session_conn returns a connection on which the session can send PDUs, the
 * oldest of them; NULL: there is none. */
struct tgt_conn *tgt_session_conn(const struct tgt_session *s);
/* tgt_session_drop ends all connections of the session, and of logins that wait to
 * join it; the session ends with the last of them. False: all were ending. */
bool tgt_session_drop(struct tgt_session *s, enum dm_terminate how, int err);
/* tgt_session_add: c belongs to the session from now on. */
void tgt_session_add(struct tgt_session *s, struct tgt_conn *c);
static inline bool tgt_session_is_deserted(const struct tgt_session *s)
{
	return list_empty(&s->conns.list) && list_empty(&s->conns.joins) &&
	       list_empty(&s->conns.lost);
}

/* ---- recover.c ---- */

/* The session can recover a connection, and keeps its tasks for some time. */
static inline bool tgt_session_recovers(const struct tgt_session *s)
{
	return s->params.error_recovery_level == 2 &&
	       s->params.default_time2retain && !s->conns.dropped;
}

/* tgt_recover_wants: c ends now, and its tasks have to wait for another
 * connection. */
bool tgt_recover_wants(const struct tgt_conn *c);
/* tgt_recover_begin: c, which has ended, waits for that. */
void tgt_recover_begin(struct tgt_conn *c);
/* tgt_recover_find returns the lost connection with this CID, the youngest of
 * them; or NULL. */
struct tgt_conn *tgt_recover_find(const struct tgt_session *s, uint16_t cid);
/* tgt_recover_logged_out: the tasks of c, which is lost, may be reassigned from now
 * on; the time for that begins. */
void tgt_recover_logged_out(struct tgt_conn *c);
/* tgt_recover_end: nothing waits for c any more. The next tgt_worker_expire frees it
 * and ends its tasks. */
static inline void tgt_recover_end(struct tgt_conn *c)
{
	c->end.final = true;
	c->deadline = 0;
	tgt_rearm(c->worker);
}

/* tgt_recover_end_all does so for all of the session, tgt_recover_end_worker for all
 * of the worker. */
static inline void tgt_recover_end_all(struct tgt_session *s)
{
	list_for_each(it, &s->conns.lost)
		tgt_recover_end(list_entry(it, struct tgt_conn, session_link));
}

void tgt_recover_end_worker(struct tgt_worker *w);
/* tgt_recover_end_if_deserted ends the session if it has no connection, no login that
 * waits to join, and no lost connection that is waited for. s may be free
 * afterwards. */
void tgt_recover_end_if_deserted(struct tgt_session *s);
xtime tgt_recover_deadline(const struct tgt_worker *w);
void tgt_recover_expire(struct tgt_worker *w, xtime now);

/* ---- join.c ---- */

/* What a login with a TSIH has shown: who it is, and what it may use. */
struct tgt_joiner {
	const struct iscsi_login_id *id;
	const struct tgt_node *node;
	const char *account; /* of CHAP, or "" */
	const struct dev_map *map;
};

/* tgt_join_find returns the session that the login may join; else NULL and a
 * status of enum iscsi_login_status. */
struct tgt_session *tgt_join_find(const struct tgt_conn *c,
				  const struct tgt_joiner *j, uint16_t *status);
/* tgt_join ends the connection of the session that has this CID, if there is one
 * (RFC 7143 §6.3.4), and then calls done, maybe from within; not after
 * tgt_join_forget. */
void tgt_join(struct tgt_conn *c, struct tgt_session *s, uint16_t cid,
	      tgt_joined *done);
/* tgt_join_forget: the connection of the login ends. */
void tgt_join_forget(struct tgt_conn *c);
/* tgt_session_conn_ended: c, one of the session's connections, is gone. Its tasks
 * end, and the whole session ends, too, unless c has parted from it (§7.14 c); or, at
 * ErrorRecoveryLevel 2, all of it waits for another connection: true, and c stays. s
 * may be free afterwards. */
bool tgt_session_conn_ended(struct tgt_session *s, struct tgt_conn *c);

/* ---- stall.c ---- */

/* tgt_stall_start begins the checks of a session; tgt_stall_expire makes one. */
void tgt_stall_start(struct tgt_conn *c);
void tgt_stall_expire(struct tgt_conn *c, xtime now);

/* ---- clock.c ---- */

/* tgt_clock_start: the login is over. */
void tgt_clock_start(struct tgt_conn *c);
void tgt_clock_expire(struct tgt_conn *c, xtime now);
/* tgt_clock_ask_logout asks the initiator to log out and sets a deadline; other
 * connections than those of a full session end at once. */
void tgt_clock_ask_logout(struct tgt_conn *c, xtime now);
/* tgt_clock_leave makes the next tgt_worker_expire do that. */
void tgt_clock_leave(struct tgt_conn *c);

/* ---- apply.c ---- */

/* tgt_worker_take puts d in force on the worker. */
void tgt_worker_take(struct tgt_worker *w, const struct tgt_directory *d);
/* tgt_apply_review compares a session with the directory in force: it goes on, or
 * is asked to log out. */
void tgt_apply_review(struct tgt_session *s);

/* ---- login.c ---- */

/* tgt_login_new prepares the login phase. ERR_NOMEM. */
int tgt_login_new(struct tgt_conn *c);
/* tgt_login_rx handles a PDU of the login phase. Returns 0. */
int tgt_login_rx(struct tgt_conn *c, const struct dm_control *ctl);
/* tgt_login_expire sends a response that was held back, or gives it its deadline. False:
 * none is held back. */
bool tgt_login_expire(struct tgt_conn *c, xtime now);
/* tgt_login_free: the login phase is over, or the connection is. */
void tgt_login_free(struct tgt_conn *c);

#endif
