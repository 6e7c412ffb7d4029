/* SPDX-License-Identifier: BSD-2-Clause */
/* names.c: see names.h. */
#include "daemon/apply/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/hex.h"
#include "daemon/apply/units.h"
#include "daemon/config/setters.h"
#include "daemon/luns/identity.h"
#include "device/device.h"
#include "device/identity.h"

/* In the order in which they are compared: a later one follows from an earlier one. */
enum name_kind {
	NAME_UUID,
	NAME_SERIAL,
	NAME_NAA,
	NAME_EUI,
	NAME_KINDS
};

/* A backstore and its names. */
struct named {
	unsigned index;
	bool has_uuid, has_names, is_reported;
	uint8_t uuid[16];
	struct dev_names names;
};

struct name {
	enum name_kind kind;
	struct named *of;
};

struct check {
	const struct cfg_model *m;
	struct unit *const *units;
	struct cfg_errors *errors;
};

static struct unit *unit_at(const struct check *c, unsigned i)
{
	return c->units ? c->units[i] : NULL;
}

/* ---- what has which names ---- */

static void copy_text(char *to, size_t size, const char *text)
{
	snprintf(to, size, "%s", text ? text : "");
}

struct dev_lu_config unit_config(const struct cfg_backstore *b)
{
	struct dev_lu_config cfg = {
		.read_only = b->lun.read_only,
		.rotational = b->rotational,
		.write_through = b->cache == CFG_WRITE_THROUGH,
		.limits = b->limits,
		.removable = b->lun.removable,
		.erase_rate = b->lun.sanitize_rate,
	};

	copy_text(cfg.vendor, sizeof(cfg.vendor), b->vendor);
	copy_text(cfg.product, sizeof(cfg.product), b->product);
	copy_text(cfg.revision, sizeof(cfg.revision), b->revision);
	copy_text(cfg.serial, sizeof(cfg.serial), b->serial);
	cfg.naa = b->naa;
	cfg.eui = b->eui;
	copy_text(cfg.name, sizeof(cfg.name), b->head.name);
	return cfg;
}

static void find_names(const struct check *c, unsigned i, struct named *n)
{
	static const uint8_t none[16];
	const struct cfg_backstore *b = &c->m->backstores.v[i];
	const struct unit *u = unit_at(c, i);
	const struct dev_lu_config cfg = unit_config(b);
	const char *operand;

	n->index = i;
	memcpy(n->uuid, u ? u->uuid : b->uuid, 16);
	n->has_uuid = memcmp(n->uuid, none, 16) != 0;
	n->has_names =
		n->has_uuid || cfg.serial[0] || cfg.naa.len || cfg.eui.len;
	if (lun_spec_kind(b->store, &operand) == LUN_SCSI)
		n->has_names = false; /* the device has its own */
	dev_names_make(&n->names, &cfg, n->uuid);
}

static unsigned list_names(struct named *n, struct name *to)
{
	unsigned count = 0;

	if (n->has_uuid)
		to[count++] = (struct name){ NAME_UUID, n };
	if (!n->has_names)
		return count;
	to[count++] = (struct name){ NAME_SERIAL, n };
	to[count++] = (struct name){ NAME_NAA, n };
	if (n->names.eui.len)
		to[count++] = (struct name){ NAME_EUI, n };
	return count;
}

static int compare_ids(const struct dev_id *x, const struct dev_id *y)
{
	return x->len != y->len ? x->len - y->len
				: memcmp(x->bytes, y->bytes, x->len);
}

static int compare_names(const struct name *x, const struct name *y)
{
	const struct dev_names *a = &x->of->names, *b = &y->of->names;
	int r = (int)x->kind - (int)y->kind;

	if (r)
		return r;
	switch (x->kind) {
	case NAME_UUID:
		return memcmp(x->of->uuid, y->of->uuid, 16);
	case NAME_SERIAL: /* with the vendor it is the T10 identifier */
		r = strcmp(a->serial, b->serial);
		return r ? r : strcmp(a->vendor, b->vendor);
	case NAME_NAA:
		return compare_ids(&a->naa, &b->naa);
	default:
		return compare_ids(&a->eui, &b->eui);
	}
}

static int compare(const void *a, const void *b)
{
	const struct name *x = a, *y = b;
	int r = compare_names(x, y);

	return r ? r
		 : (x->of->index > y->of->index) -
			       (x->of->index < y->of->index);
}

/* ---- one store as two backstores ---- */

static bool may_be_twice(const struct cfg_backstore *b)
{
	return b->lun.shared || b->lun.read_only;
}

/* Sets what a file is known by. False: the store is not a file. */
static bool find_file(const struct check *c, unsigned i, dev_t *dev, ino_t *ino)
{
	const struct unit *u = unit_at(c, i);
	const char *path;
	struct stat st;

	if (u) {
		*dev = u->dev;
		*ino = u->ino;
		return u->ino != 0;
	}
	if (lun_spec_kind(c->m->backstores.v[i].store, &path) != LUN_FILE ||
	    stat(path, &st))
		return false;
	*dev = S_ISBLK(st.st_mode) ? 0 : st.st_dev;
	*ino = S_ISBLK(st.st_mode) ? st.st_rdev : st.st_ino;
	return true;
}

static bool is_given(const struct check *c, unsigned i)
{
	const struct unit *u = unit_at(c, i);

	return !u || u->source == IDENTITY_FIELD;
}

/* Whether two names of two backstores are those of one store. That one file is used twice
 * only where it may is checked with its path. */
static bool is_one_store(const struct check *c, const struct named *a,
			 const struct named *b)
{
	dev_t dev[2];
	ino_t ino[2];

	if (find_file(c, a->index, &dev[0], &ino[0]) &&
	    find_file(c, b->index, &dev[1], &ino[1]) && dev[0] == dev[1] &&
	    ino[0] == ino[1])
		return true;
	/* a file and its loop device, for example */
	return a->has_uuid && b->has_uuid && !memcmp(a->uuid, b->uuid, 16) &&
	       !is_given(c, a->index) && !is_given(c, b->index) &&
	       may_be_twice(&c->m->backstores.v[a->index]) &&
	       may_be_twice(&c->m->backstores.v[b->index]);
}

/* ---- messages ---- */

static const char *text_of(const struct name *n, char out[40])
{
	const struct dev_id *id =
		n->kind == NAME_NAA ? &n->of->names.naa : &n->of->names.eui;

	if (n->kind == NAME_UUID)
		cfg_uuid_text(n->of->uuid, out);
	else if (n->kind == NAME_SERIAL)
		snprintf(out, 40, "%s", n->of->names.serial);
	else
		hex_put(out, id->bytes, id->len);
	return out;
}

/* A serial number that follows from another name is reported as that name. */
static struct name given_name(const struct check *c, const struct name *n)
{
	const struct cfg_backstore *b = &c->m->backstores.v[n->of->index];
	struct name given = *n;

	if (n->kind == NAME_SERIAL && !b->serial && b->naa.len)
		given.kind = NAME_NAA;
	else if (n->kind == NAME_SERIAL && !b->serial && b->eui.len)
		given.kind = NAME_EUI;
	return given;
}

static void report(const struct check *c, const struct named *a,
		   const struct name *found)
{
	const struct name given = given_name(c, found), *n = &given;
	static const char *const what[] = { "uuid", "serial number",
					    "NAA identifier", "EUI-64" };
	const struct cfg_head *h = &c->m->backstores.v[n->of->index].head;
	const char *other = c->m->backstores.v[a->index].head.name;
	char text[40];

	if (n->kind == NAME_UUID && !is_given(c, n->of->index))
		cfg_error(c->errors, cfg_head_at(h, NULL),
			  "backstore %.80s: has the uuid %s of backstore "
			  "%.80s, so initiators would take both for one disk; "
			  "if it is one store, give it once, or give both "
			  "\"shared: yes\"; else give one another uuid",
			  h->name, text_of(n, text), other);
	else
		cfg_error(c->errors, cfg_head_at(h, NULL),
			  "backstore %.80s: its %s %s is that of backstore "
			  "%.80s, so initiators would take both for one disk; "
			  "give each its own",
			  h->name, what[n->kind], text_of(n, text), other);
}

void unit_names_check(const struct cfg_model *m, struct unit *const *units,
		      struct cfg_errors *e)
{
	const struct check c = { m, units, e };
	struct named *all = calloc(m->backstores.n + 1, sizeof(*all));
	struct name *names =
		calloc(m->backstores.n + 1, NAME_KINDS * sizeof(*names));
	unsigned n = 0;

	if (!all || !names)
		cfg_error(e, (struct cfg_place){ 0 }, "out of memory");
	for (unsigned i = 0; all && names && i < m->backstores.n; i++) {
		find_names(&c, i, &all[i]);
		n += list_names(&all[i], &names[n]);
	}
	if (n)
		qsort(names, n, sizeof(*names), compare);
	for (unsigned i = 1; i < n; i++) {
		struct named *a = names[i - 1].of, *b = names[i].of;

		if (b->is_reported ||
		    compare_names(&names[i - 1], &names[i]) != 0 ||
		    is_one_store(&c, a, b))
			continue;
		report(&c, a, &names[i]);
		b->is_reported = true;
	}
	free(names);
	free(all);
}
