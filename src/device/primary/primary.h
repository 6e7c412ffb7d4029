/* SPDX-License-Identifier: BSD-2-Clause */
/* primary.h: the commands that every type of unit has (SPC-4), and what other
 * rooms need of their answers. */
#ifndef DEVICE_PRIMARY_H
#define DEVICE_PRIMARY_H

#include "device/unit/command.h"

/* ---- opcodes.c ---- */

/* The descriptors of all commands the unit has; returns their length. */
size_t dev_put_opcodes(const struct dev_lu *lu, uint8_t *p, bool timeouts);
#define DEV_OUR_OPCODES_MAX 1024u /* of a passthrough unit */
void dev_report_opcodes(struct dev_task *t);

/* ---- spc.c ---- */

uint8_t dev_peripheral_type(const struct dev_lu *lu);
void dev_inquiry(struct dev_task *t);
void dev_report_luns(struct dev_task *t);
void dev_request_sense(struct dev_task *t);
void dev_test_unit_ready(struct dev_task *t);
void dev_report_tmfs(struct dev_task *t);

/* ---- spc_more.c ---- */

bool dev_has_timestamp(const struct dev_lu *lu);
void dev_report_timestamp(struct dev_task *t);
int dev_prepare_set_timestamp(struct dev_task *t, uint64_t *out_len);
void dev_set_timestamp(struct dev_task *t);
int dev_prepare_write_buffer(struct dev_task *t, uint64_t *out_len);
void dev_write_buffer(struct dev_task *t);
void dev_read_buffer(struct dev_task *t);

/* ---- vpd.c ---- */

void dev_vpd(struct dev_task *t, uint8_t page, size_t alloc);
/* Designators of the nexus's target port and device (VPD 83h); returns where
 * they end. */
#define DEV_PORT_NAMES_MAX 512u
uint8_t *dev_put_port_names(const struct dev_task *t, uint8_t *p);

/* ---- identify.c ---- */

void dev_report_identifying(struct dev_task *t);
int dev_prepare_set_identifying(struct dev_task *t, uint64_t *out_len);
void dev_set_identifying(struct dev_task *t);

/* ---- mode.c ---- */

void dev_mode_sense_6(struct dev_task *t);
void dev_mode_sense_10(struct dev_task *t);
int dev_prepare_mode_select(struct dev_task *t, uint64_t *out_len);
void dev_mode_select(struct dev_task *t);

/* ---- log.c ---- */

void dev_log_sense(struct dev_task *t);
void dev_log_select(struct dev_task *t);

/* ---- removal.c ---- */

void dev_start_stop(struct dev_task *t);
void dev_prevent_allow(struct dev_task *t);
void cd_start_stop(struct dev_task *t); /* of a CD/DVD device */

#endif
