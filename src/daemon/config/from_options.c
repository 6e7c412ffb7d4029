/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * from_options.c: the command line as a configuration: one target with one auth
 * group and one portal group, and a backstore for each LUN. It is made as the
 * document of a file, so that the reader of files sees both.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/config/groups.h"
#include "daemon/config/model.h"
#include "daemon/config/nouns.h"
#include "daemon/log/say.h"

struct maker {
	const struct options *o;
	struct options *defaults;
	bool failed;
};

/* Adds value, which it consumes, and returns it. NULL: no memory. */
static json_t *add(struct maker *k, json_t *parent, const char *key,
		   json_t *value)
{
	if (!json_object_set_new_nocheck(parent, key, value))
		return value;
	k->failed = true;
	return NULL;
}

static void add_text(struct maker *k, json_t *parent, const char *key,
		     const char *text)
{
	if (text)
		(void)add(k, parent, key, json_string_nocheck(text));
}

static json_t *add_map(struct maker *k, json_t *parent, const char *key)
{
	return add(k, parent, key, json_object());
}

/* Adds an entry of a list, which it consumes. */
static void append_value(struct maker *k, json_t *list, json_t *value)
{
	k->failed |= json_array_append_new(list, value);
}

static void add_list(struct maker *k, json_t *parent, const char *key,
		     const char *const *texts, unsigned n)
{
	json_t *list = n ? add(k, parent, key, json_array()) : NULL;

	for (unsigned i = 0; i < n; i++)
		append_value(k, list, json_string_nocheck(texts[i]));
}

/* Adds the fields of a noun that are options with one value. */
static void add_options(struct maker *k, json_t *parent, enum cfg_noun_id id)
{
	const struct cfg_noun *noun = cfg_noun_of(id);
	char text[CFG_VALUE_SIZE], initial[CFG_VALUE_SIZE];

	for (unsigned i = 0; i < noun->nfields; i++) {
		const struct cfg_field *f = &noun->fields[i];
		const struct cfg_row *row = cfg_field_row(f);

		if (!f->option || f->shape != CFG_ONE)
			continue;
		cfg_value_text(row, k->o, text, sizeof(text));
		cfg_default_text(f, k->defaults, initial, sizeof(initial));
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
static bool add_lun(struct maker *k, json_t *stores, json_t *luns, unsigned i)
{
	struct lun_spec *spec = malloc(sizeof(*spec));
	bool good = spec && lun_spec_parse(spec, k->o->luns[i]) &&
		    !has_other_suffix(spec);
	json_t *b;
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

static void add_auth(struct maker *k, json_t *root)
{
	const struct chap_options *chap = &k->o->chap;
	json_t *group, *account;

	if (!chap->user)
		return;
	group = add_map(k, add_map(k, root, "auth-groups"), "chap");
	account = json_object();
	append_value(k, add(k, group, "accounts", json_array()), account);
	add_text(k, account, "user", chap->user);
	add_text(k, account, "secret-file", chap->secret_file);
	if (!chap->mutual_user)
		return;
	account = add_map(k, group, "mutual");
	add_text(k, account, "user", chap->mutual_user);
	add_text(k, account, "secret-file", chap->mutual_secret_file);
}

static void add_portals(struct maker *k, json_t *root)
{
	const struct options *o = k->o;
	json_t *group =
		add_map(k, add_map(k, root, "portal-groups"), "portals");

	add_list(k, group, "listen", o->listen, o->nlisten);
	add_list(k, group, "announce", o->announce.v, o->announce.n);
	add_list(k, group, "verbs-listen", o->verbs_listen.v,
		 o->verbs_listen.n);
	add_options(k, group, CFG_NOUN_PORTAL);
	if (o->chap.discovery)
		add_text(k, group, "discovery-auth", "chap");
}

static void add_alua(struct maker *k, json_t *all, const char *text)
{
	struct dev_group g;
	json_t *group, *ports;
	char number[16];

	if (!group_parse(&g, text)) /* cfg_set_alua has checked it */
		return;
	snprintf(number, sizeof(number), "%u", g.id);
	group = add_map(k, all, number);
	add_text(k, group, "state", group_state_name(g.state));
	ports = add(k, group, "ports", json_array());
	for (unsigned i = 0; i < g.nports; i++) {
		snprintf(number, sizeof(number), "%u", g.ports[i]);
		append_value(k, ports, json_string(number));
	}
	if (g.preferred)
		add_text(k, group, "preferred", "yes");
}

/* Adds the section if one of its options is given. */
static void add_cluster(struct maker *k, json_t *root)
{
	add_options(k, add_map(k, root, "cluster"), CFG_NOUN_CLUSTER);
	if (!json_object_size(json_object_get(root, "cluster")))
		(void)json_object_del(root, "cluster");
}

/* Adds what the LUNs are in. False after a message. */
static bool add_target(struct maker *k, json_t *root)
{
	json_t *stores = add_map(k, root, "backstores");
	json_t *target = add_map(k, add_map(k, root, "targets"), k->o->name);
	json_t *luns = add_map(k, target, "luns");

	for (unsigned i = 0; i < k->o->nluns; i++)
		if (!add_lun(k, stores, luns, i))
			return false;
	add_auth(k, root);
	add_portals(k, root);
	add_text(k, target, "alias", "openiser");
	add_text(k, target, "auth-group", k->o->chap.user ? "chap" : "any");
	add_text(k, target, "portal-groups", "portals");
	add_options(k, target, CFG_NOUN_TARGET);
	return true;
}

json_t *cfg_document_of_options(const struct options *o)
{
	struct options *defaults = malloc(sizeof(*defaults));
	struct maker k = { .o = o, .defaults = defaults };
	json_t *root = json_object(), *all;

	k.failed = !defaults || !root;
	if (!k.failed) {
		options_default(defaults);
		add_text(&k, root, "version", "1");
		add_options(&k, add_map(&k, root, "daemon"), CFG_NOUN_DAEMON);
		k.failed |= !add_target(&k, root);
		all = o->ngroups ? add_map(&k, root, "alua-groups") : NULL;
		for (unsigned i = 0; i < o->ngroups; i++)
			add_alua(&k, all, o->groups[i]);
		add_cluster(&k, root);
	}
	free(defaults);
	if (!k.failed)
		return root;
	json_decref(root);
	return NULL;
}
