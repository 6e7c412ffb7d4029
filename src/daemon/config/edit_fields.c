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
	json_t *noun;
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

/* Reads a value in YAML; NULL after an error. */
static json_t *read_yaml(const struct field_edit *x, const char *text)
{
	struct cfg_errors *e = calloc(1, sizeof(*e));
	struct cfg_places places = { 0 };
	json_t *v = NULL;

	if (e)
		v = cfg_yaml_read(&places, text, strlen(text), e);
	if (e && !v)
		cfg_edit_fail(x->t, "%s: column %u: %.400s", x->name,
			      e->all[0].at.column, e->all[0].text);
	else
		v = cfg_edit_hold(x->t, v);
	free(places.v);
	free(e);
	return v;
}

/* Returns v, which a client sent, as a file would have it. NULL after an error. */
static json_t *value_of(const struct field_edit *x, json_t *v)
{
	const char *text = json_string_value(v);

	if (!text || (x->field->shape == CFG_ONE && !is_list(x->field)))
		return v;
	if ((is_list(x->field) && x->field->shape != CFG_LISTED) ||
	    (x->op == '-' && x->field->shape == CFG_NAMED))
		return cfg_edit_hold(x->t, cfg_doc_split(text));
	return read_yaml(x, text);
}

/* ---- lists and mappings ---- */

/* Returns whether a list of words has this one: a default is not given by hand. */
static bool has_entry(const struct field_edit *x, json_t *list, json_t *v)
{
	size_t n = x->field->shape == CFG_ONE ? json_array_size(list) : 0;

	for (size_t i = 0; i < n; i++)
		if (json_equal(json_array_get(list, i), v))
			return true;
	return false;
}

static bool add_entries(const struct field_edit *x, json_t *to, json_t *v)
{
	const char *key;
	json_t *one;
	size_t i;

	if (json_is_array(to) && !json_is_array(v))
		return cfg_edit_put(x->t, to, NULL, v);
	json_object_foreach(v, key, one)
	{
		if (!cfg_edit_put(x->t, to, key, one))
			return false;
	}
	json_array_foreach(v, i, one)
	{
		if (!has_entry(x, to, one) &&
		    !cfg_edit_put(x->t, to, NULL, one))
			return false;
	}
	return true;
}

/* Returns whether the entries of the field are names of initiators. */
static bool has_initiators(const struct cfg_field *f)
{
	const struct opt_row *row = &cfg_field_row(f)->opt;

	return f->shape == CFG_MANY &&
	       (row->set == cfg_check_initiator ||
		row->set == cfg_check_initiator_or_group);
}

static bool is_entry(const struct field_edit *x, json_t *a, json_t *b)
{
	if (has_initiators(x->field) && json_is_string(a) && json_is_string(b))
		return iscsi_name_equal(json_string_value(a),
					json_string_value(b));
	return json_equal(a, b);
}

/* Removes the entry of a list that equals v, or the key v of a mapping. False: there
 * is none. */
static bool remove_entry(const struct field_edit *x, json_t *from, json_t *v)
{
	size_t i = 0, n = json_array_size(from);

	if (json_is_object(from))
		return json_is_string(v) &&
		       !json_object_del(from, json_string_value(v));
	while (i < n && !is_entry(x, json_array_get(from, i), v))
		i++;
	return i < n && !json_array_remove(from, i);
}

static bool remove_entries(const struct field_edit *x, json_t *from, json_t *v)
{
	const char *without = without_entries(x->field);
	size_t n = json_is_array(v) ? json_array_size(v) : 1;

	for (size_t i = 0; i < n; i++) {
		json_t *one = json_is_array(v) ? json_array_get(v, i) : v;

		if (!remove_entry(x, from, one))
			return cfg_edit_fail(x->t, "%s: does not have %.200s",
					     x->name,
					     json_is_string(one)
						     ? json_string_value(one)
						     : "this entry");
	}
	n = json_array_size(from) + json_object_size(from);
	if (!n && without)
		return cfg_edit_fail(x->t,
				     "%s: no entry would be left, which means "
				     "%s; give %s= for that, or %s=VALUE",
				     x->name, without, x->name, x->name);
	if (!n) /* as if the field had not been given */
		(void)json_object_del(x->noun, x->name);
	return true;
}

/* Adds the default of a list of words that the noun does not have to the noun, as *have.
 * False: no memory. */
static bool default_entries(const struct field_edit *x, json_t **have)
{
	const struct cfg_row *row = cfg_field_row(x->field);
	const char *initial = row->opt.initial ? row->opt.initial : "";

	if (x->field->shape != CFG_ONE || row->type != CFG_LIST)
		return true;
	*have = cfg_edit_hold(x->t, cfg_doc_split(initial));
	return *have && cfg_edit_put(x->t, x->noun, x->name, *have);
}

/* Changes a list or a mapping of nouns by some entries. */
static bool change_entries(const struct field_edit *x, json_t *v)
{
	bool is_map = !is_list(x->field);
	json_t *have = json_object_get(x->noun, x->name);

	if (!have && !default_entries(x, &have))
		return false;
	if (is_map && x->field->shape != CFG_NAMED)
		return cfg_edit_fail(x->t,
				     "%s: one value, no list; give %s=VALUE",
				     x->name, x->name);
	if (x->op == '-')
		return remove_entries(x, have, v);
	if (is_map && !json_is_object(v))
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
		have = cfg_edit_hold(x->t,
				     is_map ? json_object() : json_array());
		if (!have || !cfg_edit_put(x->t, x->noun, x->name, have))
			return false;
	}
	return add_entries(x, have, v);
}

/* ---- one field ---- */

/* The reader reports an unknown name, with the nearest field. */
static bool set_field(struct edit_tree *t, enum cfg_noun_id id, json_t *noun,
		      const char *key, json_t *given)
{
	size_t len = strlen(key);
	char op = len > 1 ? key[len - 1] : 0;
	struct field_edit x = { .t = t, .noun = noun };
	json_t *v, *name;

	if (op == '+' || op == '-') {
		x.op = op;
		len--;
	}
	name = cfg_edit_hold(t, json_stringn_nocheck(key, len));
	if (!name)
		return false;
	x.name = json_string_value(name);
	x.field = cfg_noun_field(cfg_noun_of(id), key, len);
	if (!x.field)
		return cfg_edit_put(t, noun, x.name, name);
	if (json_is_string(given) && !json_string_length(given)) {
		if (x.op)
			return cfg_edit_fail(t, "%s: no value; give one", key);
		(void)json_object_del(noun, x.name);
		return true;
	}
	v = value_of(&x, given);
	if (!v)
		return false;
	return x.op ? change_entries(&x, v) : cfg_edit_put(t, noun, x.name, v);
}

bool cfg_edit_set_fields(struct edit_tree *t, enum cfg_noun_id id, json_t *noun,
			 json_t *fields)
{
	const char *key;
	json_t *v;

	json_object_foreach(fields, key, v)
	{
		if (!set_field(t, id, noun, key, v))
			return false;
	}
	return true;
}
