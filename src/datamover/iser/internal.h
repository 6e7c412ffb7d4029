/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * internal.h: what the files of datamover/iser share.
 *   header.c     the iSER header
 *   conn.c       the object, the primitives, the queue pair's life, Hello
 *   msg.c        Sends: their memory, and who is told when they are out
 *   rx.c         receives: how many, and from message to PDU
 *   target.c     commands in, Put_Data by RDMA Write, Get_Data by RDMA Read
 *   initiator.c  commands out with their STags, responses in
 *   rules.c      where the RFC and the world differ
 */
#ifndef DATAMOVER_ISER_INTERNAL_H
#define DATAMOVER_ISER_INTERNAL_H

#include <assert.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/list.h"
#include "base/serial.h"
#include "datamover/iser/dmiser.h"
#include "datamover/iser/header.h"

/* iSER header and BHS */
#define ISER_PDU_LEN (ISER_HEADER_LEN + ISCSI_BHS_LEN)
#define LOGIN_DSL    8192 /* RFC 7143 §13.12 */
#define AHS_MAX	     256  /* what we take: MaxAHSLength's default, §6.8 */

/* ---- a task's share ---- */

struct target_task {
	bool bound; /* the Remote Mapping (§7.3.1) was noted */
	bool wsv, rsv;
	uint32_t write_stag, read_stag;
	uint64_t write_base, read_base;
	/* put_data */
	struct rcap_wr put;
	bool putting, notify_put;
	/* get_data */
	bool getting;
	uint32_t get_next, get_end; /* not yet asked for */
	unsigned reads;		    /* RDMA Reads that are out */
	struct list get_link;	    /* dmiser_conn.getq */
	/* unsolicited data */
	bool unsolicited; /* more Data-Outs may come */
	uint32_t unsol_off, unsol_datasn;
	uint32_t unsolicited_len; /* all that came unasked */
	int data_err;
};

struct initiator_task {
	struct rcap_mr in, out;
	bool in_valid, out_valid;
	struct rcap_recv *late; /* response that waits for our Sends */
};

struct dmiser_task {
	unsigned busy;	/* work requests out that touch its memory */
	bool releasing; /* DM_RELEASED is owed */
	union {
		struct target_task t;
		struct initiator_task i;
	};
};

_Static_assert(sizeof(struct dmiser_task) <= DM_TASK_PRIVATE,
	       "raise DM_TASK_PRIVATE");

static inline struct dmiser_task *priv(struct dm_task *t)
{
	return (struct dmiser_task *)(void *)t->priv;
}

static inline struct dm_task *task_of(struct dmiser_task *p)
{
	return container_of((unsigned char *)p, struct dm_task, priv);
}

/* ---- work requests: rcap_wr.tag says which ---- */

enum wr_kind {
	WR_MSG,	 /* a struct iser_msg */
	WR_PUT,	 /* target_task.put */
	WR_READ, /* a struct iser_read */
};

enum msg_kind {
	MSG_PLAIN,    /* nobody is told */
	MSG_RESPONSE, /* target: DM_RESPONSE_SENT */
	MSG_COMMAND,  /* initiator: a command or Data-Out of a task */
};

#define MSG_PIECES 17  /* header, and a task's own memory */
#define MSG_BYTES  288 /* header, AHS, sense: the usual sizes */

struct iser_msg {
	struct rcap_wr wr; /* tag WR_MSG */
	enum msg_kind kind;
	struct dm_task *task; /* NULL: none, or it was let go */
	struct iovec iov[MSG_PIECES];
	struct list link; /* spares, or what waits for Hello */
	uint8_t *big;	  /* in place of bytes, freed afterwards */
	uint8_t bytes[MSG_BYTES];
};

#define READ_PIECES 16

struct iser_read {
	struct rcap_wr wr; /* tag WR_READ */
	struct dm_task *task;
	struct iovec iov[READ_PIECES];
	struct list link; /* spares */
	uint32_t len;
};

/* ---- the connection ---- */

enum hello_state {
	HELLO_NONE,  /* not agreed on */
	HELLO_AWAIT, /* it, or its reply, has to come first */
	HELLO_DONE,
};

#define UNEXPECTED_MAX 16 /* that we keep track of, §8.1.2 */

struct dmiser_conn {
	struct dm_conn dm;
	struct dm_conn *face; /* what the role knows: &dm, or cfg.face */
	struct dmiser_config cfg;
	struct rcap_qp *qp;
	struct iscsi_params params;
	bool established, full_feature, dead;
	bool send_inv; /* Send with Invalidate may be used */
	bool heard;    /* the peer has spoken in full feature phase */
	enum hello_state hello;
	int err;
	uint32_t max_recv_dsl;
	uint16_t ord; /* iSER-ORD */
	uint16_t ird; /* iSER-IRD, as our Hello declared it */
	/* receives */
	struct rcap_recv *recvs; /* of the full feature phase */
	uint8_t *recv_mem;
	size_t recv_len; /* bytes of each */
	unsigned nrecvs;
	struct rcap_recv login_recv;
	uint8_t *login_mem;
	struct list early; /* rcap_recv.link: came before established */
	const struct iser_header *current; /* of the command in the up-call */
	/* sends */
	struct list spares, waiting; /* iser_msg.link */
	unsigned nspares;
	/* RDMA Reads, target */
	struct iser_read *reads;
	unsigned reads_out;
	struct list free_reads;
	struct list getq; /* target_task.get_link */
	/* unexpected PDUs that were sent and are not retired, §8.1.1.3 (by
	 * CmdSN), §8.1.2 (by StatSN; ttt of a ping) */
	struct {
		uint32_t sn, ttt;
	} unexpected[UNEXPECTED_MAX];
	unsigned nunexpected;
	struct dmiser_stats stats;
};

static inline struct dmiser_conn *conn_of(struct dm_conn *c)
{
	return c->impl;
}

static inline bool rule(const struct dmiser_conn *c, unsigned r)
{
	return c->cfg.rules & r;
}

/* conn.c: the connection has to go: §10.1.3.3. clause and what for people. */
void dmiser_die(struct dmiser_conn *c, int err, const char *why);
/* The same, but what was posted before still goes out. */
void dmiser_die_politely(struct dmiser_conn *c, int err, const char *why);
void dmiser_hello(struct dmiser_conn *c, const struct iser_header *h,
		  size_t len);
/* A task's work request is done: if it was let go, the role hears of it. */
void dmiser_task_idle(struct dmiser_conn *c, struct dm_task *t);

/* msg.c */
/* A message with room for `room` bytes; they begin at iov[0], the wr is a
 * plain Send. NULL: out of memory. */
struct iser_msg *dmiser_msg_new(struct dmiser_conn *c, size_t room);
void dmiser_msg_free(struct dmiser_conn *c, struct iser_msg *m);
/* dmiser_msg_pdu writes header, BHS, AHS and data; ERR_NOMEM as NULL. */
struct iser_msg *dmiser_msg_pdu(struct dmiser_conn *c,
				const struct iser_header *h,
				const struct iscsi_pdu *pdu, const uint8_t *ahs,
				const uint8_t *data);
/* dmiser_send posts m, alone or behind `first`; holds it back until a Hello
 * exchange is over. */
int dmiser_send(struct dmiser_conn *c, struct rcap_wr *first,
		struct iser_msg *m);
void dmiser_send_waiting(struct dmiser_conn *c);
void dmiser_msg_done(struct dmiser_conn *c, struct iser_msg *m, int err);
void dmiser_msgs_drop(struct dmiser_conn *c);
int dmiser_send_control(struct dm_conn *dm, struct dm_task *t,
			const struct dm_control *ctl);

/* rx.c */
int dmiser_rx_login(struct dmiser_conn *c);
/* Receives for the full feature phase: §8.1. */
int dmiser_rx_prepare(struct dmiser_conn *c, const struct dm_resources *r);
void dmiser_rx_free(struct dmiser_conn *c);
void dmiser_received(void *arg, struct rcap_recv *r, int err);
void dmiser_take_early(struct dmiser_conn *c);
void dmiser_repost(struct dmiser_conn *c, struct rcap_recv *r);
/* What an incoming PDU says of those that are outstanding. */
void dmiser_retire_unexpected(struct dmiser_conn *c,
			      const struct iscsi_pdu *pdu);

/* A PDU that came in; all of it is borrowed. */
struct iser_in {
	struct iser_header h;
	struct iscsi_pdu pdu;
	const uint8_t *bhs, *ahs, *data;
	struct rcap_recv *recv;
};

/* target.c */
int dmiser_target_new(struct dmiser_conn *c);
void dmiser_target_free(struct dmiser_conn *c);
void dmiser_target_command(struct dmiser_conn *c, struct iser_in *in);
void dmiser_target_data_out(struct dmiser_conn *c, struct iser_in *in);
int dmiser_put_data(struct dm_conn *dm, struct dm_task *t,
		    const struct bufv *data, uint32_t offset,
		    const struct iscsi_pdu *response);
int dmiser_get_data(struct dm_conn *dm, struct dm_task *t, uint32_t offset,
		    uint32_t len);
int dmiser_send_response(struct dmiser_conn *c, struct dm_task *t,
			 const struct dm_control *ctl, struct rcap_wr *first);
void dmiser_put_done(struct dmiser_conn *c, struct dm_task *t, int err);
void dmiser_read_done(struct dmiser_conn *c, struct iser_read *r, int err);
void dmiser_get_forget(struct dmiser_conn *c, struct dm_task *t);

/* initiator.c */
int dmiser_send_command(struct dmiser_conn *c, struct dm_task *t,
			const struct dm_control *ctl);
/* true: the receive was kept for later. */
bool dmiser_initiator_response(struct dmiser_conn *c, struct iser_in *in);
void dmiser_late(struct dmiser_conn *c, struct dm_task *t);
void dmiser_forget_stags(struct dmiser_conn *c, struct dm_task *t);

#endif
