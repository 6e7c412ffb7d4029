/* SPDX-License-Identifier: BSD-2-Clause */
/* snapshot.c: visits the workers and adds up their counters. */
#include "daemon/metrics/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/apply/units.h"
#include "daemon/rpc/status.h"

struct collect {
	struct tour tour;
	struct list link; /* daemon.snapshots */
	bool counters;	  /* not the sessions only */
	bool failed;	  /* no memory */
	struct snapshot s;
	void (*done)(void *arg, const struct snapshot *s);
	void *arg;
};

/* ---- units ---- */

/* Notes which units there are. A unit with a number beyond LUNS_MAX does not
 * exist. Worker 0. */
static bool list_units(struct snapshot *s)
{
	const struct daemon *d = s->daemon;

	s->nunits = MIN(d->nunits, SNAPSHOT_UNITS);
	s->left_out = d->nunits - s->nunits;
	s->units = calloc(s->nunits + 1, sizeof(struct dev_lu *));
	s->stats = calloc(s->nunits + 1, sizeof(struct tgt_unit_stats *));
	if (!s->units || !s->stats)
		return false;
	for (unsigned i = 0; i < s->nunits; i++)
		s->units[i] = d->units[i]->lu;
	return true;
}

static bool is_served(const struct daemon *d, const struct dev_lu *lu,
		      unsigned guess)
{
	if (guess < d->nunits && d->units[guess]->lu == lu)
		return true;
	for (unsigned i = 0; i < d->nunits; i++)
		if (d->units[i]->lu == lu)
			return true;
	return false;
}

/* Leaves out the units that were removed while the message visited the
 * workers. Worker 0. */
static void drop_removed(struct snapshot *s)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->nunits; i++) {
		struct tgt_unit_stats *stats = s->stats[i];

		s->stats[i] = NULL;
		if (!is_served(s->daemon, s->units[i], i)) {
			free(stats);
			continue;
		}
		s->units[n] = s->units[i];
		s->stats[n++] = stats;
	}
	s->nunits = n;
}

/* Returns the place of a unit, or nunits. The pointer is compared only. */
static unsigned place_of(const struct snapshot *s, const struct dev_lu *lu,
			 unsigned guess)
{
	if (guess < s->nunits && s->units[guess] == lu)
		return guess;
	for (unsigned i = 0; i < s->nunits; i++)
		if (s->units[i] == lu)
			return i;
	return s->nunits;
}

static void add_unit(void *arg, const struct tgt_unit_stats *u)
{
	struct collect *k = arg;
	unsigned i = place_of(&k->s, u->lu, u->lun);
	struct tgt_unit_stats *to;

	if (i == k->s.nunits)
		return; /* gone, or without a place */
	to = k->s.stats[i];
	if (!to) {
		to = k->s.stats[i] = malloc(sizeof(*to));
		k->failed |= !to;
		if (to)
			*to = *u;
		return;
	}
	to->depth += u->depth;
	for (unsigned e = 0; e < TGT_ERRORS; e++)
		to->errors[e] += u->errors[e];
	for (unsigned o = 0; o < TGT_OPS; o++) {
		to->op[o].bytes += u->op[o].bytes;
		tgt_latency_add(&to->op[o].latency, &u->op[o].latency);
	}
}

/* ---- targets ---- */

static struct snapshot_target *target_of(struct collect *k, const char *name,
					 const char *transport)
{
	struct snapshot_target *t;

	list_for_each(it, &k->s.targets) {
		t = list_entry(it, struct snapshot_target, link);
		if (!strcmp(t->name, name) && !strcmp(t->transport, transport))
			return t;
	}
	t = calloc(1, sizeof(*t));
	k->failed |= !t;
	if (!t)
		return NULL;
	t->transport = transport;
	snprintf(t->name, sizeof(t->name), "%s", name);
	list_push_back(&k->s.targets, &t->link);
	return t;
}

static void add_ended(void *arg, const struct tgt_ended *e)
{
	struct snapshot_target *t = target_of(arg, e->target, e->transport);

	if (t)
		tgt_counters_add(&t->count, &e->count);
}

static void add_session(void *arg, const struct tgt_conn_status *st)
{
	struct collect *k = arg;
	struct snapshot_target *t;

	k->s.nsessions += !st->joined;
	if (!st->count)
		return; /* not admitted yet */
	t = target_of(k, st->discovery ? "" : st->target, st->transport);
	if (!t)
		return;
	t->sessions += !st->joined;
	tgt_counters_add(&t->count, st->count);
}

/* ---- workers ---- */

static void add_worker(struct tgt_worker_stats *to,
		       const struct tgt_worker_stats *from)
{
	for (unsigned i = 0; i < TGT_LOGIN_STATUSES; i++)
		to->refused[i] += from->refused[i];
	to->rejects += from->rejects;
	to->functions += from->functions;
	to->reinstated += from->reinstated;
	to->dropped += from->dropped;
	to->slow += from->slow;
	to->data += from->data;
	to->memory += from->memory;
	to->turn += from->turn;
	to->device += from->device;
	to->transport += from->transport;
	to->abort += from->abort;
}

/* On the thread of w. */
static void add_all(struct collect *k, const struct worker *w)
{
	struct tgt_worker_stats ws;
	struct traffic moved;

	if (!k->counters) {
		status_sessions(w, k->s.sessions, SIZE_MAX);
		return;
	}
	tgt_worker_units(w->target, add_unit, k);
	tgt_worker_ended(w->target, add_ended, k);
	tgt_worker_each(w->target, add_session, k);
	status_sessions(w, k->s.sessions, SNAPSHOT_SESSIONS);
	tgt_worker_stats(w->target, &ws);
	add_worker(&k->s.workers, &ws);
	conns_traffic(w, &moved);
	traffic_sum(&k->s.traffic, &moved);
	k->s.buffers_used += w->bufs.out;
	k->s.buffers_cached += w->bufs.kept;
}

/* ---- the message ---- */

static void collect_free(struct collect *k)
{
	struct list *n;

	while ((n = list_pop_front(&k->s.targets)))
		free(list_entry(n, struct snapshot_target, link));
	for (unsigned i = 0; k->s.stats && i < k->s.nunits; i++)
		free(k->s.stats[i]);
	free(k->s.stats);
	free(k->s.units);
	json_decref(k->s.sessions);
	list_del(&k->link);
	free(k);
}

static void collect_end(struct tour *t)
{
	struct collect *k = container_of(t, struct collect, tour);

	if (!k->failed)
		drop_removed(&k->s);
	k->done(k->arg, k->failed ? NULL : &k->s);
	collect_free(k);
}

static void collect_visit(struct tour *t, struct worker *w)
{
	struct collect *k = container_of(t, struct collect, tour);
	xtime began = io_now_exact();

	if (!k->failed)
		add_all(k, w);
	k->s.took += io_now_exact() - began;
}

/* Without memory for the message itself, done is called at once. */
void snapshot_collect(struct daemon *d, bool counters,
		      void (*done)(void *arg, const struct snapshot *s),
		      void *arg)
{
	struct collect *k = calloc(1, sizeof(*k));

	if (!k) {
		done(arg, NULL);
		return;
	}
	k->counters = counters;
	k->done = done;
	k->arg = arg;
	k->s.daemon = d;
	list_init(&k->s.targets);
	k->s.sessions = json_array();
	k->failed = (counters && !list_units(&k->s)) || !k->s.sessions;
	list_push_back(&d->snapshots, &k->link);
	workers_visit(d, &k->tour, collect_visit, collect_end);
}

void snapshot_abandon(struct daemon *d)
{
	while (!list_empty(&d->snapshots)) {
		struct collect *k =
			list_entry(d->snapshots.next, struct collect, link);

		k->failed = true;
		collect_end(&k->tour);
	}
}
