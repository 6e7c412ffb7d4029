/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * retain.c: ErrorRecoveryLevel 2 at the target (RFC 7145 §10.2.2). A task keeps its
 * response and read data until the initiator's ExpStatSN acknowledges them: the
 * completion of a Send does not show that the initiator has the message. If the connection
 * is lost before that, the task goes on over another one, with new STags.
 *
 * The queue pair of the lost connection has returned all work requests before
 * Connection_Terminate_Notify, so it accesses no memory of the task any more.
 */
#include "datamover/iser/internal.h"

static void report_sent(struct dmiser_conn *c, struct dm_task *t)
{
	c->dm->up->data_completion_notify(c->dm, t, DM_RESPONSE_SENT, 0);
}

void dmiser_retain(struct dmiser_conn *c, struct dm_task *t, uint32_t statsn)
{
	struct target_task *tt = &iser_task(t)->t;

	tt->statsn = statsn;
	tt->sent = tt->acked = false;
	list_push_back(&c->unacked, &tt->unacked_link);
}

void dmiser_response_sent(struct dmiser_conn *c, struct dm_task *t)
{
	struct target_task *tt = &iser_task(t)->t;

	tt->sent = true;
	if (tt->acked || !c->dm->retains)
		report_sent(c, t);
}

/* An ExpStatSN of a PDU that was not sent yet is ignored. */
void dmiser_acknowledge(struct dmiser_conn *c, uint32_t expstatsn)
{
	if (sn_lt(c->dm->numbers->statsn, expstatsn))
		return;
	while (!list_empty(&c->unacked)) {
		struct target_task *tt = list_entry(
			c->unacked.next, struct target_task, unacked_link);
		struct dm_task *t = dm_task_of_share(
			container_of(tt, struct dmiser_task, t));

		if (!sn_lt(tt->statsn, expstatsn))
			return;
		list_del(&tt->unacked_link);
		tt->acked = true;
		if (tt->sent)
			report_sent(c, t);
	}
}

/* ExpDataSN acknowledges nothing: that of a read is 0 (§3.3), and R2Ts are RDMA Reads,
 * which no initiator counts. RDMA Reads of the lost connection have acknowledged read
 * data (put.c). A RDMA Read asks for all but the data that came, and never
 * for immediate data: the STag does not name them. */
/* [RFC 7145: 7.3.3 #11-13, 10.2.2 #2-4] */
void dmiser_adopt(struct dm_conn *dm, struct dm_task *t, uint32_t exp_datasn,
		  const struct dm_remote *remote)
{
	static const struct dm_remote none;
	struct target_task *tt = &iser_task(t)->t;
	uint32_t came = t->out_done, immediate = t->immediate;
	uint32_t acked_to = tt->acked_to, acked_sn = tt->acked_sn;
	int data_err = tt->data_err;

	(void)dm;
	(void)exp_datasn;
	dm_task_init(t);
	t->out_done = MAX(came, immediate);
	t->immediate = tt->unsolicited_len = immediate;
	tt->data_err = data_err;
	tt->acked_to = acked_to;
	tt->datasn = tt->acked_sn = acked_sn;
	tt->bound = true;
	tt->remote = remote ? *remote : none;
}
