/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * internal.h: a software iWARP connection.
 *
 *   conn.c     the object, the driver's calls, the provider's table
 *   phase.c    the phases of a connection, and how it ends
 *   startup.c  MPA Request and Reply, Ready To Receive
 *   rx.c       octets to FPDUs: length, markers, CRC, where payload goes
 *   usual.c    the short way for FPDUs of small commands and responses
 *   usual_tx.c the same way out
 *   place.c    DDP and RDMAP: what a segment may do, and what it completes
 *   tx.c       FPDUs to octets: segments staged in batches
 *   wq.c       work requests from post to completion
 *   atomic.c   RFC 7306's operations on memory
 */
#ifndef RCAP_IWARP_INTERNAL_H
#define RCAP_IWARP_INTERNAL_H

#include "base/err.h"
#include "rcap/iwarp/iwarp.h"
#include "rcap/iwarp/mr.h"
#include "rcap/iwarp/rdmap.h"

/* Only iwarp_go changes the phase of a connection; phase.c has the table of
 * allowed transitions. */
enum iwarp_phase {
	PHASE_NEW,	    /* within iwarp_new */
	PHASE_REQUEST_OUT,  /* active: our request is being sent */
	PHASE_REPLY_WAIT,   /* active */
	PHASE_REQUEST_WAIT, /* passive */
	PHASE_ULP,	    /* passive: the user has to accept or reject */
	PHASE_REPLY_OUT,    /* passive: our reply is being sent */
	PHASE_FIRST_WAIT,   /* passive: the peer has to send the first FPDU */
	PHASE_FULL,	    /* full operation */
	PHASE_OVER,	    /* octets that are staged are still sent */
	PHASE_DEAD,	    /* no octet is sent or received */
};

/* start of an FPDU: length, DDP header, RDMAP header */
#define RX_HEAD_MAX (MPA_LENGTH_LEN + DDP_HEADER_MAX)

/* pad and CRC of one FPDU, length and tagged header of the next */
#define RX_BETWEEN (3 + MPA_CRC_LEN + MPA_LENGTH_LEN + DDP_TAGGED_LEN)

enum rx_stage {
	RX_HEAD,
	RX_PAYLOAD,
	RX_TAIL
};

/* Segments of a message that are received after the current one in one call. */
#define RX_GUESS_MAX 7

/* Read this much after the last segment of a large message: one or two short
 * Sends. */
#define RX_LOOK_SMALL 256

struct iwarp_rx {
	struct mpa_stream s;
	/* octets received and not yet processed: [at, end) of buf */
	struct {
		uint8_t *buf;
		size_t cap, at, end;
		bool rests; /* iwarp_rest: to be replaced, with tx.arena */
	} ahead;
	/* the current FPDU */
	enum rx_stage stage;
	uint64_t start; /* stream position of its length field */
	uint32_t crc;
	/* its length field and headers, then pad and CRC; have: octets received */
	struct {
		uint8_t bytes[RX_HEAD_MAX];
		unsigned have, need;
	} head;
	struct {
		uint8_t bytes[3 + MPA_CRC_LEN];
		unsigned have, need;
	} tail;
	/* the marker that is being received; it may be in any FPDU */
	struct {
		uint8_t bytes[MPA_MARKER_LEN];
		unsigned have;
	} marker;
	size_t ulpdu_len, left; /* left: payload still to place */
	/* > 0: this FPDU or one of the last is received in place */
	unsigned large;
	bool is_spent;	  /* the driver gives no more time in this turn */
	unsigned unasked; /* FPDUs since it was asked */
	/* its segment */
	struct rdmap_header h;
	int refused; /* -TERM_...: its segment is invalid; drop the payload */
	bool marker_wrong;	 /* a marker is wrong; drop the payload */
	const struct bufv *dest; /* NULL: drop the payload */
	size_t dest_off;
	/* the places where the next n segments are received if they follow
	 * this one; before each of them, the octets between two segments */
	struct {
		const struct bufv *dest;
		size_t off; /* of the first one, in dest */
		size_t len[RX_GUESS_MAX];
		unsigned n;    /* 0: no guess */
		unsigned most; /* segments to guess next time */
		size_t before_len;
		uint8_t before[RX_GUESS_MAX][RX_BETWEEN];
		uint8_t behind[RX_LOOK_SMALL];
	} guess;
	struct iovec recv_iov; /* dest of a Send: the rest of a receive */
	struct bufv recv_v;
	/* the untagged queues of the peer's messages */
	struct {
		/* of the current or the next message */
		uint32_t msn[DDP_QN_COUNT];
		uint32_t mo;	 /* queue 0: octets of it that have arrived */
		bool send_begun; /* a message has begun and not ended */
		uint8_t send_opcode; /* its opcode */
	} queues;
	uint8_t terminate[RDMAP_TERMINATE_MAX];
};

/* A Read or Atomic Request of the peer that we answer. */
struct iwarp_read {
	struct rdmap_header h;
	uint32_t sent; /* octets of a Read */
};

#define TX_PIECES 512
#define TX_BATCH  (512u << 10) /* stays in the cache from CRC to send */
#define TX_ARENA  (32u << 10)

/* Bytes of a batch, copied because the owner took their memory back. */
struct iwarp_detached {
	struct iwarp_detached *next;
	uint8_t bytes[];
};

struct iwarp_tx {
	struct mpa_stream s; /* pos: octets staged since full operation */
	uint64_t taken;	     /* octets the transport took */
	struct iovec iov[TX_PIECES];
	unsigned n, first;
	/* headers, pads, CRCs, markers of a batch; behind rx.ahead.buf */
	uint8_t *arena;
	size_t used;
	/* unstable payload of a batch; allocated on first use */
	uint8_t *copies;
	size_t copied;
	bool has_responses;		 /* the batch refers to regions */
	struct iwarp_detached *detached; /* copies of invalidated regions */
	/* the current message: */
	struct rcap_wr *wr; /* ours */
	bool responding;    /* or a response to the oldest of answers */
	bool response_next; /* a response comes before the next request */
	uint32_t msn[DDP_QN_COUNT];
	bool term_wanted, rtr_wanted;
	/* our Ready To Receive is a Read, still without response */
	bool rtr_read_out;
	uint16_t term; /* reason */
	uint8_t term_head[DDP_HEADER_MAX];
	size_t term_head_len; /* headers of the segment at fault */
	uint16_t term_segment_len;
};

struct iwarp {
	struct rcap_qp qp; /* first */
	struct iwarp_config cfg;
	struct stream_host *host;
	enum iwarp_phase phase;
	xtime now, deadline;
	bool first_taken; /* the octets given to iwarp_new have been processed */
	/* start-up */
	uint8_t frame[MPA_FRAME_LEN + MPA_PRIVATE_MAX];
	size_t frame_len, frame_sent;
	struct mpa_frame request;
	struct mpa_terms terms;
	/* of our request; later of the rejection */
	uint8_t private_data[MPA_PRIVATE_MAX];
	struct rcap_cm rejection;
	struct iwarp_rx rx;
	struct iwarp_tx tx;
	struct mr_table *mrs;
	/* wq.c */
	struct list sq; /* posted, not completely staged */
	/* staged, not completed; in the order of the posts */
	struct list flight;
	struct list recvs;
	/* our requests that wait for responses: a ring */
	struct rcap_wr **reads;
	unsigned reads_first, reads_n;
	struct iwarp_read *answers; /* requests of the peer: a ring */
	unsigned answers_first, answers_n;
	/* the end */
	struct {
		bool peer_first; /* the peer has until the deadline to close */
		uint64_t mark;	 /* octets moved when the deadline was set */
	} closing;
	int err;
	char why[160];
	struct iwarp_stats stats;
};

/* iwarp_kick asks the driver to call tx_what at the end of the turn. */
static inline void iwarp_kick(struct iwarp *c)
{
	c->host->kick(c->host);
}

/* limit of waiting for a peer that neither takes nor sends octets */
#define IWARP_CLOSING_MAX (5 * XTIME_S)

/* phase.c: iwarp_go enters a phase. Set all members on which the phase depends
 * before. From PHASE_DEAD to itself it has no effect. */
void iwarp_go(struct iwarp *c, enum iwarp_phase next);
/* iwarp_is_sane: the members of c are as its phase requires. */
bool iwarp_is_sane(const struct iwarp *c);
/* iwarp_die ends the connection without a Terminate. The following functions
 * end it with a Terminate if one can be sent. The reason of the first call
 * counts. */
void iwarp_die(struct iwarp *c, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* iwarp_fail names the headers of the last received segment in the Terminate,
 * iwarp_fail_answer those of a request (RFC 5040 §4.8). */
void iwarp_fail(struct iwarp *c, uint16_t reason, int err);
void iwarp_fail_answer(struct iwarp *c, uint16_t reason,
		       const struct iwarp_read *a);
/* iwarp_refuse: the MPA Reply of the peer is not acceptable. */
void iwarp_refuse(struct iwarp *c, uint16_t reason, int err);
/* iwarp_terminate: the user found an error. */
void iwarp_terminate(struct iwarp *c, int err, const char *why);
/* iwarp_is_full: FPDUs may arrive. */
static inline bool iwarp_is_full(const struct iwarp *c)
{
	return c->phase == PHASE_FULL || c->phase == PHASE_FIRST_WAIT;
}

/* startup.c: iwarp_startup_begin stages the MPA Request of the active end. */
void iwarp_startup_begin(struct iwarp *c);
/* iwarp_startup_input processes an MPA frame in the look-ahead. */
void iwarp_startup_input(struct iwarp *c);
/* iwarp_startup_tx: the rest of our frame; 0: it has been sent. */
unsigned iwarp_startup_tx(struct iwarp *c, struct iovec *iov);
/* iwarp_startup_sent: the transport took n octets of our frame. */
void iwarp_startup_sent(struct iwarp *c, size_t n);
/* iwarp_startup_accept, iwarp_startup_reject: the user's answer to
 * connect_request. ERR_WRONG_STATE: already answered. */
int iwarp_startup_accept(struct iwarp *c, const struct rcap_cm *cm);
int iwarp_startup_reject(struct iwarp *c, const struct rcap_cm *cm);
/* iwarp_startup_first: the first FPDU of the peer has arrived. */
void iwarp_startup_first(struct iwarp *c);

/* rx.c: iwarp_rx_where and iwarp_rx_done implement those of stream_ops. */
unsigned iwarp_rx_where(struct iwarp *c, struct iovec *iov, unsigned max);
void iwarp_rx_done(struct iwarp *c, size_t n);
/* iwarp_rx_likely: octets of a Write that the peer has not finished. */
size_t iwarp_rx_likely(const struct iwarp *c);
/* After so many FPDUs the driver is asked for the time. */
#define FPDUS_UNASKED 32

/* iwarp_rx_count_time notes that an FPDU was processed. False: the time of this turn is used up,
 * and the rest waits. */
static inline bool iwarp_rx_count_time(struct iwarp *c)
{
	if (++c->rx.unasked < FPDUS_UNASKED)
		return true;
	c->rx.unasked = 0;
	c->rx.is_spent = stream_is_spent(c->host, false);
	return !c->rx.is_spent;
}

/* iwarp_rx_consume processes the FPDUs in the look-ahead. */
void iwarp_rx_consume(struct iwarp *c);

/* usual.c: iwarp_take_usual handles the FPDUs from p on, within n octets, that
 * are whole Sends or segments of a Write, and right. Returns their length; what
 * follows them is left to rx.c. */
size_t iwarp_take_usual(struct iwarp *c, const uint8_t *p, size_t n);

/*  */
/* place.c: iwarp_place checks the segment c->rx.h with len octets of payload:
 * sets rx.dest (and dest_off), or returns -TERM_... */
int iwarp_place(struct iwarp *c, size_t len);
/* iwarp_lend: a complete message is at p. True: its receive takes it from
 * there, and no copy is needed. */
bool iwarp_lend(struct iwarp *c, const uint8_t *p, size_t len);
/* iwarp_replace checks the region of the current segment again, before more of
 * the segment is placed: a region may end at any time. */
void iwarp_replace(struct iwarp *c);
/* iwarp_may_guess: the whole destination is undefined until the message
 * ends. */
bool iwarp_may_guess(const struct iwarp *c);
/* iwarp_deliver_send: the Send of c->rx.h is complete in the first receive, with
 * len octets. 0 or -TERM_... */
int iwarp_deliver_send(struct iwarp *c, size_t len);
/* iwarp_placed: the segment is in place and its CRC is right. Completes what it
 * ends. 0 or -TERM_... */
int iwarp_placed(struct iwarp *c, size_t len);

/* tx.c: iwarp_tx_what and iwarp_tx_done implement those of stream_ops. */
unsigned iwarp_tx_what(struct iwarp *c, struct iovec *iov, unsigned max);
void iwarp_tx_done(struct iwarp *c, size_t n);
/* iwarp_tx_idle: no octet is staged, and no message has begun. */
bool iwarp_tx_idle(const struct iwarp *c);
/* iwarp_tx_detach: the owner takes memory back that a batch may refer to:
 * copies the unsent part. 0 or ERR_NOMEM. */
int iwarp_tx_detach(struct iwarp *c, const struct bufv *memory);
/* iwarp_tx_reset drops the batch. */
void iwarp_tx_reset(struct iwarp *c);

/* wq.c: iwarp_wq_new: 0 or ERR_NOMEM; iwarp_wq_free after a failure, too. */
int iwarp_wq_new(struct iwarp *c);
void iwarp_wq_free(struct iwarp *c);
/* iwarp_post, iwarp_post_recv: see rcap_ops. */
void iwarp_post(struct rcap_qp *qp, struct rcap_wr *const *wr, unsigned n);
void iwarp_post_recv(struct rcap_qp *qp, struct rcap_recv *r);
/* iwarp_wq_next takes the next request to stage from the queue; NULL: none, or
 * a Read has to wait. */
struct rcap_wr *iwarp_wq_next(struct iwarp *c);
/* iwarp_wq_has_next: a request waits and may be staged now. */
bool iwarp_wq_has_next(const struct iwarp *c);
/* iwarp_wq_staged: wr is staged completely. It completes when the transport has
 * taken `end` octets; a Read completes with its response. */
void iwarp_wq_staged(struct iwarp *c, struct rcap_wr *wr, uint64_t end);
/* iwarp_wq_oldest_read: our oldest request that waits for a response. */
struct rcap_wr *iwarp_wq_oldest_read(const struct iwarp *c);
/* iwarp_wq_owed: bytes that are missing of the responses to our Reads. */
size_t iwarp_wq_owed(const struct iwarp *c);
/* iwarp_wq_read_done: the oldest one got its response. */
void iwarp_wq_read_done(struct iwarp *c);
/* iwarp_wq_complete returns requests that are done, in order. */
void iwarp_wq_complete(struct iwarp *c);
/* iwarp_wq_flush returns all requests and receives with ERR_ABORTED. */
void iwarp_wq_flush(struct iwarp *c);

/*  */
/* atomic.c: iwarp_atomic_word: the 8 octets at off; NULL: not in one piece, or
 * not aligned (RFC 7306 §5.1). */
uint64_t *iwarp_atomic_word(const struct bufv *memory, size_t off);
/* iwarp_atomic_do carries out the operation of h; returns the old value. */
uint64_t iwarp_atomic_do(uint64_t *word, const struct rdmap_header *h);

#endif
