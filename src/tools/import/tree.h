/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tree.h: a configuration file of another target as a tree of keys and values,
 * each with its file and line. The formats differ in their syntax only, so each
 * has a reader that makes such a tree.
 */
#ifndef TOOLS_IMPORT_TREE_H
#define TOOLS_IMPORT_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/import/pool.h"

#define TREE_DEPTH 32 /* objects and arrays inside each other */

enum tree_kind {
	TREE_SCALAR, /* text */
	TREE_OBJECT, /* children with keys; text is the name of a block, or NULL */
	TREE_ARRAY, /* children without keys */
};

struct tree {
	enum tree_kind kind;
	const char *file;
	unsigned line;
	const char *key; /* NULL in an array and at the top */
	const char *text;
	struct tree *first, *last; /* children */
	struct tree *next;	   /* the next child of the same parent */
};

/* What a reader needs, and where it stores an error. */
struct tree_input {
	struct pool *pool;
	const char *file;
	const char *text; /* ends with a NUL that len does not count */
	size_t len;
	/* set by the reader: FILE:LINE: what is wrong: why; what to do */
	const char *error;
};

/* What reads the text of an included file into the tree; false after an error. */
struct tree_include;
typedef bool tree_taker(struct tree_include *i, const char *text, size_t len);
/* Finds the file, or the files, that an include directive names, a pattern of
 * glob(7), and passes each of them to tree_include_text, in order. Returns NULL, or
 * the reason for which there is no file to include; a pattern may match no file. */
typedef const char *tree_opener(struct tree_include *i, const char *pattern);

struct tree_include {
	struct tree_input *in;
	tree_taker *take;
	tree_opener *open;
	unsigned files, depth; /* included in all, and inside each other */
	size_t bytes;	       /* of all of them */
};

/* tree_include takes an include directive. must: without the file there is an
 * error. False after an error. */
bool tree_include(struct tree_include *i, unsigned line, const char *pattern,
		  bool must);
/* tree_include_text takes the text of a file. False after an error. */
bool tree_include_text(struct tree_include *i, const char *file,
		       const char *text, size_t len);

/* tree_new returns a node without children. The node and copies of the texts
 * belong to the pool. key and text may be NULL. */
struct tree *tree_new(struct pool *p, enum tree_kind kind, const char *file,
		      unsigned line, const char *key, const char *text);
/* tree_add appends child to the children of parent. */
void tree_add(struct tree *parent, struct tree *child);
/* tree_find returns the first child of t with this key, or NULL; t may be NULL
 * or a scalar. */
struct tree *tree_find(const struct tree *t, const char *key);
/* tree_text returns the text of the child with this key if it is a scalar,
 * else NULL. */
const char *tree_text(const struct tree *t, const char *key);
/* tree_is_plain returns whether a text is UTF-8 without control characters and can
 * be in a configuration file of iserd. */
bool tree_is_plain(const char *text, size_t len);
/* tree_fail stores the error of a reader with its line, unless there is one
 * already, and returns NULL. */
void *tree_fail(struct tree_input *in, unsigned line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* tree_read_tgt reads the format of tgt's targets.conf: directives and blocks
 * <NAME VALUE> ... </NAME>. Returns NULL after an error. */
struct tree *tree_read_tgt(struct tree_input *in, tree_opener *open);
/* tree_read_json reads JSON (RFC 8259). Returns NULL after an error. */
struct tree *tree_read_json(struct tree_input *in);
/* tree_read_lio reads saveconfig.json of LIO: JSON with lists where rtslib has them.
 * Returns NULL after an error. */
struct tree *tree_read_lio(struct tree_input *in);
/* tree_read_ucl reads UCL, the format of libucl: a superset of JSON with
 * "key = value", sections and comments. Macros other than .include and
 * .try_include are refused. Returns NULL after an error. */
struct tree *tree_read_ucl(struct tree_input *in, tree_opener *open);
/* tree_read_ctl reads the classic syntax of FreeBSD's ctl.conf: keywords with a
 * fixed number of words, and sections in braces. The tree is that of the same
 * configuration in UCL, except that a statement of several words is an array.
 * Returns NULL after an error. */
struct tree *tree_read_ctl(struct tree_input *in);
/* tree_ctl_is_ucl returns whether a ctl.conf is in UCL: it has an assignment,
 * a section without a name, or a macro. */
bool tree_ctl_is_ucl(const char *text, size_t len);

#endif
