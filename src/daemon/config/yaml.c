/* SPDX-License-Identifier: BSD-2-Clause */
/* yaml.c: trees from and to YAML, by the events of libyaml. */
#include "daemon/config/yaml.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml.h>

#include "base/bytes.h"
#include "base/escape.h"

#define DEPTH_MAX  16
#define NODES_MAX  1000000u
#define SCALAR_MAX 4096u /* bytes */

/* A mapping or sequence whose end has not come yet. */
struct level {
	struct cfg_node *node;
	char *key; /* of a mapping: waits for its value */
	struct cfg_place key_at;
};

struct reader {
	struct cfg_arena *arena;
	struct cfg_errors *errors;
	const char *text;
	size_t len;
	struct cfg_node *root;
	struct level levels[DEPTH_MAX];
	unsigned depth, nodes;
	bool done, failed;
};

static struct cfg_place place_of(const yaml_mark_t *m)
{
	return (struct cfg_place){ (unsigned)m->line + 1,
				   (unsigned)m->column + 1 };
}

static void fail(struct reader *r, const yaml_mark_t *at, const char *text)
{
	cfg_error(r->errors, place_of(at), "%s", text);
	r->failed = true;
}

static void fail_memory(struct reader *r)
{
	cfg_error(r->errors, (struct cfg_place){ 0 }, "out of memory");
	r->failed = true;
}

/* ---- from events to nodes ---- */

/* Puts a complete or beginning node into the level above. */
static void place_node(struct reader *r, struct cfg_node *n)
{
	struct level *l = r->depth ? &r->levels[r->depth - 1] : NULL;
	struct cfg_item *item;

	if (!l) {
		r->root = n;
		return;
	}
	item = cfg_node_add(r->arena, l->node, l->key, n);
	if (!item) {
		fail_memory(r);
		return;
	}
	item->at = l->node->type == CFG_NODE_MAP ? l->key_at : n->at;
	l->key = NULL;
}

/* Returns a new node at the place of the event. NULL: r has failed. */
static struct cfg_node *make_node(struct reader *r, enum cfg_node_type type,
				  const yaml_event_t *ev)
{
	struct cfg_node *n;

	if (++r->nodes > NODES_MAX) {
		fail(r, &ev->start_mark,
		     "more than 1000000 values; give fewer");
		return NULL;
	}
	n = cfg_node_new(r->arena, type, NULL);
	if (!n)
		fail_memory(r);
	else
		n->at = place_of(&ev->start_mark);
	return n;
}

/* Returns the text of a scalar. NULL: r has failed. */
static char *scalar_text(struct reader *r, const yaml_event_t *ev)
{
	const char *text = (const char *)ev->data.scalar.value;
	size_t len = ev->data.scalar.length;
	char *copy;

	if (len > SCALAR_MAX) {
		fail(r, &ev->start_mark,
		     "a value of more than 4096 bytes; give a shorter one");
		return NULL;
	}
	if (!text_is_plain(text, len)) {
		fail(r, &ev->start_mark,
		     "a value with a line break or another control character; "
		     "remove the character");
		return NULL;
	}
	copy = cfg_arena_text(r->arena, text, len);
	if (!copy)
		fail_memory(r);
	return copy;
}

static bool wants_key(const struct reader *r)
{
	const struct level *l = r->depth ? &r->levels[r->depth - 1] : NULL;

	return l && l->node->type == CFG_NODE_MAP && !l->key;
}

static void take_key(struct reader *r, char *text, const yaml_event_t *ev)
{
	struct level *l = &r->levels[r->depth - 1];

	if (!strcmp(text, "<<")) {
		fail(r, &ev->start_mark,
		     "<<: merge keys are not supported; write the fields out");
		return;
	}
	l->key = text;
	l->key_at = place_of(&ev->start_mark);
}

static void take_scalar(struct reader *r, const yaml_event_t *ev)
{
	struct cfg_node *n;
	char *text;

	if (ev->data.scalar.tag) {
		fail(r, &ev->start_mark,
		     "tags (!NAME) are not supported; leave the tag out");
		return;
	}
	text = scalar_text(r, ev);
	if (!text)
		return;
	if (wants_key(r)) {
		take_key(r, text, ev);
		return;
	}
	n = make_node(r, CFG_NODE_SCALAR, ev);
	if (!n)
		return;
	n->text = text;
	n->is_quoted = ev->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	place_node(r, n);
}

static void begin_level(struct reader *r, enum cfg_node_type type,
			const yaml_event_t *ev, const yaml_char_t *tag)
{
	struct cfg_node *n;

	if (tag)
		fail(r, &ev->start_mark,
		     "tags (!NAME) are not supported; leave the tag out");
	else if (wants_key(r))
		fail(r, &ev->start_mark,
		     "a list or mapping as a key; give a name and a colon, and "
		     "put an IPv6 address in quotes: \"[::1]:3260\"");
	else if (r->depth == DEPTH_MAX)
		fail(r, &ev->start_mark,
		     "more than 16 levels of lists and mappings; give fewer");
	if (r->failed)
		return;
	n = make_node(r, type, ev);
	if (!n)
		return;
	place_node(r, n);
	r->levels[r->depth++] = (struct level){ .node = n };
}

static void end_level(struct reader *r)
{
	struct cfg_node *n = r->levels[--r->depth].node;
	const struct cfg_item *twice = cfg_node_sort(r->arena, n);

	if (!twice)
		return;
	cfg_error(r->errors, twice->at,
		  "%.200s: given twice in one mapping; give it once",
		  twice->key);
}

static const yaml_char_t *anchor_of(const yaml_event_t *ev)
{
	switch (ev->type) {
	case YAML_SCALAR_EVENT:
		return ev->data.scalar.anchor;
	case YAML_SEQUENCE_START_EVENT:
		return ev->data.sequence_start.anchor;
	case YAML_MAPPING_START_EVENT:
		return ev->data.mapping_start.anchor;
	default:
		return NULL;
	}
}

static void take_event(struct reader *r, const yaml_event_t *ev)
{
	if (anchor_of(ev) || ev->type == YAML_ALIAS_EVENT) {
		fail(r, &ev->start_mark,
		     "anchors (&NAME) and aliases (*NAME) are not supported; "
		     "write the value out, in quotes if it begins with & or *");
		return;
	}
	switch (ev->type) {
	case YAML_SCALAR_EVENT:
		take_scalar(r, ev);
		break;
	case YAML_MAPPING_START_EVENT:
		begin_level(r, CFG_NODE_MAP, ev, ev->data.mapping_start.tag);
		break;
	case YAML_SEQUENCE_START_EVENT:
		begin_level(r, CFG_NODE_SEQ, ev, ev->data.sequence_start.tag);
		break;
	case YAML_MAPPING_END_EVENT:
	case YAML_SEQUENCE_END_EVENT:
		end_level(r);
		break;
	case YAML_DOCUMENT_START_EVENT:
		if (r->root)
			fail(r, &ev->start_mark,
			     "a second document; give one document in a file");
		break;
	case YAML_STREAM_END_EVENT:
		r->done = true;
		break;
	default:
		break;
	}
}

/* Reports bytes that are not UTF-8, or a control character. libyaml has their offset
 * only. */
static void fail_bytes(struct reader *r, const yaml_parser_t *p)
{
	struct cfg_place at = { 1, 1 };
	size_t end = MIN(p->problem_offset, r->len);

	for (size_t i = 0; i < end; i++)
		at = r->text[i] == '\n'
			     ? (struct cfg_place){ at.line + 1, 1 }
			     : (struct cfg_place){ at.line, at.column + 1 };
	cfg_error(r->errors, at,
		  "not valid YAML: %s: byte %02x; save the file "
		  "in UTF-8, without control characters",
		  p->problem,
		  end < r->len ? (unsigned)(unsigned char)r->text[end] : 0);
}

/* Returns the character at a mark, and in *next the following one; 0: there is none. */
static char char_at(const struct reader *r, const yaml_mark_t *m, char *next)
{
	size_t i = 0, line = 0, column = 0;

	for (; i < r->len && line < m->line; i++)
		line += r->text[i] == '\n';
	for (; i < r->len && column < m->column; i++) /* not UTF-8's tails */
		column += (r->text[i + 1 < r->len ? i + 1 : i] & 0xc0) != 0x80;
	*next = i + 1 < r->len ? r->text[i + 1] : '\0';
	return i < r->len ? r->text[i] : '\0';
}

/* Returns what to do about frequent mistakes, after "; ", or "". */
static const char *advice(const struct reader *r, const yaml_parser_t *p)
{
	char next, c = char_at(r, &p->problem_mark, &next);

	if (c == '\t')
		return "; indent by blanks, not by tabs";
	if (p->problem && strstr(p->problem, "expected ',' or"))
		return "; a comma is missing there, or the bracket that ends "
		       "the list or mapping";
	if (p->problem && strstr(p->problem, "did not find expected key"))
		return "; begin the lines of one mapping in the same column, "
		       "those inside of it further to the right";
	if (c == ':' && p->context && strstr(p->context, "flow node"))
		return "; put an IPv6 address in quotes: \"[::1]:3260\"";
	if (p->context && strstr(p->context, "alias"))
		return "; put a value that begins with * in quotes: \"*\"";
	if (p->context && strstr(p->context, "tag"))
		return "; put a value that begins with ! in quotes";
	if (p->context && strstr(p->context, "simple key"))
		return "; a colon is missing there";
	if (c && strchr("@`%", c))
		return "; put a value that begins with this character in "
		       "quotes";
	if (c == ':')
		return "; put a value that has a colon and a blank in quotes";
	return "";
}

/* Reports what libyaml does not understand. */
static void fail_syntax(struct reader *r, const yaml_parser_t *p)
{
	struct cfg_place at = place_of(&p->problem_mark);

	r->failed = true;
	if (p->error == YAML_MEMORY_ERROR)
		fail_memory(r);
	else if (p->error == YAML_READER_ERROR && p->problem)
		fail_bytes(r, p);
	else if (p->context)
		cfg_error(r->errors, at,
			  "not valid YAML: %s (%s that begins in line %zu)%s",
			  p->problem, p->context, p->context_mark.line + 1,
			  advice(r, p));
	else
		cfg_error(r->errors, at, "not valid YAML: %s%s",
			  p->problem ? p->problem : "unknown error",
			  advice(r, p));
}

struct cfg_node *cfg_yaml_read(struct cfg_arena *a, const char *text,
			       size_t len, struct cfg_errors *e)
{
	struct reader r = { .arena = a, .errors = e, .text = text, .len = len };
	unsigned before = e->n;
	yaml_parser_t p;
	yaml_event_t ev;

	if (!yaml_parser_initialize(&p)) {
		fail_memory(&r);
		return NULL;
	}
	yaml_parser_set_input_string(&p, (const unsigned char *)text, len);
	while (!r.done && !r.failed) {
		if (!yaml_parser_parse(&p, &ev)) {
			fail_syntax(&r, &p);
			break;
		}
		take_event(&r, &ev);
		yaml_event_delete(&ev);
	}
	yaml_parser_delete(&p);
	if (!r.failed && !r.root)
		cfg_error(e, (struct cfg_place){ 1, 1 },
			  "the file is empty; begin it with \"version: 1\"");
	return e->n == before ? r.root : NULL;
}

/* ---- from nodes to text ---- */

struct writer {
	FILE *f;
	unsigned depth;
};

/* Returns whether a scalar without quotes is read as the same text: letters,
 * digits and a few other characters, and no number with a sign or the like that
 * another reader of YAML could change. */
static bool is_plain_scalar(const char *text)
{
	static const char safe[] = "abcdefghijklmnopqrstuvwxyz"
				   "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789_./:@+-";
	size_t len = strlen(text);

	if (!len || strspn(text, safe) != len)
		return false;
	if (strchr(":@+-", text[0]) || text[len - 1] == ':')
		return false;
	if (!strcmp(text, "null") || !strcmp(text, "."))
		return false;
	/* 1:30 is a number to base 60 for some readers of YAML 1.1 */
	return !strchr(text, ':') || strspn(text, "0123456789.:_") != len;
}

static void write_scalar(const struct writer *w, const char *text)
{
	if (is_plain_scalar(text)) {
		fputs(text, w->f);
		return;
	}
	fputc('"', w->f);
	for (; *text; text++) {
		if ((unsigned char)*text < 0x20 || *text == 0x7f) {
			fprintf(w->f, "\\x%02x", (unsigned char)*text);
			continue;
		}
		if (*text == '"' || *text == '\\')
			fputc('\\', w->f);
		fputc(*text, w->f);
	}
	fputc('"', w->f);
}

static bool is_flat(const struct cfg_node *n)
{
	if (n->type != CFG_NODE_SEQ)
		return false;
	for (unsigned i = 0; i < n->n; i++)
		if (n->items[i].value->type != CFG_NODE_SCALAR)
			return false;
	return true;
}

static void write_node(struct writer *w, const struct cfg_node *n, bool inside);

static void write_flat(struct writer *w, const struct cfg_node *n)
{
	fputc('[', w->f);
	for (unsigned i = 0; i < n->n; i++) {
		fputs(i ? ", " : "", w->f);
		write_scalar(w, n->items[i].value->text);
	}
	fputc(']', w->f);
}

/* inside: the first entry follows "- " in its line. */
static void write_entries(struct writer *w, const struct cfg_node *n,
			  bool inside)
{
	for (unsigned i = 0; i < n->n; i++) {
		const struct cfg_node *v = n->items[i].value;

		if (i || !inside)
			fprintf(w->f, "%*s", (int)(2 * w->depth), "");
		if (n->type == CFG_NODE_SEQ) {
			fputs("- ", w->f);
			w->depth++;
			write_node(w, v, true);
			w->depth--;
			continue;
		}
		write_scalar(w, n->items[i].key);
		fputc(':', w->f);
		if (v->type == CFG_NODE_SCALAR || is_flat(v) || !v->n) {
			fputc(' ', w->f);
			write_node(w, v, true);
			continue;
		}
		fputc('\n', w->f);
		w->depth++;
		write_node(w, v, false);
		w->depth--;
	}
}

static void write_node(struct writer *w, const struct cfg_node *n, bool inside)
{
	if (n->type == CFG_NODE_SCALAR)
		write_scalar(w, n->text);
	else if (is_flat(n))
		write_flat(w, n);
	else if (!n->n)
		fputs("{}", w->f);
	else {
		write_entries(w, n, inside);
		return;
	}
	fputc('\n', w->f);
}

char *cfg_yaml_write(const struct cfg_node *n)
{
	char *text = NULL;
	size_t len = 0;
	struct writer w = { .f = open_memstream(&text, &len) };

	if (!w.f)
		return NULL;
	write_node(&w, n, false);
	if (!fclose(w.f))
		return text;
	free(text);
	return NULL;
}

/* ---- files ---- */

static char *read_all(int fd, size_t *len, int *err)
{
	size_t room = 65536, n = 0;
	char *text = malloc(room);
	ssize_t got = 1;

	*len = 0;
	*err = ENOMEM;
	if (!text)
		return NULL;
	while (got > 0) {
		if (n == room) {
			char *more = realloc(text, 2 * room);

			if (!more) {
				*err = ENOMEM;
				break;
			}
			text = more;
			room *= 2;
		}
		got = read(fd, text + n, room - n);
		n += got > 0 ? (size_t)got : 0;
		*err = got < 0 ? errno : 0;
		if (n > CFG_TEXT_MAX) {
			*err = EFBIG;
			break;
		}
	}
	*len = n;
	if (!*err)
		return text;
	free(text);
	return NULL;
}

static const char *why_unread(int err)
{
	switch (err) {
	case EFBIG:
		return "larger than 16 MiB; give a smaller file";
	case ENOENT:
		return "no such file; name an existing configuration file, or "
		       "write one as iserd.yaml(5) describes";
	case EACCES:
		return "permission denied; give the user of iserd the right to "
		       "read it";
	default:
		return strerror(err);
	}
}

char *cfg_text_read(const char *path, size_t *len, struct cfg_errors *e)
{
	bool is_stdin = !strcmp(path, "-");
	/* a pipe without a writer must not block */
	int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	int fd = is_stdin ? STDIN_FILENO : open(path, flags), err = errno;
	char *text;

	if (fd >= 0 && !is_stdin)
		fcntl(fd, F_SETFL, 0);
	text = fd < 0 ? NULL : read_all(fd, len, &err);

	if (!text)
		cfg_error(e, (struct cfg_place){ 0 }, "%s", why_unread(err));
	if (fd >= 0 && !is_stdin)
		close(fd);
	return text;
}
