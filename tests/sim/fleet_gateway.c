/* SPDX-License-Identifier: BSD-2-Clause */
/* fleet_gateway.c: the gateways of a fleet, and their units. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "sim/fleet.h"

static void step_done(struct cluster_step **s)
{
	struct cluster_step *step = *s;

	if (!step)
		return;
	*s = NULL;
	step->result = 0;
	step->done(step);
}

/* ---- the unit looks at what happened ---- */

static void member_ended(struct fleet_member *m);

static void tick(void *arg);

static void member_turn(struct fleet_member *m)
{
	struct fleet *f = m->u->f;
	xtime next;

	if (!m->cu)
		return;
	next = cluster_unit_tick(m->cu, f->clock.now);
	if (m->left) {
		member_ended(m);
	} else if (next < m->tick_at) {
		m->tick_at = next;
		fleet_at(f, next, tick, m);
	}
}

static void tick(void *arg)
{
	struct fleet_member *m = arg;

	/* else another tick came before this one, which is not wanted any more */
	if (m->tick_at != m->u->f->clock.now)
		return;
	m->tick_at = XTIME_NEVER;
	member_turn(m);
}

static void woken(void *arg)
{
	struct fleet_member *m = arg;

	m->woken = false;
	member_turn(m);
}

void fleet_turn(struct fleet_member *m)
{
	if (m->woken)
		return;
	m->woken = true;
	fleet_at(m->u->f, m->u->f->clock.now, woken, m);
}

/* ---- what the unit asks of the gateway ---- */

static void do_wake(void *arg)
{
	fleet_turn(arg);
}

static void do_say(void *arg, const char *sentence)
{
	const struct fleet_member *m = arg;

	if (getenv("FLEET_LOG"))
		printf("%10.3f gw-%u, unit %u: %s\n",
		       (double)m->u->f->clock.now / 1e9, m->g->number,
		       m->u->number, sentence);
}

static void do_access(void *arg, enum cluster_access a, struct cluster_step *s)
{
	struct fleet_member *m = arg;

	m->access = a;
	m->access_step = s;
	if (a == CLUSTER_OPTIMIZED || a == CLUSTER_STANDBY ||
	    m->in_progress == 0 || m->u->f->mistake == FLEET_DRAIN)
		step_done(&m->access_step);
}

static void do_gateways(void *arg, const struct cluster_record *r)
{
	(void)arg;
	(void)r;
}

static void do_adopt(void *arg, const struct cluster_record *r, uint64_t since,
		     struct cluster_step *s)
{
	struct fleet_member *m = arg;

	(void)since;
	if (r->parts[CLUSTER_RESERVATIONS].len == sizeof(m->serial) &&
	    m->u->f->mistake != FLEET_ADOPT)
		memcpy(&m->serial, r->parts[CLUSTER_RESERVATIONS].data,
		       sizeof(m->serial));
	s->result = 0;
	s->done(s);
}

static void drop_end(void *arg)
{
	struct fleet_member *m = arg;

	if (!m->cu || !m->drop_step)
		return;
	m->session->store.ops->close(&m->session->store);
	m->session = fleet_open(m);
	cluster_unit_reopened(m->cu, &m->session->store);
	step_done(&m->drop_step);
}

/* All commands and sessions of the unit end without an answer. */
static void do_drop(void *arg, struct cluster_step *s)
{
	struct fleet_member *m = arg;
	struct fleet *f = m->u->f;

	m->drop_step = s;
	m->drops++;
	m->in_progress = 0;
	step_done(&m->access_step);
	fleet_at(f, f->clock.now + REOPEN, drop_end, m);
}

/* ---- processes ---- */

static void member_start(struct fleet_member *m, uint64_t run)
{
	static const struct cluster_unit_ops ops = { .access = do_access,
						     .gateways = do_gateways,
						     .adopt = do_adopt,
						     .drop = do_drop,
						     .say = do_say,
						     .wake = do_wake };
	struct cluster_unit_config cfg = { .run = run,
					   .failover = true,
					   .beacon = XTIME_S,
					   .silence = 5 * XTIME_S,
					   .patience = 5 * XTIME_S };
	struct fleet *f = m->u->f;
	unsigned k = 0;

	while (m->u->members[k] != m)
		k++;
	m->session = fleet_open(m);
	strcpy(cfg.self.id, m->session->store.id);
	cfg.self.number = (uint16_t)(k + 1);
	cfg.self.nports = 1;
	cfg.self.ports[0] = (uint16_t)(k + 1);
	cfg.self.nportals = 1;
	snprintf(cfg.self.portals[0], sizeof(cfg.self.portals[0]),
		 "10.0.%u.1:3260,%u", m->g->number, k + 1);
	m->ops = ops;
	m->ops.arg = m;
	m->access = CLUSTER_UNAVAILABLE;
	m->tick_at = XTIME_NEVER;
	m->in_progress = 0;
	m->serial = 0;
	m->left = m->moves = false;
	m->access_step = m->drop_step = NULL;
	m->cu = cluster_unit_new(&cfg, &m->ops, &m->session->store,
				 f->clock.now);
	if (!m->cu)
		abort();
	fleet_turn(m);
}

void fleet_start(struct fleet_gateway *g)
{
	g->power = FLEET_UP;
	g->client++;
	g->free = g->f->clock.now;
	for (unsigned i = 0; i < g->nmembers; i++)
		member_start(g->members[i],
			     ((uint64_t)g->number << 32) + g->life);
}

/* The process ends when its last unit has left. */
static void member_ended(struct fleet_member *m)
{
	struct fleet_gateway *g = m->g;

	fleet_reserve_gone(m);
	m->session->store.ops->close(&m->session->store);
	cluster_unit_free(m->cu);
	m->cu = NULL;
	m->access = CLUSTER_UNAVAILABLE;
	for (unsigned i = 0; i < g->nmembers; i++)
		if (g->members[i]->cu)
			return;
	g->power = FLEET_STOPPED;
	g->life++;
}

static void left(struct cluster_step *s)
{
	container_of(s, struct fleet_member, leave)->left = true;
}

void fleet_stop(struct fleet_gateway *g)
{
	for (unsigned i = 0; i < g->nmembers; i++) {
		struct fleet_member *m = g->members[i];

		m->leave = (struct cluster_step){ .done = left };
		cluster_unit_leave(m->cu, &m->leave);
	}
}

void fleet_lose(struct fleet_gateway *g)
{
	for (unsigned i = 0; i < g->nmembers; i++) {
		struct fleet_member *m = g->members[i];

		fleet_reserve_gone(m);
		fleet_lost(m->session);
		cluster_unit_free(m->cu);
		m->cu = NULL;
		m->access = CLUSTER_UNAVAILABLE;
		m->in_progress = 0;
	}
	g->power = FLEET_LOST;
	g->life++;
}

/* ---- questions ---- */

enum cluster_role fleet_role(const struct fleet_member *m)
{
	struct cluster_status st = { .role = CLUSTER_JOINING };

	if (m->cu)
		cluster_unit_status(m->cu, &st);
	return st.role;
}

bool fleet_stands_by(const struct fleet_gateway *g)
{
	for (unsigned i = 0; i < g->nmembers; i++) {
		enum cluster_role role = fleet_role(g->members[i]);

		if (role != CLUSTER_STANDING_BY && role != CLUSTER_OWNER)
			return false;
	}
	return g->power == FLEET_UP;
}

unsigned fleet_owned(const struct fleet_gateway *g)
{
	unsigned n = 0;

	for (unsigned i = 0; i < g->nmembers; i++)
		n += fleet_role(g->members[i]) == CLUSTER_OWNER;
	return n;
}
