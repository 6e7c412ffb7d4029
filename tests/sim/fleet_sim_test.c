/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fleet_sim_test.c: a fleet of gateways starts with all its initiators at once, is
 * upgraded one gateway after the other, and loses a third of its gateways, which return
 * later. Each unit has three gateways, selected at random.
 *
 * The oracle: only the gateway with the lock executes a unit, no command sees older
 * reservations than those that an initiator has had an answer for, and after each of
 * these events each unit that has a gateway has one owner, which serves its initiators.
 *
 * FLEET_GATEWAYS, FLEET_UNITS, FLEET_INITIATORS, FLEET_SERVERS and FLEET_SEED change the
 * run; FLEET_LOG prints what the gateways log.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"
#include "sim/fleet.h"

#define MOVES	     10u /* hand-overs at once, to balance the fleet */
#define MOVE_STEP    (100 * XTIME_MS)
#define RESERVE_STEP (20 * XTIME_MS)
#define RETURN_TIME  (5 * XTIME_S)
#define SERVED	     (15 * XTIME_S) /* at the end of a phase */

static unsigned number(const char *name, unsigned otherwise)
{
	const char *s = getenv(name);

	return s ? (unsigned)strtoul(s, NULL, 10) : otherwise;
}

void fleet_wrong(struct fleet *f, const char *what)
{
	if (!f->wrong) {
		f->wrong = what;
		if (!f->mistake)
			printf("%.3f s: %s\n", (double)f->clock.now / 1e9,
			       what);
	}
}

void fleet_at(struct fleet *f, xtime at, void (*happens)(void *arg), void *arg)
{
	sim_at(&f->clock, at, MACHINES, happens, arg);
}

static void run_for(struct fleet *f, xtime t)
{
	xtime until = f->clock.now + t;

	while (!f->wrong && sim_next(&f->clock, until))
		;
	f->clock.now = until;
}

/* ---- a fleet ---- */

static void *table(struct fleet *f, unsigned n, size_t size)
{
	return sim_alloc(&f->clock, n * size);
}

static void join(struct fleet *f, struct fleet_unit *u, unsigned k)
{
	struct fleet_member *m = table(f, 1, sizeof(*m));
	struct fleet_gateway *g;
	bool again;

	do {
		g = &f->gw[sim_random(&f->clock, f->size.gateways)];
		again = false;
		for (unsigned i = 0; i < k; i++)
			again |= u->members[i]->g == g;
	} while (again);
	m->u = u;
	m->g = g;
	u->members[k] = m;
	g->members[g->nmembers++] = m;
}

static void fleet_new(struct fleet *f, struct fleet_size size, unsigned seed)
{
	memset(f, 0, sizeof(*f));
	list_init(&f->objects);
	f->size = size;
	f->clock.seed = seed * 2654435761u + 1;
	f->monitor.committed = -PAXOS_INTERVAL;
	f->gw = table(f, size.gateways, sizeof(*f->gw));
	f->units = table(f, size.units, sizeof(*f->units));
	f->ini = table(f, size.initiators, sizeof(*f->ini));
	f->servers = table(f, size.servers, sizeof(*f->servers));
	for (unsigned i = 0; i < size.gateways; i++) {
		struct fleet_gateway *g = &f->gw[i];

		g->f = f;
		g->number = i;
		g->power = FLEET_STOPPED;
		g->known = table(f, size.gateways, sizeof(*g->known));
		g->members = table(f, size.units, sizeof(*g->members));
	}
	for (unsigned i = 0; i < size.units; i++) {
		struct fleet_unit *u = &f->units[i];

		u->f = f;
		u->number = i;
		u->server = &f->servers[i % size.servers];
		for (unsigned k = 0; k < FLEET_PATHS; k++)
			join(f, u, k);
	}
	for (unsigned i = 0; i < size.initiators; i++) {
		f->ini[i].f = f;
		f->ini[i].number = i;
		f->ini[i].u = &f->units[i % size.units];
	}
}

static void fleet_free(struct fleet *f)
{
	for (unsigned i = 0; i < f->size.units; i++)
		for (unsigned k = 0; k < FLEET_PATHS; k++)
			cluster_unit_free(f->units[i].members[k]->cu);
	fleet_objects_free(f);
	sim_free(&f->clock);
}

static void start(void *arg)
{
	fleet_start(arg);
}

/* Initiators change reservations all the time. */
static void reserve(void *arg)
{
	struct fleet *f = arg;

	fleet_reserve(&f->ini[sim_random(&f->clock, f->size.initiators)]);
	fleet_at(f, f->clock.now + RESERVE_STEP, reserve, f);
}

/* ---- the figures of a phase ---- */

static void phase_begin(struct fleet *f)
{
	memset(&f->requests, 0, sizeof(f->requests));
	memset(&f->notes, 0, sizeof(f->notes));
	memset(&f->changes, 0, sizeof(f->changes));
	memset(&f->logins, 0, sizeof(f->logins));
	memset(&f->checks, 0, sizeof(f->checks));
	f->executed = f->reserved = f->refused = f->rejected = 0;
	f->hand_overs = f->breaks = 0;
	memset(&f->monitor.commands, 0, sizeof(f->monitor.commands));
	f->monitor.commits = f->monitor.most_waiting = 0;
	for (unsigned i = 0; i < f->size.servers; i++)
		memset(&f->servers[i].busy, 0, sizeof(f->servers[i].busy));
	for (unsigned i = 0; i < f->size.gateways; i++) {
		memset(&f->gw[i].logins, 0, sizeof(f->gw[i].logins));
		f->gw[i].worst = 0;
	}
	for (unsigned i = 0; i < f->size.initiators; i++)
		f->ini[i].worst_read = f->ini[i].worst_write = 0;
}

static bool has_gateway(const struct fleet_unit *u)
{
	for (unsigned k = 0; k < FLEET_PATHS; k++)
		if (u->members[k]->g->power == FLEET_UP)
			return true;
	return false;
}

struct figures {
	uint64_t gateway_logins, most_owned, units;
	xtime login, reads, writes, mean_reads;
	double server;
};

static struct figures figures_of(const struct fleet *f)
{
	struct figures n = { 0 };
	uint64_t served = 0;

	for (unsigned i = 0; i < f->size.gateways; i++) {
		const struct fleet_gateway *g = &f->gw[i];

		n.gateway_logins = MAX(n.gateway_logins, g->logins.most);
		n.login = MAX(n.login, g->worst);
		n.most_owned = MAX(n.most_owned, fleet_owned(g));
	}
	for (unsigned i = 0; i < f->size.servers; i++)
		n.server = MAX(n.server, (double)f->servers[i].busy.most / 1e7);
	for (unsigned i = 0; i < f->size.units; i++)
		n.units += has_gateway(&f->units[i]);
	for (unsigned i = 0; i < f->size.initiators; i++) {
		const struct fleet_initiator *p = &f->ini[i];

		if (p->u->was_lost)
			continue;
		n.reads = MAX(n.reads, p->worst_read);
		n.writes = MAX(n.writes, p->worst_write);
		n.mean_reads += p->worst_read;
		served++;
	}
	n.mean_reads /= (xtime)MAX(served, 1);
	return n;
}

static struct figures phase_end(struct fleet *f, const char *name, xtime began)
{
	struct figures n = figures_of(f);
	double s = (double)(f->clock.now - began) / 1e9;

	if (f->mistake)
		return n;
	printf("%s: %.1f s, %llu units with a gateway, at most %llu of one owner\n",
	       name, s, (unsigned long long)n.units,
	       (unsigned long long)n.most_owned);
	printf("  longest read %.2f s (mean of all initiators %.2f s), longest write %.2f s; %llu commands, %llu refused, %llu of fenced gateways\n",
	       (double)n.reads / 1e9, (double)n.mean_reads / 1e9,
	       (double)n.writes / 1e9, (unsigned long long)f->executed,
	       (unsigned long long)f->refused, (unsigned long long)f->rejected);
	printf("  logins: %llu, in the worst second %llu, at one gateway %llu; longest %.3f s\n",
	       (unsigned long long)f->logins.all,
	       (unsigned long long)f->logins.most,
	       (unsigned long long)n.gateway_logins, (double)n.login / 1e9);
	printf("  record: %.0f requests/s, worst second %llu, busiest server %.0f %%; %llu changes, %.0f notes/s (worst %llu)\n",
	       (double)f->requests.all / s,
	       (unsigned long long)f->requests.most, n.server,
	       (unsigned long long)f->changes.all, (double)f->notes.all / s,
	       (unsigned long long)f->notes.most);
	printf("  hand-overs: %llu, the last after %.1f s, locks broken %llu, fences %llu in %u commits (most at once %u); reservation changes %llu; checks/s %.0f, worst %llu\n",
	       (unsigned long long)f->hand_overs,
	       (double)MAX(f->handed_over - began, 0) / 1e9,
	       (unsigned long long)f->breaks,
	       (unsigned long long)f->monitor.commands.all, f->monitor.commits,
	       f->monitor.most_waiting, (unsigned long long)f->reserved,
	       (double)f->checks.all / s, (unsigned long long)f->checks.most);
	return n;
}

/* ---- what has to hold at the end of a phase ---- */

static void check_unit(struct fleet *f, const struct fleet_unit *u)
{
	const struct fleet_member *owner = NULL;

	for (unsigned k = 0; k < FLEET_PATHS; k++) {
		if (fleet_role(u->members[k]) != CLUSTER_OWNER)
			continue;
		if (owner)
			fleet_wrong(f, "a unit has two owners");
		owner = u->members[k];
	}
	if (!owner)
		fleet_wrong(f, "a unit has no owner");
	else if (u->holder != owner->session ||
		 owner->access != CLUSTER_OPTIMIZED)
		fleet_wrong(f, "the owner of a unit does not have its lock");
	else if (owner->serial < u->acked)
		fleet_wrong(f, "the owner has old reservations");
}

static void check_fleet(struct fleet *f)
{
	unsigned *before = malloc(f->size.initiators * sizeof(*before));

	if (!before)
		abort();
	for (unsigned i = 0; i < f->size.initiators; i++)
		before[i] = f->ini[i].done;
	run_for(f, SERVED);
	for (unsigned i = 0; i < f->size.initiators; i++)
		if (has_gateway(f->ini[i].u) && f->ini[i].done < before[i] + 5)
			fleet_wrong(f, "an initiator is not served");
	for (unsigned i = 0; i < f->size.units; i++)
		if (has_gateway(&f->units[i]))
			check_unit(f, &f->units[i]);
	free(before);
}

/* ---- the phases ---- */

static void moved(struct cluster_step *s)
{
	container_of(s, struct fleet_member, move)->moves = false;
}

/* Moves a unit from the gateway with the most units to one with two fewer at least, as an
 * administrator does; false: there is none. */
static bool move_one(struct fleet *f, unsigned *owned)
{
	struct fleet_member *from = NULL, *to = NULL;
	unsigned best = 1;

	for (unsigned i = 0; i < f->size.units; i++) {
		struct fleet_unit *u = &f->units[i];
		struct fleet_member *a = NULL;

		for (unsigned k = 0; k < FLEET_PATHS; k++)
			if (fleet_role(u->members[k]) == CLUSTER_OWNER)
				a = u->members[k];
		for (unsigned k = 0; a && !a->moves && k < FLEET_PATHS; k++) {
			struct fleet_member *b = u->members[k];

			if (fleet_role(b) != CLUSTER_STANDING_BY ||
			    owned[a->g->number] <= owned[b->g->number] + best)
				continue;
			best = owned[a->g->number] - owned[b->g->number];
			from = a;
			to = b;
		}
	}
	if (!from)
		return false;
	owned[from->g->number]--;
	owned[to->g->number]++;
	from->moves = true;
	from->move = (struct cluster_step){ .done = moved };
	cluster_unit_yield(from->cu, to->session->store.id, &from->move);
	return true;
}

static unsigned moving(const struct fleet *f)
{
	unsigned n = 0;

	for (unsigned i = 0; i < f->size.units; i++)
		for (unsigned k = 0; k < FLEET_PATHS; k++)
			n += f->units[i].members[k]->moves;
	return n;
}

static struct figures balance(struct fleet *f)
{
	unsigned *owned = malloc(f->size.gateways * sizeof(*owned));
	xtime began = f->clock.now;
	bool more = true;

	if (!owned)
		abort();
	phase_begin(f);
	while (!f->wrong && more && f->clock.now < began + 600 * XTIME_S) {
		more = moving(f) > 0;
		for (unsigned i = 0; i < f->size.gateways; i++)
			owned[i] = fleet_owned(&f->gw[i]);
		for (unsigned n = moving(f); n < MOVES; n++)
			if (move_one(f, owned))
				more = true;
			else
				break;
		run_for(f, MOVE_STEP);
	}
	free(owned);
	return phase_end(f, "balanced by hand-overs", began);
}

static struct figures power_up(struct fleet *f)
{
	xtime began = f->clock.now;

	phase_begin(f);
	for (unsigned i = 0; i < f->size.gateways; i++)
		fleet_at(f,
			 began + (xtime)sim_random(&f->clock, 1000) * XTIME_MS,
			 start, &f->gw[i]);
	for (unsigned i = 0; i < f->size.initiators; i++)
		fleet_initiator_start(&f->ini[i], began);
	fleet_at(f, began + 10 * XTIME_S, reserve, f);
	run_for(f, 30 * XTIME_S);
	return phase_end(f, "start of all at once", began);
}

static struct figures upgrade(struct fleet *f)
{
	xtime began = f->clock.now;

	phase_begin(f);
	for (unsigned i = 0; !f->wrong && i < f->size.gateways; i++) {
		struct fleet_gateway *g = &f->gw[i];
		xtime limit = f->clock.now + 60 * XTIME_S;

		fleet_stop(g);
		while (g->power == FLEET_UP && f->clock.now < limit)
			run_for(f, 10 * XTIME_MS);
		if (g->power != FLEET_STOPPED)
			fleet_wrong(f, "a gateway does not end");
		run_for(f, RESTART);
		fleet_start(g);
		while (!fleet_stands_by(g) && f->clock.now < limit)
			run_for(f, 10 * XTIME_MS);
		if (!fleet_stands_by(g))
			fleet_wrong(f, "a gateway does not join again");
		/* an initiator may have to wait so long for its next login */
		run_for(f, RETURN_TIME);
	}
	return phase_end(f, "rolling upgrade", began);
}

static struct figures lose(struct fleet *f)
{
	xtime began = f->clock.now;

	phase_begin(f);
	for (unsigned i = 0; i < f->size.gateways / 3; i++)
		fleet_lose(&f->gw[i]);
	for (unsigned i = 0; i < f->size.units; i++)
		f->units[i].was_lost = !has_gateway(&f->units[i]);
	run_for(f, 160 * XTIME_S);
	return phase_end(f, "loss of a third of the gateways", began);
}

static struct figures come_back(struct fleet *f)
{
	xtime began = f->clock.now;

	phase_begin(f);
	for (unsigned i = 0; i < f->size.gateways / 3; i++)
		fleet_at(f,
			 began + (xtime)sim_random(&f->clock, 1000) * XTIME_MS,
			 start, &f->gw[i]);
	run_for(f, 40 * XTIME_S);
	return phase_end(f, "return of these gateways", began);
}

static void test_fleet(void **state)
{
	struct fleet_size size = {
		.gateways = number("FLEET_GATEWAYS", 20),
		.units = number("FLEET_UNITS", 100),
		.initiators = number("FLEET_INITIATORS", 1000),
		.servers = number("FLEET_SERVERS", 10),
	};
	static struct fleet f;

	(void)state;
	fleet_new(&f, size, number("FLEET_SEED", 1));
	power_up(&f);
	check_fleet(&f);
	balance(&f);
	check_fleet(&f);
	upgrade(&f);
	check_fleet(&f);
	balance(&f);
	check_fleet(&f);
	lose(&f);
	check_fleet(&f);
	come_back(&f);
	check_fleet(&f);
	for (unsigned i = 0; i < size.units; i++)
		f.units[i].was_lost = false;
	balance(&f);
	check_fleet(&f);
	fleet_free(&f);
	assert_null(f.wrong);
}

/* The oracle finds each mistake. */
static void test_mistakes(void **state)
{
	struct fleet_size size = {
		.gateways = 6, .units = 60, .initiators = 600, .servers = 2
	};
	static struct fleet f;

	(void)state;
	for (unsigned i = 1; i < FLEET_MISTAKES; i++) {
		fleet_new(&f, size, 1);
		f.mistake = (enum fleet_mistake)i;
		power_up(&f);
		for (unsigned turn = 0; !f.wrong && turn < 20; turn++) {
			balance(&f);
			upgrade(&f);
			check_fleet(&f);
		}
		fleet_free(&f);
		assert_non_null(f.wrong);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fleet),
		cmocka_unit_test(test_mistakes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
