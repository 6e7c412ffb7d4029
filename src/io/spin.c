/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * spin.c: polling before the loop blocks. While one watch alone has events, it
 * receives at once in place of asking the kernel whether there is input, which
 * saves two of four system calls of a request.
 */
#include "base/bytes.h"
#include "io/loop.h"

/* polls between two readings of the clock */
#define SPIN_POLLS 32
/* Where asking for other events is a system call: attempts between two of
 * them, and what a turn counts that an attempt began. */
#define ATTEMPTS_MAX 64
#define ATTEMPT_TURN 16

static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#endif
}

void io_spin_saw(struct io_loop *l, struct io_watch *w, unsigned events,
		 bool alone)
{
	l->spin.hot = alone && events == IO_IN && w->attempt ? w : NULL;
}

void io_spin_forget(struct io_loop *l, const struct io_watch *w)
{
	if (l->spin.hot == w)
		l->spin.hot = NULL;
}

bool io_watch_is_polled(const struct io_loop *l, const struct io_watch *w)
{
	return l->spin.time > 0 && l->spin.hot == w;
}

static bool is_time_for_others(struct io_loop *l)
{
	if (!l->spin.hot || l->ops->polls_freely)
		return true;
	if (++l->spin.attempts < ATTEMPTS_MAX)
		return false;
	l->spin.attempts = 0;
	return true;
}

static bool attempt(struct io_loop *l)
{
	struct io_watch *w = l->spin.hot;

	if (!w || !w->attempt(w))
		return false;
	l->spin.received = true;
	l->spin.attempts += ATTEMPT_TURN;
	return true;
}

static bool poll_events(struct io_loop *l)
{
	for (int i = 0; i < SPIN_POLLS; i++) {
		if (is_time_for_others(l) && l->ops->has_events(l))
			return true;
		if (attempt(l))
			return true;
		cpu_relax();
	}
	return false;
}

/* poll_until returns whether there are events before the time until. */
static bool poll_until(struct io_loop *l, xtime until)
{
	do {
		if (poll_events(l))
			return true;
		l->now = io_now_exact();
	} while (l->now < until);
	return false;
}

/* The back end does not watch the hot watch, which asks by itself. */
static void hold_back(struct io_watch *hot)
{
	if (!hot->armed)
		list_del(&hot->link);
}

static void let_watch(struct io_loop *l, struct io_watch *hot)
{
	if (!hot->armed && !list_linked(&hot->link))
		list_push_back(&l->rearm, &hot->link);
}

xtime io_spin(struct io_loop *l, xtime timeout)
{
	xtime start = l->now, until = l->spin.last_event + l->spin.time;
	struct io_watch *hot = l->spin.hot;
	bool found = false;

	l->spin.received = false;
	/* a thread that works on a file may wait for this CPU */
	if (l->spin.time == 0 || start >= until || l->nthreaded > 0)
		return timeout;
	if (hot && hot->want != IO_IN)
		hot = l->spin.hot = NULL;
	if (hot)
		hold_back(hot);
	if (timeout < until - start)
		until = start + timeout;
	if (l->ops->begin(l) == 0)
		found = poll_until(l, until);
	if (l->spin.hot) /* else the attempt has removed the watch */
		let_watch(l, l->spin.hot);
	if (found)
		return 0;
	return timeout == XTIME_NEVER ? timeout
				      : MAX(timeout - (l->now - start), 0);
}
