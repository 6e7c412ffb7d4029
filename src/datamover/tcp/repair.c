/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * repair.c: at ErrorRecoveryLevel 1 an initiator asks by SNACK for PDUs that are
 * missing: Data-Ins and R2Ts of a task, and PDUs with a StatSN (RFC 7143 §7.8, §7.9,
 * §11.16), and answers the A bit by DataACK (§11.16.2).
 *
 * A PDU that does not come within AGAIN is asked for again. After ATTEMPTS_MAX attempts
 * without any progress the connection is dropped, which ends in session recovery.
 *
 * This initiator never declares another MaxRecvDataSegmentLength during a session, so
 * that it needs no R-Data SNACK.
 */
#include <stdlib.h>

#include "datamover/tcp/stage.h"

#define AGAIN	     (2 * XTIME_S)
#define ATTEMPTS_MAX 8
#define GAPS	     4

enum snack_type { /* §11.16.1 */
	SNACK_DATA_R2T = 0,
	SNACK_STATUS = 1,
	SNACK_DATA_ACK = 2,
};

/* The missing PDUs of a task, and the DataACK that it owes. */
struct dmtcp_repair {
	struct list link; /* recovery.repairs */
	struct dm_task *task;
	struct gap {
		uint32_t from, to; /* DataSN or R2TSN */
	} gap[GAPS];
	unsigned n;
	bool owes_ack;
	uint32_t ack_sn; /* all PDUs before it came */
	uint32_t ttt;	 /* of the A bit */
	uint64_t lun;
};

static struct dmtcp_repair *repair_at(struct list *link)
{
	return list_entry(link, struct dmtcp_repair, link);
}

static struct dmtcp_repair *find_repair(const struct dmtcp_conn *c,
					const struct dm_task *t)
{
	list_for_each(it, &c->recovery.repairs)
		if (repair_at(it)->task == t)
			return repair_at(it);
	return NULL;
}

/* NULL: no memory, and the connection is dropped. */
static struct dmtcp_repair *get_repair(struct dmtcp_conn *c, struct dm_task *t)
{
	struct dmtcp_repair *r = find_repair(c, t);

	if (r)
		return r;
	r = calloc(1, sizeof(*r));
	if (!r) {
		dmtcp_fail_conn(c, ERR_NOMEM);
		return NULL;
	}
	r->task = t;
	list_push_back(&c->recovery.repairs, &r->link);
	return r;
}

static void free_repair(struct dmtcp_repair *r)
{
	list_del(&r->link);
	free(r);
}

/* ---- asking ---- */

/* [RFC 7143: 4.2.5.1 #5, 11.16.4 #1-2, 11.16.5 #4] */
static void send_snack(struct dmtcp_conn *c, enum snack_type type, uint32_t itt,
		       uint32_t begrun, uint32_t runlen)
{
	struct dm_control ctl = { .pdu = { .op = ISCSI_SNACK_REQUEST,
					   .final = true,
					   .itt = itt,
					   .ttt = ISCSI_RESERVED_TAG } };
	int err;

	ctl.pdu.snack.type = (uint8_t)type;
	ctl.pdu.snack.begrun = begrun;
	ctl.pdu.snack.runlen = runlen;
	c->recovery.deadline = c->now + AGAIN;
	c->stats.snacks++;
	err = dmtcp_queue_control(c, NULL, &ctl, false);
	if (err)
		dmtcp_fail_conn(c, err);
}

/* True: one more attempt without progress is too many. */
/* [RFC 7143: 7.8 #9] */
static bool gives_up(struct dmtcp_conn *c)
{
	if (++c->recovery.attempts <= ATTEMPTS_MAX)
		return false;
	trace_emit(c->dm.trace, TRACE_PROTOCOL,
		   "PDUs do not come though %u SNACKs asked for them (RFC 7143 "
		   "§7.8); connection dropped",
		   (unsigned)ATTEMPTS_MAX);
	dmtcp_fail_conn(c, ERR_DATA_DIGEST);
	return true;
}

static bool is_all_there(const struct dmtcp_conn *c)
{
	if (!list_empty(&c->recovery.early) ||
	    sn_lt(c->rx_statsn, c->recovery.asked))
		return false;
	list_for_each(it, &c->recovery.repairs)
		if (repair_at(it)->n)
			return false;
	return true;
}

void dmtcp_repair_progress(struct dmtcp_conn *c)
{
	c->recovery.attempts = 0;
	if (c->recovery.deadline == XTIME_NEVER)
		return;
	c->recovery.deadline = is_all_there(c) ? XTIME_NEVER : c->now + AGAIN;
}

/* ---- StatSN ---- */

void dmtcp_repair_statsn(struct dmtcp_conn *c, uint32_t statsn, bool is_here)
{
	struct recovery *r = &c->recovery;

	if (sn_lt(r->asked, c->rx_statsn))
		r->asked = c->rx_statsn;
	if (sn_lt(r->asked, statsn))
		send_snack(c, SNACK_STATUS, ISCSI_RESERVED_TAG, r->asked,
			   statsn - r->asked);
	if (sn_lt(r->asked, statsn + is_here))
		r->asked = statsn + is_here;
}

void dmtcp_repair_status(struct dmtcp_conn *c, uint32_t statsn)
{
	if (sn_lt(statsn, c->rx_statsn))
		return;				/* a copy */
	if (sn_lt(statsn, c->recovery.asked)) { /* damaged once more */
		if (!gives_up(c))
			send_snack(c, SNACK_STATUS, ISCSI_RESERVED_TAG, statsn,
				   1);
		return;
	}
	dmtcp_repair_statsn(c, statsn + 1, false);
}

/* ---- Data-Ins and R2Ts of a task ---- */

/* [RFC 7143: 11.16.1 #1] */
bool dmtcp_repair_is_missing(const struct dmtcp_conn *c,
			     const struct dm_task *t)
{
	const struct dmtcp_repair *r = find_repair(c, t);

	return r && r->n;
}

bool dmtcp_repair_is_gap(const struct dmtcp_conn *c, const struct dm_task *t,
			 uint32_t sn)
{
	const struct dmtcp_repair *r = find_repair(c, t);

	for (unsigned i = 0; r && i < r->n; i++)
		if (sn >= r->gap[i].from && sn < r->gap[i].to)
			return true;
	return false;
}

/* The gap that has one of [from, to), or touches it; NULL: none. */
static struct gap *find_gap(struct dmtcp_repair *r, uint32_t from, uint32_t to)
{
	for (unsigned i = 0; i < r->n; i++)
		if (from <= r->gap[i].to && to >= r->gap[i].from)
			return &r->gap[i];
	return NULL;
}

/* Adds [from, to), and returns what to ask for. Without a free gap the last one is
 * widened: some PDUs come twice. */
static struct gap add_gap(struct dmtcp_repair *r, uint32_t from, uint32_t to)
{
	struct gap *g = find_gap(r, from, to);
	bool is_widened = !g && r->n == GAPS;

	if (!g && !is_widened) {
		r->gap[r->n++] = (struct gap){ from, to };
		return r->gap[r->n - 1];
	}
	if (is_widened) {
		g = &r->gap[GAPS - 1];
		tcp_task(r->task)->i.in_again = true;
	}
	g->from = MIN(g->from, from);
	g->to = MAX(g->to, to);
	return is_widened ? *g : (struct gap){ from, to };
}

void dmtcp_repair_lost(struct dmtcp_conn *c, struct dm_task *t, uint32_t from,
		       uint32_t to)
{
	struct dmtcp_repair *r = get_repair(c, t);
	struct gap ask, *g = r ? find_gap(r, from, to) : NULL;

	if (!r)
		return;
	/* damaged once more */
	if (g && from < g->to && to > g->from && gives_up(c))
		return;
	ask = add_gap(r, from, to);
	send_snack(c, SNACK_DATA_R2T, t->itt, ask.from, ask.to - ask.from);
}

static void remove_from_gap(struct dmtcp_repair *r, unsigned i, uint32_t sn)
{
	struct gap *g = &r->gap[i];

	if (sn == g->from) {
		g->from++;
	} else if (sn == g->to - 1) {
		g->to--;
	} else if (r->n < GAPS) {
		r->gap[r->n++] = (struct gap){ sn + 1, g->to };
		g->to = sn;
	} else {
		tcp_task(r->task)->i.in_again = true;
	}
	if (g->from == g->to)
		*g = r->gap[--r->n];
}

void dmtcp_repair_came(struct dmtcp_conn *c, const struct dm_task *t,
		       uint32_t sn)
{
	struct dmtcp_repair *r = find_repair(c, t);

	for (unsigned i = 0; r && i < r->n; i++) {
		if (sn < r->gap[i].from || sn >= r->gap[i].to)
			continue;
		remove_from_gap(r, i, sn);
		dmtcp_repair_progress(c);
		return;
	}
}

/* Only the gaps of a WRITE end: a target that has waited for the data of an R2T in
 * vain asks for the data by another one, and does not send the first one again
 * (§7.1.4.1). Read data that a target does not send again stay missing. */
void dmtcp_repair_rejected(struct dmtcp_conn *c, const struct dm_task *t,
			   const struct iscsi_snack *s)
{
	struct dmtcp_repair *r = find_repair(c, t);
	struct gap *g = NULL;

	if (r && s->type == SNACK_DATA_R2T && !t->in.len)
		g = find_gap(r, s->begrun, s->begrun + s->runlen);
	if (!g)
		return;
	*g = r->gap[--r->n];
	dmtcp_repair_progress(c);
	if (!r->n)
		free_repair(r);
}

void dmtcp_repair_received(struct dmtcp_conn *c, const struct dm_task *t)
{
	struct dmtcp_repair *r = find_repair(c, t);

	if (!r || r->n)
		return;
	r->ack_sn = tcp_task(r->task)->i.next_datasn;
	if (!r->owes_ack)
		free_repair(r);
	else
		dmtcp_kick(c);
}

void dmtcp_repair_forget(struct dmtcp_conn *c, const struct dm_task *t)
{
	struct dmtcp_repair *r = find_repair(c, t);

	if (r)
		free_repair(r);
}

void dmtcp_repair_free_all(struct dmtcp_conn *c)
{
	while (!list_empty(&c->recovery.repairs))
		free_repair(repair_at(c->recovery.repairs.next));
}

/* ---- DataACK (§11.16.2) ---- */

/* [RFC 7143: 11.7.2 #4, 11.16.2 #1] */
void dmtcp_repair_ack(struct dmtcp_conn *c, struct dm_task *t, uint32_t ttt,
		      uint64_t lun)
{
	struct dmtcp_repair *r = get_repair(c, t);

	if (!r)
		return;
	r->owes_ack = true;
	r->ttt = ttt;
	r->lun = lun;
	dmtcp_kick(c);
}

/* [RFC 7143: 11.16.4 #1, 11.16.5 #3, 11.16.7 #1] */
static void stage_ack(struct dmtcp_conn *c, struct dmtcp_repair *r)
{
	struct iscsi_pdu p = { .op = ISCSI_SNACK_REQUEST,
			       .final = true,
			       .lun = r->lun,
			       .itt = ISCSI_RESERVED_TAG,
			       .ttt = r->ttt,
			       .expstatsn = c->dm.numbers->expstatsn };

	p.snack.type = SNACK_DATA_ACK;
	p.snack.begrun = r->ack_sn;
	iscsi_bhs_encode(&p, dmtcp_stage_bhs(c));
	dmtcp_stage_pdu(c, NULL, 0, NULL, 0, 0, false);
}

/* It is encoded when it is sent, because none may follow the acknowledgement of the
 * status: the end of the task removes it. It waits for PDUs that are missing. */
/* [RFC 7143: 11.7.2 #5, 11.16.2 #2] */
bool dmtcp_stage_acks(struct dmtcp_conn *c)
{
	list_for_each_safe(it, &c->recovery.repairs) {
		struct dmtcp_repair *r = repair_at(it);

		if (!r->owes_ack || r->n)
			continue;
		if (!dmtcp_stage_has_room(c, NULL, 0))
			return false;
		stage_ack(c, r);
		r->task->acked = r->ack_sn;
		free_repair(r);
	}
	return true;
}

/* ---- time ---- */

void dmtcp_repair_expire(struct dmtcp_conn *c, uint32_t missing)
{
	struct recovery *r = &c->recovery;

	r->deadline = XTIME_NEVER;
	if (is_all_there(c) || gives_up(c))
		return;
	if (missing)
		send_snack(c, SNACK_STATUS, ISCSI_RESERVED_TAG, c->rx_statsn,
			   missing);
	list_for_each(it, &r->repairs) {
		const struct dmtcp_repair *p = repair_at(it);

		for (unsigned i = 0; i < p->n; i++)
			send_snack(c, SNACK_DATA_R2T, p->task->itt,
				   p->gap[i].from,
				   p->gap[i].to - p->gap[i].from);
	}
}
