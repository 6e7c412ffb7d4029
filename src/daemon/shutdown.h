/* SPDX-License-Identifier: BSD-2-Clause */
/* shutdown.h: the orderly end of iserd. All of it is worker 0's. */
#ifndef DAEMON_SHUTDOWN_H
#define DAEMON_SHUTDOWN_H

#include "daemon/daemon.h"

/* shutdown_init prepares the messages and timers of the end; after
 * workers_open. */
void shutdown_init(struct daemon *d);
/* shutdown_begin closes the listeners and asks all sessions to log out, or at_once drops all
 * connections, so that initiators connect to the next iserd (takeover.h); why is for the log.
 * Does nothing unless iserd is serving. The loop of worker 0 stops when every worker is idle, or
 * after a limit of seconds. */
void shutdown_begin(struct daemon *d, bool at_once, const char *why);
/* shutdown_flush flushes every store, after workers_stop. Sets d->exit_code
 * where data may be lost, and d->hung where a flush does not return. */
void shutdown_flush(struct daemon *d);

#endif
