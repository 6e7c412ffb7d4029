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

static void take_map(struct lio *l, struct import_target *t,
		     const struct tree *acl, const char *initiator)
{
	/* a place of its own: import_lun_add knows maps by their places */
	struct import_luns *luns = pool_alloc(&l->m->pool, sizeof(*luns));

	for (const struct tree *c = lio_children(acl, "mapped_luns"); c;
	     c = c->next) {
		unsigned long number, tpg_lun;
		const struct import_lun *of;

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
			import_lun_add(
				l->m, luns, c, number, of->unit,
				lio_is_on(tree_text(c, "write_protect")));
	}
	if (!is_whole_map(l->m, luns, &t->luns))
		import_map_add(l->m, t, initiator)->luns = *luns;
}

/* ---- access ---- */

/* The accounts of a TPG or of an ACL. Returns whether it has one. */
static bool take_chap(struct lio *l, struct import_auth *a,
		      const struct tree *t)
{
	const char *user = tree_text(t, "chap_userid");
	const char *secret = tree_text(t, "chap_password");
	const char *mutual_user = tree_text(t, "chap_mutual_userid");
	const char *mutual_secret = tree_text(t, "chap_mutual_password");

	if (user && *user && secret && *secret)
		import_auth_account(l->m, a, tree_find(t, "chap_userid"), user,
				    secret, false);
	if (mutual_user && *mutual_user && mutual_secret && *mutual_secret)
		import_auth_account(l->m, a, tree_find(t, "chap_mutual_userid"),
				    mutual_user, mutual_secret, true);
	return user && *user && secret && *secret;
}

static void take_accounts(struct lio *l, struct import_auth *a,
			  const struct tree *tpg, bool is_demo)
{
	unsigned n = 0;

	a->by_account = true;
	if (is_demo)
		n += take_chap(l, a, tpg);
	for (const struct tree *c = lio_children(tpg, "node_acls"); c;
	     c = c->next)
		if (take_chap(l, a, c))
			n++;
		else
			import_note(l->m, c,
				    "ACL of %s: has no account of CHAP, which "
				    "the TPG requires; the initiator needs one "
				    "of the accounts of the auth group %s",
				    lio_text_or(c, "node_wwn", "?"), a->name);
	if (n > 1)
		import_note(l->m, tpg,
			    "auth group %s: LIO accepts each account from one "
			    "initiator, iserd from each initiator of the "
			    "group; divide the target if that matters",
			    a->name);
}

/* The name of what belongs to a target. */
static const char *short_name(const char *target)
{
	const char *colon = strrchr(target, ':');

	return colon && colon[1] ? colon + 1 : target;
}

void lio_take_access(struct lio *l, struct import_target *t,
		     const struct tree *tpg)
{
	const struct tree *attributes = tree_find(tpg, "attributes");
	bool is_demo = lio_is_on(tree_text(attributes, "generate_node_acls"));
	struct import_auth *a = import_auth_new(l->m, short_name(t->name));

	if (!is_demo)
		a->by_name = true;
	for (const struct tree *c = lio_children(tpg, "node_acls"); c;
	     c = c->next) {
		const char *name = import_initiator(
			l->m, c, lio_text_or(c, "node_wwn", "?"));

		if (name && !is_demo)
			import_auth_name(l->m, a, c, name);
		if (name)
			take_map(l, t, c, name);
	}
	if (lio_is_on(tree_text(attributes, "authentication")))
		take_accounts(l, a, tpg, is_demo);
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

		if (strcmp(lio_text_or(f, "name", ""), "iscsi") != 0 ||
		    !lio_is_on(tree_text(f, "discovery_enable_auth")))
			continue;
		a = import_auth_new(l->m, "discovery");
		a->by_account = true;
		if (user && secret)
			import_auth_account(l->m, a, f, user, secret, false);
		user = tree_text(f, "discovery_mutual_userid");
		secret = tree_text(f, "discovery_mutual_password");
		if (user && secret)
			import_auth_account(l->m, a, f, user, secret, true);
		return import_auth_done(l->m, f, a);
	}
	return NULL;
}
