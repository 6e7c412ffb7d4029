/* SPDX-License-Identifier: BSD-2-Clause */
/* epoll.c: the back end for machines that forbid io_uring. aio.c and the helper
 * threads of pool.c carry out file operations. */
#include <errno.h>
#include <unistd.h>

#include "io/loop.h"

static int ep_init(struct io_loop *l)
{
	l->ep.fd = epoll_create1(EPOLL_CLOEXEC);
	return l->ep.fd < 0 ? -errno : 0;
}

static void ep_fini(struct io_loop *l)
{
	io_aio_fini(l);
	close(l->ep.fd);
}

static int ep_ctl(struct io_loop *l, int op, struct io_watch *w)
{
	struct epoll_event e = {
		.events = io_watch_poll_mask(w->want),
		.data.u64 = io_watch_key(l, w),
	};

	if (epoll_ctl(l->ep.fd, op, w->fd, &e) < 0)
		return -errno;
	w->armed = w->want | IO_ARMED;
	return 0;
}

static int ep_watch_add(struct io_loop *l, struct io_watch *w)
{
	return ep_ctl(l, EPOLL_CTL_ADD, w);
}

static void ep_watch_del(struct io_loop *l, struct io_watch *w)
{
	epoll_ctl(l->ep.fd, EPOLL_CTL_DEL, w->fd, NULL);
}

static int ep_begin(struct io_loop *l)
{
	struct list *n;
	int err = 0;

	io_aio_begin(l);
	while (!err && (n = list_pop_front(&l->rearm)))
		err = ep_ctl(l, EPOLL_CTL_MOD,
			     list_entry(n, struct io_watch, link));
	return err;
}

static int fetch_events(struct io_loop *l, int ms)
{
	if (l->ep.nevents > 0)
		return 0;
	l->ep.nevents = epoll_wait(l->ep.fd, l->ep.event, IO_EPOLL_MAX, ms);
	if (l->ep.nevents >= 0)
		return 0;
	l->ep.nevents = 0;
	return errno == EINTR ? 0 : -errno;
}

static bool ep_has_events(struct io_loop *l)
{
	return fetch_events(l, 0) < 0 || l->ep.nevents > 0;
}

/* Rounds up: waking before the timer is due would make the loop spin. */
static int to_ms(xtime t)
{
	if (t >= (xtime)INT32_MAX * XTIME_MS)
		return t == XTIME_NEVER ? -1 : INT32_MAX;
	return (int)((t + XTIME_MS - 1) / XTIME_MS);
}

/* epoll_wait has a resolution of milliseconds, epoll_pwait2 (Linux 5.11) of
 * nanoseconds. Where epoll_pwait2 is missing or forbidden, the wait is rounded
 * up, which is harmless. */
static int fetch_events_within(struct io_loop *l, xtime timeout)
{
	struct timespec ts = { .tv_sec = timeout / XTIME_S,
			       .tv_nsec = timeout % XTIME_S };

	if (timeout == 0 || timeout == XTIME_NEVER || timeout > 20 * XTIME_MS ||
	    l->ep.nevents > 0)
		return fetch_events(l, to_ms(timeout));
	l->ep.nevents =
		epoll_pwait2(l->ep.fd, l->ep.event, IO_EPOLL_MAX, &ts, NULL);
	if (l->ep.nevents >= 0)
		return 0;
	l->ep.nevents = 0;
	return errno == EINTR ? 0 : fetch_events(l, to_ms(timeout));
}

static int ep_wait(struct io_loop *l, xtime timeout)
{
	int err = ep_begin(l), n;

	if (!err)
		err = fetch_events_within(l, timeout);
	if (err)
		return err;
	l->now = io_now_exact();
	n = l->ep.nevents;
	l->ep.nevents = 0;
	for (int i = 0; i < n; i++) {
		const struct epoll_event *e = &l->ep.event[i];
		struct io_watch *w = io_watch_of_key(l, e->data.u64);
		unsigned events = w ? io_watch_events(w, e->events) : 0;

		if (!events)
			continue;
		io_spin_saw(l, w, events, n == 1);
		w->ready(w, events);
	}
	return n;
}

static void ep_file(struct io_loop *l, struct io_file_op *op)
{
	if (!io_aio_takes(l, op))
		io_pool_submit(l, op);
}

static int ep_fd(const struct io_loop *l)
{
	return l->ep.fd;
}

const struct io_backend_ops io_epoll_ops = {
	.which = IO_EPOLL,
	.polls_freely = false,
	.init = ep_init,
	.fini = ep_fini,
	.begin = ep_begin,
	.has_events = ep_has_events,
	.wait = ep_wait,
	.watch_add = ep_watch_add,
	.watch_del = ep_watch_del,
	.file = ep_file,
	.fd = ep_fd,
};
