/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table.c: one row per command. The row serves dispatch, the check of
 * reserved bits, and REPORT SUPPORTED OPERATION CODES (SPC-4 §6.35).
 */
#include "device/table.h"
#include "device/block/block.h"
#include "device/primary/primary.h"
#include "device/unit/command.h"

/* clang-format off */
static const struct dev_command commands[] = {
	{ "TEST UNIT READY", SCSI_TEST_UNIT_READY, 0, 6, DIR_NONE, FOR_ANY_TYPE | CMD_MEDIUM | CMD_AT_REST | RSV_UNIT, NULL, dev_test_unit_ready,
	  { 0x00, 0, 0, 0, 0, 0 } },
	{ "REQUEST SENSE", SCSI_REQUEST_SENSE, 0, 6, DIR_IN, FOR_ANY_TYPE | CMD_ANY_LUN | RSV_NEVER, NULL, dev_request_sense,
	  { 0x03, 0x01, 0, 0, 0xff, 0 } },
	{ "READ(6)", SCSI_READ_6, 0, 6, DIR_IN, CMD_MEDIUM | CMD_TOUCHES | RSV_READ, dev_prepare_read, dev_read,
	  { 0x08, 0x1f, 0xff, 0xff, 0xff, 0 } },
	{ "WRITE(6)", SCSI_WRITE_6, 0, 6, DIR_OUT, CMD_BY_BLOCK | CMD_MEDIUM | CMD_WRITES | CMD_TOUCHES | CMD_PEEKS | RSV_WRITE, dev_prepare_write, dev_write,
	  { 0x0a, 0x1f, 0xff, 0xff, 0xff, 0 } },
	{ "INQUIRY", SCSI_INQUIRY, 0, 6, DIR_IN, FOR_ANY_TYPE | CMD_ANY_LUN | RSV_NEVER, NULL, dev_inquiry,
	  { 0x12, 0x01, 0xff, 0xff, 0xff, 0 } },
	{ "MODE SENSE(6)", SCSI_MODE_SENSE_6, 0, 6, DIR_IN, RSV_READ | ACC_STANDBY, NULL, dev_mode_sense_6,
	  { 0x1a, 0x08, 0xff, 0xff, 0xff, 0 } },
	{ "MODE SELECT(6)", SCSI_MODE_SELECT_6, 0, 6, DIR_LIST, CMD_CHANGES | CMD_ALONE | RSV_WRITE | ACC_STANDBY, dev_prepare_mode_select, dev_mode_select,
	  { 0x15, 0x11, 0, 0, 0xff, 0 } },
	{ "START STOP UNIT", SCSI_START_STOP_UNIT, 0, 6, DIR_NONE, CMD_CHANGES | RSV_WRITE, NULL, dev_start_stop,
	  { 0x1b, 0x01, 0, 0x0f, 0xf7, 0 } },
	/* the default self-test, or nothing to test (SPC-4 §6.42) */
	{ "SEND DIAGNOSTIC", SCSI_SEND_DIAGNOSTIC, 0, 6, DIR_NONE, CMD_CHANGES | CMD_MEDIUM | CMD_AT_REST | RSV_WRITE, NULL, dev_test_unit_ready,
	  { 0x1d, 0x17, 0, 0, 0, 0 } },
	{ "PREVENT ALLOW MEDIUM REMOVAL", SCSI_PREVENT_ALLOW, 0, 6, DIR_NONE, RSV_WRITE, NULL, dev_prevent_allow,
	  { 0x1e, 0, 0, 0, 0x03, 0 } },
	{ "READ CAPACITY(10)", SCSI_READ_CAPACITY_10, 0, 10, DIR_IN, CMD_MEDIUM | CMD_AT_REST | CMD_ALONE | RSV_NEVER | ACC_STANDBY, dev_prepare_capacity, dev_read_capacity_10,
	  { 0x25, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0x01, 0 } },
	{ "READ(10)", SCSI_READ_10, 0, 10, DIR_IN, CMD_MEDIUM | CMD_TOUCHES | RSV_READ, dev_prepare_read, dev_read,
	  { 0x28, 0xf8, 0xff, 0xff, 0xff, 0xff, 0x3f, 0xff, 0xff, 0 } },
	{ "WRITE(10)", SCSI_WRITE_10, 0, 10, DIR_OUT, CMD_BY_BLOCK | CMD_MEDIUM | CMD_WRITES | CMD_TOUCHES | CMD_PEEKS | RSV_WRITE, dev_prepare_write, dev_write,
	  { 0x2a, 0xf8, 0xff, 0xff, 0xff, 0xff, 0x3f, 0xff, 0xff, 0 } },
	{ "WRITE AND VERIFY(10)", SCSI_WRITE_AND_VERIFY_10, 0, 10, DIR_OUT, CMD_CHUNK | CMD_BY_BLOCK | CMD_MEDIUM | CMD_WRITES | CMD_TOUCHES | RSV_WRITE, dev_prepare_write_verify, dev_write_verify,
	  { 0x2e, 0xf6, 0xff, 0xff, 0xff, 0xff, 0x3f, 0xff, 0xff, 0 } },
	{ "VERIFY(10)", SCSI_VERIFY_10, 0, 10, DIR_OUT, CMD_CHUNK | CMD_MEDIUM | CMD_TOUCHES | RSV_READ, dev_prepare_verify, dev_verify,
	  { 0x2f, 0xf6, 0xff, 0xff, 0xff, 0xff, 0x3f, 0xff, 0xff, 0 } },
	{ "PRE-FETCH(10)", SCSI_PRE_FETCH_10, 0, 10, DIR_NONE, CMD_MEDIUM | RSV_READ, dev_prepare_range, dev_test_unit_ready,
	  { 0x34, 0x02, 0xff, 0xff, 0xff, 0xff, 0x3f, 0xff, 0xff, 0 } },
	{ "SYNCHRONIZE CACHE(10)", SCSI_SYNCHRONIZE_CACHE_10, 0, 10, DIR_NONE, CMD_MEDIUM | RSV_WRITE, dev_prepare_range, dev_synchronize_cache,
	  { 0x35, 0x06, 0xff, 0xff, 0xff, 0xff, 0x3f, 0xff, 0xff, 0 } },
	{ "WRITE SAME(10)", SCSI_WRITE_SAME_10, 0, 10, DIR_OUT, CMD_CHUNK | CMD_MEDIUM | CMD_WRITES | CMD_TOUCHES | RSV_WRITE, dev_prepare_write_same, dev_write_same,
	  { 0x41, 0xf8, 0xff, 0xff, 0xff, 0xff, 0x3f, 0xff, 0xff, 0 } },
	{ "UNMAP", SCSI_UNMAP, 0, 10, DIR_LIST, CMD_MEDIUM | CMD_WRITES | CMD_TOUCHES | RSV_WRITE, dev_prepare_unmap, dev_unmap,
	  { 0x42, 0x01, 0, 0, 0, 0, 0x3f, 0xff, 0xff, 0 }, dev_has_unmap },
	{ "MODE SELECT(10)", SCSI_MODE_SELECT_10, 0, 10, DIR_LIST, CMD_CHANGES | CMD_ALONE | RSV_WRITE | ACC_STANDBY, dev_prepare_mode_select, dev_mode_select,
	  { 0x55, 0x11, 0, 0, 0, 0, 0, 0xff, 0xff, 0 } },
	{ "MODE SENSE(10)", SCSI_MODE_SENSE_10, 0, 10, DIR_IN, RSV_READ | ACC_STANDBY, NULL, dev_mode_sense_10,
	  { 0x5a, 0x18, 0xff, 0xff, 0, 0, 0, 0xff, 0xff, 0 } },
	{ "READ(16)", SCSI_READ_16, 0, 16, DIR_IN, CMD_MEDIUM | CMD_TOUCHES | RSV_READ, dev_prepare_read, dev_read,
	  { 0x88, 0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 0 } },
	{ "WRITE(16)", SCSI_WRITE_16, 0, 16, DIR_OUT, CMD_BY_BLOCK | CMD_MEDIUM | CMD_WRITES | CMD_TOUCHES | CMD_PEEKS | RSV_WRITE, dev_prepare_write, dev_write,
	  { 0x8a, 0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 0 } },
	{ "WRITE AND VERIFY(16)", SCSI_WRITE_AND_VERIFY_16, 0, 16, DIR_OUT, CMD_CHUNK | CMD_BY_BLOCK | CMD_MEDIUM | CMD_WRITES | CMD_TOUCHES | RSV_WRITE, dev_prepare_write_verify, dev_write_verify,
	  { 0x8e, 0xf6, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 0 } },
	{ "VERIFY(16)", SCSI_VERIFY_16, 0, 16, DIR_OUT, CMD_CHUNK | CMD_MEDIUM | CMD_TOUCHES | RSV_READ, dev_prepare_verify, dev_verify,
	  { 0x8f, 0xf6, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 0 } },
	{ "PRE-FETCH(16)", SCSI_PRE_FETCH_16, 0, 16, DIR_NONE, CMD_MEDIUM | RSV_READ, dev_prepare_range, dev_test_unit_ready,
	  { 0x90, 0x02, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 0 } },
	{ "SYNCHRONIZE CACHE(16)", SCSI_SYNCHRONIZE_CACHE_16, 0, 16, DIR_NONE, CMD_MEDIUM | RSV_WRITE, dev_prepare_range, dev_synchronize_cache,
	  { 0x91, 0x06, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 0 } },
	{ "WRITE SAME(16)", SCSI_WRITE_SAME_16, 0, 16, DIR_OUT, CMD_CHUNK | CMD_MEDIUM | CMD_WRITES | CMD_TOUCHES | RSV_WRITE, dev_prepare_write_same, dev_write_same,
	  { 0x93, 0xf9, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 0 } },
	{ "READ CAPACITY(16)", SCSI_SERVICE_ACTION_IN_16, SCSI_SAI_READ_CAPACITY_16, 16, DIR_IN, CMD_MEDIUM | CMD_AT_REST | CMD_SA | CMD_ALONE | RSV_NEVER | ACC_STANDBY, dev_prepare_capacity, dev_read_capacity_16,
	  { 0x9e, 0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0 } },
	{ "GET LBA STATUS", SCSI_SERVICE_ACTION_IN_16, SCSI_SAI_GET_LBA_STATUS, 16, DIR_IN, CMD_MEDIUM | CMD_SA | RSV_READ, dev_prepare_lba_status, dev_lba_status,
	  { 0x9e, 0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0 } },
	{ "REPORT LUNS", SCSI_REPORT_LUNS, 0, 12, DIR_IN, FOR_ANY_TYPE | CMD_ANY_LUN | RSV_NEVER, NULL, dev_report_luns,
	  { 0xa0, 0, 0xff, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0 } },
	{ "REPORT SUPPORTED OPERATION CODES", SCSI_MAINTENANCE_IN, SCSI_MI_REPORT_SUPPORTED_OPCODES, 12, DIR_IN, FOR_ANY_TYPE | CMD_ALWAYS | CMD_SA | RSV_READ | ACC_STANDBY, NULL, dev_report_opcodes,
	  { 0xa3, 0x1f, 0x87, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0 } },
	{ "REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS", SCSI_MAINTENANCE_IN, SCSI_MI_REPORT_SUPPORTED_TMFS, 12, DIR_IN, FOR_ANY_TYPE | CMD_ALWAYS | CMD_SA | RSV_READ | ACC_STANDBY, NULL, dev_report_tmfs,
	  { 0xa3, 0x1f, 0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0 } },
	{ "READ(12)", SCSI_READ_12, 0, 12, DIR_IN, CMD_MEDIUM | CMD_TOUCHES | RSV_READ, dev_prepare_read, dev_read,
	  { 0xa8, 0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 0 } },
	{ "WRITE(12)", SCSI_WRITE_12, 0, 12, DIR_OUT, CMD_BY_BLOCK | CMD_MEDIUM | CMD_WRITES | CMD_TOUCHES | CMD_PEEKS | RSV_WRITE, dev_prepare_write, dev_write,
	  { 0xaa, 0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 0 } },
	{ "WRITE AND VERIFY(12)", SCSI_WRITE_AND_VERIFY_12, 0, 12, DIR_OUT, CMD_CHUNK | CMD_BY_BLOCK | CMD_MEDIUM | CMD_WRITES | CMD_TOUCHES | RSV_WRITE, dev_prepare_write_verify, dev_write_verify,
	  { 0xae, 0xf6, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 0 } },
	{ "VERIFY(12)", SCSI_VERIFY_12, 0, 12, DIR_OUT, CMD_CHUNK | CMD_MEDIUM | CMD_TOUCHES | RSV_READ, dev_prepare_verify, dev_verify,
	  { 0xaf, 0xf6, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 0 } },
};
/* clang-format on */

static const struct dev_rows rows_here = { commands, ARRAY_LEN(commands) };

/* The rows of each file. */
const struct dev_rows *const dev_rows_all[] = {
	&rows_here,	&dev_rows_block, &dev_rows_reserve,
	&dev_rows_alua, &dev_rows_cd,	 &dev_rows_protect,
	NULL,
};
