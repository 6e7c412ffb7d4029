/* SPDX-License-Identifier: BSD-2-Clause */
/* kick.c: ends sessions and connections. */
#include "daemon/serve/kick.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon.h"

struct kick {
	struct tour tour;
	const struct kick_how *how;
	bool (*is_chosen)(void *arg, const struct tgt_conn_status *st);
	void (*done)(void *arg, const struct list *all);
	void *arg;
	/* the worker that is visited, then worker 0 */
	struct list all; /* struct kicked */
	unsigned nall;
	/* worker 0 */
	unsigned nended;
	bool visited;
};

static void kicked_free(struct kicked *x)
{
	list_del(&x->link);
	list_del(&x->place);
	free(x->initiator);
	free(x->target);
	free(x);
}

void kick_free(struct kick *k)
{
	while (!list_empty(&k->all))
		kicked_free(list_entry(k->all.next, struct kicked, link));
	free(k);
}

static void end_if_complete(struct kick *k)
{
	if (!k->visited || k->nended < k->nall)
		return;
	k->done(k->arg, &k->all);
	kick_free(k);
}

/* On worker 0. */
static void note_end(struct dev_msg *m)
{
	struct kick *k = container_of(m, struct kicked, msg)->kick;

	k->nended++;
	end_if_complete(k);
}

void kick_ended(struct worker *w, const void *owner, bool logged_out)
{
	list_for_each_safe(it, &w->kicked) {
		struct kicked *x = list_entry(it, struct kicked, place);

		if (x->owner != owner)
			continue;
		list_del(&x->place);
		x->logged_out = logged_out;
		x->msg.run = note_end;
		worker_post(w->daemon, 0, &x->msg);
	}
}

/* NULL: no memory. */
static struct kicked *kicked_new(const struct tgt_conn_status *st)
{
	struct kicked *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	list_init(&x->link);
	list_init(&x->place);
	x->owner = st->info->owner;
	x->tsih = st->tsih;
	snprintf(x->peer, sizeof(x->peer), "%s", st->info->peer);
	x->initiator = strdup(st->initiator);
	x->target = strdup(st->discovery ? "(discovery)" : st->target);
	if (x->initiator && x->target)
		return x;
	kicked_free(x);
	return NULL;
}

static bool choose(void *arg, const struct tgt_conn_status *st)
{
	struct kick *k = arg;
	struct daemon *d = k->tour.daemon;
	struct kicked *x;

	if (!k->is_chosen(k->arg, st))
		return false;
	x = kicked_new(st);
	if (!x)
		return k->how->must;
	x->kick = k;
	list_push_back(&k->all, &x->link);
	k->nall++;
	if (!st->lost) {
		list_push_back(&d->workers[k->tour.worker].kicked, &x->place);
		return true;
	}
	x->msg.run = note_end; /* it has ended already */
	worker_post(d, 0, &x->msg);
	return true;
}

static void visited(struct tour *t)
{
	struct kick *k = container_of(t, struct kick, tour);

	k->visited = true;
	end_if_complete(k);
}

static void visit(struct tour *t, struct worker *w)
{
	struct kick *k = container_of(t, struct kick, tour);

	tgt_worker_end(w->target, k->how->now, k->how->reason, choose, k);
}

struct kick *
kick_begin(struct daemon *d, const struct kick_how *how,
	   bool (*is_chosen)(void *arg, const struct tgt_conn_status *st),
	   void (*done)(void *arg, const struct list *all), void *arg)
{
	struct kick *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	k->how = how;
	k->is_chosen = is_chosen;
	k->done = done;
	k->arg = arg;
	list_init(&k->all);
	workers_visit(d, &k->tour, visit, visited);
	return k;
}
