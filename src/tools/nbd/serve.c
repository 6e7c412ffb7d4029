/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * serve.c: iser nbd-serve URL: a unit for NBD clients. One thread; each turn of
 * the loop reads requests of all clients, submits them to libiser, and sends
 * the replies that are ready.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "tools/nbd/client.h"
#include "tools/nbd/listen.h"

#define MAX_CLIENTS 32
#define DRAIN_NS    10000000000u /* for requests in progress at the end */
#define EVENTS	    64
#define PAUSE_MS    100	 /* until accept is tried again without descriptors */
#define CHECK_MS    1000 /* how often slow negotiations are looked for */
#define NBD_PORT    "127.0.0.1:10809"

struct server {
	/* the command line */
	const struct common *common;
	const char *url, *socket, *listen, *name;
	bool once, read_only;
	/* state */
	struct iser_context *ctx;
	struct nbd_unit unit;
	struct nbd_export export;
	struct nbd_listener listener;
	struct nbd_client *clients;
	unsigned nclients, last_number;
	bool negotiating;   /* at least one client is */
	int epoll, signals; /* signals: a signalfd */
	bool listening;	    /* the listener is polled */
	bool paused;	    /* accept failed; polled again after PAUSE_MS */
	bool leaving;	    /* ends when the clients have left */
	bool any_served;    /* a client finished its negotiation, for --once */
	uint64_t drain_until; /* ns; with leaving */
	int code;
};

/* ---- clients come and go ---- */

/* Adds, changes or removes a descriptor of the loop; what: what on_event gets. */
static void set_watch(struct server *s, int fd, void *what, int op,
		      unsigned events)
{
	struct epoll_event e = { .events = events, .data.ptr = what };

	epoll_ctl(s->epoll, op, fd, &e);
}

/* While the listener is not polled, new clients wait in its queue: at the limit
 * of clients, and without descriptors. */
static void set_listening(struct server *s, bool on)
{
	if (s->listening == on)
		return;
	s->listening = on;
	set_watch(s, s->listener.fd, &s->listener,
		  on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, EPOLLIN);
}

static void accept_clients(struct server *s)
{
	struct nbd_client *c;
	int fd;

	while (s->nclients < MAX_CLIENTS) {
		fd = nbd_accept(&s->listener);
		if (fd < 0) {
			s->paused = errno == EMFILE || errno == ENFILE ||
				    errno == ENOMEM || errno == ENOBUFS;
			break;
		}
		c = nbd_client_new(fd, ++s->last_number, &s->unit, &s->export);
		if (!c) {
			say("NBD client: cannot serve it: out of memory");
			break;
		}
		c->next = s->clients;
		s->clients = c;
		s->nclients++;
		set_watch(s, fd, c, EPOLL_CTL_ADD, 0);
		nbd_client_send(c);
	}
	set_listening(s, s->nclients < MAX_CLIENTS && !s->paused);
}

/* Ends the service in order; the exit code is code unless it is set already. */
static void leave_server(struct server *s, int code)
{
	if (s->leaving)
		return;
	s->leaving = true;
	s->drain_until = now_ns() + DRAIN_NS;
	if (!s->code)
		s->code = code;
	set_listening(s, false);
	for (struct nbd_client *c = s->clients; c; c = c->next)
		nbd_client_leave(c);
}

/* Frees the clients that are done, and checks the negotiations. */
static void reap_clients(struct server *s)
{
	struct nbd_client **p = &s->clients, *c;
	uint64_t now = now_ns();

	s->negotiating = false;
	while ((c = *p)) {
		s->negotiating |= nbd_client_check_nego(c, now);
		if (!nbd_client_is_done(c)) {
			p = &c->next;
			continue;
		}
		*p = c->next;
		s->nclients--;
		s->any_served |= c->served;
		nbd_client_free(c);
	}
	if (s->once && s->any_served && s->nclients == 0)
		leave_server(s, 0);
	if (!s->leaving && !s->paused)
		set_listening(s, s->nclients < MAX_CLIENTS);
}

static void set_events(struct server *s, struct nbd_client *c)
{
	/* the event bits of poll and epoll are the same on Linux */
	unsigned events = nbd_client_wants(c);

	if (c->state == NBD_GONE && c->events != UINT32_MAX) {
		set_watch(s, c->fd, c, EPOLL_CTL_DEL, 0);
		c->events = UINT32_MAX;
	} else if (c->state != NBD_GONE && c->events != events) {
		set_watch(s, c->fd, c, EPOLL_CTL_MOD, events);
		c->events = events;
	}
}

/* ---- the loop ---- */

static void on_signal(struct server *s)
{
	struct signalfd_siginfo info;

	if (read(s->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (s->leaving) /* a second signal: do not wait */
		s->drain_until = 0;
	leave_server(s, 0);
}

static void on_client(struct nbd_client *c, unsigned events)
{
	if (c->state == NBD_GONE)
		return;
	if (events & EPOLLOUT)
		nbd_client_send(c);
	if (events & EPOLLIN)
		nbd_client_receive(c);
	else if (events & (EPOLLHUP | EPOLLERR))
		nbd_client_drop(c);
}

static void on_event(struct server *s, const struct epoll_event *e)
{
	if (e->data.ptr == &s->signals)
		on_signal(s);
	else if (e->data.ptr == &s->listener)
		accept_clients(s);
	else if (e->data.ptr != s->ctx)
		on_client(e->data.ptr, e->events);
}

/* The earlier of two timeouts of epoll_wait; -1: for ever. */
static int min_timeout(int a, int b)
{
	if (a < 0 || b < 0)
		return a < 0 ? b : a;
	return a < b ? a : b;
}

static int next_timeout(struct server *s)
{
	int ms = iser_next_timeout(s->ctx);

	for (struct nbd_client *c = s->clients; c; c = c->next)
		if (nbd_client_is_ready(c))
			return 0;
	if (s->paused || s->leaving)
		ms = min_timeout(ms, PAUSE_MS);
	if (s->negotiating)
		ms = min_timeout(ms, CHECK_MS);
	return ms;
}

/* Sends replies, which frees their jobs: requests that waited for one begin. */
static void serve_clients(struct server *s)
{
	for (struct nbd_client *c = s->clients; c; c = c->next) {
		if (c->state != NBD_NEGOTIATING && c->replies)
			nbd_client_send(c);
		if (nbd_client_is_ready(c))
			nbd_client_receive(c);
		set_events(s, c);
	}
}

static void check_session(struct server *s)
{
	if (s->leaving || iser_is_connected(s->unit.session))
		return;
	say("%s at %s: session lost: NBD clients get ESHUTDOWN; start "
	    "nbd-serve again",
	    s->unit.url.target, s->unit.url.host);
	leave_server(s, EXIT_TRANSPORT);
}

static void run_turn(struct server *s)
{
	struct epoll_event e[EVENTS];
	int n = epoll_wait(s->epoll, e, EVENTS, next_timeout(s));

	s->paused = false;
	for (int i = 0; i < n; i++)
		on_event(s, &e[i]);
	if (iser_service(s->ctx, 0))
		leave_server(s, say_failed(s->ctx, ISER_E_SYSTEM));
	check_session(s);
	serve_clients(s);
	reap_clients(s);
}

/* Drops the clients that do not read their replies, and ends the session, with
 * the commands that the unit has not answered. */
static void stop_waiting(struct server *s)
{
	say("nbd-serve: requests in progress were dropped: they did not end in "
	    "time");
	for (struct nbd_client *c = s->clients; c; c = c->next)
		nbd_client_drop(c);
	nbd_unit_close(&s->unit);
	reap_clients(s);
}

static void serve_all(struct server *s)
{
	while (!s->leaving || s->clients) {
		if (s->leaving && now_ns() >= s->drain_until) {
			stop_waiting(s);
			break;
		}
		run_turn(s);
	}
}

/* ---- set-up ---- */

static int start_polling(struct server *s)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->signals < 0 || s->epoll < 0) {
		say("nbd-serve: cannot watch descriptors: %s", strerror(errno));
		return EXIT_GENERIC;
	}
	set_watch(s, s->signals, &s->signals, EPOLL_CTL_ADD, EPOLLIN);
	set_watch(s, iser_get_fd(s->ctx), s->ctx, EPOLL_CTL_ADD, EPOLLIN);
	set_listening(s, true);
	return 0;
}

static void make_export(struct server *s)
{
	const struct nbd_unit *u = &s->unit;

	s->export = (struct nbd_export){
		.name = s->name,
		.description = u->description,
		.size = u->blocks * u->block,
		.min_block = u->block,
		.preferred_block = u->block > 4096 ? u->block : 4096,
		.read_only = s->read_only || u->read_only,
		.can_trim = u->can_unmap,
		.has_extents = u->thin,
	};
}

/* Prints the line that a script waits for before it starts a client. */
static void print_uri(const struct server *s)
{
	char uri[sizeof(s->listener.uri) + NBD_NAME_MAX +
		 sizeof(s->listener.tail)];

	snprintf(uri, sizeof(uri), "%s%s%s", s->listener.uri, s->name,
		 s->listener.tail);
	if (s->common->json)
		print_json(json_pack("{s:s,s:I,s:I,s:b}", "uri", uri, "bytes",
				     (json_int_t)s->export.size, "block_size",
				     (json_int_t)s->unit.block, "read_only",
				     s->export.read_only));
	else
		puts(uri);
	fflush(stdout);
}

static int nbd_serve(struct server *s)
{
	int code = nbd_unit_open(&s->unit, s->ctx, s->url);

	if (!code && s->socket)
		code = nbd_listen_unix(&s->listener, s->socket);
	else if (!code)
		code = nbd_listen_tcp(&s->listener, s->listen);
	if (!code)
		code = start_polling(s);
	if (!code) {
		make_export(s);
		print_uri(s);
		serve_all(s);
		code = s->code;
	}
	nbd_listener_close(&s->listener);
	nbd_unit_close(&s->unit);
	if (s->epoll >= 0)
		close(s->epoll);
	if (s->signals >= 0)
		close(s->signals);
	return code;
}

/* ---- the command line ---- */

static enum opt_end set_name(void *into, const char *name, char why[OPT_WHY])
{
	struct server *s = into;

	if (strlen(name) <= 255 &&
	    strspn(name, "abcdefghijklmnopqrstuvwxyz"
			 "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
			 "0123456789-_.:") == strlen(name)) {
		s->name = name;
		return OPT_OK;
	}
	snprintf(why, OPT_WHY,
		 "must be at most 255 letters, digits and -_.: characters");
	return OPT_BAD;
}

static const struct opt_row rows[] = {
	{ .name = "socket",
	  .arg = "PATH",
	  OPT_TEXT(struct server, socket),
	  .help = "listen at a Unix socket that only its owner may use" },
	{ .name = "listen",
	  .arg = "HOST:PORT",
	  OPT_TEXT(struct server, listen),
	  .help = "listen at this loopback address, port 0: any free one; "
		  "without --socket and --listen " NBD_PORT },
	{ .name = "export",
	  .arg = "NAME",
	  .initial = "",
	  OPT_CALL(set_name),
	  .help = "name of the export; the empty name is the default export" },
	{ .name = "read-only",
	  OPT_FLAG(struct server, read_only),
	  .help = "refuse writes" },
	{ .name = "once",
	  OPT_FLAG(struct server, once),
	  .help = "end when the last client has left" },
};

static int run_nbd_serve(const struct call *call)
{
	struct server *s = call->args;
	int code;

	s->common = call->common;
	s->url = call->operands[0];
	s->listener.fd = s->epoll = s->signals = -1;
	if (s->socket && s->listen) {
		say("nbd-serve: --socket and --listen: give one of them");
		return EXIT_INVALID;
	}
	if (!s->listen)
		s->listen = NBD_PORT;
	s->ctx = open_context(s->common);
	code = s->ctx ? nbd_serve(s) : EXIT_NOMEM;
	iser_context_free(s->ctx);
	return code;
}

const struct command command_nbd_serve = {
	.name = "nbd-serve",
	.synopsis = "[OPTION]... URL",
	.summary = "serve a unit to NBD clients: qemu-img, nbdcopy, fio, "
		   "nbd-client",
	.notes = "The NBD URI is printed on standard output when clients may "
		 "connect. After\nSIGTERM the requests in progress are "
		 "completed, then the session is logged out.\n",
	.rows = rows,
	.nrows = ARRAY_LEN(rows),
	.args_size = sizeof(struct server),
	.min_operands = 1,
	.max_operands = 1,
	.run = run_nbd_serve,
};
