/* SPDX-License-Identifier: BSD-2-Clause */
/* keep.c: changes the record of a unit (keep.h). */
#include "device/keep/keep.h"
#include "device/unit/condition.h"
#include "device/unit/event.h"
#include "device/unit/shared.h"

#include <stdlib.h>
#include <string.h>

int dev_keep_init(struct dev_lu *lu)
{
	if (!(lu->cfg.keeps || lu->shared) || !lu->server->env.save)
		return 0;
	lu->kept = calloc(1, sizeof(*lu->kept));
	return lu->kept ? 0 : ERR_NOMEM;
}

/* ---- changes, one after the other on the home worker ---- */

static struct keep_op *op_of(struct dev_change *c)
{
	return container_of(c, struct keep_op, queued);
}

static void end_keep(struct keep_op *op, int err)
{
	op->err = err;
	dev_change_end(&op->queued);
}

#define EVENT_MAX (UA_COUNT * DEV_EVENT_ENTRY)

static size_t put_event(const struct keep_op *op, uint8_t *p)
{
	size_t at = 0;

	for (unsigned ua = 0; ua < UA_COUNT; ua++)
		if (op->tells & BIT(ua))
			at += dev_event_put(p + at, DEV_EVENT_ALL,
					    (enum dev_ua)ua, 0);
	return at;
}

static void record(struct keep_op *op)
{
	uint8_t *bytes = malloc(KEEP_ENCODED_MAX + EVENT_MAX);
	size_t len;

	if (!bytes) {
		end_keep(op, ERR_NOMEM);
		return;
	}
	len = keep_encode(op->lu, &op->next, bytes);
	dev_change_record(&op->queued, op->lu, DEV_KEPT_UNIT, bytes, len,
			  op->lu->shared ? put_event(op, bytes + len) : 0);
}

static void put_in_force(struct keep_op *op)
{
	*op->lu->kept = op->next;
	if (op->kept)
		op->kept(op);
}

static bool is_same(const struct keep_op *op)
{
	return !memcmp(&op->next, op->lu->kept, sizeof(op->next));
}

static void adopt(struct keep_op *op)
{
	struct dev_shared *s = op->lu->shared;
	bool same = is_same(op);

	if (!same)
		__atomic_add_fetch(&s->adopted, 1, __ATOMIC_RELEASE);
	if (!same && op->heard->incomplete)
		op->tells |= BIT(UA_MODE_CHANGED);
	op->tells |= op->heard->of_all;
	put_in_force(op);
	if (op->tells)
		dev_change_visit(&op->queued);
	else
		end_keep(op, 0);
}

static void decide_keep(struct dev_change *c)
{
	struct keep_op *op = op_of(c);

	op->next = *op->lu->kept;
	if (!op->change) {
		end_keep(op, 0);
		return;
	}
	op->change(op, &op->next);
	if (op->heard)
		adopt(op);
	else if (op->is_stale)
		end_keep(op, ERR_AGAIN);
	else
		record(op);
}

static void keep_recorded(struct dev_change *c, int err)
{
	struct keep_op *op = op_of(c);

	if (!err)
		put_in_force(op);
	end_keep(op, err);
}

static void keep_again(struct dev_change *c)
{
	op_of(c)->tells = 0;
}

static void visit_kept(struct dev_change *c, unsigned worker)
{
	const struct keep_op *op = op_of(c);

	list_for_each(it, &op->lu->lanes[worker].itls)
		for (unsigned ua = 0; ua < UA_COUNT; ua++)
			if (op->tells & BIT(ua))
				dev_attention_set(list_entry(it, struct dev_itl,
							     link),
						  (enum dev_ua)ua);
	dev_round_next(&c->round);
}

static void kept_visited(struct dev_change *c)
{
	end_keep(op_of(c), 0);
}

static void keep_done(struct dev_change *c)
{
	struct keep_op *op = op_of(c);

	op->done(op);
}

static void forget_keep(struct dev_change *c)
{
	struct keep_op *op = op_of(c);

	if (op->forgotten)
		op->forgotten(op);
}

static const struct dev_change_ops keep_ops = {
	.decide = decide_keep,
	.recorded = keep_recorded,
	.again = keep_again,
	.visit = visit_kept,
	.visited = kept_visited,
	.done = keep_done,
	.forget = forget_keep,
};

void dev_keep(struct keep_op *op)
{
	struct dev_server *s = op->lu->server;

	op->queued.saving = dev_lu_saving(op->lu, DEV_KEPT_UNIT);
	op->queued.is_first = op->heard != NULL;
	dev_change_start(&op->queued, s, &s->keep_changes, op->from, &keep_ops);
}

/* ---- restoring a record ---- */

static enum dev_condition condition_of(const struct keep_erase *e)
{
	if (e->state == KEEP_NO_ERASE)
		return LU_READY;
	if (e->state == KEEP_ERASING)
		return e->formats ? LU_FORMATTING : LU_SANITIZING;
	return e->formats ? LU_FORMAT_FAILED : LU_SANITIZE_FAILED;
}

void dev_keep_restored(struct dev_lu *lu)
{
	lu->condition = (uint8_t)condition_of(&lu->kept->erase);
	lu->unrestricted = lu->kept->erase.unrestricted;
}

void dev_not_kept(struct dev_task *t, int err)
{
	if (err == ERR_NOMEM)
		dev_no_resources(t);
	else if (err == ERR_AGAIN)
		dev_busy(t);
	else if (err == ERR_TERMINATED && t->lu->shared)
		(void)dev_hold(t);
	else
		dev_check(t, SENSE_HARDWARE_ERROR, ASC_INTERNAL_TARGET_FAILURE);
}
