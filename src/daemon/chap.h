/* SPDX-License-Identifier: BSD-2-Clause */
/* chap.h: the names and secrets of CHAP that the options name. */
#ifndef DAEMON_CHAP_H
#define DAEMON_CHAP_H

#include "daemon/config/options.h"
#include "iscsi/chap.h"

/* Without a name where CHAP is not asked for. */
struct chap {
	struct iscsi_chap_secret in;  /* by which initiators log in */
	struct iscsi_chap_secret out; /* by which the target proves itself */
};

/* chap_read reads both secrets into *c, which the caller zeroes before and
 * wipes afterwards. Returns 0, or an exit code after a message. */
int chap_read(const struct options *o, struct chap *c);

#endif
