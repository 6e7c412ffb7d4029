/* SPDX-License-Identifier: BSD-2-Clause */
/* ones.h: many commands of a trio at once, at a store that answers when the
 * test says so. */
#ifndef TESTS_DEVICE_ONES_H
#define TESTS_DEVICE_ONES_H

#include "trio.h"

#define ONES 400

#define S DEV_ATTR_SIMPLE
#define O DEV_ATTR_ORDERED
#define H DEV_ATTR_HEAD_OF_QUEUE
#define X DEV_ATTR_ACA

static struct one {
	struct dev_task task;
	unsigned who;
	bool done, released;
	unsigned place; /* in the order of endings */
} ones[ONES];
static unsigned nended;

static inline int ones_open(void **state)
{
	memset(ones, 0, sizeof(ones));
	nended = 0;
	return trio_open_on_hold(state);
}

static inline void one_done(struct dev_task *t)
{
	struct one *o = container_of(t, struct one, task);

	o->done = true;
	o->place = ++nended;
}

static inline void one_released(struct dev_task *t)
{
	container_of(t, struct one, task)->released = true;
}

/* Not begun: the test may ask for more. */
static inline struct dev_task *
one_new(unsigned i, unsigned who, enum dev_attr attr, const uint8_t cdb[16])
{
	struct one *o = &ones[i];
	struct dev_task *t = &o->task;

	memset(o, 0, sizeof(*o));
	o->who = who;
	t->nexus = trio.i[who].nexus;
	t->attr = (uint8_t)attr;
	memcpy(t->cdb, cdb, 16);
	t->cdb_len = 16;
	t->edtl_out = t->edtl_in = 512;
	t->done = one_done;
	return t;
}

/* Its data may come later. */
static inline void one_begin(unsigned i, unsigned who, enum dev_attr attr,
			     const uint8_t cdb[16])
{
	assert_int_equal(dev_task_begin(one_new(i, who, attr, cdb)), 0);
}

static inline void one_run(unsigned i)
{
	struct dev_task *t = &ones[i].task;

	if (t->out_len)
		memset(t->mem.buf, 0, t->out_len);
	dev_task_execute(t);
	trio_settle();
}

#endif
