/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reassign.c: TASK REASSIGN (RFC 7143 §7.2.2, §11.5.1): a task of a lost connection
 * that was logged out (recover.c) goes on over the connection on which the request came.
 */
#include "target/task_state.h"

/* §11.5.1: neither text negotiations nor Logouts are reassigned. */
/* [RFC 7143: 11.5.1 #16-17] */
static bool is_other_request(const struct tgt_session *s, uint32_t itt)
{
	list_for_each(it, &s->conns.list) {
		const struct tgt_conn *c =
			list_entry(it, struct tgt_conn, session_link);

		if ((c->text.busy && c->text.itt == itt) ||
		    (c->logout.by && c->logout.itt == itt))
			return true;
	}
	return s->logout.by && s->logout.itt == itt;
}

/* [RFC 7143: 7.2.2 #4-5, 11.5.1 #14] */
uint8_t tgt_reassign_check(const struct tgt_session *s, uint32_t itt,
			   struct tgt_task **task)
{
	struct tgt_task *t = tgt_task_find(s, itt);

	*task = NULL;
	if (s->params.error_recovery_level < 2)
		return ISCSI_TMF_NO_REASSIGN;
	if (is_other_request(s, itt))
		return ISCSI_TMF_REJECTED;
	if (!t || !t->conn || tgt_task_is_aborting(t))
		return ISCSI_TMF_NO_TASK;
	if (t->conn->dm || !t->conn->end.logged_out)
		return ISCSI_TMF_TASK_ALLEGIANT;
	*task = t;
	return ISCSI_TMF_COMPLETE;
}

/* ABORT TASK advertises no buffer for read data over RDMA (RFC 7145 §7.3.3). */
static bool cannot_put(const struct tgt_task *t, const struct dm_remote *remote)
{
	return t->session->conns.rdma && !remote && t->dev.in.len;
}

/* [RFC 7143: 7.2.2 #3] */
void tgt_reassign(struct tgt_task *t, struct tgt_conn *c, uint32_t exp_datasn,
		  const struct dm_remote *remote)
{
	conn_trace(c, TRACE_TMF,
		   "command %08x of connection %u goes on over connection %u",
		   t->dm.itt, t->conn->cid, c->cid);
	/* §7.2.2: the command is in progress for the initiator, and its outcome open */
	if (tgt_task_is_begun(t) &&
	    (!dev_task_fix(&t->dev) || cannot_put(t, remote)))
		dev_task_lose(&t->dev);
	dm_adopt(c->dm, &t->dm, exp_datasn, remote);
	t->conn = c;
	t->moves_since = 0;
	switch (t->state) {
	case TGT_TASK_DATA:
		tgt_command_go_on(t);
		break;
	case TGT_TASK_PUT:
	case TGT_TASK_RESPONSE:
		tgt_response_again(t);
		break;
	default: /* its device or its memory goes on with it */
		break;
	}
}
