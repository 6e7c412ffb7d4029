/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * login_fuzz.c: both ends of the login engine. The first byte selects the end
 * and its settings. Then Login PDUs: flags, 2 bytes of length, that much text.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "iscsi/login.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct iscsi_chap_secret secret = { .name = "u",
						 .secret = "s",
						 .secret_len = 1 };

static void identify(void *arg, const struct iscsi_login_id *id,
		     struct iscsi_login_verdict *v)
{
	(void)id;
	*v = (struct iscsi_login_verdict){ .tpgt = 1 };
	if (*(const uint8_t *)arg & 2)
		v->chap_out = &secret;
	v->chap = *(const uint8_t *)arg & 2;
}

static uint16_t find_secret(void *arg, const char *name,
			    const struct iscsi_chap_secret **found)
{
	(void)arg;
	*found = strcmp(name, secret.name) ? NULL : &secret;
	return ISCSI_LOGIN_SUCCESS;
}

static uint16_t admit(void *arg, const struct iscsi_login_id *id,
		      const struct iscsi_params *params, uint16_t *tsih)
{
	(void)arg;
	(void)id;
	/* negotiated values must be in the ranges of their keys */
	if (params->max_send_dsl < 512 || params->max_burst_length < 512 ||
	    params->first_burst_length > params->max_burst_length ||
	    params->max_outstanding_r2t < 1 || params->error_recovery_level > 2)
		abort();
	*tsih = 1;
	return ISCSI_LOGIN_SUCCESS;
}

static void chance(void *arg, uint8_t *p, size_t n)
{
	(void)arg;
	memset(p, 0x5a, n);
}

static void set_up_config(struct iscsi_login_config *cfg, uint8_t *how)
{
	cfg->role = *how & 1 ? ISCSI_INITIATOR : ISCSI_TARGET;
	iscsi_params_defaults(&cfg->want);
	cfg->want.rdma_extensions = *how & 4;
	cfg->header_digest_none_ok = cfg->data_digest_none_ok = true;
	cfg->header_digest_crc_ok = cfg->data_digest_crc_ok = *how & 8;
	cfg->identify = identify;
	cfg->find_secret = find_secret;
	cfg->admit = admit;
	cfg->random = chance;
	cfg->arg = how;
	strcpy(cfg->id.initiator_name, "iqn.2026-01.a:i");
	strcpy(cfg->id.target_name, "iqn.2026-01.a:t");
	cfg->id.discovery = *how & 16;
	if ((*how & 3) == 3)
		cfg->chap_out = &secret;
	if ((*how & 0x23) == 0x23)
		cfg->chap_in = &secret;
}

static void say_all(struct iscsi_login_engine *e)
{
	static uint8_t out[ISCSI_LOGIN_PDU_MAX];
	struct iscsi_pdu pdu;

	iscsi_login_tx(e, &pdu, out);
	if (pdu.dsl > ISCSI_LOGIN_PDU_MAX)
		abort();
}

static void talk(struct iscsi_login_engine *e, enum iscsi_role role,
		 const uint8_t *p, const uint8_t *end)
{
	while (end - p >= 4) {
		size_t n = MIN((size_t)get_be16(p + 2), (size_t)(end - p - 4));
		struct iscsi_pdu pdu = { .dsl = (uint32_t)n };
		int r;

		pdu.op = role == ISCSI_TARGET ? ISCSI_LOGIN_REQUEST
					      : ISCSI_LOGIN_RESPONSE;
		pdu.login.transit = p[0] & 0x80;
		pdu.login.cont = p[0] & 0x40;
		pdu.login.csg = (p[0] >> 2) & 3;
		pdu.login.nsg = p[0] & 3;
		pdu.login.isid[0] = p[0] & 0x10;
		pdu.login.status_class = p[1] & 3;
		pdu.login.vmin = p[1] >> 7;
		r = iscsi_login_rx(e, &pdu, p + 4);
		p += 4 + n;
		if (r == ISCSI_LOGIN_SEND || (r < 0 && role == ISCSI_TARGET))
			say_all(e);
		if (r < 0 || r == ISCSI_LOGIN_DONE)
			return;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct iscsi_login_config cfg = { 0 };
	struct iscsi_login_engine *e;
	uint8_t how;

	if (size < 1)
		return 0;
	how = data[0];
	set_up_config(&cfg, &how);
	e = iscsi_login_new(&cfg);
	if (!e)
		return 0;
	if (cfg.role == ISCSI_INITIATOR) {
		iscsi_login_start(e);
		say_all(e);
	}
	talk(e, cfg.role, data + 1, data + size);
	iscsi_login_free(e);
	return 0;
}
