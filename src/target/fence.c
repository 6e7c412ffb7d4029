/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fence.c: the Response Fence of sessions with several connections (RFC 7143
 * §4.2.2.3.3). A fenced response waits until the initiator has acknowledged all
 * responses before it, on each connection. Later responses of its unit wait until the
 * initiator has acknowledged the fenced one. NOP-Ins ask for that; a connection whose
 * initiator does not answer ends by its own timeout. One response of a session is fenced
 * at a time; others wait for their turn.
 *
 * Where TaskReporting is RFC3720, only the first half holds, and only for functions that
 * abort the tasks of a unit or more (§11.6.1).
 *
 * A lost connection that waits for recovery (recover.c) counts as acknowledged when none
 * of its responses is left to be sent again.
 */
#include "target/internal.h"

static struct tgt_conn *conn_at(struct list *it)
{
	return list_entry(it, struct tgt_conn, session_link);
}

static bool has_several(const struct tgt_session *s)
{
	return s->conns.list.next != s->conns.list.prev ||
	       (!list_empty(&s->conns.list) && !list_empty(&s->conns.lost));
}

/* ---- acknowledgements ---- */

static bool is_acknowledged(const struct tgt_conn *c)
{
	return !sn_lt(c->numbers.expstatsn, c->fence.statsn);
}

static void wait_for(struct tgt_conn *c)
{
	c->fence.waits = true;
	c->fence.statsn = c->numbers.statsn;
}

static bool has_response(const struct tgt_conn *c)
{
	list_for_each(it, &c->session->tasks.active) {
		const struct tgt_task *t =
			list_entry(it, struct tgt_task, link);

		if (t->conn == c && t->state == TGT_TASK_RESPONSE &&
		    !tgt_is_held(&t->held))
			return true;
	}
	return false;
}

static bool is_live_clear(struct tgt_conn *c)
{
	if (c->fence.waits && is_acknowledged(c))
		c->fence.waits = false;
	return !c->fence.waits;
}

/* Asks for what the fence waits for. */
void tgt_fence_ask(struct tgt_conn *c)
{
	if (!is_live_clear(c) && !c->ping.pending && tgt_conn_open(c))
		tgt_ping(c);
}

/* All that the fence waits for is acknowledged. */
static bool is_clear(const struct tgt_session *s)
{
	list_for_each(it, &s->conns.list)
		if (!is_live_clear(conn_at(it)))
			return false;
	list_for_each(it, &s->conns.lost)
		if (conn_at(it)->fence.waits && has_response(conn_at(it)))
			return false;
	return true;
}

static void wait_for_none(struct tgt_session *s)
{
	list_for_each(it, &s->conns.list)
		conn_at(it)->fence.waits = false;
	list_for_each(it, &s->conns.lost)
		conn_at(it)->fence.waits = false;
}

/* All responses before the fenced one. Login Responses order nothing, and some
 * initiators take no NOP-In before their first request. A connection that is ending sends nothing more
 * that could be acknowledged. */
static void wait_for_all(struct tgt_session *s)
{
	wait_for_none(s);
	list_for_each(it, &s->conns.list) {
		struct tgt_conn *c = conn_at(it);

		if (!tgt_conn_open(c) || c->state == ISCSI_S6_IN_LOGOUT ||
		    c->numbers.statsn == c->fence.first)
			continue;
		wait_for(c);
		tgt_fence_ask(c);
	}
	list_for_each(it, &s->conns.lost)
		conn_at(it)->fence.waits = true;
}

/* ---- responses that wait ---- */

static struct tgt_held *held_at(struct list *it)
{
	return list_entry(it, struct tgt_held, link);
}

static bool is_of_same_unit(const struct dev_lu *a, const struct dev_lu *b)
{
	return !a || !b || a == b;
}

/* A response that is not fenced waits for the fenced ones of its unit. */
static bool is_behind_fence(const struct tgt_session *s,
			    const struct tgt_held *h)
{
	const struct tgt_fences *f = &s->fences;

	if (f->step == TGT_FENCE_AFTER && is_of_same_unit(f->lu, h->lu))
		return true;
	list_for_each(it, &f->held) {
		if (held_at(it) == h)
			return false;
		if (held_at(it)->fenced &&
		    is_of_same_unit(held_at(it)->lu, h->lu))
			return true;
	}
	return false;
}

static void take(struct tgt_held *h)
{
	list_del(&h->link);
	list_init(&h->link);
}

/* The fenced response has its turn. */
static void begin(struct tgt_session *s, struct tgt_held *h)
{
	s->fences.step = TGT_FENCE_BEFORE;
	s->fences.fenced = h;
	s->fences.lu = h->lu;
	wait_for_all(s);
}

/* All before it is acknowledged. */
/* [RFC 7143: 4.2.2.3.2 #2, 4.2.2.3.3 #3] */
static void send_fenced(struct tgt_session *s)
{
	struct tgt_held *h = s->fences.fenced;
	struct tgt_conn *c;

	wait_for_none(s);
	take(h);
	s->fences.step = TGT_FENCE_NONE;
	if (s->params.task_reporting == ISCSI_RFC3720 || !has_several(s)) {
		s->fences.fenced = NULL;
		h->send(h);
		return;
	}
	s->fences.step = TGT_FENCE_AFTER;
	c = h->send(h); /* may forget h: then fences.fenced is NULL */
	if (c)
		wait_for(c);
	if (c && !list_empty(&s->fences.held))
		tgt_fence_ask(c);
}

/* Sends what does not wait any more; returns whether a fenced response has its turn. */
static bool send_unfenced(struct tgt_session *s)
{
	struct list *it = s->fences.held.next;

	while (it != &s->fences.held) {
		struct tgt_held *h = held_at(it);

		if (h->fenced && s->fences.step == TGT_FENCE_NONE) {
			begin(s, h);
			return true;
		}
		it = it->next;
		if (h->fenced || is_behind_fence(s, h))
			continue;
		take(h);
		h->send(h);
		it = s->fences.held.next; /* the list may have changed */
	}
	return false;
}

void tgt_fence_acknowledged(struct tgt_session *s)
{
	do {
		if (s->fences.step != TGT_FENCE_NONE && !is_clear(s))
			return;
		if (s->fences.step == TGT_FENCE_BEFORE)
			send_fenced(s);
		else
			s->fences.step = TGT_FENCE_NONE;
		if (s->fences.step == TGT_FENCE_NONE)
			s->fences.fenced = NULL;
	} while (s->fences.step != TGT_FENCE_NONE || send_unfenced(s));
}

static bool is_idle(const struct tgt_session *s)
{
	return s->fences.step == TGT_FENCE_NONE && list_empty(&s->fences.held);
}

/* [RFC 7143: 4.2.2.3.2 #1 #3, 4.2.2.3.3 #1-2 #4, 11.6.1 #2,
 * 13.23 #3 #5] */
bool tgt_fence_holds(struct tgt_session *s, struct tgt_held *h, bool fenced)
{
	if (is_idle(s) && !(fenced && has_several(s)))
		return false;
	h->fenced = fenced;
	if (!fenced && (!s->fences.on || !is_behind_fence(s, h)))
		return false;
	list_push_back(&s->fences.held, &h->link);
	list_for_each(it, &s->conns.list)
		tgt_fence_ask(conn_at(it)); /* of a fenced one before it */
	tgt_fence_acknowledged(s);
	return true;
}

bool tgt_fence_would_hold(const struct tgt_session *s, const struct dev_lu *lu)
{
	const struct tgt_held h = { .lu = lu };

	return !is_idle(s) && is_behind_fence(s, &h);
}

void tgt_fence_resent(struct tgt_session *s, struct tgt_conn *c)
{
	if (s->fences.step != TGT_FENCE_NONE) {
		wait_for(c);
		tgt_fence_ask(c);
	}
}

void tgt_fence_forget(struct tgt_session *s, struct tgt_held *h)
{
	bool front =
		s->fences.step == TGT_FENCE_BEFORE && s->fences.fenced == h;

	if (s->fences.fenced == h)
		s->fences.fenced = NULL;
	if (tgt_is_held(h))
		take(h);
	if (front)
		s->fences.step = TGT_FENCE_NONE;
}
