/* SPDX-License-Identifier: BSD-2-Clause */
/* groups.h: target port groups (ALUA) as a person writes and reads them. */
#ifndef DAEMON_GROUPS_H
#define DAEMON_GROUPS_H

#include <jansson.h>

#include "device/device.h"

/* group_parse reads "ID:STATE:PORT[,PORT...][:preferred]"; false: it is
 * malformed. */
bool group_parse(struct dev_group *g, const char *text);
/* group_state_parse: "optimized", "non-optimized", "standby" or
 * "unavailable". */
bool group_state_parse(enum dev_access *state, const char *text);
const char *group_state_name(enum dev_access state);
json_t *groups_json(const struct dev_server *s);

#endif
