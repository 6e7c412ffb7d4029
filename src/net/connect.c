/* SPDX-License-Identifier: BSD-2-Clause */
/* connect.c: resolves a host's name and connects to its addresses in turn,
 * within a deadline. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "net/net.h"

#define WHY_MAX 384

struct net_connector {
	struct io_loop *l;
	/* the request */
	char host[256], port[8];
	bool is_too_long; /* host does not fit */
	xtime deadline;
	void (*done)(void *arg, int fd, const char *why);
	void *arg;
	/* resolving, on a helper thread */
	struct io_file_op resolve;
	struct addrinfo *found;
	int gai, gai_errno;
	bool resolving;
	bool dropped; /* done has been called or is not wanted */
	/* connecting */
	struct addrinfo *at;
	struct io_watch watch;
	struct io_timer timer;
	int err;	   /* of the last address tried */
	char why[WHY_MAX]; /* the sentence about err */
};

static void close_socket(struct net_connector *c)
{
	io_timer_clear(c->l, &c->timer);
	io_watch_del(c->l, &c->watch);
	if (c->watch.fd >= 0)
		close(c->watch.fd);
	c->watch.fd = -1;
}

static void connector_free(struct net_connector *c)
{
	close_socket(c);
	if (c->resolving) { /* the helper thread still writes to c */
		c->dropped = true;
		return;
	}
	if (c->found)
		freeaddrinfo(c->found);
	free(c);
}

/* finish_connect passes fd or -Exxx to done, and frees c. */
static void finish_connect(struct net_connector *c, int fd)
{
	void (*done)(void *arg, int fd, const char *why) = c->done;
	void *arg = c->arg;
	char why[WHY_MAX];

	memcpy(why, c->why, sizeof(why));
	connector_free(c);
	done(arg, fd, why);
}

/* ---- trying addresses ---- */

static void note_failure(struct net_connector *c, int err)
{
	struct net_addr a = { .len = c->at->ai_addrlen };
	char text[NET_ADDR_STR];

	memcpy(&a.sa, c->at->ai_addr, a.len);
	net_addr_str(&a, text);
	c->err = err;
	snprintf(c->why, sizeof(c->why), "cannot connect to %s: %s", text,
		 err == -ETIMEDOUT ? "no answer in time" : strerror(-err));
}

static unsigned addresses_left(const struct net_connector *c)
{
	unsigned n = 0;

	for (const struct addrinfo *a = c->at; a; a = a->ai_next)
		n++;
	return n;
}

/* A dead address must not use up the time of the addresses after it. */
static int start_clock(struct net_connector *c)
{
	xtime now = io_now_exact();

	if (c->deadline == XTIME_NEVER)
		return 0;
	return io_timer_set(c->l, &c->timer,
			    now + (c->deadline - now) / addresses_left(c));
}

/* try_address: 0: in progress or connected; -Exxx: it failed. */
static int try_address(struct net_connector *c)
{
	int err;

	c->watch.fd = socket(c->at->ai_family,
			     SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->watch.fd < 0)
		return -errno;
	if (connect(c->watch.fd, c->at->ai_addr, c->at->ai_addrlen) < 0 &&
	    errno != EINPROGRESS)
		return -errno;
	c->watch.want = IO_OUT;
	err = io_watch_add(c->l, &c->watch);
	return err ? err : start_clock(c);
}

static void give_up_address(struct net_connector *c, int err)
{
	note_failure(c, err);
	close_socket(c);
	c->at = c->at->ai_next;
}

static void try_next(struct net_connector *c)
{
	while (c->at) {
		int err = try_address(c);

		if (!err)
			return;
		give_up_address(c, err);
	}
	finish_connect(c, c->err);
}

static void connect_ready(struct io_watch *w, unsigned events)
{
	struct net_connector *c = container_of(w, struct net_connector, watch);
	socklen_t len = sizeof(int);
	int fd = w->fd, err = 0;

	(void)events;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
		err = errno;
	if (err) {
		give_up_address(c, -err);
		try_next(c);
		return;
	}
	io_watch_del(c->l, &c->watch);
	w->fd = -1;
	c->why[0] = '\0';
	finish_connect(c, fd);
}

static void out_of_time(struct io_timer *t)
{
	struct net_connector *c = container_of(t, struct net_connector, timer);

	if (c->resolving) {
		snprintf(c->why, sizeof(c->why),
			 "cannot resolve '%s': no answer in time", c->host);
		finish_connect(c, -ETIMEDOUT);
		return;
	}
	give_up_address(c, -ETIMEDOUT);
	if (io_now(c->l) >= c->deadline)
		finish_connect(c, c->err);
	else
		try_next(c);
}

/* ---- names ---- */

static int64_t resolve_host(struct io_file_op *op)
{
	struct net_connector *c =
		container_of(op, struct net_connector, resolve);
	struct addrinfo hints = { .ai_flags = AI_NUMERICSERV | AI_ADDRCONFIG,
				  .ai_socktype = SOCK_STREAM };
	struct net_addr a;

	if (c->is_too_long) { /* a truncated name would be another name */
		c->gai = EAI_NONAME;
		return 0;
	}
	/* AI_ADDRCONFIG omits families without a configured address, not
	 * counting loopback: do not use it for numeric addresses. */
	if (net_addr_parse(&a, c->host, 0) == 0)
		hints.ai_flags = AI_NUMERICSERV | AI_NUMERICHOST;
	c->gai = getaddrinfo(c->host, c->port, &hints, &c->found);
	c->gai_errno = errno;
	return 0;
}

static int errno_of_gai(const struct net_connector *c)
{
	switch (c->gai) {
	case EAI_SYSTEM:
		return -c->gai_errno;
	case EAI_MEMORY:
		return -ENOMEM;
	case EAI_AGAIN:
		return -EAGAIN;
	default:
		return -ENOENT;
	}
}

static void host_resolved(struct io_file_op *op, int64_t result)
{
	struct net_connector *c =
		container_of(op, struct net_connector, resolve);

	c->resolving = false;
	if (c->dropped) {
		connector_free(c);
		return;
	}
	io_timer_clear(c->l, &c->timer);
	if (result < 0 || c->gai) {
		snprintf(c->why, sizeof(c->why), "cannot resolve '%s': %s",
			 c->host,
			 result < 0 ? strerror((int)-result)
				    : gai_strerror(c->gai));
		finish_connect(c, result < 0 ? (int)result : errno_of_gai(c));
		return;
	}
	c->at = c->found;
	try_next(c);
}

struct net_connector *
net_connect(struct io_loop *l, const char *host, uint16_t port, xtime deadline,
	    void (*done)(void *arg, int fd, const char *why), void *arg)
{
	struct net_connector *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->l = l;
	c->deadline = deadline;
	c->done = done;
	c->arg = arg;
	c->is_too_long = strlen(host) >= sizeof(c->host);
	snprintf(c->host, sizeof(c->host), "%s", host);
	snprintf(c->port, sizeof(c->port), "%u", port);
	c->watch.fd = -1;
	c->watch.ready = connect_ready;
	c->timer.fire = out_of_time;
	if (io_timer_set(l, &c->timer, deadline)) {
		free(c);
		return NULL;
	}
	c->resolve.opcode = IO_FILE_CALL;
	c->resolve.call = resolve_host;
	c->resolve.done = host_resolved;
	c->resolving = true;
	io_file_submit(l, &c->resolve);
	return c;
}

void net_connect_cancel(struct net_connector *c)
{
	connector_free(c);
}
