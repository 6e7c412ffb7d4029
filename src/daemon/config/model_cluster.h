/* SPDX-License-Identifier: BSD-2-Clause */
/* model_cluster.h: the gateway of a model, and what it may have. */
#ifndef DAEMON_CONFIG_MODEL_CLUSTER_H
#define DAEMON_CONFIG_MODEL_CLUSTER_H

#include "daemon/config/model.h"

#define CFG_GATEWAYS  16u   /* that share a unit */
#define CFG_TAG_MAX   4095u /* of the portal groups of a gateway */
#define CFG_RTPI_STEP 4096u /* relative target port identifiers of a gateway */

/* cfg_cluster_check checks the section `cluster` and the backstores that other
 * gateways serve, too, and resolves the tags of portal groups; after the checks of
 * the nouns themselves. */
void cfg_cluster_check(struct cfg_model *m, struct cfg_errors *e);

#endif
