/* SPDX-License-Identifier: BSD-2-Clause */
/* edit_show.c: the nouns of a configuration as a list, and one of them with all its
 * fields. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config/edit_tree.h"

#define LINE_MAX_BYTES 1000 /* of a list of texts in a table */

/* ---- the list ---- */

struct lister {
	struct cfg_arena *arena;
	enum cfg_noun_id id;
	struct cfg_node *out;
	bool failed;
};

static void add_text(struct lister *l, struct cfg_node *row, const char *key,
		     const char *text)
{
	struct cfg_node *v = cfg_node_new(l->arena, CFG_NODE_SCALAR, text);

	l->failed |= !row || !v || !cfg_node_add(l->arena, row, key, v);
}

/* Writes the entries of a list with commas between them. */
static void join(const struct cfg_node *list, char *out, size_t size)
{
	size_t len = 0;

	out[0] = '\0';
	for (unsigned i = 0; i < list->n && len < size; i++)
		len += (size_t)snprintf(out + len, size - len, "%s%s",
					i ? "," : "",
					list->items[i].value->text);
}

static void add_field(struct lister *l, struct cfg_node *row, const char *key,
		      const struct cfg_node *v)
{
	char text[LINE_MAX_BYTES];

	if (v->type == CFG_NODE_SCALAR) {
		add_text(l, row, key, v->text);
		return;
	}
	if (v->type == CFG_NODE_SEQ && v->n &&
	    v->items[0].value->type == CFG_NODE_SCALAR)
		join(v, text, sizeof(text));
	else
		snprintf(text, sizeof(text), "%u", v->n);
	add_text(l, row, key, text);
}

static void add_row(struct lister *l, const char *name,
		    const struct cfg_node *noun)
{
	struct cfg_node *row = cfg_node_new(l->arena, CFG_NODE_MAP, NULL);
	const char *brief = cfg_noun_of(l->id)->brief;

	add_text(l, row, "name", name);
	if (noun->type != CFG_NODE_MAP && brief)
		add_field(l, row, brief, noun);
	for (unsigned i = 0; noun->type == CFG_NODE_MAP && i < noun->n; i++)
		add_field(l, row, noun->items[i].key, noun->items[i].value);
	l->failed |= !row || !cfg_node_add(l->arena, l->out, NULL, row);
}

/* Adds the entries of one mapping or list; prefix: of their names. */
static void add_rows(struct lister *l, const struct cfg_node *all,
		     const char *prefix)
{
	char name[400];

	for (unsigned i = 0; all && i < all->n; i++) {
		if (all->items[i].key)
			snprintf(name, sizeof(name), "%s%s", prefix,
				 all->items[i].key);
		else
			snprintf(name, sizeof(name), "%s%u", prefix, i + 1);
		add_row(l, name, all->items[i].value);
	}
}

/* LUNs and maps, which are in targets. */
static void add_inner(struct lister *l, const struct cfg_node *targets)
{
	char prefix[300];

	for (unsigned i = 0; targets && i < targets->n; i++) {
		const struct cfg_item *t = &targets->items[i];
		const struct cfg_node *maps = cfg_node_get(t->value, "maps");

		snprintf(prefix, sizeof(prefix), "%s/", t->key);
		if (l->id == CFG_NOUN_MAP)
			add_rows(l, maps, prefix);
		else
			add_rows(l, cfg_node_get(t->value, "luns"), prefix);
		for (unsigned k = 0;
		     l->id == CFG_NOUN_LUN && maps && k < maps->n; k++) {
			snprintf(prefix, sizeof(prefix), "%s/%u/", t->key,
				 k + 1);
			add_rows(l, cfg_node_get(maps->items[k].value, "luns"),
				 prefix);
		}
	}
}

struct cfg_node *cfg_edit_list(const struct cfg_model *m, const char *word,
			       struct cfg_arena *a)
{
	const struct edit_noun *noun = cfg_edit_noun_find(word);
	const struct cfg_node *root = m->head.document;
	struct lister l = { .arena = a, .id = noun->id };

	l.out = cfg_node_new(a, CFG_NODE_SEQ, NULL);
	if (!l.out)
		return NULL;
	if (l.id == CFG_NOUN_LUN || l.id == CFG_NOUN_MAP)
		add_inner(&l, cfg_node_get(root, "targets"));
	else if (l.id != CFG_NOUN_DAEMON)
		add_rows(&l, cfg_node_get(root, noun->section), "");
	else if (cfg_node_get(root, noun->section))
		add_row(&l, "daemon", cfg_node_get(root, noun->section));
	return l.failed ? NULL : l.out;
}

/* ---- one noun ---- */

/* Returns the value of a field that is not in the tree: its default, or null. */
static struct cfg_node *default_of(struct edit_tree *t,
				   const struct cfg_field *f,
				   const struct options *defaults)
{
	char text[CFG_VALUE_SIZE] = "";
	struct cfg_node *n;

	if (f->shape == CFG_ONE)
		cfg_default_text(f, defaults, text, sizeof(text));
	n = cfg_node_new(t->arena, CFG_NODE_SCALAR, text);
	if (n)
		n->is_quoted = *text;
	return n;
}

static struct cfg_node *all_fields(struct edit_tree *t,
				   const struct cfg_node *noun)
{
	const struct cfg_noun *row = cfg_noun_of(t->noun->id);
	struct cfg_node *out = cfg_node_new(t->arena, CFG_NODE_MAP, NULL);
	struct options *defaults = calloc(1, sizeof(*defaults));
	bool good = out && defaults;

	if (defaults)
		options_default(defaults);
	for (unsigned i = 0; good && i < row->nfields; i++) {
		const struct cfg_field *f = &row->fields[i];
		const char *name = cfg_field_name(f);
		struct cfg_node *v = cfg_node_get(noun, name);

		if (row->brief && noun->type != CFG_NODE_MAP &&
		    !strcmp(row->brief, name))
			v = cfg_node_copy(t->arena, noun);
		if (!v)
			v = default_of(t, f, defaults);
		good = cfg_node_add(t->arena, out, name, v);
	}
	free(defaults);
	if (!good)
		(void)cfg_edit_no_memory(t);
	return good ? out : NULL;
}

struct cfg_node *cfg_edit_show(const struct cfg_model *m, const char *word,
			       const char *name, struct cfg_arena *a,
			       struct cfg_errors *e)
{
	static const struct cfg_node empty = { .type = CFG_NODE_MAP };
	struct edit_tree t;
	struct edit_place p;

	if (!cfg_edit_tree_open(&t, m, word, name, a, e))
		return NULL;
	if (t.noun->id != CFG_NOUN_DAEMON)
		return cfg_edit_must_find(&t, &p)
			       ? all_fields(&t, p.item->value)
			       : NULL;
	if (!cfg_edit_find(&t, false, &p))
		return NULL;
	return all_fields(&t, p.item ? p.item->value : &empty);
}
