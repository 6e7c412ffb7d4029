/* SPDX-License-Identifier: BSD-2-Clause */
/* conn.c: connections: from accept to the terminate notice, and their clock. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "target/internal.h"

const char *tgt_conn_who(const struct tgt_conn *c)
{
	return c->session ? c->session->id.initiator_name : "(login)";
}

void tgt_conn_go(struct tgt_conn *c, enum iscsi_conn_state next)
{
	if (trace_wanted(c->worker->tgt->cfg.trace, TRACE_LEVEL_DEBUG))
		conn_trace(c, TRACE_STATE, "%s -> %s (%s)",
			   iscsi_conn_state_str(c->state),
			   iscsi_conn_state_str(next),
			   iscsi_conn_transition(ISCSI_TARGET, c->state, next));
	iscsi_conn_go(ISCSI_TARGET, &c->state, next);
}

bool tgt_conn_open(const struct tgt_conn *c)
{
	return c && !c->closing && c->dm->state < DM_TERMINATING;
}

/* The connection is to end; the notice follows. */
void tgt_conn_end(struct tgt_conn *c, enum dm_terminate how, int err)
{
	if (c->closing && how == DM_TERMINATE_AFTER_SENT)
		return;
	c->closing = true;
	/* a peer that does not take what is queued for it can't hold on */
	c->deadline = 0;
	tgt_rearm(c->worker);
	dm_connection_terminate(c->dm, how, err);
}

void tgt_conn_fail(struct tgt_conn *c, int err, const char *why)
{
	if (!tgt_conn_open(c))
		return;
	conn_trace(c, TRACE_PROTOCOL, "%s: %s; connection dropped", why,
		   err_str(err));
	tgt_conn_end(c, DM_TERMINATE_NOW, err);
}

/* Sends a control PDU that takes a StatSN. */
/* [RFC 7145: 8.1.2 #2-3] */
int tgt_conn_send(struct tgt_conn *c, struct dm_control *ctl)
{
	int err;

	if (!tgt_conn_open(c))
		return 0;
	ctl->pdu.statsn = c->numbers.statsn++;
	err = dm_send_control(c->dm, NULL, ctl);
	if (err == ERR_BUSY) {
		/* RFC 7145 §8.1.2: not even a Reject is sent beyond what the
		 * initiator has room for */
		c->numbers.statsn--;
		conn_trace(c, TRACE_PROTOCOL,
			   "%s withheld: MaxOutstandingUnexpectedPDUs",
			   iscsi_opcode_name(ctl->pdu.op));
	} else if (err) {
		tgt_conn_fail(c, err, iscsi_opcode_name(ctl->pdu.op));
	}
	return 0;
}

uint32_t tgt_conn_data_max(const struct tgt_conn *c)
{
	uint32_t most = c->session->params.max_send_dsl;

	return c->dm->max_control_data ? MIN(most, c->dm->max_control_data)
				       : most;
}

/* ---- up-calls ---- */

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
	if (ctl->pdu.op == ISCSI_SCSI_COMMAND)
		return tgt_command(c, ctl, task);
	return tgt_request(c, ctl);
}

static void data_completion_notify(struct dm_conn *dm, struct dm_task *d,
				   enum dm_completion what, int err)
{
	struct tgt_task *t = container_of(d, struct tgt_task, dm);
	struct tgt_conn *c = dm->user;

	c->heard = true;
	switch (what) {
	case DM_RESPONSE_SENT:
		if (t->state == TGT_TASK_ABORTING)
			return; /* DM_RELEASED will come */
		tgt_task_put(t);
		if (c->session->stalled && c->session->used == 0)
			tgt_announce_window(c);
		break;
	case DM_RELEASED:
		t->dm_holds = false;
		tgt_abort_step(t);
		break;
	default:
		tgt_command_data(t, what, err);
		break;
	}
}

static void data_ack_notify(struct dm_conn *dm, struct dm_task *t,
			    uint32_t datasn)
{
	/* no data are kept for a repetition: ErrorRecoveryLevel is 0 */
	(void)dm;
	(void)t;
	(void)datasn;
}

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
		return ISCSI_REJECT_INVALID_PDU_FIELD;
	default:
		return ISCSI_REJECT_PROTOCOL;
	}
}

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
	tgt_reject(c, reject_reason(err), bhs, err_str(err));
}

static void say_closed(const struct tgt_conn *c, int err)
{
	bool orderly = c->state == ISCSI_S6_IN_LOGOUT;

	if (c->session && c->session->node)
		conn_trace(c, TRACE_LOGOUT, "session %u to %s ended: %s",
			   c->session->tsih, c->session->id.target_name,
			   orderly ? "logged out"
			   : err   ? err_str(err)
				   : "closed by the peer without logout");
	conn_trace(c, TRACE_CONN_CLOSE, "closed: %s",
		   err ? err_str(err) : "orderly");
}

static void to_free(struct tgt_conn *c, int err)
{
	if (c->state == ISCSI_S1_FREE)
		return;
	if (err &&
	    iscsi_conn_may_go(ISCSI_TARGET, c->state, ISCSI_S8_CLEANUP_WAIT) &&
	    iscsi_conn_may_go(ISCSI_TARGET, ISCSI_S8_CLEANUP_WAIT,
			      ISCSI_S1_FREE))
		tgt_conn_go(c, ISCSI_S8_CLEANUP_WAIT);
	tgt_conn_go(c, ISCSI_S1_FREE);
}

/* [RFC 7145: 10.1.1.1 #1, 10.1.4.6 #3-4] [RFC 5047: 9.2 #1] */
static void connection_terminate_notify(struct dm_conn *dm, int err)
{
	struct tgt_conn *c = dm->user;
	struct tgt_worker *w = c->worker;
	struct tgt_session *s = c->session;

	say_closed(c, err);
	to_free(c, err);
	c->closing = true;
	list_del(&c->link);
	w->nconns--;
	tgt_reinstate_forget(c);
	tgt_login_drop(c);
	tgt_abort_cancel(&c->logout);
	tgt_text_reset(c);
	dm_deallocate_connection_resources(dm);
	dm_set_trace(dm, NULL, NULL); /* it knows the peer's name by c */
	free(c);
	if (s)
		tgt_session_close(s);
}

/* A task that the datamover was told to forget is none to it any more. */
static struct dm_task *find_task(struct dm_conn *dm, uint32_t itt)
{
	struct tgt_conn *c = dm->user;
	struct tgt_task *t = c->session ? tgt_task_find(c->session, itt) : NULL;

	if (!t || (t->state == TGT_TASK_ABORTING && !t->abort_late))
		return NULL;
	return &t->dm;
}

const struct dm_up_ops tgt_up_ops = {
	.control_notify = control_notify,
	.data_completion_notify = data_completion_notify,
	.data_ack_notify = data_ack_notify,
	.error_notify = error_notify,
	.connection_terminate_notify = connection_terminate_notify,
	.find_task = find_task,
};

/* ---- accept ---- */

static unsigned logins_of(const struct tgt_worker *w, const char *host)
{
	unsigned n = 0;

	list_for_each(it, &w->conns) {
		struct tgt_conn *c = list_entry(it, struct tgt_conn, link);

		n += c->login && !strcmp(c->info.peer_host, host);
	}
	return n;
}

static int over_limit(const struct tgt_worker *w,
		      const struct tgt_conn_info *info)
{
	const struct tgt_config *cfg = &w->tgt->cfg;
	const char *what = NULL;

	if (w->nconns >= cfg->max_conns)
		what = "connections";
	else if (w->nlogins >= cfg->max_logins)
		what = "connections that have not logged in";
	else if (logins_of(w, info->peer_host) >= cfg->max_logins_per_peer)
		what = "connections of this peer that have not logged in";
	if (!what)
		return 0;
	trace_emit(cfg->trace, TRACE_CONN_LIMIT, "%s refused: too many %s",
		   info->peer, what);
	return ERR_LIMIT;
}

int tgt_conn_accept(struct tgt_worker *w, struct dm_conn *dm,
		    const struct tgt_conn_info *info, xtime now)
{
	struct tgt_conn *c;
	int err = over_limit(w, info);

	if (err)
		return err;
	c = calloc(1, sizeof(*c));
	if (!c)
		return ERR_NOMEM;
	c->worker = w;
	c->dm = dm;
	c->info = *info;
	c->ping_ttt = ISCSI_RESERVED_TAG;
	c->text.ttt = ISCSI_RESERVED_TAG;
	list_init(&c->logout.link);
	c->deadline = now + w->tgt->cfg.login_time;
	err = tgt_login_new(c);
	if (err) {
		free(c);
		return err;
	}
	w->now = now;
	w->nconns++;
	list_push_back(&w->conns, &c->link);
	dm_attach(dm, &tgt_up_ops, c, &c->numbers);
	dm_set_trace(dm, w->tgt->cfg.trace, c->info.peer);
	tgt_conn_go(c, ISCSI_S3_XPT_UP); /* T3 */
	conn_trace(c, TRACE_CONN_OPEN, "accepted on %s over %s", info->local,
		   dm->transport);
	return 0;
}

/* ---- time ---- */

static xtime after(xtime now, xtime d)
{
	return d == XTIME_NEVER ? XTIME_NEVER : now + d;
}

#define CLOSING_TIME (2 * XTIME_S) /* for the peer to take what is queued */

static void expire_closing(struct tgt_conn *c, xtime now)
{
	if (c->deadline == 0) {
		c->deadline = now + CLOSING_TIME;
		return;
	}
	c->deadline = XTIME_NEVER;
	dm_connection_terminate(c->dm, DM_TERMINATE_NOW, ERR_TIMEOUT);
}

static void expire_login(struct tgt_conn *c)
{
	conn_trace(c, TRACE_CONN_TIMEOUT,
		   "no login within the time for it; connection dropped");
	tgt_conn_end(c, DM_TERMINATE_NOW, ERR_TIMEOUT);
}

/* §11.9.1: it was asked to log out and did not. */
static void expire_logout(struct tgt_conn *c)
{
	const struct iscsi_async drop = {
		.event = ISCSI_ASYNC_DROP_CONNECTION,
		.param1 = c->cid,
		.param2 = c->session->params.default_time2wait,
	};

	conn_trace(c, TRACE_CONN_TIMEOUT, "no logout when asked; dropped");
	tgt_async(c, &drop);
	tgt_conn_end(c, DM_TERMINATE_AFTER_SENT, 0);
}

static void expire_idle(struct tgt_conn *c, xtime now)
{
	const struct tgt_config *cfg = &c->worker->tgt->cfg;

	if (c->heard || !c->session->node) {
		/* a discovery session takes no NOP-Out (§13.21); it may be
		 * silent for a long time, but not for ever */
		bool silent = !c->heard;

		c->heard = false;
		c->deadline = after(now, cfg->idle_time);
		if (silent && ++c->silences > 20)
			tgt_conn_fail(c, ERR_TIMEOUT, "discovery session");
		return;
	}
	if (c->pinging) {
		conn_trace(c, TRACE_CONN_TIMEOUT,
			   "no answer to NOP-In; connection dropped");
		tgt_conn_end(c, DM_TERMINATE_NOW, ERR_TIMEOUT);
		return;
	}
	c->deadline = after(now, cfg->ping_time);
	tgt_ping(c);
}

void tgt_conn_expire(struct tgt_conn *c, xtime now)
{
	if (c->closing)
		expire_closing(c, now);
	else if (c->login)
		expire_login(c);
	else if (c->state == ISCSI_S7_LOGOUT_REQUESTED)
		expire_logout(c);
	else if (c->state == ISCSI_S6_IN_LOGOUT)
		c->deadline = XTIME_NEVER; /* tasks still end; then it closes */
	else
		expire_idle(c, now);
}

/* The daemon ends: sessions are asked to log out, the rest goes at once. */
void tgt_conn_ask_logout(struct tgt_conn *c, xtime now)
{
	const struct tgt_config *cfg = &c->worker->tgt->cfg;
	const struct iscsi_async ask = {
		.event = ISCSI_ASYNC_LOGOUT,
		.param3 = (uint16_t)MAX(cfg->logout_time / XTIME_S, (xtime)1),
	};

	if (c->closing)
		return;
	if (c->state != ISCSI_S5_LOGGED_IN || !c->session->node) {
		tgt_conn_end(c, DM_TERMINATE_AFTER_SENT, ERR_TERMINATED);
		return;
	}
	tgt_async(c, &ask);
	if (!tgt_conn_open(c))
		return;
	tgt_conn_go(c, ISCSI_S7_LOGOUT_REQUESTED); /* T11 */
	c->deadline = now + cfg->logout_time;
}
