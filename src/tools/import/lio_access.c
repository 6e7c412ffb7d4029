/* SPDX-License-Identifier: BSD-2-Clause */
/* lio_access.c: the access rules of a TPG as an auth group and maps of LUNs. */
#include "tools/import/lio.h"

/* ---- maps ---- */

/* Whether an ACL maps exactly the LUNs that the target has without a map. */
static bool is_whole_map(const struct import_model *m,
			 const struct import_luns *a,
			 const struct import_luns *b)
{
	if (a->n != b->n)
		return false;
	for (const struct import_lun *l = a->first; l; l = l->next) {
		const struct import_lun *o = import_lun_find(m, b, l->number);

		if (!o || o->unit != l->unit || o->read_only != l->read_only)
			return false;
	}
	return true;
}

/* account: with which the initiator must log in; NULL: any, or without CHAP.
 * read_only: that of a mapped LUN for which the file does not say it. */
static void take_map(struct lio *l, struct import_target *t,
		     const struct tree *acl, const char *initiator,
		     const char *account, bool read_only)
{
	/* a place of its own: import_lun_add knows maps by their places */
	struct import_luns *luns = pool_alloc(&l->m->pool, sizeof(*luns));
	struct import_map *map;

	for (const struct tree *c = lio_children(acl, "mapped_luns"); c;
	     c = c->next) {
		unsigned long number, tpg_lun;
		const struct import_lun *of;

		import_settings(l->m, c, initiator,
				&import_lio_tables[LIO_MAPPED_LUN]);

		if (!lio_index(l, c, "index", &number) ||
		    !lio_index(l, c, "tpg_lun", &tpg_lun))
			continue;
		of = import_lun_find(l->m, &t->luns, tpg_lun);
		if (!of)
			import_note(l->m, c,
				    "mapped LUN %lu of %s: left out: "
				    "the target has no LUN %lu",
				    number, initiator, tpg_lun);
		else
			import_lun_add(l->m, luns, c, number, of->unit,
				       of->is_fixed ||
					       lio_flag(l, c, "write_protect",
							read_only, true));
	}
	if (is_whole_map(l->m, luns, &t->luns))
		return;
	map = import_map_add(l->m, t, initiator);
	map->luns = *luns;
	map->account = account;
}

/* ---- access ---- */

/* The account of a TPG, which is for all initiators, or that of an ACL. NULL: it has
 * none. */
static const struct import_account *take_chap(struct lio *l,
					      struct import_auth *a,
					      const struct tree *t,
					      const char *initiator)
{
	const char *user = tree_text(t, "chap_userid");
	const char *secret = tree_text(t, "chap_password");
	const char *mutual_user = tree_text(t, "chap_mutual_userid");
	const char *mutual_secret = tree_text(t, "chap_mutual_password");

	if (mutual_user && *mutual_user && mutual_secret && *mutual_secret)
		import_auth_mutual(l->m, a, tree_find(t, "chap_mutual_userid"),
				   mutual_user, mutual_secret);
	if (!user || !*user || !secret || !*secret)
		return NULL;
	return import_auth_account(l->m, a, tree_find(t, "chap_userid"), user,
				   secret, initiator);
}

/* An attribute, which is 0 or 1. The kernel has a default for one that is missing;
 * of another value, which it refuses, the import takes what admits less. */
static bool attribute_of(struct lio *l, const struct tree *object,
			 const char *key, bool otherwise, bool narrow)
{
	const struct tree *c = tree_find(tree_find(object, "attributes"), key);
	const char *text = c && c->kind == TREE_SCALAR ? c->text : NULL;

	if (!c || (c->kind == TREE_SCALAR && !text))
		return otherwise;
	if (text && (!strcmp(text, "0") || !strcmp(text, "1")))
		return *text == '1';
	import_note(l->m, c,
		    "%s: neither 0 nor 1; %d is used, which admits less", key,
		    narrow);
	return narrow;
}

/* Whether AuthMethod, with which initiators negotiate, has no None. */
static bool offers_chap_only(const struct tree *tpg)
{
	const char *text =
		tree_text(tree_find(tpg, "parameters"), "AuthMethod");

	return text && !strcasestr(text, "None");
}

struct lio_access lio_access_of(struct lio *l, const struct tree *tpg)
{
	return (struct lio_access){
		.demo = attribute_of(l, tpg, "generate_node_acls", false,
				     false),
		.chap = attribute_of(l, tpg, "authentication", true, true) ||
			offers_chap_only(tpg),
		.demo_read_only = attribute_of(
			l, tpg, "demo_mode_write_protect", true, true),
		.mapped_read_only = attribute_of(
			l, tpg, "prod_mode_write_protect", false, true),
	};
}

/* Whether the initiator of an ACL must log in by CHAP: the ACL says so since Linux
 * 6.0, where -1 stands for the word of the TPG. */
static bool demands_chap(struct lio *l, const struct tree *acl, bool of_tpg)
{
	const char *text =
		tree_text(tree_find(acl, "attributes"), "authentication");

	if (text && !strcmp(text, "-1"))
		return of_tpg;
	return attribute_of(l, acl, "authentication", of_tpg, true);
}

/* A target of iserd demands CHAP of all its initiators or of none: of all, if LIO
 * demands it of one. */
static bool demands_any(struct lio *l, const struct tree *tpg,
			struct lio_access access)
{
	bool any = access.demo && access.chap;

	for (const struct tree *c = lio_children(tpg, "node_acls"); c;
	     c = c->next)
		any |= demands_chap(l, c, access.chap);
	return any;
}

/* The name of what belongs to a target. */
static const char *short_name(const char *target)
{
	const char *colon = strrchr(target, ':');

	return colon && colon[1] ? colon + 1 : target;
}

/* The account of an ACL, in a group that demands CHAP. */
static const struct import_account *
take_acl_account(struct lio *l, struct import_auth *a, const struct tree *acl,
		 const char *initiator, bool chap)
{
	const struct import_account *c = take_chap(l, a, acl, initiator);

	if (!c && chap)
		import_note(l->m, acl,
			    "ACL of %s: requires CHAP, and no account is for "
			    "this initiator; add one to the auth group %s",
			    initiator, a->name);
	else if (!c)
		import_note(l->m, acl,
			    "ACL of %s: LIO admits the initiator without CHAP, "
			    "iserd demands CHAP of each initiator of a target; "
			    "add an account for it to the auth group %s",
			    initiator, a->name);
	return c;
}

/* The account and the map of an ACL. In demo mode, an initiator with the account of
 * the TPG could take the name of the ACL: it must not see what the ACL maps. */
static void take_acl(struct lio *l, struct import_target *t,
		     struct import_auth *a, const struct tree *acl,
		     const char *initiator, struct lio_access access)
{
	bool chap = demands_chap(l, acl, access.chap);
	const struct import_account *c =
		a->by_account ? take_acl_account(l, a, acl, initiator, chap)
			      : NULL;

	if (!access.demo || !chap)
		take_map(l, t, acl, initiator, NULL, access.mapped_read_only);
	else if (c)
		take_map(l, t, acl, initiator, c->user,
			 access.mapped_read_only);
	else
		import_note(l->m, acl,
			    "mapped LUNs of %s: left out, as LIO does not "
			    "admit the initiator; add a map to the target "
			    "with the account of the initiator",
			    initiator);
}

/* The names, accounts and maps of the ACLs. False after a note: two ACLs have the
 * same name, so that it is open which rules count. */
static bool take_acls(struct lio *l, struct import_target *t,
		      struct import_auth *a, const struct tree *tpg,
		      struct lio_access access)
{
	for (const struct tree *c = lio_children(tpg, "node_acls"); c;
	     c = c->next) {
		const char *name = import_initiator(
			l->m, c, lio_text_or(c, "node_wwn", "?"));

		if (!name)
			continue;
		import_settings(l->m, c, name, &import_lio_tables[LIO_ACL]);
		import_settings(l->m, tree_find(c, "attributes"), name,
				&import_lio_tables[LIO_ACL_ATTRIBUTES]);
		if (pool_get(&l->m->pool, tpg, name)) {
			import_note(l->m, c,
				    "ACL of %s: there are two of them; the "
				    "target %s admits no initiator: repair the "
				    "file",
				    name, t->name);
			return false;
		}
		pool_put(&l->m->pool, tpg, name, t);
		if (!access.demo)
			import_auth_name(l->m, a, c, name);
		take_acl(l, t, a, c, name, access);
	}
	return true;
}

void lio_take_access(struct lio *l, struct import_target *t,
		     const struct tree *tpg, struct lio_access access)
{
	struct import_auth *a = import_auth_new(l->m, short_name(t->name));

	a->by_name = !access.demo;
	a->by_account = demands_any(l, tpg, access);
	if (a->by_account && access.demo && !take_chap(l, a, tpg, NULL))
		import_note(l->m, tpg,
			    "initiators without an ACL: the TPG has no account "
			    "of CHAP for them; add one to the auth group %s",
			    a->name);
	if (!take_acls(l, t, a, tpg, access)) {
		import_auth_drop(l->m, a);
		t->auth = &import_none;
		t->maps = t->last_map = NULL; /* they name its accounts */
		return;
	}
	t->auth = import_auth_done(l->m, tpg, a);
}

const struct import_auth *lio_take_discovery(struct lio *l,
					     const struct tree *file)
{
	for (const struct tree *f = lio_children(file, "fabric_modules"); f;
	     f = f->next) {
		const char *user = tree_text(f, "discovery_userid");
		const char *secret = tree_text(f, "discovery_password");
		struct import_auth *a;

		if (strcmp(lio_text_or(f, "name", ""), "iscsi") != 0)
			continue;
		import_settings(l->m, f, "fabric module iscsi",
				&import_lio_tables[LIO_FABRIC]);
		if (!lio_flag(l, f, "discovery_enable_auth", false, true))
			continue;
		a = import_auth_new(l->m, "discovery");
		a->by_account = true;
		if (user && secret)
			import_auth_account(l->m, a, f, user, secret, NULL);
		user = tree_text(f, "discovery_mutual_userid");
		secret = tree_text(f, "discovery_mutual_password");
		if (user && secret)
			import_auth_mutual(l->m, a, f, user, secret);
		return import_auth_done(l->m, f, a);
	}
	return NULL;
}
