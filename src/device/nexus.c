/* SPDX-License-Identifier: BSD-2-Clause */
/* nexus.c: opens and closes I_T nexuses. */
#include <stdlib.h>

#include "device/alua/alua.h"
#include "device/copy/copy.h"
#include "device/order/taskset.h"
#include "device/reserve/reserve.h"
#include "device/unit/attention.h"
#include "device/unit/condition.h"
#include "device/unit/flush.h"

/* Sets up the state of a new nexus at the unit. */
static void join(struct dev_nexus *n, struct dev_lu *lu)
{
	dev_attention_set(n, lu->cfg.lun, UA_POWER_ON);
	dev_nexus_reservations_init(n, lu);
	dev_nexus_aca_init(n, lu);
	dev_nexus_priority_init(n, lu);
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
	list_init(&n->tasks);
	share_owner_init(&n->memory);
	dev_nexus_access_init(n);
	for (unsigned i = 0; i < s->nunits; i++)
		join(n, s->units[i]);
	list_push_back(&s->nexuses[cfg->worker], &n->link);
	return n;
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
	.visit = rsv_visit,
	.visited = rsv_visited,
	.done = parted_one,
	.bounces = dev_lu_change_bounces,
	.forget = rsv_forget,
};

/* Returns a unit that n has reserved, or where an ACA of n blocks other
 * nexuses. */
static struct dev_lu *reserved_unit(const struct dev_nexus *n)
{
	for (unsigned i = 0; i < n->server->nunits; i++) {
		struct dev_lu *lu = n->server->units[i];

		if (rsv_has(n, lu) || lu->lanes[n->cfg.worker].faulted == n)
			return lu;
	}
	return NULL;
}

static void part_next(struct dev_nexus *n)
{
	struct dev_lu *lu = reserved_unit(n);

	n->is_parting = lu != NULL;
	if (!lu) {
		n->parted(n->parted_arg);
		return;
	}
	n->parting->u.lu = lu;
	n->parting->u.nexus = n;
	n->parting->decide = decide_part;
	start_part(n->parting);
}

void dev_nexus_part(struct dev_nexus *n, void (*done)(void *arg), void *arg)
{
	n->parted = done;
	n->parted_arg = arg;
	if (!n->is_parting) /* else in progress for an earlier caller */
		part_next(n);
}

static void closed(void *arg)
{
	struct dev_nexus *n = arg;

	n->is_closed = true;
	if (!n->is_waking && !n->nclearing)
		dev_nexus_free(n);
}

void dev_nexus_close(struct dev_nexus *n)
{
	list_del(&n->link);
	dev_flush_depart(n);
	dev_removal_nexus_gone(n);
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
