/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * login.c: the login phase (RFC 7143 §6.3) of a connection. The engine of
 * iscsi/login.h gets each Login Request and asks here for nodes, secrets and
 * admission; its last response waits until the session may begin.
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "iscsi/keys.h"
#include "target/internal.h"

struct tgt_login {
	struct iscsi_login_config cfg;
	struct iscsi_login_engine *engine;
	struct tgt_node *node; /* NULL: discovery, or not known yet */
	struct tgt_chap chap;  /* as it was when the login began */
	uint32_t cmdsn;	       /* of the leading request */
	struct dm_control out;
	uint8_t data[ISCSI_LOGIN_PDU_MAX];
};

/* ---- questions of the engine ---- */

static const struct iscsi_chap_secret *
secret_or_null(const struct iscsi_chap_secret *s)
{
	return s->name[0] ? s : NULL;
}

static void identify_login(void *arg, const struct iscsi_login_id *id,
			   struct iscsi_login_verdict *v)
{
	struct tgt_conn *c = arg;
	struct tgt_login *l = c->login;
	const struct tgt *t = c->worker->tgt;
	struct tgt_node *n;

	*v = (struct iscsi_login_verdict){ .tpgt = t->cfg.tpgt };
	if (c->worker->draining) {
		v->status = ISCSI_LOGIN_UNAVAILABLE;
		return;
	}
	n = id->discovery ? NULL : tgt_node_find(t, id->target_name);
	if (!n && !id->discovery) {
		v->status = ISCSI_LOGIN_NOT_FOUND;
		return;
	}
	l->node = n;
	l->chap = n ? n->chap[c->worker->index] : c->worker->discovery_chap;
	v->chap_in = secret_or_null(&l->chap.in);
	v->chap_out = secret_or_null(&l->chap.out);
	if (n)
		memcpy(v->target_alias, n->cfg.alias, sizeof(v->target_alias));
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

static uint16_t admit_login(void *arg, const struct iscsi_login_id *id,
			    const struct iscsi_params *params, uint16_t *tsih)
{
	struct tgt_conn *c = arg;

	if (c->worker->draining)
		return ISCSI_LOGIN_UNAVAILABLE;
	/* nothing of a discovery session outlives its connection */
	if (id->tsih && id->discovery)
		return ISCSI_LOGIN_NO_SESSION;
	if (c->session)
		return ISCSI_LOGIN_TARGET_ERROR;
	if (!id->discovery && !transport_suits(c, params))
		return ISCSI_LOGIN_INITIATOR_ERROR;
	c->session = tgt_session_new(c, id, params, c->login->node);
	if (!c->session)
		return ISCSI_LOGIN_NO_RESOURCES;
	c->cid = id->cid;
	/* tgt_reinstate checks that a session has this TSIH */
	*tsih = id->tsih ? id->tsih : c->session->tsih;
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
		.want = cfg->want,
		.header_digest_none_ok = true,
		.data_digest_none_ok = true,
		.header_digest_crc_ok = true,
		.data_digest_crc_ok = true,
		.prefer_digests = cfg->prefer_digests,
		.strict_names = cfg->strict_names,
		.identify = identify_login,
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
	return 0;
}

void tgt_login_free(struct tgt_conn *c)
{
	if (!c->login)
		return;
	iscsi_login_free(c->login->engine);
	explicit_bzero(&c->login->chap, sizeof(c->login->chap));
	free(c->login);
	c->login = NULL;
}

static void log_login(const struct tgt_conn *c)
{
	const struct tgt_session *s = c->session;

	conn_trace(c, TRACE_LOGIN, "session %u to %s over %s", s->tsih,
		   s->node ? s->node->cfg.name : "discovery", c->dm->transport);
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

	return cfg->logged_in(cfg->arg, c->info.owner, !c->session->node,
			      c->login->chap.in.name[0] != 0);
}

/* Sends this status in place of the final response, which is ready. */
static void refuse_reinstatement(struct tgt_conn *c, uint16_t status)
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

/* The leading login decides on the session-wide values (§6.3.3). */
static void inherit_params(struct tgt_session *s)
{
	const struct iscsi_params own = s->params;

	if (!s->joined)
		return;
	s->params = s->leading;
	s->params.header_digest = own.header_digest;
	s->params.data_digest = own.data_digest;
	s->params.max_recv_dsl = own.max_recv_dsl;
	s->params.max_send_dsl = own.max_send_dsl;
}

/* No older session is left: the full feature phase begins. */
/* [RFC 7145: 5.1.2 #1-3 #6, 10.1.3.1 #4-5] [RFC 5047: 8.6 #1, 11.1 #2] */
static void enter_full_feature(struct tgt_conn *c)
{
	struct tgt_session *s = c->session;
	struct tgt_login *l = c->login;
	struct dm_resources r;
	int err;

	if (!tgt_conn_open(c))
		return;
	s->params = *iscsi_login_params(l->engine);
	s->id = *iscsi_login_id(l->engine);
	inherit_params(s);
	err = ask_admission(c);
	if (!err)
		err = tgt_session_start(s, l->cmdsn);
	r.max_tasks = s->tasks.n;
	if (!err) {
		dm_notice_key_values(c->dm, &s->params);
		err = dm_allocate_connection_resources(c->dm, &r);
	}
	if (err) {
		refuse_no_resources(c, err);
		return;
	}
	tgt_conn_go(c, ISCSI_S5_LOGGED_IN); /* T5 */
	err = dm_enable_datamover(c->dm, &l->out);
	if (err) {
		tgt_conn_fail(c, err, "login");
		return;
	}
	log_login(c);
	tgt_stall_start(c);
	tgt_login_free(c);
	tgt_clock_start(c);
}

static void reinstate_done(struct tgt_conn *c, uint16_t status)
{
	if (status)
		refuse_reinstatement(c, status);
	else
		enter_full_feature(c);
}

/* ---- PDUs ---- */

/* The engine has refused the login and sent the status: logs why. */
static void end_refused_login(struct tgt_conn *c, int err)
{
	const struct tgt_config *cfg = &c->worker->tgt->cfg;
	const struct iscsi_login_failure *f =
		iscsi_login_failure(c->login->engine);
	const struct iscsi_login_id *id = iscsi_login_id(c->login->engine);

	conn_trace(c, TRACE_LOGIN_FAILED,
		   "%s%slogin to %s refused: %04x %s%s%s", id->initiator_name,
		   id->initiator_name[0] ? " " : "",
		   id->target_name[0] ? id->target_name : "discovery",
		   f->status, iscsi_login_status_str(f->status),
		   f->text[0] ? ": " : "", f->text);
	if (f->chap)
		cfg->auth_failed(cfg->arg, c->info.owner);
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
			tgt_reinstate(c, reinstate_done);
			return;
		}
		send_response(c);
	} while (r == ISCSI_LOGIN_SEND && tgt_conn_open(c));
	if (r < 0)
		end_refused_login(c, r);
}

static void take_first_request(struct tgt_conn *c, const struct iscsi_pdu *pdu)
{
	c->login->cmdsn = pdu->cmdsn;
	c->numbers.expcmdsn = pdu->cmdsn;
	c->numbers.maxcmdsn = pdu->cmdsn;
	c->numbers.statsn = 1;		   /* any value (§4.2.2.2) */
	tgt_conn_go(c, ISCSI_S4_IN_LOGIN); /* T4 */
}

/* §6.3: any PDU other than a Login Request ends the login phase. */
static int refuse_other_pdu(struct tgt_conn *c, const struct iscsi_pdu *pdu)
{
	conn_trace(c, TRACE_PROTOCOL,
		   "%s before login (RFC 7143 §6.3); dropped",
		   iscsi_opcode_name(pdu->op));
	if (c->state == ISCSI_S4_IN_LOGIN && !c->reinstate)
		send_status(c, pdu->itt, c->numbers.statsn++,
			    ISCSI_LOGIN_INVALID_DURING_LOGIN);
	tgt_conn_end(c, DM_TERMINATE_AFTER_SENT, ERR_PROTOCOL);
	return 0;
}

int tgt_login_rx(struct tgt_conn *c, const struct dm_control *ctl)
{
	struct tgt_login *l = c->login;
	int r;

	if (ctl->pdu.op != ISCSI_LOGIN_REQUEST || c->reinstate)
		return refuse_other_pdu(c, &ctl->pdu);
	if (c->state == ISCSI_S3_XPT_UP)
		take_first_request(c, &ctl->pdu);
	r = iscsi_login_rx(l->engine, &ctl->pdu, ctl->data);
	if (r < 0 && iscsi_login_failure(l->engine)->status == 0) {
		tgt_conn_fail(c, r, "Login Request");
		return 0;
	}
	send_responses(c);
	return 0;
}
