/* SPDX-License-Identifier: BSD-2-Clause */
/* model_dump.c: from a model to its canonical tree, by the rows of nouns.c, and
 * the differences of two such trees. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "daemon/config/model.h"
#include "daemon/config/nouns.h"
#include "daemon/config/yaml.h"

#define VALUE_SIZE 4200 /* of the text of a value */

#define FIELDS_MAX 32 /* of a noun: model_test.c */

/* The row of a field, which is looked up once: there may be thousands of nouns. */
struct known_field {
	const struct cfg_row *row;
	const char *name;    /* in a file */
	const char *initial; /* the text of its default; in the arena */
};

struct dumper {
	struct cfg_arena *arena;
	struct options defaults, scratch;
	struct known_field known[CFG_NOUNS][FIELDS_MAX];
	bool failed;
};

struct array {
	const char *v;
	unsigned n;
};

static struct cfg_node *noun_tree(struct dumper *d, enum cfg_noun_id id,
				  const void *item);

static struct cfg_node *new_node(struct dumper *d, enum cfg_node_type type,
				 const char *text)
{
	struct cfg_node *n = cfg_node_new(d->arena, type, text);

	d->failed |= !n;
	return n;
}

/* Adds value to parent; each may be NULL after a failure. */
static void add(struct dumper *d, struct cfg_node *parent, const char *key,
		struct cfg_node *value)
{
	d->failed |= !parent || !cfg_node_add(d->arena, parent, key, value);
}

/* ---- fields ---- */

static struct cfg_node *list_node(struct dumper *d, char *text)
{
	struct cfg_node *list = new_node(d, CFG_NODE_SEQ, NULL);
	char *next;

	for (char *p = text; p; p = next) {
		next = strchr(p, ',');
		if (next)
			*next++ = '\0';
		add(d, list, NULL, new_node(d, CFG_NODE_SCALAR, p));
	}
	return list;
}

static const char *initial_of(struct dumper *d, const struct cfg_field *f,
			      const struct cfg_row *row)
{
	char text[VALUE_SIZE];
	const char *copy;

	if (!f->option)
		return row->opt.initial			? row->opt.initial
		       : row->opt.kind == OPT_KIND_FLAG ? "no"
							: "";
	cfg_value_text(row, &d->defaults, text, sizeof(text));
	copy = cfg_arena_text(d->arena, text, strlen(text));
	d->failed |= !copy;
	return copy ? copy : "";
}

static const struct known_field *known(struct dumper *d, enum cfg_noun_id id,
				       const struct cfg_field *f)
{
	struct known_field *k = &d->known[id][f - cfg_noun_of(id)->fields];

	if (!k->row) {
		k->row = cfg_field_row(f);
		k->name = cfg_field_name(f);
		if (f->shape == CFG_ONE)
			k->initial = initial_of(d, f, k->row);
	}
	return k;
}

/* Returns the value of a field, or NULL if it has its default. */
static struct cfg_node *one_tree(struct dumper *d, const struct cfg_noun *noun,
				 const struct cfg_field *f,
				 const struct known_field *k, const void *item)
{
	const struct cfg_row *row = k->row;
	char text[VALUE_SIZE];

	if (f->option)
		cfg_noun_load(noun, &d->scratch, item);
	cfg_value_text(row, f->option ? &d->scratch : item, text, sizeof(text));
	if (!f->must && !strcmp(text, k->initial))
		return NULL;
	return row->type == CFG_LIST ? list_node(d, text)
				     : new_node(d, CFG_NODE_SCALAR, text);
}

static struct cfg_node *many_tree(struct dumper *d,
				  const struct cfg_texts *list)
{
	struct cfg_node *n = list->n ? new_node(d, CFG_NODE_SEQ, NULL) : NULL;

	for (unsigned i = 0; i < list->n; i++)
		add(d, n, NULL, new_node(d, CFG_NODE_SCALAR, list->v[i]));
	return n;
}

static struct cfg_node *nouns_tree(struct dumper *d, const struct cfg_field *f,
				   const struct array *a)
{
	bool is_named = f->shape == CFG_NAMED;
	size_t size = cfg_noun_of(f->noun)->size;
	struct cfg_node *n;

	if (!a->n)
		return NULL;
	n = new_node(d, is_named ? CFG_NODE_MAP : CFG_NODE_SEQ, NULL);
	for (unsigned i = 0; i < a->n; i++) {
		const struct cfg_head *head = (const void *)(a->v + i * size);

		add(d, n, is_named ? head->name : NULL,
		    noun_tree(d, f->noun, head));
	}
	if (n)
		(void)cfg_node_sort(d->arena, n); /* there may be thousands */
	return n;
}

/* Returns the node of a field, or NULL if it has its default. */
static struct cfg_node *field_tree(struct dumper *d,
				   const struct cfg_noun *noun,
				   const struct cfg_field *f,
				   const struct known_field *k,
				   const void *item)
{
	const void *member = (const char *)item + f->at;
	const struct array *a = member;
	struct cfg_node *n;

	switch (f->shape) {
	case CFG_ONE:
		return one_tree(d, noun, f, k, item);
	case CFG_MANY:
		return many_tree(d, member);
	case CFG_NAMED:
	case CFG_LISTED:
		return nouns_tree(d, f, a);
	default:
		break;
	}
	if (cfg_noun_of(f->noun)->size)
		return a->n ? noun_tree(d, f->noun, a->v) : NULL;
	n = noun_tree(d, f->noun, item);
	return n && n->n ? n : NULL;
}

static struct cfg_node *noun_tree(struct dumper *d, enum cfg_noun_id id,
				  const void *item)
{
	const struct cfg_noun *noun = cfg_noun_of(id);
	struct cfg_node *n = new_node(d, CFG_NODE_MAP, NULL);

	for (unsigned i = 0; i < noun->nfields; i++) {
		const struct cfg_field *f = &noun->fields[i];
		const struct known_field *k = known(d, id, f);
		struct cfg_node *v = field_tree(d, noun, f, k, item);

		if (v)
			add(d, n, k->name, v);
	}
	if (n && noun->brief && n->n == 1 &&
	    !strcmp(n->items[0].key, noun->brief))
		return n->items[0].value;
	return n;
}

struct cfg_node *cfg_model_tree(const struct cfg_model *m, struct cfg_arena *a)
{
	struct dumper *d = calloc(1, sizeof(*d));
	struct cfg_node *n;

	if (!d)
		return NULL;
	d->arena = a;
	options_default(&d->defaults);
	d->scratch = d->defaults;
	n = noun_tree(d, CFG_NOUN_FILE, m);
	if (d->failed)
		n = NULL;
	free(d);
	return n;
}

char *cfg_dump(const struct cfg_model *m)
{
	struct cfg_arena a = { 0 };
	struct cfg_node *n = cfg_model_tree(m, &a);
	char *text = n ? cfg_yaml_write(n) : NULL;

	cfg_arena_free(&a);
	return text;
}

/* ---- differences ---- */

struct differ {
	void (*fn)(void *arg, const struct cfg_change *c);
	void *arg;
	bool failed;
};

struct comparison {
	struct options a, b;
	char x[VALUE_SIZE], y[VALUE_SIZE];
};

static bool field_differs(struct comparison *c, const struct cfg_field *f,
			  const struct cfg_backstore *a,
			  const struct cfg_backstore *b)
{
	const struct cfg_row *row = cfg_field_row(f);

	cfg_value_text(row, f->option ? (const void *)&c->a : a, c->x,
		       sizeof(c->x));
	cfg_value_text(row, f->option ? (const void *)&c->b : b, c->y,
		       sizeof(c->y));
	return strcmp(c->x, c->y) != 0;
}

static enum cfg_difference compare_fields(struct comparison *c,
					  const struct cfg_backstore *a,
					  const struct cfg_backstore *b)
{
	const struct cfg_noun *noun = cfg_noun_of(CFG_NOUN_BACKSTORE);
	enum cfg_difference d = CFG_SAME;

	cfg_noun_load(noun, &c->a, a);
	cfg_noun_load(noun, &c->b, b);
	for (unsigned i = 0; i < noun->nfields; i++) {
		const struct cfg_field *f = &noun->fields[i];

		if (!field_differs(c, f, a, b))
			continue;
		if (!f->at_once && cfg_field_row(f)->apply != CFG_AT_ONCE)
			return CFG_DIFFERS;
		d = CFG_DIFFERS_LIVE;
	}
	return d;
}

/* Most often the two files have the same text here, which is compared fast. */
enum cfg_difference cfg_backstore_compare(const struct cfg_backstore *a,
					  const struct cfg_backstore *b)
{
	const struct cfg_node *x = a->head.node, *y = b->head.node;
	struct comparison *c;
	enum cfg_difference d;

	if (x && y && cfg_node_is_same(x, y))
		return CFG_SAME;
	c = calloc(1, sizeof(*c));
	if (!c)
		return CFG_DIFFERS;
	d = compare_fields(c, a, b);
	free(c);
	return d;
}

/* Writes a node on one line. */
static void write_line(FILE *f, const struct cfg_node *n)
{
	bool is_map = n->type == CFG_NODE_MAP;

	if (n->type == CFG_NODE_SCALAR) {
		fputs(n->text, f);
		return;
	}
	fputc(is_map ? '{' : '[', f);
	for (unsigned i = 0; i < n->n; i++) {
		fputs(i ? ", " : "", f);
		if (is_map)
			fprintf(f, "%s: ", n->items[i].key);
		write_line(f, n->items[i].value);
	}
	fputc(is_map ? '}' : ']', f);
}

/* Returns the node on one line, which the caller frees. NULL: no memory. */
static char *line_of(struct differ *d, const struct cfg_node *n)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (f)
		write_line(f, n);
	if (f && !fclose(f))
		return text;
	d->failed = true;
	free(text);
	return NULL;
}

/* Of the process, what the rows of the fields say: not what decides about threads, files and
 * sockets of the start. RDMA devices are opened at the start, and a unit follows --compat
 * from its start. */
static bool needs_restart(const char *path)
{
	const struct cfg_noun *noun = cfg_noun_of(CFG_NOUN_DAEMON);

	const char *last = strrchr(path, '.');

	if (!strncmp(path, "portal-groups.", 14) &&
	    (!strcmp(last, ".verbs") || !strcmp(last, ".verbs-listen")))
		return true;
	if (!strncmp(path, "targets.", 8) && !strcmp(last, ".compat"))
		return true;
	if (!strncmp(path, "cluster", 7))
		return true;
	if (strncmp(path, "daemon", 6) != 0)
		return false;
	for (unsigned i = 0; path[6] == '.' && i < noun->nfields; i++) {
		const struct cfg_row *row = cfg_field_row(&noun->fields[i]);

		if (!strcmp(row->opt.name, path + 7))
			return row->apply == CFG_AT_START;
	}
	return true;
}

/* from or to NULL: added or removed. */
static void report(struct differ *d, const char *path,
		   const struct cfg_node *from, const struct cfg_node *to)
{
	char *a = from ? line_of(d, from) : NULL;
	char *b = to ? line_of(d, to) : NULL;
	const struct cfg_change c = {
		.kind = !from ? CFG_ADDED
			: !to ? CFG_REMOVED
			      : CFG_CHANGED,
		.path = path,
		.from = a,
		.to = b,
		.needs_restart = needs_restart(path),
	};

	d->fn(d->arg, &c);
	free(a);
	free(b);
}

static void diff_nodes(struct differ *d, const char *path,
		       const struct cfg_node *from, const struct cfg_node *to);

/* Mappings that are missing are compared with an empty one at the top, so that
 * each noun in them is reported. */
static void diff_item(struct differ *d, const char *path, const char *key,
		      const struct cfg_node *from, const struct cfg_node *to)
{
	static const struct cfg_node empty = { .type = CFG_NODE_MAP };
	char longer[1024];

	snprintf(longer, sizeof(longer), "%s%s%s", path, *path ? "." : "", key);
	if (!*path && !from && to->type == CFG_NODE_MAP)
		from = &empty;
	if (!*path && !to && from->type == CFG_NODE_MAP)
		to = &empty;
	if (!from || !to)
		report(d, longer, from, to);
	else
		diff_nodes(d, longer, from, to);
}

static void diff_nodes(struct differ *d, const char *path,
		       const struct cfg_node *from, const struct cfg_node *to)
{
	if (from->type != CFG_NODE_MAP || to->type != CFG_NODE_MAP) {
		if (!cfg_node_is_same(from, to))
			report(d, path, from, to);
		return;
	}
	for (unsigned i = 0; i < from->n; i++)
		diff_item(d, path, from->items[i].key, from->items[i].value,
			  cfg_node_get(to, from->items[i].key));
	for (unsigned i = 0; i < to->n; i++)
		if (!cfg_node_find(from, to->items[i].key))
			diff_item(d, path, to->items[i].key, NULL,
				  to->items[i].value);
}

bool cfg_diff(const struct cfg_model *from, const struct cfg_model *to,
	      void (*fn)(void *arg, const struct cfg_change *c), void *arg)
{
	struct differ d = { .fn = fn, .arg = arg };
	struct cfg_arena memory = { 0 };
	struct cfg_node *a = cfg_model_tree(from, &memory);
	struct cfg_node *b = cfg_model_tree(to, &memory);

	if (a && b)
		diff_nodes(&d, "", a, b);
	cfg_arena_free(&memory);
	return a && b && !d.failed;
}
