/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * control.c: requests of the full feature phase other than SCSI Commands. NOP-Out
 * is handled here, Logout, Text and task management in files of their own; all
 * others are rejected (§11.17).
 */
#include "base/err.h"
#include "target/internal.h"

/* ---- NOP-Out (§11.18) ---- */

/* [RFC 7143: 11.18.1 #3, 11.19 #1-3] */
static int echo_nop(struct tgt_conn *c, const struct dm_control *in)
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

/* [RFC 7143: 11.18.2 #1] */
static int handle_nop(struct tgt_conn *c, const struct dm_control *ctl)
{
	const struct iscsi_pdu *pdu = &ctl->pdu;

	if (pdu->itt != ISCSI_RESERVED_TAG)
		return echo_nop(c, ctl);
	if (pdu->ttt == ISCSI_RESERVED_TAG)
		return 0; /* it only carries ExpStatSN */
	if (!c->ping.pending && c->dm->retains && pdu->ttt == c->ping.ttt)
		return 0; /* the second answer: it was sent again */
	if (!c->ping.pending || pdu->ttt != c->ping.ttt)
		return tgt_reject(c, ISCSI_REJECT_INVALID_PDU_FIELD, ctl->bhs,
				  "NOP-Out for a ping that was not sent "
				  "(RFC 7143 §11.18.2)");
	c->ping.pending = false;
	tgt_fence_ask(c);
	return 0;
}

/* ---- table of requests ---- */

struct request_row {
	bool numbered;	/* it has a CmdSN and a place in the order */
	bool discovery; /* allowed in a discovery session (§13.21) */
	int (*run)(struct tgt_conn *c, const struct dm_control *ctl);
};

/* §11.17.1 and its note 2, §11.16. */
/* [RFC 7143: 7.8 #7, 11.16 #7] */
static int reject_snack(struct tgt_conn *c, const struct dm_control *ctl,
			int err, uint32_t next)
{
	switch (err) {
	case ERR_RANGE:
		return tgt_reject_data(c, ISCSI_REJECT_PROTOCOL, ctl->bhs,
				       "SNACK for PDUs that were not sent, or "
				       "are acknowledged (RFC 7143 §11.16)",
				       next);
	case ERR_UNSUPPORTED:
		return tgt_reject(c, ISCSI_REJECT_SNACK, ctl->bhs,
				  "SNACK for data that were written since "
				  "(RFC 7143 §7.8)");
	case ERR_SEQUENCE:
		return tgt_reject(c, ISCSI_REJECT_INVALID_DATA_ACK, ctl->bhs,
				  "DataACK for data that were not sent "
				  "(RFC 7143 §11.16.2)");
	case ERR_NOT_FOUND:
		return tgt_reject(c, ISCSI_REJECT_INVALID_PDU_FIELD, ctl->bhs,
				  "SNACK for no task (RFC 7143 §11.16.4)");
	default:
		return tgt_reject(c, ISCSI_REJECT_INVALID_PDU_FIELD, ctl->bhs,
				  "SNACK with a wrong field (RFC 7143 §11.16)");
	}
}

/* [RFC 7145: 7.3.11 #2-3] */
static int handle_snack(struct tgt_conn *c, const struct dm_control *ctl)
{
	uint32_t next;
	int err;

	if (c->session->params.rdma_extensions)
		return tgt_reject(c, ISCSI_REJECT_PROTOCOL, ctl->bhs,
				  "SNACK under iSER (RFC 7145 §7.3.11)");
	if (!c->dm->retains)
		return tgt_reject(c, ISCSI_REJECT_SNACK, ctl->bhs,
				  "SNACK at ErrorRecoveryLevel 0 (§11.16)");
	err = dm_snack(c->dm, &ctl->pdu, &next);
	return err ? reject_snack(c, ctl, err, next) : 0;
}

/* [RFC 7143: 4.2.4 #3] */
static int reject_unexpected(struct tgt_conn *c, const struct dm_control *ctl)
{
	return tgt_reject(c, ISCSI_REJECT_PROTOCOL, ctl->bhs,
			  iscsi_opcode_name(ctl->pdu.op));
}

static const struct request_row rows[] = {
	[ISCSI_NOP_OUT] = { .numbered = true, .run = handle_nop },
	[ISCSI_TMF_REQUEST] = { .numbered = true, .run = tgt_tmf },
	[ISCSI_TEXT_REQUEST] = {
		.numbered = true, .discovery = true, .run = tgt_text,
	},
	[ISCSI_LOGOUT_REQUEST] = {
		.numbered = true, .discovery = true, .run = tgt_logout,
	},
	[ISCSI_SNACK_REQUEST] = { .run = handle_snack },
};

static const struct request_row other_row = { .run = reject_unexpected };

static const struct request_row *find_row(uint8_t op)
{
	if (op < ARRAY_LEN(rows) && rows[op].run)
		return &rows[op];
	return &other_row;
}

/* [RFC 7145: 7.3.9 #2-3] */
/* [RFC 7143: 4.2.4 #1, 4.3 #1-2, 11.14 #1-2] */
int tgt_control(struct tgt_conn *c, const struct dm_control *ctl)
{
	const struct request_row *row = find_row(ctl->pdu.op);

	if (!tgt_conn_open(c))
		return 0;
	if (c->state == ISCSI_S6_IN_LOGOUT || c->session->logout.begun)
		return tgt_reject(c, ISCSI_REJECT_WAITING_LOGOUT, ctl->bhs,
				  "request after Logout Request (§11.14)");
	if (!c->session->node && !row->discovery)
		return tgt_reject(c, ISCSI_REJECT_PROTOCOL, ctl->bhs,
				  "not allowed in a discovery session "
				  "(RFC 7143 §13.21)");
	return row->run(c, ctl);
}

/* [RFC 7143: 11.18.1 #4] */
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
