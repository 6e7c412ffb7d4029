/* SPDX-License-Identifier: BSD-2-Clause */
/* login.c: the public functions of the login engine. */
#include "iscsi/login.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "iscsi/login_engine.h"

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
		if (cfg->id.discovery) /* RFC 7143 §7.4.1 */
			e->neg.want.error_recovery_level = 0;
		e->neg.leading = cfg->id.tsih == 0;
	}
	if (cfg->session)
		iscsi_negotiation_join(&e->neg, cfg->session);
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

const char *iscsi_login_algorithm(const struct iscsi_login_engine *e)
{
	return e->auth.chap ? chap_algorithm_name(e->auth.algorithm) : "";
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
