/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * login_fixture.h: configurations of the login engine for tests: a target that
 * answers with a given verdict, and an initiator. Both have fixed names and
 * predictable "random" bytes.
 */
#ifndef LOGIN_FIXTURE_H
#define LOGIN_FIXTURE_H

#include <string.h>

#include "iscsi/login.h"

#define LOGIN_FIXTURE_INITIATOR "iqn.2026-01.test:i"
#define LOGIN_FIXTURE_TARGET	"iqn.2026-01.test:t"
#define LOGIN_FIXTURE_TSIH	77 /* that the target assigns */

/* What the target's callbacks return; the test may change it before each
 * login. */
struct login_fixture {
	struct iscsi_login_verdict verdict;
	const struct iscsi_chap_secret *accounts; /* of initiators */
	unsigned naccounts;
	uint16_t find_status;  /* enum iscsi_login_status */
	uint16_t admit_status; /* enum iscsi_login_status */
};

static inline void login_fixture_identify(void *arg,
					  const struct iscsi_login_id *id,
					  struct iscsi_login_verdict *v)
{
	const struct login_fixture *f = arg;

	(void)id;
	*v = f->verdict;
}

static inline uint16_t
login_fixture_find(void *arg, const char *name,
		   const struct iscsi_chap_secret **found)
{
	const struct login_fixture *f = arg;

	*found = NULL;
	for (unsigned i = 0; i < f->naccounts; i++)
		if (!strcmp(f->accounts[i].name, name))
			*found = &f->accounts[i];
	return f->find_status;
}

/* login_fixture_chap: the target requires CHAP with one of n accounts, which
 * are borrowed. */
static inline void login_fixture_chap(struct login_fixture *f,
				      const struct iscsi_chap_secret *accounts,
				      unsigned n)
{
	f->verdict.chap = true;
	f->accounts = accounts;
	f->naccounts = n;
}

static inline uint16_t login_fixture_admit(void *arg,
					   const struct iscsi_login_id *id,
					   const struct iscsi_params *params,
					   uint16_t *tsih)
{
	const struct login_fixture *f = arg;

	(void)id;
	(void)params;
	*tsih = LOGIN_FIXTURE_TSIH;
	return f->admit_status;
}

/* No two challenges are equal, as long as all ends of a test use this one. */
static inline void login_fixture_random(void *arg, uint8_t *p, size_t n)
{
	static uint8_t next;

	(void)arg;
	for (size_t i = 0; i < n; i++)
		p[i] = next++;
}

static inline void login_fixture_config(struct iscsi_login_config *cfg,
					enum iscsi_role role)
{
	memset(cfg, 0, sizeof(*cfg));
	cfg->role = role;
	iscsi_params_defaults(&cfg->want);
	cfg->header_digest_none_ok = cfg->data_digest_none_ok = true;
	cfg->random = login_fixture_random;
}

/* login_fixture_target: a target that accepts every login; f is borrowed as
 * long as cfg. */
static inline void login_fixture_target(struct iscsi_login_config *cfg,
					struct login_fixture *f)
{
	login_fixture_config(cfg, ISCSI_TARGET);
	*f = (struct login_fixture){ .verdict = { .tpgt = 1 },
				     .find_status = ISCSI_LOGIN_SUCCESS,
				     .admit_status = ISCSI_LOGIN_SUCCESS };
	cfg->identify = login_fixture_identify;
	cfg->find_secret = login_fixture_find;
	cfg->admit = login_fixture_admit;
	cfg->arg = f;
}

static inline void login_fixture_initiator(struct iscsi_login_config *cfg)
{
	login_fixture_config(cfg, ISCSI_INITIATOR);
	strcpy(cfg->id.initiator_name, LOGIN_FIXTURE_INITIATOR);
	strcpy(cfg->id.target_name, LOGIN_FIXTURE_TARGET);
}

#endif
