/* SPDX-License-Identifier: BSD-2-Clause */
/* tx_target.c: Data-In (RFC 7143 §11.7) and R2T (§11.8) PDUs. */
#include <string.h>

#include "datamover/tcp/stage.h"
#include "iscsi/bhs_codec.h"

/* §11.7.3: a Data-In may carry the status if it is not an error and needs no
 * other field of a SCSI Response. */
/* [RFC 7143: 11.7.3 #1-2] */
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

/* No Data-In is left to carry the status. */
static int put_no_data(struct dmtcp_conn *c, struct dm_task *t,
		       const struct iscsi_pdu *response)
{
	if (response)
		return queue_response(c, t, response);
	c->dm.up->data_completion_notify(&c->dm, t, DM_PUT, 0);
	return 0;
}

/* [RFC 7143: 11.7.3 #3] */
int dmtcp_put_data(struct dm_conn *dm, struct dm_task *t,
		   const struct bufv *data, uint32_t offset,
		   const struct iscsi_pdu *response)
{
	struct dmtcp_conn *c = dm->impl;
	struct target_task *tt = &tcp_task(t)->t;

	if (tt->putting)
		return ERR_BUSY;
	/* §11.8.2: R2Ts and Data-Ins of a bidirectional command have one count */
	if (tt->datasn < tt->r2tsn)
		tt->datasn = tt->ack_sn = tt->r2tsn;
	if (data->len == tt->ack_off) /* 0, unless t was adopted */
		return put_no_data(c, t, response);
	if (data->n > MAX_PIECES)
		return ERR_TOO_LONG;
	tt->data = *data;
	tt->data_off = offset;
	tt->data_done = tt->ack_off;
	tt->putting = true;
	/* §11.7.3: not that of a bidirectional command */
	tt->has_status =
		response && !t->bidi_edtl && fits_data_in(&response->rsp);
	tt->quiet = response && !tt->has_status;
	tcp_task(t)->node.kind = TX_TASK;
	list_push_back(&c->txq, &tcp_task(t)->node.link);
	dmtcp_kick(c);
	if (tt->has_status)
		copy_status(tt, response);
	return tt->quiet ? queue_response(c, t, response) : 0;
}

/* The length of the Data-In at byte off: a PDU is limited by
 * MaxRecvDataSegmentLength, a sequence of Data-Ins by MaxBurstLength (§13.13). */
/* [RFC 7143: 11.7.1 #1-2] */
static uint32_t data_in_len(const struct dmtcp_conn *c,
			    const struct target_task *tt, uint32_t off,
			    uint32_t most)
{
	uint32_t burst = c->params.max_burst_length;
	/* most commands have one PDU: without a division */
	uint32_t begun = off < burst ? off : off % burst;
	uint32_t left = MIN((uint32_t)tt->data.len - off, burst - begun);

	return dmtcp_pdu_len(left, most);
}

/* Where a Data-In is in the data of its task. */
struct place {
	uint32_t sn, off, len;
	bool last;
	bool burst_ends; /* and more data follow */
};

/* [RFC 7143: 4.2.2.4 #1, 11.7.2 #1-2, 11.7.3 #4, 11.7.4 #1-2, 11.16 #6] */
static ALWAYS_INLINE void data_in_bhs(struct dmtcp_conn *c, struct dm_task *t,
				      const struct place *at,
				      uint8_t bhs[ISCSI_BHS_LEN])
{
	const struct target_task *tt = &tcp_task(t)->t;
	struct iscsi_pdu p = {
		.op = ISCSI_DATA_IN,
		.final = at->last || at->burst_ends,
		.dsl = at->len,
		.itt = t->itt,
		.ttt = ISCSI_RESERVED_TAG, /* no A bit, no tag (§11.7.4) */
		.expcmdsn = c->dm.numbers->expcmdsn,
		.maxcmdsn = c->dm.numbers->maxcmdsn,
	};

	p.data.datasn = at->sn;
	p.data.offset = tt->data_off + at->off;
	/* §11.7.2: once every MaxBurstLength bytes; the status acknowledges the
	 * last ones. The tag leads a DataACK, which has no ITT, to the task. */
	if (at->burst_ends && c->recovery.on) {
		p.data.ack = true;
		p.ttt = t->itt;
		p.lun = t->lun;
	}
	if (at->last && tt->has_status) {
		p.data.status_present = true;
		p.data.status = tt->status;
		p.data.resid_flags = tt->resid_flags;
		p.data.resid = tt->resid;
		p.statsn = tt->statsn;
	}
	iscsi_data_in_encode(&p, bhs);
}

/* False: the stage is full. */
static ALWAYS_INLINE bool stage_at(struct dmtcp_conn *c, struct dm_task *t,
				   const struct place *at)
{
	const struct bufv *data = &tcp_task(t)->t.data;

	if (!dmtcp_stage_has_room(c, data, at->len))
		return false;
	data_in_bhs(c, t, at, dmtcp_stage_bhs(c));
	dmtcp_stage_task(
		dmtcp_stage_pdu(c, NULL, 0, data, at->off, at->len, true), t);
	return true;
}

uint32_t dmtcp_stage_one_data_in(struct dmtcp_conn *c, struct dm_task *t,
				 uint32_t sn, uint32_t off, uint32_t most)
{
	struct target_task *tt = &tcp_task(t)->t;
	uint32_t len = data_in_len(c, tt, off, most), end = off + len;
	bool last = end == tt->data.len;
	const struct place at = {
		.sn = sn,
		.off = off,
		.len = len,
		.last = last,
		.burst_ends = !last && end % c->params.max_burst_length == 0,
	};

	return stage_at(c, t, &at) ? len : 0;
}

/* The data of most commands fit in one Data-In. */
static bool is_one_pdu(const struct dmtcp_conn *c, const struct target_task *tt,
		       uint32_t most)
{
	return tt->data_done == 0 &&
	       tt->data.len <= MIN(most, c->params.max_burst_length);
}

static bool stage_whole(struct dmtcp_conn *c, struct dm_task *t)
{
	struct target_task *tt = &tcp_task(t)->t;
	const struct place at = { .sn = tt->datasn,
				  .len = (uint32_t)tt->data.len,
				  .last = true };

	if (!stage_at(c, t, &at))
		return false;
	tt->datasn++;
	tt->data_done = at.len;
	return true;
}

/* The last Data-In of t is in the stage. */
static void put_is_staged(struct dmtcp_conn *c, struct dm_task *t)
{
	struct target_task *tt = &tcp_task(t)->t;
	struct stage_pdu *p = &c->stage->pdus[c->stage->npdus - 1];

	p->notify = !tt->quiet;
	p->what = tt->has_status ? DM_RESPONSE_SENT : DM_PUT;
	tt->putting = false;
	list_del(&tcp_task(t)->node.link);
	if (!tt->has_status)
		return;
	c->tx_statsn = tt->statsn + 1;
	if (!c->recovery.on)
		return;
	p->notify = false; /* at the acknowledgement: retain.c */
	list_push_back(&c->recovery.unacked, &tcp_task(t)->node.link);
}

/* [RFC 7143: 13.19 #1] */
bool dmtcp_stage_data_in(struct dmtcp_conn *c, struct dm_task *t)
{
	struct target_task *tt = &tcp_task(t)->t;
	uint32_t most = dmtcp_data_in_most(c);

	if (tt->datasn == tt->ack_sn)
		tt->seg = most;
	tt->mixed |= most != tt->seg;
	if (is_one_pdu(c, tt, most) && !stage_whole(c, t))
		return false;
	while (tt->data_done < tt->data.len) {
		uint32_t len = dmtcp_stage_one_data_in(c, t, tt->datasn,
						       tt->data_done, most);

		if (!len)
			return false;
		tt->datasn++;
		tt->data_done += len;
	}
	put_is_staged(c, t);
	return true;
}

/* The stage has a copy of the header, so an R2T does not keep its task. */
/* [RFC 7143: 4.2.2.4 #1, 11.8.1 #1, 11.16 #4] */
static void stage_r2t(struct dmtcp_conn *c, struct dm_task *t, struct burst *b)
{
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
	p.r2t.offset = b->start;
	p.r2t.ddtl = b->end - b->start;
	iscsi_bhs_encode(&p, dmtcp_stage_bhs(c));
	dmtcp_stage_pdu(c, NULL, 0, NULL, 0, 0, false);
	c->stats.r2ts++;
	b->announce = b->again = false;
}

/* The burst with the lowest R2TSN whose R2T is to be sent: R2Ts are sent in
 * order. */
static struct burst *next_r2t(const struct dmtcp_conn *c, struct dm_task *t)
{
	struct burst *first = NULL;

	for (unsigned i = 0; i < dmtcp_nbursts(&c->dm, tcp_task(t)); i++) {
		struct burst *b = dmtcp_burst(tcp_task(t), i);

		if (b->active && (b->announce || b->again) &&
		    (!first || sn_lt(b->sn, first->sn)))
			first = b;
	}
	return first;
}

bool dmtcp_stage_r2ts(struct dmtcp_conn *c, struct dm_task *t)
{
	struct burst *b;

	while ((b = next_r2t(c, t))) {
		if (!dmtcp_stage_has_room(c, NULL, 0))
			return false;
		stage_r2t(c, t, b);
	}
	list_del(&tcp_task(t)->t.r2t_link);
	return true;
}
