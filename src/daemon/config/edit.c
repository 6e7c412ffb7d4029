/* SPDX-License-Identifier: BSD-2-Clause */
/* edit.c: adds, changes and removes one noun of a configuration. */
#include "daemon/config/edit.h"

#include <stdio.h>
#include <string.h>

#include "daemon/config/edit_tree.h"

/* ---- the place of a noun ---- */

static struct cfg_node *new_map(const struct edit_tree *t)
{
	struct cfg_node *n = cfg_node_new(t->arena, CFG_NODE_MAP, NULL);

	if (!n)
		(void)cfg_edit_no_memory(t);
	return n;
}

/* Makes the noun a mapping: the file may give the value of one field alone. */
static bool write_out(const struct edit_tree *t, struct edit_place *p)
{
	const char *brief = cfg_noun_of(t->noun->id)->brief;
	struct cfg_node *n;

	if (p->item->value->type == CFG_NODE_MAP)
		return true;
	n = new_map(t);
	if (!n)
		return false;
	if (!brief || !cfg_node_add(t->arena, n, brief, p->item->value))
		return cfg_edit_no_memory(t);
	p->item->value = n;
	return true;
}

/* Adds an empty noun at p, where there is none, or before the map that is there. */
static bool insert(const struct edit_tree *t, struct edit_place *p)
{
	struct cfg_node *n = new_map(t);
	unsigned last;

	if (!n)
		return false;
	p->item = cfg_node_add(t->arena, p->parent, p->key, n);
	if (!p->item)
		return cfg_edit_no_memory(t);
	last = p->parent->n - 1;
	if (!p->key && p->index < last) {
		struct cfg_item *items = p->parent->items;
		const struct cfg_item added = items[last];

		memmove(&items[p->index + 1], &items[p->index],
			(last - p->index) * sizeof(*items));
		items[p->index] = added;
		p->item = &items[p->index];
	}
	return true;
}

/* ---- a LUN with a new backstore ---- */

/* Writes a name that no backstore has to name. */
static void choose_name(const struct cfg_node *stores, char name[32])
{
	unsigned i = 0;

	do
		snprintf(name, 32, "disk%u", i++);
	while (cfg_node_get(stores, name));
}

/* Adds the backstore of a LUN whose fields have "store": the fields that are not
 * those of a LUN, in *of_store, are its own. *of_lun gets those of a LUN. */
static bool part_fields(struct edit_tree *t, const struct cfg_node *fields,
			struct cfg_node *of_lun, struct cfg_node *of_store)
{
	const struct cfg_noun *lun = cfg_noun_of(CFG_NOUN_LUN);

	for (unsigned i = 0; i < fields->n; i++) {
		const struct cfg_item *f = &fields->items[i];
		struct cfg_node *to =
			cfg_noun_field(lun, f->key, strlen(f->key)) ? of_lun
								    : of_store;

		if (!cfg_node_add(t->arena, to, f->key, f->value))
			return cfg_edit_no_memory(t);
	}
	return true;
}

static struct cfg_node *stores_of(const struct edit_tree *t)
{
	struct cfg_node *stores = cfg_node_get(t->root, "backstores");

	if (stores)
		return stores;
	stores = new_map(t);
	if (stores && cfg_node_add(t->arena, t->root, "backstores", stores))
		return stores;
	return NULL;
}

/* Returns the fields of the LUN alone, after it has added the backstore that the
 * fields are of, too. NULL after an error. */
static const struct cfg_node *add_store(struct edit_tree *t,
					const struct cfg_node *fields)
{
	struct cfg_node *of_lun = new_map(t), *of_store = new_map(t);
	struct cfg_node *stores = stores_of(t), *name;
	char chosen[32];

	if (!of_lun || !of_store || !stores ||
	    !part_fields(t, fields, of_lun, of_store))
		return NULL;
	name = cfg_node_get(of_lun, "backstore");
	if (!name) {
		choose_name(stores, chosen);
		name = cfg_node_new(t->arena, CFG_NODE_SCALAR, chosen);
		if (!name ||
		    !cfg_node_add(t->arena, of_lun, "backstore", name)) {
			(void)cfg_edit_no_memory(t);
			return NULL;
		}
	}
	if (name->type != CFG_NODE_SCALAR || cfg_node_get(stores, name->text)) {
		cfg_edit_fail(t,
			      "backstore %.64s: exists already; leave out "
			      "store, or give another name",
			      name->text ? name->text : "");
		return NULL;
	}
	fields = of_store;
	of_store = new_map(t);
	if (!of_store ||
	    !cfg_node_add(t->arena, stores, name->text, of_store) ||
	    !cfg_edit_set_fields(t, CFG_NOUN_BACKSTORE, of_store, fields))
		return NULL;
	return of_lun;
}

/* ---- verbs ---- */

static bool change(struct edit_tree *t, struct edit_place *p,
		   const struct cfg_node *fields)
{
	if (t->noun->id == CFG_NOUN_LUN && cfg_node_get(fields, "store")) {
		fields = add_store(t, fields);
		if (!fields)
			return false;
	}
	return write_out(t, p) &&
	       cfg_edit_set_fields(t, t->noun->id, p->item->value, fields);
}

static bool do_add(struct edit_tree *t, const struct cfg_edit *x)
{
	struct edit_place p;

	if (t->noun->id == CFG_NOUN_DAEMON)
		return cfg_edit_fail(t,
				     "always there; iserctl daemon set changes "
				     "it");
	if (!cfg_edit_find(t, true, &p))
		return false;
	if (p.item && p.key)
		return cfg_edit_fail(
			t, "exists already; iserctl %s set changes it",
			t->noun->word);
	return insert(t, &p) && change(t, &p, x->fields);
}

static bool do_set(struct edit_tree *t, const struct cfg_edit *x)
{
	bool is_daemon = t->noun->id == CFG_NOUN_DAEMON;
	struct edit_place p;

	if (!x->fields || !x->fields->n)
		return cfg_edit_fail(
			t,
			"no field to set; give FIELD=VALUE; iserctl "
			"%s show lists the fields",
			t->noun->word);
	if (is_daemon ? !cfg_edit_find(t, true, &p)
		      : !cfg_edit_must_find(t, &p))
		return false;
	if (!p.item && !insert(t, &p))
		return false;
	return change(t, &p, x->fields);
}

static bool do_replace(struct edit_tree *t, const struct cfg_edit *x)
{
	const struct cfg_node *name = cfg_node_get(x->fields, "backstore");
	const struct cfg_node *have;
	struct edit_place p;

	if (t->noun->id != CFG_NOUN_LUN)
		return cfg_edit_fail(t, "only a LUN can be replaced");
	if (!name && !cfg_node_get(x->fields, "store"))
		return cfg_edit_fail(t, "no backstore; give backstore=NAME, or "
					"store=STORE for a new one");
	if (!cfg_edit_must_find(t, &p) || !write_out(t, &p))
		return false;
	have = cfg_node_get(p.item->value, "backstore");
	if (name && have && name->type == CFG_NODE_SCALAR &&
	    !strcmp(name->text, have->text))
		return cfg_edit_fail(t, "has the backstore %.64s already",
				     name->text);
	return change(t, &p, x->fields);
}

static bool do_remove(struct edit_tree *t, const struct cfg_edit *x)
{
	struct edit_place p;

	if (x->fields && x->fields->n)
		return cfg_edit_fail(t,
				     "remove has no fields; iserctl %s set %s "
				     "FIELD= removes a field",
				     t->noun->word, t->name);
	if (t->noun->id == CFG_NOUN_DAEMON)
		return cfg_edit_fail(t, "cannot be removed");
	if (!cfg_edit_must_find(t, &p))
		return false;
	cfg_node_take(p.parent, p.item);
	return true;
}

struct cfg_model *cfg_edit(const struct cfg_model *m, const struct cfg_edit *x,
			   struct cfg_errors *e)
{
	static bool (*const verbs[])(struct edit_tree *,
				     const struct cfg_edit *) = {
		[CFG_ADD] = do_add,
		[CFG_SET] = do_set,
		[CFG_REMOVE] = do_remove,
		[CFG_REPLACE] = do_replace,
	};
	struct cfg_arena a = { 0 };
	struct cfg_model *next = NULL;
	struct edit_tree t;
	char why[700];

	if (!cfg_edit_tree_open(&t, m, x->noun, x->name, &a, e))
		goto out;
	if (x->verb == CFG_REMOVE &&
	    cfg_edit_is_used(m, t.noun->id, t.name, why, sizeof(why)))
		cfg_edit_fail(&t, "in use: %s", why);
	else if (verbs[x->verb](&t, x))
		next = cfg_model_of_tree(t.root, e);
out:
	cfg_arena_free(&a);
	return next;
}
