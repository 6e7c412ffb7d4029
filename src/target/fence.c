/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fence.c: the wait before the response to a function that aborts tasks of a session with
 * several connections (RFC 7143 §11.6.1, §4.2.2.3.3 b): the initiator has to acknowledge
 * all responses before it, on each connection. NOP-Ins ask for that; a connection whose
 * initiator does not answer ends by its own timeout.
 */
#include "target/internal.h"

static bool is_acknowledged(const struct tgt_conn *c, uint32_t statsn)
{
	return !sn_lt(c->numbers.expstatsn, statsn);
}

/* [RFC 7143: 11.6.1 #2] */
bool tgt_fence_begin(struct tgt_fence *f, struct tgt_session *s)
{
	bool several = s->conns.list.next != s->conns.list.prev;

	f->n = 0;
	list_for_each(it, &s->conns.list) {
		struct tgt_conn *c =
			list_entry(it, struct tgt_conn, session_link);
		uint32_t statsn = c->numbers.statsn;

		if (!several || !tgt_conn_open(c) ||
		    c->state != ISCSI_S5_LOGGED_IN ||
		    is_acknowledged(c, statsn) || f->n == ARRAY_LEN(f->at))
			continue;
		f->at[f->n].conn = c;
		f->at[f->n++].statsn = statsn;
		if (!c->pinging)
			tgt_ping(c);
	}
	f->waits = f->n;
	return f->waits;
}

bool tgt_fence_is_clear(struct tgt_fence *f)
{
	unsigned i = 0;

	while (i < f->n)
		if (is_acknowledged(f->at[i].conn, f->at[i].statsn))
			f->at[i] = f->at[--f->n];
		else
			i++;
	return f->n == 0;
}

void tgt_fence_forget(struct tgt_fence *f, const struct tgt_conn *c)
{
	for (unsigned i = 0; i < f->n; i++)
		if (f->at[i].conn == c)
			f->at[i--] = f->at[--f->n];
}
