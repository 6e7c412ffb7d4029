/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lio.c: what saveconfig.json of targetcli means to LIO, as a configuration of
 * iserd. A target portal group (TPG) of LIO has LUNs, portals and access control
 * lists (ACLs) of its own; a target of iserd has one map of LUNs that all its
 * portal groups serve, and maps for single initiators.
 */
#include "tools/import/lio.h"

/* The scope of the targets, by their names. */
static const char by_name;

bool lio_is_on(const char *text)
{
	return text && (!strcmp(text, "1") || !strcmp(text, "true"));
}

bool lio_flag(struct lio *l, const struct tree *t, const char *key,
	      bool otherwise, bool narrow)
{
	const struct tree *c = tree_find(t, key);
	const char *text = c && c->kind == TREE_SCALAR ? c->text : NULL;

	if (!c || (c->kind == TREE_SCALAR && !text))
		return otherwise;
	if (lio_is_on(text))
		return true;
	if (text && (!strcmp(text, "0") || !strcmp(text, "false")))
		return false;
	import_note(l->m, c,
		    "%s: neither true nor false; %s is used, which permits "
		    "less",
		    key, narrow ? "true" : "false");
	return narrow;
}

const char *lio_text_or(const struct tree *t, const char *key,
			const char *otherwise)
{
	const char *text = tree_text(t, key);

	return text ? text : otherwise;
}

const struct tree *lio_children(const struct tree *t, const char *key)
{
	const struct tree *c = tree_find(t, key);

	return c && c->kind == TREE_ARRAY ? c->first : NULL;
}

bool lio_index(struct lio *l, const struct tree *t, const char *key,
	       unsigned long *v)
{
	const char *text = tree_text(t, key);

	if (text && import_number(text, 65535, v))
		return true;
	import_note(l->m, t, "%s: left out: no number; repair the file", key);
	return false;
}

static void take_luns(struct lio *l, struct import_target *t,
		      const struct tree *tpg, bool read_only)
{
	for (const struct tree *c = lio_children(tpg, "luns"); c; c = c->next) {
		unsigned long number;
		struct import_unit *u;
		struct import_lun *lun;
		bool is_fixed;

		import_settings(l->m, c, t->name, &import_lio_tables[LIO_LUN]);

		if (!lio_index(l, c, "index", &number))
			continue;
		u = lio_unit_of(l, c, number, &is_fixed);
		lun = u ? import_lun_add(l->m, &t->luns, c, number, u,
					 read_only || is_fixed)
			: NULL;
		if (lun)
			lun->is_fixed = is_fixed;
	}
}

/* ---- targets ---- */

/* Whether two parts of the file have the same LUNs and access rules. */
static bool is_same(const struct tree *a, const struct tree *b)
{
	static const char *const ignored[] = { "alias", "alua_tg_pt_gp_name" };
	const struct tree *x, *y;

	if (!a || !b || a->kind != b->kind)
		return a == b;
	if (a->kind == TREE_SCALAR)
		return a->text && b->text ? !strcmp(a->text, b->text)
					  : a->text == b->text;
	for (x = a->first, y = b->first; x && y; x = x->next, y = y->next) {
		bool skip = false;

		if (x->key && strcmp(x->key, y->key) != 0)
			return false;
		for (size_t i = 0; x->key && i < ARRAY_LEN(ignored); i++)
			skip |= !strcmp(x->key, ignored[i]);
		if (!skip && !is_same(x, y))
			return false;
	}
	return !x && !y;
}

/* Whether the same initiators see the same LUNs through both TPGs. */
static bool is_same_tpg(struct lio *l, const struct tree *a,
			struct lio_access of_a, const struct tree *b)
{
	static const char *const parts[] = {
		"luns",		 "node_acls",	       "chap_userid",
		"chap_password", "chap_mutual_userid", "chap_mutual_password",
	};
	struct lio_access of_b = lio_access_of(l, b);

	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (!is_same(tree_find(a, parts[i]), tree_find(b, parts[i])))
			return false;
	return of_a.demo == of_b.demo && of_a.chap == of_b.chap &&
	       of_a.demo_read_only == of_b.demo_read_only &&
	       of_a.mapped_read_only == of_b.mapped_read_only;
}

/* Whether a key of negotiation offers digests only: "CRC32C". */
static bool demands_digest(const struct tree *parameters, const char *key)
{
	const char *text = tree_text(parameters, key);

	return text && strcasestr(text, "CRC32C") && !strcasestr(text, "None");
}

/* What initiators can negotiate: the least of all TPGs for connections, the most
 * for error recovery, which one field of iserd has for all targets. */
static void take_parameters(struct lio *l, struct import_target *t,
			    const struct tree *tpg)
{
	const struct tree *p = tree_find(tpg, "parameters");
	const char *alias = tree_text(p, "TargetAlias");

	import_settings(l->m, p, t->name,
			&import_lio_tables[LIO_TPG_PARAMETERS]);
	if (!t->alias && alias && *alias && strcmp(alias, "LIO Target") != 0)
		import_alias(l->m, t, tree_find(p, "TargetAlias"), alias);
	import_max_connections(l->m, t, tree_find(p, "MaxConnections"));
	import_recovery_level(l->m, t, tree_find(p, "ErrorRecoveryLevel"));
	if (demands_digest(p, "HeaderDigest") ||
	    demands_digest(p, "DataDigest"))
		import_demand_digests(l->m, t, p);
}

/* The first TPG gives the LUNs and the access rules. */
static void take_first_tpg(struct lio *l, struct import_target *t,
			   const struct tree *tpg, struct lio_access access)
{
	bool read_only = access.demo && access.demo_read_only;

	take_luns(l, t, tpg, read_only);
	if (read_only && t->luns.n)
		import_note(l->m, tpg,
			    "target %s: LUNs are read-only for initiators "
			    "without an ACL, as demo_mode_write_protect says; "
			    "remove read-only if that is not meant",
			    t->name);
	lio_take_access(l, t, tpg, access);
}

/* Whether the tag of the TPG is that of an earlier one of this target: rtslib
 * then applies both to one TPG. */
static bool is_second(struct lio *l, const struct tree *target,
		      const struct tree *tpg)
{
	const char *tag = tree_text(tpg, "tag");
	unsigned long number;

	if (!tag)
		return false;
	if (import_number(tag, 65535, &number))
		tag = pool_format(&l->m->pool, "%lu", number);
	if (pool_get(&l->m->pool, target, tag))
		return true;
	pool_put(&l->m->pool, target, tag, l);
	return false;
}

/* Takes what the TPG adds to the target. */
static void take_tpg(struct lio *l, struct import_target *t,
		     const struct tree *tpg, const struct tree **first,
		     struct lio_access *access)
{
	const char *tag = lio_text_or(tpg, "tag", "?");

	import_settings(l->m, tpg, t->name, &import_lio_tables[LIO_TPG]);
	if (!lio_flag(l, tpg, "enable", true, false)) {
		import_note(l->m, tpg,
			    "target %s: TPG %s: left out: it is not enabled; "
			    "nothing to do",
			    t->name, tag);
		return;
	}
	if (!*first) {
		*first = tpg;
		*access = lio_access_of(l, tpg);
		take_first_tpg(l, t, tpg, *access);
	} else if (!is_same_tpg(l, *first, *access, tpg)) {
		import_note(l->m, tpg,
			    "target %s: TPG %s: left out: its LUNs or access "
			    "rules differ from those of TPG %s, and iserd has "
			    "one set for all portals; make it a target of its "
			    "own",
			    t->name, tag, lio_text_or(*first, "tag", "?"));
		return;
	}
	import_settings(l->m, tree_find(tpg, "attributes"), t->name,
			&import_lio_tables[LIO_TPG_ATTRIBUTES]);
	take_parameters(l, t, tpg);
	lio_take_portals(l, t, tpg);
}

static void take_tpgs(struct lio *l, struct import_target *t,
		      const struct tree *target)
{
	const struct tree *first = NULL;
	struct lio_access access;
	bool is_open = true;

	for (const struct tree *c = lio_children(target, "tpgs"); c;
	     c = c->next) {
		if (!is_second(l, target, c)) {
			take_tpg(l, t, c, &first, &access);
			continue;
		}
		import_note(l->m, c,
			    "target %s: there are two TPGs %s; the target "
			    "admits no initiator: repair the file",
			    t->name, tree_text(c, "tag"));
		is_open = false;
	}
	if (!first || !is_open)
		t->auth = &import_none;
}

/* Returns the new target; NULL after a note. Two targets of one name are one in
 * LIO, and which rules count is open. */
static struct import_target *
new_target(struct lio *l, const struct tree *target, const char *name)
{
	struct import_target *t = pool_get(&l->m->pool, &by_name, name);

	if (t) {
		import_note(l->m, target,
			    "target %s: there are two of them; the target "
			    "admits no initiator: repair the file",
			    name);
		t->auth = &import_none;
		return NULL;
	}
	t = import_target_new(l->m, target, name);
	if (t)
		pool_put(&l->m->pool, &by_name, name, t);
	return t;
}

static void take_target(struct lio *l, const struct tree *target)
{
	const char *fabric = lio_text_or(target, "fabric", "iscsi");
	const char *name = lio_text_or(target, "wwn", "?");
	struct import_target *t;

	if (strcmp(fabric, "iscsi") != 0) {
		import_note(l->m, target,
			    "target %s: left out: iserd does not serve the "
			    "fabric %s; keep LIO for it",
			    name, fabric);
		return;
	}
	t = new_target(l, target, name);
	if (!t)
		return;
	import_settings(l->m, target, name, &import_lio_tables[LIO_TARGET]);
	import_settings(l->m, tree_find(target, "parameters"), name,
			&import_lio_tables[LIO_TARGET_PARAMETERS]);
	take_tpgs(l, t, target);
	if (!t->luns.n)
		import_note(l->m, target,
			    "target %s: has no LUN; add one, or remove the "
			    "target",
			    name);
}

/* A target without an address gets none: iserd would serve it nowhere. */
static void note_unreachable(struct lio *l)
{
	struct import_portal *p = NULL;

	for (struct import_target *t = l->m->targets; t; t = t->next) {
		if (t->portals.n)
			continue;
		import_note(l->m, t->at,
			    "target %s: has no portal; it is served at "
			    "127.0.0.1 only: change listen of the portal "
			    "group unreachable",
			    t->name);
		if (!p) {
			p = import_portal_new(l->m, t->at, "unreachable");
			import_texts_add(l->m, &p->listen, "127.0.0.1:0");
		}
		import_texts_add(l->m, &t->portals, p->name);
	}
}

void import_lio(struct import_model *m, const struct tree *file)
{
	struct lio l = { .m = m };

	import_settings(m, file, "the file", &import_lio_tables[LIO_FILE]);
	lio_take_storages(&l, file);
	for (const struct tree *t = lio_children(file, "targets"); t;
	     t = t->next)
		take_target(&l, t);
	lio_make_portals(&l, lio_take_discovery(&l, file));
	note_unreachable(&l);
	import_note_names(m, "a wwn of its own", import_give_naa);
}
