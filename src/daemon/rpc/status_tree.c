/* SPDX-License-Identifier: BSD-2-Clause */
/* status_tree.c: the configuration in force with the sessions at their targets. */
#include "daemon/config/model.h"
#include "daemon/rpc/status.h"
#include "daemon/serve/portals.h"

static json_t *texts_json(const struct cfg_texts *t)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < t->n; i++)
		json_array_append_new(all, status_shown(t->v[i]));
	return all;
}

/* ---- targets ---- */

static json_t *luns_json(const struct cfg_model *m, const struct cfg_luns *luns)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < luns->n; i++) {
		const struct cfg_lun *l = &luns->v[i];
		const struct cfg_backstore *b = &m->backstores.v[l->index];

		json_array_append_new(
			all,
			json_pack("{s:i, s:s, s:b}", "lun", (int)l->lun,
				  "backstore", b->head.name, "read_only",
				  (int)(l->read_only || b->lun.read_only)));
	}
	return all;
}

static json_t *maps_json(const struct cfg_model *m, const struct cfg_target *t)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < t->maps.n; i++)
		json_array_append_new(
			all,
			json_pack("{s:i, s:o, s:o}", "map", (int)i + 1,
				  "initiators",
				  texts_json(&t->maps.v[i].initiators), "luns",
				  luns_json(m, &t->maps.v[i].luns)));
	return all;
}

/* Returns what a tree has of a session. */
static json_t *session_row(const json_t *s)
{
	static const char *const keys[] = { "initiator", "peer",      "kind",
					    "account",	 "algorithm", "age",
					    "since",	 "tsih" };
	json_t *row = json_object();

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		json_object_set(row, keys[i], json_object_get(s, keys[i]));
	return row;
}

/* Returns for each target that has sessions an array of them. */
static json_t *sessions_by_target(const json_t *sessions)
{
	json_t *all = json_object(), *s;
	size_t i;

	json_array_foreach(sessions, i, s)
	{
		const char *target =
			json_string_value(json_object_get(s, "target"));
		json_t *own = target ? json_object_get(all, target) : NULL;

		if (!target || !*target)
			continue; /* not admitted yet */
		if (!own) {
			own = json_array();
			json_object_set_new(all, target, own);
		}
		json_array_append_new(own, session_row(s));
	}
	return all;
}

static json_t *targets_json(const struct daemon *d, const json_t *sessions)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < d->model->targets.n; i++) {
		const struct cfg_target *t = &d->model->targets.v[i];
		json_t *own = json_object_get(sessions, t->name);

		json_array_append_new(
			all,
			json_pack("{s:s, s:o, s:s, s:b, s:o, s:o, s:o, s:o}",
				  "name", t->name, "alias",
				  status_shown(t->alias), "auth_group",
				  t->auth_group, "drains",
				  (int)drain_has(d, t->name), "portal_groups",
				  texts_json(&t->portal_groups), "luns",
				  luns_json(d->model, &t->luns), "maps",
				  maps_json(d->model, t), "sessions",
				  own ? json_incref(own) : json_array()));
	}
	return all;
}

/* ---- the rest ---- */

static json_t *portals_json(const struct daemon *d)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < d->portals.n; i++) {
		const struct portal *p = d->portals.all[i];

		json_array_append_new(all,
				      json_pack("{s:s, s:i, s:o}", "name",
						p->name, "tag", (int)p->tag,
						"listen", status_listeners(p)));
	}
	return all;
}

json_t *status_tree(const struct daemon *d, const json_t *sessions)
{
	json_t *by_target = sessions_by_target(sessions), *tree;
	char host[256];

	net_host_name(host, sizeof(host));
	tree = json_pack("{s:s, s:o, s:o, s:o, s:o}", "version",
			 OPENISER_VERSION, "host", status_shown(host),
			 "backstores", status_luns(d), "portal_groups",
			 portals_json(d), "targets",
			 targets_json(d, by_target));
	json_decref(by_target);
	return tree;
}
