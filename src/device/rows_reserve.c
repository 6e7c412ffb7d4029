/* SPDX-License-Identifier: BSD-2-Clause */
/* rows_reserve.c: the rows of reservations. Their handlers check for
 * reservation conflicts, which depend on service action and nexus. */
#include "device/reserve/reserve.h"
#include "device/table.h"
#include "device/unit/command.h"

/* clang-format off */
#define PR_IN(name, sa) \
	{ "PERSISTENT RESERVE IN, " name, SCSI_PERSISTENT_RESERVE_IN, sa, 10, DIR_IN, CMD_SA | RSV_NEVER | ACC_STANDBY, NULL, dev_pr_in, \
	  { 0x5e, 0x1f, 0, 0, 0, 0, 0, 0xff, 0xff, 0 } }
#define PR_OUT(name, sa, more) \
	{ "PERSISTENT RESERVE OUT, " name, SCSI_PERSISTENT_RESERVE_OUT, sa, 10, DIR_LIST, (more) | CMD_SA | RSV_NEVER | ACC_STANDBY, dev_prepare_pr_out, dev_pr_out, \
	  { 0x5f, 0x1f, 0xff, 0, 0, 0xff, 0xff, 0xff, 0xff, 0 } }

static const struct dev_command commands[] = {
	/* extents and third parties are obsolete and refused */
	{ "RESERVE(6)", SCSI_RESERVE_6, 0, 6, DIR_NONE, CMD_CHANGES | RSV_NEVER, NULL, dev_reserve,
	  { 0x16, 0, 0, 0, 0, 0 } },
	{ "RELEASE(6)", SCSI_RELEASE_6, 0, 6, DIR_NONE, RSV_NEVER, NULL, dev_release,
	  { 0x17, 0, 0, 0, 0, 0 } },
	{ "RESERVE(10)", SCSI_RESERVE_10, 0, 10, DIR_NONE, CMD_CHANGES | RSV_NEVER, NULL, dev_reserve,
	  { 0x56, 0, 0, 0, 0, 0, 0, 0, 0, 0 } },
	{ "RELEASE(10)", SCSI_RELEASE_10, 0, 10, DIR_NONE, RSV_NEVER, NULL, dev_release,
	  { 0x57, 0, 0, 0, 0, 0, 0, 0, 0, 0 } },
	PR_IN("READ KEYS", SCSI_PRIN_READ_KEYS),
	PR_IN("READ RESERVATION", SCSI_PRIN_READ_RESERVATION),
	PR_IN("REPORT CAPABILITIES", SCSI_PRIN_REPORT_CAPABILITIES),
	PR_IN("READ FULL STATUS", SCSI_PRIN_READ_FULL_STATUS),
	PR_OUT("REGISTER", SCSI_PROUT_REGISTER, CMD_CHANGES),
	PR_OUT("RESERVE", SCSI_PROUT_RESERVE, CMD_CHANGES),
	PR_OUT("RELEASE", SCSI_PROUT_RELEASE, 0),
	PR_OUT("CLEAR", SCSI_PROUT_CLEAR, CMD_CHANGES),
	PR_OUT("PREEMPT", SCSI_PROUT_PREEMPT, CMD_CHANGES),
	PR_OUT("PREEMPT AND ABORT", SCSI_PROUT_PREEMPT_AND_ABORT, CMD_CHANGES),
	PR_OUT("REGISTER AND IGNORE EXISTING KEY", SCSI_PROUT_REGISTER_IGNORE, CMD_CHANGES),
	PR_OUT("REGISTER AND MOVE", SCSI_PROUT_REGISTER_AND_MOVE, CMD_CHANGES),
	{ "PERSISTENT RESERVE OUT, REPLACE LOST RESERVATION", SCSI_PERSISTENT_RESERVE_OUT, SCSI_PROUT_REPLACE_LOST, 10, DIR_LIST, CMD_CHANGES | CMD_SA | RSV_NEVER | RSV_LOST_TOO | ACC_STANDBY, dev_prepare_pr_out, dev_pr_out,
	  { 0x5f, 0x1f, 0xff, 0, 0, 0xff, 0xff, 0xff, 0xff, 0 }, dev_keeps },
};
/* clang-format on */

const struct dev_rows dev_rows_reserve = { commands, ARRAY_LEN(commands) };
