/* SPDX-License-Identifier: BSD-2-Clause */
/* wire.c: see wire.h. */
#include "sim/wire.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bufv.h"
#include "base/bytes.h"
#include "base/err.h"

#define PIECES 64

uint32_t wire_random(struct wire *w, uint32_t n)
{
	w->seed = w->seed * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)w->seed * n >> 32);
}

static void kick(struct stream_host *host)
{
	container_of(host, struct wire_end, host)->kicked = true;
}

/* Often, so that cores give way at many places; by numbers of its own, so that the rest of a
 * run stays as it is. */
static bool is_spent(struct stream_host *host, bool control)
{
	struct wire_end *e = container_of(host, struct wire_end, host);

	e->spends = e->spends * 1664525u + 1013904223u;
	e->is_spent = e->spends >> 30 < (control ? 2 : 1);
	return e->is_spent;
}

void wire_init(struct wire *w, const struct wire_config *cfg)
{
	memset(w, 0, sizeof(*w));
	w->cfg = *cfg;
	w->seed = cfg->seed;
	w->now = XTIME_S;
	for (unsigned i = 0; i < 2; i++) {
		w->end[i].host.kick = kick;
		w->end[i].host.is_spent = is_spent;
		w->end[i].spends = cfg->seed + i;
		w->end[i].last = &w->end[i].first;
	}
}

static void drop_chunk(struct wire_end *e)
{
	struct wire_chunk *c = e->first;

	e->first = c->next;
	if (!e->first)
		e->last = &e->first;
	free(c);
}

void wire_fini(struct wire *w)
{
	for (unsigned i = 0; i < 2; i++)
		while (w->end[i].first)
			drop_chunk(&w->end[i]);
}

struct stream_host *wire_host(struct wire *w, unsigned end)
{
	return &w->end[end].host;
}

void wire_attach(struct wire *w, unsigned end, const struct stream_ops *ops,
		 void *core)
{
	struct wire_end *e = &w->end[end];

	e->ops = ops;
	e->core = core;
	e->open = e->kicked = true;
}

bool wire_is_open(const struct wire *w, unsigned end)
{
	return w->end[end].open;
}

static struct wire_end *other(struct wire *w, struct wire_end *e)
{
	return &w->end[e == &w->end[0] ? 1 : 0];
}

/* ---- the end of a connection ---- */

static void close_end(struct wire *w, struct wire_end *e, int err, int to_peer)
{
	if (!e->open)
		return;
	e->open = false;
	while (e->first)
		drop_chunk(e);
	other(w, e)->fin = true;
	other(w, e)->fin_err = to_peer;
	e->ops->closed(e->core, err, w->now);
}

static void cut(struct wire *w)
{
	for (unsigned i = 0; i < 2; i++)
		close_end(w, &w->end[i], ERR_RESET, ERR_RESET);
}

/* ---- bytes ---- */

static size_t chunk_of(struct wire *w, size_t most)
{
	if (w->cfg.max_chunk == 0 || most <= 1)
		return most;
	return 1 + wire_random(w, (uint32_t)MIN(most, w->cfg.max_chunk));
}

static size_t copy_arrived(struct wire_end *e, const struct bufv *to,
			   size_t most, xtime now)
{
	size_t done = 0;

	while (done < most && e->first && e->first->at <= now) {
		struct wire_chunk *c = e->first;
		size_t n = MIN(most - done, c->len - c->taken);

		bufv_copy_in(to, done, c->bytes + c->taken, n);
		done += n;
		c->taken += n;
		e->queued -= n;
		if (c->taken == c->len)
			drop_chunk(e);
	}
	return done;
}

static bool take_in(struct wire *w, struct wire_end *e)
{
	struct iovec iov[PIECES];
	struct bufv to;
	bool goes_on = e->is_spent && e->open;
	size_t n;

	e->is_spent = false;
	if (goes_on) { /* with the input that it kept; more arrives later */
		e->ops->rx_where(e->core, iov, PIECES);
		return true;
	}
	if (!e->first || e->first->at > w->now || e->deaf)
		return false;
	n = e->ops->rx_where(e->core, iov, 2 + wire_random(w, PIECES - 1));
	if (n == 0)
		return false;
	to = bufv_of(iov, (unsigned)n);
	assert(to.len > 0);
	n = copy_arrived(e, &to, chunk_of(w, to.len), w->now);
	e->ops->rx_done(e->core, n, w->now);
	return true;
}

static void append(struct wire *w, struct wire_end *from, const struct bufv *v,
		   size_t n)
{
	struct wire_end *to = other(w, from);
	struct wire_chunk *c = malloc(sizeof(*c) + WIRE_FILTER_ROOM + n);
	uint8_t *sent = c->bytes + (w->cfg.filter ? WIRE_FILTER_ROOM : 0);

	assert(c);
	c->next = NULL;
	c->len = n;
	c->taken = 0;
	bufv_copy_out(v, 0, sent, n);
	c->at = w->now;
	if (w->cfg.max_delay)
		c->at += wire_random(w, (uint32_t)w->cfg.max_delay);
	to->newest = c->at = MAX(c->at, to->newest);
	if (w->cfg.tap)
		w->cfg.tap(w->cfg.arg, from == &w->end[1], sent, n);
	if (w->cfg.damage)
		w->cfg.damage(w->cfg.arg, from == &w->end[1], sent, n);
	if (w->cfg.filter)
		c->len = n = w->cfg.filter(w->cfg.arg, from == &w->end[1],
					   c->bytes, sent, n);
	if (n == 0) {
		free(c);
		return;
	}
	*to->last = c;
	to->last = &c->next;
	to->queued += n;
}

/* send_out returns whether bytes were sent; *was_cut: the cut was reached. */
static bool send_out(struct wire *w, struct wire_end *e, bool *was_cut)
{
	uint64_t left = w->cfg.cut[e == &w->end[1]] - e->sent;
	struct iovec iov[PIECES];
	unsigned n = e->ops->tx_what(e->core, iov, 1 + wire_random(w, PIECES));
	struct bufv v = bufv_of(iov, n);
	size_t len;

	if (n == 0)
		return false;
	assert(v.len > 0);
	len = (size_t)MIN(chunk_of(w, v.len), left);
	if (w->cfg.window) {
		size_t room =
			w->cfg.window - MIN(w->cfg.window, other(w, e)->queued);

		if (room == 0)
			return false;
		len = MIN(len, room);
	}
	if (len && other(w, e)->open)
		append(w, e, &v, len);
	e->sent += len;
	*was_cut = len == left;
	if (len)
		e->ops->tx_done(e->core, len, w->now);
	return true;
}

/* ---- turns ---- */

static bool follow_fate(struct wire *w, struct wire_end *e)
{
	int err = 0;
	enum stream_fate fate = stream_fate_of(e->ops, e->core, &err);
	struct iovec iov[1];

	if (fate == STREAM_GO)
		return false;
	if (fate == STREAM_FLUSH && e->ops->tx_what(e->core, iov, 1))
		return false;
	close_end(w, e, err, 0);
	return true;
}

static bool turn_end(struct wire *w, struct wire_end *e)
{
	bool busy = e->kicked, was_cut = false;

	e->kicked = false;
	if (!e->open)
		return false;
	if (stream_deadline_of(e->ops, e->core) <= w->now) {
		e->ops->expire(e->core, w->now);
		busy = true;
	}
	busy |= take_in(w, e);
	while (e->open && !was_cut && send_out(w, e, &was_cut))
		busy = true;
	if (was_cut) {
		cut(w);
		return true;
	}
	if (follow_fate(w, e))
		return true;
	if (e->fin && !e->first && !e->is_spent) {
		close_end(w, e, e->fin_err, 0);
		return true;
	}
	return busy || e->is_spent;
}

/* Returns the time of the next arrival or, with deadlines, of the next deadline. */
static xtime next_moment(const struct wire *w, bool deadlines)
{
	xtime next = XTIME_NEVER;

	for (unsigned i = 0; i < 2; i++) {
		const struct wire_end *e = &w->end[i];

		if (!e->open)
			continue;
		if (e->first && e->first->at > w->now && !e->deaf)
			next = MIN(next, e->first->at);
		if (deadlines)
			next = MIN(next, stream_deadline_of(e->ops, e->core));
	}
	return next;
}

xtime wire_next(const struct wire *w)
{
	for (unsigned i = 0; i < 2; i++) {
		const struct wire_end *e = &w->end[i];

		if (e->open &&
		    (e->kicked || e->is_spent || (e->fin && !e->first)))
			return w->now;
	}
	return next_moment(w, true);
}

static void run_events(struct wire *w, xtime until, bool deadlines)
{
	for (;;) {
		xtime next;
		bool busy = turn_end(w, &w->end[0]);

		busy |= turn_end(w, &w->end[1]);
		if (busy)
			continue;
		next = next_moment(w, deadlines);
		if (next == XTIME_NEVER || next > until)
			break;
		w->now = next;
	}
	if (until != XTIME_NEVER)
		w->now = MAX(w->now, until);
}

void wire_run(struct wire *w, xtime until)
{
	run_events(w, until, true);
}

void wire_idle(struct wire *w)
{
	run_events(w, XTIME_NEVER, false);
}
