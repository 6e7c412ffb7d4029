/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rx_target.c: write data at the target: immediate, unsolicited, solicited
 * (RFC 7143 §4.2.5.2, §11.7), and the R2Ts that request them (§11.8).
 */
#include <string.h>

#include "datamover/tcp/internal.h"

static void report_completion(struct dmtcp_conn *c, struct dm_task *t,
			      enum dm_completion what, int err)
{
	c->dm.up->data_completion_notify(&c->dm, t, what, err);
}

/* Records err as the error of t's write data unless there is one already. */
static void set_data_err(struct dm_task *t, int err)
{
	if (!tcp_task(t)->t.data_err)
		tcp_task(t)->t.data_err = err;
}

/* ---- Data-Outs that belong to no open sequence ---- */

/* §11.17.1, note 2: the target rejects an invalid TTT or ITT, once per
 * sequence. It drops the data of an aborted task without a Reject, because the
 * initiator may have sent them before it received the abort's response. */
/* [RFC 7143: 10.7 #1] */
static void reject_stray(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;

	r->drop_err = dm_stray_check(&c->gets.strays, &r->pdu);
	if (!r->drop_err)
		c->stats.dropped++;
}

/* A Data-Out that does not follow the one before it, or lies outside of its
 * sequence (§11.7), is rejected; the task ends with CHECK CONDITION when its
 * sequences have ended (§7.3). Only the first such PDU is rejected. */
/* [RFC 7143: 7.3 #1, 11.17.1 #4-5] */
static void reject_misplaced(struct rx *r, struct dm_task *t, int err)
{
	if (tcp_task(t)->t.data_err)
		return;
	set_data_err(t, err);
	r->drop_err = ERR_RANGE;
}

/* ---- lost data (ErrorRecoveryLevel 1, §7.8, §7.9) ---- */

/*
 * What a sequence lost is one range, from the first to the last lost byte. When the
 * sequence ends, a Recovery R2T asks for it: so no more R2Ts are outstanding than
 * MaxOutstandingR2T. A range is asked for ROUNDS_MAX times; then the task ends with
 * CHECK CONDITION, as at ErrorRecoveryLevel 0.
 */
#define ROUNDS_MAX 8

static void note_lost(struct lost *l, uint32_t from, uint32_t len)
{
	bool none = l->from == l->to;

	if (len == 0)
		return;
	l->from = none ? from : MIN(l->from, from);
	l->to = none ? from + len : MAX(l->to, from + len);
}

/* The PDU with DataSN d->datasn and offset d->offset follows a gap: those before it,
 * from `off` on, are lost. */
/* [RFC 7143: 7.9 #2] */
static bool skips_lost(const struct dmtcp_conn *c, const struct iscsi_data *d,
		       uint32_t datasn, uint32_t off)
{
	return c->recovery.on && sn_lt(datasn, d->datasn) && d->offset > off;
}

/* The PDU was received, and is damaged. */
static void damaged(const struct dmtcp_conn *c, struct dm_task *t,
		    struct lost *l)
{
	const struct rx *r = &c->rx;

	if (c->recovery.on && r->drop_err == ERR_DATA_DIGEST)
		note_lost(l, r->pdu.data.offset, r->pdu.dsl);
	else
		set_data_err(t, r->drop_err);
}

/* ---- any order (DataPDUInOrder=No, §13.18) ---- */

/* The number of the PDU still follows the one before it (§11.7.5), unless those between
 * them are lost; its bytes are none that came. */
static bool fits_any_order(const struct dmtcp_conn *c,
			   const struct iscsi_pdu *p, uint32_t datasn,
			   uint32_t off, const struct dmtcp_islands *islands)
{
	const struct iscsi_data *d = &p->data;

	if (d->datasn != datasn &&
	    !(c->recovery.on && sn_lt(datasn, d->datasn)))
		return false;
	return p->dsl == 0 ||
	       (d->offset >= off &&
		!dmtcp_order_has(islands, d->offset, d->offset + p->dsl));
}

/* The PDU came; returns how many bytes are new. A damaged one is in `lost`. */
static uint32_t add_any_order(struct dmtcp_conn *c, struct dm_task *t,
			      struct dmtcp_islands **islands, uint32_t *off)
{
	const struct iscsi_pdu *p = &c->rx.pdu;
	uint32_t fresh = 0;
	int err = 0;

	if (!tcp_task(t)->t.data_err)
		err = dmtcp_order_add(c, islands, off, p->data.offset,
				      p->data.offset + p->dsl, &fresh);
	if (err)
		set_data_err(t, err);
	return fresh;
}

/* The sequence [*off, end) has ended: its holes are lost (§7.9). Returns the bytes in
 * them. */
static uint32_t lose_holes(struct dmtcp_conn *c, struct lost *lost,
			   struct dmtcp_islands **islands, uint32_t *off,
			   uint32_t end)
{
	uint32_t last, missing = dmtcp_order_holes(*islands, *off, end, &last);

	note_lost(lost, *off, last - *off);
	dmtcp_order_free(c, islands);
	*off = end;
	return missing;
}

/* ---- unsolicited ---- */

static void get_lost(struct dmtcp_conn *c, struct dm_task *t);

/* Under DataPDUInOrder=No the sequence is as long as its last byte says. */
static void end_any_order(struct dmtcp_conn *c, struct dm_task *t)
{
	struct target_task *tt = &tcp_task(t)->t;
	uint32_t end = dmtcp_order_end(tt->order.unsolicited, tt->unsol_off);

	if (!c->recovery.on)
		set_data_err(t, ERR_SEQUENCE);
	t->out_done += lose_holes(c, &tt->await.lost, &tt->order.unsolicited,
				  &tt->unsol_off, end);
}

static void unsolicited_over(struct dmtcp_conn *c, struct dm_task *t)
{
	struct target_task *tt = &tcp_task(t)->t;
	int err;

	if (tt->order.unsolicited)
		end_any_order(c, t);
	err = tt->data_err;
	tt->unsol = UNSOL_NONE;
	dmtcp_await_no_more(t);
	if (!err && tt->await.lost.from != tt->await.lost.to) {
		get_lost(c, t);
		return;
	}
	tt->data_err = 0;
	report_completion(c, t, DM_UNSOLICITED, err);
}

/* [RFC 7143: 13.11 #2-3] */
static void command_header(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;
	const struct dm_control ctl = {
		.pdu = r->pdu,
		.bhs = r->bhs,
		.ahs = r->pdu.ahs_len ? r->ahs : NULL,
	};
	struct dm_task *t = NULL;
	struct target_task *tt;
	int err = c->dm.up->control_notify(&c->dm, &ctl, &t);

	if (err) {
		dmtcp_fail_conn(c, err);
		return;
	}
	if (!t || !r->pdu.cmd.write)
		return; /* no task, or a read: its data are discarded */
	tt = &tcp_task(t)->t;
	tt->unsol = UNSOL_OPEN;
	tt->unsol_off = r->pdu.dsl;
	tt->data_err = dm_check_unsolicited(&c->params, &r->pdu);
	r->task = t;
	r->at = 0;
}

static void command_complete(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;
	struct dm_task *t = r->task;

	if (!t)
		return; /* no task, or aborted meanwhile */
	t->out_done += r->pdu.dsl;
	if (r->drop_err)
		set_data_err(t, r->drop_err);
	/* under InitialR2T=Yes nothing follows, even without the F bit */
	if (r->pdu.final || c->params.initial_r2t)
		unsolicited_over(c, t);
	else
		dmtcp_await(c, t);
}

static void skip_unsolicited(struct dm_task *t, const struct iscsi_data *d)
{
	struct target_task *tt = &tcp_task(t)->t;
	uint32_t len = d->offset - tt->unsol_off;

	note_lost(&tt->await.lost, tt->unsol_off, len);
	t->out_done += len; /* no Get_Data of the role asks for it */
	tt->unsol_datasn = d->datasn;
	tt->unsol_off = d->offset;
}

static void check_any_unsolicited(struct dmtcp_conn *c, struct dm_task *t)
{
	struct target_task *tt = &tcp_task(t)->t;
	struct rx *r = &c->rx;

	if (fits_any_order(c, &r->pdu, tt->unsol_datasn, tt->unsol_off,
			   tt->order.unsolicited))
		tt->unsol_datasn = r->pdu.data.datasn;
	else
		reject_misplaced(r, t, ERR_SEQUENCE);
}

/* [RFC 7143: 11.8 #1, 13.11 #2] */
static void unsolicited_header(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;
	struct dm_task *t = c->dm.up->find_task(&c->dm, r->pdu.itt);
	struct target_task *tt = t ? &tcp_task(t)->t : NULL;

	if (!t || tt->unsol != UNSOL_OPEN) {
		reject_stray(c);
		/* §11.4.7.2: unexpected unsolicited data */
		if (t && tt->getting && r->drop_err)
			set_data_err(t, ERR_PROTOCOL);
		return;
	}
	if (!range_ok(r->pdu.data.offset, r->pdu.dsl,
		      MIN(c->params.first_burst_length, t->edtl)))
		reject_misplaced(r, t, ERR_SEQUENCE);
	else if (!c->params.data_pdu_in_order)
		check_any_unsolicited(c, t);
	else if (skips_lost(c, &r->pdu.data, tt->unsol_datasn, tt->unsol_off))
		skip_unsolicited(t, &r->pdu.data);
	else if (r->pdu.data.datasn != tt->unsol_datasn ||
		 r->pdu.data.offset != tt->unsol_off)
		reject_misplaced(r, t, ERR_SEQUENCE);
	tt->unsol_datasn++;
	if (c->params.data_pdu_in_order)
		tt->unsol_off += r->pdu.dsl;
	r->task = tt->data_err ? NULL : t;
	r->at = r->pdu.data.offset;
}

static void unsolicited_complete(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;
	struct dm_task *t = c->dm.up->find_task(&c->dm, r->pdu.itt);

	if (!t || tcp_task(t)->t.unsol != UNSOL_OPEN)
		return;
	if (r->drop_err)
		damaged(c, t, &tcp_task(t)->t.await.lost);
	t->out_done +=
		c->params.data_pdu_in_order
			? r->pdu.dsl
			: add_any_order(c, t, &tcp_task(t)->t.order.unsolicited,
					&tcp_task(t)->t.unsol_off);
	dmtcp_await_came(c, t);
	if (!r->pdu.final)
		return;
	dmtcp_await_ended(c, t);
	unsolicited_over(c, t);
}

/* ---- solicited ---- */

/*
 * A Target Transfer Tag has a slot of dmtcp_conn.gets in its low 16 bits and
 * above it a salt that changes with each R2T, so that a stale or invented tag
 * leads to no task. Bit 31 is 0, so no tag is the reserved 0xffffffff.
 */
/* [RFC 7143: 11.8.5 #1] */
static uint32_t next_ttt(struct dmtcp_conn *c, uint16_t slot)
{
	c->gets.salt = (c->gets.salt + 1) & 0x7fff;
	return c->gets.salt << 16 | slot;
}

static struct dm_task *task_by_ttt(const struct dmtcp_conn *c, uint32_t ttt,
				   struct burst **burst)
{
	uint32_t slot = ttt & 0xffff;
	struct dm_task *t = slot < c->gets.n ? c->gets.task[slot] : NULL;

	for (unsigned i = 0; t && i < dmtcp_nbursts(&c->dm, tcp_task(t)); i++) {
		struct burst *b = dmtcp_burst(tcp_task(t), i);

		if (b->active && !b->announce && b->ttt == ttt) {
			*burst = b;
			return t;
		}
	}
	return NULL;
}

/* The bytes of b were sent before. */
static bool is_again(struct dm_task *t, const struct burst *b)
{
	return b->rounds > 0 || tcp_task(t)->t.unsol_again;
}

/* The bytes of b up to `end` did not come, and count as received once. */
static void lose_rest(struct dm_task *t, struct burst *b, uint32_t end)
{
	note_lost(&b->lost, b->off, end - b->off);
	if (!is_again(t, b))
		t->out_done += end - b->off;
	b->off = end;
}

/* [RFC 7143: 7.3 #4] */
static void skip_solicited(struct dm_task *t, struct burst *b,
			   const struct iscsi_data *d)
{
	lose_rest(t, b, d->offset);
	b->datasn = d->datasn;
}

static void check_any_solicited(struct dmtcp_conn *c, struct dm_task *t,
				struct burst *b)
{
	struct rx *r = &c->rx;

	if (fits_any_order(c, &r->pdu, b->datasn, b->off, b->islands))
		b->datasn = r->pdu.data.datasn;
	else
		reject_misplaced(r, t, ERR_SEQUENCE);
}

/* [RFC 7143: 4.2.5.3 #1, 11.8 #4] */
static void solicited_header(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;
	const struct iscsi_data *d = &r->pdu.data;
	struct burst *b;
	struct dm_task *t = task_by_ttt(c, r->pdu.ttt, &b);

	if (!t || t->itt != r->pdu.itt) {
		reject_stray(c);
		return;
	}
	r->burst = b;
	r->task = t;
	r->at = d->offset;
	/* §11.7.5: DataSN counts the PDUs of a sequence */
	if (!range_ok(d->offset, r->pdu.dsl, b->end))
		reject_misplaced(r, t, ERR_SEQUENCE);
	else if (!c->params.data_pdu_in_order)
		check_any_solicited(c, t, b);
	else if (skips_lost(c, d, b->datasn, b->off))
		skip_solicited(t, b, d);
	else if (d->datasn != b->datasn || d->offset != b->off)
		reject_misplaced(r, t, ERR_SEQUENCE);
	b->datasn++;
	if (t->lun != r->pdu.lun) /* §4.2.5.3: consistent with the command */
		reject_misplaced(r, t, ERR_PROTOCOL);
	if (tcp_task(t)->t.data_err) {
		/* no more data are placed, but the bursts run to their ends */
		r->at = (uint32_t)t->out.len;
	}
}

/* [RFC 7143: 11.4.2 #1] */
static void finish_get(struct dmtcp_conn *c, struct dm_task *t)
{
	int err = tcp_task(t)->t.data_err;
	bool unsolicited = tcp_task(t)->t.unsol_again;

	dmtcp_get_forget(c, t);
	tcp_task(t)->t.data_err = 0;
	tcp_task(t)->t.unsol_again = false;
	report_completion(c, t, unsolicited ? DM_UNSOLICITED : DM_GET, err);
}

static bool bursts_active(const struct dmtcp_conn *c, struct dm_task *t)
{
	struct dmtcp_task *p = tcp_task(t);

	for (unsigned i = 0; i < dmtcp_nbursts(&c->dm, p); i++)
		if (dmtcp_burst(p, i)->active)
			return true;
	return false;
}

/* Requests as many bursts as MaxOutstandingR2T allows (§13.17). */
/* [RFC 7143: 11.8 #9, 11.8.4 #1-2, 13.19 #1] */
static void fill_bursts(struct dmtcp_conn *c, struct dm_task *t)
{
	struct target_task *tt = &tcp_task(t)->t;
	unsigned most = MIN(c->params.max_outstanding_r2t,
			    dmtcp_nbursts(&c->dm, tcp_task(t)));

	for (unsigned i = 0; i < most && tt->get_next < tt->get_end; i++) {
		struct burst *b = dmtcp_burst(tcp_task(t), i);
		uint32_t len = MIN(c->params.max_burst_length,
				   tt->get_end - tt->get_next);

		if (b->active)
			continue;
		*b = (struct burst){ .ttt = next_ttt(c, tt->slot),
				     .sn = tt->r2tsn++,
				     .start = tt->get_next,
				     .off = tt->get_next,
				     .end = tt->get_next + len,
				     .active = true,
				     .announce = true };
		tt->get_next += len;
		if (!list_linked(&tt->r2t_link))
			list_push_back(&c->r2tq, &tt->r2t_link);
	}
	dmtcp_kick(c);
}

/* The sequence b has ended and lost data: its place is that of a Recovery R2T, which
 * has the next R2TSN (§11.8). False: none was lost, or too often. */
/* [RFC 7143: 7.8 #3] */
static bool recover_burst(struct dmtcp_conn *c, struct dm_task *t,
			  struct burst *b)
{
	struct target_task *tt = &tcp_task(t)->t;

	if (b->lost.from == b->lost.to || tt->data_err)
		return false;
	if (b->rounds == ROUNDS_MAX) {
		set_data_err(t, ERR_DATA_DIGEST);
		return false;
	}
	*b = (struct burst){ .ttt = next_ttt(c, tt->slot),
			     .sn = tt->r2tsn++,
			     .start = b->lost.from,
			     .off = b->lost.from,
			     .end = b->lost.to,
			     .active = true,
			     .announce = true,
			     .rounds = (uint8_t)(b->rounds + 1) };
	if (!list_linked(&tt->r2t_link))
		list_push_back(&c->r2tq, &tt->r2t_link);
	dmtcp_kick(c);
	return true;
}

static void lose_any_order(struct dmtcp_conn *c, struct dm_task *t,
			   struct burst *b)
{
	uint32_t missing =
		lose_holes(c, &b->lost, &b->islands, &b->off, b->end);

	if (!is_again(t, b))
		t->out_done += missing;
}

/* §11.7.1: the last PDU of the sequence, and no other, has the F bit. */
/* [RFC 7143: 11.8 #5] */
static void check_final(struct dmtcp_conn *c, struct dm_task *t,
			struct burst *b)
{
	bool final = c->rx.pdu.final;

	if (final && b->off < b->end && b->islands && c->recovery.on)
		lose_any_order(c, t, b);
	else if (final && b->off < b->end && c->recovery.on)
		lose_rest(t, b, b->end); /* §7.9 */
	else if (final != (b->off == b->end))
		set_data_err(t, ERR_SEQUENCE);
}

/* Each byte counts once. */
static void take_solicited(struct dmtcp_conn *c, struct dm_task *t,
			   struct burst *b)
{
	uint32_t len = c->rx.pdu.dsl;

	if (!c->params.data_pdu_in_order && !tcp_task(t)->t.data_err)
		len = add_any_order(c, t, &b->islands, &b->off);
	else
		b->off += len;
	if (!is_again(t, b))
		t->out_done += len;
}

/* The sequence has ended. False: a Recovery R2T has taken its place. */
static bool end_burst(struct dmtcp_conn *c, struct dm_task *t, struct burst *b)
{
	struct target_task *tt = &tcp_task(t)->t;

	if (b->islands) /* an error ended the sequence */
		dmtcp_order_free(c, &b->islands);
	if (recover_burst(c, t, b))
		return false;
	b->active = false;
	if (tt->data_err)
		tt->get_next = tt->get_end;
	return true;
}

static void solicited_complete(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;
	struct dm_task *t = r->task;
	struct burst *b = r->burst;

	if (!t)
		return;
	dmtcp_await_came(c, t);
	if (r->drop_err)
		damaged(c, t, &b->lost);
	take_solicited(c, t, b);
	check_final(c, t, b);
	if (!r->pdu.final && b->off < b->end)
		return;
	dmtcp_await_ended(c, t);
	if (!end_burst(c, t, b))
		return;
	fill_bursts(c, t);
	if (!bursts_active(c, t))
		finish_get(c, t);
}

/* ---- data that do not come (§7.1.4.1; await.c) ---- */

/* The unsolicited data end where the initiator was to end them. Data that come later
 * are discarded. */
static void expire_unsolicited(struct dmtcp_conn *c, struct dm_task *t)
{
	struct target_task *tt = &tcp_task(t)->t;
	uint32_t end = MIN(c->params.first_burst_length, t->edtl);

	dm_stray_aborted(&c->gets.strays, t->itt, ISCSI_RESERVED_TAG);
	if (tt->order.unsolicited)
		end_any_order(c, t);
	if (tt->unsol_off < end) {
		note_lost(&tt->await.lost, tt->unsol_off, end - tt->unsol_off);
		t->out_done += end - tt->unsol_off;
		tt->unsol_off = end;
	}
	unsolicited_over(c, t);
}

/* A sequence whose R2T was sent ends without the rest of its data. */
static void expire_burst(struct dmtcp_conn *c, struct dm_task *t,
			 struct burst *b)
{
	dm_stray_aborted(&c->gets.strays, t->itt, b->ttt);
	if (b->islands)
		lose_any_order(c, t, b);
	else
		lose_rest(t, b, b->end);
	end_burst(c, t, b);
}

static void expire_task(struct dmtcp_conn *c, struct dm_task *t)
{
	struct dmtcp_task *p = tcp_task(t);

	c->stats.timeouts++;
	dmtcp_await(c, t);
	if (p->t.unsol == UNSOL_OPEN) {
		expire_unsolicited(c, t);
		return;
	}
	for (unsigned i = 0; i < dmtcp_nbursts(&c->dm, p); i++) {
		struct burst *b = dmtcp_burst(p, i);

		if (b->active && !b->announce)
			expire_burst(c, t, b);
	}
	fill_bursts(c, t);
	if (!bursts_active(c, t))
		finish_get(c, t);
}

/* [RFC 7143: 7.8 #3] */
void dmtcp_target_expire(struct dmtcp_conn *c)
{
	struct dm_task *t;

	if (!dmtcp_await_tick(c))
		return;
	while (c->fate == STREAM_GO && (t = dmtcp_await_overdue(c)))
		expire_task(c, t);
}

/* ---- called by rx.c and conn.c ---- */

/* [RFC 7143: 11.7.7 #1] */
void dmtcp_target_header(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;

	if (r->pdu.op == ISCSI_SCSI_COMMAND)
		command_header(c);
	else if (r->pdu.ttt == ISCSI_RESERVED_TAG)
		unsolicited_header(c);
	else
		solicited_header(c);
	/* payload beyond the task's buffer is discarded */
	if (r->task && r->at >= r->task->out.len && r->pdu.dsl)
		r->at = (uint32_t)r->task->out.len;
}

void dmtcp_target_complete(struct dmtcp_conn *c)
{
	if (c->rx.pdu.op == ISCSI_SCSI_COMMAND)
		command_complete(c);
	else if (c->rx.pdu.ttt == ISCSI_RESERVED_TAG)
		unsolicited_complete(c);
	else
		solicited_complete(c);
}

/* Makes room for as many R2Ts as the range needs; without memory there are fewer at
 * once. At ErrorRecoveryLevel 2 the bursts outlive the connection (adopt.c). */
static void add_bursts(struct dmtcp_conn *c, struct dm_task *t, uint32_t len)
{
	unsigned most = MIN(c->params.max_outstanding_r2t, TARGET_R2TS);
	uint32_t need = 1 + (len - 1) / c->params.max_burst_length;

	if (MIN(need, most) > MAX_R2T && c->params.error_recovery_level < 2)
		tcp_task(t)->t.order.more =
			dmtcp_bursts_new(c, MIN(need, most) - MAX_R2T);
}

static int begin_get(struct dmtcp_conn *c, struct dm_task *t, uint32_t offset,
		     uint32_t len)
{
	struct target_task *tt = &tcp_task(t)->t;

	if (c->gets.first_free == c->gets.n)
		return ERR_BUSY;
	dmtcp_bursts_begin(tcp_task(t));
	tt->slot = (uint16_t)c->gets.first_free;
	c->gets.first_free = c->gets.next_free[tt->slot];
	c->gets.task[tt->slot] = t;
	tt->getting = true;
	tt->get_next = offset;
	tt->get_end = offset + len;
	list_init(&tt->r2t_link);
	dmtcp_await(c, t);
	if (c->params.max_outstanding_r2t > MAX_R2T)
		add_bursts(c, t, len);
	fill_bursts(c, t);
	return 0;
}

int dmtcp_get_data(struct dm_conn *dm, struct dm_task *t, uint32_t offset,
		   uint32_t len)
{
	return begin_get(dm->impl, t, offset, len);
}

/* Asks for unsolicited data that were lost, before the role hears that all are
 * there. */
/* [RFC 7143: 7.8 #3] */
static void get_lost(struct dmtcp_conn *c, struct dm_task *t)
{
	struct target_task *tt = &tcp_task(t)->t;
	const struct lost l = tt->await.lost;
	int err = begin_get(c, t, l.from, l.to - l.from);

	tt->await.lost = (struct lost){ 0 };
	tt->unsol_again = !err;
	if (!err)
		return;
	report_completion(c, t, DM_UNSOLICITED, ERR_DATA_DIGEST);
}

void dmtcp_get_abort(struct dmtcp_conn *c, struct dm_task *t)
{
	struct dmtcp_task *p = tcp_task(t);

	dmtcp_await_no_more(t);
	if (p->t.unsol == UNSOL_OPEN)
		dm_stray_aborted(&c->gets.strays, t->itt, ISCSI_RESERVED_TAG);
	for (unsigned i = 0; i < dmtcp_nbursts(&c->dm, p); i++) {
		const struct burst *b = dmtcp_burst(p, i);

		if (b->active && !b->announce)
			dm_stray_aborted(&c->gets.strays, t->itt, b->ttt);
	}
	if (p->t.order.unsolicited)
		dmtcp_order_free(c, &p->t.order.unsolicited);
	dmtcp_get_forget(c, t);
}

void dmtcp_get_forget(struct dmtcp_conn *c, struct dm_task *t)
{
	struct target_task *tt = &tcp_task(t)->t;

	if (!tt->getting)
		return;
	tt->getting = false;
	dmtcp_await_no_more(t);
	list_del(&tt->r2t_link);
	c->gets.task[tt->slot] = NULL;
	c->gets.next_free[tt->slot] = (uint16_t)c->gets.first_free;
	c->gets.first_free = tt->slot;
	for (unsigned i = 0; i < dmtcp_nbursts(&c->dm, tcp_task(t)); i++)
		dmtcp_order_free(c, &dmtcp_burst(tcp_task(t), i)->islands);
	dmtcp_bursts_free(c, &tt->order.more);
	tcp_task(t)->has_bursts = false;
}
