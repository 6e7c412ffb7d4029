/* SPDX-License-Identifier: BSD-2-Clause */
/* tree.c: the nodes of a configuration file of another target. */
#include "tools/import/tree.h"

#include <string.h>

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
