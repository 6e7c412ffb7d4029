/* SPDX-License-Identifier: BSD-2-Clause */
/* drain.c: targets that admit no new session. */
#include "daemon/apply/drain.h"

#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "daemon/apply/apply.h"
#include "daemon/daemon.h"

static bool is_listed(const struct drain *s, const char *target, unsigned *at)
{
	for (*at = 0; *at < s->n; ++*at)
		if (!strcmp(s->targets[*at], target))
			return true;
	return false;
}

bool drain_has(const struct daemon *d, const char *target)
{
	unsigned at;

	return d->changes.drain.all ||
	       is_listed(&d->changes.drain, target, &at);
}

static void free_list(struct drain *s)
{
	for (unsigned i = 0; i < s->n; i++)
		free(s->targets[i]);
	free(s->targets);
}

static void remove_at(struct drain *s, unsigned at)
{
	free(s->targets[at]);
	s->targets[at] = s->targets[--s->n];
}

/* False: no memory. */
static bool add(struct drain *s, const char *target)
{
	char **more = reallocarray(s->targets, s->n + 1, sizeof(char *));

	if (!more)
		return false;
	s->targets = more;
	more[s->n] = strdup(target);
	return more[s->n] && ++s->n;
}

static const char *name_of(const struct cfg_model *m, const char *target)
{
	for (unsigned i = 0; i < m->targets.n; i++)
		if (!strcmp(m->targets.v[i].name, target) ||
		    !strcmp(m->targets.v[i].head.name, target))
			return m->targets.v[i].name;
	return NULL;
}

static void no_target(const struct daemon *d, const char *target,
		      struct cfg_errors *e)
{
	struct nearest near;

	nearest_begin(&near, target);
	for (unsigned i = 0; i < d->model->targets.n; i++)
		nearest_try(&near, d->model->targets.v[i].name);
	if (near.best)
		cfg_error(e, (struct cfg_place){ 0 },
			  "target %.230s: no such target; did you mean %.230s?",
			  target, near.best);
	else
		cfg_error(e, (struct cfg_place){ 0 },
			  "target %.230s: no such target; iserctl target list "
			  "lists them",
			  target);
}

/* Changes the list. False: e has the reason. */
static bool change(struct daemon *d, const char *target, bool on,
		   struct cfg_errors *e)
{
	struct drain *s = &d->changes.drain;
	unsigned at;

	if (!target) { /* the caller frees the list */
		*s = (struct drain){ .all = on,
				     .targets = on ? s->targets : NULL,
				     .n = on ? s->n : 0 };
		return true;
	}
	if (s->all && !on) {
		cfg_error(e, (struct cfg_place){ 0 },
			  "target %.230s: all targets drain; iserctl drain "
			  "state=off ends that",
			  target);
		return false;
	}
	if (is_listed(s, target, &at) && !on)
		remove_at(s, at);
	else if (at == s->n && on && !add(s, target))
		cfg_error(e, (struct cfg_place){ 0 }, "out of memory");
	return !e->n;
}

bool drain_set(struct daemon *d, const char *target, bool on,
	       struct cfg_errors *e, void (*done)(void *arg), void *arg)
{
	const struct tgt_apply_events events = { .done = done, .arg = arg };
	const char *name = target ? name_of(d->model, target) : NULL;
	bool was_on = name && drain_has(d, name);
	struct drain before = d->changes.drain;

	if (target && !name)
		no_target(d, target, e);
	if (e->n || !change(d, name, on, e))
		return false;
	if (!apply_directory(d, e, &events)) {
		if (!name)
			d->changes.drain = before;
		else if (was_on != on)
			(void)change(d, name, was_on, e);
		return false;
	}
	if (!name && !on)
		free_list(&before);
	trace_emit(&d->log.trace, TRACE_CHANGE, "%s%s: %s",
		   name ? "target " : "all targets", name ? name : "",
		   on ? "no new sessions (drain)" : "new sessions again");
	return true;
}

void drain_forget(struct daemon *d, const struct cfg_model *m)
{
	struct drain *s = &d->changes.drain;

	for (unsigned i = s->n; i--;)
		if (!name_of(m, s->targets[i]))
			remove_at(s, i);
}

void drain_free(struct daemon *d)
{
	free_list(&d->changes.drain);
}
