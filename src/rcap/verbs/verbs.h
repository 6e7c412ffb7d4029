/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs.h: RDMA hardware and the kernel's software devices, by libibverbs and
 * librdmacm, as a provider of rcap/rcap.h. The provider is a module,
 * rcap-verbs.so, which is loaded on demand: its users see this header only,
 * which needs no RDMA headers. The module exports one symbol, VERBS_SYMBOL, a
 * struct verbs_module.
 *
 * Threads: a struct verbs and its connections and listeners belong to the
 * thread of its loop.
 */
#ifndef RCAP_VERBS_VERBS_H
#define RCAP_VERBS_VERBS_H

#include <sys/socket.h>

#include "io/io.h"
#include "rcap/rcap.h"

#define VERBS_ABI    3
#define VERBS_SYMBOL "openiser_verbs"
#define VERBS_FILE   "rcap-verbs.so"

struct verbs;
struct verbs_listener;
struct verbs_conn;
struct verbs_request; /* a connection request that was not taken yet */

/* Arguments of verbs_module.open. */
struct verbs_host {
	/* Listeners wait for devices that are absent. */
	bool wait;
	/* Gets events of devices as sentences; on the loop's thread. May be
	 * NULL. */
	void (*event)(void *arg, const char *text);
	void *arg;
};

struct verbs_config {
	uint16_t ird, ord;	     /* upper limits */
	const uint8_t *private_data; /* active: copied */
	/* at most 56, which every fabric supports */
	size_t private_len;
	unsigned sends, recvs; /* queue depths; lowered to the device's */
	xtime connect_time;
};

struct verbs_module {
	uint32_t abi; /* VERBS_ABI */
	/* open: NULL with *err -ENODEV (no RDMA device or no rdma_cm; only if
	 * the host does not wait for devices), -ENOMEM, ... */
	struct verbs *(*open)(struct io_loop *l, const struct verbs_host *host,
			      int *err);
	/* close: the caller has ended all listeners and connections. */
	void (*close)(struct verbs *v);
	/*
	 * listen: on every device that has this address; the wildcard address
	 * means all devices, including those that appear later. *err: whether a
	 * device has the address now; with verbs_host.wait an error does not
	 * make the result NULL. asked gets each connection request, which it
	 * refuses, takes, or hands to another thread.
	 */
	struct verbs_listener *(*listen)(struct verbs *v,
					 const struct sockaddr *sa,
					 const struct verbs_config *cfg,
					 void (*asked)(void *arg,
						       struct verbs_request *r),
					 void *arg, int *err);
	void (*unlisten)(struct verbs_listener *l);
	/* hand: r belongs to the thread of `to` from now on, and the caller
	 * asks that thread to take or refuse it. Returns 0, or -Exxx: r
	 * stays. */
	int (*hand)(struct verbs_request *r, struct verbs *to);
	/* take consumes r. accepted gets the connection before its
	 * connect_request and sets its user; if it does not, the connection is
	 * rejected. Not called if the connection failed or the peer gave up. */
	void (*take)(struct verbs_request *r,
		     void (*accepted)(void *arg, struct verbs_conn *c),
		     void *arg);
	void (*refuse)(struct verbs_request *r);
	/* asker: the address from which r came. */
	void (*asker)(const struct verbs_request *r,
		      struct sockaddr_storage *peer);
	/* connect starts a connection; its user gets the result by up-calls. */
	struct verbs_conn *(*connect)(struct verbs *v,
				      const struct sockaddr *dst,
				      const struct verbs_config *cfg, int *err);
	struct rcap_qp *(*qp)(struct verbs_conn *c);
	/* gone is called once, at the top of the loop, after the user's closed:
	 * free the connection there. */
	void (*on_gone)(struct verbs_conn *c, void (*gone)(void *arg),
			void *arg);
	void (*free)(struct verbs_conn *c);
	/* An address that is not known yet stays zero. */
	void (*addresses)(const struct verbs_conn *c,
			  struct sockaddr_storage *local,
			  struct sockaddr_storage *peer);
	const char *(*device)(const struct verbs_conn *c);
};

#endif
