/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * task.c: the life of a command: begin (checks), execute, abort. Its ends are
 * in ending.c.
 */
#include <assert.h>
#include <string.h>

#include "base/cold.h"
#include "device/alua/alua.h"
#include "device/block/protect.h"
#include "device/copy/copy.h"
#include "device/order/taskset.h"
#include "device/pass/pass_unit.h"
#include "device/reserve/reserve.h"
#include "device/unit/attention.h"
#include "device/unit/condition.h"
#include "device/unit/flush.h"
#include "device/unit/itl.h"
#include "device/unit/memory.h"
#include "device/unit/range.h"
#include "device/unit/rate.h"
#include "device/unit/task_state.h"
#include "device/unit/tokens.h"

/* ---- begin ---- */

static int find_row(struct dev_task *t)
{
	const struct dev_command *row;
	const struct dev_lu *lu = t->lu;
	bool known;
	int bad;

	if (dev_pass_takes(t))
		return dev_pass_find_row(t);
	row = dev_command_find(t->nexus->server, lu ? lu->cfg.type : DEV_DISK,
			       t->cdb, &known);
	t->row = row;
	/* an unknown unit is reported before an unknown command (SPC-4 §4.4) */
	if (!lu && !(row && (row->flags & CMD_ANY_LUN)))
		return dev_check(t, SENSE_ILLEGAL_REQUEST,
				 ASC_LUN_NOT_SUPPORTED);
	/* SBC-3 §4.22.2.2: only units of type 2 have the 32-byte commands */
	if (row && (row->flags & CMD_TAGS) && !row->has(lu))
		return dev_check(t, SENSE_ILLEGAL_REQUEST, ASC_INVALID_OPCODE);
	if (row && row->has && !row->has(lu)) {
		t->row = row = NULL;
		known = true;
	}
	if (!row && known && dev_command_any(t->nexus->server, lu, t->cdb[0]))
		return dev_bad_field(t,
				     t->cdb[0] == SCSI_VARIABLE_LENGTH ? 8 : 1,
				     t->cdb[0] == SCSI_VARIABLE_LENGTH ? 7 : 4);
	if (!row)
		return dev_check(t, SENSE_ILLEGAL_REQUEST, ASC_INVALID_OPCODE);
	if (t->cdb_len < row->len)
		return dev_check(t, SENSE_ILLEGAL_REQUEST,
				 ASC_INVALID_FIELD_IN_IU);
	bad = dev_command_check(row, t->cdb);
	if (bad >= 0)
		return dev_bad_field(t, (unsigned)bad >> 3, bad & 7);
	/* ADDITIONAL CDB LENGTH, SPC-4 §4.2.3 */
	if (row->op == SCSI_VARIABLE_LENGTH && t->cdb[7] != row->len - 8)
		return dev_bad_field(t, 7, -1);
	return 0;
}

/* ---- admission ---- */

/* Checks access state, reservations and the unit's condition; every change
 * of one of them calls dev_lu_changed. True: t was refused or ended. */
static bool is_denied(struct dev_task *t)
{
	uint16_t asc = dev_inaccessible(t);
	struct scsi_sense s;

	if (t->begun.itl->is_dropped)
		return dev_hold(t);
	if (asc)
		return dev_check(t, SENSE_NOT_READY, asc);
	if (dev_denied_by_loss(t))
		return dev_check(t, SENSE_DATA_PROTECT, ASC_RESERVATION_LOST);
	if (dev_denied(t))
		return dev_end(t, SCSI_RESERVATION_CONFLICT);
	return dev_condition_forbids(t->lu, t->row, &s) && dev_sense(t, &s);
}

/* START STOP UNIT (SBC-3 §5.25) that only starts the unit, which a reader may need:
 * no stop, ejection or power condition. */
static bool only_starts(const struct dev_task *t)
{
	return t->row->op == SCSI_START_STOP_UNIT && (t->cdb[4] & 0xf3) == 0x01;
}

/* SPC-4 §7.5.8: from the MODE SELECT that sets SWP on, no command writes. A nexus
 * that has the unit read-only does not change it for other nexuses, either. True: t
 * was refused. */
static bool is_write_protected(struct dev_task *t)
{
	bool writes = t->row->flags & CMD_WRITES;

	if (t->begun.itl->read_only &&
	    (writes || ((t->row->flags & CMD_CHANGES) && !only_starts(t))))
		return dev_check(t, SENSE_DATA_PROTECT, ASC_WRITE_PROTECTED);
	if (!writes)
		return false;
	if (dev_is_read_only(t->lu))
		return dev_check(t, SENSE_DATA_PROTECT, ASC_WRITE_PROTECTED);
	return DEV_CTL(t->lu, swp) &&
	       dev_check(t, SENSE_DATA_PROTECT, ASC_SOFTWARE_WRITE_PROTECTED);
}

/* What is_denied and is_write_protected find, without an effect on t. */
static bool would_be_admitted(const struct dev_task *t)
{
	const struct dev_itl *i = t->begun.itl;
	bool writes = t->row->flags & CMD_WRITES;

	return !i->is_dropped && !dev_inaccessible(t) &&
	       !dev_denied_by_loss(t) && !dev_denied(t) &&
	       dev_condition(t->lu) == LU_READY &&
	       !(writes && (i->read_only || dev_is_read_only(t->lu) ||
			    DEV_CTL(t->lu, swp)));
}

/* Whether the checks depend on nothing but the row and what dev_lu_changed reports: of
 * some rows without these flags they depend on fields of the CDB. */
static bool depends_on_unit_only(const struct dev_command *row)
{
	const unsigned both = CMD_TOUCHES | CMD_MEDIUM;

	return (row->flags & both) == both;
}

static bool was_admitted(struct dev_task *t)
{
	bool writes = t->row->flags & CMD_WRITES;
	const struct dev_itl *i = t->begun.itl;

	if (i->admitted[writes].row != t->row ||
	    i->admitted[writes].changes != t->begun.changes)
		return false;
	/* another worker may have changed the unit and not yet the number */
	ASSERT_SANE(t->nexus->server->env.nworkers > 1 || would_be_admitted(t));
	t->begun.unlimited = i->admitted[writes].unlimited;
	return true;
}

static void remember_admitted(struct dev_task *t)
{
	bool writes = t->row->flags & CMD_WRITES;
	struct dev_itl *i = t->begun.itl;

	if (!depends_on_unit_only(t->row))
		return;
	i->admitted[writes].row = t->row;
	i->admitted[writes].changes = t->begun.changes;
	i->admitted[writes].unlimited = !dev_rate_is_limited(t->lu);
}

static COLD int check_attention(struct dev_task *t)
{
	struct scsi_sense s;

	if (!(t->row->flags & CMD_NO_ATTENTION) && !t->begun.itl->is_dropped)
		t->begun.attention =
			(uint8_t)dev_attention_take(t->begun.itl, &s);
	return t->begun.attention ? dev_sense(t, &s) : 0;
}

static COLD int check_admission(struct dev_task *t)
{
	if (is_denied(t) || is_write_protected(t))
		return 1;
	remember_admitted(t);
	return 0;
}

/* Unit attentions precede admission (SAM-5 §5.14), admission precedes write
 * protection. */
static int check_lu(struct dev_task *t)
{
	if (t->row->flags & CMD_ANY_LUN)
		return 0;
	if (t->begun.itl->attention && check_attention(t))
		return 1;
	return was_admitted(t) ? 0 : check_admission(t);
}

static int prepare(struct dev_task *t, uint64_t *out_len)
{
	if (t->passing.used)
		return dev_pass_prepare(t, out_len);
	return t->row->prepare ? t->row->prepare(t, out_len) : 0;
}

/* ---- the expected data transfer length against the CDB ---- */

/* Data-out may be shorter than the CDB requires if its length is a multiple
 * of this; 0: it may not be shorter. */
static uint32_t least_part(const struct dev_task *t)
{
	if (t->passing.used)
		return t->count;
	return t->row->flags & CMD_BY_BLOCK ? dev_wire_block(t) : 0;
}

static bool has_data_in(const struct dev_task *t)
{
	return t->passing.used ? t->pass.dir == PASS_IN : t->row->dir == DIR_IN;
}

static bool has_list(const struct dev_task *t)
{
	return t->passing.used ? t->count == 0 : t->row->dir == DIR_LIST;
}

/* Data in a direction that the command does not have, or none in one that it has. */
static bool has_wrong_direction(const struct dev_task *t, uint64_t want)
{
	if (!t->passing.used && t->row->dir == DIR_BOTH)
		return want && (!t->edtl.out || !t->edtl.in);
	return t->edtl.both || (has_data_in(t) && t->edtl.out && !t->edtl.in) ||
	       (want && t->edtl.in && !t->edtl.out);
}

/*
 * Refuses, before any transfer, data that a command with GOOD would lose: data
 * in the other direction (SAM-5 §5.4.3 leaves the choice to the device; LIO
 * refuses them, too), and data-out that ends inside a block or a parameter
 * list. Part of a block would need a read-modify-write, which no SBC command
 * has.
 */
static int check_data(struct dev_task *t, uint64_t want)
{
	uint32_t part;

	/* as most commands without write data */
	if (want == 0 && t->edtl.out == 0 && !t->edtl.both)
		return 0;
	if (has_wrong_direction(t, want))
		return dev_check(t, SENSE_ILLEGAL_REQUEST,
				 ASC_INVALID_FIELD_IN_IU);
	if (want <= t->edtl.out)
		return 0;
	part = least_part(t);
	if (part && t->edtl.out % part == 0)
		return 0;
	/* an overflow (RFC 7143 §11.4.5.1); LIO reports the same */
	t->total.out = want;
	if (has_list(t))
		return dev_bad_length(t);
	return dev_check(t, SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_IU);
}

static uint32_t medium_of(const struct dev_lu *lu)
{
	return __atomic_load_n(&lu->medium, __ATOMIC_RELAXED);
}

/* ---- execute ---- */

/*
 * Repeats the checks if the unit has changed since dev_task_begin: an initiator
 * may have reserved the unit, the unit may have become not ready, or may have
 * another medium. False: the task was ended.
 */
static bool is_still_admitted(struct dev_task *t)
{
	uint32_t changes = t->lu ? dev_lu_changes(t->lu) : 0;

	if (!t->lu || changes == t->begun.changes)
		return true;
	t->begun.changes = changes;
	t->begun.unlimited = t->mem.lent = false;
	if (is_denied(t) || is_write_protected(t))
		return false;
	if (t->begun.medium == medium_of(t->lu))
		return true;
	/* dev_task_begin checked the command against another medium */
	dev_check(t, SENSE_UNIT_ATTENTION, ASC_MEDIUM_MAY_HAVE_CHANGED);
	return false;
}

void dev_task_peek(struct dev_task *t, const uint8_t *data, size_t len)
{
	assert(t->state == DEV_TASK_WANTS_DATA);
	t->mem.peek = data;
	t->mem.peek_len = len;
}

void dev_task_keep(struct dev_task *t)
{
	/* no buffer: the command has ended */
	if (t->mem.peek && t->mem.buf)
		memcpy(t->mem.buf, t->mem.peek,
		       MIN(t->mem.peek_len, t->mem.buf_len));
	t->mem.peek = NULL;
}

/* A backstore that completes each request at once takes the data where they are. */
static bool can_peek(const struct dev_task *t)
{
	return (t->row->flags & CMD_PEEKS) && !t->protect.type &&
	       (t->lu->bs->caps & BS_CAP_AT_ONCE);
}

/* Executes the command. A write first revokes the tokens of its blocks;
 * UNMAP revokes the tokens of its list of ranges later (thin.c). */
static void run_row(struct dev_task *t)
{
	if (t->mem.peek && (t->passing.used || !can_peek(t)))
		dev_task_keep(t);
	if (t->passing.used) {
		dev_pass_run(t);
		return;
	}
	if ((t->row->flags & CMD_WRITES) && t->blocks &&
	    t->row->op != SCSI_UNMAP)
		dev_tokens_touch(t->lu, t->nexus->cfg.worker, t->lba,
				 t->blocks);
	if (t->protect.type)
		dev_protect_renew(t);
	if (t->protect.type && t->row->dir == DIR_OUT && !dev_protect_take(t))
		return;
	t->row->run(t);
}

static void range_taken(struct dev_range *r)
{
	struct dev_task *t = container_of(r, struct dev_task, range);

	t->mem.lent = false;
	if (t->abort.due)
		dev_finish(t);
	else if (is_still_admitted(t))
		run_row(t);
}

/* At a shared unit, commands without blocks that need access (SYNCHRONIZE CACHE, GET LBA
 * STATUS) have ended, too, when another gateway gets the unit. Those with a list take
 * ranges by themselves. */
static void run_without_range(struct dev_task *t)
{
	if (!t->lu || !t->lu->shared || t->row->dir == DIR_LIST ||
	    (t->row->flags & (CMD_ANY_LUN | ACC_STANDBY)))
		run_row(t);
	else
		(void)dev_range_take(&t->range, t->lu, t->nexus->cfg.worker,
				     DEV_STATE_LBA, 1, DEV_HOLD_SHARED,
				     range_taken);
}

/* Commands that use the medium wait for commands with exclusive access. */
static void run_in_range(struct dev_task *t)
{
	unsigned worker = t->nexus->cfg.worker;
	bool whole;
	/* no other command sees a block without its protection information */
	bool alone = !t->passing.used &&
		     (t->row->flags & CMD_ALONE ||
		      (t->row->flags & CMD_WRITES && DEV_PROTECTION(t->lu)));

	if (!(t->passing.used || (t->row->flags & (CMD_TOUCHES | CMD_ALONE))) ||
	    (t->blocks == 0 && !t->alone)) {
		run_without_range(t);
		return;
	}
	whole = t->alone || dev_set_is_barrier(t);
	if (!whole && !alone &&
	    dev_range_share(&t->range, t->lu, worker, t->lba, t->blocks)) {
		run_row(t); /* it was admitted a moment ago, in this turn */
		return;
	}
	if (dev_range_take(&t->range, t->lu, worker, whole ? 0 : t->lba,
			   whole ? DEV_WHOLE_UNIT : t->blocks,
			   whole || alone ? DEV_HOLD_ALONE : DEV_HOLD_SHARED,
			   range_taken))
		dev_no_resources(t);
}

static void run_paced(struct dev_task *t)
{
	t->mem.lent = false;
	if (is_still_admitted(t))
		run_in_range(t);
}

static void run_enabled(struct dev_task *t)
{
	if (is_still_admitted(t) && (t->begun.unlimited || !dev_rate_delays(t)))
		run_in_range(t);
}

/* The task set let t wait. */
static void run_awake(struct dev_task *t)
{
	t->mem.lent = false;
	run_enabled(t);
}

static void end_refused(struct dev_task *t)
{
	if (t->begun.held)
		(void)dev_hold(t);
	else
		dev_finish(t);
}

void dev_task_execute(struct dev_task *t)
{
	assert(t->state == DEV_TASK_WANTS_DATA);
	t->share.execute_due = t->waits;
	if (t->waits)
		return;
	if (!t->begun.refused && dev_set_waits(t))
		return;
	dev_task_go(t, DEV_TASK_RUNNING);
	if (t->begun.refused)
		end_refused(t);
	else
		run_enabled(t);
}

static const struct dev_flow flow = {
	.ended = dev_set_ended,
	.enabled = run_awake,
	.paced = run_paced,
	.execute = dev_task_execute,
};

static void clear(struct dev_task *t)
{
	t->flow = &flow;
	t->out_len = 0;
	t->out = t->in = (struct bufv){ 0 };
	t->status = SCSI_GOOD;
	t->sense.len = 0;
	t->total.in = t->total.out = 0;
	t->abort.due = t->begun.refused = t->begun.held = t->begun.unlimited =
		t->steps.is_running = t->steps.again = false;
	t->order.past_aca = false;
	t->begun.attention = 0;
	t->passing.used = t->passing.sent = false;
	t->lu = NULL;
	t->row = NULL;
	t->mem.buf = t->mem.aux = t->mem.pi = NULL;
	t->mem.peek = NULL;
	t->mem.lent = false;
	t->protect.field = t->protect.type = 0;
	t->alone = false;
	t->req.pi = NULL;
	t->copy = NULL;
	t->abort.let_go = NULL;
	t->mem.buf_len = t->mem.aux_len = t->mem.pi_len = 0;
	t->count = 0;
	t->lba = t->blocks = 0;
	t->range.state = DEV_HOLD_NONE;
	t->share.charge = t->share.burst = (struct share_charge){ .len = 0 };
	list_init(&t->share.wait.link);
	list_init(&t->share.hold.link);
	t->waits = t->held_back = t->share.execute_due = false;
}

/* t uses its unit no more: the nexus may have lost the unit meanwhile. */
static void let_go_of_unit(struct dev_task *t)
{
	struct dev_nexus *n = t->nexus;

	if (t->begun.itl)
		t->begun.itl->users--;
	t->begun.itl = NULL;
	if (!list_empty(&n->left))
		dev_nexus_sweep(n);
}

int dev_task_begin(struct dev_task *t)
{
	uint64_t want = 0;
	int err;

	clear(t);
	dev_task_go(t, DEV_TASK_WANTS_DATA);
	t->begun.itl = dev_itl_find(t->nexus, t->lun);
	if (t->begun.itl) {
		t->begun.itl->users++;
		t->lu = t->begun.itl->lu;
		/* read first: a later change is then noticed */
		t->begun.changes = dev_lu_changes(t->lu);
		t->begun.medium = medium_of(t->lu);
	}
	dev_set_enter(t);
	/* ACA ACTIVE is reported before anything else (SAM-5 §5.3.3) */
	if ((t->nexus->naca || t->attr >= DEV_ATTR_ACA) && dev_aca_refuses(t))
		return 0;
	if (find_row(t) || check_lu(t) || prepare(t, &want) ||
	    check_data(t, want))
		return 0;
	t->total.out = want;
	t->out_len = (uint32_t)MIN(want, (uint64_t)t->edtl.out);
	err = dev_memory_begin(t);
	if (err) {
		dev_set_leave(t);
		dev_task_go(t, DEV_TASK_NEW);
		let_go_of_unit(t);
	}
	return err;
}

void dev_task_fail(struct dev_task *t, enum dev_failure why)
{
	assert(t->state == DEV_TASK_WANTS_DATA);
	dev_memory_give_up(t);
	dev_task_go(t, DEV_TASK_RUNNING); /* QERR may delay the end */
	/* An earlier refusal has precedence: ACA ACTIVE over sense data, and
	 * a unit attention that was taken must be reported. */
	if (t->begun.refused) {
		end_refused(t);
		return;
	}
	t->total.out = 0; /* no data were received */
	dev_check_failure(t, why);
}

void dev_task_end(struct dev_task *t)
{
	dev_set_leave(t);
	dev_memory_end(t);
	if (t->copy)
		dev_copy_abort(t);
	dev_task_go(t, DEV_TASK_NEW);
	let_go_of_unit(t);
}

int dev_task_abort(struct dev_task *t, void (*released)(struct dev_task *t))
{
	if (t->state == DEV_TASK_DONE)
		return ERR_NOT_FOUND;
	dev_memory_give_up(t);
	t->abort.released = released;
	t->abort.due = true;
	dev_attention_put_back(t);
	if (t->state == DEV_TASK_RUNNING && t->abort.let_go)
		t->abort.let_go(t);
	else if (t->state == DEV_TASK_RUNNING && !dev_pass_withdraw(t) &&
		 !dev_range_give_up(&t->range))
		return 0; /* the end of the I/O in progress ends the task */
	dev_set_leave(t);
	dev_task_go(t, DEV_TASK_DONE);
	released(t);
	return 0;
}
