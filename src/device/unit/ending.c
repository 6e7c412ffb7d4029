/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ending.c: how a command ends: GOOD, CHECK CONDITION and other statuses. Every
 * handler calls one of the ends, once.
 */
#include "device/unit/condition.h"
#include "device/unit/memory.h"
#include "device/unit/range.h"
#include "device/unit/task_state.h"

/* ---- the end ---- */

void dev_finish(struct dev_task *t)
{
	dev_range_drop(&t->own.range);
	t->own.flow->ended(t);
}

void dev_complete(struct dev_task *t)
{
	dev_task_go(t, DEV_TASK_DONE);
	if (t->own.abort.due) {
		t->own.abort.released(t);
		return;
	}
	/* a status without data may stay in the session for long */
	if (t->in.len == 0)
		dev_memory_end(t);
	t->done(t);
}

void dev_good(struct dev_task *t)
{
	t->status = SCSI_GOOD;
	dev_finish(t);
}

int dev_end(struct dev_task *t, enum scsi_status status)
{
	t->status = (uint8_t)status;
	if (t->own.state == DEV_TASK_WANTS_DATA)
		t->own.begun.refused = true; /* dev_task_execute ends it */
	else
		dev_finish(t);
	return 1;
}

/* The task has nothing to wait for: an abort ends it at once. */
static void let_go_of_held(struct dev_task *t)
{
	(void)t;
}

int dev_hold(struct dev_task *t)
{
	if (t->own.state == DEV_TASK_WANTS_DATA) {
		t->own.begun.refused = t->own.begun.held = true;
	} else if (t->own.abort.due) {
		dev_finish(t);
	} else {
		dev_range_drop(&t->own.range);
		t->own.abort.let_go = let_go_of_held;
	}
	return 1;
}

int dev_sense(struct dev_task *t, const struct scsi_sense *s)
{
	t->sense.len = (uint16_t)scsi_sense_build(
		s, t->lu && DEV_CTL(t->lu, d_sense), t->sense.data);
	t->in = (struct bufv){ 0 };
	t->total.in = 0;
	return dev_end(t, SCSI_CHECK_CONDITION);
}

int dev_check(struct dev_task *t, uint8_t key, uint16_t asc)
{
	return dev_sense(t, &(struct scsi_sense){ .key = key, .asc = asc });
}

void dev_task_lose(struct dev_task *t)
{
	const struct scsi_sense s = { .key = SENSE_ABORTED_COMMAND,
				      .asc = ASC_FAILED_RETRANSMISSION };

	t->sense.len = (uint16_t)scsi_sense_build(
		&s, t->lu && DEV_CTL(t->lu, d_sense), t->sense.data);
	t->in = (struct bufv){ 0 };
	t->total.in = 0;
	t->status = SCSI_CHECK_CONDITION;
}

void dev_no_resources(struct dev_task *t)
{
	dev_check(t, SENSE_ABORTED_COMMAND, ASC_INSUFFICIENT_RESOURCES);
}

void dev_busy(struct dev_task *t)
{
	t->status = SCSI_BUSY;
	t->total.in = 0;
	dev_finish(t);
}

uint16_t dev_protect_asc(int err)
{
	switch (err) {
	case ERR_PI_GUARD:
		return ASC_GUARD_CHECK_FAILED;
	case ERR_PI_APP_TAG:
		return ASC_APP_TAG_CHECK_FAILED;
	case ERR_PI_REF_TAG:
		return ASC_REF_TAG_CHECK_FAILED;
	default:
		return 0;
	}
}

void dev_io_failed(struct dev_task *t, int err, uint64_t off)
{
	bool read = t->own.req.op == BS_READ || t->own.req.op == BS_EXTENTS;
	struct scsi_sense s = { .key = SENSE_MEDIUM_ERROR,
				.asc = read ? ASC_UNRECOVERED_READ_ERROR
					    : ASC_WRITE_ERROR,
				/* a flush fails at no particular block */
				.has_info = t->own.req.op != BS_FLUSH,
				.info = off >> t->lu->block_shift };

	switch (err) {
	case ERR_NO_SPACE: /* SBC-3 §4.7.3.6 */
		s.key = SENSE_DATA_PROTECT;
		s.asc = ASC_SPACE_ALLOCATION_FAILED;
		break;
	case ERR_READ_ONLY:
		s.key = SENSE_DATA_PROTECT;
		s.asc = ASC_WRITE_PROTECTED;
		break;
	case ERR_NOMEM:
		s.key = SENSE_ABORTED_COMMAND;
		s.asc = ASC_INSUFFICIENT_RESOURCES;
		break;
	case ERR_MEDIUM:
		break;
	case ERR_RANGE: /* the unit became smaller after the check */
		s.key = SENSE_ILLEGAL_REQUEST;
		s.asc = ASC_LBA_OUT_OF_RANGE;
		s.info = MAX(s.info, t->lu->blocks);
		break;
	case ERR_UNFLUSHED:
		s.has_info = false;
		break;
	case ERR_PI_GUARD:
	case ERR_PI_APP_TAG:
	case ERR_PI_REF_TAG:
		s.key = SENSE_ABORTED_COMMAND;
		s.asc = dev_protect_asc(err);
		s.info = t->own.req.bad_at >> t->lu->block_shift;
		break;
	default:
		s.key = SENSE_HARDWARE_ERROR;
		s.asc = ASC_INTERNAL_TARGET_FAILURE;
	}
	dev_sense(t, &s);
}

static int bad_byte(struct dev_task *t, uint16_t asc, unsigned byte, int bit)
{
	const struct scsi_sense s = {
		.key = SENSE_ILLEGAL_REQUEST,
		.asc = asc,
		.has_field = true,
		.in_cdb = asc == ASC_INVALID_FIELD_IN_CDB,
		.field = (uint16_t)byte,
		.has_bit = bit >= 0,
		.bit = (uint8_t)(bit & 7),
	};

	return dev_sense(t, &s);
}

int dev_bad_field(struct dev_task *t, unsigned byte, int bit)
{
	return bad_byte(t, ASC_INVALID_FIELD_IN_CDB, byte, bit);
}

int dev_bad_parameter(struct dev_task *t, unsigned byte)
{
	return bad_byte(t, ASC_INVALID_FIELD_IN_PARAMETERS, byte, -1);
}

int dev_bad_length(struct dev_task *t)
{
	return dev_check(t, SENSE_ILLEGAL_REQUEST,
			 ASC_PARAMETER_LIST_LENGTH_ERROR);
}

int dev_bad_lba(struct dev_task *t, uint64_t lba)
{
	return dev_sense(t, &(struct scsi_sense){ .key = SENSE_ILLEGAL_REQUEST,
						  .asc = ASC_LBA_OUT_OF_RANGE,
						  .has_info = true,
						  .info = lba });
}
