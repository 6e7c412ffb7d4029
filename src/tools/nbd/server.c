/* SPDX-License-Identifier: BSD-2-Clause */
/* server.c: the loop of a server, and its clients. */
#include "tools/nbd/server.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define MAX_CLIENTS 32
#define DRAIN_NS    10000000000u /* for requests in progress at the end */
#define EVENTS	    64
#define PAUSE_MS    100	 /* until accept is tried again without descriptors */
#define CHECK_MS    1000 /* how often slow negotiations are looked for */

/* ---- clients come and go ---- */

/* Adds, changes or removes a descriptor of the loop; what: what on_event gets. */
static void set_watch(struct nbd_server *s, int fd, void *what, int op,
		      unsigned events)
{
	struct epoll_event e = { .events = events, .data.ptr = what };

	epoll_ctl(s->epoll, op, fd, &e);
}

/* While the listener is not polled, new clients wait in its queue: at the limit
 * of clients, and without descriptors. */
static void set_listening(struct nbd_server *s, bool on)
{
	if (s->listening == on || s->listener.fd < 0)
		return;
	s->listening = on;
	set_watch(s, s->listener.fd, &s->listener,
		  on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, EPOLLIN);
}

/* Adds a client; NULL: there was no memory for it. */
static bool add_client(struct nbd_server *s, struct nbd_client *c)
{
	if (!c) {
		say("NBD client: cannot serve it: out of memory");
		return false;
	}
	c->next = s->clients;
	s->clients = c;
	s->nclients++;
	set_watch(s, c->fd, c, EPOLL_CTL_ADD, 0);
	return true;
}

bool nbd_server_add(struct nbd_server *s, int fd)
{
	return add_client(s, nbd_client_new_serving(fd, ++s->last_number,
						    &s->unit, &s->export));
}

static void accept_clients(struct nbd_server *s)
{
	int fd;

	while (s->nclients < MAX_CLIENTS) {
		fd = nbd_accept(&s->listener);
		if (fd < 0) {
			s->paused = errno == EMFILE || errno == ENFILE ||
				    errno == ENOMEM || errno == ENOBUFS;
			break;
		}
		if (!add_client(s, nbd_client_new(fd, ++s->last_number,
						  &s->unit, &s->export)))
			break;
		nbd_unit_read_capacity(&s->unit);
	}
	set_listening(s, s->nclients < MAX_CLIENTS && !s->paused);
}

void nbd_server_leave(struct nbd_server *s, int code)
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
static void reap_clients(struct nbd_server *s)
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
		if (s->ops->left)
			s->ops->left(s, c);
		nbd_client_free(c);
	}
	if (s->once && s->any_served && s->nclients == 0)
		nbd_server_leave(s, 0);
	if (!s->leaving && !s->paused)
		set_listening(s, s->nclients < MAX_CLIENTS);
}

static void set_events(struct nbd_server *s, struct nbd_client *c)
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

static void on_signal(struct nbd_server *s)
{
	struct signalfd_siginfo info;

	if (read(s->signals, &info, sizeof(info)) != (ssize_t)sizeof(info) ||
	    info.ssi_signo == SIGCHLD) /* wakes the owner's turn */
		return;
	if (s->leaving) /* a second signal: do not wait */
		s->drain_until = 0;
	else
		s->ops->stop(s);
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

static void on_event(struct nbd_server *s, const struct epoll_event *e)
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

static int next_timeout(struct nbd_server *s)
{
	int ms = iser_next_timeout(s->ctx);

	if (s->ops->turn)
		ms = min_timeout(ms, s->ops->turn(s));

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
static void serve_clients(struct nbd_server *s)
{
	for (struct nbd_client *c = s->clients; c; c = c->next) {
		c->knows_size |= !s->unit.is_refreshing;
		if (c->state != NBD_NEGOTIATING && c->replies)
			nbd_client_send(c);
		if (nbd_client_is_ready(c))
			nbd_client_receive(c);
		set_events(s, c);
	}
}

static void check_session(struct nbd_server *s)
{
	if (s->leaving || iser_is_connected(s->unit.session))
		return;
	s->ops->lost(s);
}

static void run_turn(struct nbd_server *s)
{
	struct epoll_event e[EVENTS];
	int n = epoll_wait(s->epoll, e, EVENTS, next_timeout(s));

	s->paused = false;
	for (int i = 0; i < n; i++)
		on_event(s, &e[i]);
	if (iser_service(s->ctx, 0))
		nbd_server_leave(s, say_failed(s->ctx, ISER_E_SYSTEM));
	check_session(s);
	serve_clients(s);
	reap_clients(s);
}

/* Drops the clients that do not read their replies, and ends the session, with
 * the commands that the unit has not answered. */
static void stop_waiting(struct nbd_server *s)
{
	say("%s: requests in progress were dropped: they did not end in time",
	    s->command);
	for (struct nbd_client *c = s->clients; c; c = c->next)
		nbd_client_drop(c);
	nbd_unit_close(&s->unit);
	reap_clients(s);
}

int nbd_server_run(struct nbd_server *s)
{
	set_listening(s, s->listener.fd >= 0);
	while (!s->leaving || s->clients) {
		if (s->leaving && now_ns() >= s->drain_until) {
			stop_waiting(s);
			break;
		}
		run_turn(s);
	}
	return s->code;
}

/* ---- life ---- */

/* nohup has SIGHUP ignored: the server outlives its terminal then. */
static bool is_ignored(int signal)
{
	struct sigaction now;

	return !sigaction(signal, NULL, &now) && now.sa_handler == SIG_IGN;
}

static int start_polling(struct nbd_server *s)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	if (!is_ignored(SIGHUP))
		sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->signals < 0 || s->epoll < 0) {
		say("%s: cannot watch descriptors: %s", s->command,
		    strerror(errno));
		return EXIT_GENERIC;
	}
	set_watch(s, s->signals, &s->signals, EPOLL_CTL_ADD, EPOLLIN);
	set_watch(s, iser_get_fd(s->ctx), s->ctx, EPOLL_CTL_ADD, EPOLLIN);
	return 0;
}

static void make_export(struct nbd_server *s)
{
	const struct iser_unit_info *i = &s->unit.info;

	s->export = (struct nbd_export){
		.name = s->name,
		.description = s->unit.description,
		.size = i->bytes,
		.min_block = i->block_size,
		.preferred_block = i->block_size > 4096 ? i->block_size : 4096,
		.read_only = s->read_only || i->read_only,
		.can_trim = i->can_trim,
		.has_extents = i->thin,
	};
}

void nbd_server_init(struct nbd_server *s)
{
	s->listener.fd = s->epoll = s->signals = -1;
}

int nbd_server_open(struct nbd_server *s, const char *url)
{
	int code = nbd_unit_open(&s->unit, s->ctx, url, s->reconnect);

	if (!code)
		code = start_polling(s);
	if (!code)
		make_export(s);
	return code;
}

void nbd_server_close(struct nbd_server *s)
{
	nbd_listener_close(&s->listener);
	nbd_unit_close(&s->unit);
	if (s->epoll >= 0)
		close(s->epoll);
	if (s->signals >= 0)
		close(s->signals);
}
