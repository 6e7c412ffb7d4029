/* SPDX-License-Identifier: BSD-2-Clause */
/* protection.h: protection information of LUNs, and where it is kept. */
#ifndef DAEMON_PROTECTION_H
#define DAEMON_PROTECTION_H

#include "backstore/backstore.h"
#include "daemon/options.h"
#include "io/io.h"

struct lun_key;

/*
 * protection_open puts the store of a LUN's protection information beside b,
 * if there is to be any (--protection), or is any already: for memory other
 * memory, for a file "FILE.pi", for block devices (and files) the one that
 * ",pi=FILE" names. What an unclean end left half done is mended.
 * Takes over b; NULL after a line on stderr.
 */
struct bs *protection_open(const struct options *o, const struct lun_key *k,
			   struct bs *b, struct io_loop *const *loops);

#endif
