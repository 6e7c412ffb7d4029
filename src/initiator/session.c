/* SPDX-License-Identifier: BSD-2-Clause */
/* session.c: a session's life: login, full feature phase, end. */
#include <stdlib.h>
#include <string.h>

#include "initiator/internal.h"

#define TRACE(s, event, ...) trace_emit((s)->cfg.trace, event, __VA_ARGS__)

static void go(struct ini_session *s, enum iscsi_conn_state next)
{
	iscsi_conn_go(ISCSI_INITIATOR, &s->state, next);
}

void ini_rearm(struct ini_session *s)
{
	s->cfg.rearm(s->cfg.arg);
}

/* ---- login ---- */

static void login_over(struct ini_session *s, int err)
{
	if (!s->login)
		return;
	s->failure = *iscsi_login_failure(s->login);
	iscsi_login_free(s->login);
	s->login = NULL;
	s->login_deadline = XTIME_NEVER;
	s->cfg.logged_in(s->cfg.arg, err);
}

/* [RFC 7145: 10.1.3.1 #2, 10.1.4.6 #1-2 #5-6] */
static void login_failed(struct ini_session *s, int err)
{
	TRACE(s, TRACE_LOGIN_FAILED, "%s: %s", err_str(err),
	      iscsi_login_failure(s->login)->text);
	s->kill_err = err;
	dm_connection_terminate(s->dm, DM_TERMINATE_NOW, err);
	login_over(s, err);
}

static int login_send(struct ini_session *s)
{
	uint8_t data[ISCSI_LOGIN_PDU_MAX];
	struct dm_control ctl = { .data = data };

	iscsi_login_tx(s->login, &ctl.pdu, data);
	ctl.pdu.cmdsn = s->window.cmdsn;
	return dm_send_control(s->dm, NULL, &ctl);
}

/* [RFC 7145: 5.1.1 #4] */
static int full_feature(struct ini_session *s)
{
	struct dm_resources r = { .max_tasks = s->cfg.depth };
	int err;

	s->params = *iscsi_login_params(s->login);
	s->tpgt = iscsi_login_tpgt(s->login);
	dm_notice_key_values(s->dm, &s->params);
	err = dm_allocate_connection_resources(s->dm, &r);
	if (err)
		return err;
	err = dm_enable_datamover(s->dm, NULL);
	if (err)
		return err;
	go(s, ISCSI_S5_LOGGED_IN); /* T5 */
	s->heard = s->now;
	TRACE(s, TRACE_LOGIN, "%s over %s", s->cfg.login.id.target_name,
	      s->dm->transport);
	login_over(s, 0);
	return 0;
}

static int login_response(struct ini_session *s, const struct dm_control *ctl)
{
	int r = iscsi_login_rx(s->login, &ctl->pdu, ctl->data);

	if (r == ISCSI_LOGIN_SEND)
		r = login_send(s);
	else if (r == ISCSI_LOGIN_DONE)
		r = full_feature(s);
	if (r < 0)
		login_failed(s, r);
	return 0;
}

void ini_start(struct ini_session *s, xtime now)
{
	int err;

	s->now = now;
	go(s, ISCSI_S2_XPT_WAIT); /* T1 */
	go(s, ISCSI_S4_IN_LOGIN); /* T4 */
	if (s->cfg.login_time != XTIME_NEVER)
		s->login_deadline = now + s->cfg.login_time;
	err = iscsi_login_start(s->login);
	if (!err)
		err = login_send(s);
	if (err)
		login_failed(s, err);
	ini_rearm(s);
}

/* ---- from the datamover ---- */

/* StatSN: what we acknowledge next (§11.4.8). At ERL 0 nothing is asked for
 * again, so a gap only shows in what is never answered. */
static void take_numbers(struct ini_session *s, const struct iscsi_pdu *p)
{
	bool unnumbered = p->op == ISCSI_NOP_IN && p->itt == ISCSI_RESERVED_TAG;

	if (!unnumbered &&
	    (s->login || sn_lt(s->numbers.expstatsn, p->statsn + 1)))
		s->numbers.expstatsn = p->statsn + 1;
	if (iscsi_initiator_window_update(&s->window, p->expcmdsn,
					  p->maxcmdsn) &&
	    !s->login)
		ini_pump(s);
}

static int control_notify(struct dm_conn *c, const struct dm_control *ctl,
			  struct dm_task **task)
{
	struct ini_session *s = c->user;

	s->heard = s->now;
	take_numbers(s, &ctl->pdu);
	if (s->login)
		return login_response(s, ctl);
	if (*task) {
		ini_task_response(s, container_of(*task, struct ini_task, dm),
				  ctl);
		return 0;
	}
	return ini_control(s, ctl);
}

static void data_completion(struct dm_conn *c, struct dm_task *t,
			    enum dm_completion what, int err)
{
	(void)c;
	(void)err;
	/* the only one an initiator gets: an abort that had to wait */
	if (what == DM_RELEASED)
		ini_cleared_released(container_of(t, struct ini_task, dm));
}

static void data_ack(struct dm_conn *c, struct dm_task *t, uint32_t datasn)
{
	(void)c;
	(void)t;
	(void)datasn;
}

/* A PDU that no target may send: the connection can't be trusted. */
static void pdu_error(struct dm_conn *c, const struct iscsi_pdu *pdu,
		      const uint8_t bhs[ISCSI_BHS_LEN], int err)
{
	struct ini_session *s = c->user;

	(void)bhs;
	TRACE(s, TRACE_PROTOCOL, "the target sent %s: %s (RFC 7143 §11)",
	      iscsi_opcode_name(pdu->op), err_str(err));
	ini_kill(s, err);
}

static void terminated(struct dm_conn *c, int err)
{
	struct ini_session *s = c->user;

	if (!err)
		err = s->kill_err;
	if (s->login)
		login_over(s, err ? err : ERR_CLOSED);
	ini_fail_all(s, err ? err : ERR_CLOSED);
	if (s->state != ISCSI_S1_FREE && s->state != ISCSI_S8_CLEANUP_WAIT) {
		bool orderly = s->state == ISCSI_S6_IN_LOGOUT ||
			       s->state == ISCSI_S4_IN_LOGIN;

		go(s, orderly ? ISCSI_S1_FREE : ISCSI_S8_CLEANUP_WAIT);
	}
	dm_deallocate_connection_resources(c);
	s->cfg.closed(s->cfg.arg, err);
}

static struct dm_task *find_task(struct dm_conn *c, uint32_t itt)
{
	struct ini_slot *slot = ini_slot_find(c->user, itt);

	return slot && slot->task ? &slot->task->dm : NULL;
}

static const struct dm_up_ops up_ops = {
	.control_notify = control_notify,
	.data_completion_notify = data_completion,
	.data_ack_notify = data_ack,
	.error_notify = pdu_error,
	.connection_terminate_notify = terminated,
	.find_task = find_task,
};

/* ---- time ---- */

static xtime ping_at(const struct ini_session *s)
{
	if (s->state != ISCSI_S5_LOGGED_IN || s->pinging ||
	    s->cfg.idle_time == XTIME_NEVER)
		return XTIME_NEVER;
	return s->heard + s->cfg.idle_time;
}

xtime ini_deadline(const struct ini_session *s)
{
	xtime at = MIN(s->login_deadline, s->logout_deadline);

	at = MIN(at, MIN(s->ping_deadline, ping_at(s)));
	/* requests are few and their times rough: looked at twice a second */
	if (s->has_deadlines)
		at = MIN(at, s->now + XTIME_S / 2);
	return at;
}

static void pong(struct ini_request *r, int err, const struct dm_control *rsp)
{
	struct ini_session *s = container_of(r, struct ini_session, ping);

	(void)rsp;
	(void)err;
	s->pinging = false;
	s->ping_deadline = XTIME_NEVER;
}

static void expire_ping(struct ini_session *s, xtime now)
{
	if (now >= s->ping_deadline) {
		TRACE(s, TRACE_CONN_TIMEOUT,
		      "the target does not answer a NOP-Out");
		ini_kill(s, ERR_TIMEOUT);
		return;
	}
	if (now < ping_at(s))
		return;
	s->ping.done = pong;
	if (ini_ping(s, &s->ping, NULL, 0, XTIME_NEVER))
		return;
	s->pinging = true;
	s->ping_deadline = now + s->cfg.ping_time;
}

void ini_expire(struct ini_session *s, xtime now)
{
	s->now = now;
	if (now >= s->login_deadline && s->login) {
		login_failed(s, ERR_TIMEOUT);
		return;
	}
	if (now >= s->logout_deadline) {
		s->logout_deadline = XTIME_NEVER;
		ini_kill(s, ERR_TIMEOUT);
		return;
	}
	expire_ping(s, now);
	ini_cleared_look(s, now);
	if (s->has_deadlines) {
		ini_expire_tasks(s, now);
		ini_expire_requests(s, now);
	}
}

/* ---- life ---- */

void ini_config_default(struct ini_config *cfg)
{
	memset(cfg, 0, sizeof(*cfg));
	cfg->login.role = ISCSI_INITIATOR;
	iscsi_params_defaults(&cfg->login.want);
	cfg->login.want.max_recv_dsl = 256u << 10;
	cfg->login.want.initial_r2t = false;
	cfg->login.want.first_burst_length = 256u << 10;
	cfg->login.want.max_burst_length = 1u << 20;
	cfg->login.want.max_outstanding_r2t = 4;
	cfg->login.want.default_time2retain = 0;
	cfg->login.want.protocol_level = 2;
	cfg->login.header_digest_none_ok = cfg->login.data_digest_none_ok =
		true;
	cfg->login.header_digest_crc_ok = cfg->login.data_digest_crc_ok = true;
	cfg->depth = 128;
	cfg->login_time = 15 * XTIME_S;
	cfg->idle_time = 5 * XTIME_S;
	cfg->ping_time = 10 * XTIME_S;
	cfg->logout_time = 5 * XTIME_S;
	cfg->query_time = 5 * XTIME_S;
}

static bool alloc_slots(struct ini_session *s)
{
	/* some more than commands: pings, aborts and a logout always fit */
	s->nslots = s->cfg.depth + 16;
	s->slots = calloc(s->nslots, sizeof(*s->slots));
	if (!s->slots)
		return false;
	for (uint32_t i = 0; i < s->nslots; i++) {
		s->slots[i].itt = i;
		s->slots[i].next_free = i + 1;
	}
	return true;
}

struct ini_session *ini_new(const struct ini_config *cfg, struct dm_conn *dm)
{
	struct ini_session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->cfg = *cfg;
	s->cfg.depth = MIN(MAX(cfg->depth, 1u), 4096u);
	s->login = iscsi_login_new(&s->cfg.login);
	if (!s->login || !alloc_slots(s)) {
		ini_free(s);
		return NULL;
	}
	s->dm = dm;
	s->tpgt = -1;
	s->login_deadline = s->ping_deadline = XTIME_NEVER;
	s->logout_deadline = XTIME_NEVER;
	list_init(&s->waiting);
	list_init(&s->sent);
	list_init(&s->requests);
	iscsi_initiator_window_init(&s->window, 1);
	dm_attach(dm, &up_ops, s, &s->numbers);
	dm_set_trace(dm, cfg->trace, "target");
	return s;
}

void ini_free(struct ini_session *s)
{
	if (!s)
		return;
	iscsi_login_free(s->login);
	free(s->slots);
	free(s);
}

static void logged_out(struct ini_request *r, int err,
		       const struct dm_control *rsp)
{
	struct ini_session *s = container_of(r, struct ini_session, logout);

	(void)rsp;
	s->logout_deadline = XTIME_NEVER;
	dm_connection_terminate(s->dm, DM_TERMINATE_NOW, err);
}

void ini_logout(struct ini_session *s, xtime now)
{
	struct dm_control ctl = { .pdu = { .op = ISCSI_LOGOUT_REQUEST,
					   .final = true } };

	s->now = now;
	if (s->state != ISCSI_S5_LOGGED_IN &&
	    s->state != ISCSI_S7_LOGOUT_REQUESTED) {
		ini_kill(s, 0);
		return;
	}
	s->logout.done = logged_out;
	s->logout.deadline = XTIME_NEVER;
	ctl.pdu.itt = ini_slot_take(s, NULL, &s->logout);
	ctl.pdu.logout.reason = ISCSI_LOGOUT_SESSION;
	if (ctl.pdu.itt == ISCSI_RESERVED_TAG || ini_send_request(s, &ctl)) {
		ini_kill(s, 0);
		return;
	}
	s->logout.itt = ctl.pdu.itt;
	list_push_back(&s->requests, &s->logout.link);
	go(s, ISCSI_S6_IN_LOGOUT); /* T9, T10 */
	s->logout_deadline = now + s->cfg.logout_time;
	ini_rearm(s);
}

void ini_kill(struct ini_session *s, int err)
{
	if (!s->kill_err)
		s->kill_err = err;
	dm_connection_terminate(s->dm, DM_TERMINATE_NOW, err);
}

const struct iscsi_login_failure *ini_failure(const struct ini_session *s)
{
	return &s->failure;
}

const struct iscsi_params *ini_params(const struct ini_session *s)
{
	return &s->params;
}

int ini_tpgt(const struct ini_session *s)
{
	return s->tpgt;
}

const char *ini_transport(const struct ini_session *s)
{
	return s->dm->transport;
}

unsigned ini_in_flight(const struct ini_session *s)
{
	return s->in_flight;
}
