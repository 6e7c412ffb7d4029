/* SPDX-License-Identifier: BSD-2-Clause */
/* edit_tree.h: inside edit*.c: where a noun is in the tree of a configuration. */
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

/* The tree of a configuration that is being changed. */
struct edit_tree {
	struct cfg_arena *arena;
	struct cfg_node *root;
	struct cfg_errors *errors;
	const struct edit_noun *noun;
	const char *name; /* of the noun; "" if it has none */
	char object[340]; /* as error texts name it: "target NAME" */
};

/* cfg_edit_tree_open fills *t with the tree of m. False: there is no memory, or no noun has the
 * word; e has the error. */
bool cfg_edit_tree_open(struct edit_tree *t, const struct cfg_model *m,
			const char *word, const char *name, struct cfg_arena *a,
			struct cfg_errors *e);
/* cfg_edit_fail reports an error of the object, in the form of printf. Returns
 * false. */
bool cfg_edit_fail(const struct edit_tree *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* cfg_edit_no_memory reports that. Returns false. */
bool cfg_edit_no_memory(const struct edit_tree *t);

/* A place in the tree: an entry of a mapping (key) or of a list (key NULL). */
struct edit_place {
	struct cfg_node *parent; /* NULL: it is not there, and not made */
	const char *key;
	unsigned index; /* of a list, from 0; parent->n: after the last */
	struct cfg_item *item; /* NULL: there is none */
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
bool cfg_edit_set_fields(struct edit_tree *t, enum cfg_noun_id id,
			 struct cfg_node *noun, const struct cfg_node *fields);

/* edit_use.c: cfg_edit_is_used returns whether another noun of m needs this one; if so,
 * why has that noun, and the command that ends the use. */
bool cfg_edit_is_used(const struct cfg_model *m, enum cfg_noun_id id,
		      const char *name, char *why, size_t size);

#endif
