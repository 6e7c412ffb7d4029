/* SPDX-License-Identifier: BSD-2-Clause */
/* fields.c: the rows of schema.c and nouns.c by their names. */
#include "daemon/config/fields.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "daemon/config/lun_spec.h"
#include "daemon/config/nouns.h"

/* Whether two names have the same letters and digits. */
static bool is_same_name(const char *a, const char *b)
{
	for (;;) {
		while (*a && !isalnum((unsigned char)*a))
			a++;
		while (*b && !isalnum((unsigned char)*b))
			b++;
		if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
			return false;
		if (!*a)
			return true;
		a++;
		b++;
	}
}

/* Finds a field by its name, and the noun that has it. NULL: there is none. */
static const struct cfg_field *find_field(const char *noun, const char *name,
					  const struct cfg_noun **owner)
{
	for (unsigned i = 0; i < CFG_NOUNS; i++) {
		*owner = cfg_noun_of(i);
		if (noun && strcmp(noun, (*owner)->name) != 0)
			continue;
		for (unsigned j = 0; j < (*owner)->nfields; j++) {
			const struct cfg_field *f = &(*owner)->fields[j];

			if (is_same_name(name, cfg_field_name(f)))
				return f;
		}
	}
	return NULL;
}

bool cfg_field_text(const char *noun, const char *name, char *out, size_t size)
{
	const struct cfg_noun *owner;
	const struct cfg_field *f = find_field(noun, name, &owner);

	if (f)
		snprintf(out, size, "field %s of %s (%s)", cfg_field_name(f),
			 owner->place, cfg_field_row(f)->opt.help);
	return f;
}

unsigned long cfg_field_max(const char *noun, const char *name)
{
	const struct cfg_noun *owner;
	const struct cfg_field *f = find_field(noun, name, &owner);

	return f ? (unsigned long)cfg_field_row(f)->opt.max : 0;
}

const char *cfg_store_prefix(const char *kind)
{
	const struct cfg_kind *kinds = cfg_kinds();
	size_t len = strlen(kind);

	for (unsigned i = LUN_FILE + 1; i < LUN_KINDS; i++)
		if (!strncmp(kinds[i].prefix, kind, len) &&
		    !strcmp(kinds[i].prefix + len, ":"))
			return kinds[i].prefix;
	return NULL;
}

bool cfg_is_path(const char *store)
{
	const char *operand;

	return lun_spec_kind(store, &operand) == LUN_FILE;
}

const char *cfg_store_suffix(const char *store)
{
	return lun_spec_has_suffix(store);
}
