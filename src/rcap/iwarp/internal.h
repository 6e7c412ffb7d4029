/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * internal.h: a software iWARP connection.
 *
 *   conn.c     the object, the driver's calls, the provider's table, the end
 *   startup.c  MPA Request and Reply, Ready To Receive
 *   rx.c       octets to FPDUs: length, markers, CRC, where payload goes
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

enum iwarp_phase {
	PHASE_REQUEST_OUT,  /* active: our request goes out */
	PHASE_REPLY_WAIT,   /* active */
	PHASE_REQUEST_WAIT, /* passive */
	PHASE_ULP,	    /* passive: the user thinks about it */
	PHASE_REPLY_OUT,    /* passive: our reply goes out */
	PHASE_FIRST_WAIT,   /* passive: no FPDU before the peer's first */
	PHASE_FULL,	    /* full operation */
	PHASE_OVER,	    /* only what is staged goes out still */
	PHASE_DEAD,	    /* nothing more */
};

/* head of an FPDU as it is read: length, DDP, RDMAP */
#define RX_HEAD_MAX (MPA_LENGTH_LEN + DDP_HEADER_MAX)

/* pad and CRC of one FPDU, length and tagged header of the next */
#define RX_BETWEEN (3 + MPA_CRC_LEN + MPA_LENGTH_LEN + DDP_TAGGED_LEN)

enum rx_stage {
	RX_HEAD,
	RX_PAYLOAD,
	RX_TAIL
};

struct iwarp_rx {
	struct mpa_stream s;
	/* look-ahead: octets read but not yet looked at: [at, end) */
	uint8_t *buf;
	size_t cap, at, end;
	/* the FPDU being read */
	enum rx_stage stage;
	uint64_t start; /* position of its length field */
	uint32_t crc;
	uint8_t head[RX_HEAD_MAX];
	unsigned head_have, head_need;
	uint8_t tail[3 + MPA_CRC_LEN];
	unsigned tail_have, tail_need;
	uint8_t marker[MPA_MARKER_LEN];
	unsigned marker_have;
	size_t ulpdu_len, left; /* left: payload not yet placed */
	unsigned large; /* > 0: this or one of the last is read in place */
	/* its segment */
	struct rdmap_header h;
	int refused; /* -TERM_...: it may do nothing; its payload is dropped */
	bool marker_lied;	 /* the same, if its CRC is right */
	const struct bufv *dest; /* NULL: dropped */
	size_t dest_off;
	/* guessed: the next segment, where it goes if it is like this one */
	struct {
		const struct bufv *dest;
		size_t off, len; /* in dest; len 0: nothing is guessed */
		size_t before_len;
		uint8_t before[RX_BETWEEN], behind[RX_BETWEEN];
	} guess;
	struct iovec recv_iov; /* dest of a Send: what is left of a receive */
	struct bufv recv_v;
	/* untagged queues */
	uint32_t msn[DDP_QN_COUNT]; /* of the message under way, or the next */
	uint32_t mo;		    /* queue 0: octets of it that are here */
	bool send_begun;	    /* a message is under way */
	uint8_t send_opcode;	    /* its opcode */
	uint8_t terminate[RDMAP_TERMINATE_MAX];
};

/* A Read or Atomic Request of the peer's that we answer. */
struct iwarp_read {
	struct rdmap_header h;
	uint32_t sent; /* octets of a Read */
};

#define TX_PIECES 512
#define TX_BATCH  (256u << 10) /* stays in the cache from CRC to send */
#define TX_ARENA  (32u << 10)

/* Bytes of a batch whose memory its owner wanted back. */
struct iwarp_detached {
	struct iwarp_detached *next;
	uint8_t bytes[];
};

struct iwarp_tx {
	struct mpa_stream s; /* pos: octets staged since full operation */
	uint64_t taken;	     /* octets the transport took */
	struct iovec iov[TX_PIECES];
	unsigned n, first;
	uint8_t *arena; /* headers, pads, CRCs, markers of a batch */
	size_t used;
	uint8_t *copies; /* unstable payload of a batch; made when needed */
	size_t copied;
	bool has_responses;		 /* the batch refers to regions */
	struct iwarp_detached *detached; /* what an invalidated region held */
	/* the message under way */
	struct rcap_wr *wr; /* or */
	bool responding;    /* the oldest of the reads */
	bool response_next; /* whose turn it is between the two */
	uint32_t msn[DDP_QN_COUNT];
	bool term_wanted, rtr_wanted;
	bool rtr_read_out; /* its response is no work request's */
	uint16_t term;	   /* reason */
	uint8_t term_head[DDP_HEADER_MAX];
	size_t term_head_len; /* of the segment at fault */
	uint16_t term_segment_len;
};

struct iwarp {
	struct rcap_qp qp; /* first */
	struct iwarp_config cfg;
	struct stream_host *host;
	enum iwarp_phase phase;
	xtime now, deadline;
	bool woken; /* octets handed in at the start were looked at */
	/* start-up */
	uint8_t frame[MPA_FRAME_LEN + MPA_PRIVATE_MAX];
	size_t frame_len, frame_sent;
	struct mpa_frame request;
	struct mpa_terms terms;
	uint8_t private_data[MPA_PRIVATE_MAX]; /* ours, for the request; then
						* a rejection's */
	struct rcap_cm rejection;
	struct iwarp_rx rx;
	struct iwarp_tx tx;
	struct mr_table *mrs;
	/* wq.c */
	struct list sq;	    /* posted, not yet wholly staged */
	struct list flight; /* staged, not completed: in the order of posts */
	struct list recvs;
	struct rcap_wr **reads; /* ours that wait for responses: a ring */
	unsigned reads_first, reads_n;
	struct iwarp_read *answers; /* the peer's: a ring of terms.ird */
	unsigned answers_first, answers_n;
	/* the end */
	uint64_t closing_mark; /* octets moved when the deadline was set */
	int err;
	char why[160];
	struct iwarp_stats stats;
};

static inline void iwarp_kick(struct iwarp *c)
{
	c->host->kick(c->host);
}

/* conn.c: iwarp_die ends the connection without another word; iwarp_fail ends
 * it with a Terminate of that reason where one can be sent. Both take the
 * first call's reason. iwarp_fail names the headers of the segment that came
 * in last; iwarp_fail_answer those of a request (RFC 5040 §4.8). */
void iwarp_die(struct iwarp *c, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void iwarp_fail(struct iwarp *c, uint16_t reason, int err);
void iwarp_fail_answer(struct iwarp *c, uint16_t reason,
		       const struct iwarp_read *a);
bool iwarp_is_full(const struct iwarp *c); /* FPDUs may come in */

/* startup.c */
void iwarp_startup_begin(struct iwarp *c);
void iwarp_startup_input(struct iwarp *c);
unsigned iwarp_startup_tx(struct iwarp *c, struct iovec *iov);
void iwarp_startup_sent(struct iwarp *c, size_t n);
int iwarp_startup_accept(struct iwarp *c, const struct rcap_cm *cm);
int iwarp_startup_reject(struct iwarp *c, const struct rcap_cm *cm);
void iwarp_startup_first(struct iwarp *c); /* the peer's first FPDU is here */

/* rx.c */
unsigned iwarp_rx_where(struct iwarp *c, struct iovec *iov, unsigned max);
void iwarp_rx_done(struct iwarp *c, size_t n);
size_t iwarp_rx_likely(const struct iwarp *c);
void iwarp_rx_consume(struct iwarp *c);

/* place.c */
/* iwarp_place decides on the segment c->rx.h with len octets of payload: sets
 * rx.dest (and dest_off), or returns -TERM_... */
int iwarp_place(struct iwarp *c, size_t len);
/* iwarp_lend: a whole message is at p, and its receive may be told so. */
bool iwarp_lend(struct iwarp *c, const uint8_t *p, size_t len);
/* iwarp_replace looks again, before more of it is read: regions go. */
void iwarp_replace(struct iwarp *c);
/* iwarp_may_guess: all of the destination is undefined for now. */
bool iwarp_may_guess(const struct iwarp *c);
/* iwarp_placed: all of it is in place and its CRC is right. -TERM_... */
int iwarp_placed(struct iwarp *c, size_t len);

/* tx.c */
unsigned iwarp_tx_what(struct iwarp *c, struct iovec *iov, unsigned max);
void iwarp_tx_done(struct iwarp *c, size_t n);
bool iwarp_tx_idle(const struct iwarp *c); /* nothing staged or to stage */
/* iwarp_tx_detach: memory's owner wants it back although a batch still names
 * it: what is left of it is copied. ERR_NOMEM. */
int iwarp_tx_detach(struct iwarp *c, const struct bufv *memory);
void iwarp_tx_reset(struct iwarp *c);

/* wq.c */
int iwarp_wq_new(struct iwarp *c);
void iwarp_wq_free(struct iwarp *c);
void iwarp_post(struct rcap_qp *qp, struct rcap_wr *const *wr, unsigned n);
void iwarp_post_recv(struct rcap_qp *qp, struct rcap_recv *r);
/* iwarp_wq_next takes the next request to stage off the queue; NULL: none, or
 * a Read has to wait. */
struct rcap_wr *iwarp_wq_next(struct iwarp *c);
bool iwarp_wq_has_next(const struct iwarp *c);
/* iwarp_wq_staged: all of wr is staged, and out when the transport took `end`
 * octets; Reads: when their response is here. */
void iwarp_wq_staged(struct iwarp *c, struct rcap_wr *wr, uint64_t end);
struct rcap_wr *iwarp_wq_oldest_read(const struct iwarp *c);
/* Bytes that are still to come in answer to our Reads. */
size_t iwarp_wq_owed(const struct iwarp *c);
void iwarp_wq_read_done(struct iwarp *c);
void iwarp_wq_complete(struct iwarp *c);
void iwarp_wq_flush(struct iwarp *c);

/* iwarp_wq_is_asked: it is done when its response is here. */
bool iwarp_wq_is_asked(const struct rcap_wr *wr);

/* atomic.c */
/* iwarp_atomic_word: the 8 octets at off; NULL: not in one piece, or not
 * aligned (RFC 7306 §5.1). */
uint64_t *iwarp_atomic_word(const struct bufv *memory, size_t off);
/* iwarp_atomic_do does what h asks for; returns what was there. */
uint64_t iwarp_atomic_do(uint64_t *word, const struct rdmap_header *h);

#endif
