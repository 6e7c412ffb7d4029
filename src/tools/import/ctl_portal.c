/* SPDX-License-Identifier: BSD-2-Clause */
/* ctl_portal.c: the portal groups of ctld. */
#include "tools/import/ctl.h"

/* An address of a portal group. */
struct place {
	struct place *next;
	const struct tree *at;
	const char *address;
	bool is_iser;
};

/* In the pool: its members are the scopes of the addresses. */
struct places {
	struct place *first, *last;
	bool is_iser; /* of the next one */
};

/* Takes ADDRESS or ADDRESS:PORT. NULL: it is not numeric. */
const char *ctl_address_of(struct ctl *l, const char *text)
{
	const char *end = text + strlen(text), *colon = strrchr(text, ':');
	const char *bracket = strchr(text, ']');
	bool has_port = bracket ? colon && colon == bracket + 1
				: colon && colon == strchr(text, ':');

	end = has_port ? colon : end;
	return import_listen(l->m,
			     pool_copy(&l->m->pool, text, (size_t)(end - text)),
			     has_port ? colon + 1 : "3260");
}

/* Returns whether the addresses of a transport have this one. */
static bool has_place(struct ctl *l, const struct places *all,
		      const char *address, bool is_iser)
{
	return pool_get(&l->m->pool, is_iser ? &all->last : &all->first,
			address);
}

static void take_listen(struct ctl *l, void *arg, const struct tree *value)
{
	struct places *all = arg;
	struct place *p = pool_alloc(&l->m->pool, sizeof(*p));

	p->at = value;
	p->address = ctl_address_of(l, ctl_text_of(value));
	p->is_iser = all->is_iser;
	if (!p->address) {
		import_note(l->m, value,
			    "listen %s: left out: not a numeric address; give "
			    "the address of the host name",
			    ctl_text_of(value));
		return;
	}
	pool_put(&l->m->pool, p->is_iser ? &all->last : &all->first, p->address,
		 p);
	if (all->last)
		all->last->next = p;
	else
		all->first = p;
	all->last = p;
}

static void listen_at(struct ctl *l, struct import_portal *p,
		      const struct place *place)
{
	const struct import_portal *other =
		import_portal_of(l->m, place->address);

	if (!other)
		import_portal_listen(l->m, p, place->address);
	else if (other != p)
		import_note(l->m, place->at,
			    "listen %s: left out: the portal group %s has this "
			    "address; use that group in the targets",
			    place->address, other->name);
}

/* Gives a portal group its addresses, and a second one those that have iSER
 * only. */
static void take_places(struct ctl *l, struct ctl_group *g,
			const struct tree *section, const struct places *all)
{
	const char *name = section->key;
	bool has_tcp = false, has_iser = false, is_same = true;

	for (const struct place *p = all->first; p; p = p->next) {
		*(p->is_iser ? &has_iser : &has_tcp) = true;
		is_same &= has_place(l, all, p->address, !p->is_iser);
	}
	g->tcp = import_portal_new(l->m, section, name);
	g->tcp->transport = is_same && has_tcp	   ? "tcp, iser"
			    : has_iser && !has_tcp ? "iser"
						   : "tcp";
	if (has_iser && has_tcp && !is_same) {
		g->iser = import_portal_new(l->m, section,
					    pool_format(&l->m->pool, "%s-iser",
							name));
		g->iser->transport = "iser";
	}
	for (const struct place *p = all->first; p; p = p->next) {
		if (!p->is_iser || !g->iser)
			listen_at(l, g->tcp, p);
		else if (!has_place(l, all, p->address, false))
			listen_at(l, g->iser, p);
		else
			import_note(l->m, p->at,
				    "listen-iser %s: left out: the other "
				    "addresses of the portal group do not have "
				    "both transports; make it a portal group "
				    "of its own",
				    p->address);
	}
}

static void take_tag(struct ctl *l, struct import_portal *p,
		     const struct tree *t)
{
	unsigned long tag;

	if (!import_number(ctl_text_of(t), 65535, &tag) || !tag) {
		import_note(l->m, t,
			    "tag %s: not carried over: not 1 to 65535; "
			    "the tag is %u",
			    ctl_text_of(t), p->tag);
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
	if (!strcmp(ctl_text_of(t), "portal-name") ||
	    !strcmp(ctl_text_of(t), "portal-name-auth"))
		p->discovery = NULL; /* iserd's default, permitted */
	else if (strcmp(ctl_text_of(t), "none") != 0) {
		p->discovery = NULL;
		import_note(l->m, t,
			    "discovery-filter %s: iserd reports the targets "
			    "that the initiator may log in to by its address "
			    "and name; set discovery of the portal group for "
			    "another rule",
			    ctl_text_of(t));
	}
}

/* The auth group of discovery sessions. ctld accepts one. */
static const struct import_auth *discovery_auth(struct ctl *l,
						const struct tree *section)
{
	const struct import_auth *auth = NULL, *a;

	for (const struct tree *c = section->first; c; c = c->next) {
		if (!ctl_is_key(c, "discovery-auth-group"))
			continue;
		a = ctl_find_group(l, c, ctl_text_of(c));
		if (auth && a != auth)
			import_note(l->m, c,
				    "portal-group %s: no discovery sessions: "
				    "there are several discovery-auth-groups, "
				    "of which ctld accepts one; repair the "
				    "file",
				    section->key);
		auth = auth && a != auth ? &import_none : a;
	}
	return auth ? auth : &import_none;
}

/* Sets what both parts of a portal group have. */
static void set_discovery(struct ctl *l, const struct tree *section,
			  struct import_portal *p)
{
	const struct import_auth *auth = discovery_auth(l, section);

	p->discovery = "all"; /* ctld's default filter is none */
	for (const struct tree *c = section->first; c; c = c->next)
		if (ctl_is_key(c, "discovery-filter"))
			take_filter(l, p, c);
	if (auth == &import_none)
		p->discovery = "none";
	else if (auth != &import_any)
		p->discovery_auth = auth;
}

/* Other machines serve a foreign group, and targets that have it are not served
 * here. */
static void note_foreign(struct ctl *l, const struct tree *section)
{
	import_note(l->m, section,
		    "portal-group %s: left out: it is foreign, so ctld only "
		    "announces it and does not listen; iserd announces other "
		    "gateways by the section cluster",
		    section->key);
}

void ctl_take_portal(struct ctl *l, const struct tree *section)
{
	struct ctl_group *g =
		pool_get(&l->m->pool, &ctl_of_portal, section->key);
	struct places *all = pool_alloc(&l->m->pool, sizeof(*all));

	if (g) {
		import_note(l->m, section,
			    "portal-group %s: there are two of them; targets "
			    "are not served there: repair the file",
			    section->key);
		g->unusable = "there are two of its name";
		return;
	}
	g = pool_alloc(&l->m->pool, sizeof(*g));
	import_settings(l->m, section, section->key,
			&import_ctl_tables[CTL_PORTAL]);
	pool_put(&l->m->pool, &ctl_of_portal, section->key, g);
	g->redirect = tree_text(section, "redirect");
	if (tree_find(section, "foreign")) {
		g->unusable = "it is foreign";
		note_foreign(l, section);
		return;
	}
	for (const struct tree *c = section->first; c; c = c->next) {
		all->is_iser = ctl_is_key(c, "listen-iser");
		if (all->is_iser || ctl_is_key(c, "listen"))
			ctl_each_value(l, c, take_listen, all);
	}
	take_places(l, g, section, all);
	set_discovery(l, section, g->tcp);
	if (g->iser)
		set_discovery(l, section, g->iser);
	for (const struct tree *c = section->first; c; c = c->next)
		if (ctl_is_key(c, "tag"))
			take_tag(l, g->tcp, c);
}

/* The portal group "default" exists without being defined: ctld listens at port
 * 3260 of all addresses then, and denies discovery. */
const struct ctl_group *ctl_default_portal(struct ctl *l, const struct tree *at)
{
	static const char *const all[] = { "0.0.0.0:3260", "[::]:3260" };
	struct ctl_group *g = pool_alloc(&l->m->pool, sizeof(*g));

	pool_put(&l->m->pool, &ctl_of_portal, "default", g);
	g->tcp = import_portal_new(l->m, at, "default");
	g->tcp->discovery = "none";
	g->tcp->transport = "tcp";
	for (size_t i = 0; i < 2; i++) {
		const struct place p = { .at = at, .address = all[i] };

		listen_at(l, g->tcp, &p);
	}
	return g;
}
