/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * taskset.c: task attributes (SAM-5 §8.5 to §8.7). The commands of a nexus at
 * a unit are kept in the order they came. A SIMPLE one is dormant while an
 * older ORDERED one or any HEAD OF QUEUE one has not ended, an ORDERED one
 * while any older one or any HEAD OF QUEUE one has not.
 *
 * Where the task set is shared by all nexuses (TST = 000b) an ORDERED command
 * that touches the medium has it to itself, too (range.c): commands of other
 * nexuses are before it or behind it. Which of the two is known to nobody but
 * the unit, since connections have no order among them.
 *
 * While there is an auto contingent allegiance (aca.c) what it blocks is
 * dormant, too, or, where it ran already, held at its end.
 */
#include "device/taskset.h"

static bool is_ordered(const struct dev_task *t)
{
	return t->attr == DEV_ATTR_ORDERED;
}

static bool is_head(const struct dev_task *t)
{
	return t->attr == DEV_ATTR_HEAD_OF_QUEUE;
}

static bool is_special(const struct dev_task *t)
{
	return is_ordered(t) || is_head(t);
}

void dev_set_enter(struct dev_task *t)
{
	struct dev_nexus *n = t->nexus;

	t->dormant = false;
	list_init(&t->in_set);
	if (!t->lu)
		return;
	list_push_back(&n->tasks, &t->in_set);
	if (is_special(t))
		n->special[t->lu->cfg.lun]++;
}

/* Does another that has not ended keep t dormant? older: it came first. */
static bool keeps_back(const struct dev_task *t, const struct dev_task *other,
		       bool older)
{
	if (other->lu != t->lu || other == t)
		return false;
	return is_head(other) ||
	       (older && (is_ordered(t) || is_ordered(other)));
}

static bool is_dormant(const struct dev_task *t)
{
	bool older = true;

	if (t->nexus->naca && dev_aca_blocks(t))
		return true;
	if (is_head(t) || t->past_aca || t->held)
		return false;
	list_for_each(it, &t->nexus->tasks) {
		const struct dev_task *other =
			list_entry(it, struct dev_task, in_set);

		if (other == t)
			older = false;
		if (keeps_back(t, other, older))
			return true;
	}
	return false;
}

static void fall_asleep(struct dev_task *t)
{
	t->dormant = true;
	t->nexus->ndormant++;
}

bool dev_set_waits(struct dev_task *t)
{
	const struct dev_nexus *n = t->nexus;

	if (!t->lu || (!n->special[t->lu->cfg.lun] && !n->naca) ||
	    !is_dormant(t))
		return false;
	fall_asleep(t);
	return true;
}

bool dev_set_holds(struct dev_task *t)
{
	if (!dev_aca_blocks(t))
		return false;
	t->held = true;
	fall_asleep(t);
	return true;
}

bool dev_set_is_barrier(const struct dev_task *t)
{
	return is_ordered(t) && !dev_lu_own_task_sets(t->lu);
}

/* ---- waking ---- */

/* Of SIMPLE ones that of the highest priority (SAM-5 §8.7); the older, else. */
static struct dev_task *next_awake(const struct dev_nexus *n)
{
	struct dev_task *next = NULL;

	list_for_each(it, &n->tasks) {
		struct dev_task *t = list_entry(it, struct dev_task, in_set);

		if (!t->dormant || is_dormant(t))
			continue;
		if (is_special(t))
			return t;
		if (!next || dev_priority(t) < dev_priority(next))
			next = t;
	}
	return next;
}

static void go_on(struct dev_task *t)
{
	t->held = false;
	dev_task_retry(t);
}

/* What runs may end, and with it the nexus: it stays until this is over. */
static void wake(struct dev_msg *m)
{
	struct dev_nexus *n = container_of(m, struct dev_nexus, wake);
	struct dev_task *t;

	while (!n->nclearing && (t = next_awake(n))) {
		t->dormant = false;
		n->ndormant--;
		if (t->held)
			go_on(t);
		else
			dev_task_enabled(t);
	}
	n->is_waking = false;
	if (n->is_closed && !n->nclearing)
		dev_nexus_free(n);
}

/* From the loop: the response of what ended goes first. */
void dev_set_wake(struct dev_nexus *n)
{
	const struct dev_env *env = &n->server->env;

	if (!n->ndormant || n->is_waking || n->nclearing)
		return;
	n->is_waking = true;
	n->wake.run = wake;
	env->post(env->arg, n->cfg.worker, &n->wake);
}

void dev_set_leave(struct dev_task *t)
{
	struct dev_nexus *n = t->nexus;

	if (!list_linked(&t->in_set))
		return;
	list_del(&t->in_set);
	if (is_special(t))
		n->special[t->lu->cfg.lun]--;
	if (t->dormant) {
		t->dormant = false;
		n->ndormant--;
	}
	dev_set_wake(n);
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
