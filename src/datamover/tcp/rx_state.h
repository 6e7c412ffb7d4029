/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rx_state.h: the state machine that receives PDUs: which transitions exist,
 * the function that changes the state, and the function that asserts what
 * holds in each state. Inline, because every PDU passes two or three states.
 */
#ifndef DATAMOVER_TCP_RX_STATE_H
#define DATAMOVER_TCP_RX_STATE_H

#include "base/sane.h"
#include "datamover/tcp/internal.h"

/* Where each state may go. An up-call can end the connection in every state;
 * it may do so twice. */
static const uint8_t dmtcp_rx_may_go[] = {
	[RX_HEADER] = BIT(RX_PAYLOAD) | BIT(RX_TRAILER) | BIT(RX_HELD) |
		      BIT(RX_STOPPED),
	[RX_PAYLOAD] = BIT(RX_TRAILER) | BIT(RX_STOPPED),
	[RX_TRAILER] = BIT(RX_HEADER) | BIT(RX_STOPPED),
	[RX_HELD] = BIT(RX_RESUMED) | BIT(RX_STOPPED),
	[RX_RESUMED] = BIT(RX_PAYLOAD) | BIT(RX_TRAILER) | BIT(RX_STOPPED),
	[RX_STOPPED] = BIT(RX_STOPPED),
};

/* dmtcp_rx_is_sane returns whether c's members agree with its state. */
static inline bool dmtcp_rx_is_sane(const struct dmtcp_conn *c)
{
	const struct rx *r = &c->rx;

	switch (r->state) {
	case RX_HEADER: /* no PDU is open */
		return !r->task && !r->burst && !r->collect && !r->left &&
		       !r->direct;
	case RX_PAYLOAD: /* data go to one place, or are dropped */
		return r->left && !(r->task && r->collect);
	case RX_TRAILER: /* all data are in */
		return !r->left && !r->direct;
	case RX_HELD: /* a task without a place for its data */
		return r->task && r->task->held && !r->collect && !r->direct;
	case RX_RESUMED: /* the place exists, or the task was aborted */
		return !(r->task && r->task->held) && !r->collect && !r->direct;
	case RX_STOPPED: /* and only then */
		return c->fate != STREAM_GO || c->leaving;
	}
	return false;
}

/* dmtcp_rx_go is the only function that changes the state. */
static inline void dmtcp_rx_go(struct dmtcp_conn *c, enum rx_state next)
{
	assert(dmtcp_rx_may_go[c->rx.state] & BIT(next));
	c->rx.state = next;
	ASSERT_SANE(dmtcp_rx_is_sane(c));
}

#endif
