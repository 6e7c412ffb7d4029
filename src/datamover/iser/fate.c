/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fate.c: what ends a connection, and the report that a task is released.
 */
#include "datamover/iser/internal.h"

/* Marks and logs the end; returns whether the caller has to end the queue
 * pair. */
static bool begin_end(struct dmiser_conn *c, int err, const char *why)
{
	if (c->ended)
		return false;
	c->ended = true;
	c->end.err = err;
	if (c->dm->trace)
		trace_emit(c->dm->trace, TRACE_PROTOCOL, "%s iSER: %s: %s",
			   c->dm->peer ? c->dm->peer : "peer", why,
			   err_str(err));
	if (c->dm->state < DM_TERMINATING)
		dm_conn_go(c->dm, DM_TERMINATING);
	return true;
}

/* [RFC 7145: 10.1.3.3 #2-3] */
void dmiser_fail_conn(struct dmiser_conn *c, int err, const char *why)
{
	if (begin_end(c, err, why))
		rcap_terminate(c->qp, err, why);
}

void dmiser_fail_conn_after_sent(struct dmiser_conn *c, int err,
				 const char *why)
{
	if (begin_end(c, err, why))
		rcap_disconnect(c->qp);
}

void dmiser_report_released(struct dmiser_conn *c, struct dm_task *t)
{
	struct dmiser_task *p = iser_task(t);

	if (p->busy || !p->releasing)
		return;
	p->releasing = false;
	c->dm->up->data_completion_notify(c->dm, t, DM_RELEASED, 0);
}
