/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * http.c: connections and requests, by libmicrohttpd. The library has no thread
 * of its own: its epoll descriptor is a watch of worker 0. A request for numbers
 * is suspended until the snapshot has visited each worker. Requests that come meanwhile get the
 * numbers of the same snapshot, and requests in a row those of an earlier one.
 *
 * Any program of this machine may connect. So a connection has HTTP_TIME for
 * each request, and a new one may end an earlier one (http_conns.h).
 */
#include "daemon/metrics/http.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/daemon.h"
#include "daemon/log/say.h"
#include "daemon/metrics/answer.h"
#include "daemon/metrics/http_conns.h"
#include "daemon/metrics/listen.h"
#include "daemon/metrics/snapshot.h"
#include "daemon/process/pace.h"

#define HTTP_CONNECTIONS 32
#define HTTP_TIME	 (10 * XTIME_S)
#define HTTP_TIME_S	 15   /* libmicrohttpd's own limit of silence */
#define HTTP_MEMORY	 8192 /* bytes of a request's head */
#define HTTP_CHECK	 (1 * XTIME_S)
#define HTTP_RUNS	 4u /* of libmicrohttpd in one turn */

/* The time of worker 0 for all of it, and for making texts of numbers, which takes milliseconds
 * with hundreds of units: no initiator shall see that in its 99th percentile. */
static const struct credit http_share = { .burst = 5 * XTIME_MS, .part = 5 };
static const struct credit text_share = { .burst = 5 * XTIME_MS, .part = 100 };

/* Texts of numbers: by kind, and whether the client wants OpenMetrics. One that is older than
 * this is made anew in any case. */
#define TEXTS	 (2 * ANSWER_KINDS)
#define TEXT_AGE (2 * XTIME_S)

struct text {
	struct MHD_Response *r; /* NULL: none so far */
	unsigned status;
	xtime at;
};

struct http {
	struct daemon *daemon;
	struct MHD_Daemon *mhd;
	struct http_listener listener;
	struct io_watch watch; /* the epoll descriptor of mhd */
	struct io_timer due;   /* the next deadline of mhd */
	struct pace pace;      /* runs mhd */
	struct {
		struct credit credit;
		struct list waiting; /* http_request.link, for the snapshot */
		struct text of[TEXTS];
	} texts;
	struct io_timer check; /* of the deadlines of connections */
	struct http_conns conns;
	bool has_room; /* a connection was closed in this run of mhd */
};

enum http_state {
	HTTP_NEW,     /* the head has arrived */
	HTTP_WAITING, /* for the snapshot */
	HTTP_READY,   /* the text is there */
};

struct http_request {
	struct http *http;
	struct list link; /* of http.texts.waiting */
	struct MHD_Connection *conn;
	enum http_state state;
	enum answer_kind kind;
	bool open; /* the client wants OpenMetrics */
};

/* ---- the loop ---- */

static void set_timer(struct http *h)
{
	MHD_UNSIGNED_LONG_LONG ms;

	if (MHD_get_timeout(h->mhd, &ms) == MHD_YES)
		io_timer_set(h->daemon->loops[0], &h->due,
			     io_now(h->daemon->loops[0]) +
				     (xtime)MIN(ms, 60000u) * XTIME_MS);
	else
		io_timer_clear(h->daemon->loops[0], &h->due);
}

/* Where HTTP_CONNECTIONS exist, libmicrohttpd takes its listener out of the epoll
 * set, and puts it back in the run after the one that closed a connection. */
static void run_mhd(struct pace *p)
{
	struct http *h = container_of(p, struct http, pace);

	for (unsigned runs = 0; !runs || (h->has_room && runs < HTTP_RUNS);
	     runs++) {
		h->has_room = false;
		MHD_run(h->mhd);
	}
	io_watch_want(h->daemon->loops[0], &h->watch, IO_IN);
	set_timer(h);
	if (h->has_room)
		pace_ask(p);
}

static void mhd_ready(struct io_watch *w, unsigned events)
{
	struct http *h = container_of(w, struct http, watch);

	(void)events;
	io_watch_want(h->daemon->loops[0], w, 0); /* until it has run */
	pace_ask(&h->pace);
}

static void mhd_due(struct io_timer *t)
{
	pace_ask(&container_of(t, struct http, due)->pace);
}

/* ---- connections ---- */

/* libmicrohttpd then reads the end of the stream and closes the connection. */
static void end_conn(const struct http_conn *c)
{
	if (c)
		shutdown(c->fd, SHUT_RDWR);
}

static void check_conns(struct io_timer *t)
{
	struct http *h = container_of(t, struct http, check);
	xtime now = io_now(h->daemon->loops[0]);
	struct http_conn *c;

	while ((c = http_conns_expired(&h->conns, now - HTTP_TIME)))
		end_conn(c);
	if (h->conns.n)
		io_timer_set(h->daemon->loops[0], t, now + HTTP_CHECK);
}

static void conn_begins(struct http *h, struct MHD_Connection *conn,
			void **context)
{
	const union MHD_ConnectionInfo *fd = MHD_get_connection_info(
		conn, MHD_CONNECTION_INFO_CONNECTION_FD);
	const union MHD_ConnectionInfo *peer = MHD_get_connection_info(
		conn, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	struct http_conn *c = fd && peer ? calloc(1, sizeof(*c)) : NULL;
	xtime now = io_now(h->daemon->loops[0]);

	*context = c;
	if (!c)
		return;
	c->fd = fd->connect_fd;
	c->peer = http_peer_of(c->fd, peer->client_addr);
	end_conn(http_conns_add(&h->conns, c, now));
	if (h->conns.n == 1)
		io_timer_set(h->daemon->loops[0], &h->check, now + HTTP_CHECK);
}

static void conn_changed(void *arg, struct MHD_Connection *conn, void **context,
			 enum MHD_ConnectionNotificationCode what)
{
	struct http *h = arg;
	struct http_conn *c = *context;

	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		conn_begins(h, conn, context);
		return;
	}
	h->has_room = true;
	if (!c)
		return;
	http_conns_remove(&h->conns, c);
	free(c);
	*context = NULL;
}

static struct http_conn *conn_of(struct MHD_Connection *conn)
{
	const union MHD_ConnectionInfo *i = MHD_get_connection_info(
		conn, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return i ? i->socket_context : NULL;
}

/* A connection may stay open for a next request, which has HTTP_TIME again. */
static void conn_renew(struct http *h, struct MHD_Connection *conn)
{
	struct http_conn *c = conn_of(conn);

	if (c)
		http_conns_renew(&h->conns, c, io_now(h->daemon->loops[0]));
}

/* ---- requests ---- */

static const char *header_of(struct MHD_Connection *conn, const char *name)
{
	return MHD_lookup_connection_value(conn, MHD_HEADER_KIND, name);
}

/* Makes a response, which takes over the body of the answer. NULL: no memory. */
static struct MHD_Response *response_of(struct answer *a)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(
		a->len, a->body,
		a->is_static ? MHD_RESPMEM_PERSISTENT : MHD_RESPMEM_MUST_FREE);

	if (!r) {
		answer_free(a);
		return NULL;
	}
	for (unsigned i = 0; i < ANSWER_HEADERS && a->headers[i].name; i++)
		MHD_add_response_header(r, a->headers[i].name,
					a->headers[i].value);
	return r;
}

static enum MHD_Result send_answer(struct MHD_Connection *conn,
				   struct answer *a)
{
	struct MHD_Response *r = response_of(a);
	enum MHD_Result result;

	if (!r)
		return MHD_NO;
	result = MHD_queue_response(conn, a->status, r);
	MHD_destroy_response(r);
	return result;
}

static enum MHD_Result refuse(const struct http_request *q, unsigned status)
{
	struct answer a;

	answer_refusal(&a, status);
	return send_answer(q->conn, &a);
}

/* ---- numbers ---- */

static struct text *text_of(const struct http_request *q)
{
	return &q->http->texts.of[2 * (unsigned)q->kind + q->open];
}

static enum MHD_Result send_text(const struct http_request *q)
{
	const struct text *x = text_of(q);

	return x->r ? MHD_queue_response(q->conn, x->status, x->r)
		    : refuse(q, MHD_HTTP_SERVICE_UNAVAILABLE);
}

static void drop_text(struct text *x)
{
	if (x->r)
		MHD_destroy_response(x->r); /* once it is sent */
	x->r = NULL;
}

static void make_text(const struct http_request *q, const struct snapshot *s,
		      xtime now)
{
	struct text *x = text_of(q);
	struct answer a;

	if (x->at == now)
		return; /* for an earlier request */
	drop_text(x);
	answer_numbers(&a, q->kind, q->open, s);
	x->status = a.status;
	x->r = response_of(&a);
	x->at = now;
}

/* The snapshot is there, or NULL. */
static void snapshot_done(void *arg, const struct snapshot *s)
{
	struct http *h = arg;
	xtime began = io_now_exact();
	struct list *n;

	while ((n = list_pop_front(&h->texts.waiting))) {
		struct http_request *q =
			list_entry(n, struct http_request, link);

		make_text(q, s, began);
		q->state = HTTP_READY;
		MHD_resume_connection(q->conn);
	}
	pace_use(&h->texts.credit, io_now_exact() - began);
	pace_ask(&h->pace); /* the library looks at resumed connections then */
}

/* Asks for a snapshot, unless one is on its way. */
static void wait_for_snapshot(struct http_request *q)
{
	struct http *h = q->http;
	bool is_first = list_empty(&h->texts.waiting);
	struct http_conn *c = conn_of(q->conn);

	q->state = HTTP_WAITING;
	if (c)
		c->is_waiting = true;
	MHD_suspend_connection(q->conn);
	list_push_back(&h->texts.waiting, &q->link);
	if (is_first)
		snapshot_collect(h->daemon, true, snapshot_done, h);
}

/* A check of the health needs an answer of all workers, and no text. */
static bool may_use_last(const struct http_request *q)
{
	struct http *h = q->http;
	xtime now = io_now(h->daemon->loops[0]);

	return q->kind != ANSWER_HEALTH && text_of(q)->r &&
	       now - text_of(q)->at < TEXT_AGE &&
	       !pace_may(&h->texts.credit, now);
}

static enum MHD_Result answer_request(struct http_request *q)
{
	struct http *h = q->http;
	struct answer a;

	switch (q->state) {
	case HTTP_NEW:
		if (answer_static(&a, q->kind, daemon_is_ready(h->daemon)))
			return send_answer(q->conn, &a);
		if (may_use_last(q))
			return send_text(q);
		wait_for_snapshot(q);
		return MHD_YES;
	case HTTP_WAITING:
		return MHD_YES;
	case HTTP_READY:
		return send_text(q);
	}
	return MHD_NO;
}

static enum MHD_Result count_host(void *arg, enum MHD_ValueKind kind,
				  const char *name, const char *value)
{
	unsigned *n = arg;

	(void)kind;
	(void)value;
	*n += !strcasecmp(name, "Host");
	return MHD_YES;
}

/* Returns 0, or the status that refuses the request. */
static unsigned check_request(const struct http *h, struct MHD_Connection *conn,
			      const char *method, const char *version)
{
	const char *length = header_of(conn, "Content-Length");
	unsigned hosts = 0;

	MHD_get_connection_values(conn, MHD_HEADER_KIND, count_host, &hosts);
	if (hosts > 1) /* RFC 9112 §3.2 */
		return MHD_HTTP_BAD_REQUEST;
	if (strcmp(version, "HTTP/1.1") != 0 &&
	    strcmp(version, "HTTP/1.0") != 0)
		return MHD_HTTP_HTTP_VERSION_NOT_SUPPORTED;
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return MHD_HTTP_METHOD_NOT_ALLOWED;
	if ((length && strcmp(length, "0") != 0) ||
	    header_of(conn, "Transfer-Encoding"))
		return MHD_HTTP_CONTENT_TOO_LARGE;
	/* A web site whose name leads to 127.0.0.1 must not read this one. */
	if (h->listener.is_loopback && !head_is_local(header_of(conn, "Host")))
		return MHD_HTTP_FORBIDDEN;
	return 0;
}

/* Called with the head of a request, then once more to answer it. */
static enum MHD_Result handle(void *arg, struct MHD_Connection *conn,
			      const char *url, const char *method,
			      const char *version, const char *body,
			      size_t *body_len, void **context)
{
	struct http_request *q = *context;
	unsigned status;

	(void)body;
	if (q)
		return *body_len ? MHD_NO : answer_request(q);
	q = *context = calloc(1, sizeof(*q));
	if (!q)
		return MHD_NO;
	list_init(&q->link);
	q->http = arg;
	q->conn = conn;
	q->kind = head_kind(url);
	q->open = head_wants_open(header_of(conn, "Accept"));
	status = check_request(q->http, conn, method, version);
	if (!status && q->kind == ANSWER_NOTHING)
		status = MHD_HTTP_NOT_FOUND;
	return status ? refuse(q, status) : MHD_YES;
}

static void request_ends(void *arg, struct MHD_Connection *conn, void **context,
			 enum MHD_RequestTerminationCode why)
{
	struct http_request *q = *context;

	(void)why;
	conn_renew(arg, conn);
	if (!q)
		return;
	list_del(&q->link);
	free(q);
	*context = NULL;
}

/* ---- open, close ---- */

/* No path needs a percent sign; a decoded %00 would end the path. */
static size_t keep_escapes(void *arg, struct MHD_Connection *conn, char *text)
{
	(void)arg;
	(void)conn;
	return strlen(text);
}

static bool start_mhd(struct http *h)
{
	const union MHD_DaemonInfo *epoll;

	h->mhd = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handle,
		h, MHD_OPTION_LISTEN_SOCKET, h->listener.fd,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)HTTP_CONNECTIONS,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)HTTP_TIME_S,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_MEMORY,
		MHD_OPTION_CONNECTION_MEMORY_INCREMENT, (size_t)1024,
		MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_UNESCAPE_CALLBACK,
		keep_escapes, NULL, MHD_OPTION_NOTIFY_CONNECTION, conn_changed,
		h, MHD_OPTION_NOTIFY_COMPLETED, request_ends, h,
		MHD_OPTION_END);
	if (!h->mhd)
		return false;
	epoll = MHD_get_daemon_info(h->mhd, MHD_DAEMON_INFO_EPOLL_FD);
	if (!epoll || epoll->epoll_fd < 0)
		return false;
	h->watch.fd = epoll->epoll_fd;
	h->watch.want = IO_IN;
	h->watch.ready = mhd_ready;
	return !io_watch_add(h->daemon->loops[0], &h->watch);
}

int http_open(struct daemon *d)
{
	const char *where = d->options.numbers.metrics;
	struct http *h;
	int err;

	if (!where)
		return 0;
	h = d->http = calloc(1, sizeof(*h));
	if (!h) {
		say("out of memory");
		return EXIT_ERROR;
	}
	h->daemon = d;
	h->due.fire = mhd_due;
	pace_init(&h->pace, d->loops[0], &http_share, run_mhd);
	h->texts.credit = text_share;
	list_init(&h->texts.waiting);
	h->check.fire = check_conns;
	h->watch.fd = -1;
	list_init(&h->conns.all);
	err = http_listen(d, &h->listener, where);
	if (err)
		return err;
	if (!start_mhd(h)) {
		say("--metrics %s: cannot start the HTTP server", where);
		return EXIT_ERROR;
	}
	trace_emit(&d->log.trace, TRACE_START, "numbers at %s",
		   h->listener.name);
	return 0;
}

void http_close(struct daemon *d)
{
	struct http *h = d->http;

	if (!h)
		return;
	if (h->watch.in_loop)
		io_watch_del(d->loops[0], &h->watch);
	if (h->mhd)
		MHD_stop_daemon(h->mhd); /* closes the listener */
	else if (h->listener.fd >= 0)
		close(h->listener.fd);
	if (d->loops && d->loops[0]) {
		io_timer_clear(d->loops[0], &h->due);
		pace_end(&h->pace);
		io_timer_clear(d->loops[0], &h->check);
	}
	for (unsigned i = 0; i < TEXTS; i++)
		drop_text(&h->texts.of[i]);
	http_unlisten(&h->listener);
	free(h);
	d->http = NULL;
}
