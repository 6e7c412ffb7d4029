/* SPDX-License-Identifier: BSD-2-Clause */
/* login_target.c: the login phase at the target: requests in, responses out
 * (RFC 7143 §6.3). */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "iscsi/login_engine.h"

#define REFUSE(e, err, status, ...) login_fail(e, err, status, __VA_ARGS__)

/* ---- the header ---- */

/* [RFC 7143: 11.12.4.2 #2, 11.12.7 #2] */
static int check_first(struct iscsi_login_engine *e,
		       const struct iscsi_pdu *pdu)
{
	if (pdu->login.vmin > 0) /* §11.12.4: version 0x00 */
		return REFUSE(e, ERR_PROTOCOL, ISCSI_LOGIN_BAD_VERSION,
			      "Version-min %u; only version 0 is supported "
			      "(RFC 7143 §11.12.4)",
			      pdu->login.vmin);
	e->itt = pdu->itt;
	e->first = *pdu;
	e->id.cid = pdu->login.cid;
	e->id.tsih = pdu->login.tsih;
	memcpy(e->id.isid, pdu->login.isid, 6);
	e->neg.leading = pdu->login.tsih == 0;
	e->stage = (enum login_stage)pdu->login.csg;
	e->state = LOGIN_TALKING;
	return 0;
}

/* Checks the fields that are equal in all requests of a login. (CmdSN is equal
 * on a leading connection, too; only the first one is used, §11.12.8.) */
/* [RFC 7143: 11.12.4.1 #1-2, 11.12.4.2 #1, 11.12.6 #3, 11.12.7 #1] */
static int check_same(struct iscsi_login_engine *e, const struct iscsi_pdu *pdu)
{
	const struct iscsi_login_fields *l = &pdu->login, *f = &e->first.login;
	const struct {
		bool changed;
		const char *name, *clause;
	} rows[] = {
		{ pdu->itt != e->itt, "Initiator Task Tag", "§6.3" },
		{ memcmp(l->isid, f->isid, 6) != 0, "ISID", "§6.3" },
		{ l->tsih != f->tsih, "TSIH", "§11.12.6" },
		{ l->cid != f->cid, "CID", "§11.12.7" },
		{ l->vmax != f->vmax, "Version-max", "§11.12.4.1" },
		{ l->vmin != f->vmin, "Version-min", "§11.12.4.2" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].changed)
			return REFUSE(e, ERR_PROTOCOL,
				      ISCSI_LOGIN_INITIATOR_ERROR,
				      "%s changed during login (RFC 7143 %s)",
				      rows[i].name, rows[i].clause);
	return 0;
}

/* [RFC 7143: 6.2 #1, 6.3 #4-5, 11.12.2 #1] */
static int check_header(struct iscsi_login_engine *e,
			const struct iscsi_pdu *pdu)
{
	const struct iscsi_login_fields *l = &pdu->login;

	if (e->state == LOGIN_START && check_first(e, pdu))
		return ERR_PROTOCOL;
	if (++e->requests > ISCSI_LOGIN_MAX_REQUESTS)
		return REFUSE(e, ERR_LIMIT, ISCSI_LOGIN_INITIATOR_ERROR,
			      "more than %d login requests",
			      ISCSI_LOGIN_MAX_REQUESTS);
	if (l->csg == 2 || l->csg == STAGE_FULL_FEATURE || l->csg != e->stage)
		return REFUSE(e, ERR_PROTOCOL, ISCSI_LOGIN_INITIATOR_ERROR,
			      "CSG %u in stage %d (RFC 7143 §6.3)", l->csg,
			      e->stage);
	if (l->transit && l->cont)
		return REFUSE(e, ERR_PROTOCOL, ISCSI_LOGIN_INITIATOR_ERROR,
			      "T and C together (RFC 7143 §11.12.2)");
	if (l->transit && (l->nsg == 2 || l->nsg <= l->csg))
		return REFUSE(e, ERR_PROTOCOL, ISCSI_LOGIN_INITIATOR_ERROR,
			      "NSG %u after CSG %u (RFC 7143 §6.3)", l->nsg,
			      l->csg);
	return check_same(e, pdu);
}

/* ---- names ---- */

/* [RFC 7143: 4.2.7.1 #4, 6.3 #2-3, 11.12.10 #1, 13.4 #1, 13.5 #1] */
static int check_names(struct iscsi_login_engine *e)
{
	if (!e->id.initiator_name[0])
		return REFUSE(e, ERR_LOGIN, ISCSI_LOGIN_MISSING_PARAMETER,
			      "no InitiatorName (RFC 7143 §6.3)");
	if (e->bad_session_type)
		return REFUSE(e, ERR_LOGIN, ISCSI_LOGIN_BAD_SESSION_TYPE,
			      "SessionType is neither Normal nor Discovery "
			      "(RFC 7143 §13.21)");
	if (!e->id.discovery && !e->id.target_name[0])
		return REFUSE(e, ERR_LOGIN, ISCSI_LOGIN_MISSING_PARAMETER,
			      "no TargetName in a normal session "
			      "(RFC 7143 §6.3)");
	return 0;
}

/* The first request is complete: asks the role whether the initiator may log
 * in. */
/* [RFC 7143: 6.3.1 #1, 11.13.8 #1] */
static int identify(struct iscsi_login_engine *e)
{
	struct iscsi_login_verdict *v = &e->verdict;
	int err = check_names(e);

	if (err)
		return err;
	e->identified = true;
	memset(v, 0, sizeof(*v));
	e->cfg->identify(e->cfg->arg, &e->id, v);
	if (v->status != ISCSI_LOGIN_SUCCESS) {
		snprintf(e->failure.redirect, sizeof(e->failure.redirect), "%s",
			 v->redirect);
		return REFUSE(e, ERR_DENIED, v->status, "%s",
			      v->why ? v->why
				     : iscsi_login_status_str(v->status));
	}
	if (v->strict_names && login_check_name(e))
		return ERR_NEGOTIATION;
	if (v->chap && e->stage != STAGE_SECURITY)
		return REFUSE(e, ERR_AUTH, ISCSI_LOGIN_AUTH_FAILURE,
			      "the target requires CHAP, but the initiator "
			      "began after the security stage");
	e->auth.done = !v->chap;
	/* §6.3.1: in the first response that has text */
	iscsi_text_putf(&e->out, "TargetPortalGroupTag", "%u", v->tpgt);
	if (v->target_alias[0] && !e->id.discovery)
		iscsi_text_put(&e->out, "TargetAlias", v->target_alias);
	return 0;
}

/* The target's wishes may depend on the TargetName, which can follow the keys
 * that they concern. */
static void tune(struct iscsi_login_engine *e)
{
	struct iscsi_login_tuning t = {
		.prefer_digests = e->cfg->prefer_digests,
		.max_connections = e->cfg->want.max_connections,
	};
	struct iscsi_text_iter it = iscsi_text_iter(e->in, e->in_len);
	char key[ISCSI_KEY_NAME_MAX + 1];
	const char *value, *name = "";

	if (!e->cfg->tune)
		return;
	while (iscsi_text_next(&it, key, &value) > 0)
		if (strcmp(key, "TargetName") == 0)
			name = value;
	e->cfg->tune(e->cfg->arg, name, &t);
	e->neg.prefer_digests = t.prefer_digests;
	e->neg.want.max_connections = t.max_connections;
}

/* ---- stages ---- */

/* [RFC 7143: 6.2 #16] */
static int admit(struct iscsi_login_engine *e)
{
	uint16_t status;

	iscsi_negotiation_finish(&e->neg);
	e->tsih = e->id.tsih;
	status = e->cfg->admit(e->cfg->arg, &e->id, &e->neg.result, &e->tsih);
	if (status != ISCSI_LOGIN_SUCCESS)
		return REFUSE(e, ERR_DENIED, status, "%s",
			      iscsi_login_status_str(status));
	return 0;
}

static void declare_recv_dsl(struct iscsi_login_engine *e)
{
	if (e->stage != STAGE_OPERATIONAL || e->declared)
		return;
	e->declared = true;
	if (!e->neg.result.rdma_extensions) /* RFC 7145 §6.2 */
		iscsi_negotiation_declare(
			&e->neg, ISCSI_K_MAX_RECV_DATA_SEGMENT_LENGTH, &e->out);
}

/* The text of the request is complete: prepares the answer. */
/* [RFC 7143: 6.3 #9, 11.13.6 #2] */
static int answer_request(struct iscsi_login_engine *e,
			  const struct iscsi_pdu *pdu)
{
	int err;

	if (!e->identified)
		tune(e);
	err = login_read_keys(e);
	if (!err && !e->identified)
		err = identify(e);
	if (!err && e->stage == STAGE_SECURITY)
		err = login_auth_target(e);
	if (err)
		return err;
	e->neg.first_over = true;
	if (e->stage == STAGE_OPERATIONAL)
		e->neg.first_operational_over = true;
	declare_recv_dsl(e);
	/* the security stage ends only after authentication */
	e->transit = pdu->login.transit && e->auth.done;
	e->next = (enum login_stage)pdu->login.nsg;
	if (e->transit && e->next == STAGE_FULL_FEATURE)
		return admit(e);
	return 0;
}

/* [RFC 7143: 6.3 #1] */
int login_target_rx(struct iscsi_login_engine *e, const struct iscsi_pdu *pdu,
		    const uint8_t *data)
{
	int err;

	if (pdu->op != ISCSI_LOGIN_REQUEST)
		return REFUSE(e, ERR_PROTOCOL, ISCSI_LOGIN_INVALID_DURING_LOGIN,
			      "%s during login (RFC 7143 §6.3)",
			      iscsi_opcode_name(pdu->op));
	err = check_header(e, pdu);
	if (!err)
		err = login_take_text(e, pdu, data);
	if (err)
		return err;
	if (login_more_to_send(e))
		return ISCSI_LOGIN_SEND;
	e->hold_text = pdu->login.cont; /* §6.2: the answer has no text */
	e->transit = false;
	if (!e->hold_text)
		err = answer_request(e, pdu);
	return err ? err : ISCSI_LOGIN_SEND;
}

/* ---- responses ---- */

/* [RFC 7143: 6.3.2 #2 #4, 11.13.5 #1] */
static int send_failure(struct iscsi_login_engine *e, struct iscsi_pdu *pdu,
			uint8_t *data)
{
	struct iscsi_text_out out = { .buf = (char *)data,
				      .max = ISCSI_LOGIN_PDU_MAX };

	pdu->login.status_class = (uint8_t)(e->failure.status >> 8);
	pdu->login.status_detail = (uint8_t)e->failure.status;
	if (pdu->login.status_class == 1 && e->failure.redirect[0])
		iscsi_text_put(&out, "TargetAddress", e->failure.redirect);
	if (e->auth.rejected) /* §6.3.2 */
		iscsi_text_put(&out, e->auth.rejected, "Reject");
	pdu->dsl = (uint32_t)out.len;
	return ERR_LOGIN;
}

/* [RFC 7143: 6.3.2 #3, 11.13.1 #1, 11.13.2 #1, 11.13.3 #1] */
int login_target_tx(struct iscsi_login_engine *e, struct iscsi_pdu *pdu,
		    uint8_t *data)
{
	pdu->op = ISCSI_LOGIN_RESPONSE;
	pdu->itt = e->itt;
	memcpy(pdu->login.isid, e->id.isid, 6);
	pdu->login.tsih = e->id.tsih;
	if (e->state == LOGIN_FAILED)
		return send_failure(e, pdu, data);
	login_fill_text(e, pdu, data);
	pdu->final = pdu->login.transit;
	if (!pdu->login.transit)
		return ISCSI_LOGIN_WAIT;
	e->stage = e->next;
	e->transit = false;
	if (e->stage != STAGE_FULL_FEATURE)
		return ISCSI_LOGIN_WAIT;
	/* §11.13.3: the final response has the TSIH */
	pdu->login.tsih = e->tsih;
	e->id.tsih = e->tsih;
	e->state = LOGIN_DONE;
	return ISCSI_LOGIN_DONE;
}
