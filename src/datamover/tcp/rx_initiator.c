/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rx_initiator.c: Data-In, R2T and SCSI Response at the initiator. R2Ts and
 * Data-Ins end here: the role sees commands and their responses only.
 */
#include <stdlib.h>
#include <string.h>

#include "datamover/tcp/internal.h"

/* A response that came while bytes of the task are half way out. */
struct dmtcp_late {
	struct list link; /* dmtcp_conn.lates */
	struct iscsi_pdu pdu;
	uint8_t bhs[ISCSI_BHS_LEN];
	bool has_bhs;
	uint8_t data[];
};

/* ---- the end of a task ---- */

static void deliver(struct dmtcp_conn *c, struct dm_task *t,
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
		dmtcp_die(c, err);
}

static int keep_late(struct dmtcp_conn *c, struct dm_task *t,
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
	priv(t)->i.late = l;
	return 0;
}

/* t NULL: status of a task that is none: its StatSN counts all the same. */
static void task_over(struct dmtcp_conn *c, struct dm_task *t,
		      const struct iscsi_pdu *pdu, const uint8_t *bhs,
		      const uint8_t *data)
{
	int err;

	if (!t) {
		c->stats.dropped++;
		deliver(c, NULL, pdu, bhs, data);
		return;
	}
	list_del(&priv(t)->node.link); /* what it had to send is void */
	priv(t)->i.command_pending = priv(t)->i.data_queued = false;
	if (priv(t)->staged == 0) {
		deliver(c, t, pdu, bhs, data);
		return;
	}
	err = priv(t)->i.late ? ERR_PROTOCOL : keep_late(c, t, pdu, bhs, data);
	if (err)
		dmtcp_die(c, err);
}

void dmtcp_late_deliver(struct dmtcp_conn *c, struct dm_task *t)
{
	struct dmtcp_late *l = priv(t)->i.late;

	priv(t)->i.late = NULL;
	list_del(&l->link);
	deliver(c, t, &l->pdu, l->has_bhs ? l->bhs : NULL, l->data);
	free(l);
}

void dmtcp_late_free(struct dm_task *t)
{
	struct dmtcp_late *l = priv(t)->i.late;

	if (!l)
		return;
	priv(t)->i.late = NULL;
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

/* The task that this PDU may still do something for. */
static struct dm_task *living_task(struct dmtcp_conn *c)
{
	struct dm_task *t = c->dm.up->find_task(&c->dm, c->rx.pdu.itt);

	return t && !priv(t)->i.late ? t : NULL;
}

/* §7.9: a number that is left out is a PDU that was lost. An empty Data-In may
 * carry any: some targets send status in one, and number it as they like. */
static int check_data_in(const struct dmtcp_conn *c, const struct dm_task *t)
{
	const struct iscsi_pdu *p = &c->rx.pdu;
	const struct dmtcp_task *dt =
		(const struct dmtcp_task *)(const void *)t->priv;
	bool in_order =
		c->params.data_pdu_in_order && c->params.data_sequence_in_order;

	if (p->dsl && p->data.datasn != dt->i.next_datasn)
		return ERR_SEQUENCE;
	if (!range_ok(p->data.offset, p->dsl, t->in.len))
		return ERR_RANGE; /* more than was asked for */
	/* §11.7.6: rising offsets, overlays are forbidden */
	if (p->dsl && in_order && p->data.offset != t->in_done)
		return ERR_SEQUENCE;
	if (p->data.status_present && !p->final)
		return ERR_FORMAT; /* §11.7.3 */
	return 0;
}

static void data_in_header(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;
	struct dm_task *t = living_task(c);
	int err;

	if (!t)
		return;
	err = check_data_in(c, t);
	if (err) {
		dmtcp_die(c, err);
		return;
	}
	if (r->pdu.data.datasn == priv(t)->i.next_datasn) {
		priv(t)->i.next_datasn++;
		priv(t)->i.data_ins++;
	}
	r->task = t;
	r->at = r->pdu.data.offset;
}

/* Status that rode on a Data-In becomes the response it stands for. */
static void status_of_data_in(struct dmtcp_conn *c, struct dm_task *t)
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
	rsp.rsp.exp_datasn = t ? priv(t)->i.data_ins : 0;
	task_over(c, t, &rsp, NULL, NULL);
}

static void data_in_complete(struct dmtcp_conn *c)
{
	struct dm_task *t = c->rx.task;

	if (t)
		t->in_done += c->rx.pdu.dsl;
	if (c->rx.pdu.data.status_present)
		status_of_data_in(c, t);
	else if (!t)
		c->stats.dropped++; /* of a task that was aborted */
}

/* ---- R2T ---- */

static struct burst *free_burst(const struct dmtcp_conn *c, struct dm_task *t)
{
	unsigned most = MIN(c->params.max_outstanding_r2t, MAX_R2T);

	for (unsigned i = 0; i < most; i++)
		if (!priv(t)->bursts[i].active)
			return &priv(t)->bursts[i];
	return NULL;
}

static int check_r2t(const struct dmtcp_conn *c, struct dm_task *t)
{
	const struct iscsi_pdu *p = &c->rx.pdu;

	/* §11.8.4, §11.8.5: a length, inside the buffer, within a burst */
	if (p->r2t.ddtl == 0 || p->r2t.ddtl > c->params.max_burst_length ||
	    !range_ok(p->r2t.offset, p->r2t.ddtl, t->out.len) ||
	    p->ttt == ISCSI_RESERVED_TAG)
		return ERR_RANGE;
	if (p->lun != t->lun)
		return ERR_PROTOCOL; /* §4.2.5.3 */
	if (!free_burst(c, t))
		return ERR_LIMIT; /* §13.17 */
	return p->r2t.r2tsn == priv(t)->i.next_datasn ? 0 : ERR_SEQUENCE;
}

static void r2t(struct dmtcp_conn *c)
{
	const struct iscsi_pdu *p = &c->rx.pdu;
	struct dm_task *t = living_task(c);
	struct burst *b;
	int err;

	if (!t) {
		c->stats.dropped++;
		return;
	}
	err = check_r2t(c, t);
	if (err) {
		dmtcp_die(c, err);
		return;
	}
	c->stats.r2ts++;
	priv(t)->i.next_datasn++;
	b = free_burst(c, t);
	*b = (struct burst){ .ttt = p->ttt,
			     .sn = p->r2t.r2tsn,
			     .off = p->r2t.offset,
			     .end = p->r2t.offset + p->r2t.ddtl,
			     .active = true };
	if (!priv(t)->i.data_queued && !priv(t)->i.command_pending) {
		priv(t)->i.data_queued = true;
		list_push_back(&c->dataq, &priv(t)->node.link);
	}
	dmtcp_kick(c);
}

/* ---- SCSI Response ---- */

static void scsi_response(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;
	struct dm_task *t = c->dm.up->find_task(&c->dm, r->pdu.itt);

	/* §7.9: it counts Data-Ins that never came */
	if (t && t->in.len && !t->out.len &&
	    sn_lt(priv(t)->i.data_ins, r->pdu.rsp.exp_datasn)) {
		dmtcp_die(c, ERR_SEQUENCE);
		return;
	}
	task_over(c, t, &r->pdu, r->bhs, r->collect);
}

/* ---- the doors ---- */

void dmtcp_initiator_header(struct dmtcp_conn *c)
{
	if (c->rx.pdu.op == ISCSI_DATA_IN)
		data_in_header(c);
}

static void control(struct dmtcp_conn *c)
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
		dmtcp_die(c, err);
}

void dmtcp_initiator_complete(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;

	switch (r->pdu.op) {
	case ISCSI_DATA_IN:
		data_in_complete(c);
		return;
	case ISCSI_R2T:
		r2t(c);
		return;
	case ISCSI_SCSI_RESPONSE:
		scsi_response(c);
		return;
	default:
		control(c);
	}
}
