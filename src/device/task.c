/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * task.c: a command's life: looked at (begin), run (execute), ended, or
 * aborted in between. Every handler ends in dev_good or dev_sense, once.
 */
#include <assert.h>
#include <string.h>

#include "device/attention.h"
#include "device/condition.h"
#include "device/copy.h"
#include "device/protect.h"
#include "device/range.h"
#include "device/taskset.h"

/* ---- buffers ---- */

static void *buf_get(struct dev_task *t, size_t len)
{
	const struct dev_env *env = &t->nexus->server->env;

	return env->buf_get(env->arg, t->nexus->cfg.worker, len);
}

static void buf_put(struct dev_task *t, void *buf, size_t len)
{
	const struct dev_env *env = &t->nexus->server->env;

	if (buf)
		env->buf_put(env->arg, t->nexus->cfg.worker, buf, len);
}

/* ---- endings ---- */

static void finish(struct dev_task *t)
{
	dev_range_drop(&t->range);
	if (t->nexus->naca && !t->aborted && dev_set_holds(t))
		return;
	if (t->status == SCSI_CHECK_CONDITION && !t->aborted && dev_fault(t))
		return; /* ends when what follows from that is in force */
	dev_task_finished(t);
}

void dev_task_retry(struct dev_task *t)
{
	finish(t);
}

void dev_task_finished(struct dev_task *t)
{
	dev_set_leave(t);
	if (t->aborted) {
		t->phase = DEV_TASK_DONE;
		t->released(t);
		return;
	}
	t->phase = DEV_TASK_DONE;
	t->done(t);
}

void dev_good(struct dev_task *t)
{
	t->status = SCSI_GOOD;
	finish(t);
}

void dev_end(struct dev_task *t, enum scsi_status status)
{
	t->status = (uint8_t)status;
	finish(t);
}

static void set_sense(struct dev_task *t, const struct scsi_sense *s)
{
	t->status = SCSI_CHECK_CONDITION;
	t->sense_len = (uint16_t)scsi_sense_build(
		s, t->lu && DEV_CTL(t->lu, d_sense), t->sense);
}

void dev_sense(struct dev_task *t, const struct scsi_sense *s)
{
	set_sense(t, s);
	t->in = (struct bufv){ 0 };
	t->in_total = 0;
	finish(t);
}

void dev_check(struct dev_task *t, uint8_t key, uint16_t asc)
{
	dev_sense(t, &(struct scsi_sense){ .key = key, .asc = asc });
}

void dev_no_resources(struct dev_task *t)
{
	dev_check(t, SENSE_ABORTED_COMMAND, ASC_INSUFFICIENT_RESOURCES);
}

static void busy(struct dev_task *t)
{
	t->status = SCSI_BUSY;
	t->in_total = 0;
	finish(t);
}

void dev_io_failed(struct dev_task *t, int err, uint64_t off)
{
	bool write = t->row && (t->row->flags & CMD_WRITES);
	struct scsi_sense s = { .key = SENSE_MEDIUM_ERROR,
				.asc = write ? ASC_WRITE_ERROR
					     : ASC_UNRECOVERED_READ_ERROR,
				.has_info = true,
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
	case ERR_PI_GUARD:
	case ERR_PI_APP_TAG:
	case ERR_PI_REF_TAG:
		s.key = SENSE_ABORTED_COMMAND;
		s.asc = dev_protect_asc(err);
		s.info = t->req.bad_at >> t->lu->block_shift;
		break;
	default:
		s.key = SENSE_HARDWARE_ERROR;
		s.asc = ASC_INTERNAL_TARGET_FAILURE;
	}
	dev_sense(t, &s);
}

static struct scsi_sense field_sense(unsigned byte, int bit, bool in_cdb)
{
	return (struct scsi_sense){
		.key = SENSE_ILLEGAL_REQUEST,
		.asc = in_cdb ? ASC_INVALID_FIELD_IN_CDB
			      : ASC_INVALID_FIELD_IN_PARAMETERS,
		.has_field = true,
		.in_cdb = in_cdb,
		.field = (uint16_t)byte,
		.has_bit = bit >= 0,
		.bit = (uint8_t)(bit & 7),
	};
}

void dev_bad_field(struct dev_task *t, unsigned byte, int bit)
{
	const struct scsi_sense s = field_sense(byte, bit, true);

	dev_sense(t, &s);
}

void dev_bad_parameter(struct dev_task *t, unsigned byte)
{
	const struct scsi_sense s = field_sense(byte, -1, false);

	dev_sense(t, &s);
}

/* ---- refusals before any data moved ---- */

static int refuse_with(struct dev_task *t, const struct scsi_sense *s)
{
	set_sense(t, s);
	t->refused = true;
	return 1;
}

int dev_refuse(struct dev_task *t, uint8_t key, uint16_t asc)
{
	return refuse_with(t, &(struct scsi_sense){ .key = key, .asc = asc });
}

void dev_bad_length(struct dev_task *t)
{
	dev_check(t, SENSE_ILLEGAL_REQUEST, ASC_PARAMETER_LIST_LENGTH_ERROR);
}

int dev_refuse_length(struct dev_task *t)
{
	return dev_refuse(t, SENSE_ILLEGAL_REQUEST,
			  ASC_PARAMETER_LIST_LENGTH_ERROR);
}

int dev_refuse_field(struct dev_task *t, unsigned byte, int bit)
{
	const struct scsi_sense s = field_sense(byte, bit, true);

	return refuse_with(t, &s);
}

int dev_refuse_lba(struct dev_task *t, uint64_t lba)
{
	return refuse_with(t,
			   &(struct scsi_sense){ .key = SENSE_ILLEGAL_REQUEST,
						 .asc = ASC_LBA_OUT_OF_RANGE,
						 .has_info = true,
						 .info = lba });
}

int dev_range(struct dev_task *t, uint64_t lba, uint64_t blocks)
{
	if (range_ok(lba, blocks, t->lu->blocks))
		return 0;
	return dev_refuse_lba(t, MAX(lba, t->lu->blocks));
}

/* ---- begin ---- */

static int find_row(struct dev_task *t)
{
	bool known;
	int bad;

	if (dev_pass_takes(t))
		return dev_pass_find_row(t);
	t->row = dev_command_find(t->nexus->server, dev_lu_type(t->lu), t->cdb,
				  &known);
	/* an unknown unit is told of before an unknown command (SPC-4 §4.4) */
	if (!t->lu && !(t->row && (t->row->flags & CMD_ANY_LUN)))
		return dev_refuse(t, SENSE_ILLEGAL_REQUEST,
				  ASC_LUN_NOT_SUPPORTED);
	/* §4.22.2.2: those of type 2 are no commands of other units at all */
	if (t->row && (t->row->flags & CMD_TAGS) && !t->row->has(t->lu))
		return dev_refuse(t, SENSE_ILLEGAL_REQUEST, ASC_INVALID_OPCODE);
	if (t->row && t->row->has && !t->row->has(t->lu)) {
		t->row = NULL;
		known = true;
	}
	if (!t->row && known && dev_command_any(t->lu, t->cdb[0]))
		return dev_refuse_field(
			t, t->cdb[0] == SCSI_VARIABLE_LENGTH ? 8 : 1,
			t->cdb[0] == SCSI_VARIABLE_LENGTH ? 7 : 4);
	if (!t->row)
		return dev_refuse(t, SENSE_ILLEGAL_REQUEST, ASC_INVALID_OPCODE);
	if (t->cdb_len < t->row->len)
		return dev_refuse(t, SENSE_ILLEGAL_REQUEST,
				  ASC_INVALID_FIELD_IN_IU);
	bad = dev_command_check(t->row, t->cdb);
	if (bad >= 0)
		return dev_refuse_field(t, (unsigned)bad >> 3, bad & 7);
	/* ADDITIONAL CDB LENGTH, SPC-4 §4.2.3 */
	if (t->row->op == SCSI_VARIABLE_LENGTH && t->cdb[7] != t->row->len - 8)
		return dev_refuse_field(t, 7, -1);
	return 0;
}

/* The unit's condition: attentions first (SAM-5 §5.14), then protection. */
static int check_lu(struct dev_task *t)
{
	struct scsi_sense s;
	uint16_t asc;

	if (t->row->flags & CMD_ANY_LUN)
		return 0;
	if (!(t->row->flags & CMD_NO_ATTENTION))
		t->attention = (uint8_t)dev_attention_take(t->nexus,
							   t->lu->cfg.lun, &s);
	if (t->attention)
		return refuse_with(t, &s);
	asc = dev_inaccessible(t);
	if (asc)
		return dev_refuse(t, SENSE_NOT_READY, asc);
	if (dev_denied_by_loss(t))
		return dev_refuse(t, SENSE_DATA_PROTECT, ASC_RESERVATION_LOST);
	if (dev_denied(t)) {
		t->status = SCSI_RESERVATION_CONFLICT;
		t->refused = true;
		return 1;
	}
	if (dev_condition_forbids(t->lu, t->row, &s))
		return refuse_with(t, &s);
	if (!(t->row->flags & CMD_WRITES))
		return 0;
	if (t->lu->read_only)
		return dev_refuse(t, SENSE_DATA_PROTECT, ASC_WRITE_PROTECTED);
	if (DEV_CTL(t->lu, swp))
		return dev_refuse(t, SENSE_DATA_PROTECT,
				  ASC_SOFTWARE_WRITE_PROTECTED);
	return 0;
}

static void clear(struct dev_task *t)
{
	t->phase = DEV_TASK_NEW;
	t->out_len = 0;
	t->out = t->in = (struct bufv){ 0 };
	t->status = SCSI_GOOD;
	t->sense_len = 0;
	t->in_total = t->out_total = 0;
	t->aborted = t->refused = t->in_step = t->step_again = false;
	t->past_aca = t->held = false;
	t->attention = 0;
	t->passes = t->sent = false;
	t->lu = NULL;
	t->row = NULL;
	t->buf = t->aux = t->pi = NULL;
	t->protect = t->judged = 0;
	t->alone = false;
	t->req.pi = NULL;
	t->copy = NULL;
	t->let_go = NULL;
	t->buf_len = t->aux_len = t->pi_len = 0;
	t->count = 0;
	t->lba = t->blocks = 0;
	t->range.state = DEV_HOLD_NONE;
}

static int prepare(struct dev_task *t, uint64_t *out_len)
{
	if (t->passes)
		return dev_pass_prepare(t, out_len);
	return t->row->prepare ? t->row->prepare(t, out_len) : 0;
}

static uint32_t medium_of(const struct dev_lu *lu)
{
	return __atomic_load_n(&lu->medium, __ATOMIC_RELAXED);
}

int dev_task_begin(struct dev_task *t)
{
	uint64_t want = 0;
	uint16_t lun;

	clear(t);
	t->phase = DEV_TASK_WANTS_DATA;
	if (!dev_lun_decode(t->lun, &lun))
		t->lu = dev_lu_get(t->nexus->server, lun);
	if (t->lu)
		t->medium = medium_of(t->lu);
	dev_set_enter(t);
	/* ACA ACTIVE is told before anything else (SAM-5 §5.3.3) */
	if ((t->nexus->naca || t->attr >= DEV_ATTR_ACA) && dev_aca_refuses(t))
		return 0;
	if (find_row(t) || check_lu(t) || prepare(t, &want))
		return 0;
	t->out_total = want;
	t->out_len = (uint32_t)MIN(want, (uint64_t)t->edtl_out);
	if (t->out_len == 0)
		return 0;
	t->buf = buf_get(t, t->out_len);
	if (!t->buf) {
		dev_set_leave(t);
		return ERR_BUSY;
	}
	t->buf_len = t->out_len;
	t->iov[0] = (struct iovec){ t->buf, t->out_len };
	t->out = bufv_of(t->iov, 1);
	return 0;
}

/* Has somebody shut the door since the command was looked at? */
static bool is_shut_out(struct dev_task *t)
{
	uint16_t asc = t->lu ? dev_inaccessible(t) : 0;
	struct scsi_sense s;

	if (asc)
		dev_check(t, SENSE_NOT_READY, asc);
	else if (t->lu && dev_denied_by_loss(t))
		dev_check(t, SENSE_DATA_PROTECT, ASC_RESERVATION_LOST);
	else if (dev_denied(t))
		dev_end(t, SCSI_RESERVATION_CONFLICT);
	else if (t->lu && dev_condition_forbids(t->lu, t->row, &s))
		dev_sense(t, &s);
	else if (t->lu && t->medium != medium_of(t->lu))
		/* what was checked was checked of another one */
		dev_check(t, SENSE_UNIT_ATTENTION, ASC_MEDIUM_MAY_HAVE_CHANGED);
	else
		return false;
	return true;
}

/* Tokens that stand for what it writes are good no longer. UNMAP, whose range
 * is "somewhere", sees to that itself. */
static void run_row(struct dev_task *t)
{
	if (t->passes) {
		dev_pass_run(t);
		return;
	}
	if ((t->row->flags & CMD_WRITES) && t->blocks &&
	    t->row->op != SCSI_UNMAP)
		dev_tokens_touch(t->lu, t->nexus->cfg.worker, t->lba,
				 t->blocks);
	if (t->judged)
		dev_protect_renew(t);
	if (t->judged && t->row->dir == DIR_OUT && !dev_protect_take(t))
		return;
	t->row->run(t);
}

static void range_taken(struct dev_range *r)
{
	struct dev_task *t = container_of(r, struct dev_task, range);

	if (t->aborted)
		finish(t);
	else if (!is_shut_out(t))
		run_row(t);
}

/* Commands that touch the medium wait for those that want it alone. */
static void run_in_range(struct dev_task *t)
{
	unsigned worker = t->nexus->cfg.worker;
	/* a block and its protection information are one to all others */
	bool alone = !t->passes &&
		     (t->row->flags & CMD_ALONE ||
		      (t->row->flags & CMD_WRITES && DEV_PROTECTION(t->lu)));
	int err;

	if (!(t->passes || (t->row->flags & (CMD_TOUCHES | CMD_ALONE))) ||
	    (t->blocks == 0 && !t->alone)) {
		run_row(t);
		return;
	}
	if (t->alone || dev_set_is_barrier(t))
		err = dev_range_take(&t->range, t->lu, worker, 0,
				     DEV_WHOLE_UNIT, DEV_HOLD_ALONE,
				     range_taken);
	else
		err = dev_range_take(&t->range, t->lu, worker, t->lba,
				     t->blocks,
				     alone ? DEV_HOLD_ALONE : DEV_HOLD_SHARED,
				     range_taken);
	if (err)
		dev_no_resources(t);
}

/* Again, for the unit may have been reserved or have become not ready while
 * data came in, or the task waited. */
void dev_task_enabled(struct dev_task *t)
{
	if (!is_shut_out(t))
		run_in_range(t);
}

void dev_task_execute(struct dev_task *t)
{
	assert(t->phase == DEV_TASK_WANTS_DATA);
	t->phase = DEV_TASK_RUNNING;
	if (t->refused)
		finish(t);
	else if (!dev_set_waits(t))
		dev_task_enabled(t);
}

void dev_task_fail(struct dev_task *t, uint8_t key, uint16_t asc)
{
	assert(t->phase == DEV_TASK_WANTS_DATA);
	t->phase = DEV_TASK_RUNNING; /* its end may take time (QERR) */
	dev_check(t, key, asc);
}

void dev_task_end(struct dev_task *t)
{
	assert(t->phase != DEV_TASK_RUNNING);
	dev_set_leave(t);
	buf_put(t, t->buf, t->buf_len);
	buf_put(t, t->aux, t->aux_len);
	buf_put(t, t->pi, t->pi_len);
	t->buf = t->aux = t->pi = NULL;
	if (t->copy)
		dev_copy_abort(t);
}

int dev_task_abort(struct dev_task *t, void (*released)(struct dev_task *t))
{
	if (t->phase == DEV_TASK_DONE)
		return ERR_NOT_FOUND;
	t->released = released;
	t->aborted = true;
	dev_attention_put_back(t);
	if (t->phase == DEV_TASK_RUNNING && t->let_go && !t->held)
		t->let_go(t);
	else if (t->phase == DEV_TASK_RUNNING && !t->dormant &&
		 !dev_pass_withdraw(t) && !dev_range_give_up(&t->range))
		return 0; /* the I/O under way ends it */
	dev_set_leave(t);
	t->phase = DEV_TASK_DONE;
	released(t);
	return 0;
}

/* ---- what handlers use ---- */

bool dev_buf(struct dev_task *t, size_t len)
{
	t->buf = buf_get(t, len);
	t->buf_len = len;
	if (!t->buf)
		busy(t);
	return t->buf != NULL;
}

uint8_t *dev_param_buf(struct dev_task *t)
{
	if (!dev_buf(t, DEV_PARAM_MAX))
		return NULL;
	memset(t->buf, 0, DEV_PARAM_MAX);
	return t->buf;
}

void dev_return(struct dev_task *t, size_t len, size_t alloc)
{
	len = MIN(len, alloc);
	t->in_total = len;
	t->iov[0] = (struct iovec){ t->buf, MIN(len, (size_t)t->edtl_in) };
	t->in = bufv_of(t->iov, 1);
	dev_good(t);
}

bool dev_pi_buf(struct dev_task *t, uint64_t blocks)
{
	t->pi_len = blocks * 8;
	t->pi = buf_get(t, t->pi_len);
	if (!t->pi)
		busy(t);
	return t->pi != NULL;
}

static void io_done(struct bs_req *req)
{
	struct dev_task *t = container_of(req, struct dev_task, req);

	if (t->aborted)
		finish(t);
	else
		t->then(t, req->result);
}

static void submit_on(struct dev_task *t, struct dev_lu *lu, enum bs_op op,
		      unsigned flags, uint64_t off, uint64_t len,
		      void (*then)(struct dev_task *t, int result))
{
	t->then = then;
	t->req.op = op;
	t->req.flags = flags;
	if (DEV_PROTECTION(lu))
		t->req.flags |= dev_protect_flags(lu);
	t->req.worker = t->nexus->cfg.worker;
	t->req.off = off;
	t->req.len = len;
	t->req.done = io_done;
	bs_submit(lu->bs, &t->req);
}

void dev_submit(struct dev_task *t, enum bs_op op, unsigned flags, uint64_t off,
		uint64_t len, void (*then)(struct dev_task *t, int result))
{
	submit_on(t, t->lu, op, flags, off, len, then);
}

static void flushed(struct dev_task *t, int result)
{
	if (result)
		dev_io_failed(t, result, 0);
	else
		dev_good(t);
}

void dev_flush(struct dev_task *t, unsigned flags)
{
	dev_submit(t, BS_FLUSH, flags, 0, 0, flushed);
}

bool dev_aux(struct dev_task *t, size_t len)
{
	t->aux = buf_get(t, len);
	t->aux_len = len;
	return t->aux != NULL;
}

/*
 * A store may complete a request from within bs_submit: a handler of many
 * steps that simply called itself on would eat the stack. So a completion
 * that comes while the loop below is still in the step only says "again".
 */
static void run_steps(struct dev_task *t)
{
	if (t->in_step) {
		t->step_again = true;
		return;
	}
	do {
		t->step_again = false;
		t->in_step = true;
		if (!t->step(t))
			return; /* ended: t is its owner's again */
		t->in_step = false;
	} while (t->step_again);
}

static void step_io_done(struct dev_task *t, int result)
{
	t->io_result = result;
	run_steps(t);
}

void dev_step_io(struct dev_task *t, enum bs_op op, unsigned flags,
		 uint64_t off, uint64_t len)
{
	dev_submit(t, op, flags, off, len, step_io_done);
}

void dev_step_io_on(struct dev_task *t, struct dev_lu *lu, enum bs_op op,
		    unsigned flags, uint64_t off, uint64_t len)
{
	submit_on(t, lu, op, flags, off, len, step_io_done);
}

static void step_range_taken(struct dev_range *r)
{
	struct dev_task *t = container_of(r, struct dev_task, range);

	if (t->aborted) {
		finish(t);
		return;
	}
	dev_tokens_touch(r->lu, r->worker, r->lba, r->blocks);
	step_io_done(t, 0);
}

void dev_step_range(struct dev_task *t, struct dev_lu *lu, uint64_t lba,
		    uint64_t blocks)
{
	int err = dev_range_take(
		&t->range, lu, t->nexus->cfg.worker, lba, blocks,
		DEV_PROTECTION(lu) ? DEV_HOLD_ALONE : DEV_HOLD_SHARED,
		step_range_taken);

	if (err)
		step_io_done(t, err);
}

static void step_source_taken(struct dev_range *r)
{
	struct dev_task *t = container_of(r, struct dev_task, range);

	if (t->aborted)
		finish(t);
	else
		step_io_done(t, 0);
}

void dev_step_source(struct dev_task *t, struct dev_lu *lu, uint64_t lba,
		     uint64_t blocks)
{
	(void)dev_range_take(&t->range, lu, t->nexus->cfg.worker, lba, blocks,
			     DEV_HOLD_SHARED, step_source_taken);
}

void dev_steps(struct dev_task *t, bool (*step)(struct dev_task *t))
{
	t->step = step;
	t->io_result = 0;
	run_steps(t);
}
