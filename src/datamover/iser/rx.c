/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rx.c: from a received message to a PDU. Every length is checked here, before
 * the bytes that it covers are read.
 */
#include "datamover/iser/internal.h"
#include "iscsi/bhs_codec.h"

/* libiscsi 1.19 counts data that it leaves to RDMA Read in the
 * DataSegmentLength of a WRITE: its Send ends after the headers, and its base
 * offset is the start of the buffer. Such a Send has no immediate data; every
 * other difference in length is an error. */
static bool counts_absent_data(const struct dmiser_conn *c,
			       const struct iser_in *in)
{
	return c->dm->role == ISCSI_TARGET && c->full_feature &&
	       in->ctl.pdu.op == ISCSI_SCSI_COMMAND && in->h.wsv &&
	       in->recv->len == ISER_PDU_LEN + (size_t)in->ctl.pdu.ahs_len;
}

/* iscsi_bhs_decode, inline for the opcodes of which a command consists. */
static int decode_bhs(struct iscsi_pdu *p, const uint8_t *bhs)
{
	switch (bhs[0] & OPCODE_MASK) {
	case ISCSI_SCSI_COMMAND:
		iscsi_scsi_command_decode(p, bhs);
		return 0;
	case ISCSI_SCSI_RESPONSE:
		iscsi_scsi_response_decode(p, bhs);
		return 0;
	default:
		return iscsi_bhs_decode(p, bhs);
	}
}

/* Decodes a message of 76 bytes, AHS and data. Some implementations pad the
 * data, some do not. */
static int decode_pdu(struct dmiser_conn *c, struct iser_in *in)
{
	const struct rcap_recv *r = in->recv;
	const uint8_t *rest;
	size_t want;
	int err;

	if (r->len < ISER_PDU_LEN)
		return ERR_TRUNCATED;
	in->ctl.bhs = rcap_recv_bytes(r) + ISER_HEADER_LEN;
	err = decode_bhs(&in->ctl.pdu, in->ctl.bhs);
	dm_trace_pdu(c->dm, false, in->ctl.bhs);
	if (counts_absent_data(c, in))
		in->ctl.pdu.dsl = 0;
	want = ISER_PDU_LEN + in->ctl.pdu.ahs_len + (size_t)in->ctl.pdu.dsl;
	if (r->len < want || r->len > round_up4(want))
		return ERR_TRUNCATED;
	if (in->ctl.pdu.dsl > (c->full_feature ? c->max_recv_dsl : LOGIN_DSL))
		return ERR_TOO_LONG;
	/* §11.2.2: AHS belong to SCSI Commands, after login */
	if (in->ctl.pdu.ahs_len > AHS_MAX || /* RFC 7145 §6.8 */
	    (in->ctl.pdu.ahs_len &&
	     (!c->full_feature || in->ctl.pdu.op != ISCSI_SCSI_COMMAND)))
		return ERR_TOO_LONG;
	rest = in->ctl.bhs + ISCSI_BHS_LEN;
	in->ctl.ahs = in->ctl.pdu.ahs_len ? rest : NULL;
	in->ctl.data = NULL;
	in->ctl.reassigned = NULL;
	in->ctl.remote = NULL;
	in->data = in->ctl.pdu.dsl ? rest + in->ctl.pdu.ahs_len : NULL;
	return err;
}

/* [RFC 7145: 3.2 #1, 5.2.1 #2, 5.2.2 #1, 7.2 #1, 10.1.4.1 #1] */
static void deliver_control(struct dmiser_conn *c, struct iser_in *in)
{
	const struct dm_remote remote = dmiser_remote(&in->h);
	struct dm_task *t = NULL;
	int err;

	in->ctl.data = in->data;
	in->ctl.remote = in->ctl.pdu.op == ISCSI_TMF_REQUEST ? &remote : NULL;
	err = c->dm->up->control_notify(c->dm, &in->ctl, &t);
	if (err)
		dmiser_fail_conn(c, err, "PDU refused by the iSCSI layer");
}

/* Counts the time until now as that of a control PDU, or of what was before. The queue pair asks
 * whether the time of the turn is used up. */
static void count_time(const struct dmiser_conn *c, bool control)
{
	if (c->cfg.host)
		(void)stream_is_spent(c->cfg.host, control);
}

/* Returns true if the receive stays in use. */
static bool deliver_pdu(struct dmiser_conn *c, struct iser_in *in)
{
	if (c->full_feature) {
		c->has_received = true;
		dmiser_retire_unexpected(c, &in->ctl.pdu);
		if (c->dm->retains && dm_acknowledges(&in->ctl.pdu))
			dmiser_acknowledge(c, in->ctl.pdu.expstatsn);
	}
	switch (in->ctl.pdu.op) {
	case ISCSI_SCSI_COMMAND:
		if (c->full_feature && c->dm->role == ISCSI_TARGET) {
			dmiser_target_command(c, in);
			return false;
		}
		break;
	case ISCSI_DATA_OUT:
		if (c->full_feature && c->dm->role == ISCSI_TARGET) {
			dmiser_target_data_out(c, in);
			return false;
		}
		break;
	case ISCSI_SCSI_RESPONSE:
		if (c->full_feature && c->dm->role == ISCSI_INITIATOR)
			return dmiser_initiator_response(c, in);
		break;
	case ISCSI_DATA_IN:
	case ISCSI_R2T:
		/* §7.2: data-type PDUs are not sent in Sends */
		dmiser_fail_conn(c, ERR_PROTOCOL,
				 "data-type PDU in a Send (RFC 7145 §7.2)");
		return false;
	default:
		break;
	}
	count_time(c, false);
	deliver_control(c, in);
	count_time(c, true);
	return false;
}

/* §10.1.4.4: the iSCSI layer rejects a PDU that it cannot process. */
static void report_error(struct dmiser_conn *c, const struct iser_in *in,
			 int err)
{
	if (!c->full_feature) {
		dmiser_fail_conn(c, err, "not an iSCSI PDU (RFC 7143 §11)");
		return;
	}
	c->dm->up->error_notify(c->dm, &in->ctl.pdu, in->ctl.bhs, err);
}

/* Returns true if the receive stays in use. */
static bool take_message(struct dmiser_conn *c, struct rcap_recv *r)
{
	struct iser_in in; /* decode_pdu fills the rest */
	int err = iser_header_decode(&in.h, rcap_recv_bytes(r), r->len);

	in.recv = r;
	if (err) {
		dmiser_fail_conn(c, err,
				 "malformed iSER header (RFC 7145 §9.1)");
		return false;
	}
	if (in.h.opcode != ISER_CONTROL || c->hello == HELLO_AWAIT) {
		dmiser_hello_received(c, &in.h, r->len);
		return false;
	}
	c->stats.rx_pdus++;
	err = decode_pdu(c, &in);
	if (!err && r->invalidated && in.ctl.pdu.op != ISCSI_SCSI_RESPONSE) {
		dmiser_fail_conn(c, ERR_PROTOCOL,
				 "STag invalidated by a PDU that is not a SCSI "
				 "Response (RFC 7145 §7.3.2)");
		return false;
	}
	if (err == ERR_TRUNCATED || err == ERR_TOO_LONG) {
		dmiser_fail_conn(
			c, err,
			"length of a Send differs from the length in its PDU "
			"(RFC 7145 §9.2)");
		return false;
	}
	if (!err && iscsi_opcode_from_initiator(in.ctl.pdu.op) !=
			    (c->dm->role == ISCSI_TARGET))
		err = ERR_PROTOCOL;
	/* RFC 7143 §4.2.4; the target role answers such PDUs */
	if (!err && !c->full_feature && c->dm->role == ISCSI_INITIATOR &&
	    in.ctl.pdu.op != ISCSI_LOGIN_RESPONSE)
		err = ERR_PROTOCOL;
	if (err) {
		report_error(c, &in, err);
		count_time(c, true);
		return false;
	}
	return deliver_pdu(c, &in);
}

static void process_recv(struct dmiser_conn *c, struct rcap_recv *r)
{
	if (c->ended)
		return;
	/* nothing more is processed when the connection terminates */
	if (c->dm->state >= DM_TERMINATING || !take_message(c, r))
		dmiser_repost(c, r);
	else
		dmiser_recv_more(c);
}

/* A message may come before the up-call `established`, when it cannot be
 * answered yet. */
void dmiser_received(void *arg, struct rcap_recv *r, int err)
{
	struct dmiser_conn *c = arg;

	if (err)
		return;
	if (c->established) {
		process_recv(c, r);
		return;
	}
	list_push_back(&c->early, &r->link);
	dmiser_recv_more(c);
}

void dmiser_take_early(struct dmiser_conn *c)
{
	struct list *n;

	while ((n = list_pop_front(&c->early)))
		process_recv(c, list_entry(n, struct rcap_recv, link));
}
