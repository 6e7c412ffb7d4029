/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * health.h: checks every few seconds whether the files of the LUNs still exist
 * and whether a flush failed; a finding is logged once and stays in the status.
 * On worker 0; a helper thread checks the files.
 */
#ifndef DAEMON_APPLY_HEALTH_H
#define DAEMON_APPLY_HEALTH_H

#include "backstore/backstore.h"
#include "daemon/daemon.h"

/* health_open starts the checks; after setup_stores. False after a message. */
bool health_open(struct daemon *d);
/* health_close waits two seconds at most for a check in progress. False, after
 * a message: the check hangs, and its store must not be closed. A second call
 * does nothing. */
bool health_close(struct daemon *d);
/* health_detached notes that unit `index` has left d->units. */
void health_detached(struct daemon *d, unsigned index);

#endif
