/* SPDX-License-Identifier: BSD-2-Clause */
/* lio_storage.c: storage objects of LIO as backstores. */
#include "tools/import/lio.h"

/* A storage object. */
struct storage {
	struct import_unit *unit; /* that was made of it; NULL: left out */
	bool read_only;		  /* also where the unit is not */
};

/* The scope of the storage objects, by /backstores/PLUGIN/NAME as LUNs refer to
 * them. */
static const char by_path;

static const char *ramdisk_store(struct lio *l, const struct tree *so)
{
	if (!lio_is_on(tree_text(so, "nullio")))
		import_note(l->m, so,
			    "ramdisk %s: the data are not carried over; copy "
			    "them while both targets run",
			    lio_text_or(so, "name", "?"));
	return import_memory(
		l->m, so, lio_is_on(tree_text(so, "nullio")) ? "null" : "ram",
		tree_text(so, "size"));
}

/* "store:" of a handler of tcmu-runner, or NULL after a note. config is HANDLER and
 * a path: "rbd/POOL/IMAGE;conf=FILE". */
static const char *user_store(struct lio *l, const struct tree *so,
			      const char *name)
{
	const char *config = lio_text_or(so, "config", "?");

	if (!strncmp(config, "rbd/", 4))
		return import_rbd(l->m, so, config + 4);
	import_note(l->m, so,
		    "storage object %s: left out: iserd does not have this "
		    "handler of tcmu-runner (%.*s); iserd(8) lists the kinds "
		    "of LUNs",
		    name, (int)strcspn(config, "/"), config);
	return NULL;
}

/* "store:" of a storage object, or NULL after a note. */
static const char *store_of(struct lio *l, const struct tree *so,
			    const char *plugin)
{
	const char *dev = tree_text(so, "dev");
	const char *name = lio_text_or(so, "name", "?");

	if (!strcmp(plugin, "ramdisk") || !strcmp(plugin, "rd_mcp"))
		return ramdisk_store(l, so);
	if (!strcmp(plugin, "user"))
		return user_store(l, so, name);
	if (!strcmp(plugin, "pscsi"))
		return import_path(l->m, so, "scsi:", dev);
	if (!strcmp(plugin, "block") || !strcmp(plugin, "iblock") ||
	    !strcmp(plugin, "fileio"))
		return import_path(l->m, so, "", dev);
	import_note(l->m, so,
		    "storage object %s: left out: unknown plugin %s; iserd(8) "
		    "lists the kinds of LUNs",
		    name, plugin);
	return NULL;
}

/* Whether a write of LIO ends when it is durable. The kernel does not change the
 * cache that it reports for a block device (emulate_write_cache is ignored there),
 * and initiators flush what the device has, with iserd as well. */
static bool is_write_through(struct lio *l, const struct tree *so,
			     const char *plugin)
{
	const char *cache =
		tree_text(tree_find(so, "attributes"), "emulate_write_cache");

	if (!strcmp(plugin, "fileio"))
		return !lio_flag(l, so, "write_back", false, false) ||
		       (cache && strcmp(cache, "1") != 0);
	return !strcmp(plugin, "user") && cache && strcmp(cache, "1") != 0;
}

static void take_attributes(struct lio *l, struct import_unit *u,
			    const struct tree *so, const char *plugin)
{
	const struct tree *a = tree_find(so, "attributes");
	const struct tree *size = tree_find(a, "block_size");
	const char *nonrot = tree_text(a, "is_nonrot");
	const char *alias = tree_text(a, "emulate_model_alias");

	if (size && size->text && strcmp(size->text, "512") != 0)
		import_block_size(l->m, u, size, size->text);
	if (strcmp(plugin, "pscsi") != 0 && nonrot)
		u->rotational = lio_is_on(nonrot) ? BOOL_NO : BOOL_YES;
	u->read_only = lio_flag(l, so, "readonly", false, true);
	u->size = tree_text(so, "size");
	u->serial = tree_text(so, "wwn");
	u->vendor = tree_text(so, "vendor_id");
	u->product = tree_text(so, "product_id");
	u->revision = tree_text(so, "revision");
	if (u->serial && *u->serial)
		import_naa_of_lio(l->m, u, tree_find(so, "wwn"),
				  tree_text(so, "company_id"), u->serial);
	if (!u->product && lio_is_on(alias))
		u->product = tree_text(so, "name");
}

/* Notes the ALUA groups that an administrator has made, and a state of the built-in
 * one other than Active/optimized. */
static void note_alua(struct lio *l, const struct tree *so, const char *name)
{
	const struct tree *groups = tree_find(so, "alua_tpgs");

	for (const struct tree *g = groups ? groups->first : NULL; g;
	     g = g->next) {
		const char *group = lio_text_or(g, "name", "?");
		const char *state = lio_text_or(g, "alua_access_state", "0");

		if (strcmp(group, "default_tg_pt_gp") != 0 ||
		    strcmp(state, "0") != 0)
			import_note(l->m, g,
				    "storage object %s: ALUA group %s: not "
				    "carried over: the groups of iserd have "
				    "ports of targets; write alua-groups by "
				    "hand",
				    name, group);
	}
}

/* Whether another storage object has the path, so that it is open which one the
 * LUNs are. */
static bool is_second_storage(struct lio *l, const struct tree *so,
			      const char *path)
{
	struct storage *first = pool_get(&l->m->pool, &by_path, path);

	if (!first)
		return false;
	import_note(l->m, so,
		    "storage object %s: there are two of them; LUNs of this "
		    "name are left out: repair the file",
		    path);
	first->unit = NULL;
	return true;
}

/* The unit of a file that an earlier storage object has, too. */
static void share_unit(struct lio *l, const struct storage *s,
		       const struct tree *so, const char *name)
{
	const struct import_unit *u = s->unit;

	import_note(l->m, so,
		    "storage object %s: the same file as in line %u; one "
		    "backstore for both, with the options of that line%s",
		    name, u->at->line,
		    u->read_only && !s->read_only ? ", which is read-only"
						  : "");
}

static void take_storage(struct lio *l, const struct tree *so)
{
	const char *plugin = tree_text(so, "plugin");
	const char *name = tree_text(so, "name"), *store, *path;
	struct storage *s;

	if (!plugin || !name) {
		import_note(l->m, so,
			    "a storage object without name or plugin "
			    "is left out; repair the file");
		return;
	}
	path = pool_format(&l->m->pool, "/backstores/%s/%s", plugin, name);
	if (is_second_storage(l, so, path))
		return;
	s = pool_alloc(&l->m->pool, sizeof(*s));
	pool_put(&l->m->pool, &by_path, path, s);
	import_settings(l->m, so, name, &import_lio_tables[LIO_STORAGE]);
	import_settings(l->m, tree_find(so, "attributes"), name,
			&import_lio_tables[LIO_STORAGE_ATTRIBUTES]);
	store = store_of(l, so, plugin);
	if (!store)
		return;
	s->read_only = lio_flag(l, so, "readonly", false, true);
	s->unit = import_unit_of(l->m, store);
	if (s->unit && strncmp(store, "ram:", 4) != 0 &&
	    strncmp(store, "null:", 5) != 0) {
		share_unit(l, s, so, name);
	} else {
		s->unit = import_unit_new(l->m, so, name, store);
		if (s->unit)
			take_attributes(l, s->unit, so, plugin);
	}
	if (s->unit && is_write_through(l, so, plugin))
		s->unit->cache = CACHE_WRITE_THROUGH;
	note_alua(l, so, name);
}

void lio_take_storages(struct lio *l, const struct tree *file)
{
	const struct tree *list = tree_find(file, "storage_objects");
	const struct tree *first = list ? list->first : NULL;

	for (const struct tree *so = first; so; so = so->next)
		take_storage(l, so);
	if (l->m->units)
		import_note(l->m, list,
			    "identity of the LUNs: serial numbers and NAA "
			    "identifiers are carried over, so that names by "
			    "WWN stay; vendor and product are those of iserd "
			    "unless the file gives them: see the guide");
}

struct import_unit *lio_unit_of(struct lio *l, const struct tree *lun,
				unsigned long number, bool *read_only)
{
	const char *path = lio_text_or(lun, "storage_object", "?");

	const struct storage *s = pool_get(&l->m->pool, &by_path, path);

	if (!s)
		import_note(l->m, lun,
			    "LUN %lu: left out: the file has no storage object "
			    "%s; repair the file",
			    number, path);
	else if (!s->unit)
		import_note(l->m, lun,
			    "LUN %lu: left out, as its storage object %s is",
			    number, path);
	*read_only = s && s->read_only;
	return s ? s->unit : NULL;
}
