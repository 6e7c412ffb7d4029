/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link.c: the session of one path. After a loss the next session has the ISID
 * of the lost one, so that the target ends the lost one and its tasks first (RFC
 * 7143 §6.3.5); the commands that wait for that go on then. fence.c does the same
 * through another portal before. They go on, too, when the portal refuses the
 * connection, because the process that had them has ended, and when another path reports
 * that the target port moves no data any more.
 */
#include <stdio.h>
#include <string.h>

#include "lib/path/path.h"

#define BACKOFF_MIN (100 * XTIME_MS)
#define BACKOFF_MAX (5 * XTIME_S)

/* ---- the reason ---- */

static void note(struct lib_path *p, int err, const char *what)
{
	p->err = err;
	snprintf(p->reason, sizeof(p->reason), "%s", what);
}

static void trace_down(const struct lib_path *p)
{
	trace_emit(&p->set->ctx->trace, TRACE_CONN_TIMEOUT,
		   "path %u, %s:%u: %s", p->number, p->url.host, p->url.port,
		   p->reason);
}

/* ---- sessions that end ---- */

/* Moves the sockets that are still open, which replace those in `to`. */
static void move_held(int to[LIB_CONNECTIONS_MAX],
		      int from[LIB_CONNECTIONS_MAX])
{
	for (unsigned i = 0; i < LIB_CONNECTIONS_MAX; i++) {
		if (from[i] < 0)
			continue;
		net_reset(to[i]);
		to[i] = from[i];
		from[i] = -1;
	}
}

/* Keeps what the next session needs of this one. */
static void keep_session(struct lib_path *p)
{
	struct iser_session *s = p->session;

	memcpy(p->isid, s->login.isid, sizeof(p->isid));
	p->has_isid = true;
	p->was_redirected = strcmp(s->url.host, p->url.host) != 0 ||
			    s->url.port != p->url.port;
	p->time2wait = s->reconnect.time2wait;
	move_held(p->held, s->reconnect.held);
}

/* Logs out of the session, if that is possible still, and frees it. */
static void drop_session(struct lib_path *p)
{
	struct iser_session *s = p->session;

	p->session = NULL;
	p->state = PATH_DOWN;
	p->set->seen[p->number].is_ready = false;
	if (!s)
		return;
	lib_path_leave(p, s);
}

/* ---- the next attempt ---- */

static xtime next_delay(const struct lib_path *p)
{
	/* a login ends the lost session, whose writes wait for that */
	if ((p->err == ISER_E_AUTH || p->is_wrong) && !p->waiting.first)
		return LIB_SLOW_TIME * XTIME_S;
	if (!p->attempts && p->time2wait)
		return lib_time2wait(&p->url, p->time2wait);
	if (!p->attempts)
		return 0;
	return MIN(BACKOFF_MIN << MIN(p->attempts - 1, 6u), BACKOFF_MAX);
}

static void schedule(struct lib_path *p)
{
	io_timer_set(p->set->ctx->loop, &p->timer,
		     io_now_exact() + next_delay(p));
}

/* ---- the up-calls of a session ---- */

static void on_lost(void *arg, int err)
{
	struct lib_path *p = arg;

	lib_link_lost(p, err, iser_strerror(err));
	keep_session(p);
	drop_session(p);
	if (p->set->is_ending)
		return;
	schedule(p);
	/* what they report of this one may end the wait of its writes */
	for (unsigned i = 0; p->waiting.first && i < p->set->n; i++)
		lib_check_soon(&p->set->paths[i], false);
	lib_paths_changed(p->set);
}

/* These unit attentions concern the path (SPC-4 table E.13). */
static void on_attention(void *arg, uint16_t asc)
{
	struct lib_path *p = arg;

	switch (asc) {
	case ASC_ACCESS_STATE_CHANGED:
	case ASC_ACCESS_TRANSITION_FAILED:
		lib_check_soon(p, false);
		break;
	case ASC_INQUIRY_CHANGED:
	case ASC_DEVICE_IDENTIFIER_CHANGED:
	case ASC_REPORTED_LUNS_CHANGED:
		lib_check_soon(p, true);
		break;
	default:
		break;
	}
}

static void on_doubt(struct iser_session *s, struct lib_guarded *g)
{
	struct lib_path *p = s->member.arg;

	(void)g;
	if (p->session == s)
		lib_check_doubt(p);
}

static const struct lib_member_ops member_ops = {
	.lost = on_lost,
	.attention = on_attention,
};

static void attempt_failed(struct lib_path *p, int err)
{
	bool refused = p->session && p->session->member.was_refused;

	note(p, err, iser_message(p->set->ctx));
	trace_down(p);
	drop_session(p);
	p->attempts++;
	p->was_tried = true;
	if (p->set->is_ending)
		return;
	schedule(p);
	if (refused && !p->was_redirected)
		lib_paths_release(p);
	p->set->up->tried(p->set);
}

static void on_connected(void *arg, struct iser_session *s, int err)
{
	struct lib_path *p = arg;

	if (err) {
		attempt_failed(p, err);
		return;
	}
	memcpy(p->isid, s->login.isid, sizeof(p->isid));
	p->has_isid = true;
	p->state = PATH_CHECK;
	p->check.refusals = 0;
	lib_fence_note(p, ini_tpgt(s->ini));
	lib_check_begin(p, true);
}

void lib_link_begin(struct lib_path *p)
{
	const struct iser_url *u = &p->url;
	struct iser_session *s = lib_session_new(
		p->set->ctx, u, u->depth ? u->depth : DEFAULT_DEPTH);

	p->session = s;
	p->state = PATH_LOGIN;
	if (!s) {
		lib_fail(p->set->ctx, ISER_E_NOMEM, "out of memory");
		attempt_failed(p, ISER_E_NOMEM);
		return;
	}
	s->member.ops = &member_ops;
	s->member.arg = p;
	s->guard.ask = on_doubt;
	s->login.reinstates = p->has_isid;
	if (p->has_isid)
		memcpy(s->login.isid, p->isid, sizeof(p->isid));
	move_held(s->reconnect.held, p->held);
	if (lib_session_start(s, on_connected, p))
		attempt_failed(p, s->err);
}

static void on_fence_ended(struct lib_path *p)
{
	if (!p->set->is_ending)
		lib_link_begin(p);
}

/* The end of the lost session comes first: the login on this path may take long. */
static void begin_again(struct lib_path *p)
{
	if (!lib_fence_begin(p))
		lib_link_begin(p);
}

/* ---- out of use ---- */

static void on_kill(struct io_defer *d)
{
	struct lib_path *p = container_of(d, struct lib_path, kill);

	if (p->state == PATH_LOST && p->session && p->session->ini)
		ini_kill(p->session->ini, ERR_TIMEOUT);
}

void lib_link_lost(struct lib_path *p, int err, const char *what)
{
	if (p->state != PATH_CHECK && p->state != PATH_READY)
		return;
	p->state = PATH_LOST;
	p->set->seen[p->number].is_ready = false;
	p->losses++;
	p->attempts = 0;
	note(p, err, what);
	trace_down(p);
	io_timer_clear(p->set->ctx->loop, &p->timer);
	io_loop_defer(p->set->ctx->loop, &p->kill);
	lib_paths_changed(p->set);
}

void lib_link_refused(struct lib_path *p, int err)
{
	if (p->state != PATH_CHECK && p->state != PATH_READY)
		return;
	note(p, err, iser_message(p->set->ctx));
	trace_down(p);
	drop_session(p);
	p->attempts++;
	p->was_tried = true;
	if (p->set->is_ending)
		return;
	schedule(p);
	p->set->up->tried(p->set);
	lib_paths_changed(p->set);
}

void lib_link_checked(struct lib_path *p)
{
	bool is_new = p->state == PATH_CHECK;

	p->state = PATH_READY;
	p->set->seen[p->number].is_ready = true;
	p->set->any_ready = true;
	p->attempts = 0;
	p->is_wrong = false;
	p->was_tried = true;
	if (is_new) {
		trace_emit(&p->set->ctx->trace, TRACE_LOGIN,
			   "path %u, %s:%u: ready, %s", p->number, p->url.host,
			   p->url.port,
			   lib_access_str(p->set->seen[p->number].access));
		p->set->up->tried(p->set);
	}
	lib_paths_changed(p->set);
}

/* ---- timers, life ---- */

static void on_timer(struct io_timer *t)
{
	struct lib_path *p = container_of(t, struct lib_path, timer);

	if (p->state == PATH_DOWN)
		begin_again(p);
	else if (!p->check.in_progress)
		lib_check_begin(p, false);
	else if (p->check.is_late)
		lib_link_lost(p, ISER_E_TIMEOUT,
			      "no answer to the check of the path");
	else
		lib_check_late(p);
}

void lib_link_init(struct lib_path *p, struct lib_paths *set, unsigned number,
		   const struct iser_url *url)
{
	p->set = set;
	p->number = number;
	p->url = *url;
	p->url.reconnect = 0; /* the set logs in again */
	for (unsigned i = 0; i < LIB_CONNECTIONS_MAX; i++)
		p->held[i] = -1;
	p->timer.fire = on_timer;
	p->kill.run = on_kill;
	p->fence.ended = on_fence_ended;
	p->fence.group = -1;
	list_init(&p->kill.link);
	lib_list_init(&p->waiting);
	set->seen[number].depth = url->depth ? url->depth : DEFAULT_DEPTH;
}

static void reset_held(struct lib_path *p)
{
	for (unsigned i = 0; i < LIB_CONNECTIONS_MAX; i++) {
		net_reset(p->held[i]);
		p->held[i] = -1;
	}
}

/* Without the sockets this machine repeats no octet of the WRITEs. */
void lib_link_excluded(struct lib_path *p)
{
	if (!p->waiting.first || p->state == PATH_LOST)
		return;
	trace_emit(&p->set->ctx->trace, TRACE_CONN_TIMEOUT,
		   "path %u, %s:%u: another path says that the target port "
		   "moves no data: its writes go to another path",
		   p->number, p->url.host, p->url.port);
	reset_held(p);
	if (p->session)
		lib_reconnect_reset_held(p->session);
	lib_paths_release(p);
}

void lib_link_end(struct lib_path *p)
{
	io_timer_clear(p->set->ctx->loop, &p->timer);
	io_defer_cancel(&p->kill);
	lib_fence_end(p);
	drop_session(p);
	reset_held(p);
}

bool lib_link_is_ended(const struct lib_path *p)
{
	return !p->leaving && !p->check.in_progress;
}
