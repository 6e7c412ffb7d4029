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

/* lun_lacks_key returns why a file that an encrypted LUN has used is not served without a
 * key, unless it is only read: a WRITE of plain bytes would destroy its data. NULL: it may be.
 * Nothing is known of a copy without extended attributes, or where there are none. */
const char *lun_lacks_key(enum lun_kind kind, const char *path, bool has_key,
			  bool read_only);

/* lun_key_usable returns whether the user that iserd runs as can replace the
 * key of the LUN, if it has one; false after a message. */
bool lun_key_usable(const struct lun_spec *s, const struct options *o);

#endif
