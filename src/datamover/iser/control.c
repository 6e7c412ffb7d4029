/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * control.c: Send_Control: the numbers and limits of control-type PDUs, and the
 * unexpected PDUs that are outstanding (RFC 7145 §8.1).
 */
#include <string.h>

#include "datamover/iser/internal.h"

/* §8.1.1.3, §8.1.2: whether the peer does not expect this PDU. */
static bool is_unexpected(const struct dmiser_conn *c,
			  const struct iscsi_pdu *p)
{
	if (c->dm->role == ISCSI_INITIATOR) /* the answer to a ping is */
		return p->immediate && !(p->op == ISCSI_NOP_OUT &&
					 p->ttt != ISCSI_RESERVED_TAG);
	return p->op == ISCSI_ASYNC_MESSAGE || p->op == ISCSI_REJECT ||
	       (p->op == ISCSI_NOP_IN && p->itt == ISCSI_RESERVED_TAG);
}

/* [RFC 7145: 8.1.1.3 #1, 8.1.2 #1] */
static int count_unexpected(struct dmiser_conn *c, const struct iscsi_pdu *p)
{
	uint32_t most = c->params.max_outstanding_unexpected_pdus;
	bool target = c->dm->role == ISCSI_TARGET;

	if (!c->full_feature || !is_unexpected(c, p))
		return 0;
	if (target && !c->has_received && has_rule(c, DMISER_QUIET_START) &&
	    !iscsi_params_declared(&c->params,
				   ISCSI_K_MAX_OUTSTANDING_UNEXPECTED_PDUS))
		return ERR_BUSY;
	if (!target && most == 0) /* §6.7: any number is allowed */
		return 0;
	most = most ? MIN(most, (uint32_t)UNEXPECTED_MAX) : UNEXPECTED_MAX;
	if (c->unexpected.n >= most)
		return ERR_BUSY;
	c->unexpected.pdu[c->unexpected.n].sn = target ? p->statsn : p->cmdsn;
	c->unexpected.pdu[c->unexpected.n].ttt =
		p->op == ISCSI_NOP_IN ? p->ttt : ISCSI_RESERVED_TAG;
	c->unexpected.n++;
	return 0;
}

void dmiser_retire_unexpected(struct dmiser_conn *c,
			      const struct iscsi_pdu *pdu)
{
	bool target = c->dm->role == ISCSI_TARGET;
	uint32_t expected = target ? pdu->expstatsn : pdu->expcmdsn;
	/* §8.1.2 c: the answer to a ping acknowledges the ping */
	bool pong = target && pdu->op == ISCSI_NOP_OUT &&
		    pdu->itt == ISCSI_RESERVED_TAG &&
		    pdu->ttt != ISCSI_RESERVED_TAG;
	unsigned left = 0;

	for (unsigned i = 0; i < c->unexpected.n; i++)
		if (!sn_lt(c->unexpected.pdu[i].sn, expected) &&
		    !(pong && c->unexpected.pdu[i].ttt == pdu->ttt))
			c->unexpected.pdu[left++] = c->unexpected.pdu[i];
	c->unexpected.n = left;
}

static uint32_t data_limit(const struct dmiser_conn *c)
{
	uint32_t most = c->params.max_send_dsl;

	if (!c->full_feature)
		return LOGIN_DSL;
	if (c->dm->max_control_data)
		most = MIN(most, c->dm->max_control_data);
	return most;
}

/* The peer's MaxAHSLength (§6.8); 0 stands for any length. */
static uint32_t max_ahs(const struct dmiser_conn *c)
{
	uint32_t most = c->params.max_ahs_length;

	return most ? most : ISCSI_MAX_AHS_LEN;
}

/* Truncates sense data to what the peer accepts, and adapts SenseLength (RFC
 * 7143 §11.4.7). */
static void cut_sense(const struct dmiser_conn *c, struct dm_control *ctl,
		      uint8_t *copy)
{
	uint32_t most = data_limit(c);

	if (ctl->pdu.op != ISCSI_SCSI_RESPONSE || ctl->pdu.dsl <= most)
		return;
	memcpy(copy, ctl->data, most);
	put_be16(copy, (uint16_t)(most - 2));
	ctl->data = copy;
	ctl->pdu.dsl = most;
}

/* [RFC 7145: 5.2.1 #1, 5.2.2 #2, 7.3 #1, 7.3.3 #1, 7.3.7 #1-2, 7.3.8 #1-2,
 * 7.3.10 #1, 7.3.12 #1-2, 7.3.13 #1-2] */
int dmiser_send_control(struct dm_conn *dm, struct dm_task *t,
			const struct dm_control *ctl)
{
	static const struct iser_header plain = { .opcode = ISER_CONTROL };
	struct dmiser_conn *c = dm->impl;
	struct dm_control k = *ctl;
	uint8_t sense[LOGIN_DSL];
	struct iser_msg *m;
	int err;

	if (k.pdu.ahs_len > max_ahs(c))
		return ERR_TOO_LONG;
	if (t && k.pdu.op == ISCSI_SCSI_COMMAND) {
		err = count_unexpected(c, &k.pdu);
		return err ? err : dmiser_send_command(c, t, ctl);
	}
	dm_set_numbers(c->dm, &k.pdu);
	if (data_limit(c) <= sizeof(sense))
		cut_sense(c, &k, sense);
	if (k.pdu.dsl > data_limit(c))
		return ERR_TOO_LONG;
	err = count_unexpected(c, &k.pdu);
	if (err)
		return err;
	if (k.reassigned)
		return dmiser_send_reassign(c, &k);
	if (t)
		return dmiser_send_response(c, t, &k.pdu, k.data, NULL);
	m = dmiser_msg_pdu(c, &plain, &k.pdu, k.ahs, k.data);
	if (!m)
		return ERR_NOMEM;
	if (k.pdu.op == ISCSI_LOGOUT_RESPONSE) {
		m->kind = MSG_LOGOUT;
		c->end.logouts++;
	}
	return dmiser_send(c, NULL, m);
}
