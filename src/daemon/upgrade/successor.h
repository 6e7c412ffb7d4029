/* SPDX-License-Identifier: BSD-2-Clause */
/* successor.h: starts the iserd that takes over from this one (SIGUSR2). */
#ifndef DAEMON_UPGRADE_SUCCESSOR_H
#define DAEMON_UPGRADE_SUCCESSOR_H

struct daemon;

/* successor_start starts the program of this process anew, with the same arguments
 * and --takeover: the file of its first argument, which may be of another version by
 * now. A message says why it was not started. Worker 0. */
void successor_start(struct daemon *d);

#endif
