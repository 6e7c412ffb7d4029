/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * connect.c: the connections of a session, from the first byte to the last. A
 * session has one connection at a time; after its end another one may follow:
 * where a redirection leads, by another transport of transport=auto, or to log in
 * again after a loss.
 */
#include <string.h>

#include "lib/internal.h"
#include "net/verbs.h"

/* ---- the result ---- */

/* Reports the end of connecting to the caller of iser_connect_start, once. */
static void report_connected(struct iser_session *s, int err)
{
	void (*fn)(void *, struct iser_session *, int) = s->connected;

	s->connected = NULL;
	if (fn)
		fn(s->connected_arg, s, err);
}

static void end_attempt(struct iser_session *s)
{
	if (!lib_reconnect_next(s))
		report_connected(s, s->err);
	if (s->is_leaving)
		io_loop_defer(s->ctx->loop, &s->ending);
}

static void session_up(struct iser_session *s)
{
	if (s->state == SESSION_CLOSING)
		return;
	lib_reconnect_logged_in(s);
	report_connected(s, 0);
}

/* ---- up-calls of the initiator role ---- */

static void on_probed(struct ini_request *r, int err,
		      const struct dm_control *rsp)
{
	struct iser_session *s =
		container_of(r, struct iser_session, login.probe);

	(void)rsp;
	if (!err) {
		session_up(s);
		return;
	}
	s->err =
		lib_fail(s->ctx, lib_error(err),
			 "%s at %s:%u answers RDMAExtensions=Yes and does not "
			 "change to RDMA mode: %s; try start=rdma or "
			 "transport=tcp",
			 s->url.target, s->url.host, s->url.port, err_str(err));
	s->login.rdma_failed = true;
	ini_kill(s->ini, err);
}

/* Some targets (tgt) answer RDMAExtensions=Yes and do not implement RFC 7145
 * §5.1.2: only a response in RDMA mode shows that the target does. */
static void probe_rdma(struct iser_session *s)
{
	xtime deadline = io_now(s->ctx->loop) + CONNECT_TIME;

	s->login.probe = (struct ini_request){ .done = on_probed };
	if (ini_ping(s->ini, &s->login.probe, NULL, 0, deadline))
		ini_kill(s->ini, ERR_NOMEM);
}

static void on_logged_in(void *arg, int err)
{
	struct iser_session *s = arg;

	if (err) {
		lib_redirect_note(s, ini_failure(s->ini));
		s->err = lib_login_failed(s, err); /* on_closed follows */
	} else if (!lib_login_check_transport(s)) {
		ini_kill(s->ini, ERR_NEGOTIATION);
	} else if (s->login.way != LIB_RDMA &&
		   ini_params(s->ini)->rdma_extensions) {
		probe_rdma(s);
	} else {
		session_up(s);
	}
}

static void on_closed(void *arg, int err)
{
	struct iser_session *s = arg;

	if (!s->err)
		s->err = err ? lib_error(err) : ISER_E_CLOSED;
}

static void on_async(void *arg, const struct iscsi_async *a)
{
	lib_reconnect_async(arg, a);
}

static void set_timer(struct io_defer *d)
{
	struct iser_session *s = container_of(d, struct iser_session, rearm);

	if (s->ini)
		io_timer_set(s->ctx->loop, &s->timer, ini_deadline(s->ini));
}

static void on_rearm(void *arg)
{
	struct iser_session *s = arg;

	io_loop_defer(s->ctx->loop, &s->rearm);
}

static void on_timer(struct io_timer *t)
{
	struct iser_session *s = container_of(t, struct iser_session, timer);

	ini_expire(s->ini, io_now(s->ctx->loop));
	io_loop_defer(s->ctx->loop, &s->rearm);
}

/* ---- the end of a connection ---- */

static void free_conn(struct iser_session *s)
{
	ini_free(s->ini);
	net_conn_free(s->net);
	s->ini = NULL;
	s->net = NULL;
	/* the unit of the next connection may be of another type */
	s->typed.is_known = false;
}

/* Connects again at once, after a redirection or by another transport. */
static bool connect_elsewhere(struct iser_session *s)
{
	if (lib_redirect_follow(s))
		return !lib_session_connect(s);
	return lib_login_fall_back(s) && !lib_session_connect(s);
}

static void on_stream_closed(void *arg, int err)
{
	struct iser_session *s = arg;

	(void)err; /* on_closed has it */
	lib_session_add_stats(&s->past_stats, s->net);
	lib_reconnect_lost(s);
	io_timer_clear(s->ctx->loop, &s->timer);
	io_defer_cancel(&s->rearm);
	free_conn(s);
	if (!connect_elsewhere(s))
		end_attempt(s);
}

/* ---- the begin of a connection ---- */

static int on_opened(void *arg, struct dm_conn *dm)
{
	struct iser_session *s = arg;
	struct ini_config cfg;

	lib_login_fill(s, &cfg, dm);
	cfg.logged_in = on_logged_in;
	cfg.closed = on_closed;
	cfg.async = on_async;
	cfg.rearm = on_rearm;
	cfg.arg = s;
	s->ini = ini_new(&cfg, dm);
	return s->ini ? 0 : ERR_NOMEM;
}

static const struct net_conn_ops conn_ops = {
	.opened = on_opened,
	.closed = on_stream_closed,
};

static void begin_login_state(struct iser_session *s)
{
	if (s->state != SESSION_AWAY)
		lib_session_go(s, SESSION_LOGIN);
	s->login.answered = false;
}

/* Makes the connection on a socket, which it owns whatever it returns. */
static int make_conn(struct iser_session *s, int fd)
{
	struct net_conn_config cfg;

	lib_login_fill_conn(s, &cfg);
	s->login.rdma_failed = false;
	s->net = net_conn_new(s->ctx->loop, fd, &cfg);
	if (!s->net)
		return ISER_E_NOMEM;
	if (net_conn_start(s->net, &conn_ops, s))
		return ISER_E_SYSTEM;
	return 0;
}

int lib_session_adopt(struct iser_session *s, struct verbs_conn *vc)
{
	struct net_conn_config cfg;

	begin_login_state(s);
	lib_login_fill_conn(s, &cfg);
	s->net = net_conn_new_verbs(s->ctx->loop, s->ctx->verbs, vc, &cfg);
	if (!s->net) {
		net_verbs_module(s->ctx->verbs)->free(vc);
		return ISER_E_NOMEM;
	}
	if (net_conn_start(s->net, &conn_ops, s)) {
		free_conn(s);
		return ISER_E_NOMEM;
	}
	ini_start(s->ini, io_now(s->ctx->loop));
	return 0;
}

static void on_connected(void *arg, int fd, const char *why)
{
	struct iser_session *s = arg;
	int err;

	s->connector = NULL;
	if (fd < 0) {
		s->err = lib_fail(s->ctx, ISER_E_CONNECT, "%s", why);
		end_attempt(s);
		return;
	}
	begin_login_state(s);
	lib_reconnect_reset_held(s);
	err = make_conn(s, fd);
	if (err) {
		free_conn(s);
		s->err = lib_fail(s->ctx, err, "connection to %s:%u: %s",
				  s->url.host, s->url.port, iser_strerror(err));
		end_attempt(s);
		return;
	}
	ini_start(s->ini, io_now(s->ctx->loop));
}

static int connect_device(struct iser_session *s)
{
	struct net_addr a = { .len = 0 };
	struct verbs_conn *vc;
	int err = lib_verbs_open(s->ctx);

	if (!err)
		err = lib_verbs_resolve(s->ctx, s->url.host, s->url.port, &a);
	if (err)
		return err;
	vc = net_verbs_connect(s->ctx->verbs, &a, &err);
	if (!vc)
		return lib_fail(s->ctx, ISER_E_CONNECT,
				"RDMA connection to %s:%u: %s", s->url.host,
				s->url.port, strerror(-err));
	if (lib_session_adopt(s, vc))
		return lib_fail(s->ctx, ISER_E_NOMEM, "out of memory");
	return 0;
}

int lib_session_connect(struct iser_session *s)
{
	if (s->login.way == LIB_RDMA && !strcmp(s->url.rcap, "verbs")) {
		s->err = connect_device(s);
		return s->err;
	}
	s->connector =
		net_connect(s->ctx->loop, s->url.host, s->url.port,
			    io_now_exact() + CONNECT_TIME, on_connected, s);
	if (!s->connector)
		s->err = lib_fail(s->ctx, ISER_E_NOMEM, "out of memory");
	return s->connector ? 0 : s->err;
}

/* Fires when it is time to log in again. */
static void on_reconnect_timer(struct io_timer *t)
{
	struct iser_session *s =
		container_of(t, struct iser_session, reconnect.timer);

	lib_reconnect_begin(s);
	if (lib_session_connect(s))
		lib_reconnect_next(s);
}

void lib_session_init_conn(struct iser_session *s)
{
	s->timer.fire = on_timer;
	s->rearm.run = set_timer;
	list_init(&s->rearm.link);
	lib_reconnect_init(s, on_reconnect_timer);
}
