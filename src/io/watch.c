/* SPDX-License-Identifier: BSD-2-Clause */
/* watch.c: watches, and the keys by which the kernel knows them. */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "io/loop.h"

/* The back end uses the two low bits of a key; see uring.c. */
#define KEY_SHIFT 2
#define SLOT_MASK ((1u << (32 - KEY_SHIFT)) - 1)

uint64_t io_watch_key(const struct io_loop *l, const struct io_watch *w)
{
	return (uint64_t)l->slot[w->slot].generation << 32 |
	       (uint64_t)w->slot << KEY_SHIFT;
}

void io_watch_new_key(struct io_loop *l, struct io_watch *w)
{
	l->slot[w->slot].generation++;
}

struct io_watch *io_watch_of_key(const struct io_loop *l, uint64_t key)
{
	const struct io_slot *s = &l->slot[key >> KEY_SHIFT & SLOT_MASK];

	return s->generation == key >> 32 ? s->w : NULL;
}

uint32_t io_watch_poll_mask(unsigned want)
{
	return (want & IO_IN ? POLLIN : 0u) | (want & IO_OUT ? POLLOUT : 0u);
}

unsigned io_watch_events(const struct io_watch *w, uint32_t bits)
{
	unsigned events = 0;

	if (bits & POLLIN)
		events |= IO_IN;
	if (bits & POLLOUT)
		events |= IO_OUT;
	/* the next call on the descriptor returns the error */
	if (bits & (POLLERR | POLLHUP | POLLNVAL))
		events |= IO_ERR | IO_IN | IO_OUT;
	return events & (w->want | IO_ERR);
}

static int more_slots(struct io_loop *l)
{
	uint32_t n = l->nslots ? l->nslots * 2 : 16;
	struct io_slot *slot;

	if (n > SLOT_MASK)
		return -EMFILE;
	slot = realloc(l->slot, n * sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	for (uint32_t i = l->nslots; i < n; i++)
		slot[i] = (struct io_slot){
			.next_free = i + 1 < n ? i + 1 : IO_NO_SLOT,
		};
	l->free_slot = l->nslots;
	l->slot = slot;
	l->nslots = n;
	return 0;
}

static int take_slot(struct io_loop *l, struct io_watch *w)
{
	int err = l->free_slot == IO_NO_SLOT ? more_slots(l) : 0;

	if (err)
		return err;
	w->slot = l->free_slot;
	l->free_slot = l->slot[w->slot].next_free;
	l->slot[w->slot].w = w;
	return 0;
}

static void give_slot(struct io_loop *l, struct io_watch *w)
{
	struct io_slot *s = &l->slot[w->slot];

	s->w = NULL;
	s->generation++;
	s->next_free = l->free_slot;
	l->free_slot = w->slot;
}

int io_watch_add(struct io_loop *l, struct io_watch *w)
{
	int err;

	assert(!w->in_loop);
	err = take_slot(l, w);
	if (err)
		return err;
	list_init(&w->link);
	w->armed = 0;
	err = l->ops->watch_add(l, w);
	if (err) {
		give_slot(l, w);
		return err;
	}
	w->in_loop = true;
	io_loop_poke(l);
	return 0;
}

void io_watch_want(struct io_loop *l, struct io_watch *w, unsigned want)
{
	assert(w->in_loop);
	if (w->want == want)
		return;
	w->want = want;
	if (w->armed == (want | IO_ARMED))
		list_del(&w->link);
	else if (!list_linked(&w->link))
		list_push_back(&l->rearm, &w->link);
	io_loop_poke(l);
}

void io_watch_del(struct io_loop *l, struct io_watch *w)
{
	if (!w->in_loop)
		return;
	w->in_loop = false;
	io_spin_forget(l, w);
	list_del(&w->link);
	l->ops->watch_del(l, w);
	w->armed = 0;
	give_slot(l, w);
}
