/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tgt_store.c: the stores of a target of tgt as backstores and LUNs. The LUNs get
 * the numbers that tgt-admin gives them: from 1 on, backing-store before
 * direct-store, each in the order of the paths.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tools/import/tgt.h"

/* A store of a target: a directive, or a block with options. */
struct store {
	const struct tree *node;
	bool is_direct;
};

/* What a target or a store says of the rights and the cache of a LUN. */
struct rights {
	const struct tree *offline; /* the directive that says so, or NULL */
	bool read_only, write_through;
};

/* ---- options ---- */

/* The scopes of the options of a target or store, and of the parameters that its
 * directives params name. */
static const void *options_of(const struct tree *object)
{
	return &object->first;
}

static const void *params_of(const struct tree *object)
{
	return &object->last;
}

/* Notes each part of "params NAME=VALUE,NAME=VALUE", for store_option. tgt executes
 * it after all other options. */
static void index_params(struct import_model *m, const struct tree *object,
			 const struct tree *params)
{
	for (const char *p = params->text; *p; p += *p == ',') {
		size_t len = strcspn(p, ","), name = strcspn(p, "=,");
		const char *key = pool_copy(&m->pool, p, name);
		const char *value = name < len
					    ? pool_copy(&m->pool, p + name + 1,
							len - name - 1)
					    : "";

		if (name)
			pool_put(&m->pool, params_of(object), key,
				 tree_new(&m->pool, TREE_SCALAR, params->file,
					  params->line, key, value));
		p += len;
	}
}

/* Notes the first directive of each name, for store_option. */
static void index_options(struct import_model *m, const struct tree *object)
{
	for (struct tree *c = object->first; c; c = c->next) {
		if (c->kind != TREE_SCALAR)
			continue;
		if (tgt_is_key(c, "params"))
			index_params(m, object, c);
		else if (!pool_get(&m->pool, options_of(object), c->key))
			pool_put(&m->pool, options_of(object), c->key, c);
	}
}

/* The option of a store: that of its target's params, of its own params, in its
 * block, or of its target. */
static const struct tree *store_option(const struct import_model *m,
				       const struct tree *node,
				       const struct tree *block,
				       const char *key)
{
	const void *const scopes[] = { params_of(block), params_of(node),
				       options_of(node), options_of(block) };
	const struct tree *t = NULL;

	for (size_t i = 0; i < ARRAY_LEN(scopes) && !t; i++)
		t = pool_get(&m->pool, scopes[i], key);
	return t;
}

static const char *store_text(const struct import_model *m,
			      const struct tree *node, const struct tree *block,
			      const char *key)
{
	const struct tree *t = store_option(m, node, block, key);

	return t && *t->text ? t->text : NULL;
}

/* Whether tgt takes the text for a number that is not 0. */
static bool is_number(const char *text)
{
	return strtol(text, NULL, 10) != 0;
}

/* Whether the text is a number that is not 0, or means yes. */
static bool is_true(const char *text)
{
	return text && (is_number(text) || !strcasecmp(text, "yes") ||
			!strcasecmp(text, "on") || !strcasecmp(text, "true"));
}

/* ---- rights and the cache ---- */

/* Takes WCE of the caching page (08h, SBC-3 §6.5.5) from "8:0:18:BYTE2:...". Other
 * pages are noted. */
static void take_mode_page(struct import_model *m, const struct tree *c,
			   struct rights *r)
{
	int page, sub, len, byte2;

	if (sscanf(c->text, "%i:%i:%i:%i", &page, &sub, &len, &byte2) == 4 &&
	    page == 8 && !sub)
		r->write_through |= !(byte2 & 4);
	else
		import_note(m, c,
			    "mode_page %s: not carried over: iserd has its own "
			    "mode pages, which initiators change; nothing to "
			    "do unless an initiator depends on it",
			    c->text);
}

/* Adds what an object says. Of two words, the one that permits less counts. */
static void add_rights(struct import_model *m, const struct tree *object,
		       struct rights *r)
{
	static const char *const keys[] = { "readonly", "online" };
	const void *const scopes[] = { options_of(object), params_of(object) };
	const struct tree *c;

	for (size_t i = 0; i < 2 * ARRAY_LEN(scopes); i++) {
		c = pool_get(&m->pool, scopes[i / 2], keys[i % 2]);
		if (c && i % 2 == 0)
			r->read_only |= is_true(c->text);
		else if (c && !is_number(c->text))
			r->offline = c;
	}
	for (c = object->first; c; c = c->next)
		if (c->kind == TREE_SCALAR && tgt_is_key(c, "mode_page"))
			take_mode_page(m, c, r);
	c = pool_get(&m->pool, params_of(object), "mode_page");
	if (c)
		take_mode_page(m, c, r);
}

/* What the file says of a store, after what it says of the target. */
static struct rights rights_of(struct import_model *m, const struct tree *node,
			       const struct tree *block, struct rights target)
{
	const struct tree *cache = store_option(m, node, block, "write-cache");
	const char *flags = store_text(m, node, block, "bsoflags");
	struct rights r = target;

	add_rights(m, node, &r);
	if (cache && !strcmp(cache->text, "off"))
		r.write_through = true;
	else if (cache && strcmp(cache->text, "on") != 0)
		import_note(m, cache,
			    "write-cache %s: not carried over: neither on nor "
			    "off; nothing to do",
			    cache->text);
	r.write_through |= flags && strstr(flags, "sync");
	return r;
}

/* ---- backstores ---- */

/* "store:" of a backing store type, or NULL after a note. */
static const char *typed_store(struct import_model *m, const struct tree *node,
			       const struct tree *block, const struct tree *bs)
{
	static const char *const files[] = { "rdwr", "aio", "mmc" };
	const char *options = store_text(m, node, block, "bsopts");

	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		if (!strcmp(bs->text, files[i]))
			return import_path(m, node, "", node->text);
	if (!strcmp(bs->text, "null"))
		return "null:1T"; /* tgt's size of it */
	if (!strcmp(bs->text, "rbd"))
		return import_rbd(m, node,
				  pool_format(&m->pool, "%s;%s", node->text,
					      options ? options : ""));
	import_note(m, bs,
		    "%s: left out: iserd does not have the backing store type "
		    "%s; iserd(8) lists the kinds of LUNs",
		    node->text, bs->text);
	return NULL;
}

/* "store:" for a path with its types, or NULL after a note. */
static const char *store_of(struct import_model *m, const struct tree *node,
			    const struct tree *block)
{
	const struct tree *type = store_option(m, node, block, "device-type");
	const struct tree *bs = store_option(m, node, block, "bs-type");

	if ((bs && !strcmp(bs->text, "sg")) ||
	    (type && !strcmp(type->text, "pt")))
		return import_path(m, node, "scsi:", node->text);
	if (type && !strcmp(type->text, "cd"))
		return import_path(m, node, "cd:", node->text);
	if (type && strcmp(type->text, "disk") != 0) {
		import_note(m, type,
			    "%s: left out: iserd does not have devices of type "
			    "%s; keep tgt for this one",
			    node->text, type->text);
		return NULL;
	}
	return bs ? typed_store(m, node, block, bs)
		  : import_path(m, node, "", node->text);
}

/* The name of the unit for initiators, which tgt makes of scsi_id. Without scsi_id,
 * tgt's name has the numbers of target and LUN, as on other machines. */
static void take_identity(struct import_model *m, struct import_unit *u,
			  const struct tree *node, const struct tree *block)
{
	const struct tree *id = store_option(m, node, block, "scsi_id");

	u->serial = store_text(m, node, block, "scsi_sn");
	if (id && *id->text)
		import_naa_of_tgt(m, u, id, id->text);
}

static struct import_unit *new_unit(struct import_model *m,
				    const struct store *s,
				    const struct tree *block, const char *store)
{
	const struct tree *node = s->node, *size;
	const char *slash = strrchr(node->text, '/');
	struct import_unit *u = import_unit_new(
		m, node, slash && slash[1] ? slash + 1 : node->text, store);

	if (!u)
		return NULL;
	u->vendor = store_text(m, node, block, "vendor_id");
	u->product = store_text(m, node, block, "product_id");
	u->revision = store_text(m, node, block, "product_rev");
	take_identity(m, u, node, block);
	u->removable = is_true(store_text(m, node, block, "removable"));
	size = store_option(m, node, block, "block-size");
	if (size)
		import_block_size(m, u, size, size->text);
	if (s->is_direct && !u->vendor && !u->product && !u->serial && !u->naa)
		import_note(m, node,
			    "direct-store %s: the identity of the device is "
			    "not carried over; give vendor, product, revision "
			    "and serial as sg_inq %s prints them",
			    node->text, node->text);
	return u;
}

/* A store that is in a target already keeps the options that it got there, as one
 * file is one backstore, but for the cache. */
static struct import_unit *take_unit(struct import_model *m,
				     const struct store *s,
				     const struct tree *block, struct rights r)
{
	const char *store = store_of(m, s->node, block);
	struct import_unit *u = store ? import_unit_of(m, store) : NULL;

	if (!store)
		return NULL;
	if (u && strcmp(store, "null:1T") != 0) {
		import_note(m, s->node,
			    "%s: one backstore for all targets, with the "
			    "options of line %u%s; check that initiators may "
			    "share it",
			    store, u->at->line,
			    u->read_only && !r.read_only
				    ? ", which is read-only"
				    : "");
	} else {
		u = new_unit(m, s, block, store);
		if (u)
			u->read_only = r.read_only;
	}
	if (u && r.write_through)
		u->cache = CACHE_WRITE_THROUGH;
	return u;
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
		if (tgt_is_store(c))
			list[in++] =
				(struct store){ c,
						tgt_is_key(c, "direct-store") };
	qsort(list, in, sizeof(*list), compare_stores);
	for (size_t i = 0; i < in; i++)
		if (!out || compare_stores(&list[out - 1], &list[i]))
			list[out++] = list[i];
		else if (list[i].node->kind == TREE_OBJECT)
			list[out - 1] = list[i]; /* the one with options */
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

/* Makes the LUN of a store. */
static void take_store(struct import_model *m, struct import_target *t,
		       const struct store *s, const struct tree *block,
		       unsigned long number, struct rights of_target)
{
	struct import_unit *u;
	struct rights r;

	if (s->node->kind == TREE_OBJECT) {
		index_options(m, s->node);
		import_settings(m, s->node, s->node->text,
				&import_tgt_tables[TGT_STORE]);
	}
	r = rights_of(m, s->node, block, of_target);
	if (r.offline) {
		import_note(m, s->node,
			    "%s: left out: it is offline (online %s in line "
			    "%u), and every LUN of iserd is online; add it "
			    "when it may be used",
			    s->node->text, r.offline->text, r.offline->line);
		return;
	}
	u = take_unit(m, s, block, r);
	if (u)
		import_lun_add(m, &t->luns, s->node, number, u,
			       r.read_only && !u->read_only);
}

/* The settings that params names, of the target and of its stores. */
static void note_params(struct import_model *m, const struct tree *object)
{
	for (const struct tree *c = object->first; c; c = c->next) {
		char *text, *part, *next;

		if (tgt_is_store(c) && c->kind == TREE_OBJECT)
			note_params(m, c);
		if (c->kind != TREE_SCALAR || !tgt_is_key(c, "params"))
			continue;
		text = pool_copy(&m->pool, c->text, strlen(c->text));
		for (part = strtok_r(text, ",", &next); part;
		     part = strtok_r(NULL, ",", &next)) {
			char *value = strchr(part, '=');

			if (value)
				*value++ = '\0';
			import_setting(m, c, "params",
				       &import_tgt_tables[TGT_STORE], part,
				       value);
		}
	}
}

void tgt_take_stores(struct import_model *m, struct import_target *t,
		     const struct tree *block)
{
	const char *fixed = tree_text(block, "lun");
	bool used[65536] = { false };
	unsigned long lun, next = 1, all = 0;
	struct rights rights = { 0 };
	struct store *list;
	bool has_all = fixed && import_number(fixed, 65535, &all);
	size_t n;

	index_options(m, block);
	note_params(m, block);
	add_rights(m, block, &rights);
	list = sorted_stores(m, block, &n);
	for (size_t i = 0; i < n; i++)
		if (own_number(m, list[i].node, &lun))
			used[lun] = true;
	for (size_t i = 0; i < n; i++) {
		if (!own_number(m, list[i].node, &lun)) {
			while (next < 65536 && used[next])
				next++;
			lun = next;
			if (next < 65536)
				used[next] = true;
		}
		take_store(m, t, &list[i], block, has_all ? all : lun, rights);
	}
}
