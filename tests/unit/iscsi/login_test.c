/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * login_test.c: the two ends of the login engine against each other: whatever
 * they want, both must come out with the same values (RFC 7143 §6.3).
 */
#include "iscsi/login.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "cmocka_all.h"

struct end {
	struct iscsi_login_config cfg;
	struct iscsi_login_engine *e;
};

static struct iscsi_login_verdict verdict;
static uint16_t admit_status;

static void identify(void *arg, const struct iscsi_login_id *id,
		     struct iscsi_login_verdict *v)
{
	(void)arg;
	(void)id;
	*v = verdict;
}

static uint16_t admit(void *arg, const struct iscsi_login_id *id,
		      const struct iscsi_params *params, uint16_t *tsih)
{
	(void)arg;
	(void)id;
	(void)params;
	*tsih = 77;
	return admit_status;
}

static void random_bytes(void *arg, uint8_t *p, size_t n)
{
	static uint8_t next;

	(void)arg;
	for (size_t i = 0; i < n; i++)
		p[i] = next++;
}

static void make(struct end *t, struct end *i)
{
	memset(t, 0, sizeof(*t));
	memset(i, 0, sizeof(*i));
	verdict = (struct iscsi_login_verdict){ .tpgt = 1 };
	admit_status = ISCSI_LOGIN_SUCCESS;
	t->cfg.role = ISCSI_TARGET;
	i->cfg.role = ISCSI_INITIATOR;
	iscsi_params_defaults(&t->cfg.want);
	iscsi_params_defaults(&i->cfg.want);
	t->cfg.identify = identify;
	t->cfg.admit = admit;
	t->cfg.random = i->cfg.random = random_bytes;
	t->cfg.header_digest_none_ok = t->cfg.data_digest_none_ok = true;
	t->cfg.header_digest_crc_ok = t->cfg.data_digest_crc_ok = true;
	i->cfg.header_digest_none_ok = i->cfg.data_digest_none_ok = true;
	strcpy(i->cfg.id.initiator_name, "iqn.2026-01.test:i");
	strcpy(i->cfg.id.target_name, "iqn.2026-01.test:t");
}

/* Runs a login to its end; returns what the initiator's rx said last. */
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
		iscsi_bhs_encode(&pdu, bhs); /* through the codec, too */
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
	assert_memory_equal(&a, &b, sizeof(a));
}

static void test_login_defaults(void **state)
{
	struct end t, i;

	(void)state;
	make(&t, &i);
	assert_int_equal(run(&t, &i), ISCSI_LOGIN_DONE);
	assert_agree(&t, &i);
	assert_int_equal(iscsi_login_id(i.e)->tsih, 77);
	assert_int_equal(iscsi_login_tpgt(i.e), 1);
	assert_string_equal(iscsi_login_id(t.e)->initiator_name,
			    "iqn.2026-01.test:i");
	drop(&t, &i);
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
	p->task_reporting_fence = roll(seed, 0, 1);
	p->rdma_extensions = roll(seed, 0, 1);
	p->target_recv_dsl = roll(seed, 512, 0xffffff);
	p->initiator_recv_dsl = roll(seed, 512, 0xffffff);
}

/* [RFC 7145: 6.3 #5] */
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

/* ---- CHAP ---- */

static const struct iscsi_chap_secret alice = { .name = "alice",
						.secret = "open sesame 42",
						.secret_len = 14 };
static const struct iscsi_chap_secret bob = { .name = "bob",
					      .secret = "another secret",
					      .secret_len = 14 };

static void test_login_chap_rfc7143_12_1_3(void **state)
{
	struct end t, i;

	(void)state;
	make(&t, &i);
	verdict.chap_in = &alice;
	i.cfg.chap_out = &alice;
	assert_int_equal(run(&t, &i), ISCSI_LOGIN_DONE);
	assert_agree(&t, &i);
	drop(&t, &i);
}

static void test_login_chap_mutual(void **state)
{
	struct end t, i;

	(void)state;
	make(&t, &i);
	verdict.chap_in = &alice;
	verdict.chap_out = &bob;
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

static void test_login_chap_wrong_secret(void **state)
{
	struct iscsi_chap_secret wrong = alice;
	struct end t, i;

	(void)state;
	make(&t, &i);
	verdict.chap_in = &alice;
	wrong.secret[0] ^= 1;
	i.cfg.chap_out = &wrong;
	assert_refused(&t, &i, ISCSI_LOGIN_AUTH_FAILURE);
}

static void test_login_chap_target_fails_to_prove_itself(void **state)
{
	struct iscsi_chap_secret wrong = bob;
	struct end t, i;

	(void)state;
	make(&t, &i);
	wrong.secret[3] ^= 1;
	verdict.chap_in = &alice;
	verdict.chap_out = &wrong;
	i.cfg.chap_out = &alice;
	i.cfg.chap_in = &bob;
	assert_int_equal(run(&t, &i), ERR_AUTH);
	drop(&t, &i);
}

static void test_login_chap_one_secret_rfc7143_9_2_1(void **state)
{
	struct iscsi_chap_secret same = bob;
	struct end t, i;

	(void)state;
	make(&t, &i);
	memcpy(same.secret, alice.secret, sizeof(same.secret));
	verdict.chap_in = &alice;
	verdict.chap_out = &same;
	i.cfg.chap_out = &alice;
	i.cfg.chap_in = &same;
	assert_refused(&t, &i, ISCSI_LOGIN_AUTH_FAILURE);
}

/* Who demands proof of the target, and has none of its own, gets no session
 * with a target that proves nothing. */
static void test_login_chap_only_of_the_target(void **state)
{
	struct end t, i;

	(void)state;
	make(&t, &i);
	verdict.chap_in = &alice;
	verdict.chap_out = &bob;
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
	verdict.chap_in = &alice;
	assert_refused(&t, &i, ISCSI_LOGIN_AUTH_FAILURE);
}

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
	verdict.status = ISCSI_LOGIN_NOT_FOUND;
	assert_refused(&t, &i, ISCSI_LOGIN_NOT_FOUND);
	make(&t, &i);
	admit_status = ISCSI_LOGIN_NO_RESOURCES;
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
	verdict.status = ISCSI_LOGIN_MOVED_TEMPORARILY;
	strcpy(verdict.redirect, "10.0.0.2:3260,1");
	assert_int_equal(run(&t, &i), ERR_LOGIN);
	assert_string_equal(iscsi_login_failure(i.e)->redirect,
			    "10.0.0.2:3260,1");
	drop(&t, &i);
}

/* ---- a target fed by hand ---- */

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

#define NAMES	   "InitiatorName=iqn.x:i\0TargetName=iqn.x:t\0"
#define FEED(text) feed_once(text, sizeof(text) - 1)

static void test_login_key_repeated_rfc7143_6_3(void **state)
{
	(void)state;
	assert_int_equal(FEED(NAMES "InitialR2T=No\0"), 0);
	assert_int_equal(FEED(NAMES "InitialR2T=No\0InitialR2T=No\0"), 0x200);
	assert_int_equal(FEED(NAMES "TargetName=iqn.x:t\0"), 0x200);
}

static void test_login_parameters_missing(void **state)
{
	(void)state;
	assert_int_equal(FEED("TargetName=iqn.x:t\0"), 0x207);
	assert_int_equal(FEED("InitiatorName=iqn.x:i\0"), 0x207);
	assert_int_equal(FEED(NAMES "SessionType=Strange\0"), 0x209);
	assert_int_equal(FEED(NAMES "SessionType=Normal"), 0x200);
	assert_int_equal(FEED(NAMES "=x\0"), 0x200);
	assert_int_equal(FEED(NAMES "AuthMethod=None\0"), 0x200);
	assert_int_equal(FEED(NAMES "SendTargets=All\0"), 0x200);
	assert_int_equal(FEED(NAMES "TargetAlias=x\0"), 0x200);
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
	assert_int_equal(a.login.tsih, 77);
	iscsi_login_free(t.e);
}

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
		cmocka_unit_test(test_login_random_wants_agree),
		cmocka_unit_test(test_login_chap_rfc7143_12_1_3),
		cmocka_unit_test(test_login_chap_mutual),
		cmocka_unit_test(test_login_chap_wrong_secret),
		cmocka_unit_test(test_login_chap_target_fails_to_prove_itself),
		cmocka_unit_test(test_login_chap_one_secret_rfc7143_9_2_1),
		cmocka_unit_test(test_login_chap_only_of_the_target),
		cmocka_unit_test(test_login_security_stage_skipped),
		cmocka_unit_test(test_login_chap_offered_but_none_taken),
		cmocka_unit_test(test_login_verdict_refuses),
		cmocka_unit_test(test_login_redirect_names_the_address),
		cmocka_unit_test(test_login_key_repeated_rfc7143_6_3),
		cmocka_unit_test(test_login_parameters_missing),
		cmocka_unit_test(test_login_answers_by_rule),
		cmocka_unit_test(test_login_text_over_pdus_rfc7143_6_2),
		cmocka_unit_test(test_login_text_without_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
