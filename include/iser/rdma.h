/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma.h: RDMA connections of libiser: Send, RDMA Write and RDMA Read between
 * two programs, over the library's own software iWARP (RFC 5044, 6581, 5041,
 * 5040) on plain TCP sockets: no RDMA device, no kernel module, no root. The
 * peer may be this library, Linux' siw, or an iWARP adapter.
 *
 * Threads: a connection belongs to its context (iser.h) and so to the one
 * thread that uses it. Callbacks come from within iser_service or a blocking
 * call of this library; they may post, register, accept, reject and
 * disconnect. Only `closed` may free its connection; none may free a context.
 *
 * Ownership: requests, receives, their iovecs and the memory behind those are
 * borrowed from the post to `done`; nothing is allocated per request. When a
 * connection ends, all that was posted comes back with ISER_E_CLOSED, and
 * only then `closed` is called.
 *
 * Units: lengths are bytes, times are seconds. Functions that return int: 0
 * or a negative enum iser_error; iser_message(ctx) has a sentence.
 */
#ifndef ISER_RDMA_H
#define ISER_RDMA_H

#include <iser/iser.h>

#ifdef __cplusplus
extern "C" {
#endif

struct iser_rdma;
struct iser_rdma_listener;

#define ISER_RDMA_PRIVATE_MAX 508 /* bytes of private data a message */

/* ---- options; all zero is what fits most ---- */

enum iser_rdma_revision {
	ISER_RDMA_ENHANCED = 0, /* MPA revision 2 (RFC 6581) */
	ISER_RDMA_PLAIN = 1,	/* MPA revision 1 (RFC 5044): IRD and ORD are
				 * not told, no peer-to-peer model */
};

struct iser_rdma_options {
	/* CRC32C over every FPDU is on unless both sides say no. */
	bool no_crc;
	/* Ask the peer for markers in what it sends; ours follow its wish. */
	bool markers;
	/* Connecting only: which form of MPA; the listener follows. */
	enum iser_rdma_revision revision;
	/* Connecting only: the peer-to-peer model (RFC 6581 §4.2), in which
	 * the listener may send first. Needs ISER_RDMA_ENHANCED. */
	bool peer_to_peer;
	/* RDMA Reads to answer and to have out at once; 0: 32 each. */
	uint16_t ird, ord;
	/* Seconds for connecting, and for each step of the peer's until the
	 * connection is established; 0: 10. */
	unsigned timeout;
	/* An RDMA device of this machine (InfiniBand, RoCE, iWARP) in place of
	 * software iWARP: what concerns MPA and FPDUs is the device's business
	 * then, and private data are 56 bytes at most. */
	bool device;
	/* Software iWARP: the operations of RFC 7306 may be used. Nothing on
	 * the wire agrees on them: both programs have to know and say so. */
	bool extended;
	/* Bytes of an FPDU at most; 0: what fits in a TCP segment (RFC 5044
	 * §4.5), and 65535 on the loopback, where nothing cuts at segments. */
	uint32_t fpdu_max;
};

/* What a peer said, and what was agreed. */
struct iser_rdma_peer {
	/* the peer's private data, borrowed for the call */
	const void *private_data;
	size_t private_len;
	uint16_t ird, ord;   /* ours, after what the peer can do */
	const char *address; /* "HOST:PORT", borrowed for the call */
};

/* ---- connecting ---- */

struct iser_rdma_callbacks {
	/* Requests may be posted. For the side that connected, peer is the
	 * answer; the other side gets this with the peer's first message. */
	void (*established)(void *arg, struct iser_rdma *c,
			    const struct iser_rdma_peer *peer);
	/* The last call: 0 = both sides closed in order; else why, and
	 * iser_message has a sentence. The connection may be freed now. Also
	 * called when connecting failed. */
	void (*closed)(void *arg, struct iser_rdma *c, int err);
};

/*
 * iser_rdma_connect_start begins to connect to host (a name or an address)
 * and sends private_len bytes of private data with the request; both are
 * copied. established or closed follows. Receives may be posted at once.
 * options may be NULL; callbacks are borrowed for the life of the connection.
 * NULL: *err says why.
 */
ISER_API struct iser_rdma *
iser_rdma_connect_start(struct iser_context *ctx, const char *host,
			uint16_t port, const struct iser_rdma_options *options,
			const void *private_data, size_t private_len,
			const struct iser_rdma_callbacks *callbacks, void *arg,
			int *err);

/* iser_rdma_wait blocks until c is established (0) or closed (why). */
ISER_API int iser_rdma_wait(struct iser_rdma *c);

/* ---- listening ---- */

/*
 * iser_rdma_listen waits for connections at "HOST:PORT", "[V6]:PORT" or
 * ":PORT" (numeric; every IPv4 address); port 0 takes a free one. request is
 * called with each connection that asks: give it callbacks with
 * iser_rdma_accept or turn it down with iser_rdma_reject, now or later. Until
 * then it is the library's: one that the peer gives up goes away unseen
 * unless its callbacks were set by iser_rdma_set_callbacks. At most 128
 * connections are asking at once; others wait in the socket. NULL: *err.
 */
ISER_API struct iser_rdma_listener *
iser_rdma_listen(struct iser_context *ctx, const char *address,
		 uint16_t default_port, const struct iser_rdma_options *options,
		 void (*request)(void *arg, struct iser_rdma *c,
				 const struct iser_rdma_peer *peer),
		 void *arg, int *err);
/* The address that is listened at, "HOST:PORT"; valid as long as l. */
ISER_API const char *
iser_rdma_listener_address(const struct iser_rdma_listener *l);
/* iser_rdma_listener_free: connections that were requested stay. */
ISER_API void iser_rdma_listener_free(struct iser_rdma_listener *l);

/* Who is told about c; for a connection from a listener, from within request
 * or iser_rdma_accept. */
ISER_API void
iser_rdma_set_callbacks(struct iser_rdma *c,
			const struct iser_rdma_callbacks *callbacks, void *arg);
/* iser_rdma_accept: post receives first, the peer speaks at once. */
ISER_API int iser_rdma_accept(struct iser_rdma *c, const void *private_data,
			      size_t private_len);
/* iser_rdma_reject tells the peer no, with private data. closed follows. */
ISER_API int iser_rdma_reject(struct iser_rdma *c, const void *private_data,
			      size_t private_len);

/* ---- the end ---- */

/* iser_rdma_disconnect: what was posted goes out, then the connection ends;
 * closed follows. Harmless when it has ended. */
ISER_API void iser_rdma_disconnect(struct iser_rdma *c);
/* iser_rdma_terminate: the peer is in error: a Terminate Message, and the end.
 * why is a sentence with static life. */
ISER_API void iser_rdma_terminate(struct iser_rdma *c, const char *why);
/* iser_rdma_free: after closed, from within it too; earlier, and not from a
 * callback, it disconnects and waits for that, bounded; closed is not called
 * then. NULL is harmless. */
ISER_API void iser_rdma_free(struct iser_rdma *c);

/* ---- memory that the peer may reach ---- */

#define ISER_RDMA_REMOTE_READ  0x1u
#define ISER_RDMA_REMOTE_WRITE 0x2u
/* All of the region is undefined until the peer's Send after its Writes: bytes
 * may be put anywhere in it before their place is known, which saves system
 * calls. For regions that are written as a whole. */
#define ISER_RDMA_UNDEFINED 0x4u
/* Atomic operations, where options.extended (RFC 7306 §5). */
#define ISER_RDMA_REMOTE_ATOMIC 0x8u

struct iser_rdma_mr {
	uint32_t stag; /* tell it to the peer, with base and len */
	uint64_t base; /* offset of the first byte, as the peer says it; on a
			* device the address of the memory, whatever was asked */
	size_t len;
	uint64_t library[4]; /* the library's */
};

/*
 * iser_rdma_register opens memory to the peer of this connection, and to
 * nobody else, as [base, base + len), until it is invalidated by either side
 * or the connection ends; until then iov and its memory are borrowed.
 * ISER_E_INVALID: empty, or the range wraps; ISER_E_NOMEM: too many regions;
 * ISER_E_CLOSED.
 */
ISER_API int iser_rdma_register(struct iser_rdma *c, struct iovec *iov,
				unsigned niov, uint64_t base, unsigned rights,
				struct iser_rdma_mr *mr);
/* iser_rdma_invalidate: no byte moves from or to it afterwards. Harmless when
 * that is so already. */
ISER_API void iser_rdma_invalidate(struct iser_rdma *c,
				   struct iser_rdma_mr *mr);

/* ---- requests ---- */

enum iser_rdma_op {
	ISER_RDMA_SEND,
	ISER_RDMA_WRITE,
	ISER_RDMA_READ,
	/* with options.extended; niov is 0 */
	ISER_RDMA_IMMEDIATE, /* 8 octets that arrive as a message of their own
			      * (RFC 7306 §6) */
	ISER_RDMA_FETCH_ADD, /* on 8 octets of the peer's (RFC 7306 §5.1) */
	ISER_RDMA_CMP_SWAP,
};

/* What to do with the peer's 8 octets at wr.stag, wr.to (a multiple of 8). */
struct iser_rdma_atomic {
	/* FETCH_ADD: to add; mask has a bit at the top of each field. CMP_SWAP:
	 * to put there under mask where compare matches under compare_mask. */
	uint64_t value, mask, compare, compare_mask;
	uint64_t original; /* what was there; set before done */
};

#define ISER_RDMA_SOLICITED  0x1u /* Send: with Solicited Event */
#define ISER_RDMA_INVALIDATE 0x2u /* Send: ends the peer's region stag */

struct iser_rdma_wr {
	/* the caller's */
	enum iser_rdma_op op;
	unsigned flags;
	struct iovec *iov; /* source; Read: where the bytes go */
	unsigned niov;
	uint32_t stag;	    /* the peer's region; Send: see INVALIDATE */
	uint64_t to;	    /* and the place in it */
	uint64_t immediate; /* IMMEDIATE */
	struct iser_rdma_atomic *atomic; /* FETCH_ADD, CMP_SWAP; borrowed */
	void (*done)(struct iser_rdma_wr *wr);
	void *arg;
	/* set before done */
	int err;
	uint64_t library[24]; /* the library's */
};

/*
 * iser_rdma_post posts n requests as one, to be done in order; done is called
 * in order too: for a Send or a Write when its memory may be used again (the
 * peer need not have it yet), for a Read when the bytes are here. More Reads
 * than ORD wait, and what is behind them. ISER_E_CLOSED: not established or
 * ended; ISER_E_INVALID: longer than 2^32 - 1 bytes, or an operation of RFC
 * 7306 without options.extended; none was taken then.
 */
ISER_API int iser_rdma_post(struct iser_rdma *c, struct iser_rdma_wr *const *wr,
			    unsigned n);

struct iser_rdma_recv {
	/* the caller's */
	void *buf;
	size_t size;
	void (*done)(struct iser_rdma_recv *r);
	void *arg;
	/* set before done */
	int err;
	size_t len;
	bool solicited;
	bool invalidated; /* the peer ended our region stag */
	uint32_t stag;
	bool is_immediate; /* 8 octets and no message: len is 0 */
	uint64_t immediate;
	uint64_t library[12]; /* the library's */
};

/* iser_rdma_post_recv: a place for one Send of the peer's, in order. A Send
 * that finds none, or one too small, ends the connection. A device keeps buf
 * registered: post the same few again, and don't unmap any before closed.
 * ISER_E_CLOSED. */
ISER_API int iser_rdma_post_recv(struct iser_rdma *c, struct iser_rdma_recv *r);

/* ---- what holds, what happened ---- */

struct iser_rdma_info {
	const char *peer, *local; /* "HOST:PORT"; valid as long as c */
	bool established;
	/* agreed; valid once it is established */
	bool crc, markers_in, markers_out, peer_to_peer;
	uint16_t ird, ord;
	uint32_t fpdu_max;
	const char *device; /* its name; NULL: software iWARP */
};
ISER_API void iser_rdma_get_info(const struct iser_rdma *c,
				 struct iser_rdma_info *info);

struct iser_rdma_stats {
	uint64_t rx_bytes, tx_bytes; /* on the stream */
	uint64_t rx_calls, tx_calls; /* system calls that moved them */
	uint64_t rx_fpdus, tx_fpdus;
	uint64_t rx_payload, tx_payload; /* bytes of messages */
	uint64_t copied; /* of these, bytes that went through a buffer */
	uint64_t crc_errors;
};
ISER_API void iser_rdma_get_stats(const struct iser_rdma *c,
				  struct iser_rdma_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
