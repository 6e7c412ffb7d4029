/* SPDX-License-Identifier: BSD-2-Clause */
/* change.c: the queue of changes on the home worker; see change.h. */
#include "device/unit/change.h"

#include <stdlib.h>

void dev_changes_init(struct dev_changes *q)
{
	list_init(&q->waiting);
}

static struct dev_change *change_of(struct dev_msg *m)
{
	return container_of(container_of(m, struct dev_round, msg),
			    struct dev_change, round);
}

static void came_back(struct dev_msg *m)
{
	struct dev_change *c = change_of(m);

	c->ops->done(c);
}

static void reply(struct dev_change *c)
{
	dev_round_go(&c->round, DEV_HOME, c->from, came_back);
}

/* A change may end while it is decided: then the loop below continues, so that the
 * stack stays flat. */
static void pump(struct dev_changes *q)
{
	struct list *it;

	if (q->is_pumping)
		return;
	q->is_pumping = true;
	while (!q->current && (it = list_pop_front(&q->waiting))) {
		struct dev_change *c = list_entry(it, struct dev_change, link);

		q->current = c;
		c->ops->decide(c);
	}
	q->is_pumping = false;
}

void dev_change_end(struct dev_change *c)
{
	struct dev_changes *q = c->queue;

	q->current = NULL;
	reply(c);
	pump(q);
}

/* ---- the record ---- */

static void saved(struct dev_save *s)
{
	struct dev_change *c = container_of(s, struct dev_change, save);

	free(c->bytes);
	c->bytes = NULL;
	c->ops->recorded(c, s->result);
}

void dev_change_record(struct dev_change *c, struct dev_lu *lu,
		       enum dev_kept kind, uint8_t *bytes, size_t len)
{
	const struct dev_env *env = &lu->server->env;

	c->bytes = bytes;
	c->save = (struct dev_save){ .lu = lu,
				     .kind = kind,
				     .worker = DEV_HOME,
				     .data = bytes,
				     .len = len,
				     .done = saved };
	env->save(env->arg, &c->save);
}

/* ---- the visits ---- */

static void visit(struct dev_round *r, unsigned worker)
{
	struct dev_change *c = container_of(r, struct dev_change, round);

	c->ops->visit(c, worker);
}

static void visited(struct dev_round *r)
{
	struct dev_change *c = container_of(r, struct dev_change, round);

	c->ops->visited(c);
}

void dev_change_visit(struct dev_change *c)
{
	c->round.visit = visit;
	c->round.done = visited;
	dev_round_start(&c->round, DEV_HOME);
}

/* ---- one at a time ---- */

static bool bounces(struct dev_change *c)
{
	const struct dev_change *current = c->queue->current;

	return current && c->ops->bounces && c->ops->bounces(c, current);
}

void dev_changes_bounce(struct dev_changes *q)
{
	list_for_each_safe(it, &q->waiting) {
		struct dev_change *c = list_entry(it, struct dev_change, link);

		if (!bounces(c))
			continue;
		list_del(&c->link);
		reply(c);
	}
}

static void arrive(struct dev_msg *m)
{
	struct dev_change *c = change_of(m);

	if (bounces(c)) {
		reply(c);
		return;
	}
	list_push_back(&c->queue->waiting, &c->link);
	pump(c->queue);
}

void dev_change_start(struct dev_change *c, struct dev_server *s,
		      struct dev_changes *q, unsigned from,
		      const struct dev_change_ops *ops)
{
	list_init(&c->link);
	c->round.server = s;
	c->queue = q;
	c->from = from;
	c->ops = ops;
	c->bytes = NULL;
	dev_round_go(&c->round, from, DEV_HOME, arrive);
}

/* ---- the end of the server ---- */

static void forget(struct dev_change *c)
{
	free(c->bytes);
	if (c->ops->forget)
		c->ops->forget(c);
}

void dev_changes_forget(struct dev_changes *q)
{
	struct list *it;

	if (q->current)
		forget(q->current);
	q->current = NULL;
	while ((it = list_pop_front(&q->waiting)))
		forget(list_entry(it, struct dev_change, link));
}
