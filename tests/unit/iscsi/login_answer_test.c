/* SPDX-License-Identifier: BSD-2-Clause */
/* login_answer_test.c: the initiator's half of a login, with answers that a
 * target must not send. */
#include "iscsi/login.h"

#include <string.h>

#include "base/err.h"
#include "cmocka_all.h"
#include "login_fixture.h"

static struct iscsi_login_config cfg;
static struct iscsi_login_engine *e;
static struct iscsi_pdu request;
static uint8_t data[ISCSI_LOGIN_PDU_MAX];

static void begin(void)
{
	login_fixture_initiator(&cfg);
	cfg.want.initial_r2t = false;
	cfg.want.immediate_data = false;
	memcpy(cfg.id.isid, "\x80\1\2\3\4\5", 6);
	e = iscsi_login_new(&cfg);
	assert_non_null(e);
	assert_int_equal(iscsi_login_start(e), 0);
	iscsi_login_tx(e, &request, data);
}

/* A response that grants all that the request asks for, up to the full feature
 * phase. */
static struct iscsi_pdu response(void)
{
	struct iscsi_pdu p = { .op = ISCSI_LOGIN_RESPONSE, .itt = request.itt };

	memcpy(p.login.isid, request.login.isid, 6);
	p.login.tsih = 5;
	p.login.csg = request.login.csg;
	p.login.nsg = request.login.nsg;
	p.login.transit = request.login.transit;
	return p;
}

static int answer(struct iscsi_pdu p, const char *text, size_t len)
{
	p.dsl = (uint32_t)len;
	return iscsi_login_rx(e, &p, (const uint8_t *)text);
}

#define ANSWER(p, text) answer(p, text, sizeof(text) - 1)

static void refused(int r, const char *clause)
{
	assert_int_equal(r, ERR_PROTOCOL);
	assert_non_null(strstr(iscsi_login_failure(e)->text, clause));
	assert_int_equal(iscsi_login_failure(e)->status, 0);
	iscsi_login_free(e);
}

static void test_login_isid_of_another_rfc7143_11_12_5(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		struct iscsi_pdu p;

		begin();
		p = response();
		p.login.isid[i] ^= 1;
		refused(ANSWER(p, ""), "ISID");
	}
}

static void test_login_tsih_of_a_new_session_rfc7143_11_13_3(void **state)
{
	struct iscsi_pdu p;

	(void)state;
	begin();
	p = response();
	p.login.tsih = 0;
	refused(ANSWER(p, ""), "11.13.3");
	/* the last response names the TSIH, no earlier one */
	begin();
	p = response();
	p.login.tsih = 0;
	p.login.transit = false;
	p.login.nsg = 0;
	assert_int_equal(ANSWER(p, ""), ISCSI_LOGIN_SEND);
	iscsi_login_tx(e, &request, data);
	assert_int_equal(ANSWER(response(), ""), ISCSI_LOGIN_DONE);
	assert_int_equal(iscsi_login_id(e)->tsih, 5);
	iscsi_login_free(e);
}

/* [RFC 7143: 6.3 #10 #12] */
static void test_login_key_answered_twice_rfc7143_6_3(void **state)
{
	struct iscsi_pdu p;

	(void)state;
	begin();
	refused(ANSWER(response(), "InitialR2T=No\0InitialR2T=Yes\0"),
		"answered twice");
	begin(); /* the same answer twice is an error, too */
	refused(ANSWER(response(), "ImmediateData=No\0ImmediateData=No\0"),
		"answered twice");
	begin(); /* in a later response */
	p = response();
	p.login.transit = false;
	p.login.nsg = 0;
	assert_int_equal(ANSWER(p, "InitialR2T=No\0"), ISCSI_LOGIN_SEND);
	iscsi_login_tx(e, &request, data);
	refused(ANSWER(response(), "InitialR2T=Yes\0"), "answered twice");
}

/* Only the first answer counts. */
static void test_login_key_answered_once(void **state)
{
	(void)state;
	begin();
	assert_int_equal(ANSWER(response(), "InitialR2T=No\0"
					    "MaxRecvDataSegmentLength=4096\0"),
			 ISCSI_LOGIN_DONE);
	assert_false(iscsi_login_params(e)->initial_r2t);
	assert_int_equal(iscsi_login_params(e)->max_send_dsl, 4096);
	iscsi_login_free(e);
}

/* A redirection has several addresses: the first one is used. */
static void test_login_redirect_first_address_rfc7143_11_13_5(void **state)
{
	struct iscsi_pdu p;

	(void)state;
	begin();
	p = response();
	p.login.status_class = 1;
	p.login.status_detail = 2;
	memset(p.login.isid, 0, 6); /* the other fields are not checked */
	assert_int_equal(ANSWER(p, "TargetAddress=10.0.0.1:5003\0"
				   "TargetAddress=[fe80::1]:3260\0"),
			 ERR_LOGIN);
	assert_int_equal(iscsi_login_failure(e)->status, 0x0102);
	assert_string_equal(iscsi_login_failure(e)->redirect, "10.0.0.1:5003");
	iscsi_login_free(e);
}

/* An address that does not fit is not cut: the login would go to another one. */
static void test_login_redirect_too_long_rfc7143_13_8(void **state)
{
	struct iscsi_pdu p;
	char text[1024] = "TargetAddress=";
	size_t at = strlen(text);

	(void)state;
	begin();
	p = response();
	p.login.status_class = 1;
	p.login.status_detail = 1;
	memset(text + at, 'x', 400);
	strcpy(text + at + 400, ":5003");
	at = strlen(text) + 1;
	strcpy(text + at, "TargetAddress=10.0.0.2");
	p.dsl = (uint32_t)(at + strlen(text + at) + 1);
	assert_int_equal(iscsi_login_rx(e, &p, (const uint8_t *)text),
			 ERR_LOGIN);
	assert_string_equal(iscsi_login_failure(e)->redirect, "10.0.0.2");
	iscsi_login_free(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_login_isid_of_another_rfc7143_11_12_5),
		cmocka_unit_test(
			test_login_tsih_of_a_new_session_rfc7143_11_13_3),
		cmocka_unit_test(test_login_key_answered_twice_rfc7143_6_3),
		cmocka_unit_test(test_login_key_answered_once),
		cmocka_unit_test(
			test_login_redirect_first_address_rfc7143_11_13_5),
		cmocka_unit_test(test_login_redirect_too_long_rfc7143_13_8),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
