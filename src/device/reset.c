/* SPDX-License-Identifier: BSD-2-Clause */
/* reset.c: LOGICAL UNIT RESET (SAM-5 §7.7): a change of the reservations
 * that also resets the other state of the unit. */
#include "device/reset.h"

#include <stdlib.h>

#include "device/copy/copy.h"
#include "device/order/taskset.h"
#include "device/primary/mode.h"
#include "device/reserve/reserve.h"
#include "device/unit/attention.h"
#include "device/unit/condition.h"

static struct rsv_op *op_of(struct dev_change *c)
{
	return container_of(dev_lu_change_of(c), struct rsv_op, u);
}

/* SPC-4 §5.13.5: a reset does not change persistent reservations. */
static void decide_reset(struct rsv_op *op)
{
	op->u.reset = true;
	op->u.aca = ACA_CLEAR;
	rsv_release(op, NULL);
}

/* The nexus that requested the reset gets a unit attention, too (SAM-5
 * §6.3.3). */
void dev_reset_on(struct dev_lu *lu, unsigned worker)
{
	if (worker == DEV_HOME) {
		dev_mode_reset(lu);
		dev_removal_reset(lu);
		dev_power_wake(lu);
	}
	dev_priorities_forget(lu, worker);
	list_for_each(it, &lu->lanes[worker].itls) {
		struct dev_itl *i = list_entry(it, struct dev_itl, link);

		dev_attention_set(i, UA_BUS_DEVICE_RESET);
		dev_copies_forget(i->nexus, lu);
	}
}

static void visit_reset(struct dev_change *c, unsigned worker)
{
	struct dev_lu *lu = op_of(c)->u.lu;

	dev_reset_on(lu, worker);
	if (worker == DEV_HOME && lu->shared)
		dev_mode_forget_now(lu);
	rsv_visit(c, worker);
}

static void end_reset(struct dev_change *c)
{
	struct rsv_op *op = op_of(c);
	void (*then)(void *arg, int err) = op->u.then;
	int err = op->u.status == SCSI_GOOD ? 0 : ERR_NOMEM;
	void *arg = op->u.arg;

	rsv_op_free(op);
	then(arg, err);
}

static void forget_reset(struct dev_change *c)
{
	rsv_forget(c);
	rsv_op_free(op_of(c));
}

static const struct dev_change_ops reset_ops = {
	.decide = rsv_decide,
	.recorded = rsv_recorded,
	.again = rsv_again,
	.visit = visit_reset,
	.visited = rsv_visited,
	.done = end_reset,
	.bounces = dev_lu_change_bounces,
	.forget = forget_reset,
};

int dev_lu_reset_state(struct dev_lu *lu, unsigned worker,
		       void (*done)(void *arg, int err), void *arg)
{
	struct rsv_op *op = calloc(1, sizeof(*op));

	if (!op)
		return ERR_NOMEM;
	op->u.lu = lu;
	op->decide = decide_reset;
	op->u.then = done;
	op->u.arg = arg;
	dev_lu_change_start(&op->u, worker, &reset_ops);
	return 0;
}
