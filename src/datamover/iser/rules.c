/* SPDX-License-Identifier: BSD-2-Clause */
/* rules.c: where RFC 7145 and those who speak it differ, and the private data
 * in which they agree on one more thing. */
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

void dmiser_cm_request(bool recv_inv, uint8_t p[DMISER_CM_LEN])
{
	memset(p, 0, DMISER_CM_LEN);
	/* our regions begin where we say: no zero-based addresses are needed */
	p[0] = ISER_CM_NO_ZBVA | (recv_inv ? 0 : ISER_CM_NO_SEND_INV);
}
