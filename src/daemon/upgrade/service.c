/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * service.c: the protocols of systemd. They are a datagram and a few variables,
 * which systemd documents as stable, so that libsystemd is not needed.
 */
#include "daemon/upgrade/service.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "daemon/daemon.h"
#include "daemon/log/say.h"
#include "daemon/upgrade/takeover.h"

#define FIRST_SOCKET 3		    /* SD_LISTEN_FDS_START */
#define STATUS_TIME  (10 * XTIME_S) /* between two updates */

struct service {
	struct sockaddr_un manager; /* length 0: nothing to notify */
	socklen_t manager_len;
	int fd;
	char status[128]; /* as last sent */
	unsigned reloads; /* in progress */
	/* sockets that were passed; -1: taken */
	int sockets[LISTEN_MAX];
	struct net_addr at[LISTEN_MAX]; /* where they listen */
	unsigned nsockets;
	/* the watchdog */
	xtime period; /* between two signs of life; 0: no watchdog */
	struct io_timer timer;
	bool has_timer;
	struct tour visit;
	bool visiting;
	bool is_next; /* has taken over: not the process that was started */
	struct daemon *daemon;
	unsigned (*count_sessions)(struct daemon *d);
};

/* ---- variables ---- */

/* Returns the value of a variable that is an unsigned number, or 0. */
static unsigned long long number_of(const char *text)
{
	unsigned long long v;
	char *end;

	if (!text || *text < '0' || *text > '9')
		return 0;
	v = strtoull(text, &end, 10);
	return *end ? 0 : v;
}

/* pid: the process that a variable is for, or NULL. A variable for another
 * process, such as the parent of this one, is ignored. */
static bool is_for_me(const char *pid)
{
	return !pid || number_of(pid) == (unsigned long long)getpid();
}

static bool find_manager(struct service *s)
{
	const char *path = getenv("NOTIFY_SOCKET");
	size_t len = path ? strlen(path) : 0;

	if (len < 2 || (*path != '/' && *path != '@') ||
	    len >= sizeof(s->manager.sun_path))
		return true;
	s->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (s->fd < 0) {
		say("socket of the service manager: %s", strerror(errno));
		return false;
	}
	s->manager.sun_family = AF_UNIX;
	memcpy(s->manager.sun_path, path, len);
	if (*path == '@') /* the abstract namespace: unix(7) */
		s->manager.sun_path[0] = '\0';
	s->manager_len =
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	return true;
}

static void find_watchdog(struct service *s)
{
	unsigned long long us = number_of(getenv("WATCHDOG_USEC"));

	if (us && us < 1000000000000ull && is_for_me(getenv("WATCHDOG_PID")))
		s->period = (xtime)us * XTIME_US / 2;
}

/* ---- sockets ---- */

static const char *socket_complaint(int fd)
{
	int type = 0, listens = 0, domain = 0;
	socklen_t len = sizeof(int);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) ||
	    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len))
		return strerror(errno);
	if ((domain != AF_INET && domain != AF_INET6) || type != SOCK_STREAM ||
	    !listens)
		return "not a listening TCP socket; give ListenStream= with an "
		       "address, and Accept=no";
	return NULL;
}

static int find_sockets(struct service *s)
{
	unsigned long long n = number_of(getenv("LISTEN_FDS"));

	if (!n || !is_for_me(getenv("LISTEN_PID")))
		return 0;
	if (n > LISTEN_MAX) {
		say("LISTEN_FDS: %llu sockets; pass at most %u", n, LISTEN_MAX);
		return EXIT_NETWORK;
	}
	for (int fd = FIRST_SOCKET; fd < FIRST_SOCKET + (int)n; fd++) {
		const char *why = socket_complaint(fd);

		if (why) {
			say("LISTEN_FDS: descriptor %d: %s", fd, why);
			return EXIT_NETWORK;
		}
		fcntl(fd, F_SETFD, FD_CLOEXEC);
		s->at[s->nsockets].len = sizeof(s->at[0].sa);
		getsockname(fd, (struct sockaddr *)&s->at[s->nsockets].sa,
			    &s->at[s->nsockets].len);
		s->sockets[s->nsockets++] = fd;
	}
	return 0;
}

bool service_has_sockets(const struct service *s)
{
	for (unsigned i = 0; s && i < s->nsockets; i++)
		if (s->sockets[i] >= 0)
			return true;
	return false;
}

static bool is_same(const struct net_addr *a, const struct net_addr *b)
{
	char x[NET_ADDR_STR], y[NET_ADDR_STR];

	net_addr_str(a, x);
	net_addr_str(b, y);
	return !strcmp(x, y);
}

int service_take_socket(struct service *s, const struct net_addr *a)
{
	for (unsigned i = 0; s && i < s->nsockets; i++) {
		int fd = s->sockets[i];

		if (fd < 0 || (a && !is_same(&s->at[i], a)))
			continue;
		s->sockets[i] = -1;
		return fd;
	}
	return -1;
}

/* ---- notifications ---- */

/* A notification that cannot be sent is lost: a manager that is busy must not
 * stop iserd. */
static void notify(const struct service *s, const char *text)
{
	(void)!sendto(s->fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL,
		      (const struct sockaddr *)&s->manager, s->manager_len);
}

static void make_status(const struct service *s, char out[128])
{
	unsigned luns = s->daemon->nunits;
	unsigned sessions = s->count_sessions(s->daemon);

	snprintf(out, 128, "STATUS=serving %u LUN%s to %u session%s", luns,
		 luns == 1 ? "" : "s", sessions, sessions == 1 ? "" : "s");
}

static void update_status(struct service *s)
{
	char status[sizeof(s->status)];

	make_status(s, status);
	if (strcmp(status, s->status) == 0)
		return;
	memcpy(s->status, status, sizeof(status));
	notify(s, status);
}

/* ---- the watchdog ---- */

static void visit_worker(struct tour *t, struct worker *w)
{
	(void)t;
	(void)w;
}

static void visit_end(struct tour *t)
{
	struct service *s = container_of(t, struct service, visit);

	s->visiting = false;
	notify(s, "WATCHDOG=1");
}

/* A sign of life needs the loop of each worker. While one does not answer, systemd gets none. */
static void visit_workers(struct service *s)
{
	if (s->visiting)
		return;
	s->visiting = true;
	workers_visit(s->daemon, &s->visit, visit_worker, visit_end);
}

static void do_chores(struct io_timer *t)
{
	struct service *s = container_of(t, struct service, timer);
	struct io_loop *l = s->daemon->loops[0];

	if (s->daemon->phase == DAEMON_SERVING)
		update_status(s);
	if (s->period)
		visit_workers(s);
	(void)io_timer_set(l, t,
			   io_now(l) + (s->period ? MIN(s->period, STATUS_TIME)
						  : STATUS_TIME));
}

/* ---- takeover ---- */

char *service_variable(const struct service *s)
{
	char *text;
	int n;

	if (!s || !s->manager_len)
		return NULL;
	n = asprintf(&text, "NOTIFY_SOCKET=%c%s",
		     s->manager.sun_path[0] ? s->manager.sun_path[0] : '@',
		     s->manager.sun_path + 1);
	return n < 0 ? NULL : text;
}

int64_t service_watchdog(const struct daemon *d)
{
	return d->service ? d->service->period / XTIME_US * 2 : 0;
}

void service_hand_over(const struct daemon *d, int sock)
{
	struct service *s = d->service;
	struct ucred peer;
	socklen_t len = sizeof(peer);
	char text[40];

	if (!s || !s->manager_len ||
	    getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) ||
	    peer.pid <= 0)
		return;
	snprintf(text, sizeof(text), "MAINPID=%ld", (long)peer.pid);
	notify(s, text);
	s->is_next = true; /* if this process serves again */
}

void service_alive(const struct daemon *d)
{
	const struct service *s = d->service;

	if (s && s->manager_len && s->period)
		notify(s, "WATCHDOG=1");
}

void service_take_over(struct daemon *d)
{
	struct service *s = d->service;

	s->is_next = true;
	if (!s->period && d->inherited->watchdog > 0)
		s->period = (xtime)d->inherited->watchdog * XTIME_US / 2;
}

void service_resume(struct service *s, struct daemon *d)
{
	d->service = s;
	s->daemon = d;
	s->visiting = false;
	s->reloads = 0;
	for (unsigned i = 0; i < s->nsockets; i++)
		s->sockets[i] = handover_take_listener(d->inherited, &s->at[i]);
}

/* ---- states ---- */

void service_ready(struct daemon *d)
{
	struct service *s = d->service;
	char text[200], pid[32] = "";

	if (!s || !s->manager_len || d->phase != DAEMON_SERVING)
		return;
	make_status(s, s->status);
	if (s->is_next)
		snprintf(pid, sizeof(pid), "MAINPID=%ld\n", (long)getpid());
	snprintf(text, sizeof(text), "%sREADY=1\n%s", pid, s->status);
	notify(s, text);
	if (!s->has_timer) {
		s->has_timer = true;
		do_chores(&s->timer);
	}
}

void service_reloading(struct daemon *d)
{
	struct service *s = d->service;
	char text[160];
	struct timespec ts;

	if (!s || !s->manager_len)
		return;
	s->reloads++;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%llu",
		 (unsigned long long)ts.tv_sec * 1000000 +
			 (unsigned long long)ts.tv_nsec / 1000);
	notify(s, text);
}

void service_reloaded(struct daemon *d)
{
	struct service *s = d->service;

	if (s && s->reloads && !--s->reloads)
		service_ready(d);
}

void service_stopping(struct daemon *d, const char *why)
{
	const struct service *s = d->service;
	char text[160];

	if (!s || !s->manager_len)
		return;
	snprintf(text, sizeof(text), "STOPPING=1\nSTATUS=%.100s: shutting down",
		 why);
	notify(s, text);
}

/* ---- the whole ---- */

int service_open(struct daemon *d, unsigned (*count_sessions)(struct daemon *d))
{
	static const char *const variables[] = {
		"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
		"LISTEN_FDS",	 "LISTEN_PID",	  "LISTEN_FDNAMES",
	};
	struct service *s = calloc(1, sizeof(*s));
	int err = EXIT_ERROR;

	if (!s) {
		say("out of memory");
		return EXIT_ERROR;
	}
	d->service = s;
	s->daemon = d;
	s->count_sessions = count_sessions;
	s->fd = -1;
	s->timer.fire = do_chores;
	if (find_manager(s))
		err = find_sockets(s);
	find_watchdog(s);
	for (size_t i = 0; i < ARRAY_LEN(variables); i++)
		unsetenv(variables[i]);
	return err;
}

void service_stop(struct daemon *d)
{
	struct service *s = d->service;

	if (s && s->has_timer)
		io_timer_clear(d->loops[0], &s->timer);
	if (s)
		s->has_timer = false;
}

void service_close(struct daemon *d)
{
	struct service *s = d->service;

	if (!s)
		return;
	for (unsigned i = 0; i < s->nsockets; i++)
		if (s->sockets[i] >= 0)
			close(s->sockets[i]);
	if (s->fd >= 0)
		close(s->fd);
	free(s);
	d->service = NULL;
}
