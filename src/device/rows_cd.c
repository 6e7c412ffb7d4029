/* SPDX-License-Identifier: BSD-2-Clause */
/* rows_cd.c: the rows of a CD/DVD device (MMC-6 §6) beyond those that all
 * types have. */
#include "device/internal.h"

/* clang-format off */
static const struct dev_command commands[] = {
	{ "READ CAPACITY(10)", SCSI_READ_CAPACITY_10, 0, 10, DIR_IN, FOR_CD | CMD_MEDIUM | RSV_NEVER, NULL, dev_read_capacity_10,
	  { 0x25, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0 } },
	{ "READ(10)", SCSI_READ_10, 0, 10, DIR_IN, FOR_CD | CMD_MEDIUM | CMD_TOUCHES | RSV_READ, dev_prepare_read, dev_read,
	  { 0x28, 0x18, 0xff, 0xff, 0xff, 0xff, 0, 0xff, 0xff, 0 } },
	{ "READ(12)", SCSI_READ_12, 0, 12, DIR_IN, FOR_CD | CMD_MEDIUM | CMD_TOUCHES | RSV_READ, dev_prepare_read, dev_read,
	  { 0xa8, 0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x80, 0 } },
};
/* clang-format on */

const struct dev_rows dev_rows_cd = { commands, ARRAY_LEN(commands) };
