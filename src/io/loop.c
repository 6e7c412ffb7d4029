/* SPDX-License-Identifier: BSD-2-Clause */
/* loop.c: the turn of the loop, and posts from other threads. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/bytes.h"
#include "io/loop.h"

xtime io_now(const struct io_loop *l)
{
	return l->now;
}

enum io_backend io_loop_backend(const struct io_loop *l)
{
	return l->ops->which;
}

const char *io_backend_name(enum io_backend b)
{
	switch (b) {
	case IO_URING:
		return "io_uring";
	case IO_EPOLL:
		return "epoll";
	case IO_AUTO:
		break;
	}
	return "auto";
}

void io_loop_set_spin(struct io_loop *l, xtime spin)
{
	l->spin.time = spin;
}

bool io_loop_spins(const struct io_loop *l)
{
	return l->spin.time > 0;
}

/* ---- other threads ---- */

/* Clear woken before collecting: a thread that finishes later writes again. */
static void wake_ready(struct io_watch *w, unsigned events)
{
	struct io_loop *l = container_of(w, struct io_loop, wake);
	uint64_t count;

	(void)events;
	if (read(w->fd, &count, sizeof(count)) < 0)
		return;
	atomic_store(&l->woken, false);
	io_pool_reap(l);
}

void io_loop_post(struct io_loop *l, struct io_post *p)
{
	p->next = atomic_load(&l->posts);
	while (!atomic_compare_exchange_weak(&l->posts, &p->next, p))
		;
	io_loop_wake(l);
}

static int run_posts(struct io_loop *l)
{
	struct io_post *newest, *p, *oldest = NULL;
	int n = 0;

	if (!atomic_load_explicit(&l->posts, memory_order_relaxed))
		return 0;
	newest = atomic_exchange(&l->posts, NULL);
	while ((p = newest)) {
		newest = p->next;
		p->next = oldest;
		oldest = p;
	}
	for (; (p = oldest); n++) {
		oldest = p->next;
		p->run(p);
	}
	return n;
}

/* Calls async-signal-safe functions only. */
void io_loop_stop(struct io_loop *l)
{
	uint64_t one = 1;
	int saved = errno;

	atomic_store(&l->stopping, true);
	if (write(l->wake.fd, &one, sizeof(one)) < 0)
		errno = saved; /* the counter is full: the loop wakes anyway */
}

/* ---- end of turn ---- */

void io_loop_defer(struct io_loop *l, struct io_defer *d)
{
	if (list_linked(&d->link))
		return;
	list_push_back(&l->deferred, &d->link);
	io_loop_poke(l);
}

void io_defer_cancel(struct io_defer *d)
{
	list_del(&d->link);
}

static int run_deferred(struct io_loop *l)
{
	struct list *d;
	int n = 0;

	for (; (d = list_pop_front(&l->deferred)); n++) {
		struct io_defer *defer = list_entry(d, struct io_defer, link);

		defer->run(defer);
	}
	return n;
}

/* ---- what goes on in later turns ---- */

/* The time of a turn for what gave way, except that one run may take longer. A client that
 * asks for little waits that long for the next turn. */
#define GIVEN_WAY_TIME (25 * XTIME_US)

void io_loop_give_way(struct io_loop *l, struct io_defer *d)
{
	if (list_linked(&d->link))
		return;
	list_push_back(&l->given_way, &d->link);
	io_loop_poke(l);
}

static int run_given_way(struct io_loop *l)
{
	xtime until;
	int n = 0;

	if (list_empty(&l->given_way))
		return 0;
	until = io_now_exact() + GIVEN_WAY_TIME;
	do {
		struct io_defer *d = list_entry(list_pop_front(&l->given_way),
						struct io_defer, link);

		d->run(d);
		n += 1 + run_deferred(l);
	} while (!list_empty(&l->given_way) && io_now_exact() < until);
	return n;
}

/* ---- files ---- */

void io_file_submit(struct io_loop *l, struct io_file_op *op)
{
	op->loop = l;
	l->nfiles++;
	l->nthreaded += io_file_is_threaded(op);
	l->ops->file(l, op);
	io_loop_poke(l);
}

/* ---- turns ---- */

/* Of drains_first. */
#define LATE_TIME  (XTIME_S / 2)
#define QUIET_TIME (XTIME_S / 10)
#define DRAIN_TIME XTIME_S

static xtime wait_at_most(const struct io_loop *l, xtime max_wait)
{
	xtime due = io_loop_next_timer(l);

	if (atomic_load_explicit(&l->posts, memory_order_relaxed))
		return 0;
	if (due == XTIME_NEVER)
		return max_wait;
	if (l->drain.until)
		due = l->drain.quiet_until;
	return due <= l->now ? 0 : MIN(max_wait, due - l->now);
}

static int wait_for_events(struct io_loop *l, xtime max_wait)
{
	xtime timeout = wait_at_most(l, max_wait);
	int n;

	l->spin.received = false;
	if (timeout > 0)
		timeout = io_spin(l, timeout);
	n = l->spin.received ? 1 : l->ops->wait(l, timeout);
	if (n > 0)
		l->spin.last_event = l->now;
	return n;
}

/*
 * Returns whether the timers wait for another turn. A timer is late if this process did not
 * run for a while: it was stopped, or its machine was suspended. What the timer is the
 * deadline of may have come meanwhile, or comes as soon as the peer finds room in the
 * socket. So events are handled first, until there are none for QUIET_TIME, and for
 * DRAIN_TIME at most.
 */
static bool drains_first(struct io_loop *l, int events)
{
	xtime pause = l->now - l->drain.last_turn;

	if (io_loop_next_timer(l) > l->now - LATE_TIME) {
		l->drain.until = 0;
		return false;
	}
	l->drain.last_turn = l->now;
	if (!l->drain.until || pause > LATE_TIME) /* or stopped once more */
		l->drain.until = l->now + DRAIN_TIME;
	else if (events == 0)
		return l->now < l->drain.quiet_until;
	l->drain.quiet_until = MIN(l->now + QUIET_TIME, l->drain.until);
	return l->now < l->drain.until;
}

static int run_turn(struct io_loop *l, xtime max_wait)
{
	int n, events;

	l->in_turn = true;
	l->now = io_now_exact();
	n = run_deferred(l); /* deferred since the last turn */
	/* the caller may wait for an effect of what ran: do not block */
	events = wait_for_events(l, n > 0 ? 0 : max_wait);
	if (events >= 0) {
		n += events;
		n += run_posts(l);
		if (!drains_first(l, events))
			n += io_timers_fire(l);
		n += run_deferred(l);
		n += run_given_way(l);
	}
	l->in_turn = false;
	return events < 0 ? events : n;
}

int io_loop_turn(struct io_loop *l, xtime max_wait)
{
	int n = run_turn(l, MAX(max_wait, 0)), err;

	if (n < 0 || !l->hosted)
		return n;
	/* the host may not call again for a long time */
	err = l->ops->begin(l);
	return err ? err : n;
}

int io_loop_run(struct io_loop *l)
{
	int n = 0;

	while (n >= 0 &&
	       !atomic_load_explicit(&l->stopping, memory_order_relaxed))
		n = run_turn(l, XTIME_NEVER);
	atomic_store(&l->stopping, false);
	return MIN(n, 0);
}

int io_loop_fd(struct io_loop *l)
{
	l->hosted = true;
	l->ops->begin(l); /* the next turn reports a failure */
	return l->ops->fd(l);
}

/* ---- life ---- */

/* Only a real ring shows whether this machine permits io_uring. */
static int choose_backend(struct io_loop *l, enum io_backend backend)
{
	int err = -ENOSYS;

	if (backend != IO_EPOLL) {
		l->ops = &io_uring_ops;
		err = l->ops->init(l);
	}
	if (err && backend != IO_URING) {
		l->ops = &io_epoll_ops;
		err = l->ops->init(l);
	}
	return err;
}

static int open_loop(struct io_loop *l, enum io_backend backend)
{
	int err;

	l->wake = (struct io_watch){
		.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
		.want = IO_IN,
		.ready = wake_ready,
	};
	if (l->wake.fd < 0)
		return -errno;
	err = choose_backend(l, backend);
	if (err)
		goto out_wake;
	err = io_watch_add(l, &l->wake);
	if (err)
		goto out_backend;
	return 0;

out_backend:
	l->ops->fini(l);
out_wake:
	close(l->wake.fd);
	return err;
}

struct io_loop *io_loop_new(enum io_backend backend, int *err)
{
	struct io_loop *l = calloc(1, sizeof(*l));

	*err = -ENOMEM;
	if (!l)
		return NULL;
	l->free_slot = IO_NO_SLOT;
	l->now = io_now_exact();
	if (sched_getaffinity(0, sizeof(l->cpus), &l->cpus))
		CPU_ZERO(&l->cpus);
	list_init(&l->deferred);
	list_init(&l->given_way);
	list_init(&l->rearm);
	list_init(&l->files);
	l->pool = io_pool_new(l);
	if (l->pool)
		*err = open_loop(l, backend);
	if (*err == 0)
		return l;
	io_pool_free(l->pool);
	free(l->slot);
	free(l);
	return NULL;
}

void io_loop_free(struct io_loop *l)
{
	if (!l)
		return;
	io_pool_free(l->pool);
	assert(l->nfiles == 0);
	io_watch_del(l, &l->wake);
	l->ops->fini(l);
	close(l->wake.fd);
	free(l->heap);
	free(l->slot);
	free(l);
}
