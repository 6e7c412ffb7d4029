/* SPDX-License-Identifier: BSD-2-Clause */
/* schema.c: the rows of config/schema.c, config/nouns.c and api.c as JSON. */
#include "daemon/rpc/schema.h"

#include <stdio.h>

#include "base/bytes.h"
#include "daemon/config/edit.h"
#include "daemon/config/lun_spec.h"
#include "daemon/config/nouns.h"
#include "daemon/config/schema.h"
#include "daemon/rpc/api.h"

/* Grows with a change after which a client that reads the schema would be wrong. */
#define SCHEMA_VERSION 1

static void set_text(json_t *j, const char *key, const char *text)
{
	if (text)
		json_object_set_new(j, key, json_string(text));
}

static void set_number(json_t *j, const char *key, uint64_t v)
{
	json_object_set_new(j, key, json_integer((json_int_t)v));
}

/* What configuration fields and parameters have in common. */
static json_t *opt_json(const struct opt_row *row)
{
	bool is_number = row->kind == OPT_KIND_NUMBER ||
			 row->kind == OPT_KIND_COUNTER ||
			 row->kind == OPT_KIND_SIZE;
	json_t *j = json_object(), *words;

	set_text(j, "name", row->name);
	set_text(j, "value", row->arg);
	set_text(j, "default", row->initial);
	set_text(j, "help", row->help);
	if (is_number) {
		set_number(j, "min", row->min);
		set_number(j, "max", row->max);
	}
	if (row->words) {
		words = json_array();
		for (unsigned i = 0; row->words[i]; i++)
			json_array_append_new(words,
					      json_string(row->words[i]));
		json_object_set_new(j, "words", words);
	}
	return j;
}

static json_t *parts_json(const struct cfg_parts *parts)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < CFG_PARTS && parts->part[i].name; i++) {
		json_t *j = json_object();

		set_text(j, "name", parts->part[i].name);
		set_number(j, "min", parts->part[i].min);
		set_number(j, "max", parts->part[i].max);
		json_object_set_new(j, "optional",
				    json_boolean(i >= parts->need));
		json_array_append_new(all, j);
	}
	return all;
}

static json_t *option_json(const struct cfg_row *row)
{
	char letter[2] = { row->opt.letter, '\0' };
	json_t *j = opt_json(&row->opt);

	set_text(j, "letter", *letter ? letter : NULL);
	set_text(j, "type", cfg_type_name(row->type));
	set_text(j, "unit", row->unit);
	set_text(j, "otherwise", row->otherwise);
	if (row->parts)
		json_object_set_new(j, "parts", parts_json(row->parts));
	if (row->type == CFG_ACTION)
		return j;
	set_text(j, "scope", cfg_scope_name(row->scope));
	set_text(j, "applied", cfg_apply_name(row->apply));
	json_object_set_new(j, "repeats", json_boolean(row->opt.repeats));
	json_object_set_new(j, "secret", json_boolean(row->is_secret));
	return j;
}

static json_t *kinds_json(void)
{
	const struct cfg_kind *kinds = cfg_kinds();
	json_t *all = json_array();

	for (unsigned i = 0; i < LUN_KINDS; i++) {
		json_t *j = json_object();

		set_text(j, "prefix", kinds[i].prefix);
		set_text(j, "value", kinds[i].arg);
		set_text(j, "help", kinds[i].help);
		json_array_append_new(all, j);
	}
	return all;
}

/* "kinds" has the prefixes of the kinds of LUNs that have the suffix. */
static json_t *suffix_json(const struct cfg_suffix *s)
{
	json_t *j = option_json(&s->row), *kinds = json_array();

	set_number(j, "place", s->place);
	for (unsigned i = 0; i < LUN_KINDS; i++)
		if (s->kinds & 1u << i)
			json_array_append_new(
				kinds, json_string(cfg_kinds()[i].prefix));
	json_object_set_new(j, "kinds", kinds);
	return j;
}

/* A field of a configuration file; "noun" is what its mappings are. */
static json_t *field_json(const struct cfg_field *f)
{
	json_t *j = option_json(cfg_field_row(f));

	set_text(j, "name", cfg_field_name(f));
	if (f->at_once)
		set_text(j, "applied", cfg_apply_name(CFG_AT_ONCE));
	set_text(j, "shape", cfg_shape_name(f->shape));
	json_object_set_new(j, "must", json_boolean(f->must));
	json_object_del(j, "letter");
	json_object_del(j, "repeats");
	if (f->shape < CFG_INSIDE)
		return j;
	json_object_del(j, "type");
	json_object_del(j, "scope");
	json_object_del(j, "applied");
	json_object_del(j, "secret");
	set_text(j, "noun", cfg_noun_of(f->noun)->name);
	return j;
}

static json_t *nouns_json(void)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < CFG_NOUNS; i++) {
		const struct cfg_noun *n = cfg_noun_of((enum cfg_noun_id)i);
		json_t *j = json_object(), *fields = json_array();

		set_text(j, "name", n->name);
		set_text(j, "place", n->place);
		set_text(j, "help", n->help);
		set_text(j, "brief", n->brief);
		for (unsigned f = 0; f < n->nfields; f++)
			json_array_append_new(fields,
					      field_json(&n->fields[f]));
		json_object_set_new(j, "fields", fields);
		json_array_append_new(all, j);
	}
	return all;
}

static json_t *method_json(const struct rpc_method *m)
{
	json_t *j = json_object(), *params = json_array();

	set_text(j, "name", m->name);
	set_text(j, "help", m->help);
	for (unsigned i = 0; i < RPC_PARAMS && m->params[i].opt.name; i++) {
		json_t *p = opt_json(&m->params[i].opt);

		json_object_set_new(p, "optional",
				    json_boolean(m->params[i].optional));
		if (m->params[i].bare)
			json_object_set_new(p, "bare", json_true());
		json_array_append_new(params, p);
	}
	json_object_set_new(j, "params", params);
	return j;
}

/* The key of a verb that is not a field of its noun: {"yield": "to"}. */
static void add_key(json_t *keys, const struct rpc_verb *v)
{
	if (v->key)
		json_object_set_new(keys, v->name, json_string(v->key));
}

/* The nouns of iserctl; "noun" is the noun of the configuration that has its
 * fields. */
static json_t *verbs_json(void)
{
	json_t *all = json_array();
	const struct rpc_noun *nouns;
	size_t n;

	nouns = rpc_nouns(&n);
	for (size_t i = 0; i < n; i++) {
		json_t *j = json_object(), *verbs = json_object();
		json_t *keys = json_object();

		for (unsigned v = 0; v < RPC_VERBS && nouns[i].verbs[v]; v++) {
			const struct rpc_verb *row =
				rpc_verb_of(nouns[i].verbs[v]);

			set_text(verbs, row->name, row->help);
			add_key(keys, row);
		}
		set_text(j, "name", nouns[i].name);
		set_text(j, "value", nouns[i].arg);
		set_text(j, "help", nouns[i].help);
		set_text(j, "noun", cfg_edit_noun(nouns[i].name));
		json_object_set_new(j, "verbs", verbs);
		if (json_object_size(keys))
			json_object_set(j, "keys", keys);
		json_decref(keys);
		json_array_append_new(all, j);
	}
	return all;
}

json_t *schema_json(void)
{
	json_t *options = json_array(), *methods = json_array();
	json_t *suffixes = json_array();
	const struct cfg_suffix *s;
	const struct rpc_method *m;
	const struct cfg_row *rows;
	size_t n;

	rows = cfg_rows(&n);
	for (size_t i = 0; i < n; i++)
		json_array_append_new(options, option_json(&rows[i]));
	s = cfg_suffixes(&n);
	for (size_t i = 0; i < n; i++)
		json_array_append_new(suffixes, suffix_json(&s[i]));
	m = rpc_methods(&n);
	for (size_t i = 0; i < n; i++)
		json_array_append_new(methods, method_json(&m[i]));
	return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "version",
			 SCHEMA_VERSION, "luns", kinds_json(), "suffixes",
			 suffixes, "options", options, "nouns", nouns_json(),
			 "methods", methods, "verbs", verbs_json());
}

bool schema_print(void)
{
	json_t *all = schema_json();
	int err;

	err = json_dumpf(all, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(all);
	return !err && !fflush(stdout);
}
