/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * snack.c: SNACK Requests at the target (RFC 7143 §11.16): which PDUs they ask for,
 * and whether they may. resend.c sends the PDUs.
 */
#include "datamover/tcp/internal.h"

enum snack_type { /* §11.16.1 */
	SNACK_DATA_R2T = 0,
	SNACK_STATUS = 1,
	SNACK_DATA_ACK = 2,
	SNACK_R_DATA = 3,
};

/* The run [from, to) of a SNACK; ERR_RANGE: not all of it is in [first, next). A
 * RunLength of 0 means all from BegRun on, and with a BegRun of 0 all that is not
 * acknowledged, which may be nothing. The numbers wrap around. */
static int find_run(const struct iscsi_snack *s, uint32_t first, uint32_t next,
		    uint32_t *from, uint32_t *to)
{
	uint32_t skipped = s->begrun - first, have = next - first;

	*from = first;
	*to = next;
	if (s->begrun == 0 && s->runlen == 0)
		return 0;
	if (skipped >= have || s->runlen > have - skipped)
		return ERR_RANGE;
	*from = s->begrun;
	if (s->runlen)
		*to = s->begrun + s->runlen;
	return 0;
}

/* §11.16.3: MaxRecvDataSegmentLength is another one since: only R-Data asks for the
 * Data-Ins again. */
static bool is_resegmented(const struct dmtcp_conn *c,
			   const struct target_task *tt)
{
	return tt->mixed || tt->seg > dmtcp_data_in_most(c);
}

/* ---- Data/R2T ---- */

static int resend_data(struct dmtcp_conn *c, struct dm_task *t,
		       const struct iscsi_snack *s, uint32_t *next)
{
	const struct target_task *tt = &tcp_task(t)->t;
	uint32_t from, to;
	int err = find_run(s, tt->ack_sn, tt->datasn, &from, &to);

	*next = tt->datasn;
	if (!err && is_resegmented(c, tt))
		err = ERR_RANGE;
	if (err || from == to)
		return err;
	err = dmtcp_data_again(c, t);
	return err ? err : dmtcp_resend_data(c, t, from, to);
}

/* An R2T whose data came is acknowledged by them. */
static int resend_r2ts(struct dmtcp_conn *c, struct dm_task *t,
		       const struct iscsi_snack *s, uint32_t *next)
{
	struct target_task *tt = &tcp_task(t)->t;
	bool all = s->begrun == 0 && s->runlen == 0, found = false;
	uint32_t from, to;
	int err = find_run(s, 0, tt->r2tsn, &from, &to);

	*next = tt->r2tsn;
	if (err)
		return err;
	for (unsigned i = 0; i < dmtcp_nbursts(&c->dm, tcp_task(t)); i++) {
		struct burst *b = dmtcp_burst(tcp_task(t), i);

		if (!b->active || b->sn < from || b->sn >= to)
			continue;
		found = b->again = true;
		if (!list_linked(&tt->r2t_link))
			list_push_back(&c->r2tq, &tt->r2t_link);
	}
	dmtcp_kick(c);
	return found || all ? 0 : ERR_RANGE;
}

static int data_or_r2t(struct dmtcp_conn *c, const struct iscsi_pdu *p,
		       uint32_t *next)
{
	struct dm_task *t = c->dm.up->find_task(&c->dm, p->itt);

	if (p->ttt != ISCSI_RESERVED_TAG)
		return ERR_FORMAT; /* §11.16.5 */
	if (!t)
		return ERR_NOT_FOUND;
	if (tcp_task(t)->t.getting)
		return resend_r2ts(c, t, &p->snack, next);
	return resend_data(c, t, &p->snack, next);
}

/* ---- Status ---- */

/* The status of t was in its last Data-In, or was to be: it becomes a SCSI
 * Response with the same StatSN. NULL: no memory. */
static struct dmtcp_control *status_apart(struct dmtcp_conn *c,
					  struct dm_task *t)
{
	struct target_task *tt = &tcp_task(t)->t;
	struct dmtcp_control *q;
	struct iscsi_pdu p = { .op = ISCSI_SCSI_RESPONSE,
			       .final = true,
			       .itt = t->itt,
			       .ttt = ISCSI_RESERVED_TAG,
			       .statsn = tt->statsn };

	p.rsp.status = tt->status;
	p.rsp.resid_flags = tt->resid_flags;
	p.rsp.resid = tt->resid;
	q = dmtcp_control_new(c, t, &p);
	if (!q)
		return NULL;
	tt->has_status = false;
	tt->quiet = true;
	list_insert_between(&q->node.link, &tcp_task(t)->node.link,
			    tcp_task(t)->node.link.next);
	return q;
}

/* The last Data-In of t, which had the status, was sent. */
static int send_status_apart(struct dmtcp_conn *c, struct dm_task *t)
{
	struct dmtcp_control *q = status_apart(c, t);

	if (!q)
		return ERR_NOMEM;
	q->retained = true; /* in place of t */
	list_del(&tcp_task(t)->node.link);
	return dmtcp_resend_control(c, q);
}

static int resend_node(struct dmtcp_conn *c, struct tx_node *n)
{
	struct dm_task *t;

	if (n->kind == TX_CONTROL)
		return dmtcp_resend_control(
			c, container_of(n, struct dmtcp_control, node));
	/* the last Data-In has the status */
	t = dm_task_of_share(container_of(n, struct dmtcp_task, node));
	if (is_resegmented(c, &tcp_task(t)->t) || dmtcp_data_again(c, t))
		return send_status_apart(c, t);
	return dmtcp_resend_data(c, t, tcp_task(t)->t.datasn - 1,
				 tcp_task(t)->t.datasn);
}

static uint32_t statsn_of(struct tx_node *n)
{
	if (n->kind == TX_CONTROL)
		return container_of(n, struct dmtcp_control, node)->pdu.statsn;
	return container_of(n, struct dmtcp_task, node)->t.statsn;
}

static int resend_status(struct dmtcp_conn *c, const struct iscsi_pdu *p)
{
	uint32_t from, to;
	int err = p->itt != ISCSI_RESERVED_TAG || p->ttt != ISCSI_RESERVED_TAG
			  ? ERR_FORMAT /* §11.16.4, §11.16.5 */
			  : find_run(&p->snack, c->recovery.acked, c->tx_statsn,
				     &from, &to);

	if (err)
		return err;
	list_for_each_safe(it, &c->recovery.unacked) {
		struct tx_node *n = list_entry(it, struct tx_node, link);

		if (!err && !sn_lt(statsn_of(n), from) &&
		    sn_lt(statsn_of(n), to))
			err = resend_node(c, n);
	}
	return err;
}

/* ---- DataACK ---- */

/* The byte at which sn begins. At a DataACK sn follows a whole number of sequences,
 * because only their last PDUs have the A bit. */
static uint32_t acked_bytes(const struct dmtcp_conn *c,
			    const struct target_task *tt, uint32_t sn)
{
	uint32_t burst = c->params.max_burst_length;
	uint32_t at = tt->ack_sn, off = tt->ack_off;

	while (at < sn && off < tt->data_done) {
		uint32_t left = MIN(tt->data_done - off, burst - off % burst);

		off += dmtcp_pdu_len(left, tt->seg);
		at++;
	}
	return off;
}

/* [RFC 7143: 11.16.7 #1] */
static int data_ack(struct dmtcp_conn *c, const struct iscsi_pdu *p)
{
	struct dm_task *t = c->dm.up->find_task(&c->dm, p->ttt);
	struct target_task *tt = t ? &tcp_task(t)->t : NULL;
	uint32_t sn = p->snack.begrun;

	if (p->itt != ISCSI_RESERVED_TAG || p->snack.runlen)
		return ERR_FORMAT; /* §11.16.4, §11.16.7 */
	if (!t || t->lun != p->lun || sn < tt->ack_sn || sn > tt->datasn)
		return ERR_SEQUENCE;
	if (tt->mixed)
		return 0; /* more than has to be is kept */
	tt->ack_off = acked_bytes(c, tt, sn);
	tt->ack_sn = sn;
	c->dm.up->data_ack_notify(&c->dm, t, sn);
	return 0;
}

/* ---- R-Data (§11.16.3) ---- */

/* How many PDUs the data from ack_off on are with the present length. */
static uint32_t count_pdus(const struct dmtcp_conn *c,
			   const struct target_task *tt)
{
	uint32_t burst = c->params.max_burst_length, n = 0;

	for (uint32_t off = tt->ack_off; off < tt->data.len; n++)
		off += dmtcp_pdu_len(MIN((uint32_t)tt->data.len - off,
					 burst - off % burst),
				     tt->seg);
	return n;
}

/* The data are still being sent: they begin again. */
static int put_again(struct dmtcp_conn *c, struct dm_task *t)
{
	struct target_task *tt = &tcp_task(t)->t;

	if (!dmtcp_may_resend(t, tt->datasn - tt->ack_sn))
		return ERR_LIMIT;
	if (tt->has_status) {
		tcp_task(t)->response = status_apart(c, t);
		if (!tcp_task(t)->response)
			return ERR_NOMEM;
	}
	tt->datasn = tt->ack_sn;
	tt->data_done = tt->ack_off;
	return 0;
}

/* The response of t that was sent, or NULL. */
static struct dmtcp_control *sent_response(struct dmtcp_conn *c,
					   const struct dm_task *t)
{
	list_for_each(it, &c->recovery.unacked) {
		struct tx_node *n = list_entry(it, struct tx_node, link);
		struct dmtcp_control *q =
			container_of(n, struct dmtcp_control, node);

		if (n->kind == TX_CONTROL && q->task == t)
			return q;
	}
	return NULL;
}

static int send_all_again(struct dmtcp_conn *c, struct dm_task *t)
{
	struct target_task *tt = &tcp_task(t)->t;
	struct dmtcp_control *q = sent_response(c, t);
	int err = 0;

	tt->datasn = tt->ack_sn + count_pdus(c, tt);
	if (tt->datasn != tt->ack_sn)
		err = dmtcp_resend_data(c, t, tt->ack_sn, tt->datasn);
	if (err)
		return err;
	if (tt->has_status)
		return send_status_apart(c, t);
	/* a response that was not sent yet gets the SNACK Tag when it is */
	return q ? dmtcp_resend_control(c, q) : 0;
}

/* [RFC 7143: 11.16.3 #2, 11.16.5 #1-2, 11.16.6 #1] */
static int r_data(struct dmtcp_conn *c, const struct iscsi_pdu *p)
{
	struct dm_task *t = c->dm.up->find_task(&c->dm, p->itt);
	struct target_task *tt = t ? &tcp_task(t)->t : NULL;
	int err;

	if (p->snack.begrun || p->snack.runlen || p->ttt == 0 ||
	    p->ttt == ISCSI_RESERVED_TAG)
		return ERR_FORMAT; /* §11.16.5 to §11.16.7 */
	if (!t || tt->data.len == 0)
		return ERR_NOT_FOUND;
	if (p->ttt == tt->snack.tag)
		return ERR_FORMAT; /* not unique for the task */
	err = dmtcp_data_again(c, t);
	if (err)
		return err;
	dmtcp_resend_forget(c, t, NULL);
	tt->snack.tag = p->ttt;
	tt->seg = dmtcp_data_in_most(c);
	tt->mixed = false;
	return tt->putting ? put_again(c, t) : send_all_again(c, t);
}

/* ---- all ---- */

static int carry_out(struct dmtcp_conn *c, const struct iscsi_pdu *p,
		     uint32_t *next)
{
	if (!p->final || p->dsl)
		return ERR_FORMAT;
	switch (p->snack.type) {
	case SNACK_DATA_R2T:
		return data_or_r2t(c, p, next);
	case SNACK_STATUS:
		return resend_status(c, p);
	case SNACK_DATA_ACK:
		return data_ack(c, p);
	case SNACK_R_DATA:
		return r_data(c, p);
	default:
		return ERR_FORMAT;
	}
}

/* [RFC 7143: 4.2.5.1 #5, 7.8 #7, 11.16 #1] */
int dmtcp_snack(struct dm_conn *dm, const struct iscsi_pdu *p, uint32_t *next)
{
	struct dmtcp_conn *c = dm->impl;
	int err = carry_out(c, p, next);

	c->stats.snacks++;
	if (err == ERR_BUSY) { /* no status can take back what was sent */
		trace_emit(dm->trace, TRACE_PROTOCOL,
			   "%s asks for data again that were written since "
			   "(RFC 7143 §7.8); connection dropped",
			   dm->peer ? dm->peer : "peer");
		dmtcp_fail_conn(c, err);
		return 0;
	}
	if (err != ERR_LIMIT && err != ERR_NOMEM)
		return err;
	trace_emit(dm->trace, TRACE_PROTOCOL,
		   "%s asks for PDUs again and again (RFC 7143 §11.16); "
		   "connection dropped",
		   dm->peer ? dm->peer : "peer");
	dmtcp_fail_conn(c, err);
	return 0;
}
