/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * read_ctl.c: reads the classic syntax of FreeBSD's ctl.conf (ctl.conf(5)). The
 * end of a line has no meaning there: each keyword is followed by a fixed
 * number of words, or by a name and a section in braces.
 */
#include <ctype.h>
#include <string.h>

#include "base/bytes.h"
#include "tools/import/tree.h"

#define WORDS_MAX 8 /* of one statement */

enum token {
	TOKEN_WORD,
	TOKEN_OPEN,
	TOKEN_CLOSE,
	TOKEN_SEMICOLON,
	TOKEN_END
};

struct reader {
	struct tree_input *in;
	const char *p, *end;
	unsigned line;
	/* the token that comes next */
	enum token token;
	char *word;
	bool quoted;
	unsigned word_line;
};

/* The keywords and their words; a keyword with a section has NAMED. */
#define NAMED 0x100u
static const struct keyword {
	const char *name;
	unsigned words;
} keywords[] = {
	{ "alias", 1 },
	{ "auth-group", 1 | NAMED },
	{ "auth-type", 1 },
	{ "backend", 1 },
	{ "blocksize", 1 },
	{ "chap", 2 },
	{ "chap-mutual", 4 },
	{ "controller", 1 | NAMED },
	{ "ctl-lun", 1 },
	{ "debug", 1 },
	{ "device-id", 1 },
	{ "device-type", 1 },
	{ "discovery-auth-group", 1 },
	{ "discovery-filter", 1 },
	{ "dscp", 1 },
	{ "foreign", 0 },
	{ "initiator-name", 1 },
	{ "initiator-portal", 1 },
	{ "isns-period", 1 },
	{ "isns-server", 1 },
	{ "isns-timeout", 1 },
	{ "listen", 1 },
	{ "listen-iser", 1 },
	{ "lun", 2 | NAMED },
	{ "maxproc", 1 },
	{ "offload", 1 },
	{ "option", 2 },
	{ "path", 1 },
	{ "pcp", 1 },
	{ "pidfile", 1 },
	{ "port", 1 },
	{ "portal-group", 2 | NAMED }, /* in a target: one or two words */
	{ "redirect", 1 },
	{ "serial", 1 },
	{ "size", 1 },
	{ "tag", 1 },
	{ "target", 1 | NAMED },
	{ "timeout", 1 },
	{ "transport-group", 1 | NAMED },
};

static const struct keyword *find_keyword(const char *word)
{
	for (size_t i = 0; i < ARRAY_LEN(keywords); i++)
		if (!strcmp(keywords[i].name, word))
			return &keywords[i];
	return NULL;
}

static void skip_blanks(struct reader *r)
{
	while (r->p < r->end) {
		if (*r->p == '#')
			while (r->p < r->end && *r->p != '\n')
				r->p++;
		else if (!isspace((unsigned char)*r->p))
			return;
		else if (*r->p++ == '\n')
			r->line++;
	}
}

static bool read_word(struct reader *r)
{
	const char *start = r->p, *stop;

	r->quoted = *start == '"';
	if (r->quoted) {
		start++;
		stop = memchr(start, '"', (size_t)(r->end - start));
		if (!stop || memchr(start, '\n', (size_t)(stop - start))) {
			tree_fail(r->in, r->line,
				  "a string has no closing quote on its line");
			return false;
		}
		r->p = stop + 1;
	} else {
		while (r->p < r->end && *r->p &&
		       !strchr(" \t\r\n{};\"#", *r->p))
			r->p++;
		stop = r->p;
	}
	r->word = pool_copy(r->in->pool, start, (size_t)(stop - start));
	r->word_line = r->line;
	if (tree_is_plain(start, (size_t)(stop - start)))
		return true;
	tree_fail(r->in, r->line,
		  "a text is not UTF-8 or has control characters; remove these "
		  "characters");
	return false;
}

/* Reads the next token. Returns false after an error. */
static bool next_token(struct reader *r)
{
	skip_blanks(r);
	if (r->p == r->end) {
		r->token = TOKEN_END;
		return true;
	}
	switch (*r->p) {
	case '{':
		r->token = TOKEN_OPEN;
		break;
	case '}':
		r->token = TOKEN_CLOSE;
		break;
	case ';':
		r->token = TOKEN_SEMICOLON;
		break;
	default:
		r->token = TOKEN_WORD;
		return read_word(r);
	}
	r->p++;
	return true;
}

static bool read_statements(struct reader *r, struct tree *parent,
			    unsigned depth);

/* A section after its keyword and name. */
static bool read_section(struct reader *r, struct tree *parent, const char *key,
			 const char *name, unsigned line, unsigned depth)
{
	struct tree *outer, *inner;

	if (depth + 2 >= TREE_DEPTH) {
		tree_fail(r->in, line,
			  "more than %d sections inside each other",
			  TREE_DEPTH / 2);
		return false;
	}
	outer = tree_new(r->in->pool, TREE_OBJECT, r->in->file, line, key,
			 NULL);
	inner = tree_new(r->in->pool, TREE_OBJECT, r->in->file, line, name,
			 NULL);
	tree_add(parent, outer);
	tree_add(outer, inner);
	if (!next_token(r) || !read_statements(r, inner, depth + 2))
		return false;
	if (r->token != TOKEN_CLOSE) {
		tree_fail(r->in, line, "%s %s: the section has no end; add }",
			  key, name);
		return false;
	}
	return next_token(r);
}

/* The words that belong to a keyword. Returns how many, or -1. */
static int read_words(struct reader *r, const struct keyword *k,
		      const char *words[WORDS_MAX])
{
	unsigned most = k ? k->words & ~NAMED : WORDS_MAX, line = r->word_line;
	unsigned n = 0;

	if (!next_token(r))
		return -1;
	while (r->token == TOKEN_WORD && n < most) {
		/* a second word of a keyword is optional, and an unknown
		 * keyword has the words of its line */
		if (n && k && (k->words & NAMED) && !r->quoted &&
		    find_keyword(r->word))
			break;
		if (!k && r->word_line != line)
			break;
		words[n++] = r->word;
		if (!next_token(r))
			return -1;
	}
	return (int)n;
}

static struct tree *statement_node(struct reader *r, const char *key,
				   unsigned line, const char **words, int n)
{
	struct tree *t;

	if (n <= 1)
		return tree_new(r->in->pool, TREE_SCALAR, r->in->file, line,
				key, n ? words[0] : "");
	t = tree_new(r->in->pool, TREE_ARRAY, r->in->file, line, key, NULL);
	for (int i = 0; i < n; i++)
		tree_add(t, tree_new(r->in->pool, TREE_SCALAR, r->in->file,
				     line, NULL, words[i]));
	return t;
}

/* "lun NUMBER NAME" becomes the tree of lun { NUMBER = NAME }. */
static struct tree *lun_node(struct reader *r, unsigned line,
			     const char **words)
{
	struct tree *t = tree_new(r->in->pool, TREE_OBJECT, r->in->file, line,
				  "lun", NULL);

	tree_add(t, tree_new(r->in->pool, TREE_SCALAR, r->in->file, line,
			     words[0], words[1]));
	return t;
}

static bool read_statement(struct reader *r, struct tree *parent,
			   unsigned depth)
{
	const char *key = r->word, *words[WORDS_MAX] = { NULL };
	const struct keyword *k = r->quoted ? NULL : find_keyword(key);
	unsigned line = r->word_line;
	int n = read_words(r, k, words);

	if (n < 0)
		return false;
	if (r->token == TOKEN_OPEN && (!k || (k->words & NAMED))) {
		if (n == 1)
			return read_section(r, parent, key, words[0], line,
					    depth);
		tree_fail(r->in, line, "%s: a section needs one name, has %d",
			  key, n);
		return false;
	}
	if (k && (n < (int)(k->words & ~NAMED)) &&
	    !(n == 1 && !strcmp(key, "portal-group"))) {
		tree_fail(r->in, line,
			  "%s: %u words expected after it, found %d", key,
			  k->words & ~NAMED, n);
		return false;
	}
	tree_add(parent, n == 2 && !strcmp(key, "lun")
				 ? lun_node(r, line, words)
				 : statement_node(r, key, line, words, n));
	return true;
}

static bool read_statements(struct reader *r, struct tree *parent,
			    unsigned depth)
{
	for (;;) {
		switch (r->token) {
		case TOKEN_WORD:
			if (!read_statement(r, parent, depth))
				return false;
			break;
		case TOKEN_SEMICOLON:
			if (!next_token(r))
				return false;
			break;
		case TOKEN_OPEN:
			tree_fail(r->in, r->line,
				  "{ without a keyword before it");
			return false;
		default:
			return true;
		}
	}
}

struct tree *tree_read_ctl(struct tree_input *in)
{
	struct reader r = {
		.in = in, .p = in->text, .end = in->text + in->len, .line = 1
	};
	struct tree *top =
		tree_new(in->pool, TREE_OBJECT, in->file, 1, NULL, NULL);

	if (memchr(in->text, '\0', in->len))
		return tree_fail(in, 1, "a NUL character; give a text file");
	if (!next_token(&r) || !read_statements(&r, top, 0))
		return NULL;
	if (r.token == TOKEN_CLOSE)
		return tree_fail(in, r.line,
				 "} without a section that it ends; remove it");
	return top;
}

/* Returns the end of the quoted text at p. */
static const char *skip_quoted(const char *p, const char *end)
{
	for (p++; p < end && *p != '"' && *p != '\n'; p++)
		p += *p == '\\' && p + 1 < end;
	return p < end ? p + 1 : end;
}

/* Returns the end of the blanks at p, and in *line whether a line ends there
 * that does not stand before a brace ("lun 0" and its brace may be on two
 * lines). */
static const char *skip_space(const char *p, const char *end, bool *line)
{
	*line = false;
	for (; p < end && isspace((unsigned char)*p); p++)
		*line |= *p == '\n';
	*line &= p < end && *p != '{';
	return p;
}

bool tree_ctl_is_ucl(const char *text, size_t len)
{
	const char *p = text, *end = text + len;
	unsigned words = 0; /* since the beginning of the statement */
	bool line;

	while (p < end && *p) {
		if (*p == '=' || (*p == '{' && words < 2) ||
		    (*p == '.' && !words)) /* a macro */
			return true;
		if (*p == '#') {
			while (p < end && *p != '\n')
				p++;
		} else if (*p == '"') {
			p = skip_quoted(p, end);
			words++;
		} else if (strchr("{};", *p)) {
			words = 0;
			p++;
		} else if (isspace((unsigned char)*p)) {
			p = skip_space(p, end, &line);
			words = line ? 0 : words;
		} else {
			while (p < end && *p && !isspace((unsigned char)*p) &&
			       !strchr("{};\"#=", *p))
				p++;
			if (p[-1] == ':')
				return true;
			words++;
		}
	}
	return false;
}
