/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rx.c: receives: how many stand ready (RFC 7145 §8.1), and from a message to
 * a PDU. Every length is checked here: a message is at least what its own
 * headers say, before any of it is looked at.
 */
#include <stdlib.h>
#include <string.h>

#include "datamover/iser/internal.h"

#define LOGIN_LEN (ISER_PDU_LEN + LOGIN_DSL)
/* Immediate requests and ping responses beyond the command window (§8.1.1),
 * whatever MaxOutstandingUnexpectedPDUs is left at. */
#define SPARE_RECVS 16

/* ---- receives ---- */

void dmiser_repost(struct dmiser_conn *c, struct rcap_recv *r)
{
	/* the login's own receive is too small for what may come behind it */
	if (!c->dead && !(r == &c->login_recv && c->recvs))
		rcap_post_recv(c->qp, r);
}

/* One: a Login PDU is answered before the next may come (RFC 7143 §6.3), and
 * one more would be the first that a PDU of the full feature phase meets. */
int dmiser_rx_login(struct dmiser_conn *c)
{
	c->login_mem = malloc(LOGIN_LEN);
	if (!c->login_mem)
		return ERR_NOMEM;
	c->login_recv.buf = c->login_mem;
	c->login_recv.cap = LOGIN_LEN;
	c->login_recv.may_lend = true;
	rcap_post_recv(c->qp, &c->login_recv);
	return 0;
}

/* Sends that one task may bring at once: its command, or its response, and
 * unsolicited Data-Outs (§8.1.1.2). */
/* [RFC 7145: 8.1.1.1 #1] */
static unsigned sends_per_task(const struct dmiser_conn *c)
{
	const struct iscsi_params *k = &c->params;

	if (c->face->role == ISCSI_INITIATOR || k->initial_r2t)
		return 1;
	return 1 +
	       (k->first_burst_length + c->max_recv_dsl - 1) / c->max_recv_dsl;
}

/* [RFC 7145: 8.1.1.3 #2, 10.1.3.1 #1] */
int dmiser_rx_prepare(struct dmiser_conn *c, const struct dm_resources *r)
{
	size_t n = (size_t)r->max_tasks * sends_per_task(c) + SPARE_RECVS;
	size_t bytes;

	if (c->recvs)
		return 0;
	c->recv_len = round_up4(ISER_PDU_LEN + AHS_MAX + c->max_recv_dsl);
	if (!mul_ok(n, c->recv_len, &bytes) || n > UINT32_MAX)
		return ERR_NOMEM;
	c->recv_mem = malloc(bytes);
	c->recvs = calloc(n, sizeof(c->recvs[0]));
	if (!c->recv_mem || !c->recvs) {
		dmiser_rx_free(c);
		return ERR_NOMEM;
	}
	c->nrecvs = (unsigned)n;
	for (unsigned i = 0; i < c->nrecvs; i++) {
		c->recvs[i].buf = c->recv_mem + i * c->recv_len;
		c->recvs[i].cap = c->recv_len;
		c->recvs[i].may_lend = true;
		rcap_post_recv(c->qp, &c->recvs[i]);
	}
	return 0;
}

void dmiser_rx_free(struct dmiser_conn *c)
{
	free(c->recvs);
	free(c->recv_mem);
	c->recvs = NULL;
	c->recv_mem = NULL;
	c->nrecvs = 0;
}

/* ---- from message to PDU ---- */

/* libiscsi 1.19 counts in a WRITE's DataSegmentLength what it leaves to RDMA
 * Read: its Send ends behind the headers, its base offset is the buffer's
 * start. Nothing came, so nothing is taken for immediate data; a message that
 * is short by any other amount stays an error. */
static bool counts_absent_data(const struct dmiser_conn *c,
			       const struct iser_in *in)
{
	return c->face->role == ISCSI_TARGET && c->full_feature &&
	       in->pdu.op == ISCSI_SCSI_COMMAND && in->h.wsv &&
	       in->recv->len == ISER_PDU_LEN + (size_t)in->pdu.ahs_len;
}

/* 76 + AHS + data, the data padded or not (both exist in the world). */
static int open_pdu(struct dmiser_conn *c, struct iser_in *in)
{
	const struct rcap_recv *r = in->recv;
	const uint8_t *rest;
	size_t want;
	int err;

	if (r->len < ISER_PDU_LEN)
		return ERR_TRUNCATED;
	in->bhs = rcap_recv_bytes(r) + ISER_HEADER_LEN;
	err = iscsi_bhs_decode(&in->pdu, in->bhs);
	dm_trace_pdu(c->face, false, in->bhs);
	if (counts_absent_data(c, in))
		in->pdu.dsl = 0;
	want = ISER_PDU_LEN + in->pdu.ahs_len + (size_t)in->pdu.dsl;
	if (r->len < want || r->len > round_up4(want))
		return ERR_TRUNCATED;
	if (in->pdu.dsl > (c->full_feature ? c->max_recv_dsl : LOGIN_DSL))
		return ERR_TOO_LONG;
	/* §11.2.2: AHS belong to SCSI Commands, after login */
	if (in->pdu.ahs_len > AHS_MAX || /* RFC 7145 §6.8 */
	    (in->pdu.ahs_len &&
	     (!c->full_feature || in->pdu.op != ISCSI_SCSI_COMMAND)))
		return ERR_TOO_LONG;
	rest = in->bhs + ISCSI_BHS_LEN;
	in->ahs = in->pdu.ahs_len ? rest : NULL;
	in->data = in->pdu.dsl ? rest + in->pdu.ahs_len : NULL;
	return err;
}

void dmiser_retire_unexpected(struct dmiser_conn *c,
			      const struct iscsi_pdu *pdu)
{
	bool target = c->face->role == ISCSI_TARGET;
	uint32_t expected = target ? pdu->expstatsn : pdu->expcmdsn;
	/* §8.1.2 c: the answer to a ping retires it */
	bool pong = target && pdu->op == ISCSI_NOP_OUT &&
		    pdu->itt == ISCSI_RESERVED_TAG &&
		    pdu->ttt != ISCSI_RESERVED_TAG;
	unsigned left = 0;

	for (unsigned i = 0; i < c->nunexpected; i++)
		if (!sn_lt(c->unexpected[i].sn, expected) &&
		    !(pong && c->unexpected[i].ttt == pdu->ttt))
			c->unexpected[left++] = c->unexpected[i];
	c->nunexpected = left;
}

/* [RFC 7145: 3.2 #1, 5.2.1 #2, 5.2.2 #1, 7.2 #1, 10.1.4.1 #1] */
static void plain_pdu(struct dmiser_conn *c, struct iser_in *in)
{
	const struct dm_control ctl = {
		.pdu = in->pdu, .bhs = in->bhs, .ahs = in->ahs, .data = in->data
	};
	struct dm_task *t = NULL;
	int err = c->face->up->control_notify(c->face, &ctl, &t);

	if (err)
		dmiser_die(c, err, "the iSCSI layer gave up");
}

/* Returns true when the receive was kept. */
static bool deliver(struct dmiser_conn *c, struct iser_in *in)
{
	if (c->full_feature) {
		c->heard = true;
		dmiser_retire_unexpected(c, &in->pdu);
	}
	switch (in->pdu.op) {
	case ISCSI_SCSI_COMMAND:
		if (c->full_feature && c->face->role == ISCSI_TARGET) {
			dmiser_target_command(c, in);
			return false;
		}
		break;
	case ISCSI_DATA_OUT:
		if (c->full_feature && c->face->role == ISCSI_TARGET) {
			dmiser_target_data_out(c, in);
			return false;
		}
		break;
	case ISCSI_SCSI_RESPONSE:
		if (c->full_feature && c->face->role == ISCSI_INITIATOR)
			return dmiser_initiator_response(c, in);
		break;
	case ISCSI_DATA_IN:
	case ISCSI_R2T:
		/* §7.2: data-type PDUs are never sent as such */
		dmiser_die(c, ERR_PROTOCOL,
			   "a data-type PDU in a Send (RFC 7145 §7.2)");
		return false;
	default:
		break;
	}
	plain_pdu(c, in);
	return false;
}

/* §10.1.4.4: what is no PDU to the iSCSI layer is its to reject. */
static void report(struct dmiser_conn *c, const struct iser_in *in, int err)
{
	if (!c->full_feature) {
		dmiser_die(c, err, "not an iSCSI PDU (RFC 7143 §11)");
		return;
	}
	c->face->up->error_notify(c->face, &in->pdu, in->bhs, err);
}

static bool take(struct dmiser_conn *c, struct rcap_recv *r)
{
	struct iser_in in = { .recv = r };
	int err = iser_header_decode(&in.h, rcap_recv_bytes(r), r->len);

	if (err) {
		dmiser_die(c, err, "malformed iSER header (RFC 7145 §9.1)");
		return false;
	}
	if (in.h.opcode != ISER_CONTROL || c->hello == HELLO_AWAIT) {
		dmiser_hello(c, &in.h, r->len);
		return false;
	}
	c->stats.rx_pdus++;
	err = open_pdu(c, &in);
	if (!err && r->invalidated && in.pdu.op != ISCSI_SCSI_RESPONSE) {
		dmiser_die(c, ERR_PROTOCOL,
			   "a PDU that ends no command invalidated an STag "
			   "(RFC 7145 §7.3.2)");
		return false;
	}
	if (err == ERR_TRUNCATED || err == ERR_TOO_LONG) {
		dmiser_die(c, err,
			   "a Send whose length is not what its PDU says "
			   "(RFC 7145 §9.2)");
		return false;
	}
	if (!err && iscsi_opcode_from_initiator(in.pdu.op) !=
			    (c->face->role == ISCSI_TARGET))
		err = ERR_PROTOCOL;
	/* RFC 7143 §4.2.4; a target's role has an answer to give */
	if (!err && !c->full_feature && c->face->role == ISCSI_INITIATOR &&
	    in.pdu.op != ISCSI_LOGIN_RESPONSE)
		err = ERR_PROTOCOL;
	if (err) {
		report(c, &in, err);
		return false;
	}
	return deliver(c, &in);
}

static void received(struct dmiser_conn *c, struct rcap_recv *r)
{
	if (c->dead)
		return;
	/* nothing new once the connection is on its way out */
	if (c->face->state >= DM_TERMINATING || !take(c, r))
		dmiser_repost(c, r);
}

/* A message may overtake the word that the connection is established; nothing
 * can be answered before. */
void dmiser_received(void *arg, struct rcap_recv *r, int err)
{
	struct dmiser_conn *c = arg;

	if (err)
		return;
	if (c->established)
		received(c, r);
	else
		list_push_back(&c->early, &r->link);
}

void dmiser_take_early(struct dmiser_conn *c)
{
	struct list *n;

	while ((n = list_pop_front(&c->early)))
		received(c, list_entry(n, struct rcap_recv, link));
}
