/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * logout.c: Logout (RFC 7143 §§11.14, 11.15) of the session, or of one of its
 * connections from any of them. The response waits for the end of the tasks; that
 * of a session also until the device has given back what the initiator had
 * reserved.
 */
#include "base/err.h"
#include "target/internal.h"

/* The tasks of the connection wait for reassignment. */
static void answer_recovery(struct tgt_conn *c)
{
	tgt_logout_answer(&c->logout, TGT_LOGOUT_CLOSED,
			  c->session->params.default_time2retain);
}

static void begin(struct tgt_logout *l, struct tgt_conn *by, uint32_t itt)
{
	l->begun = true;
	l->by = by;
	l->itt = itt;
}

/* §11.14: the initiator closes the connection, too. A worker that ends does not wait for
 * that. */
static enum dm_terminate how_to_end(const struct tgt_worker *w)
{
	return w->draining ? DM_TERMINATE_AFTER_SENT : DM_TERMINATE_LOGGED_OUT;
}

/* ---- of a session ---- */

/* The device has given back what the initiator had reserved. */
/* [RFC 7145: 5.2.2 #3] */
static void nexus_parted(void *arg)
{
	struct tgt_session *s = arg;

	tgt_logout_answer(&s->logout, TGT_LOGOUT_CLOSED, 0);
	tgt_session_drop(s, how_to_end(s->worker), 0);
}

/* All tasks of the session have ended. The units give back reservations of the
 * initiator before the Logout Response is sent. */
static void part_nexus(struct tgt_session *s)
{
	if (!s->nexus)
		nexus_parted(s);
	else if (tgt_remap_end(s, part_nexus))
		dev_nexus_part(s->nexus, nexus_parted, s);
}

static void session_tasks_ended(struct tgt_abort *a)
{
	part_nexus(container_of(a, struct tgt_session, logout.abort));
}

/* [RFC 7143: 11.14 #3] */
static int logout_session(struct tgt_conn *c, uint32_t itt)
{
	struct tgt_session *s = c->session;
	const struct tgt_scope scope = { .session = s };

	tgt_conn_go(c, ISCSI_S6_IN_LOGOUT); /* T9, T10 */
	begin(&s->logout, c, itt);
	tgt_abort_start(s->worker, &s->logout.abort, &scope,
			session_tasks_ended);
	return 0;
}

/* ---- of a connection ---- */

static void conn_tasks_ended(struct tgt_abort *a)
{
	struct tgt_conn *c = container_of(a, struct tgt_conn, logout.abort);

	tgt_logout_answer(&c->logout, TGT_LOGOUT_CLOSED, 0);
	tgt_conn_end(c, how_to_end(c->worker), 0);
}

/* A connection of the session that stays when c is logged out. */
static bool is_last(const struct tgt_conn *c)
{
	list_for_each(it, &c->session->conns.list) {
		const struct tgt_conn *other =
			list_entry(it, struct tgt_conn, session_link);

		if (other != c && tgt_conn_open(other) && !other->end.parted)
			return false;
	}
	return list_empty(&c->session->conns.joins) &&
	       list_empty(&c->session->conns.lost);
}

static struct tgt_conn *find_cid(const struct tgt_session *s, uint16_t cid)
{
	list_for_each(it, &s->conns.list) {
		struct tgt_conn *c =
			list_entry(it, struct tgt_conn, session_link);

		if (c->cid == cid && tgt_conn_open(c) && !c->end.parted)
			return c;
	}
	return NULL;
}

/* Requests that came early on gone are not delivered any more (§11.14). */
static int logout_conn(struct tgt_conn *c, struct tgt_conn *gone, uint32_t itt)
{
	const struct tgt_scope scope = {
		.session = c->session,
		.of_conn = true,
		.conn = gone,
	};

	tgt_conn_go(gone, ISCSI_S6_IN_LOGOUT); /* T9, T10 */
	gone->end.parted = true;
	conn_trace(gone, TRACE_LOGOUT, "connection %u of session %u logs out",
		   gone->cid, c->session->tsih);
	begin(&gone->logout, c, itt);
	tgt_window_forget_conn(c->session, gone);
	tgt_abort_iscsi_event(c->session, &scope);
	tgt_abort_start(c->worker, &gone->logout.abort, &scope,
			conn_tasks_ended);
	return 0;
}

static int close_live(struct tgt_conn *c, struct tgt_conn *gone, uint32_t itt)
{
	if (is_last(gone)) /* closes the session (§6.3.5) */
		return logout_session(c, itt);
	return logout_conn(c, gone, itt);
}

static void lost_tasks_ended(struct tgt_abort *a)
{
	struct tgt_conn *c = container_of(a, struct tgt_conn, logout.abort);

	tgt_logout_answer(&c->logout, TGT_LOGOUT_CLOSED, 0);
	tgt_recover_end(c);
}

/* The Logout of a connection that is lost: its tasks end. */
static int close_lost(struct tgt_conn *c, struct tgt_conn *lost, uint32_t itt)
{
	struct tgt_session *s = c->session;
	const struct tgt_scope of_lost = {
		.session = s,
		.of_conn = true,
		.conn = lost,
	};
	const struct tgt_scope orphans = { .session = s, .of_conn = true };

	tgt_abort_cancel(&lost->logout.abort);
	begin(&lost->logout, c, itt);
	tgt_abort_iscsi_event(s, &of_lost);
	tgt_abort_orphans(s, lost, false);
	tgt_abort_start(s->worker, &lost->logout.abort, &orphans,
			lost_tasks_ended);
	return 0;
}

static int close_conn(struct tgt_conn *c, const struct iscsi_pdu *pdu)
{
	struct tgt_conn *gone = find_cid(c->session, pdu->logout.cid);
	struct tgt_conn *lost = tgt_recover_find(c->session, pdu->logout.cid);

	if (!gone && lost && !lost->logout.by)
		return close_lost(c, lost, pdu->itt);
	if (!gone)
		return tgt_logout_respond(c, pdu->itt, TGT_LOGOUT_NO_CID, 0);
	return close_live(c, gone, pdu->itt);
}

/* ---- of a connection, for recovery (reason 2) ---- */

/* The requests of a lost connection that are not recovered have ended. */
static void lost_is_ready(struct tgt_abort *a)
{
	struct tgt_conn *c = container_of(a, struct tgt_conn, logout.abort);

	c->logout.begun = false;
	if (!c->logout.by)
		return; /* the initiator asks again, on another connection */
	answer_recovery(c);
	tgt_recover_logged_out(c);
}

static void wait_for_orphans(struct tgt_conn *lost)
{
	const struct tgt_scope orphans = { .session = lost->session,
					   .of_conn = true };

	tgt_abort_start(lost->worker, &lost->logout.abort, &orphans,
			lost_is_ready);
}

void tgt_logout_lost(struct tgt_conn *c)
{
	if (c->logout.by && !c->end.logged_out)
		wait_for_orphans(c);
	else
		c->logout.begun = false;
}

/* The response is the last PDU of the connection. */
static void own_is_ready(struct tgt_abort *a)
{
	struct tgt_conn *c = container_of(a, struct tgt_conn, logout.abort);

	if (!tgt_conn_open(c))
		return; /* the initiator asks again, on another connection */
	answer_recovery(c);
	c->end.logged_out = true;
	tgt_conn_end(c, how_to_end(c->worker), 0);
}

/* Of the connection on which it comes: its other requests end before. */
/* [RFC 7143: 11.14 #4] */
static int remove_own(struct tgt_conn *c, uint32_t itt)
{
	const struct tgt_scope scope = {
		.session = c->session,
		.of_conn = true,
		.conn = c,
		.unrecoverable = true,
	};

	tgt_conn_go(c, ISCSI_S6_IN_LOGOUT); /* T9, T10 */
	begin(&c->logout, c, itt);
	tgt_window_discard_conn(c->session, c);
	tgt_abort_start(c->worker, &c->logout.abort, &scope, own_is_ready);
	return 0;
}

/* A connection with this CID that is not logged out, even if it is ending. */
static struct tgt_conn *find_removable(const struct tgt_session *s,
				       uint16_t cid)
{
	list_for_each(it, &s->conns.list) {
		struct tgt_conn *c =
			list_entry(it, struct tgt_conn, session_link);

		if (c->cid == cid && !c->end.parted)
			return c;
	}
	return NULL;
}

/* Of another connection: the response waits for the end of that, so that nothing of
 * its tasks is sent on it any more. */
static int remove_conn(struct tgt_conn *c, struct tgt_conn *gone, uint32_t itt)
{
	gone->end.recovers = tgt_recover_wants(gone);
	if (!gone->end.recovers)
		return close_live(c, gone, itt);
	gone->end.parted = true;
	conn_trace(gone, TRACE_LOGOUT,
		   "connection %u of session %u is removed for recovery",
		   gone->cid, c->session->tsih);
	if (gone == c)
		return remove_own(c, itt);
	begin(&gone->logout, c, itt);
	tgt_conn_end(gone, DM_TERMINATE_NOW, ERR_TERMINATED);
	return 0;
}

/* A connection with this CID that another Logout removes, and that is ending. */
static struct tgt_conn *find_leaving(const struct tgt_session *s, uint16_t cid)
{
	list_for_each(it, &s->conns.list) {
		struct tgt_conn *c =
			list_entry(it, struct tgt_conn, session_link);

		if (c->cid == cid && c->end.parted && c->end.recovers &&
		    c->logout.by)
			return c;
	}
	return NULL;
}

/* The initiator may have lost the connection of its first Logout before the target
 * knows of the loss: the last Logout gets the answer of the removal. */
static void supersede(struct tgt_logout *l)
{
	tgt_logout_answer(l, TGT_LOGOUT_NO_CID, 0);
}

static int remove_again(struct tgt_conn *c, struct tgt_conn *leaving,
			uint32_t itt)
{
	supersede(&leaving->logout);
	begin(&leaving->logout, c, itt);
	return 0;
}

/* Again after an answer that was lost with its connection: the same answer. */
static int remove_lost(struct tgt_conn *c, struct tgt_conn *lost, uint32_t itt)
{
	supersede(&lost->logout);
	tgt_abort_cancel(&lost->logout.abort);
	begin(&lost->logout, c, itt);
	if (!lost->end.logged_out) {
		wait_for_orphans(lost);
		return 0;
	}
	lost->logout.begun = false;
	answer_recovery(lost);
	return 0;
}

static int remove_for_recovery(struct tgt_conn *c, const struct iscsi_pdu *pdu)
{
	struct tgt_session *s = c->session;
	struct tgt_conn *gone, *lost;

	if (s->params.error_recovery_level < 2)
		return tgt_logout_respond(c, pdu->itt, TGT_LOGOUT_NO_RECOVERY,
					  0);
	if (!s->params.default_time2retain)
		return close_conn(c, pdu); /* nothing is retained (§13.16) */
	gone = find_removable(s, pdu->logout.cid);
	if (gone)
		return remove_conn(c, gone, pdu->itt);
	gone = find_leaving(s, pdu->logout.cid);
	if (gone)
		return remove_again(c, gone, pdu->itt);
	lost = tgt_recover_find(s, pdu->logout.cid);
	if (lost)
		return remove_lost(c, lost, pdu->itt);
	return tgt_logout_respond(c, pdu->itt, TGT_LOGOUT_NO_CID, 0);
}

/* ---- requests ---- */

/* [RFC 7143: 4.3 #1] */
int tgt_logout(struct tgt_conn *c, const struct dm_control *ctl)
{
	const struct iscsi_pdu *pdu = &ctl->pdu;

	switch (pdu->logout.reason) {
	case ISCSI_LOGOUT_SESSION:
		return logout_session(c, pdu->itt);
	case ISCSI_LOGOUT_CONNECTION:
		if (!c->session->node)
			break; /* §13.21: only "close the session" */
		return close_conn(c, pdu);
	case ISCSI_LOGOUT_RECOVERY:
		if (!c->session->node)
			break;
		return remove_for_recovery(c, pdu);
	default:
		return tgt_reject(c, ISCSI_REJECT_INVALID_PDU_FIELD, ctl->bhs,
				  "reserved Logout reason (§11.14.1)");
	}
	return tgt_reject(c, ISCSI_REJECT_PROTOCOL, ctl->bhs,
			  "Logout reason in a discovery session (§13.21)");
}

static void forget_asker(const struct list *conns, const struct tgt_conn *c)
{
	list_for_each(it, conns) {
		struct tgt_conn *other =
			list_entry(it, struct tgt_conn, session_link);

		if (other->logout.by == c)
			other->logout.by = NULL;
	}
}

void tgt_logout_forget(struct tgt_conn *c)
{
	struct tgt_session *s = c->session;

	tgt_abort_cancel(&c->logout.abort);
	if (!s)
		return;
	if (s->logout.by == c)
		s->logout.by = NULL;
	forget_asker(&s->conns.list, c);
	forget_asker(&s->conns.lost, c);
}
