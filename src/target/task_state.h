/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * task_state.h: the state machine of a task: which transitions exist, the
 * function that changes the state, and the function that checks what holds in
 * each state. Inline, because every command passes four or five states.
 */
#ifndef TARGET_TASK_STATE_H
#define TARGET_TASK_STATE_H

#include "base/sane.h"
#include "target/internal.h"

/* Where each state may go. */
static const uint16_t tgt_task_may_go[] = {
	[TGT_TASK_FREE] = BIT(TGT_TASK_DATA),
	[TGT_TASK_DATA] = BIT(TGT_TASK_MEMORY) | BIT(TGT_TASK_TURN) |
			  BIT(TGT_TASK_RUN) | BIT(TGT_TASK_RESPONSE) |
			  BIT(TGT_TASK_ABORT_DATA) |
			  BIT(TGT_TASK_ABORT_DATAMOVER),
	[TGT_TASK_MEMORY] = BIT(TGT_TASK_DATA) | BIT(TGT_TASK_ABORT_DATAMOVER),
	[TGT_TASK_TURN] = BIT(TGT_TASK_RUN) | BIT(TGT_TASK_RESPONSE) |
			  BIT(TGT_TASK_ABORT_DATAMOVER),
	[TGT_TASK_RUN] = BIT(TGT_TASK_PUT) | BIT(TGT_TASK_RESPONSE) |
			 BIT(TGT_TASK_ABORT_DATAMOVER),
	[TGT_TASK_PUT] = BIT(TGT_TASK_RESPONSE) | BIT(TGT_TASK_ABORT_DATAMOVER),
	/* back to PUT: on another connection (reassign.c) */
	[TGT_TASK_RESPONSE] = BIT(TGT_TASK_FREE) | BIT(TGT_TASK_PUT),
	/* past ABORT_DATAMOVER: the connection is gone */
	[TGT_TASK_ABORT_DATA] = BIT(TGT_TASK_ABORT_DATAMOVER) |
				BIT(TGT_TASK_ABORT_DEVICE) | BIT(TGT_TASK_FREE),
	[TGT_TASK_ABORT_DATAMOVER] =
		BIT(TGT_TASK_ABORT_DEVICE) | BIT(TGT_TASK_FREE),
	[TGT_TASK_ABORT_DEVICE] = BIT(TGT_TASK_FREE),
};

/* What holds in each state. */
static inline bool tgt_task_is_sane(const struct tgt_task *t)
{
	const struct tgt_conn *c = t->conn;
	bool begun = tgt_task_is_begun(t);
	bool held = c && c->held == t;

	switch (t->state) {
	case TGT_TASK_DATA:
		return begun || !held;
	case TGT_TASK_MEMORY:
		return begun && !held && t->dev.waits && !t->data_err;
	case TGT_TASK_RUN:
	case TGT_TASK_ABORT_DEVICE:
		return begun && !held;
	case TGT_TASK_PUT:
		return begun && !held && !t->data_err && t->dev.in.len;
	case TGT_TASK_FREE:
	case TGT_TASK_TURN:
	case TGT_TASK_RESPONSE:
	case TGT_TASK_ABORT_DATA:
	case TGT_TASK_ABORT_DATAMOVER:
		return !held;
	}
	return false;
}

/* tgt_task_go is the only function that changes a task's state. */
static inline void tgt_task_go(struct tgt_task *t, enum tgt_task_state next)
{
	assert(tgt_task_may_go[t->state] & BIT(next));
	t->state = next;
	ASSERT_SANE(tgt_task_is_sane(t));
}

#endif
