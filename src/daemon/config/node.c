/* SPDX-License-Identifier: BSD-2-Clause */
/* node.c: trees of configuration files and their memory. */
#include "daemon/config/node.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

/* ---- memory ---- */

#define CHUNK ((size_t)64 << 10)
#define ALIGN ((size_t)16)

struct cfg_chunk {
	struct cfg_chunk *next;
	size_t size;
	_Alignas(ALIGN) char data[];
};

static bool add_chunk(struct cfg_arena *a, size_t size)
{
	struct cfg_chunk *c;

	if (size > SIZE_MAX / 2)
		return false;
	size = MAX(size, CHUNK);
	c = calloc(1, sizeof(*c) + size);
	if (!c)
		return false;
	c->size = size;
	c->next = a->chunks;
	a->chunks = c;
	a->left = size;
	return true;
}

void *cfg_arena_alloc(struct cfg_arena *a, size_t size)
{
	void *p;

	if (size > SIZE_MAX / 2)
		return NULL;
	size = (size + ALIGN - 1) / ALIGN * ALIGN;
	if (a->left < size && !add_chunk(a, size))
		return NULL;
	p = a->chunks->data + a->chunks->size - a->left;
	a->left -= size;
	return p;
}

char *cfg_arena_text(struct cfg_arena *a, const char *text, size_t len)
{
	char *copy = cfg_arena_alloc(a, len + 1);

	if (copy)
		memcpy(copy, text, len);
	return copy;
}

void cfg_arena_free(struct cfg_arena *a)
{
	while (a->chunks) {
		struct cfg_chunk *c = a->chunks;

		a->chunks = c->next;
		free(c);
	}
	a->left = 0;
}

/* ---- nodes ---- */

struct cfg_node *cfg_node_new(struct cfg_arena *a, enum cfg_node_type type,
			      const char *text)
{
	struct cfg_node *n = cfg_arena_alloc(a, sizeof(*n));

	if (!n)
		return NULL;
	n->type = type;
	if (!text)
		return n;
	n->is_quoted = true;
	n->text = cfg_arena_text(a, text, strlen(text));
	return n->text ? n : NULL;
}

/* The old items stay in the arena: at most as many as the new ones. */
static bool grow(struct cfg_arena *a, struct cfg_node *n)
{
	unsigned room = n->room ? 2 * n->room : 4;
	struct cfg_item *items = cfg_arena_alloc(a, room * sizeof(*items));

	if (!items)
		return false;
	if (n->n)
		memcpy(items, n->items, n->n * sizeof(*items));
	n->items = items;
	n->room = room;
	return true;
}

struct cfg_item *cfg_node_add(struct cfg_arena *a, struct cfg_node *n,
			      const char *key, struct cfg_node *value)
{
	struct cfg_item *item;

	if (!value || (n->n == n->room && !grow(a, n)))
		return NULL;
	item = &n->items[n->n];
	item->value = value;
	item->key = key ? cfg_arena_text(a, key, strlen(key)) : NULL;
	if (key && !item->key)
		return NULL;
	n->n++;
	n->by_key = NULL;
	return item;
}

struct cfg_node *cfg_node_split(struct cfg_arena *a, const char *text)
{
	struct cfg_node *list = cfg_node_new(a, CFG_NODE_SEQ, NULL);
	size_t len;

	for (const char *p = text; list && *p; p += len + (p[len] == ',')) {
		struct cfg_node *n = cfg_node_new(a, CFG_NODE_SCALAR, NULL);

		len = strcspn(p, ",");
		if (n) {
			n->is_quoted = true;
			n->text = cfg_arena_text(a, p, len);
		}
		if (!n || !n->text || !cfg_node_add(a, list, NULL, n))
			return NULL;
	}
	return list;
}

void cfg_node_take(struct cfg_node *n, struct cfg_item *item)
{
	n->n--;
	memmove(item, item + 1,
		(size_t)(n->items + n->n - item) * sizeof(*item));
	n->by_key = NULL;
}

bool cfg_node_remove(struct cfg_node *n, const char *key)
{
	struct cfg_item *item = cfg_node_find(n, key);

	if (item)
		cfg_node_take(n, item);
	return item;
}

bool cfg_node_join(struct cfg_arena *a, struct cfg_node *n,
		   const struct cfg_node *more)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < n->n; i++)
		if (n->items[i].value)
			n->items[kept++] = n->items[i];
	n->n = kept;
	n->by_key = NULL;
	for (unsigned i = 0; i < more->n; i++)
		if (!cfg_node_add(a, n, more->items[i].key,
				  more->items[i].value))
			return false;
	return true;
}

static int compare_keys(const void *a, const void *b, void *items)
{
	const struct cfg_item *all = items;
	unsigned i = *(const unsigned *)a, j = *(const unsigned *)b;
	int order = strcmp(all[i].key, all[j].key);

	return order ? order : (i > j) - (i < j);
}

const struct cfg_item *cfg_node_sort(struct cfg_arena *a, struct cfg_node *n)
{
	const struct cfg_item *twice = NULL;
	unsigned *order;

	if (n->type != CFG_NODE_MAP || n->n < 2)
		return NULL;
	order = cfg_arena_alloc(a, n->n * sizeof(*order));
	if (!order)
		return NULL;
	for (unsigned i = 0; i < n->n; i++)
		order[i] = i;
	qsort_r(order, n->n, sizeof(*order), compare_keys, n->items);
	for (unsigned i = 1; i < n->n && !twice; i++)
		if (!strcmp(n->items[order[i - 1]].key, n->items[order[i]].key))
			twice = &n->items[order[i]];
	n->by_key = order;
	return twice;
}

static struct cfg_item *find_sorted(const struct cfg_node *n, const char *key)
{
	unsigned lo = 0, hi = n->n;

	while (lo < hi) {
		unsigned mid = lo + (hi - lo) / 2;
		struct cfg_item *item = &n->items[n->by_key[mid]];
		int order = strcmp(key, item->key);

		if (order == 0)
			return item;
		if (order < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return NULL;
}

struct cfg_item *cfg_node_find(const struct cfg_node *n, const char *key)
{
	if (!n || n->type != CFG_NODE_MAP)
		return NULL;
	if (n->by_key)
		return find_sorted(n, key);
	for (unsigned i = 0; i < n->n; i++)
		if (!strcmp(n->items[i].key, key))
			return &n->items[i];
	return NULL;
}

struct cfg_node *cfg_node_get(const struct cfg_node *n, const char *key)
{
	struct cfg_item *item = cfg_node_find(n, key);

	return item ? item->value : NULL;
}

bool cfg_node_is_null(const struct cfg_node *n)
{
	return n->type == CFG_NODE_SCALAR && !n->is_quoted &&
	       (!*n->text || !strcmp(n->text, "~") || !strcmp(n->text, "null"));
}

bool cfg_node_is_same(const struct cfg_node *a, const struct cfg_node *b)
{
	if (a->type != b->type || a->n != b->n)
		return false;
	if (a->type == CFG_NODE_SCALAR)
		return !strcmp(a->text, b->text);
	for (unsigned i = 0; i < a->n; i++) {
		const struct cfg_node *v =
			a->items[i].key ? cfg_node_get(b, a->items[i].key)
					: b->items[i].value;

		if (!v || !cfg_node_is_same(a->items[i].value, v))
			return false;
	}
	return true;
}

struct cfg_node *cfg_node_copy(struct cfg_arena *a, const struct cfg_node *n)
{
	struct cfg_node *copy = cfg_node_new(a, n->type, n->text);

	if (!copy)
		return NULL;
	copy->is_quoted = n->is_quoted;
	for (unsigned i = 0; i < n->n; i++) {
		struct cfg_node *value = cfg_node_copy(a, n->items[i].value);

		if (!cfg_node_add(a, copy, n->items[i].key, value))
			return NULL;
	}
	(void)cfg_node_sort(a, copy);
	return copy;
}
