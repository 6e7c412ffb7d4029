/* SPDX-License-Identifier: BSD-2-Clause */
/* cluster.h: the units that other gateways serve, too, as JSON. */
#ifndef DAEMON_RPC_CLUSTER_H
#define DAEMON_RPC_CLUSTER_H

#include <jansson.h>

#include "daemon/cluster/gateway.h"

/* gateway_role_name returns the role as "cluster status" and the metrics have it. */
const char *gateway_role_name(enum cluster_role role);
/* gateway_json returns the gateway with its members; name: of a backstore, only that
 * one; NULL: all. The caller releases the value. */
json_t *gateway_json(const struct daemon *d, const char *name);

#endif
