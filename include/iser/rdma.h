/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma.h: RDMA connections of libiser: Send, RDMA Write and RDMA Read between
 * two programs, over software iWARP (RFC 5044, 6581, 5041, 5040) on TCP sockets:
 * without an RDMA device, a kernel module or root. The peer may be this library,
 * the siw driver of Linux, or an iWARP adapter.
 *
 * Threads: a connection belongs to its context (iser.h), and one thread at a
 * time may use a context. Callbacks are called from within iser_service or a
 * blocking call of the library. A callback may post, register, accept, reject
 * and disconnect; it must not free a context. Only `closed` may free its
 * connection.
 *
 * Ownership: the library borrows requests, receives, their iovecs and the memory
 * that these describe from the post until it calls `done`; nothing is allocated
 * per request. When a connection ends, each posted request and receive ends with
 * ISER_E_CLOSED, and after them `closed` is called.
 *
 * Units: lengths are bytes, times are seconds.
 *
 * Errors: a function that returns int returns 0 or a negative enum iser_error;
 * iser_message returns the reason.
 */
#ifndef ISER_RDMA_H
#define ISER_RDMA_H

#include "iser/iser.h"

#ifdef __cplusplus
extern "C" {
#endif

struct iser_rdma;
struct iser_rdma_listener;

#define ISER_RDMA_PRIVATE_MAX 508 /* bytes of private data per message */

/* ---- options; all zero are the defaults ---- */

/* The revision of MPA that the connecting side requests. */
enum iser_rdma_revision {
	ISER_RDMA_ENHANCED = 0, /* MPA revision 2 (RFC 6581) */
	ISER_RDMA_PLAIN = 1,	/* MPA revision 1 (RFC 5044): without IRD and
				 * ORD, without the peer-to-peer model */
};

/* Options of iser_rdma_connect_start and iser_rdma_listen. */
struct iser_rdma_options {
	/* No CRC32C over FPDUs, if the peer asks for the same. */
	bool no_crc;
	/* Ask the peer for markers in what it sends (RFC 5044 §4.3). The
	 * library sends markers if the peer asks for them. */
	bool markers;
	/* Connecting only: the revision of MPA; a listener uses the peer's. */
	enum iser_rdma_revision revision;
	/* Connecting only: the peer-to-peer model (RFC 6581 §4.2), in which
	 * the listener may send first. It needs ISER_RDMA_ENHANCED. */
	bool peer_to_peer;
	/* RDMA Reads to answer (ird) and to have in progress (ord) at most; 0:
	 * 32 each. */
	uint16_t ird, ord;
	/* Seconds for connecting, and for each message of the peer until the
	 * connection is established; 0: 10. */
	unsigned timeout;
	/* An RDMA device of this machine (InfiniBand, RoCE, iWARP) in place of
	 * software iWARP. The options of MPA and FPDUs have no effect then, and
	 * private data are at most 56 bytes. */
	bool device;
	/* Software iWARP: the operations of RFC 7306 may be used. They are not
	 * negotiated: both programs must set this option. */
	bool extended;
	/* The longest FPDU; 0: what fits in a TCP segment (RFC 5044 §4.5), and
	 * 65535 on the loopback interface. */
	uint32_t fpdu_max;
	uint64_t reserved[8]; /* 0 */
};

/* The message of the peer and the negotiated limits; valid during the callback
 * that gets it. */
struct iser_rdma_peer {
	/* the private data of the peer */
	const void *private_data;
	size_t private_len;
	uint16_t ird, ord;   /* of this side, within the limits of the peer */
	const char *address; /* of the peer, "HOST:PORT" */
};

/* ---- connecting ---- */

/* The events of a connection, with the arg that was given with the callbacks. */
struct iser_rdma_callbacks {
	/* established: requests may be posted. On the side that connected, peer
	 * has the private data of the answer; the other side is called at the
	 * first message of the peer. */
	void (*established)(void *arg, struct iser_rdma *c,
			    const struct iser_rdma_peer *peer);
	/* closed: the last call, also after a failure to connect. err is 0 if
	 * both sides closed in order, else the error, and iser_message has the
	 * reason. The connection may be freed from here on. */
	void (*closed)(void *arg, struct iser_rdma *c, int err);
	void (*reserved[4])(void); /* NULL */
};

/*
 * iser_rdma_connect_start begins to connect to host (a name or an address) and
 * sends private_len bytes of private data with the request; both are copied.
 * established or closed follows, not from within this call. Receives may be
 * posted at once. options are copied, NULL: the defaults; callbacks are borrowed
 * for the life of the connection. The caller frees the connection by
 * iser_rdma_free. Returns NULL with the error in *err: ISER_E_INVALID (an option,
 * too much private data), ISER_E_CONNECT (no device, an unknown name for a
 * device), ISER_E_NOMEM.
 */
ISER_API struct iser_rdma *
iser_rdma_connect_start(struct iser_context *ctx, const char *host,
			uint16_t port, const struct iser_rdma_options *options,
			const void *private_data, size_t private_len,
			const struct iser_rdma_callbacks *callbacks, void *arg,
			int *err);

/* iser_rdma_wait blocks until c is established (0) or closed (the error). */
ISER_API int iser_rdma_wait(struct iser_rdma *c);

/* ---- listening ---- */

/*
 * iser_rdma_listen listens at "HOST:PORT", "[V6]:PORT" or ":PORT" (numeric; every
 * IPv4 address); port 0 takes a free one, default_port stands in for one that is
 * left out. request is called with arg, each connection that asks, and the
 * peer's message; the caller answers it by iser_rdma_accept or iser_rdma_reject,
 * from within request or later. Until then the library owns the connection: it
 * frees one that the peer closes first, without a call, unless
 * iser_rdma_set_callbacks has been called for it. At most 128 connections ask at
 * once; others wait in the queue of the socket. The caller frees the listener by
 * iser_rdma_listener_free. Returns NULL with the error in *err: ISER_E_INVALID
 * (the address, an option), ISER_E_SYSTEM (the port is in use), ISER_E_NOMEM.
 */
ISER_API struct iser_rdma_listener *
iser_rdma_listen(struct iser_context *ctx, const char *address,
		 uint16_t default_port, const struct iser_rdma_options *options,
		 void (*request)(void *arg, struct iser_rdma *c,
				 const struct iser_rdma_peer *peer),
		 void *arg, int *err);
/* iser_rdma_listener_address returns the address of l, "HOST:PORT", with the
 * actual port; valid as long as l. */
ISER_API const char *
iser_rdma_listener_address(const struct iser_rdma_listener *l);
/* iser_rdma_listener_free stops listening and frees l. Connections for which
 * request was called stay. NULL is allowed. */
ISER_API void iser_rdma_listener_free(struct iser_rdma_listener *l);

/* iser_rdma_set_callbacks sets the callbacks of c and their arg, both borrowed.
 * For a connection of a listener, call it from within request, or before
 * iser_rdma_accept; the caller then owns the connection and frees it by
 * iser_rdma_free. */
ISER_API void
iser_rdma_set_callbacks(struct iser_rdma *c,
			const struct iser_rdma_callbacks *callbacks, void *arg);
/* iser_rdma_accept accepts a connection of a listener, with private data for the
 * peer, which are copied. Post receives before: the peer may send at once.
 * ISER_E_INVALID: too much private data; ISER_E_CLOSED: the connection has ended.
 */
ISER_API int iser_rdma_accept(struct iser_rdma *c, const void *private_data,
			      size_t private_len);
/* iser_rdma_reject rejects a connection of a listener, with private data for the
 * peer, which are copied. closed follows. Errors as of iser_rdma_accept. */
ISER_API int iser_rdma_reject(struct iser_rdma *c, const void *private_data,
			      size_t private_len);

/* ---- the end ---- */

/* iser_rdma_disconnect ends the connection after the requests that were posted;
 * closed follows. It has no effect on a connection that has ended. */
ISER_API void iser_rdma_disconnect(struct iser_rdma *c);
/* iser_rdma_terminate ends the connection with a Terminate Message (RFC 5040
 * §4.8), for an error of the peer; closed follows. why is a static string, for the
 * log. */
ISER_API void iser_rdma_terminate(struct iser_rdma *c, const char *why);
/* iser_rdma_free frees c. It may be called from within closed or later. Before
 * closed, and outside of callbacks, it disconnects and blocks until that has
 * ended (bounded); closed is not called then. NULL is allowed. */
ISER_API void iser_rdma_free(struct iser_rdma *c);

/* ---- memory regions of the peer ---- */

/* Rights of the peer in a region. */
#define ISER_RDMA_REMOTE_READ  0x1u
#define ISER_RDMA_REMOTE_WRITE 0x2u
/* The contents of the whole region are undefined until the peer's Send after its
 * Writes: the library may receive bytes to other places of the region first,
 * which saves system calls. For regions that the peer writes as a whole. */
#define ISER_RDMA_UNDEFINED 0x4u
/* Atomic operations (RFC 7306 §5); needs options.extended. */
#define ISER_RDMA_REMOTE_ATOMIC 0x8u

/* A region. The program sends stag, base and len to the peer. */
struct iser_rdma_mr {
	uint32_t stag;
	uint64_t base; /* the peer's offset of the first byte; on a device always
			* the address of the memory */
	size_t len;
	uint64_t library[4]; /* private to the library */
};

/*
 * iser_rdma_register gives the peer of this connection, and no other one, the
 * rights in the memory of iov, as the range [base, base + len), until either side
 * invalidates the region or the connection ends; iov and the memory are borrowed
 * until then. ISER_E_INVALID: no memory, or the range wraps; ISER_E_NOMEM: too
 * many regions; ISER_E_CLOSED: not connected.
 */
ISER_API int iser_rdma_register(struct iser_rdma *c, struct iovec *iov,
				unsigned niov, uint64_t base, unsigned rights,
				struct iser_rdma_mr *mr);
/* iser_rdma_invalidate ends the rights of the peer: no byte is read or written
 * from then on. It has no effect on a region that is not valid. */
ISER_API void iser_rdma_invalidate(struct iser_rdma *c,
				   struct iser_rdma_mr *mr);

/* ---- requests ---- */

/* The operations of iser_rdma_post. */
enum iser_rdma_op {
	ISER_RDMA_SEND,
	ISER_RDMA_WRITE,
	ISER_RDMA_READ,
	/* with options.extended; niov is 0 */
	ISER_RDMA_IMMEDIATE, /* a message of 8 octets (RFC 7306 §6) */
	ISER_RDMA_FETCH_ADD, /* on 8 octets of the peer (RFC 7306 §5.1) */
	ISER_RDMA_CMP_SWAP,
};

/* An operation on the peer's 8 octets at wr.stag, wr.to (a multiple of 8). */
struct iser_rdma_atomic {
	/* FETCH_ADD: value is added; mask has a bit at the top of each field.
	 * CMP_SWAP: the bits of mask are set to those of value if the octets
	 * equal compare in the bits of compare_mask. */
	uint64_t value, mask, compare, compare_mask;
	uint64_t original;    /* the octets before; set before done */
	uint64_t reserved[2]; /* 0 */
};

#define ISER_RDMA_SOLICITED  0x1u /* Send: with Solicited Event */
#define ISER_RDMA_INVALIDATE 0x2u /* Send: invalidates the peer's stag */

/* A request: a Send, Write, Read or one of the operations of RFC 7306. */
struct iser_rdma_wr {
	/* set by the caller, who zeroes the struct first */
	enum iser_rdma_op op;
	unsigned flags;
	struct iovec *iov; /* the source; of a Read the sink */
	unsigned niov;
	uint32_t stag;	    /* the peer's region; of a Send with INVALIDATE */
	uint64_t to;	    /* the offset in the region */
	uint64_t immediate; /* IMMEDIATE */
	struct iser_rdma_atomic *atomic; /* FETCH_ADD, CMP_SWAP; borrowed */
	void (*done)(struct iser_rdma_wr *wr);
	void *arg;
	uint64_t reserved[4]; /* 0 */
	/* the result, set by the library before done */
	int err;
	uint64_t reserved_result[2]; /* 0 */
	uint64_t library[24];	     /* private to the library */
};

/*
 * iser_rdma_post posts n requests, which are carried out in order. done is called
 * in the same order and not from within this call: for a Send or a Write when its
 * memory may be used again (the peer may not have the bytes yet), for a Read when
 * the bytes are in the sink. Reads beyond ORD wait, with the requests after them.
 * ISER_E_CLOSED: not established, or ended; ISER_E_INVALID: more than 2^32 - 1
 * bytes, or an operation of RFC 7306 without options.extended; no request was
 * posted then.
 */
ISER_API int iser_rdma_post(struct iser_rdma *c, struct iser_rdma_wr *const *wr,
			    unsigned n);

/* A receive: a buffer for one Send of the peer. */
struct iser_rdma_recv {
	/* set by the caller, who zeroes the struct first */
	void *buf;
	size_t size;
	void (*done)(struct iser_rdma_recv *r);
	void *arg;
	uint64_t reserved[4]; /* 0 */
	/* the result, set by the library before done */
	int err;
	size_t len;
	bool solicited;
	bool invalidated; /* the peer invalidated the region stag of this side */
	uint32_t stag;
	bool is_immediate; /* Immediate Data of RFC 7306: len is 0 */
	uint64_t immediate;
	uint64_t reserved_result[2]; /* 0 */
	uint64_t library[12];	     /* private to the library */
};

/*
 * iser_rdma_post_recv posts a receive. Each Send of the peer takes the receive
 * that was posted first; a Send without a receive, or longer than its buffer, ends
 * the connection. A device registers buf once: post the same buffers again, and
 * do not unmap them before closed. ISER_E_CLOSED: the connection has ended.
 */
ISER_API int iser_rdma_post_recv(struct iser_rdma *c, struct iser_rdma_recv *r);

/* ---- state and counters ---- */

/* The addresses and negotiated parameters of a connection. */
struct iser_rdma_info {
	const char *peer, *local; /* "HOST:PORT"; valid as long as c */
	bool established;
	/* negotiated; valid once it is established */
	bool crc, markers_in, markers_out, peer_to_peer;
	uint16_t ird, ord;
	uint32_t fpdu_max;
	const char *device;   /* its name; NULL: software iWARP */
	uint64_t reserved[8]; /* 0 */
};
/* iser_rdma_get_info fills in *info. */
ISER_API void iser_rdma_get_info(const struct iser_rdma *c,
				 struct iser_rdma_info *info);

/* Counters of software iWARP; all 0 over a device. */
struct iser_rdma_stats {
	uint64_t rx_bytes, tx_bytes; /* on the TCP stream */
	uint64_t rx_calls, tx_calls; /* system calls for these bytes */
	uint64_t rx_fpdus, tx_fpdus;
	uint64_t rx_payload, tx_payload; /* bytes of messages */
	uint64_t copied;		 /* of these, bytes that were copied */
	uint64_t crc_errors;
	uint64_t reserved[8]; /* 0 */
};
/* iser_rdma_get_stats fills in *stats, also after closed. */
ISER_API void iser_rdma_get_stats(const struct iser_rdma *c,
				  struct iser_rdma_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
