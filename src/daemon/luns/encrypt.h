/* SPDX-License-Identifier: BSD-2-Clause */
/* encrypt.h: the suffixes of a LUN: ",key=FILE" and ",new-key=FILE" encrypt it,
 * and ",pi=FILE" before them is for protection.h. */
#ifndef DAEMON_LUNS_ENCRYPT_H
#define DAEMON_LUNS_ENCRYPT_H

#include <limits.h>

#include "backstore/backstore.h"
#include "daemon/config/options.h"

struct lun_key {
	char store[PATH_MAX]; /* the LUN without its suffixes */
	/* in store[], too: the file of protection information, or NULL */
	const char *pi;
	const char *path; /* of the key, borrowed from the text; or NULL */
	bool is_new;	  /* new-key */
};

/* lun_key_split takes the text of a LUN apart. False after a message. */
bool lun_key_split(struct lun_key *k, const char *spec);
/* lun_encrypt puts an encrypting filter in front of b, which it takes over.
 * NULL after a message. */
struct bs *lun_encrypt(struct bs *b, const struct options *o,
		       const struct lun_key *k, struct io_loop *const *loops);

/* lun_key_usable returns whether the user that iserd runs as can replace the
 * key of the LUN, if it has one; false after a message. */
bool lun_key_usable(const char *spec, const struct options *o);

#endif
