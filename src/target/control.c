/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * control.c: what comes in full feature phase and is no SCSI Command: NOP,
 * Logout, SNACK, and whatever has no business there (Reject, §11.17).
 */
#include <string.h>

#include "base/err.h"
#include "target/internal.h"

/* ---- from the target ---- */

int tgt_reject(struct tgt_conn *c, enum iscsi_reject_reason reason,
	       const uint8_t bhs[ISCSI_BHS_LEN], const char *why)
{
	struct dm_control ctl = {
		.pdu = {
			.op = ISCSI_REJECT,
			.final = true,
			.itt = ISCSI_RESERVED_TAG,
			.ttt = ISCSI_RESERVED_TAG,
			.dsl = ISCSI_BHS_LEN,
		},
		.data = bhs,
	};

	c->rejects++;
	conn_trace(c, TRACE_REJECT, "PDU rejected, reason %02x: %s", reason,
		   why);
	ctl.pdu.reject.reason = (uint8_t)reason;
	return tgt_conn_send(c, &ctl);
}

/* NOP-In without a StatSN of its own (§11.19.2). */
static int send_nop_in(struct tgt_conn *c, uint32_t ttt)
{
	const struct dm_control ctl = {
		.pdu = {
			.op = ISCSI_NOP_IN,
			.final = true,
			.itt = ISCSI_RESERVED_TAG,
			.ttt = ttt,
			.statsn = c->numbers.statsn,
		},
	};
	int err = dm_send_control(c->dm, NULL, &ctl);

	if (err && err != ERR_BUSY)
		tgt_conn_fail(c, err, "NOP-In");
	return err;
}

int tgt_ping(struct tgt_conn *c)
{
	if (++c->next_ttt == ISCSI_RESERVED_TAG)
		c->next_ttt = 1;
	c->ping_ttt = c->next_ttt;
	/* withheld (RFC 7145 §8.1.2): there is nothing to wait for */
	c->pinging = send_nop_in(c, c->ping_ttt) != ERR_BUSY;
	return 0;
}

/* The window opened and no response is on its way to say so (§11.19). */
int tgt_announce_window(struct tgt_conn *c)
{
	c->session->stalled = false;
	if (tgt_conn_open(c) && send_nop_in(c, ISCSI_RESERVED_TAG) == ERR_BUSY)
		c->session->stalled = true; /* with the next occasion */
	return 0;
}

int tgt_async(struct tgt_conn *c, const struct iscsi_async *a)
{
	struct dm_control ctl = {
		.pdu = {
			.op = ISCSI_ASYNC_MESSAGE,
			.final = true,
			.itt = ISCSI_RESERVED_TAG,
			.ttt = ISCSI_RESERVED_TAG,
		},
	};

	ctl.pdu.async = *a;
	return tgt_conn_send(c, &ctl);
}

/* ---- NOP-Out (§11.18) ---- */

static int nop_echo(struct tgt_conn *c, const struct dm_control *in)
{
	struct dm_control ctl = {
		.pdu = {
			.op = ISCSI_NOP_IN,
			.final = true,
			.itt = in->pdu.itt,
			.ttt = ISCSI_RESERVED_TAG,
			.dsl = MIN(in->pdu.dsl, tgt_conn_data_max(c)),
		},
		.data = in->data,
	};

	return tgt_conn_send(c, &ctl);
}

static int nop_out(struct tgt_conn *c, const struct dm_control *ctl)
{
	const struct iscsi_pdu *pdu = &ctl->pdu;

	if (pdu->itt != ISCSI_RESERVED_TAG)
		return nop_echo(c, ctl);
	if (pdu->ttt == ISCSI_RESERVED_TAG)
		return 0; /* only tells its ExpStatSN */
	if (!c->pinging || pdu->ttt != c->ping_ttt)
		return tgt_reject(c, ISCSI_REJECT_INVALID_PDU_FIELD, ctl->bhs,
				  "NOP-Out for a ping that was not sent "
				  "(RFC 7143 §11.18.2)");
	c->pinging = false;
	return 0;
}

/* ---- Logout (§11.14, §11.15) ---- */

static int logout_response(struct tgt_conn *c, uint32_t itt, uint8_t response)
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
	ctl.pdu.logout.time2retain = 0; /* nothing is retained: level 0 */
	return tgt_conn_send(c, &ctl);
}

/* [RFC 7145: 5.2.2 #3] */
static void parted(void *arg)
{
	struct tgt_session *s = arg;
	struct tgt_conn *c = s->conn;

	if (!c || !tgt_conn_open(c))
		return; /* it went meanwhile */
	logout_response(c, c->logout_itt, 0);
	tgt_conn_end(c, DM_TERMINATE_AFTER_SENT, 0);
}

/* All tasks of the session are gone. What the initiator had reserved is free
 * again before it hears that it is out. */
static void logged_out(struct tgt_abort *a)
{
	struct tgt_conn *c = container_of(a, struct tgt_conn, logout);
	struct tgt_session *s = c->session;

	if (s->nexus)
		dev_nexus_part(s->nexus, parted, s);
	else
		parted(s);
}

static int close_session(struct tgt_conn *c, uint32_t itt)
{
	const struct tgt_scope scope = { .session = c->session };

	tgt_conn_go(c, ISCSI_S6_IN_LOGOUT); /* T9, T10 */
	c->session->logged_out = true;
	c->logout_itt = itt;
	tgt_abort_start(c->worker, &c->logout, &scope, logged_out);
	return 0;
}

enum logout_answer {
	LOGOUT_CLOSED = 0,
	LOGOUT_NO_CID = 1,
	LOGOUT_NO_RECOVERY = 2,
};

static int logout(struct tgt_conn *c, const struct dm_control *ctl)
{
	const struct iscsi_pdu *pdu = &ctl->pdu;

	switch (pdu->logout.reason) {
	case ISCSI_LOGOUT_SESSION:
		return close_session(c, pdu->itt);
	case ISCSI_LOGOUT_CONNECTION:
		if (!c->session->node)
			break; /* §13.21: only "close the session" */
		if (pdu->logout.cid != c->cid)
			return logout_response(c, pdu->itt, LOGOUT_NO_CID);
		return close_session(c, pdu->itt);
	case ISCSI_LOGOUT_RECOVERY:
		if (!c->session->node)
			break;
		return logout_response(c, pdu->itt, LOGOUT_NO_RECOVERY);
	default:
		return tgt_reject(c, ISCSI_REJECT_INVALID_PDU_FIELD, ctl->bhs,
				  "reserved Logout reason (§11.14.1)");
	}
	return tgt_reject(c, ISCSI_REJECT_PROTOCOL, ctl->bhs,
			  "Logout reason in a discovery session (§13.21)");
}

/* ---- the table ---- */

struct request_row {
	bool numbered;	/* has a CmdSN and its place in the order */
	bool discovery; /* allowed there (§13.21) */
	int (*run)(struct tgt_conn *c, const struct dm_control *ctl);
};

/* [RFC 7145: 7.3.11 #2-3] */
static int snack(struct tgt_conn *c, const struct dm_control *ctl)
{
	if (c->session->params.rdma_extensions)
		return tgt_reject(c, ISCSI_REJECT_PROTOCOL, ctl->bhs,
				  "SNACK under iSER (RFC 7145 §7.3.11)");
	return tgt_reject(c, ISCSI_REJECT_SNACK, ctl->bhs,
			  "SNACK at ErrorRecoveryLevel 0 (§11.16)");
}

static int out_of_phase(struct tgt_conn *c, const struct dm_control *ctl)
{
	return tgt_reject(c, ISCSI_REJECT_PROTOCOL, ctl->bhs,
			  iscsi_opcode_name(ctl->pdu.op));
}

static const struct request_row rows[] = {
	[ISCSI_NOP_OUT] = { .numbered = true, .run = nop_out },
	[ISCSI_TMF_REQUEST] = { .numbered = true, .run = tgt_tmf },
	[ISCSI_TEXT_REQUEST] = {
		.numbered = true, .discovery = true, .run = tgt_text,
	},
	[ISCSI_LOGOUT_REQUEST] = {
		.numbered = true, .discovery = true, .run = logout,
	},
	[ISCSI_SNACK_REQUEST] = { .run = snack },
};

static const struct request_row other_row = { .run = out_of_phase };

static const struct request_row *find_row(uint8_t op)
{
	if (op < ARRAY_LEN(rows) && rows[op].run)
		return &rows[op];
	return &other_row;
}

/* A request whose turn has come. */
/* [RFC 7145: 7.3.9 #2-3] */
int tgt_control(struct tgt_conn *c, const struct dm_control *ctl)
{
	const struct request_row *row = find_row(ctl->pdu.op);

	if (!tgt_conn_open(c))
		return 0;
	if (c->state == ISCSI_S6_IN_LOGOUT)
		return tgt_reject(c, ISCSI_REJECT_WAITING_LOGOUT, ctl->bhs,
				  "request after Logout Request (§11.14)");
	if (!c->session->node && !row->discovery)
		return tgt_reject(c, ISCSI_REJECT_PROTOCOL, ctl->bhs,
				  "not allowed in a discovery session "
				  "(RFC 7143 §13.21)");
	return row->run(c, ctl);
}

int tgt_request(struct tgt_conn *c, const struct dm_control *ctl)
{
	const struct iscsi_pdu *pdu = &ctl->pdu;

	if (!find_row(pdu->op)->numbered)
		return tgt_control(c, ctl);
	if (pdu->op == ISCSI_NOP_OUT && pdu->itt == ISCSI_RESERVED_TAG &&
	    !pdu->immediate)
		return tgt_reject(c, ISCSI_REJECT_PROTOCOL, ctl->bhs,
				  "NOP-Out without a tag must be immediate "
				  "(RFC 7143 §11.18.1)");
	if (pdu->op != ISCSI_NOP_OUT && pdu->itt == ISCSI_RESERVED_TAG)
		return tgt_reject(c, ISCSI_REJECT_INVALID_PDU_FIELD, ctl->bhs,
				  "request with the reserved task tag");
	return tgt_order_request(c, ctl);
}
