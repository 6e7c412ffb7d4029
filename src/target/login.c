/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * login.c: the login phase (RFC 7143 §6.3) of a connection: the engine of
 * iscsi/login.h is fed, asked for the verdict on names, and its last answer
 * kept until the session may begin.
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "target/internal.h"

struct tgt_login {
	struct iscsi_login_config cfg;
	struct iscsi_login_engine *engine;
	struct tgt_node *node; /* NULL: discovery, or not known yet */
	uint32_t cmdsn;	       /* of the leading request */
	struct dm_control out;
	uint8_t data[ISCSI_LOGIN_PDU_MAX];
};

/* ---- what the engine asks ---- */

static struct tgt_node *find_node(const struct tgt *t, const char *name)
{
	list_for_each(it, &t->nodes) {
		struct tgt_node *n = list_entry(it, struct tgt_node, link);

		if (!strcmp(n->cfg.name, name))
			return n;
	}
	return NULL;
}

static const struct iscsi_chap_secret *secret(const struct iscsi_chap_secret *s)
{
	return s->name[0] ? s : NULL;
}

static void identify(void *arg, const struct iscsi_login_id *id,
		     struct iscsi_login_verdict *v)
{
	struct tgt_conn *c = arg;
	const struct tgt *t = c->worker->tgt;
	struct tgt_node *n;

	*v = (struct iscsi_login_verdict){ .tpgt = t->cfg.tpgt };
	if (c->worker->draining) {
		v->status = ISCSI_LOGIN_UNAVAILABLE;
		return;
	}
	if (id->discovery) {
		v->chap_in = secret(&t->cfg.discovery_in);
		v->chap_out = secret(&t->cfg.discovery_out);
		return;
	}
	n = find_node(t, id->target_name);
	if (!n) {
		v->status = ISCSI_LOGIN_NOT_FOUND;
		return;
	}
	c->login->node = n;
	v->chap_in = secret(&n->cfg.chap_in);
	v->chap_out = secret(&n->cfg.chap_out);
	memcpy(v->target_alias, n->cfg.alias, sizeof(v->target_alias));
}

/* Where plain iSCSI is forbidden, a stream has to go to RDMA mode. */
static bool transport_will_do(const struct tgt_conn *c,
			      const struct iscsi_params *params)
{
	if (c->dm->rdma != DM_RDMA_REQUIRED || params->rdma_extensions)
		return true;
	conn_trace(c, TRACE_LOGIN_FAILED,
		   "iSCSI over TCP is not allowed here, and the initiator did "
		   "not agree on RDMAExtensions=Yes");
	return false;
}

static uint16_t admit(void *arg, const struct iscsi_login_id *id,
		      const struct iscsi_params *params, uint16_t *tsih)
{
	struct tgt_conn *c = arg;

	if (c->worker->draining)
		return ISCSI_LOGIN_UNAVAILABLE;
	/* a session has one connection and none survives it: MaxConnections
	 * is 1 and ErrorRecoveryLevel 0, so there is none to come back to */
	if (id->tsih)
		return ISCSI_LOGIN_NO_SESSION;
	if (c->session)
		return ISCSI_LOGIN_TARGET_ERROR;
	if (!id->discovery && !transport_will_do(c, params))
		return ISCSI_LOGIN_INITIATOR_ERROR;
	c->session = tgt_session_new(c, id, params, c->login->node);
	if (!c->session)
		return ISCSI_LOGIN_NO_RESOURCES;
	c->cid = id->cid;
	*tsih = c->session->tsih;
	return ISCSI_LOGIN_SUCCESS;
}

static void random_bytes(void *arg, uint8_t *p, size_t n)
{
	const struct tgt_conn *c = arg;
	const struct tgt_config *cfg = &c->worker->tgt->cfg;

	cfg->random(cfg->arg, p, n);
}

/* ---- begin, end ---- */

/* What can be agreed on over this datamover. */
static void fit_transport(struct iscsi_login_config *l,
			  const struct dm_conn *dm)
{
	l->want.rdma_extensions = dm->rdma != DM_RDMA_NO;
	if (dm->rdma != DM_RDMA_ALREADY)
		return;
	/* RFC 7145 §6.1, also for those who never offer RDMAExtensions */
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
		.identify = identify,
		.admit = admit,
		.arg = c,
		.random = random_bytes,
	};
	fit_transport(&l->cfg, c->dm);
	l->engine = iscsi_login_new(&l->cfg);
	if (!l->engine) {
		free(l);
		return ERR_NOMEM;
	}
	c->login = l;
	c->worker->nlogins++;
	return 0;
}

void tgt_login_drop(struct tgt_conn *c)
{
	if (!c->login)
		return;
	iscsi_login_free(c->login->engine);
	free(c->login);
	c->login = NULL;
	c->worker->nlogins--;
}

static void say_logged_in(const struct tgt_conn *c)
{
	const struct tgt_session *s = c->session;

	conn_trace(c, TRACE_LOGIN, "session %u to %s over %s", s->tsih,
		   s->node ? s->node->cfg.name : "discovery", c->dm->transport);
}

static void send_out(struct tgt_conn *c)
{
	int err = dm_send_control(c->dm, NULL, &c->login->out);

	if (err)
		tgt_conn_fail(c, err, "Login Response");
}

/* A Login Response that is only a status (§11.13.5). */
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
	send_out(c);
}

/* RFC 7145 §10.1.3.1; in place of the response that was made already. */
static void no_resources(struct tgt_conn *c, int err)
{
	const struct iscsi_pdu *final = &c->login->out.pdu;

	conn_trace(c, TRACE_RESOURCE, "login: %s", err_str(err));
	send_status(c, final->itt, final->statsn, ISCSI_LOGIN_NO_RESOURCES);
	tgt_conn_end(c, DM_TERMINATE_AFTER_SENT, err);
}

/* No older session is in the way: full feature phase. */
/* [RFC 7145: 5.1.2 #1-3 #6, 10.1.3.1 #4-5] [RFC 5047: 8.6 #1, 11.1 #2] */
void tgt_login_finish(struct tgt_conn *c)
{
	struct tgt_session *s = c->session;
	struct tgt_login *l = c->login;
	struct dm_resources r;
	int err;

	if (!tgt_conn_open(c))
		return;
	s->params = *iscsi_login_params(l->engine);
	s->id = *iscsi_login_id(l->engine);
	err = tgt_session_start(s, l->cmdsn);
	r.max_tasks = s->ntasks;
	if (!err) {
		dm_notice_key_values(c->dm, &s->params);
		err = dm_allocate_connection_resources(c->dm, &r);
	}
	if (err) {
		no_resources(c, err);
		return;
	}
	tgt_conn_go(c, ISCSI_S5_LOGGED_IN); /* T5 */
	err = dm_enable_datamover(c->dm, &l->out);
	if (err) {
		tgt_conn_fail(c, err, "login");
		return;
	}
	say_logged_in(c);
	tgt_login_drop(c);
}

/* ---- PDUs ---- */

static void refused(struct tgt_conn *c, int err)
{
	const struct iscsi_login_failure *f =
		iscsi_login_failure(c->login->engine);
	const struct iscsi_login_id *id = iscsi_login_id(c->login->engine);

	conn_trace(c, TRACE_LOGIN_FAILED,
		   "%s%slogin to %s refused: %04x %s%s%s", id->initiator_name,
		   id->initiator_name[0] ? " " : "",
		   id->target_name[0] ? id->target_name : "discovery",
		   f->status, iscsi_login_status_str(f->status),
		   f->text[0] ? ": " : "", f->text);
	tgt_conn_end(c, DM_TERMINATE_AFTER_SENT, err);
}

/* Everything that the engine has to say to the last request. */
static void answer(struct tgt_conn *c)
{
	struct tgt_login *l = c->login;
	int r;

	do {
		r = iscsi_login_tx(l->engine, &l->out.pdu, l->data);
		l->out.data = l->data;
		l->out.pdu.statsn = c->numbers.statsn++;
		if (r == ISCSI_LOGIN_DONE) {
			tgt_reinstate(c);
			return;
		}
		send_out(c);
	} while (r == ISCSI_LOGIN_SEND && tgt_conn_open(c));
	if (r < 0)
		refused(c, r);
}

static void first_request(struct tgt_conn *c, const struct iscsi_pdu *pdu)
{
	c->login->cmdsn = pdu->cmdsn;
	c->numbers.expcmdsn = pdu->cmdsn;
	c->numbers.maxcmdsn = pdu->cmdsn;
	c->numbers.statsn = 1;		   /* any will do (§4.2.2.2) */
	tgt_conn_go(c, ISCSI_S4_IN_LOGIN); /* T4 */
}

/* §6.3: anything but a Login Request ends the login phase. */
static int not_a_login(struct tgt_conn *c, const struct iscsi_pdu *pdu)
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
		return not_a_login(c, &ctl->pdu);
	if (c->state == ISCSI_S3_XPT_UP)
		first_request(c, &ctl->pdu);
	r = iscsi_login_rx(l->engine, &ctl->pdu, ctl->data);
	if (r < 0 && iscsi_login_failure(l->engine)->status == 0) {
		tgt_conn_fail(c, r, "Login Request");
		return 0;
	}
	answer(c);
	return 0;
}
