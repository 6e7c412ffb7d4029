/* SPDX-License-Identifier: BSD-2-Clause */
/* alua.h: target port groups and their access states. */
#ifndef DEVICE_ALUA_H
#define DEVICE_ALUA_H

#include "device/unit/unit.h"

void dev_nexus_access_init(struct dev_nexus *n);
uint16_t dev_nexus_group(const struct dev_nexus *n); /* 0: none */
/* The peripheral qualifier of INQUIRY data by way of the nexus's port. */
uint8_t dev_peripheral_qualifier(const struct dev_nexus *n);
/* Why the port's access state forbids the command (NOT READY), or 0. */
uint16_t dev_inaccessible(const struct dev_task *t);
void dev_server_groups_fini(struct dev_server *s);

void dev_report_groups(struct dev_task *t);
int dev_prepare_set_groups(struct dev_task *t, uint64_t *out_len);
void dev_set_groups(struct dev_task *t);

#endif
