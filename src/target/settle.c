/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * settle.c: the end of what only earlier directories have. Each use remembers the
 * generation of its directory; a new directory is settled when no use on the
 * worker has an older one.
 */
#include "target/internal.h"

static bool is_settled(const struct tgt_worker *w, const struct tgt_settling *s)
{
	list_for_each(it, &w->uses)
		if (list_entry(it, struct tgt_use, link)->generation <
		    s->generation)
			return false;
	return true;
}

static void check(struct tgt_worker *w)
{
	while (!list_empty(&w->settling)) {
		struct tgt_settling *s =
			list_entry(w->settling.next, struct tgt_settling, link);

		if (!is_settled(w, s))
			return; /* nor are those after it */
		list_del(&s->link);
		s->settled(s);
	}
}

void tgt_use_begin(struct tgt_worker *w, struct tgt_use *u)
{
	u->generation = w->generation;
	list_push_back(&w->uses, &u->link);
}

void tgt_use_renew(struct tgt_worker *w, struct tgt_use *u)
{
	u->generation = w->generation;
	check(w);
}

void tgt_use_end(struct tgt_worker *w, struct tgt_use *u)
{
	list_del(&u->link);
	check(w);
}

void tgt_settle(struct tgt_worker *w, struct tgt_settling *s,
		void (*settled)(struct tgt_settling *s))
{
	s->generation = w->generation;
	s->settled = settled;
	list_push_back(&w->settling, &s->link);
	check(w);
}
