/* SPDX-License-Identifier: BSD-2-Clause */
/* values.c: single values of other targets as iserd has them. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "base/hex.h"
#include "base/opt.h"
#include "daemon/config/fields.h"
#include "iscsi/names.h"
#include "tools/import/model.h"
#include "tools/tgt_names.h"

bool import_number(const char *text, unsigned long max, unsigned long *v)
{
	bool is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	const char *digits = is_hex ? text + 2 : text;
	unsigned long value;
	char *end;

	if (!isxdigit((unsigned char)*digits) || strlen(digits) > 10)
		return false;
	value = strtoul(digits, &end, is_hex ? 16 : 10);
	if (*end || value > max)
		return false;
	*v = value;
	return true;
}

const char *import_memory(struct import_model *m, const struct tree *at,
			  const char *kind, const char *size)
{
	uint64_t bytes;

	if (size && opt_size(size, &bytes) && bytes && bytes % 4096 == 0)
		return pool_format(&m->pool, "%s:%s", kind, size);
	import_note(m, at,
		    "size %s: the ramdisk is left out: not a multiple of 4096 "
		    "bytes; give another size",
		    size ? size : "?");
	return NULL;
}

void import_block_size(struct import_model *m, struct import_unit *u,
		       const struct tree *at, const char *text)
{
	unsigned long size;

	if (import_number(text, 65536, &size) && (size == 512 || size == 4096))
		u->block_size = (unsigned)size;
	else
		import_note(m, at,
			    "block size %s of %s: not carried over: iserd has "
			    "blocks of 512 and 4096 bytes; choose one of them, "
			    "and copy the data if initiators depend on it",
			    text, u->store);
}

/* Why a path cannot be that of a store, or NULL. */
static const char *path_refusal(struct import_model *m, const char *path)
{
	const char *suffix = cfg_store_suffix(path);

	if (suffix)
		return pool_format(&m->pool,
				   "iserd takes ,%s= in a path for a suffix; "
				   "give the file another name",
				   suffix);
	return cfg_is_path(path) ? NULL
				 : "iserd takes this for another kind of store "
				   "than a file; give an absolute path";
}

const char *import_path(struct import_model *m, const struct tree *at,
			const char *prefix, const char *path)
{
	const char *why = path && *path ? path_refusal(m, path)
					: "it has no path; give one";

	if (why) {
		import_note(m, at, "%s: left out: %s",
			    path && *path ? path : "a LUN", why);
		return NULL;
	}
	if (*path != '/')
		import_note(m, at,
			    "%s: a path in the working directory of the other "
			    "target, and now in that of iserd; give an "
			    "absolute path",
			    path);
	return pool_format(&m->pool, "%s%s", prefix, path);
}

/* Adds an option of a Ceph image to a store. NULL after a note. */
static const char *add_rbd_option(struct import_model *m, const struct tree *at,
				  const char *store, const char *option,
				  size_t len)
{
	static const char *const known[] = { "conf=", "id=" };

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (!strncmp(option, known[i], strlen(known[i])))
			return pool_format(&m->pool, "%s,%.*s", store, (int)len,
					   option);
	import_note(m, at,
		    "%s: option %.*s: not carried over: iserd(8) lists those "
		    "of an image of Ceph",
		    store, (int)strcspn(option, "=;"), option);
	return store;
}

const char *import_rbd(struct import_model *m, const struct tree *at,
		       const char *image)
{
	const char *prefix = cfg_store_prefix("rbd"), *store;
	size_t len = strcspn(image, ";");
	const char *name = pool_copy(&m->pool, image, len);

	if (!prefix || !*name || strchr(name, ',')) {
		import_note(m, at,
			    "image %s: left out: not an image of Ceph that "
			    "iserd can name; write a backstore by hand",
			    name);
		return NULL;
	}
	/* tgt's and Ceph's default pool */
	store = pool_format(&m->pool, "%s%s%s", prefix,
			    strchr(name, '/') ? "" : "rbd/", name);
	for (const char *o = image + len; *o; o += len) {
		o += strspn(o, ";\\ ");
		len = strcspn(o, ";\\");
		if (len)
			store = add_rbd_option(m, at, store, o, len);
	}
	return store;
}

/* Reads a number of a key; false after a note, or without a key. */
static bool key_number(struct import_model *m, const struct tree *at,
		       unsigned long max, unsigned long *v)
{
	if (!at || (at->kind == TREE_SCALAR && !at->text))
		return false;
	if (at->kind == TREE_SCALAR && import_number(at->text, max, v))
		return true;
	import_note(m, at, "%s: not carried over: not a number up to %lu",
		    at->key, max);
	return false;
}

void import_alias(struct import_model *m, struct import_target *t,
		  const struct tree *at, const char *alias)
{
	if (strlen(alias) <= ISCSI_NAME_MAX)
		t->alias = alias;
	else
		import_note(m, at,
			    "alias of %s: not carried over: longer than %d "
			    "bytes; give the target a shorter one",
			    t->name, ISCSI_NAME_MAX);
}

void import_max_connections(struct import_model *m, struct import_target *t,
			    const struct tree *at)
{
	unsigned long v, most = cfg_field_max("target", "max-connections");

	if (!key_number(m, at, 65535, &v) || !v)
		v = 1; /* the default of RFC 7143 §13.2 */
	if (v > most) {
		import_note(m, at, "%s %lu: %lu, the most that iserd has",
			    at->key, v, most);
		v = most;
	}
	if (!t->max_connections || v < t->max_connections)
		t->max_connections = (unsigned)v;
}

void import_recovery_level(struct import_model *m, struct import_target *t,
			   const struct tree *at)
{
	unsigned long v;

	if (!key_number(m, at, 2, &v) || v <= m->recovery_level)
		return;
	import_note(m, at,
		    "%s %lu of %s: carried over as error-recovery-level of "
		    "daemon, which is that of all targets; check that it is "
		    "meant for all",
		    at->key, v, t->name);
	m->recovery_level = (unsigned)v;
}

void import_demand_digests(struct import_model *m, struct import_target *t,
			   const struct tree *at)
{
	t->prefers_digests = true;
	import_note(m, at,
		    "digests of %s: CRC32C, where the initiator offers it; "
		    "iserd also accepts initiators that offer None only: let "
		    "these offer CRC32C",
		    t->name);
}

/* ---- identity ---- */

#define NAA_DIGITS 32 /* of an IEEE Registered Extended identifier */
#define TGT_NAME_DIGITS \
 8 /* with fewer, disks of other machines have the same name */

/* The scopes of the names of the units. */
static const char by_naa, by_serial, by_eui;

/* Returns the form of SPC-4 §7.8.6.6 that iserd takes. */
static bool is_naa(const char *digits)
{
	size_t len = strspn(digits, "0123456789abcdef");

	return !digits[len] && ((len == 16 && strchr("235", *digits)) ||
				(len == NAA_DIGITS && *digits == '6'));
}

void import_set_naa(struct import_model *m, struct import_unit *u,
		    const struct tree *at, const char *digits)
{
	const struct import_unit *o = pool_get(&m->pool, &by_naa, digits);

	if (!is_naa(digits)) {
		import_note(m, at,
			    "NAA identifier %s of %s: not carried over: not 16 "
			    "digits of which the first is 2, 3 or 5, nor 32 of "
			    "which the first is 6 (SPC-4 §7.8.6.6); give "
			    "another naa",
			    digits, u->store);
	} else if (o) {
		import_note(m, at,
			    "NAA identifier %s of %s: not carried over: %s has "
			    "it, too, and initiators would take both for one "
			    "disk; nothing to do",
			    digits, u->store, o->store);
	} else {
		u->naa = digits;
		pool_put(&m->pool, &by_naa, digits, u);
	}
}

static void note_weak(struct import_model *m, const struct tree *at,
		      const struct import_unit *u, const char *naa)
{
	import_note(m, at,
		    "NAA identifier of %s: not carried over: its serial number "
		    "or scsi_id has fewer than %d hexadecimal digits, so that "
		    "disks of other machines may have it; give naa: %s to keep "
		    "it",
		    u->store, TGT_NAME_DIGITS, naa);
}

void import_naa_of_lio(struct import_model *m, struct import_unit *u,
		       const struct tree *at, const char *company,
		       const char *serial)
{
	unsigned long id = 0x001405; /* LIO's own */
	char naa[NAA_DIGITS + 1];
	bool is_weak;
	size_t n;

	if (company && !import_number(company, 0xffffff, &id)) {
		import_note(m, at,
			    "company_id %s of %s: not carried over, nor the "
			    "NAA identifier: not a number of 24 bits",
			    company, u->store);
		return;
	}
	n = (size_t)snprintf(naa, sizeof(naa), "6%06lx", id);
	for (; *serial && n < NAA_DIGITS; serial++)
		if (hex_digit(*serial) >= 0)
			naa[n++] = "0123456789abcdef"[hex_digit(*serial)];
	is_weak = n < 7 + TGT_NAME_DIGITS;
	memset(naa + n, '0', NAA_DIGITS - n);
	naa[NAA_DIGITS] = '\0';
	if (is_weak)
		note_weak(m, at, u, naa);
	else
		import_set_naa(m, u, at, pool_copy(&m->pool, naa, NAA_DIGITS));
}

void import_naa_of_tgt(struct import_model *m, struct import_unit *u,
		       const struct tree *at, const char *scsi_id)
{
	char naa[TGT_NAA_SIZE];

	if (tgt_naa(scsi_id, naa))
		import_set_naa(m, u, at, pool_copy(&m->pool, naa, NAA_DIGITS));
	else
		note_weak(m, at, u, naa);
}

/* Writes the digits of "0x..." with or without dashes, filled with zeros to one of
 * the lengths, as hex2bin of FreeBSD does. NULL after a note. */
static const char *id_of_ctl(struct import_model *m, const struct tree *at,
			     const char *text, const size_t *lengths, size_t n)
{
	char id[NAA_DIGITS + 1];
	size_t len = 0;

	text += 2 * !strncasecmp(text, "0x", 2);
	for (const char *p = text; *p; p++) {
		if (*p == '-')
			continue;
		if (hex_digit(*p) < 0 || len == NAA_DIGITS) {
			import_note(m, at,
				    "identifier %s: not carried over: not up "
				    "to %d hexadecimal digits",
				    text, NAA_DIGITS);
			return NULL;
		}
		id[len++] = "0123456789abcdef"[hex_digit(*p)];
	}
	for (; n > 1 && len > *lengths; n--)
		lengths++;
	memset(id + len, '0', *lengths - len);
	return pool_copy(&m->pool, id, *lengths);
}

void import_naa_of_ctl(struct import_model *m, struct import_unit *u,
		       const struct tree *at, const char *text)
{
	static const size_t lengths[] = { 16, 32 };
	const char *id = id_of_ctl(m, at, text, lengths, ARRAY_LEN(lengths));

	if (id)
		import_set_naa(m, u, at, id);
}

void import_eui_of_ctl(struct import_model *m, struct import_unit *u,
		       const struct tree *at, const char *text)
{
	static const size_t lengths[] = { 16, 24, 32 };
	const char *id = id_of_ctl(m, at, text, lengths, ARRAY_LEN(lengths));

	if (id && strspn(id, "0") == strlen(id))
		import_note(m, at,
			    "eui %s of %s: not carried over: not an EUI-64 "
			    "(SPC-4 §7.8.6.5); give another one",
			    text, u->store);
	else
		u->eui = id;
}

const char import_give_naa[] =
	"to keep one, give naa or eui as initiators show it";

static bool has_new_name(const struct import_unit *u)
{
	return !u->naa && !u->eui && strncmp(u->store, "scsi:", 5) != 0 &&
	       strncmp(u->store, "ram:", 4) != 0 &&
	       strncmp(u->store, "null:", 5) != 0;
}

void import_note_names(struct import_model *m, const char *without,
		       const char *how)
{
	const struct import_unit *u = m->units;

	while (u && !has_new_name(u))
		u = u->next;
	if (u)
		import_note(m, u->at,
			    "identity of %s, and of other stores without %s: "
			    "initiators see new names; %s",
			    u->store, without, how);
}

/* Cuts a text to the length of its field; blanks and letters of ASCII only. */
static const char *check_identity(struct import_model *m,
				  const struct import_unit *u, const char *what,
				  const char *text, size_t max)
{
	size_t len = text ? strlen(text) : 0;

	if (!len)
		return NULL;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] > '~') {
			import_note(m, u->at,
				    "%s %s of %s: not carried over: not ASCII; "
				    "choose another one",
				    what, text, u->name);
			return NULL;
		}
	if (len <= max)
		return text;
	import_note(m, u->at,
		    "%s %s of %s: cut to %zu characters, the length of its "
		    "field; nothing to do",
		    what, text, u->name, max);
	return pool_copy(&m->pool, text, max);
}

/* Two disks with one serial number would be one disk for initiators. */
static const char *unique_name(struct import_model *m, struct import_unit *u,
			       const void *scope, const char *what,
			       const char *text)
{
	const struct import_unit *o =
		text ? pool_get(&m->pool, scope, text) : NULL;

	if (!text)
		return NULL;
	if (!o) {
		pool_put(&m->pool, scope, text, u);
		return text;
	}
	import_note(m, u->at,
		    "%s %s of %s: not carried over: %s has it, too, and "
		    "initiators may take both for one disk; nothing to do",
		    what, text, u->name, o->name);
	return NULL;
}

/* A SCSI device of the machine reports its own names, and has its own cache. */
static void check_device(struct import_model *m, struct import_unit *u)
{
	if (u->vendor || u->product || u->revision || u->serial || u->naa ||
	    u->eui || u->cache != CACHE_DEFAULT)
		import_note(m, u->at,
			    "%s: identity and cache are not carried over: they "
			    "are those of the device; nothing to do",
			    u->store);
	u->vendor = u->product = u->revision = u->serial = NULL;
	u->naa = u->eui = NULL;
	u->cache = CACHE_DEFAULT;
}

void import_check_units(struct import_model *m)
{
	for (struct import_unit *u = m->units; u; u = u->next) {
		if (!strncmp(u->store, "scsi:", 5))
			check_device(m, u);
		u->vendor = check_identity(m, u, "vendor", u->vendor, 8);
		u->product = check_identity(m, u, "product", u->product, 16);
		u->revision = check_identity(m, u, "revision", u->revision, 4);
		u->serial = check_identity(m, u, "serial", u->serial, 36);
		u->serial = unique_name(m, u, &by_serial, "serial", u->serial);
		u->eui = unique_name(m, u, &by_eui, "eui", u->eui);
	}
}
