/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs.h: RDMA hardware, and the kernel's software devices, by libibverbs and
 * librdmacm behind rcap/rcap.h. It is a module, rcap-verbs.so, that is loaded
 * when it is wanted: this header is all that its users see, and needs no RDMA
 * headers. The module exports one symbol, VERBS_SYMBOL, a struct
 * verbs_module.
 *
 * Threads: a struct verbs and all that comes of it belongs to the thread of
 * its loop.
 */
#ifndef RCAP_VERBS_VERBS_H
#define RCAP_VERBS_VERBS_H

#include <sys/socket.h>

#include "io/io.h"
#include "rcap/rcap.h"

#define VERBS_ABI    1
#define VERBS_SYMBOL "openiser_verbs"
#define VERBS_FILE   "rcap-verbs.so"

struct verbs;
struct verbs_listener;
struct verbs_conn;

struct verbs_config {
	uint16_t ird, ord;	     /* wished */
	const uint8_t *private_data; /* active: copied */
	size_t private_len;	     /* at most 56: what every fabric has */
	unsigned sends, recvs;	     /* queue depths; lowered to the device's */
	xtime connect_time;
};

struct verbs_module {
	uint32_t abi; /* VERBS_ABI */
	/* open: NULL with *err -ENODEV (no RDMA device or no rdma_cm here),
	 * -ENOMEM, ... */
	struct verbs *(*open)(struct io_loop *l, int *err);
	/* close: no listener and no connection is left. */
	void (*close)(struct verbs *v);
	/* listen: on every device that has this address. accepted gets each
	 * connection before its connect_request: set the user there. */
	struct verbs_listener *(*listen)(struct verbs *v,
					 const struct sockaddr *sa,
					 const struct verbs_config *cfg,
					 void (*accepted)(void *arg,
							  struct verbs_conn *c),
					 void *arg, int *err);
	void (*unlisten)(struct verbs_listener *l);
	/* connect: the queue pair's user hears of everything else. */
	struct verbs_conn *(*connect)(struct verbs *v,
				      const struct sockaddr *dst,
				      const struct verbs_config *cfg, int *err);
	struct rcap_qp *(*qp)(struct verbs_conn *c);
	/* gone is called once, from the loop's top, after the user's closed:
	 * free it there. */
	void (*on_gone)(struct verbs_conn *c, void (*gone)(void *arg),
			void *arg);
	void (*free)(struct verbs_conn *c);
	/* Either may stay zero when it is not known yet. */
	void (*addresses)(const struct verbs_conn *c,
			  struct sockaddr_storage *local,
			  struct sockaddr_storage *peer);
	const char *(*device)(const struct verbs_conn *c);
};

#endif
