/* SPDX-License-Identifier: BSD-2-Clause */
/* merge.c: trees of a configuration and JSON. The depth of both is limited: of a
 * tree by its reader, of JSON by jansson. */
#include "daemon/rpc/merge.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"

static const char no_memory[] = "out of memory";

/* ---- from a tree to JSON ---- */

static json_t *items_json(const struct cfg_node *n, bool whole)
{
	json_t *all = n->type == CFG_NODE_MAP ? json_object() : json_array();

	for (unsigned i = 0; all && i < n->n; i++) {
		json_t *v = rpc_tree_json(n->items[i].value, whole);
		int err = n->type == CFG_NODE_MAP
				  ? json_object_set_new(all, n->items[i].key, v)
				  : json_array_append_new(all, v);

		if (!err)
			continue;
		json_decref(all);
		all = NULL;
	}
	return all;
}

json_t *rpc_tree_json(const struct cfg_node *n, bool whole)
{
	json_t *v;

	if (n->type != CFG_NODE_SCALAR)
		return items_json(n, whole);
	v = cfg_node_is_null(n) ? NULL : json_string(n->text);
	return v || whole ? v : json_null();
}

/* ---- the version ---- */

/* Includes the NUL of the text, so that "a", "bc" is not "ab", "c". */
static uint64_t hash_text(uint64_t h, const char *text)
{
	return hash_add(h, text, strlen(text) + 1);
}

static uint64_t hash_node(uint64_t h, const struct cfg_node *n)
{
	static const char *const kinds[] = {
		[CFG_NODE_SCALAR] = "s", [CFG_NODE_MAP] = "m", [CFG_NODE_SEQ] = "l"
	};

	h = hash_text(h, kinds[n->type]);
	if (n->type == CFG_NODE_SCALAR)
		return hash_text(h, n->text);
	for (unsigned i = 0; i < n->n; i++) {
		if (n->items[i].key)
			h = hash_text(h, n->items[i].key);
		h = hash_node(h, n->items[i].value);
	}
	return hash_text(h, "e");
}

void rpc_tree_version(const struct cfg_node *n, char out[RPC_VERSION_SIZE])
{
	snprintf(out, RPC_VERSION_SIZE, "%016" PRIx64,
		 hash_node(HASH_BEGIN, n));
}

/* ---- from a patch to a tree ---- */

static const char *make_node(struct cfg_arena *a, const json_t *v,
			     struct cfg_node **out);

static const char *make_scalar(struct cfg_arena *a, const json_t *v,
			       struct cfg_node **out)
{
	char number[32];
	const char *text = number;

	if (json_is_string(v))
		text = json_string_value(v);
	else if (json_is_boolean(v))
		text = json_is_true(v) ? "yes" : "no";
	else if (json_is_integer(v))
		snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT,
			 json_integer_value(v));
	else
		return "a value is neither a string, a boolean nor an integer";
	*out = cfg_node_new(a, CFG_NODE_SCALAR, text);
	return *out ? NULL : no_memory;
}

static const char *make_list(struct cfg_arena *a, const json_t *v,
			     struct cfg_node **out)
{
	const char *why = NULL;
	struct cfg_node *item;

	*out = cfg_node_new(a, CFG_NODE_SEQ, NULL);
	for (size_t i = 0; *out && !why && i < json_array_size(v); i++) {
		why = make_node(a, json_array_get(v, i), &item);
		if (!why && !cfg_node_add(a, *out, NULL, item))
			why = no_memory;
	}
	return *out ? why : no_memory;
}

/* A patch for a member that does not exist is merged with an empty mapping, so
 * that its nulls have no effect (RFC 7396 §2). */
static const char *make_node(struct cfg_arena *a, const json_t *v,
			     struct cfg_node **out)
{
	if (json_is_array(v))
		return make_list(a, v, out);
	if (!json_is_object(v))
		return make_scalar(a, v, out);
	*out = cfg_node_new(a, CFG_NODE_MAP, NULL);
	return *out ? rpc_tree_merge(a, *out, v) : no_memory;
}

/* Merges v with the member of the tree that has its name. */
static const char *merge_member(struct cfg_arena *a, struct cfg_item *item,
				const json_t *v)
{
	if (json_is_object(v) && item->value->type == CFG_NODE_MAP)
		return rpc_tree_merge(a, item->value, v);
	return make_node(a, v, &item->value);
}

static const char *add_member(struct cfg_arena *a, struct cfg_node *n,
			      const char *key, const json_t *v)
{
	struct cfg_node *made;
	const char *why = make_node(a, v, &made);

	return why || cfg_node_add(a, n, key, made) ? why : no_memory;
}

/* The names of a patch differ (JSON_REJECT_DUPLICATES), so a name that the tree did
 * not have needs no look-up, and the look-ups are over before the tree changes its
 * order: a patch with thousands of names must not block worker 0. */
const char *rpc_tree_merge(struct cfg_arena *a, struct cfg_node *n,
			   const json_t *patch)
{
	struct cfg_node *added = cfg_node_new(a, CFG_NODE_MAP, NULL);
	const char *key, *why = added ? NULL : no_memory;
	struct cfg_item *item;
	json_t *v;

	(void)cfg_node_sort(a, n);
	json_object_foreach((json_t *)patch, key, v)
	{
		if (why)
			return why;
		item = cfg_node_find(n, key);
		if (json_is_null(v) && item)
			item->value = NULL; /* removed below */
		else if (item)
			why = merge_member(a, item, v);
		else if (!json_is_null(v))
			why = add_member(a, added, key, v);
	}
	if (!why && !cfg_node_join(a, n, added))
		why = no_memory;
	return why;
}
