/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * login_target_test.c: a target with one Login Request for each combination of
 * stages and of the bits T and C (RFC 7143 §6.3, §11.12).
 */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"
#include "iscsi/chap.h"
#include "iscsi/keys.h"
#include "iscsi/login.h"
#include "iscsi/text.h"
#include "login_fixture.h"

static struct iscsi_login_config cfg;
static struct login_fixture fixture;

static struct iscsi_login_engine *begin(void)
{
	struct iscsi_login_engine *e;

	login_fixture_target(&cfg, &fixture);
	e = iscsi_login_new(&cfg);
	assert_non_null(e);
	return e;
}

static const char names[] = "InitiatorName=iqn.2026-01.test:i\0"
			    "TargetName=iqn.2026-01.test:t";

static struct iscsi_pdu request(unsigned csg, unsigned nsg, bool t, bool c)
{
	struct iscsi_pdu pdu = { .op = ISCSI_LOGIN_REQUEST,
				 .immediate = true,
				 .final = t,
				 .dsl = sizeof(names) };

	pdu.login.csg = (uint8_t)csg;
	pdu.login.nsg = (uint8_t)nsg;
	pdu.login.transit = t;
	pdu.login.cont = c;
	return pdu;
}

/* Returns the status of the answer. */
static unsigned feed_text(struct iscsi_login_engine *e,
			  const struct iscsi_pdu *pdu, const char *text,
			  struct iscsi_pdu *answer)
{
	static uint8_t data[ISCSI_LOGIN_PDU_MAX];

	iscsi_login_rx(e, pdu, (const uint8_t *)text);
	iscsi_login_tx(e, answer, data);
	return (unsigned)answer->login.status_class << 8 |
	       answer->login.status_detail;
}

static unsigned feed(struct iscsi_login_engine *e, const struct iscsi_pdu *pdu,
		     struct iscsi_pdu *answer)
{
	return feed_text(e, pdu, names, answer);
}

/* [RFC 7143: 6.2 #1, 6.3 #4-5 #9, 6.3.2 #3, 11.12.2 #1, 11.13.3 #1,
 * 11.13.6 #2] */
static void test_stages_of_the_first_request(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 64; i++) {
		unsigned csg = i & 3, nsg = i >> 2 & 3;
		bool t = i & 16, c = i & 32;
		bool ok =
			csg < 2 && !(t && c) && (!t || (nsg != 2 && nsg > csg));
		struct iscsi_pdu pdu = request(csg, nsg, t, c), answer;
		struct iscsi_login_engine *e = begin();

		assert_int_equal(feed(e, &pdu, &answer),
				 ok ? ISCSI_LOGIN_SUCCESS
				    : ISCSI_LOGIN_INITIATOR_ERROR);
		if (ok) {
			assert_int_equal(answer.login.csg, csg);
			assert_int_equal(answer.login.transit, t);
			assert_int_equal(answer.login.nsg, t ? nsg : 0);
			assert_int_equal(answer.login.tsih,
					 t && nsg == 3 ? LOGIN_FIXTURE_TSIH
						       : 0);
		}
		iscsi_login_free(e);
	}
}

/* Fields that must be equal in the second request. */
enum field {
	NOTHING,
	TASK_TAG,
	ISID,
	TSIH,
	CID,
	VERSION_MAX,
	STAGE,
	FIELDS,
};

static void change(struct iscsi_pdu *p, enum field f)
{
	p->itt += f == TASK_TAG;
	p->login.isid[5] ^= f == ISID;
	p->login.tsih = (uint16_t)(p->login.tsih + (f == TSIH));
	p->login.cid = (uint16_t)(p->login.cid + (f == CID));
	p->login.vmax = (uint8_t)(p->login.vmax + (f == VERSION_MAX));
	p->login.csg ^= f == STAGE;
}

static void test_fields_that_stay_rfc7143_6_3(void **state)
{
	(void)state;
	for (enum field f = 0; f < FIELDS; f++) {
		struct iscsi_pdu pdu = request(1, 0, false, true), answer;
		struct iscsi_login_engine *e = begin();

		assert_int_equal(feed(e, &pdu, &answer), ISCSI_LOGIN_SUCCESS);
		pdu = request(1, 3, true, false);
		pdu.dsl = 0;
		change(&pdu, f);
		assert_int_equal(feed(e, &pdu, &answer),
				 f == NOTHING ? ISCSI_LOGIN_SUCCESS
					      : ISCSI_LOGIN_INITIATOR_ERROR);
		iscsi_login_free(e);
	}
}

/* ---- CHAP: the keys of each step (§9.2, §12.1.3) ---- */

static const struct iscsi_chap_secret alice = { .name = "alice",
						.secret = "a secret of sixteen",
						.secret_len = 19 };

#define R32 "0123456789abcdef0123456789abcdef"

/* After so many of these requests comes `text`: the status. */
static unsigned chap_status(unsigned steps, const char *text, size_t len)
{
	static const char first[] = "InitiatorName=iqn.2026-01.test:i\0"
				    "TargetName=iqn.2026-01.test:t\0"
				    "AuthMethod=CHAP";
	static const char algorithm[] = "CHAP_A=7";
	struct iscsi_pdu pdu = request(0, 0, false, false), answer;
	struct iscsi_login_engine *e = begin();
	unsigned status;

	login_fixture_chap(&fixture, &alice, 1);
	pdu.dsl = sizeof(first);
	assert_int_equal(feed_text(e, &pdu, first, &answer),
			 ISCSI_LOGIN_SUCCESS);
	pdu.dsl = sizeof(algorithm);
	if (steps > 1)
		assert_int_equal(feed_text(e, &pdu, algorithm, &answer),
				 ISCSI_LOGIN_SUCCESS);
	pdu.dsl = (uint32_t)len;
	status = feed_text(e, &pdu, text, &answer);
	iscsi_login_free(e);
	return status;
}

#define CHAP(steps, text) chap_status(steps, text, sizeof(text))

/* A response to a challenge that the target has not sent, or without a name, is
 * not compared with the secret. */
/* [RFC 7143: 9.2 #3-4] */
static void test_response_without_a_challenge_rfc7143_12_1_3(void **state)
{
	(void)state;
	assert_int_equal(CHAP(1, "CHAP_N=alice\0CHAP_R=0x" R32 R32),
			 ISCSI_LOGIN_INITIATOR_ERROR);
	assert_int_equal(CHAP(2, "CHAP_R=0x" R32 R32),
			 ISCSI_LOGIN_MISSING_PARAMETER);
	assert_int_equal(CHAP(2, "CHAP_N=alice\0CHAP_R=0x" R32 R32),
			 ISCSI_LOGIN_AUTH_FAILURE);
}

/* An initiator that leaves out the key of the step is refused with another status
 * than one with a wrong secret. */
/* [RFC 7143: 9.2 #3, 12.1.3 #2] */
static void test_keys_of_each_step_rfc7143_9_2(void **state)
{
	(void)state;
	assert_int_equal(chap_status(1, NULL, 0),
			 ISCSI_LOGIN_MISSING_PARAMETER);
	assert_int_equal(chap_status(2, NULL, 0),
			 ISCSI_LOGIN_MISSING_PARAMETER);
	assert_int_equal(CHAP(2, "CHAP_N=alice\0CHAP_I=1\0CHAP_C=0x" R32),
			 ISCSI_LOGIN_MISSING_PARAMETER);
	assert_int_equal(CHAP(2, "CHAP_A=5"), ISCSI_LOGIN_INITIATOR_ERROR);
	assert_int_equal(CHAP(2, "CHAP_N=alice\0CHAP_R=0xzz"),
			 ISCSI_LOGIN_INITIATOR_ERROR);
	assert_int_equal(CHAP(2, "CHAP_N=alice\0CHAP_I=256\0CHAP_R=0x" R32),
			 ISCSI_LOGIN_INITIATOR_ERROR);
	/* the initiator wants a proof of the target, and half of the keys are missing */
	assert_int_equal(CHAP(2, "CHAP_N=alice\0CHAP_I=1\0CHAP_R=0x" R32 R32),
			 ISCSI_LOGIN_MISSING_PARAMETER);
	assert_int_equal(CHAP(2, "CHAP_N=alice\0CHAP_C=0x" R32
				 "\0CHAP_R=0x" R32 R32),
			 ISCSI_LOGIN_MISSING_PARAMETER);
	assert_int_equal(CHAP(1, "CHAP_A=4"), ISCSI_LOGIN_AUTH_FAILURE);
}

static const char *value_of(const uint8_t *data, size_t len, const char *key)
{
	struct iscsi_text_iter it = iscsi_text_iter(data, len);
	char name[ISCSI_KEY_NAME_MAX + 1];
	const char *value;

	while (iscsi_text_next(&it, name, &value) > 0)
		if (!strcmp(name, key))
			return value;
	fail_msg("no %s", key);
	return NULL;
}

/* The initiator knows its own secret and has the target prove itself, too, with the
 * challenge of the target or with one of its own. */
/* [RFC 7143: 9.2.1 #10-11] */
static void test_own_challenge_comes_back_rfc7143_9_2_1(void **state)
{
	static const struct iscsi_chap_secret bob = { .name = "bob",
						      .secret = "twelve bytes",
						      .secret_len = 12 };
	static const char first[] = "InitiatorName=iqn.2026-01.test:i\0"
				    "TargetName=iqn.2026-01.test:t\0"
				    "AuthMethod=CHAP";
	static uint8_t data[ISCSI_LOGIN_PDU_MAX];

	(void)state;
	for (unsigned own = 0; own < 2; own++) {
		struct iscsi_pdu pdu = request(0, 0, false, false), answer;
		struct iscsi_login_engine *e = begin();
		uint8_t r[CHAP_DIGEST_MAX], c[CHAP_CHALLENGE_MAX];
		char text[256], hex[2 * CHAP_DIGEST_MAX + 3], back[100];
		uint32_t id;
		int len;

		login_fixture_chap(&fixture, &alice, 1);
		fixture.verdict.chap_out = &bob;
		pdu.dsl = sizeof(first);
		feed_text(e, &pdu, first, &answer);
		pdu.dsl = sizeof("CHAP_A=5");
		iscsi_login_rx(e, &pdu, (const uint8_t *)"CHAP_A=5");
		iscsi_login_tx(e, &answer, data);
		snprintf(back, sizeof(back), "%s",
			 value_of(data, answer.dsl, "CHAP_C"));
		len = chap_binary_parse(back, c, sizeof(c));
		iscsi_number_parse(value_of(data, answer.dsl, "CHAP_I"), &id);
		len = (int)chap_response(CHAP_MD5, (uint8_t)id, &alice, c,
					 (size_t)len, r);
		chap_binary_print(r, (size_t)len, hex);
		pdu.dsl = (uint32_t)sprintf(
			text, "CHAP_N=alice%cCHAP_R=%s%cCHAP_I=9%cCHAP_C=%s%c",
			0, hex, 0, 0, own ? "0x0102" : back, 0);
		assert_int_equal(feed_text(e, &pdu, text, &answer),
				 own ? 0 : ISCSI_LOGIN_AUTH_FAILURE);
		iscsi_login_free(e);
	}
}

/* ---- headers and lengths ---- */

/* [RFC 7143: 11.12.4.2 #2] */
static void test_version_of_the_first_request_rfc7143_11_12_4(void **state)
{
	(void)state;
	for (unsigned vmin = 0; vmin < 2; vmin++) {
		struct iscsi_pdu pdu = request(1, 0, false, false), answer;
		struct iscsi_login_engine *e = begin();

		pdu.login.vmin = (uint8_t)vmin;
		pdu.login.vmax = 3;
		assert_int_equal(feed(e, &pdu, &answer),
				 vmin ? ISCSI_LOGIN_BAD_VERSION : 0);
		iscsi_login_free(e);
	}
}

/* §11.13.1, §11.13.2: version 0 in each response, also in a refusal. */
/* [RFC 7143: 11.13.1 #1, 11.13.2 #1] */
static void test_versions_of_the_responses_rfc7143_11_13_1(void **state)
{
	struct iscsi_pdu pdu = request(1, 0, false, false);
	struct iscsi_login_engine *e = begin();

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct iscsi_pdu answer = { .login = { .tsih = 0 } };
		unsigned status;

		pdu.login.vmax = 9;
		status = feed(e, &pdu, &answer);
		assert_int_equal(status, i < 2 ? 0 : 0x200);
		assert_int_equal(answer.login.vmax, 0);
		assert_int_equal(answer.login.vmin, 0);
		pdu.dsl = 0;
		pdu.login.csg = i ? 0 : 1; /* the third one is wrong */
	}
	iscsi_login_free(e);
}

/* Some initiators set T in each request of CHAP, others only in the last one, and others
 * in an empty request after it. The target leaves the stage when the exchange is over and
 * the initiator has set T. */
static void test_transit_in_each_round_of_chap_rfc7143_6_3_2(void **state)
{
	static const char first[] = "InitiatorName=iqn.2026-01.test:i\0"
				    "TargetName=iqn.2026-01.test:t\0"
				    "AuthMethod=CHAP";
	static uint8_t data[ISCSI_LOGIN_PDU_MAX];

	(void)state;
	for (unsigned bits = 0; bits < 8; bits++) {
		struct iscsi_login_engine *e = begin();
		struct iscsi_pdu pdu, answer;
		uint8_t r[CHAP_DIGEST_MAX], c[CHAP_CHALLENGE_MAX];
		char text[256], hex[2 * CHAP_DIGEST_MAX + 3];
		uint32_t id;
		int len;

		login_fixture_chap(&fixture, &alice, 1);
		pdu = request(0, 1, bits & 1, false);
		pdu.dsl = sizeof(first);
		assert_int_equal(feed_text(e, &pdu, first, &answer), 0);
		assert_false(answer.login.transit);
		assert_int_equal(answer.login.nsg, 0);
		pdu = request(0, 1, bits & 2, false);
		pdu.dsl = sizeof("CHAP_A=5");
		iscsi_login_rx(e, &pdu, (const uint8_t *)"CHAP_A=5");
		iscsi_login_tx(e, &answer, data);
		assert_false(answer.login.transit);
		len = chap_binary_parse(value_of(data, answer.dsl, "CHAP_C"), c,
					sizeof(c));
		iscsi_number_parse(value_of(data, answer.dsl, "CHAP_I"), &id);
		len = (int)chap_response(CHAP_MD5, (uint8_t)id, &alice, c,
					 (size_t)len, r);
		chap_binary_print(r, (size_t)len, hex);
		pdu = request(0, 1, bits & 4, false);
		pdu.dsl = (uint32_t)sprintf(text, "CHAP_N=alice%cCHAP_R=%s%c",
					    0, hex, 0);
		assert_int_equal(feed_text(e, &pdu, text, &answer), 0);
		assert_int_equal(answer.login.transit, !!(bits & 4));
		pdu = request(0, 1, true, false);
		pdu.dsl = 0;
		if (!(bits & 4))
			assert_int_equal(feed_text(e, &pdu, "", &answer), 0);
		assert_true(answer.login.transit);
		assert_int_equal(answer.login.nsg, 1);
		iscsi_login_free(e);
	}
}

/* 8,192 bytes of keys (§6.1), in two PDUs. */
/* [RFC 7143: 6.1 #4] */
static void test_text_of_8192_bytes_rfc7143_6_1(void **state)
{
	static char text[8192];
	struct iscsi_pdu pdu = request(1, 0, false, true), answer;
	struct iscsi_login_engine *e = begin();

	(void)state;
	for (size_t i = 0; i < sizeof(text); i += 64) {
		memset(text + i, 'v', 63);
		memcpy(text + i, "X-k.000=", 8);
		text[i + 4] = (char)('A' + i / 64 / 16);
		text[i + 5] = (char)('A' + i / 64 % 16);
	}
	memset(text, 0, 128);
	memcpy(text, names, sizeof(names));
	pdu.dsl = 5000;
	assert_int_equal(feed_text(e, &pdu, text, &answer), 0);
	pdu.login.cont = false;
	pdu.dsl = 3192;
	assert_int_equal(feed_text(e, &pdu, text + 5000, &answer), 0);
	iscsi_login_free(e);
}

/* C without data: an empty answer, and the keys may follow, up to the limit of requests. */
static void test_login_c_without_data_rfc7143_6_2(void **state)
{
	(void)state;
	for (unsigned over = 0; over < 2; over++) {
		struct iscsi_pdu pdu = request(1, 0, false, true), answer;
		struct iscsi_login_engine *e = begin();

		pdu.dsl = 0;
		for (unsigned i = 0; i < ISCSI_LOGIN_MAX_REQUESTS - 1 + over;
		     i++) {
			assert_int_equal(feed_text(e, &pdu, "", &answer), 0);
			assert_int_equal(answer.dsl, 0);
			assert_false(answer.login.transit);
			assert_false(answer.login.cont);
		}
		pdu = request(1, 3, true, false);
		assert_int_equal(feed(e, &pdu, &answer),
				 over ? ISCSI_LOGIN_INITIATOR_ERROR : 0);
		assert_int_equal(answer.login.transit, !over);
		iscsi_login_free(e);
	}
}

/* More text than a response holds: C without T, and the rest on demand. */
/* [RFC 7143: 6.2 #1, 11.12.2 #1, 11.13.7 #1] */
static void test_login_text_is_long_rfc7143_6_2(void **state)
{
	static char text[8192];
	struct iscsi_pdu pdu = request(1, 3, true, false), answer;
	struct iscsi_login_engine *e = begin();
	size_t len = sizeof(names);
	unsigned n = 0;

	(void)state;
	memcpy(text, names, len);
	while (len < 6000) /* each has the answer NotUnderstood */
		len += (size_t)sprintf(text + len, "X-k%04u=1", n++) + 1;
	pdu.dsl = (uint32_t)len;
	assert_int_equal(feed_text(e, &pdu, text, &answer), 0);
	assert_true(answer.login.cont);
	assert_false(answer.login.transit);
	pdu.dsl = 0;
	for (n = 0; answer.login.cont && n < 10; n++)
		assert_int_equal(feed_text(e, &pdu, "", &answer), 0);
	assert_true(answer.login.transit);
	iscsi_login_free(e);
}

/* A list without a value that the target supports is answered with Reject; the
 * negotiation has failed, and so has the login. */
/* [RFC 7143: 6.3.2 #2 #4] */
static void test_reject_of_a_security_key_rfc7143_6_3_2(void **state)
{
	static const char first[] = "InitiatorName=iqn.2026-01.test:i\0"
				    "TargetName=iqn.2026-01.test:t\0"
				    "AuthMethod=";
	static const struct {
		bool chap; /* is required */
		const char *methods, *algorithms, *reject;
	} rows[] = {
		{ true, "None", NULL, "AuthMethod" },
		{ true, "KRB5,SRP", NULL, "AuthMethod" },
		{ false, "CHAP", NULL, "AuthMethod" },
		{ true, "CHAP", "99", "CHAP_A" },
	};
	static uint8_t data[ISCSI_LOGIN_PDU_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct iscsi_pdu pdu = request(0, 1, false, false), answer;
		struct iscsi_login_engine *e = begin();
		char text[256];

		if (rows[i].chap)
			login_fixture_chap(&fixture, &alice, 1);
		memcpy(text, first, sizeof(first));
		strcpy(text + sizeof(first) - 1, rows[i].methods);
		pdu.dsl = (uint32_t)(sizeof(first) + strlen(rows[i].methods));
		iscsi_login_rx(e, &pdu, (const uint8_t *)text);
		iscsi_login_tx(e, &answer, data);
		if (rows[i].algorithms) {
			assert_int_equal(answer.login.status_class, 0);
			pdu.dsl = (uint32_t)sprintf(text, "CHAP_A=%s",
						    rows[i].algorithms) +
				  1;
			iscsi_login_rx(e, &pdu, (const uint8_t *)text);
			iscsi_login_tx(e, &answer, data);
		}
		assert_int_equal(answer.login.status_class << 8 |
					 answer.login.status_detail,
				 ISCSI_LOGIN_AUTH_FAILURE);
		assert_string_equal(value_of(data, answer.dsl, rows[i].reject),
				    "Reject");
		iscsi_login_free(e);
	}
}

/* [RFC 7143: 11.13.5 #1] */
static void test_redirection_has_an_address_rfc7143_11_13_5(void **state)
{
	static uint8_t data[ISCSI_LOGIN_PDU_MAX];
	struct iscsi_pdu pdu = request(1, 3, true, false), answer;
	struct iscsi_login_engine *e = begin();

	(void)state;
	fixture.verdict.status = ISCSI_LOGIN_MOVED_PERMANENTLY;
	strcpy(fixture.verdict.redirect, "10.0.0.2:3260");
	iscsi_login_rx(e, &pdu, (const uint8_t *)names);
	iscsi_login_tx(e, &answer, data);
	assert_int_equal(answer.login.status_class, 1);
	assert_string_equal((char *)data, "TargetAddress=10.0.0.2:3260");
	iscsi_login_free(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reject_of_a_security_key_rfc7143_6_3_2),
		cmocka_unit_test(test_stages_of_the_first_request),
		cmocka_unit_test(test_fields_that_stay_rfc7143_6_3),
		cmocka_unit_test(
			test_response_without_a_challenge_rfc7143_12_1_3),
		cmocka_unit_test(test_keys_of_each_step_rfc7143_9_2),
		cmocka_unit_test(test_own_challenge_comes_back_rfc7143_9_2_1),
		cmocka_unit_test(
			test_version_of_the_first_request_rfc7143_11_12_4),
		cmocka_unit_test(
			test_versions_of_the_responses_rfc7143_11_13_1),
		cmocka_unit_test(
			test_transit_in_each_round_of_chap_rfc7143_6_3_2),
		cmocka_unit_test(test_text_of_8192_bytes_rfc7143_6_1),
		cmocka_unit_test(test_login_c_without_data_rfc7143_6_2),
		cmocka_unit_test(test_login_text_is_long_rfc7143_6_2),
		cmocka_unit_test(
			test_redirection_has_an_address_rfc7143_11_13_5),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
