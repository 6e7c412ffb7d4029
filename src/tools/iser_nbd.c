/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iser_nbd.c: iser nbd-serve URL: a unit for everybody who speaks NBD. One
 * thread; each turn reads requests of all clients, gives them to libiser, and
 * sends what is ready.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "nbd_client.h"
#include "nbd_listen.h"

#define MAX_CLIENTS 32
#define LEAVE_NS    10000000000u /* for what is under way at the end */
#define EVENTS	    64
#define REST_MS	    100	 /* when no descriptor is left for a client */
#define LOOK_MS	    1000 /* whether who negotiates is still at it */
#define NBD_PORT    "127.0.0.1:10809"

struct server {
	struct common common;
	/* the command line */
	const char *url, *socket, *listen, *name;
	bool once, read_only;
	/* state */
	struct iser_context *ctx;
	struct nbd_unit unit;
	struct nbd_export export;
	struct nbd_listener listener;
	struct nbd_client *clients;
	unsigned nclients, numbers;
	bool negotiating; /* one of them */
	int epoll, signals;
	bool listening; /* the listener is polled */
	bool resting;	/* ... and will be again, soon */
	bool leaving, any_served;
	uint64_t leave_by;
	int code;
};

/* ---- clients come and go ---- */

static void watch(struct server *s, int fd, void *what, int op, unsigned events)
{
	struct epoll_event e = { .events = events, .data.ptr = what };

	epoll_ctl(s->epoll, op, fd, &e);
}

/* A full house, or one without descriptors, leaves newcomers in the queue. */
static void set_listening(struct server *s, bool on)
{
	if (s->listening == on)
		return;
	s->listening = on;
	watch(s, s->listener.fd, &s->listener,
	      on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, EPOLLIN);
}

static void welcome(struct server *s)
{
	struct nbd_client *c;
	int fd;

	while (s->nclients < MAX_CLIENTS) {
		fd = nbd_accept(&s->listener);
		if (fd < 0) {
			s->resting = errno == EMFILE || errno == ENFILE ||
				     errno == ENOMEM || errno == ENOBUFS;
			break;
		}
		c = nbd_client_new(fd, ++s->numbers, &s->unit, &s->export);
		if (!c) {
			say("out of memory for a client");
			break;
		}
		c->next = s->clients;
		s->clients = c;
		s->nclients++;
		watch(s, fd, c, EPOLL_CTL_ADD, 0);
		nbd_client_send(c);
	}
	set_listening(s, s->nclients < MAX_CLIENTS && !s->resting);
}

static void leave(struct server *s, int code)
{
	if (s->leaving)
		return;
	s->leaving = true;
	s->leave_by = now_ns() + LEAVE_NS;
	if (!s->code)
		s->code = code;
	set_listening(s, false);
	for (struct nbd_client *c = s->clients; c; c = c->next)
		nbd_client_leave(c);
}

static void bury(struct server *s)
{
	struct nbd_client **p = &s->clients, *c;
	uint64_t now = now_ns();

	s->negotiating = false;
	while ((c = *p)) {
		s->negotiating |= nbd_client_hurry(c, now);
		if (!nbd_client_over(c)) {
			p = &c->next;
			continue;
		}
		*p = c->next;
		s->nclients--;
		s->any_served |= c->served;
		nbd_client_free(c);
	}
	if (s->once && s->any_served && s->nclients == 0)
		leave(s, 0);
	if (!s->leaving && !s->resting)
		set_listening(s, s->nclients < MAX_CLIENTS);
}

static void set_events(struct server *s, struct nbd_client *c)
{
	/* poll's and epoll's numbers are the same */
	unsigned events = nbd_client_wants(c);

	if (c->state == NBD_GONE && c->events != UINT32_MAX) {
		watch(s, c->fd, c, EPOLL_CTL_DEL, 0);
		c->events = UINT32_MAX;
	} else if (c->state != NBD_GONE && c->events != events) {
		watch(s, c->fd, c, EPOLL_CTL_MOD, events);
		c->events = events;
	}
}

/* ---- the loop ---- */

static void on_signal(struct server *s)
{
	struct signalfd_siginfo info;

	if (read(s->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (s->leaving) /* asked twice: at once */
		s->leave_by = 0;
	leave(s, 0);
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
		welcome(s);
	else if (e->data.ptr != s->ctx)
		on_client(e->data.ptr, e->events);
}

static int sooner(int a, int b)
{
	if (a < 0 || b < 0)
		return a < 0 ? b : a;
	return a < b ? a : b;
}

static int wait_for(struct server *s)
{
	int ms = sooner(iser_next_timeout(s->ctx), nbd_unit_timeout(&s->unit));

	for (struct nbd_client *c = s->clients; c; c = c->next)
		if (nbd_client_is_ready(c))
			return 0;
	if (s->resting || s->leaving)
		ms = sooner(ms, REST_MS);
	if (s->negotiating)
		ms = sooner(ms, LOOK_MS);
	return ms;
}

/* Answers free their jobs, so what waited for one can begin. */
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
	say("the session to %s at %s is lost; NBD clients are told",
	    s->unit.url.target, s->unit.url.host);
	leave(s, EXIT_TRANSPORT);
}

static void turn(struct server *s)
{
	struct epoll_event e[EVENTS];
	int n = epoll_wait(s->epoll, e, EVENTS, wait_for(s));

	s->resting = false;
	for (int i = 0; i < n; i++)
		on_event(s, &e[i]);
	if (iser_service(s->ctx, 0))
		leave(s, failed(s->ctx, ISER_E_SYSTEM));
	nbd_unit_tick(&s->unit);
	check_session(s);
	serve_clients(s);
	bury(s);
}

/* Time is up for those who do not read their answers, and for a unit that
 * does not answer: its session ends, and every command with it. */
static void give_up(struct server *s)
{
	say("not all that was under way is done");
	for (struct nbd_client *c = s->clients; c; c = c->next)
		nbd_client_drop(c);
	nbd_unit_close(&s->unit);
	bury(s);
}

static void serve(struct server *s)
{
	while (!s->leaving || s->clients) {
		if (s->leaving && now_ns() >= s->leave_by) {
			give_up(s);
			break;
		}
		turn(s);
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
		say("no descriptors: %s", strerror(errno));
		return EXIT_GENERIC;
	}
	watch(s, s->signals, &s->signals, EPOLL_CTL_ADD, EPOLLIN);
	watch(s, iser_get_fd(s->ctx), s->ctx, EPOLL_CTL_ADD, EPOLLIN);
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

/* One line on stdout: who waits for it knows that clients may come. */
static void announce(const struct server *s)
{
	char uri[sizeof(s->listener.uri) + NBD_NAME_MAX +
		 sizeof(s->listener.tail)];

	snprintf(uri, sizeof(uri), "%s%s%s", s->listener.uri, s->name,
		 s->listener.tail);
	if (s->common.json)
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
		announce(s);
		serve(s);
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

static bool set_name(struct server *s, const char *name)
{
	if (strlen(name) > 255 ||
	    strspn(name, "abcdefghijklmnopqrstuvwxyz"
			 "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
			 "0123456789-_.:") != strlen(name)) {
		say("--export takes letters, digits and -_.: (255 at most)");
		return false;
	}
	s->name = name;
	return true;
}

static bool set_option(struct server *s, int o, const char *arg)
{
	switch (o) {
	case 's':
		s->socket = arg;
		return true;
	case 'l':
		s->listen = arg;
		return true;
	case 'e':
		return set_name(s, arg);
	case '1':
		s->once = true;
		return true;
	case 'r':
		s->read_only = true;
		return true;
	default:
		return common_option(&s->common, o, arg);
	}
}

static bool parse(struct server *s, int argc, char **argv)
{
	static const struct option options[] = {
		COMMON_OPTIONS,
		{ "socket", required_argument, NULL, 's' },
		{ "listen", required_argument, NULL, 'l' },
		{ "export", required_argument, NULL, 'e' },
		{ "once", no_argument, NULL, '1' },
		{ "read-only", no_argument, NULL, 'r' },
		{ 0 },
	};
	int o;

	optind = 1;
	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (!set_option(s, o, optarg))
			return false;
	if (optind + 1 != argc || (s->socket && s->listen)) {
		say("nbd-serve takes one URL, and a socket or an address; "
		    "iser nbd-serve --help");
		return false;
	}
	if (!s->listen)
		s->listen = NBD_PORT;
	s->url = argv[optind];
	return true;
}

static int run(int argc, char **argv)
{
	struct server s = {
		.name = "",
		.listener.fd = -1,
		.epoll = -1,
		.signals = -1,
	};
	int code = EXIT_INVALID;

	if (!parse(&s, argc, argv))
		return code;
	s.ctx = open_context(&s.common);
	code = s.ctx ? nbd_serve(&s) : EXIT_NOMEM;
	iser_context_free(s.ctx);
	return code;
}

const struct command command_nbd_serve = {
	.name = "nbd-serve",
	.synopsis = "[OPTIONS] URL",
	.summary = "a unit for NBD clients: qemu-img, nbdcopy, fio, nbd-client",
	.help = "  --socket PATH        at a Unix socket that only its owner "
		"may use\n"
		"  --listen HOST:PORT   at a loopback address (" NBD_PORT
		"); port 0: any\n"
		"  --export NAME        under this name (the default export)\n"
		"  --read-only          no writes\n"
		"  --once               end when the last client has left\n"
		"A line with the NBD URI on stdout says that clients may "
		"come.\nSIGTERM: what is under way is done, then it logs "
		"out.\n",
	.run = run,
};
