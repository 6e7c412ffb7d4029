/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * internal.h: what the files of datamover/tcp share.
 *   conn.c          primitives, states, the driver's side
 *   rx.c            framing: bytes -> PDUs, payload to where it belongs
 *   rx_target.c     SCSI Command, Data-Out: unsolicited and solicited data
 *   rx_initiator.c  Data-In, R2T, SCSI Response
 *   tx.c            staging: PDUs -> iovecs, and what was sent
 *   tx_target.c     Data-In and R2T PDUs out of put_data and get_data
 *   tx_initiator.c  SCSI Command and Data-Out PDUs
 */
#ifndef DATAMOVER_TCP_INTERNAL_H
#define DATAMOVER_TCP_INTERNAL_H

#include <assert.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/list.h"
#include "base/serial.h"
#include "datamover/tcp/dmtcp.h"

/* ---- what stands in a queue to be sent ---- */

enum tx_kind {
	TX_CONTROL, /* a struct dmtcp_control */
	TX_TASK,    /* a struct dmtcp_task */
};

struct tx_node {
	struct list link; /* txq or dataq */
	enum tx_kind kind;
};

/* ---- a task's share ---- */

/*
 * R2Ts outstanding per task that we keep track of: a target sends no more,
 * whatever was agreed; an initiator's role agrees to no more (§13.17).
 */
#define MAX_R2T 4

/* A burst of solicited data: one R2T and its Data-Outs. */
struct burst {
	uint32_t ttt;
	uint32_t sn;	   /* R2TSN */
	uint32_t off, end; /* target: bytes that miss; initiator: to send */
	uint32_t datasn;   /* the next one */
	bool active;
	bool announce; /* target: the R2T is still to be sent */
};

enum unsolicited {
	UNSOL_NONE, /* no write, or over */
	UNSOL_OPEN, /* more Data-Outs without R2T may come */
};

struct target_task {
	/* put_data */
	struct bufv data;
	uint32_t data_off;  /* Buffer Offset of data's first byte */
	uint32_t data_done; /* bytes of data staged */
	uint32_t datasn;
	bool putting;
	bool status_rides; /* on the last Data-In */
	bool quiet;	   /* a SCSI Response follows: no DM_PUT */
	uint8_t status, resid_flags;
	uint32_t resid, statsn;
	/* unsolicited data */
	enum unsolicited unsol;
	uint32_t unsol_off, unsol_datasn;
	/* get_data */
	bool getting;
	uint16_t slot;		    /* of dmtcp_conn.gets */
	uint32_t get_next, get_end; /* not yet asked for */
	uint32_t r2tsn;
	int data_err;	      /* the first thing that went wrong */
	struct list r2t_link; /* dmtcp_conn.r2tq */
};

struct initiator_task {
	uint8_t bhs[ISCSI_BHS_LEN]; /* of the SCSI Command */
	uint8_t ahs[40];	    /* extended CDB, bidirectional length */
	uint16_t ahs_len;
	uint32_t immediate; /* bytes sent with the command */
	uint32_t unsol_end; /* unsolicited Data-Outs go up to here */
	uint32_t unsol_off, unsol_datasn;
	uint32_t next_datasn; /* of Data-In and R2T (§11.8.2: one count) */
	uint32_t data_ins;    /* of these, Data-In */
	bool command_pending, data_queued;
	struct dmtcp_late *late; /* response that waits for staged data */
};

struct dmtcp_control;

struct dmtcp_task {
	struct tx_node node;
	struct dmtcp_control *response; /* target: queued, not yet staged */
	uint16_t staged;		/* PDUs of it in the stage */
	bool releasing;			/* DM_RELEASED is owed */
	struct burst bursts[MAX_R2T];
	union {
		struct target_task t;
		struct initiator_task i;
	};
};

_Static_assert(sizeof(struct dmtcp_task) <= DM_TASK_PRIVATE,
	       "raise DM_TASK_PRIVATE");

static inline struct dmtcp_task *priv(struct dm_task *t)
{
	return (struct dmtcp_task *)(void *)t->priv;
}

static inline struct dm_task *task_of(struct dmtcp_task *p)
{
	return container_of((unsigned char *)p, struct dm_task, priv);
}

/* ---- control-type PDUs on their way out ---- */

struct dmtcp_control {
	union {
		struct tx_node node;
		struct dmtcp_control *next_spare;
	};
	struct dm_task *task; /* a SCSI Response; or NULL */
	bool is_final_login;  /* digests begin behind it */
	struct iscsi_pdu pdu;
	size_t ahs_len, size; /* size: bytes allocated, for the limit */
	uint8_t bytes[];      /* AHS, data */
};

/* Nodes with room for a response with sense are kept for the next one, so
 * that a command costs no allocation. */
#define CONTROL_BYTES	   112
#define CONTROL_SPARES_MAX 256

/* ---- the stage: PDUs encoded, not yet taken by the transport ---- */

#define STAGE_PDUS 128
#define STAGE_IOVS 1100
/* Pieces that one buffer may have: one such buffer always fits. */
#define MAX_PIECES  1024
#define STAGE_BYTES (1u << 20)
/* BHS, its digest, AHS go apart; pad and data digest behind the data */
#define STAGE_HEADER  (ISCSI_BHS_LEN + ISCSI_DIGEST_LEN)
#define STAGE_TRAILER (4 + ISCSI_DIGEST_LEN)
/* With data digests read data are copied here, CRC in the same pass. */
#define DIGEST_COPY_BYTES (512u << 10)

struct stage_pdu {
	uint8_t header[STAGE_HEADER];
	uint8_t trailer[STAGE_TRAILER];
	unsigned iov_end; /* iovecs up to here are this PDU's and earlier */
	struct dm_task *task;
	struct dmtcp_control *control; /* freed once it is out */
	bool notify;		       /* tell the role `what` once it is out */
	enum dm_completion what;
};

struct stage {
	struct stage_pdu pdus[STAGE_PDUS];
	struct iovec iov[STAGE_IOVS];
	unsigned npdus, pdu;  /* staged, first that is not out */
	unsigned niov, first; /* likewise */
	size_t bytes;
	uint8_t *copy; /* DIGEST_COPY_BYTES, or NULL */
	size_t copied;
};

/* ---- the connection ---- */

enum rx_state {
	RX_HEADER,  /* BHS, AHS, header digest */
	RX_PAYLOAD, /* the data segment */
	RX_TRAILER, /* its pad and digest */
	RX_DEAD,
};

struct rx {
	enum rx_state state;
	uint8_t *look; /* look-ahead; bytes [head, tail) are unread */
	size_t look_size, head, tail;
	unsigned large; /* a large payload came this few PDUs ago */
	/* this PDU */
	struct iscsi_pdu pdu;
	uint8_t bhs[ISCSI_BHS_LEN];
	uint8_t ahs[ISCSI_MAX_AHS_LEN];
	size_t direct; /* payload bytes that rx_where offered a place for */
	uint32_t left; /* payload bytes to come */
	uint32_t crc;
	struct dm_task *task; /* payload goes to task->out (or ->in) ... */
	uint32_t at;	      /* ... at this offset; NULL: see collect */
	struct burst *burst;  /* of a solicited Data-Out */
	uint8_t *collect;     /* payload of a control PDU; NULL: drop it */
	uint32_t collected;
	int drop_err; /* the PDU is to be dropped for this, once it is in */
	bool is_control;
};

struct dmtcp_conn {
	struct dm_conn dm;
	struct stream_host *host;
	struct dmtcp_config cfg;
	struct iscsi_params params;
	/* written when the login is over */
	bool rx_header_digest, rx_data_digest;
	bool tx_header_digest, tx_data_digest;
	bool full_feature;
	uint32_t max_recv_dsl, max_send_dsl;
	struct dm_resources resources;
	/* RDMA mode is next: no more is read, and when all is out, it is
	 * another's turn */
	bool leaving, left;
	/* life */
	enum stream_fate fate;
	int err;
	xtime now, flush_deadline;
	/* receiving */
	struct rx rx;
	/* sending */
	struct list txq;   /* in order: control PDUs, commands, read data */
	struct list dataq; /* initiator: tasks with Data-Outs to send */
	struct list r2tq;  /* target: tasks with R2Ts to send */
	struct list lates; /* initiator: responses that wait */
	size_t queued_control;
	struct dmtcp_control *spares;
	unsigned nspares;
	uint32_t tx_statsn; /* target: behind the last StatSN sent */
	struct stage *stage;
	/* solicited data: TTT -> task (target) */
	struct dm_task **gets;
	uint32_t ngets, free_get;
	uint16_t *get_next_free;
	uint32_t ttt_salt;
	struct dmtcp_stats stats;
};

static inline struct dmtcp_conn *conn_of(struct dm_conn *c)
{
	return c->impl;
}

/* conn.c */
void dmtcp_die(struct dmtcp_conn *c, int err);
void dmtcp_kick(struct dmtcp_conn *c);

/* rx.c */
unsigned dmtcp_rx_where(void *core, struct iovec *iov, unsigned max);
void dmtcp_rx_done(void *core, size_t n, xtime now);
/* The task goes away: payload under way to it is thrown away. */
void dmtcp_rx_forget(struct dmtcp_conn *c, const struct dm_task *t);

/* rx_target.c: what becomes of a header (payload target set in c->rx), and
 * of a PDU whose payload is in. */
void dmtcp_target_header(struct dmtcp_conn *c);
void dmtcp_target_complete(struct dmtcp_conn *c);
int dmtcp_get_data(struct dm_conn *dm, struct dm_task *t, uint32_t offset,
		   uint32_t len);
void dmtcp_get_forget(struct dmtcp_conn *c, struct dm_task *t);

/* rx_initiator.c */
void dmtcp_initiator_header(struct dmtcp_conn *c);
void dmtcp_initiator_complete(struct dmtcp_conn *c);
/* A response waits until none of the task's bytes is in the stage. */
void dmtcp_late_deliver(struct dmtcp_conn *c, struct dm_task *t);
void dmtcp_late_free(struct dm_task *t);
void dmtcp_late_drop_all(struct dmtcp_conn *c);

/* tx.c */
unsigned dmtcp_tx_what(void *core, struct iovec *iov, unsigned max);
void dmtcp_tx_done(void *core, size_t n, xtime now);
void dmtcp_tx_drop_all(struct dmtcp_conn *c);
void dmtcp_spares_free(struct dmtcp_conn *c);
int dmtcp_queue_control(struct dmtcp_conn *c, struct dm_task *t,
			const struct dm_control *ctl, bool final_login);
/* One PDU into the stage. data may be NULL. Room was checked. */
struct stage_pdu *dmtcp_stage_pdu(struct dmtcp_conn *c,
				  const uint8_t bhs[ISCSI_BHS_LEN],
				  const uint8_t *ahs, size_t ahs_len,
				  const struct bufv *data, size_t off,
				  uint32_t len, bool unstable);
/* Room for one more PDU with pieces of data (may be NULL), of which `unstable`
 * bytes have to be copied where there is a data digest. */
bool dmtcp_stage_has_room(const struct dmtcp_conn *c, const struct bufv *data,
			  uint32_t unstable);
void dmtcp_stage_task(struct stage_pdu *p, struct dm_task *t);

/* How much of `left` bytes the next data PDU takes: all but the last one of a
 * sequence should hold whole words (§11.7.7). */
static inline uint32_t dmtcp_pdu_len(uint32_t left, uint32_t most)
{
	return left <= most ? left : most & ~3u;
}

/* tx_target.c, tx_initiator.c: stage PDUs of the task at the queue's head;
 * true when it is done there. */
bool dmtcp_stage_data_in(struct dmtcp_conn *c, struct dm_task *t);
bool dmtcp_stage_r2ts(struct dmtcp_conn *c, struct dm_task *t);
bool dmtcp_stage_command(struct dmtcp_conn *c, struct dm_task *t);
bool dmtcp_stage_data_out(struct dmtcp_conn *c, struct dm_task *t);
int dmtcp_put_data(struct dm_conn *dm, struct dm_task *t,
		   const struct bufv *data, uint32_t offset,
		   const struct iscsi_pdu *response);
int dmtcp_send_command(struct dmtcp_conn *c, struct dm_task *t,
		       const struct dm_control *ctl);

#endif
