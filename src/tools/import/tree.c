/* SPDX-License-Identifier: BSD-2-Clause */
/* tree.c: the nodes of a configuration file of another target. */
#include "tools/import/tree.h"

#include <string.h>

#include "base/escape.h"

#define INCLUDES_MAX  1024 /* files that are included */
#define INCLUDE_DEPTH 16
#define INCLUDE_BYTES (64u << 20) /* of all of them */

struct tree *tree_new(struct pool *p, enum tree_kind kind, const char *file,
		      unsigned line, const char *key, const char *text)
{
	struct tree *t = pool_alloc(p, sizeof(*t));

	t->kind = kind;
	t->file = file;
	t->line = line;
	t->key = key ? pool_copy(p, key, strlen(key)) : NULL;
	t->text = text ? pool_copy(p, text, strlen(text)) : NULL;
	return t;
}

void tree_add(struct tree *parent, struct tree *child)
{
	if (parent->last)
		parent->last->next = child;
	else
		parent->first = child;
	parent->last = child;
}

struct tree *tree_find(const struct tree *t, const char *key)
{
	if (!t)
		return NULL;
	for (struct tree *c = t->first; c; c = c->next)
		if (c->key && !strcmp(c->key, key))
			return c;
	return NULL;
}

const char *tree_text(const struct tree *t, const char *key)
{
	const struct tree *c = tree_find(t, key);

	return c && c->kind == TREE_SCALAR ? c->text : NULL;
}

void *tree_fail(struct tree_input *in, unsigned line, const char *format, ...)
{
	va_list args;
	char *text;

	if (in->error)
		return NULL;
	va_start(args, format);
	text = pool_vformat(in->pool, format, args);
	va_end(args);
	in->error = pool_format(in->pool, "%s:%u: %s", in->file, line, text);
	return NULL;
}

bool tree_include(struct tree_include *i, unsigned line, const char *pattern,
		  bool must)
{
	const char *why;

	if (i->depth == INCLUDE_DEPTH)
		return tree_fail(
			i->in, line,
			"include %.200s: files include each other more "
			"than %d levels deep; remove the circle",
			pattern, INCLUDE_DEPTH);
	why = i->open(i, pattern);
	if (why && must)
		return tree_fail(
			i->in, line,
			"include %.200s: %s; correct or remove the line",
			pattern, why);
	return !i->in->error;
}

bool tree_include_text(struct tree_include *i, const char *file,
		       const char *text, size_t len)
{
	const char *outer = i->in->file;
	bool ok;

	if (i->files++ == INCLUDES_MAX)
		return tree_fail(i->in, 0, "more than %d included files",
				 INCLUDES_MAX);
	if (len > INCLUDE_BYTES - i->bytes)
		return tree_fail(i->in, 0,
				 "the included files are longer than %u MiB",
				 INCLUDE_BYTES >> 20);
	i->bytes += len;
	i->in->file = pool_copy(i->in->pool, file, strlen(file));
	i->depth++;
	ok = i->take(i, text, len);
	i->depth--;
	i->in->file = outer;
	return ok;
}

bool tree_is_plain(const char *text, size_t len)
{
	/* the characters U+FFFE and U+FFFF, which YAML does not have */
	return text_is_plain(text, len) &&
	       !memmem(text, len, "\xef\xbf\xbe", 3) &&
	       !memmem(text, len, "\xef\xbf\xbf", 3);
}
