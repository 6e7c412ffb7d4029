/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fate.c: what ends a connection. These functions only mark the connection and
 * wake the driver, which closes the transport in its own turn.
 */
#include "datamover/tcp/rx_state.h"

/* How long queued PDUs may take to go out before the connection is dropped. */
#define FLUSH_TIME (5 * XTIME_S)

void dmtcp_kick(struct dmtcp_conn *c)
{
	c->host->kick(c->host);
}

void dmtcp_fail_conn(struct dmtcp_conn *c, int err)
{
	if (c->fate == STREAM_CLOSE)
		return;
	c->fate = STREAM_CLOSE;
	if (!c->err)
		c->err = err;
	dmtcp_rx_go(c, RX_STOPPED);
	if (c->dm.state < DM_TERMINATING)
		dm_conn_go(&c->dm, DM_TERMINATING);
	dmtcp_kick(c);
}

void dmtcp_close_after_sent(struct dmtcp_conn *c)
{
	if (c->fate != STREAM_GO)
		return;
	c->fate = STREAM_FLUSH;
	c->flush_deadline = c->now + FLUSH_TIME;
	dmtcp_rx_go(c, RX_STOPPED);
	dmtcp_kick(c);
}

void dmtcp_leave_stream(struct dmtcp_conn *c)
{
	c->leaving = true;
	c->flush_deadline = c->now + FLUSH_TIME;
	dmtcp_rx_go(c, RX_STOPPED);
	dmtcp_kick(c);
}
