/* SPDX-License-Identifier: BSD-2-Clause */
/* encrypt.h: what ",key=FILE" and ",new-key=FILE" behind a LUN mean; and where
 * ",pi=FILE" is, before them (protection.h). */
#ifndef DAEMON_ENCRYPT_H
#define DAEMON_ENCRYPT_H

#include <limits.h>

#include "backstore/backstore.h"
#include "daemon/options.h"

struct lun_key {
	char store[PATH_MAX]; /* the LUN without what is behind it */
	/* in store, too: the file that protection information is kept in; NULL:
	 * none is named */
	const char *pi;
	const char *path; /* of the key; NULL: it is not encrypted */
	bool is_new;	  /* new-key */
};

/* lun_key_split: false after a message. */
bool lun_key_split(struct lun_key *k, const char *spec);
/* lun_encrypt puts the filter in front of b, which it takes over. NULL after a
 * message. */
struct bs *lun_encrypt(struct bs *b, const struct options *o,
		       const struct lun_key *k, struct io_loop *const *loops);

/* lun_key_usable: the user that iserd runs as can change the LUN's key, if it
 * has one; else false after a message. */
bool lun_key_usable(const char *spec, const struct options *o);

#endif
