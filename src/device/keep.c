/* SPDX-License-Identifier: BSD-2-Clause */
/* keep.c: how the record of a unit changes (see keep.h). */
#include "device/keep.h"
#include "device/condition.h"
#include "device/mode.h"

#include <stdlib.h>

static void pump(struct dev_server *s);

static struct keep_op *op_of(struct dev_msg *m)
{
	return container_of(container_of(m, struct dev_round, msg),
			    struct keep_op, round);
}

bool dev_keeps(const struct dev_lu *lu)
{
	return lu->kept != NULL;
}

int dev_keep_init(struct dev_lu *lu)
{
	if (!lu->cfg.keeps || !lu->server->env.save)
		return 0;
	lu->kept = calloc(1, sizeof(*lu->kept));
	return lu->kept ? 0 : ERR_NOMEM;
}

/* ---- the end ---- */

static void came_back(struct dev_msg *m)
{
	struct keep_op *op = op_of(m);

	op->done(op);
}

static void finish(struct keep_op *op, int err)
{
	struct dev_server *s = op->lu->server;

	free(op->bytes);
	op->bytes = NULL;
	op->err = err;
	s->keep_current = NULL;
	dev_round_go(&op->round, KEEP_HOME, op->from, came_back);
	pump(s);
}

static void saved(struct dev_save *save)
{
	struct keep_op *op = container_of(save, struct keep_op, save);
	struct dev_lu *lu = op->lu;

	if (!save->result) {
		*lu->kept = op->next;
		dev_ctl_store(&lu->saved, &lu->kept->modes);
	}
	finish(op, save->result);
}

/* ---- one at a time, on the home worker ---- */

static void start(struct keep_op *op)
{
	const struct dev_env *env = &op->lu->server->env;

	op->lu->server->keep_current = op;
	op->next = *op->lu->kept;
	if (!op->change) {
		finish(op, 0);
		return;
	}
	op->change(op, &op->next);
	op->bytes = malloc(KEEP_ENCODED_MAX);
	if (!op->bytes) {
		finish(op, ERR_NOMEM);
		return;
	}
	op->save = (struct dev_save){
		.lu = op->lu,
		.kind = DEV_KEPT_UNIT,
		.worker = KEEP_HOME,
		.data = op->bytes,
		.len = keep_encode(op->lu, &op->next, op->bytes),
		.done = saved,
	};
	env->save(env->arg, &op->save);
}

static void pump(struct dev_server *s)
{
	struct list *n;

	if (s->keep_pumping)
		return;
	s->keep_pumping = true;
	while (!s->keep_current && (n = list_pop_front(&s->keep_waiting)))
		start(list_entry(n, struct keep_op, link));
	s->keep_pumping = false;
}

static void arrive(struct dev_msg *m)
{
	struct keep_op *op = op_of(m);

	list_push_back(&op->lu->server->keep_waiting, &op->link);
	pump(op->lu->server);
}

void dev_keep(struct keep_op *op)
{
	list_init(&op->link);
	op->bytes = NULL;
	op->round.server = op->lu->server;
	dev_round_go(&op->round, op->from, KEEP_HOME, arrive);
}

/* ---- after a power loss ---- */

static enum dev_condition condition_of(const struct keep_erase *e)
{
	if (e->state == KEEP_NO_ERASE)
		return LU_READY;
	if (e->state == KEEP_ERASING)
		return e->formats ? LU_FORMATTING : LU_SANITIZING;
	return e->formats ? LU_FORMAT_FAILED : LU_SANITIZE_FAILED;
}

int dev_keep_restore(struct dev_lu *lu, const uint8_t *data, size_t len)
{
	int err = keep_decode(lu, data, len, lu->kept);

	if (err)
		return err;
	lu->ctl = lu->saved = lu->kept->modes;
	lu->condition = (uint8_t)condition_of(&lu->kept->erase);
	lu->unrestricted = lu->kept->erase.unrestricted;
	return 0;
}

void dev_not_kept(struct dev_task *t, int err)
{
	if (err == ERR_NOMEM)
		dev_no_resources(t);
	else
		dev_check(t, SENSE_HARDWARE_ERROR, ASC_INTERNAL_TARGET_FAILURE);
}
