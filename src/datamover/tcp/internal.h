/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * internal.h: what the files of datamover/tcp share.
 *   conn.c          primitives, life, the calls of the driver
 *   rx.c            framing: from bytes to PDUs, payload to its final place
 *   rx_target.c     SCSI Command, Data-Out: unsolicited and solicited data
 *   rx_initiator.c  Data-In, R2T
 *   answers.c       initiator: PDUs with a StatSN, in their order
 *   repair.c        initiator: SNACKs for PDUs that are missing
 *   await.c         target: Data-Outs that do not come
 *   order.c         data in any order, and R2Ts beyond the first few of a task
 *   tx.c            from the queues to the stage, and what follows when a PDU
 *                   is sent
 *   tx_target.c     Data-In and R2T PDUs of put_data and get_data
 *   tx_initiator.c  SCSI Command and Data-Out PDUs
 *   control.c       control-type PDUs: queue, numbers, staging
 *   retain.c        target: what was sent and is not acknowledged yet
 *   resend.c        target: Data-Ins and responses that are sent again
 *   snack.c         target: SNACK Requests
 *   adopt.c         target: tasks that began on another connection
 *   stage.h         the stage: encoded PDUs as iovecs; stage.c: digests, padding
 *   fate.c          what ends a connection
 * No two of these files call each other, directly or through others.
 */
#ifndef DATAMOVER_TCP_INTERNAL_H
#define DATAMOVER_TCP_INTERNAL_H

#include <assert.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/list.h"
#include "base/serial.h"
#include "datamover/impl.h"
#include "datamover/tcp/dmtcp.h"

/* ---- entries of the send queues ---- */

enum tx_kind {
	TX_CONTROL, /* a struct dmtcp_control */
	TX_TASK,    /* a struct dmtcp_task */
};

struct tx_node {
	struct list link; /* txq or dataq */
	enum tx_kind kind;
};

/* ---- a task's share ---- */

/* The bursts that a task has room for; order.c has the memory of further ones. */
#define MAX_R2T 4
/* A target sends no more R2Ts of a task at once even if the negotiated number is
 * larger (§13.17): these request more data than a connection transfers at a time. */
#define TARGET_R2TS 64

struct dmtcp_islands;
struct dmtcp_queue;
struct dmtcp_bursts;

/* An R2T that waits at an initiator. */
struct dmtcp_r2t {
	uint32_t ttt, sn, off, end;
	uint32_t fresh; /* as of struct burst */
};

/* A burst of solicited data: one R2T and its Data-Outs. */
struct burst {
	uint32_t ttt;
	uint32_t sn;	   /* R2TSN */
	uint32_t off, end; /* target: still to receive; initiator: to send */
	/* target, DataPDUInOrder=No: what came after `off`, or NULL */
	struct dmtcp_islands *islands;
	uint32_t datasn; /* of the next Data-Out */
	bool active;
	/* target */
	bool announce;	/* the R2T is still to be sent */
	bool again;	/* ... was sent, and is to be sent again (SNACK) */
	uint8_t rounds; /* Recovery R2Ts for this range so far */
	uint32_t start; /* offset in the R2T */
	/* initiator, DataSequenceInOrder=No: bytes that no earlier R2T asked for */
	uint32_t fresh;
	struct lost {
		uint32_t from, to; /* lost bytes; none if from == to */
	} lost;
};

/* The bursts of a target's task after the first MAX_R2T. */
struct dmtcp_bursts {
	struct list link; /* dmtcp_conn.rx.order.sets */
	size_t size;
	unsigned n;
	struct burst at[];
};

enum unsolicited {
	UNSOL_NONE, /* no write, or all unsolicited data were received */
	UNSOL_OPEN, /* more unsolicited Data-Outs may come */
};

struct target_task {
	/* put_data */
	struct bufv data;
	uint32_t data_off;  /* Buffer Offset of data's first byte */
	uint32_t data_done; /* bytes of data staged */
	uint32_t datasn;
	bool putting;
	bool has_status;  /* the last Data-In carries the status below */
	bool quiet;	  /* a SCSI Response follows: no DM_PUT */
	bool acked;	  /* the status is acknowledged (retain.c) */
	bool mixed;	  /* PDUs from ack_sn on do not all hold seg bytes */
	bool unsol_again; /* get_data of lost unsolicited data */
	uint8_t status, resid_flags;
	uint32_t resid, statsn;
	/* unsolicited data */
	enum unsolicited unsol;
	uint32_t unsol_off, unsol_datasn;
	/* get_data */
	bool getting;
	uint16_t slot;		    /* of dmtcp_conn.gets */
	uint32_t get_next, get_end; /* not yet requested by an R2T */
	uint32_t r2tsn;
	int data_err;	      /* the first error in the write data */
	struct list r2t_link; /* dmtcp_conn.r2tq */
	/* ErrorRecoveryLevel 1: retain.c, resend.c */
	/* PDU ack_sn begins at byte ack_off of data; the PDUs before it are
	 * acknowledged (DataACK), those from it on hold seg bytes each */
	uint32_t ack_sn, ack_off, seg;
	struct {
		uint32_t resent; /* PDUs that SNACKs asked for */
		uint32_t tag;
	} snack;
	struct {
		struct dmtcp_islands *unsolicited; /* as of struct burst */
		struct dmtcp_bursts *more;	   /* bursts; or NULL */
	} order;
	struct {		  /* await.c */
		struct lost lost; /* of the unsolicited data */
		struct list link; /* recovery.awaited; or not set */
		uint32_t began,
			since; /* ticks: of the task, of its last data */
	} await;
};

struct initiator_task {
	uint8_t bhs[ISCSI_BHS_LEN]; /* of the SCSI Command */
	uint8_t ahs[44];	    /* extended CDB, bidirectional length */
	uint16_t ahs_len;
	uint32_t immediate; /* bytes sent with the command */
	uint32_t unsol_end; /* unsolicited Data-Outs go up to here */
	uint32_t unsol_off, unsol_datasn;
	uint32_t requested;   /* end of the last R2T; at first unsol_end */
	uint32_t next_datasn; /* of Data-In and R2T, one count (§11.8.2) */
	uint32_t data_ins;    /* number of Data-Ins received */
	bool command_pending, data_queued;
	bool stopped;  /* no Data-Outs: dm_stop_data */
	bool in_again; /* Data-Ins may bring bytes that came before */
	/* data in any order (order.c): what came after dm_task.in_done; what R2Ts
	 * asked for after `requested`; R2Ts that wait for a free burst */
	struct dmtcp_islands *in_islands, *asked;
	struct dmtcp_queue *queue;
	/* where the next Data-In begins: of a sequence, if sequences have no order */
	uint32_t in_next;
	bool in_sequence;	 /* ... which has begun */
	uint8_t retries;	 /* of the command */
	uint16_t again;		 /* R2Ts for data that were asked for before */
	struct dmtcp_late *late; /* response that waits for staged data */
};

struct dmtcp_control;

struct dmtcp_task {
	struct tx_node node;
	struct dmtcp_control *response; /* target: queued, not yet staged */
	uint16_t staged;		/* PDUs of the task in the stage */
	bool releasing;			/* DM_RELEASED has to be reported */
	bool has_bursts; /* else there is nothing in `bursts` yet */
	union {
		struct target_task t;
		struct initiator_task i;
	};
	struct burst bursts[MAX_R2T]; /* see dmtcp_burst; not cleared */
};

_Static_assert(sizeof(struct dmtcp_task) <= DM_TASK_PRIVATE,
	       "raise DM_TASK_PRIVATE");
_Static_assert(offsetof(struct dmtcp_task, bursts) <= DM_TASK_CLEARED,
	       "raise DM_TASK_CLEARED");

static inline struct dmtcp_task *tcp_task(struct dm_task *t)
{
	return dm_task_share(t);
}

/* dmtcp_bursts_begin makes the first bursts of a task, which most tasks do not need. */
static inline void dmtcp_bursts_begin(struct dmtcp_task *p)
{
	if (!p->has_bursts)
		memset(p->bursts, 0, sizeof(p->bursts));
	p->has_bursts = true;
}

/* The bursts of a task are those with the numbers 0 to dmtcp_nbursts - 1. */
static inline unsigned dmtcp_nbursts(const struct dm_conn *c,
				     const struct dmtcp_task *p)
{
	if (!p->has_bursts)
		return 0;
	return c->role == ISCSI_TARGET && p->t.order.more
		       ? MAX_R2T + p->t.order.more->n
		       : MAX_R2T;
}

static inline struct burst *dmtcp_burst(struct dmtcp_task *p, unsigned i)
{
	return i < MAX_R2T ? &p->bursts[i] : &p->t.order.more->at[i - MAX_R2T];
}

/* dmtcp_burst_begin makes b the burst of an R2T that the initiator received. */
static inline void dmtcp_burst_begin(struct burst *b, const struct dmtcp_r2t *r)
{
	*b = (struct burst){ .ttt = r->ttt,
			     .sn = r->sn,
			     .off = r->off,
			     .end = r->end,
			     .fresh = r->fresh,
			     .active = true };
}

/* ---- control-type PDUs on their way out ---- */

struct dmtcp_control {
	union {
		struct tx_node node;
		struct dmtcp_control *next_spare;
	};
	struct dm_task *task; /* that this SCSI Response ends; or NULL */
	bool is_final_login;  /* digests begin after this PDU */
	/* retain.c: it stays on recovery.unacked after it was sent */
	bool retained, acked, resending;
	uint16_t staged; /* times in the stage, if retained */
	uint16_t resent;
	struct iscsi_pdu pdu;
	size_t ahs_len, size; /* size: bytes allocated, for the limit */
	uint8_t bytes[];      /* AHS, data */
};

/* Nodes with room for a response with sense data are reused, so that a command
 * costs no allocation. */
#define CONTROL_BYTES	   112
#define CONTROL_SPARES_MAX 256

/* ---- the stage: encoded PDUs that the transport has not taken yet ---- */

#define STAGE_PDUS 128
#define STAGE_IOVS 1100
/* The most pieces of one buffer; an empty stage has room for so many. */
#define MAX_PIECES  1024
#define STAGE_BYTES (1u << 20)
/* BHS and header digest; padding and data digest. The AHS is referenced. */
#define STAGE_HEADER  (ISCSI_BHS_LEN + ISCSI_DIGEST_LEN)
#define STAGE_TRAILER (4 + ISCSI_DIGEST_LEN)
/* With data digests read data are copied and summed in one pass. */
#define DIGEST_COPY_BYTES (512u << 10)

struct stage_pdu {
	size_t end;	      /* the PDU ends before this byte of the stage */
	struct dm_task *task; /* or NULL */
	struct dmtcp_control *control; /* freed when the PDU is sent; or NULL */
	bool notify;		       /* report `what` when the PDU is sent */
	enum dm_completion what;
};

struct stage {
	struct stage_pdu pdus[STAGE_PDUS];
	struct iovec iov[STAGE_IOVS];
	unsigned npdus, pdu;  /* number staged, first that is not sent */
	unsigned niov, first; /* the same of the iovecs */
	size_t bytes, sent;
	/* headers and trailers, one after the other: those of PDUs without data
	 * need one iovec together */
	uint8_t headers[STAGE_PDUS * (STAGE_HEADER + STAGE_TRAILER)];
	size_t header_bytes;
	size_t copied; /* bytes of dmtcp_conn.digest_copy */
};

/* ---- recovery within the connection ---- */

/* Data-Ins of a task, or one response, that a SNACK asked for. */
struct dmtcp_resend {
	struct list link; /* recovery.resends */
	struct dm_task *task;
	struct dmtcp_control *control; /* NULL: Data-Ins [sn, end) of task */
	uint32_t sn, end;
	uint32_t off; /* of sn, in the task's data */
};

/* ErrorRecoveryLevel 1 (RFC 7143 §7.1.5). */
struct recovery {
	bool on;
	/* target: tx_node.link of each PDU with a StatSN that was staged and is
	 * not acknowledged, in the order of StatSN: controls, and tasks whose
	 * last Data-In had the status */
	struct list unacked;
	uint32_t acked; /* ExpStatSN of the initiator */
	struct list resends;
	unsigned nresends;
	/* no R2T is sent before this PDU of txq, the response to a TASK REASSIGN
	 * (§7.2.2); NULL: none */
	const struct tx_node *first;
	struct list awaited; /* target_task.await.link: Data-Outs are due */
	/* await.c: ticks so far; the last one with write data; the newest task of
	 * those whose sequence ended; rx.out_bytes at the last tick */
	uint32_t tick, moved, newest;
	uint64_t seen_bytes;
	/* initiator */
	struct list early; /* answers.c: PDUs that wait for missing ones */
	size_t early_bytes;
	struct list repairs; /* repair.c: what is missing of each task */
	uint32_t asked; /* PDUs with a StatSN before it came, or were asked for */
	unsigned attempts; /* SNACKs for the same PDUs, without progress */
	xtime deadline;	   /* when to ask again */
};

/* ---- the connection ---- */

/* What the next bytes of the stream are. rx_state.h has the transitions and
 * what holds in each state. */
enum rx_state {
	RX_HEADER,  /* BHS, AHS, header digest */
	RX_PAYLOAD, /* the data segment */
	RX_TRAILER, /* padding and digest of the data segment */
	RX_HELD,    /* a payload that has no place until dm_resume */
	RX_RESUMED, /* it has one: the look-ahead buffer is read first */
	RX_STOPPED, /* nothing more is read: fate or `leaving` is set */
};

struct rx {
	enum rx_state state; /* changed by dmtcp_rx_go only */
	uint8_t *look;	     /* look-ahead; bytes [head, tail) are unread */
	size_t look_size, head, tail;
	unsigned large; /* counts down the PDUs after a large payload */
	/* the PDU that is being received; nothing in RX_HEADER */
	struct iscsi_pdu pdu;
	uint8_t bhs[ISCSI_BHS_LEN];
	uint8_t ahs[ISCSI_MAX_AHS_LEN];
	/* payload bytes in the iovecs that rx_where returned last; if there was no
	 * input, no call of rx_done followed */
	size_t direct;
	uint32_t left; /* payload bytes still to receive */
	uint32_t crc;
	struct dm_task *task; /* payload goes to task->out (or ->in) ... */
	uint32_t at;	      /* ... at this offset; NULL: see collect */
	struct burst *burst;  /* of a solicited Data-Out */
	uint8_t *collect;     /* payload of a control PDU; NULL: discard it */
	uint32_t collected;
	int drop_err; /* the PDU is received, then dropped for this error */
	bool is_control;
	bool is_spent;	  /* the driver gives no more time in this turn */
	unsigned unasked; /* PDUs since it was asked */
	/* of the connection */
	uint64_t out_bytes; /* write data received */
	struct {
		struct list sets; /* memory of order.c */
		size_t bytes;
	} order;
};

/* Solicited data: the slot in a TTT leads to the task of a Get_Data. */
struct solicited {
	struct dm_task **task; /* n slots */
	uint16_t *next_free;   /* the list of free slots, which ends with n */
	uint32_t n, first_free;
	uint32_t salt; /* of the last TTT */
	struct dm_strays strays;
};

/* Which digests PDUs of one direction have. */
struct digests {
	bool header, data;
};

struct dmtcp_conn {
	struct dm_conn dm;
	struct stream_host *host;
	struct dmtcp_config cfg;
	struct iscsi_params params;
	/* set when the login ends */
	struct digests rx_digest, tx_digest;
	bool full_feature;
	uint32_t max_recv_dsl, max_send_dsl;
	struct dm_resources resources;
	/* RDMA mode follows: nothing more is received (leaving), and when all
	 * PDUs were sent, rdma.drained is called (left) */
	bool leaving, left;
	/* end of the connection */
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
	struct {
		size_t queued; /* bytes */
		struct dmtcp_control *spares;
		unsigned nspares;
	} controls;
	uint32_t tx_statsn; /* target: follows the last StatSN sent */
	uint32_t rx_statsn; /* initiator: the next StatSN expected */
	struct recovery recovery;
	/* No SCSI Command has come or gone since the login or the last dm_rest: the
	 * connection keeps little memory, and a stage only while it sends. */
	bool resting;
	struct stage *stage;   /* NULL: resting, nothing is staged */
	uint8_t *digest_copy;  /* DIGEST_COPY_BYTES, or NULL */
	struct solicited gets; /* target */
	struct dmtcp_stats stats;
};

/* fate.c */
/* dmtcp_kick asks the driver for its next turn; see struct stream_host. */
void dmtcp_kick(struct dmtcp_conn *c);
/* dmtcp_fail_conn drops the connection; err is reported unless an earlier
 * error is recorded. */
void dmtcp_fail_conn(struct dmtcp_conn *c, int err);
/* dmtcp_close_after_sent closes the connection when all queued PDUs are sent,
 * or after a fixed time. It stops receiving now. */
void dmtcp_close_after_sent(struct dmtcp_conn *c);
/* dmtcp_leave_stream stops receiving; when all queued PDUs are sent, dmtcp_tx_what
 * calls rdma.drained. */
void dmtcp_leave_stream(struct dmtcp_conn *c);

/*
 * order.c. *set (NULL: none) is what came of a range after its prefix, which ends at
 * `prefix`. dmtcp_order_add adds [from, to), part of which may be there already, moves
 * *prefix and sets *fresh to the number of bytes that are new. ERR_LIMIT; ERR_NOMEM.
 * dmtcp_order_has returns whether the islands have a byte of [from, to).
 */
int dmtcp_order_add(struct dmtcp_conn *c, struct dmtcp_islands **set,
		    uint32_t *prefix, uint32_t from, uint32_t to,
		    uint32_t *fresh);
bool dmtcp_order_has(const struct dmtcp_islands *s, uint32_t from, uint32_t to);
/* dmtcp_order_end returns where the last island ends, or the prefix. dmtcp_order_holes
 * returns how many bytes of [prefix, end) are missing; the last hole ends at *last. */
uint32_t dmtcp_order_end(const struct dmtcp_islands *s, uint32_t prefix);
uint32_t dmtcp_order_holes(const struct dmtcp_islands *s, uint32_t prefix,
			   uint32_t end, uint32_t *last);
void dmtcp_order_free(struct dmtcp_conn *c, struct dmtcp_islands **s);
/* dmtcp_queue_push adds an R2T to the queue (NULL: empty), ERR_LIMIT, ERR_NOMEM;
 * dmtcp_queue_pop takes the first one, false: there is none. */
int dmtcp_queue_push(struct dmtcp_conn *c, struct dmtcp_queue **queue,
		     const struct dmtcp_r2t *r);
bool dmtcp_queue_pop(struct dmtcp_conn *c, struct dmtcp_queue **queue,
		     struct dmtcp_r2t *r);
unsigned dmtcp_queue_len(const struct dmtcp_queue *q);
void dmtcp_queue_free(struct dmtcp_conn *c, struct dmtcp_queue **queue);
/* dmtcp_bursts_new returns n bursts, NULL: no memory, or the peer's share is used up. */
struct dmtcp_bursts *dmtcp_bursts_new(struct dmtcp_conn *c, unsigned n);
void dmtcp_bursts_free(struct dmtcp_conn *c, struct dmtcp_bursts **b);
/* dmtcp_order_free_all frees all of these at the end of the connection. */
void dmtcp_order_free_all(struct dmtcp_conn *c);
/* dmtcp_order_forget frees what an initiator has of t. */
void dmtcp_order_forget(struct dmtcp_conn *c, struct dm_task *t);

/* rx.c; the first two are entries of dmtcp_stream_ops */
unsigned dmtcp_rx_where(void *core, struct iovec *iov, unsigned max);
void dmtcp_rx_done(void *core, size_t n, xtime now);
/* dmtcp_rx_rest makes the look-ahead buffer small. */
void dmtcp_rx_rest(struct dmtcp_conn *c);
/* dmtcp_rx_resume: the payload that was held has a place, or is dropped. */
void dmtcp_rx_resume(struct dmtcp_conn *c);
/* dmtcp_rx_catch_up reads the look-ahead buffer of a connection that was
 * resumed; for every other connection it does nothing. */
void dmtcp_rx_catch_up(struct dmtcp_conn *c);
/* dmtcp_rx_forget discards the rest of the payload that t is receiving; t is
 * released. */
void dmtcp_rx_forget(struct dmtcp_conn *c, const struct dm_task *t);

/* rx_target.c */
/* dmtcp_target_header processes the header of a SCSI Command or Data-Out and
 * sets in c->rx where its payload goes; dmtcp_target_complete processes the PDU
 * when its payload is received. */
void dmtcp_target_header(struct dmtcp_conn *c);
void dmtcp_target_complete(struct dmtcp_conn *c);
int dmtcp_get_data(struct dm_conn *dm, struct dm_task *t, uint32_t offset,
		   uint32_t len);
/* dmtcp_get_forget ends a Get_Data of t without a completion. */
void dmtcp_get_forget(struct dmtcp_conn *c, struct dm_task *t);
/* dmtcp_get_abort does so for a task that is aborted, and remembers its open
 * sequences: their Data-Outs, which the initiator may have sent by now, are
 * dropped without a Reject. */
void dmtcp_get_abort(struct dmtcp_conn *c, struct dm_task *t);

/* dmtcp_target_expire asks again for write data that did not come in time. */
void dmtcp_target_expire(struct dmtcp_conn *c);

/* await.c; without effect at ErrorRecoveryLevel 0 */
/* dmtcp_await: Data-Outs of t are due from now on. dmtcp_await_no_more: none are. */
void dmtcp_await(struct dmtcp_conn *c, struct dm_task *t);
void dmtcp_await_no_more(struct dm_task *t);
/* dmtcp_await_came: a Data-Out of t came; dmtcp_await_ended: the last one of a
 * sequence. */
static inline void dmtcp_await_came(const struct dmtcp_conn *c,
				    struct dm_task *t)
{
	tcp_task(t)->t.await.since = c->recovery.tick;
}
void dmtcp_await_ended(struct dmtcp_conn *c, const struct dm_task *t);
/* dmtcp_await_tick: a tick has passed; false: nothing can be overdue.
 * dmtcp_await_overdue returns a task that has waited too long, or NULL. */
bool dmtcp_await_tick(struct dmtcp_conn *c);
struct dm_task *dmtcp_await_overdue(struct dmtcp_conn *c);

/* rx_initiator.c */
/* These two do the same for Data-In; dmtcp_initiator_complete processes every
 * other PDU of a target, too. */
void dmtcp_initiator_header(struct dmtcp_conn *c);
void dmtcp_initiator_complete(struct dmtcp_conn *c);
/* dmtcp_initiator_damaged: the data of the PDU are damaged, and its header is not. */
void dmtcp_initiator_damaged(struct dmtcp_conn *c);

/* answers.c */
/* dmtcp_answer gives a PDU with a StatSN to the role, in its turn. t: the task of a SCSI
 * Response if the caller knows it, or NULL. ctl->bhs: NULL if the PDU was made from the
 * status in a Data-In. */
void dmtcp_answer(struct dmtcp_conn *c, struct dm_task *t,
		  const struct dm_control *ctl);
/* dmtcp_answers_go_on: missing data came; PDUs that waited for them are delivered. */
void dmtcp_answers_go_on(struct dmtcp_conn *c);
/* dmtcp_answers_missing returns how many PDUs with a StatSN are missing in a row. */
uint32_t dmtcp_answers_missing(const struct dmtcp_conn *c);
/* A response that was received while PDUs of its task are in the stage waits.
 * dmtcp_late_deliver gives it to the role, dmtcp_late_free forgets it, and
 * dmtcp_late_drop_all forgets all responses that wait. */
void dmtcp_late_deliver(struct dmtcp_conn *c, struct dm_task *t);
void dmtcp_late_free(struct dm_task *t);
void dmtcp_late_drop_all(struct dmtcp_conn *c);

/* repair.c; SNACKs are sent at ErrorRecoveryLevel 1 only */
/* dmtcp_repair_statsn asks for the PDUs before this StatSN that are missing; is_here:
 * the PDU with it came. dmtcp_repair_status asks for the PDU with this StatSN, which
 * is damaged. */
void dmtcp_repair_statsn(struct dmtcp_conn *c, uint32_t statsn, bool is_here);
void dmtcp_repair_status(struct dmtcp_conn *c, uint32_t statsn);
/* dmtcp_repair_lost asks for the Data-Ins or R2Ts [from, to) of t. */
void dmtcp_repair_lost(struct dmtcp_conn *c, struct dm_task *t, uint32_t from,
		       uint32_t to);
/* dmtcp_repair_came: the PDU sn of t has come, and is not missing any more if it was. */
void dmtcp_repair_came(struct dmtcp_conn *c, const struct dm_task *t,
		       uint32_t sn);
/* dmtcp_repair_rejected: the target has rejected this SNACK Request for t. */
void dmtcp_repair_rejected(struct dmtcp_conn *c, const struct dm_task *t,
			   const struct iscsi_snack *s);
/* dmtcp_repair_received: read data of t came. */
void dmtcp_repair_received(struct dmtcp_conn *c, const struct dm_task *t);
/* dmtcp_repair_is_gap returns whether sn of t is missing; dmtcp_repair_is_missing,
 * whether anything of t is. */
bool dmtcp_repair_is_gap(const struct dmtcp_conn *c, const struct dm_task *t,
			 uint32_t sn);
bool dmtcp_repair_is_missing(const struct dmtcp_conn *c,
			     const struct dm_task *t);
/* dmtcp_repair_ack: a Data-In of t has the A bit, with this tag and LUN. */
void dmtcp_repair_ack(struct dmtcp_conn *c, struct dm_task *t, uint32_t ttt,
		      uint64_t lun);
/* dmtcp_repair_progress: something that was missing came. */
void dmtcp_repair_progress(struct dmtcp_conn *c);
/* dmtcp_repair_forget: t ends. */
void dmtcp_repair_forget(struct dmtcp_conn *c, const struct dm_task *t);
void dmtcp_repair_free_all(struct dmtcp_conn *c);
/* dmtcp_repair_expire asks again for all that is missing; missing: of
 * dmtcp_answers_missing. */
void dmtcp_repair_expire(struct dmtcp_conn *c, uint32_t missing);
/* dmtcp_stage_acks stages the DataACKs that are due; false: the stage is full. */
bool dmtcp_stage_acks(struct dmtcp_conn *c);

/* tx.c; the first two are entries of dmtcp_stream_ops */
unsigned dmtcp_tx_what(void *core, struct iovec *iov, unsigned max);
void dmtcp_tx_done(void *core, size_t n, xtime now);
/* dmtcp_tx_drop_all empties the stage and the queues; no completion is
 * reported. */
void dmtcp_tx_drop_all(struct dmtcp_conn *c);

/* control.c */
/* dmtcp_queue_control copies ctl to the end of the queue. t: the task that a
 * SCSI Response ends, or NULL. final_login: digests begin after this PDU.
 * ERR_TOO_LONG; ERR_NOMEM; ERR_LIMIT: the connection is dropped because the
 * peer does not read. */
int dmtcp_queue_control(struct dmtcp_conn *c, struct dm_task *t,
			const struct dm_control *ctl, bool final_login);
/* dmtcp_stage_control stages q; false: there is no room. */
bool dmtcp_stage_control(struct dmtcp_conn *c, struct dmtcp_control *q);
void dmtcp_control_free(struct dmtcp_conn *c, struct dmtcp_control *q);
void dmtcp_spares_free(struct dmtcp_conn *c);
/* dmtcp_stage_again stages q, which is retained, once more; false: there is no
 * room. */
bool dmtcp_stage_again(struct dmtcp_conn *c, struct dmtcp_control *q);
/* dmtcp_control_new allocates a control PDU for the task's response; NULL: no
 * memory. */
struct dmtcp_control *dmtcp_control_new(struct dmtcp_conn *c, struct dm_task *t,
					const struct iscsi_pdu *pdu);

/* retain.c */
/* dmtcp_acknowledge takes the ExpStatSN of a request, between two PDUs: tasks end
 * (DM_RESPONSE_SENT) and responses are freed. */
void dmtcp_acknowledge(struct dmtcp_conn *c, uint32_t expstatsn);
/* dmtcp_retained_sent: the transport took one copy of q, which is retained. */
void dmtcp_retained_sent(struct dmtcp_conn *c, struct dmtcp_control *q);
/* dmtcp_ends_now returns, once, whether the status of t is acknowledged and none of
 * its PDUs is in the stage. */
bool dmtcp_ends_now(struct dm_task *t);
/* dmtcp_retained_free frees everything that is retained. */
void dmtcp_retained_free(struct dmtcp_conn *c);

/* resend.c */
/* dmtcp_may_resend counts n PDUs of t that are sent again; false: too many. */
bool dmtcp_may_resend(struct dm_task *t, uint32_t n);
/* dmtcp_data_again: the data of t are to be sent again, and do not change from now on.
 * ERR_UNSUPPORTED: they have changed; ERR_BUSY: and some were not sent yet. */
int dmtcp_data_again(struct dmtcp_conn *c, struct dm_task *t);
/* dmtcp_resend_data queues the Data-Ins [sn, end) of t; dmtcp_resend_control queues
 * q, which is retained. ERR_NOMEM; ERR_LIMIT: they were sent again too often. */
int dmtcp_resend_data(struct dmtcp_conn *c, struct dm_task *t, uint32_t sn,
		      uint32_t end);
int dmtcp_resend_control(struct dmtcp_conn *c, struct dmtcp_control *q);
/* dmtcp_offset_of returns the byte of the task's data at which the Data-In sn begins,
 * which was sent, or is the next to be sent, and is not acknowledged. */
uint32_t dmtcp_offset_of(const struct dmtcp_conn *c,
			 const struct target_task *tt, uint32_t sn);
/* dmtcp_resend_forget drops what is queued of t; t or control may be NULL. */
void dmtcp_resend_forget(struct dmtcp_conn *c, const struct dm_task *t,
			 const struct dmtcp_control *q);
/* dmtcp_stage_resend stages the first entry and removes it; false: the stage is
 * full. */
bool dmtcp_stage_resend(struct dmtcp_conn *c);

/* snack.c */
int dmtcp_snack(struct dm_conn *dm, const struct iscsi_pdu *snack,
		uint32_t *next);

/* adopt.c */
void dmtcp_adopt(struct dm_conn *dm, struct dm_task *t, uint32_t exp_datasn,
		 const struct dm_remote *remote);

/* stage.c; stage.h has the rest */
/* dmtcp_stage_open makes the stage empty; false: no memory. dmtcp_stage_free frees it. */
bool dmtcp_stage_open(struct dmtcp_conn *c);
void dmtcp_stage_free(struct dmtcp_conn *c);

/* dmtcp_pdu_len returns how many of `left` bytes the next data PDU takes. All
 * PDUs of a sequence but the last one hold whole words (§11.7.7). */
static inline uint32_t dmtcp_pdu_len(uint32_t left, uint32_t most)
{
	return left <= most ? left : most & ~3u;
}

/* tx_target.c, tx_initiator.c: these stage the PDUs of the first task of their
 * queue and remove the task from the queue; false: the stage is full. */
bool dmtcp_stage_data_in(struct dmtcp_conn *c, struct dm_task *t);
/* dmtcp_stage_one_data_in stages the Data-In sn, which begins at byte off of the
 * task's data; `most` limits its length. Returns the length; 0: the stage is
 * full. */
uint32_t dmtcp_stage_one_data_in(struct dmtcp_conn *c, struct dm_task *t,
				 uint32_t sn, uint32_t off, uint32_t most);
/* dmtcp_data_in_most returns the most bytes of a Data-In at this moment. */
static inline uint32_t dmtcp_data_in_most(const struct dmtcp_conn *c)
{
	return c->tx_digest.data ? MIN(c->max_send_dsl, DIGEST_COPY_BYTES)
				 : c->max_send_dsl;
}
bool dmtcp_stage_r2ts(struct dmtcp_conn *c, struct dm_task *t);
bool dmtcp_stage_command(struct dmtcp_conn *c, struct dm_task *t);
bool dmtcp_stage_data_out(struct dmtcp_conn *c, struct dm_task *t);
int dmtcp_put_data(struct dm_conn *dm, struct dm_task *t,
		   const struct bufv *data, uint32_t offset,
		   const struct iscsi_pdu *response);
int dmtcp_send_command(struct dmtcp_conn *c, struct dm_task *t,
		       const struct dm_control *ctl);
int dmtcp_retry(struct dm_conn *dm, struct dm_task *t);
bool dmtcp_is_sending(const struct dm_conn *dm, struct dm_task *t);
/* dmtcp_stop_data is dm_stop_data. */
void dmtcp_stop_data(struct dm_conn *dm, struct dm_task *t, bool stop);

/* dmtcp_takes_statsn returns whether this PDU of a target advances StatSN. R2Ts
 * and NOP-Ins that answer no NOP-Out name the next StatSN without advancing it
 * (§11.8.3, §11.19.2); Data-Ins without status have none. */
static inline bool dmtcp_takes_statsn(const struct iscsi_pdu *p)
{
	switch (p->op) {
	case ISCSI_R2T:
		return false;
	case ISCSI_DATA_IN:
		return p->data.status_present;
	case ISCSI_NOP_IN:
		return p->itt != ISCSI_RESERVED_TAG;
	default:
		return true;
	}
}

#endif
