/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tgt.c: what targets.conf (targets.conf(5)) means to tgt-admin, as a
 * configuration of iserd. The LUNs get the numbers that tgt-admin gives them:
 * from 1 on, backing-store before direct-store, each in the order of the paths.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "tools/import/model.h"

/* A store of a target: a directive, or a block with options. */
struct store {
	const struct tree *node;
	bool is_direct;
};

/* A directive that iserd does not need, or does not have, and what the
 * administrator can do about it. */
struct refusal {
	const char *key, *why;
};

static const struct refusal global_refusals[] = {
	{ "control-port", "iserd has a control socket; give its path as "
			  "control in the section daemon" },
	{ "ignore-errors", "iserd applies all of a configuration or nothing; "
			   "nothing to do" },
	{ "iSNS", "iserd does not register with iSNS; use SendTargets" },
	{ "iSNSServerIP",
	  "iserd does not register with iSNS; use SendTargets" },
	{ "iSNSServerPort",
	  "iserd does not register with iSNS; use SendTargets" },
	{ "iSNSAccessControl",
	  "iserd does not ask iSNS; give initiators in an auth group" },
};

static const char negotiated[] =
	"iserd negotiates this key with each initiator; nothing to do";
static const char own_pages[] =
	"iserd reports its own values; nothing to do unless an initiator "
	"depends on this one";

static const struct refusal target_refusals[] = {
	{ "controller_tid", "iserd has no target numbers and no controller "
			    "LUN; nothing to do" },
	{ "MaxRecvDataSegmentLength", negotiated },
	{ "MaxXmitDataSegmentLength", negotiated },
	{ "InitialR2T", negotiated },
	{ "MaxOutstandingR2T", negotiated },
	{ "ImmediateData", negotiated },
	{ "FirstBurstLength", negotiated },
	{ "MaxBurstLength", negotiated },
	{ "DataPDUInOrder", negotiated },
	{ "DataSequenceInOrder", negotiated },
	{ "ErrorRecoveryLevel", negotiated },
	{ "IFMarker", negotiated },
	{ "OFMarker", negotiated },
	{ "DefaultTime2Wait", negotiated },
	{ "DefaultTime2Retain", negotiated },
	{ "OFMarkInt", negotiated },
	{ "IFMarkInt", negotiated },
	{ "MaxConnections", negotiated },
};

static const struct refusal store_refusals[] = {
	{ "scsi_id", own_pages },
	{ "sense_format", "iserd follows the mode page that the initiator "
			  "sets; nothing to do" },
	{ "mode_page", own_pages },
	{ "params", "iserd does not have these parameters; see iserd(8) for "
		    "those of a backstore" },
	{ "path", "iserd does not have this parameter; nothing to do" },
	{ "lbppbe", own_pages },
	{ "la_lba", own_pages },
	{ "optimal_xfer_gran", own_pages },
	{ "optimal_xfer_len", own_pages },
	{ "bsopts", "iserd has no such backing store; nothing to do" },
};

static bool is_refused(struct import_model *m, const struct tree *t,
		       const struct refusal *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i].key, t->key)) {
			import_note(m, t, "%s %s: not carried over: %s", t->key,
				    t->text, list[i].why);
			return true;
		}
	return false;
}

static bool is_key(const struct tree *t, const char *key)
{
	return !strcmp(t->key, key);
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
	import_auth_account(m, a, t, pool_copy(&m->pool, t->text, name),
			    pool_copy(&m->pool, secret, len), is_mutual);
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
		if (c->kind != TREE_SCALAR || !is_key(c, "initiator-address"))
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
		if (is_key(c, "incominguser"))
			take_account(m, a, c, false);
		else if (is_key(c, "outgoinguser"))
			take_account(m, a, c, true);
		else if (is_key(c, "initiator-address") && !all)
			import_auth_address(m, a, c, c->text);
		else if (is_key(c, "initiator-name"))
			take_name(m, a, c, all);
	}
	t->auth = import_auth_done(m, block, a);
}

/* ---- stores ---- */

/* The scope of the first directive of each name in a target. */
static const void *options_of(const struct tree *block)
{
	return &block->first;
}

/* Notes the first directive of each name, for store_option. */
static void index_options(struct import_model *m, const struct tree *block)
{
	for (struct tree *c = block->first; c; c = c->next)
		if (c->kind == TREE_SCALAR &&
		    !pool_get(&m->pool, options_of(block), c->key))
			pool_put(&m->pool, options_of(block), c->key, c);
}

/* The option of a store: in its block, else in the target. */
static const struct tree *store_option(const struct import_model *m,
				       const struct tree *node,
				       const struct tree *block,
				       const char *key)
{
	const struct tree *t = NULL;

	if (node->kind == TREE_OBJECT)
		t = tree_find(node, key);
	if (t && t->kind == TREE_SCALAR)
		return t;
	return pool_get(&m->pool, options_of(block), key);
}

static const char *store_text(const struct import_model *m,
			      const struct tree *node, const struct tree *block,
			      const char *key)
{
	const struct tree *t = store_option(m, node, block, key);

	return t && *t->text ? t->text : NULL;
}

static bool is_true(const char *text)
{
	return text && (!strcmp(text, "1") || !strcasecmp(text, "yes") ||
			!strcasecmp(text, "on") || !strcasecmp(text, "true"));
}

/* "store:" for a path with its types, or NULL after a note. */
static const char *store_of(struct import_model *m, const struct tree *node,
			    const struct tree *block)
{
	const struct tree *type = store_option(m, node, block, "device-type");
	const struct tree *bs = store_option(m, node, block, "bs-type");
	const char *path = node->text;

	if ((bs && !strcmp(bs->text, "sg")) ||
	    (type && !strcmp(type->text, "pt")))
		return pool_format(&m->pool, "scsi:%s", path);
	if (bs && strcmp(bs->text, "rdwr") != 0 &&
	    strcmp(bs->text, "aio") != 0 && strcmp(bs->text, "mmc") != 0) {
		import_note(m, bs,
			    "%s: left out: iserd does not have the backing "
			    "store type %s; serve a file or a block device",
			    path, bs->text);
		return NULL;
	}
	if (!type || !strcmp(type->text, "disk"))
		return path;
	if (!strcmp(type->text, "cd"))
		return pool_format(&m->pool, "cd:%s", path);
	import_note(m, type,
		    "%s: left out: iserd does not have devices of type %s; "
		    "keep tgt for this one",
		    path, type->text);
	return NULL;
}

static void take_cache(struct import_model *m, const struct tree *node,
		       const struct tree *block)
{
	const struct tree *cache = store_option(m, node, block, "write-cache");
	const struct tree *flags = store_option(m, node, block, "bsoflags");

	if (cache && !strcmp(cache->text, "off"))
		import_no_write_through(m, cache, node->text);
	else if (cache && strcmp(cache->text, "on") != 0)
		import_note(m, cache,
			    "write-cache %s: not carried over: neither on nor "
			    "off; nothing to do",
			    cache->text);
	if (flags && strstr(flags->text, "sync"))
		import_no_write_through(m, flags, node->text);
}

/* Notes each option of the store that iserd does not have. */
static void note_options(struct import_model *m, const struct tree *node)
{
	static const char *const known[] = {
		"write-cache", "vendor_id",  "product_id", "product_rev",
		"scsi_sn",     "removable",  "readonly",   "device-type",
		"bs-type",     "block-size", "bsoflags",   "allow-in-use",
		"lun",	       "online",
	};

	for (const struct tree *c = node->first; c; c = c->next) {
		bool ok = false;

		for (size_t i = 0; i < ARRAY_LEN(known); i++)
			ok |= is_key(c, known[i]);
		if (ok || c->kind != TREE_SCALAR ||
		    is_refused(m, c, store_refusals, ARRAY_LEN(store_refusals)))
			continue;
		import_note(m, c,
			    "%s: not carried over: unknown option of a "
			    "store; see targets.conf(5)",
			    c->key);
	}
}

static struct import_unit *new_unit(struct import_model *m,
				    const struct store *s,
				    const struct tree *block, const char *store)
{
	const struct tree *node = s->node, *size, *online;
	const char *slash = strrchr(node->text, '/');
	struct import_unit *u = import_unit_new(
		m, node, slash && slash[1] ? slash + 1 : node->text, store);

	if (!u)
		return NULL;
	u->vendor = store_text(m, node, block, "vendor_id");
	u->product = store_text(m, node, block, "product_id");
	u->revision = store_text(m, node, block, "product_rev");
	u->serial = store_text(m, node, block, "scsi_sn");
	u->removable = is_true(store_text(m, node, block, "removable"));
	u->read_only = is_true(store_text(m, node, block, "readonly"));
	take_cache(m, node, block);
	size = store_option(m, node, block, "block-size");
	if (size)
		import_block_size(m, u, size, size->text);
	online = store_option(m, node, block, "online");
	if (online && !is_true(online->text))
		import_note(m, online,
			    "online %s: not carried over: every LUN "
			    "of iserd is online; remove the LUN",
			    online->text);
	if (s->is_direct && !u->vendor && !u->product && !u->serial)
		import_note(m, node,
			    "direct-store %s: the identity of the device is "
			    "not carried over; give vendor, product, revision "
			    "and serial as sg_inq %s prints them",
			    node->text, node->text);
	return u;
}

/* A store that is in a target already keeps the options that it got there:
 * one file is one backstore. */
static struct import_unit *take_unit(struct import_model *m,
				     const struct store *s,
				     const struct tree *block)
{
	const char *store = store_of(m, s->node, block);
	struct import_unit *u = store ? import_unit_of(m, store) : NULL;

	if (!store)
		return NULL;
	if (s->node->kind == TREE_OBJECT)
		note_options(m, s->node);
	if (u) {
		import_note(m, s->node,
			    "%s: one backstore for all targets, with the "
			    "options of line %u; check that initiators may "
			    "share it",
			    store, u->at->line);
		return u;
	}
	return new_unit(m, s, block, store);
}

/* ---- LUN numbers ---- */

static int compare_stores(const void *a, const void *b)
{
	const struct store *x = a, *y = b;

	if (x->is_direct != y->is_direct)
		return x->is_direct ? 1 : -1;
	return strcmp(x->node->text, y->node->text);
}

/* The stores of a target in the order of tgt-admin, each path once. */
static struct store *sorted_stores(struct import_model *m,
				   const struct tree *block, size_t *n)
{
	struct store *list;
	size_t out = 0, in = 0;

	for (const struct tree *c = block->first; c; c = c->next)
		in++;
	list = pool_alloc(&m->pool, (in + 1) * sizeof(*list));
	in = 0;
	for (const struct tree *c = block->first; c; c = c->next)
		if (is_key(c, "backing-store") || is_key(c, "direct-store"))
			list[in++] =
				(struct store){ c, is_key(c, "direct-store") };
	qsort(list, in, sizeof(*list), compare_stores);
	for (size_t i = 0; i < in; i++)
		if (!out || compare_stores(&list[out - 1], &list[i]))
			list[out++] = list[i];
	*n = out;
	return list;
}

/* The number that the block of a store gives. */
static bool own_number(struct import_model *m, const struct tree *node,
		       unsigned long *lun)
{
	const struct tree *t =
		node->kind == TREE_OBJECT ? tree_find(node, "lun") : NULL;

	if (!t || t->kind != TREE_SCALAR)
		return false;
	if (import_number(t->text, 65535, lun))
		return true;
	import_note(m, t, "lun %s: not a number; the next free number is used",
		    t->text);
	return false;
}

static void take_stores(struct import_model *m, struct import_target *t,
			const struct tree *block)
{
	const char *fixed = tree_text(block, "lun");
	bool used[65536] = { false };
	unsigned long lun, next = 1, all = 0;
	struct store *list;
	bool has_all = fixed && import_number(fixed, 65535, &all);
	size_t n;

	list = sorted_stores(m, block, &n);
	for (size_t i = 0; i < n; i++)
		if (own_number(m, list[i].node, &lun))
			used[lun] = true;
	for (size_t i = 0; i < n; i++) {
		struct import_unit *u = take_unit(m, &list[i], block);

		if (!own_number(m, list[i].node, &lun)) {
			while (next < 65536 && used[next])
				next++;
			lun = next;
			if (next < 65536)
				used[next] = true;
		}
		if (u)
			import_lun_add(m, &t->luns, list[i].node,
				       has_all ? all : lun, u, false);
	}
}

/* ---- targets and the file ---- */

static void take_digest(struct import_model *m, struct import_target *t,
			const struct tree *c)
{
	if (!strncasecmp(c->text, "CRC32C", 6))
		t->prefers_digests = true;
	else if (strcasecmp(c->text, "None") != 0)
		import_note(m, c,
			    "%s %s: not carried over: neither None nor "
			    "CRC32C; set digests of the target",
			    c->key, c->text);
}

/* A directive of a target that is neither a store nor an access rule. */
static void take_directive(struct import_model *m, struct import_target *t,
			   const struct tree *c)
{
	static const char *const elsewhere[] = {
		"backing-store",
		"direct-store",
		"incominguser",
		"outgoinguser",
		"initiator-address",
		"initiator-name",
		"lun",
		"write-cache",
		"vendor_id",
		"product_id",
		"product_rev",
		"scsi_sn",
		"removable",
		"readonly",
		"device-type",
		"bs-type",
		"block-size",
		"bsoflags",
		"allow-in-use",
		"online",
	};

	for (size_t i = 0; i < ARRAY_LEN(elsewhere); i++)
		if (is_key(c, elsewhere[i]))
			return;
	if (is_key(c, "HeaderDigest") || is_key(c, "DataDigest"))
		take_digest(m, t, c);
	else if (is_key(c, "driver") && !strcmp(c->text, "iscsi"))
		return;
	else if (is_key(c, "driver") || is_key(c, "state"))
		import_note(m, c,
			    "%s %s: not carried over: iserd serves each target "
			    "over TCP and RDMA as long as it is configured; "
			    "set transport of the portal group to restrict it",
			    c->key, c->text);
	else if (!is_refused(m, c, target_refusals,
			     ARRAY_LEN(target_refusals)) &&
		 !is_refused(m, c, store_refusals, ARRAY_LEN(store_refusals)))
		import_note(m, c,
			    "%s: not carried over: unknown directive of "
			    "a target; see targets.conf(5)",
			    c->key);
}

static void take_target(struct import_model *m, const struct tree *block,
			const struct import_portal *portal)
{
	struct import_target *t = import_target_new(m, block, block->text);

	if (!t)
		return;
	import_texts_add(m, &t->portals, portal->name);
	index_options(m, block);
	take_access(m, t, block);
	for (const struct tree *c = block->first; c; c = c->next)
		if (c->kind == TREE_SCALAR)
			take_directive(m, t, c);
	take_stores(m, t, block);
	if (!t->luns.n)
		import_note(m, block,
			    "target %s: has no LUN; add one, or remove the "
			    "target",
			    t->name);
}

/* tgtd listens at port 3260 of all addresses; its portals are not in the
 * file. */
static struct import_portal *make_portal(struct import_model *m,
					 const struct tree *file)
{
	struct import_portal *p = import_portal_new(m, "default");
	struct import_auth *a = NULL;

	import_texts_add(m, &p->listen, "0.0.0.0:3260");
	import_texts_add(m, &p->listen, "[::]:3260");
	for (const struct tree *c = file->first; c; c = c->next) {
		bool is_mutual = is_key(c, "outgoingdiscoveryuser");

		if (c->kind != TREE_SCALAR ||
		    !(is_mutual || is_key(c, "incomingdiscoveryuser")))
			continue;
		if (!a)
			a = import_auth_new(m, "discovery");
		take_account(m, a, c, is_mutual);
	}
	p->discovery_auth = a ? import_auth_done(m, file, a) : NULL;
	return p;
}

void import_tgt(struct import_model *m, const struct tree *file)
{
	const struct import_portal *portal = make_portal(m, file);

	for (const struct tree *c = file->first; c; c = c->next) {
		if (c->kind == TREE_OBJECT && is_key(c, "target"))
			take_target(m, c, portal);
		else if (c->kind == TREE_OBJECT)
			import_note(m, c,
				    "<%s>: left out: unknown block; see "
				    "targets.conf(5)",
				    c->key);
		else if (is_key(c, "default-driver") &&
			 strcmp(c->text, "iscsi") != 0)
			import_note(m, c,
				    "default-driver %s: not carried over: "
				    "iserd serves each target over TCP and "
				    "RDMA; set transport of the portal group "
				    "to restrict it",
				    c->text);
		else if (!is_key(c, "default-driver") &&
			 !is_key(c, "incomingdiscoveryuser") &&
			 !is_key(c, "outgoingdiscoveryuser") &&
			 !is_refused(m, c, global_refusals,
				     ARRAY_LEN(global_refusals)))
			import_note(m, c,
				    "%s: not carried over: unknown "
				    "directive; see targets.conf(5)",
				    c->key);
	}
}
