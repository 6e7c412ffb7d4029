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

#define VERBS_ABI    2
#define VERBS_SYMBOL "openiser_verbs"
#define VERBS_FILE   "rcap-verbs.so"

struct verbs;
struct verbs_listener;
struct verbs_conn;
struct verbs_request; /* a connection that asks */

/* What a struct verbs is opened with. */
struct verbs_host {
	/* Listeners wait for devices that are not there (yet, or any more). */
	bool wait;
	/* What devices say, for people; from the loop's thread. May be NULL. */
	void (*event)(void *arg, const char *text);
	void *arg;
};

struct verbs_config {
	uint16_t ird, ord;	     /* wished */
	const uint8_t *private_data; /* active: copied */
	size_t private_len;	     /* at most 56: what every fabric has */
	unsigned sends, recvs;	     /* queue depths; lowered to the device's */
	xtime connect_time;
};

struct verbs_module {
	uint32_t abi; /* VERBS_ABI */
	/* open: NULL with *err -ENODEV (no RDMA device or no rdma_cm here; not
	 * where the host waits for one), -ENOMEM, ... */
	struct verbs *(*open)(struct io_loop *l, const struct verbs_host *host,
			      int *err);
	/* close: no listener and no connection is left. */
	void (*close)(struct verbs *v);
	/*
	 * listen: on every device that has this address; the wildcard means
	 * all of them, those to come as well. *err says whether there is one
	 * now; with verbs_host.wait that is no reason for NULL. asked gets
	 * each connection, to be refused, taken, or handed on.
	 */
	struct verbs_listener *(*listen)(struct verbs *v,
					 const struct sockaddr *sa,
					 const struct verbs_config *cfg,
					 void (*asked)(void *arg,
						       struct verbs_request *r),
					 void *arg, int *err);
	void (*unlisten)(struct verbs_listener *l);
	/* hand: from here on r belongs to the thread of `to`: tell that one to
	 * take or refuse it. -Exxx: it stays. */
	int (*hand)(struct verbs_request *r, struct verbs *to);
	/* take: r is used up. accepted gets the connection, before its
	 * connect_request: set the user there, or leave it: that is a no. Not
	 * called when it can't be, or nobody asks any more. */
	void (*take)(struct verbs_request *r,
		     void (*accepted)(void *arg, struct verbs_conn *c),
		     void *arg);
	void (*refuse)(struct verbs_request *r);
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
