/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * datamover.h: the Datamover Interface of RFC 5047 §§5-9 (and RFC 7145 §3)
 * between the iSCSI roles (target, initiator) and the datamovers that transfer
 * their data (iSCSI over TCP, iSER). Names are the standard's. A role does not
 * know which datamover it uses.
 *
 * Departures from RFC 5047; most of them save a call per command:
 *  - Control_Notify of a SCSI Command comes when the header is received. The
 *    role returns the task, whose `out` says where immediate and unsolicited
 *    data go. Data_Completion_Notify(DM_UNSOLICITED) follows when those data
 *    are complete, and also if there are none.
 *  - Put_Data may carry the response, so that the last Data-In can carry the
 *    status, and RDMA Write and Send are posted together.
 *  - Get_Data requests a whole range. The datamover splits it into R2Ts by
 *    MaxBurstLength and MaxOutstandingR2T, or into RDMA Reads.
 *  - Login PDUs pass through Send_Control and Control_Notify too, because a
 *    connection that begins in RDMA mode transfers them as Sends.
 *  - The datamover reads the role's numbers (ExpCmdSN, MaxCmdSN, ExpStatSN)
 *    when it encodes a header, not when it queues one.
 *  - find_task is the look-up by ITT, which the standard does not define.
 *
 * Threads: one worker owns a dm_conn and all that it leads to. Up-calls come
 * from the driver's rx_done, tx_done, expire and closed, or from a primitive.
 * In an up-call a role may call every primitive, but may not free the
 * connection.
 */
#ifndef DATAMOVER_DATAMOVER_H
#define DATAMOVER_DATAMOVER_H

#include <assert.h>
#include <string.h>

#include "base/bufv.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/list.h"
#include "base/trace.h"
#include "iscsi/bhs.h"
#include "iscsi/params.h"
#include "iscsi/window.h"

struct dm_conn;
struct dm_task;

/* Where the initiator's memory of a task is: the STags and Base Offsets of an iSER
 * header (RFC 7145 §9.2). */
struct dm_remote {
	bool wsv, rsv; /* the Write STag is valid, the Read STag is */
	uint32_t write_stag, read_stag;
	uint64_t write_base, read_base;
};

/* A control-type PDU, in both directions; borrowed for the call. */
struct dm_control {
	struct iscsi_pdu pdu;
	/* Control_Notify only: the received header, for a Reject; NULL if the
	 * datamover made the PDU from the status in a Data-In. */
	const uint8_t *bhs;
	const uint8_t *ahs;  /* pdu.ahs_len bytes, or NULL */
	const uint8_t *data; /* pdu.dsl bytes, or NULL (see SCSI Command) */
	/* Send_Control of a TASK REASSIGN by an initiator: the task, whose buffers are
	 * advertised again over RDMA (RFC 7145 §7.3.3); else NULL. */
	struct dm_task *reassigned;
	/* Control_Notify of a Task Management Function Request over RDMA: what it
	 * advertises, for dm_adopt; else NULL. */
	const struct dm_remote *remote;
};

/* dm_control_clear makes an empty PDU. In two steps: gcc clears a struct of more than 96
 * bytes by `rep stos`, which takes longer. */
static inline void dm_control_clear(struct dm_control *ctl)
{
	ctl->pdu = (struct iscsi_pdu){ 0 };
	ctl->bhs = ctl->ahs = ctl->data = NULL;
	ctl->reassigned = NULL;
	ctl->remote = NULL;
}

#define DM_TASK_PRIVATE 416
/* dm_task_init clears so many of these bytes, in so many steps. The rest has any
 * value. */
#define DM_TASK_CLEARED	    240
#define DM_TASK_CLEAR_STEPS 3

/*
 * The datamover's share of a task. The role embeds it in its own task and finds
 * that task by container_of. The datamover uses it from the first primitive or
 * up-call that names it until the role gets it back:
 *   target:    DM_RESPONSE_SENT, or dm_deallocate_task_resources;
 *   initiator: Control_Notify of the task's response, or
 *              dm_deallocate_task_resources;
 *   both:      Connection_Terminate_Notify.
 */
struct dm_task {
	/* set by the role before first use */
	uint32_t itt;
	uint64_t lun;
	uint32_t edtl; /* Expected Data Transfer Length, bytes */
	/* Bidirectional Read Expected Data Transfer Length (RFC 7143 §11.2.2.4);
	 * then edtl is that of the data to write. 0: not bidirectional, or no read
	 * data. */
	uint32_t bidi_edtl;
	/* initiator: the data to write. target: the memory for write data;
	 * bytes outside of it are received and discarded. Borrowed. */
	struct bufv out;
	/* initiator: the memory for read data. target: unused. Borrowed. */
	struct bufv in;
	/* written by the datamover, read by the role */
	/* target: bytes of write data received. initiator: bytes of `out`
	 * sent, each counted once; an iSER initiator does not see the target's
	 * RDMA Reads and counts all bytes but the residual. */
	uint32_t out_done;
	/* initiator: bytes of read data received, each counted once and
	 * without a gap from offset 0; over RDMA all but the residual. */
	uint32_t in_done;
	/* initiator: R2Ts received, without a gap from R2TSN 0; not counted over
	 * RDMA. */
	uint32_t r2ts;
	/* initiator: the Data-Ins before this DataSN are acknowledged (DataACK,
	 * RFC 7143 §11.16.2). */
	uint32_t acked;
	/* over RDMA: bytes of immediate data of the command, which no RDMA Read asks
	 * for again after a TASK REASSIGN (RFC 7145 §9.2). The initiator keeps the
	 * number when the task moves. */
	uint32_t immediate;
	/* Set by the target in Control_Notify of a SCSI Command: no memory for
	 * the unsolicited data yet. The datamover receives nothing more until
	 * dm_resume. Only if dm_conn.may_hold. */
	bool held;
	/* Set by the target in Control_Notify of a SCSI Command: it can use `peek`. */
	bool may_peek;
	/*
	 * Target, if may_peek: NULL, or the write data, out.len bytes, which came
	 * complete with the command and are not in `out`. Set with DM_UNSOLICITED
	 * and valid until the role returns from it; the role copies them to `out`
	 * if it needs them longer.
	 */
	const uint8_t *peek;
	/* Set by the initiator after dm_task_init: the task began on another
	 * connection, and TASK REASSIGN continues it on this one (RFC 7143
	 * §7.2.2). Its first R2T may have any number and offset; its first
	 * Data-In an offset of at most in_done. Those between `acked` and the
	 * first one that comes are lost. */
	bool moved;
	/* private to the datamover */
	_Alignas(16) unsigned char priv[DM_TASK_PRIVATE];
};

/* dm_task_init clears the datamover's share; call it before each use. In steps for the
 * reason of dm_control_clear. */
static inline void dm_task_init(struct dm_task *t)
{
	t->out_done = t->in_done = t->r2ts = t->acked = t->immediate = 0;
	t->held = t->may_peek = t->moved = false;
	t->peek = NULL;
	for (unsigned i = 0; i < DM_TASK_CLEAR_STEPS; i++)
		memset(t->priv + i * (DM_TASK_CLEARED / DM_TASK_CLEAR_STEPS), 0,
		       DM_TASK_CLEARED / DM_TASK_CLEAR_STEPS);
}

/* What Data_Completion_Notify reports. */
enum dm_completion {
	/* Target: all unsolicited data of a write are received, or there were
	 * none. Comes exactly once per SCSI Command with the W bit, and the
	 * role does not answer the command before. err: 0, ERR_DATA_DIGEST,
	 * ERR_PROTOCOL (data that were not negotiated), ERR_SEQUENCE (their
	 * order or offset). Get_Data fetches the data that the initiator did
	 * not send unsolicited (RFC 7143 §4.2.5.2). */
	DM_UNSOLICITED,
	/* Target: the range of Get_Data is received. err as above. */
	DM_GET,
	/* Target: the data of a Put_Data without response are sent. */
	DM_PUT,
	/* Target: the task's response is sent, and acknowledged if
	 * dm_conn.retains; the role owns task and buffers again. */
	DM_RESPONSE_SENT,
	/* Both roles: dm_deallocate_task_resources returned ERR_AGAIN, and the
	 * task is released now. */
	DM_RELEASED,
};

enum dm_terminate {
	DM_TERMINATE_AFTER_SENT, /* queued PDUs are sent first */
	/* target: so is the Logout Response, and then the initiator may close the
	 * connection first. Connection_Terminate_Notify does not wait for that. */
	DM_TERMINATE_LOGGED_OUT,
	DM_TERMINATE_NOW,
};

/* The up-calls; target and initiator implement all of them. */
struct dm_up_ops {
	/*
	 * Control_Notify (RFC 5047 §9.1): a control-type PDU was received. All
	 * of *ctl is borrowed for the call.
	 * Target, SCSI Command: ctl->data is NULL even if pdu.dsl is not 0. The
	 * role stores its task, with `out` set, in *task; NULL: the datamover
	 * discards all data of the command.
	 * Initiator, SCSI Response: *task is the task that it ends, or NULL for
	 * the status of an unknown task, which has a StatSN all the same.
	 * *task is NULL for every other PDU.
	 * Returns 0, or an error for which the datamover drops the connection.
	 */
	int (*control_notify)(struct dm_conn *c, const struct dm_control *ctl,
			      struct dm_task **task);
	/* Data_Completion_Notify (§9.2). */
	void (*data_completion_notify)(struct dm_conn *c, struct dm_task *t,
				       enum dm_completion what, int err);
	/* Data_ACK_Notify (§9.3): the initiator acknowledged the data up to
	 * datasn. */
	void (*data_ack_notify)(struct dm_conn *c, struct dm_task *t,
				uint32_t datasn);
	/* Target: read data of t are to be sent again. The role keeps them unchanged
	 * from now on; false: they have changed since. NULL: they never change. Not
	 * in RFC 5047. */
	bool (*data_again)(struct dm_conn *c, struct dm_task *t);
	/*
	 * The datamover dropped a PDU and keeps the connection: ERR_DATA_DIGEST,
	 * ERR_OPCODE, ERR_FORMAT, ERR_PROTOCOL; ERR_NOT_FOUND: a Data-Out of no
	 * task; ERR_RANGE: a Data-Out with a wrong offset. bhs: the header, for
	 * the Reject that a target sends (RFC 7143 §11.17). pdu may be partially
	 * filled.
	 */
	void (*error_notify)(struct dm_conn *c, const struct iscsi_pdu *pdu,
			     const uint8_t bhs[ISCSI_BHS_LEN], int err);
	/*
	 * Connection_Terminate_Notify (§9.4): the connection has ended; err is
	 * the reason, 0: the peer closed it in order. The datamover uses no task
	 * and no buffer any more. This is the last up-call.
	 */
	void (*connection_terminate_notify)(struct dm_conn *c, int err);
	/* The task in progress with this ITT, or NULL. */
	struct dm_task *(*find_task)(struct dm_conn *c, uint32_t itt);
};

/* The resources that a role needs: Allocate_Connection_Resources (§8.4). */
struct dm_resources {
	uint32_t max_tasks; /* tasks that may be in progress at once */
};

/* Bytes transferred so far; a role compares two readings to detect a peer that
 * makes no progress. */
struct dm_progress {
	uint64_t in;  /* target: bytes of write data received */
	uint64_t out; /* bytes of all kinds that the transport took */
};

/* The primitives; datamover/tcp and datamover/iser implement all of them. Roles
 * call them by the dm_* functions below only. */
struct dm_ops {
	int (*send_control)(struct dm_conn *c, struct dm_task *t,
			    const struct dm_control *ctl);
	int (*put_data)(struct dm_conn *c, struct dm_task *t,
			const struct bufv *data, uint32_t offset,
			const struct iscsi_pdu *response);
	int (*get_data)(struct dm_conn *c, struct dm_task *t, uint32_t offset,
			uint32_t len);
	int (*allocate_connection_resources)(struct dm_conn *c,
					     const struct dm_resources *r);
	void (*deallocate_connection_resources)(struct dm_conn *c);
	int (*enable_datamover)(struct dm_conn *c,
				const struct dm_control *final_login);
	void (*connection_terminate)(struct dm_conn *c, enum dm_terminate how,
				     int err);
	void (*notice_key_values)(struct dm_conn *c,
				  const struct iscsi_params *p);
	int (*deallocate_task_resources)(struct dm_conn *c, struct dm_task *t);
	void (*resume)(struct dm_conn *c, struct dm_task *t);
	void (*progress)(const struct dm_conn *c, struct dm_progress *p);
	void (*rest)(struct dm_conn *c);
	int (*snack)(struct dm_conn *c, const struct iscsi_pdu *snack,
		     uint32_t *next);
	int (*retry)(struct dm_conn *c, struct dm_task *t);
	bool (*is_sending)(const struct dm_conn *c, struct dm_task *t);
	void (*adopt)(struct dm_conn *c, struct dm_task *t, uint32_t exp_datasn,
		      const struct dm_remote *remote);
	void (*stop_data)(struct dm_conn *c, struct dm_task *t, bool stop);
};

enum dm_state {
	DM_LOGIN,	 /* only Login PDUs */
	DM_FULL_FEATURE, /* after dm_enable_datamover */
	DM_TERMINATING,	 /* primitives return ERR_CLOSED */
	DM_TERMINATED,	 /* after Connection_Terminate_Notify */
};

/* Which values of RDMAExtensions a role may negotiate (RFC 7145 §6.3). */
enum dm_rdma {
	DM_RDMA_NO,	  /* No */
	DM_RDMA_POSSIBLE, /* Yes or No: RDMA mode begins after the login */
	DM_RDMA_REQUIRED, /* Yes only: RDMA mode begins after the login */
	DM_RDMA_ALREADY,  /* the connection began in RDMA mode */
};

/*
 * The part of a connection that role and datamover share; the datamover embeds
 * it. When a byte stream goes on in RDMA mode (RFC 7145 §5.1), the role keeps
 * this struct and dm_conn_take_over changes ops and impl.
 */
struct dm_conn {
	/* set by the datamover */
	const struct dm_ops *ops;
	void *impl; /* the datamover's own struct */
	enum iscsi_role role;
	const char *transport; /* "tcp" or "iser", to be shown only */
	/* The most bytes of data in a control-type PDU that the peer accepts
	 * in full feature phase; 0: as many as it declared. */
	uint32_t max_control_data;
	enum dm_rdma rdma;
	bool may_hold; /* dm_task.held has an effect */
	/* Target, in full feature phase: every response of a task and its read data
	 * are kept until the initiator acknowledges them by ExpStatSN, so that
	 * a SNACK (TCP, ErrorRecoveryLevel 1, RFC 7143 §11.16) or another
	 * connection (ErrorRecoveryLevel 2) can ask for them. DM_RESPONSE_SENT
	 * comes then. */
	bool retains;
	/* set by dm_attach */
	const struct dm_up_ops *up;
	void *user;
	const struct iscsi_numbers *numbers; /* written by the role */
	/* set by dm_set_trace, or NULL */
	struct trace *trace;
	const char *peer;
	enum dm_state state; /* changed by dm_conn_go only */
};

/* dm_attach connects the role to c, before the first byte is received. numbers
 * and user are borrowed until Connection_Terminate_Notify. */
void dm_attach(struct dm_conn *c, const struct dm_up_ops *up, void *user,
	       const struct iscsi_numbers *numbers);

/* dm_set_trace makes c trace PDUs and changes of its state, at debug level,
 * with the name of the peer. t and peer are borrowed as long as c exists. */
void dm_set_trace(struct dm_conn *c, struct trace *t, const char *peer);

/* ---- primitives; those that return int return ERR_CLOSED once the
 * connection is terminating. They assert the connection's state and the arguments;
 * those that each command needs are inline ---- */

/*
 * Send_Control (RFC 5047 §8.1). t is NULL except for two PDUs: a SCSI Command
 * of an initiator, whose data the datamover then transfers as the target
 * requests (it sets the F bit, DataSegmentLength and immediate data), and a
 * SCSI Response of a target, which ends in DM_RESPONSE_SENT. The role sets
 * pdu.cmdsn (initiator) or pdu.statsn (target); the other numbers come from
 * `numbers`. Data (ctl->data, pdu.dsl bytes) are copied.
 * Errors: ERR_NOMEM; ERR_TOO_LONG: more than the peer accepts in one PDU;
 * ERR_BUSY (iSER): too many unexpected PDUs are outstanding.
 */
/* [RFC 7145: 7.3.9 #1] [RFC 5047: 5.4 #1, 7.1 #1, 8.1 #1] */
static inline int dm_send_control(struct dm_conn *c, struct dm_task *t,
				  const struct dm_control *ctl)
{
	uint8_t op = ctl->pdu.op;
	bool is_login = op == ISCSI_LOGIN_REQUEST || op == ISCSI_LOGIN_RESPONSE;

	assert(c->up);
	if (c->state >= DM_TERMINATING)
		return ERR_CLOSED;
	/* RFC 7145 §7.3.9, RFC 7143 §6.3 */
	assert(is_login == (c->state == DM_LOGIN));
	assert(iscsi_opcode_from_initiator(op) == (c->role == ISCSI_INITIATOR));
	return c->ops->send_control(c, t, ctl);
}

/*
 * Put_Data (§8.2), target: sends data as the read data of t, beginning at
 * byte offset of the command's buffer. data, its iovec array included, is
 * borrowed until DM_PUT (response NULL) or DM_RESPONSE_SENT; if dm_conn.retains,
 * until DM_RESPONSE_SENT, and the bytes do not change (§11.16: exact replicas).
 * One call at a time per task, else ERR_BUSY. data is empty only with a response.
 * response: the SCSI Response that ends the task (op, status, residuals,
 * statsn; the datamover takes itt from t). The last Data-In carries its status
 * if RFC 7143 §11.7.3 allows.
 */
/* [RFC 5047: 8.2 #1, 10.2.1 #1] */
static inline int dm_put_data(struct dm_conn *c, struct dm_task *t,
			      const struct bufv *data, uint32_t offset,
			      const struct iscsi_pdu *response)
{
	assert(c->role == ISCSI_TARGET);
	assert(!response || response->op == ISCSI_SCSI_RESPONSE);
	assert(response || data->len > 0);
	assert(range_ok(offset, data->len, MAX(t->edtl, t->bidi_edtl)));
	if (c->state >= DM_TERMINATING)
		return ERR_CLOSED;
	assert(c->state == DM_FULL_FEATURE);
	return c->ops->put_data(c, t, data, offset, response);
}

/* Get_Data (§8.3), target: receives [offset, offset + len) of the write data
 * into t->out. Ends in DM_GET. One call at a time per task. */
int dm_get_data(struct dm_conn *c, struct dm_task *t, uint32_t offset,
		uint32_t len);

/* Allocate_Connection_Resources (§8.4), during the login; ERR_NOMEM. */
int dm_allocate_connection_resources(struct dm_conn *c,
				     const struct dm_resources *r);
/* Deallocate_Connection_Resources (§8.5) frees them, during the login or after
 * Connection_Terminate_Notify. */
void dm_deallocate_connection_resources(struct dm_conn *c);

/*
 * Enable_Datamover (§8.6) ends the login. Target: sends final_login, the last
 * Login Response, and begins the full feature phase directly after it.
 * Initiator: called in the Control_Notify of that response; final_login is
 * NULL.
 */
int dm_enable_datamover(struct dm_conn *c,
			const struct dm_control *final_login);

/* Connection_Terminate (§8.7). Connection_Terminate_Notify follows from the
 * driver's turn, never from within this call. err: the reason, 0: orderly. */
void dm_connection_terminate(struct dm_conn *c, enum dm_terminate how, int err);

/* Notice_Key_Values (§8.8) copies the negotiated values: before
 * Enable_Datamover, and in full feature phase when the peer declares another
 * MaxRecvDataSegmentLength (RFC 7143 §13.12). */
void dm_notice_key_values(struct dm_conn *c, const struct iscsi_params *p);

/*
 * Deallocate_Task_Resources (§8.9): the datamover forgets t, which is aborted.
 * Returns 0, or ERR_AGAIN if a PDU of t is partially sent or hardware may still
 * access its memory; then DM_RELEASED follows. A target does not call this
 * after it handed over t's response, because the StatSN of that response would
 * be missing.
 */
int dm_deallocate_task_resources(struct dm_conn *c, struct dm_task *t);

/* dm_resume: t, which was `held`, has memory for its data in t->out now. A held
 * task may be deallocated without dm_resume. Not in RFC 5047. */
void dm_resume(struct dm_conn *c, struct dm_task *t);

/*
 * dm_snack, target with dm_conn.retains: carries out a SNACK Request (RFC 7143
 * §11.16). Returns 0, or why the role has to reject it: ERR_FORMAT: a field has a
 * value that its type does not allow; ERR_NOT_FOUND: no task has this tag;
 * ERR_RANGE: the PDUs were not sent, or were acknowledged, and *next is the next
 * DataSN or R2TSN (§11.17.2); ERR_SEQUENCE: an invalid DataACK. A peer that asks
 * for the same PDUs again and again is dropped. Not in RFC 5047.
 */
int dm_snack(struct dm_conn *c, const struct iscsi_pdu *snack, uint32_t *next);

/*
 * dm_retry, initiator: sends the SCSI Command of t again, with its tag, CmdSN and
 * unsolicited data: the target has discarded the PDU, or it was lost (RFC 7143
 * §7.2.1). A target that has the command ignores the copy. Errors: ERR_UNSUPPORTED:
 * not at this ErrorRecoveryLevel, or over RDMA; ERR_LIMIT: too many attempts. Not in
 * RFC 5047.
 */
int dm_retry(struct dm_conn *c, struct dm_task *t);

/* dm_is_sending, initiator: PDUs of t are still to be sent: the command, its
 * unsolicited data, or data that R2Ts asked for. True over RDMA. Not in RFC 5047. */
bool dm_is_sending(const struct dm_conn *c, struct dm_task *t);

/*
 * dm_adopt, target with dm_conn.retains: t began on another connection of the session,
 * which has ended, and goes on over c (TASK REASSIGN, RFC 7143 §7.2.2). exp_datasn is
 * that of the request: the next Put_Data of t, of the same data from offset 0, sends
 * only what is not acknowledged. t->out_done says up to where the write data came; a
 * Get_Data has to ask for the rest. remote: that of the request; NULL: it had none, so
 * that over RDMA no data of t can be transferred. Not in RFC 5047.
 */
void dm_adopt(struct dm_conn *c, struct dm_task *t, uint32_t exp_datasn,
	      const struct dm_remote *remote);

/*
 * dm_stop_data, initiator: no further Data-Out of t is sent until a call with stop =
 * false (FastAbort, RFC 7143 §4.2.3.4 a). Over RDMA this has no effect: the target
 * reads the data itself. Not in RFC 5047.
 */
void dm_stop_data(struct dm_conn *c, struct dm_task *t, bool stop);

/* dm_progress stores the bytes transferred so far in *p. Not in RFC 5047. */
void dm_progress(const struct dm_conn *c, struct dm_progress *p);
/* dm_rest: c has no task, and had none for some time. The datamover gives back memory
 * that tasks needed; the next ones get it again. Not in RFC 5047. */
void dm_rest(struct dm_conn *c);

#endif
