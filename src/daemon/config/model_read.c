/* SPDX-License-Identifier: BSD-2-Clause */
/* model_read.c: from the tree of a file to a model, by the rows of nouns.c. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
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

static struct cfg_node *new_node(struct reader *r, enum cfg_node_type type)
{
	struct cfg_node *n = cfg_node_new(&r->model->arena, type, NULL);

	r->no_memory |= !n;
	return n;
}

/* Adds value to parent; each is NULL after a failure. */
static void add(struct reader *r, struct cfg_node *parent, const char *key,
		struct cfg_node *value)
{
	r->no_memory |=
		!parent || !cfg_node_add(&r->model->arena, parent, key, value);
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

/* Returns whether a text could not be in a file (yaml.c). */
static bool has_control(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return true;
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

/* Checks one value and stores it in the struct at `into`. */
static void set_value(struct reader *r, struct target_noun *t,
		      const struct cfg_field *f, void *into,
		      const struct cfg_node *v)
{
	const struct cfg_row *row = cfg_field_row(f);
	char why[OPT_WHY], shown[64];
	const char *name = cfg_field_name(f), *text;

	if (v->type != CFG_NODE_SCALAR) {
		complain(r, t, v->at,
			 "%s: a %s; give one value, in quotes if it begins "
			 "with [ or {",
			 name, v->type == CFG_NODE_SEQ ? "list" : "mapping");
		return;
	}
	if (cfg_node_is_null(v)) {
		complain(r, t, v->at, "%s: no value; give one, or remove %s",
			 name, name);
		return;
	}
	if (!r->model->is_command_line && has_control(v->text)) {
		complain(r, t, v->at,
			 "%s: a control character in the value; remove it",
			 name);
		return;
	}
	if (row->opt.kind == OPT_KIND_FLAG) {
		if (!read_bool(v->text, (bool *)((char *)into + row->opt.at)))
			complain(r, t, v->at, "%s: %.64s: must be yes or no",
				 name, v->text);
		return;
	}
	text = absolute_text(r, row, v->text);
	if (!text || opt_set(&row->opt, into, name, text, why) == OPT_OK)
		return;
	/* opt_set gives "NAME VALUE: reason" */
	snprintf(shown, sizeof(shown), "%s ", name);
	if (!strncmp(why, shown, strlen(shown)))
		complain(r, t, v->at, "%s: %s", name, why + strlen(shown));
	else
		complain(r, t, v->at, "%s: must not be %.64s", name, v->text);
}

/* A list for a value with commas, such as transport. NULL: r has failed. */
static const struct cfg_node *join_list(struct reader *r,
					const struct cfg_node *v)
{
	struct cfg_node *joined;
	size_t len = 1;
	char *text;

	for (unsigned i = 0; i < v->n; i++) {
		if (v->items[i].value->type != CFG_NODE_SCALAR)
			return v; /* set_value complains */
		len += strlen(v->items[i].value->text) + 1;
	}
	text = allocate(r, len, 1);
	joined = allocate(r, 1, sizeof(*joined));
	if (!text || !joined)
		return NULL;
	*joined = *v;
	joined->type = CFG_NODE_SCALAR;
	joined->is_quoted = true;
	joined->text = text;
	for (unsigned i = 0; i < v->n; i++) {
		if (i)
			strcat(text, ",");
		strcat(text, v->items[i].value->text);
	}
	return joined;
}

/* Returns the value that `from` has in its canonical form. NULL: it is the default, or r
 * has failed. */
static struct cfg_node *canonical(struct reader *r, const struct cfg_field *f,
				  const void *from)
{
	const struct cfg_row *row = cfg_field_row(f);
	char text[CFG_VALUE_SIZE], initial[CFG_VALUE_SIZE];
	struct cfg_node *n;

	cfg_value_text(row, from, text, sizeof(text));
	cfg_default_text(f, &r->defaults, initial, sizeof(initial));
	if (!f->must && !strcmp(text, initial))
		return NULL;
	n = row->type == CFG_LIST
		    ? cfg_node_split(&r->model->arena, text)
		    : cfg_node_new(&r->model->arena, CFG_NODE_SCALAR, text);
	r->no_memory |= !n;
	return n;
}

static struct cfg_node *read_one(struct reader *r, struct target_noun *t,
				 const struct cfg_field *f,
				 const struct cfg_node *v)
{
	const struct cfg_row *row = cfg_field_row(f);
	void *into = f->option ? (void *)&r->scratch : t->head;

	if (row->type == CFG_LIST && v->type == CFG_NODE_SEQ)
		v = join_list(r, v);
	if (!v)
		return NULL;
	if (f->option)
		cfg_noun_load(t->row, &r->scratch, t->head);
	set_value(r, t, f, into, v);
	if (f->option)
		cfg_noun_store(t->row, t->head, &r->scratch);
	return canonical(r, f, into);
}

/* Checks an entry of a list and adds it. */
static void read_entry(struct reader *r, struct target_noun *t,
		       const struct cfg_field *f, struct cfg_texts *list,
		       const struct cfg_node *v)
{
	unsigned before = r->errors->n;

	r->scratch.nlisten = r->scratch.verbs_listen.n = 0;
	r->scratch.announce.n = 0;
	set_value(r, t, f, &r->scratch, v);
	if (r->errors->n == before)
		list->v[list->n++] = v->text;
}

static struct cfg_node *read_many(struct reader *r, struct target_noun *t,
				  const struct cfg_field *f,
				  const struct cfg_node *v)
{
	struct cfg_texts *list = (void *)((char *)t->head + f->at);
	unsigned n = v->type == CFG_NODE_SEQ ? v->n : 1;
	struct cfg_node *out = n ? new_node(r, CFG_NODE_SEQ) : NULL;

	list->v = allocate(r, n, sizeof(*list->v));
	for (unsigned i = 0; i < n && list->v; i++) {
		const struct cfg_node *one =
			v->type == CFG_NODE_SEQ ? v->items[i].value : v;

		read_entry(r, t, f, list, one);
		add(r, out, NULL, cfg_node_copy(&r->model->arena, one));
	}
	return out;
}

/* ---- nouns ---- */

static struct cfg_node *read_noun(struct reader *r, struct target_noun *t,
				  const struct cfg_node *v);

/* Reads a noun inside the noun t, with the struct at `into`. index: in a list,
 * from 1. */
static struct cfg_node *read_inner(struct reader *r,
				   const struct target_noun *t,
				   const struct cfg_field *f, void *into,
				   const char *name, unsigned index,
				   const struct cfg_node *v)
{
	struct target_noun inner = { .row = cfg_noun_of(f->noun),
				     .head = into };
	const char *colon = *t->object ? ": " : "";

	inner.head->name = name;
	if (name)
		snprintf(inner.object, sizeof(inner.object), "%.200s%s%s %.80s",
			 t->object, colon, inner.row->name, name);
	else if (index)
		snprintf(inner.object, sizeof(inner.object), "%.200s%s%s %u",
			 t->object, colon, inner.row->name, index);
	else
		snprintf(inner.object, sizeof(inner.object), "%.200s%s%s",
			 t->object, colon, f->row.opt.name);
	return read_noun(r, &inner, v);
}

/* Reads one noun without a name: in the struct of the noun around it, or in an
 * array of one. */
static struct cfg_node *read_inside(struct reader *r, struct target_noun *t,
				    const struct cfg_field *f,
				    const struct cfg_node *v)
{
	size_t size = cfg_noun_of(f->noun)->size;
	struct array *a = (void *)((char *)t->head + f->at);
	struct cfg_head own = *t->head;
	struct cfg_node *n;

	if (!size) {
		n = read_inner(r, t, f, t->head, own.name, 0, v);
		own.is_bad |= t->head->is_bad;
		*t->head = own;
		return n && n->n ? n : NULL;
	}
	a->v = allocate(r, 1, size);
	a->n = a->v ? 1 : 0;
	return a->v ? read_inner(r, t, f, a->v, NULL, 0, v) : NULL;
}

static int compare_luns(const void *a, const void *b)
{
	unsigned long x = strtoul(((const struct cfg_item *)a)->key, NULL, 10);
	unsigned long y = strtoul(((const struct cfg_item *)b)->key, NULL, 10);

	return (x > y) - (x < y);
}

/* Reads all items of v as nouns, by name or (in a list) by number. */
static struct cfg_node *read_nouns(struct reader *r, struct target_noun *t,
				   const struct cfg_field *f,
				   const struct cfg_node *v)
{
	const struct cfg_noun *noun = cfg_noun_of(f->noun);
	struct array *a = (void *)((char *)t->head + f->at);
	struct cfg_node *out = v->n ? new_node(r, v->type) : NULL;

	a->v = allocate(r, v->n, noun->size);
	if (!a->v)
		return NULL;
	for (a->n = 0; a->n < v->n; a->n++) {
		const struct cfg_item *item = &v->items[a->n];

		add(r, out, item->key,
		    read_inner(r, t, f, (char *)a->v + a->n * noun->size,
			       item->key, item->key ? 0 : a->n + 1,
			       item->value));
	}
	if (out && f->noun == CFG_NOUN_LUN)
		qsort(out->items, out->n, sizeof(*out->items), compare_luns);
	if (out)
		(void)cfg_node_sort(&r->model->arena, out);
	return out;
}

static struct cfg_node *read_named(struct reader *r, struct target_noun *t,
				   const struct cfg_field *f,
				   const struct cfg_node *v)
{
	if (v->type == CFG_NODE_MAP)
		return read_nouns(r, t, f, v);
	if (!cfg_node_is_null(v))
		complain(
			r, t, v->at,
			"%s: not a mapping; give a line \"NAME: ...\" for each "
			"%s",
			f->row.opt.name, cfg_noun_of(f->noun)->name);
	return NULL;
}

static struct cfg_node *read_listed(struct reader *r, struct target_noun *t,
				    const struct cfg_field *f,
				    const struct cfg_node *v)
{
	if (v->type == CFG_NODE_SEQ)
		return read_nouns(r, t, f, v);
	if (!cfg_node_is_null(v))
		complain(r, t, v->at,
			 "%s: not a list; begin each %s with \"- \"",
			 f->row.opt.name, cfg_noun_of(f->noun)->name);
	return NULL;
}

/* Returns the canonical form of the value, or NULL; as do the functions above. */
static struct cfg_node *read_field(struct reader *r, struct target_noun *t,
				   const struct cfg_field *f,
				   const struct cfg_node *v)
{
	static struct cfg_node *(*const readers[])(struct reader *,
						   struct target_noun *,
						   const struct cfg_field *,
						   const struct cfg_node *) = {
		[CFG_ONE] = read_one,	    [CFG_MANY] = read_many,
		[CFG_INSIDE] = read_inside, [CFG_NAMED] = read_named,
		[CFG_LISTED] = read_listed,
	};

	if (f->guards && ((v->type == CFG_NODE_SEQ && !v->n) ||
			  (f->shape == CFG_LISTED && cfg_node_is_null(v))))
		complain(r, t, v->at,
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
			     const struct cfg_item *item)
{
	struct nearest n;
	char fields[256] = "";

	nearest_begin(&n, item->key);
	for (unsigned i = 0; i < t->row->nfields; i++) {
		const char *name = cfg_field_name(&t->row->fields[i]);

		nearest_try(&n, name);
		if (t->row->nfields <= FIELDS_LISTED)
			nearest_list(fields, sizeof(fields), name);
	}
	if (lacks_blank(t, item->key))
		complain(r, t, item->at, "%.200s: give a blank after the colon",
			 item->key);
	else if (n.best)
		complain(r, t, item->at,
			 "%.64s: unknown field; did you mean %s?", item->key,
			 n.best);
	else if (*fields)
		complain(r, t, item->at, "%.64s: unknown field; give one of %s",
			 item->key, fields);
	else
		complain(r, t, item->at,
			 "%.64s: unknown field; iserd.yaml(5) lists the "
			 "fields of this %s",
			 item->key, t->row->name);
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
		      const struct cfg_node *v)
{
	const char *name = cfg_field_name(f);

	return cfg_node_get(v, name) ||
	       (t->row->brief && v->type != CFG_NODE_MAP &&
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
			  const struct cfg_node *v)
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
			complain(r, t, v->at, "%s: missing; give %s: %s", name,
				 name,
				 value_to_give(&row->opt, text, sizeof(text)));
		else if (f->shape == CFG_MANY && !list->n)
			complain(r, t, v->at,
				 "%s: an empty list; give at least one %s",
				 name, row->opt.arg);
	}
}

/* Returns the canonical form of a noun whose fields have these values. */
static struct cfg_node *put_together(struct reader *r,
				     const struct cfg_noun *noun,
				     struct cfg_node *const *values)
{
	struct cfg_node *n = new_node(r, CFG_NODE_MAP);

	for (unsigned i = 0; i < noun->nfields; i++)
		if (values[i])
			add(r, n, cfg_field_name(&noun->fields[i]), values[i]);
	if (n && noun->brief && n->n == 1 &&
	    !strcmp(n->items[0].key, noun->brief))
		return n->items[0].value;
	return n;
}

static struct cfg_node *read_noun(struct reader *r, struct target_noun *t,
				  const struct cfg_node *v)
{
	struct cfg_node *values[CFG_FIELDS_MAX] = { NULL };
	const struct cfg_item brief = { t->row->brief, v->at,
					(struct cfg_node *)v };
	bool is_brief =
		brief.key && v->type != CFG_NODE_MAP && !cfg_node_is_null(v);
	const struct cfg_item *items = is_brief ? &brief : v->items;
	unsigned n = is_brief ? 1 : v->type == CFG_NODE_MAP ? v->n : 0;

	t->head->node = v;
	set_defaults(r, t);
	for (unsigned i = 0; i < n; i++) {
		const struct cfg_field *f = cfg_noun_field(
			t->row, items[i].key, strlen(items[i].key));

		if (f)
			values[f - t->row->fields] =
				read_field(r, t, f, items[i].value);
		else
			complain_unknown(r, t, &items[i]);
	}
	if (is_brief || v->type == CFG_NODE_MAP || cfg_node_is_null(v))
		;
	else if (v->type == CFG_NODE_SCALAR && lacks_blank(t, v->text))
		complain(r, t, v->at, "%.200s: give a blank after the colon",
			 v->text);
	else
		complain(r, t, v->at,
			 "not a mapping; give lines \"FIELD: VALUE\"");
	check_missing(r, t, v);
	t->head->document = put_together(r, t->row, values);
	return (struct cfg_node *)t->head->document;
}

/* ---- the file ---- */

static struct cfg_model *model_new(struct cfg_errors *e)
{
	struct cfg_model *m = calloc(1, sizeof(*m));

	if (!m)
		cfg_error(e, (struct cfg_place){ 0 }, "out of memory");
	return m;
}

void cfg_model_free(struct cfg_model *m)
{
	if (!m)
		return;
	cfg_arena_free(&m->arena);
	free(m);
}

/* Fills m by its tree. */
static void read_model(struct cfg_model *m, const struct cfg_node *tree,
		       const char *folder, struct cfg_errors *e)
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
	read_noun(r, &file, tree);
	if (r->no_memory)
		cfg_error(e, (struct cfg_place){ 0 }, "out of memory");
	else
		cfg_model_check(m, e);
	free(r);
}

/* Ends the reading of a model: NULL if there are errors. */
static struct cfg_model *finish(struct cfg_model *m,
				const struct cfg_node *tree, const char *folder,
				struct cfg_errors *e)
{
	if (tree && !e->n)
		read_model(m, tree, folder, e);
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

	return m ? finish(m, cfg_yaml_read(&m->arena, text, len, e), folder, e)
		 : NULL;
}

struct cfg_model *cfg_model_read(const char *text, size_t len,
				 struct cfg_errors *e)
{
	return read_text(text, len, NULL, e);
}

struct cfg_model *cfg_model_of_tree(const struct cfg_node *tree,
				    struct cfg_errors *e)
{
	struct cfg_model *m = model_new(e);

	return m ? finish(m, cfg_node_copy(&m->arena, tree), NULL, e) : NULL;
}

struct cfg_model *cfg_model_of_options(const struct options *o,
				       struct cfg_errors *e)
{
	struct cfg_model *m = model_new(e);
	struct cfg_node *tree = m ? cfg_tree_of_options(o, &m->arena) : NULL;

	if (!tree) {
		cfg_model_free(m);
		return NULL;
	}
	m->is_command_line = true;
	m = finish(m, tree, NULL, e);
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
