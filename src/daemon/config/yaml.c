/* SPDX-License-Identifier: BSD-2-Clause */
/* yaml.c: documents from and to YAML, by the events of libyaml. */
#include "daemon/config/yaml.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
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
	json_t *value;
	char *key; /* of a mapping: waits for its value */
	struct cfg_place key_at;
};

struct reader {
	struct cfg_places *places;
	struct cfg_errors *errors;
	const char *text;
	size_t len;
	json_t *root;
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

/* ---- from events to values ---- */

/* Puts a complete or beginning value into the level above; v NULL: no memory. */
static void place_value(struct reader *r, json_t *v, const yaml_event_t *ev)
{
	struct level *l = r->depth ? &r->levels[r->depth - 1] : NULL;
	struct cfg_place at = place_of(&ev->start_mark);
	const struct cfg_spot s = { v, l && l->key ? l->key_at : at, at };
	bool good = v && cfg_places_add(r->places, &s);

	if (++r->nodes > NODES_MAX)
		fail(r, &ev->start_mark,
		     "more than 1000000 values; give fewer");
	if (!l)
		r->root = v;
	else if (!l->key)
		good &= !json_array_append_new(l->value, v);
	else
		good &= !json_object_set_new_nocheck(l->value, l->key, v);
	if (!good)
		fail_memory(r);
	if (l) {
		free(l->key);
		l->key = NULL;
	}
}

static bool wants_key(const struct reader *r)
{
	const struct level *l = r->depth ? &r->levels[r->depth - 1] : NULL;

	return l && json_is_object(l->value) && !l->key;
}

static void take_key(struct reader *r, const char *text, const yaml_event_t *ev)
{
	struct level *l = &r->levels[r->depth - 1];

	l->key_at = place_of(&ev->start_mark);
	if (!strcmp(text, "<<"))
		fail(r, &ev->start_mark,
		     "<<: merge keys are not supported; write the fields out");
	if (json_object_get(l->value, text))
		cfg_error(r->errors, l->key_at,
			  "%.200s: given twice in one mapping; give it once",
			  text);
	l->key = strdup(text);
	if (!l->key)
		fail_memory(r);
}

/* Returns whether a scalar may be in a file; if not, r has failed. */
static bool check_scalar(struct reader *r, const yaml_event_t *ev)
{
	const char *text = (const char *)ev->data.scalar.value;
	size_t len = ev->data.scalar.length;

	if (ev->data.scalar.tag)
		fail(r, &ev->start_mark,
		     "tags (!NAME) are not supported; leave the tag out");
	else if (len > SCALAR_MAX)
		fail(r, &ev->start_mark,
		     "a value of more than 4096 bytes; give a shorter one");
	else if (!text_is_plain(text, len))
		fail(r, &ev->start_mark,
		     "a value with a line break or another control character; "
		     "remove the character");
	return !r->failed;
}

static void take_scalar(struct reader *r, const yaml_event_t *ev)
{
	const char *text = (const char *)ev->data.scalar.value;
	bool is_plain = ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;

	if (!check_scalar(r, ev))
		return;
	if (wants_key(r))
		take_key(r, text, ev);
	else if (is_plain &&
		 (!*text || !strcmp(text, "~") || !strcmp(text, "null")))
		place_value(r, CFG_DOC_NULL(), ev);
	else
		place_value(r, json_string_nocheck(text), ev);
}

static void begin_level(struct reader *r, bool is_map, const yaml_event_t *ev,
			const yaml_char_t *tag)
{
	json_t *v;

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
	v = is_map ? json_object() : json_array();
	place_value(r, v, ev);
	if (v && !r->failed)
		r->levels[r->depth++] = (struct level){ .value = v };
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
		begin_level(r, true, ev, ev->data.mapping_start.tag);
		break;
	case YAML_SEQUENCE_START_EVENT:
		begin_level(r, false, ev, ev->data.sequence_start.tag);
		break;
	case YAML_MAPPING_END_EVENT:
	case YAML_SEQUENCE_END_EVENT:
		r->depth--;
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

json_t *cfg_yaml_read(struct cfg_places *places, const char *text, size_t len,
		      struct cfg_errors *e)
{
	struct reader r = {
		.places = places, .errors = e, .text = text, .len = len
	};
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
	while (r.depth)
		free(r.levels[--r.depth].key);
	cfg_places_sort(places);
	if (e->n == before)
		return r.root;
	json_decref(r.root);
	return NULL;
}

/* ---- from values to text ---- */

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

/* Returns whether the entries of a value are lines of their own. */
static bool is_long_value(const json_t *v)
{
	for (size_t i = 0; i < json_array_size(v); i++)
		if (!json_is_string(json_array_get(v, i)))
			return true;
	return json_object_size(v);
}

static void write_value(struct writer *w, json_t *v, bool inside);

static void write_short(struct writer *w, const json_t *v)
{
	size_t n = json_array_size(v);

	if (json_is_string(v)) {
		write_scalar(w, json_string_value(v));
	} else if (json_is_object(v)) {
		fputs("{}", w->f);
	} else {
		fputc('[', w->f);
		for (size_t i = 0; i < n; i++) {
			fputs(i ? ", " : "", w->f);
			write_scalar(w,
				     json_string_value(json_array_get(v, i)));
		}
		fputc(']', w->f);
	}
	fputc('\n', w->f);
}

/* Writes an entry of a mapping, or (key NULL) of a list. */
static void write_entry(struct writer *w, const char *key, json_t *v,
			bool inside)
{
	bool is_long = is_long_value(v);

	if (!inside)
		fprintf(w->f, "%*s", (int)(2 * w->depth), "");
	if (key)
		write_scalar(w, key);
	fputs(!key ? "- " : is_long ? ":\n" : ": ", w->f);
	w->depth++;
	write_value(w, v, !key || !is_long);
	w->depth--;
}

/* inside: the first entry follows "- " in its line. */
static void write_value(struct writer *w, json_t *v, bool inside)
{
	const char *key;
	json_t *one;
	size_t i;

	if (!is_long_value(v)) {
		write_short(w, v);
		return;
	}
	json_object_foreach(v, key, one)
	{
		write_entry(w, key, one, inside);
		inside = false;
	}
	json_array_foreach(v, i, one) write_entry(w, NULL, one, inside && !i);
}

char *cfg_yaml_write(json_t *doc)
{
	char *text = NULL;
	size_t len = 0;
	struct writer w = { .f = open_memstream(&text, &len) };

	if (!w.f)
		return NULL;
	write_value(&w, doc, false);
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
