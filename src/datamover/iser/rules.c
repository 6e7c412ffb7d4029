/* SPDX-License-Identifier: BSD-2-Clause */
/* rules.c: the rules for other implementations of iSER, and the private data of
 * the CM exchange. */
#include <string.h>

#include "datamover/iser/internal.h"

struct rule_row {
	const char *name, *text;
};

static const struct rule_row rows[] = {
#define DMISER_RULE_ROW(name, bit, text) { #name, text },
	DMISER_RULES(DMISER_RULE_ROW)
#undef DMISER_RULE_ROW
};

#define NROWS (sizeof(rows) / sizeof(rows[0]))

const char *dmiser_rule_name(unsigned i)
{
	return i < NROWS ? rows[i].name : NULL;
}

const char *dmiser_rule_text(unsigned i)
{
	return i < NROWS ? rows[i].text : NULL;
}

/* [RFC 7145: 5.1.1 #1] */
void dmiser_config_default(struct dmiser_config *cfg, enum iscsi_role role)
{
	*cfg = (struct dmiser_config){
		.role = role,
		.rules = DMISER_LINUX,
		.ird = role == ISCSI_INITIATOR ? 32 : 0,
		.ord = role == ISCSI_INITIATOR ? 0 : 32,
	};
}

bool dmiser_solicited_only(const struct dmiser_conn *c)
{
	if (iscsi_params_declared(&c->params, ISCSI_K_TAGGED_BUFFER))
		return c->params.tagged_buffer_for_solicited_data_only;
	return has_rule(c, DMISER_SOLICITED_VA);
}

bool dmiser_speaks_rfc7145(const struct dmiser_conn *c)
{
	static const enum iscsi_key_id keys[] = {
		ISCSI_K_MAX_OUTSTANDING_UNEXPECTED_PDUS,
		ISCSI_K_MAX_AHS_LENGTH,
		ISCSI_K_TAGGED_BUFFER,
		ISCSI_K_HELLO_REQUIRED,
	};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (iscsi_params_declared(&c->params, keys[i]))
			return true;
	return false;
}

void dmiser_cm_request(bool recv_inv, uint8_t p[DMISER_CM_LEN])
{
	memset(p, 0, DMISER_CM_LEN);
	/* our regions have virtual addresses, so none is zero-based */
	p[0] = ISER_CM_NO_ZBVA | (recv_inv ? 0 : ISER_CM_NO_SEND_INV);
}
