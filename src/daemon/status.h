/* SPDX-License-Identifier: BSD-2-Clause */
/* status.h: the daemon's state as JSON. */
#ifndef DAEMON_STATUS_H
#define DAEMON_STATUS_H

#include <jansson.h>

#include "daemon/daemon.h"

/* status_sessions appends the worker's connections; on its thread. */
void status_sessions(const struct worker *w, json_t *sessions);
/* status_daemon takes over sessions. Worker 0. */
json_t *status_daemon(const struct daemon *d, json_t *sessions);
json_t *status_luns(const struct daemon *d); /* worker 0 */
json_t *status_lun(const struct daemon *d, const struct dev_lu *lu);
json_t *status_reservations(const struct daemon *d); /* worker 0 */

#endif
