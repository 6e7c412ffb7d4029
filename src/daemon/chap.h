/* SPDX-License-Identifier: BSD-2-Clause */
/* chap.h: the names and secrets of CHAP that the options name. */
#ifndef DAEMON_CHAP_H
#define DAEMON_CHAP_H

#include "daemon/config/options.h"
#include "target/target.h"

/* chap_read reads both secrets into *c, which the caller zeroes before and
 * wipes afterwards. Returns 0, or an exit code after a message. */
int chap_read(const struct options *o, struct tgt_chap *c);

struct daemon;

/* chap_reload (chap_reload.c) reads the files again, for the logins from then
 * on; a bad file leaves all secrets unchanged, after a message. On worker 0. */
void chap_reload(struct daemon *d);

#endif
