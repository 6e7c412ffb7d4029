/* SPDX-License-Identifier: BSD-2-Clause */
/* protection.h: where the protection information of LUNs is stored. */
#ifndef DAEMON_LUNS_PROTECTION_H
#define DAEMON_LUNS_PROTECTION_H

#include "backstore/backstore.h"
#include "daemon/config/lun_spec.h"
#include "daemon/config/options.h"
#include "io/io.h"

/*
 * protection_open combines b with the store of its protection information, if
 * --protection is given or there is such a store: memory for memory, "FILE.pi"
 * for a file, and the file of ",pi=FILE" for a block device or a file. Guards
 * that an unclean end left wrong are recalculated.
 * Takes over b; NULL after a message.
 */
struct bs *protection_open(const struct options *o, const struct lun_spec *s,
			   struct bs *b, struct io_loop *const *loops);

#endif
