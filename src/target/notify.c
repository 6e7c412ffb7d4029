/* SPDX-License-Identifier: BSD-2-Clause */
/* notify.c: accept, and the up-calls of the datamover. */
#include <stdlib.h>

#include "base/err.h"
#include "target/internal.h"

/* numbers.expstatsn: what the initiator has received. The ExpStatSN of a Logout of a
 * connection may be that of another one (§11.14.4). */
static void take_expstatsn(struct tgt_conn *c, const struct iscsi_pdu *p)
{
	struct iscsi_numbers *n = &c->numbers;

	if (!sn_lt(n->expstatsn, p->expstatsn) ||
	    sn_lt(n->statsn, p->expstatsn) ||
	    (p->op == ISCSI_LOGOUT_REQUEST &&
	     p->logout.reason != ISCSI_LOGOUT_SESSION))
		return;
	n->expstatsn = p->expstatsn;
	if (c->session->fences.step != TGT_FENCE_NONE)
		tgt_fence_acknowledged(c->session);
}

static int control_notify(struct dm_conn *dm, const struct dm_control *ctl,
			  struct dm_task **task)
{
	struct tgt_conn *c = dm->user;

	c->heard = true;
	*task = NULL;
	if (c->closing)
		return 0;
	if (c->login)
		return tgt_login_rx(c, ctl);
	take_expstatsn(c, &ctl->pdu);
	if (c->unverified.pending)
		tgt_command_verified(c);
	if (ctl->pdu.op == ISCSI_SCSI_COMMAND)
		return tgt_command(c, ctl, task);
	return tgt_request(c, ctl);
}

/* If no other task is left, no response reports that the window is open again; nor
 * if all tasks that are left wait for their acknowledgement. */
static void response_sent(struct tgt_conn *c, struct tgt_task *t)
{
	uint32_t before = c->numbers.maxcmdsn;
	bool grew;

	tgt_task_put(t);
	grew = c->numbers.maxcmdsn != before;
	if (c->session->stalled &&
	    (c->session->tasks.used == 0 || (c->dm->retains && grew)))
		tgt_announce_window(c);
}

static void data_completion_notify(struct dm_conn *dm, struct dm_task *d,
				   enum dm_completion what, int err)
{
	struct tgt_task *t = container_of(d, struct tgt_task, dm);
	struct tgt_conn *c = dm->user;

	c->heard = true;
	switch (what) {
	case DM_RESPONSE_SENT:
		response_sent(c, t);
		break;
	case DM_RELEASED:
		tgt_abort_released(t);
		break;
	default:
		tgt_command_data(t, what, err);
		break;
	}
}

static void data_ack_notify(struct dm_conn *dm, struct dm_task *t,
			    uint32_t datasn)
{
	/* the datamover has noted it */
	(void)dm;
	(void)t;
	(void)datasn;
}

static bool data_again(struct dm_conn *dm, struct dm_task *d)
{
	(void)dm;
	return dev_task_fix(&container_of(d, struct tgt_task, dm)->dev);
}

/* Maps a code of base/err.h to a Reject reason (§11.17.1). */
/* [RFC 7143: 7.8 #2] */
static enum iscsi_reject_reason reject_reason(int err)
{
	switch (err) {
	case ERR_DATA_DIGEST:
		return ISCSI_REJECT_DATA_DIGEST;
	case ERR_OPCODE:
	case ERR_UNSUPPORTED:
		return ISCSI_REJECT_NOT_SUPPORTED;
	case ERR_FORMAT:
	case ERR_RANGE:
	case ERR_NOT_FOUND:
	case ERR_SEQUENCE:
		return ISCSI_REJECT_INVALID_PDU_FIELD;
	default:
		return ISCSI_REJECT_PROTOCOL;
	}
}

/* [RFC 7143: 7.3 #1] */
static void error_notify(struct dm_conn *dm, const struct iscsi_pdu *pdu,
			 const uint8_t bhs[ISCSI_BHS_LEN], int err)
{
	struct tgt_conn *c = dm->user;

	if (!tgt_conn_open(c))
		return;
	if (c->login || !c->session) {
		tgt_conn_fail(c, err, iscsi_opcode_name(pdu->op));
		return;
	}
	if (err == ERR_DATA_DIGEST && pdu->op == ISCSI_SCSI_COMMAND &&
	    pdu->itt == c->unverified.itt)
		tgt_command_discard(c);
	else
		tgt_command_verified(c);
	tgt_reject(c, reject_reason(err), bhs, err_str(err));
}

static void log_end(const struct tgt_conn *c, int err)
{
	bool logged_out = c->state == ISCSI_S6_IN_LOGOUT ||
			  (c->session && c->session->logout.begun);

	if (c->session && c->session->node)
		conn_trace(c, TRACE_LOGOUT, "session %u to %s ended: %s",
			   c->session->tsih, c->session->id.target_name,
			   logged_out ? "logged out"
			   : err      ? err_str(err)
				      : "closed by the peer without logout");
	conn_trace(c, TRACE_CONN_CLOSE, "closed: %s",
		   err ? err_str(err) : "orderly");
}

/* The transport is gone. A connection that waits for recovery stays in
 * CLEANUP_WAIT, unless it was logged out. */
static void leave_full_feature(struct tgt_conn *c, int err)
{
	bool waits = c->session && tgt_recover_wants(c);

	if (c->state == ISCSI_S1_FREE)
		return;
	if (waits && !c->end.logged_out) {
		tgt_conn_go(c, ISCSI_S8_CLEANUP_WAIT); /* T15, T17 */
		return;
	}
	if (err &&
	    iscsi_conn_may_go(ISCSI_TARGET, c->state, ISCSI_S8_CLEANUP_WAIT) &&
	    iscsi_conn_may_go(ISCSI_TARGET, ISCSI_S8_CLEANUP_WAIT,
			      ISCSI_S1_FREE))
		tgt_conn_go(c, ISCSI_S8_CLEANUP_WAIT);
	tgt_conn_go(c, ISCSI_S1_FREE);
}

/* §7.7: not one connection is recovered then, but the session ends. */
/* [RFC 7143: 7.7 #1] */
static bool is_format_error(int err)
{
	return err == ERR_FORMAT || err == ERR_TOO_LONG || err == ERR_PROTOCOL;
}

/* [RFC 7145: 10.1.1.1 #1, 10.1.4.6 #3-4] [RFC 5047: 9.2 #1] */
/* [RFC 7143: 7.1.4.3 #4] */
static void connection_terminate_notify(struct dm_conn *dm, int err)
{
	struct tgt_conn *c = dm->user;
	struct tgt_worker *w = c->worker;
	struct tgt_session *s = c->session;
	bool logged_out = c->state == ISCSI_S6_IN_LOGOUT;

	log_end(c, err);
	if (is_format_error(err))
		c->end.final = true;
	leave_full_feature(c, err);
	c->closing = true;
	list_del(&c->link);
	tgt_due_remove(c);
	tgt_stats_conn_ended(c, err);
	w->tgt->cfg.ended(w->tgt->cfg.arg, c->info.owner, logged_out);
	tgt_reinstate_forget(c);
	tgt_login_free(c);
	tgt_join_forget(c);
	tgt_logout_forget(c);
	tgt_text_reset(c);
	dm_deallocate_connection_resources(dm);
	dm_set_trace(dm, NULL, NULL); /* dm borrowed the peer's name from c */
	if (!s || !tgt_session_conn_ended(s, c))
		free(c);
}

/* A task that the datamover was asked to release is not found any more, nor is one
 * of another connection (§4.2.2.2). */
/* [RFC 7143: 4.2.5.1 #1 #3] */
static struct dm_task *find_task(struct dm_conn *dm, uint32_t itt)
{
	struct tgt_conn *c = dm->user;
	struct tgt_task *t = c->session ? tgt_task_find(c->session, itt) : NULL;

	return t && t->conn == c && !tgt_task_is_released(t) ? &t->dm : NULL;
}

static const struct dm_up_ops up_ops = {
	.control_notify = control_notify,
	.data_completion_notify = data_completion_notify,
	.data_ack_notify = data_ack_notify,
	.data_again = data_again,
	.error_notify = error_notify,
	.connection_terminate_notify = connection_terminate_notify,
	.find_task = find_task,
};

int tgt_conn_accept(struct tgt_worker *w, struct dm_conn *dm,
		    const struct tgt_conn_info *info, xtime now)
{
	struct tgt_conn *c;
	int err;

	if (w->dues.n >= w->tgt->cfg.max_conns) {
		trace_emit(w->tgt->cfg.trace, TRACE_CONN_LIMIT,
			   "%s refused: too many connections", info->peer);
		return ERR_LIMIT;
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		return ERR_NOMEM;
	c->worker = w;
	c->dm = dm;
	c->info = *info;
	c->ping.ttt = ISCSI_RESERVED_TAG;
	c->text.ttt = ISCSI_RESERVED_TAG;
	list_init(&c->logout.abort.link);
	c->accepted = now;
	c->deadline = now + w->tgt->cfg.login_time;
	c->stall.at = XTIME_NEVER;
	err = tgt_due_add(c);
	if (!err)
		err = tgt_login_new(c);
	if (err) {
		tgt_due_remove(c);
		free(c);
		return err;
	}
	w->now = now;
	list_push_back(&w->conns, &c->link);
	tgt_rearm(w);
	dm_attach(dm, &up_ops, c, &c->numbers);
	dm_set_trace(dm, w->tgt->cfg.trace, c->info.peer);
	tgt_conn_go(c, ISCSI_S3_XPT_UP); /* T3 */
	conn_trace(c, TRACE_CONN_OPEN, "accepted on %s over %s", info->local,
		   dm->transport);
	return 0;
}
