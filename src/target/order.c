/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * order.c: requests are delivered in the order of their CmdSN (RFC 7143
 * §4.2.2.1). On one connection requests arrive in that order, unless one was
 * lost to a data digest error or was rejected; those of several connections
 * arrive in any order. Later ones wait in the window's ring until the gap is
 * filled.
 */
#include "base/err.h"
#include "target/internal.h"

/* Delivers a request, which takes its CmdSN unless it is rejected meanwhile;
 * true: the CmdSN is taken. */
static bool deliver_request(struct tgt_conn *c, const struct dm_control *ctl,
			    int *err)
{
	struct tgt_session *s = c->session;
	const struct iscsi_target_window before = s->window;
	bool taken;

	tgt_window_take(s);
	s->undo = &before;
	s->rejected = false;
	*err = s->ops->request(c, ctl);
	taken = !s->rejected;
	/* a task management function may have delivered later requests from
	 * within: `before` is not valid any more */
	s->undo = NULL;
	s->rejected = false;
	return taken;
}

/* An error ends the connection on which the request came. */
static void deliver_parked(struct tgt_session *s, struct tgt_parked *p)
{
	int err;

	/* after a Reject ExpCmdSN is this CmdSN again: a gap */
	deliver_request(p->conn, &p->ctl, &err);
	if (err)
		tgt_conn_fail(p->conn, err, iscsi_opcode_name(p->ctl.pdu.op));
	tgt_window_unpark(s, p);
}

/* [RFC 7143: 4.2.2.1 #6] */
void tgt_order_advance(struct tgt_session *s)
{
	struct tgt_slot slot;

	while (tgt_window_next(s, &slot)) {
		if (slot.parked) {
			deliver_parked(s, slot.parked);
			continue;
		}
		tgt_window_take(s);
		if (slot.task)
			s->ops->command(slot.task);
	}
	if (!list_empty(&s->tmfs))
		s->ops->advanced(s);
}

int tgt_order_request(struct tgt_conn *c, const struct dm_control *ctl)
{
	struct tgt_session *s = c->session;
	uint32_t cmdsn = ctl->pdu.cmdsn;
	int err;

	if (ctl->pdu.immediate)
		return s->ops->request(c, ctl);
	switch (iscsi_target_window_check(&s->window, cmdsn)) {
	case ISCSI_CMDSN_EXPECTED:
		if (deliver_request(c, ctl, &err) && !err)
			tgt_order_advance(s);
		return err;
	case ISCSI_CMDSN_AHEAD:
		if (tgt_window_duplicate(s, cmdsn))
			return 0;
		return tgt_window_park(c, ctl);
	case ISCSI_CMDSN_IGNORE:
	default:
		return 0; /* §4.2.2.1: silently */
	}
}

void tgt_order_skip(struct tgt_session *s, uint32_t cmdsn)
{
	if (iscsi_target_window_check(&s->window, cmdsn) == ISCSI_CMDSN_IGNORE)
		return;
	tgt_window_skip(s, cmdsn);
	tgt_order_advance(s);
}

void tgt_order_skip_to(struct tgt_session *s, uint32_t cmdsn)
{
	for (uint32_t n = s->window.expcmdsn; sn_lt(n, cmdsn); n++)
		if (!tgt_window_duplicate(s, n))
			tgt_window_skip(s, n);
	tgt_order_advance(s);
}
