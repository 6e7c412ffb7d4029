/* SPDX-License-Identifier: BSD-2-Clause */
/* module.h: stores that are modules: Ceph images, exports of NBD servers. */
#ifndef DAEMON_LUNS_MODULE_H
#define DAEMON_LUNS_MODULE_H

#include "backstore/backstore.h"
#include "daemon/config/lun_spec.h"
#include "daemon/config/options.h"

struct cluster_store;
struct cluster_store_events;

/* lun_is_module returns whether stores of this kind are modules. */
bool lun_is_module(enum lun_kind kind);
/* lun_open_module loads the module of the store and opens the store. may_wait and
 * loops are those of lun_open. NULL after a message. */
struct bs *lun_open_module(const struct options *o, const struct lun_spec *s,
			   bool may_wait, struct io_loop *const *loops);
/* lun_module_cluster opens the record of the open store b for a gateway
 * (backstore/module.h); ev is copied. May block; any thread. NULL: why (size bytes)
 * has a sentence. */
struct cluster_store *lun_module_cluster(const struct lun_spec *s, struct bs *b,
					 const char *gateway,
					 const struct cluster_store_events *ev,
					 char *why, size_t size);

#endif
