/* SPDX-License-Identifier: BSD-2-Clause */
/* module.h: stores that are modules: Ceph images, exports of NBD servers. */
#ifndef DAEMON_LUNS_MODULE_H
#define DAEMON_LUNS_MODULE_H

#include "backstore/backstore.h"
#include "daemon/config/lun_spec.h"
#include "daemon/config/options.h"

/* lun_is_module returns whether stores of this kind are modules. */
bool lun_is_module(enum lun_kind kind);
/* lun_open_module loads the module of the store and opens the store. may_wait and
 * loops are those of lun_open. NULL after a message. */
struct bs *lun_open_module(const struct options *o, const struct lun_spec *s,
			   bool may_wait, struct io_loop *const *loops);

#endif
