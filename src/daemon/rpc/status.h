/* SPDX-License-Identifier: BSD-2-Clause */
/* status.h: the daemon's state as JSON. */
#ifndef DAEMON_RPC_STATUS_H
#define DAEMON_RPC_STATUS_H

#include <jansson.h>

#include "daemon/daemon.h"

struct portal;

/* Each function returns a new value, which the caller releases. Worker 0,
 * unless said otherwise. */

/* status_sessions appends the worker's connections to the array sessions until
 * it has `most`; on the worker's thread. */
void status_sessions(const struct worker *w, json_t *sessions, size_t most);
/* status_daemon is the result of "status". */
json_t *status_daemon(struct daemon *d, json_t *sessions);
/* status_listeners returns the addresses at which the portal group listens; status_listen
 * those of all portal groups. */
json_t *status_listeners(const struct portal *p);
json_t *status_listen(const struct daemon *d);
/* status_admission is the counters and limits of admission.h. */
json_t *status_admission(struct gate *g);
/* status_refusal returns the name of a reason to refuse a connection; NULL: it
 * is none. */
const char *status_refusal(enum admission_verdict v);
/* status_shown returns a text of a peer or an administrator, escaped: jansson needs
 * valid UTF-8, and the text must not control a terminal. NULL: null. */
json_t *status_shown(const char *text);

/* Functions of status_luns.c: */
/* status_places returns the LUNs by which initiators reach the units: for the name
 * of each backstore that is mapped, an array of "TARGET/N" and "TARGET/MAP/N". */
json_t *status_places(const struct daemon *d);
/* status_luns is the result of "luns": status_lun of each. */
json_t *status_luns(const struct daemon *d);
/* status_lun is one unit of d: its backstore, LUNs, capacity and so on. places: of
 * status_places. */
json_t *status_lun(const struct daemon *d, const struct dev_lu *lu,
		   const json_t *places);
/* status_reservations is the result of "reservations". */
json_t *status_reservations(const struct daemon *d);

/* status_drain is the result of "drain": the targets that admit no new session. */
json_t *status_drain(const struct daemon *d);
/* status_targets is the result of "targets". */
json_t *status_targets(const struct daemon *d);
/* status_tree, of status_tree.c, is the result of "tree". */
json_t *status_tree(const struct daemon *d, const json_t *sessions);
/* status_groups is the result of "groups". */
json_t *status_groups(const struct daemon *d);

#endif
