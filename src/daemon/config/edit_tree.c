/* SPDX-License-Identifier: BSD-2-Clause */
/* edit_tree.c: finds nouns in the tree of a configuration by the names of
 * iserctl(1). */
#include "daemon/config/edit_tree.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/nearest.h"
#include "iscsi/names.h"

static const struct edit_noun nouns[] = {
	{ "target", CFG_NOUN_TARGET, "targets" },
	{ "lun", CFG_NOUN_LUN, "luns" },
	{ "map", CFG_NOUN_MAP, "maps" },
	{ "backstore", CFG_NOUN_BACKSTORE, "backstores" },
	{ "portal", CFG_NOUN_PORTAL, "portal-groups" },
	{ "auth", CFG_NOUN_AUTH, "auth-groups" },
	{ "initiators", CFG_NOUN_INITIATORS, "initiator-groups" },
	{ "group", CFG_NOUN_ALUA, "alua-groups" },
	{ "daemon", CFG_NOUN_DAEMON, "daemon" },
};

const struct edit_noun *cfg_edit_noun_find(const char *word)
{
	for (size_t i = 0; i < ARRAY_LEN(nouns); i++)
		if (!strcmp(nouns[i].word, word))
			return &nouns[i];
	return NULL;
}

const char *cfg_edit_noun(const char *word)
{
	const struct edit_noun *n = cfg_edit_noun_find(word);

	return n ? cfg_noun_of(n->id)->name : NULL;
}

/* ---- errors ---- */

bool cfg_edit_fail(const struct edit_tree *t, const char *fmt, ...)
{
	char text[CFG_ERROR_TEXT];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	cfg_error(t->errors, (struct cfg_place){ 0 }, "%s: %s", t->object,
		  text);
	return false;
}

bool cfg_edit_no_memory(const struct edit_tree *t)
{
	cfg_error(t->errors, (struct cfg_place){ 0 }, "out of memory");
	return false;
}

/* ---- the tree ---- */

bool cfg_edit_tree_open(struct edit_tree *t, const struct cfg_model *m,
			const char *word, const char *name, struct cfg_arena *a,
			struct cfg_errors *e)
{
	*t = (struct edit_tree){ .arena = a,
				 .errors = e,
				 .noun = cfg_edit_noun_find(word),
				 .name = name ? name : "" };
	snprintf(t->object, sizeof(t->object), "%.16s%s%.300s", word,
		 name ? " " : "", t->name);
	if (!t->noun)
		return cfg_edit_fail(t, "no such noun; \"methods\" lists them");
	if (t->noun->id == CFG_NOUN_DAEMON && name)
		return cfg_edit_fail(t, "has no name; leave it out");
	if (t->noun->id != CFG_NOUN_DAEMON && !*t->name)
		return cfg_edit_fail(t, "no name; give one after the verb");
	t->root = cfg_node_copy(a, m->head.document);
	return t->root || cfg_edit_no_memory(t);
}

/* Returns the value of a key; if it is missing, NULL or with make a new one.
 * NULL with make: no memory, which is reported. */
static struct cfg_node *child(struct edit_tree *t, struct cfg_node *parent,
			      const char *key, enum cfg_node_type type,
			      bool make)
{
	struct cfg_node *n = cfg_node_get(parent, key);

	if (n || !make)
		return n;
	n = cfg_node_new(t->arena, type, NULL);
	if (n && cfg_node_add(t->arena, parent, key, n))
		return n;
	(void)cfg_edit_no_memory(t);
	return NULL;
}

/* Adds "did you mean" with the key of all that is most like name. */
static bool fail_unknown(const struct edit_tree *t, const char *what,
			 const char *name, const struct cfg_node *all,
			 const char *word)
{
	struct nearest n;

	nearest_begin(&n, name);
	for (unsigned i = 0; all && i < all->n && all->items[i].key; i++)
		nearest_try(&n, all->items[i].key);
	if (n.best)
		return cfg_edit_fail(t, "no such %s; did you mean %.230s?",
				     what, n.best);
	return cfg_edit_fail(t, "no such %s; iserctl %s list lists them", what,
			     word);
}

/* Returns the entry of the target, in whatever form the file has its name, or NULL. */
static struct cfg_item *target_item(const struct cfg_node *all,
				    const char *name)
{
	for (unsigned i = 0; all && i < all->n; i++)
		if (all->items[i].key &&
		    iscsi_name_equal(all->items[i].key, name))
			return &all->items[i];
	return NULL;
}

/* Returns the target whose name has len bytes, or NULL after an error. */
static struct cfg_node *find_target(const struct edit_tree *t, const char *name,
				    size_t len)
{
	const struct cfg_node *all = cfg_node_get(t->root, "targets");
	char *copy = cfg_arena_text(t->arena, name, len);
	struct cfg_item *target = copy ? target_item(all, copy) : NULL;

	if (!copy)
		(void)cfg_edit_no_memory(t);
	else if (!target)
		(void)fail_unknown(t, "target", copy, all, "target");
	return target ? target->value : NULL;
}

/* Reads the number of a map, from 1; 0: it is none. */
static unsigned read_index(const char *text, size_t len)
{
	if (!len || len > 5 || strspn(text, "0123456789") < len)
		return 0;
	return (unsigned)strtoul(text, NULL, 10);
}

/* Finds a map in a target: "TARGET/MAP", or "TARGET" for a new one. */
static bool find_map(struct edit_tree *t, bool make, const char *name,
		     size_t len, struct edit_place *p)
{
	const char *slash = memchr(name, '/', len);
	size_t tlen = slash ? (size_t)(slash - name) : len;
	struct cfg_node *target = find_target(t, name, tlen);
	unsigned index = slash ? read_index(slash + 1, len - tlen - 1) : 0;

	if (!target)
		return false;
	if (slash ? !index : !make)
		return cfg_edit_fail(t,
				     "not the name of a map; give TARGET/MAP, "
				     "with the number of the map from 1");
	p->parent = child(t, target, "maps", CFG_NODE_SEQ, make);
	if (make && !p->parent)
		return false;
	p->index = !p->parent ? 0 : slash ? index - 1 : p->parent->n;
	if (p->parent && p->index < p->parent->n)
		p->item = &p->parent->items[p->index];
	if (make && p->index > p->parent->n)
		return cfg_edit_fail(t,
				     "the target has %u maps; give a number up "
				     "to %u, or none",
				     p->parent->n, p->parent->n + 1);
	return true;
}

/* "TARGET/N" or "TARGET/MAP/N". */
static bool find_lun(struct edit_tree *t, bool make, struct edit_place *p)
{
	const char *last = strrchr(t->name, '/');
	size_t len = last ? (size_t)(last - t->name) : 0;
	struct edit_place map = { 0 };
	struct cfg_node *owner;

	if (!last || !last[1])
		return cfg_edit_fail(t,
				     "not the name of a LUN; give TARGET/N, or "
				     "TARGET/MAP/N for a LUN of a map");
	if (!memchr(t->name, '/', len)) {
		owner = find_target(t, t->name, len);
	} else {
		if (!find_map(t, false, t->name, len, &map))
			return false;
		owner = map.item ? map.item->value : NULL;
		if (!owner)
			return cfg_edit_fail(t, "no such map; iserctl map list "
						"lists them");
	}
	if (!owner)
		return false;
	p->parent = child(t, owner, "luns", CFG_NODE_MAP, make);
	p->key = last + 1;
	return p->parent || !make;
}

bool cfg_edit_find(struct edit_tree *t, bool make, struct edit_place *p)
{
	*p = (struct edit_place){ 0 };
	if (t->noun->id == CFG_NOUN_MAP)
		return find_map(t, make, t->name, strlen(t->name), p);
	if (t->noun->id == CFG_NOUN_LUN) {
		if (!find_lun(t, make, p))
			return false;
	} else if (t->noun->id == CFG_NOUN_DAEMON) {
		p->parent = t->root;
		p->key = t->noun->section;
	} else {
		p->parent =
			child(t, t->root, t->noun->section, CFG_NODE_MAP, make);
		p->key = t->name;
	}
	if (t->noun->id == CFG_NOUN_TARGET)
		p->item = target_item(p->parent, p->key);
	else
		p->item = cfg_node_find(p->parent, p->key);
	if (p->item)
		p->key = p->item->key;
	return p->parent || !make;
}

bool cfg_edit_must_find(struct edit_tree *t, struct edit_place *p)
{
	if (!cfg_edit_find(t, false, p))
		return false;
	return p->item ||
	       fail_unknown(t, cfg_noun_of(t->noun->id)->name,
			    p->key ? p->key : "", p->parent, t->noun->word);
}
