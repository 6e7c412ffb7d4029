/* SPDX-License-Identifier: BSD-2-Clause */
/* rows_protect.c: the 32-byte commands (SBC-3 §§5.12, 5.34, 5.36, 5.47,
 * 5.51), which only units with type 2 protection have. */
#include "device/block/block.h"
#include "device/table.h"
#include "device/unit/command.h"

/* group number; ADDITIONAL CDB LENGTH, service action; the flags; LBA; expected
 * initial logical block reference tag; expected application tag and its mask;
 * length */
#define USAGE(flags)                                                        \
 {                                                                          \
  0x7f, 0, 0, 0, 0, 0, 0x3f, 0x18, 0xff, 0xff, flags, 0, 0xff, 0xff, 0xff,  \
	  0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, \
	  0xff, 0xff, 0xff, 0xff, 0xff, 0xff                                \
 }

/* clang-format off */
static const struct dev_command commands[] = {
	{ "READ(32)", SCSI_VARIABLE_LENGTH, SCSI_VL_READ_32, 32, DIR_IN, CMD_SA | CMD_TAGS | CMD_MEDIUM | CMD_TOUCHES | RSV_READ, dev_prepare_read, dev_read,
	  USAGE(0xf8), dev_has_type_2 },
	{ "VERIFY(32)", SCSI_VARIABLE_LENGTH, SCSI_VL_VERIFY_32, 32, DIR_OUT, CMD_CHUNK | CMD_SA | CMD_TAGS | CMD_MEDIUM | CMD_TOUCHES | RSV_READ, dev_prepare_verify, dev_verify,
	  USAGE(0xf6), dev_has_type_2 },
	{ "WRITE(32)", SCSI_VARIABLE_LENGTH, SCSI_VL_WRITE_32, 32, DIR_OUT, CMD_BY_BLOCK | CMD_SA | CMD_TAGS | CMD_MEDIUM | CMD_WRITES | CMD_TOUCHES | RSV_WRITE, dev_prepare_write, dev_write,
	  USAGE(0xf8), dev_has_type_2 },
	{ "WRITE AND VERIFY(32)", SCSI_VARIABLE_LENGTH, SCSI_VL_WRITE_AND_VERIFY_32, 32, DIR_OUT, CMD_CHUNK | CMD_BY_BLOCK | CMD_SA | CMD_TAGS | CMD_MEDIUM | CMD_WRITES | CMD_TOUCHES | RSV_WRITE, dev_prepare_write_verify, dev_write_verify,
	  USAGE(0xf6), dev_has_type_2 },
	{ "WRITE SAME(32)", SCSI_VARIABLE_LENGTH, SCSI_VL_WRITE_SAME_32, 32, DIR_OUT, CMD_CHUNK | CMD_SA | CMD_TAGS | CMD_MEDIUM | CMD_WRITES | CMD_TOUCHES | RSV_WRITE, dev_prepare_write_same, dev_write_same,
	  USAGE(0xf9), dev_has_type_2 },
};
/* clang-format on */

const struct dev_rows dev_rows_protect = { commands, ARRAY_LEN(commands) };
