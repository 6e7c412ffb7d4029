/* SPDX-License-Identifier: BSD-2-Clause */
/* nexus.c: opens and closes I_T nexuses. */
#include <stdlib.h>

#include "device/alua/alua.h"
#include "device/copy/copy.h"
#include "device/nexus.h"
#include "device/order/taskset.h"
#include "device/reserve/reserve.h"
#include "device/unit/attention.h"
#include "device/unit/condition.h"
#include "device/unit/flush.h"
#include "device/unit/lu_life.h"
#include "device/unit/ports.h"

void dev_nexus_enter(struct dev_itl *i)
{
	dev_itl_join(i);
	dev_itl_access_init(i);
	dev_attention_set(i, UA_POWER_ON);
	dev_itl_reservations_init(i);
	dev_itl_aca_init(i);
	dev_itl_priority_init(i);
}

bool dev_nexus_join(struct dev_nexus *n, uint16_t lun, struct dev_lu *lu,
		    bool read_only)
{
	struct dev_itl *i = dev_itl_new(n, lun, lu, read_only);

	if (!i)
		return false;
	if (lun_table_set(&n->itls, lun, i)) {
		dev_itl_free(i);
		return false;
	}
	dev_nexus_enter(i);
	return true;
}

void dev_nexus_lose(struct dev_itl *i)
{
	dev_flush_depart(i);
	dev_removal_nexus_gone(i);
	dev_itl_aca_leave(i);
	dev_copies_forget(i->nexus, i->lu);
	dev_itl_leave(i);
}

static bool join_all(struct dev_nexus *n)
{
	const struct dev_map *m = n->map;
	bool ok = true;

	for (unsigned i = 0; m && ok && i < m->n; i++)
		ok = dev_nexus_join(n, m->entries[i].lun, m->entries[i].lu,
				    m->entries[i].read_only);
	if (m)
		return ok;
	for (struct dev_lu *lu = dev_lu_from(n->server, 0); lu && ok;
	     lu = dev_lu_after(lu))
		ok = !dev_lu_is_there(lu) ||
		     dev_nexus_join(n, lu->cfg.lun, lu, false);
	return ok;
}

struct dev_nexus *dev_nexus_open(struct dev_server *s,
				 const struct dev_nexus_config *cfg)
{
	struct dev_nexus *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->parting = calloc(1, sizeof(*n->parting));
	if (!n->parting) {
		free(n);
		return NULL;
	}
	n->server = s;
	n->cfg = *cfg;
	n->ports = dev_ports_of(n);
	n->map = dev_map_get(cfg->map);
	list_init(&n->tasks);
	list_init(&n->left);
	share_owner_init(&n->memory);
	dev_nexus_access_init(n);
	list_push_back(&s->nexuses[cfg->worker], &n->link);
	dev_server_opens(s);
	if (join_all(n))
		return n;
	dev_nexus_free(n);
	return NULL;
}

/* ---- the end: releases the reservations of RESERVE and the ACAs ---- */

static void part_next(struct dev_nexus *n);

static struct rsv_op *op_of(struct dev_change *c)
{
	return container_of(dev_lu_change_of(c), struct rsv_op, u);
}

static void decide_part(struct rsv_op *op)
{
	const struct dev_lu *lu = op->u.lu;
	bool faulted = lu->lanes[DEV_HOME].faulted == op->u.nexus;

	op->u.aca = faulted ? ACA_CLEAR : ACA_KEEP;
	rsv_release(op, op->u.nexus);
}

static const struct dev_change_ops part_ops;

static void start_part(struct rsv_op *op)
{
	op->next = NULL;
	dev_lu_change_start(&op->u, op->u.nexus->cfg.worker, &part_ops);
}

static void try_again(struct dev_msg *m)
{
	start_part(op_of(container_of(container_of(m, struct dev_round, msg),
				      struct dev_change, round)));
}

/* Without memory, posts a retry: otherwise only a reset would release the
 * unit. */
static void parted_one(struct dev_change *c)
{
	struct rsv_op *op = op_of(c);
	struct dev_nexus *n = op->u.nexus;
	const struct dev_env *env = &n->server->env;

	if (op->u.status == SCSI_GOOD) {
		part_next(n);
		return;
	}
	c->round.msg.run = try_again;
	env->post(env->arg, n->cfg.worker, &c->round.msg);
}

static const struct dev_change_ops part_ops = {
	.decide = rsv_decide,
	.recorded = rsv_recorded,
	.again = rsv_again,
	.visit = rsv_visit,
	.visited = rsv_visited,
	.done = parted_one,
	.bounces = dev_lu_change_bounces,
	.forget = rsv_forget,
};

/* Returns a lost unit that n has reserved, or where an ACA of n blocks other
 * nexuses. */
static struct dev_lu *reserved_unit(const struct dev_nexus *n)
{
	list_for_each(it, &n->left) {
		struct dev_itl *i = list_entry(it, struct dev_itl, link);

		if (i->is_released)
			continue;
		if (rsv_has(n, i->lu) ||
		    i->lu->lanes[n->cfg.worker].faulted == n)
			return i->lu;
		i->is_released = true;
	}
	return NULL;
}

/* A callback may close n. */
static void parted(struct dev_nexus *n)
{
	void (*mapped)(void *arg) = n->mapping.done;
	void *mapped_arg = n->mapping.arg;
	void (*then)(void *arg) = n->parted;
	void *arg = n->parted_arg;

	if (n->mapping.is_retrying) /* the new map is not in force yet */
		mapped = NULL;
	else
		n->mapping.done = NULL;
	n->parted = NULL;
	if (mapped)
		mapped(mapped_arg);
	if (then)
		then(arg);
}

static void part_next(struct dev_nexus *n)
{
	struct dev_lu *lu = reserved_unit(n);

	n->is_parting = lu != NULL;
	if (!lu) {
		dev_nexus_sweep(n);
		parted(n);
		return;
	}
	n->parting->u.lu = lu;
	n->parting->u.nexus = n;
	n->parting->decide = decide_part;
	start_part(n->parting);
}

void dev_nexus_let_go(struct dev_nexus *n)
{
	if (!n->is_parting) /* else the units are in its list now */
		part_next(n);
}

void dev_nexus_part(struct dev_nexus *n, void (*done)(void *arg), void *arg)
{
	struct dev_itl *i;

	n->has_parted = true;
	while ((i = dev_itl_first(n)))
		dev_nexus_lose(i);
	n->parted = done;
	n->parted_arg = arg;
	dev_nexus_let_go(n);
}

static void closed(void *arg)
{
	struct dev_nexus *n = arg;

	n->is_closed = true;
	if (dev_nexus_is_idle(n))
		dev_nexus_free(n);
}

void dev_nexus_close(struct dev_nexus *n)
{
	list_del(&n->link);
	for (unsigned i = 0; i < DEV_COPIES; i++) {
		dev_token_put(n->copies[i].token);
		n->copies[i].token = NULL;
	}
	free(n->echo);
	n->echo = NULL;
	list_push_back(&n->server->closing[n->cfg.worker], &n->link);
	dev_nexus_tasks_gone(n);
	dev_nexus_part(n, closed, n);
}
