/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tx_initiator.c: SCSI Command PDUs with their immediate data, and Data-Outs,
 * unsolicited and solicited (RFC 7143 §4.2.5.2).
 */
#include <string.h>

#include "datamover/tcp/stage.h"
#include "iscsi/bhs_codec.h"

/* Decides how much data t sends immediately and unsolicited. */
/* [RFC 7143: 4.2.5.2 #1-2, 11.3.4 #3, 11.7.1 #2, 11.8 #1, 13.11 #1 #3,
 * 13.12 #1] */
static void plan_unsolicited(const struct dmtcp_conn *c, struct dm_task *t)
{
	const struct iscsi_params *k = &c->params;
	struct initiator_task *it = &tcp_task(t)->i;
	uint32_t len = (uint32_t)MIN(t->out.len, (size_t)t->edtl);
	uint32_t burst = MIN(len, k->first_burst_length);

	it->immediate =
		k->immediate_data ? dmtcp_pdu_len(burst, c->max_send_dsl) : 0;
	it->unsol_off = it->immediate;
	it->unsol_end = k->initial_r2t ? it->immediate : burst;
	it->requested = it->unsol_end;
}

/* [RFC 7143: 11.3.1 #1, 11.3.4 #2] */
int dmtcp_send_command(struct dmtcp_conn *c, struct dm_task *t,
		       const struct dm_control *ctl)
{
	struct dmtcp_task *p = tcp_task(t);
	struct iscsi_pdu pdu = ctl->pdu;

	c->resting = false;
	if (pdu.ahs_len > sizeof(p->i.ahs) || t->out.n > MAX_PIECES)
		return ERR_TOO_LONG;
	if (pdu.cmd.write)
		plan_unsolicited(c, t);
	/* §11.3.1: the F bit: no unsolicited Data-Out follows */
	pdu.final = p->i.unsol_end == p->i.immediate;
	pdu.dsl = p->i.immediate;
	if (pdu.ahs_len)
		memcpy(p->i.ahs, ctl->ahs, pdu.ahs_len);
	p->i.ahs_len = pdu.ahs_len;
	iscsi_scsi_command_encode(&pdu, p->i.bhs);
	p->i.command_pending = true;
	p->node.kind = TX_TASK;
	list_push_back(&c->txq, &p->node.link);
	dmtcp_kick(c);
	return 0;
}

/* §7.2.1: the original tag, CmdSN and attributes; then all unsolicited data. */
#define RETRIES_MAX 8

/* [RFC 7143: 7.2.1 #1-3] */
int dmtcp_retry(struct dm_conn *dm, struct dm_task *t)
{
	struct dmtcp_conn *c = dm->impl;
	struct dmtcp_task *p = tcp_task(t);

	if (p->i.command_pending)
		return 0;
	if (!c->recovery.on)
		return ERR_UNSUPPORTED;
	if (p->i.retries == RETRIES_MAX)
		return ERR_LIMIT;
	p->i.retries++;
	list_del(&p->node.link);
	p->i.data_queued = false;
	p->i.unsol_off = p->i.immediate;
	p->i.unsol_datasn = 0;
	p->i.command_pending = true;
	list_push_back(&c->txq, &p->node.link);
	dmtcp_kick(c);
	return 0;
}

bool dmtcp_is_sending(const struct dm_conn *dm, struct dm_task *t)
{
	const struct dmtcp_task *p = tcp_task(t);

	(void)dm;
	return p->i.command_pending || p->i.data_queued || p->staged > 0;
}

static bool has_data_out(const struct dmtcp_task *p)
{
	if (p->i.unsol_off < p->i.unsol_end)
		return true;
	for (unsigned i = 0; p->has_bursts && i < MAX_R2T; i++)
		if (p->bursts[i].active)
			return true;
	return false;
}

/* [RFC 7143: 4.2.3.4 #2] */
void dmtcp_stop_data(struct dm_conn *dm, struct dm_task *t, bool stop)
{
	struct dmtcp_conn *c = dm->impl;
	struct dmtcp_task *p = tcp_task(t);

	p->i.stopped = stop;
	if (stop || p->i.command_pending || p->i.data_queued ||
	    !has_data_out(p))
		return;
	p->i.data_queued = true;
	list_push_back(&c->dataq, &p->node.link);
	dmtcp_kick(c);
}

/* [RFC 7143: 4.2.5.2 #5] */
bool dmtcp_stage_command(struct dmtcp_conn *c, struct dm_task *t)
{
	struct dmtcp_task *p = tcp_task(t);
	struct stage_pdu *s;

	if (!dmtcp_stage_has_room(c, &t->out, 0))
		return false;
	put_be32(p->i.bhs + 28, c->dm.numbers->expstatsn); /* §11.3.6 */
	memcpy(dmtcp_stage_bhs(c), p->i.bhs, ISCSI_BHS_LEN);
	s = dmtcp_stage_pdu(c, p->i.ahs, p->i.ahs_len, &t->out, 0,
			    p->i.immediate, false);
	dmtcp_stage_task(s, t);
	t->out_done = p->i.immediate;
	list_del(&p->node.link);
	p->i.command_pending = false;
	if (has_data_out(p)) {
		p->i.data_queued = true;
		list_push_back(&c->dataq, &p->node.link);
	}
	return true;
}

/* Stages one Data-Out of [off, end) and returns its length. */
/* [RFC 7143: 4.2.2.4 #1, 4.2.5.1 #3, 11.7.1 #1, 11.7.4 #2, 11.8 #2-4 #6-7,
 * 13.12 #1] */
static uint32_t stage_one(struct dmtcp_conn *c, struct dm_task *t, uint32_t ttt,
			  uint32_t *datasn, uint32_t off, uint32_t end)
{
	uint32_t len = dmtcp_pdu_len(end - off, c->max_send_dsl);
	struct iscsi_pdu p = {
		.op = ISCSI_DATA_OUT,
		.final = off + len == end,
		.dsl = len,
		.lun = ttt == ISCSI_RESERVED_TAG ? 0 : t->lun, /* §11.7.4 */
		.itt = t->itt,
		.ttt = ttt,
		.expstatsn = c->dm.numbers->expstatsn,
	};

	p.data.datasn = (*datasn)++;
	p.data.offset = off;
	iscsi_bhs_encode(&p, dmtcp_stage_bhs(c));
	dmtcp_stage_task(dmtcp_stage_pdu(c, NULL, 0, &t->out, off, len, false),
			 t);
	/* R2Ts follow each other without gaps (check_r2t), so all bytes before
	 * this PDU are sent, too; else end_burst counts */
	if (c->params.data_sequence_in_order || ttt == ISCSI_RESERVED_TAG)
		t->out_done = MAX(t->out_done, off + len);
	return len;
}

/* The burst with the lowest R2TSN. */
/* [RFC 7143: 11.8 #8] */
static struct burst *next_burst(struct dmtcp_task *p)
{
	struct burst *first = NULL;

	for (unsigned i = 0; p->has_bursts && i < MAX_R2T; i++) {
		struct burst *b = &p->bursts[i];

		if (b->active && (!first || sn_lt(b->sn, first->sn)))
			first = b;
	}
	return first;
}

/* The data of b are sent; an R2T that waits gets its place. */
static void end_burst(struct dmtcp_conn *c, struct dm_task *t, struct burst *b)
{
	struct dmtcp_r2t r;

	t->out_done += b->fresh; /* 0 if sequences are in order */
	b->active = false;
	if (dmtcp_queue_pop(c, &tcp_task(t)->i.queue, &r))
		dmtcp_burst_begin(b, &r);
}

/* [RFC 7143: 4.2.5.2 #3-4] */
bool dmtcp_stage_data_out(struct dmtcp_conn *c, struct dm_task *t)
{
	struct dmtcp_task *p = tcp_task(t);
	struct burst *b;

	while (!p->i.stopped && p->i.unsol_off < p->i.unsol_end) {
		if (!dmtcp_stage_has_room(c, &t->out, 0))
			return false;
		p->i.unsol_off +=
			stage_one(c, t, ISCSI_RESERVED_TAG, &p->i.unsol_datasn,
				  p->i.unsol_off, p->i.unsol_end);
	}
	while (!p->i.stopped && (b = next_burst(p))) {
		if (!dmtcp_stage_has_room(c, &t->out, 0))
			return false;
		b->off += stage_one(c, t, b->ttt, &b->datasn, b->off, b->end);
		if (b->off == b->end)
			end_burst(c, t, b);
	}
	p->i.data_queued = false;
	list_del(&p->node.link);
	return true;
}
