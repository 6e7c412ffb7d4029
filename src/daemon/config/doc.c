/* SPDX-License-Identifier: BSD-2-Clause */
/* doc.c: see doc.h. The depth of documents is limited by their readers: yaml.c and
 * jansson. */
#include "daemon/config/doc.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"

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
	if ((!a->chunks || a->left < size) && !add_chunk(a, size))
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

/* ---- places ---- */

bool cfg_places_add(struct cfg_places *p, const struct cfg_spot *s)
{
	if (p->n == p->room) {
		size_t room = p->room ? 2 * p->room : 64;
		struct cfg_spot *v = realloc(p->v, room * sizeof(*v));

		if (!v)
			return false;
		p->v = v;
		p->room = room;
	}
	p->v[p->n++] = *s;
	return true;
}

static int compare_spots(const void *a, const void *b)
{
	const struct cfg_spot *x = a, *y = b;

	return (x->value > y->value) - (x->value < y->value);
}

void cfg_places_sort(struct cfg_places *p)
{
	if (p->n)
		qsort(p->v, p->n, sizeof(*p->v), compare_spots);
}

const struct cfg_spot *cfg_spot_of(const struct cfg_places *p, const json_t *v)
{
	static const struct cfg_spot nowhere;
	const struct cfg_spot key = { .value = v }, *s = NULL;

	if (p && p->n)
		s = bsearch(&key, p->v, p->n, sizeof(key), compare_spots);
	return s ? s : &nowhere;
}

/* ---- texts ---- */

json_t *cfg_doc_split(const char *text)
{
	json_t *list = json_array();
	size_t len;

	for (const char *p = text; list && *p; p += len + (p[len] == ',')) {
		len = strcspn(p, ",");
		if (!json_array_append_new(list, json_stringn_nocheck(p, len)))
			continue;
		json_decref(list);
		return NULL;
	}
	return list;
}

json_t *cfg_doc_utf8(json_t *doc, bool whole)
{
	json_t *out, *v, *copy;
	const char *key;
	size_t i;
	int err = 0;

	if (json_is_string(doc)) {
		out = json_string(json_string_value(doc));
		return out || whole ? out : json_null();
	}
	if (!json_is_object(doc) && !json_is_array(doc))
		return json_incref(doc);
	out = json_is_object(doc) ? json_object() : json_array();
	json_object_foreach(doc, key, v)
	{
		copy = cfg_doc_utf8(v, whole);
		err |= json_object_set_new(out, key, copy);
	}
	json_array_foreach(doc, i, v)
	{
		copy = cfg_doc_utf8(v, whole);
		err |= json_array_append_new(out, copy);
	}
	if (!err)
		return out;
	json_decref(out);
	return NULL;
}

/* ---- the version ---- */

/* Includes the NUL of the text, so that "a", "bc" is not "ab", "c". */
static uint64_t hash_text(uint64_t h, const char *text)
{
	return hash_add(h, text, strlen(text) + 1);
}

static uint64_t hash_value(uint64_t h, json_t *doc)
{
	const char *key;
	json_t *v;
	size_t i;

	if (json_is_string(doc))
		return hash_text(hash_text(h, "s"), json_string_value(doc));
	h = hash_text(h, json_is_object(doc) ? "m" : "l");
	json_object_foreach(doc, key, v) h = hash_value(hash_text(h, key), v);
	json_array_foreach(doc, i, v) h = hash_value(h, v);
	return hash_text(h, "e");
}

void cfg_doc_version(json_t *doc, char out[CFG_VERSION_SIZE])
{
	snprintf(out, CFG_VERSION_SIZE, "%016" PRIx64,
		 hash_value(HASH_BEGIN, doc));
}

/* ---- patches ---- */

static const char no_memory[] = "out of memory";

/* Makes *out the value of a patch, in which all scalars are texts. A patch for a
 * member that does not exist is merged with an empty mapping, so that its nulls have no
 * effect (RFC 7396 §2). */
static const char *value_of_patch(json_t *v, json_t **out)
{
	const char *why = NULL;
	json_t *one;
	size_t i;

	*out = NULL;
	if (json_is_string(v)) {
		*out = json_incref(v);
	} else if (json_is_boolean(v)) {
		*out = json_string(json_is_true(v) ? "yes" : "no");
	} else if (json_is_integer(v)) {
		*out = json_sprintf("%" JSON_INTEGER_FORMAT,
				    json_integer_value(v));
	} else if (json_is_object(v)) {
		*out = json_object();
		why = cfg_doc_merge(*out, v);
	} else if (json_is_array(v)) {
		*out = json_array();
		json_array_foreach(v, i, one)
		{
			if (!why)
				why = value_of_patch(one, &one);
			if (!why && json_array_append_new(*out, one))
				why = no_memory;
		}
	} else {
		return "a value is neither a string, a boolean nor an integer";
	}
	if (!why && !*out)
		why = no_memory;
	if (why) {
		json_decref(*out);
		*out = NULL;
	}
	return why;
}

const char *cfg_doc_merge(json_t *doc, json_t *patch)
{
	const char *key, *why = NULL;
	json_t *v, *have, *value;

	json_object_foreach(patch, key, v)
	{
		have = json_object_get(doc, key);
		if (json_is_null(v)) {
			(void)json_object_del(doc, key);
		} else if (json_is_object(v) && json_is_object(have)) {
			why = cfg_doc_merge(have, v);
		} else {
			why = value_of_patch(v, &value);
			if (!why && json_object_set_new(doc, key, value))
				why = no_memory;
		}
		if (why)
			return why;
	}
	return NULL;
}
