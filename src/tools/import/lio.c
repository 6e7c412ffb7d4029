/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lio.c: what saveconfig.json of targetcli means to LIO, as a configuration of
 * iserd. A target portal group (TPG) of LIO has LUNs, portals and access control
 * lists (ACLs) of its own; a target of iserd has one map of LUNs that all its
 * portal groups serve, and maps for single initiators.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "tools/import/model.h"

/* A storage object, with the backstore that was made from it, or NULL. */
struct storage {
	struct import_unit *unit;
};

/* An address that TPGs listen on, and the targets that do. */
struct place {
	struct place *next;
	const char *address;
	struct import_target **users;
	unsigned n, size, index;
	struct import_portal *portal;
};

/* The scopes of the storage objects, by /backstores/PLUGIN/NAME as LUNs refer to
 * them, and of the places by their addresses. */
static const char by_path, by_address;

struct lio {
	struct import_model *m;
	struct place *places, *last_place;
	unsigned nplaces;
};

/* An attribute, and the value that means the same as iserd's behaviour;
 * NULL: any value. */
struct usual {
	const char *key, *value;
};

static const struct usual storage_attributes[] = {
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

static const struct usual tpg_attributes[] = {
	{ "authentication", NULL },
	{ "cache_dynamic_acls", NULL },
	{ "default_cmdsn_depth", "64" },
	{ "default_erl", "0" },
	{ "demo_mode_discovery", NULL },
	{ "demo_mode_write_protect", NULL },
	{ "fabric_prot_type", "0" },
	{ "generate_node_acls", NULL },
	{ "login_keys_workaround", NULL },
	{ "login_timeout", "15" },
	{ "netif_timeout", NULL },
	{ "prod_mode_write_protect", "0" },
	{ "t10_pi", "0" },
	{ "tpg_enabled_sendtargets", "1" },
};

static const struct usual tpg_parameters[] = {
	{ "AuthMethod", NULL },
	{ "DataDigest", NULL },
	{ "DataPDUInOrder", "Yes" },
	{ "DataSequenceInOrder", "Yes" },
	{ "DefaultTime2Retain", "20" },
	{ "DefaultTime2Wait", "2" },
	{ "ErrorRecoveryLevel", "0" },
	{ "FirstBurstLength", "65536" },
	{ "HeaderDigest", NULL },
	{ "IFMarkInt", NULL },
	{ "IFMarker", NULL },
	{ "ImmediateData", "Yes" },
	{ "InitialR2T", "Yes" },
	{ "MaxBurstLength", "262144" },
	{ "MaxConnections", "1" },
	{ "MaxOutstandingR2T", "1" },
	{ "MaxRecvDataSegmentLength", "8192" },
	{ "MaxXmitDataSegmentLength", "262144" },
	{ "OFMarkInt", NULL },
	{ "OFMarker", NULL },
	{ "TargetAlias", "LIO Target" },
};

/* Notes each member of an object whose value is not the usual one. */
static void note_unusual(struct lio *l, const struct tree *object,
			 const char *owner, const struct usual *rows, size_t n)
{
	if (!object || object->kind != TREE_OBJECT)
		return;
	for (const struct tree *c = object->first; c; c = c->next) {
		const struct usual *row = NULL;

		for (size_t i = 0; i < n && !row; i++)
			if (!strcmp(rows[i].key, c->key))
				row = &rows[i];
		if (c->kind != TREE_SCALAR || !c->text)
			continue;
		if (row && (!row->value || !strcmp(row->value, c->text)))
			continue;
		if (row && !strcmp(c->key, "TargetAlias"))
			continue; /* carried over */
		import_note(l->m, c,
			    "%s: %s %s: not carried over: iserd has no such "
			    "setting, or negotiates it; nothing to do unless "
			    "an initiator depends on it",
			    owner, c->key, c->text);
	}
}

static bool is_on(const char *text)
{
	return text && (!strcmp(text, "1") || !strcmp(text, "true"));
}

static const char *text_or(const struct tree *t, const char *key,
			   const char *otherwise)
{
	const char *text = tree_text(t, key);

	return text ? text : otherwise;
}

/* ---- storage objects ---- */

static const char *ramdisk_store(struct lio *l, const struct tree *so)
{
	if (!is_on(tree_text(so, "nullio")))
		import_note(l->m, so,
			    "ramdisk %s: the data are not carried over; copy "
			    "them while both targets run",
			    text_or(so, "name", "?"));
	return import_memory(l->m, so,
			     is_on(tree_text(so, "nullio")) ? "null" : "ram",
			     tree_text(so, "size"));
}

/* "store:" of a storage object, or NULL after a note. */
static const char *store_of(struct lio *l, const struct tree *so,
			    const char *plugin)
{
	const char *dev = tree_text(so, "dev");
	const char *name = text_or(so, "name", "?");

	if (!strcmp(plugin, "ramdisk") || !strcmp(plugin, "rd_mcp"))
		return ramdisk_store(l, so);
	if (!strcmp(plugin, "user")) {
		import_note(l->m, so,
			    "storage object %s: left out: iserd does not have "
			    "the handlers of tcmu-runner (%s); serve a file or "
			    "a block device",
			    name, text_or(so, "config", "?"));
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

	note_unusual(l, a, u->name, storage_attributes,
		     ARRAY_LEN(storage_attributes));
	if (size && size->text && strcmp(size->text, "512") != 0)
		import_block_size(l->m, u, size, size->text);
	/* a block device of LIO has the cache that the device has */
	if (cache && !is_on(cache) && !strcmp(plugin, "fileio"))
		import_no_write_through(l->m, tree_find(so, "write_back"),
					u->store);
	if (strcmp(plugin, "pscsi") != 0 && nonrot)
		u->rotational = is_on(nonrot) ? BOOL_NO : BOOL_YES;
	u->read_only = is_on(tree_text(so, "readonly"));
	u->serial = tree_text(so, "wwn");
}

/* Notes the ALUA groups that an administrator has made. */
static void note_alua(struct lio *l, const struct tree *so, const char *name)
{
	const struct tree *groups = tree_find(so, "alua_tpgs");

	for (const struct tree *g = groups ? groups->first : NULL; g;
	     g = g->next)
		if (strcmp(text_or(g, "name", ""), "default_tg_pt_gp") != 0)
			import_note(l->m, g,
				    "storage object %s: ALUA group %s: not "
				    "carried over: the groups of iserd have "
				    "ports of targets; write alua-groups by "
				    "hand",
				    name, text_or(g, "name", "?"));
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

static void take_storages(struct lio *l, const struct tree *file)
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

static struct import_unit *unit_of(struct lio *l, const struct tree *lun,
				   unsigned long number)
{
	const char *path = text_or(lun, "storage_object", "?");

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

/* ---- LUNs and maps ---- */

static const struct tree *children(const struct tree *t, const char *key)
{
	const struct tree *c = tree_find(t, key);

	return c && c->kind == TREE_ARRAY ? c->first : NULL;
}

static bool index_of(struct lio *l, const struct tree *t, const char *key,
		     unsigned long *v)
{
	const char *text = tree_text(t, key);

	if (text && import_number(text, 65535, v))
		return true;
	import_note(l->m, t, "%s: left out: no number; repair the file", key);
	return false;
}

static void take_luns(struct lio *l, struct import_target *t,
		      const struct tree *tpg, bool read_only)
{
	for (const struct tree *c = children(tpg, "luns"); c; c = c->next) {
		unsigned long number;
		struct import_unit *u;

		if (!index_of(l, c, "index", &number))
			continue;
		u = unit_of(l, c, number);
		if (u)
			import_lun_add(l->m, &t->luns, c, number, u, read_only);
	}
}

/* Whether an ACL maps exactly the LUNs that the target has without a map. */
static bool is_whole_map(const struct import_model *m,
			 const struct import_luns *a,
			 const struct import_luns *b)
{
	if (a->n != b->n)
		return false;
	for (const struct import_lun *l = a->first; l; l = l->next) {
		const struct import_lun *o = import_lun_find(m, b, l->number);

		if (!o || o->unit != l->unit || o->read_only != l->read_only)
			return false;
	}
	return true;
}

static void take_map(struct lio *l, struct import_target *t,
		     const struct tree *acl, const char *initiator)
{
	/* a place of its own: import_lun_add knows maps by their places */
	struct import_luns *luns = pool_alloc(&l->m->pool, sizeof(*luns));

	for (const struct tree *c = children(acl, "mapped_luns"); c;
	     c = c->next) {
		unsigned long number, tpg_lun;
		const struct import_lun *of;

		if (!index_of(l, c, "index", &number) ||
		    !index_of(l, c, "tpg_lun", &tpg_lun))
			continue;
		of = import_lun_find(l->m, &t->luns, tpg_lun);
		if (!of)
			import_note(l->m, c,
				    "mapped LUN %lu of %s: left out: "
				    "the target has no LUN %lu",
				    number, initiator, tpg_lun);
		else
			import_lun_add(l->m, luns, c, number, of->unit,
				       is_on(tree_text(c, "write_protect")));
	}
	if (!is_whole_map(l->m, luns, &t->luns))
		import_map_add(l->m, t, initiator)->luns = *luns;
}

/* ---- access ---- */

/* The accounts of a TPG or of an ACL. Returns whether it has one. */
static bool take_chap(struct lio *l, struct import_auth *a,
		      const struct tree *t)
{
	const char *user = tree_text(t, "chap_userid");
	const char *secret = tree_text(t, "chap_password");
	const char *mutual_user = tree_text(t, "chap_mutual_userid");
	const char *mutual_secret = tree_text(t, "chap_mutual_password");

	if (user && *user && secret && *secret)
		import_auth_account(l->m, a, tree_find(t, "chap_userid"), user,
				    secret, false);
	if (mutual_user && *mutual_user && mutual_secret && *mutual_secret)
		import_auth_account(l->m, a, tree_find(t, "chap_mutual_userid"),
				    mutual_user, mutual_secret, true);
	return user && *user && secret && *secret;
}

static void take_accounts(struct lio *l, struct import_auth *a,
			  const struct tree *tpg, bool is_demo)
{
	unsigned n = 0;

	a->by_account = true;
	if (is_demo)
		n += take_chap(l, a, tpg);
	for (const struct tree *c = children(tpg, "node_acls"); c; c = c->next)
		if (take_chap(l, a, c))
			n++;
		else
			import_note(l->m, c,
				    "ACL of %s: has no account of CHAP, which "
				    "the TPG requires; the initiator needs one "
				    "of the accounts of the auth group %s",
				    text_or(c, "node_wwn", "?"), a->name);
	if (n > 1)
		import_note(l->m, tpg,
			    "auth group %s: LIO accepts each account from one "
			    "initiator, iserd from each initiator of the "
			    "group; divide the target if that matters",
			    a->name);
}

/* The name of what belongs to a target. */
static const char *short_name(const char *target)
{
	const char *colon = strrchr(target, ':');

	return colon && colon[1] ? colon + 1 : target;
}

static void take_access(struct lio *l, struct import_target *t,
			const struct tree *tpg)
{
	const struct tree *attributes = tree_find(tpg, "attributes");
	bool is_demo = is_on(tree_text(attributes, "generate_node_acls"));
	struct import_auth *a = import_auth_new(l->m, short_name(t->name));

	if (!is_demo)
		a->by_name = true;
	for (const struct tree *c = children(tpg, "node_acls"); c;
	     c = c->next) {
		const char *name =
			import_initiator(l->m, c, text_or(c, "node_wwn", "?"));

		if (name && !is_demo)
			import_auth_name(l->m, a, c, name);
		if (name)
			take_map(l, t, c, name);
	}
	if (is_on(tree_text(attributes, "authentication")))
		take_accounts(l, a, tpg, is_demo);
	t->auth = import_auth_done(l->m, tpg, a);
}

/* ---- portals ---- */

/* Returns ADDR:PORT as iserd takes it, or NULL after a note. */
static const char *listen_address(struct lio *l, const struct tree *portal)
{
	const char *ip = text_or(portal, "ip_address", "?");
	const char *port = text_or(portal, "port", "3260");
	const char *address = import_listen(l->m, ip, port);

	if (!address)
		import_note(l->m, portal,
			    "portal %s, port %s: left out: not a numeric "
			    "address and port; add it to listen of a portal "
			    "group",
			    ip, port);
	return address;
}

static struct place *find_place(struct lio *l, const char *address)
{
	struct place *p = pool_get(&l->m->pool, &by_address, address);

	if (p)
		return p;
	p = pool_alloc(&l->m->pool, sizeof(*p));
	p->address = address;
	p->index = l->nplaces++;
	pool_put(&l->m->pool, &by_address, address, p);
	if (l->last_place)
		l->last_place->next = p;
	else
		l->places = p;
	l->last_place = p;
	return p;
}

static void use_place(struct lio *l, struct place *p, struct import_target *t)
{
	if (p->n && p->users[p->n - 1] == t)
		return;
	if (p->n == p->size) {
		unsigned size = p->size ? 2 * p->size : 4;
		struct import_target **users =
			pool_alloc(&l->m->pool, size * sizeof(*users));

		if (p->n)
			memcpy(users, p->users, p->n * sizeof(*users));
		p->users = users;
		p->size = size;
	}
	p->users[p->n++] = t;
}

static void take_portals(struct lio *l, struct import_target *t,
			 const struct tree *tpg)
{
	for (const struct tree *c = children(tpg, "portals"); c; c = c->next) {
		const char *address = listen_address(l, c);

		if (address)
			use_place(l, find_place(l, address), t);
		if (is_on(tree_text(c, "offload")))
			import_note(l->m, c,
				    "portal %s: offload is not "
				    "carried over: iserd uses sockets "
				    "and RDMA devices; nothing to do",
				    address ? address : "?");
	}
}

/* Places with the same users next to each other, in the order of the file. */
static int compare_places(const void *a, const void *b)
{
	const struct place *x = *(struct place *const *)a;
	const struct place *y = *(struct place *const *)b;
	int order = 0;

	if (x->n != y->n)
		return x->n < y->n ? -1 : 1;
	if (x->n)
		order = memcmp(x->users, y->users, x->n * sizeof(*x->users));
	return order ? order : x->index < y->index ? -1 : 1;
}

static bool same_users(const struct place *a, const struct place *b)
{
	return a->n == b->n &&
	       !memcmp(a->users, b->users, a->n * sizeof(*a->users));
}

/* Returns for each place, by its index, the first place with the same users. */
static struct place **first_places(struct lio *l)
{
	size_t size = (l->nplaces + 1) * sizeof(struct place *);
	struct place **sorted = pool_alloc(&l->m->pool, size);
	struct place **firsts = pool_alloc(&l->m->pool, size);
	struct place *first = NULL;

	for (struct place *p = l->places; p; p = p->next)
		sorted[p->index] = p;
	qsort(sorted, l->nplaces, sizeof(*sorted), compare_places);
	for (unsigned i = 0; i < l->nplaces; i++) {
		if (!first || !same_users(first, sorted[i]))
			first = sorted[i];
		firsts[sorted[i]->index] = first;
	}
	return firsts;
}

/* Addresses that the same targets use become one portal group. */
static void make_portals(struct lio *l, const struct import_auth *discovery)
{
	struct place **firsts = first_places(l);
	struct import_model *m = l->m;

	for (struct place *p = l->places; p; p = p->next) {
		struct place *first = firsts[p->index];

		if (first == p) {
			p->portal = import_portal_new(
				m, pool_format(&m->pool, "portal%u",
					       m->last_tag + 1));
			p->portal->discovery_auth = discovery;
			for (unsigned i = 0; i < p->n; i++)
				import_texts_add(m, &p->users[i]->portals,
						 p->portal->name);
		}
		import_portal_listen(m, first->portal, p->address);
	}
}

static const struct import_auth *take_discovery(struct lio *l,
						const struct tree *file)
{
	for (const struct tree *f = children(file, "fabric_modules"); f;
	     f = f->next) {
		const char *user = tree_text(f, "discovery_userid");
		const char *secret = tree_text(f, "discovery_password");
		struct import_auth *a;

		if (strcmp(text_or(f, "name", ""), "iscsi") != 0 ||
		    !is_on(tree_text(f, "discovery_enable_auth")))
			continue;
		a = import_auth_new(l->m, "discovery");
		a->by_account = true;
		if (user && secret)
			import_auth_account(l->m, a, f, user, secret, false);
		user = tree_text(f, "discovery_mutual_userid");
		secret = tree_text(f, "discovery_mutual_password");
		if (user && secret)
			import_auth_account(l->m, a, f, user, secret, true);
		return import_auth_done(l->m, f, a);
	}
	return NULL;
}

/* ---- targets ---- */

/* Whether two parts of the file have the same LUNs and access rules. */
static bool is_same(const struct tree *a, const struct tree *b)
{
	static const char *const ignored[] = { "alias", "attributes",
					       "parameters",
					       "alua_tg_pt_gp_name" };
	const struct tree *x, *y;

	if (!a || !b || a->kind != b->kind)
		return a == b;
	if (a->kind == TREE_SCALAR)
		return a->text && b->text ? !strcmp(a->text, b->text)
					  : a->text == b->text;
	for (x = a->first, y = b->first; x && y; x = x->next, y = y->next) {
		bool skip = false;

		if (x->key && strcmp(x->key, y->key) != 0)
			return false;
		for (size_t i = 0; x->key && i < ARRAY_LEN(ignored); i++)
			skip |= !strcmp(x->key, ignored[i]);
		if (!skip && !is_same(x, y))
			return false;
	}
	return !x && !y;
}

/* The first TPG gives the LUNs and the access rules. */
static void take_first_tpg(struct lio *l, struct import_target *t,
			   const struct tree *tpg)
{
	const struct tree *attributes = tree_find(tpg, "attributes");
	const struct tree *parameters = tree_find(tpg, "parameters");
	const char *alias = tree_text(parameters, "TargetAlias");
	bool is_demo = is_on(tree_text(attributes, "generate_node_acls"));
	bool protects =
		is_on(text_or(attributes, "demo_mode_write_protect", "1"));

	note_unusual(l, attributes, t->name, tpg_attributes,
		     ARRAY_LEN(tpg_attributes));
	note_unusual(l, parameters, t->name, tpg_parameters,
		     ARRAY_LEN(tpg_parameters));
	if (alias && *alias && strcmp(alias, "LIO Target") != 0)
		t->alias = alias;
	take_luns(l, t, tpg, is_demo && protects);
	if (is_demo && protects && t->luns.n)
		import_note(l->m, tpg,
			    "target %s: LUNs are read-only for initiators "
			    "without an ACL, as demo_mode_write_protect says; "
			    "remove read-only if that is not meant",
			    t->name);
	take_access(l, t, tpg);
}

static void take_tpgs(struct lio *l, struct import_target *t,
		      const struct tree *target)
{
	const struct tree *first = NULL;

	for (const struct tree *c = children(target, "tpgs"); c; c = c->next) {
		const char *tag = text_or(c, "tag", "?");

		if (!is_on(text_or(c, "enable", "1"))) {
			import_note(l->m, c,
				    "target %s: TPG %s: left out: it is not "
				    "enabled; nothing to do",
				    t->name, tag);
			continue;
		}
		if (!first) {
			first = c;
			take_first_tpg(l, t, c);
		} else if (!is_same(tree_find(first, "luns"),
				    tree_find(c, "luns")) ||
			   !is_same(tree_find(first, "node_acls"),
				    tree_find(c, "node_acls"))) {
			import_note(l->m, c,
				    "target %s: TPG %s: left out: its LUNs or "
				    "ACLs differ from those of TPG %s, and "
				    "iserd has one set for all portals; make "
				    "it a target of its own",
				    t->name, tag, text_or(first, "tag", "?"));
			continue;
		}
		take_portals(l, t, c);
	}
	if (!first)
		t->auth = &import_none;
}

static void take_target(struct lio *l, const struct tree *target)
{
	const char *fabric = text_or(target, "fabric", "iscsi");
	const char *name = text_or(target, "wwn", "?");
	struct import_target *t;

	if (strcmp(fabric, "iscsi") != 0) {
		import_note(l->m, target,
			    "target %s: left out: iserd does not serve the "
			    "fabric %s; keep LIO for it",
			    name, fabric);
		return;
	}
	t = import_target_new(l->m, target, name);
	if (!t)
		return;
	take_tpgs(l, t, target);
	if (!t->luns.n)
		import_note(l->m, target,
			    "target %s: has no LUN; add one, or remove the "
			    "target",
			    name);
}

/* A target without an address gets none: iserd would serve it nowhere. */
static void note_unreachable(struct lio *l)
{
	struct import_portal *p = NULL;

	for (struct import_target *t = l->m->targets; t; t = t->next) {
		if (t->portals.n)
			continue;
		import_note(l->m, t->at,
			    "target %s: has no portal; it is served at "
			    "127.0.0.1 only: change listen of the portal "
			    "group unreachable",
			    t->name);
		if (!p) {
			p = import_portal_new(l->m, "unreachable");
			import_texts_add(l->m, &p->listen, "127.0.0.1:0");
		}
		import_texts_add(l->m, &t->portals, p->name);
	}
}

void import_lio(struct import_model *m, const struct tree *file)
{
	struct lio l = { .m = m };

	take_storages(&l, file);
	for (const struct tree *t = children(file, "targets"); t; t = t->next)
		take_target(&l, t);
	make_portals(&l, take_discovery(&l, file));
	note_unreachable(&l);
}
