/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * node.h: a configuration file as a tree of scalars, mappings and sequences,
 * each with its line and column; and the memory of such a tree. yaml.c reads and
 * writes trees, model_read.c makes a model of a tree.
 */
#ifndef DAEMON_CONFIG_NODE_H
#define DAEMON_CONFIG_NODE_H

#include <stdbool.h>
#include <stddef.h>

/* Memory that is freed as a whole. All zero: empty. */
struct cfg_arena {
	struct cfg_chunk *chunks;
	size_t left; /* bytes of the newest chunk that are not in use */
};

/* cfg_arena_alloc returns size bytes of zeros, which live until cfg_arena_free.
 * NULL: no memory. */
void *cfg_arena_alloc(struct cfg_arena *a, size_t size);
/* cfg_arena_text returns a copy of len bytes with a final NUL. NULL: no
 * memory. */
char *cfg_arena_text(struct cfg_arena *a, const char *text, size_t len);
/* cfg_arena_free frees all memory of the arena, which is empty then. */
void cfg_arena_free(struct cfg_arena *a);

enum cfg_node_type {
	CFG_NODE_SCALAR,
	CFG_NODE_MAP,
	CFG_NODE_SEQ,
};

/* Where a node is in its file, from 1; line 0: the program made the node. */
struct cfg_place {
	unsigned line, column;
};

struct cfg_node;

/* An entry of a mapping or sequence. */
struct cfg_item {
	const char *key;     /* NULL: of a sequence */
	struct cfg_place at; /* of the key */
	struct cfg_node *value;
};

/* All pointers are to memory of the tree's arena. */
struct cfg_node {
	enum cfg_node_type type;
	bool is_quoted; /* a scalar in quotes or of the program: never null */
	struct cfg_place at;
	const char *text; /* of a scalar */
	struct cfg_item *items;
	unsigned n, room;
	unsigned *by_key; /* the items in the order of their keys, or NULL */
};

/* cfg_node_new returns an empty node; text, which is copied, is that of a scalar.
 * NULL: no memory. */
struct cfg_node *cfg_node_new(struct cfg_arena *a, enum cfg_node_type type,
			      const char *text);
/* cfg_node_add adds value at the end of a mapping (key, which is copied) or of a
 * sequence (key NULL), and returns the new item. NULL: no memory. */
struct cfg_item *cfg_node_add(struct cfg_arena *a, struct cfg_node *n,
			      const char *key, struct cfg_node *value);
/* cfg_node_split returns the texts between commas as a sequence. NULL: no memory. */
struct cfg_node *cfg_node_split(struct cfg_arena *a, const char *text);
/* cfg_node_take removes an item of n. */
void cfg_node_take(struct cfg_node *n, struct cfg_item *item);
/* cfg_node_remove removes the item with this key. False: there is none. */
bool cfg_node_remove(struct cfg_node *n, const char *key);
/* cfg_node_join removes the items of the mapping n whose value is NULL, and adds the
 * items of `more`, whose keys n does not have. False: no memory. */
bool cfg_node_join(struct cfg_arena *a, struct cfg_node *n,
		   const struct cfg_node *more);
/* cfg_node_sort makes cfg_node_find fast for a large mapping, and returns the
 * first item whose key the mapping has twice, or NULL. Changes end the effect. */
const struct cfg_item *cfg_node_sort(struct cfg_arena *a, struct cfg_node *n);
/* cfg_node_find returns the item with this key. NULL: n is NULL or no mapping, or
 * does not have the key. */
struct cfg_item *cfg_node_find(const struct cfg_node *n, const char *key);
/* cfg_node_get returns the value of cfg_node_find, or NULL. */
struct cfg_node *cfg_node_get(const struct cfg_node *n, const char *key);
/* cfg_node_is_null returns whether the value was left out, or is null or ~. */
bool cfg_node_is_null(const struct cfg_node *n);
/* cfg_node_is_same returns whether two nodes have the same texts; the order counts in
 * sequences only. */
bool cfg_node_is_same(const struct cfg_node *a, const struct cfg_node *b);
/* cfg_node_copy returns a copy of n with its own memory in a, which is in no file.
 * NULL: no memory. */
struct cfg_node *cfg_node_copy(struct cfg_arena *a, const struct cfg_node *n);

#endif
