/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * task_state.h: the state machine of a task: which transitions exist, the
 * function that changes the state, and the function that asserts what holds in
 * each state. Inline, because every command passes four transitions.
 */
#ifndef DEVICE_TASK_STATE_H
#define DEVICE_TASK_STATE_H

#include <assert.h>

#include "base/sane.h"
#include "device/unit/unit.h"

/* Where each state may go. The owner may abort a task in every state between
 * begin and end. */
static const uint8_t dev_task_may_go[] = {
	[DEV_TASK_NEW] = BIT(DEV_TASK_WANTS_DATA),
	/* NEW: no memory, or its owner ends it without an execution */
	[DEV_TASK_WANTS_DATA] = BIT(DEV_TASK_DORMANT) | BIT(DEV_TASK_RUNNING) |
				BIT(DEV_TASK_DONE) | BIT(DEV_TASK_NEW),
	[DEV_TASK_DORMANT] = BIT(DEV_TASK_RUNNING) | BIT(DEV_TASK_DONE),
	[DEV_TASK_RUNNING] = BIT(DEV_TASK_HELD) | BIT(DEV_TASK_DONE),
	/* RUNNING: the ACA was cleared, so the task ends now */
	[DEV_TASK_HELD] = BIT(DEV_TASK_RUNNING) | BIT(DEV_TASK_DONE),
	[DEV_TASK_DONE] = BIT(DEV_TASK_NEW),
};

/* dev_task_is_in_set returns whether the task set still has t (taskset.c). */
static inline bool dev_task_is_in_set(const struct dev_task *t)
{
	return list_linked(&t->order.in_set);
}

/* dev_task_is_sane returns whether t's members agree with its state. */
static inline bool dev_task_is_sane(const struct dev_task *t)
{
	bool holds_blocks = t->own.range.state != DEV_HOLD_NONE;

	switch (t->own.state) {
	case DEV_TASK_NEW: /* it has nothing of the device */
		return !holds_blocks && !t->own.mem.buf && !t->own.copy;
	case DEV_TASK_WANTS_DATA: /* no other command may wait for it */
		return !holds_blocks && !t->own.abort.due &&
		       (t->waits || !t->held_back);
	case DEV_TASK_DORMANT: /* it has its memory, and a waker */
		return !holds_blocks && !t->own.abort.due && !t->waits &&
		       dev_task_is_in_set(t);
	case DEV_TASK_RUNNING: /* it waits for memory no more */
		return !t->waits && !t->held_back;
	case DEV_TASK_HELD: /* an aborted task ends in spite of an ACA */
		return !holds_blocks && !t->own.abort.due &&
		       dev_task_is_in_set(t);
	case DEV_TASK_DONE: /* no other command waits for it any more */
		return !holds_blocks && !t->waits && !dev_task_is_in_set(t);
	}
	return false;
}

/* dev_task_go is the only function that changes the state. */
static inline void dev_task_go(struct dev_task *t, enum dev_task_state next)
{
	assert(dev_task_may_go[t->own.state] & BIT(next));
	t->own.state = next;
	ASSERT_SANE(dev_task_is_sane(t));
}

#endif
