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

static struct iser_session *session_new(struct iser_context *ctx,
					const struct iser_url *url)
{
	struct iser_session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->ctx = ctx;
	s->url = *url;
	s->commands.depth = url->depth ? url->depth : DEFAULT_DEPTH;
	lib_session_init_conn(s);
	lib_login_init(s);
	lib_retry_init(s);
	lib_redirect_init(s);
	if (lib_io_init(s, lib_io_completed)) {
		session_free(s);
		return NULL;
	}
	list_push_back(&ctx->sessions, &s->link);
	return s;
}

struct iser_session *
iser_connect_start(struct iser_context *ctx, const struct iser_url *url,
		   void (*done)(void *arg, struct iser_session *s, int err),
		   void *arg, int *err)
{
	struct iser_session *s;

	if (!LIB_UNUSED(url)) {
		*err = lib_fail(ctx, ISER_E_INVALID,
				"struct iser_url: a reserved member is not 0; "
				"zero the struct before filling it in");
		return NULL;
	}
	s = session_new(ctx, url);
	*err = 0;
	if (s) {
		s->connected = done;
		s->connected_arg = arg;
	}
	if (s && !lib_session_connect(s))
		return s;
	*err = s ? s->err : lib_fail(ctx, ISER_E_NOMEM, "out of memory");
	if (s) {
		lib_session_go(s, SESSION_DOWN);
		iser_disconnect(s);
	}
	return NULL;
}

struct connect_wait {
	bool over;
	int err;
};

static void on_connect_end(void *arg, struct iser_session *s, int err)
{
	struct connect_wait *w = arg;

	(void)s;
	w->over = true;
	w->err = err;
}

struct iser_session *iser_connect(struct iser_context *ctx,
				  const struct iser_url *url, int *err)
{
	struct connect_wait w = { 0 };
	struct iser_session *s =
		iser_connect_start(ctx, url, on_connect_end, &w, err);

	if (!s)
		return NULL;
	*err = lib_wait(ctx, &w.over);
	if (!*err)
		*err = w.err;
	if (!*err)
		return s;
	s->connected = NULL;
	iser_disconnect(s);
	return NULL;
}

void iser_disconnect(struct iser_session *s)
{
	if (!s)
		return;
	/* the caller frees what the callback would use */
	s->connected = NULL;
	if (s->connector)
		net_connect_cancel(s->connector);
	s->connector = NULL;
	lib_session_go(s, SESSION_CLOSING);
	if (s->ini)
		ini_logout(s->ini, io_now_exact());
	/* bounded: by the timeouts of the role for logout and login */
	while (s->net && !iser_service(s->ctx, -1))
		;
	lib_reconnect_fini(s);
	lib_io_fini(s);
	list_del(&s->link);
	session_free(s);
}
