/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * failure.c: sense data that the target neither builds nor reads: those of a
 * command whose data could not be brought in, and whether the sense data of a
 * command report a failure of its backstore.
 */
#include "device/unit/unit.h"
#include "scsi/sense.h"

/* RFC 7143 §11.4.7.2 */
static const uint16_t failure_asc[] = {
	[DEV_FAILURE_DATA_CRC] = ASC_PROTOCOL_SERVICE_CRC_ERROR,
	[DEV_FAILURE_UNEXPECTED_DATA] = ASC_UNEXPECTED_UNSOLICITED_DATA,
	[DEV_FAILURE_DATA_MISSING] = ASC_NOT_ENOUGH_UNSOLICITED_DATA,
};

void dev_check_failure(struct dev_task *t, enum dev_failure why)
{
	dev_check(t, SENSE_ABORTED_COMMAND, failure_asc[why]);
}

enum dev_store_fault dev_task_store_fault(const struct dev_task *t)
{
	struct scsi_sense s;

	if (!t->sense.len || scsi_sense_parse(&s, t->sense.data, t->sense.len))
		return DEV_STORE_SOUND;
	switch (s.key) {
	case SENSE_MEDIUM_ERROR:
		return DEV_STORE_FAILED;
	case SENSE_HARDWARE_ERROR: /* or a group that could not be activated */
		return s.asc == ASC_SET_GROUPS_FAILED ? DEV_STORE_SOUND
						      : DEV_STORE_FAILED;
	case SENSE_DATA_PROTECT:
		return s.asc == ASC_SPACE_ALLOCATION_FAILED ? DEV_STORE_FULL
							    : DEV_STORE_SOUND;
	default:
		return DEV_STORE_SOUND;
	}
}
