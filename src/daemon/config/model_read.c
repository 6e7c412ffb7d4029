/* SPDX-License-Identifier: BSD-2-Clause */
/* model_read.c: from the document of a file to a model and the canonical document, by the rows of nouns.c. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/escape.h"
#include "base/nearest.h"
#include "daemon/config/model.h"
#include "daemon/config/nouns.h"
#include "daemon/config/paths.h"
#include "daemon/config/yaml.h"

struct reader {
	struct cfg_model *model;
	struct cfg_errors *errors;
	struct options scratch; /* the struct that rows of schema.c set */
	struct options defaults;
	const char *folder; /* where relative paths begin; NULL: they stay */
	bool no_memory;
};

/* A noun that is being read. */
struct target_noun {
	const struct cfg_noun *row;
	struct cfg_head *head; /* its struct */
	char object[320];      /* as error texts name it; empty: the file */
};

/* Nouns in an array: the layout of each array of model.h. */
struct array {
	void *v;
	unsigned n;
};

static void complain(struct reader *r, struct target_noun *t,
		     struct cfg_place at, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void complain(struct reader *r, struct target_noun *t,
		     struct cfg_place at, const char *fmt, ...)
{
	char text[CFG_ERROR_TEXT];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	t->head->is_bad = true;
	cfg_error(r->errors, at, "%s%s%s", t->object, *t->object ? ": " : "",
		  text);
}

static void *allocate(struct reader *r, size_t n, size_t size)
{
	void *p = cfg_arena_alloc(&r->model->arena, n * size);

	r->no_memory |= !p;
	return p;
}

/* Adds value, which it consumes, to a mapping or (key NULL) a list; each is NULL after a
 * failure. */
static void add(struct reader *r, json_t *parent, const char *key,
		json_t *value)
{
	r->no_memory |= key ? json_object_set_new_nocheck(parent, key, value)
			    : json_array_append_new(parent, value);
}

static struct cfg_place value_place(const struct reader *r, const json_t *v)
{
	return cfg_spot_of(&r->model->places, v)->at;
}

/* ---- values ---- */

/* Reads yes or no. False: the text is neither. */
static bool read_bool(const char *text, bool *v)
{
	static const char *const words[] = { "no",   "yes", "false",
					     "true", "off", "on" };

	for (unsigned i = 0; i < ARRAY_LEN(words); i++)
		if (!strcasecmp(text, words[i])) {
			*v = i % 2;
			return true;
		}
	return false;
}

/* Returns the text of a value, with a relative path made absolute. NULL: r has failed. */
static const char *absolute_text(struct reader *r, const struct cfg_row *row,
				 const char *text)
{
	size_t n = r->folder ? cfg_path_absolute(row, text, r->folder, NULL, 0)
			     : 0;
	char *out;

	if (!n)
		return text;
	out = allocate(r, 1, n + 1);
	if (out)
		cfg_path_absolute(row, text, r->folder, out, n + 1);
	return out;
}

/* Checks one value with this text (NULL: none) and stores it in the struct at `into`. */
static void set_value(struct reader *r, struct target_noun *t,
		      const struct cfg_field *f, void *into, const json_t *v,
		      const char *text)
{
	const struct cfg_row *row = cfg_field_row(f);
	char why[OPT_WHY], shown[64];
	const char *name = cfg_field_name(f), *path;

	if (!text && !cfg_doc_is_null(v)) {
		complain(r, t, value_place(r, v),
			 "%s: a %s; give one value, in quotes if it begins "
			 "with [ or {",
			 name, json_is_array(v) ? "list" : "mapping");
		return;
	}
	if (!text) {
		complain(r, t, value_place(r, v),
			 "%s: no value; give one, or remove %s", name, name);
		return;
	}
	/* as yaml.c: what dump and save write must be readable */
	if (!r->model->is_command_line && !text_is_plain(text, strlen(text))) {
		complain(r, t, value_place(r, v),
			 "%s: a control character in the value; remove it",
			 name);
		return;
	}
	if (row->opt.kind == OPT_KIND_FLAG) {
		if (!read_bool(text, (bool *)((char *)into + row->opt.at)))
			complain(r, t, value_place(r, v),
				 "%s: %.64s: must be yes or no", name, text);
		return;
	}
	path = absolute_text(r, row, text);
	if (!path || opt_set(&row->opt, into, name, path, why) == OPT_OK)
		return;
	/* opt_set gives "NAME VALUE: reason" */
	snprintf(shown, sizeof(shown), "%s ", name);
	if (!strncmp(why, shown, strlen(shown)))
		complain(r, t, value_place(r, v), "%s: %s", name,
			 why + strlen(shown));
	else
		complain(r, t, value_place(r, v), "%s: must not be %.64s", name,
			 text);
}

static const char *entry_text(const json_t *v)
{
	return cfg_doc_is_null(v) ? "~" : json_string_value(v);
}

/* Returns the text of a list for a value with commas, such as transport. NULL: an entry has
 * no text, or r has failed. */
static const char *join_list(struct reader *r, const json_t *v)
{
	size_t len = 1, n = json_array_size(v);
	char *text, *end;

	for (size_t i = 0; i < n; i++) {
		if (!entry_text(json_array_get(v, i)))
			return NULL;
		len += strlen(entry_text(json_array_get(v, i))) + 1;
	}
	text = end = allocate(r, len, 1);
	for (size_t i = 0; text && i < n; i++) {
		end = stpcpy(end, i ? "," : "");
		end = stpcpy(end, entry_text(json_array_get(v, i)));
	}
	return text;
}

/* Returns the value that `from` has in its canonical form. NULL: it is the default, or r
 * has failed. */
static json_t *canonical(struct reader *r, const struct cfg_field *f,
			 const void *from)
{
	const struct cfg_row *row = cfg_field_row(f);
	char text[CFG_VALUE_SIZE], initial[CFG_VALUE_SIZE];
	json_t *v;

	cfg_value_text(row, from, text, sizeof(text));
	cfg_default_text(f, &r->defaults, initial, sizeof(initial));
	if (!f->must && !strcmp(text, initial))
		return NULL;
	v = row->type == CFG_LIST ? cfg_doc_split(text)
				  : json_string_nocheck(text);
	r->no_memory |= !v;
	return v;
}

static json_t *read_one(struct reader *r, struct target_noun *t,
			const struct cfg_field *f, json_t *v)
{
	void *into = f->option ? (void *)&r->scratch : t->head;
	bool is_list = cfg_field_row(f)->type == CFG_LIST && json_is_array(v);

	if (f->option)
		cfg_noun_load(t->row, &r->scratch, t->head);
	set_value(r, t, f, into, v,
		  is_list ? join_list(r, v) : json_string_value(v));
	if (f->option)
		cfg_noun_store(t->row, t->head, &r->scratch);
	return canonical(r, f, into);
}

/* Checks an entry of a list and adds it. */
static void read_entry(struct reader *r, struct target_noun *t,
		       const struct cfg_field *f, struct cfg_texts *list,
		       const json_t *v)
{
	unsigned before = r->errors->n;

	r->scratch.nlisten = r->scratch.verbs_listen.n = 0;
	r->scratch.announce.n = 0;
	set_value(r, t, f, &r->scratch, v, json_string_value(v));
	if (r->errors->n == before)
		list->v[list->n++] = json_string_value(v);
}

static json_t *read_many(struct reader *r, struct target_noun *t,
			 const struct cfg_field *f, json_t *v)
{
	struct cfg_texts *list = (void *)((char *)t->head + f->at);
	size_t n = json_is_array(v) ? json_array_size(v) : 1;
	json_t *out = n ? json_array() : NULL;

	list->v = allocate(r, n, sizeof(*list->v));
	for (size_t i = 0; i < n && list->v; i++) {
		json_t *one = json_is_array(v) ? json_array_get(v, i) : v;

		read_entry(r, t, f, list, one);
		add(r, out, NULL, json_incref(one));
	}
	return out;
}

/* ---- nouns ---- */

static json_t *read_noun(struct reader *r, struct target_noun *t, json_t *v);

/* Reads a noun inside the noun t, with the struct at `into`. index: in a list,
 * from 1. */
static json_t *read_inner(struct reader *r, const struct target_noun *t,
			  const struct cfg_field *f, void *into,
			  const char *name, size_t index, json_t *v)
{
	struct target_noun inner = { .row = cfg_noun_of(f->noun),
				     .head = into };
	const char *colon = *t->object ? ": " : "";

	inner.head->name = name;
	inner.head->places = &r->model->places;
	if (name)
		snprintf(inner.object, sizeof(inner.object), "%.200s%s%s %.80s",
			 t->object, colon, inner.row->name, name);
	else if (index)
		snprintf(inner.object, sizeof(inner.object), "%.200s%s%s %zu",
			 t->object, colon, inner.row->name, index);
	else
		snprintf(inner.object, sizeof(inner.object), "%.200s%s%s",
			 t->object, colon, f->row.opt.name);
	return read_noun(r, &inner, v);
}

/* Reads one noun without a name: in the struct of the noun around it, or in an
 * array of one. */
static json_t *read_inside(struct reader *r, struct target_noun *t,
			   const struct cfg_field *f, json_t *v)
{
	size_t size = cfg_noun_of(f->noun)->size;
	struct array *a = (void *)((char *)t->head + f->at);
	struct cfg_head own = *t->head;

	if (!size) {
		v = read_inner(r, t, f, t->head, own.name, 0, v);
		own.is_bad |= t->head->is_bad;
		*t->head = own;
		if (json_object_size(v))
			return v;
		json_decref(v);
		return NULL;
	}
	a->v = allocate(r, 1, size);
	a->n = a->v ? 1 : 0;
	return a->v ? read_inner(r, t, f, a->v, NULL, 0, v) : NULL;
}

/* Returns the index of the nouns in a section of the file, which is new. */
static json_t *add_index(struct reader *r, const struct target_noun *t,
			 const struct cfg_field *f)
{
	json_t *index;

	if (t->head != &r->model->head)
		return NULL;
	index = json_object();
	add(r, r->model->index, f->row.opt.name, index);
	return index;
}

/* Reads a mapping of nouns. */
static json_t *read_named(struct reader *r, struct target_noun *t,
			  const struct cfg_field *f, json_t *v)
{
	const struct cfg_noun *noun = cfg_noun_of(f->noun);
	struct array *a = (void *)((char *)t->head + f->at);
	size_t n = json_object_size(v);
	json_t *out, *index, *one;
	const char *key;

	if (!json_is_object(v) && !cfg_doc_is_null(v))
		complain(
			r, t, value_place(r, v),
			"%s: not a mapping; give a line \"NAME: ...\" for each "
			"%s",
			f->row.opt.name, noun->name);
	a->v = n ? allocate(r, n, noun->size) : NULL;
	if (!a->v)
		return NULL;
	out = json_object();
	index = add_index(r, t, f);
	json_object_foreach(v, key, one)
	{
		if (index)
			add(r, index, key, json_integer(a->n));
		add(r, out, key,
		    read_inner(r, t, f, (char *)a->v + a->n * noun->size, key,
			       0, one));
		a->n++;
	}
	return out;
}

/* Reads a list of nouns. */
static json_t *read_listed(struct reader *r, struct target_noun *t,
			   const struct cfg_field *f, json_t *v)
{
	const struct cfg_noun *noun = cfg_noun_of(f->noun);
	struct array *a = (void *)((char *)t->head + f->at);
	size_t n = json_array_size(v);
	json_t *out;

	if (!json_is_array(v) && !cfg_doc_is_null(v))
		complain(r, t, value_place(r, v),
			 "%s: not a list; begin each %s with \"- \"",
			 f->row.opt.name, noun->name);
	a->v = n ? allocate(r, n, noun->size) : NULL;
	if (!a->v)
		return NULL;
	out = json_array();
	for (a->n = 0; a->n < n; a->n++)
		add(r, out, NULL,
		    read_inner(r, t, f, (char *)a->v + a->n * noun->size, NULL,
			       a->n + 1, json_array_get(v, a->n)));
	return out;
}

/* Returns the canonical form of the value, which is new, or NULL; as do the functions
 * above. */
static json_t *read_field(struct reader *r, struct target_noun *t,
			  const struct cfg_field *f, json_t *v)
{
	static json_t *(*const readers[])(struct reader *, struct target_noun *,
					  const struct cfg_field *,
					  json_t *) = {
		[CFG_ONE] = read_one,	    [CFG_MANY] = read_many,
		[CFG_INSIDE] = read_inside, [CFG_NAMED] = read_named,
		[CFG_LISTED] = read_listed,
	};

	if (f->guards && ((json_is_array(v) && !json_array_size(v)) ||
			  (f->shape == CFG_LISTED && cfg_doc_is_null(v))))
		complain(r, t, value_place(r, v),
			 "%s: names nothing; leave the field out for no "
			 "restriction",
			 f->row.opt.name);
	return readers[f->shape](r, t, f, v);
}

/* Returns whether text is a field of the noun and its value, "store:/x": YAML needs a
 * blank between the two. */
static bool lacks_blank(const struct target_noun *t, const char *text)
{
	size_t len = strcspn(text, ":");

	return text[len] && cfg_noun_field(t->row, text, len);
}

/* A message lists the fields of a noun that has no more. */
#define FIELDS_LISTED 12

static void complain_unknown(struct reader *r, struct target_noun *t,
			     const char *key, const json_t *v)
{
	struct cfg_place at = cfg_spot_of(&r->model->places, v)->key;
	struct nearest n;
	char fields[256] = "";

	nearest_begin(&n, key);
	for (unsigned i = 0; i < t->row->nfields; i++) {
		const char *name = cfg_field_name(&t->row->fields[i]);

		nearest_try(&n, name);
		if (t->row->nfields <= FIELDS_LISTED)
			nearest_list(fields, sizeof(fields), name);
	}
	if (lacks_blank(t, key))
		complain(r, t, at, "%.200s: give a blank after the colon", key);
	else if (n.best)
		complain(r, t, at, "%.64s: unknown field; did you mean %s?",
			 key, n.best);
	else if (*fields)
		complain(r, t, at, "%.64s: unknown field; give one of %s", key,
			 fields);
	else
		complain(r, t, at,
			 "%.64s: unknown field; iserd.yaml(5) lists the "
			 "fields of this %s",
			 key, t->row->name);
}

static void set_defaults(struct reader *r, struct target_noun *t)
{
	char why[OPT_WHY];

	cfg_noun_store(t->row, t->head, &r->defaults);
	for (unsigned i = 0; i < t->row->nfields; i++) {
		const struct cfg_field *f = &t->row->fields[i];

		if (!f->option && f->shape == CFG_ONE && f->row.opt.initial)
			(void)opt_set(&f->row.opt, t->head, "",
				      f->row.opt.initial, why);
	}
}

static bool has_field(const struct target_noun *t, const struct cfg_field *f,
		      const json_t *v)
{
	const char *name = cfg_field_name(f);

	return json_object_get(v, name) ||
	       (t->row->brief && !json_is_object(v) &&
		!strcmp(t->row->brief, name));
}

/* The value to give: a number if only one is permitted, or the name of the value. */
static const char *value_to_give(const struct opt_row *o, char *text,
				 size_t size)
{
	if (o->kind != OPT_KIND_NUMBER || o->min != o->max)
		return o->arg;
	snprintf(text, size, "%llu", (unsigned long long)o->min);
	return text;
}

/* Reports fields without a default that are missing; not where a misspelt name
 * was reported, which may be that of the field. */
static void check_missing(struct reader *r, struct target_noun *t,
			  const json_t *v)
{
	for (unsigned i = 0; i < t->row->nfields && !t->head->is_bad; i++) {
		const struct cfg_field *f = &t->row->fields[i];
		const struct cfg_texts *list =
			(void *)((char *)t->head + f->at);
		const struct cfg_row *row = cfg_field_row(f);
		const char *name = cfg_field_name(f);
		char text[24];

		if (!f->must)
			continue;
		if (!has_field(t, f, v))
			complain(r, t, value_place(r, v),
				 "%s: missing; give %s: %s", name, name,
				 value_to_give(&row->opt, text, sizeof(text)));
		else if (f->shape == CFG_MANY && !list->n)
			complain(r, t, value_place(r, v),
				 "%s: an empty list; give at least one %s",
				 name, row->opt.arg);
	}
}

/* Returns the canonical form of a noun whose fields have these values, which it
 * consumes. */
static json_t *put_together(struct reader *r, const struct cfg_noun *noun,
			    json_t *const *values)
{
	json_t *v = json_object(), *brief;

	for (unsigned i = 0; i < noun->nfields; i++)
		if (values[i])
			add(r, v, cfg_field_name(&noun->fields[i]), values[i]);
	brief = noun->brief && json_object_size(v) == 1
			? json_object_get(v, noun->brief)
			: NULL;
	if (!brief)
		return v;
	json_incref(brief);
	json_decref(v);
	return brief;
}

static void read_member(struct reader *r, struct target_noun *t,
			json_t **values, const char *key, json_t *v)
{
	const struct cfg_field *f = cfg_noun_field(t->row, key, strlen(key));

	if (f)
		values[f - t->row->fields] = read_field(r, t, f, v);
	else
		complain_unknown(r, t, key, v);
}

static json_t *read_noun(struct reader *r, struct target_noun *t, json_t *v)
{
	json_t *values[CFG_FIELDS_MAX] = { NULL }, *one;
	const char *key, *text = json_string_value(v);

	t->head->given = v;
	set_defaults(r, t);
	json_object_foreach(v, key, one) read_member(r, t, values, key, one);
	if (json_is_object(v) || cfg_doc_is_null(v))
		;
	else if (t->row->brief)
		read_member(r, t, values, t->row->brief, v);
	else if (text && lacks_blank(t, text))
		complain(r, t, value_place(r, v),
			 "%.200s: give a blank after the colon", text);
	else
		complain(r, t, value_place(r, v),
			 "not a mapping; give lines \"FIELD: VALUE\"");
	check_missing(r, t, v);
	t->head->document = put_together(r, t->row, values);
	return t->head->document;
}

/* ---- the file ---- */

static struct cfg_model *model_new(struct cfg_errors *e)
{
	struct cfg_model *m = calloc(1, sizeof(*m));

	if (m)
		m->index = json_object();
	else
		cfg_error(e, (struct cfg_place){ 0 }, "out of memory");
	return m;
}

void cfg_model_free(struct cfg_model *m)
{
	if (!m)
		return;
	json_decref(m->head.given);
	json_decref(m->head.document);
	json_decref(m->index);
	free(m->places.v);
	cfg_arena_free(&m->arena);
	free(m);
}

/* Fills m by what is given. */
static void read_model(struct cfg_model *m, const char *folder,
		       struct cfg_errors *e)
{
	struct target_noun file = { .row = cfg_noun_of(CFG_NOUN_FILE),
				    .head = &m->head };
	struct reader *r = calloc(1, sizeof(*r));

	if (!r) {
		cfg_error(e, (struct cfg_place){ 0 }, "out of memory");
		return;
	}
	r->model = m;
	r->errors = e;
	r->folder = folder;
	options_default(&r->defaults);
	r->scratch = r->defaults;
	m->options = r->defaults;
	m->head.places = &m->places;
	(void)read_noun(r, &file, m->head.given);
	if (r->no_memory)
		cfg_error(e, (struct cfg_place){ 0 }, "out of memory");
	else
		cfg_model_check(m, e);
	free(r);
}

/* Makes a model of doc, which it consumes; NULL: there are errors, or there is no memory. */
static struct cfg_model *finish(struct cfg_model *m, json_t *doc,
				const char *folder, struct cfg_errors *e)
{
	m->head.given = doc;
	if (doc && !e->n)
		read_model(m, folder, e);
	else if (!e->n)
		cfg_error(e, (struct cfg_place){ 0 }, "out of memory");
	cfg_errors_sort(e);
	if (!e->n)
		return m;
	cfg_model_free(m);
	return NULL;
}

/* As cfg_model_read, for a file of this directory. */
static struct cfg_model *read_text(const char *text, size_t len,
				   const char *folder, struct cfg_errors *e)
{
	struct cfg_model *m = model_new(e);

	return m ? finish(m, cfg_yaml_read(&m->places, text, len, e), folder, e)
		 : NULL;
}

struct cfg_model *cfg_model_read(const char *text, size_t len,
				 struct cfg_errors *e)
{
	return read_text(text, len, NULL, e);
}

struct cfg_model *cfg_model_of_document(json_t *doc, struct cfg_errors *e)
{
	struct cfg_model *m = model_new(e);

	return m ? finish(m, json_incref(doc), NULL, e) : NULL;
}

struct cfg_model *cfg_model_of_options(const struct options *o,
				       struct cfg_errors *e)
{
	struct cfg_model *m = model_new(e);
	json_t *doc = m ? cfg_document_of_options(o) : NULL;

	if (!doc) {
		cfg_model_free(m);
		return NULL;
	}
	m->is_command_line = true;
	m = finish(m, doc, NULL, e);
	if (m)
		m->options = *o;
	return m;
}

/* Returns the directory of a file, which the caller frees; NULL: standard input, or an
 * error. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *plain, *folder;

	if (!strcmp(path, "-"))
		return NULL;
	plain = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	folder = plain ? realpath(plain, NULL) : NULL;
	free(plain);
	if (folder && !strcmp(folder, "/"))
		*folder = '\0';
	return folder;
}

struct cfg_model *cfg_model_load(const char *path, struct cfg_errors *e)
{
	size_t len;
	char *text = cfg_text_read(path, &len, e), *folder = folder_of(path);
	struct cfg_model *m = text ? read_text(text, len, folder, e) : NULL;

	free(folder);
	free(text);
	return m;
}
