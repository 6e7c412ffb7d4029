/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * resend.c: Data-Ins and responses that a SNACK asked for, in the order of the
 * requests (RFC 7143 §11.16). They are staged before other PDUs of the queue, so
 * that a response that follows them is sent after them.
 *
 * A SNACK is short, and what it asks for may be long. So the PDUs of a task are sent
 * again RESENT_TIMES times on average, and then the connection is dropped: the path
 * damages too much, or the initiator does not mean it.
 */
#include <stdlib.h>

#include "datamover/tcp/internal.h"

#define RESENT_TIMES 8
#define RESENT_LEAST 64
/* Further ranges of a task are merged with its last range. */
#define RESENDS_MAX 256

static struct dmtcp_resend *entry_at(struct list *link)
{
	return list_entry(link, struct dmtcp_resend, link);
}

static void free_entry(struct dmtcp_conn *c, struct dmtcp_resend *e)
{
	if (e->control)
		e->control->resending = false;
	list_del(&e->link);
	c->recovery.nresends--;
	free(e);
}

static int add_entry(struct dmtcp_conn *c, const struct dmtcp_resend *what)
{
	struct dmtcp_resend *e = malloc(sizeof(*e));

	if (!e)
		return ERR_NOMEM;
	*e = *what;
	list_push_back(&c->recovery.resends, &e->link);
	c->recovery.nresends++;
	dmtcp_kick(c);
	return 0;
}

/* All PDUs of a sequence but its last one have the same length. */
uint32_t dmtcp_offset_of(const struct dmtcp_conn *c,
			 const struct target_task *tt, uint32_t sn)
{
	uint32_t burst = c->params.max_burst_length, at = tt->ack_sn;
	uint32_t off = tt->ack_off, whole = tt->seg & ~3u;

	while (at < sn) {
		uint32_t left =
			MIN((uint32_t)tt->data.len - off, burst - off % burst);
		uint32_t pdus =
			left <= tt->seg
				? 1
				: 1 + (left - tt->seg + whole - 1) / whole;

		if (sn - at < pdus)
			return off + (sn - at) * whole;
		at += pdus;
		off += left;
	}
	return off;
}

/* The last range of t that waits, or NULL. */
static struct dmtcp_resend *last_range(struct dmtcp_conn *c,
				       const struct dm_task *t)
{
	struct dmtcp_resend *last = NULL;

	list_for_each(it, &c->recovery.resends)
		if (entry_at(it)->task == t && !entry_at(it)->control)
			last = entry_at(it);
	return last;
}

bool dmtcp_may_resend(struct dm_task *t, uint32_t n)
{
	struct target_task *tt = &tcp_task(t)->t;
	uint64_t most = RESENT_LEAST + RESENT_TIMES * (uint64_t)tt->datasn;

	if ((uint64_t)tt->snack.resent + n > most)
		return false;
	tt->snack.resent += n;
	return true;
}

static int widen_range(struct dmtcp_conn *c, struct dmtcp_resend *e,
		       uint32_t sn, uint32_t end)
{
	struct target_task *tt = &tcp_task(e->task)->t;
	uint32_t from = MIN(sn, e->sn), to = MAX(end, e->end);

	if (!dmtcp_may_resend(e->task, to - from - (e->end - e->sn)))
		return ERR_LIMIT;
	e->end = to;
	if (from == e->sn)
		return 0;
	e->sn = from;
	e->off = dmtcp_offset_of(c, tt, from);
	return 0;
}

int dmtcp_data_again(struct dmtcp_conn *c, struct dm_task *t)
{
	if (!c->dm.up->data_again || c->dm.up->data_again(&c->dm, t))
		return 0;
	return tcp_task(t)->t.putting ? ERR_BUSY : ERR_UNSUPPORTED;
}

/* [RFC 7143: 11.16 #5] */
int dmtcp_resend_data(struct dmtcp_conn *c, struct dm_task *t, uint32_t sn,
		      uint32_t end)
{
	struct target_task *tt = &tcp_task(t)->t;
	struct dmtcp_resend *last = last_range(c, t);
	struct dmtcp_resend e = { .task = t, .sn = sn, .end = end };

	if (last && (c->recovery.nresends >= RESENDS_MAX ||
		     (sn >= last->sn && sn <= last->end)))
		return widen_range(c, last, sn, end);
	if (!dmtcp_may_resend(t, end - sn))
		return ERR_LIMIT;
	e.off = dmtcp_offset_of(c, tt, sn);
	return add_entry(c, &e);
}

/* [RFC 7143: 11.4.9 #1, 11.16 #2] */
int dmtcp_resend_control(struct dmtcp_conn *c, struct dmtcp_control *q)
{
	const struct dmtcp_resend e = { .task = q->task, .control = q };
	int err;

	if (q->resending)
		return 0;
	if (q->resent >= RESENT_LEAST)
		return ERR_LIMIT;
	err = add_entry(c, &e);
	if (err)
		return err;
	q->resent++;
	q->resending = true;
	return 0;
}

void dmtcp_resend_forget(struct dmtcp_conn *c, const struct dm_task *t,
			 const struct dmtcp_control *q)
{
	if (c->recovery.nresends == 0)
		return;
	list_for_each_safe(it, &c->recovery.resends) {
		struct dmtcp_resend *e = entry_at(it);

		if ((t && e->task == t) || (q && e->control == q))
			free_entry(c, e);
	}
}

static bool stage_range(struct dmtcp_conn *c, struct dmtcp_resend *e)
{
	while (e->sn < e->end) {
		uint32_t len = dmtcp_stage_one_data_in(
			c, e->task, e->sn, e->off, tcp_task(e->task)->t.seg);

		if (!len)
			return false;
		e->sn++;
		e->off += len;
	}
	return true;
}

bool dmtcp_stage_resend(struct dmtcp_conn *c)
{
	struct dmtcp_resend *e = entry_at(c->recovery.resends.next);

	if (e->control ? !dmtcp_stage_again(c, e->control) : !stage_range(c, e))
		return false;
	free_entry(c, e);
	return true;
}
