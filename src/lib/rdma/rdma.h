/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma.h: what the files of libiser's RDMA connections share. A connection is a
 * queue pair, of software iWARP on a socket or of an RDMA device, and its user.
 * Each file calls those above it only:
 *   post.c    requests, receives, memory
 *   conn.c    up-calls, callbacks, the end
 *   iwarp.c   queue pairs on a socket
 *   device.c  queue pairs of devices
 *   rdma.c    connecting
 *   listen.c  listening
 */
#ifndef LIB_RDMA_RDMA_H
#define LIB_RDMA_RDMA_H

#include "iser/rdma.h"
#include "lib/internal.h"
#include "rcap/iwarp/iwarp.h"

#define RDMA_ASKING_MAX 128 /* connections of a listener that ask at once */

enum rdma_state {
	RDMA_CONNECTING, /* TCP */
	RDMA_STARTING,	 /* MPA; of a listener's connection the answer, too */
	RDMA_UP,
	RDMA_DOWN, /* the connection has ended */
};

/* A caller that blocks in iser_rdma_wait. */
struct rdma_wait {
	bool over;
	int err;
};

struct iser_rdma {
	struct iser_context *ctx;
	struct list link;
	enum rdma_state state;
	struct iser_rdma_options options;
	/* the user; callbacks NULL: the library still owns the connection */
	const struct iser_rdma_callbacks *callbacks;
	void *arg;
	struct iser_rdma_listener *listener; /* until its request was called */
	struct rdma_wait *wait;
	bool freeing; /* no more callbacks */
	/* the connection; NULL when there is none */
	struct net_connector *connector;
	struct net_stream *stream; /* software iWARP */
	struct iwarp *iwarp;
	struct verbs_conn *vconn;		/* a device */
	struct rcap_qp *qp;			/* of either */
	void (*fill_info)(struct iser_rdma *c); /* of either */
	struct io_defer cancelled; /* disconnected before it was connected */
	struct list early; /* rcap_recv.link: posted before there was a qp */
	uint8_t private_data[RCAP_PRIVATE_MAX];
	size_t private_len;
	char host[256];
	/* valid after the end of the connection, too */
	int err;
	char why[200];
	char peer[NET_ADDR_STR], local[NET_ADDR_STR];
	char device[64];
	struct iser_rdma_stats stats;
	struct iser_rdma_info info;
};

struct iser_rdma_listener {
	struct iser_context *ctx;
	struct list link;
	struct iser_rdma_options options;
	struct net_listener *net;     /* software iWARP */
	struct verbs_listener *verbs; /* devices */
	unsigned asking; /* connections whose request was not called yet */
	void (*request)(void *arg, struct iser_rdma *c,
			const struct iser_rdma_peer *peer);
	void *arg;
	char address[NET_ADDR_STR];
};

/* ---- post.c: up-calls that return what was posted ---- */

/* lib_rdma_wr_done is rcap_user.wr_done: it gives the request back to the user by
 * its done, with err as an enum iser_error. arg is the struct iser_rdma. */
void lib_rdma_wr_done(void *arg, struct rcap_wr *wr, int err);
/* lib_rdma_received is rcap_user.received: it gives the receive back to the
 * user by its done, with the bytes that came, or with err. arg is the struct
 * iser_rdma. */
void lib_rdma_received(void *arg, struct rcap_recv *r, int err);

/* ---- conn.c ---- */

/* lib_rdma_new makes a connection that is not connected. NULL: out of memory. */
struct iser_rdma *lib_rdma_new(struct iser_context *ctx,
			       const struct iser_rdma_options *options);
/* lib_rdma_drop frees a connection that has no queue pair any more. */
void lib_rdma_drop(struct iser_rdma *c);
/* lib_rdma_set_qp gives a connection its queue pair; fill_info completes c->info
 * once it is established. */
void lib_rdma_set_qp(struct iser_rdma *c, struct rcap_qp *qp,
		     void (*fill_info)(struct iser_rdma *c));
/* lib_rdma_flush_early ends the receives that were posted before there was a
 * queue pair, because there will be none. */
void lib_rdma_flush_early(struct iser_rdma *c);
/* lib_rdma_closed reports that the queue pair has ended. It may free c. */
void lib_rdma_closed(struct iser_rdma *c);
/* lib_rdma_asked takes c off the count of its listener: its request has been
 * reported, or will not come. Does nothing without a listener. */
void lib_rdma_asked(struct iser_rdma *c);

/* ---- iwarp.c ---- */

/* lib_rdma_make makes a queue pair on a socket, which it owns whatever it
 * returns. Returns an enum iser_error. */
int lib_rdma_make(struct iser_rdma *c, int fd, bool active);

/* ---- device.c: they return an enum iser_error ---- */

/* lib_rdma_device_connect begins to connect to c->host. */
int lib_rdma_device_connect(struct iser_rdma *c, uint16_t port);
/* lib_rdma_device_listen listens at an address of the devices. */
int lib_rdma_device_listen(struct iser_rdma_listener *l,
			   const struct net_addr *a);
/* lib_rdma_device_unlisten ends that. */
void lib_rdma_device_unlisten(struct iser_rdma_listener *l);

/* ---- rdma.c ---- */

/* lib_rdma_free_all frees all connections of a context. */
void lib_rdma_free_all(struct iser_context *ctx);

#endif
