/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ctl.c: what FreeBSD's ctl.conf (ctl.conf(5)) means to ctld, as a configuration
 * of iserd. The tree is that of UCL; a statement of the classic syntax with
 * several words is an array.
 */
#include "tools/import/ctl.h"

const char ctl_of_portal, ctl_of_lun;

/* The scope of the auth groups. */
static const char of_group;

bool ctl_is_key(const struct tree *t, const char *key)
{
	return t->key && !strcmp(t->key, key);
}

const char *ctl_text_of(const struct tree *t)
{
	return t->kind == TREE_SCALAR && t->text ? t->text : "";
}

/* Calls f for the value of a statement, or for each of them if it has an
 * array. */
void ctl_each_value(struct ctl *l, const struct tree *t, ctl_take_value *f,
		    void *arg)
{
	if (t->kind == TREE_ARRAY)
		for (const struct tree *c = t->first; c; c = c->next)
			f(l, arg, c);
	else
		f(l, arg, t);
}

/* The nth word of a statement that the classic syntax writes as words and UCL
 * as an object with keys. */
const char *ctl_word_of(const struct tree *t, unsigned n, const char *key)
{
	const struct tree *c = t->first;

	if (t->kind == TREE_OBJECT)
		return tree_text(t, key);
	while (c && n--)
		c = c->next;
	return c && c->kind == TREE_SCALAR ? c->text : NULL;
}

/* ---- auth groups ---- */

static void take_pair(struct ctl *l, const struct ctl_rules *r,
		      const struct tree *t)
{
	const char *user = ctl_word_of(t, 0, "user");
	const char *secret = ctl_word_of(t, 1, "secret");
	const char *mutual_user = ctl_word_of(t, 2, "mutual-user");
	const char *mutual_secret = ctl_word_of(t, 3, "mutual-secret");

	r->auth->by_account = true;
	if (!user || !secret) {
		import_note(l->m, t,
			    "an account without user or secret is "
			    "left out; repair the line");
		return;
	}
	import_auth_account(l->m, r->auth, t, user, secret, NULL);
	if (mutual_user && mutual_secret)
		import_auth_mutual(l->m, r->auth, t, mutual_user,
				   mutual_secret);
}

/* "chap USER SECRET", or an array of objects in UCL. */
static void take_chap(struct ctl *l, const struct ctl_rules *r,
		      const struct tree *t)
{
	if (t->kind == TREE_ARRAY && t->first && t->first->kind == TREE_OBJECT)
		for (const struct tree *c = t->first; c; c = c->next)
			take_pair(l, r, c);
	else
		take_pair(l, r, t);
}

static void take_name(struct ctl *l, void *arg, const struct tree *value)
{
	const struct ctl_rules *r = arg;

	import_auth_name(l->m, r->auth, value, ctl_text_of(value));
}

static void take_address(struct ctl *l, void *arg, const struct tree *value)
{
	const struct ctl_rules *r = arg;

	import_auth_address(l->m, r->auth, value, ctl_text_of(value));
}

/* Returns whether the statement is an access rule, which r gets. */
bool ctl_take_rule(struct ctl *l, struct ctl_rules *r, const struct tree *t)
{
	if (ctl_is_key(t, "auth-type")) {
		r->is_unclear |=
			r->type && strcmp(r->type, ctl_text_of(t)) != 0;
		r->type = ctl_text_of(t);
	} else if (ctl_is_key(t, "chap") || ctl_is_key(t, "chap-mutual"))
		take_chap(l, r, t);
	else if (ctl_is_key(t, "initiator-name"))
		ctl_each_value(l, t, take_name, r);
	else if (ctl_is_key(t, "initiator-portal"))
		ctl_each_value(l, t, take_address, r);
	else
		return false;
	return true;
}

/* What ctld makes of the rules: without accounts and without "auth-type none",
 * it denies all access. */
const struct import_auth *ctl_end_rules(struct ctl *l, struct ctl_rules *r,
					const struct tree *at)
{
	bool is_open = r->type && !strcmp(r->type, "none");
	bool is_denied = r->type && !strcmp(r->type, "deny");

	if (r->is_unclear)
		import_note(l->m, at,
			    "%s: auth group none, which admits no initiator: "
			    "there are several rules, of which ctld accepts "
			    "one; repair the file",
			    r->auth->name);
	else if (!is_open && !is_denied && !r->auth->by_account)
		import_note(
			l->m, at,
			"%s: auth group none, which admits no initiator: "
			"there is neither an account nor auth-type none, so "
			"ctld denies access, too; nothing to do if that is "
			"meant",
			r->auth->name);
	if (is_open) {
		r->auth->by_account = false;
		r->auth->accounts = r->auth->last_account = NULL;
	}
	if (!r->is_unclear && !is_denied && (is_open || r->auth->by_account))
		return import_auth_done(l->m, at, r->auth);
	import_auth_drop(l->m, r->auth);
	return &import_none;
}

static void take_group(struct ctl *l, const struct tree *section)
{
	struct ctl_rules r = { .auth = import_auth_new(l->m, section->key) };

	import_settings(l->m, section, section->key,
			&import_ctl_tables[CTL_AUTH]);
	for (const struct tree *c = section->first; c; c = c->next)
		(void)ctl_take_rule(l, &r, c);
	/* ctld has these two already, unlike default, and accepts no other */
	if (pool_get(&l->m->pool, &of_group, section->key) ||
	    !strcmp(section->key, "no-access") ||
	    !strcmp(section->key, "no-authentication"))
		r.is_unclear = true;
	pool_put(&l->m->pool, &of_group, section->key,
		 (void *)(uintptr_t)ctl_end_rules(l, &r, section));
}

const struct import_auth *ctl_find_group(struct ctl *l, const struct tree *at,
					 const char *name)
{
	const struct import_auth *a = pool_get(&l->m->pool, &of_group, name);

	if (a)
		return a;
	if (!strcmp(name, "no-authentication"))
		return &import_any;
	if (strcmp(name, "default") != 0 && strcmp(name, "no-access") != 0)
		import_note(l->m, at,
			    "auth-group %s: the file does not define it; the "
			    "auth group none is used, which admits no "
			    "initiator: write an auth group by hand",
			    name);
	return &import_none;
}

/* ---- the file ---- */

typedef void take_section(struct ctl *l, const struct tree *section);

static void take_named_lun(struct ctl *l, const struct tree *section)
{
	bool is_second = pool_get(&l->m->pool, &ctl_of_lun, section->key);

	if (is_second)
		import_note(l->m, section,
			    "LUN %s: there are two of them; LUNs of this name "
			    "are left out: repair the file",
			    section->key);
	pool_put(&l->m->pool, &ctl_of_lun, section->key,
		 is_second ? NULL : ctl_take_lun(l, section, section->key));
}

/* Calls f for each section of this keyword. */
static void each_section(struct ctl *l, const struct tree *file,
			 const char *keyword, take_section *f)
{
	for (const struct tree *c = file->first; c; c = c->next) {
		if (!ctl_is_key(c, keyword))
			continue;
		for (const struct tree *s = c->first; s; s = s->next)
			if (s->key && s->kind == TREE_OBJECT)
				f(l, s);
		if (c->kind != TREE_OBJECT)
			import_note(l->m, c,
				    "%s: left out: a section { } expected; "
				    "repair the line",
				    keyword);
	}
}

void import_ctl(struct import_model *m, const struct tree *file)
{
	struct ctl l = { .m = m };

	import_settings(m, file, "the file", &import_ctl_tables[CTL_FILE]);
	each_section(&l, file, "auth-group", take_group);
	each_section(&l, file, "portal-group", ctl_take_portal);
	each_section(&l, file, "lun", take_named_lun);
	each_section(&l, file, "target", ctl_take_target);
	import_note_names(m, "the option naa or eui", import_give_naa);
}
