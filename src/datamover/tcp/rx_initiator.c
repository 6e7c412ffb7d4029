/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rx_initiator.c: Data-In, R2T and SCSI Response at the initiator. The role
 * sees SCSI Responses, but neither Data-Ins nor R2Ts.
 */
#include <stdlib.h>
#include <string.h>

#include "datamover/tcp/internal.h"

/* A response that was received while PDUs of its task are in the stage. */
struct dmtcp_late {
	struct list link; /* dmtcp_conn.lates */
	struct iscsi_pdu pdu;
	uint8_t bhs[ISCSI_BHS_LEN];
	bool has_bhs;
	uint8_t data[];
};

/* ---- the end of a task ---- */

static void deliver_response(struct dmtcp_conn *c, struct dm_task *t,
			     const struct iscsi_pdu *pdu, const uint8_t *bhs,
			     const uint8_t *data)
{
	const struct dm_control ctl = {
		.pdu = *pdu,
		.bhs = bhs,
		.data = pdu->dsl ? data : NULL,
	};
	int err = c->dm.up->control_notify(&c->dm, &ctl, &t);

	if (err)
		dmtcp_fail_conn(c, err);
}

static int copy_late(struct dmtcp_conn *c, struct dm_task *t,
		     const struct iscsi_pdu *pdu, const uint8_t *bhs,
		     const uint8_t *data)
{
	struct dmtcp_late *l = malloc(sizeof(*l) + pdu->dsl);

	if (!l)
		return ERR_NOMEM;
	l->pdu = *pdu;
	l->has_bhs = bhs != NULL;
	if (bhs)
		memcpy(l->bhs, bhs, ISCSI_BHS_LEN);
	if (pdu->dsl)
		memcpy(l->data, data, pdu->dsl);
	list_push_back(&c->lates, &l->link);
	tcp_task(t)->i.late = l;
	return 0;
}

/* The response ends t. t is NULL for the status of an unknown task: the role
 * has to acknowledge its StatSN. */
static void finish_task(struct dmtcp_conn *c, struct dm_task *t,
			const struct iscsi_pdu *pdu, const uint8_t *bhs,
			const uint8_t *data)
{
	int err;

	if (!t) {
		c->stats.dropped++;
		deliver_response(c, NULL, pdu, bhs, data);
		return;
	}
	/* t sends no more data; NULL: a moved task, which was never queued */
	if (tcp_task(t)->node.link.next)
		list_del(&tcp_task(t)->node.link);
	tcp_task(t)->i.command_pending = tcp_task(t)->i.data_queued = false;
	if (tcp_task(t)->staged == 0) {
		deliver_response(c, t, pdu, bhs, data);
		return;
	}
	err = tcp_task(t)->i.late ? ERR_PROTOCOL
				  : copy_late(c, t, pdu, bhs, data);
	if (err)
		dmtcp_fail_conn(c, err);
}

void dmtcp_late_deliver(struct dmtcp_conn *c, struct dm_task *t)
{
	struct dmtcp_late *l = tcp_task(t)->i.late;

	tcp_task(t)->i.late = NULL;
	list_del(&l->link);
	deliver_response(c, t, &l->pdu, l->has_bhs ? l->bhs : NULL, l->data);
	free(l);
}

void dmtcp_late_free(struct dm_task *t)
{
	struct dmtcp_late *l = tcp_task(t)->i.late;

	if (!l)
		return;
	tcp_task(t)->i.late = NULL;
	list_del(&l->link);
	free(l);
}

void dmtcp_late_drop_all(struct dmtcp_conn *c)
{
	list_for_each_safe(it, &c->lates)
		free(list_entry(it, struct dmtcp_late, link));
	list_init(&c->lates);
}

/* ---- Data-In ---- */

/* The task of this PDU; NULL: unknown, or its response was received. */
static struct dm_task *open_task(struct dmtcp_conn *c)
{
	struct dm_task *t = c->dm.up->find_task(&c->dm, c->rx.pdu.itt);

	return t && !tcp_task(t)->i.late ? t : NULL;
}

/* §7.9: a missing number is a lost PDU. The number of an empty Data-In is not
 * checked, because some targets send status in one with an arbitrary number. */
static int check_data_in(const struct dmtcp_conn *c, struct dm_task *t)
{
	const struct iscsi_pdu *p = &c->rx.pdu;
	const struct initiator_task *it = &tcp_task(t)->i;
	bool in_order =
		c->params.data_pdu_in_order && c->params.data_sequence_in_order;

	if (p->dsl && p->data.datasn != it->next_datasn)
		return ERR_SEQUENCE;
	if (!range_ok(p->data.offset, p->dsl, t->in.len))
		return ERR_RANGE; /* outside of the buffer */
	/* §11.7.6: increasing offsets, no overlap */
	if (p->dsl && in_order && p->data.offset != t->in_done)
		return ERR_SEQUENCE;
	if (p->data.status_present && !p->final)
		return ERR_FORMAT; /* §11.7.3 */
	return 0;
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
	if (r->pdu.data.datasn == tcp_task(t)->i.next_datasn) {
		tcp_task(t)->i.next_datasn++;
		tcp_task(t)->i.data_ins++;
	}
	r->task = t;
	r->at = r->pdu.data.offset;
}

/* Makes a SCSI Response of the status in a Data-In. */
static void finish_by_data_in(struct dmtcp_conn *c, struct dm_task *t)
{
	const struct iscsi_pdu *p = &c->rx.pdu;
	struct iscsi_pdu rsp = {
		.op = ISCSI_SCSI_RESPONSE,
		.final = true,
		.itt = p->itt,
		.ttt = ISCSI_RESERVED_TAG,
		.statsn = p->statsn,
		.expcmdsn = p->expcmdsn,
		.maxcmdsn = p->maxcmdsn,
	};

	rsp.rsp.status = p->data.status;
	rsp.rsp.resid_flags = p->data.resid_flags;
	rsp.rsp.resid = p->data.resid;
	rsp.rsp.exp_datasn = t ? tcp_task(t)->i.data_ins : 0;
	finish_task(c, t, &rsp, NULL, NULL);
}

static void data_in_complete(struct dmtcp_conn *c)
{
	struct dm_task *t = c->rx.task;

	if (t)
		t->in_done += c->rx.pdu.dsl;
	if (c->rx.pdu.data.status_present)
		finish_by_data_in(c, t);
	else if (!t)
		c->stats.dropped++; /* its task was aborted */
}

/* ---- R2T ---- */

static struct burst *free_burst(const struct dmtcp_conn *c, struct dm_task *t)
{
	unsigned most = MIN(c->params.max_outstanding_r2t, MAX_R2T);

	for (unsigned i = 0; i < most; i++)
		if (!tcp_task(t)->bursts[i].active)
			return &tcp_task(t)->bursts[i];
	return NULL;
}

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
	if (!free_burst(c, t))
		return ERR_LIMIT; /* §13.17 */
	if (t->moved && tcp_task(t)->i.next_datasn == 0)
		return 0; /* §7.2.2: the target goes on where it was */
	/* §11.8: contiguous ranges without overlap. The first R2T may request
	 * unsolicited data again; ErrorRecoveryLevel 0 has no Recovery-R2T. */
	if (c->params.data_sequence_in_order &&
	    (tcp_task(t)->i.next_datasn
		     ? p->r2t.offset != tcp_task(t)->i.requested
		     : p->r2t.offset > tcp_task(t)->i.requested))
		return ERR_SEQUENCE;
	return p->r2t.r2tsn == tcp_task(t)->i.next_datasn ? 0 : ERR_SEQUENCE;
}

static void take_r2t(struct dmtcp_conn *c)
{
	const struct iscsi_pdu *p = &c->rx.pdu;
	struct dm_task *t = open_task(c);
	struct burst *b;
	int err;

	if (!t) {
		c->stats.dropped++;
		return;
	}
	err = check_r2t(c, t);
	if (err) {
		dmtcp_fail_conn(c, err);
		return;
	}
	c->stats.r2ts++;
	tcp_task(t)->i.next_datasn = t->r2ts = p->r2t.r2tsn + 1;
	tcp_task(t)->i.requested = p->r2t.offset + p->r2t.ddtl;
	b = free_burst(c, t);
	*b = (struct burst){ .ttt = p->ttt,
			     .sn = p->r2t.r2tsn,
			     .off = p->r2t.offset,
			     .end = p->r2t.offset + p->r2t.ddtl,
			     .active = true };
	if (!tcp_task(t)->i.data_queued && !tcp_task(t)->i.command_pending) {
		tcp_task(t)->i.data_queued = true;
		list_push_back(&c->dataq, &tcp_task(t)->node.link);
	}
	dmtcp_kick(c);
}

/* ---- SCSI Response ---- */

static void take_scsi_response(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;
	struct dm_task *t = c->dm.up->find_task(&c->dm, r->pdu.itt);

	/* §7.9: the response counts more Data-Ins than were received */
	if (t && t->in.len && !t->out.len &&
	    sn_lt(tcp_task(t)->i.data_ins, r->pdu.rsp.exp_datasn)) {
		dmtcp_fail_conn(c, ERR_SEQUENCE);
		return;
	}
	finish_task(c, t, &r->pdu, r->bhs, r->collect);
}

/* ---- called by rx.c ---- */

void dmtcp_initiator_header(struct dmtcp_conn *c)
{
	if (c->rx.pdu.op == ISCSI_DATA_IN)
		data_in_header(c);
}

static void deliver_control(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;
	struct dm_task *none = NULL;
	const struct dm_control ctl = {
		.pdu = r->pdu,
		.bhs = r->bhs,
		.data = r->pdu.dsl ? r->collect : NULL,
	};
	int err = c->dm.up->control_notify(&c->dm, &ctl, &none);

	if (err)
		dmtcp_fail_conn(c, err);
}

/* §4.2.2.2, §7.9: a missing StatSN is a lost response, which cannot be
 * requested again at ErrorRecoveryLevel 0; a repeated StatSN is a repeated
 * response. The first Login Response sets the first number. */
static int check_statsn(struct dmtcp_conn *c)
{
	const struct iscsi_pdu *p = &c->rx.pdu;

	if (!dmtcp_takes_statsn(p))
		return 0;
	if (c->full_feature && p->statsn != c->rx_statsn)
		return ERR_SEQUENCE;
	c->rx_statsn = p->statsn + 1;
	return 0;
}

void dmtcp_initiator_complete(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;
	int err = check_statsn(c);

	if (err) {
		trace_emit(c->dm.trace, TRACE_PROTOCOL,
			   "%s has StatSN %u, expected %u (RFC 7143 "
			   "§4.2.2.2); connection dropped",
			   iscsi_opcode_name(r->pdu.op), r->pdu.statsn,
			   c->rx_statsn);
		dmtcp_fail_conn(c, err);
		return;
	}
	switch (r->pdu.op) {
	case ISCSI_DATA_IN:
		data_in_complete(c);
		return;
	case ISCSI_R2T:
		take_r2t(c);
		return;
	case ISCSI_SCSI_RESPONSE:
		take_scsi_response(c);
		return;
	default:
		deliver_control(c);
	}
}
