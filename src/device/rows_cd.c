/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rows_cd.c: the rows of a CD/DVD device (MMC-6 §6) besides the rows of all
 * types. MMC-6 has no reservations, so the RSV_ flags have no effect here.
 */
#include "device/block/block.h"
#include "device/cd/cd.h"
#include "device/primary/primary.h"
#include "device/table.h"
#include "device/unit/command.h"

/* clang-format off */
static const struct dev_command commands[] = {
	{ "MODE SENSE(6)", SCSI_MODE_SENSE_6, 0, 6, DIR_IN, FOR_CD | RSV_READ, NULL, dev_mode_sense_6,
	  { 0x1a, 0x08, 0xff, 0xff, 0xff, 0 } },
	{ "START STOP UNIT", SCSI_START_STOP_UNIT, 0, 6, DIR_NONE, CMD_CHANGES | FOR_CD | RSV_WRITE, NULL, cd_start_stop,
	  { 0x1b, 0x01, 0, 0, 0xf7, 0 } },
	{ "PREVENT ALLOW MEDIUM REMOVAL", SCSI_PREVENT_ALLOW, 0, 6, DIR_NONE, FOR_CD | RSV_WRITE, NULL, dev_prevent_allow,
	  { 0x1e, 0, 0, 0, 0x03, 0 } },
	{ "READ CAPACITY(10)", SCSI_READ_CAPACITY_10, 0, 10, DIR_IN, FOR_CD | CMD_MEDIUM | CMD_AT_REST | RSV_NEVER, NULL, cd_read_capacity,
	  { 0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0 } },
	{ "READ(10)", SCSI_READ_10, 0, 10, DIR_IN, FOR_CD | CMD_MEDIUM | CMD_TOUCHES | RSV_READ, dev_prepare_read, dev_read,
	  { 0x28, 0x18, 0xff, 0xff, 0xff, 0xff, 0, 0xff, 0xff, 0 } },
	{ "SEEK(10)", SCSI_SEEK_10, 0, 10, DIR_NONE, FOR_CD | CMD_MEDIUM | RSV_READ, cd_prepare_seek, dev_test_unit_ready,
	  { 0x2b, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0 } },
	{ "READ SUB-CHANNEL", SCSI_READ_SUBCHANNEL, 0, 10, DIR_IN, FOR_CD | CMD_MEDIUM | CMD_AT_REST | RSV_READ, NULL, cd_read_subchannel,
	  { 0x42, 0x02, 0x40, 0xff, 0, 0, 0xff, 0xff, 0xff, 0 } },
	/* the format may be in the vendor specific bits of CONTROL, see
	 * cd.c */
	{ "READ TOC/PMA/ATIP", SCSI_READ_TOC, 0, 10, DIR_IN, FOR_CD | CMD_MEDIUM | CMD_AT_REST | RSV_READ, NULL, cd_read_toc,
	  { 0x43, 0x02, 0x0f, 0, 0, 0, 0xff, 0xff, 0xff, 0xc0 } },
	/* these two do not report unit attentions (MMC-6 §4.1.6) */
	{ "GET CONFIGURATION", SCSI_GET_CONFIGURATION, 0, 10, DIR_IN, FOR_CD | CMD_NO_ATTENTION | RSV_NEVER, NULL, cd_get_configuration,
	  { 0x46, 0x03, 0xff, 0xff, 0, 0, 0, 0xff, 0xff, 0 } },
	{ "GET EVENT STATUS NOTIFICATION", SCSI_GET_EVENT_STATUS, 0, 10, DIR_IN, FOR_CD | CMD_NO_ATTENTION | RSV_NEVER, NULL, cd_get_event,
	  { 0x4a, 0x01, 0, 0, 0xff, 0, 0, 0xff, 0xff, 0 } },
	{ "READ DISC INFORMATION", SCSI_READ_DISC_INFORMATION, 0, 10, DIR_IN, FOR_CD | CMD_MEDIUM | CMD_AT_REST | RSV_READ, NULL, cd_disc_information,
	  { 0x51, 0x07, 0, 0, 0, 0, 0, 0xff, 0xff, 0 } },
	{ "READ TRACK INFORMATION", SCSI_READ_TRACK_INFORMATION, 0, 10, DIR_IN, FOR_CD | CMD_MEDIUM | CMD_AT_REST | RSV_READ, NULL, cd_track_information,
	  { 0x52, 0x03, 0xff, 0xff, 0xff, 0xff, 0, 0xff, 0xff, 0 } },
	{ "MODE SELECT(10)", SCSI_MODE_SELECT_10, 0, 10, DIR_LIST, CMD_CHANGES | FOR_CD | CMD_ALONE | RSV_WRITE, dev_prepare_mode_select, dev_mode_select,
	  { 0x55, 0x10, 0, 0, 0, 0, 0, 0xff, 0xff, 0 } },
	{ "MODE SENSE(10)", SCSI_MODE_SENSE_10, 0, 10, DIR_IN, FOR_CD | RSV_READ, NULL, dev_mode_sense_10,
	  { 0x5a, 0x08, 0xff, 0xff, 0, 0, 0, 0xff, 0xff, 0 } },
	{ "SET READ AHEAD", SCSI_SET_READ_AHEAD, 0, 12, DIR_NONE, FOR_CD | CMD_MEDIUM | RSV_READ, cd_prepare_set_read_ahead, dev_test_unit_ready,
	  { 0xa7, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0 } },
	{ "READ(12)", SCSI_READ_12, 0, 12, DIR_IN, FOR_CD | CMD_MEDIUM | CMD_TOUCHES | RSV_READ, dev_prepare_read, dev_read,
	  { 0xa8, 0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x80, 0 } },
	{ "GET PERFORMANCE", SCSI_GET_PERFORMANCE, 0, 12, DIR_IN, FOR_CD | CMD_MEDIUM | CMD_AT_REST | RSV_READ, NULL, cd_get_performance,
	  { 0xac, 0x1f, 0xff, 0xff, 0xff, 0xff, 0, 0, 0xff, 0xff, 0xff, 0 } },
	{ "READ DISC STRUCTURE", SCSI_READ_DISC_STRUCTURE, 0, 12, DIR_IN, FOR_CD | CMD_MEDIUM | CMD_AT_REST | RSV_READ, NULL, cd_disc_structure,
	  { 0xad, 0x0f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xc0, 0 } },
	{ "SET STREAMING", SCSI_SET_STREAMING, 0, 12, DIR_LIST, FOR_CD | CMD_MEDIUM | RSV_READ, cd_prepare_set_streaming, cd_set_streaming,
	  { 0xb6, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0 } },
	{ "READ CD MSF", SCSI_READ_CD_MSF, 0, 12, DIR_IN, FOR_CD | CMD_MEDIUM | CMD_TOUCHES | RSV_READ, cd_prepare_read_cd_msf, cd_read_cd,
	  { 0xb9, 0x1e, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, 0x07, 0 } },
	/* rotational control and speeds are ignored */
	{ "SET CD SPEED", SCSI_SET_CD_SPEED, 0, 12, DIR_NONE, FOR_CD | RSV_READ, NULL, dev_test_unit_ready,
	  { 0xbb, 0x03, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0 } },
	{ "MECHANISM STATUS", SCSI_MECHANISM_STATUS, 0, 12, DIR_IN, FOR_CD | RSV_NEVER, NULL, cd_mechanism_status,
	  { 0xbd, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0 } },
	{ "READ CD", SCSI_READ_CD, 0, 12, DIR_IN, FOR_CD | CMD_MEDIUM | CMD_TOUCHES | RSV_READ, cd_prepare_read_cd, cd_read_cd,
	  { 0xbe, 0x1e, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, 0x07, 0 } },
};
/* clang-format on */

const struct dev_rows dev_rows_cd = { commands, ARRAY_LEN(commands) };
