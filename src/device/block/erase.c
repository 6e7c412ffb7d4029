/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * erase.c: overwriting or erasing all blocks of a unit in the background, on
 * the worker of the command. The end of the command or of its nexus does not
 * stop the erasure (SBC-3 §4.11.2: no task management function aborts it). The
 * erasure begins when all earlier commands have ended; dev_condition_forbids
 * refuses new commands from the beginning.
 *
 * A unit with a record (keep.h) records that the erasure has begun, before the
 * command ends and before any block changes; its progress, after a flush, at
 * checkpoints; and its end, before the unit is ready. If the process ends
 * during an erasure, the next process continues it (SBC-3 §4.11.2).
 */
#include <stdlib.h>
#include <string.h>

#include "device/block/block.h"
#include "device/block/erase.h"
#include "device/keep/keep.h"
#include "device/unit/attention.h"
#include "device/unit/lu_life.h"
#include "device/unit/range.h"
#include "device/unit/tokens.h"

#define ERASE_CHUNK ((uint64_t)1 << 30) /* of one BS_ZERO */
#define CHECKPOINTS 32u			/* per pass */

struct erase {
	struct dev_msg msg;
	struct dev_lu *lu;
	struct dev_task *task; /* ends with the erasure; NULL: no task waits */
	unsigned worker;
	struct dev_range range;
	struct bs_req req;
	struct iovec iov;
	struct dev_erase_spec spec; /* without its pattern */
	uint8_t *buf;		    /* DEV_CHUNK of the pattern */
	bool inverted;		    /* buf holds the inverted pattern */
	/* the backstore has its new protection type */
	bool formatted;
	struct dev_nexus *nexus; /* may be freed: only compared */
	unsigned pass;
	uint64_t at, size; /* of the unit when the erasure began */
	/* the record, see fill_record */
	enum dev_condition was; /* the condition before the erasure */
	struct keep_op keep;
	struct keep_erase first; /* the record of the begun erasure */
	void (*then)(struct erase *e, int err);
	bool at_checkpoint; /* the flush in progress precedes a checkpoint */
	unsigned safe_pass;
	uint64_t safe_at;
	uint32_t failures; /* bs_flush_failures when the first block was due */
	int err;	   /* result of the erasure */
};

/* ---- the record ---- */

static void kept(struct keep_op *op)
{
	struct erase *e = container_of(op, struct erase, keep);

	e->then(e, op->err);
}

static void keep_then(struct erase *e,
		      void (*change)(struct keep_op *op, struct dev_record *r),
		      void (*then)(struct erase *e, int err))
{
	if (!dev_keeps(e->lu)) {
		then(e, 0);
		return;
	}
	e->then = then;
	e->keep.lu = e->lu;
	e->keep.from = e->worker;
	e->keep.change = change;
	e->keep.done = kept;
	dev_keep(&e->keep);
}

static void keep_first(struct keep_op *op, struct dev_record *r)
{
	r->erase = container_of(op, struct erase, keep)->first;
}

static void keep_progress(struct keep_op *op, struct dev_record *r)
{
	const struct erase *e = container_of(op, struct erase, keep);

	r->erase.pass = (uint8_t)e->pass;
	r->erase.at = e->at;
}

static void keep_failure(struct keep_op *op, struct dev_record *r)
{
	(void)op;
	r->erase.state = KEEP_ERASE_FAILED;
}

static void keep_end(struct keep_op *op, struct dev_record *r)
{
	(void)op;
	memset(&r->erase, 0, sizeof(r->erase));
}

/* ---- the end ---- */

static void end_task(struct erase *e, int err)
{
	struct dev_task *t = e->task;

	if (!t)
		return;
	t->own.abort.waits_for = NULL;
	t->own.abort.let_go = NULL;
	if (!err)
		dev_good(t);
	/* the next process continues */
	else if (err == ERR_ABORTED && dev_keeps(e->lu))
		dev_check(t, SENSE_NOT_READY,
			  e->spec.during == LU_SANITIZING
				  ? ASC_SANITIZE_IN_PROGRESS
				  : ASC_FORMAT_IN_PROGRESS);
	else
		dev_check(t, SENSE_MEDIUM_ERROR,
			  e->spec.during == LU_SANITIZING ? ASC_SANITIZE_FAILED
							  : ASC_FORMAT_FAILED);
}

static void erase_free(struct erase *e)
{
	const struct dev_env *env = &e->lu->server->env;

	if (e->buf)
		env->buf_put(env->arg, e->worker, e->buf, DEV_CHUNK);
	free(e);
}

static void leave(struct erase *e)
{
	struct dev_lu *lu = e->lu;

	erase_free(e);
	dev_background_end(lu);
}

/* If the record still has the erasure, the next process would continue it
 * and erase blocks that were written meanwhile: so the erasure has failed if
 * the record cannot be saved. */
static void succeeded(struct erase *e, int err)
{
	(void)dev_condition_go(e->lu, e->spec.during,
			       err ? e->spec.failed : LU_READY);
	end_task(e, err);
	leave(e);
}

/* An error of the record changes nothing: without the record of the failure,
 * the next process repeats the erasure. */
static void failed(struct erase *e, int err)
{
	(void)err;
	succeeded(e, e->err);
}

static void end(struct erase *e, int err)
{
	e->err = err;
	if (!err)
		keep_then(e, keep_end, succeeded);
	else
		keep_then(e, keep_failure, failed);
}

/* The process ends, or the unit is removed: with a record, the next process continues
 * the erasure; without a record, the erasure has failed. */
static void interrupt(struct erase *e)
{
	if (!dev_keeps(e->lu)) {
		end(e, ERR_ABORTED);
		return;
	}
	end_task(e, ERR_ABORTED);
	leave(e);
}

/* The command is aborted; the erasure continues without a waiting task. */
static void let_go(struct dev_task *t)
{
	struct erase *e = t->own.abort.waits_for;

	e->task = NULL;
	t->own.abort.waits_for = NULL;
}

/* ---- one chunk after the other ---- */

static void next(struct dev_msg *m);

/* Continues from the event loop, so that the worker's other commands get
 * turns. */
static void go_on(struct erase *e, uint64_t bytes)
{
	const struct dev_env *env = &e->lu->server->env;
	uint64_t rate = e->lu->cfg.erase_rate;

	e->msg.run = next;
	if (rate && env->later && bytes)
		env->later(env->arg, e->worker, (unsigned)(bytes * 1000 / rate),
			   &e->msg);
	else
		env->post(env->arg, e->worker, &e->msg);
}

/* An error is ignored: an older checkpoint only means that the next process
 * repeats more. */
static void checkpointed(struct erase *e, int err)
{
	(void)err;
	e->at_checkpoint = false;
	e->safe_pass = e->pass;
	e->safe_at = e->at;
	go_on(e, 0);
}

static bool is_checkpoint_due(const struct erase *e)
{
	if (!dev_keeps(e->lu) || e->at == e->size)
		return false;
	return e->pass != e->safe_pass ||
	       e->at - e->safe_at >=
		       MAX(e->size / CHECKPOINTS, (uint64_t)DEV_CHUNK);
}

/* If the backstore cannot deallocate blocks, changing the key is sufficient. */
static void rekeyed(struct erase *e)
{
	e->spec.rekey = false;
	if (!dev_has_unmap(e->lu))
		e->at = e->size;
}

/* SBC-3 §5.3: if the protection type changes, all other nexuses get CAPACITY
 * DATA HAS CHANGED. */
static void take_type(struct erase *e)
{
	uint8_t type = e->spec.type;

	e->formatted = true;
	if (__atomic_exchange_n(&e->lu->protection, type, __ATOMIC_RELAXED) !=
	    type)
		dev_attention_unit(e->lu, e->worker, e->nexus,
				   UA_CAPACITY_CHANGED);
}

static void chunk_done(struct bs_req *req)
{
	struct erase *e = container_of(req, struct erase, req);

	if (req->result) {
		end(e, req->result);
		return;
	}
	if (req->op == BS_FLUSH) {
		/* Linux may have reported the write-back error to another
		 * flush */
		if (e->failures != bs_flush_failures(e->lu->bs))
			end(e, ERR_UNFLUSHED);
		else if (e->at_checkpoint)
			keep_then(e, keep_progress, checkpointed);
		else
			end(e, 0);
		return;
	}
	if (req->op == BS_REKEY)
		rekeyed(e);
	if (req->op == BS_PROTECT) {
		take_type(e);
		go_on(e, 0);
		return;
	}
	e->at += req->len;
	go_on(e, req->op == BS_WRITE ? req->len : 0);
}

static void submit(struct erase *e, enum bs_op op, unsigned flags, uint64_t len)
{
	e->req.op = op;
	e->req.flags = flags;
	e->req.worker = e->worker;
	e->req.off = len ? e->at : 0;
	e->req.len = len;
	e->req.pi_type = e->spec.type;
	e->req.done = chunk_done;
	bs_submit(e->lu->bs, &e->req);
}

static void set_progress(struct erase *e)
{
	uint64_t size = e->size;
	unsigned passes = MAX(e->spec.passes, 1u);
	double all = (double)size * passes;
	double done = (double)size * e->pass + (double)e->at;

	__atomic_store_n(&e->lu->erasure.progress,
			 (uint16_t)(done / all * 65535), __ATOMIC_RELAXED);
}

/* SBC-3 §5.24.3: with INVERT every other pass writes the inverted pattern;
 * the last pass writes the pattern as the initiator sent it. */
static void set_pattern(struct erase *e)
{
	bool want = e->spec.invert && (e->spec.passes - e->pass) % 2 == 0;

	if (want == e->inverted)
		return;
	for (size_t i = 0; i < DEV_CHUNK; i++)
		e->buf[i] = (uint8_t)~e->buf[i];
	e->inverted = want;
}

static void write_chunk(struct erase *e)
{
	uint64_t len = MIN(e->size - e->at, (uint64_t)DEV_CHUNK);

	set_pattern(e);
	e->iov = (struct iovec){ e->buf, (size_t)len };
	e->req.data = bufv_of(&e->iov, 1);
	submit(e, BS_WRITE, BS_PI_NONE, len); /* SBC-3 §4.11.1 */
}

static void next(struct dev_msg *m)
{
	struct erase *e = container_of(m, struct erase, msg);
	uint64_t size = e->size;

	if (__atomic_load_n(&e->lu->server->stopping, __ATOMIC_RELAXED) ||
	    dev_lu_is_leaving(e->lu)) {
		interrupt(e);
		return;
	}
	if (e->at == size && e->pass + 1 < e->spec.passes) {
		e->pass++;
		e->at = 0;
	}
	set_progress(e);
	e->at_checkpoint = is_checkpoint_due(e);
	if (e->spec.rekey)
		submit(e, BS_REKEY, 0, 0);
	else if (e->at == size && e->spec.protect && !e->formatted)
		submit(e, BS_PROTECT, 0, 0);
	else if (e->at == size || e->at_checkpoint)
		submit(e, BS_FLUSH, 0, 0);
	else if (e->spec.passes)
		write_chunk(e);
	else
		submit(e, BS_ZERO, BS_MAY_UNMAP,
		       MIN(size - e->at, ERASE_CHUNK));
}

/* All earlier commands have ended, and the unit's condition refuses new
 * commands: the fence is no longer needed. */
static void drained(struct dev_range *r)
{
	struct erase *e = container_of(r, struct erase, range);

	dev_range_drop(r);
	e->failures = bs_flush_failures(e->lu->bs);
	dev_tokens_touch(e->lu, e->worker, 0, e->lu->blocks);
	go_on(e, 0);
}

/* ---- the beginning ---- */

static bool fill_pattern(struct erase *e, const struct dev_erase_spec *spec)
{
	const struct dev_env *env = &e->lu->server->env;
	size_t block = e->lu->block_size;

	if (!spec->passes)
		return true;
	e->buf = env->buf_get(env->arg, e->worker, DEV_CHUNK);
	if (!e->buf)
		return false;
	/* each block begins with the first byte of the pattern */
	for (size_t i = 0; i < block; i++)
		e->buf[i] = spec->pattern[i % spec->pattern_len];
	for (size_t at = block; at < DEV_CHUNK; at += block)
		memcpy(e->buf + at, e->buf, block);
	return true;
}

static struct erase *erase_new(struct dev_lu *lu, unsigned worker,
			       const struct dev_erase_spec *spec)
{
	struct erase *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->lu = lu;
	e->worker = worker;
	e->spec = *spec;
	e->size = lu->bs->size;
	if (!fill_pattern(e, spec)) {
		free(e);
		return NULL;
	}
	return e;
}

static void fill_record(struct erase *e, const struct dev_erase_spec *spec)
{
	struct keep_erase *k = &e->first;

	k->state = KEEP_ERASING;
	k->formats = spec->during == LU_FORMATTING;
	k->unrestricted = spec->unrestricted;
	k->rekey = spec->rekey;
	k->invert = spec->invert;
	k->pi_type = spec->type;
	k->passes = (uint8_t)spec->passes;
	k->size = e->size;
	if (!spec->passes)
		return;
	k->pattern_len = (uint16_t)MIN(spec->pattern_len, sizeof(k->pattern));
	memcpy(k->pattern, spec->pattern, k->pattern_len);
}

/* Moves the unit to spec.during if its condition permits that; false: t was
 * ended. */
static bool occupy(struct erase *e, struct dev_task *t)
{
	struct scsi_sense s;

	e->was = dev_condition(t->lu);
	if (dev_condition_go(t->lu, e->was, e->spec.during)) {
		__atomic_add_fetch(&t->lu->erasure.begun, 1, __ATOMIC_RELAXED);
		return true;
	}
	if (!dev_condition_sense(t->lu, &s))
		s = (struct scsi_sense){ .key = SENSE_ABORTED_COMMAND };
	dev_sense(t, &s);
	return false;
}

/* No block has changed: the unit gets back its earlier condition. */
static void cancel(struct erase *e, int err)
{
	struct dev_task *t = e->task;

	(void)dev_condition_go(e->lu, e->spec.during, e->was);
	if (t) {
		t->own.abort.waits_for = NULL;
		t->own.abort.let_go = NULL;
		dev_not_kept(t, err);
	}
	leave(e);
}

static void begun(struct erase *e, int err)
{
	struct dev_task *t = e->spec.immediate ? e->task : NULL;

	if (err) {
		cancel(e, err);
		return;
	}
	if (t) { /* IMMED: the task does not wait for the end */
		let_go(t);
		t->own.abort.let_go = NULL;
	}
	if (dev_range_take(&e->range, e->lu, e->worker, 0, e->lu->blocks,
			   DEV_HOLD_ALONE, drained)) {
		end(e, ERR_NOMEM);
		if (t)
			dev_no_resources(t);
	} else if (t) {
		dev_good(t);
	}
}

void dev_erase(struct dev_task *t, const struct dev_erase_spec *spec)
{
	struct dev_lu *lu = t->lu;
	struct erase *e = erase_new(lu, t->nexus->cfg.worker, spec);

	if (!e) {
		dev_no_resources(t);
		return;
	}
	if (!occupy(e, t)) {
		erase_free(e);
		return;
	}
	e->nexus = t->nexus;
	fill_record(e, spec);
	__atomic_store_n(&lu->erasure.progress, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&lu->unrestricted, spec->unrestricted,
			 __ATOMIC_RELAXED);
	dev_background_begin(lu);
	e->task = t;
	t->own.abort.waits_for = e;
	t->own.abort.let_go = let_go;
	keep_then(e, keep_first, begun);
}

/* ---- SANITIZE EXIT FAILURE MODE ---- */

struct exit_op {
	struct keep_op op;
	struct dev_task *task;
};

/* If another SANITIZE has begun meanwhile, its record stays. */
static void exit_failure(struct keep_op *op, struct dev_record *r)
{
	if (r->erase.state == KEEP_ERASE_FAILED)
		keep_end(op, r);
}

static void exit_recorded(struct keep_op *op)
{
	struct exit_op *f = container_of(op, struct exit_op, op);
	struct dev_task *t = f->task;
	int err = op->err;

	free(f);
	if (err) {
		dev_not_kept(t, err);
	} else {
		(void)dev_condition_go(t->lu, LU_SANITIZE_FAILED, LU_READY);
		dev_good(t);
	}
}

void dev_erase_exit_failure(struct dev_task *t)
{
	struct exit_op *f;

	if (!dev_keeps(t->lu)) {
		(void)dev_condition_go(t->lu, LU_SANITIZE_FAILED, LU_READY);
		dev_good(t);
		return;
	}
	f = calloc(1, sizeof(*f));
	if (!f) {
		dev_no_resources(t);
		return;
	}
	f->task = t;
	f->op.lu = t->lu;
	f->op.from = t->nexus->cfg.worker;
	f->op.change = exit_failure;
	f->op.done = exit_recorded;
	dev_keep(&f->op);
}

/* ---- continuing the erasure of an earlier process ---- */

/* If the size of the unit or its blocks has changed, the pass begins again. */
static void set_position(struct erase *e, const struct keep_erase *k)
{
	e->pass = e->safe_pass = k->pass;
	if (k->size == e->size && k->at % e->lu->block_size == 0)
		e->at = e->safe_at = k->at;
}

static void resume(struct dev_lu *lu)
{
	const struct keep_erase *k = &lu->kept->erase;
	const struct dev_erase_spec spec = {
		.during = k->formats ? LU_FORMATTING : LU_SANITIZING,
		.failed = k->formats ? LU_FORMAT_FAILED : LU_SANITIZE_FAILED,
		.unrestricted = k->unrestricted,
		.rekey = k->rekey, /* a second change of the key is harmless */
		.passes = k->passes,
		.invert = k->invert,
		.pattern = k->pattern,
		.pattern_len = k->pattern_len,
		.protect = k->formats && lu->bs->protection,
		.type = k->pi_type,
	};
	struct erase *e;

	/* The record stays: a later process with write access or with more
	 * memory continues */
	e = dev_is_read_only(lu) ? NULL : erase_new(lu, DEV_HOME, &spec);
	if (!e) {
		(void)dev_condition_go(lu, spec.during, spec.failed);
		return;
	}
	set_position(e, k);
	set_progress(e);
	dev_background_begin(lu);
	begun(e, 0);
}

void dev_server_resume(struct dev_server *s)
{
	for (struct dev_lu *lu = dev_lu_from(s, 0); lu; lu = dev_lu_after(lu))
		if (dev_keeps(lu) && lu->kept->erase.state == KEEP_ERASING)
			resume(lu);
}

/* ---- the end of the process ---- */

void dev_server_stop(struct dev_server *s)
{
	__atomic_store_n(&s->stopping, true, __ATOMIC_RELAXED);
}

bool dev_server_is_busy(const struct dev_server *s)
{
	return __atomic_load_n(&s->nbackground, __ATOMIC_ACQUIRE) != 0;
}
