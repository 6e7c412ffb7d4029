/* SPDX-License-Identifier: BSD-2-Clause */
/* ctl_lun.c: the LUNs of ctld as backstores. */
#include <ctype.h>

#include "tools/import/ctl.h"

static bool is_off(const char *value)
{
	return !strcmp(value, "off") || !strcmp(value, "0") ||
	       !strcmp(value, "no") || !strcmp(value, "false");
}

static void take_option(struct ctl *l, struct ctl_lun *lun,
			const struct tree *at, const char *name,
			const char *value)
{
	struct import_unit *u = lun->unit;

	import_setting(l->m, at, "option", &import_ctl_tables[CTL_LUN_OPTIONS],
		       name, value);
	if (!strcmp(name, "vendor"))
		u->vendor = value;
	else if (!strcmp(name, "product"))
		u->product = value;
	else if (!strcmp(name, "revision"))
		u->revision = value;
	else if (!strcmp(name, "naa"))
		import_naa_of_ctl(l->m, u, at, value);
	else if (!strcmp(name, "eui"))
		import_eui_of_ctl(l->m, u, at, value);
	else if (!strcmp(name, "readonly"))
		lun->read_only |= !is_off(value);
	else if (!strcmp(name, "removable"))
		u->removable = !is_off(value);
	else if (!strcmp(name, "writecache"))
		lun->write_through |= is_off(value);
	else if (!strcmp(name, "rpm"))
		u->rotational = !strcmp(value, "1") ? BOOL_NO : BOOL_YES;
}

static void take_options(struct ctl *l, struct ctl_lun *lun,
			 const struct tree *t)
{
	const char *name = ctl_word_of(t, 0, ""),
		   *value = ctl_word_of(t, 1, "");

	if (t->kind == TREE_OBJECT)
		for (const struct tree *c = t->first; c; c = c->next)
			take_option(l, lun, c, c->key, ctl_text_of(c));
	else if (name && value)
		take_option(l, lun, t, name, value);
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
		return import_path(l->m, section, "cd:", path);
	if (!type || !strcmp(type, "disk") || !strcmp(type, "direct") ||
	    !strcmp(type, "0"))
		return import_path(l->m, section, "", path);
	import_note(l->m, section,
		    "LUN %s: left out: iserd does not have devices of type %s; "
		    "keep ctld for this one",
		    name, type);
	return NULL;
}

/* One statement of a LUN. */
static void take_setting(struct ctl *l, struct ctl_lun *lun,
			 const struct tree *c)
{
	if (ctl_is_key(c, "blocksize"))
		import_block_size(l->m, lun->unit, c, ctl_text_of(c));
	else if (ctl_is_key(c, "serial"))
		lun->unit->serial = ctl_text_of(c);
	else if (ctl_is_key(c, "size"))
		lun->unit->size = size_of(l, ctl_text_of(c));
	else if (ctl_is_key(c, "option") || ctl_is_key(c, "options"))
		take_options(l, lun, c);
}

/* The LUN of a section; NULL after a note. */
struct ctl_lun *ctl_take_lun(struct ctl *l, const struct tree *section,
			     const char *name)
{
	const char *store = store_of(l, section, name);
	struct ctl_lun *lun = pool_alloc(&l->m->pool, sizeof(*lun));
	struct import_unit *u = NULL;
	struct import_unit unused = { .name = name, .store = store };

	import_settings(l->m, section, pool_format(&l->m->pool, "LUN %s", name),
			&import_ctl_tables[CTL_LUN]);
	if (!store)
		return NULL;
	if (strncmp(store, "ram:", 4) != 0)
		u = import_unit_of(l->m, store);
	if (u)
		import_note(
			l->m, section,
			"LUN %s: the same file as in line %u; one backstore "
			"for both, with the options of that line",
			name, u->at->line);
	lun->unit = u ? &unused : import_unit_new(l->m, section, name, store);
	for (const struct tree *c = section->first; lun->unit && c; c = c->next)
		take_setting(l, lun, c);
	if (u)
		lun->unit = u;
	else if (lun->unit)
		lun->unit->read_only = lun->read_only;
	if (lun->unit && lun->write_through)
		lun->unit->cache = CACHE_WRITE_THROUGH;
	return lun->unit ? lun : NULL;
}
