/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * await.c: at ErrorRecoveryLevel 1 a target does not wait for ever for Data-Outs that
 * were lost, or whose R2T was lost: the sequence reception timeout (RFC 7143 §7.1.4.1,
 * §11.8). rx_target.c asks for the data by a Recovery R2T.
 *
 * Time passes in ticks, and only while a task waits. A task is overdue if none of its
 * data came for LIMIT ticks, and
 *   - either no write data at all came for as long: the initiator has sent what it has;
 *   - or a sequence of a later command has ended meanwhile: initiators send the data of
 *     their commands in turn.
 * So an initiator on a slow link is not asked for data that are on their way. Each
 * further wait for the same data is twice as long.
 */
#include "datamover/tcp/internal.h"

#define TICK	    XTIME_S
#define LIMIT	    2u
#define DOUBLES_MAX 4u

static struct dm_task *task_at(struct list *link)
{
	struct target_task *tt =
		list_entry(link, struct target_task, await.link);

	return dm_task_of_share(container_of(tt, struct dmtcp_task, t));
}

static bool is_awaited(const struct target_task *tt)
{
	return tt->await.link.next && list_linked(&tt->await.link);
}

void dmtcp_await(struct dmtcp_conn *c, struct dm_task *t)
{
	struct target_task *tt = &tcp_task(t)->t;
	struct recovery *r = &c->recovery;

	if (!r->on)
		return;
	tt->await.since = r->tick;
	if (is_awaited(tt))
		return;
	tt->await.began = r->tick;
	list_push_back(&r->awaited, &tt->await.link);
	if (r->deadline == XTIME_NEVER)
		r->deadline = c->now + TICK;
}

void dmtcp_await_no_more(struct dm_task *t)
{
	struct target_task *tt = &tcp_task(t)->t;

	if (is_awaited(tt))
		list_del(&tt->await.link);
}

void dmtcp_await_ended(struct dmtcp_conn *c, const struct dm_task *t)
{
	uint32_t began = tcp_task((struct dm_task *)t)->t.await.began;

	if (sn_lt(c->recovery.newest, began))
		c->recovery.newest = began;
}

/* A connection that is held does not receive what the initiator has sent. */
bool dmtcp_await_tick(struct dmtcp_conn *c)
{
	struct recovery *r = &c->recovery;
	bool waits = !list_empty(&r->awaited);

	r->deadline = waits ? c->now + TICK : XTIME_NEVER;
	if (!waits || c->rx.state == RX_HELD)
		return false;
	r->tick++;
	if (r->seen_bytes != c->rx.out_bytes)
		r->moved = r->tick;
	r->seen_bytes = c->rx.out_bytes;
	return true;
}

static uint32_t limit_of(const struct dmtcp_conn *c, struct dm_task *t)
{
	unsigned rounds = 0;

	for (unsigned i = 0; i < dmtcp_nbursts(&c->dm, tcp_task(t)); i++) {
		const struct burst *b = dmtcp_burst(tcp_task(t), i);

		if (b->active)
			rounds = MAX(rounds, b->rounds);
	}
	return LIMIT << MIN(rounds, DOUBLES_MAX);
}

static bool is_overdue(const struct dmtcp_conn *c, struct dm_task *t)
{
	const struct recovery *r = &c->recovery;
	const struct target_task *tt = &tcp_task(t)->t;
	uint32_t limit = limit_of(c, t);

	if (c->rx.task == t || r->tick - tt->await.since <= limit)
		return false;
	return r->tick - r->moved > limit || sn_lt(tt->await.since, r->newest);
}

struct dm_task *dmtcp_await_overdue(struct dmtcp_conn *c)
{
	list_for_each(it, &c->recovery.awaited)
		if (is_overdue(c, task_at(it)))
			return task_at(it);
	return NULL;
}
