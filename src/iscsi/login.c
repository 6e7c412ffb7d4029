/* SPDX-License-Identifier: BSD-2-Clause */
/* login.c: what both roles of the login engine share: text over several PDUs
 * (C bit), keys that name the parties, failures. */
#include "iscsi/login.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "iscsi/login_engine.h"

const char *iscsi_login_status_str(uint16_t status)
{
	switch ((enum iscsi_login_status)status) {
	case ISCSI_LOGIN_SUCCESS:
		return "Success";
	case ISCSI_LOGIN_MOVED_TEMPORARILY:
		return "Target moved temporarily";
	case ISCSI_LOGIN_MOVED_PERMANENTLY:
		return "Target moved permanently";
	case ISCSI_LOGIN_INITIATOR_ERROR:
		return "Initiator error";
	case ISCSI_LOGIN_AUTH_FAILURE:
		return "Authentication failure";
	case ISCSI_LOGIN_FORBIDDEN:
		return "Authorization failure";
	case ISCSI_LOGIN_NOT_FOUND:
		return "Not found";
	case ISCSI_LOGIN_REMOVED:
		return "Target removed";
	case ISCSI_LOGIN_BAD_VERSION:
		return "Unsupported version";
	case ISCSI_LOGIN_TOO_MANY_CONNECTIONS:
		return "Too many connections";
	case ISCSI_LOGIN_MISSING_PARAMETER:
		return "Missing parameter";
	case ISCSI_LOGIN_CANT_INCLUDE:
		return "Can't include in session";
	case ISCSI_LOGIN_BAD_SESSION_TYPE:
		return "Session type not supported";
	case ISCSI_LOGIN_NO_SESSION:
		return "Session does not exist";
	case ISCSI_LOGIN_INVALID_DURING_LOGIN:
		return "Invalid during login";
	case ISCSI_LOGIN_TARGET_ERROR:
		return "Target error";
	case ISCSI_LOGIN_UNAVAILABLE:
		return "Service unavailable";
	case ISCSI_LOGIN_NO_RESOURCES:
		return "Out of resources";
	}
	return "unknown login status";
}

int login_fail(struct iscsi_login_engine *e, int err, uint16_t status,
	       const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(e->failure.text, sizeof(e->failure.text), fmt, ap);
	va_end(ap);
	e->failure.status = status;
	e->state = LOGIN_FAILED;
	return err;
}

/* ---- names ---- */

static int take_name(struct iscsi_login_engine *e, char to[ISCSI_NAME_MAX + 1],
		     const char *value)
{
	size_t n = strlen(value);

	if (n == 0 || n > ISCSI_NAME_MAX)
		return login_fail(e, ERR_NEGOTIATION,
				  ISCSI_LOGIN_INITIATOR_ERROR,
				  "a name of %zu bytes; 1 to 223 are allowed "
				  "(RFC 7143 §4.2.7.2)",
				  n);
	memcpy(to, value, n + 1);
	return 0;
}

static int take_session_type(struct iscsi_login_engine *e, const char *value)
{
	e->id.discovery = strcmp(value, "Discovery") == 0;
	e->bad_session_type = !e->id.discovery && strcmp(value, "Normal") != 0;
	e->neg.discovery = e->id.discovery;
	return 0;
}

static void take_redirect(struct iscsi_login_engine *e, const char *value)
{
	snprintf(e->failure.redirect, sizeof(e->failure.redirect), "%s", value);
}

/* Text keys, as the negotiation comes upon them. */
static int text_key(void *arg, enum iscsi_key_id id, const char *value)
{
	struct iscsi_login_engine *e = arg;
	uint32_t tag;

	switch (id) {
	case ISCSI_K_INITIATOR_NAME:
		return take_name(e, e->id.initiator_name, value);
	case ISCSI_K_TARGET_NAME:
		return take_name(e, e->id.target_name, value);
	case ISCSI_K_SESSION_TYPE:
		return take_session_type(e, value);
	case ISCSI_K_INITIATOR_ALIAS:
		snprintf(e->id.initiator_alias, sizeof(e->id.initiator_alias),
			 "%s", value);
		return 0;
	case ISCSI_K_TARGET_PORTAL_GROUP_TAG:
		e->tpgt = iscsi_number_parse(value, &tag) || tag > 65535
				  ? -1
				  : (int)tag;
		return 0;
	case ISCSI_K_TARGET_ADDRESS:
		take_redirect(e, value);
		return 0;
	default:
		return login_auth_key(e, id, value);
	}
}

/* ---- text in ---- */

int login_take_text(struct iscsi_login_engine *e, const struct iscsi_pdu *pdu,
		    const uint8_t *data)
{
	/* §6.2: what we are still saying must be heard out first */
	if (login_more_to_send(e) && pdu->dsl > 0)
		return login_fail(e, ERR_PROTOCOL, ISCSI_LOGIN_INITIATOR_ERROR,
				  "text in answer to a C bit (RFC 7143 §6.2)");
	if (pdu->dsl > sizeof(e->in) - e->in_len)
		return login_fail(e, ERR_TOO_LONG, ISCSI_LOGIN_NO_RESOURCES,
				  "more than %zu bytes of login text",
				  sizeof(e->in));
	if (pdu->dsl)
		memcpy(e->in + e->in_len, data, pdu->dsl);
	e->in_len += pdu->dsl;
	return 0;
}

static int key_failed(struct iscsi_login_engine *e, int err)
{
	if (e->state == LOGIN_FAILED) /* text_key said why */
		return err;
	return login_fail(e, err, ISCSI_LOGIN_INITIATOR_ERROR, "%s",
			  e->neg.why);
}

int login_read_keys(struct iscsi_login_engine *e)
{
	struct iscsi_text_iter it = iscsi_text_iter(e->in, e->in_len);
	unsigned stage = e->stage == STAGE_SECURITY ? ISCSI_KEY_SECURITY
						    : ISCSI_KEY_OPERATIONAL;
	char key[ISCSI_KEY_NAME_MAX + 1];
	const char *value;
	int r;

	e->neg.text = text_key;
	e->neg.arg = e;
	e->auth.heard = 0;
	while ((r = iscsi_text_next(&it, key, &value)) > 0) {
		int err = iscsi_negotiation_key(&e->neg, stage, key, value,
						&e->out);

		if (err)
			return key_failed(e, err);
	}
	e->in_len = 0;
	if (r < 0)
		return login_fail(e, r, ISCSI_LOGIN_INITIATOR_ERROR,
				  "the text is no list of key=value "
				  "(RFC 7143 §6.1)");
	if (e->out.overflow)
		return login_fail(e, ERR_TOO_LONG, ISCSI_LOGIN_NO_RESOURCES,
				  "too many keys to answer");
	return 0;
}

/* ---- text out ---- */

bool login_more_to_send(const struct iscsi_login_engine *e)
{
	return e->out_sent > 0 && e->out_sent < e->out.len;
}

void login_fill_text(struct iscsi_login_engine *e, struct iscsi_pdu *pdu,
		     uint8_t *data)
{
	size_t left = e->out.len - e->out_sent;
	size_t n = e->hold_text ? 0 : MIN(left, (size_t)ISCSI_LOGIN_PDU_MAX);
	bool more = !e->hold_text && n < left;

	pdu->dsl = (uint32_t)n;
	memcpy(data, e->out_text + e->out_sent, n);
	pdu->login.csg = (uint8_t)e->stage;
	pdu->login.cont = more;
	pdu->login.transit = e->transit && !more && !e->hold_text;
	pdu->login.nsg = pdu->login.transit ? (uint8_t)e->next : 0;
	if (e->hold_text)
		return;
	e->out_sent += n;
	if (!more)
		e->out.len = e->out_sent = 0;
}

/* ---- the face ---- */

static void init_negotiation(struct iscsi_login_engine *e)
{
	const struct iscsi_login_config *cfg = e->cfg;

	iscsi_negotiation_init(&e->neg, cfg->role, &cfg->want);
	e->neg.prefer_digests = cfg->prefer_digests;
	e->neg.header_digests =
		(cfg->header_digest_none_ok ? ISCSI_DIGEST_NONE : 0) |
		(cfg->header_digest_crc_ok ? ISCSI_DIGEST_CRC : 0);
	e->neg.data_digests =
		(cfg->data_digest_none_ok ? ISCSI_DIGEST_NONE : 0) |
		(cfg->data_digest_crc_ok ? ISCSI_DIGEST_CRC : 0);
}

struct iscsi_login_engine *iscsi_login_new(const struct iscsi_login_config *cfg)
{
	struct iscsi_login_engine *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->cfg = cfg;
	e->out = (struct iscsi_text_out){ .buf = e->out_text,
					  .max = sizeof(e->out_text) };
	e->tpgt = -1;
	init_negotiation(e);
	if (cfg->role == ISCSI_INITIATOR) {
		e->id = cfg->id;
		e->neg.discovery = cfg->id.discovery;
		e->neg.leading = cfg->id.tsih == 0;
	}
	return e;
}

void iscsi_login_free(struct iscsi_login_engine *e)
{
	free(e);
}

int iscsi_login_rx(struct iscsi_login_engine *e, const struct iscsi_pdu *pdu,
		   const uint8_t *data)
{
	if (e->state == LOGIN_DONE || e->state == LOGIN_FAILED)
		return ERR_WRONG_STATE;
	return e->cfg->role == ISCSI_TARGET ? login_target_rx(e, pdu, data)
					    : login_initiator_rx(e, pdu, data);
}

int iscsi_login_tx(struct iscsi_login_engine *e, struct iscsi_pdu *pdu,
		   uint8_t *data)
{
	memset(pdu, 0, sizeof(*pdu));
	return e->cfg->role == ISCSI_TARGET ? login_target_tx(e, pdu, data)
					    : login_initiator_tx(e, pdu, data);
}

const struct iscsi_params *
iscsi_login_params(const struct iscsi_login_engine *e)
{
	return &e->neg.result;
}

const struct iscsi_login_id *iscsi_login_id(const struct iscsi_login_engine *e)
{
	return &e->id;
}

int iscsi_login_tpgt(const struct iscsi_login_engine *e)
{
	return e->tpgt;
}

const struct iscsi_login_failure *
iscsi_login_failure(const struct iscsi_login_engine *e)
{
	return &e->failure;
}
