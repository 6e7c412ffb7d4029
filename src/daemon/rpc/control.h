/* SPDX-License-Identifier: BSD-2-Clause */
/* control.h: the management socket of iserd, for iserctl and other clients. */
#ifndef DAEMON_RPC_CONTROL_H
#define DAEMON_RPC_CONTROL_H

#include <stdbool.h>

struct control;
struct daemon;

/* Ends iserd (shutdown_begin). */
typedef void control_shut_down(struct daemon *d, bool at_once, const char *why);
/* control_open listens at path, for which only the user that iserd runs as and
 * root have permission. Worker 0 only. NULL after a message. */
struct control *control_open(struct daemon *d, const char *path,
			     control_shut_down *shut_down);
/* control_close drops all clients and removes the socket; after workers_stop.
 * Answers that are still owed are not given any more. */
void control_close(struct control *c);

#endif
