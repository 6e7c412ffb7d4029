/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * internal.h: the target's own structs. A connection (tgt_conn) lives from
 * accept to Connection_Terminate_Notify; a session from admission to the
 * release of its last task, which may be later. Sessions have one connection
 * (MaxConnections=1), so either points to the other.
 */
#ifndef TARGET_INTERNAL_H
#define TARGET_INTERNAL_H

#include "base/serial.h"
#include "iscsi/states.h"
#include "target/target.h"

struct tgt_session;
struct tgt_conn;

/* ---- shared, constant once connections come ---- */

struct tgt_node {
	struct list link; /* tgt.nodes */
	struct tgt_node_config cfg;
	uint16_t rtpi; /* of its target port */
};

struct tgt_portal {
	struct list link; /* tgt.portals */
	char address[TGT_ADDR_STR];
};

struct tgt {
	struct tgt_config cfg;
	struct list nodes, portals;
	struct tgt_worker *workers;
};

struct tgt_worker {
	struct tgt *tgt;
	unsigned index;
	struct list conns;    /* tgt_conn.link */
	struct list sessions; /* tgt_session.link */
	struct list aborts;   /* tgt_abort.link: waiting for tasks */
	unsigned nconns, nlogins;
	unsigned messages; /* operations that wait for other workers */
	uint16_t next_tsih;
	bool draining;
	xtime now; /* of the last expire, drain or accept */
};

/* ---- tasks ---- */

enum tgt_task_state {
	TGT_TASK_FREE,
	TGT_TASK_DATA,	   /* write data are under way */
	TGT_TASK_TURN,	   /* waits for commands before it (CmdSN) */
	TGT_TASK_RUN,	   /* with the device */
	TGT_TASK_PUT,	   /* read data go out, a response will follow */
	TGT_TASK_RESPONSE, /* the response is queued: past aborting */
	TGT_TASK_ABORTING, /* vanishes once nobody touches its memory */
};

struct tgt_task {
	struct dm_task dm;
	struct tgt_session *session; /* constant */
	struct tgt_task *hash_next;
	struct list link; /* session's active or spare list */
	uint32_t cmdsn;
	enum tgt_task_state state;
	bool immediate;
	bool has_turn;	 /* all commands before it were received */
	bool begun;	 /* dev_task_begin was called */
	bool dm_holds;	 /* the datamover has yet to let go: DM_RELEASED */
	bool dev_asked;	 /* dev_task_abort was called */
	bool dev_holds;	 /* the device has yet to let go: released */
	bool told;	 /* TASK ABORTED, once it is aborted */
	bool abort_late; /* a reset waits for the data on the way */
	int data_err;	 /* why its write data are not usable */
	uint8_t refusal; /* SCSI status to end with, device not asked */
	struct dev_task dev;
};

/* What a number of the window that is ahead of ExpCmdSN holds. */
struct tgt_parked {
	struct dm_control ctl;
	uint8_t bhs[ISCSI_BHS_LEN];
	uint8_t data[];
};

struct tgt_slot {
	bool taken;		   /* received, or written off by an abort */
	struct tgt_task *task;	   /* a SCSI Command, or NULL */
	struct tgt_parked *parked; /* another request, or NULL */
};

/* ---- aborts: which tasks one reaches, and waiting until they are gone ---- */

struct tgt_scope {
	struct tgt_node *node;	     /* this node's tasks ... */
	struct tgt_session *session; /* ... of this session; NULL: any */
	bool one_lun;		     /* ... of this LUN only */
	uint64_t lun;
	bool one_task; /* ... with this ITT only */
	uint32_t itt;
	bool aca;    /* ... with the ACA attribute only */
	bool before; /* ... issued before this CmdSN only, by wait_session */
	uint32_t cmdsn;
	const struct dev_task *except; /* ... but for this one */
	/* The tasks of others than the issuer (compared only) are told TASK
	 * ABORTED where their unit has TAS = 1 (SPC-4 §7.5.8). */
	bool told;
	const void *issuer;
	/* The session whose data on the way may come in first (§4.2.3.3 a);
	 * compared only. */
	const void *wait_session;
};

struct tgt_abort {
	struct list link; /* worker's aborts */
	struct tgt_worker *worker;
	struct tgt_scope scope;
	xtime deadline; /* of wait_data */
	void (*done)(struct tgt_abort *a);
};

/* ---- sessions ---- */

struct tgt_session {
	struct tgt_worker *worker;
	struct tgt_conn *conn; /* NULL once the connection is gone */
	struct tgt_node *node; /* NULL: discovery */
	struct dev_nexus *nexus;
	struct list link; /* worker's sessions */
	enum iscsi_session_state state;
	struct iscsi_login_id id;
	struct iscsi_params params;
	uint16_t tsih;
	/* numbering */
	struct iscsi_target_window window;
	struct tgt_slot *ring; /* by CmdSN & ring_mask */
	uint32_t ring_mask;
	uint32_t ahead;	     /* slots taken */
	size_t parked_bytes; /* of requests in slots */
	/* tasks */
	struct tgt_task *tasks;
	uint32_t ntasks, fresh; /* tasks[fresh..] were never used */
	uint32_t used, immediates;
	bool logged_out; /* by Logout, rather than lost */
	bool stalled;	 /* the window was closed since it was last empty */
	struct list active, spare;
	struct tgt_task **hash;
	unsigned hash_shift;
	/* task management */
	struct list tmfs; /* tgt_tmf.link */
	unsigned ntmfs;
	/* session reinstatement: tgt_reinstate_part.link, told at the end */
	struct list mourners;
	struct tgt_abort closing;   /* waits for the last task */
	struct tgt_abort preempted; /* of PREEMPT AND ABORT */
	bool preempting;
	/* counters */
	uint64_t commands, bytes_read, bytes_written;
};

/* ---- connections ---- */

struct tgt_login; /* login.c */
struct tgt_reinstate;

struct tgt_text {
	uint32_t itt, ttt;
	uint8_t *in; /* request text so far, over C-bit PDUs */
	size_t in_len;
	char *out; /* response text, sent up to out_sent */
	size_t out_len, out_sent;
	bool busy;
};

struct tgt_conn {
	struct tgt_worker *worker;
	struct dm_conn *dm;
	struct tgt_session *session; /* NULL until admitted */
	struct list link;	     /* worker's conns */
	struct tgt_conn_info info;
	enum iscsi_conn_state state;
	struct iscsi_numbers numbers;
	bool closing; /* connection_terminate was called */
	uint16_t cid;
	/* login */
	struct tgt_login *login; /* NULL once it is over */
	struct tgt_reinstate *reinstate;
	/* time */
	xtime deadline;
	bool heard;	   /* a PDU came since the last look */
	unsigned silences; /* idle times without one */
	bool pinging;	   /* a NOP-In waits for its NOP-Out */
	uint32_t ping_ttt;
	uint32_t next_ttt;
	struct tgt_text text;
	/* logout */
	struct tgt_abort logout; /* waits for the last task */
	uint32_t logout_itt;
	uint64_t rejects;
};

/* conn_trace prefixes what is said with the peer and the initiator. */
#define conn_trace(c, event, fmt, ...)                                         \
 trace_emit((c)->worker->tgt->cfg.trace, event, "%s %s: " fmt, (c)->info.peer, \
	    tgt_conn_who(c), ##__VA_ARGS__)

/* target.c: NULL when the node has no such unit. */
struct dev_lu *tgt_find_lu(const struct tgt_node *n, uint64_t wire);

/* SAM name of the node's port (RFC 7143 §2.2 "SCSI Port Name"). */
void tgt_port_name(const struct tgt *t, const struct tgt_node *n,
		   char name[256]);

/* conn.c */
extern const struct dm_up_ops tgt_up_ops;
const char *tgt_conn_who(const struct tgt_conn *c);
bool tgt_conn_open(const struct tgt_conn *c);
void tgt_conn_go(struct tgt_conn *c, enum iscsi_conn_state next);
void tgt_conn_fail(struct tgt_conn *c, int err, const char *why);
void tgt_conn_end(struct tgt_conn *c, enum dm_terminate how, int err);
int tgt_conn_send(struct tgt_conn *c, struct dm_control *ctl);
/* Most bytes of data in one PDU to the initiator. */
uint32_t tgt_conn_data_max(const struct tgt_conn *c);
void tgt_conn_expire(struct tgt_conn *c, xtime now);
void tgt_conn_ask_logout(struct tgt_conn *c, xtime now);
void tgt_rearm(struct tgt_worker *w);

/* login.c */
int tgt_login_new(struct tgt_conn *c);
int tgt_login_rx(struct tgt_conn *c, const struct dm_control *ctl);
void tgt_login_finish(struct tgt_conn *c);
void tgt_login_drop(struct tgt_conn *c);

/* session.c */
struct tgt_session *tgt_session_new(struct tgt_conn *c,
				    const struct iscsi_login_id *id,
				    const struct iscsi_params *params,
				    struct tgt_node *node);
int tgt_session_start(struct tgt_session *s, uint32_t cmdsn);
void tgt_session_window(struct tgt_session *s);
struct tgt_task *tgt_task_find(const struct tgt_session *s, uint32_t itt);
struct tgt_task *tgt_task_get(struct tgt_session *s, uint32_t itt,
			      bool immediate);
void tgt_task_put(struct tgt_task *t);
void tgt_task_go(struct tgt_task *t, enum tgt_task_state next);
/* The connection is gone: every task is aborted, then the session freed. */
void tgt_session_close(struct tgt_session *s);

/* reinstate.c: §6.3.5. Calls tgt_login_finish when no older session of the
 * same nexus is left anywhere. */
void tgt_reinstate(struct tgt_conn *c);
void tgt_reinstate_forget(struct tgt_conn *c);
void tgt_reinstate_mourned(struct tgt_session *s);

/* order.c: CmdSN order. deliver is what a request in its turn gets. */
int tgt_order_request(struct tgt_conn *c, const struct dm_control *ctl);
int tgt_order_command(struct tgt_session *s, struct tgt_task *t,
		      enum iscsi_window_verdict v);
/* tgt_order_plug writes cmdsn off: it counts as received (§11.6.1 b).
 * tgt_order_plug_to writes off all that miss before cmdsn. */
void tgt_order_plug(struct tgt_session *s, uint32_t cmdsn);
void tgt_order_plug_to(struct tgt_session *s, uint32_t cmdsn);
void tgt_order_free(struct tgt_session *s);
bool tgt_order_duplicate(const struct tgt_session *s, uint32_t cmdsn);
void tgt_order_forget(struct tgt_session *s, const struct tgt_task *t);

/* command.c */
int tgt_command(struct tgt_conn *c, const struct dm_control *ctl,
		struct dm_task **task);
void tgt_command_turn(struct tgt_task *t);
/* It was aborted: its response all the same, TASK ABORTED. */
void tgt_command_aborted(struct tgt_task *t);
void tgt_command_data(struct tgt_task *t, enum dm_completion what, int err);

/* control.c: everything that is no SCSI Command, in full feature phase. */
int tgt_request(struct tgt_conn *c, const struct dm_control *ctl);
int tgt_control(struct tgt_conn *c, const struct dm_control *ctl);
int tgt_reject(struct tgt_conn *c, enum iscsi_reject_reason reason,
	       const uint8_t bhs[ISCSI_BHS_LEN], const char *why);
int tgt_ping(struct tgt_conn *c);
int tgt_announce_window(struct tgt_conn *c);
int tgt_async(struct tgt_conn *c, const struct iscsi_async *a);

/* text.c */
int tgt_text(struct tgt_conn *c, const struct dm_control *ctl);
void tgt_text_reset(struct tgt_conn *c);

/* abort.c */
/* tgt_abort_start: done is called once, maybe from within, when no task of
 * the scope that was there is left. a stays with the caller. */
void tgt_abort_start(struct tgt_worker *w, struct tgt_abort *a,
		     const struct tgt_scope *scope,
		     void (*done)(struct tgt_abort *a));
/* Another clears commands of this session at scope's unit: with TAS = 0 it
 * learns that by a unit attention, if there are any (SPC-4 §5.5.2). */
void tgt_abort_tell(struct tgt_session *s, const struct tgt_scope *scope);
void tgt_abort_cancel(struct tgt_abort *a);
/* The next step of a task that is ABORTING. */
void tgt_abort_step(struct tgt_task *t);
void tgt_abort_data(struct tgt_task *t);
/* A task came free: whoever waited for it is told. */
void tgt_abort_check(struct tgt_worker *w);
void tgt_abort_expire(struct tgt_worker *w, xtime now);

/* tmf.c */
int tgt_tmf(struct tgt_conn *c, const struct dm_control *ctl);
/* ExpCmdSN went on: functions that waited for commands may start. */
void tgt_tmf_check(struct tgt_session *s);
/* The session goes: no response will be sent. */
void tgt_tmf_forget(struct tgt_session *s);

#endif
