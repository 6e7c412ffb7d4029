/* SPDX-License-Identifier: BSD-2-Clause */
/* schema.h: the rows of config/schema.c and api.c as JSON. */
#ifndef DAEMON_RPC_SCHEMA_H
#define DAEMON_RPC_SCHEMA_H

#include <jansson.h>
#include <stdbool.h>

/* schema_json returns the rows, which the caller releases. */
json_t *schema_json(void);
/* schema_print prints them on standard output, for "iserd schema". False: they
 * could not be written. */
bool schema_print(void);

#endif
