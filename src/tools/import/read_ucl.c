/* SPDX-License-Identifier: BSD-2-Clause */
/* read_ucl.c: reads JSON, and the part of UCL that configuration files use. */
#include <ctype.h>
#include <string.h>

#include "tools/import/tree.h"

#define JSON_MEMBERS 256 /* of an object, which are compared in pairs */

struct reader {
	struct tree_input *in;
	const char *p, *end;
	unsigned line;
	bool json;
	struct includer *includer; /* UCL */
	bool in_macro;		   /* the words are paths */
};

/* For the reader of an included file: the object that has the directive. */
struct includer {
	struct tree_include include; /* first: take_file gets it back */
	struct tree *object;
	unsigned depth;
};

static struct tree *read_value(struct reader *r, const char *key,
			       unsigned depth);
static struct tree *read_object(struct reader *r, const char *key,
				unsigned depth);

/* What an error text shows of the place where the reader is. */
static const char *seen(const struct reader *r)
{
	char text[2] = { r->p < r->end ? *r->p : '\0' };

	if (r->p == r->end)
		return "the end of the file";
	if ((unsigned char)text[0] <= ' ' || (unsigned char)text[0] > '~')
		return "another character";
	return pool_format(r->in->pool, "'%s'", text);
}

/* Skips a comment of UCL. Returns whether there was one. */
static bool skip_comment(struct reader *r)
{
	unsigned depth = 0;

	if (r->json || r->p == r->end)
		return false;
	if (*r->p == '#') {
		while (r->p < r->end && *r->p != '\n')
			r->p++;
		return true;
	}
	if (r->end - r->p < 2 || r->p[0] != '/' || r->p[1] != '*')
		return false;
	do { /* such comments nest */
		bool has_two = r->end - r->p >= 2;

		if (has_two && r->p[0] == '/' && r->p[1] == '*') {
			depth++;
			r->p++;
		} else if (has_two && r->p[0] == '*' && r->p[1] == '/') {
			depth--;
			r->p++;
		} else if (*r->p == '\n') {
			r->line++;
		}
		r->p++;
	} while (depth && r->p < r->end);
	return true;
}

/* Skips blanks and comments, and lines if over_lines. */
static void skip_blanks(struct reader *r, bool over_lines)
{
	while (r->p < r->end) {
		if (*r->p == '\n' && !over_lines)
			return;
		if (*r->p == '\n')
			r->line++;
		else if (*r->p != ' ' && *r->p != '\t' && *r->p != '\r') {
			if (!skip_comment(r))
				return;
			continue;
		}
		r->p++;
	}
}

static bool take_char(struct reader *r, char c)
{
	if (r->p == r->end || *r->p != c)
		return false;
	r->p++;
	return true;
}

/* ---- strings ---- */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The number of four hexadecimal digits at r->p, or -1. */
static long read_hex4(struct reader *r)
{
	long v = 0;

	for (int i = 0; i < 4; i++) {
		int d = r->p < r->end ? hex_digit(*r->p) : -1;

		if (d < 0)
			return -1;
		v = v << 4 | d;
		r->p++;
	}
	return v;
}

/* Writes c as UTF-8; returns the number of bytes. */
static size_t put_utf8(char *out, unsigned long c)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* The character after a backslash and u. Returns the number of bytes written,
 * 0 after an error. Surrogates that are no pair make text that is not UTF-8. */
static size_t read_unicode(struct reader *r, char *out)
{
	long c = read_hex4(r), low = -1;

	if (c >= 0xd800 && c < 0xdc00 && r->end - r->p >= 2 &&
	    r->p[0] == '\\' && r->p[1] == 'u') {
		r->p += 2;
		low = read_hex4(r);
		c = low < 0xdc00 || low > 0xdfff
			    ? -1
			    : 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
	}
	return c < 0 ? 0 : put_utf8(out, (unsigned long)c);
}

/* One escape sequence, after its backslash. Returns the number of bytes. */
static size_t read_escape(struct reader *r, char *out)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	const char *which;
	char c;

	if (r->p == r->end)
		return 0;
	c = *r->p++;
	if (c == 'u')
		return read_unicode(r, out);
	which = c ? strchr(from, c) : NULL;
	if (which)
		*out = to[which - from];
	else if (c == '"' || c == '\\' || c == '/' || (!r->json && c == '\''))
		*out = c;
	else
		return 0;
	return 1;
}

static char *bad_text(struct reader *r, unsigned line)
{
	return tree_fail(r->in, line,
			 "a text is not UTF-8 or has control characters; "
			 "remove these characters");
}

/* A string in quotes; r->p is after the first quote. */
static char *read_string(struct reader *r, char quote)
{
	unsigned line = r->line;
	const char *stop = r->p;
	char *text;
	size_t n = 0;

	while (stop < r->end && *stop != quote)
		stop += *stop == '\\' && stop + 1 < r->end ? 2 : 1;
	/* an escape sequence is longer than its UTF-8 */
	text = pool_alloc(r->in->pool, (size_t)(stop - r->p) + 5);
	while (r->p < r->end && *r->p != quote && *r->p != '\n') {
		size_t len = 1;

		if (*r->p == '\\' && (r->json || quote == '"')) {
			r->p++;
			len = read_escape(r, text + n);
		} else {
			text[n] = *r->p++;
		}
		if (!len)
			return tree_fail(r->in, line,
					 "an unknown escape sequence in a "
					 "string; write \\\\ for a backslash");
		n += len;
	}
	if (!take_char(r, quote))
		return tree_fail(r->in, line,
				 "a string has no closing quote on its line");
	return tree_is_plain(text, n) ? text : bad_text(r, line);
}

/* ---- values ---- */

/* Finds the end of a word of UCL: the end of the line, a separator, a comment, or a
 * bracket that the word has not opened. In a macro "/" and "*" are parts of a
 * pattern. */
static const char *end_of_word(const struct reader *r)
{
	unsigned braces = 0, brackets = 0;
	const char *p = r->p;

	for (; p < r->end && *p; p++) {
		if (*p == '{')
			braces++;
		else if (*p == '[')
			brackets++;
		else if (*p == '}' && braces)
			braces--;
		else if (*p == ']' && brackets)
			brackets--;
		else if (strchr("\r\n;,}]#", *p) ||
			 (*p == '/' && !r->in_macro && r->end - p >= 2 &&
			  p[1] == '*'))
			break;
	}
	return p;
}

/* A word without quotes; of JSON: a number, true, false or null. */
static struct tree *read_word(struct reader *r, const char *key)
{
	const char *start = r->p;
	struct tree *t;
	char *text;
	size_t n;

	if (r->json)
		while (r->p < r->end && *r->p && !strchr(" \t\r\n,]}", *r->p))
			r->p++;
	else
		r->p = end_of_word(r);
	n = (size_t)(r->p - start);
	while (n && (start[n - 1] == ' ' || start[n - 1] == '\t'))
		n--;
	text = pool_copy(r->in->pool, start, n);
	if (!n)
		return tree_fail(r->in, r->line, "a value is missing before %s",
				 seen(r));
	if (!tree_is_plain(text, n))
		return (struct tree *)(void *)bad_text(r, r->line);
	/* the text may be a secret */
	if (r->json && strcmp(text, "true") != 0 &&
	    strcmp(text, "false") != 0 && strcmp(text, "null") != 0 &&
	    strspn(text, "+-.0123456789eE") != n)
		return tree_fail(r->in, r->line,
				 "%.40s: not a JSON value; put text in quotes",
				 key ? key : "an element of an array");
	t = tree_new(r->in->pool, TREE_SCALAR, r->in->file, r->line, key, text);
	if (!strcmp(text, "null"))
		t->text = NULL;
	return t;
}

static struct tree *read_array(struct reader *r, const char *key,
			       unsigned depth)
{
	struct tree *t = tree_new(r->in->pool, TREE_ARRAY, r->in->file, r->line,
				  key, NULL);
	bool first = true;

	for (;;) {
		struct tree *item;

		skip_blanks(r, true);
		if (take_char(r, ']'))
			return t;
		if (!first && !take_char(r, ',') &&
		    (r->json || !take_char(r, ';')))
			return tree_fail(r->in, r->line,
					 "',' or ']' expected, found %s",
					 seen(r));
		skip_blanks(r, true);
		if (!first && !r->json && take_char(r, ']'))
			return t;
		item = read_value(r, NULL, depth + 1);
		if (!item)
			return NULL;
		tree_add(t, item);
		first = false;
	}
}

static struct tree *read_value(struct reader *r, const char *key,
			       unsigned depth)
{
	unsigned line = r->line;
	char *text;

	if (depth == TREE_DEPTH)
		return tree_fail(r->in, line,
				 "more than %d sections inside each other",
				 TREE_DEPTH);
	if (take_char(r, '{'))
		return read_object(r, key, depth);
	if (take_char(r, '['))
		return read_array(r, key, depth);
	if (take_char(r, '"'))
		text = read_string(r, '"');
	else if (!r->json && take_char(r, '\''))
		text = read_string(r, '\'');
	else if (!r->json && r->end - r->p >= 2 && !strncmp(r->p, "<<", 2))
		return tree_fail(r->in, line,
				 "a value of several lines (<<) is not "
				 "supported; write it in quotes");
	else
		return read_word(r, key);
	if (!text)
		return NULL;
	return tree_new(r->in->pool, TREE_SCALAR, r->in->file, line, key, text);
}

/* ---- objects ---- */

/* A key, or the name of a section: in quotes, or a word. */
static char *read_key(struct reader *r)
{
	const char *start = r->p;

	if (take_char(r, '"'))
		return read_string(r, '"');
	while (!r->json && r->p < r->end &&
	       (isalnum((unsigned char)*r->p) ||
		(*r->p && strchr("-_./", *r->p))))
		r->p++;
	if (r->p == start)
		return tree_fail(r->in, r->line, "%s expected, found %s",
				 r->json ? "a key in quotes or '}'" : "a key",
				 seen(r));
	return pool_copy(r->in->pool, start, (size_t)(r->p - start));
}

/* "KEY NAME {", or "KEY VALUE" without an equals sign. */
static struct tree *read_named(struct reader *r, const char *key,
			       unsigned depth)
{
	struct reader before = *r;
	struct tree *t, *child;
	char *name = NULL;

	if (r->p < r->end && (*r->p == '"' || isalnum((unsigned char)*r->p)))
		name = read_key(r);
	skip_blanks(r, true);
	if (!name || !(r->p < r->end && *r->p == '{')) {
		if (r->in->error)
			return NULL;
		*r = before;
		t = read_value(r, key, depth);
		if (t && t->kind == TREE_SCALAR && t->text &&
		    before.p < r->end && !strchr("\"'", *before.p) &&
		    strchr(t->text, '{'))
			return tree_fail(r->in, before.line,
					 "%s: the name of the section has "
					 "characters that UCL takes in quotes "
					 "only; write %s \"NAME\" {",
					 key, key);
		return t;
	}
	t = tree_new(r->in->pool, TREE_OBJECT, r->in->file, before.line, key,
		     NULL);
	child = read_value(r, name, depth + 1);
	if (!child)
		return NULL;
	child->line = before.line;
	tree_add(t, child);
	return t;
}

static struct tree *read_pair(struct reader *r, unsigned depth)
{
	unsigned line = r->line;
	char *key = read_key(r);
	struct tree *t;

	if (!key)
		return NULL;
	skip_blanks(r, r->json);
	if (r->json && !take_char(r, ':'))
		return tree_fail(r->in, r->line, "':' expected, found %s",
				 seen(r));
	if (r->json || take_char(r, '=') || take_char(r, ':')) {
		skip_blanks(r, r->json);
		t = read_value(r, key, depth + 1);
	} else {
		skip_blanks(r, true);
		t = r->p < r->end && (*r->p == '{' || *r->p == '[')
			    ? read_value(r, key, depth + 1)
			    : read_named(r, key, depth + 1);
	}
	if (t)
		t->line = line;
	return t;
}

/* Whether another pair follows the one that was read; false also after an
 * error. */
static bool next_pair(struct reader *r, bool is_top)
{
	bool comma = false;

	skip_blanks(r, true);
	if (r->json) {
		comma = take_char(r, ',');
		skip_blanks(r, true);
		if (comma)
			return true;
		if (r->p == r->end || *r->p != '}')
			tree_fail(r->in, r->line,
				  "',' or '}' expected, found %s", seen(r));
		return false;
	}
	while (take_char(r, ',') || take_char(r, ';'))
		skip_blanks(r, true);
	if (r->p < r->end)
		return *r->p != '}';
	if (!is_top)
		tree_fail(r->in, r->line, "'}' expected, found %s", seen(r));
	return false;
}

/* Adds a pair. Software reads an object of JSON with a key twice in different
 * ways (RFC 8259 section 4), so such a file is refused. */
static bool add_pair(struct reader *r, struct tree *t, struct tree *pair,
		     unsigned n)
{
	if (r->json && n == JSON_MEMBERS)
		return tree_fail(r->in, pair->line,
				 "an object has more than %d members",
				 JSON_MEMBERS);
	if (r->json && tree_find(t, pair->key))
		return tree_fail(r->in, pair->line,
				 "\"%.60s\" is there twice in an object, of "
				 "which software reads one or the other; "
				 "remove one",
				 pair->key);
	tree_add(t, pair);
	return true;
}

/* ---- macros ---- */

/* Takes the parameters of an include macro, "(try=true, glob=true)". False after
 * an error. */
static bool read_parameters(struct reader *r, bool *try, bool *glob)
{
	while (!take_char(r, ')')) {
		const char *start = r->p;
		size_t len;

		while (r->p < r->end && *r->p && !strchr("),\n", *r->p))
			r->p++;
		len = (size_t)(r->p - start);
		if (len == 8 && !strncmp(start, "try=true", len))
			*try = true;
		else if (len == 9 && !strncmp(start, "glob=true", len))
			*glob = true;
		else if (len)
			return tree_fail(r->in, r->line,
					 ".include(%.*s): a parameter other "
					 "than try=true and glob=true; include "
					 "the file without it",
					 (int)len, start);
		if (r->p == r->end || *r->p == '\n')
			return tree_fail(r->in, r->line, "')' expected");
		take_char(r, ',');
		skip_blanks(r, false);
	}
	return true;
}

/* The name of a macro. False after an error: it is another one than .include. */
static bool read_macro(struct reader *r, bool *try)
{
	const char *start = r->p;
	size_t len;

	while (r->p < r->end && (isalnum((unsigned char)*r->p) ||
				 (*r->p && strchr("._-", *r->p))))
		r->p++;
	len = (size_t)(r->p - start);
	*try = len == 12 && !strncmp(start, ".try_include", len);
	return *try || (len == 8 && !strncmp(start, ".include", len)) ||
	       tree_fail(r->in, r->line,
			 "%.*s: this macro is not supported; replace the line "
			 "by what it stands for",
			 (int)len, start);
}

/* An include macro in an object. False after an error. */
static bool take_macro(struct reader *r, struct tree *object, unsigned depth)
{
	struct includer outer, *i = r->includer;
	unsigned line = r->line;
	bool try, glob = false, ok;
	struct tree *name;

	if (!read_macro(r, &try) ||
	    (take_char(r, '(') && !read_parameters(r, &try, &glob)))
		return false;
	skip_blanks(r, false);
	r->in_macro = true;
	name = read_value(r, NULL, TREE_DEPTH - 2);
	r->in_macro = false;
	if (!name)
		return false;
	if (name->kind != TREE_SCALAR || !name->text || *name->text == '=' ||
	    (!glob && strpbrk(name->text, "*?[{")))
		return tree_fail(r->in, line,
				 ".include: not the name of a file; give one, "
				 "or a pattern with .include(glob=true)");
	outer = *i;
	i->object = object;
	i->depth = depth;
	ok = tree_include(&i->include, line, name->text, !try);
	i->object = outer.object;
	i->depth = outer.depth;
	return ok;
}

/* ---- objects and files ---- */

/* The pairs of an object after its opening brace, or of a file. False after an
 * error. */
static bool read_pairs(struct reader *r, struct tree *t, unsigned depth,
		       bool is_top)
{
	unsigned n = 0;

	skip_blanks(r, true);
	if (!is_top && take_char(r, '}'))
		return true;
	while (r->p < r->end || !is_top) {
		if (!r->json && r->p < r->end && *r->p == '.') {
			if (!take_macro(r, t, depth))
				return false;
		} else {
			struct tree *pair = read_pair(r, depth);

			if (!pair || !add_pair(r, t, pair, n++))
				return false;
		}
		if (!next_pair(r, is_top))
			break;
	}
	if (r->in->error)
		return false;
	r->p += !is_top; /* next_pair stopped at '}' */
	return true;
}

/* An object after its opening brace. */
static struct tree *read_object(struct reader *r, const char *key,
				unsigned depth)
{
	struct tree *t = tree_new(r->in->pool, TREE_OBJECT, r->in->file,
				  r->line, key, NULL);

	return read_pairs(r, t, depth, false) ? t : NULL;
}

/* A whole file, whose pairs may be in braces, into the object t. */
static bool read_file(struct reader *r, struct tree *t, unsigned depth)
{
	if (memchr(r->p, '\0', (size_t)(r->end - r->p)))
		return tree_fail(r->in, 1, "a NUL character; give a text file");
	skip_blanks(r, true);
	if (take_char(r, '{')) {
		if (!read_pairs(r, t, depth + 1, false))
			return false;
	} else if (r->json) {
		return tree_fail(r->in, r->line, "'{' expected, found %s",
				 seen(r));
	} else if (!read_pairs(r, t, depth, true)) {
		return false;
	}
	skip_blanks(r, true);
	return r->p == r->end ||
	       tree_fail(r->in, r->line,
			 "the end of the file expected, found %s", seen(r));
}

static struct tree *new_file(const struct tree_input *in)
{
	return tree_new(in->pool, TREE_OBJECT, in->file, 1, NULL, NULL);
}

struct tree *tree_read_json(struct tree_input *in)
{
	struct reader r = { in, in->text, in->text + in->len, 1, true, NULL };
	struct tree *t = new_file(in);

	return read_file(&r, t, 0) ? t : NULL;
}

static bool take_file(struct tree_include *i, const char *text, size_t len)
{
	struct includer *in = (struct includer *)(void *)i;
	struct reader r = { i->in, text, text + len, 1, false, in };

	return read_file(&r, in->object, in->depth);
}

struct tree *tree_read_ucl(struct tree_input *in, tree_opener *open)
{
	struct includer includer = { .include = { in, take_file, open, 0, 0,
						  0 } };
	struct reader r = { in, in->text, in->text + in->len,
			    1,	false,	  &includer };
	struct tree *t = new_file(in);

	return read_file(&r, t, 0) ? t : NULL;
}
