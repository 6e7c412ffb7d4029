/* SPDX-License-Identifier: BSD-2-Clause */
/* rows_block.c: the rows of commands of a block device besides reading,
 * writing and the identification of the unit (SBC-3 §5). */
#include "device/block/block.h"
#include "device/copy/copy.h"
#include "device/primary/primary.h"
#include "device/table.h"
#include "device/unit/command.h"

/* clang-format off */
static const struct dev_command commands[] = {
	{ "READ DEFECT DATA(10)", SCSI_READ_DEFECT_DATA_10, 0, 10, DIR_IN, CMD_MEDIUM | CMD_AT_REST | RSV_READ, NULL, dev_read_defects_10,
	  { 0x37, 0, 0x1f, 0, 0, 0, 0, 0xff, 0xff, 0 } },
	{ "FORMAT UNIT", SCSI_FORMAT_UNIT, 0, 6, DIR_LIST, CMD_WRITES | RSV_WRITE, dev_prepare_format, dev_format_unit,
	  { 0x04, 0xff, 0, 0, 0, 0 }, dev_is_not_shared },
	{ "SANITIZE OVERWRITE", SCSI_SANITIZE, SCSI_SANITIZE_OVERWRITE, 10, DIR_LIST, CMD_SA | CMD_WRITES | RSV_WRITE, dev_prepare_overwrite, dev_sanitize_overwrite,
	  { 0x48, 0xbf, 0, 0, 0, 0, 0, 0xff, 0xff, 0 }, dev_is_not_shared },
	{ "SANITIZE BLOCK ERASE", SCSI_SANITIZE, SCSI_SANITIZE_BLOCK_ERASE, 10, DIR_NONE, CMD_SA | CMD_WRITES | RSV_WRITE, dev_prepare_erase, dev_sanitize_block_erase,
	  { 0x48, 0xbf, 0, 0, 0, 0, 0, 0xff, 0xff, 0 }, dev_has_block_erase },
	{ "SANITIZE CRYPTO ERASE", SCSI_SANITIZE, SCSI_SANITIZE_CRYPTO_ERASE, 10, DIR_NONE, CMD_SA | CMD_WRITES | RSV_WRITE, dev_prepare_erase, dev_sanitize_crypto_erase,
	  { 0x48, 0xbf, 0, 0, 0, 0, 0, 0xff, 0xff, 0 }, dev_has_rekey },
	{ "SANITIZE EXIT FAILURE MODE", SCSI_SANITIZE, SCSI_SANITIZE_EXIT_FAILURE, 10, DIR_NONE, CMD_SA | CMD_WRITES | RSV_WRITE, dev_prepare_erase, dev_sanitize_exit_failure,
	  { 0x48, 0xbf, 0, 0, 0, 0, 0, 0xff, 0xff, 0 }, dev_is_not_shared },
	{ "WRITE BUFFER", SCSI_WRITE_BUFFER, 0, 10, DIR_LIST, CMD_CHANGES | RSV_WRITE | RSV_LOST_TOO | ACC_ALWAYS, dev_prepare_write_buffer, dev_write_buffer,
	  { 0x3b, 0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0 } },
	{ "READ BUFFER", SCSI_READ_BUFFER, 0, 10, DIR_IN, RSV_READ | RSV_LOST_TOO | ACC_ALWAYS, NULL, dev_read_buffer,
	  { 0x3c, 0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0 } },
	{ "LOG SELECT", SCSI_LOG_SELECT, 0, 10, DIR_NONE, CMD_CHANGES | RSV_WRITE | ACC_STANDBY, NULL, dev_log_select,
	  { 0x4c, 0x02, 0xff, 0xff, 0, 0, 0, 0xff, 0xff, 0 } },
	{ "LOG SENSE", SCSI_LOG_SENSE, 0, 10, DIR_IN, CMD_ALWAYS | RSV_NEVER | RSV_LOST_TOO | ACC_STANDBY, NULL, dev_log_sense,
	  { 0x4d, 0, 0xff, 0xff, 0, 0xff, 0xff, 0xff, 0xff, 0 } },
	{ "EXTENDED COPY(LID1)", SCSI_EXTENDED_COPY, SCSI_XC_LID1, 16, DIR_LIST, CMD_MEDIUM | CMD_SA | RSV_WRITE, dev_prepare_extended_copy, dev_extended_copy,
	  { 0x83, 0x1f, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0 } },
	{ "POPULATE TOKEN", SCSI_EXTENDED_COPY, SCSI_XC_POPULATE_TOKEN, 16, DIR_LIST, CMD_MEDIUM | CMD_SA | RSV_READ, dev_prepare_token, dev_populate_token,
	  { 0x83, 0x1f, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 0 }, dev_has_tokens },
	{ "WRITE USING TOKEN", SCSI_EXTENDED_COPY, SCSI_XC_WRITE_USING_TOKEN, 16, DIR_LIST, CMD_MEDIUM | CMD_SA | CMD_WRITES | RSV_WRITE, dev_prepare_token, dev_write_using_token,
	  { 0x83, 0x1f, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 0 }, dev_has_tokens },
	{ "RECEIVE COPY STATUS(LID1)", SCSI_RECEIVE_COPY_RESULTS, SCSI_RCR_COPY_STATUS_LID1, 16, DIR_IN, CMD_SA | RSV_UNIT, NULL, dev_copy_status,
	  { 0x84, 0x1f, 0xff, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0 } },
	{ "RECEIVE COPY OPERATING PARAMETERS", SCSI_RECEIVE_COPY_RESULTS, SCSI_RCR_OPERATING_PARAMETERS, 16, DIR_IN, CMD_SA | RSV_UNIT, NULL, dev_copy_parameters,
	  { 0x84, 0x1f, 0xff, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0 } },
	{ "RECEIVE ROD TOKEN INFORMATION", SCSI_RECEIVE_COPY_RESULTS, SCSI_RCR_TOKEN_INFORMATION, 16, DIR_IN, CMD_SA | RSV_NEVER, NULL, dev_receive_token_information,
	  { 0x84, 0x1f, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0 }, dev_has_tokens },
	{ "COMPARE AND WRITE", SCSI_COMPARE_AND_WRITE, 0, 16, DIR_OUT, CMD_CHUNK | CMD_BY_BLOCK | CMD_MEDIUM | CMD_WRITES | CMD_ALONE | RSV_WRITE, dev_prepare_compare_and_write, dev_compare_and_write,
	  { 0x89, 0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0xff, 0x3f, 0 } },
	{ "ORWRITE(16)", SCSI_ORWRITE_16, 0, 16, DIR_OUT, CMD_CHUNK | CMD_BY_BLOCK | CMD_MEDIUM | CMD_WRITES | CMD_ALONE | RSV_WRITE, dev_prepare_write, dev_orwrite,
	  { 0x8b, 0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 0 } },
	{ "ORWRITE(32)", SCSI_VARIABLE_LENGTH, SCSI_VL_ORWRITE_32, 32, DIR_OUT, CMD_CHUNK | CMD_BY_BLOCK | CMD_SA | CMD_MEDIUM | CMD_WRITES | CMD_ALONE | RSV_WRITE, dev_prepare_orwrite_32, dev_orwrite,
	  { 0x7f, 0, 0x07, 0x0f, 0, 0, 0x3f, 0x18, 0xff, 0xff, 0xf8, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff }, dev_has_generations },
	{ "XDWRITEREAD(10)", SCSI_XDWRITEREAD_10, 0, 10, DIR_BOTH, CMD_CHUNK | CMD_MEDIUM | CMD_WRITES | CMD_ALONE | RSV_WRITE, dev_prepare_xdwriteread, dev_xdwriteread,
	  { 0x53, 0x1c, 0xff, 0xff, 0xff, 0xff, 0x3f, 0xff, 0xff, 0 }, dev_has_xor },
	{ "XDWRITEREAD(32)", SCSI_VARIABLE_LENGTH, SCSI_VL_XDWRITEREAD_32, 32, DIR_BOTH, CMD_CHUNK | CMD_SA | CMD_MEDIUM | CMD_WRITES | CMD_ALONE | RSV_WRITE, dev_prepare_xdwriteread, dev_xdwriteread,
	  { 0x7f, 0, 0, 0, 0, 0, 0x3f, 0x18, 0xff, 0xff, 0x1c, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff }, dev_has_xor_32 },
	{ "WRITE ATOMIC(16)", SCSI_WRITE_ATOMIC_16, 0, 16, DIR_OUT, CMD_MEDIUM | CMD_WRITES | CMD_ALONE | RSV_WRITE, dev_prepare_write_atomic, dev_write,
	  { 0x9c, 0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 0 }, dev_has_atomic },
	{ "REPORT IDENTIFYING INFORMATION", SCSI_MAINTENANCE_IN, SCSI_MI_REPORT_IDENTIFYING, 12, DIR_IN, CMD_SA | RSV_NEVER, NULL, dev_report_identifying,
	  { 0xa3, 0x1f, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xfe, 0 } },
	{ "SET IDENTIFYING INFORMATION", SCSI_MAINTENANCE_OUT, SCSI_MO_SET_IDENTIFYING, 12, DIR_LIST, CMD_CHANGES | CMD_SA | RSV_WRITE, dev_prepare_set_identifying, dev_set_identifying,
	  { 0xa4, 0x1f, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xfe, 0 }, dev_keeps },
	{ "REPORT TIMESTAMP", SCSI_MAINTENANCE_IN, SCSI_MI_REPORT_TIMESTAMP, 12, DIR_IN, CMD_SA | RSV_NEVER, NULL, dev_report_timestamp,
	  { 0xa3, 0x1f, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0 }, dev_has_timestamp },
	{ "SET TIMESTAMP", SCSI_MAINTENANCE_OUT, SCSI_MO_SET_TIMESTAMP, 12, DIR_LIST, CMD_CHANGES | CMD_SA | RSV_WRITE, dev_prepare_set_timestamp, dev_set_timestamp,
	  { 0xa4, 0x1f, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0 }, dev_has_timestamp },
	{ "READ DEFECT DATA(12)", SCSI_READ_DEFECT_DATA_12, 0, 12, DIR_IN, CMD_MEDIUM | CMD_AT_REST | RSV_READ, NULL, dev_read_defects_12,
	  { 0xb7, 0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0 } },
};
/* clang-format on */

const struct dev_rows dev_rows_block = { commands, ARRAY_LEN(commands) };
