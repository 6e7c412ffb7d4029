/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * login_text.c: the text of a login in both directions: several PDUs joined by
 * the C bit (RFC 7143 §6.2), and the keys that name initiator and target.
 */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "iscsi/login_engine.h"
#include "iscsi/names.h"

/* ---- names ---- */

#define NAME_SHOWN 40 /* bytes of a name in the text of an error */

/* Checks and copies a name; status: for an invalid name. */
/* [RFC 7143: 4.2.7.1 #3] */
static int take_name(struct iscsi_login_engine *e, char to[ISCSI_NAME_MAX + 1],
		     const char *value, uint16_t status)
{
	char why[ISCSI_NAME_WHY];

	if (iscsi_name_prepare(to, value, false, why) == 0)
		return 0;
	to[0] = '\0';
	return login_fail(e, ERR_NEGOTIATION, status, "%.*s: %s", NAME_SHOWN,
			  value, why);
}

int login_check_name(struct iscsi_login_engine *e)
{
	const char *name = e->id.initiator_name;
	char out[ISCSI_NAME_MAX + 1], why[ISCSI_NAME_WHY];

	if (iscsi_name_prepare(out, name, true, why) == 0)
		return 0;
	return login_fail(e, ERR_NEGOTIATION, ISCSI_LOGIN_INITIATOR_ERROR,
			  "%.*s: %s", NAME_SHOWN, name, why);
}

static int take_session_type(struct iscsi_login_engine *e, const char *value)
{
	e->id.discovery = strcmp(value, "Discovery") == 0;
	e->bad_session_type = !e->id.discovery && strcmp(value, "Normal") != 0;
	e->neg.discovery = e->id.discovery;
	return 0;
}

/* §11.13.5: a target may send several addresses; the first one is used that is not longer
 * than a domain name, a port and a tag. */
static void take_redirect(struct iscsi_login_engine *e, const char *value)
{
	if (!e->failure.redirect[0] &&
	    strlen(value) < sizeof(e->failure.redirect))
		strcpy(e->failure.redirect, value);
}

/* The negotiation calls this function for each text key. */
/* [RFC 7143: 13.26.2 #1-3] */
static int take_text_key(void *arg, enum iscsi_key_id id, const char *value)
{
	struct iscsi_login_engine *e = arg;
	uint32_t tag;

	switch (id) {
	case ISCSI_K_INITIATOR_NAME:
		return take_name(e, e->id.initiator_name, value,
				 ISCSI_LOGIN_INITIATOR_ERROR);
	case ISCSI_K_TARGET_NAME:
		return take_name(e, e->id.target_name, value,
				 ISCSI_LOGIN_NOT_FOUND);
	case ISCSI_K_SESSION_TYPE:
		return take_session_type(e, value);
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

/* [RFC 7143: 6.1 #4] */
int login_take_text(struct iscsi_login_engine *e, const struct iscsi_pdu *pdu,
		    const uint8_t *data)
{
	/* §6.2: after a C bit of ours the peer sends no text */
	if (login_more_to_send(e) && pdu->dsl > 0)
		return login_fail(e, ERR_PROTOCOL, ISCSI_LOGIN_INITIATOR_ERROR,
				  "text in the answer to a C bit (RFC 7143 "
				  "§6.2)");
	if (pdu->dsl > sizeof(e->in) - e->in_len)
		return login_fail(e, ERR_TOO_LONG, ISCSI_LOGIN_NO_RESOURCES,
				  "more than %zu bytes of login text",
				  sizeof(e->in));
	if (pdu->dsl)
		memcpy(e->in + e->in_len, data, pdu->dsl);
	e->in_len += pdu->dsl;
	return 0;
}

/* [RFC 7143: 6.3 #11-12, 7.12 #1] */
static int fail_keys(struct iscsi_login_engine *e, int err)
{
	if (e->state == LOGIN_FAILED) /* take_text_key recorded why */
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

	e->neg.text = take_text_key;
	e->neg.arg = e;
	e->auth.got = 0;
	while ((r = iscsi_text_next(&it, key, &value)) > 0) {
		int err = iscsi_negotiation_key(&e->neg, stage, key, value,
						&e->out);

		if (err)
			return fail_keys(e, err);
	}
	e->in_len = 0;
	if (r < 0)
		return login_fail(e, r, ISCSI_LOGIN_INITIATOR_ERROR,
				  "the text is not a list of key=value "
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

/* [RFC 7143: 6.2 #1-3, 6.3 #8, 11.12.2 #1, 11.13.6 #1, 11.13.7 #1] */
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
