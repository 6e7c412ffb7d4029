/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rx_initiator.c: Data-In and R2T at the initiator. The role sees neither; it sees
 * the status in a Data-In as a SCSI Response.
 */
#include "datamover/tcp/internal.h"

/* ---- Data-In ---- */

/* The task of this PDU; NULL: unknown, or its response was received. */
static struct dm_task *open_task(struct dmtcp_conn *c)
{
	struct dm_task *t = c->dm.up->find_task(&c->dm, c->rx.pdu.itt);

	return t && !tcp_task(t)->i.late ? t : NULL;
}

/* §7.2.2: the target goes on where it was on another connection. */
/* [RFC 7143: 7.2.2 #2] */
static bool is_first_of_moved(struct dm_task *t)
{
	return t->moved && tcp_task(t)->i.next_datasn == 0;
}

static bool is_in_order(const struct dmtcp_conn *c)
{
	return c->params.data_pdu_in_order && c->params.data_sequence_in_order;
}

/* §13.18, §13.19: no byte comes twice, and PDUs of a sequence may have an order
 * where sequences have none. Over a gap of DataSN only the bytes count. */
static int check_any_order(const struct dmtcp_conn *c, struct dm_task *t)
{
	const struct iscsi_pdu *p = &c->rx.pdu;
	const struct initiator_task *it = &tcp_task(t)->i;

	if (!p->dsl || c->recovery.on)
		return 0;
	if (p->data.offset < t->in_done ||
	    dmtcp_order_has(it->in_islands, p->data.offset,
			    p->data.offset + p->dsl))
		return ERR_SEQUENCE;
	if (c->params.data_pdu_in_order && it->in_sequence &&
	    p->data.offset != it->in_next)
		return ERR_SEQUENCE;
	return 0;
}

/* Where the Data-In after the last one begins. Of a moved task later bytes may be there already. */
static uint32_t next_offset(const struct dmtcp_conn *c, struct dm_task *t)
{
	return c->recovery.on ? tcp_task(t)->i.in_next : t->in_done;
}

/* Whether the Data-In brings just the bytes after those that came, as while nothing is lost. */
static bool is_next_of_all(const struct iscsi_data *d, const struct dm_task *t,
			   const struct initiator_task *it)
{
	return !it->in_islands && d->offset == t->in_done &&
	       d->offset >= it->in_next;
}

/* ErrorRecoveryLevel 1, for PDUs that are not copies: over a gap of DataSN a PDU must
 * not bring bytes again that came, or a target that counts its PDUs wrongly overwrites
 * them. */
static int check_overlap(const struct dmtcp_conn *c, struct dm_task *t)
{
	const struct iscsi_data *d = &c->rx.pdu.data;
	const struct initiator_task *it = &tcp_task(t)->i;
	bool is_next = d->datasn == it->next_datasn;

	if (is_next_of_all(d, t, it))
		return 0;
	if (is_in_order(c) && is_next && d->offset < it->in_next)
		return ERR_SEQUENCE;
	if (it->in_again)
		return 0;
	return d->offset < t->in_done ||
			       dmtcp_order_has(it->in_islands, d->offset,
					       d->offset + c->rx.pdu.dsl)
		       ? ERR_SEQUENCE
		       : 0;
}

/* §7.9: a missing number is a lost PDU. The number of an empty Data-In is not
 * checked, because some targets send status in one with an arbitrary number. */
static int check_data_in(const struct dmtcp_conn *c, struct dm_task *t)
{
	const struct iscsi_pdu *p = &c->rx.pdu;
	const struct initiator_task *it = &tcp_task(t)->i;
	bool in_order = is_in_order(c);

	if (p->dsl && p->data.datasn != it->next_datasn && !c->recovery.on)
		return ERR_SEQUENCE;
	if (!range_ok(p->data.offset, p->dsl, t->in.len))
		return ERR_RANGE; /* outside of the buffer */
	/* §11.7.6: increasing offsets, no overlap */
	if (p->dsl && in_order && p->data.datasn == it->next_datasn &&
	    !is_first_of_moved(t) && p->data.offset != next_offset(c, t) &&
	    !dmtcp_repair_is_missing(c, t))
		return ERR_SEQUENCE;
	if (p->data.status_present && !p->final)
		return ERR_FORMAT; /* §11.7.3 */
	if (!in_order)
		return check_any_order(c, t);
	if (p->dsl && is_first_of_moved(t) && p->data.datasn <= t->acked &&
	    p->data.offset > t->in_done)
		return ERR_SEQUENCE; /* bytes that were not acknowledged */
	return 0;
}

/* The numbers of a moved task go on where the target begins: at the latest at the
 * first Data-In that is not acknowledged. */
static void begin_moved(const struct dmtcp_conn *c, struct dm_task *t)
{
	const struct iscsi_data *d = &c->rx.pdu.data;
	struct initiator_task *it = &tcp_task(t)->i;

	if (!c->rx.pdu.dsl || !is_first_of_moved(t))
		return;
	it->next_datasn = it->data_ins = MIN(d->datasn, t->acked);
	it->in_again = true;
	if (d->datasn > t->acked)
		return; /* those before it are lost */
	if (is_in_order(c)) {
		t->in_done = d->offset;
		it->in_again = false;
	}
}

/* ErrorRecoveryLevel 1, §7.9: asks for the PDUs before sn that are missing. Returns
 * whether sn is new; a copy of a PDU that came is discarded. */
/* [RFC 7143: 7.9 #1 #5, 11.16.2 #3] */
static bool expects_datasn(struct dmtcp_conn *c, struct dm_task *t, uint32_t sn)
{
	struct initiator_task *it = &tcp_task(t)->i;

	if (sn < it->next_datasn)
		return dmtcp_repair_is_gap(c, t, sn);
	if (sn > it->next_datasn) {
		dmtcp_repair_lost(c, t, it->next_datasn, sn);
		it->data_ins += sn - it->next_datasn;
		it->next_datasn = sn;
	}
	return true;
}

static void data_in_header(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;
	struct dm_task *t = open_task(c);
	int err;

	if (!t)
		return;
	err = check_data_in(c, t);
	if (err) {
		dmtcp_fail_conn(c, err);
		return;
	}
	begin_moved(c, t);
	if (c->recovery.on && r->pdu.dsl) {
		if (!expects_datasn(c, t, r->pdu.data.datasn))
			return; /* a copy */
		err = check_overlap(c, t);
	}
	if (err) {
		dmtcp_fail_conn(c, err);
		return;
	}
	if (r->pdu.data.datasn == tcp_task(t)->i.next_datasn) {
		tcp_task(t)->i.next_datasn++;
		tcp_task(t)->i.data_ins++;
	}
	r->task = t;
	r->at = r->pdu.data.offset;
}

/* Makes a SCSI Response of the status in a Data-In. */
/* [RFC 7143: 11.7 #1] */
static void finish_by_data_in(struct dmtcp_conn *c, struct dm_task *t)
{
	const struct iscsi_pdu *p = &c->rx.pdu;
	struct dm_control ctl;

	dm_control_clear(&ctl);
	ctl.pdu.op = ISCSI_SCSI_RESPONSE;
	ctl.pdu.final = true;
	ctl.pdu.itt = p->itt;
	ctl.pdu.ttt = ISCSI_RESERVED_TAG;
	ctl.pdu.statsn = p->statsn;
	ctl.pdu.expcmdsn = p->expcmdsn;
	ctl.pdu.maxcmdsn = p->maxcmdsn;
	ctl.pdu.rsp.status = p->data.status;
	ctl.pdu.rsp.resid_flags = p->data.resid_flags;
	ctl.pdu.rsp.resid = p->data.resid;
	ctl.pdu.rsp.exp_datasn = t ? tcp_task(t)->i.data_ins : 0;
	dmtcp_answer(c, t, &ctl);
}

/* §13.19: sequences with rising offsets leave no hole at their ends. */
static void take_any_order(struct dmtcp_conn *c, struct dm_task *t)
{
	const struct iscsi_pdu *p = &c->rx.pdu;
	struct initiator_task *it = &tcp_task(t)->i;
	uint32_t fresh, end = p->data.offset + p->dsl;
	int err = dmtcp_order_add(c, &it->in_islands, &t->in_done,
				  p->data.offset, end, &fresh);

	it->in_sequence = !p->final;
	it->in_next = end;
	if (!err && p->final && it->in_islands && !c->recovery.on &&
	    c->params.data_sequence_in_order)
		err = ERR_SEQUENCE;
	if (err)
		dmtcp_fail_conn(c, err);
}

/* §11.7.6: the data after a gap are an island. A PDU that came for the gap may be
 * shorter than the gap: then bytes are missing, whatever DataSN says. */
static void take_in_order(struct dmtcp_conn *c, struct dm_task *t)
{
	const struct iscsi_pdu *p = &c->rx.pdu;
	struct initiator_task *it = &tcp_task(t)->i;
	uint32_t fresh, end = p->data.offset + p->dsl;
	int err;

	if (p->dsl && is_next_of_all(&p->data, t, it)) {
		t->in_done = it->in_next = end;
		return;
	}
	err = dmtcp_order_add(c, &it->in_islands, &t->in_done, p->data.offset,
			      end, &fresh);
	if (p->dsl)
		it->in_next = MAX(it->in_next, end);
	if (err)
		dmtcp_fail_conn(c, err);
}

/* ErrorRecoveryLevel 1: the data of t that came end the gap of this PDU. */
static void take_data(struct dmtcp_conn *c, struct dm_task *t)
{
	const struct iscsi_pdu *p = &c->rx.pdu;

	dmtcp_repair_came(c, t, p->data.datasn);
	if (p->data.ack)
		dmtcp_repair_ack(c, t, p->ttt, p->lun);
	dmtcp_repair_received(c, t);
	if (is_in_order(c))
		take_in_order(c, t);
	else
		take_any_order(c, t);
}

/* [RFC 7143: 11.7.2 #3] */
static void data_in_complete(struct dmtcp_conn *c)
{
	struct dm_task *t = c->rx.task;

	if (t && c->recovery.on)
		take_data(c, t);
	else if (t && is_in_order(c))
		t->in_done += c->rx.pdu.dsl;
	else if (t)
		take_any_order(c, t);
	if (c->fate != STREAM_GO)
		return;
	if (c->rx.pdu.data.status_present)
		finish_by_data_in(c, t);
	else if (!t)
		c->stats.dropped++; /* a copy, or its task was aborted */
	else
		dmtcp_answers_go_on(c); /* the status of t may wait */
}

/* ---- R2T ---- */

/* NULL: all bursts are in use, or R2Ts wait for one. */
static struct burst *free_burst(const struct dmtcp_conn *c, struct dm_task *t)
{
	unsigned most = MIN(c->params.max_outstanding_r2t, MAX_R2T);

	if (tcp_task(t)->i.queue)
		return NULL;
	dmtcp_bursts_begin(tcp_task(t));
	for (unsigned i = 0; i < most; i++)
		if (!tcp_task(t)->bursts[i].active)
			return &tcp_task(t)->bursts[i];
	return NULL;
}

/* ErrorRecoveryLevel 1: the target asks again for bytes of a burst whose data it has
 * waited for in vain (§7.1.4.1). The rest of that burst would be discarded. */
static struct burst *superseded(const struct dmtcp_conn *c, struct dm_task *t)
{
	const struct iscsi_r2t *r = &c->rx.pdu.r2t;
	unsigned n = c->recovery.on ? dmtcp_nbursts(&c->dm, tcp_task(t)) : 0;

	for (unsigned i = 0; i < n; i++) {
		struct burst *b = &tcp_task(t)->bursts[i];

		if (b->active && b->off < r->offset + r->ddtl &&
		    r->offset < b->end)
			return b;
	}
	return NULL;
}

/* §13.17: as many R2Ts as were negotiated are outstanding. While R2Ts wait, all bursts
 * are in use. */
static bool has_all_r2ts(const struct dmtcp_conn *c, struct dm_task *t)
{
	return !free_burst(c, t) &&
	       MAX_R2T + dmtcp_queue_len(tcp_task(t)->i.queue) >=
		       c->params.max_outstanding_r2t;
}

/* ErrorRecoveryLevel 1, §11.8: a Recovery R2T asks for data that were asked for
 * before. A target may do so as often as it is willing to receive damaged data, but
 * not without end. */
/* [RFC 7143: 7.9 #5] */
static int check_repeated(const struct dmtcp_conn *c, struct dm_task *t)
{
	struct initiator_task *it = &tcp_task(t)->i;
	size_t most = 64 + 16 * (t->out.len / c->params.max_burst_length);

	if (c->rx.pdu.r2t.offset < it->requested)
		it->again++;
	return it->again > MIN(most, (size_t)UINT16_MAX - 1) ? ERR_LIMIT : 0;
}

/* §11.8, ErrorRecoveryLevel 0: the range follows the ones before it, or (§13.19)
 * overlaps with none of them. */
static bool is_next_range(const struct dmtcp_conn *c, struct dm_task *t)
{
	const struct iscsi_r2t *r = &c->rx.pdu.r2t;
	const struct initiator_task *it = &tcp_task(t)->i;
	bool is_first = t->r2ts == 0;

	if (c->params.data_sequence_in_order)
		return is_first ? r->offset <= it->requested
				: r->offset == it->requested;
	return (is_first || r->offset >= it->requested) &&
	       !dmtcp_order_has(it->asked, r->offset, r->offset + r->ddtl);
}

/* [RFC 7143: 4.2.5.3 #1-2, 11.8 #9] */
static int check_r2t(const struct dmtcp_conn *c, struct dm_task *t)
{
	const struct iscsi_pdu *p = &c->rx.pdu;

	/* §11.8.4, §11.8.5: not empty, inside of the buffer, one burst */
	if (p->r2t.ddtl == 0 || p->r2t.ddtl > c->params.max_burst_length ||
	    !range_ok(p->r2t.offset, p->r2t.ddtl, t->out.len) ||
	    p->ttt == ISCSI_RESERVED_TAG)
		return ERR_RANGE;
	if (p->lun != t->lun)
		return ERR_PROTOCOL; /* §4.2.5.3 */
	if (has_all_r2ts(c, t) && !superseded(c, t))
		return ERR_LIMIT;
	if (is_first_of_moved(t))
		return 0;
	if (c->recovery.on)
		return check_repeated(c, t);
	/* §11.8: contiguous ranges without overlap. The first R2T may request
	 * unsolicited data again; ErrorRecoveryLevel 0 has no Recovery-R2T. */
	if (!is_next_range(c, t))
		return ERR_SEQUENCE;
	return p->r2t.r2tsn == tcp_task(t)->i.next_datasn ? 0 : ERR_SEQUENCE;
}

static int note_r2t(struct dmtcp_conn *c, struct dm_task *t, uint32_t *fresh)
{
	const struct iscsi_pdu *p = &c->rx.pdu;
	struct initiator_task *it = &tcp_task(t)->i;
	uint32_t end = p->r2t.offset + p->r2t.ddtl;

	if (p->r2t.r2tsn == it->next_datasn || is_first_of_moved(t))
		it->next_datasn = t->r2ts = p->r2t.r2tsn + 1;
	else
		dmtcp_repair_came(c, t, p->r2t.r2tsn);
	if (c->params.data_sequence_in_order) {
		it->requested = MAX(it->requested, end);
		return 0;
	}
	return dmtcp_order_add(c, &it->asked, &it->requested, p->r2t.offset,
			       end, fresh);
}

/* The R2T gets a burst, or waits for one. */
static int place_r2t(struct dmtcp_conn *c, struct dm_task *t, uint32_t fresh)
{
	const struct iscsi_pdu *p = &c->rx.pdu;
	struct burst *old = superseded(c, t);
	struct burst *b = old ? old : free_burst(c, t);
	const struct dmtcp_r2t r = { .ttt = p->ttt,
				     .sn = p->r2t.r2tsn,
				     .off = p->r2t.offset,
				     .end = p->r2t.offset + p->r2t.ddtl,
				     .fresh =
					     old ? fresh + old->fresh : fresh };

	if (!b)
		return dmtcp_queue_push(c, &tcp_task(t)->i.queue, &r);
	dmtcp_burst_begin(b, &r);
	return 0;
}

/* [RFC 7143: 4.2.3.3 #2, 4.2.5.2 #3, 11.5.1 #4] */
static void take_r2t(struct dmtcp_conn *c)
{
	const struct iscsi_pdu *p = &c->rx.pdu;
	struct dm_task *t = open_task(c);
	uint32_t fresh = 0;
	int err;

	if (!t || (c->recovery.on && !is_first_of_moved(t) &&
		   !expects_datasn(c, t, p->r2t.r2tsn))) {
		c->stats.dropped++;
		return;
	}
	err = check_r2t(c, t);
	if (!err)
		err = note_r2t(c, t, &fresh);
	if (!err)
		err = place_r2t(c, t, fresh);
	if (err) {
		dmtcp_fail_conn(c, err);
		return;
	}
	c->stats.r2ts++;
	if (!tcp_task(t)->i.data_queued && !tcp_task(t)->i.command_pending) {
		tcp_task(t)->i.data_queued = true;
		list_push_back(&c->dataq, &tcp_task(t)->node.link);
	}
	dmtcp_kick(c);
}

/* ---- SCSI Response ---- */

/* The response of a moved task came first. Its data were all acknowledged, or all came
 * before the task moved; or those that were to come again are lost, too. */
static void begin_moved_by_response(struct dm_task *t,
				    const struct iscsi_scsi_response *r)
{
	struct initiator_task *it = &tcp_task(t)->i;
	bool is_short = r->resid_flags & ISCSI_RESID_UNDERFLOW;
	size_t due = t->in.len - MIN(t->in.len, is_short ? r->resid : 0);

	/* the numbers of a bidirectional command are those of R2Ts, too */
	it->data_ins =
		t->in_done < due && !t->bidi_edtl ? t->acked : r->exp_datasn;
	it->next_datasn = it->data_ins;
}

/* The PDU that was received, with its data. */
static struct dm_control received(const struct rx *r)
{
	return (struct dm_control){ .pdu = r->pdu,
				    .bhs = r->bhs,
				    .data = r->pdu.dsl ? r->collect : NULL };
}

/* §7.9: the response counts more Data-Ins than were received. */
static void take_scsi_response(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;
	struct dm_task *t = c->dm.up->find_task(&c->dm, r->pdu.itt);
	const struct dm_control ctl = received(r);

	if (t && t->in.len && is_first_of_moved(t))
		begin_moved_by_response(t, &r->pdu.rsp);
	if (t && t->in.len &&
	    sn_lt(tcp_task(t)->i.data_ins, r->pdu.rsp.exp_datasn)) {
		if (!c->recovery.on) {
			dmtcp_fail_conn(c, ERR_SEQUENCE);
			return;
		}
		/* R2Ts of a bidirectional command have DataSNs, too (§11.8.2) */
		expects_datasn(c, t,
			       tcp_task(t)->i.next_datasn +
				       r->pdu.rsp.exp_datasn -
				       tcp_task(t)->i.data_ins);
	}
	dmtcp_answer(c, t, &ctl);
}

/* ---- called by rx.c ---- */

/* [RFC 7143: 11.7.7 #1] */
void dmtcp_initiator_header(struct dmtcp_conn *c)
{
	if (c->rx.pdu.op == ISCSI_DATA_IN)
		data_in_header(c);
}

static void take_numbered(struct dmtcp_conn *c)
{
	const struct dm_control ctl = received(&c->rx);

	dmtcp_answer(c, NULL, &ctl);
}

/* A PDU without a StatSN of its own names the next one (§11.8.3, §11.19.2): so a lost
 * PDU before it is noticed. */
static void take_unnumbered(struct dmtcp_conn *c)
{
	const struct dm_control ctl = received(&c->rx);
	struct dm_task *none = NULL;
	int err = c->dm.up->control_notify(&c->dm, &ctl, &none);

	if (err)
		dmtcp_fail_conn(c, err);
}

/* §11.17: the data are the header that was rejected. */
static void take_reject(struct dmtcp_conn *c)
{
	const struct dm_task *t = NULL;
	struct iscsi_pdu bad;

	if (c->rx.pdu.dsl < ISCSI_BHS_LEN)
		return;
	iscsi_bhs_decode(&bad, c->rx.collect);
	if (bad.op == ISCSI_SNACK_REQUEST)
		t = c->dm.up->find_task(&c->dm, bad.itt);
	if (t)
		dmtcp_repair_rejected(c, t, &bad.snack);
}

void dmtcp_initiator_complete(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;
	uint8_t op = r->pdu.op;

	if (c->recovery.on && op == ISCSI_REJECT)
		take_reject(c);

	if (c->recovery.on && (op == ISCSI_R2T || op == ISCSI_NOP_IN) &&
	    !dmtcp_takes_statsn(&r->pdu))
		dmtcp_repair_statsn(c, r->pdu.statsn, false);
	if (op == ISCSI_DATA_IN)
		data_in_complete(c);
	else if (op == ISCSI_R2T)
		take_r2t(c);
	else if (op == ISCSI_SCSI_RESPONSE)
		take_scsi_response(c);
	else if (dmtcp_takes_statsn(&r->pdu))
		take_numbered(c);
	else
		take_unnumbered(c);
}

/* §7.8: a Data-In is asked for by its DataSN, which brings its status, too. */
/* [RFC 7143: 7.8 #6] */
static void damaged_data_in(struct dmtcp_conn *c, struct dm_task *t)
{
	const struct iscsi_pdu *p = &c->rx.pdu;

	if (p->data.status_present)
		dmtcp_repair_statsn(c, p->statsn, true);
	dmtcp_repair_lost(c, t, p->data.datasn, p->data.datasn + 1);
}

/* [RFC 7143: 7.8 #5 #10-12] */
void dmtcp_initiator_damaged(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;

	if (r->pdu.op == ISCSI_DATA_IN && r->task)
		damaged_data_in(c, r->task);
	else if (dmtcp_takes_statsn(&r->pdu))
		dmtcp_repair_status(c, r->pdu.statsn);
}
