/* SPDX-License-Identifier: BSD-2-Clause */
/* edit.c: adds, changes and removes one noun of a configuration. */
#include "daemon/config/edit.h"

#include <stdio.h>
#include <string.h>

#include "daemon/config/edit_tree.h"

/* ---- the place of a noun ---- */

/* Makes the noun a mapping: the document may give the value of one field alone. */
static bool write_out(struct edit_tree *t, struct edit_place *p)
{
	const char *brief = cfg_noun_of(t->noun->id)->brief;
	json_t *one = p->value;

	if (json_is_object(one))
		return true;
	p->value = cfg_edit_hold(t, json_object());
	return p->value && brief && cfg_edit_put(t, p->value, brief, one) &&
	       cfg_edit_put(t, p->parent, p->key, p->value);
}

/* Adds an empty noun at p, where there is none, or before the map that is there. */
static bool insert(struct edit_tree *t, struct edit_place *p)
{
	p->value = cfg_edit_hold(t, json_object());
	if (!p->value)
		return false;
	if (!p->key && p->index < json_array_size(p->parent))
		return !json_array_insert(p->parent, p->index, p->value) ||
		       cfg_edit_hold(t, NULL); /* reports no memory */
	return cfg_edit_put(t, p->parent, p->key, p->value);
}

/* ---- a LUN with a new backstore ---- */

/* Writes a name that no backstore has to name. */
static void choose_name(json_t *stores, char name[32])
{
	unsigned i = 0;

	do
		snprintf(name, 32, "disk%u", i++);
	while (json_object_get(stores, name));
}

/* Adds the backstore of a LUN whose fields have "store": the fields that are not
 * those of a LUN, in *of_store, are its own. *of_lun gets those of a LUN. */
static bool part_fields(struct edit_tree *t, json_t *fields, json_t *of_lun,
			json_t *of_store)
{
	const struct cfg_noun *lun = cfg_noun_of(CFG_NOUN_LUN);
	const char *key;
	json_t *v;

	json_object_foreach(fields, key, v)
	{
		bool is_lun = cfg_noun_field(lun, key, strlen(key));

		if (!cfg_edit_put(t, is_lun ? of_lun : of_store, key, v))
			return false;
	}
	return true;
}

/* Returns the fields of the LUN alone, after it has added the backstore that the
 * fields are of, too. NULL after an error. */
static json_t *add_store(struct edit_tree *t, json_t *fields)
{
	json_t *of_lun = cfg_edit_hold(t, json_object());
	json_t *of_store = cfg_edit_hold(t, json_object());
	json_t *made = cfg_edit_hold(t, json_object());
	json_t *stores = json_object_get(t->root, "backstores"), *name;
	char chosen[32];

	if (!of_lun || !of_store || !made ||
	    !part_fields(t, fields, of_lun, of_store))
		return NULL;
	if (!stores) {
		stores = cfg_edit_hold(t, json_object());
		if (!stores || !cfg_edit_put(t, t->root, "backstores", stores))
			return NULL;
	}
	name = json_object_get(of_lun, "backstore");
	if (!name) {
		choose_name(stores, chosen);
		name = cfg_edit_hold(t, json_string(chosen));
		if (!name || !cfg_edit_put(t, of_lun, "backstore", name))
			return NULL;
	}
	if (!json_is_string(name) ||
	    json_object_get(stores, json_string_value(name))) {
		cfg_edit_fail(t,
			      "backstore %.64s: exists already; leave out "
			      "store, or give another name",
			      json_is_string(name) ? json_string_value(name)
						   : "");
		return NULL;
	}
	if (!cfg_edit_put(t, stores, json_string_value(name), made) ||
	    !cfg_edit_set_fields(t, CFG_NOUN_BACKSTORE, made, of_store))
		return NULL;
	return of_lun;
}

/* ---- verbs ---- */

static bool change(struct edit_tree *t, struct edit_place *p, json_t *fields)
{
	if (t->noun->id == CFG_NOUN_LUN && json_object_get(fields, "store")) {
		fields = add_store(t, fields);
		if (!fields)
			return false;
	}
	return write_out(t, p) &&
	       cfg_edit_set_fields(t, t->noun->id, p->value, fields);
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
	if (p.value && p.key)
		return cfg_edit_fail(
			t, "exists already; iserctl %s set changes it",
			t->noun->word);
	return insert(t, &p) && change(t, &p, x->fields);
}

static bool do_set(struct edit_tree *t, const struct cfg_edit *x)
{
	bool is_daemon = t->noun->id == CFG_NOUN_DAEMON;
	struct edit_place p;

	if (!json_object_size(x->fields))
		return cfg_edit_fail(
			t,
			"no field to set; give FIELD=VALUE; iserctl "
			"%s show lists the fields",
			t->noun->word);
	if (is_daemon ? !cfg_edit_find(t, true, &p)
		      : !cfg_edit_must_find(t, &p))
		return false;
	if (!p.value && !insert(t, &p))
		return false;
	return change(t, &p, x->fields);
}

static bool do_replace(struct edit_tree *t, const struct cfg_edit *x)
{
	json_t *name = json_object_get(x->fields, "backstore"), *have;
	struct edit_place p;

	if (t->noun->id != CFG_NOUN_LUN)
		return cfg_edit_fail(t, "only a LUN can be replaced");
	if (!name && !json_object_get(x->fields, "store"))
		return cfg_edit_fail(t, "no backstore; give backstore=NAME, or "
					"store=STORE for a new one");
	if (!cfg_edit_must_find(t, &p) || !write_out(t, &p))
		return false;
	have = json_object_get(p.value, "backstore");
	if (json_is_string(name) && json_equal(name, have))
		return cfg_edit_fail(t, "has the backstore %.64s already",
				     json_string_value(name));
	return change(t, &p, x->fields);
}

static bool do_remove(struct edit_tree *t, const struct cfg_edit *x)
{
	struct edit_place p;

	if (json_object_size(x->fields))
		return cfg_edit_fail(t,
				     "remove has no fields; iserctl %s set %s "
				     "FIELD= removes a field",
				     t->noun->word, t->name);
	if (t->noun->id == CFG_NOUN_DAEMON)
		return cfg_edit_fail(t, "cannot be removed");
	if (!cfg_edit_must_find(t, &p))
		return false;
	if (p.key)
		(void)json_object_del(p.parent, p.key);
	else
		(void)json_array_remove(p.parent, p.index);
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
	json_t *root = json_deep_copy(m->head.document);
	struct cfg_model *next = NULL;
	struct edit_tree t;
	char why[700];

	if (!root)
		cfg_error(e, (struct cfg_place){ 0 }, "out of memory");
	if (!root || !cfg_edit_open(&t, root, x->noun, x->name, e))
		goto out;
	if (x->verb == CFG_REMOVE &&
	    cfg_edit_is_used(m, t.noun->id, t.name, why, sizeof(why)))
		cfg_edit_fail(&t, "in use: %s", why);
	else if (verbs[x->verb](&t, x))
		next = cfg_model_of_document(root, e);
	json_decref(t.held);
out:
	json_decref(root);
	return next;
}
