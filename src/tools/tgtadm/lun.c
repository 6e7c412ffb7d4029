/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lun.c: logical units. A unit that is made here has a backstore "tgt-TID-LUN",
 * unless a backstore with the same file exists: iserd opens a file once, and one
 * backstore can be in several targets.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "tools/tgt_names.h"
#include "tools/tgtadm/tgtadm.h"

#define LUN_MAX	  16383u /* of iserd */
#define NULL_SIZE "1T"	 /* of --bstype null, as in tgt */

static void lun_key(const struct tgtadm_request *r, char out[24])
{
	snprintf(out, 24, "%llu", (unsigned long long)r->lun);
}

/* Returns the LUN of the request, and its target in *target. NULL after a
 * message; *code is the exit status. */
static json_t *find_lun(struct tgtadm *t, json_t **target)
{
	char key[24];
	json_t *lun;

	lun_key(t->r, key);
	*target = tgtadm_target(t->config, t->r->tid, NULL);
	lun = json_object_get(json_object_get(*target, "luns"), key);
	if (!*target && t->r->op == TGTADM_UPDATE)
		tgtadm_say("%s", tgtadm_no_target);
	else if (!lun)
		tgtadm_say("%s", tgtadm_no_lun);
	return lun;
}

/* ---- new ---- */

/* Writes the path as iserd shall see it: iserd has another working directory. */
static int full_path(const char *path, char out[PATH_MAX])
{
	char folder[PATH_MAX] = "";
	int n;

	if (*path != '/' && !getcwd(folder, sizeof(folder)))
		return tgtadm_refuse("the working directory: %s",
				     strerror(errno));
	n = snprintf(out, PATH_MAX, "%s%s%s", folder, *folder ? "/" : "", path);
	return n < PATH_MAX ? 0
			    : tgtadm_refuse("%s: the path is too long",
					    tgtadm_invalid);
}

static bool is(const char *text, const char *word)
{
	return text && !strcmp(text, word);
}

/* Returns the exit status after a message. */
static int refuse_types(const struct tgtadm_request *r)
{
	static const char *const known[] = { "rdwr", "aio", "null",
					     "sg",   "mmc", "rbd" };
	const char *device = r->device ? r->device : "disk";
	bool good = !r->bstype;

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		good |= is(r->bstype, known[i]);
	if (!good)
		return tgtadm_refuse("%s: --bstype %.60s: iserd does not have "
				     "it; give rdwr, aio, null, sg or rbd",
				     tgtadm_invalid, r->bstype);
	if (strcmp(device, "disk") != 0 && strcmp(device, "cd") != 0 &&
	    strcmp(device, "pt") != 0)
		return tgtadm_refuse("%s: --device-type %.60s: iserd does not "
				     "have it; give disk, cd or pt",
				     tgtadm_invalid, device);
	if (is(device, "pt") != is(r->bstype, "sg"))
		return tgtadm_refuse("%s: --device-type pt goes with --bstype "
				     "sg",
				     tgtadm_invalid);
	return 0;
}

/* Adds the options of an image of Ceph, "conf=FILE;id=NAME", to its store. Returns
 * the exit status after a message. */
static int add_options(const struct tgtadm_request *r, char *out, size_t size)
{
	const char *o = r->bsopts ? r->bsopts : "";
	size_t n = strlen(out), len;

	for (o += strspn(o, ";\\"); *o; o += len + strspn(o + len, ";\\")) {
		len = strcspn(o, ";\\");
		if (strncmp(o, "conf=", 5) != 0 && strncmp(o, "id=", 3) != 0)
			return tgtadm_refuse(
				"%s: --bsopts %.60s: give conf=FILE "
				"and id=NAME",
				tgtadm_invalid, o);
		n += (size_t)snprintf(out + n, size - n, ",%.*s", (int)len, o);
		if (n >= size)
			return tgtadm_refuse("%s: --bsopts: too long",
					     tgtadm_invalid);
	}
	return 0;
}

/* Writes the store of an image of Ceph to out; rbd is tgt's default pool. */
static int rbd_store(const struct tgtadm_request *r, char *out, size_t size)
{
	if (!r->path || strchr(r->path, ',') ||
	    snprintf(out, size, "rbd:%s%s", strchr(r->path, '/') ? "" : "rbd/",
		     r->path) >= (int)size)
		return tgtadm_refuse("%s: --backing-store: give POOL/IMAGE",
				     tgtadm_invalid);
	return add_options(r, out, size);
}

/* Writes the store of the new unit to out. Returns the exit status. */
static int store_of(const struct tgtadm_request *r, char out[PATH_MAX + 8])
{
	const char *prefix = is(r->device, "cd")   ? "cd:"
			     : is(r->device, "pt") ? "scsi:"
						   : "";
	char path[PATH_MAX] = "";
	int code = refuse_types(r);

	if (code)
		return code;
	if (is(r->bstype, "null")) {
		snprintf(out, PATH_MAX + 8, "null:" NULL_SIZE);
		return 0;
	}
	if (is(r->bstype, "rbd"))
		return rbd_store(r, out, PATH_MAX + 8);
	if (!r->path && !is(r->device, "cd"))
		return tgtadm_refuse("'backing-store' option is necessary");
	code = r->path ? full_path(r->path, path) : 0;
	snprintf(out, PATH_MAX + 8, "%s%s", prefix, path);
	return code;
}

/* Reads the flags of --bsoflags, which ":" separates. */
static int take_flags(const char *flags, json_t *store)
{
	while (flags && *flags) {
		size_t n = strcspn(flags, ":");

		if (n == 4 && !strncmp(flags, "sync", n))
			json_object_set_new(store, "cache",
					    json_string("write-through"));
		else if (n != 6 || strncmp(flags, "direct", n) != 0)
			return tgtadm_refuse("%s: --bsoflags %.60s: give sync, "
					     "direct or sync:direct",
					     tgtadm_invalid, flags);
		flags += n + (flags[n] == ':');
	}
	return 0;
}

/* Makes the backstore of the request, which the caller releases. NULL after a
 * message. */
static json_t *make_store(struct tgtadm *t)
{
	const struct tgtadm_request *r = t->r;
	char text[PATH_MAX + 8];
	json_t *store;

	if (store_of(r, text))
		return NULL;
	store = json_pack("{s:s}", "store", text);
	if (!store)
		tgtadm_say("%s: the path is not UTF-8", tgtadm_invalid);
	if (store && r->blocksize && strcmp(r->blocksize, "512") != 0) {
		json_object_set_new(store, "block-size",
				    json_string(r->blocksize));
		if (strcmp(r->blocksize, "4096") != 0) {
			tgtadm_say("%s: --blocksize %.60s: give 512 or 4096",
				   tgtadm_invalid, r->blocksize);
			json_decref(store);
			return NULL;
		}
	}
	if (store && take_flags(r->bsoflags, store)) {
		json_decref(store);
		return NULL;
	}
	if (store && r->bsopts && !is(r->bstype, "rbd"))
		tgtadm_note(t,
			    "--bsopts: ignored: iserd has options of images of "
			    "Ceph (--bstype rbd) only");
	return store;
}

/* Returns the name of a backstore with the same file, or NULL. */
static const char *find_same(const struct tgtadm *t, const json_t *store)
{
	const char *text = get_text(store, "store"), *name;
	json_t *v;

	if (!strncmp(text, "null:", 5) || !strcmp(text, "cd:"))
		return NULL;
	json_object_foreach(json_object_get(t->config, "backstores"), name, v)
	{
		if (!strcmp(get_text(v, "store"), text))
			return name;
	}
	return NULL;
}

/* Finds or adds the backstore and writes its name to out. Takes over store. Returns
 * the exit status after a message. */
static int add_store(struct tgtadm *t, const json_t *luns, json_t *store,
		     char out[TGTADM_NAME_SIZE + 1])
{
	json_t *all = tgtadm_section(t, "backstores"), *old, *lun;
	const char *same = find_same(t, store), *key;

	snprintf(out, TGTADM_NAME_SIZE + 1, "tgt-%d-%llu", t->r->tid,
		 (unsigned long long)t->r->lun);
	if (!same) {
		for (unsigned i = 2; json_object_get(all, out); i++)
			snprintf(out, TGTADM_NAME_SIZE + 1, "tgt-%d-%llu-%u",
				 t->r->tid, (unsigned long long)t->r->lun, i);
		json_object_set_new(all, out, store);
		return 0;
	}
	snprintf(out, TGTADM_NAME_SIZE + 1, "%s", same);
	old = json_object_get(all, same);
	if (strcmp(get_text(old, "block-size"),
		   get_text(store, "block-size")) != 0)
		same = NULL;
	json_decref(store);
	if (!same)
		return tgtadm_refuse("%s: backstore %s has this file with "
				     "another block size",
				     tgtadm_invalid, out);
	json_object_foreach((json_t *)luns, key, lun)
	{
		if (!strcmp(tgtadm_backstore_of(lun), out))
			return tgtadm_refuse("%s: logical unit %s of this "
					     "target has this file already",
					     tgtadm_invalid, key);
	}
	return 0;
}

int tgtadm_lun_new(struct tgtadm *t)
{
	json_t *target = tgtadm_target(t->config, t->r->tid, NULL);
	json_t *luns = json_object_get(target, "luns"), *store;
	char key[24], name[TGTADM_NAME_SIZE + 1];

	lun_key(t->r, key);
	if (!target)
		return tgtadm_refuse("%s", tgtadm_no_target);
	/* LUN 0 of tgt is a controller, which each target has */
	if (!t->r->lun || json_object_get(luns, key))
		return tgtadm_refuse("%s", tgtadm_lun_exists);
	if (t->r->lun > LUN_MAX)
		return tgtadm_refuse("%s: LUN %s: iserd has LUNs up to %u",
				     tgtadm_invalid, key, LUN_MAX);
	store = make_store(t);
	if (!store || add_store(t, luns, store, name))
		return TGTADM_REFUSED;
	if (!luns) {
		luns = json_object();
		json_object_set_new(target, "luns", luns);
	}
	json_object_set_new(luns, key, json_string(name));
	return 0;
}

/* ---- delete ---- */

int tgtadm_lun_delete(struct tgtadm *t)
{
	json_t *target, *lun;
	char key[24], name[TGTADM_NAME_SIZE + 1];

	lun_key(t->r, key);
	target = tgtadm_target(t->config, t->r->tid, NULL);
	if (target && !t->r->lun &&
	    !json_object_get(json_object_get(target, "luns"), key))
		return tgtadm_refuse("%s", tgtadm_invalid);
	lun = find_lun(t, &target);
	if (!lun)
		return TGTADM_REFUSED;
	snprintf(name, sizeof(name), "%s", tgtadm_backstore_of(lun));
	json_object_del(json_object_get(target, "luns"), key);
	tgtadm_drop_backstore(t, name);
	return 0;
}

/* ---- update ---- */

struct update {
	struct tgtadm *t;
	json_t *luns, *store; /* of the LUN */
	char key[24], backstore[TGTADM_NAME_SIZE + 1];
};

/* Sets a text of INQUIRY, cut to what the field holds, as tgt does. */
static int set_text(struct update *u, const char *field, const char *value,
		    size_t most)
{
	if (!*value)
		return tgtadm_refuse("%s", tgtadm_invalid);
	if (strlen(value) > most)
		tgtadm_note(u->t, "%.200s: cut to %zu characters", value, most);
	json_object_set_new(u->store, field,
			    json_sprintf("%.*s", (int)most, value));
	return 0;
}

static int read_switch(const char *value, bool *out)
{
	*out = !strcmp(value, "1");
	if (*out || !strcmp(value, "0"))
		return 0;
	return tgtadm_refuse("%s: %.60s: give 0 or 1", tgtadm_invalid, value);
}

/* A unit in use cannot change this: tgtadm_change opens it again. */
static int set_removable(struct update *u, const char *value)
{
	bool yes, is_cd = !strncmp(get_text(u->store, "store"), "cd:", 3);
	json_t *sessions;
	size_t n;

	if (read_switch(value, &yes))
		return TGTADM_REFUSED;
	if (yes == (is_cd || tgtadm_is_yes(u->store, "removable")))
		return 0;
	if (is_cd)
		return tgtadm_refuse("%s: removable=0: the medium of a drive "
				     "is removable",
				     tgtadm_invalid);
	sessions = tgtadm_sessions(u->t, NULL);
	if (!sessions)
		return tgtadm_failed(u->t);
	n = json_array_size(sessions);
	json_decref(sessions);
	if (n || tgtadm_uses(u->t->config, u->backstore) > 1)
		return tgtadm_refuse("this logical unit is still active");
	json_object_set_new(u->store, "removable",
			    json_string(yes ? "yes" : "no"));
	snprintf(u->t->reopened, sizeof(u->t->reopened), "%s", u->backstore);
	return 0;
}

static int set_readonly(struct update *u, const char *value)
{
	bool yes;

	if (read_switch(value, &yes))
		return TGTADM_REFUSED;
	json_object_set_new(u->luns, u->key,
			    yes ? json_pack("{s:s, s:s}", "backstore",
					    u->backstore, "read-only", "yes")
				: json_string(u->backstore));
	return 0;
}

static int set_online(const char *value)
{
	bool yes;

	if (!strcasecmp(value, "yes"))
		return 0;
	if (!strcasecmp(value, "no"))
		value = "0";
	if (read_switch(value, &yes))
		return TGTADM_REFUSED;
	if (yes)
		return 0;
	return tgtadm_refuse("%s: online=0: iserd cannot take one logical unit "
			     "offline; delete it, or set the state of the "
			     "target to offline",
			     tgtadm_invalid);
}

/* Of the mode pages, only WCE of the caching page (08h, SPC-4 and SBC-3 §6.5.5) has
 * a field: "8:0:18:BYTE2:...". */
static int set_mode_page(struct update *u, const char *value)
{
	unsigned page, sub, len;
	int byte2;

	if (sscanf(value, "%i:%u:%u:%i", (int *)&page, &sub, &len, &byte2) ==
		    4 &&
	    page == 8 && sub == 0) {
		json_object_set_new(u->store, "cache",
				    json_string(byte2 & 4 ? "write-back"
							  : "write-through"));
		return 0;
	}
	tgtadm_note(u->t,
		    "mode_page=%.60s: ignored: iserd has its own mode pages, "
		    "which initiators change",
		    value);
	return 0;
}

/* Returns the name of another backstore with this NAA identifier, or NULL. */
static const char *find_naa(const struct update *u, const char *naa)
{
	const char *name;
	json_t *v;

	json_object_foreach(json_object_get(u->t->config, "backstores"), name,
			    v)
	{
		if (!strcasecmp(get_text(v, "naa"), naa) &&
		    strcmp(name, u->backstore) != 0)
			return name;
	}
	return NULL;
}

/* tgt makes an NAA identifier of scsi_id, by which initiators know the disk: the
 * field naa. Two disks never get the same one. */
static int set_id(struct update *u, const char *value)
{
	char naa[TGT_NAA_SIZE];
	const char *other;

	if (!*value)
		return tgtadm_refuse("%s", tgtadm_invalid);
	if (!tgt_naa(value, naa)) {
		tgtadm_note(u->t,
			    "scsi_id: ignored: tgt makes a name for initiators "
			    "of its hexadecimal digits, and other machines "
			    "have disks with so few; iserd makes one of "
			    "scsi_sn");
		return 0;
	}
	other = find_naa(u, naa);
	if (other)
		tgtadm_note(u->t,
			    "scsi_id: ignored: backstore %s has the NAA "
			    "identifier %s that follows from it",
			    other, naa);
	else
		json_object_set_new(u->store, "naa", json_string(naa));
	return 0;
}

#define SERIAL_DIGITS \
 16 /* hexadecimal, of a serial number that no other disk has */

/* The serial number of an OCF agent has 8 digits, made of the name of a resource, which other
 * clusters have, too. Together with the target it gives a name (NAA 3h, SPC-4 §7.8.6.6.4)
 * that stays after a fail-over and that no other disk has. */
static void name_by_target(const struct update *u, const char *target)
{
	const char *serial = get_text(u->store, "serial");
	const char *const texts[] = { target, "\n", serial };
	uint64_t hash = HASH_BEGIN;
	unsigned digits = 0;

	for (const char *p = serial; *p; p++)
		digits += hex_digit(*p) >= 0;
	if (!*serial || digits >= SERIAL_DIGITS || *get_text(u->store, "naa") ||
	    *get_text(u->store, "eui"))
		return;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		hash = hash_add(hash, texts[i], strlen(texts[i]));
	json_object_set_new(u->store, "naa",
			    json_sprintf("3%07x%08x",
					 (unsigned)(hash >> 32) & 0xfffffff,
					 (unsigned)hash));
}

/* Returns whether the parameter is one that tgt has and iserd does not. */
static bool is_ignored(const char *name)
{
	static const char *const names[] = {
		"sense_format",	     "lbppbe",		 "la_lba",
		"optimal_xfer_gran", "optimal_xfer_len", "thin_provisioning",
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

static int set_param(struct update *u, const struct tgtadm_param *p)
{
	static const struct {
		const char *name, *field;
		size_t most;
	} texts[] = {
		{ "vendor_id", "vendor", 8 },
		{ "product_id", "product", 16 },
		{ "product_rev", "revision", 4 },
		{ "scsi_sn", "serial", 36 },
	};

	if (!p->value)
		return tgtadm_refuse("%s", tgtadm_invalid);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (!strcmp(texts[i].name, p->name))
			return set_text(u, texts[i].field, p->value,
					texts[i].most);
	if (!strcmp(p->name, "scsi_id"))
		return set_id(u, p->value);
	if (!strcmp(p->name, "removable"))
		return set_removable(u, p->value);
	if (!strcmp(p->name, "readonly"))
		return set_readonly(u, p->value);
	if (!strcmp(p->name, "online"))
		return set_online(p->value);
	if (!strcmp(p->name, "mode_page"))
		return set_mode_page(u, p->value);
	if (!is_ignored(p->name))
		return tgtadm_refuse("%s: %.60s: iserd does not have this "
				     "parameter",
				     tgtadm_invalid, p->name);
	tgtadm_note(u->t, "%s: ignored: iserd reports its own value", p->name);
	return 0;
}

int tgtadm_lun_update(struct tgtadm *t)
{
	struct update u = { .t = t };
	json_t *target, *lun;
	struct tgtadm_param p;
	const char *name = "";
	char *text, *next;
	int code = 0;

	lun_key(t->r, u.key);
	target = tgtadm_target(t->config, t->r->tid, &name);
	if (target && !t->r->lun &&
	    !json_object_get(json_object_get(target, "luns"), u.key)) {
		tgtadm_note(t, "logical unit 0: ignored: iserd has no "
			       "controller there");
		return 0;
	}
	lun = find_lun(t, &target);
	if (!lun)
		return TGTADM_REFUSED;
	snprintf(u.backstore, sizeof(u.backstore), "%s",
		 tgtadm_backstore_of(lun));
	u.luns = json_object_get(target, "luns");
	u.store = json_object_get(json_object_get(t->config, "backstores"),
				  u.backstore);
	text = strdup(t->r->params ? t->r->params : "");
	next = text;
	if (!text)
		return tgtadm_refuse("out of memory");
	while (!code && tgtadm_param(&next, &p))
		code = set_param(&u, &p);
	free(text);
	if (!code)
		name_by_target(&u, name);
	return code;
}
