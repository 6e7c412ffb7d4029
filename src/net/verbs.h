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
 * installed), -ELIBACC: its libraries are missing, -ENODEV: no RDMA device.
 * why (size bytes) gets a sentence. The module is looked for in
 * $OPENISER_MODULES, then where it was installed.
 */
struct net_verbs *net_verbs_open(struct io_loop *l, int *err, char *why,
				 size_t size);
/* net_verbs_unlisten: nobody is accepted any more. */
void net_verbs_unlisten(struct net_verbs *v);
/* net_verbs_close: no connection is left; listeners end with it. NULL is
 * fine, for both. */
void net_verbs_close(struct net_verbs *v);
const struct verbs_module *net_verbs_module(const struct net_verbs *v);

/* net_verbs_listen: on every device that has the address. accepted makes a
 * net_conn of it (net_conn_new_verbs, net_conn_start), or leaves it alone: then
 * the peer is refused. Returns 0 or -Exxx. */
int net_verbs_listen(struct net_verbs *v, const struct net_addr *a,
		     void (*accepted)(void *arg, struct verbs_conn *c),
		     void *arg);

/* net_verbs_connect begins to connect; the rest comes by the queue pair. */
struct verbs_conn *net_verbs_connect(struct net_verbs *v,
				     const struct net_addr *a, int *err);

#endif
