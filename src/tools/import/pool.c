/* SPDX-License-Identifier: BSD-2-Clause */
/* pool.c: memory that is released as a whole. */
#include "tools/import/pool.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define BLOCK 65536u

struct pool_block {
	struct pool_block *next;
	size_t size, used;
	alignas(max_align_t) char bytes[];
};

struct pool_slot {
	const void *scope;
	const char *key; /* NULL: free */
	void *value;
};

void pool_no_memory(void)
{
	fputs("iserctl: out of memory\n", stderr);
	exit(1);
}

static struct pool_block *pool_grow(struct pool *p, size_t size)
{
	size_t room = size > BLOCK ? size : BLOCK;
	struct pool_block *b = calloc(1, sizeof(*b) + room);

	if (!b)
		pool_no_memory();
	b->size = room;
	b->next = p->blocks;
	p->blocks = b;
	return b;
}

void *pool_alloc(struct pool *p, size_t size)
{
	struct pool_block *b = p->blocks;
	void *at;

	size = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
	if (!b || b->size - b->used < size)
		b = pool_grow(p, size);
	at = b->bytes + b->used;
	b->used += size;
	return at;
}

char *pool_copy(struct pool *p, const char *text, size_t len)
{
	char *copy = pool_alloc(p, len + 1);

	memcpy(copy, text, len);
	return copy;
}

char *pool_vformat(struct pool *p, const char *format, va_list args)
{
	char *text = NULL, *copy;
	int len = vasprintf(&text, format, args);

	if (len < 0)
		pool_no_memory();
	copy = pool_copy(p, text, (size_t)len);
	free(text);
	return copy;
}

char *pool_format(struct pool *p, const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	text = pool_vformat(p, format, args);
	va_end(args);
	return text;
}

/* The slot of a key, or the free slot where the key belongs. The address
 * of the table, which differs from run to run, makes collisions hard to plan. */
static struct pool_slot *find_slot(const struct pool *p, const void *scope,
				   const char *key)
{
	uint64_t h = HASH_BEGIN ^ (uintptr_t)scope ^ (uintptr_t)p->slots << 16;
	size_t i;

	h = hash_add(h, key, strlen(key));
	h ^= h >> 32;
	for (i = h & (p->nslots - 1); p->slots[i].key;
	     i = (i + 1) & (p->nslots - 1))
		if (p->slots[i].scope == scope && !strcmp(p->slots[i].key, key))
			break;
	return &p->slots[i];
}

static void grow_slots(struct pool *p)
{
	struct pool_slot *old = p->slots;
	size_t n = p->nslots;

	p->nslots = n ? 2 * n : 256;
	p->slots = pool_alloc(p, p->nslots * sizeof(*p->slots));
	for (size_t i = 0; i < n; i++)
		if (old[i].key)
			*find_slot(p, old[i].scope, old[i].key) = old[i];
}

void pool_put(struct pool *p, const void *scope, const char *key, void *value)
{
	struct pool_slot *slot;

	if (2 * p->nused >= p->nslots)
		grow_slots(p);
	slot = find_slot(p, scope, key);
	if (!slot->key)
		p->nused++;
	*slot = (struct pool_slot){ scope, key, value };
}

void *pool_get(const struct pool *p, const void *scope, const char *key)
{
	const struct pool_slot *slot =
		p->nslots ? find_slot(p, scope, key) : NULL;

	return slot && slot->key ? slot->value : NULL;
}

void pool_free(struct pool *p)
{
	while (p->blocks) {
		struct pool_block *b = p->blocks;

		p->blocks = b->next;
		explicit_bzero(b->bytes, b->used);
		free(b);
	}
	*p = (struct pool){ 0 };
}
