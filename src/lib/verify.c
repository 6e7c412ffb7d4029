/* SPDX-License-Identifier: BSD-2-Clause */
/* verify.c: asks the units of a session of one path who they are (guard.h), one unit at a
 * time. */
#include <stdlib.h>

#include "lib/internal.h"

/* ---- the answer ---- */

/* Returns what the unit must be: of a unit that was not asked before, the caller knows
 * the size at most. */
static struct lib_who known(const struct lib_guarded *g,
			    const struct lib_who *now)
{
	struct lib_who was = *now;

	if (g->has_who)
		return g->who;
	was.has_capacity = g->who.has_capacity;
	was.capacity = g->who.capacity;
	return was;
}

/* Returns whether the unit is the right one; else g->why says why not. */
static bool is_right(struct lib_guarded *g, const struct lib_who *now)
{
	const struct lib_who was = known(g, now);
	unsigned size = g->is_new_medium ? LIB_SIZE : 0;

	return !lib_who_check(&was, now, LIB_WEAK | LIB_GROWTH | size, g->why,
			      sizeof(g->why));
}

static void refuse_unit(struct iser_session *s, struct lib_guarded *g)
{
	lib_guard_refusal(s, g);
	trace_emit(&s->ctx->trace, TRACE_PROTOCOL, "%s", iser_message(s->ctx));
	lib_hold_refuse(s, g);
}

/* A connection on which the unit does not answer is lost. */
static void lose_connection(struct iser_session *s, struct lib_guarded *g)
{
	if (g->state == GUARD_UNSURE)
		lib_guard_go(s, g, GUARD_NEW);
	if (s->ini && ini_is_up(s->ini))
		ini_kill(s->ini, ERR_TIMEOUT);
}

static void take_answer(struct iser_session *s, struct lib_guarded *g,
			const struct lib_ask *a, int err)
{
	if (err && lib_ask_is_lost(err)) {
		lose_connection(s, g);
	} else if (err) {
		lib_hold_fail(s, g, &a->failed);
	} else if (!is_right(g, &a->who)) {
		refuse_unit(s, g);
	} else if (a->capacity_err) {
		lib_hold_fail(s, g, &a->failed);
	} else {
		g->who = a->who;
		g->has_who = true;
		lib_hold_open(s, g);
	}
}

static void on_asked(struct lib_ask *a, int err)
{
	struct iser_session *s = a->session;

	s->guard.is_asking = false;
	take_answer(s, lib_guard_find(s, a->lun), a, err);
	io_loop_defer(s->ctx->loop, &s->guard.due); /* the next LUN */
}

/* ---- the question ---- */

static struct lib_guarded *first_unsure(const struct iser_session *s)
{
	struct lib_guarded *g = s->guard.luns;

	while (g && g->state != GUARD_UNSURE)
		g = g->next;
	return g;
}

/* Ends the commands that the queue has for LUNs that are refused. */
static void refuse_queue(struct iser_session *s)
{
	for (struct lib_guarded *g = s->guard.luns; g; g = g->next) {
		if (g->state != GUARD_REFUSED)
			continue;
		lib_guard_refusal(s, g);
		lib_hold_refuse(s, g);
	}
}

static const struct iser_io no_memory = { .err = ISER_E_NOMEM };

static void on_due(struct io_defer *d)
{
	struct iser_session *s =
		container_of(d, struct iser_session, guard.due);
	struct lib_guarded *g = first_unsure(s);

	refuse_queue(s);
	if (!g || s->guard.is_asking)
		return;
	/* lib_hold_resume asks after the login */
	if (s->state != SESSION_UP || !s->ini || !ini_is_up(s->ini)) {
		lib_guard_go(s, g, GUARD_NEW);
		io_loop_defer(s->ctx->loop, d);
		return;
	}
	if (!s->guard.query)
		s->guard.query = malloc(sizeof(*s->guard.query));
	if (!s->guard.query) {
		lib_hold_fail(s, g, &no_memory);
		return;
	}
	*s->guard.query = (struct lib_ask){ .session = s,
					    .lun = g->lun,
					    .submit = lib_io_ask,
					    .done = on_asked };
	s->guard.is_asking = true;
	lib_ask_begin(s->guard.query);
}

static void ask_soon(struct iser_session *s, struct lib_guarded *g)
{
	if (!g)
		lib_io_fail_queue(s, ISER_E_NOMEM);
	io_loop_defer(s->ctx->loop, &s->guard.due);
}

void lib_verify_init(struct iser_session *s)
{
	s->guard.ask = ask_soon;
	s->guard.due.run = on_due;
	list_init(&s->guard.due.link);
}
