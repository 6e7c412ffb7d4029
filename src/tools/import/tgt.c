/* SPDX-License-Identifier: BSD-2-Clause */
/* tgt.c: what targets.conf (targets.conf(5)) means to tgt-admin, as a configuration
 * of iserd. */
#include <strings.h>

#include "daemon/config/fields.h"
#include "tools/import/tgt.h"

/* The portal groups: tgtd listens at port 3260 of all addresses for each driver. */
struct tgt {
	struct import_model *m;
	const char *driver; /* of a target that does not name one */
	bool has_tcp, has_iser;
	bool is_restricted; /* iSNS says which initiators may log in */
	struct import_portal *portal, *iser;
};

/* The scope of the numbers of targets. */
static const char by_number;

bool tgt_is_key(const struct tree *t, const char *key)
{
	return !strcmp(t->key, key);
}

bool tgt_is_store(const struct tree *t)
{
	return tgt_is_key(t, "backing-store") || tgt_is_key(t, "direct-store");
}

/* ---- access ---- */

/* "incominguser NAME SECRET" and the like. */
static void take_account(struct import_model *m, struct import_auth *a,
			 const struct tree *t, bool is_mutual)
{
	size_t name = strcspn(t->text, " "), gap = strspn(t->text + name, " ");
	const char *secret = t->text + name + gap;
	size_t len = strcspn(secret, " ");

	if (!len) {
		if (!is_mutual)
			a->by_account = true;
		import_note(m, t,
			    "%s: left out: the line has no secret; write "
			    "%s NAME SECRET",
			    t->key, t->key);
		return;
	}
	if (secret[len])
		import_note(m, t,
			    "%s: the words after the secret are left "
			    "out, as tgt-admin does; nothing to do",
			    t->key);
	secret = pool_copy(&m->pool, secret, len);
	if (is_mutual)
		import_auth_mutual(m, a, t, pool_copy(&m->pool, t->text, name),
				   secret);
	else
		import_auth_account(m, a, t, pool_copy(&m->pool, t->text, name),
				    secret, NULL);
}

/* A name for what belongs to a target: what follows its last colon. */
static const char *short_name(const char *target)
{
	const char *colon = strrchr(target, ':');

	return colon && colon[1] ? colon + 1 : target;
}

/* Whether each address may log in: by ALL, or because the file names none, when
 * tgt-admin adds ALL. */
static bool has_all_addresses(const struct tree *block)
{
	bool has_some = false;

	for (const struct tree *c = block->first; c; c = c->next) {
		if (c->kind != TREE_SCALAR ||
		    !tgt_is_key(c, "initiator-address"))
			continue;
		if (!strcmp(c->text, "ALL"))
			return true;
		has_some = true;
	}
	return !has_some;
}

/* tgt admits an initiator by its address or by its name, an auth group of iserd
 * by both. So names with ALL have no effect in tgt, and names with other addresses
 * cannot be carried over. */
static void take_name(struct import_model *m, struct import_auth *a,
		      const struct tree *c, bool all_addresses)
{
	if (!all_addresses) {
		import_note(m, c,
			    "initiator-name %s: left out: tgt admits an "
			    "initiator by its address or by its name, iserd by "
			    "both; add the address of this initiator to the "
			    "auth group",
			    c->text);
		return;
	}
	if (!a->by_name)
		import_note(m, c,
			    "initiator-name: tgt admits all initiators "
			    "nevertheless, as it admits all addresses; iserd "
			    "admits those with such a name only: remove "
			    "initiators of the auth group to admit all");
	import_auth_name(m, a, c, c->text);
}

static void take_access(struct import_model *m, struct import_target *t,
			const struct tree *block)
{
	struct import_auth *a = import_auth_new(m, short_name(t->name));
	bool all = has_all_addresses(block);

	for (const struct tree *c = block->first; c; c = c->next) {
		if (c->kind != TREE_SCALAR)
			continue;
		if (tgt_is_key(c, "incominguser"))
			take_account(m, a, c, false);
		else if (tgt_is_key(c, "outgoinguser"))
			take_account(m, a, c, true);
		else if (tgt_is_key(c, "initiator-address") && !all)
			import_auth_address(m, a, c, c->text);
		else if (tgt_is_key(c, "initiator-name"))
			take_name(m, a, c, all);
	}
	t->auth = import_auth_done(m, block, a);
}

/* ---- targets ---- */

static const char *driver_of(const struct tgt *g, const struct tree *block)
{
	const char *driver = tree_text(block, "driver");

	return driver ? driver : g->driver;
}

static void take_digest(struct import_model *m, struct import_target *t,
			const struct tree *block, const char *key)
{
	const struct tree *c = tree_find(block, key);
	const char *text = tree_text(block, key);

	if (!text)
		return;
	if (!strncasecmp(text, "CRC32C", 6))
		t->prefers_digests = true;
	else if (strncasecmp(text, "None", 4) != 0)
		import_note(m, c,
			    "%s %s: not carried over: neither None nor "
			    "CRC32C; set digests of the target",
			    key, text);
	if (!strcasecmp(text, "CRC32C"))
		import_demand_digests(m, t, c);
}

/* The number of the target, which tgtadm and iser-tgtadm use. */
static void take_number(struct import_model *m, struct import_target *t,
			const struct tree *block)
{
	const struct tree *c = tree_find(block, "controller_tid");
	const char *text = tree_text(block, "controller_tid");
	unsigned long number;
	char *key;

	if (!text)
		return;
	if (!import_number(text, cfg_field_max("target", "tgt-id"), &number) ||
	    !number) {
		import_note(m, c,
			    "controller_tid %s: not carried over: not a number "
			    "of a target; nothing to do",
			    text);
		return;
	}
	key = pool_format(&m->pool, "%lu", number);
	if (pool_get(&m->pool, &by_number, key)) {
		import_note(m, c,
			    "controller_tid %s: not carried over: another "
			    "target has this number; choose another one",
			    text);
		return;
	}
	pool_put(&m->pool, &by_number, key, t);
	t->number = number;
}

/* What closes the target: a state, or a block that tgt-admin cannot read. */
static void take_state(struct tgt *g, struct import_target *t,
		       const struct tree *block)
{
	const struct tree *state = tree_find(block, "state");

	if (state && state->kind == TREE_SCALAR &&
	    strcmp(state->text, "ready") != 0) {
		import_note(g->m, state,
			    "state %s: the target %s admits no initiator; give "
			    "it an auth group to bring it online",
			    state->text, t->name);
		t->auth = &import_none;
	}
	for (const struct tree *c = block->first; c; c = c->next) {
		if (c->kind == TREE_SCALAR || tgt_is_store(c))
			continue;
		import_note(g->m, c,
			    "<%s>: not a block that tgt-admin reads; the "
			    "target %s admits no initiator: repair the file",
			    c->key, t->name);
		t->auth = &import_none;
	}
	if (g->is_restricted)
		t->auth = &import_none; /* after the note on the directive */
}

/* A target over RDMA beside others over TCP gets a portal group of its own: it
 * was not reachable at their addresses. */
static void take_portal(struct tgt *g, struct import_target *t,
			const struct tree *block, bool is_iser)
{
	if (is_iser && g->has_tcp) {
		import_note(g->m, block,
			    "driver iser of %s: its portal group listens at "
			    "127.0.0.1 only: put the addresses of the RDMA "
			    "network in listen of the portal group %s",
			    t->name, g->iser->name);
		import_texts_add(g->m, &t->portals, g->iser->name);
	} else {
		import_texts_add(g->m, &t->portals, g->portal->name);
	}
}

static void take_target(struct tgt *g, const struct tree *block)
{
	const char *driver = driver_of(g, block);
	bool is_iser = !strcmp(driver, "iser");
	struct import_target *t;

	if (!is_iser && strcmp(driver, "iscsi") != 0) {
		import_note(g->m, block,
			    "target %s: left out: iserd does not have the "
			    "driver %s; keep tgt for it",
			    block->text, driver);
		return;
	}
	t = import_target_new(g->m, block, block->text);
	if (!t)
		return;
	import_settings(g->m, block, t->name, &import_tgt_tables[TGT_TARGET]);
	take_portal(g, t, block, is_iser);
	take_access(g->m, t, block);
	take_state(g, t, block);
	take_digest(g->m, t, block, "HeaderDigest");
	take_digest(g->m, t, block, "DataDigest");
	take_number(g->m, t, block);
	import_max_connections(g->m, t, tree_find(block, "MaxConnections"));
	import_recovery_level(g->m, t, tree_find(block, "ErrorRecoveryLevel"));
	tgt_take_stores(g->m, t, block);
	if (!t->luns.n)
		import_note(g->m, block,
			    "target %s: has no LUN; add one, or remove the "
			    "target",
			    t->name);
}

/* ---- the file ---- */

static void make_portals(struct tgt *g, const struct tree *file,
			 const struct import_auth *discovery)
{
	struct import_portal *p = import_portal_new(g->m, file, "default");

	import_texts_add(g->m, &p->listen, "0.0.0.0:3260");
	import_texts_add(g->m, &p->listen, "[::]:3260");
	p->transport = g->has_iser && !g->has_tcp ? "iser" : "tcp";
	p->discovery_auth = discovery;
	g->portal = p;
	if (!g->has_iser || !g->has_tcp)
		return;
	g->iser = import_portal_new(g->m, file, "iser");
	import_texts_add(g->m, &g->iser->listen, "127.0.0.1:0");
	g->iser->transport = "iser";
	g->iser->discovery_auth = discovery;
}

static const struct import_auth *take_discovery(struct import_model *m,
						const struct tree *file)
{
	struct import_auth *a = NULL;

	for (const struct tree *c = file->first; c; c = c->next) {
		bool is_mutual = tgt_is_key(c, "outgoingdiscoveryuser");

		if (c->kind != TREE_SCALAR ||
		    !(is_mutual || tgt_is_key(c, "incomingdiscoveryuser")))
			continue;
		if (!a)
			a = import_auth_new(m, "discovery");
		take_account(m, a, c, is_mutual);
	}
	return a ? import_auth_done(m, file, a) : NULL;
}

/* What the file says for all targets. */
static void take_globals(struct tgt *g, const struct tree *file)
{
	const struct tree *isns = tree_find(file, "iSNSAccessControl");
	const char *driver = tree_text(file, "default-driver");

	import_settings(g->m, file, "the file", &import_tgt_tables[TGT_FILE]);
	g->driver = driver ? driver : "iscsi";
	g->is_restricted = isns && !(isns->kind == TREE_SCALAR &&
				     !strcasecmp(isns->text, "Off"));
	if (g->is_restricted)
		import_note(g->m, isns,
			    "iSNSAccessControl: iserd does not ask iSNS which "
			    "initiators may log in, so all targets have the "
			    "auth group none, which admits no initiator; write "
			    "auth groups by hand");
	for (const struct tree *c = file->first; c; c = c->next) {
		if (c->kind != TREE_OBJECT || !tgt_is_key(c, "target"))
			continue;
		g->has_iser |= !strcmp(driver_of(g, c), "iser");
		g->has_tcp |= !strcmp(driver_of(g, c), "iscsi");
	}
}

void import_tgt(struct import_model *m, const struct tree *file)
{
	struct tgt g = { .m = m };

	take_globals(&g, file);
	make_portals(&g, file, take_discovery(m, file));
	for (const struct tree *c = file->first; c; c = c->next)
		if (c->kind == TREE_OBJECT && tgt_is_key(c, "target"))
			take_target(&g, c);
	import_note_names(m, "scsi_id",
			  "tgt's name has the numbers of target and LUN, as "
			  "the disks of other machines with tgt: to keep it, "
			  "give naa: 60000000000000000e000000TTTTLLLL with "
			  "both numbers in four hexadecimal digits");
}
