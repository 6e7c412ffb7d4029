/* SPDX-License-Identifier: BSD-2-Clause */
/* clock.c: what a connection does at its deadline: pings, timeouts, logout. */
#include "base/err.h"
#include "target/internal.h"

#define CLOSING_TIME (2 * XTIME_S) /* for the peer to read what is queued */

static xtime deadline_after(xtime now, xtime timeout)
{
	return timeout == XTIME_NEVER ? XTIME_NEVER : now + timeout;
}

static void expire_closing(struct tgt_conn *c, xtime now)
{
	if (c->deadline == 0) {
		c->deadline = now + CLOSING_TIME;
		return;
	}
	c->deadline = XTIME_NEVER;
	dm_connection_terminate(c->dm, DM_TERMINATE_NOW, ERR_TIMEOUT);
}

static void expire_login(struct tgt_conn *c)
{
	conn_trace(c, TRACE_CONN_TIMEOUT,
		   "no login within the time for it; connection dropped");
	tgt_conn_end(c, DM_TERMINATE_NOW, ERR_TIMEOUT);
}

/* §11.9.1: the initiator did not log out when asked. */
static void expire_logout(struct tgt_conn *c)
{
	const struct iscsi_async drop = {
		.event = ISCSI_ASYNC_DROP_CONNECTION,
		.param1 = c->cid,
		.param2 = c->session->params.default_time2wait,
	};

	conn_trace(c, TRACE_CONN_TIMEOUT, "no logout when asked; dropped");
	tgt_async(c, &drop);
	tgt_conn_end(c, DM_TERMINATE_AFTER_SENT, ERR_TIMEOUT); /* T16 */
}

/* A discovery session accepts no NOP-Out (§13.21), so that it cannot be pinged:
 * its whole duration is limited. Other sessions keep the deadline of the login
 * for their first check. */
void tgt_clock_start(struct tgt_conn *c)
{
	if (c->session->node)
		return;
	c->deadline =
		deadline_after(c->accepted, c->worker->settings.discovery_time);
	tgt_due_changed(c);
}

static void expire_discovery(struct tgt_conn *c)
{
	conn_trace(c, TRACE_CONN_TIMEOUT,
		   "discovery session lasted too long; connection dropped");
	tgt_conn_end(c, DM_TERMINATE_NOW, ERR_TIMEOUT);
}

/* At ErrorRecoveryLevel 1 a ping, or its answer, may be lost while the connection
 * lives: it is sent PINGS times in ping_time. RDMA loses none (RFC 7145 §10.2.1). */
#define PINGS 4

static bool loses_pings(const struct tgt_conn *c)
{
	return c->dm->retains && !c->session->conns.rdma;
}

static void ping(struct tgt_conn *c, xtime now)
{
	xtime time = c->worker->tgt->cfg.ping_time;

	if (loses_pings(c) && time != XTIME_NEVER)
		time /= PINGS;
	c->deadline = deadline_after(now, time);
	c->ping.sent++;
	tgt_ping(c);
}

static void expire_idle(struct tgt_conn *c, xtime now)
{
	const struct tgt_config *cfg = &c->worker->tgt->cfg;

	if (!c->session->node) {
		expire_discovery(c);
		return;
	}
	/* the datamover does not read a held connection: the initiator may
	 * have sent something */
	if (c->heard || c->held) {
		c->heard = false;
		c->deadline = deadline_after(now, cfg->idle_time);
		c->ping.sent = 0;
		return;
	}
	if (c->ping.pending && !(loses_pings(c) && c->ping.sent < PINGS)) {
		conn_trace(c, TRACE_CONN_TIMEOUT,
			   "no answer to NOP-In; connection dropped");
		tgt_conn_end(c, DM_TERMINATE_NOW, ERR_TIMEOUT);
		return;
	}
	ping(c, now);
}

void tgt_clock_expire(struct tgt_conn *c, xtime now)
{
	if (c->closing)
		expire_closing(c, now);
	else if (c->login)
		expire_login(c);
	else if (c->state == ISCSI_S7_LOGOUT_REQUESTED)
		expire_logout(c);
	else if (c->state == ISCSI_S6_IN_LOGOUT)
		c->deadline =
			XTIME_NEVER; /* the end of the last task ends it */
	else if (c->end.leaving)
		tgt_clock_ask_logout(c, now);
	else
		expire_idle(c, now);
}

void tgt_clock_leave(struct tgt_conn *c)
{
	c->end.leaving = true;
	c->deadline = 0;
	tgt_due_changed(c);
}

/* [RFC 7143: 11.9.1 #1] */
void tgt_clock_ask_logout(struct tgt_conn *c, xtime now)
{
	const struct tgt_config *cfg = &c->worker->tgt->cfg;
	const struct iscsi_async ask = {
		.event = ISCSI_ASYNC_LOGOUT,
		.param3 = (uint16_t)MAX(cfg->logout_time / XTIME_S, (xtime)1),
	};

	if (c->closing)
		return;
	if (c->state != ISCSI_S5_LOGGED_IN || !c->session->node) {
		tgt_conn_end(c, DM_TERMINATE_AFTER_SENT, ERR_TERMINATED);
		return;
	}
	tgt_async(c, &ask);
	if (!tgt_conn_open(c))
		return;
	tgt_conn_go(c, ISCSI_S7_LOGOUT_REQUESTED); /* T11 */
	c->deadline = now + cfg->logout_time;
	tgt_due_changed(c);
}
