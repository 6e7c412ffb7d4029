/* SPDX-License-Identifier: BSD-2-Clause */
/* timer.c: the timers of a loop, a binary heap of borrowed io_timers. */
#include <errno.h>
#include <stdlib.h>

#include "io/loop.h"

static void put_timer(struct io_loop *l, size_t i, struct io_timer *t)
{
	l->heap[i] = t;
	t->heap_index = i;
}

static void sift_up(struct io_loop *l, size_t i, struct io_timer *t)
{
	for (; i > 1 && l->heap[i / 2]->at > t->at; i /= 2)
		put_timer(l, i, l->heap[i / 2]);
	put_timer(l, i, t);
}

static void sift_down(struct io_loop *l, size_t i, struct io_timer *t)
{
	for (size_t child; (child = 2 * i) <= l->nheap; i = child) {
		if (child < l->nheap &&
		    l->heap[child + 1]->at < l->heap[child]->at)
			child++;
		if (l->heap[child]->at >= t->at)
			break;
		put_timer(l, i, l->heap[child]);
	}
	put_timer(l, i, t);
}

static void place_timer(struct io_loop *l, size_t i, struct io_timer *t)
{
	if (i > 1 && l->heap[i / 2]->at > t->at)
		sift_up(l, i, t);
	else
		sift_down(l, i, t);
}

static int make_room(struct io_loop *l)
{
	size_t room = l->heap_room ? l->heap_room * 2 : 64;
	struct io_timer **heap;

	if (l->nheap + 1 < l->heap_room)
		return 0;
	heap = realloc(l->heap, room * sizeof(struct io_timer *));
	if (!heap)
		return -ENOMEM;
	l->heap = heap;
	l->heap_room = room;
	return 0;
}

void io_timer_clear(struct io_loop *l, struct io_timer *t)
{
	size_t i = t->heap_index;
	struct io_timer *last;

	if (i == 0)
		return;
	t->heap_index = 0;
	last = l->heap[l->nheap--];
	if (last != t)
		place_timer(l, i, last);
}

int io_timer_set(struct io_loop *l, struct io_timer *t, xtime at)
{
	int err;

	if (at == XTIME_NEVER) {
		io_timer_clear(l, t);
		return 0;
	}
	t->at = at;
	if (t->heap_index) {
		place_timer(l, t->heap_index, t);
		return 0;
	}
	err = make_room(l);
	if (err)
		return err;
	sift_up(l, ++l->nheap, t);
	return 0;
}

xtime io_loop_next_timer(const struct io_loop *l)
{
	if (!list_empty(&l->given_way))
		return l->now;
	return l->nheap ? l->heap[1]->at : XTIME_NEVER;
}

int io_timers_fire(struct io_loop *l)
{
	/* a timer that is set again waits for the next turn */
	size_t most = l->nheap;
	int n = 0;

	while (most-- > 0 && l->nheap && l->heap[1]->at <= l->now) {
		struct io_timer *t = l->heap[1];

		io_timer_clear(l, t);
		t->fire(t);
		n++;
	}
	return n;
}
