/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * from_options.c: the command line as a configuration: one target with one auth
 * group and one portal group, and a backstore for each LUN. It is made as the
 * tree of a file, so that the reader of files sees both.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/config/groups.h"
#include "daemon/config/model.h"
#include "daemon/config/nouns.h"
#include "daemon/say.h"

struct maker {
	struct cfg_arena *arena;
	const struct options *o;
	struct options *defaults;
	bool failed;
};

static struct cfg_node *node(struct maker *k, enum cfg_node_type type,
			     const char *text)
{
	struct cfg_node *n = cfg_node_new(k->arena, type, text);

	k->failed |= !n;
	return n;
}

static void add(struct maker *k, struct cfg_node *parent, const char *key,
		struct cfg_node *value)
{
	k->failed |= !parent || !cfg_node_add(k->arena, parent, key, value);
}

static void add_text(struct maker *k, struct cfg_node *parent, const char *key,
		     const char *text)
{
	struct cfg_node *n = text ? node(k, CFG_NODE_SCALAR, text) : NULL;

	if (text)
		add(k, parent, key, n);
}

/* Adds a mapping to parent. NULL: no memory. */
static struct cfg_node *add_map(struct maker *k, struct cfg_node *parent,
				const char *key)
{
	struct cfg_node *n = node(k, CFG_NODE_MAP, NULL);

	add(k, parent, key, n);
	return n;
}

static void add_list(struct maker *k, struct cfg_node *parent, const char *key,
		     const char *const *texts, unsigned n)
{
	struct cfg_node *list = n ? node(k, CFG_NODE_SEQ, NULL) : NULL;

	for (unsigned i = 0; i < n; i++)
		add_text(k, list, NULL, texts[i]);
	if (n)
		add(k, parent, key, list);
}

/* Adds the fields of a noun that are options with one value. */
static void add_options(struct maker *k, struct cfg_node *parent,
			enum cfg_noun_id id)
{
	const struct cfg_noun *noun = cfg_noun_of(id);
	char text[4200], initial[4200];

	for (unsigned i = 0; i < noun->nfields; i++) {
		const struct cfg_field *f = &noun->fields[i];
		const struct cfg_row *row = cfg_field_row(f);

		if (!f->option || f->shape != CFG_ONE)
			continue;
		cfg_value_text(row, k->o, text, sizeof(text));
		cfg_value_text(row, k->defaults, initial, sizeof(initial));
		if (strcmp(text, initial) != 0)
			add_text(k, parent, cfg_field_name(f), text);
	}
}

static const char *list_suffixes(char *out, size_t size)
{
	const struct cfg_suffix *rows;
	size_t n, len = 0;

	rows = cfg_suffixes(&n);
	for (size_t i = 0; i < n && len < size; i++)
		len += (size_t)snprintf(out + len, size - len,
					" ,%s=", rows[i].row.opt.name);
	return out;
}

/* Returns whether a file is given with a suffix that LUNs do not have, as "disk.img,ro";
 * after a message. */
static bool has_other_suffix(const struct lun_spec *s)
{
	const char *comma = strrchr(s->store, ',');
	char *file, all[256];
	bool is_there;

	if (s->kind != LUN_FILE || !comma || !access(s->store, F_OK))
		return false;
	file = strndup(s->store, (size_t)(comma - s->store));
	is_there = file && !access(file, F_OK);
	if (is_there)
		say("%s: no such file, and no suffix %s: LUNs have the "
		    "suffixes%s; options such as --read-only are for all "
		    "LUNs, and a file of --config has them for each",
		    s->store, comma, list_suffixes(all, sizeof(all)));
	free(file);
	return is_there;
}

/* False after a message. */
static bool add_lun(struct maker *k, struct cfg_node *stores,
		    struct cfg_node *luns, unsigned i)
{
	struct lun_spec *spec = malloc(sizeof(*spec));
	bool good = spec && lun_spec_parse(spec, k->o->luns[i]) &&
		    !has_other_suffix(spec);
	struct cfg_node *b;
	char name[32], lun[16];

	if (good) {
		snprintf(name, sizeof(name), "lun%u", i);
		snprintf(lun, sizeof(lun), "%u", i);
		b = add_map(k, stores, name);
		add_text(k, b, "store", spec->store);
		add_text(k, b, "uuid", spec->uuid);
		add_text(k, b, "serial", spec->serial);
		add_text(k, b, "naa", spec->naa);
		add_text(k, b, "eui", spec->eui);
		add_text(k, b, "pi", spec->pi);
		add_text(k, b, "key", spec->key);
		add_text(k, b, "new-key", spec->new_key);
		add_options(k, b, CFG_NOUN_BACKSTORE);
		add_text(k, luns, lun, name);
	}
	k->failed |= !spec;
	free(spec);
	return good;
}

static void add_auth(struct maker *k, struct cfg_node *root)
{
	const struct chap_options *chap = &k->o->chap;
	struct cfg_node *group, *list, *account;

	if (!chap->user)
		return;
	group = add_map(k, add_map(k, root, "auth-groups"), "chap");
	list = node(k, CFG_NODE_SEQ, NULL);
	add(k, group, "accounts", list);
	account = add_map(k, list, NULL);
	add_text(k, account, "user", chap->user);
	add_text(k, account, "secret-file", chap->secret_file);
	if (!chap->mutual_user)
		return;
	account = add_map(k, group, "mutual");
	add_text(k, account, "user", chap->mutual_user);
	add_text(k, account, "secret-file", chap->mutual_secret_file);
}

static void add_portals(struct maker *k, struct cfg_node *root)
{
	const struct options *o = k->o;
	struct cfg_node *group =
		add_map(k, add_map(k, root, "portal-groups"), "portals");

	add_list(k, group, "listen", o->listen, o->nlisten);
	add_list(k, group, "announce", o->announce.v, o->announce.n);
	add_list(k, group, "verbs-listen", o->verbs_listen.v,
		 o->verbs_listen.n);
	add_options(k, group, CFG_NOUN_PORTAL);
	if (o->chap.discovery)
		add_text(k, group, "discovery-auth", "chap");
}

static void add_alua(struct maker *k, struct cfg_node *all, const char *text)
{
	struct dev_group g;
	struct cfg_node *group, *ports;
	char number[16];

	if (!group_parse(&g, text)) /* cfg_set_alua has checked it */
		return;
	snprintf(number, sizeof(number), "%u", g.id);
	group = add_map(k, all, number);
	add_text(k, group, "state", group_state_name(g.state));
	ports = node(k, CFG_NODE_SEQ, NULL);
	add(k, group, "ports", ports);
	for (unsigned i = 0; i < g.nports; i++) {
		snprintf(number, sizeof(number), "%u", g.ports[i]);
		add_text(k, ports, NULL, number);
	}
	if (g.preferred)
		add_text(k, group, "preferred", "yes");
}

/* Adds the section if one of its options is given. */
static void add_cluster(struct maker *k, struct cfg_node *root)
{
	struct cfg_node *n = node(k, CFG_NODE_MAP, NULL);

	add_options(k, n, CFG_NOUN_CLUSTER);
	if (n && n->n)
		add(k, root, "cluster", n);
}

/* Adds what the LUNs are in. False after a message. */
static bool add_target(struct maker *k, struct cfg_node *root)
{
	struct cfg_node *stores = add_map(k, root, "backstores");
	struct cfg_node *luns = node(k, CFG_NODE_MAP, NULL), *target;

	for (unsigned i = 0; i < k->o->nluns; i++)
		if (!add_lun(k, stores, luns, i))
			return false;
	add_auth(k, root);
	add_portals(k, root);
	target = add_map(k, add_map(k, root, "targets"), k->o->name);
	add_text(k, target, "alias", "openiser");
	add_text(k, target, "auth-group", k->o->chap.user ? "chap" : "any");
	add_text(k, target, "portal-groups", "portals");
	add(k, target, "luns", luns);
	add_options(k, target, CFG_NOUN_TARGET);
	return true;
}

struct cfg_node *cfg_tree_of_options(const struct options *o,
				     struct cfg_arena *a)
{
	struct options *defaults = malloc(sizeof(*defaults));
	struct maker k = { .arena = a, .o = o, .defaults = defaults };
	struct cfg_node *root = node(&k, CFG_NODE_MAP, NULL), *all;
	bool good = false;

	if (defaults && root) {
		options_default(defaults);
		add_text(&k, root, "version", "1");
		add_options(&k, add_map(&k, root, "daemon"), CFG_NOUN_DAEMON);
		good = add_target(&k, root);
		all = o->ngroups ? add_map(&k, root, "alua-groups") : NULL;
		for (unsigned i = 0; i < o->ngroups; i++)
			add_alua(&k, all, o->groups[i]);
		add_cluster(&k, root);
	}
	free(defaults);
	return good && !k.failed ? root : NULL;
}
