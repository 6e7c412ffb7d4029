/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fleet_initiator.c: the initiators of a fleet, which do what libiser does with its
 * default settings: a session on each path; a check of each path every 5 s, after a
 * refusal, and 25 ms to a second after the last one while no path carries commands; a new
 * login at once after a loss, then 0.1 to 5 s after each failed attempt; a connection that
 * is silent is tested after 5 s and lost after 10 more. A write that was lost waits for
 * the end of its session, or until another path reports that the target port moves no
 * data; a read goes to another path at once.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "sim/fleet.h"

#define PACE	    XTIME_S /* between two commands of an initiator */
#define CHECK_TIME  (5 * XTIME_S)
#define DARK_TIME   (25 * XTIME_MS)
#define DARK_MAX    XTIME_S
#define AGAIN_TIME  (100 * XTIME_MS) /* after a refusal */
#define BACKOFF_MIN (100 * XTIME_MS)
#define BACKOFF_MAX (5 * XTIME_S)
#define LOGIN_TIME  (15 * XTIME_S)
#define SILENCE	    (15 * XTIME_S) /* until the connection is lost */
#define REPLACEMENT (120 * XTIME_S)

static void issue(struct fleet_initiator *i);
static void login(void *arg);
static void check_soon(struct fleet_initiator *i, xtime in);

static xtime now_of(const struct fleet_initiator *i)
{
	return i->f->clock.now;
}

static unsigned index_of(const struct fleet_path *p)
{
	return (unsigned)(p - p->i->paths);
}

/* ---- paths ---- */

static void path_set(struct fleet_path *p, enum fleet_path_state state,
		     uint8_t access)
{
	struct fleet_initiator *i = p->i;
	struct lib_candidate *c = &i->seen[index_of(p)];

	p->state = state;
	c->is_ready = state == FLEET_READY || state == FLEET_SILENT;
	c->access = access;
	c->depth = 32;
	lib_policy_update(&i->policy, i->seen, FLEET_PATHS);
}

static uint8_t access_of(const struct fleet_member *m)
{
	switch (m->access) {
	case CLUSTER_OPTIMIZED:
		return LIB_OPTIMIZED;
	case CLUSTER_STANDBY:
		return LIB_STANDBY;
	case CLUSTER_TRANSITIONING:
		return LIB_TRANSITIONING;
	default:
		return LIB_UNAVAILABLE;
	}
}

/* Whether the session of the path still is there at the gateway. */
static bool is_there(const struct fleet_path *p)
{
	const struct fleet_gateway *g = p->m->g;

	return g->power == FLEET_UP && p->life == g->life &&
	       p->drops == p->m->drops;
}

static xtime backoff(const struct fleet_path *p)
{
	xtime d = BACKOFF_MIN << MIN(p->attempts - 1, 6u);

	return MIN(d, BACKOFF_MAX);
}

static void path_lost(struct fleet_path *p)
{
	path_set(p, FLEET_DOWN, LIB_UNAVAILABLE);
	p->attempts = 0;
	fleet_at(p->i->f, now_of(p->i) + NET_TIME, login, p);
}

/* The lost command is issued again. */
static void release(struct fleet_path *p)
{
	if (p->i->stuck == p)
		p->i->stuck = NULL;
	issue(p->i);
}

static void replacement_over(void *arg)
{
	struct fleet_path *p = arg;

	if (now_of(p->i) >= p->i->stuck_since + REPLACEMENT)
		release(p);
}

/* A write would undo a later one if the target still had it. */
static void wait_for_end(struct fleet_path *p)
{
	struct fleet_initiator *i = p->i;

	if (!i->writes) {
		release(p);
		return;
	}
	i->stuck_since = now_of(i);
	fleet_at(i->f, i->stuck_since + REPLACEMENT, replacement_over, p);
}

static void silence_over(void *arg)
{
	struct fleet_path *p = arg;

	if (p->state != FLEET_SILENT || now_of(p->i) < p->silent + SILENCE)
		return;
	path_lost(p);
	if (p->i->stuck == p)
		wait_for_end(p);
	check_soon(p->i, NET_TIME);
}

/* Nothing comes back from a machine that is gone; a machine without the process resets
 * the connection. */
static void path_look(struct fleet_path *p)
{
	struct fleet_initiator *i = p->i;

	if (p->state != FLEET_READY || is_there(p))
		return;
	if (p->m->g->power == FLEET_LOST) {
		p->state = FLEET_SILENT;
		p->silent = now_of(i);
		fleet_at(i->f, now_of(i) + SILENCE, silence_over, p);
	} else {
		path_lost(p);
	}
}

static void logged_in(void *arg)
{
	struct fleet_path *p = arg;

	if (p->m->g->power != FLEET_UP || p->m->g->life != p->life) {
		path_set(p, FLEET_READY, LIB_UNAVAILABLE);
		path_look(p);
		return;
	}
	p->drops = p->m->drops;
	path_set(p, FLEET_READY, access_of(p->m));
	/* the lost session has ended */
	release(p);
}

static void login(void *arg)
{
	struct fleet_path *p = arg;
	struct fleet_gateway *g = p->m->g;
	struct fleet *f = g->f;
	xtime now = f->clock.now;

	if (p->state == FLEET_READY || p->state == FLEET_SILENT)
		return;
	p->state = FLEET_LOGIN;
	if (g->power == FLEET_UP) {
		p->life = g->life;
		g->free = MAX(g->free, now) + LOGIN_BUSY;
		g->worst = MAX(g->worst, g->free - now);
		fleet_count(&g->logins, now, 1);
		fleet_count(&f->logins, now, 1);
		fleet_at(f, g->free + 4 * NET_TIME, logged_in, p);
		return;
	}
	p->attempts++;
	if (g->power == FLEET_STOPPED) {
		/* a portal that refuses connections executes nothing */
		fleet_at(f, now + 2 * NET_TIME + backoff(p), login, p);
		release(p);
	} else {
		fleet_at(f, now + LOGIN_TIME + backoff(p), login, p);
	}
}

/* ---- checks of the paths ---- */

static xtime next_check(struct fleet_initiator *i, bool carries)
{
	xtime pause = DARK_TIME << MIN(i->checks, 6u);

	if (carries)
		return CHECK_TIME;
	i->checks++;
	return MIN(pause, DARK_MAX);
}

/* The owner reports that the port of the lost session stands by. */
static void look_for_others(struct fleet_path *p)
{
	const struct fleet_initiator *i = p->i;

	for (unsigned k = 0; k < FLEET_PATHS; k++)
		if (p->state != FLEET_READY && p->state != FLEET_SILENT &&
		    i->paths[k].state == FLEET_READY &&
		    i->seen[k].access == LIB_OPTIMIZED) {
			release(p);
			return;
		}
}

static void check(void *arg)
{
	struct fleet_initiator *i = arg;
	bool carries = false;

	if (i->check_at != now_of(i))
		return;
	for (unsigned k = 0; k < FLEET_PATHS; k++) {
		struct fleet_path *p = &i->paths[k];

		path_look(p);
		if (p->state == FLEET_READY) {
			/* REPORT TARGET PORT GROUPS, TEST UNIT READY */
			fleet_count(&i->f->checks, now_of(i), 2);
			path_set(p, FLEET_READY, access_of(p->m));
		}
	}
	for (unsigned k = 0; k < FLEET_PATHS; k++)
		carries |= lib_path_rank(&i->seen[k]) > 0;
	i->check_at = now_of(i) + next_check(i, carries);
	fleet_at(i->f, i->check_at, check, i);
	if (i->stuck)
		look_for_others(i->stuck);
	issue(i);
}

static void check_soon(struct fleet_initiator *i, xtime in)
{
	if (i->check_at <= now_of(i) + in)
		return;
	i->check_at = now_of(i) + in;
	fleet_at(i->f, i->check_at, check, i);
}

/* ---- commands ---- */

static void want(void *arg)
{
	struct fleet_initiator *i = arg;

	i->wants = true;
	i->writes = !i->writes;
	i->since = now_of(i);
	issue(i);
}

static void done(struct fleet_initiator *i)
{
	xtime took = now_of(i) - i->since;

	i->wants = false;
	i->done++;
	if (i->writes)
		i->worst_write = MAX(i->worst_write, took);
	else
		i->worst_read = MAX(i->worst_read, took);
	fleet_at(i->f, now_of(i) + PACE, want, i);
}

/* The command did not end because its session is lost. */
static void command_lost(struct fleet_command *c)
{
	struct fleet_path *p = c->path;

	fleet_object_free(c);
	p->i->busy = false;
	p->i->stuck = p;
	path_look(p);
	if (p->state != FLEET_SILENT)
		wait_for_end(p);
}

static void command_answered(void *arg)
{
	struct fleet_command *c = arg;
	struct fleet_member *m = c->path->m;
	struct fleet_initiator *i = c->i;

	if (c->drops == m->drops && c->life == m->g->life &&
	    m->in_progress > 0 && --m->in_progress == 0 && m->access_step) {
		struct cluster_step *s = m->access_step;

		m->access_step = NULL;
		s->result = 0;
		s->done(s);
	}
	fleet_object_free(c);
	i->busy = false;
	done(i);
}

/* The command reaches the data. */
static void command_executed(void *arg)
{
	struct fleet_command *c = arg;
	struct fleet_member *m = c->path->m;
	struct fleet *f = c->i->f;

	if (c->drops != m->drops || c->life != m->g->life ||
	    c->session != m->session) {
		command_lost(c);
		return;
	}
	if (fleet_is_fenced(c->session)) {
		f->rejected++;
		cluster_unit_fenced(m->cu);
		command_lost(c);
		return;
	}
	if (m->u->holder != c->session)
		fleet_wrong(f,
			    "a unit is executed by a gateway without the lock");
	if (m->serial < c->floor)
		fleet_wrong(f, "a command sees reservations that are too old");
	f->executed++;
	command_answered(c);
}

static void command_arrived(void *arg)
{
	struct fleet_command *c = arg;
	struct fleet_member *m = c->path->m;
	struct fleet_initiator *i = c->i;

	if (!is_there(c->path)) {
		command_lost(c);
		return;
	}
	if (m->access != CLUSTER_OPTIMIZED) {
		/* NOT READY */
		i->f->refused++;
		i->busy = false;
		path_set(c->path, FLEET_READY, access_of(m));
		fleet_object_free(c);
		check_soon(i, AGAIN_TIME);
		issue(i);
		return;
	}
	c->session = m->session;
	c->life = m->g->life;
	c->drops = m->drops;
	m->in_progress++;
	fleet_at(i->f, now_of(i) + (i->done % 8 ? COMMAND_TIME : LONG_COMMAND),
		 command_executed, c);
}

static void issue(struct fleet_initiator *i)
{
	struct fleet_command *c;
	int k;

	if (!i->wants || i->stuck || i->busy)
		return;
	k = lib_policy_choose(&i->policy, i->seen, FLEET_PATHS);
	if (k < 0) {
		if (!i->dark) {
			i->checks = 0;
			check_soon(i, NET_TIME);
		}
		i->dark = true;
		return;
	}
	i->dark = false;
	c = fleet_object(i->f, sizeof(*c));
	c->i = i;
	c->path = &i->paths[k];
	c->floor = i->u->acked;
	i->busy = true;
	fleet_at(i->f, now_of(i) + NET_TIME, command_arrived, c);
}

/* ---- reservations ---- */

static void reserve_end(struct fleet_initiator *i)
{
	i->through = NULL;
}

static void refresh_done(struct cluster_step *s);

static void refresh(struct fleet_initiator *i)
{
	i->refresh = (struct cluster_step){ .done = refresh_done };
	cluster_unit_refresh(i->through->cu, &i->refresh);
}

static void save_done(struct cluster_save *s)
{
	struct fleet_initiator *i =
		container_of(s, struct fleet_initiator, save);

	if (s->result == ERR_AGAIN) {
		refresh(i);
		return;
	}
	if (s->result == 0) {
		i->through->serial = MAX(i->through->serial, i->draft);
		i->u->acked = MAX(i->u->acked, i->draft);
		i->f->reserved++;
	}
	reserve_end(i);
}

static void refresh_done(struct cluster_step *s)
{
	struct fleet_initiator *i =
		container_of(s, struct fleet_initiator, refresh);

	if (s->result) {
		reserve_end(i);
		return;
	}
	i->draft = i->through->serial + 1;
	i->save = (struct cluster_save){ .done = save_done,
					 .part = CLUSTER_RESERVATIONS,
					 .data = (const uint8_t *)&i->draft,
					 .len = sizeof(i->draft),
					 .event = (const uint8_t *)&i->draft,
					 .event_len = sizeof(i->draft) };
	cluster_unit_save(i->through->cu, &i->save);
}

void fleet_reserve(struct fleet_initiator *i)
{
	struct fleet_path *p = &i->paths[sim_random(&i->f->clock, FLEET_PATHS)];

	if (i->through || p->state != FLEET_READY || !is_there(p) ||
	    p->m->access == CLUSTER_UNAVAILABLE ||
	    p->m->access == CLUSTER_TRANSITIONING)
		return;
	i->through = p->m;
	refresh(i);
}

void fleet_reserve_gone(struct fleet_member *m)
{
	struct fleet *f = m->u->f;

	for (unsigned k = m->u->number; k < f->size.initiators;
	     k += f->size.units)
		if (f->ini[k].through == m)
			reserve_end(&f->ini[k]);
}

/* Initiators do not do the same at the same time. */
static xtime spread(struct fleet *f)
{
	return (xtime)sim_random(&f->clock, 1000 * 1000) * XTIME_US;
}

void fleet_initiator_start(struct fleet_initiator *i, xtime at)
{
	i->check_at = XTIME_NEVER;
	for (unsigned k = 0; k < FLEET_PATHS; k++) {
		i->paths[k].i = i;
		i->paths[k].m = i->u->members[k];
		i->seen[k].depth = 32;
		fleet_at(i->f, at, login, &i->paths[k]);
	}
	i->check_at = at + CHECK_TIME + spread(i->f);
	fleet_at(i->f, i->check_at, check, i);
	fleet_at(i->f, at + spread(i->f), want, i);
}
