/* SPDX-License-Identifier: BSD-2-Clause */
/* ctl_target.c: the targets of ctld. */
#include "tools/import/ctl.h"

/* A portal group of a target, which may have an auth group for this target. */
struct use {
	struct use *next;
	const struct tree *at;
	const struct ctl_group *group;
	const struct import_auth *auth; /* NULL: that of the target */
};

struct target {
	struct import_target *t;
	struct ctl_rules rules;
	bool has_rules, has_group, has_port;
	struct use *uses, *last_use;
	const char *redirect;
};

static void add_lun(struct ctl *l, struct target *t, const struct tree *at,
		    const char *number, const struct tree *section)
{
	const char *name = section->kind == TREE_SCALAR
				   ? section->text
				   : tree_text(section, "name");
	const struct ctl_lun *lun;
	unsigned long v;

	if (!number || !import_number(number, IMPORT_LUN_MAX, &v)) {
		import_note(l->m, at,
			    "lun %s: left out: not a number from 0 to %u",
			    number ? number : "?", IMPORT_LUN_MAX);
		return;
	}
	if (name) {
		lun = pool_get(&l->m->pool, &ctl_of_lun, name);
		if (!lun)
			import_note(l->m, at,
				    "lun %s: left out: %s is not defined or is "
				    "left out itself",
				    number, name);
	} else {
		const char *colon = strrchr(t->t->name, ':');

		name = pool_format(&l->m->pool, "%s-%lu",
				   colon && colon[1] ? colon + 1 : t->t->name,
				   v);
		lun = ctl_take_lun(l, section, name);
	}
	if (lun)
		import_lun_add(l->m, &t->t->luns, at, v, lun->unit,
			       lun->read_only && !lun->unit->read_only);
}

/* "lun 0 NAME" and "lun 0 { }" are an object by number; UCL has an array of
 * objects with numbers, too. */
static void take_target_luns(struct ctl *l, struct target *t,
			     const struct tree *luns)
{
	for (const struct tree *c = luns->first; c; c = c->next)
		if (c->key)
			add_lun(l, t, c, c->key, c);
		else
			add_lun(l, t, c, tree_text(c, "number"), c);
}

static void add_portal(struct ctl *l, struct target *t, const struct tree *at,
		       const char *name, const char *auth)
{
	const struct ctl_group *g = pool_get(&l->m->pool, &ctl_of_portal, name);
	struct use *u;

	if (!g && !strcmp(name, "default"))
		g = ctl_default_portal(l, at);
	if (!g) {
		import_note(l->m, at,
			    "portal-group %s: left out: the file does not "
			    "define it; repair the line",
			    name);
		return;
	}
	u = pool_alloc(&l->m->pool, sizeof(*u));
	u->at = at;
	u->group = g;
	u->auth = auth ? ctl_find_group(l, at, auth) : NULL;
	if (t->last_use)
		t->last_use->next = u;
	else
		t->uses = u;
	t->last_use = u;
}

static void take_target_portal(struct ctl *l, struct target *t,
			       const struct tree *c)
{
	bool is_list = c->kind == TREE_ARRAY && c->first &&
		       c->first->kind == TREE_OBJECT;

	if (is_list) {
		for (const struct tree *o = c->first; o; o = o->next)
			take_target_portal(l, t, o);
		return;
	}
	if (c->kind == TREE_SCALAR)
		add_portal(l, t, c, ctl_text_of(c), NULL);
	else if (ctl_word_of(c, 0, "name"))
		add_portal(l, t, c, ctl_word_of(c, 0, "name"),
			   ctl_word_of(c, 1, "auth-group-name"));
}

static void take_statement(struct ctl *l, struct target *t,
			   const struct tree *c)
{
	if (ctl_is_key(c, "alias"))
		import_alias(l->m, t->t, c, ctl_text_of(c));
	else if (ctl_is_key(c, "redirect"))
		t->redirect = ctl_text_of(c);
	else if (ctl_is_key(c, "auth-group")) {
		const struct import_auth *a =
			ctl_find_group(l, c, ctl_text_of(c));

		t->rules.is_unclear |= t->has_group && t->t->auth != a;
		t->t->auth = a;
		t->has_group = true;
	} else if (ctl_is_key(c, "portal-group"))
		take_target_portal(l, t, c);
	else if (ctl_is_key(c, "lun"))
		take_target_luns(l, t, c);
	else if (ctl_take_rule(l, &t->rules, c))
		t->has_rules = true;
	else if (ctl_is_key(c, "port")) {
		t->has_port = true;
		import_note(
			l->m, c,
			"port %s: left out: iserd does not serve ports of "
			"CTL (Fibre Channel and others); keep ctld for them",
			ctl_text_of(c));
	}
}

/* ---- where a target is served ---- */

/* Serves the target in a portal group. */
static void serve_in(struct ctl *l, struct import_target *t,
		     const struct import_portal *p)
{
	if (p && !import_texts_have(l->m, &t->portals, p->name))
		import_texts_add(l->m, &t->portals, p->name);
}

/* The auth group of a target: its group or its own rules. A target of iserd has one,
 * so portal groups with another one are left out later; one that has its own in each
 * portal group gets that of the first. */
static void end_access(struct ctl *l, struct target *t,
		       const struct tree *section)
{
	const struct use *u = t->uses;

	t->rules.is_unclear |= t->has_rules && t->has_group;
	if (t->has_rules || t->rules.is_unclear) {
		t->t->auth = ctl_end_rules(l, &t->rules, section);
		return;
	}
	import_auth_drop(l->m, t->rules.auth);
	if (!t->has_group)
		t->t->auth = ctl_find_group(l, section, "default");
	while (u && u->auth)
		u = u->next;
	if (t->uses && !u)
		t->t->auth = t->uses->auth;
}

/* Whether some portal group of the target redirects and another serves it. */
static bool is_partly_redirected(const struct target *t)
{
	bool redirects = false, serves = false;

	for (const struct use *u = t->uses; u; u = u->next)
		*(u->group->redirect ? &redirects : &serves) = true;
	return redirects && serves;
}

/* Sends all initiators of the target to another address. */
static void add_redirect(struct ctl *l, struct target *t, const char *text)
{
	const char *address = ctl_address_of(l, text);

	if (address && !import_texts_have(l->m, &t->t->redirects, address))
		import_texts_add(l->m, &t->t->redirects, address);
	if (address)
		return;
	import_note(l->m, t->t->at,
		    "redirect %s: not a numeric address; the target %s admits "
		    "no initiator: write redirects by hand",
		    text, t->t->name);
	t->t->auth = &import_none;
}

static void take_use(struct ctl *l, struct target *t, const struct use *u,
		     bool is_partly_redirected)
{
	const char *why = NULL;

	if (u->group->unusable)
		why = u->group->unusable;
	else if (u->auth && u->auth != t->t->auth)
		why = "it has another auth group, and a target of iserd has "
		      "one; make it a target of its own";
	else if (u->group->redirect && is_partly_redirected)
		why = "it redirects initiators, and a target of iserd does so "
		      "at all its addresses; make it a target of its own";
	if (why) {
		import_note(l->m, u->at,
			    "target %s: a portal group is left out: %s",
			    t->t->name, why);
		return;
	}
	serve_in(l, t->t, u->group->tcp);
	serve_in(l, t->t, u->group->iser);
	if (u->group->redirect && !t->redirect)
		add_redirect(l, t, u->group->redirect);
}

/* A target without an address gets none: iserd would serve it nowhere. */
static void serve_nowhere(struct ctl *l, struct import_target *t)
{
	import_note(l->m, t->at,
		    "target %s: has no portal group left; it is served at "
		    "127.0.0.1 only: change portal-groups",
		    t->name);
	if (!l->nowhere) {
		l->nowhere = import_portal_new(l->m, t->at, "unreachable");
		import_texts_add(l->m, &l->nowhere->listen, "127.0.0.1:0");
		l->nowhere->discovery = "none";
	}
	serve_in(l, t, l->nowhere);
}

static void end_portals(struct ctl *l, struct target *t,
			const struct tree *section)
{
	bool is_partly = !t->redirect && is_partly_redirected(t);

	if (!t->uses)
		add_portal(l, t, section, "default", NULL);
	end_access(l, t, section);
	for (const struct use *u = t->uses; u; u = u->next)
		take_use(l, t, u, is_partly);
	if (t->redirect)
		add_redirect(l, t, t->redirect);
	if (!t->t->portals.n)
		serve_nowhere(l, t->t);
}

void ctl_take_target(struct ctl *l, const struct tree *section)
{
	struct target t = { .t = import_target_new(l->m, section,
						   section->key) };
	const char *colon = strrchr(section->key, ':');

	if (!t.t)
		return;
	import_settings(l->m, section, t.t->name,
			&import_ctl_tables[CTL_TARGET]);
	t.rules.auth = import_auth_new(l->m, colon && colon[1] ? colon + 1
							       : section->key);
	for (const struct tree *c = section->first; c; c = c->next)
		take_statement(l, &t, c);
	if (!t.uses && t.has_port) {
		import_auth_drop(l->m, t.rules.auth);
		import_note(l->m, section,
			    "target %s: left out: it has no portal-group, only "
			    "ports of CTL; keep ctld for it",
			    t.t->name);
		import_target_drop(l->m, t.t);
		return;
	}
	end_portals(l, &t, section);
	if (!t.t->luns.n)
		import_note(l->m, section,
			    "target %s: has no LUN; add one, or remove the "
			    "target",
			    t.t->name);
}
