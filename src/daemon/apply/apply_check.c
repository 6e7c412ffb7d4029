/* SPDX-License-Identifier: BSD-2-Clause */
/* apply_check.c: whether a change of the configuration can come into force while iserd
 * serves. */
#include <stdlib.h>
#include <string.h>

#include "daemon/apply/apply.h"
#include "daemon/apply/apply_groups.h"
#include "daemon/apply/look.h"
#include "daemon/apply/look_identity.h"
#include "daemon/apply/names.h"
#include "daemon/apply/secrets.h"
#include "daemon/apply/units.h"
#include "daemon/daemon.h"
#include "daemon/luns/module.h"

static void check_change(void *arg, const struct cfg_change *x)
{
	struct cfg_errors *e = arg;

	if (x->needs_restart)
		cfg_error(e, (struct cfg_place){ 0 },
			  "%.200s: %.100s%s%.100s: needs a restart of iserd; "
			  "keep the value, or restart",
			  x->path, x->from ? x->from : "(not given)", " -> ",
			  x->to ? x->to : "(not given)");
}

/* Returns whether the unit can get the fields of b while it is in use. */
static bool can_change(const struct unit *u, const struct cfg_backstore *old,
		       const struct cfg_backstore *b)
{
	if (b->lun.read_only != old->lun.read_only &&
	    (u->spec->kind == LUN_SCSI ||
	     (u->lacks_write && !b->lun.read_only)))
		return false;
	return cfg_backstore_compare(old, b) == CFG_DIFFERS_LIVE;
}

/* A changed backstore on the same file is refused: the file is locked. */
static bool is_locked(const struct unit *u, const struct cfg_backstore *old,
		      const struct cfg_backstore *b)
{
	return old && !strcmp(old->store, b->store) &&
	       (u->spec->kind == LUN_FILE || u->spec->kind == LUN_SCSI ||
		lun_is_module(u->spec->kind));
}

void apply_check_units(const struct daemon *d, const struct cfg_model *m,
		       struct unit **units, bool *changed, struct cfg_errors *e)
{
	for (unsigned i = 0; i < m->backstores.n; i++) {
		const struct cfg_backstore *b = &m->backstores.v[i], *old;

		if (!units[i])
			continue;
		old = cfg_backstore_find(d->model, b->head.name);
		if (old && cfg_backstore_compare(old, b) == CFG_SAME)
			continue;
		if (old && can_change(units[i], old, b)) {
			if (changed)
				changed[i] = true;
			continue;
		}
		if (is_locked(units[i], old, b))
			cfg_error(e, cfg_head_at(&b->head, NULL),
				  "backstore %.80s: %.200s: in use with other "
				  "fields; restart iserd, or remove the "
				  "backstore by one change and add it by "
				  "another",
				  b->head.name, b->store);
		units[i] = NULL;
	}
}

/* Looks whether what m names and the configuration in force does not is there. */
static void look(const struct daemon *d, const struct cfg_model *m,
		 struct unit *const *units, struct cfg_errors *e,
		 struct cfg_errors *warnings)
{
	bool *is_new = calloc(m->backstores.n + 1, sizeof(*is_new));

	for (unsigned i = 0; is_new && i < m->backstores.n; i++)
		is_new[i] = !units[i];
	if (is_new) {
		cfg_look_change(d->model, m, is_new, e);
		identity_look(m, d->stores.identities, is_new, e, warnings);
	}
	free(is_new);
}

bool apply_check(const struct daemon *d, const struct cfg_model *m,
		 struct cfg_errors *e, struct cfg_errors *warnings)
{
	struct unit **units = units_match(d, m);
	unsigned before = e->n;

	if (units && cfg_diff(d->model, m, check_change, e))
		apply_check_units(d, m, units, NULL, e);
	else
		cfg_error(e, (struct cfg_place){ 0 }, "out of memory");
	if (warnings && e->n == before)
		look(d, m, units, e, warnings);
	if (warnings && e->n == before)
		unit_names_check(m, units, e);
	free(units);
	return e->n == before && apply_groups_check(d, m, e) &&
	       chap_secrets_check(m, e, true);
}
