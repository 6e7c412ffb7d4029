/* SPDX-License-Identifier: BSD-2-Clause */
/* ports.h: the file "ports" of the state directory: the relative target port
 * identifiers of all target ports, which saved registrations refer to. */
#ifndef DAEMON_LUNS_PORTS_H
#define DAEMON_LUNS_PORTS_H

#include "daemon/luns/state.h"

/* ports_load reserves the identifiers of the file, if there is one; before the
 * first target port is added. False after a message. */
bool ports_load(const struct state *s, struct dev_server *server);
/* ports_save replaces the file unless it has all ports. Blocks until the file is on the medium. A failure is reported: after the next start the
 * new ports may have other identifiers. Worker 0. */
void ports_save(const struct state *s, const struct dev_server *server);

#endif
