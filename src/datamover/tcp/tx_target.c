/* SPDX-License-Identifier: BSD-2-Clause */
/* tx_target.c: Data-In (RFC 7143 §11.7) and R2T (§11.8) PDUs. */
#include <string.h>

#include "datamover/tcp/internal.h"

/* §11.7.3: a Data-In may carry the status if it is not an error and needs no
 * other field of a SCSI Response. */
static bool fits_data_in(const struct iscsi_scsi_response *r)
{
	bool is_error = r->status != 0x00 && r->status != 0x04 &&
			r->status != 0x10 && r->status != 0x14;

	return !is_error && !r->response && !r->status_qualifier &&
	       !(r->resid_flags &
		 (ISCSI_RESID_BIDI_OVERFLOW | ISCSI_RESID_BIDI_UNDERFLOW));
}

static int queue_response(struct dmtcp_conn *c, struct dm_task *t,
			  const struct iscsi_pdu *response)
{
	struct dm_control ctl = { .pdu = *response };

	ctl.pdu.itt = t->itt;
	ctl.pdu.ttt = ISCSI_RESERVED_TAG;
	ctl.pdu.dsl = 0;
	ctl.pdu.ahs_len = 0;
	return dmtcp_queue_control(c, t, &ctl, false);
}

static void copy_status(struct target_task *tt, const struct iscsi_pdu *p)
{
	tt->status = p->rsp.status;
	tt->resid_flags = p->rsp.resid_flags;
	tt->resid = p->rsp.resid;
	tt->statsn = p->statsn;
}

int dmtcp_put_data(struct dm_conn *dm, struct dm_task *t,
		   const struct bufv *data, uint32_t offset,
		   const struct iscsi_pdu *response)
{
	struct dmtcp_conn *c = dm->impl;
	struct target_task *tt = &tcp_task(t)->t;

	if (tt->putting)
		return ERR_BUSY;
	if (data->len == 0) /* no Data-In to carry the status */
		return queue_response(c, t, response);
	if (data->n > MAX_PIECES)
		return ERR_TOO_LONG;
	tt->data = *data;
	tt->data_off = offset;
	tt->data_done = 0;
	tt->putting = true;
	tt->has_status = response && fits_data_in(&response->rsp);
	tt->quiet = response && !tt->has_status;
	tcp_task(t)->node.kind = TX_TASK;
	list_push_back(&c->txq, &tcp_task(t)->node.link);
	dmtcp_kick(c);
	if (tt->has_status)
		copy_status(tt, response);
	return tt->quiet ? queue_response(c, t, response) : 0;
}

/* The length of the next Data-In: a PDU is limited by MaxRecvDataSegmentLength,
 * a sequence of Data-Ins by MaxBurstLength (§13.13). */
static uint32_t next_len(const struct dmtcp_conn *c,
			 const struct target_task *tt)
{
	uint32_t burst = c->params.max_burst_length;
	uint32_t left = MIN((uint32_t)tt->data.len - tt->data_done,
			    burst - tt->data_done % burst);
	uint32_t most = c->max_send_dsl;

	if (c->tx_digest.data)
		most = MIN(most, DIGEST_COPY_BYTES);
	return dmtcp_pdu_len(left, most);
}

static void data_in_bhs(struct dmtcp_conn *c, struct dm_task *t, uint32_t len,
			bool last, uint8_t bhs[ISCSI_BHS_LEN])
{
	struct target_task *tt = &tcp_task(t)->t;
	uint32_t end = tt->data_done + len;
	struct iscsi_pdu p = {
		.op = ISCSI_DATA_IN,
		.final = last || end % c->params.max_burst_length == 0,
		.dsl = len,
		.itt = t->itt,
		.ttt = ISCSI_RESERVED_TAG, /* no A bit, no tag (§11.7.4) */
		.expcmdsn = c->dm.numbers->expcmdsn,
		.maxcmdsn = c->dm.numbers->maxcmdsn,
	};

	p.data.datasn = tt->datasn++;
	p.data.offset = tt->data_off + tt->data_done;
	if (last && tt->has_status) {
		p.data.status_present = true;
		p.data.status = tt->status;
		p.data.resid_flags = tt->resid_flags;
		p.data.resid = tt->resid;
		p.statsn = tt->statsn;
		c->tx_statsn = tt->statsn + 1;
	}
	iscsi_bhs_encode(&p, bhs);
}

bool dmtcp_stage_data_in(struct dmtcp_conn *c, struct dm_task *t)
{
	struct target_task *tt = &tcp_task(t)->t;

	while (tt->data_done < tt->data.len) {
		uint32_t len = next_len(c, tt);
		bool last = tt->data_done + len == tt->data.len;
		uint8_t bhs[ISCSI_BHS_LEN];
		struct stage_pdu *p;

		if (!dmtcp_stage_has_room(c, &tt->data, len))
			return false;
		data_in_bhs(c, t, len, last, bhs);
		p = dmtcp_stage_pdu(c, bhs, NULL, 0, &tt->data, tt->data_done,
				    len, true);
		dmtcp_stage_task(p, t);
		p->notify = last && !tt->quiet;
		p->what = tt->has_status ? DM_RESPONSE_SENT : DM_PUT;
		tt->data_done += len;
	}
	tt->putting = false;
	list_del(&tcp_task(t)->node.link);
	return true;
}

/* The stage has a copy of the header, so an R2T does not keep its task. */
static void stage_r2t(struct dmtcp_conn *c, struct dm_task *t, struct burst *b)
{
	uint8_t bhs[ISCSI_BHS_LEN];
	struct iscsi_pdu p = {
		.op = ISCSI_R2T,
		.final = true,
		.lun = t->lun,
		.itt = t->itt,
		.ttt = b->ttt,
		.statsn = c->tx_statsn, /* not advanced (§11.8) */
		.expcmdsn = c->dm.numbers->expcmdsn,
		.maxcmdsn = c->dm.numbers->maxcmdsn,
	};

	p.r2t.r2tsn = b->sn;
	p.r2t.offset = b->off;
	p.r2t.ddtl = b->end - b->off;
	iscsi_bhs_encode(&p, bhs);
	dmtcp_stage_pdu(c, bhs, NULL, 0, NULL, 0, 0, false);
	c->stats.r2ts++;
	b->announce = false;
}

/* The burst with the lowest R2TSN whose R2T is to be sent: R2Ts are sent in
 * order. */
static struct burst *next_r2t(struct dm_task *t)
{
	struct burst *first = NULL;

	for (unsigned i = 0; i < MAX_R2T; i++) {
		struct burst *b = &tcp_task(t)->bursts[i];

		if (b->active && b->announce &&
		    (!first || sn_lt(b->sn, first->sn)))
			first = b;
	}
	return first;
}

bool dmtcp_stage_r2ts(struct dmtcp_conn *c, struct dm_task *t)
{
	struct burst *b;

	while ((b = next_r2t(t))) {
		if (!dmtcp_stage_has_room(c, NULL, 0))
			return false;
		stage_r2t(c, t, b);
	}
	list_del(&tcp_task(t)->t.r2t_link);
	return true;
}
