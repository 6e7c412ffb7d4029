/* SPDX-License-Identifier: BSD-2-Clause */
/* login_initiator.c: the login phase at the initiator: requests out, responses
 * in (RFC 7143 §6.3). */
#include <string.h>

#include "base/err.h"
#include "iscsi/login_engine.h"

static bool has_secrets(const struct iscsi_login_engine *e)
{
	return e->cfg->chap_out || e->cfg->chap_in;
}

/* Fills the text of the first request of a stage. */
/* [RFC 7143: 6.3.3 #1] */
static void enter_stage(struct iscsi_login_engine *e)
{
	e->transit = true;
	if (e->stage == STAGE_SECURITY) {
		e->next = STAGE_OPERATIONAL;
		login_auth_offer(e);
		return;
	}
	e->next = STAGE_FULL_FEATURE;
	iscsi_negotiation_offer(&e->neg, &e->out);
}

/* [RFC 7143: 4.2.7.1 #1 #4, 6.3 #2-3, 11.12.10 #1, 13.4 #1, 13.5 #1] */
int iscsi_login_start(struct iscsi_login_engine *e)
{
	const struct iscsi_login_id *id = &e->id;

	if (e->state != LOGIN_START || e->cfg->role != ISCSI_INITIATOR)
		return ERR_WRONG_STATE;
	e->state = LOGIN_TALKING;
	iscsi_text_put(&e->out, "InitiatorName", id->initiator_name);
	if (id->initiator_alias[0])
		iscsi_text_put(&e->out, "InitiatorAlias", id->initiator_alias);
	if (!id->discovery || id->target_name[0])
		iscsi_text_put(&e->out, "TargetName", id->target_name);
	if (e->neg.leading) /* §13.21: of the leading connection only */
		iscsi_text_put(&e->out, "SessionType",
			       id->discovery ? "Discovery" : "Normal");
	e->stage = has_secrets(e) || e->cfg->reinstates ? STAGE_SECURITY
							: STAGE_OPERATIONAL;
	e->auth.done = !has_secrets(e);
	enter_stage(e);
	return 0;
}

static int take_failure(struct iscsi_login_engine *e,
			const struct iscsi_pdu *pdu)
{
	uint16_t status = (uint16_t)(pdu->login.status_class << 8 |
				     pdu->login.status_detail);

	/* a redirection has a TargetAddress */
	if (pdu->dsl && pdu->login.status_class == 1)
		(void)login_read_keys(e);
	(void)login_fail(e, ERR_LOGIN, 0, "login refused by the target: %s",
			 iscsi_login_status_str(status));
	e->failure.status = status;
	e->failure.after_sha256 = status == ISCSI_LOGIN_INITIATOR_ERROR &&
				  e->auth.algorithm == CHAP_SHA256;
	e->failure.at_algorithms =
		e->auth.chap && e->auth.algorithm == CHAP_NONE;
	return ERR_LOGIN;
}

/*
 * §11.13.3: the last response has the TSIH of a new session, which is not 0; an
 * existing TSIH is returned. A target may send the new TSIH earlier. Discovery
 * sessions do not use the TSIH.
 */
static int check_tsih(struct iscsi_login_engine *e,
		      const struct iscsi_login_fields *l)
{
	bool last = l->transit && l->nsg == STAGE_FULL_FEATURE;

	if (e->id.tsih ? l->tsih != e->id.tsih
		       : last && l->tsih == 0 && !e->id.discovery)
		return login_fail(e, ERR_PROTOCOL, 0,
				  "TSIH %u in the response, %u in the request "
				  "(RFC 7143 §11.13.3)",
				  l->tsih, e->id.tsih);
	return 0;
}

/* [RFC 7143: 6.3 #5 #7 #9, 11.13.2 #2, 11.13.6 #2, 11.13.7 #1] */
static int check_response(struct iscsi_login_engine *e,
			  const struct iscsi_pdu *pdu)
{
	const struct iscsi_login_fields *l = &pdu->login;

	if (pdu->op != ISCSI_LOGIN_RESPONSE || pdu->itt != e->itt)
		return login_fail(e, ERR_PROTOCOL, 0,
				  "%s during login (RFC 7143 §6.3)",
				  iscsi_opcode_name(pdu->op));
	if (++e->requests > ISCSI_LOGIN_MAX_REQUESTS)
		return login_fail(e, ERR_LIMIT, 0,
				  "more than %d login responses",
				  ISCSI_LOGIN_MAX_REQUESTS);
	if (l->status_class)
		return 0;
	if (l->vmin > 0) /* Version-active */
		return login_fail(e, ERR_PROTOCOL, 0,
				  "Version-active %u; only version 0 is "
				  "supported (RFC 7143 §11.13.2)",
				  l->vmin);
	if (memcmp(l->isid, e->id.isid, sizeof(l->isid)) != 0)
		return login_fail(e, ERR_PROTOCOL, 0,
				  "ISID of the response differs from the "
				  "request (RFC 7143 §11.12.5)");
	if (l->csg != e->stage || (l->transit && l->cont))
		return login_fail(e, ERR_PROTOCOL, 0,
				  "CSG %u in stage %d, T %d, C %d "
				  "(RFC 7143 §6.3)",
				  l->csg, e->stage, l->transit, l->cont);
	/* a transition needs our T bit, and leads at most to our NSG */
	if (l->transit && (!e->transit || l->nsg <= l->csg || l->nsg == 2 ||
			   l->nsg > e->next))
		return login_fail(e, ERR_PROTOCOL, 0,
				  "transition to NSG %u was not requested "
				  "(RFC 7143 §6.3)",
				  l->nsg);
	return check_tsih(e, l);
}

static int finish_stage(struct iscsi_login_engine *e,
			const struct iscsi_pdu *pdu)
{
	if (!e->auth.done)
		return login_fail(e, ERR_AUTH, 0,
				  "the target ended the security stage before "
				  "the authentication was complete");
	e->stage = (enum login_stage)pdu->login.nsg;
	if (e->stage != STAGE_FULL_FEATURE) {
		enter_stage(e);
		return ISCSI_LOGIN_SEND;
	}
	iscsi_negotiation_finish(&e->neg);
	e->id.tsih = pdu->login.tsih;
	e->state = LOGIN_DONE;
	return ISCSI_LOGIN_DONE;
}

/* [RFC 7143: 6.3 #1] */
int login_initiator_rx(struct iscsi_login_engine *e,
		       const struct iscsi_pdu *pdu, const uint8_t *data)
{
	int err = check_response(e, pdu);

	if (!err)
		err = login_take_text(e, pdu, data);
	if (err)
		return err;
	if (pdu->login.status_class)
		return take_failure(e, pdu);
	if (login_more_to_send(e))
		return ISCSI_LOGIN_SEND;
	e->hold_text = pdu->login.cont;
	if (e->hold_text)
		return ISCSI_LOGIN_SEND;
	err = login_read_keys(e);
	if (err)
		return err;
	/* §6.3.3: request the transition until the target agrees */
	e->transit = true;
	if (e->stage == STAGE_SECURITY)
		err = login_auth_initiator(e);
	if (err)
		return err;
	return pdu->login.transit ? finish_stage(e, pdu) : ISCSI_LOGIN_SEND;
}

/* [RFC 7143: 11.12.4 #1, 11.12.6 #1-2] */
int login_initiator_tx(struct iscsi_login_engine *e, struct iscsi_pdu *pdu,
		       uint8_t *data)
{
	pdu->op = ISCSI_LOGIN_REQUEST;
	pdu->immediate = true;
	pdu->itt = e->itt;
	memcpy(pdu->login.isid, e->id.isid, 6);
	pdu->login.tsih = e->id.tsih;
	pdu->login.cid = e->id.cid;
	login_fill_text(e, pdu, data);
	pdu->final = pdu->login.transit;
	return ISCSI_LOGIN_WAIT;
}
