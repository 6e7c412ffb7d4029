/* SPDX-License-Identifier: BSD-2-Clause */
/* ctl_cluster.h: the answer of "cluster status" as text. */
#ifndef TOOLS_CTL_CLUSTER_H
#define TOOLS_CTL_CLUSTER_H

#include <jansson.h>

/* ctl_print_cluster prints the gateway, a table of its units, and a table of the
 * gateways that serve them. The texts are escaped already. */
void ctl_print_cluster(const json_t *status);

#endif
