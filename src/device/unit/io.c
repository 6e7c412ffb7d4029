/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * io.c: functions for handlers: buffers, requests to the backstore, block ranges,
 * and commands that work in steps.
 */
#include <string.h>

#include "device/unit/flush.h"
#include "device/unit/loan.h"
#include "device/unit/memory.h"
#include "device/unit/range.h"
#include "device/unit/shared.h"
#include "device/unit/tokens.h"

bool dev_buf(struct dev_task *t, size_t len)
{
	t->own.mem.buf = dev_memory_get(t, len);
	t->own.mem.buf_len = len;
	if (!t->own.mem.buf)
		dev_busy(t);
	return t->own.mem.buf != NULL;
}

uint8_t *dev_param_buf(struct dev_task *t)
{
	if (!dev_buf(t, DEV_PARAM_MAX))
		return NULL;
	memset(t->own.mem.buf, 0, DEV_PARAM_MAX);
	return t->own.mem.buf;
}

void dev_return(struct dev_task *t, size_t len, size_t alloc)
{
	len = MIN(len, alloc);
	t->total.in = len;
	t->own.mem.iov[0] =
		(struct iovec){ t->own.mem.buf, MIN(len, (size_t)t->edtl.in) };
	t->in = bufv_of(t->own.mem.iov, 1);
	dev_good(t);
}

bool dev_pi_buf(struct dev_task *t, uint64_t blocks)
{
	t->own.mem.pi_len = blocks * 8;
	t->own.mem.pi = dev_memory_get(t, t->own.mem.pi_len);
	if (!t->own.mem.pi)
		dev_busy(t);
	return t->own.mem.pi != NULL;
}

/* Whether the request took place is not known to an initiator that gets no answer: it
 * asks another gateway. */
static void fenced(struct dev_task *t)
{
	dev_store_fenced(t->own.io.lu);
	(void)dev_hold(t);
}

static void io_done(struct bs_req *req)
{
	struct dev_task *t = container_of(req, struct dev_task, own.req);

	if (t->own.abort.due)
		dev_finish(t);
	else if (req->result == ERR_TERMINATED && t->own.io.lu->shared)
		fenced(t);
	else
		t->own.io.then(t, dev_flush_end(t));
}

/* ATO and DPICZ of the control mode page, as flags of requests. */
static unsigned protect_flags(const struct dev_lu *lu)
{
	return (DEV_CTL(lu, dpicz) ? BS_PI_UNCHECKED : 0) |
	       (DEV_CTL(lu, ato) ? BS_PI_OWNED : 0);
}

static void submit_on(struct dev_task *t, struct dev_lu *lu, enum bs_op op,
		      unsigned flags, uint64_t off, uint64_t len,
		      void (*then)(struct dev_task *t, int result))
{
	if (op == BS_WRITE || op == BS_UNMAP || op == BS_ZERO)
		dev_loans_change(lu, t->nexus->cfg.worker, off, len);
	t->own.io.then = then;
	t->own.req.op = op;
	t->own.req.flags = flags;
	if (DEV_PROTECTION(lu))
		t->own.req.flags |= protect_flags(lu);
	t->own.req.worker = t->nexus->cfg.worker;
	t->own.req.off = off;
	t->own.req.len = len;
	t->own.req.done = io_done;
	dev_flush_begin(t, lu);
	bs_submit(lu->bs, &t->own.req);
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
	t->own.mem.aux = dev_memory_get(t, len);
	t->own.mem.aux_len = len;
	return t->own.mem.aux != NULL;
}

/*
 * A backstore may complete a request within bs_submit. If each completion called the
 * next step, the stack would grow with each step. So a completion during a step
 * only sets `again`, and the loop below calls the next step.
 */
static void run_steps(struct dev_task *t);

static void go_on(struct dev_msg *m)
{
	struct dev_task *t = container_of(m, struct dev_task, own.steps.later);

	if (t->own.abort.due)
		dev_finish(t);
	else
		run_steps(t);
}

/* A step costs as much as these bytes, beside those that it moves. */
#define STEP_COST (32u << 10)

/* After steps that cost DEV_CHUNK bytes, the worker serves other connections before the next
 * one: for an abort, that is as if the last request were still in progress. */
static bool give_way(struct dev_task *t)
{
	const struct dev_env *env = &t->nexus->server->env;

	t->own.steps.cost += STEP_COST + t->own.req.len;
	if (t->own.steps.cost < DEV_CHUNK || !env->give_way)
		return false;
	t->own.steps.cost = 0;
	t->own.steps.later.run = go_on;
	env->give_way(env->arg, t->nexus->cfg.worker, &t->own.steps.later);
	return true;
}

static void run_steps(struct dev_task *t)
{
	if (t->own.steps.is_running) {
		t->own.steps.again = true;
		return;
	}
	do {
		t->own.steps.again = false;
		t->own.steps.is_running = true;
		if (!t->own.steps.next(t))
			return; /* The step ended t, which its owner may free. */
		t->own.steps.is_running = false;
	} while (t->own.steps.again && !give_way(t));
}

static void step_io_done(struct dev_task *t, int result)
{
	t->own.steps.result = result;
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
	struct dev_task *t = container_of(r, struct dev_task, own.range);

	if (t->own.abort.due) {
		dev_finish(t);
		return;
	}
	dev_tokens_touch(r->lu, r->worker, r->lba, r->blocks);
	step_io_done(t, 0);
}

void dev_step_range(struct dev_task *t, struct dev_lu *lu, uint64_t lba,
		    uint64_t blocks, bool alone)
{
	int err = dev_range_take(
		&t->own.range, lu, t->nexus->cfg.worker, lba, blocks,
		alone || DEV_PROTECTION(lu) ? DEV_HOLD_ALONE : DEV_HOLD_SHARED,
		step_range_taken);

	if (err)
		step_io_done(t, err);
}

static void step_source_taken(struct dev_range *r)
{
	struct dev_task *t = container_of(r, struct dev_task, own.range);

	if (t->own.abort.due)
		dev_finish(t);
	else
		step_io_done(t, 0);
}

void dev_step_source(struct dev_task *t, struct dev_lu *lu, uint64_t lba,
		     uint64_t blocks)
{
	(void)dev_range_take(&t->own.range, lu, t->nexus->cfg.worker, lba,
			     blocks, DEV_HOLD_SHARED, step_source_taken);
}

void dev_steps(struct dev_task *t, bool (*step)(struct dev_task *t))
{
	t->own.steps.next = step;
	t->own.steps.result = 0;
	t->own.steps.cost = 0;
	run_steps(t);
}
