/* SPDX-License-Identifier: BSD-2-Clause */
/* status_luns.c: the units as JSON, each with the LUNs that initiators reach it by. */
#include <stdio.h>

#include "backstore/backstore.h"
#include "base/hex.h"
#include "daemon/apply/units.h"
#include "daemon/config/luns.h"
#include "daemon/config/model.h"
#include "daemon/config/setters.h"
#include "daemon/luns/identity.h"
#include "daemon/rpc/status.h"

/* ---- the LUNs of a unit ---- */

static void add_place(void *arg, const struct cfg_reach *p)
{
	json_t *all = json_object_get(arg, p->backstore);
	char place[300];

	if (!all) {
		all = json_array();
		json_object_set_new(arg, p->backstore, all);
	}
	if (p->map)
		snprintf(place, sizeof(place), "%s/%u/%u", p->target, p->map,
			 p->lun);
	else
		snprintf(place, sizeof(place), "%s/%u", p->target, p->lun);
	json_array_append_new(all, json_string(place));
}

json_t *status_places(const struct daemon *d)
{
	json_t *all = json_object();

	cfg_luns_each(d->model, add_place, all);
	return all;
}

/* Returns the LUNs of a backstore, for the caller to release. */
static json_t *places_of(const json_t *places, const char *backstore)
{
	json_t *own = json_object_get(places, backstore);

	return own ? json_incref(own) : json_array();
}

/* ---- units ---- */

static bool is_read_only(const struct unit *u)
{
	const struct bs *b = dev_lu_backstore(u->lu);

	return u->lun.read_only || dev_lu_type(u->lu) == DEV_CD ||
	       (b->caps & BS_CAP_READ_ONLY);
}

static void add_id(json_t *j, const char *key, const struct dev_id *id)
{
	char text[33];

	hex_put(text, id->bytes, id->len);
	if (id->len)
		json_object_set_new(j, key, json_string(text));
}

/* By what initiators know the unit, and by what iserd knows the store. */
static void add_names(json_t *j, const struct unit *u)
{
	struct dev_names names;
	char uuid[37];

	cfg_uuid_text(u->uuid, uuid);
	json_object_set_new(j, "uuid", json_string(uuid));
	json_object_set_new(j, "uuid_from",
			    json_string(identity_source_name(
				    (enum identity_source)u->source)));
	dev_lu_names(u->lu, &names);
	json_object_set_new(j, "serial", status_shown(names.serial));
	if (u->spec->kind == LUN_SCSI) /* the names of the device */
		return;
	add_id(j, "naa", &names.naa);
	add_id(j, "eui", &names.eui);
}

static json_t *status_unit(const struct unit *u, const json_t *places)
{
	const struct dev_lu *lu = u->lu;
	const struct bs *b = dev_lu_backstore(lu);
	const char *trouble = bs_trouble_str(u->trouble);
	bool is_cd = dev_lu_type(lu) == DEV_CD, ro = is_read_only(u);
	json_t *j;

	j = json_pack("{s:s, s:o, s:s, s:o, s:I, s:i, s:b, s:b}", "backstore",
		      u->name, "luns", places_of(places, u->name), "type",
		      is_cd ? "cd" : "disk", "store",
		      status_shown(b ? b->name : NULL), "size",
		      b ? (json_int_t)b->size : (json_int_t)0, "block_size",
		      b ? (int)b->block_size : 2048, "read_only", (int)ro,
		      "write_cache", (int)(!ro && dev_lu_write_cache(lu)));

	add_names(j, u);
	json_object_set_new(j, "thin",
			    json_boolean(b && b->caps & BS_CAP_UNMAP));
	if (!ro)
		json_object_set_new(j, "flush_failed",
				    json_boolean(dev_lu_flush_failed(lu)));
	if (trouble)
		json_object_set_new(j, "trouble", json_string(trouble));
	if (u->space.is_known) {
		json_object_set_new(j, "space_used",
				    json_integer((json_int_t)u->space.used));
		json_object_set_new(j, "space_left",
				    json_integer((json_int_t)u->space.left));
	}
	if (is_cd) /* PREVENT ALLOW MEDIUM REMOVAL of an initiator */
		json_object_set_new(j, "locked",
				    json_boolean(dev_is_locked(lu)));
	return j;
}

json_t *status_lun(const struct daemon *d, const struct dev_lu *lu,
		   const json_t *places)
{
	return status_unit(unit_of(d, lu), places);
}

json_t *status_luns(const struct daemon *d)
{
	json_t *all = json_array(), *places = status_places(d);

	for (unsigned i = 0; i < d->nunits; i++)
		json_array_append_new(all, status_unit(d->units[i], places));
	json_decref(places);
	return all;
}

/* ---- reservations ---- */

static void add_registration(void *arg, const struct dev_registration *r)
{
	char key[19];

	snprintf(key, sizeof(key), "0x%016llx", (unsigned long long)r->key);
	json_array_append_new(arg,
			      json_pack("{s:o, s:i, s:s, s:b}", "initiator",
					status_shown(r->initiator_port), "port",
					(int)r->target_port, "key", key,
					"holds", (int)r->holds));
}

static json_t *reservation_json(const struct unit *u, const json_t *places)
{
	json_t *regs = json_array();
	struct dev_reservation r;

	dev_lu_reservation(u->lu, &r);
	dev_lu_registrations(u->lu, add_registration, regs);
	return json_pack("{s:s, s:o, s:s?, s:o, s:I, s:b, s:b, s:o}",
			 "backstore", u->name, "luns",
			 places_of(places, u->name), "type", r.type, "reserved",
			 status_shown(r.reserved), "generation",
			 (json_int_t)r.generation, "aptpl", (int)r.aptpl,
			 "lost", (int)r.lost, "registrations", regs);
}

json_t *status_reservations(const struct daemon *d)
{
	json_t *all = json_array(), *places = status_places(d);

	for (unsigned i = 0; i < d->nunits; i++)
		json_array_append_new(all,
				      reservation_json(d->units[i], places));
	json_decref(places);
	return all;
}
