/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * internal.h: what the files of datamover/iser share.
 *   conn.c       primitives, life, the up-calls of the queue pair
 *   rx.c         from a received message to a PDU
 *   control.c    Send_Control, limits, unexpected PDUs
 *   hello.c      the Hello exchange
 *   target.c     commands in, responses out, Get_Data by RDMA Read
 *   put.c        Put_Data by RDMA Write
 *   retain.c     target: responses that are not acknowledged, tasks that began on
 *                another connection
 *   initiator.c  commands out with their STags, responses in
 *   msg.c        Sends: their memory, how they are posted or wait
 *   recv.c       receives: their memory, how many are posted
 *   rules.c      where RFC 7145 and other implementations differ
 *   header.c     the iSER header
 *   fate.c       what ends a connection; the report that a task is released
 * No two of these files call each other, directly or through others.
 */
#ifndef DATAMOVER_ISER_INTERNAL_H
#define DATAMOVER_ISER_INTERNAL_H

#include <assert.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/list.h"
#include "base/serial.h"
#include "datamover/impl.h"
#include "datamover/iser/dmiser.h"
#include "datamover/iser/header.h"
#include "iscsi/keys.h"

/* iSER header and BHS */
#define ISER_PDU_LEN (ISER_HEADER_LEN + ISCSI_BHS_LEN)
#define LOGIN_DSL    8192 /* RFC 7143 §13.12 */
#define AHS_MAX	     256  /* the most we receive: default of §6.8 */

/* ---- a task's share ---- */

struct target_task {
	bool bound; /* the Remote Mapping (§7.3.1) is in remote */
	struct dm_remote remote;
	/* put_data */
	bool putting, notify_put;
	/* if dm_conn.retains: of the next Data-In; the initiator has all Data-Ins before
	 * acked_sn, and so all bytes before acked_to */
	uint32_t datasn, acked_sn, acked_to;
	/* get_data */
	bool getting;
	uint32_t get_next, get_end; /* not yet requested by a Read */
	unsigned reads;		    /* RDMA Reads in progress */
	struct list get_link;	    /* dmiser_conn.getq */
	/* unsolicited data */
	bool unsolicited; /* more Data-Outs may come */
	uint32_t unsol_off, unsol_datasn;
	uint32_t unsolicited_len; /* immediate data included */
	int data_err;
	/* response, if dm_conn.retains */
	uint32_t statsn;
	bool sent, acked; /* its Send is completed; ExpStatSN covers it */
	struct list unacked_link; /* dmiser_conn.unacked */
	/* of put_data, which sets all of it: dm_task_init clears only a part */
	struct rcap_wr put;
};

struct initiator_task {
	struct rcap_mr in, out;
	bool in_valid, out_valid;
	struct rcap_recv *late; /* response that waits for our Sends */
};

struct dmiser_task {
	unsigned busy;	/* posted work requests that use its memory */
	bool releasing; /* DM_RELEASED has to be reported */
	union {
		struct target_task t;
		struct initiator_task i;
	};
};

_Static_assert(sizeof(struct dmiser_task) <= DM_TASK_PRIVATE,
	       "raise DM_TASK_PRIVATE");
_Static_assert(offsetof(struct dmiser_task, t.put) <= DM_TASK_CLEARED,
	       "raise DM_TASK_CLEARED");

static inline struct dmiser_task *iser_task(struct dm_task *t)
{
	return dm_task_share(t);
}

/* ---- work requests: rcap_wr.tag says which ---- */

enum wr_kind {
	WR_MSG,	 /* a struct iser_msg */
	WR_PUT,	 /* target_task.put */
	WR_READ, /* a struct iser_read of Get_Data */
	WR_ACK,	 /* a struct iser_read for the A bit */
};

enum msg_kind {
	MSG_PLAIN,    /* its completion is not reported */
	MSG_LOGOUT,   /* target: a Logout Response */
	MSG_RESPONSE, /* target: DM_RESPONSE_SENT */
	MSG_COMMAND,  /* initiator: a command or Data-Out of a task */
	MSG_DATA, /* target: an RDMA Write, and more of its Put_Data follow */
	MSG_LAST_DATA,
};

#define MSG_PIECES 17  /* header, and pieces of a task's buffer */
#define MSG_BYTES  288 /* header, AHS, sense: the usual sizes */

struct iser_msg {
	struct rcap_wr wr; /* tag WR_MSG */
	enum msg_kind kind;
	struct dm_task *task; /* or NULL */
	struct iovec iov[MSG_PIECES];
	struct list link; /* dmiser_conn.spares or .waiting */
	uint8_t *big;	  /* in place of bytes, freed afterwards */
	uint8_t bytes[MSG_BYTES];
};

#define READ_PIECES 16

struct iser_read {
	struct rcap_wr wr; /* tag WR_READ */
	struct dm_task *task;
	struct iovec iov[READ_PIECES];
	struct list link; /* dmiser_conn.free_reads.list */
	uint32_t len;
	uint32_t acked_to,
		datasn; /* WR_ACK: what its completion acknowledges */
};

/* ---- the connection ---- */

enum hello_state {
	HELLO_NONE,  /* no exchange was negotiated */
	HELLO_AWAIT, /* the next message must be the Hello or its reply */
	HELLO_DONE,
};

#define UNEXPECTED_MAX 16 /* outstanding at once, §8.1.2 */

/* Unexpected PDUs that were sent and are not acknowledged: by CmdSN (§8.1.1.3),
 * or by StatSN and the TTT of a ping (§8.1.2). */
struct unexpected {
	struct {
		uint32_t sn, ttt;
	} pdu[UNEXPECTED_MAX];
	unsigned n;
};

/* The receives of a connection; rcap_recv.buf leads to mem and login_mem. */
struct recvs {
	struct rcap_recv *full; /* of the full feature phase, n of them */
	uint8_t *mem;		/* after them */
	size_t len;		/* bytes of each */
	unsigned n;
	unsigned fresh; /* the first that was never posted */
	struct rcap_recv login;
	uint8_t *login_mem;
};

struct dmiser_conn {
	struct dm_conn own_dm;
	struct dm_conn *dm; /* the role's: &own_dm, or cfg.stream_dm */
	struct dmiser_config cfg;
	struct rcap_qp *qp;
	struct iscsi_params params;
	bool established, full_feature;
	bool ended;	   /* failed or closed: nothing more is processed */
	bool send_inv;	   /* Send with Invalidate may be used */
	bool has_received; /* a PDU of the full feature phase */
	enum hello_state hello;
	struct {
		int err;
		unsigned logouts; /* Logout Responses that are not sent yet */
		bool parting; /* the last one ends the connection for the role */
	} end;
	uint32_t max_recv_dsl;
	uint16_t ord; /* iSER-ORD */
	uint16_t ird; /* iSER-IRD that our Hello declared */
	/* receives */
	struct recvs recv;
	struct list early; /* rcap_recv.link: received before established */
	const struct iser_header *current; /* of the command being processed */
	/* sends */
	struct list spares, waiting; /* iser_msg.link */
	unsigned nspares;
	/* RDMA Reads, target */
	struct {
		struct iser_read *all; /* NULL: none was needed since dm_rest */
		struct list list;      /* those that were used */
		unsigned fresh;	       /* the first that was never used */
	} free_reads;
	unsigned reads_out;
	struct list getq;	 /* target_task.get_link */
	struct list unacked;	 /* target_task.unacked_link, by StatSN */
	struct dm_strays strays; /* target */
	struct unexpected unexpected;
	uint64_t bytes_in, bytes_out; /* of write data, of read data */
	struct dmiser_stats stats;
};

static inline bool has_rule(const struct dmiser_conn *c, unsigned r)
{
	return c->cfg.rules & r;
}

/* rules.c */
/* dmiser_solicited_only returns whether the Write Base Offset is the offset of
 * the solicited data (§6.9): the initiator's declaration, or DMISER_SOLICITED_VA
 * for an initiator without one. */
bool dmiser_solicited_only(const struct dmiser_conn *c);
/* dmiser_speaks_rfc7145 returns whether the initiator declared a key of RFC
 * 7145 that Linux, libiscsi, tgt and FreeBSD do not know; the rules for those
 * do not apply then. */
bool dmiser_speaks_rfc7145(const struct dmiser_conn *c);

/* fate.c */
/* dmiser_fail_conn drops the connection with an RDMAP Terminate (§10.1.3.3)
 * and logs why, which names the clause. Later calls have no effect. */
void dmiser_fail_conn(struct dmiser_conn *c, int err, const char *why);
/* dmiser_fail_conn_after_sent does so after all posted Sends. */
void dmiser_fail_conn_after_sent(struct dmiser_conn *c, int err,
				 const char *why);
/* dmiser_report_released reports DM_RELEASED if the role waits for it and no
 * work request of t is in progress. */
void dmiser_report_released(struct dmiser_conn *c, struct dm_task *t);

/* hello.c */
/* dmiser_hello_begin (initiator) sends the Hello, which is the first message
 * (§5.1.1). */
void dmiser_hello_begin(struct dmiser_conn *c);
/* dmiser_hello_received takes a Hello or HelloReply, or what came in its
 * place; len: of the message. */
void dmiser_hello_received(struct dmiser_conn *c, const struct iser_header *h,
			   size_t len);

/* msg.c */
struct iser_msg *dmiser_msg_alloc(struct dmiser_conn *c, struct iser_msg *m,
				  size_t room);
/* dmiser_msg_new returns a plain Send with room for `room` bytes at iov[0];
 * NULL: out of memory. */
static inline struct iser_msg *dmiser_msg_new(struct dmiser_conn *c,
					      size_t room)
{
	struct list *n = list_pop_front(&c->spares);
	struct iser_msg *m = n ? list_entry(n, struct iser_msg, link) : NULL;

	c->nspares -= n != NULL;
	if (!m || room > MSG_BYTES)
		m = dmiser_msg_alloc(c, m, room);
	if (!m)
		return NULL;
	m->iov[0] = (struct iovec){ m->big ? m->big : m->bytes, 0 };
	m->wr.op = RCAP_SEND;
	/* §7.3: "should be used" */
	m->wr.flags = has_rule(c, DMISER_PLAIN_SEND) ? 0 : RCAP_SOLICITED;
	m->wr.data = (struct bufv){ m->iov, 1, 0 };
	m->wr.stag = 0;
	m->wr.to = 0;
	m->wr.tag = WR_MSG;
	m->kind = MSG_PLAIN;
	m->task = NULL;
	return m;
}
void dmiser_msg_free(struct dmiser_conn *c, struct iser_msg *m);
/* dmiser_msg_pdu returns a Send of header, BHS, AHS and, unless data is NULL,
 * a padded copy of data. NULL: out of memory. */
struct iser_msg *dmiser_msg_pdu(struct dmiser_conn *c,
				const struct iser_header *h,
				const struct iscsi_pdu *pdu, const uint8_t *ahs,
				const uint8_t *data);
/* dmiser_msg_short returns a Send of h and a PDU without AHS, whose BHS the caller
 * encodes at dmiser_msg_bhs. */
static inline struct iser_msg *dmiser_msg_short(struct dmiser_conn *c,
						const struct iser_header *h)
{
	struct iser_msg *m = dmiser_msg_new(c, ISER_PDU_LEN);

	if (!m)
		return NULL;
	iser_header_encode(h, m->bytes);
	m->iov[0].iov_len = m->wr.data.len = ISER_PDU_LEN;
	return m;
}
static inline uint8_t *dmiser_msg_bhs(struct iser_msg *m)
{
	return m->bytes + ISER_HEADER_LEN;
}
int dmiser_send_later(struct dmiser_conn *c, struct iser_msg *m);
/* dmiser_send posts m, alone or after the RDMA Write `first`. Until the
 * connection is established and the Hello exchange is over, m waits.
 * ERR_CLOSED: the connection ends; m is freed. */
static inline int dmiser_send(struct dmiser_conn *c, struct rcap_wr *first,
			      struct iser_msg *m)
{
	struct rcap_wr *chain[2] = { first, &m->wr };

	if (m->task)
		iser_task(m->task)->busy += 1 + (first != NULL);
	c->stats.tx_pdus++;
	if (!c->established || c->hello == HELLO_AWAIT) {
		/* an RDMA Write needs a command, and none was received yet */
		assert(!first);
		return dmiser_send_later(c, m);
	}
	/* rcap_post fails only if the connection ends, which
	 * Connection_Terminate_Notify reports */
	if (rcap_post(c->qp, first ? chain : chain + 1, first ? 2 : 1)) {
		dmiser_msg_free(c, m);
		return ERR_CLOSED;
	}
	return 0;
}
/* dmiser_send_waiting posts the messages that wait, if they may go now. */
void dmiser_send_waiting(struct dmiser_conn *c);
/* dmiser_msgs_free frees the messages that wait and the spare ones. */
void dmiser_msgs_free(struct dmiser_conn *c);
/* dmiser_spares_free frees the spare ones. */
void dmiser_spares_free(struct dmiser_conn *c);

/* control.c */
int dmiser_send_control(struct dm_conn *dm, struct dm_task *t,
			const struct dm_control *ctl);
/* dmiser_retire_unexpected forgets the unexpected PDUs that pdu, which was
 * received, acknowledges. */
void dmiser_retire_unexpected(struct dmiser_conn *c,
			      const struct iscsi_pdu *pdu);

/* recv.c */
/* dmiser_recv_login posts the receive of the login phase; ERR_NOMEM. */
int dmiser_recv_login(struct dmiser_conn *c);
/* dmiser_recv_prepare posts the receives of the full feature phase (§8.1);
 * ERR_NOMEM. */
int dmiser_recv_prepare(struct dmiser_conn *c, const struct dm_resources *r);
void dmiser_recv_free(struct dmiser_conn *c);
/* dmiser_repost posts r again once its message is processed. */
void dmiser_repost(struct dmiser_conn *c, struct rcap_recv *r);
/* dmiser_recv_more posts one more, because another one stays in use. */
void dmiser_recv_more(struct dmiser_conn *c);

/* rx.c */
/* dmiser_received: the queue pair's up-call for a message, or for a receive
 * that ended with an error. */
void dmiser_received(void *arg, struct rcap_recv *r, int err);
/* dmiser_take_early processes the messages that came before `established`. */
void dmiser_take_early(struct dmiser_conn *c);

/* A received PDU; its memory is that of recv. */
struct iser_in {
	struct iser_header h;
	struct dm_control ctl; /* without the data */
	const uint8_t *data;
	struct rcap_recv *recv;
};

/* target.c */
/* dmiser_reads_free frees the RDMA Reads of a target, none of which is posted or will
 * be reported. */
void dmiser_reads_free(struct dmiser_conn *c);
/* These two process a SCSI Command and an unsolicited Data-Out. */
void dmiser_target_command(struct dmiser_conn *c, struct iser_in *in);
void dmiser_target_data_out(struct dmiser_conn *c, struct iser_in *in);
int dmiser_get_data(struct dm_conn *dm, struct dm_task *t, uint32_t offset,
		    uint32_t len);
/* dmiser_send_response sends the SCSI Response pdu that ends t, with a copy of
 * data (or NULL), after the RDMA
 * Write `first` unless that is NULL. */
int dmiser_send_response(struct dmiser_conn *c, struct dm_task *t,
			 const struct iscsi_pdu *pdu, const uint8_t *data,
			 struct rcap_wr *first);
/* dmiser_bind_task stores the Remote Mapping (§7.3.1) in the task. The role may answer a
 * command before its up-call returns, so each primitive calls this function. */
void dmiser_bind_task(const struct dmiser_conn *c, struct dm_task *t);
/* dmiser_need_reads allocates the RDMA Reads of the connection, unless they are there;
 * ERR_NOMEM. dmiser_read_new returns one for t, only after that, and only if less than
 * iSER-ORD are in progress. */
int dmiser_need_reads(struct dmiser_conn *c);
struct iser_read *dmiser_read_new(struct dmiser_conn *c, struct dm_task *t);
void dmiser_read_free(struct dmiser_conn *c, struct iser_read *r);
/* dmiser_read_more posts as many RDMA Reads of Get_Data as iSER-ORD allows. */
void dmiser_read_more(struct dmiser_conn *c);
/* dmiser_read_done takes the completion of a Read of Get_Data; err: it failed, and the
 * connection ends. */
void dmiser_read_done(struct dmiser_conn *c, struct iser_read *r, int err);
/* dmiser_get_abort ends the unsolicited data and a Get_Data of t, which is
 * aborted, without a completion. */
void dmiser_get_abort(struct dmiser_conn *c, struct dm_task *t);

/* dmiser_remote returns what h advertises. */
struct dm_remote dmiser_remote(const struct iser_header *h);

/* put.c */
int dmiser_put_data(struct dm_conn *dm, struct dm_task *t,
		    const struct bufv *data, uint32_t offset,
		    const struct iscsi_pdu *response);
/* These three take the completion of a work request; err: it failed, and the connection
 * ends. */
void dmiser_put_done(struct dmiser_conn *c, struct dm_task *t, int err);
void dmiser_ack_done(struct dmiser_conn *c, struct iser_read *r, int err);
/* dmiser_put_part_done: the RDMA Write of len bytes of a Put_Data in several parts has
 * succeeded; last: the last one. */
void dmiser_put_part_done(struct dmiser_conn *c, struct dm_task *t, size_t len,
			  bool last);

/* retain.c */
/* dmiser_retain: the response of t with this StatSN is sent. */
void dmiser_retain(struct dmiser_conn *c, struct dm_task *t, uint32_t statsn);
/* dmiser_response_sent: the Send with the response of t is completed. */
void dmiser_response_sent(struct dmiser_conn *c, struct dm_task *t);
/* dmiser_acknowledge takes the ExpStatSN of a PDU that was received. */
void dmiser_acknowledge(struct dmiser_conn *c, uint32_t expstatsn);
void dmiser_adopt(struct dm_conn *dm, struct dm_task *t, uint32_t exp_datasn,
		  const struct dm_remote *remote);

/* initiator.c */
/* dmiser_send_command sends a SCSI Command with the STags of t's buffers, and
 * its unsolicited data. */
int dmiser_send_command(struct dmiser_conn *c, struct dm_task *t,
			const struct dm_control *ctl);
/* dmiser_send_reassign sends a TASK REASSIGN with new STags of the task's buffers. */
int dmiser_send_reassign(struct dmiser_conn *c, const struct dm_control *ctl);
/* dmiser_initiator_response processes a SCSI Response. true: Sends of the task
 * are in progress, and the receive is in use until dmiser_late, which gives the
 * response to the role. */
bool dmiser_initiator_response(struct dmiser_conn *c, struct iser_in *in);
void dmiser_late(struct dmiser_conn *c, struct dm_task *t);
/* dmiser_forget_stags invalidates the STags of t and drops a response that
 * waits. */
void dmiser_forget_stags(struct dmiser_conn *c, struct dm_task *t);

#endif
