/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lu_groups.c: the target port groups of a unit that several gateways share: one group
 * for each gateway. They are independent of the groups of the server (alua.c), and a
 * change of one unit does not wait for another unit.
 *
 * When the own group loses access, every command that was admitted has ended before the
 * change is done: then another gateway may write. What this gateway knows of the blocks is
 * of no use afterwards: ROD tokens are revoked and copies end.
 */
#include <stdlib.h>
#include <string.h>

#include "device/alua/alua.h"
#include "device/unit/attention.h"
#include "device/unit/command.h"
#include "device/unit/lu_life.h"
#include "device/unit/range.h"
#include "device/unit/shared.h"
#include "device/unit/tokens.h"

struct groups_op {
	struct dev_change change;
	struct dev_lu *lu;
	const struct dev_nexus *by; /* of SET TARGET PORT GROUPS; compared only */
	struct dev_lu_groups *wishes; /* all groups; NULL: only the own state: */
	enum dev_access access;
	/* the snapshots before, during the drain (NULL: no drain) and afterwards */
	const struct dev_lu_groups *old;
	struct dev_lu_groups *during, *next;
	/* the visit in progress */
	const struct dev_lu_groups *now;
	uint32_t drops; /* dev_shared.drop.count, when it began */
	bool sets;	/* the state of the own group */
	bool tells;	/* the nexuses get ASYMMETRIC ACCESS STATE CHANGED */
	bool forgets;	/* the gateway loses its access */
	void (*visited)(struct groups_op *op);
	int err;
	void (*done)(void *arg, int err);
	void *arg;
	struct dev_msg end;
};

/* Outlives its change, if that does not wait any more. */
struct dev_group_drain {
	struct dev_range range;
	bool is_waiting;      /* for the range */
	struct groups_op *op; /* NULL: given up */
};

static struct groups_op *op_of(struct dev_change *c)
{
	return container_of(c, struct groups_op, change);
}

static struct dev_lu_group *own_group(struct dev_lu_groups *all)
{
	for (unsigned i = 0; i < all->n; i++)
		if (all->of[i].own)
			return &all->of[i];
	return NULL;
}

static enum dev_access own_state(const struct dev_lu_groups *all)
{
	for (unsigned i = 0; all && i < all->n; i++)
		if (all->of[i].own)
			return all->of[i].state;
	return DEV_ACCESS_TRANSITIONING;
}

/* ---- nexuses ---- */

/* The own group of a gateway that was fenced is transitioning, until its next state. */
static enum dev_access shown_state(const struct dev_lu *lu, unsigned worker,
				   const struct dev_lu_group *g)
{
	return g->own && lu->shared->drop.is_dropped[worker]
		       ? DEV_ACCESS_TRANSITIONING
		       : g->state;
}

static enum dev_access state_of(const struct dev_itl *i)
{
	const struct dev_nexus_config *n = &i->nexus->cfg;
	const struct dev_lu_group *g =
		dev_lu_group_of(i->lu, n->worker, n->relative_target_port);

	return g ? shown_state(i->lu, n->worker, g) : DEV_ACCESS_TRANSITIONING;
}

void dev_itl_access_init(struct dev_itl *i)
{
	if (i->lu->shared)
		i->access = (uint8_t)state_of(i);
}

static uint16_t id_of(const struct dev_lu_groups *all, uint16_t port)
{
	for (unsigned i = 0; all && i < all->n; i++)
		for (unsigned k = 0; k < all->of[i].nports; k++)
			if (all->of[i].ports[k] == port)
				return all->of[i].id;
	return 0;
}

static void visit_itl(const struct groups_op *op, struct dev_itl *i,
		      const struct dev_lu_groups *was)
{
	uint16_t port = i->nexus->cfg.relative_target_port;

	if (!i->is_dropped)
		i->access = (uint8_t)state_of(i);
	if (op->tells && i->nexus != op->by)
		dev_attention_set(i, UA_ACCESS_CHANGED);
	if (id_of(was, port) != id_of(op->now, port))
		dev_attention_set(i, UA_INQUIRY_CHANGED);
}

/* ---- a visit: every worker takes a new snapshot ---- */

static void visit_groups(struct dev_change *c, unsigned worker)
{
	const struct groups_op *op = op_of(c);
	struct dev_lu *lu = op->lu;
	const struct dev_lu_groups *was = lu->shared->groups.now[worker];

	lu->shared->groups.now[worker] = op->now;
	if (op->sets)
		lu->shared->drop.is_dropped[worker] = false;
	list_for_each(it, &lu->lanes[worker].itls)
		visit_itl(op, list_entry(it, struct dev_itl, link), was);
	if (op->forgets)
		dev_tokens_touch(lu, worker, 0, DEV_WHOLE_UNIT);
	dev_lu_changed(lu);
	dev_round_next(&c->round);
}

static void groups_visited(struct dev_change *c)
{
	struct groups_op *op = op_of(c);

	op->visited(op);
}

/* Returns whether an initiator that has read the groups would read other states. */
static bool differ(const struct dev_lu_groups *a, const struct dev_lu_groups *b)
{
	if (!a || a->n != b->n)
		return true;
	for (unsigned i = 0; i < a->n; i++)
		if (a->of[i].id != b->of[i].id ||
		    a->of[i].state != b->of[i].state ||
		    a->of[i].preferred != b->of[i].preferred)
			return true;
	return false;
}

static void publish(struct groups_op *op, const struct dev_lu_groups *now,
		    void (*then)(struct groups_op *op))
{
	op->now = now;
	op->visited = then;
	dev_change_visit(&op->change);
}

static void end_change(struct groups_op *op, int err)
{
	op->err = err;
	dev_change_end(&op->change);
}

static void free_groups(const struct dev_lu_groups *g)
{
	free((void *)(uintptr_t)g);
}

static void changed(struct groups_op *op)
{
	if (dev_access_is_active(own_state(op->next)))
		op->lu->shared->groups.is_undrained = false;
	free_groups(op->old);
	free_groups(op->during);
	end_change(op, 0);
}

/* ---- the drain ---- */

static void drained(struct dev_range *r)
{
	struct dev_group_drain *d =
		container_of(r, struct dev_group_drain, range);
	struct dev_lu *lu = r->lu;
	struct groups_op *op = d->op;

	dev_range_drop(r);
	free(d);
	if (op) {
		lu->shared->groups.drain = NULL;
		lu->shared->groups.is_undrained = false;
		op->forgets = false;
		op->tells = true;
		publish(op, op->next, changed);
	}
	dev_lu_release(lu);
}

/* The own group stays transitioning; the next change drains, if it has to. */
static void stay(struct groups_op *op, int err)
{
	struct dev_shared *s = op->lu->shared;

	s->groups.drain = NULL;
	s->groups.is_undrained = true;
	free_groups(op->old);
	free_groups(op->next);
	end_change(op, err);
}

static void end_drain(struct dev_group_drain *d, struct groups_op *op, int err)
{
	struct dev_lu *lu = op->lu;

	free(d);
	stay(op, err);
	dev_lu_release(lu);
}

static void drain(struct groups_op *op)
{
	struct dev_lu *lu = op->lu;
	struct dev_group_drain *d = lu->shared->groups.drain;

	d->is_waiting = true;
	if (!d->op)
		end_drain(d, op, ERR_ABORTED);
	else if (dev_range_take(&d->range, lu, DEV_HOME, 0, DEV_WHOLE_UNIT,
				DEV_HOLD_ALONE, drained))
		end_drain(d, op, ERR_NOMEM);
}

void dev_lu_drain_give_up(struct dev_lu *lu)
{
	struct dev_group_drain *d = lu->shared->groups.drain;
	struct groups_op *op = d ? d->op : NULL;

	if (!op)
		return;
	d->op = NULL;
	if (d->is_waiting)
		stay(op, ERR_ABORTED);
}

/* ---- decisions, one at a time for each unit ---- */

/* Makes op->next. */
static bool make_next(struct groups_op *op)
{
	struct dev_shared *s = op->lu->shared;
	struct dev_lu_group *own;

	op->old = s->groups.now[DEV_HOME];
	if (op->sets)
		s->groups.wanted = op->access;
	op->next = op->sets ? calloc(1, sizeof(*op->next)) : op->wishes;
	op->wishes = NULL;
	if (!op->next)
		return false;
	if (op->sets && op->old)
		*op->next = *op->old;
	own = own_group(op->next);
	if (own)
		own->state = s->groups.wanted;
	return true;
}

static bool loses_access(const struct groups_op *op)
{
	return (dev_access_is_active(own_state(op->old)) ||
		op->lu->shared->groups.is_undrained) &&
	       !dev_access_is_active(own_state(op->next));
}

/* Makes op->during and the drain; ERR_NOMEM. */
static int make_drain(struct groups_op *op)
{
	struct dev_shared *s = op->lu->shared;
	struct dev_lu_group *own;

	op->during = malloc(sizeof(*op->during));
	s->groups.drain = calloc(1, sizeof(*s->groups.drain));
	if (!op->during || !s->groups.drain) {
		free(op->during);
		free(s->groups.drain);
		s->groups.drain = NULL;
		return ERR_NOMEM;
	}
	s->groups.drain->op = op;
	*op->during = *op->next;
	own = own_group(op->during);
	if (own)
		own->state = DEV_ACCESS_TRANSITIONING;
	__atomic_add_fetch(&op->lu->erasure.begun, 1, __ATOMIC_RELAXED);
	dev_lu_hold(op->lu);
	return 0;
}

static bool is_same(const struct dev_lu_groups *a,
		    const struct dev_lu_groups *b)
{
	if (differ(a, b))
		return false;
	for (unsigned i = 0; i < a->n; i++) {
		const struct dev_lu_group *x = &a->of[i], *y = &b->of[i];

		if (x->own != y->own || x->nports != y->nports ||
		    memcmp(x->ports, y->ports,
			   x->nports * sizeof(x->ports[0])) != 0)
			return false;
	}
	return true;
}

static bool was_dropped(const struct groups_op *op)
{
	return op->sets && op->lu->shared->drop.is_dropped[DEV_HOME];
}

static void decide_groups(struct dev_change *c)
{
	struct groups_op *op = op_of(c);
	bool loses;

	/* A state from before a fence is not the state after it. */
	if (op->sets && op->drops != op->lu->shared->drop.count) {
		end_change(op, ERR_ABORTED);
		return;
	}
	if (!make_next(op)) {
		end_change(op, ERR_NOMEM);
		return;
	}
	loses = loses_access(op);
	if (!loses && is_same(op->old, op->next) && !was_dropped(op)) {
		free_groups(op->next);
		end_change(op, 0);
		return;
	}
	op->tells = !loses && (differ(op->old, op->next) || was_dropped(op));
	if (!loses) {
		publish(op, op->next, changed);
		return;
	}
	if (make_drain(op)) {
		free_groups(op->next);
		end_change(op, ERR_NOMEM);
		return;
	}
	op->forgets = true;
	publish(op, op->during, drain);
}

static void report_end(struct dev_msg *m)
{
	struct groups_op *op = container_of(m, struct groups_op, end);
	void (*done)(void *arg, int err) = op->done;
	void *arg = op->arg;
	int err = op->err;

	dev_lu_release(op->lu);
	free(op);
	if (done)
		done(arg, err);
}

static void groups_done(struct dev_change *c)
{
	struct groups_op *op = op_of(c);
	const struct dev_env *env = &op->lu->server->env;

	op->end.run = report_end;
	env->post(env->arg, DEV_HOME, &op->end);
}

static void forget_groups(struct dev_change *c)
{
	struct groups_op *op = op_of(c);
	struct dev_shared *s = op->lu->shared;

	if (op->old != s->groups.now[DEV_HOME])
		free_groups(op->old);
	if (op->next != s->groups.now[DEV_HOME])
		free_groups(op->next);
	if (op->during != s->groups.now[DEV_HOME])
		free_groups(op->during);
	free(op->wishes);
	free(op);
}

static const struct dev_change_ops groups_ops = {
	.decide = decide_groups,
	.visit = visit_groups,
	.visited = groups_visited,
	.done = groups_done,
	.forget = forget_groups,
};

static void start(struct groups_op *op, struct dev_lu *lu)
{
	op->lu = lu;
	op->by = lu->shared->groups.asker;
	op->drops = lu->shared->drop.count;
	dev_lu_hold(lu);
	dev_change_start(&op->change, lu->server, &lu->shared->groups.changes,
			 DEV_HOME, &groups_ops);
}

int dev_lu_groups_replace(struct dev_lu *lu, const struct dev_lu_group *groups,
			  unsigned n)
{
	struct groups_op *op = calloc(1, sizeof(*op));

	if (op)
		op->wishes = calloc(1, sizeof(*op->wishes));
	if (!op || !op->wishes) {
		free(op);
		return ERR_NOMEM;
	}
	op->wishes->n = n;
	if (n)
		memcpy(op->wishes->of, groups, n * sizeof(*groups));
	start(op, lu);
	return 0;
}

int dev_own_access_set(struct dev_lu *lu, enum dev_access state,
		       void (*done)(void *arg, int err), void *arg)
{
	struct groups_op *op = calloc(1, sizeof(*op));

	if (!op)
		return ERR_NOMEM;
	op->sets = true;
	op->access = state;
	op->done = done;
	op->arg = arg;
	dev_lu_drain_give_up(lu);
	start(op, lu);
	return 0;
}

unsigned dev_lu_groups(const struct dev_lu *lu,
		       struct dev_lu_group out[DEV_MAX_GROUPS])
{
	const struct dev_lu_groups *all =
		lu->shared ? lu->shared->groups.now[DEV_HOME] : NULL;

	for (unsigned i = 0; all && i < all->n; i++)
		out[i] = all->of[i];
	return all ? all->n : 0;
}

/* ---- REPORT TARGET PORT GROUPS (SPC-4 §6.37) ---- */

#define STATUS_IMPLICIT 2 /* SPC-4 table 308 */

size_t dev_put_lu_groups(const struct dev_task *t, uint8_t *p)
{
	unsigned worker = t->nexus->cfg.worker;
	const struct dev_lu_groups *all = t->lu->shared->groups.now[worker];
	uint16_t ports[DEV_LU_GROUP_PORTS];
	size_t at = 0;

	for (unsigned i = 0; all && i < all->n; i++) {
		const struct dev_lu_group *g = &all->of[i];
		const struct dev_group_head head = {
			.id = g->id,
			.state = shown_state(t->lu, worker, g),
			.preferred = g->preferred,
			.status = STATUS_IMPLICIT,
		};
		unsigned n = 0;

		for (unsigned k = 0; k < g->nports; k++)
			if (dev_lu_is_shown(t->nexus, g->ports[k]))
				ports[n++] = g->ports[k];
		at += dev_put_group(p + at, &head, ports, n);
	}
	return at;
}

/* ---- SET TARGET PORT GROUPS (SPC-4 §6.45): the daemon asks the gateways ---- */

struct asked {
	struct dev_regroup r;
	struct dev_round round; /* to the home worker and back */
	const struct dev_nexus *by;
	struct dev_task *task; /* NULL: was aborted; on its worker */
	unsigned from;
};

static struct asked *asked_of(struct dev_msg *m)
{
	return container_of(container_of(m, struct dev_round, msg),
			    struct asked, round);
}

static void drop_asked(struct dev_task *t)
{
	struct asked *a = t->own.abort.waits_for;

	a->task = NULL;
}

static void asked_back(struct dev_msg *m)
{
	struct asked *a = asked_of(m);
	struct dev_task *t = a->task;
	int err = a->r.result;

	free(a);
	if (!t)
		return;
	t->own.abort.let_go = NULL;
	if (err == ERR_TERMINATED)
		(void)dev_hold(t);
	else
		dev_groups_set(t, err);
}

static void regrouped(struct dev_regroup *r)
{
	struct asked *a = container_of(r, struct asked, r);
	struct dev_shared *s = r->lu->shared;

	if (s->groups.asker == a->by)
		s->groups.asker = NULL;
	dev_lu_release(r->lu);
	dev_round_go(&a->round, DEV_HOME, a->from, asked_back);
}

static void ask_daemon(struct dev_msg *m)
{
	struct asked *a = asked_of(m);
	const struct dev_env *env = &a->round.server->env;

	a->r.lu->shared->groups.asker = a->by;
	env->regroup(env->arg, &a->r);
}

void dev_regroup(struct dev_task *t, const struct dev_group_change *changes,
		 unsigned n)
{
	struct asked *a = calloc(1, sizeof(*a));

	if (!a) {
		dev_no_resources(t);
		return;
	}
	a->r.lu = t->lu;
	a->r.n = n;
	if (n)
		memcpy(a->r.changes, changes, n * sizeof(*changes));
	a->r.done = regrouped;
	a->round.server = t->nexus->server;
	a->by = t->nexus;
	a->from = t->nexus->cfg.worker;
	a->task = t;
	dev_lu_hold(t->lu);
	t->own.abort.let_go = drop_asked;
	t->own.abort.waits_for = a;
	dev_round_go(&a->round, a->from, DEV_HOME, ask_daemon);
}
