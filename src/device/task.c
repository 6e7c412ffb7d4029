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
	t->own.row = row;
	/* an unknown unit is reported before an unknown command (SPC-4 §4.4) */
	if (!lu && !(row && (row->flags & CMD_ANY_LUN)))
		return dev_check(t, SENSE_ILLEGAL_REQUEST,
				 ASC_LUN_NOT_SUPPORTED);
	/* SBC-3 §4.22.2.2: only units of type 2 have the 32-byte commands */
	if (row && (row->flags & CMD_TAGS) && !row->has(lu))
		return dev_check(t, SENSE_ILLEGAL_REQUEST, ASC_INVALID_OPCODE);
	if (row && row->has && !row->has(lu)) {
		t->own.row = row = NULL;
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

	if (t->own.begun.itl->is_dropped)
		return dev_hold(t);
	if (asc)
		return dev_check(t, SENSE_NOT_READY, asc);
	if (dev_denied_by_loss(t))
		return dev_check(t, SENSE_DATA_PROTECT, ASC_RESERVATION_LOST);
	if (dev_denied(t))
		return dev_end(t, SCSI_RESERVATION_CONFLICT);
	return dev_condition_forbids(t->lu, t->own.row, &s) && dev_sense(t, &s);
}

/* START STOP UNIT (SBC-3 §5.25) that only starts the unit, which a reader may need:
 * no stop, ejection or power condition. */
static bool only_starts(const struct dev_task *t)
{
	return t->own.row->op == SCSI_START_STOP_UNIT &&
	       (t->cdb[4] & 0xf3) == 0x01;
}

/* SPC-4 §7.5.8: from the MODE SELECT that sets SWP on, no command writes. A nexus
 * that has the unit read-only does not change it for other nexuses, either. True: t
 * was refused. */
static bool is_write_protected(struct dev_task *t)
{
	bool writes = t->own.row->flags & CMD_WRITES;

	if (t->own.begun.itl->read_only &&
	    (writes || ((t->own.row->flags & CMD_CHANGES) && !only_starts(t))))
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
	const struct dev_itl *i = t->own.begun.itl;
	bool writes = t->own.row->flags & CMD_WRITES;

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
	bool writes = t->own.row->flags & CMD_WRITES;
	const struct dev_itl *i = t->own.begun.itl;

	if (i->admitted[writes].row != t->own.row ||
	    i->admitted[writes].changes != t->own.begun.changes)
		return false;
	/* another worker may have changed the unit and not yet the number */
	ASSERT_SANE(t->nexus->server->env.nworkers > 1 || would_be_admitted(t));
	t->own.begun.unlimited = i->admitted[writes].unlimited;
	return true;
}

static void remember_admitted(struct dev_task *t)
{
	bool writes = t->own.row->flags & CMD_WRITES;
	struct dev_itl *i = t->own.begun.itl;

	if (!depends_on_unit_only(t->own.row))
		return;
	i->admitted[writes].row = t->own.row;
	i->admitted[writes].changes = t->own.begun.changes;
	i->admitted[writes].unlimited = !dev_rate_is_limited(t->lu);
}

static COLD int check_attention(struct dev_task *t)
{
	struct scsi_sense s;

	if (!(t->own.row->flags & CMD_NO_ATTENTION) &&
	    !t->own.begun.itl->is_dropped)
		t->own.begun.attention =
			(uint8_t)dev_attention_take(t->own.begun.itl, &s);
	return t->own.begun.attention ? dev_sense(t, &s) : 0;
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
	if (t->own.row->flags & CMD_ANY_LUN)
		return 0;
	if (t->own.begun.itl->attention && check_attention(t))
		return 1;
	return was_admitted(t) ? 0 : check_admission(t);
}

static int prepare(struct dev_task *t, uint64_t *out_len)
{
	if (t->own.passing.used)
		return dev_pass_prepare(t, out_len);
	return t->own.row->prepare ? t->own.row->prepare(t, out_len) : 0;
}

/* ---- the expected data transfer length against the CDB ---- */

/* Data-out may be shorter than the CDB requires if its length is a multiple
 * of this; 0: it may not be shorter. */
static uint32_t least_part(const struct dev_task *t)
{
	if (t->own.passing.used)
		return t->own.count;
	return t->own.row->flags & CMD_BY_BLOCK ? dev_wire_block(t) : 0;
}

static bool has_data_in(const struct dev_task *t)
{
	return t->own.passing.used ? t->own.pass.dir == PASS_IN
				   : t->own.row->dir == DIR_IN;
}

static bool has_list(const struct dev_task *t)
{
	return t->own.passing.used ? t->own.count == 0
				   : t->own.row->dir == DIR_LIST;
}

/* Data in a direction that the command does not have, or none in one that it has. */
static bool has_wrong_direction(const struct dev_task *t, uint64_t want)
{
	if (!t->own.passing.used && t->own.row->dir == DIR_BOTH)
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

	if (!t->lu || changes == t->own.begun.changes)
		return true;
	t->own.begun.changes = changes;
	t->own.begun.unlimited = t->own.mem.lent = false;
	if (is_denied(t) || is_write_protected(t))
		return false;
	if (t->own.begun.medium == medium_of(t->lu))
		return true;
	/* dev_task_begin checked the command against another medium */
	dev_check(t, SENSE_UNIT_ATTENTION, ASC_MEDIUM_MAY_HAVE_CHANGED);
	return false;
}

void dev_task_peek(struct dev_task *t, const uint8_t *data, size_t len)
{
	assert(t->own.state == DEV_TASK_WANTS_DATA);
	t->own.mem.peek = data;
	t->own.mem.peek_len = len;
}

void dev_task_keep(struct dev_task *t)
{
	/* no buffer: the command has ended */
	if (t->own.mem.peek && t->own.mem.buf)
		memcpy(t->own.mem.buf, t->own.mem.peek,
		       MIN(t->own.mem.peek_len, t->own.mem.buf_len));
	t->own.mem.peek = NULL;
}

/* A backstore that completes each request at once takes the data where they are. */
static bool can_peek(const struct dev_task *t)
{
	return (t->own.row->flags & CMD_PEEKS) && !t->own.protect.type &&
	       (t->lu->bs->caps & BS_CAP_AT_ONCE);
}

/* Executes the command. A write first revokes the tokens of its blocks;
 * UNMAP revokes the tokens of its list of ranges later (thin.c). */
static void run_row(struct dev_task *t)
{
	if (t->own.mem.peek && (t->own.passing.used || !can_peek(t)))
		dev_task_keep(t);
	if (t->own.passing.used) {
		dev_pass_run(t);
		return;
	}
	if ((t->own.row->flags & CMD_WRITES) && t->own.blocks &&
	    t->own.row->op != SCSI_UNMAP)
		dev_tokens_touch(t->lu, t->nexus->cfg.worker, t->lba,
				 t->own.blocks);
	if (t->own.protect.type)
		dev_protect_renew(t);
	if (t->own.protect.type && t->own.row->dir == DIR_OUT &&
	    !dev_protect_take(t))
		return;
	t->own.row->run(t);
}

static void range_taken(struct dev_range *r)
{
	struct dev_task *t = container_of(r, struct dev_task, own.range);

	t->own.mem.lent = false;
	if (t->own.abort.due)
		dev_finish(t);
	else if (is_still_admitted(t))
		run_row(t);
}

/* At a shared unit, commands without blocks that need access (SYNCHRONIZE CACHE, GET LBA
 * STATUS) have ended, too, when another gateway gets the unit. Those with a list take
 * ranges by themselves. */
static void run_without_range(struct dev_task *t)
{
	if (!t->lu || !t->lu->shared || t->own.row->dir == DIR_LIST ||
	    (t->own.row->flags & (CMD_ANY_LUN | ACC_STANDBY)))
		run_row(t);
	else
		(void)dev_range_take(&t->own.range, t->lu, t->nexus->cfg.worker,
				     DEV_STATE_LBA, 1, DEV_HOLD_SHARED,
				     range_taken);
}

/* Commands that use the medium wait for commands with exclusive access. */
static void run_in_range(struct dev_task *t)
{
	unsigned worker = t->nexus->cfg.worker;
	bool whole;
	/* no other command sees a block without its protection information */
	bool alone =
		!t->own.passing.used &&
		(t->own.row->flags & CMD_ALONE ||
		 (t->own.row->flags & CMD_WRITES && DEV_PROTECTION(t->lu)));

	if (!(t->own.passing.used ||
	      (t->own.row->flags & (CMD_TOUCHES | CMD_ALONE))) ||
	    (t->own.blocks == 0 && !t->own.alone)) {
		run_without_range(t);
		return;
	}
	whole = t->own.alone || dev_set_is_barrier(t);
	if (!whole && !alone &&
	    dev_range_share(&t->own.range, t->lu, worker, t->lba,
			    t->own.blocks)) {
		run_row(t); /* it was admitted a moment ago, in this turn */
		return;
	}
	if (dev_range_take(&t->own.range, t->lu, worker, whole ? 0 : t->lba,
			   whole ? DEV_WHOLE_UNIT : t->own.blocks,
			   whole || alone ? DEV_HOLD_ALONE : DEV_HOLD_SHARED,
			   range_taken))
		dev_no_resources(t);
}

static void run_paced(struct dev_task *t)
{
	t->own.mem.lent = false;
	if (is_still_admitted(t))
		run_in_range(t);
}

static void run_enabled(struct dev_task *t)
{
	if (is_still_admitted(t) &&
	    (t->own.begun.unlimited || !dev_rate_delays(t)))
		run_in_range(t);
}

/* The task set let t wait. */
static void run_awake(struct dev_task *t)
{
	t->own.mem.lent = false;
	run_enabled(t);
}

static void end_refused(struct dev_task *t)
{
	if (t->own.begun.held)
		(void)dev_hold(t);
	else
		dev_finish(t);
}

void dev_task_execute(struct dev_task *t)
{
	assert(t->own.state == DEV_TASK_WANTS_DATA);
	t->own.share.execute_due = t->waits;
	if (t->waits)
		return;
	if (!t->own.begun.refused && dev_set_waits(t))
		return;
	dev_task_go(t, DEV_TASK_RUNNING);
	if (t->own.begun.refused)
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
	t->own.flow = &flow;
	t->out_len = 0;
	t->out = t->in = (struct bufv){ 0 };
	t->status = SCSI_GOOD;
	t->sense.len = 0;
	t->total.in = t->total.out = 0;
	t->own.abort.due = t->own.begun.refused = t->own.begun.held =
		t->own.begun.unlimited = t->own.steps.is_running =
			t->own.steps.again = false;
	t->order.past_aca = false;
	t->own.begun.attention = 0;
	t->own.passing.used = t->own.passing.sent = false;
	t->lu = NULL;
	t->own.row = NULL;
	t->own.mem.buf = t->own.mem.aux = t->own.mem.pi = NULL;
	t->own.mem.peek = NULL;
	t->own.mem.lent = false;
	t->own.protect.field = t->own.protect.type = 0;
	t->own.alone = false;
	t->own.req.pi = NULL;
	t->own.copy = NULL;
	t->own.abort.let_go = NULL;
	t->own.mem.buf_len = t->own.mem.aux_len = t->own.mem.pi_len = 0;
	t->own.count = 0;
	t->lba = t->own.blocks = 0;
	t->own.range.state = DEV_HOLD_NONE;
	t->own.share.charge = t->own.share.burst =
		(struct share_charge){ .len = 0 };
	list_init(&t->own.share.wait.link);
	list_init(&t->own.share.hold.link);
	t->waits = t->held_back = t->own.share.execute_due = false;
}

/* t uses its unit no more: the nexus may have lost the unit meanwhile. */
static void let_go_of_unit(struct dev_task *t)
{
	struct dev_nexus *n = t->nexus;

	if (t->own.begun.itl)
		t->own.begun.itl->users--;
	t->own.begun.itl = NULL;
	if (!list_empty(&n->left))
		dev_nexus_sweep(n);
}

int dev_task_begin(struct dev_task *t)
{
	uint64_t want = 0;
	int err;

	clear(t);
	dev_task_go(t, DEV_TASK_WANTS_DATA);
	t->own.begun.itl = dev_itl_find(t->nexus, t->lun);
	if (t->own.begun.itl) {
		t->own.begun.itl->users++;
		t->lu = t->own.begun.itl->lu;
		/* read first: a later change is then noticed */
		t->own.begun.changes = dev_lu_changes(t->lu);
		t->own.begun.medium = medium_of(t->lu);
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
	assert(t->own.state == DEV_TASK_WANTS_DATA);
	dev_memory_give_up(t);
	dev_task_go(t, DEV_TASK_RUNNING); /* QERR may delay the end */
	/* An earlier refusal has precedence: ACA ACTIVE over sense data, and
	 * a unit attention that was taken must be reported. */
	if (t->own.begun.refused) {
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
	if (t->own.copy)
		dev_copy_abort(t);
	dev_task_go(t, DEV_TASK_NEW);
	let_go_of_unit(t);
}

int dev_task_abort(struct dev_task *t, void (*released)(struct dev_task *t))
{
	if (t->own.state == DEV_TASK_DONE)
		return ERR_NOT_FOUND;
	dev_memory_give_up(t);
	t->own.abort.released = released;
	t->own.abort.due = true;
	dev_attention_put_back(t);
	if (t->own.state == DEV_TASK_RUNNING && t->own.abort.let_go)
		t->own.abort.let_go(t);
	else if (t->own.state == DEV_TASK_RUNNING && !dev_pass_withdraw(t) &&
		 !dev_range_give_up(&t->own.range))
		return 0; /* the end of the I/O in progress ends the task */
	dev_set_leave(t);
	dev_task_go(t, DEV_TASK_DONE);
	released(t);
	return 0;
}
