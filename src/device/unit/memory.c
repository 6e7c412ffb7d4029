/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memory.c: charges the memory that a command needs of its worker, once, when the
 * command begins: its data in either direction, and the buffer of a command that
 * works in steps (CMD_CHUNK). The command gets the memory from its session's share
 * (share.h) or waits for it, before it holds anything for which another command may
 * wait: a block range, or a place in the task set. Other buffers that live only while
 * a command runs (of the DEV_COPIES copies of a nexus) are not charged.
 */
#include "device/unit/memory.h"
#include "device/unit/command.h"
#include "device/unit/loan.h"

#include <string.h>

static void buf_put(struct dev_task *t, void *buf, size_t len)
{
	const struct dev_env *env = &t->nexus->server->env;

	if (buf)
		env->buf_put(env->arg, t->nexus->cfg.worker, buf, len);
}

void *dev_memory_get(struct dev_task *t, size_t len)
{
	const struct dev_env *env = &t->nexus->server->env;

	return env->buf_get(env->arg, t->nexus->cfg.worker, len);
}

/* ---- how much a command needs ---- */

/* The backstore may lend its own memory to a READ (rw.c). A command that executes at
 * once keeps what it got here. */
static bool is_lent(struct dev_task *t, uint64_t len)
{
	if (!dev_loan_may(t) || bs_lend(t->lu->bs, t->lba << t->lu->block_shift,
					(size_t)len, &t->own.mem.iov[0]))
		return false;
	t->own.mem.lent = t->order.at_once && !t->edtl.again;
	return true;
}

static uint64_t data_in_len(struct dev_task *t)
{
	uint64_t block, len;

	if (t->edtl.in == 0)
		return 0;
	if (t->own.passing.used)
		return MIN(t->edtl.in, t->nexus->server->max_transfer);
	if (t->own.row->dir != DIR_IN)
		return 0;
	if (t->own.row->op == SCSI_REPORT_LUNS)
		return MIN(MAX(t->edtl.in, DEV_PARAM_MAX),
			   8u + 8u * DEV_MAX_LUNS);
	if (!(t->own.row->flags & CMD_TOUCHES) || !t->own.blocks)
		return DEV_PARAM_MAX;
	block = dev_wire_block(t);
	len = t->own.blocks * block;
	if (len > t->edtl.in) /* whole blocks, of which the last is cut later */
		len = MIN(len, (t->edtl.in + block - 1) / block * block);
	return is_lent(t, len) ? 0 : len;
}

/* The second buffer of a command that works in steps. */
static uint64_t chunk_len(const struct dev_task *t)
{
	if (t->own.passing.used || !(t->own.row->flags & CMD_CHUNK))
		return 0;
	return MIN(t->own.blocks, (uint64_t)DEV_CHUNK >> t->lu->block_shift)
	       << t->lu->block_shift;
}

#define PAGE 4096u

static size_t needed(struct dev_task *t)
{
	const struct dev_env *env = &t->nexus->server->env;
	uint64_t len = t->out_len ? t->out_len : data_in_len(t);

	len += chunk_len(t);
	if (len == 0)
		return 0;
	if (t->own.protect.type) /* protection information has its own buffer */
		len += (len >> t->lu->block_shift) * 8;
	len = (len + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	if (env->buf_common)
		len = MIN(len, (uint64_t)env->buf_reserve);
	return (size_t)len;
}

/* ---- getting memory ---- */

static struct dev_memory *memory_of(const struct dev_task *t)
{
	return &t->nexus->server->memory[t->nexus->cfg.worker];
}

static void serve(struct dev_msg *msg)
{
	struct dev_memory *m = container_of(msg, struct dev_memory, serve);

	m->share.serve_due = false;
	share_serve(&m->share);
}

/* From the loop, because the command that returns memory has not ended yet. */
static void serve_soon(const struct dev_task *t)
{
	const struct dev_env *env = &t->nexus->server->env;
	struct dev_memory *m = memory_of(t);

	if (m->share.serve_due)
		return;
	m->share.serve_due = true;
	m->serve.run = serve;
	env->post(env->arg, t->nexus->cfg.worker, &m->serve);
}

static void put_charge(struct dev_task *t, struct share_charge *c)
{
	/* most commands return one charge or none */
	if (c->part != SHARE_NOTHING &&
	    share_put(&memory_of(t)->share, &t->nexus->memory, c))
		serve_soon(t);
}

void *dev_memory_get_late(struct dev_task *t, size_t len)
{
	size_t pages = (len + PAGE - 1) & ~(size_t)(PAGE - 1);
	void *buf;

	if (!share_take(&memory_of(t)->share, &t->nexus->memory,
			&t->own.share.charge, pages))
		return NULL;
	buf = dev_memory_get(t, len);
	if (!buf)
		put_charge(t, &t->own.share.charge);
	return buf;
}

void dev_memory_put_late(struct dev_task *t, void *buf, size_t len)
{
	buf_put(t, buf, len);
	put_charge(t, &t->own.share.charge);
}

static int get_out(struct dev_task *t, size_t len)
{
	void *buf = dev_memory_get(t, len);

	if (!buf)
		return ERR_BUSY;
	if (t->own.mem.buf)
		memcpy(buf, t->own.mem.buf, t->own.mem.buf_len);
	buf_put(t, t->own.mem.buf, t->own.mem.buf_len);
	t->own.mem.buf = buf;
	t->own.mem.buf_len = len;
	t->own.mem.iov[0] = (struct iovec){ buf, len };
	t->out = bufv_of(t->own.mem.iov, 1);
	return 0;
}

/* The command has all its memory. get_out copies unsolicited data from the smaller
 * buffer. */
static void granted(struct share_wait *w)
{
	struct dev_task *t = container_of(w, struct dev_task, own.share.wait);

	t->own.share.charge = w->charge;
	w->charge.part = SHARE_NOTHING;
	dev_memory_give_up(t);
	if (!t->out_len) {
		if (t->own.share.execute_due)
			t->own.flow->execute(t);
		return;
	}
	if (get_out(t, t->out_len)) {
		t->status = SCSI_BUSY;
		t->own.begun.refused = true;
		t->out_len = 0;
	}
	put_charge(t, &t->own.share.burst);
	t->ready(t);
}

/* There is memory for the unsolicited data. */
static void let_in(struct share_wait *w)
{
	struct dev_task *t = container_of(w, struct dev_task, own.share.hold);

	t->own.share.burst = w->charge;
	w->charge.part = SHARE_NOTHING;
	t->held_back = false;
	if (get_out(t, t->unsolicited.len)) {
		dev_memory_give_up(t);
		t->status = SCSI_BUSY;
		t->own.begun.refused = true;
		t->out_len = 0;
	}
	t->ready(t);
}

static int wait_for(struct dev_task *t, size_t len)
{
	struct share *s = &memory_of(t)->share;
	struct share_owner *o = &t->nexus->memory;

	t->waits = true;
	t->own.share.wait.go = granted;
	share_wait_for(s, o, &t->own.share.wait, len);
	serve_soon(t);
	t->unsolicited.len = MIN(t->unsolicited.len, t->out_len);
	if (t->unsolicited.len == 0)
		return 0;
	if (share_burst(s, o, &t->own.share.burst, t->unsolicited.len) ||
	    !t->unsolicited.may_hold) {
		if (t->own.share.burst.part == SHARE_NOTHING)
			share_force_burst(s, o, &t->own.share.burst,
					  t->unsolicited.len);
		return get_out(t, t->unsolicited.len);
	}
	t->held_back = true;
	t->own.share.hold.go = let_in;
	share_hold(s, o, &t->own.share.hold, t->unsolicited.len);
	return 0;
}

int dev_memory_begin(struct dev_task *t)
{
	size_t len = needed(t);
	int err = 0;

	if (len == 0)
		return 0;
	if (!share_take(&memory_of(t)->share, &t->nexus->memory,
			&t->own.share.charge, len))
		err = wait_for(t, len);
	else if (t->out_len)
		err = get_out(t, t->out_len);
	if (err)
		dev_memory_end(t);
	return err;
}

void dev_memory_give_up(struct dev_task *t)
{
	struct share *s = &memory_of(t)->share;
	struct share_owner *o = &t->nexus->memory;

	if (!t->waits)
		return;
	t->waits = t->held_back = false;
	share_cancel(s, o, &t->own.share.wait);
	share_cancel(s, o, &t->own.share.hold);
	serve_soon(t); /* t may have been the first waiter of its session */
}

bool dev_nexus_has_turn(const struct dev_nexus *n)
{
	return n->server->memory[n->cfg.worker].share.turn == &n->memory;
}

bool dev_nexus_in_the_way(const struct dev_nexus *n)
{
	return share_in_the_way(&n->server->memory[n->cfg.worker].share,
				&n->memory);
}

void dev_memory_return(struct dev_task *t)
{
	dev_memory_give_up(t);
	dev_loan_end(t);
	buf_put(t, t->own.mem.buf, t->own.mem.buf_len);
	buf_put(t, t->own.mem.aux, t->own.mem.aux_len);
	buf_put(t, t->own.mem.pi, t->own.mem.pi_len);
	t->own.mem.buf = t->own.mem.aux = t->own.mem.pi = NULL;
	put_charge(t, &t->own.share.charge);
	put_charge(t, &t->own.share.burst);
}
