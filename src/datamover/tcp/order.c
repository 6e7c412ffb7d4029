/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * order.c: data that come in any order (DataPDUInOrder=No, DataSequenceInOrder=No,
 * RFC 7143 §13.18, §13.19), and R2Ts beyond the first MAX_R2T of a task (§13.17).
 *
 * The bytes of a range that came are a prefix, whose end the caller has, and islands after it.
 * Without islands there is no memory. A range has ISLANDS_MAX islands at most: enough
 * for PDUs of 512 bytes in the worst order of a burst of 4 MiB. All islands and R2Ts
 * of a connection together take ORDER_BYTES at most, which is the share of one peer.
 */
#include <stdlib.h>
#include <string.h>

#include "datamover/tcp/internal.h"

#define ISLANDS_MAX   4096u
#define ISLANDS_FIRST 8u
#define QUEUE_FIRST   16u
#define ORDER_BYTES   (8u << 20)

/* Data [from, to) that came before the data in front of them. */
struct island {
	uint32_t from, to;
};

/* Disjoint islands in order, with a hole before each. */
struct dmtcp_islands {
	struct list link; /* dmtcp_conn.rx.order.sets */
	size_t size;	  /* bytes allocated */
	unsigned n, room;
	struct island at[];
};

/* R2Ts in the order in which they came: a ring, from `head` on. */
struct dmtcp_queue {
	struct list link; /* dmtcp_conn.rx.order.sets */
	size_t size;
	unsigned head, n, room;
	struct dmtcp_r2t at[];
};

/* ---- memory ---- */

/* What islands, queues and further bursts begin with. */
struct owned {
	struct list link;
	size_t size;
};

static void give_back(struct dmtcp_conn *c, void *p)
{
	struct owned *o = p;

	list_del(&o->link);
	c->rx.order.bytes -= o->size;
	free(o);
}

/* Returns p (NULL: new memory) with `size` bytes, and p is not valid any more; NULL:
 * p is as it was, *err is ERR_LIMIT or ERR_NOMEM. */
static void *resize(struct dmtcp_conn *c, void *p, size_t size, int *err)
{
	struct owned *o = p;
	size_t before = o ? o->size : 0;

	*err = ERR_LIMIT;
	if (size - before > ORDER_BYTES - c->rx.order.bytes)
		return NULL;
	*err = ERR_NOMEM;
	o = malloc(size);
	if (!o)
		return NULL;
	if (p) {
		memcpy(o, p, before);
		give_back(c, p);
	} else {
		memset(o, 0, size);
	}
	o->size = size;
	c->rx.order.bytes += size;
	list_push_back(&c->rx.order.sets, &o->link);
	return o;
}

void dmtcp_order_free_all(struct dmtcp_conn *c)
{
	while (!list_empty(&c->rx.order.sets))
		give_back(c, list_entry(c->rx.order.sets.next, struct owned,
					link));
}

/* ---- islands ---- */

void dmtcp_order_free(struct dmtcp_conn *c, struct dmtcp_islands **s)
{
	if (*s)
		give_back(c, *s);
	*s = NULL;
}

/* The first island that ends at `off` or after it. */
static unsigned find_island(const struct dmtcp_islands *s, uint32_t off)
{
	unsigned low = 0, high = s->n;

	while (low < high) {
		unsigned mid = (low + high) / 2;

		if (s->at[mid].to < off)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

bool dmtcp_order_has(const struct dmtcp_islands *s, uint32_t from, uint32_t to)
{
	unsigned i = s ? find_island(s, from) : 0;

	if (!s || from == to)
		return false;
	if (i < s->n && s->at[i].to == from)
		i++;
	return i < s->n && s->at[i].from < to;
}

/* The bytes of [from, to) that island i has. */
static uint32_t common(const struct island *i, uint32_t from, uint32_t to)
{
	uint32_t a = MAX(i->from, from), b = MIN(i->to, to);

	return b > a ? b - a : 0;
}

/* Removes the islands [first, end). */
static void remove_islands(struct dmtcp_islands *s, unsigned first,
			   unsigned end)
{
	memmove(&s->at[first], &s->at[end], (s->n - end) * sizeof(s->at[0]));
	s->n -= end - first;
}

static int insert_island(struct dmtcp_conn *c, struct dmtcp_islands **set,
			 unsigned i, uint32_t from, uint32_t to)
{
	struct dmtcp_islands *s = *set;
	unsigned room = s ? s->room * 2 : ISLANDS_FIRST;
	int err;

	if (!s || s->n == s->room) {
		if (room > ISLANDS_MAX)
			return ERR_LIMIT;
		s = resize(c, s, sizeof(*s) + room * sizeof(s->at[0]), &err);
		if (!s)
			return err;
		s->room = room;
		*set = s;
	}
	memmove(&s->at[i + 1], &s->at[i], (s->n - i) * sizeof(s->at[0]));
	s->at[i] = (struct island){ from, to };
	s->n++;
	return 0;
}

/* [from, to) continues the prefix, which goes on over the islands that it reaches.
 * Returns the bytes that are new. */
static uint32_t extend(struct dmtcp_conn *c, struct dmtcp_islands **set,
		       uint32_t *prefix, uint32_t from, uint32_t to)
{
	struct dmtcp_islands *s = *set;
	uint32_t fresh = to - from;
	unsigned n = 0;

	*prefix = to;
	for (; s && n < s->n && s->at[n].from <= *prefix; n++) {
		fresh -= common(&s->at[n], from, to);
		*prefix = MAX(*prefix, s->at[n].to);
	}
	if (n)
		remove_islands(s, 0, n);
	if (s && s->n == 0)
		dmtcp_order_free(c, set);
	return fresh;
}

int dmtcp_order_add(struct dmtcp_conn *c, struct dmtcp_islands **set,
		    uint32_t *prefix, uint32_t from, uint32_t to,
		    uint32_t *fresh)
{
	struct dmtcp_islands *s = *set;
	unsigned i, end;

	from = MAX(from, *prefix);
	*fresh = 0;
	if (to <= from)
		return 0;
	if (from == *prefix) {
		*fresh = extend(c, set, prefix, from, to);
		return 0;
	}
	*fresh = to - from;
	i = end = s ? find_island(s, from) : 0;
	while (s && end < s->n && s->at[end].from <= to)
		*fresh -= common(&s->at[end++], from, to);
	if (i == end)
		return insert_island(c, set, i, from, to);
	s->at[i].from = MIN(s->at[i].from, from);
	s->at[i].to = MAX(s->at[end - 1].to, to);
	remove_islands(s, i + 1, end);
	return 0;
}

uint32_t dmtcp_order_end(const struct dmtcp_islands *s, uint32_t prefix)
{
	return s ? s->at[s->n - 1].to : prefix;
}

uint32_t dmtcp_order_holes(const struct dmtcp_islands *s, uint32_t prefix,
			   uint32_t end, uint32_t *last)
{
	uint32_t missing = end - prefix;

	*last = end;
	for (unsigned i = 0; s && i < s->n; i++)
		missing -= s->at[i].to - s->at[i].from;
	if (s && s->at[s->n - 1].to == end)
		*last = s->at[s->n - 1].from;
	return missing;
}

/* ---- R2Ts that wait at an initiator ---- */

int dmtcp_queue_push(struct dmtcp_conn *c, struct dmtcp_queue **queue,
		     const struct dmtcp_r2t *r)
{
	struct dmtcp_queue *q = *queue;
	unsigned before = q ? q->room : 0;
	unsigned room = q ? before * 2 : QUEUE_FIRST;
	int err;

	if (!q || q->n == before) {
		q = resize(c, q, sizeof(*q) + room * sizeof(q->at[0]), &err);
		if (!q)
			return err;
		/* the R2Ts that were at the front follow those at the end */
		memcpy(&q->at[before], q->at, q->head * sizeof(q->at[0]));
		q->room = room;
		*queue = q;
	}
	q->at[(q->head + q->n++) % q->room] = *r;
	return 0;
}

bool dmtcp_queue_pop(struct dmtcp_conn *c, struct dmtcp_queue **queue,
		     struct dmtcp_r2t *r)
{
	struct dmtcp_queue *q = *queue;

	if (!q)
		return false;
	*r = q->at[q->head];
	q->head = (q->head + 1) % q->room;
	if (--q->n == 0)
		dmtcp_queue_free(c, queue);
	return true;
}

unsigned dmtcp_queue_len(const struct dmtcp_queue *q)
{
	return q ? q->n : 0;
}

void dmtcp_queue_free(struct dmtcp_conn *c, struct dmtcp_queue **queue)
{
	if (*queue)
		give_back(c, *queue);
	*queue = NULL;
}

/* ---- further bursts of a target's task ---- */

struct dmtcp_bursts *dmtcp_bursts_new(struct dmtcp_conn *c, unsigned n)
{
	struct dmtcp_bursts *b;
	int err;

	b = resize(c, NULL, sizeof(*b) + n * sizeof(b->at[0]), &err);
	if (b)
		b->n = n;
	return b;
}

void dmtcp_bursts_free(struct dmtcp_conn *c, struct dmtcp_bursts **b)
{
	if (*b)
		give_back(c, *b);
	*b = NULL;
}

/* ---- tasks of an initiator ---- */

void dmtcp_order_forget(struct dmtcp_conn *c, struct dm_task *t)
{
	struct initiator_task *it = &tcp_task(t)->i;

	dmtcp_order_free(c, &it->in_islands);
	dmtcp_order_free(c, &it->asked);
	dmtcp_queue_free(c, &it->queue);
}
