/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * erase.c: overwriting or erasing a whole unit. It goes on in the background,
 * on the worker where it began, whatever becomes of the command and its nexus
 * (SBC-3 §4.11.2: no task management function aborts it). First every command
 * under way is waited for; new ones are refused by then (condition.c).
 */
#include <stdlib.h>
#include <string.h>

#include "device/internal.h"

#define ERASE_CHUNK ((uint64_t)1 << 30) /* of zeros, given back at once */

struct erase {
	struct dev_msg msg;
	struct dev_lu *lu;
	struct dev_task *task; /* waits for the end; NULL: nobody does */
	unsigned worker;
	struct dev_range range;
	struct bs_req req;
	struct iovec iov;
	struct dev_erase_spec spec; /* without its pattern */
	uint8_t *buf;		    /* DEV_CHUNK of the pattern */
	bool inverted;		    /* what is in buf now */
	unsigned pass;
	uint64_t at, size; /* as it was when this began */
};

/* ---- the end ---- */

static void end_task(struct erase *e, int err)
{
	struct dev_task *t = e->task;

	if (!t)
		return;
	t->waits_for = NULL;
	t->let_go = NULL;
	if (!err)
		dev_good(t);
	else
		dev_check(t, SENSE_MEDIUM_ERROR,
			  e->spec.during == LU_SANITIZING ? ASC_SANITIZE_FAILED
							  : ASC_FORMAT_FAILED);
}

static void end(struct erase *e, int err)
{
	struct dev_server *s = e->lu->server;

	(void)dev_condition_go(e->lu, e->spec.during,
			       err ? e->spec.failed : LU_READY);
	end_task(e, err);
	if (e->buf)
		s->env.buf_put(s->env.arg, e->worker, e->buf, DEV_CHUNK);
	__atomic_fetch_sub(&s->nbackground, 1, __ATOMIC_RELEASE);
	free(e);
}

/* The command is aborted; what it began goes on. */
static void let_go(struct dev_task *t)
{
	struct erase *e = t->waits_for;

	e->task = NULL;
	t->waits_for = NULL;
}

/* ---- one chunk after the other ---- */

static void next(struct dev_msg *m);

/* From the loop, so that the worker's other commands have their turns. */
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

static void chunk_done(struct bs_req *req)
{
	struct erase *e = container_of(req, struct erase, req);

	if (req->result) {
		end(e, req->result);
		return;
	}
	if (req->op == BS_FLUSH) {
		end(e, 0);
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
	e->req.off = op == BS_FLUSH ? 0 : e->at;
	e->req.len = len;
	e->req.done = chunk_done;
	bs_submit(e->lu->bs, &e->req);
}

static void set_progress(struct erase *e)
{
	uint64_t size = e->size;
	unsigned passes = MAX(e->spec.passes, 1u);
	double all = (double)size * passes;
	double done = (double)size * e->pass + (double)e->at;

	__atomic_store_n(&e->lu->progress, (uint16_t)(done / all * 65535),
			 __ATOMIC_RELAXED);
}

/* SBC-3 §5.24.3: with INVERT every other pass has the pattern inverted, and
 * the last has it as it is. */
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
	submit(e, BS_WRITE, 0, len);
}

static void next(struct dev_msg *m)
{
	struct erase *e = container_of(m, struct erase, msg);
	uint64_t size = e->size;

	if (__atomic_load_n(&e->lu->server->stopping, __ATOMIC_RELAXED)) {
		end(e, ERR_ABORTED);
		return;
	}
	if (e->at == size && e->pass + 1 < e->spec.passes) {
		e->pass++;
		e->at = 0;
	}
	set_progress(e);
	if (e->at == size)
		submit(e, BS_FLUSH, 0, 0);
	else if (e->spec.passes)
		write_chunk(e);
	else
		submit(e, BS_ZERO, BS_MAY_UNMAP,
		       MIN(size - e->at, ERASE_CHUNK));
}

/* Nothing is under way any more: the way is free, and new commands do not
 * come this far. */
static void drained(struct dev_range *r)
{
	struct erase *e = container_of(r, struct erase, range);

	dev_range_drop(r);
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
	/* the pattern begins anew in each block */
	for (size_t i = 0; i < block; i++)
		e->buf[i] = spec->pattern[i % spec->pattern_len];
	for (size_t at = block; at < DEV_CHUNK; at += block)
		memcpy(e->buf + at, e->buf, block);
	return true;
}

static struct erase *erase_new(struct dev_task *t,
			       const struct dev_erase_spec *spec)
{
	struct erase *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->lu = t->lu;
	e->worker = t->nexus->cfg.worker;
	e->spec = *spec;
	e->size = t->lu->bs->size;
	if (!fill_pattern(e, spec)) {
		free(e);
		return NULL;
	}
	return e;
}

static void erase_free(struct erase *e)
{
	const struct dev_env *env = &e->lu->server->env;

	if (e->buf)
		env->buf_put(env->arg, e->worker, e->buf, DEV_CHUNK);
	free(e);
}

/* The unit is ours, from whatever condition allows it. */
static bool occupy(struct dev_task *t, enum dev_condition during)
{
	struct scsi_sense s;

	if (dev_condition_go(t->lu, dev_condition(t->lu), during))
		return true;
	if (!dev_condition_sense(t->lu, &s))
		s = (struct scsi_sense){ .key = SENSE_ABORTED_COMMAND };
	dev_sense(t, &s);
	return false;
}

static void no_resources(struct dev_task *t)
{
	dev_check(t, SENSE_ABORTED_COMMAND, ASC_INSUFFICIENT_RESOURCES);
}

void dev_erase(struct dev_task *t, const struct dev_erase_spec *spec)
{
	struct dev_lu *lu = t->lu;
	struct erase *e = erase_new(t, spec);

	if (!e) {
		no_resources(t);
		return;
	}
	if (!occupy(t, spec->during)) {
		erase_free(e);
		return;
	}
	__atomic_store_n(&lu->progress, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&lu->unrestricted, spec->unrestricted,
			 __ATOMIC_RELAXED);
	__atomic_fetch_add(&lu->server->nbackground, 1, __ATOMIC_RELAXED);
	if (!spec->immediate) {
		e->task = t;
		t->waits_for = e;
		t->let_go = let_go;
	}
	if (dev_range_take(&e->range, lu, e->worker, 0, lu->blocks,
			   DEV_HOLD_ALONE, drained)) {
		end(e, ERR_NOMEM);
		if (spec->immediate)
			no_resources(t);
	} else if (spec->immediate) {
		dev_good(t);
	}
}

/* ---- ending with the process ---- */

void dev_server_stop(struct dev_server *s)
{
	__atomic_store_n(&s->stopping, true, __ATOMIC_RELAXED);
}

bool dev_server_is_busy(const struct dev_server *s)
{
	return __atomic_load_n(&s->nbackground, __ATOMIC_ACQUIRE) != 0;
}
