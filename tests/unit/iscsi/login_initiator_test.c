/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * login_initiator_test.c: an initiator with Login Responses that have one error
 * each.
 */
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"
#include "iscsi/chap.h"
#include "iscsi/login.h"
#include "login_fixture.h"

static struct iscsi_login_config cfg;

/* An initiator that sent its first request; without CHAP it begins in the
 * operational stage. *rsp becomes a correct response. */
static struct iscsi_login_engine *begin(struct iscsi_pdu *rsp)
{
	static uint8_t data[ISCSI_LOGIN_PDU_MAX];
	struct iscsi_login_engine *e;
	struct iscsi_pdu asked = { .itt = 0 };

	login_fixture_initiator(&cfg);
	e = iscsi_login_new(&cfg);
	assert_non_null(e);
	assert_int_equal(iscsi_login_start(e), 0);
	iscsi_login_tx(e, &asked, data);
	assert_int_equal(asked.login.csg, 1);
	assert_int_equal(asked.login.nsg, 3);
	assert_true(asked.login.transit && asked.final);
	*rsp = (struct iscsi_pdu){ .op = ISCSI_LOGIN_RESPONSE,
				   .final = true,
				   .itt = asked.itt };
	rsp->login.transit = true;
	rsp->login.csg = 1;
	rsp->login.nsg = 3;
	rsp->login.tsih = LOGIN_FIXTURE_TSIH;
	memcpy(rsp->login.isid, asked.login.isid, 6);
	return e;
}

static const char keys[] = "TargetPortalGroupTag=1";

static int feed(struct iscsi_login_engine *e, struct iscsi_pdu *rsp)
{
	rsp->dsl = sizeof(keys);
	return iscsi_login_rx(e, rsp, (const uint8_t *)keys);
}

/* [RFC 7143: 6.3.3 #1] */
static void test_the_right_response(void **state)
{
	struct iscsi_login_engine *e;
	struct iscsi_pdu rsp;

	(void)state;
	e = begin(&rsp);
	assert_int_equal(feed(e, &rsp), ISCSI_LOGIN_DONE);
	assert_int_equal(iscsi_login_id(e)->tsih, 77);
	iscsi_login_free(e);
}

/* The error of a response. */
enum wrong {
	OPCODE,
	TASK_TAG,
	VERSION,
	STAGE_BEFORE,
	STAGE_AFTER,
	STAGE_WITHOUT_TRANSIT,
	TRANSIT_AND_CONTINUE,
	TO_NO_STAGE,
	TO_THE_SAME_STAGE,
	TO_AN_EARLIER_STAGE,
	WRONGS,
};

static void spoil(struct iscsi_pdu *p, enum wrong w)
{
	struct iscsi_login_fields *l = &p->login;

	if (w == OPCODE)
		p->op = ISCSI_TEXT_RESPONSE;
	if (w == TASK_TAG)
		p->itt++;
	if (w == VERSION)
		l->vmin = 1;
	if (w == STAGE_BEFORE || w == STAGE_WITHOUT_TRANSIT)
		l->csg = 0;
	if (w == STAGE_AFTER)
		l->csg = 3;
	if (w == STAGE_WITHOUT_TRANSIT)
		l->transit = p->final = false;
	if (w == TRANSIT_AND_CONTINUE)
		l->cont = true;
	if (w == TO_NO_STAGE)
		l->nsg = 2;
	if (w == TO_THE_SAME_STAGE)
		l->nsg = 1;
	if (w == TO_AN_EARLIER_STAGE)
		l->nsg = 0;
}

/* [RFC 7143: 6.3 #5 #9, 7.12 #1, 11.13.2 #2, 11.13.6 #2, 11.13.7 #1] */
static void test_each_wrong_response_rfc7143_6_3(void **state)
{
	(void)state;
	for (enum wrong w = 0; w < WRONGS; w++) {
		struct iscsi_pdu rsp;
		struct iscsi_login_engine *e = begin(&rsp);

		spoil(&rsp, w);
		assert_int_equal(feed(e, &rsp), ERR_PROTOCOL);
		iscsi_login_free(e);
	}
}

/* §11.13.5: with a status other than success the other fields are not checked. */
static void test_a_refusal_needs_no_stage(void **state)
{
	(void)state;
	for (unsigned class = 1; class < 4; class ++) {
		struct iscsi_pdu rsp;
		struct iscsi_login_engine *e = begin(&rsp);

		rsp.login.status_class = (uint8_t) class;
		rsp.login.csg = 0;
		rsp.login.transit = rsp.final = false;
		assert_int_equal(feed(e, &rsp), ERR_LOGIN);
		assert_int_equal(iscsi_login_failure(e)->status, class << 8);
		iscsi_login_free(e);
	}
}

/* An initiator repeats its request to a target that answers without the T bit,
 * up to a limit. */
static void test_a_target_without_end(void **state)
{
	static uint8_t data[ISCSI_LOGIN_PDU_MAX];
	struct iscsi_pdu rsp, asked;
	struct iscsi_login_engine *e = begin(&rsp);
	int r = ISCSI_LOGIN_SEND;
	unsigned n;

	(void)state;
	rsp.login.transit = rsp.final = false;
	rsp.login.nsg = 0;
	rsp.login.tsih = 0;
	for (n = 0; r == ISCSI_LOGIN_SEND && n < 10000; n++) {
		r = iscsi_login_rx(e, &rsp, NULL);
		if (r == ISCSI_LOGIN_SEND)
			iscsi_login_tx(e, &asked, data);
	}
	assert_int_equal(r, ERR_LIMIT);
	assert_int_equal(n, ISCSI_LOGIN_MAX_REQUESTS + 1);
	iscsi_login_free(e);
}

/* A response with C is answered without text; the keys count when all are there. */
/* [RFC 7143: 6.2 #3] */
static void test_response_in_pieces_rfc7143_6_2(void **state)
{
	static uint8_t data[ISCSI_LOGIN_PDU_MAX];
	struct iscsi_pdu rsp, asked = { .itt = 0 };
	struct iscsi_login_engine *e = begin(&rsp);

	(void)state;
	rsp.login.transit = rsp.final = false;
	rsp.login.nsg = 0;
	rsp.login.cont = rsp.cont = true;
	rsp.dsl = 10;
	assert_int_equal(iscsi_login_rx(e, &rsp, (const uint8_t *)keys),
			 ISCSI_LOGIN_SEND);
	assert_int_equal(iscsi_login_tpgt(e), -1);
	iscsi_login_tx(e, &asked, data);
	assert_int_equal(asked.dsl, 0);
	assert_false(asked.login.transit);
	rsp.login.transit = rsp.final = true;
	rsp.login.nsg = 3;
	rsp.login.cont = rsp.cont = false;
	rsp.dsl = sizeof(keys) - 10;
	iscsi_login_rx(e, &rsp, (const uint8_t *)keys + 10);
	assert_int_equal(iscsi_login_tpgt(e), 1);
	iscsi_login_free(e);
}

/* ---- the answer to AuthMethod ---- */

static const struct iscsi_chap_secret secret = { .name = "alice",
						 .secret = "open sesame 42",
						 .secret_len = 14 };

/* The same initiator with CHAP; mutual: the target must authenticate, too. */
static struct iscsi_login_engine *begin_chap(struct iscsi_pdu *rsp, bool mutual)
{
	static uint8_t data[ISCSI_LOGIN_PDU_MAX];
	struct iscsi_login_engine *e;
	struct iscsi_pdu asked = { .itt = 0 };

	login_fixture_initiator(&cfg);
	cfg.chap_out = &secret;
	cfg.chap_in = mutual ? &secret : NULL;
	e = iscsi_login_new(&cfg);
	assert_non_null(e);
	assert_int_equal(iscsi_login_start(e), 0);
	iscsi_login_tx(e, &asked, data);
	assert_int_equal(asked.login.csg, 0);
	*rsp = (struct iscsi_pdu){ .op = ISCSI_LOGIN_RESPONSE,
				   .itt = asked.itt };
	memcpy(rsp->login.isid, asked.login.isid, 6);
	return e;
}

#define ANSWER(e, rsp, text) \
 ((rsp)->dsl = sizeof(text), iscsi_login_rx(e, rsp, (const uint8_t *)(text)))

/* The target chooses CHAP: the initiator names its algorithms and stays in the
 * security stage, since the challenge follows. */
/* [RFC 7143: 12.1 #1, 12.1.3 #1] */
static void test_chap_goes_on_without_transit_rfc7143_12_1_3(void **state)
{
	static uint8_t data[ISCSI_LOGIN_PDU_MAX];
	struct iscsi_pdu rsp, asked = { .itt = 0 };
	struct iscsi_login_engine *e = begin_chap(&rsp, false);

	(void)state;
	assert_int_equal(ANSWER(e, &rsp, "AuthMethod=CHAP"), ISCSI_LOGIN_SEND);
	iscsi_login_tx(e, &asked, data);
	assert_false(asked.login.transit);
	assert_int_equal(strncmp((const char *)data, "CHAP_A=", 7), 0);
	iscsi_login_free(e);
}

/* The initiator asked for the operational stage; the target goes to the full feature
 * phase. */
/* [RFC 7143: 6.3 #7] */
static void test_transition_beyond_the_request_rfc7143_6_3(void **state)
{
	struct iscsi_pdu rsp;

	(void)state;
	for (uint8_t nsg = 1; nsg <= 3; nsg += 2) {
		struct iscsi_login_engine *e = begin_chap(&rsp, false);

		rsp.login.transit = rsp.final = true;
		rsp.login.nsg = nsg;
		rsp.login.tsih = nsg == 3 ? LOGIN_FIXTURE_TSIH : 0;
		assert_int_equal(ANSWER(e, &rsp, "AuthMethod=None"),
				 nsg == 3 ? ERR_PROTOCOL : ISCSI_LOGIN_SEND);
		iscsi_login_free(e);
	}
}

/* The initiator accepts a method only if it has offered it. */
static void test_method_that_was_not_offered_rfc7143_12_1(void **state)
{
	struct iscsi_pdu rsp;
	struct iscsi_login_engine *e = begin_chap(&rsp, false);

	(void)state;
	assert_int_equal(ANSWER(e, &rsp, "AuthMethod=SRP"), ERR_AUTH);
	iscsi_login_free(e);
	e = begin_chap(&rsp, true);
	assert_int_equal(ANSWER(e, &rsp, "AuthMethod=None"), ERR_AUTH);
	iscsi_login_free(e);
}

/* §9.2: the initiator gives up if the target leaves out the keys of a step. */
/* [RFC 7143: 9.2 #2] */
static void test_answer_without_its_keys_rfc7143_9_2(void **state)
{
	static uint8_t data[ISCSI_LOGIN_PDU_MAX];
	struct iscsi_pdu rsp, asked = { .itt = 0 };
	struct iscsi_login_engine *e = begin_chap(&rsp, false);

	(void)state;
	assert_int_equal(ANSWER(e, &rsp, "AuthMethod=CHAP"), ISCSI_LOGIN_SEND);
	iscsi_login_tx(e, &asked, data);
	rsp.dsl = 0;
	assert_int_equal(iscsi_login_rx(e, &rsp, NULL), ERR_AUTH);
	iscsi_login_free(e);
}

/* A challenge needs the algorithm and the identifier. */
/* [RFC 7143: 9.2 #2] */
static void test_challenge_is_incomplete_rfc7143_12_1_3(void **state)
{
	static const struct {
		const char *text;
		size_t len;
	} rows[] = {
#define ROW(text) { text, sizeof(text) }
		ROW("CHAP_A=5\0CHAP_C=0x0102030405060708090a0b0c0d0e0f10"),
		ROW("CHAP_I=1\0CHAP_C=0x0102030405060708090a0b0c0d0e0f10"),
		ROW("CHAP_C=0x0102030405060708090a0b0c0d0e0f10"),
#undef ROW
	};
	struct iscsi_pdu rsp;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		static uint8_t data[ISCSI_LOGIN_PDU_MAX];
		struct iscsi_login_engine *e = begin_chap(&rsp, false);
		struct iscsi_pdu asked = { .itt = 0 };

		assert_int_equal(ANSWER(e, &rsp, "AuthMethod=CHAP"),
				 ISCSI_LOGIN_SEND);
		iscsi_login_tx(e, &asked, data);
		rsp.dsl = (uint32_t)rows[i].len;
		assert_int_equal(iscsi_login_rx(e, &rsp,
						(const uint8_t *)rows[i].text),
				 ERR_AUTH);
		iscsi_login_free(e);
	}
}

/* Ends the login of an initiator that answered the challenge (";" for NUL) with a
 * status. Returns after_sha256; offer: what CHAP_A has to be. */
static bool refused_after(const char *challenge, uint16_t status,
			  bool misreads_sha256, const char *offer)
{
	static uint8_t data[ISCSI_LOGIN_PDU_MAX];
	struct iscsi_pdu rsp, asked = { .itt = 0 };
	struct iscsi_login_engine *e;
	bool after;

	e = begin_chap(&rsp, false);
	cfg.chap_algorithms = misreads_sha256 ? CHAP_OFFER_NO_SHA256 : NULL;
	assert_int_equal(ANSWER(e, &rsp, "AuthMethod=CHAP"), ISCSI_LOGIN_SEND);
	iscsi_login_tx(e, &asked, data);
	assert_string_equal((const char *)data, offer);
	rsp.dsl = (uint32_t)strlen(challenge) + 1;
	rsp.statsn++;
	memcpy(data, challenge, rsp.dsl);
	for (uint32_t i = 0; i < rsp.dsl; i++)
		data[i] = data[i] == ';' ? '\0' : data[i];
	assert_int_equal(iscsi_login_rx(e, &rsp, data), ISCSI_LOGIN_SEND);
	iscsi_login_tx(e, &asked, data);
	rsp.dsl = 0;
	rsp.statsn++;
	rsp.login.status_class = (uint8_t)(status >> 8);
	rsp.login.status_detail = (uint8_t)status;
	assert_int_equal(iscsi_login_rx(e, &rsp, NULL), ERR_LOGIN);
	assert_int_equal(iscsi_login_failure(e)->status, status);
	after = iscsi_login_failure(e)->after_sha256;
	iscsi_login_free(e);
	return after;
}

/* tgt takes number 7, SHA-256, for SHA-1, and the longer response for malformed. A
 * wrong secret has status 0201h. */
static void test_response_by_sha256_is_refused_rfc7143_12_1_3(void **state)
{
	static const char sha256[] = "CHAP_A=7;CHAP_I=1;CHAP_C=0x0102;",
			  md5[] = "CHAP_A=5;CHAP_I=1;CHAP_C=0x0102;",
			  all[] = "CHAP_A=7,8,6,5";

	(void)state;
	assert_true(
		refused_after(sha256, ISCSI_LOGIN_INITIATOR_ERROR, false, all));
	assert_false(
		refused_after(md5, ISCSI_LOGIN_INITIATOR_ERROR, false, all));
	assert_false(
		refused_after(sha256, ISCSI_LOGIN_AUTH_FAILURE, false, all));
	assert_false(refused_after(md5, ISCSI_LOGIN_AUTH_FAILURE, true,
				   "CHAP_A=8,6,5"));
}

/* A target that knows no other algorithm than MD5 may end the login at the list. */
static void test_list_of_algorithms_is_refused_rfc7143_12_1_3(void **state)
{
	static uint8_t data[ISCSI_LOGIN_PDU_MAX];
	struct iscsi_pdu rsp, asked = { .itt = 0 };
	struct iscsi_login_engine *e;

	(void)state;
	for (int after_list = 0; after_list < 2; after_list++) {
		e = begin_chap(&rsp, false);
		cfg.chap_algorithms = NULL;
		if (after_list) {
			assert_int_equal(ANSWER(e, &rsp, "AuthMethod=CHAP"),
					 ISCSI_LOGIN_SEND);
			iscsi_login_tx(e, &asked, data);
		}
		rsp.dsl = 0;
		rsp.statsn++;
		rsp.login.status_class = 2;
		rsp.login.status_detail = 1;
		assert_int_equal(iscsi_login_rx(e, &rsp, NULL), ERR_LOGIN);
		assert_int_equal(iscsi_login_failure(e)->at_algorithms,
				 after_list);
		iscsi_login_free(e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_chap_goes_on_without_transit_rfc7143_12_1_3),
		cmocka_unit_test(test_method_that_was_not_offered_rfc7143_12_1),
		cmocka_unit_test(
			test_response_by_sha256_is_refused_rfc7143_12_1_3),
		cmocka_unit_test(
			test_list_of_algorithms_is_refused_rfc7143_12_1_3),
		cmocka_unit_test(test_answer_without_its_keys_rfc7143_9_2),
		cmocka_unit_test(test_challenge_is_incomplete_rfc7143_12_1_3),
		cmocka_unit_test(test_the_right_response),
		cmocka_unit_test(test_response_in_pieces_rfc7143_6_2),
		cmocka_unit_test(
			test_transition_beyond_the_request_rfc7143_6_3),
		cmocka_unit_test(test_each_wrong_response_rfc7143_6_3),
		cmocka_unit_test(test_a_refusal_needs_no_stage),
		cmocka_unit_test(test_a_target_without_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
