/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * settings.h: the settings that other targets have. Each kind of object of a file
 * has a table of all its settings; what is in no table is noted as unknown, so that
 * nothing is left out in silence. What a note says about iserd comes from the rows
 * of its configuration (daemon/config/fields.h), so that it stays true when iserd gets a
 * field.
 */
#ifndef TOOLS_IMPORT_SETTINGS_H
#define TOOLS_IMPORT_SETTINGS_H

#include "tools/import/model.h"

enum import_fate {
	SETTING_TAKEN, /* an importer reads it, and notes what it leaves */
	SETTING_USUAL, /* noted unless its value means what iserd does */
	SETTING_MUTE,  /* no value of it matters to an initiator of iserd */
};

struct import_setting {
	const char *key;
	enum import_fate fate;
	/* SETTING_USUAL: the value that means what iserd does; NULL: none */
	const char *usual;
	/* the noun and field of iserd that is about the same, if its name is not
	 * that of the setting; NULL: look for that name */
	const char *noun, *field;
	/* what the administrator can do, or why there is nothing to do; NULL: what
	 * the rows of iserd say */
	const char *why;
};

#define IMPORT_TAKEN(key_)             \
 {                                     \
  .key = (key_), .fate = SETTING_TAKEN \
 }
#define IMPORT_MUTE(key_)             \
 {                                    \
  .key = (key_), .fate = SETTING_MUTE \
 }
#define IMPORT_USUAL(key_, usual_, ...)                                  \
 {                                                                       \
  .key = (key_), .fate = SETTING_USUAL, .usual = (usual_), ##__VA_ARGS__ \
 }
#define IMPORT_FIELD(noun_, field_) .noun = (noun_), .field = (field_)
#define IMPORT_TABLE(what_, rows_)                        \
 {                                                        \
  .what = (what_), .rows = (rows_), .n = ARRAY_LEN(rows_) \
 }

struct import_table {
	const char *what; /* has these settings: "a portal of LIO" */
	const struct import_setting *rows;
	size_t n;
};

/* import_setting_of returns the row of a setting, or NULL. */
const struct import_setting *import_setting_of(const struct import_table *t,
					       const char *key);
/* import_setting looks at one setting of the object `owner`, and notes it if its row
 * says so or if it has none. value: NULL if it is not one text. */
void import_setting(struct import_model *m, const struct tree *at,
		    const char *owner, const struct import_table *t,
		    const char *key, const char *value);
/* import_settings does so with each member of an object; anything else than an
 * object has none. */
void import_settings(struct import_model *m, const struct tree *object,
		     const char *owner, const struct import_table *t);

/* ---- the tables ---- */

enum lio_table {
	LIO_FILE,
	LIO_FABRIC,
	LIO_STORAGE,
	LIO_STORAGE_ATTRIBUTES,
	LIO_TARGET,
	LIO_TARGET_PARAMETERS,
	LIO_TPG,
	LIO_TPG_ATTRIBUTES,
	LIO_TPG_PARAMETERS,
	LIO_LUN,
	LIO_PORTAL,
	LIO_ACL,
	LIO_ACL_ATTRIBUTES,
	LIO_MAPPED_LUN,
	LIO_TABLES,
};
extern const struct import_table import_lio_tables[LIO_TABLES];

enum tgt_table {
	TGT_FILE,
	TGT_TARGET,
	TGT_STORE,
	TGT_TABLES,
};
extern const struct import_table import_tgt_tables[TGT_TABLES];

enum ctl_table {
	CTL_FILE,
	CTL_AUTH,
	CTL_PORTAL,
	CTL_TARGET,
	CTL_LUN,
	CTL_LUN_OPTIONS,
	CTL_TABLES,
};
extern const struct import_table import_ctl_tables[CTL_TABLES];

#endif
