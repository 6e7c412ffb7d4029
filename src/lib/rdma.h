/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma.h: what the files of libiser's RDMA connections share: a queue pair of
 * software iWARP on a socket, and who is told about it.
 */
#ifndef LIB_RDMA_H
#define LIB_RDMA_H

#include "iser/rdma.h"
#include "lib/internal.h"
#include "rcap/iwarp/iwarp.h"

enum rdma_state {
	RDMA_CONNECTING, /* TCP */
	RDMA_STARTING,	 /* MPA; on a listener's side the user's answer, too */
	RDMA_UP,
	RDMA_DOWN, /* nothing is left of the connection */
};

struct rdma_wait {
	bool over;
	int err;
};

struct iser_rdma {
	struct iser_context *ctx;
	struct list link;
	enum rdma_state state;
	struct iser_rdma_options options;
	/* who is told; callbacks NULL: it is the library's own still */
	const struct iser_rdma_callbacks *callbacks;
	void *arg;
	struct iser_rdma_listener *listener; /* until it was requested */
	struct rdma_wait *wait;
	bool freeing;
	/* the connection; NULL when there is none */
	struct net_connector *connector;
	struct net_stream *stream;
	struct iwarp *iwarp;
	struct verbs_conn *vconn; /* or one of a device's */
	struct rcap_qp *qp;	  /* of either */
	struct io_defer gone;	  /* disconnected before it was connected */
	struct list early; /* rcap_recv.link: posted before there was a qp */
	uint8_t private_data[RCAP_PRIVATE_MAX];
	size_t private_len;
	char host[256];
	/* what is kept past the connection */
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
	struct net_listener *net;
	struct verbs_listener *verbs; /* or that of devices */
	unsigned asking; /* connections that were not requested yet */
	void (*request)(void *arg, struct iser_rdma *c,
			const struct iser_rdma_peer *peer);
	void *arg;
	char address[NET_ADDR_STR];
};

/* ERR_... and -Exxx to enum iser_error, as RDMA users see them. */
int lib_rdma_error(int err);

struct iser_rdma *lib_rdma_new(struct iser_context *ctx,
			       const struct iser_rdma_options *options);
/* lib_rdma_make puts a queue pair on fd, which it takes over. enum iser_error;
 * c is as before then, but for the fd. */
int lib_rdma_make(struct iser_rdma *c, int fd, bool active);
/* lib_rdma_drop forgets c at once: it has no connection. */
void lib_rdma_drop(struct iser_rdma *c);

extern const struct rcap_user lib_rdma_user;
/* Nothing is left of its connection: the last thing that is done with c. */
void lib_rdma_closed(struct iser_rdma *c);

/* rdma_device.c: enum iser_error, said. */
int lib_rdma_device_connect(struct iser_rdma *c, uint16_t port);
int lib_rdma_device_listen(struct iser_rdma_listener *l,
			   const struct net_addr *a);
void lib_rdma_device_unlisten(struct iser_rdma_listener *l);
void lib_rdma_device_info(struct iser_rdma *c); /* it is established */

/* rdma_listen.c: c is its listener's no more. */
void lib_rdma_asked(struct iser_rdma *c);

/* rdma_post.c: up-calls that give back what was posted. */
void lib_rdma_wr_done(void *arg, struct rcap_wr *wr, int err);
void lib_rdma_received(void *arg, struct rcap_recv *r, int err);

#endif
