/* SPDX-License-Identifier: BSD-2-Clause */
/* units.c: opens backstores and makes units of them. */
#include "daemon/apply/units.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backstore/backstore.h"
#include "base/err.h"
#include "base/hex.h"
#include "daemon/apply/health.h"
#include "daemon/apply/look_identity.h"
#include "daemon/apply/names.h"
#include "daemon/cluster/gateway.h"
#include "daemon/config/setters.h"
#include "daemon/daemon.h"
#include "daemon/log/say.h"
#include "daemon/luns/encrypt.h"
#include "daemon/luns/identity.h"
#include "daemon/luns/image.h"
#include "daemon/luns/module.h"
#include "daemon/luns/open.h"
#include "daemon/luns/protection.h"
#include "daemon/luns/state.h"
#include "daemon/upgrade/takeover.h"
#include "device/pass.h"

/* What a unit is being made of. */
struct making {
	struct daemon *d;
	const struct cfg_model *m;
	const struct cfg_backstore *b;
	struct options o; /* with those of the unit */
	struct unit *u;
	uint16_t number;
	bool strict;
};

void unit_options(const struct daemon *d, const struct lun_options *lun,
		  struct options *o)
{
	*o = d->options;
	o->lun = *lun;
}

/* ---- checks ---- */

static struct list *file_bucket(const struct daemon *d, dev_t dev, ino_t ino)
{
	uint64_t h = ((uint64_t)dev * 31 + ino) * 0x9e3779b97f4a7c15u;

	return &d->stores.lookup->files[(h >> 32) % UNITS_BUCKETS];
}

static struct list *uuid_bucket(const struct daemon *d, const uint8_t uuid[16])
{
	return &d->stores.lookup->uuids[get_be64(uuid + 8) % UNITS_BUCKETS];
}

/* Returns the unit on this file, or NULL. */
static const struct unit *on_file(const struct daemon *d, dev_t dev, ino_t ino)
{
	list_for_each(it, file_bucket(d, dev, ino)) {
		const struct unit *u = list_entry(it, struct unit, same_file);

		if (u->dev == dev && u->ino == ino)
			return u;
	}
	return NULL;
}

/* Returns the unit with this identity, or NULL. */
static const struct unit *twin_of(const struct daemon *d,
				  const uint8_t uuid[16])
{
	list_for_each(it, uuid_bucket(d, uuid)) {
		const struct unit *u = list_entry(it, struct unit, same_uuid);

		if (!memcmp(u->uuid, uuid, 16))
			return u;
	}
	return NULL;
}

/* False: no memory. */
static bool make_lookup(struct daemon *d)
{
	if (d->stores.lookup)
		return true;
	d->stores.lookup = calloc(1, sizeof(*d->stores.lookup));
	for (unsigned i = 0; d->stores.lookup && i < UNITS_BUCKETS; i++) {
		list_init(&d->stores.lookup->files[i]);
		list_init(&d->stores.lookup->uuids[i]);
	}
	return d->stores.lookup;
}

static void add_to_lookup(struct daemon *d, struct unit *u)
{
	const struct bs *b = dev_lu_backstore(u->lu);

	if (u->ino)
		list_push_back(file_bucket(d, u->dev, u->ino), &u->same_file);
	if (!b)
		return;
	list_push_back(uuid_bucket(d, u->uuid), &u->same_uuid);
}

static void set_file(struct unit *u, const struct stat *st)
{
	u->dev = S_ISBLK(st->st_mode) ? 0 : st->st_dev;
	u->ino = S_ISBLK(st->st_mode) ? st->st_rdev : st->st_ino;
}

/* Refuses a file that is another unit already: initiators would take the units
 * for two disks and overwrite the blocks of each other. False after a
 * message. */
static bool is_alone(const struct making *k)
{
	struct unit *u = k->u;
	const struct unit *v;
	struct stat st;

	if (u->spec->kind != LUN_FILE || stat(u->spec->store, &st))
		return true;
	set_file(u, &st);
	if (u->lun.shared || u->lun.read_only)
		return true;
	v = on_file(k->d, u->dev, u->ino);
	if (!v)
		return true;
	if (k->m->is_command_line)
		say("%s: already backstore %s, as %s; give it once, or give "
		    "--shared",
		    u->spec->store, v->name, v->spec->store);
	else
		say("%s: already backstore %s, as %s; give it once, or give "
		    "both \"shared: yes\"",
		    u->spec->store, v->name, v->spec->store);
	return false;
}

/* A given serial number decides about the NAA identifier; earlier releases took that of the
 * path. */
static void report_naa(const struct making *k, const uint8_t uuid[16])
{
	char naa[17];

	if (!k->b->serial || k->b->naa.len)
		return;
	hex_put(naa, uuid, 8);
	naa[0] = '3';
	say_note(
		"backstore %s: its NAA identifier follows from its serial number; "
		"earlier releases reported another one, which \"naa: %s\" keeps",
		k->u->name, naa);
}

void unit_key(const struct unit *u, uint8_t key[16])
{
	char text[CFG_NAME_MAX + PATH_MAX + 64];
	int n = snprintf(text, sizeof(text), "%ju %ju %s %s", (uintmax_t)u->dev,
			 (uintmax_t)u->ino, u->name, u->spec->store);

	bs_uuid_derive(key, text, MIN((size_t)n, sizeof(text) - 1));
}

/* Without its reservations an initiator could write that is shut out. False after a
 * message: the iserd that hands over goes on. */
static bool can_take_over(const struct making *k)
{
	const struct handover *h = k->d->inherited;
	uint8_t old[16];
	char text[37];

	if (!h || h->has_identities ||
	    !identity_of_name(k->d->stores.identities, k->u->spec, old) ||
	    !memcmp(old, k->u->uuid, 16) || !handover_unit(h, old))
		return true;
	cfg_uuid_text(old, text);
	say("%s: has persistent reservations, which belong to the identity "
	    "that the release before made of its name; give it \"uuid: %s\" "
	    "for the takeover",
	    k->b->store, text);
	return false;
}

/* unit_names_check refuses twins that are not one store. */
static void report_twin(const struct making *k)
{
	const struct unit *v = twin_of(k->d, k->u->uuid);
	bool is_given = v && (v->source == IDENTITY_FIELD ||
			      k->u->source == IDENTITY_FIELD);

	/* different files with one field uuid are no store */
	if (is_given && (v->dev != k->u->dev || v->ino != k->u->ino))
		return;
	if (v && strcmp(v->name, k->u->name) != 0)
		say_note("backstore %s: is the store of backstore %s, and the "
			 "same disk for initiators; the state that is saved is "
			 "that of %s",
			 k->u->name, v->name, v->name);
}

/* Sets the identity of the unit: uuid has that which the store itself has, and gets it.
 * False after a message. */
static bool identify(struct making *k, int fd, uint8_t uuid[16])
{
	const struct handover *h = k->d->inherited;
	uint8_t key[16];
	struct look_at at = { k->m, k->d->stores.identities,
			      (unsigned)(k->b - k->m->backstores.v),
			      &k->d->stores.lookup->owners };
	struct identity_query q = {
		.spec = k->u->spec,
		.backstore = k->u->name,
		.is_command_line = k->m->is_command_line,
		.fd = fd,
		.read_only = k->u->lun.read_only,
		.is_shared = k->u->lun.shared || k->u->lun.cluster,
		.given = cfg_given_uuid(k->b),
		.own = uuid,
		.was_served = h && !h->has_identities,
		.owner = identity_look_owner,
		.arg = &at,
	};
	struct identity id = { .is_old = false };

	unit_key(k->u, key);
	q.inherited = handover_identity(h, key);
	if (!identity_find(k->d->stores.identities, &q, &id))
		return false;
	memcpy(uuid, id.uuid, 16);
	memcpy(k->u->uuid, id.uuid, 16);
	memcpy(k->u->memory.uuid, id.uuid, 16); /* for the next iserd */
	k->u->source = id.source;
	if (id.is_old)
		report_naa(k, id.uuid);
	report_twin(k);
	return can_take_over(k);
}

/* Whether state is saved: the next start would not find that of an identity that nothing
 * keeps, and two units on one store would overwrite each other's reservations. */
static bool can_keep(const struct making *k)
{
	return k->d->state && k->u->source != IDENTITY_PROCESS &&
	       !twin_of(k->d, k->u->uuid);
}

static bool has_backstore(const struct cfg_luns *luns, unsigned backstore)
{
	for (unsigned i = 0; i < luns->n; i++)
		if (luns->v[i].index == backstore)
			return true;
	return false;
}

/* Follows the standard where a target with this unit does. */
static bool is_strict(const struct cfg_model *m, unsigned backstore)
{
	for (unsigned i = 0; i < m->targets.n; i++) {
		const struct cfg_target *t = &m->targets.v[i];

		if (!t->strict)
			continue;
		if (has_backstore(&t->luns, backstore))
			return true;
		for (unsigned k = 0; k < t->maps.n; k++)
			if (has_backstore(&t->maps.v[k].luns, backstore))
				return true;
	}
	return false;
}

/* ---- the unit in the device server ---- */

/* Puts the reservations in force that the iserd before this one has handed
 * over. False after a message. */
static bool take_over(const struct making *k)
{
	struct dev_lu *lu = k->u->lu;
	const struct bs *b = dev_lu_backstore(lu);
	const struct handed_unit *h =
		b ? handover_unit(k->d->inherited, b->uuid) : NULL;
	int err = h ? dev_lu_take_over(lu, h->bytes, h->len) : 0;

	if (err)
		say("%s: cannot take over the persistent reservations: %s",
		    k->u->spec->store, err_str(err));
	return !err;
}

/* Restores the persisted state of the new unit. */
static bool take_lu(struct making *k, bool keeps)
{
	k->u->lu = dev_lu_get(k->d->server, k->number);
	if (k->u->member) /* its state is in the record */
		return true;
	return (!keeps || state_load(k->d->state, k->u->lu)) && take_over(k);
}

static struct dev_lu_config config_of(const struct making *k)
{
	struct dev_lu_config cfg = unit_config(k->b);

	cfg.lun = k->number;
	cfg.strict = k->strict;
	return cfg;
}

/* Owns b. */
static bool add_lu(struct making *k, enum dev_type type, struct bs *b,
		   bool keeps)
{
	struct dev_lu_config cfg = config_of(k);
	int err;

	cfg.type = type;
	cfg.keeps = keeps || k->u->member;
	cfg.clustered = k->u->member;
	cfg.removable |= type == DEV_CD;
	if (type == DEV_CD) /* that of the drive, whatever its medium */
		memcpy(cfg.uuid, k->u->uuid, 16);
	err = dev_lu_add(k->d->server, &cfg, b);
	if (!err)
		return take_lu(k, keeps);
	say("%s: %s", k->u->spec->store, err_str(err));
	if (b)
		bs_close(b);
	return false;
}

static bool add_scsi(struct making *k)
{
	struct pass *p = lun_open_scsi(&k->o, k->u->spec, k->d->loops);
	struct dev_lu_config cfg = config_of(k);
	int err;

	if (!p)
		return false;
	if (!identify(k, -1, p->uuid)) {
		p->ops->close(p);
		return false;
	}
	cfg.keeps = can_keep(k);
	err = dev_lu_add_pass(k->d->server, &cfg, p);
	if (!err)
		return take_lu(k, cfg.keeps);
	say("%s: %s", p->name, err_str(err));
	p->ops->close(p);
	return false;
}

/* False after a message; b is closed then. */
static bool add_member(struct making *k, struct bs *b)
{
	k->u->member = member_open(k->d->gateway, k->u, b);
	if (!k->u->member)
		bs_close(b);
	return k->u->member;
}

static bool add_store(struct making *k)
{
	const struct lun_spec *spec = k->u->spec;
	struct bs *b = NULL;
	uint8_t drive[16] = { 0 };
	struct stat st;
	/* worker 0 must not wait while it serves */
	bool may_wait = k->d->phase == DAEMON_STARTING;
	bool outlives = spec->kind == LUN_FILE || lun_is_module(spec->kind);

	if (!is_alone(k))
		return false;
	if (!lun_spec_is_empty_drive(spec)) {
		handover_take_memory(k->d->inherited, k->u->name,
				     &k->u->memory);
		b = lun_open(&k->o, spec, &k->u->memory, may_wait, k->d->loops);
		if (b) /* above what is encrypted */
			b = protection_open(&k->o, spec, b, k->d->loops);
		if (!b)
			return false;
	}
	/* the file that was opened: the name may be that of another one since */
	if (k->u->ino && b->fd && !fstat(*b->fd, &st))
		set_file(k->u, &st);
	if (!identify(k, b && b->fd ? *b->fd : -1, b ? b->uuid : drive)) {
		if (b)
			bs_close(b);
		return false;
	}
	if (k->u->lun.cluster && !add_member(k, b))
		return false;
	/* the state of memory and of CDs is not persisted */
	return add_lu(k, spec->kind == LUN_CD ? DEV_CD : DEV_DISK, b,
		      outlives && can_keep(k));
}

/* ---- units ---- */

void unit_free(struct unit *u)
{
	if (!u)
		return;
	if (u->member) /* it was never used */
		member_close(u->member);
	free(u->name);
	free(u->spec);
	free(u);
}

static struct unit *unit_new(const struct cfg_backstore *b)
{
	struct unit *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	u->name = strdup(b->head.name);
	u->spec = lun_spec_new(b->store, b->pi, b->key, b->new_key);
	list_init(&u->same_file);
	list_init(&u->same_uuid);
	u->lun = b->lun;
	u->memory.fd = -1;
	u->lacks_write =
		u->spec && b->lun.read_only &&
		(u->spec->kind == LUN_FILE || lun_is_module(u->spec->kind));
	if (u->name && u->spec)
		return u;
	unit_free(u);
	return NULL;
}

/* Makes room for one more unit in d->units. */
static bool make_room(struct daemon *d)
{
	struct unit **more;

	if (d->nunits & (d->nunits - 1)) /* room for the next power of two */
		return true;
	more = reallocarray(d->units, d->nunits ? 2 * d->nunits : 1,
			    sizeof(struct unit *));
	if (!more)
		return false;
	d->units = more;
	return true;
}

/* NULL after a message. */
static struct unit *open_unit(struct daemon *d, const struct cfg_model *m,
			      unsigned backstore, uint16_t number)
{
	struct making k = {
		.d = d,
		.m = m,
		.b = &m->backstores.v[backstore],
		.u = unit_new(&m->backstores.v[backstore]),
		.number = number,
		.strict = is_strict(m, backstore),
	};
	bool is_scsi = k.u && k.u->spec->kind == LUN_SCSI;

	if (!k.u || !make_room(d) || !make_lookup(d)) {
		say("out of memory");
		unit_free(k.u);
		return NULL;
	}
	unit_options(d, &k.b->lun, &k.o);
	if (is_scsi ? add_scsi(&k) : add_store(&k)) {
		d->units[d->nunits++] = k.u;
		add_to_lookup(d, k.u);
		return k.u;
	}
	unit_free(k.u);
	return NULL;
}

struct unit *unit_open(struct daemon *d, const struct cfg_model *m,
		       unsigned backstore, uint16_t number,
		       struct cfg_errors *e)
{
	const struct cfg_head *h = &m->backstores.v[backstore].head;
	struct say_hold why;
	struct unit *u;

	say_hold(&why);
	u = open_unit(d, m, backstore, number);
	say_release(&why, u);
	if (!u && m->is_command_line)
		cfg_error(e, (struct cfg_place){ 0 }, "%s", why.text);
	else if (!u)
		cfg_error(e, cfg_head_at(h, NULL), "backstore %.80s: %s",
			  h->name, why.text);
	return u;
}

void units_opened(struct daemon *d)
{
	if (d->stores.lookup)
		identity_owners_end(&d->stores.lookup->owners);
}

const char *unit_reopened(const struct unit *u, struct bs *b)
{
	struct unit now = { .dev = u->dev, .ino = u->ino };
	struct stat st;

	if (u->source == IDENTITY_IMAGE && memcmp(b->uuid, u->uuid, 16) != 0)
		return "is another image than before";
	if (u->ino && b->fd && !fstat(*b->fd, &st))
		set_file(&now, &st);
	if (now.dev != u->dev || now.ino != u->ino)
		return "is another file than before";
	memcpy(b->uuid, u->uuid, 16);
	return NULL;
}

void unit_detach(struct daemon *d, struct unit *u)
{
	unsigned i = 0;

	while (d->units[i] != u)
		i++;
	list_del(&u->same_file);
	list_del(&u->same_uuid);
	d->nunits--;
	/* make_room expects room up to a power of two, which is there */
	memmove(&d->units[i], &d->units[i + 1],
		(d->nunits - i) * sizeof(struct unit *));
	health_detached(d, i);
}

struct unit **units_match(const struct daemon *d, const struct cfg_model *m)
{
	struct unit **all = calloc(m->backstores.n + 1, sizeof(struct unit *));

	for (unsigned i = 0; all && i < d->nunits; i++) {
		const struct cfg_backstore *b =
			cfg_backstore_find(m, d->units[i]->name);

		if (b && !all[b - m->backstores.v])
			all[b - m->backstores.v] = d->units[i];
	}
	return all;
}

struct unit *unit_of(const struct daemon *d, const struct dev_lu *lu)
{
	for (unsigned i = 0; i < d->nunits; i++)
		if (d->units[i]->lu == lu)
			return d->units[i];
	return NULL;
}

struct unit *unit_named(const struct daemon *d, const char *name)
{
	for (unsigned i = 0; i < d->nunits; i++)
		if (!strcmp(d->units[i]->name, name))
			return d->units[i];
	return NULL;
}

bool units_usable(const struct daemon *d)
{
	struct options o;
	bool good = true;

	for (unsigned i = 0; i < d->nunits; i++) {
		unit_options(d, &d->units[i]->lun, &o);
		good &= lun_key_usable(d->units[i]->spec, &o);
	}
	return good;
}
