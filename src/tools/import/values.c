/* SPDX-License-Identifier: BSD-2-Clause */
/* values.c: single values of other targets as iserd has them. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/opt.h"
#include "daemon/fields.h"
#include "tools/import/model.h"

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

const char *import_path(struct import_model *m, const struct tree *at,
			const char *prefix, const char *path)
{
	if (path && *path == '/')
		return pool_format(&m->pool, "%s%s", prefix, path);
	import_note(m, at,
		    "%s: left out: not an absolute path; give the path of the "
		    "file or device",
		    path && *path ? path : "a LUN without a path");
	return NULL;
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

void import_check_units(struct import_model *m)
{
	for (struct import_unit *u = m->units; u; u = u->next) {
		u->vendor = check_identity(m, u, "vendor", u->vendor, 8);
		u->product = check_identity(m, u, "product", u->product, 16);
		u->revision = check_identity(m, u, "revision", u->revision, 4);
		u->serial = check_identity(m, u, "serial", u->serial, 36);
	}
}
