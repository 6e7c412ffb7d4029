/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rx_target.c: write data at the target: immediate, unsolicited, solicited
 * (RFC 7143 §4.2.5.2, §11.7), and the R2Ts that ask for them (§11.8).
 */
#include <string.h>

#include "datamover/tcp/internal.h"

static void notify(struct dmtcp_conn *c, struct dm_task *t,
		   enum dm_completion what, int err)
{
	c->dm.up->data_completion_notify(&c->dm, t, what, err);
}

/* The first thing that goes wrong is what is reported. */
static void data_err(struct dm_task *t, int err)
{
	if (!priv(t)->t.data_err)
		priv(t)->t.data_err = err;
}

/* ---- unsolicited ---- */

static void unsolicited_over(struct dmtcp_conn *c, struct dm_task *t)
{
	struct target_task *tt = &priv(t)->t;
	int err = tt->data_err;

	tt->unsol = UNSOL_NONE;
	tt->data_err = 0;
	notify(c, t, DM_UNSOLICITED, err);
}

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
		dmtcp_die(c, err);
		return;
	}
	if (!t || !r->pdu.cmd.write)
		return; /* a read with data: they are thrown away */
	tt = &priv(t)->t;
	tt->unsol = UNSOL_OPEN;
	tt->unsol_off = r->pdu.dsl;
	tt->data_err = dm_judge_unsolicited(&c->params, &r->pdu);
	r->task = t;
	r->at = 0;
}

static void command_complete(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;
	struct dm_task *t = r->task;

	if (!t)
		return; /* aborted meanwhile, or none */
	t->out_done += r->pdu.dsl;
	if (r->drop_err)
		data_err(t, r->drop_err);
	/* under InitialR2T=Yes nothing follows, whatever F says */
	if (r->pdu.final || c->params.initial_r2t)
		unsolicited_over(c, t);
}

static void unsolicited_header(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;
	struct dm_task *t = c->dm.up->find_task(&c->dm, r->pdu.itt);
	struct target_task *tt = t ? &priv(t)->t : NULL;

	if (!t || tt->unsol != UNSOL_OPEN) {
		c->stats.dropped++; /* aborted, or never there: §11.7 */
		return;
	}
	if (r->pdu.data.datasn != tt->unsol_datasn ||
	    r->pdu.data.offset != tt->unsol_off ||
	    !range_ok(r->pdu.data.offset, r->pdu.dsl,
		      MIN(c->params.first_burst_length, t->edtl)))
		data_err(t, ERR_SEQUENCE);
	tt->unsol_datasn++;
	tt->unsol_off += r->pdu.dsl;
	r->task = tt->data_err ? NULL : t;
	r->at = r->pdu.data.offset;
}

static void unsolicited_complete(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;
	struct dm_task *t = c->dm.up->find_task(&c->dm, r->pdu.itt);

	if (!t || priv(t)->t.unsol != UNSOL_OPEN)
		return;
	t->out_done += r->pdu.dsl;
	if (r->drop_err)
		data_err(t, r->drop_err);
	if (r->pdu.final)
		unsolicited_over(c, t);
}

/* ---- solicited ---- */

/*
 * A Target Transfer Tag: slot of dmtcp_conn.gets in the low 16 bits, then a
 * salt that changes with each R2T, so that a stale or invented tag finds
 * nothing. Never 0xffffffff: bit 31 stays clear.
 */
static uint32_t next_ttt(struct dmtcp_conn *c, uint16_t slot)
{
	c->ttt_salt = (c->ttt_salt + 1) & 0x7fff;
	return c->ttt_salt << 16 | slot;
}

static struct dm_task *task_by_ttt(const struct dmtcp_conn *c, uint32_t ttt,
				   struct burst **burst)
{
	uint32_t slot = ttt & 0xffff;
	struct dm_task *t = slot < c->ngets ? c->gets[slot] : NULL;

	for (unsigned i = 0; t && i < MAX_R2T; i++) {
		struct burst *b = &priv(t)->bursts[i];

		if (b->active && !b->announce && b->ttt == ttt) {
			*burst = b;
			return t;
		}
	}
	return NULL;
}

static void solicited_header(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;
	const struct iscsi_data *d = &r->pdu.data;
	struct burst *b;
	struct dm_task *t = task_by_ttt(c, r->pdu.ttt, &b);

	if (!t || t->itt != r->pdu.itt) {
		c->stats.dropped++; /* aborted, or never asked for */
		return;
	}
	r->burst = b;
	r->task = t;
	r->at = d->offset;
	/* §11.7.5: within a sequence DataSN counts up; DataPDUInOrder=Yes */
	if (d->datasn != b->datasn || d->offset != b->off ||
	    !range_ok(d->offset, r->pdu.dsl, b->end))
		data_err(t, ERR_SEQUENCE);
	b->datasn++;
	if (t->lun != r->pdu.lun) /* §4.2.5.3: consistent with the command */
		data_err(t, ERR_PROTOCOL);
	if (priv(t)->t.data_err) {
		/* nothing more is placed, but the bursts run to their ends */
		r->at = (uint32_t)t->out.len;
	}
}

static void get_finish(struct dmtcp_conn *c, struct dm_task *t)
{
	int err = priv(t)->t.data_err;

	dmtcp_get_forget(c, t);
	priv(t)->t.data_err = 0;
	notify(c, t, DM_GET, err);
}

static bool bursts_active(const struct dm_task *t)
{
	const struct dmtcp_task *p =
		(const struct dmtcp_task *)(const void *)t->priv;

	for (unsigned i = 0; i < MAX_R2T; i++)
		if (p->bursts[i].active)
			return true;
	return false;
}

/* Asks for as much more as MaxOutstandingR2T allows (§13.17). */
static void fill_bursts(struct dmtcp_conn *c, struct dm_task *t)
{
	struct target_task *tt = &priv(t)->t;
	unsigned most = MIN(c->params.max_outstanding_r2t, MAX_R2T);

	for (unsigned i = 0; i < most && tt->get_next < tt->get_end; i++) {
		struct burst *b = &priv(t)->bursts[i];
		uint32_t len = MIN(c->params.max_burst_length,
				   tt->get_end - tt->get_next);

		if (b->active)
			continue;
		*b = (struct burst){ .ttt = next_ttt(c, tt->slot),
				     .sn = tt->r2tsn++,
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

static void solicited_complete(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;
	struct dm_task *t = r->task;
	struct burst *b = r->burst;

	if (!t)
		return;
	if (r->drop_err)
		data_err(t, r->drop_err);
	t->out_done += r->pdu.dsl;
	b->off += r->pdu.dsl;
	/* §11.7.1: F ends the sequence, and the sequence ends with F */
	if (r->pdu.final != (b->off == b->end))
		data_err(t, ERR_SEQUENCE);
	if (!r->pdu.final && b->off < b->end)
		return;
	b->active = false;
	if (priv(t)->t.data_err)
		priv(t)->t.get_next = priv(t)->t.get_end;
	fill_bursts(c, t);
	if (!bursts_active(t))
		get_finish(c, t);
}

/* ---- the doors ---- */

void dmtcp_target_header(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;

	if (r->pdu.op == ISCSI_SCSI_COMMAND)
		command_header(c);
	else if (r->pdu.ttt == ISCSI_RESERVED_TAG)
		unsolicited_header(c);
	else
		solicited_header(c);
	/* payload beyond the window has no place */
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

int dmtcp_get_data(struct dm_conn *dm, struct dm_task *t, uint32_t offset,
		   uint32_t len)
{
	struct dmtcp_conn *c = conn_of(dm);
	struct target_task *tt = &priv(t)->t;

	if (c->free_get == c->ngets)
		return ERR_BUSY;
	tt->slot = (uint16_t)c->free_get;
	c->free_get = c->get_next_free[tt->slot];
	c->gets[tt->slot] = t;
	tt->getting = true;
	tt->get_next = offset;
	tt->get_end = offset + len;
	list_init(&tt->r2t_link);
	fill_bursts(c, t);
	return 0;
}

void dmtcp_get_forget(struct dmtcp_conn *c, struct dm_task *t)
{
	struct target_task *tt = &priv(t)->t;

	if (!tt->getting)
		return;
	tt->getting = false;
	list_del(&tt->r2t_link);
	c->gets[tt->slot] = NULL;
	c->get_next_free[tt->slot] = (uint16_t)c->free_get;
	c->free_get = tt->slot;
	memset(priv(t)->bursts, 0, sizeof(priv(t)->bursts));
}
