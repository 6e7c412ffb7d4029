/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * taskset.c: task attributes (SAM-5 §8.5 to §8.7). The list of a nexus has its
 * commands in the order in which they began; one that began early, before commands
 * that precede it, delays no other and gets its place when it is in turn. A SIMPLE command is dormant while an
 * older ORDERED command or any HEAD OF QUEUE command has not ended, an ORDERED
 * command while any older command or any HEAD OF QUEUE command has not ended.
 *
 * If all nexuses share the task set (TST = 000b), an ORDERED command that uses the
 * medium also has exclusive access to it (range.c): each command of another nexus
 * runs before or after it. The unit decides which, since connections have no order
 * among each other.
 *
 * The commands that an auto contingent allegiance (aca.c) blocks are dormant, too,
 * or held at their end if they ran already.
 */
#include "device/order/taskset.h"

#include <stdlib.h>

#include "device/unit/itl.h"
#include "device/unit/task_state.h"

static bool is_head(const struct dev_task *t)
{
	return t->attr == DEV_ATTR_HEAD_OF_QUEUE;
}

void dev_task_in_turn(struct dev_task *t)
{
	if (!t->order.early)
		return;
	t->order.early = false;
	if (!list_linked(&t->order.in_set) ||
	    t->nexus->tasks.prev == &t->order.in_set)
		return;
	list_del(&t->order.in_set);
	list_push_back(&t->nexus->tasks, &t->order.in_set);
}

/* keeps_back returns whether `other`, which has not ended, keeps t dormant. older:
 * `other` began before t. */
static bool keeps_back(const struct dev_task *t, const struct dev_task *other,
		       bool older)
{
	if (other->lu != t->lu || other == t || other->order.early)
		return false;
	/* a command that waits for memory blocks no command that has memory */
	return (is_head(other) && !other->waits) ||
	       (older && (dev_set_is_ordered(t) || dev_set_is_ordered(other)));
}

static bool has_to_wait(const struct dev_task *t)
{
	bool older = true;

	if (t->nexus->naca && dev_aca_blocks(t))
		return true;
	if (is_head(t) || t->order.past_aca || t->own.state == DEV_TASK_HELD)
		return false;
	list_for_each(it, &t->nexus->tasks) {
		const struct dev_task *other =
			list_entry(it, struct dev_task, order.in_set);

		if (other == t)
			older = false;
		if (keeps_back(t, other, older))
			return true;
	}
	return false;
}

/* next: DORMANT or HELD; wake ends either. */
static void make_waiter(struct dev_task *t, enum dev_task_state next)
{
	dev_task_go(t, next);
	t->nexus->ndormant++;
}

static bool is_waiter(const struct dev_task *t)
{
	return t->own.state == DEV_TASK_DORMANT ||
	       t->own.state == DEV_TASK_HELD;
}

bool dev_set_sleep(struct dev_task *t)
{
	if (!has_to_wait(t))
		return false;
	make_waiter(t, DEV_TASK_DORMANT);
	return true;
}

bool dev_set_holds(struct dev_task *t)
{
	if (!dev_aca_blocks(t))
		return false;
	make_waiter(t, DEV_TASK_HELD);
	return true;
}

/* ---- waking ---- */

void dev_nexus_free(struct dev_nexus *n)
{
	struct dev_itl *i;
	struct list *it;

	list_del(&n->link);
	while ((i = dev_itl_first(n))) {
		(void)lun_table_set(&n->itls, i->lun, NULL);
		dev_itl_free(i);
	}
	while ((it = list_pop_front(&n->left)))
		dev_itl_free(list_entry(it, struct dev_itl, link));
	lun_table_fini(&n->itls);
	dev_map_put(n->map);
	free(n->parting);
	free(n);
}

/* next_awake selects the oldest ORDERED or HEAD OF QUEUE command that may execute,
 * otherwise the SIMPLE command with the highest priority (SAM-5 §8.7). */
static struct dev_task *next_awake(const struct dev_nexus *n)
{
	struct dev_task *next = NULL;

	list_for_each(it, &n->tasks) {
		struct dev_task *t =
			list_entry(it, struct dev_task, order.in_set);

		if (!is_waiter(t) || has_to_wait(t))
			continue;
		if (dev_set_is_special(t))
			return t;
		if (!next || dev_priority(t) < dev_priority(next))
			next = t;
	}
	return next;
}

static void resume(struct dev_task *t)
{
	bool has_run = t->own.state == DEV_TASK_HELD;

	t->nexus->ndormant--;
	dev_task_go(t, DEV_TASK_RUNNING);
	if (has_run)
		dev_finish(t);
	else
		t->own.flow->enabled(t);
}

/* A task that runs may end, and the nexus may be closed: is_waking keeps the nexus
 * until the end of this function. Each dormant task runs at most once: a task that
 * becomes dormant again waits for the next turn. */
static void wake(struct dev_msg *m)
{
	struct dev_nexus *n = container_of(m, struct dev_nexus, wake);
	uint32_t left = n->ndormant;
	struct dev_task *t;

	while (left && !n->nclearing && (t = next_awake(n))) {
		left--;
		resume(t);
	}
	n->is_waking = false;
	if (n->is_closed && dev_nexus_is_idle(n))
		dev_nexus_free(n);
	else if (!left)
		dev_set_wake(n);
}

/* The message runs from the loop, so that the target sends the response of the
 * ended task first. */
void dev_set_wake(struct dev_nexus *n)
{
	const struct dev_env *env = &n->server->env;

	if (!n->ndormant || n->is_waking || n->nclearing)
		return;
	n->is_waking = true;
	n->wake.run = wake;
	env->post(env->arg, n->cfg.worker, &n->wake);
}

void dev_set_left(struct dev_task *t)
{
	if (is_waiter(t))
		t->nexus->ndormant--;
	dev_set_wake(t->nexus);
}

/* ---- the control mode page ---- */

bool dev_lu_tas(const struct dev_lu *lu)
{
	return DEV_CTL(lu, tas);
}

bool dev_lu_own_task_sets(const struct dev_lu *lu)
{
	return DEV_CTL(lu, tst) == 1;
}
