/* SPDX-License-Identifier: BSD-2-Clause */
/* share.c: divides the memory of a worker among its sessions; see share.h. */
#include "device/share.h"

#include <assert.h>

void share_init(struct share *s, size_t common, size_t reserve, size_t burst)
{
	*s = (struct share){ .common = common,
			     .reserve = reserve,
			     .burst = burst };
	list_init(&s->waiting);
	list_init(&s->held);
	list_init(&s->granted);
}

void share_owner_init(struct share_owner *o)
{
	*o = (struct share_owner){ .used = 0 };
	list_init(&o->waiting);
	list_init(&o->held);
	list_init(&o->link);
	list_init(&o->held_link);
}

/* ---- the limits ---- */

static size_t common_free(const struct share *s)
{
	return s->common_out < s->common ? s->common - s->common_out : 0;
}

static enum share_part part_for(const struct share *s,
				const struct share_owner *o, size_t len)
{
	if (s->common == 0 || o->used + len <= SHARE_OWN)
		return SHARE_OF_OWN;
	if (o->used + 2 * len <= common_free(s))
		return SHARE_OF_COMMON;
	return SHARE_NOTHING;
}

static void charge(struct share *s, struct share_owner *o,
		   struct share_charge *c, enum share_part part, size_t len)
{
	*c = (struct share_charge){ .len = len, .part = part };
	if (part == SHARE_OF_BURST) {
		s->burst_out += len;
		return;
	}
	o->used += len;
	if (part == SHARE_OF_COMMON)
		s->common_out += len;
	else if (part == SHARE_OF_RESERVE)
		s->reserve_out += len;
}

bool share_take(struct share *s, struct share_owner *o, struct share_charge *c,
		size_t len)
{
	enum share_part part;

	if (!list_empty(&o->waiting))
		return false;
	part = part_for(s, o, len);
	if (part == SHARE_NOTHING)
		return false;
	charge(s, o, c, part, len);
	return true;
}

void share_force_burst(struct share *s, struct share_owner *o,
		       struct share_charge *c, size_t len)
{
	charge(s, o, c, SHARE_OF_BURST, len);
}

bool share_burst(struct share *s, struct share_owner *o, struct share_charge *c,
		 size_t len)
{
	bool fits = s->common == 0 || s->burst_out + len <= s->burst;

	if (!fits && s->turn != o)
		return false;
	charge(s, o, c, SHARE_OF_BURST, len);
	if (!fits) {
		c->beyond = true;
		s->burst_out -= len;
		o->beyond += len;
	}
	return true;
}

static struct share_wait *first_of(const struct list *waits)
{
	return list_entry(waits->next, struct share_wait, link);
}

/* must_go_on returns whether o cannot wait: the connection is not being read, or data
 * of waiting commands have arrived already. */
static bool must_go_on(const struct share_owner *o)
{
	return !list_empty(&o->held) || o->beyond != 0;
}

/* had_its_turn returns whether the reserve has no room for the next command of o,
 * whose turn it is. */
static bool had_its_turn(const struct share *s, const struct share_owner *o)
{
	const struct share_wait *w = first_of(&o->waiting);

	return !must_go_on(o) && s->turn_len != 0 &&
	       s->turn_len + w->charge.len > s->reserve;
}

/* end_turn ends the turn of a session whose commands all have their memory, or which
 * has used the limit of one turn. */
static void end_turn(struct share *s)
{
	const struct share_owner *o = s->turn;

	if (o && !must_go_on(o) && s->reserve_out == 0 &&
	    (list_empty(&o->waiting) || had_its_turn(s, o)))
		s->turn = NULL;
}

bool share_put(struct share *s, struct share_owner *o, struct share_charge *c)
{
	const struct list *helped = &s->waiting;

	switch (c->part) {
	case SHARE_NOTHING:
		return false;
	case SHARE_OF_OWN: /* helps no other session */
		helped = &o->waiting;
		break;
	case SHARE_OF_COMMON:
		s->common_out -= c->len;
		break;
	case SHARE_OF_RESERVE:
		s->reserve_out -= c->len;
		break;
	case SHARE_OF_BURST:
		if (!c->beyond) {
			s->burst_out -= c->len;
			break;
		}
		o->beyond -= c->len;
		break;
	}
	if (c->part != SHARE_OF_BURST)
		o->used -= c->len;
	*c = (struct share_charge){ .len = 0 };
	end_turn(s);
	return !list_empty(helped);
}

/* ---- waiting ---- */

static void enqueue(struct list *owners, struct list *owner_link,
		    struct list *waits, struct share_wait *w, size_t len)
{
	w->charge = (struct share_charge){ .len = len };
	w->granted = false;
	list_push_back(waits, &w->link);
	if (!list_linked(owner_link))
		list_push_back(owners, owner_link);
}

void share_wait_for(struct share *s, struct share_owner *o,
		    struct share_wait *w, size_t len)
{
	assert(len <= s->reserve);
	enqueue(&s->waiting, &o->link, &o->waiting, w, len);
}

void share_hold(struct share *s, struct share_owner *o, struct share_wait *w,
		size_t len)
{
	enqueue(&s->held, &o->held_link, &o->held, w, len);
}

static void leave(struct share_owner *o, struct share_wait *w)
{
	list_del(&w->link);
	if (list_empty(&o->waiting))
		list_del(&o->link);
	if (list_empty(&o->held))
		list_del(&o->held_link);
}

void share_cancel(struct share *s, struct share_owner *o, struct share_wait *w)
{
	if (!list_linked(&w->link))
		return;
	leave(o, w);
	if (w->granted)
		share_put(s, o, &w->charge);
	w->granted = false;
	end_turn(s);
}

static void grant(struct share *s, struct share_owner *o, struct share_wait *w)
{
	leave(o, w);
	w->granted = true;
	list_push_back(&s->granted, &w->link);
}

/* Serves one command of the session, which then goes after the other sessions. */
static bool serve_owner(struct share *s, struct share_owner *o)
{
	struct share_wait *w = first_of(&o->waiting);
	enum share_part part = part_for(s, o, w->charge.len);

	if (part == SHARE_NOTHING && o == s->turn && !had_its_turn(s, o) &&
	    s->reserve_out + w->charge.len <= s->reserve) {
		part = SHARE_OF_RESERVE;
		s->turn_len += w->charge.len;
	}
	if (part == SHARE_NOTHING)
		return false;
	charge(s, o, &w->charge, part, w->charge.len);
	grant(s, o, w);
	if (list_linked(&o->link)) {
		list_del(&o->link);
		list_push_back(&s->waiting, &o->link);
	}
	return true;
}

static bool serve_round(struct share *s)
{
	list_for_each(it, &s->waiting)
		if (serve_owner(s, list_entry(it, struct share_owner, link)))
			return true;
	return false;
}

static bool serve_held(struct share *s)
{
	list_for_each(it, &s->held) {
		struct share_owner *o =
			list_entry(it, struct share_owner, held_link);
		struct share_wait *w = first_of(&o->held);

		if (share_burst(s, o, &w->charge, w->charge.len)) {
			grant(s, o, w);
			return true;
		}
	}
	return false;
}

/* next_turn selects the next session that cannot continue without the reserve; false:
 * none. */
static bool next_turn(struct share *s)
{
	end_turn(s);
	if (s->turn)
		return false;
	list_for_each(it, &s->waiting) {
		struct share_owner *o =
			list_entry(it, struct share_owner, link);

		if (o->used && list_empty(&o->held))
			continue;
		s->turn = o;
		s->turn_len = 0;
		return true;
	}
	return false;
}

bool share_in_the_way(const struct share *s, const struct share_owner *o)
{
	if (o->used <= SHARE_OWN && s->turn != o)
		return false;
	list_for_each(it, &s->waiting)
		if (it != &o->link)
			return true;
	return false;
}

void share_serve(struct share *s)
{
	struct list *n;

	while (serve_round(s) || serve_held(s) || next_turn(s))
		;
	while ((n = list_pop_front(&s->granted))) {
		struct share_wait *w = list_entry(n, struct share_wait, link);

		w->granted = false;
		w->go(w);
	}
}
