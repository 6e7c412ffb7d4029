/* SPDX-License-Identifier: BSD-2-Clause */
/* diff.c: the differences of two configurations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config/model.h"
#include "daemon/config/nouns.h"
#include "daemon/config/yaml.h"

char *cfg_dump(const struct cfg_model *m)
{
	return cfg_yaml_write(m->head.document);
}

/* ---- differences ---- */

struct differ {
	void (*fn)(void *arg, const struct cfg_change *c);
	void *arg;
	bool failed;
};

static bool field_differs(const struct cfg_node *a, const struct cfg_node *b)
{
	return a && b ? !cfg_node_is_same(a, b) : a != b;
}

enum cfg_difference cfg_backstore_compare(const struct cfg_backstore *a,
					  const struct cfg_backstore *b)
{
	const struct cfg_noun *noun = cfg_noun_of(CFG_NOUN_BACKSTORE);
	const struct cfg_node *x = a->head.document, *y = b->head.document;
	enum cfg_difference d = CFG_SAME;

	for (unsigned i = 0; i < noun->nfields; i++) {
		const struct cfg_field *f = &noun->fields[i];
		const char *name = cfg_field_name(f);

		if (!field_differs(cfg_node_get(x, name),
				   cfg_node_get(y, name)))
			continue;
		if (!f->at_once && cfg_field_row(f)->apply != CFG_AT_ONCE)
			return CFG_DIFFERS;
		d = CFG_DIFFERS_LIVE;
	}
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

	diff_nodes(&d, "", from->head.document, to->head.document);
	return !d.failed;
}
