/* SPDX-License-Identifier: BSD-2-Clause */
/* calls.c: what a set of paths does for the calls that take a session, and the
 * public calls for paths. */
#include "lib/path/calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "lib/path/path.h"

/* ---- queries ---- */

static bool set_is_connected(const struct iser_session *s)
{
	const struct lib_paths *set = lib_paths_of(s);

	return set->any_ready && !set->gave_up && !set->is_ending;
}

static bool may_be_iser(const struct iser_session *s)
{
	const struct lib_paths *set = lib_paths_of(s);

	for (unsigned i = 0; i < set->n; i++)
		if (strcmp(set->paths[i].url.transport, "tcp") != 0)
			return true;
	return false;
}

static struct iser_session *current(const struct iser_session *s)
{
	const struct lib_paths *set = lib_paths_of(s);
	struct iser_session *any = NULL;

	for (unsigned i = 0; i < set->n; i++) {
		if (set->paths[i].state != PATH_READY)
			continue;
		if (lib_policy_is_used(&set->policy, set->seen, set->n, i))
			return set->paths[i].session;
		any = set->paths[i].session;
	}
	return any;
}

static const struct lib_who *who_of_set(const struct iser_session *s)
{
	const struct lib_paths *set = lib_paths_of(s);

	return set->has_who ? &set->who : NULL;
}

static void add_counters(const struct iser_session *s, struct iser_counters *c)
{
	const struct lib_paths *set = lib_paths_of(s);

	for (unsigned i = 0; i < set->n; i++) {
		struct iser_counters one;

		c->reconnects += set->paths[i].losses;
		if (!set->paths[i].session)
			continue;
		iser_get_counters(set->paths[i].session, &one);
		c->rx_bytes += one.rx_bytes;
		c->tx_bytes += one.tx_bytes;
		c->rx_calls += one.rx_calls;
		c->tx_calls += one.tx_calls;
		c->copied_bytes += one.copied_bytes;
	}
}

/* ---- task management ---- */

/* One function, on one path or on all of them. */
struct management {
	unsigned left;
	int err; /* the first failure */
	void (*done)(void *arg, int err);
	void *arg;
};

static void on_managed(void *arg, int err)
{
	struct management *m = arg;
	struct management copy;

	if (err && !m->err)
		m->err = err;
	if (--m->left)
		return;
	copy = *m;
	free(m);
	copy.done(copy.arg, copy.err);
}

/* These functions concern the commands of one nexus, which is one path. */
static bool is_of_nexus(enum iser_function f)
{
	return f == ISER_ABORT_TASK_SET || f == ISER_QUERY_TASK_SET ||
	       f == ISER_I_T_NEXUS_RESET;
}

static int manage_path(struct management *m, struct iser_session *s,
		       enum iser_function f, int lun)
{
	int err;

	m->left++;
	err = iser_manage_tasks_start(s, f, lun, on_managed, m);
	if (err)
		m->left--;
	return err;
}

static int manage(struct iser_session *s, enum iser_function f, int lun,
		  void (*done)(void *arg, int err), void *arg)
{
	struct lib_paths *set = lib_paths_of(s);
	struct iser_session *now = current(s);
	struct management *m;
	int err = 0;

	if (!now)
		return lib_fail(s->ctx, ISER_E_NO_PATH,
				"task management: no path is logged in");
	if (lun != set->lun)
		return lib_fail(s->ctx, ISER_E_INVALID,
				"LUN %d: the paths of this session lead to LUN "
				"%d alone",
				lun, set->lun);
	m = calloc(1, sizeof(*m));
	if (!m)
		return lib_fail(s->ctx, ISER_E_NOMEM, "out of memory");
	m->done = done;
	m->arg = arg;
	for (unsigned i = 0; i < set->n; i++) {
		struct lib_path *p = &set->paths[i];
		int e;

		if (p->state != PATH_READY ||
		    (!is_of_nexus(f) && p->session != now))
			continue;
		e = manage_path(m, p->session, f, p->url.lun);
		err = err ? err : e;
	}
	if (m->left) {
		m->err = m->err ? m->err : err;
		return 0;
	}
	free(m);
	return err;
}

static const struct lib_set_ops set_ops = {
	.submit = lib_paths_submit,
	.abort = lib_paths_abort,
	.is_connected = set_is_connected,
	.may_be_iser = may_be_iser,
	.current = current,
	.who = who_of_set,
	.add_counters = add_counters,
	.manage = manage,
	.end = lib_paths_end,
	.is_ended = lib_paths_is_ended,
	.free = lib_paths_free,
};

/* ---- connecting ---- */

static int check_urls(struct iser_context *ctx, const struct iser_url *urls,
		      unsigned n)
{
	if (!n || n > ISER_PATHS_MAX)
		return lib_fail(ctx, ISER_E_INVALID,
				"%u paths: expected 1 to %u", n,
				ISER_PATHS_MAX);
	for (unsigned i = 0; i < n; i++) {
		if (!lib_url_unused(&urls[i]))
			return lib_fail(ctx, ISER_E_INVALID,
					"struct iser_url: a reserved member is "
					"not 0; zero the struct before filling "
					"it in");
		if (n > 1 && urls[i].paths[0])
			return lib_fail(ctx, ISER_E_INVALID,
					"paths=all: give one URL, not %u", n);
		if (urls[i].lun < 0 || !urls[i].target[0])
			return lib_fail(ctx, ISER_E_INVALID,
					"path %u: the URL has to name a target "
					"and a LUN",
					i);
	}
	return 0;
}

struct iser_session *
lib_paths_connect(struct iser_context *ctx, const struct iser_url *urls,
		  unsigned n,
		  void (*done)(void *arg, struct iser_session *s, int err),
		  void *arg, int *err)
{
	*err = check_urls(ctx, urls, n);
	return *err ? NULL
		    : lib_paths_start(ctx, urls, n, &set_ops, done, arg, err);
}

/* ---- the public calls ---- */

static enum iser_path_state public_state(const struct lib_path *p)
{
	switch (p->state) {
	case PATH_LOGIN:
		return ISER_PATH_LOGIN;
	case PATH_CHECK:
		return ISER_PATH_CHECK;
	case PATH_READY:
		return ISER_PATH_READY;
	case PATH_DOWN:
	case PATH_LOST:
	case PATH_FENCE:
		break;
	}
	return ISER_PATH_DOWN;
}

int iser_get_path(const struct iser_session *s, unsigned number,
		  struct iser_path *path)
{
	const struct lib_paths *set = s->set ? lib_paths_of(s) : NULL;
	const struct lib_candidate *c;
	const struct lib_path *p;
	char portal[264];

	memset(path, 0, sizeof(*path));
	if (!set || number >= set->n)
		return ISER_E_NOT_FOUND;
	p = &set->paths[number];
	c = &set->seen[number];
	snprintf(portal, sizeof(portal),
		 strchr(p->url.host, ':') ? "[%s]:%u" : "%s:%u", p->url.host,
		 p->url.port);
	text_escape_str(path->portal, sizeof(path->portal), portal);
	text_escape_str(path->target, sizeof(path->target), p->url.target);
	text_escape_str(path->reason, sizeof(path->reason), p->reason);
	path->lun = p->url.lun;
	path->state = public_state(p);
	path->access = c->access;
	path->preferred = c->preferred;
	path->is_used =
		lib_policy_is_used(&set->policy, set->seen, set->n, number);
	path->group = p->port.group;
	path->port = p->port.port;
	path->in_progress = c->in_progress;
	path->commands = p->commands;
	path->losses = p->losses;
	path->err = p->err;
	return 0;
}

int iser_fail_back(struct iser_session *s)
{
	struct lib_paths *set = s->set ? lib_paths_of(s) : NULL;

	if (!set)
		return lib_fail(s->ctx, ISER_E_INVALID,
				"%s at %s:%u: the session has one path",
				s->url.target, s->url.host, s->url.port);
	lib_policy_fail_back(set->seen, set->n);
	lib_paths_changed(set);
	return 0;
}
