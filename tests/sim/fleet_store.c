/* SPDX-License-Identifier: BSD-2-Clause */
/* fleet_store.c: the records of a fleet on servers of objects, and the monitor. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "sim/fleet.h"

enum call_kind {
	CALL_READ,
	CALL_SWAP,
	CALL_LOCK,
	CALL_UNLOCK,
	CALL_FENCE
};

struct fleet_call {
	enum call_kind kind;
	struct fleet_session *session;
	struct cluster_request *r; /* NULL: it has ended */
	uint64_t version;
	char whom[CLUSTER_ID_SIZE];
	uint8_t *data;
	size_t len;
	int result;
	/* fence: whom the monitor is asked to fence */
	struct fleet_gateway *victim;
	unsigned client;
	struct fleet_call *next;
};

/* What a request costs its server, and how long it takes until the answer. */
static const struct {
	xtime busy, time;
} costs[] = {
	[CALL_READ] = { BUSY_READ, READ_TIME },
	[CALL_SWAP] = { BUSY_WRITE, SWAP_TIME },
	[CALL_LOCK] = { 4 * BUSY_WRITE, LOCK_TIME },
	[CALL_UNLOCK] = { 2 * BUSY_WRITE, UNLOCK_TIME },
	[CALL_FENCE] = { 4 * BUSY_WRITE, LOCK_TIME },
};

/* ---- what events carry ---- */

struct object {
	struct list link; /* fleet.objects */
	max_align_t data[];
};

void *fleet_object(struct fleet *f, size_t n)
{
	struct object *o = calloc(1, sizeof(*o) + n);

	if (!o)
		abort();
	list_push_back(&f->objects, &o->link);
	return o->data;
}

void fleet_object_free(void *data)
{
	struct object *o;

	if (!data)
		return;
	o = (struct object *)((char *)data - offsetof(struct object, data));
	list_del(&o->link);
	free(o);
}

void fleet_objects_free(struct fleet *f)
{
	struct list *n;

	while ((n = list_pop_front(&f->objects)))
		free(list_entry(n, struct object, link));
}

void fleet_count(struct fleet_rate *r, xtime now, uint64_t n)
{
	if (now / XTIME_S != r->second) {
		r->second = now / XTIME_S;
		r->now = 0;
	}
	r->now += n;
	r->all += n;
	r->most = MAX(r->most, r->now);
}

/* The server begins what it gets in order. Returns when the answer is there. */
static xtime serve(struct fleet_unit *u, xtime busy, xtime time)
{
	struct fleet *f = u->f;
	struct fleet_server *s = u->server;
	xtime now = f->clock.now;

	s->free = MAX(s->free, now) + busy;
	fleet_count(&f->requests, now, 1);
	fleet_count(&s->requests, now, 1);
	fleet_count(&s->busy, now, (uint64_t)busy);
	return s->free + time - busy;
}

static struct fleet_session *session_of(struct cluster_store *s)
{
	return container_of(s, struct fleet_session, store);
}

static struct fleet *fleet_of(const struct fleet_session *s)
{
	return s->member->u->f;
}

bool fleet_is_fenced(const struct fleet_session *s)
{
	return s->client <= s->member->g->fenced;
}

/* ---- requests ---- */

static void call_answer(void *arg)
{
	struct fleet_call *c = arg;
	struct cluster_request *r = c->r;

	if (r) {
		c->session->call = NULL;
		r->result = c->result;
		r->version = c->version;
		if (c->kind == CALL_READ) {
			r->data = c->data;
			r->len = c->len;
		}
		r->done(r);
	}
	fleet_object_free(c->data);
	fleet_object_free(c);
}

static void call_end(struct fleet_call *c, xtime at, int result)
{
	c->result = result;
	fleet_at(fleet_of(c->session), at, call_answer, c);
}

static int read_record(struct fleet_unit *u, struct fleet_call *c)
{
	c->version = u->version;
	c->len = u->len;
	c->data = fleet_object(u->f, u->len + 1);
	if (u->len > 0)
		memcpy(c->data, u->blob, u->len);
	return 0;
}

static int swap_record(struct fleet_unit *u, struct fleet_call *c)
{
	if (c->version != u->version)
		return ERR_AGAIN;
	fleet_object_free(u->blob);
	u->blob = c->data;
	u->len = c->len;
	c->data = NULL;
	c->version = ++u->version;
	fleet_count(&u->f->changes, u->f->clock.now, 1);
	return 0;
}

static int give_lock(struct fleet_unit *u, struct fleet_session *s)
{
	if (u->holder != s) {
		u->f->hand_overs++;
		u->f->handed_over = u->f->clock.now;
	}
	u->holder = s;
	return 0;
}

static int take_lock(struct fleet_unit *u, struct fleet_session *s)
{
	if (u->holder && u->holder != s)
		return ERR_AGAIN;
	return give_lock(u, s);
}

/* The holder was fenced, so the lock can be broken. */
static int break_lock(struct fleet_unit *u, struct fleet_session *s)
{
	if (u->holder && u->holder != s) {
		if (!fleet_is_fenced(u->holder))
			return ERR_AGAIN;
		u->f->breaks++;
	}
	return give_lock(u, s);
}

static void call_execute(void *arg)
{
	struct fleet_call *c = arg;
	struct fleet_session *s = c->session;
	struct fleet_unit *u = s->member->u;
	int result = 0;

	if (fleet_is_fenced(s))
		result = ERR_TERMINATED;
	else if (c->kind == CALL_READ)
		result = read_record(u, c);
	else if (c->kind == CALL_SWAP)
		result = swap_record(u, c);
	else if (c->kind == CALL_LOCK)
		result = take_lock(u, s);
	else if (c->kind == CALL_FENCE)
		result = break_lock(u, s);
	else if (u->holder == s)
		u->holder = NULL;
	call_end(c, u->f->clock.now, result);
}

static void call_serve(struct fleet_call *c)
{
	fleet_at(fleet_of(c->session),
		 serve(c->session->member->u, costs[c->kind].busy,
		       costs[c->kind].time),
		 call_execute, c);
}

static struct fleet_call *call_new(struct cluster_store *store,
				   struct cluster_request *r,
				   enum call_kind kind)
{
	struct fleet_session *s = session_of(store);
	struct fleet_call *c = fleet_object(fleet_of(s), sizeof(*c));

	if (!s->open || s->call)
		abort();
	c->kind = kind;
	c->session = s;
	c->r = r;
	c->version = r->version;
	if (r->whom)
		strcpy(c->whom, r->whom);
	if (kind == CALL_SWAP) {
		c->len = r->len;
		c->data = fleet_object(fleet_of(s), r->len);
		memcpy(c->data, r->data, r->len);
	}
	s->call = c;
	return c;
}

static void do_read(struct cluster_store *s, struct cluster_request *r)
{
	call_serve(call_new(s, r, CALL_READ));
}

static void do_swap(struct cluster_store *s, struct cluster_request *r)
{
	call_serve(call_new(s, r, CALL_SWAP));
}

static void do_lock(struct cluster_store *s, struct cluster_request *r)
{
	call_serve(call_new(s, r, CALL_LOCK));
}

static void do_unlock(struct cluster_store *s, struct cluster_request *r)
{
	call_serve(call_new(s, r, CALL_UNLOCK));
}

/* ---- fences ---- */

static void member_fenced(void *arg)
{
	struct fleet_session *s = arg;

	if (s->open)
		s->store.events.fenced(s->store.events.arg);
}

/* All units of a gateway share a client, so a fence hits all of them. */
static void client_fenced(struct fleet_gateway *g, unsigned client)
{
	if (client <= g->fenced)
		return;
	g->fenced = client;
	for (unsigned i = 0; i < g->nmembers; i++)
		if (g->members[i]->session->open)
			fleet_at(g->f, g->f->clock.now + NET_TIME,
				 member_fenced, g->members[i]->session);
}

static void monitor_commit(void *arg)
{
	struct fleet *f = arg;
	struct fleet_monitor *m = &f->monitor;
	unsigned n = 0;

	m->scheduled = false;
	m->committed = f->clock.now;
	m->commits++;
	while (m->waiting) {
		struct fleet_call *c = m->waiting;
		struct fleet_gateway *g = c->session->member->g;

		m->waiting = c->next;
		n++;
		if (fleet_is_fenced(c->session)) {
			call_end(c, f->clock.now + NET_TIME, ERR_TERMINATED);
			continue;
		}
		client_fenced(c->victim, c->client);
		g->known[c->victim->number] = c->client;
		call_serve(c);
	}
	m->most_waiting = MAX(m->most_waiting, n);
}

static void monitor_ask(struct fleet *f, struct fleet_call *c)
{
	struct fleet_monitor *m = &f->monitor;

	fleet_count(&m->commands, f->clock.now, 1);
	c->next = m->waiting;
	m->waiting = c;
	if (m->scheduled)
		return;
	m->scheduled = true;
	fleet_at(f,
		 MAX(f->clock.now + PAXOS_WAIT, m->committed + PAXOS_INTERVAL),
		 monitor_commit, f);
}

static void do_fence(struct cluster_store *store, struct cluster_request *r)
{
	struct fleet_call *c = call_new(store, r, CALL_FENCE);
	struct fleet_session *s = c->session, *holder = s->member->u->holder;
	struct fleet *f = fleet_of(s);
	xtime later = f->clock.now + READ_TIME;

	if (!holder) {
		call_end(c, later, ERR_NOT_FOUND);
	} else if (holder != s && c->whom[0] != '\0' &&
		   strcmp(c->whom, holder->store.id) != 0) {
		call_end(c, later, ERR_AGAIN);
	} else if (holder == s ||
		   s->member->g->known[holder->member->g->number] >=
			   holder->client) {
		call_serve(c);
	} else {
		c->victim = holder->member->g;
		c->client = holder->client;
		monitor_ask(f, c);
	}
}

/* ---- notes ---- */

struct fleet_note {
	struct fleet_session *from;
	struct cluster_note *n; /* NULL: it has ended */
	unsigned missing, refs;
	uint8_t data[CLUSTER_NOTE_MAX];
	size_t len;
	struct note_copy {
		struct fleet_note *note;
		struct fleet_session *to;
	} copies[FLEET_PATHS];
	struct fleet_note *next;
};

static void note_put(struct fleet_note *c)
{
	if (--c->refs == 0)
		fleet_object_free(c);
}

static void note_end(struct fleet_note *c)
{
	struct cluster_note *n = c->n;

	if (!n)
		return;
	c->n = NULL;
	for (struct fleet_note **at = &c->from->notes; *at; at = &(*at)->next)
		if (*at == c) {
			*at = c->next;
			break;
		}
	n->result = fleet_is_fenced(c->from) ? ERR_TERMINATED : 0;
	n->done(n);
}

static void note_over(void *arg)
{
	note_end(arg);
	note_put(arg);
}

static void note_acked(void *arg)
{
	struct note_copy *k = arg;
	struct cluster_note *n = k->note->n;

	if (n) {
		strcpy(n->acks[n->nacks++], k->to->store.id);
		if (--k->note->missing == 0)
			note_end(k->note);
	}
	note_put(k->note);
}

static void note_arrive(void *arg)
{
	struct note_copy *k = arg;
	struct cluster_store *s = &k->to->store;

	if (k->to->open && !fleet_is_fenced(k->to))
		s->events.noted(s->events.arg, k->note->from->store.id,
				(uint64_t)(uintptr_t)k, k->note->data,
				k->note->len);
	note_put(k->note);
}

/* The watch of a client that is gone lasts for a time. */
static bool watches(const struct fleet_session *s, xtime now)
{
	return s && s->watches && !fleet_is_fenced(s) &&
	       (s->open || now < s->gone + WATCH_TIME);
}

static void do_notify(struct cluster_store *store, struct cluster_note *n)
{
	struct fleet_session *s = session_of(store);
	struct fleet_unit *u = s->member->u;
	struct fleet_note *c = fleet_object(u->f, sizeof(*c));
	xtime now = u->f->clock.now, end;

	c->from = s;
	c->n = n;
	c->len = n->len;
	memcpy(c->data, n->data, n->len);
	c->next = s->notes;
	s->notes = c;
	n->nacks = 0;
	for (unsigned i = 0; i < FLEET_PATHS; i++) {
		struct fleet_session *to = u->members[i]->session;

		if (to != s && watches(to, now))
			c->copies[c->missing++] = (struct note_copy){ c, to };
	}
	fleet_count(&u->f->notes, now, 1);
	end = serve(u, BUSY_READ * (1 + c->missing), NOTE_TIME);
	c->refs = 1 + c->missing;
	for (unsigned i = 0; i < c->missing; i++)
		fleet_at(u->f, end - NOTE_TIME / 2, note_arrive, &c->copies[i]);
	fleet_at(u->f, c->missing ? now + (xtime)n->ms * XTIME_MS : end,
		 note_over, c);
}

static void do_ack(struct cluster_store *store, uint64_t cookie)
{
	struct note_copy *k = (struct note_copy *)(uintptr_t)cookie;
	struct fleet *f = fleet_of(session_of(store));

	k->note->refs++;
	fleet_at(f, f->clock.now + NOTE_TIME / 2, note_acked, k);
}

/* ---- sessions ---- */

static void end_requests(struct fleet_session *s)
{
	struct fleet_call *c = s->call;
	struct fleet_note *n;

	s->call = NULL;
	if (c) {
		struct cluster_request *r = c->r;

		c->r = NULL;
		r->result = ERR_ABORTED;
		r->done(r);
	}
	while ((n = s->notes)) {
		struct cluster_note *note = n->n;

		s->notes = n->next;
		n->n = NULL;
		note->result = ERR_ABORTED;
		note->done(note);
	}
}

static void do_close(struct cluster_store *store)
{
	struct fleet_session *s = session_of(store);
	bool drained = !s->call;

	end_requests(s);
	s->open = s->watches = false;
	if (s->member->u->holder == s && drained)
		s->member->u->holder = NULL;
}

void fleet_lost(struct fleet_session *s)
{
	if (s->call)
		s->call->r = NULL;
	s->call = NULL;
	for (struct fleet_note *n = s->notes; n; n = n->next)
		n->n = NULL;
	s->notes = NULL;
	s->open = false;
	s->gone = fleet_of(s)->clock.now;
}

struct fleet_session *fleet_open(struct fleet_member *m)
{
	static const struct cluster_store_ops ops = {
		.read = do_read,
		.swap = do_swap,
		.notify = do_notify,
		.ack = do_ack,
		.lock = do_lock,
		.unlock = do_unlock,
		.fence = do_fence,
		.close = do_close,
	};
	struct fleet *f = m->u->f;
	struct fleet_session *s = sim_alloc(&f->clock, sizeof(*s));

	s->store.ops = &ops;
	snprintf(s->store.id, sizeof(s->store.id), "gw-%u", m->g->number);
	s->member = m;
	if (m->g->client <= m->g->fenced)
		m->g->client++;
	s->client = m->g->client;
	s->open = s->watches = true;
	s->gone = XTIME_NEVER;
	return s;
}
