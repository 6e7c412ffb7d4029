/* SPDX-License-Identifier: BSD-2-Clause */
/* alua.h: target port groups and their access states. */
#ifndef DEVICE_ALUA_H
#define DEVICE_ALUA_H

#include "device/unit/unit.h"

/* A target port group without its ports. */
struct dev_group_head {
	uint16_t id;
	enum dev_access state;
	bool preferred;
	uint8_t status;
};

/* dev_nexus_access_init copies the access state of the nexus's target port to
 * n->access. On n's worker. */
void dev_nexus_access_init(struct dev_nexus *n);
/* dev_itl_access_init does that for a shared unit, which has groups of its own. */
void dev_itl_access_init(struct dev_itl *i);
/* dev_group_at returns the target port group of the nexus at the unit; 0: none. */
uint16_t dev_group_at(const struct dev_nexus *n, const struct dev_lu *lu);
/* dev_peripheral_qualifier returns the PERIPHERAL QUALIFIER bits for INQUIRY data
 * through the port of the nexus. */
uint8_t dev_peripheral_qualifier(const struct dev_nexus *n,
				 const struct dev_lu *lu);
/* dev_inaccessible returns the additional sense code (NOT READY) if the access
 * state of the port forbids the command, else 0. */
uint16_t dev_inaccessible(const struct dev_task *t);
/* dev_server_groups_fini frees the snapshot of s. No worker is running. */
void dev_server_groups_fini(struct dev_server *s);

/* ---- lu_groups.c: the groups of a shared unit ---- */

/* dev_own_access_set: dev_lu_access_set, without what reservations have to do with it. */
int dev_own_access_set(struct dev_lu *lu, enum dev_access state,
		       void (*done)(void *arg, int err), void *arg);
/* dev_lu_drain_give_up ends the drain in progress: its change ends with ERR_ABORTED. */
void dev_lu_drain_give_up(struct dev_lu *lu);
/* dev_put_lu_groups writes the groups that t's target reports to p, and returns their
 * length. */
size_t dev_put_lu_groups(const struct dev_task *t, uint8_t *p);
/* dev_regroup executes the parameter list of SET TARGET PORT GROUPS. */
void dev_regroup(struct dev_task *t, const struct dev_group_change *changes,
		 unsigned n);

/* ---- group.c ---- */

/* dev_put_group writes the descriptor of a group to p, and returns its length; ports are
 * its n relative target port identifiers. dev_groups_set ends SET TARGET PORT GROUPS. */
size_t dev_put_group(uint8_t *p, const struct dev_group_head *g,
		     const uint16_t *ports, unsigned n);
void dev_groups_set(struct dev_task *t, int err);

/* ---- alua.c ---- */

/* dev_report_groups executes REPORT TARGET PORT GROUPS and ends t. */
void dev_report_groups(struct dev_task *t);
/* dev_prepare_set_groups checks the CDB of SET TARGET PORT GROUPS and sets
 * *out_len to the bytes of the parameter list; 1: t was refused. */
int dev_prepare_set_groups(struct dev_task *t, uint64_t *out_len);
/* dev_set_groups executes SET TARGET PORT GROUPS and ends t, now or later. */
void dev_set_groups(struct dev_task *t);

#endif
