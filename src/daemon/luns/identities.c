/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * identities.c: the file `identities`, which has a line for each store: its kind, its
 * record (identity_record.h), and "key=" with the rest of the line.
 */
#include "daemon/luns/identities.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/escape.h"
#include "base/hash.h"
#include "base/list.h"
#include "daemon/log/say.h"
#include "daemon/luns/state.h"

#define LINES	65536u /* the oldest ones are left out */
#define KEY_MAX 4400u  /* a path, escaped or cut off */
#define BUCKETS 1024u

static const struct state_record record = {
	.name = "identities",
	.type = "ISERIDS1",
	.max = 64u << 20,
	.without = "then units whose identity is only there get a new one",
};

static const char *const kinds[] = {
	[IDENTITY_OF_FILE] = "file",	 [IDENTITY_OF_DEVICE] = "device",
	[IDENTITY_OF_EXPORT] = "export", [IDENTITY_OF_DRIVE] = "drive",
	[IDENTITY_AT_PATH] = "path",
};

struct entry {
	struct list link;   /* of its bucket */
	struct list by_age; /* the newest one is the last one */
	enum identity_kind kind;
	struct identity_record r;
	char key[]; /* escaped */
};

struct identities {
	const struct state *state;
	struct machine machine;
	struct list buckets[BUCKETS];
	struct list all;
	unsigned n;
	bool has_changed;
};

/* A file is found by its inode first. */
static struct list *bucket(struct identities *all, enum identity_kind kind,
			   const char *key, uint64_t inode)
{
	uint64_t h = inode;

	if (kind != IDENTITY_OF_FILE)
		h = hash_add(h, key, strlen(key));
	return &all->buckets[(h ^ h >> 32) % BUCKETS];
}

static bool is_same(const struct entry *e, enum identity_kind kind,
		    const char *key, const struct identity_place *place)
{
	if (e->kind != kind)
		return false;
	return kind == IDENTITY_OF_FILE
		       ? identity_place_agrees(&e->r.place, place)
		       : !strcmp(e->key, key);
}

static struct entry *find(const struct identities *all, enum identity_kind kind,
			  const char *key, const struct identity_place *place)
{
	struct identities *a = (struct identities *)(uintptr_t)all;
	uint64_t inode = kind == IDENTITY_OF_FILE ? place->inode : 0;

	const struct list *head = bucket(a, kind, key, inode);

	list_for_each(it, head) {
		struct entry *e = list_entry(it, struct entry, link);

		if (is_same(e, kind, key, place))
			return e;
	}
	return NULL;
}

static void escape_key(char out[KEY_MAX], const char *key)
{
	text_escape_str(out, KEY_MAX, key ? key : "");
}

const struct identity_record *
identities_find(const struct identities *all, enum identity_kind kind,
		const char *key, const struct identity_place *here,
		const struct identity_record **other)
{
	char escaped[KEY_MAX];
	struct entry *e;

	escape_key(escaped, key);
	e = find(all, kind, escaped, here);
	if (other)
		*other = NULL;
	if (!e || identity_place_agrees(&e->r.place, here))
		return e ? &e->r : NULL;
	if (other)
		*other = &e->r;
	return NULL;
}

bool identities_has(const struct identities *all, const uint8_t uuid[16])
{
	list_for_each(it, &all->all) {
		const struct entry *e = list_entry(it, struct entry, by_age);

		if (!memcmp(e->r.uuid, uuid, 16))
			return true;
	}
	return false;
}

static void drop(struct identities *all, struct entry *e)
{
	list_del(&e->link);
	list_del(&e->by_age);
	all->n--;
	free(e);
}

static bool add(struct identities *all, enum identity_kind kind,
		const char *key, const struct identity_record *r)
{
	size_t len = strlen(key) + 1;
	uint64_t inode = kind == IDENTITY_OF_FILE ? r->place.inode : 0;
	struct entry *e = calloc(1, sizeof(*e) + len);

	if (!e)
		return false;
	e->kind = kind;
	e->r = *r;
	memcpy(e->key, key, len);
	list_push_back(bucket(all, kind, key, inode), &e->link);
	list_push_back(&all->all, &e->by_age);
	if (++all->n > LINES)
		drop(all, list_entry(all->all.next, struct entry, by_age));
	return true;
}

static bool is_same_record(const struct identity_record *a,
			   const struct identity_record *b)
{
	char x[IDENTITY_TEXT_MAX], y[IDENTITY_TEXT_MAX];

	identity_record_put(a, x);
	identity_record_put(b, y);
	return !strcmp(x, y);
}

bool identities_put(struct identities *all, enum identity_kind kind,
		    const char *key, const struct identity_record *r)
{
	char escaped[KEY_MAX];
	struct entry *old;

	if (!all->state)
		return false;
	escape_key(escaped, key);
	old = find(all, kind, escaped, &r->place);
	if (!add(all, kind, escaped, r))
		return false;
	all->has_changed |= !old || !is_same_record(&old->r, r);
	if (old)
		drop(all, old);
	return true;
}

/* ---- load ---- */

static int kind_of(const char *text, size_t len)
{
	for (unsigned i = 0; i < ARRAY_LEN(kinds); i++)
		if (strlen(kinds[i]) == len && !memcmp(kinds[i], text, len))
			return (int)i;
	return -1;
}

/* Takes one line, without its newline. */
static bool take_line(struct identities *all, char *line)
{
	char *text = strchr(line, ' '), *key = strstr(line, " key=");
	int kind = text ? kind_of(line, (size_t)(text - line)) : -1;
	struct identity_record r;

	if (kind < 0 || !key || key < text + 1 ||
	    identity_record_get(&r, text + 1, (size_t)(key - text - 1)))
		return false;
	key += 5;
	if (strlen(key) >= KEY_MAX ||
	    (kind == IDENTITY_OF_FILE && (*key || !r.place.inode)))
		return false;
	return add(all, (enum identity_kind)kind, key, &r);
}

bool identities_take_lines(struct identities *all, char *text)
{
	while (*text) {
		char *end = strchr(text, '\n');

		if (!end)
			return false;
		*end = '\0';
		if (!take_line(all, text))
			return false;
		text = end + 1;
	}
	return true;
}

static bool load(struct identities *all)
{
	char *text;
	bool good;

	if (!all->state)
		return true;
	if (!state_record_read(all->state, &record, &text))
		return false;
	good = !text || identities_take_lines(all, text);
	if (!good)
		state_record_damaged(all->state, &record);
	free(text);
	return good;
}

struct identities *identities_new(const struct state *s)
{
	struct identities *all = calloc(1, sizeof(*all));

	if (!all) {
		say("out of memory");
		return NULL;
	}
	all->state = s;
	list_init(&all->all);
	for (unsigned i = 0; i < BUCKETS; i++)
		list_init(&all->buckets[i]);
	identity_machine_read(&all->machine);
	if (load(all))
		return all;
	identities_free(all);
	return NULL;
}

void identities_free(struct identities *all)
{
	while (all && all->n)
		drop(all, list_entry(all->all.next, struct entry, by_age));
	free(all);
}

const struct state *identities_state(const struct identities *all)
{
	return all->state;
}

const struct machine *identities_machine(const struct identities *all)
{
	return &all->machine;
}

/* ---- save ---- */

static void write_lines(const struct identities *all, FILE *f)
{
	char text[IDENTITY_TEXT_MAX];

	list_for_each(it, &all->all) {
		const struct entry *e = list_entry(it, struct entry, by_age);

		identity_record_put(&e->r, text);
		fprintf(f, "%s %s key=%s\n", kinds[e->kind], text, e->key);
	}
}

void identities_save(struct identities *all)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f;

	if (!all->has_changed)
		return;
	f = open_memstream(&text, &len);
	if (f)
		write_lines(all, f);
	if (!f || fclose(f))
		say("out of memory: %s/%s was not written",
		    state_path(all->state), record.name);
	else if (state_record_save(all->state, &record, text))
		all->has_changed = false;
	free(text);
}
