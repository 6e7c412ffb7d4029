/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * due.c: when the target has to look at each connection of a worker. The times are
 * together in one array: to find those that are due among ten thousand connections,
 * the worker reads this array and not ten thousand connections, which are not in the
 * cache of the CPU.
 *
 * A time may be too early: then the worker finds that the connection has a later
 * deadline. It must not be too late: see tgt_due_changed.
 */
#include <stdlib.h>

#include "base/err.h"
#include "target/internal.h"

#define FEW 64u

static xtime due_at(const struct tgt_conn *c)
{
	return MIN(c->deadline, c->stall.at);
}

int tgt_due_add(struct tgt_conn *c)
{
	struct tgt_dues *d = &c->worker->dues;

	if (d->n == d->room) {
		unsigned room = d->room ? 2 * d->room : FEW;
		struct tgt_due *all = realloc(d->all, room * sizeof(*all));

		if (!all)
			return ERR_NOMEM;
		d->all = all;
		d->room = room;
	}
	d->all[d->n++] = (struct tgt_due){ due_at(c), c };
	c->due = d->n;
	return 0;
}

void tgt_due_remove(struct tgt_conn *c)
{
	struct tgt_dues *d = &c->worker->dues;
	struct tgt_due last;

	if (!c->due)
		return;
	last = d->all[--d->n];
	d->all[c->due - 1] = last;
	last.conn->due = c->due;
	c->due = 0;
	if (d->n > 0)
		return;
	free(d->all);
	*d = (struct tgt_dues){ .n = 0 };
}

void tgt_due_set(struct tgt_conn *c)
{
	if (c->due)
		c->worker->dues.all[c->due - 1].at = due_at(c);
}

void tgt_due_changed(struct tgt_conn *c)
{
	tgt_due_set(c);
	tgt_rearm(c->worker);
}

xtime tgt_due_next(const struct tgt_worker *w)
{
	xtime at = XTIME_NEVER;

	for (unsigned i = 0; i < w->dues.n; i++)
		at = MIN(at, w->dues.all[i].at);
	return at;
}
