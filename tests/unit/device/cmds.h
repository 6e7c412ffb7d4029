/* SPDX-License-Identifier: BSD-2-Clause */
/* cmds.h: many concurrent commands of three initiators, on a backstore whose
 * requests wait until the test releases them. */
#ifndef TESTS_DEVICE_CMDS_H
#define TESTS_DEVICE_CMDS_H

#include "three.h"

#define CMDS 400

#define S DEV_ATTR_SIMPLE
#define O DEV_ATTR_ORDERED
#define H DEV_ATTR_HEAD_OF_QUEUE
#define X DEV_ATTR_ACA

static struct cmd {
	struct dev_task task;
	unsigned who;
	bool done, released;
	unsigned place; /* the position in the order in which the commands ended */
} cmds[CMDS];
static unsigned nended;

static inline int cmds_open(void **state)
{
	memset(cmds, 0, sizeof(cmds));
	nended = 0;
	return three_open_on_hold(state);
}

static inline void cmd_done(struct dev_task *t)
{
	struct cmd *o = container_of(t, struct cmd, task);

	no_more_steps(t);
	o->done = true;
	o->place = ++nended;
}

static inline void cmd_released(struct dev_task *t)
{
	container_of(t, struct cmd, task)->released = true;
}

/* cmd_new prepares a command; the test may change it before dev_task_begin. */
static inline struct dev_task *
cmd_new(unsigned i, unsigned who, enum dev_attr attr, const uint8_t cdb[16])
{
	struct cmd *o = &cmds[i];
	struct dev_task *t = &o->task;

	memset(o, 0, sizeof(*o));
	o->who = who;
	t->nexus = three.i[who].nexus;
	t->attr = (uint8_t)attr;
	memcpy(t->cdb, cdb, 16);
	t->cdb_len = 16;
	t->edtl.out = t->edtl.in = 512;
	t->done = cmd_done;
	return t;
}

/* cmd_begin begins a command; its data may arrive later. */
static inline void cmd_begin(unsigned i, unsigned who, enum dev_attr attr,
			     const uint8_t cdb[16])
{
	assert_int_equal(dev_task_begin(cmd_new(i, who, attr, cdb)), 0);
}

static inline void cmd_run(unsigned i)
{
	struct dev_task *t = &cmds[i].task;

	if (t->out_len)
		memset(t->own.mem.buf, 0, t->out_len);
	dev_task_execute(t);
	three_settle();
}

#endif
