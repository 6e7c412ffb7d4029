/* SPDX-License-Identifier: BSD-2-Clause */
/* rows_alua.c: the rows of the commands for target port groups, which only a
 * device with such groups has, and for command priorities. */
#include "device/alua/alua.h"
#include "device/order/taskset.h"
#include "device/table.h"
#include "device/unit/command.h"

/* clang-format off */
static const struct dev_command commands[] = {
	{ "REPORT TARGET PORT GROUPS", SCSI_MAINTENANCE_IN, SCSI_MI_REPORT_TARGET_PORT_GROUPS, 12, DIR_IN, CMD_SA | RSV_NEVER | RSV_LOST_TOO | ACC_ALWAYS, NULL, dev_report_groups,
	  { 0xa3, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0 }, dev_has_groups },
	{ "SET TARGET PORT GROUPS", SCSI_MAINTENANCE_OUT, SCSI_MO_SET_TARGET_PORT_GROUPS, 12, DIR_LIST, CMD_CHANGES | CMD_SA | RSV_WRITE | ACC_ALWAYS, dev_prepare_set_groups, dev_set_groups,
	  { 0xa4, 0x1f, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0 }, dev_has_groups },
	{ "REPORT PRIORITY", SCSI_MAINTENANCE_IN, SCSI_MI_REPORT_PRIORITY, 12, DIR_IN, CMD_SA | RSV_NEVER | ACC_STANDBY, NULL, dev_report_priority,
	  { 0xa3, 0x1f, 0xc0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0 } },
	{ "SET PRIORITY", SCSI_MAINTENANCE_OUT, SCSI_MO_SET_PRIORITY, 12, DIR_LIST, CMD_CHANGES | CMD_SA | RSV_WRITE | ACC_STANDBY, dev_prepare_set_priority, dev_set_priority,
	  { 0xa4, 0x1f, 0xc0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0 } },
};
/* clang-format on */

const struct dev_rows dev_rows_alua = { commands, ARRAY_LEN(commands) };
