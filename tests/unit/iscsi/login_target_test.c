/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * login_target_test.c: a target with one Login Request for each combination of
 * stages and of the bits T and C (RFC 7143 §6.3, §11.12).
 */
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"
#include "iscsi/login.h"
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

/* A response to a challenge that the target has not sent, or without a name, is
 * not compared with the secret. */
static void test_response_without_a_challenge_rfc7143_12_1_3(void **state)
{
	static const struct iscsi_chap_secret alice = {
		.name = "alice",
		.secret = "a secret of sixteen",
		.secret_len = 19
	};
	static const char first[] = "InitiatorName=iqn.2026-01.test:i\0"
				    "TargetName=iqn.2026-01.test:t\0"
				    "AuthMethod=CHAP";
	static const char algorithm[] = "CHAP_A=7";
	static const char unnamed[] =
		"CHAP_R=0x0123456789abcdef0123456789abcdef"
		"0123456789abcdef0123456789abcdef";
	static const char named[] = "CHAP_N=alice\0"
				    "CHAP_R=0x0123456789abcdef0123456789abcdef"
				    "0123456789abcdef0123456789abcdef";

	(void)state;
	for (int challenged = 0; challenged < 2; challenged++) {
		struct iscsi_pdu pdu = request(0, 0, false, false), answer;
		struct iscsi_login_engine *e = begin();

		login_fixture_chap(&fixture, &alice, 1);
		pdu.dsl = sizeof(first);
		assert_int_equal(feed_text(e, &pdu, first, &answer),
				 ISCSI_LOGIN_SUCCESS);
		pdu.dsl = sizeof(algorithm);
		if (challenged)
			assert_int_equal(feed_text(e, &pdu, algorithm, &answer),
					 ISCSI_LOGIN_SUCCESS);
		pdu.dsl = challenged ? sizeof(unnamed) : sizeof(named);
		assert_int_equal(feed_text(e, &pdu,
					   challenged ? unnamed : named,
					   &answer),
				 ISCSI_LOGIN_AUTH_FAILURE);
		assert_non_null(strstr(iscsi_login_failure(e)->text,
				       "without CHAP_N or a challenge"));
		iscsi_login_free(e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stages_of_the_first_request),
		cmocka_unit_test(test_fields_that_stay_rfc7143_6_3),
		cmocka_unit_test(
			test_response_without_a_challenge_rfc7143_12_1_3),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
