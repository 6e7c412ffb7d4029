/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * logout.c: Logout (RFC 7143 §§11.14, 11.15) of the session, or of one of its
 * connections from any of them. The response waits for the end of the tasks; that
 * of a session also until the device has given back what the initiator had
 * reserved.
 */
#include "base/err.h"
#include "target/internal.h"

enum logout_response { /* §11.15.1 */
	LOGOUT_CLOSED = 0,
	LOGOUT_NO_CID = 1,
	LOGOUT_NO_RECOVERY = 2,
};

static int send_response(struct tgt_conn *c, uint32_t itt, uint8_t response)
{
	const struct iscsi_params *p = &c->session->params;
	struct dm_control ctl = {
		.pdu = {
			.op = ISCSI_LOGOUT_RESPONSE,
			.final = true,
			.itt = itt,
			.ttt = ISCSI_RESERVED_TAG,
		},
	};

	ctl.pdu.logout.response = response;
	ctl.pdu.logout.time2wait = p->default_time2wait;
	ctl.pdu.logout.time2retain = 0; /* ErrorRecoveryLevel 0 */
	return tgt_conn_send(c, &ctl);
}

/* Answers on the connection that asked, unless that has ended. */
static void answer(struct tgt_logout *l)
{
	if (tgt_conn_open(l->by))
		send_response(l->by, l->itt, LOGOUT_CLOSED);
	l->by = NULL;
}

static void begin(struct tgt_logout *l, struct tgt_conn *by, uint32_t itt)
{
	l->begun = true;
	l->by = by;
	l->itt = itt;
}

/* ---- of a session ---- */

/* The device has given back what the initiator had reserved. */
/* [RFC 7145: 5.2.2 #3] */
static void nexus_parted(void *arg)
{
	struct tgt_session *s = arg;

	answer(&s->logout);
	tgt_session_drop(s, DM_TERMINATE_AFTER_SENT, 0);
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

	answer(&c->logout);
	tgt_conn_end(c, DM_TERMINATE_AFTER_SENT, 0);
}

/* A connection of the session that stays when c is logged out. */
static bool is_last(const struct tgt_conn *c)
{
	list_for_each(it, &c->session->conns.list) {
		const struct tgt_conn *other =
			list_entry(it, struct tgt_conn, session_link);

		if (other != c && tgt_conn_open(other) && !other->parted)
			return false;
	}
	return list_empty(&c->session->conns.joins);
}

static struct tgt_conn *find_cid(const struct tgt_session *s, uint16_t cid)
{
	list_for_each(it, &s->conns.list) {
		struct tgt_conn *c =
			list_entry(it, struct tgt_conn, session_link);

		if (c->cid == cid && tgt_conn_open(c) && !c->parted)
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
	gone->parted = true;
	conn_trace(gone, TRACE_LOGOUT, "connection %u of session %u logs out",
		   gone->cid, c->session->tsih);
	begin(&gone->logout, c, itt);
	tgt_window_forget_conn(c->session, gone);
	tgt_abort_iscsi_event(c->session, &scope);
	tgt_abort_start(c->worker, &gone->logout.abort, &scope,
			conn_tasks_ended);
	return 0;
}

static int close_conn(struct tgt_conn *c, const struct iscsi_pdu *pdu)
{
	struct tgt_conn *gone = find_cid(c->session, pdu->logout.cid);

	if (!gone)
		return send_response(c, pdu->itt, LOGOUT_NO_CID);
	if (is_last(gone)) /* closes the session (§6.3.5) */
		return logout_session(c, pdu->itt);
	return logout_conn(c, gone, pdu->itt);
}

/* ---- requests ---- */

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
		return send_response(c, pdu->itt, LOGOUT_NO_RECOVERY);
	default:
		return tgt_reject(c, ISCSI_REJECT_INVALID_PDU_FIELD, ctl->bhs,
				  "reserved Logout reason (§11.14.1)");
	}
	return tgt_reject(c, ISCSI_REJECT_PROTOCOL, ctl->bhs,
			  "Logout reason in a discovery session (§13.21)");
}

void tgt_logout_forget(struct tgt_conn *c)
{
	struct tgt_session *s = c->session;

	tgt_abort_cancel(&c->logout.abort);
	if (!s)
		return;
	if (s->logout.by == c)
		s->logout.by = NULL;
	list_for_each(it, &s->conns.list) {
		struct tgt_conn *other =
			list_entry(it, struct tgt_conn, session_link);

		if (other->logout.by == c)
			other->logout.by = NULL;
	}
}
