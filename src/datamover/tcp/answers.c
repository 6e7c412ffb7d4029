/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * answers.c: PDUs with a StatSN at the initiator (RFC 7143 §4.2.2.2). The role gets
 * them in the order of StatSN, so that its ExpStatSN acknowledges no PDU that is
 * missing.
 *
 * At ErrorRecoveryLevel 0 a missing StatSN ends the connection. At level 1 repair.c
 * asks for what is missing; meanwhile the PDUs after it wait in `early`, as does the
 * status of a command whose read data are not complete (§7.9, §11.7.2).
 */
#include <stdlib.h>
#include <string.h>

#include "datamover/tcp/internal.h"

#define EARLY_BYTES (1u << 20) /* of PDUs that wait */

/* A PDU that waits: in dmtcp_conn.lates for PDUs of its task in the stage, in
 * recovery.early for PDUs that are missing. */
struct dmtcp_late {
	struct list link;
	struct iscsi_pdu pdu;
	uint8_t bhs[ISCSI_BHS_LEN];
	bool has_bhs;
	uint8_t data[];
};

/* ---- delivery ---- */

static void deliver(struct dmtcp_conn *c, struct dm_task *t,
		    const struct dm_control *ctl)
{
	int err = c->dm.up->control_notify(&c->dm, ctl, &t);

	if (err)
		dmtcp_fail_conn(c, err);
}

/* Puts a copy of the PDU at the end of l; NULL: no memory. */
static struct dmtcp_late *copy_late(struct list *l,
				    const struct dm_control *ctl)
{
	struct dmtcp_late *late = malloc(sizeof(*late) + ctl->pdu.dsl);

	if (!late)
		return NULL;
	late->pdu = ctl->pdu;
	late->has_bhs = ctl->bhs != NULL;
	if (ctl->bhs)
		memcpy(late->bhs, ctl->bhs, ISCSI_BHS_LEN);
	if (ctl->pdu.dsl)
		memcpy(late->data, ctl->data, ctl->pdu.dsl);
	list_push_back(l, &late->link);
	return late;
}

static struct dm_control control_of(const struct dmtcp_late *l)
{
	return (struct dm_control){ .pdu = l->pdu,
				    .bhs = l->has_bhs ? l->bhs : NULL,
				    .data = l->pdu.dsl ? l->data : NULL };
}

/* The response ends t. t is NULL for the status of an unknown task: the role
 * has to acknowledge its StatSN. */
static void finish_task(struct dmtcp_conn *c, struct dm_task *t,
			const struct dm_control *ctl)
{
	int err = 0;

	if (!t) {
		c->stats.dropped++;
		deliver(c, NULL, ctl);
		return;
	}
	if (!list_empty(&c->recovery.repairs))
		dmtcp_repair_forget(c, t);
	if (!list_empty(&c->rx.order.sets))
		dmtcp_order_forget(c, t);
	/* t sends no more data; NULL: a moved task, which was never queued */
	if (tcp_task(t)->node.link.next)
		list_del(&tcp_task(t)->node.link);
	tcp_task(t)->i.command_pending = tcp_task(t)->i.data_queued = false;
	if (tcp_task(t)->staged == 0) {
		deliver(c, t, ctl);
		return;
	}
	if (tcp_task(t)->i.late)
		err = ERR_PROTOCOL;
	else
		tcp_task(t)->i.late = copy_late(&c->lates, ctl);
	if (!tcp_task(t)->i.late && !err)
		err = ERR_NOMEM;
	if (err)
		dmtcp_fail_conn(c, err);
}

/* t: see dmtcp_answer. */
static void hand_over(struct dmtcp_conn *c, struct dm_task *t,
		      const struct dm_control *ctl)
{
	if (ctl->pdu.op != ISCSI_SCSI_RESPONSE) {
		deliver(c, NULL, ctl);
		return;
	}
	if (!t)
		t = c->dm.up->find_task(&c->dm, ctl->pdu.itt);
	finish_task(c, t, ctl);
}

/* ---- responses that wait for their task's PDUs in the stage ---- */

void dmtcp_late_deliver(struct dmtcp_conn *c, struct dm_task *t)
{
	struct dmtcp_late *l = tcp_task(t)->i.late;
	const struct dm_control ctl = control_of(l);

	tcp_task(t)->i.late = NULL;
	list_del(&l->link);
	deliver(c, t, &ctl);
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

static void drop_all(struct list *lates)
{
	struct list *it;

	while ((it = list_pop_front(lates)))
		free(list_entry(it, struct dmtcp_late, link));
}

void dmtcp_late_drop_all(struct dmtcp_conn *c)
{
	drop_all(&c->lates);
	drop_all(&c->recovery.early);
	c->recovery.early_bytes = 0;
}

/* ---- the order of StatSN ---- */

static size_t early_size(const struct iscsi_pdu *pdu)
{
	return sizeof(struct dmtcp_late) + pdu->dsl;
}

/* Keeps a PDU that came early, in the order of StatSN; a copy of one that waits is
 * dropped. */
static void keep_early(struct dmtcp_conn *c, const struct dm_control *ctl)
{
	const struct iscsi_pdu *pdu = &ctl->pdu;
	struct recovery *r = &c->recovery;
	struct list *before = r->early.prev;
	struct dmtcp_late *l = NULL;

	while (before != &r->early) {
		l = list_entry(before, struct dmtcp_late, link);
		if (l->pdu.statsn == pdu->statsn)
			return;
		if (sn_lt(l->pdu.statsn, pdu->statsn))
			break;
		before = before->prev;
	}
	if (early_size(pdu) > EARLY_BYTES - r->early_bytes) {
		dmtcp_fail_conn(c, ERR_LIMIT);
		return;
	}
	l = copy_late(&r->early, ctl);
	if (!l) {
		dmtcp_fail_conn(c, ERR_NOMEM);
		return;
	}
	list_del(&l->link);
	list_insert_between(&l->link, before, before->next);
	r->early_bytes += early_size(pdu);
}

/* The PDU is the next one, and all read data before it are there. */
/* [RFC 7143: 7.9 #4, 11.7.2 #6] */
static bool has_turn(struct dmtcp_conn *c, const struct iscsi_pdu *pdu)
{
	const struct dm_task *t;

	if (pdu->statsn != c->rx_statsn)
		return false;
	if (pdu->op != ISCSI_SCSI_RESPONSE)
		return true;
	t = c->dm.up->find_task(&c->dm, pdu->itt);
	return !t || !t->in.len || !dmtcp_repair_is_missing(c, t);
}

uint32_t dmtcp_answers_missing(const struct dmtcp_conn *c)
{
	const struct recovery *r = &c->recovery;
	uint32_t next = r->asked;

	if (!list_empty(&r->early))
		next = list_entry(r->early.next, struct dmtcp_late, link)
			       ->pdu.statsn;
	return sn_lt(c->rx_statsn, next) ? next - c->rx_statsn : 0;
}

void dmtcp_answers_go_on(struct dmtcp_conn *c)
{
	struct recovery *r = &c->recovery;

	while (!list_empty(&r->early) && c->fate == STREAM_GO) {
		struct dmtcp_late *l =
			list_entry(r->early.next, struct dmtcp_late, link);
		const struct dm_control ctl = control_of(l);

		if (!has_turn(c, &l->pdu))
			return;
		list_del(&l->link);
		r->early_bytes -= early_size(&l->pdu);
		c->rx_statsn++;
		dmtcp_repair_progress(c);
		hand_over(c, NULL, &ctl);
		free(l);
	}
}

/* The PDU is the next one, and nothing before it is missing: no PDU, no read data. */
static bool nothing_is_missing(const struct dmtcp_conn *c,
			       const struct iscsi_pdu *pdu)
{
	const struct recovery *r = &c->recovery;

	return pdu->statsn == c->rx_statsn && !sn_lt(c->rx_statsn, r->asked) &&
	       list_empty(&r->early) && list_empty(&r->repairs);
}

/* [RFC 7143: 4.2.2.2 #1-2, 7.9 #3] */
static void recover_order(struct dmtcp_conn *c, struct dm_task *t,
			  const struct dm_control *ctl)
{
	const struct iscsi_pdu *pdu = &ctl->pdu;

	if (nothing_is_missing(c, pdu)) {
		c->recovery.asked = ++c->rx_statsn;
		dmtcp_repair_progress(c);
		hand_over(c, t, ctl);
		return;
	}
	if (sn_lt(pdu->statsn, c->rx_statsn)) {
		c->stats.dropped++; /* sent again, and not needed */
		return;
	}
	dmtcp_repair_statsn(c, pdu->statsn, true);
	if (has_turn(c, pdu)) {
		c->rx_statsn++;
		dmtcp_repair_progress(c);
		hand_over(c, t, ctl);
	} else {
		keep_early(c, ctl);
	}
	dmtcp_answers_go_on(c);
}

/* The first Login Response sets the first number. */
/* [RFC 7143: 4.2.2.2 #1 #3] */
void dmtcp_answer(struct dmtcp_conn *c, struct dm_task *t,
		  const struct dm_control *ctl)
{
	const struct iscsi_pdu *pdu = &ctl->pdu;

	if (c->recovery.on) {
		recover_order(c, t, ctl);
		return;
	}
	if (c->full_feature && pdu->statsn != c->rx_statsn) {
		trace_emit(c->dm.trace, TRACE_PROTOCOL,
			   "%s has StatSN %u, expected %u (RFC 7143 "
			   "§4.2.2.2); connection dropped",
			   iscsi_opcode_name(c->rx.pdu.op), pdu->statsn,
			   c->rx_statsn);
		dmtcp_fail_conn(c, ERR_SEQUENCE);
		return;
	}
	c->rx_statsn = pdu->statsn + 1;
	hand_over(c, t, ctl);
}
