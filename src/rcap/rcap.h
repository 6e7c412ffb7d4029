/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rcap.h: the interface of an RDMA-capable protocol (RFC 7145 §1.1 "RCaP"): a
 * queue pair with posted receives, Sends, RDMA Writes and Reads; memory
 * regions; the connection manager's messages with private data. Providers:
 * rcap/iwarp on a byte stream, rcap/verbs on RDMA devices.
 *
 * Ownership: the provider borrows work requests, receives and the memory that
 * they name from the post until the up-call that returns them; it allocates
 * nothing per request. When the connection ends, the provider returns all of
 * them with ERR_ABORTED and calls `closed` after that.
 *
 * Threads: a queue pair belongs to one worker. Up-calls come from within the
 * driver's calls. The user may post from within an up-call, and must not free
 * the queue pair before `closed` has returned.
 */
#ifndef RCAP_RCAP_H
#define RCAP_RCAP_H

#include "base/bufv.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/list.h"
#include "base/trace.h"
#include "base/xtime.h"

/* ---- memory ---- */

/* Rights of the peer on a region. Local access is always allowed. */
#define RCAP_REMOTE_READ   0x1u
#define RCAP_REMOTE_WRITE  0x2u
#define RCAP_REMOTE_ATOMIC 0x4u /* only if qp->extended */
/* The peer writes the whole region, from its start on, and all of it is
 * undefined until the provider has reported the message that follows: the
 * provider may write any bytes to it before it knows their place, and so
 * receive more in one call. */
#define RCAP_UNDEFINED 0x8u

struct rcap_mr {
	uint32_t stag; /* the peer names the region by it */
	uint64_t base; /* tagged offset of the first byte */
	size_t len;
	void *provider; /* private to the provider */
};

/* ---- work requests ---- */

enum rcap_op {
	RCAP_SEND,
	RCAP_WRITE,
	RCAP_READ,
	/* only if qp->extended (RFC 7306); the wr carries all of their data */
	RCAP_IMMEDIATE, /* 8 octets that arrive as a separate message */
	RCAP_FETCH_ADD, /* on 8 octets of the peer's region: wr.stag, wr.to */
	RCAP_CMP_SWAP,
};

/* RFC 7306 §5.1: operands for the peer's 8 octets, and their old value. */
struct rcap_atomic {
	/* FETCH_ADD adds value field by field: mask has the top bit of each
	 * field set. CMP_SWAP stores value under mask if compare matches under
	 * compare_mask. */
	uint64_t value, mask, compare, compare_mask;
	uint64_t original; /* set by the provider before wr_done */
};

/* Send: raise a solicited event at the peer (RFC 5040 §4.3, SendSE). */
#define RCAP_SOLICITED 0x1u
/* Send: invalidate the peer's region wr.stag (Send with Invalidate). */
#define RCAP_INVALIDATE 0x2u
/* The memory may change while it is sent (a backstore that other requests write
 * to has lent it): a provider that computes a CRC over it must copy it
 * first. */
#define RCAP_UNSTABLE 0x4u

struct rcap_wr {
	/* set by the user, not changed by the provider */
	enum rcap_op op;
	unsigned flags;	  /* RCAP_* above */
	struct bufv data; /* source; READ: destination */
	uint32_t stag;	  /* the peer's region; Send: see RCAP_INVALIDATE */
	uint64_t to;	  /* tagged offset in it */
	unsigned tag;	  /* private to the user */
	uint64_t immediate;
	struct rcap_atomic *atomic;
	/* private to the provider until wr_done */
	struct list link;
	uint64_t mark;
	uint32_t local;
	uint32_t moved;
};

struct rcap_recv {
	uint8_t *buf;
	size_t cap;
	/* The user reads the message through rcap_recv_bytes: a provider that
	 * has it elsewhere need not copy it to buf. */
	bool may_lend;
	/* set by the provider before `received` */
	const uint8_t *lent; /* NULL: in buf; else the provider's memory, valid
			      * during the up-call only */
	size_t len;
	bool solicited;
	bool invalidated; /* the peer invalidated our region `stag` */
	uint32_t stag;
	bool is_immediate; /* Immediate Data: len is 0 */
	uint64_t immediate;
	struct list link; /* private to the provider */
};

/* rcap_recv_bytes points at the message; only during the up-call `received`. */
static inline const uint8_t *rcap_recv_bytes(const struct rcap_recv *r)
{
	return r->lent ? r->lent : r->buf;
}

/* ---- connections ---- */

#define RCAP_PRIVATE_MAX 508 /* RFC 6581 §9: 512 minus the enhanced block */

/* Connection parameters of either end. */
struct rcap_cm {
	/* most Reads to answer, to issue, at once */
	uint16_t ird, ord;
	const uint8_t *private_data; /* borrowed for the call */
	size_t private_len;
};

enum rcap_state {
	RCAP_STARTING,	  /* the connection is not negotiated yet */
	RCAP_REQUESTED,	  /* passive: connect_request was called */
	RCAP_ESTABLISHED, /* work requests may be posted */
	RCAP_CLOSING,	  /* posted requests are still sent */
	RCAP_CLOSED,
};

struct rcap_qp;

/* Up-calls of the provider. Every entry is filled. */
struct rcap_user {
	/* Passive: a connection request of the peer. Answer with rcap_accept or
	 * rcap_reject, now or later. peer.ird and peer.ord are the largest
	 * usable values. */
	void (*connect_request)(void *arg, const struct rcap_cm *peer);
	/* Work requests may be posted. Active: peer is the reply. */
	void (*established)(void *arg, const struct rcap_cm *peer);
	/* In the order of the posts. err: 0, or ERR_ABORTED: the connection
	 * ended first. The provider no longer uses wr. */
	void (*wr_done)(void *arg, struct rcap_wr *wr, int err);
	/* A message arrived; in the order of the peer's Sends. err: 0 or
	 * ERR_ABORTED. */
	void (*received)(void *arg, struct rcap_recv *r, int err);
	/* Every posted request and receive has been returned. err 0: orderly.
	 * why is a sentence, borrowed. */
	void (*closed)(void *arg, int err, const char *why);
};

/* Down-calls: the table of a provider, called by rcap.c only. */
struct rcap_ops {
	int (*accept)(struct rcap_qp *qp, const struct rcap_cm *cm);
	int (*reject)(struct rcap_qp *qp, const struct rcap_cm *cm);
	void (*post)(struct rcap_qp *qp, struct rcap_wr *const *wr, unsigned n);
	void (*post_recv)(struct rcap_qp *qp, struct rcap_recv *r);
	int (*reg)(struct rcap_qp *qp, const struct bufv *memory, uint64_t base,
		   unsigned rights, struct rcap_mr *mr);
	void (*invalidate)(struct rcap_qp *qp, struct rcap_mr *mr);
	void (*disconnect)(struct rcap_qp *qp, xtime grace);
	void (*terminate)(struct rcap_qp *qp, int err, const char *why);
	void (*rest)(struct rcap_qp *qp); /* NULL: nothing to give back */
};

/* The common part of a queue pair; a provider embeds it. */
struct rcap_qp {
	const struct rcap_ops *ops;
	const struct rcap_user *user;
	void *arg;
	struct trace *trace;
	enum rcap_state state;
	/* negotiated; valid from ESTABLISHED on */
	uint16_t ird, ord;
	bool extended; /* operations of RFC 7306 may be posted */
	/* active: private data of a rejection, valid in `closed`; or NULL */
	const struct rcap_cm *rejection;
	bool send_inv; /* the provider supports Send with Invalidate */
	bool recv_inv; /* the peer may invalidate our regions */
	bool few_recvs; /* a receive posted in the up-call of another is in time */
	/* largest efficient READ, bytes; 0: any length */
	uint32_t read_best;
	/* bytes that the transport took, where the provider counts them; a user
	 * compares two readings to see whether a long request progresses */
	uint64_t sent;
};

/* ---- the doorway ---- */

/* rcap_set_user sets the receiver of all up-calls. Before the first one. */
void rcap_set_user(struct rcap_qp *qp, const struct rcap_user *user, void *arg);
/* rcap_refuse removes the user: a connection request is rejected, all other
 * up-calls are dropped. Keep posted receives until the connection has ended. */
void rcap_refuse(struct rcap_qp *qp);
/* rcap_set_trace: NULL: no events. */
void rcap_set_trace(struct rcap_qp *qp, struct trace *trace);

/* rcap_accept and rcap_reject answer connect_request. They lower cm's ird and
 * ord to the negotiated values. Return 0, ERR_TOO_LONG (private data) or
 * ERR_WRONG_STATE. */
int rcap_accept(struct rcap_qp *qp, const struct rcap_cm *cm);
int rcap_reject(struct rcap_qp *qp, const struct rcap_cm *cm);

/*
 * rcap_post posts n requests as one, in order: a chain like "RDMA Write, then
 * Send" costs one call. When qp->ord Reads are in progress, further Reads wait,
 * and so do all requests after them. Returns 0, or an error and posts none:
 * ERR_WRONG_STATE: the connection is not established or ends; ERR_RANGE: a
 * request is longer than 2^32 - 1 bytes; ERR_LIMIT: a READ, FETCH_ADD or
 * CMP_SWAP although ord is 0; ERR_UNSUPPORTED: an operation of RFC 7306 that
 * was not negotiated.
 */
int rcap_post(struct rcap_qp *qp, struct rcap_wr *const *wr, unsigned n);

/* rcap_post_recv posts a buffer for one message of up to cap bytes. Allowed in
 * every state but CLOSED (ERR_WRONG_STATE), so that receives are posted before
 * the peer may send. */
int rcap_post_recv(struct rcap_qp *qp, struct rcap_recv *r);

/* rcap_rest: the connection has been idle for some time. The provider gives back
 * memory that it will get again when it needs it. */
void rcap_rest(struct rcap_qp *qp);

/*
 * rcap_reg makes memory accessible to the peer of this connection (RFC 5040 §7)
 * as [base, base + memory->len). The provider borrows memory's iovec array too.
 * Memory that the peer may read and not write must not change while a Read of
 * it is answered: a provider sends it in place, under a CRC, and copies memory
 * that the peer may also write. Returns 0 with *mr, ERR_BUSY (no free region),
 * ERR_RANGE (empty, or wraps), ERR_NOMEM or ERR_WRONG_STATE.
 */
int rcap_reg(struct rcap_qp *qp, const struct bufv *memory, uint64_t base,
	     unsigned rights, struct rcap_mr *mr);
/* rcap_invalidate ends a region: the provider moves no byte from or to it
 * afterwards. No effect on a region that the peer invalidated, and after the
 * connection. After it, and after `closed`, the memory has all bytes that the peer wrote
 * before an RDMA Read that the provider answered. */
void rcap_invalidate(struct rcap_qp *qp, struct rcap_mr *mr);

/* rcap_disconnect sends all posted requests, then ends the connection. */
void rcap_disconnect(struct rcap_qp *qp);
/* rcap_disconnect_after also sends all of them, then gives the peer the time `grace` to end the
 * connection first. */
void rcap_disconnect_after(struct rcap_qp *qp, xtime grace);
/* rcap_terminate: the user detected an error of the peer. Sends a Terminate
 * Message if the connection is established, and ends the connection; closed
 * gets err and why (static). */
void rcap_terminate(struct rcap_qp *qp, int err, const char *why);

/* rcap_state: the state of the connection. */
static inline enum rcap_state rcap_state(const struct rcap_qp *qp)
{
	return qp->state;
}

/* ---- for providers ---- */

/* rcap_wr_has_response: wr is complete with the peer's response to it, and
 * counts against ORD until then. */
static inline bool rcap_wr_has_response(const struct rcap_wr *wr)
{
	return wr->op == RCAP_READ || wr->op == RCAP_FETCH_ADD ||
	       wr->op == RCAP_CMP_SWAP;
}

/* rcap_abort_requests and rcap_abort_receives: the connection has ended: they
 * empty a list of struct rcap_wr, or of struct rcap_recv, and return each to the
 * user with ERR_ABORTED, in order. */
static inline void rcap_abort_requests(struct rcap_qp *qp, struct list *l)
{
	struct list *n;

	while ((n = list_pop_front(l)))
		qp->user->wr_done(qp->arg, list_entry(n, struct rcap_wr, link),
				  ERR_ABORTED);
}

static inline void rcap_abort_receives(struct rcap_qp *qp, struct list *l)
{
	struct list *n;

	while ((n = list_pop_front(l)))
		qp->user->received(qp->arg,
				   list_entry(n, struct rcap_recv, link),
				   ERR_ABORTED);
}

#endif
