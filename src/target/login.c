/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * login.c: the login phase (RFC 7143 §6.3) of a connection. The engine of
 * iscsi/login.h gets each Login Request and asks here for nodes, secrets and
 * admission; its last response waits until the session may begin.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "iscsi/keys.h"
#include "iscsi/names.h"
#include "target/internal.h"

#define AUTH_HOLD (5 * XTIME_S) /* initiators give up after 10 or 15 seconds */

struct tgt_login {
	struct iscsi_login_config cfg;
	struct iscsi_login_engine *engine;
	struct tgt_node *node; /* NULL: discovery, or not known yet */
	bool proves;	       /* the initiator has to pass CHAP */
	char account[ISCSI_NAME_MAX + 1]; /* by which it did; or empty */
	struct iscsi_chap_secret mutual;  /* a copy; name empty: none */
	char algorithms[CHAP_LIST_MAX];	  /* a copy, like mutual */
	uint32_t cmdsn;			  /* of the leading request */
	/* CHAP has failed: how long the response is held back; is_held: it is now */
	xtime late;
	bool is_held;
	struct dm_control out;
	uint8_t data[ISCSI_LOGIN_PDU_MAX];
};

/* ---- questions of the engine ---- */

/* The initiator of a login. It has proven its account when the security stage is over,
 * before which only a name that CHAP checks next may be there. */
static struct tgt_visitor visitor(const struct tgt_conn *c,
				  const struct iscsi_login_id *id)
{
	struct tgt_visitor v = tgt_conn_visitor(c, id);

	v.account = c->login->account;
	return v;
}

static struct tgt_ruling ask_directory(const struct tgt_conn *c,
				       const struct iscsi_login_id *id)
{
	const struct tgt_visitor v = visitor(c, id);

	return tgt_access_ask(c->worker->directory, &v,
			      id->discovery ? NULL : id->target_name);
}

static void tune_login(void *arg, const char *target_name,
		       struct iscsi_login_tuning *t)
{
	const struct tgt_conn *c = arg;
	char name[ISCSI_NAME_MAX + 1], why[ISCSI_NAME_WHY];
	const struct tgt_target *target;

	if (iscsi_name_prepare(name, target_name, false, why))
		return;
	target = tgt_directory_target(c->worker->directory, name);
	if (!target)
		return;
	if (target->cfg.max_connections)
		t->max_connections = target->cfg.max_connections;
	/* digests are impossible in RDMA mode */
	if (c->dm->rdma != DM_RDMA_ALREADY)
		t->prefer_digests = target->cfg.prefer_digests;
}

/* Returns whether the target admits no new session, which the login would begin. */
static bool is_drained(const struct tgt_ruling *r,
		       const struct iscsi_login_id *id)
{
	return r->target && r->target->cfg.drains && !id->tsih;
}

static void identify_login(void *arg, const struct iscsi_login_id *id,
			   struct iscsi_login_verdict *v)
{
	struct tgt_conn *c = arg;
	struct tgt_login *l = c->login;
	struct tgt_ruling r;

	*v = (struct iscsi_login_verdict){ .tpgt = c->info.portal_group };
	if (c->worker->draining) {
		v->status = ISCSI_LOGIN_UNAVAILABLE;
		return;
	}
	r = ask_directory(c, id);
	v->status = r.status;
	v->why = r.why;
	if (r.status)
		return;
	/* §11.13.5: permitted before security; a session's other connections
	 * stay with it */
	if (r.redirect && !id->tsih) {
		v->status = r.permanent ? ISCSI_LOGIN_MOVED_PERMANENTLY
					: ISCSI_LOGIN_MOVED_TEMPORARILY;
		snprintf(v->redirect, sizeof(v->redirect), "%s", r.redirect);
		return;
	}
	if (is_drained(&r, id)) {
		v->status = ISCSI_LOGIN_UNAVAILABLE;
		v->why = "the target admits no new sessions (drain)";
		return;
	}
	v->strict_names = r.target ? r.target->cfg.strict_names
				   : c->worker->tgt->cfg.strict_names;
	v->chap = l->proves = tgt_access_needs_chap(r.auth);
	if (r.auth->algorithms[0]) {
		memcpy(l->algorithms, r.auth->algorithms,
		       sizeof(l->algorithms));
		v->chap_algorithms = l->algorithms;
	}
	if (r.auth->mutual) {
		l->mutual = r.auth->mutual->secret;
		v->chap_out = &l->mutual;
	}
	if (!r.target)
		return;
	l->node = r.target->node;
	snprintf(v->target_alias, sizeof(v->target_alias), "%s",
		 r.target->cfg.alias);
}

static uint16_t find_secret(void *arg, const char *name,
			    const struct iscsi_chap_secret **secret)
{
	const struct tgt_conn *c = arg;
	const struct tgt_config *cfg = &c->worker->tgt->cfg;
	struct tgt_login *l = c->login;
	const struct iscsi_login_id *id = iscsi_login_id(l->engine);
	const struct tgt_ruling r = ask_directory(c, id);

	strcpy(l->account, name); /* as long as CHAP_N may be */
	l->late = cfg->auth_begin(cfg->arg, c->info.owner, name,
				  id->initiator_name);
	if (l->late)
		return ISCSI_LOGIN_UNAVAILABLE;
	*secret =
		r.status ? NULL
			 : tgt_access_account(r.auth, name, id->initiator_name);
	return ISCSI_LOGIN_SUCCESS;
}

/* Asks again: another directory may have come into force since the login
 * began. */
static uint16_t ask_again(const struct tgt_conn *c,
			  const struct iscsi_login_id *id)
{
	const struct tgt_ruling r = ask_directory(c, id);
	const struct tgt_visitor v = visitor(c, id);

	if (!r.status && !tgt_access_proven(r.auth, &v))
		return ISCSI_LOGIN_AUTH_FAILURE;
	if (!r.status && is_drained(&r, id))
		return ISCSI_LOGIN_UNAVAILABLE;
	return r.status;
}

/* A connection in RDMA mode cannot serve an initiator that declares
 * RDMAExtensions=No (RFC 7145 §6.3: no iSER-assisted mode where one side offers
 * No). Where plain iSCSI is forbidden, a stream has to go to RDMA mode. */
static bool transport_suits(const struct tgt_conn *c,
			    const struct iscsi_params *params)
{
	if (c->dm->rdma == DM_RDMA_ALREADY && !params->rdma_extensions &&
	    iscsi_params_declared(params, ISCSI_K_RDMA_EXTENSIONS)) {
		conn_trace(c, TRACE_LOGIN_FAILED,
			   "RDMAExtensions=No on a connection that is in RDMA "
			   "mode (RFC 7145 §6.3)");
		return false;
	}
	if (c->dm->rdma != DM_RDMA_REQUIRED || params->rdma_extensions)
		return true;
	conn_trace(c, TRACE_LOGIN_FAILED,
		   "iSCSI over TCP is not allowed here, and the initiator did "
		   "not agree on RDMAExtensions=Yes");
	return false;
}

static const struct tgt_session_ops session_ops = {
	.request = tgt_control,
	.command = tgt_command_turn,
	.advanced = tgt_tmf_check,
	.ended = tgt_reinstate_ended,
};

static uint16_t admit_login(void *arg, const struct iscsi_login_id *id,
			    const struct iscsi_params *params, uint16_t *tsih)
{
	struct tgt_conn *c = arg;
	uint16_t status;

	if (c->worker->draining)
		return ISCSI_LOGIN_UNAVAILABLE;
	status = ask_again(c, id);
	if (status)
		return status;
	/* nothing of a discovery session outlives its connection */
	if (id->tsih && id->discovery)
		return ISCSI_LOGIN_NO_SESSION;
	if (c->session)
		return ISCSI_LOGIN_TARGET_ERROR;
	c->cid = id->cid;
	if (id->tsih)
		return ISCSI_LOGIN_SUCCESS; /* join_session decides */
	if (!id->discovery && !transport_suits(c, params))
		return ISCSI_LOGIN_INITIATOR_ERROR;
	c->session =
		tgt_session_new(c, id, params, c->login->node, &session_ops);
	if (!c->session)
		return ISCSI_LOGIN_NO_RESOURCES;
	memcpy(c->session->login.account, c->login->account,
	       sizeof(c->session->login.account));
	c->session->login.algorithm = iscsi_login_algorithm(c->login->engine);
	c->session->login.at = c->worker->now;
	*tsih = c->session->tsih;
	return ISCSI_LOGIN_SUCCESS;
}

static void random_bytes(void *arg, uint8_t *p, size_t n)
{
	const struct tgt_conn *c = arg;
	const struct tgt_config *cfg = &c->worker->tgt->cfg;

	cfg->random(cfg->arg, p, n);
}

/* ---- begin and end ---- */

/* Restricts the negotiation to what this datamover can do. */
static void restrict_to_transport(struct iscsi_login_config *l,
				  const struct dm_conn *dm)
{
	l->want.rdma_extensions = dm->rdma != DM_RDMA_NO;
	if (dm->rdma != DM_RDMA_ALREADY)
		return;
	/* RFC 7145 §6.1, also where the initiator never offers RDMAExtensions */
	l->header_digest_crc_ok = l->data_digest_crc_ok = false;
	l->prefer_digests = false;
	l->want.initial_r2t = true;
	l->want.max_recv_dsl = 8192;
}

int tgt_login_new(struct tgt_conn *c)
{
	const struct tgt_config *cfg = &c->worker->tgt->cfg;
	struct tgt_login *l = calloc(1, sizeof(*l));

	if (!l)
		return ERR_NOMEM;
	l->cfg = (struct iscsi_login_config){
		.role = ISCSI_TARGET,
		.want = c->worker->settings.want,
		.header_digest_none_ok = true,
		.data_digest_none_ok = true,
		.header_digest_crc_ok = true,
		.data_digest_crc_ok = true,
		.prefer_digests = cfg->prefer_digests,
		.tune = tune_login,
		.identify = identify_login,
		.find_secret = find_secret,
		.admit = admit_login,
		.arg = c,
		.random = random_bytes,
	};
	restrict_to_transport(&l->cfg, c->dm);
	l->engine = iscsi_login_new(&l->cfg);
	if (!l->engine) {
		free(l);
		return ERR_NOMEM;
	}
	c->login = l;
	c->login_id = iscsi_login_id(l->engine);
	return 0;
}

void tgt_login_free(struct tgt_conn *c)
{
	if (!c->login)
		return;
	iscsi_login_free(c->login->engine);
	;
	explicit_bzero(&c->login->mutual, sizeof(c->login->mutual));
	free(c->login);
	c->login = NULL;
	c->login_id = NULL;
}

static void log_login(const struct tgt_conn *c)
{
	const struct tgt_session *s = c->session;

	if (s->conns.list.next != &c->session_link)
		conn_trace(c, TRACE_LOGIN,
			   "connection %u of session %u over %s", c->cid,
			   s->tsih, c->dm->transport);
	else
		conn_trace(c, TRACE_LOGIN, "session %u to %s over %s", s->tsih,
			   s->node ? s->node->name : "discovery",
			   c->dm->transport);
}

static void send_response(struct tgt_conn *c)
{
	int err = dm_send_control(c->dm, NULL, &c->login->out);

	if (err)
		tgt_conn_fail(c, err, "Login Response");
}

/* Sends a Login Response that carries only a status (§11.13.5). */
static void send_status(struct tgt_conn *c, uint32_t itt, uint32_t statsn,
			uint16_t status)
{
	struct tgt_login *l = c->login;

	l->out = (struct dm_control){
		.pdu = {
			.op = ISCSI_LOGIN_RESPONSE,
			.itt = itt,
			.ttt = ISCSI_RESERVED_TAG,
			.statsn = statsn,
		},
	};
	tgt_stats_refused(c->worker, status);
	l->out.pdu.login.status_class = (uint8_t)(status >> 8);
	l->out.pdu.login.status_detail = (uint8_t)status;
	send_response(c);
}

/* Sends this status in place of the final response, which is ready (RFC 7145
 * §10.1.3.1). */
static void refuse_no_resources(struct tgt_conn *c, int err)
{
	const struct iscsi_pdu *final = &c->login->out.pdu;

	conn_trace(c, err == ERR_LIMIT ? TRACE_LOGIN_FAILED : TRACE_RESOURCE,
		   "login: %s", err_str(err));
	send_status(c, final->itt, final->statsn, ISCSI_LOGIN_NO_RESOURCES);
	tgt_conn_end(c, DM_TERMINATE_AFTER_SENT, err);
}

/* Asks tgt_config.logged_in whether one more session is permitted. */
static int ask_admission(struct tgt_conn *c)
{
	const struct tgt_config *cfg = &c->worker->tgt->cfg;

	return cfg->logged_in(cfg->arg, c->info.owner, !c->login->node,
			      c->login->proves);
}

/* Sends this status in place of the final response, which is ready. */
static void refuse_late(struct tgt_conn *c, uint16_t status)
{
	const struct iscsi_pdu *final = &c->login->out.pdu;
	const struct iscsi_login_id *id = iscsi_login_id(c->login->engine);

	if (!tgt_conn_open(c))
		return;
	conn_trace(c, TRACE_LOGIN_FAILED,
		   "login to %s refused: %04x %s: TSIH %u, CID %u",
		   id->target_name, status, iscsi_login_status_str(status),
		   id->tsih, id->cid);
	send_status(c, final->itt, final->statsn, status);
	tgt_conn_end(c, DM_TERMINATE_AFTER_SENT, ERR_DENIED);
}

/* The leading login decides on the session-wide values (§6.3.3). RDMA mode has
 * no digests, whatever was negotiated (RFC 7145 §6.1). */
static void inherit_params(struct tgt_conn *c, const struct tgt_session *s)
{
	const struct iscsi_params *own = iscsi_login_params(c->login->engine);
	struct iscsi_params *p = &c->params;

	*p = s->params;
	p->header_digest = own->header_digest && !s->conns.rdma;
	p->data_digest = own->data_digest && !s->conns.rdma;
	p->max_recv_dsl = own->max_recv_dsl;
	p->max_send_dsl = own->max_send_dsl;
	p->target_recv_dsl = own->target_recv_dsl;
	p->initiator_recv_dsl = own->initiator_recv_dsl;
	p->declared |= own->declared;
	p->refused |= own->refused;
}

/* From now on the session is one of the directory in force. */
static void take_port(struct tgt_session *s, const struct tgt_conn *c)
{
	const struct tgt_ruling r = ask_directory(c, &s->id);

	tgt_use_begin(s->worker, &s->use);
	if (!s->node)
		return;
	s->port.rtpi = r.port->rtpi;
	s->luns.map = dev_map_get(r.map);
	if (r.target->cfg.data_time)
		s->data_time = r.target->cfg.data_time;
}

/* Still allowed; else the login is refused. */
static bool is_allowed(struct tgt_conn *c)
{
	uint16_t status;

	if (!tgt_conn_open(c))
		return false;
	status = ask_again(c, iscsi_login_id(c->login->engine));
	if (status)
		refuse_late(c, status);
	return !status;
}

static int prepare_datamover(struct tgt_conn *c, const struct tgt_session *s)
{
	const struct dm_resources r = { .max_tasks = s->tasks.n };

	dm_notice_key_values(c->dm, &c->params);
	return dm_allocate_connection_resources(c->dm, &r);
}

/* [RFC 7145: 5.1.2 #1-3 #6, 10.1.3.1 #4-5] [RFC 5047: 8.6 #1, 11.1 #2] */
static void enable_datamover(struct tgt_conn *c)
{
	int err;

	tgt_conn_go(c, ISCSI_S5_LOGGED_IN); /* T5 */
	err = dm_enable_datamover(c->dm, &c->login->out);
	if (err) {
		c->end.parted = true; /* the initiator does not know of it */
		tgt_conn_fail(c, err, "login");
		return;
	}
	log_login(c);
	tgt_stall_start(c);
	c->fence.first = c->numbers.statsn;
	tgt_login_free(c);
	tgt_clock_start(c);
}

/* No older session is left: the full feature phase begins. */
/* [RFC 7143: 11.12.8 #1] */
static void enter_full_feature(struct tgt_conn *c)
{
	struct tgt_session *s = c->session;
	struct tgt_login *l = c->login;
	int err;

	if (!is_allowed(c))
		return;
	take_port(s, c);
	s->params = *iscsi_login_params(l->engine);
	s->id = *iscsi_login_id(l->engine);
	s->conns.rdma |= s->params.rdma_extensions;
	c->params = s->params;
	err = ask_admission(c);
	if (!err)
		err = tgt_session_start(s, l->cmdsn);
	if (!err)
		err = prepare_datamover(c, s);
	if (err)
		refuse_no_resources(c, err);
	else
		enable_datamover(c);
}

/* The connection that this one replaces is gone, if there was one. */
static void enter_session(struct tgt_conn *c, struct tgt_session *s,
			  uint16_t status)
{
	int err;

	if (status) {
		refuse_late(c, status);
		return;
	}
	if (!is_allowed(c))
		return;
	inherit_params(c, s);
	err = ask_admission(c);
	if (!err)
		err = prepare_datamover(c, s);
	if (err) {
		refuse_no_resources(c, err);
		return;
	}
	tgt_session_add(s, c);
	tgt_session_window(s);
	enable_datamover(c);
	if (s->use.generation != s->worker->generation)
		tgt_apply_review(s); /* it waited without connections */
}

/* The session that the login may join; else NULL and why. */
static struct tgt_session *find_joined(const struct tgt_conn *c,
				       uint16_t *status)
{
	const struct iscsi_login_id *id = iscsi_login_id(c->login->engine);
	const struct tgt_ruling r = ask_directory(c, id);
	const struct tgt_joiner j = {
		.id = id,
		.node = c->login->node,
		.account = c->login->account,
		.map = r.map,
	};

	return tgt_join_find(c, &j, status);
}

static void join_session(struct tgt_conn *c)
{
	uint16_t status;
	struct tgt_session *s = find_joined(c, &status);

	if (s)
		tgt_join(c, s, c->cid, enter_session);
	else
		refuse_late(c, status);
}

/* ---- PDUs ---- */

/* The engine has refused the login and sent the status: logs why. */
/* [RFC 7143: 7.12 #2, 11.13.5 #3] */
static void end_refused_login(struct tgt_conn *c, int err)
{
	const struct iscsi_login_failure *f =
		iscsi_login_failure(c->login->engine);
	const struct iscsi_login_id *id = iscsi_login_id(c->login->engine);

	if (f->redirect[0])
		conn_trace(c, TRACE_LOGIN_REDIRECTED,
			   "%s login to %s sent to %s", id->initiator_name,
			   id->target_name, f->redirect);
	else
		conn_trace(c, TRACE_LOGIN_FAILED,
			   "%s%slogin to %s refused: %04x %s%s%s",
			   id->initiator_name, id->initiator_name[0] ? " " : "",
			   id->target_name[0] ? id->target_name
			   : id->discovery    ? "discovery"
					      : "a target",
			   f->status, iscsi_login_status_str(f->status),
			   f->text[0] ? ": " : "", f->text);
	tgt_stats_refused(c->worker, f->status);
	tgt_conn_end(c, DM_TERMINATE_AFTER_SENT, err);
}

/* Sends all responses of the engine to the last request. */
static void send_responses(struct tgt_conn *c)
{
	struct tgt_login *l = c->login;
	int r;

	do {
		r = iscsi_login_tx(l->engine, &l->out.pdu, l->data);
		l->out.data = l->data;
		l->out.pdu.statsn = c->numbers.statsn++;
		if (r == ISCSI_LOGIN_DONE) {
			if (c->session)
				tgt_reinstate(c, enter_full_feature);
			else
				join_session(c);
			return;
		}
		send_response(c);
	} while (r == ISCSI_LOGIN_SEND && tgt_conn_open(c));
	if (r < 0)
		end_refused_login(c, r);
}

/* The numbers of the Login Responses before the final one. Only the final one makes the
 * connection a part of the session with its TSIH (enter_session): before it, the
 * numbers must not acknowledge a command that may be lost, and must not reveal those of
 * the session to an initiator that has proven nothing. So the responses have numbers
 * that the session has passed in any case: a CmdSN is at most a window ahead of
 * ExpCmdSN. */
/* [RFC 7143: 4.2.2.1 #8 #10] */
static void set_login_window(struct tgt_conn *c, const struct iscsi_pdu *pdu)
{
	bool leading = pdu->login.tsih == 0;

	c->numbers.expcmdsn = pdu->cmdsn - (leading ? 0 : TGT_DEPTH_MAX);
	c->numbers.maxcmdsn = pdu->cmdsn - (leading ? 0 : 1);
}

static void take_first_request(struct tgt_conn *c, const struct iscsi_pdu *pdu)
{
	c->login->cmdsn = pdu->cmdsn;
	set_login_window(c, pdu);
	c->numbers.statsn = 1;		   /* any value (§4.2.2.2) */
	tgt_conn_go(c, ISCSI_S4_IN_LOGIN); /* T4 */
}

/* The login is over but for its last response. */
static bool is_waiting(const struct tgt_conn *c)
{
	return c->reinstate || c->join || c->login->is_held;
}

/* An initiator that fails CHAP again and again waits for each refusal. */
static bool is_late(struct tgt_conn *c)
{
	const struct tgt_config *cfg = &c->worker->tgt->cfg;
	struct tgt_login *l = c->login;

	if (iscsi_login_failure(l->engine)->chap)
		l->late = cfg->auth_failed(cfg->arg, c->info.owner);
	return l->late;
}

/* The deadline of the login gives way to that of the response, after which the
 * connection ends anyway. */
static void hold_response(struct tgt_conn *c)
{
	c->login->is_held = true;
	c->deadline = 0; /* tgt_login_expire has the time */
	tgt_due_changed(c);
}

bool tgt_login_expire(struct tgt_conn *c, xtime now)
{
	struct tgt_login *l = c->login;

	if (!l || !l->is_held || c->closing)
		return false;
	if (l->late) {
		c->deadline = now + MIN(l->late, (xtime)AUTH_HOLD);
		l->late = 0;
	} else {
		c->deadline = XTIME_NEVER;
		send_responses(c);
	}
	return true;
}

/* §6.3: any PDU other than a Login Request ends the login phase. */
/* [RFC 7143: 4.2.4 #4-5] */
static int refuse_other_pdu(struct tgt_conn *c, const struct iscsi_pdu *pdu)
{
	conn_trace(c, TRACE_PROTOCOL,
		   "%s before login (RFC 7143 §6.3); dropped",
		   iscsi_opcode_name(pdu->op));
	if (c->state == ISCSI_S4_IN_LOGIN && !is_waiting(c))
		send_status(c, pdu->itt, c->numbers.statsn++,
			    ISCSI_LOGIN_INVALID_DURING_LOGIN);
	tgt_conn_end(c, DM_TERMINATE_AFTER_SENT, ERR_PROTOCOL);
	return 0;
}

int tgt_login_rx(struct tgt_conn *c, const struct dm_control *ctl)
{
	struct tgt_login *l = c->login;
	int r;

	if (ctl->pdu.op != ISCSI_LOGIN_REQUEST || is_waiting(c))
		return refuse_other_pdu(c, &ctl->pdu);
	if (c->state == ISCSI_S3_XPT_UP)
		take_first_request(c, &ctl->pdu);
	r = iscsi_login_rx(l->engine, &ctl->pdu, ctl->data);
	if (r < 0 && iscsi_login_failure(l->engine)->status == 0) {
		tgt_conn_fail(c, r, "Login Request");
		return 0;
	}
	if (is_late(c))
		hold_response(c);
	else
		send_responses(c);
	return 0;
}
