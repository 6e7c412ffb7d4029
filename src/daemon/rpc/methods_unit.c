/* SPDX-License-Identifier: BSD-2-Clause */
/* methods_unit.c: methods of one LUN: media, capacity, failed flushes. */
#include <stdio.h>
#include <stdlib.h>

#include "backstore/backstore.h"
#include "base/err.h"
#include "daemon/luns/open.h"
#include "daemon/rpc/internal.h"
#include "daemon/rpc/status.h"
#include "daemon/units.h"

/* A change of the medium or the capacity that is in progress. */
struct unit_change {
	struct owed owed;
	const struct dev_lu *lu;
	unsigned lun;
	const char *what;		/* changed, for the log */
	const char *(*reason)(int err); /* words for an error code */
};

static void refuse_change(struct client *c, json_t *id, enum rpc_error code,
			  unsigned lun, const char *reason)
{
	char text[600];

	snprintf(text, sizeof(text), "LUN %u: %s", lun, reason);
	client_error(c, id, code, text);
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
		trace_emit(&d->log.trace, TRACE_CHANGE, "LUN %u: %s", g->lun,
			   g->what);
	if (is_there && err)
		refuse_change(c, g->owed.id, RPC_INTERNAL, g->lun,
			      g->reason(err));
	else if (is_there && !unit_of(c->control->daemon, g->lu))
		refuse_change(c, g->owed.id, RPC_INTERNAL, g->lun,
			      "was removed by a change of the configuration");
	else if (is_there)
		client_result(c, g->owed.id,
			      status_lun(c->control->daemon, g->lu));
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
	g->lun = dev_lu_lun(lu);
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

/* Returns the unit of the parameter lun. NULL after a response. */
static struct dev_lu *find_unit(const struct request *r)
{
	struct dev_lu *lu =
		dev_lu_get(request_daemon(r)->server, (uint16_t)r->args->lun);

	if (!lu)
		refuse_change(r->client, r->id, RPC_BAD_PARAMS, r->args->lun,
			      "not found; iserctl luns lists them");
	return lu;
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
	refuse_change(r->client, r->id, RPC_BAD_PARAMS, dev_lu_lun(lu),
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
		refuse_change(r->client, r->id, RPC_BAD_PARAMS, r->args->lun,
			      medium_reason(ERR_UNSUPPORTED));
		return;
	}
	unit_options(d, &unit_of(d, lu)->lun, &o);
	b = lun_open_cd(&o, r->args->path, d->loops, why, sizeof(why));
	if (b)
		change_medium(r, lu, b);
	else
		client_error(r->client, r->id, RPC_BAD_PARAMS, why);
}

/* ---- failed flushes ---- */

void method_clear(const struct request *r)
{
	struct dev_lu *lu = find_unit(r);

	if (!lu)
		return;
	dev_lu_flush_forget(lu);
	client_result(r->client, r->id, status_lun(request_daemon(r), lu));
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
	refuse_change(r->client, r->id, RPC_BAD_PARAMS, dev_lu_lun(lu),
		      resize_reason(err));
}
