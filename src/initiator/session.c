/* SPDX-License-Identifier: BSD-2-Clause */
/* session.c: begin and end of a session, its login and its deadlines. */
#include <stdlib.h>
#include <string.h>

#include "initiator/internal.h"

#define FULL_FEATURE 3 /* NSG, §11.12.3 */

#define TRACE(s, event, ...) trace_emit((s)->cfg.trace, event, __VA_ARGS__)

static void go_to(struct ini_session *s, enum iscsi_conn_state next)
{
	iscsi_conn_go(ISCSI_INITIATOR, &s->state, next);
}

void ini_rearm(struct ini_session *s)
{
	s->cfg.rearm(s->cfg.arg);
}

/* ---- login ---- */

/* The login has ended: reports it to the caller. */
static void end_login(struct ini_session *s, int err)
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
static void fail_login(struct ini_session *s, int err)
{
	TRACE(s, TRACE_LOGIN_FAILED, "%s: %s", err_str(err),
	      iscsi_login_failure(s->login)->text);
	s->kill_err = err;
	dm_connection_terminate(s->dm, DM_TERMINATE_NOW, err);
	end_login(s, err);
}

/* prepare_full_feature allocates what the full feature phase needs before the
 * request that may end the login: in RDMA mode the target's first PDU may come
 * right after its Login Response, and a message without a receive ends the
 * connection (RFC 7145 §5.1.1). Until the keys are negotiated, the largest PDU
 * that this login declares counts. */
static int prepare_full_feature(struct ini_session *s,
				const struct iscsi_login_fields *l)
{
	struct dm_resources r = { .max_tasks = s->cfg.depth };
	struct iscsi_params p = s->cfg.login.want;

	if (s->dm->rdma != DM_RDMA_ALREADY || !l->transit ||
	    l->nsg != FULL_FEATURE)
		return 0;
	p.max_recv_dsl = MAX(p.max_recv_dsl, p.initiator_recv_dsl);
	dm_notice_key_values(s->dm, &p);
	return dm_allocate_connection_resources(s->dm, &r);
}

static int send_login(struct ini_session *s)
{
	uint8_t data[ISCSI_LOGIN_PDU_MAX];
	struct dm_control ctl = { .data = data };
	int err;

	iscsi_login_tx(s->login, &ctl.pdu, data);
	ctl.pdu.cmdsn = s->window.cmdsn;
	err = prepare_full_feature(s, &ctl.pdu.login);
	return err ? err : dm_send_control(s->dm, NULL, &ctl);
}

/* [RFC 7145: 5.1.1 #4] */
static int enter_full_feature(struct ini_session *s)
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
	go_to(s, ISCSI_S5_LOGGED_IN); /* T5 */
	s->heard = s->now;
	TRACE(s, TRACE_LOGIN, "%s over %s", s->cfg.login.id.target_name,
	      s->dm->transport);
	end_login(s, 0);
	return 0;
}

/* ExpStatSN acknowledges all up to the latest StatSN (§11.4.8), although one may
 * be missing: ErrorRecoveryLevel 0 has no retransmission, so that cleared.c finds
 * commands whose response was lost. */
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

/* §11.13.4: the first Login Response sets the StatSN, each later one has the next
 * StatSN, so that a repeated or lost one is noticed. */
static bool is_next_login(struct ini_session *s, const struct iscsi_pdu *p)
{
	bool first = !s->login_heard;

	if (p->op != ISCSI_LOGIN_RESPONSE || p->login.status_class)
		return true; /* not checked here: the login fails anyway */
	s->login_heard = true;
	return first || p->statsn == s->numbers.expstatsn;
}

static int handle_login(struct ini_session *s, const struct dm_control *ctl)
{
	int r = ERR_SEQUENCE;

	if (is_next_login(s, &ctl->pdu)) {
		take_numbers(s, &ctl->pdu);
		r = iscsi_login_rx(s->login, &ctl->pdu, ctl->data);
	}
	if (r == ISCSI_LOGIN_SEND)
		r = send_login(s);
	else if (r == ISCSI_LOGIN_DONE)
		r = enter_full_feature(s);
	if (r < 0)
		fail_login(s, r);
	return 0;
}

void ini_start(struct ini_session *s, xtime now)
{
	int err;

	s->now = now;
	go_to(s, ISCSI_S2_XPT_WAIT); /* T1 */
	go_to(s, ISCSI_S4_IN_LOGIN); /* T4 */
	if (s->cfg.login_time != XTIME_NEVER)
		s->login_deadline = now + s->cfg.login_time;
	err = iscsi_login_start(s->login);
	if (!err)
		err = send_login(s);
	if (err)
		fail_login(s, err);
	ini_rearm(s);
}

/* ---- up-calls of the datamover ---- */

static int control_notify(struct dm_conn *c, const struct dm_control *ctl,
			  struct dm_task **task)
{
	struct ini_session *s = c->user;

	s->heard = s->now;
	if (s->login)
		return handle_login(s, ctl);
	take_numbers(s, &ctl->pdu);
	if (*task) {
		ini_task_response(s, container_of(*task, struct ini_task, dm),
				  ctl);
		return 0;
	}
	return ini_control(s, ctl);
}

static void data_completion_notify(struct dm_conn *c, struct dm_task *t,
				   enum dm_completion what, int err)
{
	(void)c;
	(void)err;
	/* an initiator gets no other: cleared.c waits for this one */
	if (what == DM_RELEASED)
		ini_cleared_released(container_of(t, struct ini_task, dm));
}

static void data_ack_notify(struct dm_conn *c, struct dm_task *t,
			    uint32_t datasn)
{
	(void)c;
	(void)t;
	(void)datasn;
}

/* The target violates the protocol: no further PDU of it can be trusted. */
static void error_notify(struct dm_conn *c, const struct iscsi_pdu *pdu,
			 const uint8_t bhs[ISCSI_BHS_LEN], int err)
{
	struct ini_session *s = c->user;

	(void)bhs;
	TRACE(s, TRACE_PROTOCOL, "the target sent %s: %s (RFC 7143 §11)",
	      iscsi_opcode_name(pdu->op), err_str(err));
	ini_kill(s, err);
}

static void connection_terminate_notify(struct dm_conn *c, int err)
{
	struct ini_session *s = c->user;

	if (!err)
		err = s->kill_err;
	if (s->login)
		end_login(s, err ? err : ERR_CLOSED);
	ini_fail_all(s, err ? err : ERR_CLOSED);
	if (s->state != ISCSI_S1_FREE && s->state != ISCSI_S8_CLEANUP_WAIT) {
		bool orderly = s->state == ISCSI_S6_IN_LOGOUT ||
			       s->state == ISCSI_S4_IN_LOGIN;

		go_to(s, orderly ? ISCSI_S1_FREE : ISCSI_S8_CLEANUP_WAIT);
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
	.data_completion_notify = data_completion_notify,
	.data_ack_notify = data_ack_notify,
	.error_notify = error_notify,
	.connection_terminate_notify = connection_terminate_notify,
	.find_task = find_task,
};

/* ---- time ---- */

/* When the next ping is due. A target that asked for a logout is pinged too: it may
 * still stop answering while commands are in progress. */
static xtime ping_at(const struct ini_session *s)
{
	if (!ini_is_full_feature(s) || s->pinging ||
	    s->cfg.idle_time == XTIME_NEVER)
		return XTIME_NEVER;
	return s->heard + s->cfg.idle_time;
}

xtime ini_deadline(const struct ini_session *s)
{
	xtime at = MIN(s->login_deadline, s->logout_deadline);

	at = MIN(at, MIN(s->ping_deadline, ping_at(s)));
	at = MIN(at, s->stall.deadline);
	/* deadlines of requests are checked twice a second: they are few, and
	 * need no precision */
	if (s->has_deadlines)
		at = MIN(at, s->now + XTIME_S / 2);
	return at;
}

static void ping_answered(struct ini_request *r, int err,
			  const struct dm_control *rsp)
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
	s->ping.done = ping_answered;
	if (ini_ping(s, &s->ping, NULL, 0, XTIME_NEVER))
		return;
	s->pinging = true;
	s->ping_deadline = now + s->cfg.ping_time;
}

void ini_expire(struct ini_session *s, xtime now)
{
	s->now = now;
	if (now >= s->login_deadline && s->login) {
		fail_login(s, ERR_TIMEOUT);
		return;
	}
	if (now >= s->logout_deadline) {
		s->logout_deadline = XTIME_NEVER;
		ini_kill(s, ERR_TIMEOUT);
		return;
	}
	expire_ping(s, now);
	ini_expire_window(s, now);
	ini_cleared_check(s, now);
	if (s->has_deadlines) {
		ini_expire_tasks(s, now);
		ini_expire_requests(s, now);
	}
}

/* ---- begin and end ---- */

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
	/* 16 more than commands: for pings, aborts and a logout */
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
	s->logout_deadline = s->stall.deadline = XTIME_NEVER;
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

static void logout_answered(struct ini_request *r, int err,
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
	if (!ini_is_full_feature(s)) {
		ini_kill(s, 0);
		return;
	}
	s->logout.done = logout_answered;
	s->logout.op = ISCSI_LOGOUT_REQUEST;
	s->logout.deadline = XTIME_NEVER;
	ctl.pdu.itt = ini_slot_take(s, NULL, &s->logout);
	ctl.pdu.logout.reason = ISCSI_LOGOUT_SESSION;
	if (ctl.pdu.itt == ISCSI_RESERVED_TAG || ini_send_request(s, &ctl)) {
		ini_kill(s, 0);
		return;
	}
	s->logout.itt = ctl.pdu.itt;
	list_push_back(&s->requests, &s->logout.link);
	go_to(s, ISCSI_S6_IN_LOGOUT); /* T9, T10 */
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
