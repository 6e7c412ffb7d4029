/* SPDX-License-Identifier: BSD-2-Clause */
/* keep.c: changes the record of a unit (keep.h). */
#include "device/keep/keep.h"
#include "device/unit/condition.h"

#include <stdlib.h>

int dev_keep_init(struct dev_lu *lu)
{
	if (!lu->cfg.keeps || !lu->server->env.save)
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

static void decide_keep(struct dev_change *c)
{
	struct keep_op *op = op_of(c);
	uint8_t *bytes;

	op->next = *op->lu->kept;
	if (!op->change) {
		end_keep(op, 0);
		return;
	}
	op->change(op, &op->next);
	bytes = malloc(KEEP_ENCODED_MAX);
	if (bytes)
		dev_change_record(c, op->lu, DEV_KEPT_UNIT, bytes,
				  keep_encode(op->lu, &op->next, bytes));
	else
		end_keep(op, ERR_NOMEM);
}

static void keep_recorded(struct dev_change *c, int err)
{
	struct keep_op *op = op_of(c);

	if (!err) {
		*op->lu->kept = op->next;
		if (op->kept)
			op->kept(op);
	}
	end_keep(op, err);
}

static void keep_done(struct dev_change *c)
{
	struct keep_op *op = op_of(c);

	op->done(op);
}

static const struct dev_change_ops keep_ops = {
	.decide = decide_keep,
	.recorded = keep_recorded,
	.done = keep_done,
};

void dev_keep(struct keep_op *op)
{
	struct dev_server *s = op->lu->server;

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
	else
		dev_check(t, SENSE_HARDWARE_ERROR, ASC_INTERNAL_TARGET_FAILURE);
}
