/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * connect.c: the connections of a session, from the first byte to the last. The
 * leading connection comes first; after its login further connections join it, one
 * after the other, as many as the URL asks for and the target grants. After the end
 * of all connections the session may begin again: where a redirection leads, by
 * another transport of transport=auto, or to log in again after a loss. A session that was
 * lost at ErrorRecoveryLevel 2 is continued instead, by a connection with the CID of a
 * lost one.
 */
#include <errno.h>
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

/* The session is down: its caller or its set of paths hears of it. */
static void report_down(struct iser_session *s)
{
	const struct lib_member *m = &s->member;

	if (s->connected)
		report_connected(s, s->err);
	else if (m->ops && !s->is_leaving)
		m->ops->lost(m->arg, s->err);
}

static void end_attempt(struct iser_session *s)
{
	if (!lib_reconnect_next(s))
		report_down(s);
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

static void begin_join(struct iser_session *s);
static void join_next(struct iser_session *s);
static void end_join(struct iser_session *s, int err, const char *why);

static void on_probed(struct ini_request *r, int err,
		      const struct dm_control *rsp)
{
	struct iser_session *s =
		container_of(r, struct iser_session, login.probe);

	(void)rsp;
	if (!err) {
		begin_join(s);
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
		s->login.refused_sha256 = ini_failure(s->ini)->after_sha256;
		/* on_closed follows. A session that was given up does not
		 * replace the message that the caller reads. */
		if (s->state != SESSION_CLOSING)
			s->err = lib_login_failed(s, err);
	} else if (!lib_login_check_transport(s)) {
		ini_kill(s->ini, ERR_NEGOTIATION);
	} else if (s->login.way != LIB_RDMA &&
		   ini_params(s->ini)->rdma_extensions) {
		probe_rdma(s);
	} else {
		begin_join(s);
	}
}

/* The session goes on; its other connections are added again. */
/* [RFC 7143: 6.3.4 #1] */
static void on_continued(struct iser_session *s, int err,
			 const struct iscsi_login_failure *f)
{
	lib_reconnect_continued(s, err, f);
	if (err) /* on_stream_closed follows */
		return;
	s->join.conn->is_up = true;
	s->join.is_over = false;
	s->join.count = 1;
	join_next(s);
}

static void on_joined(void *arg, struct ini_conn *c, int err)
{
	struct iser_session *s = arg;
	const struct iscsi_login_failure *f = ini_conn_failure(c);

	if (s->reconnect.is_continuing) {
		on_continued(s, err, f);
		return;
	}
	if (err && !ini_is_up(s->ini)) { /* on_stream_closed follows */
		if (!s->err)
			s->err = lib_fail(s->ctx, lib_error(err),
					  "login of connection %u to %s at "
					  "%s:%u failed: %s",
					  s->join.count, s->url.target,
					  s->url.host, s->url.port,
					  f->text[0] ? f->text : err_str(err));
		return;
	}
	if (err) {
		end_join(s, lib_error(err),
			 f->text[0] ? f->text : err_str(err));
		return;
	}
	s->join.conn->is_up = true;
	join_next(s);
}

static void on_closed(void *arg, int err)
{
	struct iser_session *s = arg;

	if (!s->err)
		s->err = err ? lib_error(err) : ISER_E_CLOSED;
	if (!lib_session_has_conn(s)) /* the role gave up waiting */
		io_loop_defer(s->ctx->loop, &s->gone);
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

static void free_net(struct lib_conn *c)
{
	ini_conn_free(c->role);
	net_conn_free(c->net);
	c->role = NULL;
	c->net = NULL;
	c->is_up = false;
}

/* Frees the role after its last connection. */
static void free_role(struct iser_session *s)
{
	ini_free(s->ini);
	s->ini = NULL;
	s->reconnect.until = 0;
	s->reconnect.is_continuing = false;
	/* the unit of the next connection may be of another type */
	s->typed.is_known = false;
}

/* A connection that iser_add_connection_start asked for is there; what: NULL, or why
 * not. */
static void end_adding(struct iser_session *s, int err, const char *what)
{
	struct lib_adding a = s->adding;
	unsigned cid;

	if (!a.done)
		return;
	cid = s->join.conn->cid;
	s->adding.done = NULL;
	if (err)
		lib_fail(s->ctx, err, "connection %u to %s at %s:%u: %s", cid,
			 s->url.target, s->join.host, s->join.port, what);
	a.done(a.arg, err, cid);
}

/* Connects again at once, after a redirection or by another transport. */
static bool connect_elsewhere(struct iser_session *s)
{
	if (lib_redirect_follow(s))
		return !lib_session_connect(s);
	return (lib_login_without_sha256(s) || lib_login_fall_back(s)) &&
	       !lib_session_connect(s);
}

/* No connection is left: the session is continued, begins again, or is down. */
static void without_conn(struct iser_session *s)
{
	lib_session_cancel_connectors(s);
	end_adding(s, ISER_E_CLOSED, "the session has ended");
	if (lib_reconnect_waits(s))
		return;
	lib_hold_lost(s, lib_reconnect_takes);
	io_timer_clear(s->ctx->loop, &s->timer);
	io_defer_cancel(&s->rearm);
	io_defer_cancel(&s->gone);
	free_role(s);
	if (!connect_elsewhere(s))
		end_attempt(s);
}

static void on_gone(struct io_defer *d)
{
	without_conn(container_of(d, struct iser_session, gone));
}

static void on_stream_closed(void *arg, int err)
{
	struct lib_conn *c = arg;
	struct iser_session *s = c->session;

	(void)err; /* on_closed has it */
	lib_session_add_stats(&s->past_stats, c->net);
	lib_reconnect_lost(s, c);
	free_net(c);
	if (!lib_session_has_conn(s)) /* else the role ends them, or goes on */
		without_conn(s);
}

void lib_session_cancel_connectors(struct iser_session *s)
{
	for (unsigned i = 0; i < LIB_CONNECTIONS_MAX; i++) {
		struct lib_conn *c = &s->conns[i];

		if (c->connector)
			net_connect_cancel(c->connector);
		c->connector = NULL;
	}
}

/* ---- the begin of a connection ---- */

static int open_leading(struct iser_session *s, struct dm_conn *dm)
{
	struct ini_config cfg;

	lib_login_fill(s, &cfg, dm);
	cfg.logged_in = on_logged_in;
	cfg.joined = on_joined;
	cfg.closed = on_closed;
	cfg.async = on_async;
	cfg.rearm = on_rearm;
	cfg.arg = s;
	s->ini = ini_new(&cfg, dm);
	return s->ini ? 0 : ERR_NOMEM;
}

static int on_opened(void *arg, struct dm_conn *dm)
{
	struct lib_conn *c = arg;

	if (!c->session->ini)
		return open_leading(c->session, dm);
	c->role = ini_conn_new(c->session->ini, dm, c->cid);
	return c->role ? 0 : ERR_NOMEM;
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
	s->login.rdma_failed = false;
	s->join = (struct lib_join){ .count = 1 };
}

/* Begins the login on c->net. Returns an enum iser_error; then nothing of c is
 * left. */
static int start_conn(struct lib_conn *c)
{
	struct iser_session *s = c->session;
	xtime now = io_now(s->ctx->loop);
	bool is_leading = !s->ini;
	struct ini_conn *role;
	int err = c->net ? net_conn_start(c->net, &conn_ops, c) : ERR_NOMEM;

	if (err) {
		free_net(c);
		if (is_leading)
			free_role(s);
		return err == ERR_NOMEM ? ISER_E_NOMEM : ISER_E_SYSTEM;
	}
	role = c->role;
	c->role = NULL; /* frees itself from now on */
	if (role)
		ini_conn_start(role, now);
	else
		ini_start(s->ini, now);
	return 0;
}

/* Makes the connection on a socket, which it owns whatever it returns. */
static int make_conn(struct lib_conn *c, int fd)
{
	struct net_conn_config cfg;

	lib_login_fill_conn(c->session, &cfg);
	c->net = net_conn_new(c->session->ctx->loop, fd, &cfg);
	return start_conn(c);
}

/* The same on a connection of an RDMA device. */
static int make_device_conn(struct lib_conn *c, struct verbs_conn *vc)
{
	struct iser_context *ctx = c->session->ctx;
	struct net_conn_config cfg;

	lib_login_fill_conn(c->session, &cfg);
	c->net = net_conn_new_verbs(ctx->loop, ctx->verbs, vc, &cfg);
	if (!c->net)
		net_verbs_module(ctx->verbs)->free(vc);
	return start_conn(c);
}

static void on_connected(void *arg, int fd, const char *why)
{
	struct lib_conn *c = arg;
	struct iser_session *s = c->session;
	int err;

	c->connector = NULL;
	s->member.was_refused = fd == -ECONNREFUSED;
	if (fd < 0) {
		s->err = lib_fail(s->ctx, ISER_E_CONNECT, "%s", why);
		end_attempt(s);
		return;
	}
	begin_login_state(s);
	lib_reconnect_reset_held(s);
	err = make_conn(c, fd);
	if (err) {
		s->err = lib_fail(s->ctx, err, "connection to %s:%u: %s",
				  s->url.host, s->url.port, iser_strerror(err));
		end_attempt(s);
	}
}

/* Connects to an RDMA device. Returns an enum iser_error, with iser_message. */
static int connect_device(struct iser_session *s, const char *host,
			  uint16_t port, struct verbs_conn **vc)
{
	struct net_addr a = { .len = 0 };
	int err = lib_verbs_open(s->ctx);

	if (!err)
		err = lib_verbs_resolve(s->ctx, host, port, &a);
	if (err)
		return err;
	*vc = net_verbs_connect(s->ctx->verbs, &a, &err);
	if (*vc)
		return 0;
	return lib_fail(s->ctx, ISER_E_CONNECT, "RDMA connection to %s:%u: %s",
			host, port, strerror(-err));
}

static bool uses_device(const struct iser_session *s)
{
	return s->login.way == LIB_RDMA && !strcmp(s->url.rcap, "verbs");
}

static int connect_leading_device(struct iser_session *s)
{
	struct verbs_conn *vc;
	int err = connect_device(s, s->url.host, s->url.port, &vc);

	if (err)
		return err;
	begin_login_state(s);
	if (make_device_conn(&s->conns[0], vc))
		return lib_fail(s->ctx, ISER_E_NOMEM, "out of memory");
	return 0;
}

static xtime connect_time(const struct iser_session *s)
{
	return s->url.login_timeout ? s->url.login_timeout * XTIME_S
				    : CONNECT_TIME;
}

int lib_session_connect(struct iser_session *s)
{
	struct lib_conn *c = &s->conns[0];

	if (uses_device(s)) {
		s->err = connect_leading_device(s);
		return s->err;
	}
	c->connector =
		net_connect(s->ctx->loop, s->url.host, s->url.port,
			    io_now_exact() + connect_time(s), on_connected, c);
	if (!c->connector)
		s->err = lib_fail(s->ctx, ISER_E_NOMEM, "out of memory");
	return c->connector ? 0 : s->err;
}

/* ---- further connections (RFC 7143 §4.2.2, §6.3.1) ---- */

/* The session has the connections that it can have. why: there is a reason that it
 * has fewer than were granted; or NULL. */
static void end_join(struct iser_session *s, int err, const char *why)
{
	if (s->reconnect.is_continuing) { /* no connection was established */
		trace_emit(&s->ctx->trace, TRACE_LOGIN_FAILED,
			   "the session to %s is not continued: %s",
			   s->url.target, why);
		lib_reconnect_continued(s, err, NULL);
		without_conn(s);
		return;
	}
	if (s->join.is_over)
		end_adding(s, err, why);
	if (s->join.is_over || !s->ini || !ini_is_up(s->ini))
		return; /* the session ends; on_stream_closed follows */
	s->join.is_over = true;
	if (why)
		trace_emit(&s->ctx->trace, TRACE_LOGIN_FAILED,
			   "connection %u of the session to %s: %s; the "
			   "session goes on with %u",
			   s->join.count, s->url.target, why,
			   s->join.count - 1);
	session_up(s);
}

static void on_further_connected(void *arg, int fd, const char *why)
{
	struct lib_conn *c = arg;
	int err;

	c->connector = NULL;
	if (fd < 0) {
		end_join(c->session, ISER_E_CONNECT, why);
		return;
	}
	lib_reconnect_reset_held(
		c->session); /* of a session that is continued */
	err = make_conn(c, fd);
	if (err)
		end_join(c->session, err, iser_strerror(err));
}

/* Begins the next connection. Returns NULL, or why that failed. */
static const char *connect_further(struct iser_session *s, struct lib_conn *c)
{
	struct verbs_conn *vc;
	int err = 0;

	if (uses_device(s)) {
		err = connect_device(s, s->join.host, s->join.port, &vc);
		if (!err)
			err = make_device_conn(c, vc);
		return err ? iser_strerror(err) : NULL;
	}
	c->connector = net_connect(s->ctx->loop, s->join.host, s->join.port,
				   io_now_exact() + connect_time(s),
				   on_further_connected, c);
	return c->connector ? NULL : "out of memory";
}

/* The lowest CID that is free: its earlier connection has ended, and the target has nothing
 * of it any more. A login with the CID of a lost connection would reinstate that one while
 * the Logout for recovery of it is in progress (§6.3.4). */
static struct lib_conn *free_conn(struct iser_session *s)
{
	for (unsigned i = 0; i < LIB_CONNECTIONS_MAX; i++) {
		struct lib_conn *c = &s->conns[i];

		if (!c->net && !c->connector && !ini_has_cid(s->ini, c->cid))
			return c;
	}
	return NULL;
}

static void join_next(struct iser_session *s)
{
	unsigned granted = MIN(MAX(s->url.connections, 1u),
			       ini_params(s->ini)->max_connections);
	const char *why;

	if (s->state == SESSION_CLOSING)
		return;
	if (s->join.is_over) {
		end_adding(s, 0, NULL);
		return;
	}
	if (s->join.count >= MIN(granted, (unsigned)LIB_CONNECTIONS_MAX)) {
		end_join(s, 0, NULL);
		return;
	}
	s->join.conn = free_conn(s);
	s->join.count++;
	why = s->join.conn ? connect_further(s, s->join.conn)
			   : "each CID is in use";
	if (why)
		end_join(s, ISER_E_CONNECT, why);
}

/* Begins a connection that continues the session: it reinstates a lost one, at the portal
 * group of the session (§6.3.6). */
static void continue_session(struct iser_session *s)
{
	const char *why;

	s->reconnect.is_continuing = true;
	s->join.conn = &s->conns[ini_lost_cid(s->ini)];
	why = connect_further(s, s->join.conn);
	if (why)
		end_join(s, ISER_E_CONNECT, why);
}

int lib_session_add(struct iser_session *s)
{
	struct lib_conn *c = free_conn(s);
	const char *why;

	if (!c)
		return lib_fail(s->ctx, ISER_E_INVALID,
				"a session has %u connections at most",
				LIB_CONNECTIONS_MAX);
	s->join.conn = c;
	s->join.count = c->cid + 1u; /* for messages */
	why = connect_further(s, c);
	return why ? lib_fail(s->ctx, ISER_E_CONNECT,
			      "connection %u to %s:%u: %s", s->join.count,
			      s->join.host, s->join.port, why)
		   : 0;
}

/* The leading connection is ready. */
static void begin_join(struct iser_session *s)
{
	struct net_addr local = { .len = 0 }, peer = { .len = 0 };
	char text[NET_ADDR_STR];

	s->login.answered = true; /* no other transport is tried */
	s->conns[0].is_up = true;
	net_conn_addresses(s->conns[0].net, &local, &peer);
	net_addr_str(&peer, text);
	if (!net_addr_port(&peer) ||
	    lib_parse_address(text, s->join.host, &s->join.port)) {
		strcpy(s->join.host, s->url.host);
		s->join.port = s->url.port;
	}
	join_next(s);
}

/* Fires when it is time to log in again. */
static void on_reconnect_timer(struct io_timer *t)
{
	struct iser_session *s =
		container_of(t, struct iser_session, reconnect.timer);

	if (s->state == SESSION_UP) {
		lib_reconnect_stuck(s);
		return;
	}
	lib_reconnect_begin(s);
	if (lib_reconnect_may_continue(s))
		continue_session(s);
	else if (s->ini)
		without_conn(s); /* Time2Retain is over */
	else if (lib_session_connect(s))
		lib_reconnect_next(s);
}

void lib_session_init_conn(struct iser_session *s)
{
	for (unsigned i = 0; i < LIB_CONNECTIONS_MAX; i++) {
		s->conns[i].session = s;
		s->conns[i].cid = (uint16_t)i;
	}
	s->timer.fire = on_timer;
	s->rearm.run = set_timer;
	list_init(&s->rearm.link);
	s->gone.run = on_gone;
	list_init(&s->gone.link);
	lib_reconnect_init(s, on_reconnect_timer);
}
