/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * login_test.c: the two ends of the login engine with each other: for all
 * wishes both end with the same values (RFC 7143 §6.3).
 */
#include "iscsi/keys.h"
#include "iscsi/login.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"
#include "login_fixture.h"

struct end {
	struct iscsi_login_config cfg;
	struct iscsi_login_engine *e;
};

static struct login_fixture target;

static void make(struct end *t, struct end *i)
{
	login_fixture_target(&t->cfg, &target);
	t->cfg.header_digest_crc_ok = t->cfg.data_digest_crc_ok = true;
	login_fixture_initiator(&i->cfg);
}

/* Runs a login to its end; returns the last result of the initiator. */
static int run(struct end *t, struct end *i)
{
	static uint8_t data[ISCSI_LOGIN_PDU_MAX];
	struct iscsi_pdu pdu;
	uint8_t bhs[ISCSI_BHS_LEN];
	int r, rt;

	t->e = iscsi_login_new(&t->cfg);
	i->e = iscsi_login_new(&i->cfg);
	assert_non_null(t->e);
	assert_non_null(i->e);
	assert_int_equal(iscsi_login_start(i->e), 0);
	for (int round = 0; round < 100; round++) {
		iscsi_login_tx(i->e, &pdu, data);
		iscsi_bhs_encode(&pdu, bhs); /* by way of the codec */
		assert_int_equal(iscsi_bhs_decode(&pdu, bhs), 0);
		rt = iscsi_login_rx(t->e, &pdu, data);
		assert_true(rt < 0 || rt == ISCSI_LOGIN_SEND);
		iscsi_login_tx(t->e, &pdu, data);
		iscsi_bhs_encode(&pdu, bhs);
		assert_int_equal(iscsi_bhs_decode(&pdu, bhs), 0);
		r = iscsi_login_rx(i->e, &pdu, data);
		if (r != ISCSI_LOGIN_SEND)
			return r;
	}
	fail_msg("the login does not end");
	return 0;
}

static void drop(struct end *t, struct end *i)
{
	iscsi_login_free(t->e);
	iscsi_login_free(i->e);
}

static void assert_agree(const struct end *t, const struct end *i)
{
	struct iscsi_params a = *iscsi_login_params(t->e);
	struct iscsi_params b = *iscsi_login_params(i->e);

	assert_int_equal(a.max_recv_dsl, b.max_send_dsl);
	assert_int_equal(b.max_recv_dsl, a.max_send_dsl);
	a.max_recv_dsl = a.max_send_dsl = 0;
	b.max_recv_dsl = b.max_send_dsl = 0;
	/* the sets of declared and refused keys differ */
	a.declared = b.declared = a.refused = b.refused = 0;
	assert_memory_equal(&a, &b, sizeof(a));
}

static void test_login_defaults(void **state)
{
	struct end t, i;

	(void)state;
	make(&t, &i);
	assert_int_equal(run(&t, &i), ISCSI_LOGIN_DONE);
	assert_agree(&t, &i);
	assert_int_equal(iscsi_login_id(i.e)->tsih, LOGIN_FIXTURE_TSIH);
	assert_int_equal(iscsi_login_tpgt(i.e), 1);
	assert_string_equal(iscsi_login_algorithm(t.e), "");
	assert_string_equal(iscsi_login_id(t.e)->initiator_name,
			    "iqn.2026-01.test:i");
	drop(&t, &i);
}

/* The security stage comes first, without a secret; the target may skip the key. */
static void test_login_that_reinstates(void **state)
{
	static const char *const answers[] = { "", "AuthMethod=None" };
	static uint8_t data[ISCSI_LOGIN_PDU_MAX];
	struct end t, i;

	(void)state;
	make(&t, &i);
	i.cfg.reinstates = true;
	assert_int_equal(run(&t, &i), ISCSI_LOGIN_DONE);
	assert_agree(&t, &i);
	drop(&t, &i);
	for (size_t n = 0; n < ARRAY_LEN(answers); n++) {
		size_t len = strlen(answers[n]);
		struct iscsi_pdu pdu;

		i.e = iscsi_login_new(&i.cfg);
		assert_int_equal(iscsi_login_start(i.e), 0);
		iscsi_login_tx(i.e, &pdu, data);
		assert_int_equal(pdu.login.csg, 0);
		assert_int_equal(pdu.login.nsg, 1);
		assert_true(pdu.login.transit);
		assert_non_null(memmem(data, pdu.dsl, "AuthMethod=None", 16));
		pdu.op = ISCSI_LOGIN_RESPONSE;
		pdu.dsl = (uint32_t)(len ? len + 1 : 0);
		assert_int_equal(iscsi_login_rx(i.e, &pdu,
						(const uint8_t *)answers[n]),
				 ISCSI_LOGIN_SEND);
		iscsi_login_tx(i.e, &pdu, data);
		assert_int_equal(pdu.login.csg, 1);
		iscsi_login_free(i.e);
	}
}

static uint32_t roll(uint32_t *seed, uint32_t lo, uint32_t hi)
{
	*seed = *seed * 1664525u + 1013904223u;
	return lo + (*seed >> 8) % (hi - lo + 1);
}

static void random_wants(struct iscsi_params *p, uint32_t *seed)
{
	p->max_recv_dsl = roll(seed, 512, 0xffffff);
	p->initial_r2t = roll(seed, 0, 1);
	p->immediate_data = roll(seed, 0, 1);
	p->max_burst_length = roll(seed, 512, 0xffffff);
	p->first_burst_length = roll(seed, 512, p->max_burst_length);
	p->default_time2wait = (uint16_t)roll(seed, 0, 3600);
	p->default_time2retain = (uint16_t)roll(seed, 0, 3600);
	p->max_outstanding_r2t = (uint16_t)roll(seed, 1, 65535);
	p->max_connections = (uint16_t)roll(seed, 1, 65535);
	p->data_pdu_in_order = roll(seed, 0, 1);
	p->data_sequence_in_order = roll(seed, 0, 1);
	p->error_recovery_level = (uint8_t)roll(seed, 0, 2);
	p->protocol_level = roll(seed, 0, 31);
	p->task_reporting = (uint8_t)roll(seed, 0, 2);
	p->rdma_extensions = roll(seed, 0, 1);
	p->target_recv_dsl = roll(seed, 512, 0xffffff);
	p->initiator_recv_dsl = roll(seed, 512, 0xffffff);
}

/* [RFC 7145: 6.3 #5] */
/* [RFC 7143: 6.3 #8, 11.13.6 #1] */
static void test_login_random_wants_agree(void **state)
{
	uint32_t seed = 20260101;

	(void)state;
	for (int n = 0; n < 2000; n++) {
		struct end t, i;

		make(&t, &i);
		random_wants(&t.cfg.want, &seed);
		random_wants(&i.cfg.want, &seed);
		i.cfg.header_digest_crc_ok = roll(&seed, 0, 1);
		i.cfg.data_digest_crc_ok = roll(&seed, 0, 1);
		t.cfg.prefer_digests = roll(&seed, 0, 1);
		i.cfg.id.discovery = roll(&seed, 0, 4) == 0;
		assert_int_equal(run(&t, &i), ISCSI_LOGIN_DONE);
		assert_agree(&t, &i);
		drop(&t, &i);
	}
}

/* The initiator offers level 0, and a target answers an offer of 2 with 0. */
/* [RFC 7143: 7.4.1 #1-2, 13.21 #1] */
static void test_discovery_without_recovery_rfc7143_7_4_1(void **state)
{
	static const char text[] =
		"InitiatorName=iqn.2026-01.test:i\0SessionType=Discovery\0"
		"ErrorRecoveryLevel=2";
	static uint8_t data[ISCSI_LOGIN_PDU_MAX];
	struct iscsi_pdu pdu = { .op = ISCSI_LOGIN_REQUEST,
				 .dsl = sizeof(text) };
	struct end t, i;

	(void)state;
	make(&t, &i);
	t.cfg.want.error_recovery_level = 2;
	i.cfg.want.error_recovery_level = 2;
	i.cfg.id.discovery = true;
	i.e = iscsi_login_new(&i.cfg);
	iscsi_login_start(i.e);
	iscsi_login_tx(i.e, &pdu, data);
	assert_non_null(memmem(data, pdu.dsl, "ErrorRecoveryLevel=0", 21));
	iscsi_login_free(i.e);
	assert_int_equal(run(&t, &i), ISCSI_LOGIN_DONE);
	assert_int_equal(iscsi_login_params(t.e)->error_recovery_level, 0);
	drop(&t, &i);
	t.e = iscsi_login_new(&t.cfg);
	pdu = (struct iscsi_pdu){ .op = ISCSI_LOGIN_REQUEST,
				  .dsl = sizeof(text) };
	pdu.login.csg = 1;
	iscsi_login_rx(t.e, &pdu, (const uint8_t *)text);
	iscsi_login_tx(t.e, &pdu, data);
	assert_int_equal(pdu.login.status_class, 0);
	assert_non_null(memmem(data, pdu.dsl, "ErrorRecoveryLevel=0", 21));
	iscsi_login_free(t.e);
}

/* [RFC 7143: 13.19 #2] */
static void test_one_r2t_with_recovery_rfc7143_13_19(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 16; k++) {
		bool level = k & 1, target_level = k & 2;
		bool order = k & 4, target_order = k & 8;
		bool one = level && target_level && (order || target_order);
		struct end t, i;

		make(&t, &i);
		i.cfg.want.max_outstanding_r2t = 8;
		t.cfg.want.max_outstanding_r2t = 4;
		i.cfg.want.error_recovery_level = level;
		t.cfg.want.error_recovery_level = target_level;
		i.cfg.want.data_sequence_in_order = order;
		t.cfg.want.data_sequence_in_order = target_order;
		assert_int_equal(run(&t, &i), ISCSI_LOGIN_DONE);
		assert_agree(&t, &i);
		assert_int_equal(iscsi_login_params(t.e)->max_outstanding_r2t,
				 one || (level && order) ? 1 : 4);
		drop(&t, &i);
	}
}

/* ---- CHAP ---- */

static const struct iscsi_chap_secret alice = { .name = "alice",
						.secret = "open sesame 42",
						.secret_len = 14 };
static const struct iscsi_chap_secret bob = { .name = "bob",
					      .secret = "another secret",
					      .secret_len = 14 };

/* [RFC 7143: 6.3.2 #1, 9.1 #1, 9.2 #1, 12.1 #2-3, 12.1.3 #2-3] */
static void test_login_chap_rfc7143_12_1_3(void **state)
{
	struct end t, i;

	(void)state;
	make(&t, &i);
	login_fixture_chap(&target, &alice, 1);
	i.cfg.chap_out = &alice;
	assert_int_equal(run(&t, &i), ISCSI_LOGIN_DONE);
	assert_agree(&t, &i);
	assert_string_equal(iscsi_login_algorithm(t.e), "sha256");
	drop(&t, &i);
}

/* [RFC 7143: 9.2.1 #1 #10, 12.1 #3, 12.1.3 #5] */
static void test_login_chap_mutual(void **state)
{
	struct end t, i;

	(void)state;
	make(&t, &i);
	login_fixture_chap(&target, &alice, 1);
	target.verdict.chap_out = &bob;
	i.cfg.chap_out = &alice;
	i.cfg.chap_in = &bob;
	assert_int_equal(run(&t, &i), ISCSI_LOGIN_DONE);
	drop(&t, &i);
}

static void assert_refused(struct end *t, struct end *i, uint16_t status)
{
	assert_int_equal(run(t, i), ERR_LOGIN);
	assert_int_equal(iscsi_login_failure(i->e)->status, status);
	assert_int_equal(iscsi_login_failure(t->e)->status, status);
	assert_true(iscsi_login_failure(t->e)->text[0] != '\0');
	drop(t, i);
}

/* [RFC 7143: 6.3.2 #4, 9.2 #4, 12.1.3 #4] */
static void test_login_chap_wrong_secret(void **state)
{
	struct iscsi_chap_secret wrong = alice;
	struct end t, i;

	(void)state;
	make(&t, &i);
	login_fixture_chap(&target, &alice, 1);
	wrong.secret[0] ^= 1;
	i.cfg.chap_out = &wrong;
	assert_refused(&t, &i, ISCSI_LOGIN_AUTH_FAILURE);
}

/* Each of several accounts admits, by its own secret only; the secret of one
 * account does not admit another. */
static void test_login_chap_accounts_rfc7143_12_1_3(void **state)
{
	const struct iscsi_chap_secret accounts[2] = { alice, bob };

	(void)state;
	for (unsigned name = 0; name < 2; name++) {
		for (unsigned secret = 0; secret < 2; secret++) {
			struct iscsi_chap_secret own = accounts[secret];
			struct end t, i;

			make(&t, &i);
			login_fixture_chap(&target, accounts, 2);
			strcpy(own.name, accounts[name].name);
			i.cfg.chap_out = &own;
			if (name != secret) {
				assert_refused(&t, &i,
					       ISCSI_LOGIN_AUTH_FAILURE);
				continue;
			}
			assert_int_equal(run(&t, &i), ISCSI_LOGIN_DONE);
			drop(&t, &i);
		}
	}
}

/* An unknown name gets the status and the text of a wrong secret, and a
 * response is computed for it as well (RFC 7143 §9.2.1: an attacker learns
 * nothing about accounts), which the empty secret does not pass. */
static void test_login_chap_unknown_name_rfc7143_9_2_1(void **state)
{
	static const struct iscsi_chap_secret unknown[] = {
		{ .name = "carol",
		  .secret = "open sesame 42",
		  .secret_len = 14 },
		{ .name = "carol", .secret_len = 16 }, /* 16 zeros */
		{ .name = "", .secret_len = 16 },
		{ .name = "alice", .secret = "wrong", .secret_len = 5 },
	};
	char text[160] = "";

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(unknown); k++) {
		struct end t, i;

		make(&t, &i);
		login_fixture_chap(&target, &alice, 1);
		i.cfg.chap_out = &unknown[k];
		assert_int_equal(run(&t, &i), ERR_LOGIN);
		assert_int_equal(iscsi_login_failure(i.e)->status,
				 ISCSI_LOGIN_AUTH_FAILURE);
		assert_true(iscsi_login_failure(t.e)->chap);
		if (k)
			assert_string_equal(iscsi_login_failure(t.e)->text,
					    text);
		strcpy(text, iscsi_login_failure(t.e)->text);
		drop(&t, &i);
	}
}

/* An engine whose login succeeded or failed takes no PDU. */
/* [RFC 7143: 6.3 #1] */
static void test_login_is_over(void **state)
{
	(void)state;
	for (unsigned bad = 0; bad < 2; bad++) {
		const struct iscsi_pdu more[2] = {
			{ .op = ISCSI_LOGIN_REQUEST },
			{ .op = ISCSI_LOGIN_RESPONSE },
		};
		struct end t, i;

		make(&t, &i);
		target.admit_status = bad ? ISCSI_LOGIN_NO_RESOURCES : 0;
		assert_int_equal(run(&t, &i) < 0, bad);
		for (unsigned k = 0; k < 4; k++)
			assert_int_equal(iscsi_login_rx(k / 2 ? t.e : i.e,
							&more[k % 2], NULL),
					 ERR_WRONG_STATE);
		assert_int_equal(iscsi_login_failure(i.e)->status,
				 target.admit_status);
		drop(&t, &i);
	}
}

/* [RFC 7143: 12.1.3 #6] */
static void test_login_chap_target_fails_to_prove_itself(void **state)
{
	struct iscsi_chap_secret wrong = bob;
	struct end t, i;

	(void)state;
	make(&t, &i);
	wrong.secret[3] ^= 1;
	login_fixture_chap(&target, &alice, 1);
	target.verdict.chap_out = &wrong;
	i.cfg.chap_out = &alice;
	i.cfg.chap_in = &bob;
	assert_int_equal(run(&t, &i), ERR_AUTH);
	drop(&t, &i);
}

/* [RFC 7143: 9.2.1 #8] */
static void test_login_chap_one_secret_rfc7143_9_2_1(void **state)
{
	struct iscsi_chap_secret same = bob;
	struct end t, i;

	(void)state;
	make(&t, &i);
	memcpy(same.secret, alice.secret, sizeof(same.secret));
	login_fixture_chap(&target, &alice, 1);
	target.verdict.chap_out = &same;
	i.cfg.chap_out = &alice;
	i.cfg.chap_in = &same;
	assert_refused(&t, &i, ISCSI_LOGIN_AUTH_FAILURE);
}

/* An initiator that authenticates the target, but has no secret of its own,
 * gets no session with a target that proves nothing. */
/* [RFC 7143: 12.1.3 #5] */
static void test_login_chap_only_of_the_target(void **state)
{
	struct end t, i;

	(void)state;
	make(&t, &i);
	login_fixture_chap(&target, &alice, 1);
	target.verdict.chap_out = &bob;
	i.cfg.chap_in = &bob;
	assert_int_equal(run(&t, &i), ERR_AUTH);
	drop(&t, &i);
	make(&t, &i);
	i.cfg.chap_in = &bob;
	assert_refused(&t, &i, ISCSI_LOGIN_AUTH_FAILURE);
}

static void test_login_security_stage_skipped(void **state)
{
	struct end t, i;

	(void)state;
	make(&t, &i);
	login_fixture_chap(&target, &alice, 1);
	assert_refused(&t, &i, ISCSI_LOGIN_AUTH_FAILURE);
}

/* [RFC 7143: 6.3.2 #1] */
static void test_login_chap_offered_but_none_taken(void **state)
{
	struct end t, i;

	(void)state;
	make(&t, &i);
	i.cfg.chap_out = &alice;
	assert_int_equal(run(&t, &i), ISCSI_LOGIN_DONE);
	drop(&t, &i);
}

/* ---- refusals ---- */

static void test_login_verdict_refuses(void **state)
{
	struct end t, i;

	(void)state;
	make(&t, &i);
	target.verdict.status = ISCSI_LOGIN_NOT_FOUND;
	assert_refused(&t, &i, ISCSI_LOGIN_NOT_FOUND);
	make(&t, &i);
	target.admit_status = ISCSI_LOGIN_NO_RESOURCES;
	assert_refused(&t, &i, ISCSI_LOGIN_NO_RESOURCES);
	make(&t, &i);
	i.cfg.id.initiator_name[0] = '\0';
	assert_refused(&t, &i, ISCSI_LOGIN_INITIATOR_ERROR);
}

static void test_login_redirect_names_the_address(void **state)
{
	struct end t, i;

	(void)state;
	make(&t, &i);
	target.verdict.status = ISCSI_LOGIN_MOVED_TEMPORARILY;
	strcpy(target.verdict.redirect, "10.0.0.2:3260,1");
	assert_int_equal(run(&t, &i), ERR_LOGIN);
	assert_string_equal(iscsi_login_failure(i.e)->redirect,
			    "10.0.0.2:3260,1");
	drop(&t, &i);
}

/* ---- a target with single requests ---- */

/* Feeds one request; returns the response's status. */
static int feed(struct iscsi_login_engine *e, const char *text, size_t len,
		bool cont, bool transit, struct iscsi_pdu *answer,
		uint8_t *data)
{
	struct iscsi_pdu pdu = { .op = ISCSI_LOGIN_REQUEST,
				 .dsl = (uint32_t)len };

	pdu.login.csg = 1;
	pdu.login.nsg = transit ? 3 : 0;
	pdu.login.transit = transit;
	pdu.login.cont = cont;
	iscsi_login_rx(e, &pdu, (const uint8_t *)text);
	iscsi_login_tx(e, answer, data);
	return answer->login.status_class << 8 | answer->login.status_detail;
}

static int feed_once(const char *text, size_t len)
{
	static uint8_t data[ISCSI_LOGIN_PDU_MAX];
	struct iscsi_pdu answer;
	struct end t, i;
	int status;

	make(&t, &i);
	t.e = iscsi_login_new(&t.cfg);
	status = feed(t.e, text, len, false, true, &answer, data);
	iscsi_login_free(t.e);
	return status;
}

#define NAMES	   "InitiatorName=iqn.2026-01.x:i\0TargetName=iqn.2026-01.x:t\0"
#define FEED(text) feed_once(text, sizeof(text) - 1)

/* [RFC 7143: 6.2 #15, 6.3 #10-11, 7.12 #1, 13.4 #2, 13.5 #2] */
static void test_login_key_repeated_rfc7143_6_3(void **state)
{
	(void)state;
	assert_int_equal(FEED(NAMES "InitialR2T=No\0"), 0);
	assert_int_equal(FEED(NAMES "InitialR2T=No\0InitialR2T=No\0"), 0x200);
	assert_int_equal(FEED(NAMES "TargetName=iqn.2026-01.x:t\0"), 0x200);
	assert_int_equal(FEED(NAMES "InitiatorName=iqn.2026-01.x:i\0"), 0x200);
}

/* [RFC 7143: 6.3 #2, 11.12.10 #1, 13.5 #1] */
static void test_login_parameters_missing(void **state)
{
	(void)state;
	assert_int_equal(FEED("TargetName=iqn.2026-01.x:t\0"), 0x207);
	assert_int_equal(FEED("InitiatorName=iqn.2026-01.x:i\0"), 0x207);
	assert_int_equal(FEED(NAMES "SessionType=Strange\0"), 0x209);
	assert_int_equal(FEED(NAMES "SessionType=Normal"), 0x200);
	assert_int_equal(FEED(NAMES "=x\0"), 0x200);
	assert_int_equal(FEED(NAMES "AuthMethod=None\0"), 0x200);
	assert_int_equal(FEED(NAMES "SendTargets=All\0"), 0x200);
	assert_int_equal(FEED(NAMES "TargetAlias=x\0"), 0x200);
}

/* ---- lists ---- */

/* [RFC 7143: 6.2.1 #1-3, 13.1 #1, 13.23 #1 #3] */
static void test_lists_are_read_as_lists_rfc7143_6_2_1(void **state)
{
	static const struct {
		enum iscsi_key_id id;
		bool prefer; /* digests */
		const char *list, *answer;
		uint8_t reporting; /* wanted */
	} rows[] = {
		{ ISCSI_K_HEADER_DIGEST, false, "None", "None", 0 },
		{ ISCSI_K_HEADER_DIGEST, true, "None", "None" },
		{ ISCSI_K_HEADER_DIGEST, false, "None,CRC32C", "None" },
		{ ISCSI_K_HEADER_DIGEST, true, "None,CRC32C", "CRC32C" },
		{ ISCSI_K_HEADER_DIGEST, false, "foo,CRC32C,None", "CRC32C" },
		{ ISCSI_K_HEADER_DIGEST, false, "CRC32CX,None,CRC32C", "None" },
		{ ISCSI_K_HEADER_DIGEST, false, "xNone,CRC32C,None", "CRC32C" },
		{ ISCSI_K_HEADER_DIGEST, false, "xCRC32C,None,CRC32C", "None" },
		{ ISCSI_K_HEADER_DIGEST, false, "NoneCRC32C,CRC32C", "CRC32C" },
		{ ISCSI_K_DATA_DIGEST, false, "a,b,,None", "None" },
		{ ISCSI_K_DATA_DIGEST, false, "foo", "Reject" },
		{ ISCSI_K_DATA_DIGEST, false, "", "Reject" },
		{ ISCSI_K_DATA_DIGEST, false, ",", "Reject" },
		{ ISCSI_K_DATA_DIGEST, false, "none,crc32c", "Reject" },
		{ ISCSI_K_TASK_REPORTING, false, "RFC3720,ResponseFence",
		  "RFC3720", ISCSI_RESPONSE_FENCE },
		{ ISCSI_K_TASK_REPORTING, false, "FastAbort,ResponseFence",
		  "ResponseFence", ISCSI_RESPONSE_FENCE },
		{ ISCSI_K_TASK_REPORTING, false, "FastAbort,ResponseFence",
		  "FastAbort", ISCSI_FAST_ABORT },
		{ ISCSI_K_TASK_REPORTING, false, "ResponseFence,FastAbort",
		  "ResponseFence", ISCSI_FAST_ABORT },
		{ ISCSI_K_TASK_REPORTING, false, "FastAbort,RFC3720", "RFC3720",
		  ISCSI_RESPONSE_FENCE },
		{ ISCSI_K_TASK_REPORTING, false, "FastAbort", "Reject",
		  ISCSI_RESPONSE_FENCE },
		{ ISCSI_K_TASK_REPORTING, false, "ResponseFence", "Reject",
		  ISCSI_RFC3720 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *name = iscsi_keys[rows[i].id].name;
		char text[256] = "", want[256];
		struct iscsi_text_out out = { .buf = text,
					      .max = sizeof(text) };
		struct iscsi_negotiation n;
		struct iscsi_params p;

		iscsi_params_defaults(&p);
		p.task_reporting = rows[i].reporting;
		iscsi_negotiation_init(&n, ISCSI_TARGET, &p);
		n.header_digests = n.data_digests =
			ISCSI_DIGEST_NONE | ISCSI_DIGEST_CRC;
		n.prefer_digests = rows[i].prefer;
		assert_int_equal(
			iscsi_negotiation_key(&n, ISCSI_KEY_OPERATIONAL, name,
					      rows[i].list, &out),
			0);
		snprintf(want, sizeof(want), "%s=%s", name, rows[i].answer);
		assert_string_equal(text, want);
		assert_int_equal(n.result.header_digest || n.result.data_digest,
				 strcmp(rows[i].answer, "CRC32C") == 0);
	}
}

/* RFC 3720 has no TaskReporting: LIO answers NotUnderstood. */
/* [RFC 7143: 6.2 #7] */
static void test_a_target_of_rfc3720(void **state)
{
	char text[1024] = "";
	struct iscsi_text_out out = { .buf = text, .max = sizeof(text) };
	struct iscsi_negotiation n;
	struct iscsi_params p;

	(void)state;
	iscsi_params_defaults(&p);
	p.task_reporting = ISCSI_FAST_ABORT;
	iscsi_negotiation_init(&n, ISCSI_INITIATOR, &p);
	n.leading = true;
	iscsi_negotiation_offer(&n, &out);
	assert_int_equal(iscsi_negotiation_key(&n, ISCSI_KEY_OPERATIONAL,
					       "TaskReporting", "NotUnderstood",
					       &out),
			 0);
	iscsi_negotiation_finish(&n);
	assert_int_equal(n.result.task_reporting, ISCSI_RFC3720);
}

/* ---- keys of the first request ---- */

/* Names in the first request, which may have two PDUs; then a second request. */
static int feed_second(const char *first, size_t first_len, unsigned pieces,
		       const char *second, size_t second_len)
{
	static uint8_t data[ISCSI_LOGIN_PDU_MAX];
	struct iscsi_pdu answer;
	struct end t, i;
	int status;

	make(&t, &i);
	t.e = iscsi_login_new(&t.cfg);
	if (pieces == 2) {
		assert_int_equal(feed(t.e, first, first_len / 2, true, false,
				      &answer, data),
				 0);
		first += first_len / 2;
		first_len -= first_len / 2;
	}
	assert_int_equal(
		feed(t.e, first, first_len, false, false, &answer, data), 0);
	status = feed(t.e, second, second_len, false, true, &answer, data);
	if (status)
		assert_non_null(strstr(iscsi_login_failure(t.e)->text,
				       "in the first request only"));
	iscsi_login_free(t.e);
	return status;
}

#define SECOND(first, pieces, text) \
 feed_second(first, sizeof(first) - 1, pieces, text, sizeof(text) - 1)

static void test_login_first_request_decides_rfc7143_6_3(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 2; n++) {
		assert_int_equal(SECOND(NAMES, n, "InitialR2T=No\0"), 0);
		assert_int_equal(SECOND(NAMES, n, "InitiatorAlias=x\0"), 0);
		assert_int_equal(SECOND(NAMES, n, "SessionType=Discovery\0"),
				 0x200);
		assert_int_equal(SECOND(NAMES, n, "SessionType=Normal\0"),
				 0x200);
		assert_int_equal(SECOND("InitiatorName=iqn.2026-01.x:i\0"
					"SessionType=Discovery\0",
					n, "TargetName=iqn.2026-01.x:t\0"),
				 0x200);
		/* RFC 7145 §6.3: in the first request of the operational stage
		 * only */
		assert_int_equal(SECOND(NAMES, n, "RDMAExtensions=Yes\0"),
				 0x200);
	}
}

/* All keys that name initiator, target or session are such keys. */
static void test_login_first_request_keys(void **state)
{
	static const enum iscsi_key_id ids[] = { ISCSI_K_INITIATOR_NAME,
						 ISCSI_K_TARGET_NAME,
						 ISCSI_K_SESSION_TYPE };
	unsigned n = 0;

	(void)state;
	for (unsigned i = 0; i < ISCSI_KEY_COUNT; i++)
		n += !!(iscsi_keys[i].flags & ISCSI_KEY_FIRST);
	assert_int_equal(n, sizeof(ids) / sizeof(ids[0]));
	for (unsigned i = 0; i < n; i++)
		assert_true(iscsi_keys[ids[i]].flags & ISCSI_KEY_FIRST);
}

static void alter(struct iscsi_pdu *p, unsigned field)
{
	switch (field) {
	case 0:
		p->itt++;
		break;
	case 1:
		p->login.isid[5]++;
		break;
	case 2:
		p->login.tsih++;
		break;
	case 3:
		p->login.cid++;
		break;
	case 4:
		p->login.vmax++;
		break;
	case 5:
		p->login.vmin++;
		break;
	default: /* §11.12.8: the CmdSN of the first request is used */
		p->cmdsn++;
		break;
	}
}

/* [RFC 7143: 11.12.4.1 #1-2, 11.12.4.2 #1, 11.12.6 #3, 11.12.7 #1] */
static void test_login_header_changes_rfc7143_11_12(void **state)
{
	static const char *const names[] = { "Task Tag",    "ISID",
					     "TSIH",	    "CID",
					     "Version-max", "Version-min" };
	static uint8_t data[ISCSI_LOGIN_PDU_MAX];

	(void)state;
	for (unsigned i = 0; i < 7; i++) {
		struct iscsi_pdu answer, p = { .op = ISCSI_LOGIN_REQUEST };
		struct end t, ini;

		make(&t, &ini);
		t.e = iscsi_login_new(&t.cfg);
		assert_int_equal(feed(t.e, NAMES, sizeof(NAMES) - 1, false,
				      false, &answer, data),
				 0);
		p.login.csg = 1;
		p.login.nsg = 3;
		p.login.transit = true;
		alter(&p, i);
		iscsi_login_rx(t.e, &p, NULL);
		iscsi_login_tx(t.e, &answer, data);
		assert_int_equal(answer.login.status_class, i < 6 ? 2 : 0);
		if (i < 6)
			assert_non_null(strstr(iscsi_login_failure(t.e)->text,
					       names[i]));
		iscsi_login_free(t.e);
	}
}

static bool says(const uint8_t *data, size_t len, const char *pair)
{
	size_t n = strlen(pair) + 1;

	for (size_t at = 0; at + n <= len; at++)
		if ((at == 0 || data[at - 1] == 0) &&
		    memcmp(data + at, pair, n) == 0)
			return true;
	return false;
}

/* [RFC 7143: 6.2 #12, 6.2.2 #3, 6.3.1 #1, 11.13.8 #1, 13.25 #1-3] */
static void test_login_answers_by_rule(void **state)
{
	static const char text[] =
		NAMES "X-com.example=1\0IFMarker=Yes\0OFMarkInt=2048~8192\0"
		      "MaxBurstLength=100\0MaxOutstandingR2T=5\0"
		      "DefaultTime2Wait=0\0HeaderDigest=Foo,CRC32C,None\0"
		      "DataDigest=Foo\0ImmediateData=No\0RDMAExtensions=Yes\0";
	static uint8_t data[ISCSI_LOGIN_PDU_MAX];
	struct iscsi_pdu a;
	struct end t, i;

	(void)state;
	make(&t, &i);
	t.e = iscsi_login_new(&t.cfg);
	assert_int_equal(
		feed(t.e, text, sizeof(text) - 1, false, true, &a, data), 0);
	assert_true(says(data, a.dsl, "X-com.example=NotUnderstood"));
	assert_true(says(data, a.dsl, "IFMarker=No"));
	assert_true(says(data, a.dsl, "OFMarkInt=Reject"));
	assert_true(says(data, a.dsl, "MaxBurstLength=Reject"));
	assert_true(says(data, a.dsl, "MaxOutstandingR2T=1"));
	assert_true(says(data, a.dsl, "DefaultTime2Wait=2"));
	assert_true(says(data, a.dsl, "HeaderDigest=CRC32C"));
	assert_true(says(data, a.dsl, "DataDigest=Reject"));
	assert_true(says(data, a.dsl, "ImmediateData=No"));
	assert_true(says(data, a.dsl, "RDMAExtensions=No"));
	assert_true(says(data, a.dsl, "TargetPortalGroupTag=1"));
	assert_true(says(data, a.dsl, "MaxRecvDataSegmentLength=8192"));
	assert_true(a.login.transit);
	assert_int_equal(a.login.tsih, LOGIN_FIXTURE_TSIH);
	iscsi_login_free(t.e);
}

/* [RFC 7143: 6.2 #2, 6.3.1 #1] */
static void test_login_text_over_pdus_rfc7143_6_2(void **state)
{
	static const char text[] = NAMES "InitialR2T=No\0";
	static uint8_t data[ISCSI_LOGIN_PDU_MAX];

	(void)state;
	for (size_t cut = 1; cut < sizeof(text) - 1; cut++) {
		struct iscsi_pdu a;
		struct end t, i;

		make(&t, &i);
		t.cfg.want.initial_r2t = false;
		t.e = iscsi_login_new(&t.cfg);
		assert_int_equal(feed(t.e, text, cut, true, false, &a, data),
				 0);
		assert_int_equal(a.dsl, 0);
		assert_false(a.login.transit);
		assert_int_equal(feed(t.e, text + cut, sizeof(text) - 1 - cut,
				      false, true, &a, data),
				 0);
		assert_true(says(data, a.dsl, "InitialR2T=No"));
		assert_true(a.login.transit);
		iscsi_login_free(t.e);
	}
}

static void test_login_text_without_end(void **state)
{
	static const char text[4096] = NAMES;
	static uint8_t data[ISCSI_LOGIN_PDU_MAX];
	struct iscsi_pdu a;
	struct end t, i;
	int status = 0;

	(void)state;
	make(&t, &i);
	t.e = iscsi_login_new(&t.cfg);
	for (int n = 0; n < 5 && !status; n++)
		status = feed(t.e, text, sizeof(text), true, false, &a, data);
	assert_int_equal(status, ISCSI_LOGIN_NO_RESOURCES);
	iscsi_login_free(t.e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_login_defaults),
		cmocka_unit_test(test_login_that_reinstates),
		cmocka_unit_test(test_login_random_wants_agree),
		cmocka_unit_test(test_discovery_without_recovery_rfc7143_7_4_1),
		cmocka_unit_test(test_one_r2t_with_recovery_rfc7143_13_19),
		cmocka_unit_test(test_login_chap_rfc7143_12_1_3),
		cmocka_unit_test(test_login_chap_mutual),
		cmocka_unit_test(test_login_chap_wrong_secret),
		cmocka_unit_test(test_login_chap_accounts_rfc7143_12_1_3),
		cmocka_unit_test(test_login_chap_unknown_name_rfc7143_9_2_1),
		cmocka_unit_test(test_login_is_over),
		cmocka_unit_test(test_login_chap_target_fails_to_prove_itself),
		cmocka_unit_test(test_login_chap_one_secret_rfc7143_9_2_1),
		cmocka_unit_test(test_login_chap_only_of_the_target),
		cmocka_unit_test(test_login_security_stage_skipped),
		cmocka_unit_test(test_login_chap_offered_but_none_taken),
		cmocka_unit_test(test_login_verdict_refuses),
		cmocka_unit_test(test_login_redirect_names_the_address),
		cmocka_unit_test(test_login_key_repeated_rfc7143_6_3),
		cmocka_unit_test(test_a_target_of_rfc3720),
		cmocka_unit_test(test_login_first_request_decides_rfc7143_6_3),
		cmocka_unit_test(test_login_first_request_keys),
		cmocka_unit_test(test_lists_are_read_as_lists_rfc7143_6_2_1),
		cmocka_unit_test(test_login_header_changes_rfc7143_11_12),
		cmocka_unit_test(test_login_parameters_missing),
		cmocka_unit_test(test_login_answers_by_rule),
		cmocka_unit_test(test_login_text_over_pdus_rfc7143_6_2),
		cmocka_unit_test(test_login_text_without_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
