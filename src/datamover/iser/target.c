/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * target.c: commands in, responses out, Get_Data by RDMA Read within iSER-ORD (RFC
 * 7145 §7.3, §8.2, §9.5).
 */
#include <stdlib.h>
#include <string.h>

#include "datamover/iser/internal.h"
#include "iscsi/bhs_codec.h"

static void report_completion(struct dmiser_conn *c, struct dm_task *t,
			      enum dm_completion what, int err)
{
	c->dm->up->data_completion_notify(c->dm, t, what, err);
}

/* ---- commands ---- */

struct dm_remote dmiser_remote(const struct iser_header *h)
{
	return (struct dm_remote){
		.wsv = h->wsv,
		.rsv = h->rsv,
		.write_stag = h->write_stag,
		.read_stag = h->read_stag,
		.write_base = h->write_base,
		.read_base = h->read_base,
	};
}

/* [RFC 7145: 7.3.1 #16] */
void dmiser_bind_task(const struct dmiser_conn *c, struct dm_task *t)
{
	struct target_task *tt = &iser_task(t)->t;

	if (tt->bound || !c->current)
		return;
	tt->bound = true;
	tt->remote = dmiser_remote(c->current);
}

/* Copies unsolicited data to the task's buffer. */
static void place_data(struct dmiser_conn *c, struct dm_task *t, uint32_t off,
		       const uint8_t *data, uint32_t len)
{
	c->stats.copied += bufv_copy_in(&t->out, off, data, len);
	t->out_done += len;
	c->bytes_in += len;
}

/* [RFC 7145: 9.5.1 #6] */
static void finish_unsolicited(struct dmiser_conn *c, struct dm_task *t)
{
	struct target_task *tt = &iser_task(t)->t;
	int err = tt->data_err;

	tt->unsolicited = false;
	tt->unsolicited_len = tt->unsol_off;
	tt->data_err = 0;
	report_completion(c, t, DM_UNSOLICITED, err);
}

/* last: no Data-Out follows. If the immediate data are all of the data, they stay in
 * the receive until the role has executed the command. */
static void take_immediate(struct dmiser_conn *c, struct dm_task *t,
			   const struct iser_in *in, bool last)
{
	uint32_t len = in->ctl.pdu.dsl;

	if (!t->may_peek || !last || len != t->out.len) {
		place_data(c, t, 0, in->data, len);
		return;
	}
	t->peek = in->data;
	t->out_done += len;
	c->bytes_in += len;
}

static void begin_write(struct dmiser_conn *c, struct dm_task *t,
			const struct iser_in *in)
{
	struct target_task *tt = &iser_task(t)->t;
	bool last = in->ctl.pdu.final || c->params.initial_r2t;

	tt->unsolicited = true;
	tt->unsol_off = t->immediate = in->ctl.pdu.dsl;
	tt->data_err = dm_check_unsolicited(&c->params, &in->ctl.pdu);
	if (!tt->data_err && in->ctl.pdu.dsl)
		take_immediate(c, t, in, last);
	if (last)
		finish_unsolicited(c, t);
}

/* [RFC 7145: 9.5.1 #4, 9.5.2 #4] */
void dmiser_target_command(struct dmiser_conn *c, struct iser_in *in)
{
	struct dm_task *t = NULL;
	int err;

	/* the EDTL of a bidirectional command is that of the data to write */
	if (in->ctl.pdu.cmd.read && !in->ctl.pdu.cmd.write &&
	    in->ctl.pdu.cmd.edtl && !in->h.rsv) {
		/* §10.1.3.3: fields that contradict each other */
		dmiser_fail_conn(c, ERR_FORMAT,
				 "read command without a Read STag (RFC 7145 "
				 "§7.3.1)");
		return;
	}
	c->current = &in->h;
	err = c->dm->up->control_notify(c->dm, &in->ctl, &t);
	if (err) {
		c->current = NULL;
		dmiser_fail_conn(c, err, "PDU refused by the iSCSI layer");
		return;
	}
	if (t)
		dmiser_bind_task(c, t);
	c->current = NULL;
	if (t && in->ctl.pdu.cmd.write)
		begin_write(c, t, in);
}

static void report_bad_data_out(struct dmiser_conn *c, const struct iser_in *in,
				int err)
{
	c->dm->up->error_notify(c->dm, &in->ctl.pdu, in->ctl.bhs, err);
}

/* A Data-Out of no open sequence. t: the task with its tag, or NULL. */
static void stray_data_out(struct dmiser_conn *c, const struct iser_in *in,
			   struct dm_task *t)
{
	int err = dm_stray_check(&c->strays, &in->ctl.pdu);

	/* RFC 7143 §11.4.7.2: unexpected unsolicited data */
	if (t && iser_task(t)->t.getting)
		iser_task(t)->t.data_err = ERR_PROTOCOL;
	if (err)
		report_bad_data_out(c, in, err);
}

/* Whether d follows the Data-Out before it, within FirstBurstLength (RFC 7143
 * §11.7.5, §11.7.6, §13.14). */
static bool is_next_data_out(const struct dmiser_conn *c,
			     const struct dm_task *t,
			     const struct target_task *tt,
			     const struct iscsi_pdu *p)
{
	return p->data.datasn == tt->unsol_datasn &&
	       p->data.offset == tt->unsol_off &&
	       range_ok(p->data.offset, p->dsl,
			MIN(c->params.first_burst_length, t->edtl));
}

/* [RFC 7145: 7.3.4 #3] */
void dmiser_target_data_out(struct dmiser_conn *c, struct iser_in *in)
{
	struct dm_task *t;
	struct target_task *tt;

	if (in->ctl.pdu.ttt != ISCSI_RESERVED_TAG) {
		/* §7.3.4: RDMA Read transfers solicited data */
		dmiser_fail_conn(c, ERR_PROTOCOL,
				 "solicited Data-Out (RFC 7145 §7.3.4)");
		return;
	}
	t = c->dm->up->find_task(c->dm, in->ctl.pdu.itt);
	tt = t ? &iser_task(t)->t : NULL;
	if (!t || !tt->unsolicited) {
		stray_data_out(c, in, t);
		return;
	}
	if (!tt->data_err && !is_next_data_out(c, t, tt, &in->ctl.pdu)) {
		tt->data_err = ERR_SEQUENCE;
		report_bad_data_out(c, in, ERR_RANGE);
	}
	tt->unsol_datasn++;
	tt->unsol_off += in->ctl.pdu.dsl;
	if (!tt->data_err)
		place_data(c, t, in->ctl.pdu.data.offset, in->data,
			   in->ctl.pdu.dsl);
	if (in->ctl.pdu.final)
		finish_unsolicited(c, t);
}

/* ---- SCSI Response ---- */

/* §7.3.2: invalidates the Read STag or, without one, the Write STag. Neither is
 * used again. */
/* [RFC 7145: 7.3.2 #6 #8-9] */
static void add_invalidate(const struct dmiser_conn *c, struct target_task *tt,
			   struct iser_msg *m)
{
	struct dm_remote *r = &tt->remote;

	if (c->send_inv && (r->rsv || r->wsv)) {
		m->wr.flags |= RCAP_INVALIDATE;
		m->wr.stag = r->rsv ? r->read_stag : r->write_stag;
	}
	r->rsv = r->wsv = false;
}

static const struct iser_header plain = { .opcode = ISER_CONTROL };

static struct iser_msg *response_msg(struct dmiser_conn *c,
				     const struct iscsi_pdu *pdu)
{
	struct iser_msg *m = dmiser_msg_short(c, &plain);

	if (!m)
		return NULL;
	iscsi_scsi_response_encode(pdu, dmiser_msg_bhs(m));
	dm_trace_pdu(c->dm, true, dmiser_msg_bhs(m));
	return m;
}

/* [RFC 7145: 7.3.2 #1 #4-5 #7] */
int dmiser_send_response(struct dmiser_conn *c, struct dm_task *t,
			 const struct iscsi_pdu *pdu, const uint8_t *data,
			 struct rcap_wr *first)
{
	struct iser_msg *m;

	dmiser_bind_task(c, t);
	m = pdu->dsl ? dmiser_msg_pdu(c, &plain, pdu, NULL, data)
		     : response_msg(c, pdu);
	if (!m)
		return ERR_NOMEM;
	m->kind = MSG_RESPONSE;
	m->task = t;
	add_invalidate(c, &iser_task(t)->t, m);
	if (c->dm->retains)
		dmiser_retain(c, t, pdu->statsn);
	return dmiser_send(c, first, m);
}

/* ---- Get_Data ---- */

int dmiser_need_reads(struct dmiser_conn *c)
{
	if (!c->free_reads.all)
		c->free_reads.all =
			malloc(c->cfg.ord * sizeof(c->free_reads.all[0]));
	return c->free_reads.all ? 0 : ERR_NOMEM;
}

void dmiser_reads_free(struct dmiser_conn *c)
{
	free(c->free_reads.all);
	c->free_reads.all = NULL;
	c->free_reads.fresh = 0;
	list_init(&c->free_reads.list);
}

/* The tagged offset of byte off of the command's write data at the initiator:
 * see TaggedBufferForSolicitedDataOnly, §6.9. */
/* [RFC 7145: 7.3.6 #14] */
static uint64_t remote_offset(const struct dmiser_conn *c,
			      const struct target_task *tt, uint32_t off)
{
	return tt->remote.write_base + off -
	       (dmiser_solicited_only(c) ? tt->unsolicited_len : 0);
}

/* There are as many as Reads may be in progress. */
struct iser_read *dmiser_read_new(struct dmiser_conn *c, struct dm_task *t)
{
	struct list *n = list_pop_front(&c->free_reads.list);
	struct iser_read *r;

	assert(c->reads_out < c->ord);
	if (n) {
		r = list_entry(n, struct iser_read, link);
	} else {
		r = &c->free_reads.all[c->free_reads.fresh++];
		list_init(&r->link);
	}
	r->task = t;
	c->reads_out++;
	iser_task(t)->busy++;
	return r;
}

void dmiser_read_free(struct dmiser_conn *c, struct iser_read *r)
{
	list_push_back(&c->free_reads.list, &r->link);
	c->reads_out--;
	iser_task(r->task)->busy--;
}

/* Posts one RDMA Read, at most as long as one R2T allows (§7.3.6). */
/* [RFC 7145: 7.3.6 #4 #7 #12-13] */
static void read_some(struct dmiser_conn *c, struct dm_task *t)
{
	struct target_task *tt = &iser_task(t)->t;
	uint32_t len =
		MIN(tt->get_end - tt->get_next, c->params.max_burst_length);
	struct iser_read *r = dmiser_read_new(c, t);
	struct rcap_wr *wr = &r->wr;
	unsigned n;

	if (c->qp->read_best)
		len = MIN(len, c->qp->read_best);
	len = (uint32_t)bufv_slice(&t->out, tt->get_next, len, r->iov,
				   READ_PIECES, &n);
	*wr = (struct rcap_wr){ .op = RCAP_READ,
				.data = { r->iov, n, len },
				.stag = tt->remote.write_stag,
				.to = remote_offset(c, tt, tt->get_next),
				.tag = WR_READ };
	r->len = len;
	tt->get_next += len;
	tt->reads++;
	c->stats.rdma_reads++;
	c->stats.read_bytes += len;
	if (rcap_post(c->qp, &wr, 1)) /* the connection ends */
		dmiser_read_free(c, r);
}

/* One per command in turn (§8.2). */
/* [RFC 7145: 7.3.6 #8, 8.2 #1] */
void dmiser_read_more(struct dmiser_conn *c)
{
	while (!list_empty(&c->getq) && c->reads_out < c->ord && !c->ended) {
		struct target_task *tt =
			list_entry(c->getq.next, struct target_task, get_link);
		struct dm_task *t = dm_task_of_share(
			container_of(tt, struct dmiser_task, t));

		list_del(&tt->get_link);
		read_some(c, t);
		if (tt->get_next < tt->get_end)
			list_push_back(&c->getq, &tt->get_link);
	}
}

/* [RFC 7145: 7.3.6 #5-6] */
static bool may_get(struct dmiser_conn *c, const struct target_task *tt)
{
	if (!tt->remote.wsv)
		dmiser_fail_conn(c, ERR_FORMAT,
				 "write command without a Write STag for its "
				 "solicited data (RFC 7145 §9.2)");
	else if (c->ord == 0)
		dmiser_fail_conn(
			c, ERR_LIMIT,
			"solicited data are not possible: iSER-ORD is 0 "
			"(RFC 7145 §7.3.6)");
	return !c->ended;
}

int dmiser_get_data(struct dm_conn *dm, struct dm_task *t, uint32_t offset,
		    uint32_t len)
{
	struct dmiser_conn *c = dm->impl;
	struct target_task *tt = &iser_task(t)->t;
	int err;

	dmiser_bind_task(c, t);
	if (tt->getting)
		return ERR_BUSY;
	if (!range_ok(offset, len, t->out.len))
		return ERR_RANGE;
	if (!may_get(c, tt))
		return 0; /* Connection_Terminate_Notify follows */
	err = dmiser_need_reads(c);
	if (err)
		return err;
	tt->getting = true;
	tt->get_next = offset;
	tt->get_end = offset + len;
	tt->reads = 0;
	list_init(&tt->get_link);
	list_push_back(&c->getq, &tt->get_link);
	dmiser_read_more(c);
	return 0;
}

/* [RFC 7145: 7.3.6 #15-16] [RFC 5047: 10.2.2.1 #1] */
void dmiser_read_done(struct dmiser_conn *c, struct iser_read *r, int err)
{
	struct dm_task *t = r->task;
	struct target_task *tt = &iser_task(t)->t;
	uint32_t len = r->len;

	dmiser_read_free(c, r);
	tt->reads--;
	if (err)
		return;
	t->out_done += len;
	c->bytes_in += len;
	if (tt->getting && tt->reads == 0 && tt->get_next == tt->get_end) {
		int data_err = tt->data_err;

		tt->getting = false;
		tt->data_err = 0;
		report_completion(c, t, DM_GET, data_err);
	} else {
		dmiser_report_released(c, t);
	}
	dmiser_read_more(c);
}

/* [RFC 7145: 8.3.2 #5-6] */
void dmiser_get_abort(struct dmiser_conn *c, struct dm_task *t)
{
	struct target_task *tt = &iser_task(t)->t;

	if (tt->unsolicited)
		dm_stray_aborted(&c->strays, t->itt, ISCSI_RESERVED_TAG);
	tt->unsolicited = false;
	if (!tt->getting)
		return;
	tt->getting = false;
	list_del(&tt->get_link);
	tt->get_end = tt->get_next;
}
