/* SPDX-License-Identifier: BSD-2-Clause */
/* change.c: the queue of changes on the home worker; see change.h. */
#include "device/unit/change.h"

#include <stdlib.h>

void dev_changes_init(struct dev_changes *q)
{
	list_init(&q->waiting);
	list_init(&q->saving);
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

/* Returns the first change whose unit saves no record, and takes it from the queue; NULL:
 * none. */
static struct dev_change *next(struct dev_changes *q)
{
	list_for_each(it, &q->waiting) {
		struct dev_change *c = list_entry(it, struct dev_change, link);

		if (c->saving && *c->saving)
			continue;
		list_del(&c->link);
		return c;
	}
	return NULL;
}

static void go_on(struct dev_change *c)
{
	if (!c->is_recorded) {
		c->ops->decide(c);
		return;
	}
	c->is_recorded = false;
	c->ops->recorded(c, c->save.result);
}

/* A change may end while it is decided: then the loop below continues, so that the
 * stack stays flat. */
static void pump(struct dev_changes *q)
{
	struct dev_change *c;

	if (q->is_pumping)
		return;
	q->is_pumping = true;
	while (!q->current && (c = next(q))) {
		q->current = c;
		go_on(c);
	}
	q->is_pumping = false;
}

void dev_changes_go_on(struct dev_changes *q)
{
	pump(q);
}

void dev_change_end(struct dev_change *c)
{
	struct dev_changes *q = c->queue;

	q->current = NULL;
	reply(c);
	pump(q);
}

/* ---- the record ---- */

static bool is_ahead(const struct dev_change *c)
{
	return c->is_first || c->is_recorded;
}

/* Queues c before all changes except those that come from other gateways or that the
 * record has already. */
static void put_first(struct dev_change *c)
{
	struct list *after = &c->queue->waiting;

	list_for_each(it, &c->queue->waiting)
		if (is_ahead(list_entry(it, struct dev_change, link)))
			after = it;
	list_push_front(after, &c->link);
}

/* Returns whether a change of another gateway waits for c. */
static bool is_outrun(const struct dev_change *c)
{
	list_for_each(it, &c->queue->waiting) {
		const struct dev_change *o =
			list_entry(it, struct dev_change, link);

		if (o->is_first && o->saving == c->saving)
			return true;
	}
	return false;
}

/* The record of a shared unit: its change is not the current one meanwhile. Without the
 * newer state, which may be damaged, a new decision would be the same. */
static void saved_shared(struct dev_change *c)
{
	*c->saving = NULL;
	list_del(&c->link);
	if (c->save.result == ERR_AGAIN && !is_outrun(c))
		c->save.result = ERR_RESET;
	if (c->save.result == ERR_AGAIN) {
		c->ops->again(c);
		put_first(c);
	} else {
		c->is_recorded = true;
		list_push_front(&c->queue->waiting, &c->link);
	}
	pump(c->queue);
}

static void saved(struct dev_save *s)
{
	struct dev_change *c = container_of(s, struct dev_change, save);

	free(c->bytes);
	c->bytes = NULL;
	if (c->saving)
		saved_shared(c);
	else
		c->ops->recorded(c, s->result);
}

void dev_change_record(struct dev_change *c, struct dev_lu *lu,
		       enum dev_kept kind, uint8_t *bytes, size_t len,
		       size_t event_len)
{
	const struct dev_env *env = &lu->server->env;
	struct dev_changes *q = c->queue;

	c->bytes = bytes;
	c->save = (struct dev_save){ .lu = lu,
				     .kind = kind,
				     .worker = DEV_HOME,
				     .data = bytes,
				     .len = len,
				     .event = event_len ? bytes + len : NULL,
				     .event_len = event_len,
				     .done = saved };
	if (!c->saving) {
		env->save(env->arg, &c->save);
		return;
	}
	*c->saving = c;
	q->current = NULL;
	list_push_back(&q->saving, &c->link);
	env->save(env->arg, &c->save);
	pump(q);
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
	if (c->is_first)
		put_first(c);
	else
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
	c->is_recorded = false;
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
	while ((it = list_pop_front(&q->saving)) ||
	       (it = list_pop_front(&q->waiting)))
		forget(list_entry(it, struct dev_change, link));
}
