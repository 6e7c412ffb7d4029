/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * conn.c: the connections of a session: their logins, up-calls, pings and ends. The
 * leading login begins the session. The login of each further connection has the
 * ISID and the TSIH of the session and a CID of its own (RFC 7143 §6.3.1), and takes
 * over what the leading login negotiated for the session.
 */
#include <stdio.h>
#include <stdlib.h>

#include "initiator/internal.h"

#define FULL_FEATURE 3 /* NSG, §11.12.3 */

#define TRACE(c, event, ...) \
 trace_emit((c)->session->cfg.trace, event, __VA_ARGS__)

static bool is_leading(const struct ini_conn *c)
{
	return c->offer.id.tsih == 0;
}

/* ---- login ---- */

/* The login has ended: reports it to the caller. */
static void end_login(struct ini_conn *c, int err)
{
	struct ini_session *s = c->session;

	if (!c->login)
		return;
	c->failure = *iscsi_login_failure(c->login);
	iscsi_login_free(c->login);
	c->login = NULL;
	c->login_deadline = XTIME_NEVER;
	if (is_leading(c)) {
		s->failure = c->failure;
		s->cfg.logged_in(s->cfg.arg, err);
	} else {
		s->cfg.joined(s->cfg.arg, c, err);
	}
}

/* A target that refuses a further connection, or does not answer, leaves the
 * session as it is. One that violates the protocol in the login is not trusted
 * with the commands of the session. */
static bool breaks_session(const struct ini_conn *c, int err)
{
	return is_leading(c) ||
	       (err != ERR_LOGIN && err != ERR_CLOSED && err != ERR_RESET &&
		err != ERR_TIMEOUT && err != ERR_NOMEM);
}

/* [RFC 7145: 10.1.3.1 #2, 10.1.4.6 #1-2 #5-6] */
/* [RFC 7143: 7.12 #2, 11.13.5 #3] */
void ini_conn_fail_login(struct ini_conn *c, int err)
{
	TRACE(c, TRACE_LOGIN_FAILED, "%s: %s", err_str(err),
	      iscsi_login_failure(c->login)->text);
	if (breaks_session(c, err))
		ini_kill(c->session, err);
	else
		dm_connection_terminate(c->dm, DM_TERMINATE_NOW, err);
	end_login(c, err);
}

/* prepare_full_feature allocates what the full feature phase needs before the
 * request that may end the login: in RDMA mode the target's first PDU may come
 * right after its Login Response, and a message without a receive ends the
 * connection (RFC 7145 §5.1.1). Until the keys are negotiated, the largest PDU
 * that this login declares counts. */
static int prepare_full_feature(struct ini_conn *c,
				const struct iscsi_login_fields *l)
{
	struct dm_resources r = { .max_tasks = c->session->cfg.depth };
	struct iscsi_params p = c->offer.want;

	if (c->dm->rdma != DM_RDMA_ALREADY || !l->transit ||
	    l->nsg != FULL_FEATURE)
		return 0;
	p.max_recv_dsl = MAX(p.max_recv_dsl, p.initiator_recv_dsl);
	dm_notice_key_values(c->dm, &p);
	return dm_allocate_connection_resources(c->dm, &r);
}

static int send_login(struct ini_conn *c)
{
	uint8_t data[ISCSI_LOGIN_PDU_MAX];
	struct dm_control ctl = { .data = data };
	int err;

	iscsi_login_tx(c->login, &ctl.pdu, data);
	ctl.pdu.cmdsn = c->session->window.cmdsn;
	err = prepare_full_feature(c, &ctl.pdu.login);
	return err ? err : dm_send_control(c->dm, NULL, &ctl);
}

/* [RFC 7145: 5.1.1 #4] */
static int enter_full_feature(struct ini_conn *c)
{
	struct ini_session *s = c->session;
	struct dm_resources r = { .max_tasks = s->cfg.depth };
	bool is_first; /* ... of a session that has waited */
	int err;

	c->params = *iscsi_login_params(c->login);
	if (is_leading(c)) {
		s->params = c->params;
		s->tpgt = iscsi_login_tpgt(c->login);
		s->tsih = iscsi_login_id(c->login)->tsih;
	}
	dm_notice_key_values(c->dm, &c->params);
	err = dm_allocate_connection_resources(c->dm, &r);
	if (err)
		return err;
	err = dm_enable_datamover(c->dm, NULL);
	if (err)
		return err;
	ini_conn_go(c, ISCSI_S5_LOGGED_IN); /* T5 */
	s->transport = c->dm->transport;
	is_first = ini_is_waiting(s);
	if (is_leading(c))
		ini_session_logged_in(s);
	else if (is_first)
		ini_session_continued(s);
	c->heard = s->now;
	ini_rearm(s); /* pings begin now, not at the deadline of the login */
	if (is_leading(c))
		TRACE(c, TRACE_LOGIN, "%s over %s", s->cfg.login.id.target_name,
		      c->dm->transport);
	else
		TRACE(c, TRACE_LOGIN, "%s over %s, CID %u",
		      s->cfg.login.id.target_name, c->dm->transport,
		      c->offer.id.cid);
	end_login(c, 0);
	if (is_first)
		ini_recover_continue(c);
	return 0;
}

static void take_window(struct ini_session *s, const struct iscsi_pdu *p)
{
	if (iscsi_initiator_window_update(&s->window, p->expcmdsn,
					  p->maxcmdsn) &&
	    ini_is_full_feature(s))
		ini_pump(s);
}

/* ExpStatSN acknowledges all up to the latest StatSN (§11.4.8), although one may
 * be missing: ErrorRecoveryLevel 0 has no retransmission, so that cleared.c finds
 * commands whose response was lost. */
static void take_numbers(struct ini_conn *c, const struct iscsi_pdu *p)
{
	bool unnumbered = p->op == ISCSI_NOP_IN && p->itt == ISCSI_RESERVED_TAG;

	if (!unnumbered && sn_lt(c->numbers.expstatsn, p->statsn + 1))
		c->numbers.expstatsn = p->statsn + 1;
	take_window(c->session, p);
}

/* §11.13.4: the first Login Response sets the StatSN, each later one has the next
 * StatSN, so that a repeated or lost one is noticed. §11.13.5: the numbers are valid
 * in a response of Status-Class 0 only. */
static bool take_login_statsn(struct ini_conn *c, const struct iscsi_pdu *p)
{
	bool next = !c->login_heard || p->statsn == c->numbers.expstatsn;

	if (p->op != ISCSI_LOGIN_RESPONSE || p->login.status_class)
		return true; /* not checked here: the login fails anyway */
	c->login_heard = true;
	c->numbers.expstatsn = p->statsn + 1;
	return next;
}

/* ExpCmdSN and MaxCmdSN are the session's, of which the connection is a part from the
 * final Login Response on: an earlier one neither acknowledges a command nor opens the
 * window (§4.2.2.1, §11.13.5). */
static int handle_login(struct ini_conn *c, const struct dm_control *ctl)
{
	int r = ERR_SEQUENCE;

	if (take_login_statsn(c, &ctl->pdu))
		r = iscsi_login_rx(c->login, &ctl->pdu, ctl->data);
	if (r == ISCSI_LOGIN_SEND) {
		r = send_login(c);
	} else if (r == ISCSI_LOGIN_DONE) {
		take_window(c->session, &ctl->pdu);
		r = enter_full_feature(c);
	}
	if (r < 0)
		ini_conn_fail_login(c, r);
	return 0;
}

void ini_conn_start(struct ini_conn *c, xtime now)
{
	struct ini_session *s = c->session;
	int err;

	s->now = now;
	ini_conn_go(c, ISCSI_S2_XPT_WAIT); /* T1 */
	ini_conn_go(c, ISCSI_S4_IN_LOGIN); /* T4 */
	if (s->cfg.login_time != XTIME_NEVER)
		c->login_deadline = now + s->cfg.login_time;
	err = iscsi_login_start(c->login);
	if (!err)
		err = send_login(c);
	if (err)
		ini_conn_fail_login(c, err);
	ini_rearm(s);
}

/* ---- up-calls of the datamover ---- */

static void take_async(struct ini_conn *c, const struct iscsi_async *a)
{
	if (a->event == ISCSI_ASYNC_NEGOTIATE)
		ini_negotiate(c);
	if (a->event == ISCSI_ASYNC_LOGOUT)
		ini_leave_asked(c, a->param3);
}

static int take_pdu(struct ini_conn *c, const struct dm_control *ctl,
		    struct dm_task *task)
{
	take_numbers(c, &ctl->pdu);
	if (task) {
		ini_task_response(c->session,
				  container_of(task, struct ini_task, dm), ctl);
		return 0;
	}
	if (ctl->pdu.op == ISCSI_ASYNC_MESSAGE)
		take_async(c, &ctl->pdu.async);
	return ini_control(c, ctl);
}

static int control_notify(struct dm_conn *dm, const struct dm_control *ctl,
			  struct dm_task **task)
{
	struct ini_conn *c = dm->user;
	int err;

	c->heard = c->session->now;
	if (c->login)
		return handle_login(c, ctl);
	err = take_pdu(c, ctl, *task);
	if (!err && c->leave.asker) /* nothing may be in progress any more */
		ini_leave_check(c);
	return err;
}

static void data_completion_notify(struct dm_conn *dm, struct dm_task *t,
				   enum dm_completion what, int err)
{
	struct ini_conn *c = dm->user;

	(void)err;
	/* an initiator gets no other: cleared.c waits for this one */
	if (what == DM_RELEASED)
		ini_cleared_released(container_of(t, struct ini_task, dm));
	ini_leave_check(c);
}

static void data_ack_notify(struct dm_conn *dm, struct dm_task *t,
			    uint32_t datasn)
{
	(void)dm;
	(void)t;
	(void)datasn;
}

/* The target violates the protocol: no further PDU of it can be trusted. */
/* [RFC 7143: 7.7 #1-2] */
static void error_notify(struct dm_conn *dm, const struct iscsi_pdu *pdu,
			 const uint8_t bhs[ISCSI_BHS_LEN], int err)
{
	struct ini_conn *c = dm->user;

	(void)bhs;
	TRACE(c, TRACE_PROTOCOL, "the target sent %s: %s (RFC 7143 §11)",
	      iscsi_opcode_name(pdu->op), err_str(err));
	ini_kill(c->session, err);
}

/* Returns whether nothing of the connection is left to recover (§8.1.3): its login
 * had not ended, or it was logged out, alone or with the session. */
static bool ends_clean(const struct ini_conn *c)
{
	return c->state == ISCSI_S4_IN_LOGIN ||
	       c->state == ISCSI_S6_IN_LOGOUT || c->session->is_logging_out;
}

/* The transport is gone. T7 ends a login, T8, T13 and T18 follow the answer to the
 * Logout of the session, and T15, T16 and T17 are the rest. */
static void end_state(struct ini_conn *c)
{
	bool free = c->state == ISCSI_S4_IN_LOGIN ||
		    c->session->is_logged_out || c->leave.is_answered;

	if (c->state != ISCSI_S1_FREE && c->state != ISCSI_S8_CLEANUP_WAIT)
		ini_conn_go(c, free ? ISCSI_S1_FREE : ISCSI_S8_CLEANUP_WAIT);
}

/* The commands of the connection go on: over other connections, or over one that continues
 * the session. */
static void lose_conn(struct ini_conn *c, int err)
{
	struct ini_session *s = c->session;
	bool is_last = ini_recover_is_last(c);

	end_state(c);
	dm_deallocate_connection_resources(c->dm);
	if (is_last && !ini_is_waiting(s)) /* several may end at once */
		ini_session_failed(s);
	ini_fail_requests(c, err);
	ini_leave_end(c, err);
	if (is_last)
		ini_recover_wait(c);
	else
		ini_recover_begin(c);
	/* the caller may have given the session up when a request failed */
	if (s->is_ending && list_empty(&s->conns))
		ini_session_lost_conn(s, false, err);
}

/* [RFC 7143: 7.1.4.3 #1] */
static void connection_terminate_notify(struct dm_conn *dm, int err)
{
	struct ini_conn *c = dm->user;
	struct ini_session *s = c->session;
	bool clean = ends_clean(c);

	if (!err)
		err = s->kill_err;
	if (c->login)
		end_login(c, err ? err : ERR_CLOSED);
	if (ini_recover_can(c, err)) {
		lose_conn(c, err ? err : ERR_CLOSED);
		return;
	}
	if (!clean)
		s->is_ending = true;
	ini_fail_conn(c, err ? err : ERR_CLOSED);
	end_state(c);
	if (c->state == ISCSI_S8_CLEANUP_WAIT)
		ini_conn_go(c, ISCSI_S1_FREE); /* M1 */
	dm_deallocate_connection_resources(dm);
	list_del(&c->link);
	ini_leave_end(c, err);
	free(c);
	ini_session_lost_conn(s, clean, err);
}

/* The task with this tag. §4.2.2.2: the target answers on the connection of the
 * command; a PDU of the task on another connection cannot be trusted. */
/* [RFC 7143: 4.2.5.1 #1 #4] */
static struct dm_task *find_task(struct dm_conn *dm, uint32_t itt)
{
	struct ini_conn *c = dm->user;
	struct ini_slot *slot = ini_slot_find(c->session, itt);

	if (!slot || !slot->task)
		return NULL;
	if (slot->task->sent.conn == c)
		return &slot->task->dm;
	TRACE(c, TRACE_PROTOCOL,
	      "a PDU for command %02x of CID %u came on CID %u (RFC 7143 "
	      "§4.2.2.2)",
	      slot->task->cdb[0], slot->task->sent.conn->offer.id.cid,
	      c->offer.id.cid);
	ini_kill(c->session, ERR_PROTOCOL);
	return NULL;
}

static const struct dm_up_ops up_ops = {
	.control_notify = control_notify,
	.data_completion_notify = data_completion_notify,
	.data_ack_notify = data_ack_notify,
	.error_notify = error_notify,
	.connection_terminate_notify = connection_terminate_notify,
	.find_task = find_task,
};

/* ---- begin and end ---- */

struct ini_conn *ini_conn_make(struct ini_session *s, struct dm_conn *dm,
			       uint16_t tsih, uint16_t cid)
{
	struct ini_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->session = s;
	c->offer = s->cfg.login;
	c->offer.id.cid = cid;
	c->offer.id.tsih = tsih;
	c->offer.session = tsih ? &s->params : NULL;
	c->login = iscsi_login_new(&c->offer);
	if (!c->login) {
		free(c);
		return NULL;
	}
	snprintf(c->name, sizeof(c->name), tsih ? "target, CID %u" : "target",
		 cid);
	c->dm = dm;
	c->login_deadline = c->ping_deadline = XTIME_NEVER;
	list_push_back(&s->conns, &c->link);
	dm_attach(dm, &up_ops, c, &c->numbers);
	dm_set_trace(dm, s->cfg.trace, c->name);
	return c;
}

/* What the first Login Request acknowledges: the responses that came on the connection that
 * it reinstates; of several with this CID, on the one that was lost last (§11.12.9). */
static uint32_t old_expstatsn(const struct ini_session *s, uint16_t cid)
{
	uint32_t n = 0;

	list_for_each(it, &s->lost) {
		const struct ini_conn *c =
			list_entry(it, struct ini_conn, link);

		if (c->offer.id.cid == cid)
			n = c->numbers.expstatsn;
	}
	return n;
}

struct ini_conn *ini_conn_new(struct ini_session *s, struct dm_conn *dm,
			      uint16_t cid)
{
	struct ini_conn *c;

	if (!ini_is_full_feature(s) && !ini_is_waiting(s))
		return NULL;
	c = ini_conn_make(s, dm, s->tsih, cid);
	if (c)
		c->numbers.expstatsn = old_expstatsn(s, cid);
	return c;
}

void ini_conn_free(struct ini_conn *c)
{
	if (!c)
		return;
	list_del(&c->link);
	iscsi_login_free(c->login);
	free(c);
}

const struct iscsi_login_failure *ini_conn_failure(const struct ini_conn *c)
{
	return &c->failure;
}
