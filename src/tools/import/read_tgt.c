/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * read_tgt.c: reads the format of targets.conf. tgt-admin reads this format by
 * the Perl module Config::General: comments with # and between lines that begin
 * and end with slash and asterisk, continuation by a final backslash, quotes,
 * "=" or blanks between a key and its value, blocks of the same name merged.
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "tools/import/tree.h"

#define LONG_LINE 8192 /* bytes of a line with its continuations */

struct reader {
	struct tree_include include;	/* first: take_file gets it back */
	struct tree *stack[TREE_DEPTH]; /* the open blocks, the file first */
	unsigned depth;
};

/* The lines of one file: what one line leaves for the next. */
struct lines {
	unsigned number;
	bool in_comment;
	const char *begun;   /* a line that ended with a backslash */
	unsigned begun_line; /* the number of its first line */
};

static bool read_lines(struct reader *r, const char *text, size_t len);

static bool take_file(struct tree_include *i, const char *text, size_t len)
{
	return read_lines((struct reader *)(void *)i, text, len);
}

/* The pattern of an include directive, without its quotes; NULL: another
 * directive. s is changed. */
static char *include_pattern(char *s)
{
	static const char *const words[] = { "includeoptional", "include" };

	for (size_t i = 0; i < 2; i++) {
		size_t n = strlen(words[i]), len;

		if (strncasecmp(s, words[i], n) ||
		    !(isspace((unsigned char)s[n]) || s[n] == '"'))
			continue;
		s += n;
		while (isspace((unsigned char)*s))
			s++;
		len = strlen(s);
		if (len >= 2 && (*s == '"' || *s == '\'') && s[len - 1] == *s) {
			s[len - 1] = '\0';
			s++;
		}
		return s;
	}
	return NULL;
}

/* Removes quotes around a value, and the backslash of \$, \\, \" and \#. */
static char *plain_value(char *s)
{
	size_t len = strlen(s), out = 0;

	if (len >= 2 && s[0] == '"' && s[len - 1] == '"') {
		s[len - 1] = '\0';
		s++;
	}
	for (size_t i = 0; s[i]; i++) {
		if (s[i] == '\\' && s[i + 1] && strchr("$\\\"#", s[i + 1]))
			i++;
		s[out++] = s[i];
	}
	s[out] = '\0';
	return s;
}

/* Ends the first word of s and returns what follows it; the word may be in
 * quotes, which *s then no longer includes. */
static char *split_word(char **s)
{
	char *p = *s;

	if (*p == '"' && strchr(p + 1, '"')) {
		*s = p + 1;
		p = strchr(p + 1, '"');
	} else {
		while (*p && !isspace((unsigned char)*p))
			p++;
	}
	if (*p)
		*p++ = '\0';
	while (isspace((unsigned char)*p))
		p++;
	return p;
}

static bool close_block(struct reader *r, unsigned line, const char *name)
{
	struct tree_input *in = r->include.in;
	const struct tree *t = r->stack[r->depth - 1];

	if (r->depth == 1)
		return tree_fail(in, line,
				 "</%s>: no block is open; remove the line",
				 name);
	if (strcmp(t->key, name) != 0)
		return tree_fail(in, line,
				 "</%s>: does not end the block <%s> of line "
				 "%u; write </%s>",
				 name, t->key, t->line, t->key);
	r->depth--;
	return true;
}

/* Opens the block, or opens an earlier one of the same name again. */
static bool open_block(struct reader *r, unsigned line, char *s)
{
	struct tree_input *in = r->include.in;
	struct tree *parent = r->stack[r->depth - 1], *t;
	char *key = s, *name = split_word(&key), *full;

	name = plain_value(name);
	if (r->depth == TREE_DEPTH)
		return tree_fail(in, line,
				 "<%s>: more than %d blocks inside each other",
				 key, TREE_DEPTH);
	full = pool_format(in->pool, "%s %s", key, name);
	t = pool_get(in->pool, parent, full);
	if (!t) {
		t = tree_new(in->pool, TREE_OBJECT, in->file, line, key, name);
		tree_add(parent, t);
		pool_put(in->pool, parent, full, t);
	}
	r->stack[r->depth++] = t;
	return true;
}

/* A line that begins with "<" and ends with ">". */
static bool take_tag(struct reader *r, unsigned line, char *s)
{
	char *name = s + 1;
	size_t len = strlen(name) - 1; /* without ">" */

	while (len && name[len - 1] == ' ')
		len--;
	name[len] = '\0';
	if (*name == '/') {
		name++;
		split_word(&name);
		return close_block(r, line, name);
	}
	if (len > 1 && name[len - 1] == '/') {
		name[len - 1] = '\0'; /* <NAME VALUE/> is an empty block */
		if (!open_block(r, line, name))
			return false;
		r->depth--;
		return true;
	}
	return open_block(r, line, name);
}

static bool take_directive(struct reader *r, unsigned line, char *s)
{
	struct tree_input *in = r->include.in;
	char *value = s;

	while (*value && *value != '=' && !isspace((unsigned char)*value))
		value++;
	if (*value) {
		bool is_assignment = *value == '=';

		*value++ = '\0';
		while (isspace((unsigned char)*value) ||
		       (*value == '=' && !is_assignment)) {
			is_assignment |= *value == '=';
			value++;
		}
	}
	if (!strncmp(value, "<<", 2))
		return tree_fail(in, line,
				 "%s: a value of several lines (<<) is not "
				 "supported; write it on one line",
				 s);
	tree_add(r->stack[r->depth - 1],
		 tree_new(in->pool, TREE_SCALAR, in->file, line, s,
			  plain_value(value)));
	return true;
}

/* A line without comments and blanks around it. Config::General sees no include in
 * one that was continued. */
static bool take_line(struct reader *r, unsigned line, char *s,
		      bool is_continued)
{
	struct tree_input *in = r->include.in;
	char *pattern;

	if (!tree_is_plain(s, strlen(s)))
		return tree_fail(in, line,
				 "not UTF-8 text; convert the file, for "
				 "example by iconv -f latin1 -t utf8");
	pattern = is_continued ? NULL : include_pattern(s);
	if (pattern)
		return tree_include(&r->include, line, pattern, true);
	if (s[0] == '<' && s[strlen(s) - 1] == '>' && s[1] != '>')
		return take_tag(r, line, s);
	if (s[0] == '<')
		return tree_fail(
			in, line,
			"a block has no closing >; write <NAME VALUE>");
	return take_directive(r, line, s);
}

/* Cuts a comment off: from the first # without a backslash on. */
static void cut_comment(char *s)
{
	for (char *p = s; *p; p++)
		if (*p == '#' && (p == s || p[-1] != '\\')) {
			*p = '\0';
			return;
		}
}

/* Returns s without blanks around it; tabs become blanks. */
static char *trim(char *s)
{
	size_t len;

	for (char *p = s; *p; p++)
		if (*p == '\t')
			*p = ' ';
	while (isspace((unsigned char)*s))
		s++;
	len = strlen(s);
	while (len && isspace((unsigned char)s[len - 1]))
		s[--len] = '\0';
	return s;
}

/* Returns the last end of a comment in s, or NULL. */
static char *last_comment_end(char *s)
{
	char *last = NULL;

	for (char *p = strstr(s, "*/"); p; p = strstr(p + 1, "*/"))
		last = p;
	return last;
}

/* Removes comments between slash and asterisk, which Config::General knows line by
 * line: one within a line, with the blanks around it; one that begins a line. What
 * follows an end is read. Returns whether the line is part of a comment. */
static bool cut_comments(struct lines *l, char *s)
{
	static const char blanks[] = " \t\r";
	char *begin = strstr(s, "/*"), *end = last_comment_end(s);

	if (begin && end && end >= begin + 2) {
		end += 2 + strspn(end + 2, blanks);
		while (begin > s && strchr(blanks, begin[-1]))
			begin--;
		memmove(begin, end, strlen(end) + 1);
	} else if (begin == s + strspn(s, blanks)) {
		l->in_comment = !end || end[2 + strspn(end + 2, blanks)];
	} else if (end) {
		l->in_comment = false;
		memmove(s, end + 2, strlen(end + 2) + 1);
	}
	return l->in_comment;
}

/* One line of the file, as it is there. */
static bool raw_line(struct reader *r, struct lines *l, char *s)
{
	struct tree_input *in = r->include.in;
	bool is_continued;
	size_t len;

	if (cut_comments(l, s))
		return true;
	cut_comment(s);
	len = strlen(s);
	if (len && s[len - 1] == '\r')
		s[--len] = '\0';
	if (!l->begun)
		l->begun_line = l->number;
	if (l->begun && strlen(l->begun) + len > LONG_LINE)
		return tree_fail(in, l->number,
				 "a continued line has more than %d bytes; "
				 "divide it",
				 LONG_LINE);
	is_continued = l->begun && *l->begun;
	if (l->begun)
		s = pool_format(in->pool, "%s%s", l->begun,
				s + strspn(s, " \t"));
	l->begun = NULL;
	len = strlen(s);
	if (len && s[len - 1] == '\\' && (len == 1 || s[len - 2] != '\\')) {
		s[len - 1] = '\0';
		l->begun = s + strspn(s, " \t");
		return true;
	}
	s = trim(s);
	return !*s || take_line(r, l->begun_line, s, is_continued);
}

static bool read_lines(struct reader *r, const char *text, size_t len)
{
	struct tree_input *in = r->include.in;
	struct lines l = { 0 };
	size_t at = 0;

	while (at < len) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t n = end ? (size_t)(end - text) - at : len - at;

		l.number++;
		if (memchr(text + at, '\0', n))
			return tree_fail(in, l.number,
					 "a NUL character; give a text file");
		if (!raw_line(r, &l, pool_copy(in->pool, text + at, n)))
			return false;
		at += n + 1;
	}
	return true;
}

struct tree *tree_read_tgt(struct tree_input *in, tree_opener *open)
{
	struct reader r = { .include = { in, take_file, open, 0, 0, 0 } };
	const struct tree *t;

	r.stack[r.depth++] =
		tree_new(in->pool, TREE_OBJECT, in->file, 1, NULL, NULL);
	if (!read_lines(&r, in->text, in->len))
		return NULL;
	if (r.depth == 1)
		return r.stack[0];
	t = r.stack[r.depth - 1];
	in->file = t->file;
	return tree_fail(in, t->line,
			 "<%s %s>: the block has no end; add </%s>", t->key,
			 t->text, t->key);
}
