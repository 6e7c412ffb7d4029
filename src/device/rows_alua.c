/* SPDX-License-Identifier: BSD-2-Clause */
/* rows_alua.c: the rows of target port groups, where there are any. */
#include "device/internal.h"

/* clang-format off */
static const struct dev_command commands[] = {
	{ "REPORT TARGET PORT GROUPS", SCSI_MAINTENANCE_IN, SCSI_MI_REPORT_TARGET_PORT_GROUPS, 12, DIR_IN, CMD_SA | RSV_NEVER | RSV_LOST_TOO | ACC_ALWAYS, NULL, dev_report_groups,
	  { 0xa3, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0 }, dev_has_groups },
	{ "SET TARGET PORT GROUPS", SCSI_MAINTENANCE_OUT, SCSI_MO_SET_TARGET_PORT_GROUPS, 12, DIR_OUT, CMD_SA | RSV_WRITE | ACC_ALWAYS, dev_prepare_set_groups, dev_set_groups,
	  { 0xa4, 0x1f, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0 }, dev_has_groups },
};
/* clang-format on */

const struct dev_rows dev_rows_alua = { commands, ARRAY_LEN(commands) };
