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

/* NULL: not given. */
static bool values_equal(const json_t *a, const json_t *b)
{
	return a == b || json_equal(a, b);
}

enum cfg_difference cfg_backstore_compare(const struct cfg_backstore *a,
					  const struct cfg_backstore *b)
{
	const struct cfg_noun *noun = cfg_noun_of(CFG_NOUN_BACKSTORE);
	const json_t *x = a->head.document, *y = b->head.document;
	enum cfg_difference d = CFG_SAME;

	for (unsigned i = 0; i < noun->nfields; i++) {
		const struct cfg_field *f = &noun->fields[i];
		const char *name = cfg_field_name(f);

		if (values_equal(json_object_get(x, name),
				 json_object_get(y, name)))
			continue;
		if (!f->at_once && cfg_field_row(f)->apply != CFG_AT_ONCE)
			return CFG_DIFFERS;
		d = CFG_DIFFERS_LIVE;
	}
	return d;
}

/* Writes a value on one line. */
static void write_line(FILE *f, json_t *v)
{
	const char *key, *comma = "";
	json_t *one;
	size_t i;

	if (json_is_string(v)) {
		fputs(json_string_value(v), f);
		return;
	}
	fputc(json_is_object(v) ? '{' : '[', f);
	json_object_foreach(v, key, one)
	{
		fprintf(f, "%s%s: ", comma, key);
		write_line(f, one);
		comma = ", ";
	}
	json_array_foreach(v, i, one)
	{
		fputs(i ? ", " : "", f);
		write_line(f, one);
	}
	fputc(json_is_object(v) ? '}' : ']', f);
}

/* Returns the value on one line, which the caller frees. NULL: no memory. */
static char *line_of(struct differ *d, json_t *v)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (f)
		write_line(f, v);
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
static void report(struct differ *d, const char *path, json_t *from, json_t *to)
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

static void diff_values(struct differ *d, const char *path, json_t *from,
			json_t *to);

/* A section that is missing is an empty one, so that each noun of the other is
 * reported. */
static void diff_member(struct differ *d, const char *path, const char *key,
			json_t *from, json_t *to)
{
	bool is_section = !*path && json_is_object(from ? from : to);
	char longer[1024];

	snprintf(longer, sizeof(longer), "%s%s%s", path, *path ? "." : "", key);
	if ((from && to) || is_section)
		diff_values(d, longer, from, to);
	else
		report(d, longer, from, to);
}

static void diff_values(struct differ *d, const char *path, json_t *from,
			json_t *to)
{
	const char *key;
	json_t *v;

	if ((from && !json_is_object(from)) || (to && !json_is_object(to))) {
		if (!json_equal(from, to))
			report(d, path, from, to);
		return;
	}
	json_object_foreach(from, key, v)
		diff_member(d, path, key, v, json_object_get(to, key));
	json_object_foreach(to, key, v)
	{
		if (!json_object_get(from, key))
			diff_member(d, path, key, NULL, v);
	}
}

bool cfg_diff(const struct cfg_model *from, const struct cfg_model *to,
	      void (*fn)(void *arg, const struct cfg_change *c), void *arg)
{
	struct differ d = { .fn = fn, .arg = arg };

	diff_values(&d, "", from->head.document, to->head.document);
	return !d.failed;
}
