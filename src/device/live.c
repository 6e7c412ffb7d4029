/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * live.c: units that appear and go while nexuses exist (live.h). A removal is a change
 * of the unit (lu_change.h): on each worker it aborts the tasks at the unit and ends the
 * I_T_L nexuses. What still uses the unit holds it (lu_life.h): aborted commands whose
 * data are in transfer, fences, copies, an erasure. After the last of them the unit is
 * flushed and closed.
 */
#include "device/live.h"

#include <stdlib.h>

#include "device/copy/copy.h"
#include "device/nexus.h"
#include "device/order/taskset.h"
#include "device/reserve/reserve.h"
#include "device/unit/attention.h"
#include "device/unit/lu_life.h"
#include "device/unit/range.h"
#include "device/unit/settings.h"
#include "device/unit/shared.h"

static void set_luns_changed(struct dev_nexus *n, const struct dev_lu *except)
{
	for (struct dev_itl *i = dev_itl_first(n); i; i = dev_itl_next(i))
		if (i->lu != except)
			dev_attention_set(i, UA_LUNS_CHANGED);
}

/* ---- a new unit, for the nexuses without a map ---- */

/* False: no memory. */
static bool give(struct dev_nexus *n, struct dev_lu *lu)
{
	if (n->map || dev_itl_of(n, lu) || dev_lu_is_leaving(lu))
		return true;
	if (!dev_nexus_join(n, lu->cfg.lun, lu, false))
		return false;
	set_luns_changed(n, lu);
	return true;
}

static void visit_arrival(struct dev_round *r, unsigned worker);

static void try_again(struct dev_msg *m)
{
	struct dev_round *r = container_of(m, struct dev_round, msg);

	visit_arrival(r, r->at);
}

/* Without memory a message tries again, because a nexus without the unit would never
 * get it. */
static void visit_arrival(struct dev_round *r, unsigned worker)
{
	struct dev_lu *lu = container_of(r, struct dev_lu, live.arrival);
	const struct dev_env *env = &r->server->env;

	list_for_each(it, &r->server->nexuses[worker]) {
		if (give(list_entry(it, struct dev_nexus, link), lu))
			continue;
		r->msg.run = try_again;
		env->post(env->arg, worker, &r->msg);
		return;
	}
	dev_round_next(r);
}

static void arrived(struct dev_round *r)
{
	dev_lu_release(container_of(r, struct dev_lu, live.arrival));
}

static void begin_arrival(struct dev_msg *m)
{
	struct dev_round *r = container_of(m, struct dev_round, msg);
	struct dev_lu *lu = container_of(r, struct dev_lu, live.arrival);

	if (!dev_lu_is_leaving(lu))
		dev_lu_set_there(lu);
	dev_round_start(r, 0);
}

void dev_lu_arrive(struct dev_lu *lu)
{
	struct dev_server *s = lu->server;

	lu->live.arrival = (struct dev_round){ .server = s,
					       .visit = visit_arrival,
					       .done = arrived };
	if (!dev_server_has_opened(s)) {
		dev_lu_set_there(lu);
		return;
	}
	dev_lu_hold(lu);
	lu->live.arrival.msg.run = begin_arrival;
	s->env.post(s->env.arg, 0, &lu->live.arrival.msg);
}

/* ---- the end of a unit ---- */

struct removal {
	struct rsv_op op;
	struct dev_lu *lu;
	struct bs_req req;
	void (*done)(void *arg, int err);
	void *arg;
};

void dev_lu_free(struct dev_lu *lu)
{
	struct dev_server *s = lu->server;

	if (dev_lu_get(s, lu->cfg.lun) == lu)
		(void)lun_table_set(&s->lus, lu->cfg.lun, NULL);
	list_del(&lu->live.link);
	dev_lu_reservations_fini(lu);
	if (lu->bs)
		bs_close(lu->bs);
	if (lu->pass.device)
		lu->pass.device->ops->close(lu->pass.device);
	for (unsigned w = 0; w < s->env.nworkers; w++)
		dev_priorities_forget(lu, w);
	dev_lanes_fini(lu);
	dev_shared_fini(lu);
	dev_settings_fini(lu);
	free(lu->live.removal);
	free(lu->kept);
	free(lu);
}

static struct rsv_op *op_of(struct dev_change *c)
{
	return container_of(dev_lu_change_of(c), struct rsv_op, u);
}

/* On each worker, after the tasks were aborted. A nexus with a map should not have the
 * unit any more; it loses the unit, too. */
static void end_itls(struct dev_lu_change *u, unsigned worker)
{
	const struct list *itls = &u->lu->lanes[worker].itls;

	while (!list_empty(itls)) {
		struct dev_itl *i =
			list_entry(itls->next, struct dev_itl, link);
		struct dev_nexus *n = i->nexus;

		dev_nexus_lose(i);
		set_luns_changed(n, NULL);
		dev_nexus_let_go(n);
	}
	dev_round_next(&u->change.round);
}

/* The persistent reservations stay in their record, for a unit that is added over the
 * same backstore later. */
static void decide_removal(struct dev_change *c)
{
	struct rsv_op *op = op_of(c);

	op->old = op->u.lu->rsv[DEV_HOME];
	op->u.status = SCSI_GOOD;
	op->u.aca = ACA_CLEAR;
	op->u.aborts = true;
	op->u.scope = ABORT_ALL;
	op->u.aborted = end_itls;
	rsv_release(op, NULL);
	dev_lu_change_publish(&op->u);
}

static void end_removal(struct dev_change *c)
{
	struct dev_lu *lu = op_of(c)->u.lu;

	dev_tokens_retire(lu);
	dev_lu_release(lu); /* the hold of the server */
}

static const struct dev_change_ops removal_ops = {
	.decide = decide_removal,
	.visit = rsv_visit,
	.visited = rsv_visited,
	.done = end_removal,
	.bounces = dev_lu_change_bounces,
	.forget = rsv_forget,
};

static void close_unit(struct removal *r, int err)
{
	void (*done)(void *arg, int err) = r->done;
	struct dev_server *s = r->lu->server;
	void *arg = r->arg;

	dev_lu_free(r->lu); /* and r */
	__atomic_fetch_sub(&s->nbackground, 1, __ATOMIC_RELEASE);
	done(arg, err);
}

static void flushed(struct bs_req *req)
{
	close_unit(container_of(req, struct removal, req), req->result);
}

/* The last hold has ended. */
static void gone(struct dev_msg *m)
{
	struct dev_lu *lu = container_of(m, struct dev_lu, live.gone);
	struct removal *r = lu->live.removal;

	__atomic_fetch_add(&lu->server->nbackground, 1, __ATOMIC_RELAXED);
	if (!lu->bs || dev_is_read_only(lu) ||
	    !(lu->bs->caps & BS_CAP_WRITE_CACHE)) {
		close_unit(r, 0);
		return;
	}
	r->req = (struct bs_req){ .op = BS_FLUSH, .done = flushed };
	bs_submit(lu->bs, &r->req);
}

int dev_lu_remove(struct dev_lu *lu, void (*done)(void *arg, int err),
		  void *arg)
{
	struct dev_server *s = lu->server;
	struct removal *r;

	if (dev_lu_is_leaving(lu))
		return ERR_BUSY;
	r = calloc(1, sizeof(*r));
	if (!r)
		return ERR_NOMEM;
	r->lu = r->op.u.lu = lu;
	r->done = done;
	r->arg = arg;
	lu->live.removal = r;
	lu->live.gone.run = gone;
	dev_lu_set_leaving(lu);
	(void)lun_table_set(&s->lus, lu->cfg.lun, NULL);
	list_push_back(&s->leaving, &lu->live.link);
	dev_lu_change_start(&r->op.u, DEV_HOME, &removal_ops);
	return 0;
}
