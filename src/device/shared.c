/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shared.c: units that several gateways share (shared.h): puts the common state that
 * other gateways have changed in force, and lets go of a unit whose gateway was fenced.
 */
#include "device/shared.h"

#include <stdlib.h>

#include "device/alua/alua.h"
#include "device/keep/keep.h"
#include "device/order/taskset.h"
#include "device/primary/mode.h"
#include "device/reserve/reserve.h"
#include "device/reset.h"
#include "device/unit/event.h"
#include "device/unit/lu_life.h"
#include "device/unit/range.h"
#include "device/unit/shared.h"
#include "device/unit/tokens.h"

/* ---- adoption: two changes, in the queues of the reservations and of the record ---- */

struct adoption {
	struct dev_lu *lu;
	struct rsv_op rsv;
	struct keep_op keep;
	struct dev_record record;
	struct dev_heard *heard[DEV_KEPT_KINDS];
	unsigned pending;
	struct dev_msg end;
	void (*done)(void *arg);
	void *arg;
};

static void free_adoption(struct adoption *a)
{
	for (unsigned k = 0; k < DEV_KEPT_KINDS; k++)
		free(a->heard[k]);
	free(a);
}

/* The next changes are decided after the daemon knows that the state is in force, because
 * it compares their saves with that. */
static void report_end(struct dev_msg *m)
{
	struct adoption *a = container_of(m, struct adoption, end);
	struct dev_lu *lu = a->lu;

	a->done(a->arg);
	free_adoption(a);
	for (unsigned k = 0; k < DEV_KEPT_KINDS; k++)
		*dev_lu_saving(lu, (enum dev_kept)k) = NULL;
	dev_changes_go_on(&lu->server->lu_changes);
	dev_changes_go_on(&lu->server->keep_changes);
	dev_lu_release(lu);
}

static void one_is_done(struct adoption *a, enum dev_kept kind,
			struct dev_change *c)
{
	const struct dev_env *env = &a->lu->server->env;

	*dev_lu_saving(a->lu, kind) = c; /* the next change waits */
	if (--a->pending)
		return;
	a->end.run = report_end;
	env->post(env->arg, DEV_HOME, &a->end);
}

static struct adoption *of_rsv(struct dev_change *c)
{
	return container_of(dev_lu_change_of(c), struct adoption, rsv.u);
}

static void visit_reservations(struct dev_change *c, unsigned worker)
{
	struct adoption *a = of_rsv(c);

	if (a->heard[DEV_KEPT_RESERVATIONS]->resets)
		dev_reset_on(a->lu, worker);
	rsv_visit(c, worker);
}

static void reservations_done(struct dev_change *c)
{
	one_is_done(of_rsv(c), DEV_KEPT_RESERVATIONS, c);
}

static void forget_adoption(struct dev_change *c)
{
	struct adoption *a = of_rsv(c);

	rsv_forget(c);
	if (--a->pending == 0)
		free_adoption(a);
}

static const struct dev_change_ops adopt_ops = {
	.decide = rsv_decide,
	.visit = visit_reservations,
	.visited = rsv_visited,
	.done = reservations_done,
	.forget = forget_adoption,
};

static struct adoption *of_keep(struct keep_op *op)
{
	return container_of(op, struct adoption, keep);
}

static void take_record(struct keep_op *op, struct dev_record *r)
{
	*r = of_keep(op)->record;
}

static void record_in_force(struct keep_op *op)
{
	dev_mode_adopt(op->lu);
}

static void record_done(struct keep_op *op)
{
	one_is_done(of_keep(op), DEV_KEPT_UNIT, &op->queued);
}

static void record_forgotten(struct keep_op *op)
{
	struct adoption *a = of_keep(op);

	if (--a->pending == 0)
		free_adoption(a);
}

static int decode(struct adoption *a, const struct dev_adoption *from)
{
	const uint8_t *p = from->records[DEV_KEPT_UNIT].data;
	size_t len = from->records[DEV_KEPT_UNIT].len;
	int err = len ? keep_decode(a->lu, p, len, &a->record) : 0;

	if (!err)
		err = dev_mode_check_record(a->lu, &a->record);
	for (unsigned k = 0; k < DEV_KEPT_KINDS && !err; k++) {
		a->heard[k] = dev_heard_new(from, (enum dev_kept)k);
		if (!a->heard[k])
			err = ERR_NOMEM;
	}
	if (err)
		return err;
	return rsv_share_decode(from->records[DEV_KEPT_RESERVATIONS].data,
				from->records[DEV_KEPT_RESERVATIONS].len,
				a->lu->bs->uuid, &a->rsv.next);
}

int dev_lu_adopt(struct dev_lu *lu, const struct dev_adoption *from,
		 void (*done)(void *arg), void *arg)
{
	struct adoption *a = calloc(1, sizeof(*a));
	int err;

	if (!a)
		return ERR_NOMEM;
	a->lu = lu;
	a->done = done;
	a->arg = arg;
	err = decode(a, from);
	if (err) {
		free_adoption(a);
		return err;
	}
	a->pending = DEV_KEPT_KINDS;
	a->rsv.u.lu = lu;
	a->rsv.decide = rsv_adopt;
	a->rsv.heard = a->heard[DEV_KEPT_RESERVATIONS];
	a->rsv.u.change.is_first = true;
	a->keep.lu = lu;
	a->keep.change = take_record;
	a->keep.kept = record_in_force;
	a->keep.done = record_done;
	a->keep.forgotten = record_forgotten;
	a->keep.heard = a->heard[DEV_KEPT_UNIT];
	dev_lu_hold(lu);
	dev_lu_change_start(&a->rsv.u, DEV_HOME, &adopt_ops);
	dev_keep(&a->keep);
	return 0;
}

/* ---- access ---- */

static void lost_spc2(struct dev_change *c)
{
	struct rsv_op *op = container_of(dev_lu_change_of(c), struct rsv_op, u);

	dev_lu_release(op->u.lu);
	rsv_op_free(op);
}

static void forget_spc2(struct dev_change *c)
{
	rsv_forget(c);
	rsv_op_free(container_of(dev_lu_change_of(c), struct rsv_op, u));
}

static const struct dev_change_ops spc2_ops = {
	.decide = rsv_decide,
	.recorded = rsv_recorded,
	.again = rsv_again,
	.visit = rsv_visit,
	.visited = rsv_visited,
	.done = lost_spc2,
	.bounces = dev_lu_change_bounces,
	.forget = forget_spc2,
};

/* A reservation by RESERVE(6/10) of a nexus of the last owner ends: if this gateway was
 * that one, it says so; if it is the next one, the last one may be dead. */
static int lose_spc2(struct dev_lu *lu)
{
	struct rsv_op *op;

	if (!rsv_is_spc2(lu->rsv[DEV_HOME]))
		return 0;
	op = calloc(1, sizeof(*op));
	if (!op)
		return ERR_NOMEM;
	op->u.lu = lu;
	op->decide = rsv_lose_spc2;
	dev_lu_hold(lu);
	dev_lu_change_start(&op->u, DEV_HOME, &spc2_ops);
	return 0;
}

int dev_lu_access_set(struct dev_lu *lu, enum dev_access state,
		      void (*done)(void *arg, int err), void *arg)
{
	bool was = dev_access_is_active(lu->shared->groups.wanted);
	int err = dev_own_access_set(lu, state, done, arg);

	if (err || was == dev_access_is_active(state))
		return err;
	/* of ORWRITE: those of the last owner are not known here */
	if (!was)
		dev_lu_hard_reset(lu);
	(void)lose_spc2(lu); /* without memory it stays until a reset */
	return 0;
}

/* ---- a gateway that was fenced ---- */

static void all_left(struct dev_msg *m)
{
	struct dev_shared *s = container_of(m, struct dev_shared, drop.msg);
	void (*done)(void *arg) = s->drop.done;

	s->drop.state = DEV_DROPPED;
	dev_lu_release(s->lu);
	done(s->drop.arg);
}

static void unit_is_idle(struct dev_range *r)
{
	dev_range_drop(r);
	dev_drop_left(r->lu);
}

static void take_unit(struct dev_msg *m)
{
	struct dev_shared *s = container_of(m, struct dev_shared, drop.msg);
	const struct dev_env *env = &s->lu->server->env;

	if (!dev_range_take(&s->drop.range, s->lu, DEV_HOME, 0, DEV_WHOLE_UNIT,
			    DEV_HOLD_ALONE, unit_is_idle))
		return;
	env->post(env->arg, DEV_HOME, &s->drop.retry); /* without memory */
}

static void take_unit_again(struct dev_msg *m)
{
	struct dev_shared *s = container_of(m, struct dev_shared, drop.retry);

	take_unit(&s->drop.msg);
}

static void drop_on(struct dev_round *r, unsigned worker)
{
	struct dev_shared *s = container_of(r, struct dev_shared, drop.round);
	struct dev_lu *lu = s->lu;

	s->drop.is_dropped[worker] = true;
	list_for_each(it, &lu->lanes[worker].itls) {
		struct dev_itl *i = list_entry(it, struct dev_itl, link);

		if (i->is_dropped)
			continue;
		i->is_dropped = true;
		i->access = DEV_ACCESS_UNAVAILABLE;
		__atomic_add_fetch(&s->drop.left, 1, __ATOMIC_RELAXED);
	}
	dev_tokens_touch(lu, worker, 0, DEV_WHOLE_UNIT);
	dev_lu_changed(lu);
	dev_round_next(r);
}

static void dropped_everywhere(struct dev_round *r)
{
	struct dev_shared *s = container_of(r, struct dev_shared, drop.round);

	s->drop.msg.run = all_left;
	s->drop.retry.run = take_unit_again;
	take_unit(&s->drop.msg);
}

int dev_lu_drop(struct dev_lu *lu, void (*done)(void *arg), void *arg)
{
	struct dev_shared *s = lu->shared;

	if (s->drop.state == DEV_DROPPING)
		return ERR_BUSY;
	s->drop.state = DEV_DROPPING;
	s->drop.count++;
	s->drop.done = done;
	s->drop.arg = arg;
	s->groups.wanted = DEV_ACCESS_TRANSITIONING;
	__atomic_add_fetch(&lu->erasure.begun, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&s->drop.left, 1, __ATOMIC_RELAXED); /* the range */
	dev_lu_hold(lu);
	dev_lu_drain_give_up(lu);
	s->drop.round = (struct dev_round){ .server = lu->server,
					    .visit = drop_on,
					    .done = dropped_everywhere };
	dev_round_start(&s->drop.round, DEV_HOME);
	return 0;
}

/* ---- the store that was opened anew ---- */

struct replacement {
	struct dev_round round;
	struct dev_lu *lu;
	struct bs *old;
	struct dev_msg end;
	void (*done)(void *arg);
	void *arg;
};

static void report_replaced(struct dev_msg *m)
{
	struct replacement *r = container_of(m, struct replacement, end);
	void (*done)(void *arg) = r->done;
	void *arg = r->arg;

	dev_lu_release(r->lu);
	free(r);
	done(arg);
}

/* After its turn no worker uses the pointer to the old store. */
static void pass_by(struct dev_round *r, unsigned worker)
{
	(void)worker;
	dev_round_next(r);
}

static void passed_by(struct dev_round *round)
{
	struct replacement *r = container_of(round, struct replacement, round);
	const struct dev_env *env = &r->lu->server->env;

	bs_close(r->old);
	r->end.run = report_replaced;
	env->post(env->arg, DEV_HOME, &r->end);
}

static void replace(struct replacement *r, struct bs *b)
{
	struct dev_lu *lu = r->lu;
	uint64_t blocks = b->size >> lu->block_shift;

	r->old = lu->bs;
	lu->bs = b;
	__atomic_store_n(&lu->shared->is_fenced, false, __ATOMIC_RELEASE);
	lu->shared->drop.state = DEV_NOT_DROPPED;
	dev_lu_flush_forget(lu);
	if (__atomic_exchange_n(&lu->blocks, blocks, __ATOMIC_RELAXED) !=
	    blocks)
		dev_attention_unit(lu, DEV_HOME, NULL, UA_CAPACITY_CHANGED);
	dev_round_start(&r->round, DEV_HOME);
}

int dev_lu_replace_backstore(struct dev_lu *lu, struct bs *b,
			     void (*done)(void *arg), void *arg)
{
	struct replacement *r;

	if (lu->shared->drop.state != DEV_DROPPED)
		return ERR_WRONG_STATE;
	if (b->block_size != lu->block_size || b->protection)
		return ERR_FORMAT;
	r = calloc(1, sizeof(*r));
	if (!r)
		return ERR_NOMEM;
	r->round.server = lu->server;
	r->round.visit = pass_by;
	r->round.done = passed_by;
	r->lu = lu;
	r->done = done;
	r->arg = arg;
	dev_lu_hold(lu);
	replace(r, b);
	return 0;
}
