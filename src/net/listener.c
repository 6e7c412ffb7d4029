/* SPDX-License-Identifier: BSD-2-Clause */
/* listener.c: a listening socket. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/bytes.h"
#include "net/net.h"

#define BACKLOG		1024
#define ACCEPT_PER_TURN 64
#define BACK_OFF	(100 * XTIME_MS)

struct net_listener {
	struct io_loop *l;
	struct io_watch watch;
	struct io_timer back_off; /* out of descriptors or memory */
	bool paused;		  /* by net_listener_pause */
	bool *gone;		  /* set if accepted frees the listener */
	/* closed to accept and close a connection when no other descriptor is
	 * free */
	int spare;
	void (*accepted)(void *arg, int fd, const struct net_addr *peer);
	void (*short_of)(void *arg, int err, const struct net_addr *peer);
	void *arg;
};

static void set_want(struct net_listener *n)
{
	bool off = n->paused || n->back_off.heap_index;

	io_watch_want(n->l, &n->watch, off ? 0 : IO_IN);
}

static void back_off_over(struct io_timer *t)
{
	set_want(container_of(t, struct net_listener, back_off));
}

static int spare_open(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int accept_socket(struct net_listener *n, struct net_addr *peer)
{
	int fd;

	peer->len = sizeof(peer->sa);
	fd = accept4(n->watch.fd, (struct sockaddr *)&peer->sa, &peer->len,
		     SOCK_CLOEXEC | SOCK_NONBLOCK);
	return fd >= 0 ? fd : -errno;
}

/*
 * No descriptor is free: closes the spare one, accepts the connection and
 * closes it. A connection that stays in the queue would make its peer wait and
 * the loop spin. 0: go on; -EAGAIN: the queue is empty; else the listener has
 * to pause.
 */
static int refuse_one(struct net_listener *n, int err)
{
	struct net_addr peer;
	int fd = -EMFILE;

	if (n->spare >= 0) {
		close(n->spare);
		fd = accept_socket(n, &peer);
		if (fd >= 0)
			close(fd);
		n->spare = spare_open();
	}
	if (fd == -EAGAIN)
		/* accept returns EMFILE even if the queue is empty */
		return fd;
	if (n->short_of)
		n->short_of(n->arg, err, fd >= 0 ? &peer : NULL);
	return fd >= 0 ? 0 : -EMFILE;
}

/* accept_one: 0; -EAGAIN: the queue is empty; else the listener has to
 * pause. */
static int accept_one(struct net_listener *n)
{
	struct net_addr peer;
	int fd = accept_socket(n, &peer);

	if (fd >= 0) {
		n->accepted(n->arg, fd, &peer);
		return 0;
	}
	switch (fd) {
	case -EMFILE:
	case -ENFILE:
		return refuse_one(n, fd);
	case -ENOBUFS:
	case -ENOMEM:
		if (n->short_of)
			n->short_of(n->arg, fd, NULL);
		return -EMFILE;
	case -EAGAIN:
		return -EAGAIN;
	default: /* that connection has failed; go on with the next */
		return 0;
	}
}

static void listener_ready(struct io_watch *w, unsigned events)
{
	struct net_listener *n = container_of(w, struct net_listener, watch);
	bool gone = false;
	int err = 0;

	(void)events;
	n->gone = &gone;
	for (int i = 0; i < ACCEPT_PER_TURN && !err && !gone; i++)
		err = n->paused ? -EAGAIN : accept_one(n);
	if (gone)
		return;
	n->gone = NULL;
	/* The queue stays full: without a pause the loop would spin. */
	if (err == -EMFILE &&
	    !io_timer_set(n->l, &n->back_off, io_now(n->l) + BACK_OFF))
		set_want(n);
}

static int open_socket(const struct net_addr *a)
{
	int fd = socket(a->sa.ss_family,
			SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int one = 1, err;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (a->sa.ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	if (bind(fd, (const struct sockaddr *)&a->sa, a->len) == 0 &&
	    listen(fd, BACKLOG) == 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

struct net_listener *
net_listen_fd(struct io_loop *l, int fd,
	      void (*accepted)(void *arg, int fd, const struct net_addr *peer),
	      void *arg, int *err)
{
	struct net_listener *n = calloc(1, sizeof(*n));

	*err = -ENOMEM;
	if (!n) {
		close(fd);
		return NULL;
	}
	n->l = l;
	n->accepted = accepted;
	n->arg = arg;
	n->back_off.fire = back_off_over;
	n->watch.want = IO_IN;
	n->watch.ready = listener_ready;
	n->watch.fd = fd;
	if (fcntl(fd, F_SETFL, O_NONBLOCK))
		*err = -errno;
	else
		*err = io_watch_add(l, &n->watch);
	if (*err) {
		close(fd);
		free(n);
		return NULL;
	}
	n->spare = spare_open();
	return n;
}

struct net_listener *net_listen(struct io_loop *l, const struct net_addr *a,
				void (*accepted)(void *arg, int fd,
						 const struct net_addr *peer),
				void *arg, int *err)
{
	int fd = open_socket(a);

	if (fd >= 0)
		return net_listen_fd(l, fd, accepted, arg, err);
	*err = fd;
	return NULL;
}

void net_listener_addr(const struct net_listener *n, struct net_addr *a)
{
	a->len = sizeof(a->sa);
	if (getsockname(n->watch.fd, (struct sockaddr *)&a->sa, &a->len))
		a->len = 0;
}

int net_listener_dup(const struct net_listener *n)
{
	int fd = fcntl(n->watch.fd, F_DUPFD_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

void net_listener_on_short(struct net_listener *n,
			   void (*short_of)(void *arg, int err,
					    const struct net_addr *peer))
{
	n->short_of = short_of;
}

void net_listener_pause(struct net_listener *n, bool pause)
{
	n->paused = pause;
	set_want(n);
}

void net_listener_free(struct net_listener *n)
{
	if (!n)
		return;
	if (n->gone)
		*n->gone = true;
	io_timer_clear(n->l, &n->back_off);
	io_watch_del(n->l, &n->watch);
	close(n->watch.fd);
	if (n->spare >= 0)
		close(n->spare);
	free(n);
}
