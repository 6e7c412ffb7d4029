/* SPDX-License-Identifier: BSD-2-Clause */
/* follow.h: iserctl events. */
#ifndef TOOLS_FOLLOW_H
#define TOOLS_FOLLOW_H

#include <jansson.h>
#include <stdbool.h>

/* follow_run prints the events of iserd until the connection ends or, with the
 * parameter count, until so many were printed. Returns the exit status. */
int follow_run(const char *socket, unsigned timeout, bool as_json,
	       json_t *params);

#endif
