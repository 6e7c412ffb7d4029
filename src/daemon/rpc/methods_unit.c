/* SPDX-License-Identifier: BSD-2-Clause */
/* methods_unit.c: methods of one unit: media, capacity, failed flushes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backstore/backstore.h"
#include "base/err.h"
#include "daemon/apply/units.h"
#include "daemon/config/luns.h"
#include "daemon/luns/open.h"
#include "daemon/rpc/internal.h"
#include "daemon/rpc/status.h"

/* A change of the medium or the capacity that is in progress. */
struct unit_change {
	struct owed owed;
	const struct dev_lu *lu;
	char name[CFG_NAME_MAX + 1];	/* of its backstore */
	const char *what;		/* changed, for the log */
	const char *(*reason)(int err); /* words for an error code */
};

static void refuse_change(struct client *c, json_t *id, enum rpc_error code,
			  const char *name, const char *reason)
{
	client_error(c, id, code, "backstore %.200s: %s", name, reason);
}

static void respond_lun(struct client *c, json_t *id, const struct dev_lu *lu)
{
	const struct daemon *d = c->control->daemon;
	json_t *places = status_places(d);

	client_result(c, id, status_lun(d, lu, places));
	json_decref(places);
}

/* A change of the configuration may have removed the unit in between; the device has
 * not freed it (device.h), so no other unit has its address. */
static void unit_changed(void *arg, int err)
{
	struct unit_change *g = arg;
	struct client *c = g->owed.client;
	struct daemon *d = c->control->daemon;
	bool is_there = client_settle(&g->owed);

	if (!err)
		trace_emit(&d->log.trace, TRACE_CHANGE, "backstore %s: %s",
			   g->name, g->what);
	if (is_there && err)
		refuse_change(c, g->owed.id, RPC_INTERNAL, g->name,
			      g->reason(err));
	else if (is_there && !unit_of(c->control->daemon, g->lu))
		refuse_change(c, g->owed.id, RPC_INTERNAL, g->name,
			      "was removed by a change of the configuration");
	else if (is_there)
		respond_lun(c, g->owed.id, g->lu);
	json_decref(g->owed.id);
	free(g);
}

/* Makes a change whose response is owed from then on. NULL: out of memory. */
static struct unit_change *unit_change_new(const struct request *r,
					   const struct dev_lu *lu,
					   const char *what,
					   const char *(*reason)(int err))
{
	struct unit_change *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->owed = client_owe(r);
	g->lu = lu;
	snprintf(g->name, sizeof(g->name), "%s", dev_lu_name(lu));
	g->what = what;
	g->reason = reason;
	return g;
}

/* Frees a change that was refused at once, without a response: the caller
 * responds. */
static void unit_change_cancel(struct unit_change *g)
{
	(void)client_settle(&g->owed); /* the caller still holds the client */
	json_decref(g->owed.id);
	free(g);
}

/* Numbers of units, which move at a restart, were names once: names the backstore
 * that a number would have meant. False: text is not such a number. */
static bool refuse_number(const struct request *r, const char *text)
{
	size_t len = strlen(text);
	const struct dev_lu *lu = NULL;

	if (!len || len > 5 || strspn(text, "0123456789") != len)
		return false;
	lu = dev_lu_get(request_daemon(r)->server,
			(uint16_t)strtoul(text, NULL, 10));
	client_error(
		r->client, r->id, RPC_BAD_PARAMS,
		"lun=%s: not the name of a backstore, and numbers of units "
		"change at a restart; give the backstore%s%s, or TARGET/LUN; "
		"iserctl luns lists them",
		text, lu ? ", now " : "", lu ? dev_lu_name(lu) : "");
	return true;
}

/* Returns the unit of the parameter lun. NULL after a response. */
static struct dev_lu *find_unit(const struct request *r)
{
	const struct daemon *d = request_daemon(r);
	struct cfg_errors *e = calloc(1, sizeof(*e));
	const char *name =
		e ? cfg_lun_backstore(d->model, r->args->lun, e) : NULL;
	const struct unit *u = name ? unit_named(d, name) : NULL;

	if (!u && !refuse_number(r, r->args->lun)) {
		if (e && e->n)
			rpc_refuse(r, e, NULL);
		else /* opened by no change yet, or no memory */
			refuse_change(r->client, r->id, RPC_BAD_PARAMS,
				      r->args->lun,
				      "not found; iserctl luns lists them");
	}
	free(e);
	return u ? u->lu : NULL;
}

/* ---- media of CD/DVD drives ---- */

static const char *medium_reason(int err)
{
	switch (err) {
	case ERR_UNSUPPORTED:
		return "not a CD/DVD drive";
	case ERR_BUSY:
		return "an initiator has locked the drive and was asked to "
		       "release it; try again, or give force=yes";
	case ERR_AGAIN:
		return "a medium change is already in progress";
	default:
		return err_str(err);
	}
}

/* Changes the medium of a drive to b, which it takes over; NULL ejects. */
static void change_medium(const struct request *r, struct dev_lu *lu,
			  struct bs *b)
{
	struct unit_change *g = unit_change_new(
		r, lu, b ? "medium inserted" : "medium ejected", medium_reason);
	int err = ERR_NOMEM;

	if (g)
		err = dev_lu_change_medium(lu, b, r->args->force, unit_changed,
					   g);
	if (!err)
		return;
	if (g)
		unit_change_cancel(g);
	if (b)
		bs_close(b);
	refuse_change(r->client, r->id, RPC_BAD_PARAMS, dev_lu_name(lu),
		      medium_reason(err));
}

void method_eject(const struct request *r)
{
	struct dev_lu *lu = find_unit(r);

	if (lu)
		change_medium(r, lu, NULL);
}

void method_insert(const struct request *r)
{
	const struct daemon *d = request_daemon(r);
	struct dev_lu *lu = find_unit(r);
	struct options o;
	char why[512];
	struct bs *b;

	if (!lu)
		return;
	if (dev_lu_type(lu) != DEV_CD) {
		refuse_change(r->client, r->id, RPC_BAD_PARAMS, dev_lu_name(lu),
			      medium_reason(ERR_UNSUPPORTED));
		return;
	}
	unit_options(d, &unit_of(d, lu)->lun, &o);
	b = lun_open_cd(&o, r->args->path, d->loops, why, sizeof(why));
	if (b)
		change_medium(r, lu, b);
	else
		client_error(r->client, r->id, RPC_BAD_PARAMS, "%s", why);
}

/* ---- failed flushes ---- */

void method_clear(const struct request *r)
{
	struct dev_lu *lu = find_unit(r);

	if (!lu)
		return;
	dev_lu_flush_forget(lu);
	respond_lun(r->client, r->id, lu);
}

/* ---- capacity ---- */

static const char *resize_reason(int err)
{
	switch (err) {
	case ERR_UNSUPPORTED:
		return "its store cannot be resized by iserd; resize a block "
		       "device by its own tool, then leave out size";
	case ERR_RANGE:
		return "the size is not a multiple of the block size";
	case ERR_DENIED:
		return "would become smaller and lose its last blocks; give "
		       "force=yes for that";
	case ERR_BUSY:
		return "not ready (SANITIZE or FORMAT UNIT in progress)";
	case ERR_NO_SPACE:
		return "the file cannot have that size: larger than the file "
		       "system allows, or no space left; give a smaller size";
	default:
		return err_str(err);
	}
}

void method_resize(const struct request *r)
{
	struct dev_lu *lu = find_unit(r);
	struct unit_change *g =
		lu ? unit_change_new(r, lu, "resized", resize_reason) : NULL;
	int err = ERR_NOMEM;

	if (!lu)
		return;
	if (g)
		err = dev_lu_resize(lu, r->args->size, r->args->force,
				    unit_changed, g);
	if (!err)
		return;
	if (g)
		unit_change_cancel(g);
	refuse_change(r->client, r->id, RPC_BAD_PARAMS, dev_lu_name(lu),
		      resize_reason(err));
}
