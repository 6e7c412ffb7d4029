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

static int keep_late(struct dm_task *t, const struct iscsi_pdu *pdu,
		     const uint8_t *bhs, const uint8_t *data)
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
	priv(t)->i.late = l;
	return 0;
}

static void task_over(struct dmtcp_conn *c, struct dm_task *t,
		      const struct iscsi_pdu *pdu, const uint8_t *bhs,
		      const uint8_t *data)
{
	int err;

	list_del(&priv(t)->node.link); /* what it had to send is void */
	priv(t)->i.command_pending = priv(t)->i.data_queued = false;
	if (priv(t)->staged == 0) {
		deliver(c, t, pdu, bhs, data);
		return;
	}
	err = priv(t)->i.late ? ERR_PROTOCOL : keep_late(t, pdu, bhs, data);
	if (err)
		dmtcp_die(c, err);
}

void dmtcp_late_deliver(struct dmtcp_conn *c, struct dm_task *t)
{
	struct dmtcp_late *l = priv(t)->i.late;

	priv(t)->i.late = NULL;
	deliver(c, t, &l->pdu, l->has_bhs ? l->bhs : NULL, l->data);
	free(l);
}

void dmtcp_late_free(struct dm_task *t)
{
	free(priv(t)->i.late);
	priv(t)->i.late = NULL;
}

/* ---- Data-In ---- */

static void data_in_header(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;
	const struct iscsi_data *d = &r->pdu.data;
	struct dm_task *t = c->dm.up->find_task(&c->dm, r->pdu.itt);

	if (!t || priv(t)->i.late) {
		c->stats.dropped++; /* of a task that was aborted */
		return;
	}
	if (r->pdu.dsl && d->datasn != priv(t)->i.next_datasn) {
		dmtcp_die(c, ERR_SEQUENCE); /* §7.9: a lost PDU, at ERL 0 */
		return;
	}
	if (!range_ok(d->offset, r->pdu.dsl, t->in.len)) {
		dmtcp_die(c, ERR_RANGE); /* more than was asked for */
		return;
	}
	if (r->pdu.dsl)
		priv(t)->i.next_datasn++;
	r->task = t;
	r->at = d->offset;
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
	rsp.rsp.exp_datasn = priv(t)->i.next_datasn;
	task_over(c, t, &rsp, NULL, NULL);
}

static void data_in_complete(struct dmtcp_conn *c)
{
	struct dm_task *t = c->rx.task;

	if (!t)
		return;
	t->in_done += c->rx.pdu.dsl;
	if (c->rx.pdu.data.status_present)
		status_of_data_in(c, t);
}

/* ---- R2T ---- */

static struct burst *free_burst(struct dm_task *t)
{
	for (unsigned i = 0; i < MAX_R2T; i++)
		if (!priv(t)->bursts[i].active)
			return &priv(t)->bursts[i];
	return NULL;
}

static void r2t(struct dmtcp_conn *c)
{
	const struct iscsi_pdu *p = &c->rx.pdu;
	struct dm_task *t = c->dm.up->find_task(&c->dm, p->itt);
	struct burst *b;

	if (!t || priv(t)->i.late) {
		c->stats.dropped++;
		return;
	}
	/* §11.8.4: a non-zero length, inside the buffer, within a burst */
	if (p->r2t.ddtl == 0 || p->r2t.ddtl > c->params.max_burst_length ||
	    !range_ok(p->r2t.offset, p->r2t.ddtl, t->out.len) ||
	    p->ttt == ISCSI_RESERVED_TAG) {
		dmtcp_die(c, ERR_RANGE);
		return;
	}
	b = free_burst(t);
	if (!b || p->r2t.r2tsn != priv(t)->i.next_datasn) {
		dmtcp_die(c, b ? ERR_SEQUENCE : ERR_LIMIT); /* §13.17 */
		return;
	}
	priv(t)->i.next_datasn++;
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
	struct dm_task *t;

	switch (r->pdu.op) {
	case ISCSI_DATA_IN:
		data_in_complete(c);
		return;
	case ISCSI_R2T:
		r2t(c);
		return;
	case ISCSI_SCSI_RESPONSE:
		t = c->full_feature ? c->dm.up->find_task(&c->dm, r->pdu.itt)
				    : NULL;
		if (t)
			task_over(c, t, &r->pdu, r->bhs, r->collect);
		else
			c->stats.dropped++;
		return;
	default:
		control(c);
	}
}
