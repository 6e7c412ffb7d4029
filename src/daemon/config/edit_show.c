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
	enum cfg_noun_id id;
	json_t *out;
	bool failed;
};

/* Writes the entries of a list with commas between them. */
static void join(json_t *list, char *out, size_t size)
{
	size_t len = 0, i;
	json_t *one;

	out[0] = '\0';
	json_array_foreach(list, i, one)
	{
		if (len < size)
			len += (size_t)snprintf(out + len, size - len, "%s%s",
						i ? "," : "",
						json_string_value(one));
	}
}

static void add_field(struct lister *l, json_t *row, const char *key, json_t *v)
{
	char text[LINE_MAX_BYTES];

	if (json_is_string(json_array_get(v, 0)))
		join(v, text, sizeof(text));
	else
		snprintf(text, sizeof(text), "%zu",
			 json_array_size(v) + json_object_size(v));
	l->failed |= json_object_set_new_nocheck(
		row, key,
		json_is_string(v) ? json_incref(v) : json_string_nocheck(text));
}

static void add_row(struct lister *l, const char *name, json_t *noun)
{
	json_t *row = json_object(), *v;
	const char *brief = cfg_noun_of(l->id)->brief, *key;

	l->failed |= json_object_set_new_nocheck(row, "name",
						 json_string_nocheck(name));
	if (!json_is_object(noun) && brief)
		add_field(l, row, brief, noun);
	json_object_foreach(noun, key, v) add_field(l, row, key, v);
	l->failed |= json_array_append_new(l->out, row);
}

/* Adds the entries of one mapping or list; prefix: of their names. */
static void add_rows(struct lister *l, json_t *all, const char *prefix)
{
	const char *key;
	char name[400];
	json_t *v;
	size_t i;

	json_object_foreach(all, key, v)
	{
		snprintf(name, sizeof(name), "%s%s", prefix, key);
		add_row(l, name, v);
	}
	json_array_foreach(all, i, v)
	{
		snprintf(name, sizeof(name), "%s%zu", prefix, i + 1);
		add_row(l, name, v);
	}
}

/* LUNs and maps, which are in targets. */
static void add_inner(struct lister *l, json_t *targets)
{
	json_t *t, *maps, *map;
	char prefix[300];
	const char *key;
	size_t i;

	json_object_foreach(targets, key, t)
	{
		maps = json_object_get(t, "maps");
		snprintf(prefix, sizeof(prefix), "%s/", key);
		if (l->id == CFG_NOUN_MAP) {
			add_rows(l, maps, prefix);
			continue;
		}
		add_rows(l, json_object_get(t, "luns"), prefix);
		json_array_foreach(maps, i, map)
		{
			snprintf(prefix, sizeof(prefix), "%s/%zu/", key, i + 1);
			add_rows(l, json_object_get(map, "luns"), prefix);
		}
	}
}

json_t *cfg_edit_list(const struct cfg_model *m, const char *word)
{
	const struct edit_noun *noun = cfg_edit_noun_find(word);
	json_t *all = json_object_get(m->head.document, noun->section);
	struct lister l = { .id = noun->id, .out = json_array() };

	if (l.id == CFG_NOUN_LUN || l.id == CFG_NOUN_MAP)
		add_inner(&l, json_object_get(m->head.document, "targets"));
	else if (l.id != CFG_NOUN_DAEMON)
		add_rows(&l, all, "");
	else if (all)
		add_row(&l, "daemon", all);
	if (!l.failed)
		return l.out;
	json_decref(l.out);
	return NULL;
}

/* ---- one noun ---- */

/* Returns the value of a field that is not in the document: its default, or null. */
static json_t *default_of(const struct cfg_field *f,
			  const struct options *defaults)
{
	char text[CFG_VALUE_SIZE] = "";

	if (f->shape == CFG_ONE)
		cfg_default_text(f, defaults, text, sizeof(text));
	return *text ? json_string(text) : json_null();
}

static json_t *all_fields(const struct edit_tree *t, json_t *noun)
{
	const struct cfg_noun *row = cfg_noun_of(t->noun->id);
	json_t *out = json_object();
	struct options *defaults = calloc(1, sizeof(*defaults));
	bool good = out && defaults;

	if (defaults)
		options_default(defaults);
	for (unsigned i = 0; good && i < row->nfields; i++) {
		const struct cfg_field *f = &row->fields[i];
		const char *name = cfg_field_name(f);
		json_t *v = json_object_get(noun, name);

		if (row->brief && !json_is_object(noun) &&
		    !strcmp(row->brief, name))
			v = noun;
		good = !json_object_set_new(out, name,
					    v ? json_incref(v)
					      : default_of(f, defaults));
	}
	free(defaults);
	if (good)
		return out;
	cfg_error(t->errors, (struct cfg_place){ 0 }, "out of memory");
	json_decref(out);
	return NULL;
}

json_t *cfg_edit_show(const struct cfg_model *m, const char *word,
		      const char *name, struct cfg_errors *e)
{
	struct edit_tree t;
	struct edit_place p;

	if (!cfg_edit_open(&t, m->head.document, word, name, e))
		return NULL;
	if (t.noun->id == CFG_NOUN_DAEMON ? cfg_edit_find(&t, false, &p)
					  : cfg_edit_must_find(&t, &p))
		return all_fields(&t, p.value);
	return NULL;
}
