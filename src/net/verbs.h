/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs.h: RDMA devices under a loop: loads the module rcap-verbs.so when it is
 * wanted. Where the module, its libraries or a device are absent there is a
 * sentence why, and everything else goes on.
 *
 * Threads: everything belongs to the thread of its loop.
 */
#ifndef NET_VERBS_H
#define NET_VERBS_H

#include "net/net.h"
#include "rcap/verbs/verbs.h"

struct net_verbs;

/*
 * net_verbs_open: *err -ENOENT: no such module (it was not built, or is not
 * installed), -ELIBACC: its libraries are missing, -ENODEV: no RDMA device,
 * and host does not wait for one.
 * why (size bytes) gets a sentence. The module is looked for in
 * $OPENISER_MODULES, then where it was installed.
 */
struct net_verbs *net_verbs_open(struct io_loop *l,
				 const struct verbs_host *host, int *err,
				 char *why, size_t size);
/* net_verbs_unlisten: nobody is accepted any more. */
void net_verbs_unlisten(struct net_verbs *v);
/* net_verbs_close: no connection is left; listeners end with it. NULL is
 * fine, for both. */
void net_verbs_close(struct net_verbs *v);
const struct verbs_module *net_verbs_module(const struct net_verbs *v);
/* What the module's calls take. */
struct verbs *net_verbs_handle(const struct net_verbs *v);

/*
 * net_verbs_listen: on every device that has the address. asked gets each
 * connection: it refuses it, takes it, or hands it to another worker. Returns
 * 0 or -Exxx: where the host waits for devices it listens none the less, later.
 */
int net_verbs_listen(struct net_verbs *v, const struct net_addr *a,
		     void (*asked)(void *arg, struct verbs_request *r),
		     void *arg);
/* net_verbs_hand: r is the other worker's, which is to be told now. */
int net_verbs_hand(struct net_verbs *from, struct verbs_request *r,
		   struct net_verbs *to);

/* net_verbs_connect begins to connect; the rest comes by the queue pair. */
struct verbs_conn *net_verbs_connect(struct net_verbs *v,
				     const struct net_addr *a, int *err);

#endif
