/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * read_lio.c: reads saveconfig.json, which is JSON with lists of objects. rtslib
 * refuses a file with another value in the place of such a list, and the importer,
 * which looks for lists, would miss the rules in it.
 */
#include <string.h>

#include "base/bytes.h"
#include "tools/import/tree.h"

/* The members that have other members inside. */
static const struct member {
	const char *key;
	enum tree_kind kind;
} members[] = {
	{ "alua_tpgs", TREE_ARRAY },
	{ "attributes", TREE_OBJECT },
	{ "fabric_modules", TREE_ARRAY },
	{ "luns", TREE_ARRAY },
	{ "mapped_luns", TREE_ARRAY },
	{ "node_acls", TREE_ARRAY },
	{ "parameters", TREE_OBJECT },
	{ "portals", TREE_ARRAY },
	{ "storage_objects", TREE_ARRAY },
	{ "targets", TREE_ARRAY },
	{ "tpgs", TREE_ARRAY },
};

static bool is_null(const struct tree *t)
{
	return t->kind == TREE_SCALAR && !t->text;
}

/* Checks a member whose kind is known. False after an error. */
static bool check_member(struct tree_input *in, const struct tree *t,
			 enum tree_kind kind)
{
	if (t->kind != kind)
		return tree_fail(in, t->line,
				 "%s: not %s, as rtslib writes it; repair the "
				 "file",
				 t->key,
				 kind == TREE_ARRAY ? "a list" : "an object");
	for (const struct tree *c = t->first; kind == TREE_ARRAY && c;
	     c = c->next)
		if (c->kind != TREE_OBJECT)
			return tree_fail(in, c->line,
					 "%s: an element that is not an "
					 "object; repair the file",
					 t->key);
	return true;
}

/* Checks what is inside t; its depth is limited by the reader. */
static bool check_members(struct tree_input *in, const struct tree *t)
{
	for (const struct tree *c = t->first; c; c = c->next) {
		for (size_t i = 0; i < ARRAY_LEN(members); i++)
			if (c->key && !strcmp(members[i].key, c->key) &&
			    !is_null(c) &&
			    !check_member(in, c, members[i].kind))
				return false;
		if (!check_members(in, c))
			return false;
	}
	return true;
}

struct tree *tree_read_lio(struct tree_input *in)
{
	struct tree *t = tree_read_json(in);

	return t && check_members(in, t) ? t : NULL;
}
