/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * edit.h: one change of a configuration in force: a noun is added, changed or
 * removed, by the fields of nouns.h. The result is a new model with all checks of
 * a file, so a change can say exactly what a file can say. Also lists the nouns of
 * a configuration and shows one of them.
 *
 * The words of the nouns and the forms of their names are those of iserctl(1):
 * "target NAME", "lun TARGET/N", "lun TARGET/MAP/N" (MAP from 1) and so on.
 */
#ifndef DAEMON_CONFIG_EDIT_H
#define DAEMON_CONFIG_EDIT_H

#include "daemon/config/model.h"

enum cfg_verb {
	CFG_ADD,
	CFG_SET,
	CFG_REMOVE,
	CFG_REPLACE, /* "lun" only: another backstore */
};

struct cfg_edit {
	const char *noun; /* a word that cfg_edit_noun knows */
	enum cfg_verb verb;
	const char *name; /* NULL: the noun has none ("daemon") */
	/*
	 * A mapping of fields to values, as cfg_doc_merge makes them, or NULL. A
	 * text is read as iserctl(1) describes it: an empty one removes the
	 * field, commas part the entries of a list, and nouns are in YAML.
	 * "FIELD+" adds entries, "FIELD-" removes them.
	 */
	json_t *fields;
};

/* cfg_edit_noun returns the name in nouns.h of the noun with this word, such as
 * "portal group" for "portal", or NULL. */
const char *cfg_edit_noun(const char *word);
/* cfg_edit returns the model m with this change, which the caller frees by
 * cfg_model_free; m is unchanged. NULL: e has at least one error, without a
 * place. */
struct cfg_model *cfg_edit(const struct cfg_model *m, const struct cfg_edit *x,
			   struct cfg_errors *e);

/* cfg_edit_list returns a list with a mapping for each noun of this word: "name",
 * and its fields that do not have their default, as texts; nouns inside are
 * counted. The caller releases it. NULL: no memory. */
json_t *cfg_edit_list(const struct cfg_model *m, const char *word);
/* cfg_edit_show returns a mapping with all fields of a noun, which the caller releases; a
 * field that is not set and has no default is null. NULL: e has at least one error. */
json_t *cfg_edit_show(const struct cfg_model *m, const char *word,
		      const char *name, struct cfg_errors *e);

#endif
