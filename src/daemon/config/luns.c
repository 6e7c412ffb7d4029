/* SPDX-License-Identifier: BSD-2-Clause */
/* luns.c: the LUNs of a configuration. */
#include "daemon/config/luns.h"

#include <string.h>

#include "daemon/config/edit.h"

static void each(const struct cfg_model *m, const struct cfg_luns *luns,
		 struct cfg_reach *r,
		 void (*fn)(void *arg, const struct cfg_reach *r), void *arg)
{
	for (unsigned i = 0; i < luns->n; i++) {
		const struct cfg_lun *l = &luns->v[i];

		r->backstore = m->backstores.v[l->index].head.name;
		r->lun = l->lun;
		r->read_only = l->read_only;
		fn(arg, r);
	}
}

void cfg_luns_each(const struct cfg_model *m,
		   void (*fn)(void *arg, const struct cfg_reach *r), void *arg)
{
	for (unsigned i = 0; i < m->targets.n; i++) {
		const struct cfg_target *t = &m->targets.v[i];
		struct cfg_reach r = { .target = t->name };

		each(m, &t->luns, &r, fn, arg);
		for (r.map = 1; r.map <= t->maps.n; r.map++)
			each(m, &t->maps.v[r.map - 1].luns, &r, fn, arg);
	}
}

/* ---- a backstore by a name ---- */

static const char *of_lun(const struct cfg_model *m, const char *text,
			  struct cfg_errors *e)
{
	json_t *fields = cfg_edit_show(m, "lun", text, e);
	const char *name =
		json_string_value(json_object_get(fields, "backstore"));
	const struct cfg_backstore *b =
		name ? cfg_backstore_find(m, name) : NULL;

	json_decref(fields);
	return b ? b->head.name : NULL;
}

const char *cfg_lun_backstore(const struct cfg_model *m, const char *text,
			      struct cfg_errors *e)
{
	const struct cfg_backstore *b = cfg_backstore_find(m, text);

	if (b)
		return b->head.name;
	if (strchr(text, '/'))
		return of_lun(m, text, e);
	/* reports the nearest name */
	json_decref(cfg_edit_show(m, "backstore", text, e));
	return NULL;
}
