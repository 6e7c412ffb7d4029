/* SPDX-License-Identifier: BSD-2-Clause */
/* control.c: requests other than SCSI Commands, and PDUs that a target sends on its
 * own behalf. */
#include <string.h>

#include "initiator/internal.h"

/* ---- requests ---- */

/* Sends it in the order of the commands. */
static int send_numbered(struct ini_conn *c, struct dm_control *ctl)
{
	struct ini_session *s = c->session;
	int err;

	if (!iscsi_initiator_window_open(&s->window))
		return ERR_BUSY;
	ctl->pdu.immediate = false;
	ctl->pdu.cmdsn = s->window.cmdsn;
	err = dm_send_control(c->dm, NULL, ctl);
	if (!err)
		s->window.cmdsn++;
	return err;
}

/* An immediate request needs no room in the window. Where the target has no room
 * for one (RFC 7145 §8.1.1.3), the request takes its turn. */
/* [RFC 7145: 8.1.1.3 #3] */
/* [RFC 7143: 4.2.2.1 #1, 11.5.1 #18] */
int ini_send_request(struct ini_conn *c, struct dm_control *ctl)
{
	int err;

	ctl->pdu.immediate = true;
	ctl->pdu.cmdsn = c->session->window.cmdsn;
	err = dm_send_control(c->dm, NULL, ctl);
	/* §11.5.1: a TASK REASSIGN is always immediate */
	return err == ERR_BUSY && !ctl->reassigned ? send_numbered(c, ctl)
						   : err;
}

/* r goes on with the I bit that it began with (§11.10.3). */
static int send_again(struct ini_conn *c, const struct ini_request *r,
		      struct dm_control *ctl)
{
	if (!r->immediate)
		return send_numbered(c, ctl);
	ctl->pdu.immediate = true;
	ctl->pdu.cmdsn = c->session->window.cmdsn;
	return dm_send_control(c->dm, NULL, ctl);
}

/* Sends a request on c; again: it goes on with the tag of its last response. */
/* [RFC 7143: 6.4 #1] */
static int send_tagged(struct ini_conn *c, struct ini_request *r, bool again,
		       struct dm_control *ctl, xtime deadline)
{
	struct ini_session *s;
	int err;

	if (!c || !ini_conn_is_up(c) || !ini_is_full_feature(c->session))
		return ERR_CLOSED;
	s = c->session;
	r->conn = c;
	r->itt = again ? ini_slot_take_again(s, r) : ini_slot_take(s, NULL, r);
	if (r->itt == ISCSI_RESERVED_TAG)
		return ERR_BUSY;
	r->deadline = deadline;
	r->op = ctl->pdu.op;
	ctl->pdu.final = true;
	ctl->pdu.itt = r->itt;
	err = again ? send_again(c, r, ctl) : ini_send_request(c, ctl);
	r->immediate = ctl->pdu.immediate;
	if (err) {
		ini_slot_free(s, r->itt);
		return err;
	}
	list_push_back(&s->requests, &r->link);
	if (deadline != XTIME_NEVER && !s->has_deadlines) {
		s->has_deadlines = true;
		ini_rearm(s);
	}
	return 0;
}

int ini_conn_request(struct ini_conn *c, struct ini_request *r,
		     struct dm_control *ctl, xtime deadline)
{
	return send_tagged(c, r, false, ctl, deadline);
}

/* [RFC 7143: 11.5.1 #6-8, 11.5.2 #1, 11.5.4 #1, 11.5.5 #1-2] */
/* [RFC 7144: 6.3 #5-7, 6.3.2 #1, 6.3.3 #1-2] */
int ini_task_management(struct ini_session *s, struct ini_request *r,
			enum iscsi_tmf function, uint64_t lun,
			const struct ini_task *ref, xtime deadline)
{
	struct dm_control ctl = { .pdu = { .op = ISCSI_TMF_REQUEST,
					   .lun = lun } };
	int err;

	ctl.pdu.tmf.function = (uint8_t)function;
	ctl.pdu.tmf.rtt = ref ? ref->dm.itt : ISCSI_RESERVED_TAG;
	/* §11.5.5: an immediate command has no CmdSN of its own */
	ctl.pdu.tmf.ref_cmdsn = !ref		 ? 0
				: ref->immediate ? s->window.cmdsn
						 : ref->sent.cmdsn;
	r->function = (uint8_t)function;
	r->lun = lun;
	r->cmdsn = s->window.cmdsn;
	/* §11.5.1: ABORT TASK goes where the task has its allegiance */
	err = ini_conn_request(ref ? ref->sent.conn : ini_conn_pick(s), r, &ctl,
			       deadline);
	if (!err)
		ini_cleared_stop(s, r);
	return err;
}

/* [RFC 7145: 6.2 #4] */
/* [RFC 7143: 11.18.1 #1, 11.18.2 #2] */
int ini_conn_ping(struct ini_conn *c, struct ini_request *r, const void *data,
		  size_t len, xtime deadline)
{
	struct dm_control ctl = { .pdu = { .op = ISCSI_NOP_OUT,
					   .ttt = ISCSI_RESERVED_TAG,
					   .dsl = (uint32_t)len },
				  .data = data };

	/* RFC 7145 §6.2: the answer carries the data back */
	if (c->params.rdma_extensions && len > c->params.max_recv_dsl)
		return ERR_TOO_LONG;
	return ini_conn_request(c, r, &ctl, deadline);
}

int ini_ping(struct ini_session *s, struct ini_request *r, const void *data,
	     size_t len, xtime deadline)
{
	struct ini_conn *c = ini_conn_pick(s);

	return c ? ini_conn_ping(c, r, data, len, deadline) : ERR_CLOSED;
}

bool ini_text_is_pending(const struct ini_conn *c)
{
	list_for_each(it, &c->session->requests) {
		const struct ini_request *r =
			list_entry(it, struct ini_request, link);

		if (r->conn == c && r->op == ISCSI_TEXT_REQUEST)
			return true;
	}
	return false;
}

/* [RFC 7143: 6.2 #4] */
int ini_conn_text(struct ini_conn *c, struct ini_request *r, const void *text,
		  size_t len, const struct iscsi_pdu *last, xtime deadline)
{
	struct dm_control ctl = { .pdu = { .op = ISCSI_TEXT_REQUEST,
					   .ttt = ISCSI_RESERVED_TAG,
					   .dsl = (uint32_t)len },
				  .data = text };

	if (!c)
		return ERR_CLOSED;
	if (ini_text_is_pending(c)) /* §11.10 */
		return ERR_BUSY;
	if (len > c->params.max_send_dsl) /* §11.10.5 */
		return ERR_TOO_LONG;
	if (last) { /* §11.10.4 */
		ctl.pdu.ttt = last->ttt;
		ctl.pdu.lun = last->lun;
	}
	return send_tagged(c, r, last, &ctl, deadline);
}

/* [RFC 7143: 11.10 #1, 11.10.3 #1-2, 11.10.5 #1, 11.11.4 #3] */
int ini_text(struct ini_session *s, struct ini_request *r, const void *text,
	     size_t len, const struct iscsi_pdu *last, xtime deadline)
{
	return ini_conn_text(last ? r->conn : ini_conn_pick(s), r, text, len,
			     last, deadline);
}

void ini_request_end(struct ini_session *s, struct ini_request *r, int err,
		     const struct dm_control *rsp)
{
	list_del(&r->link);
	ini_slot_free(s, r->itt);
	if (r->op == ISCSI_TMF_REQUEST)
		ini_cleared_go_on(s, r); /* those that it has not ended */
	r->done(r, err, rsp);
}

void ini_expire_requests(struct ini_session *s, xtime now)
{
	list_for_each_safe(it, &s->requests) {
		struct ini_request *r =
			list_entry(it, struct ini_request, link);

		if (now < r->deadline)
			continue;
		r->conn->abandoned++;
		ini_request_end(s, r, ERR_TIMEOUT, NULL);
	}
}

/* ---- PDUs of the target's own ---- */

/* The answer carries the tag and LUN of the NOP-In (§11.18) or of Async Message 5
 * (§11.9.1). */
/* [RFC 7143: 11.18 #1-2, 11.18.1 #2 #4, 11.18.2 #3] */
static int answer(struct ini_conn *c, const struct iscsi_pdu *in)
{
	struct dm_control ctl = { .pdu = { .op = ISCSI_NOP_OUT,
					   .final = true,
					   .immediate = true,
					   .lun = in->lun,
					   .itt = ISCSI_RESERVED_TAG,
					   .ttt = in->ttt,
					   .cmdsn =
						   c->session->window.cmdsn } };

	return dm_send_control(c->dm, NULL, &ctl);
}

/* The target has dropped the connection with this CID (§11.9.1). At
 * ErrorRecoveryLevel 2 that is a failure of this connection alone (§7.1.4.3). */
/* [RFC 7143: 7.1.4.3 #3] */
static int drop_conn(struct ini_conn *c, uint16_t cid)
{
	struct ini_session *s = c->session;

	if (s->params.error_recovery_level < 2 || cid == c->offer.id.cid)
		return ERR_CLOSED;
	list_for_each(it, &s->conns) {
		struct ini_conn *o = list_entry(it, struct ini_conn, link);

		if (o->offer.id.cid == cid)
			dm_connection_terminate(o->dm, DM_TERMINATE_NOW,
						ERR_CLOSED);
	}
	return 0;
}

/* All commands of the LUN are being ended: no more data of them, then the answer. */
/* [RFC 7143: 4.2.3.4 #3, 11.9.1 #5] */
static int take_termination(struct ini_conn *c, const struct iscsi_pdu *p)
{
	if (c->session->params.task_reporting != ISCSI_FAST_ABORT)
		return 0;
	ini_cleared_told(c, p->lun);
	return answer(c, p);
}

static int handle_async(struct ini_conn *c, const struct iscsi_pdu *p)
{
	const struct iscsi_async *a = &p->async;
	struct ini_session *s = c->session;

	trace_emit(s->cfg.trace, TRACE_LOGOUT, "asynchronous event %u",
		   a->event);
	/* ini_leave_asked: c is logged out, and the session goes on */
	if (a->event != ISCSI_ASYNC_LOGOUT || !c->leave.asker)
		s->cfg.async(s->cfg.arg, a);
	switch ((enum iscsi_async_event)a->event) {
	case ISCSI_ASYNC_LOGOUT:
		ini_conn_go(c,
			    c->state == ISCSI_S6_IN_LOGOUT /* T14 */
				    ? ISCSI_S6_IN_LOGOUT
				    : ISCSI_S7_LOGOUT_REQUESTED); /* T11, T12 */
		return 0;
	case ISCSI_ASYNC_DROP_CONNECTION:
		return drop_conn(c, a->param1);
	case ISCSI_ASYNC_DROP_SESSION:
		return ERR_CLOSED;
	case ISCSI_ASYNC_TASK_TERMINATION:
		return take_termination(c, p);
	default:
		return 0;
	}
}

/* §7.3: a rejected Data-Out does not end its command. If the target does not have the
 * command, its unsolicited data belong to nothing. */
static bool is_stray_data(const struct ini_slot *slot,
			  const struct iscsi_pdu *bad)
{
	if (bad->op != ISCSI_DATA_OUT)
		return false;
	if (slot && slot->task && bad->ttt == ISCSI_RESERVED_TAG)
		ini_cleared_soon(slot->task);
	return true;
}

/*
 * False: at ErrorRecoveryLevel 1 the rejected PDU ends nothing (§7.3). A command whose
 * immediate data were damaged is sent again (§7.8, §7.2.1). A Recovery R2T asks for
 * damaged Data-Outs, and a rejected SNACK asked for what came already.
 */
/* [RFC 7143: 7.3 #3] */
static bool is_final(struct ini_conn *c, const struct ini_slot *slot,
		     const struct iscsi_pdu *bad, const struct dm_control *ctl)
{
	if (bad->op == ISCSI_SNACK_REQUEST)
		return ctl->pdu.reject.reason == ISCSI_REJECT_SNACK;
	if (ctl->pdu.reject.reason != ISCSI_REJECT_DATA_DIGEST)
		return !is_stray_data(slot, bad);
	if (bad->op == ISCSI_SCSI_COMMAND && slot && slot->task &&
	    slot->task->sent.conn == c)
		return dm_retry(c->dm, &slot->task->dm) != 0;
	return bad->op != ISCSI_DATA_OUT;
}

/* A Reject has a copy of the rejected header; the request with that tag ends
 * (§11.17). */
/* [RFC 7143: 7.3 #3] */
static int handle_reject(struct ini_conn *c, const struct dm_control *ctl)
{
	struct ini_session *s = c->session;
	struct iscsi_pdu bad;
	struct ini_slot *slot;

	if (ctl->pdu.dsl < ISCSI_BHS_LEN)
		return ERR_FORMAT;
	iscsi_bhs_decode(&bad, ctl->data);
	trace_emit(
		s->cfg.trace, TRACE_REJECT,
		"the target rejects a %s: %s (reason %02x, RFC 7143 §11.17.1)",
		iscsi_opcode_name(bad.op),
		iscsi_reject_text(ctl->pdu.reject.reason),
		ctl->pdu.reject.reason);
	slot = ini_slot_find(s, bad.itt);
	if (ini_loses_pdus(s) && !is_final(c, slot, &bad, ctl))
		return 0;
	if (slot && slot->request && slot->request->conn == c) {
		ini_request_end(s, slot->request, ERR_UNSUPPORTED, NULL);
		return 0;
	}
	/* a command: its data may be in progress, so that it cannot end here */
	return slot ? ERR_PROTOCOL : 0;
}

/* §11.2.1.2: the opcode of a response is that of its request plus 20h. */
#define RESPONSE_TO(op) ((op) | 0x20u)

/* An answer to no request is a protocol error, except where a request ended
 * without its answer. A tag is not reused for a long time, so that a second answer
 * finds no request either. */
/* [RFC 7143: 4.2.3.3 #4, 4.2.3.4 #5] */
static int handle_unexpected(struct ini_conn *c, const struct iscsi_pdu *p)
{
	if (c->abandoned) {
		c->abandoned--;
		return 0;
	}
	trace_emit(c->session->cfg.trace, TRACE_PROTOCOL,
		   "%s answers no request (RFC 7143 §11)",
		   iscsi_opcode_name(p->op));
	return ERR_PROTOCOL;
}

/* §4.2.2.2: an answer comes on the connection of its request. */
/* [RFC 7143: 4.2.5.1 #1] */
static int check_conn(const struct ini_conn *c, const struct ini_request *r)
{
	if (r->conn == c)
		return 0;
	trace_emit(c->session->cfg.trace, TRACE_PROTOCOL,
		   "the answer to %s of CID %u came on CID %u (RFC 7143 "
		   "§4.2.2.2)",
		   iscsi_opcode_name(r->op), r->conn->offer.id.cid,
		   c->offer.id.cid);
	return ERR_PROTOCOL;
}

/* [RFC 7143: 4.2.4 #1] */
static int handle_answer(struct ini_conn *c, const struct dm_control *ctl)
{
	struct ini_session *s = c->session;
	struct ini_slot *slot = ini_slot_find(s, ctl->pdu.itt);

	if (ctl->pdu.op == ISCSI_LOGIN_RESPONSE) /* §11.13: only in login */
		return ERR_PROTOCOL;
	if (!slot)
		return handle_unexpected(c, &ctl->pdu);
	if (!slot->request)
		return ERR_PROTOCOL; /* the tag of a SCSI command */
	if (check_conn(c, slot->request))
		return ERR_PROTOCOL;
	if (ctl->pdu.op != RESPONSE_TO(slot->request->op)) {
		trace_emit(s->cfg.trace, TRACE_PROTOCOL,
			   "%s in answer to %s (RFC 7143 §11.2.1.2)",
			   iscsi_opcode_name(ctl->pdu.op),
			   iscsi_opcode_name(slot->request->op));
		return ERR_PROTOCOL;
	}
	if (ctl->pdu.op == ISCSI_TMF_RESPONSE &&
	    ctl->pdu.tmf_response == ISCSI_TMF_COMPLETE)
		ini_cleared_by(s, slot->request);
	/* a command that ended may have ended the request */
	slot = ini_slot_find(s, ctl->pdu.itt);
	if (slot && slot->request)
		ini_request_end(s, slot->request, 0, ctl);
	return 0;
}

int ini_control(struct ini_conn *c, const struct dm_control *ctl)
{
	switch (ctl->pdu.op) {
	case ISCSI_NOP_IN:
		if (ctl->pdu.ttt != ISCSI_RESERVED_TAG)
			return answer(c, &ctl->pdu);
		return ctl->pdu.itt == ISCSI_RESERVED_TAG
			       ? 0
			       : handle_answer(c, ctl);
	case ISCSI_ASYNC_MESSAGE:
		return handle_async(c, &ctl->pdu);
	case ISCSI_REJECT:
		return handle_reject(c, ctl);
	default:
		return handle_answer(c, ctl);
	}
}
