/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * redirect.c: login redirections (RFC 7143 §11.13.5): the next connection of an
 * attempt goes to the TargetAddress, on any host, with the same names, keys and
 * secrets. Status 0101h, moved temporarily, is valid for this attempt only: the
 * next attempt, after a loss, begins at the URL's place. Status 0102h, moved
 * permanently, is valid as long as the session object exists.
 */
#include <stdio.h>
#include <string.h>

#include "lib/internal.h"

void lib_redirect_begin(struct iser_session *s)
{
	struct lib_redirect *m = &s->redirect;

	strcpy(s->url.host, m->home.host);
	s->url.port = m->home.port;
	m->seen[0] = m->home;
	m->moves = 0;
	m->temporary = false;
	m->status = 0;
}

void lib_redirect_init(struct iser_session *s)
{
	strcpy(s->redirect.home.host, s->url.host);
	s->redirect.home.port = s->url.port;
	lib_redirect_begin(s);
}

void lib_redirect_note(struct iser_session *s,
		       const struct iscsi_login_failure *f)
{
	struct lib_redirect *m = &s->redirect;

	m->status = f->status;
	snprintf(m->address, sizeof(m->address), "%s", f->redirect);
}

static bool refuse_redirect(struct iser_session *s, const char *why)
{
	s->err = lib_fail(s->ctx, ISER_E_LOGIN,
			  "login to %s at %s:%u failed: moved to %s: %s",
			  s->url.target[0] ? s->url.target : "discovery",
			  s->url.host, s->url.port,
			  s->redirect.address[0] ? s->redirect.address
						 : "no address",
			  why);
	return false;
}

static bool was_seen(const struct lib_redirect *m, const struct lib_place *p)
{
	for (unsigned i = 0; i <= m->moves; i++)
		if (m->seen[i].port == p->port &&
		    !strcmp(m->seen[i].host, p->host))
			return true;
	return false;
}

/* Fills in the place of the TargetAddress. Returns false with s->err set if it
 * must not be followed. */
static bool find_next(struct iser_session *s, struct lib_place *next)
{
	struct lib_redirect *m = &s->redirect;
	char address[sizeof(m->address) + sizeof(s->url.host)];

	if (m->is_refused)
		return refuse_redirect(s, "a lost session ends at this portal "
					  "group only");
	if (!lib_put_zone(address, sizeof(address), m->address, s->url.host) ||
	    lib_parse_address(address, next->host, &next->port))
		return refuse_redirect(s, "not a TargetAddress "
					  "(RFC 7143 §13.8)");
	if (was_seen(m, next))
		return refuse_redirect(s, "the redirections go in a "
					  "circle");
	if (m->moves == MOVES_MAX)
		return refuse_redirect(s, "one redirection too many");
	return true;
}

/* [RFC 7143: 11.13.5 #2] */
bool lib_redirect_follow(struct iser_session *s)
{
	struct lib_redirect *m = &s->redirect;
	struct lib_place next;
	uint16_t status = m->status;

	m->status = 0;
	if ((status != ISCSI_LOGIN_MOVED_TEMPORARILY &&
	     status != ISCSI_LOGIN_MOVED_PERMANENTLY) ||
	    (s->state != SESSION_LOGIN && s->state != SESSION_AWAY))
		return false;
	if (!find_next(s, &next))
		return false;
	trace_emit(&s->ctx->trace, TRACE_LOGIN, "%s moved %s from %s:%u to %s",
		   s->url.target[0] ? s->url.target : "discovery",
		   status == ISCSI_LOGIN_MOVED_PERMANENTLY ? "permanently"
							   : "temporarily",
		   s->url.host, s->url.port, m->address);
	m->seen[++m->moves] = next;
	m->temporary |= status == ISCSI_LOGIN_MOVED_TEMPORARILY;
	/* a permanent redirection by a temporary place is that place's own */
	if (!m->temporary)
		m->home = next;
	strcpy(s->url.host, next.host);
	s->url.port = next.port;
	s->err = 0;
	if (s->state == SESSION_LOGIN)
		lib_session_go(s, SESSION_CONNECTING);
	return true;
}
