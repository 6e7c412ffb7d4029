/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fence.c: ends the lost session of a path through the portal of another path.
 * A portal that does not answer may still execute WRITEs of that session. A login with
 * the ISID of the lost session and TSIH 0 ends the session and its tasks (RFC 7143
 * §6.3.5), through any portal of the same portal group, since the group is one target
 * port. Redirections of that login are not followed: they may leave the group.
 */
#include <string.h>
#include <strings.h>

#include "lib/path/path.h"

/* ---- sessions that end ---- */

static void on_gone(void *arg)
{
	struct lib_path *p = arg;

	p->leaving--;
	if (p->set->is_ending)
		lib_session_set_ended(p->set->session);
}

void lib_path_leave(struct lib_path *p, struct iser_session *s)
{
	p->leaving++;
	iser_disconnect_start(s, on_gone, p);
}

/* ---- the other portal ---- */

/* Two iserd with one name have the same tags, but their target ports have different
 * numbers (--port-id). */
static bool reaches_same_port(const struct lib_path *p,
			      const struct lib_path *q)
{
	const struct iser_session *s = q->session;

	return q != p && q->state == PATH_READY && s->state == SESSION_UP &&
	       !strcasecmp(q->url.target, p->url.target) &&
	       ini_tpgt(s->ini) == p->fence.group &&
	       q->port.port == p->port.port && q->port.group == p->port.group;
}

static const struct lib_path *choose(const struct lib_path *p)
{
	for (unsigned i = 0; i < p->set->n; i++) {
		const struct lib_path *q = &p->set->paths[i];

		if (!(p->fence.tried & 1u << i) && reaches_same_port(p, q))
			return q;
	}
	return NULL;
}

/* The names and secrets are those of the lost session. */
static void fill_url(struct iser_url *u, const struct lib_path *p,
		     const struct lib_path *q)
{
	*u = p->url;
	/* the address itself: a name may lead to another portal */
	memcpy(u->host, q->session->join.host, sizeof(u->host));
	u->port = q->session->join.port;
	memcpy(u->transport, q->url.transport, sizeof(u->transport));
	memcpy(u->start, q->url.start, sizeof(u->start));
	memcpy(u->rcap, q->url.rcap, sizeof(u->rcap));
	memcpy(u->compat, q->url.compat, sizeof(u->compat));
	u->connections = 1;
	u->error_recovery_level = 0;
}

/* ---- the attempt ---- */

static void end_attempt(struct lib_path *p)
{
	struct iser_session *s = p->fence.session;

	p->fence.session = NULL;
	p->state = PATH_DOWN;
	lib_path_leave(p, s);
}

static void on_logged_in(void *arg, struct iser_session *s, int err)
{
	struct lib_path *p = arg;
	bool is_same = !err && ini_tpgt(s->ini) == p->fence.group;

	trace_emit(&p->set->ctx->trace,
		   is_same ? TRACE_LOGIN : TRACE_LOGIN_FAILED,
		   "path %u, %s:%u: the lost session %s%s%s", p->number,
		   p->url.host, p->url.port,
		   is_same ? "is ended through another portal"
			   : "is not ended through another portal: ",
		   is_same ? " (RFC 7143 §6.3.5)" : "",
		   is_same ? ""
		   : err   ? iser_message(p->set->ctx)
			   : "another portal group answers");
	end_attempt(p);
	if (is_same)
		lib_paths_release(p);
	p->fence.ended(p);
}

bool lib_fence_begin(struct lib_path *p)
{
	const struct lib_path *q = choose(p);
	struct iser_session *s;
	struct iser_url url;

	if (!p->waiting.first || p->fence.is_mixed || !q) {
		p->fence.tried =
			0; /* the next attempt asks each portal again */
		return false;
	}
	p->fence.tried |= 1u << q->number;
	fill_url(&url, p, q);
	s = lib_session_new(p->set->ctx, &url, 1);
	explicit_bzero(&url, sizeof(url));
	if (!s)
		return false;
	memcpy(s->login.isid, p->isid, sizeof(p->isid));
	s->login.reinstates = true;
	s->redirect.is_refused = true;
	p->fence.session = s;
	p->state = PATH_FENCE;
	if (!lib_session_start(s, on_logged_in, p))
		return true;
	end_attempt(p);
	return false;
}

void lib_fence_end(struct lib_path *p)
{
	if (p->fence.session)
		end_attempt(p);
}

/* ---- what the lost session was ---- */

void lib_fence_note(struct lib_path *p, int group)
{
	/* commands of a session with another target port still wait */
	if (p->waiting.first && group != p->fence.group)
		p->fence.is_mixed = true;
	p->fence.group = group;
	p->fence.tried = 0;
	if (!p->fence.is_mixed)
		lib_paths_release(p);
}
