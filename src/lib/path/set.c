/* SPDX-License-Identifier: BSD-2-Clause */
/* set.c: making and ending a set of paths; the portals of paths=all. */
#include <stdlib.h>
#include <string.h>

#include "lib/path/path.h"

/* ---- the result of connecting ---- */

static void report(struct lib_paths *set, int err)
{
	struct iser_session *s = set->session;
	void (*fn)(void *, struct iser_session *, int) = s->connected;

	set->is_reported = true;
	for (unsigned i = 0; set->may_set && i < set->n; i++)
		lib_check_soon(&set->paths[i], false);
	io_timer_clear(set->ctx->loop, &set->patience);
	s->connected = NULL;
	if (fn)
		fn(s->connected_arg, s, err);
}

/* Ends an attempt to connect of which no path is left. */
static void report_failure(struct lib_paths *set, int err)
{
	for (unsigned i = 0; i < set->n; i++)
		lib_link_end(&set->paths[i]);
	report(set, err);
}

static const struct lib_path *find_wrong(const struct lib_paths *set)
{
	for (unsigned i = 0; i < set->n; i++)
		if (set->paths[i].is_wrong)
			return &set->paths[i];
	return NULL;
}

static bool all_tried(const struct lib_paths *set)
{
	for (unsigned i = 0; i < set->n; i++)
		if (!set->paths[i].was_tried)
			return false;
	return true;
}

static void fail_connect(struct lib_paths *set)
{
	char text[400];

	if (set->n > 1) {
		lib_paths_describe(set, text, sizeof(text));
		lib_fail(set->ctx, set->paths[0].err,
			 "LUN %d of %s: no path: %s", set->lun,
			 set->session->url.target, text);
	}
	report_failure(set, set->paths[0].err);
}

/* An administrator who names another unit by mistake must learn that at once, so
 * one wrong path fails the whole set here; later it is not used and no more. */
static void on_tried(struct lib_paths *set)
{
	const struct lib_path *wrong = find_wrong(set);

	if (set->is_reported)
		return;
	if (wrong) {
		lib_fail(set->ctx, wrong->err, "%s", wrong->reason);
		report_failure(set, wrong->err);
	} else if (all_tried(set) && !set->any_ready) {
		fail_connect(set);
	} else if (all_tried(set)) {
		report(set, 0);
	} else if (set->any_ready) {
		io_timer_set(set->ctx->loop, &set->patience,
			     io_now_exact() + LIB_CONNECT_TIME * XTIME_S);
	}
}

static void on_patience(struct io_timer *t)
{
	struct lib_paths *set = container_of(t, struct lib_paths, patience);

	if (!set->is_reported)
		report(set, 0);
}

static const struct lib_path_ups ups = {
	.recheck = lib_check_soon,
	.lost = lib_link_lost,
	.refused = lib_link_refused,
	.checked = lib_link_checked,
	.tried = on_tried,
	.excluded = lib_link_excluded,
};

/* ---- the paths ---- */

static int make_paths(struct lib_paths *set, const struct iser_url *urls,
		      unsigned n)
{
	set->paths = calloc(n, sizeof(*set->paths));
	if (!set->paths)
		return ISER_E_NOMEM;
	set->n = n;
	for (unsigned i = 0; i < n; i++)
		lib_link_init(&set->paths[i], set, i, &urls[i]);
	lib_paths_timers(set);
	return 0;
}

static void begin_paths(struct lib_paths *set)
{
	for (unsigned i = 0; i < set->n && !set->is_reported; i++)
		lib_link_begin(&set->paths[i]);
}

/* ---- paths=all ---- */

static bool is_listed(const struct iser_url *urls, unsigned n, const char *host,
		      uint16_t port)
{
	for (unsigned i = 0; i < n; i++)
		if (urls[i].port == port && !strcmp(urls[i].host, host))
			return true;
	return false;
}

/* Makes a URL of each portal, from the URL of the set. A portal that was named by a
 * host name is in the list by its address. */
static unsigned list_portals(const struct lib_paths *set,
			     const struct iser_target *list,
			     struct iser_url *urls)
{
	const struct iser_url *url = &set->session->url;
	const struct iser_portal *portal = NULL;
	unsigned n = 0;

	for (; list; list = list->next)
		if (!strcmp(list->name, url->target))
			portal = list->portals;
	for (; portal && n < ISER_PATHS_MAX; portal = portal->next) {
		urls[n] = *url;
		urls[n].paths[0] = '\0';
		if (!lib_parse_address(portal->address, urls[n].host,
				       &urls[n].port) &&
		    !is_listed(urls, n, urls[n].host, urls[n].port))
			n++;
	}
	if (!n) {
		urls[n] = *url;
		urls[n++].paths[0] = '\0';
	}
	return n;
}

static void on_discovered(void *arg, int err, struct iser_target *list)
{
	struct lib_paths *set = arg;
	struct iser_url *urls = calloc(ISER_PATHS_MAX, sizeof(*urls));

	set->discovery = NULL;
	if (!err && !urls)
		err = lib_fail(set->ctx, ISER_E_NOMEM, "out of memory");
	if (!err && !set->is_ending)
		err = make_paths(set, urls, list_portals(set, list, urls));
	if (urls)
		explicit_bzero(urls, ISER_PATHS_MAX * sizeof(*urls));
	free(urls);
	iser_targets_free(list);
	if (set->is_ending)
		lib_session_set_ended(set->session);
	else if (err)
		report_failure(set, err);
	else
		begin_paths(set);
}

/* ---- life ---- */

static struct lib_paths *set_new(struct iser_session *s,
				 const struct lib_set_ops *ops)
{
	struct lib_paths *set = calloc(1, sizeof(*set));
	const struct iser_url *u = &s->url;

	if (!set)
		return NULL;
	set->set.ops = ops;
	set->up = &ups;
	set->session = s;
	set->ctx = s->ctx;
	set->lun = u->lun;
	set->policy.is_manual = !strcmp(u->failback, "manual");
	if (!strcmp(u->policy, "queue-length"))
		set->policy.balance = LIB_QUEUE_LENGTH;
	if (!strcmp(u->policy, "failover"))
		set->policy.balance = LIB_FAILOVER;
	set->uses_states = strcmp(u->alua, "none") != 0;
	set->may_set = !strcmp(u->alua, "explicit");
	set->patience.fire = on_patience;
	lib_list_init(&set->queue);
	s->set = &set->set;
	return set;
}

static int start_set(struct lib_paths *set, const struct iser_url *urls,
		     unsigned n)
{
	int err;

	if (urls[0].paths[0]) {
		set->discovery = iser_discover_start(set->ctx, &urls[0],
						     on_discovered, set, &err);
		return set->discovery ? 0 : err;
	}
	err = make_paths(set, urls, n);
	if (err)
		return lib_fail(set->ctx, err, "out of memory");
	begin_paths(set);
	return 0;
}

struct iser_session *
lib_paths_start(struct iser_context *ctx, const struct iser_url *urls,
		unsigned n, const struct lib_set_ops *ops,
		void (*done)(void *arg, struct iser_session *s, int err),
		void *arg, int *err)
{
	struct iser_session *s = lib_session_new(ctx, &urls[0], 0);
	struct lib_paths *set = s ? set_new(s, ops) : NULL;

	*err = ISER_E_NOMEM;
	if (!set) {
		lib_fail(ctx, ISER_E_NOMEM, "out of memory");
		iser_disconnect(s);
		return NULL;
	}
	if (!s->url.reconnect) /* of unit.h's partial blocks */
		s->url.reconnect = LIB_PATH_TRIES;
	s->connected = done;
	s->connected_arg = arg;
	*err = start_set(set, urls, n);
	if (!*err)
		return s;
	s->connected = NULL;
	iser_disconnect(s);
	return NULL;
}

void lib_paths_end(struct iser_session *s)
{
	struct lib_paths *set = lib_paths_of(s);

	set->is_ending = true;
	io_timer_clear(set->ctx->loop, &set->dark);
	io_timer_clear(set->ctx->loop, &set->patience);
	for (unsigned i = 0; i < set->n; i++)
		lib_link_end(&set->paths[i]);
	lib_paths_fail(set, ISER_E_CLOSED);
}

bool lib_paths_is_ended(const struct iser_session *s)
{
	const struct lib_paths *set = lib_paths_of(s);

	for (unsigned i = 0; i < set->n; i++)
		if (!lib_link_is_ended(&set->paths[i]))
			return false;
	return !set->discovery;
}

void lib_paths_free(struct iser_session *s)
{
	struct lib_paths *set = lib_paths_of(s);

	for (unsigned i = 0; i < set->n; i++)
		explicit_bzero(&set->paths[i].url, sizeof(set->paths[i].url));
	free(set->paths);
	free(set);
	s->set = NULL;
}
