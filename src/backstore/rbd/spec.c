/* SPDX-License-Identifier: BSD-2-Clause */
/* spec.c: takes the text of an image apart. */
#include "backstore/rbd/spec.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

static const char *const words[] = { ",conf=", ",id=", ",keyring=" };

/* Finds the first option in text. Returns its comma, or NULL. */
static char *find_option(char *text, unsigned *which)
{
	char *first = NULL;

	for (unsigned i = 0; i < ARRAY_LEN(words); i++) {
		char *at = strstr(text, words[i]);

		if (at && (!first || at < first)) {
			first = at;
			*which = i;
		}
	}
	return first;
}

/* Takes the options off text. A value ends where the next option begins. */
static const char *take_options(struct bsrbd_spec *s, char *text)
{
	const char **const values[] = { &s->conf, &s->id, &s->keyring };
	unsigned which = 0;
	char *at = find_option(text, &which);

	while (at) {
		const char **value = values[which];
		char *begin = at + strlen(words[which]);

		*at = '\0';
		at = find_option(begin, &which);
		if (*value)
			return "an option is given twice; give it once";
		*value = begin;
		if (at == begin || !*begin)
			return "an option has no value; give one or leave the "
			       "option out";
	}
	return NULL;
}

static const char *take_image(struct bsrbd_spec *s, char *text)
{
	char *slash = strchr(text, '/'), *last = strrchr(text, '/'), *at;

	if (!slash)
		return "not POOL/IMAGE or POOL/NAMESPACE/IMAGE; give the pool, "
		       "too";
	s->pool = text;
	*slash = '\0';
	if (last != slash) {
		s->space = slash + 1;
		*last = '\0';
		if (strchr(s->space, '/'))
			return "more than two slashes; give "
			       "POOL/NAMESPACE/IMAGE";
		if (!*s->space)
			return "the namespace is empty; leave out one slash";
	}
	s->image = last + 1;
	at = strchr(last + 1, '@');
	if (at) {
		*at = '\0';
		s->snap = at + 1;
		if (!*s->snap)
			return "the snapshot has no name; give one after @";
	}
	if (!*s->pool || !*s->image)
		return "the pool or the image has no name; give POOL/IMAGE";
	return NULL;
}

const char *bsrbd_spec_parse(struct bsrbd_spec *s, const char *text)
{
	const char *why;

	*s = (struct bsrbd_spec){ .pool = NULL };
	if (strlen(text) >= sizeof(s->text))
		return "too long; give shorter names";
	snprintf(s->text, sizeof(s->text), "%s", text);
	why = take_options(s, s->text);
	return why ? why : take_image(s, s->text);
}
