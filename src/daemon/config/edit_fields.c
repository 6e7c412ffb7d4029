/* SPDX-License-Identifier: BSD-2-Clause */
/* edit_fields.c: the fields of one noun, changed as a command says. */
#include <stdlib.h>
#include <string.h>

#include "daemon/config/edit_tree.h"
#include "daemon/config/setters.h"
#include "daemon/config/yaml.h"
#include "iscsi/names.h"

/* One field that is being changed. */
struct field_edit {
	struct edit_tree *t;
	struct cfg_node *noun;
	const struct cfg_field *field;
	const char *name;
	char op; /* '+', '-', or 0: replaces the value */
};

static bool is_list(const struct cfg_field *f)
{
	return f->shape == CFG_MANY || f->shape == CFG_LISTED ||
	       (f->shape == CFG_ONE && cfg_field_row(f)->type == CFG_LIST);
}

/* Returns what a list means without an entry: more than any entry does, so that the first
 * "+=" would take away, and the last "-=" would add. NULL: nothing. */
static const char *without_entries(const struct cfg_field *f)
{
	const struct cfg_row *row = cfg_field_row(f);

	if (f->shape == CFG_MANY && row->otherwise)
		return row->otherwise;
	return f->guards ? "no restriction" : NULL;
}

/* ---- values ---- */

static struct cfg_node *scalar(const struct field_edit *x, const char *text)
{
	struct cfg_node *n = cfg_node_new(x->t->arena, CFG_NODE_SCALAR, text);

	if (!n)
		(void)cfg_edit_no_memory(x->t);
	return n;
}

/* Returns the texts between commas as a list; NULL after an error. */
static struct cfg_node *split(const struct field_edit *x, const char *text)
{
	struct cfg_node *list = cfg_node_split(x->t->arena, text);

	if (!list)
		(void)cfg_edit_no_memory(x->t);
	return list;
}

/* Reads a value in YAML; NULL after an error. */
static struct cfg_node *read_yaml(const struct field_edit *x, const char *text)
{
	struct cfg_errors *e = calloc(1, sizeof(*e));
	struct cfg_node *n = NULL;

	if (e)
		n = cfg_yaml_read(x->t->arena, text, strlen(text), e);
	else
		(void)cfg_edit_no_memory(x->t);
	if (e && !n)
		cfg_edit_fail(x->t, "%s: column %u: %.400s", x->name,
			      e->all[0].at.column, e->all[0].text);
	free(e);
	return n;
}

/* Returns v, which a client sent, as a file would have it. NULL after an error. */
static struct cfg_node *value_of(const struct field_edit *x,
				 const struct cfg_node *v)
{
	if (v->type != CFG_NODE_SCALAR)
		return cfg_node_copy(x->t->arena, v);
	if (is_list(x->field) && x->field->shape != CFG_LISTED)
		return split(x, v->text);
	if (x->field->shape == CFG_ONE)
		return scalar(x, v->text);
	if (x->op == '-' && x->field->shape == CFG_NAMED)
		return split(x, v->text);
	return read_yaml(x, v->text);
}

/* ---- lists and mappings ---- */

static bool put(const struct field_edit *x, struct cfg_node *to,
		const char *key, struct cfg_node *value)
{
	struct cfg_item *item = key ? cfg_node_find(to, key) : NULL;

	if (item)
		item->value = value;
	else if (!cfg_node_add(x->t->arena, to, key, value))
		return cfg_edit_no_memory(x->t);
	return true;
}

/* Returns whether a list of words has this one: a default is not given by hand. */
static bool has_entry(const struct field_edit *x, const struct cfg_node *list,
		      const struct cfg_node *v)
{
	for (unsigned i = 0; x->field->shape == CFG_ONE && i < list->n; i++)
		if (cfg_node_is_same(list->items[i].value, v))
			return true;
	return false;
}

static bool add_entries(const struct field_edit *x, struct cfg_node *to,
			struct cfg_node *v)
{
	bool good = true;

	if (to->type == CFG_NODE_SEQ && v->type != CFG_NODE_SEQ)
		return put(x, to, NULL, v);
	for (unsigned i = 0; i < v->n && good; i++)
		if (!has_entry(x, to, v->items[i].value))
			good = put(x, to, v->items[i].key, v->items[i].value);
	return good;
}

/* Returns whether the entries of the field are names of initiators. */
static bool has_initiators(const struct cfg_field *f)
{
	const struct opt_row *row = &cfg_field_row(f)->opt;

	return f->shape == CFG_MANY &&
	       (row->set == cfg_check_initiator ||
		row->set == cfg_check_initiator_or_group);
}

static bool is_entry(const struct field_edit *x, const struct cfg_node *a,
		     const struct cfg_node *b)
{
	if (has_initiators(x->field) && a->type == CFG_NODE_SCALAR &&
	    b->type == CFG_NODE_SCALAR)
		return iscsi_name_equal(a->text, b->text);
	return cfg_node_is_same(a, b);
}

/* Removes the entry of a list that equals v, or the key v of a mapping. False: there
 * is none. */
static bool remove_entry(const struct field_edit *x, struct cfg_node *from,
			 const struct cfg_node *v)
{
	unsigned i = 0;

	if (from->type == CFG_NODE_MAP)
		return v->type == CFG_NODE_SCALAR &&
		       cfg_node_remove(from, v->text);
	while (i < from->n && !is_entry(x, from->items[i].value, v))
		i++;
	if (i == from->n)
		return false;
	cfg_node_take(from, &from->items[i]);
	return true;
}

static bool remove_entries(const struct field_edit *x, struct cfg_node *from,
			   const struct cfg_node *v)
{
	const char *without = without_entries(x->field);
	const struct cfg_node *one = v;

	for (unsigned i = 0; i < (v->type == CFG_NODE_SEQ ? v->n : 1); i++) {
		if (v->type == CFG_NODE_SEQ)
			one = v->items[i].value;
		if (!from || !remove_entry(x, from, one))
			return cfg_edit_fail(x->t, "%s: does not have %.200s",
					     x->name,
					     one->type == CFG_NODE_SCALAR
						     ? one->text
						     : "this entry");
	}
	if (!from->n && without)
		return cfg_edit_fail(x->t,
				     "%s: no entry would be left, which means "
				     "%s; give %s= for that, or %s=VALUE",
				     x->name, without, x->name, x->name);
	if (!from->n) /* as if the field had not been given */
		(void)cfg_node_remove(x->noun, x->name);
	return true;
}

/* Adds the default of a list of words that the noun does not have to the noun, as *have.
 * False: no memory. */
static bool default_entries(const struct field_edit *x, struct cfg_node **have)
{
	const struct cfg_row *row = cfg_field_row(x->field);

	if (x->field->shape != CFG_ONE || row->type != CFG_LIST)
		return true;
	*have = split(x, row->opt.initial ? row->opt.initial : "");
	return *have && put(x, x->noun, x->name, *have);
}

/* Changes a list or a mapping of nouns by some entries. */
static bool change_entries(const struct field_edit *x, struct cfg_node *v)
{
	enum cfg_node_type type =
		is_list(x->field) ? CFG_NODE_SEQ : CFG_NODE_MAP;
	struct cfg_node *have = cfg_node_get(x->noun, x->name);

	if (!have && !default_entries(x, &have))
		return false;
	if (!is_list(x->field) && x->field->shape != CFG_NAMED)
		return cfg_edit_fail(x->t,
				     "%s: one value, no list; give %s=VALUE",
				     x->name, x->name);
	if (x->op == '-')
		return remove_entries(x, have, v);
	if (type == CFG_NODE_MAP && v->type != CFG_NODE_MAP)
		return cfg_edit_fail(
			x->t, "%s+: not a mapping; give {NAME: ...}", x->name);
	if (!have && without_entries(x->field))
		return cfg_edit_fail(
			x->t,
			"%s: not given, which means %s; %s+= would "
			"leave these entries alone: give %s=VALUE "
			"for that",
			x->name, without_entries(x->field), x->name, x->name);
	if (!have) {
		have = cfg_node_new(x->t->arena, type, NULL);
		if (!have)
			return cfg_edit_no_memory(x->t);
		if (!put(x, x->noun, x->name, have))
			return false;
	}
	return add_entries(x, have, v);
}

/* ---- one field ---- */

/* The reader reports an unknown name, with the nearest field. */
static bool set_field(struct edit_tree *t, enum cfg_noun_id id,
		      struct cfg_node *noun, const char *key,
		      const struct cfg_node *given)
{
	size_t len = strlen(key);
	char op = len > 1 ? key[len - 1] : 0;
	struct field_edit x = { .t = t, .noun = noun };
	struct cfg_node *v;

	if (op == '+' || op == '-') {
		x.op = op;
		len--;
	}
	x.name = cfg_arena_text(t->arena, key, len);
	x.field = cfg_noun_field(cfg_noun_of(id), key, len);
	if (!x.name)
		return cfg_edit_no_memory(t);
	if (!x.field)
		return put(&x, noun, x.name, scalar(&x, ""));
	if (given->type == CFG_NODE_SCALAR && !*given->text) {
		if (x.op)
			return cfg_edit_fail(t, "%s: no value; give one", key);
		(void)cfg_node_remove(noun, x.name);
		return true;
	}
	v = value_of(&x, given);
	if (!v)
		return false;
	return x.op ? change_entries(&x, v) : put(&x, noun, x.name, v);
}

bool cfg_edit_set_fields(struct edit_tree *t, enum cfg_noun_id id,
			 struct cfg_node *noun, const struct cfg_node *fields)
{
	for (unsigned i = 0; fields && i < fields->n; i++)
		if (!set_field(t, id, noun, fields->items[i].key,
			       fields->items[i].value))
			return false;
	return true;
}
