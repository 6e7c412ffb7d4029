/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rcap.h: an RDMA-capable protocol (RFC 7145 §1.1 "RCaP") as its users see it:
 * a queue pair with posted receives, Sends, RDMA Writes and Reads, memory
 * regions, and the connection manager's messages with private data. Providers:
 * rcap/iwarp on a byte stream; a verbs device looks the same.
 *
 * Ownership: work requests, receives and the memory that they name are
 * borrowed from the post to the up-call that gives them back; nothing is
 * allocated per request. When the connection ends, all that is still out comes
 * back with ERR_ABORTED, and only then `closed` is called.
 *
 * Threads: a queue pair belongs to one worker. Up-calls come from within the
 * driver's calls; the user may post from within them, and must not free the
 * queue pair before `closed` returned.
 */
#ifndef RCAP_RCAP_H
#define RCAP_RCAP_H

#include "base/bufv.h"
#include "base/bytes.h"
#include "base/list.h"
#include "base/trace.h"

/* ---- memory ---- */

/* What a peer may do with a region. Local access is always allowed. */
#define RCAP_REMOTE_READ   0x1u
#define RCAP_REMOTE_WRITE  0x2u
#define RCAP_REMOTE_ATOMIC 0x4u /* where qp->extended */
/* The peer writes the region as a whole, from its start on, and until the user
 * is told that it did so, all of it is undefined: the provider may put bytes
 * anywhere in it before it knows their place, and read more at once. */
#define RCAP_UNDEFINED 0x8u

struct rcap_mr {
	uint32_t stag; /* what the peer is told */
	uint64_t base; /* tagged offset of the first byte */
	size_t len;
	void *provider; /* the provider's own */
};

/* ---- work requests ---- */

enum rcap_op {
	RCAP_SEND,
	RCAP_WRITE,
	RCAP_READ,
	/* where qp->extended (RFC 7306); all that they carry is in the wr */
	RCAP_IMMEDIATE, /* 8 octets that arrive as a message of their own */
	RCAP_FETCH_ADD, /* on 8 octets of the peer's, at wr.stag, wr.to */
	RCAP_CMP_SWAP,
};

/* RFC 7306 §5.1: what to do with the peer's 8 octets, and what was there. */
struct rcap_atomic {
	/* to add, field by field: mask has a bit at the top of each; or to put
	 * there under mask where compare matches under compare_mask */
	uint64_t value, mask, compare, compare_mask;
	uint64_t original; /* filled when it is done */
};

/* Send: raise a solicited event at the peer (RFC 5040 §4.3, SendSE). */
#define RCAP_SOLICITED 0x1u
/* Send: invalidate the peer's region wr.stag (Send with Invalidate). */
#define RCAP_INVALIDATE 0x2u
/* The memory may change while it is sent (it is lent by a store that others
 * write to): a provider that sums it must copy it first. */
#define RCAP_UNSTABLE 0x4u

struct rcap_wr {
	/* filled by the user, unchanged by the provider */
	enum rcap_op op;
	unsigned flags;	  /* RCAP_* above */
	struct bufv data; /* source; READ: where the bytes go */
	uint32_t stag;	  /* the peer's region; Send: see RCAP_INVALIDATE */
	uint64_t to;	  /* tagged offset in it */
	unsigned tag;	  /* the user's own */
	uint64_t immediate;
	struct rcap_atomic *atomic;
	/* the provider's, until wr_done */
	struct list link;
	uint64_t mark;
	uint32_t local;
	uint32_t moved;
};

struct rcap_recv {
	uint8_t *buf;
	size_t cap;
	/* The user asks rcap_recv_bytes where the message is: a provider that
	 * has it elsewhere then need not copy it. */
	bool may_lend;
	/* filled when it comes back */
	const uint8_t *lent; /* NULL: in buf; else the provider's memory, valid
			      * during the up-call only */
	size_t len;
	bool solicited;
	bool invalidated; /* the peer invalidated our region `stag` */
	uint32_t stag;
	bool is_immediate; /* 8 octets and no message: len is 0 */
	uint64_t immediate;
	struct list link; /* the provider's */
};

static inline const uint8_t *rcap_recv_bytes(const struct rcap_recv *r)
{
	return r->lent ? r->lent : r->buf;
}

/* ---- connections ---- */

#define RCAP_PRIVATE_MAX 508 /* RFC 6581 §9: 512 less its own block */

/* Connection parameters, ours or the peer's. */
struct rcap_cm {
	uint16_t ird, ord;	     /* Reads to answer, to have out, at once */
	const uint8_t *private_data; /* borrowed for the call */
	size_t private_len;
};

enum rcap_state {
	RCAP_STARTING,	  /* nothing agreed yet */
	RCAP_REQUESTED,	  /* passive: connect_request was given to the user */
	RCAP_ESTABLISHED, /* work requests may be posted */
	RCAP_CLOSING,	  /* what was posted still goes out */
	RCAP_CLOSED,
};

struct rcap_qp;

/* Up: every entry is filled. */
struct rcap_user {
	/* Passive: the peer asks; answer with rcap_accept or rcap_reject, now
	 * or later. peer.ird/ord are already what can be used. */
	void (*connect_request)(void *arg, const struct rcap_cm *peer);
	/* Work requests may be posted. Active: peer is the answer. */
	void (*established)(void *arg, const struct rcap_cm *peer);
	/* In the order of the posts. err 0, or ERR_ABORTED when the connection
	 * ended before it was done. wr is the user's again. */
	void (*wr_done)(void *arg, struct rcap_wr *wr, int err);
	/* A message came in, in the order of the peer's sends; or ERR_ABORTED.
	 */
	void (*received)(void *arg, struct rcap_recv *r, int err);
	/* All up-calls for what was posted are done. err 0 = orderly; why is a
	 * sentence, borrowed. */
	void (*closed)(void *arg, int err, const char *why);
};

/* Down: a provider's table; called through the doorway below only. */
struct rcap_ops {
	int (*accept)(struct rcap_qp *qp, const struct rcap_cm *cm);
	int (*reject)(struct rcap_qp *qp, const struct rcap_cm *cm);
	void (*post)(struct rcap_qp *qp, struct rcap_wr *const *wr, unsigned n);
	void (*post_recv)(struct rcap_qp *qp, struct rcap_recv *r);
	int (*reg)(struct rcap_qp *qp, const struct bufv *memory, uint64_t base,
		   unsigned rights, struct rcap_mr *mr);
	void (*invalidate)(struct rcap_qp *qp, struct rcap_mr *mr);
	void (*disconnect)(struct rcap_qp *qp);
	void (*terminate)(struct rcap_qp *qp, int err, const char *why);
};

/* The head of a provider's queue pair. */
struct rcap_qp {
	const struct rcap_ops *ops;
	const struct rcap_user *user;
	void *arg;
	struct trace *trace;
	enum rcap_state state;
	/* agreed, valid from ESTABLISHED on */
	uint16_t ird, ord;
	bool extended; /* RFC 7306's operations may be used */
	/* active: what came with a rejection, in `closed`; or NULL */
	const struct rcap_cm *rejection;
	bool send_inv; /* the provider can Send with Invalidate */
	bool recv_inv; /* its regions may be invalidated by the peer */
	/* what one READ had better ask for at most, bytes; 0: no matter */
	uint32_t read_best;
};

/* ---- the doorway ---- */

/* rcap_set_user: before the first up-call. */
void rcap_set_user(struct rcap_qp *qp, const struct rcap_user *user, void *arg);
void rcap_set_trace(struct rcap_qp *qp, struct trace *trace);

/* rcap_accept / rcap_reject answer connect_request. cm's ird and ord are
 * lowered to what was agreed. ERR_TOO_LONG: private data; ERR_WRONG_STATE. */
int rcap_accept(struct rcap_qp *qp, const struct rcap_cm *cm);
int rcap_reject(struct rcap_qp *qp, const struct rcap_cm *cm);

/*
 * rcap_post posts n requests as one, in order: a chain like "RDMA Write, then
 * Send" costs one hand-over. Reads beyond qp->ord wait, and what is behind
 * them. Returns 0; ERR_WRONG_STATE: the connection is going or gone, no request
 * was taken; ERR_RANGE: a request is longer than 2^32 - 1 bytes, ERR_LIMIT: a
 * READ (or FETCH_ADD, CMP_SWAP) where ord is 0, ERR_UNSUPPORTED: an operation
 * of RFC 7306 that was not agreed on; none was taken.
 */
int rcap_post(struct rcap_qp *qp, struct rcap_wr *const *wr, unsigned n);

/* rcap_post_recv: a place for one message of up to cap bytes. Allowed in every
 * state but CLOSED (ERR_WRONG_STATE): receives stand ready before the peer may
 * send. */
int rcap_post_recv(struct rcap_qp *qp, struct rcap_recv *r);

/*
 * rcap_reg makes memory reachable for this connection's peer (RFC 5040 §7) as
 * [base, base + memory->len). memory's iovec array is borrowed too. What a peer
 * may read and not write must not change while a Read of it is answered: it is
 * sent from where it is, under a CRC; what it may write as well is copied. 0
 * with *mr,
 * ERR_BUSY (no region is free), ERR_RANGE (empty, or wraps), ERR_WRONG_STATE.
 */
int rcap_reg(struct rcap_qp *qp, const struct bufv *memory, uint64_t base,
	     unsigned rights, struct rcap_mr *mr);
/* rcap_invalidate ends it: no byte moves from or to it afterwards. Harmless
 * for a region that the peer invalidated, or after the connection. */
void rcap_invalidate(struct rcap_qp *qp, struct rcap_mr *mr);

/* rcap_disconnect: what was posted goes out, then the connection ends. */
void rcap_disconnect(struct rcap_qp *qp);
/* rcap_terminate: the user found the peer in error; a Terminate Message where
 * the connection is far enough, and the end. closed gets err and why (static).
 */
void rcap_terminate(struct rcap_qp *qp, int err, const char *why);

static inline enum rcap_state rcap_state(const struct rcap_qp *qp)
{
	return qp->state;
}

#endif
