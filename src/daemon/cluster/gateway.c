/* SPDX-License-Identifier: BSD-2-Clause */
/* gateway.c: the members of this gateway. */
#include <stdlib.h>

#include "daemon/cluster/internal.h"
#include "daemon/config/model.h"
#include "daemon/log/say.h"

/* dev_env.save never calls done from within. */
static void fail_saves(struct io_defer *d)
{
	struct gateway *c = container_of(d, struct gateway, later);
	struct list *n;

	while ((n = list_pop_front(&c->failed))) {
		struct dev_save *s = list_entry(n, struct dev_save, link);

		s->done(s);
	}
}

struct gateway *gateway_new(struct daemon *d, gateway_reopened *reopened)
{
	struct gateway *c = calloc(1, sizeof(*c));

	if (!c) {
		say("out of memory");
		return NULL;
	}
	c->daemon = d;
	c->reopened = reopened;
	list_init(&c->members);
	list_init(&c->failed);
	list_init(&c->later.link);
	c->later.run = fail_saves;
	io_random(NULL, (uint8_t *)&c->run, sizeof(c->run));
	pthread_mutex_init(&c->lock, NULL);
	return c;
}

void gateway_free(struct gateway *c)
{
	if (!c)
		return;
	while (!list_empty(&c->members))
		member_free(list_entry(c->members.next, struct member, link),
			    true);
	io_defer_cancel(&c->later);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

const struct cfg_cluster *gateway_section(const struct gateway *c)
{
	return c->daemon->model->cluster.v;
}

void gateway_update(struct gateway *c)
{
	list_for_each(it, &c->members) {
		struct member *m = list_entry(it, struct member, link);

		if (m->leave.begun)
			continue;
		if (!m->cu) {
			member_begin(m);
		} else if (member_describe(m)) {
			cluster_unit_describe(m->cu, &m->self);
			member_wake(m);
		}
	}
}

/* ---- the end of iserd ---- */

void gateway_left(struct gateway *c)
{
	void (*left)(void *arg) = c->left;

	if (!left || !list_empty(&c->members))
		return;
	c->left = NULL;
	left(c->arg);
}

/* gateway_left follows. */
static void ignore_end(void *arg)
{
	(void)arg;
}

void gateway_leave(struct gateway *c, void (*done)(void *arg), void *arg)
{
	c->left = done;
	c->arg = arg;
	list_for_each(it, &c->members) {
		struct member *m = list_entry(it, struct member, link);

		if (!m->leave.begun)
			member_leave(m, ignore_end, c);
	}
	gateway_left(c);
}

bool gateway_is_hanging(const struct gateway *c)
{
	if (!c)
		return false;
	list_for_each(it, &c->members)
		if (member_drop_is_hanging(list_entry(it, struct member, link)))
			return true;
	return false;
}

/* ---- look-up ---- */

struct member *gateway_member(const struct gateway *c, const struct dev_lu *lu)
{
	list_for_each(it, &c->members) {
		struct member *m = list_entry(it, struct member, link);

		if (m->unit->lu == lu)
			return m;
	}
	return NULL;
}

void gateway_each(const struct gateway *c,
		  void (*fn)(void *arg, struct member *m), void *arg)
{
	list_for_each(it, &c->members)
		fn(arg, list_entry(it, struct member, link));
}
