/* SPDX-License-Identifier: BSD-2-Clause */
/* edit_use.c: what in a configuration needs a noun that is to be removed. */
#include <stdio.h>
#include <string.h>

#include "daemon/config/edit_tree.h"

struct use {
	const char *name;
	char *why;
	size_t size;
};

static bool has_text(const struct cfg_texts *list, const char *text)
{
	for (unsigned i = 0; i < list->n; i++)
		if (!strcmp(list->v[i], text))
			return true;
	return false;
}

/* Returns the LUN of a backstore, or NULL. */
static const char *lun_of(const struct cfg_luns *luns, const char *backstore)
{
	for (unsigned i = 0; i < luns->n; i++)
		if (!strcmp(luns->v[i].backstore, backstore))
			return luns->v[i].head.name;
	return NULL;
}

static bool target_uses_backstore(const struct use *u,
				  const struct cfg_target *t)
{
	const char *lun = lun_of(&t->luns, u->name);

	if (lun)
		snprintf(u->why, u->size,
			 "target %.230s has it as LUN %s; first iserctl lun "
			 "remove %.230s/%s",
			 t->head.name, lun, t->head.name, lun);
	for (unsigned i = 0; i < t->maps.n && !lun; i++) {
		lun = lun_of(&t->maps.v[i].luns, u->name);
		if (lun)
			snprintf(u->why, u->size,
				 "map %u of target %.230s has it as LUN %s; "
				 "first iserctl lun remove %.230s/%u/%s",
				 i + 1, t->head.name, lun, t->head.name, i + 1,
				 lun);
	}
	return lun;
}

static bool target_uses_portal(const struct use *u, const struct cfg_target *t)
{
	if (!has_text(&t->portal_groups, u->name))
		return false;
	snprintf(u->why, u->size,
		 "target %.230s can be reached there; first iserctl target set "
		 "%.230s portal-groups-=%.64s",
		 t->head.name, t->head.name, u->name);
	return true;
}

static bool target_uses_auth(const struct use *u, const struct cfg_target *t)
{
	if (strcmp(t->auth_group, u->name) != 0)
		return false;
	snprintf(u->why, u->size,
		 "it is that of target %.230s; first iserctl target set %.230s "
		 "auth-group=GROUP",
		 t->head.name, t->head.name);
	return true;
}

static bool target_uses_initiators(const struct use *u,
				   const struct cfg_target *t)
{
	for (unsigned i = 0; i < t->maps.n; i++) {
		if (!has_text(&t->maps.v[i].initiators, u->name))
			continue;
		snprintf(u->why, u->size,
			 "map %u of target %.230s has it; first iserctl map "
			 "set %.230s/%u initiators-=%.64s",
			 i + 1, t->head.name, t->head.name, i + 1, u->name);
		return true;
	}
	return false;
}

static bool portals_use_auth(const struct use *u, const struct cfg_model *m)
{
	for (unsigned i = 0; i < m->portals.n; i++) {
		const struct cfg_portal *p = &m->portals.v[i];

		if (strcmp(p->discovery_auth, u->name) != 0)
			continue;
		snprintf(u->why, u->size,
			 "it is the discovery-auth of portal group %.64s; "
			 "first iserctl portal set %.64s discovery-auth=GROUP",
			 p->head.name, p->head.name);
		return true;
	}
	return false;
}

bool cfg_edit_is_used(const struct cfg_model *m, enum cfg_noun_id id,
		      const char *name, char *why, size_t size)
{
	static bool (*const by_noun[CFG_NOUNS])(const struct use *,
						const struct cfg_target *) = {
		[CFG_NOUN_BACKSTORE] = target_uses_backstore,
		[CFG_NOUN_PORTAL] = target_uses_portal,
		[CFG_NOUN_AUTH] = target_uses_auth,
		[CFG_NOUN_INITIATORS] = target_uses_initiators,
	};
	const struct use u = { name, why, size };

	for (unsigned i = 0; by_noun[id] && i < m->targets.n; i++)
		if (by_noun[id](&u, &m->targets.v[i]))
			return true;
	return id == CFG_NOUN_AUTH && portals_use_auth(&u, m);
}
