/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nouns.h: what a configuration file consists of: one row per noun (target,
 * backstore, ...) and one row per field. The reader, the writer, "iserd schema"
 * and iserd.yaml(5) use the rows. Fields that are options of the command line,
 * too, have the rows of schema.h.
 */
#ifndef DAEMON_CONFIG_NOUNS_H
#define DAEMON_CONFIG_NOUNS_H

#include "daemon/config/model.h"
#include "daemon/config/schema.h"

enum cfg_noun_id {
	CFG_NOUN_FILE,
	CFG_NOUN_DAEMON,
	CFG_NOUN_BACKSTORE,
	CFG_NOUN_AUTH,
	CFG_NOUN_ACCOUNT,
	CFG_NOUN_PORTAL,
	CFG_NOUN_INITIATORS,
	CFG_NOUN_TARGET,
	CFG_NOUN_LUN,
	CFG_NOUN_MAP,
	CFG_NOUN_REDIRECT,
	CFG_NOUN_ALUA,
	CFG_NOUN_CLUSTER,
	CFG_NOUNS,
};

enum cfg_shape {
	CFG_ONE,    /* a scalar */
	CFG_MANY,   /* a list of scalars, or one scalar */
	CFG_INSIDE, /* one noun */
	CFG_NAMED,  /* nouns by name */
	CFG_LISTED, /* a list of nouns */
};

struct cfg_field {
	/* The field is this option, or suffix of a LUN, with its row in
	 * schema.c; row is empty then. */
	const char *option;
	/* of an option: the name in a file, if it is another one there; else NULL */
	const char *key;
	/* the member is one of the struct of the noun (CFG_ONE) */
	struct cfg_row row;
	enum cfg_shape shape;
	bool must; /* there is no default */
	/* Without the field every initiator is admitted, so an empty list is an
	 * error: its writer may have meant that none is. */
	bool guards;
	/* an option that a file, unlike the command line, can change while
	 * iserd serves */
	bool at_once;
	/* CFG_MANY: a struct cfg_texts; CFG_INSIDE, CFG_NAMED, CFG_LISTED: a
	 * struct of a pointer to an array and its length */
	size_t at;
	enum cfg_noun_id noun; /* CFG_INSIDE, CFG_NAMED, CFG_LISTED */
};

/* Where options are, which the rows of schema.h set: in struct options, and in the
 * struct of a noun. */
struct cfg_member {
	size_t option, noun, size;
};

#define CFG_FIELDS_MAX 32 /* of a noun */

struct cfg_noun {
	const char *name;  /* of one, in error texts: "target" */
	const char *place; /* "targets.NAME" */
	const char *help;
	size_t size; /* of its struct, which begins with a struct cfg_head */
	/* The value may be that of this field alone, without a mapping. */
	const char *brief;
	/* the members that are options; none: the noun has no options */
	const struct cfg_member *members;
	unsigned nmembers;
	const struct cfg_field *fields;
	unsigned nfields;
};

/* cfg_noun_of returns the row of a noun. */
const struct cfg_noun *cfg_noun_of(enum cfg_noun_id id);
/* cfg_noun_load copies the options of a noun, and no others, to *o. */
void cfg_noun_load(const struct cfg_noun *row, struct options *o,
		   const void *noun);
/* cfg_noun_store copies them back. */
void cfg_noun_store(const struct cfg_noun *row, void *noun,
		    const struct options *o);
/* cfg_field_row returns the row of a field, in nouns.c or in schema.c. */
const struct cfg_row *cfg_field_row(const struct cfg_field *f);
/* cfg_field_name returns the name of a field in a file. */
const char *cfg_field_name(const struct cfg_field *f);
/* cfg_noun_field returns the field of a noun, whose name has len bytes, or NULL. */
const struct cfg_field *cfg_noun_field(const struct cfg_noun *noun,
				       const char *name, size_t len);
/* cfg_value_text writes the value of a field with CFG_ONE to out, as the file
 * would have it; empty: not set. from: the struct of the noun, or the struct
 * options of an option. */
void cfg_value_text(const struct cfg_row *row, const void *from, char *out,
		    size_t size);
#define CFG_VALUE_SIZE 4200 /* bytes of the text of a value */
/* cfg_default_text writes the value of a field with CFG_ONE that is not given; empty:
 * none. */
void cfg_default_text(const struct cfg_field *f, const struct options *defaults,
		      char *out, size_t size);
/* cfg_shape_name returns the name of a shape that "iserd schema" prints. */
const char *cfg_shape_name(enum cfg_shape shape);

#endif
