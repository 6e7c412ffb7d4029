/* SPDX-License-Identifier: BSD-2-Clause */
/* edit_tree.c: finds nouns in the document of a configuration by the names of
 * iserctl(1). */
#include "daemon/config/edit_tree.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/nearest.h"
#include "iscsi/names.h"

static const struct edit_noun nouns[] = {
	{ "target", CFG_NOUN_TARGET, "targets" },
	{ "lun", CFG_NOUN_LUN, "luns" },
	{ "map", CFG_NOUN_MAP, "maps" },
	{ "backstore", CFG_NOUN_BACKSTORE, "backstores" },
	{ "portal", CFG_NOUN_PORTAL, "portal-groups" },
	{ "auth", CFG_NOUN_AUTH, "auth-groups" },
	{ "initiators", CFG_NOUN_INITIATORS, "initiator-groups" },
	{ "group", CFG_NOUN_ALUA, "alua-groups" },
	{ "daemon", CFG_NOUN_DAEMON, "daemon" },
};

const struct edit_noun *cfg_edit_noun_find(const char *word)
{
	for (size_t i = 0; i < ARRAY_LEN(nouns); i++)
		if (!strcmp(nouns[i].word, word))
			return &nouns[i];
	return NULL;
}

const char *cfg_edit_noun(const char *word)
{
	const struct edit_noun *n = cfg_edit_noun_find(word);

	return n ? cfg_noun_of(n->id)->name : NULL;
}

/* ---- errors ---- */

bool cfg_edit_fail(const struct edit_tree *t, const char *fmt, ...)
{
	char text[CFG_ERROR_TEXT];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	cfg_error(t->errors, (struct cfg_place){ 0 }, "%s: %s", t->object,
		  text);
	return false;
}

/* ---- the document ---- */

bool cfg_edit_open(struct edit_tree *t, json_t *root, const char *word,
		   const char *name, struct cfg_errors *e)
{
	*t = (struct edit_tree){ .root = root,
				 .errors = e,
				 .noun = cfg_edit_noun_find(word),
				 .name = name ? name : "" };
	snprintf(t->object, sizeof(t->object), "%.16s%s%.300s", word,
		 name ? " " : "", t->name);
	if (!t->noun)
		return cfg_edit_fail(t, "no such noun; \"methods\" lists them");
	if (t->noun->id == CFG_NOUN_DAEMON && name)
		return cfg_edit_fail(t, "has no name; leave it out");
	if (t->noun->id != CFG_NOUN_DAEMON && !*t->name)
		return cfg_edit_fail(t, "no name; give one after the verb");
	return true;
}

static bool no_memory(const struct edit_tree *t)
{
	cfg_error(t->errors, (struct cfg_place){ 0 }, "out of memory");
	return false;
}

json_t *cfg_edit_hold(struct edit_tree *t, json_t *v)
{
	if (!t->held)
		t->held = json_array();
	if (!json_array_append_new(t->held, v))
		return v;
	(void)no_memory(t);
	return NULL;
}

bool cfg_edit_put(struct edit_tree *t, json_t *to, const char *key, json_t *v)
{
	int err = key ? json_object_set_nocheck(to, key, v)
		      : json_array_append(to, v);

	return !err || no_memory(t);
}

/* Returns the value of a key; if it is missing, NULL or with make a new one.
 * NULL with make: no memory, which is reported. */
static json_t *child(struct edit_tree *t, json_t *parent, const char *key,
		     bool is_map, bool make)
{
	json_t *v = json_object_get(parent, key);

	if (v || !make)
		return v;
	v = cfg_edit_hold(t, is_map ? json_object() : json_array());
	return v && cfg_edit_put(t, parent, key, v) ? v : NULL;
}

/* Adds "did you mean" with the key of all that is most like name. */
static bool fail_unknown(const struct edit_tree *t, const char *what,
			 const char *name, json_t *all, const char *word)
{
	struct nearest n;
	const char *key;
	json_t *v;

	nearest_begin(&n, name);
	json_object_foreach(all, key, v) nearest_try(&n, key);
	if (n.best)
		return cfg_edit_fail(t, "no such %s; did you mean %.230s?",
				     what, n.best);
	return cfg_edit_fail(t, "no such %s; iserctl %s list lists them", what,
			     word);
}

/* Returns the name of the target in whatever form the document has it, or NULL. */
static const char *target_key(json_t *all, const char *name)
{
	const char *key;
	json_t *v;

	json_object_foreach(all, key, v)
	{
		if (iscsi_name_equal(key, name))
			return key;
	}
	return NULL;
}

/* Returns the target whose name has len bytes, or NULL after an error. */
static json_t *find_target(const struct edit_tree *t, size_t len)
{
	json_t *all = json_object_get(t->root, "targets");
	char name[sizeof(t->object)]; /* longer than that of any target */
	const char *key;

	snprintf(name, sizeof(name), "%.*s", (int)MIN(len, sizeof(name)),
		 t->name);
	key = target_key(all, name);
	if (key)
		return json_object_get(all, key);
	(void)fail_unknown(t, "target", name, all, "target");
	return NULL;
}

/* Reads the number of a map, from 1; 0: it is none. */
static unsigned read_index(const char *text, size_t len)
{
	if (!len || len > 5 || strspn(text, "0123456789") < len)
		return 0;
	return (unsigned)strtoul(text, NULL, 10);
}

/* Finds a map in a target: "TARGET/MAP", or "TARGET" for a new one; the name has len
 * bytes. */
static bool find_map(struct edit_tree *t, bool make, size_t len,
		     struct edit_place *p)
{
	const char *slash = memchr(t->name, '/', len);
	size_t tlen = slash ? (size_t)(slash - t->name) : len, n;
	unsigned index = slash ? read_index(slash + 1, len - tlen - 1) : 0;
	json_t *target = find_target(t, tlen);

	if (!target)
		return false;
	if (slash ? !index : !make)
		return cfg_edit_fail(t,
				     "not the name of a map; give TARGET/MAP, "
				     "with the number of the map from 1");
	p->parent = child(t, target, "maps", false, make);
	if (make && !p->parent)
		return false;
	n = json_array_size(p->parent);
	p->index = slash ? index - 1 : n;
	p->value = json_array_get(p->parent, p->index);
	if (make && p->index > n)
		return cfg_edit_fail(t,
				     "the target has %zu maps; give a number "
				     "up to %zu, or none",
				     n, n + 1);
	return true;
}

/* "TARGET/N" or "TARGET/MAP/N". */
static bool find_lun(struct edit_tree *t, bool make, struct edit_place *p)
{
	const char *last = strrchr(t->name, '/');
	size_t len = last ? (size_t)(last - t->name) : 0;
	struct edit_place map = { 0 };
	json_t *owner;

	if (!last || !last[1])
		return cfg_edit_fail(t,
				     "not the name of a LUN; give TARGET/N, or "
				     "TARGET/MAP/N for a LUN of a map");
	if (!memchr(t->name, '/', len)) {
		owner = find_target(t, len);
	} else {
		if (!find_map(t, false, len, &map))
			return false;
		owner = map.value;
		if (!owner)
			return cfg_edit_fail(t, "no such map; iserctl map list "
						"lists them");
	}
	if (!owner)
		return false;
	p->parent = child(t, owner, "luns", true, make);
	p->key = last + 1;
	return p->parent || !make;
}

bool cfg_edit_find(struct edit_tree *t, bool make, struct edit_place *p)
{
	const char *key = NULL;

	*p = (struct edit_place){ 0 };
	if (t->noun->id == CFG_NOUN_MAP)
		return find_map(t, make, strlen(t->name), p);
	if (t->noun->id == CFG_NOUN_LUN) {
		if (!find_lun(t, make, p))
			return false;
	} else if (t->noun->id == CFG_NOUN_DAEMON) {
		p->parent = t->root;
		p->key = t->noun->section;
	} else {
		p->parent = child(t, t->root, t->noun->section, true, make);
		p->key = t->name;
	}
	if (t->noun->id == CFG_NOUN_TARGET)
		key = target_key(p->parent, p->key);
	if (key)
		p->key = key;
	p->value = json_object_get(p->parent, p->key);
	return p->parent || !make;
}

bool cfg_edit_must_find(struct edit_tree *t, struct edit_place *p)
{
	if (!cfg_edit_find(t, false, p))
		return false;
	return p->value ||
	       fail_unknown(t, cfg_noun_of(t->noun->id)->name,
			    p->key ? p->key : "", p->parent, t->noun->word);
}
