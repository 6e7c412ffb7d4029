/* SPDX-License-Identifier: BSD-2-Clause */
/* settings.c: looks at the settings of other targets by their tables. */
#include "tools/import/settings.h"

#include <string.h>

#include "daemon/config/fields.h"

const struct import_setting *import_setting_of(const struct import_table *t,
					       const char *key)
{
	for (size_t i = 0; i < t->n; i++)
		if (!strcmp(t->rows[i].key, key))
			return &t->rows[i];
	return NULL;
}

/* What the administrator can do about a setting that is not carried over. */
static const char *advice(struct import_model *m,
			  const struct import_setting *row)
{
	char text[400];

	if (cfg_field_text(row->noun, row->field ? row->field : row->key, text,
			   sizeof(text)))
		return pool_format(&m->pool,
				   "iserd has the %s; set it there if "
				   "initiators depend on it",
				   text);
	return row->why ? row->why
			: "iserd has no such field; nothing to do unless an "
			  "initiator depends on it";
}

void import_setting(struct import_model *m, const struct tree *at,
		    const char *owner, const struct import_table *t,
		    const char *key, const char *value)
{
	const struct import_setting *row = import_setting_of(t, key);

	/* the value of an unknown setting may be a secret */
	if (!row)
		import_note(m, at,
			    "%s: %s: not carried over: not a setting of %s "
			    "that this program knows; see its manual",
			    owner, key, t->what);
	else if (row->fate == SETTING_USUAL &&
		 !(row->usual && value && !strcmp(row->usual, value)))
		import_note(m, at, "%s: %s%s%s: not carried over: %s", owner,
			    key, value ? " " : "", value ? value : "",
			    advice(m, row));
}

void import_settings(struct import_model *m, const struct tree *object,
		     const char *owner, const struct import_table *t)
{
	if (!object || object->kind != TREE_OBJECT)
		return;
	for (const struct tree *c = object->first; c; c = c->next)
		if (c->key && (c->kind != TREE_SCALAR || c->text))
			import_setting(m, c, owner, t, c->key,
				       c->kind == TREE_SCALAR ? c->text : NULL);
}
