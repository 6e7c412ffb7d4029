/* SPDX-License-Identifier: BSD-2-Clause */
/* primary.h: the commands that every type of unit has (SPC-4), and functions
 * that other folders call. command.h describes dev_prepare_* and the
 * functions that execute a command (the row's prepare and run). */
#ifndef DEVICE_PRIMARY_H
#define DEVICE_PRIMARY_H

#include "device/unit/command.h"

/* ---- opcodes.c ---- */

/* dev_put_opcodes writes the command descriptors of all commands of the unit
 * to p, with timeouts descriptors if `timeouts`; returns their length. */
size_t dev_put_opcodes(const struct dev_lu *lu, uint8_t *p, bool timeouts);
#define DEV_OUR_OPCODES_MAX 1024u /* bytes, of a passthrough unit */
/* dev_report_opcodes executes REPORT SUPPORTED OPERATION CODES. */
void dev_report_opcodes(struct dev_task *t);

/* ---- spc.c ---- */

/* dev_peripheral_type returns the PERIPHERAL DEVICE TYPE of INQUIRY data. */
uint8_t dev_peripheral_type(const struct dev_lu *lu);
/* Each executes the command of its name; dev_report_tmfs executes REPORT
 * SUPPORTED TASK MANAGEMENT FUNCTIONS. */
void dev_inquiry(struct dev_task *t);
void dev_report_luns(struct dev_task *t);
void dev_request_sense(struct dev_task *t);
void dev_test_unit_ready(struct dev_task *t);
void dev_report_tmfs(struct dev_task *t);

/* ---- spc_more.c ---- */

/* dev_has_timestamp returns whether the unit has REPORT and SET TIMESTAMP. */
bool dev_has_timestamp(const struct dev_lu *lu);
/* Each validates or executes the command of its name. */
void dev_report_timestamp(struct dev_task *t);
int dev_prepare_set_timestamp(struct dev_task *t, uint64_t *out_len);
void dev_set_timestamp(struct dev_task *t);
int dev_prepare_write_buffer(struct dev_task *t, uint64_t *out_len);
void dev_write_buffer(struct dev_task *t);
void dev_read_buffer(struct dev_task *t);

/* ---- vpd.c ---- */

/* dev_vpd executes INQUIRY with EVPD: returns the VPD page, or ends t with
 * CHECK CONDITION if the unit does not have the page. */
void dev_vpd(struct dev_task *t, uint8_t page, size_t alloc);
/* dev_put_port_names writes the designators of the nexus's target port and
 * target device (VPD 83h) to p, which has room for DEV_PORT_NAMES_MAX bytes;
 * returns the end of the designators. */
#define DEV_PORT_NAMES_MAX 512u
uint8_t *dev_put_port_names(const struct dev_task *t, uint8_t *p);

/* ---- identify.c ---- */

/* Each validates or executes REPORT or SET IDENTIFYING INFORMATION. */
void dev_report_identifying(struct dev_task *t);
int dev_prepare_set_identifying(struct dev_task *t, uint64_t *out_len);
void dev_set_identifying(struct dev_task *t);

/* ---- mode.c ---- */

/* Each validates or executes MODE SENSE or MODE SELECT; those without a
 * number serve both lengths of the CDB. */
void dev_mode_sense_6(struct dev_task *t);
void dev_mode_sense_10(struct dev_task *t);
int dev_prepare_mode_select(struct dev_task *t, uint64_t *out_len);
void dev_mode_select(struct dev_task *t);

/* ---- log.c ---- */

/* These execute LOG SENSE and LOG SELECT. */
void dev_log_sense(struct dev_task *t);
void dev_log_select(struct dev_task *t);

/* ---- removal.c ---- */

/* dev_start_stop executes START STOP UNIT of a disk, cd_start_stop that of a
 * CD/DVD device; dev_prevent_allow executes PREVENT ALLOW MEDIUM REMOVAL. */
void dev_start_stop(struct dev_task *t);
void dev_prevent_allow(struct dev_task *t);
void cd_start_stop(struct dev_task *t); /* MMC-6 */

#endif
