/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link.c: the thread that has the connection to the server. If the connection is
 * lost, the requests that were sent fail, since the server may have carried them
 * out or not; later requests wait for the next connection for WAIT_TIME.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "backstore/nbd/internal.h"

#define WAIT_TIME    (30 * XTIME_S)
#define CONNECT_TIME (5 * XTIME_S)
#define AGAIN_TIME   XTIME_S

struct nbd_handle *bsnbd_configure(void)
{
	struct nbd_handle *h = nbd_create();

	if (h && nbd_add_meta_context(h, LIBNBD_CONTEXT_BASE_ALLOCATION)) {
		nbd_close(h);
		h = NULL;
	}
	return h;
}

static void say_state(const struct bsnbd *n, const char *what)
{
	char text[512];

	snprintf(text, sizeof(text), "%s: %s", n->bs.name, what);
	n->say(text);
}

/* ---- the connection ---- */

static void lose_connection(struct bsnbd *n)
{
	xtime now = io_now_exact();

	/* this call ends the steps that are in progress */
	nbd_close(n->h);
	n->h = NULL;
	if (!n->lost) {
		n->lost = now;
		/* the server may have lost what it did not flush */
		if (n->can_flush)
			bs_flush_failed(&n->bs);
		say_state(n, "the connection to the NBD server is lost; "
			     "commands wait for it 30 s");
	}
	n->again = now + AGAIN_TIME;
}

static bool is_usable(struct bsnbd *n)
{
	int64_t size = nbd_get_size(n->h);

	if (size < 0 ||
	    (!(n->bs.caps & BS_CAP_READ_ONLY) && nbd_is_read_only(n->h) != 0))
		return false;
	if (n->can_extents &&
	    nbd_can_meta_context(n->h, LIBNBD_CONTEXT_BASE_ALLOCATION) != 1)
		return false;
	if ((n->can_zero && nbd_can_zero(n->h) != 1) ||
	    (n->can_flush && nbd_can_flush(n->h) != 1) ||
	    (n->can_fua && nbd_can_fua(n->h) != 1))
		return false;
	pthread_mutex_lock(&n->lock);
	n->size_now = (uint64_t)size & ~((uint64_t)n->bs.block_size - 1);
	pthread_mutex_unlock(&n->lock);
	return true;
}

/* The connection is made: is it to the same export? */
static void take_connection(struct bsnbd *n)
{
	if (!is_usable(n)) {
		if (!n->is_other)
			say_state(n, "the NBD server serves another export "
				     "than before; commands fail until it "
				     "serves the same again");
		n->is_other = true;
		lose_connection(n);
		return;
	}
	n->lost = 0;
	n->is_other = false;
	say_state(n, "connected to the NBD server again");
	while (!list_empty(&n->waiting))
		bsnbd_issue(list_entry(list_pop_front(&n->waiting),
				       struct bsnbd_step, link));
}

static void connect_again(struct bsnbd *n)
{
	n->again = io_now_exact() + CONNECT_TIME;
	n->h = bsnbd_configure();
	if (n->h && nbd_aio_connect_uri(n->h, n->uri))
		lose_connection(n);
}

/* ---- steps ---- */

static bool is_connected(const struct bsnbd *n)
{
	return n->h && !n->lost;
}

static void take_queue(struct bsnbd *n)
{
	struct list steps;
	uint64_t count;

	list_init(&steps);
	if (read(n->wake, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return;
	pthread_mutex_lock(&n->lock);
	while (!list_empty(&n->queue))
		list_push_back(&steps, list_pop_front(&n->queue));
	pthread_mutex_unlock(&n->lock);
	while (!list_empty(&steps)) {
		struct bsnbd_step *s = list_entry(list_pop_front(&steps),
						  struct bsnbd_step, link);

		if (is_connected(n))
			bsnbd_issue(s);
		else
			list_push_back(&n->waiting, &s->link);
	}
}

/* Goes on with the steps whose last pieces have ended. */
static void issue_more(struct bsnbd *n)
{
	while (!list_empty(&n->more)) {
		struct bsnbd_step *s = list_entry(list_pop_front(&n->more),
						  struct bsnbd_step, link);

		if (is_connected(n))
			bsnbd_issue(s);
		else
			list_push_back(&n->waiting, &s->link);
	}
}

static void fail_waiting(struct bsnbd *n)
{
	while (!list_empty(&n->waiting))
		bsnbd_end(list_entry(list_pop_front(&n->waiting),
				     struct bsnbd_step, link),
			  ENOTCONN);
}

/* ---- the thread ---- */

/* Advances the handle by what poll has found. */
static void advance(struct bsnbd *n, short events)
{
	unsigned way = nbd_aio_get_direction(n->h);

	if (events & (POLLIN | POLLHUP | POLLERR) &&
	    way & LIBNBD_AIO_DIRECTION_READ)
		nbd_aio_notify_read(n->h);
	else if (events & (POLLOUT | POLLHUP | POLLERR) &&
		 way & LIBNBD_AIO_DIRECTION_WRITE)
		nbd_aio_notify_write(n->h);
}

/* Does what is due without an event: the next state of the connection. */
static void look_at_connection(struct bsnbd *n)
{
	xtime now = io_now_exact();

	if (n->h && (nbd_aio_is_dead(n->h) || nbd_aio_is_closed(n->h)))
		lose_connection(n);
	else if (n->h && n->lost && nbd_aio_is_ready(n->h))
		take_connection(n);
	else if (n->h && n->lost && now >= n->again)
		lose_connection(n); /* the server does not answer */
	else if (!n->h && now >= n->again)
		connect_again(n);
	if (n->lost && (n->is_other || now - n->lost > WAIT_TIME))
		fail_waiting(n);
}

static short wanted(struct bsnbd *n)
{
	unsigned way = n->h ? nbd_aio_get_direction(n->h) : 0;

	return (short)((way & LIBNBD_AIO_DIRECTION_READ ? POLLIN : 0) |
		       (way & LIBNBD_AIO_DIRECTION_WRITE ? POLLOUT : 0));
}

static bool is_stopped(struct bsnbd *n)
{
	bool stop;

	pthread_mutex_lock(&n->lock);
	stop = n->stop;
	pthread_mutex_unlock(&n->lock);
	return stop;
}

static void *run(void *arg)
{
	struct bsnbd *n = arg;

	while (!is_stopped(n)) {
		struct pollfd p[2] = {
			{ .fd = n->wake, .events = POLLIN },
			{ .fd = n->h ? nbd_aio_get_fd(n->h) : -1,
			  .events = wanted(n) },
		};

		if (poll(p, 2, is_connected(n) ? -1 : 100) < 0 &&
		    errno != EINTR)
			break;
		if (n->h && p[1].revents)
			advance(n, p[1].revents);
		look_at_connection(n);
		if (p[0].revents)
			take_queue(n);
		issue_more(n);
	}
	return NULL;
}

/* ---- for workers ---- */

void bsnbd_enqueue(struct bsnbd_step *s)
{
	struct bsnbd *n = s->store;
	uint64_t one = 1;
	bool first;

	pthread_mutex_lock(&n->lock);
	first = list_empty(&n->queue);
	list_push_back(&n->queue, &s->link);
	pthread_mutex_unlock(&n->lock);
	/* the counter of an eventfd takes 2^64 - 2 of these */
	if (first && write(n->wake, &one, sizeof(one)) < 0)
		assert(errno == EAGAIN);
}

int bsnbd_start(struct bsnbd *n)
{
	int err;

	pthread_mutex_init(&n->lock, NULL);
	list_init(&n->queue);
	list_init(&n->waiting);
	list_init(&n->more);
	n->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (n->wake < 0) {
		pthread_mutex_destroy(&n->lock);
		return -errno;
	}
	err = pthread_create(&n->thread, NULL, run, n);
	if (err) {
		close(n->wake);
		pthread_mutex_destroy(&n->lock);
	}
	return -err;
}

void bsnbd_stop(struct bsnbd *n)
{
	uint64_t one = 1;

	pthread_mutex_lock(&n->lock);
	n->stop = true;
	pthread_mutex_unlock(&n->lock);
	if (write(n->wake, &one, sizeof(one)) < 0)
		assert(errno == EAGAIN);
	pthread_join(n->thread, NULL);
	close(n->wake);
	pthread_mutex_destroy(&n->lock);
}
