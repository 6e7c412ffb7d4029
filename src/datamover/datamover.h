/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * datamover.h: the Datamover Interface of RFC 5047 §§5-9 (and RFC 7145 §3),
 * the seam between iSCSI (target, initiator) and what moves its data (iSCSI
 * over TCP, iSER). Names are the standard's. Above this seam nothing knows
 * which one it talks to.
 *
 * Departures, each because it saves a hand-over per command:
 *  - Control_Notify of a SCSI Command comes when its *header* is in; the role
 *    answers with the task, whose `out` says where immediate and unsolicited
 *    data go. Data_Completion_Notify(DM_UNSOLICITED) follows once they are
 *    there (also when there were none).
 *  - Put_Data may carry the response, so that status can ride on the last
 *    Data-In, or the RDMA Writes and the Send go out in one post.
 *  - Get_Data asks for a whole range; the datamover cuts it into R2Ts by
 *    MaxBurstLength and MaxOutstandingR2T (or into RDMA Reads).
 *  - Login PDUs pass through Send_Control and Control_Notify too, since over
 *    an RDMA-first connection they travel as Sends.
 *  - The role's numbers (ExpCmdSN, MaxCmdSN, ExpStatSN) are read when a
 *    header is encoded, not when it is queued.
 *  - find_task is asked where the standard leaves the look-up to the reader.
 *
 * Threads: a dm_conn and everything behind it belongs to one worker.
 * Up-calls come from within the driver's rx_done / tx_done / expire / closed
 * or from within a primitive; a role may call any primitive from an up-call,
 * and may not free the connection in one.
 */
#ifndef DATAMOVER_DATAMOVER_H
#define DATAMOVER_DATAMOVER_H

#include "base/bufv.h"
#include "base/list.h"
#include "base/trace.h"
#include "iscsi/bhs.h"
#include "iscsi/params.h"
#include "iscsi/window.h"

struct dm_conn;
struct dm_task;

/* A control-type PDU on its way through the interface. */
struct dm_control {
	struct iscsi_pdu pdu;
	/* Up only: the header as it came, for a Reject; NULL where the
	 * datamover made the PDU itself (status that rode on a Data-In). */
	const uint8_t *bhs;
	const uint8_t *ahs;  /* pdu.ahs_len bytes, or NULL */
	const uint8_t *data; /* pdu.dsl bytes, or NULL (see SCSI Command) */
};

#define DM_TASK_PRIVATE 320

/*
 * The datamover's share of a task. The role embeds it in its own struct and
 * finds its way back with container_of. It is in use from the primitive or
 * up-call that first names it until the role gets it back:
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
	/* initiator: the bytes to write. target: where write data land;
	 * what falls outside is read and thrown away. Borrowed. */
	struct bufv out;
	/* initiator: where read data land. target: unused. Borrowed. */
	struct bufv in;
	/* written by the datamover, read by the role */
	uint32_t out_done; /* target: bytes of write data that arrived */
	uint32_t in_done;  /* initiator: bytes of read data that arrived */
	/* the datamover's own */
	_Alignas(16) unsigned char priv[DM_TASK_PRIVATE];
};

/* dm_task_init clears the datamover's share; call it before each use. */
void dm_task_init(struct dm_task *t);

/* What Data_Completion_Notify reports. */
enum dm_completion {
	/* Target: all unsolicited data of a write are in (or there were
	 * none): comes exactly once per SCSI Command with the W bit, and
	 * the role does not answer the command before. err: 0,
	 * ERR_DATA_DIGEST, ERR_PROTOCOL (data that were not agreed on),
	 * ERR_SEQUENCE (their order or place). What an initiator did not
	 * send unasked (§4.2.5.2) is left to Get_Data. */
	DM_UNSOLICITED,
	/* Target: the range of Get_Data is in. err as above. */
	DM_GET,
	/* Target: the data of a Put_Data without response are out. */
	DM_PUT,
	/* Target: the task's response is out; task and buffers are the
	 * role's again. */
	DM_RESPONSE_SENT,
	/* Either: the release that dm_deallocate_task_resources promised. */
	DM_RELEASED,
};

enum dm_terminate {
	DM_TERMINATE_AFTER_SENT, /* what is queued goes out first */
	DM_TERMINATE_NOW,
};

/* The up-calls: implemented by target and by initiator, each entry filled. */
struct dm_up_ops {
	/*
	 * Control_Notify (RFC 5047 §9.1): a control-type PDU came. Everything in
	 * *ctl is borrowed for the call.
	 * Target, SCSI Command: ctl->data is NULL although pdu.dsl may not
	 * be; the role stores its task in *task (`out` set), or NULL to have
	 * all its data thrown away.
	 * Initiator, SCSI Response: *task is the task it ends; NULL otherwise,
	 * and for status of a task that is none (any more): it took a StatSN.
	 * Negative: the connection can't go on (the datamover then terminates it).
	 */
	int (*control_notify)(struct dm_conn *c, const struct dm_control *ctl,
			      struct dm_task **task);
	/* Data_Completion_Notify (§9.2). */
	void (*data_completion_notify)(struct dm_conn *c, struct dm_task *t,
				       enum dm_completion what, int err);
	/* Data_ACK_Notify (§9.3): initiator acknowledged data up to datasn. */
	void (*data_ack_notify)(struct dm_conn *c, struct dm_task *t,
				uint32_t datasn);
	/*
	 * A PDU was dropped (ERR_DATA_DIGEST, ERR_OPCODE, ERR_FORMAT,
	 * ERR_PROTOCOL), the connection is well. bhs: its 48 bytes, for the
	 * Reject that a target owes (RFC 7143 §11.17). pdu may be half filled.
	 */
	void (*error_notify)(struct dm_conn *c, const struct iscsi_pdu *pdu,
			     const uint8_t bhs[ISCSI_BHS_LEN], int err);
	/*
	 * Connection_Terminate_Notify (§9.4): the connection is over, for
	 * whatever reason (0: orderly, peer closed after logout; else why).
	 * The datamover has let go of every task and buffer. Last up-call.
	 */
	void (*connection_terminate_notify)(struct dm_conn *c, int err);
	/* The task in progress with this ITT, or NULL. */
	struct dm_task *(*find_task)(struct dm_conn *c, uint32_t itt);
};

/* What the role tells of its size: Allocate_Connection_Resources (§8.4). */
struct dm_resources {
	uint32_t max_tasks; /* tasks that may be in flight at once */
};

/* The primitives, implemented by datamover/tcp and datamover/iser; each entry
 * filled. Called through the dm_* functions below only. */
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
};

enum dm_state {
	DM_LOGIN,	 /* only Login PDUs */
	DM_FULL_FEATURE, /* after dm_enable_datamover */
	DM_TERMINATING,	 /* nothing new is accepted */
	DM_TERMINATED,	 /* Connection_Terminate_Notify was given */
};

/* dm_conn_go is the one place that changes a connection's state. For
 * datamovers only. */
void dm_conn_go(struct dm_conn *c, enum dm_state next);

/* Whether RDMAExtensions=Yes can be agreed on (RFC 7145 §6.3). */
enum dm_rdma {
	DM_RDMA_NO,
	DM_RDMA_POSSIBLE, /* a stream that can go to RDMA mode after login */
	DM_RDMA_REQUIRED, /* the same, and it must: else no session */
	DM_RDMA_ALREADY,  /* RDMA mode since its first byte */
};

/*
 * The part of a connection that both sides see; a datamover embeds it. When a
 * connection that was a byte stream goes on in RDMA mode (RFC 7145 §5.1), the
 * role keeps this struct, and ops and impl change under it: dm_conn_take_over.
 */
struct dm_conn {
	/* set by the datamover, constant */
	const struct dm_ops *ops;
	void *impl; /* the datamover's own struct */
	enum iscsi_role role;
	const char *transport; /* "tcp", "iser" : for people only */
	/* Most bytes of data in a control-type PDU that the peer can really
	 * take in full feature phase; 0: what it declared. */
	uint32_t max_control_data;
	enum dm_rdma rdma;
	/* set by dm_attach */
	const struct dm_up_ops *up;
	void *user;
	const struct iscsi_numbers *numbers; /* written by the role */
	/* set by dm_set_trace, or NULL */
	struct trace *trace;
	const char *peer;
	/* written by the doorway and the datamover */
	enum dm_state state;
};

/* dm_conn_take_over: another datamover goes on with c. For datamovers only. */
void dm_conn_take_over(struct dm_conn *c, const struct dm_ops *ops, void *impl,
		       const char *transport);

/* dm_attach gives the connection its role: before the first byte. numbers
 * and user are borrowed until Connection_Terminate_Notify. */
void dm_attach(struct dm_conn *c, const struct dm_up_ops *up, void *user,
	       const struct iscsi_numbers *numbers);

/* dm_set_trace: PDUs and states are traced (debug level) under the peer's
 * name. Both are borrowed for the connection's life. */
void dm_set_trace(struct dm_conn *c, struct trace *t, const char *peer);

/* dm_trace_pdu is for datamovers: a header that came in or goes out. */
void dm_trace_header(const struct dm_conn *c, bool out,
		     const uint8_t bhs[ISCSI_BHS_LEN]);
static inline void dm_trace_pdu(const struct dm_conn *c, bool out,
				const uint8_t bhs[ISCSI_BHS_LEN])
{
	if (trace_wanted(c->trace, TRACE_LEVEL_DEBUG))
		dm_trace_header(c, out, bhs);
}

/*
 * dm_judge_unsolicited is for a target's datamovers: what a SCSI Command may
 * bring along (RFC 7143 §11.3.4, §13.10, §13.11). 0, ERR_PROTOCOL (data that
 * were not agreed on), ERR_SEQUENCE (more than fits).
 */
int dm_judge_unsolicited(const struct iscsi_params *k,
			 const struct iscsi_pdu *p);

/* ---- down: each asserts the connection's state ---- */

/*
 * Send_Control (RFC 5047 §8.1). t is NULL except for a SCSI Command (initiator:
 * t->out and t->in are moved as the target asks; F bit, DataSegmentLength and
 * immediate data are the datamover's business) and a SCSI Response (target:
 * ends in DM_RESPONSE_SENT). pdu.cmdsn (initiator) and pdu.statsn (target) are
 * the role's; the other numbers are filled from `numbers`. Control data
 * (ctl->data, pdu.dsl bytes) are copied.
 * Errors: ERR_NOMEM, ERR_TOO_LONG (more than the peer takes in one PDU).
 */
int dm_send_control(struct dm_conn *c, struct dm_task *t,
		    const struct dm_control *ctl);

/*
 * Put_Data (§8.2), target: sends data as the read data of t, starting at
 * byte offset of the command's buffer. The memory behind data (the iovec
 * array too) is borrowed until DM_PUT (response NULL) or DM_RESPONSE_SENT.
 * One at a time per task (ERR_BUSY); data may be empty only with a response.
 * response: the SCSI Response that ends the task (op, status, residuals,
 * statsn; itt and lun are t's); its status rides on the last Data-In where
 * RFC 7143 §11.7.3 allows.
 */
int dm_put_data(struct dm_conn *c, struct dm_task *t, const struct bufv *data,
		uint32_t offset, const struct iscsi_pdu *response);

/* Get_Data (§8.3), target: fetches [offset, offset + len) of the write data
 * into t->out. Ends in DM_GET. One at a time per task. */
int dm_get_data(struct dm_conn *c, struct dm_task *t, uint32_t offset,
		uint32_t len);

int dm_allocate_connection_resources(struct dm_conn *c,
				     const struct dm_resources *r);
/* Deallocate_Connection_Resources: after the terminate notice, gives back
 * everything but the dm_conn itself. */
void dm_deallocate_connection_resources(struct dm_conn *c);

/*
 * Enable_Datamover (§8.6): the login is over. Target: sends final_login, the
 * last Login Response, and switches behind it, atomically. Initiator: called
 * from the Control_Notify of that response, final_login is NULL.
 */
int dm_enable_datamover(struct dm_conn *c,
			const struct dm_control *final_login);

/* Connection_Terminate (§8.7): the notice follows, from the driver's turn and
 * not from within this call. err says why, 0 = orderly. */
void dm_connection_terminate(struct dm_conn *c, enum dm_terminate how, int err);

/* Notice_Key_Values (§8.8): the negotiated values; before Enable_Datamover, and
 * again when max_send_dsl alone was declared anew in full feature phase (RFC
 * 7143 §13.12). *p is copied. */
void dm_notice_key_values(struct dm_conn *c, const struct iscsi_params *p);

/*
 * Deallocate_Task_Resources (§8.9): the datamover forgets t (an abort). Not
 * after t's response was handed over: the StatSN that it took would be missed.
 * Returns 0: done; ERR_AGAIN: a PDU of t is half way out, or hardware may
 * still touch its memory; DM_RELEASED will follow. A target does not abort a
 * task whose response it has handed over: its StatSN is taken.
 */
int dm_deallocate_task_resources(struct dm_conn *c, struct dm_task *t);

#endif
