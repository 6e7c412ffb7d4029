/* SPDX-License-Identifier: BSD-2-Clause */
/* edit_tree.h: inside edit*.c: where a noun is in the document of a configuration. */
#ifndef DAEMON_CONFIG_EDIT_TREE_H
#define DAEMON_CONFIG_EDIT_TREE_H

#include "daemon/config/edit.h"
#include "daemon/config/nouns.h"

/* A noun that iserctl changes. */
struct edit_noun {
	const char *word;
	enum cfg_noun_id id;
	const char *section; /* the field that has the nouns */
};

/* cfg_edit_noun_find returns the row of a word, or NULL. */
const struct edit_noun *cfg_edit_noun_find(const char *word);

/* The document of a configuration that is being changed or looked at. */
struct edit_tree {
	json_t *root;
	json_t *held; /* values for cfg_edit_hold, or NULL */
	struct cfg_errors *errors;
	const struct edit_noun *noun;
	const char *name; /* of the noun; "" if it has none */
	char object[340]; /* as error texts name it: "target NAME" */
};

/* cfg_edit_open fills *t to look at root, which it borrows. False: no noun has the word; e has
 * the error. */
bool cfg_edit_open(struct edit_tree *t, json_t *root, const char *word,
		   const char *name, struct cfg_errors *e);
/* cfg_edit_hold keeps a new value, which it returns, until the end of the change. NULL:
 * no memory, which is reported, or v is NULL. */
json_t *cfg_edit_hold(struct edit_tree *t, json_t *v);
/* cfg_edit_put sets a member of a mapping, or (key NULL) adds v to a list; v stays the
 * caller's. False: no memory, which is reported. */
bool cfg_edit_put(struct edit_tree *t, json_t *to, const char *key, json_t *v);
/* cfg_edit_fail reports an error of the object, in the form of printf. Returns
 * false. */
bool cfg_edit_fail(const struct edit_tree *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* A place in the document: an entry of a mapping (key) or of a list (key NULL). */
struct edit_place {
	json_t *parent; /* NULL: it is not there, and not made */
	const char *key;
	size_t index;  /* of a list, from 0; after the last: a new one */
	json_t *value; /* NULL: there is none */
};

/* cfg_edit_find finds the noun. make: mappings and lists that are missing around it
 * are added. False: its name is not valid, or what it is in is not there; there is
 * an error. */
bool cfg_edit_find(struct edit_tree *t, bool make, struct edit_place *p);
/* cfg_edit_must_find does the same, and reports a noun that is not there, with the
 * nearest name. */
bool cfg_edit_must_find(struct edit_tree *t, struct edit_place *p);

/* edit_fields.c: cfg_edit_set_fields changes the fields of noun, a mapping, as
 * cfg_edit.fields says. id: of the noun. False: there is an error. */
bool cfg_edit_set_fields(struct edit_tree *t, enum cfg_noun_id id, json_t *noun,
			 json_t *fields);

/* edit_use.c: cfg_edit_is_used returns whether another noun of m needs this one; if so,
 * why has that noun, and the command that ends the use. */
bool cfg_edit_is_used(const struct cfg_model *m, enum cfg_noun_id id,
		      const char *name, char *why, size_t size);

#endif
