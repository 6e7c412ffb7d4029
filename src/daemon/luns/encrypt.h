/* SPDX-License-Identifier: BSD-2-Clause */
/* encrypt.h: LUNs that are encrypted by the suffixes ",key=FILE" and
 * ",new-key=FILE". */
#ifndef DAEMON_LUNS_ENCRYPT_H
#define DAEMON_LUNS_ENCRYPT_H

#include "backstore/backstore.h"
#include "daemon/config/lun_spec.h"
#include "daemon/config/options.h"

/* lun_encrypt puts an encrypting filter in front of b, which it takes over. The
 * LUN has one of the suffixes. NULL after a message. */
struct bs *lun_encrypt(struct bs *b, const struct options *o,
		       const struct lun_spec *s, struct io_loop *const *loops);

/* Why a file that an encrypted LUN has used is not served without a key, unless it is only
 * read: a WRITE of plain bytes would destroy its data. */
extern const char lun_key_is_missing[];
/* lun_is_encrypted returns whether the file is marked as that of an encrypted LUN. A copy
 * without extended attributes is not, nor is a file on a file system without them. */
bool lun_is_encrypted(const char *path);

/* lun_key_usable returns whether the user that iserd runs as can replace the
 * key of the LUN, if it has one; false after a message. */
bool lun_key_usable(const struct lun_spec *s, const struct options *o);

#endif
