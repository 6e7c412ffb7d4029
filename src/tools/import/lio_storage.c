/* SPDX-License-Identifier: BSD-2-Clause */
/* lio_storage.c: storage objects of LIO as backstores. */
#include "tools/import/lio.h"

/* A storage object, with the backstore that was made from it, or NULL. */
struct storage {
	struct import_unit *unit;
};
/* The scope of the storage objects, by /backstores/PLUGIN/NAME as LUNs refer to
 * them. */
static const char by_path;

static const struct lio_usual storage_attributes[] = {
	{ "alua_support", NULL },
	{ "block_size", NULL },
	{ "complete_type", NULL },
	{ "emulate_3pc", "1" },
	{ "emulate_caw", "1" },
	{ "emulate_dpo", NULL },
	{ "emulate_fua_read", NULL },
	{ "emulate_fua_write", "1" },
	{ "emulate_model_alias", NULL },
	{ "emulate_pr", "1" },
	{ "emulate_rest_reord", "0" },
	{ "emulate_rsoc", "1" },
	{ "emulate_tas", "1" },
	{ "emulate_tpu", NULL },
	{ "emulate_tpws", NULL },
	{ "emulate_ua_intlck_ctrl", "0" },
	{ "emulate_write_cache", NULL },
	{ "enforce_pr_isids", "1" },
	{ "force_pr_aptpl", NULL },
	{ "is_nonrot", NULL },
	{ "max_unmap_block_desc_count", NULL },
	{ "max_unmap_lba_count", NULL },
	{ "max_write_same_len", NULL },
	{ "optimal_sectors", NULL },
	{ "pgr_support", "1" },
	{ "pi_prot_format", NULL },
	{ "pi_prot_type", "0" },
	{ "pi_prot_verify", NULL },
	{ "queue_depth", NULL },
	{ "submit_type", NULL },
	{ "unmap_granularity", NULL },
	{ "unmap_granularity_alignment", NULL },
	{ "unmap_zeroes_data", NULL },
};

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

/* "store:" of a storage object, or NULL after a note. */
static const char *store_of(struct lio *l, const struct tree *so,
			    const char *plugin)
{
	const char *dev = tree_text(so, "dev");
	const char *name = lio_text_or(so, "name", "?");

	if (!strcmp(plugin, "ramdisk") || !strcmp(plugin, "rd_mcp"))
		return ramdisk_store(l, so);
	if (!strcmp(plugin, "user")) {
		import_note(l->m, so,
			    "storage object %s: left out: iserd does not have "
			    "the handlers of tcmu-runner (%s); serve a file or "
			    "a block device",
			    name, lio_text_or(so, "config", "?"));
		return NULL;
	}
	if (!dev || !*dev) {
		import_note(l->m, so,
			    "storage object %s: left out: it has no dev; add "
			    "the path of the file or device",
			    name);
		return NULL;
	}
	if (!strcmp(plugin, "pscsi"))
		return pool_format(&l->m->pool, "scsi:%s", dev);
	if (!strcmp(plugin, "block") || !strcmp(plugin, "iblock") ||
	    !strcmp(plugin, "fileio"))
		return dev;
	import_note(l->m, so,
		    "storage object %s: left out: unknown plugin %s; serve a "
		    "file or a block device",
		    name, plugin);
	return NULL;
}

static void take_attributes(struct lio *l, struct import_unit *u,
			    const struct tree *so, const char *plugin)
{
	const struct tree *a = tree_find(so, "attributes");
	const struct tree *size = tree_find(a, "block_size");
	const char *nonrot = tree_text(a, "is_nonrot");
	const char *cache = tree_text(so, "write_back");

	lio_note_unusual(l, a, u->name, storage_attributes,
			 ARRAY_LEN(storage_attributes));
	if (size && size->text && strcmp(size->text, "512") != 0)
		import_block_size(l->m, u, size, size->text);
	/* a block device of LIO has the cache that the device has */
	if (cache && !lio_is_on(cache) && !strcmp(plugin, "fileio"))
		import_no_write_through(l->m, tree_find(so, "write_back"),
					u->store);
	if (strcmp(plugin, "pscsi") != 0 && nonrot)
		u->rotational = lio_is_on(nonrot) ? BOOL_NO : BOOL_YES;
	u->read_only = lio_flag(l, so, "readonly", false, true);
	u->serial = tree_text(so, "wwn");
}

/* Notes the ALUA groups that an administrator has made. */
static void note_alua(struct lio *l, const struct tree *so, const char *name)
{
	const struct tree *groups = tree_find(so, "alua_tpgs");

	for (const struct tree *g = groups ? groups->first : NULL; g;
	     g = g->next)
		if (strcmp(lio_text_or(g, "name", ""), "default_tg_pt_gp") != 0)
			import_note(l->m, g,
				    "storage object %s: ALUA group %s: not "
				    "carried over: the groups of iserd have "
				    "ports of targets; write alua-groups by "
				    "hand",
				    name, lio_text_or(g, "name", "?"));
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
	s = pool_alloc(&l->m->pool, sizeof(*s));
	path = pool_format(&l->m->pool, "/backstores/%s/%s", plugin, name);
	pool_put(&l->m->pool, &by_path, path, s);
	store = store_of(l, so, plugin);
	if (!store)
		return;
	if (*store == '/')
		s->unit = import_unit_of(l->m, store);
	if (s->unit)
		import_note(l->m, so,
			    "storage object %s: the same file as in line %u; "
			    "one backstore for both, with the options of that "
			    "line",
			    name, s->unit->at->line);
	else
		s->unit = import_unit_new(l->m, so, name, store);
	if (!s->unit || s->unit->at != so)
		return;
	take_attributes(l, s->unit, so, plugin);
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
			    "identity of the LUNs: serial numbers are carried "
			    "over, NAA identifiers, vendor and product are "
			    "not; initiators see new devices: use names of "
			    "file systems or by-path, and see the guide");
}

struct import_unit *lio_unit_of(struct lio *l, const struct tree *lun,
				unsigned long number)
{
	const char *path = lio_text_or(lun, "storage_object", "?");

	const struct storage *s = pool_get(&l->m->pool, &by_path, path);

	if (s && !s->unit)
		import_note(l->m, lun,
			    "LUN %lu: left out, as its storage object %s is",
			    number, path);
	if (s)
		return s->unit;
	import_note(l->m, lun,
		    "LUN %lu: left out: the file has no storage object %s; "
		    "repair the file",
		    number, path);
	return NULL;
}
