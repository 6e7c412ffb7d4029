/* SPDX-License-Identifier: BSD-2-Clause */
/* alua.h: target port groups and their access states. */
#ifndef DEVICE_ALUA_H
#define DEVICE_ALUA_H

#include "device/unit/unit.h"

/* dev_nexus_access_init copies the access state of the nexus's target port to
 * n->access. On n's worker. */
void dev_nexus_access_init(struct dev_nexus *n);
/* dev_nexus_group returns the target port group of the nexus; 0: none. */
uint16_t dev_nexus_group(const struct dev_nexus *n);
/* dev_peripheral_qualifier returns the PERIPHERAL QUALIFIER bits for INQUIRY data
 * through the port of the nexus. */
uint8_t dev_peripheral_qualifier(const struct dev_nexus *n);
/* dev_inaccessible returns the additional sense code (NOT READY) if the access
 * state of the port forbids the command, else 0. */
uint16_t dev_inaccessible(const struct dev_task *t);
/* dev_server_groups_fini frees the snapshot of s. No worker is running. */
void dev_server_groups_fini(struct dev_server *s);

/* dev_report_groups executes REPORT TARGET PORT GROUPS and ends t. */
void dev_report_groups(struct dev_task *t);
/* dev_prepare_set_groups checks the CDB of SET TARGET PORT GROUPS and sets
 * *out_len to the bytes of the parameter list; 1: t was refused. */
int dev_prepare_set_groups(struct dev_task *t, uint64_t *out_len);
/* dev_set_groups executes SET TARGET PORT GROUPS and ends t, now or later. */
void dev_set_groups(struct dev_task *t);

#endif
