/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs.h: RDMA devices on a loop: loads the module rcap-verbs.so on demand. If
 * the module, its libraries or a device are absent, the caller gets a sentence
 * and runs without.
 *
 * Threads: every object belongs to the thread of its loop.
 */
#ifndef NET_VERBS_H
#define NET_VERBS_H

#include "net/net.h"
#include "rcap/verbs/verbs.h"

struct net_verbs;

/*
 * net_verbs_open: NULL with *err -ENOENT: no such module (not built, or not
 * installed); -ELIBACC: its libraries are missing; -ENODEV: no RDMA device, and
 * host does not wait for one; -ELIBBAD, -ENOMEM. why (size bytes) gets a
 * sentence. The module is looked for in $OPENISER_MODULES, or else in the
 * directory of the installation.
 */
struct net_verbs *net_verbs_open(struct io_loop *l,
				 const struct verbs_host *host, int *err,
				 char *why, size_t size);
/* net_verbs_unlisten ends all listeners. NULL has no effect. */
void net_verbs_unlisten(struct net_verbs *v);
/* net_verbs_close ends the listeners and unloads the module; the caller has
 * freed all connections. NULL has no effect. */
void net_verbs_close(struct net_verbs *v);
/* net_verbs_module: the table of the module. */
const struct verbs_module *net_verbs_module(const struct net_verbs *v);
/* net_verbs_handle: the argument of the module's functions. */
struct verbs *net_verbs_handle(const struct net_verbs *v);

/*
 * net_verbs_listen listens on every device that has the address. asked gets
 * each connection request: it refuses it, takes it, or hands it to another
 * worker. Returns 0 or -Exxx; if the host waits for devices, the listener
 * retries after an error.
 */
int net_verbs_listen(struct net_verbs *v, const struct net_addr *a,
		     void (*asked)(void *arg, struct verbs_request *r),
		     void *arg);
/* net_verbs_hand gives r to another worker; the caller then informs that
 * worker. 0 or -Exxx: r stays. */
int net_verbs_hand(struct net_verbs *from, struct verbs_request *r,
		   struct net_verbs *to);

/* net_verbs_connect starts to connect; the queue pair reports the result. NULL
 * with -Exxx in *err. */
struct verbs_conn *net_verbs_connect(struct net_verbs *v,
				     const struct net_addr *a, int *err);

#endif
