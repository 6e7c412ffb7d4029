/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ctl.c: what FreeBSD's ctl.conf (ctl.conf(5)) means to ctld, as a configuration
 * of iserd. The tree is that of UCL; a statement of the classic syntax with
 * several words is an array.
 */
#include <ctype.h>
#include <string.h>

#include "base/bytes.h"
#include "tools/import/model.h"

struct ctl {
	struct import_model *m;
};

/* The scopes of what the file defines by name: auth groups, portal groups and
 * LUNs; a LUN that was left out is none of them. */
static const char of_group, of_portal, of_lun;

typedef void take_value(struct ctl *l, void *arg, const struct tree *value);

static bool is_key(const struct tree *t, const char *key)
{
	return t->key && !strcmp(t->key, key);
}

static const char *text_of(const struct tree *t)
{
	return t->kind == TREE_SCALAR && t->text ? t->text : "";
}

/* Calls f for the value of a statement, or for each of them if it has an
 * array. */
static void each_value(struct ctl *l, const struct tree *t, take_value *f,
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
static const char *word_of(const struct tree *t, unsigned n, const char *key)
{
	const struct tree *c = t->first;

	if (t->kind == TREE_OBJECT)
		return tree_text(t, key);
	while (c && n--)
		c = c->next;
	return c && c->kind == TREE_SCALAR ? c->text : NULL;
}

/* ---- auth groups ---- */

/* The rules of an auth group, or of a target that has its own. */
struct rules {
	struct import_auth *auth;
	const char *type; /* of auth-type */
};

static void take_pair(struct ctl *l, const struct rules *r,
		      const struct tree *t)
{
	const char *user = word_of(t, 0, "user");
	const char *secret = word_of(t, 1, "secret");
	const char *mutual_user = word_of(t, 2, "mutual-user");
	const char *mutual_secret = word_of(t, 3, "mutual-secret");

	r->auth->by_account = true;
	if (!user || !secret) {
		import_note(l->m, t,
			    "an account without user or secret is "
			    "left out; repair the line");
		return;
	}
	import_auth_account(l->m, r->auth, t, user, secret, false);
	if (mutual_user && mutual_secret)
		import_auth_account(l->m, r->auth, t, mutual_user,
				    mutual_secret, true);
}

/* "chap USER SECRET", or an array of objects in UCL. */
static void take_chap(struct ctl *l, const struct rules *r,
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
	const struct rules *r = arg;

	import_auth_name(l->m, r->auth, value, text_of(value));
}

static void take_address(struct ctl *l, void *arg, const struct tree *value)
{
	const struct rules *r = arg;

	import_auth_address(l->m, r->auth, value, text_of(value));
}

/* Returns whether the statement is an access rule, which r gets. */
static bool take_rule(struct ctl *l, struct rules *r, const struct tree *t)
{
	if (is_key(t, "auth-type"))
		r->type = text_of(t);
	else if (is_key(t, "chap") || is_key(t, "chap-mutual"))
		take_chap(l, r, t);
	else if (is_key(t, "initiator-name"))
		each_value(l, t, take_name, r);
	else if (is_key(t, "initiator-portal"))
		each_value(l, t, take_address, r);
	else
		return false;
	return true;
}

/* What ctld makes of the rules: without accounts and without "auth-type none",
 * it denies all access. */
static const struct import_auth *end_rules(struct ctl *l, struct rules *r,
					   const struct tree *at)
{
	bool is_open = r->type && !strcmp(r->type, "none");
	bool is_denied = r->type && !strcmp(r->type, "deny");

	if (is_open) {
		r->auth->by_account = false;
		r->auth->accounts = r->auth->last_account = NULL;
	}
	if (!is_open && !is_denied && !r->auth->by_account)
		import_note(
			l->m, at,
			"%s: auth group none, which admits no initiator: "
			"there is neither an account nor auth-type none, so "
			"ctld denies access, too; nothing to do if that is "
			"meant",
			r->auth->name);
	if (is_open || (!is_denied && r->auth->by_account))
		return import_auth_done(l->m, at, r->auth);
	import_auth_drop(l->m, r->auth);
	return &import_none;
}

static void take_group(struct ctl *l, const struct tree *section)
{
	struct rules r = { .auth = import_auth_new(l->m, section->key) };

	for (const struct tree *c = section->first; c; c = c->next)
		if (!take_rule(l, &r, c))
			import_note(l->m, c,
				    "auth-group %s: %s: not carried over: "
				    "iserd has no such rule; see ctl.conf(5)",
				    section->key, c->key ? c->key : "?");
	pool_put(&l->m->pool, &of_group, section->key,
		 (void *)(uintptr_t)end_rules(l, &r, section));
}

static const struct import_auth *
find_group(struct ctl *l, const struct tree *at, const char *name)
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

/* ---- portal groups ---- */

static void take_listen(struct ctl *l, void *arg, const struct tree *value)
{
	struct import_portal *p = arg;
	const char *text = text_of(value), *end = text + strlen(text);
	const char *colon = strrchr(text, ':'), *bracket = strchr(text, ']');
	const char *address;
	bool has_port = bracket ? colon && colon == bracket + 1
				: colon && colon == strchr(text, ':');

	end = has_port ? colon : end;
	address = import_listen(
		l->m, pool_copy(&l->m->pool, text, (size_t)(end - text)),
		has_port ? colon + 1 : "3260");
	if (!address)
		import_note(l->m, value,
			    "listen %s: left out: not a numeric address; give "
			    "the address of the host name",
			    text);
	else if (!import_portal_of(l->m, address))
		import_portal_listen(l->m, p, address);
	else if (import_portal_of(l->m, address) != p)
		import_note(l->m, value,
			    "listen %s: left out: the portal group %s has this "
			    "address; use that group in the targets",
			    address, import_portal_of(l->m, address)->name);
}

static void take_tag(struct ctl *l, struct import_portal *p,
		     const struct tree *t)
{
	unsigned long tag;

	if (!import_number(text_of(t), 65535, &tag) || !tag) {
		import_note(l->m, t,
			    "tag %s: not carried over: not 1 to 65535; "
			    "the tag is %u",
			    text_of(t), p->tag);
		return;
	}
	if (tag != p->tag && !import_portal_tag(l->m, p, (unsigned)tag))
		import_note(l->m, t,
			    "tag %lu: not carried over: another portal group "
			    "has this tag; the tag is %u",
			    tag, p->tag);
}

static void take_filter(struct ctl *l, struct import_portal *p,
			const struct tree *t)
{
	if (!strcmp(text_of(t), "portal-name") ||
	    !strcmp(text_of(t), "portal-name-auth"))
		p->discovery = NULL; /* iserd's default, permitted */
	else if (!strcmp(text_of(t), "none"))
		p->discovery = "all";
	else {
		p->discovery = NULL;
		import_note(l->m, t,
			    "discovery-filter %s: iserd reports the targets "
			    "that the initiator may log in to by its address "
			    "and name; set discovery of the portal group for "
			    "another rule",
			    text_of(t));
	}
}

static void take_portal(struct ctl *l, const struct tree *section)
{
	struct import_portal *p = import_portal_new(l->m, section->key);
	const struct import_auth *discovery = &import_none;

	p->discovery = "all"; /* ctld's default filter is none */
	for (const struct tree *c = section->first; c; c = c->next)
		if (is_key(c, "listen") || is_key(c, "listen-iser"))
			each_value(l, c, take_listen, p);
		else if (is_key(c, "discovery-auth-group"))
			discovery = find_group(l, c, text_of(c));
		else if (is_key(c, "discovery-filter"))
			take_filter(l, p, c);
		else if (is_key(c, "tag"))
			take_tag(l, p, c);
		else
			import_note(l->m, c,
				    "portal-group %s: %s: not carried over: "
				    "iserd has no such setting; nothing to do "
				    "unless initiators depend on it",
				    section->key, c->key ? c->key : "?");
	if (discovery == &import_none)
		p->discovery = "none";
	else if (discovery != &import_any)
		p->discovery_auth = discovery;
	if (!p->listen.n) {
		import_note(l->m, section,
			    "portal-group %s: has no address; it listens at "
			    "127.0.0.1 only: change listen",
			    section->key);
		import_texts_add(l->m, &p->listen, "127.0.0.1:0");
	}
	pool_put(&l->m->pool, &of_portal, section->key, p);
}

/* The portal group "default" exists without being defined: ctld listens at port
 * 3260 of all addresses then, and denies discovery. */
static const struct import_portal *default_portal(struct ctl *l,
						  const struct tree *at)
{
	const struct import_portal *other =
		import_portal_of(l->m, "0.0.0.0:3260");
	struct import_portal *p;

	if (other) {
		import_note(l->m, at,
			    "portal-group default: %s has its addresses and is "
			    "used instead; check its discovery rule",
			    other->name);
		return other;
	}
	p = import_portal_new(l->m, "default");
	import_portal_listen(l->m, p, "0.0.0.0:3260");
	import_portal_listen(l->m, p, "[::]:3260");
	p->discovery = "none";
	pool_put(&l->m->pool, &of_portal, "default", p);
	return p;
}

/* ---- LUNs ---- */

static void take_option(struct ctl *l, struct import_unit *u,
			const struct tree *at, const char *name,
			const char *value)
{
	bool is_on = !strcmp(value, "on") || !strcmp(value, "1") ||
		     !strcmp(value, "true") || !strcmp(value, "yes");

	if (!strcmp(name, "vendor"))
		u->vendor = value;
	else if (!strcmp(name, "product"))
		u->product = value;
	else if (!strcmp(name, "revision"))
		u->revision = value;
	else if (!strcmp(name, "readonly"))
		u->read_only = is_on;
	else if (!strcmp(name, "removable"))
		u->removable = is_on;
	else if (!strcmp(name, "writecache") && is_on)
		return; /* as iserd has it */
	else if (!strcmp(name, "writecache"))
		import_no_write_through(l->m, at, u->store);
	else if (!strcmp(name, "rpm"))
		u->rotational = !strcmp(value, "1") ? BOOL_NO : BOOL_YES;
	else
		import_note(l->m, at,
			    "option %s %s: not carried over: iserd reports its "
			    "own values; nothing to do unless an initiator "
			    "depends on this one",
			    name, value);
}

static void take_options(struct ctl *l, struct import_unit *u,
			 const struct tree *t)
{
	const char *name = word_of(t, 0, ""), *value = word_of(t, 1, "");

	if (t->kind == TREE_OBJECT)
		for (const struct tree *c = t->first; c; c = c->next)
			take_option(l, u, c, c->key, text_of(c));
	else if (name && value)
		take_option(l, u, t, name, value);
}

/* Sizes of ctld may have a small suffix. */
static const char *size_of(struct ctl *l, const char *text)
{
	char *s = pool_copy(&l->m->pool, text, strlen(text));

	for (char *p = s; *p; p++)
		*p = (char)toupper((unsigned char)*p);
	return s;
}

/* "store:" of a LUN, or NULL after a note. */
static const char *store_of(struct ctl *l, const struct tree *section,
			    const char *name)
{
	const char *backend = tree_text(section, "backend");
	const char *type = tree_text(section, "device-type");
	const char *path = tree_text(section, "path");
	const char *size = tree_text(section, "size");

	if (backend && !strcmp(backend, "ramdisk") && size) {
		import_note(l->m, section,
			    "LUN %s: a ramdisk; its data are not carried over",
			    name);
		return import_memory(l->m, section, "ram", size_of(l, size));
	}
	if (!path || !*path || (backend && strcmp(backend, "block") != 0)) {
		import_note(l->m, section,
			    "LUN %s: left out: it has no path, or another "
			    "backend than block; give the path of a file or a "
			    "block device",
			    name);
		return NULL;
	}
	if (type && strpbrk(type, "cd5") == type && strcmp(type, "disk") != 0 &&
	    strcmp(type, "direct") != 0)
		return pool_format(&l->m->pool, "cd:%s", path);
	if (!type || !strcmp(type, "disk") || !strcmp(type, "direct") ||
	    !strcmp(type, "0"))
		return path;
	import_note(l->m, section,
		    "LUN %s: left out: iserd does not have devices of type %s; "
		    "keep ctld for this one",
		    name, type);
	return NULL;
}

/* One statement of a LUN. */
static void take_setting(struct ctl *l, struct import_unit *u,
			 const struct tree *c)
{
	static const char *const elsewhere[] = { "backend", "device-type",
						 "path", "name", "number" };

	for (size_t i = 0; i < ARRAY_LEN(elsewhere); i++)
		if (is_key(c, elsewhere[i]))
			return;
	if (is_key(c, "blocksize"))
		import_block_size(l->m, u, c, text_of(c));
	else if (is_key(c, "serial"))
		u->serial = text_of(c);
	else if (is_key(c, "option") || is_key(c, "options"))
		take_options(l, u, c);
	else if (is_key(c, "size") && !strncmp(u->store, "ram:", 4))
		return;
	else if (is_key(c, "size"))
		import_note(l->m, c,
			    "size %s: not carried over: a LUN has the size of "
			    "its file or device; check that it is the same",
			    text_of(c));
	else
		import_note(l->m, c,
			    "%s %s: not carried over: iserd reports its own "
			    "values; nothing to do unless an initiator depends "
			    "on this one",
			    c->key ? c->key : "?", text_of(c));
}

static struct import_unit *take_lun(struct ctl *l, const struct tree *section,
				    const char *name)
{
	const char *store = store_of(l, section, name);
	struct import_unit *u = NULL;

	if (!store)
		return NULL;
	if (strncmp(store, "ram:", 4) != 0)
		u = import_unit_of(l->m, store);
	if (u) {
		import_note(
			l->m, section,
			"LUN %s: the same file as in line %u; one backstore "
			"for both, with the options of that line",
			name, u->at->line);
		return u;
	}
	u = import_unit_new(l->m, section, name, store);
	for (const struct tree *c = section->first; u && c; c = c->next)
		take_setting(l, u, c);
	return u;
}

/* ---- targets ---- */

struct target {
	struct import_target *t;
	struct rules rules;
	bool has_rules, has_group, has_port;
	const struct import_auth
		*of_portals; /* the group of "portal-group A B" */
};

static void add_lun(struct ctl *l, struct target *t, const struct tree *at,
		    const char *number, const struct tree *section)
{
	const char *name = section->kind == TREE_SCALAR
				   ? section->text
				   : tree_text(section, "name");
	const struct import_unit *u = NULL;
	unsigned long v;

	if (!number || !import_number(number, IMPORT_LUN_MAX, &v)) {
		import_note(l->m, at,
			    "lun %s: left out: not a number from 0 to %u",
			    number ? number : "?", IMPORT_LUN_MAX);
		return;
	}
	if (name) {
		u = pool_get(&l->m->pool, &of_lun, name);
		if (!u)
			import_note(l->m, at,
				    "lun %s: left out: %s is not defined or is "
				    "left out itself",
				    number, name);
	} else {
		const char *colon = strrchr(t->t->name, ':');

		name = pool_format(&l->m->pool, "%s-%lu",
				   colon && colon[1] ? colon + 1 : t->t->name,
				   v);
		u = take_lun(l, section, name);
	}
	if (u)
		import_lun_add(l->m, &t->t->luns, at, v, u, false);
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
	const struct import_portal *p = pool_get(&l->m->pool, &of_portal, name);

	if (!p && !strcmp(name, "default"))
		p = default_portal(l, at);
	if (!p) {
		import_note(l->m, at,
			    "portal-group %s: left out: the file does not "
			    "define it; repair the line",
			    name);
		return;
	}
	if (!import_texts_have(l->m, &t->t->portals, p->name))
		import_texts_add(l->m, &t->t->portals, p->name);
	if (!auth)
		return;
	if (!t->of_portals)
		t->of_portals = find_group(l, at, auth);
	else if (t->of_portals != find_group(l, at, auth))
		import_note(l->m, at,
			    "auth-group %s for portal-group %s: not carried "
			    "over: a target of iserd has one auth group; "
			    "divide the target if that matters",
			    auth, name);
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
		add_portal(l, t, c, text_of(c), NULL);
	else if (word_of(c, 0, "name"))
		add_portal(l, t, c, word_of(c, 0, "name"),
			   word_of(c, 1, "auth-group-name"));
}

static void take_statement(struct ctl *l, struct target *t,
			   const struct tree *c)
{
	if (is_key(c, "alias"))
		t->t->alias = text_of(c);
	else if (is_key(c, "auth-group")) {
		t->t->auth = find_group(l, c, text_of(c));
		t->has_group = true;
	} else if (is_key(c, "portal-group"))
		take_target_portal(l, t, c);
	else if (is_key(c, "lun"))
		take_target_luns(l, t, c);
	else if (take_rule(l, &t->rules, c))
		t->has_rules = true;
	else if (is_key(c, "port")) {
		t->has_port = true;
		import_note(
			l->m, c,
			"port %s: left out: iserd does not serve ports of "
			"CTL (Fibre Channel and others); keep ctld for them",
			text_of(c));
	} else
		import_note(l->m, c,
			    "target %s: %s: not carried over: iserd has no "
			    "such setting; nothing to do unless initiators "
			    "depend on it",
			    t->t->name, c->key ? c->key : "?");
}

/* The access rules of a target: its group, its own, or those of its portal
 * groups. */
static void end_access(struct ctl *l, struct target *t,
		       const struct tree *section)
{
	if (t->has_rules) {
		t->t->auth = end_rules(l, &t->rules, section);
	} else {
		import_auth_drop(l->m, t->rules.auth);
		if (!t->has_group)
			t->t->auth = t->of_portals ? t->of_portals
						   : find_group(l, section,
								"default");
	}
	if (t->of_portals && t->t->auth != t->of_portals)
		import_note(l->m, section,
			    "target %s: the auth group of a portal group is "
			    "not carried over: a target of iserd has one, here "
			    "%s; divide the target if that matters",
			    t->t->name, t->t->auth->name);
}

static void take_target(struct ctl *l, const struct tree *section)
{
	struct target t = { .t = import_target_new(l->m, section,
						   section->key) };
	const char *colon = strrchr(section->key, ':');

	if (!t.t)
		return;
	t.rules.auth = import_auth_new(l->m, colon && colon[1] ? colon + 1
							       : section->key);
	for (const struct tree *c = section->first; c; c = c->next)
		take_statement(l, &t, c);
	end_access(l, &t, section);
	if (!t.t->portals.n && t.has_port) {
		import_note(l->m, section,
			    "target %s: left out: it has no portal-group, only "
			    "ports of CTL; keep ctld for it",
			    t.t->name);
		import_target_drop(l->m, t.t);
		return;
	}
	if (!t.t->portals.n)
		add_portal(l, &t, section, "default", NULL);
	if (!t.t->luns.n)
		import_note(l->m, section,
			    "target %s: has no LUN; add one, or remove the "
			    "target",
			    t.t->name);
}

/* ---- the file ---- */

typedef void take_section(struct ctl *l, const struct tree *section);

static void take_named_lun(struct ctl *l, const struct tree *section)
{
	pool_put(&l->m->pool, &of_lun, section->key,
		 take_lun(l, section, section->key));
}

/* Calls f for each section of this keyword. */
static void each_section(struct ctl *l, const struct tree *file,
			 const char *keyword, take_section *f)
{
	for (const struct tree *c = file->first; c; c = c->next) {
		if (!is_key(c, keyword))
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

static void note_globals(struct ctl *l, const struct tree *file)
{
	static const char *const sections[] = { "auth-group", "portal-group",
						"lun", "target" };
	static const char *const harmless[] = { "debug", "timeout", "maxproc",
						"pidfile" };

	for (const struct tree *c = file->first; c; c = c->next) {
		bool known = false, simple = false;

		for (size_t i = 0; i < ARRAY_LEN(sections); i++)
			known |= is_key(c, sections[i]);
		for (size_t i = 0; i < ARRAY_LEN(harmless); i++)
			simple |= is_key(c, harmless[i]);
		if (simple)
			import_note(l->m, c,
				    "%s %s: not carried over: see the section "
				    "daemon and the options of iserd(8); "
				    "nothing to do",
				    c->key, text_of(c));
		else if (!known)
			import_note(l->m, c,
				    "%s: left out: iserd does not have it; see "
				    "ctl.conf(5)",
				    c->key ? c->key : "?");
	}
}

void import_ctl(struct import_model *m, const struct tree *file)
{
	struct ctl l = { .m = m };

	note_globals(&l, file);
	each_section(&l, file, "auth-group", take_group);
	each_section(&l, file, "portal-group", take_portal);
	each_section(&l, file, "lun", take_named_lun);
	each_section(&l, file, "target", take_target);
}
