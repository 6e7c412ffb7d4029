/* SPDX-License-Identifier: BSD-2-Clause */
/* ctl.h: requests of iserctl to the management socket of iserd, with its messages and exit
 * statuses. */
#ifndef TOOLS_CTL_H
#define TOOLS_CTL_H

#include <jansson.h>

#include "tools/rpc_link.h"

enum {
	EXIT_OK = 0,
	EXIT_REFUSED = 1, /* the answer is an error, or not valid */
	EXIT_USAGE = 2,
	EXIT_NO_DAEMON = 3, /* no process listens on the socket, or answers */
	EXIT_PERMISSION = 4,
};

/* A request. failed, or NULL, is called before a message. */
struct ctl_call {
	const char *path, *method;
	json_t *params; /* borrowed */
	unsigned seconds;
	void (*failed)(void);
};

/* ctl_open connects l, which the caller closes in any case. Returns the exit status: not
 * EXIT_OK after a message. */
int ctl_open(struct rpc_link *l, const char *path, unsigned seconds);
/* ctl_call sends a request and reads its answer, which the caller releases. Returns the
 * exit status: not EXIT_OK after a message. */
int ctl_call(struct rpc_link *l, const struct ctl_call *c, json_t **answer);
/* ctl_make_plain escapes every string in v: initiators choose their names. */
void ctl_make_plain(json_t *v);

#endif
