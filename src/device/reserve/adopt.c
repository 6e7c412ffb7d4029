/* SPDX-License-Identifier: BSD-2-Clause */
/* adopt.c: puts the reservations of a unit that other gateways have changed in force. */
#include <string.h>

#include "device/reserve/reserve.h"
#include "device/unit/event.h"
#include "device/unit/ports.h"

static bool is_same_reg(const struct rsv_reg *a, const struct rsv_reg *b)
{
	return a->key == b->key && a->port == b->port &&
	       !strcmp(a->name, b->name) && !strcmp(a->by, b->by);
}

static bool is_same_spc2(const struct rsv_state *a, const struct rsv_state *b)
{
	return a->spc2_of.port == b->spc2_of.port &&
	       !strcmp(a->spc2_of.name, b->spc2_of.name);
}

static bool is_same(const struct rsv_state *a, const struct rsv_state *b)
{
	if (a->lost || a->generation != b->generation || a->type != b->type ||
	    a->aptpl != b->aptpl || a->holder != b->holder || a->n != b->n ||
	    !is_same_spc2(a, b))
		return false;
	for (unsigned i = 0; i < a->n; i++)
		if (!is_same_reg(&a->regs[i], &b->regs[i]))
			return false;
	return true;
}

/* A nexus of this gateway has the unit reserved as long as it has here, whatever a record
 * says that could not be changed when the nexus ended. */
static void match_spc2(struct rsv_op *op)
{
	struct rsv_state *s = op->next;

	if (op->old->spc2 && is_same_spc2(op->old, s))
		s->spc2 = op->old->spc2;
	else if (dev_port_is_own(op->u.lu->server, s->spc2_of.port))
		rsv_set_spc2(s, NULL);
	if (op->old->spc2 && !s->spc2)
		op->released = op->old->spc2;
}

void rsv_adopt(struct rsv_op *op)
{
	const struct dev_heard *h = op->heard;

	match_spc2(op);
	if (is_same(op->old, op->next)) {
		rsv_free(op->next);
		op->next = NULL;
	}
	op->u.reset = h->resets;
	op->u.aborts = h->resets || h->aborts || (h->incomplete && op->next);
	op->u.scope = h->resets ? ABORT_ALL : ABORT_LISTED;
	op->u.aca = h->resets ? ACA_CLEAR : ACA_KEEP;
}

void rsv_lose_spc2(struct rsv_op *op)
{
	if (!rsv_is_spc2(op->old))
		return;
	op->released = op->old->spc2;
	rsv_release(op, NULL);
	if (!op->next)
		op->released = NULL;
}
