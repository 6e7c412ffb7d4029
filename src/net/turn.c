/* SPDX-License-Identifier: BSD-2-Clause */
/* turn.c: see turn.h. */
#include "net/turn.h"

#include "base/bytes.h"

/* Control PDUs use the time up four times as fast, since most of them cost the peer far less than
 * this end. */
#define TURN_TIME      (100 * XTIME_US)
#define CONTROL_WEIGHT 4
/* Where one control PDU took far longer than that, the connection is not read for as long as the
 * peer owes, at most DEBT_MAX: other connections have their share meanwhile. */
#define DEBT_MAX (100 * XTIME_MS)

static void go_on(struct net_turn *t)
{
	t->is_spent = false;
	t->go_on(t);
}

static void run_later(struct io_defer *d)
{
	go_on(container_of(d, struct net_turn, later));
}

static void debt_paid(struct io_timer *timer)
{
	go_on(container_of(timer, struct net_turn, debt));
}

void net_turn_init(struct net_turn *t, struct io_loop *l,
		   void (*on)(struct net_turn *t))
{
	*t = (struct net_turn){ .l = l,
				.go_on = on,
				.later.run = run_later,
				.debt.fire = debt_paid };
	list_init(&t->later.link);
}

void net_turn_begin(struct net_turn *t)
{
	t->asked = t->used = t->by_control = 0;
	t->is_spent = false;
}

bool net_turn_count(struct net_turn *t, bool control)
{
	xtime now = io_now_exact(), took = t->asked ? now - t->asked : 0;

	t->asked = now;
	if (control) {
		took *= CONTROL_WEIGHT;
		t->by_control += took;
	}
	t->used += took;
	t->is_spent = t->used >= TURN_TIME;
	return t->is_spent;
}

void net_turn_end(struct net_turn *t)
{
	xtime debt = MIN(t->by_control - TURN_TIME, DEBT_MAX);

	if (!t->is_spent || net_turn_waits(t))
		return;
	if (debt < TURN_TIME ||
	    io_timer_set(t->l, &t->debt, io_now(t->l) + debt))
		io_loop_give_way(t->l, &t->later);
}

bool net_turn_waits(const struct net_turn *t)
{
	return list_linked(&t->later.link) || t->debt.heap_index;
}

void net_turn_cancel(struct net_turn *t)
{
	io_defer_cancel(&t->later);
	io_timer_clear(t->l, &t->debt);
}
