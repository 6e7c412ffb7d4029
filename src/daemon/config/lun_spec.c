/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lun_spec.c: takes the text of a LUN apart by the rows of schema.c. The value
 * of a suffix ends where a suffix of a later place begins, or one that may be
 * anywhere, so that the file of the last suffix may have almost any name.
 */
#include "daemon/config/lun_spec.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "daemon/config/schema.h"
#include "daemon/log/say.h"

/* A suffix that was found in a text. */
struct found {
	const struct cfg_suffix *row;
	const char *at;	   /* its comma */
	const char *value; /* after its "=" */
};

/* Finds the first suffix in text that may be anywhere, or whose place is `place` or a
 * later one. False: there is none. */
static bool find_suffix(const char *text, unsigned place, struct found *f)
{
	const struct cfg_suffix *rows;
	size_t n;

	*f = (struct found){ .row = NULL };
	rows = cfg_suffixes(&n);
	for (size_t i = 0; i < n; i++) {
		const char *at;
		char word[32];
		int len = snprintf(word, sizeof(word),
				   ",%s=", rows[i].row.opt.name);

		at = rows[i].place && rows[i].place < place
			     ? NULL
			     : strstr(text, word);
		if (at && (!f->row || at < f->at))
			*f = (struct found){ &rows[i], at, at + len };
	}
	return f->row;
}

/* Stores the value of a suffix. False after a message. */
static bool take_suffix(struct lun_spec *s, const struct found *f)
{
	const struct cfg_row *row = &f->row->row;
	const struct opt_row *opt = &row->opt;
	const char *why = NULL;
	char error[OPT_WHY];

	if (!*f->value)
		why = row->type == CFG_PATH ? "no file is given; give a path"
					    : "no value is given; give one";
	else if (*(const char **)((char *)s + opt->at))
		why = "given twice; give it once";
	else if (!(f->row->kinds & 1u << s->kind))
		why = f->row->refusal;
	else if (opt_set(opt, s, opt->name, f->value, error))
		why = error;
	if (why)
		say("%s,%s=%s: %s", s->store, opt->name, f->value, why);
	return !why;
}

enum lun_kind lun_spec_kind(const char *store, const char **operand)
{
	const struct cfg_kind *kinds = cfg_kinds();

	*operand = store;
	for (unsigned i = LUN_FILE + 1; i < LUN_KINDS; i++) {
		size_t len = strlen(kinds[i].prefix);

		if (strncmp(store, kinds[i].prefix, len) != 0)
			continue;
		*operand = store + len;
		return (enum lun_kind)i;
	}
	return LUN_FILE;
}

const char *lun_spec_has_suffix(const char *text)
{
	struct found f;

	return find_suffix(text, 0, &f) ? f.row->row.opt.name : NULL;
}

bool lun_spec_parse(struct lun_spec *s, const char *text)
{
	struct found f, next;
	size_t len = strlen(text), store;
	unsigned place = 0;

	*s = (struct lun_spec){ .store = s->text };
	snprintf(s->text, sizeof(s->text), "%s", text);
	store = find_suffix(s->text, 0, &f) ? (size_t)(f.at - s->text) : len;
	if (len >= sizeof(s->text) || store >= PATH_MAX) {
		say("%s: too long; give a shorter path", text);
		return false;
	}
	s->text[store] = '\0';
	s->kind = lun_spec_kind(s->store, &s->operand);
	for (; f.row; f = next) {
		place = MAX(place, f.row->place + 1);
		if (find_suffix(f.value, place, &next))
			s->text[next.at - s->text] = '\0';
		if (!take_suffix(s, &f))
			return false;
	}
	return true;
}

/* Copies text to *at and moves *at to the end of the copy. */
static const char *take_copy(char **at, const char *text)
{
	char *copy = *at;

	if (!text)
		return NULL;
	*at = stpcpy(copy, text) + 1;
	return copy;
}

struct lun_spec *lun_spec_new(const char *store, const char *pi,
			      const char *key, const char *new_key)
{
	const char *const all[] = { store, pi, key, new_key };
	size_t len = offsetof(struct lun_spec, text);
	struct lun_spec *s;
	char *at;

	for (unsigned i = 0; i < ARRAY_LEN(all); i++)
		len += all[i] ? strlen(all[i]) + 1 : 0;
	s = calloc(1, len);
	if (!s)
		return NULL;
	at = (char *)s + offsetof(struct lun_spec, text);
	s->store = take_copy(&at, store);
	s->pi = take_copy(&at, pi);
	s->key = take_copy(&at, key);
	s->new_key = take_copy(&at, new_key);
	s->kind = lun_spec_kind(s->store, &s->operand);
	return s;
}

bool lun_spec_is_empty_drive(const struct lun_spec *s)
{
	return s->kind == LUN_CD && !*s->operand && !s->key && !s->new_key;
}
