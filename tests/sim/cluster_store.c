/* SPDX-License-Identifier: BSD-2-Clause */
/* cluster_store.c: a virtual clock, and a model of the store of a shared unit. */
#include "sim/cluster_store.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "cluster/record.h"

/* ---- chance, memory, time ---- */

uint32_t sim_random(struct store_model *m, uint32_t n)
{
	m->seed ^= m->seed << 13;
	m->seed ^= m->seed >> 17;
	m->seed ^= m->seed << 5;
	return n ? (uint32_t)((uint64_t)m->seed * n >> 32) : 0;
}

bool sim_chance(struct store_model *m, unsigned per_1000)
{
	return sim_random(m, 1000) < per_1000;
}

static void *grow(void *p, unsigned n, unsigned *room, size_t size)
{
	if (n < *room)
		return p;
	*room = *room ? 2 * *room : 64;
	p = realloc(p, *room * size);
	if (!p)
		abort();
	return p;
}

void *sim_alloc(struct store_model *m, size_t n)
{
	void *p = calloc(1, n ? n : 1);

	if (!p)
		abort();
	m->memory = grow(m->memory, m->nmemory, &m->memory_room,
			 sizeof(m->memory[0]));
	m->memory[m->nmemory++] = p;
	return p;
}

xtime sim_delay(struct store_model *m)
{
	uint32_t most = sim_chance(m, 50) ? m->slow * 1000 : 2000;

	return m->now + (1 + (xtime)sim_random(m, most)) * XTIME_US;
}

static bool before(const struct sim_event *a, const struct sim_event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void heap_add(struct store_model *m, struct sim_event e)
{
	unsigned i = m->nevents;

	m->heap = grow(m->heap, m->nevents, &m->room, sizeof(m->heap[0]));
	m->nevents++;
	for (; i > 0 && before(&e, &m->heap[(i - 1) / 2]); i = (i - 1) / 2)
		m->heap[i] = m->heap[(i - 1) / 2];
	m->heap[i] = e;
}

static struct sim_event heap_take(struct store_model *m)
{
	struct sim_event first = m->heap[0], last = m->heap[--m->nevents];
	unsigned i = 0, k;

	while ((k = 2 * i + 1) < m->nevents) {
		if (k + 1 < m->nevents && before(&m->heap[k + 1], &m->heap[k]))
			k++;
		if (!before(&m->heap[k], &last))
			break;
		m->heap[i] = m->heap[k];
		i = k;
	}
	m->heap[i] = last;
	return first;
}

void sim_at(struct store_model *m, xtime at, unsigned machine,
	    void (*happens)(void *arg), void *arg)
{
	struct sim_event e = { .at = MAX(at, m->now),
			       .order = m->order++,
			       .machine = machine,
			       .happens = happens,
			       .arg = arg };

	if (machine < MACHINES)
		e.life = m->machine[machine].life;
	heap_add(m, e);
}

static void event_run(struct store_model *m, const struct sim_event *e)
{
	struct sim_machine *w =
		e->machine < MACHINES ? &m->machine[e->machine] : NULL;

	if (w && (w->down || w->life != e->life))
		return;
	if (w && w->stopped) {
		w->held = grow(w->held, w->nheld, &w->held_room,
			       sizeof(w->held[0]));
		w->held[w->nheld++] = *e;
		return;
	}
	e->happens(e->arg);
	if (w)
		m->turn(m->arg, e->machine);
}

bool sim_next(struct store_model *m, xtime until)
{
	struct sim_event e;

	if (m->nevents == 0 || m->heap[0].at > until)
		return false;
	e = heap_take(m);
	m->now = e.at;
	event_run(m, &e);
	return true;
}

void sim_continue(struct store_model *m, unsigned machine)
{
	struct sim_machine *w = &m->machine[machine];

	w->stopped = false;
	for (unsigned i = 0; i < w->nheld; i++) {
		struct sim_event e = w->held[i];

		e.at = m->now + (xtime)i;
		e.order = m->order++;
		heap_add(m, e);
	}
	w->nheld = 0;
}

void sim_free(struct store_model *m)
{
	for (unsigned i = 0; i < m->nmemory; i++)
		free(m->memory[i]);
	for (unsigned i = 0; i < MACHINES; i++)
		free(m->machine[i].held);
	free(m->memory);
	free(m->heap);
	free(m->blob);
	free(m->old);
}

/* ---- requests ---- */

enum call_kind {
	CALL_READ,
	CALL_SWAP,
	CALL_LOCK,
	CALL_UNLOCK,
	CALL_FENCE
};

struct call {
	enum call_kind kind;
	struct store_session *session;
	struct cluster_request *r; /* NULL: it has ended */
	uint64_t version, first;
	char whom[CLUSTER_ID_SIZE];
	uint8_t *data;
	size_t len;
	int result;
};

static struct store_session *session_of(struct cluster_store *s)
{
	return container_of(s, struct store_session, store);
}

static void call_answer(void *arg)
{
	struct call *c = arg;
	struct cluster_request *r = c->r;

	if (!r || !c->session->open)
		return;
	c->r = NULL;
	list_del(&r->link);
	r->private = NULL;
	r->result = c->result;
	r->version = c->version;
	if (c->kind == CALL_READ) {
		r->data = c->data;
		r->len = c->len;
	}
	r->done(r);
}

static void session_fence(struct store_model *m, struct store_session *s);

static int call_swap(struct store_model *m, struct call *c)
{
	if (c->version != m->version && m->mistake != MISTAKE_SWAP)
		return ERR_AGAIN;
	free(m->old);
	m->old = m->blob;
	m->old_len = m->len;
	m->blob = malloc(c->len);
	if (!m->blob)
		abort();
	memcpy(m->blob, c->data, c->len);
	m->len = c->len;
	m->version = c->first ? c->first : m->version + 1 + sim_random(m, 3);
	c->version = m->version;
	m->changed(m->arg);
	return 0;
}

static void call_read(struct store_model *m, struct call *c)
{
	bool old = m->mistake == MISTAKE_READ && m->old;

	c->version = m->version;
	c->len = old ? m->old_len : m->len;
	c->data = sim_alloc(m, c->len);
	if (c->len > 0)
		memcpy(c->data, old ? m->old : m->blob, c->len);
}

static int call_execute(struct store_model *m, struct call *c)
{
	struct store_session *s = c->session;

	if (s->fenced)
		return ERR_TERMINATED;
	if (m->damaged && c->kind <= CALL_SWAP)
		return ERR_FORMAT;
	switch (c->kind) {
	case CALL_READ:
		call_read(m, c);
		return 0;
	case CALL_SWAP:
		return call_swap(m, c);
	case CALL_LOCK:
		if (m->holder && m->holder != s && m->mistake != MISTAKE_LOCK)
			return ERR_AGAIN;
		m->holder = s;
		return 0;
	case CALL_UNLOCK:
		if (m->holder == s)
			m->holder = NULL;
		return 0;
	case CALL_FENCE:
		if (!m->holder)
			return ERR_NOT_FOUND;
		if (m->holder != s && c->whom[0] != '\0' &&
		    strcmp(c->whom, m->holder->store.id) != 0)
			return ERR_AGAIN;
		if (m->holder != s)
			session_fence(m, m->holder);
		m->holder = s;
		return 0;
	}
	return ERR_UNSUPPORTED;
}

static void call_arrive(void *arg)
{
	struct call *c = arg;
	struct store_model *m = c->session->model;
	struct sim_machine *w = &m->machine[c->session->machine];

	/* what was sent reaches the store even after a crash of the machine */
	if (w->cut && w->life == c->session->life) {
		sim_at(m, m->now + 200 * XTIME_MS, MACHINES, call_arrive, c);
		return;
	}
	c->result = call_execute(m, c);
	if (sim_chance(m, m->lose_answer))
		c->result = c->result == ERR_TERMINATED ? ERR_TERMINATED
							: ERR_RESET;
	sim_at(m, sim_delay(m), c->session->machine, call_answer, c);
}

/* The request is given up, and may still reach the store. */
static void call_give_up(void *arg)
{
	struct call *c = arg;

	c->result = ERR_RESET;
	call_answer(c);
}

static void call_begin(struct cluster_store *store, struct cluster_request *r,
		       enum call_kind kind)
{
	struct store_session *s = session_of(store);
	struct store_model *m = s->model;
	struct call *c = sim_alloc(m, sizeof(*c));

	if (!s->open)
		abort();
	c->kind = kind;
	c->session = s;
	c->r = r;
	c->version = r->version;
	c->first = r->version ? 0 : r->first;
	r->private = c;
	list_init(&r->link);
	if (r->whom)
		strcpy(c->whom, r->whom);
	if (kind == CALL_SWAP) {
		c->len = r->len;
		c->data = sim_alloc(m, r->len);
		memcpy(c->data, r->data, r->len);
	}
	if (sim_chance(m, m->lose_answer) && kind != CALL_READ)
		sim_at(m, sim_delay(m), s->machine, call_give_up, c);
	sim_at(m, sim_delay(m), MACHINES, call_arrive, c);
	/* the requests of the session, to end them at its close */
	s->requests = c;
}

static void do_read(struct cluster_store *s, struct cluster_request *r)
{
	call_begin(s, r, CALL_READ);
}

static void do_swap(struct cluster_store *s, struct cluster_request *r)
{
	call_begin(s, r, CALL_SWAP);
}

static void do_lock(struct cluster_store *s, struct cluster_request *r)
{
	call_begin(s, r, CALL_LOCK);
}

static void do_unlock(struct cluster_store *s, struct cluster_request *r)
{
	call_begin(s, r, CALL_UNLOCK);
}

static void do_fence(struct cluster_store *s, struct cluster_request *r)
{
	call_begin(s, r, CALL_FENCE);
}

/* ---- notes ---- */

struct note_call {
	struct store_session *from;
	struct cluster_note *n; /* NULL: it has ended */
	unsigned missing;
	bool lost;
	uint8_t data[CLUSTER_NOTE_MAX];
	size_t len;
	struct note_call *next; /* of the session */
};

struct note_copy {
	struct note_call *call;
	struct store_session *to;
};

static void note_end(void *arg)
{
	struct note_call *c = arg;
	struct cluster_note *n = c->n;

	if (!n || !c->from->open)
		return;
	c->n = NULL;
	n->result = c->from->fenced ? ERR_TERMINATED : c->lost ? ERR_RESET : 0;
	n->done(n);
}

static void note_acked(void *arg)
{
	struct note_copy *k = arg;
	struct cluster_note *n = k->call->n;

	if (!n || !k->call->from->open)
		return;
	strcpy(n->acks[n->nacks++], k->to->store.id);
	if (--k->call->missing == 0)
		note_end(k->call);
}

static void note_arrive(void *arg)
{
	struct note_copy *k = arg;
	struct cluster_store *s = &k->to->store;

	if (k->to->open && !k->to->fenced)
		s->events.noted(s->events.arg, k->call->from->store.id,
				(uint64_t)(uintptr_t)k, k->call->data,
				k->call->len);
}

/* The answer of an owner that does not know of the question. */
static void note_forged(void *arg)
{
	const struct note_call *c = arg;
	const struct cluster_store *s = &c->from->store;
	struct cluster_note_body b;
	uint8_t note[CLUSTER_NOTE_SIZE];

	if (!c->from->open || cluster_note_decode(&b, c->data, c->len) ||
	    b.kind != CLUSTER_NOTE_CONFIRM)
		return;
	b.kind = CLUSTER_NOTE_IN_FORCE;
	cluster_note_encode(&b, note);
	s->events.noted(s->events.arg, "gw-x", 0, note, sizeof(note));
}

static void watch_lost(void *arg)
{
	struct store_session *s = arg;

	if (s->open)
		s->store.events.missed(s->store.events.arg);
}

static bool reaches(const struct store_model *m, const struct store_session *s)
{
	const struct sim_machine *w = &m->machine[s->machine];

	return s->open && !s->fenced && !w->cut && !w->down &&
	       w->life == s->life;
}

static void do_notify(struct cluster_store *store, struct cluster_note *n)
{
	struct store_session *s = session_of(store), *to;
	struct store_model *m = s->model;
	struct note_call *c = sim_alloc(m, sizeof(*c));

	c->from = s;
	c->n = n;
	c->len = n->len;
	memcpy(c->data, n->data, n->len);
	c->next = s->notes;
	s->notes = c;
	n->nacks = 0;
	if (m->mistake == MISTAKE_CONFIRM)
		sim_at(m, sim_delay(m), s->machine, note_forged, c);
	for (to = m->sessions; to && reaches(m, s); to = to->next) {
		struct note_copy *k;

		if (to == s || to->machine == s->machine || !to->open)
			continue;
		c->missing++;
		if (!reaches(m, to) || sim_chance(m, m->lose_note)) {
			if (sim_chance(m, m->watch_lost))
				sim_at(m, sim_delay(m) + 100 * XTIME_MS,
				       to->machine, watch_lost, to);
			continue;
		}
		k = sim_alloc(m, sizeof(*k));
		k->call = c;
		k->to = to;
		sim_at(m, sim_delay(m), to->machine, note_arrive, k);
	}
	if (!reaches(m, s))
		c->missing = c->lost = true;
	sim_at(m, c->missing ? m->now + (xtime)n->ms * XTIME_MS : sim_delay(m),
	       s->machine, note_end, c);
}

static void do_ack(struct cluster_store *store, uint64_t cookie)
{
	struct note_copy *k = (struct note_copy *)(uintptr_t)cookie;
	struct store_model *m = session_of(store)->model;

	if (k && !sim_chance(m, m->lose_note))
		sim_at(m, sim_delay(m), k->call->from->machine, note_acked, k);
}

/* ---- sessions ---- */

static void session_fenced(void *arg)
{
	struct store_session *s = arg;

	if (s->open)
		s->store.events.fenced(s->store.events.arg);
}

static void session_fence(struct store_model *m, struct store_session *s)
{
	if (m->mistake == MISTAKE_FENCE)
		return;
	s->fenced = true;
	if (sim_chance(m, 500))
		sim_at(m, sim_delay(m) + 10 * XTIME_MS, s->machine,
		       session_fenced, s);
}

static void do_close(struct cluster_store *store)
{
	struct store_session *s = session_of(store);
	struct call *c = s->requests;
	bool drained = !c || !c->r;

	if (c && c->r) {
		c->result = ERR_ABORTED;
		call_answer(c);
	}
	for (struct note_call *n = s->notes; n; n = n->next) {
		if (n->n) {
			n->n->result = ERR_ABORTED;
			n->n->done(n->n);
			n->n = NULL;
		}
	}
	s->open = false;
	if (s->model->holder == s && drained)
		s->model->holder = NULL;
}

struct cluster_store *store_open(struct store_model *m, unsigned machine,
				 const char *id)
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
	struct store_session *s = sim_alloc(m, sizeof(*s));

	s->store.ops = &ops;
	strcpy(s->store.id, id);
	s->model = m;
	s->machine = machine;
	s->life = m->machine[machine].life;
	s->open = true;
	s->next = m->sessions;
	m->sessions = s;
	return &s->store;
}

/* ---- data ---- */

static void data_arrive(void *arg)
{
	struct data_request *d = arg;
	struct store_session *s = d->session;
	struct store_model *m = s->model;
	struct sim_machine *w = &m->machine[s->machine];

	if (w->cut && w->life == s->life) {
		sim_at(m, m->now + 200 * XTIME_MS, MACHINES, data_arrive, d);
		return;
	}
	d->result = s->fenced ? ERR_TERMINATED : 0;
	if (d->result == 0) {
		d->check(d);
		if (d->write)
			m->data[d->block] = d->value;
		else
			d->value = m->data[d->block];
	}
	sim_at(m, sim_delay(m), s->machine, d->done, d);
}

void store_data(struct data_request *d)
{
	sim_at(d->session->model, sim_delay(d->session->model), MACHINES,
	       data_arrive, d);
}
