/* SPDX-License-Identifier: BSD-2-Clause */
/* session.c: connecting and disconnecting a session. */
#include <stdlib.h>
#include <string.h>

#include "lib/internal.h"

/* The CHAP secrets must not stay in freed memory. */
static void session_free(struct iser_session *s)
{
	explicit_bzero(&s->url, sizeof(s->url));
	explicit_bzero(&s->login, sizeof(s->login));
	free(s);
}

/* ---- the end ---- */

/* Begins to log out; the connection ends later. */
static void begin_disconnect(struct iser_session *s)
{
	/* the caller frees what the callback would use */
	s->connected = NULL;
	lib_session_cancel_connectors(s);
	lib_session_go(s, SESSION_CLOSING);
	if (s->ini)
		ini_logout(s->ini, io_now_exact());
	if (s->set)
		s->set->ops->end(s);
}

/* Returns whether nothing of the session uses the loop any more. */
static bool is_over(const struct iser_session *s)
{
	return !lib_session_has_conn(s) && !s->ini &&
	       (!s->set || s->set->ops->is_ended(s));
}

/* Frees a session without a connection. */
static void end_session(struct iser_session *s)
{
	void (*disconnected)(void *) = s->disconnected;
	void *arg = s->disconnected_arg;

	io_defer_cancel(&s->ending);
	lib_reconnect_fini(s);
	lib_io_fini(s);
	io_defer_cancel(&s->guard.due);
	lib_guard_fini(s);
	free(s->other_luns);
	if (s->set)
		s->set->ops->free(s);
	list_del(&s->link);
	session_free(s);
	if (disconnected)
		disconnected(arg);
}

static void on_ending(struct io_defer *d)
{
	struct iser_session *s = container_of(d, struct iser_session, ending);

	if (is_over(s))
		end_session(s);
}

void lib_session_set_ended(struct iser_session *s)
{
	if (s->is_leaving)
		io_loop_defer(s->ctx->loop, &s->ending);
}

/* ---- the begin ---- */

struct iser_session *lib_session_new(struct iser_context *ctx,
				     const struct iser_url *url, unsigned depth)
{
	struct iser_session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->ctx = ctx;
	s->url = *url;
	s->commands.depth = depth;
	lib_session_init_conn(s);
	lib_login_init(s);
	lib_retry_init(s);
	lib_verify_init(s);
	lib_redirect_init(s);
	s->ending.run = on_ending;
	list_init(&s->ending.link);
	if (lib_io_init(s, lib_io_completed)) {
		session_free(s);
		return NULL;
	}
	list_push_back(&ctx->sessions, &s->link);
	return s;
}

int lib_session_start(struct iser_session *s,
		      void (*done)(void *arg, struct iser_session *s, int err),
		      void *arg)
{
	s->connected = done;
	s->connected_arg = arg;
	if (!lib_session_connect(s))
		return 0;
	lib_session_go(s, SESSION_DOWN);
	return s->err;
}

struct iser_session *
lib_connect_start(struct iser_context *ctx, const struct iser_url *url,
		  void (*done)(void *arg, struct iser_session *s, int err),
		  void *arg, int *err)
{
	char list[CHAP_LIST_MAX];
	struct iser_session *s;

	if (!lib_url_unused(url)) {
		*err = lib_fail(ctx, ISER_E_INVALID,
				"struct iser_url: a reserved member is not 0; "
				"zero the struct before filling it in");
		return NULL;
	}
	if (url->auth[0] && !chap_list(url->auth, list)) {
		*err = lib_fail(ctx, ISER_E_INVALID,
				"struct iser_url: auth is not a list of md5, "
				"sha1, sha256 and sha3-256");
		return NULL;
	}
	s = lib_session_new(ctx, url, url->depth ? url->depth : DEFAULT_DEPTH);
	if (!s) {
		*err = lib_fail(ctx, ISER_E_NOMEM, "out of memory");
		return NULL;
	}
	*err = lib_session_start(s, done, arg);
	if (!*err)
		return s;
	iser_disconnect(s);
	return NULL;
}

void iser_disconnect(struct iser_session *s)
{
	if (!s)
		return;
	if (s->is_leaving) /* by iser_context_free */
		s->is_leaving = false;
	else
		begin_disconnect(s);
	s->disconnected = NULL;
	/* bounded: by the timeouts of the role for logout and login */
	while (!is_over(s) && !iser_service(s->ctx, -1))
		;
	end_session(s);
}

void iser_disconnect_start(struct iser_session *s, void (*done)(void *arg),
			   void *arg)
{
	if (s->is_leaving)
		return;
	s->is_leaving = true;
	s->disconnected = done;
	s->disconnected_arg = arg;
	begin_disconnect(s);
	if (is_over(s))
		io_loop_defer(s->ctx->loop, &s->ending);
}

void lib_cancel_disconnected(struct iser_context *ctx, const void *arg)
{
	list_for_each(it, &ctx->sessions) {
		struct iser_session *s =
			list_entry(it, struct iser_session, link);

		if (s->is_leaving && s->disconnected_arg == arg)
			s->disconnected = NULL;
	}
}
