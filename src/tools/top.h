/* SPDX-License-Identifier: BSD-2-Clause */
/* top.h: iserctl top. */
#ifndef TOOLS_TOP_H
#define TOOLS_TOP_H

#include <jansson.h>

/* top_run shows the rates of LUNs or sessions, as params says. Returns the exit
 * status of iserctl. */
int top_run(const char *socket, unsigned timeout, const json_t *params);

#endif
